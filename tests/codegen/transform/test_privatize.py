"""Loops over rows that add into what they share: each chunk adds into a copy, and the copies are combined in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.schedule.memory import added_by_both, row_sum, table_of_sums
from graphc.codegen.threads.pool import has_threads
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.parallelize import added_into, neutral
from graphc.ir.node import Node
from graphc.loopir.ir import INDEX, MOST_COPIES, Buffer, Expr, If, Load, Loop, Stmt, Store, Var, apply, integer
from graphc.loopir.operators import ACCUMULATE, ADD, CALLS, INFIX, LT, SUB, Operator
from tests.support.bounds import assert_specified

Array = NDArray[Any]
ITERATION, J, N, M = (Var(name, INDEX) for name in "ijnm")
SHAPES = [(0, 5), (1, 5), (7, 3), (15, 4), (16, 1), (17, 20), (40, 0), (300, 33), (1000, 7), (3001, 2)]
"""No row, one, fewer than two chunks have, just as many, and many."""
needs_threads = pytest.mark.skipif(not has_threads(), reason="the pool needs futexes")


# What a loop does to a buffer ----------------------------------------------------------------------------------------


A, B, C, X = (Buffer(name, "float64") for name in "abcx")


def added(buffer: Buffer, index: Expr, value: Expr, step: Operator = ACCUMULATE) -> Store:
    return Store(buffer, index, apply(step, Load(buffer, index), value))


def test_what_is_only_added_into_is_found() -> None:
    value = Load(X, ITERATION)

    def found(*body: Stmt) -> dict[Buffer, Operator]:
        return added_into(Loop(ITERATION, N, (Loop(J, M, body),)), {A, B})

    assert found(added(A, J, value)) == {A: ACCUMULATE}
    assert found(added(A, J, value), added(A, ITERATION, value), added(C, J, value)) == {A: ACCUMULATE}
    assert found(added(A, J, value, ADD), added(B, J, value)).keys() == {A, B}
    less = apply(LT, value, Load(C, J))
    assert found(If(less, (added(A, J, value),), (added(B, J, value),)), added(A, J, value)).keys() == {A, B}
    assert not found(If(less, (added(A, J, value),), (Store(A, J, value),)))
    assert not found(added(A, J, value), If(apply(LT, value, Load(A, J)), ()))
    assert not found(added(A, J, value, SUB))
    assert not found(added(A, J, value), added(A, J, value, CALLS["accumulate_maximum"]))
    assert not found(added(A, J, value), Store(A, ITERATION, value))
    assert found(added(A, J, Load(B, J)), added(B, J, value)).keys() == {A}
    assert not found(Store(A, J, apply(ACCUMULATE, Load(A, ITERATION), value)))
    assert not found(added(A, J, Load(A, integer(3))))


def test_several_elements_are_added_at_once() -> None:
    """A block of rows loads and stores what it adds into once."""
    value = Load(X, ITERATION)

    def block(inner: Operator, last: Expr) -> dict[Buffer, Operator]:
        chain: Expr = Load(A, J)
        for step, term in ((inner, value), (ACCUMULATE, value), (ACCUMULATE, last)):
            chain = apply(step, chain, term)
        return added_into(Loop(ITERATION, N, (Loop(J, M, (Store(A, J, chain),)),)), {A})

    assert block(ACCUMULATE, value) == {A: ACCUMULATE}
    assert not block(SUB, value)
    assert not block(ACCUMULATE, Load(A, ITERATION))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_nothing_is_changed_by_what_copies_begin_with(dtype: str) -> None:
    steps: dict[str, Callable[..., Any]] = {
        "accumulate": np.add,
        "accumulate_product": np.multiply,
        "accumulate_minimum": np.minimum,
        "accumulate_maximum": np.maximum,
    }
    if dtype == "bool":
        steps = {"logical_or": np.logical_or, "logical_and": np.logical_and, "|": np.logical_or, "&": np.logical_and}
    for step, ufunc in steps.items():
        text = neutral((CALLS | INFIX)[step], dtype).text
        start = np.array(eval(text, {"inf": np.inf}), dtype)
        values = np.array([0, 1, 5], dtype)
        if dtype.startswith("float"):
            values = np.array([-np.inf, -1.5, -0.0, 0.0, 3, np.inf, np.nan], dtype)
        np.testing.assert_array_equal(ufunc(values, start), values)
        np.testing.assert_array_equal(np.signbit(ufunc(values, start)), np.signbit(values))


# Programs ------------------------------------------------------------------------------------------------------------


def moments(x: Node, y: Node) -> list[Node]:
    """Sums down the columns of what is made row by row, beside a total."""
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred * y
    return [centred, scaled.sum(axis=0), T.sqr(centred).sum(axis=0), (centred > 0.5).any(axis=0), scaled.sum()]


def extremes(x: Node, y: Node) -> list[Node]:
    centred = x - x.mean(axis=1, keepdims=True)
    factors = T.exp(0.01 * centred * y)
    return [centred, factors.prod(axis=0), centred.max(axis=0), centred.min(axis=0), (centred < 9).all(axis=0)]


def layer_norm(x: Node, y: Node) -> list[Node]:
    scale, shift = y.sum(axis=0), y.mean(axis=0)
    centred = x - x.mean(axis=1, keepdims=True)
    normal = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-5)
    return [normal * scale + shift, *graphc.grad((normal * scale * y + shift).sum(), [x, y])]


def columns(x: Node, y: Node) -> list[Node]:
    """Reductions down the columns with nothing else in their loops, which could be shared by columns as well."""
    return [x.sum(axis=0), (x * y).sum(axis=0), x.var(axis=0), y.max(axis=0), (x < 1e-3).any(axis=0)]


def scattered(x: Node, y: Node) -> list[Node]:
    """Counts and sums of elements by one of five keys."""
    keys = T.arange(x.shape[0]) % 5
    counts = T.inc_subtensor(T.zeros((5,), dtype="int64")[keys], T.ones_like(keys))
    return [counts, T.inc_subtensor(T.zeros((5,), dtype=x.dtype)[keys], (x * y).sum(axis=1))]


PROGRAMS = {
    "columns": columns,
    "moments": moments,
    "extremes": extremes,
    "layer norm": layer_norm,
    "scattered": scattered,
}


def compiled(program: Callable[[Node, Node], list[Node]], dtype: str, mode: str = "compiled") -> graphc.Function:
    x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
    return graphc.function([x, y], program(x, y), mode=mode)


def run(call: graphc.Function, threads: int, *values: Array) -> list[Array]:
    """The results where every loop of two iterations is cut into chunks for these threads."""
    call.library.settings[:] = [threads, 2, 1, 0, 1]  # type: ignore[attr-defined]
    return [np.array(result) for result in call(*values)]


def same_bits(got: Sequence[Array], want: Sequence[Array]) -> bool:
    return [array.tobytes() for array in got] == [array.tobytes() for array in want]


@pytest.mark.slow
@needs_threads
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_number_of_threads_gives_the_same_bits(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    call = compiled(PROGRAMS[name], dtype)
    assert "copies_" in call.source and "adds into its own" in call.explain()
    for shape in SHAPES:
        if name in ("columns", "extremes") and 0 in shape:
            continue
        values = rng.normal(size=(2, *shape)).astype(dtype)
        want = run(call, 1, *values)
        for threads in (2, 3, 7):
            assert same_bits(run(call, threads, *values), want)
        assert_specified(call, want, values)


@pytest.mark.slow
@needs_threads
def test_special_values_reach_the_columns_they_belong_to() -> None:
    values = np.random.default_rng(0).normal(size=(2, 60, 4))
    values[0, 5, 0], values[1, 50, 1], values[1, 7, 2], values[1, 40, 2] = np.nan, np.inf, np.inf, -np.inf
    for program in (moments, extremes):
        call = compiled(program, "float64")
        with np.errstate(all="ignore"):
            assert_specified(call, run(call, 3, *values), values)


def sum_then_matrix(x: Node, y: Node) -> list[Node]:
    """A row that rows are added to is dead before a matrix is that elements are added to."""
    scaled = x / (1.0 + T.sqr(x).sum(axis=1, keepdims=True))
    columns = T.sqr(scaled).sum(axis=0)
    grown = scaled * T.exp(columns / columns.sum())[::-1]
    back = T.inc_subtensor(grown[:, ::-1], scaled * y)
    return [scaled, T.exp(back) / back.sum(axis=1, keepdims=True)]


def narrow_and_wide(x: Node, y: Node) -> list[Node]:
    """Two rows in float64 that rows are added to, one after the other: of float32, then of float64."""
    narrow = T.cast(x, "float32")
    centred = narrow - narrow.mean(axis=1, keepdims=True)
    total = T.sqr(centred.sum(axis=0)).sum()
    scaled = (T.cast(y, "float64") + narrow) * total - x.mean(axis=1, keepdims=True)
    columns = scaled.sum(axis=0)
    return [centred, scaled, columns / T.sqr(columns).sum()]


@pytest.mark.slow
@needs_threads
@pytest.mark.parametrize("program", [sum_then_matrix, narrow_and_wide])
def test_buffers_that_rows_are_added_to_are_told_apart(program: Callable[[Node, Node], list[Node]]) -> None:
    """Copies are made of a buffer: no slot of the arena is copied as what another value needs."""
    call = compiled(program, "float64")
    for shape in ((5, 3), (40, 7), (400, 7), (1000, 2)):
        values = np.random.default_rng(6).normal(size=(2, *shape))
        assert_specified(call, run(call, 3, *values), values)


def test_a_buffer_is_one_target_of_all_loops_that_change_it() -> None:
    few, many = (row_sum(J), 8), (row_sum(J), 100)
    assert added_by_both(few, many) == many
    assert added_by_both(few, (row_sum(M), 8)) is None
    assert added_by_both(few, None) is None and added_by_both(None, few) is None
    assert added_by_both(few, (table_of_sums(J, J), 8)) is None


def test_zeros_keep_their_sign_where_nothing_is_added() -> None:
    table, places, y = T.dvector("table"), T.lvector("places"), T.dvector("y")
    call = graphc.function([table, places, y], [T.inc_subtensor(table[places], y)])
    start, where = np.array([-0.0, 0.0, -0.0]), np.full(100, 1)
    (got,) = run(call, 3, start, where, np.ones(100))
    assert got.tolist() == [0, 100, 0] and np.signbit(got).tolist() == [True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool"])
def test_elements_go_to_small_tables_and_to_large_ones(dtype: str) -> None:
    table, places, y = T.vector("table", dtype=dtype), T.lvector("places"), T.vector("y", dtype=dtype)
    call = graphc.function([table, places, y], [T.inc_subtensor(table[places], y)])
    rng = np.random.default_rng(1)
    for size, count in ((1, 0), (1, 1), (1, 500), (3, 47), (3, 48), (3, 3000), (1000, 100), (1000, 40_000)):
        start, values = (rng.integers(0, 9, n).astype(dtype) for n in (size, count))
        where = rng.integers(-size, size, count)
        want = start.copy()
        np.add.at(want, where, values)
        for threads in (1, 3):
            np.testing.assert_array_equal(run(call, threads, start, where, values)[0], want)


def test_rows_go_to_small_tables_and_to_large_ones() -> None:
    """Threads share rows where the table is small, columns where it is not."""
    table, places, y = T.fmatrix("table"), T.lvector("places"), T.fmatrix("y")
    call = graphc.function([table, places, y], [T.inc_subtensor(table[places], y)])
    rng = np.random.default_rng(1)
    for size, count, columns in ((1, 0, 4), (3, 500, 1), (3, 47, 5), (2, 3000, 600), (50, 100, 700), (5, 60, 0)):
        start, values = (rng.integers(0, 9, (n, columns)).astype("float32") for n in (size, count))
        where = rng.integers(-size, size, count)
        want = start.copy()
        np.add.at(want, where, values)
        for threads in (1, 3):
            np.testing.assert_array_equal(run(call, threads, start, where, values)[0], want)


@pytest.mark.slow
def test_copies_are_few_and_counted_as_memory() -> None:
    """At most MOST_COPIES, each with a part of the rows many times its size; none for a table as large as updates."""
    x, y = T.fmatrix("x"), T.fmatrix("y")
    call = graphc.function([x, y], layer_norm(x, y))

    def growth(rows: int) -> int:
        """The bytes that one more row asks for: of values materialised by rows, and of a copy that begins a group."""
        return call.memory((rows + 1, 64), (rows + 1, 64)).arena - call.memory((rows, 64), (rows, 64)).arena

    for group in (1, 2, 5):
        assert growth(group * 32) - growth(group * 32 - 1) >= 2 * 8 * 64
    assert growth(MOST_COPIES * 32) - growth(MOST_COPIES * 32 - 1) < 8 * 64
    table, places, added = T.dvector("table"), T.lvector("places"), T.dvector("y")
    scatter = graphc.function([table, places, added], [T.inc_subtensor(table[places], added)])
    assert scatter.memory(*[(10**6,)] * 3).arena < 100_000


@pytest.mark.slow
@needs_threads
def test_concurrent_calls_have_copies_of_their_own() -> None:
    call = compiled(layer_norm, "float32")
    values = np.random.default_rng(2).normal(size=(4, 2, 400, 50)).astype("float32")
    want = [run(call, 3, *each) for each in values]
    right: list[bool] = []

    def work(number: int) -> None:
        right.extend(same_bits([np.array(result) for result in call(*values[number])], want[number]) for _ in range(30))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 120 and all(right)


def test_sums_of_columns_are_at_least_as_accurate_as_in_one_go() -> None:
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(4000, 6)) * 10.0 ** rng.integers(-6, 7, (4000, 6)) + 1e6).astype("float32")
    call = compiled(lambda x, y: [T.exp(-x.max(axis=1)), (x * y).sum(axis=0)], "float32")
    got = run(call, 3, x, np.ones_like(x))[1]
    exact = x.astype("float64").sum(axis=0)
    assert np.all(np.abs(got - exact) <= np.spacing(np.float32(1)) * np.abs(exact))


def test_the_same_chunks_under_cpython() -> None:
    values = np.random.default_rng(5).normal(size=(2, 40, 3))
    call = compiled(layer_norm, "float64", "python")
    assert_specified(call, call(*values), values)


# Strips of columns ----------------------------------------------------------------------------------------------------


def sums_by_column(arrays: int, dtype: str = "int64", columns: int | None = None) -> tuple[list[Node], list[Node]]:
    """Sums down the columns of products with `arrays` vectors: as many buffers by column, and the sums'."""
    x = T.tensor(dtype, (None, columns), name="x")
    vectors = [T.vector(f"v{number}", dtype=dtype) for number in range(arrays)]
    return [x, *vectors], [(x * vector).sum(axis=0) for vector in vectors]


@pytest.mark.slow
def test_many_buffers_by_column_are_gone_over_in_strips() -> None:
    assert "for strip in range" in graphc.function(*sums_by_column(2)).source
    assert "for strip in range" not in graphc.function(*sums_by_column(1)).source
    assert "for strip in range" not in graphc.function(*sums_by_column(2, "int32")).source
    assert "for strip in range" in graphc.function(*sums_by_column(4, "int32")).source


@pytest.mark.slow
def test_few_columns_are_one_strip() -> None:
    x = T.tensor("int64", (None, 3), name="x")
    vectors = [T.tensor("int64", (3,), name=f"v{number}") for number in range(3)]
    call = graphc.function([x, *vectors], [(x * vector).sum(axis=0) for vector in vectors])
    assert "strip" not in call.source


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7, 0), (0, 7), (700, 1023), (300, 1024), (300, 1025), (513, 2048), (40, 3000)])
@pytest.mark.parametrize("threads", [1, 3])
def test_strips_hold_every_column_once(shape: tuple[int, int], threads: int) -> None:
    """By copies and by columns: the settings cut every loop; whole numbers, so that no order matters."""
    inputs, outputs = sums_by_column(3)
    call = graphc.function(inputs, outputs)
    rng = np.random.default_rng(5)
    x, *vectors = (rng.integers(-99, 99, size) for size in (shape, *(shape[1:] for _ in range(3))))
    for result, vector in zip(run(call, threads, x, *vectors), vectors, strict=True):
        np.testing.assert_array_equal(result, (x * vector).sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIXED_NAMES))
def test_names_of_functions_of_parts_are_nobodys_else(name: str) -> None:
    """An input, and a number computed before, called as the function of a nest calls something of its own."""
    x, (first, second, third) = T.lmatrix("x"), (T.lvector(each) for each in (name, "u", "v"))
    k = T.lscalar("k")
    number = k * k + 1
    number.name = name
    outputs = [(x * first * number).sum(axis=0), (x * second).sum(axis=0), (x * third + number).sum(axis=0)]
    call = graphc.function([x, first, second, third, k], outputs)
    rng = np.random.default_rng(6)
    value, *vectors = (rng.integers(-9, 9, size) for size in ((300, 1100), *((1100,) for _ in range(3))))
    found = call(value, *vectors, 3)
    expected = [value * vectors[0] * 10, value * vectors[1], value * vectors[2] + 10]
    for result, terms in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result, terms.sum(axis=0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_groups_that_are_compared(dtype: str) -> None:
    """Sums and extremes by group, chosen by comparisons that are factors or conditions; infinities reach all groups."""
    group, x, places = T.lvector("group"), T.vector("x", dtype), T.arange(5)
    chosen = T.eq(group.dimshuffle(0, "x"), places)
    column = x.dimshuffle(0, "x")
    outputs = [
        *((chosen * column).sum(axis=0), (chosen * column * column).sum(axis=0), chosen.sum(axis=0)),
        *(T.switch(chosen, column, -np.inf).max(axis=0), T.switch(chosen, -column, np.inf).min(axis=0)),
        T.switch(chosen, column, 0).sum(axis=0),
    ]
    f, plain = (graphc.function([group, x], outputs, mode=mode) for mode in ("compiled", "interpreted"))
    rng, tolerance = np.random.default_rng(1), 1e-4 if dtype == "float32" else 1e-12
    for count in (1, 7, 100, 3000):
        for share in (0.0, 0.01):
            values = rng.normal(size=count).astype(dtype)
            for special in (np.nan, np.inf, -np.inf, -0.0):
                values[rng.random(count) < share] = special
            given = rng.integers(-2, 7, count), values
            with np.errstate(all="ignore"):
                for got, wanted in zip(f(*given), plain(*given), strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
