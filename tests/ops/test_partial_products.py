"""Derivatives of products whose parts overflow, vanish or are 0: the exact products of the other factors."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc.autodiff import grad, jacobian, jvp


def others(factors: Any, first: int, last: int) -> Any:
    """The product of the factors up to `last`, without one of them."""
    product = Fraction(1)
    for place, factor in enumerate(factors[: last + 1]):
        product *= Fraction(float(factor)) if place != first else 1
    try:
        return float(product)
    except OverflowError:
        return np.inf if product > 0 else -np.inf


def exact_jacobian(factors: Any) -> Any:
    """The derivatives of the running products by the factors."""
    count = len(factors)
    return np.array([[others(factors, i, k) if i <= k else 0.0 for i in range(count)] for k in range(count)])


def hard_factors(dtype: str, count: int, rng: np.random.Generator) -> Any:
    most = 300 if dtype == "float64" else 36
    factors = 10.0 ** rng.integers(-most, most + 1, count) * rng.choice([1.0, -1.0, 1.7, 0.3], count)
    return np.where(rng.random(count) < 0.15, 0.0, factors).astype(dtype)


@cache
def derivatives(dtype: str, mode: str) -> Any:
    x = T.vector("x", dtype=dtype)
    turned = T.cumprod(x[::-1])[::-1]
    tangent = jvp(T.prod(x), x, T.ones_like(x))
    return graphc.function([x], [jacobian(T.cumprod(x), x), jacobian(turned, x), grad(T.prod(x), x), tangent], mode)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_products_of_the_others_are_exact(dtype: str, mode: str) -> None:
    """Eight roundings and eight more for scales; what is below the smallest normal number may be off by as much."""
    f, rng, limits = derivatives(dtype, mode), np.random.default_rng(7), np.finfo(np.dtype(dtype))
    bound: Any = {"rtol": 32 * limits.eps, "atol": limits.smallest_normal}
    for count in (1, 2, 8):
        for _ in range(8):
            factors = hard_factors(dtype, count, rng)
            forward, turned, gradient, tangent = f(factors)
            with np.errstate(over="ignore"):
                wanted = exact_jacobian(factors).astype(dtype)
                npt.assert_allclose(forward, wanted, **bound)
                npt.assert_allclose(turned[::-1, ::-1], exact_jacobian(factors[::-1]).astype(dtype), **bound)
                npt.assert_allclose(gradient, wanted[-1], **bound)
                if np.isfinite(wanted[-1]).all() and (wanted[-1] >= 0).all():
                    npt.assert_allclose(tangent, wanted[-1].sum(), **bound)


def test_many_factors_and_axes() -> None:
    factors = np.random.default_rng(0).permutation(np.concatenate([np.full(3000, 1.3), np.full(3000, 1 / 1.3)]))
    x, a = T.dvector("x"), T.dtensor3("a")
    f = graphc.function([x], grad(T.prod(x), x), "interpreted")
    npt.assert_allclose(f(factors) * factors, 1.0, rtol=6000 * 2.0**-52)
    b = np.array([[[1e200, 0.0], [1e-200, 3.0]], [[1e200, 1e200], [1e-200, 1e200]]])
    g = graphc.function([a], grad((T.prod(a, axis=(0, 2)) * [1.0, 2.0]).sum(), a), "interpreted")(b)
    for row, weight in ((0, 1.0), (1, 2.0)):
        flat, found = b[:, row].ravel(), g[:, row].ravel()
        npt.assert_allclose(found, [weight * others(flat, i, 3) for i in range(4)], rtol=1e-14)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_are_multiplied_as_such(special: float) -> None:
    x = T.dvector("x")
    f = graphc.function([x], [grad(T.prod(x), x), grad(T.cumprod(x)[-1], x)], "interpreted")
    for found in f([2.0, special, -3.0]):
        npt.assert_array_equal(found, [special * -3.0, -6.0, 2.0 * special])


def test_second_derivatives_at_zeros() -> None:
    x = T.dvector("x")
    hessian = graphc.function([x], [graphc.hessian(T.prod(x), x), graphc.hessian(T.cumprod(x)[-1], x)], "interpreted")
    for found in hessian([0.0, 0.0, 3.0]):
        npt.assert_array_equal(found, [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
