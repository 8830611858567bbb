"""Distributions of whole numbers in their standard forms: one record for each.

In: nothing. Out: `LAWS`, in which `logpdf` is the logarithm of the probability. Formulas are those of Johnson, Kemp and
Kotz, Univariate Discrete Distributions, in the parameters that SciPy's documentation gives. Quantiles are whole
numbers, which have no derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.ir.node import Node
from graphc.scipy.special import addressed as by, composed
from graphc.scipy.stats.distribution import Law, by_scipy
from graphc.tensor import special as sp
from graphc.tensor.elementary import (
    ceil,
    clip,
    exp,
    expm1,
    floor,
    gammaln,
    log,
    log1p,
    maximum,
    minimum,
    sqr,
    stop_gradient,
    where,
    xlog1py,
    xlogy,
)  # fmt: skip
from graphc.tensor.special import betaln


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


_HYPERGEOM: dict[str, Any] = {
    name: by_scipy("hypergeom", name, *[None] * 4) for name in ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")
}
_BETABINOM: dict[str, Any] = {
    name: by_scipy("betabinom", name, *[None] * 4) for name in ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")
}
"""Sums of probabilities, which SciPy adds up: they have no derivatives here."""


def _is_chance(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


LAWS = (
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
        _hypergeom, **_HYPERGEOM, mean=lambda M, n, N: N * n / M,  # noqa: N803
        var=lambda M, n, N: N * n * (M - n) * (M - N) / (M * M * (M - 1)),  # noqa: N803
        valid=lambda M, n, N: (n >= 0) & (N >= 0) & (n <= M) & (N <= M), discrete=True),  # noqa: N803
    Law("betabinom", "n a b", 0.0, lambda n, a, b: n,
        lambda k, n, a, b: -log(n + 1) - betaln(n - k + 1, k + 1) + betaln(k + a, n - k + b) - betaln(a, b),
        **_BETABINOM, mean=lambda n, a, b: n * a / (a + b),
        var=lambda n, a, b: n * a * b * (a + b + n) / (sqr(a + b) * (a + b + 1)),
        valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0), discrete=True),
    Law("randint", "low high", lambda low, high: low, lambda low, high: high - 1,
        lambda k, low, high: -log(high - low) + 0 * k, lambda k, low, high: (floor(k) - low + 1) / (high - low),
        ppf=lambda q, low, high: clip(stop_gradient(ceil(q * (high - low))) + low - 1, low, high - 1),
        mean=lambda low, high: 0.5 * (low + high - 1), var=lambda low, high: (sqr(high - low) - 1) / 12,
        entropy=lambda low, high: log(high - low), valid=lambda low, high: high > low, discrete=True),
)  # fmt: skip
"""The distributions."""
