"""Calls back into Python from traced functions, and what can be known of these without calling them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.errors import GradientError, GraphTypeError, ShapeError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


X = np.array([3.0, 1.0, 2.0])


def of(*shape: Any, dtype: Any = "float64") -> Any:
    return graphc.ShapeDtypeStruct(shape, dtype)


def test_python_computes_values() -> None:
    def sorted_twice(x: Any) -> Any:
        return 2 * np.sort(x)

    f = graphc.jit(lambda x: graphc.pure_callback(sorted_twice, x, x) + x)
    npt.assert_array_equal(f(X), 2 * np.sort(X) + X)
    npt.assert_array_equal(f(X[:2]), 2 * np.sort(X[:2]) + X[:2])
    assert len(f.functions) == 1
    npt.assert_array_equal(graphc.vmap(f)(np.stack([X, -X])), [f(X), f(-X)])
    npt.assert_array_equal(graphc.pure_callback(sorted_twice, X, X), 2 * np.sort(X))

    def several(x: Any, n: Any, *, scale: Any) -> Any:
        return {"sum": x.sum(), "n": np.array([n, n + 1]), "x": (scale * x, x.astype("float32"))}

    kinds = {"sum": of(), "n": of(2, dtype="int64"), "x": (of(3), of(3, dtype="float32"))}
    made = graphc.jit(lambda x, n: graphc.pure_callback(several, kinds, x, n, scale=3.0))(X, np.int64(4))
    assert made["sum"] == 6.0 and list(made["n"]) == [4, 5] and made["x"][1].dtype == "float32"
    npt.assert_array_equal(made["x"][0], 3 * X)
    total = graphc.jit(lambda x: lax.scan(lambda c, e: (graphc.pure_callback(np.hypot, of(), c, e), None), 0.0, x)[0])
    assert total(X) == pytest.approx(np.sqrt((X**2).sum()))
    y = T.dvector("y")
    npt.assert_array_equal(graphc.function([y], graphc.pure_callback(np.sort, y, y))(X), np.sort(X))


def test_python_that_gives_something_else() -> None:
    def given(callback: Any, kind: Any) -> Any:
        return graphc.jit(lambda x: graphc.pure_callback(callback, kind, x))

    def fails(x: Any) -> Any:
        raise RuntimeError("no")

    for callback, kind, error, message in (
        (lambda x: x[:2], of(3), ShapeError, r"it gave the shape \(2,\), and \(3,\) was said"),
        (lambda x: x, of(3, dtype="int64"), GraphTypeError, "it gave float64, and int64 was said"),
        (lambda x: (x, x), of(3), GraphTypeError, r"it returned \(\*, \*\), not \*"),
        (fails, of(3), RuntimeError, "no"),
    ):
        with pytest.raises(error, match=message):
            given(callback, kind)(X)
        with pytest.raises(error, match=message):
            graphc.pure_callback(callback, kind, X)
    with pytest.raises(GraphTypeError, match="results are described by ShapeDtypeStruct"):
        given(np.sort, "float64")(X)
    with pytest.raises(GradientError, match="pure_callback of sort has no derivative"):
        graphc.grad(lambda x: graphc.pure_callback(np.sort, x, x).sum())(X)

    @graphc.custom_jvp
    def sine(x: Any) -> Any:
        return graphc.pure_callback(np.sin, x, x)

    sine.defjvps(lambda t, value, x: t * jnp.cos(x))
    npt.assert_allclose(graphc.grad(lambda x: sine(x).sum())(X), np.cos(X))


# --- effects ----------------------------------------------------------------------------------------------------------


def test_what_is_printed(capsys: Any) -> None:
    @graphc.jit
    def f(x: Any) -> Any:
        graphc.debug.print("x is {}; {how}", x, how="plain")

        def step(c: Any, e: Any) -> Any:
            graphc.debug.print("{c} + {e}", c=c, e=e)
            graphc.debug.print("a step")
            return c + e, None

        total = lax.scan(step, 0.0, x)[0]

        def large(t: Any) -> Any:
            graphc.debug.print("large")
            return -t

        def small(t: Any) -> Any:
            graphc.debug.print("small: {:.1f}", t)
            return t

        return lax.cond(total > 3, large, small, total)

    assert f(np.array([1.0, 2.0])) == 3.0
    first = capsys.readouterr().out.splitlines()
    assert sorted(first) == sorted(["x is [1. 2.]; plain", "0.0 + 1.0", "a step", "1.0 + 2.0", "a step", "small: 3.0"])
    assert first.index("0.0 + 1.0") < first.index("1.0 + 2.0") < first.index("small: 3.0")
    assert f(np.array([5.0])) == -5.0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(["x is [5.]; plain", "0.0 + 5.0", "a step", "large"])


def test_effects_of_transformed_functions() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        graphc.debug.callback(lambda v, tag: seen.append((tag, float(v))), x, "f")
        return x**2

    assert graphc.grad(f)(3.0) == 6.0 and seen == [("f", 3.0)]
    seen.clear()
    value, slope = graphc.jit(graphc.value_and_grad(f))(3.0)
    assert (value, slope) == (9.0, 6.0) and seen == [("f", 3.0)]
    seen.clear()
    npt.assert_array_equal(graphc.vmap(f)(X), X**2)
    assert seen == [("f", x) for x in X]
    seen.clear()
    assert graphc.jvp(f, (3.0,), (1.0,))[1] == 6.0 and seen == [("f", 3.0)]
    seen.clear()
    assert graphc.jit(lambda x: graphc.jit(f)(x) + graphc.jit(f)(2 * x))(1.0) == 5.0
    assert sorted(seen) == [("f", 1.0), ("f", 2.0)]
    seen.clear()
    twice = graphc.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x))
    assert twice(2.0) == 16.0 and seen == [("f", 2.0), ("f", 4.0)]
    seen.clear()
    ended = graphc.jit(lambda x: lax.while_loop(lambda c: c < 10, f, x))
    assert ended(2.0) == 16.0 and seen == [("f", 2.0), ("f", 4.0)]


def test_effects_outside_of_functions(capsys: Any) -> None:
    graphc.debug.print("{} and {}", 1, X[:1])
    assert capsys.readouterr().out == "1 and [3.]\n"
    with pytest.raises(GraphTypeError, match="outside of traced functions no value needs it"):
        graphc.debug.print("{}", T.dvector("x"))
    x = T.dvector("x")
    npt.assert_array_equal(graphc.function([x], x + 1)(X), X + 1)


# --- without calling --------------------------------------------------------------------------------------------------


def test_shapes_of_results() -> None:
    def f(p: Any, x: Any) -> Any:
        return {"y": x @ p["w"] + p["b"], "n": x.shape[0] * 2, "s": (x > 0).sum()}

    found = graphc.eval_shape(f, {"w": np.ones((3, 2), "float32"), "b": 1.0}, of(5, 3, dtype="float32"))
    assert found == {"y": of(5, 2, dtype="float32"), "n": of(dtype="int64"), "s": of(dtype="int64")}
    assert found["y"].ndim == 2 and found["y"].size == 10 and hash(found["y"]) == hash(of(5, 2, dtype="float32"))
    assert repr(found["n"]) == "ShapeDtypeStruct(shape=(), dtype=int64)" and found["n"].sharding is None
    assert graphc.ShapeDtypeStruct((), int, sharding=None, weak_type=False) == found["n"]
    assert graphc.eval_shape(graphc.grad(lambda x: (x**2).sum()), of(4)) == of(4)
    outer = graphc.jit(lambda x: jnp.ones_like(graphc.eval_shape(lambda x: x[1:, None] * x, x)), mode="interpreted")
    npt.assert_array_equal(outer(np.zeros(3)), np.ones((2, 3)))
    with pytest.raises(GraphTypeError, match="follows from values"):
        graphc.eval_shape(lambda x: x[x > 0], of(4))
    with pytest.raises(GraphTypeError, match="x is 'a', which has no shape and dtype"):
        graphc.eval_shape(lambda x: x, "a")


def test_the_text_of_a_trace() -> None:
    text = graphc.make_graph(lambda x, n: jnp.sin(x) ** n, static_argnums=1)(X, 3)
    assert text.startswith("inputs x: float64[x.0]\n") and "sin(x)" in text and "outputs" in text
    graph = graphc.parse_graph(text)
    npt.assert_allclose(graphc.function(list(graph.inputs), graph.outputs[0])(X), np.sin(X) ** 3)
    asked = graphc.make_graph(lambda x: jnp.cos(x) if x.shape[0] == 3 else x)
    assert "cos(x)" in asked(X) and "cos(x)" not in asked(X[:2]) and "cos(x)" in asked(of(3))
    assert "scan" in graphc.make_graph(lambda x: lax.scan(lambda c, e: (c + e, c), 0.0, x))(X)


def test_functions_that_run_as_they_are() -> None:
    kinds: list[type] = []

    @graphc.jit
    def f(x: Any) -> Any:
        kinds.append(type(x))
        return x + 1

    @graphc.jit
    def warm(x: Any) -> Any:
        kinds.append(type(x))
        return x * 2

    warm(X)
    assert np.ndarray not in kinds
    kinds.clear()
    with graphc.disable_jit():
        npt.assert_array_equal(f(X), X + 1)
        npt.assert_array_equal(warm(X), 2 * X)
        npt.assert_array_equal(graphc.jit(lambda x: f(x) * 2)(X), 2 * X + 2)
        assert graphc.grad(lambda x: f(x) ** 2)(1.0) == 4.0
    with graphc.disable_jit(False):
        npt.assert_array_equal(f(X), X + 1)
    assert kinds[:3] == [np.ndarray] * 3 and np.ndarray not in kinds[3:]


def test_structs_of_sizes_of_the_call_are_compared_by_their_values() -> None:
    def program(x: Any, y: Any) -> Any:
        one, other = graphc.eval_shape(jnp.sin, x), graphc.eval_shape(jnp.sin, y)
        alike = one == other and one in {other: 1} and one == graphc.ShapeDtypeStruct(x.shape, x.dtype)
        return (x + y if alike else x), one.shape == other.shape

    f = graphc.jit(program, mode="interpreted")
    for count in (3, 2, 3):
        found, same = f(np.ones(3), np.ones(count))
        assert same == (count == 3) and found.tolist() == [1.0 + same] * 3
    assert len(f.variants()) == 2
