"""Theano's nlinalg: NumPy's linear algebra under the names of its ops.

In: matrices. Out: nodes. An op of Theano's is applied as there: `MatrixInverse()(a)`, `Eigh("U")(a)`; `matrix_inverse`
is one, and so are the others of small letters.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphValueError, RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.tensor.indexing import diagonal
from graphc.tensor.linalg import factors, functions
from graphc.tensor.linalg.structured import tensorinv, tensorsolve
from graphc.tensor.products import diag as diag_of, dot, kron as kron_of, trace as trace_of
from graphc.tensor.shaping import of_rank

__all__ = [
    "MATRIX_STRUCTURES", "SVD", "AllocDiag", "Cholesky", "Det", "Eig", "Eigh", "Eigvalsh", "Expm", "ExtractDiag",
    "MatrixInverse", "MatrixPinv", "QRFull", "QRIncomplete", "Solve", "TensorInv", "TensorSolve", "alloc_diag",
    "cho_solve", "cholesky", "det", "diag", "eig", "eigh", "eigvalsh", "expm", "extract_diag", "kron", "lstsq",
    "matrix_dot", "matrix_inverse", "matrix_power", "norm", "pinv", "qr", "solve", "solve_lower_triangular",
    "solve_symmetric", "solve_upper_triangular", "svd", "tensorinv", "tensorsolve", "trace",
]  # fmt: skip


class ParametrisedOp:
    """An op of one of Theano's classes: a function with parameters; equal where these are."""

    __props__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).items()))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__)
        return f"{type(self).__name__}{{{given}}}" if given else type(self).__name__


class MatrixPinv(ParametrisedOp):
    """The pseudo-inverse."""

    def __call__(self, x: Any) -> Node:
        """The pseudo-inverse of a matrix, as `linalg.pinv`."""
        return functions.pinv(x, 1e-15)


class MatrixInverse(ParametrisedOp):
    """The inverse."""

    def __call__(self, x: Any) -> Node:
        """The inverse of a matrix, as `linalg.inv`."""
        return factors.inv(x)


class AllocDiag(ParametrisedOp):
    """The matrix with a vector on its diagonal."""

    def __call__(self, diag: Any) -> Node:
        """The matrix with this diagonal. Raises GraphTypeError for what is no vector."""
        node = of_rank(diag, "AllocDiag: {} is no vector", 1, 1)
        return diag_of(node)


class ExtractDiag(ParametrisedOp):
    """A matrix's diagonal."""

    __props__ = ("view",)

    def __init__(self, view: bool = False) -> None:
        self.view = view

    def __call__(self, x: Any) -> Node:
        """The diagonal of a matrix. Raises GraphTypeError for what is none."""
        node = of_rank(x, "ExtractDiag: {} is no matrix", 2, 2)
        return diagonal(node)


class Det(ParametrisedOp):
    """The determinant."""

    def __call__(self, x: Any) -> Node:
        """The determinant of a matrix."""
        return factors.det(x)


class Eig(ParametrisedOp):
    """Eigenvalues and eigenvectors, where these are real."""

    def __call__(self, x: Any) -> list[Node]:
        """Same as `linalg.eig`: a matrix of complex eigenvalues is an error of the call (Theano drops imaginary
        parts)."""
        return list(factors.eig(x))


class Eigh(ParametrisedOp):
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    __props__ = ("UPLO",)

    def __init__(self, UPLO: str = "L") -> None:  # noqa: N803
        if UPLO not in ("L", "U"):
            raise GraphValueError(f"Eigh: UPLO={UPLO!r} must be 'L' or 'U'")
        self.UPLO = UPLO

    def __call__(self, x: Any) -> list[Node]:
        """Same as `linalg.eigh`."""
        return list(factors.eigh(x, self.UPLO))


class QRFull(ParametrisedOp):
    """Both factors of `qr`."""

    __props__ = ("mode",)

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def __call__(self, x: Any) -> list[Node]:
        """Same as `linalg.qr`."""
        return list(factors.qr(x, self.mode))


class QRIncomplete(ParametrisedOp):
    """The second factor of `qr` alone."""

    __props__ = ("mode",)

    def __init__(self, mode: str = "r") -> None:
        self.mode = mode

    def __call__(self, x: Any) -> Node:
        """Same as `linalg.qr` of mode "r"."""
        found: Node = factors.qr(x, self.mode)
        return found


class SVD(ParametrisedOp):
    """The singular value decomposition."""

    __props__ = ("full_matrices", "compute_uv")

    def __init__(self, full_matrices: bool = True, compute_uv: bool = True) -> None:
        self.full_matrices, self.compute_uv = bool(full_matrices), bool(compute_uv)

    def __call__(self, x: Any) -> Any:
        """Same as `linalg.svd`."""
        found = factors.svd(x, self.full_matrices, self.compute_uv)
        return list(found) if self.compute_uv else found


class lstsq(ParametrisedOp):  # noqa: N801 - Theano's name
    """Least squares: `lstsq()(x, y, rcond)`."""

    def __call__(self, x: Any, y: Any, rcond: Any) -> list[Node]:
        """Same as `linalg.lstsq`."""
        return list(functions.lstsq(x, y, rcond))


class TensorInv(ParametrisedOp):
    """The inverse with respect to `tensordot`."""

    __props__ = ("ind",)

    def __init__(self, ind: int = 2) -> None:
        self.ind = ind

    def __call__(self, a: Any) -> Node:
        """Same as `linalg.tensorinv`."""
        return tensorinv(a, self.ind)


class TensorSolve(ParametrisedOp):
    """The solution of a tensor equation."""

    __props__ = ("axes",)

    def __init__(self, axes: Any = None) -> None:
        self.axes = tuple(axes) if isinstance(axes, list) else axes

    def __call__(self, a: Any, b: Any) -> Node:
        """Same as `linalg.tensorsolve`."""
        return tensorsolve(a, b, self.axes)


pinv, matrix_inverse, alloc_diag, extract_diag = MatrixPinv(), MatrixInverse(), AllocDiag(), ExtractDiag()
det, eig = Det(), Eig()


def matrix_dot(*args: Any) -> Node:
    """The product of several matrices or vectors, from left to right as `dot` has it."""
    if not args:
        raise GraphValueError("matrix_dot: it takes at least one matrix")
    result = as_node(args[0])
    for other in args[1:]:
        result = dot(result, other)
    return result


def diag(x: Any) -> Node:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    node = of_rank(x, "diag: {} is neither vector nor matrix", 1, 2)
    return diag_of(node)


def trace(X: Any) -> Node:  # noqa: N803
    """The sum of a matrix's diagonal."""
    return trace_of(X)


def eigh(a: Any, UPLO: str = "L") -> list[Node]:  # noqa: N803
    """Same as `linalg.eigh`."""
    return Eigh(UPLO)(a)


def qr(a: Any, mode: str = "reduced") -> Any:
    """Same as `linalg.qr`; modes of NumPy's past ("full", "economic") too."""
    return QRIncomplete(mode)(a) if mode == "r" else QRFull(mode)(a)


def svd(a: Any, full_matrices: Any = 1, compute_uv: Any = 1) -> Any:
    """Same as `linalg.svd`."""
    return SVD(full_matrices, compute_uv)(a)


def matrix_power(M: Any, n: int) -> Node:  # noqa: N803
    """Same as `linalg.matrix_power`; of a negative power Theano makes none."""
    return functions.matrix_power(M, n)


def norm(x: Any, ord: Any) -> Node:
    """Same as `linalg.norm` of a vector or matrix. Raises GraphTypeError for other ranks, as Theano does."""
    node = of_rank(x, "norm: {} is neither vector nor matrix", 1, 2)
    return functions.norm(node, ord)


# --- of slinalg -------------------------------------------------------------------------------------------------------


MATRIX_STRUCTURES = (
    "general", "symmetric", "lower_triangular", "upper_triangular", "hermitian", "banded", "diagonal", "toeplitz"
)  # fmt: skip
"""The structures that `Solve` may be told of a matrix."""


class Cholesky(ParametrisedOp):
    """The Cholesky factor."""

    __props__ = ("lower", "destructive", "on_error")

    def __init__(self, lower: bool = True, on_error: str = "raise") -> None:
        if on_error not in ("raise", "nan"):
            raise ValueError('on_error must be one of "raise" or "nan"')
        self.lower, self.destructive, self.on_error = lower, False, on_error

    def __call__(self, x: Any) -> Node:
        """Same as `linalg.cholesky`."""
        return factors.cholesky(x, lower=self.lower, on_error=self.on_error)


class Solve(ParametrisedOp):
    """The solution of a x = b.

    A triangle is read of a triangular matrix; of others, whatever is said of them, all is (Theano's).
    """

    __props__ = ("A_structure", "lower", "overwrite_A", "overwrite_b")

    def __init__(
        self,
        A_structure: str = "general",  # noqa: N803
        lower: bool = False,
        overwrite_A: bool = False,  # noqa: N803
        overwrite_b: bool = False,
    ) -> None:
        if A_structure not in MATRIX_STRUCTURES:
            raise ValueError("Invalid matrix structure argument", A_structure)
        self.A_structure, self.lower = A_structure, lower
        self.overwrite_A, self.overwrite_b = overwrite_A, overwrite_b

    def __call__(self, A: Any, b: Any) -> Node:  # noqa: N803
        """Same as `linalg.solve` of a matrix, and a vector or matrix."""
        if as_node(A).ndim != 2 or as_node(b).ndim not in (1, 2):
            raise RankError(f"Solve: {describe(as_node(A))} and {describe(as_node(b))} should be matrices")
        assumed = self.A_structure if self.A_structure.endswith("triangular") else "general"
        return factors.solve(A, b, assume_a=assumed)


class Eigvalsh(ParametrisedOp):
    """Eigenvalues of a v = w b v."""

    __props__ = ("lower",)

    def __init__(self, lower: bool = True) -> None:
        self.lower = bool(lower)

    def __call__(self, a: Any, b: Any) -> Node:
        """Same as `linalg.eigvalsh`; `b` may be None."""
        return factors.eigvalsh(a, "L" if self.lower else "U", b=b)


class Expm(ParametrisedOp):
    """The matrix exponential."""

    def __call__(self, A: Any) -> Node:  # noqa: N803
        """Same as `linalg.expm`."""
        return functions.expm(A)


cholesky, solve, expm, cho_solve = Cholesky(), Solve(), Expm(), factors.cho_solve
solve_lower_triangular = Solve(A_structure="lower_triangular", lower=True)
solve_upper_triangular = Solve(A_structure="upper_triangular", lower=False)
solve_symmetric = Solve(A_structure="symmetric")


def eigvalsh(a: Any, b: Any = None, lower: bool = True) -> Node:
    """The eigenvalues of a v = w b v, of symmetric `a` and positive definite `b`."""
    return Eigvalsh(lower)(a, b)


def kron(a: Any, b: Any) -> Node:
    """The Kronecker product. Raises TypeError where the ranks add up to less than 3, as Theano does."""
    left, right = as_node(a), as_node(b)
    if left.ndim + right.ndim <= 2:
        raise TypeError(f"kron: inputs dimensions must sum to 3 or more. You passed {left.ndim:d} and {right.ndim:d}.")
    return kron_of(left, right)


explain_all(globals())
