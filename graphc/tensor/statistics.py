"""Covariances, reductions that pass over NaN, and quantiles.

    nanmean([1, nan, 3])        2
    quantile([1, 2, 4], 0.75)   3

In: tensors, axes as reductions take them. Out: nodes composed of reductions, and of sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import UNSIGNED, is_float, promote
from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, constant_value, describe, literal
from graphc.ops import shape as layout
from graphc.ops.at_hand import asked_equal
from graphc.ops.checked import checked
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.tensor.creation import zeros_like
from graphc.tensor.elementary import floor, isfinite, isnan, logical_and, logical_not, maximum, minimum, sqrt, where
from graphc.tensor.indexing import diagonal
from graphc.tensor.joining import concatenate
from graphc.tensor.products import dot
from graphc.tensor.reductions import (
    all as all_of,
    any as any_of,
    argmax,
    argmin,
    average,
    cumprod,
    cumsum,
    max as max_of,
    min as min_of,
    prod,
    sum as sum_of,
)
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import atleast_2d, flatten, moveaxis, normalise_axes, normalise_axis, squeeze, transpose
from graphc.tensor.sorting import sort
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "corrcoef", "cov", "cumulative_prod", "cumulative_sum", "median", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "percentile", "quantile",
]  # fmt: skip

# --- covariances ----------------------------------------------------------------------------------------------------


def _rows(m: Any) -> Node:
    """A matrix of a vector, which is its row, or of a matrix, in float64."""
    node = as_node(m)
    if node.ndim > 2:
        raise RankError(f"cov of {describe(node)} of type {node.type}: it has more than two axes")
    wide: Node = atleast_2d(cast(node, "float64"))
    return wide


def _weights(name: str, w: Any) -> Node:
    """A vector of weights in float64, none of them negative, those that count whole."""
    node = as_node(w)
    if node.ndim != 1:
        raise ShapeError(f"cov: {name} {describe(node)} of type {node.type} is no vector")
    conditions = (
        [(elementwise("greater_equal", node, 0), "cannot be negative")] if node.type.dtype not in UNSIGNED else []
    )
    if name == "fweights" and is_float(node.type.dtype):
        conditions.append((elementwise("equal", node, elementwise("rint", node)), "must be whole numbers"))
    made = cast(node, "float64")
    for condition, what in conditions:
        said = f"cov: {name} {describe(node)} {what}"
        made = checked(made, (cast(all_of(condition), "int64"),), said, "value")
    return made


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Node:
    """The covariance matrix of variables, the rows of `m` (columns without `rowvar`) and of `y`; a scalar of one.

    It is float64, divided by the number of observations less `ddof` (1; 0 with `bias`). `fweights` says how often each
    observation counts, `aweights` how much. A matrix `y` that is known to have one row is one variable, as in
    NumPy. Raises GraphValueError for weights below 0 and a `ddof` that is not whole.

        >>> T.cov(T.constant([[1.0, 2.0], [3.0, 1.0]])).eval()
        array([[ 0.5, -1. ],
               [-1. ,  2. ]])
    """
    x = _rows(m)
    if not rowvar and as_node(m).ndim == 2:
        x = transpose(x)
    if y is not None:
        more = _rows(y)
        x = concatenate([x, more if rowvar or asked_equal(more.type.shape[0], 1) else transpose(more)], 0)
    less = int(ddof if ddof is not None else not bias)
    if ddof is not None and less != ddof:
        raise GraphValueError(f"cov: ddof {ddof} is not whole")
    weights = [_weights(name, w) for name, w in (("fweights", fweights), ("aweights", aweights)) if w is not None]
    weight: Node | None = None if not weights else weights[0] * weights[1] if len(weights) == 2 else weights[0]
    mean = average(x, 1, weight, keepdims=True)
    total = cast(x.shape[1], x.type.dtype) if weight is None else sum_of(weight)
    divisor = total - less
    if weight is not None and aweights is not None and less:
        divisor = total - less * sum_of(weight * weights[-1]) / total
    centred = x - mean
    product = dot(centred, transpose(centred if weight is None else centred * weight))
    scaled = product / maximum(divisor, 0)
    return squeeze(scaled, (0, 1)) if asked_equal(x.type.shape[0], 1) else scaled


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Node:
    """The correlation coefficients of variables: their covariances over both standard deviations, between -1 and 1."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(diagonal(c))
    scaled = c / layout.expand(deviation, (1,)) / layout.expand(deviation, (0,))
    return elementwise("clip", scaled, -1.0, 1.0)


# --- past NaN -------------------------------------------------------------------------------------------------------


def _present(x: Any) -> tuple[Node, Node | None]:
    """`x`, and where it is a number: None where it cannot be anything else."""
    node = as_node(x)
    return node, logical_not(isnan(node)) if is_float(node.type.dtype) else None


def _replaced(x: Any, value: Any) -> Node:
    node, present = _present(x)
    return node if present is None else where(present, node, value)


def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    """The sum over `axis` of what is not NaN.

    >>> T.nansum(T.constant([1.0, np.nan, 3.0])).eval()
    array(4.)
    """
    return sum_of(_replaced(x, 0), axis, dtype, keepdims)


def nanprod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    """The product over `axis` of what is not NaN."""
    return prod(_replaced(x, 1), axis, dtype, keepdims)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The running sums along `axis`, in which NaN counts as 0."""
    return cumsum(_replaced(x, 0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The running products along `axis`, in which NaN counts as 1."""
    return cumprod(_replaced(x, 1), axis, dtype)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The maximum over `axis` of what is not NaN; NaN where nothing is."""
    return _nan_extreme(max_of, x, axis, keepdims, -np.inf)


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The minimum over `axis` of what is not NaN; NaN where nothing is."""
    return _nan_extreme(min_of, x, axis, keepdims, np.inf)


def _nan_extreme(function: Any, x: Any, axis: Any, keepdims: bool, least: float) -> Node:
    node, present = _present(x)
    if present is None:
        made: Node = function(node, axis, keepdims)
        return made
    found = function(where(present, node, least), axis, keepdims)
    return where(any_of(present, axis, keepdims), found, np.nan)


def nanargmax(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The position of the first maximum of what is not NaN along `axis`; a ShapeError at run time where nothing is."""
    return _nan_position("nanargmax", argmax, x, axis, keepdims, -np.inf)


def nanargmin(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The position of the first minimum of what is not NaN along `axis`; a ShapeError at run time where nothing is."""
    return _nan_position("nanargmin", argmin, x, axis, keepdims, np.inf)


def _nan_position(name: str, function: Any, x: Any, axis: Any, keepdims: bool, least: float) -> Node:
    node, present = _present(x)
    if present is None:
        made: Node = function(node, axis, keepdims)
        return made
    found = function(where(present, node, least), axis, keepdims)
    anything = cast(all_of(any_of(present, axis, keepdims)), "int64")
    return checked(found, (anything,), f"{name} of {describe(node)}: all elements are NaN", "shape")


def nanmean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    """The mean over `axis` of what is not NaN; NaN where nothing is.

    >>> T.nanmean(T.constant([1.0, np.nan, 3.0])).eval()
    array(2.)
    """
    node, present = _present(x)
    inside = resolve_dtype(dtype) if dtype is not None else node.type.dtype if present is not None else "float64"
    values = cast(node, inside)
    count = _count_present(values, present, axis, keepdims)
    return sum_of(values if present is None else where(present, values, 0), axis, keepdims=keepdims) / count


def _count_present(x: Node, present: Node | None, axis: Any, keepdims: bool) -> Node:
    """The number of elements that are not NaN, in the dtype of `x`."""
    filled = elementwise("equal", zeros_like(x, "int8"), 0) if present is None else present
    return cast(sum_of(filled, axis, keepdims=keepdims), x.type.dtype)


def nanvar(x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Node:
    """The variance over `axis` of what is not NaN; NaN where no more than `ddof` are."""
    node, present = _present(x)
    inside = resolve_dtype(dtype) if dtype is not None else node.type.dtype if present is not None else "float64"
    values = cast(node, inside)
    away = values - nanmean(values, axis, keepdims=True)
    squares = away * away if present is None else where(present, away * away, 0)
    divisor = _count_present(values, present, axis, keepdims) - ddof
    spread = sum_of(squares, axis, keepdims=keepdims) / divisor
    return where(elementwise("greater", divisor, 0), spread, literal(np.nan, inside))


def nanstd(x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Node:
    """The square root of `nanvar`."""
    return sqrt(nanvar(x, axis, dtype, ddof, keepdims))


# --- running sums ---------------------------------------------------------------------------------------------------


def cumulative_sum(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """`cumsum` along `axis`, which a vector need not name; with `include_initial` a 0 comes first."""
    return _cumulative("cumulative_sum", cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """`cumprod` along `axis`, which a vector need not name; with `include_initial` a 1 comes first."""
    return _cumulative("cumulative_prod", cumprod, x, axis, dtype, include_initial, 1)


def _cumulative(name: str, function: Any, x: Any, axis: int | None, dtype: Any, initial: bool, first: int) -> Node:
    node = as_node(x)
    if axis is None and node.ndim > 1:
        raise ShapeError(f"{name} of {describe(node)} of type {node.type}: say which axis")
    what = f"{name} of {describe(node)} of type {node.type}"
    place = 0 if axis is None else normalise_axis(axis, max(node.ndim, 1), what)
    made: Node = function(node if node.ndim else flatten(node), place, dtype)
    if not initial:
        return made
    shape = [1 if k == place else size for k, size in enumerate(made.type.shape)]
    return concatenate([layout.filled(literal(first, made.type.dtype), shape), made], place)


# --- quantiles --------------------------------------------------------------------------------------------------------
# Quantiles: medians, percentiles, with NaN and without, by any of NumPy's methods.
#
# In: tensors. Out: nodes: what is sorted, at the places that a method says, with a derivative by elements and by
# parts.


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
"""The methods that take an element as it is."""
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
    number = _count_in_rows(rows) if without_nan and is_float(kind) else rows.shape[-1]
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
    """The value a part of the way from one to another: as NumPy's, so that each end is met exactly, with 0.0 for -0.0
    at the first. Where the way is infinite, as NumPy's median."""
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


def _count_in_rows(rows: Node) -> Node:
    """The number of elements of each row that are not NaN."""
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
