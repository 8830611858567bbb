"""Plan to loops: each nest's statements, asked for element by element.

In: a `Plan`. Out: statements of the loop IR. Read lowerer.py, then one file for each kind of nest: reductions.py,
recurrences.py, fused.py, calls.py; tiling.py says which loops are cut into tiles.
"""
