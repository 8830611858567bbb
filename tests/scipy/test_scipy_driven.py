"""graphc.scipy.optimize of arrays: SciPy's algorithms with derivatives of the graph, against SciPy with gradients
written by hand. The same algorithm from the same start, with derivatives that differ by rounding, ends at the same
place within its tolerance; where counts are compared, no step is near enough to a decision for rounding to change
it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.scipy import optimize
from graphc.scipy.optimize.kernels import Kernel, Objective, Residuals
from graphc.scipy.optimize.parameters import Packing
from graphc.startup.process import PROCESS


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Nothing is compiled, where SciPy's side is the point."""
    with graphc.options.change(mode="interpreted"):
        yield


def valley(p: Any) -> Any:
    return (1.0 - p["a"]) ** 2 + 10.0 * (p["b"] - p["a"] ** 2) ** 2


def valley_by_hand(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2


def slope_by_hand(x: Any) -> Any:
    rest = x[1] - x[0] ** 2
    return np.array([-2 * (1 - x[0]) - 40 * x[0] * rest, 20 * rest])


def bend_by_hand(x: Any) -> Any:
    return np.array([[2 - 40 * (x[1] - 3 * x[0] ** 2), -40 * x[0]], [-40 * x[0], 20.0]])


METHODS = {
    **dict.fromkeys("Nelder-Mead Powell COBYLA COBYQA".split(), ()),
    **dict.fromkeys("CG BFGS L-BFGS-B TNC SLSQP".split(), ("jac",)),
    **dict.fromkeys("Newton-CG trust-ncg trust-krylov trust-constr".split(), ("jac", "hessp")),
    **dict.fromkeys("dogleg trust-exact".split(), ("jac", "hess")),
}
BY_HAND = {"jac": slope_by_hand, "hess": bend_by_hand, "hessp": lambda x, v: bend_by_hand(x) @ v}


@pytest.mark.slow
def test_every_method_gets_the_derivatives_that_it_takes(interpreted: None) -> None:
    start = np.array([1.4, 1.8])  # where the second derivatives are positive definite, as dogleg needs them
    for method, takes in METHODS.items():
        ours = optimize.minimize(valley, {"a": start[0], "b": start[1]}, method=method)
        theirs = scipy.optimize.minimize(
            valley_by_hand, start, method=method, **{name: BY_HAND[name] for name in takes}
        )  # fmt: skip
        found = np.array([ours.x["a"], ours.x["b"]])
        # COBYLA compares values at the last bit, and ends within its radius
        np.testing.assert_allclose(found, theirs.x, atol=0.02 if method == "COBYLA" else 1e-6, err_msg=method)
        assert ours.success == theirs.success and (ours.nfev == theirs.nfev or method == "COBYLA"), method
        assert ours.message == theirs.message and ours.scipy.x.shape == (2,), method
        if "jac" in takes and method != "trust-constr":
            assert ours.jac.keys() == {"a", "b"}


@dataclass
class Model:
    slopes: Any
    level: Any


def likelihood(p: Any, x: Any, y: Any) -> Any:
    z = x @ p.slopes + p.level
    return (jnp.exp(z) - y * z).sum()


@pytest.mark.slow
def test_a_poisson_regression() -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(80, 3))
    y = draw.poisson(np.exp(x @ [0.5, -0.3, 0.0] + 0.4)).astype("float64")

    def by_hand(p: Any) -> Any:
        z = p[3] + x @ p[:3]
        rest = np.exp(z) - y
        return np.sum(np.exp(z) - y * z), np.append(x.T @ rest, rest.sum())

    ours = optimize.minimize(likelihood, Model(np.zeros(3), 0.0), args=(x, y))
    theirs = scipy.optimize.minimize(by_hand, np.zeros(4), jac=True)
    np.testing.assert_allclose(np.append(ours.x.slopes, ours.x.level), theirs.x, rtol=1e-7)
    assert isinstance(ours.x, Model) and ours.nfev == theirs.nfev and ours.jac.slopes.shape == (3,)
    rows = np.column_stack([x, np.ones(80)])
    exact = np.linalg.inv(rows.T @ (np.exp(rows @ ours.scipy.x)[:, None] * rows))
    spread = ours.covariance
    np.testing.assert_allclose(spread.matrix, exact, rtol=1e-10)
    assert spread.names == ["slopes[0]", "slopes[1]", "slopes[2]", "level"]
    np.testing.assert_allclose(spread["slopes", "level"], exact[:3, 3], rtol=1e-10)
    np.testing.assert_allclose(spread.errors.level, exact[3, 3] ** 0.5, rtol=1e-10)
    np.testing.assert_allclose(np.diag(spread.correlation), 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).covariance, spread)
    before = PROCESS.compilations
    held = optimize.minimize(
        likelihood, Model(np.zeros(2), 0.0), args=(x[:50, :2], y[:50]), bounds={"slopes": ([0.9, -np.inf], None)}
    )
    assert PROCESS.compilations == before, "another size compiles nothing"
    assert held.x.slopes[0] == 0.9 and held.nit > 0 and held.scipy.message.startswith("CONVERGENCE")
    assert held.covariance["slopes"][0, 0] == 0 and held.covariance["slopes"][1, 1] > 0


@pytest.mark.slow
def test_constraints_by_name(interpreted: None) -> None:
    def cost(p: Any) -> Any:
        return (p["a"] - 2.0) ** 2 + jnp.sum((p["w"] - jnp.array([1.0, 3.0])) ** 2)

    budget = optimize.LinearConstraint({"a": 1.0, "w": np.array([1.0, 1.0])}, ub=4.0)
    ball = optimize.NonlinearConstraint(lambda p: {"r": p["a"] ** 2 + jnp.sum(p["w"] ** 2)}, -np.inf, 6.0)
    named = {"budget": budget, "ball": ball}
    exact = scipy.optimize.minimize(
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2 + (x[2] - 3) ** 2,
        np.ones(3) / 2,
        jac=lambda x: 2 * (x - [2, 1, 3]),
        method="SLSQP",
        options={"ftol": 1e-12},
        constraints=[
            scipy.optimize.LinearConstraint(np.ones(3), -np.inf, 4.0),
            {"type": "ineq", "fun": lambda x: 6 - x @ x, "jac": lambda x: -2 * x},
        ],
    ).x
    start = {"a": 0.5, "w": np.array([0.5, 0.5])}
    settings: Any = {"SLSQP": {"ftol": 1e-12}, "trust-constr": {"gtol": 1e-8}, "COBYQA": {}, None: {"ftol": 1e-12}}
    for method, options in settings.items():
        found = optimize.minimize(cost, start, method=method, constraints=named, options=options)
        np.testing.assert_allclose([found.x["a"], *found.x["w"]], exact, atol=2e-5, err_msg=str(method))
    found = optimize.minimize(cost, start, constraints={"type": "eq", "fun": lambda p, s: p["a"] - s, "args": (1.5,)})
    np.testing.assert_allclose([found.x["a"], *found.x["w"]], [1.5, 1, 3], atol=1e-6)
    matrix = scipy.optimize.LinearConstraint([[1.0, 0.0, -1.0]], 0.0, 0.0)
    found = optimize.minimize(cost, start, constraints=[matrix], bounds=optimize.Bounds({"a": -9, "w": [-9, 0.0]}, 9))
    np.testing.assert_allclose([found.x["a"], *found.x["w"]], [2.5, 1, 2.5], atol=1e-6)
    # The Hessian is twice the identity; a and w[1] can only move together.
    np.testing.assert_allclose(found.covariance.errors["a"], 0.5, rtol=1e-6)
    np.testing.assert_allclose(found.covariance.errors["w"], [np.sqrt(0.5), 0.5], rtol=1e-6)


def decay(x: Any, a: Any, k: Any, c: Any) -> Any:
    return a * jnp.exp(-k * x) + c


def decay_by_hand(x: Any, a: Any, k: Any, c: Any) -> Any:
    return a * np.exp(-k * x) + c


def decay_slopes(x: Any, a: Any, k: Any, c: Any) -> Any:
    e = np.exp(-k * x)
    return np.column_stack([e, -a * x * e, np.ones_like(x)])


@pytest.mark.slow
def test_curves() -> None:
    x = np.linspace(0, 3, 40)
    y = decay_by_hand(x, 2.5, 1.3, 0.5) + 0.05 * np.sin(20 * x)
    weights = 0.1 + x
    for more in ({}, {"sigma": weights, "absolute_sigma": True}, {"sigma": np.diag(weights)}):
        ours = optimize.curve_fit(decay, x, y, **more)
        theirs = scipy.optimize.curve_fit(
            decay_by_hand, x, y, jac=decay_slopes, ftol=1e-8, xtol=1e-8, gtol=1e-8, **more
        )
        for mine, known in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-6)
    best, spread = optimize.curve_fit(decay, x, y, {"k": 1.0, "a": 1.0, "c": 0.0}, bounds={"c": (None, 0.4)})
    known = scipy.optimize.curve_fit(
        decay_by_hand, x, y, [1, 1, 0], jac=decay_slopes, bounds=(-np.inf, [np.inf, np.inf, 0.4])
    )
    np.testing.assert_allclose([best["a"], best["k"], best["c"]], known[0], rtol=1e-5)
    np.testing.assert_allclose(spread["a", "k"], known[1][0, 1], rtol=1e-4)
    by_position = optimize.curve_fit(decay, x, y, [1.0, 1.0, 0.0], bounds={"c": (None, 0.4)})[0]
    np.testing.assert_allclose(by_position, known[0], rtol=1e-5)

    def residuals(p: Any, x: Any, y: Any) -> Any:
        return decay(x, p["ak"][0], p["ak"][1], p["c"]) - y

    start = {"ak": np.ones(2), "c": 0.0}
    for method, loss in ((None, "linear"), ("trf", "linear"), ("dogbox", "soft_l1"), ("trf", "cauchy")):
        seen: list[Any] = []
        callback = None if method is None else seen.append
        fit = optimize.least_squares(residuals, start, args=(x, y), method=method, loss=loss, callback=callback)
        known_fit = scipy.optimize.least_squares(
            lambda p: decay_by_hand(x, *p) - y, np.array([1.0, 1.0, 0.0]), lambda p: decay_slopes(x, *p),
            method=method or "lm", loss=loss,
        )  # fmt: skip
        np.testing.assert_allclose(np.append(fit.x["ak"], fit.x["c"]), known_fit.x, rtol=1e-6)
        assert fit.nfev == known_fit.nfev and fit.njev == known_fit.njev and fit.status == known_fit.status
        np.testing.assert_allclose(fit.jac, known_fit.jac, rtol=1e-6)
        assert method is None or seen[-1]["ak"].shape == (2,)
    first = optimize.least_squares(residuals, start, args=(x, y))
    np.testing.assert_allclose(first.covariance.matrix, optimize.curve_fit(decay, x, y)[1], rtol=1e-4)
    with pytest.raises(RuntimeError, match="maxfev"):
        optimize.curve_fit(decay, x, y, maxfev=2)


@pytest.mark.slow
def test_equations_and_numbers(interpreted: None) -> None:
    def pair(p: Any, a: Any) -> Any:
        return [p["x"] ** 2 + p["y"] - a, p["x"] - p["y"] ** 2]

    for method, options in (("hybr", {}), ("lm", {}), ("krylov", {"fatol": 1e-10})):
        found = optimize.root(pair, {"x": 1.0, "y": 1.0}, args=(3.0,), method=method, options=options)
        known = scipy.optimize.root(
            lambda v: [v[0] ** 2 + v[1] - 3, v[0] - v[1] ** 2], [1, 1], tol=1e-14,
            jac=lambda v: [[2 * v[0], 1], [1, -2 * v[1]]],
        )  # fmt: skip
        np.testing.assert_allclose([found.x["x"], found.x["y"]], known.x, rtol=1e-7)
        assert found.success
    for method in ("brent", "golden"):
        ours = optimize.minimize_scalar(lambda x, a: (x - a) ** 2 + jnp.exp(x), args=(1.0,), method=method)
        theirs = scipy.optimize.minimize_scalar(lambda x: (x - 1) ** 2 + np.exp(x), method=method)
        assert abs(ours.x - theirs.x) < 1e-7 and ours.nfev == theirs.nfev
    for method, more in (
        ("halley", {"x0": 1.0}),
        ("ridder", {"bracket": (0.0, 3.0)}),
        ("toms748", {"bracket": (0, 3)}),
    ):
        found = optimize.root_scalar(lambda x, a: x**3 - a, args=(8.0,), method=method, **more)
        assert abs(found.root - 2) < 1e-10 and found.converged


def test_the_last_place_is_remembered_and_the_arrays_are_made_once() -> None:
    calls: list[Any] = []

    def kernel(*parts: Any, out: Any) -> None:
        calls.append(parts)
        out[0][...] = sum(part.sum() for part in parts)
        for array in out[1:]:
            array[...] = 1.0

    packing = Packing("minimize", {"b": 0.0, "w": np.ones((2, 2))})
    objective = Objective(packing, Kernel(kernel, (), [np.array(4.0), np.array(1.0), np.ones((2, 2))]), 1)
    assert objective.value(packing.start) == 4 and calls == []  # the first call told it
    x = np.arange(5.0)
    slope = objective.slope(x)
    assert objective.value(x.copy()) == 10 and len(calls) == 1
    assert calls[0][1].shape == (2, 2) and all(np.may_share_memory(part, objective.place) for part in calls[0])
    x[0] = 7.0  # SciPy may write into what it gave
    assert objective.value(x) == 17 and len(calls) == 2 and not np.shares_memory(objective.slope(x), slope)
    assert all(new is old for new, old in zip(*calls, strict=True))
    mixed = Packing("minimize", {"b": np.float32(0.5), "w": np.ones((2, 2))})
    objective = Objective(mixed, Kernel(kernel, (), [np.array(4.5), np.array(1.0), np.ones((2, 2))]), 1)
    assert objective.value(x) == 17 and [part.dtype for part in calls[2]] == ["float32", "float64"]
    residuals = Residuals(packing, Kernel(kernel, (), [np.ones(3), np.ones((1, 3)), np.ones((4, 3))]), 1)
    values, matrix = residuals.value(x), residuals.jacobian(x)
    assert matrix.shape == (3, 5) and len(calls) == 4 and values.shape == (3,)


def test_callback_and_progress(interpreted: None, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def callback(p: Any) -> bool:
        seen.append(p)
        return len(seen) == 2

    found = optimize.minimize(valley, {"a": -1.0, "b": 2.0}, callback=callback, progress=True, options={"maxiter": 40})
    assert found.nit == 2 and len(seen) == 2 and seen[-1] == found.x
    known: list[Any] = []

    def with_result(intermediate_result: Any) -> None:
        known.append(intermediate_result)

    for method, name in (("BFGS", "fun"), ("SLSQP", "x")):
        last = optimize.minimize(valley, {"a": -1.0, "b": 2.0}, method=method, callback=with_result)
        assert known[-1].x == last.x and name in known[-1]
    told = capsys.readouterr()
    assert "minimize: [#" in told.err and "2 of 40, value" in told.err and not told.out
    optimize.root(lambda x: x - 1.0, [3.0], progress=True)
    assert "root: step" in capsys.readouterr().err


def test_derivatives_of_the_program(interpreted: None) -> None:
    def value(x: Any, a: Any) -> Any:
        return jnp.sum((x - a) ** 4)

    def slope(x: Any, a: Any) -> Any:
        return 4 * (x - a) ** 3 + 0.0

    def both(x: Any, a: Any) -> Any:
        return value(x, a), slope(x, a)

    def bend(x: Any, a: Any) -> Any:
        return jnp.diag(12 * (x - a) ** 2)

    def product(x: Any, v: Any, a: Any) -> Any:
        return 12 * (x - a) ** 2 * v

    start = np.array([1.0, 2.0])
    for fun, more in (
        (value, {"jac": slope}), (both, {"jac": True}), (value, {"hess": bend, "method": "trust-exact"}),
        (value, {"hessp": product, "method": "Newton-CG"}),
    ):  # fmt: skip
        found = optimize.minimize(fun, start, args=(3.0,), **more)
        np.testing.assert_allclose(found.x, 3, atol=0.1)
    small = optimize.minimize(lambda x: jnp.sum((x - 1.0) ** 2), np.zeros(2, "float32"))
    assert small.x.dtype == "float32"
    np.testing.assert_allclose(small.x, 1)
    for single in (0, [0.5], np.zeros(1)):  # a number is a vector of one, and so may the value be
        np.testing.assert_allclose(optimize.minimize(lambda x: (x - 2.0) ** 2, single).x, [2.0])
    a = T.dscalar("a")
    near = optimize.minimize(lambda x: T.sum((x - a) ** 2), np.zeros(1)).x  # a tensor from around it: a graph
    np.testing.assert_allclose(graphc.function([a], near)(2.0), [2.0], atol=1e-6)


@pytest.mark.slow
def test_traced_functions_take_trees_as_well(interpreted: None) -> None:
    def best(a: Any) -> Any:
        def cost(p: Any) -> Any:
            return (p["x"] - a) ** 2 + jnp.sum((p["m"] - a**2) ** 2)

        found = optimize.minimize(cost, {"x": 0.0, "m": np.zeros((1, 2))})
        return found.x["x"] + found.x["m"][0, 1]

    np.testing.assert_allclose(graphc.jit(best)(1.5), 3.75, rtol=1e-6)
    np.testing.assert_allclose(graphc.grad(best)(1.5), 4.0, rtol=1e-6)
    root = graphc.jit(lambda a: optimize.root(lambda p: {"u": p["u"] ** 2 - a}, {"u": jnp.ones((2, 1))}).x["u"])(4.0)
    np.testing.assert_allclose(root, [[2.0], [2.0]])
    fit = graphc.jit(lambda a: optimize.least_squares(lambda p: [p["u"] - a, p["v"] * a - 1.0], {"u": 0.0, "v": 0.0}).x)
    np.testing.assert_allclose([fit(2.0)["u"], fit(2.0)["v"]], [2.0, 0.5], atol=1e-6)


def test_what_is_wrong_is_named() -> None:
    p = {"mu": 0.0, "sigma": np.ones(2)}

    def good(p: Any) -> Any:
        return p["mu"] ** 2 + jnp.sum(p["sigma"] ** 2)

    constraint = optimize.LinearConstraint
    wrong: list[tuple[Any, type[GraphcError], str]] = [
        (lambda: optimize.minimize(good, p, bounds={"sigm": (0, None)}), GraphValueError, "'sigm'.*is 'sigma' meant"),
        (lambda: optimize.minimize(good, p, bounds={"mu": (2, 1)}), GraphValueError, "bounds of mu are 2.0 and 1.0"),
        (lambda: optimize.minimize(good, p, bounds={"sigma": 3}), GraphValueError, "bounds of sigma must be a pair"),
        (lambda: optimize.minimize(good, p, bounds={"sigma": (np.ones(3), None)}), ShapeError, "sigma has shape"),
        (lambda: optimize.minimize(good, p, bounds=[(0, 1)]), ShapeError, "1 pairs, and x0 has 3 elements"),
        (lambda: optimize.minimize(good, {**p, "mu": np.nan}), GraphValueError, "mu of x0 is NaN"),
        (lambda: optimize.minimize(good, {**p, "mu": "one"}), GraphTypeError, "mu of x0 is 'one'"),
        (lambda: optimize.minimize(lambda p: p["sigma"], p), RankError, "must return a number, not an array"),
        (lambda: optimize.minimize(lambda p: jnp.log(p["mu"] - 1.0), p), GraphValueError, "function is NaN at x0"),
        (lambda: optimize.minimize(lambda p: (p["mu"] * 0) ** 0.5 * 1.0, p), GraphValueError, "gradient by mu is NaN"),
        (lambda: optimize.minimize(good, p, jac="2-point"), GraphTypeError, "jac='2-point'"),
        (lambda: optimize.minimize(good, p, constraints=3), GraphTypeError, "constraint number 0 is 3"),
        (lambda: optimize.minimize(good, p, constraints={"c": constraint({"nu": 1})}), GraphValueError, "names 'nu'"),
        (lambda: optimize.minimize(good, p, constraints=constraint(np.ones((1, 2)))), ShapeError, "2 columns"),
        (lambda: optimize.minimize(good, p, constraints={"c": {"fun": 3, "type": "eq"}}), GraphTypeError, "'c' must"),
        (lambda: optimize.minimize(good, {}), ShapeError, "x0 has no element"),
        (lambda: optimize.root(lambda x: x[:1], np.ones(2)), ShapeError, "returns 1 values, and x0 has 2"),
        (lambda: optimize.root(lambda x: x, np.ones(2), callback=print), GraphValueError, "no callback"),
        (lambda: optimize.curve_fit(lambda x, a: a * x, np.ones(3), np.ones(4)), ShapeError, "3 values, and ydata"),
        (lambda: optimize.curve_fit(lambda x, *a: x, np.ones(3), np.ones(3)), GraphValueError, "give p0"),
        (lambda: optimize.least_squares(lambda x: x, np.ones(2), callback=print, method="lm"), GraphValueError, "call"),
        (lambda: optimize.minimize(good, p, method="Newton-CG").covariance["w"], GraphValueError, "names 'w'"),
        (lambda: optimize.minimize(lambda x: x.sum() * 0.0, np.ones(2)).covariance, GraphValueError, "is not positive"),
    ]  # fmt: skip
    with graphc.options.change(mode="interpreted"):
        for call, kind, said in wrong:
            with pytest.raises(kind, match=said):
                call()
