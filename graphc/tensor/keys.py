"""Keys, which stand in the brackets of x[...], as one item for each axis; masks, and the positions where they hold.

    x[1:, None, mask]   a slice, a new axis, and `nonzero(mask)`, an index array

In: a tensor and a key of integers, slices, None, Ellipsis, integer arrays and boolean masks; every bound may be a node.
Out: slices as starts, sizes and steps, normalised; integers; index arrays; masks. Nothing is selected here.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.dtypes import INTEGERS, refuse_masked
from graphc.errors import GraphValueError, IndexKindError, IndexOutOfBounds, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, Size, constant_value, describe, lazy_text, literal
from graphc.ir.walk import as_size_node
from graphc.ops import index, recur, reduce, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.startup.record import record
from graphc.tensor.elementary import where as choose
from graphc.tensor.shaping import as_size, flatten, label_operand, of_rank, specify_shape, vector_items, vector_of

# --- items -----------------------------------------------------------------------------------------------------------


@record()
class Cut:
    """A slice, normalised: `step` is a node where its value is not known."""

    start: Size
    size: Size
    step: Size


@record()
class Mask:
    """A boolean array, the only array of its key, in place of as many axes as it has."""

    array: Node


Item: TypeAlias = "Cut | Mask | Node | int | None"
"""A part of a key: a slice, a mask, an integer array or a symbolic integer, a static integer, or a new axis."""


def axes_of(item: Item) -> int:
    """The number of axes of an array that an item of its key stands for."""
    return item.array.ndim if isinstance(item, Mask) else int(item is not None)


def known_item(x: Node, key: Any) -> Node | None:
    """An element or a slice of a vector put together from scalars, such as `x.shape`, without reading the vector."""
    if x.op.name != "concatenate" and not (x.op.name == "dimshuffle" and x.args[0].ndim == 0):
        return None
    items = vector_items(x)
    if items is None or x.type.dtype != "int64":
        return None
    if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)) and -len(items) <= key < len(items):
        return as_size_node(items[int(key)])
    if isinstance(key, slice) and _is_static(key):
        return vector_of(items[key])
    return None


def constant_item(x: Node, key: Any) -> Node | None:
    """An element or a slice of a constant vector of integers, which may be a shape."""
    value = constant_value(x)
    if value is None or x.ndim != 1 or x.type.dtype != "int64" or not isinstance(key, (int, np.integer, slice)):
        return None
    return literal(value[key]) if not isinstance(key, slice) or _is_static(key) else None


def _is_static(key: slice) -> bool:
    return all(bound is None or isinstance(bound, (int, np.integer)) for bound in (key.start, key.stop, key.step))


def items_of(x: Node, key: Any) -> tuple[Node, list[Item]]:
    """A key as one item for each axis, and None for each new one; `x` with its sizes checked against masks."""
    what = label_operand("index", x)
    listed = isinstance(key, list) and any(isinstance(part, slice) for part in key)  # as Theano takes it
    parts = list(key) if listed or isinstance(key, tuple) else [key]
    masks = [_mask(part, what) for part in parts]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexKindError(f"{what}: more than one Ellipsis")
    taken = sum(
        mask.ndim if mask is not None else 0 if part is None or part is Ellipsis else 1
        for part, mask in zip(parts, masks, strict=True)
    )
    if taken > x.ndim:
        raise IndexOutOfBounds(f"{what}: {taken} indices for {x.ndim} axes")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
        masks.append(None)
    items: list[Item] = []
    axis = 0
    for part, mask in zip(parts, masks, strict=True):
        if part is None:
            items.append(None)
        elif part is Ellipsis:
            rest = x.ndim - taken
            items += [_cut(slice(None), x.type.shape[axis + k], what) for k in range(rest)]
            axis += rest
        elif mask is not None:
            x, mask = _agreeing(x, mask, axis)
            items += [Mask(mask)] if _is_alone(parts) else coordinates(mask)
            axis += mask.ndim
        else:
            items.append(_cut(part, x.type.shape[axis], what) if isinstance(part, slice) else _index(part, what))
            axis += 1
    return x, items


def _mask(part: Any, what: str) -> Node | None:
    """A boolean array, or None for another part of a key."""
    if isinstance(part, (bool, np.bool_)):
        raise IndexKindError(f"{what}: {part!r} is no index")
    if isinstance(part, (list, np.ndarray)):
        refuse_masked(part, what)
        if holds_node(part) or np.asarray(part).dtype == bool:
            part = as_node(part)
    return part if isinstance(part, Node) and part.type.dtype == "bool" else None


def _is_alone(parts: list[Any]) -> bool:
    """Tell whether a key has one array, its mask, and no integer, which would be an array beside it."""
    return sum(not (part is None or part is Ellipsis or isinstance(part, slice)) for part in parts) == 1


def _agreeing(x: Node, mask: Node, axis: int) -> tuple[Node, Node]:
    """`x` and a mask of its axes from `axis` on, of the same sizes: held to be where that is not known."""
    ours = x.type.shape[axis : axis + mask.ndim]
    what = lazy_text(lambda: f"index of {describe(x)}: the mask {describe(mask)}")
    common = [sizes.common(size, other, what) for size, other in zip(ours, mask.type.shape, strict=True)]
    before, after = x.type.shape[:axis], x.type.shape[axis + mask.ndim :]
    return specify_shape(x, (*before, *common, *after)), specify_shape(mask, common)


def holds_node(part: Any) -> bool:
    """Tell whether a nested list has a node in it."""
    return isinstance(part, Node) or (isinstance(part, list) and any(map(holds_node, part)))


def _index(part: Any, what: str) -> Node | int:
    """An integer or an integer array."""
    if isinstance(part, (int, np.integer)):
        return int(part)
    if isinstance(part, (float, str)) or part is None:
        raise IndexKindError(f"{what}: {part!r} is no index")
    empty = not isinstance(part, np.ndarray) and not holds_node(part) and np.size(part) == 0
    node = as_node(np.zeros(np.shape(part), "int64") if empty else part)
    if node.type.dtype not in INTEGERS:
        raise IndexKindError(f"{what}: {describe(node)} is of dtype {node.type.dtype}, not an integer")
    value = constant_value(node)
    if value is not None and value.ndim == 0:
        return int(value)
    return _within_int64(node) if node.type.dtype == "uint64" else node


def _within_int64(index: Node) -> Node:
    """An index of uint64 as int64: what that cannot hold is out of the bounds of any array, and must not wrap."""
    most = np.uint64(np.iinfo(np.int64).max)
    held = cast(elementwise("minimum", index, as_node(most)), "int64")
    held.name = held.name or index.name
    return held


# --- slices ---------------------------------------------------------------------------------------------------------


def where_size(condition: Node, chosen: Size, other: Size) -> Size:
    return sizes.as_size(elementwise("where", condition, as_size_node(chosen), as_size_node(other)))


def _is_negative(value: Size) -> bool | None:
    """Tell whether a bound counts from the end; None where that is known only at run time."""
    if isinstance(value, int):
        return value < 0
    return False if sizes.known_nonnegative(value) else None


def from_end(value: Size, length: Size) -> Size:
    """A bound counted from 0: negative ones count from the end. No clamping."""
    match _is_negative(value):
        case False:
            return value
        case True:
            return sizes.add(length, value)
        case _:
            negative = elementwise("less", as_size_node(value), 0)
            return where_size(negative, sizes.add(length, value), value)


def at_least(value: Size, low: int) -> Size:
    if low <= 0 and sizes.known_nonnegative(value):
        return value
    return sizes.maximum(value, low)


def _cut(part: slice, length: Size, what: str) -> Cut:
    """The start, size and step of a slice of an axis of size `length`."""
    start, stop = (
        None if bound is None else as_size(bound, lazy_text(lambda: f"{what}: a bound"))
        for bound in (part.start, part.stop)
    )
    step = 1 if part.step is None else as_size(part.step, lazy_text(lambda: f"{what}: a step"))
    if isinstance(step, int):
        if step == 0:
            raise ShapeError(f"{what}: a slice's step cannot be 0")
        if _is_backwards(start, stop, step):
            return Cut(0, 0, step)
        first, extent = (_upward if step > 0 else _downward)(start, stop, length)
        return Cut(first, _count(extent, abs(step)), step)
    positive = elementwise("greater", step, 0)
    up, down = _upward(start, stop, length), _downward(start, stop, length)
    sizes_up = _count(up[1], sizes.maximum(step, 1))
    sizes_down = _count(down[1], sizes.maximum(sizes.subtract(0, step), 1))
    # A step of 0 gives the size -1, which the guard of the result's size refuses.
    downward = where_size(elementwise("equal", step, 0), -1, sizes_down)
    return Cut(where_size(positive, up[0], down[0]), where_size(positive, sizes_up, downward), step)


def _is_backwards(start: Size | None, stop: Size | None, step: int) -> bool:
    """Tell whether bounds counted from the same end say that a slice is empty, whatever the length."""
    if not (isinstance(start, int) and isinstance(stop, int)) or (start < 0) != (stop < 0):
        return False
    return stop <= start if step > 0 else start <= stop


def _upward(start: Size | None, stop: Size | None, length: Size) -> tuple[Size, Size]:
    """First element and extent (stop - start, perhaps negative) of a slice with a positive step.

    The start is not cut to the length: where it is beyond, the slice is empty.
    """
    low: Size = 0 if start is None else at_least(from_end(start, length), 0)
    if stop is None:
        if isinstance(start, int) and start < 0:
            return low, sizes.minimum(length, -start)
        return low, sizes.subtract(length, low)
    if _is_negative(stop) is False:
        return low, sizes.subtract(sizes.minimum(length, stop), low)
    high = from_end(stop, length)
    if _is_negative(stop) is None:
        high = sizes.minimum(length, at_least(high, 0))
    # max(high, 0) - low is below 0 where high is, so high need not be cut
    return low, sizes.subtract(high, low)


def _downward(start: Size | None, stop: Size | None, length: Size) -> tuple[Size, Size]:
    """First element and extent (start - stop, perhaps negative) of a slice with a negative step."""
    last = sizes.add(length, -1)
    high = last if start is None else from_end(start, length)
    if start is not None and _is_negative(start) is not True:
        high = sizes.minimum(last, high)
    low: Size = -1 if stop is None else from_end(stop, length)
    if stop is not None and _is_negative(stop) is not False:
        low = sizes.maximum(low, -1)
    return high, sizes.subtract(high, low)


def _count(extent: Size, step: Size) -> Size:
    """The number of steps that fit into an extent: its quotient rounded up, 0 where it is negative."""
    extent = at_least(extent, 0)
    return sizes.floor_divide(sizes.add(extent, sizes.subtract(step, 1)), step)


# --- masks ------------------------------------------------------------------------------------------------------------
# Where the elements of an array are not 0: positions whose number is known only when the values are.
#
# In: bool or number arrays, constant or symbolic. Out: int64 vectors whose size is the number of true elements, a
# scalar of the graph: what follows from it is sized after a first kernel has counted. Each pass over the mask is
# linear.


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
    node = of_rank(x, f"{name} of {{}}: a scalar has no positions", 1)
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
