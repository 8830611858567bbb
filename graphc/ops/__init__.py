"""The ops: one record for each, in one file for each kind. Importing this package fills `OPS` and `FUNCTIONS`."""

from graphc.ops import (
    assemble,
    branch,
    checked,
    conv,
    derivative,
    factor,
    given,
    index,
    linalg,
    matrices,
    order,
    recur,
    reduce,
    scalar,
    scan,
    segment,
    shape,
    sinking,
    spectral,
    windows,
)

__all__ = [
    "assemble", "branch", "checked", "conv", "derivative", "factor", "given", "index", "linalg", "matrices", "order",
    "recur", "reduce", "scalar", "scan", "segment", "shape", "sinking", "spectral", "windows",
]  # fmt: skip
