"""Theano's place for the type of a derivative that is not defined."""

from graphc.gradient import null_type
from graphc.ops.missing import NullType

__all__ = ["NullType", "null_type"]
