"""Theano's path of the type of sparse variables."""

from graphc.sparse.variable import SparseType

__all__ = ["SparseType"]
