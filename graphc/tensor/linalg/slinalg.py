"""Theano's slinalg: SciPy's linear algebra under the names of its ops.

In: matrices. Out: nodes. An op of Theano's is applied as there: `Cholesky(lower=False)(a)`; `cholesky` and `solve` are
such ops.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.tensor.linalg.factors import cho_solve, cholesky as cholesky_of, eigvalsh as eigvalsh_of, solve as solve_of
from graphc.tensor.linalg.functions import expm as expm_of
from graphc.tensor.linalg.nlinalg import ParametrisedOp
from graphc.tensor.products import kron as kron_of

__all__ = [
    "MATRIX_STRUCTURES", "Cholesky", "Eigvalsh", "Expm", "Solve", "cho_solve", "cholesky", "eigvalsh", "expm", "kron",
    "solve", "solve_lower_triangular", "solve_symmetric", "solve_upper_triangular",
]  # fmt: skip

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
        return cholesky_of(x, lower=self.lower, on_error=self.on_error)


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
        return solve_of(A, b, assume_a=assumed)


class Eigvalsh(ParametrisedOp):
    """Eigenvalues of a v = w b v."""

    __props__ = ("lower",)

    def __init__(self, lower: bool = True) -> None:
        self.lower = bool(lower)

    def __call__(self, a: Any, b: Any) -> Node:
        """Same as `linalg.eigvalsh`; `b` may be None."""
        return eigvalsh_of(a, "L" if self.lower else "U", b=b)


class Expm(ParametrisedOp):
    """The matrix exponential."""

    def __call__(self, A: Any) -> Node:  # noqa: N803
        """Same as `linalg.expm`."""
        return expm_of(A)


cholesky, solve, expm = Cholesky(), Solve(), Expm()
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
