"""Theano's place for types: `theano.gof.type.Type`, of which every tensor's type is an instance."""

from graphc.ir.kind import Kind as Type
from graphc.ops.missing import NullType

__all__ = ["NullType", "Type"]
