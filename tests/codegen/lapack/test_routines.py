"""The functions of factorisations: against NumPy's, for sizes, layouts, dtypes and batches; what they say of failures.

One compiled function computes all of them; kernels are made for ranks, so that it serves every size.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
from graphc import tensor as T
from graphc.codegen import lapack as api
from graphc.codegen.gemm import routines_of_scipy
from graphc.errors import GraphcError, ShapeError
from graphc.ir.node import Node
from graphc.ops.linalg.equations import schur
from graphc.ops.linalg.factor import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inverse_of_factor,
    lu,
    lu_of_any,
    qr,
    qr_order,
    svd,
    svdvals,
    triangular_solve,
)
from graphc.ops.linalg.routine import ROUTINES, LinAlgError

Array = NDArray[Any]
TOLERANCE = {"float64": 1e-9, "float32": 2e-3}
SIZES = (0, 1, 2, 3, 4, 5, 16, 17, 40)


def everything(x: Node, positive: Node, right: Node) -> list[Node]:
    """What is computed of square matrices, those that are positive definite, and right sides."""
    flags = [
        (lower, transposed, unit) for lower in (True, False) for transposed in (True, False) for unit in (True, False)
    ]
    return [
        cholesky(positive),
        *(triangular_solve(positive, right, *each) for each in flags),
        inverse_of_factor(positive),
        *lu(x),
        *lu_of_any(x),
        *lu_of_any(right),
        qr_order(x),
        qr_order(right),
        *qr(x),
        *qr(right, complete=True),
        *qr(right),
        *eigh(positive),
        eigvalsh(x, lower=False),
        *svd(right),
        *svd(right, full=True),
        svdvals(x),
        *eig(x),
        *eigvals(x),
    ]


@cache
def functions(dtype: str) -> tuple[Any, Any]:
    """Everything compiled and interpreted, of a batch."""
    leaves = [T.TensorType(dtype, (False,) * 3)(name) for name in ("x", "p", "b")]
    outputs = everything(*leaves)
    return graphc.function(leaves, outputs), graphc.function(leaves, outputs, mode="interpreted")


def drawn(dtype: str, batch: int, count: int, columns: int, seed: int = 0) -> list[Array]:
    """A batch of square matrices, of positive definite ones, and of right sides."""
    generator = np.random.default_rng((seed, batch, count, columns))
    x = generator.normal(size=(batch, count, count))
    positive = x @ x.swapaxes(-1, -2) + 2.0 * max(count, 1) * np.eye(count)
    return [each.astype(dtype) for each in (x, positive, generator.normal(size=(batch, count, columns)))]


def agree(found: list[Array], wanted: list[Array], dtype: str) -> None:
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), number
        scale = max(float(np.abs(want).max(initial=0.0)), 1.0)
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE[dtype] * scale, err_msg=str(number))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_size(dtype: str) -> None:
    compiled, interpreted = functions(dtype)
    sizes = SIZES if dtype == "float64" else (3, 17)
    for count in sizes:
        for columns in (1, 3):
            given = drawn(dtype, 2, count, columns)
            if dtype == "float32":  # the eigenvalues of any matrix may be far apart in the last digits
                given[0] = given[1] + np.float32(0.1) * given[0]
            found, wanted = compiled(*given), interpreted(*given)
            if dtype == "float32":  # whose eigenvectors may have other signs
                found, wanted = ([np.abs(each) for each in results] for results in (found, wanted))
            agree(found, wanted, dtype)


def layouts(arrays: list[Array]) -> Iterator[list[Array]]:
    """The same arrays as other parts of memory."""
    yield [np.asfortranarray(array) for array in arrays]
    yield [np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2) for array in arrays]
    wide = [np.repeat(np.repeat(array, 2, axis=-1), 3, axis=0) for array in arrays]
    yield [array[::3, :, ::2] for array in wide]


@pytest.mark.slow
def test_layouts() -> None:
    """Transposed, sliced and repeated operands are read where they stand."""
    x, y, b = T.dtensor3("x"), T.dmatrix("y"), T.dmatrix("b")
    positive = T.batched_dot(x, x.dimshuffle(0, 2, 1)) + 3 * T.eye(x.shape[1])
    turned = positive.dimshuffle(0, 2, 1)
    part = y[1::2, 1::2]
    spread = T.broadcast_to(T.shape_padleft(y), (x.shape[0], y.shape[0], y.shape[1]))
    outputs = [
        cholesky(turned),
        triangular_solve(turned, x, lower=False),
        triangular_solve(positive[:, 1:, 1:], x[:, 1:, ::2], transposed=True),
        triangular_solve(part, b.T, lower=False),
        triangular_solve(part.T, b[:, ::-1].T),
        lu(turned)[0],
        lu(part)[0],
        *qr(x[:, ::2]),
        eigh(part, lower=False)[0],
        triangular_solve(spread[:, :3, :3], x[:, :3]),
        cholesky(turned[::2, ::-1, ::-1]),
    ]
    compiled = graphc.function([x, y, b], outputs)
    interpreted = graphc.function([x, y, b], outputs, mode="interpreted")
    for count in (4, 30):
        generator = np.random.default_rng(count)
        given = generator.normal(size=(3, count, count)), generator.normal(size=(2 * count, 2 * count))
        given[1][...] = np.abs(given[1]) + 5 * np.eye(2 * count)
        sides = generator.normal(size=(2, count))
        wanted = interpreted(*given, sides)
        agree(compiled(*given, sides), wanted, "float64")
        for other in layouts([given[0]]):
            agree(compiled(other[0], np.asfortranarray(given[1]), sides[:, ::1]), wanted, "float64")


@pytest.mark.slow
def test_batches() -> None:
    """Of no matrices, of one, of axes of their own; of so many that threads share them, whose number changes no bit."""
    x = T.TensorType("float64", (False,) * 4)("x")
    outputs = [cholesky(x), *lu(x), triangular_solve(x, x), eigvalsh(x), *qr(x), *eigh(x), *svd(x), *eig(x), *schur(x)]
    two, one = (graphc.function([x], outputs, threads=threads) for threads in (2, 1))
    interpreted = graphc.function([x], outputs, mode="interpreted")
    for shape in ((0, 2, 3, 3), (2, 0, 3, 3), (1, 1, 3, 3), (2, 3, 4, 4), (3, 2, 20, 20)):
        positive = np.random.default_rng(1).normal(size=shape)
        positive = positive @ positive.swapaxes(-1, -2) + np.eye(shape[-1])
        agree(two(positive), interpreted(positive), "float64")
    many = np.random.default_rng(1).normal(size=(2, 5000, 4, 4))
    many = many @ many.swapaxes(-1, -2) + np.eye(4)
    for left, right in zip(two(many), one(many), strict=True):
        assert left.tobytes() == right.tobytes()
    np.testing.assert_allclose(two(many)[0], np.linalg.cholesky(many), rtol=1e-9, atol=1e-12)
    many[1, 4321] *= -1
    with pytest.raises(LinAlgError, match=r"Matrix is not positive definite \(number 9321 of a batch of 10000\)"):
        two(many)
    spectral = graphc.function([x], eig(x)[0], threads=2)
    many[1, 4321, 2, 2] = np.nan
    with pytest.raises(LinAlgError, match=r"infs or NaNs \(number 9321 of a batch of 10000\): eig of x"):
        spectral(many)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_failures(mode: str) -> None:
    """A matrix without factors is an error that names it and its line, or NaN in its results only."""
    x = T.dtensor3("K")
    strict = graphc.function([x], [cholesky(x), triangular_solve(x, x), svd(x)[1], eig(x)[0]], mode=mode)
    loose = graphc.function(
        [x],
        [cholesky(x, "nan"), triangular_solve(x, x, on_error="nan"), svdvals(x, "nan"), eigvals(x, "nan")[0]],
        mode=mode,
    )
    good = np.eye(3) + 0.1
    for count in (3, 20):
        good = np.eye(count) + 0.1
        whole = strict(np.stack([good, good]))
        for place, bad in (
            (0, -good),
            (1, good * (np.arange(count) != 1)),
            (2, np.full_like(good, np.nan)),
            (3, good * np.inf),
        ):
            stack = np.stack([good, bad, good])
            with pytest.raises(
                LinAlgError, match=r"\(number 1 of a batch of 3\): \w+ of K \(test_routines.py:\d+\)"
            ) as found:
                strict(stack)
            assert isinstance(found.value, np.linalg.LinAlgError)
            values = loose(stack)
            assert np.isnan(values[place][1]).all()
            for value, want in zip(values, whole, strict=True):
                np.testing.assert_allclose(value[[0, 2]], want, rtol=1e-9, atol=1e-12)


def test_no_square() -> None:
    x, a, b = T.dmatrix("x"), T.dmatrix("a"), T.dmatrix("b")
    with pytest.raises(ShapeError, match=r"cholesky .* of x .* should be square, and has 3 rows and 2 columns"):
        graphc.function([x], cholesky(x))(np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"the matrices have 3 and 2 rows"):
        graphc.function([a, b], triangular_solve(a, b))(np.eye(3), np.ones((2, 2)))
    with pytest.raises(GraphcError, match="floats of one dtype"):
        cholesky(T.lmatrix("n"))
    with pytest.raises(GraphcError, match="ranks should be 2 and 2"):
        triangular_solve(a, T.dvector("v"))
    with pytest.raises(GraphcError, match="on_error='ignore'"):
        cholesky(a, "ignore")


def test_values_that_are_no_numbers() -> None:
    """What NumPy makes of NaN and infinity; overflow and the smallest numbers do not matter."""
    x = T.dmatrix("x")
    compiled = graphc.function([x], [cholesky(x, "nan"), *lu(x), triangular_solve(x, x, on_error="nan")])
    interpreted = graphc.function(
        [x], [cholesky(x, "nan"), *lu(x), triangular_solve(x, x, on_error="nan")], mode="interpreted"
    )
    for count in (3, 5):
        for value in (np.nan, np.inf, -np.inf, 1e200, 1e-300):
            for place in ((0, 0), (1, 0), (1, 1), (0, 2)):
                matrix = np.eye(count) + 0.1
                matrix[place] = value
                for found, want in zip(compiled(matrix), interpreted(matrix), strict=True):
                    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.slow
def test_in_a_loop_and_a_branch() -> None:
    """Steps factorise; what fails in one leaves variables as they were."""
    a, steps = T.dmatrix("a"), T.lscalar("steps")
    kept = graphc.shared(np.eye(3), name="kept")
    (_, solved, rows), _ = graphc.scan(
        lambda t, m, x: [m - 0.5 * T.eye(3), triangular_solve(cholesky(m), x), triangular_solve(m, 2 * x + t)],
        sequences=T.arange(steps),
        outputs_info=[a, T.eye(3), None],
    )
    chosen = graphc.ifelse(steps > 2, cholesky(a), lu(a)[0])
    outputs = [rows, solved[-1], graphc.grad(solved[-1].sum(), a), chosen]
    functions = [graphc.function([a, steps], outputs, updates=[(kept, kept + solved[-1])], mode=m) for m in MODES]
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 3.5]])
    results = [function(matrix, 4) for function in functions]
    for result in results[1:]:
        agree(result, results[0], "float64")
    before = kept.get_value()
    for function in functions:
        with pytest.raises(LinAlgError, match="Matrix is not positive definite: cholesky of"):
            function(matrix, 20)
        np.testing.assert_array_equal(kept.get_value(), before)


MODES = ("interpreted", "compiled", "python")


@pytest.mark.slow
def test_in_place() -> None:
    """A result stands where an operand was that nothing else reads; not where it is read again, or is another part."""
    x, y = T.dtensor3("x"), T.dmatrix("y")
    positive = T.batched_dot(x, x.dimshuffle(0, 2, 1)) + T.eye(x.shape[1])
    twice = 2 * y
    outputs = [
        T.tanh(triangular_solve(cholesky(positive + 1), triangular_solve(x, 2 * x, unit=True))),
        *lu(3 * y),
        T.tanh(lu(4 * y)[0]),
        triangular_solve(twice, twice),
        triangular_solve(y, T.tanh(y).T),
        T.tanh(cholesky((T.dot(y, y.T) + 50 * T.eye(y.shape[0])).T)),
        cholesky(T.dot(y.T, y))[T.iround(T.abs(y[0]) * 0)],  # what is gathered is checked
    ]
    compiled: Any = graphc.function([x, y], outputs)
    interpreted = graphc.function([x, y], outputs, mode="interpreted")
    assert compiled.explain().count("; over operand 0") == 4 and compiled.explain().count("; over operand 1") == 2
    for count in (3, 24):
        generator = np.random.default_rng(count)
        given = generator.normal(size=(2, count, count)), generator.normal(size=(count, count)) + 9 * np.eye(count)
        agree(compiled(*given), interpreted(*given), "float64")


def test_of_functions() -> None:
    """Under `jit` and `vmap`; a batch is one call."""

    def solve(a: Any, b: Any) -> Any:
        return triangular_solve(cholesky(a), b)

    a, _, b = drawn("float64", 4, 3, 2)
    a = a @ a.swapaxes(-1, -2) + np.eye(3)
    found = graphc.vmap(solve)(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(np.linalg.cholesky(a), b), rtol=1e-9)
    compiled = graphc.jit(solve)
    np.testing.assert_allclose(compiled(a[0], b[0]), found[0], rtol=1e-12)


def test_near_failures() -> None:
    """Where compiled code fails by rounding and the interpreter, in float64, does not, the message says so."""
    x = T.fmatrix("x")
    compiled = graphc.function([x], cholesky(x))
    told = set()
    for seed in range(40):
        rows = np.random.default_rng(seed).normal(size=(6, 5)).astype("float32")
        try:
            compiled(rows @ rows.T + np.float32(1e-7) * np.eye(6, dtype="float32"))
        except LinAlgError as error:
            told.add(re.sub(r":\d+", "", str(error)))
    start = "Matrix is not positive definite: cholesky of x (test_routines.py) (test_routines.py)"
    assert told == {start, f"{start}, by rounding: the interpreter finds it just in order"}


@pytest.mark.slow
def test_scipy_as_fallback() -> None:
    """SciPy's routines have integers of 32 bits."""
    pytest.importorskip("scipy.linalg.cython_lapack")
    solvers, routines = routines_of_scipy(api.BLAS), routines_of_scipy(api.LAPACK)
    assert solvers is not None and routines is not None and routines[1] == 4
    table = api.lapack_table()
    before = list(table)
    compiled, interpreted = functions("float64")
    given = drawn("float64", 2, 20, 3)
    try:
        table[:] = [*solvers[0], *routines[0], 4]
        agree(compiled(*given), interpreted(*given), "float64")
    finally:
        table[:] = before


def test_tables() -> None:
    assert all(api.lapack_table()) and ctypes.sizeof(api.lapack_table()) == 8 * len(api.ENTRIES)
    assert {name for name, _ in api.FUNCTIONS.values()} == ROUTINES.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        api.lapack_table()
