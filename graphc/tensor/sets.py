"""Sets: the different elements of tensors, or slices along an axis, and which of them are in others.

In: tensors. Out: nodes whose sizes follow from values. What is sorted is told apart from what stands before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from graphc.arrays.dtypes import is_float, promote
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ops import order as ops, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.tensor.creation import zeros
from graphc.tensor.elementary import isnan, logical_and, logical_not, logical_or, maximum
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.order import argsort, searchsorted, sort
from graphc.tensor.ranges import arange
from graphc.tensor.reductions import cumsum
from graphc.tensor.shaping import flatten, moveaxis, normalise_axis

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _is_first(ranked: Node, equal_nan: bool) -> Node:
    """Which sorted elements, or rows, differ from those before. NaN differs from numbers, and unless NaN are equal from
    NaN."""
    place = arange(ranked.shape[0])
    before = ranked[maximum(place - 1, 0)]
    differ = elementwise("not_equal", ranked, before)
    if equal_nan and is_float(ranked.type.dtype):
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
    """The different elements of `x` in rising order, or its different slices along `axis`, in the order of their first
    elements, of equal ones the second, and so on. With them, where asked for, the place of the first of each, for each
    element (in the shape of `x`) or slice the place of its like among them, and how often each comes. Their number
    follows from the values. equal_nan: all NaN are one; those of slices never are, as in NumPy.

        >>> T.unique([3, 1, 3]).eval()
        array([1, 3])
    """
    node = as_node(x)
    if axis is None:
        values = flatten(node)
        order = argsort(values)
        shape, place = node.type.shape, 0
    else:
        place = normalise_axis(axis, node.ndim, f"unique of {describe(node)} of type {node.type}")
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
    """What `unique_all` gives."""

    values: Node
    indices: Node
    inverse_indices: Node
    counts: Node


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` gives."""

    values: Node
    counts: Node


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` gives."""

    values: Node
    inverse_indices: Node


def unique_all(x: Any) -> UniqueAllResult:
    """The different elements, the place of the first of each, the place of the like of each element, and counts; no NaN
    is another's like."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCountsResult:
    """The different elements and how often each comes; no NaN is another's like."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The different elements and for each element the place of its like; no NaN is another's like."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Node:
    """The different elements; no NaN is another's like."""
    found: Node = unique(x, equal_nan=False)
    return found


def isin(
    x: Any, test_elements: Any, invert: bool = False, *, assume_unique: bool = False, kind: str | None = None
) -> Node:
    """Which elements of `x` are among `test_elements`. assume_unique and kind ("sort", "table"), which say how NumPy
    finds them, change nothing; GraphValueError for another kind, GraphTypeError for a table of other than whole
    numbers."""
    node, others = as_node(x), sort(flatten(as_node(test_elements)))
    if kind not in (None, "sort", "table"):
        raise GraphValueError(f"isin: kind={kind!r} must be None, 'sort' or 'table'")
    if kind == "table" and (is_float(node.type.dtype) or is_float(others.type.dtype)):
        raise GraphTypeError(f"isin of {describe(node)}: kind='table' is for whole numbers, not {node.type.dtype}")
    found = elementwise("less", searchsorted(others, node), searchsorted(others, node, "right"))
    if is_float(node.type.dtype):
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
