"""The derivatives of von Mises, truncated normal and inverse Gaussian numbers by their parameters.

In: numbers and parameters, of one shape. Out: the derivatives, composed of elementary functions, so that they have
some themselves. A number is a function of the parameters and of its place in the distribution, which stays: dx/dp =
-F_p / f, as in implicit.py. Integrals are by Gauss' and Legendre's rule, over intervals that end where the integrand
has fallen by e**-40. Right to 1e-11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.ir.node import Array, Node, literal
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import cast, elementwise as E

NODES = 32
FALLEN = 40.0
"""What an integrand may fall by, as an exponent, before it is left out."""
FAR = 1e3
"""Deviations beyond which a limit of the normal distribution is none."""


@cache
def _rule() -> tuple[Array, Array]:
    """Places between 0 and 1, and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _integral(function: Callable[..., Node], begin: Node, end: Node, *given: Node) -> Node:
    """The integral of function(t, *given) over t, for each element."""
    nodes, weights = (literal(each, "float64") for each in _rule())
    first, width, *others = (each.dimshuffle(*range(each.ndim), "x") for each in (begin, end - begin, *given))
    summed: Node = (function(first + width * nodes, *others) * weights).sum(axis=-1)
    return summed * (end - begin)


def by_its_place(number: Node, parameters: Sequence[Node], slopes: Callable[..., Node | tuple[Node, ...]]) -> Node:
    """A number with the derivatives that slopes(number, *parameters) gives; these are computed in float64."""

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Any, wanted: Any) -> list[Node]:
        wide = [cast(each, "float64") for each in (results[0], *inputs)]
        found = slopes(*wide)
        parts = found if isinstance(found, tuple) else (found,)
        return [given[0] * cast(part, number.type.dtype) for part in parts]

    return overridden([number], parameters, rule)[0]


# --- angles -----------------------------------------------------------------------------------------------------------


def _versine(t: Node) -> Node:
    return 2.0 * E("sqr", E("sin", 0.5 * t))


def _last_angle(x: Node, kappa: Node) -> Node:
    """Where exp(kappa cos t) has fallen from what it is at x, or pi."""
    square = E("sqr", E("sin", 0.5 * x)) + 0.5 * FALLEN / E("maximum", kappa, 0.5 * FALLEN)
    is_within = E("less", square, 1.0)
    return E("where", is_within, 2.0 * E("arcsin", E("sqrt", E("where", is_within, square, 0.5))), math.pi)


def angle_by_concentration(angle: Node, kappa: Node) -> Node:
    """Of an angle about 0, from -pi to pi, by kappa:

        exp(-kappa cos x) * integral of (cos t - A) exp(kappa cos t) over t from |x| to pi

    with A the mean of the cosine, which is minus the integral from 0 to |x|; each where its integrand has one sign.
    """
    x = abs(angle)
    top = _last_angle(x * 0.0, kappa)

    def weight(t: Node, kappa: Node) -> Node:
        return E("exp", -kappa * _versine(t))

    above = _integral(lambda t, kappa: _versine(t) * weight(t, kappa), x * 0.0, top, kappa)
    lack = above / _integral(weight, x * 0.0, top, kappa)
    is_inner = E("less", _versine(x), lack)

    def density(t: Node, x: Node, kappa: Node, lack: Node) -> Node:
        fall = 2.0 * kappa * E("sin", 0.5 * (t + x)) * E("sin", 0.5 * (t - x))
        return (lack - _versine(t)) * E("exp", -fall)

    begin, end = E("where", is_inner, 0.0, x), E("where", is_inner, x, _last_angle(x, kappa))
    found = _integral(density, begin, end, x, kappa, lack)
    return E("sign", angle) * E("where", is_inner, -found, found)


# --- parts of the normal distribution ---------------------------------------------------------------------------------


def _area(low: Node, high: Node) -> tuple[Node, Node]:
    """The integral of exp(-t**2 / 2) between limits, as s and q of exp(-s) q: no limit is too far for that."""
    is_below = E("less", high, 0.0)
    left, right = E("where", is_below, -high, low), E("where", is_below, -low, high)
    is_tail = E("greater_equal", left, 0.0)
    begin = E("maximum", left, 0.0)
    width = E("minimum", right - begin, 2.0 * FALLEN / (begin + E("sqrt", begin * begin + 2.0 * FALLEN)))
    tail = _integral(lambda t, begin: E("exp", -t * (begin + 0.5 * t)), width * 0.0, width, begin)
    half = math.sqrt(0.5)
    whole = math.sqrt(0.5 * math.pi) * (E("erf", right * half) - E("erf", left * half))
    return E("where", is_tail, 0.5 * left * left, 0.0), E("where", is_tail, tail, whole)


def truncated_by_limits(x: Node, lower: Node, upper: Node) -> tuple[Node, Node]:
    """Of a standard normal number between two limits, by these: f(a) / f(x) times what is beyond x of the whole, and
    f(b) / f(x) times what is before."""
    a = E("maximum", lower, E("minimum", upper, 0.0) - FAR)
    b = E("minimum", upper, E("maximum", lower, 0.0) + FAR)
    shift, whole = _area(a, b)
    found = []
    for limit, (part, size) in ((a, _area(x, b)), (b, _area(a, x))):
        found.append(E("exp", 0.5 * (x - limit) * (x + limit) - part + shift) * size / whole)
    return found[0], found[1]


def wald_by_parameters(x: Node, mean: Node, scale: Node) -> tuple[Node, Node]:
    """Of an inverse Gaussian number, by its mean and its scale, with M = (1 - Phi(b)) / phi(b) and b = sqrt(scale / x)
    (x / mean + 1): 2 scale / mean**2 * M * r, and x / scale - 2 / mean * M * r, where r = sqrt(x**3 / scale)."""
    b = E("sqrt", scale / x) * (x / mean + 1.0)
    _, mills = _area(b, b + FAR)
    part = 2.0 * mills * E("sqrt", x / scale) * x / mean
    return part * scale / mean, x / scale - part
