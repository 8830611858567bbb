"""Does the suite notice when the compiler is wrong? It is broken in many places, one after the other, and tested.

`mutants` is the list of breakages, `trial` makes one in a copy of the tree and runs tests on it, `__main__` runs many
side by side and sums up. `python -m mutation` or `make mutation`.
"""
