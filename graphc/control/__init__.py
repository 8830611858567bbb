"""Loops and branches over graphs: what users call, and what their derivatives are.

In: Python functions that are called once, with variables, to see what a step or a branch does. Out: nodes whose bodies
are graphs (`ops/scan.py`). Read scan.py, which Theano's users know, or functional.py, which JAX's users know, then
loop.py and derivative.py.
"""

from graphc.control import derivative, functional, scan

__all__ = ["derivative", "functional", "scan"]
