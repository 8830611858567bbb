"""Functions of `scipy.special` that kernels call by address, and the derivative of each.

    row("dawsn", "Dawson's integral.", lambda z, x: 1 - 2 * x * z)

In: for each name of `SOURCES` (ops/custom.py) the derivatives by its arguments, functions of the value `z` and the
arguments; `unknown` for one that has no formula of known functions, which is an error when it is asked for. Out:
functions of tensors under the same names.

Sources of the formulas: the Digital Library of Mathematical Functions (dlmf.nist.gov), by chapter: gamma functions 5,
error functions and Voigt's 7, Airy 9, Bessel and Kelvin 10, Struve 11, parabolic cylinders 12, confluent 13,
hypergeometric 15, orthogonal polynomials 18, elliptic integrals 19 and functions 22; distributions by differentiating
what they are defined by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from graphc.ir.node import OPS, Node, Op
from graphc.ops.custom import SOURCES
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.special.series import divided, evaluated
from graphc.startup.hooks import HOOKS
from graphc.tensor.elementary import (
    cos,
    cosh,
    digamma,
    equal,
    exp,
    gammaln,
    greater,
    hypot,
    less,
    log,
    log1p,
    maximum,
    rint,
    sin,
    sqr,
    sqrt,
    where,
)
from graphc.tensor.special import (
    Partial,
    beta_density,
    betainc_by_a,
    betainc_by_b,
    gamma,
    held_place,
    i0,
    j0,
    k0,
    kv,
    python_function,
    scipy_function,
    sinc,
    stdtr_by_df_of,
    student_density,
    unknown,
    y0,
    yv,
)

Slope = Callable[..., Any]


def row(name: str, doc: str, *slopes: Slope) -> Callable[..., Node]:
    """The function of that name with its derivatives."""
    return scipy_function(name, doc, *map(_partial, slopes, range(len(slopes))))


def _partial(slope: Slope, position: int) -> Partial:
    if slope is unknown:
        return unknown(position)

    def partial(g: Any, z: Node, args: Any) -> Any:
        found = slope(z, *args)
        return None if found is None else g * found

    return partial


def _without_slope(*args: Any) -> None:
    """The derivative of a function that is constant between its steps."""


HALF_DEGREE = math.pi / 180
ROOT_2PI = math.sqrt(2 * math.pi)

# --- elementary, and of the gamma function ----------------------------------------------------------------------------

cosdg: Callable[..., Node] = row("cosdg", "The cosine of degrees.", lambda z, x: -HALF_DEGREE * sindg(x))
sindg: Callable[..., Node] = row("sindg", "The sine of degrees.", lambda z, x: HALF_DEGREE * cosdg(x))
tandg = row("tandg", "The tangent of degrees.", lambda z, x: HALF_DEGREE * (1 + sqr(z)))
cotdg = row("cotdg", "The cotangent of degrees.", lambda z, x: -HALF_DEGREE * (1 + sqr(z)))
cosm1 = row("cosm1", "cos(x) - 1, exact near 0.", lambda z, x: -sin(x))
powm1 = row("powm1", "x**y - 1, exact near 0.", lambda z, x, y: y * x ** (y - 1), lambda z, x, y: (z + 1) * log(x))
gammasgn = row("gammasgn", "The sign of the gamma function.", _without_slope)
loggamma = row("loggamma", "The logarithm of the gamma function; NaN below 0.", lambda z, x: digamma(x))
beta = row(
    "beta",
    "The beta function.",
    lambda z, a, b: z * (digamma(a) - digamma(a + b)),
    lambda z, a, b: z * (digamma(b) - digamma(a + b)),
)
poch = row(
    "poch",
    "gamma(z + m) / gamma(z), Pochhammer's symbol; its derivatives are NaN where z or z + m is 0, -1, -2, …",
    lambda value, z, m: value * (digamma(z + m) - digamma(z)),
    lambda value, z, m: value * digamma(z + m),
)


def rgamma_slope(x: Node) -> Node:
    """The derivative of 1 / gamma(x), at its zeros, the poles of gamma, too: by reflection (DLMF 5.5.3)."""
    low = where(less(x, 0.5), x, 0.0)
    turned = -digamma(1 - low) * sin(math.pi * low) / math.pi + cos(math.pi * low)
    high = where(less(x, 0.5), 1.0, x)
    return where(less(x, 0.5), gamma(1 - low) * turned, -digamma(high) * rgamma(high))


rgamma = row("rgamma", "1 / gamma(x), 0 at the poles of gamma.", lambda z, x: rgamma_slope(x))


def _binom_by_gap(z: Node, n: Node, k: Node) -> Node:
    """Minus the derivative of binom by n - k alone, at the zeros beyond n too."""
    gap = n - k + 1
    inside = greater(gap, 0.5)
    scale = exp(gammaln(n + 1) - gammaln(k + 1))
    return where(inside, z * digamma(where(inside, gap, 1)), -scale * rgamma_slope(where(inside, 0.0, gap)))


binom = row(
    "binom",
    "The binomial coefficient of real n > -1 and k > -1.",
    lambda z, n, k: z * digamma(n + 1) - _binom_by_gap(z, n, k),
    lambda z, n, k: _binom_by_gap(z, n, k) - z * digamma(k + 1),
)
zetac = row("zetac", "Riemann's zeta function less 1; it has no derivative here.", unknown)
spence = row("spence", "The dilogarithm of 1 - x.", lambda z, x: -divided("log1p", x - 1))
agm = row(
    "agm",
    "The arithmetic-geometric mean of positive a and b.",
    lambda z, a, b: _agm_slope(z, a, b),  # noqa: PLW0108 - it is defined below
    lambda z, a, b: _agm_slope(z, b, a),
)


def _agm_slope(z: Node, a: Node, b: Node) -> Node:
    """By a, of pi / 4 (a + b) / ellipk(((a - b) / (a + b))**2) (DLMF 19.8.5)."""
    m = sqr((a - b) / (a + b))
    return z / (a + b) * (1 - _ellipk_slope(m) / ellipk(m) * 4 * b * (a - b) / sqr(a + b))


# --- transformations of data ------------------------------------------------------------------------------------------

exprel = row("exprel", "(exp(x) - 1) / x, 1 at 0.", lambda z, x: divided("exprel_slope", x))
boxcox = row(
    "boxcox",
    "The Box-Cox transformation of x >= 0 with lmbda.",
    lambda z, x, lmbda: x ** (lmbda - 1),
    lambda z, x, lmbda: _boxcox_slope(log(where(equal(x, 0), 1, x)), lmbda, equal(x, 0)),
)
boxcox1p = row(
    "boxcox1p",
    "The Box-Cox transformation of 1 + x with lmbda.",
    lambda z, x, lmbda: (1 + x) ** (lmbda - 1),
    lambda z, x, lmbda: _boxcox_slope(log1p(where(equal(x, -1), 0, x)), lmbda, equal(x, -1)),
)


def _boxcox_slope(size: Node, lmbda: Node, is_end: Node) -> Node:
    """By lmbda, where `size` is the logarithm of what is transformed; at the end the value is -1 / lmbda."""
    return where(is_end, 1 / sqr(where(is_end, lmbda, 1)), sqr(size) * divided("exprel_slope", lmbda * size))


inv_boxcox = row(
    "inv_boxcox",
    "The inverse of boxcox.",
    lambda z, y, lmbda: z ** (1 - lmbda),
    lambda z, y, lmbda: z * sqr(y) * divided("inv_boxcox_slope", lmbda * y),
)
inv_boxcox1p = row(
    "inv_boxcox1p",
    "The inverse of boxcox1p.",
    lambda z, y, lmbda: (1 + z) ** (1 - lmbda),
    lambda z, y, lmbda: (1 + z) * sqr(y) * divided("inv_boxcox_slope", lmbda * y),
)
pseudo_huber = row(
    "pseudo_huber",
    "delta**2 (sqrt(1 + (r / delta)**2) - 1), a smooth Huber loss.",
    lambda z, delta, r: _pseudo_huber_slope(delta, r),
    lambda z, delta, r: r * delta / hypot(delta, r),
)


def _pseudo_huber_slope(delta: Node, r: Node) -> Node:
    q = sqr(r / delta)
    root = sqrt(1 + q)
    return delta * sqr(q) / (root * sqr(root + 1))


tklmbda = row(
    "tklmbda",
    "The distribution function of Tukey's lambda; by lmbda it has no derivative here.",
    lambda z, x, lmbda: 1 / (z ** (lmbda - 1) + (1 - z) ** (lmbda - 1)),
    unknown,
)

# --- error functions, exponential integrals ---------------------------------------------------------------------------

dawsn = row("dawsn", "Dawson's integral.", lambda z, x: 1 - 2 * x * z)
erfi = row("erfi", "The imaginary error function.", lambda z, x: 2 / math.sqrt(math.pi) * exp(sqr(x)))
ndtri_exp = row("ndtri_exp", "The inverse of log_ndtr.", lambda z, y: ROOT_2PI * exp(y + 0.5 * sqr(z)))
exp1 = row("exp1", "The exponential integral E1.", lambda z, x: -exp(-x) / x)
expi = row("expi", "The exponential integral Ei.", lambda z, x: exp(x) / x)
expn: Callable[..., Node] = row(
    "expn",
    "The exponential integral of order n.",
    unknown,
    lambda z, n, x: where(equal(n, 0), -exp(-x) * (1 / x + 1 / sqr(x)), -expn(maximum(n - 1, 0), x)),
)
sici_0 = row("sici_0", "The sine integral.", lambda z, x: sinc(x / math.pi))
sici_1 = row("sici_1", "The cosine integral.", lambda z, x: cos(x) / x)
shichi_0 = row("shichi_0", "The hyperbolic sine integral.", lambda z, x: divided("sinh", x))
shichi_1 = row("shichi_1", "The hyperbolic cosine integral.", lambda z, x: cosh(x) / x)
fresnel_0 = row("fresnel_0", "Fresnel's integral of the sine.", lambda z, x: sin(0.5 * math.pi * sqr(x)))
fresnel_1 = row("fresnel_1", "Fresnel's integral of the cosine.", lambda z, x: cos(0.5 * math.pi * sqr(x)))
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


_imaginary_part: Callable[..., Node] = python_function(
    "wofz_imag",
    "The imaginary part of Faddeeva's function at x + iy.",
    lambda x, y: import_module("scipy.special").wofz(x + 1j * y).imag,
    lambda g, z, args: g * _imaginary_slopes(*args)[0],
    lambda g, z, args: g * _imaginary_slopes(*args)[1],
)


def _voigt_slope(z: Node, x: Node, sigma: Node, gamma: Node, by: int) -> Node:
    u, v, real, imag = _faddeeva(z, x, sigma, gamma)
    if by == 1:
        return -z / sigma - (u * real - v * imag) / (ROOT_2PI * sqr(sigma))
    return (real if by == 0 else -imag) / (2 * math.sqrt(math.pi) * sqr(sigma))


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
airye_0: Any = row("airye_0", "Ai times exp(2/3 x**1.5).", lambda z, x: airye_1(x) + sqrt(x) * z)
airye_1: Any = row("airye_1", "Ai' times exp(2/3 x**1.5).", lambda z, x: x * airye_0(x) + sqrt(x) * z)
airye_2: Any = row("airye_2", "Bi over exp(2/3 x**1.5).", lambda z, x: airye_3(x) - _root(x) * z)
airye_3: Any = row("airye_3", "Bi' over exp(2/3 x**1.5).", lambda z, x: x * airye_2(x) - _root(x) * z)


def _root(x: Node) -> Node:
    """The square root, 0 below 0."""
    return where(greater(x, 0), sqrt(where(greater(x, 0), x, 1)), 0)


itairy_0 = row("itairy_0", "The integral of Ai from 0 to x.", lambda z, x: airy_0(x))
itairy_1 = row("itairy_1", "The integral of Bi from 0 to x.", lambda z, x: airy_2(x))
itairy_2 = row("itairy_2", "The integral of Ai from -x to 0.", lambda z, x: airy_0(-x))
itairy_3 = row("itairy_3", "The integral of Bi from -x to 0.", lambda z, x: airy_2(-x))
jve: Any = row(
    "jve",
    "jv of real arguments; by v it has no derivative here.",
    unknown,
    lambda z, v, x: 0.5 * (jve(v - 1, x) - jve(v + 1, x)),
)
yve: Any = row(
    "yve",
    "yv of real arguments; by v it has no derivative here.",
    unknown,
    lambda z, v, x: 0.5 * (yve(v - 1, x) - yve(v + 1, x)),
)
kn = row("kn", "kv of a whole order n.", unknown, lambda z, n, x: -0.5 * (kv(n - 1, x) + kv(n + 1, x)))
yn = row("yn", "yv of a whole order n.", unknown, lambda z, n, x: 0.5 * (yv(n - 1, x) - yv(n + 1, x)))
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
    at_zero = equal(x, 0)
    return where(at_zero, 0.5 * sign * other, sign * other - z / where(at_zero, 1, x))


def _struve_rest(v: Node, x: Node) -> Node:
    """The term of the derivatives of Struve's functions besides their neighbours (DLMF 11.4.25)."""
    return (0.5 * x) ** v * rgamma(v + 1.5) / math.sqrt(math.pi)


struve: Any = row(
    "struve",
    "Struve's function of order v; by v it has no derivative here.",
    unknown,
    lambda z, v, x: 0.5 * (struve(v - 1, x) - struve(v + 1, x) + _struve_rest(v, x)),
)
modstruve: Any = row(
    "modstruve",
    "Struve's modified function of order v; by v it has no derivative here.",
    unknown,
    lambda z, v, x: 0.5 * (modstruve(v - 1, x) + modstruve(v + 1, x) + _struve_rest(v, x)),
)
itstruve0 = row("itstruve0", "The integral of Struve's function of order 0 from 0.", lambda z, x: struve(0, x))
itmodstruve0 = row("itmodstruve0", "The integral of modstruve of order 0 from 0.", lambda z, x: modstruve(0, x))
it2struve0 = row(
    "it2struve0",
    "The integral of struve(0, t) / t from x on.",
    lambda z, x: where(equal(x, 0), -2 / math.pi, -struve(0, x) / where(equal(x, 0), 1, x)),
)
iti0k0_0 = row("iti0k0_0", "The integral of i0 from 0.", lambda z, x: i0(x))
iti0k0_1 = row("iti0k0_1", "The integral of k0 from 0.", lambda z, x: k0(x))
itj0y0_0 = row("itj0y0_0", "The integral of j0 from 0.", lambda z, x: j0(x))
itj0y0_1 = row("itj0y0_1", "The integral of y0 from 0.", lambda z, x: y0(x))
it2i0k0_0 = row("it2i0k0_0", "The integral of (i0(t) - 1) / t from 0.", lambda z, x: divided("i0", x))
it2i0k0_1 = row("it2i0k0_1", "The integral of k0(t) / t from x on.", lambda z, x: -k0(x) / x)
it2j0y0_0 = row("it2j0y0_0", "The integral of (1 - j0(t)) / t from 0.", lambda z, x: divided("j0", x))
it2j0y0_1 = row("it2j0y0_1", "The integral of y0(t) / t from x on.", lambda z, x: -y0(x) / x)
besselpoly = row("besselpoly", "The weighted integral of a Bessel function.", unknown, unknown, unknown)
mathieu_a = row("mathieu_a", "The characteristic value of even solutions of Mathieu's equation.", unknown, unknown)
mathieu_b = row("mathieu_b", "The characteristic value of odd solutions of Mathieu's equation.", unknown, unknown)


def _spherical(name: str, doc: str, sign: int, first: int) -> Any:
    """A spherical Bessel function of n and x: (first n f(n - 1) + sign (n + 1) f(n + 1)) / (2 n + 1) (DLMF 10.51)."""

    def slope(z: Node, n: Node, x: Node) -> Node:
        return (first * n * made(maximum(n - 1, 0), x) + sign * (n + 1) * made(n + 1, x)) / (2 * n + 1)

    made = row(name, doc, unknown, slope)
    return made


spherical_jn = _spherical("spherical_jn", "The spherical Bessel function of the first kind.", -1, 1)
spherical_yn = _spherical("spherical_yn", "The spherical Bessel function of the second kind.", -1, 1)
spherical_in = _spherical("spherical_in", "The modified spherical Bessel function of the first kind.", 1, 1)
spherical_kn = _spherical("spherical_kn", "The modified spherical Bessel function of the second kind.", -1, -1)

# --- parabolic cylinders: value and derivative of solutions of w'' = q w ----------------------------------------------

pbdv_0: Any = row("pbdv_0", "The parabolic cylinder function D.", unknown, lambda z, v, x: pbdv_1(v, x))
pbdv_1: Any = row("pbdv_1", "Its derivative.", unknown, lambda z, v, x: (0.25 * sqr(x) - v - 0.5) * pbdv_0(v, x))
pbvv_0: Any = row("pbvv_0", "The parabolic cylinder function V.", unknown, lambda z, v, x: pbvv_1(v, x))
pbvv_1: Any = row("pbvv_1", "Its derivative.", unknown, lambda z, v, x: (0.25 * sqr(x) - v - 0.5) * pbvv_0(v, x))
pbwa_0: Any = row("pbwa_0", "The parabolic cylinder function W.", unknown, lambda z, a, x: pbwa_1(a, x))
pbwa_1: Any = row("pbwa_1", "Its derivative.", unknown, lambda z, a, x: (a - 0.25 * sqr(x)) * pbwa_0(a, x))

# --- hypergeometric ---------------------------------------------------------------------------------------------------

hyp0f1: Any = row("hyp0f1", "0F1 of v at x.", unknown, lambda z, v, x: hyp0f1(v + 1, x) / v)
hyp1f1: Any = row(
    "hyp1f1", "1F1 of a and b at x.", unknown, unknown, lambda z, a, b, x: a / b * hyp1f1(a + 1, b + 1, x)
)
hyperu: Any = row(
    "hyperu", "Tricomi's U of a and b at x.", unknown, unknown, lambda z, a, b, x: -a * hyperu(a + 1, b + 1, x)
)
wright_bessel: Any = row(
    "wright_bessel",
    "Wright's Bessel function of a and b at x.",
    unknown,
    unknown,
    lambda z, a, b, x: wright_bessel(a, a + b, x),
)
log_wright_bessel: Any = row(
    "log_wright_bessel",
    "The logarithm of wright_bessel.",
    unknown,
    unknown,
    lambda z, a, b, x: exp(log_wright_bessel(a, a + b, x) - z),
)
lpmv: Any = row(
    "lpmv",
    "Legendre's associated function of order m and degree v.",
    unknown,
    unknown,
    lambda z, m, v, x: (v * x * z - (v + m) * lpmv(m, v - 1, x)) / (sqr(x) - 1),
)

# --- elliptic integrals -----------------------------------------------------------------------------------------------


def _ellipk_slope(m: Node) -> Node:
    """(E - (1 - m) K) / (2 m (1 - m)), near 0 its series (DLMF 19.4.1, 19.5.1)."""
    small = less(abs(m), 0.25)
    far = where(small, 0.5, m)
    return where(
        small,
        evaluated("ellipk_slope", where(small, m, 0)),
        (ellipe(far) - (1 - far) * ellipk(far)) / (2 * far * (1 - far)),
    )


def _ellipe_slope(m: Node) -> Node:
    """(E - K) / (2 m), near 0 its series (DLMF 19.4.2, 19.5.2)."""
    small = less(abs(m), 0.25)
    far = where(small, 0.5, m)
    near = evaluated("ellipe_slope", where(small, m, 0))
    return where(small, near, where(equal(far, 1), -math.inf, (ellipe(far) - ellipk(far)) / (2 * far)))


ellipk = row("ellipk", "The complete elliptic integral of the first kind.", lambda z, m: _ellipk_slope(m))
ellipkm1 = row("ellipkm1", "ellipk of 1 - p.", lambda z, p: -_ellipkm1_slope(z, p))
ellipe = row("ellipe", "The complete elliptic integral of the second kind.", lambda z, m: _ellipe_slope(m))


def _ellipkm1_slope(z: Node, p: Node) -> Node:
    """The slope of ellipk at 1 - p, computed of p itself, which may be tiny."""
    near = less(p, 0.5)
    small = where(near, p, 0.5)
    rest = (ellipe(1 - small) - small * ellipkm1(small)) / (2 * (1 - small) * small)
    return where(near, rest, _ellipk_slope(1 - where(near, 0.5, p)))


def _turns(phi: Node) -> tuple[Node, Node, Node]:
    """The half turns within phi, and sine and squared cosine of the rest."""
    turns = rint(phi / math.pi)
    rest = phi - math.pi * turns
    return turns, sin(rest), sqr(cos(rest))


def _ellipkinc_by_m(z: Node, phi: Node, m: Node) -> Any:
    turns, s, c = _turns(phi)
    return s**3 / 6 * elliprd(c, 1, 1 - m * sqr(s)) + _of_turns(turns, m, _ellipk_slope)


def _ellipeinc_by_m(z: Node, phi: Node, m: Node) -> Any:
    turns, s, c = _turns(phi)
    return -(s**3) / 6 * elliprd(c, 1 - m * sqr(s), 1) + _of_turns(turns, m, _ellipe_slope)


def _of_turns(turns: Node, m: Node, slope: Callable[[Node], Node]) -> Node:
    is_one = equal(turns, 0)
    return where(is_one, 0, 2 * turns * slope(where(is_one, 0.5, m)))


ellipkinc = row(
    "ellipkinc",
    "The elliptic integral of the first kind.",
    lambda z, phi, m: 1 / sqrt(1 - m * sqr(sin(phi))),
    _ellipkinc_by_m,
)
ellipeinc = row(
    "ellipeinc",
    "The elliptic integral of the second kind.",
    lambda z, phi, m: sqrt(1 - m * sqr(sin(phi))),
    _ellipeinc_by_m,
)
elliprd: Any = row("elliprd", "Carlson's R_D; it has no derivative here.", unknown, unknown, unknown)
elliprj = row("elliprj", "Carlson's R_J; it has no derivative here.", unknown, unknown, unknown, unknown)
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
    is_zero = equal(x, 0)
    return where(is_zero, 0, x * elliprd(y, z, where(is_zero, 1, x)) / 12)


elliprc = row(
    "elliprc",
    "Carlson's R_C; for y < 0 its principal value.",
    lambda w, x, y: where(
        greater(y, 0),
        -elliprd(where(greater(y, 0), y, 1), where(greater(y, 0), y, 1), x) / 6,
        (w - 1 / sqrt(x)) / (2 * (where(greater(y, 0), -1, y) - x)),
    ),
    lambda w, x, y: where(
        greater(y, 0),
        -elliprd(x, where(greater(y, 0), y, 1), where(greater(y, 0), y, 1)) / 3,
        (sqrt(x) / y - w) / (2 * (where(greater(y, 0), -1, y) - x)),
    ),
)
ellipj_0: Any = row("ellipj_0", "Jacobi's sn.", lambda z, u, m: ellipj_1(u, m) * ellipj_2(u, m), unknown)
ellipj_1: Any = row("ellipj_1", "Jacobi's cn.", lambda z, u, m: -ellipj_0(u, m) * ellipj_2(u, m), unknown)
ellipj_2: Any = row("ellipj_2", "Jacobi's dn.", lambda z, u, m: -m * ellipj_0(u, m) * ellipj_1(u, m), unknown)
ellipj_3: Any = row("ellipj_3", "Jacobi's amplitude.", lambda z, u, m: ellipj_2(u, m), unknown)

# --- distributions ----------------------------------------------------------------------------------------------------

betaincc = row(
    "betaincc",
    "1 - betainc(a, b, x).",
    lambda z, a, b, x: -betainc_by_a(a, b, x),
    lambda z, a, b, x: -betainc_by_b(a, b, x),
    lambda z, a, b, x: -beta_density(a, b, x),
)
betainccinv = row(
    "betainccinv",
    "The x whose betaincc(a, b, x) is y.",
    lambda z, a, b, y: held_place(betainc_by_a(a, b, z), beta_density(a, b, z)),
    lambda z, a, b, y: held_place(betainc_by_b(a, b, z), beta_density(a, b, z)),
    lambda z, a, b, y: -1 / beta_density(a, b, z),
)
stdtrit = row(
    "stdtrit",
    "The t whose stdtr(df, t) is p.",
    lambda z, df, p: held_place(stdtr_by_df_of(df, z), student_density(df, z)),
    lambda z, df, p: 1 / student_density(df, z),
)


def _kolmogorov_slope(x: Node) -> Node:
    """Two series, of which each has four terms that count on its side of 1 (Marsaglia, Tsang and Wang 2003)."""
    low, high = where(less(x, 1), x, 1), where(less(x, 1), 1, x)
    squares = [math.pi**2 * (2 * k - 1) ** 2 / 8 for k in range(1, 5)]
    small: Any = sum(ROOT_2PI * (1 / sqr(low) - 2 * c / sqr(sqr(low))) * exp(-c / sqr(low)) for c in squares)
    large: Any = sum((-1) ** k * 8 * k * k * high * exp(-2 * k * k * sqr(high)) for k in range(1, 5))
    return where(less(x, 1), where(less(x, 0.02), 0, small), large)


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
    globals()[_name] = row(_name, f"SciPy's {_name}; it has no derivatives here.", *[unknown] * _count)


def late_op(name: str) -> Op | None:
    """An op by its name, now that this module and others have defined theirs; None for an unknown one."""
    import_module("graphc.tensor.sorting")
    found: Op | None = OPS.get(name)
    return found


HOOKS.late_op = late_op
