"""The error function and the derivatives of the logarithm of the gamma function in a few straight operations.

In: values of `real`. Out: the same, computed to the bound that each function names. Contracts and sources: see
`vecmath`.
"""

from __future__ import annotations

import math

from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.exponential import exp_minus_one, log, power_of_two, reduce_exp, scale_by
from graphc.codegen.vecmath.floats import Real, add_exactly, fma, in_double, multiply_exactly, nearest_whole, polynomial
from graphc.codegen.vecmath.trigonometric import reduced_cosine, reduced_sine, sine_of_half_turns

# --- the error function ---------------------------------------------------------------------------------------------


def erf(x: Real) -> Real:
    """The error function, 2 ulp: an odd polynomial for |x| < 1 (degree 23, float32: 13), else 1 - exp(P(|x|)), P =
    log(erfc) of degree 18 (float32: 7).
    """
    size = x.magnitude().at_most(4.2 if x.format.is_single else 6.0)
    z = x * x
    small = fma(x, polynomial(z, table.ERF[x.format.name]), x)
    bits, r, c = reduce_exp(polynomial(size, table.LOG_ERFC[x.format.name]))
    large = fma(exp_minus_one(r, c) + 1.0, -power_of_two(bits), 1.0)
    return (x.magnitude() < 1.0).select(small, large.with_sign(x))


def erfc(x: Real) -> Real:
    """1 - erf(x), 2 ulp: e**(-x**2) * erfcx(|x|)."""
    size = x.magnitude().at_most(_scaled_limit(x))
    square, square_error = multiply_exactly(size, size)
    bits, r, c = reduce_exp(-square, -square_error)
    growth = exp_minus_one(r, c)
    v, rest = _scaled_erfc(size)
    result = scale_by(v + fma(v, growth, fma(rest, growth, rest)), bits)
    return (x < 0.0).select(2.0 - result, result)


def erfcx(x: Real) -> Real:
    """e**(x**2) * erfc(x), 2 ulp: beyond the polynomial of `erfc` the asymptotic series (Abramowitz and Stegun 7.1.23)
    to degree 6 in 1/x**2 (float32: 4), whose next term is below 2**-57 (2**-29); for x < 0 2 e**(x**2) - erfcx(-x).

    Where that difference cancels, for a small |x|, the exponential's rounding error is counted too.
    """
    size, limit = x.magnitude(), _scaled_limit(x)
    near = size.at_most(limit)
    v, rest = _scaled_erfc(near)
    inverse = 1.0 / size
    first, first_error, *others = table.ERFCX_TAIL[x.format.name]
    z = inverse * inverse
    far = (fma(z, polynomial(z, tuple(others)), first_error) + first) / size
    positive = (size <= limit).select(v + rest, far)
    square, square_error = multiply_exactly(near, near)
    bits, r, c = reduce_exp(square, square_error)
    growth = exp_minus_one(r, c)
    power = growth + 1.0
    lost = (size < 1.0).select((growth - (power - 1.0)) * power_of_two(bits), 0.0)
    negative = (scale_by(power + power, bits) - v) + fma(lost, 2.0, -rest)
    return (x < 0.0).select(negative, positive)


def _scaled_limit(x: Real) -> float:
    """The bound of the polynomial of `_scaled_erfc`, beyond which erfc is 0."""
    return 10.5 if x.format.is_single else 28.0


def _scaled_erfc(size: Real) -> tuple[Real, Real]:
    """e**(x**2) erfc(x) for 0 <= x <= `_scaled_limit` in two parts: P(t) / (1 + 2x), t = (x-4)/(x+4), after Shepherd
    and Laframboise (Math. Comp. 36, 1981).

    What each step loses by rounding is gathered in the second part.
    """
    divisor, divisor_error = add_exactly(size.block.real(1.0), size + size)
    shifted = size + 4.0
    # One division serves for both quotients.
    inverse = 1.0 / (divisor * shifted)
    u = inverse * shifted
    unit, unit_error = multiply_exactly(u, divisor)
    lost = (1.0 - unit) - fma(divisor_error, u, unit_error)
    ratio = (size + size) * (inverse * divisor)
    t = ratio - 1.0
    first, first_error, *others = table.ERFCX[size.format.name]
    slope = polynomial(t, tuple(others))
    p = fma(slope, t, first)
    # Near t = -1 P is steep, about 7 * (t + 1/2)**2, and feels the rounding of t.
    bend = (t + 0.5).at_most(0.0)
    p_error = fma(bend * bend * 7.0, ratio - (t + 1.0), fma(slope, t, first - p) + first_error)
    v, v_error = multiply_exactly(p, u)
    return v, fma(v, lost, fma(p_error, u, v_error))


# --- the gamma function ---------------------------------------------------------------------------------------------


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
    sine, cosine = reduced_sine(angle), reduced_cosine(angle)
    return (near.select(cosine, sine) / near.select(sine, cosine)).with_sign(d)


def digamma(x: Real) -> Real:
    """The derivative of log(gamma(x)), 4 ulp for x > 0, for x < 0 4 ulp of the largest of 1, |result| and pi/|tan(pi
    x)|: there digamma(1-x) - pi/tan(pi x); float32 through float64.
    """
    if x.format.is_single:
        return in_double(digamma, x)
    mirrored = x < 0.0
    result = _digamma_positive(mirrored.select(1.0 - x, x))
    size = x.magnitude()
    d = (size < 2.0**52).select(size - nearest_whole(size), 0.0)
    below = d.equals(0.0).select(math.nan, result + math.pi * _cotangent_of_half_turns(d))
    pole = (-x.block.real(math.inf)).with_sign(-x)
    return x.equals(0.0).select(pole, mirrored.select(below, result))


def trigamma(x: Real) -> Real:
    """The derivative of digamma, 4 ulp: for x < 0 (pi / sin(pi x))**2 - trigamma(1-x); float32 through float64.

    Below 8 the recurrence trigamma(x) = 1/x**2 + trigamma(x+1), from there on the asymptotic series (Abramowitz and
    Stegun 6.4.6, 6.4.12 and 6.4.7).
    """
    if x.format.is_single:
        return in_double(trigamma, x)
    mirrored = x < 0.0
    z, total = mirrored.select(1.0 - x, x), x.block.real(0.0)
    for _ in range(8):
        low = z < 8.0
        inverse = 1.0 / z
        total = low.select(fma(inverse, inverse, total), total)
        z = low.select(z + 1.0, z)
    inverse = 1.0 / z
    square = inverse * inverse
    series = fma(inverse * square, polynomial(square, table.TRIGAMMA_TAIL["f64"]), fma(square, 0.5, inverse))
    positive = total + series
    size = x.magnitude()
    whole = nearest_whole(size)
    ratio = math.pi / sine_of_half_turns((size - whole).magnitude())
    reflected = fma(ratio, ratio, -positive)
    pole = x.equals(0.0) | (mirrored & whole.equals(size))
    return pole.select(math.inf, mirrored.select(reflected, positive))
