"""Stability: expressions that overflow or cancel, replaced by functions that do neither.

In: nothing. Out: `STABLE`, the rules. Most are `better`: as accurate as what they replace, and right where that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphc.ir.node import OPS, Node, make
from graphc.ops.elementwise import elementwise
from graphc.rewrite.engine import BETTER, REAL, AnyRule, hole, keeps_axes, rule


def function(name: str) -> Callable[..., Any]:
    """The scalar op `name` as a function, for writing patterns."""
    return lambda *operands: elementwise(name, *operands)


def total(x: Any) -> Any:
    """The sum over the pattern's axis."""
    return make(OPS["sum"], (x,), {"axes": (0,)})


def top(x: Any) -> Any:
    """The maximum over the pattern's axis."""
    return make(OPS["max"], (x,), {"axes": (0,)})


abs_, cosh, erf, erfc, exp, expm1 = map(function, ("abs", "cosh", "erf", "erfc", "exp", "expm1"))
isfinite, log, log1p, logaddexp, sigmoid = map(function, ("isfinite", "log", "log1p", "logaddexp", "sigmoid"))
sinh, softplus, sqr, sqrt, tanh, where, xlogy = map(
    function, ("sinh", "softplus", "sqr", "sqrt", "tanh", "where", "xlogy")
)

x, y, g, h = map(hole, "xygh")

SCALAR = (
    # logarithms and exponentials near 1 and 0
    rule("softplus", log(1 + exp(x)), softplus(x), BETTER),
    rule("softplus_of_log1p", log1p(exp(x)), softplus(x), BETTER),
    rule("logaddexp", log(exp(x) + exp(y)), logaddexp(x, y), BETTER),
    rule("log1p", log(1 + x), log1p(x), BETTER),
    rule("log1p_minus", log(1 - x), log1p(-x), BETTER),
    rule("expm1", exp(x) - 1, expm1(x), BETTER),
    rule("expm1_plus", exp(x) + -1, expm1(x), BETTER),
    rule("expm1_minus", 1 - exp(x), -expm1(x), BETTER),
    rule("log_sqrt", log(sqrt(x)), 0.5 * log(x), BETTER),
    rule("xlogx", x * log(x), xlogy(x, x), BETTER),
    # 0 * log(0) is NaN to NumPy: only where the two are the same value has it one limit, 0
    rule("xlogy", x * log(y), xlogy(x, y), REAL),
    # sigmoids
    rule("sigmoid", 1 / (1 + exp(-x)), sigmoid(x), BETTER),
    rule("sigmoid_of_minus", 1 / (1 + exp(x)), sigmoid(-x), BETTER),
    rule("sigmoid_of_quotient", exp(x) / (1 + exp(x)), sigmoid(x), BETTER),
    rule("sigmoid_complement", 1 - sigmoid(x), sigmoid(-x), BETTER),
    rule("log_sigmoid", log(sigmoid(x)), -softplus(-x), BETTER),
    rule("log_sigmoid_complement", log1p(-sigmoid(x)), -softplus(x), BETTER),
    rule("exp_softplus", exp(-softplus(x)), sigmoid(-x), BETTER),
    rule("tanh", (exp(x) - exp(-x)) / (exp(x) + exp(-x)), tanh(x), BETTER),
    rule("sinh", (exp(x) - exp(-x)) / 2, sinh(x), BETTER),
    rule("sinh_half", 0.5 * (exp(x) - exp(-x)), sinh(x), BETTER),
    rule("cosh", (exp(x) + exp(-x)) / 2, cosh(x), BETTER),
    rule("cosh_half", 0.5 * (exp(x) + exp(-x)), cosh(x), BETTER),
    # error functions
    rule("erfc", 1 - erf(x), erfc(x), BETTER),
    rule("erfc_of_minus", 1 + erf(x), erfc(-x), BETTER),
    rule("erf", 1 - erfc(x), erf(x), BETTER),
    # what differentiating log(sigmoid(x)) and log(1 - sigmoid(x)) leaves, once 1 - sigmoid(x) is sigmoid(-x)
    rule("log_sigmoid_gradient", (g / sigmoid(x)) * (sigmoid(x) * sigmoid(-x)), g * sigmoid(-x), BETTER),
    rule("log_sigmoid_complement_gradient", -(g / sigmoid(-x)) * (sigmoid(x) * sigmoid(-x)), -(g * sigmoid(x)), BETTER),
    rule("sigmoid_crossentropy_gradient", (g / sigmoid(x) + -(h / sigmoid(-x))) * (sigmoid(x) * sigmoid(-x)),
         g * sigmoid(-x) - h * sigmoid(x), BETTER),
)  # fmt: skip


# --- rows -------------------------------------------------------------------------------------------------------------


def bound(x: Any) -> Any:
    """The maximum, or 0 where it is infinite: subtracting it would make NaN of what is none."""
    return where(isfinite(top(x)), top(x), 0.0)


def softmax(x: Any) -> Any:
    return exp(x) / total(exp(x))


def is_shifted(node: Node) -> bool:
    """Whether a node is something less its maximum, so that its exponential cannot overflow."""
    spread = keeps_axes(node.args[1]) if node.op.name == "sub" else None
    if spread is None:
        return False
    top_node = spread[0].args[1] if spread[0].op.name == "where" else spread[0]
    return top_node.op.name == "max" and top_node.args[0] is node.args[0]


def _overflows(holes: Mapping[str, Node]) -> bool:
    return not is_shifted(holes["x"])


x, g, s = hole("x", rank=1), hole("g", rank=1), hole("s")


def _gradient(p: Any) -> Any:
    """What differentiating log(p) leaves, where p is softmax(x)."""
    return (g / p / total(exp(x)) + total(-((g / p) * p / total(exp(x))))) * exp(x)


# A maximum over no elements is an error where a sum over none is 0: over an empty axis these rules refuse to run.
ROWS = (
    rule("softmax", softmax(x), softmax(x - bound(x)), BETTER, when=_overflows),
    rule("logsumexp", log(total(exp(x))), bound(x) + log(total(exp(x - bound(x)))), BETTER, when=_overflows),
    rule("logsumexp_gradient", exp(x) * (s / total(exp(x))), s * softmax(x - bound(x)), BETTER, when=_overflows),
    rule("log_softmax", log(softmax(x - top(x))), x - top(x) - log(total(exp(x - top(x)))), BETTER),
    rule("log_softmax_bound", log(softmax(x - bound(x))), x - bound(x) - log(total(exp(x - bound(x)))), BETTER),
    rule("log_softmax_gradient", _gradient(softmax(x)), g - softmax(x) * total(g), BETTER),
    rule("log_softmax_bound_gradient", _gradient(softmax(x - bound(x))), g - softmax(x - bound(x)) * total(g), BETTER),
)

STABLE: tuple[AnyRule, ...] = SCALAR + ROWS
