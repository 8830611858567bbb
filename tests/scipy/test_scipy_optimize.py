"""graphc.scipy.optimize against SciPy, closed forms and differences. Loops that are SciPy's give its bits but for
rounding; others end within their tolerance, of which the error is the square where the loop is Newton's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.scipy import optimize


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Nothing is compiled: these loops are made of the same ops as those of the other tests."""
    with graphc.options.change(mode="interpreted"):
        yield


@pytest.mark.slow
def test_roots_of_one_number() -> None:
    def f(x: Any) -> Any:
        return jnp.cos(x) - x

    def plain(x: float) -> Any:
        return np.cos(x) - x

    for name in ("brentq", "bisect"):
        ours, found = getattr(optimize, name)(f, 0.0, 2.0, full_output=True)
        theirs, known = getattr(scipy.optimize, name)(plain, 0.0, 2.0, full_output=True)
        assert abs(ours - theirs) < 1e-15 and found.function_calls == known.function_calls
        assert found.converged and found.message == "converged"
    assert abs(optimize.newton(f, 1.0) - optimize.newton(f, 1.0, x1=1.1)) < 1e-14
    for search in (partial(optimize.brentq, a=0.0, b=2.0), partial(optimize.root_scalar, bracket=(0.0, 2.0))):
        with pytest.raises(ValueError, match="different signs"):
            search(lambda x: x * x + 1)
    assert np.isnan(graphc.jit(lambda b: optimize.brentq(lambda x: x * x + 1, 0.0, b))(2.0))
    for search in (partial(optimize.brentq, a=0.0, b=2.0), partial(optimize.newton, x0=9.0)):
        with pytest.raises(RuntimeError, match="failed to converge after 2 iterations"):
            search(f, maxiter=2)
        assert np.isfinite(search(f, maxiter=2, disp=False))
    assert optimize.brentq(lambda x: x, 0.0, 2.0) == 0 and optimize.bisect(lambda x: x - 2, 0.0, 2.0) == 2
    short = optimize.root_scalar(f, bracket=(0.0, 2.0), maxiter=2)
    assert not short.converged and short.message == "convergence error"


@pytest.mark.slow
def test_derivatives_of_roots() -> None:
    def square_root(a: Any) -> Any:
        return optimize.brentq(lambda x: x**2 - a, 0.0, 9.0)

    a = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(graphc.vmap(graphc.grad(square_root))(a), 0.5 / np.sqrt(a), rtol=1e-11)
    assert abs(graphc.grad(graphc.grad(square_root))(4.0) + 1 / 32) < 1e-11

    def short(a: Any) -> Any:
        return optimize.root_scalar(lambda x: x**2 - a, bracket=(0.0, 9.0), maxiter=2).root

    assert np.isnan(graphc.grad(short)(4.0))  # there is no root that it could be the derivative of


def pair(x: Any, a: Any) -> Any:
    return [x[0] ** 2 + x[1] - a, x[0] - x[1] ** 2]


@pytest.mark.slow
def test_systems() -> None:
    found = optimize.root(pair, [1.0, 1.0], args=(3.0,), tol=1e-14)
    known = scipy.optimize.root(pair, [1.0, 1.0], args=(3.0,), tol=1e-14)
    np.testing.assert_allclose(found.x, known.x, rtol=1e-13)
    assert found.success and found.message == known.message
    x, y = found.x
    slope = graphc.jit(graphc.jacobian(lambda a: optimize.root(pair, a * jnp.ones(2) / 3, args=(a,)).x))(3.0)
    exact = np.linalg.solve([[2 * x, 1], [1, -2 * y]], [1, 0])  # and the guess, which depends on a, counts for nothing
    np.testing.assert_allclose(slope, exact, rtol=1e-12)
    none = optimize.root(lambda x: [x[0] ** 2 + 1.0], [1.0])
    assert not none.success and "progress" in none.message
    assert abs(optimize.fixed_point(jnp.cos, 1.0) - 0.7390851332151607) < 1e-12
    slope = graphc.grad(lambda a: optimize.fixed_point(lambda x: jnp.cos(a * x), 1.0))(1.0)
    x = 0.7390851332151607
    assert abs(slope + x * np.sin(x) / (1 + np.sin(x))) < 1e-12


@pytest.mark.slow
def test_minima(interpreted: None) -> None:
    def valley(x: Any, a: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)

    found = optimize.minimize(valley, np.array([-1.2, 1.0, 0.5]), args=(1.0,))
    np.testing.assert_allclose(found.x, 1, atol=1e-5)
    assert found.success and found.nit < 100 and np.max(abs(found.jac)) <= 1e-5
    slope = graphc.jacobian(lambda a: optimize.minimize(valley, jnp.array([-1.2, 1.0]), args=(a,), tol=1e-9).x)(1.0)
    np.testing.assert_allclose(slope, [1, 2], rtol=1e-7)  # of (a, a^2)
    shared = T.dvector("a")  # the guess is what the function takes from around it, too
    near = optimize.minimize(lambda x: T.sum((x - shared) ** 2 + 1.0), shared + 0.0).x
    np.testing.assert_allclose(graphc.function([shared], near)(np.arange(3.0)), np.arange(3.0), atol=1e-6)
    ours = optimize.minimize_scalar(lambda x, a: (x - a) ** 2 + jnp.exp(x), bounds=(-3.0, 3.0), args=(1.0,))
    theirs = scipy.optimize.minimize_scalar(lambda x: (x - 1) ** 2 + np.exp(x), bounds=(-3.0, 3.0), method="bounded")
    assert abs(ours.x - theirs.x) < 1e-8 and ours.nfev == theirs.nfev
    step, _, _, after, before, slope = optimize.line_search(
        lambda x: jnp.sum(x**4), None, np.array([1.0]), np.array([-4.0])
    )
    assert after <= before - 1e-4 * step * 16 and abs(slope) <= 0.9 * 16


@pytest.mark.slow
def test_least_squares_and_fits(interpreted: None) -> None:
    found = optimize.least_squares(lambda x: [10 * (x[1] - x[0] ** 2), 1 - x[0]], [-1.2, 1.0])
    np.testing.assert_allclose(found.x, [1, 1], rtol=1e-7)
    assert found.success and found.nfev < 60
    x = np.linspace(0, 3, 12)
    y = 2.5 * np.exp(-1.3 * x) + 0.5 + 0.05 * np.sin(20 * x)
    tight: Any = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}

    def model(x: Any, a: Any, b: Any, c: Any) -> Any:
        return a * jnp.exp(-b * x) + c

    def plain(x: Any, a: Any, b: Any, c: Any) -> Any:
        return a * np.exp(-b * x) + c

    keys: Any
    for keys in ({}, {"sigma": 0.1 + x, "absolute_sigma": True}, {"sigma": np.diag(0.1 + x)}):
        ours = optimize.curve_fit(model, x, y, **keys, **tight)
        theirs = scipy.optimize.curve_fit(plain, x, y, **keys, **tight)
        for mine, known in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-5)  # SciPy's Jacobian is by differences of 1e-8
    slope = graphc.jacobian(lambda y: optimize.curve_fit(model, x, y, **tight)[0])(y)[:, 1]
    up, down = (scipy.optimize.curve_fit(plain, x, y + h * (np.arange(12) == 1), **tight)[0] for h in (1e-3, -1e-3))
    np.testing.assert_allclose(slope, (up - down) / 2e-3, rtol=1e-3)


def test_what_optimize_refuses() -> None:
    x = T.dvector("x")
    for call, said in (
        (lambda: optimize.minimize(lambda x: x.sum(), x, method="COBYLA"), "BFGS, L-BFGS-B, SLSQP are"),
        (lambda: optimize.minimize(lambda x: x.sum(), x, method="BFGS", bounds=[(0, 1)]), "no bounds"),
        (lambda: optimize.minimize(lambda x: x.sum(), x, options={"maxls": 3}), "no option 'maxls'"),
        (lambda: optimize.least_squares(lambda x: x, x, method="lm", bounds=(0, 1)), "trf"),
        (lambda: optimize.minimize(lambda x: x, x), "a number"),
        (lambda: optimize.root(lambda x: x, x, method="krylov"), "hybr"),
        (lambda: optimize.brentq(lambda x: x, x, 1.0), "vmap"),
        (lambda: optimize.curve_fit(lambda x, *p: x, x, x), "give p0"),
        (
            lambda: optimize.minimize(lambda w: w @ w if w[0] > 0 else 0.0, np.ones(2)),
            r"w, an argument of <lambda> \(test_scipy_optimize.py:\d+\), whose value is not known in advance",
        ),
    ):
        with pytest.raises(GraphcError, match=said):
            call()
    for name, said in (("nnls", "by cases"), ("linear_sum_assignment", "by cases"), ("fsolve", "root")):
        with pytest.raises(AttributeError, match=said):
            getattr(optimize, name)
