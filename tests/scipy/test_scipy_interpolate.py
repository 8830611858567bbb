"""graphc.scipy.interpolate against SciPy. Both solve the same systems, in another order: values up to 100 times those
of the data come from pieces beyond the ends, and the systems' conditions are below 1e3: 1e-10 leaves a factor of 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, 8))
Y, PAIRS = RNG.normal(size=8), RNG.normal(size=(8, 2))
ROUND = np.concatenate([Y[:-1], Y[:1]])
QUERIES = np.linspace(-1, 6, 23)


def curves(module: Any, x: Any, y: Any, pairs: Any, closed: Any, q: Any) -> list[Any]:
    """The values of many curves."""
    spline = module.CubicSpline(x, y)
    found = [
        spline(q),
        spline(q, 1),
        spline.derivative(2)(q),
        spline.antiderivative(2)(q),
        spline.integrate(0.3, 4.0),
        module.CubicSpline(x, pairs)(q.reshape(23, 1)),
        module.CubicSpline(x, pairs.T, axis=1)(q),
        module.CubicSpline(x, closed, bc_type="periodic")(q),
        module.PchipInterpolator(x, pairs)(q),
        module.Akima1DInterpolator(x, y)(q),
        module.Akima1DInterpolator(x, y, method="makima", extrapolate=True)(q),
        module.CubicHermiteSpline(x, y, closed)(q),
    ]
    given = (1, np.array([0.3, 0.1])), (2, np.array([-0.7, 0.0]))
    endings = ("natural", "clamped", given, ("natural", "not-a-knot"))
    found += [module.CubicSpline(x, pairs, bc_type=each)(q) for each in endings]
    for kind in ("linear", "nearest", "previous", "next", "cubic"):
        found.append(module.interp1d(x, y, kind, fill_value="extrapolate")(q))
        found.append(module.interp1d(x, pairs, kind, axis=0, fill_value=(1.0, 2.0), bounds_error=False)(q))
    for degree in (1, 3, 5):
        through = module.make_interp_spline(x, pairs, degree)
        found += [through(q), through.derivative()(q), through.antiderivative()(q)]
    t, c, k = module.make_interp_spline(x, y).tck
    return [*found, module.splev(q, (t, c, k), 1), module.splev(q, (t, c, k), 0, 1)]


def test_curves_are_scipys() -> None:
    args = (X, Y, PAIRS, ROUND, QUERIES)
    ours = graphc.jit(lambda *args: curves(interpolate, *args), mode="interpreted")(*args)
    for place, (mine, known) in enumerate(zip(ours, curves(scipy.interpolate, *args), strict=True)):
        np.testing.assert_allclose(mine, known, rtol=1e-10, atol=1e-10, err_msg=str(place))
    for mine, known in zip(curves(interpolate, *args), curves(scipy.interpolate, *args), strict=True):
        np.testing.assert_array_equal(mine, known)  # of arrays they are SciPy's own


def test_few_points() -> None:
    def few(module: Any, x: Any, y: Any, closed: Any) -> list[Any]:
        q = np.linspace(-1, 6, 5)
        return [
            module.CubicSpline(x, y)(q),
            module.CubicSpline(x, closed, bc_type="periodic")(q),
            module.PchipInterpolator(x, y)(q),
        ]

    f = graphc.jit(lambda *args: few(interpolate, *args), mode="interpreted")
    for size in (2, 3, 4):
        args = X[:size], Y[:size], np.concatenate([Y[: size - 1], Y[:1]])
        for mine, known in zip(f(*args), few(scipy.interpolate, *args), strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-10, atol=1e-10)


def test_grids_are_scipys() -> None:
    values = RNG.normal(size=(8, 4, 3))
    queries = np.stack([RNG.uniform(X[0], X[-1], (5, 2)), RNG.uniform(0, 3, (5, 2))], -1)

    def several(module: Any, values: Any, queries: Any) -> list[Any]:
        points = (X, np.arange(4.0))
        return [
            value
            for method in ("linear", "nearest")
            for value in (
                module.RegularGridInterpolator(points, values, method)(queries),
                module.RegularGridInterpolator(points, values, method, False, None)(queries * 1.3),
                module.RegularGridInterpolator(points, values, method, False, 7.0)(queries * 1.3),
            )
        ]

    ours = graphc.jit(lambda *args: several(interpolate, *args), mode="interpreted")(values, queries)
    for mine, known in zip(ours, several(scipy.interpolate, values, queries), strict=True):
        np.testing.assert_allclose(mine, known, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_curves() -> None:
    slopes = graphc.vmap(graphc.grad(interpolate.CubicSpline(X, Y)))(QUERIES)
    np.testing.assert_allclose(slopes, scipy.interpolate.CubicSpline(X, Y)(QUERIES, 1), rtol=1e-9, atol=1e-9)

    def total(x: Any, y: Any) -> Any:
        q = QUERIES[5:-5]
        curves = interpolate.CubicSpline(x, y)(q), interpolate.PchipInterpolator(x, y)(q)
        line = interpolate.interp1d(x, y, fill_value="extrapolate")(q)
        return jnp.sum(jnp.stack([*curves, interpolate.make_interp_spline(x, y)(q), line]) ** 2)

    def plain(x: Any, y: Any) -> Any:
        q = QUERIES[5:-5]
        made = scipy.interpolate.CubicSpline(x, y), scipy.interpolate.PchipInterpolator(x, y)
        line = scipy.interpolate.interp1d(x, y, fill_value="extrapolate")
        return sum(np.sum(each(q) ** 2) for each in (*made, scipy.interpolate.make_interp_spline(x, y), line))

    found = graphc.grad(total, argnums=(0, 1), mode="interpreted")(X, Y)
    h = 1e-6
    for place, mine in enumerate(found):
        for element in range(8):
            change = h * (np.arange(8) == element)
            up, down = (plain(*(v + s * change * (n == place) for n, v in enumerate((X, Y)))) for s in (1, -1))
            assert abs(mine[element] - (up - down) / (2 * h)) < 1e-4 * max(1.0, abs(mine[element]))


def test_what_interpolate_refuses() -> None:
    y = T.dvector("y")
    for call, said in (
        (lambda: interpolate.CubicSpline(X, y, bc_type="odd"), "not-a-knot"),
        (lambda: interpolate.interp1d(X, y, "quadratic")(y), "cubic"),
        (lambda: interpolate.make_interp_spline(X, y, 2), "odd"),
        (lambda: graphc.jit(interpolate.interp1d(X, Y).__call__, mode="interpreted")(QUERIES), "beyond"),
        (
            lambda: graphc.jit(lambda y: interpolate.CubicSpline(X, y, bc_type="periodic")(1.0), mode="interpreted")(Y),
            "equal",
        ),
    ):
        with pytest.raises(GraphcError, match=said):
            call()
    with pytest.raises(AttributeError, match="triangulation"):
        getattr(interpolate, "griddata")  # noqa: B009 - which type checkers know that it has not


PLACES, HEIGHTS = np.arange(5.0), np.sin(np.arange(5.0))
MADE: dict[str, Any] = {  # by SciPy, before a function is traced
    "line": scipy.interpolate.interp1d(PLACES, HEIGHTS),
    "steps": scipy.interpolate.interp1d(PLACES, HEIGHTS, "nearest", bounds_error=False, fill_value=(0.0, 9.0)),
    "rows": scipy.interpolate.interp1d(PLACES, np.stack([HEIGHTS, 2 * HEIGHTS]), "cubic", axis=1),
    "curve": scipy.interpolate.CubicSpline(PLACES, HEIGHTS),
    "spline": scipy.interpolate.make_interp_spline(PLACES, HEIGHTS),
    "grid": scipy.interpolate.RegularGridInterpolator((PLACES, PLACES), np.outer(HEIGHTS, HEIGHTS)),
}
WITHIN: list[Callable[..., Any]] = [
    lambda y, q: scipy.interpolate.interp1d(PLACES, y)(q) + MADE["line"](q),
    lambda y, q: MADE["steps"](3 * q - 2) + MADE["line"](np.array([0.5, 1.0, 2.0])),
    lambda y, q: MADE["rows"](q),
    lambda y, q: MADE["curve"](q) + MADE["curve"](q, 1) + MADE["curve"].derivative()(q),
    lambda y, q: scipy.interpolate.CubicSpline(PLACES, y, bc_type="natural")(q, 1),
    lambda y, q: scipy.interpolate.CubicSpline(PLACES, y).derivative()(q),
    lambda y, q: scipy.interpolate.PchipInterpolator(PLACES, y)(q) + MADE["spline"](q),
    lambda y, q: (
        MADE["grid"](np.stack([q, q], -1)) + scipy.interpolate.RegularGridInterpolator((PLACES,), y)(q[:, None])
    ),
]


@pytest.mark.parametrize("number", range(len(WITHIN)))
def test_scipys_curves_take_tensors_of_traced_functions(number: int) -> None:
    heights, queries = np.cos(PLACES), np.array([0.5, 1.2, 3.9])
    found = graphc.jit(WITHIN[number], mode="interpreted")(heights, queries)
    np.testing.assert_allclose(found, WITHIN[number](heights, queries), rtol=1e-10, atol=1e-10)


def test_slopes_through_scipys_curves() -> None:
    slope = graphc.grad(lambda t: 2 * MADE["curve"](t), mode="interpreted")(1.5)
    np.testing.assert_allclose(slope, 2 * MADE["curve"](1.5, 1))
    weights = graphc.grad(lambda y: scipy.interpolate.interp1d(PLACES, y)(1.25), mode="interpreted")(HEIGHTS)
    np.testing.assert_allclose(weights, [0, 0.75, 0.25, 0, 0])
    assert isinstance(scipy.interpolate.CubicSpline(PLACES, HEIGHTS)(0.5), np.ndarray)
    with pytest.raises(GraphcError, match=r"kind 'quadratic' is not here: .*called at test_scipy_interp"):
        graphc.jit(lambda y: scipy.interpolate.interp1d(PLACES, y, "quadratic")(0.5), mode="interpreted")(HEIGHTS)
