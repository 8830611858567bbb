"""The ops: one record for each, in one file for each kind. Importing this package fills `FUNCTIONS`, and `OPS` but for
what is in LATER."""

from graphc.ir.node import OPS
from graphc.ops import (
    again,
    assemble,
    branch,
    checked,
    derivative,
    index,
    questions,
    recur,
    reduce,
    scalar,
    scan,
    shape,
)  # fmt: skip
from graphc.ops.linalg import products
from graphc.startup.hooks import telling

__all__ = [
    "again", "assemble", "branch", "checked", "derivative", "index", "products", "questions", "recur", "reduce",
    "scalar", "scan", "shape",
]  # fmt: skip

LATER = {
    "conv": "conv",
    "windows": "inc_windows join_windows segment_of segment_sum windows",
    "order": "argsort argtop lexorder searchsorted_left searchsorted_right sort top",
    "fourier": "fourier",
    "linalg.factor": "cholesky inverse_of_factor lu lu_of_any triangular_solve",
    "linalg.spectral": "eig eigh eigvals eigvalsh qr qr_complete qr_order svd svd_full svdvals",
    "linalg.equations": "banded_solve positive_banded_solve schur toeplitz_solve triangular_sylvester",
    "linalg.matrices": "cofactors det detsign inverse logabsdet solve",
}
"""The modules of ops that most programs have none of, imported when one of their ops is first asked for."""

OPS.later.update({name: f"{__name__}.{module}" for module, names in LATER.items() for name in names.split()})

__getattr__ = telling(__name__, "segment_")
