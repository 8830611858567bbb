"""Power series of differences that cancel near 0.

    divided("sinh", x)               sinh(x) / x, near 0 the sum of x**(2 k) / (2 k + 1)!
    evaluated("ellipk_slope", m)     the series alone

In: a name of `SERIES` and a tensor. Out: a tensor, whose derivatives of all orders hold at 0 too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.ir.node import Node
from graphc.tensor.elementary import abs, exp, expm1, gammaln, less, log1p, sinh, sqr, where
from graphc.tensor.special import i0, j0


def _central(n: int) -> float:
    """The chance of as many heads as tails in 2 n throws."""
    return math.comb(2 * n, n) * 0.25**n


def _zeta(k: int) -> float:
    """Riemann's zeta function of a whole number (Euler and Maclaurin, DLMF 25.2.9)."""
    n = 30.0
    tail = n ** (1 - k) / (k - 1) + 0.5 * n**-k + k / 12 * n ** (-k - 1) - k * (k + 1) * (k + 2) / 720 * n ** (-k - 3)
    return math.fsum(m ** -float(k) for m in range(1, 30)) + tail


Far = Callable[[Node], Any]

SERIES: dict[str, tuple[Sequence[float], float, Far | None]] = {
    "log1p": ([(-1) ** k / (k + 1) for k in range(24)], 0.2, lambda x: log1p(x) / x),
    "sinh": ([(k % 2 == 0) / math.factorial(k + 1) for k in range(19)], 1.0, lambda x: sinh(x) / x),
    "exprel_slope": (
        [(k + 1) / math.factorial(k + 2) for k in range(16)],
        0.5,
        lambda x: (x * exp(x) - expm1(x)) / sqr(x),
    ),
    "inv_boxcox_slope": (
        [(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(25)],
        0.2,
        lambda x: (x / (1 + x) - log1p(x)) / sqr(x),
    ),
    "i0": (
        [k % 2 / (2 ** (k + 1) * math.factorial((k + 1) // 2) ** 2) for k in range(20)],
        1.0,
        lambda x: (i0(x) - 1) / x,
    ),
    "j0": (
        [k % 2 * (-1) ** (k // 2) / (2 ** (k + 1) * math.factorial((k + 1) // 2) ** 2) for k in range(20)],
        1.0,
        lambda x: (1 - j0(x)) / x,
    ),
    "log_gamma": (
        [-0.57721566490153286, *((-1) ** k * _zeta(k) / k for k in range(2, 26))],
        0.2,
        lambda x: gammaln(1 + x) / x,
    ),
    "log_gamma_twice": (
        [(-1) ** k * _zeta(k) / k * (2**k - 2) for k in range(2, 28)],
        0.1,
        lambda x: (gammaln(1 + 2 * x) - 2 * gammaln(1 + x)) / sqr(x),
    ),
    "ellipk_slope": ([math.pi / 2 * _central(n) ** 2 * n for n in range(1, 30)], 0.25, None),
    "ellipe_slope": ([-math.pi / 2 * _central(n) ** 2 * n / (2 * n - 1) for n in range(1, 30)], 0.25, None),
}
"""The coefficients, how far from 0 the series is used, and what is computed elsewhere."""


def evaluated(name: str, x: Node) -> Node:
    """The series at x (Horner)."""
    coefficients = SERIES[name][0]
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def divided(name: str, x: Node) -> Node:
    """The function at x, near 0 by its series."""
    _, radius, far = SERIES[name]
    assert far is not None
    small = less(abs(x), radius)
    return where(small, evaluated(name, where(small, x, 0)), far(where(small, 1, x)))
