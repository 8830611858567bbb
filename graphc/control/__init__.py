"""Scans and branches: the functions that users call, and their derivatives.

In: Python functions, traced once with variables in place of arguments. Out: nodes whose bodies are graphs
(`ops/scan.py`, `ops/branch.py`). Read scan.py (Theano's interface) or functional.py (JAX's), then loop.py and
derivative.py; branch.py and batch.py stand by themselves.
"""

from graphc.control import branch, derivative, functional, scan

__all__ = ["branch", "derivative", "functional", "scan"]
