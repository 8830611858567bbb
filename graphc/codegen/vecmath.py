"""Elementary functions in LLVM IR that a loop can be vectorised around.

In: a module, a function's name, a floating-point type and whether the CPU has fused multiply-add. Out: a small internal
function `gc_<name>_<f32|f64>` in that module, straight-line code to be inlined into the loop that calls it.

Every function is branch-free: both sides of a case are computed and one is selected. Special values are those of C99,
Annex F. The error bounds named below are in units in the last place (ulp) of the result, over the whole domain,
measured against 60 digits; `tests` assert them. Without fused multiply-add they are at most 1 ulp wider. No instruction
may carry a fast-math flag: with `reassoc` LLVM folds the constants that these formulas add and subtract for the sake of
rounding.

Sources of the methods: Cody and Waite, Software Manual for the Elementary Functions (1980); Tang, Table-driven
implementation of the exponential and logarithm functions (ACM TOMS 15, 1989; 16, 1990; 18, 1992), here with polynomials
instead of tables; Sun's fdlibm (1993); Muller, Elementary Functions (3rd ed., 2016). The coefficients are our own, see
`coefficients`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature

from llvmlite import ir

from graphc.codegen import coefficients as table
from graphc.codegen.huge import Finish, join_huge
from graphc.codegen.real import (
    F32,
    F64,
    Bits,
    Block,
    Format,
    Mask,
    Real,
    add_exactly,
    find_format,
    fma,
    horner,
    multiply_exactly,
    polynomial,
)

Kernel = Callable[..., Real]


def define(module: ir.Module, name: str, type: ir.Type, has_fma: bool = True) -> ir.Function:
    """The function `gc_<name>_<f32|f64>` of `module`, added at the first request: internal, always inlined, without
    side effects.

    `name` is a key of VECTOR_MATH, `type` float or double. With `has_fma` false the code multiplies and adds in two
    steps. Raises KeyError for an unknown name and TypeError for another type.
    """
    kernel, format = VECTOR_MATH[name], find_format(type)
    symbol = f"gc_{name}_{format.name}"
    if symbol in module.globals:
        return module.globals[symbol]
    arity = len(signature(kernel).parameters)
    function = ir.Function(module, ir.FunctionType(type, [type] * arity), symbol)
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    block = Block(builder, format, has_fma)
    builder.ret(kernel(*(Real(block, argument) for argument in function.args)).value)
    return function


# --- powers of two --------------------------------------------------------------------------------------------------


def _round(x: Real, factor: float = 1.0) -> tuple[Bits, Real]:
    """The integer next to x * factor: in the low bits of the first result (the rest is junk), and as a value."""
    shifted = fma(x, factor, x.format.rounder)
    return shifted.bits(), shifted - x.format.rounder


def _power_of_two(low: Bits) -> Real:
    """2**k for an integer from `_round` in the range of normal exponents."""
    format = low.block.format
    return ((low + format.bias) << format.precision).real()


def _scale(x: Real, low: Bits) -> Real:
    """x * 2**k with one rounding, in two steps, so that subnormal and infinite results come out right."""
    format = x.format
    exponent = low + (2 * format.bias - format.rounder_bits)
    half = exponent >> 1
    return x * (half << format.precision).real() * ((exponent - half) << format.precision).real()


def _split_power(x: Real) -> tuple[Real, Real]:
    """k and m with x = 2**k * m and sqrt(1/2) <= m < sqrt(2), for x > 0; subnormals are scaled first."""
    format = x.format
    anchor = _anchor(x)
    subnormal = x < format.smallest_normal
    scaled = subnormal.select(x * 2.0 ** (format.precision + 2), x)
    shift = subnormal.select(
        2.0**format.precision + format.bias + format.precision + 2, 2.0**format.precision + format.bias
    )
    moved = scaled.bits() + (format.one_bits - anchor)
    mantissa = ((moved & ((1 << format.precision) - 1)) + anchor).real()
    return _exponent(moved) - shift, mantissa


def _anchor(x: Real) -> int:
    """The encoding of a number just below sqrt(1/2), where a binade of `_split_power` begins."""
    return 0x3F3504F3 if x.format is F32 else 0x3FE6A09E667F3BCC


def _exponent(moved: Bits) -> Real:
    """The exponent field of an encoding as a value, 2**precision too large: AVX2 converts no 64-bit integers."""
    format = moved.block.format
    return ((moved >> format.precision) | ((format.bias + format.precision) << format.precision)).real()


# --- exponentials ---------------------------------------------------------------------------------------------------


def _limits(x: Real, f32: tuple[float, float], f64: tuple[float, float]) -> Real:
    low, high = f32 if x.format is F32 else f64
    return x.at_most(high).at_least(low)


def _reduce_exp(x: Real, rest: Real | float = 0.0) -> tuple[Bits, Real, Real]:
    """k (as of `_round`), r and c with x + rest = k*ln(2) + r + c, |r| <= ln(2)/2: Cody and Waite; c is the rounding
    error of r.
    """
    high, low = table.LN2[x.format.name]
    bits, k = _round(x, 1.0 / math.log(2.0))
    reduced = fma(k, -high, x)
    tail = fma(k, low, -rest)
    r = reduced - tail
    return bits, r, (reduced - r) - tail


def _exp_minus_one(r: Real, c: Real) -> Real:
    """exp(r + c) - 1 for |r| <= ln(2)/2, absolute error 2**-54 (float32: 2**-25)."""
    return r + fma(r * r, polynomial(r, table.EXP[r.format.name]), c)


def exp(x: Real) -> Real:
    """e**x, 1 ulp: 2**k * e**r, |r| <= ln(2)/2, e**r a polynomial of degree 11 (float32: 6)."""
    x = _limits(x, (-104.0, 89.0), (-746.0, 710.0))
    bits, r, c = _reduce_exp(x)
    return _scale(_exp_minus_one(r, c) + 1.0, bits)


def exp2(x: Real) -> Real:
    """2**x, 2 ulp, exact for integers: 2**k * 2**r, |r| <= 1/2, a polynomial of degree 11 (float32: 6)."""
    x = _limits(x, (-151.0, 128.0), (-1076.0, 1024.0))
    bits, k = _round(x)
    r = x - k
    return _scale(fma(r, polynomial(r, table.EXP2[x.format.name]), 1.0), bits)


def _expm1_reduced(r: Real, c: Real) -> Real:
    """exp(r + c) - 1 for |r| <= ln(2)/2, relative error below 1 ulp."""
    tail = fma(r, polynomial(r, table.EXPM1[r.format.name]), 0.5)
    return r + fma(r * r, tail, c)


def expm1(x: Real) -> Real:
    """e**x - 1, 2 ulp: 2 * (2**(k-1) * q + (2**(k-1) - 1/2)) with q = e**r - 1, a polynomial of degree 11 (float32: 6);
    fdlibm's way.
    """
    inside = _limits(x, (-20.0, 89.0), (-40.0, 710.0))
    bits, r, c = _reduce_exp(inside)
    half = _power_of_two(bits - 1)
    result = 2.0 * fma(_expm1_reduced(r, c), half, half - 0.5)
    return _keep_tiny(x, result)


def _keep_tiny(x: Real, result: Real) -> Real:
    """x itself where it is so small that f(x) rounds to x; keeps subnormals and the sign of zero."""
    return (x.magnitude() < 2.0 ** -(x.format.precision + 4)).select(x, result)


def tanh(x: Real) -> Real:
    """tanh, 2 ulp: x + x**3 * P(x**2) for |x| < 0.55, P of degree 10 (float32: 4), else 1 - 2 / (e**(2|x|) + 1)."""
    size = x.magnitude().at_most(10.0 if x.format is F32 else 20.0)
    z = x * x
    small = fma(x * z, polynomial(z, table.TANH[x.format.name]), x)
    bits, r, c = _reduce_exp(size + size)
    large = 1.0 - 2.0 / fma(_exp_minus_one(r, c) + 1.0, _power_of_two(bits), 1.0)
    return (x.magnitude() < 0.55).select(small, large).with_sign(x)


def sigmoid(x: Real) -> Real:
    """1 / (1 + e**-x), 2 ulp: with y = e**-|x|, which does not overflow, 1 / (1+y) for x >= 0 and y / (1+y) below.

    The quotient takes y - 1 from the polynomial and what the sum lost, so that neither is rounded twice.
    """
    bits, r, c = _reduce_exp(_limits(-x.magnitude(), (-104.0, 0.0), (-746.0, 0.0)))
    growth = _exp_minus_one(r, c)
    y = _scale(growth + 1.0, bits)
    divisor = y + 1.0
    divisor_error = y - (divisor - 1.0)
    inverse = 1.0 / divisor
    negative = x < 0.0
    result = fma(inverse, fma(-divisor_error, inverse, negative.select(growth, 0.0)), inverse)
    return negative.select(_scale(result, bits), result)


# --- logarithms -----------------------------------------------------------------------------------------------------


def _log_of_one_plus(f: Real) -> tuple[Real, Real]:
    """f**2/2 and t with log(1+f) = f - (f**2/2 - t) for sqrt(1/2) <= 1+f <= sqrt(2).

    float64: fdlibm's t = s * (f**2/2 + R(s**2)), s = f/(2+f); float32: t = f**3 * P(f), which saves the division.
    """
    coefficients = table.LOG[f.format.name]
    square = f * f
    half = square * 0.5
    if f.format is F32:
        return half, square * f * polynomial(f, coefficients)
    s = f / (f + 2.0)
    z = s * s
    return half, s * fma(z, polynomial(z, coefficients), half)


def _log_sum(k: Real, f: Real) -> Real:
    """k * ln(2) + log(1+f)."""
    high, low = table.LN2[f.format.name]
    half, rest = _log_of_one_plus(f)
    return fma(k, high, f - (half - fma(k, low, rest)))


def _log_special(x: Real, result: Real) -> Real:
    """`result` for finite x > 0; else -inf at zero, NaN below, and x itself at +inf and NaN."""
    outside = x.equals(0.0).select(-math.inf, (x < 0.0).select(math.nan, x))
    return ((x > 0.0) & (x < math.inf)).select(result, outside)


def log(x: Real) -> Real:
    """The natural logarithm, 1 ulp: k*ln(2) + log(m), sqrt(1/2) <= m < sqrt(2)."""
    k, m = _split_power(x)
    return _log_special(x, _log_sum(k, m - 1.0))


def _log_pair(high: Real, low: Real | float, doubled: Real | float = 0.0) -> Real:
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


def log1p(x: Real) -> Real:
    """log(1 + x), 2 ulp: the exact error of 1 + x joins the reduced argument."""
    result = _log_pair(*add_exactly(x.block.real(1.0), x))
    outside = x.equals(-1.0).select(-math.inf, (x < -1.0).select(math.nan, x))
    return _keep_tiny(x, ((x > -1.0) & (x < math.inf)).select(result, outside))


def softplus(x: Real) -> Real:
    """log(1 + e**x), 2 ulp: max(x, 0) + log1p(e**-|x|), whose argument is between 0 and 1."""
    decay = exp(-x.magnitude())
    upper = decay > math.sqrt(2.0) - 1.0
    f = upper.select((decay - 1.0) * 0.5, decay)
    return (x > 0.0).select(x, 0.0) + _log_sum(upper.select(1.0, 0.0), f)


def _log_base(x: Real, inverse: tuple[float, ...], base: tuple[float, ...]) -> Real:
    """k * base + log(m) * inverse, both factors in two parts: the first products are added last."""
    k, m = _split_power(x)
    f = m - 1.0
    half, rest = _log_of_one_plus(f)
    tail = fma(f, inverse[1], (rest - half) * inverse[0])
    return _log_special(x, fma(k, base[0], fma(f, inverse[0], fma(k, base[1], tail))))


def log2(x: Real) -> Real:
    """The logarithm to base 2, 2 ulp, exact for powers of two: the natural one of the reduced argument by 1/ln(2)."""
    return _log_base(x, table.LOG2E[x.format.name], (1.0, 0.0))


def log10(x: Real) -> Real:
    """The logarithm to base 10, 2 ulp: the natural one of the reduced argument by 1/ln(10)."""
    return _log_base(x, table.LOG10E[x.format.name], table.LOG10_2[x.format.name])


# --- circular functions ---------------------------------------------------------------------------------------------


def _subtract_quarters(x: Real, j: Real) -> Real:
    """x - j*pi/2, correctly rounded but for 0.01 ulp where |x| is below the bound of `join_huge` (Cody and Waite)."""
    if x.block.has_fma:
        first, second, third = table.PIO2_FMA[x.format.name]
        product, product_error = multiply_exactly(j, x.block.real(-second))
        r, error = add_exactly(fma(j, -first, x), product)
        return r + fma(j, -third, error + product_error)
    parts = table.PIO2_SHORT[x.format.name]
    r, error = add_exactly(x - j * parts[0], j * -parts[1])
    r, rest = add_exactly(r, j * -parts[2])
    return r + (error + rest - j * parts[3])


def _sine(r: Real) -> Real:
    """sin(r) for |r| <= pi/4: odd polynomial of degree 13 (float32: 7)."""
    z = r * r
    return fma(r * z, polynomial(z, table.SIN[r.format.name]), r)


def _cosine(r: Real) -> Real:
    """cos(r) for |r| <= pi/4: even polynomial of degree 14 (float32: 8), its first two terms rounded once more (Sun's
    kernel).
    """
    z = r * r
    half = z * 0.5
    lead = 1.0 - half
    return lead + fma(z * z, polynomial(z, table.COS[r.format.name]), (1.0 - lead) - half)


def _reduce_quarter(x: Real) -> tuple[Bits, Real]:
    """k, in the low bits, and r with x = k*pi/2 + r, |r| <= pi/4."""
    bits, k = _round(x, 2.0 / math.pi)
    return bits, _subtract_quarters(x, k)


def _turned_sine(r: Real, quarters: Bits) -> Real:
    """sin(r + quarters*pi/2)."""
    value = quarters.bit(0).select(_cosine(r), _sine(r))
    return (value.bits() ^ ((quarters >> 1) << (r.format.width - 1))).real()


def _in_double(kernel: Kernel, x: Real) -> Real:
    return kernel(x.convert(F64)).convert(x.format)


def _circular(x: Real, name: str, finish: Finish) -> Real:
    quarters, r = _reduce_quarter(x)
    return join_huge(x, finish(r, quarters), name, finish)


def sin(x: Real) -> Real:
    """The sine, 2 ulp: +-sin(r) or +-cos(r), r = x - k*pi/2; for huge |x| see `huge`."""
    if x.format is F32 and not x.block.has_fma:
        return _in_double(sin, x)
    return _keep_tiny(x, _circular(x, "sin", _turned_sine))


def cos(x: Real) -> Real:
    """The cosine, 2 ulp: the sine a quarter turn on."""
    if x.format is F32 and not x.block.has_fma:
        return _in_double(cos, x)
    return _circular(x, "cos", lambda r, quarters: _turned_sine(r, quarters + 1))


def _tangent(r: Real, quarters: Bits) -> Real:
    """tan(r + quarters*pi/2)."""
    sine, cosine, odd = _sine(r), _cosine(r), quarters.bit(0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def tan(x: Real) -> Real:
    """The tangent, 3 ulp: sin(r) / cos(r) or -cos(r) / sin(r); for huge |x| see `huge`."""
    if x.format is F32 and not x.block.has_fma:
        return _in_double(tan, x)
    return _keep_tiny(x, _circular(x, "tan", _tangent))


# --- the error function ---------------------------------------------------------------------------------------------


def erf(x: Real) -> Real:
    """The error function, 2 ulp: an odd polynomial for |x| < 1 (degree 23, float32: 13), else 1 - exp(P(|x|)), P =
    log(erfc) of degree 18 (float32: 7).
    """
    size = x.magnitude().at_most(4.2 if x.format is F32 else 6.0)
    z = x * x
    small = fma(x, polynomial(z, table.ERF[x.format.name]), x)
    bits, r, c = _reduce_exp(polynomial(size, table.LOG_ERFC[x.format.name]))
    large = fma(_exp_minus_one(r, c) + 1.0, -_power_of_two(bits), 1.0)
    return (x.magnitude() < 1.0).select(small, large.with_sign(x))


def erfc(x: Real) -> Real:
    """1 - erf(x), 2 ulp: e**(-x**2) * P(t) / (1 + 2|x|), t = (|x|-4)/(|x|+4), after Shepherd and Laframboise (Math.
    Comp. 36, 1981).

    What each step loses by rounding is gathered in the last term of the sum.
    """
    size = x.magnitude().at_most(10.5 if x.format is F32 else 28.0)
    square, square_error = multiply_exactly(size, size)
    bits, r, c = _reduce_exp(-square, -square_error)
    growth = _exp_minus_one(r, c)
    divisor, divisor_error = add_exactly(x.block.real(1.0), size + size)
    shifted = size + 4.0
    # One division serves for both quotients.
    inverse = 1.0 / (divisor * shifted)
    u = inverse * shifted
    unit, unit_error = multiply_exactly(u, divisor)
    lost = (1.0 - unit) - fma(divisor_error, u, unit_error)
    ratio = (size + size) * (inverse * divisor)
    t = ratio - 1.0
    first, first_error, *others = table.ERFCX[x.format.name]
    slope = polynomial(t, tuple(others))
    p = fma(slope, t, first)
    # Near t = -1 P is steep, about 7 * (t + 1/2)**2, and feels the rounding of t.
    bend = (t + 0.5).at_most(0.0)
    p_error = fma(bend * bend * 7.0, ratio - (t + 1.0), fma(slope, t, first - p) + first_error)
    v, v_error = multiply_exactly(p, u)
    rest = fma(v, lost, fma(p_error, u, v_error))
    result = _scale(v + fma(v, growth, fma(rest, growth, rest)), bits)
    return (x < 0.0).select(2.0 - result, result)


# --- inverse circular functions -------------------------------------------------------------------------------------


def _below(turn: float, x: Real, format: Format) -> Real:
    """turn * pi/2 - x, the constant in two parts."""
    high, low, _ = table.PIO2_FMA[format.name]
    return turn * high - (x - turn * low)


def _atan_of_quotient(t: Real) -> Real:
    """atan(t) for 0 <= t <= 1: odd polynomial of degree 41 (float32: 19)."""
    z = t * t
    return fma(t * z, horner(z, table.ATAN[t.format.name]), t)


def atan(x: Real) -> Real:
    """The inverse tangent, 2 ulp: for |x| > 1 as pi/2 - atan(1/|x|)."""
    size = x.magnitude()
    steep = size > 1.0
    angle = _atan_of_quotient(steep.select(1.0 / size, size))
    return steep.select(_below(1.0, angle, x.format), angle).with_sign(x)


def atan2(y: Real, x: Real) -> Real:
    """The angle of the point (x, y), 2 ulp: atan of the lesser size over the greater, then by octants."""
    rise, run = y.magnitude(), x.magnitude()
    steep = rise > run
    less, more = steep.select(run, rise), steep.select(rise, run)
    t = less.equals(more).select(more.equals(0.0).select(0.0, 1.0), less / more)
    angle = _atan_of_quotient(t)
    angle = steep.select(_below(1.0, angle, x.format), angle)
    left = x.bits().bit(x.format.width - 1)
    return left.select(_below(2.0, angle, x.format), angle).with_sign(y)


def _asin_parts(x: Real) -> tuple[Mask, Real]:
    """Whether |x| > 0.545, and asin(|x|), or there asin(sqrt((1-|x|)/2)) = pi/4 - asin(|x|)/2: odd polynomial of degree
    29 (float32: 13).
    """
    size = x.magnitude()
    near_one = size > 0.545
    z = near_one.select(fma(size, -0.5, 0.5), x * x)
    s = near_one.select(z.root(), size)
    return near_one, fma(s * z, polynomial(z, table.ASIN[x.format.name]), s)


def asin(x: Real) -> Real:
    """The inverse sine, 2 ulp: for |x| > 0.545 as pi/2 - 2 asin(sqrt((1-|x|)/2)), fdlibm's way."""
    near_one, angle = _asin_parts(x)
    return near_one.select(_below(1.0, angle + angle, x.format), angle).with_sign(x)


def acos(x: Real) -> Real:
    """The inverse cosine, 2 ulp: 2 asin(sqrt((1-x)/2)) for x > 0.545, pi less that for x < -0.545, else pi/2 - asin."""
    near_one, angle = _asin_parts(x)
    double = angle + angle
    outer = (x < 0.0).select(_below(2.0, double, x.format), double)
    return near_one.select(outer, _below(1.0, angle.with_sign(x), x.format))


# --- hyperbolic functions -------------------------------------------------------------------------------------------


def _exp_with_inverse(x: Real, sign: float) -> Real:
    """(e**|x| + sign * e**-|x|) / 2, without overflow before the result's."""
    size = _limits(x.magnitude(), (0.0, 90.0), (0.0, 712.0))
    bits, r, c = _reduce_exp(size)
    growth = _exp_minus_one(r, c)
    y = growth + 1.0
    y_error = growth - (y - 1.0)
    inverse = _power_of_two(0 - bits)
    inverse = (size < 40.0).select(inverse * inverse, 0.0) / y
    return _scale(y + fma(inverse, sign, y_error), bits - 1)


def sinh(x: Real) -> Real:
    """The hyperbolic sine, 2 ulp: odd polynomial of degree 15 (float32: 9) for |x| < 1, else (e**|x| - e**-|x|) / 2."""
    z = x * x
    small = fma(x * z, polynomial(z, table.SINH[x.format.name]), x)
    return (x.magnitude() < 1.0).select(small, _exp_with_inverse(x, -1.0)).with_sign(x)


def cosh(x: Real) -> Real:
    """The hyperbolic cosine, 2 ulp: (e**|x| + e**-|x|) / 2."""
    return _exp_with_inverse(x, 1.0)


def _huge_for_square(x: Real) -> Mask:
    """Where x**2 + 1 rounds to x**2."""
    return x > 2.0 ** (x.format.precision // 2 + 3)


def asinh(x: Real) -> Real:
    """The inverse hyperbolic sine, 2 ulp: log1p(|x| + x**2 / (1 + sqrt(1 + x**2))), for huge |x| log(2|x|)."""
    size = x.magnitude()
    huge = _huge_for_square(size)
    square = size * size
    step = square / ((square + 1.0).root() + 1.0)
    total, total_error = add_exactly(size, step)
    high, low = add_exactly(x.block.real(1.0), total)
    result = _log_pair(huge.select(size, high), huge.select(0.0, low + total_error), huge.select(1.0, 0.0))
    return _keep_tiny(x, (size < math.inf).select(result, size)).with_sign(x)


def acosh(x: Real) -> Real:
    """The inverse hyperbolic cosine, 2 ulp: log1p(t + sqrt(t (x+1))) with t = x - 1, for huge x log(2x)."""
    huge = _huge_for_square(x)
    t = x - 1.0
    square, square_error = multiply_exactly(t, x + 1.0)
    root = square.root()
    used, used_error = multiply_exactly(root, root)
    root_error = ((square - used) - used_error + square_error) / (root + root)
    total, total_error = add_exactly(root, t)
    high, low = add_exactly(x.block.real(1.0), total)
    low = low + (total_error + (root > 0.0).select(root_error, 0.0))
    result = _log_pair(huge.select(x, high), huge.select(0.0, low), huge.select(1.0, 0.0))
    return ((x >= 1.0) & (x < math.inf)).select(result, (x < 1.0).select(math.nan, x))


def atanh(x: Real) -> Real:
    """The inverse hyperbolic tangent, 2 ulp: log1p(2|x| / (1-|x|)) / 2, the quotient in two parts."""
    size = x.magnitude()
    double = size + size
    divisor, divisor_error = add_exactly(x.block.real(1.0), -size)
    inverse = 1.0 / divisor
    quotient = double * inverse
    used, used_error = multiply_exactly(quotient, divisor)
    rest = ((double - used) - used_error - quotient * divisor_error) * inverse
    high, low = add_exactly(x.block.real(1.0), quotient)
    inside = _log_pair(high, low + rest) * 0.5
    result = (size < 1.0).select(inside, size.equals(1.0).select(math.inf, math.nan))
    return _keep_tiny(x, result).with_sign(x)


# --- roots and powers -----------------------------------------------------------------------------------------------


def _guess_inverse_cbrt(x: Real) -> Real:
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


def cbrt(x: Real) -> Real:
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
    residual = fma(root * root, -root, scaled)
    root = fma(residual, square * (1.0 / 3.0), root)
    root = small.select(root * 2.0 ** (-low // 3), root)
    return ((size > 0.0) & (size < math.inf)).select(root.with_sign(x), x + x)


def hypot(x: Real, y: Real) -> Real:
    """sqrt(x**2 + y**2), 2 ulp, scaled by a power of two where a square would over- or underflow."""
    a, b = x.magnitude(), y.magnitude()
    larger = a > b
    more, less = larger.select(a, b), larger.select(b, a)
    limit, step = (2.0**60, 2.0**90) if x.format is F32 else (2.0**500, 2.0**600)
    high, low = more > limit, more < 1.0 / limit
    scale = high.select(1.0 / step, low.select(step, 1.0))
    more, less = more * scale, less * scale
    length = fma(more, more, less * less).root() * high.select(step, low.select(1.0 / step, 1.0))
    return (a.equals(math.inf) | b.equals(math.inf)).select(math.inf, length)


def _log_in_parts(x: Real) -> tuple[Real, Real]:
    """log(x) for float64 x > 0 in two parts, relative error 2**-65: 2s + 2/3 s**3 in pairs of doubles (Dekker 1971),
    the rest in one.
    """
    k, m = _split_power(x)
    divisor, divisor_error = add_exactly(m, x.block.real(1.0))
    inverse = 1.0 / divisor
    s = (m - 1.0) * inverse
    used, used_error = multiply_exactly(s, divisor)
    s_error = (((m - 1.0) - used) - used_error - s * divisor_error) * inverse
    z, z_error = multiply_exactly(s, s)
    z_error = fma(s + s, s_error, z_error)
    tail = z * polynomial(z, table.LOG_TAIL["f64"])
    t = tail + 2.0 / 3.0
    t_error = (tail - (t - 2.0 / 3.0)) + 3.700743415417188e-17
    w, w_error = multiply_exactly(z, t)
    w_error = w_error + fma(z, t_error, z_error * t)
    p, p_error = multiply_exactly(s, w)
    p_error = p_error + fma(s, w_error, s_error * w)
    double = s + s
    high = double + p
    low = ((double - high) + p) + (p_error + s_error + s_error)
    lead, tiny = table.LN2["f64"]
    total, error = add_exactly(k * lead, high)
    low = fma(k, tiny, error + low)
    result = total + low
    return result, (total - result) + low


def _is_integer(size: Real) -> Mask:
    """Whether |x| >= 0 is an integer; infinity is."""
    whole = 2.0**size.format.precision
    return (size >= whole) | ((size + whole) - whole).equals(size)


def pow(x: Real, y: Real) -> Real:
    """x**y, 1 ulp: exp(y * log|x|), the logarithm and the product in two parts; float32 with one part, in float64."""
    if x.format is F32:
        return _pow(x.convert(F64), y.convert(F64), _log_in_one).convert(F32)
    return _pow(x, y, _log_in_parts)


def _log_in_one(x: Real) -> tuple[Real, Real]:
    k, m = _split_power(x)
    return _log_sum(k, m - 1.0), x.block.real(0.0)


def _pow(x: Real, y: Real, logarithm: Callable[[Real], tuple[Real, Real]]) -> Real:
    base, exponent = x.magnitude(), y.magnitude()
    high, low = logarithm(base)
    end = base.equals(0.0).select(-math.inf, base)
    regular = (base > 0.0) & (base < math.inf)
    high = regular.select(high, end)
    product, error = multiply_exactly(y, high)
    error = (product.magnitude() < 800.0).select(fma(y, low, error), 0.0)
    bits, r, c = _reduce_exp(_limits(product, (-746.0, 710.0), (-746.0, 710.0)), error)
    size = _scale(_exp_minus_one(r, c) + 1.0, bits)
    size = (base.equals(1.0) & (exponent <= math.inf)).select(1.0, size)
    whole = _is_integer(exponent)
    odd = whole & _is_integer(exponent * 0.5).negate()
    negative = x.bits().bit(63)
    signed = (negative & odd).select(-size, size)
    undefined = negative & regular & whole.negate()
    signed = undefined.select(math.nan, signed)
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, signed)


# --- the gamma function ---------------------------------------------------------------------------------------------


def _gammaln_positive(x: Real) -> Real:
    """log(gamma(x)) for x > 0: Stirling's series from 8 on; (x-1) (x-2) P(x) between 1 and 3, where others are moved by
    the recurrence.
    """
    below, above = x < 1.0, x >= 8.0
    y, factor = x, x.block.real(1.0)
    for _ in range(5):
        far = y >= 3.0
        y = far.select(y - 1.0, y)
        factor = far.select(factor * y, factor)
    u, v = below.select(x - 1.0, y - 2.0), below.select(x, y - 1.0)
    middle = u * v * polynomial(u, table.GAMMALN["f64"])
    logarithm = log((below | above).select(x, factor))
    inverse = 1.0 / x
    series = inverse * polynomial(inverse * inverse, table.STIRLING["f64"])
    large = fma(x - 0.5, logarithm - 1.0, series + (0.5 * math.log(2.0 * math.pi) - 0.5))
    return above.select(large, middle + below.select(-logarithm, logarithm))


def _sine_of_half_turns(d: Real) -> Real:
    """sin(pi*d) for 0 <= d <= 1/2."""
    upper = d > 0.25
    return upper.select(_cosine((0.5 - d) * math.pi), _sine(d * math.pi))


def gammaln(x: Real) -> Real:
    """log|gamma(x)|, 4 ulp for x > 0, for x < 0 4 ulp of the larger of 1 and |result|: there log(pi / |x sin(pi x)|) -
    log(gamma(|x|)); float32 through float64.
    """
    if x.format is F32:
        return _in_double(gammaln, x)
    size = x.magnitude()
    result = _gammaln_positive(size)
    whole = 2.0**52
    fraction = (size - ((size + whole) - whole)).magnitude()
    sine = (size < whole).select(_sine_of_half_turns(fraction), 0.0)
    reflected = log(math.pi / (size * sine)) - result
    result = ((x < 0.0) & (size > 2.0**-70)).select(reflected, result)
    pole = size.equals(0.0) | ((x < 0.0) & sine.equals(0.0))
    return (pole | size.equals(math.inf)).select(math.inf, result)


def _digamma_positive(x: Real) -> Real:
    """digamma(x) for x > 0: the asymptotic series from 8 on; (x - root) P(x) between 1 and 2, where others are moved by
    the recurrence, whose reciprocals make one quotient.
    """
    below, above = x < 1.0, x >= 8.0
    y, over, under = x, below.select(-1.0, 0.0), below.select(x, 1.0)
    for _ in range(6):
        far = y >= 2.0
        y = far.select(y - 1.0, y)
        over, under = far.select(fma(over, y, under), over), far.select(under * y, under)
    y = below.select(x + 1.0, y)
    root = table.DIGAMMA_ROOT["f64"]
    # The polynomial is near its zero where x + 1 is, and x + 1 is rounded.
    distance = below.select((x - (root[0] - 1.0)) - root[1], (y - root[0]) - root[1])
    inverse = 1.0 / above.select(x, under)
    middle = fma(distance, polynomial(y - 1.5, table.DIGAMMA["f64"]), over * inverse)
    square = inverse * inverse
    large = log(x) - fma(square, polynomial(square, table.DIGAMMA_TAIL["f64"]), inverse * 0.5)
    return above.select(large, middle)


def _cotangent_of_half_turns(d: Real) -> Real:
    """1/tan(pi*d) for |d| <= 1/2."""
    size = d.magnitude()
    near = size <= 0.25
    angle = near.select(size, 0.5 - size) * math.pi
    sine, cosine = _sine(angle), _cosine(angle)
    return (near.select(cosine, sine) / near.select(sine, cosine)).with_sign(d)


def digamma(x: Real) -> Real:
    """The derivative of log(gamma(x)), 4 ulp for x > 0, for x < 0 4 ulp of the largest of 1, |result| and pi/|tan(pi
    x)|: there digamma(1-x) - pi/tan(pi x); float32 through float64.
    """
    if x.format is F32:
        return _in_double(digamma, x)
    mirrored = x < 0.0
    result = _digamma_positive(mirrored.select(1.0 - x, x))
    size, whole = x.magnitude(), 2.0**52
    d = (size < whole).select(size - ((size + whole) - whole), 0.0)
    below = d.equals(0.0).select(math.nan, result + math.pi * _cotangent_of_half_turns(d))
    pole = (-x.block.real(math.inf)).with_sign(-x)
    return x.equals(0.0).select(pole, mirrored.select(below, result))


VECTOR_MATH: dict[str, Kernel] = {
    kernel.__name__: kernel
    for kernel in (
        *(exp, exp2, expm1, log, log2, log10, log1p, softplus, sigmoid),
        *(sin, cos, tan, asin, acos, atan, atan2),
        *(sinh, cosh, tanh, asinh, acosh, atanh),
        *(cbrt, hypot, pow, erf, erfc, gammaln, digamma),
    )
}
