"""Numerical stability: expressions that overflow or cancel become functions that do not.

In: nothing. Out: `STABLE` and `MOMENTS`. Most rules are `better`: at least as accurate, and right where the original
overflows or cancels.

    log(1 + exp(x))      ->  log1p(exp(x))  ->  softplus(x)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.facts import BROADCASTS
from graphc.ir.lowering import Scalar
from graphc.ir.node import OPS, Node, Size, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduce_sum, reduced_sizes, reduction, restore
from graphc.ops.shape import broadcast_to, drop, filled, zeros
from graphc.rewrite.engine import (
    BETTER,
    CLOSE,
    REAL,
    AnyRule,
    Transformation,
    Uses,
    hole,
    is_number,
    rule,
    scalar_function,
    scaled,
)


def total(x: Any) -> Any:
    """The sum over the pattern's axis."""
    return make(OPS["sum"], (x,), {"axes": (0,)})


def top(x: Any) -> Any:
    """The maximum over the pattern's axis."""
    return make(OPS["max"], (x,), {"axes": (0,)})


absolute, minimum = map(scalar_function, ("abs", "minimum"))
cosh, erf, erfc, exp, expm1, isfinite = map(scalar_function, ("cosh", "erf", "erfc", "exp", "expm1", "isfinite"))
log, log1p, logaddexp, sigmoid, sinh = map(scalar_function, ("log", "log1p", "logaddexp", "sigmoid", "sinh"))
softplus, sqrt, tanh, where, xlogy = map(scalar_function, ("softplus", "sqrt", "tanh", "where", "xlogy"))

x, y, g, h = map(hole, "xygh")

_OVERFLOWS = "exp overflows"
_HALF = "exp overflows, half of it does not"
_ROWS_END = "exp overflows, or vanishes along a row"
_VANISHES = "softmax vanishes"

SCALAR = (
    # logarithms and exponentials near 1 and 0
    # of log(1 + exp(x)) too, which `log1p` makes this
    rule("softplus", log1p(exp(x)), softplus(x), BETTER, mends=_OVERFLOWS),
    rule("logaddexp", log(exp(x) + exp(y)), logaddexp(x, y), BETTER, mends="exp overflows, or vanishes for both"),
    rule("log1p", log(1 + x), log1p(x), BETTER),
    rule("log1p_minus", log(1 - x), log1p(-x), BETTER),
    rule("expm1", exp(x) - 1, expm1(x), BETTER),
    rule("expm1_plus", exp(x) + -1, expm1(x), BETTER),
    rule("expm1_minus", 1 - exp(x), -expm1(x), BETTER),
    rule("log_sqrt", log(sqrt(x)), 0.5 * log(x), BETTER),
    rule("xlogx", x * log(x), xlogy(x, x), BETTER, mends="x is 0"),
    # 0 * log(0) is NaN to NumPy: only where the two are the same value has it one limit, 0
    rule("xlogy", x * log(y), xlogy(x, y), REAL),
    # sigmoids
    rule("sigmoid", 1 / (1 + exp(-x)), sigmoid(x), BETTER),
    rule("sigmoid_of_minus", 1 / (1 + exp(x)), sigmoid(-x), BETTER),
    rule("sigmoid_of_quotient", exp(x) / (1 + exp(x)), sigmoid(x), BETTER, mends=_OVERFLOWS),
    # the derivative of a sigmoid is s * (1 - s): there another exponential would cost more than it gives
    rule("sigmoid_complement", 1 - sigmoid(x), sigmoid(-x), BETTER, once=(sigmoid(x),)),
    rule("log_sigmoid", log(sigmoid(x)), -softplus(-x), BETTER, mends="sigmoid(x) vanishes"),
    rule("log_sigmoid_complement", log1p(-sigmoid(x)), -softplus(x), BETTER, mends="sigmoid(x) rounds to 1"),
    rule("exp_softplus", exp(-softplus(x)), sigmoid(-x), BETTER),
    rule("tanh", (exp(x) - exp(-x)) / (exp(x) + exp(-x)), tanh(x), BETTER, mends=_OVERFLOWS),
    rule("sinh", (exp(x) - exp(-x)) / 2, sinh(x), BETTER, mends=_HALF),
    rule("sinh_half", 0.5 * (exp(x) - exp(-x)), sinh(x), BETTER, mends=_HALF),
    rule("cosh", (exp(x) + exp(-x)) / 2, cosh(x), BETTER, mends=_HALF),
    rule("cosh_half", 0.5 * (exp(x) + exp(-x)), cosh(x), BETTER, mends=_HALF),
    # error functions
    rule("erfc", 1 - erf(x), erfc(x), BETTER),
    rule("erfc_of_minus", 1 + erf(x), erfc(-x), BETTER),
    rule("erf", 1 - erfc(x), erf(x), BETTER),
)  # fmt: skip


# --- results of differentiation ---------------------------------------------------------------------------------------


def _is_complement(node: Node, s: Node) -> bool:
    """True if a node is 1 - s, in one of its forms, for s = sigmoid(x)."""
    (score,) = s.args
    match node.op.name:
        case "sub":
            return is_number(node.args[0], 1) and node.args[1] is s
        case "add":
            return any(is_number(node.args[k], 1) and _is_minus(node.args[1 - k], s) for k in (0, 1))
        case "sigmoid":
            return _is_minus(node.args[0], score) or _is_minus(score, node.args[0])
    return False


def _is_minus(node: Node, other: Node) -> bool:
    return node.op.name == "neg" and node.args[0] is other


def _slope(node: Node) -> tuple[Node, Node] | None:
    """(s, 1 - s) if the node is s * (1 - s) for a sigmoid s; else None."""
    if node.op.name == "mul":
        for s, complement in (node.args, node.args[::-1]):
            if s.op.name == "sigmoid" and _is_complement(complement, s):
                return s, complement
    return None


def _terms(node: Node, uses: Uses) -> list[tuple[bool, Node]]:
    """The terms of a sum, in order, each with True if it is subtracted. A sum with another use is one term."""
    terms: list[tuple[bool, Node]] = []
    pending = [(False, node)]
    while pending:
        minus, term = pending.pop()
        if term.op.name == "neg":
            pending.append((not minus, term.args[0]))
        elif term.op.name in ("add", "sub") and uses(term) == 1:
            pending += [(minus is not (term.op.name == "sub"), term.args[1]), (minus, term.args[0])]
        else:
            terms.append((minus, term))
    return terms


def _cancel_poles(node: Node, uses: Uses) -> Node | None:
    """(g / s - h / (1 - s) + r) * (s * (1 - s)) becomes g * (1 - s) - h * s + r * (s * (1 - s)), s = sigmoid(x).

    Differentiating log(s) and log(1 - s) produces it, as in crossentropies.
    """
    for slope, cotangent in (node.args, node.args[::-1]):
        factors = _slope(slope)
        if factors is not None:
            terms = _terms(cotangent, uses)
            parts = [_without_pole(term, *factors) for _, term in terms]
            if any(part is not None for part in parts):
                return _sum_of(
                    (minus, term * slope if part is None else part)
                    for part, (minus, term) in zip(parts, terms, strict=True)
                )
    return None


def _sum_of(terms: Iterable[tuple[bool, Node]]) -> Node:
    """The sum of terms; marked terms are subtracted."""
    (minus, first), *rest = terms
    result = -first if minus else first
    for minus, term in rest:
        result = result - term if minus else result + term
    return result


def _without_pole(term: Node, s: Node, complement: Node) -> Node | None:
    """term * (s * (1 - s)) without division, if the term is a quotient by s or by 1 - s, or a multiple of one; else
    None."""
    if term.op.name == "mul":
        for factor, quotient in (term.args, term.args[::-1]):
            part = _without_pole(quotient, s, complement) if quotient.op.name == "true_div" else None
            if part is not None:
                return factor * part
    if term.op.name == "true_div":
        numerator, divisor = term.args
        if divisor is s:
            return numerator * complement
        if _is_complement(divisor, s):
            return numerator * s
    return None


_root = exp(0.5 * minimum(x - y, 0.0))

GRADIENTS = (
    rule("softplus_gradient", g / (1 + exp(x)) * exp(x), g * sigmoid(x), BETTER, mends=_OVERFLOWS),
    # sigmoid(x - y) as the square of exp((x - y) / 2) where it is small: it may vanish, and g be large
    rule("logaddexp_gradient", g / (exp(x) + exp(y)) * exp(x), g * _root * (_root * sigmoid(absolute(x - y))), BETTER,
         mends="exp overflows, or vanishes for both"),
    rule("logistic_gradient", -(g / (1 + exp(x))) * exp(x), -(g * sigmoid(x)), BETTER, mends=_OVERFLOWS),
    rule("sigmoid_times_exp", sigmoid(-x) * exp(x), sigmoid(x), BETTER, mends=_OVERFLOWS),
    rule("sigmoid_times_exp_of_minus", sigmoid(x) * exp(-x), sigmoid(-x), BETTER, mends=_OVERFLOWS),
    rule("sigmoid_of_quotient_gradient", (g / (1 + exp(x)) + -(g * sigmoid(x) / (1 + exp(x)))) * exp(x),
         g * (sigmoid(x) * sigmoid(-x)), BETTER, mends=_OVERFLOWS),
    rule("sigmoid_of_quotient_derivative", (sigmoid(-x) + -(1 * sigmoid(x) / (1 + exp(x)))) * exp(x),
         sigmoid(x) * sigmoid(-x), BETTER, mends=_OVERFLOWS),
    # one form for the slope of a sigmoid, which the rules below know
    rule("sigmoid_slope", g * sigmoid(x) * sigmoid(-x), g * (sigmoid(x) * sigmoid(-x)), CLOSE),
    rule("sigmoid_slope_of_minus", g * sigmoid(-x) * sigmoid(x), g * (sigmoid(-x) * sigmoid(x)), CLOSE),
    Transformation(
        "sigmoid_poles",
        ("mul",),
        _cancel_poles,
        BETTER,
        operands=("mul",),
        mends="a quotient by sigmoid(x) or 1 - sigmoid(x) overflows"
    ),
)  # fmt: skip


# --- rows -------------------------------------------------------------------------------------------------------------


def bound(x: Any) -> Any:
    """The maximum, or 0 if it is infinite (subtracting infinity would produce NaN) or there are no elements."""
    highest = make(OPS["supremum"], (x,), {"axes": (0,)})
    return where(isfinite(highest), highest, 0.0)


def softmax(x: Any) -> Any:
    return exp(x) / total(exp(x))


def is_shifted(node: Node) -> bool:
    """True if a node is x - max(x), so that its exponential cannot overflow."""
    if node.op.name != "sub":
        return False
    x, top_node = node.args
    while top_node is not x and top_node.op.name in (*BROADCASTS, "where"):
        top_node = top_node.args[1 if top_node.op.name == "where" else 0]
    # over an axis of size 1 the maximum of x is x
    return top_node is x or (top_node.op.name in ("max", "supremum") and top_node.args[0] is x)


def _overflows(holes: Mapping[str, Node]) -> bool:
    return not is_shifted(holes["x"])


x, g, s = hole("x", rank=1), hole("g", rank=1), hole("s")


def _gradient(p: Any, g: Any) -> Any:
    """The expression that differentiating p = softmax(x) with cotangent g produces."""
    return (g / total(exp(x)) + total(-(g * p / total(exp(x))))) * exp(x)


_SOFTMAX = softmax(x - bound(x))
# exp(x - bound(x)) is their square: twice it multiplies what is large where once, as one number, it would vanish
_ROOTS = exp(0.5 * (x - bound(x)))
_SHARE = _ROOTS / total(_ROOTS * _ROOTS)
_LOG_SOFTMAX = x - bound(x) - log(total(exp(x - bound(x))))
_LOGSUMEXP = bound(x) + log(total(exp(x - bound(x))))

ROWS = (
    rule("softmax", softmax(x), softmax(x - bound(x)), BETTER, when=_overflows, mends=_ROWS_END),
    rule("logsumexp", log(total(exp(x))), _LOGSUMEXP, BETTER, when=_overflows, mends=_ROWS_END),
    rule("logsumexp_gradient", exp(x) * (s / total(exp(x))), s / total(_ROOTS * _ROOTS) * _ROOTS * _ROOTS, BETTER,
         when=_overflows, mends=_ROWS_END),
    rule("log_softmax", log(softmax(x - top(x))), x - top(x) - log(total(exp(x - top(x)))), BETTER, mends=_VANISHES),
    rule("log_softmax_bound", log(softmax(x - bound(x))), _LOG_SOFTMAX, BETTER, mends=_VANISHES),
    rule("log_softmax_gradient", _gradient(softmax(x), g / softmax(x)), g - softmax(x) * total(g), BETTER,
         mends="exp overflows, or softmax vanishes"),
    rule("log_softmax_bound_gradient", _gradient(_SOFTMAX, g / _SOFTMAX), g - _SOFTMAX * total(g), BETTER,
         mends=_VANISHES),
    rule("softmax_gradient", _gradient(_SOFTMAX, g), _ROOTS * (_SHARE * g - _SHARE * total(g * _ROOTS * _SHARE)),
         BETTER, mends=_ROWS_END),
)  # fmt: skip

STABLE: tuple[AnyRule, ...] = SCALAR + GRADIENTS + ROWS


# --- moments ----------------------------------------------------------------------------------------------------------
# Mean and sum of squared deviations in one pass over memory instead of two. With a pivot `c` near the mean `m` of n
# elements,
#
#     sum((x - m)^2) = sum((x - c)^2) - s (2 sum(x - c) - n s)        s = m - c
#
# which is true of any c, and needs no mean before the sums. The classic choice c = 0 loses all digits where the mean
# is large beside the deviations (Chan, Golub and LeVeque 1983). Here c is the mean of k of the elements, a sixteenth
# of the rows, from the middle. By the inequality of Cauchy and Schwarz k (m - c)^2 is at most the sum over those k of
# (x - m)^2, and so sum((x - c)^2) at most 1 + n / k times what is wanted: whatever the data, no more than four binary
# digits are lost, and where the middle is like the rest, none. The sums over x, x - c and its square go over the same
# elements, and share their loops.
#
# Sums that are 17 times as large may overflow where the result does not: so deviations are divided by 8 first, unless
# all pivots are so small that they might vanish. (There, with S within a factor of 17 of the largest number, and the
# pivots less than 1e-130 of its root, the sum overflows.) One number for all columns stays in a register, where one
# for each would be read for every element; a column of numbers near the root of the smallest one, beside others that
# are not, has an S within 64 units of the smallest number. Where a sum of finite deviations overflows, at magnitudes
# of 1e308, the result is NaN instead of infinity. The second pass stays where it costs little: where the last axes are
# reduced and others are not, a row is still in cache.
#
# The gradient of what is normalised by mean and variance sums `a + k (x - m)` over the same elements, where k comes of
# another sum over them. Its terms in x - m add up to nothing but what m was rounded by. Written as sum(a) + k (t - n
# m), t the sum of x that m was made of, both sums are there before k is, and one pass over the elements goes. The
# difference is taken of halves: n m may be rounded to more than the largest number. Of no elements the sum is 0, and
# where k is not finite NaN, because x - m has both signs, or is 0.


PIVOT_PART, PIVOT_ROWS = 16, 16
"""The pivot is the mean of one in PIVOT_PART of the rows, and of at least PIVOT_ROWS elements."""
FEW_ROWS = 64
"""If at most this many elements (a known number) are reduced to one, they are still in cache when read again."""
MEAN_OPS = ("true_div", "mul", "dimshuffle", "broadcast_to")
"""Ops between a sum and its mean with restored axes."""
MOST_FACTORS, MOST_NODES = 3, 64
"""Search limits: factors of a product, and nodes they depend on."""


def _deviations_in_one_pass(node: Node, uses: Uses) -> Node | None:
    """sum((x - m)^2), for a mean m of x, as sums about a pivot."""
    axes: tuple[int, ...] = node.attrs["axes"]
    x, mean = _deviation(node.args[0])
    if x is None or mean is None or not is_float(x.type.dtype) or not axes or _sum_in_mean(mean, x, axes) is None:
        return None
    known = [size for axis in axes if isinstance(size := x.type.shape[axis], int)]
    are_rows = axes[0] > 0 and axes == tuple(range(axes[0], x.ndim))
    if are_rows or (len(known) == len(axes) and prod(known) <= FEW_ROWS):
        return None
    pivot = _pivot(x, axes)
    size = elementwise("abs", pivot)
    largest = reduction("supremum", size, range(node.ndim)) if node.ndim else size
    is_small = elementwise("less", largest, literal(_small(node.type.dtype), node.type.dtype))
    scale = elementwise("where", is_small, literal(1, node.type.dtype), literal(1 / 8, node.type.dtype))
    apart = (x - restore(node, pivot)) * filled(scale, x.type.shape)
    total, squares = reduce_sum(apart, axes), reduce_sum(elementwise("sqr", apart), axes)
    shift = broadcast_to(drop(mean, axes), node.type.shape) - pivot
    shift = shift * filled(scale, node.type.shape)
    count = _as_number(sizes.product(reduced_sizes(node)), node)
    twice = total + total
    excess = shift * (twice - count * shift)
    spread = elementwise("maximum", squares - excess, zeros(node.type.dtype, node.type.shape))
    undo = elementwise("where", is_small, literal(1, node.type.dtype), literal(64, node.type.dtype))
    spread = spread * filled(undo, node.type.shape)
    # Where squares overflow, the sum is infinite; it is NaN where an element was.
    overflows = elementwise("logical_and", elementwise("isinf", squares), elementwise("isfinite", total))
    exact = elementwise("logical_or", overflows, elementwise("logical_not", elementwise("isfinite", pivot)))
    return elementwise("where", exact, squares, spread)


def _small(dtype: str) -> float:
    """If a pivot is at least this large, the square of an eighth of any difference from it is a normal number."""
    info = np.finfo(dtype)
    return float(2.0 ** (info.minexp // 2 + info.nmant + 5))


def _deviation(squared: Node) -> tuple[Node | None, Node | None]:
    """x and m of (x - m)^2, with m before it is broadcast."""
    if squared.op.name != "sqr" or squared.args[0].op.name != "sub":
        return None, None
    x, mean = squared.args[0].args
    return x, mean.args[0] if mean.op.name == "broadcast_to" else None


def _sum_in_mean(node: Node, x: Node, axes: tuple[int, ...]) -> Node | None:
    """The sum of x over these axes that a node is a multiple of; None if there is none."""
    while node.op.name in MEAN_OPS:
        factors = [arg for arg in node.args[:2] if arg.op.name in (*MEAN_OPS, "sum")]
        node = factors[0] if node.op.name == "mul" and factors else node.args[0]
    return node if node.op.name == "sum" and node.args[0] is x and node.attrs["axes"] == axes else None


def _pivot(x: Node, axes: Sequence[int]) -> Node:
    """The mean of a part of the rows, from the middle of the first axis; NaN if there are none."""
    shape, first = list(x.type.shape), axes[0]
    part_of_rows = sizes.floor_divide(shape[first], PIVOT_PART)
    others = sizes.maximum(sizes.product(shape[axis] for axis in axes[1:]), 1)
    least = sizes.floor_divide(sizes.add(others, PIVOT_ROWS - 1), others)
    count = sizes.minimum(shape[first], sizes.maximum(part_of_rows, least))
    starts: list[Size] = [0] * x.ndim
    starts[first] = sizes.floor_divide(sizes.subtract(shape[first], count), 2)
    shape[first] = count
    part = reduce_sum(subtensor(x, starts, shape, [1] * x.ndim), axes)
    return part / _as_number(sizes.product(shape[axis] for axis in axes), part)


# --- terms that add up to nothing -------------------------------------------------------------------------------------


def _split_sum(node: Node, uses: Uses) -> Node | None:
    """sum(a + k (x - m)) becomes sum(a) + k sum(x - m), for a mean m of x and k made of other sums over the same
    axes."""
    axes: tuple[int, ...] = node.attrs["axes"]
    inner = node.args[0].args[0] if node.args[0].op.name == "neg" else node.args[0]
    if inner.op.name not in ("add", "sub") or not is_float(node.type.dtype):
        return None
    for place in (1, 0):
        centred = _centred(inner.args[place], axes)
        if centred is not None and any(map(_is_of_sums, centred[1])):
            parts = [reduce_sum(inner.args[1 - place], axes), _multiple_of_sum(node, *centred)]
            result = elementwise(inner.op.name, *(parts if place else parts[::-1]))
            return result if inner is node.args[0] else -result
    return None


def _centred(term: Node, axes: tuple[int, ...], factors: tuple[Node, ...] = ()) -> tuple[Node, tuple[Node, ...]] | None:
    """x - m, and its factors that are constant along the axes, of a product; None if it has no such form."""
    if term.op.name == "sub":
        mean = term.args[1]
        is_centred = mean.op.name == "broadcast_to" and _sum_in_mean(mean.args[0], term.args[0], axes) is not None
        return (term, factors) if is_centred and factors else None
    if term.op.name != "mul" or len(factors) == MOST_FACTORS:
        return None
    for factor, rest in (term.args, term.args[::-1]):
        if factor.op.name == "broadcast_to" and all(factor.args[0].broadcastable[axis] for axis in axes):
            return _centred(rest, axes, (*factors, drop(factor.args[0], axes)))
    return None


def _is_of_sums(factor: Node) -> bool:
    """True if a factor depends on a sum, within `MOST_NODES` nodes."""
    seen: dict[Node, None] = {}
    pending = [factor]
    while pending and len(seen) < MOST_NODES:
        node = pending.pop()
        if node.op.name == "sum":
            return True
        if node.args and node not in seen and (node.op.name in MEAN_OPS or isinstance(node.op.lower(node), Scalar)):
            seen[node] = None
            pending += node.args
    return False


def _multiple_of_sum(node: Node, centred: Node, factors: Sequence[Node]) -> Node:
    """The sum of x - m times all factors, for the reduction `node`."""
    shape = node.type.shape
    factor, *others = (broadcast_to(each, shape) for each in factors)
    for other in others:
        factor = factor * other
    count = sizes.product(reduced_sizes(node))
    x, mean = centred.args
    total = _sum_in_mean(mean, x, node.attrs["axes"])
    assert total is not None
    half_mean = scaled(0.5, broadcast_to(drop(mean.args[0], node.attrs["axes"]), shape))
    rest = scaled(0.5, total) - _as_number(count, node) * half_mean
    product = factor * (rest + rest)
    result = elementwise(
        "where", elementwise("isfinite", factor), product, filled(literal(np.nan, node.type.dtype), shape)
    )
    if not isinstance(count, Node):
        return result
    none = filled(elementwise("equal", count, literal(0)), shape)
    return elementwise("where", none, filled(literal(0, node.type.dtype), shape), result)


def _as_number(size: Size, like: Node) -> Node:
    """A size in the dtype and shape of `like`."""
    return filled(cast(as_size_node(size), like.type.dtype), like.type.shape)


MOMENTS: tuple[AnyRule, ...] = (
    Transformation("deviations_in_one_pass", ("sum",), _deviations_in_one_pass, CLOSE),
    Transformation("sum_apart", ("sum",), _split_sum, CLOSE, operands=("add", "sub", "neg")),
)
