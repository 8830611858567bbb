"""Rewrite rules: pairs of graphs, or functions of a node, each with its class of truth.

In: the nodes of a graph. Out: their replacements, and what fired. Read engine.py first; each other module has the rules
of one subject.
"""
