"""Matrix products by pointer: every layout, size and path gives what NumPy gives, and says nothing of NaN that is not
there."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from graphc.codegen import gemm as api
from graphc.codegen.gemm import ENTRIES, ROUTINES
from graphc.codegen.gemm.dispatch import functions as definitions
from graphc.codegen.llvm.functions import module_text
from tests.support.bounds import assert_product
from tests.support.product_paths import (
    IMPLEMENTATIONS,
    LAYOUTS,
    SUFFIX,
    WRITABLE,
    address,
    first_element,
    linked,
    matrix,
    owner_of,
    steps,
)


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


FEW = ((40, 3, 45), (70, 7, 33), (3, 40, 45), (5, 70, 36), (9, 6, 130), (2, 300, 3), (1, 33, 50))
"""Sizes of products with few rows or columns: inner products, columns beside the result, tiles of each height."""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["loops", "narrow loops"])
@pytest.mark.parametrize("dtype", SUFFIX)
def test_few_rows_or_columns(which: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    kinds = ("inner", "inner transposed", "strided")
    for m, n, k in FEW:
        for a, b, c in itertools.product(kinds, kinds, kinds):
            alpha, beta = ((1.0, 0.0), (-0.5, 2.0))[rng.integers(2)]
            operands = matrix(a, m, k, dtype, rng), matrix(b, k, n, dtype, rng), result(c, m, n, dtype, beta, rng)
            check(which, *operands, alpha, beta)


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
    rows = [65] if which == "python" else [63, 64, 65, 97]  # NumPy computes that one, and knows no blocks
    for m, k, kind in itertools.product(rows, [1, 30, 70], LAYOUTS):
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
    assert definitions([]) == definitions(["something_else"]) == []
    assert "float" not in module_text(definitions(["gc_gemm_f64"]))
    assert "double @dot_f64" not in module_text(definitions(["gc_gemv_f32"]))


@pytest.mark.slow
def test_numpy_has_the_blas() -> None:
    """NumPy's wheels bring OpenBLAS: it is found without SciPy and without threadpoolctl."""
    program = f"""if True:
    import ctypes, sys
    from graphc.codegen.gemm import blas_symbols
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
