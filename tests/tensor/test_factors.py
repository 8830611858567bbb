"""Factors of matrices that need not be square, orders of columns, parts of spectra, norms of nothing: beside SciPy's
and NumPy's, in every mode, with derivatives to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import graphc
import graphc.tensor as T
from graphc.errors import GraphValueError, RankError

la: Any = T.linalg
X = T.dmatrix("x")
SHAPES = [(3, 3), (5, 3), (3, 5), (1, 4), (4, 1), (40, 20), (20, 40)]
EMPTY = [(0, 3), (3, 0), (0, 0)]
MODES = ("compiled", "interpreted", "python")


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_lu_of_any_shape(mode: str) -> None:
    f = graphc.function([X], [*la.lu(X), *la.lu(X, p_indices=True), *la.lu(X, permute_l=True)], mode=mode)
    for shape in SHAPES:
        a = drawn(*shape)
        wanted = [*sl.lu(a), *sl.lu(a, p_indices=True), *sl.lu(a, permute_l=True)]
        for found, want in zip(f(a), wanted, strict=True):
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    for rows, columns in EMPTY:
        p, left, right, *_ = f(np.zeros((rows, columns)))
        np.testing.assert_array_equal(p, np.eye(rows))
        assert left.shape == (rows, 0) and right.shape == (0, columns)


@pytest.mark.slow
def test_lu_of_singular_and_single_precision_batches() -> None:
    batch = T.ftensor3("batch")
    f = graphc.function([batch], la.lu(batch))
    g = graphc.function([batch], la.lu(batch), mode="interpreted")
    value = drawn(2, 4, 3).astype("float32")
    value[1] = np.outer(np.arange(4.0), [1.0, 2.0, 3.0])
    for found, again, want in zip(f(value), g(value), sl.lu(value), strict=True):
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5)
        np.testing.assert_allclose(again, want, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[:2])
def test_derivatives_of_lu(mode: str) -> None:
    """Of a weighted sum of both triangles, and that of a direction's derivative, against differences."""
    weights, others, way = T.dmatrix("weights"), T.dmatrix("others"), T.dmatrix("way")
    _, left, right = la.lu(X)
    slope = T.grad((weights * left).sum() + (others * right * right).sum(), X)
    along = (slope * way).sum()
    inputs = [X, weights, others, way]
    f = graphc.function(inputs, [left, right, along, T.grad(along, X)], mode=mode)
    for shape in SHAPES[:3]:
        a, step, direction = drawn(*shape), 1e-5, drawn(*shape, 1)[..., 0]
        given = drawn(shape[0], min(shape)), drawn(min(shape), shape[1], 2)[..., 0], direction
        below, above = (f(a + side * step * direction, *given) for side in (-1, 1))
        cost = [(given[0] * one[0]).sum() + (given[1] * one[1] ** 2).sum() for one in (below, above)]
        _, _, first, second = f(a, *given)
        np.testing.assert_allclose(first, (cost[1] - cost[0]) / (2 * step), rtol=1e-6)
        np.testing.assert_allclose((second * direction).sum(), (above[2] - below[2]) / (2 * step), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_qr_with_pivots(mode: str) -> None:
    """The order is SciPy's, in which the diagonal of r falls; a derivative holds it."""
    outputs = [*la.qr(X, pivoting=True), *la.qr(X, "complete", pivoting=True), *la.qr(X, "r", pivoting=True)]
    slope = T.grad((outputs[1] ** 2).sum(), X)
    f = graphc.function([X], [*outputs, slope], mode=mode)
    for shape in SHAPES:
        a = drawn(*shape)
        found = f(a)
        wanted = [*sl.qr(a, mode="economic", pivoting=True), *sl.qr(a, pivoting=True)]
        for got, want in zip(found, wanted, strict=False):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found[6], found[1])
        np.testing.assert_array_equal(found[7], found[2])
        np.testing.assert_allclose(found[8], 2 * a, rtol=0, atol=1e-10)
    q, r, order, *_ = graphc.function([X], outputs, mode=mode)(np.zeros((0, 3)))
    assert q.shape == (0, 0) and r.shape == (0, 3)
    np.testing.assert_array_equal(order, [0, 1, 2])


@pytest.mark.slow
def test_parts_of_a_spectrum() -> None:
    parts: list[dict[str, Any]] = [
        {"subset_by_index": [1, 3]}, {"subset_by_index": [0, 0]}, {"subset_by_value": [-1.0, 2.0]},
        {"subset_by_value": [-np.inf, np.inf]}, {"subset_by_value": [50.0, 60.0]},
    ]  # fmt: skip
    other = drawn(6, 6)
    other = other @ other.T + np.eye(6)
    outputs = [part for how in parts for part in (*la.eigh(X, **how), la.eigvalsh(X, **how))]
    outputs += [*la.eigh(X, b=other, subset_by_index=[2, 4])]
    a = drawn(6, 6) + drawn(6, 6).T
    for mode in MODES[:2]:
        found = graphc.function([X], outputs, mode=mode)(a)
        for place, how in enumerate(parts):
            w, v = sl.eigh(a, **how)
            own, vectors, alone = found[3 * place : 3 * place + 3]
            np.testing.assert_allclose(own, w, rtol=0, atol=1e-12)
            np.testing.assert_allclose(alone, w, rtol=0, atol=1e-12)
            np.testing.assert_allclose(abs(vectors), abs(v), rtol=0, atol=1e-10)
        w, v = sl.eigh(a, other, subset_by_index=[2, 4])
        np.testing.assert_allclose(found[-2], w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(abs(found[-1]), abs(v), rtol=0, atol=1e-10)
    slope = graphc.function([X], T.grad(la.eigvalsh(X, subset_by_index=[5, 5]).sum(), X), mode="interpreted")(a)
    v = sl.eigh(a)[1][:, 5]
    np.testing.assert_allclose(slope, np.tril(2 * np.outer(v, v)) - np.diag(v * v), rtol=0, atol=1e-12)


def test_wrong_parts_of_a_spectrum() -> None:
    fixed = T.as_tensor_variable(np.eye(3))
    with pytest.raises(GraphValueError, match=r"subset_by_index=\[1, 3\] of 3 eigenvalues"):
        la.eigh(fixed, subset_by_index=[1, 3])
    with pytest.raises(GraphValueError, match="not both"):
        la.eigvalsh(X, subset_by_index=[0, 1], subset_by_value=[0.0, 1.0])
    with pytest.raises(RankError, match="one matrix"):
        la.eigvalsh(T.dtensor3(), subset_by_value=[0.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[:2])
def test_norms_of_empty_matrices(mode: str) -> None:
    """0 where there is nothing to be the greatest, as in NumPy; a least of nothing is refused."""
    greatest: list[Any] = [None, "fro", "nuc", 1, 2, np.inf]
    f = graphc.function([X], [la.norm(X, ord) for ord in greatest], mode=mode)
    for shape in EMPTY:
        assert f(np.zeros(shape)) == [0.0] * len(greatest)
    for ord in (-1, -2, -np.inf):
        g = graphc.function([X], la.norm(X, ord), mode=mode)
        with pytest.raises(ValueError, match="zero-size"):
            g(np.zeros((0, 0)))
    a = drawn(3, 4)
    wanted: list[Any] = [np.linalg.norm(a, ord) for ord in greatest]
    np.testing.assert_allclose(f(a), wanted)
    slope = graphc.function([X], T.grad(la.norm(X, 1), X), mode=mode)(np.zeros((2, 2)))
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_the_sign_of_a_determinant_with_nan() -> None:
    """NaN in all modes, though NumPy has a sign by what it exchanged before; that of infinity is one."""
    outputs = [la.det(X), *la.slogdet(X)]
    nan, inf = np.nan, np.inf
    for value in ([[nan]], [[1.0, nan], [2.0, 3.0]], [[nan, 1.0], [2.0, inf]], [[inf]], [[-inf, 1.0], [2.0, 3.0]]):
        found = [graphc.function([X], outputs, mode=mode)(np.array(value)) for mode in MODES]
        for one in found:
            np.testing.assert_array_equal(one, found[1])
            assert np.isnan(one[1]) == np.isnan(one[0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_products_with_toeplitz_matrices(mode: str) -> None:
    """Of both kinds of right sides, with derivatives by all; no matrix is made of the diagonals."""
    c, r, x, columns = T.dvector("c"), T.dvector("r"), T.dvector("x"), T.dmatrix("columns")
    product = la.matmul_toeplitz((c, r), columns)
    slopes = T.grad((product**2).sum(), [c, r, columns])
    outputs = [la.matmul_toeplitz(c, c), la.matmul_toeplitz((c, r), x), product, *slopes]
    f = graphc.function([c, r, x, columns], outputs, mode=mode)
    for m, n, k in [(4, 4, 2), (5, 3, 1), (3, 6, 2), (1, 1, 1), (2, 3, 0)]:
        down, along, vector, matrix = drawn(m), drawn(n), drawn(n, 1)[:, 0], drawn(n, k)
        whole = sl.toeplitz(down, along)
        found = f(down, along, vector, matrix)
        image = 2 * whole @ matrix @ matrix.T
        by_diagonal = {place: np.trace(image, -place) for place in range(1 - n, m)}
        wanted = [
            sl.toeplitz(down) @ down, whole @ vector, whole @ matrix, [by_diagonal[place] for place in range(m)],
            [0.0, *(by_diagonal[-place] for place in range(1, n))], 2 * whole.T @ whole @ matrix,
        ]  # fmt: skip
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
    assert la.matmul_toeplitz([1, 2], [3, 4]).dtype == "int64"
    with pytest.raises(RankError, match="no vector or matrix"):
        la.matmul_toeplitz(c, T.dtensor3())
