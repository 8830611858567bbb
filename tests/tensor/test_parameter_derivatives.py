"""Derivatives of special functions by their parameters, against differences of 60 digits of mpmath's functions."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc.arrays.incomplete import betainc_by, gammainc_by_k
from graphc.autodiff import grad
from graphc.errors import NullTypeGradError

GAMMA = [
    (0.01, 0.3), (0.3, 1e-8), (0.5, 1.4), (1.0, 1.0), (2.0, 0.5), (2.0, 3.001), (5.0, 60.0), (12.0, 12.9), (19.9, 21.0),
    (20.0, 20.0), (26.0, 5.0), (35.0, 90.0), (800.0, 790.0), (4000.0, 4200.0),
]  # fmt: skip
BETA = [
    (0.01, 0.02, 0.5), (0.5, 0.5, 1e-6), (2.0, 3.0, 0.3), (2.0, 3.0, 0.9), (0.2, 40.0, 0.01), (40.0, 0.2, 0.999),
    (19.0, 300.0, 0.06), (20.0, 20.0, 0.5), (25.0, 90.0, 0.4), (800.0, 90.0, 0.9), (3.0, 4000.0, 0.001),
]  # fmt: skip
WAYS = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


def gamma_part(k: mpmath.mpf, x: float) -> mpmath.mpf:
    return mpmath.gammainc(k, 0, x, regularized=True)


def beta_part(a: mpmath.mpf, b: mpmath.mpf, x: float) -> mpmath.mpf:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def differences(function: object, size: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The first and the second derivative at 0, to a part of 1e-24."""
    step = mpmath.mpf(size) * mpmath.mpf(10) ** -12
    below, here, above = (function(place * step) for place in (-1, 0, 1))  # type: ignore[operator]
    return (above - below) / (2 * step), (above - 2 * here + below) / step**2


@pytest.mark.slow
def test_incomplete_gamma_functions_by_their_parameter() -> None:
    ks, xs = np.array(GAMMA).T
    found = [gammainc_by_k(ks, xs, order) for order in (1, 2)]
    with mpmath.workdps(60):
        for place, (k, x) in enumerate(GAMMA):
            wanted = differences(lambda step, k=k, x=x: gamma_part(k + step, x), k)
            density = mpmath.exp(k * mpmath.log(x) - x - mpmath.loggamma(k))
            for mine, exact in zip(found, wanted, strict=True):
                assert abs(mine[place] - exact) <= 1e-12 * max(abs(exact), density), (k, x)


@pytest.mark.slow
def test_incomplete_beta_functions_by_their_parameters() -> None:
    given = np.array(BETA).T
    for way in WAYS:
        found = [betainc_by(given[0], given[1], given[2], *way, order) for order in (1, 2)]
        with mpmath.workdps(60):
            for place, (a, b, x) in enumerate(BETA):
                p, q, z = map(mpmath.mpf, (a, b, x))
                wanted = differences(
                    lambda step, p=p, q=q, z=z, way=way: beta_part(p + way[0] * step, q + way[1] * step, z), min(a, b)
                )
                density = z**p * (1 - z) ** (q - 1) / mpmath.beta(p, q)
                for mine, exact in zip(found, wanted, strict=True):
                    assert abs(mine[place] - exact) <= 1e-12 * max(abs(exact), density), (a, b, x, way)


def test_parameters_that_are_large_or_tiny() -> None:
    k = np.array([1e8, 1e12, 1e300, 5e-324, 1e-300, 0.0])
    found = gammainc_by_k(k, np.array([1e8, 1e12, 1e300, 1.0, 1.0, 1.0]), 1)
    central, below = -1 / np.sqrt(2 * np.pi * k[:3]), -float(mpmath.e1(1))
    npt.assert_allclose(found, [*central, below, below, below], rtol=1e-9)
    a = np.array([1e8, 1e12, 1e-8])
    npt.assert_allclose(
        betainc_by(a, a, 0.5 + 0 * a, 1.0, 0.0, 1), [-0.5e-4 / np.sqrt(np.pi), -0.5e-6 / np.sqrt(np.pi), -2.5e7]
    )


def test_ends_are_constant_and_what_is_no_number_has_no_derivative() -> None:
    npt.assert_array_equal(gammainc_by_k(np.array([2.0, 2.0, 30.0]), np.array([0.0, np.inf, 0.0]), 1), 0.0)
    npt.assert_array_equal(
        gammainc_by_k(np.array([-1.0, np.nan, 1.0, 1.0]), np.array([1.0, 1.0, np.nan, -1.0]), 1), np.nan
    )
    a, x = np.array([2.0, 0.5, 40.0]), np.array([0.0, 1.0, 1.0])
    npt.assert_array_equal(betainc_by(a, a, x, 1.0, 0.0, 1), 0.0)
    npt.assert_array_equal(
        betainc_by(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.5, 1.5]), 1.0, 0.0, 1), np.nan
    )
    k, x = T.dvectors("k", "x")
    slopes = graphc.function(
        [k, x], [*grad(T.gammainc(k, x).sum(), [k, x]), *grad(T.gammaincinv(k, x).sum(), [k])], "interpreted"
    )
    npt.assert_allclose(slopes([1.0, 2.0], [0.0, 0.0]), [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])


@pytest.mark.slow
def test_the_distribution_of_t_has_derivatives_at_0_in_both_tails_and_at_the_ends() -> None:
    """The derivative by df is odd in t. At t = 0 the distribution is 1/2 for all df, its density is not."""
    df, t = T.dvectors("df", "t")
    by_df, by_t = grad(T.stdtr(df, t).sum(), [df, t])
    f = graphc.function([df, t], [by_df, by_t, grad(by_df.sum(), t)], "interpreted")
    freedom, places = np.full(7, 3.0), np.array([-np.inf, -1e-6, 0.0, 1e-6, 1e3, -1e3, np.inf])
    first, density, mixed = f(freedom, places)
    slope = 2 / (np.sqrt(3) * np.pi) * log_density_slope(3.0)
    npt.assert_allclose(mixed[2], slope, rtol=1e-13)
    npt.assert_allclose(first[1:4], [-1e-6 * slope, 0, 1e-6 * slope], rtol=1e-11)
    npt.assert_allclose([first[4], first[0], first[6], density[0], density[6]], [-first[5], 0, 0, 0, 0])


def log_density_slope(df: float) -> float:
    """The derivative of the logarithm of the density of t at 0 by df."""
    return 0.5 * float(mpmath.digamma((df + 1) / 2) - mpmath.digamma(df / 2)) - 0.5 / df


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_functions_have_derivatives_by_parameters_to_second_order(mode: str) -> None:
    """Of the values, and of their inverses, at once."""
    a, b, x = T.dscalars("a", "b", "x")
    at = (2.0, 3.0, 0.3)

    def inverse_beta(a: mpmath.mpf, b: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
        return mpmath.findroot(lambda x: beta_part(a, b, x) - y, (0.2, 0.5), solver="anderson", tol=1e-40)

    def inverse_gamma(a: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
        return mpmath.findroot(lambda x: gamma_part(a, x) - y, (0.5, 2.0), solver="anderson", tol=1e-40)

    cases = [
        (T.gammainc(a, x), lambda a, b, x: gamma_part(a, x)),
        (T.gammaincc(a, x), lambda a, b, x: 1 - gamma_part(a, x)),
        (T.gammal(a, x), lambda a, b, x: mpmath.gammainc(a, 0, x)),
        (T.gammau(a, x), lambda a, b, x: mpmath.gammainc(a, x)),
        (T.chi2sf(x, a), lambda a, b, x: 1 - gamma_part(a / 2, x / 2)),
        (T.betainc(a, b, x), beta_part),
        (T.stdtr(a, x), lambda a, b, x: 1 - beta_part(a / 2, mpmath.mpf(0.5), a / (a + x * x)) / 2),
        (T.betaincinv(a, b, x), inverse_beta),
        (T.gammaincinv(a, x), lambda a, b, x: inverse_gamma(a, x)),
        (T.gammainccinv(a, x), lambda a, b, x: inverse_gamma(a, 1 - x)),
    ]
    outputs: list[Any] = []
    wanted: list[Any] = []
    with mpmath.workdps(40):
        for node, exact in cases:
            first = grad(node, [a, b, x], disconnected_inputs="ignore")
            direction = first[0] + 0.5 * first[1] - 0.3 * first[2]
            outputs += [
                direction,
                sum(
                    w * g
                    for w, g in zip(
                        (1.0, 0.5, -0.3), grad(direction, [a, b, x], disconnected_inputs="ignore"), strict=True
                    )
                ),
            ]
            point = [mpmath.mpf(each) for each in at]

            def along(step: mpmath.mpf, exact: object = exact, point: list[mpmath.mpf] = point) -> mpmath.mpf:
                return exact(point[0] + step, point[1] + 0.5 * step, point[2] - mpmath.mpf(0.3) * step)  # type: ignore[operator]

            wanted += differences(along, 1.0)
    found = graphc.function([a, b, x], outputs, mode=mode, on_unused_input="ignore")(*at)
    npt.assert_allclose(found, np.array([float(each) for each in wanted]), rtol=1e-10)


def test_float32_is_computed_as_float64() -> None:
    k, x = T.fvectors("k", "x")
    f = graphc.function([k, x], grad(T.gammainc(k, x).sum(), k), mode="interpreted")
    ks, xs = np.array([0.5, 3.0, 40.0], "float32"), np.array([1.0, 2.0, 50.0], "float32")
    npt.assert_array_equal(f(ks, xs), gammainc_by_k(ks.astype("float64"), xs.astype("float64"), 1).astype("float32"))


WITHOUT = [
    *((name, 2, (0,)) for name in ("jv", "iv", "yv", "kv", "ive", "kve", "polygamma")), ("hyp2f1", 4, (0, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "count", "missing"), WITHOUT)
def test_a_derivative_that_is_missing_is_an_error_that_names_it(
    name: str, count: int, missing: tuple[int, ...]
) -> None:
    args = [T.dvector(f"p{place}") for place in range(count)]
    value = getattr(T, name)(*args)
    for place in range(count):
        for cost in (value.sum(), T.switch(args[-1] > 0, value, 0).sum()):
            if place not in missing:
                grad(cost, args[place], null_gradients="raise")
                continue
            with pytest.raises(NullTypeGradError, match=rf"{name} by argument {place}, p{place} \(.*not implemented"):
                grad(cost, args[place], null_gradients="raise")
            assert str(grad(cost, args[place], null_gradients="return")) == "<NullType>"
            with pytest.raises(NullTypeGradError):
                graphc.jvp(cost, args[place], args[place])
