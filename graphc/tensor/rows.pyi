"""The functions that rows of the table `ops/scalar.py` make (elementary.py).

Written from the tables by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, for editors and type checkers alone.
"""

from typing import Any

from graphc.ir.node import Node

def abs(x: Any, /) -> Node:
    """Absolute value."""

def arccos(x: Any, /) -> Node:
    """Inverse cosine."""

def arccosh(x: Any, /) -> Node:
    """Inverse hyperbolic cosine."""

def arcsin(x: Any, /) -> Node:
    """Inverse sine."""

def arcsinh(x: Any, /) -> Node:
    """Inverse hyperbolic sine."""

def arctan(x: Any, /) -> Node:
    """Inverse tangent."""

def arctan2(x: Any, y: Any, /) -> Node:
    """Angle of the point (y, x): the inverse tangent of x / y in the right quadrant."""

def arctanh(x: Any, /) -> Node:
    """Inverse hyperbolic tangent."""

def bitwise_and(x: Any, y: Any, /) -> Node:
    """Bits set in both; `and` of bools."""

def bitwise_or(x: Any, y: Any, /) -> Node:
    """Bits set in either; `or` of bools."""

def bitwise_xor(x: Any, y: Any, /) -> Node:
    """Bits set in exactly one."""

def cbrt(x: Any, /) -> Node:
    """Cube root."""

def ceil(x: Any, /) -> Node:
    """Rounded up."""

def copysign(x: Any, y: Any, /) -> Node:
    """x with the sign of y."""

def cos(x: Any, /) -> Node:
    """Cosine."""

def cosh(x: Any, /) -> Node:
    """Hyperbolic cosine."""

def deg2rad(x: Any, /) -> Node:
    """Degrees to radians."""

def digamma(x: Any, /) -> Node:
    """Derivative of gammaln."""

def equal(x: Any, y: Any, /) -> Node:
    """x == y; NaN equals nothing."""

def erf(x: Any, /) -> Node:
    """Error function."""

def erfc(x: Any, /) -> Node:
    """1 - erf(x), exact for large x."""

def erfcx(x: Any, /) -> Node:
    """exp(x**2) * erfc(x), of which neither has to be finite nor other than 0."""

def exp(x: Any, /) -> Node:
    """e**x."""

def exp2(x: Any, /) -> Node:
    """2**x."""

def expm1(x: Any, /) -> Node:
    """e**x - 1, exact near 0."""

def fabs(x: Any, /) -> Node:
    """Absolute value as a float."""

def float_power(x: Any, y: Any, /) -> Node:
    """Power in float64."""

def floor(x: Any, /) -> Node:
    """Rounded down."""

def floor_div(x: Any, y: Any, /) -> Node:
    """Quotient rounded down; integers by 0 give 0."""

def fmax(x: Any, y: Any, /) -> Node:
    """The larger; a NaN gives way to a number."""

def fmin(x: Any, y: Any, /) -> Node:
    """The smaller; a NaN gives way to a number."""

def fmod(x: Any, y: Any, /) -> Node:
    """Remainder of the truncated quotient, with the sign of the dividend; integers by 0 give 0."""

def gammaln(x: Any, /) -> Node:
    """Logarithm of |gamma(x)|, -inf at -inf as SciPy's."""

def gcd(x: Any, y: Any, /) -> Node:
    """Greatest common divisor."""

def greater(x: Any, y: Any, /) -> Node:
    """x > y."""

def greater_equal(x: Any, y: Any, /) -> Node:
    """x >= y."""

def heaviside(x: Any, y: Any, /) -> Node:
    """0, y or 1 for x below, at or above 0."""

def hypot(x: Any, y: Any, /) -> Node:
    """sqrt(x**2 + y**2) without overflow."""

def invert(x: Any, /) -> Node:
    """All bits flipped; `not` of bools."""

def isfinite(x: Any, /) -> Node:
    """True where x is neither NaN nor an infinity."""

def isinf(x: Any, /) -> Node:
    """True where x is an infinity."""

def isnan(x: Any, /) -> Node:
    """True where x is NaN."""

def lcm(x: Any, y: Any, /) -> Node:
    """Least common multiple."""

def left_shift(x: Any, y: Any, /) -> Node:
    """Bits moved up; 0 beyond the width."""

def less(x: Any, y: Any, /) -> Node:
    """x < y."""

def less_equal(x: Any, y: Any, /) -> Node:
    """x <= y."""

def log(x: Any, /) -> Node:
    """Natural logarithm."""

def log10(x: Any, /) -> Node:
    """Logarithm to base 10."""

def log1p(x: Any, /) -> Node:
    """log(1 + x), exact near 0."""

def log2(x: Any, /) -> Node:
    """Logarithm to base 2."""

def logaddexp(x: Any, y: Any, /) -> Node:
    """log(e**x + e**y) without overflow."""

def logaddexp2(x: Any, y: Any, /) -> Node:
    """log2(2**x + 2**y) without overflow."""

def logical_and(x: Any, y: Any, /) -> Node:
    """Both; numbers count as true unless 0."""

def logical_not(x: Any, /) -> Node:
    """Not."""

def logical_or(x: Any, y: Any, /) -> Node:
    """Either."""

def logical_xor(x: Any, y: Any, /) -> Node:
    """Exactly one."""

def maximum(x: Any, y: Any, /) -> Node:
    """The larger, 0.0 of zeros; NaN where either is."""

def minimum(x: Any, y: Any, /) -> Node:
    """The smaller, -0.0 of zeros; NaN where either is."""

def mod(x: Any, y: Any, /) -> Node:
    """Remainder of floor_div, with the sign of the divisor; integers by 0 give 0."""

def neg(x: Any, /) -> Node:
    """Negative."""

def nextafter(x: Any, y: Any, /) -> Node:
    """The float next to x towards y."""

def not_equal(x: Any, y: Any, /) -> Node:
    """x != y; NaN differs from all."""

def philox(x: Any, y: Any, z: Any, /) -> Node:
    """Word `index` of 64 bits of the blocks of Philox 4x32-10 of a draw and a key, two words to a block."""

def philox_cauchy(x: Any, y: Any, z: Any, /) -> Node:
    """Number `index` of a draw and a key, of the standard cauchy distribution: its inverse, of a word."""

def philox_exponential(x: Any, y: Any, z: Any, /) -> Node:
    """Number `index` of a draw and a key, of the standard exponential distribution: its inverse, of a word."""

def philox_gumbel(x: Any, y: Any, z: Any, /) -> Node:
    """Number `index` of a draw and a key, of the standard gumbel distribution: its inverse, of a word."""

def philox_high(x: Any, y: Any, z: Any, /) -> Node:
    """64 more random bits: the other half of that block."""

def philox_laplace(x: Any, y: Any, z: Any, /) -> Node:
    """Number `index` of a draw and a key, of the standard laplace distribution: its inverse, of a word."""

def philox_logistic(x: Any, y: Any, z: Any, /) -> Node:
    """Number `index` of a draw and a key, of the standard logistic distribution: its inverse, of a word."""

def philox_low(x: Any, y: Any, z: Any, /) -> Node:
    """64 random bits: the first half of the block of Philox 4x32-10 of a counter (index, draw) and a key."""

def philox_normal(x: Any, y: Any, z: Any, /) -> Node:
    """Normal number `index` of a draw and a key, two numbers to a block of Philox 4x32-10."""

def philox_unit(x: Any, y: Any, z: Any, /) -> Node:
    """The first 53 bits of word `index` as a number in [0, 1)."""

def portable_arccos(x: Any, /) -> Node:
    """arccos(x), of the same bits in all modes and on every machine."""

def portable_exp(x: Any, /) -> Node:
    """exp(x), of the same bits in all modes and on every machine."""

def portable_log(x: Any, /) -> Node:
    """log(x), of the same bits in all modes and on every machine."""

def positive(x: Any, /) -> Node:
    """The argument itself."""

def pow(x: Any, y: Any, /) -> Node:
    """Power. Of integers an integer: a negative exponent of these is an error, of the call if not before."""

def rad2deg(x: Any, /) -> Node:
    """Radians to degrees."""

def reciprocal(x: Any, /) -> Node:
    """1 / x; of integers truncated, of 0 as NumPy's."""

def right_shift(x: Any, y: Any, /) -> Node:
    """Bits moved down; the sign stays."""

def rint(x: Any, /) -> Node:
    """Rounded to the nearest integer, halves to the even one."""

def sigmoid(x: Any, /) -> Node:
    """1 / (1 + e**-x)."""

def sign(x: Any, /) -> Node:
    """-1, 0 or 1; NaN of NaN."""

def signbit(x: Any, /) -> Node:
    """True where the sign bit is set, as it is for -0.0."""

def sin(x: Any, /) -> Node:
    """Sine."""

def sinh(x: Any, /) -> Node:
    """Hyperbolic sine."""

def softplus(x: Any, /) -> Node:
    """log(1 + e**x) without overflow."""

def sqr(x: Any, /) -> Node:
    """Square."""

def sqrt(x: Any, /) -> Node:
    """Square root."""

def strong_mul(x: Any, y: Any, /) -> Node:
    """Product of a cotangent and a derivative: 0 where the cotangent is 0, whatever the derivative is."""

def sub(x: Any, y: Any, /) -> Node:
    """Difference."""

def tan(x: Any, /) -> Node:
    """Tangent."""

def tanh(x: Any, /) -> Node:
    """Hyperbolic tangent."""

def trigamma(x: Any, /) -> Node:
    """Derivative of digamma."""

def true_div(x: Any, y: Any, /) -> Node:
    """Quotient; of integers a float64."""

def trunc(x: Any, /) -> Node:
    """Rounded to zero."""

def where(x: Any, y: Any, z: Any, /) -> Node:
    """x where the condition holds, y elsewhere."""

def xlog1py(x: Any, y: Any, /) -> Node:
    """x * log(1 + y), and 0 where x is 0."""

def xlogy(x: Any, y: Any, /) -> Node:
    """x * log(y), and 0 where x is 0."""
