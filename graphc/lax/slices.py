"""Parts of arrays: slices at places that a call tells, gathered and scattered elements, padding.

In: tensors, arrays and numbers; sizes are Python integers or sizes of tensors, places may be anything. Out: tensors.

    dynamic_slice(x, (i, 0), (2, 3))          x[i : i + 2, 0 : 3], with i moved so that the slice is within x
    gather(x, i, GatherDimensionNumbers(...)) a slice for each row of i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc import tensor
from graphc.control.updates import Updates
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import set_subtensor as write_region, subtensor
from graphc.ops.shape import dimshuffle, expand, filled, iota, reshape
from graphc.tensor.shaping import as_size, normalise_axis

Built = type(slice(None))


# --- slices -----------------------------------------------------------------------------------------------------------


def slice(operand: Any, start_indices: Sequence[Any], limit_indices: Sequence[Any], strides: Any = None) -> Node:
    """Return the part from `start_indices` up to `limit_indices`, a number for each axis; strides: every how manieth
    element, all by default. Raises RankError where there are not as many numbers as axes.

        >>> lax.slice(T.constant([1, 2, 3, 4]), (1,), (4,), (2,)).eval()
        array([2, 4])
    """
    node = as_node(operand)
    steps = [1] * node.ndim if strides is None else list(strides)
    for what, each in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", steps)):
        _check_count("slice", what, each, node)
    return node[tuple(Built(*each) for each in zip(start_indices, limit_indices, steps, strict=True))]


def slice_in_dim(operand: Any, start_index: Any, limit_index: Any, stride: int = 1, axis: int = 0) -> Node:
    """Return `operand[start_index:limit_index:stride]` along one axis.

    >>> lax.slice_in_dim(T.constant([[1, 2, 3]]), 1, None, axis=1).eval()
    array([[2, 3]])
    """
    node = as_node(operand)
    place = normalise_axis(axis, node.ndim, "slice_in_dim")
    return node[(Built(None),) * place + (Built(start_index, limit_index, stride),)]


def index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Node:
    """Return the element of an axis at `index`; keepdims: with an axis of size 1 in its place.

    >>> lax.index_in_dim(T.constant([5, 6]), -1).eval()
    array([6])
    """
    node = as_node(operand)
    place = normalise_axis(axis, node.ndim, "index_in_dim")
    part = node[(Built(None),) * place + (index,)]
    return expand(part, (place,)) if keepdims else part


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[Any]) -> Node:
    """Return the part of the sizes `slice_sizes` that begins at `start_indices`, integers that may be tensors. A start
    below 0 counts from the end; then it is moved so that the part lies within the operand.

    Raises RankError where there are not as many numbers as axes, ShapeError for a size beyond that of the operand.

        >>> lax.dynamic_slice(T.arange(5), (T.constant(4),), (2,)).eval()
        array([3, 4])
    """
    node = as_node(operand)
    extents = [as_size(size, "dynamic_slice: a size") for size in slice_sizes]
    starts = _starts("dynamic_slice", node, start_indices, extents)
    return subtensor(node, starts, extents, [1] * node.ndim)


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: Any, axis: int = 0) -> Node:
    """Return `dynamic_slice` along one axis.

    >>> lax.dynamic_slice_in_dim(T.arange(5), 1, 2).eval()
    array([1, 2])
    """
    node = as_node(operand)
    place = normalise_axis(axis, node.ndim, "dynamic_slice_in_dim")
    extents = [*node.type.shape[:place], slice_size, *node.type.shape[place + 1 :]]
    return dynamic_slice(node, _at(node, place, start_index), extents)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Node:
    """Return the element of an axis at `index`, which is moved into its bounds.

    >>> lax.dynamic_index_in_dim(T.arange(5), 9, keepdims=False).eval()
    array(4)
    """
    node = as_node(operand)
    place = normalise_axis(axis, node.ndim, "dynamic_index_in_dim")
    part = dynamic_slice_in_dim(node, index, 1, place)
    return part if keepdims else reshape(part, (*node.type.shape[:place], *node.type.shape[place + 1 :]))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Node:
    """Return a copy in which the part that begins at `start_indices` is `update`, of the dtype of the operand. Starts
    are as those of `dynamic_slice`. Raises RankError for another rank, GraphTypeError for another dtype.

        >>> lax.dynamic_update_slice(T.zeros(4), T.ones(2), (3,)).eval()
        array([0., 0., 1., 1.])
    """
    node, part = as_node(operand), as_node(update)
    if part.ndim != node.ndim:
        raise RankError(f"dynamic_update_slice: {describe(part)} has {part.ndim} axes, {describe(node)} {node.ndim}")
    if part.type.dtype != node.type.dtype:
        raise GraphTypeError(f"dynamic_update_slice: {describe(part)} is {part.type}, {describe(node)} {node.type}")
    starts = _starts("dynamic_update_slice", node, start_indices, part.type.shape)
    return write_region(node, part, starts, [1] * node.ndim)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Node:
    """Return `dynamic_update_slice` along one axis.

    >>> lax.dynamic_update_slice_in_dim(T.zeros(3), T.ones(1), 1, 0).eval()
    array([0., 1., 0.])
    """
    node = as_node(operand)
    place = normalise_axis(axis, node.ndim, "dynamic_update_slice_in_dim")
    return dynamic_update_slice(node, update, _at(node, place, start_index))


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Node:
    """Return a copy in which the element of an axis at `index` is `update`, with or without this axis.

    >>> lax.dynamic_update_index_in_dim(T.zeros(3), 5.0, 1, 0).eval()
    array([0., 5., 0.])
    """
    node, part = as_node(operand), as_node(update)
    place = normalise_axis(axis, node.ndim, "dynamic_update_index_in_dim")
    whole = part if part.ndim == node.ndim else expand(part, (place,))
    return dynamic_update_slice(node, whole, _at(node, place, index))


def _at(node: Node, place: int, start: Any) -> list[Any]:
    return [start if axis == place else 0 for axis in range(node.ndim)]


def _check_count(by: str, what: str, given: Sequence[Any], node: Node) -> None:
    if len(given) != node.ndim:
        raise RankError(
            f"{by}: {what} has {len(given)} numbers, and {describe(node)} of type {node.type} {node.ndim} axes"
        )


def _starts(by: str, node: Node, starts: Any, extents: Sequence[Size]) -> list[Size]:
    """Return places that are moved so that a part of these sizes lies within a node."""
    given = [starts[axis] for axis in range(node.ndim)] if isinstance(starts, Node) else list(starts)
    for what, each in (("start_indices", given), ("slice_sizes", extents)):
        _check_count(by, what, each, node)
    found: list[Size] = []
    for start, size, extent in zip(given, node.type.shape, extents, strict=True):
        if isinstance(size, int) and isinstance(extent, int) and extent > size:
            raise ShapeError(f"{by}: a part of {extent} elements is wanted, and {describe(node)} of type {node.type}")
        begin, length = cast(as_node(start), "int64"), as_size_node(size)
        counted = elementwise("where", elementwise("less", begin, 0), elementwise("add", begin, length), begin)
        last = elementwise("sub", length, as_size_node(extent))
        found.append(sizes.as_size(elementwise("minimum", elementwise("maximum", counted, 0), last)))
    return found


# --- padding ----------------------------------------------------------------------------------------------------------


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[Any, Any, Any]]) -> Node:
    """Return the operand with `padding_value` around and between its elements.

    padding_config: for each axis how many to put before, behind, and between two elements; before and behind may be
    negative, which takes elements away. Raises RankError where there are not as many triples as axes, GraphValueError
    for less than none between two elements.

        >>> lax.pad(T.constant([1, 2]), 0, [(1, -1, 2)]).eval()
        array([0, 1, 0, 0])
    """
    node = as_node(operand)
    _check_count("pad", "padding_config", padding_config, node)
    value = cast(as_node(padding_value), node.type.dtype)
    triples = [tuple(as_size(each, "pad: a number") for each in triple) for triple in padding_config]
    if any(isinstance(between, int) and between < 0 for _, _, between in triples):
        raise GraphValueError(f"pad of {describe(node)}: less than no elements between two")
    if any(not isinstance(between, int) for _, _, between in triples):
        raise GraphValueError(f"pad of {describe(node)}: the number of elements between two must be known")
    starts, extents, steps, cuts = [], [], [], []
    for size, (before, behind, between) in zip(node.type.shape, triples, strict=True):
        own = sizes.add(size, sizes.multiply(sizes.maximum(sizes.subtract(size, 1), 0), between))
        first, last = sizes.maximum(before, 0), sizes.maximum(behind, 0)
        starts.append(first)
        extents.append(sizes.add(sizes.add(first, own), last))
        steps.append(int(between) + 1)
        begin = sizes.maximum(sizes.subtract(0, before), 0)
        cuts.append((begin, sizes.maximum(sizes.add(sizes.add(own, before), behind), 0)))
    whole = write_region(filled(value, extents), node, starts, steps)
    return subtensor(whole, [begin for begin, _ in cuts], [extent for _, extent in cuts], [1] * node.ndim)


# --- gathered and scattered -------------------------------------------------------------------------------------------


class GatherScatterMode:
    """The treatment of indices out of bounds: clipped, left out, or promised not to be there. Raises TypeError for an
    argument: only its members are used."""

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"


class GatherDimensionNumbers(NamedTuple):
    """The roles of the axes of a gather, as in XLA.

    offset_dims: the axes of the result along which a slice lies. collapsed_slice_dims: the axes of the operand that
    slices have size 1 along, and the result has not. start_index_map: the axis of the operand that each component of an
    index is of. operand_batching_dims, start_indices_batching_dims: axes that both have.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The roles of the axes of a scatter, as in XLA: those of `GatherDimensionNumbers`, with the updates in
    place of the result."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def _windows(by: str, node: Node, indices: Node, axes: Sequence[int], extents: Sequence[Size], mode: str) -> list[Node]:
    """Return an index of each axis of a node: of the shape of `indices` without the last axis, followed by `extents`.
    A slice that is not within the node is moved into it, or left out as a whole: its indices are all out of bounds."""
    if len(extents) != node.ndim:
        raise RankError(f"{by}: {len(extents)} sizes of slices, and {describe(node)} has {node.ndim} axes")
    outer, rank = indices.ndim - 1, node.ndim
    starts: list[Node] = [as_node(0, "int64")] * rank
    beyond = as_node(False)
    for place, axis in enumerate(axes):
        last = elementwise("sub", as_size_node(node.type.shape[axis]), as_size_node(extents[axis]))
        start = cast(indices[..., place], "int64")
        if mode == "clip":
            start = elementwise("maximum", elementwise("minimum", start, last), 0)
        elif mode == "fill":
            for outside in (elementwise("less", start, 0), elementwise("greater", start, last)):
                beyond = elementwise("logical_or", beyond, outside)
        starts[axis] = start
    found = []
    for axis, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        if mode == "fill":  # far beyond, wherever in the slice
            start = elementwise("where", beyond, as_node(2**62, "int64"), start)
        across = expand(iota(extent), [k for k in range(rank) if k != axis])
        spread = expand(start, range(start.ndim, start.ndim + rank)) if start.ndim else start
        found.append(elementwise("add", spread, across))
    wide: Sequence[Node] = tensor.broadcast_arrays(*found)
    if outer and all(start.ndim == 0 for start in starts):
        wide = [tensor.broadcast_to(each, (*indices.type.shape[:-1], *extents)) for each in wide]
    return list(wide)


def _mode(by: str, mode: Any) -> str:
    known = {None: "fill", "fill": "fill", "drop": "fill", "clip": "clip", "promise_in_bounds": "promise_in_bounds"}
    if mode not in known:
        raise GraphValueError(
            f"{by}: mode is one of lax.GatherScatterMode's CLIP, FILL_OR_DROP, PROMISE_IN_BOUNDS, not {mode!r}"
        )
    return known[mode]


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[Any],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Node:
    """Return a slice of the operand for each index, as XLA's Gather.

    start_indices: integers, whose last axis has the components of an index, one for each of `start_index_map`.
    slice_sizes: of each axis of the operand. mode: a slice that is not within the operand is filled with `fill_value`
    (by default; NaN where that is not given, see `x.at`), or moved into it ("clip"). Raises GraphValueError for
    batching axes, which graphc has by `vmap`.

        >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> lax.gather(T.constant([[1, 2], [3, 4]]), T.constant([[1], [0], [1]]), rows, (1, 2)).eval()
        array([[3, 4],
               [1, 2],
               [3, 4]])
    """
    node, indices, how = as_node(operand), as_node(start_indices), dimension_numbers
    if how.operand_batching_dims or how.start_indices_batching_dims:
        raise GraphValueError("gather: batching axes are not supported; graphc.vmap has them")
    extents = [as_size(size, "gather: a size") for size in slice_sizes]
    own = _mode("gather", mode)
    key = tuple(_windows("gather", node, indices, how.start_index_map, extents, own))
    found = Updates(node)[key].get(mode="fill" if own == "fill" else None, fill_value=fill_value)
    outer = indices.ndim - 1
    kept = [axis for axis in range(node.ndim) if axis not in how.collapsed_slice_dims]
    found = dimshuffle(found, (*range(outer), *(outer + axis for axis in kept)))
    return dimshuffle(found, _placed(outer, len(kept), how.offset_dims))


def _placed(outer: int, inner: int, window: Sequence[int]) -> list[int]:
    """Return an order of axes: the last `inner` go to the places `window`, the others before in the places left."""
    rest, own = iter(range(outer)), {place: outer + number for number, place in enumerate(window)}
    return [own[place] if place in own else next(rest) for place in range(outer + inner)]


def _scattered(
    name: str,
    operand: Any,
    indices: Any,
    updates: Any,
    how: ScatterDimensionNumbers,
    mode: Any,
    is_unique: bool,
    change: Any,
) -> Node:
    node, places, given = as_node(operand), as_node(indices), as_node(updates)
    if how.operand_batching_dims or how.scatter_indices_batching_dims:
        raise GraphValueError(f"{name}: batching axes are not supported; graphc.vmap has them")
    outer = places.ndim - 1
    others = [axis for axis in range(given.ndim) if axis not in how.update_window_dims]
    if len(others) != outer:
        raise RankError(f"{name}: {describe(given)} has {given.ndim} axes, {len(how.update_window_dims)} of windows")
    value = dimshuffle(given, (*others, *how.update_window_dims))
    window = iter(value.type.shape[outer:])
    extents: list[Size] = [1 if axis in how.inserted_window_dims else next(window) for axis in range(node.ndim)]
    own = _mode(name, mode)
    key = tuple(_windows(name, node, places, how.scatter_dims_to_operand_dims, extents, own))
    value = expand(value, [outer + axis for axis in how.inserted_window_dims])
    made: Node = change(
        Updates(node)[key], value, {"mode": "drop" if own == "fill" else None, "unique_indices": is_unique}
    )
    return made


def _scatter(name: str, doc: str) -> Callable[..., Node]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Node:
        def change(part: Any, value: Node, options: dict[str, Any]) -> Any:
            return getattr(part, name)(value, **options)

        return _scattered(own, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, change)

    own = (
        "scatter"
        if name == "set"
        else {"multiply": "scatter_mul", "subtract": "scatter_sub"}.get(name, f"scatter_{name}")
    )
    function.__name__ = function.__qualname__ = own
    function.__doc__ = f"""Return the operand with {doc}, as XLA's Scatter.

    scatter_indices: integers, whose last axis has the components of an index, one for each of
    `scatter_dims_to_operand_dims`. updates: a window for each index. dimension_numbers: `lax.ScatterDimensionNumbers`.
    mode: a window that is not within the operand is left out (by default), or moved into it ("clip"). unique_indices:
    True says that no element is written twice. Raises GraphValueError for batching axes, which graphc has by `vmap`.
    """
    return function


scatter = _scatter("set", "the windows at some indices replaced by the updates")
scatter_add = _scatter("add", "the updates added to the windows at some indices")
scatter_sub = _scatter("subtract", "the updates subtracted from the windows at some indices")
scatter_mul = _scatter("multiply", "the windows at some indices multiplied by the updates")
scatter_min = _scatter("min", "the smaller of the updates and the windows at some indices")
scatter_max = _scatter("max", "the larger of the updates and the windows at some indices")


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[Any] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Node:
    """Return the operand with `func` applied to the windows at some indices. update_shape: the shape that updates would
    have. The rest is as of `scatter`."""
    updates = filled(as_node(0.0), [as_size(size, "scatter_apply: a size") for size in update_shape])

    def change(part: Any, value: Node, options: dict[str, Any]) -> Any:
        return part.apply(func, **options)

    own = "scatter_apply"
    return _scattered(own, operand, scatter_indices, updates, dimension_numbers, mode, unique_indices, change)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Node:
    """Return the slices of `src` at integer vectors, one for each of `axes`: these axes go, and one of the length of
    the vectors comes first. Indices beyond the axis are moved into it.

        >>> lax.index_take(T.constant([[1, 2], [3, 4]]), (T.constant([1, 0]),), (1,)).eval()
        array([[2, 4],
               [1, 3]])
    """
    node = as_node(src)
    places = [normalise_axis(axis, node.ndim, "index_take") for axis in axes]
    rest = [axis for axis in range(node.ndim) if axis not in places]
    return Updates(dimshuffle(node, (*places, *rest)))[tuple(idxs)].get(mode="clip")
