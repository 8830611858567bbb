"""`pad` in all of NumPy's modes.

In: a tensor, widths before and after each axis, which may be nodes. Out: the tensor within its border. The axes are
padded one after the other, so that corners follow from borders. Where the border repeats elements, its positions are
folded back into the axis by arithmetic: one gather, however wide the border.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.errors import GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops import index, shape as ops
from graphc.ops.checked import with_elements
from graphc.ops.elementwise import as_node, broadcast_node, cast, elementwise
from graphc.tensor.creation import full
from graphc.tensor.elementary import (
    add,
    clip,
    equal,
    floor,
    floor_div,
    less,
    logical_and,
    logical_or,
    mod,
    mul,
    rint,
    sub as minus,
    true_div,
    where,
)
from graphc.tensor.indexing import getitem, take
from graphc.tensor.reductions import any as any_of, max as max_of, mean as mean_of, min as min_of, sum as sum_of
from graphc.tensor.shaping import as_size

__all__ = ["pad"]

Border = Callable[[Node, int, Size, Size], Node]
"""Gives a tensor with an axis padded by two sizes, before and after."""


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Node:
    """`x` within a border: `pad_width` is a number, a pair (before, after), a pair for each axis, or a dict of such.

    mode: "constant" (`constant_values`), "edge", "linear_ramp" (down to `end_values`), "maximum", "mean", "median",
    "minimum" (of the `stat_length` elements beside each border, all by default), "reflect", "symmetric" (`reflect_type`
    "even" or "odd"), "wrap", "empty" (zeros). Widths and values may be nodes. Raises GraphTypeError for another mode,
    ShapeError for a negative width, and where an axis without elements is continued by other than numbers.

        >>> T.pad(T.constant([1, 2]), 1).eval()
        array([0, 1, 2, 0])
    """
    node = as_node(x)
    what = f"pad of {describe(node)} of type {node.type}"
    widths = [tuple(as_size(one, f"{what}: a width") for one in pair) for pair in _pairs(pad_width, node.ndim, what)]
    for pair in widths:
        if any(isinstance(one, int) and one < 0 for one in pair):
            raise ShapeError(f"{what}: a width is negative")
    lengths = [(None, None)] * node.ndim if stat_length is None else _pairs(stat_length, node.ndim, what)
    constants, ends = (_pairs(one, node.ndim, what) for one in (constant_values, end_values))
    if reflect_type not in ("even", "odd"):
        raise GraphValueError(f"{what}: reflect_type {reflect_type!r} is not even or odd")
    if mode == "empty":
        constants = [(0, 0)] * node.ndim
    if mode in ("constant", "empty") and (border := _only(constants)) is not None:
        shape = [sizes.add(size, sizes.add(*pair)) for size, pair in zip(node.type.shape, widths, strict=True)]
        whole = full(tuple(map(_as_given, shape)), cast(as_node(border), node.type.dtype))
        return index.set_subtensor(whole, node, [before for before, _ in widths], (1,) * node.ndim)
    for axis, (before, after) in enumerate(widths):
        if sizes.equal(before, 0) and sizes.equal(after, 0):
            continue
        match mode:
            case "constant":
                sides = [full(_slab(node, axis, width), cast(as_node(value), node.type.dtype))
                         for width, value in zip((before, after), constants[axis], strict=True)]  # fmt: skip
            case "linear_ramp":
                sides = _ramps(node, axis, (before, after), ends[axis])
            case "maximum" | "minimum" | "mean" | "median":
                node = with_elements(node, axis, 1, f"{what}: axis {axis} has no elements to repeat")
                sides = _statistics(node, axis, (before, after), lengths[axis], mode)
            case "edge" | "reflect" | "symmetric" | "wrap":
                node = _repeated(node, axis, before, after, mode if reflect_type == "even" else f"{mode} odd", what)
                continue
            case _:
                raise GraphValueError(f"{what}: mode {mode!r} is not one that pad knows")
        node = ops.concatenate([sides[0], node, sides[1]], axis)
    return node


def _only(values: Sequence[tuple[Any, Any]]) -> Any:
    """What all sides are filled with, or None where they differ or there are none."""
    found = [one for pair in values for one in pair]
    return found[0] if found and all(one is found[0] for one in found) else None


def _as_given(size: Size) -> Any:
    return size if isinstance(size, int) else as_size_node(size)


def _pairs(value: Any, ndim: int, what: str) -> list[tuple[Any, Any]]:
    """A number, a pair, or a pair for each axis as the last of these."""
    if isinstance(value, dict):
        given = {axis % ndim: _pairs(one, 1, what)[0] for axis, one in value.items()}
        return [given.get(axis, (0, 0)) for axis in range(ndim)]
    if not _is_sequence(value):
        return [(value, value)] * ndim
    items = list(value)
    if len(items) == 1:
        return _pairs(items[0], ndim, what)
    if not any(map(_is_sequence, items)) and len(items) == 2:
        return [(items[0], items[1])] * ndim
    if len(items) != ndim:
        raise ShapeError(f"{what}: {len(items)} pairs for {ndim} axes")
    return [_pairs(one, 1, what)[0] for one in items]


def _is_sequence(value: Any) -> bool:
    return not isinstance(value, str) and (value.ndim > 0 if hasattr(value, "ndim") else hasattr(value, "__len__"))


def _slab(x: Node, axis: int, width: Size) -> tuple[Any, ...]:
    shape = (*x.type.shape[:axis], width, *x.type.shape[axis + 1 :])
    return tuple(map(_as_given, shape))


def _part(x: Node, axis: int, start: Any, stop: Any) -> Node:
    return getitem(x, (*(slice(None),) * axis, slice(start, stop)))


def _spread(x: Node, axis: int, width: Size) -> Node:
    return ops.broadcast_to(x, (*x.type.shape[:axis], width, *x.type.shape[axis + 1 :]))


def _edges(x: Node, axis: int) -> tuple[Node, Node]:
    """The first and the last slice, of size 1 along the axis; an error at run time where there is none."""
    length, whole = x.type.shape[axis], list(x.type.shape)
    found = []
    for start in (0, sizes.add(length, -1)):
        starts: list[Size] = [0] * x.ndim
        starts[axis], whole[axis] = start, 1
        found.append(index.subtensor(x, starts, whole, (1,) * x.ndim))
    return found[0], found[1]


def _along(x: Node, values: Node, axis: int) -> Node:
    """A vector along an axis of `x`, ready to broadcast."""
    return ops.expand(values, [k for k in range(x.ndim) if k != axis])


def _ramps(x: Node, axis: int, widths: tuple[Size, ...], ends: tuple[Any, Any]) -> list[Node]:
    """The borders that go from `ends` to the edges in equal steps."""
    sides = []
    inside = x.type.dtype if is_float(x.type.dtype) else "float64"
    for edge, width, end, reverse in zip(_edges(x, axis), widths, ends, (False, True), strict=True):
        first, last = cast(as_node(end), inside), cast(edge, inside)
        count = cast(ops.iota(width), inside)
        if reverse:
            count = minus(cast(as_size_node(sizes.add(width, -1)), inside), count)
        step = true_div(minus(last, first), cast(as_size_node(sizes.maximum(width, 1)), inside))
        ramp = add(mul(_along(x, count, axis), step), first)
        if x.type.dtype in INTEGERS:
            ramp = floor(ramp)
        sides.append(
            ops.broadcast_to(broadcast_node(cast(ramp, x.type.dtype), ramp.type.shape), _slab_sizes(x, axis, width))
        )
    return sides


def _slab_sizes(x: Node, axis: int, width: Size) -> tuple[Size, ...]:
    return (*x.type.shape[:axis], width, *x.type.shape[axis + 1 :])


def _statistics(x: Node, axis: int, widths: tuple[Size, ...], lengths: tuple[Any, Any], mode: str) -> list[Node]:
    """The borders that hold a statistic of the elements beside them."""
    statistic: dict[str, Callable[..., Node]] = {
        "maximum": max_of, "minimum": min_of, "mean": mean_of, "median": median,
    }  # fmt: skip
    sides = []
    for width, length, at_end in zip(widths, lengths, (False, True), strict=True):
        part = x
        if length is not None:
            held = sizes.minimum(as_size(length, "pad: a stat_length"), x.type.shape[axis])
            count = held if isinstance(held, int) else as_size_node(held)
            start = sizes.subtract(x.type.shape[axis], held)
            part = _part(x, axis, start if at_end else None, None if at_end else count)
        value = statistic[mode](part, axis, keepdims=True)
        if value.type.dtype != x.type.dtype:
            value = cast(rint(value) if x.type.dtype in INTEGERS else value, x.type.dtype)
        sides.append(_spread(value, axis, width))
    return sides


def median(x: Node, axis: int, keepdims: bool = True) -> Node:
    """The mean of the middle one or two elements along an axis, by counting how many come before each: quadratic work,
    no memory. NaN where an element is."""
    rows, columns = ops.expand(x, (axis + 1,)), ops.expand(x, (axis,))
    place = ops.iota(x.type.shape[axis])
    earlier = less(_at(place, axis + 1, x.ndim + 1), _at(place, axis, x.ndim + 1))
    comes_before = logical_or(less(columns, rows), logical_and(equal(columns, rows), earlier))
    rank = sum_of(cast(comes_before, "int64"), axis + 1)
    last = as_size_node(sizes.add(x.type.shape[axis], -1))
    inside = x.type.dtype if is_float(x.type.dtype) else "float64"
    values = cast(x, inside)
    low, high = (
        sum_of(where(equal(rank, floor_div(add(last, shift), 2)), values, 0), axis, keepdims=True) for shift in (0, 1)
    )
    middle = where(equal(low, high), low, mul(add(low, high), 0.5))
    return where(any_of(elementwise("isnan", values), axis, keepdims=True), float("nan"), middle)


def _at(values: Node, axis: int, ndim: int) -> Node:
    return ops.expand(values, [k for k in range(ndim) if k != axis])


def _repeated(x: Node, axis: int, before: Size, after: Size, mode: str, what: str) -> Node:
    """An axis continued beyond its ends by its own elements."""
    length = x.type.shape[axis]
    x = with_elements(x, axis, 1, f"{what}: axis {axis} has no elements to repeat")
    total = sizes.add(sizes.add(before, length), after)
    place = minus(ops.iota(total), as_size_node(before))
    size = as_size_node(length)
    last = minus(size, 1)
    match mode.split(maxsplit=1)[0]:
        case "edge":
            return take(x, clip(place, 0, last), axis)
        case "wrap":
            return take(x, mod(place, size), axis)
        case "reflect":
            period = elementwise("maximum", last, 1)
        case _:
            period = size
    # The axis is continued in laps of one period, every other one backwards.
    lap, rest = floor_div(place, period), mod(place, period)
    is_back = equal(mod(lap, 2), 1)
    forward = elementwise("minimum", rest, last)
    folded = where(is_back, minus(last, rest), forward)
    repeated = take(x, elementwise("maximum", folded, 0), axis)
    if not mode.endswith("odd"):
        return repeated
    first, final = _edges(x, axis)
    climb = mul(_along(x, cast(minus(lap, mod(lap, 2)), x.type.dtype), axis), minus(final, first))
    turned = minus(mul(final, 2), repeated)
    return add(where(_along(x, is_back, axis), turned, repeated), climb)
