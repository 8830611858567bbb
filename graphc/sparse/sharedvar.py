"""Theano's path of shared variables of sparse matrices."""

from graphc.sparse.variable import SparseSharedVariable
from graphc.sparse.variable import sparse_shared as sparse_constructor

__all__ = ["SparseSharedVariable", "sparse_constructor"]
