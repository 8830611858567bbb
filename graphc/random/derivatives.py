"""The derivatives of random numbers by their parameters: von Mises, truncated normal, inverse Gaussian, gamma.

In: numbers and parameters, of one shape. Out: the derivatives, composed of elementary functions, so that they have some
themselves. A number is a function of the parameters and of its place in the distribution, which stays: dx/dp = -F_p /
f, as for gamma numbers below. Integrals are by Gauss' and Legendre's rule, over intervals that end where the integrand
has fallen by e**-40. Right to 1e-11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.arrays.incomplete import Jet, inverse, plus, times
from graphc.control.functional import cond, map, while_loop
from graphc.ir import sizes
from graphc.ir.node import Array, Node, literal
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import cast, elementwise as E
from graphc.ops.shape import reshape

NODES = 32
FALLEN = 40.0
"""The exponent by which an integrand may fall before it is left out."""
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
    """The angle at which exp(kappa cos t) has fallen from its value at x, or pi."""
    square = E("sqr", E("sin", 0.5 * x)) + 0.5 * FALLEN / E("maximum", kappa, 0.5 * FALLEN)
    is_within = E("less", square, 1.0)
    return E("where", is_within, 2.0 * E("arcsin", E("sqrt", E("where", is_within, square, 0.5))), math.pi)


def angle_by_concentration(angle: Node, kappa: Node) -> Node:
    """Return the derivative by kappa of an angle about 0, from -pi to pi:

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
    """Return the derivatives of a standard normal number between two limits, by these: f(a) / f(x) times what is beyond
    x of the whole, and f(b) / f(x) times what is before."""
    a = E("maximum", lower, E("minimum", upper, 0.0) - FAR)
    b = E("minimum", upper, E("maximum", lower, 0.0) + FAR)
    shift, whole = _area(a, b)
    found = []
    for limit, (part, size) in ((a, _area(x, b)), (b, _area(a, x))):
        found.append(E("exp", 0.5 * (x - limit) * (x + limit) - part + shift) * size / whole)
    return found[0], found[1]


def wald_by_parameters(x: Node, mean: Node, scale: Node) -> tuple[Node, Node]:
    """Return the derivatives of an inverse Gaussian number by its mean and its scale, with M = (1 - Phi(b)) / phi(b)
    and b = sqrt(scale / x) (x / mean + 1): 2 scale / mean**2 * M * r, and x / scale - 2 / mean * M * r, where r =
    sqrt(x**3 / scale)."""
    b = E("sqrt", scale / x) * (x / mean + 1.0)
    _, mills = _area(b, b + FAR)
    part = 2.0 * mills * E("sqrt", x / scale) * x / mean
    return part * scale / mean, x / scale - part


# --- implicit ---------------------------------------------------------------------------------------------------------
# The derivative of a gamma number by its shape parameter.
#
# In: logarithms of gamma numbers, and shape parameters. Out: that derivative, which has one itself. A number is a
# function of alpha and of its place p in the distribution, which stays: F(x, alpha) = p, so dx/dalpha = -F_alpha / f
# (Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, NeurIPS 2018). With y = log x and h = dy/dalpha,
#
#     h = -((y - digamma(alpha + 1)) S + S') / alpha,     S = sum of x**n / ((alpha + 1) ... (alpha + n))
#     h = (y - digamma(alpha)) C + C',      C = 1 / (x + 1 - alpha - 1 (1 - alpha) / (x + 3 - alpha - ...))
#     dh/dy = digamma(alpha) - y - h (alpha - x)
#
# from the series of F and the continued fraction of 1 - F (Abramowitz and Stegun 6.5.29 and 6.5.31), ' the derivative
# by alpha. The first up to four deviations above the mean, the second beyond; above `LARGE` the expansion of x by the
# normal number of the same place (Cornish and Fisher; Abramowitz and Stegun 26.2.49). Right to 1e-9, the second
# derivative to 1e-7.


LARGE = 1000.0
ENOUGH = 1e-18
"""Terms below this part of what they are added to change nothing."""


def slope(logs: Node, alpha: Node) -> Node:
    """The derivative of the logarithm of a gamma number by alpha; its own by both."""
    y, a = cast(logs, "float64"), cast(alpha, "float64")

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Any, wanted: Any) -> list[Node]:
        (y, a), h = inputs, results[0]
        by_log = E("digamma", a) - y - h * (a - E("exp", y))
        return [given[0] * by_log, given[0] * _derivative(y, a, 2)]

    return cast(overridden([_derivative(y, a, 1)], [y, a], rule)[0], logs.type.dtype)


def _derivative(y: Node, alpha: Node, order: int) -> Node:
    """The derivative of that order by alpha of y, of the second with y held where the first is taken."""
    count = sizes.product(y.type.shape)
    flat = tuple(reshape(each, (count,)) for each in (y, alpha))
    made: Node = map(lambda given: _of_one(given[0], given[1], order), flat)
    return reshape(made, y.type.shape)


def _of_one(y: Node, a: Node, order: int) -> Node:
    x = E("exp", y)
    is_above = E("greater", x, a + 4.0 * E("sqrt", a) + 4.0)

    def moderate() -> Node:
        chosen: Node = cond(is_above, lambda: _by_fraction(y, x, a, order), lambda: _by_series(y, x, a, order))
        return chosen

    drawn: Node = cond(E("greater", a, LARGE), lambda: _by_expansion(x, a, order), moderate)
    return drawn


def _by_series(y: Node, x: Node, a: Node, order: int) -> Node:
    def step(carry: tuple[Node, Jet, Jet]) -> tuple[Node, Jet, Jet]:
        n, term, total = carry
        ratio = x / (a + n)
        term = times(term, (ratio, -ratio / (a + n), 2.0 * ratio / E("sqr", a + n))[: order + 1])
        return n + 1.0, term, plus(total, term)

    begin = _constant(1.0, order)
    total: tuple[Node, ...] = while_loop(lambda c: _matters(c[1], c[2]), step, (_number(1.0), begin, begin))[2]
    away = y - E("digamma", a + 1.0)
    first = away * total[0] + total[1]
    if order == 1:
        return -first / a
    second = away * total[1] + total[2] - E("trigamma", a + 1.0) * total[0]
    return (first / a - second) / a


def _by_fraction(y: Node, x: Node, a: Node, order: int) -> Node:
    """Steed's way of taking a continued fraction from the front."""

    def step(carry: tuple[Node, Node, Jet, Jet, Jet]) -> tuple[Node, Node, Jet, Jet, Jet]:
        n, low, part, term, total = carry
        under = (low, -_number(1.0), _number(0.0))[: order + 1]
        above = (n * (a - n), n, _number(0.0))[: order + 1]
        part = inverse(plus(under, times(above, part)))
        left = times(under, part)
        term = times(term, (left[0] - 1.0, *left[1:]))
        return n + 1.0, low + 2.0, part, term, plus(total, term)

    low = x + 1.0 - a
    begin = inverse((low, -_number(1.0), _number(0.0))[: order + 1])
    total: tuple[Node, ...] = while_loop(
        lambda c: _matters(c[3], c[4]), step, (_number(1.0), low + 2.0, begin, begin, begin)
    )[4]
    away = y - E("digamma", a)
    if order == 1:
        return away * total[0] + total[1]
    return away * total[1] + total[2] - E("trigamma", a) * total[0]


def _by_expansion(x: Node, a: Node, order: int) -> Node:
    """x = r**2 + r z + sum of p_k(z) / r**k with r = sqrt(alpha); z by Newton's method."""
    r = E("sqrt", a)
    z = (x - a) / r
    for _ in range(4):
        z = z - (_place(z, r) - x) / _place_by_z(z, r)
    by_a = _place_by_r(z, r) / (2.0 * r)
    if order == 1:
        return by_a / x
    # with y, and so x, held: z goes back by x_a / x_z
    by_z = _place_by_z(z, r)
    back = -by_a / by_z
    p = _cubic(z)
    mixed = 1.0 - (3.0 * z * z - 7.0) / (36.0 * a)
    twice = -(z / r) / (4.0 * a) + p / (48.0 * a * a * r)
    return (twice + back * mixed / (2.0 * r)) / x


def _cubic(z: Node) -> Node:
    return z * (z * z - 7.0)


def _quartic(z: Node) -> Node:
    return (3.0 * z * z + 7.0) * z * z - 16.0


def _quintic(z: Node) -> Node:
    return z * ((9.0 * z * z + 256.0) * z * z - 433.0)


def _place(z: Node, r: Node) -> Node:
    tail = (_cubic(z) / 36.0 + (_quintic(z) / (38880.0 * r) - _quartic(z) / 810.0) / r) / r
    return r * (r + z) + (z * z - 1.0) / 3.0 + tail


def _place_by_z(z: Node, r: Node) -> Node:
    square = z * z
    tail = ((45.0 * square + 768.0) * square - 433.0) / (38880.0 * r) - (12.0 * square + 14.0) * z / 810.0
    return r + 2.0 * z / 3.0 + ((3.0 * square - 7.0) / 36.0 + tail / r) / r


def _place_by_r(z: Node, r: Node) -> Node:
    tail = (_cubic(z) / 36.0 + (_quintic(z) / (12960.0 * r) - _quartic(z) / 405.0) / r) / (r * r)
    return 2.0 * r + z - tail


# Values with derivatives ----------------------------------------------------------------------------------------------


def _number(value: float) -> Node:
    return literal(np.float64(value), "float64")


def _constant(value: float, order: int) -> Jet:
    return (_number(value), *(_number(0.0) for _ in range(order)))


def _matters(term: Jet, total: Jet) -> Node:
    size = abs(term[0])
    for each in term[1:]:
        size = size + abs(each)
    return E("greater", size, ENOUGH * abs(total[0]))
