"""Loops and branches over graphs: what users call, and what their derivatives are.

In: Python functions that are called once, with variables, to see what a step or a branch does. Out: nodes whose bodies
are graphs (`ops/scan.py`, `ops/branch.py`). Read scan.py, which Theano's users know, or functional.py, which JAX's
users know, then loop.py and derivative.py; branch.py by itself.
"""

from graphc.control import branch, derivative, functional, scan

__all__ = ["branch", "derivative", "functional", "scan"]
