"""`vmap` and `vectorize` against loops in Python: axes in and out, trees, what cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.errors import GraphTypeError, GraphValueError, ShapeError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(4, 3))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_axes(axis: int, out: int) -> None:
    f = graphc.vmap(lambda a, b: (a * 2, a.sum() * b), in_axes=(axis, None), out_axes=out)
    first, second = f(A, np.ones(2))
    rows = np.moveaxis(A, axis, 0)
    npt.assert_allclose(first, np.stack([row * 2 for row in rows], axis=out))
    npt.assert_allclose(second, np.stack([row.sum() * np.ones(2) for row in rows], axis=out))


def test_trees_of_axes() -> None:
    def f(p: Any, x: Any, *, k: Any = 1.0) -> Any:
        return {"y": p["w"] @ x + p["b"], "same": p["b"] * 2}

    given = {"w": A, "b": np.ones(4)}
    f_all = graphc.vmap(f, in_axes=({"w": 0, "b": None}, 1), out_axes={"y": -1, "same": None})
    found = f_all(given, RNG.normal(size=(2, 3)))
    assert found["y"].shape == (4, 3) and found["same"].shape == (4,)
    spread = graphc.vmap(f, in_axes=[0, None])({"w": A, "b": np.ones((3, 4))}, np.ones(2), k=np.ones(3))
    npt.assert_allclose(spread["y"], A.sum(-1) + 1)
    assert spread["same"].shape == (3, 4)


def test_of_batches_of_batches() -> None:
    dots = graphc.vmap(graphc.vmap(lambda a, b: a @ b, (None, 1)), (0, None))
    npt.assert_allclose(graphc.jit(dots)(B.T, B), B.T @ B)
    assert graphc.vmap(lambda: 1.0, axis_size=3)().shape == (3,)
    for axes in ((0, None), (0,), 0):
        f = graphc.vmap(lambda x, n, how: x * n if how == "up" else x, axes, static_argnums=1, static_argnames="how")
        assert f(np.ones(3), 2, how="up")[0] == 2.0
    image = np.arange(6, dtype="uint8").reshape(2, 3)
    npt.assert_array_equal(graphc.vmap(lambda row: row[::-1])(image), image[:, ::-1])


def test_loops_and_branches() -> None:
    def collatz(n: Any) -> Any:
        def step(state: Any) -> Any:
            n, count = state
            return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

        return lax.while_loop(lambda state: state[0] > 1, step, (n, 0))[1]

    npt.assert_array_equal(graphc.vmap(collatz)(np.array([1, 2, 3, 6, 7, 27])), [0, 1, 7, 8, 16, 111])
    safe = graphc.vmap(graphc.grad(lambda x: lax.cond(x > 0, T.log, lambda x: 2 * x, x)))
    npt.assert_allclose(safe(np.array([-1.0, 0.5, 0.0])), [2.0, 2.0, 2.0])


def test_errors() -> None:
    x = np.ones((3, 2))
    for call, error, words in (
        (lambda: graphc.vmap(lambda x: x)(1.0), GraphValueError, "x, .* has no axis 0; in_axes=None"),
        (lambda: graphc.vmap(lambda x: x, in_axes=5)(x), GraphValueError, "has no axis 5"),
        (lambda: graphc.vmap(lambda x: x, in_axes=None)(x), GraphValueError, "no argument has an axis of elements"),
        (
            lambda: graphc.vmap(lambda x: x, in_axes=(0, 0))(x),
            GraphValueError,
            r"in_axes is \(0, 0\), which does not fit",
        ),
        (lambda: graphc.vmap(lambda x: x, in_axes=("a",))(x), GraphValueError, "neither an axis nor None"),
        (lambda: graphc.vmap(lambda x: x, out_axes=None)(x), GraphValueError, "result is another for each element"),
        (lambda: graphc.vmap(lambda x: x, out_axes=4)(x), GraphValueError, "out_axes has 4, and result has 2 axes"),
        (lambda: graphc.vmap(lambda x, y: x + y)(x, x[:2]), ShapeError, "vmap: .* has 2 elements, and others have 3"),
        (lambda: graphc.vmap(lambda n: T.arange(n))(np.arange(3)), GraphTypeError, "vmap: the size of"),  # noqa: PLW0108
        (lambda: graphc.vmap(lambda x: x if x > 0 else -x)(np.ones(3)), GraphTypeError, "truth value"),
    ):
        with pytest.raises(error, match=words):
            call()  # type: ignore[no-untyped-call]


def test_vectorize() -> None:
    def clipped(a: Any, b: Any) -> Any:
        return lax.cond(a > b, lambda a: a * 2, lambda a: a - 1, a)

    found = graphc.vectorize(clipped)(B, B[:, :1])
    npt.assert_allclose(found, np.where(B[:, :1] < B, B * 2, B - 1))
    assert graphc.vectorize(clipped)(1.0, 2.0) == 0.0
    solve = graphc.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")
    npt.assert_allclose(solve(A, np.ones(2)), A @ np.ones(2))
    npt.assert_allclose(
        solve(A, np.ones((5, 1, 2))),
        A @ np.ones((5, 1, 2, 1))[..., 0] if False else np.broadcast_to(A.sum(-1), (5, 3, 4)),
    )
    assert solve(A[:1], np.ones((3, 2))).shape == (3, 4)

    @graphc.vectorize(excluded=(1,))
    def power(x: Any, n: int) -> Any:
        return x**n if n else x

    npt.assert_allclose(power(B, 2), B**2)
    for call, words in (
        (lambda: solve(np.ones(2), np.ones(2)), "argument 0, .* has 1 axes, and the signature .* takes 2"),
        (lambda: solve(A), "of 2 arguments, and there are 1"),  # type: ignore[call-overload]
    ):
        with pytest.raises(GraphValueError, match=words):
            call()  # type: ignore[no-untyped-call]


def test_vectorize_in_numpys_forms() -> None:
    """NumPy's own arguments: dtypes of results, a docstring, what is not mapped over, arguments by name."""

    def both(a: Any, b: Any, n: int = 1) -> Any:
        return a**n + b, a > b

    forms: list[tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]] = [
        ({"otypes": "di"}, (A, A[0]), {}),
        ({"otypes": [float, "bool"], "excluded": {2}}, (A, A[0], 3), {}),
        ({"excluded": ["n"], "cache": True, "doc": "Both."}, (A, A[0], 2), {}),
        ({"excluded": {"n"}}, (A,), {"n": 2, "b": A[0]}),
        ({"excluded": {2}, "otypes": (np.float32, "l")}, (), {"b": A[0], "a": A, "n": 2}),
    ]
    for settings, args, kwargs in forms:
        made = graphc.vectorize(both, **settings)
        wanted = np.vectorize(both, **{**settings, "excluded": {2, "n"}})(*args, **kwargs)
        for got, want in zip(made(*args, **kwargs), wanted, strict=True):
            assert got.dtype == want.dtype
            npt.assert_allclose(got, want)
        assert "doc" not in settings or made.__doc__ == "Both."
    added = graphc.vectorize(lambda a, b: a @ b, ["float32"], signature="(n),(n)->()")(A, b=A)
    assert added.dtype == np.float32
    npt.assert_allclose(added, (A * A).sum(-1), rtol=1e-6)
    wrong: list[tuple[Any, str]] = [
        (lambda: graphc.vectorize(both, otypes="float64"), r"give \['float64'\]"),
        (lambda: graphc.vectorize(both, otypes=float), "a list of dtypes"),
        (lambda: graphc.vectorize(both, otypes="O"), "object"),
        (lambda: graphc.vectorize(both, otypes="d")(A, A), "2 results, and otypes has 1"),
    ]
    for call, words in wrong:
        with pytest.raises((GraphTypeError, GraphValueError), match=words):
            call()
