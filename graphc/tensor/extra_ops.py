"""Theano's path of the functions in graphc.tensor."""

from __future__ import annotations

from typing import Any

from graphc import tensor
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.tensor.nnet.losses import to_one_hot

__all__ = ["cpu_contiguous", "to_one_hot"]


def cpu_contiguous(x: Any) -> Node:
    """`x` itself: graphc decides on memory itself."""
    return as_node(x)


def __getattr__(name: str) -> Any:
    return getattr(tensor, name)


def __dir__() -> list[str]:
    return dir(tensor)
