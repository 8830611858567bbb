"""Derivatives of functions that ask for values: each call is traced with its own answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.lax
from graphc.errors import GraphTypeError


@pytest.fixture(autouse=True)
def interpreted() -> Any:
    with graphc.options.change(mode="interpreted"):
        yield


def branch(x: Any) -> Any:
    return x**2 if x > 0 else -x


def root(a: Any) -> Any:
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def sine(x: Any) -> Any:
    term = total = x
    for k in range(1000):
        term = -term * x**2 / ((2 * k + 3) * (2 * k + 2))
        total = total + term
        if np.abs(term) < 1e-14:
            break
    return total


def test_branches_and_loops() -> None:
    slope = graphc.grad(branch)
    assert [slope(3.0), slope(-2.0), slope(0.5)] == [6.0, -1.0, 1.0]
    assert len(slope.retraced.graphs) == 2
    npt.assert_allclose(graphc.value_and_grad(root)(2.0), (2**0.5, 0.5 * 2**-0.5), rtol=1e-12)
    npt.assert_allclose(graphc.grad(graphc.grad(root))(2.0), -0.25 * 2**-1.5, rtol=1e-9)
    for x in (0.3, 1.0, 5.0):
        npt.assert_allclose(graphc.grad(sine)(x), np.cos(x), rtol=1e-10, atol=1e-12)
        npt.assert_allclose(graphc.grad(graphc.grad(sine))(x), -np.sin(x), rtol=1e-9, atol=1e-11)


def test_every_transformation_that_is_called_with_arrays() -> None:
    assert graphc.hessian(branch)(3.0) == 2.0
    assert graphc.jacfwd(branch)(3.0) == 6.0
    assert graphc.jacrev(branch)(-3.0) == -1.0
    assert graphc.jvp(branch, (3.0,), (2.0,)) == (9.0, 12.0)
    assert graphc.hvp(branch, (3.0,), (1.0,)) == 2.0
    value, pull = graphc.vjp(lambda x: x * 3 if x.sum() > 0 else x * 5, np.ones(3))
    npt.assert_array_equal(value, 3 * np.ones(3))
    npt.assert_array_equal(pull(np.arange(3.0))[0], 3 * np.arange(3.0))
    value, push = graphc.linearize(branch, -3.0)
    assert (value, push(2.0)) == (3.0, -2.0)


def powers(p: Any, x: Any) -> Any:
    made = p["a"] * x
    for _ in range(int(p["n"])):
        made = np.sin(made)
    return made.sum()


def test_whole_numbers() -> None:
    """The derivative by what becomes an int is 0, as that of rounding is."""
    slopes = graphc.grad(powers)({"a": 2.0, "n": 2.0}, np.ones(2))
    npt.assert_allclose(slopes["a"], 2 * np.cos(np.sin(2.0)) * np.cos(2.0))
    assert slopes["n"] == 0.0
    npt.assert_array_equal(graphc.grad(lambda x: x[int(np.argmax(x))] * 3)(np.array([1.0, 5.0, 2.0])), [0, 3, 0])
    npt.assert_array_equal(graphc.grad(lambda x: max(x[0], x[1]) * 2)(np.array([3.0, 1.0])), [2, 0])
    npt.assert_array_equal(graphc.grad(lambda x: sum(sorted(x)[:2]))(np.array([3.0, 1.0, 2.0])), [0, 1, 1])
    assert graphc.grad(lambda x: 5 * x if x == 2 else x)(2.0) == 5.0
    assert graphc.grad(lambda x: 5 * x if x != 2 else x)(2.0) == 1.0


def test_arrays_of_numpys_are_indexed() -> None:
    table = np.array([1.0, 10.0, 100.0])
    slope = graphc.grad(lambda x: (x * table[np.floor(x).astype(int)]).sum() + x[table > 50.0].sum())
    npt.assert_array_equal(slope(np.array([0.5, 2.5, 1.5])), [1.0, 100.0, 11.0])
    npt.assert_array_equal(slope(np.array([1.5, 1.5, 0.5])), [10.0, 10.0, 2.0])


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("no truth value", lambda: graphc.jit(branch)(3.0)),
    ("no truth value", lambda: graphc.jit(graphc.grad(branch))(3.0)),
    ("no truth value", lambda: graphc.vmap(graphc.grad(branch))(np.ones(2))),
    ("no truth value", lambda: graphc.grad(lambda x: graphc.vmap(branch)(x).sum())(np.ones(2))),
    ("no truth value", lambda: graphc.grad(lambda x: graphc.lax.fori_loop(0, 3, lambda i, c: branch(c), x))(1.0)),
    ("cannot become a float", lambda: graphc.grad(lambda x: float(x[:1]) * x.sum())(np.ones(2))),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_serves_many_values_has_no_answer(words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(GraphTypeError, match=words):
        call()


def test_arrays_are_asked_as_numpys_are() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        graphc.grad(lambda x: x.sum() if x > 0 else -x.sum())(np.ones(2))
