"""Random numbers and functions with the same bits on every machine, built from exactly rounded IEEE operations.

In: words of 64 random bits, or float64 numbers. Out: float64 numbers. Sums, products, quotients and square roots are
rounded as IEEE 754 prescribes, in the order written here, and no library function is called; so the result does not
depend on the machine. The formulas are written once, over values with Python's operators: NumPy arrays (`Number`,
`Bits`, `Mask` below) in the interpreter, LLVM instructions in compiled code (`codegen/vecmath/table.py`). Changing a
digit here changes the numbers of every stream.

Methods: fdlibm's logarithm (Sun, 1993), Cody and Waite's reduction for the exponential, Box and Muller (Annals of
Mathematical Statistics 29, 1958), inverses of distribution functions. Coefficients: benchmarks/fit_vecmath.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any
"""A number, its bits or a truth value, in NumPy's or LLVM's form."""

ONE = 0x3FF0000000000000
"""The encoding of 1.0."""
ANCHOR = 0x3FE6A09E667F3BCC
"""The encoding of a number just below sqrt(1/2)."""
FRACTION = (1 << 52) - 1
ROUNDER = 1.5 * 2.0**52
"""Adding and subtracting it rounds a number to an integer."""
LN2 = 0.6931471805598903, 5.497923018708371e-14
"""log(2) in two parts; the first has 42 bits, so its products with integers up to 2**11 are exact."""
RIGHT = 1.5707963267948966, 6.123233995736766e-17
"""pi / 2 in two parts."""
LOG = (
    0.6666666666666735, 0.3999999999941109, 0.28571428743262905, 0.2222219847596087, 0.18183569741208633,
    0.15313903208789387, 0.147975081086297,
)  # fmt: skip
EXP = (
    0.5000000000000011, 0.16666666666666408, 0.0416666666665281, 0.008333333333496928, 0.0013888888944249083,
    0.00019841269502731754, 2.4801492388356134e-05, 2.7557588429976853e-06, 2.7630523454243115e-07,
    2.4999855407296043e-08,
)  # fmt: skip
SIN = (
    -0.1666666666666663, 0.00833333333332211, -0.0001984126982958002, 2.75573136172787e-06, -2.505074700580061e-08,
    1.5896180447333903e-10,
)  # fmt: skip
COS = (
    0.041666666666666595, -0.0013888888888873032, 2.4801587288834102e-05, -2.7557314173796913e-07,
    2.0875700047862383e-09, -1.1358493369060934e-11,
)  # fmt: skip
ASIN = (
    0.1666666666666654, 0.07500000000037707, 0.044642857103340386, 0.03038194653448663, 0.022372093687920723,
    0.01735408522222571, 0.013946721171161776, 0.011725901251812278, 0.008573442816599703, 0.01415450427423423,
    -0.012269305274346061, 0.05129340525933189, -0.05801149489691614, 0.05078028672525927,
)  # fmt: skip

# Functions of numbers -------------------------------------------------------------------------------------------------


def _polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    """The sum of coefficients[i] * x**i: even and odd powers by two Horner schemes in parallel."""
    square = x * x
    even, odd = (_horner(square, coefficients[first::2]) for first in (0, 1))
    return even + x * odd


def _horner(x: Value, coefficients: tuple[float, ...]) -> Value:
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total


def _log_of_normal(x: Value, scaled: Value = 0.0) -> Value:
    """log(x * 2**-scaled) for x > 0 that is neither subnormal nor infinite, 1 ulp: k log(2) + log(1 + f)."""
    moved = x.bits() + (ONE - ANCHOR)
    f = ((moved & FRACTION) + ANCHOR).real() - 1.0
    # the exponent as a number: vectors of AVX2 convert no integers of 64 bits
    k = ((moved >> 52) | (1075 << 52)).real() - (2.0**52 + 1023) - scaled
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return k * LN2[0] - ((half - (s * (half + z * _polynomial(z, LOG)) + k * LN2[1])) - f)


def log(x: Value) -> Value:
    """The natural logarithm, 1 ulp."""
    small = x < 2.0**-1022
    inside = _log_of_normal(small.select(x * 2.0**54, x), small.select(54.0 + x * 0.0, 0.0))
    outside = x.equals(0.0).select(-math.inf, (x < 0.0).select(math.nan, x))
    return ((x > 0.0) & (x < math.inf)).select(inside, outside)


def exp(x: Value) -> Value:
    """e**x, 2 ulp: 2**k e**r, |r| <= log(2) / 2."""
    x = (x > 710.0).select(710.0, x)
    x = (x < -746.0).select(-746.0, x)
    shifted = x * (1.0 / math.log(2.0)) + ROUNDER
    k = shifted - ROUNDER
    reduced, tail = x - k * LN2[0], k * LN2[1]
    r = reduced - tail
    grown = (r + (r * r * _polynomial(r, EXP) + ((reduced - r) - tail))) + 1.0
    # 2**k in two factors, so that the result is rounded once where it is subnormal
    twice = shifted.bits() + (2046 - 0x4338000000000000)
    half = twice >> 1
    return grown * (half << 52).real() * ((twice - half) << 52).real()


def _sine(r: Value) -> Value:
    """sin(r) for |r| <= pi / 4."""
    z = r * r
    return r + r * z * _polynomial(z, SIN)


def _cosine(r: Value) -> Value:
    """cos(r) for |r| <= pi / 4."""
    z = r * r
    return 1.0 + z * (z * _polynomial(z, COS) - 0.5)


def arccos(x: Value) -> Value:
    """The inverse cosine, 3 ulp, as in fdlibm: 2 asin(sqrt((1 - |x|) / 2)) near the ends, else pi / 2 - asin(x)."""
    is_negative = x < 0.0
    size = is_negative.select(-x, x)
    is_near = size > 0.545
    z = is_near.select(0.5 - size * 0.5, x * x)
    s = is_near.select(z.root(), size)
    angle = s + s * z * _polynomial(z, ASIN)
    double = angle + angle
    outer = is_negative.select(2.0 * RIGHT[0] - (double - 2.0 * RIGHT[1]), double)
    return is_near.select(outer, RIGHT[0] - (is_negative.select(-angle, angle) - RIGHT[1]))


# Numbers of words -----------------------------------------------------------------------------------------------------


def unit(word: Value) -> Value:
    """An odd multiple of 2**-53 in the open interval (0, 1), from the top 52 bits."""
    return ((word >> 12) | ONE).real() - (1.0 - 2.0**-53)


def normals(first: Value, second: Value) -> tuple[Value, Value]:
    """Two normal numbers from two words: a radius up to 8.57 times a cosine, and times the sine. The angle, a multiple
    of 2**-52 turns, is reduced before it is rounded."""
    radius = (_log_of_normal(unit(first)) * -2.0).root()
    turn = ((second >> 12) | ONE).real() * 4.0 - 4.0
    shifted = turn + ROUNDER
    quarters = shifted.bits()
    angle = (turn - (shifted - ROUNDER)) * (math.pi / 2)
    sine, cosine = _sine(angle), _cosine(angle)

    def drawn(turned: Value) -> Value:
        size = turned.bit(0).select(sine, cosine)
        return radius * (size.bits() ^ (((turned + 1) & 2) << 62)).real()

    return drawn(quarters), drawn(quarters - 1)


def exponential(word: Value) -> Value:
    """-log u, up to 36.7."""
    return -_log_of_normal(unit(word))


def gumbel(word: Value) -> Value:
    """-log(-log u)."""
    return -_log_of_normal(exponential(word))


def logistic(word: Value) -> Value:
    """log(u / (1 - u))."""
    u = unit(word)
    return _log_of_normal(u / (1.0 - u))


def laplace(word: Value) -> Value:
    """log(2 u) below one half, above it -log(2 (1 - u))."""
    u = unit(word)
    is_low = u < 0.5
    size = _log_of_normal(is_low.select(u, 1.0 - u) * 2.0)
    return is_low.select(size, -size)


def cauchy(word: Value) -> Value:
    """The tangent of pi (u - 1/2), by the cotangent of the nearer end."""
    u = unit(word)
    is_low = u < 0.5
    end = is_low.select(u, 1.0 - u)
    is_flat = end > 0.25
    angle = is_flat.select(0.5 - end, end) * math.pi
    sine, cosine = _sine(angle), _cosine(angle)
    size = is_flat.select(sine, cosine) / is_flat.select(cosine, sine)
    return is_low.select(-size, size)


# Values of NumPy ------------------------------------------------------------------------------------------------------


def _raw(value: Value) -> Any:
    return value.value if isinstance(value, Number | Bits | Mask) else value


def _arithmetic(apply: Callable[[Any, Any], Any]) -> Callable[[Number, Value], Number]:
    return lambda self, other: Number(apply(self.value, _raw(other)))


def _comparison(apply: Callable[[Any, Any], Any]) -> Callable[[Number, float], Mask]:
    return lambda self, other: Mask(apply(self.value, other))


class Number:
    """An array of float64."""

    def __init__(self, value: Array) -> None:
        self.value = value

    __add__ = __radd__ = _arithmetic(operator.add)
    __mul__ = __rmul__ = _arithmetic(operator.mul)
    __sub__, __truediv__ = _arithmetic(operator.sub), _arithmetic(operator.truediv)
    __rsub__ = _arithmetic(lambda value, other: other - value)
    __lt__, __gt__, equals = map(_comparison, (operator.lt, operator.gt, operator.eq))

    def __neg__(self) -> Number:
        return Number(-self.value)

    def root(self) -> Number:
        """The square root."""
        return Number(np.sqrt(self.value))

    def bits(self) -> Bits:
        """The encoding of the numbers."""
        return Bits(self.value.view(np.uint64))


def _wrapping(ufunc: np.ufunc) -> Callable[[Bits, Bits | int], Bits]:
    def apply(self: Bits, other: Bits | int) -> Bits:
        operand = other.value if isinstance(other, Bits) else np.uint64(other % 2**64)
        return Bits(ufunc(self.value, operand))

    return apply


class Bits:
    """An array of uint64; arithmetic wraps around."""

    def __init__(self, value: Array) -> None:
        self.value = value

    __add__, __sub__, __lshift__, __rshift__ = map(_wrapping, (np.add, np.subtract, np.left_shift, np.right_shift))
    __and__, __or__, __xor__ = map(_wrapping, (np.bitwise_and, np.bitwise_or, np.bitwise_xor))

    def bit(self, place: int) -> Mask:
        """The mask of elements whose bit `place` is set."""
        return Mask((self & (1 << place)).value != 0)

    def real(self) -> Number:
        """The numbers with these encodings."""
        return Number(self.value.view(np.float64))


class Mask:
    """An array of truth values."""

    def __init__(self, value: Array) -> None:
        self.value = value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.value & other.value)

    def select(self, true: Value, false: Value) -> Number:
        """`true` where the mask holds, `false` elsewhere."""
        return Number(np.where(self.value, _raw(true), _raw(false)))


def of_words(function: Callable[..., Any], *words: Array) -> Any:
    """Apply a function of this module to arrays of uint64; returns an array, or a tuple of arrays."""
    with np.errstate(all="ignore"):
        result = function(*(Bits(np.asarray(word)) for word in words))
    return tuple(each.value for each in result) if isinstance(result, tuple) else result.value


def of_numbers(function: Callable[[Number], Number], x: Array) -> Array:
    """Apply a function of this module to an array of floats; the result has its dtype."""
    with np.errstate(all="ignore"):
        result = function(Number(np.asarray(x, np.float64)))
        array: Array = np.asarray(result.value).astype(np.asarray(x).dtype)
    return array
