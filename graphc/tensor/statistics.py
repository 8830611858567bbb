"""Statistics that few programs need: covariances, and reductions that pass over NaN.

In: tensors, axes as reductions take them. Out: nodes composed of reductions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import UNSIGNED, is_float
from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir.node import Node, describe, literal
from graphc.ops import shape as layout
from graphc.ops.checked import checked
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.creation import zeros_like
from graphc.tensor.elementary import isnan, logical_not, maximum, sqrt, where
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
from graphc.tensor.shaping import atleast_2d, flatten, normalise_axis, squeeze, transpose
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "corrcoef", "cov", "cumulative_prod", "cumulative_sum", "nanargmax", "nanargmin", "nancumprod", "nancumsum",
    "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
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
        x = concatenate([x, more if rowvar or more.type.shape[0] == 1 else transpose(more)], 0)
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
    return squeeze(scaled) if x.type.shape[0] == 1 else scaled


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
    count = _count(values, present, axis, keepdims)
    return sum_of(values if present is None else where(present, values, 0), axis, keepdims=keepdims) / count


def _count(x: Node, present: Node | None, axis: Any, keepdims: bool) -> Node:
    """How many numbers there are, in the dtype of `x`."""
    filled = elementwise("equal", zeros_like(x, "int8"), 0) if present is None else present
    return cast(sum_of(filled, axis, keepdims=keepdims), x.type.dtype)


def nanvar(x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Node:
    """The variance over `axis` of what is not NaN; NaN where no more than `ddof` are."""
    node, present = _present(x)
    inside = resolve_dtype(dtype) if dtype is not None else node.type.dtype if present is not None else "float64"
    values = cast(node, inside)
    away = values - nanmean(values, axis, keepdims=True)
    squares = away * away if present is None else where(present, away * away, 0)
    divisor = _count(values, present, axis, keepdims) - ddof
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
