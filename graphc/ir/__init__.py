"""The graph IR: interned nodes, their types and sizes, and the functions that walk, print, parse and verify them.

In: ops, declared in graphc/ops. Out: nodes (node.py), traversals (walk.py), sizes (sizes.py), the printed form
(text.py, parse.py), the interpreter, which is the specification (interpret.py), the verifier and the hook between
passes (verify.py). Read node.py first.
"""
