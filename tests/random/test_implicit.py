"""Derivatives of gamma numbers, and of what is made of them, by their shape parameters."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.random.distributions import slope

KEY = T.scalar("key", dtype="uint64")
SHAPES = (1e-3, 0.3, 1.0, 2.0, 30.0, 150.0)
PLACES = (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6)


def log_of(alpha: float, place: float) -> Any:
    """The logarithm of the number of that place in the distribution."""
    below = (np.log(place) + special.gammaln(alpha + 1)) / alpha
    if below < -20:  # the first term of the series is all
        return below
    return np.log(special.gammaincinv(alpha, place) if place < 0.6 else special.gammainccinv(alpha, 1 - place))


def exact(alpha: Any, y: Any) -> Any:
    """-F_alpha / f / x, by differences of 40 digits."""
    alpha, y = mpmath.mpf(alpha), mpmath.mpf(y)
    x, step = mpmath.exp(y), alpha * mpmath.mpf(10) ** -12
    below, above = (mpmath.gammainc(a, 0, x, regularized=True) for a in (alpha - step, alpha + step))
    return -(above - below) / (2 * step) / mpmath.exp(alpha * y - x - mpmath.loggamma(alpha))


@pytest.mark.slow
def test_against_differences_of_the_distribution_function() -> None:
    y, alpha = T.dvector("y"), T.dvector("alpha")
    h = slope(y, alpha)
    outputs = [h, *T.grad(h.sum(), [alpha, y])]
    f, g = (graphc.function([y, alpha], outputs, mode) for mode in ("compiled", "interpreted"))
    alphas = np.repeat(SHAPES, len(PLACES))
    logs = np.array([log_of(*each) for each in zip(alphas, PLACES * len(SHAPES), strict=True)])
    found = f(logs, alphas)
    for one, other in zip(found, g(logs, alphas), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)
    with mpmath.workdps(40):
        for a, log, *values in zip(alphas, logs, *found, strict=True):
            step = a * mpmath.mpf(10) ** -8
            by_alpha, by_log = (
                (exact(a + da, log + dy) - exact(a - da, log - dy)) / (2 * step) for da, dy in ((step, 0), (0, step))
            )
            for value, want, least in zip(values, (exact(a, log), by_alpha, by_log), (1e-10, 1e-7, 1e-8), strict=True):
                assert abs(value / float(want) - 1) < least, (a, log, value, want)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [999.0, 1001.0, 1e5])
def test_large_parameters_against_differences_of_the_inverse(alpha: float) -> None:
    y, a = T.dvector("y"), T.dvector("alpha")
    h = slope(y, a)
    f = graphc.function([y, a], [h, T.grad(h.sum(), a)], "interpreted")
    places = np.array([1e-3, 0.1, 0.4])
    inverse = special.gammaincinv
    step = 1e-2 * alpha
    quotient = [(inverse(alpha + d, places) - inverse(alpha - d, places)) / (2 * d) for d in (step, step / 2, step / 4)]
    want = (64 * quotient[2] - 20 * quotient[1] + quotient[0]) / 45 / inverse(alpha, places)
    logs = np.log(inverse(alpha, places))
    found, second = f(logs, np.full(3, alpha))
    np.testing.assert_allclose(found, want, rtol=1e-8)
    about = [f(logs, np.full(3, alpha * (1 + d)))[0] for d in (1e-4, -1e-4)]
    np.testing.assert_allclose(second, (about[0] - about[1]) / (2e-4 * alpha), rtol=1e-4)


@pytest.mark.slow
def test_what_is_made_of_gamma_numbers() -> None:
    """Derivatives of means are means of derivatives, of 20,000 numbers each; in float32 too."""
    a, b = T.dvector("a"), T.dscalar("b")
    shape = (20_000, 2)
    wide = T.zeros(shape) + a
    means = {
        "beta": (R.beta(KEY, wide, b), lambda a, b: b / (a + b) ** 2),
        "t": (abs(R.t(KEY, 5.0 + wide)), None),
        "dirichlet": (R.dirichlet(KEY, T.stack([wide[:, 0], wide[:, 1]], 1))[:, 0:1] + 0 * wide, None),
        "float32": (T.cast(R.gamma(KEY, T.cast(wide, "float32")), "float64"), lambda a, b: 1.0),
    }
    grads = [T.grad(drawn.mean(axis=0).sum(), a) for drawn, _ in means.values()]
    f = graphc.function([KEY, a, b], grads)
    shapes = np.array([0.3, 2.5])
    found = dict(zip(means, f(np.uint64(3), shapes, 1.5), strict=True))
    for name, (_, want) in means.items():
        if want is not None:
            np.testing.assert_allclose(found[name], np.broadcast_to(want(shapes, 1.5), 2), rtol=0.08, err_msg=name)

    def mean_size(df: Any) -> Any:
        return (
            2
            * np.sqrt(df)
            / (np.sqrt(np.pi) * (df - 1))
            * np.exp(special.gammaln(df / 2 + 0.5) - special.gammaln(df / 2))
        )

    df = 5.0 + shapes
    np.testing.assert_allclose(found["t"], (mean_size(df + 1e-4) - mean_size(df - 1e-4)) / 2e-4, rtol=0.2)
    total = shapes.sum()
    np.testing.assert_allclose(found["dirichlet"], 2 * np.array([shapes[1], -shapes[0]]) / total**2, rtol=0.08)


@pytest.mark.slow
def test_in_loops_and_under_vmap() -> None:
    def drawn(alpha: Any, key: Any) -> Any:
        return R.gamma(key, alpha)

    def both(alpha: Any, keys: Any) -> Any:
        total = graphc.scan(lambda key: drawn(alpha, key), sequences=[keys])[0].sum()
        one_by_one = sum(T.grad(drawn(alpha, keys[i]), alpha) for i in range(2))
        return graphc.vmap(graphc.grad(drawn), in_axes=(None, 0))(alpha, keys), T.grad(total, alpha), one_by_one

    batch, looped, one_by_one = graphc.jit(both)(2.0, np.arange(2, dtype=np.uint64))
    np.testing.assert_allclose([batch.sum(), looped], one_by_one)
