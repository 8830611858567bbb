"""Orders of complex numbers, as NumPy's: by real parts, then by imaginary ones. Numbers with NaN come last: first those
with a NaN as the imaginary part, then those with one as the real part.

In: complex tensors, as the ops of `ops/lines.py` and of reductions take them. Out: nodes of these ops on the parts.
Derivatives go through the places.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from graphc.ir import sizes
from graphc.ir.node import Node, Size, plain
from graphc.ir.walk import as_size_node
from graphc.ops import lines, pairs, reduce
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.recur import running_sum
from graphc.ops.shape import concatenate, dimshuffle, expand, reshape
from graphc.startup.hooks import HOOKS
from graphc.tensor.selecting import take_along_axis


def argsort(x: Node) -> Node:
    """The places of the elements along the second of three axes in rising order: by the least of the keys first."""
    re, im = plain(x).args
    is_nan = [elementwise("isnan", part) for part in (re, im)]
    kind = elementwise("add", elementwise("mul", cast(is_nan[0], "int8"), 2), cast(is_nan[1], "int8"))
    order = lines.argsort(im)
    for key in (re, kind):
        order = take_along_axis(order, lines.argsort(take_along_axis(key, order, 1)), 1)
    return order


def sort(x: Node) -> Node:
    return take_along_axis(x, argsort(x), 1)


def lexorder(rows: Node) -> Node:
    """The order of the rows of a matrix."""
    n, m = rows.type.shape
    return lines.lexorder(reshape(pairs.parts_of(plain(rows)), (n, sizes.multiply(m, 2))))


def _searched(side: str) -> Callable[[Node, Node], Node]:
    """Places by sorting both together: an element stands behind as many of the vector's as are less, or not more."""

    def searched(x: Node, values: Node) -> Node:
        first, second = (values, x) if side == "left" else (x, values)
        count, (n,) = sizes.add(first.type.shape[0], second.type.shape[0]), first.type.shape
        whole = concatenate([pairs.cast(each, x.type.dtype) for each in (first, second)], 0)
        order = reshape(argsort(reshape(whole, (1, count, 1))), (count,))
        is_second = elementwise("greater_equal", order, as_size_node(n))
        is_of_x = cast(is_second if side == "left" else elementwise("logical_not", is_second), "int64")
        before = running_sum(is_of_x, 0)
        back = reshape(lines.argsort(reshape(order, (1, count, 1))), (count,))
        found = take_along_axis(before, back, 0)
        return found.part((slice(None, n),) if side == "left" else (slice(n, None),))

    return searched


def _last(x: Node, axes: Sequence[int]) -> Node:
    """`x` with axes as one, the last."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    size: Size = sizes.product([x.type.shape[axis] for axis in axes])
    return reshape(dimshuffle(x, (*kept, *axes)), (*(x.type.shape[axis] for axis in kept), size))


def _position(name: str, x: Node, axes: Sequence[int]) -> Node:
    """The place of the first NaN, or of the first of the numbers with the extreme imaginary part among those with the
    extreme real part."""
    lowest, extreme = (-np.inf, reduce.reduce_max) if name == "max" else (np.inf, reduce.reduce_min)
    whole = plain(_last(x, axes))
    (re, im), last = whole.args, whole.ndim - 1
    is_nan = pairs.isnan(whole)
    is_best = elementwise("equal", re, expand(extreme(re, (last,)), (last,)))
    best = extreme(elementwise("where", is_best, im, lowest), (last,))
    is_best = elementwise("logical_and", is_best, elementwise("equal", im, expand(best, (last,))))
    any_nan = expand(reduce.reduce_any(is_nan, (last,)), (last,))
    return reduce.argmax(cast(elementwise("where", any_nan, is_nan, is_best), "int8"), (last,))


def _places(name: str) -> Callable[..., Node]:
    return lambda x, axes: _position(name, x, axes)


def _extreme(name: str) -> Callable[..., Node]:
    def extreme(x: Node, axes: Sequence[int], each: bool = False) -> Node:
        if not axes:
            return x
        whole, place = _last(x, axes), _position(name, x, axes)
        found = take_along_axis(whole, expand(place, (place.ndim,)), -1)
        return found.part((..., 0))

    return extreme


FUNCTIONS: dict[str, Callable[..., Node]] = {
    "argmax": _places("max"), "argmin": _places("min"), "max": _extreme("max"), "min": _extreme("min"),
    "argsort": argsort, "sort": sort, "lexorder": lexorder,
    "searchsorted_left": _searched("left"), "searchsorted_right": _searched("right"),
}  # fmt: skip
"""The functions, by the names of their ops."""


HOOKS.orders = sys.modules[__name__]
