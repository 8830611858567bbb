"""Reductions: NumPy's functions over axes.

    x.sum(axis=0, keepdims=True)         float64[1, n]
    x.max(where=x > 0, initial=0.0)      the largest of the elements above 0

In: a tensor, `axis` (None for all, a number, or a tuple; negative ones count from the end), `keepdims`, `where` (which
elements take part: bools that broadcast to the tensor), `initial` (a scalar that takes part besides). Out: nodes of the
reduction ops. Integers are summed in 64 bits, their means are float64, as in NumPy; float32 is accumulated in float64.
A wrong axis, or one named twice, raises AxisError.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import COMPLEX, accumulator, floating, is_float, is_inexact, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Complex, Node, describe, lazy_text, literal
from graphc.ir.walk import as_size_node
from graphc.ops import recur, reduce as ops, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.startup.hooks import HOOKS
from graphc.tensor.elementary import isclose, stop_gradient
from graphc.tensor.shaping import as_axis, flatten, label_operand, normalise_axes, normalise_axis, vector_items
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
    "logsumexp", "max", "max_and_argmax", "mean", "min", "norm", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def _axes(name: str, x: Node, axis: Any) -> tuple[int, ...]:
    """The reduced axes in ascending order."""
    return tuple(sorted(normalise_axes(axis, x.ndim, label_operand(name, x))))


def _reduce(name: str, x: Node, axis: Any, keepdims: bool) -> Node:
    """The reduction `name` of `x`, which has the op's dtype already."""
    axes = _axes(name, x, axis)
    reduced = ops.reduction(name, x, axes)
    return layout.expand(reduced, axes) if keepdims else reduced


def _mask(name: str, x: Node, where: Any) -> Node | None:
    """`where` with the axes of `x`; None where all elements take part."""
    if where is True or where is None:
        return None
    mask = cast(as_node(where), "bool")
    if mask.ndim > x.ndim:
        raise RankError(f"{name} of {describe(x)} of type {x.type}: where= has {mask.ndim} axes")
    return layout.broadcast_to(layout.expand(mask, range(x.ndim - mask.ndim)), x.type.shape)


def _taking_part(name: str, x: Node, where: Any, neutral: Any) -> Node:
    """`x`, with `neutral` in its dtype for the elements that `where` leaves out."""
    mask = _mask(name, x, where)
    return x if mask is None else elementwise("where", mask, x, as_node(neutral, x.type.dtype))


def _initial(name: str, x: Node, initial: Any, dtype: str) -> Node:
    """The initial value of a reduction, a scalar of its dtype."""
    start = as_node(initial, dtype)
    if start.ndim:
        raise GraphTypeError(f"{name} of {describe(x)}: initial {describe(start)} of {start.type} is no scalar")
    return start


# --- sums and products ----------------------------------------------------------------------------------------------


def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    *,
    initial: Any = None,
    where: Any = True,
) -> Node:
    """The sum over `axis`, 0 where there is nothing; with `initial` added, of the elements that `where` marks.

    Integers are summed as int64 or uint64 unless `dtype` is given. `acc_dtype` is Theano's: the dtype to add up in.

        >>> T.sum(T.constant([[1, 2], [3, 4]]), axis=0, initial=10).eval()
        array([14, 16])

    Raises AxisError for a wrong axis, RankError for a `where` of more axes than `x`.
    """
    node = _taking_part("sum", as_node(x), where, 0)
    total = _accumulate("sum", node, axis, acc_dtype if dtype is None else dtype, keepdims, dtype)
    return total if initial is None else elementwise("add", total, _initial("sum", node, initial, total.type.dtype))


def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    *,
    no_zeros_in_input: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Node:
    """The product over `axis`, 1 where there is nothing; times `initial`, of the elements that `where` marks.

    Its derivative is right where elements are 0. Dtypes and errors are those of `sum`. `no_zeros_in_input` is Theano's
    and changes nothing.

        >>> T.prod(T.constant([2.0, 0.0, 3.0]), where=[True, False, True]).eval()
        array(6.)
    """
    node = _taking_part("prod", as_node(x), where, 1)
    if type(node) is Complex:
        made = HOOKS.complexes.product(node, _axes("prod", node, axis), keepdims)
        return made if initial is None else elementwise("mul", made, initial)
    items = vector_items(node)
    if items is not None and node.type.dtype == "int64" and dtype is None and acc_dtype is None and not keepdims:
        _axes("prod", node, axis)
        total = as_size_node(sizes.product(items))
    else:
        total = _accumulate("prod", node, axis, acc_dtype if dtype is None else dtype, keepdims, dtype)
    return total if initial is None else elementwise("mul", total, _initial("prod", node, initial, total.type.dtype))


def _accumulate(name: str, x: Node, axis: Any, inside: Any, keepdims: bool, dtype: Any) -> Node:
    """A sum or product carried in `inside`, as `dtype`."""
    target = accumulator(x.type.dtype) if inside is None else resolve_dtype(inside)
    if target == "bool":
        reduced = _reduce("any" if name == "sum" else "all", cast(x, "bool"), axis, keepdims)
    else:
        reduced = cast(_reduce(name, cast(x, accumulator(target)), axis, keepdims), target)
    return reduced if dtype is None else cast(reduced, resolve_dtype(dtype))


def count(x: Node, axes: tuple[int, ...]) -> Node:
    """The number of elements that a reduction over `axes` combines, an int64 scalar."""
    return as_size_node(sizes.product(x.type.shape[axis] for axis in axes))


def _count_taking_part(name: str, x: Node, axes: tuple[int, ...], where: Any, keepdims: bool, dtype: str) -> Node:
    """The number of elements that `where` marks, in the dtype of their mean."""
    mask = _mask(name, x, where)
    return cast(count(x, axes) if mask is None else sum(mask, axes, keepdims=keepdims), dtype)


def mean(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    *,
    op: bool = False,
    where: Any = True,
) -> Node:
    """The arithmetic mean over `axis` of the elements that `where` marks, NaN where there is nothing.

    It is float64 of integers unless `dtype` is given. `op` is Theano's and changes nothing.

        >>> T.mean(T.constant([[1, 2], [3, 5]]), axis=1).eval()
        array([1.5, 4. ])

    Raises AxisError for a wrong axis, GraphTypeError for a `dtype` that is not a float.
    """
    node = as_node(x)
    natural = node.type.dtype if is_inexact(node.type.dtype) else "float64"
    inside = natural if dtype is None and acc_dtype is None else resolve_dtype(acc_dtype if dtype is None else dtype)
    if not is_inexact(inside):
        raise GraphTypeError(f"mean of {describe(node)}: a mean cannot have dtype {inside}")
    total = sum(cast(node, inside), axis, keepdims=keepdims, where=where)
    number = _count_taking_part("mean", node, _axes("mean", node, axis), where, keepdims, inside)
    average = elementwise("true_div", total, number)
    return average if dtype is None else cast(average, resolve_dtype(dtype))


mean_of = mean


def var(
    x: Any,
    axis: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
    dtype: Any = None,
    *,
    where: Any = True,
    mean: Any = None,
) -> Node:
    """The mean squared deviation from the mean over `axis`, of the elements that `where` marks.

    It is divided by the number of elements less `ddof`, and is float64 of integers unless `dtype` is given. `corrected`
    (Theano's) subtracts the square of the mean deviation, which only rounding makes other than 0. `mean`: the mean,
    with axes of size 1 for those it is over, where it is known.

        >>> T.var(T.constant([1.0, 3.0]), ddof=1).eval()
        array(2.)

    Raises AxisError for a wrong axis.
    """
    node = as_node(x)
    if dtype is not None or not is_inexact(node.type.dtype):
        node = cast(node, "float64" if dtype is None else resolve_dtype(dtype))
    axes = _axes("var", node, axis)
    centred = elementwise("sub", node, mean_of(node, axes, keepdims=True, where=where) if mean is None else mean)
    number = _count_taking_part("var", node, axes, where, keepdims, COMPLEX.get(node.type.dtype, node.type.dtype))
    divisor = elementwise("maximum", elementwise("sub", number, ddof), 0) if ddof else number
    squares = sum(square_size(centred), axes, keepdims=keepdims, where=where)
    spread = elementwise("true_div", squares, divisor)
    if corrected and type(node) is not Complex:
        spread = elementwise("sub", spread, elementwise("sqr", mean_of(centred, axes, keepdims=keepdims, where=where)))
    return spread


def square_size(x: Node) -> Node:
    """The square of the absolute value of each element."""
    if type(x) is Complex:
        return elementwise("add", *(elementwise("sqr", part) for part in x.args))
    return elementwise("sqr", x)


def std(
    x: Any,
    axis: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
    dtype: Any = None,
    *,
    where: Any = True,
    mean: Any = None,
) -> Node:
    """The square root of `var`, whose arguments and errors are the same.

    >>> T.std(T.constant([1.0, 3.0])).eval()
    array(1.)
    """
    return elementwise("sqrt", var(x, axis, ddof, keepdims, corrected, dtype, where=where, mean=mean))


def average(x: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Node:
    """The mean over `axis`, weighted by `weights`, which broadcast to `x` (or are a vector along `axis`).

    It has the dtype of `x` and `weights` together, and is computed in it; of integers `x` that of float64 besides. NaN
    where the weights add up to 0. Raises AxisError for a wrong axis.

        >>> T.average(T.constant([1.0, 5.0]), weights=[3.0, 1.0]).eval()
        array(2.)
    """
    node = as_node(x)
    if weights is None:
        return mean(node, axis, keepdims=keepdims)
    weight = as_node(weights)
    inside = (
        promote(node.type.dtype, weight.type.dtype)
        if is_inexact(node.type.dtype)
        else promote(node.type.dtype, weight.type.dtype, "float64")
    )
    node, weight = cast(node, inside), cast(weight, inside)
    axes = _axes("average", node, axis)
    if weight.ndim == 1 and node.ndim > 1 and len(axes) == 1:
        weight = as_axis(weight, axes[0], node.ndim)
    weighted = elementwise("mul", node, weight)
    spread = layout.broadcast_to(layout.expand(weight, range(node.ndim - weight.ndim)), weighted.type.shape)
    return elementwise("true_div", sum(weighted, axes, keepdims=keepdims), sum(spread, axes, keepdims=keepdims))


# --- extremes -------------------------------------------------------------------------------------------------------


def max(x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
    """The maximum over `axis`, NaN where an element is; of no elements `initial`, or an error at the call.

    Elements that `where` does not mark are left out, for which it needs `initial`. Equal maxima share the derivative.

        >>> T.max(T.constant([[1, 7], [5, 2]]), axis=1).eval()
        array([7, 5])

    Raises AxisError for a wrong axis, GraphTypeError for a `where` without `initial`.
    """
    return _extreme("max", as_node(x), axis, keepdims, initial, where)


def min(x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
    """The minimum over `axis`, NaN where an element is. Arguments are those of `max`. Raises the errors of `max`.

    >>> T.min(T.constant([[1, 7], [5, 2]]), axis=1).eval()
    array([1, 2])
    """
    return _extreme("min", as_node(x), axis, keepdims, initial, where)


amax, amin = max, min


def _extreme(name: str, x: Node, axis: Any, keepdims: bool, initial: Any, where: Any) -> Node:
    if initial is None:
        if _mask(name, x, where) is not None:
            raise GraphTypeError(
                f"{name} of {describe(x)}: where= needs initial=, which it gives where no element takes part"
            )
        return _reduce(name, x, axis, keepdims)
    start = _initial(name, x, initial, x.type.dtype)
    node = _taking_part(name, x, where, start)
    found = _reduce("max_or_lowest" if name == "max" else "min_or_highest", node, axis, keepdims)
    return elementwise("maximum" if name == "max" else "minimum", found, start)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The maximum less the minimum over `axis`.

    Raises AxisError for a wrong axis; a call raises ShapeError where there is nothing.

        >>> T.ptp(T.constant([3, 9, 4])).eval()
        array(6)
    """
    return elementwise("sub", max(x, axis, keepdims), min(x, axis, keepdims))


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The int64 position of the first maximum (or first NaN) along `axis`, or in C order over all or several axes.

    Raises AxisError for a wrong axis; a call raises ShapeError where there is nothing.

        >>> T.argmax(T.constant([[1, 7], [5, 2]]), axis=1).eval()
        array([1, 0])
    """
    return _position("argmax", as_node(x), axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The int64 position of the first minimum (or first NaN) along `axis`, or in C order over all or several axes.

    Raises AxisError for a wrong axis; a call raises ShapeError where there is nothing.

        >>> T.argmin(T.constant([[1, 7], [5, 2]]), axis=1).eval()
        array([0, 1])
    """
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


def any(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Node:
    """True where an element along `axis`, of those that `where` marks, is not 0; False of no elements.

    >>> T.any(T.constant([[0, 1], [0, 0]]), axis=1).eval()
    array([ True, False])
    """
    return _reduce("any", _taking_part("any", cast(as_node(x), "bool"), where, False), axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Node:
    """True where all elements along `axis`, of those that `where` marks, are not 0; True of no elements.

    >>> T.all(T.constant([[0, 1], [2, 3]]), axis=1).eval()
    array([False,  True])
    """
    return _reduce("all", _taking_part("all", cast(as_node(x), "bool"), where, True), axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """The number of elements along `axis` that are not 0.

    The result is int64.

        >>> T.count_nonzero(T.constant([[0, 1], [0, 2]]), axis=0).eval()
        array([0, 2])
    """
    return sum(cast(as_node(x), "bool"), axis, keepdims=keepdims)


# --- norms and exponentials -----------------------------------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, L: Any = None) -> Node:  # noqa: N803
    """The vector norm over `axis`, of all elements by default: the `ord`-th root of the sum of |x|**ord; None is 2.

    `ord` inf and -inf are the greatest and the least |x|, 0 counts what is not 0. Of no elements a norm is 0, but for
    -inf, of which a call raises ShapeError. It is float64 of integers. `L` is Theano's name of `ord`. Raises
    GraphValueError for another word, AxisError for a wrong axis.

        >>> T.norm(T.constant([3.0, -4.0])).eval()
        array(5.)
    """
    ord = ord if L is None else L
    node = as_node(x)
    if not is_inexact(node.type.dtype):
        node = cast(node, "float64")
    size = elementwise("abs", node)
    if ord is None or ord == 2:
        return elementwise("sqrt", sum(square_size(node), axis, keepdims=keepdims))
    if ord in (float("inf"), "inf"):
        combined = sizes.product(node.type.shape[each] for each in _axes("norm", node, axis))
        never_empty = sizes.known_at_least(combined, 1)
        return max(size, axis, keepdims, initial=None if never_empty else 0)
    if ord in (float("-inf"), "-inf"):
        return min(size, axis, keepdims)
    if ord == 0:
        return cast(count_nonzero(node, axis, keepdims), size.type.dtype)
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
    """log(sum(exp(x))) over `axis` without overflow; -inf where all elements are, as scipy.special has it.

    The result is a float, of integers the smallest that NumPy's log gives.

        >>> T.logsumexp(T.constant([1000.0, 1000.0])).eval()
        array(1000.69314718)

    Raises AxisError for a wrong axis.
    """
    node = as_node(x)
    if not is_float(node.type.dtype):
        node = cast(node, floating(node.type.dtype))
    axes = _axes("logsumexp", node, axis)
    shift = shift_of(node, axes)
    total = sum(elementwise("exp", elementwise("sub", node, shift)), axes, keepdims=True)
    result = elementwise("add", elementwise("log", total), shift)
    return result if keepdims else layout.drop(result, axes)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Node:
    """True if `isclose` holds of all elements.

    The result is a bool scalar; the arrays broadcast.

        >>> T.allclose(T.constant([1.0, 2.0]), [1.0, 2.000001]).eval()
        array(True)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


# --- running sums and products --------------------------------------------------------------------------------------


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The sums of the first 1, 2, … elements along `axis`, or of all elements in C order.

    They are int64 or uint64 of integers, or of `dtype`, in which they wrap around as NumPy's. Raises AxisError for a
    wrong axis.

        >>> T.cumsum(T.constant([1, 2, 3])).eval()
        array([1, 3, 6])
    """
    return _running("cumsum", recur.running_sum, x, axis, dtype)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """The products of the first 1, 2, … elements along `axis`, or of all elements in C order; dtypes as of `cumsum`.

    >>> T.cumprod(T.constant([1, 2, 3])).eval()
    array([1, 2, 6])
    """
    if type(as_node(x)) is Complex:
        node = as_node(x) if axis is not None else flatten(x)
        place = normalise_axis(axis or 0, node.ndim, label_operand("cumprod", node))
        found: Node = HOOKS.complexes.running_product(node, place)
        return found
    return _running("cumprod", recur.running_prod, x, axis, dtype)


def _running(name: str, function: Any, x: Any, axis: int | None, dtype: Any) -> Node:
    node = as_node(x) if axis is not None else flatten(x)
    kind = accumulator(node.type.dtype) if dtype is None else resolve_dtype(dtype)
    node = cast(cast(node, kind), accumulator(kind))
    place = normalise_axis(axis or 0, node.ndim, label_operand(name, node))
    return cast(function(node, place), kind)


def running_extreme(x: Any, extreme: str, axis: int = 0) -> Node:
    """The largest or smallest elements up to each one along an axis, of the dtype of `x`."""
    node = as_node(x)
    place = normalise_axis(axis, node.ndim, lazy_text(lambda: f"{extreme} of {describe(node)} of type {node.type}"))
    kind = "int8" if node.type.dtype == "bool" else node.type.dtype
    return cast(recur.running_extreme(cast(node, kind), extreme, place), node.type.dtype)


FUNCTIONS.update(
    all=all, any=any, argmax=argmax, argmin=argmin, cumprod=cumprod, cumsum=cumsum, max=max, mean=mean, min=min,
    norm=norm, prod=prod, ptp=ptp, std=std, sum=sum, var=var,
)  # fmt: skip
