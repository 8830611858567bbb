"""Linear algebra: values beside NumPy's and SciPy's, derivatives to second order, errors, Theano's names.

Each table's results are those of one function: interpreted, and compiled after all rewriting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import graphc
import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, ShapeError
from graphc.functions.function import function
from graphc.ir.node import Array, Node
from graphc.ops.linalg import factor
from graphc.ops.linalg.routine import LinAlgError
from graphc.rewrite.matrices import is_symmetric

la: Any = T.linalg
RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
WELL = A + 5 * np.eye(4)
POS = A @ A.T + np.eye(4)
TALL = RNG.normal(size=(5, 3))
COLUMNS = RNG.normal(size=(4, 2))
VECTOR = RNG.normal(size=4)
BATCH = RNG.normal(size=(3, 4, 4))
BATCH_COLUMNS = RNG.normal(size=(3, 4, 2))
SCALES = np.array([[[0.1]], [[1.0]], [[7.0]]])

a, well, pos, tall, columns, vector, batch, batch_columns = INPUTS = (
    T.dmatrix("a"), T.dmatrix("well"), T.dmatrix("pos"), T.dmatrix("tall"), T.dmatrix("columns"), T.dvector("vector"),
    T.dtensor3("batch"), T.dtensor3("batch_columns"),
)  # fmt: skip
VALUES = (A, WELL, POS, TALL, COLUMNS, VECTOR, BATCH, BATCH_COLUMNS)
N, S = np.linalg, sl


def projector(vectors: Any) -> Any:
    return vectors @ vectors.T


def multiplied(u: Any, s: Any, vh: Any) -> Any:
    return (u * s) @ vh


Table = Mapping[str, tuple[Any, Any]]
SYSTEMS: Table = {
    "inv": (la.inv(a), N.inv(A)),
    "inv of a batch": (la.inv(batch), N.inv(BATCH)),
    "solve": (la.solve(a, columns), N.solve(A, COLUMNS)),
    "solve a vector": (la.solve(a, vector), N.solve(A, VECTOR)),
    "solve a batch": (la.solve(batch, batch_columns), N.solve(BATCH, BATCH_COLUMNS)),
    "solve broadcasts": (la.solve(a, batch_columns), N.solve(A, BATCH_COLUMNS)),
    "solve a batch and a vector": (
        la.solve(batch, vector), N.solve(BATCH, np.tile(VECTOR[:, None], (3, 1, 1)))[..., 0]
    ),
    "solve transposed": (la.solve(a, columns, transposed=True), N.solve(A.T, COLUMNS)),
    "solve positive": (la.solve(pos, columns, assume_a="pos"), N.solve(POS, COLUMNS)),
    "solve symmetric": (la.solve(a, vector, assume_a="sym"), S.solve(np.triu(A), VECTOR, assume_a="sym")),
    "solve diagonal": (la.solve(a, columns, assume_a="diagonal"), COLUMNS / np.diag(A)[:, None]),
    "solve_triangular": (la.solve_triangular(a, columns), S.solve_triangular(A, COLUMNS)),
    "solve_triangular unit": (
        la.solve_triangular(a, vector, 1, True, True), S.solve_triangular(A, VECTOR, 1, True, True)
    ),
    "cho_solve": (la.cho_solve(la.cho_factor(pos), vector), S.cho_solve(S.cho_factor(POS), VECTOR)),
    "cho_solve lower": (la.cho_solve(la.cho_factor(pos, True), columns), N.solve(POS, COLUMNS)),
    "lu_solve": (la.lu_solve(la.lu_factor(a), columns, 1), N.solve(A.T, COLUMNS)),
    "solve_banded": (la.solve_banded((1, 1), tall.T[:, :4], columns), S.solve_banded((1, 1), TALL.T[:, :4], COLUMNS)),
    "solveh_banded": (
        la.solveh_banded(T.as_tensor([[0.0, 1, 1, 1], [4, 5, 6, 7]]), vector),
        S.solveh_banded([[0.0, 1, 1, 1], [4, 5, 6, 7]], VECTOR),
    ),
    "solve_banded of a batch": (
        la.solve_banded((2, 1), batch, vector), np.stack([S.solve_banded((2, 1), each, VECTOR) for each in BATCH])
    ),
    "solveh_banded lower": (
        la.solveh_banded(T.as_tensor([[4.0, 5, 6, 7], [1, 1, 1, 0]]), columns, lower=True),
        S.solveh_banded([[4.0, 5, 6, 7], [1, 1, 1, 0]], COLUMNS, lower=True),
    ),
    "solve_toeplitz": (la.solve_toeplitz(vector, columns), S.solve_toeplitz(VECTOR, COLUMNS)),
    "solve_toeplitz of a row": (
        la.solve_toeplitz((vector, columns[:, 0]), vector), S.solve_toeplitz((VECTOR, COLUMNS[:, 0]), VECTOR)
    ),
    "solve_circulant": (la.solve_circulant(vector, columns), S.solve_circulant(VECTOR, COLUMNS)),
    "solve_sylvester": (la.solve_sylvester(well, pos, a), S.solve_sylvester(WELL, POS, A)),
    "lyapunov": (la.solve_continuous_lyapunov(well, a), S.solve_continuous_lyapunov(WELL, A)),
    "sylvester of a batch": (
        la.solve_sylvester(batch, pos, a), np.stack([S.solve_sylvester(each, POS, A) for each in BATCH])
    ),
    "discrete lyapunov": (la.solve_discrete_lyapunov(a, pos), S.solve_discrete_lyapunov(A, POS)),
    "lstsq": (la.lstsq(tall, tall[:, 0] ** 2)[0], N.lstsq(TALL, TALL[:, 0] ** 2, None)[0]),
    "lstsq residuals": (la.lstsq(tall, tall**2)[1], N.lstsq(TALL, TALL**2, None)[1]),
    "lstsq wide": (la.lstsq(tall.T, tall[:3, 0])[0], N.lstsq(TALL.T, TALL[:3, 0], None)[0]),
    **{
        f"lstsq of rcond {rcond}": (
            la.lstsq(T.constant(np.diag([1.0, 1e-3, 1e-20])), np.ones(3), rcond)[0],
            N.lstsq(np.diag([1.0, 1e-3, 1e-20]), np.ones(3), rcond)[0],
        )
        for rcond in (-5, 0, 1e-30, 0.01, 1, 2)
    },
    "lstsq rank": (la.lstsq(tall, tall)[2], N.lstsq(TALL, TALL, None)[2]),
    "tensorinv": (la.tensorinv(a.reshape((2, 2, 4))), N.tensorinv(A.reshape(2, 2, 4))),
    "tensorsolve": (
        la.tensorsolve(a.reshape((2, 2, 4)), pos[:2, :2]), N.tensorsolve(A.reshape(2, 2, 4), POS[:2, :2])
    ),
    "tensorsolve axes": (
        la.tensorsolve(a.reshape((2, 4, 2)), vector, axes=(0,)), N.tensorsolve(A.reshape(2, 4, 2), VECTOR, axes=(0,))
    ),
}  # fmt: skip
FACTORS: Table = {
    "cholesky": (la.cholesky(pos), N.cholesky(POS)),
    "cholesky upper": (la.cholesky(pos, upper=True), S.cholesky(POS)),
    **{f"lu {k}": (la.lu(a)[k], S.lu(A)[k]) for k in range(3)},
    "lu of a batch": (la.lu(batch)[2], S.lu(BATCH)[2]),
    "lu permuted": (la.lu(a, permute_l=True)[0], S.lu(A, permute_l=True)[0]),
    "lu indices": (la.lu(a, p_indices=True)[0], S.lu(A, p_indices=True)[0]),
    **{f"qr {k}": (la.qr(tall)[k], N.qr(TALL)[k]) for k in range(2)},
    "qr complete": (la.qr(tall, "complete")[0], N.qr(TALL, "complete")[0]),
    "qr r": (la.qr(tall.T, "r"), N.qr(TALL.T, "r")),
    **{f"svd {k}": (la.svd(tall)[k], N.svd(TALL)[k]) for k in range(3)},
    **{f"svd reduced {k}": (la.svd(batch, False)[k], N.svd(BATCH, False)[k]) for k in range(3)},
    "svd hermitian": (multiplied(*la.svd(a + a.T, hermitian=True)), A + A.T),
    "svd hermitian values": (la.svd(a + a.T, hermitian=True)[1], N.svd(A + A.T)[1]),
    "svdvals": (la.svdvals(batch), N.svdvals(BATCH) if hasattr(N, "svdvals") else N.svd(BATCH, compute_uv=False)),
    **{f"eigh {k}": (la.eigh(a)[k], N.eigh(A)[k]) for k in range(2)},
    "eigh upper": (la.eigh(batch, "U")[0], N.eigh(BATCH, "U")[0]),
    "eigh of two": (la.eigh(a + a.T, b=pos)[0], S.eigh(A + A.T, POS, eigvals_only=True)),
    "eigh vectors of two": (abs(la.eigh(a + a.T, b=pos)[1]), abs(S.eigh(A + A.T, POS)[1])),
    "eigvalsh": (la.eigvalsh(a), N.eigvalsh(A)),
    **{f"eig {k}": (la.eig(pos)[k], N.eig(POS)[k]) for k in range(2)},
    "eigvals": (la.eigvals(pos), N.eigvals(POS)),
    **{
        f"eig_parts {k}": (la.eig_parts(batch)[k], getattr(N.eig(BATCH)[k // 2], ("real", "imag")[k % 2]))
        for k in range(4)
    },
    "eigvals_parts": (la.eigvals_parts(a)[1], N.eigvals(A).imag),
    "det": (la.det(batch), N.det(BATCH)),
    "sign": (la.slogdet(batch)[0], N.slogdet(BATCH)[0]),
    "logabsdet": (la.slogdet(batch)[1], N.slogdet(BATCH)[1]),
    "pinv": (la.pinv(tall), N.pinv(TALL)),
    "pinv of a batch": (la.pinv(batch), N.pinv(BATCH)),
    "pinvh": (la.pinvh(pos), S.pinvh(POS)),
    "polar": (la.polar(tall)[0], S.polar(TALL)[0]),
    "polar p": (la.polar(a, "left")[1], S.polar(A, "left")[1]),
    "null_space": (projector(la.null_space(tall.T)), projector(S.null_space(TALL.T))),
    "orth": (projector(la.orth(tall)), projector(S.orth(TALL))),
    "rank": (la.matrix_rank(batch), N.matrix_rank(BATCH)),
    "rank of few": (la.matrix_rank(tall @ tall.T), 3),
    "rank tol": (la.matrix_rank(a, tol=1.0), N.matrix_rank(A, tol=1.0)),
}  # fmt: skip
ORDERS: tuple[Any, ...] = (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2)
FUNCTIONS: Table = {
    "matrix_power": (la.matrix_power(a, -3), N.matrix_power(A, -3)),
    "matrix_power of a batch": (la.matrix_power(batch, 5), N.matrix_power(BATCH, 5)),
    "matrix_power 0": (la.matrix_power(batch, 0), N.matrix_power(BATCH, 0)),
    "expm": (la.expm(10.0 * a), S.expm(10.0 * A)),
    "expm of a batch": (la.expm(batch * SCALES), S.expm(BATCH * SCALES)),
    "sinhm": (la.sinhm(a), S.sinhm(A)),
    "tanhm": (la.tanhm(a), S.tanhm(A)),
    "multi_dot": (la.multi_dot([vector, a, columns]), N.multi_dot([VECTOR, A, COLUMNS])),
    **{f"norm {k}": (la.norm(a, k), N.norm(A, k)) for k in ORDERS},
    **{f"norm {k} of a batch": (la.norm(batch, k, (0, 2)), N.norm(BATCH, k, (0, 2))) for k in ("nuc", -2, -1)},
    **{f"norm {k} of vectors": (la.norm(a, k, 0, True), N.norm(A, k, 0, True)) for k in (None, 0, 1, 3, -2, np.inf)},
    "norm of all": (la.norm(batch), N.norm(BATCH)),
    "norm kept": (la.norm(batch, 1, (2, 0), True), N.norm(BATCH, 1, (2, 0), True)),
    **{f"cond {p}": (la.cond(batch, p), N.cond(BATCH, p)) for p in (None, 1, -2, "fro")},
    "cond singular": (la.cond(a * 0.0, 1), np.inf),
    "block_diag": (la.block_diag(a, tall, vector), S.block_diag(A, TALL, VECTOR)),
    "toeplitz": (la.toeplitz(vector, columns[:, 0]), S.toeplitz(VECTOR, COLUMNS[:, 0])),
    "hankel": (la.hankel(vector, columns[:, 0]), S.hankel(VECTOR, COLUMNS[:, 0])),
    "circulant": (la.circulant(vector), S.circulant(VECTOR)),
    "companion": (la.companion(vector), S.companion(VECTOR)),
    "matmul_toeplitz": (la.matmul_toeplitz(vector, columns), S.matmul_toeplitz(VECTOR, COLUMNS)),
    "trace": (la.trace(batch, offset=1), np.trace(BATCH, 1, 1, 2)),
    "diagonal": (la.diagonal(batch, offset=-1), np.diagonal(BATCH, -1, 1, 2)),
}  # fmt: skip
ITERATED: Table = {
    "sqrtm": (la.sqrtm(well), S.sqrtm(WELL)),
    "sqrtm symmetric": (la.sqrtm(pos), S.sqrtm(POS)),
    "sqrtm of a batch": (la.sqrtm(batch * 0.2 + T.eye(4)), np.stack([S.sqrtm(x) for x in BATCH * 0.2 + np.eye(4)])),
    "sqrtm singular": (la.matrix_power(la.sqrtm(tall @ tall.T), 2), TALL @ TALL.T),
    "sqrtm of none": (la.sqrtm(-pos), np.full((4, 4), np.nan)),
    "logm": (la.logm(well), S.logm(WELL)),
    "logm symmetric": (la.logm(pos), S.logm(POS)),
}  # fmt: skip
DISPATCHED: Table = {
    "np.linalg.solve": (np.linalg.solve(a, columns), N.solve(A, COLUMNS)),
    "np.linalg.norm": (np.linalg.norm(a, 2), N.norm(A, 2)),
    "np.linalg.svd": (np.linalg.svd(tall, compute_uv=False), N.svd(TALL, compute_uv=False)),
    "np.linalg.eigh": (np.linalg.eigh(a, UPLO="U")[0], N.eigh(A, UPLO="U")[0]),
    "np.linalg.pinv": (np.linalg.pinv(tall), N.pinv(TALL)),
    "np.linalg.cond": (np.linalg.cond(a), N.cond(A)),
    "np.linalg.matrix_rank": (np.linalg.matrix_rank(a), 4),
    "np.linalg.multi_dot": (np.linalg.multi_dot([a, a, columns]), A @ A @ COLUMNS),
    "np.linalg.det": (np.linalg.det(batch), N.det(BATCH)),
    "np.linalg.trace": (np.linalg.slogdet(a)[1], N.slogdet(A)[1]),
}
THEANO: Table = {
    "matrix_inverse": (T.nlinalg.matrix_inverse(a), N.inv(A)),
    "MatrixInverse": (T.nlinalg.MatrixInverse()(a), N.inv(A)),
    "pinv": (T.nlinalg.pinv(tall), N.pinv(TALL)),
    "matrix_dot": (T.nlinalg.matrix_dot(a, pos, vector), A @ POS @ VECTOR),
    "diag": (T.nlinalg.diag(vector), np.diag(VECTOR)),
    "extract_diag": (T.nlinalg.extract_diag(a), np.diag(A)),
    "alloc_diag": (T.nlinalg.alloc_diag(vector), np.diag(VECTOR)),
    "trace": (T.nlinalg.trace(a), np.trace(A)),
    "det": (T.nlinalg.det(a), N.det(A)),
    "eig": (T.nlinalg.eig(pos)[0], N.eig(POS)[0]),
    "eigh": (T.nlinalg.eigh(a, "U")[0], N.eigh(A, "U")[0]),
    "qr": (T.nlinalg.qr(tall)[1], N.qr(TALL)[1]),
    "qr r": (T.nlinalg.qr(tall, "r"), N.qr(TALL, "r")),
    "svd": (T.nlinalg.svd(tall)[1], N.svd(TALL)[1]),
    "svd values": (T.nlinalg.svd(tall, 0, 0), N.svd(TALL)[1]),
    "lstsq": (T.nlinalg.lstsq()(tall, tall[:, 0], -1)[0], [1, 0, 0]),
    "matrix_power": (T.nlinalg.matrix_power(a, 3), A @ A @ A),
    "norm": (T.nlinalg.norm(a, "fro"), N.norm(A)),
    "norm inf": (T.nlinalg.norm(vector, "inf"), N.norm(VECTOR, np.inf)),
    "tensorinv": (T.nlinalg.tensorinv(a.reshape((2, 2, 4))), N.tensorinv(A.reshape(2, 2, 4))),
    "cholesky": (T.slinalg.cholesky(pos), N.cholesky(POS)),
    "Cholesky": (T.slinalg.Cholesky(lower=False)(pos), S.cholesky(POS)),
    "solve": (T.slinalg.solve(a, columns), N.solve(A, COLUMNS)),
    "Solve": (T.slinalg.Solve("lower_triangular")(a, vector), S.solve_triangular(A, VECTOR, lower=True)),
    "solve_upper": (T.slinalg.solve_upper_triangular(a, vector), S.solve_triangular(A, VECTOR)),
    "solve_symmetric": (T.slinalg.solve_symmetric(pos, vector), N.solve(POS, VECTOR)),
    "eigvalsh": (T.slinalg.eigvalsh(a + a.T, pos), S.eigvalsh(A + A.T, POS)),
    "eigvalsh of one": (T.slinalg.eigvalsh(a + a.T, None), S.eigvalsh(A + A.T)),
    "kron": (T.slinalg.kron(a, tall), np.kron(A, TALL)),
    "expm": (T.slinalg.expm(a), S.expm(A)),
}
TABLES = {
    "systems": SYSTEMS, "factors": FACTORS, "functions": FUNCTIONS, "iterated": ITERATED, "dispatched": DISPATCHED,
    "theano": THEANO,
}  # fmt: skip


INTERPRETED = {"logm symmetric", "sqrtm of none", "sqrtm symmetric", "sqrtm singular", "tanhm", "expm"}
"""Rows whose loops other rows compile as well."""


def differing(table: Table, found: Any) -> list[str]:
    """The rows whose value is not as expected."""
    wrong = []
    for (name, (node, expected)), value in zip(table.items(), found, strict=True):
        wanted = np.asarray(expected)
        same = np.shape(value) == wanted.shape and np.allclose(value, wanted, 1e-8, 1e-9, equal_nan=True)
        if not same or node.dtype not in (wanted.dtype.name, "int64", "float64"):
            wrong.append(name)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("name", TABLES)
def test_values_are_numpys(name: str, mode: Any) -> None:
    table = TABLES[name]
    if mode == "compiled":
        if name in ("dispatched", "theano"):
            return  # they make the same nodes
        table = {row: table[row] for row in table if row not in INTERPRETED}
    f = function(list(INPUTS), [node for node, _ in table.values()], mode=mode, on_unused_input="ignore")
    assert differing(table, f(*VALUES)) == []


EMPTY: Mapping[str, Callable[[Node], Any]] = {
    "inv": la.inv, "det": la.det, "slogdet": lambda x: la.slogdet(x)[1], "cholesky": la.cholesky,
    "solve": lambda x: la.solve(x, x), "qr": lambda x: la.qr(x)[1], "svdvals": la.svdvals, "eigvalsh": la.eigvalsh,
    "pinv": la.pinv, "matrix_power": lambda x: la.matrix_power(x, 3), "matrix_power 0": lambda x: la.matrix_power(x, 0),
    "nuc": lambda x: la.norm(x, "nuc", (-2, -1)), "fro": lambda x: la.norm(x, "fro", (-2, -1)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (0, 3, 3), (2, 1, 1)])
def test_empty_and_single(shape: tuple[int, ...]) -> None:
    value = np.full(shape, 4.0) + (3 * np.eye(3) if shape[-1] == 3 else 0)
    x = T.tensor("float64", (None,) * len(shape))
    of_numpy: dict[str, Callable[[Array], Any]] = {
        "inv": N.inv, "det": N.det, "slogdet": lambda x: N.slogdet(x)[1], "cholesky": N.cholesky,
        "solve": lambda x: N.solve(x, x), "qr": lambda x: N.qr(x)[1], "svdvals": lambda x: N.svd(x, compute_uv=False),
        "eigvalsh": N.eigvalsh, "pinv": N.pinv, "matrix_power": lambda x: N.matrix_power(x, 3),
        "matrix_power 0": lambda x: N.matrix_power(x, 0), "nuc": lambda x: N.norm(x, "nuc", (-2, -1)),
        "fro": lambda x: N.norm(x, "fro", (-2, -1)),
    }  # fmt: skip
    names = [name for name in EMPTY if not (name == "nuc" and 0 in shape)]
    for mode in ("interpreted", "compiled") if shape in ((0, 0), (2, 1, 1)) else ("interpreted",):
        found = function([x], [EMPTY[name](x) for name in names], mode=mode)(value)
        for name, one in zip(names, found, strict=True):
            np.testing.assert_allclose(one, of_numpy[name](value), rtol=1e-12, err_msg=f"{name} {mode}")


@pytest.mark.slow
def test_dtypes_are_numpys() -> None:
    whole, single = T.lmatrix(), T.fmatrix()
    pairs: list[Any] = [(la.inv, N.inv), (la.det, N.det), (la.cholesky, N.cholesky), (la.eigvalsh, N.eigvalsh)]
    for build, numpy in pairs:
        for x, dtype in ((whole, "int64"), (single, "float32")):
            assert build(x).dtype == numpy(np.eye(2, dtype=dtype)).dtype.name
    value = np.array([[4, 1], [1, 3]], "float32")
    outputs = [la.inv(single), la.expm(single), la.sqrtm(single), la.svd(single)[0], la.solve(single, single.T)]
    found = function([single], outputs)(value)
    wanted = [N.inv(value), S.expm(value), S.sqrtm(value), N.svd(value)[0], N.solve(value, value.T)]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=3e-6, atol=3e-6)


# --- derivatives ------------------------------------------------------------------------------------------------------


def weighed(*nodes: Node) -> Node:
    """A number that every element of some results moves."""
    total: Any = 0.0
    for place, node in enumerate(nodes):
        total = total + (node.flatten() * T.cos(T.arange(node.size) * 1.3 + place)).sum()
    return total


SINGULAR = A - np.outer(A[:, 0], np.eye(4)[0])
DERIVATIVES: Mapping[str, tuple[Callable[[Any], Node], Array]] = {
    "inv": (lambda x: weighed(la.inv(x)), WELL),
    "inv of a batch": (lambda x: weighed(la.inv(x)), BATCH * 0.3 + np.eye(4)),
    "solve": (lambda x: weighed(la.solve(x, x[:, :2] ** 2)), WELL),
    "solve transposed": (lambda x: weighed(la.solve(x, x[:, 0], transposed=True)), WELL),
    "solve positive": (lambda x: weighed(la.solve(x, x[:, :2], assume_a="pos")), POS),
    "solve positive lower": (lambda x: weighed(la.solve(x, x[:, :2], True, assume_a="pos")), POS),
    "solve diagonal": (lambda x: weighed(la.solve(x, x[:, :2], assume_a="diagonal")), WELL),
    "det": (lambda x: weighed(la.det(x) ** 2), BATCH),
    "det of a singular matrix": (la.det, SINGULAR),
    "det of rank 2": (la.det, np.diag([1.0, 2, 0, 0])),
    "det of the identity": (la.det, np.eye(4)),
    "slogdet": (lambda x: la.slogdet(x)[1] * la.slogdet(x)[0], A),
    "cholesky": (lambda x: weighed(la.cholesky(x)), POS),
    "cholesky upper": (lambda x: weighed(la.cholesky(x, upper=True)), POS),
    "cho_solve": (lambda x: weighed(la.cho_solve((la.cholesky(x), True), x[:, :2])), POS),
    "lu": (lambda x: weighed(*la.lu(x)[1:]), A),
    "lu_solve": (lambda x: weighed(la.lu_solve(la.lu_factor(x), x[:, :1], 1)), WELL),
    "qr": (lambda x: weighed(*la.qr(x)), TALL),
    "qr of a wide one": (lambda x: weighed(*la.qr(x.T)), TALL),
    "qr of a square": (lambda x: weighed(*la.qr(x)), WELL),
    "qr r": (lambda x: weighed(la.qr(x, "r")), TALL),
    "qr complete": (lambda x: weighed(projector(la.qr(x, "complete")[0][:, 3:])), TALL),
    "svd": (lambda x: weighed(*la.svd(x, False)), TALL),
    "svd of a wide one": (lambda x: weighed(*la.svd(x.T, False)), TALL),
    "svd of a square": (lambda x: weighed(*la.svd(x)), WELL),
    "svd of a batch": (lambda x: weighed(*la.svd(x, False)), BATCH[:2, :2, :3]),
    "svd beyond": (lambda x: weighed(projector(la.svd(x)[0][:, 3:])), TALL),
    "svdvals": (lambda x: weighed(la.svdvals(x)), TALL),
    "eigh": (lambda x: weighed(*la.eigh(x)), A),
    "eigh upper": (lambda x: weighed(*la.eigh(x, "U")), A),
    "eigh vectors": (lambda x: weighed(la.eigh(x)[1]), A),
    "eigvalsh": (lambda x: weighed(la.eigvalsh(x)), A),
    "eigh of two": (lambda x: weighed(*la.eigh(x, b=x @ x.T + T.eye(4))), A),
    "eig": (lambda x: weighed(*la.eig_parts(x)), POS + 0.1 * A),
    "eig of complex ones": (lambda x: weighed(la.eig_parts(x)[2] ** 2 + la.eig_parts(x)[3] ** 2), A),
    "eigvals": (lambda x: weighed(*la.eigvals_parts(x)), A),
    "pinv": (lambda x: weighed(la.pinv(x)), TALL),
    "pinv of a wide one": (lambda x: weighed(la.pinv(x.T)), TALL),
    "lstsq": (lambda x: weighed(la.lstsq(x, T.cos(T.arange(5)))[0]), TALL),
    "lstsq of a wide one": (lambda x: weighed(la.lstsq(x.T, x[:3, 0] ** 2)[0]), TALL),
    "matrix_power": (lambda x: weighed(la.matrix_power(x, -3)), WELL),
    "expm": (lambda x: weighed(la.expm(x * 3.0)), A),
    "expm of a batch": (lambda x: weighed(la.expm(x)), BATCH),
    "sqrtm": (lambda x: weighed(la.sqrtm(x)), WELL),
    "sqrtm of the identity": (lambda x: weighed(la.sqrtm(x)), np.eye(3)),
    "logm": (lambda x: weighed(la.logm(x)), WELL),
    "logm of the identity": (lambda x: weighed(la.logm(x)), np.eye(3)),
    "nuclear norm": (lambda x: la.norm(x, "nuc"), TALL),
    "spectral norm": (lambda x: la.norm(x, 2), TALL),
    "cond": (la.cond, A),
    "polar": (lambda x: weighed(*la.polar(x)), TALL),
    "solve_banded": (lambda x: weighed(la.solve_banded((1, 2), x, x[:, :2])), A + 9 * (np.arange(4) == 2)[:, None]),
    "solveh_banded": (lambda x: weighed(la.solveh_banded(x[:3] ** 2, x[:, 0])), A + 5 * (np.arange(4) == 2)[:, None]),
    "solve_toeplitz": (lambda x: weighed(la.solve_toeplitz((x[0], x[1]), x[2])), A + 9 * np.eye(4)[0]),
    "sylvester": (lambda x: weighed(la.solve_sylvester(x, x.T, x)), WELL),
    "continuous lyapunov": (lambda x: weighed(la.solve_continuous_lyapunov(x, x.T)), WELL),
    "discrete lyapunov": (lambda x: weighed(la.solve_discrete_lyapunov(x, x.T)), 0.3 * A),
    "patterns": (lambda x: weighed(la.toeplitz(x[0], x[1]), la.hankel(x[0], x[1]), la.circulant(x[2])) ** 2, A),
}  # fmt: skip


STEP = 1e-4


def differences(f: Callable[[Array], Any], x: Array, direction: Array) -> Any:
    """The derivative in a direction, by a quotient of five points."""
    near, far = (f(x + k * direction) - f(x - k * direction) for k in (STEP, 2 * STEP))
    return (8 * near - far) / (12 * STEP)


def second_order(build: Callable[[Any], Node], value: Array, mode: Any = "interpreted") -> tuple[Any, Any, Any, Any]:
    """The derivatives of first and second order in two directions, each with its difference quotient."""
    rng = np.random.default_rng(7)
    one, other = (np.asarray(rng.normal(size=value.shape)) for _ in range(2))
    x = T.tensor("float64", (None,) * value.ndim, name="x")
    cost = build(x)
    first = (grad(cost, x) * one).sum()
    second = (grad(first, x, disconnected_inputs="ignore") * other).sum()
    f = function([x], [cost, first, second], mode=mode)
    _, slope, bend = f(value)
    return slope, differences(lambda y: f(y)[0], value, one), bend, differences(lambda y: f(y)[1], value, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_those_of_differences(name: str) -> None:
    build, value = DERIVATIVES[name]
    slope, expected, bend, expected_bend = second_order(build, value)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(bend, expected_bend, rtol=1e-5, atol=1e-6)


COMPILED = ("inv", "solve", "det", "cholesky", "qr", "svd", "eigh", "eig", "pinv", "lstsq", "expm")


@pytest.mark.slow
def test_compiled_derivatives_are_the_interpreted_ones() -> None:
    x, tall_one = T.dmatrix("x"), T.dmatrix("tall")
    outputs = []
    for name in COMPILED:
        build, value = DERIVATIVES[name]
        of = tall_one if value.shape == TALL.shape else x
        of = of[None] * 1.0 if value.ndim == 3 else of
        outputs.append(grad(build(of), tall_one if value.shape == TALL.shape else x))
    found, wanted = (function([x, tall_one], outputs, mode=mode)(POS, TALL) for mode in ("compiled", "interpreted"))
    for name, one, other in zip(COMPILED, found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9, err_msg=name)


def slope_of(build: Callable[[Any], Node], value: Array) -> Array:
    x = T.dmatrix("x")
    return np.asarray(function([x], grad(build(x), x), mode="interpreted")(value))


def test_equal_eigenvalues() -> None:
    """Functions of the values have derivatives there; vectors have none, and that of what is made of them is NaN."""
    one = np.eye(3)
    np.testing.assert_allclose(slope_of(lambda x: T.log(la.eigvalsh(x)).sum(), one), one)
    np.testing.assert_allclose(slope_of(lambda x: la.eigh(x)[0].prod(), one), one, atol=1e-15)
    np.testing.assert_allclose(slope_of(lambda x: la.norm(x, "nuc"), 2 * one), one, atol=1e-15)
    assert np.isnan(slope_of(lambda x: weighed(la.eigh(x)[1]), one)).any()
    assert np.isnan(slope_of(lambda x: weighed(la.svd(x)[0]), one)).any()
    spectral = slope_of(lambda x: weighed(la.funm_hermitian(x, T.sqrt)), one)
    assert np.isnan(spectral).any()
    weights = np.cos(np.arange(9) * 1.3).reshape(3, 3)
    np.testing.assert_allclose(slope_of(lambda x: weighed(la.sqrtm(x)), one), weights / 2, atol=1e-12)
    np.testing.assert_allclose(
        slope_of(lambda x: weighed(la.polar(x)[0]), 2 * one), (weights - weights.T) / 4, atol=1e-12
    )


def test_what_depends_on_a_choice_of_vectors_has_no_derivative() -> None:
    assert np.isnan(slope_of(lambda x: weighed(la.svd(x)[0][:, 3:]), TALL)).any()
    assert np.isnan(slope_of(lambda x: weighed(la.qr(x, "complete")[0][:, 3:]), TALL)).any()
    assert np.isnan(slope_of(lambda x: weighed(*la.eig_parts(x)), A)).any()  # the phase of complex vectors


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_matrices_without_a_result(mode: Any) -> None:
    k = T.dmatrix("kernel")
    refused: Mapping[str, Node] = {
        "cholesky": la.cholesky(k), "solve": la.solve(k, vector), "inv": la.inv(k),
        "solve positive": la.solve(k, vector, assume_a="pos"), "matrix_power": la.matrix_power(k, -1),
        "solve diagonal": la.solve(T.diag(T.diag(k)), vector),
    }  # fmt: skip
    for name, node in refused.items():
        if mode == "compiled" and name not in ("cholesky", "solve", "solve diagonal"):
            continue
        f = function([k, vector], node, mode=mode, on_unused_input="ignore")
        with pytest.raises(np.linalg.LinAlgError) as caught:
            f(np.zeros((4, 4)), VECTOR)
        assert isinstance(caught.value, LinAlgError)
        assert "kernel" in str(caught.value) or name == "solve diagonal", caught.value
        assert "test_linalg.py" in str(caught.value)
    many = T.dtensor3("many")
    filled = {
        "cholesky": la.cholesky(many, on_error="nan"), "inv": la.inv(many, "nan"),
        "solve": la.solve(many, T.ones((2, 2)), on_error="nan"),
    }  # fmt: skip
    found = function([many], list(filled.values()), mode=mode)(np.stack([np.eye(2), np.zeros((2, 2))]))
    for name, value in zip(filled, found, strict=True):
        assert np.isfinite(value[0]).all(), name
        assert np.isnan(value[1]).all(), name


def test_complex_eigenvalues_are_told_of() -> None:
    for build in (lambda x: la.eig(x)[0], la.eigvals, lambda x: T.nlinalg.eig(x)[1]):
        x = T.dmatrix("turn")
        f = function([x], build(x), mode="interpreted")
        with pytest.raises(GraphcError, match=r"eig.* of turn.*complex eigenvalues, whose parts"):
            f(np.array([[0.0, -1.0], [1.0, 0.0]]))


WRONG: Mapping[str, Callable[[], Any]] = {
    "solve: vector .* is no matrix": lambda: la.solve(vector, vector),
    "cholesky of .*sizes 2 and 3 differ": lambda: la.cholesky(T.as_tensor(np.ones((2, 3)))),
    "inverse of .*not square": lambda: la.inv(np.ones((2, 3))),
    "assume_a='odd' must be one of": lambda: la.solve(a, vector, assume_a="odd"),
    "on_error='no'": lambda: la.inv(a, on_error="no"),
    "UPLO='X' must be": lambda: la.eigh(a, "X"),
    "mode='odd' must be": lambda: la.qr(a, "odd"),
    "the exponent 0.5 is not an integer": lambda: la.matrix_power(a, 0.5),
    "which axes": lambda: la.norm(batch, 2),
    "vectors have no ord 'fro'": lambda: la.norm(batch, "fro", 0),
    "matrices have no ord 3": lambda: la.norm(a, 3),
    "trans=5 must be": lambda: la.solve_triangular(a, vector, 5),
    "at least two": lambda: la.multi_dot([a]),
    "lstsq: .* are not a matrix": lambda: la.lstsq(batch, vector),
    "right-hand side .* is a scalar": lambda: la.solve(a, 1.0),
    "sizes 4 and 3|differ": lambda: la.solve(np.eye(4), np.ones(3)),
}


@pytest.mark.parametrize("words", WRONG)
def test_misuse_is_told_of(words: str) -> None:
    with pytest.raises((GraphTypeError, GraphValueError, ShapeError), match=words):
        WRONG[words]()


# --- the derivative of Cholesky's factor ------------------------------------------------------------------------------


def _solved(lower: Any, b: Any, trans: int = 0) -> Any:
    return la.solve_triangular(lower, b, trans=trans, lower=True)


def _log_diagonal(lower: Any) -> Any:
    return T.log(T.diagonal(lower, axis1=-2, axis2=-1)).sum()


OF_FACTORS: dict[str, tuple[Callable[..., Any], bool]] = {
    "two solutions": (lambda k, y, z, s: y @ _solved(k, _solved(k, y), 1) / 2 + 2 * _log_diagonal(k), True),
    "half a solution": (lambda k, y, z, s: (_solved(k, y) ** 2).sum() * s + _log_diagonal(k), True),
    "a product with itself": (lambda k, y, z, s: _solved(k, y) @ _solved(k, y) - _log_diagonal(k) / s, True),
    "cho_solve": (lambda k, y, z, s: s * (y @ la.cho_solve((k, True), z)) + 0.3 * _log_diagonal(k), True),
    "two vectors": (lambda k, y, z, s: -T.exp(y @ la.cho_solve((k, True), z) / 9) + T.tanh(_log_diagonal(k)), True),
    "what is made of a solution": (lambda k, y, z, s: T.tanh(la.cho_solve((k, True), z)).sum(), True),
    "several": (
        lambda k, y, z, s: (_solved(k, y) ** 2).sum() + s * (_solved(k, z) ** 2).sum() + la.slogdet(k)[1], True
    ),
    "the transpose": (lambda k, y, z, s: y @ la.solve_triangular(k.T, _solved(k, z * s)) - _log_diagonal(k), True),
    "columns": (lambda k, y, z, s: T.trace(la.cho_solve((k, True), T.outer(y, z) + s)) + _log_diagonal(k), True),
    "a determinant": (lambda k, y, z, s: s * _log_diagonal(k), True),
    "one solution": (lambda k, y, z, s: z @ _solved(k, y), False),
    "a sum of elements": (lambda k, y, z, s: (k * k).sum() + _log_diagonal(k), False),
    "the diagonal": (lambda k, y, z, s: T.log(T.diag(k)) @ y, False),
    "a product": (lambda k, y, z, s: T.tanh(k @ y).sum() + _log_diagonal(k), False),
    "ones on the diagonal": (lambda k, y, z, s: (la.solve_triangular(k, y, 0, True, True) ** 2).sum(), False),
}  # fmt: skip
"""What is made of a factor, and whether its derivative needs no system of whole matrices."""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "mode"), [("float64", "compiled"), ("float32", "interpreted")])
def test_derivative_of_a_factor(dtype: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by the general form, to the second derivative, whichever way the cotangent is read."""
    k, y, z, s = T.matrix("k", dtype=dtype), *(T.vector(each, dtype=dtype) for each in "yz"), T.scalar("s", dtype=dtype)

    def slopes() -> list[Any]:
        first = [grad(make(la.cholesky(k), y, z, s), k) for make, _ in OF_FACTORS.values()]
        return first + [grad((each * T.outer(y, z)).sum(), k) for each in first]

    found = slopes()
    monkeypatch.setattr(factor, "pulled_back", lambda *args: None)
    general = slopes()
    short = {name: found[place] is not general[place] for place, name in enumerate(OF_FACTORS)}
    assert short == {name: wanted for name, (_, wanted) in OF_FACTORS.items()}
    rng = np.random.default_rng(5)
    x = rng.normal(size=(6, 6))
    values = [(x @ x.T + 3 * np.eye(6)).astype(dtype), *rng.normal(size=(2, 6)).astype(dtype), np.array(0.7, dtype)]
    inputs, count = [k, y, z, s], len(OF_FACTORS)
    made = function(inputs, found[:count], mode=mode)(*values) + function(inputs, found[count:], mode="interpreted")(
        *values
    )
    expected = function(inputs, general, mode="interpreted")(*values)
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    for one, other, name in zip(made, expected, [*OF_FACTORS, *OF_FACTORS], strict=True):
        np.testing.assert_allclose(one, other, tolerance, tolerance * np.abs(other).max(), err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half a solution", "cho_solve"])
def test_derivatives_of_factors_of_a_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a number of its own that multiplies."""
    k, y, s = T.dtensor3("k"), T.dmatrix("y"), T.dvector("s")
    lower = la.cholesky(k, on_error="nan")
    half = _solved(lower, y[:, :, None])[:, :, 0]
    whole = la.cho_solve((lower, True), y[:, :, None])[:, :, 0]
    each = (half**2).sum(1) if name == "half a solution" else (y * whole).sum(1)
    cost = (s * each + T.log(T.diagonal(lower, axis1=1, axis2=2)).sum(1) * s * s).sum()
    found = grad(cost, k)
    monkeypatch.setattr(factor, "pulled_back", lambda *args: None)
    general = grad(cost, k)
    assert found is not general
    rng = np.random.default_rng(6)
    x = rng.normal(size=(5, 4, 4))
    values = [x @ x.swapaxes(1, 2) + np.eye(4), rng.normal(size=(5, 4)), rng.normal(size=5)]
    values[0][3] = -np.eye(4)
    forms = ((found, "compiled"), (general, "interpreted"))
    one, other = (function([k, y, s], of, mode=mode)(*values) for of, mode in forms)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert np.isnan(np.tril(one[3])).any() and not np.isnan(one[[0, 1, 2, 4]]).any()


@pytest.mark.slow
def test_a_long_sum_of_solutions_is_differentiated() -> None:
    """More terms than are paired, and more of them than frames on a stack."""
    k, y = T.dmatrix("k"), T.dvector("y")
    lower = la.cholesky(k)
    total, vector = T.log(T.diag(lower)).sum(), y
    for _ in range(1500):
        vector = _solved(lower, vector)
        total = total + vector.sum()
    assert grad(total, k).ndim == 2


# --- what stands in the graph -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_marginal_likelihood_has_one_factorisation() -> None:
    """A Gaussian process with its gradient, however the solution and the determinant are written."""
    x, y, scale, noise = T.dmatrix("x"), T.dvector("y"), T.dscalar("scale"), T.dscalar("noise")
    apart = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    k = T.exp(-apart / (2 * scale**2)) + noise**2 * T.eye(x.shape[0])
    lower = la.cholesky(k)
    quadratic = (y @ la.cho_solve((lower, True), y)) / 2
    said = y @ la.solve(k, y, assume_a="pos")
    written = {
        "cholesky": (quadratic + T.log(T.diag(lower)).sum(), "cholesky"),
        "cholesky and logdet": (quadratic + la.slogdet(k)[1] / 2, "cholesky"),
        "cholesky and inverse": ((y @ la.inv(k) @ y) / 2 + T.log(T.diag(lower)).sum(), "cholesky"),
        "positive": ((said + la.slogdet(k)[1]) / 2, "cholesky"),
        "positive and det": ((said + T.log(la.det(k))) / 2, "cholesky"),
        "positive and cholesky": (said / 2 + T.log(T.diag(lower)).sum(), "cholesky"),
        "general": ((y @ la.solve(k, y) + la.slogdet(k)[1]) / 2, "lu"),
        "inverse": ((y @ la.inv(k) @ y + T.log(la.det(k))) / 2, "lu"),
    }
    rng = np.random.default_rng(3)
    points, values = rng.normal(size=(7, 2)), rng.normal(size=7)
    expected = None
    for name, (loss, kind) in written.items():
        f = function([x, y, scale, noise], [loss, *grad(loss, [scale, noise])])
        found = np.array(f(points, values, 0.9, 0.3))
        expected = found if expected is None else expected
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)
        counts = {each: factorisations(f, each) for each in ("cholesky", "lu")}
        assert counts == {"cholesky": 0, "lu": 0} | {kind: 1}, name


def factorisations(f: Any, kind: str) -> int:
    """How often a function's source calls a factorisation."""
    return len(re.findall(rf"\bgc_lapack_{kind}_f64\(", f.source))


@pytest.mark.slow
def test_what_is_said_of_a_matrix() -> None:
    """A matrix that is given is positive definite where a solution says so; its Cholesky factor reads a triangle alone,
    so that its determinant is that of the whole. What is said not to be positive definite and is, is an error."""
    lower, said = la.cholesky(a), la.solve(a, vector, assume_a="pos")
    everything = [said, la.inv(a), la.det(a), *la.slogdet(a), la.solve(a, columns), grad(la.det(a), a), la.inv(a.T)]
    f = function([a, vector, columns], everything)
    assert (factorisations(f, "cholesky"), factorisations(f, "lu")) == (1, 0)
    inverse, det = N.inv(POS), N.det(POS)
    wanted = [inverse @ VECTOR, inverse, det, 1, np.log(det), inverse @ COLUMNS, det * inverse, inverse]
    for found, want in zip(f(POS, VECTOR, COLUMNS), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9)
    with pytest.raises(LinAlgError, match=r"not positive definite: .* of a "):
        f(-POS, VECTOR, COLUMNS)
    f = function([a], [lower, la.det(a)])
    assert (factorisations(f, "cholesky"), factorisations(f, "lu")) == (1, 1)
    triangle = np.tril(POS)
    for found, want in zip(f(triangle), (N.cholesky(POS), N.det(triangle)), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9)


def test_what_is_symmetric() -> None:
    s, t, n = T.dmatrix("s"), T.dvector("t"), T.dtensor3("n")
    turned = [*range(n.ndim - 2), n.ndim - 1, n.ndim - 2]
    apart = t[:, None] - t[None, :]
    yes = [
        s @ s.T, s + s.T, T.exp(-(apart**2)) * 3.0, abs(apart) + T.eye(t.size), T.cos(apart), apart * T.tanh(apart),
        T.eye(4), T.outer(t, t), T.minimum(t[:, None], t[None, :]), T.batched_dot(n, n.dimshuffle(*turned)),
        -(s.T @ s) + 1.0, T.diag(t), ((s[:, None, :] - s[None, :, :]) ** 2).sum(-1), T.as_tensor(POS), s.T * s,
    ]  # fmt: skip
    no = [
        s, s @ s, s - s.T, apart, T.sin(apart), s + t[:, None], s.T @ T.tanh(s), T.exp(apart), n, T.as_tensor(A),
        t[:, None] * t[None, ::-1], ((s[:, None, :] - s[None, :, :]) ** 3).sum(-1), n + n.dimshuffle(1, 0, 2),
    ]  # fmt: skip
    assert [number for number, node in enumerate(yes) if not is_symmetric(node)] == []
    assert [number for number, node in enumerate(no) if is_symmetric(node)] == []


def test_docstring_examples() -> None:
    np.testing.assert_allclose(la.cholesky([[4.0, 2.0], [2.0, 3.0]]).eval(), [[2, 0], [1, np.sqrt(2)]])
    np.testing.assert_allclose(la.solve([[3.0, 1.0], [1.0, 2.0]], [9.0, 8.0]).eval(), [2, 3])
    assert graphc.numpy.linalg.inv is not None
