"""Passes over loops, for what a scan does is seen from what is taken of it; branches; equal steps that become loops.

In: a graph. Out: an equal one, and what fired. Read open_loops.py (a scan as nodes over variables) and passes.py (the
passes in their order) first, then what they do to rows, to products, to recurrences; rolling.py writes the loops that
equal_steps.py finds.
"""
