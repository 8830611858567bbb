"""Matrix products by pointer: every layout, size and path gives what NumPy gives, and says nothing of NaN that is not
there."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from bounds import assert_product
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.codegen.gemm import api, blocked, dispatch, gemv, gemv_kernels, microkernel, small
from graphc.codegen.gemm.api import ENTRIES, PRODUCT_WORDS, ROUTINES, VECTORS, blas_symbols, vector_name
from graphc.codegen.gemm.blocked import blocks_ir
from graphc.codegen.gemm.dispatch import blas_functions
from graphc.codegen.gemm.lazy import load_blocks
from graphc.codegen.gemm.prototypes import PROTOTYPES, PYTHON_SHIMS
from graphc.codegen.link.elf import link
from graphc.codegen.llvm.functions import module_text
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.threads.chunking import SETTINGS
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import POOL_EXPORTS, load_pool
from graphc.startup.record import replace

CTYPES: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
}
SUFFIX = {"float64": "f64", "float32": "f32"}


@cache
def code() -> bytes:
    """The dispatch, sent to BLAS, or packed, from a size on that tests can afford."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "SMALL_GEMM", 12**3)
        patch.setattr(dispatch, "SMALL_GEMV", 100)
        patch.setattr(dispatch, "has_threads", lambda: False)
        for name, number in SHORT_PIECES.items():
            patch.setattr(gemv, name, number)
        patch.setattr(dispatch, "SMALL_ANY", 10**3)
        patch.setattr(dispatch, "BLOCKED", 10**3)
        patch.setattr(dispatch, "BLOCKED_THIN", 10**3)
        patch.setattr(dispatch, "BLOCKED_SIDE", 3)
        return emit_object([module_text(blas_functions(PROTOTYPES))], 2, frozenset(PROTOTYPES))


SHORT = {
    "BLOCK_PANELS": 2,
    "SLAB": 64,
    "PANEL_BYTES": 2**14,
    "PACKED": 64,
}
"""Limits with which every edge of a block is met by small matrices."""
SHORT_LIMITS = {"depth": 16, "resident_a": 4096, "resident_b": 4096, "resident_columns": 4096}
SHORT_PIECES = {"SMALL": 60, "PIECE": 64, "TALL": 32, "MOST_PARTIAL": 200, "PART": 8}
"""The same for products with a vector, which fall into pieces and parts."""
SHARED = np.array([3, 2, 1, 0, 0], np.int64)
"""Settings with which every product of two chunks is shared by three threads."""


def short_blocks(suffix: str, narrow: bool = False) -> bytes:
    """Large products with short limits. narrow: as they are where registers have 32 bytes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in SHORT.items():
            patch.setattr(blocked, name, number)
        own = blocked.AVX2 if narrow else blocked.limits()
        patch.setattr(blocked, "limits", lambda: replace(own, **SHORT_LIMITS))
        if narrow:
            patch.setattr(microkernel, "has_avx512", lambda: False)
        return emit_object([blocks_ir(suffix)], 1)


@cache
def blocks_table(narrow: bool = False) -> Any:
    """A table without BLAS, but with packed dispatch, whose depths, blocks and slabs are so short that all edges are
    met by matrices that tests can afford."""
    pool = load_pool(link([emit_object([pool_ir()], 0)], POOL_EXPORTS))
    table = (ctypes.c_void_p * len(ENTRIES))()
    table[ENTRIES.index("parallel")] = pool.parallel
    for suffix in SUFFIX.values():
        table[ENTRIES.index(f"blocks {suffix}")] = load_blocks(suffix, short_blocks(suffix, narrow), pool)
    return table


@cache
def narrow_code() -> bytes:
    """The products as they are where registers have 32 bytes."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (microkernel, small, gemv_kernels):
            patch.setattr(module, "has_avx512", lambda: False)
        return emit_object([module_text(blas_functions(PROTOTYPES))], 2, frozenset(PROTOTYPES))


@cache
def linked(table: int, narrow: bool = False) -> tuple[Any, Any, dict[str, Callable[..., int]]]:
    """The shims as ctypes functions over the BLAS of a table; their owner must be kept. The narrow ones have no
    products with a vector beside them: those of matrices are computed by their own loops."""
    llvm.initialize_native_target()
    words = np.zeros(PRODUCT_WORDS, np.int64)
    words[: len(SHARED)] = SHARED
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    builder = llvm.JITLibraryBuilder().add_object_img(narrow_code() if narrow else code()).add_current_process()
    builder.import_symbol("gc_blas", table).import_symbol(SETTINGS, words.ctypes.data)
    for name in PROTOTYPES:
        builder.export_symbol(name)
    tracker = builder.link(jit, "blas")
    functions: dict[str, Callable[..., int]] = {}
    for name, (arguments, returns) in PROTOTYPES.items():
        types = [ctypes.c_void_p if argument.endswith("*") else CTYPES[argument] for argument in arguments]
        functions[name] = ctypes.CFUNCTYPE(CTYPES[returns], *types)(tracker[name])
    if not narrow:
        for suffix, word in VECTORS.items():
            words[word] = tracker[vector_name(suffix)]
    return tracker, (jit, words), functions


NO_BLAS = (ctypes.c_void_p * len(ENTRIES))()


def implementations() -> Iterator[tuple[str, Callable[[str], Callable[..., int]]]]:
    yield "BLAS", lambda name: linked(blas_symbols()["gc_blas"])[2][name]
    yield "loops", lambda name: linked(ctypes.addressof(NO_BLAS))[2][name]
    yield "narrow loops", lambda name: linked(ctypes.addressof(NO_BLAS), narrow=True)[2][name]
    yield "blocks", lambda name: linked(ctypes.addressof(blocks_table()))[2][name]
    yield "narrow blocks", lambda name: linked(ctypes.addressof(blocks_table(narrow=True)))[2][name]
    yield "python", python_shim


def python_shim(name: str) -> Callable[..., int]:
    """The Python meaning, called with addresses as the compiled one is."""
    arguments, _ = PROTOTYPES[name]

    def call(*values: Any) -> int:
        given = [
            POINTERS[value] if argument.endswith("*") else value
            for value, argument in zip(values, arguments, strict=True)
        ]
        return PYTHON_SHIMS[name](*given)

    return call


POINTERS: dict[int, Any] = {}
"""The flat arrays, by address of their first element, that python_shim is to find."""


def address(view: Any) -> int:
    """The address of a view's first element; remembered with the elements that follow in its buffer."""
    owner = owner_of(view)
    where: int = view.__array_interface__["data"][0]
    start = first_element(owner, view)
    POINTERS[where] = owner.reshape(-1)[start:] if start < owner.size else np.zeros(1, owner.dtype)
    return where


def owner_of(view: Any) -> Any:
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def first_element(owner: Any, view: Any) -> int:
    """Where the view starts among the elements of its buffer."""
    start = view.__array_interface__["data"][0] - owner.reshape(-1).__array_interface__["data"][0]
    return int(start) // int(owner.itemsize)


def matrix(kind: str, rows: int, columns: int, dtype: str, rng: np.random.Generator) -> Any:
    """A view of `rows` by `columns` in a layout by name; the buffer around it is NaN."""

    def filled(*shape: int) -> Any:
        buffer = np.full((shape[0] + 2, shape[1] + 2), np.nan, dtype)
        inner = buffer[1:-1, 1:-1]
        inner[...] = rng.normal(size=shape)
        return inner

    match kind:
        case "plain":
            return rng.normal(size=(rows, columns)).astype(dtype)
        case "transposed":
            return rng.normal(size=(columns, rows)).astype(dtype).T
        case "inner":
            return filled(rows, columns)
        case "inner transposed":
            return filled(columns, rows).T
        case "strided":
            return filled(2 * rows + 1, 3 * columns + 1)[:-1:2, :-1:3]
        case "reversed":
            return filled(rows, columns)[::-1, ::-1]
        case "one row":
            return np.broadcast_to(rng.normal(size=(1, columns)).astype(dtype), (rows, columns))
        case "one column":
            return np.broadcast_to(rng.normal(size=(rows, 1)).astype(dtype), (rows, columns))
    raise ValueError(kind)


LAYOUTS = ("plain", "transposed", "inner", "inner transposed", "strided", "reversed", "one row", "one column")
WRITABLE = ("plain", "transposed", "inner", "inner transposed", "strided")
IMPLEMENTATIONS = dict(implementations())


def steps(view: Any) -> tuple[int, ...]:
    return tuple(stride // view.itemsize for stride in view.strides)


def multiply(which: str, a: Any, b: Any, c: Any, alpha: float = 1.0, beta: float = 0.0) -> None:
    """c = alpha * a @ b + beta * c by the shim for the rank of its operands."""
    suffix = SUFFIX[str(c.dtype)]
    operands = (address(a), *steps(a)), (address(b), *steps(b)), (address(c), *steps(c))
    if c.ndim == 1:
        name, sizes = f"gc_gemv_{suffix}", a.shape
    elif c.ndim == 2:
        name, sizes = f"gc_gemm_{suffix}", (*c.shape, a.shape[1])
    else:
        name, sizes = f"gc_batched_gemm_{suffix}", (*c.shape, a.shape[2])
    assert IMPLEMENTATIONS[which](name)(*sizes, alpha, *operands[0], *operands[1], beta, *operands[2]) == 0


def check(which: str, a: Any, b: Any, c: Any, alpha: float, beta: float) -> None:
    owner = owner_of(c)
    untouched = owner.copy()
    c64 = np.zeros(c.shape) if beta == 0 else c.astype(np.float64)
    multiply(which, a, b, c, alpha, beta)
    assert_product(c, alpha, a, b, beta, c64)
    c[...] = 0
    untouched_view = np.lib.stride_tricks.as_strided(
        untouched.reshape(-1)[first_element(owner, c) :], c.shape, c.strides
    )
    untouched_view[...] = 0
    np.testing.assert_array_equal(owner, untouched, err_msg="elements beside the result were written")


def result(kind: str, rows: int, columns: int, dtype: str, beta: float, rng: np.random.Generator) -> Any:
    c = matrix(kind, rows, columns, dtype, rng)
    if beta == 0:
        c[...] = np.nan
    return c


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", SUFFIX)
@pytest.mark.parametrize("size", [(3, 5, 4), (40, 50, 45)], ids=str)
def test_layouts(which: str, dtype: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)
    for a, b, c in itertools.product(LAYOUTS, LAYOUTS, WRITABLE):
        for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
            check(
                which,
                matrix(a, m, k, dtype, rng),
                matrix(b, k, n, dtype, rng),
                result(c, m, n, dtype, beta, rng),
                alpha,
                beta,
            )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
def test_sizes(which: str, data: st.DataObject) -> None:
    sizes = st.one_of(st.integers(0, 20), st.sampled_from([31, 32, 33, 64, 100]))
    m, n, k = (data.draw(sizes) for _ in range(3))
    dtype = data.draw(st.sampled_from(sorted(SUFFIX)))
    alpha, beta = data.draw(st.sampled_from([(1.0, 0.0), (0.0, 1.0), (2.0, -1.0), (1.0, 1.0)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b, c = (data.draw(st.sampled_from(kinds)) for kinds in (LAYOUTS, LAYOUTS, WRITABLE))
    check(
        which, matrix(a, m, k, dtype, rng), matrix(b, k, n, dtype, rng), result(c, m, n, dtype, beta, rng), alpha, beta
    )


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", SUFFIX)
def test_vectors(which: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for m, n in itertools.product([0, 1, 2, 7, 100], [0, 1, 2, 9, 120]):
        for kind, column, row, (alpha, beta) in itertools.product(
            LAYOUTS, [0, 1, 2], [0, 1], [(1.0, 0.0), (0.5, 1.0), (0.0, 1.0)]
        ):
            a = matrix(kind, m, n, dtype, rng)
            x = (rng.normal(size=n), rng.normal(size=2 * n)[::2], rng.normal(size=n)[::-1])[column].astype(
                dtype, copy=False
            )
            if column:
                x = np.stack([x.astype(dtype)] * 2, 1)[:, 0]
            y = result("strided" if row else "plain", m, 1, dtype, beta, rng)[:, 0]
            check(which, a, x, y, alpha, beta)


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", SUFFIX)
@pytest.mark.parametrize(
    "size", [(0, 2, 3, 4), (5, 2, 3, 4), (3, 40, 50, 30), (4, 1, 3, 2), (2, 3, 0, 4), (2, 3, 4, 0)], ids=str
)
def test_batches(which: str, dtype: str, size: tuple[int, int, int, int]) -> None:
    count, m, n, k = size
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(count, m, k)).astype(dtype), rng.normal(size=(count, k, n)).astype(dtype)
    one_a, one_b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    turned = np.ascontiguousarray(a.transpose(0, 2, 1)).transpose(0, 2, 1)
    for left, right, beta in itertools.product(
        (a, turned, np.broadcast_to(one_a, a.shape)), (b, np.broadcast_to(one_b, b.shape)), (0.0, 1.0)
    ):
        c = np.full((count, m, n), np.nan if beta == 0 else 1.0, dtype)
        check(which, left, right, c, 1.5, beta)


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("size", [2, 64], ids=["loops", "blas"])
def test_not_a_number(which: str, size: int) -> None:
    """0 * NaN is NaN wherever it stands; a NaN in c does not count where beta is 0."""
    with np.errstate(all="ignore"):
        for value in (np.nan, np.inf):
            a, b = np.zeros((size, size)), np.eye(size)
            a[0, 1] = value
            for alpha in (1.0, 0.0):
                c = np.full((size, size), np.nan)
                multiply(which, a, b, c, alpha=alpha)
                np.testing.assert_array_equal(np.isnan(c), np.isnan(alpha * (a @ b)))
                y = np.full(size, np.nan)
                multiply(which, a, np.ones(size), y, alpha=alpha)
                np.testing.assert_array_equal(np.isnan(y), np.isnan(alpha * (a @ np.ones(size))))
            c = np.full((size, size), value)
            multiply(which, b, b, c, beta=2.0)
            assert not np.isfinite(c).any()


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers(which: str, dtype: str) -> None:
    """Integers wrap, in every layout, as in NumPy."""
    rng = np.random.default_rng(5)
    largest = np.iinfo(dtype).max

    def draw(turned: bool, *shape: int) -> Any:
        drawn = rng.integers(-largest, largest, shape[::-1] if turned else shape, dtype)
        return drawn.T if turned else drawn

    suffix = {"int64": "i64", "int32": "i32"}[dtype]
    for m, n, k in itertools.product([0, 1, 2, 5, 13, 40], [0, 1, 3, 17, 35], [0, 1, 6, 300]):
        for turned, (alpha, beta) in itertools.product(itertools.product([False, True], repeat=3), [(1, 0), (-3, 2)]):
            a, b, c = draw(turned[0], m, k), draw(turned[1], k, n), draw(turned[2], m, n)
            expected = c * np.array(beta, dtype) + a @ b * np.array(alpha, dtype)
            operands = (address(a), *steps(a)), (address(b), *steps(b)), (address(c), *steps(c))
            call = IMPLEMENTATIONS[which](f"gc_gemm_{suffix}")
            assert call(m, n, k, alpha, *operands[0], *operands[1], beta, *operands[2]) == 0
            np.testing.assert_array_equal(c, expected)


@pytest.mark.slow
@pytest.mark.parametrize("which", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", SUFFIX)
def test_a_matrix_times_its_transpose(which: str, dtype: str) -> None:
    """Where one triangle is computed and mirrored nothing else may differ: layouts, factors, padding, a beta."""
    rng = np.random.default_rng(6)
    for m, k, kind in itertools.product([63, 64, 65, 97], [1, 30, 70], LAYOUTS):
        a = matrix(kind, m, k, dtype, rng)
        for c, (alpha, beta) in itertools.product(WRITABLE, [(1.0, 0.0), (-0.5, 2.0)]):
            check(which, a, a.T, result(c, m, m, dtype, beta, rng), alpha, beta)


@pytest.mark.slow
def test_vector_with_many_elements() -> None:
    """The path to BLAS for products whose rows are few and long, and the other way about."""
    rng = np.random.default_rng(3)
    for m, n, k in ((3, 2, 50_000), (50_000, 2, 3), (2, 50_000, 3), (1, 70_000, 2), (70_000, 1, 2), (1, 1, 70_000)):
        check("BLAS", rng.normal(size=(m, k)), rng.normal(size=(k, n)), np.full((m, n), np.nan), 1.0, 0.0)


@pytest.mark.slow
def test_ir_only_for_what_is_called() -> None:
    assert blas_functions([]) == blas_functions(["something_else"]) == []
    assert "float" not in module_text(blas_functions(["gc_gemm_f64"]))
    assert "double @dot_f64" not in module_text(blas_functions(["gc_gemv_f32"]))


@pytest.mark.slow
def test_numpy_has_the_blas() -> None:
    """NumPy's wheels bring OpenBLAS: it is found without SciPy and without threadpoolctl."""
    program = f"""if True:
    import ctypes, sys
    from graphc.codegen.gemm.api import blas_symbols
    table = (ctypes.c_void_p * {len(ROUTINES)}).from_address(blas_symbols()["gc_blas"])
    print(all(table), "scipy" in sys.modules, "numba" in sys.modules)
    """
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.split() == ["True", "False", "False"]


@pytest.mark.slow
def test_scipy_as_fallback() -> None:
    pytest.importorskip("scipy.linalg.cython_blas")
    known = api.routines_of_scipy(ROUTINES)
    assert known is not None and known[1] == 4
    routines = known[0]
    assert len(routines) == len(ROUTINES) and all(routines)
    table = (ctypes.c_void_p * len(ENTRIES))(*routines)
    functions = linked(ctypes.addressof(table))[2]
    rng = np.random.default_rng(4)
    a, b, c = rng.normal(size=(50, 60)), rng.normal(size=(60, 70)), np.full((50, 70), np.nan)
    functions["gc_gemm_f64"](50, 70, 60, 1.0, address(a), 60, 1, address(b), 70, 1, 0.0, address(c), 70, 1)
    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)
    x, y = rng.normal(size=300).astype(np.float32), np.zeros(200, np.float32)
    m = rng.normal(size=(200, 300)).astype(np.float32)
    functions["gc_gemv_f32"](200, 300, 1.0, address(m), 300, 1, address(x), 1, 0.0, address(y), 1)
    np.testing.assert_allclose(y, m @ x, rtol=1e-3, atol=1e-4)
    linked.cache_clear()
