"""How many bins a histogram has by a rule, of what its numbers are.

In: numbers, and the ends of the histogram. Out: a whole number, a node. A rule says how wide a bin is, as NumPy's rule
of the same name: 0 where there is no telling, which makes one bin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from graphc.ir.node import Node
from graphc.ops.elementwise import cast, elementwise
from graphc.tensor.creation import zeros
from graphc.tensor.elementary import ceil, floor, log2, logical_and, maximum, minimum, sqrt, where
from graphc.tensor.joining import concatenate
from graphc.tensor.order import searchsorted, sort
from graphc.tensor.quantiles import percentile
from graphc.tensor.ranges import arange
from graphc.tensor.reductions import argmin, ptp, std

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
    """How many bins there are between the ends; of whole numbers none is narrower than 1."""
    inside = x[logical_and(elementwise("greater_equal", x, first), elementwise("less_equal", x, last))]
    count = maximum(inside.shape[0], 1)
    # a number in place of none, so that there is a range and a median
    some = concatenate([inside, zeros((1,), x.type.dtype)], 0)[:count]
    width = RULES[rule](some, cast(count, "float64"), first, last)
    width = where(elementwise("greater", width, 0.0), maximum(width, 1.0) if is_whole else width, last - first)
    return maximum(cast(ceil((last - first) / width), "int64"), 1)
