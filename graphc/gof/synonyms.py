"""Names that Theano has for what is one thing here: its modules find them through `graphc.startup.paths`.

In: nothing. Out: classes and constructors of shared variables, `cpu_contiguous`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.shared import SharedVariable, shared
from graphc.sparse.variable import sparse_shared

__all__ = [
    "ScalarSharedVariable", "TensorSharedVariable", "cpu_contiguous", "scalar_constructor", "sparse_constructor",
    "tensor_constructor",
]  # fmt: skip

TensorSharedVariable = ScalarSharedVariable = SharedVariable
sparse_constructor = sparse_shared


def tensor_constructor(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    broadcastable: Sequence[bool] | None = None,
    target: str = "cpu",
) -> SharedVariable:
    """`shared`, its arguments in the order of Theano's constructor. Raises TypeError for what is no array."""
    return shared(value, name, borrow, strict, allow_downcast, broadcastable=broadcastable)


scalar_constructor = tensor_constructor


def cpu_contiguous(x: Any) -> Node:
    """`x` itself: graphc decides on memory itself."""
    return as_node(x)
