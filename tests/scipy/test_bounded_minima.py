"""Minima of tensors within bounds and under constraints, against closed forms and SciPy.

A projected gradient below g at a minimum whose second derivatives are at least c leaves an error of x below g / c."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import graphc
import graphc.numpy as jnp
from graphc.errors import GraphcError
from graphc.scipy import optimize

TIGHT: Any = {"gtol": 1e-10, "ftol": 0.0}


@pytest.fixture
def interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


def valley(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.slow
def test_bounds_of_tensors(interpreted: None) -> None:
    found = graphc.jit(lambda x, low, high: optimize.minimize(valley, x, bounds=optimize.Bounds(low, high)))
    draw = np.random.default_rng(1)
    for _ in range(3):
        low = draw.uniform(-2, 0.5, size=4)
        high = low + draw.uniform(0, 2, size=4)
        start = draw.normal(size=4)
        ours = found(start, low, high)
        theirs = scipy.optimize.minimize(valley, start, bounds=scipy.optimize.Bounds(low, high))
        assert ours.success and ours.nfev < 200 and ours.fun <= theirs.fun + 1e-6 * (1 + abs(theirs.fun))
        assert np.all((ours.x >= low) & (ours.x <= high)), "bounds hold to the bit"


@pytest.mark.slow
def test_a_limited_memory_finds_free_minima() -> None:
    """Compiled: the other tests here are about what is computed."""
    x = graphc.jit(lambda x: optimize.minimize(valley, x, method="L-BFGS-B", options=TIGHT).x)(
        np.array([-1.2, 1.0, 0.5])
    )
    np.testing.assert_allclose(x, 1, atol=1e-8)


def nearest(p: Any, a: Any) -> Any:
    return jnp.sum((p["w"] - a) ** 2) + (p["b"] - 1.0) ** 2


@pytest.mark.slow
def test_derivatives_by_bounds(interpreted: None) -> None:
    def ends(low: Any, high: Any) -> Any:
        start = {"w": np.zeros(3), "b": 5.0}
        found = optimize.minimize(nearest, start, (2.0,), bounds={"w": (low, high), "b": (None, 0.5)}, options=TIGHT)
        return found.x["w"]

    low, high = np.array([3.0, 0.0, 0.0]), np.array([9.0, 1.0, 9.0])
    np.testing.assert_allclose(ends(low, high), [3, 1, 2], atol=1e-9)
    by_low, by_high = graphc.jit(graphc.jacobian(ends, argnums=(0, 1)))(low, high)
    np.testing.assert_allclose(by_low, np.diag([1.0, 0.0, 0.0]), atol=1e-12)
    np.testing.assert_allclose(by_high, np.diag([0.0, 1.0, 0.0]), atol=1e-12)


@pytest.mark.slow
def test_derivatives_under_constraints(interpreted: None) -> None:
    """The sum is given, by four ways to say it."""
    count = 3

    def parts(a: Any, total: Any, way: int) -> Any:
        def miss(w: Any) -> Any:
            return jnp.sum((w - a) ** 2)

        limit: Any = (
            {"type": "eq", "fun": lambda w: w.sum() - total},
            optimize.NonlinearConstraint(lambda w: {"sum": w.sum()}, total, total),
            optimize.LinearConstraint(np.ones(count), total, total),
            {"known": {"type": "eq", "fun": lambda w, end: w.sum() - end, "args": (total,)}},
        )[way]
        found = optimize.minimize(miss, np.zeros(count), constraints=limit, tol=1e-9)
        return found.x, found.multipliers, found.success

    def all_ways(a: Any, total: Any) -> Any:
        return [parts(a, total, way) for way in range(4)], graphc.jacobian(
            lambda a, total: parts(a, total, 0)[0], argnums=(0, 1)
        )(a, total)

    a, total = np.array([1.0, 2.0, 4.0]), 1.0
    made, (by_a, by_total) = graphc.jit(all_ways)(a, total)
    by = (a.sum() - total) * 2 / count
    for x, multipliers, success in made:
        np.testing.assert_allclose(x, a + (total - a.sum()) / count, atol=1e-8)
        np.testing.assert_allclose(multipliers, by, atol=1e-7)
        assert success
    np.testing.assert_allclose(by_a, np.eye(count) - 1 / count, atol=1e-9)
    np.testing.assert_allclose(by_total, np.full(count, 1 / count), atol=1e-9)


@pytest.mark.slow
def test_constraints_that_hold_and_do_not(interpreted: None) -> None:
    ball = optimize.NonlinearConstraint(lambda p: jnp.sum(p["w"] ** 2), -np.inf, 1.0)
    loose = optimize.LinearConstraint({"w": np.ones((2, 3)), "b": np.zeros(2)}, -np.inf, 100.0)

    def found(a: Any) -> Any:
        start = {"w": np.zeros(3), "b": 0.0}
        return optimize.minimize(nearest, start, (a,), bounds={"b": (2.0, 3.0)}, constraints=[ball, loose], tol=1e-8)

    made = graphc.jit(found)(2.0)
    np.testing.assert_allclose(made.x["w"], 3**-0.5, atol=1e-7)
    assert made.x["b"] == 2.0 and made.success and np.all(made.multipliers[1:] == 0)
    np.testing.assert_allclose(graphc.jit(found)(0.1).x["w"], 0.1, atol=1e-7)
    never = {"type": "eq", "fun": lambda p: p["b"] ** 2 + 1.0}
    none = graphc.jit(lambda a: optimize.minimize(nearest, {"w": np.zeros(1), "b": 0.0}, (a,), constraints=never))(1.0)
    assert not none.success and "not met" in none.message


@pytest.mark.slow
def test_least_squares_within_bounds(interpreted: None) -> None:
    t = np.linspace(0, 3, 12)
    y = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.05 * np.sin(20 * t)

    def model(t: Any, a: Any, b: Any, c: Any) -> Any:
        return a * jnp.exp(-b * t) + c

    def plain(t: Any, a: Any, b: Any, c: Any) -> Any:
        return a * np.exp(-b * t) + c

    start = [1.0, 1.0, 0.0]
    tight: Any = {"ftol": 1e-13, "xtol": 1e-13, "gtol": 1e-13}
    fit = graphc.jit(lambda y, top: optimize.curve_fit(model, t, y, start, bounds=(0.0, [3.0, top, 2.0]), **tight))
    for top in (1.1, 3.0):
        ours = fit(y, top)
        theirs: Any = scipy.optimize.curve_fit(plain, t, y, start, bounds=(0.0, [3.0, top, 2.0]), **tight)
        for mine, known in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-5)  # SciPy's Jacobian is by differences of 1e-8
    by_name = graphc.jit(lambda y: optimize.curve_fit(model, t, y, start, bounds={"b": (None, 1.1)})[0])(y)
    assert by_name[1] == 1.1

    def at(top: Any) -> Any:
        fun = lambda p: model(t, *p) - y  # noqa: E731
        return optimize.least_squares(fun, start, bounds=(0.0, jnp.stack([3.0, top, 2.0])), ftol=1e-14, xtol=1e-14).x

    slope = graphc.jacobian(at)(1.1)
    up, down = (
        scipy.optimize.curve_fit(plain, t, y, start, bounds=(0.0, [3.0, top, 2.0]), **tight)[0]
        for top in (1.1005, 1.0995)
    )
    np.testing.assert_allclose(slope, (up - down) / 1e-3, atol=1e-4)


@pytest.mark.slow
def test_covariances_under_constraints(interpreted: None) -> None:
    """Of x = y + e with unit variances: a projection. On a circle of radius r the far side of y has curvature |y| / r
    along the circle (the second derivative of the Lagrangian), the far side of all other directions none."""
    y = np.array([3.0, 4.0])

    def miss(p: Any) -> Any:
        return jnp.sum((p["x"] - y) ** 2) / 2 + jnp.sum((p["z"] - 1.0) ** 2)

    start = {"x": np.array([1.0, 1.0]), "z": 0.0}
    line = optimize.LinearConstraint({"x": np.array([1.0, -1.0])}, 0.0, 0.0)
    loose = optimize.NonlinearConstraint(lambda p: p["z"], -9.0, 9.0)
    for method in ("SLSQP", "COBYQA"):
        found = optimize.minimize(miss, start, method=method, constraints=[line, loose])
        np.testing.assert_allclose(found.covariance["x"], np.full((2, 2), 0.5), atol=1e-9)
        np.testing.assert_allclose(found.covariance["z"], 0.5, atol=1e-9)
    circle = optimize.NonlinearConstraint(lambda p: jnp.sum(p["x"] ** 2), -np.inf, 4.0)
    found = optimize.minimize(miss, start, constraints=circle, options={"ftol": 1e-14}, bounds={"z": (2.0, None)})
    along = np.array([-4.0, 3.0]) / 5
    np.testing.assert_allclose(found.covariance["x"], np.outer(along, along) * 2 / 5, atol=1e-6)
    assert found.covariance["z"] == 0


def test_what_bounds_of_tensors_refuse() -> None:
    x = graphc.tensor.dvector("x")
    for bounds, said in (
        ([(2.0, 1.0)], r"bounds of x\[0\] are 2.0 and 1.0"),
        ({"w": (0, 1)}, "no parameter has that name"),
        ([3.0], "must be a pair"),
        ([[(0, 1)]], "must be a pair"),
        (optimize.Bounds(np.zeros((2, 2))), "2 axes"),
    ):
        with pytest.raises(GraphcError, match=said):
            optimize.minimize(lambda x: x.sum(), x, bounds=bounds)
    with pytest.raises(GraphcError, match="2 pairs, and x0 has 3"):
        graphc.jit(lambda a: optimize.minimize(lambda x: ((x - a) ** 2).sum(), np.zeros(3), bounds=[(0, 1)] * 2))(1.0)
    with pytest.raises(GraphcError, match="constraint number 0 must have the type"):
        optimize.minimize(lambda x: x.sum(), x, constraints=[{"type": "le", "fun": lambda x: x}])
