"""Where the elements of an array are not 0: positions whose number is known only when the values are.

In: bool or number arrays, constant or symbolic. Out: int64 vectors whose size is the number of true elements, a scalar
of the graph: what follows from it is sized after a first kernel has counted. Each pass over the mask is linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, Size, constant_value, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import index, recur, reduce, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.elementary import where as choose
from graphc.tensor.shaping import flatten

__all__ = ["argwhere", "flatnonzero", "nonzero", "where"]


def positions(mask: Node) -> Node:
    """The positions, in C order, of the true elements of a bool array, an ascending int64 vector."""
    value = constant_value(mask)
    if value is not None:
        return literal(np.flatnonzero(value), "int64")
    flat = flatten(mask)
    length, number = flat.type.shape[0], cast(flat, "int64")
    count = sizes.as_size(reduce.reduce_sum(number, (0,)))
    # Every true element writes its position to its place among them, counted from 1; the others write to place 0.
    place = elementwise("where", flat, recur.running_sum(number, 0), 0)
    written = index.set_gather(layout.zeros("int64", (sizes.add(count, 1),)), layout.iota(length), (place,), 0)
    return index.subtensor(written, (1,), (count,), (1,))


def unravelled(flat: Node, shape: tuple[Size, ...]) -> tuple[Node, ...]:
    """The coordinates of positions in C order of an array of `shape`."""
    found: list[Node] = []
    for size in shape[:0:-1]:
        found.append(elementwise("mod", flat, as_size_node(size)))
        flat = elementwise("floor_div", flat, as_size_node(size))
    return (flat, *found[::-1]) if shape else ()


def coordinates(mask: Node) -> tuple[Node, ...]:
    """The coordinates of the true elements, one int64 vector for each axis."""
    return unravelled(positions(mask), mask.type.shape)


def _true(name: str, x: Any) -> Node:
    node = as_node(x)
    if node.ndim == 0:
        raise RankError(f"{name} of {describe(node)} of type {node.type}: a scalar has no positions")
    return cast(node, "bool")


def nonzero(x: Any, return_matrix: bool = False) -> Any:
    """The positions of the elements that are not 0 in C order, one int64 vector for each axis.

    Where `x` is no constant, the vectors' size is known only at run time. With `return_matrix` the vectors are the rows
    of one matrix (Theano's). Raises GraphTypeError for a scalar.

        >>> [each.eval().tolist() for each in T.nonzero(T.constant([[0, 1], [1, 0]]))]
        [[0, 1], [1, 0]]
    """
    found = coordinates(_true("nonzero", x))
    return layout.concatenate([layout.expand(one, (0,)) for one in found], 0) if return_matrix else found


def argwhere(x: Any) -> Node:
    """The positions of the elements that are not 0 as the rows of a matrix, as many columns as `x` has axes."""
    found = coordinates(_true("argwhere", x))
    return layout.concatenate([layout.expand(one, (1,)) for one in found], 1)


def flatnonzero(x: Any) -> Node:
    """The positions in C order of the elements that are not 0, an int64 vector.

    >>> T.flatnonzero(T.constant([0, 3, 4])).eval()
    array([1, 2])
    """
    return positions(cast(flatten(x), "bool"))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where `condition` is not 0, `y` elsewhere, broadcast; with a condition alone its `nonzero()`.

    Raises GraphTypeError where only one of `x` and `y` is given.

        >>> T.where(T.constant([True, False]), 1.0, [2.0, 3.0]).eval()
        array([1., 3.])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise GraphValueError("where: give both x and y, or neither")
    return choose(condition, x, y)


FUNCTIONS.update(nonzero=nonzero)
