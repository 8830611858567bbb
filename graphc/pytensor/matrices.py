"""Rows of products and of linear algebra (table.py)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.scan import scan
from graphc.ir.node import Node
from graphc.pytensor.table import known, row
from graphc.pytensor.unknown import Unknown


@row("Dot")
def _dot(apply: Any, args: list[Any]) -> Any:
    dtype = apply.outputs[0].type.dtype
    return T.dot(*[T.cast(arg, dtype) for arg in args])


@row("BatchedDot")
def _batched_dot(apply: Any, args: list[Any]) -> Any:
    return T.batched_dot(*args)


@row("Gemv", "Gemm")
def _gemm(apply: Any, args: list[Any]) -> Any:
    z, alpha, x, y, beta = args
    return beta * z + alpha * T.dot(x, y)


@row("Dot22")
def _matrix_product(apply: Any, args: list[Any]) -> Any:
    return T.dot(*args)


@row("Dot22Scalar")
def _scaled_product(apply: Any, args: list[Any]) -> Any:
    return args[2] * T.dot(*args[:2])


@row("Ger")
def _outer(apply: Any, args: list[Any]) -> Any:
    a, alpha, x, y = args
    return a + alpha * T.outer(x, y)


@row("Cholesky")
def _cholesky(apply: Any, args: list[Any]) -> Any:
    """NaN where a matrix has no factor, as PyTensor's."""
    return T.linalg.cholesky(args[0], lower=apply.op.lower, on_error="nan")


@row("SolveTriangular")
def _solve_triangular(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    return T.linalg.solve_triangular(*args, lower=op.lower, unit_diagonal=op.unit_diagonal, on_error="nan")


@row("Solve")
def _solve(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    return T.linalg.solve(*args, assume_a=op.assume_a, lower=op.lower, on_error="nan")


@row("CholeskySolve")
def _solve_by_cholesky(apply: Any, args: list[Any]) -> Any:
    return T.linalg.cho_solve((args[0], apply.op.lower), args[1])


@row("MatrixInverse")
def _inverse(apply: Any, args: list[Any]) -> Any:
    return T.linalg.inv(args[0])


@row("MatrixPinv")
def _pseudo_inverse(apply: Any, args: list[Any]) -> Any:
    return T.linalg.pinv(args[0])


@row("Det")
def _determinant(apply: Any, args: list[Any]) -> Any:
    return T.linalg.det(args[0])


@row("SLogDet")
def _log_determinant(apply: Any, args: list[Any]) -> Any:
    return list(T.linalg.slogdet(args[0]))


@row("Eigh")
def _eigenvalues(apply: Any, args: list[Any]) -> Any:
    return list(T.linalg.eigh(args[0], UPLO=apply.op.UPLO))


@row("SVD")
def _singular_values(apply: Any, args: list[Any]) -> Any:
    if not apply.op.compute_uv:
        return T.linalg.svdvals(args[0])
    return list(T.linalg.svd(args[0], full_matrices=apply.op.full_matrices))


@row("QR")
def _orthogonal(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    if op.mode == "raw":
        raise Unknown("a QR factorisation in LAPACK's own form")
    found = list(T.linalg.qr(args[0], "reduced" if op.mode == "economic" else "complete", pivoting=op.pivoting))
    return found[1:] if op.mode == "r" else found


@row("Eigvalsh")
def _eigenvalues_alone(apply: Any, args: list[Any]) -> Any:
    return T.linalg.eigvalsh(args[0], _triangle(apply), b=args[1] if len(args) > 1 else None)


@row("EighGrad")
def _eigenvalues_gradient(apply: Any, args: list[Any]) -> Any:
    """v (diag(cotangent of w) + the cotangent of v along other vectors, over their distance) v', of which the triangle
    that is read has all: Giles, "An extended collection of matrix derivative results", 3.1."""
    _, w, v, of_w, of_v = args
    is_own = T.eye(w.shape[0], dtype="bool")
    apart = T.switch(is_own, 1, w[None] - w[:, None])
    inner = T.switch(is_own, T.diag(of_w), T.dot(v.T, of_v) / apart)
    return _folded_over(T.dot(T.dot(v, inner), v.T), apply.op.UPLO)


@row("EigvalshGrad")
def _eigenvalues_alone_gradient(apply: Any, args: list[Any]) -> Any:
    a, b, of_w = args
    w, v = T.linalg.eigh(a, _triangle(apply), b=b)
    return [_folded_over(T.dot(v * scale, v.T), _triangle(apply)) for scale in (of_w, -of_w * w)]


def _triangle(apply: Any) -> str:
    return "L" if apply.op.lower else "U"


def _folded_over(gradient: Node, triangle: str) -> Node:
    """The gradient of a symmetric matrix where one of its triangles is read alone."""
    if triangle == "L":
        return T.tril(gradient) + T.triu(gradient, 1).T
    return T.triu(gradient) + T.tril(gradient, -1).T


@row("LU")
def _triangular_factors(apply: Any, args: list[Any]) -> Any:
    return list(T.linalg.lu(args[0], permute_l=apply.op.permute_l, p_indices=apply.op.p_indices))


@row("LUFactor")
def _packed_factors(apply: Any, args: list[Any]) -> Any:
    """NaN for a singular matrix, as PyTensor's. LAPACK's pivots say with which row each was exchanged in turn."""
    packed, order = T.linalg.lu_factor(args[0])
    singular = T.any(T.eq(T.diagonal(packed), 0))

    numbers = T.arange(order.shape[0])

    def exchange(row: Node, wanted: Node, rows: Node) -> list[Node]:
        other = T.sum(T.switch(T.eq(rows, wanted), numbers, 0))  # there may be no rows: no argmax
        return [_exchanged(rows, row, other), other]

    (_, pivots), _ = scan(exchange, [numbers, order], [numbers, None], return_list=True)
    return [T.switch(singular, T.cast(np.nan, packed.dtype), packed), pivots]


@row("PivotToPermutations")
def _order_of_pivots(apply: Any, args: list[Any]) -> Any:
    numbers = T.arange(args[0].shape[0])
    rows, _ = scan(lambda row, other, rows: _exchanged(rows, row, other), [numbers, args[0]], numbers)
    order = T.concatenate([numbers[None], rows])[-1]
    return order if apply.op.inverse else T.argsort(order)


def _exchanged(rows: Node, row: Node, other: Node) -> Node:
    """A vector, of which two elements have changed places."""
    return T.set_subtensor(T.set_subtensor(rows[row], rows[other])[other], rows[row])


@row("Schur")
def _schur(apply: Any, args: list[Any]) -> Any:
    """NaN for a matrix that is not finite, as PyTensor's."""
    a, op = args[0], apply.op
    if op.output != "real" or op.sort is not None:
        raise Unknown("complex or sorted Schur forms")
    is_finite = T.all(T.isfinite(a))
    schur = import_module("graphc.ops.linalg.equations").schur
    found = schur(T.switch(is_finite, a, T.zeros_like(a)), on_error="nan")
    return [T.switch(is_finite, part, T.cast(np.nan, part.dtype)) for part in found]


@row("Lstsq")
def _least_squares(apply: Any, args: list[Any]) -> Any:
    a, b, rcond = args
    return list(T.linalg.lstsq(a, b, known(rcond)))


@row("TRSYL")
def _solve_sylvester(apply: Any, args: list[Any]) -> Any:
    return T.linalg.solve_sylvester(*args)


@row("TensorInv")
def _tensor_inverse(apply: Any, args: list[Any]) -> Any:
    return T.linalg.tensorinv(args[0], apply.op.ind)


@row("TensorSolve")
def _tensor_solve(apply: Any, args: list[Any]) -> Any:
    return T.linalg.tensorsolve(*args, apply.op.axes)


@row("BlockDiagonal")
def _block_diagonal(apply: Any, args: list[Any]) -> Any:
    return T.linalg.block_diag(*args)


@row("Expm")
def _exponential(apply: Any, args: list[Any]) -> Any:
    return T.linalg.expm(args[0])
