"""Rules: pairs of graphs, or functions of a node, each as true as it says.

In: the nodes of a graph. Out: what stands for them, and what fired. Read engine.py first; each other module has the
rules of one kind.
"""
