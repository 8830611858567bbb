"""Plan to loops: each nest's statements, asked for element by element.

In: a `Plan`. Out: statements of the loop IR. Read parts.py, which carries out one part after the other in a scope, then
nests.py, and for other nests shared_loops.py and calls.py. They ask a `Lowerer` (elements.py) for elements; scopes.py
knows where names are known. A `Survey` (elements.py) tells from index maps what elements read.
"""
