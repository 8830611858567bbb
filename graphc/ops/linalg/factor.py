"""Factorisations: Cholesky's, LU and triangular systems; QR, eigenvalues and singular values.

In: nodes of floats, matrices in their last two axes. Out: op records (routine.py), and functions that make their nodes.
What solves a system, gives a determinant or an inverse is composed of the first ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.node import OPS, Array, Node, Size, literal
from graphc.ir.types import Argument, Samples, samples
from graphc.ops.index import gather, set_gather
from graphc.ops.linalg.derivatives import (
    eig_vjps,
    eigh_vjps,
    eigvals_vjps,
    eigvalsh_vjp,
    on_diagonal,
    pulled_back,
    qr_vjps,
    svd_vjps,
    svdvals_vjp,
    triangle,
)
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import ON_ERROR, Letters, apply_routine, define_routine, shorter
from graphc.ops.shape import broadcast_to, dimshuffle, iota, transpose, zeros


def _scaled(number: float, x: Node) -> Node:
    return literal(number, x.type.dtype) * x


# --- cholesky ---------------------------------------------------------------------------------------------------------


def cholesky(a: Node, on_error: str = "raise") -> Node:
    """The lower triangular L with L L' = a, of which the lower triangle is read. A matrix that is not positive definite
    raises LinAlgError, or makes its L all NaN under on_error="nan"."""
    return apply_routine(OPS["cholesky"], (a,), on_error)


def _cholesky_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Return the cotangent of the lower triangle alone (Murray, Differentiation of the Cholesky decomposition,
    2016)."""
    gradient = pulled_back(node, cotangent)
    if gradient is not None:
        return [on_diagonal(triangle(gradient, strict=True), _scaled(0.5, gradient))]
    solve = partial(triangular_solve, node, transposed=True, on_error=node.attrs[ON_ERROR])
    inner = triangle(matmul(transpose(node), triangle(cotangent)))
    inner = on_diagonal(inner, _scaled(0.5, inner))
    outer = solve(transpose(solve(inner)))  # the transpose of L'^-1 inner L^-1
    both = triangle(outer + transpose(outer))
    return [on_diagonal(both, outer)]


def _positive(x: Node) -> Node:
    """A matrix that is positive definite, whatever `x` is."""
    product = matmul(x, transpose(x))
    return on_diagonal(product, product + literal(2, x.type.dtype))


define_routine(
    "cholesky",
    "nn -> nn",
    np.linalg.cholesky,
    "nnn",
    failures=("Matrix is not positive definite",),
    overwritten=(0, 0),
    doc="The lower triangular factor L of a = L L'; the lower triangle of a is read.",
    samples=samples(
        ("a matrix", lambda x: cholesky(_positive(x)), (3, 3)),
        ("a batch", lambda x: cholesky(_positive(x)), (2, 3, 3)),
        ("nothing", lambda x: cholesky(_positive(x)), (0, 0)),
        others=[("NaN", lambda x: cholesky(x, "nan"), Argument((3, 3), low=-2, high=-1))],
    ),
    vjp=_cholesky_vjp,
)


def inverse_of_factor(lower: Node) -> Node:
    """The inverse of L L' for a lower triangular L. It never fails: where there is a 0 on the diagonal of L, it has
    infinities."""
    return apply_routine(OPS["inverse_of_factor"], (lower,))


def _inverse_of_factor(lower: Array) -> Array:
    inverses = np.empty(lower.shape)
    for place in np.ndindex(lower.shape[:-2]):
        factor = np.tril(lower[place]).astype(np.float64)
        try:
            half = np.linalg.inv(factor)
        except np.linalg.LinAlgError:
            half = np.full_like(factor, np.inf)
        inverses[place] = half.T @ half
    return inverses


def _inverse_of_factor_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    both = cotangent + transpose(cotangent)
    return [triangle(_scaled(-1.0, matmul(matmul(matmul(node, both), node), triangle(node.args[0]))))]


define_routine(
    "inverse_of_factor",
    "nn -> nn",
    _inverse_of_factor,
    "nnn",
    overwritten=(0, 0),
    doc="The inverse of L L' for a lower triangular L, of which the lower triangle is read.",
    samples=samples(
        ("a matrix", lambda x: inverse_of_factor(cholesky(_positive(x))), (3, 3)),
        ("a batch", lambda x: inverse_of_factor(cholesky(_positive(x))), (2, 3, 3)),
        ("nothing", inverse_of_factor, (0, 0)),
    ),
    vjp=_inverse_of_factor_vjp,
)


# --- triangular systems -----------------------------------------------------------------------------------------------


def triangular_solve(
    a: Node,
    b: Node,
    lower: bool = True,
    transposed: bool = False,
    unit: bool = False,
    on_error: str = "raise",
) -> Node:
    """x with a x = b, or a' x = b where `transposed`, for a triangular a, of which one triangle is read, without the
    diagonal where that is to be `unit`. A 0 on the diagonal raises LinAlgError, or makes x all NaN."""
    flags = {"lower": lower, "transposed": transposed, "unit": unit}
    return apply_routine(OPS["triangular_solve"], (a, b), on_error, **flags)


def _solve_triangular(a: Array, b: Array, lower: bool, transposed: bool, unit: bool) -> Array:
    """By substitution, in float64."""
    if not unit and (np.diagonal(a, axis1=-2, axis2=-1) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    a = np.swapaxes(a, -1, -2) if transposed else a
    forwards = lower != transposed
    x = b.astype(np.float64)
    count = a.shape[-1]
    for row in range(count) if forwards else reversed(range(count)):
        known = slice(0, row) if forwards else slice(row + 1, count)
        x[..., row, :] -= (a[..., row, None, known] @ x[..., known, :])[..., 0, :]
        if not unit:
            x[..., row, :] /= a[..., row, row, None]
    return x


def _triangular_solve_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    a, _ = node.args
    lower, transposed, unit = (node.attrs[name] for name in ("lower", "transposed", "unit"))
    of_b = triangular_solve(a, cotangent, lower, not transposed, unit, node.attrs[ON_ERROR])
    left, right = (node, of_b) if transposed else (of_b, node)
    return triangle(_scaled(-1.0, matmul(left, transpose(right))), lower, strict=unit), of_b


_SYSTEM = (Argument((3, 3), low=1.0), Argument((3, 2)))


define_routine(
    "triangular_solve",
    "nn nk -> nk",
    _solve_triangular,
    "nnk",
    flags=("lower", "transposed", "unit"),
    failures=("Singular matrix",),
    overwritten=(1, 0),
    doc="The solution x of a x = b, or of a' x = b, for a triangular matrix a.",
    samples=samples(
        ("lower", triangular_solve, *_SYSTEM),
        ("upper", partial(triangular_solve, lower=False), *_SYSTEM),
        ("transposed, unit", partial(triangular_solve, transposed=True, unit=True), *_SYSTEM),
        ("a batch", triangular_solve, Argument((2, 3, 3), low=1.0), (2, 3, 2)),
        ("nothing", triangular_solve, (0, 0), (0, 2)),
        others=[("NaN", partial(triangular_solve, on_error="nan"), Argument((3, 3), low=0, high=0), (3, 2))],
    ),
    vjp=_triangular_solve_vjp,
)


# --- lu ---------------------------------------------------------------------------------------------------------------


def lu(a: Node) -> tuple[Node, Node, Node]:
    """LU with pivots, of square matrices: L below the diagonal, whose own is 1, and U on and above it; the permutation
    p with a[p] = L U; and the pivots: row k was exchanged with row pivots[k], for k = 0, 1, …

    It never fails: the U of a singular matrix has a 0 on its diagonal, on which `triangular_solve` fails."""
    packed, permutation, pivots = items_of(apply_routine(OPS["lu"], (a,)))
    return packed, permutation, pivots


def _factorise(a: Array) -> tuple[Array, Array, Array]:
    """By columns, in float64; of equal pivots the first."""
    outer, rows, steps = a.shape[:-2], a.shape[-2], min(a.shape[-2:])
    x = np.array(a, np.float64).reshape(prod(outer), rows, a.shape[-1])
    each = np.arange(len(x))
    permutation, pivots = (np.tile(np.arange(count), (len(x), 1)) for count in (rows, steps))
    for k in range(steps):
        size = np.abs(x[:, k:, k])
        pivot = k + np.argmax(np.where(np.isnan(size), -1.0, size), axis=-1)
        pivots[:, k] = pivot
        for array in (x, permutation):
            array[each, k], array[each, pivot] = array[each, pivot], array[each, k].copy()
        divisor = x[:, k, k, None]
        factor = np.where(divisor == 0, x[:, k + 1 :, k], x[:, k + 1 :, k] / divisor)
        x[:, k + 1 :, k] = factor
        x[:, k + 1 :, k + 1 :] -= factor[..., None] * x[:, k, None, k + 1 :]
    return x.reshape(a.shape), permutation.reshape(*outer, rows), pivots.reshape(*outer, steps)


def permuted(x: Node, permutation: Node, inverse: bool = False) -> Node:
    """The rows of matrices in another order: row k is row permutation[k] of `x`; `inverse`: the other way."""
    indices = [
        broadcast_to(dimshuffle(iota(size), ["x"] * axis + [0] + ["x"] * (x.ndim - axis - 2)), permutation.type.shape)
        for axis, size in enumerate(x.type.shape[:-2])
    ]
    indices.append(permutation)
    return set_gather(zeros(x.type.dtype, x.type.shape), x, indices, 0) if inverse else gather(x, indices, 0)


def _lu_vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    if 0 not in cotangents:
        return [None]
    packed, permutation, _ = items_of(node)
    of_lower, of_upper = triangle(cotangents[0], strict=True), triangle(cotangents[0], lower=False)
    lower, upper = triangle(packed, strict=True), triangle(packed, lower=False)
    below = of_lower + matmul(transpose(lower), of_lower)
    above = matmul(of_upper, transpose(upper))
    both = triangle(below, strict=True) + triangle(above, lower=False)
    left = triangular_solve(packed, both, transposed=True, unit=True)
    right = triangular_solve(packed, transpose(left), lower=False, on_error="nan")
    return [permuted(transpose(right), permutation, inverse=True)]


define_routine(
    "lu",
    "nn -> nn n:int64 n:int64",
    _factorise,
    "nnn",
    overwritten=(0, 0),
    doc="L and U in one matrix, the permutation p with a[p] = L U, and the pivots.",
    samples=samples(
        ("a matrix", lambda x: lu(x)[0], (3, 3)),
        ("a batch", lambda x: lu(x)[0], (2, 3, 3)),
        others=[("a permutation", lambda x: lu(x)[1], (4, 4)), ("pivots", lambda x: lu(x)[2], (2, 4, 4))],
    ),
    vjps=_lu_vjps,
)


def lu_of_any(a: Node) -> tuple[Node, Node]:
    """The same of m x n matrices: L, of as many columns as the shorter side, below the diagonal, U on and above it; and
    the permutation. They have no derivative here: its parts are of sizes that only the caller tells apart."""
    packed, permutation = items_of(apply_routine(OPS["lu_of_any"], (a,)))
    return packed, permutation


define_routine(
    "lu_of_any",
    "mn -> mn m:int64",
    lambda a: _factorise(a)[:2],
    "mnk",
    derived=shorter,
    spaces=("", "int64"),
    lengths=lambda letters: (sizes.product((letters["m"], letters["n"])), letters["k"]),
    doc="L and U of matrices that need not be square, in one matrix, and the permutation p with a[p] = L U.",
    samples=samples(
        others=[
            ("a high one", lambda x: lu_of_any(x)[0], (4, 2)),
            ("broad ones", lambda x: lu_of_any(x)[0], (2, 2, 4)),
            ("an order", lambda x: lu_of_any(x)[1], (5, 3)),
        ]
    ),
)


WIDE, LONG = 32, 72
"""Columns that LAPACK takes at a time, and rows of what it needs besides, generously."""
NOT_CONVERGED = "Eigenvalues did not converge"


def _plus(*terms: Size) -> Size:
    return reduce(sizes.add, terms)


def _times(*factors: Size) -> Size:
    return sizes.product(factors)


def _of_qr(letters: Letters, complete: bool) -> list[Size]:
    m, n = letters["m"], letters["n"]
    longer, shorter = sizes.maximum(m, n), sizes.minimum(m, n)
    return [_times(m, longer if complete else n), shorter, _plus(_times(WIDE, longer), 1)]


def _of_eigh(letters: Letters, vectors: bool) -> list[Size]:
    n = letters["n"]
    if not vectors:
        return [_times(n, n), _plus(_times(36, n), 1), _plus(n, 1)]
    return [_plus(_times(2, n, n), _times(40, n), 1), _plus(_times(5, n), 3)]


def _of_svd(letters: Letters, full: bool) -> list[Size]:
    m, n, k = letters["m"], letters["n"], sizes.minimum(letters["m"], letters["n"])
    work = _plus(_times(4, k, k), _times(LONG, _plus(m, n)))
    return [_times(m, n), _times(m, m if full else k), _times(n, n if full else k), work, _times(8, k)]


def _of_svdvals(letters: Letters) -> list[Size]:
    m, n = letters["m"], letters["n"]
    return [_times(m, n), _times(LONG, _plus(m, n)), _times(8, sizes.minimum(m, n))]


def _of_eig(letters: Letters, vectors: bool) -> list[Size]:
    n = letters["n"]
    return [*[_times(n, n)] * (1 + vectors), _times(LONG, n)]


def _samples(build: Any, *, square: bool = False, result: int | None = 0) -> Samples:
    """Samples of a routine. result: the one that is looked at."""

    def one(x: Node) -> Node:
        results = build(x)
        return results if result is None else results[result]

    shapes = {"a matrix": (3, 3)} if square else {"a high one": (4, 2), "broad ones": (2, 2, 4)}
    return samples(others=[(name, one, shape) for name, shape in shapes.items()])


# --- qr ---------------------------------------------------------------------------------------------------------------


def qr(a: Node, complete: bool = False) -> tuple[Node, Node]:
    """Q with orthonormal columns and an upper triangular R, a = Q R: as many columns as a has of the shorter side, or
    all that there are, with as many rows in R."""
    q, r = items_of(apply_routine(OPS["qr_complete" if complete else "qr"], (a,)))
    return q, r


define_routine(
    "qr",
    "mn -> mk kn",
    partial(np.linalg.qr, mode="reduced"),
    "mnk",
    derived=shorter,
    spaces=("", "", ""),
    lengths=partial(_of_qr, complete=False),
    doc="Orthonormal columns and an upper triangle, whose product is a.",
    samples=_samples(qr),
    vjps=qr_vjps,
)
define_routine(
    "qr_complete",
    "mn -> mm mn",
    partial(np.linalg.qr, mode="complete"),
    "mnm",
    spaces=("", "", ""),
    lengths=partial(_of_qr, complete=True),
    doc="An orthogonal matrix and an upper triangle, whose product is a.",
    samples=_samples(partial(qr, complete=True)),
    vjps=qr_vjps,
)


def qr_order(a: Node) -> Node:
    """The order of columns in which each is the one of which most is left beside those before: that of QR with
    pivots."""
    return apply_routine(OPS["qr_order"], (a,))


def _order_of_columns(a: Array) -> Array:
    """Householder's reflections, in float64; of equal columns the first."""
    outer, (rows, columns) = a.shape[:-2], a.shape[-2:]
    x = np.array(a, np.float64).reshape(prod(outer), rows, columns)
    order = np.tile(np.arange(columns), (len(x), 1))
    for place, own in enumerate(x):
        for k in range(min(rows, columns)):
            first = k + int(np.argmax(np.linalg.norm(own[k:, k:], axis=0)))
            own[:, [k, first]], order[place, [k, first]] = own[:, [first, k]], order[place, [first, k]]
            q, _ = np.linalg.qr(own[k:, k : k + 1], "complete")
            own[k:] = q.T @ own[k:]
    return order.reshape(*outer, columns)


def _of_qr_order(letters: Letters) -> list[Size]:
    m, n = letters["m"], letters["n"]
    return [_times(m, n), n, sizes.minimum(m, n), _plus(_times(WIDE + 2, _plus(n, 1)), 1)]


define_routine(
    "qr_order",
    "mn -> n:int64",
    _order_of_columns,
    "mnk",
    derived=shorter,
    spaces=("", "int64", "", ""),
    lengths=_of_qr_order,
    doc="The order of columns of a QR with pivots.",
    samples=_samples(qr_order, result=None),
)


# --- symmetric matrices -----------------------------------------------------------------------------------------------


def eigh(a: Node, lower: bool = True, on_error: str = "raise") -> tuple[Node, Node]:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors, the columns; one triangle is read."""
    values, vectors = items_of(apply_routine(OPS["eigh"], (a,), on_error, lower=lower))
    return values, vectors


def eigvalsh(a: Node, lower: bool = True, on_error: str = "raise") -> Node:
    """The eigenvalues of symmetric matrices, ascending; one triangle is read."""
    return apply_routine(OPS["eigvalsh"], (a,), on_error, lower=lower)


def _symmetric(x: Node) -> Node:
    return x + transpose(x)


define_routine(
    "eigh",
    "nn -> n nn",
    lambda a, lower: np.linalg.eigh(a, "L" if lower else "U"),
    "nnn",
    flags=("lower",),
    failures=(NOT_CONVERGED,),
    spaces=("", "int64"),
    lengths=partial(_of_eigh, vectors=True),
    doc="The eigenvalues and eigenvectors of symmetric matrices.",
    samples=_samples(lambda x: eigh(_symmetric(x)), square=True),
    vjps=eigh_vjps,
)
define_routine(
    "eigvalsh",
    "nn -> n",
    lambda a, lower: np.linalg.eigvalsh(a, "L" if lower else "U"),
    "nnn",
    flags=("lower",),
    failures=(NOT_CONVERGED,),
    spaces=("", "", "int64"),
    lengths=partial(_of_eigh, vectors=False),
    doc="The eigenvalues of symmetric matrices.",
    samples=_samples(lambda x: eigvalsh(_symmetric(x)), square=True, result=None),
    vjp=eigvalsh_vjp,
)


# --- svd --------------------------------------------------------------------------------------------------------------


def svd(a: Node, full: bool = False, on_error: str = "raise") -> tuple[Node, Node, Node]:
    """u, s and v' with a = u s v': singular values, descending, with orthonormal columns of u and rows of v', as many
    as a has of the shorter side, or all that there are."""
    u, s, vh = items_of(apply_routine(OPS["svd_full" if full else "svd"], (a,), on_error))
    return u, s, vh


def svdvals(a: Node, on_error: str = "raise") -> Node:
    """The singular values, descending."""
    return apply_routine(OPS["svdvals"], (a,), on_error)


SVD_FAILED = ("SVD did not converge",)


for _name, _full, _form, _doc in (
    ("svd", False, "mn -> mk k kn", "Orthonormal columns, singular values, orthonormal rows."),
    ("svd_full", True, "mn -> mm k nn", "An orthogonal matrix, singular values, an orthogonal matrix."),
):
    define_routine(
        _name,
        _form,
        partial(np.linalg.svd, full_matrices=_full),
        "mnk",
        failures=SVD_FAILED,
        derived=shorter,
        spaces=("", "", "", "", "int64"),
        lengths=partial(_of_svd, full=_full),
        doc=_doc,
        samples=_samples(partial(svd, full=_full), result=1),
        vjps=svd_vjps,
    )
define_routine(
    "svdvals",
    "mn -> k",
    partial(np.linalg.svd, compute_uv=False),
    "mnk",
    failures=SVD_FAILED,
    derived=shorter,
    spaces=("", "", "int64"),
    lengths=_of_svdvals,
    doc="Singular values.",
    samples=_samples(svdvals, result=None),
    vjp=svdvals_vjp,
)


# --- matrices of any kind ---------------------------------------------------------------------------------------------


def eig(a: Node, on_error: str = "raise") -> tuple[Node, Node, Node, Node]:
    """The real and imaginary parts of the eigenvalues, and those of the eigenvectors, the columns."""
    wr, wi, vr, vi = items_of(apply_routine(OPS["eig"], (a,), on_error))
    return wr, wi, vr, vi


def eigvals(a: Node, on_error: str = "raise") -> tuple[Node, Node]:
    """The real and imaginary parts of the eigenvalues."""
    wr, wi = items_of(apply_routine(OPS["eigvals"], (a,), on_error))
    return wr, wi


def _eig(a: Array) -> tuple[Array, ...]:
    values, vectors = np.linalg.eig(a)
    return values.real, values.imag, vectors.real, vectors.imag


def _eigvals(a: Array) -> tuple[Array, Array]:
    values = np.linalg.eigvals(a)
    return values.real, values.imag


EIG_FAILED = (NOT_CONVERGED, "Array must not contain infs or NaNs")

define_routine(
    "eig",
    "nn -> n n nn nn",
    _eig,
    "nnn",
    failures=EIG_FAILED,
    spaces=("", "", ""),
    lengths=partial(_of_eig, vectors=True),
    doc="The eigenvalues and eigenvectors of square matrices, real and imaginary parts.",
    samples=_samples(eig, square=True),
    vjps=eig_vjps,
)
define_routine(
    "eigvals",
    "nn -> n n",
    _eigvals,
    "nnn",
    failures=EIG_FAILED,
    spaces=("", ""),
    lengths=partial(_of_eig, vectors=False),
    doc="The eigenvalues of square matrices, real and imaginary parts.",
    samples=_samples(eigvals, square=True),
    vjps=eigvals_vjps,
)
