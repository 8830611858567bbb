"""Derivatives of von Mises, truncated normal and inverse Gaussian numbers by their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.random.distributions import angle_by_concentration, truncated_by_limits, wald_by_parameters

X, P, Q = T.dvector("x"), T.dvector("p"), T.dvector("q")


def compiled(parts: Any, *inputs: Any) -> Callable[..., Any]:
    """The parts, and the derivative of their weighted sum by the first input."""
    weighted = sum(number * part.sum() for number, part in enumerate(parts, 1))
    return graphc.function([*inputs], [*parts, T.grad(weighted, inputs[0])], "interpreted")


def by_concentration(x: float, kappa: float) -> Any:
    mean = mpmath.besseli(1, kappa) / mpmath.besseli(0, kappa)
    places = [0, x / 2, x]
    return -mpmath.quad(lambda t: (mpmath.cos(t) - mean) * mpmath.exp(kappa * (mpmath.cos(t) - mpmath.cos(x))), places)


@pytest.mark.slow
def test_angles_by_their_concentration() -> None:
    f = compiled([angle_by_concentration(X, P)], X, P)
    kappas = np.repeat([1e-3, 4.0, 1e6], 4)
    x = np.minimum(np.tile([1e-4, 0.3, -1.0, 4.0], 3) / np.sqrt(np.maximum(kappas, 0.5)), 3.1)
    with mpmath.workdps(30):
        wanted = [float(by_concentration(*each)) for each in zip(x, kappas, strict=True)]
        steps = zip(x * (1 + 1e-6), x * (1 - 1e-6), kappas, strict=True)
        second = [float((by_concentration(a, k) - by_concentration(b, k)) / (a - b)) for a, b, k in steps]
    found, slope = f(x, kappas)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    np.testing.assert_allclose(slope, second, rtol=1e-6)
    np.testing.assert_allclose(f([1.0, 3.0], [0.0, 0.0])[0], -np.sin([1.0, 3.0]), rtol=1e-12)


LIMITS = [
    (-1, 1, 0.3), (-np.inf, 1, -0.5), (-np.inf, np.inf, 0.2), (2, np.inf, 2.3), (30, np.inf, 30.01), (30, 31, 30.02),
    (1, 1 + 1e-9, 1 + 3e-10), (-3, -2, -2.2), (-np.inf, -5, -5.1), (-1e9, 3, 1.0), (-50, -49, -49.001),
]  # fmt: skip


def by_limits(a: float, b: float, x: float) -> tuple[float, float]:
    def area(low: float, high: float) -> Any:  # times exp(x**2 / 2)
        low, high = max(low, x - 9), min(high, x + 9)
        return mpmath.quad(lambda t: mpmath.exp((mpmath.mpf(x) ** 2 - t * t) / 2), mpmath.linspace(low, high, 9))

    if b == np.inf == -a:
        return 0.0, 0.0
    whole = area(a, b)
    heights = [mpmath.exp((mpmath.mpf(x) ** 2 - mpmath.mpf(limit) ** 2) / 2) for limit in (a, b)]
    return float(area(x, b) / whole * heights[0]), float(area(a, x) / whole * heights[1])


@pytest.mark.slow
def test_truncated_normal_numbers_by_their_limits() -> None:
    f = compiled(truncated_by_limits(X, P, Q), X, P, Q)
    low, high, x = np.array(LIMITS).T
    with mpmath.workdps(30):
        wanted = np.array([by_limits(*each) for each in LIMITS]).T
    *found, second = f(x, low, high)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    assert np.isfinite(second).all()


def test_inverse_gaussian_numbers_by_their_parameters() -> None:
    f = compiled(wald_by_parameters(X, P, Q), X, P, Q)
    x, mean, scale = np.array([(0.5, 1, 1), (3, 1, 1), (0.01, 2, 0.1), (2.1, 2, 50), (3.01, 3, 1e4), (2, 0.1, 0.01)]).T

    def place(x: Any, mean: Any, scale: Any) -> Any:
        root = mpmath.sqrt(scale / x)
        beyond = mpmath.exp(2 * scale / mean) * mpmath.ncdf(-root * (x / mean + 1))
        return mpmath.ncdf(root * (x / mean - 1)) + beyond

    wanted = []
    with mpmath.workdps(40):
        for each in zip(x, mean, scale, strict=True):
            at = [mpmath.mpf(float(value)) for value in each]
            by = [mpmath.diff(place, at, tuple(int(n == k) for n in range(3))) for k in range(3)]
            wanted.append([float(-by[1] / by[0]), float(-by[2] / by[0])])
    *found, second = f(x, mean, scale)
    np.testing.assert_allclose(found, np.array(wanted).T, rtol=1e-11)
    assert np.isfinite(second).all()


@pytest.mark.slow
def test_means_of_derivatives_are_derivatives_of_means() -> None:
    """Of 100,000 numbers each, in float32 too; where each number's choice of a root would hide a part of them."""
    a, b, shape = T.dscalar("a"), T.dscalar("b"), (100_000,)
    key = R.key(3)
    numbers: dict[str, tuple[Any, Any]] = {
        "wald": (R.wald(key, a, b, shape), lambda a, b: a),
        "wald squared": (R.wald(key, a, b, shape) ** 2, lambda a, b: a**2 + a**3 / b),
        "vonmises": (T.cos(R.vonmises(key, a, b, shape) - a), lambda a, b: special.i1(b) / special.i0(b)),
        "truncated": (R.truncated_normal(key, a, a + b, shape), lambda a, b: stats.truncnorm.mean(a, a + b)),
        "float32": (
            R.truncated_normal(key, T.cast(a, "float32"), T.cast(a + b, "float32"), shape),
            lambda a, b: stats.truncnorm.mean(a, a + b),
        ),
    }
    outputs = [part for node, _ in numbers.values() for part in (node.mean(), *T.grad(node.mean(), [a, b]))]
    found = iter(graphc.function([a, b], outputs)(0.7, 1.3))
    for name, (_, mean) in numbers.items():
        step = 1e-5
        wanted = [mean(0.7, 1.3), (mean(0.7 + step, 1.3) - mean(0.7 - step, 1.3)) / (2 * step)]
        wanted.append((mean(0.7, 1.3 + step) - mean(0.7, 1.3 - step)) / (2 * step))
        np.testing.assert_allclose([next(found) for _ in wanted], wanted, atol=0.02, rtol=0.01, err_msg=name)
