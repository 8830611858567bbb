"""Order: sorting, ranks, the largest elements, quantiles, counts of values, sets.

In: tensors. Out: nodes. NumPy sorts and searches, in every mode, an array at a time; the rest is composed of gathers
and running sums. NaN is the largest of all numbers. Sorting is stable, and its derivative goes through the permutation;
what counts or ranks has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import DISCRETE, is_float
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Array, Node, Type, constant_value, describe
from graphc.ops import shape as layout
from graphc.ops.checked import checked
from graphc.ops.custom import custom_op
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.options import options
from graphc.tensor import ranking
from graphc.tensor.creation import arange, linspace, ones, zeros
from graphc.tensor.elementary import floor, isnan, logical_and, logical_not, logical_or, maximum, minimum, where
from graphc.tensor.indexing import flip, inc_subtensor, set_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.ranking import first_of_rows, order_rows, sort_rows, top_of_rows
from graphc.tensor.reductions import cumsum
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import flatten, moveaxis, normalise_axis

__all__ = [
    "argpartition", "argsort", "argtopk", "bincount", "digitize", "histogram", "histogram_bin_edges", "intersect1d",
    "isin", "lexsort", "median", "nanmedian", "nanpercentile", "nanquantile", "partition", "percentile", "quantile",
    "searchsorted", "setdiff1d", "setxor1d", "sort", "topk", "topk_and_argtopk", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


def _sort_vjp(node: Node, cotangent: Node) -> list[Node]:
    """The cotangent back in the order of the argument."""
    return [take_along_axis(cotangent, _rank(_rank(node.args[0])), -1)]


def _columns_vjp(node: Node, cotangent: Node) -> list[Node]:
    return [take_along_axis(cotangent, _column_rank(_column_rank(node.args[0])), 1)]


def _spread(node: Node, cotangent: Node) -> Node:
    """The cotangent of the largest, where they stand."""
    rows, wanted = node.args
    size, total = rows.shape[-1], rows.size
    begins = arange(0, total, maximum(size, 1)).dimshuffle(0, "x")
    places = flatten(begins + _first(rows, wanted).reshape((-1, wanted.shape[0])))
    return set_subtensor(zeros((total,), cotangent.dtype)[places], flatten(cotangent)).reshape(rows.shape)


def _first_type(rows: Type, wanted: Type) -> Type:
    return Type("int64", (*rows.shape[:-1], *wanted.shape))


def _no_vjp(node: Node, cotangent: Node) -> list[None]:
    return [None] * len(node.args)


_rank = custom_op(
    "argsort_rows", order_rows, lambda kind: Type("int64", kind.shape), _no_vjp, into=ranking.order_rows_into
)
_sorted = custom_op("sort_rows", sort_rows, lambda kind: kind, _sort_vjp, into=ranking.sort_rows_into)
_column_rank = custom_op(
    "argsort_columns",
    ranking.made_by(ranking.order_columns_into, "int64"),
    lambda kind: Type("int64", kind.shape),
    _no_vjp,
    into=ranking.order_columns_into,
)
_sorted_columns = custom_op(
    "sort_columns",
    ranking.made_by(ranking.sort_columns_into),
    lambda kind: kind,
    _columns_vjp,
    into=ranking.sort_columns_into,
)
_top = custom_op(
    "top_of_rows",
    top_of_rows,
    lambda rows, wanted: Type(rows.dtype, (*rows.shape[:-1], *wanted.shape)),
    lambda node, cotangent: [_spread(node, cotangent), None],
)
_first = custom_op("first_of_rows", first_of_rows, _first_type, _no_vjp)


def _by_rows(what: str, x: Any, axis: Any) -> tuple[Node, int]:
    """The axis that is meant as the last, and where it was; all elements in one row where it is None."""
    node = as_node(x)
    if axis is None:
        return flatten(node), 0
    if not node.ndim:
        raise RankError(f"{what} of {describe(node)} of type {node.type}: a scalar has no axis")
    place = normalise_axis(axis, node.ndim, f"{what} of {describe(node)} of type {node.type}")
    return moveaxis(node, place, -1), place


def _along(what: str, of_rows: Any, of_columns: Any, x: Any, axis: Any) -> Node:
    """What is made of an array along an axis, of its shape, by an op for the last axis, and one for the second of
    three."""
    node = as_node(x)
    if isinstance(axis, Node):
        known = constant_value(axis)
        if known is None:
            return _along_any(what, of_rows, of_columns, node, axis)
        axis = int(known)
    rows, place = _by_rows(what, node, axis)
    if axis is None or place == node.ndim - 1:
        made: Node = of_rows(rows)
        return made
    shape = node.type.shape
    parts = (sizes.product(shape[:place]), shape[place], sizes.product(shape[place + 1 :]))
    return layout.reshape(of_columns(layout.reshape(node, parts)), shape)


def _along_any(what: str, of_rows: Any, of_columns: Any, node: Node, axis: Node) -> Node:
    """The same along an axis that only a call tells: that of all that are made."""
    if axis.ndim or not node.ndim:
        raise GraphTypeError(f"{what}: the axis {describe(axis)} of type {axis.type} is no axis of {describe(node)}")
    number = cast(axis, "int64")
    within = logical_and(elementwise("greater_equal", number, -node.ndim), elementwise("less", number, node.ndim))
    message = f"{what} of {describe(node)}: the axis {describe(axis)} is none of its {node.ndim}"
    place = elementwise("mod", checked(number, [cast(within, "int64")], message, "shape"), node.ndim)
    found = _along(what, of_rows, of_columns, node, 0)
    for each in range(1, node.ndim):
        found = where(elementwise("equal", place, each), _along(what, of_rows, of_columns, node, each), found)
    return found


# --- sorting --------------------------------------------------------------------------------------------------------


def sort(x: Any, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
    """The elements along `axis` in rising order, of all axes where it is None; NaN comes last. `kind` is NumPy's, and
    changes nothing: sorting is stable. An axis may be a scalar variable. Raises AxisError for a wrong axis.

        >>> T.sort([3.0, 1.0, 2.0])  # 1, 2, 3
    """
    return _along("sort", _sorted, _sorted_columns, x, axis)


def argsort(x: Any, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
    """The places of the elements along `axis` in rising order, int64; equal elements stay in order, NaN comes last."""
    return _along("argsort", _rank, _column_rank, x, axis)


def lexsort(keys: Any, axis: int = -1) -> Node:
    """The places that sort by several keys of one shape: by the last of them, equal ones by the one before, and so on;
    keys: a sequence of tensors, or one along the first axis of which they stand."""
    if isinstance(keys, list | tuple):
        parts = [as_node(key) for key in keys]
    else:
        whole = as_node(keys)
        count = whole.type.shape[0] if whole.ndim else 0
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


def partition(x: Any, kth: Any, axis: int | None = -1, kind: str | None = None, order: None = None) -> Node:
    """An array in which element `kth` along `axis` stands where sorting would put it, smaller ones before and larger
    ones after: all of it is sorted here."""
    return sort(x, axis)


def argpartition(x: Any, kth: Any, axis: int | None = -1, kind: str | None = None, order: None = None) -> Node:
    """The places of the elements of `partition`."""
    return argsort(x, axis)


def topk_and_argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> tuple[Node, Node]:
    """The `kth` largest elements along `axis`, the largest first, or for a negative `kth` the smallest, the smallest
    first; and their places."""
    rows, wanted, place = _wanted(x, kth, axis)
    places = _first(rows, wanted)
    values = take_along_axis(rows, places, -1)
    return moveaxis(values, -1, place), cast(moveaxis(places, -1, place), idx_dtype)


def _wanted(x: Any, kth: Any, axis: int | None) -> tuple[Node, Node, int]:
    """The rows of `topk`, a vector that has as many elements as are wanted of each, all `kth`, and the rows' axis."""
    rows, place = _by_rows("topk", x, axis)
    count = as_node(kth)
    if count.ndim or is_float(count.dtype):
        raise GraphTypeError(f"topk: kth is a whole number, not {describe(count)} of type {count.type}")
    number = cast(count, "int64")
    most = minimum(abs(number), rows.shape[-1])
    return rows, zeros((most,), "int64") + number, place


def topk(x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64") -> Node:
    """The `kth` largest elements along `axis`, the largest first; of a negative `kth` the smallest."""
    rows, wanted, place = _wanted(x, kth, axis)
    return moveaxis(_top(rows, wanted), -1, place)


def argtopk(x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: str = "int64") -> Node:
    """The places of the `kth` largest elements along `axis`, the largest first; of a negative `kth` the smallest."""
    rows, wanted, place = _wanted(x, kth, axis)
    return cast(moveaxis(_first(rows, wanted), -1, place), idx_dtype)


# --- quantiles ------------------------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(x: Any, q: Any, axis: int | None = None, method: str = "linear", keepdims: bool = False) -> Node:
    """The element below which the part `q` of the elements along `axis` lies: between two elements by NumPy's `method`,
    one of linear, lower, higher, nearest and midpoint. The axes of `q` come first. NaN where an element is NaN."""
    if method not in METHODS:
        raise GraphValueError(f"quantile: method {method!r} must be one of {', '.join(METHODS)}")
    node = as_node(x)
    rows, place = _by_rows("quantile", node, axis)
    kind = rows.dtype if is_float(rows.dtype) else "float64"
    ranked, part = cast(_sorted(rows), kind), as_node(q)
    where_to = cast(part, kind) * cast(rows.shape[-1] - 1, kind)
    low, rest = _between(where_to, method)
    high = minimum(low + 1, rows.shape[-1] - 1)
    first, second = ranked[..., low], ranked[..., high]
    found = where(elementwise("greater", rest, 0), first + (second - first) * cast(rest, kind), first)
    last = ranked[..., -1]
    last = last.dimshuffle(*range(last.ndim), *["x"] * part.ndim)
    found = where(isnan(last), last, found)
    if keepdims:
        kept = [*range(found.ndim - part.ndim)]
        at = place if axis is not None else 0
        wanted: list[Any] = [*kept[:at], "x", *kept[at:]] if axis is not None else ["x"] * node.ndim
        found = found.dimshuffle(*range(len(kept), found.ndim), *wanted)
    elif part.ndim:
        found = found.dimshuffle(*range(found.ndim - part.ndim, found.ndim), *range(found.ndim - part.ndim))
    return found


def _between(where_to: Node, method: str) -> tuple[Node, Node]:
    """The place below a number of a place, and what of the way to the next one is taken."""
    below = floor(where_to)
    rest = where_to - below
    if method == "lower":
        rest = rest * 0
    elif method == "higher":
        rest = elementwise("ceil", rest)
    elif method == "nearest":
        rest = elementwise("rint", where_to) - below
    elif method == "midpoint":
        rest = where(elementwise("greater", rest, 0), 0.5, 0.0)
    return cast(below, "int64"), rest


def nanquantile(x: Any, q: Any, axis: int | None = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`quantile` of the elements that are not NaN; NaN where there are none."""
    if method not in METHODS:
        raise GraphValueError(f"nanquantile: method {method!r} must be one of {', '.join(METHODS)}")
    node, part = as_node(x), as_node(q)
    if not is_float(node.dtype):
        return quantile(node, part, axis, method, keepdims)
    rows, place = _by_rows("nanquantile", node, axis)
    ranked, last = _sorted(rows), cast(logical_not(isnan(rows)), "int64").sum(axis=-1, keepdims=True) - 1
    where_to = cast(maximum(last, 0), rows.dtype) * cast(flatten(part), rows.dtype)
    low, rest = _between(where_to, method)
    first, second = (take_along_axis(ranked, at, -1) for at in (low, minimum(low + 1, maximum(last, 0))))
    found = where(elementwise("greater", rest, 0), first + (second - first) * cast(rest, rows.dtype), first)
    found = moveaxis(where(elementwise("less", last, 0), np.nan, found), -1, 0)
    kept = found.type.shape[1:]
    if keepdims:
        kept = (1,) * node.ndim if axis is None else (*kept[:place], 1, *kept[place:])
    return cast(layout.reshape(found, (*part.type.shape, *kept)), rows.dtype)


def nanpercentile(x: Any, q: Any, axis: int | None = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`nanquantile` of q / 100."""
    return nanquantile(x, as_node(q) / 100.0, axis, method, keepdims)


def nanmedian(x: Any, axis: int | None = None, keepdims: bool = False) -> Node:
    """`median` of the elements that are not NaN; NaN where there are none."""
    return nanquantile(x, 0.5, axis, "midpoint", keepdims)


def percentile(x: Any, q: Any, axis: int | None = None, method: str = "linear", keepdims: bool = False) -> Node:
    """`quantile` of q / 100."""
    return quantile(x, as_node(q) / 100.0, axis, method, keepdims)


def median(x: Any, axis: int | None = None, keepdims: bool = False) -> Node:
    """The middle element along `axis`, of an even number the mean of the two in the middle; NaN where one is NaN."""
    return quantile(x, 0.5, axis, "midpoint", keepdims)


# --- places among sorted elements -----------------------------------------------------------------------------------


def _places(side: Any) -> Any:
    def compute(sorted: Array, values: Array) -> Any:
        return np.searchsorted(sorted, values, side=side)

    return custom_op(f"searchsorted_{side}", compute, lambda a, v: Type("int64", v.shape), lambda node, g: [None, None])


_SEARCH = {"left": _places("left"), "right": _places("right")}


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> Node:
    """The places at which the elements of `v` would be put into the sorted vector `x`, int64: before equal elements or,
    with side="right", after them. sorter: the places that sort `x`, where it is not sorted."""
    node, values = as_node(x), as_node(v)
    if node.ndim != 1:
        raise RankError(f"searchsorted: {describe(node)} of type {node.type} is no vector")
    if side not in _SEARCH:
        raise GraphValueError(f"searchsorted: side {side!r} must be 'left' or 'right'")
    if sorter is not None:
        node = node[as_node(sorter)]
    found: Node = _SEARCH[side](node, values)
    return found


def digitize(x: Any, bins: Any, right: bool = False) -> Node:
    """The number of the bin of each element, as NumPy's digitize: i where bins[i - 1] <= x < bins[i], with `right`
    bins[i - 1] < x <= bins[i], of bins that rise; of falling ones the other way round."""
    edges, values = as_node(bins), as_node(x)
    side = "left" if right else "right"
    rising = searchsorted(edges, values, side)
    falling = edges.shape[0] - searchsorted(flip(edges, 0), values, side)
    return where(elementwise("greater_equal", edges[-1], edges[0]), rising, falling)


# --- counts ---------------------------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: Any = 0, assert_nonneg: bool = False) -> Node:
    """How often each whole number from 0 on is in the vector `x`, or the sums of its `weights`; at least `minlength`
    counts. A negative number is an error of the call."""
    node = as_node(x)
    if node.ndim != 1 or node.dtype not in DISCRETE:
        raise RankError(f"bincount: {describe(node)} of type {node.type} is no vector of whole numbers")
    values = cast(node, "int64")
    with_none = concatenate([values, as_node(np.array([-1]))], 0)
    size = maximum(with_none.max() + 1, minlength)
    is_below = elementwise("less", concatenate([values, as_node(np.array([0]))], 0).min(), 0)
    message = f"bincount: {describe(node)} has a negative number"
    values = checked(values, [cast(logical_not(is_below), "int64")], message, "shape")
    kind = "int64" if weights is None else as_node(weights).dtype
    kind = kind if is_float(kind) or weights is None else "float64"
    amounts = ones(values.shape, "int64") if weights is None else cast(as_node(weights), kind)
    return inc_subtensor(zeros((size,), kind)[values], amounts)


def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Node:
    """The edges of `histogram`."""
    if not isinstance(bins, int | np.integer):
        edges = as_node(bins)
        if edges.ndim == 1:
            return edges
        raise RankError(f"histogram: bins are a number or a vector of edges, not {describe(edges)}")
    values = flatten(as_node(x))
    kind = values.dtype if is_float(values.dtype) else "float64"
    first, last = (
        cast(each, kind) for each in ((values.min(), values.max()) if range is None else map(as_node, range))
    )
    is_point = elementwise("equal", first, last)
    first, last = where(is_point, first - 0.5, first), where(is_point, last + 0.5, last)
    return linspace(first, last, int(bins) + 1)


def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Node, Node]:
    """How many elements lie in each bin, the last of which has both its edges, and the edges. bins: their number, or
    their rising edges. density: the counts over their sum and the bins' widths. weights: what elements count as."""
    edges = histogram_bin_edges(x, bins, range)
    values = flatten(as_node(x))
    inner, outer = edges[:-1], edges[-1:]
    if weights is None:
        ranked = _sorted(values)
        below = concatenate([searchsorted(ranked, inner), searchsorted(ranked, outer, "right")], 0)
    else:
        order = _rank(values)
        amounts = flatten(as_node(weights))[order]
        sums = concatenate([zeros((1,), amounts.dtype), cumsum(amounts)], 0)
        ranked = values[order]
        below = sums[concatenate([searchsorted(ranked, inner), searchsorted(ranked, outer, "right")], 0)]
    counts = below[1:] - below[:-1]
    if density:
        widths = edges[1:] - edges[:-1]
        return counts / (widths * cast(counts.sum(), options.floatX)), edges
    return counts, edges


# --- sets -----------------------------------------------------------------------------------------------------------


def _is_first(ranked: Node, equal_nan: bool = True) -> Node:
    """Which sorted elements differ from those before; NaN differs from numbers only, unless all NaNs differ."""
    differ = elementwise("not_equal", ranked[1:], ranked[:-1])
    if is_float(ranked.dtype) and equal_nan:
        differ = logical_and(differ, logical_not(logical_and(isnan(ranked[1:]), isnan(ranked[:-1]))))
    first = elementwise("greater_equal", ranked[:1], ranked[:1])
    return concatenate([logical_or(first, True), differ], 0)


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """The different elements of `x` in rising order; with them, where asked for, the place of the first of each, for
    each element the place of its like among them, and how often each comes. Their number follows from the values.
    equal_nan: whether all NaNs count as one."""
    if axis is not None:
        raise GraphValueError("unique: axis is not there; the elements of all axes are compared")
    values = flatten(as_node(x))
    order = _rank(values)
    ranked = values[order]
    first = _is_first(ranked, equal_nan)
    results = [ranked[first]]
    if return_index:
        results.append(order[first])
    if return_inverse:
        places = cumsum(cast(first, "int64")) - 1
        results.append(set_subtensor(zeros(values.shape, "int64")[order], places))
    if return_counts:
        begins = arange(values.shape[0])[first]
        ends = concatenate([begins[1:], values.shape], 0)
        results.append(ends - begins)
    return results[0] if len(results) == 1 else tuple(results)


def unique_values(x: Any) -> Node:
    """The different elements of `x` in rising order; NaNs differ from each other, as in the array API standard."""
    found: Node = unique(x, equal_nan=False)
    return found


def unique_counts(x: Any) -> tuple[Node, Node]:
    """The same, and how often each comes."""
    values, counts = unique(x, return_counts=True, equal_nan=False)
    return values, counts


def unique_inverse(x: Any) -> tuple[Node, Node]:
    """The same, and for each element of `x`, in its shape, the place of its like among them."""
    values, places = unique(x, return_inverse=True, equal_nan=False)
    return values, places.reshape(as_node(x).shape, ndim=as_node(x).ndim)


def unique_all(x: Any) -> tuple[Node, Node, Node, Node]:
    """The different elements, the place of the first of each, for each element, in the shape of `x`, the place of its
    like among them, and how often each comes."""
    values, first, places, counts = unique(x, True, True, True, equal_nan=False)
    return values, first, places.reshape(as_node(x).shape, ndim=as_node(x).ndim), counts


def isin(x: Any, test_elements: Any, invert: bool = False) -> Node:
    """Which elements of `x` are among `test_elements`."""
    node, others = as_node(x), _sorted(flatten(as_node(test_elements)))
    found = elementwise("less", searchsorted(others, node), searchsorted(others, node, "right"))
    if is_float(node.dtype):
        found = logical_and(found, logical_not(isnan(node)))
    return logical_not(found) if invert else found


def union1d(x: Any, y: Any) -> Node:
    """The elements of either, each once, in rising order."""
    found: Node = unique(concatenate([flatten(as_node(x)), flatten(as_node(y))], 0))
    return found


def intersect1d(x: Any, y: Any) -> Node:
    """The elements of both, each once, in rising order."""
    own = unique(x)
    found: Node = own[isin(own, y)]
    return found


def setdiff1d(x: Any, y: Any) -> Node:
    """The elements of `x` that are not in `y`, each once, in rising order."""
    own = unique(x)
    found: Node = own[isin(own, y, invert=True)]
    return found


def setxor1d(x: Any, y: Any) -> Node:
    """The elements of one of the two alone, each once, in rising order."""
    return sort(concatenate([setdiff1d(x, y), setdiff1d(y, x)], 0))
