"""Stability: expressions that overflow or cancel, replaced by functions that do neither.

In: nothing. Out: `STABLE`, the rules. Most are `better`: as accurate as what they replace, and right where that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphc.ir.node import OPS, Node, make
from graphc.ops.elementwise import elementwise
from graphc.rewrite.rules.engine import BETTER, CLOSE, REAL, AnyRule, Transformation, Uses, hole, is_number, rule


def function(name: str) -> Callable[..., Any]:
    """The scalar op `name` as a function, for writing patterns."""
    return lambda *operands: elementwise(name, *operands)


def total(x: Any) -> Any:
    """The sum over the pattern's axis."""
    return make(OPS["sum"], (x,), {"axes": (0,)})


def top(x: Any) -> Any:
    """The maximum over the pattern's axis."""
    return make(OPS["max"], (x,), {"axes": (0,)})


absolute, minimum = map(function, ("abs", "minimum"))
cosh, erf, erfc, exp, expm1, isfinite = map(function, ("cosh", "erf", "erfc", "exp", "expm1", "isfinite"))
log, log1p, logaddexp, sigmoid, sinh = map(function, ("log", "log1p", "logaddexp", "sigmoid", "sinh"))
softplus, sqrt, tanh, where, xlogy = map(function, ("softplus", "sqrt", "tanh", "where", "xlogy"))

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


# --- what differentiating leaves --------------------------------------------------------------------------------------


def _is_complement(node: Node, s: Node) -> bool:
    """Whether a node is 1 - s, in one of its forms, for s = sigmoid(x)."""
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
    """(s, 1 - s) where the node is s * (1 - s) for a sigmoid s."""
    if node.op.name == "mul":
        for s, complement in (node.args, node.args[::-1]):
            if s.op.name == "sigmoid" and _is_complement(complement, s):
                return s, complement
    return None


def _terms(node: Node, uses: Uses) -> list[tuple[bool, Node]]:
    """The terms of a sum, in order, and whether each is subtracted. What is taken elsewhere too is not taken apart."""
    found: list[tuple[bool, Node]] = []
    pending = [(False, node)]
    while pending:
        minus, term = pending.pop()
        if term.op.name == "neg":
            pending.append((not minus, term.args[0]))
        elif term.op.name in ("add", "sub") and uses(term) == 1:
            pending += [(minus is not (term.op.name == "sub"), term.args[1]), (minus, term.args[0])]
        else:
            found.append((minus, term))
    return found


def _cancel_poles(node: Node, uses: Uses) -> Node | None:
    """(g / s - h / (1 - s) + r) * (s * (1 - s)) as g * (1 - s) - h * s + r * (s * (1 - s)), s = sigmoid(x).

    It is what differentiating logarithms of s and of 1 - s leaves, crossentropies above all.
    """
    for slope, cotangent in (node.args, node.args[::-1]):
        factors = _slope(slope)
        if factors is not None:
            terms = _terms(cotangent, uses)
            parts = [_without_pole(term, *factors) for _, term in terms]
            if any(part is not None for part in parts):
                return _sum_of(
                    (minus, elementwise("mul", term, slope) if part is None else part)
                    for part, (minus, term) in zip(parts, terms, strict=True)
                )
    return None


def _sum_of(terms: Iterable[tuple[bool, Node]]) -> Node | None:
    """The sum of terms, those marked subtracted."""
    result: Node | None = None
    for minus, term in terms:
        if result is None:
            result = elementwise("neg", term) if minus else term
        else:
            result = elementwise("sub" if minus else "add", result, term)
    return result


def _without_pole(term: Node, s: Node, complement: Node) -> Node | None:
    """term * (s * (1 - s)) without a division, where the term is a quotient by s or by 1 - s, or a multiple of one."""
    if term.op.name == "mul":
        for factor, quotient in (term.args, term.args[::-1]):
            part = _without_pole(quotient, s, complement) if quotient.op.name == "true_div" else None
            if part is not None:
                return elementwise("mul", factor, part)
    if term.op.name == "true_div":
        numerator, divisor = term.args
        if divisor is s:
            return elementwise("mul", numerator, complement)
        if _is_complement(divisor, s):
            return elementwise("mul", numerator, s)
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
    """The maximum, or 0 where it is infinite: subtracting it would make NaN of what is none. Of no elements it is 0."""
    highest = make(OPS["supremum"], (x,), {"axes": (0,)})
    return where(isfinite(highest), highest, 0.0)


def softmax(x: Any) -> Any:
    return exp(x) / total(exp(x))


def is_shifted(node: Node) -> bool:
    """Whether a node is something less its maximum, so that its exponential cannot overflow."""
    if node.op.name != "sub":
        return False
    x, top_node = node.args
    while top_node is not x and top_node.op.name in ("broadcast_to", "dimshuffle", "where"):
        top_node = top_node.args[1 if top_node.op.name == "where" else 0]
    # over an axis of size 1 the maximum of x is x
    return top_node is x or (top_node.op.name in ("max", "supremum") and top_node.args[0] is x)


def _overflows(holes: Mapping[str, Node]) -> bool:
    return not is_shifted(holes["x"])


x, g, s = hole("x", rank=1), hole("g", rank=1), hole("s")


def _gradient(p: Any, g: Any) -> Any:
    """What differentiating p leaves, where p is softmax(x) and g its cotangent."""
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
