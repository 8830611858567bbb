"""graphc.scipy.integrate against SciPy, closed forms and differences.

Bounds: explicit methods take SciPy's steps, so that results differ by rounding that the solution amplifies (1e-9 of the
largest value leaves a factor of 1e6 over eps). A local error of rtol in each of some 100 steps, times the growth exp(L
T) of the problem, bounds the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.scipy import integrate


def prey(t: Any, y: Any, a: Any = 1.5, b: Any = 1.0) -> Any:
    return [a * y[0] - y[0] * y[1], b * y[0] * y[1] - 3 * y[1]]


BEGIN = np.array([10.0, 5.0])
TIMES = np.linspace(0, 4, 21)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
def test_steps_are_scipys(method: str) -> None:
    keys: Any = {"args": (1.4, 0.9), "rtol": 1e-6, "atol": 1e-8}
    ours = integrate.solve_ivp(prey, (0.0, 4.0), BEGIN, method, t_eval=TIMES, **keys)
    theirs = scipy.integrate.solve_ivp(prey, (0.0, 4.0), BEGIN, method, t_eval=TIMES, **keys)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-9)
    assert ours.success and ours.status == 0 and ours.message == theirs.message
    assert method == "DOP853" or ours.nfev == theirs.nfev  # DOP853 of SciPy makes polynomials where times ask for them
    back = integrate.solve_ivp(prey, (4.0, 0.0), ours.y[:, -1], method, t_eval=TIMES[::-1], **keys)
    np.testing.assert_allclose(back.y[:, -1], BEGIN, rtol=1e-3)


@pytest.mark.slow
def test_all_steps_and_events() -> None:
    def hit(t: float, y: Any) -> Any:
        return y[0]

    hit.terminal, hit.direction = True, -1  # type: ignore[attr-defined]

    def fall(t: float, y: Any) -> Any:
        return [y[1], -9.81]

    ours = integrate.solve_ivp(fall, (0, 10), [1.0, 2.0], events=hit, rtol=1e-8)
    theirs = scipy.integrate.solve_ivp(fall, (0, 10), [1.0, 2.0], events=hit, rtol=1e-8)
    assert ours.status == theirs.status == 1 and ours.message == theirs.message
    np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-9)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.t_events[0], theirs.t_events[0], rtol=1e-9)
    none = integrate.solve_ivp(fall, (0, 0.1), [1.0, 2.0], events=hit)
    assert none.status == 0 and none.t_events[0].shape == (0,)

    def landing(height: Any, gravity: Any) -> Any:
        found = integrate.solve_ivp(lambda t, y: [y[1], -gravity], (0.0, 10.0), jnp.stack([height, 0.0]), events=hit)
        return found.t_events[0][0]

    value, (by_height, by_gravity) = graphc.value_and_grad(landing, argnums=(0, 1))(2.0, 9.81)
    exact = np.sqrt(2 * 2.0 / 9.81)  # the method is exact for parabolas, so bisection's 1e-15 and rounding remain
    np.testing.assert_allclose([value, by_height, by_gravity], [exact, exact / 4, -exact / 2 / 9.81], rtol=1e-9)


def decay(method: str, rate: Any, begin: Any, ends: Any, times: Any) -> Any:
    keys: Any = {"t_eval": times, "rtol": 1e-9, "atol": 1e-11}
    return integrate.solve_ivp(lambda t, y: -rate * y * y, ends, begin, method, **keys).y


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_derivatives_are_those_of_the_closed_form(method: str) -> None:
    """y' = -k y^2 has y = y0 / (1 + k y0 (t - t0)). Tolerance 1e-9 in each of less than 300 steps."""
    with graphc.options.change(mode="interpreted"):

        def exact(rate: Any, begin: Any, ends: Any, times: Any) -> Any:
            return begin[:, None] / (1 + rate * begin[:, None] * (times - ends[0]))

        args = (0.7, np.array([1.0, 2.0]), (0.5, 3.0), np.array([0.5, 1.2, 3.0]))
        weights = np.array([[1.0, -2.0, 3.0], [0.5, 1.0, -1.0]])

        def total(f: Any) -> Any:
            return lambda *args: jnp.sum(weights * f(*args))

        def ours(*args: Any) -> Any:
            return decay(method, *args)

        found, want = (graphc.grad(total(f), argnums=(0, 1, 2, 3))(*args) for f in (ours, exact))
        for mine, closed in zip(graphc.tree.leaves(found), graphc.tree.leaves(want), strict=True):
            np.testing.assert_allclose(mine, closed, rtol=3e-6, atol=3e-6)
        if method == "Radau":
            return
        value, slope = graphc.jvp(lambda rate: ours(rate, *args[1:]), (0.7,), (1.0,))
        closed = graphc.jvp(lambda rate: exact(rate, *args[1:]), (0.7,), (1.0,))
        np.testing.assert_allclose(value, closed[0], rtol=3e-7)
        np.testing.assert_allclose(slope, closed[1], rtol=3e-6, atol=3e-6)


@pytest.mark.slow
def test_second_derivatives_and_batches() -> None:
    with graphc.options.change(mode="interpreted"):

        def end(rate: Any) -> Any:
            return decay("RK45", rate, jnp.ones(1), (0.0, 1.0), np.array([1.0]))[0, 0]

        assert abs(graphc.grad(graphc.grad(end))(0.5) - 2 / 1.5**3) < 1e-5
        rates = np.array([0.1, 1.0, 5.0])
        np.testing.assert_allclose(graphc.vmap(end)(rates), 1 / (1 + rates), rtol=1e-7)
        np.testing.assert_allclose(graphc.vmap(graphc.grad(end))(rates), -1 / (1 + rates) ** 2, rtol=1e-5)


@pytest.mark.slow
def test_stiff_problems() -> None:
    """Robertson's reaction, whose explicit steps would be some 1e-3 long."""

    def reaction(t: Any, y: Any, k: Any = 0.04) -> Any:
        slow, fast, other = k * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return jnp.stack([fast - slow, slow - fast - other, other])

    times = np.array([0.4, 40.0, 400.0])
    keys: Any = {"t_eval": times, "rtol": 1e-7, "atol": 1e-11}

    def solve(k: Any) -> Any:
        return integrate.solve_ivp(reaction, (0, 400), np.array([1.0, 0.0, 0.0]), "Radau", args=(k,), **keys)

    f = graphc.jit(lambda k: (graphc.value_and_grad(lambda k: solve(k).y[0, 2])(k), solve(k).y, solve(k).nfev))
    (_, slope), rows, count = f(0.04)
    reference = scipy.integrate.solve_ivp(
        lambda t, y: np.array([1e4 * y[1] * y[2] - 0.04 * y[0], 0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
                               3e7 * y[1] ** 2]),
        (0, 400), [1.0, 0.0, 0.0], "Radau", t_eval=times, rtol=1e-10, atol=1e-14,
    )  # fmt: skip
    np.testing.assert_allclose(rows, reference.y, rtol=1e-5)
    assert count < 5000
    h = 1e-4
    difference = (f(0.04 + h)[0][0] - f(0.04 - h)[0][0]) / (2 * h)
    assert abs(slope - difference) < 1e-3 * abs(difference)


@pytest.mark.slow
def test_trees_sizes_and_failures() -> None:
    def swing(y: Any, t: Any, length: Any) -> Any:
        return {"angle": y["speed"], "speed": -9.81 / length * jnp.sin(y["angle"])}

    found = integrate.odeint(swing, {"angle": np.ones(2), "speed": np.zeros(2)}, np.linspace(0, 1, 4), 1.0)
    assert found["angle"].shape == (4, 2) and np.all(found["angle"][0] == 1)
    plain = scipy.integrate.odeint(lambda y, t: [y[1], -9.81 * np.sin(y[0])], [1.0, 0.0], np.linspace(0, 1, 4),
                                   rtol=1e-11, atol=1e-11)  # fmt: skip
    np.testing.assert_allclose(found["angle"][:, 0], plain[:, 0], atol=1e-6)

    f = graphc.jit(lambda y: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), y, t_eval=[1.0], max_steps=50).y)
    for size in (1, 3, 40):
        np.testing.assert_allclose(f(np.ones(size)), np.full((size, 1), np.exp(-1)), rtol=1e-2)
    assert len(f.functions) == 1

    short = integrate.solve_ivp(lambda t, y: -y, (0.0, 100.0), np.ones(1), t_eval=[0.0, 100.0], max_steps=5)
    assert short.status == -2 and not short.success and np.isnan(short.y[0]).tolist() == [False, True]
    assert "max_steps" in short.message
    blown = integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), np.ones(1), t_eval=[0.5, 2.0])
    assert blown.status < 0 and np.isnan(blown.y[0, 1])


def test_what_is_refused() -> None:
    def solve(**keys: Any) -> None:
        y0 = T.dvector("y0")
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), y0, **keys)

    def passing(t: float, y: Any) -> Any:
        return y[0]

    for keys, said in (
        ({"method": "LSODA"}, "Radau"),
        ({"method": "BDF"}, "Radau"),
        ({"dense_output": True}, "t_eval"),
        ({"events": passing}, "terminal"),
    ):
        with pytest.raises(GraphcError, match=said):
            solve(**keys)
    for name, said in (("solve_bvp", "mesh"), ("quadd", "is 'quad' meant")):
        with pytest.raises(AttributeError, match=said):
            getattr(integrate, name)


def test_integrals_of_samples() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.normal(size=9))
    y = rng.normal(size=(2, 9))

    def several(module: Any, y: Any, x: Any) -> Any:
        return [
            module.trapezoid(y, x),
            module.trapezoid(y.T, x, axis=0),
            module.cumulative_trapezoid(y, x, initial=0),
            module.cumulative_trapezoid(y, dx=0.5),
            module.simpson(y, x=x),
            module.simpson(y[:, :8], x=x[:8]),
            module.simpson(y[:, :2], dx=0.1),
            module.romb(y, dx=0.25),
        ]

    for mine, theirs in zip(
        graphc.jit(lambda y, x: several(integrate, y, x), mode="interpreted")(y, x),
        several(scipy.integrate, y, x),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
    assert type(integrate.simpson(y[0])) is type(scipy.integrate.simpson(y[0]))


@pytest.mark.slow
def test_integrals_of_functions() -> None:
    bump = lambda x, p=1.0: jnp.exp(-p * x * x)  # noqa: E731
    for a, b in ((-np.inf, np.inf), (0.0, np.inf), (-np.inf, 1.0), (2.0, 0.0), (1.0, 1.0)):
        value, error = integrate.quad(bump, a, b)
        exact = scipy.integrate.quad(lambda x: np.exp(-x * x), a, b)[0]
        assert abs(value - exact) <= max(error, 1e-14) and error <= 1.5e-8
    assert integrate.quad(lambda x: 1 / jnp.sqrt(x), 0.0, 1.0, limit=5)[1] > 1e-3  # it says that it is not there yet

    def jumping(a: Any, b: Any, p: Any) -> Any:
        return integrate.quad(lambda x, p: jnp.where(x < 0.5, jnp.exp(-p * x), 0.1 * x), a, b, args=(p,))[0]

    _, slopes = graphc.value_and_grad(jumping, argnums=(0, 1, 2))(0.0, 0.9, 2.0)
    by_p = (np.exp(-1) * 2 - 1) / 4  # of (1 - exp(-p / 2)) / p at p = 2
    np.testing.assert_allclose(slopes, [-1, 0.09, by_p], rtol=1e-6)
    twice = graphc.grad(graphc.grad(lambda b: integrate.quad(lambda x: x**3 * b, 0.0, b)[0]))(2.0)
    assert abs(twice - 40) < 1e-6  # of b^5 / 4
    value, none = integrate.fixed_quad(lambda x: x**8, 0.0, 1.0)
    assert abs(value - 1 / 9) < 1e-14 and none is None
