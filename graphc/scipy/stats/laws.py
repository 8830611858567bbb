"""Distributions in their standard forms: one record for each.

In: nothing. Out: `CONTINUOUS`, `DISCRETE`. Formulas are those of Johnson, Kotz and Balakrishnan, Continuous
Univariate Distributions, in the parameters that SciPy's documentation gives; the limits at shape 0 of the generalised
ones are taken by `graphc/scipy/special/addressed.py`; truncated normal tails by logarithms of their areas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.ir.node import Node
from graphc.random.distributions import angle_by_concentration
from graphc.scipy.special import addressed as by, composed
from graphc.scipy.special.addressed import divided
from graphc.scipy.stats.distribution import Law, by_scipy
from graphc.tensor import special as sp
from graphc.tensor.elementary import (
    abs,
    arctan,
    arctan2,
    ceil,
    clip,
    cos,
    digamma,
    erf,
    erfc,
    exp,
    expit,
    expm1,
    floor,
    gammaln,
    greater,
    less,
    log,
    log1mexp,
    log1p,
    logaddexp,
    logit,
    maximum,
    minimum,
    reciprocal,
    sqr,
    sqrt,
    stop_gradient,
    tan,
    where,
    xlog1py,
    xlogy,
)  # fmt: skip  # fmt: skip
from graphc.tensor.special import betaln, gamma, ndtr, ndtri

INF, PI, EULER = math.inf, math.pi, 0.57721566490153286
LOG_2PI = math.log(2 * PI)
HALF_PI_ROOT = math.sqrt(PI / 2)


def _if(condition: Any, value: Any, other: Any = INF) -> Any:
    return where(condition, value, other)


def _normal(x: Any) -> Any:
    return -0.5 * x * x - 0.5 * LOG_2PI


# --- of the gamma and beta functions ----------------------------------------------------------------------------------


def _f_moments(n: Node, m: Node) -> Any:
    return 2 * m * m * (n + m - 2) / (n * sqr(m - 2) * (m - 4))


def _f_isf(q: Node, n: Node, m: Node) -> Any:
    y = sp.betaincinv(0.5 * m, 0.5 * n, q)
    return m * (1 - y) / (n * y)


def _t_entropy(df: Node) -> Any:
    half = 0.5 * (df + 1)
    return half * (digamma(half) - digamma(0.5 * df)) + 0.5 * log(df) + sp.betaln(0.5 * df, 0.5)


# --- of extremes ------------------------------------------------------------------------------------------------------


def _extreme_log(x: Node, c: Node) -> Any:
    """log(1 - c x) / c, -x where c is 0."""
    return -x * divided("log1p", -c * x)


def _extreme_place(w: Node, c: Node) -> Any:
    """(1 - exp(c w)) / c, -w where c is 0."""
    return -w * by.exprel(c * w)


def _extreme_mean(c: Node) -> Any:
    """(1 - gamma(1 + c)) / c, Euler's constant where c is 0."""
    ratio = divided("log_gamma", where(c > -1, c, 0))
    return _if(c > -1, -by.exprel(c * ratio) * ratio)


def _extreme_var(c: Node) -> Any:
    inner = where(c > -0.5, c, 0)
    bent = divided("log_gamma_twice", inner)
    return _if(c > -0.5, sqr(gamma(1 + inner)) * by.exprel(bent * sqr(inner)) * bent)


def _pareto_log(x: Node, c: Node) -> Any:
    """log(1 + c x) / c, x where c is 0."""
    return x * divided("log1p", c * x)


def _gamma_var(c: Node) -> Any:
    return gamma(1 + 2 / c) - sqr(gamma(1 + 1 / c))


# --- normal between limits --------------------------------------------------------------------------------------------


def _log_area(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between a and b, turned to the left tail where both are above 0."""
    turned = greater(a, 0)
    low, high = where(turned, -b, a), where(turned, -a, b)
    is_tail = high <= 0
    top = sp.log_ndtr(where(is_tail, high, 0))
    tail = top + log1mexp(sp.log_ndtr(where(is_tail, low, -1)) - top)
    middle = log1p(-(ndtr(where(is_tail, 0, low)) + ndtr(-where(is_tail, 1, high))))
    return where(is_tail, tail, middle)


def _truncated_ppf(q: Node, a: Node, b: Node) -> Any:
    area, left = _log_area(a, b), less(a, 0)
    low, high = where(left, a, 0), where(left, 0, b)
    below = by.ndtri_exp(logaddexp(sp.log_ndtr(low), log(q) + where(left, area, -1)))
    above = -by.ndtri_exp(logaddexp(sp.log_ndtr(-high), log1p(-q) + where(left, -1, area)))
    return where(left, below, above)


def _edge(a: Any, area: Any) -> Any:
    """The density at a limit, over the area."""
    return exp(_normal(a) - area)


def _edge_times(a: Any, area: Any) -> Any:
    """The same, times the limit; 0 at infinity."""
    inner = where(abs(a) < 1e150, a, 0)
    return where(abs(a) < 1e150, inner * _edge(inner, area), 0)


def _truncated_var(a: Node, b: Node) -> Any:
    area = _log_area(a, b)
    return 1 + _edge_times(a, area) - _edge_times(b, area) - sqr(_edge(a, area) - _edge(b, area))


# --- other ------------------------------------------------------------------------------------------------------------


def _laplace_cdf(x: Node) -> Any:
    """Without abs, whose derivative is 0 at 0."""
    right = x > 0
    return where(right, 1 - 0.5 * exp(-where(right, x, 0)), 0.5 * exp(where(right, 0, x)))


def _triang_logpdf(x: Node, c: Node) -> Any:
    rising = x < c
    return math.log(2) + log(
        where(rising, x / where(rising, c, 1), (1 - x) / where(rising, 1, 1 - where(rising, 0, c)))
    )


def _triang_cdf(x: Node, c: Node) -> Any:
    rising = x < c
    up = sqr(x) / where(rising, c, 1)
    return where(rising, up, 1 - sqr(1 - x) / where(rising, 1, 1 - where(rising, 0, c)))


def _triang_ppf(q: Node, c: Node) -> Any:
    return where(q < c, sqrt(c * q), 1 - sqrt((1 - c) * (1 - q)))


def _wald_parts(x: Node, mu: Node, sign: int) -> tuple[Any, Any]:
    root = 1 / sqrt(x)
    return sp.log_ndtr(sign * root * (x / mu - 1)), 2 / mu + sp.log_ndtr(-root * (x / mu + 1))


def _wald_logcdf(x: Node, mu: Node) -> Any:
    """Logarithms of both parts (Giner and Smyth 2016)."""
    first, second = _wald_parts(x, mu, 1)
    return first + log1p(exp(second - first))


def _wald_logsf(x: Node, mu: Node) -> Any:
    first, second = _wald_parts(x, mu, -1)
    return first + log1p(-exp(second - first))


def _skew_density(x: Node, a: Node) -> Any:
    return exp(math.log(2) + _normal(x) + sp.log_ndtr(a * x))


_skew_ppf = by_scipy(
    "skewnorm",
    "ppf",
    lambda x, q, a: 1 / _skew_density(x, a),
    lambda x, q, a: exp(-0.5 * x * x * (1 + a * a)) / (PI * (1 + a * a)) / _skew_density(x, a),
)


def _wald_logpdf(x: Node, mu: Node) -> Any:
    return -0.5 * LOG_2PI - 1.5 * log(x) - 0.5 * sqr(x / mu - 1) / x


_wald_ppf, _wald_isf = (
    by_scipy(
        "invgauss",
        method,
        lambda x, q, mu, sign=sign: sign * exp(-_wald_logpdf(x, mu)),
        lambda x, q, mu: 2 / sqr(mu) * exp(_wald_parts(x, mu, 1)[1] - _wald_logpdf(x, mu)),
    )
    for method, sign in (("ppf", 1), ("isf", -1))
)


def _angle_logpdf(x: Node, k: Node) -> Any:
    return k * by.cosm1(x) - LOG_2PI - log(sp.i0e(k))


_angle_cdf = by_scipy(
    "vonmises",
    "cdf",
    lambda z, x, k: exp(_angle_logpdf(x, k)),
    lambda z, x, k: -exp(_angle_logpdf(x, k)) * angle_by_concentration(x, k),
)
_angle_ppf = by_scipy(
    "vonmises", "ppf", lambda x, q, k: exp(-_angle_logpdf(x, k)), lambda x, q, k: angle_by_concentration(x, k)
)


def _real(*shapes: Any) -> Any:
    """The condition of shapes that may be any number."""
    return abs(shapes[0]) < INF


def _size_power(x: Node, b: Node) -> Any:
    """abs(x) ** b, whose derivative at 0 is 0: for b of 1 and less there is a cusp."""
    away = abs(x) > 0
    return where(away, abs(where(away, x, 1)) ** b, 0)


def _gennorm_cdf(x: Node, b: Node) -> Any:
    """At 0 by its tangent: there the formula of the tails has no derivative."""
    away = abs(x) > 0
    tail = 0.5 * sp.gammaincc(1 / b, abs(where(away, x, 1)) ** b)
    return where(away, where(x > 0, 1 - tail, tail), 0.5 + x / (2 * gamma(1 + 1 / b)))


def _gennorm_ppf(q: Node, b: Node) -> Any:
    """The inverse of the cdf, at the median by its tangent: there the formula of the tails has no derivative."""
    away = abs(q - 0.5) > 0
    size = sp.gammainccinv(1 / b, 2 * where(away, minimum(q, 1 - q), 0.25)) ** (1 / b)
    return where(away, where(q > 0.5, size, -size), 2 * gamma(1 + 1 / b) * (q - 0.5))


def _folded(x: Any, whole: float, total: float, lower: Callable[[Any], Any]) -> Any:
    """A function that is `lower` of x up to half of `whole`, and `total` less that of `whole` - x beyond."""
    value = lower(minimum(x, whole - x))
    return where(x > 0.5 * whole, total - value, value)


def _wrapcauchy_cdf(x: Node, c: Node) -> Any:
    return _folded(x, 2 * PI, 1.0, lambda x: arctan((1 + c) / (1 - c) * tan(0.5 * x)) / PI)


CONTINUOUS = (
    Law("norm", "", -INF, INF, _normal, ndtr, logcdf=sp.log_ndtr, ppf=ndtri, mean=0.0, var=1.0,
        entropy=0.5 * (LOG_2PI + 1), symmetric=True),
    Law("t", "df", -INF, INF,
        lambda x, df: -sp.betaln(0.5, 0.5 * df) - 0.5 * (log(df) + (df + 1) * log1p(x * x / df)),
        lambda x, df: sp.stdtr(df, x), ppf=lambda q, df: by.stdtrit(df, q), mean=lambda df: _if(df > 1, 0.0),
        var=lambda df: _if(df > 2, df / (df - 2), _if(df > 1, INF, math.nan)), entropy=_t_entropy, symmetric=True),
    Law("chi2", "df", 0.0, INF,
        lambda x, df: xlogy(0.5 * df - 1, x) - 0.5 * x - gammaln(0.5 * df) - 0.5 * math.log(2) * df,
        lambda x, df: sp.gammainc(0.5 * df, 0.5 * x), lambda x, df: sp.gammaincc(0.5 * df, 0.5 * x),
        ppf=lambda q, df: 2 * sp.gammaincinv(0.5 * df, q), isf=lambda q, df: 2 * sp.gammainccinv(0.5 * df, q),
        mean=lambda df: df, var=lambda df: 2 * df,
        entropy=lambda df: 0.5 * df + math.log(2) + gammaln(0.5 * df) + (1 - 0.5 * df) * digamma(0.5 * df)),
    Law("chi", "df", 0.0, INF,
        lambda x, df: xlogy(df - 1, x) - 0.5 * x * x - gammaln(0.5 * df) - math.log(2) * (0.5 * df - 1),
        lambda x, df: sp.gammainc(0.5 * df, 0.5 * x * x), lambda x, df: sp.gammaincc(0.5 * df, 0.5 * x * x),
        ppf=lambda q, df: sqrt(2 * sp.gammaincinv(0.5 * df, q)),
        isf=lambda q, df: sqrt(2 * sp.gammainccinv(0.5 * df, q)),
        mean=lambda df: math.sqrt(2) * by.poch(0.5 * df, 0.5),
        var=lambda df: df - 2 * sqr(by.poch(0.5 * df, 0.5)),
        entropy=lambda df: gammaln(0.5 * df) + 0.5 * (df - math.log(2) - (df - 1) * digamma(0.5 * df))),
    Law("f", "dfn dfd", 0.0, INF,
        lambda x, n, m: 0.5 * m * log(m) + 0.5 * n * log(n) + xlogy(0.5 * n - 1, x)
        - 0.5 * (n + m) * log(m + n * x) - sp.betaln(0.5 * n, 0.5 * m),
        lambda x, n, m: composed.fdtr(n, m, x), lambda x, n, m: composed.fdtrc(n, m, x),
        ppf=lambda q, n, m: composed.fdtri(n, m, q), isf=_f_isf, mean=lambda n, m: _if(m > 2, m / (m - 2)),
        var=lambda n, m: _if(m > 4, _f_moments(n, where(m > 4, m, 5))),
        entropy=lambda n, m: log(m / n) + sp.betaln(0.5 * n, 0.5 * m) + (1 - 0.5 * n) * digamma(0.5 * n)
        - (1 + 0.5 * m) * digamma(0.5 * m) + 0.5 * (n + m) * digamma(0.5 * (n + m))),
    Law("gamma", "a", 0.0, INF, lambda x, a: xlogy(a - 1, x) - x - gammaln(a),
        lambda x, a: sp.gammainc(a, x), lambda x, a: sp.gammaincc(a, x), ppf=lambda q, a: sp.gammaincinv(a, q),
        isf=lambda q, a: sp.gammainccinv(a, q), mean=lambda a: a, var=lambda a: a,
        entropy=lambda a: a + gammaln(a) + (1 - a) * digamma(a)),
    Law("invgamma", "a", 0.0, INF, lambda x, a: -(a + 1) * log(x) - gammaln(a) - 1 / x,
        lambda x, a: sp.gammaincc(a, 1 / x), lambda x, a: sp.gammainc(a, 1 / x),
        ppf=lambda q, a: 1 / sp.gammainccinv(a, q), isf=lambda q, a: 1 / sp.gammaincinv(a, q),
        mean=lambda a: _if(a > 1, 1 / (a - 1)), var=lambda a: _if(a > 2, 1 / (sqr(a - 1) * (a - 2))),
        entropy=lambda a: a + gammaln(a) - (1 + a) * digamma(a), open=True),
    Law("beta", "a b", 0.0, 1.0, lambda x, a, b: xlog1py(b - 1, -x) + xlogy(a - 1, x) - sp.betaln(a, b),
        lambda x, a, b: sp.betainc(a, b, x), lambda x, a, b: by.betaincc(a, b, x),
        ppf=lambda q, a, b: sp.betaincinv(a, b, q), isf=lambda q, a, b: by.betainccinv(a, b, q),
        mean=lambda a, b: a / (a + b), var=lambda a, b: a * b / (sqr(a + b) * (a + b + 1)),
        entropy=lambda a, b: sp.betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
        + (a + b - 2) * digamma(a + b)),
    Law("expon", "", 0.0, INF, lambda x: -x, lambda x: -expm1(-x), lambda x: exp(-x), logsf=lambda x: -x,
        ppf=lambda q: -log1p(-q), isf=lambda q: -log(q), mean=1.0, var=1.0, entropy=1.0),
    Law("lognorm", "s", 0.0, INF, lambda x, s: -0.5 * sqr(log(x) / s) - log(s * x) - 0.5 * LOG_2PI,
        lambda x, s: ndtr(log(x) / s), lambda x, s: ndtr(-log(x) / s), logcdf=lambda x, s: sp.log_ndtr(log(x) / s),
        logsf=lambda x, s: sp.log_ndtr(-log(x) / s), ppf=lambda q, s: exp(s * ndtri(q)),
        isf=lambda q, s: exp(-s * ndtri(q)), mean=lambda s: exp(0.5 * s * s),
        var=lambda s: expm1(s * s) * exp(s * s), entropy=lambda s: 0.5 * (1 + LOG_2PI) + log(s), open=True),
    Law("loguniform", "a b", lambda a, b: a, lambda a, b: b, lambda x, a, b: -log(x) - log(log(b / a)),
        lambda x, a, b: log(x / a) / log(b / a), lambda x, a, b: log(b / x) / log(b / a),
        ppf=lambda q, a, b: exp(log(a) + q * log(b / a)), mean=lambda a, b: (b - a) / log(b / a),
        var=lambda a, b: 0.5 * (b * b - a * a) / log(b / a) - sqr((b - a) / log(b / a)),
        entropy=lambda a, b: 0.5 * log(a * b) + log(log(b / a)), valid=lambda a, b: (a > 0) & (b > a)),
    Law("uniform", "", 0.0, 1.0, lambda x: 0.0 * x, lambda x: x, lambda x: 1 - x, ppf=lambda q: q, mean=0.5,
        var=1 / 12, entropy=0.0),
    Law("laplace", "", -INF, INF, lambda x: -math.log(2) - abs(x),
        _laplace_cdf,
        ppf=lambda q: where(q > 0.5, -log(2 * (1 - q)), log(2 * q)), mean=0.0, var=2.0, entropy=math.log(2) + 1,
        symmetric=True),
    Law("logistic", "", -INF, INF, lambda x: -abs(x) - 2 * log1p(exp(-abs(x))), expit, logcdf=composed.log_expit,
        ppf=logit, mean=0.0, var=PI * PI / 3, entropy=2.0, symmetric=True),
    Law("cauchy", "", -INF, INF, lambda x: -math.log(PI) - log1p(x * x), lambda x: arctan2(1, -x) / PI,
        ppf=lambda q: where(q < 0.25, -1 / tan(PI * q), where(q > 0.75, 1 / tan(PI * (1 - q)), tan(PI * (q - 0.5)))),
        mean=math.nan, var=math.nan, entropy=math.log(4 * PI), symmetric=True),
    Law("halfnorm", "", 0.0, INF, lambda x: 0.5 * math.log(2 / PI) - 0.5 * x * x, lambda x: erf(x * math.sqrt(0.5)),
        lambda x: 2 * ndtr(-x), logsf=lambda x: math.log(2) + sp.log_ndtr(-x), ppf=lambda q: ndtri(0.5 * (1 + q)),
        isf=lambda q: -ndtri(0.5 * q), mean=math.sqrt(2 / PI), var=1 - 2 / PI, entropy=0.5 * math.log(PI / 2) + 0.5),
    Law("halfcauchy", "", 0.0, INF, lambda x: math.log(2 / PI) - log1p(x * x), lambda x: 2 / PI * arctan(x),
        lambda x: 2 / PI * arctan2(1, x), ppf=lambda q: tan(0.5 * PI * q), isf=lambda q: 1 / tan(0.5 * PI * q),
        mean=INF, var=INF, entropy=LOG_2PI),
    Law("pareto", "b", 1.0, INF, lambda x, b: log(b) - (b + 1) * log(x), lambda x, b: -expm1(-b * log(x)),
        lambda x, b: exp(-b * log(x)), logsf=lambda x, b: -b * log(x), ppf=lambda q, b: exp(-log1p(-q) / b),
        isf=lambda q, b: exp(-log(q) / b), mean=lambda b: _if(b > 1, b / (b - 1)),
        var=lambda b: _if(b > 2, b / (sqr(b - 1) * (b - 2))), entropy=lambda b: 1 + 1 / b - log(b)),
    Law("lomax", "c", 0.0, INF, lambda x, c: log(c) - (c + 1) * log1p(x), lambda x, c: -expm1(-c * log1p(x)),
        lambda x, c: exp(-c * log1p(x)), logsf=lambda x, c: -c * log1p(x), ppf=lambda q, c: expm1(-log1p(-q) / c),
        isf=lambda q, c: expm1(-log(q) / c), mean=lambda c: _if(c > 1, 1 / (c - 1)),
        var=lambda c: _if(c > 2, c / (sqr(c - 1) * (c - 2))), entropy=lambda c: 1 + 1 / c - log(c)),
    Law("powerlaw", "a", 0.0, 1.0, lambda x, a: log(a) + xlogy(a - 1, x), lambda x, a: x**a,
        lambda x, a: -expm1(a * log(x)), logcdf=lambda x, a: a * log(x), ppf=lambda q, a: q ** (1 / a),
        mean=lambda a: a / (a + 1), var=lambda a: a / ((a + 2) * sqr(a + 1)), entropy=lambda a: 1 - 1 / a - log(a)),
    Law("weibull_min", "c", 0.0, INF, lambda x, c: log(c) + xlogy(c - 1, x) - x**c, lambda x, c: -expm1(-(x**c)),
        lambda x, c: exp(-(x**c)), logsf=lambda x, c: -(x**c), ppf=lambda q, c: (-log1p(-q)) ** (1 / c),
        isf=lambda q, c: (-log(q)) ** (1 / c), mean=lambda c: gamma(1 + 1 / c), var=_gamma_var,
        entropy=lambda c: EULER * (1 - 1 / c) + 1 - log(c)),
    Law("weibull_max", "c", -INF, 0.0, lambda x, c: log(c) + xlogy(c - 1, -x) - (-x) ** c,
        lambda x, c: exp(-((-x) ** c)), lambda x, c: -expm1(-((-x) ** c)), logcdf=lambda x, c: -((-x) ** c),
        ppf=lambda q, c: -((-log(q)) ** (1 / c)), isf=lambda q, c: -((-log1p(-q)) ** (1 / c)),
        mean=lambda c: -gamma(1 + 1 / c), var=_gamma_var, entropy=lambda c: EULER * (1 - 1 / c) + 1 - log(c)),
    Law("gumbel_r", "", -INF, INF, lambda x: -x - exp(-x), lambda x: exp(-exp(-x)), lambda x: -expm1(-exp(-x)),
        logcdf=lambda x: -exp(-x), ppf=lambda q: -log(-log(q)), isf=lambda q: -log(-log1p(-q)), mean=EULER,
        var=PI * PI / 6, entropy=EULER + 1),
    Law("gumbel_l", "", -INF, INF, lambda x: x - exp(x), lambda x: -expm1(-exp(x)), lambda x: exp(-exp(x)),
        logsf=lambda x: -exp(x), ppf=lambda q: log(-log1p(-q)), isf=lambda q: log(-log(q)), mean=-EULER,
        var=PI * PI / 6, entropy=EULER + 1),
    Law("genextreme", "c", lambda c: where(c < 0, reciprocal(where(c < 0, c, -1)), -INF),
        lambda c: where(c > 0, reciprocal(where(c > 0, c, 1)), INF),
        lambda x, c: (1 - c) * _extreme_log(x, c) - exp(_extreme_log(x, c)),
        lambda x, c: exp(-exp(_extreme_log(x, c))), lambda x, c: -expm1(-exp(_extreme_log(x, c))),
        logcdf=lambda x, c: -exp(_extreme_log(x, c)), ppf=lambda q, c: _extreme_place(log(-log(q)), c),
        isf=lambda q, c: _extreme_place(log(-log1p(-q)), c), mean=_extreme_mean, var=_extreme_var,
        entropy=lambda c: EULER * (1 - c) + 1, valid=_real),
    Law("genpareto", "c", 0.0, lambda c: where(c < 0, -reciprocal(where(c < 0, c, -1)), INF),
        lambda x, c: -(c + 1) * _pareto_log(x, c), lambda x, c: -expm1(-_pareto_log(x, c)),
        lambda x, c: exp(-_pareto_log(x, c)), logsf=lambda x, c: -_pareto_log(x, c),
        ppf=lambda q, c: _extreme_place(log1p(-q), -c), isf=lambda q, c: _extreme_place(log(q), -c),
        mean=lambda c: _if(c < 1, 1 / (1 - c)), var=lambda c: _if(c < 0.5, 1 / (sqr(1 - c) * (1 - 2 * c))),
        entropy=lambda c: 1 + c, valid=_real),
    Law("truncnorm", "a b", lambda a, b: a, lambda a, b: b, lambda x, a, b: _normal(x) - _log_area(a, b),
        logcdf=lambda x, a, b: _log_area(a, x) - _log_area(a, b),
        logsf=lambda x, a, b: _log_area(x, b) - _log_area(a, b), ppf=_truncated_ppf,
        isf=lambda q, a, b: -_truncated_ppf(q, -b, -a),
        mean=lambda a, b: _edge(a, _log_area(a, b)) - _edge(b, _log_area(a, b)), var=_truncated_var,
        entropy=lambda a, b: 0.5 * (LOG_2PI + 1) + _log_area(a, b)
        + 0.5 * (_edge_times(a, _log_area(a, b)) - _edge_times(b, _log_area(a, b))), valid=lambda a, b: a < b),
    Law("triang", "c", 0.0, 1.0, _triang_logpdf, _triang_cdf, ppf=_triang_ppf, mean=lambda c: (c + 1) / 3,
        var=lambda c: (1 - c + c * c) / 18, entropy=0.5 - math.log(2), valid=lambda c: (c >= 0) & (c <= 1)),
    Law("rayleigh", "", 0.0, INF, lambda x: log(x) - 0.5 * x * x, lambda x: -expm1(-0.5 * x * x),
        lambda x: exp(-0.5 * x * x), logsf=lambda x: -0.5 * x * x, ppf=lambda q: sqrt(-2 * log1p(-q)),
        isf=lambda q: sqrt(-2 * log(q)), mean=HALF_PI_ROOT, var=2 - PI / 2,
        entropy=1 - 0.5 * math.log(2) + 0.5 * EULER),
    Law("maxwell", "", 0.0, INF, lambda x: 0.5 * math.log(2 / PI) + 2 * log(x) - 0.5 * x * x,
        lambda x: sp.gammainc(1.5, 0.5 * x * x), lambda x: sp.gammaincc(1.5, 0.5 * x * x),
        ppf=lambda q: sqrt(2 * sp.gammaincinv(1.5, q)), isf=lambda q: sqrt(2 * sp.gammainccinv(1.5, q)),
        mean=2 * math.sqrt(2 / PI), var=3 - 8 / PI, entropy=EULER + 0.5 * LOG_2PI - 0.5),
    Law("nakagami", "nu", 0.0, INF,
        lambda x, v: math.log(2) + xlogy(v, v) - gammaln(v) + xlogy(2 * v - 1, x) - v * x * x,
        lambda x, v: sp.gammainc(v, v * x * x), lambda x, v: sp.gammaincc(v, v * x * x),
        ppf=lambda q, v: sqrt(sp.gammaincinv(v, q) / v), isf=lambda q, v: sqrt(sp.gammainccinv(v, q) / v),
        mean=lambda v: by.poch(v, 0.5) / sqrt(v), var=lambda v: 1 - sqr(by.poch(v, 0.5)) / v,
        entropy=lambda v: gammaln(v) - (v - 0.5) * digamma(v) + v - 0.5 * log(v) - math.log(2)),
    Law("skewnorm", "a", -INF, INF, lambda x, a: math.log(2) + _normal(x) + sp.log_ndtr(a * x),
        lambda x, a: ndtr(x) - 2 * sp.owens_t(x, a), lambda x, a: ndtr(-x) + 2 * sp.owens_t(x, a), ppf=_skew_ppf,
        mean=lambda a: math.sqrt(2 / PI) * a / sqrt(1 + a * a), var=lambda a: 1 - 2 / PI * a * a / (1 + a * a),
        valid=_real),
    Law("vonmises", "kappa", -INF, INF, _angle_logpdf, _angle_cdf, ppf=_angle_ppf, mean=0.0,
        entropy=lambda k: k - k * sp.i1e(k) / sp.i0e(k) + LOG_2PI + log(sp.i0e(k)), valid=lambda k: k >= 0),
    Law("levy", "", 0.0, INF, lambda x: -0.5 * LOG_2PI - 1.5 * log(x) - 0.5 / x, lambda x: erfc(sqrt(0.5 / x)),
        lambda x: erf(sqrt(0.5 / x)), ppf=lambda q: 1 / sqr(ndtri(0.5 * q)), isf=lambda q: 0.5 / sqr(sp.erfinv(q)),
        mean=INF, var=INF, entropy=0.5 * (1 + 3 * EULER + math.log(16 * PI)), open=True),
    Law("invgauss", "mu", 0.0, INF, _wald_logpdf, logcdf=_wald_logcdf, logsf=_wald_logsf, ppf=_wald_ppf, isf=_wald_isf,
        mean=lambda mu: mu, var=lambda mu: mu**3, open=True),
    Law("gennorm", "beta", -INF, INF, lambda x, b: log(0.5 * b) - gammaln(1 / b) - _size_power(x, b), _gennorm_cdf,
        ppf=_gennorm_ppf, mean=0.0, var=lambda b: exp(gammaln(3 / b) - gammaln(1 / b)),
        entropy=lambda b: 1 / b - log(0.5 * b) + gammaln(1 / b), symmetric=True),
    Law("wrapcauchy", "c", 0.0, 2 * PI, lambda x, c: log((1 - c * c) / (2 * PI * (1 + c * c - 2 * c * cos(x)))),
        _wrapcauchy_cdf, ppf=lambda q, c: 2 * _folded(q, 1.0, PI, lambda q: arctan((1 - c) / (1 + c) * tan(PI * q))),
        entropy=lambda c: log(2 * PI * (1 - c * c)), valid=lambda c: (c > 0) & (c < 1)),
)  # fmt: skip
"""The distributions."""


# --- distributions of whole numbers -----------------------------------------------------------------------------------
# Here `logpdf` is the logarithm of the probability. Formulas are those of Johnson, Kemp and Kotz, Univariate Discrete
# Distributions, in the parameters that SciPy's documentation gives. Quantiles are whole numbers: no derivatives.


def _least(q: Node, guess: Any, cdf: Callable[[Any], Any], low: Any = 0) -> Any:
    """The least whole number whose cdf is q or more, one of the guess and the one before."""
    number = stop_gradient(ceil(guess))
    before = maximum(number - 1, low)
    return where(cdf(before) >= q, before, number)


def _hypergeom(k: Node, total: Node, good: Node, drawn: Node) -> Any:
    bad = total - good
    return (
        betaln(good + 1, 1) + betaln(bad + 1, 1) + betaln(total - drawn + 1, drawn + 1)
        - betaln(k + 1, good - k + 1) - betaln(drawn - k + 1, bad - drawn + k + 1) - betaln(total + 1, 1)
    )  # fmt: skip


def _sums(law: str) -> dict[str, Any]:
    """Sums of probabilities, which SciPy adds up: they have no derivatives here."""
    return {name: by_scipy(law, name, *[sp.unknown] * 4) for name in ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")}


def _is_chance(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


DISCRETE = (
    Law("poisson", "mu", 0.0, math.inf, lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
        lambda k, mu: sp.gammaincc(k + 1, mu), lambda k, mu: sp.gammainc(k + 1, mu),
        ppf=lambda q, mu: _least(q, by.pdtrik(q, mu), lambda k: sp.gammaincc(k + 1, mu)),
        mean=lambda mu: mu, var=lambda mu: mu, valid=lambda mu: mu >= 0, discrete=True),
    Law("binom", "n p", 0.0, lambda n, p: n,
        lambda k, n, p: gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p),
        lambda k, n, p: sp.betainc(n - k, k + 1, 1 - p), lambda k, n, p: sp.betainc(k + 1, n - k, p),
        ppf=lambda q, n, p: _least(q, by.bdtrik(q, n, p), lambda k: composed.bdtr(k, n, p)),
        mean=lambda n, p: n * p, var=lambda n, p: n * p * (1 - p), valid=lambda n, p: (n >= 0) & _is_chance(p),
        discrete=True),
    Law("bernoulli", "p", 0.0, 1.0, lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), lambda k, p: 1 - p,
        lambda k, p: p, ppf=lambda q, p: where(q <= 1 - p, 0, 1), mean=lambda p: p, var=lambda p: p * (1 - p),
        entropy=lambda p: composed.entr(p) + composed.entr(1 - p), valid=_is_chance, discrete=True),
    Law("nbinom", "n p", 0.0, math.inf,
        lambda k, n, p: gammaln(n + k) - gammaln(k + 1) - gammaln(n) + xlogy(n, p) + xlog1py(k, -p),
        lambda k, n, p: sp.betainc(n, k + 1, p), lambda k, n, p: by.betaincc(n, k + 1, p),
        ppf=lambda q, n, p: _least(q, by.nbdtrik(q, n, p), lambda k: sp.betainc(n, k + 1, p)),
        mean=lambda n, p: n * (1 - p) / p, var=lambda n, p: n * (1 - p) / sqr(p),
        valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1), discrete=True),
    Law("geom", "p", 1.0, math.inf, lambda k, p: log(p) + xlog1py(k - 1, -p), lambda k, p: -expm1(k * log1p(-p)),
        lambda k, p: exp(k * log1p(-p)), logsf=lambda k, p: k * log1p(-p),
        ppf=lambda q, p: _least(q, log1p(-q) / log1p(-p), lambda k: -expm1(k * log1p(-p)), 1),
        mean=lambda p: 1 / p, var=lambda p: (1 - p) / sqr(p), entropy=lambda p: -(xlog1py(1 - p, -p) + xlogy(p, p)) / p,
        valid=lambda p: (p > 0) & (p <= 1), discrete=True),
    Law("hypergeom", "M n N", lambda M, n, N: maximum(N - (M - n), 0), lambda M, n, N: minimum(n, N),  # noqa: N803
        _hypergeom, **_sums("hypergeom"), mean=lambda M, n, N: N * n / M,  # noqa: N803
        var=lambda M, n, N: N * n * (M - n) * (M - N) / (M * M * (M - 1)),  # noqa: N803
        valid=lambda M, n, N: (n >= 0) & (N >= 0) & (n <= M) & (N <= M), discrete=True),  # noqa: N803
    Law("betabinom", "n a b", 0.0, lambda n, a, b: n,
        lambda k, n, a, b: -log(n + 1) - betaln(n - k + 1, k + 1) + betaln(k + a, n - k + b) - betaln(a, b),
        **_sums("betabinom"), mean=lambda n, a, b: n * a / (a + b),
        var=lambda n, a, b: n * a * b * (a + b + n) / (sqr(a + b) * (a + b + 1)),
        valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0), discrete=True),
    Law("randint", "low high", lambda low, high: low, lambda low, high: high - 1,
        lambda k, low, high: -log(high - low) + 0 * k, lambda k, low, high: (floor(k) - low + 1) / (high - low),
        ppf=lambda q, low, high: clip(stop_gradient(ceil(q * (high - low))) + low - 1, low, high - 1),
        mean=lambda low, high: 0.5 * (low + high - 1), var=lambda low, high: (sqr(high - low) - 1) / 12,
        entropy=lambda low, high: log(high - low), valid=lambda low, high: high > low, discrete=True),
)  # fmt: skip
"""The distributions."""
