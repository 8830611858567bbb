"""Sorting, searching among sorted elements, and sets of elements.

    argsort([3, 1, 2])          [1, 2, 0]
    searchsorted([1, 3], 2)     1
    unique([3, 1, 3])           [1, 3]

In: tensors. Out: nodes, composed of the ops of `ops/lines.py`. NaN is the largest of all numbers. Sorting is stable,
and its derivative goes through the permutation; what counts or ranks has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphc.arrays.dtypes import INTEGERS, is_float, is_inexact, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, constant_value, describe
from graphc.ops import lines as ops, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.identity import checked
from graphc.ops.questions import asked_size
from graphc.tensor.creation import arange, zeros
from graphc.tensor.elementary import isnan, logical_and, logical_not, logical_or, maximum, minimum, where
from graphc.tensor.indexing import flip, set_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.reductions import cumsum
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import flatten, label_operand, moveaxis, normalise_axis

__all__ = [
    "argpartition", "argsort", "argtopk", "digitize", "intersect1d", "isin", "lexsort", "partition", "searchsorted",
    "setdiff1d", "setxor1d", "sort", "topk", "topk_and_argtopk", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _by_rows(x: Any, axis: Any) -> tuple[Node, int]:
    """The axis that is meant as the last, and where it was; all elements in one row where it is None."""
    node = as_node(x)
    if axis is None:
        return flatten(node), 0
    if not node.ndim:
        raise RankError(f"topk of {describe(node)} of type {node.type}: a scalar has no axis")
    place = normalise_axis(axis, node.ndim, label_operand("topk", node))
    return moveaxis(node, place, -1), place


def _along(what: str, ordered: Callable[[Node], Node], x: Any, axis: Any) -> Node:
    """Apply an op for the second of three axes along an axis of an array, keeping its shape."""
    node = as_node(x)
    if isinstance(axis, Node):
        known = constant_value(axis)
        if known is None:
            return _along_any(what, ordered, node, axis)
        axis = int(known)
    if axis is None:
        node, axis = flatten(node), 0
    message = f"{what} of {describe(node)} of type {node.type}"
    if not node.ndim:
        raise RankError(f"{message}: a scalar has no axis")
    place, shape = normalise_axis(axis, node.ndim, message), node.type.shape
    parts = (sizes.product(shape[:place]), shape[place], sizes.product(shape[place + 1 :]))
    return layout.reshape(ordered(layout.reshape(node, parts)), shape)


def _along_any(what: str, ordered: Callable[[Node], Node], node: Node, axis: Node) -> Node:
    """The same along an axis that only a call tells: that of all that are made."""
    if axis.ndim or not node.ndim:
        raise GraphTypeError(f"{what}: the axis {describe(axis)} of type {axis.type} is no axis of {describe(node)}")
    number = cast(axis, "int64")
    within = logical_and(elementwise("greater_equal", number, -node.ndim), elementwise("less", number, node.ndim))
    message = f"{what} of {describe(node)}: the axis {describe(axis)} is none of its {node.ndim}"
    place = elementwise("mod", checked(number, [cast(within, "int64")], message, "shape"), node.ndim)
    found = _along(what, ordered, node, 0)
    for each in range(1, node.ndim):
        found = where(elementwise("equal", place, each), _along(what, ordered, node, each), found)
    return found


# --- sorting --------------------------------------------------------------------------------------------------------


def sort(x: Any, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
    """The elements along `axis` in rising order, of all axes where it is None; NaN comes last. `kind` is NumPy's, and
    changes nothing: sorting is stable. An axis may be a scalar variable. Raises AxisError for a wrong axis.

        >>> T.sort([3.0, 1.0, 2.0]).eval()
        array([1., 2., 3.])
    """
    return _along("sort", ops.sort, x, axis)


def argsort(x: Any, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
    """The places of the elements along `axis` in rising order, int64; equal elements stay in order, NaN comes last.

    Raises AxisError for a wrong axis.

        >>> T.argsort(T.constant([3.0, 1.0, 2.0])).eval()
        array([1, 2, 0])
    """
    return _along("argsort", ops.argsort, x, axis)


def lexsort(keys: Any, axis: int = -1) -> Node:
    """The places that sort by several keys of one shape: by the last of them, equal ones by the one before, and so on;
    keys: a sequence of tensors, or one along the first axis of which they stand."""
    if isinstance(keys, list | tuple):
        parts = [as_node(key) for key in keys]
    else:
        whole = as_node(keys)
        count = asked_size(whole.type.shape[0]) if whole.ndim else 0
        if not isinstance(count, int):
            raise GraphValueError(
                f"lexsort of {describe(whole)} of type {whole.type}: the number of keys must be known"
            )
        parts = [whole[number] for number in range(count)]
    if not parts:
        raise GraphValueError("lexsort: need sequence of keys with len > 0")
    order = argsort(parts[0], axis)
    for key in parts[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def _with_place(what: str, x: Any, kth: Any, axis: Any) -> Node:
    """An array that has an element `kth` along an axis; one without elements need not."""
    node, places = as_node(x), as_node(kth)
    if is_float(places.type.dtype):
        raise GraphTypeError(f"{what}: kth {describe(places)} of type {places.type} is no whole number")
    size = node.size if axis is None else node.shape[axis]
    within = logical_and(elementwise("greater_equal", places, -size), elementwise("less", places, size)).all()
    held = logical_or(within, elementwise("equal", size, 0))
    message = f"{what} of {describe(node)}: kth {describe(places)} is none of its places"
    return checked(node, [cast(held, "int64")], message, "shape")


def partition(x: Any, kth: Any, axis: int | None = -1, kind: str | None = None, order: None = None) -> Node:
    """An array in which element `kth` along `axis` stands where sorting would put it, smaller ones before and larger
    ones after: all of it is sorted here. A `kth` beyond the ends is an error of the call."""
    return sort(_with_place("partition", x, kth, axis), axis)


def argpartition(x: Any, kth: Any, axis: int | None = -1, kind: str | None = None, order: None = None) -> Node:
    """The indices that `partition` puts in order: `x[argpartition(x, kth)]` is `partition(x, kth)` of a vector."""
    return argsort(_with_place("argpartition", x, kth, axis), axis)


def topk_and_argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> tuple[Node, Node]:
    """The `kth` largest elements along `axis`, the largest first, or for a negative `kth` the smallest, the smallest
    first; and their places."""
    rows, place = _by_rows(x, axis)
    places = _first(ops.argtop, rows, kth)
    values = take_along_axis(rows, places, -1)
    return moveaxis(values, -1, place), cast(moveaxis(places, -1, place), idx_dtype)


def _first(found: Callable[[Node, Node], Node], rows: Node, kth: Any) -> Node:
    """The `kth` first elements of each row, found by an op for rows."""
    count = as_node(kth)
    if count.ndim or is_float(count.type.dtype):
        raise GraphTypeError(f"topk: kth is a whole number, not {describe(count)} of type {count.type}")
    number = cast(count, "int64")
    wanted = zeros((minimum(abs(number), rows.shape[-1]),), "int64") + number
    outer, size = rows.type.shape[:-1], rows.type.shape[-1]
    made = found(layout.reshape(rows, (sizes.product(outer), size)), wanted)
    return layout.reshape(made, (*outer, made.type.shape[1]))


def topk(x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64") -> Node:
    """The `kth` largest elements along `axis`, the largest first; of a negative `kth` the smallest.

    >>> T.topk(T.constant([3.0, 1.0, 2.0]), 2).eval()
    array([3., 2.])
    """
    rows, place = _by_rows(x, axis)
    return moveaxis(_first(ops.top, rows, kth), -1, place)


def argtopk(x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64") -> Node:
    """The places of the `kth` largest elements along `axis`, the largest first; of a negative `kth` the smallest."""
    rows, place = _by_rows(x, axis)
    return cast(moveaxis(_first(ops.argtop, rows, kth), -1, place), idx_dtype)


# --- places among sorted elements -----------------------------------------------------------------------------------


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> Node:
    """The places at which the elements of `v` would be put into the sorted vector `x`, int64: before equal elements or,
    with side="right", after them. sorter: the places that sort `x`, where it is not sorted.

        >>> T.searchsorted(T.constant([1, 2, 4]), [2, 3]).eval()
        array([1, 2])
    """
    node, values = as_node(x), as_node(v)
    if node.ndim != 1:
        raise RankError(f"searchsorted: {describe(node)} of type {node.type} is no vector")
    if side not in ops.SIDES:
        raise GraphValueError(f"searchsorted: side {side!r} must be 'left' or 'right'")
    if sorter is not None:
        places = as_node(sorter)
        if places.ndim != 1 or places.type.dtype not in INTEGERS:
            what = f"sorter {describe(places)} of type {places.type}"
            raise RankError(f"searchsorted: {what} is no vector of integers")
        node = node[places]
    dtype, shape = promote(node.type.dtype, values.type.dtype), values.type.shape
    line = layout.reshape(cast(values, dtype), (sizes.product(shape),))
    return layout.reshape(ops.searchsorted(cast(node, dtype), line, side), shape)


def falls(edges: Node) -> tuple[Node, Node]:
    """Tell whether an element of a vector is less than the one before, and whether one is more; NaN is more than
    numbers."""
    before, after = edges[:-1], edges[1:]
    less, more = elementwise("less", after, before), elementwise("less", before, after)
    if is_float(edges.type.dtype):
        left, right = isnan(before), isnan(after)
        less = logical_or(less, logical_and(left, logical_not(right)))
        more = logical_or(more, logical_and(right, logical_not(left)))
    return less.any(), more.any()


def digitize(x: Any, bins: Any, right: bool = False) -> Node:
    """The number of the bin of each element, as NumPy's digitize: i where bins[i - 1] <= x < bins[i], with `right`
    bins[i - 1] < x <= bins[i], of bins that rise; of falling ones the other way round. Others are an error of the
    call."""
    edges, values = as_node(bins), as_node(x)
    if edges.ndim != 1:
        raise RankError(f"digitize: the bins {describe(edges)} of type {edges.type} are no vector")
    side = "left" if right else "right"
    less, more = falls(edges)
    message = f"digitize: the bins {describe(edges)} neither rise nor fall"
    edges = checked(edges, [cast(logical_not(logical_and(less, more)), "int64")], message, "shape")
    rising = searchsorted(edges, values, side)
    falling = edges.shape[0] - searchsorted(flip(edges, 0), values, side)
    return where(less, falling, rising)


# --- sets -------------------------------------------------------------------------------------------------------------
# Sets: the different elements of tensors, or slices along an axis, and which of them are in others.
#
# In: tensors. Out: nodes whose sizes follow from values. What is sorted is told apart from what stands before.


def _is_first(ranked: Node, equal_nan: bool) -> Node:
    """A mask of the sorted elements, or rows, that differ from those before. NaN differs from numbers, and unless NaN
    are equal from NaN."""
    place = arange(ranked.shape[0])
    before = ranked[maximum(place - 1, 0)]
    differ = elementwise("not_equal", ranked, before)
    if equal_nan and is_inexact(ranked.type.dtype):
        differ = logical_and(differ, logical_not(logical_and(isnan(ranked), isnan(before))))
    if ranked.ndim == 2:
        differ = differ.any(axis=1)
    return logical_or(differ, elementwise("equal", place, 0))


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the different elements of `x` in rising order, or its different slices along `axis` in lexicographic
    order.

    return_index: also the index in `x` at which each of them occurs first. return_inverse: also, for each element (in
    the shape of `x`) or slice, its index in the result. return_counts: also how often each occurs. The size of the
    result depends on the values. equal_nan: all NaN are one element; in slices NaN are never equal, as in NumPy.

        >>> T.unique([3, 1, 3]).eval()
        array([1, 3])
    """
    node = as_node(x)
    if axis is None:
        values = flatten(node)
        order = argsort(values)
        shape, place = node.type.shape, 0
    else:
        place = normalise_axis(axis, node.ndim, label_operand("unique", node))
        values = moveaxis(node, place, 0)
        order = ops.lexorder(layout.reshape(values, (values.type.shape[0], sizes.product(values.type.shape[1:]))))
        shape = values.type.shape[:1]
    ranked = values[order]
    lines = ranked if axis is None else layout.reshape(ranked, (shape[0], sizes.product(values.type.shape[1:])))
    first = _is_first(lines, equal_nan and axis is None)
    results = [moveaxis(ranked[first], 0, place)]
    if return_index:
        results.append(order[first])
    if return_inverse:
        places = cumsum(cast(first, "int64")) - 1
        inverse = set_subtensor(zeros((values.shape[0],), "int64")[order], places)
        results.append(layout.reshape(inverse, shape))
    if return_counts:
        begins = arange(values.shape[0])[first]
        ends = concatenate([begins, values.shape[:1]], 0)
        results.append(ends[1:] - begins)
    return results[0] if len(results) == 1 else tuple(results)


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Node
    indices: Node
    inverse_indices: Node
    counts: Node


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Node
    counts: Node


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Node
    inverse_indices: Node


def unique_all(x: Any) -> UniqueAllResult:
    """The different elements, the index at which each occurs first, for each element of `x` its index among them, and
    how often each occurs. NaN are never equal."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCountsResult:
    """The different elements, and how often each occurs. NaN are never equal."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The different elements, and for each element of `x` its index among them. NaN are never equal."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Node:
    """The different elements. NaN are never equal."""
    found: Node = unique(x, equal_nan=False)
    return found


def isin(
    x: Any, test_elements: Any, invert: bool = False, *, assume_unique: bool = False, kind: str | None = None
) -> Node:
    """True for the elements of `x` that are among `test_elements`. assume_unique and kind ("sort", "table"), which say
    how NumPy finds them, change nothing; GraphValueError for another kind, GraphTypeError for a table of other than
    whole numbers."""
    node, others = as_node(x), sort(flatten(as_node(test_elements)))
    if kind not in (None, "sort", "table"):
        raise GraphValueError(f"isin: kind={kind!r} must be None, 'sort' or 'table'")
    if kind == "table" and (is_float(node.type.dtype) or is_float(others.type.dtype)):
        raise GraphTypeError(f"isin of {describe(node)}: kind='table' is for whole numbers, not {node.type.dtype}")
    found = elementwise("less", searchsorted(others, node), searchsorted(others, node, "right"))
    if is_inexact(node.type.dtype):
        found = logical_and(found, logical_not(isnan(node)))
    return logical_not(found) if invert else found


def union1d(x: Any, y: Any) -> Node:
    """The elements of either, each once, in rising order."""
    if is_number(x) or is_number(y):  # which have no dtype of their own
        kind = promote(*(one if is_number(one) else as_node(one).type.dtype for one in (x, y)))
        x, y = as_node(x, kind), as_node(y, kind)
    found: Node = unique(concatenate([flatten(as_node(x)), flatten(as_node(y))], 0))
    return found


def intersect1d(x: Any, y: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements of both, each once, in rising order; with them, where asked for, the place of the first of each in
    `x` and in `y`. assume_unique changes nothing.

        >>> [each.eval().tolist() for each in T.intersect1d([3, 1, 3], [2, 3], return_indices=True)]
        [[3], [0], [1]]
    """
    kind = promote(as_node(x).type.dtype, as_node(y).type.dtype)
    own, first = unique(x, return_index=True)
    is_common = isin(own, y)
    if not return_indices:
        return cast(own[is_common], kind)
    others, there = unique(y, return_index=True)
    common = own[is_common]
    return cast(common, kind), first[is_common], there[searchsorted(others, common)]


def setdiff1d(x: Any, y: Any, assume_unique: bool = False) -> Node:
    """The elements of `x` that are not in `y`, each once, in rising order; with `assume_unique` those of `x` in its own
    order, as in NumPy."""
    own: Node = flatten(as_node(x)) if assume_unique else unique(x)
    return own[isin(own, y, invert=True)]


def setxor1d(x: Any, y: Any, assume_unique: bool = False) -> Node:
    """The elements of one of the two alone, each once, in rising order. assume_unique changes nothing."""
    return sort(concatenate([setdiff1d(x, y), setdiff1d(y, x)], 0))
