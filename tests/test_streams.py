"""Results that go past the caches: which ones, and that they are what they would have been."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen import build, pool
from graphc.codegen.stream_ir import BLOCK, LINE, MOST_WORDS
from graphc.codegen.streams import MOST_WORK, Stream, stream_of
from graphc.ir.loops import INDEX, Apply, Expr, Load, Loop, Stmt, Store, Var, integer

Array = NDArray[Any]
TURN, J, N, M = (Var(name, INDEX) for name in "ijnm")


@pytest.fixture
def everything_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads, chunks of a thousand units of work, and no array too small."""
    monkeypatch.setattr(build, "settings_of", lambda threads, crossover: np.array([3, 2, 1000, 0, 1], np.int64))


# Which results ------------------------------------------------------------------------------------------------------


def load(buffer: str, index: Expr = TURN) -> Load:
    return Load(buffer, index, "float64")


def loop(*body: Stmt) -> Loop:
    return Loop(TURN, N, body)


COPY = loop(Store("a", TURN, load("b")))
NEXT = Apply("_0 + _1", (TURN, integer(1)), INDEX)
FLOATS = dict.fromkeys("abc", "float64")
KEPT: Mapping[str, Loop] = {
    "in place": loop(Store("a", TURN, load("a"))),
    "reads nothing": loop(Store("a", TURN, Apply("float64(_0)", (TURN,), "float64"))),
    "reads another element": loop(Store("a", TURN, load("b", NEXT))),
    "fills another element": loop(Store("a", NEXT, load("b"))),
    "two results": loop(Store("a", TURN, load("b")), Store("c", TURN, load("b"))),
    "rows": loop(Loop(J, M, (Store("a", Apply("_0 * _1 + _2", (TURN, M, J), INDEX), load("b")),))),
}


def test_a_copy_goes_past_the_caches() -> None:
    assert stream_of(COPY, integer(3), {"b"}, FLOATS) == Stream("a", "b")


@pytest.mark.parametrize("name", KEPT)
def test_other_loops_do_not(name: str) -> None:
    assert stream_of(KEPT[name], integer(3), {"b"}, FLOATS) is None


def test_what_the_kernel_reads_does_not() -> None:
    assert stream_of(COPY, integer(3), {"a", "b"}, FLOATS) is None


def test_what_takes_long_or_is_small_beside_what_is_read_does_not() -> None:
    assert stream_of(COPY, integer(MOST_WORK), {"b"}, FLOATS) is not None
    assert stream_of(COPY, integer(MOST_WORK + 1), {"b"}, FLOATS) is None
    assert stream_of(COPY, M, {"b"}, FLOATS) is None
    assert stream_of(COPY, integer(3), {"b"}, {"a": "float32", "b": "float64"}) is None
    assert stream_of(COPY, integer(3), {"b"}, {"a": "float64", "b": "float32"}) is not None


def test_the_widest_operand_is_asked_for_ahead() -> None:
    mixed = loop(Store("a", TURN, Apply("_0 + _1", (Load("c", TURN, "int8"), load("b")), "float64")))
    assert stream_of(mixed, integer(6), {"b", "c"}, FLOATS | {"c": "int8"}) == Stream("a", "b")


def test_source_and_plan_say_so() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    plain = graphc.function([x, y], x + y)
    assert "parallel(nest_add, x_0, chunk(x_0, 6), fills(out), reads(x), y)" in plain.source
    assert re.search(r"threads may share nest_add: .*; out past the caches where it is large", plain.explain())
    assert re.search(r"past the caches does where it is \d+ MiB or more", plain.explain())
    assert "fills" not in graphc.function([x, y], [x + y, x - y]).source
    assert "fills" not in graphc.function([x], T.exp(x)).source
    assert "fills" not in graphc.function([x], (x * 2)[::-1]).source


def test_a_function_of_many_operands_keeps_its_results_in_the_caches() -> None:
    """The copy of the operands on a thread's stack has a size."""
    inputs = [T.dvector(f"x{number}") for number in range(MOST_WORDS + 3)]
    total = inputs[0]
    for each in inputs[1:]:
        total = T.maximum(total, each)
    call = graphc.function(inputs, total)
    values = [np.full(5, number, "float64") for number in range(len(inputs))]
    np.testing.assert_array_equal(call(*values), len(inputs) - 1)


# What they hold -----------------------------------------------------------------------------------------------------

SIZES = (0, 1, 7, 31, 32, 33, 1000, 1024, 4099, 40_003)


def framed(size: int, dtype: str, offset: int) -> tuple[Array, Array]:
    """An array that begins `offset` elements after a line does, and all that it lies in, of ones."""
    item = np.dtype(dtype).itemsize
    around = np.ones(size * item + 8 * LINE, np.uint8)
    first = LINE + -around.ctypes.data % LINE + offset * item
    return around[first : first + size * item].view(dtype), around


@pytest.mark.usefixtures("everything_past")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "int8", "bool"])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_every_element_and_nothing_beside_them(dtype: str, offset: int) -> None:
    x = T.vector("x", dtype=dtype)
    call = graphc.function([x], ~x if dtype == "bool" else x + x)
    assert "fills(out)" in call.source
    rng = np.random.default_rng(3)
    for size in SIZES:
        value = rng.integers(0, 50, size).astype(dtype)
        result, around = framed(size, dtype, offset)
        before = around.copy()
        assert call(value, out=result) is result
        np.testing.assert_array_equal(result, ~value if dtype == "bool" else value + value)
        result[...] = np.ones(result.nbytes, np.uint8).view(dtype)
        np.testing.assert_array_equal(around, before)


@pytest.mark.usefixtures("everything_past")
def test_special_values_and_operands_of_other_widths() -> None:
    x, n, flag = T.fvector("x"), T.vector("n", dtype="int8"), T.vector("flag", dtype="bool")
    call = graphc.function([x, n, flag], T.switch(flag, x, n) * 1.5)
    assert "fills(out)" in call.source
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45], "float32")
    for size in SIZES:
        values = (np.resize(special, size), np.arange(size).astype("int8"), np.arange(size) % 3 > 0)
        expected = np.where(values[2], values[0], values[1].astype("float32")) * np.float32(1.5)
        result = call(*values)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.usefixtures("everything_past")
def test_matrices_updates_and_scalars() -> None:
    """A flat loop over a matrix; a shared variable that is replaced; numbers among the operands."""
    m, k = T.dmatrix("m"), T.dscalar("k")
    state = graphc.shared(np.zeros((3, 5)), "state")
    call = graphc.function([m, k], m * k, updates=[(state, m + k)])
    value = np.random.default_rng(1).normal(size=(301, 67))
    for factor in (2.0, -0.5):
        np.testing.assert_array_equal(call(value, factor), value * factor)
        np.testing.assert_array_equal(state.get_value(), value + factor)


def test_large_arrays_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings of this machine, and more elements than fill the cache, for one thread and several."""
    monkeypatch.setattr(pool, "much", lambda: 2**22)
    x, y = T.dvector("x"), T.dvector("y")
    size = 2**22 // 8 + BLOCK + 5
    first, second = np.random.default_rng(2).normal(size=(2, size))
    for threads in (1, 2):
        call = graphc.function([x, y], 2.5 * x + y, threads=threads)
        np.testing.assert_array_equal(call(first, second), 2.5 * first + second)
        np.testing.assert_array_equal(call(first[:-9], second[9:]), 2.5 * first[:-9] + second[9:])


def test_the_cache_of_this_machine() -> None:
    """Of a size that there can be, whether the system tells or not."""
    assert 2**20 <= pool.much() <= 2**34


@pytest.mark.parametrize(
    ("told", "expected"), [("32768K", 3 * 2**23), ("96M", 72 * 2**20), ("", 3 * 2**23), ("K", 3 * 2**23)]
)
def test_what_the_system_tells_of_it(told: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_read", lambda path: f"{told}\n")
    pool.much.cache_clear()
    try:
        assert pool.much() == expected
    finally:
        pool.much.cache_clear()
