"""The error function and the derivatives of the logarithm of the gamma function in a few straight operations.

In: values of `real`. Out: the same, computed to the bound that each function names. Contracts and sources: see
`vecmath`.
"""

from __future__ import annotations

import math

from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.exponential import exp_minus_one, log, log_pair, power_of_two, reduce_exp, scale_by
from graphc.codegen.vecmath.floats import (
    Float,
    Mask,
    Pair,
    add_exactly,
    add_lesser,
    add_pairs,
    divide_pairs,
    fma,
    horner_with_slope,
    in_double,
    look_up,
    multiply_exactly,
    multiply_pairs,
    nearest_whole,
    polynomial,
    repeat,
    scale_pair,
)
from graphc.codegen.vecmath.trigonometric import reduced_cosine, reduced_sine, sine_of_half_turns
from graphc.codegen.vecmath.variants import join_negative
from graphc.startup.record import record

# --- the error function ---------------------------------------------------------------------------------------------


def erf(x: Float) -> Float:
    """The error function, 2 ulp: an odd polynomial for |x| < 1 (degree 23, float32: 13), else 1 - exp(P(|x|)), P =
    log(erfc) of degree 18 (float32: 7).
    """
    size = x.magnitude().at_most(4.2 if x.format.is_single else 6.0)
    z = x * x
    small = fma(x, polynomial(z, table.ERF[x.format.name]), x)
    bits, r, c = reduce_exp(polynomial(size, table.LOG_ERFC[x.format.name]))
    large = fma(exp_minus_one(r, c) + 1.0, -power_of_two(bits), 1.0)
    return (x.magnitude() < 1.0).select(small, large.with_sign(x))


def erfc(x: Float) -> Float:
    """1 - erf(x), 2 ulp: e**(-x**2) * erfcx(|x|)."""
    size = x.magnitude().at_most(_scaled_limit(x))
    square, square_error = multiply_exactly(size, size)
    bits, r, c = reduce_exp(-square, -square_error)
    growth = exp_minus_one(r, c)
    v, rest = _scaled_erfc(size)
    result = scale_by(v + fma(v, growth, fma(rest, growth, rest)), bits)
    return (x < 0.0).select(2.0 - result, result)


def erfcx(x: Float) -> Float:
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


def _scaled_limit(x: Float) -> float:
    """The bound of the polynomial of `_scaled_erfc`, beyond which erfc is 0."""
    return 10.5 if x.format.is_single else 28.0


def _scaled_erfc(size: Float) -> tuple[Float, Float]:
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


def _digamma_positive(x: Float) -> Float:
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


def _cotangent_of_half_turns(d: Float) -> Float:
    """1/tan(pi*d) for |d| <= 1/2."""
    size = d.magnitude()
    near = size <= 0.25
    angle = near.select(size, 0.5 - size) * math.pi
    sine, cosine = reduced_sine(angle), reduced_cosine(angle)
    return (near.select(cosine, sine) / near.select(sine, cosine)).with_sign(d)


def digamma(x: Float) -> Float:
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


def trigamma(x: Float) -> Float:
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


# --- log gamma --------------------------------------------------------------------------------------------------------
# The logarithm of the gamma function: straight operations, and a function of its own for negative arguments.
#
# In: values of `real`. Out: the same, computed to the bound that `gammaln` names. Contracts and sources: see
# `vecmath`.
#
# For negative arguments log|gamma| has two zeros in each interval between poles from -2 down, the closer to the poles
# the further down. There the reflection formula is the difference of two large logarithms. So down to -22 the value is
# found by the zero beside the same pole. With s = -x, a pole n, e = s - n, m = |e|, and h = 1 where e < 0, else 0:
#
#     |gamma(-s)| = gamma(2-h-e) / F(s),  F(s) = m (1-m) P(s),  P(s) = (1+h+e) (2+h+e) ... (n+e)
#
# From the zero to s the logarithm of gamma(2-h-e) changes by s - zero times the divided difference of a polynomial,
# and F by a factor 1 + w or its inverse, where w >= 0 comes from divided differences too. Nothing cancels.


WHOLE = 2.0**52
LAST_POLE = len(table.GAMMALN_ZERO["f64"]) // 2 - 1
"""The last one that has zeros in the table."""


@record(eq=False)
class Relation:
    """An argument s and the zero near it: whether there is one; the quotient of F at the two, of which the lesser
    is the divisor, in two parts; whether that is F at the zero; the difference of log(gamma(2-h-e)).
    """

    exists: Mask
    quotient: Pair
    is_less: Mask
    change: Float


def gammaln(x: Float) -> Float:
    """log|gamma(x)|, 4 ulp; float32 through float64."""
    if x.format.is_single:
        return in_double(gammaln, x)
    return join_negative(x, _positive(x.magnitude()), "gammaln", _negative)


def _positive(x: Float) -> Float:
    """log(gamma(x)) for x >= 0: Stirling's series from 8 on; (x-1) (x-2) P(x) between 1 and 3, where others are moved
    by the recurrence.
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


def _negative(x: Float, positive: Float) -> Float:
    """log|gamma(x)| for x < 0, of which `positive` is log(gamma(|x|)): by a zero, elsewhere as
    log(pi / |x sin(pi x)|) - log(gamma(|x|)). Infinite at the poles, -inf at -inf.
    """
    size = x.magnitude()
    fraction = (size - nearest_whole(size)).magnitude()
    sine = (size < WHOLE).select(sine_of_half_turns(fraction), 0.0)
    half_pi = table.PIO2_FMA["f64"]
    pi = x.block.real(2.0 * half_pi[0]), x.block.real(2.0 * half_pi[1])
    high, low = divide_pairs(pi, multiply_exactly(size, sine))
    relation = _relate_to_zero(size)
    known, quotient = relation.exists, relation.quotient
    logarithm = log_pair(known.select(quotient[0], high), known.select(quotient[1], low))
    by_zero = relation.is_less.select(-logarithm, logarithm) + relation.change
    reflected = (size > 2.0**-70).select(logarithm - positive, positive)
    at_pole = size.equals(math.inf).select(x, math.inf)  # SciPy's at -inf
    return sine.equals(0.0).select(at_pole, known.select(by_zero, reflected))


def _relate_to_zero(s: Float) -> Relation:
    # From 2.5 to 2.67 the zero at 2.457 serves better than the one at 2.748. The largest n says how long a product is
    # made: beyond the table it is 0.
    n = (s < LAST_POLE + 0.5).select(nearest_whole(s - 0.17), 0.0)
    e = s - n
    place, rest = _look_up_zero(n, e)
    lead = s - place
    step = lead - rest
    step_error = (lead - step) - rest
    root = (place - n) + rest
    mirrored, further = e < 0.0, e.magnitude() > root.magnitude()
    near, far = further.select(root, e), further.select(e, root)
    gap = step.magnitude(), (step < 0.0).select(-step_error, step_error)
    w, w_error = _relative_difference(n, near, far, gap, mirrored)
    high, low = add_exactly(s.block.real(1.0), w)
    # log(gamma(u + 2)) is u (u+1) times the polynomial.
    shift = mirrored.select(-1.0, 0.0)
    u, v = shift - e, shift - root
    value, slope = horner_with_slope(u, v, table.GAMMALN["f64"])
    change = -step * fma(v * (v + 1.0), slope, (u + (v + 1.0)) * value)
    return Relation(place > 0.0, (high, low + w_error), further, change)


def _look_up_zero(n: Float, e: Float) -> Pair:
    """The zero on the side of the pole n where s is; 0 where there is none in the table."""
    index = (((n + WHOLE).bits() & 31) << 1) + (e.bits() >> 63)
    high, low = table.GAMMALN_ZERO["f64"], table.GAMMALN_ZERO_REST["f64"]
    return look_up(index, "gc_gammaln_zero", high), look_up(index, "gc_gammaln_zero_rest", low)


def _relative_difference(n: Float, near: Float, far: Float, gap: Pair, mirrored: Mask) -> Pair:
    """F(far) / F(near) - 1, the arguments given as their e; `gap` is the difference of their m."""
    one, zero = near.block.real(1.0), near.block.real(0.0)
    p, q = mirrored.select(1.0, near + 1.0), mirrored.select(zero, one)

    def multiply(k: Float, product: tuple[Float, ...]) -> tuple[Float, ...]:
        p, q = product
        return p * (near + k), fma(q, far + k, p)

    p, q = repeat(2, n, (p, q), multiply)
    q = mirrored.select(-q, q)
    # P(near) is p, the divided difference of P is q, that of m (1-m) is 1 - m - m'.
    far_p = add_pairs((p, zero), multiply_exactly(gap[0], q))
    room = scale_pair(add_lesser(one, -near.magnitude()), near.magnitude())
    bend = add_pairs(add_lesser(one, -far.magnitude()), (-near.magnitude(), zero))
    slope = add_pairs(multiply_pairs(bend, far_p), scale_pair(room, q))
    return divide_pairs(multiply_pairs(gap, slope), scale_pair(room, p))
