"""Parallel loops: which are, that threads change no result, and that calls from many threads and processes are safe."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings, strategies as st
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import restore
from graphc.codegen.threads.pool import has_threads
from graphc.codegen.transform.independence import mark_nest
from graphc.codegen.transform.parallelize import columns_of, shares_of
from graphc.ir.node import Node
from graphc.loopir.ir import (
    INDEX,
    Break,
    Buffer,
    Check,
    Const,
    Expr,
    If,
    Invoke,
    Let,
    Load,
    Loop,
    Note,
    Set,
    Stmt,
    Store,
    Var,
    apply,
    integer,
)
from graphc.loopir.operators import ACCUMULATE, ACCUMULATE_MINIMUM, ADD, CALLS, GE, MOD, MUL, SUB
from graphc.loopir.syntax import text_of
from graphc.options import options
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within
from tests.support.instruction_programs import (
    INSTRUCTION,
    SHAPES,
    arrays,
    build as build_program,
    compare_with_state,
    outcome,
)

Array = NDArray[Any]
ITERATION, J, K, N, M = (Var(name, INDEX) for name in "ijknm")
TOTAL, ROW = Var("total", "float64"), Var("row", INDEX)


def forced(threads: int | str | None, crossover: int) -> NDArray[np.int64]:
    """Settings with which every loop of two iterations is shared by three threads, and its results go past the
    caches."""
    return np.array([3, 2, 1, 0, 1], np.int64)


@pytest.fixture
def everything_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "settings_of", forced)


# Which loops ---------------------------------------------------------------------------------------------------------


def plus(left: Expr, right: Expr | int) -> Expr:
    return apply(ADD, left, integer(right) if isinstance(right, int) else right)


def times(left: Expr, right: Expr) -> Expr:
    return apply(MUL, left, right)


A, B, C = (Buffer(name, "float64") for name in "abc")


def load(buffer: Buffer, index: Expr) -> Load:
    return Load(buffer, index)


def accumulated(term: Expr, into: Var = TOTAL) -> Set:
    return Set(into, apply(ACCUMULATE, into, term))


def loop(*body: Stmt, size: Expr = N) -> Loop:
    return mark_nest(Loop(ITERATION, size, body))


NUMBER = Const("0.0", "float64")
VALUE = load(C, ITERATION)
PARALLEL: Mapping[str, Loop] = {
    "elements": loop(Store(A, ITERATION, load(B, ITERATION))),
    "in place": loop(Store(A, ITERATION, load(A, ITERATION))),
    "any read": loop(Store(A, ITERATION, load(B, times(ITERATION, ITERATION)))),
    "rows": loop(Let(ROW, times(ITERATION, M)), Loop(J, M, (Store(A, plus(ROW, J), load(A, plus(J, ROW))),))),
    "three axes": loop(Loop(J, M, (Loop(K, N, (Store(A, plus(times(plus(times(ITERATION, M), J), N), K), VALUE),)),))),
    "a part of an array": loop(Loop(J, M, (Store(A, plus(times(plus(ITERATION, 3), M), J), VALUE),))),
    "a column": loop(Store(A, plus(times(ITERATION, M), 2), load(A, plus(times(ITERATION, M), 2)))),
    "branches": loop(If(apply(GE, VALUE, NUMBER), (Store(A, ITERATION, VALUE),), (Store(A, ITERATION, TOTAL),))),
    "an inner loop that is left": loop(
        Set(TOTAL, NUMBER),
        Loop(J, M, (accumulated(load(B, J)), If(apply(GE, TOTAL, VALUE), (Break(),)))),
        Store(A, ITERATION, TOTAL),
    ),
    "a sum of the row": loop(Set(TOTAL, NUMBER), Loop(J, M, (accumulated(load(B, J)),)), Store(A, ITERATION, TOTAL)),
    "two buffers": loop(
        Store(A, ITERATION, VALUE), Loop(J, M, (Store(B, plus(times(ITERATION, M), J), load(A, ITERATION)),))
    ),
    "a remainder by the length of a row": loop(
        Loop(J, N, (Store(A, plus(times(ITERATION, M), apply(MOD, J, M)), VALUE),))
    ),
    "static columns": loop(*(Store(A, plus(times(ITERATION, integer(3)), column), VALUE) for column in range(3))),
}
SERIAL: Mapping[str, Loop] = {
    "the element before": loop(Store(A, plus(ITERATION, 1), load(A, ITERATION))),
    "one element": loop(Store(A, integer(0), load(B, ITERATION))),
    "columns": loop(Loop(J, M, (Store(A, J, load(A, J)),))),
    "an index array": loop(Store(A, Load(Buffer("b", INDEX), ITERATION), VALUE)),
    "longer rows": loop(Loop(J, N, (Store(A, plus(times(ITERATION, M), J), VALUE),))),
    "two layouts": loop(Store(A, ITERATION, VALUE), Loop(J, M, (Store(A, plus(times(ITERATION, M), J), VALUE),))),
    "another row": loop(Loop(J, M, (Store(A, plus(times(ITERATION, M), J), load(A, plus(times(J, M), ITERATION))),))),
    "a moving offset": loop(Loop(J, M, (Store(A, plus(ITERATION, J), VALUE),))),
    "a remainder": loop(Store(A, apply(MOD, ITERATION, M), VALUE)),
    "a remainder by another number": loop(Loop(J, N, (Store(A, plus(times(ITERATION, M), apply(MOD, J, K)), VALUE),))),
    "a factor that changes": loop(Loop(J, M, (Store(A, times(ITERATION, J), VALUE),))),
    "an offset that changes": loop(
        Let(ROW, Load(Buffer("b", INDEX), ITERATION)), Store(A, plus(ITERATION, ROW), VALUE)
    ),
    "rows of no length": loop(Store(A, times(ITERATION, integer(0)), VALUE)),
    "checks": loop(Check(apply(GE, VALUE, NUMBER), 1), Store(A, ITERATION, VALUE)),
    "a check in a branch": loop(
        If(apply(GE, VALUE, NUMBER), (), (Check(apply(GE, VALUE, NUMBER), 1),)), Store(A, ITERATION, VALUE)
    ),
    "it is left": loop(Store(A, ITERATION, VALUE), If(apply(GE, VALUE, NUMBER), (), (Break(),))),
    "a branch in another row": loop(If(apply(GE, VALUE, NUMBER), (Store(A, plus(ITERATION, 1), load(A, ITERATION)),))),
    "calls that may fail": loop(Invoke("f", (ITERATION,), 1), Store(A, ITERATION, VALUE)),
    "a column too many": loop(*(Store(A, plus(times(ITERATION, integer(3)), column), VALUE) for column in range(4))),
    "the same number": loop(Store(A, ITERATION, NUMBER)),
    "short": loop(Store(A, ITERATION, VALUE), size=integer(1000)),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_iterations_that_keep_to_themselves_are_shared(name: str) -> None:
    assert shares_of(PARALLEL[name], ()) is not None


@pytest.mark.parametrize("name", SERIAL)
def test_iterations_that_may_meet_are_not_shared(name: str) -> None:
    assert shares_of(SERIAL[name], ()) is None


def test_a_scalar_is_shared_where_it_is_accumulated_only() -> None:
    found = shares_of(loop(Loop(J, M, (accumulated(load(B, J)),))), [TOTAL])
    assert found is not None and found.steps == {TOTAL: ACCUMULATE}
    assert shares_of(loop(accumulated(load(B, ITERATION)), Store(A, ITERATION, TOTAL)), [TOTAL]) is None
    least = Set(TOTAL, apply(ACCUMULATE_MINIMUM, TOTAL, load(B, ITERATION)))
    assert shares_of(loop(least), [TOTAL]) is not None
    assert shares_of(loop(accumulated(load(B, ITERATION)), least), [TOTAL]) is None
    assert shares_of(loop(accumulated(TOTAL)), [TOTAL]) is None
    assert shares_of(loop(Set(TOTAL, load(B, ITERATION))), [TOTAL]) is None
    some = If(apply(GE, VALUE, NUMBER), (accumulated(VALUE),))
    found = shares_of(loop(some), [TOTAL])
    assert found is not None and found.steps == {TOTAL: ACCUMULATE}
    assert shares_of(loop(some, If(apply(GE, TOTAL, NUMBER), (Store(A, ITERATION, VALUE),))), [TOTAL]) is None
    assert shares_of(loop(some, least), [TOTAL]) is None
    assert shares_of(loop(Set(TOTAL, apply(SUB, TOTAL, load(B, ITERATION)))), [TOTAL]) is None


def test_columns_are_shared_where_rows_are_not() -> None:
    summed = Store(A, J, apply(ACCUMULATE, load(A, J), load(B, plus(ROW, J))))
    rows = loop(Let(ROW, times(ITERATION, M)), Loop(J, M, (summed,)))
    assert shares_of(rows, ()) is None
    found = columns_of(rows)
    assert found is not None and found[0].var == J and text_of(found[1].work) == "6 * n"
    assert columns_of(loop(Note("x.py:1: y", "part"), *rows.body)) == found
    assert columns_of(loop(*rows.body, Note("x.py:1: y", "part"))) is None
    some = If(apply(GE, load(B, plus(ROW, J)), NUMBER), (summed,))
    assert columns_of(loop(Let(ROW, times(ITERATION, M)), Loop(J, M, (some,)))) is not None
    assert columns_of(loop(Let(ROW, times(ITERATION, M)), Loop(J, M, (some, If(some.condition, (Break(),)))))) is None
    shifted = Store(A, J, load(A, plus(J, 1)))
    assert columns_of(loop(Loop(J, M, (shifted,)))) is None
    assert columns_of(loop(Loop(J, ITERATION, (summed,)))) is None
    assert columns_of(loop(Let(TOTAL, load(A, ITERATION)), Loop(J, M, (Store(A, J, TOTAL),)))) is None
    assert columns_of(loop(Loop(J, M, (summed,)), Store(A, ITERATION, VALUE))) is None


@pytest.mark.slow
@pytest.mark.usefixtures("everything_parallel")
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_columns_of_scattered_rows_are_shared(rows: int) -> None:
    """Several rows go to one place, indices count from the end too, and the last of those that are set stays."""
    table, y, where = T.matrix("table"), T.matrix("y"), T.vector("where", dtype="int64")
    added = graphc.function([table, where, y], T.inc_subtensor(table[where], y))
    stored = graphc.function([table, where, y], T.set_subtensor(table[where], y))
    assert added.source.count("parallel(") == 4 and stored.source.count("parallel(") == 3
    rng = np.random.default_rng(8)
    start, values, places = rng.random((7, 700)), rng.random((rows, 700)), rng.integers(-7, 7, rows)
    wanted = start.copy()
    np.add.at(wanted, places, values)
    np.testing.assert_array_equal(added(start, places, values), wanted)
    last = start.copy()
    for place, value in zip(places, values, strict=True):
        last[place] = value
    np.testing.assert_array_equal(stored(start, places, values), last)


@pytest.mark.slow
def test_sums_over_the_first_axis_are_right_and_the_same_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(4)
    x = T.dmatrix("x")
    outputs = [x.sum(axis=0), x.var(axis=0), T.exp(x).mean(axis=0), x.max(axis=0)]
    one, three = (graphc.function([x], outputs, threads=threads) for threads in (1, 3))
    three.library.settings[1] = 2  # type: ignore[attr-defined]
    for shape in [(1000, 1500), (1003, 701), (7, 2000), (2000, 7), (600, 0)]:
        value = rng.normal(size=shape)
        found = one(value)
        for _ in range(3):
            for got, again in zip(found, three(value), strict=True):
                np.testing.assert_array_equal(got, again)
        assert_within(found, outputs, {x: value})


def test_work_counts_inner_loops() -> None:
    exp = apply(CALLS["exp"], load(B, J))
    rows = loop(
        Set(TOTAL, NUMBER), Loop(J, M, (accumulated(exp),)), Loop(J, M, (Store(A, plus(times(ITERATION, M), J), exp),))
    )
    found = shares_of(rows, ())
    assert found is not None and text_of(found.work) == "46 * m"
    branches = shares_of(loop(If(apply(GE, VALUE, NUMBER), rows.body, rows.body)), ())
    assert branches is not None and text_of(branches.work) == "3 + 92 * m"
    guessed = shares_of(loop(Loop(J, plus(ITERATION, 1), (Set(TOTAL, exp),)), Store(A, ITERATION, TOTAL)), ())
    assert guessed is not None and text_of(guessed.work) == str(16 * 22 + 1)


INDICES = st.recursive(
    st.sampled_from([ITERATION, J, N, M, integer(0), integer(1), integer(2)]),
    lambda inner: st.builds(
        apply,
        st.sampled_from([ADD, ADD, MUL, MUL, MOD]),
        inner,
        inner,
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(
    stores=st.lists(st.tuples(st.sampled_from([A, B]), INDICES), min_size=1, max_size=3),
    loads=st.lists(st.tuples(st.sampled_from([A, B, C]), INDICES), max_size=3),
)
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
def test_what_is_shared_never_meets(stores: list[tuple[Buffer, Expr]], loads: list[tuple[Buffer, Expr]]) -> None:
    """Loops over random positions, run: in those that are shared no iteration reaches what another writes."""
    value: Expr = NUMBER
    for read in loads:
        value = apply(ADD, value, load(*read))
    body = tuple(Store(buffer, index, value) for buffer, index in stores)
    if shares_of(loop(Loop(J, M, body)), ()) is None:
        return
    for n, m in product((1, 2, 3, 4), repeat=2):
        written: dict[tuple[Buffer, int], set[int]] = {}
        touched: dict[tuple[Buffer, int], set[int]] = {}
        for i, j in product(range(n), range(m)):
            names = {"i": i, "j": j, "n": n, "m": m}
            for found, places in ((written, stores), (touched, [*stores, *loads])):
                for buffer, index in places:
                    try:
                        found.setdefault((buffer, eval(text_of(index), names)), set()).add(i)
                    except ZeroDivisionError:
                        reject()
        assert all(len(touched[place]) == 1 for place in written), (n, m)


# Results -------------------------------------------------------------------------------------------------------------


def outputs_of(x: Node, y: Node) -> list[Node]:
    return [
        *(T.exp(x) * y, x.sum(), x.sum(axis=0), T.sqr(x).mean(axis=1), T.nnet.softmax(x), T.log(T.nnet.softmax(x))),
        *(x.max(), x.min(), (x > 0).any(), T.isfinite(x).all(), x.argmax(axis=1), x.argmax(), x.prod(), x.var()),
        *(x.T, x[::-1], T.concatenate([x, x], axis=1), T.inc_subtensor(x[1:], y), T.cumsum(x, axis=1)),
        *(x[T.arange(x.shape[0]) // 2], T.cast(x * 10, "int64").sum(), T.cast(x, "float32").sum(), T.dot(x, x.T)),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("everything_parallel")
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (2, 3), (7, 5), (64, 3), (130, 70)])
def test_shared_loops_compute_what_the_interpreter_computes(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = T.dmatrix("x"), T.dvector("y")
    values = rng.normal(size=shape), rng.normal(size=shape[1])
    outputs = outputs_of(x, y) if min(shape) else [T.exp(x) * y, x.sum(), x.sum(axis=0), x.sum(axis=1), x.T]
    compiled = graphc.function([x, y], outputs)
    for _ in range(3):
        assert_within(compiled(*values), outputs, {x: values[0], y: values[1]})


@pytest.mark.usefixtures("everything_parallel")
def test_special_values_survive_being_shared() -> None:
    x = T.dvector("x")
    f = graphc.function([x], [x.sum(), x.max(), x.min(), x.prod()])
    base = np.linspace(1.0, 2.0, 50)
    for special in ([np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [-0.0], [0.0]):
        value = base.copy()
        value[[3, 47][: len(special)]] = special
        with np.errstate(invalid="ignore"):
            want = [value.sum(), value.max(), value.min(), value.prod()]
        np.testing.assert_allclose(f(value), want)


@pytest.mark.usefixtures("everything_parallel")
def test_a_sum_of_one_array_has_all_its_chunks() -> None:
    """The last of them too, which is shorter than the others: there are 256 at most, of blocks of 256 elements."""
    x = T.dvector("x")
    f = graphc.function([x], x.sum())
    assert " in independent(blocks(blocks(x_0, 256), size" in f.source
    for size in (1, 255, 257, 256 * 256, 256 * 300 + 1, 256 * 1001 - 1):
        assert f(np.ones(size)) == size


@pytest.mark.slow
@pytest.mark.usefixtures("everything_parallel")
@given(instructions=st.lists(INSTRUCTION, min_size=1, max_size=14), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
def test_random_programs_on_three_threads(instructions: list[tuple[int, int, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = [T.dmatrix("x"), T.dvector("y"), T.dscalar("s")]
    pool = build_program(instructions, leaves)
    cost = sum((value.mean() for value in pool[3:]), start=T.sqr(pool[-1]).sum())
    weight = graphc.shared(rng.normal(size=(3,)), name="w")
    gradients = graphc.grad(cost + T.sqr(weight).sum() * cost, [*leaves, weight], disconnected_inputs="ignore")
    outputs = [pool[-1], pool[len(pool) // 2], *gradients]
    updates = [(weight, weight - 0.1 * gradients[-1])]
    calls = {
        mode: graphc.function(leaves, outputs, mode, updates=updates, on_unused_input="ignore")
        for mode in ("interpreted", "compiled")
    }
    start = weight.get_value()
    for rows, columns in SHAPES:
        values = arrays(rows, columns, rng)
        want = outcome(calls["interpreted"], values)
        weight.set_value(start)
        compare_with_state(outcome(calls["compiled"], values), want, calls["compiled"], values, weight, start)


@pytest.mark.slow
def test_results_are_the_same_for_any_number_of_threads() -> None:
    """To the bit, at the sizes of chunks that are in use."""
    rng = np.random.default_rng(1)
    x, y = T.dvector("x"), T.fmatrix("y")
    outputs = [x.sum(), T.exp(x).mean(), x.prod(), T.tanh(x), y.sum(), y.sum(axis=1), T.nnet.softmax(y).sum(), y.var()]
    values = rng.normal(size=1_000_003), rng.normal(size=(3001, 401)).astype("float32")
    functions = {threads: graphc.function([x, y], outputs, threads=threads) for threads in (1, 2, 3, 7)}
    want = functions[1](*values)
    for threads, call in functions.items():
        assert call.library.settings[0] == threads  # type: ignore[attr-defined]
        call.library.settings[1] = 2  # type: ignore[attr-defined]
        for _ in range(5):
            for got, expected in zip(call(*values), want, strict=True):
                np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(want[0], values[0].sum(), rtol=1e-9)
    np.testing.assert_allclose(want[4], values[1].sum(dtype="float64"), rtol=1e-5)


def test_the_plan_names_the_loops_that_threads_may_share() -> None:
    x, y = T.dvector("x"), T.dmatrix("y")
    text = graphc.function([x, y], [T.exp(x), y.sum(axis=1)], threads=5).explain()
    assert "threads may share nest_exp: x_0 iterations of work 23, in chunks from 11398 iterations on" in text
    assert "threads may share nest_sum: y_0 iterations of work 5 + 3 * y_1" in text
    assert "5 threads share a loop of" in text
    with options.change(outline="never"):
        assert "threads may share" not in graphc.function([x], T.exp(x)).explain()


@pytest.mark.parametrize("threads", [0, -2, 1.5, "many", True, 10**6])
def test_a_wrong_number_of_threads_is_refused(threads: Any) -> None:
    x = T.dvector("x")
    with pytest.raises(graphc.GraphcError, match="threads"):
        graphc.function([x], T.exp(x), threads=threads)


def test_the_number_of_threads_compiles_nothing_anew() -> None:
    x = T.dvector("x")
    graphc.function([x], T.sinh(x), threads=2)
    before = PROCESS.compilations
    assert graphc.function([x], T.sinh(x), threads=3).library.settings[0] == 3  # type: ignore[attr-defined]
    with options.change(threads=4):
        assert graphc.function([x], T.sinh(x)).library.settings[0] == 4  # type: ignore[attr-defined]
    assert PROCESS.compilations == before


# Safety --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_calls_from_eight_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "settings_of", lambda threads, crossover: np.array([3, 2, 100, 0, 1000], np.int64))
    rng = np.random.default_rng(2)
    x = T.dmatrix("x")
    counter = graphc.shared(np.zeros(3), name="counter")
    f = graphc.function([x], [T.nnet.softmax(T.dot(x, x.T)), T.tanh(x).sum()])
    g = graphc.function([x], [x.sum(axis=1) + 1, x.T], updates=[(counter, counter + 1)])
    reference = graphc.function([x], [T.nnet.softmax(T.dot(x, x.T)), T.tanh(x).sum()], mode="interpreted")
    problems: list[BaseException] = []

    def use(seed: int) -> None:
        try:
            value = np.random.default_rng(seed).normal(size=(50 + 10 * seed, 40 + seed))
            want = reference(value)
            for _ in range(150):
                for got, expected in zip(f(value), want, strict=True):
                    np.testing.assert_allclose(got, expected, rtol=1e-10)
                sums, turned = g(value)
                np.testing.assert_allclose(sums, value.sum(axis=1) + 1, rtol=1e-10)
                np.testing.assert_array_equal(turned, value.T)
        except BaseException as error:
            problems.append(error)

    f(rng.normal(size=(3, 2)))
    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    assert (counter.get_value() >= 150).all()


PROGRAM = """
import gc, multiprocessing, os, signal, sys, threading, time
import numpy as np, graphc, graphc.tensor as T
from graphc.codegen.pipeline import restore
restore.settings_of = lambda threads, crossover: np.array([3, 2, 100, 0, 1000], np.int64)
x = T.dmatrix("x")
f = graphc.function([x], [T.tanh(x) * 2, T.exp(x).sum(), T.nnet.softmax(x)])
value = np.random.default_rng(0).normal(size=(200, 300))
want = [np.tanh(value) * 2, np.exp(value).sum()]
def check():
    found = f(value)
    return np.allclose(found[0], want[0]) and np.allclose(found[1], want[1])
assert check()
"""
SAFE = {
    "a fork while workers sleep": """
        for iteration in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if check() and check() else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert check()
    """,
    "a fork while another thread calls": """
        def use():
            while running:
                f(value)
        running = True
        user = threading.Thread(target=use)
        user.start()
        for iteration in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if check() and check() else 1)
            assert os.waitpid(child, 0)[1] == 0
        running = False
        user.join()
        assert check()
    """,
    "forked processes of multiprocessing": """
        def work(n):
            return check()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert all(pool.map(work, range(20)))
        assert check()
    """,
    "the end of the process while calls run": """
        def use():
            while True:
                f(value)
        for _ in range(3):
            threading.Thread(target=use, daemon=True).start()
        time.sleep(0.1)
    """,
    "an interrupt during calls": """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
        for iteration in range(5):
            threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    f(value)
            except KeyboardInterrupt:
                assert check()
    """,
    "functions that come and go": """
        graphs = [T.tanh(x) * n + T.sqr(x).sum() for n in range(3)]
        for iteration in range(60):
            g = graphc.function([x], graphs[iteration % 3])
            assert np.allclose(g(value), np.tanh(value) * (iteration % 3) + (value * value).sum())
            del g
            gc.collect()
        assert check()
    """,
}


@pytest.mark.slow
@pytest.mark.skipif(not has_threads(), reason="every launch is serial on this system")
@pytest.mark.parametrize("what", SAFE)
def test_safe_in_a_process_of_its_own(what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM + textwrap.dedent(SAFE[what])],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_lines_of_a_shared_loop_under_cpython() -> None:
    """The python mode runs the same chunks one after the other."""
    x = T.dvector("x")
    f = graphc.function([x], [T.tanh(x), T.sqr(x).sum()], mode="python")
    assert "parallel(nest_tanh, " in f.source
    value = np.linspace(-2, 2, 11)
    np.testing.assert_allclose(f(value)[0], np.tanh(value))
