"""Loops of Python's that depend on values: they become loops of the compiled function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import GraphTypeError
from graphc.tracing.control_flow import FLOW
from graphc.tracing.rewritten import rewritten_code
from tests.support.loop_programs import arguments, function_of
from tests.support.thorough import some


def root(a: Any) -> Any:
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def bisected(low: Any, high: Any) -> Any:
    count = 0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle**3 - 2 > 0:
            high = middle
        else:
            low = middle
        count += 1
    return low, count


def bubbles(a: Any) -> Any:
    a = a.copy()
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def inserted(a: Any) -> Any:
    a = a.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def place_of(a: Any, value: Any) -> Any:
    for i in range(len(a)):
        if a[i] == value:
            return i
    return -1


def collatz(n: Any) -> Any:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def jacobi(a: Any, b: Any, tolerance: Any) -> Any:
    x = np.zeros_like(b)
    diagonal = np.diag(a)
    count = 0
    for count in range(1000):  # noqa: B007 - it is used after the loop
        new = (b - (a @ x - diagonal * x)) / diagonal
        if np.abs(new - x).max() < tolerance:
            break
        x = new
    return new, count


def heated(u: Any) -> Any:
    u = u.copy()
    before = np.empty_like(u)
    change = 1.0
    while change > 1e-3:
        before[:] = u
        u[1:-1] = 0.5 * (before[2:] + before[:-2])
        change = np.abs(u - before).max()
    return u


def swapped(u: Any) -> Any:
    u = u.copy()
    v = np.zeros_like(u)
    error, count = 1.0, 0
    while error > 1e-3 and count < 500:
        v[0], v[-1] = u[0], u[-1]
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        error = np.abs(u - v).max()
        u, v = v, u
        count += 1
    return u, count


def escapes(c: Any) -> Any:
    z = 0j
    for n in range(50):
        if abs(z) > 2:
            return n
        z = z * z + c
    return 50


def positives(x: Any) -> Any:
    count, last = 0, -1
    for place, value in enumerate(x):
        if not value > 0:
            continue
        count += 1
        last = place
    return count, last


def divisor(a: Any, b: Any) -> Any:
    while b:
        a, b = b, a % b
    return a


def helped(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += root(x[i]) if x[i] > 0 else place_of(x, x[i])
    return total


MATRIX = np.random.default_rng(0).normal(size=(5, 5)) + 10 * np.eye(5)
VALUES = np.random.default_rng(1).normal(size=9)
PROGRAMS: Sequence[tuple[Callable[..., Any], Sequence[Sequence[Any]]]] = (
    (root, [(2.0,), (9.0,)]),
    (bisected, [(0.0, 2.0), (1.0, 1.0)]),
    (bubbles, [(VALUES,), (VALUES[:1],), (VALUES[:4],), (VALUES[:0],)]),
    (inserted, [(VALUES,), (VALUES[::2].copy(),), (VALUES[:1],)]),
    (place_of, [(np.arange(5.0), 3.0), (np.arange(5.0), 7.0), (np.arange(0.0), 1.0)]),
    (collatz, [(27,), (1,)]),
    (jacobi, [(MATRIX, VALUES[:5], 1e-9), (MATRIX, VALUES[:5], 1.0)]),
    (heated, [(np.array([1.0, 0, 0, 0, 2]),), (np.arange(4.0),)]),
    (swapped, [(np.array([1.0, 0, 0, 0, 2]),)]),
    (escapes, [(0.1 + 0.2j,), (1 + 1j,)]),
    (positives, [(VALUES,), (VALUES[:2],), (np.zeros(0),)]),
    (divisor, [(48, 36), (7, 0)]),
    (helped, [(VALUES[:4],), (VALUES,)]),
)


def check_equal(got: Any, wanted: Any) -> None:
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    for own, other in pairs:
        np.testing.assert_allclose(own, other, rtol=1e-6 if np.asarray(other).dtype == "float32" else 1e-9, atol=1e-12)
        assert np.asarray(own).dtype == np.asarray(other).dtype


@pytest.mark.parametrize(("program", "calls"), PROGRAMS)
@pytest.mark.parametrize("mode", [pytest.param(None, marks=pytest.mark.slow), "interpreted"])
def test_loops_become_loops(program: Callable[..., Any], calls: Sequence[Sequence[Any]], mode: str | None) -> None:
    traced = graphc.jit(program, mode=mode)
    for args in calls:
        check_equal(traced(*args), program(*args))
    kinds = {tuple(type(each) for each in args) for args in calls}
    assert all(reason is None for plan in traced.loops.values() for reason in plan.reasons.values())
    assert len(traced.variants()) <= len(kinds) + 1  # another one where an axis of one element broadcasts
    assert not any(variant.questions for variant in traced.variants())


def result_of(program: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results of a program, or the error that it raises."""
    try:
        return program(*args)
    except (ValueError, AssertionError, GraphTypeError) as error:
        return error


@pytest.mark.parametrize("seed", some(range(24), 400))
def test_random_programs_do_what_python_does(seed: int) -> None:
    program = function_of(seed)
    traced = graphc.jit(program, mode="interpreted")
    for size in (4, 1):
        args = arguments(seed, size)
        wanted, got = (result_of(each, args) for each in (program, traced))
        if isinstance(got, GraphTypeError):
            assert "questions about values" in str(got)
        elif isinstance(wanted, Exception):
            assert isinstance(got, type(wanted))
        else:
            for own, other in zip(got, wanted, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(1000, 1003), 1040))
def test_compiled_random_programs(seed: int) -> None:
    program = function_of(seed)
    args = arguments(seed, 5)
    wanted, got = (result_of(each, args) for each in (program, graphc.jit(program)))
    if isinstance(wanted, Exception):
        assert isinstance(got, type(wanted))
    else:
        for own, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_rewritten_code_is_python(seed: int) -> None:
    program, other = function_of(seed), function_of(seed)
    code = rewritten_code(other.__code__, other.__globals__, FLOW)
    assert code is not None
    other.__code__ = code
    for size in (4, 1):
        args = arguments(seed, size)
        wanted, got = result_of(program, args), result_of(other, args)
        if isinstance(wanted, Exception):
            assert type(got) is type(wanted)
        else:
            for own, each in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(own, each)


class Model:
    """A method, `super`, a closure and an attribute in loops."""

    rate = 0.5

    def halved(self, x: Any) -> Any:
        while x > 1:
            x = x * self.rate
        return x


class Deeper(Model):
    """Calls the method of its base in a loop."""

    def halved(self, x: Any) -> Any:
        for _ in range(3):
            if x > 2:
                x = super().halved(x) + 2.5
        return x


def test_methods_and_closures() -> None:
    limit = 3.0

    def counted(x: Any) -> Any:
        steps = 0
        while x < limit if steps % 2 == 0 else x < 2 * limit:
            x = x + 1.0
            steps += 1
        return steps, x

    for model in (Model(), Deeper()):
        traced = graphc.jit(model.halved, mode="interpreted")
        for x in (0.5, 11.0, 40.0):
            assert traced(x) == model.halved(x)
    check_equal(graphc.jit(counted, mode="interpreted")(0.25), counted(0.25))


def test_derivatives_of_loops() -> None:
    x = np.array([1.5, 2.5, -0.5])

    def summed(x: Any) -> Any:
        total = 0.0
        for value in x:
            if value < 0:
                break
            total += value**3
        return total

    slopes = graphc.jit(graphc.grad(summed), mode="interpreted")(x)
    np.testing.assert_allclose(slopes, [3 * 1.5**2, 3 * 2.5**2, 0.0])
    np.testing.assert_allclose(graphc.jit(graphc.grad(root), mode="interpreted")(4.0), 0.25)
    np.testing.assert_allclose(graphc.grad(graphc.jit(root, mode="interpreted"))(4.0), 0.25)


def collected(x: Any) -> Any:
    found = []
    while x > 1:
        x = x / 2
        found.append(x)
    return sum(found)


def shortened(x: Any) -> Any:
    while x.sum() > 3:
        x = x[:-1]
    return x


def beginning(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] < 0:
            return x[:i]
    return x


def chosen(x: Any) -> Any:
    best = None
    for value in x:
        if best is None or value > best:
            best = value
    return best


def test_loops_that_cannot_be_nodes_are_traced_step_by_step() -> None:
    for program, args, reason in (
        (collected, (20.0,), "changes a list"), (chosen, (VALUES[:4],), "None"),
        (shortened, (np.arange(5.0),), "x may change its shape"),
        (beginning, (VALUES[:4],), "what it returns may change"),
    ):  # fmt: skip
        traced = graphc.jit(program, mode="interpreted")
        np.testing.assert_allclose(traced(*args), program(*args))
        (plan,) = traced.loops.values()
        assert any(reason in str(each) for each in plan.reasons.values())
    with pytest.raises(
        GraphTypeError, match=r"32 questions .*test_python_loops.py:\d+ is not compiled: its body changes"
    ):
        graphc.jit(collected, mode="interpreted")(1e30)


def test_a_source_that_cannot_be_rewritten_is_told() -> None:
    def looked_up(x: Any) -> Any:
        while x > 1:
            x = x / 2
            locals()
        return x

    assert graphc.jit(looked_up, mode="interpreted")(5.0) == 0.625
    with pytest.raises(GraphTypeError, match=r"32 questions .* is not compiled: the source of its function"):
        graphc.jit(looked_up, mode="interpreted")(1e30)


def converged(a: Any, limit: Any) -> Any:
    x, count = a, 0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
        count += 1
        if count > limit:
            raise ValueError("no convergence")
    return x


def exhausted(a: Any) -> Any:
    steps = 0
    while a > 1:
        a, steps = a / 2, steps + 1
        if steps == 5:
            raise RuntimeError("too many steps")
    return a


def rooted(value: Any) -> Any:
    assert value >= 0, "below 0"
    return np.sqrt(value)


def guarded(x: Any, is_caught: bool) -> Any:
    total = 0.0
    for value in x:
        if value != 3:
            try:
                total += rooted(value) if is_caught else 0.0
            except AssertionError:
                total -= 1.0
            total += 0.0 if is_caught else rooted(value)
    return total


def test_errors_in_loops() -> None:
    search = graphc.jit(converged, mode="interpreted")
    assert search(2.0, 50) == converged(2.0, 50)
    with pytest.raises(ValueError, match="no convergence"):
        search(2.0, 2)
    reasons = [str(reason) for plan in search.loops.values() for reason in plan.reasons.values()]
    assert any("it raises ValueError" in each for each in reasons)
    halved = graphc.jit(exhausted)
    assert halved(3.0) == 0.75
    with pytest.raises(RuntimeError, match="too many steps"):
        halved(100.0)
    traced = graphc.jit(guarded, mode="interpreted", static_argnames="is_caught")
    for x in (np.array([4.0, 9.0, 3.0]), np.array([4.0, -1.0, 3.0])):
        assert traced(x, True) == guarded(x, True)
    assert traced(np.array([4.0, 9.0]), False) == 5.0
    with pytest.raises(AssertionError, match="below 0"):
        traced(-np.ones(2), False)


def swallowed(x: Any) -> Any:
    total = 0.0
    for value in x:
        if value != 3:
            try:
                total += rooted(value)
            except Exception:
                total -= 1.0
    return total


def test_a_program_that_catches_all_errors_sees_its_own_alone() -> None:
    for x in (np.array([4.0, 9.0, 3.0]), np.array([4.0, -1.0, 3.0])):
        assert graphc.jit(swallowed, mode="interpreted")(x) == swallowed(x)


def test_names_of_one_array() -> None:
    def aliased(x: Any) -> Any:
        a = x.copy()
        b = a
        for i in range(len(a)):
            if a[i] > 0:
                b[i] = -1.0
        return a, b

    def kept(x: Any) -> Any:
        a = x.copy()
        first = a
        while a.sum() < 10:
            a = a + 1.0
        a[0] = 0.0
        return a, first

    for program in (aliased, kept):
        for x in (VALUES[:4], np.full(3, 9.0)):
            check_equal(graphc.jit(program, mode="interpreted")(x), program(x))


def test_a_loop_without_a_step_binds_nothing() -> None:
    def last(x: Any) -> Any:
        while x > 1:
            half = x / 2
            x = half
        return half

    traced = graphc.jit(last, mode="interpreted")
    assert traced(5.0) == 0.625
    with pytest.raises(ValueError, match="half is not bound: the loop had no step"):
        traced(0.5)


@pytest.mark.slow
def test_threads_trace_at_once() -> None:
    functions = [graphc.jit(bisected, mode="interpreted") for _ in range(6)]
    results: list[Any] = [None] * 6

    def call(k: int) -> None:
        results[k] = functions[k](0.0, 1.0 + k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for k, got in enumerate(results):
        check_equal(got, bisected(0.0, 1.0 + k))


def relaxed(a: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for _ in range(3):
        for i in range(len(b)):
            rest = b[i]
            for j in range(len(b)):
                if j != i:
                    rest -= a[i, j] * x[j]
            x[i] = rest / a[i, i]
    return x


def test_loops_of_many_operations_are_compiled_for_all_sizes() -> None:
    traced = graphc.jit(relaxed, mode="interpreted")
    rng = np.random.default_rng(2)
    for size in (30, 40, 3):
        a, b = rng.normal(size=(size, size)) + size * np.eye(size), rng.normal(size=size)
        np.testing.assert_allclose(traced(a, b), relaxed(a, b))
    assert len(traced.variants()) == 1 and not traced.variants()[0].guards
    assert graphc.jit(relaxed, mode="interpreted")(a, b).shape == (3,)  # few operations are traced step by step


def test_loops_are_saved(tmp_path: Any) -> None:
    traced = graphc.jit(place_of)
    traced(np.arange(5.0), 3.0)
    traced.save(tmp_path / "place.graphc")
    assert graphc.load(tmp_path / "place.graphc")(np.arange(9.0), 7.0) == 7
