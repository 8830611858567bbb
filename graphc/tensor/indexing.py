"""Indexing: x[...] in all of NumPy's forms, and the update of what it selects.

In: a tensor and a key, which keys.py reads. Out: nodes of the subtensor and gather families. A key becomes a chain of
stages, each a primitive op or, for a mask, few:

    Stage := Region(starts, sizes, steps) | Points(indices, axis) | Masked(mask, axis) | Order(axes)

`set_subtensor(x[key], y)` runs the chain backwards: y takes the place of what the chain reads. The chain of the last
`x[key]` that made a node is remembered beside the node, as an equal node has only one identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from graphc.arrays.dtypes import INTEGERS
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, OPS, Node, Size, constant_value, describe, describe_size, lazy_text, make
from graphc.ir.walk import as_size_node
from graphc.ops import index as ops, shape as layout
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise, narrowed
from graphc.ops.identity import checked
from graphc.startup.record import record
from graphc.tensor import keys
from graphc.tensor.shaping import as_size, flatten, label_operand, normalise_axes, normalise_axis, operand

__all__ = [
    "diagonal", "flip", "fliplr", "flipud", "getitem", "inc_subtensor", "set_subtensor", "take",
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
class Masked:
    """The elements for which a mask over the axes from `axis` on is true, in C order, as one axis in their place."""

    mask: Node
    axis: int


@record()
class Order:
    """Axes in another order, with new axes "x", without axes of size 1."""

    axes: tuple[int | str, ...]


Stage: TypeAlias = Region | Points | Masked | Order


@record()
class Selection:
    """The part of `base` that a key selects."""

    base: Node
    stages: tuple[Stage, ...]


_selections: WeakKeyDictionary[Node, Selection] = WeakKeyDictionary()


def _apply(stage: Stage, x: Node) -> Node:
    match stage:
        case Region(starts, shape, steps):
            return ops.subtensor(x, starts, shape, steps)
        case Points(indices, axis):
            return ops.gather(x, indices, axis)
        case Masked(mask, axis):
            return ops.gather(_merged(x, mask, axis), (keys.positions(mask),), axis)
        case Order(axes):
            return layout.dimshuffle(x, axes)


def _merged(x: Node, mask: Node, axis: int) -> Node:
    """`x` with the axes of a mask made one."""
    shape, end = x.type.shape, axis + mask.ndim
    return layout.reshape(x, (*shape[:axis], sizes.product(shape[axis:end]), *shape[end:]))


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


# --- keys ---


def getitem(x: Any, key: Any) -> Node:
    """`x[key]`: NumPy's rules for integers, slices, None, Ellipsis, integer arrays and boolean masks.

    A mask has the sizes of the axes that it stands for; how many elements it selects may follow from values. Raises
    GraphTypeError for a key that cannot be, ShapeError for a mask of other sizes, and IndexOutOfBounds, at build where
    it is known, for an index outside its axis.
    """
    node = as_node(x)
    direct = keys.known_item(node, key)
    if direct is not None:
        return direct
    node, items = keys.items_of(node, key)
    stages = _plan(node, items)
    value = keys.constant_item(node, key)
    if value is None and isinstance(key, int | np.integer) and key == -1:
        value = _last_row(node)
    if value is None:
        return select(node, stages)
    _selections[value] = Selection(node, tuple(stages))
    return value


def slice_along(x: Node, axis: int, start: Any, stop: Any) -> Node:
    """`x[start:stop]` along an axis."""
    return getitem(x, (*(slice(None),) * axis, slice(start, stop)))


def keep_last_row(rows: Node, last: Node) -> None:
    """`rows[-1]` is `last` from now on, another node of the same value, so that `rows` need not be made for it."""
    rows.__dict__["_last"] = last


def _last_row(rows: Node) -> Node | None:
    """The last row as another node has it, if there is one."""
    last: Node | None = rows.__dict__.get("_last")
    if last is None:
        return None
    count = rows.type.shape[0]
    if sizes.known_at_least(count, 1):  # a node of its own: what is updated is a row of `rows`
        return make(OPS["dimshuffle"], (last,), {"order": tuple(range(last.ndim))})
    some = elementwise("minimum", elementwise("maximum", as_size_node(count), 0), 1)
    message = f"index of {describe(rows)}: index -1 is out of bounds for axis 0, whose size is 0"
    return checked(last, (some,), message, "index")


# --- the plan -------------------------------------------------------------------------------------------------------


def _plan(x: Node, items: list[keys.Item]) -> list[Stage]:
    """The stages of a key."""
    arrays = any(isinstance(item, Node) and item.ndim for item in items)
    cuts, order = _basic(x, items, arrays)
    stages: list[Stage] = [cuts]
    axis = 0
    for item in items:
        if isinstance(item, keys.Cut) and isinstance(item.step, Node):
            along = elementwise("mul", layout.iota(item.size), item.step)  # a step that is not known
            stages.append(Points((elementwise("add", along, as_size_node(item.start)),), axis))
        axis += keys.axes_of(item)
    if arrays:
        return [*stages, *_advanced(x, items)]
    for place, item in enumerate(items):
        if isinstance(item, keys.Mask):
            stages.append(Masked(item.array, sum(map(keys.axes_of, items[:place]))))
    return [*stages, Order(order)]


def _basic(x: Node, items: list[keys.Item], arrays: bool) -> tuple[Region, tuple[int | str, ...]]:
    """The region of slices and integers, and the order that drops the integers' axes and puts in the new ones.

    Beside arrays, integers are arrays themselves (NumPy's rule), and their axes stay whole here.
    """
    starts: list[Size] = []
    extents: list[Size] = []
    steps: list[int] = []
    order: list[int | str] = []
    kept = 0  # axes of the region, those of a mask made one
    for item in items:
        axis = len(starts)
        shape = x.type.shape[axis : axis + keys.axes_of(item)]
        begin: list[Size] = [0] * len(shape)
        stride = [1] * len(shape)
        if isinstance(item, keys.Cut) and isinstance(item.step, int):
            shape, begin, stride = (item.size,), [item.start], [item.step]
        elif isinstance(item, (Node, int)) and not arrays:
            shape, begin = (1,), [_position(x, axis, item)]
        if item is None or isinstance(item, (keys.Cut, keys.Mask)):
            order.append("x" if item is None else kept)
        kept += item is not None
        starts += begin
        extents += shape
        steps += stride
    return Region(tuple(starts), tuple(extents), tuple(steps)), tuple(order)


def _position(x: Node, axis: int, item: Node | int) -> Size:
    """An integer index counted from 0."""
    length = x.type.shape[axis]
    if isinstance(item, int) and isinstance(length, int) and not -length <= item < length:
        raise IndexOutOfBounds(f"index {item} is out of bounds for axis {axis} of {describe(x)}, of size {length}")
    return keys.from_end(as_size(item), length)


def _advanced(x: Node, items: list[keys.Item]) -> list[Stage]:
    """The stages that follow the slices where a key has integer arrays.

    The arrays' axes take the place of the indexed axes where these stand side by side in the key, else they come first.
    """
    places = [place for place, item in enumerate(items) if isinstance(item, (Node, int))]
    axis_of = {place: sum(item is not None for item in items[:place]) for place in places}
    indices = [_in_bounds(x, axis_of[place], items[place]) for place in places]
    indices = [*narrowed(indices)]
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


def _final_order(
    items: list[keys.Item], places: list[int], first: int, rank: int, adjacent: bool
) -> tuple[int | str, ...]:
    """The gathered axes in the key's order, with its new axes; gathered are `rank` axes from `first` on."""
    block = list(range(first, first + rank))
    order: list[int | str] = [] if adjacent else list(block)
    others = iter([axis for axis in range(rank + len(items)) if axis not in block])
    for place, item in enumerate(items):
        if item is None:
            order.append("x")
        elif isinstance(item, keys.Cut):
            order.append(next(others))
        elif adjacent and place == places[0]:
            order += block
    return tuple(order)


# --- updates --------------------------------------------------------------------------------------------------------


def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Node:
    """The array of which `x` is a part, with that part replaced by `y`: `set_subtensor(a[1:3], y)`.

    `x` is written as an indexing of the array, which may be reshaped or transposed; `y` broadcasts to it and must not
    have a wider dtype. Where indices repeat, the last one wins. The `inplace` arguments are Theano's and mean nothing:
    graphc decides that itself. Raises GraphTypeError where `x` is no indexing, ShapeError where `y` does not fit.

        >>> T.set_subtensor(T.zeros(4)[1:3], 1.0).eval()
        array([0., 1., 1., 0.])
    """
    return _update("set_subtensor", x, y)


def inc_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False, set_instead_of_inc: bool = False
) -> Node:
    """The array of which `x` is a part, with `y` added to that part; where indices repeat, all are added.

    As `set_subtensor` otherwise: raises GraphTypeError where `x` is no indexing, ShapeError where `y` does not fit.

        >>> T.inc_subtensor(T.zeros(3)[[0, 0, 2]], 1.0).eval()
        array([2., 0., 1.])
    """
    return _update("set_subtensor" if set_instead_of_inc else "inc_subtensor", x, y)


def _update(name: str, x: Any, y: Any) -> Node:
    part = x
    while isinstance(part, Node) and part not in _selections and part.op.name in ("reshape", "dimshuffle"):
        part = part.args[0]
    if not isinstance(part, Node) or part not in _selections:
        shown = f"{describe(x)} of type {x.type}" if isinstance(x, Node) else repr(x)
        raise GraphTypeError(f"{name}: the first argument must be an indexing such as a[1:3], not {shown}")
    value = _laid_as(part, x, _fitted(name, x, y))
    selection = _selections[part]
    values = [selection.base]
    for stage in selection.stages:
        values.append(_apply(stage, values[-1]))
    increments = name == "inc_subtensor"
    for stage, before in zip(selection.stages[::-1], values[-2::-1], strict=True):
        if isinstance(stage, Order):
            value = _axes_back(value, stage.axes, before.ndim)
            continue
        if _apply(stage, before) is before:
            continue
        value = _write(stage, before, value, increments)
        increments = False
    return elementwise("add", selection.base, value) if increments else value


def put_item(x: Node, key: Any, value: Node | Callable[[Node], Node]) -> Node:
    """`x` after `x[key] = value`. The value may be a function of what `x[key]` is before."""
    node, items = keys.items_of(x, key)
    part = select(node, _plan(node, items))
    return _update("x[key] = value", part, value if isinstance(value, Node) else value(part))


def put_back(whole: Node, part: Node, value: Node) -> Node | None:
    """`whole` with `part`, which was made of it by indices, transposes and reshapes alone, replaced by `value`; None if
    it was made otherwise."""
    while part is not whole and part.args:
        inner, *starts = part.args
        if part.op.name == "subtensor":
            value = ops.set_subtensor(inner, value, starts[: inner.ndim], part.attrs["steps"])
        elif part.op.name in ("reshape", "dimshuffle"):
            value = _laid_as(inner, part, value)
        elif part.op.name == "broadcast_to" and not any(map(_is_spread, inner.type.shape, part.type.shape)):
            value = layout.broadcast_to(value, inner.type.shape)
        else:
            return None
        part = inner
    return value


def _is_spread(before: Size, after: Size) -> bool:
    """True for an axis that a broadcast makes longer, not one whose size it makes known."""
    return sizes.equal(before, 1) and not sizes.equal(after, 1)


def _laid_as(part: Node, x: Node, value: Node) -> Node:
    """A value of the shape of `x`, which is `part` reshaped and transposed, in the shape of `part`."""
    while x is not part:
        (inner, *_) = x.args
        if x.op.name == "reshape":
            value = layout.reshape(value, inner.type.shape)
        else:
            value = _axes_back(value, x.attrs["order"], inner.ndim)
        x = inner
    return value


def _axes_back(value: Node, order: Sequence[int | str], ndim: int) -> Node:
    """The axes of a value as they were before they were put in an order, those that were left out with size 1."""
    return layout.dimshuffle(value, [order.index(k) if k in order else "x" for k in range(ndim)])


def _write(stage: Region | Points | Masked, whole: Node, value: Node, increments: bool) -> Node:
    """`whole` with what the stage reads replaced by, or increased by, `value`."""
    match stage, increments:
        case Region(starts, _, steps), True:
            return ops.inc_subtensor(whole, value, starts, steps)
        case Region(starts, _, steps), False:
            return ops.set_subtensor(whole, value, starts, steps)
        case Masked(mask, axis), _:
            return _write_masked(mask, axis, whole, value, increments)
        case Points(indices, axis), True:
            return ops.inc_gather(whole, value, indices, axis)
        case Points(indices, axis), _:
            return ops.set_gather(whole, value, indices, axis)
    raise AssertionError(stage)


def _write_masked(mask: Node, axis: int, whole: Node, value: Node, increments: bool) -> Node:
    """`whole` with what a mask selects replaced by, or increased by, `value`.

    Where one value goes to all the selected places, nothing has to be counted.
    """
    repeated = _repeated_along(value, axis)
    if repeated is not None:
        shape = whole.type.shape
        wide = layout.broadcast_to(layout.expand(layout.drop(repeated, (axis,)), range(axis, axis + mask.ndim)), shape)
        outer = [k for k in range(whole.ndim) if not axis <= k < axis + mask.ndim]
        chosen = layout.broadcast_to(layout.expand(mask, outer), shape)
        return elementwise("where", chosen, elementwise("add", whole, wide) if increments else wide, whole)
    write = ops.inc_gather if increments else ops.set_gather
    merged = write(_merged(whole, mask, axis), value, (keys.positions(mask),), axis)
    return layout.reshape(merged, whole.type.shape)


def _repeated_along(value: Node, axis: int) -> Node | None:
    """The slice of size 1 that is repeated along an axis of `value`; None where none is known."""
    before = value.args[0] if value.op.name in ("broadcast_to", "dimshuffle") else value
    if value.op.name == "broadcast_to" and sizes.equal(before.type.shape[axis], 1):
        shape = value.type.shape
        return layout.broadcast_to(before, (*shape[:axis], 1, *shape[axis + 1 :]))
    if value.op.name == "dimshuffle" and isinstance(value.attrs["order"][axis], int):
        inner = _repeated_along(before, value.attrs["order"][axis])
        return None if inner is None else layout.dimshuffle(inner, value.attrs["order"])
    return value if sizes.equal(value.type.shape[axis], 1) else None


def _fitted(name: str, x: Node, y: Any) -> Node:
    """`y` in the dtype and shape of the part it goes to."""
    weak = isinstance(y, (bool, int, float, list, tuple)) and not keys.holds_node(y)
    value = as_node(y, x.type.dtype) if weak and _keeps_kind(y, x.type.dtype) else as_node(y)
    what = lazy_text(lambda: f"{name}: {describe(value)} of type {value.type} into {describe(x)} of type {x.type}")
    if not np.can_cast(value.type.dtype, x.type.dtype, "same_kind"):
        raise GraphTypeError(f"{what}: {value.type.dtype} does not fit into {x.type.dtype}; cast it")
    if value.ndim > x.ndim:
        raise RankError(f"{what}: it has more axes")
    (value,) = narrowed([value], x.type.shape)
    for axis in range(1, value.ndim + 1):
        old, new = value.type.shape[-axis], x.type.shape[-axis]
        if isinstance(old, int) and isinstance(new, int) and old not in (1, new):
            sizes_text = f"{describe_size(old)} and {describe_size(new)}"
            raise ShapeError(f"{what}: sizes {sizes_text} along axis {x.ndim - axis} differ")
    raised = layout.expand(cast(value, x.type.dtype), range(x.ndim - value.ndim))
    return layout.broadcast_to(raised, x.type.shape)


def _keeps_kind(y: Any, dtype: str) -> bool:
    """Tell whether Python numbers can become `dtype` without a change of kind."""
    kind = np.asarray(y).dtype.kind
    return kind == "b" or dtype.startswith("float") or (kind in "iu" and dtype in INTEGERS)


# --- composed of it -------------------------------------------------------------------------------------------------


def take(x: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Node:
    """The elements of `x` at integer `indices` along `axis`, or of all its elements where that is None.

    mode: "raise" (negative ones count from the end), "wrap" or "clip" to the axis. From an axis of size 0 nothing can
    be taken in any mode, and each index is checked, as in x[:, i], even where the result has no elements (`np.take`
    looks at none of them where an axis before is empty).

        >>> T.take(T.constant([5, 6, 7]), [2, 0]).eval()
        array([7, 5])
    """
    node = as_node(x) if axis is not None else flatten(x)
    what = label_operand("take", node)
    if mode not in ("raise", "wrap", "clip"):
        raise GraphValueError(f"{what}: mode {mode!r} is not one of raise, wrap, clip")
    place = normalise_axis(axis or 0, node.ndim, what)
    index = as_node(indices)
    if index.type.dtype not in INTEGERS:
        raise GraphTypeError(f"{what}: the indices {describe(index)} are of dtype {index.type.dtype}, not integers")
    length = as_size_node(node.type.shape[place])
    if mode == "wrap":
        index = elementwise("mod", cast(index, "int64"), length)
    elif mode == "clip":
        index = elementwise("clip", cast(index, "int64"), 0, elementwise("sub", length, 1))
    return getitem(node, (*(slice(None) for _ in range(place)), index))


def compressed(x: Any, condition: Any, axis: int | None = None) -> Node:
    """The slices of `x` along `axis` (elements of the flattened `x`) for which the vector `condition` is not 0.

    The condition may be shorter than the axis. Raises GraphTypeError for a condition of another rank.
    """
    mask, node = as_node(condition), as_node(x)
    if mask.ndim != 1:
        raise RankError(f"compress of {describe(node)}: the condition {describe(mask)} should be a vector")
    return take(node, keys.positions(cast(mask, "bool")), axis)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """The elements x[i, i + offset] of two axes, as the last axis of the result.

    >>> T.diagonal(T.constant([[1, 2], [3, 4]])).eval()
    array([1, 4])
    """
    node, what = operand("diagonal", x)
    rows, columns = normalise_axes((axis1, axis2), node.ndim, what)
    others = [axis for axis in range(node.ndim) if axis not in (rows, columns)]
    down, right = max(-offset, 0), max(offset, 0)
    height = sizes.add(node.type.shape[rows], -down)
    width = sizes.add(node.type.shape[columns], -right)
    count = layout.iota(keys.at_least(sizes.minimum(height, width), 0))
    indices = tuple(elementwise("add", count, shift) if shift else count for shift in (down, right))
    return select(node, [Order((*others, rows, columns)), Points(indices, len(others))])


def flip(x: Any, axis: Any = None) -> Node:
    """The order of the elements reversed along `axis`, by default along all axes.

    Raises AxisError for a wrong axis.

        >>> T.flip(T.arange(3)).eval()
        array([2, 1, 0])
    """
    node = as_node(x)
    axes = normalise_axes(axis, node.ndim, label_operand("flip", node))
    key = tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(node.ndim))
    return getitem(node, key) if axes else node


def fliplr(x: Any) -> Node:
    """The second axis reversed."""
    return flip(x, 1)


def flipud(x: Any) -> Node:
    """The first axis reversed."""
    return flip(x, 0)


FUNCTIONS.update(
    compressed=compressed, diagonal=diagonal, getitem=getitem, inc_subtensor=inc_subtensor, set_subtensor=set_subtensor,
    take=take,
)  # fmt: skip
