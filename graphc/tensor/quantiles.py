"""Quantiles: medians, percentiles, with NaN and without, by any of NumPy's methods.

In: tensors. Out: nodes: what is sorted, at the places that a method says, with a derivative by elements and by parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float, promote
from graphc.errors import GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, constant_value, describe
from graphc.ops import shape as layout
from graphc.ops.checked import checked
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.tensor.elementary import floor, isfinite, isnan, logical_and, logical_not, maximum, minimum, where
from graphc.tensor.order import sort
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import flatten, moveaxis, normalise_axes

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""alpha and beta of the place n q + alpha + q (1 - alpha - beta) - 1 (Hyndman and Fan, The American Statistician 50,
1996)."""
DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
"""Those that take an element as it is."""
METHODS = (*CONTINUOUS, *DISCRETE, "averaged_inverted_cdf", "midpoint")
Axes = int | Sequence[int] | None


def quantile(x: Any, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Node:
    """The element below which the part `q` of the elements along `axis` (one, several, None for all) lies.

    Between two elements it is found by one of NumPy's methods. The axes of `q` come first. NaN where an element is NaN.
    A method that takes an element as it is gives the dtype of `x`; others give integers' quantiles in float64.

        >>> T.quantile(T.constant([1.0, 2.0, 4.0]), [0.5, 0.75]).eval()
        array([2., 3.])

    Raises GraphValueError for another method. A call raises ShapeError where a part is not between 0 and 1, IndexError
    where there are no elements.
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


def nanquantile(x: Any, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`quantile` of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanquantile", x, q, axis, method, keepdims, without_nan=True, of_none=np.nan)


def percentile(x: Any, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`quantile` of q / 100.

    >>> T.percentile(T.constant([1.0, 2.0, 4.0]), 50).eval()
    array(2.)
    """
    return quantile(x, _part(q), axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`nanquantile` of q / 100."""
    return nanquantile(x, _part(q), axis, method, keepdims)


def _part(percent: Any) -> Any:
    """A hundredth of it; of a Python number a Python number."""
    return percent / 100 if is_number(percent) else elementwise("true_div", percent, 100)


def median(x: Any, axis: Axes = None, keepdims: bool = False) -> Node:
    """The middle element along `axis`, of an even number the mean of the two in the middle; NaN where one is NaN, and
    where there is none.

        >>> T.median(T.constant([1.0, 5.0, 2.0, 4.0])).eval()
        array(3.)
    """
    return _mean_of(_quantile("median", x, 0.5, axis, "midpoint", keepdims, of_none=np.nan))


def nanmedian(x: Any, axis: Axes = None, keepdims: bool = False) -> Node:
    """`median` of the elements that are not NaN; NaN where there are none."""
    return _mean_of(nanquantile(x, 0.5, axis, "midpoint", keepdims))


def _mean_of(middle: Node) -> Node:
    """With 0.0 for -0.0, as a mean of one or two elements is."""
    return elementwise("add", middle, 0.0)


def _quantile(
    what: str,
    x: Any,
    q: Any,
    axis: Axes,
    method: str,
    keepdims: bool,
    without_nan: bool = False,
    of_none: float | None = None,
) -> Node:
    """`quantile`, of the elements that are not NaN with `without_nan`; of no elements `of_none`, None for an error."""
    if method not in METHODS:
        raise GraphValueError(f"{what}: method {method!r} must be one of {', '.join(METHODS)}")
    node = as_node(x)
    axes = normalise_axes(tuple(range(node.ndim)) if axis is None else axis, node.ndim, f"{what} of {describe(node)}")
    others = [place for place in range(node.ndim) if place not in axes]
    shape = node.type.shape
    kept, count = [shape[place] for place in others], sizes.product([shape[place] for place in axes])
    rows = layout.reshape(layout.dimshuffle(node, (*others, *axes)), (*kept, count))
    part = _checked_parts(what, as_node(q))
    is_element = method in DISCRETE or (method == "linear" and not is_float(part.type.dtype))
    kind = rows.type.dtype if is_element else _kind(rows.type.dtype, q, part.type.dtype)
    ranked = _with_one(cast(sort(rows), kind), f"{what} of {describe(node)}: it has no elements", of_none)
    number = _count(rows) if without_nan and is_float(kind) else rows.shape[-1]
    low, high, rest = _places(cast(flatten(part), "float64"), cast(number, "float64"), method)
    if number.ndim:
        first, second = (take_along_axis(ranked, place, -1) for place in (low, high))
        is_lost = elementwise("less", number, 1)
    else:
        first, second = ranked[..., low], ranked[..., high]
        is_lost = isnan(ranked[..., -1]).dimshuffle(*range(len(kept)), "x")
    found = first if is_element else _between(first, second, cast(rest, kind))
    found = moveaxis(where(is_lost, np.nan, found) if is_float(kind) else found, -1, 0)
    if keepdims:
        kept = [1 if place in axes else size for place, size in enumerate(shape)]
    return cast(layout.reshape(found, (*part.type.shape, *kept)), kind)


def _kind(dtype: str, q: Any, parts: str) -> str:
    """The dtype of what lies between two elements: a part that is a Python number leaves that of floats as it is."""
    if is_number(q):
        return dtype if is_float(dtype) else "float64"
    return promote(dtype, parts if is_float(parts) else "float64")


def _checked_parts(what: str, q: Node) -> Node:
    message = f"{what}: the parts {describe(q)} must be between 0 and 1"
    known = constant_value(q)
    if known is None:
        within = logical_and(elementwise("greater_equal", q, 0), elementwise("less_equal", q, 1))
        return checked(q, [cast(within.all(), "int64")], message, "shape")
    if not ((known >= 0) & (known <= 1)).all():
        raise ShapeError(message)
    return q


def _between(first: Node, second: Node, rest: Node) -> Node:
    """What lies a part of the way from one to another: as NumPy's, that each end is met exactly, with 0.0 for -0.0 at
    the first. Where the way is infinite, as NumPy's median."""
    apart = second - first
    found = where(elementwise("greater_equal", rest, 0.5), second - apart * (1.0 - rest), first + apart * rest)
    found = where(isfinite(apart), found, first * (1.0 - rest) + second * rest)
    return where(elementwise("greater", rest, 0.0), where(elementwise("less", rest, 1.0), found, second), first + 0.0)


def _with_one(ranked: Node, message: str, of_none: float | None) -> Node:
    """Sorted rows; where these are empty there is `of_none` in each, or an error where that or its dtype is none."""
    shape = ranked.type.shape
    if isinstance(shape[-1], int) and shape[-1]:
        return ranked
    if of_none is None or not is_float(ranked.type.dtype):
        return checked(ranked, [cast(elementwise("greater", ranked.shape[-1], 0), "int64")], message, "index")
    lost = layout.filled(as_node(np.array(of_none, ranked.type.dtype)), (*shape[:-1], 1))
    wide = layout.concatenate([ranked, lost], ranked.ndim - 1)
    size = maximum(ranked.shape[-1], 1)
    return wide[..., :size]


def _count(rows: Node) -> Node:
    """How many elements of each row are numbers."""
    return cast(logical_not(isnan(rows)), "int64").sum(axis=-1, keepdims=True)


def _places(q: Node, count: Node, method: str) -> tuple[Node, Node, Node]:
    """The places of two elements, and what of the way from the first to the second is taken."""
    alpha, beta = CONTINUOUS.get(method, (1.0, 1.0))
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        place = count * q - (1.5 if method == "closest_observation" else 1.0)
    elif alpha == beta == 1.0:
        place = (count - 1.0) * q
    else:
        place = count * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    last = maximum(cast(count, "int64") - 1, 0)
    below = floor(place)
    rest = place - below
    is_whole = elementwise("equal", rest, 0.0)

    def at(number: Node) -> Node:
        return minimum(maximum(cast(number, "int64"), 0), last)

    match method:
        case "lower":
            chosen = below
        case "higher":
            chosen = elementwise("ceil", place)
        case "nearest":
            chosen = elementwise("rint", place)
        case "inverted_cdf":
            chosen = where(is_whole, below, below + 1.0)
        case "closest_observation":
            is_odd = elementwise("equal", elementwise("mod", below, 2.0), 1.0)
            chosen = where(logical_and(is_whole, is_odd), below, below + 1.0)
        case "midpoint":
            return at(below), at(below + 1.0), where(is_whole, 0.0, 0.5)
        case "averaged_inverted_cdf":
            return at(below), at(below + 1.0), where(is_whole, 0.5, 1.0)
        case _:
            return at(below), at(below + 1.0), rest
    return at(chosen), at(chosen), rest * 0.0
