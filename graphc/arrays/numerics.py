"""NumPy functions that define ops: those NumPy lacks, or defines differently from compiled code.

In: arrays of one float dtype (power, reciprocal and extremes: of others too). Out: an array of that dtype, within a few
ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# B_2k of the asymptotic series (Abramowitz & Stegun 6.3.18 and 6.4.12), k = 1, 2, …
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
ASYMPTOTIC = 8
"""From this argument on, the asymptotic series is accurate to double precision. Smaller arguments are shifted up by the
recurrence."""


PHILOX_ROUNDS = 10
PHILOX_FACTORS = 0xD2511F53, 0xCD9E8D57
PHILOX_BUMPS = 0x9E3779B9, 0xBB67AE85
"""Increments of the two key words, before each round except the first."""


def _philox(index: Array, draw: Array, key: Array) -> list[Array]:
    """The four 32-bit words of Philox 4x32-10 for the counter (`index` low, `draw` high) and a key (Salmon, Moraes,
    Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011). uint64 each."""
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    words = [index & low, index >> half, draw & low, draw >> half]
    keys = [key & low, key >> half]
    for step in range(PHILOX_ROUNDS):
        products = [word * np.uint64(factor) for word, factor in zip(words[::2], PHILOX_FACTORS, strict=True)]
        now = [(each + np.uint64(step * bump)) & low for each, bump in zip(keys, PHILOX_BUMPS, strict=True)]
        first, third = ((products[1 - side] >> half) ^ words[2 * side + 1] ^ now[side] for side in (0, 1))
        words = [first, products[1] & low, third, products[0] & low]
    return words


def philox_low(index: Array, draw: Array, key: Array) -> Array:
    """The first two words of a block, as one 64-bit number."""
    words = _philox(index, draw, key)
    return words[0] | (words[1] << np.uint64(32))


def philox_high(index: Array, draw: Array, key: Array) -> Array:
    """The last two words of a block, as one 64-bit number."""
    words = _philox(index, draw, key)
    return words[2] | (words[3] << np.uint64(32))


def philox(index: Array, draw: Array, key: Array) -> Array:
    """64-bit word number `index` of a sequence: half index % 2 of block index // 2."""
    one = np.uint64(1)
    low, high = (half(index >> one, draw, key) for half in (philox_low, philox_high))
    return np.where((index & one).astype(bool), high, low)


def philox_unit(index: Array, draw: Array, key: Array) -> Array:
    """The top 53 bits of word `index` as a number in [0, 1)."""
    return (philox(index, draw, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def philox_normal(index: Array, draw: Array, key: Array) -> Array:
    """Normal number `index` of a sequence, by Box and Muller: the cosine or the sine of block index // 2."""
    one = np.uint64(1)
    low, high = (half(index >> one, draw, key) for half in (philox_low, philox_high))
    cosine, sine = _portable().of_words(_portable().normals, low, high)
    return np.where((index & one).astype(bool), sine, cosine)


def _of_word(name: str) -> Callable[[Array, Array, Array], Array]:
    """Number `index` of a sequence of a distribution, by the portable function of one 64-bit word."""
    return lambda index, draw, key: _portable().of_words(getattr(_portable(), name), philox(index, draw, key))


DRAWN: dict[str, Callable[[Any, Any, Any], Array]] = {
    "unit": philox_unit,
    "normal": philox_normal,
    **{name: _of_word(name) for name in ("exponential", "gumbel", "logistic", "laplace", "cauchy")},
}
"""Random numbers of each distribution, as functions of an index, a draw and a key."""


def _of_number(name: str) -> Callable[[Array], Array]:
    """A function of numbers with the same bits on every machine."""
    return lambda x: _portable().of_numbers(getattr(_portable(), name), x)


portable_log, portable_exp, portable_arccos = map(_of_number, ("log", "exp", "arccos"))


def _portable() -> Any:
    """The module of the portable functions, imported on demand to keep a warm start short."""
    return import_module("graphc.arrays.portable")


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python floats applied to every element."""
    ufunc = np.frompyfunc(function, 1, 1)

    def apply(x: Array) -> Array:
        return np.asarray(ufunc(np.asarray(x, "float64"))).astype(np.asarray(x).dtype)

    return apply


def _log_gamma(x: float) -> float:
    """log|gamma(x)|; infinite at the poles and on overflow. Its absolute error is 1e-14 where it is below 1."""
    try:
        return x if x == -math.inf else math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


erf = _each(math.erf)
erfc = _each(math.erfc)
gammaln = _each(_log_gamma)


def erfcx(x: Array) -> Array:
    """exp(x**2) * erfc(x), without overflow or underflow of the factors."""
    return import_module("scipy.special").erfcx(x)


def _with_zeros(ufunc: np.ufunc, sign: int) -> Callable[[Array, Array], Array]:
    """An extreme in which 0.0 > -0.0. NumPy's own choice depends on the processor and on the position."""

    def extreme(x: Array, y: Array) -> Array:
        chosen: Array = ufunc(x, y)
        if not np.issubdtype(chosen.dtype, np.floating) or chosen.all():
            return chosen
        # a sum of zeros is -0.0 where both are
        return np.where((x == 0) & (y == 0), sign * (sign * x + sign * y), chosen)[()]

    return extreme


maximum, fmax = _with_zeros(np.maximum, 1), _with_zeros(np.fmax, 1)
minimum, fmin = _with_zeros(np.minimum, -1), _with_zeros(np.fmin, -1)


def _over_axes(ufunc: np.ufunc, zero: float) -> Callable[..., Array]:
    """An extreme over axes in which 0.0 > -0.0. zero: the zero that wins."""

    def extreme(x: Array, axes: tuple[int, ...], **options: Any) -> Array:
        result = np.asarray(ufunc.reduce(x, axis=axes, **options))
        if not np.issubdtype(result.dtype, np.floating) or result.all():
            return result
        wins = np.any((x == 0) & (np.signbit(x) == np.signbit(zero)), axis=axes)
        return np.where(result == 0, np.where(wins, result.dtype.type(zero), result.dtype.type(-zero)), result)

    return extreme


largest, smallest = _over_axes(np.maximum, 0.0), _over_axes(np.minimum, -0.0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, np.ones_like(decay), decay) / (1 + decay)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.maximum(x, np.zeros_like(x)) + np.log1p(np.exp(-np.abs(x)))


def strong_multiply(x: Array, y: Array) -> Array:
    """x * y, but x where x is 0, even for y infinite or NaN."""
    return np.asarray(x * np.where(x == 0, x.dtype.type(1), y))


def xlogy(x: Array, y: Array) -> Array:
    """x * log(y), but 0 where x is 0 and y is not NaN."""
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log(y))


def xlog1py(x: Array, y: Array) -> Array:
    """x * log(1 + y), but 0 where x is 0 and y is not NaN."""
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log1p(y))


def digamma(x: Array) -> Array:
    """The derivative of log(gamma(x)).

    Recurrence 6.3.5 and the asymptotic series 6.3.18 of Abramowitz & Stegun; reflection 6.3.7 for negative arguments.
    NaN at the negative poles; -inf at 0 and inf at -0, as scipy.special.digamma.
    """
    value = np.asarray(x, "float64")
    z = np.where(value > 0, value, 1 - value)
    shift = np.zeros_like(z)
    while np.any(small := z < ASYMPTOTIC):
        shift = np.where(small, shift - 1 / z, shift)
        z = np.where(small, z + 1, z)
    inverse_square = 1 / (z * z)
    series = np.zeros_like(z)
    for k in range(len(BERNOULLI), 0, -1):
        series = inverse_square * (BERNOULLI[k - 1] / (2 * k) + series)
    positive = shift + np.log(z) - 0.5 / z - series
    # tan has period pi: only the fractional part of the argument keeps its accuracy
    reflected = positive - np.pi / np.tan(np.pi * (value - np.rint(value)))
    pole = np.where(value == 0, -np.copysign(np.inf, value), np.nan)
    result = np.where(value > 0, positive, np.where(value == np.rint(value), pole, reflected))
    return result.astype(np.asarray(x).dtype)


def convert(x: Array, dtype: str) -> Array:
    """astype with defined results for floats outside an integer dtype, which NumPy leaves to the processor: the
    conversion goes through int32 or int64, whose least number stands for values out of range, as in compiled code."""
    target = np.dtype(dtype)
    if x.dtype.kind != "f" or target.kind not in "iu":
        return x.astype(target)
    if target == np.uint64:
        middle = x.dtype.type(2.0**63)
        high = _truncate(x - middle, np.int64) ^ np.int64(-(2**63))
        return np.asarray(np.where(x >= middle, high, _truncate(x, np.int64))).astype(target)
    return _truncate(x, np.int64 if target in (np.int64, np.uint32) else np.int32).astype(target)


def _truncate(x: Array, carrier: type[np.signedinteger[Any]]) -> Array:
    lowest, whole = np.iinfo(carrier).min, np.trunc(x)
    fits = (whole >= lowest) & (whole < -lowest)
    return np.asarray(np.where(fits, np.where(fits, whole, 0).astype(carrier), carrier(lowest)))


def trigamma(x: Array) -> Array:
    """The derivative of digamma: recurrence 6.4.6, series 6.4.12 and reflection 6.4.7 of Abramowitz & Stegun."""
    value = np.asarray(x, "float64")
    z = np.where(value > 0, value, 1 - value)
    shift = np.zeros_like(z)
    while np.any(small := z < ASYMPTOTIC):
        shift = np.where(small, shift + 1 / (z * z), shift)
        z = np.where(small, z + 1, z)
    inverse_square = 1 / (z * z)
    series = np.zeros_like(z)
    for bernoulli in reversed(BERNOULLI):
        series = inverse_square * (bernoulli + series)
    positive = shift + (1 + series) / z + 0.5 * inverse_square
    sine = np.sin(np.pi * (value - np.rint(value)))
    pole = np.where(value == np.rint(value), np.inf, (np.pi / sine) ** 2 - positive)
    return np.where(value > 0, positive, pole).astype(np.asarray(x).dtype)


def power(base: Array, exponent: Array) -> Array:
    """base ** exponent. Integers wrap; a negative exponent gives the truncated quotient: 1, -1 or 0.

    NumPy raises for negative integer exponents. Compiled loops cannot raise, so both return the same number here.
    """
    if np.issubdtype(np.asarray(base).dtype, np.floating):
        return np.asarray(np.power(base, exponent))
    wrapped = np.power(base, np.where(exponent < 0, exponent & 1, exponent))
    return np.where((exponent < 0) & (np.abs(base) != 1), np.zeros_like(base), wrapped)


def reciprocal(x: Array) -> Array:
    """1 / x; for integers the truncated quotient, and `of_zero` for 0."""
    dtype = np.asarray(x).dtype
    if np.issubdtype(dtype, np.floating):
        return np.asarray(np.reciprocal(x))
    return np.where(x == 0, dtype.type(of_zero(dtype.name)), np.where(np.abs(x) == 1, x, np.zeros_like(x)))


def of_zero(dtype: str) -> int:
    """NumPy's reciprocal of integer 0, a converted infinity: the least int32 or int64; 0 for other dtypes."""
    return int(np.iinfo(dtype).min) if dtype in ("int32", "int64") else 0
