"""Differences, sums along curves, interpolation, products of sequences, and polynomials.

    diff([1, 4, 9])             [3, 5]
    polyval([1, 0], x)          x

In: tensors, spacings, points. Out: nodes composed of slices, running sums, gathers and searches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.arrays.dtypes import COMPLEX, accumulator, is_float, is_inexact, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import OPS, Complex, Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops import shape as ops
from graphc.ops.conv import convolve as convolve_images
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import checked, with_elements
from graphc.ops.index import subtensor
from graphc.ops.questions import asked_size
from graphc.ops.recur import linear_recurrence
from graphc.startup.hooks import HOOKS
from graphc.tensor import shaping
from graphc.tensor.creation import zeros
from graphc.tensor.elementary import abs, conj, logical_and, logical_or, maximum, minimum, mod, where
from graphc.tensor.indexing import flip, slice_along, take
from graphc.tensor.joining import concatenate, stack
from graphc.tensor.reductions import cumsum, sum, sum as sum_of
from graphc.tensor.sorting import searchsorted

__all__ = [
    "convolve", "correlate", "cross", "diff", "ediff1d", "gradient", "interp", "polyadd", "polyder", "polyint",
    "polymul", "polysub", "polyval", "trapezoid", "unwrap",
]  # fmt: skip

# --- differences ----------------------------------------------------------------------------------------------------


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Node:
    """Differences of neighbours along `axis`, taken `n` times, of `x` between what is put before and after it.

    Raises AxisError for a wrong axis.

        >>> T.diff(T.constant([1, 4, 9])).eval()
        array([3, 5])
    """
    node, what = shaping.operand("diff", x)
    place = shaping.normalise_axis(axis, node.ndim, what)
    if n < 0:
        raise ShapeError(f"{what}: n={n} is negative")
    if n == 0:
        return node
    parts: list[Node] = []
    for part in (prepend, node, append):
        if part is not None:
            one = as_node(part)
            if one.ndim == 0:
                shape = [1 if k == place else size for k, size in enumerate(node.type.shape)]
                one = ops.filled(one, shape)
            parts.append(one)
    node = concatenate(parts, place) if len(parts) > 1 else node
    relation = "not_equal" if node.type.dtype == "bool" else "sub"
    for _ in range(n):
        node = elementwise(relation, slice_along(node, place, 1, None), slice_along(node, place, None, -1))
    return node


def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Node:
    """The differences of neighbours of the flattened `x`, between what is put before and after them."""
    node = diff(shaping.flatten(x))
    parts = [None if part is None else cast(shaping.flatten(part), node.type.dtype) for part in (to_begin, to_end)]
    return concatenate([part for part in (parts[0], node, parts[1]) if part is not None], 0)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes of `f` along each of `axis` (all; a tuple where there are several) by differences of neighbours.

    The spacing is 1, a number for all axes, or a number or the coordinates for each. Inside, the quotient of second
    order; at the ends of order `edge_order`, 1 or 2.

        >>> T.gradient(T.constant([1.0, 4.0, 9.0])).eval()
        array([3., 4., 5.])
    """
    node, what = shaping.operand("gradient", f)
    axes = shaping.normalise_axes(axis, node.ndim, what)
    given = list(varargs) if len(varargs) > 1 else list(varargs or [1.0]) * len(axes)
    if len(given) != len(axes) or edge_order not in (1, 2):
        raise GraphValueError(f"{what}: {len(given)} spacings for {len(axes)} axes, edge_order={edge_order}")
    node = node if is_inexact(node.type.dtype) else cast(node, "float64")
    slopes = [_slope(node, place, as_node(step), edge_order, what) for place, step in zip(axes, given, strict=True)]
    return slopes[0] if len(axes) == 1 else tuple(slopes)


def _slope(x: Node, axis: int, step: Node, order: int, what: str) -> Node:
    x = with_elements(x, axis, order + 1, f"{what}: axis {axis} has less than {order + 1} elements")

    def at(start: Any, stop: Any) -> Node:
        return slice_along(x, axis, start, stop)

    def along(values: Node) -> Node:
        return shaping.as_axis(values, axis, x.ndim)

    if step.ndim == 0:
        step = cast(step, x.type.dtype)
        inside = (at(2, None) - at(None, -2)) / (2.0 * step)
        if order == 1:
            ends = (at(1, 2) - at(0, 1)) / step, (at(-1, None) - at(-2, -1)) / step
        else:
            ends = (
                (-1.5 / step) * at(0, 1) + (2.0 / step) * at(1, 2) + (-0.5 / step) * at(2, 3),
                (0.5 / step) * at(-3, -2) + (-2.0 / step) * at(-2, -1) + (1.5 / step) * at(-1, None),
            )
        return concatenate([ends[0], inside, ends[1]], axis)
    if step.ndim != 1:
        raise RankError(f"{what}: the spacing {describe(step)} of type {step.type} is no number or vector")
    gaps = diff(cast(step, x.type.dtype))
    before, after = along(gaps[:-1]), along(gaps[1:])
    inside = (
        at(None, -2) * (-after / (before * (before + after)))
        + at(1, -1) * ((after - before) / (before * after))
        + at(2, None) * (before / (after * (before + after)))
    )
    first, last = along(gaps[:1]), along(gaps[-1:])
    if order == 1:
        return concatenate([(at(1, 2) - at(0, 1)) / first, inside, (at(-1, None) - at(-2, -1)) / last], axis)
    second, other = along(gaps[1:2]), along(gaps[-2:-1])
    low = (
        at(0, 1) * (-(2.0 * first + second) / (first * (first + second)))
        + at(1, 2) * ((first + second) / (first * second))
        + at(2, 3) * (-first / (second * (first + second)))
    )
    high = (
        at(-3, -2) * (last / (other * (other + last)))
        + at(-2, -1) * (-(last + other) / (other * last))
        + at(-1, None) * ((2.0 * last + other) / (last * (other + last)))
    )
    return concatenate([low, inside, high], axis)


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: Any = 2 * math.pi) -> Node:
    """`p` with whole periods added so that neighbours along `axis` differ by no more than half a period.

    Only differences above `discont` (half a period) are changed.
    """
    node, what = shaping.operand("unwrap", p)
    place = shaping.normalise_axis(axis, node.ndim, what)
    steps = diff(node, axis=place)
    whole = not is_float(node.type.dtype) and isinstance(period, int)
    if not whole:
        node, steps = (one if is_float(one.type.dtype) else cast(one, "float64") for one in (node, steps))
    half = period // 2 if whole else period / 2
    shifted = mod(steps - (-half), period) + (-half)
    if not whole or period % 2 == 0:
        shifted = where(
            logical_and(elementwise("equal", shifted, -half), elementwise("greater", steps, 0)), half, shifted
        )
    change = where(abs(steps) < (half if discont is None else maximum(discont, half)), 0, shifted - steps)
    return concatenate(
        [slice_along(node, place, None, 1), slice_along(node, place, 1, None) + cumsum(change, place)], place
    )


# --- sums along curves ----------------------------------------------------------------------------------------------


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Node:
    """The integral of `y` along `axis` by trapezoids, at the points `x` or at points that are `dx` apart."""
    node = as_node(y)
    place = shaping.normalise_axis(axis, node.ndim, shaping.label_operand("trapezoid", node))
    gaps = dx
    if x is not None:
        points = as_node(x)
        gaps = diff(points, axis=-1 if points.ndim == 1 else place)
        if points.ndim == 1:
            gaps = shaping.as_axis(gaps, place, node.ndim)
    heights = slice_along(node, place, 1, None) + slice_along(node, place, None, -1)
    return sum(elementwise("mul", gaps, heights) / 2.0, place)


# --- interpolation --------------------------------------------------------------------------------------------------


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Node:
    """The value at each of `x` of the polygon through the points (`xp`, `fp`), whose `xp` ascend.

    Below the first point it is `left` (the first of `fp`), above the last `right` (the last). With a constant `xp` and
    a `period`, both `x` and `xp` are taken modulo the period. Positions are found by bisection.

        >>> T.interp(1.5, [1.0, 2.0], [10.0, 20.0]).eval()
        array(15.)
    """
    wanted, points, values = as_node(x), as_node(xp), as_node(fp)
    if points.ndim != 1 or values.ndim != 1:
        raise ShapeError(f"interp: {describe(points)} of type {points.type} and {describe(values)} should be vectors")
    dtype = promote("float64", wanted.type.dtype, points.type.dtype, values.type.dtype)
    wanted, points, values = (cast(node, dtype) for node in (wanted, points, values))
    sizes.common(points.type.shape[0], values.type.shape[0], f"interp: {describe(points)} and {describe(values)}")
    if period is not None:
        wanted, points, values = _periodic(wanted, values, period, xp)
        left = right = None
    values = ops.broadcast_to(values, points.type.shape)
    length = as_size_node(points.type.shape[0])
    last = searchsorted(points, wanted, "right") - 1  # the last point that is not above
    low = maximum(minimum(last, length - 2), 0)  # at the last point its own stretch
    high = minimum(low + 1, length - 1)
    x0, x1, y0, y1 = take(points, low), take(points, high), take(values, low), take(values, high)
    gap = x1 - x0
    slope = (y1 - y0) / where(elementwise("equal", gap, 0), 1.0, gap)
    inside = _on_line(x0, y0, slope, wanted)
    from_above = logical_or(elementwise("equal", wanted, x1), elementwise("isnan", inside))
    inside = where(from_above, _on_line(x1, y1, slope, wanted), inside)
    inside = where(logical_and(elementwise("isnan", inside), elementwise("equal", y0, y1)), y0, inside)
    below, above = values[0] if left is None else left, values[-1] if right is None else right
    found = where(wanted < points[0], below, where(wanted > points[-1], above, inside))
    return where(elementwise("isnan", wanted), wanted, found)


def _on_line(x0: Node, y0: Node, slope: Node, x: Node) -> Node:
    """The value at `x` of the line through (x0, y0): at x0 it is y0 to the bit, and has the derivative of the line."""
    rise = where(elementwise("signbit", slope), slope * (x - x0), -slope * (x0 - x))  # -0 at x0: it changes no zero
    at_infinity = logical_and(elementwise("equal", x, x0), elementwise("isnan", rise))
    return where(at_infinity, y0, rise + y0)


def _periodic(x: Node, fp: Node, period: Any, given: Any) -> tuple[Node, Node, Node]:
    """The points in ascending order within a period, and one more on either side."""
    if isinstance(given, Node):
        raise GraphTypeError("interp: with a period the points xp should be constants")
    length = float(np.abs(period))
    order = np.argsort(np.asarray(given, "float64") % length)
    folded = np.sort(np.asarray(given, "float64") % length)
    points = np.concatenate([folded[-1:] - length, folded, folded[:1] + length])
    values = take(fp, np.concatenate([order[-1:], order, order[:1]]))
    return mod(x, length), as_node(points), values


# --- products of sequences ------------------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full") -> Node:
    """The products of two vectors as polynomials: the sums of a[k] * v[n - k].

    mode: "full" (every n at which they meet), "same" (as many as the longer one, in the middle), "valid" (where the
    shorter one lies within the other). Raises GraphValueError for another mode, ShapeError for an empty vector, of the
    call where its size is not known before.

        >>> T.convolve(T.constant([1.0, 2.0]), [1.0, 1.0]).eval()
        array([1., 3., 2.])
    """
    left, right = (as_node(one) for one in (a, v))
    return _slide("convolve", left, right, mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Node:
    """The sums of a[n + k] * v[k] for two vectors, of which a complex `v` is conjugated; mode as in `convolve`."""
    left, right = (as_node(one) for one in (a, v))
    right = conj(right) if type(right) is Complex else right
    return _slide("correlate", left, right, mode, mirrored=True)


FEW = 32
"""With a known number of elements up to this, sums of so many terms are faster than a convolution."""


def _slide(name: str, a: Node, v: Node, mode: str, mirrored: bool = False) -> Node:
    """The sums of a[k] * v[n - k]. `mirrored`: those of a[n + k] * v[k]; where `v` is the longer one, their middle is
    that of the reversed result, as in NumPy."""
    for node in (a, v):
        if node.ndim > 1:
            raise ShapeError(f"{name}: {describe(node)} of type {node.type} is no vector")
    if mode not in ("full", "same", "valid"):
        raise GraphValueError(f"{name}: mode {mode!r} is not full, same or valid")
    dtype = promote(a.type.dtype, v.type.dtype)
    a, v = (with_elements(shaping.flatten(node), 0, 1, f"{name}: {describe(node)} has no elements") for node in (a, v))
    a, v = (cast(node, "int64" if dtype == "bool" else dtype) for node in (a, v))
    n, m = a.type.shape[0], v.type.shape[0]
    longest, shortest = sizes.maximum(n, m), sizes.minimum(n, m)
    total = sizes.add(sizes.add(n, m), -1)
    begin: Size = 0
    count = total
    if mode == "same":
        begin, count = sizes.floor_divide(sizes.add(shortest, -1), 2), longest
        if mirrored:
            turned = elementwise("less", as_size_node(n), as_size_node(m))
            begin = sizes.as_size(where(turned, as_size_node(shortest) // 2, as_size_node(begin)))
    elif mode == "valid":
        begin, count = sizes.add(shortest, -1), sizes.add(sizes.subtract(longest, shortest), 1)
    if is_float(dtype) and not (isinstance(m, int) and m <= FEW):
        low, high = sizes.subtract(sizes.add(m, -1), begin), sizes.add(sizes.subtract(count, n), begin)
        image, kernel = (ops.expand(node, (0, 1, 2)) for node in (a, v))
        return ops.drop(convolve_images(image, kernel, (1,), (1 if mirrored else -1,), (low,), (high,)), (0, 1, 2))
    # Row i holds the elements of `a` that meet `v`, zeros where there are none.
    border = as_size_node(sizes.maximum(sizes.add(m, -1), 0))  # of no elements the error is that there are none
    padded = concatenate([zeros((border,), a.type.dtype), a, zeros((border,), a.type.dtype)], 0)
    met = subtensor(padded, (begin,), (sizes.add(count, sizes.add(m, -1)),), (1,))
    place = ops.expand(ops.iota(count), (1,)) + ops.expand(ops.iota(m), (0,))
    return cast(sum(take(met, place) * (v if mirrored else flip(v)), 1), dtype)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Node:
    """The cross product of vectors with three elements (or two: their third one is 0) along an axis; others broadcast.

    Of two pairs with two elements it is the third element alone.

        >>> T.cross(T.constant([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]).eval()
        array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = as_node(a), as_node(b)
    left, right = (shaping.moveaxis(node, place, -1) for node, place in ((left, axisa), (right, axisb)))

    def parts(node: Node) -> list[Node | None]:
        count = asked_size(node.type.shape[-1])
        if not isinstance(count, int) or count not in (2, 3):
            raise ShapeError(f"cross: {describe(node)} of type {node.type} has not 2 or 3 elements along its axis")
        return [node[..., k] if k < count else None for k in range(3)]

    x, y = parts(left), parts(right)

    def minor(i: int, j: int) -> Any:
        first, second, third, fourth = x[i], y[j], x[j], y[i]
        if first is None or second is None:
            return -(third * fourth)  # type: ignore[operator]
        return first * second if third is None or fourth is None else first * second - third * fourth

    if x[2] is None and y[2] is None:
        made: Node = minor(0, 1)
        return made
    return shaping.moveaxis(stack([minor(1, 2), minor(2, 0), minor(0, 1)], axis=-1), -1, axisc)


# --- polynomials ------------------------------------------------------------------------------------------------------
# Polynomials as vectors of coefficients, the highest power first.
#
# In: vectors. Out: vectors and values composed of sums and convolutions.


def _aligned(name: str, a: Any, b: Any) -> tuple[Node, Node]:
    """Both with as many coefficients as the longer one has."""
    pair = [shaping.as_vector(name, one) for one in (a, b)]
    count = sizes.maximum(*(node.type.shape[0] for node in pair))
    longer = []
    for node in pair:
        missing = sizes.subtract(count, node.type.shape[0])
        longer.append(concatenate([ops.zeros(node.type.dtype, (missing,)), node]))
    return longer[0], ops.broadcast_to(longer[1], longer[0].type.shape)


def polyadd(a1: Any, a2: Any) -> Node:
    """The sum of two polynomials."""
    left, right = _aligned("polyadd", a1, a2)
    return left + right


def polysub(a1: Any, a2: Any) -> Node:
    """The difference of two polynomials."""
    left, right = _aligned("polysub", a1, a2)
    return left - right


def polymul(a1: Any, a2: Any) -> Node:
    """The product of two polynomials; zeros in front of either do not count, and one without coefficients is 0, as in
    NumPy."""
    left, right = shaping.as_vector("polymul", a1), shaping.as_vector("polymul", a2)
    product = convolve(_trimmed(left), _trimmed(right))
    of_full = _is_full(left) and _is_full(right)  # each power of such a polynomial is one
    return full(product, 0) if of_full and product.type.shape[0] != 1 else product


def _trimmed(p: Node) -> Node:
    """A polynomial without zeros in front, and one zero where there is nothing else."""
    if _is_full(p):
        return p
    wide = concatenate([ops.zeros(p.type.dtype, (1,)), p])
    zeros = elementwise("equal", cumsum(elementwise("not_equal", wide, 0)), 0)
    return wide[elementwise("minimum", sum_of(zeros), as_size_node(p.type.shape[0])) :]


def _is_full(p: Node) -> bool:
    """True for one coefficient, and for coefficients of which the first has been checked, as those of `np.poly1d`."""
    return bool(p.type.shape[0] == 1 or (p.op is OPS["checked"] and p.attrs["message"].startswith(FULL)))


FULL = "polynomial of"
"""The first words of the message of a check that a polynomial has no zeros in front."""


def full(p: Node, highest: int, where: str = "") -> Node:
    """The coefficients of a polynomial, where that of its highest power, at the place `highest`, is not 0."""
    message = (
        f"{FULL} {describe(p)}: the coefficient of its highest power is 0, so NumPy drops it, and a traced function "
        f"cannot; np.polyval takes such coefficients{where}"
    )
    return checked(p, (cast(elementwise("not_equal", p[highest], 0), "int64"),), message, "value")


def polyval(p: Any, x: Any) -> Node:
    """The value of a polynomial at each element of `x`."""
    node, points = shaping.as_vector("polyval", p), as_node(x)
    count = node.type.shape[0]
    dtype = promote(node.type.dtype, points.type.dtype)
    if isinstance(count, int):  # Horner's rule
        value = ops.zeros(points.type.dtype, points.type.shape)
        for position in range(count):
            value = value * points + node[position]
        return value
    if dtype in COMPLEX:
        return HOOKS.complexes.polynomial(cast(node, dtype), cast(points, dtype))
    # the same for all points at once, as a recurrence; of no coefficients it has no last row, whose sum is 0
    line, wide = shaping.flatten(points), accumulator(dtype)
    shape = (count, line.type.shape[0])
    factors = ops.broadcast_to(ops.expand(cast(cast(line, dtype), wide), (0,)), shape)
    terms = ops.broadcast_to(ops.expand(cast(cast(node, dtype), wide), (1,)), shape)
    value = sum_of(linear_recurrence(factors, terms, 0)[-1:], 0)
    return ops.reshape(cast(value, dtype), points.type.shape)


def polyder(p: Any, m: int = 1) -> Node:
    """The `m`-th derivative of a polynomial."""
    node = shaping.as_vector("polyder", p)
    if m < 0:
        raise ShapeError(f"polyder: m={m} is negative")
    for _ in range(m):
        count = node.type.shape[0]
        power = elementwise("sub", as_size_node(sizes.add(count, -1)), ops.iota(count))
        node = (node * power)[:-1]
    return node


def polyint(p: Any, m: int = 1, k: Any = None) -> Node:
    """The `m`-th integral of a polynomial, with the constants `k` (zeros)."""
    node = shaping.as_vector("polyint", p)
    if m < 0:
        raise ShapeError(f"polyint: m={m} is negative")
    constants = shaping.flatten(0.0 if k is None else k)
    for step in range(m):
        count = node.type.shape[0]
        power = elementwise("sub", as_size_node(count), ops.iota(count))
        one = constants[step : step + 1] if k is not None and constants.type.shape[0] != 1 else constants[:1]
        quotient = elementwise("true_div", node, power)
        node = concatenate([quotient, cast(one, quotient.type.dtype)])
    return node
