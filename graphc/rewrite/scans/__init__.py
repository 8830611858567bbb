"""Passes over scans and branches, and rerolling of unrolled loops.

In: a graph. Out: an equal one, and what fired. Read open_loops.py (a scan as a graph over variables) and passes.py (the
passes in order) first, then steps.py and recurrences.py (passes over one scan); equal_steps.py finds unrolled loops and
rolling.py turns them into scans.
"""
