"""Functions that ask for values: `jit` keeps variants for the answers, derivatives are traced at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.lax
from graphc.errors import GraphcError, GraphTypeError


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
    ("no truth value", lambda: graphc.jit(branch).lower(3.0)),
    ("no truth value", lambda: graphc.jit(graphc.grad(branch)).lower(3.0)),
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


# --- jit ---


def clipped(x: Any, limit: Any) -> Any:
    """A program that checks its arguments, and takes three ways."""
    if np.any(np.isnan(x)):
        raise ValueError("NaN")
    norm = np.sqrt((x**2).sum())
    if norm == 0:
        return x, 0
    return (x * (limit / norm), 1) if norm > limit else (x, 2)


def selected(x: Any) -> Any:
    """Lengths and whole numbers that depend on values."""
    places = np.nonzero(x > 0)[0]
    total = np.zeros(2)
    for place in places:
        total[int(place) % 2] += x[place]
    return total, len(places), [row * 2 for row in np.unique(x[: int(x.max()) + 1])]


def dated(x: Any) -> Any:
    """A loop that cannot be a node: it changes a list."""
    halves = []
    while abs(x) > 1:
        x = x / 2
        halves.append(x)
    return x, len(halves)


def counted(x: Any) -> Any:
    """Dicts and sets find whole numbers and truths."""
    found: dict[Any, Any] = {}
    for place in np.floor(x).astype(int):
        found[place] = found.get(place, 0) + 1
    turned = {True: 1.0, False: -1.0}[x.sum() > 0]
    return [found[key] * key for key in sorted(found)], turned * x, len({x.argmax(), x.argmin()})


def spectrum(x: Any) -> Any:
    """Real or complex, as the values say."""
    found = np.roots(x)
    return found, np.linalg.eigvals(np.array([[x[0], -1.0], [x[1], 0.5]])), np.abs(found[found.imag == 0]).sum()


ASKING: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (clipped, [(np.ones(4), 1.0), (np.ones(9), 1.0), (np.zeros(3), 1.0), (np.ones(2), 5.0), (np.ones(4), 9.0)]),
    (selected, [(np.array([1.0, -2, 3, 3]),), (np.array([2.0, -1, 1]),), (np.array([1.0, -2, 3, 3]),), (np.ones(2),)]),
    (counted, [(np.array([1.5, 0.2, 1.1]),), (np.array([1.7, 0.3, 1.2]),), (np.array([-1.0, 0.5]),)]),
    (spectrum, [(np.array([1.0, 0, 1]),), (np.array([1.0, -3, 2]),), (np.array([2.0, 0, 1]),)]),
    (dated, [(8.0,), (3.0,), (-8.0,), (0.5,)]),
]


@pytest.mark.parametrize(("program", "calls"), ASKING)
def test_a_call_of_jit_answers_and_keeps_variants(program: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    traced = graphc.jit(program)
    for _ in "ab":
        for given in calls:
            found, wanted = map(graphc.tree.leaves, (traced(*given), program(*given)))
            assert len(found) == len(wanted)
            for one, other in zip(found, wanted, strict=True):
                npt.assert_allclose(one, other, rtol=1e-12)
        count = len(traced.variants())
    assert count == len(traced.variants()) <= len(calls)


def test_a_question_is_a_guard_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    traced = graphc.jit(clipped, mode="compiled")
    traced(np.ones(4), 1.0), traced(np.ones(8), 1.0)
    assert len(traced.variants()) == 1 and len(traced.questions) == 3
    guards = traced.variants()[0].guards
    assert guards[0].partition(" (")[0] == "isnan(x).any() is False"
    assert all("test_value_questions.py:" in each for each in guards)
    with caplog.at_level("INFO", "graphc.recompiles"):
        traced(np.ones(2), 9.0)
    assert "is traced anew" in caplog.text and guards[2] + " does not hold" in caplog.text
    with pytest.raises(ValueError, match="NaN"):
        traced(np.array([np.nan]), 1.0)
    assert len(traced.questions) == 3
    with pytest.raises(GraphcError, match="cannot be called without it"):
        traced.export("nothing", part="0")


def test_answers_are_bounded() -> None:
    traced = graphc.jit(dated, max_variants=2)
    assert [traced(x)[1] for x in (3.0, 8.0, 2.5)] == [2, 3, 2]
    with pytest.raises(GraphTypeError, match=r"no truth value .*max_variants=16 variants"):
        traced(16.0)
    assert traced(7.0)[1] == 3 and len(traced.variants()) == 2
    with pytest.raises(GraphTypeError, match="a trace answers 32 questions"):
        graphc.jit(dated)(1e30)


def test_derivatives_of_what_jit_answers() -> None:
    slope = graphc.grad(graphc.jit(branch))
    assert [slope(3.0), slope(-2.0)] == [6.0, -1.0] and len(slope.variants()) == 2
    for made in (graphc.jit(graphc.grad(branch)), graphc.jit(lambda x: graphc.grad(branch)(x) + 0)):
        assert [made(3.0), made(-2.0), made(4.0)] == [6.0, -1.0, 8.0] and len(made.variants()) == 2
    assert graphc.jit(graphc.grad(graphc.grad(branch)))(3.0) == 2.0


def test_answers_with_sizes_donated_arrays_and_out() -> None:
    def scaled(x: Any) -> Any:
        if x.shape[0] > 3:
            return x[:3]
        x *= 2.0 if x[0] > 0 else 3.0
        return x

    traced = graphc.jit(scaled, donate="x")
    for x in (np.ones(3), -np.ones(3), np.ones(5), np.ones(2), -np.ones(1)):
        npt.assert_array_equal(traced(x.copy()), scaled(x.copy()))
    assert len(traced.variants()) == 3
    out = np.empty(3)
    assert graphc.jit(lambda x: x if x.sum() > 0 else -x)(-np.ones(3), out=out) is out and out.sum() == 3


def test_sizes_that_depend_on_values_and_are_0() -> None:
    def compared(a: Any, b: Any) -> Any:
        rest = np.delete(a, 0)
        rolled = np.roll(rest * 2 if np.any(rest > 1) else rest, 1)
        return np.array_equal(np.setdiff1d(a, b), a), np.array_equal(a[a > 0], b), np.array_equal(a, b), rolled * 2

    traced = graphc.jit(compared)
    for a, b in ((np.ones(1), np.ones(1)), (np.ones(1), np.zeros(1)), (np.ones(4), np.ones(1)), (np.arange(3.0),) * 2):
        for found, wanted in zip(traced(a, b), compared(a, b), strict=True):
            npt.assert_array_equal(found, wanted)
