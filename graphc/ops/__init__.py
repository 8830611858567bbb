"""The ops: one record for each, in one file for each kind. Importing this package fills `OPS` and `FUNCTIONS`."""

from graphc.ops import (
    assemble,
    branch,
    checked,
    conv,
    derivative,
    given,
    index,
    recur,
    reduce,
    scalar,
    scan,
    segment,
    shape,
    sinking,
    windows,
)
from graphc.ops.linalg import factor, matrices, products, spectral

__all__ = [
    "assemble", "branch", "checked", "conv", "derivative", "factor", "given", "index", "matrices", "products", "recur",
    "reduce", "scalar", "scan", "segment", "shape", "sinking", "spectral", "windows",
]  # fmt: skip
