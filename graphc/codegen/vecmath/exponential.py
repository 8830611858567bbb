"""Powers, exponentials, logarithms, hyperbolic functions and roots in a few straight operations.

In: values of `real`. Out: the same, computed to the bound that each function names. What the other files of vector
math share stands here too. Contracts and sources: see `vecmath`.
"""

from __future__ import annotations

import math

from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.floats import (
    F32,
    F64,
    Bits,
    Float,
    Mask,
    add_exactly,
    add_lesser,
    fma,
    multiply_exactly,
    nearest_whole,
    polynomial,
    residual,
)

# --- powers of two --------------------------------------------------------------------------------------------------


def round_scaled(x: Float, factor: float = 1.0, bias: int = 0) -> tuple[Bits, Float]:
    """The integer next to x * factor: `bias` than it in the low bits of the first result (the rest is junk), and itself
    as a value."""
    rounder = x.format.rounder + bias
    shifted = fma(x, factor, rounder)
    return shifted.bits(), shifted - rounder


def power_of_two(low: Bits) -> Float:
    """2**k for an integer from `round_scaled` in the range of normal exponents."""
    format = low.block.format
    return ((low + format.bias) << format.precision).real()


def scale_by(x: Float, low: Bits) -> Float:
    """x * 2**k with one rounding, so that subnormal and infinite results come out right: in two steps where there is no
    instruction for it."""
    if x.block.scales:
        return x.scaled(low.real() - x.format.rounder)
    return scale_biased(x, low + (2 * x.format.bias - x.format.rounder_bits))


def scale_biased(x: Float, exponent: Bits) -> Float:
    """`scale_by`, where `exponent` is 2 * bias more than k."""
    if x.block.scales:
        return x.scaled(exponent.real() - (x.format.rounder + 2 * x.format.bias))
    half, precision = exponent >> 1, x.format.precision
    return x * (half << precision).real() * ((exponent - half) << precision).real()


def _scale_once(x: Float, low: Bits) -> Float:
    """`scale_by`, where relaxed in one step for k from -bias to bias + 1: subnormal results are 0, those of the last
    half binade infinite.
    """
    return x * power_of_two(low) if x.block.relaxed else scale_by(x, low)


def _split_power(x: Float) -> tuple[Float, Float]:
    """k and m with x = 2**k * m and sqrt(1/2) <= m < sqrt(2), for x > 0; subnormals are scaled first."""
    if x.block.relaxed:
        return _split_normal(x)
    step = x.format.precision + 2
    subnormal = x < x.format.smallest_normal
    return _split_normal(subnormal.select(x * 2.0**step, x), subnormal.select(step, 0.0))


def _split_normal(x: Float, scaled: Float | float = 0.0) -> tuple[Float, Float]:
    """`_split_power` for normal x; k less `scaled`."""
    format, anchor = x.format, _anchor(x)
    moved = x.bits() + (format.one_bits - anchor)
    mantissa = ((moved & ((1 << format.precision) - 1)) + anchor).real()
    return _exponent(moved) - (scaled + (2.0**format.precision + format.bias)), mantissa


def _anchor(x: Float) -> int:
    """The encoding of a number just below sqrt(1/2), where a binade of `_split_power` begins."""
    return 0x3F3504F3 if x.format.is_single else 0x3FE6A09E667F3BCC


def _exponent(moved: Bits) -> Float:
    """The exponent field of an encoding as a value, 2**precision too large: AVX2 converts no 64-bit integers."""
    format = moved.block.format
    return ((moved >> format.precision) | ((format.bias + format.precision) << format.precision)).real()


# --- exponentials ---------------------------------------------------------------------------------------------------


def _limits(x: Float, f32: tuple[float, float], f64: tuple[float, float]) -> Float:
    low, high = f32 if x.format.is_single else f64
    return x.at_most(high).at_least(low)


def reduce_exp(x: Float, rest: Float | float = 0.0) -> tuple[Bits, Float, Float]:
    """k (as of `round_scaled`), r and c with x + rest = k*ln(2) + r + c, |r| <= ln(2)/2: Cody and Waite; c is the
    rounding error of r, or 0 where relaxed.
    """
    high, low = table.LN2[x.format.name]
    bits, k = round_scaled(x, 1.0 / math.log(2.0))
    reduced = fma(k, -high, x)
    tail = fma(k, low, -rest)
    r = reduced - tail
    return bits, r, x.block.real(0.0) if x.block.relaxed else (reduced - r) - tail


def exp_minus_one(r: Float, c: Float) -> Float:
    """exp(r + c) - 1 for |r| <= ln(2)/2, absolute error 2**-54 (float32: 2**-25)."""
    return r + fma(r * r, polynomial(r, table.EXP[r.format.name]), c)


def exp(x: Float) -> Float:
    """e**x, 1 ulp (float32: 1.1): 2**k * e**r, |r| <= ln(2)/2, e**r a polynomial of degree 11 (float32: 6)."""
    x = _limits(x, *(((-88.3, 89.0), (-709.4, 710.0)) if x.block.relaxed else ((-104.0, 89.0), (-746.0, 710.0))))
    if x.format.is_single and not x.block.relaxed:
        return _exp_single(x)
    bits, r, c = reduce_exp(x)
    return _scale_once(exp_minus_one(r, c) + 1.0, bits)


def _exp_single(x: Float) -> Float:
    """`exp` in float32 without the rounding error of r, a quarter of an ulp."""
    high, low = table.LN2["f32"]
    bits, k = round_scaled(x, 1.0 / math.log(2.0), 2 * F32.bias)
    r = fma(k, -low, fma(k, -high, x))
    return scale_biased(fma(r * r, polynomial(r, table.EXP["f32"]), r) + 1.0, bits)


def exp2(x: Float) -> Float:
    """2**x, 2 ulp, exact for integers: 2**k * 2**r, |r| <= 1/2, a polynomial of degree 11 (float32: 6)."""
    lowest = (-127.0, -1023.0) if x.block.relaxed else (-151.0, -1076.0)
    x = _limits(x, (lowest[0], 128.0), (lowest[1], 1024.0))
    bits, k = round_scaled(x)
    r = x - k
    return _scale_once(fma(r, polynomial(r, table.EXP2[x.format.name]), 1.0), bits)


def _expm1_reduced(r: Float, c: Float) -> Float:
    """exp(r + c) - 1 for |r| <= ln(2)/2, relative error below 1 ulp."""
    tail = fma(r, polynomial(r, table.EXPM1[r.format.name]), 0.5)
    return r + fma(r * r, tail, c)


def expm1(x: Float) -> Float:
    """e**x - 1, 2 ulp: 2 * (2**(k-1) * q + (2**(k-1) - 1/2)) with q = e**r - 1, a polynomial of degree 11 (float32: 6);
    fdlibm's way.
    """
    inside = _limits(x, (-20.0, 89.0), (-40.0, 710.0))
    bits, r, c = reduce_exp(inside)
    half = power_of_two(bits - 1)
    result = 2.0 * fma(_expm1_reduced(r, c), half, half - 0.5)
    return keep_tiny(x, result)


def keep_tiny(x: Float, result: Float) -> Float:
    """x itself where it is so small that f(x) rounds to x; keeps subnormals and the sign of zero."""
    if x.block.relaxed:
        return result
    return (x.magnitude() < 2.0 ** -(x.format.precision + 4)).select(x, result)


def tanh(x: Float) -> Float:
    """tanh, 2 ulp: x + x**3 * P(x**2) for |x| < 0.55, P of degree 10 (float32: 4), else 1 - 2 / (e**(2|x|) + 1)."""
    size = x.magnitude().at_most(10.0 if x.format.is_single else 20.0)
    z = x * x
    small = fma(x * z, polynomial(z, table.TANH[x.format.name]), x)
    if x.format.is_single:
        large = 1.0 - 2.0 / _exp_of_double_and_one(size)
        return (x.magnitude() < 0.55).select(small, large).with_sign(x)
    bits, r, c = reduce_exp(size + size)
    large = 1.0 - 2.0 / fma(exp_minus_one(r, c) + 1.0, power_of_two(bits), 1.0)
    return (x.magnitude() < 0.55).select(small, large).with_sign(x)


def _exp_of_double_and_one(size: Float) -> Float:
    """e**(2 * size) + 1 for 0 <= size <= 10 in float32, relative error 2**-23; the more it is, the less tanh needs."""
    bits, k = round_scaled(size, 2.0 / math.log(2.0), F32.bias)
    r = fma(k, -0.5 * math.log(2.0), size)
    doubled = (coefficient * 2.0 ** (power + 2) for power, coefficient in enumerate(table.EXP["f32"]))
    return fma(polynomial(r, (1.0, 2.0, *doubled)), (bits << F32.precision).real(), 1.0)


def sigmoid(x: Float) -> Float:
    """1 / (1 + e**-x), 2 ulp: with y = e**-|x|, which does not overflow, 1 / (1+y) for x >= 0 and y / (1+y) below.

    The quotient takes y - 1 from the polynomial and what the sum lost, so that neither is rounded twice. Relaxed it is
    the formula itself, as 1 / inf is 0.
    """
    if x.block.relaxed:
        return 1.0 / (exp(-x) + 1.0)
    bits, r, c = reduce_exp(_limits(-x.magnitude(), (-104.0, 0.0), (-746.0, 0.0)))
    growth = exp_minus_one(r, c)
    y = scale_by(growth + 1.0, bits)
    divisor = y + 1.0
    divisor_error = y - (divisor - 1.0)
    inverse = 1.0 / divisor
    negative = x < 0.0
    result = fma(inverse, fma(-divisor_error, inverse, negative.select(growth, 0.0)), inverse)
    return negative.select(scale_by(result, bits), result)


# --- logarithms -----------------------------------------------------------------------------------------------------


def _log_of_one_plus(f: Float) -> tuple[Float, Float]:
    """f**2/2 and t with log(1+f) = f - (f**2/2 - t) for sqrt(1/2) <= 1+f <= sqrt(2).

    float64: fdlibm's t = s * (f**2/2 + R(s**2)), s = f/(2+f); float32: t = f**3 * P(f), which saves the division.
    """
    coefficients = table.LOG[f.format.name]
    square = f * f
    half = square * 0.5
    if f.format.is_single:
        return half, square * f * polynomial(f, coefficients)
    s = f / (f + 2.0)
    z = s * s
    return half, s * fma(z, polynomial(z, coefficients), half)


def _log_sum(k: Float, f: Float) -> Float:
    """k * ln(2) + log(1+f)."""
    high, low = table.LN2[f.format.name]
    if f.format.is_single:
        bent = f * f * fma(f, polynomial(f, table.LOG["f32"]), -0.5)
        return fma(k, high, f + fma(k, low, bent))
    half, rest = _log_of_one_plus(f)
    return fma(k, high, f - (half - fma(k, low, rest)))


def _log_special(x: Float, result: Float) -> Float:
    """`result` for finite x > 0; else -inf at zero, NaN below, and x itself at +inf and NaN."""
    outside = x.equals(0.0).select(-math.inf, (x < 0.0).select(math.nan, x))
    return ((x > 0.0) & (x < math.inf)).select(result, outside)


def log(x: Float) -> Float:
    """The natural logarithm, 1 ulp: k*ln(2) + log(m), sqrt(1/2) <= m < sqrt(2)."""
    k, m = _split_power(x)
    return _log_special(x, _log_sum(k, m - 1.0))


def log_pair(high: Float, low: Float | float, doubled: Float | float = 0.0) -> Float:
    """log((high + low) * 2**doubled) for normal high > 0 and |low| below half its ulp or, for high = 1, any size."""
    format = high.format
    moved = high.bits() + (format.one_bits - _anchor(high))
    k = _exponent(moved) - (2.0**format.precision + format.bias)
    mantissa = ((moved & ((1 << format.precision) - 1)) + _anchor(high)).real()
    # 2**-k times low; a high part above 2**precision needs no correction, and its 2**-k may underflow.
    exponents = ((1 << format.width - 1) - 1) ^ ((1 << format.precision) - 1)
    scale = ((2 * format.bias << format.precision) - (moved & exponents)).real()
    correction = (high < 2.0 ** (format.precision + 2)).select(scale * low, 0.0)
    return _log_sum(k + doubled, (mantissa - 1.0) + correction)


def log1p(x: Float) -> Float:
    """log(1 + x), 2 ulp: the exact error of 1 + x joins the reduced argument."""
    if x.format.is_single:
        return _log1p_single(x)
    result = log_pair(*add_exactly(x.block.real(1.0), x))
    outside = x.equals(-1.0).select(-math.inf, (x < -1.0).select(math.nan, x))
    return keep_tiny(x, ((x > -1.0) & (x < math.inf)).select(result, outside))


def _log1p_single(x: Float) -> Float:
    """`log1p` in float32: with 2**k near 1 + x, whose rounding does not matter, f = x * 2**-k + (2**-k - 1) is rounded
    once. 2**-k may be subnormal: it stands as four times what a quarter of x is multiplied by.
    """
    format, anchor = x.format, _anchor(x)
    moved = (x + 1.0).bits() + (format.one_bits - anchor)
    k = _exponent(moved) - (2.0**format.precision + format.bias)
    exponents = ((1 << format.width - 1) - 1) ^ ((1 << format.precision) - 1)
    scale = ((2 * format.bias + 2 << format.precision) - (moved & exponents)).real()
    f = fma(x * 0.25, scale, fma(scale, 0.25, -1.0))
    size = x.magnitude()
    result = ((size >= 2.0 ** -(format.precision + 4)) & (size < math.inf)).select(_log_sum(k, f), x)
    return (x > -1.0).select(result, x.equals(-1.0).select(-math.inf, math.nan))


def softplus(x: Float) -> Float:
    """log(1 + e**x), 2 ulp: max(x, 0) + log1p(e**-|x|), whose argument is between 0 and 1."""
    decay = exp(-x.magnitude())
    upper = decay > math.sqrt(2.0) - 1.0
    f = upper.select((decay - 1.0) * 0.5, decay)
    return (x > 0.0).select(x, 0.0) + _log_sum(upper.select(1.0, 0.0), f)


def _log_base(x: Float, inverse: tuple[float, ...], base: tuple[float, ...]) -> Float:
    """k * base + log(m) * inverse, both factors in two parts: the first products are added last."""
    k, m = _split_power(x)
    f = m - 1.0
    half, rest = _log_of_one_plus(f)
    tail = fma(f, inverse[1], (rest - half) * inverse[0])
    return _log_special(x, fma(k, base[0], fma(f, inverse[0], fma(k, base[1], tail))))


def log2(x: Float) -> Float:
    """The logarithm to base 2, 2 ulp, exact for powers of two: the natural one of the reduced argument by 1/ln(2)."""
    return _log_base(x, table.LOG2E[x.format.name], (1.0, 0.0))


def log10(x: Float) -> Float:
    """The logarithm to base 10, 2 ulp: the natural one of the reduced argument by 1/ln(10)."""
    return _log_base(x, table.LOG10E[x.format.name], table.LOG10_2[x.format.name])


# --- hyperbolic functions -------------------------------------------------------------------------------------------


def _exp_with_inverse(x: Float, sign: float) -> Float:
    """(e**|x| + sign * e**-|x|) / 2, without overflow before the result's."""
    size = _limits(x.magnitude(), (0.0, 90.0), (0.0, 712.0))
    bits, r, c = reduce_exp(size)
    growth = exp_minus_one(r, c)
    y = growth + 1.0
    y_error = growth - (y - 1.0)
    inverse = power_of_two(0 - bits)
    inverse = (size < 40.0).select(inverse * inverse, 0.0) / y
    return scale_by(y + fma(inverse, sign, y_error), bits - 1)


def sinh(x: Float) -> Float:
    """The hyperbolic sine, 2 ulp: odd polynomial of degree 15 (float32: 9) for |x| < 1, else (e**|x| - e**-|x|) / 2."""
    z = x * x
    small = fma(x * z, polynomial(z, table.SINH[x.format.name]), x)
    return (x.magnitude() < 1.0).select(small, _exp_with_inverse(x, -1.0)).with_sign(x)


def cosh(x: Float) -> Float:
    """The hyperbolic cosine, 2 ulp: (e**|x| + e**-|x|) / 2."""
    return _exp_with_inverse(x, 1.0)


def _huge_for_square(x: Float) -> Mask:
    """The bound from which x**2 + 1 rounds to x**2."""
    return x > 2.0 ** (x.format.precision // 2 + 3)


def asinh(x: Float) -> Float:
    """The inverse hyperbolic sine, 2 ulp: log1p(|x| + x**2 / (1 + sqrt(1 + x**2))), for huge |x| log(2|x|)."""
    size = x.magnitude()
    huge = _huge_for_square(size)
    square = size * size
    step = square / ((square + 1.0).root() + 1.0)
    total, total_error = add_lesser(size, step)
    high, low = add_exactly(x.block.real(1.0), total)
    result = log_pair(huge.select(size, high), huge.select(0.0, low + total_error), huge.select(1.0, 0.0))
    return keep_tiny(x, (size < math.inf).select(result, size)).with_sign(x)


def acosh(x: Float) -> Float:
    """The inverse hyperbolic cosine, 2 ulp: log1p(t + sqrt(t (x+1))) with t = x - 1, for huge x log(2x)."""
    huge = _huge_for_square(x)
    t = x - 1.0
    square, square_error = multiply_exactly(t, x + 1.0)
    root = square.root()
    root_error = (residual(square, root, root) + square_error) / (root + root)
    total, total_error = add_lesser(root, t)
    high, low = add_exactly(x.block.real(1.0), total)
    low = low + (total_error + (root > 0.0).select(root_error, 0.0))
    result = log_pair(huge.select(x, high), huge.select(0.0, low), huge.select(1.0, 0.0))
    return ((x >= 1.0) & (x < math.inf)).select(result, (x < 1.0).select(math.nan, x))


def atanh(x: Float) -> Float:
    """The inverse hyperbolic tangent, 2 ulp: log1p(2|x| / (1-|x|)) / 2, the quotient in two parts."""
    size = x.magnitude()
    double = size + size
    divisor, divisor_error = add_lesser(x.block.real(1.0), -size)
    inverse = 1.0 / divisor
    quotient = double * inverse
    rest = fma(-quotient, divisor_error, residual(double, quotient, divisor)) * inverse
    high, low = add_exactly(x.block.real(1.0), quotient)
    inside = log_pair(high, low + rest) * 0.5
    result = (size < 1.0).select(inside, size.equals(1.0).select(math.inf, math.nan))
    return keep_tiny(x, result).with_sign(x)


# --- roots and powers -----------------------------------------------------------------------------------------------


def _guess_inverse_cbrt(x: Float) -> Float:
    """x**(-1/3) to 3.5 %, for normal x > 0: a constant less a third of the encoding, which is nearly a logarithm."""
    format = x.format
    # The leading bits of the encoding, as the value of a number between 2**precision and its double.
    shift = format.width - format.precision
    whole = 2.0**format.precision
    lead = ((x.bits() >> shift) | ((format.bias + format.precision) << format.precision)).real()
    one = math.ldexp(format.one_bits, -shift)
    # The correction centres the error of the logarithm, which is linear between powers of two.
    exponent = math.ldexp(1.0, format.precision - shift)
    return (fma(lead, -1.0 / 3.0, whole * (4.0 / 3.0) + one * (4.0 / 3.0) - 0.068 * exponent).bits() << shift).real()


def cbrt(x: Float) -> Float:
    """The cube root, 2 ulp: from a guess at x**(-1/3) a step of higher order, and a last one with the residual of the
    root.
    """
    size, precision = x.magnitude(), x.format.precision
    # Thousandths of a normal number's residual would be subnormal.
    low = 3 * (precision + 10)
    small = size < 2.0 ** (low + 2 - x.format.bias)
    scaled = small.select(size * 2.0**low, size)
    guess = _guess_inverse_cbrt(scaled)
    error = fma(-(guess * guess), guess * scaled, 1.0)
    inverse = fma(guess * error, polynomial(error, table.CBRT[x.format.name]), guess)
    square = inverse * inverse
    root = scaled * square
    if x.block.has_fma:
        residual = fma(root * root, -root, scaled)
    else:  # of its half: the cube of the root of the largest number could round to infinity
        half = root * 0.5
        residual = fma(half * half, -half, scaled * 0.125) * 8.0
    root = fma(residual, square * (1.0 / 3.0), root)
    root = small.select(root * 2.0 ** (-low // 3), root)
    return ((size > 0.0) & (size < math.inf)).select(root.with_sign(x), x + x)


def hypot(x: Float, y: Float) -> Float:
    """sqrt(x**2 + y**2), 2 ulp, scaled by a power of two where a square would over- or underflow."""
    a, b = x.magnitude(), y.magnitude()
    larger = a > b
    larger_leg, less = larger.select(a, b), larger.select(b, a)
    limit, step = (2.0**60, 2.0**90) if x.format.is_single else (2.0**500, 2.0**600)
    high, low = larger_leg > limit, larger_leg < 1.0 / limit
    scale = high.select(1.0 / step, low.select(step, 1.0))
    larger_leg, less = larger_leg * scale, less * scale
    length = fma(larger_leg, larger_leg, less * less).root() * high.select(step, low.select(1.0 / step, 1.0))
    return (a.equals(math.inf) | b.equals(math.inf)).select(math.inf, length)


def _log_in_parts(x: Float) -> tuple[Float, Float]:
    """log(x) for float64 x > 0 in two parts, relative error 2**-65: 2s + 2/3 s**3 in pairs of doubles (Dekker 1971),
    the rest in one.
    """
    k, m = _split_power(x)
    f = m - 1.0
    divisor, divisor_error = add_lesser(x.block.real(2.0), f)
    inverse = 1.0 / divisor
    s = f * inverse
    s_error = fma(-s, divisor_error, residual(f, s, divisor)) * inverse
    z, z_error = multiply_exactly(s, s)
    z_error = fma(s + s, s_error, z_error)
    cube, cube_error = multiply_exactly(s, z)
    cube_error = cube_error + fma(s, z_error, s_error * z)
    p, p_error = multiply_exactly(cube, x.block.real(2.0 / 3.0))
    p_error = p_error + fma(cube, 3.700743415417188e-17, cube_error * (2.0 / 3.0))
    p_error = fma(cube, z * polynomial(z, table.LOG_TAIL["f64"]), p_error)
    high, high_error = add_lesser(s + s, p)
    low = high_error + (p_error + (s_error + s_error))
    lead, tiny = table.LN2["f64"]
    # k * lead is exact, and the greater where it is not zero.
    total, error = add_lesser(k * lead, high)
    return add_lesser(total, fma(k, tiny, error + low))


def _is_integer(size: Float) -> Mask:
    """True if |x| >= 0 is an integer; infinity is."""
    whole = 2.0**size.format.precision
    return (size >= whole) | nearest_whole(size).equals(size)


def pow(x: Float, y: Float) -> Float:
    """x**y, 1 ulp: exp(y * log|x|), the logarithm and the product in two parts; float32 as 2**(y * log2|x|) in
    float64.
    """
    base, exponent = x.magnitude(), y.magnitude()
    regular = (base > 0.0) & (base < math.inf)
    end = base.equals(0.0).select(-math.inf, base)
    size = (_pow_single if x.format.is_single else _pow_in_parts)(base, y, regular, end)
    size = (base.equals(1.0) & (exponent <= math.inf)).select(1.0, size)
    whole = _is_integer(exponent)
    odd = whole & _is_integer(exponent * 0.5).negate()
    negative = x.bits().bit(x.format.width - 1)
    signed = (negative & odd).select(-size, size)
    undefined = negative & regular & whole.negate()
    signed = undefined.select(math.nan, signed)
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, signed)


def _pow_in_parts(base: Float, y: Float, regular: Mask, end: Float) -> Float:
    high, low = _log_in_parts(base)
    product, error = multiply_exactly(y, regular.select(high, end))
    error = (product.magnitude() < 800.0).select(fma(y, low, error), 0.0)
    bits, r, c = reduce_exp(_limits(product, (-746.0, 710.0), (-746.0, 710.0)), error)
    return scale_by(exp_minus_one(r, c) + 1.0, bits)


def _pow_single(base: Float, y: Float, regular: Mask, end: Float) -> Float:
    """In float64 neither the argument nor the result is subnormal."""
    k, m = _split_normal(base.convert(F64))
    f = m - 1.0
    s = f / (f + 2.0)
    logarithm = fma(s, polynomial(s * s, table.POW_LOG2["f64"]), k)
    product = y.convert(F64) * regular.select(logarithm, end.convert(F64))
    product = product.at_most(160.0).at_least(-160.0)
    bits, n = round_scaled(product)
    r = product - n
    return (fma(r, polynomial(r, table.POW_EXP2["f64"]), 1.0) * power_of_two(bits)).convert(F32)
