"""Indexing: x[...] in all of NumPy's forms, and the update of what it selects.

In: a tensor and a key of integers, slices, None, Ellipsis, integer arrays and constant boolean masks; every bound may
be a node. Out: nodes of the subtensor and gather families. A key becomes a chain of stages, each a primitive op:

    Stage := Region(starts, sizes, steps) | Points(indices, axis) | Order(axes)

`set_subtensor(x[key], y)` runs the chain backwards: y takes the place of what the chain reads. The chain of the last
`x[key]` that made a node is remembered beside the node, as an equal node has only one identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from graphc.dtypes import INTEGERS, can_cast_safely
from graphc.errors import GraphTypeError, IndexOutOfBounds, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, OPS, Node, Size, constant_value, describe, describe_size, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops import index as ops
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise
from graphc.startup.record import record
from graphc.tensor.shaping import (
    as_size,
    flatten,
    normalise_axes,
    normalise_axis,
    specify_shape,
    vector_items,
    vector_of,
)
from graphc.values import refuse_masked

__all__ = [
    "diagonal", "flip", "fliplr", "flipud", "getitem", "inc_subtensor", "nonzero", "set_subtensor", "take",
]  # fmt: skip

# --- stages ---------------------------------------------------------------------------------------------------------


@record()
class Region:
    """Every axis cut to start + step*i for i below its size."""

    starts: tuple[Size, ...]
    sizes: tuple[Size, ...]
    steps: tuple[int, ...]


@record()
class Points:
    """Integer arrays of one shape in place of the axes from `axis` on."""

    indices: tuple[Node, ...]
    axis: int


@record()
class Order:
    """Axes in another order, with new axes "x", without axes of size 1."""

    axes: tuple[int | str, ...]


Stage: TypeAlias = Region | Points | Order


@record()
class Selection:
    """What a key selects of `base`."""

    base: Node
    stages: tuple[Stage, ...]


_selections: WeakKeyDictionary[Node, Selection] = WeakKeyDictionary()


def _apply(stage: Stage, x: Node) -> Node:
    match stage:
        case Region(starts, shape, steps):
            return ops.subtensor(x, starts, shape, steps)
        case Points(indices, axis):
            return ops.gather(x, indices, axis)
        case Order(axes):
            return layout.dimshuffle(x, axes)


def select(base: Node, stages: Sequence[Stage]) -> Node:
    """The result of the stages, remembered as a part of `base` that can be updated."""
    node = base
    for stage in stages:
        node = _apply(stage, node)
    if node is base:
        # The node of x[:] must not be x, or an update of x[:] could not be told from one of what x was selected from.
        whole = map(as_size_node, (*(0 for _ in node.type.shape), *node.type.shape))
        node = make(OPS["subtensor"], (base, *whole), {"steps": (1,) * base.ndim})
    _selections[node] = Selection(base, tuple(stages))
    return node


# --- keys -----------------------------------------------------------------------------------------------------------


@record()
class _Cut:
    """A slice, normalised: `step` is a node where its value is not known."""

    start: Size
    size: Size
    step: Size


_Item: TypeAlias = "_Cut | Node | int | None"
"""A part of a key: a slice, an integer array or a symbolic integer, a static integer, or a new axis."""


def getitem(x: Any, key: Any) -> Node:
    """`x[key]`: NumPy's rules for integers, slices, None, Ellipsis, integer arrays and constant boolean masks.

    Raises GraphTypeError for a key that cannot be (symbolic masks among them: their count is known only at run time)
    and IndexOutOfBounds, at build where it is known, for an index outside its axis.
    """
    node = as_node(x)
    direct = _known_item(node, key)
    if direct is not None:
        return direct
    node, items = _items(node, key)
    stages = _plan(node, items)
    value = _constant_item(node, key)
    if value is None:
        return select(node, stages)
    _selections[value] = Selection(node, tuple(stages))
    return value


def _known_item(x: Node, key: Any) -> Node | None:
    """An element or a slice of a vector put together from scalars, such as `x.shape`, without reading the vector."""
    if x.op.name != "concatenate" and not (x.op.name == "dimshuffle" and x.args[0].ndim == 0):
        return None
    items = vector_items(x)
    if items is None or x.dtype != "int64":
        return None
    if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)) and -len(items) <= key < len(items):
        return as_size_node(items[int(key)])
    if isinstance(key, slice) and _is_static(key):
        return vector_of(items[key])
    return None


def _constant_item(x: Node, key: Any) -> Node | None:
    """An element or a slice of a constant vector of integers, which may be a shape."""
    value = constant_value(x)
    if value is None or x.ndim != 1 or x.dtype != "int64" or not isinstance(key, (int, np.integer, slice)):
        return None
    return literal(value[key]) if not isinstance(key, slice) or _is_static(key) else None


def _is_static(key: slice) -> bool:
    return all(bound is None or isinstance(bound, (int, np.integer)) for bound in (key.start, key.stop, key.step))


def _items(x: Node, key: Any) -> tuple[Node, list[_Item]]:
    """A key as one item for each axis, and None for each new one; `x` with its sizes checked against masks."""
    what = f"index of {describe(x)} of type {x.type}"
    parts = list(key) if isinstance(key, tuple) else [key]
    masks = [_mask(part, what) for part in parts]
    if sum(part is Ellipsis for part in parts) > 1:
        raise GraphTypeError(f"{what}: more than one Ellipsis")
    taken = sum(
        mask.ndim if mask is not None else 0 if part is None or part is Ellipsis else 1
        for part, mask in zip(parts, masks, strict=True)
    )
    if taken > x.ndim:
        raise IndexOutOfBounds(f"{what}: {taken} indices for {x.ndim} axes")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
        masks.append(None)
    items: list[_Item] = []
    axis = 0
    for part, mask in zip(parts, masks, strict=True):
        if part is None:
            items.append(None)
        elif part is Ellipsis:
            rest = x.ndim - taken
            items += [_cut(slice(None), x.type.shape[axis + k], what) for k in range(rest)]
            axis += rest
        elif mask is not None:
            known = [mask.shape[k - axis] if axis <= k < axis + mask.ndim else None for k in range(x.ndim)]
            x = specify_shape(x, known)
            items += [as_node(positions) for positions in np.nonzero(mask)]
            axis += mask.ndim
        else:
            items.append(_cut(part, x.type.shape[axis], what) if isinstance(part, slice) else _index(part, what))
            axis += 1
    return x, items


def _mask(part: Any, what: str) -> Any:
    """A constant boolean array of at least one axis, or None for another part of a key."""
    value = constant_value(part) if isinstance(part, Node) else None
    if isinstance(part, Node) and part.dtype == "bool" and value is None:
        raise GraphTypeError(
            f"{what}: the mask {describe(part)} is symbolic, and the number of elements known only at run time; "
            "use where(mask, x, 0), or a constant mask"
        )
    if isinstance(part, (bool, np.bool_)):
        raise GraphTypeError(f"{what}: {part!r} is no index")
    if value is None and isinstance(part, (list, np.ndarray)) and not _holds_node(part):
        refuse_masked(part, what)
        value = np.asarray(part)
    return value if value is not None and value.dtype == bool else None


def _holds_node(part: Any) -> bool:
    return isinstance(part, Node) or (isinstance(part, list) and any(map(_holds_node, part)))


def _index(part: Any, what: str) -> Node | int:
    """An integer or an integer array."""
    if isinstance(part, (int, np.integer)):
        return int(part)
    if isinstance(part, (float, str)) or part is None:
        raise GraphTypeError(f"{what}: {part!r} is no index")
    empty = not isinstance(part, Node) and np.size(part) == 0 and not isinstance(part, np.ndarray)
    node = as_node(np.zeros(np.shape(part), "int64") if empty else part)
    if node.dtype not in INTEGERS:
        raise GraphTypeError(f"{what}: {describe(node)} is of dtype {node.dtype}, not an integer")
    value = constant_value(node)
    if value is not None and value.ndim == 0:
        return int(value)
    return _within_int64(node) if node.dtype == "uint64" else node


def _within_int64(index: Node) -> Node:
    """An index of uint64 as int64: what that cannot hold is out of the bounds of any array, and must not wrap."""
    most = np.uint64(np.iinfo(np.int64).max)
    held = cast(elementwise("minimum", index, as_node(most)), "int64")
    held.name = held.name or index.name
    return held


# --- slices ---------------------------------------------------------------------------------------------------------


def _where(condition: Node, chosen: Size, other: Size) -> Size:
    return sizes.as_size(elementwise("where", condition, as_size_node(chosen), as_size_node(other)))


def _is_negative(value: Size) -> bool | None:
    """Whether a bound counts from the end; None where that is known only at run time."""
    if isinstance(value, int):
        return value < 0
    return False if sizes.known_nonnegative(value) else None


def _from_end(value: Size, length: Size) -> Size:
    """A bound counted from 0: negative ones count from the end. No clamping."""
    match _is_negative(value):
        case False:
            return value
        case True:
            return sizes.add(length, value)
        case _:
            negative = elementwise("less", as_size_node(value), 0)
            return _where(negative, sizes.add(length, value), value)


def _at_least(value: Size, low: int) -> Size:
    if low <= 0 and sizes.known_nonnegative(value):
        return value
    return sizes.maximum(value, low)


def _cut(part: slice, length: Size, what: str) -> _Cut:
    """The start, size and step of a slice of an axis of size `length`."""
    start, stop = (None if bound is None else as_size(bound, f"{what}: a bound") for bound in (part.start, part.stop))
    step = 1 if part.step is None else as_size(part.step, f"{what}: a step")
    if isinstance(step, int):
        if step == 0:
            raise ShapeError(f"{what}: a slice's step cannot be 0")
        if _is_backwards(start, stop, step):
            return _Cut(0, 0, step)
        first, extent = (_upward if step > 0 else _downward)(start, stop, length)
        return _Cut(first, _count(extent, abs(step)), step)
    positive = elementwise("greater", step, 0)
    up, down = _upward(start, stop, length), _downward(start, stop, length)
    sizes_up = _count(up[1], sizes.maximum(step, 1))
    sizes_down = _count(down[1], sizes.maximum(sizes.subtract(0, step), 1))
    # A step of 0 gives the size -1, which the guard of the result's size refuses.
    downward = _where(elementwise("equal", step, 0), -1, sizes_down)
    return _Cut(_where(positive, up[0], down[0]), _where(positive, sizes_up, downward), step)


def _is_backwards(start: Size | None, stop: Size | None, step: int) -> bool:
    """Whether bounds counted from the same end say that a slice is empty, whatever the length."""
    if not (isinstance(start, int) and isinstance(stop, int)) or (start < 0) != (stop < 0):
        return False
    return stop <= start if step > 0 else start <= stop


def _upward(start: Size | None, stop: Size | None, length: Size) -> tuple[Size, Size]:
    """First element and extent (stop - start, perhaps negative) of a slice with a positive step.

    The start is not cut to the length: where it is beyond, the slice is empty.
    """
    low: Size = 0 if start is None else _at_least(_from_end(start, length), 0)
    if stop is None:
        if isinstance(start, int) and start < 0:
            return low, sizes.minimum(length, -start)
        return low, sizes.subtract(length, low)
    if _is_negative(stop) is False:
        return low, sizes.subtract(sizes.minimum(length, stop), low)
    high = _from_end(stop, length)
    if _is_negative(stop) is None:
        high = sizes.minimum(length, _at_least(high, 0))
    # max(high, 0) - low is below 0 where high is, so high need not be cut
    return low, sizes.subtract(high, low)


def _downward(start: Size | None, stop: Size | None, length: Size) -> tuple[Size, Size]:
    """First element and extent (start - stop, perhaps negative) of a slice with a negative step."""
    last = sizes.add(length, -1)
    high = last if start is None else _from_end(start, length)
    if start is not None and _is_negative(start) is not True:
        high = sizes.minimum(last, high)
    low: Size = -1 if stop is None else _from_end(stop, length)
    if stop is not None and _is_negative(stop) is not False:
        low = sizes.maximum(low, -1)
    return high, sizes.subtract(high, low)


def _count(extent: Size, step: Size) -> Size:
    """How many steps fit into an extent: its quotient rounded up, 0 where it is negative."""
    extent = _at_least(extent, 0)
    return sizes.floor_divide(sizes.add(extent, sizes.subtract(step, 1)), step)


# --- the plan -------------------------------------------------------------------------------------------------------


def _plan(x: Node, items: list[_Item]) -> list[Stage]:
    """The stages of a key."""
    arrays = any(isinstance(item, Node) and item.ndim for item in items)
    cuts, order = _basic(x, items, arrays)
    stages: list[Stage] = [cuts]
    stages += [
        Points((_steps(item),), axis)
        for axis, item in enumerate(item for item in items if item is not None)
        if isinstance(item, _Cut) and isinstance(item.step, Node)
    ]
    stages += _advanced(x, items) if arrays else [Order(order)]
    return stages


def _steps(cut: _Cut) -> Node:
    """The positions of a slice whose step is not known."""
    return elementwise("add", elementwise("mul", layout.iota(cut.size), cut.step), as_size_node(cut.start))


def _basic(x: Node, items: list[_Item], arrays: bool) -> tuple[Region, tuple[int | str, ...]]:
    """The region of slices and integers, and the order that drops the integers' axes and puts in the new ones.

    Beside arrays, integers are arrays themselves (NumPy's rule), and their axes stay whole here.
    """
    starts: list[Size] = []
    extents: list[Size] = []
    steps: list[int] = []
    order: list[int | str] = []
    for item in items:
        if item is None:
            order.append("x")
            continue
        axis = len(starts)
        start, extent, step = 0, x.type.shape[axis], 1
        if isinstance(item, _Cut):
            order.append(axis)
            if isinstance(item.step, int):
                start, extent, step = item.start, item.size, item.step  # type: ignore[assignment]
        elif not arrays:
            start, extent = _position(x, axis, item), 1  # type: ignore[assignment]
        starts.append(start)
        extents.append(extent)
        steps.append(step)
    return Region(tuple(starts), tuple(extents), tuple(steps)), tuple(order)


def _position(x: Node, axis: int, item: Node | int) -> Size:
    """An integer index counted from 0."""
    length = x.type.shape[axis]
    if isinstance(item, int) and isinstance(length, int) and not -length <= item < length:
        raise IndexOutOfBounds(f"index {item} is out of bounds for axis {axis} of {describe(x)}, of size {length}")
    return _from_end(as_size(item), length)


def _advanced(x: Node, items: list[_Item]) -> list[Stage]:
    """The stages that follow the slices where a key has integer arrays.

    The arrays' axes take the place of the indexed axes where these stand side by side in the key, else they come first.
    """
    places = [place for place, item in enumerate(items) if isinstance(item, (Node, int))]
    axis_of = {place: sum(item is not None for item in items[:place]) for place in places}
    indices = [_in_bounds(x, axis_of[place], items[place]) for place in places]
    shape = broadcast_sizes(f"index of {describe(x)}", indices)
    spread = tuple(layout.broadcast_to(broadcast_node(index, shape), shape) for index in indices)
    axes = [axis_of[place] for place in places]
    adjacent = all(b == a + 1 for a, b in pairwise(places))
    stages: list[Stage] = []
    first = axes[0]
    if not adjacent:
        stages.append(Order((*axes, *(axis for axis in range(x.ndim) if axis not in axes))))
        first = 0
    stages.append(Points(spread, first))
    stages.append(Order(_final_order(items, places, first, len(shape), adjacent)))
    return stages


def _in_bounds(x: Node, axis: int, item: Any) -> Node:
    """An index array, checked where its values and the axis are known."""
    node = as_node(item)
    value, length = constant_value(node), x.type.shape[axis]
    if value is not None and isinstance(length, int) and value.size:
        for bound in (int(value.min()), int(value.max())):
            if not -length <= bound < length:
                raise IndexOutOfBounds(
                    f"index {bound} is out of bounds for axis {axis} of {describe(x)}, of size {length}"
                )
    return node


def _final_order(items: list[_Item], places: list[int], first: int, rank: int, adjacent: bool) -> tuple[int | str, ...]:
    """The gathered axes in the key's order, with its new axes; gathered are `rank` axes from `first` on."""
    block = list(range(first, first + rank))
    order: list[int | str] = [] if adjacent else list(block)
    others = iter([axis for axis in range(rank + len(items)) if axis not in block])
    for place, item in enumerate(items):
        if item is None:
            order.append("x")
        elif isinstance(item, _Cut):
            order.append(next(others))
        elif adjacent and place == places[0]:
            order += block
    return tuple(order)


# --- updates --------------------------------------------------------------------------------------------------------


def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Node:
    """The array of which `x` is a part, with that part replaced by `y`: `set_subtensor(a[1:3], y)`.

    `x` is written as an indexing of the array; `y` broadcasts to it and must not have a wider dtype. Where indices
    repeat, the last one wins. The `inplace` arguments are Theano's and mean nothing: graphc decides that itself. Raises
    GraphTypeError where `x` is no indexing, ShapeError where `y` does not fit.
    """
    return _update("set_subtensor", x, y)


def inc_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False, set_instead_of_inc: bool = False
) -> Node:
    """The array of which `x` is a part, with `y` added to that part; where indices repeat, all are added.

    As `set_subtensor` otherwise.
    """
    return _update("set_subtensor" if set_instead_of_inc else "inc_subtensor", x, y)


def _update(name: str, x: Any, y: Any) -> Node:
    selection = _selections.get(x) if isinstance(x, Node) else None
    if selection is None:
        shown = f"{describe(x)} of type {x.type}" if isinstance(x, Node) else repr(x)
        raise GraphTypeError(f"{name}: the first argument must be an indexing such as a[1:3], not {shown}")
    value = _fitted(name, x, y)
    values = [selection.base]
    for stage in selection.stages:
        values.append(_apply(stage, values[-1]))
    increments = name == "inc_subtensor"
    for stage, before in zip(selection.stages[::-1], values[-2::-1], strict=True):
        if isinstance(stage, Order):
            value = layout.dimshuffle(
                value, [stage.axes.index(k) if k in stage.axes else "x" for k in range(before.ndim)]
            )
            continue
        if _apply(stage, before) is before:
            continue
        value = _write(stage, before, value, increments)
        increments = False
    return elementwise("add", selection.base, value) if increments else value


def _write(stage: Region | Points, whole: Node, value: Node, increments: bool) -> Node:
    """`whole` with what the stage reads replaced by, or increased by, `value`."""
    match stage, increments:
        case Region(starts, _, steps), True:
            return ops.inc_subtensor(whole, value, starts, steps)
        case Region(starts, _, steps), False:
            return ops.set_subtensor(whole, value, starts, steps)
        case Points(indices, axis), True:
            return ops.inc_gather(whole, value, indices, axis)
        case Points(indices, axis), _:
            return ops.set_gather(whole, value, indices, axis)
    raise AssertionError(stage)


def _fitted(name: str, x: Node, y: Any) -> Node:
    """`y` in the dtype and shape of the part it goes to."""
    weak = isinstance(y, (bool, int, float, list, tuple)) and not _holds_node(y)
    value = as_node(y, x.dtype) if weak and _keeps_kind(y, x.dtype) else as_node(y)
    what = f"{name}: {describe(value)} of type {value.type} into {describe(x)} of type {x.type}"
    if not can_cast_safely(value.dtype, x.dtype) and not (value.dtype[0] == x.dtype[0] == "f"):
        raise GraphTypeError(f"{what}: {value.dtype} does not fit into {x.dtype}; cast it")
    if value.ndim > x.ndim:
        raise ShapeError(f"{what}: it has more axes")
    for axis in range(1, value.ndim + 1):
        old, new = value.type.shape[-axis], x.type.shape[-axis]
        if isinstance(old, int) and isinstance(new, int) and old not in (1, new):
            sizes_text = f"{describe_size(old)} and {describe_size(new)}"
            raise ShapeError(f"{what}: sizes {sizes_text} along axis {x.ndim - axis} differ")
    raised = layout.expand(cast(value, x.dtype), range(x.ndim - value.ndim))
    return layout.broadcast_to(raised, x.type.shape)


def _keeps_kind(y: Any, dtype: str) -> bool:
    """Whether Python numbers can become `dtype` without a change of kind."""
    kind = np.asarray(y).dtype.kind
    return kind == "b" or dtype.startswith("float") or (kind in "iu" and dtype in INTEGERS)


# --- composed of it -------------------------------------------------------------------------------------------------


def take(x: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Node:
    """The elements of `x` at integer `indices` along `axis`, or of all its elements where that is None.

    mode: "raise" (negative ones count from the end), "wrap" or "clip" to the axis. From an axis of size 0 nothing can
    be taken in any mode, and each index is checked, as in x[:, i], even where the result has no elements (`np.take`
    looks at none of them where an axis before is empty).
    """
    node = as_node(x) if axis is not None else flatten(x)
    what = f"take of {describe(node)} of type {node.type}"
    if mode not in ("raise", "wrap", "clip"):
        raise GraphTypeError(f"{what}: mode {mode!r} is not one of raise, wrap, clip")
    place = normalise_axis(axis or 0, node.ndim, what)
    index = as_node(indices)
    if index.dtype not in INTEGERS:
        raise GraphTypeError(f"{what}: the indices {describe(index)} are of dtype {index.dtype}, not integers")
    length = as_size_node(node.type.shape[place])
    if mode == "wrap":
        index = elementwise("mod", cast(index, "int64"), length)
    elif mode == "clip":
        index = elementwise("clip", cast(index, "int64"), 0, elementwise("sub", length, 1))
    return getitem(node, (*(slice(None) for _ in range(place)), index))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """The elements x[i, i + offset] of two axes, as the last axis of the result."""
    node = as_node(x)
    what = f"diagonal of {describe(node)} of type {node.type}"
    rows, columns = normalise_axes((axis1, axis2), node.ndim, what)
    others = [axis for axis in range(node.ndim) if axis not in (rows, columns)]
    down, right = max(-offset, 0), max(offset, 0)
    height = sizes.add(node.type.shape[rows], -down)
    width = sizes.add(node.type.shape[columns], -right)
    count = layout.iota(_at_least(sizes.minimum(height, width), 0))
    indices = tuple(elementwise("add", count, shift) if shift else count for shift in (down, right))
    return select(node, [Order((*others, rows, columns)), Points(indices, len(others))])


def nonzero(x: Any) -> tuple[Node, ...]:
    """The positions of the elements of a constant that are not 0, one vector for each axis.

    Raises GraphTypeError for a symbolic array: how many there are is known only at run time.
    """
    node = as_node(x)
    value = constant_value(node)
    if value is None:
        raise GraphTypeError(
            f"nonzero of {describe(node)}: the number of elements would be known only at run time; use where()"
        )
    return tuple(as_node(positions) for positions in np.nonzero(value))


def flip(x: Any, axis: Any = None) -> Node:
    """The order of the elements reversed along `axis`, by default along all axes."""
    node = as_node(x)
    axes = normalise_axes(axis, node.ndim, f"flip of {describe(node)} of type {node.type}")
    key = tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(node.ndim))
    return getitem(node, key) if axes else node


def fliplr(x: Any) -> Node:
    """The second axis reversed."""
    return flip(x, 1)


def flipud(x: Any) -> Node:
    """The first axis reversed."""
    return flip(x, 0)


FUNCTIONS.update(
    diagonal=diagonal, getitem=getitem, inc_subtensor=inc_subtensor, nonzero=nonzero, set_subtensor=set_subtensor,
    take=take,
)  # fmt: skip
