"""Plan to loops: each nest's statements, asked for element by element.

In: a `Plan`. Out: statements of the loop IR. Read parts.py, which carries out one part after the other in a scope, then
nests.py, and for other kinds of nests reductions.py, recurrences.py, fused.py and calls.py. What they ask for elements
is elements.py and, for reductions, lowerer.py; scopes.py knows where names are known. access.py tells from index maps
what elements read, tiling.py which loops are cut into tiles.
"""
