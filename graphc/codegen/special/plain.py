"""Special functions in the generated language: what exported C functions have in the place of SciPy's.

In: numbers. Out: a number. plain_source.py makes source of these functions for the compiler of kernels. CPython runs
that source by `language.bind_source`, where a quotient by 0 is no error, and not this module.

    kve(v, x)             the integral of exp(-x (cosh(t) - 1)) cosh(v t) by the trapezoidal rule (DLMF 10.32.9)
    i0e(x), i1e(x)        by their series, and the asymptotic ones beyond 20 (DLMF 10.25.2, 10.40.1)
    gamma(x)              by steps of 1 up to 24, by Stirling's formula and reflection beyond (DLMF 5.5, 5.11.3)
    j0, j1, y0, y1        by recurrence and Neumann's series (Abramowitz and Stegun 9.1.88), beyond 25 by Hankel's
                          expansion (DLMF 10.17.3)
    jv, yv                by recurrence from low orders, where J + i Y is an integral by the trapezoidal rule (10.9.18)
                          or Hankel's expansion, J of high orders from higher ones (10.74.4)
    airy(x)               by Maclaurin's series, K of orders 1/3 and 2/3 (DLMF 9.6.2), the expansions for large x (9.7)
                          and between both by Taylor's series
    ellipk(m), ellipe(m)  by the arithmetic-geometric mean (DLMF 19.8.5, 19.8.6)
    exp1(x), expi(x)      by series (DLMF 6.6.1), a continued fraction (6.9.1) and an asymptotic series (6.12.2)

Incomplete functions and inverses are in plain_shares.py.
"""

from __future__ import annotations

from math import inf, nan

from numpy import (
    atan,
    ceil,
    copysign,
    cos,
    exp,
    expm1,
    fabs,
    float64,
    floor,
    hypot,
    int64,
    isinf,
    isnan,
    log,
    log1p,
    rint,
    sin,
    sinh,
    sqrt,
)

from graphc.codegen.special.plain_shares import Number, log_gamma_1p, stirling

# --- modified Bessel functions ----------------------------------------------------------------------------------------


def scaled_i(v: Number, x: Number) -> Number:
    """I(v, x) e**-x of an order of 0 or 1, and x that is not negative."""
    if x <= 20.0:
        term = 1.0 if v == 0.0 else 0.5 * x
        total = term
        for n in range(1, 200):
            term = term * (0.5 * x / float64(n)) * (0.5 * x / (float64(n) + v))
            total = total + term
            if term < 1e-17 * total:
                break
        return total * exp(-x)
    term = 1.0
    total = 1.0
    for n in range(1, 40):
        odd = float64(2 * n - 1)
        term = term * ((odd * odd - 4.0 * v * v) / (8.0 * float64(n) * x))
        total = total + term
        if fabs(term) < 1e-17 * total:
            break
    return total / sqrt(6.283185307179586 * x)


def i0e(x: Number) -> Number:
    return x if isnan(x) else scaled_i(float64(0.0), fabs(x))


def i1e(x: Number) -> Number:
    return x if isnan(x) else copysign(scaled_i(float64(1.0), fabs(x)), x)


def i0(x: Number) -> Number:
    return i0e(x) * exp(0.5 * fabs(x)) * exp(0.5 * fabs(x))


def i1(x: Number) -> Number:
    return i1e(x) * exp(0.5 * fabs(x)) * exp(0.5 * fabs(x))


def scaled_k(v: Number, x: Number, less: Number) -> Number:
    """K(v, x) e**(x - less). The step is a part of the width of the integrand's peak."""
    if x == 0.0:
        return inf
    if isnan(v) or isinf(v) or isnan(x) or x < 0.0:
        return nan
    step = 0.6 / sqrt(hypot(v, x))
    step = 0.18 if step > 0.18 else step
    total = 0.5 * exp(-less)
    for n in range(1, 100000):
        t = float64(n) * step
        half = sinh(0.5 * t)
        size = -2.0 * x * half * half - less
        term = 0.5 * (exp(size + v * t) + exp(size - v * t))
        total = total + term
        if isinf(total) or (term <= 1e-18 * total and 2.0 * x * half * sqrt(1.0 + half * half) >= fabs(v)):
            return total * step
    return nan


def kve(v: Number, x: Number) -> Number:
    return nan if isinf(x) else scaled_k(v, x, float64(0.0))


def kv(v: Number, x: Number) -> Number:
    if isinf(x):
        return 0.0 if x > 0.0 and fabs(v) < inf else nan
    return scaled_k(v, x, x)


def k0(x: Number) -> Number:
    return kv(float64(0.0), x)


def k0e(x: Number) -> Number:
    return 0.0 if x == inf else kve(float64(0.0), x)


def k1(x: Number) -> Number:
    return kv(float64(1.0), x)


def k1e(x: Number) -> Number:
    return 0.0 if x == inf else kve(float64(1.0), x)


# --- the gamma function -----------------------------------------------------------------------------------------------


def gamma_near(x: Number) -> Number:
    """gamma(x) from a number about 1, by steps of 1."""
    y = x
    above = 1.0
    below = 1.0
    while y > 1.5:
        y = y - 1.0
        above = above * y
    while y < 0.5:
        below = below * y
        y = y + 1.0
    return above * exp(log_gamma_1p(y - 1.0)) / below


def gamma_far(x: Number) -> Number:
    """gamma(x) by Stirling's formula."""
    half = pow(x, 0.5 * x - 0.25)
    return 2.5066282746310002 * (half * exp(-x)) * half * exp(stirling(x))


def gamma(x: Number) -> Number:
    if isnan(x) or (x < 0.0 and x == floor(x)):
        return nan
    if x == 0.0:
        return copysign(inf, x)
    if x > 172.0:
        return inf
    if x > 24.0:
        return gamma_far(x)
    if x >= -24.0:
        return gamma_near(x)
    whole = rint(x)
    sine = sin(3.141592653589793 * (x - whole))
    if whole == 2.0 * floor(0.5 * whole):
        sine = -sine
    return 0.0 * sine if x < -172.0 else 3.141592653589793 / (x * sine) / gamma_far(-x)


# --- Bessel functions -------------------------------------------------------------------------------------------------


def cylinder_near(x: Number, is_first: bool, is_second: bool) -> Number:
    """J or, where is_second, Y, of order 0 or, where is_first, 1: by recurrence from a high order, and Neumann's
    series of Y."""
    size = log(0.5 * x) + 0.5772156649015329
    if x < 1e-10:
        if is_second:
            return -0.6366197723675814 / x if is_first else 0.6366197723675814 * size
        return 0.5 * x if is_first else 1.0
    top = int64(0.5 * x) + 20
    odd = 0.0
    even = 1e-30
    norm = 0.0
    odds = 0.0
    evens = 0.0
    sign = 1.0 if top % 2 == 0 else -1.0
    for n in range(top):
        j = float64(top - n)
        norm = norm + 2.0 * even
        evens = evens + sign * even / j
        odds = odds + sign * odd * ((2.0 * j + 1.0) / (j * (j + 1.0)))
        odd = 4.0 * j / x * even - odd
        even = (4.0 * j - 2.0) / x * odd - even
        sign = -sign
        if fabs(even) > 1e200:
            odd = odd * 1e-200
            even = even * 1e-200
            norm = norm * 1e-200
            odds = odds * 1e-200
            evens = evens * 1e-200
    norm = norm + even
    if not is_second:
        return (odd if is_first else even) / norm
    if is_first:
        return 0.6366197723675814 * ((size - 1.0) * odd - odds - even / x) / norm
    return 0.6366197723675814 * (size * even - 2.0 * evens) / norm


def cylinder_far(x: Number, is_first: bool, is_second: bool) -> Number:
    """The same by Hankel's expansion."""
    square = 4.0 if is_first else 0.0
    term = 1.0
    p = 1.0
    q = 0.0
    for n in range(1, 60):
        odd = float64(2 * n - 1)
        term = term * ((square - odd * odd) / (8.0 * float64(n) * x))
        if n % 2 == 1:
            q = q + (term if n % 4 == 1 else -term)
        else:
            p = p + (term if n % 4 == 0 else -term)
        if fabs(term) < 1e-17:
            break
    s = sin(x)
    c = cos(x)
    cosine = s - c if is_first else c + s
    sine = -s - c if is_first else s - c
    value = p * sine + q * cosine if is_second else p * cosine - q * sine
    return value / sqrt(3.141592653589793 * x)


def cylinder(x: Number, is_first: bool, is_second: bool) -> Number:
    if isnan(x) or isinf(x):
        return nan
    return cylinder_near(x, is_first, is_second) if x <= 25.0 else cylinder_far(x, is_first, is_second)


def j0(x: Number) -> Number:
    return 1.0 if x == 0.0 else cylinder(fabs(x), False, False)


def j1(x: Number) -> Number:
    if x == 0.0:
        return x
    size = cylinder(fabs(x), True, False)
    return -size if x < 0.0 else size


def y0(x: Number) -> Number:
    if x <= 0.0:
        return -inf if x == 0.0 else nan
    return cylinder(x, False, True)


def y1(x: Number) -> Number:
    if x <= 0.0:
        return -inf if x == 0.0 else nan
    return cylinder(x, True, True)


# --- Bessel functions of real orders ----------------------------------------------------------------------------------


def sine_of_pi(v: Number) -> Number:
    """sin(pi v), which is 0 for whole numbers and 1 or -1 between two of them."""
    rest = v - 2.0 * rint(0.5 * v)
    if fabs(rest) > 0.5:
        rest = copysign(1.0, rest) - rest
    if fabs(rest) > 0.25:
        return copysign(cos(3.141592653589793 * (0.5 - fabs(rest))), rest)
    return sin(3.141592653589793 * rest)


def bessel_base(v: Number, x: Number, is_second: bool) -> Number:
    """J or, where is_second, Y of an order of about sqrt(2 x) or less, by Hankel's expansion. Below 25, of an order
    from -1/2 to 3/2, by the integral for J + i Y (DLMF 10.9.18) on the path of steepest descent, which has the height
    pi / 2 + atan(sinh(t)) above t, by the trapezoidal rule."""
    c = cos(x)
    s = sin(x)
    a = 0.0
    b = 0.0
    if x < 25.0:
        step = 0.36 / sqrt(x)
        step = 0.15 if step > 0.15 else step
        most = 0.0
        for n in range(20000):
            t = float64(n) * step
            rise = sinh(t)
            fall = 1.0 / sqrt(1.0 + rise * rise)
            size = exp(v * t - x * rise * rise * fall)
            other = exp(-v * t - x * rise * rise * fall) if n > 0 else 0.0
            low = v * (1.5707963267948966 - atan(rise))
            high = v * (1.5707963267948966 + atan(rise))
            a = a + size * (cos(low) + fall * sin(low)) + other * (cos(high) + fall * sin(high))
            b = b + size * (fall * cos(low) - sin(low)) + other * (fall * cos(high) - sin(high))
            most = size if size > most else most
            if size < 1e-18 * most and x * rise > fabs(v):
                break
        a = 0.3183098861837907 * step * a
        b = 0.3183098861837907 * step * b
        return b * s - a * c if is_second else b * c + a * s
    term = 1.0
    a = 1.0
    for n in range(1, 100):
        odd = float64(2 * n - 1)
        term = term * ((2.0 * v - odd) * (2.0 * v + odd) / (8.0 * float64(n) * x))
        if n % 2 == 1:
            b = b + (term if n % 4 == 1 else -term)
        else:
            a = a + (term if n % 4 == 0 else -term)
        if fabs(term) < 1e-17:
            break
    turn = 0.5 * v + 0.25
    turn = turn - 2.0 * rint(0.5 * turn)
    cosine = c * sine_of_pi(0.5 - turn) + s * sine_of_pi(turn)
    sine = s * sine_of_pi(0.5 - turn) - c * sine_of_pi(turn)
    value = a * sine + b * cosine if is_second else a * cosine - b * sine
    return 0.7978845608028654 * value / sqrt(x)


def bessel(v: Number, x: Number, is_second: bool) -> Number:
    """The same of any order that is not negative: by recurrence away from such a low order; J of an order above x by
    recurrence from a high one (DLMF 10.74.4), below 2 by its series (10.2.2)."""
    if x < 2.0 and not is_second:
        term = 1.0
        total = 1.0
        for n in range(1, 40):
            term = term * (-0.25 * x * x / (float64(n) * (v + float64(n))))
            total = total + term
        return 0.0 if v > 171.0 else total * pow(0.5 * x, v) / gamma(v + 1.0)
    if x == 0.0:
        return -inf
    rise = v - (0.5 if x < 25.0 else sqrt(2.0 * x))
    steps = int64(ceil(rise)) if rise > 0.0 else 0
    m = v - float64(steps)
    value = bessel_base(m, x, is_second)
    if steps == 0:
        return value
    following = bessel_base(m + 1.0, x, is_second)
    k = m
    if is_second or v <= x:
        for _ in range(steps):
            k = k + 1.0
            after = 2.0 * k / x * following - value
            value = following
            following = after
            if isinf(value):
                break
        return value
    top = int64(8.0 * exp(log(x) / 3.0)) + 25
    high = 0.0
    now = 1e-200
    here = 0.0
    for n in range(top + steps):
        here = now if n == top else here
        after = 2.0 * (v + float64(top - n)) / x * now - high
        high = now
        now = after
        if fabs(now) > 1e200:
            now = now * 1e-200
            high = high * 1e-200
            here = here * 1e-200
            if n > top and here == 0.0:
                return 0.0
    return here * (value / now if fabs(now) > fabs(high) else following / high)


def bessel_of_any(v: Number, x: Number, is_second: bool) -> Number:
    """The same of any order: of negative ones by reflection (DLMF 10.4.6)."""
    if isnan(v) or isnan(x) or isinf(x) or fabs(v) > 1e9:
        return nan
    if v >= 0.0:
        return bessel(v, x, is_second)
    sine = sine_of_pi(-v)
    cosine = sine_of_pi(0.5 + v - 2.0 * rint(0.5 * v))
    first = 0.0 if cosine == 0.0 else cosine * bessel(-v, x, is_second)
    other = 0.0 if sine == 0.0 else sine * bessel(-v, x, not is_second)
    return first + other if is_second else first - other


def jv(v: Number, x: Number) -> Number:
    if x < 0.0 and v != rint(v):
        return nan
    size = bessel_of_any(v, fabs(x), False)
    return -size if x < 0.0 and v != 2.0 * rint(0.5 * v) else size


def yv(v: Number, x: Number) -> Number:
    return nan if x < 0.0 else bessel_of_any(v, x, True)


# --- Airy functions ---------------------------------------------------------------------------------------------------


def airy_near(x: Number, is_second: bool, is_slope: bool) -> Number:
    """Ai, or Bi where is_second, or its derivative where is_slope, by Maclaurin's series."""
    cube = x * x * x
    even = 0.5 * x * x if is_slope else 1.0
    odd = 1.0 if is_slope else x
    evens = even
    odds = odd
    for n in range(1, 200):
        k = 3.0 * float64(n)
        even = even * cube / (k * (k + 2.0) if is_slope else k * (k - 1.0))
        odd = odd * cube / (k * (k - 2.0) if is_slope else k * (k + 1.0))
        evens = evens + even
        odds = odds + odd
        if fabs(even) < 1e-18 and fabs(odd) < 1e-18:
            break
    evens = 0.3550280538878172 * evens
    odds = 0.2588194037928068 * odds
    return 1.7320508075688772 * (evens + odds) if is_second else evens - odds


def airy_sum(size: Number, is_slope: bool, quarter: Number) -> Number:
    """The sum of the terms of the expansion for large sizes 2/3 |x|**(3/2): of all for quarter 2, else of the even or
    the odd ones with signs in turn."""
    term = 1.0
    total = 1.0 if quarter != 1.0 else 0.0
    sign = 1.0
    for n in range(1, 60):
        k = 6.0 * float64(n)
        following = term * ((k - 5.0) * (k - 3.0) * (k - 1.0) / ((k - 3.0) * 72.0 * float64(n) * size))
        if following > term:
            break
        term = following
        part = term * ((k + 1.0) / (1.0 - k)) if is_slope else term
        if n % 2 == 0:
            sign = -sign
        if quarter == 2.0:
            total = total + part
        elif float64(n % 2) == quarter:
            total = total + sign * part
        if term < 1e-18:
            break
    return total


def airy_wave(z: Number, is_second: bool, is_slope: bool) -> Number:
    """The same at -z by the expansion for large z (DLMF 9.7.9)."""
    size = 0.6666666666666666 * z * sqrt(z)
    even = airy_sum(size, is_slope, float64(0.0))
    odd = airy_sum(size, is_slope, float64(1.0))
    cosine = 0.7071067811865476 * (cos(size) + sin(size))
    sine = 0.7071067811865476 * (sin(size) - cos(size))
    root = sqrt(sqrt(z))
    if is_slope:
        wave = cosine * even + sine * odd if is_second else sine * even - cosine * odd
        return 0.5641895835477563 * wave * root
    wave = cosine * odd - sine * even if is_second else cosine * even + sine * odd
    return 0.5641895835477563 * wave / root


def airy_between(x: Number, is_second: bool, is_slope: bool) -> Number:
    """The same between -9.5 and -4, by Taylor's series of y'' = x y in steps of at most 1 from the first of both."""
    at = -9.5
    y = airy_wave(float64(9.5), is_second, False)
    slope = airy_wave(float64(9.5), is_second, True)
    while at < x:
        step = x - at if x - at < 1.0 else 1.0
        before = 0.0
        here = y
        after = slope
        power = step
        y = y + slope * step
        for n in range(40):
            k = float64(n)
            term = (at * here + before) / ((k + 1.0) * (k + 2.0))
            slope = slope + (k + 2.0) * term * power
            power = power * step
            y = y + term * power
            before = here
            here = after
            after = term
        at = at + step
    return slope if is_slope else y


def airy(x: Number, is_second: bool, is_slope: bool) -> Number:
    if isnan(x) or x == -inf:
        return nan
    size = 0.6666666666666666 * x * sqrt(fabs(x))
    if x > 1.0 and not is_second:
        if size > 750.0:
            return -0.0 if is_slope else 0.0
        if is_slope:
            return -0.18377629847393068 * x * scaled_k(float64(2.0 / 3.0), size, size)
        return 0.18377629847393068 * sqrt(x) * scaled_k(float64(1.0 / 3.0), size, size)
    if x > 10.0:
        if size > 750.0:
            return inf
        root = sqrt(sqrt(x))
        factor = 0.5641895835477563 * (root if is_slope else 1.0 / root)
        return exp(0.5 * size) * (factor * airy_sum(size, is_slope, float64(2.0))) * exp(0.5 * size)
    if x >= -4.0:
        return airy_near(x, is_second, is_slope)
    return airy_wave(-x, is_second, is_slope) if x <= -9.5 else airy_between(x, is_second, is_slope)


def airy_0(x: Number) -> Number:
    return airy(x, False, False)


def airy_1(x: Number) -> Number:
    return airy(x, False, True)


def airy_2(x: Number) -> Number:
    return airy(x, True, False)


def airy_3(x: Number) -> Number:
    return airy(x, True, True)


# --- elliptic and exponential integrals -------------------------------------------------------------------------------


def ellipkm1(p: Number) -> Number:
    if isnan(p) or p < 0.0:
        return nan
    if p == 0.0:
        return inf
    if isinf(p):
        return 0.0
    a = 1.0
    b = sqrt(p)
    for _ in range(40):
        mean = 0.5 * (a + b)
        b = sqrt(a) * sqrt(b)
        a = mean
        if fabs(a - b) <= 1e-15 * a:
            break
    return 3.141592653589793 / (a + b)


def ellipk(m: Number) -> Number:
    return ellipkm1(1.0 - m)


def ellipe_of_share(m: Number, p: Number) -> Number:
    """E(m), where p is 1 - m, of 0 <= m < 1."""
    a = 1.0
    b = sqrt(p)
    weight = 0.5
    total = 1.0 - 0.5 * m
    for _ in range(40):
        gap = 0.5 * (a - b)
        mean = 0.5 * (a + b)
        b = sqrt(a * b)
        a = mean
        weight = 2.0 * weight
        total = total - weight * gap * gap
        if fabs(gap) <= 1e-9 * a:
            break
    return 3.141592653589793 * total / (a + b)


def ellipe(m: Number) -> Number:
    if isnan(m) or m > 1.0:
        return nan
    if m == 1.0:
        return 1.0
    if isinf(m):
        return inf
    if m >= 0.0:
        return ellipe_of_share(m, 1.0 - m)
    return sqrt(1.0 - m) * ellipe_of_share(-m / (1.0 - m), 1.0 / (1.0 - m))


def exp1(x: Number) -> Number:
    if isnan(x) or x < 0.0:
        return nan
    if x == 0.0:
        return inf
    if x > 750.0:
        return 0.0
    if x <= 1.0:
        return -expi_series(-x)
    b = x + 1.0
    c = 1e300
    d = 1.0 / b
    total = d
    for n in range(1, 1000):
        square = -float64(n) * float64(n)
        b = b + 2.0
        d = 1.0 / (square * d + b)
        c = b + square / c
        total = total * (c * d)
        if fabs(c * d - 1.0) < 3e-16:
            break
    return total * exp(-x)


def expi_series(x: Number) -> Number:
    term = 1.0
    total = 0.0
    for n in range(1, 300):
        term = term * x / float64(n)
        total = total + term / float64(n)
        if fabs(term) < 1e-17 * fabs(total):
            break
    return 0.5772156649015329 + log(fabs(x)) + total


def expi(x: Number) -> Number:
    if isnan(x):
        return nan
    if x < 0.0:
        return -exp1(-x)
    if x == 0.0:
        return -inf
    if x <= 40.0:
        return expi_series(x)
    if x > 720.0:
        return inf
    term = 1.0
    total = 1.0
    for n in range(1, 60):
        term = term * float64(n) / x
        total = total + term
        if term < 1e-17:
            break
    return exp(0.5 * x) * (total / x) * exp(0.5 * x)


# --- elementary ones --------------------------------------------------------------------------------------------------


def exprel(x: Number) -> Number:
    if fabs(x) < 1e-16:
        return 1.0
    return inf if x >= 717.0 else expm1(x) / x


def cosm1(x: Number) -> Number:
    return -2.0 * sin(0.5 * x) * sin(0.5 * x)


def power_of_log(size: Number, lmbda: Number) -> Number:
    """(exp(lmbda size) - 1) / lmbda."""
    if fabs(lmbda) < 1e-19:
        return size
    if lmbda * size < 709.78:
        return expm1(lmbda * size) / lmbda
    return copysign(exp(lmbda * size - log(fabs(lmbda))), lmbda) - 1.0 / lmbda


def boxcox(x: Number, lmbda: Number) -> Number:
    return power_of_log(log(x), lmbda)


def boxcox1p(x: Number, lmbda: Number) -> Number:
    return power_of_log(log1p(x), lmbda)


def inv_boxcox(y: Number, lmbda: Number) -> Number:
    if lmbda == 0.0:
        return exp(y)
    return exp(log1p(lmbda * y) / lmbda)


def inv_boxcox1p(y: Number, lmbda: Number) -> Number:
    if lmbda == 0.0:
        return expm1(y)
    if fabs(lmbda * y) < 1e-154:
        return y
    return expm1(log1p(lmbda * y) / lmbda)


def pseudo_huber(delta: Number, r: Number) -> Number:
    if delta < 0.0:
        return inf
    if delta == 0.0 or r == 0.0:
        return 0.0
    square = (r / delta) * (r / delta)
    return square if isinf(square) else delta * delta * (square / (1.0 + sqrt(1.0 + square)))
