"""Theano's older path of pooling."""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.tensor.signal.pool import max_pool_2d_same_size, pool_2d

__all__ = ["max_pool_2d", "max_pool_2d_same_size"]


def max_pool_2d(
    input: Any, ds: Any, ignore_border: bool | None = None, st: Any = None, padding: Any = (0, 0), mode: str = "max"
) -> Node:
    """`pool_2d` with the names of arguments that it had."""
    return pool_2d(input, ds, ignore_border, st, padding, mode)
