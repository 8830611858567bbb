"""Linear algebra: NumPy's `np.linalg` and the common part of SciPy's `scipy.linalg`, of tensors.

In: tensors whose last two axes are matrices. Out: nodes. Axes before are batches; docs/linalg.md tells of derivatives,
errors and of what is computed how.
"""

# ruff: noqa: F403, F405 - each module says in its __all__ what it offers
from __future__ import annotations

from typing import Any

from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.tensor.arranging import matrix_transpose
from graphc.tensor.calculus import cross
from graphc.tensor.creation import tril, triu
from graphc.tensor.indexing import diagonal as _diagonal
from graphc.tensor.linalg.factors import *
from graphc.tensor.linalg.functions import *
from graphc.tensor.linalg.structured import *
from graphc.tensor.products import diagflat, kron, matmul, outer, tensordot, trace as _trace, vecdot
from graphc.tensor.selecting import vander
from graphc.tensor.shaping import of_rank

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "cond", "coshm", "cross", "det",
    "diagflat", "diagonal", "eig", "eig_parts", "eigh", "eigvals", "eigvals_parts", "eigvalsh", "expm",
    "funm_hermitian", "hankel", "inv", "kron", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "matmul",
    "matmul_toeplitz", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "null_space", "orth", "outer", "pinv", "pinvh", "polar", "qr", "sinhm", "slogdet", "solve", "solve_banded",
    "solve_circulant", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz",
    "solve_triangular", "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tensordot", "tensorinv", "tensorsolve",
    "toeplitz", "trace", "tril", "triu", "vander", "vecdot", "vector_norm",
]  # fmt: skip


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Node:
    """The sum of a diagonal of each matrix, the last two axes (NumPy's)."""
    node = _trace(of_rank(x, "trace: {} is no matrix", 2), offset, -2, -1)
    return node if dtype is None else cast(node, dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Node:
    """A diagonal of each matrix, the last two axes (NumPy's)."""
    return _diagonal(of_rank(x, "diagonal: {} is no matrix", 2), offset, -2, -1)


explain_all(globals())
