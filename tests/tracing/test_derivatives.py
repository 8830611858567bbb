"""Derivatives of functions, alone and composed, against formulas, differences and each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.errors import GradientError, GraphTypeError
from graphc.trees import leaves, like, structure


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


def model(params: Any, x: Any) -> Any:
    for w, b in params["layers"]:
        x = T.tanh(x @ w + b)
    return (x * params["scale"]).sum()


RNG = np.random.default_rng(0)
PARAMS = {
    "layers": [(RNG.normal(size=(3, 4)), np.zeros(4)), (RNG.normal(size=(4, 2)), np.ones(2))],
    "scale": np.float64(0.5),
}
X = RNG.normal(size=(5, 3))


def slopes_of(f: Callable[..., Any], tree: Any) -> Any:
    """Central differences of a scalar function by each element of a tree."""
    found = []
    parts = [np.asarray(leaf, float) for leaf in leaves(tree)]
    for place, part in enumerate(parts):
        slope = np.zeros(part.shape)
        for index in np.ndindex(part.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = part.copy()
                moved[index] += step
                ends.append(float(f(like(tree, [*parts[:place], moved, *parts[place + 1 :]]))))
            slope[index] = (ends[0] - ends[1]) / 2e-5
        found.append(slope)
    return like(tree, found)


def close(found: Any, wanted: Any, **how: Any) -> None:
    assert structure(found) == structure(wanted)
    for got, expected in zip(leaves(found), leaves(wanted), strict=True):
        assert np.shape(got) == np.shape(expected)
        npt.assert_allclose(got, expected, **{"rtol": 1e-6, "atol": 1e-8, **how})


def test_gradients_of_trees() -> None:
    f = graphc.jit(model)
    wanted = slopes_of(lambda params: f(params, X), PARAMS)
    close(graphc.grad(model)(PARAMS, X), wanted)
    close(graphc.jit(graphc.grad(f))(PARAMS, X), wanted)
    value, slopes = graphc.value_and_grad(model)(PARAMS, X)
    close((value, slopes), (f(PARAMS, X), wanted))
    both = graphc.grad(model, argnums=(1, 0))(PARAMS, X)
    close(both, (slopes_of(lambda x: f(PARAMS, x), X), wanted))
    close(graphc.grad(model, -1)(PARAMS, X), both[0])


@pytest.mark.parametrize("made", [graphc.grad, graphc.jacrev, graphc.jacfwd, graphc.hessian])
def test_an_argument_chosen_twice(made: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x**2 * y**3).sum()

    x, y = np.array([2.0, 3.0]), np.array([0.5, -1.0])
    once = graphc.jit(made(f, argnums=(0, 1)), mode="interpreted")(x, y)
    twice = graphc.jit(made(f, argnums=(0, 1, -2)), mode="interpreted")(x, y)
    close(twice[:2], once if made is not graphc.hessian else tuple((*row, row[0]) for row in once))
    close(twice[2], twice[0])


def test_what_else_a_function_returns() -> None:
    def f(x: Any, n: int) -> Any:
        return (x**n).sum(), {"double": 2 * x, "n": n}

    x = np.arange(3.0)
    slope, aux = graphc.grad(f, has_aux=True, static_argnames="n")(x, 3)
    close(slope, 3 * x**2)
    close(aux, {"double": 2 * x, "n": 3})
    (value, aux), slope = graphc.value_and_grad(graphc.jit(f, static_argnums=1), has_aux=True)(x, n=2)
    close((value, aux["double"], slope), (5.0, 2 * x, 2 * x))


def test_derivatives_of_derivatives() -> None:
    cube = graphc.grad(graphc.grad(lambda x: x**3))
    assert cube(2.0) == 12.0 and graphc.jit(cube)(np.float64(3.0)) == 18.0
    assert graphc.grad(graphc.grad(graphc.grad(lambda x: x**4)))(2.0) == 48.0
    # An inner variable is not the outer one, though it has its value.
    assert graphc.grad(lambda x: x * graphc.grad(lambda y: x * y)(x))(3.0) == 6.0
    assert graphc.grad(lambda x: graphc.grad(lambda y: x * y)(2.0) * x)(3.0) == 6.0
    assert graphc.grad(lambda x, y: x * y**2)(3.0, 2.0) == 4.0
    close(graphc.grad(lambda x: (x * x).sum() + np.ones(3).sum())(np.ones(3)), 2 * np.ones(3))
    assert graphc.grad(lambda x: T.constant(3.0))(1.0) == 0.0


def outputs(x: Any, y: Any) -> Any:
    return {"outer": x[:, None] * T.sin(y), "total": (x * x).sum() * y.sum(), "none": 2.0 * y}


def test_jacobians() -> None:
    x, y = np.array([1.0, 2.0]), np.array([0.1, 0.2, 0.3])
    for argnums, (first, second) in ((0, (0, None)), ((0, 1), (0, 1)), (1, (1, None))):
        rows, columns = graphc.jacrev(outputs, argnums)(x, y), graphc.jit(graphc.jacfwd(outputs, argnums))(x, y)
        close(columns, rows)
        of = rows["outer"] if second is None else rows["outer"][0]
        wanted = (
            np.einsum("ik,j->ijk", np.eye(2), np.sin(y))
            if first == 0
            else np.einsum("i,jk->ijk", x, np.diag(np.cos(y)))
        )
        close(of, wanted)
    assert graphc.jacobian(lambda x: x * x)(x)[1, 1] == 4.0
    close(graphc.jacrev(lambda p: p["a"] * p["b"])({"a": x, "b": 3.0}), {"a": 3 * np.eye(2), "b": x})
    close(graphc.jacfwd(lambda x: (x * x, x[:0]), has_aux=True)(x), (np.diag(2 * x), np.zeros(0)))


def test_hessians() -> None:
    x = np.array([0.3, -0.2, 0.5])

    def f(x: Any) -> Any:
        last, rows = lax.scan(lambda c, e: (T.tanh(c * e + e), c * c), 1.0, x)
        return last + rows.sum()

    wanted = np.stack([slopes_of(lambda x, k=k: graphc.grad(f)(x)[k], x) for k in range(3)])
    for made in (
        graphc.hessian(f),
        graphc.jit(graphc.hessian(f)),
        graphc.jacfwd(graphc.grad(f)),
        graphc.jacrev(graphc.grad(f)),
    ):
        close(made(x), wanted, rtol=1e-5)
    tree = graphc.hessian(lambda p: p["a"] ** 2 * p["b"].sum())({"a": 2.0, "b": np.ones(2)})
    close(tree, {"a": {"a": 4.0, "b": np.full(2, 4.0)}, "b": {"a": np.full(2, 4.0), "b": np.zeros((2, 2))}})


def test_batches_of_derivatives() -> None:
    w = RNG.normal(size=(3, 3))

    def f(x: Any, w: Any) -> Any:
        return T.tanh(w @ x).sum()

    wanted = np.stack([graphc.grad(f)(x, w) for x in X])
    for made in (
        graphc.vmap(graphc.grad(f), (0, None)),
        graphc.jit(graphc.vmap(graphc.jit(graphc.grad(f)), (0, None))),
    ):
        close(made(X, w), wanted)
    total = graphc.grad(lambda w: graphc.vmap(f, (0, None))(X, w).sum())
    close(total(w), np.sum([graphc.grad(f, 1)(x, w) for x in X], axis=0))
    close(graphc.vmap(graphc.hessian(f), (0, None))(X, w), np.stack([graphc.hessian(f)(x, w) for x in X]))
    rows = graphc.vmap(lambda x: lax.scan(lambda c, e: (c * e, c), 1.0, x)[0])
    close(graphc.grad(lambda x: rows(x).sum())(X[:, :2]), X[:, [1, 0]])


def test_errors() -> None:
    x = np.ones(3)
    for call, error, words in (
        (
            lambda: graphc.grad(lambda x: x)(x),
            GradientError,
            r"grad of <lambda> \(test_derivatives.py:\d+\): it returns x .* float64\[x.0\], not a floating scalar",
        ),
        (lambda: graphc.grad(lambda x: (x, x))(1.0), GradientError, r"it returns \(\*, \*\)"),
        (lambda: graphc.grad(lambda x: x * 2.0)(3), GradientError, "the argument x is int64; only floating values"),
        (lambda: graphc.grad(lambda p: p["b"])({"a": 1, "b": 2.0}), GradientError, r"the argument p\['a'\] is int64"),
        (lambda: graphc.grad(lambda x: x, has_aux=True)(1.0), GradientError, r"with has_aux: it must return its value"),
        (
            lambda: graphc.grad(lambda x: x, argnums=2)(1.0),
            ValueError,
            "argnums=2, and there are 1 arguments by position",
        ),
        (lambda: graphc.jacrev(lambda x: x > 0)(x), GradientError, "jacrev of .* result is bool"),
        (
            lambda: graphc.grad(T.dscalar(), argnums=0),  # type: ignore[call-overload]
            GraphTypeError,
            "argnums is for derivatives of functions",
        ),
        (
            lambda: graphc.grad(T.dscalar(), T.dscalar(), nonsense=0),  # type: ignore[call-overload]
            TypeError,
            "no argument 'nonsense'",
        ),
        (
            lambda: graphc.jit(graphc.grad(lambda x: x if x > 0 else -x)).lower(1.0),
            GraphTypeError,
            "follows from x, an argument of <lambda>",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


def test_numbers_after_a_loop_are_differentiated_by_together() -> None:
    """The derivatives of a loop by three numbers, of two dtypes, and an array are those by one vector."""
    start: dict[str, Any] = {
        "a": np.float64(0.5),
        "b": np.float32(0.25),
        "c": np.array([0.2, -0.1]),
        "d": np.float64(1.5),
    }

    def walk(p: dict[str, Any]) -> Any:
        step = lambda _, x: T.sin(p["a"] * x + p["b"]) * p["c"].sum()  # noqa: E731
        return {"end": lax.fori_loop(0, 5, step, p["d"]), "product": p["a"] * p["b"]}

    def of_vector(v: Any) -> Any:
        made = walk({"a": v[0], "b": v[1], "c": v[2:4], "d": v[4]})
        return T.stack([made["end"], made["product"]])

    vector = np.array([0.5, 0.25, 0.2, -0.1, 1.5])
    places: dict[str, Any] = {"a": 0, "b": 1, "c": slice(2, 4), "d": 4}
    want = graphc.jacrev(of_vector)(vector)
    for jacobian in (graphc.jacfwd, graphc.jacrev):
        made = jacobian(walk)(start)
        for row, name in enumerate(("end", "product")):
            for by, place in places.items():
                npt.assert_allclose(made[name][by], want[row, place], rtol=1e-6, atol=1e-12, err_msg=f"{name} by {by}")
                assert np.shape(made[name][by]) == np.shape(start[by])
    second = graphc.hessian(lambda p: walk(p)["end"])(start)
    curvature = graphc.hessian(lambda v: of_vector(v)[0])(vector)
    for one, row in places.items():
        for two, column in places.items():
            npt.assert_allclose(second[one][two], curvature[row, column], rtol=1e-5, atol=1e-7, err_msg=f"{one}, {two}")
