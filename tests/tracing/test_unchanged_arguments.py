"""Arguments that `grad` does not differentiate by, and `vmap` does not map, when Python needs their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc.errors import GraphTypeError

X = np.array([[1.0, -2.0], [0.5, 3.0]])


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


def repeated(x: Any, times: int) -> Any:
    for _ in range(times):
        x = x * x
    return x


def activated(x: Any, name: str = "sin") -> Any:
    return {"sin": jnp.sin, "tanh": jnp.tanh}[name](x).sum()


def applied(x: Any, f: Callable[[Any], Any]) -> Any:
    return f(x)


def batch(weights: Any, step: int, rate: float) -> Any:
    part = slice(step % 2, step % 2 + 1)
    return rate * (X[part] @ weights).sum()


def kept(x: Any, more: int, flag: bool) -> Any:
    return x * more if flag and more + flag > 2 else x


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "times by position": (lambda: graphc.grad(repeated)(2.0, 2), 32.0),
    "times by name": (lambda: graphc.grad(repeated)(2.0, times=2), 32.0),
    "value and gradient": (lambda: graphc.value_and_grad(repeated)(2.0, 2), (16.0, 32.0)),
    "jacrev": (lambda: graphc.jacrev(repeated)(2.0, 2), 32.0),
    "jacfwd": (lambda: graphc.jacfwd(repeated)(2.0, 2), 32.0),
    "hessian": (lambda: graphc.hessian(repeated)(2.0, 2), 48.0),
    "second derivative": (lambda: graphc.grad(graphc.grad(repeated))(2.0, 2), 48.0),
    "another argument": (lambda: graphc.grad(lambda n, x: repeated(x, n), argnums=-1)(2, 2.0), 32.0),
    "elements": (lambda: graphc.vmap(repeated, (0, None))(X[1], 2), X[1] ** 4),
    "gradients of elements": (lambda: graphc.vmap(graphc.grad(repeated), (0, None))(X[1], 2), 4 * X[1] ** 3),
    "text": (lambda: graphc.grad(activated)(X, "tanh"), 1 - np.tanh(X) ** 2),
    "text by name": (lambda: graphc.grad(activated)(X, name="tanh"), 1 - np.tanh(X) ** 2),
    "text for elements": (lambda: graphc.vmap(activated, (0, None))(X, "sin"), np.sin(X).sum(1)),
    "a function": (lambda: graphc.vmap(applied, (0, None))(X[0], jnp.exp), np.exp(X[0])),
    "a function, first": (lambda: graphc.grad(lambda f, x: f(x), 1)(jnp.exp, 1.0), np.exp(1.0)),
    "a dtype": (lambda: graphc.grad(lambda x, kind: x.astype(kind).sum())(X, np.float32), np.ones((2, 2))),
    "an axis": (lambda: graphc.grad(lambda x, axis: x.max(axis=axis).sum())(X, 0), [[1, 0], [0, 1]]),
    "an item of a list": (lambda: graphc.grad(lambda x, n: [x[0], x[1]][n])(X[0], 1), [0.0, 1.0]),
    "a slice of NumPy's array": (lambda: graphc.grad(batch)(np.ones(2), 3, 2.0), 2 * X[1]),
    "two at once": (lambda: graphc.grad(kept)(2.0, 3, True), 3.0),
    "nothing to multiply": (lambda: graphc.grad(kept)(2.0, 3, False), 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_python_is_told_what_is_given_on(name: str) -> None:
    made, expected = CASES[name]
    npt.assert_allclose(made(), expected, rtol=1e-12)


def test_only_numbers_that_are_asked_for_are_fixed() -> None:
    slope = graphc.grad(batch)
    for step in range(4):
        for rate in (0.5, 2.0, 3.0):
            npt.assert_array_equal(slope(np.ones(2), step, rate), rate * X[step % 2])
    assert len(slope.variants()) == 4  # one for each step, none for a rate
    times = graphc.grad(lambda x, n: x**n)
    assert [times(2.0, n) for n in (1, 2, 3)] == [1, 4, 12] and len(times.variants()) == 1


def test_values_that_are_traced_have_no_answer() -> None:
    with pytest.raises(GraphTypeError, match="it is times, an argument of repeated"):
        graphc.jit(graphc.grad(repeated)).lower(2.0, 2)
    for asking, slopes in ((lambda x, n: x if x > n else -x, [-1, 1]), (lambda x, n: x if x * n > 0 else n, [1, 1])):
        slope = graphc.grad(asking)
        with pytest.raises(GraphTypeError, match="only static_argnames would make known"):
            graphc.jit(slope).lower(2.0, 2)
        assert [slope(2.0, 2), slope(3.0, 2)] == slopes and not slope.static
    with pytest.raises(GraphTypeError, match=r"static_argnames='names'"):  # an array has no hash
        graphc.grad(lambda x, names: x)(1.0, {"a": "b", "c": np.ones(1)})
    with pytest.raises(GraphTypeError, match=r"rng is NumPy's generator.*graphc.random.key\(0\)"):
        graphc.jit(lambda x, rng: x + rng.normal())(1.0, np.random.default_rng(0))
    with pytest.raises(graphc.GraphcError, match="argnum= is autograd's word: here it is argnums="):
        graphc.grad(kept, argnum=1)  # type: ignore[call-overload]
    with pytest.raises(GraphTypeError, match="name is 'sin' of type str, no array of numbers"):
        graphc.vmap(activated)(X, name="sin")  # arguments by name have elements, too


def test_dicts_and_lists_with_text_are_known_by_their_contents() -> None:
    def powered(x: Any, how: dict[str, Any]) -> Any:
        return (x ** len(how["names"])).sum() * how["rate"] if how["kind"] == "power" else x.sum()

    how = {"kind": "power", "names": ["a", "b"], "rate": 2.0}
    for mode in ("interpreted", "python"):
        slope = graphc.grad(powered, mode=mode)
        npt.assert_array_equal(slope(X, how), 4 * X)
        how["names"].append("c")  # type: ignore[attr-defined]
        npt.assert_array_equal(slope(X, how), 6 * X**2)
        how["kind"] = "sum"
        npt.assert_array_equal(slope(X, how), np.ones((2, 2)))
        how.update(kind="power", names=["a", "b"])
        npt.assert_array_equal(slope(X, how), 4 * X)
        assert len(slope.variants()) == 3
    rows = graphc.vmap(powered, in_axes=(0, None))(X, how)
    npt.assert_array_equal(rows, 2 * (X**2).sum(1))
    npt.assert_array_equal(graphc.jit(powered, static_argnames="how")(X, how), 2 * (X**2).sum())


def test_many_values_of_a_static_number_are_warned_of_once() -> None:
    slope = graphc.grad(repeated)
    for times in range(16):
        slope(0.5, times)
    line = repeated.__code__.co_firstlineno + 1
    with pytest.warns(
        RuntimeWarning, match=rf"more than 16 values of times, .* at test_unchanged_arguments\.py:{line}"
    ):
        slope(0.5, 16)
    for times in (17, 3):
        slope(0.5, times)  # a second warning would be an error of the test
    power = graphc.jit(lambda x, n: x**n, static_argnums=1, max_variants=2)
    power(2.0, 1), power(2.0, 2), power(np.ones(2), 1), power(np.ones(2), 2)
    with pytest.warns(RuntimeWarning, match="more than 2 values of n, which is static; a loop"):
        assert power(2.0, 3) == 8.0


class Model:
    """A model with a method that is compiled for its class."""

    @graphc.jit
    def value(self, x: Any) -> Any:
        return x


def test_a_method_is_told_how_it_is_compiled() -> None:
    with pytest.raises(GraphTypeError, match=r"self\.f = graphc\.jit\(self\.f\) in __init__"):
        Model().value(X)
