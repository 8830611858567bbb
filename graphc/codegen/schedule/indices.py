"""Index arrays: which are known to lie within their axis, and which two comparisons of sizes may tell.

In: a gather or scatter, an index array. Out: the axes that it indexes; bounds of the elements as sizes, None where none
is found. As an example, of an index that is kept within an axis of `n` elements, and of one that a search has found:

    bounds_of(clip(i, 1, n - 1) - 1, sizing)     == (minimum(1, n - 1) - 1, n - 2)
    bounds_of(searchsorted(x, values), sizing)   == (0, n)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.arrays.dtypes import can_cast_safely
from graphc.codegen.schedule.nodes import segment_count
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.node import SIZE, Node, Size, constant_value
from graphc.ir.walk import reachable
from graphc.loopir.ir import INDEX
from graphc.ops.index import never_negative

Bounds: TypeAlias = "tuple[Size | None, Size | None]"
"""No element is less than the first or more than the second; None where that is not known."""
UNKNOWN: Bounds = (None, None)
DEEPEST = 8
"""The nesting of sums and extremes that is looked through."""
SAME_ELEMENTS = ("dimshuffle", "broadcast_to", "reshape", "stop_gradient", "subtensor")
"""Ops whose result has no other elements than their first argument."""


def gathered(node: Node) -> list[tuple[Node, Size]]:
    """The index arrays of a gather or scatter, each with the size of the axis it indexes."""
    if node.op.name not in ("gather", "set_gather", "inc_gather"):
        return []
    axis = node.attrs["axis"]
    indices = node.args[1:] if node.op.name == "gather" else node.args[2:]
    return [(index, node.args[0].type.shape[axis + n]) for n, index in enumerate(indices)]


def in_range(index: Node, size: Size, sizing: Sizing) -> bool:
    """Tell whether every element of an index array is known to lie within an axis."""
    low, high = bounds_of(index, sizing)
    if high is None or not sizes.known_at_least(size, sizes.add(high, 1)):
        return False
    return never_negative(index) or (low is not None and sizes.known_at_least(sizes.add(low, size), 0))


def comparable_bounds(index: Node, sizing: Sizing) -> tuple[Size, Size] | None:
    """Bounds that a call can compare with the size of an axis: they follow from the sizes of its arguments."""
    low, high = bounds_of(index, sizing)
    if low is None or high is None:
        return None
    nodes = reachable([bound for bound in (low, high) if isinstance(bound, Node)], lambda node: node.args)
    known = all(node.args or node.op is SIZE or constant_value(node) is not None for node in nodes)
    return (low, high) if known else None


def bounds_of(index: Node, sizing: Sizing, deepest: int = DEEPEST) -> Bounds:
    """Bounds of the elements of an array of integers."""
    while index.op.name in SAME_ELEMENTS or (
        index.op.name == "cast" and can_cast_safely(index.args[0].type.dtype, index.type.dtype)
    ):
        index = index.args[0]
    value = constant_value(index)
    if value is not None:
        return (int(value.min()), int(value.max())) if value.size else (0, -1)
    if index.type.dtype != INDEX or not deepest:
        return UNKNOWN
    if index.ndim == 0 and sizes.known_nonnegative(index):
        size = sizing.of(index)
        return size, size
    name = index.op.name
    if name in PLACES:
        return 0, sizes.add(PLACES[name](index, sizing), -1)
    if name in COMBINED:
        args = index.args[1:] if name == "where" else index.args
        return COMBINED[name](*(bounds_of(arg, sizing, deepest - 1) for arg in args))
    return UNKNOWN


def _reduced(node: Node, sizing: Sizing) -> Size:
    """The number of elements among which a reduction chooses."""
    shape = sizing.shape(node.args[0])
    return sizing.of(sizes.product(shape[axis] for axis in node.attrs["axes"]))


PLACES: dict[str, Callable[[Node, Sizing], Size]] = {
    "iota": lambda node, sizing: sizing.of(sizes.as_size(node.args[0])),
    "segment_of": lambda node, sizing: sizing.of(segment_count(node.args[0])),
    "argmax": _reduced,
    "argmin": _reduced,
    "argsort": lambda node, sizing: sizing.shape(node.args[0])[1],
    "searchsorted_left": lambda node, sizing: sizes.add(sizing.shape(node.args[0])[0], 1),
    "searchsorted_right": lambda node, sizing: sizes.add(sizing.shape(node.args[0])[0], 1),
}
"""Ops whose elements are places: how many there are to be had."""


def _each(combine: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return None if left is None or right is None else combine(left, right)


def _either(combine: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return right if left is None else left if right is None else combine(left, right)


def _minimum(left: Bounds, right: Bounds) -> Bounds:
    return _each(sizes.minimum, left[0], right[0]), _either(sizes.minimum, left[1], right[1])


def _maximum(left: Bounds, right: Bounds) -> Bounds:
    return _either(sizes.maximum, left[0], right[0]), _each(sizes.maximum, left[1], right[1])


def _remainder(left: Bounds, right: Bounds) -> Bounds:
    """Return the bounds of a remainder by a size: of Python's, which is not negative. By 0 it is 0."""
    low, high = right
    if low is None or high is None or not sizes.equal(low, high) or not sizes.known_nonnegative(low):
        return UNKNOWN
    return 0, sizes.maximum(sizes.add(low, -1), 0)


def _quotient(left: Bounds, right: Bounds) -> Bounds:
    """Return the bounds of a quotient of a number that is not negative by a size. By 0 it is 0."""
    (least, most), (low, high) = left, right
    if least is None or most is None or not sizes.known_nonnegative(least):
        return UNKNOWN
    if low is None or high is None or not sizes.equal(low, high) or not sizes.known_nonnegative(low):
        return UNKNOWN
    return 0, sizes.floor_divide(most, sizes.maximum(low, 1))


COMBINED: dict[str, Callable[..., Bounds]] = {
    "add": lambda a, b: (_each(sizes.add, a[0], b[0]), _each(sizes.add, a[1], b[1])),
    "sub": lambda a, b: (_each(sizes.subtract, a[0], b[1]), _each(sizes.subtract, a[1], b[0])),
    "minimum": _minimum,
    "maximum": _maximum,
    "clip": lambda x, low, high: _minimum(_maximum(x, low), high),
    "where": lambda a, b: (_each(sizes.minimum, a[0], b[0]), _each(sizes.maximum, a[1], b[1])),
    "mod": _remainder,
    "floor_div": _quotient,
}
"""Bounds of the results of ops, by those of their arguments."""
