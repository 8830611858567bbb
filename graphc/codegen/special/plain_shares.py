"""Incomplete gamma and beta functions and the error function's, with their inverses, in the generated language: part of
what exported C functions have in the place of SciPy's.

In: numbers. Out: a number. `plain_source.py` tells how they are used.

    gammainc(k, x)        P = x**k e**-x / gamma(k + 1) * sum of x**n / ((k + 1) ... (k + n)), x <= k   (DLMF 8.7.1)
                          1 - P by a continued fraction beyond (8.9.2), by Temme's expansion for large k (8.12)
    betainc(a, b, x)      by a continued fraction (DLMF 8.17.22)
    erfinv(x)             by Halley's steps on erf, and Newton's on log(erfc)
    gammaincinv, betaincinv, stdtrit     by Newton's method on logarithms, where the functions are concave
    pdtrik, bdtrik, nbdtrik              by bisection

Densities are written by the deviance from the mean and Stirling's error (Loader, Fast and accurate computation of
binomial probabilities, 2000), so that nothing large cancels. Sums and fractions that need more than 2,000,000 terms,
for parameters above 1e10, are NaN.
"""

from __future__ import annotations

from math import erf, erfc, inf, nan
from typing import Any, TypeAlias

from numpy import copysign, exp, expm1, fabs, float64, floor, isinf, isnan, log, log1p, sqrt

from graphc.arrays.numerics import erfcx, gammaln

Number: TypeAlias = Any
"""A float64."""

# --- densities --------------------------------------------------------------------------------------------------------


def deviance(x: Number, mean: Number, gap: Number) -> Number:
    """x log(x / mean) + mean - x, where gap is x - mean."""
    if x == 0.0:
        return mean
    if fabs(gap) < 0.1 * (x + mean):
        ratio = gap / (x + mean)
        total = gap * ratio
        term = 2.0 * x * ratio
        for n in range(1, 100):
            term = term * ratio * ratio
            following = total + term / float64(2 * n + 1)
            if following == total:
                break
            total = following
        return total
    ratio = x / mean
    return x * (log(x) - log(mean) if isinf(ratio) else log(ratio)) - gap


def stirling(z: Number) -> Number:
    """log gamma(z + 1) less Stirling's (z + 1/2) log(z) - z + log(2 pi) / 2 (DLMF 5.11.1)."""
    if z < 16.0:
        return gammaln(z + 1.0) - (z + 0.5) * log(z) + z - 0.9189385332046727
    w = 1.0 / (z * z)
    tail = 1.0 / 1260.0 - w * (1.0 / 1680.0 - w * (1.0 / 1188.0 - w * (691.0 / 360360.0 - w / 156.0)))
    return (1.0 / 12.0 - w * (1.0 / 360.0 - w * tail)) / z


def log_poisson(k: Number, x: Number) -> Number:
    """The logarithm of x**k e**-x / gamma(k + 1)."""
    if k < 1.0:
        return k * log(x) - x - log_gamma_next(k)
    return -stirling(k) - deviance(k, x, k - x) - 0.5 * log(6.283185307179586 * k)


def log_binomial(a: Number, b: Number, x: Number, y: Number) -> Number:
    """The logarithm of x**a y**b / B(a, b), where y is 1 - x."""
    n = a + b
    gap = a * y - b * x  # a - n x
    spread = deviance(a, n * x, gap) + deviance(b, n * y, -gap)
    return 0.5 * log(a / n * b / 6.283185307179586) + stirling(n) - stirling(a) - stirling(b) - spread


# --- the incomplete gamma function ------------------------------------------------------------------------------------


def gamma_series(k: Number, x: Number) -> Number:
    """P by its series, without the density before it."""
    term = 1.0
    total = 1.0
    for n in range(1, 2000000):
        term = term * (x / (k + float64(n)))
        total = total + term
        if term < 1e-17 * total:
            return total
    return nan


def gamma_fraction(k: Number, x: Number) -> Number:
    """Q = 1 - P by its continued fraction, from the front (Lentz), without the density before it."""
    b = x + 1.0 - k
    c = 1e300
    d = 1.0 / b
    total = d
    for n in range(1, 2000000):
        i = float64(n)
        a = i * (k - i)
        b = b + 2.0
        d = a * d + b
        d = 1.0 / (1e-300 if d == 0.0 else d)
        c = b + a / c
        c = 1e-300 if c == 0.0 else c
        total = total * (c * d)
        if fabs(c * d - 1.0) < 3e-16:
            return k * total
    return nan


def log_gamma_1p(k: Number) -> Number:
    """log(gamma(1 + k)) for k below 1, as accurate as k is near 0 (DLMF 5.7.3)."""
    total = 2.273736960065972e-14
    total = total * k - 4.6640760264283744e-14
    total = total * k + 9.573630387838554e-14
    total = total * k - 1.9664756310966168e-13
    total = total * k + 4.04220052528944e-13
    total = total * k - 8.315385841420286e-13
    total = total * k + 1.711991790559618e-12
    total = total * k - 3.527742476575915e-12
    total = total * k + 7.275974480239079e-12
    total = total * k - 1.5021384080754142e-11
    total = total * k + 3.104424774732227e-11
    total = total * k - 6.422964563838101e-11
    total = total * k + 1.3304764374244491e-10
    total = total * k - 2.7595228851242334e-10
    total = total * k + 5.731367241678862e-10
    total = total * k - 1.1921401405860912e-09
    total = total * k + 2.4836745438024785e-09
    total = total * k - 5.183475041970047e-09
    total = total * k + 1.0838659214896955e-08
    total = total * k - 2.2711094608943164e-08
    total = total * k + 4.769810169363981e-08
    total = total * k - 1.00432248239681e-07
    total = total * k + 2.1207184805554667e-07
    total = total * k - 4.492469198764566e-07
    total = total * k + 9.55141213040742e-07
    total = total * k - 2.039215753801366e-06
    total = total * k + 4.374866789907487e-06
    total = total * k - 9.439488275268395e-06
    total = total * k + 2.0507212775670694e-05
    total = total * k - 4.492623673813314e-05
    total = total * k + 9.945751278180853e-05
    total = total * k - 0.00022315475845357936
    total = total * k + 0.0005096695247430425
    total = total * k - 0.001192753911703261
    total = total * k + 0.0028905103307415234
    total = total * k - 0.007385551028673986
    total = total * k + 0.020580808427784546
    total = total * k - 0.0673523010531981
    total = total * k + 0.3224670334241132
    return k * (0.42278433509846713 + k * total) - log1p(k)


def log_gamma_next(k: Number) -> Number:
    """log(gamma(1 + k)) for k that is not negative."""
    return log_gamma_1p(k) if k < 1.0 else gammaln(k + 1.0)


def gamma_upper_of_small(k: Number, x: Number) -> Number:
    """Q for k and x about 1 and below, where P may be nearly 1: 1 - x**k / gamma(k + 1), less the rest of a series."""
    term = 1.0
    total = 0.0
    for n in range(1, 200):
        term = term * (-x / float64(n))
        total = total + term / (k + float64(n))
        if fabs(term) < 1e-17:
            break
    size = k * log(x) - log_gamma_1p(k)
    return -expm1(size) - k * exp(size) * total


def gamma_temme(k: Number, x: Number, sign: Number) -> Number:
    """Q where sign is 1, P where it is -1, for k above 1e8."""
    spread = deviance(k, x, k - x)
    mu = (x - k) / k
    eta = copysign(sqrt(2.0 * spread / k), mu)
    small = -1.0 / 3.0 + eta * (1.0 / 12.0 - eta * (2.0 / 135.0 - eta / 864.0))
    rest = exp(-spread) / sqrt(6.283185307179586 * k) * (small if fabs(mu) < 1e-4 else 1.0 / mu - 1.0 / eta)
    return 0.5 * erfc(sign * copysign(sqrt(spread), mu)) + sign * rest


def log_incomplete_gamma(k: Number, x: Number, is_upper: bool) -> Number:
    """The logarithm of Q where is_upper, else of P, for positive numbers."""
    sign = 1.0 if is_upper else -1.0
    if k > 1e8:
        return log(gamma_temme(k, x, sign))
    if is_upper and x < 1.1 and (k < 0.75 * x if x > 0.5 else k < -0.4 / log(x)):
        return log(gamma_upper_of_small(k, x))
    is_lower = x < k + 1.0
    factor = gamma_series(k, x) if is_lower else gamma_fraction(k, x)
    size = log_poisson(k, x) + log(factor)
    return size if is_lower != is_upper else log1p(-exp(size))


def incomplete_gamma(k: Number, x: Number, is_upper: bool) -> Number:
    """Q where is_upper, else P."""
    sign = 1.0 if is_upper else -1.0
    if isnan(k) or isnan(x) or k < 0.0 or x < 0.0 or (k == 0.0 and x == 0.0) or (isinf(k) and isinf(x)):
        return nan
    if k == 0.0 or isinf(x):
        return 0.5 - 0.5 * sign
    if x == 0.0 or isinf(k):
        return 0.5 + 0.5 * sign
    return exp(log_incomplete_gamma(k, x, is_upper))


def gammainc(k: Number, x: Number) -> Number:
    return incomplete_gamma(k, x, False)


def gammaincc(k: Number, x: Number) -> Number:
    return incomplete_gamma(k, x, True)


def inverse_gamma(k: Number, share: Number, rest: Number, is_upper: bool) -> Number:
    """x where Q, where is_upper, or P is `share`, at most 1/2, and the other one `rest`: Newton's method for the
    logarithm of the share, over log(x) or, where it is nearly linear in x, over x. Both are concave for k >= 1."""
    lower = rest if is_upper else share
    least = exp((log(lower) + log_gamma_next(k)) / k)
    x = least
    if k >= 1.0:
        z = ndtri(share)
        cube = 1.0 - 1.0 / (9.0 * k) + (-z if is_upper else z) / (3.0 * sqrt(k))
        x = k * cube * cube * cube if cube > 0.1 else least
    elif least < 1e-17:
        return least
    elif is_upper:
        size = -log(share) - gammaln(k)
        x = size - (1.0 - k) * log(size) if size > 1.0 else least
    for _ in range(100):
        size = log_incomplete_gamma(k, x, is_upper)
        slope = exp(log_poisson(k, x) + log(k) - size)
        step = (log(share) - size) / (-slope if is_upper else slope)
        if is_upper and x > 1.0:
            after = x + x * step
            x = after if after > 0.3 * x else 0.3 * x
        else:
            x = x * exp(step)
        if fabs(step) <= 1e-9 / (1.0 + slope):
            break
    return x


def inverse_incomplete_gamma(k: Number, share: Number, is_upper: bool) -> Number:
    """x where Q, where is_upper, or P is `share`."""
    if isnan(k) or isnan(share) or k < 0.0 or share < 0.0 or share > 1.0:
        return nan
    if not (share > 0.0 and share < 1.0):
        return 0.0 if (share == 1.0) == is_upper else inf
    if k == 0.0 or isinf(k):
        return nan
    rest = 1.0 - share
    return inverse_gamma(k, share, rest, is_upper) if share <= 0.5 else inverse_gamma(k, rest, share, not is_upper)


def gammaincinv(k: Number, p: Number) -> Number:
    return inverse_incomplete_gamma(k, p, False)


def gammainccinv(k: Number, q: Number) -> Number:
    return inverse_incomplete_gamma(k, q, True)


# --- the incomplete beta function -------------------------------------------------------------------------------------


def log_a_beta(a: Number, b: Number) -> Number:
    """log(a B(a, b)), as accurate as a is near 0."""
    n = a + b
    if n < 1.0:
        return log_gamma_1p(a) + log1p(a / b) + log_gamma_1p(b) - log_gamma_1p(n)
    if b < 16.0:
        return log_gamma_next(a) + gammaln(b) - gammaln(n)
    return log_gamma_next(a) - (b - 0.5) * log1p(a / b) - a * (log(n) - 1.0) + stirling(b) - stirling(n)


def log_beta_of_positive(a: Number, b: Number) -> Number:
    low = a if a < b else b
    high = b if a < b else a
    if isinf(high):
        return nan if isinf(low) else -inf
    return log_a_beta(low, high) - log(low)


def betaln(a: Number, b: Number) -> Number:
    if a > 0.0 and b > 0.0:
        return log_beta_of_positive(a, b)
    if (a <= 0.0 and a == floor(a)) or (b <= 0.0 and b == floor(b)):
        low = a if a <= 0.0 and a == floor(a) else b
        other = b if a <= 0.0 and a == floor(a) else a
        is_finite = other == floor(other) and other > 0.0 and 1.0 - low - other > 0.0 and low > -inf
        return log_beta_of_positive(1.0 - low - other, other) if is_finite else inf
    if isnan(a) or isnan(b):
        return nan
    low = a if a < b else b
    high = b if a < b else a
    if isinf(high):
        return inf
    if low < -100.0 or high < 0.0:
        return gammaln(a) + gammaln(b) - gammaln(a + b)
    total = 0.0
    while low < 0.0:
        total = total + log(fabs((low + high) / low))
        low = low + 1.0
    return total + log_beta_of_positive(low, high)


def beta_fraction(a: Number, b: Number, x: Number, y: Number) -> Number:
    """The logarithm of I(a, b, x), where y is 1 - x, by a continued fraction from the front (Lentz), of which no term
    cancels up to the mean (Didonato and Morris, Algorithm 708, 1992, equation 9)."""
    gap = a * y - b * x + 1.0
    total = a * gap / (a + 1.0)
    c = total
    d = 0.0
    for n in range(1, 2000000):
        m = float64(n)
        width = a + 2.0 * m - 1.0
        top = (a + m - 1.0) / width * ((a + b + m - 1.0) / width) * (m * x * ((b - m) * x))
        below = m + m * (b - m) * x / width + (a + m) * (gap + m * (2.0 - x)) / (width + 2.0)
        d = 1.0 / (below + top * d)
        c = below + top / c
        total = total * (c * d)
        if fabs(c * d - 1.0) < 3e-16:
            return log_binomial(a, b, x, y) - log(total)
    return nan


def beta_series(a: Number, b: Number, x: Number) -> Number:
    """The logarithm of I(a, b, x) where it is nearly 0, for small a and for b x about 1 and below (DLMF 8.17.7)."""
    term = 1.0
    total = 0.0
    for n in range(1, 200):
        term = term * ((float64(n) - b) / float64(n) * x)
        total = total + term / (a + float64(n))
        if fabs(term) < 1e-17:
            break
    return a * log(x) - log_a_beta(a, b) + log1p(a * total)


def log_incomplete_beta(a: Number, b: Number, x: Number, y: Number) -> Number:
    """The logarithm of I(a, b, x), where y is 1 - x, for positive numbers."""
    if x * (a + b + 2.0) < a + 1.0:
        return beta_fraction(a, b, x, y)
    upper = beta_fraction(b, a, y, x)
    if upper > -0.1:
        upper = beta_series(b, a, y)
    return log(-expm1(upper))


def incomplete_beta(a: Number, b: Number, x: Number, y: Number) -> Number:
    """I(a, b, x), where y is 1 - x."""
    if isnan(a) or isnan(b) or isnan(x) or a < 0.0 or b < 0.0 or x < 0.0 or y < 0.0:
        return nan
    if (a == 0.0 and b == 0.0) or (isinf(a) and isinf(b)):
        return nan
    if a == 0.0 or isinf(b):
        return 1.0 if x > 0.0 else 0.0
    if b == 0.0 or isinf(a):
        return 1.0 if y == 0.0 else 0.0
    if x == 0.0 or y == 0.0:
        return 1.0 if y == 0.0 else 0.0
    return exp(log_incomplete_beta(a, b, x, y))


def betainc(a: Number, b: Number, x: Number) -> Number:
    return incomplete_beta(a, b, x, 1.0 - x)


def betaincc(a: Number, b: Number, x: Number) -> Number:
    return incomplete_beta(b, a, 1.0 - x, x)


def inverse_beta(a: Number, b: Number, share: Number) -> Number:
    """x / (1 - x) where I(a, b, x) is `share`, at most 1/2: Newton's method for its logarithm over that of the odds, of
    which it is a concave function, below share = odds**a / (a B(a, b))."""
    least = exp((log(share) + log_a_beta(a, b)) / a)
    if least * (b + 1.0) < 1e-17:
        return least
    odds = least
    if a > 1.0 and b > 1.0:  # Abramowitz and Stegun 26.5.22
        z = -ndtri(share)
        lean = 1.0 / (2.0 * b - 1.0) - 1.0 / (2.0 * a - 1.0)
        width = 2.0 / (1.0 / (2.0 * a - 1.0) + 1.0 / (2.0 * b - 1.0))
        part = (z * z - 3.0) / 6.0
        inner = width + part if width + part > 0.0 else 0.0
        w = z * sqrt(inner) / width
        odds = a / b * exp(-2.0 * (w - lean * (part + 0.8333333333333334 - 2.0 / (3.0 * width))))
        odds = odds if odds > least else least
    for _ in range(200):
        x = odds / (1.0 + odds)
        y = 1.0 / (1.0 + odds)
        size = log_incomplete_beta(a, b, x, y)
        slope = exp(log_binomial(a, b, x, y) - size)
        step = (log(share) - size) / slope
        after = odds * exp(step)
        odds = after if after > least else least
        if fabs(step) <= 1e-9 / (1.0 + slope):
            break
    return odds


def stdtr(df: Number, t: Number) -> Number:
    if isnan(df) or isnan(t) or df <= 0.0:
        return nan
    if isinf(df):
        return 0.5 * erfc(-0.7071067811865476 * t)
    ratio = fabs(t) / sqrt(df)
    if ratio > 1.0:
        w = (1.0 / ratio) * (1.0 / ratio)
        tail = 0.5 * incomplete_beta(0.5 * df, float64(0.5), w / (1.0 + w), 1.0 / (1.0 + w))
    else:
        w = ratio * ratio
        tail = 0.5 * incomplete_beta(0.5 * df, float64(0.5), 1.0 / (1.0 + w), w / (1.0 + w))
    return tail if t < 0.0 else 1.0 - tail


def betaincinv(a: Number, b: Number, p: Number) -> Number:
    if isnan(a) or isnan(b) or isnan(p) or a <= 0.0 or b <= 0.0 or p < 0.0 or p > 1.0:
        return nan
    if not (p > 0.0 and p < 1.0):
        return p
    if isinf(a) or isinf(b):
        return nan
    if p <= 0.5:
        odds = inverse_beta(a, b, p)
        return odds / (1.0 + odds)
    return 1.0 / (1.0 + inverse_beta(b, a, 1.0 - p))


def betainccinv(a: Number, b: Number, q: Number) -> Number:
    if isnan(a) or isnan(b) or isnan(q) or a <= 0.0 or b <= 0.0 or q < 0.0 or q > 1.0:
        return nan
    if not (q > 0.0 and q < 1.0):
        return 1.0 - q
    if isinf(a) or isinf(b):
        return nan
    if q <= 0.5:
        return 1.0 / (1.0 + inverse_beta(b, a, q))
    odds = inverse_beta(a, b, 1.0 - q)
    return odds / (1.0 + odds)


def stdtrit(df: Number, p: Number) -> Number:
    if isnan(df) or isnan(p) or df <= 0.0 or p < 0.0 or p > 1.0:
        return nan
    if not (p > 0.0 and p < 1.0):
        return inf  # SciPy's
    if df > 1e9:
        z = ndtri(p)
        return z if isinf(df) else z + z * (z * z + 1.0) / (4.0 * df)
    tail = p if p < 0.5 else 1.0 - p
    if tail == 0.5:
        return 0.0
    if tail <= 0.25:
        root = exp((log(2.0 * tail) + log_a_beta(0.5 * df, float64(0.5))) / df)
        if root > 1e-9:
            root = sqrt(inverse_beta(0.5 * df, float64(0.5), 2.0 * tail))
        size = sqrt(df) / root
    else:
        size = sqrt(df) * sqrt(inverse_beta(float64(0.5), 0.5 * df, 1.0 - 2.0 * tail))
    return -size if p < 0.5 else size


# --- the inverse of the error function --------------------------------------------------------------------------------


def inverse_erf(q: Number, c: Number) -> Number:
    """t where erf(t) is q and erfc(t) is c, which is at most 1."""
    if c == 0.0:
        return inf
    if c > 0.2:
        t = 0.886226925452758 * q * (1.0 + 0.2617993877991494 * q * q)
        for _ in range(6):
            step = (erf(t) - q) * 0.886226925452758 * exp(t * t)
            t = t - step / (1.0 + t * step)
            if fabs(step) <= 1e-9 * fabs(t):
                break
        return t
    return inverse_erfc_of_log(-log(c))


def inverse_erfc_of_log(size: Number) -> Number:
    """t where erfc(t) is e**-size, at most 0.2."""
    t = sqrt(size - 0.5 * log(3.141592653589793 * size))
    for _ in range(12):
        scaled = erfcx(t)
        step = (log(scaled) - t * t + size) * 0.886226925452758 * scaled
        t = t + step
        if fabs(step) <= 4e-16 * t:
            break
    return t


def erfinv(x: Number) -> Number:
    if isnan(x) or fabs(x) > 1.0:
        return nan
    return copysign(inverse_erf(fabs(x), 1.0 - fabs(x)), x)


def erfcinv(x: Number) -> Number:
    if isnan(x) or x < 0.0 or x > 2.0:
        return nan
    return inverse_erf(1.0 - x, x) if x <= 1.0 else -inverse_erf(x - 1.0, 2.0 - x)


def ndtri(p: Number) -> Number:
    if isnan(p) or p < 0.0 or p > 1.0:
        return nan
    if p <= 0.5:
        return -1.4142135623730951 * inverse_erf(1.0 - 2.0 * p, 2.0 * p)
    return 1.4142135623730951 * inverse_erf(2.0 * p - 1.0, 2.0 * (1.0 - p))


def ndtri_exp(y: Number) -> Number:
    if isnan(y) or y > 0.0:
        return nan
    if y > -0.5:
        return -ndtri(-expm1(y))
    if y > -2.5:
        return ndtri(exp(y))
    return y if isinf(y) else -1.4142135623730951 * inverse_erfc_of_log(-(y + 0.6931471805599453))


# --- inverses by counts -----------------------------------------------------------------------------------------------


def is_count_below(share: Number, k: Number, kind: Number, a: Number, b: Number) -> Number:
    """1 where the distribution function at k is below `share`, else 0: of Poisson's law of mean `a` (kind 0), of the
    binomial one of `a` trials (1), or of the negative one (2)."""
    if kind == 0.0:
        lower = exp(log_incomplete_gamma(k + 1.0, a, share <= 0.5))
    elif kind == 1.0:
        lower = (
            incomplete_beta(a - k, k + 1.0, 1.0 - b, b) if share <= 0.5 else incomplete_beta(k + 1.0, a - k, b, 1.0 - b)
        )
    else:
        lower = incomplete_beta(a, k + 1.0, b, 1.0 - b) if share <= 0.5 else incomplete_beta(k + 1.0, a, 1.0 - b, b)
    if isnan(lower):
        return nan
    is_below = lower < share if share <= 0.5 else lower > 1.0 - share
    return 1.0 if is_below else 0.0


def inverse_count(share: Number, kind: Number, a: Number, b: Number, most: Number) -> Number:
    """k, not above `most`, where the distribution function is `share`, by bisection; 0 where it is larger at 0."""
    low = 0.0
    high = 0.0
    found = is_count_below(share, high, kind, a, b)
    while found == 1.0 and high < most:
        low = high
        high = 2.0 * high + 1.0
        high = high if high < most else most
        found = is_count_below(share, high, kind, a, b) if high < most else 0.0
    if isnan(found):
        return nan
    for _ in range(1100):
        k = 0.5 * (low + high)
        if high - low <= 4e-16 * high:
            break
        if is_count_below(share, k, kind, a, b) == 1.0:
            low = k
        else:
            high = k
    return k


def pdtrik(p: Number, m: Number) -> Number:
    if isnan(p) or p < 0.0 or p >= 1.0 or isnan(m) or m < 0.0 or isinf(m):
        return nan
    return 0.0 if p == 0.0 or m == 0.0 else inverse_count(p, float64(0.0), m, float64(0.0), float64(1e100))


def bdtrik(p: Number, n: Number, share: Number) -> Number:
    if isnan(p) or p < 0.0 or p > 1.0 or not n > 0.0 or isinf(n) or not (share > 0.0 and share < 1.0):
        return nan
    if not (p > 0.0 and p < 1.0):
        return p * n
    return inverse_count(p, float64(1.0), n, share, n)


def nbdtrik(p: Number, n: Number, share: Number) -> Number:
    if isnan(p) or p < 0.0 or p >= 1.0 or not n > 0.0 or isinf(n) or not (share > 0.0 and share < 1.0):
        return nan
    return 0.0 if p == 0.0 else inverse_count(p, float64(2.0), n, share, float64(1e100))
