"""Bands, constant diagonals and equations of matrices: against the interpreter, which is SciPy, over sizes and layouts;
memory that is linear; what is told of failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import tensor as T
from graphc.ops.linalg.equations import banded_solve, positive_banded_solve, schur, toeplitz_solve, triangular_sylvester
from graphc.ops.linalg.routine import LinAlgError

la: Any = T.linalg
BANDS = ((1, 0), (4, 3), (5, 0), (40, 30))
"""Diagonals, and how many are below; loops and LAPACK."""


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bands(dtype: str) -> None:
    ab, positive, b = (T.TensorType(dtype, (False,) * 3)(name) for name in ("ab", "positive", "b"))
    for rows, below in BANDS if dtype == "float64" else BANDS[1:2]:
        outputs = [banded_solve(ab, b, below), banded_solve(ab, b, below, True), positive_banded_solve(positive, b)]
        functions = [graphc.function([ab, positive, b], outputs, mode=mode) for mode in ("compiled", "interpreted")]
        for count, columns in ((0, 1), (1, 1), (2, 3), (7, 1), (50, 1), (50, 3)):
            bands, sides = drawn(2, rows, count), drawn(2, count, columns)
            halves = bands.copy()
            bands[:, rows - 1 - below] += 9 + rows
            halves[:, 0] = 9 + 2 * rows
            given = [each.astype(dtype) for each in (bands, halves, sides)]
            wide = [np.repeat(each, 2, axis=-1)[..., ::2] for each in given]
            wanted = functions[1](*given)
            for arrays in (given, wide, [np.asfortranarray(each) for each in given]):
                for found, want in zip(functions[0](*arrays), wanted, strict=True):
                    np.testing.assert_allclose(found, want, rtol=0, atol=1e-13 if dtype == "float64" else 1e-5)


def test_pivots() -> None:
    """Rows change places where the diagonal is small, in loops and in LAPACK alike."""
    ab, b = T.dmatrix("ab"), T.dmatrix("b")
    for rows, below in ((4, 2), (20, 10)):
        outputs = [la.solve_banded((below, rows - 1 - below), ab, b), la.solve_banded((0, rows - 1), ab, b)]
        compiled, interpreted = (graphc.function([ab, b], outputs, mode=mode) for mode in ("compiled", "interpreted"))
        bands, sides = drawn(rows, 12), drawn(12, 2)
        bands[rows - 1 - below, ::3] = 0
        bands[-1] += 3
        for found, want in zip(compiled(bands, sides), interpreted(bands, sides), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_diagonals_and_equations() -> None:
    c, r, b = T.dmatrix("c"), T.dmatrix("r"), T.dtensor3("b")
    a, d, q = T.dtensor3("a"), T.dtensor3("d"), T.dtensor3("q")
    (s, u), (t, _) = schur(a), schur(d)
    outputs = [toeplitz_solve(c, r, b), s, u]
    outputs += [triangular_sylvester(s, t, q, (first, then)) for first in (False, True) for then in (False, True)]
    inputs = [c, r, b, a, d, q]
    compiled, interpreted, python = (
        graphc.function(inputs, outputs, mode=mode) for mode in ("compiled", "interpreted", "python")
    )
    for m, n in ((0, 2), (1, 1), (4, 3), (20, 18)):
        diagonals = drawn(2, n)
        diagonals[:, 0] = 9 + n
        matrices = drawn(2, m, m) + 8 * np.eye(m), drawn(2, n, n) + 8 * np.eye(n)
        given = diagonals, 0.5 * drawn(3, n)[1:], drawn(2, n, 2), *matrices, drawn(2, m, n)
        wanted = interpreted(*given)
        for found in (compiled(*given), python(*given)):
            for one, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, want, rtol=0, atol=1e-11)


def test_memory_is_linear() -> None:
    """Ten times as many rows take ten times the memory, where a dense matrix would take a hundred."""
    ab, b = T.dmatrix("ab"), T.dvector("b")
    solution = la.solve_banded((1, 1), ab, b)
    f = graphc.function([ab, b], [solution, *graphc.grad(solution.sum(), [ab, b])])

    def peak(count: int) -> int:
        return int(f.memory((3, count), (count,)).total)

    assert 0 < peak(100_000) <= 10.1 * peak(10_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_failures(mode: Any) -> None:
    bands, b, c = T.dmatrix("bands"), T.dvector("b"), T.dvector("c")
    a, q = T.dmatrix("a"), T.dmatrix("q")
    refused: dict[str, Any] = {
        "Singular matrix: banded_solve of bands": la.solve_banded((1, 1), bands, b),
        "Matrix is not positive definite: positive_banded_solve of bands": la.solveh_banded(bands, b, lower=True),
        "Singular principal minor: toeplitz_solve of c": la.solve_toeplitz(c, b),
        "Singular equation.*: triangular_sylvester of a": la.solve_continuous_lyapunov(a, q),
    }
    turning, inputs = np.array([[0.0, 1.0], [-1.0, 0.0]]), [bands, b, c, a, q]
    for words, node in refused.items():
        f = graphc.function(inputs, node, mode=mode, on_unused_input="ignore")
        with pytest.raises(LinAlgError, match=words + r".*\(test_equations.py:\d+\)"):
            f(np.zeros((3, 4)), np.ones(4), np.zeros(4), turning, np.eye(2))
    toeplitz = graphc.function([c, b], la.solve_toeplitz(c, b), mode=mode)
    with pytest.raises(LinAlgError, match="Singular principal minor"):
        toeplitz(np.array([1.0, 1.0, 0.0]), np.ones(3))
    loose = [
        la.solve_banded((1, 1), bands, b, "nan"), la.solveh_banded(bands, b, True, "nan"),
        la.solve_toeplitz(c, b, "nan"),
    ]  # fmt: skip
    for found in graphc.function([bands, b, c], loose, mode=mode)(np.zeros((3, 4)), np.ones(4), np.zeros(4)):
        assert np.isnan(found).all()
