"""The graph IR: interned nodes, their types and sizes, and what walks, prints, reads and verifies them.

In: ops, declared in graphc/ops. Out: nodes (node.py), the order of a graph (walk.py), sizes (sizes.py), the printed
form (text.py, parse.py), its values node by node (interpret.py: the specification), checks (verify.py), and what stands
between two passes of the compiler (passes.py). Read node.py first.
"""
