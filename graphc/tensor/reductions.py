"""Reductions: NumPy's functions over axes.

In: a tensor, `axis` (None for all, a number, or a tuple; negative ones count from the end), `keepdims`. Out: nodes of
the reduction ops. Integers are summed in 64 bits, their means are float64, as in NumPy; float32 is accumulated in
float64. A wrong axis, or one named twice, raises AxisError.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import accumulator, floating, is_float, promote
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, describe, literal, told
from graphc.ir.walk import as_size_node
from graphc.ops import recur, reduce as ops, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.elementary import isclose, stop_gradient
from graphc.tensor.shaping import flatten, normalise_axes, normalise_axis, vector_items
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
    "logsumexp", "max", "max_and_argmax", "mean", "min", "norm", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def _axes(name: str, x: Node, axis: Any) -> tuple[int, ...]:
    """The reduced axes in ascending order."""
    return tuple(sorted(normalise_axes(axis, x.ndim, told(lambda: f"{name} of {describe(x)} of type {x.type}"))))


def _reduce(name: str, x: Node, axis: Any, keepdims: bool) -> Node:
    """The reduction `name` of `x`, which has the op's dtype already."""
    axes = _axes(name, x, axis)
    reduced = ops.reduction(name, x, axes)
    return layout.expand(reduced, axes) if keepdims else reduced


# --- sums and products ----------------------------------------------------------------------------------------------


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Node:
    """The sum over `axis`, 0 where there is nothing. Integers are summed as int64 or uint64 unless `dtype` is given."""
    return _accumulate("sum", as_node(x), axis, acc_dtype if dtype is None else dtype, keepdims, dtype)


def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    *,
    no_zeros_in_input: bool = False,
) -> Node:
    """The product over `axis`, 1 where there is nothing; its derivative is right where elements are 0.

    `no_zeros_in_input` is Theano's and changes nothing."""
    node = as_node(x)
    items = vector_items(node)
    if items is not None and node.dtype == "int64" and dtype is None and acc_dtype is None and not keepdims:
        _axes("prod", node, axis)
        return as_size_node(sizes.product(items))
    return _accumulate("prod", node, axis, acc_dtype if dtype is None else dtype, keepdims, dtype)


def _accumulate(name: str, x: Node, axis: Any, inside: Any, keepdims: bool, dtype: Any) -> Node:
    """A sum or product carried in `inside`, as `dtype`."""
    target = accumulator(x.dtype) if inside is None else resolve_dtype(inside)
    if target == "bool":
        reduced = _reduce("any" if name == "sum" else "all", cast(x, "bool"), axis, keepdims)
    else:
        reduced = cast(_reduce(name, cast(x, accumulator(target)), axis, keepdims), target)
    return reduced if dtype is None else cast(reduced, resolve_dtype(dtype))


def count(x: Node, axes: tuple[int, ...]) -> Node:
    """How many elements a reduction over `axes` combines, an int64 scalar."""
    return as_size_node(sizes.product(x.type.shape[axis] for axis in axes))


def mean(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    *,
    op: bool = False,
) -> Node:
    """The arithmetic mean over `axis`, NaN where there is nothing; float64 for integers unless `dtype` is given.

    `op` is Theano's and changes nothing.
    """
    node = as_node(x)
    natural = node.dtype if is_float(node.dtype) else "float64"
    inside = natural if dtype is None and acc_dtype is None else resolve_dtype(acc_dtype if dtype is None else dtype)
    if not is_float(inside):
        raise GraphTypeError(f"mean of {describe(node)}: a mean cannot have dtype {inside}")
    total = sum(cast(node, inside), axis, keepdims=keepdims)
    average = elementwise("true_div", total, cast(count(node, _axes("mean", node, axis)), inside))
    return average if dtype is None else cast(average, resolve_dtype(dtype))


def var(
    x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False, dtype: Any = None
) -> Node:
    """The mean squared deviation from the mean over `axis`; divided by the number of elements less `ddof`.

    `corrected` (Theano's) subtracts the square of the mean deviation, which only rounding makes other than 0.
    """
    node = as_node(x)
    if dtype is not None or not is_float(node.dtype):
        node = cast(node, "float64" if dtype is None else resolve_dtype(dtype))
    axes = _axes("var", node, axis)
    centred = elementwise("sub", node, mean(node, axes, keepdims=True))
    number = cast(count(node, axes), node.dtype)
    divisor = elementwise("maximum", elementwise("sub", number, ddof), 0) if ddof else number
    spread = elementwise("true_div", sum(elementwise("sqr", centred), axes, keepdims=keepdims), divisor)
    if corrected:
        spread = elementwise("sub", spread, elementwise("sqr", mean(centred, axes, keepdims=keepdims)))
    return spread


def std(
    x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False, dtype: Any = None
) -> Node:
    """The square root of `var`."""
    return elementwise("sqrt", var(x, axis, ddof, keepdims, corrected, dtype))


def average(x: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Node:
    """The mean over `axis`, weighted by `weights`, which broadcast to `x` (or are a vector along `axis`).

    It has the dtype of `x` and `weights` together, and is computed in it; of integers `x` that of float64 besides.
    """
    node = as_node(x)
    if weights is None:
        return mean(node, axis, keepdims=keepdims)
    weight = as_node(weights)
    inside = promote(node.dtype, weight.dtype) if is_float(node.dtype) else promote(node.dtype, weight.dtype, "float64")
    node, weight = cast(node, inside), cast(weight, inside)
    axes = _axes("average", node, axis)
    if weight.ndim == 1 and node.ndim > 1 and len(axes) == 1:
        weight = layout.expand(weight, [k for k in range(node.ndim) if k != axes[0]])
    weighted = elementwise("mul", node, weight)
    spread = layout.broadcast_to(layout.expand(weight, range(node.ndim - weight.ndim)), weighted.type.shape)
    return elementwise("true_div", sum(weighted, axes, keepdims=keepdims), sum(spread, axes, keepdims=keepdims))


# --- extremes -------------------------------------------------------------------------------------------------------


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The maximum over `axis`, NaN where an element is. Equal maxima share the derivative. Empty axes are an error."""
    return _reduce("max", as_node(x), axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The minimum over `axis`, NaN where an element is. Equal minima share the derivative. Empty axes are an error."""
    return _reduce("min", as_node(x), axis, keepdims)


amax, amin = max, min


def extreme_from(name: str, x: Any, initial: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The reduction "max" or "min" of `x` and of a scalar `initial`, in the dtype of `x`: of no elements `initial`."""
    node = as_node(x)
    start = as_node(initial, node.dtype)
    if start.ndim:
        raise GraphTypeError(f"{name} of {describe(node)}: initial {describe(start)} of {start.type} is no scalar")
    axes = _axes(name, node, axis)
    found = _reduce("max_or_lowest" if name == "max" else "min_or_highest", node, axes, keepdims)
    return elementwise("maximum" if name == "max" else "minimum", found, start)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The maximum less the minimum over `axis`."""
    return elementwise("sub", max(x, axis, keepdims), min(x, axis, keepdims))


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The int64 position of the first maximum (or first NaN) along `axis`, or in C order over all or several axes."""
    return _position("argmax", as_node(x), axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The int64 position of the first minimum (or first NaN) along `axis`, or in C order over all or several axes."""
    return _position("argmin", as_node(x), axis, keepdims)


def _position(name: str, x: Node, axis: Any, keepdims: bool) -> Node:
    if x.ndim == 0:
        _axes(name, x, axis)
        return literal(0, "int64")
    return _reduce(name, x, axis, keepdims)


def max_and_argmax(x: Any, axis: Any = None, keepdims: bool = False) -> tuple[Node, Node]:
    """Both `max` and `argmax`."""
    return max(x, axis, keepdims), argmax(x, axis, keepdims)


# --- logic ----------------------------------------------------------------------------------------------------------


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """Whether any element along `axis` is not 0."""
    return _reduce("any", cast(as_node(x), "bool"), axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """Whether all elements along `axis` are not 0."""
    return _reduce("all", cast(as_node(x), "bool"), axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """How many elements along `axis` are not 0."""
    return sum(cast(as_node(x), "bool"), axis, keepdims=keepdims)


# --- norms and exponentials -----------------------------------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, L: Any = None) -> Node:  # noqa: N803
    """The vector norm over `axis`, of all elements by default: the `ord`-th root of the sum of |x|**ord; None is 2.

    `ord` inf and -inf are the greatest and the least |x|, 0 counts what is not 0. `L` is Theano's name of it.
    """
    ord = ord if L is None else L
    node = as_node(x)
    if not is_float(node.dtype):
        node = cast(node, "float64")
    size = elementwise("abs", node)
    if ord is None or ord == 2:
        return elementwise("sqrt", sum(elementwise("sqr", node), axis, keepdims=keepdims))
    if ord in (float("inf"), "inf"):
        return max(size, axis, keepdims)
    if ord in (float("-inf"), "-inf"):
        return min(size, axis, keepdims)
    if ord == 0:
        return cast(count_nonzero(node, axis, keepdims), node.dtype)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise GraphValueError(f"norm of {describe(node)}: ord {ord!r} is not supported")
    return elementwise("pow", sum(elementwise("pow", size, ord), axis, keepdims=keepdims), 1.0 / ord)


def shift_of(x: Node, axes: tuple[int, ...]) -> Node:
    """The maximum over `axes`, kept as axes of size 1, and 0 where it is not finite: no derivative flows through it.

    Functions of exp(x - shift) that do not depend on the shift use it to keep exp from overflowing. Of no elements the
    shift is 0, so that such a function gives what it gives without one.
    """
    highest = _reduce("supremum", x, axes, keepdims=True)
    return stop_gradient(elementwise("where", elementwise("isfinite", highest), highest, 0))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """log(sum(exp(x))) over `axis` without overflow; -inf where all elements are, as scipy.special has it."""
    node = as_node(x)
    if not is_float(node.dtype):
        node = cast(node, floating(node.dtype))
    axes = _axes("logsumexp", node, axis)
    shift = shift_of(node, axes)
    total = sum(elementwise("exp", elementwise("sub", node, shift)), axes, keepdims=True)
    result = elementwise("add", elementwise("log", total), shift)
    return result if keepdims else layout.drop(result, axes)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Node:
    """Whether `isclose` holds of all elements."""
    return all(isclose(a, b, rtol, atol, equal_nan))


# --- running sums and products --------------------------------------------------------------------------------------


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The sums of the first 1, 2, … elements along `axis`, or of all elements in C order.

    They are int64 or uint64 of integers, or of `dtype`, in which they wrap around as NumPy's."""
    return _running("cumsum", recur.running_sum, x, axis, dtype)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The products of the first 1, 2, … elements along `axis`, or of all elements in C order; dtypes as of `cumsum`."""
    return _running("cumprod", recur.running_prod, x, axis, dtype)


def _running(name: str, function: Any, x: Any, axis: int | None, dtype: Any) -> Node:
    node = as_node(x) if axis is not None else flatten(x)
    kind = accumulator(node.dtype) if dtype is None else resolve_dtype(dtype)
    node = cast(cast(node, kind), accumulator(kind))
    place = normalise_axis(axis or 0, node.ndim, told(lambda: f"{name} of {describe(node)} of type {node.type}"))
    return cast(function(node, place), kind)


FUNCTIONS.update(
    all=all, any=any, argmax=argmax, argmin=argmin, cumprod=cumprod, cumsum=cumsum, max=max, mean=mean, min=min,
    norm=norm, prod=prod, ptp=ptp, std=std, sum=sum, var=var,
)  # fmt: skip
