"""Factorisations of matrices, and equations that are solved by them.

In: tensors whose last two axes are matrices; integers count as float64, as in NumPy. Out: nodes. The axes before are
batches, which broadcast. A singular or indefinite matrix is numpy.linalg.LinAlgError, or NaN with on_error="nan".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from graphc.arrays.dtypes import is_inexact, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Complex, Node, describe, pair
from graphc.ir.walk import as_size_node
from graphc.ops import pairs, shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, broadcast_sizes, cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.linalg import factor, matrices
from graphc.ops.linalg.complex_factors import factors
from graphc.ops.linalg.derivatives import triangle
from graphc.ops.linalg.products import matmul
from graphc.ops.questions import told
from graphc.ops.scalar import stop_gradient
from graphc.startup.hooks import HOOKS
from graphc.tensor.creation import coordinates, eye
from graphc.tensor.elementary import conj, real, where
from graphc.tensor.indexing import diagonal, set_subtensor
from graphc.tensor.reductions import all as all_of
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.sorting import argsort

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "eig", "eig_parts", "eigh", "eigvals", "eigvals_parts", "eigvalsh",
    "inv", "lu", "lu_factor", "lu_solve", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals",
]  # fmt: skip


OF_COMPLEX = frozenset(
    "cholesky cho_solve cond eig eigh eigvals eigvalsh inv lstsq lu lu_factor lu_solve matrix_power matrix_rank qr "
    "solve solve_triangular svd svdvals tensorinv tensorsolve".split()
)
"""Functions of matrices of complex numbers."""


def matrices_of(name: str, *values: Any, vectors: bool = False) -> list[Node]:
    """The operands of a function as nodes of one float dtype. Raises GraphTypeError for what is no matrix."""
    nodes = [as_node(value) for value in values]
    for node in nodes:
        if type(node) is Complex and name not in OF_COMPLEX:
            raise GraphTypeError(f"{name} of {describe(node)} of type {node.type}: it takes real matrices")
    dtype = promote(*(node.type.dtype if is_inexact(node.type.dtype) else "float64" for node in nodes))
    for node in nodes[:1] if vectors else nodes:
        if node.ndim < 2:
            raise RankError(f"{name}: {describe(node)} of type {node.type} is no matrix")
    return [cast(node, dtype) for node in nodes]


def by_blocks(function: Callable[[Any], Node]) -> Callable[[Any], Node]:
    """A function of square matrices that takes complex ones too, as real matrices of blocks: their products, inverses
    and analytic functions are those of the complex ones."""

    @wraps(function)
    def of_any(a: Any) -> Node:
        node = as_node(a)
        if type(node) is not Complex:
            return function(node)
        if node.ndim < 2:
            raise RankError(f"{function.__name__}: {describe(node)} of type {node.type} is no matrix")
        return pairs.unembedded(function(pairs.embedded(node)), *node.type.shape[-2:])

    return of_any


def square_of(name: str, a: Any) -> Node:
    """A node of square float matrices. Raises RankError or ShapeError for others."""
    (node,) = matrices_of(name, a)
    matrices.check_matrices(name, node)
    return node


def in_one_batch(name: str, *nodes: Node) -> list[Node]:
    """Operands whose axes before the last two have been broadcast to the same."""
    rank = max(node.ndim for node in nodes)
    wide = [layout.expand(node, range(rank - node.ndim)) for node in nodes]
    if rank == 2:
        return wide
    outer = broadcast_sizes(name, [layout.zeros("bool", node.type.shape[:-2]) for node in wide])
    return [layout.broadcast_to(node, (*outer, *node.type.shape[-2:])) for node in wide]


def with_columns(name: str, a: Node, b: Node, apply: Callable[[Node, Node], Node]) -> Node:
    """`apply` of matrices and columns: a vector `b` is one column, and so is the result, as in NumPy."""
    if not b.ndim:
        raise RankError(f"{name}: the right-hand side {describe(b)} of type {b.type} is a scalar")
    columns = layout.expand(b, (1,)) if b.ndim == 1 else b
    result = apply(*in_one_batch(name, a, columns))
    return layout.drop(result, (result.ndim - 1,)) if b.ndim == 1 else result


def check_on_error(name: str, on_error: str) -> str:
    """Check the word that says what becomes of a matrix without a result. Raises GraphTypeError for other words."""
    if on_error not in matrices.ON_ERROR:
        raise GraphValueError(f"{name}: on_error={on_error!r} must be 'raise' or 'nan'")
    return on_error


# --- Cholesky ---------------------------------------------------------------------------------------------------------


def cholesky(a: Any, *, upper: bool = False, lower: bool | None = None, on_error: str = "raise") -> Node:
    """L, lower triangular, with L L' = a for a positive definite `a`, of which only the lower triangle is read.

    upper (or lower=False): U = L' with U' U = a, of which the upper triangle is read. An indefinite matrix is
    numpy.linalg.LinAlgError, or NaN with on_error="nan". The derivative stands in the triangle that is read.

        >>> T.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).eval()
        array([[2., 0.],
               [1., 2.]])
    """
    (node,) = matrices_of("cholesky", a)
    below = not upper if lower is None else lower
    check_on_error("cholesky", on_error)
    if below:
        return factor.cholesky(node, on_error=on_error)
    return layout.transpose(factor.cholesky(layout.transpose(node), on_error=on_error))


def cho_factor(a: Any, lower: bool = False, on_error: str = "raise") -> tuple[Node, bool]:
    """The Cholesky factor and whether it is the lower one, for `cho_solve` (SciPy's). Raises RankError for a tensor
    that is no matrix; a call raises LinAlgError for a matrix that is not positive definite."""
    return cholesky(a, lower=lower, on_error=on_error), lower


def cho_solve(c_and_lower: Any, b: Any, on_error: str = "raise") -> Node:
    """x with a x = b, given `(c, lower)` of `cho_factor`, the Cholesky factor of `a`."""
    c, lower = c_and_lower
    first, right = matrices_of("cho_solve", c, b, vectors=True)

    def apply(c: Node, b: Node) -> Node:
        first, second = (c, conj(c)) if lower else (conj(c), c)
        half = factor.triangular_solve(first, b, lower=bool(lower), transposed=not lower, on_error=on_error)
        return factor.triangular_solve(second, half, lower=bool(lower), transposed=bool(lower), on_error=on_error)

    return with_columns("cho_solve", first, right, apply)


# --- triangular systems -----------------------------------------------------------------------------------------------

TRANSPOSED = {0: False, 1: True, 2: True, "N": False, "T": True, "C": True}


def _is_transposed(name: str, trans: Any) -> bool:
    if trans not in TRANSPOSED:
        raise GraphValueError(f"{name}: trans={trans!r} must be one of 0, 1, 2, 'N', 'T' and 'C'")
    return TRANSPOSED[trans]


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, on_error: str = "raise"
) -> Node:
    """x with a x = b for a triangular `a`, of which only that triangle is read (SciPy's).

    trans: 1 or "T" for a' x = b. unit_diagonal: the diagonal counts as ones. A zero on the diagonal is
    numpy.linalg.LinAlgError, or NaN with on_error="nan".
    """
    if trans not in TRANSPOSED:
        raise GraphValueError(f"solve_triangular: trans={trans!r} must be 0, 1, 2, 'N', 'T' or 'C'")
    check_on_error("solve_triangular", on_error)
    first, right = matrices_of("solve_triangular", a, b, vectors=True)

    turned = _is_transposed("solve_triangular", trans)

    def apply(a: Node, b: Node) -> Node:
        first = conj(a) if trans in (2, "C") else a
        return factor.triangular_solve(
            first, b, lower=bool(lower), transposed=turned, unit=bool(unit_diagonal), on_error=on_error
        )

    return with_columns("solve_triangular", first, right, apply)


# --- LU ---------------------------------------------------------------------------------------------------------------


def lu_factor(a: Any) -> tuple[Node, Node]:
    """`(lu, perm)` for `lu_solve`: the factors in one matrix, L below the diagonal, on which it has ones, and U; and
    the order of the rows: a[perm] = L U. SciPy's second result counts exchanges of rows instead."""
    (node,) = matrices_of("lu_factor", a)
    matrices.check_matrices("lu_factor", node)
    return HOOKS.complexes.lu(node) if type(node) is Complex else factor.lu(node)[:2]


def lu_solve(lu_and_perm: Any, b: Any, trans: Any = 0, on_error: str = "raise") -> Node:
    """x with a x = b, or a' x = b with trans=1, given what `lu_factor` makes of `a`."""
    packed, perm = lu_and_perm
    packed, right = matrices_of("lu_solve", packed, b, vectors=True)
    turned = _is_transposed("lu_solve", trans)

    def apply(packed: Node, b: Node) -> Node:
        if type(packed) is not Complex:
            return solve_by_lu(packed, as_node(perm), b, turned, on_error)
        order = as_node(perm) if not turned else argsort(as_node(perm))
        rows = layout.expand(order, (order.ndim,))
        right = b if turned else take_along_axis(b, rows, -2)
        for lower in (not turned, turned):
            right = solve_triangular(packed, right, trans, lower, unit_diagonal=lower, on_error=on_error)
        return take_along_axis(right, rows, -2) if turned else right

    return with_columns("lu_solve", packed, right, apply)


def solve_by_lu(packed: Node, perm: Node, b: Node, turned: bool, on_error: str) -> Node:
    """x with a x = b, or a' x = b, from the factors of a[perm]."""
    if not turned:
        half = factor.triangular_solve(packed, factor.permuted(b, perm), lower=True, unit=True, on_error=on_error)
        return factor.triangular_solve(packed, half, lower=False, on_error=on_error)
    half = factor.triangular_solve(packed, b, lower=False, transposed=True, on_error=on_error)
    whole = factor.triangular_solve(packed, half, lower=True, transposed=True, unit=True, on_error=on_error)
    return factor.permuted(whole, perm, inverse=True)


def _lu_of_any(a: Node) -> tuple[Node, Node]:
    """`lu_factor` of matrices that need not be square.

    With a[p] = L U, of which L1 and U1 are square, L2 what L has below them and U2 what U has beside, the derivative of
    a[p] is, beside and below L1'^-1 B U1'^-1, L1'^-1 of that of U2, and that of L2 times U1'^-1; B is the strict lower
    triangle of L1' dL1 - dU2 U2' and the upper one of dU1 U1' - L2' dL2, where d stands for a derivative.
    """
    found, perm = factor.lu_of_any(stop_gradient(a))

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Any, wanted: Any) -> list[Node]:
        count = as_size_node(sizes.minimum(*a.type.shape[-2:]))
        first, rest = slice(None, count), slice(count, None)
        square, below, beside = (results[0][..., rows, columns] for rows, columns in _parts(first, rest))
        of_square, of_below, of_beside = (given[0][..., rows, columns] for rows, columns in _parts(first, rest))
        of_lower = triangle(of_square, strict=True)
        of_lower = of_lower + matmul(layout.transpose(triangle(square, strict=True)), of_lower)
        of_upper = matmul(triangle(of_square, lower=False), layout.transpose(triangle(square, lower=False)))
        inner = triangle(of_lower - matmul(of_beside, layout.transpose(beside)), strict=True)
        inner = inner + triangle(of_upper - matmul(layout.transpose(below), of_below), lower=False)

        def by_left(x: Node) -> Node:
            return factor.triangular_solve(square, x, transposed=True, unit=True)

        def by_right(x: Node) -> Node:
            return layout.transpose(factor.triangular_solve(square, layout.transpose(x), lower=False, on_error="nan"))

        whole = layout.zeros(a.type.dtype, a.type.shape)
        for (rows, columns), part in zip(
            _parts(first, rest), (by_right(by_left(inner)), by_right(of_below), by_left(of_beside)), strict=True
        ):
            whole = set_subtensor(whole[..., rows, columns], part)
        return [factor.permuted(whole, perm, inverse=True)]

    return overridden([found], [a], rule)[0], perm


def _parts(first: slice, rest: slice) -> tuple[tuple[slice, slice], ...]:
    return (first, first), (rest, first), (first, rest)


def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> tuple[Node, ...]:
    """`(p, l, u)` with a = p l u of an m x n matrix: a permutation, m x m, a lower triangle with ones on its diagonal,
    m x k, an upper one, k x n, k being the smaller of m and n. permute_l: `(p l, u)`. p_indices: p as the order of
    rows, a = l[p] u (SciPy's)."""
    (node,) = matrices_of("lu", a)
    rows, columns = node.type.shape[-2:]
    if type(node) is Complex:
        packed, perm = HOOKS.complexes.lu(node)
    else:
        packed, perm = lu_factor(node) if sizes.equal(rows, columns) else _lu_of_any(node)
    part = node.args[0] if type(node) is Complex else node
    count, one = as_size_node(sizes.minimum(rows, columns)), eye(as_size_node(rows), dtype=part.type.dtype)
    left = triangle(packed, strict=True)[..., :, :count] + one[:, :count]
    right = triangle(packed, lower=False)[..., :count, :]
    if permute_l:
        return factor.permuted(left, perm, inverse=True), right
    if p_indices:
        return argsort(perm), left, right
    wide = layout.broadcast_to(layout.expand(one, range(packed.ndim - 2)), (*perm.type.shape, rows))
    return factor.permuted(wide, perm, inverse=True), left, right


# --- solve ------------------------------------------------------------------------------------------------------------

STRUCTURES = {
    "gen": "general", "general": "general", "sym": "symmetric", "symmetric": "symmetric", "her": "symmetric",
    "hermitian": "symmetric", "pos": "positive", "positive definite": "positive", "positive": "positive",
    "diagonal": "diagonal", "lower triangular": "lower", "lower_triangular": "lower", "lower": "lower",
    "upper triangular": "upper", "upper_triangular": "upper", "upper": "upper", "tridiagonal": "general",
    "banded": "general", "toeplitz": "general",
}  # fmt: skip
"""The values of `assume_a`, in SciPy's words and Theano's."""


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    *,
    assume_a: str | None = "general",
    transposed: bool = False,
    on_error: str = "raise",
) -> Node:
    """x with a x = b, or a' x = b where `transposed`; a vector `b` is one column, and so is x; batches broadcast.

    assume_a: what is known of `a`, in SciPy's words or Theano's: "pos" (positive definite), "sym", "diagonal",
    "lower triangular", "upper triangular", "general". Of a symmetric one the upper triangle is read, with `lower` the
    lower one; of a triangular or diagonal one what its name says. on_error: "raise" makes a singular (indefinite)
    matrix numpy.linalg.LinAlgError, which names it; "nan" makes its solution NaN.

    Without `assume_a` a function takes what the graph shows: `cholesky(k)`, `tril(m)`, `diag(v)`, products of them and
    their transposes are solved as what they are.

        >>> T.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [8.0, 8.0]).eval()
        array([4., 2.])
    """
    kind = STRUCTURES.get("general" if assume_a is None else assume_a)
    if kind is None:
        raise GraphValueError(f"solve: assume_a={assume_a!r} must be one of {', '.join(STRUCTURES)}")
    check_on_error("solve", on_error)
    first, right = matrices_of("solve", a, b, vectors=True)
    matrices.check_matrices("solve", first)

    def apply(a: Node, b: Node) -> Node:
        match kind:
            case "positive":
                return matrices.solve(a if lower else conj(layout.transpose(a)), b, "positive", on_error=on_error)
            case "symmetric":
                return matrices.solve(symmetric(a, lower), b, on_error=on_error)
            case "diagonal":
                return divided(b, diagonal(a, 0, -2, -1), on_error)
            case "lower" | "upper":
                return factor.triangular_solve(a, b, lower=kind == "lower", transposed=transposed, on_error=on_error)
        return matrices.solve(a, b, transposed=transposed, on_error=on_error)

    return with_columns("solve", first, right, apply)


def symmetric(a: Node, lower: bool) -> Node:
    """The symmetric matrices of which one triangle is given."""
    turned = layout.transpose(a)
    rows, columns = coordinates(a.type.shape[-1], a.type.shape[-1])
    below = elementwise("less_equal", columns, rows)
    return where(below, a, turned) if lower else where(below, turned, a)


def hermitian(a: Node, lower: bool) -> Node:
    """The Hermitian matrices of which one triangle, and the real part of the diagonal, are given."""
    rows, columns = coordinates(a.type.shape[-1], a.type.shape[-1])
    read = elementwise("greater" if lower else "less", rows, columns)
    other = where(elementwise("equal", rows, columns), cast(real(a), a.type.dtype), conj(layout.transpose(a)))
    return where(read, a, other)


def divided(b: Node, divisors: Node, on_error: str) -> Node:
    """Rows of matrices over numbers, of which none may be 0: as many systems of one equation."""
    rows = layout.expand(b, (b.ndim - 1,))
    one = layout.expand(divisors, (divisors.ndim, divisors.ndim + 1))
    result = factor.triangular_solve(one, rows, lower=True, on_error=on_error)
    return layout.drop(result, (result.ndim - 2,))


def inv(a: Any, on_error: str = "raise") -> Node:
    """The inverse of each matrix. `inv(a) @ b` is computed as `solve(a, b)`. A singular matrix is
    numpy.linalg.LinAlgError, or NaN with on_error="nan"."""
    (node,) = matrices_of("inv", a)
    return matrices.inverse(node, check_on_error("inv", on_error))


def det(a: Any) -> Node:
    """The determinant of each matrix; its derivative, the cofactors, is right for singular matrices too."""
    node = as_node(a)
    if type(node) is Complex:
        return HOOKS.complexes.det(node)
    return matrices.det(matrices_of("det", a)[0])


def slogdet(a: Any) -> tuple[Node, Node]:
    """The determinant's sign, and the logarithm of its magnitude, which does not overflow; 0 and -inf of a singular
    matrix, at which the derivative of the logarithm is NaN."""
    if type(as_node(a)) is Complex:
        return HOOKS.complexes.slogdet(as_node(a))
    (node,) = matrices_of("slogdet", a)
    return matrices.detsign(node), matrices.logabsdet(node)


# --- QR ---------------------------------------------------------------------------------------------------------------

QR_MODES = ("reduced", "complete", "r", "economic", "full")


def qr(a: Any, mode: str = "reduced", *, pivoting: bool = False) -> Any:
    """`(q, r)` with q r = a, q of orthonormal columns, r an upper triangle (NumPy's).

    mode: "reduced", min(m, n) columns; "complete", m columns, whose derivative is that of what depends on no more than
    the space of those beyond; "r", r alone. pivoting: with them, last, the order p of the columns in which the diagonal
    of r falls, q r = a[:, p] (SciPy's).
    """
    if mode not in QR_MODES:
        raise GraphValueError(f"qr: mode={mode!r} must be one of {', '.join(QR_MODES[:3])}")
    (node,) = matrices_of("qr", a)
    if type(node) is Complex:
        if mode not in ("reduced", "economic", "r") or pivoting:
            raise GraphTypeError(f"qr of {describe(node)} of type {node.type}: of complex numbers it is reduced")
        q, r = factors("qr", node)
        return r if mode == "r" else (q, r)
    order = factor.qr_order(stop_gradient(node)) if pivoting else None
    turned = node if order is None else layout.transpose(factor.permuted(layout.transpose(node), order))
    q, r = factor.qr(turned, complete=mode in ("complete", "full"))
    found = (r,) if mode == "r" else (q, r)
    return (*found, order) if pivoting else found if mode != "r" else r


# --- symmetric eigenproblems ------------------------------------------------------------------------------------------


def _reads_lower(name: str, uplo: str) -> bool:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise GraphValueError(f"{name}: UPLO={uplo!r} must be 'L' or 'U'")
    return uplo.upper() == "L"


def _chosen(name: str, w: Node, by_index: Any, by_value: Any) -> Any:
    """The index of the eigenvalues that are asked for; None for all."""
    if by_index is not None and by_value is not None:
        raise GraphValueError(f"{name}: subset_by_index or subset_by_value, not both")
    if by_index is not None:
        first, last = by_index
        count = w.type.shape[-1]
        is_known = all(isinstance(each, int) for each in (first, last, count))
        if is_known and not 0 <= first <= last < count:
            raise GraphValueError(f"{name}: subset_by_index=[{first}, {last}] of {count} eigenvalues")
        return slice(first, last + 1)
    if by_value is None:
        return None
    if w.ndim != 1:
        raise RankError(f"{name}: subset_by_value is for one matrix, as several have different numbers of them")
    above, most = by_value
    return elementwise("logical_and", elementwise("greater", w, above), elementwise("less_equal", w, most))


def eigh(
    a: Any,
    UPLO: str = "L",  # noqa: N803
    *,
    b: Any = None,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    on_error: str = "raise",
) -> tuple[Node, Node]:
    """`(w, v)`: the eigenvalues of a symmetric matrix in rising order and its eigenvectors, the columns of `v`.

    The lower triangle is read, the upper one for UPLO="U"; the derivative stands in it. b: of the problem
    a v = w b v with a positive definite `b`; then v' b v is the identity. Vectors of equal eigenvalues have derivatives
    only in what depends on the space they span alone, and then NaN elsewhere; functions of the eigenvalues have all.

    Of all that are computed, subset_by_index=[first, last] leaves those of these places, both among them, and
    subset_by_value=[low, high] those above `low` and up to `high` of one matrix (SciPy's).
    """
    lower = _reads_lower("eigh", UPLO)
    if b is None and type(as_node(a)) is Complex:
        w, v = factors("eigh" if lower else "eigh_upper", hermitian(square_of("eigh", a), lower))
    elif b is None:
        w, v = factor.eigh(matrices_of("eigh", a)[0], lower=lower)
    else:
        inner, half = _reduced(a, b, lower, on_error)
        w, v = factor.eigh(inner, lower=True)
        v = factor.triangular_solve(half, v, lower=True, transposed=True)
    chosen = _chosen("eigh", w, subset_by_index, subset_by_value)
    return (w, v) if chosen is None else (w[..., chosen], v[..., chosen])


def eigvalsh(
    a: Any,
    UPLO: str = "L",  # noqa: N803
    *,
    b: Any = None,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    on_error: str = "raise",
) -> Node:
    """The eigenvalues of `eigh` alone."""
    lower = _reads_lower("eigvalsh", UPLO)
    if b is None:
        w = factor.eigvalsh(matrices_of("eigvalsh", a)[0], lower=lower)
    else:
        w = factor.eigvalsh(_reduced(a, b, lower, on_error)[0], lower=True)
    chosen = _chosen("eigvalsh", w, subset_by_index, subset_by_value)
    return w if chosen is None else w[..., chosen]


def _reduced(a: Any, b: Any, lower: bool, on_error: str) -> tuple[Node, Node]:
    """L^-1 a L'^-1, whose eigenvalues those of a v = w b v are, and L, the Cholesky factor of b."""
    left, right = in_one_batch("eigh", *matrices_of("eigh with b", a, b))
    half = factor.cholesky(right if lower else layout.transpose(right), on_error=on_error)
    once = factor.triangular_solve(half, symmetric(left, lower), lower=True)
    return factor.triangular_solve(half, layout.transpose(once), lower=True), half


# --- other eigenproblems ----------------------------------------------------------------------------------------------


def eig_parts(a: Any) -> tuple[Node, Node, Node, Node]:
    """The eigenvalues of a square matrix and its eigenvectors, the columns: real and imaginary parts `(wr, wi, vr,
    vi)`."""
    return factor.eig(matrices_of("eig", a)[0])


def eigvals_parts(a: Any) -> tuple[Node, Node]:
    """The eigenvalues of a square matrix: real and imaginary parts."""
    return factor.eigvals(matrices_of("eigvals", a)[0])


def if_real(message: str, imaginary: Node, parts: Sequence[tuple[Node, Node]]) -> list[Node]:
    """Tensors of real and imaginary parts where all of `imaginary` is 0: the real ones. Else complex ones where a call
    of `jit` tells so; an error of the call, `message`, in graphs."""
    are_real = all_of(elementwise("equal", imaginary, 0))
    answer = told(are_real)
    if answer is None:
        return [checked(part, (cast(are_real, "int64"),), message) for part, _ in parts]
    return [part if answer else pair(part, other) for part, other in parts]


def _complex_eigenvalues(name: str, node: Node) -> str:
    return f"{name} of {describe(node)}: it has complex eigenvalues, whose parts {name}_parts gives"


def eig(a: Any) -> tuple[Node, Node]:
    """`(w, v)`: the eigenvalues of a square matrix and its eigenvectors, the columns, where all are real.

    Of a real matrix with complex eigenvalues a call of `jit` gives complex ones. A function of variables raises an
    error that names the matrix: `eig_parts` gives real and imaginary parts, and `eig` of `a.astype("complex128")`
    complex ones.
    """
    if type(as_node(a)) is Complex:
        values, vectors = factors("eig", square_of("eig", a))
        return values, vectors
    (node,) = matrices_of("eig", a)
    wr, wi, vr, vi = factor.eig(node)
    w, v = if_real(_complex_eigenvalues("eig", node), wi, [(wr, wi), (vr, vi)])
    return w, v


def eigvals(a: Any) -> Node:
    """The eigenvalues of a square matrix, where all are real; else as `eig`."""
    if type(as_node(a)) is Complex:
        return factors("eigvals", square_of("eigvals", a))[0]
    (node,) = matrices_of("eigvals", a)
    wr, wi = factor.eigvals(node)
    return if_real(_complex_eigenvalues("eigvals", node), wi, [(wr, wi)])[0]


# --- singular values --------------------------------------------------------------------------------------------------


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """`(u, s, vh)` with u diag(s) vh = a: singular values in falling order, orthonormal columns of u and rows of vh
    (NumPy's). full_matrices: square u and vh. compute_uv=False: s alone. hermitian: through `eigh`.

    Vectors have derivatives as those of `eigh`; the values have all but where the smallest is 0.
    """
    if not compute_uv and not hermitian:
        return svdvals(a)
    (node,) = matrices_of("svd", a)
    if type(node) is Complex and not hermitian:
        u, s, vh = factors("svd_full" if full_matrices else "svd", node)
        return u, s, vh
    if hermitian:
        return _hermitian_svd(node, compute_uv)
    square = sizes.equal(node.type.shape[-1], node.type.shape[-2])
    return factor.svd(node, full=bool(full_matrices) and not square)


def svdvals(a: Any) -> Node:
    """The singular values in falling order."""
    return factor.svdvals(matrices_of("svdvals", a)[0])


def _hermitian_svd(a: Node, compute_uv: bool) -> Any:
    w, v = factor.eigh(a, lower=True)
    order = argsort(-abs(w))
    s = take_along_axis(abs(w), order, -1)
    if not compute_uv:
        return s
    turned = take_along_axis(v, layout.expand(order, (order.ndim - 1,)), -1)
    sign = take_along_axis(where(w < 0, -1.0, 1.0), order, -1)
    u = turned * layout.expand(cast(sign, a.type.dtype), (sign.ndim - 1,))
    return u, s, layout.transpose(turned)
