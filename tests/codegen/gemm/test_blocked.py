"""Packed products: the same bits for every number of threads, nothing read or written beside the operands, and calls
from several threads at once."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.gemm import load_blocks
from graphc.codegen.gemm.blocked import blocks_ir
from graphc.codegen.gemm.dispatch import BLOCKED
from graphc.codegen.link.elf import link
from graphc.codegen.llvm.target import emit_object, has_vector_products
from graphc.codegen.pipeline import runtime
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import POOL_EXPORTS, load_pool
from graphc.ir.node import variable
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_product, assert_within
from tests.support.product_paths import short_blocks

Array = NDArray[Any]
SUFFIXES = {"float64": "f64", "float32": "f32"}
ours = pytest.mark.skipif(not has_vector_products(), reason="BLAS computes large products here")


@cache
def blocks(suffix: str, short: bool) -> Any:
    """The function of large products, with short limits or its own."""
    code = short_blocks(suffix) if short else emit_object([blocks_ir(suffix)], 1)
    pool = load_pool(link([emit_object([pool_ir()], 0)], POOL_EXPORTS))
    size, pointer, number = ctypes.c_int64, ctypes.c_void_p, {"f64": ctypes.c_double, "f32": ctypes.c_float}[suffix]
    matrix = pointer, size, size
    prototype = ctypes.CFUNCTYPE(size, pointer, *[size] * 4, number, *matrix, *matrix, number, *matrix)
    return prototype(load_blocks(suffix, code, pool))


def steps(view: Array) -> tuple[int, ...]:
    return tuple(stride // view.itemsize for stride in view.strides)


def multiply(
    a: Array, b: Array, c: Array, threads: int = 1, alpha: float = 1.0, beta: float = 0.0, triangle: int = 0,
    short: bool = True,
) -> None:  # fmt: skip
    settings = np.array([threads, 1, 1, 0, 0], np.int64)
    operands = [(view.ctypes.data, *steps(view)) for view in (a, b, c)]
    sizes = (*c.shape, a.shape[1])
    code = blocks(SUFFIXES[c.dtype.name], short)(
        settings.ctypes.data, triangle, *sizes, alpha, *operands[0], *operands[1], beta, *operands[2]
    )
    assert code == 0


def drawn(rng: np.random.Generator, rows: int, columns: int, dtype: str, layout: str) -> Array:
    match layout:
        case "rows":
            return rng.normal(size=(rows, columns)).astype(dtype)
        case "columns":
            return rng.normal(size=(columns, rows)).astype(dtype).T
        case "strided":
            return rng.normal(size=(2 * rows, 3 * columns)).astype(dtype)[::2, ::3]
        case "reversed":
            return rng.normal(size=(rows, columns)).astype(dtype)[::-1, ::-1]
    raise ValueError(layout)


LAYOUTS = ("rows", "columns", "strided", "reversed")
EDGES = (1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 97, 130)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", SUFFIXES)
def test_sizes_around_the_edges_of_blocks(dtype: str) -> None:
    rng = np.random.default_rng(0)
    cases = [(m, n, k) for m, n, k in product(EDGES, EDGES, EDGES) if rng.random() < 0.1]
    for number, (m, n, k) in enumerate(cases):
        layouts = [LAYOUTS[(number + 3 * place) % 4] for place in range(2)]
        a, b = drawn(rng, m, k, dtype, layouts[0]), drawn(rng, k, n, dtype, layouts[1])
        alpha, beta = ((1.0, 0.0), (-0.5, 2.0), (1.0, 1.0))[number % 3]
        c = drawn(rng, m, n, dtype, ("rows", "columns", "strided")[number % 3])
        old = np.zeros(c.shape) if beta == 0 else c.astype(np.float64)
        if beta == 0:
            c[...] = np.nan
        multiply(a, b, c, 1 + number % 3, alpha, beta)
        assert_product(c, alpha, a, b, beta, old)


@pytest.mark.slow
@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("dtype", SUFFIXES)
def test_bits_are_those_of_one_thread(dtype: str, short: bool) -> None:
    rng = np.random.default_rng(1)
    for m, n, k in ((130, 97, 75), (64, 128, 40), (300, 270, 600), (17, 500, 33)):
        a, b = drawn(rng, m, k, dtype, "rows"), drawn(rng, k, n, dtype, "columns")
        start = drawn(rng, m, n, dtype, "rows")
        results = []
        for threads in (1, 2, 3, 7):
            c = start.copy()
            multiply(a, b, c, threads, 0.5, 1.0, short=short)
            results.append(c)
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])
        # nor do they depend on the rows and columns that are computed with them
        part = start[5:40, 3:90].copy()
        multiply(a[5:40], b[:, 3:90], part, 2, 0.5, 1.0, short=short)
        np.testing.assert_array_equal(part, results[0][5:40, 3:90][: part.shape[0], : part.shape[1]])


@pytest.mark.parametrize("dtype", SUFFIXES)
def test_triangles(dtype: str) -> None:
    """What is on or below the diagonal has the bits of the whole product."""
    rng = np.random.default_rng(2)
    for m, k in ((5, 9), (64, 33), (65, 16), (150, 40)):
        a = drawn(rng, m, k, dtype, "rows")
        whole, lower = np.zeros((2, m, m), dtype)
        multiply(a, a.T, whole)
        multiply(a, a.T, lower, 2, triangle=1)
        np.testing.assert_array_equal(np.tril(lower), np.tril(whole))


def test_not_a_number_stays_in_its_row_and_column() -> None:
    """Lanes that fill a panel up are multiplied too, but never seen."""
    a, b, c = np.ones((9, 20)), np.ones((20, 17)), np.full((9, 17), np.nan)
    a[8, 3], b[19, 16] = np.inf, np.nan
    with np.errstate(all="ignore"):
        expected = a @ b
    multiply(a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_calls_at_once() -> None:
    """One has the memory that is kept, the others their own; the pool has one of them, the others are alone."""
    rng = np.random.default_rng(3)
    cases = [(drawn(rng, n, n, "float64", "rows"), drawn(rng, n, n, "float64", "rows")) for n in (90, 150, 210, 33)]
    wrong: list[int] = []

    def work(number: int) -> None:
        a, b = cases[number]
        expected = a @ b
        for _ in range(30):
            c = np.full_like(a, np.nan)
            multiply(a, b, c, 2)
            if not np.allclose(c, expected):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_memory_is_given_back_while_others_multiply() -> None:
    """What a call uses is not: whoever frees, and how often, every product is right."""
    rng = np.random.default_rng(3)
    a, b = drawn(rng, 150, 210, "float64", "columns"), drawn(rng, 210, 170, "float64", "columns")
    expected, wrong, left = a @ b, [], [threading.Event() for _ in range(2)]

    def work(done: threading.Event) -> None:
        for _ in range(60):
            c = np.full((150, 170), np.nan)
            multiply(a, b, c, 2)
            if not np.allclose(c, expected):
                wrong.append(c)
        done.set()

    for done in left:
        threading.Thread(target=work, args=(done,)).start()
    while not all(done.is_set() for done in left):
        for give in tuple(PROCESS.givers):
            give()
    assert not wrong


# Through functions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def from_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions with threads of their own number, which products of any size are worth."""

    def settings(threads: int | str | None, crossover: int) -> NDArray[np.int64]:
        return np.array([threads, 1, 1, 0, 0], np.int64)

    monkeypatch.setattr(runtime, "settings_of", settings)
    monkeypatch.setattr(PROCESS, "products", {})  # which keep their settings


@pytest.mark.slow
@pytest.mark.usefixtures("from_little_work")
@pytest.mark.parametrize("dtype", SUFFIXES)
def test_functions_with_threads(dtype: str) -> None:
    """Products, batches of them, a matrix times its transpose, gradients: the same bits for every number of threads."""
    rng = np.random.default_rng(4)
    x, y = (T.matrix(name, dtype=dtype) for name in "xy")
    p, q = (T.tensor3(name, dtype=dtype) for name in "pq")
    outputs = [x @ y, x @ x.T, p @ q, *graphc.grad(T.tanh(x @ y).sum() + T.sqr(p @ q).sum(), [x, y, p, q])]
    arrays = [rng.normal(size=shape).astype(dtype) for shape in ((110, 120), (120, 90), (9, 20, 30), (9, 30, 25))]
    results = [graphc.function([x, y, p, q], outputs, threads=threads)(*arrays) for threads in (1, 2, 3, 7)]
    assert_within(results[0], outputs, dict(zip((x, y, p, q), arrays, strict=True)))
    for other in results[1:]:
        for found, wanted in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("threads", [1, 3])
def test_batches(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones, one for all, and sums of depth 0."""
    monkeypatch.setattr(runtime, "settings_of", lambda *_: np.array([threads, 1, 1, 0, 0], np.int64))
    monkeypatch.setattr(PROCESS, "products", {})
    x, y = (variable("float64", (None, None, None), name) for name in "xy")
    z = T.matrix("z")
    f = graphc.function([x, y, z], [x @ y, z @ y, x + x @ T.matmul(y, z)])
    rng = np.random.default_rng(5)
    for count, m, k in product((0, 1, 2, 50), (0, 1, 6), (0, 1, 5)):
        a, b, c = rng.normal(size=(count, m, k)), rng.normal(size=(count, k, m)), rng.normal(size=(m, k))
        for found, expected in zip(f(a, b, c), (a @ b, c @ b, a + a @ (b @ c)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@ours
def test_large_products_are_ours_from_their_first_need() -> None:
    program = f"""
    import numpy as np, graphc
    from graphc import tensor as T
    from graphc.codegen.gemm import ENTRIES, blas_table
    from graphc.startup.process import PROCESS
    x, y = T.matrix("x"), T.matrix("y")
    f = graphc.function([x, y], x @ y)
    place, finder = ENTRIES.index("blocks f64"), ENTRIES.index("find blocks f64")
    f(np.ones((3, 4)), np.ones((4, 5)))
    assert blas_table()[finder] and not blas_table()[place] and PROCESS.pool is None
    a, b = np.random.default_rng(0).normal(size=(2, {round(2 * BLOCKED ** (1 / 3))}, {round(2 * BLOCKED ** (1 / 3))}))
    np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-10, atol=1e-10)
    assert blas_table()[place] and not blas_table()[finder]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


@pytest.mark.slow
@ours
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory of a process")
def test_a_function_gives_back_the_memory_of_its_products() -> None:
    program = """
    import mmap
    import numpy as np, graphc
    from graphc import tensor as T
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE
    x, y = T.matrix("x"), T.matrix("y")
    f, z = graphc.function([x, y], x @ y), np.empty((40, 250))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(40, 13_000)), rng.normal(size=(13_000, 250))  # long panels, below what BLAS computes
    f(a, b, out=z)
    before = resident()
    f.free()
    assert resident() < before - 2**22, (before, resident())
    f(a, b, out=z)
    np.testing.assert_allclose(z, a @ b, rtol=1e-10, atol=1e-10)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


@pytest.mark.slow
@ours
def test_what_cannot_be_loaded_is_left_to_blas() -> None:
    program = """
    import warnings
    import numpy as np, graphc
    from graphc import tensor as T
    from graphc.codegen.pipeline import runtime as products
    from graphc.codegen.gemm import ENTRIES, blas_table
    def refuse(*_):
        raise MemoryError("none left")
    products.ready_pool = refuse
    x, y = T.matrix("x"), T.matrix("y")
    p, q = T.tensor3("p"), T.tensor3("q")
    f, g = graphc.function([x, y], x @ y), graphc.function([p, q], p @ q)
    a, b = np.random.default_rng(0).normal(size=(2, 300, 300))
    c, d = np.random.default_rng(0).normal(size=(2, 200, 40, 40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(g(c, d), c @ d, rtol=1e-10, atol=1e-10)
    assert any("none left" in str(warning.message) for warning in caught)
    np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-10, atol=1e-10)
    assert not blas_table()[ENTRIES.index("blocks f64")] and not blas_table()[ENTRIES.index("find blocks f64")]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


@pytest.mark.slow
@ours
def test_an_interrupt_while_code_is_found_is_raised_later() -> None:
    program = """
    import signal, time, numpy as np, graphc
    from graphc import tensor as T
    from graphc.codegen.pipeline import runtime as products
    from graphc.startup.process import PROCESS
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
    def interrupted(*_):
        raise KeyboardInterrupt
    real, products.ready_pool = products.ready_pool, interrupted
    x, y = T.matrix("x"), T.matrix("y")
    f = graphc.function([x, y], x @ y)
    a, b = np.random.default_rng(0).normal(size=(2, 300, 300))
    try:
        np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-10, atol=1e-10)
        time.sleep(30)
    except KeyboardInterrupt:
        products.ready_pool = real
        np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-10, atol=1e-10)
        print("raised", PROCESS.pool is not None)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120, capture_output=True, text=True
    )
    assert done.stdout.split() == ["raised", "True"]


COLD = """
import numpy as np, graphc, graphc.tensor as T
from graphc.codegen import gemm as api
from graphc.codegen.pipeline import compilation
from graphc.codegen.llvm import target
x, y = T.matrix("x"), T.matrix("y")
f = graphc.function([x, y], x @ y)
def refuse(*args, **kwargs):
    raise AssertionError("compiled at a call")
for module in (target, compilation):
    module.emit_object = refuse
compilation.compile_source = compilation.compile_part = refuse
rng = np.random.default_rng(0)
for m, n, k in ((300, 280, 260), (300, 1, 260), (1, 300, 260), (1200, 1, 1200), (20, 20, 20)):
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    np.testing.assert_allclose(f(a, b), a @ b, rtol=0, atol=1e-11)
words = api.blas_table()
for entry in ("blocks f64", "find blocks f64"):
    print(bool(words[api.ENTRIES.index(entry)]), end=" ")
"""


@pytest.mark.slow
def test_no_call_compiles(tmp_path: Path) -> None:
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", COLD]
    for require in ("0", "1"):
        environment["GRAPHC_CACHE_REQUIRE"] = require
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [str(has_vector_products()), "False"], done.stderr


# Nothing beside the operands ------------------------------------------------------------------------------------------

GUARDED = """
import ctypes, itertools, mmap, sys
import numpy as np
sys.path[:0] = {folders!r}
from tests.support.product_paths import IMPLEMENTATIONS, PROTOTYPES, steps
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
kept = []

def guarded(rows, columns, dtype, turned, last):
    "A matrix that ends, or begins, at a page that must not be touched."
    size = rows * columns * np.dtype(dtype).itemsize
    pages = max(-(-size // mmap.PAGESIZE), 1)
    memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
    kept.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        assert libc.mprotect(base + page * mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
    begin = (pages + 1) * mmap.PAGESIZE - size if last else mmap.PAGESIZE
    flat = np.frombuffer(memory, dtype, rows * columns, begin)
    flat[:] = np.random.default_rng(0).normal(size=flat.size)
    return flat.reshape(columns, rows).T if turned else flat.reshape(rows, columns)

def at(view):
    return view.__array_interface__["data"][0]

for dtype, suffix in (("float64", "f64"), ("float32", "f32")):
    for which in ("loops", "blocks"):
        call = IMPLEMENTATIONS[which]("gc_gemm_" + suffix)
        for m, n, k in ((1, 1, 1), (3, 5, 4), (9, 17, 5), (8, 33, 16), (33, 9, 40), (65, 66, 17), (70, 3, 90)):
            for last, *turned in itertools.product((False, True), repeat=4):
                a, b, c = (guarded(*shape, dtype, t, last) for shape, t in zip(((m, k), (k, n), (m, n)), turned))
                call(m, n, k, 1.0, at(a), *steps(a), at(b), *steps(b), 0.0, at(c), *steps(c))
                assert np.allclose(c, a @ b, rtol=1e-3, atol=1e-3), (which, m, n, k)
                call(m, n, k, 1.0, at(a), *steps(a), at(b), *steps(b), 1.0, at(c), *steps(c))
                assert np.allclose(c, 2 * (a @ b), rtol=1e-3, atol=1e-3), (which, m, n, k)
    for which in ("loops", "narrow loops", "blocks"):
        call = IMPLEMENTATIONS[which]("gc_gemv_" + suffix)
        for m, n in itertools.product((1, 2, 5, 9, 16, 31, 33, 70, 130), repeat=2):
            for last, turned in itertools.product((False, True), repeat=2):
                a, x, y = guarded(m, n, dtype, turned, last), *(guarded(1, k, dtype, False, last)[0] for k in (n, m))
                for beta, count in ((0.0, 1), (1.0, 2)):
                    call(m, n, 1.0, at(a), *steps(a), at(x), 1, beta, at(y), 1)
                    assert np.allclose(y, count * (a @ x), rtol=1e-3, atol=1e-3), (which, m, n)
                for memory in kept[:-3]:
                    kept.remove(memory)
print("done")
"""


@pytest.mark.slow
def test_nothing_beside_the_operands_is_touched() -> None:
    from_here = GUARDED.format(folders=sys.path)
    done = subprocess.run([sys.executable, "-c", from_here], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr[-2000:]


THIN = """
import hashlib
import numpy as np, graphc, graphc.tensor as T
from graphc.codegen.gemm.dispatch import BLOCKED_THIN, SMALL_GEMM
from graphc.codegen.llvm.target import has_vector_products
from graphc.startup.process import PROCESS
SIZES = [
    (1, 300, 500), (500, 700, 1), (1500, 900, 1), (5, 64, 850), (8, 300, 300), (11, 300, 400), (9, 1500, 1200),
    (1500, 900, 7), (15, 900, 700), (12, 90_000, 12), (4, 3000, 1500), (16, 500, 500), (17, 600, 600), (64, 64, 64),
    (70, 70, 70), (130, 130, 130), (301, 413, 257), (400, 3, 400), (3, 5, 2),
]
assert any(m < 16 <= n and m * k * n > BLOCKED_THIN for m, k, n in SIZES)
if not has_vector_products():  # large ones are BLAS's there
    SIZES = [(m, k, n) for m, k, n in SIZES if m * k * n <= SMALL_GEMM]
rng = np.random.default_rng(0)
def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()[:8]
for dtype in ("float64", "float32"):
    x, y, xs, ys = T.matrix("x", dtype), T.matrix("y", dtype), T.tensor3("xs", dtype), T.tensor3("ys", dtype)
    product = graphc.function([x, y], x @ y)
    square = graphc.function([x], x @ x.T)
    batch = graphc.function([xs, ys], T.batched_dot(xs, ys))
    for m, k, n in SIZES:
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        print(m, k, n, digest(product(a, b)), digest(product(np.asfortranarray(a), np.asfortranarray(b))))
        print(digest(square(a)) if m * m * k < 1e7 and (has_vector_products() or m * m * k <= SMALL_GEMM) else "")
        if m * k * n < 3e6:
            many = np.stack([a, 2 * a, -a]), np.stack([b, b + 1, b])
            print(digest(batch(*many)))
"""


@pytest.mark.slow
def test_no_bit_depends_on_the_number_of_threads() -> None:
    seen = {}
    for name, number in (("OMP", 1), ("OMP", 2), ("OPENBLAS", 1), ("OPENBLAS", 4), ("GRAPHC", 1), ("GRAPHC", 3)):
        setting = f"{name}_THREADS" if name == "GRAPHC" else f"{name}_NUM_THREADS"
        environment = {**os.environ, setting: str(number)}
        command = [sys.executable, "-W", "error", "-c", THIN]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        seen[setting, number] = done.stdout
    assert len(set(seen.values())) == 1, seen
