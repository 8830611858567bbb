"""Results that non-temporal stores write: which ones, and that they are what they would have been."""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.llvm.target import emit_assembly
from graphc.codegen.pipeline import restore
from graphc.codegen.pipeline.compilation import POOL_OPT
from graphc.codegen.threads import settings
from graphc.codegen.threads.pool import BLOCK, LINE_BYTES, pool_ir
from graphc.codegen.threads.settings import MOST_WORDS
from graphc.codegen.transform.outline import LAUNCHES_IN_KERNEL
from graphc.codegen.transform.parallelize import MOST_WORK, Stream, stream_of
from graphc.errors import CompileError
from graphc.loopir.ir import INDEX, Break, Buffer, Expr, If, Load, Loop, Stmt, Store, Var, apply, integer
from graphc.loopir.operators import ADD, CASTS, LT, MUL
from graphc.options import options
from tests.support.compiled_source import compile_source
from tests.support.generated import code
from tests.support.pool_bodies import pool as pool_of_tests

Array = NDArray[Any]
ITERATION, J, N, M = (Var(name, INDEX) for name in "ijnm")


@pytest.fixture
def everything_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads, chunks of a thousand units of work, and no array too small."""
    monkeypatch.setattr(restore, "settings_of", lambda threads, crossover: np.array([3, 2, 1000, 0, 1], np.int64))


# Which results ------------------------------------------------------------------------------------------------------


A, B, C = (Buffer(name, "float64") for name in "abc")


def load(buffer: Buffer, index: Expr = ITERATION) -> Load:
    return Load(buffer, index)


def loop(*body: Stmt) -> Loop:
    return Loop(ITERATION, N, body)


COPY = loop(Store(A, ITERATION, load(B)))
NEXT = apply(ADD, ITERATION, integer(1))
KEPT: Mapping[str, Loop] = {
    "in place": loop(Store(A, ITERATION, load(A))),
    "reads nothing": loop(Store(A, ITERATION, apply(CASTS["float64"], ITERATION))),
    "reads another element": loop(Store(A, ITERATION, load(B, NEXT))),
    "fills another element": loop(Store(A, NEXT, load(B))),
    "two results": loop(Store(A, ITERATION, load(B)), Store(C, ITERATION, load(B))),
    "fills some": loop(If(apply(LT, load(B), load(C)), (Store(A, ITERATION, load(B)),))),
    "is left": loop(Store(A, ITERATION, load(B)), Break()),
    "rows": loop(Loop(J, M, (Store(A, apply(ADD, apply(MUL, ITERATION, M), J), load(B)),))),
}


def test_a_copy_is_written_by_nontemporal_stores() -> None:
    assert stream_of(COPY, integer(3), {B}) == Stream(A, B)


@pytest.mark.parametrize("name", KEPT)
def test_other_loops_do_not(name: str) -> None:
    assert stream_of(KEPT[name], integer(3), {B}) is None


def test_what_the_kernel_reads_does_not() -> None:
    assert stream_of(COPY, integer(3), {A, B}) is None


def test_what_takes_long_or_is_small_beside_what_is_read_does_not() -> None:
    assert stream_of(COPY, integer(MOST_WORK), {B}) is not None
    assert stream_of(COPY, integer(MOST_WORK + 1), {B}) is None
    assert stream_of(COPY, M, {B}) is None
    narrow = Buffer("n", "float32")
    assert stream_of(loop(Store(narrow, ITERATION, load(B))), integer(3), {B}) is None
    assert stream_of(loop(Store(A, ITERATION, load(narrow))), integer(3), {narrow}) is not None


def test_the_widest_operand_is_asked_for_ahead() -> None:
    narrow = Buffer("n", "int8")
    mixed = loop(Store(A, ITERATION, apply(ADD, apply(CASTS["float64"], load(narrow)), load(B))))
    assert stream_of(mixed, integer(6), {B, narrow}) == Stream(A, B)


@pytest.mark.slow
def test_source_and_plan_say_so() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    plain, two = graphc.function([x, y], x + y), graphc.function([x, y], [x + y, x - y])
    assert "parallel(nest_add, x_0, chunk(x_0, 6), fills(out), reads(x), y)" in plain.source
    assert re.search(r"threads may share nest_add: .*; out by non-temporal stores where it is large", plain.explain())
    assert re.search(r"non-temporal stores write what has [\d.]+ MiB or more", plain.explain())
    assert "parallel(" in two.source and "fills" not in two.source and "non-temporal" not in two.explain()
    assert "fills" not in code(graphc.function([x], T.exp(x)).source)
    assert "fills" not in code(graphc.function([x], (x * 2)[::-1]).source)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("fills(x), y", "takes both a pointer that iterations fill and one that they read"),
        ("reads(x), y", "takes both a pointer that iterations fill and one that they read"),
        ("fills(x), fills(y)", "takes both a pointer that iterations fill and one that they read"),
        ("fills(n), reads(y)", "takes a pointer"),
    ],
)
def test_marks_of_a_launch_are_checked(given: str, problem: str) -> None:
    source = (
        "def nest(begin, end, x, y):\n    for i in independent(begin, end):\n        x[i] = y[i]\n    return 0\n\n\n"
        f"def kernel(x, y, n):\n    parallel(nest, n, 1, {given})\n    return 0\n"
    )
    pointers = ("float64*", "float64*")
    prototypes = [Prototype("nest", ("int64", "int64", *pointers)), Prototype("kernel", (*pointers, "int64"))]
    with pytest.raises(CompileError, match=problem):
        compile_source(source, prototypes)


@pytest.mark.slow
def test_no_launch_with_more_operands_than_there_is_room_for() -> None:
    """They are copied to a thread's stack."""

    def compiled(count: int) -> bytes:
        names = ", ".join(f"x{number}" for number in range(count))
        body = "x0[i] = " + " + ".join(f"x{number}[i]" for number in range(1, count))
        source = (
            f"def nest(begin, end, {names}):\n    for i in independent(begin, end):\n        {body}\n    return 0\n\n\n"
            f"def kernel(n, {names}):\n    parallel(nest, n, 1, fills(x0), reads(x1), {names[8:]})\n    return 0\n"
        )
        pointers = ("float64*",) * count
        prototypes = [Prototype("nest", ("int64", "int64", *pointers)), Prototype("kernel", ("int64", *pointers))]
        return compile_source(source, prototypes)

    assert compiled(MOST_WORDS)
    with pytest.raises(CompileError, match=f"no more than {MOST_WORDS} operands"):
        compiled(MOST_WORDS + 1)


# How they get there ---------------------------------------------------------------------------------------------------

Launch = Callable[..., None]
launch: Launch = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2)(
    pool_of_tests.stream
)


def copy_with(result: Array, source: Array, least: int, threads: int = 1) -> list[tuple[int, int, bool]]:
    """Copy in chunks of 100 iterations; of each range that the body ran whether it was given the result itself."""
    ran: list[tuple[int, int, bool]] = []
    item = result.itemsize
    context = np.array([source.ctypes.data, result.ctypes.data], np.int64)

    def body(words: int, begin: int, end: int) -> None:
        begins = np.ctypeslib.as_array(ctypes.cast(words, ctypes.POINTER(ctypes.c_int64)), (2,))
        ctypes.memmove(int(begins[1]) + begin * item, int(begins[0]) + begin * item, (end - begin) * item)
        ran.append((begin, end, bool(begins[1] == result.ctypes.data)))

    called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(body)
    settings = np.array([threads, 2, 1, 0, least], np.int64)
    stream = np.array([16, 8, item, 0, source.itemsize], np.int64)
    address = ctypes.cast(called, ctypes.c_void_p)
    launch(address, context.ctypes.data, len(result), 100, settings.ctypes.data, stream.ctypes.data)
    return ran


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
@pytest.mark.parametrize("offset", [0, 1, 5])
def test_blocks_lie_on_lines(dtype: str, offset: int) -> None:
    """All iterations in order, a few lines at a time but at the ends of chunks, none in the result itself."""
    source = np.arange(1003).astype(dtype)
    result, _ = framed(len(source), dtype, offset)
    ran = copy_with(result, source, source.nbytes)
    np.testing.assert_array_equal(result, source)
    assert [begin for begin, _, _ in ran] == [0, *(end for _, end, _ in ran[:-1])] and ran[-1][1] == len(source)
    for begin, end, is_result in ran:
        assert not is_result and (end - begin) * result.itemsize <= BLOCK
        at = result.ctypes.data + begin * result.itemsize
        assert begin % 100 == 0 or at % LINE_BYTES == 0
    inside = [end for _, end, _ in ran if end % 100 and end < len(source)]
    assert inside or dtype == "int8"
    assert all((result.ctypes.data + end * result.itemsize) % LINE_BYTES == 0 for end in inside)


def test_what_is_small_is_written_as_ever() -> None:
    source = np.arange(1003.0)
    result = np.empty_like(source)
    ran = copy_with(result, source, source.nbytes + 1)
    np.testing.assert_array_equal(result, source)
    assert ran == [(begin, min(begin + 100, 1003), True) for begin in range(0, 1003, 100)]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system is not asked")
def test_memory_that_was_never_touched_is_written_as_ever() -> None:
    source = np.arange(100_000.0)
    result = np.frombuffer(mmap.mmap(-1, source.nbytes), source.dtype)
    touched = [any(is_result for _, _, is_result in copy_with(result, source, source.nbytes)) for _ in range(2)]
    np.testing.assert_array_equal(result, source)
    assert touched == [True, False]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for an instruction")
def test_the_stores_are_non_temporal() -> None:
    assert re.search(r"\bv?movnt(ps|pd|dq)\b", emit_assembly([pool_ir()], POOL_OPT))


# What they hold -----------------------------------------------------------------------------------------------------

SIZES = (0, 1, 7, 31, 32, 33, 1000, 1024, 4099, 40_003)


def framed(size: int, dtype: str, offset: int) -> tuple[Array, Array]:
    """An array that begins `offset` elements after a line does, and all that it lies in, of ones."""
    item = np.dtype(dtype).itemsize
    around = np.ones(size * item + 8 * LINE_BYTES, np.uint8)
    first = LINE_BYTES + -around.ctypes.data % LINE_BYTES + offset * item
    return around[first : first + size * item].view(dtype), around


@pytest.mark.slow
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
    """A flat loop over a matrix, with a number; a shared variable that is replaced."""
    m, k = T.dmatrix("m"), T.dscalar("k")
    scaled = graphc.function([m, k], m * k)
    state = graphc.shared(np.zeros((3, 5)), "state")
    moved = graphc.function([m, k], updates=[(state, m + k)])
    assert "fills(" in scaled.source and "fills(" in moved.source
    value = np.random.default_rng(1).normal(size=(301, 67))
    for factor in (2.0, -0.5):
        np.testing.assert_array_equal(scaled(value, factor), value * factor)
        moved(value, factor)
        np.testing.assert_array_equal(state.get_value(), value + factor)


@pytest.mark.slow
@pytest.mark.usefixtures("everything_past")
def test_parts_of_a_result_and_equal_functions() -> None:
    """A result of two pieces; nests that are one function, of which the kernel reads one result; many launches, which
    are functions too."""
    x, y = T.dvector("x"), T.dvector("y")
    first, second = np.random.default_rng(4).normal(size=(2, 40_003))
    joined = graphc.function([x, y], T.concatenate([x + 1, y * 2]))
    np.testing.assert_array_equal(joined(first, second[:77]), np.concatenate([first + 1, second[:77] * 2]))
    np.testing.assert_array_equal(joined(first[:5], second), np.concatenate([first[:5] + 1, second * 2]))
    double = x * 2
    with options.change(outline="always"):
        read = graphc.function([x, y], [double, double[::-1].cumsum(), y * 2])
    again = read(first, second[:9000])
    np.testing.assert_array_equal(again[0], first * 2)
    np.testing.assert_allclose(again[1], np.cumsum((first * 2)[::-1]), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(again[2], second[:9000] * 2)
    vectors = [T.dvector(f"v{number}") for number in range(LAUNCHES_IN_KERNEL + 3)]
    many = graphc.function(vectors, [each * number for number, each in enumerate(vectors, 2)])
    assert "def launch_mul(" in many.source and "fills(" in many.source
    values = [first[: 30_000 + 10 * number] for number in range(len(vectors))]
    for number, (result, value) in enumerate(zip(many(*values), values, strict=True), 2):
        np.testing.assert_array_equal(result, value * number)


def test_large_arrays_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings of this machine, and more elements than fill the cache, for one thread and several."""
    monkeypatch.setattr(settings, "least_streamed_bytes", lambda: 2**22)
    x, y = T.dvector("x"), T.dvector("y")
    size = 2**22 // 8 + BLOCK + 5
    first, second = np.random.default_rng(2).normal(size=(2, size))
    for threads in (1, 2):
        call = graphc.function([x, y], 2.5 * x + y, threads=threads)
        assert "fills(" in call.source
        np.testing.assert_array_equal(call(first, second), 2.5 * first + second)
        np.testing.assert_array_equal(call(first[:-9], second[9:]), 2.5 * first[:-9] + second[9:])


def test_the_cache_of_this_machine() -> None:
    """Of a size that there can be, whether the system tells or not."""
    assert 2**20 <= settings.least_streamed_bytes() <= 2**34


@pytest.mark.parametrize(
    ("told", "expected"), [("32768K", 3 * 2**23), ("96M", 72 * 2**20), ("", 3 * 2**23), ("K", 3 * 2**23)]
)
def test_what_the_system_tells_of_it(told: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_read", lambda path: f"{told}\n")
    settings.least_streamed_bytes.cache_clear()
    try:
        assert settings.least_streamed_bytes() == expected
    finally:
        settings.least_streamed_bytes.cache_clear()
