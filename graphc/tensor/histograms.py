"""Counts of values: of whole numbers, and of numbers in bins along one axis or several.

    bincount([1, 3, 1])         [0, 2, 0, 1]
    histogram([1, 2, 5], 2)     [2, 1] and the edges [1, 3, 5]

In: tensors. Out: nodes, composed of gathers, scatters and sums. Counts have no derivative, sums of weights have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.dtypes import DISCRETE, is_float
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ops import shape as layout
from graphc.ops.at_hand import asked_size
from graphc.ops.checked import checked
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.reduce import reduction
from graphc.options import options
from graphc.tensor.creation import arange, linspace, ones, zeros
from graphc.tensor.elementary import (
    ceil,
    floor,
    isfinite,
    log2,
    logical_and,
    logical_not,
    maximum,
    minimum,
    sqrt,
    where,
)
from graphc.tensor.indexing import inc_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.reductions import argmin, cumsum, ptp, std
from graphc.tensor.shaping import flatten, known_number
from graphc.tensor.sorting import argsort, falls, searchsorted, sort
from graphc.tensor.statistics import percentile

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(x: Any, weights: Any = None, minlength: Any = 0, assert_nonneg: bool = False) -> Node:
    """The number of times that each whole number from 0 on is in the vector `x`, or the sums of its `weights`.

    The result has `minlength` elements at least: int64 counts, or float64 sums. Raises GraphTypeError for what is no
    vector of whole numbers; a call raises ShapeError for a negative number. `assert_nonneg` is Theano's and changes
    nothing.

        >>> T.bincount(T.constant([1, 3, 1])).eval()
        array([0, 2, 0, 1])
    """
    node = as_node(x)
    if node.ndim != 1 or node.type.dtype not in DISCRETE:
        raise GraphTypeError(f"bincount: {describe(node)} of type {node.type} is no vector of whole numbers")
    values = cast(node, "int64")
    with_none = concatenate([values, as_node(np.array([-1]))], 0)
    size = maximum(with_none.max() + 1, minlength)
    is_below = elementwise("less", concatenate([values, as_node(np.array([0]))], 0).min(), 0)
    message = f"bincount: {describe(node)} has a negative number"
    values = checked(values, [cast(logical_not(is_below), "int64")], message, "shape")
    kind = "int64" if weights is None else "float64"
    amounts = ones(values.shape, "int64") if weights is None else cast(as_node(weights), kind)
    return inc_subtensor(zeros((size,), kind)[values], amounts)


def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Node:
    """The edges of `histogram`."""
    if isinstance(bins, str) and bins not in RULES:
        raise GraphValueError(f"histogram: bins={bins!r} is no rule; there are {', '.join(RULES)}")
    if isinstance(bins, str) and weights is not None:
        raise GraphTypeError(f"histogram: no rule, bins={bins!r}, is for numbers with weights")
    bins = known_number(bins)
    if not isinstance(bins, int | np.integer | str):
        edges = as_node(bins)
        if edges.ndim == 1:
            rises = logical_not(falls(edges)[0])
            return checked(
                edges, [cast(rises, "int64")], f"histogram: the edges {describe(edges)} do not rise", "shape"
            )
        raise GraphTypeError(f"histogram: bins are a number or a vector of edges, not {describe(edges)}")
    first, last = _ends(flatten(as_node(x))) if range is None else map(as_node, range)
    kind = as_node(x).type.dtype if is_float(as_node(x).type.dtype) else "float64"
    first, last = cast(first, kind), cast(last, kind)
    numbers = logical_and(isfinite(first), isfinite(last))
    rises = logical_and(numbers, elementwise("less_equal", first, last))
    message = f"histogram of {describe(as_node(x))}: its range is not finite, or falls"
    first = checked(first, [cast(rises, "int64")], message, "shape")
    is_point = elementwise("equal", first, last)
    first, last = where(is_point, first - 0.5, first), where(is_point, last + 0.5, last)
    count: Any = bins
    if isinstance(bins, str):
        count = bins_by_rule(bins, cast(flatten(as_node(x)), kind), first, last, not is_float(as_node(x).type.dtype))
    return cast(linspace(first, last, count + 1), kind)


def _ends(values: Node) -> tuple[Node, Node]:
    """The least and the largest of numbers; 0 and 1 where there are none."""
    numbers = cast(values, values.type.dtype if is_float(values.type.dtype) else "float64")
    least, largest = -reduction("supremum", -numbers, (0,)), reduction("supremum", numbers, (0,))
    is_empty = elementwise("equal", values.shape[0], 0)
    return where(is_empty, 0.0, least), where(is_empty, 1.0, largest)


def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Node, Node]:
    """Counts of elements in bins, the last of which has both its edges, and the edges. bins: their number, their
    rising edges, or NumPy's rule that tells their number of elements without weights: "auto", "doane", "fd", "rice",
    "scott", "sqrt", "stone" or "sturges". density: the counts over their sum and the bins' widths. weights: what
    elements count as.

        >>> [each.eval().tolist() for each in T.histogram(T.constant([1.0, 2.0, 5.0]), 2)]
        [[2, 1], [1.0, 3.0, 5.0]]
    """
    edges = histogram_bin_edges(x, bins, range, weights)
    values = flatten(as_node(x))
    inner, outer = edges[:-1], edges[-1:]
    if weights is None:
        ranked = sort(values)
        below = concatenate([searchsorted(ranked, inner), searchsorted(ranked, outer, "right")], 0)
    else:
        order = argsort(values)
        amounts = flatten(as_node(weights))[order]
        sums = concatenate([zeros((1,), amounts.type.dtype), cumsum(amounts)], 0)
        ranked = values[order]
        below = sums[concatenate([searchsorted(ranked, inner), searchsorted(ranked, outer, "right")], 0)]
    counts = below[1:] - below[:-1]
    if density:
        widths = edges[1:] - edges[:-1]
        return counts / (widths * cast(counts.sum(), options.floatX)), edges
    return counts, edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Node, tuple[Node, ...]]:
    """Counts of points in boxes, as float64, and the edges of the boxes along each axis. sample:
    a matrix with a point in each row, or one vector for each axis. bins: their number, for each axis or for all, or for
    each axis its edges. range: the outer edges of each axis, None for those of the points. density, weights: as in
    `histogram`."""
    columns = _coordinates(sample)
    given = [bins] * len(columns) if isinstance(bins, int | np.integer) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    if len(given) != len(columns) or len(ranges) != len(columns):
        raise GraphTypeError(
            f"histogramdd: {len(columns)} axes, of which {len(given)} have bins and {len(ranges)} a range"
        )
    edges = tuple(histogram_bin_edges(*each) for each in zip(columns, given, ranges, strict=True))
    place, total = as_node(np.int64(0)), as_node(np.int64(1))
    for column, line in zip(columns, edges, strict=True):
        # what lies on the last edge is in the last bin; on both sides there is one more, for what is outside
        number = searchsorted(line, column, "right") - cast(elementwise("equal", column, line[-1]), "int64")
        place, total = place * (line.shape[0] + 1) + number, total * (line.shape[0] + 1)
    amounts = ones(place.shape, "float64") if weights is None else cast(flatten(as_node(weights)), "float64")
    counts = inc_subtensor(zeros((total,), "float64")[place], amounts)
    whole = layout.reshape(counts, [sizes.add(line.type.shape[0], 1) for line in edges])
    found = whole[(slice(1, -1),) * len(edges)]
    if density:
        found = found / found.sum()
        for axis, line in enumerate(edges):
            order = ["x"] * len(edges)
            found = found / (line[1:] - line[:-1]).dimshuffle(*order[:axis], 0, *order[axis + 1 :])
    return found, edges


def _coordinates(sample: Any) -> list[Node]:
    """The vectors of the points' coordinates."""
    if isinstance(sample, list | tuple):
        return [flatten(as_node(each)) for each in sample]
    points = as_node(sample)
    if points.ndim == 1:
        return [points]
    count = asked_size(points.type.shape[1]) if points.ndim == 2 else None
    if not isinstance(count, int):
        raise GraphTypeError(
            f"histogramdd of {describe(points)} of type {points.type}: a matrix of a known number of columns is meant"
        )
    return [points[:, axis] for axis in np.arange(count).tolist()]


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Node, Node, Node]:
    """`histogramdd` of points with two coordinates: counts, and the edges along each. bins: a number, the edges of both
    axes, or one of these for each axis."""
    is_pair = isinstance(bins, Sequence) and len(bins) == 2
    both = bins if is_pair or isinstance(bins, int | np.integer) else [as_node(bins)] * 2
    found, (first, second) = histogramdd([x, y], both, range, density, weights)
    return found, first, second


# --- binning ----------------------------------------------------------------------------------------------------------
# How many bins a histogram has by a rule, of what its numbers are.
#
# In: numbers, and the ends of the histogram. Out: a whole number, a node. A rule says how wide a bin is, as NumPy's
# rule of the same name: 0 where there is no telling, which makes one bin.


Rule: TypeAlias = Callable[[Node, Node, Node, Node], Node]
"""The width of a bin, of numbers, how many they are in float64, and the ends. What is computed of how many they are is
rounded to the numbers' dtype, as NumPy's Python floats are."""


def _like(x: Node, number: Node) -> Node:
    return cast(number, x.type.dtype)


def _by_square_root(x: Node, count: Node, first: Node, last: Node) -> Node:
    return ptp(x) / _like(x, sqrt(count))


def _sturges(x: Node, count: Node, first: Node, last: Node) -> Node:
    return ptp(x) / _like(x, log2(count) + 1.0)


def _rice(x: Node, count: Node, first: Node, last: Node) -> Node:
    return ptp(x) / _like(x, 2.0 * count ** (1.0 / 3.0))


def _scott(x: Node, count: Node, first: Node, last: Node) -> Node:
    return _like(x, (24.0 * math.sqrt(math.pi) / count) ** (1.0 / 3.0)) * std(x)


def _doane(x: Node, count: Node, first: Node, last: Node) -> Node:
    """Sturges' rule with an allowance for skewness."""
    width = std(x)
    is_known = logical_and(elementwise("greater", count, 2.0), elementwise("greater", width, 0.0))
    skewness = (((x - x.mean()) / where(is_known, width, 1.0)) ** 3).mean()
    usual = sqrt(6.0 * maximum(count - 2.0, 1.0) / ((count + 1.0) * (count + 3.0)))
    return _like(x, where(is_known, ptp(x) / (1.0 + log2(count) + log2(1.0 + abs(skewness) / usual)), 0.0))


def _freedman_diaconis(x: Node, count: Node, first: Node, last: Node) -> Node:
    return 2.0 * (percentile(x, 75) - percentile(x, 25)) * _like(x, count ** (-1.0 / 3.0))


def _automatic(x: Node, count: Node, first: Node, last: Node) -> Node:
    widest = maximum(_freedman_diaconis(x, count, first, last), 0.5 * _by_square_root(x, count, first, last))
    return minimum(widest, _sturges(x, count, first, last))


def _stone(x: Node, count: Node, first: Node, last: Node) -> Node:
    """The number of bins, up to a limit, at which what leaving one number out tells of the squared error is least."""
    limit = maximum(cast(floor(sqrt(count)), "int64"), 100)
    bins, place = arange(1, limit + 1).dimshuffle(0, "x"), arange(limit + 1).dimshuffle("x", 0)
    edges = place * ((last - first) / bins) + first
    below = searchsorted(sort(x), elementwise("where", elementwise("less", place, bins), edges, math.inf))
    shares = (below[:, 1:] - below[:, :-1]) / count
    error = (2.0 - (count + 1.0) * (shares * shares).sum(axis=1)) * bins[:, 0]
    is_known = logical_and(elementwise("greater", count, 1.0), elementwise("greater", ptp(x), 0.0))
    return _like(x, where(is_known, ptp(x) / (argmin(error) + 1), 0.0))


RULES: Mapping[str, Rule] = {
    "auto": _automatic,
    "doane": _doane,
    "fd": _freedman_diaconis,
    "rice": _rice,
    "scott": _scott,
    "sqrt": _by_square_root,
    "stone": _stone,
    "sturges": _sturges,
}


def bins_by_rule(rule: str, x: Node, first: Node, last: Node, is_whole: bool) -> Node:
    """The number of bins between the ends; of whole numbers none is narrower than 1."""
    inside = x[logical_and(elementwise("greater_equal", x, first), elementwise("less_equal", x, last))]
    count = maximum(inside.shape[0], 1)
    # a number in place of none, so that there is a range and a median
    some = concatenate([inside, zeros((1,), x.type.dtype)], 0)[:count]
    width = RULES[rule](some, cast(count, "float64"), first, last)
    width = where(elementwise("greater", width, 0.0), maximum(width, 1.0) if is_whole else width, last - first)
    return maximum(cast(ceil((last - first) / width), "int64"), 1)
