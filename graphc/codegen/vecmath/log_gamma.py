"""The logarithm of the gamma function: straight operations, and a function of its own for negative arguments.

In: values of `real`. Out: the same, computed to the bound that `gammaln` names. Contracts and sources: see `vecmath`.

For negative arguments log|gamma| has two zeros in each interval between poles from -2 down, the closer to the poles the
further down. There the reflection formula is the difference of two large logarithms. So down to -22 the value is found
by the zero beside the same pole. With s = -x, a pole n, e = s - n, m = |e|, and h = 1 where e < 0, else 0:

    |gamma(-s)| = gamma(2-h-e) / F(s),  F(s) = m (1-m) P(s),  P(s) = (1+h+e) (2+h+e) ... (n+e)

From the zero to s the logarithm of gamma(2-h-e) changes by s - zero times the divided difference of a polynomial, and F
by a factor 1 + w or its inverse, where w >= 0 comes from divided differences too. Nothing cancels.
"""

from __future__ import annotations

import math

from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.double import Pair, add_pairs, divide_pairs, multiply_pairs, scale_pair
from graphc.codegen.vecmath.exponential import log, log_pair
from graphc.codegen.vecmath.floats import (
    Mask,
    Real,
    add_exactly,
    add_lesser,
    fma,
    horner_with_slope,
    in_double,
    look_up,
    multiply_exactly,
    nearest_whole,
    polynomial,
    repeat,
)
from graphc.codegen.vecmath.reflection import join_negative
from graphc.codegen.vecmath.trigonometric import sine_of_half_turns
from graphc.startup.record import record

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
    change: Real


def gammaln(x: Real) -> Real:
    """log|gamma(x)|, 4 ulp; float32 through float64."""
    if x.format.is_single:
        return in_double(gammaln, x)
    return join_negative(x, _positive(x.magnitude()), "gammaln", _negative)


def _positive(x: Real) -> Real:
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


def _negative(x: Real, positive: Real) -> Real:
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


def _relate_to_zero(s: Real) -> Relation:
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


def _look_up_zero(n: Real, e: Real) -> Pair:
    """The zero on the side of the pole n where s is; 0 where there is none in the table."""
    index = (((n + WHOLE).bits() & 31) << 1) + (e.bits() >> 63)
    high, low = table.GAMMALN_ZERO["f64"], table.GAMMALN_ZERO_REST["f64"]
    return look_up(index, "gc_gammaln_zero", high), look_up(index, "gc_gammaln_zero_rest", low)


def _relative_difference(n: Real, near: Real, far: Real, gap: Pair, mirrored: Mask) -> Pair:
    """F(far) / F(near) - 1, the arguments given as their e; `gap` is the difference of their m."""
    one, zero = near.block.real(1.0), near.block.real(0.0)
    p, q = mirrored.select(1.0, near + 1.0), mirrored.select(zero, one)

    def multiply(k: Real, product: tuple[Real, ...]) -> tuple[Real, ...]:
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
