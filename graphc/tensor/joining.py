"""Arrays put together, taken apart and repeated.

In: tensors, axes, numbers of pieces or repetitions (numbers or scalars). Out: nodes of concatenate, subtensor and
broadcast_to, with casts to the operands' common dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, promote
from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, OPS, Node, Size, constant_value, describe, describe_size, lazy_text, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops import index, shape as ops
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.recur import running_sum
from graphc.tensor import shaping
from graphc.tensor.indexing import getitem, take

__all__ = [
    "array_split", "column_stack", "concatenate", "dstack", "hstack", "join", "repeat", "roll",
    "split", "stack", "tile", "vstack",
]  # fmt: skip

# --- together -------------------------------------------------------------------------------------------------------


def _alike(arrays: Any, what: str) -> list[Node]:
    """The arrays as nodes of their common dtype."""
    if isinstance(arrays, Node):
        arrays = [arrays[position] for position in range(len(arrays))]
    nodes = [as_node(x) for x in arrays]
    if not nodes:
        raise GraphValueError(f"{what}: at least one array is needed")
    dtype = promote(*(node.type.dtype for node in nodes))
    return [cast(node, dtype) for node in nodes]


def concatenate(arrays: Any, axis: Any = 0) -> Node:
    """Arrays of one rank, one after the other along `axis`; their other sizes must be equal. The axis may be an integer
    scalar that only a call knows; then another axis is an IndexError when it runs.

    Dtypes are promoted. Raises ShapeError for other sizes.

        >>> T.concatenate([T.ones((1, 2)), T.zeros((1, 2))], axis=0).eval()
        array([[1., 1.],
               [0., 0.]])
    """
    nodes = _alike(arrays, "concatenate")
    ranks = {node.ndim for node in nodes}
    if len(ranks) > 1 or 0 in ranks:
        shown = ", ".join(f"{describe(node)} of type {node.type}" for node in nodes)
        raise RankError(f"concatenate: the arrays must have one rank, at least 1: {shown}")
    axis = shaping.known_number(axis)
    if isinstance(axis, Node) and not axis.ndim and axis.type.dtype in INTEGERS:
        return _along_any(nodes, axis)
    return ops.concatenate(nodes, shaping.normalise_axis(axis, nodes[0].ndim, "concatenate"))


def _along_any(nodes: Sequence[Node], axis: Node) -> Node:
    """The arrays along an axis that a call says: a branch for each along which their types let them be joined."""
    rank = nodes[0].ndim
    joined: dict[int, Node] = {}
    refused: list[ShapeError] = []
    for place in range(rank):
        try:
            joined[place] = ops.concatenate(nodes, place)
        except ShapeError as error:
            refused.append(error)
    if not joined:
        raise refused[0]
    counted = elementwise("where", elementwise("less", axis, 0), elementwise("add", axis, rank), axis)
    allowed = [elementwise("equal", counted, place) for place in joined]
    holds = cast(reduce(partial(elementwise, "logical_or"), allowed), "int64")
    other = next(iter(joined.values()))
    result: Node = FUNCTIONS["choose_among"]("concatenate", counted, [[joined.get(k, other)] for k in range(rank)])[0]
    known = ", ".join(map(str, joined))
    return checked(result, [holds], f"concatenate: {describe(axis)} is none of the axes that can be, {known}", "index")


def join(axis: Any, *arrays: Any) -> Node:
    """`concatenate` in Theano's order of arguments."""
    return concatenate(arrays, axis)


def stack(arrays: Any, *more: Any, axis: int = 0) -> Node:
    """Arrays of one shape along a new axis: `stack([x, y], axis=1)`; also Theano's older `stack(x, y)` and `stack(x)`,
    where each argument is one of them (`np.stack(x)` takes the rows of a tensor).

    Raises ShapeError for other sizes, AxisError for a wrong axis.

        >>> T.stack([T.constant([1, 2]), T.constant([3, 4])], axis=1).eval()
        array([[1, 3],
               [2, 4]])
    """
    if len(more) == 1 and isinstance(more[0], int) and isinstance(arrays, (list, tuple)):
        axis, more = more[0], ()
    nodes = _alike([arrays, *more] if more or isinstance(arrays, Node) else arrays, "stack")
    if len({node.ndim for node in nodes}) > 1:
        shown = ", ".join(f"{describe(node)} of type {node.type}" for node in nodes)
        raise ShapeError(f"stack: the arrays must have one shape: {shown}")
    place = shaping.normalise_axis(axis, nodes[0].ndim + 1, "stack")
    return ops.concatenate([ops.expand(node, (place,)) for node in nodes], place)


def _listed(results: Any) -> list[Node]:
    return [results] if isinstance(results, Node) else list(results)


def hstack(arrays: Any) -> Node:
    """Arrays side by side: along the second axis, vectors along their only one.

    >>> T.hstack([T.constant([1, 2]), T.constant([3])]).eval()
    array([1, 2, 3])
    """
    nodes = _listed(shaping.atleast_1d(*arrays))
    return concatenate(nodes, 0 if nodes[0].ndim == 1 else 1)


def vstack(arrays: Any) -> Node:
    """Arrays one below the other, vectors as rows.

    >>> T.vstack([T.constant([1, 2]), T.constant([3, 4])]).eval()
    array([[1, 2],
           [3, 4]])
    """
    return concatenate(_listed(shaping.atleast_2d(*arrays)), 0)


def dstack(arrays: Any) -> Node:
    """Arrays along the third axis."""
    return concatenate(_listed(shaping.atleast_3d(*arrays)), 2)


def column_stack(arrays: Any) -> Node:
    """Vectors as the columns of a matrix, matrices side by side."""
    nodes = [as_node(x) for x in arrays]
    return concatenate([node if node.ndim > 1 else ops.expand(shaping.flatten(node), (1,)) for node in nodes], 1)


# --- apart ----------------------------------------------------------------------------------------------------------


def _pieces(x: Node, axis: int, lengths: Sequence[Size]) -> list[Node]:
    """Consecutive parts of an axis."""
    parts: list[Node] = []
    offset: Size = 0
    for length in lengths:
        starts: list[Size] = [0] * x.ndim
        shape = list(x.type.shape)
        starts[axis], shape[axis] = offset, length
        parts.append(index.subtensor(x, starts, shape, (1,) * x.ndim))
        offset = sizes.add(offset, length)
    return parts


def split(x: Any, splits_size: Any, n_splits: int | None = None, axis: int = 0) -> list[Node]:
    """Parts of `x` along `axis`.

    With `n_splits`, Theano's meaning: `splits_size` lists the size of each part (numbers, scalars, or a vector); they
    must add up to the axis. Without, NumPy's: a number of equal parts, or the positions where parts begin.

        >>> [part.eval().tolist() for part in T.split(T.arange(4), [1, 3], 2)]
        [[0], [1, 2, 3]]
    """
    node, what = shaping.operand("split", x)
    place = shaping.normalise_axis(axis, node.ndim, what)
    length = node.type.shape[place]
    if n_splits is not None:
        lengths = shaping.as_shape(splits_size, what, n_splits)
        if len(lengths) != n_splits:
            raise ShapeError(f"{what}: {len(lengths)} sizes for {n_splits} parts")
        ops.check_naturals(lengths, what)
        target = list(node.type.shape)
        target[place] = sizes.total(lengths)
        sizes.common(length, target[place], what, f": the parts' sizes do not add up to axis {place}")
        return _pieces(ops.broadcast_to(node, target), place, lengths)
    if isinstance(splits_size, (list, tuple, np.ndarray)):
        return _split_at(node, list(splits_size), place)
    count = _part_count(splits_size, what)
    if isinstance(length, int) and length % count:
        raise ShapeError(f"{what}: axis {place} of size {length} cannot be divided into {count} equal parts")
    part = sizes.floor_divide(length, count)
    whole = list(node.type.shape)
    whole[place] = sizes.multiply(part, count)
    return _pieces(ops.broadcast_to(node, whole) if not isinstance(length, int) else node, place, [part] * count)


def _part_count(value: Any, what: str) -> int:
    value = shaping.known_number(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise GraphValueError(f"{what}: the number of parts should be a positive whole number, not {value!r}")
    return int(value)


def _split_at(x: Node, positions: list[Any], axis: int) -> list[Node]:
    """The parts between positions, cut as slices are."""
    bounds = [None, *positions, None]
    key = (slice(None),) * axis
    return [getitem(x, (*key, slice(low, high))) for low, high in pairwise(bounds)]


def array_split(x: Any, sections: Any, axis: int = 0) -> list[Node]:
    """NumPy's: as `split`, but the first parts are one longer where the axis cannot be divided equally.

    >>> [part.eval().tolist() for part in T.array_split(T.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    node, what = shaping.operand("array_split", x)
    place = shaping.normalise_axis(axis, node.ndim, what)
    if isinstance(sections, (list, tuple, np.ndarray)):
        return _split_at(node, list(sections), place)
    count = _part_count(sections, what)
    length = node.type.shape[place]
    # Of what remains, each part takes its share, rounded up.
    lengths = [sizes.floor_divide(sizes.add(length, count - 1 - k), count) for k in range(count)]
    return _pieces(node, place, lengths)


# --- repeated -------------------------------------------------------------------------------------------------------


def tile(x: Any, reps: Any, ndim: int | None = None) -> Node:
    """`x` repeated `reps` times along each axis; axes of size 1 are put in front of it or of `reps` as needed.

    >>> T.tile(T.constant([1, 2]), (2, 2)).eval()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    node, what = shaping.operand("tile", x)
    times = list(shaping.as_shape(reps, what, ndim))
    ops.check_naturals(times, what)
    node = ops.expand(node, range(max(len(times) - node.ndim, 0)))
    times = [*(1 for _ in range(node.ndim - len(times))), *times]
    if all(sizes.equal(one, 1) for one in times):
        return node
    wide = ops.expand(node, range(0, 2 * node.ndim, 2))
    pairs = [size for pair in zip(times, node.type.shape, strict=True) for size in pair]
    shape = [sizes.multiply(one, size) for one, size in zip(times, node.type.shape, strict=True)]
    return ops.reshape(ops.broadcast_to(wide, pairs), shape)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Node:
    """Every element of `x` (slice along `axis`) `repeats` times: a number, a scalar, or a vector with one for each.

    Raises ShapeError for a negative number of repeats and for a vector of another size, GraphTypeError for floats.

        >>> T.repeat(T.constant([1, 2]), [1, 3]).eval()
        array([1, 2, 2, 2])
    """
    node = as_node(x) if axis is not None else shaping.flatten(x)
    what = shaping.label_operand("repeat", node)
    place = shaping.normalise_axis(axis or 0, node.ndim, what)
    count = as_node(repeats)
    if count.ndim == 1 and sizes.equal(count.type.shape[0], 1):
        count = ops.drop(count, (0,))
    if count.ndim:
        return _repeat_each(node, count, place, what)
    times, length = shaping.as_size(count, lazy_text(lambda: f"{what}: repeats")), node.type.shape[place]
    ops.check_naturals((times,), what)
    shape = list(node.type.shape)
    wide = ops.broadcast_to(ops.expand(node, (place + 1,)), (*shape[: place + 1], times, *shape[place + 1 :]))
    shape[place] = sizes.multiply(length, times)
    return ops.reshape(wide, shape)


def _repeat_each(x: Node, repeats: Node, axis: int, what: str) -> Node:
    value, length = constant_value(repeats), x.type.shape[axis]
    if repeats.ndim != 1 or repeats.type.dtype not in INTEGERS:
        raise RankError(f"{what}: repeats should be a scalar or a vector of integers, not {describe(repeats)}")
    size = repeats.type.shape[0]
    if isinstance(length, int) and isinstance(size, int) and length != size:
        raise ShapeError(f"{what}: {size} repeats for axis {axis} of size {describe_size(length)}")
    if value is not None and (value < 0).any():
        raise ShapeError(f"{what}: a number of repeats is negative")
    if value is not None and size == length:
        return take(x, np.repeat(np.arange(len(value)), value), axis)
    numbers = cast(ops.broadcast_to(repeats, (length,)) if not sizes.equal(size, 1) else repeats, "int64")
    least = make(OPS["all"], (elementwise("greater_equal", numbers, 0),), {"axes": (0,)})
    message = f"{what}: a number of repeats is negative"
    numbers = checked(numbers, (cast(least, "int64"),), message, "shape")
    # Where the copies of an element end, one is added to the source of all that comes after.
    ends = running_sum(numbers, 0)
    total = sizes.as_size(make(OPS["sum"], (numbers,), {"axes": (0,)}))
    marks = index.inc_gather(
        ops.zeros("int64", (sizes.add(total, 1),)), ops.filled(literal(1, "int64"), numbers.type.shape), (ends,), 0
    )
    source = running_sum(index.subtensor(marks, (0,), (total,), (1,)), 0)
    return take(x, source, axis)


def roll(x: Any, shift: Any, axis: Any = None) -> Node:
    """The elements moved by `shift` places along `axis` (all elements in C order by default), around the end.

    >>> T.roll(T.arange(4), 1).eval()
    array([3, 0, 1, 2])
    """
    node = as_node(x)
    if axis is None:
        return ops.reshape(roll(shaping.flatten(node), shift, 0), node.type.shape)
    axes = shaping.normalise_axes(axis, node.ndim, shaping.label_operand("roll", node))
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    for place, one in zip(axes, shifts, strict=True):
        node = _roll(node, shaping.as_size(one, "roll: the shift"), place)
    return node


def _roll(x: Node, shift: Size, axis: int) -> Node:
    length = x.type.shape[axis]
    if isinstance(shift, int) and isinstance(length, int):
        front: Size = -shift % length if length else 0
    else:
        front = sizes.as_size(elementwise("mod", as_size_node(sizes.subtract(0, shift)), as_size_node(length)))
    if sizes.equal(front, 0):
        return x
    head, tail = _pieces(x, axis, [front, sizes.subtract(length, front)])
    return ops.concatenate([tail, head], axis)


FUNCTIONS.update(repeat=repeat)
