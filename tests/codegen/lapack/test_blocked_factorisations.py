"""Factorisations of matrices that are halved: values, bits for any number of threads, calls without large products; and
the number of OpenBLAS's threads around calls of LAPACK."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
from graphc import tensor as T
from graphc.codegen import lapack as api
from graphc.codegen.gemm import DEFERRED, ENTRIES, FINDERS, PRODUCT_WORDS, blas_table
from graphc.codegen.lapack.batch import SEVERAL
from graphc.codegen.link.image import load
from graphc.codegen.pipeline.runtime import part_code
from graphc.codegen.threads.settings import settings_words
from graphc.ops.linalg.factor import cholesky, lu, triangular_solve
from graphc.ops.linalg.routine import ROUTINES, LinAlgError

Array = NDArray[Any]
SIZES = (96, 97, 128, 129, 130, 177, 193, 260)
"""Around the sizes from which matrices are halved, once and twice."""


@cache
def functions(dtype: str, threads: int) -> Any:
    """A Cholesky factor; L, U and permutation; and solutions of all kinds of triangular systems."""
    a, s, b = (T.matrix(name, dtype) for name in "asb")
    flags = [
        (lower, transposed, unit) for lower in (True, False) for transposed in (True, False) for unit in (False, True)
    ]
    solved = [triangular_solve(s, b, *each) for each in flags]
    turned = [triangular_solve(s.T, b.T[:, ::2], *each) for each in flags[::3]]
    return graphc.function([a, s, b], [cholesky(s), *lu(a), *solved, *turned], threads=threads)


def drawn(dtype: str, rows: int, columns: int) -> list[Array]:
    """A matrix, a positive definite one, right sides."""
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=(rows, rows)), rng.normal(size=(rows, columns))
    return [each.astype(dtype) for each in (a, a @ a.T / rows + 4 * np.eye(rows), b)]


def residuals(found: list[Array], a: Array, s: Array, b: Array) -> list[float]:
    """How far products of what was found are from what was given, in units of the largest element."""
    a, s, b = (each.astype(np.float64) for each in (a, s, b))
    exact = [each.astype(np.float64) if each.dtype.kind == "f" else each for each in found]
    factor, packed, order, _, *solved = exact
    assert not np.triu(factor, 1).any()
    lower, upper = np.tril(packed, -1) + np.eye(len(a)), np.triu(packed)
    assert np.abs(lower).max() <= 1 + 1e-6  # the pivots are the largest
    differences = [(factor @ factor.T - s) / np.abs(s).max(), (lower @ upper - a[order]) / np.abs(a).max()]
    flags = [(low, turned, unit) for low in (1, 0) for turned in (1, 0) for unit in (0, 1)]
    cases = [(s, b, each) for each in flags] + [(s.T, b.T[:, ::2], each) for each in flags[::3]]
    for (matrix, right, (low, turned, unit)), x in zip(cases, solved, strict=True):
        system = np.tril(matrix) if low else np.triu(matrix)
        if unit:
            system = system - np.diag(np.diag(system)) + np.eye(len(system))
        differences.append(((system.T if turned else system) @ x - right) / (np.abs(system).max() * np.abs(x).max()))
    return [float(np.abs(each).max()) for each in differences]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_bits(dtype: str) -> None:
    """Each is backward stable: its residual is a multiple of n eps, whatever is halved, and no thread changes a bit."""
    for rows in SIZES:
        given = drawn(dtype, rows, rows)
        results = [functions(dtype, threads)(*given) for threads in (1, 2, 3)]
        assert max(residuals(results[0], *given)) < 4 * rows * np.finfo(dtype).eps
        for other in results[1:]:
            for one, another in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(one, another)


@pytest.mark.slow
def test_what_has_no_factor_is_told_in_any_half() -> None:
    a = T.dmatrix("a")
    f = graphc.function([a], cholesky(a))
    for place in (3, 100, 190, 259):
        matrix = np.eye(260)
        matrix[place, place] = -1
        with pytest.raises(LinAlgError, match="not positive definite"):
            f(matrix)
    np.testing.assert_array_equal(f(np.eye(260)), np.eye(260))


# The functions themselves, with tables of our own. --------------------------------------------------------------------

SET = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int32))
GET = ctypes.CFUNCTYPE(ctypes.c_int32)


class Loaded:
    """A routine of float64 on two threads, whose tables say `set` and `get` are functions that take notes."""

    def __init__(self, name: str, number: int = 6, large: bool = True) -> None:
        self.calls: list[tuple[str, int]] = []
        self.routine = ROUTINES[name]
        self.table = type(api.alone_table())()
        self.kept: list[Any] = [
            SET(lambda at: self.note("set", at[0])),
            GET(lambda: self.note("get", number)),
        ]
        for word, function in zip((api.SET_THREADS, api.GET_THREADS), self.kept, strict=True):
            self[word] = ctypes.cast(function, ctypes.c_void_p).value or 0
        products = type(blas_table())(*blas_table())
        for entry in () if large else (*DEFERRED, *FINDERS):
            products[ENTRIES.index(entry)] = None
        settings = np.zeros(PRODUCT_WORDS, np.int64)
        words = settings_words(2, 2)
        settings[: len(words)] = words
        symbol = f"gc_lapack_{name}_f64"
        symbols = {**api.symbols(symbol), "gc_alone": ctypes.addressof(self.table)}
        symbols["gc_blas"] = ctypes.addressof(products)
        self.code = load(part_code(symbol), {**symbols, "gc_settings": settings.ctypes.data}, [symbol])
        self.kept += [products, settings]
        self.address = self.code.addresses[symbol]

    def note(self, verb: str, count: int) -> int:
        self.calls.append((verb, count))
        return count

    def __getitem__(self, word: str) -> int:
        return int(self.table[api.ALONE.index(word)])

    def __setitem__(self, word: str, value: int) -> None:
        self.table[api.ALONE.index(word)] = value

    def __call__(self, matrix: Array, *results: Array) -> None:
        rows = len(matrix)
        given: list[int] = []
        spaces = [np.zeros(rows * rows * 4 + 400 * rows) for _ in self.routine.spaces]
        letters = {"count": 1, **dict.fromkeys(self.routine.letters, rows), "nan": 0, "slots": 1}
        for argument in api.arguments(self.routine, "f64"):
            match argument.of:
                case "operand":
                    given.append(matrix.ctypes.data)
                case "stride":
                    given.append(rows if argument.name.endswith("_0") else int(argument.name.endswith("_1")))
                case "result":
                    given.append(results[int(argument.name[1:])].ctypes.data)
                case "workspace":
                    given.append(spaces[int(argument.name[1:])].ctypes.data)
                case _:
                    given.append(letters.get(argument.name, 0))
        call: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))(self.address)
        assert call(*given) == 0


def test_one_thread_during_a_call_and_as_many_as_before_after_it() -> None:
    routine, matrix, found = Loaded("cholesky"), drawn("float64", 40, 1)[1], np.empty((40, 40))
    routine(matrix, found)
    assert routine.calls == [("get", 6), ("set", 1), ("set", 6)]
    np.testing.assert_allclose(found, np.linalg.cholesky(matrix))
    assert routine[api.OWNER] == 0

    routine.calls.clear()
    routine[api.OWNER] = os.getpid()  # another call of this process is at it
    routine(matrix, found)
    assert not routine.calls

    routine[api.OWNER], routine[api.KEPT_THREADS] = os.getpid() + 1, 3  # the parent was, when this process was forked
    routine(matrix, found)
    assert (routine.calls, routine[api.OWNER]) == ([("set", 1), ("set", 3)], 0)

    routine.calls.clear()
    small = np.eye(15)
    routine(small, np.empty((15, 15)))  # no call of LAPACK
    routine[api.SET_THREADS] = 0  # another library
    routine(matrix, found)
    assert not routine.calls


@pytest.mark.slow
def test_large_matrices_are_lapacks_threads_until_one_is_taken() -> None:
    rows = int(SEVERAL ** (1 / 3)) + 1
    routine, matrix = Loaded("eigvalsh"), drawn("float64", rows, 1)[1]
    values = np.empty(rows)
    routine(matrix, values)
    assert not routine.calls
    routine[api.RESUME] = 2**62  # a processor was taken: one thread until then
    routine(matrix, values)
    assert routine.calls == [("get", 6), ("set", 1), ("set", 6)]
    shared = Loaded("cholesky")  # our pool's, whatever its size
    shared(matrix, np.empty((rows, rows)))
    assert shared.calls == [("get", 6), ("set", 1), ("set", 6)]


@pytest.mark.slow
def test_without_large_products_blas_multiplies_between_the_halves() -> None:
    matrix = drawn("float64", 260, 1)[1]
    for name, made in (("cholesky", 1), ("lu", 3)):
        results = []
        for large in (True, False):
            found = [np.zeros((260, 260)), np.zeros(260, np.int64), np.zeros(260, np.int64)][:made]
            Loaded(name, large=large)(matrix, *found)
            results.append(found)
        np.testing.assert_allclose(results[1][0], results[0][0], atol=1e-12)
        for one, another in zip(results[0][1:], results[1][1:], strict=True):
            np.testing.assert_array_equal(one, another)
