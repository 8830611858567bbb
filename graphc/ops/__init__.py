"""The ops: one record for each, in one file for each kind. Importing this package fills `FUNCTIONS`, and `OPS` but for
what is in LATER."""

from graphc.ir.node import OPS
from graphc.ops import branch, derivative, identity, index, questions, recur, reduce, scalar, scan, shape  # fmt: skip
from graphc.ops.linalg import products
from graphc.startup.hooks import telling

__all__ = [
    "branch", "derivative", "identity", "index", "products", "questions", "recur", "reduce",
    "scalar", "scan", "shape",
]  # fmt: skip

LATER = {
    "conv": "conv",
    "windows": "inc_windows join_windows segment_of segment_sum windows",
    "lines": "argsort argtop fourier lexorder real_backward real_fourier searchsorted_left searchsorted_right sort top",
    "linalg.factor": "cholesky eig eigh eigvals eigvalsh inverse_of_factor lu lu_of_any qr qr_complete qr_order svd"
    " svd_full svdvals triangular_solve",
    "linalg.equations": "banded_solve positive_banded_solve schur toeplitz_solve triangular_sylvester",
    "linalg.matrices": "cofactors det detsign inverse logabsdet solve",
}
"""The modules of ops that most programs have none of, imported when one of their ops is first asked for."""

OPS.later.update({name: f"{__name__}.{module}" for module, names in LATER.items() for name in names.split()})

__getattr__ = telling(__name__, "segment_")
