"""The ops: one record for each, in one file for each kind. Importing this package fills `OPS` and `FUNCTIONS`."""

from graphc.ops import (
    assemble,
    branch,
    checked,
    conv,
    derivative,
    given,
    index,
    linalg,
    recur,
    reduce,
    scalar,
    scan,
    shape,
    sinking,
)

__all__ = [
    "assemble", "branch", "checked", "conv", "derivative", "given", "index", "linalg", "recur", "reduce", "scalar",
    "scan", "shape", "sinking",
]  # fmt: skip
