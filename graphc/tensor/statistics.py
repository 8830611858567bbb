"""Covariances, reductions that pass over NaN, and quantiles.

    nanmean([1, nan, 3])        2
    quantile([1, 2, 4], 0.75)   3

In: tensors, axes as reductions take them. Out: nodes composed of reductions, and of sorting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.dtypes import DISCRETE, UNSIGNED, is_float, is_inexact, promote
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Complex, Node, constant_value, describe, literal, pair
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.identity import checked
from graphc.ops.questions import asked_equal, asked_size
from graphc.ops.reduce import reduction
from graphc.options import options
from graphc.tensor import elementary as el, reductions, shaping
from graphc.tensor.creation import arange, linspace, ones, zeros, zeros_like
from graphc.tensor.indexing import diagonal, inc_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.products import dot
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.sorting import falls, searchsorted, sort
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "bincount", "corrcoef", "cov", "cumulative_prod", "cumulative_sum", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "median", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax",
    "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
    "percentile", "quantile",
]  # fmt: skip

# --- covariances ----------------------------------------------------------------------------------------------------


def _rows(m: Any) -> Node:
    """A matrix of a vector, which is its row, or of a matrix, in float64 or complex128."""
    node = shaping.of_rank(m, "cov of {}: it has more than two axes", 0, 2)
    wide: Node = shaping.atleast_2d(cast(node, promote(node.type.dtype, "float64")))
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
        made = checked(made, (cast(reductions.all(condition), "int64"),), said, "value")
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
        x = shaping.transpose(x)
    if y is not None:
        more = _rows(y)
        x = concatenate([x, more if rowvar or asked_equal(more.type.shape[0], 1) else shaping.transpose(more)], 0)
    less = int(ddof if ddof is not None else not bias)
    if ddof is not None and less != ddof:
        raise GraphValueError(f"cov: ddof {ddof} is not whole")
    weights = [_weights(name, w) for name, w in (("fweights", fweights), ("aweights", aweights)) if w is not None]
    weight: Node | None = None if not weights else weights[0] * weights[1] if len(weights) == 2 else weights[0]
    mean = reductions.average(x, 1, weight, keepdims=True)
    total = cast(x.shape[1], "float64") if weight is None else reductions.sum(weight)
    divisor = total - less
    if weight is not None and aweights is not None and less:
        divisor = total - less * reductions.sum(weight * weights[-1]) / total
    centred = x - mean
    product = dot(centred, el.conj(shaping.transpose(centred if weight is None else centred * weight)))
    scaled = product / el.maximum(divisor, 0)
    return shaping.squeeze(scaled, (0, 1)) if asked_equal(x.type.shape[0], 1) else scaled


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Node:
    """The correlation coefficients of variables: their covariances over both standard deviations, between -1 and 1."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = el.sqrt(el.real(diagonal(c)))
    scaled = c / layout.expand(deviation, (1,)) / layout.expand(deviation, (0,))
    if type(scaled) is Complex:
        return pair(*(elementwise("clip", part, -1.0, 1.0) for part in (el.real(scaled), el.imag(scaled))))
    return elementwise("clip", scaled, -1.0, 1.0)


# --- past NaN -------------------------------------------------------------------------------------------------------


def _present(x: Any) -> tuple[Node, Node | None]:
    """`x`, and where it is a number: None where it cannot be anything else."""
    node = as_node(x)
    return node, el.logical_not(el.isnan(node)) if is_inexact(node.type.dtype) else None


def _replaced(x: Any, value: Any) -> Node:
    node, present = _present(x)
    return node if present is None else el.where(present, node, value)


def nansum(
    x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True
) -> Node:
    """The sum over `axis` of what is not NaN.

    >>> T.nansum(T.constant([1.0, np.nan, 3.0])).eval()
    array(4.)
    """
    return reductions.sum(_replaced(x, 0), axis, dtype, keepdims, initial=initial, where=where)


def nanprod(
    x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True
) -> Node:
    """The product over `axis` of what is not NaN."""
    return reductions.prod(_replaced(x, 1), axis, dtype, keepdims, initial=initial, where=where)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The running sums along `axis`, in which NaN counts as 0."""
    return reductions.cumsum(_replaced(x, 0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The running products along `axis`, in which NaN counts as 1."""
    return reductions.cumprod(_replaced(x, 1), axis, dtype)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
    """The maximum over `axis` of the elements that are not NaN; NaN if all are."""
    return _nan_extreme(reductions.max, x, axis, keepdims, -np.inf, initial, where)


def nanmin(x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
    """The minimum over `axis` of the elements that are not NaN; NaN if all are."""
    return _nan_extreme(reductions.min, x, axis, keepdims, np.inf, initial, where)


def _nan_extreme(function: Any, x: Any, axis: Any, keepdims: bool, least: float, initial: Any, where: Any) -> Node:
    node, present = _present(x)
    if present is None or initial is not None or where is not True:
        made: Node = function(_replaced(node, least), axis, keepdims, initial=initial, where=where)
        return made
    found = function(el.where(present, node, least), axis, keepdims)
    return el.where(reductions.any(present, axis, keepdims), found, np.nan)


def nanargmax(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The position of the first maximum of what is not NaN along `axis`; a ShapeError at run time where nothing is."""
    return _nan_position("nanargmax", reductions.argmax, x, axis, keepdims, -np.inf)


def nanargmin(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The position of the first minimum of what is not NaN along `axis`; a ShapeError at run time where nothing is."""
    return _nan_position("nanargmin", reductions.argmin, x, axis, keepdims, np.inf)


def _nan_position(name: str, function: Any, x: Any, axis: Any, keepdims: bool, least: float) -> Node:
    node, present = _present(x)
    if present is None:
        made: Node = function(node, axis, keepdims)
        return made
    found = function(el.where(present, node, least), axis, keepdims)
    anything = cast(reductions.all(reductions.any(present, axis, keepdims)), "int64")
    return checked(found, (anything,), f"{name} of {describe(node)}: all elements are NaN", "shape")


def _marked(x: Any, where: Any) -> Node:
    """`x`, with NaN for the elements that `where` does not mark."""
    node = as_node(x)
    if where is True:
        return node
    return el.where(where, node if is_inexact(node.type.dtype) else cast(node, "float64"), np.nan)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True) -> Node:
    """The mean over `axis` of the elements that are not NaN; NaN if all are.

    >>> T.nanmean(T.constant([1.0, np.nan, 3.0])).eval()
    array(2.)
    """
    node, present = _present(_marked(x, where))
    inside = resolve_dtype(dtype) if dtype is not None else node.type.dtype if present is not None else "float64"
    values = cast(node, inside)
    count = _count_present(values, present, axis, keepdims)
    return reductions.sum(values if present is None else el.where(present, values, 0), axis, keepdims=keepdims) / count


def _count_present(x: Node, present: Node | None, axis: Any, keepdims: bool) -> Node:
    """The number of elements that are not NaN, in the dtype of `x`."""
    filled = elementwise("equal", zeros_like(x, "int8"), 0) if present is None else present
    return cast(reductions.sum(filled, axis, keepdims=keepdims), x.type.dtype)


def nanvar(
    x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, *, where: Any = True
) -> Node:
    """The variance over `axis` of what is not NaN; NaN where no more than `ddof` are."""
    node, present = _present(_marked(x, where))
    inside = resolve_dtype(dtype) if dtype is not None else node.type.dtype if present is not None else "float64"
    values = cast(node, inside)
    away = values - nanmean(values, axis, keepdims=True)
    squares = reductions.square_size(away)
    squares = squares if present is None else el.where(present, squares, 0)
    divisor = _count_present(el.real(values), present, axis, keepdims) - ddof
    spread = reductions.sum(squares, axis, keepdims=keepdims) / divisor
    return el.where(elementwise("greater", divisor, 0), spread, literal(np.nan, spread.type.dtype))


def nanstd(
    x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, *, where: Any = True
) -> Node:
    """The square root of `nanvar`."""
    return el.sqrt(nanvar(x, axis, dtype, ddof, keepdims, where=where))


# --- running sums ---------------------------------------------------------------------------------------------------


def cumulative_sum(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """`cumsum` along `axis`, which a vector need not name; with `include_initial` a 0 comes first."""
    return _cumulative("cumulative_sum", reductions.cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """`cumprod` along `axis`, which a vector need not name; with `include_initial` a 1 comes first."""
    return _cumulative("cumulative_prod", reductions.cumprod, x, axis, dtype, include_initial, 1)


def _cumulative(name: str, function: Any, x: Any, axis: int | None, dtype: Any, initial: bool, first: int) -> Node:
    node = as_node(x)
    if axis is None and node.ndim > 1:
        raise ShapeError(f"{name} of {describe(node)} of type {node.type}: say which axis")
    what = shaping.label_operand(name, node)
    place = 0 if axis is None else shaping.normalise_axis(axis, max(node.ndim, 1), what)
    made: Node = function(node if node.ndim else shaping.flatten(node), place, dtype)
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
ELEMENTS = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
"""The methods that take an element as it is."""
METHODS = (*CONTINUOUS, *ELEMENTS, "averaged_inverted_cdf", "midpoint")
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
    axes = shaping.normalise_axes(
        tuple(range(node.ndim)) if axis is None else axis, node.ndim, f"{what} of {describe(node)}"
    )
    others = [place for place in range(node.ndim) if place not in axes]
    shape = node.type.shape
    kept, count = [shape[place] for place in others], sizes.product([shape[place] for place in axes])
    rows = layout.reshape(layout.dimshuffle(node, (*others, *axes)), (*kept, count))
    part = _checked_parts(what, as_node(q))
    if type(node) is Complex and what != "median":
        raise GraphTypeError(f"{what} of {describe(node)} of type {node.type}: there is none of complex numbers")
    is_element = method in ELEMENTS or (method == "linear" and not is_float(part.type.dtype))
    kind = rows.type.dtype if is_element else _kind(rows.type.dtype, q, part.type.dtype)
    ranked = _with_one(cast(sort(rows), kind), f"{what} of {describe(node)}: it has no elements", of_none)
    number = rows.shape[-1]
    if without_nan and is_float(kind):
        number = cast(el.logical_not(el.isnan(rows)), "int64").sum(axis=-1, keepdims=True)
    low, high, rest = _places(cast(shaping.flatten(part), "float64"), cast(number, "float64"), method)
    if number.ndim:
        first, second = (take_along_axis(ranked, place, -1) for place in (low, high))
        is_lost = elementwise("less", number, 1)
    else:
        first, second = ranked[..., low], ranked[..., high]
        is_lost = el.isnan(ranked[..., -1]).dimshuffle(*range(len(kept)), "x")
    found = first if is_element else _between(first, second, cast(rest, kind))
    if is_inexact(kind):
        lost = ranked[..., -1:] if type(node) is Complex else np.nan  # of complex numbers NumPy gives the element
        found = el.where(is_lost, lost, found)
    found = shaping.moveaxis(found, -1, 0)
    if keepdims:
        kept = [1 if place in axes else size for place, size in enumerate(shape)]
    return cast(layout.reshape(found, (*part.type.shape, *kept)), kind)


def _kind(dtype: str, q: Any, parts: str) -> str:
    """The dtype of what lies between two elements: a part that is a Python number leaves that of floats as it is."""
    if is_number(q):
        return dtype if is_inexact(dtype) else "float64"
    return promote(dtype, parts if is_float(parts) else "float64")


def _checked_parts(what: str, q: Node) -> Node:
    message = f"{what}: the parts {describe(q)} must be between 0 and 1"
    known = constant_value(q)
    if known is None:
        within = el.logical_and(elementwise("greater_equal", q, 0), elementwise("less_equal", q, 1))
        return checked(q, [cast(within.all(), "int64")], message, "shape")
    if not ((known >= 0) & (known <= 1)).all():
        raise ShapeError(message)
    return q


def _between(first: Node, second: Node, rest: Node) -> Node:
    """The value a part of the way from one to another: as NumPy's, so that each end is met exactly, with 0.0 for -0.0
    at the first. Where the way is infinite, as NumPy's median."""
    apart = second - first
    found = el.where(elementwise("greater_equal", rest, 0.5), second - apart * (1.0 - rest), first + apart * rest)
    found = el.where(el.isfinite(apart), found, first * (1.0 - rest) + second * rest)
    return el.where(
        elementwise("greater", rest, 0.0), el.where(elementwise("less", rest, 1.0), found, second), first + 0.0
    )


def _with_one(ranked: Node, message: str, of_none: float | None) -> Node:
    """Sorted rows; where these are empty there is `of_none` in each, or an error where that or its dtype is none."""
    shape = ranked.type.shape
    if isinstance(shape[-1], int) and shape[-1]:
        return ranked
    if of_none is None or not is_inexact(ranked.type.dtype):
        return checked(ranked, [cast(elementwise("greater", ranked.shape[-1], 0), "int64")], message, "index")
    number = of_none * (1 + 1j) if type(ranked) is Complex else of_none
    lost = layout.filled(as_node(np.array(number, ranked.type.dtype)), (*shape[:-1], 1))
    wide = layout.concatenate([ranked, lost], ranked.ndim - 1)
    size = el.maximum(ranked.shape[-1], 1)
    return wide[..., :size]


def _places(q: Node, count: Node, method: str) -> tuple[Node, Node, Node]:
    """The places of two elements, and what of the way from the first to the second is taken."""
    alpha, beta = CONTINUOUS.get(method, (1.0, 1.0))
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        place = count * q - (1.5 if method == "closest_observation" else 1.0)
    elif alpha == beta == 1.0:
        place = (count - 1.0) * q
    else:
        place = count * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    last = el.maximum(cast(count, "int64") - 1, 0)
    below = el.floor(place)
    rest = place - below
    is_whole = elementwise("equal", rest, 0.0)

    def at(number: Node) -> Node:
        return el.minimum(el.maximum(cast(number, "int64"), 0), last)

    match method:
        case "lower":
            chosen = below
        case "higher":
            chosen = elementwise("ceil", place)
        case "nearest":
            chosen = elementwise("rint", place)
        case "inverted_cdf":
            chosen = el.where(is_whole, below, below + 1.0)
        case "closest_observation":
            is_odd = elementwise("equal", elementwise("mod", below, 2.0), 1.0)
            chosen = el.where(el.logical_and(is_whole, is_odd), below, below + 1.0)
        case "midpoint":
            return at(below), at(below + 1.0), el.where(is_whole, 0.0, 0.5)
        case "averaged_inverted_cdf":
            return at(below), at(below + 1.0), el.where(is_whole, 0.5, 1.0)
        case _:
            return at(below), at(below + 1.0), rest
    return at(chosen), at(chosen), rest * 0.0


# --- counts -----------------------------------------------------------------------------------------------------------


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
    size = el.maximum(with_none.max() + 1, minlength)
    is_below = elementwise("less", concatenate([values, as_node(np.array([0]))], 0).min(), 0)
    message = f"bincount: {describe(node)} has a negative number"
    values = checked(values, [cast(el.logical_not(is_below), "int64")], message, "shape")
    kind = "int64" if weights is None else "float64"
    amounts = ones(values.shape, "int64") if weights is None else cast(as_node(weights), kind)
    return inc_subtensor(zeros((size,), kind)[values], amounts)


def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Node:
    """The edges of `histogram`."""
    if isinstance(bins, str) and bins not in RULES:
        raise GraphValueError(f"histogram: bins={bins!r} is no rule; there are {', '.join(RULES)}")
    if isinstance(bins, str) and weights is not None:
        raise GraphTypeError(f"histogram: no rule, bins={bins!r}, is for numbers with weights")
    bins = shaping.known_number(bins)
    if not isinstance(bins, int | np.integer | str):
        edges = as_node(bins)
        if edges.ndim == 1:
            rises = el.logical_not(falls(edges)[0])
            return checked(
                edges, [cast(rises, "int64")], f"histogram: the edges {describe(edges)} do not rise", "shape"
            )
        raise GraphTypeError(f"histogram: bins are a number or a vector of edges, not {describe(edges)}")
    first, last = _ends(shaping.flatten(as_node(x))) if range is None else map(as_node, range)
    kind = as_node(x).type.dtype if is_float(as_node(x).type.dtype) else "float64"
    first, last = cast(first, kind), cast(last, kind)
    numbers = el.logical_and(el.isfinite(first), el.isfinite(last))
    rises = el.logical_and(numbers, elementwise("less_equal", first, last))
    message = f"histogram of {describe(as_node(x))}: its range is not finite, or falls"
    first = checked(first, [cast(rises, "int64")], message, "shape")
    is_point = elementwise("equal", first, last)
    first, last = el.where(is_point, first - 0.5, first), el.where(is_point, last + 0.5, last)
    count: Any = bins
    if isinstance(bins, str):
        count = bins_by_rule(
            bins, cast(shaping.flatten(as_node(x)), kind), first, last, not is_float(as_node(x).type.dtype)
        )
    return cast(linspace(first, last, count + 1), kind)


def _ends(values: Node) -> tuple[Node, Node]:
    """The least and the largest of numbers; 0 and 1 where there are none."""
    numbers = cast(values, values.type.dtype if is_float(values.type.dtype) else "float64")
    least, largest = -reduction("supremum", -numbers, (0,)), reduction("supremum", numbers, (0,))
    is_empty = elementwise("equal", values.shape[0], 0)
    return el.where(is_empty, 0.0, least), el.where(is_empty, 1.0, largest)


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
    values = shaping.flatten(as_node(x))
    amounts = ones(values.shape, "int64") if weights is None else shaping.flatten(as_node(weights))
    kind = amounts.type.dtype
    summed = "int64" if kind in DISCRETE else "complex128" if kind[0] == "c" else "float64"
    counts = inc_subtensor(zeros((edges.shape[0] + 1,), summed)[_bin_numbers(edges, values)], cast(amounts, summed))
    counts = cast(counts[1:-1], kind)
    if density:
        widths = edges[1:] - edges[:-1]
        return counts / (widths * cast(counts.sum(), options.floatX)), edges
    return counts, edges


def _bin_numbers(edges: Node, values: Node) -> Node:
    """The bin of each value, from 1 on. What lies on the last edge is in the last bin; on both sides there is one bin
    more, for what is outside."""
    return searchsorted(edges, values, "right") - cast(elementwise("equal", values, edges[-1]), "int64")


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Node, list[Node]]:
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
    edges = [histogram_bin_edges(*each) for each in zip(columns, given, ranges, strict=True)]
    place, total = as_node(np.int64(0)), as_node(np.int64(1))
    for column, line in zip(columns, edges, strict=True):
        place, total = place * (line.shape[0] + 1) + _bin_numbers(line, column), total * (line.shape[0] + 1)
    amounts = ones(place.shape, "float64") if weights is None else cast(shaping.flatten(as_node(weights)), "float64")
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
        return [shaping.flatten(as_node(each)) for each in sample]
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


def _doane(x: Node, count: Node, first: Node, last: Node) -> Node:
    """Sturges' rule with an allowance for skewness."""
    width = reductions.std(x)
    is_known = el.logical_and(elementwise("greater", count, 2.0), elementwise("greater", width, 0.0))
    skewness = (((x - x.mean()) / el.where(is_known, width, 1.0)) ** 3).mean()
    usual = el.sqrt(6.0 * el.maximum(count - 2.0, 1.0) / ((count + 1.0) * (count + 3.0)))
    return _like(
        x, el.where(is_known, reductions.ptp(x) / (1.0 + el.log2(count) + el.log2(1.0 + abs(skewness) / usual)), 0.0)
    )


def _automatic(x: Node, count: Node, first: Node, last: Node) -> Node:
    """The rule of Freedman and Diaconis, but no less than half that of the square root, and no more than Sturges'."""
    fd, root, sturges = (RULES[rule](x, count, first, last) for rule in ("fd", "sqrt", "sturges"))
    return el.minimum(el.maximum(fd, 0.5 * root), sturges)


def _stone(x: Node, count: Node, first: Node, last: Node) -> Node:
    """The number of bins, up to a limit, at which what leaving one number out tells of the squared error is least."""
    limit = el.maximum(cast(el.floor(el.sqrt(count)), "int64"), 100)
    bins, place = arange(1, limit + 1).dimshuffle(0, "x"), arange(limit + 1).dimshuffle("x", 0)
    edges = place * ((last - first) / bins) + first
    below = searchsorted(sort(x), elementwise("where", elementwise("less", place, bins), edges, math.inf))
    shares = (below[:, 1:] - below[:, :-1]) / count
    error = (2.0 - (count + 1.0) * (shares * shares).sum(axis=1)) * bins[:, 0]
    is_known = el.logical_and(elementwise("greater", count, 1.0), elementwise("greater", reductions.ptp(x), 0.0))
    return _like(x, el.where(is_known, reductions.ptp(x) / (reductions.argmin(error) + 1), 0.0))


def _over(parts: Callable[[Node], Node]) -> Rule:
    """The range over a number of bins, which follows from how many numbers there are."""
    return lambda x, count, first, last: reductions.ptp(x) / _like(x, parts(count))


RULES: Mapping[str, Rule] = {
    "auto": _automatic,
    "doane": _doane,
    "fd": lambda x, count, first, last: 2.0 * (percentile(x, 75) - percentile(x, 25)) * _like(x, count ** (-1.0 / 3.0)),
    "rice": _over(lambda count: 2.0 * count ** (1.0 / 3.0)),
    "scott": lambda x, count, first, last: (
        _like(x, (24.0 * math.sqrt(math.pi) / count) ** (1.0 / 3.0)) * reductions.std(x)
    ),
    "sqrt": _over(el.sqrt),
    "stone": _stone,
    "sturges": _over(lambda count: el.log2(count) + 1.0),
}


def bins_by_rule(rule: str, x: Node, first: Node, last: Node, is_whole: bool) -> Node:
    """The number of bins between the ends; of whole numbers none is narrower than 1."""
    inside = x[el.logical_and(elementwise("greater_equal", x, first), elementwise("less_equal", x, last))]
    count = el.maximum(inside.shape[0], 1)
    # a number in place of none, so that there is a range and a median
    some = concatenate([inside, zeros((1,), x.type.dtype)], 0)[:count]
    width = RULES[rule](some, cast(count, "float64"), first, last)
    width = el.where(elementwise("greater", width, 0.0), el.maximum(width, 1.0) if is_whole else width, last - first)
    return el.maximum(cast(el.ceil((last - first) / width), "int64"), 1)
