"""The derivatives of the incomplete gamma and beta functions by their parameters.

In: arrays of float64 of one shape. Out: arrays of that shape, by NumPy. With P(k, x) the regularised lower incomplete
gamma function and I(a, b, x) the regularised incomplete beta function:

- Parameters below `LARGE`: a value is carried with its first and second derivative in one direction (`Jet`) through

      P = x**k e**-x / gamma(k + 1) * sum of x**n / ((k + 1) ... (k + n)),   x < k + 1        (DLMF 8.7.1)
      1 - P = x**k e**-x / gamma(k) * 1 / (x + 1 - k - 1 (1 - k) / (x + 3 - k - ...))         (DLMF 8.9.2)
      I = x**a (1 - x)**b / (a B(a, b)) * 1 / (1 + d1 / (1 + d2 / (1 + ...)))                 (DLMF 8.17.22)

  the last where x is below (a + 1) / (a + b + 2), and with 1 - I(b, a, 1 - x) beyond, as in Boik and Robinson-Cox,
  Derivatives of the incomplete beta function, Journal of Statistical Software 3 (1), 1998.
- Larger ones: the derivative of the density under the integral, over the side of x on which the density falls, up to
  where it has fallen by e**-40, by Gauss' and Legendre's rule; the density is written about its mean, with Stirling's
  series (DLMF 5.11.1), so that nothing large cancels.

The error is at most 1e-12 of the derivative, or of the density times x, where that is larger, for parameters up to 1e4;
above it grows as their root.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

LARGE = 20.0
MOST_STEPS = 100_000
ENOUGH = 1e-17
"""Terms below this fraction of the total are dropped."""
FALLEN = 40.0
"""The integral is cut off where the density has fallen by this exponent."""
POINTS = 64

Array = np.ndarray[Any, Any]


def gammainc_by_k(k: Array, x: Array, order: int) -> Array:
    """The first or second derivative of the regularised lower incomplete gamma function of k and x by k; 0 at x = 0
    and at infinity, NaN where the function is."""

    def choose(k: Array, x: Array) -> list[tuple[Array, Callable[..., Array]]]:
        large = k >= LARGE
        low = x < k + 1
        return [
            (~large & low, lambda k, x: _gamma_series(k, x)[order]),
            (~large & ~low, lambda k, x: -_gamma_fraction(k, x)[order]),
            (large, lambda k, x: _gamma_integral(k, x, order)),
        ]

    k, x = (np.asarray(each, "float64") for each in (k, x))
    inside = (k >= 0) & (x > 0) & np.isfinite(k) & np.isfinite(x)
    constant = ((x == 0) & (k > 0)) | ((x == np.inf) & (k >= 0))
    return _in_parts(choose, inside, constant & np.isfinite(k), k, x)


def betainc_by(a: Array, b: Array, x: Array, by_a: float, by_b: float, order: int) -> Array:
    """The first or second derivative of the regularised incomplete beta function of a, b and x in the direction
    (by_a, by_b) of the parameters; 0 at x = 0 and 1, NaN where the function is."""

    def choose(a: Array, b: Array, x: Array) -> list[tuple[Array, Callable[..., Array]]]:
        large = (a >= LARGE) & (b >= LARGE)
        low = x < (a + 1) / (a + b + 2)
        return [
            (~large & low, lambda a, b, x: _beta_fraction(a, b, x, 1 - x, by_a, by_b)[order]),
            (~large & ~low, lambda a, b, x: -_beta_fraction(b, a, 1 - x, x, by_b, by_a)[order]),
            (large, lambda a, b, x: _beta_integral(a, b, x, by_a, by_b, order)),
        ]

    a, b, x = (np.asarray(each, "float64") for each in (a, b, x))
    known = (a >= 0) & (b >= 0) & (a + b > 0) & np.isfinite(a) & np.isfinite(b)
    return _in_parts(choose, known & (x > 0) & (x < 1), known & ((x == 0) | (x == 1)), a, b, x)


def stdtr_by_df(df: Array, t: Array) -> Array:
    """The derivative by df of the distribution function of Student's t with df degrees of freedom at t; 0 at the ends.

    With x = df / (df + t**2) the function is 1 - betainc(df / 2, 1 / 2, x) / 2 where t is above 0, and 1 minus that of
    -t elsewhere (Abramowitz and Stegun 26.7.1). Near 1, x is known by 1 - x alone: there the derivative is that of
    betainc(1 / 2, df / 2, 1 - x) by its second parameter (DLMF 8.17.4).
    """
    special, square, half = _special(), np.square(t), np.full_like(t, 0.5)
    with np.errstate(all="ignore"):
        low = betainc_by(0.5 * df, half, df / (df + square), 1.0, 0.0, 1)
        high = -betainc_by(half, 0.5 * df, square / (df + square), 0.0, 1.0, 1)
        log_density = -special.betaln(0.5 * df, 0.5) - 0.5 * (np.log(df) + (df + 1) * np.log1p(square / df))
        slope = -0.25 * np.sign(t) * np.where(square < df, high, low) - 0.5 * np.exp(log_density) * t / df
    return np.where(np.isinf(t), 0.0, slope)


def _in_parts(choose: Callable[..., Any], inside: Array, constant: Array, *given: Array) -> Array:
    """Evaluate the functions that `choose` pairs with conditions, on the elements inside; 0 for constant elements, NaN
    elsewhere."""
    result = np.where(constant, 0.0, np.nan)
    chosen = [each[inside] for each in given]
    part = np.empty(chosen[0].shape)
    with np.errstate(all="ignore"):
        for condition, function in choose(*chosen):
            if condition.any():
                part[condition] = function(*(each[condition] for each in chosen))
    result[inside] = part
    return result


def _special() -> Any:
    return import_module("scipy.special")


# --- the incomplete gamma function ----------------------------------------------------------------------------------


def _gamma_factor(k: Array, x: Array) -> Jet:
    """x**k e**-x / gamma(k + 1)."""
    special = _special()
    first = np.log(x) - special.digamma(k + 1)
    value = np.exp(special.xlogy(k, x) - x - special.gammaln(k + 1))
    return value, value * first, value * (first * first - special.polygamma(1, k + 1))


def _gamma_series(k: Array, x: Array) -> Jet:
    term = total = _constant(np.ones_like(x))
    for n in range(1, MOST_STEPS):
        ratio = x / (k + n)
        slope = -ratio / (k + n)
        term = times(term, (ratio, slope, -2.0 * slope / (k + n)))
        total = plus(total, term)
        if not _matters(term, total):
            break
    return times(_gamma_factor(k, x), total)


def _gamma_fraction(k: Array, x: Array) -> Jet:
    """1 - P by the continued fraction, evaluated forward by Steed's method."""
    zero, one = np.zeros_like(x), np.ones_like(x)
    low = x + 1.0 - k
    part = term = total = inverse((low, -one, zero))
    for n in range(1, MOST_STEPS):
        low = low + 2.0
        under = (low, -one, zero)
        part = inverse(plus(under, times((n * (k - n), n * one, zero), part)))
        left = times(under, part)
        term = times(term, (left[0] - 1.0, *left[1:]))
        total = plus(total, term)
        if not _matters(term, total):
            break
    return times(times(_gamma_factor(k, x), (k, one, zero)), total)


def _gamma_integral(k: Array, x: Array, order: int) -> Array:
    """The integral of (log t - psi(k)) f, or of ((log t - psi(k))**2 - psi'(k)) f, over the tail away from the mean."""
    above = x > k

    def fall(step: Array, k: Array, x: Array) -> Array:
        return (k - 1.0) * _log1p_less(step / x) + (k - 1.0 - x) / x * step

    density = np.exp(k * _log1p_less((x - k) / k) - _stirling(k)) * np.sqrt(k / (2 * np.pi)) / x
    reach = _reach(fall, above, x * _most_fallen(k), 100.0 + 20.0 * np.sqrt(x), k, x)

    def slope(step: Array, k: Array, x: Array) -> Array:
        first = np.log1p((x - k + step) / k) + _log_over_psi(k)
        factor = first if order == 1 else first * first - _special().polygamma(1, k)
        return np.asarray(factor * np.exp(fall(step, k, x)))

    return np.asarray(np.where(above, -density, density) * _integral(slope, above, reach, k, x))


# --- the incomplete beta function -----------------------------------------------------------------------------------


def _beta_factor(a: Array, b: Array, x: Array, y: Array, by_a: float, by_b: float) -> Jet:
    """x**a y**b / (a B(a, b)) with y = 1 - x, as b x**a y**b / ((a + b) (a + b + 1) B(a + 1, b + 1))."""
    special, by_both = _special(), by_a + by_b
    log_x, log_y = np.log(x), np.log(y)
    log_x, log_y = np.where(x > 0.5, np.log1p(-y), log_x), np.where(y > 0.5, np.log1p(-x), log_y)
    psi = [special.digamma(each) for each in (a + 1, b + 1, a + b + 2)]
    bent = [special.polygamma(1, each) for each in (a + 1, b + 1, a + b + 2)]
    first = by_a * (log_x - psi[0]) + by_b * (log_y - psi[1]) + by_both * psi[2]
    second = by_both**2 * bent[2] - by_a**2 * bent[0] - by_b**2 * bent[1]
    value = np.exp(a * log_x + b * log_y - _log_beta(a + 1, b + 1))
    both = (a + b, np.full_like(a, by_both), np.zeros_like(a))
    under = times(both, (both[0] + 1.0, *both[1:]))
    weight = times(_along(b, by_b), inverse(under))
    return times((value, value * first, value * (first * first + second)), weight)


def _beta_fraction(a: Array, b: Array, x: Array, y: Array, by_a: float, by_b: float) -> Jet:
    """I by the continued fraction, evaluated forward by Steed's method."""
    one, x_ = _constant(np.ones_like(x)), _constant(x)
    a_, b_ = _along(a, by_a), _along(b, by_b)
    both = plus(a_, b_)

    def moved(jet: Jet, by: float, sign: float = 1.0) -> Jet:
        return (by + sign * jet[0], *(sign * each for each in jet[1:]))

    def coefficient(m: int, is_even: bool) -> Jet:
        if m == 0:
            return moved(times(times(both, x_), inverse(moved(a_, 1.0))), 0.0, -1.0)
        count = 2.0 * m + (not is_even)
        above = times(_constant(np.full_like(x, m)), moved(b_, -m)) if is_even else times(moved(a_, m), moved(both, m))
        quotient = times(times(above, x_), inverse(times(moved(a_, count - 1.0), moved(a_, count))))
        return quotient if is_even else moved(quotient, 0.0, -1.0)

    part = term = total = one
    for place in range(1, MOST_STEPS):
        part = inverse(plus(one, times(coefficient(place // 2, place % 2 == 0), part)))
        term = times(term, (part[0] - 1.0, *part[1:]))
        total = plus(total, term)
        if not _matters(term, total):
            break
    return times(_beta_factor(a, b, x, y, by_a, by_b), total)


def _beta_integral(a: Array, b: Array, x: Array, by_a: float, by_b: float, order: int) -> Array:
    """The integral of u f, or of (u**2 + u') f, over the tail away from the mean; u: the derivative of log f."""
    special, mean, rest = _special(), a / (a + b), b / (a + b)
    above, away = x > mean, x - mean

    def fall(step: Array, a: Array, b: Array, x: Array) -> Array:
        bent = (a - 1.0) * _log1p_less(step / x) + (b - 1.0) * _log1p_less(-step / (1.0 - x))
        return bent + ((a - 1.0) / x - (b - 1.0) / (1.0 - x)) * step

    exponent = (
        a * _log1p_less(away / mean) + b * _log1p_less(-away / rest) + _stirling(a + b) - _stirling(a) - _stirling(b)
    )
    density = np.exp(exponent) * np.sqrt(a * rest / (2 * np.pi)) / (x * (1.0 - x))
    reach = _reach(fall, above, x * _most_fallen(a), (1.0 - x) * _most_fallen(b), a, b, x)

    def slope(step: Array, a: Array, b: Array, x: Array) -> Array:
        shift, whole = x - a / (a + b) + step, _log_over_psi(a + b)
        first = by_a * (np.log1p(shift * (a + b) / a) + _log_over_psi(a) - whole)
        first = first + by_b * (np.log1p(-shift * (a + b) / b) + _log_over_psi(b) - whole)
        if order == 1:
            return np.asarray(first * np.exp(fall(step, a, b, x)))
        bent = [special.polygamma(1, each) for each in (a + b, a, b)]
        second = (by_a + by_b) ** 2 * bent[0] - by_a**2 * bent[1] - by_b**2 * bent[2]
        return np.asarray((first * first + second) * np.exp(fall(step, a, b, x)))

    return np.asarray(np.where(above, -density, density) * _integral(slope, above, reach, a, b, x))


# --- what both need ---------------------------------------------------------------------------------------------------


def _constant(value: Array) -> Jet:
    return _along(value, 0.0)


def _along(value: Array, slope: float) -> Jet:
    return value, np.full_like(value, slope), np.zeros_like(value)


def _matters(term: Jet, total: Jet) -> bool:
    """True if a term, or a derivative of it, still changes the total of any element."""
    size = sum(abs(each) for each in term)
    return bool((size > ENOUGH * abs(total[0])).any())


def _stirling(k: Array) -> Array:
    """log gamma(k) - (k - 1/2) log k + k - log(2 pi) / 2, for k of at least `LARGE`."""
    square = 1.0 / (k * k)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / k


def _log_beta(a: Array, b: Array) -> Array:
    """The logarithm of the beta function; for a large parameter, from Stirling's series of the ratio of gammas."""
    special = _special()
    small, large = np.minimum(a, b), np.maximum(a, b)
    whole = a + b
    ratio = (large - 0.5) * np.log1p(small / large) + small * (np.log(whole) - 1) + _stirling(whole) - _stirling(large)
    return np.asarray(np.where(large < LARGE, special.betaln(a, b), special.gammaln(small) - ratio))


def _log1p_less(x: Array) -> Array:
    """log(1 + x) - x."""
    terms = [(-1) ** (n + 1) / n for n in range(2, 10)]
    near = x * x * np.polynomial.polynomial.polyval(x, terms)
    return np.where(abs(x) < 0.01, near, np.log1p(x) - x)


def _log_over_psi(k: Array) -> Array:
    """log k - psi(k), for k of at least `LARGE` (DLMF 5.11.2)."""
    square = 1.0 / (k * k)
    tail = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return 0.5 / k + tail


def _reach(fall: Callable[..., Array], above: Array, low: Array, high: Array, *given: Array) -> Array:
    """The distance from x at which the density has fallen by `FALLEN`, by bisection: upwards (at most `high`) if
    `above`, else downwards (at most `low`)."""
    near, far, sign = np.zeros_like(low), np.where(above, high, low), np.where(above, 1.0, -1.0)
    for _ in range(50):
        middle = 0.5 * (near + far)
        has_fallen = fall(sign * middle, *given) < -FALLEN
        near, far = np.where(has_fallen, near, middle), np.where(has_fallen, middle, far)
    return far


def _most_fallen(k: Array) -> Array:
    """An upper bound of the fraction of x, below the mean, over which t**(k - 1) makes the density fall by `FALLEN`."""
    return np.asarray(np.minimum(1.0, 1.5 * np.sqrt(2 * FALLEN / (k - 1.0))))


@cache
def _rule() -> tuple[Array, Array]:
    """Nodes in [0, 1] and weights of Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    return (nodes + 1) / 2, weights / 2


def _integral(function: Callable[..., Array], above: Array, reach: Array, *given: Array) -> Array:
    """The integral of function(step, *given) over steps from 0 to `reach`, upwards if `above`, else downwards."""
    nodes, weights = _rule()
    signed = np.where(above, reach, -reach)
    total = np.zeros_like(reach)
    for node, weight in zip(nodes, weights, strict=True):
        total += weight * function(signed * node, *given)
    return total * reach


# --- values with derivatives ------------------------------------------------------------------------------------------
# Truncated Taylor arithmetic: values with their first one or two derivatives in one direction.
#
# In: tuples (value, first, second) or (value, first) of anything that can be added, multiplied and divided. Out: the
# same for sums, products and inverses.


Jet = tuple[Any, ...]


def plus(a: Jet, b: Jet) -> Jet:
    return tuple(left + right for left, right in zip(a, b, strict=True))


def times(a: Jet, b: Jet) -> Jet:
    product = [a[0] * b[0], a[0] * b[1] + a[1] * b[0]]
    if len(a) > 2:
        product.append(a[0] * b[2] + 2.0 * (a[1] * b[1]) + a[2] * b[0])
    return tuple(product)


def inverse(a: Jet) -> Jet:
    value = 1.0 / a[0]
    first = -a[1] * value * value
    if len(a) == 2:
        return value, first
    return value, first, (-a[2] * value - 2.0 * a[1] * first) * value
