"""Special functions that SciPy computes: the error function's inverses, gamma functions, Bessel functions.

In: nodes, arrays, numbers. Out: nodes of ops whose elements SciPy's function of the same name gives, an array at a
time, in every mode. SciPy is imported when the first one is computed. Derivatives are graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.node import Array, Node
from graphc.ops.custom import custom_op
from graphc.ops.elementwise import cast
from graphc.ops.scalar import polygamma
from graphc.tensor.elementary import digamma, exp, gammaln, log, true_div, xlogy

__all__ = [
    "chi2sf", "erfcinv", "erfinv", "gamma", "gammainc", "gammaincc", "gammal", "gammau", "i0", "i1", "iv",
    "j0", "j1", "jv", "ndtri", "polygamma", "xlogx",
]  # fmt: skip

Function = Callable[..., Node]

Partial = Callable[[Node, Node, Sequence[Node]], Any]
"""(cotangent, node, args) -> the cotangent of an argument."""


def _special(name: str, doc: str, *partials: Partial) -> Callable[..., Node]:
    def compute(*arrays: Array) -> Any:
        return getattr(import_module("scipy.special"), name)(*arrays)

    def vjp(node: Node, cotangent: Node) -> list[Any]:
        parts = (partial(cotangent, node, node.args) for partial in partials)
        return [cast(part, arg.dtype) for part, arg in zip(parts, node.args, strict=True)]

    compute.__doc__ = doc
    made = custom_op(f"special_{name}", compute, vjp=vjp, own=True)

    def function(*operands: Any) -> Node:
        if len(operands) != len(partials):
            raise GraphTypeError(f"{name}() takes {len(partials)} arguments, not {len(operands)}")
        return made(*operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unknown(cotangent: Node, node: Node, args: Sequence[Node]) -> Node:
    """NaN, for a derivative that is not known: whoever needs it sees that it is none."""
    return cotangent * math.nan


_HALF_ROOT_PI = math.sqrt(math.pi) / 2

erfinv: Function = _special("erfinv", "The inverse of erf.", lambda g, z, args: g * (_HALF_ROOT_PI * exp(z * z)))
erfcinv: Function = _special("erfcinv", "The inverse of erfc.", lambda g, z, args: g * (-_HALF_ROOT_PI * exp(z * z)))
ndtri: Function = _special(
    "ndtri",
    "The inverse of the standard normal distribution function.",
    lambda g, z, args: g * (math.sqrt(2 * math.pi) * exp(0.5 * z * z)),
)
gamma: Function = _special("gamma", "The gamma function.", lambda g, z, args: g * z * digamma(args[0]))


def _density(k: Node, x: Node) -> Node:
    """The derivative of the regularised lower incomplete gamma function with respect to x."""
    return exp((k - 1) * log(x) - x - gammaln(k))


gammainc: Function = _special(
    "gammainc",
    "The regularised lower incomplete gamma function of k and x; its derivative is NaN with respect to k.",
    _unknown,
    lambda g, z, args: g * _density(*args),
)
gammaincc: Function = _special(
    "gammaincc",
    "The regularised upper incomplete gamma function of k and x; its derivative is NaN with respect to k.",
    _unknown,
    lambda g, z, args: -g * _density(*args),
)
j0: Function = _special("j0", "The Bessel function of the first kind of order 0.", lambda g, z, args: -g * j1(args[0]))
j1: Function = _special(
    "j1",
    "The Bessel function of the first kind of order 1.",
    lambda g, z, args: g * 0.5 * (j0(args[0]) - jv(2, args[0])),
)
jv: Function = _special(
    "jv",
    "The Bessel function of the first kind of order v at x; its derivative is NaN with respect to v.",
    _unknown,
    lambda g, z, args: g * 0.5 * (jv(args[0] - 1, args[1]) - jv(args[0] + 1, args[1])),
)
i0: Function = _special("i0", "The modified Bessel function of order 0.", lambda g, z, args: g * i1(args[0]))
i1: Function = _special(
    "i1", "The modified Bessel function of order 1.", lambda g, z, args: g * 0.5 * (i0(args[0]) + iv(2, args[0]))
)
iv: Function = _special(
    "iv",
    "The modified Bessel function of order v at x; its derivative is NaN with respect to v.",
    _unknown,
    lambda g, z, args: g * 0.5 * (iv(args[0] - 1, args[1]) + iv(args[0] + 1, args[1])),
)


def gammal(k: Any, x: Any) -> Node:
    """The lower incomplete gamma function of k and x (Theano's)."""
    return gammainc(k, x) * gamma(k)


def gammau(k: Any, x: Any) -> Node:
    """The upper incomplete gamma function of k and x (Theano's)."""
    return gammaincc(k, x) * gamma(k)


def chi2sf(x: Any, k: Any) -> Node:
    """The probability that a chi-squared variable of `k` degrees of freedom is above `x` (Theano's)."""
    return gammaincc(true_div(k, 2.0), true_div(x, 2.0))


def xlogx(x: Any) -> Node:
    """x * log(x), 0 where x is 0 (Theano's)."""
    return xlogy(x, x)


vars(xlogx).update(xlogx=xlogx, xlogy0=xlogy)  # T.xlogx is a module in Theano: T.xlogx.xlogy0(x, y)
