"""The derivative of a gamma number by its shape parameter.

In: logarithms of gamma numbers, and shape parameters. Out: that derivative, which has one itself. A number is a
function of alpha and of its place p in the distribution, which stays: F(x, alpha) = p, so dx/dalpha = -F_alpha / f
(Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, NeurIPS 2018). With y = log x and h = dy/dalpha,

    h = -((y - digamma(alpha + 1)) S + S') / alpha,     S = sum of x**n / ((alpha + 1) ... (alpha + n))
    h = (y - digamma(alpha)) C + C',                    C = 1 / (x + 1 - alpha - 1 (1 - alpha) / (x + 3 - alpha - ...))
    dh/dy = digamma(alpha) - y - h (alpha - x)

from the series of F and the continued fraction of 1 - F (Abramowitz and Stegun 6.5.29 and 6.5.31), ' the derivative by
alpha. The first up to four deviations above the mean, the second beyond; above `LARGE` the expansion of x by the normal
number of the same place (Cornish and Fisher; Abramowitz and Stegun 26.2.49). Right to 1e-9, the second derivative to
1e-7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.jets import Jet, inverse, plus, times
from graphc.control.functional import cond, map, while_loop
from graphc.ir import sizes
from graphc.ir.node import Node, literal
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import cast, elementwise as E
from graphc.ops.shape import reshape

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
