"""The ops: one record for each, in one file for each kind. Importing this package fills `OPS` and `FUNCTIONS`."""

from graphc.ops import scalar, shape, recur, reduce, index, linalg, assemble, scan, branch, given, sinking  # noqa: I001 - from the fewest needs to the most

__all__ = ["assemble", "branch", "given", "index", "linalg", "recur", "reduce", "scalar", "scan", "shape", "sinking"]
