"""Functions of `scipy.special` that kernels call by address, and the derivative of each.

    row("dawsn", "Dawson's integral.", lambda z, x: 1 - 2 * x * z)

In: for each name of `SOURCES` (ops/custom.py) the derivatives by its arguments, functions of the value `z` and the
arguments; `unknown` for one that has no formula of known functions, which is an error when it is asked for. Out:
functions of tensors under the same names.

Differences that cancel near 0 are power series there: `divided("sinh", x)` is sinh(x) / x, near 0 the sum of
x**(2 k) / (2 k + 1)!. Derivatives of these, of all orders, hold at 0 too.

Sources of the formulas: the Digital Library of Mathematical Functions (dlmf.nist.gov), by chapter: gamma functions 5,
error functions and Voigt's 7, Airy 9, Bessel and Kelvin 10, Struve 11, parabolic cylinders 12, confluent 13,
hypergeometric 15, orthogonal polynomials 18, elliptic integrals 19 and functions 22; distributions by differentiating
what they are defined by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from graphc.ir.node import OPS, Array, Node, Op
from graphc.ops.custom import SOURCES
from graphc.ops.elementwise import as_node, cast
from graphc.startup.hooks import HOOKS
from graphc.tensor import elementary as el, special as sp

Slope = Callable[..., Any]


def row(name: str, doc: str, *slopes: Slope) -> Callable[..., Node]:
    """The function of that name with its derivatives."""
    return sp.scipy_function(name, doc, *map(_partial, slopes, range(len(slopes))))


def python_row(name: str, doc: str, compute: Callable[..., Array], *slopes: Slope) -> Callable[..., Node]:
    """The same of a function of arrays that Python computes."""
    return sp.python_function(name, doc, compute, *map(_partial, slopes, range(len(slopes))))


def _partial(slope: Slope, position: int) -> sp.Partial:
    if slope is sp.unknown:
        return sp.unknown(position)

    def partial(g: Any, z: Node, args: Any) -> Any:
        found = slope(z, *args)
        return None if found is None else g * found

    return partial


def _without_slope(*args: Any) -> None:
    """The derivative of a function that is constant between its steps."""


# --- power series -----------------------------------------------------------------------------------------------------


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
    "log1p": ([(-1) ** k / (k + 1) for k in range(24)], 0.2, lambda x: el.log1p(x) / x),
    "sinh": ([(k % 2 == 0) / math.factorial(k + 1) for k in range(19)], 1.0, lambda x: el.sinh(x) / x),
    "exprel_slope": (
        [(k + 1) / math.factorial(k + 2) for k in range(16)],
        0.5,
        lambda x: (x * el.exp(x) - el.expm1(x)) / el.sqr(x),
    ),
    "inv_boxcox_slope": (
        [(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(25)],
        0.2,
        lambda x: (x / (1 + x) - el.log1p(x)) / el.sqr(x),
    ),
    "i0": (
        [k % 2 / (2 ** (k + 1) * math.factorial((k + 1) // 2) ** 2) for k in range(20)],
        1.0,
        lambda x: (sp.i0(x) - 1) / x,
    ),
    "j0": (
        [k % 2 * (-1) ** (k // 2) / (2 ** (k + 1) * math.factorial((k + 1) // 2) ** 2) for k in range(20)],
        1.0,
        lambda x: (1 - sp.j0(x)) / x,
    ),
    "log_gamma": (
        [-0.57721566490153286, *((-1) ** k * _zeta(k) / k for k in range(2, 26))],
        0.2,
        lambda x: el.gammaln(1 + x) / x,
    ),
    "log_gamma_twice": (
        [(-1) ** k * _zeta(k) / k * (2**k - 2) for k in range(2, 28)],
        0.1,
        lambda x: (el.gammaln(1 + 2 * x) - 2 * el.gammaln(1 + x)) / el.sqr(x),
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
    small = el.less(el.abs(x), radius)
    return el.where(small, evaluated(name, el.where(small, x, 0)), far(el.where(small, 1, x)))


HALF_DEGREE = math.pi / 180
ROOT_2PI = math.sqrt(2 * math.pi)

# --- elementary, and of the gamma function ----------------------------------------------------------------------------

cosdg: Callable[..., Node] = row("cosdg", "The cosine of degrees.", lambda z, x: -HALF_DEGREE * sindg(x))
sindg: Callable[..., Node] = row("sindg", "The sine of degrees.", lambda z, x: HALF_DEGREE * cosdg(x))
tandg = row("tandg", "The tangent of degrees.", lambda z, x: HALF_DEGREE * (1 + el.sqr(z)))
cotdg = row("cotdg", "The cotangent of degrees.", lambda z, x: -HALF_DEGREE * (1 + el.sqr(z)))
cosm1 = row("cosm1", "cos(x) - 1, exact near 0.", lambda z, x: -el.sin(x))
powm1 = row("powm1", "x**y - 1, exact near 0.", lambda z, x, y: y * x ** (y - 1), lambda z, x, y: (z + 1) * el.log(x))
gammasgn = row("gammasgn", "The sign of the gamma function.", _without_slope)
loggamma = row("loggamma", "The logarithm of the gamma function; NaN below 0.", lambda z, x: el.digamma(x))
beta = row(
    "beta",
    "The beta function.",
    lambda z, a, b: z * (el.digamma(a) - el.digamma(a + b)),
    lambda z, a, b: z * (el.digamma(b) - el.digamma(a + b)),
)
poch = row(
    "poch",
    "gamma(z + m) / gamma(z), Pochhammer's symbol; its derivatives are NaN where z or z + m is 0, -1, -2, …",
    lambda value, z, m: value * (el.digamma(z + m) - el.digamma(z)),
    lambda value, z, m: value * el.digamma(z + m),
)


def rgamma_slope(x: Node) -> Node:
    """The derivative of 1 / gamma(x), at its zeros, the poles of gamma, too: by reflection (DLMF 5.5.3)."""
    low = el.where(el.less(x, 0.5), x, 0.0)
    turned = -el.digamma(1 - low) * el.sin(math.pi * low) / math.pi + el.cos(math.pi * low)
    high = el.where(el.less(x, 0.5), 1.0, x)
    return el.where(el.less(x, 0.5), sp.gamma(1 - low) * turned, -el.digamma(high) * rgamma(high))


rgamma = row("rgamma", "1 / gamma(x), 0 at the poles of gamma.", lambda z, x: rgamma_slope(x))


def _binom_by_gap(z: Node, n: Node, k: Node) -> Node:
    """Minus the derivative of binom by n - k alone, at the zeros beyond n too."""
    gap = n - k + 1
    inside = el.greater(gap, 0.5)
    scale = el.exp(el.gammaln(n + 1) - el.gammaln(k + 1))
    return el.where(inside, z * el.digamma(el.where(inside, gap, 1)), -scale * rgamma_slope(el.where(inside, 0.0, gap)))


binom = row(
    "binom",
    "The binomial coefficient of real n > -1 and k > -1.",
    lambda z, n, k: z * el.digamma(n + 1) - _binom_by_gap(z, n, k),
    lambda z, n, k: _binom_by_gap(z, n, k) - z * el.digamma(k + 1),
)
zetac = row("zetac", "Riemann's zeta function less 1; it has no derivative here.", sp.unknown)
spence = row("spence", "The dilogarithm of 1 - x.", lambda z, x: -divided("log1p", x - 1))
agm = row(
    "agm",
    "The arithmetic-geometric mean of positive a and b.",
    lambda z, a, b: _agm_slope(z, a, b),  # noqa: PLW0108 - it is defined below
    lambda z, a, b: _agm_slope(z, b, a),
)


def _agm_slope(z: Node, a: Node, b: Node) -> Node:
    """By a, of pi / 4 (a + b) / ellipk(((a - b) / (a + b))**2) (DLMF 19.8.5)."""
    m = el.sqr((a - b) / (a + b))
    return z / (a + b) * (1 - _ellipk_slope(m) / ellipk(m) * 4 * b * (a - b) / el.sqr(a + b))


# --- transformations of data ------------------------------------------------------------------------------------------

exprel = row("exprel", "(exp(x) - 1) / x, 1 at 0.", lambda z, x: divided("exprel_slope", x))
boxcox = row(
    "boxcox",
    "The Box-Cox transformation of x >= 0 with lmbda.",
    lambda z, x, lmbda: x ** (lmbda - 1),
    lambda z, x, lmbda: _boxcox_slope(el.log(el.where(el.equal(x, 0), 1, x)), lmbda, el.equal(x, 0)),
)
boxcox1p = row(
    "boxcox1p",
    "The Box-Cox transformation of 1 + x with lmbda.",
    lambda z, x, lmbda: (1 + x) ** (lmbda - 1),
    lambda z, x, lmbda: _boxcox_slope(el.log1p(el.where(el.equal(x, -1), 0, x)), lmbda, el.equal(x, -1)),
)


def _boxcox_slope(size: Node, lmbda: Node, is_end: Node) -> Node:
    """By lmbda, where `size` is the logarithm of what is transformed; at the end the value is -1 / lmbda."""
    return el.where(
        is_end, 1 / el.sqr(el.where(is_end, lmbda, 1)), el.sqr(size) * divided("exprel_slope", lmbda * size)
    )


inv_boxcox = row(
    "inv_boxcox",
    "The inverse of boxcox.",
    lambda z, y, lmbda: z ** (1 - lmbda),
    lambda z, y, lmbda: z * el.sqr(y) * divided("inv_boxcox_slope", lmbda * y),
)
inv_boxcox1p = row(
    "inv_boxcox1p",
    "The inverse of boxcox1p.",
    lambda z, y, lmbda: (1 + z) ** (1 - lmbda),
    lambda z, y, lmbda: (1 + z) * el.sqr(y) * divided("inv_boxcox_slope", lmbda * y),
)
pseudo_huber = row(
    "pseudo_huber",
    "delta**2 (sqrt(1 + (r / delta)**2) - 1), a smooth Huber loss.",
    lambda z, delta, r: _pseudo_huber_slope(delta, r),
    lambda z, delta, r: r * delta / el.hypot(delta, r),
)


def _pseudo_huber_slope(delta: Node, r: Node) -> Node:
    q = el.sqr(r / delta)
    root = el.sqrt(1 + q)
    return delta * el.sqr(q) / (root * el.sqr(root + 1))


tklmbda = row(
    "tklmbda",
    "The distribution function of Tukey's lambda; by lmbda it has no derivative here.",
    lambda z, x, lmbda: 1 / (z ** (lmbda - 1) + (1 - z) ** (lmbda - 1)),
    sp.unknown,
)

# --- error functions, exponential integrals ---------------------------------------------------------------------------

dawsn = row("dawsn", "Dawson's integral.", lambda z, x: 1 - 2 * x * z)
erfi = row("erfi", "The imaginary error function.", lambda z, x: 2 / math.sqrt(math.pi) * el.exp(el.sqr(x)))
ndtri_exp = row("ndtri_exp", "The inverse of log_ndtr.", lambda z, y: ROOT_2PI * el.exp(y + 0.5 * el.sqr(z)))
exp1 = row("exp1", "The exponential integral E1.", lambda z, x: -el.exp(-x) / x)
expi = row("expi", "The exponential integral Ei.", lambda z, x: el.exp(x) / x)
expn: Callable[..., Node] = row(
    "expn",
    "The exponential integral of order n.",
    sp.unknown,
    lambda z, n, x: el.where(el.equal(n, 0), -el.exp(-x) * (1 / x + 1 / el.sqr(x)), -expn(el.maximum(n - 1, 0), x)),
)
sici_0 = row("sici_0", "The sine integral.", lambda z, x: sp.sinc(x / math.pi))
sici_1 = row("sici_1", "The cosine integral.", lambda z, x: el.cos(x) / x)
shichi_0 = row("shichi_0", "The hyperbolic sine integral.", lambda z, x: divided("sinh", x))
shichi_1 = row("shichi_1", "The hyperbolic cosine integral.", lambda z, x: el.cosh(x) / x)
fresnel_0 = row("fresnel_0", "Fresnel's integral of the sine.", lambda z, x: el.sin(0.5 * math.pi * el.sqr(x)))
fresnel_1 = row("fresnel_1", "Fresnel's integral of the cosine.", lambda z, x: el.cos(0.5 * math.pi * el.sqr(x)))
wrightomega = row("wrightomega", "The y with y + log(y) = x.", lambda z, x: z / (1 + z))


def _faddeeva(z: Node, x: Node, sigma: Node, gamma: Node) -> tuple[Node, Node, Node, Node]:
    """The place of Voigt's profile z in the plane of Faddeeva's function w, and the real and the imaginary part of the
    derivative -2 z w + 2 i / sqrt(pi) there."""
    x, y = x / (math.sqrt(2) * sigma), gamma / (math.sqrt(2) * sigma)
    real, imag = ROOT_2PI * sigma * z, _imaginary_part(x, y)
    return x, y, -2 * (x * real - y * imag), -2 * (x * imag + y * real) + 2 / math.sqrt(math.pi)


def _imaginary_slopes(x: Node, y: Node) -> tuple[Node, Node]:
    sigma = math.sqrt(0.5)
    _, _, real, imag = _faddeeva(voigt_profile(x, sigma, y), x, cast(as_node(sigma), x.type.dtype), y)
    return imag, real


_imaginary_part: Callable[..., Node] = python_row(
    "wofz_imag",
    "The imaginary part of Faddeeva's function at x + iy.",
    lambda x, y: import_module("scipy.special").wofz(x + 1j * y).imag,
    lambda z, x, y: _imaginary_slopes(x, y)[0],
    lambda z, x, y: _imaginary_slopes(x, y)[1],
)


def _voigt_slope(z: Node, x: Node, sigma: Node, gamma: Node, by: int) -> Node:
    u, v, real, imag = _faddeeva(z, x, sigma, gamma)
    if by == 1:
        return -z / sigma - (u * real - v * imag) / (ROOT_2PI * el.sqr(sigma))
    return (real if by == 0 else -imag) / (2 * math.sqrt(math.pi) * el.sqr(sigma))


voigt_profile: Callable[..., Node] = row(
    "voigt_profile",
    "The density of the sum of a normal variable of scale sigma > 0 and a Cauchy variable of scale gamma.",
    *(lambda z, x, sigma, gamma, by=by: _voigt_slope(z, x, sigma, gamma, by) for by in range(3)),
)

# --- Airy, Bessel, Kelvin, Struve -------------------------------------------------------------------------------------

airy_0: Any = row("airy_0", "Airy's function Ai.", lambda z, x: airy_1(x))
airy_1: Any = row("airy_1", "The derivative of Airy's function Ai.", lambda z, x: x * airy_0(x))
airy_2: Any = row("airy_2", "Airy's function Bi.", lambda z, x: airy_3(x))
airy_3: Any = row("airy_3", "The derivative of Airy's function Bi.", lambda z, x: x * airy_2(x))
airye_0: Any = row("airye_0", "Ai times exp(2/3 x**1.5).", lambda z, x: airye_1(x) + el.sqrt(x) * z)
airye_1: Any = row("airye_1", "Ai' times exp(2/3 x**1.5).", lambda z, x: x * airye_0(x) + el.sqrt(x) * z)
airye_2: Any = row("airye_2", "Bi over exp(2/3 x**1.5).", lambda z, x: airye_3(x) - _root(x) * z)
airye_3: Any = row("airye_3", "Bi' over exp(2/3 x**1.5).", lambda z, x: x * airye_2(x) - _root(x) * z)


def _root(x: Node) -> Node:
    """The square root, 0 below 0."""
    return el.where(el.greater(x, 0), el.sqrt(el.where(el.greater(x, 0), x, 1)), 0)


itairy_0 = row("itairy_0", "The integral of Ai from 0 to x.", lambda z, x: airy_0(x))
itairy_1 = row("itairy_1", "The integral of Bi from 0 to x.", lambda z, x: airy_2(x))
itairy_2 = row("itairy_2", "The integral of Ai from -x to 0.", lambda z, x: airy_0(-x))
itairy_3 = row("itairy_3", "The integral of Bi from -x to 0.", lambda z, x: airy_2(-x))
jve: Any = row(
    "jve",
    "`jv` with SciPy's scaling, which is 1 for real arguments. It has no derivative by `v`.",
    sp.unknown,
    lambda z, v, x: 0.5 * (jve(v - 1, x) - jve(v + 1, x)),
)
yve: Any = row(
    "yve",
    "`yv` with SciPy's scaling, which is 1 for real arguments. It has no derivative by `v`.",
    sp.unknown,
    lambda z, v, x: 0.5 * (yve(v - 1, x) - yve(v + 1, x)),
)
kn = row("kn", "kv of a whole order n.", sp.unknown, lambda z, n, x: -0.5 * (sp.kv(n - 1, x) + sp.kv(n + 1, x)))
yn = row("yn", "yv of a whole order n.", sp.unknown, lambda z, n, x: 0.5 * (sp.yv(n - 1, x) - sp.yv(n + 1, x)))
ber = row("ber", "Kelvin's function ber.", lambda z, x: berp(x))
bei = row("bei", "Kelvin's function bei.", lambda z, x: beip(x))
ker = row("ker", "Kelvin's function ker.", lambda z, x: kerp(x))
kei = row("kei", "Kelvin's function kei.", lambda z, x: keip(x))
berp: Callable[..., Node] = row("berp", "The derivative of ber.", lambda z, x: _bent(-1, bei(x), z, x))
beip: Callable[..., Node] = row("beip", "The derivative of bei.", lambda z, x: _bent(1, ber(x), z, x))
kerp: Callable[..., Node] = row("kerp", "The derivative of ker.", lambda z, x: -kei(x) - z / x)
keip: Callable[..., Node] = row("keip", "The derivative of kei.", lambda z, x: ker(x) - z / x)


def _bent(sign: int, other: Node, z: Node, x: Node) -> Node:
    """The second derivative by Kelvin's equation, in the limit at 0."""
    at_zero = el.equal(x, 0)
    return el.where(at_zero, 0.5 * sign * other, sign * other - z / el.where(at_zero, 1, x))


def _struve_rest(v: Node, x: Node) -> Node:
    """The term of the derivatives of Struve's functions besides their neighbours (DLMF 11.4.25)."""
    return (0.5 * x) ** v * rgamma(v + 1.5) / math.sqrt(math.pi)


struve: Any = row(
    "struve",
    "Struve's function of order `v`. It has no derivative by `v`.",
    sp.unknown,
    lambda z, v, x: 0.5 * (struve(v - 1, x) - struve(v + 1, x) + _struve_rest(v, x)),
)
modstruve: Any = row(
    "modstruve",
    "Struve's modified function of order `v`. It has no derivative by `v`.",
    sp.unknown,
    lambda z, v, x: 0.5 * (modstruve(v - 1, x) + modstruve(v + 1, x) + _struve_rest(v, x)),
)
itstruve0 = row("itstruve0", "The integral of Struve's function of order 0 from 0.", lambda z, x: struve(0, x))
itmodstruve0 = row("itmodstruve0", "The integral of modstruve of order 0 from 0.", lambda z, x: modstruve(0, x))
it2struve0 = row(
    "it2struve0",
    "The integral of struve(0, t) / t from x on.",
    lambda z, x: el.where(el.equal(x, 0), -2 / math.pi, -struve(0, x) / el.where(el.equal(x, 0), 1, x)),
)
iti0k0_0 = row("iti0k0_0", "The integral of i0 from 0.", lambda z, x: sp.i0(x))
iti0k0_1 = row("iti0k0_1", "The integral of k0 from 0.", lambda z, x: sp.k0(x))
itj0y0_0 = row("itj0y0_0", "The integral of j0 from 0.", lambda z, x: sp.j0(x))
itj0y0_1 = row("itj0y0_1", "The integral of y0 from 0.", lambda z, x: sp.y0(x))
it2i0k0_0 = row("it2i0k0_0", "The integral of (i0(t) - 1) / t from 0.", lambda z, x: divided("i0", x))
it2i0k0_1 = row("it2i0k0_1", "The integral of k0(t) / t from x on.", lambda z, x: -sp.k0(x) / x)
it2j0y0_0 = row("it2j0y0_0", "The integral of (1 - j0(t)) / t from 0.", lambda z, x: divided("j0", x))
it2j0y0_1 = row("it2j0y0_1", "The integral of y0(t) / t from x on.", lambda z, x: -sp.y0(x) / x)
besselpoly = row("besselpoly", "The weighted integral of a Bessel function.", sp.unknown, sp.unknown, sp.unknown)
mathieu_a = row(
    "mathieu_a", "The characteristic value of even solutions of Mathieu's equation.", sp.unknown, sp.unknown
)
mathieu_b = row("mathieu_b", "The characteristic value of odd solutions of Mathieu's equation.", sp.unknown, sp.unknown)


def _spherical(name: str, doc: str, sign: int, first: int) -> Any:
    """A spherical Bessel function of n and x: (first n f(n - 1) + sign (n + 1) f(n + 1)) / (2 n + 1) (DLMF 10.51)."""

    def slope(z: Node, n: Node, x: Node) -> Node:
        return (first * n * made(el.maximum(n - 1, 0), x) + sign * (n + 1) * made(n + 1, x)) / (2 * n + 1)

    made = row(name, doc, sp.unknown, slope)
    return made


spherical_jn = _spherical("spherical_jn", "The spherical Bessel function of the first kind.", -1, 1)
spherical_yn = _spherical("spherical_yn", "The spherical Bessel function of the second kind.", -1, 1)
spherical_in = _spherical("spherical_in", "The modified spherical Bessel function of the first kind.", 1, 1)
spherical_kn = _spherical("spherical_kn", "The modified spherical Bessel function of the second kind.", -1, -1)

# --- parabolic cylinders: value and derivative of solutions of w'' = q w ----------------------------------------------

pbdv_0: Any = row("pbdv_0", "The parabolic cylinder function D.", sp.unknown, lambda z, v, x: pbdv_1(v, x))
pbdv_1: Any = row("pbdv_1", "Its derivative.", sp.unknown, lambda z, v, x: (0.25 * el.sqr(x) - v - 0.5) * pbdv_0(v, x))
pbvv_0: Any = row("pbvv_0", "The parabolic cylinder function V.", sp.unknown, lambda z, v, x: pbvv_1(v, x))
pbvv_1: Any = row("pbvv_1", "Its derivative.", sp.unknown, lambda z, v, x: (0.25 * el.sqr(x) - v - 0.5) * pbvv_0(v, x))
pbwa_0: Any = row("pbwa_0", "The parabolic cylinder function W.", sp.unknown, lambda z, a, x: pbwa_1(a, x))
pbwa_1: Any = row("pbwa_1", "Its derivative.", sp.unknown, lambda z, a, x: (a - 0.25 * el.sqr(x)) * pbwa_0(a, x))

# --- hypergeometric ---------------------------------------------------------------------------------------------------

hyp0f1: Any = row("hyp0f1", "0F1 of v at x.", sp.unknown, lambda z, v, x: hyp0f1(v + 1, x) / v)
hyp1f1: Any = row(
    "hyp1f1", "1F1 of a and b at x.", sp.unknown, sp.unknown, lambda z, a, b, x: a / b * hyp1f1(a + 1, b + 1, x)
)
hyperu: Any = row(
    "hyperu", "Tricomi's U of a and b at x.", sp.unknown, sp.unknown, lambda z, a, b, x: -a * hyperu(a + 1, b + 1, x)
)
wright_bessel: Any = row(
    "wright_bessel",
    "Wright's Bessel function of a and b at x.",
    sp.unknown,
    sp.unknown,
    lambda z, a, b, x: wright_bessel(a, a + b, x),
)
log_wright_bessel: Any = row(
    "log_wright_bessel",
    "The logarithm of wright_bessel.",
    sp.unknown,
    sp.unknown,
    lambda z, a, b, x: el.exp(log_wright_bessel(a, a + b, x) - z),
)
lpmv: Any = row(
    "lpmv",
    "Legendre's associated function of order m and degree v.",
    sp.unknown,
    sp.unknown,
    lambda z, m, v, x: (v * x * z - (v + m) * lpmv(m, v - 1, x)) / (el.sqr(x) - 1),
)

# --- elliptic integrals -----------------------------------------------------------------------------------------------


def _ellipk_slope(m: Node) -> Node:
    """(E - (1 - m) K) / (2 m (1 - m)), near 0 its series (DLMF 19.4.1, 19.5.1)."""
    small = el.less(el.abs(m), 0.25)
    far = el.where(small, 0.5, m)
    return el.where(
        small,
        evaluated("ellipk_slope", el.where(small, m, 0)),
        (ellipe(far) - (1 - far) * ellipk(far)) / (2 * far * (1 - far)),
    )


def _ellipe_slope(m: Node) -> Node:
    """(E - K) / (2 m), near 0 its series (DLMF 19.4.2, 19.5.2)."""
    small = el.less(el.abs(m), 0.25)
    far = el.where(small, 0.5, m)
    near = evaluated("ellipe_slope", el.where(small, m, 0))
    return el.where(small, near, el.where(el.equal(far, 1), -math.inf, (ellipe(far) - ellipk(far)) / (2 * far)))


ellipk = row("ellipk", "The complete elliptic integral of the first kind.", lambda z, m: _ellipk_slope(m))
ellipkm1 = row("ellipkm1", "ellipk of 1 - p.", lambda z, p: -_ellipkm1_slope(z, p))
ellipe = row("ellipe", "The complete elliptic integral of the second kind.", lambda z, m: _ellipe_slope(m))


def _ellipkm1_slope(z: Node, p: Node) -> Node:
    """The slope of ellipk at 1 - p, computed of p itself, which may be tiny."""
    near = el.less(p, 0.5)
    small = el.where(near, p, 0.5)
    rest = (ellipe(1 - small) - small * ellipkm1(small)) / (2 * (1 - small) * small)
    return el.where(near, rest, _ellipk_slope(1 - el.where(near, 0.5, p)))


def _turns(phi: Node) -> tuple[Node, Node, Node]:
    """The half turns within phi, and sine and squared cosine of the rest."""
    turns = el.rint(phi / math.pi)
    rest = phi - math.pi * turns
    return turns, el.sin(rest), el.sqr(el.cos(rest))


def _ellipkinc_by_m(z: Node, phi: Node, m: Node) -> Any:
    turns, s, c = _turns(phi)
    return s**3 / 6 * elliprd(c, 1, 1 - m * el.sqr(s)) + _of_turns(turns, m, _ellipk_slope)


def _ellipeinc_by_m(z: Node, phi: Node, m: Node) -> Any:
    turns, s, c = _turns(phi)
    return -(s**3) / 6 * elliprd(c, 1 - m * el.sqr(s), 1) + _of_turns(turns, m, _ellipe_slope)


def _of_turns(turns: Node, m: Node, slope: Callable[[Node], Node]) -> Node:
    is_one = el.equal(turns, 0)
    return el.where(is_one, 0, 2 * turns * slope(el.where(is_one, 0.5, m)))


ellipkinc = row(
    "ellipkinc",
    "The elliptic integral of the first kind.",
    lambda z, phi, m: 1 / el.sqrt(1 - m * el.sqr(el.sin(phi))),
    _ellipkinc_by_m,
)
ellipeinc = row(
    "ellipeinc",
    "The elliptic integral of the second kind.",
    lambda z, phi, m: el.sqrt(1 - m * el.sqr(el.sin(phi))),
    _ellipeinc_by_m,
)
elliprd: Any = row("elliprd", "Carlson's R_D; it has no derivative here.", sp.unknown, sp.unknown, sp.unknown)
elliprj = row("elliprj", "Carlson's R_J; it has no derivative here.", sp.unknown, sp.unknown, sp.unknown, sp.unknown)
elliprf = row(
    "elliprf",
    "Carlson's R_F.",
    lambda w, x, y, z: -elliprd(y, z, x) / 6,
    lambda w, x, y, z: -elliprd(x, z, y) / 6,
    lambda w, x, y, z: -elliprd(x, y, z) / 6,
)
elliprg = row(
    "elliprg",
    "Carlson's R_G.",
    lambda w, x, y, z: 0.25 * elliprf(x, y, z) - _part_of_g(x, y, z),
    lambda w, x, y, z: 0.25 * elliprf(x, y, z) - _part_of_g(y, z, x),
    lambda w, x, y, z: 0.25 * elliprf(x, y, z) - _part_of_g(z, x, y),
)


def _part_of_g(x: Node, y: Node, z: Node) -> Node:
    """x R_D(y, z, x) / 12, which is 0 at 0."""
    is_zero = el.equal(x, 0)
    return el.where(is_zero, 0, x * elliprd(y, z, el.where(is_zero, 1, x)) / 12)


elliprc = row(
    "elliprc",
    "Carlson's R_C; for y < 0 its principal value.",
    lambda w, x, y: el.where(
        el.greater(y, 0),
        -elliprd(el.where(el.greater(y, 0), y, 1), el.where(el.greater(y, 0), y, 1), x) / 6,
        (w - 1 / el.sqrt(x)) / (2 * (el.where(el.greater(y, 0), -1, y) - x)),
    ),
    lambda w, x, y: el.where(
        el.greater(y, 0),
        -elliprd(x, el.where(el.greater(y, 0), y, 1), el.where(el.greater(y, 0), y, 1)) / 3,
        (el.sqrt(x) / y - w) / (2 * (el.where(el.greater(y, 0), -1, y) - x)),
    ),
)
ellipj_0: Any = row("ellipj_0", "Jacobi's sn.", lambda z, u, m: ellipj_1(u, m) * ellipj_2(u, m), sp.unknown)
ellipj_1: Any = row("ellipj_1", "Jacobi's cn.", lambda z, u, m: -ellipj_0(u, m) * ellipj_2(u, m), sp.unknown)
ellipj_2: Any = row("ellipj_2", "Jacobi's dn.", lambda z, u, m: -m * ellipj_0(u, m) * ellipj_1(u, m), sp.unknown)
ellipj_3: Any = row("ellipj_3", "Jacobi's amplitude.", lambda z, u, m: ellipj_2(u, m), sp.unknown)

# --- distributions ----------------------------------------------------------------------------------------------------

betaincc = row(
    "betaincc",
    "1 - betainc(a, b, x).",
    lambda z, a, b, x: -sp.betainc_by_a(a, b, x),
    lambda z, a, b, x: -sp.betainc_by_b(a, b, x),
    lambda z, a, b, x: -sp.beta_density(a, b, x),
)
betainccinv = row(
    "betainccinv",
    "The x whose betaincc(a, b, x) is y.",
    lambda z, a, b, y: sp.held_place(sp.betainc_by_a(a, b, z), sp.beta_density(a, b, z)),
    lambda z, a, b, y: sp.held_place(sp.betainc_by_b(a, b, z), sp.beta_density(a, b, z)),
    lambda z, a, b, y: -1 / sp.beta_density(a, b, z),
)
stdtrit = row(
    "stdtrit",
    "The t whose stdtr(df, t) is p.",
    lambda z, df, p: sp.held_place(sp.stdtr_by_df_of(df, z), sp.student_density(df, z)),
    lambda z, df, p: 1 / sp.student_density(df, z),
)


def _kolmogorov_slope(x: Node) -> Node:
    """Two series, of which each has four terms that count on its side of 1 (Marsaglia, Tsang and Wang 2003)."""
    low, high = el.where(el.less(x, 1), x, 1), el.where(el.less(x, 1), 1, x)
    squares = [math.pi**2 * (2 * k - 1) ** 2 / 8 for k in range(1, 5)]
    small: Any = sum(
        ROOT_2PI * (1 / el.sqr(low) - 2 * c / el.sqr(el.sqr(low))) * el.exp(-c / el.sqr(low)) for c in squares
    )
    large: Any = sum((-1) ** k * 8 * k * k * high * el.exp(-2 * k * k * el.sqr(high)) for k in range(1, 5))
    return el.where(el.less(x, 1), el.where(el.less(x, 0.02), 0, small), large)


kolmogorov = row("kolmogorov", "The limit of Kolmogorov's survival function.", lambda z, x: _kolmogorov_slope(x))
kolmogi = row("kolmogi", "The inverse of kolmogorov.", lambda z, p: 1 / _kolmogorov_slope(z))

# Functions of three and four parameters whose derivatives nobody has written: their values alone.

bdtrik: Callable[..., Node]
nbdtrik: Callable[..., Node]
pdtrik: Callable[..., Node]
VALUES_ALONE = (
    "bdtrik bdtrin btdtria btdtrib chdtriv chndtr chndtridf chndtrinc chndtrix fdtridfd gdtria gdtrib gdtrix "
    "nbdtrik nbdtrin ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit "
    "nrdtrimn nrdtrisd pdtrik smirnov smirnovi stdtridf".split()
)
for _name in VALUES_ALONE:
    _count = len(SOURCES[_name].operands)
    globals()[_name] = row(_name, f"SciPy's {_name}; it has no derivatives here.", *[sp.unknown] * _count)


def late_op(name: str) -> Op | None:
    """An op by its name, now that this module and others have defined theirs; None for an unknown one."""
    import_module("graphc.tensor.sorting")
    found: Op | None = OPS.get(name)
    return found


HOOKS.late_op = late_op
