"""The ops: one record for each, in one file for each kind. Importing this package fills `OPS` and `FUNCTIONS`."""

from graphc.ops import scalar, shape, checked, recur, reduce, index, linalg, scan, branch, given, sinking, derivative  # noqa: I001 - from the fewest needs to the most

__all__ = [
    "branch", "checked", "derivative", "given", "index", "linalg", "recur", "reduce", "scalar", "scan", "shape",
    "sinking",
]  # fmt: skip
