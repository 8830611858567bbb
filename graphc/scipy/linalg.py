"""The functions of `scipy.linalg` of real matrices, of arrays and of tensors, with SciPy's arguments.

    linalg.cho_solve(linalg.cho_factor(k), y)     as in SciPy, with derivatives

In: what SciPy's functions of these names take. Out: SciPy's results; of tensors those of `graphc.tensor.linalg`
(docs/linalg.md says what is computed, and which derivatives there are). What SciPy is told about memory
(`overwrite_a`), checks (`check_finite`) and LAPACK's drivers changes nothing of tensors.
"""

# ruff: noqa: PLW0108 - the lambdas have SciPy's signatures

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor.linalg as matrices
from graphc.errors import GraphValueError, RankError
from graphc.ir.node import Node, describe
from graphc.lax import scan
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.named import offer
from graphc.startup.hooks import lazily, nearest
from graphc.tensor.arranging import matrix_transpose
from graphc.tensor.creation import arange, eye, zeros_like
from graphc.tensor.elementary import abs, conj, maximum, where
from graphc.tensor.indexing import flip, set_subtensor
from graphc.tensor.joining import concatenate
from graphc.tensor.products import diag, matmul
from graphc.tensor.shaping import reshape

if TYPE_CHECKING:
    from graphc.scipy.linalg_names import *  # noqa: F403


def _machine_rtol(a: Any) -> Node:
    """max(m, n) times the precision of the dtype, of a matrix."""
    node = as_node(a)
    return cast(maximum(node.shape[node.ndim - 2], node.shape[node.ndim - 1]), "float64") * _machine_eps(node)


def _is_none(name: str, **options: Any) -> None:
    """Raise GraphValueError for an option that graphc's function has not."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise GraphValueError(f"{name} of a tensor: {option}={value!r} is not supported")


# --- LU: SciPy counts exchanges of rows -------------------------------------------------------------------------------


def _exchanged(rows: Node, first: Any, second: Any) -> Node:
    one, other = rows[first], rows[second]
    changed = set_subtensor(rows[first], other)
    return set_subtensor(changed[second], one)


def _one_matrix(name: str, a: Any) -> Node:
    node = as_node(a)
    if node.ndim != 2:
        raise RankError(f"{name}: {describe(node)} of type {node.type} is no matrix; graphc.vmap takes batches")
    return node


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Node, Node]:
    """`(lu, piv)`: both factors in one matrix, and with which row each row was exchanged, in order, as int32. Raises
    RankError for what is no matrix."""
    packed, perm = matrices.lu_factor(_one_matrix("lu_factor", a))
    places = arange(perm.shape[0], dtype="int64")

    def step(rows: Any, each: Any) -> Any:
        place, wanted = each
        found = where(rows == wanted, places, 0).sum()
        return _exchanged(rows, place, found), found

    _, pivots = scan(step, places, (places, cast(perm, "int64")))
    return packed, cast(pivots, "int32")


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True) -> Node:
    """x with a x = b, or a' x = b with trans=1, given what `lu_factor` makes of `a`."""
    packed, pivots = lu_and_piv
    pivots = cast(as_node(pivots), "int64")
    places = arange(pivots.shape[0], dtype="int64")
    perm, _ = scan(lambda rows, each: (_exchanged(rows, *each), 0), places, (places, pivots))
    return matrices.lu_solve((_one_matrix("lu_solve", packed), perm), b, trans)


# --- factors ----------------------------------------------------------------------------------------------------------


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """`(q, r)`, with `pivoting` also the order of columns; mode: "full", "economic", or "r" for `(r,)` alone."""
    if mode not in ("full", "economic", "r"):
        raise GraphValueError(f"qr of a tensor: mode={mode!r} is none of 'full', 'economic', 'r'")
    found = matrices.qr(a, "complete" if mode == "r" else mode, pivoting=pivoting)
    return found[1:] if mode == "r" else found


def rq(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", check_finite: bool = True) -> Any:
    """`(r, q)` with a = r q, r an upper triangle; mode: "full", "economic", or "r" for r alone. Signs of rows are those
    that QR gives."""
    q, r = matrices.qr(matrix_transpose(flip(_one_matrix("rq", a), 0)), "reduced" if mode == "economic" else "complete")
    r, q = flip(flip(matrix_transpose(r), 0), 1), flip(matrix_transpose(q), 0)
    return r if mode == "r" else (r, q)


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """`(w, v)`: eigenvalues of a symmetric matrix in rising order and eigenvectors, of a v = w b v where `b` is given.
    Raises GraphValueError for the types 2 and 3."""
    _is_none("eigh", type=None if type == 1 else type)
    chosen: Any = {"subset_by_index": subset_by_index, "subset_by_value": subset_by_value}
    if eigvals_only:
        return matrices.eigvalsh(a, "L" if lower else "U", b=b, **chosen)
    return matrices.eigh(a, "L" if lower else "U", b=b, **chosen)


def eigvalsh(a: Any, b: Any = None, **options: Any) -> Node:
    """The eigenvalues of `eigh`, which takes the same options."""
    found: Node = eigh(a, b, eigvals_only=True, **options)
    return found


def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: str = "a", *rest: Any, **options: Any) -> Any:
    """`eigh` of the matrix of the diagonals d, and e on both sides of it, which is made. Raises GraphValueError for a
    selection."""
    _is_none("eigh_tridiagonal", select=None if select == "a" else select)
    return eigh(diag(d) + diag(e, 1) + diag(e, -1), eigvals_only=eigvals_only)


def eigvalsh_tridiagonal(d: Any, e: Any, select: str = "a", *rest: Any, **options: Any) -> Any:
    """The eigenvalues of `eigh_tridiagonal`."""
    return eigh_tridiagonal(d, e, True, select)


def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """`(w, v)` of a matrix whose eigenvalues are real: others are an error of the call. right=False: w alone."""
    _is_none("eig", b=b, left=left, homogeneous_eigvals=homogeneous_eigvals)
    return matrices.eig(a) if right else matrices.eigvals(a)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """`(u, s, vh)`, or s alone."""
    return matrices.svd(a, full_matrices, compute_uv)


# --- inverses ---------------------------------------------------------------------------------------------------------


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """The Moore-Penrose inverse; singular values up to `rtol` times the largest count as 0, by default max(m, n) times
    the machine's precision. Raises GraphValueError for `atol`."""
    _is_none("pinv", atol=None if atol == 0 else atol)
    limit = _machine_rtol(a) if rtol is None else rtol
    inverse = matrices.pinv(a, rtol=limit)
    return (inverse, matrices.matrix_rank(a, rtol=limit)) if return_rank else inverse


def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False, check_finite: bool = True
) -> Any:
    """`pinv` of a symmetric or Hermitian matrix, of which one triangle is read."""
    turned = as_node(a) if lower else conj(matrix_transpose(a))
    symmetric = matrices.tril(turned) + conj(matrix_transpose(matrices.tril(turned, -1)))
    return pinv(symmetric, atol=atol, rtol=rtol, return_rank=return_rank)


def inv(
    a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False
) -> Node:
    """The inverse of each matrix, of which only what `assume_a` names is read."""
    if assume_a in (None, "general", "gen"):
        return matrices.inv(a)
    node = as_node(a)
    return matrices.solve(node, eye(node.shape[node.ndim - 1], dtype=node.type.dtype), lower, assume_a=assume_a)


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Node:
    """x with a x = b, or a' x = b where `transposed`; `assume_a` says what is known of `a`, `lower` which triangle of a
    symmetric one is read."""
    return matrices.solve(a, b, lower, assume_a=assume_a, transposed=transposed)


# --- functions of matrices --------------------------------------------------------------------------------------------


def expm_frechet(
    A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True  # noqa: N803
) -> Any:  # fmt: skip
    """`(exp(A), L)`: the exponential and its derivative in the direction E, or L alone; read off the exponential of
    [[A, E], [0, A]] (Higham, Functions of Matrices, 3.6)."""
    a, e = as_node(A), as_node(E)
    n = a.shape[0]
    whole = matrices.expm(concatenate([concatenate([a, e], 1), concatenate([zeros_like(a), a], 1)], 0))
    return (whole[:n, :n], whole[:n, n:]) if compute_expm else whole[:n, n:]


def _turned(A: Any) -> tuple[Node, Node]:  # noqa: N803
    """Cosine and sine of a matrix, the blocks of exp([[0, -A], [A, 0]])."""
    a = as_node(A)
    n, zero = a.shape[0], zeros_like(a)
    whole = matrices.expm(concatenate([concatenate([zero, -a], 1), concatenate([a, zero], 1)], 0))
    return whole[:n, :n], whole[n:, :n]


def cosm(A: Any) -> Node:  # noqa: N803
    """The cosine of a matrix."""
    return _turned(A)[0]


def sinm(A: Any) -> Node:  # noqa: N803
    """The sine of a matrix."""
    return _turned(A)[1]


def tanm(A: Any) -> Node:  # noqa: N803
    """The tangent of a matrix: x with cosm(A) x = sinm(A)."""
    return matrices.solve(*_turned(A))


def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Node, Node]:  # noqa: N803
    """The orthogonal R for which A R is nearest to B, and the sum of the singular values of A* B."""
    u, s, vh = matrices.svd(matmul(matrix_transpose(conj(as_node(A))), as_node(B)), False)
    return matmul(u, vh), s.sum()


# --- patterns ---------------------------------------------------------------------------------------------------------


def khatri_rao(a: Any, b: Any) -> Node:
    """The Kronecker product of each column of a with that of b."""
    left, right = as_node(a), as_node(b)
    return reshape(left[:, None, :] * right[None, :, :], (-1, left.shape[1]))


def fiedler(a: Any) -> Node:
    """The matrix of abs(a[i] - a[j])."""
    node = as_node(a)
    return abs(node[:, None] - node[None, :])


def leslie(f: Any, s: Any) -> Node:
    """The matrix of a population: births f in the first row, survival s below the diagonal."""
    first, below = as_node(f), diag(s, -1)
    return set_subtensor(below[0], first)


def diagsvd(s: Any, M: int, N: int) -> Node:  # noqa: N803
    """The M x N matrix with s on its diagonal."""
    node = as_node(s)
    square = diag(node)
    if M == N:
        return square
    pad = zeros_like(square[:, :1]) + np.zeros((1, max(M, N) - min(M, N)), node.type.dtype)
    return concatenate([square, pad if M < N else matrix_transpose(pad)], 1 if M < N else 0)


def kron(a: Any, b: Any) -> Node:
    """The Kronecker product, NumPy's; SciPy's was removed from `scipy.linalg`."""
    return matrices.kron(a, b)


vars(kron)["of_arrays"] = np.kron

# --- the same functions, with SciPy's arguments -----------------------------------------------------------------------

_RENAMED: dict[str, Callable[..., Any]] = {
    "block_diag": lambda *arrs: matrices.block_diag(*arrs),
    "cho_factor": lambda a, lower=False, overwrite_a=False, check_finite=True: matrices.cho_factor(a, lower),
    "cho_solve": lambda c_and_lower, b, overwrite_b=False, check_finite=True: matrices.cho_solve(c_and_lower, b),
    "cholesky": lambda a, lower=False, overwrite_a=False, check_finite=True: matrices.cholesky(a, lower=lower),
    "circulant": lambda c: matrices.circulant(c),
    "companion": lambda a: matrices.companion(a),
    "coshm": lambda A: matrices.coshm(A),  # noqa: N803
    "det": lambda a, overwrite_a=False, check_finite=True: matrices.det(a),
    "eigvals": lambda a, b=None, overwrite_a=False, check_finite=True: eig(a, b, right=False),
    "expm": lambda A: matrices.expm(A),  # noqa: N803
    "hankel": lambda c, r=None: matrices.hankel(c, r),
    "logm": lambda A: matrices.logm(A),  # noqa: N803
    "lstsq": lambda a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None: (
        matrices.lstsq(a, b, _machine_eps(a) if cond is None else cond)
    ),
    "lu": lambda a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False: matrices.lu(
        a, permute_l, p_indices
    ),
    "matmul_toeplitz": lambda c_or_cr, x, check_finite=False, workers=None: matrices.matmul_toeplitz(c_or_cr, x),
    "norm": lambda a, ord=None, axis=None, keepdims=False, check_finite=True: matrices.norm(a, ord, axis, keepdims),
    "null_space": lambda A, rcond=None, **options: matrices.null_space(A, rcond),  # noqa: N803
    "orth": lambda A, rcond=None: matrices.orth(A, rcond),  # noqa: N803
    "polar": lambda a, side="right": matrices.polar(a, side),
    "sinhm": lambda A: matrices.sinhm(A),  # noqa: N803
    "solve_banded": lambda l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True: (
        matrices.solve_banded(l_and_u, ab, b)
    ),
    "solve_continuous_lyapunov": lambda a, q: matrices.solve_continuous_lyapunov(a, q),
    "solve_discrete_lyapunov": lambda a, q, method=None: matrices.solve_discrete_lyapunov(a, q),
    "solve_lyapunov": lambda a, q: matrices.solve_continuous_lyapunov(a, q),
    "solve_sylvester": lambda a, b, q: matrices.solve_sylvester(a, b, q),
    "solve_toeplitz": lambda c_or_cr, b, check_finite=True: matrices.solve_toeplitz(c_or_cr, b),
    "solve_triangular": lambda a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True: (
        matrices.solve_triangular(a, b, trans, lower, unit_diagonal)
    ),
    "solveh_banded": lambda ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True: (
        matrices.solveh_banded(ab, b, lower)
    ),
    "sqrtm": lambda A: matrices.sqrtm(A),  # noqa: N803
    "svdvals": lambda a, overwrite_a=False, check_finite=True: matrices.svdvals(a),
    "tanhm": lambda A: matrices.tanhm(A),  # noqa: N803
    "toeplitz": lambda c, r=None: matrices.toeplitz(c, r),
}


def _machine_eps(a: Any) -> float:
    """The least ratio of singular values that counts in SciPy's lstsq."""
    return float(np.finfo("float32" if as_node(a).type.dtype == "float32" else "float64").eps)


def _documented() -> list[str]:
    """Give the functions of the table their names and docstrings."""
    for name, function in _RENAMED.items():
        function.__name__ = function.__qualname__ = name
        ours = "solve_continuous_lyapunov" if name == "solve_lyapunov" else name
        function.__doc__ = getattr(matrices, ours).__doc__
        globals()[name] = function
    return sorted([*_RENAMED, *_WRITTEN])


_WRITTEN = (
    "cosm diagsvd eig eigh eigh_tridiagonal eigvalsh eigvalsh_tridiagonal expm_frechet fiedler inv khatri_rao kron "
    "leslie lu_factor lu_solve orthogonal_procrustes pinv pinvh qr rq sinm solve svd tanm".split()
)
__all__ = _documented()  # noqa: PLE0605 - the names are SciPy's

_COMPLEX = "its results are complex, and nobody has written it"
_NUMBERS = "it is made of whole numbers alone: SciPy's own serves"
_NO_RULE = "nobody has written its derivative"
_INSTEAD = {
    "fiedler_companion": "companion has the same eigenvalues",
    **dict.fromkeys(("cdf2rdf", "dft", "rsf2csf"), _COMPLEX),
    **dict.fromkeys("hadamard helmert hilbert invhilbert invpascal pascal".split(), _NUMBERS),
    **dict.fromkeys(("cholesky_banded", "cho_solve_banded"), "solveh_banded solves systems of bands"),
    **dict.fromkeys(("eig_banded", "eigvals_banded"), "eigh takes the whole matrix"),
    **dict.fromkeys(
        ("bandwidth", "ishermitian", "issymmetric"), "it is a question about values, which a tensor has not"
    ),
    "convolution_matrix": "toeplitz of the padded vector is this matrix",
    "fractional_matrix_power": "expm(t * logm(A)) computes it",
    "funm": "graphc.tensor.linalg.funm_hermitian takes functions of symmetric matrices",
    "solve_circulant": "solve(circulant(c), b) computes it",
    **dict.fromkeys(
        "cossin hessenberg ldl matrix_balance ordqz qr_delete qr_insert qr_multiply qr_update qz schur signm "
        "solve_continuous_are solve_discrete_are subspace_angles".split(),
        _NO_RULE,
    ),
}
"""Functions of `scipy.linalg` that do not exist here, with the reason."""


if not TYPE_CHECKING:  # which know the names
    __getattr__ = lazily(__name__, {}, lambda name: _INSTEAD.get(name) or nearest(name, __all__))


offer(globals())
