"""States that loops write element by element: places that follow from the step, versions in one buffer."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.ir.node import Node

Program = Callable[[Node], Any]


def recurrence(x: Node) -> Any:
    return lax.fori_loop(1, x.shape[0], lambda i, a: a.at[i].set(0.5 * a[i - 1] + x[i]), x)


def backwards(x: Node) -> Any:
    n = x.shape[0]
    return lax.fori_loop(0, n - 1, lambda i, a: a.at[n - 2 - i].add(a[n - 1 - i]), x)


def two_writes(x: Node) -> Any:
    def step(i: Any, a: Any) -> Any:
        a = a.at[i].set(a[i - 1] + a[i])
        return a.at[i - 1].multiply(a[i] + 1.0)

    return lax.fori_loop(1, x.shape[0], step, x)


def swapped(x: Node) -> Any:
    def step(i: Any, a: Any) -> Any:
        left, right = a[i], a[i + 1]
        return a.at[i].set(right).at[i + 1].set(0.5 * left)

    return lax.fori_loop(0, x.shape[0] - 1, step, x)


def table(x: Node) -> Any:
    n = x.shape[0]

    def row(i: Any, t: Any) -> Any:
        return lax.fori_loop(1, n, lambda j, t: t.at[i, j].set(T.maximum(t[i - 1, j], t[i, j - 1]) + x[i] * x[j]), t)

    return lax.fori_loop(1, n, row, T.zeros((n, n)))


def elimination(x: Node) -> Any:
    n = x.shape[0]
    a = x[:, None] * x[None] + T.eye(n) * 9.0

    def column(k: Any, a: Any) -> Any:
        def row(i: Any, a: Any) -> Any:
            a = a.at[i, k].set(a[i, k] / a[k, k])
            return lax.fori_loop(k + 1, n, lambda j, a: a.at[i, j].add(-a[i, k] * a[k, j]), a)

        return lax.fori_loop(k + 1, n, row, a)

    return lax.fori_loop(0, n - 1, column, a)


def rows_kept(x: Node) -> Any:
    def step(i: Any, carry: Any) -> Any:
        a, total = carry
        return a.at[i].add(total), total + a[i]

    return lax.fori_loop(0, x.shape[0], step, (x, x[0] * 0.0))[0]


def swapped_if_larger(x: Node) -> Any:
    def swap(a: Any, j: Any) -> Any:
        return a.at[j].set(a[j + 1]).at[j + 1].set(a[j])

    def step(j: Any, a: Any) -> Any:
        return lax.cond(a[j] > a[j + 1], lambda a: swap(a, j), lambda a: a, a)

    return lax.fori_loop(0, x.shape[0], lambda _, a: lax.fori_loop(0, x.shape[0] - 1, step, a), x)


def both_sides(x: Node) -> Any:
    def raised(i: Any, a: Any) -> Any:
        return lax.cond(i % 2 == 0, lambda a: a.at[i].add(a[i - 1]), lambda a: a.at[i].multiply(3.0), a)

    def step(i: Any, a: Any) -> Any:
        return lax.cond(a[i] > 0.7, lambda a: raised(i, a), lambda a: a.at[i - 1].set(a[i] - 0.5), a)

    return lax.fori_loop(0, x.shape[0], step, x)


def two_states(x: Node) -> Any:
    def step(i: Any, carry: Any) -> Any:
        return lax.cond(x[i] > 0.7, lambda a, b: (a.at[i].add(b[i]), b), lambda a, b: (b, a.at[i].set(2.0)), *carry)

    return lax.fori_loop(0, x.shape[0], step, (x, 2.0 * x))[0]


PROGRAMS = (
    recurrence, backwards, two_writes, swapped, table, elimination, rows_kept, swapped_if_larger, both_sides,
    two_states,
)  # fmt: skip


def test_loops_that_write_give_what_the_interpreter_gives() -> None:
    x = T.dvector("x")
    outputs = [program(x) for program in PROGRAMS]
    slopes = [graphc.grad(T.sum(T.sin(output)), x) for output in outputs]
    compiled = graphc.function([x], [*outputs, *slopes])
    interpreted = graphc.function([x], [*outputs, *slopes], mode="interpreted")
    for size in (1, 2, 3, 7):
        value = np.random.default_rng(size).uniform(0.5, 1.0, size)
        for got, wanted in zip(compiled(value), interpreted(value), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(value, np.random.default_rng(size).uniform(0.5, 1.0, size))


@pytest.mark.parametrize("program", [recurrence, backwards, table])
def test_places_that_follow_from_the_step_are_not_checked(program: Program) -> None:
    x = T.dvector("x")
    kernel = graphc.function([x], program(x), mode="python").source.partition("def kernel")[2]
    assert not re.search(r"if not|select\(\w+ < 0", kernel)


@pytest.mark.parametrize("program", [two_writes, table, elimination, swapped_if_larger, both_sides])
def test_states_are_written_where_they_lie(program: Program) -> None:
    x = T.dvector("x")
    plan = graphc.function([x], program(x), mode="python").explain()
    assert "the state for the next step, in place" in plan
    assert "copied at the end" not in plan


def test_places_outside_are_still_refused() -> None:
    x = T.dvector("x")
    past = lax.fori_loop(0, x.shape[0] + 1, lambda i, a: a.at[i].set(1.0), x)
    before = lax.fori_loop(0, x.shape[0], lambda i, a: a.at[i].set(a[i - 2]), x)
    for output in (past, before):
        for mode in ("compiled", "interpreted"):
            f = graphc.function([x], output, mode=mode)
            with pytest.raises(IndexError):
                f(np.ones(1))
    # of three, a[-2] is there
    np.testing.assert_array_equal(f(np.arange(3.0)), [1.0, 2.0, 1.0])


def test_a_value_read_before_the_write_is_the_old_one() -> None:
    x = T.dvector("x")

    def step(i: Any, a: Any) -> Any:
        old = a * 2.0
        a = a.at[i].set(-1.0)
        return a.at[0].set(T.sum(old) + a[i])

    output = lax.fori_loop(0, 3, step, x)
    values = np.arange(4.0)
    wanted = graphc.function([x], output, mode="interpreted")(values)
    np.testing.assert_allclose(graphc.function([x], output)(values), wanted, rtol=1e-15)


def test_a_counter_is_a_function_of_the_step() -> None:
    x = T.dvector("x")
    down = lax.fori_loop(0, 4, lambda i, c: (c[0] - 3, c[1] + x[i] * c[0]), (T.constant(7), T.constant(0.0)))
    f = graphc.function([x], list(down))
    assert "counted_states" in f.explain()
    last, total = f(np.arange(4.0))
    assert (int(last), float(total)) == (7 - 12, 4.0 * 1 + 2 * 1.0 + 3 * -2.0)


def test_numbers_of_steps_are_not_told_as_values_that_are_computed_before() -> None:
    x = T.dvector("x")
    assert "for all steps at once" not in graphc.function([x], recurrence(x), mode="python").explain()
