"""Arrays put together, taken apart, turned and padded in ways that few programs need.

    insert([1, 3], 1, 2)        [1, 2, 3]
    pad([1, 2], 1, "edge")      [1, 1, 2, 2]

In: tensors, positions, axes. Out: nodes, all composed of concatenate, gather and dimshuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_inexact
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, Size, constant_value, describe
from graphc.ir.walk import as_size_node
from graphc.ops import index, reduce, shape as ops
from graphc.ops.elementwise import as_node, broadcast_node, cast, elementwise
from graphc.ops.identity import with_elements
from graphc.ops.questions import asked_size
from graphc.ops.recur import running_sum
from graphc.tensor import elementary as el, shaping
from graphc.tensor.creation import full, ones
from graphc.tensor.indexing import flip, getitem, set_subtensor, slice_along, take
from graphc.tensor.joining import concatenate, split, stack
from graphc.tensor.reductions import max as max_of, mean as mean_of, min as min_of

__all__ = [
    "append", "block", "concat", "delete", "dsplit", "horizontal_stack", "hsplit", "insert", "matrix_transpose",
    "pad", "permute_dims", "resize", "rollaxis", "rot90", "row_stack", "stacklists", "trim_zeros", "unstack",
    "vertical_stack", "vsplit",
]  # fmt: skip

# --- together -------------------------------------------------------------------------------------------------------


def concat(arrays: Any, axis: int | None = 0) -> Node:
    """Arrays one after the other along `axis`; flattened ones where it is None."""
    return concatenate([shaping.flatten(x) for x in arrays], 0) if axis is None else concatenate(arrays, axis)


def append(x: Any, values: Any, axis: int | None = None) -> Node:
    """`values` after `x` along `axis`, both flattened where it is None."""
    return concat([as_node(x), as_node(values)], axis)


def row_stack(arrays: Any) -> Node:
    """Arrays one below the other, vectors as rows."""
    return concatenate([shaping.atleast_nd(x, 2) for x in arrays], 0)


def _matrices(name: str, args: Sequence[Any]) -> list[Node]:
    nodes = [as_node(x) for x in args]
    for node in nodes:
        if node.ndim != 2:
            raise RankError(f"{name}: {describe(node)} of type {node.type} is no matrix")
    return nodes


def horizontal_stack(*args: Any) -> Node:
    """Matrices side by side (Theano's)."""
    return concatenate(_matrices("horizontal_stack", args), 1)


def vertical_stack(*args: Any) -> Node:
    """Matrices one below the other (Theano's)."""
    return concatenate(_matrices("vertical_stack", args), 0)


def stacklists(arg: Any) -> Node:
    """A nested list of tensors as one tensor, each list a new axis in front (Theano's)."""
    return stack([stacklists(one) for one in arg]) if isinstance(arg, (list, tuple)) else as_node(arg)


def block(arrays: Any) -> Node:
    """A nested list of blocks: the innermost lists are joined along the last axis, those around them along the one
    before, and so on. Raises GraphTypeError for lists of unequal depth.
    """

    def depth(part: Any) -> int:
        if not isinstance(part, list):
            return 0
        depths = {depth(one) for one in part}
        if len(depths) != 1:
            raise GraphValueError("block: the lists are empty or of unequal depth")
        return 1 + depths.pop()

    def leaves(part: Any) -> list[Node]:
        return [leaf for one in part for leaf in leaves(one)] if isinstance(part, list) else [as_node(part)]

    levels = depth(arrays)
    rank = max(levels, *(leaf.ndim for leaf in leaves(arrays)))

    def joined(part: Any, level: int) -> Node:
        if not isinstance(part, list):
            return shaping.atleast_nd(part, rank)
        return concatenate([joined(one, level - 1) for one in part], rank - level)

    return joined(arrays, levels)


# --- apart ----------------------------------------------------------------------------------------------------------


def _split_along(name: str, x: Any, sections: Any, axis: int, rank: int) -> list[Node]:
    node = as_node(x)
    if node.ndim < rank:
        raise ShapeError(f"{name} of {describe(node)} of type {node.type}: it has less than {rank} axes")
    return split(node, sections, axis=axis)


def hsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the second axis, of vectors along their only one."""
    return _split_along("hsplit", x, indices_or_sections, 1 if as_node(x).ndim > 1 else 0, 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the first axis."""
    return _split_along("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the third axis."""
    return _split_along("dsplit", x, indices_or_sections, 2, 3)


def unstack(x: Any, axis: int = 0) -> tuple[Node, ...]:
    """The slices of `x` along `axis`, whose size is known."""
    node = as_node(x)
    place = shaping.normalise_axis(axis, node.ndim, shaping.label_operand("unstack", node))
    count = asked_size(node.type.shape[place])
    if not isinstance(count, int):
        raise GraphTypeError(f"unstack of {describe(node)} of type {node.type}: the size of axis {place} is not known")
    return tuple(getitem(node, (*(slice(None),) * place, position)) for position in range(count))


# --- elements put in and taken out ----------------------------------------------------------------------------------


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Node:
    """`values` put in before the positions `obj` along `axis` (of the flattened `x` where that is None).

    `obj` is a whole number, a scalar, a slice of numbers, or constant integers; several values broadcast to the
    positions. Raises GraphTypeError for positions that are not known, IndexOutOfBounds for those known to be outside.
    """
    node = as_node(x) if axis is not None else shaping.flatten(x)
    what = f"insert into {describe(node)} of type {node.type}"
    place = shaping.normalise_axis(axis or 0, node.ndim, what)
    value, length = as_node(values, node.type.dtype), node.type.shape[place]
    rest = [size for k, size in enumerate(node.type.shape) if k != place]
    if isinstance(obj, (int, np.integer, Node)) and as_node(obj).ndim == 0:
        if value.ndim == node.ndim:  # as NumPy: its first axis is the one that is put in
            value = ops.dimshuffle(value, [*range(1, place + 1), 0, *range(place + 1, node.ndim)])
            parts = ops.broadcast_to(value, _with_size(node, place, value.type.shape[place]))
        else:
            parts = ops.expand(_broadcast(value, rest), (place,))
        head, tail = slice_along(node, place, None, obj), slice_along(node, place, obj, None)
        _check_place(obj, length, what)
        return ops.concatenate([head, parts, tail], place)
    positions = _known_positions(obj, length, what)
    if not len(positions):
        return node
    wide = _broadcast(value, _with_size(node, place, len(positions)))
    order = np.argsort(positions, kind="stable")
    bounds = [None, *(int(positions[k]) for k in order), None]
    pieces: list[Node] = []
    for number, (low, high) in enumerate(pairwise(bounds)):
        pieces.append(slice_along(node, place, low, high))
        if number < len(order):
            one = int(order[number])
            pieces.append(slice_along(wide, place, one, one + 1))
    return ops.concatenate(pieces, place)


def _check_place(position: Any, length: Size, what: str) -> None:
    value = constant_value(position) if isinstance(position, Node) else position
    if value is not None and isinstance(length, int) and not -length <= int(value) <= length:
        raise IndexOutOfBounds(f"{what}: position {int(value)} is out of bounds for size {length}")


def _known_positions(obj: Any, length: Size, what: str) -> np.ndarray[Any, Any]:
    """Constant positions counted from the start of an axis."""
    if isinstance(obj, slice):
        length = asked_size(length)
        if not isinstance(length, int):
            raise GraphTypeError(f"{what}: a slice needs an axis of known size")
        return np.arange(*obj.indices(length))
    value = constant_value(as_node(obj))
    if value is None:
        raise GraphTypeError(f"{what}: several positions must be constants, not {describe(obj)}")
    positions = np.flatnonzero(value) if value.dtype == bool else value.reshape(-1).astype("int64")
    if (positions < 0).any():
        length = asked_size(length)
        if not isinstance(length, int):
            raise GraphTypeError(f"{what}: negative positions need an axis of known size")
        positions = np.where(positions < 0, positions + length, positions)
    for position in positions:
        _check_place(int(position), length, what)
    return positions


def _broadcast(value: Node, shape: Sequence[Size]) -> Node:
    return ops.broadcast_to(ops.expand(value, range(len(shape) - value.ndim)), shape)


def delete(x: Any, obj: Any, axis: int | None = None) -> Node:
    """`x` without the slices along `axis` (elements of the flattened `x` where that is None) at positions `obj`.

    `obj` is what may index a vector: an integer, a slice, integers, a mask; it may be symbolic.
    """
    node = as_node(x) if axis is not None else shaping.flatten(x)
    place = shaping.normalise_axis(axis or 0, node.ndim, shaping.label_operand("delete", node))
    length = node.type.shape[place]
    if isinstance(obj, list) and not obj:
        return node
    known = constant_value(as_node(obj)) if not isinstance(obj, slice) else None
    if isinstance(length, int) and (known is not None or isinstance(obj, slice)):
        return take(node, np.delete(np.arange(length), obj if known is None else known), place)
    if not isinstance(obj, slice) and as_node(obj).ndim == 0:
        negative = elementwise("less", as_node(obj), 0)
        start = elementwise("where", negative, elementwise("add", as_node(obj), as_size_node(length)), as_node(obj))
        start = getitem(ops.iota(length), start)  # which is held to be within the axis
        after = elementwise("add", start, 1)
        return ops.concatenate([slice_along(node, place, None, start), slice_along(node, place, after, None)], place)
    keep = set_subtensor(getitem(ones((as_size_node(length),), "bool"), obj), False)
    return getitem(node, (*(slice(None),) * place, keep))


def resize(x: Any, new_shape: Any) -> Node:
    """The elements of `x` in C order, repeated as often as an array of `new_shape` needs; zeros where `x` has none."""
    node = shaping.flatten(x)
    shape = shaping.as_shape(new_shape, "resize")
    length = node.type.shape[0]
    position = elementwise("mod", ops.iota(sizes.product(shape)), as_size_node(sizes.maximum(length, 1)))
    if sizes.equal(length, 0):
        return ops.zeros(node.type.dtype, shape)
    if not isinstance(length, int):  # perhaps there is nothing to take
        node = ops.concatenate([node, ops.zeros(node.type.dtype, (1,))], 0)
    return ops.reshape(take(node, position), shape)


def trim_zeros(x: Any, trim: str = "fb") -> Node:
    """A vector without the zeros at its front ("f") and back ("b")."""
    node = as_node(x)
    if node.ndim != 1 or not trim or set(trim.lower()) - {"f", "b"}:
        raise GraphValueError(f"trim_zeros of {describe(node)} of type {node.type}: trim={trim!r} of a vector")
    filled, length = cast(node, "bool"), as_size_node(node.type.shape[0])
    anything = reduce.reduce_any(filled, (0,))
    # Sums in place of argmax, which has no value for an empty vector.
    before = elementwise("equal", running_sum(cast(filled, "int64"), 0), 0)
    after = elementwise("equal", running_sum(cast(flip(filled), "int64"), 0), 0)
    front = elementwise("where", anything, reduce.reduce_sum(cast(before, "int64"), (0,)), length)
    back = elementwise("where", anything, reduce.reduce_sum(cast(after, "int64"), (0,)), 0)
    start = front if "f" in trim.lower() else None
    if "b" not in trim.lower():
        return getitem(node, slice(start, None))
    stop = elementwise("sub", length, back)
    if start is None:
        stop = elementwise("where", anything, stop, 0)
    return getitem(node, slice(start, stop))


# --- turned ---------------------------------------------------------------------------------------------------------


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Node:
    """`m` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second."""
    node = as_node(m)
    first, second = shaping.normalise_axes(tuple(axes), node.ndim, shaping.label_operand("rot90", node))
    order = list(range(node.ndim))
    order[first], order[second] = second, first
    match k % 4:
        case 0:
            return node
        case 1:
            return ops.dimshuffle(flip(node, second), order)
        case 2:
            return flip(node, (first, second))
        case _:
            return flip(ops.dimshuffle(node, order), second)


def rollaxis(x: Any, axis: int, start: int = 0) -> Node:
    """Axis `axis` moved back until it lies before the axis that was at `start`."""
    node, what = shaping.operand("rollaxis", x)
    origin = shaping.normalise_axis(axis, node.ndim, what)
    goal = start if start == node.ndim else shaping.normalise_axis(start, node.ndim + (start >= 0), what)
    order = [k for k in range(node.ndim) if k != origin]
    order.insert(goal - (origin < goal), origin)
    return ops.dimshuffle(node, order)


def permute_dims(x: Any, axes: Any = None) -> Node:
    """The axes of `x` reversed, or in the order of `axes`."""
    return shaping.transpose(x) if axes is None else shaping.transpose(x, tuple(axes))


def matrix_transpose(x: Any) -> Node:
    """The last two axes exchanged."""
    node = as_node(x)
    if node.ndim < 2:
        raise ShapeError(f"matrix_transpose of {describe(node)} of type {node.type}: it has less than two axes")
    return ops.transpose(node)


# --- padding ----------------------------------------------------------------------------------------------------------
# `pad` in all of NumPy's modes.
#
# In: a tensor, widths before and after each axis, which may be nodes. Out: the tensor within its border. The axes are
# padded one after the other, so that corners follow from borders. Where the border repeats elements, its positions are
# folded back into the axis by arithmetic: one gather, however wide the border.


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
    node, what = shaping.operand("pad", x)
    widths = [
        tuple(shaping.as_size(one, f"{what}: a width") for one in pair) for pair in _pairs(pad_width, node.ndim, what)
    ]
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
        whole = full(tuple(shape), cast(as_node(border), node.type.dtype))
        return index.set_subtensor(whole, node, [before for before, _ in widths], (1,) * node.ndim)
    for axis, (before, after) in enumerate(widths):
        if sizes.equal(before, 0) and sizes.equal(after, 0):
            continue
        match mode:
            case "constant":
                sides = [full(_with_size(node, axis, width), cast(as_node(value), node.type.dtype))
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
    """The filling that all sides share; None where they differ or there are none."""
    found = [one for pair in values for one in pair]
    return found[0] if found and all(one is found[0] for one in found) else None


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


def _with_size(x: Node, axis: int, size: Size) -> tuple[Size, ...]:
    """The shape of `x`, of another size along an axis."""
    return (*x.type.shape[:axis], size, *x.type.shape[axis + 1 :])


def _edges(x: Node, axis: int) -> tuple[Node, Node]:
    """The first and the last slice, of size 1 along the axis; an error at run time where there is none."""
    length, whole = x.type.shape[axis], list(x.type.shape)
    found = []
    for start in (0, sizes.add(length, -1)):
        starts: list[Size] = [0] * x.ndim
        starts[axis], whole[axis] = start, 1
        found.append(index.subtensor(x, starts, whole, (1,) * x.ndim))
    return found[0], found[1]


def _ramps(x: Node, axis: int, widths: tuple[Size, ...], ends: tuple[Any, Any]) -> list[Node]:
    """The borders that go from `ends` to the edges in equal steps."""
    sides = []
    inside = x.type.dtype if is_inexact(x.type.dtype) else "float64"
    for edge, width, end, reverse in zip(_edges(x, axis), widths, ends, (False, True), strict=True):
        first, last = cast(as_node(end), inside), cast(edge, inside)
        count = cast(ops.iota(width), inside)
        if reverse:
            count = el.sub(cast(as_size_node(sizes.add(width, -1)), inside), count)
        step = el.true_div(el.sub(last, first), cast(as_size_node(sizes.maximum(width, 1)), inside))
        ramp = el.add(el.mul(shaping.as_axis(count, axis, x.ndim), step), first)
        if x.type.dtype in INTEGERS:
            ramp = el.floor(ramp)
        sides.append(
            ops.broadcast_to(broadcast_node(cast(ramp, x.type.dtype), ramp.type.shape), _with_size(x, axis, width))
        )
    return sides


def _statistics(x: Node, axis: int, widths: tuple[Size, ...], lengths: tuple[Any, Any], mode: str) -> list[Node]:
    """The borders that hold a statistic of the elements beside them."""
    statistics: dict[str, Callable[..., Node]] = {
        "maximum": max_of, "minimum": min_of, "mean": mean_of, "median": FUNCTIONS["later"]("median"),
    }  # fmt: skip
    sides = []
    for width, length, at_end in zip(widths, lengths, (False, True), strict=True):
        part = x
        if length is not None:
            held = sizes.minimum(shaping.as_size(length, "pad: a stat_length"), x.type.shape[axis])
            count = held if isinstance(held, int) else as_size_node(held)
            start = sizes.subtract(x.type.shape[axis], held)
            part = slice_along(x, axis, start if at_end else None, None if at_end else count)
        value = statistics[mode](part, axis, keepdims=True)
        if value.type.dtype != x.type.dtype:
            value = cast(el.rint(value) if x.type.dtype in INTEGERS else value, x.type.dtype)
        sides.append(ops.broadcast_to(value, _with_size(x, axis, width)))
    return sides


def _repeated(x: Node, axis: int, before: Size, after: Size, mode: str, what: str) -> Node:
    """An axis continued beyond its ends by its own elements."""
    length = x.type.shape[axis]
    x = with_elements(x, axis, 1, f"{what}: axis {axis} has no elements to repeat")
    total = sizes.add(sizes.add(before, length), after)
    place = el.sub(ops.iota(total), as_size_node(before))
    size = as_size_node(length)
    last = el.sub(size, 1)
    match mode.split(maxsplit=1)[0]:
        case "edge":
            return take(x, el.clip(place, 0, last), axis)
        case "wrap":
            return take(x, el.mod(place, size), axis)
        case "reflect":
            period = elementwise("maximum", last, 1)
        case _:
            period = size
    # The axis is continued in laps of one period, every other one backwards.
    lap, rest = el.floor_div(place, period), el.mod(place, period)
    is_back = el.equal(el.mod(lap, 2), 1)
    forward = elementwise("minimum", rest, last)
    folded = el.where(is_back, el.sub(last, rest), forward)
    repeated = take(x, elementwise("maximum", folded, 0), axis)
    if not mode.endswith("odd"):
        return repeated
    first, final = _edges(x, axis)
    climb = el.mul(shaping.as_axis(cast(el.sub(lap, el.mod(lap, 2)), x.type.dtype), axis, x.ndim), el.sub(final, first))
    turned = el.sub(el.mul(final, 2), repeated)
    return el.add(el.where(shaping.as_axis(is_back, axis, x.ndim), turned, repeated), climb)
