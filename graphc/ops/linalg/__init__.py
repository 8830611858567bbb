"""The ops of linear algebra: products of matrices, factorisations, and what users name that is composed of these.

In: nodes whose last two axes are matrices. Out: op records, and functions that make their nodes. `routine.py` has the
one form that all factorisations are rows of.
"""
