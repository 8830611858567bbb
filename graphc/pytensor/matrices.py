"""Rows of the table (table.py) for products, linear algebra and Scan."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.scan import scan, until
from graphc.ir.node import Node
from graphc.pytensor.table import Table, Unknown, as_declared, known, row


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
    """Return a vector with two elements swapped."""
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


# --- Scan -------------------------------------------------------------------------------------------------------------


@row("Scan", nested=True)
def _scan(apply: Any, args: list[Any], table: Table) -> list[Node]:
    """Convert a Scan to graphc's scan. A state with taps becomes a state with the same taps. A buffer that steps read
    and write in several places (`mit_mot`, in gradients of loops) becomes one state, of which each step writes rows.
    Results are buffers as PyTensor has them before its rewrites: initial values first, zeros where nothing is written.
    """
    op, info = apply.op, apply.op.info
    for arg in args:
        if not isinstance(arg, Node):
            raise Unknown("a loop over what is no tensor")
    steps = known(args[0])
    buffers = op.outer_mitmot(args)
    begun = [*op.outer_mitsot(args), *op.outer_sitsot(args)]
    taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
    whole = op.outer_untraced_sit_sot(args)
    free = op.outer_nitsot(args)
    others = op.outer_non_seqs(args)
    outs = op.fgraph.outputs

    def step(*given: Any) -> Any:
        left = list(given)
        time, elements = left.pop(0), [left.pop(0) for _ in range(info.n_seqs)]
        carried = [left.pop(0) for _ in buffers]
        past = [[left.pop(0) for _ in own] for own in taps]
        last = [left.pop(0) for _ in whole]
        values = [*elements]
        for buffer, own in zip(carried, info.mit_mot_in_slices, strict=True):
            values += [buffer[time + (tap - min(own))] for tap in own]
        values += [value for own in past for value in own]
        values += [*last, *others]
        inner = op.fgraph.inputs
        values = [as_declared(value, variable.type) for value, variable in zip(values, inner, strict=True)]
        made = table.values_of(outs, dict(zip(inner, values, strict=True)))
        written = []
        for buffer, reads, writes in zip(carried, info.mit_mot_in_slices, info.mit_mot_out_slices, strict=True):
            for tap in writes:
                buffer = T.set_subtensor(buffer[time + (tap - min(reads))], made.pop(0))
            written.append(buffer)
        states = [made.pop(0) for _ in taps]
        rows = [made.pop(0) for _ in free]
        results = [*written, *states, *[made.pop(0) for _ in whole], *rows]
        return (results, until(made[0])) if info.as_while else results

    initial: list[Any] = [{"initial": buffer, "taps": [-1]} for buffer in buffers]
    for buffer, own in zip(begun, taps, strict=True):
        lowest = -min(own)
        initial.append({"initial": buffer[:lowest] if lowest > 1 else buffer[0], "taps": list(own)})
    initial += [{"initial": value, "taps": [-1]} for value in whole]
    initial += [None] * len(free)
    sequences = [T.arange(steps), *[rows[:steps] for rows in op.outer_seqs(args)]]
    results, _ = scan(step, sequences, initial, n_steps=steps, return_list=True)
    results = list(results)
    made = [results.pop(0)[-1] for _ in buffers]
    for buffer, own in zip(begun, taps, strict=True):
        made.append(T.concatenate([buffer[: -min(own)], results.pop(0)]))
    last = [results.pop(0)[-1] for _ in whole]
    if op.truncate_gradient != -1:
        results = [filled(rows, size, args[0]) for rows, size in zip(results, free, strict=True)]
    return [*made, *results, *last]


def filled(rows: Node, size: Node, steps: Node) -> Node:
    """The rows of an output, and zeros where its buffer, of `size` rows, has more than there are steps: so have
    gradients that go back through some steps only."""
    more = T.maximum(size - steps, 0)
    return T.concatenate([rows, T.zeros((more, *rows.shape[1:]), rows.type.dtype)])
