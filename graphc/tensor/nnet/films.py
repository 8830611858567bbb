"""Theano's convolution of films: images in a row, with their channels behind the time.

In: films (batch, time, channels, rows, columns) and filters (results, time, channels, rows, columns). Out: nodes; each
is `conv3d` with its axes in another order.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.tensor import indexing
from graphc.tensor.creation import arange
from graphc.tensor.nnet import abstract_conv
from graphc.tensor.shaping import dimshuffle, moveaxis

__all__ = ["conv3d", "diagonal_subtensor", "inc_diagonal_subtensor"]

_SWAPPED = (0, 2, 1, 3, 4)


def conv3d(
    signals: Any, filters: Any, signals_shape: Any = None, filters_shape: Any = None, border_mode: Any = "valid"
) -> Node:
    """Films convolved with filters, which are flipped: (batch, time, results, rows, columns).

    signals_shape, filters_shape: sizes that are told. border_mode: "valid", "full" or "half", or one for each of time,
    rows and columns. Raises GraphTypeError for other ranks and modes.
    """
    known, told = (shape and tuple(shape[axis] for axis in _SWAPPED) for shape in (signals_shape, filters_shape))
    films, taps = (_turned(each) for each in (signals, filters))
    return dimshuffle(abstract_conv.conv3d(films, taps, known, told, border_mode), _SWAPPED)


def _turned(x: Any) -> Node:
    node = as_node(x)
    if node.ndim != 5:
        raise GraphTypeError(f"conv3d2d.conv3d: {describe(node)} of type {node.type} should have 5 axes")
    return dimshuffle(node, _SWAPPED)


def _stripe(x: Node, axis: Any, across: Any) -> tuple[Node, tuple[Node, Node]]:
    """`x` with two axes in front, and the places along them: column c goes back by c."""
    front = moveaxis(x, (int(axis), int(across)), (0, 1))
    length, columns = front.shape[0], front.shape[1]
    column = arange(columns)
    return front, ((arange(length - columns + 1) + columns - 1)[:, None] - column[None, :], column[None, :])


def diagonal_subtensor(x: Any, i0: Any, i1: Any) -> Node:
    """The thick diagonal of `x` along the axes i0 and i1: out[r, c] = x[r + columns - 1 - c, c]."""
    front, places = _stripe(as_node(x), i0, i1)
    return moveaxis(front[places], (0, 1), (int(i0), int(i1)))


def inc_diagonal_subtensor(x: Any, i0: Any, i1: Any, amt: Any) -> Node:
    """`x` with `amt` added to its thick diagonal along the axes i0 and i1."""
    front, places = _stripe(as_node(x), i0, i1)
    added = indexing.inc_subtensor(front[places], moveaxis(as_node(amt), (int(i0), int(i1)), (0, 1)))
    return moveaxis(added, (0, 1), (int(i0), int(i1)))
