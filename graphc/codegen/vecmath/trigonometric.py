"""Sine, cosine, tangent and their inverses in a few straight operations.

In: values of `real`. Out: the same, computed to the bound that each function names. Contracts and sources: see
`vecmath`; angles too large for a few operations: see `huge`.
"""

from __future__ import annotations

import math

from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.exponential import keep_tiny, round_scaled
from graphc.codegen.vecmath.floats import Bits, Format, Mask, Real, add_exactly, fma, horner, in_double, polynomial
from graphc.codegen.vecmath.payne_hanek import Finish, argument_bound, join_huge

# --- circular functions ---------------------------------------------------------------------------------------------


def _subtract_quarters(x: Real, j: Real) -> Real:
    """x - j*pi/2, correctly rounded but for 0.01 ulp where |x| is below the bound of `join_huge` (Cody and Waite).

    x itself for j = 0, -0 too, as all parts of pi/2 are positive and j is +0.
    """
    if x.block.has_fma:
        first, second, third = table.PIO2_FMA[x.format.name]
        begun = fma(j, -first, x)  # exact: a multiple of the last place of `first`, below 1
        return fma(j, -third, fma(j, -second, begun))
    parts = table.PIO2_SHORT[x.format.name]
    r, error = add_exactly(x - j * parts[0], j * -parts[1])
    r, rest = add_exactly(r, j * -parts[2])
    return keep_tiny(x, r + (error + rest - j * parts[3]))


def reduced_sine(r: Real) -> Real:
    """sin(r) for |r| <= pi/4: odd polynomial of degree 13 (float32: 7)."""
    z = r * r
    sine = fma(r * z, polynomial(z, table.SIN[r.format.name]), r)
    if r.block.relaxed:
        return sine
    sign = r.bits() & (1 << (r.format.width - 1))
    return (sine.bits() | sign).real()  # of -0 the sum is 0


def reduced_cosine(r: Real) -> Real:
    """cos(r) for |r| <= pi/4: even polynomial of degree 14 (float32: 8)."""
    z = r * r
    return fma(z, fma(z, polynomial(z, table.COS[r.format.name]), -0.5), 1.0)


def sine_of_half_turns(d: Real) -> Real:
    """sin(pi*d) for 0 <= d <= 1/2."""
    upper = d > 0.25
    return upper.select(reduced_cosine((0.5 - d) * math.pi), reduced_sine(d * math.pi))


def _reduce_quarter(x: Real) -> tuple[Bits, Real]:
    """k, in the low bits, and r with x = k*pi/2 + r, |r| <= pi/4."""
    bits, k = round_scaled(x, 2.0 / math.pi)
    return bits, _subtract_quarters(x, k)


def _turned_sine(r: Real, quarters: Bits) -> Real:
    """sin(r + quarters*pi/2)."""
    value = quarters.bit(0).select(reduced_cosine(r), reduced_sine(r))
    return (value.bits() ^ ((quarters >> 1) << (r.format.width - 1))).real()


def _turned_cosine(r: Real, quarters: Bits) -> Real:
    """cos(r + quarters*pi/2)."""
    return _turned_sine(r, quarters + 1)


def _circular(x: Real, **finishes: Finish) -> list[Real]:
    """The results of these functions for a reduced argument; the names tell them apart."""
    quarters, r = _reduce_quarter(x)
    results = [(name, finish, finish(r, quarters)) for name, finish in finishes.items()]
    if x.block.relaxed:
        small = x.magnitude() < argument_bound(x.format, x.block.has_fma)
        return [small.select(result, math.nan) for *_, result in results]
    return join_huge(x, results)


def sin(x: Real) -> Real:
    """The sine, 2 ulp: +-sin(r) or +-cos(r), r = x - k*pi/2; for huge |x| see `huge`."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(sin, x)
    return _circular(x, sin=_turned_sine)[0]


def cos(x: Real) -> Real:
    """The cosine, 2 ulp: the sine a quarter turn on."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(cos, x)
    return _circular(x, cos=_turned_cosine)[0]


def sincos(x: Real) -> tuple[Real, ...]:
    """The sine and the cosine, which share all but their last operations."""
    if x.format.is_single and not x.block.has_fma:
        return sin(x), cos(x)
    return tuple(_circular(x, sin=_turned_sine, cos=_turned_cosine))


def _tangent(r: Real, quarters: Bits) -> Real:
    """tan(r + quarters*pi/2)."""
    sine, cosine, odd = reduced_sine(r), reduced_cosine(r), quarters.bit(0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def tan(x: Real) -> Real:
    """The tangent, 3 ulp: sin(r) / cos(r) or -cos(r) / sin(r); for huge |x| see `huge`."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(tan, x)
    return _circular(x, tan=_tangent)[0]


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
    """True if |x| > 0.545, and asin(|x|), or there asin(sqrt((1-|x|)/2)) = pi/4 - asin(|x|)/2: odd polynomial of degree
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
