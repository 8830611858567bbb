"""Sparse matrices: Theano's `theano.sparse`.

In: matrices of SciPy in the formats csr and csc, as arguments of functions, constants and shared variables. Out:
variables of them, functions of these, and matrices of SciPy as results. A sparse variable is a tree of dense nodes
(variable.py), so that all of it is compiled, differentiated and printed as everything else.

Read variable.py, then operations.py.
"""

from graphc.ir.call_errors import explain_all
from graphc.sparse import operations, variable
from graphc.sparse.operations import *  # noqa: F403
from graphc.sparse.variable import *  # noqa: F403
from graphc.startup.hooks import HOOKS, lazily

__getattr__ = lazily("graphc.sparse", {})
enable_sparse = True
as_sparse, shared = variable.as_sparse_variable, variable.sparse_shared
cast, transpose, eliminate_zeros = operations.cast_entries, operations.transpose_of, operations.remove0
add_s_s = add_s_d = operations.add
mul_s_s = mul_s_d = mul_s_v = operations.mul
equal_s_s = equal_s_d = operations.eq
not_equal_s_s = not_equal_s_d = operations.neq
less_than_s_s = less_than_s_d = operations.lt
less_equal_s_s = less_equal_s_d = operations.le
greater_than_s_s = greater_than_s_d = operations.gt
greater_equal_s_s = greater_equal_s_d = operations.ge

__all__ = [
    "add_s_d", "add_s_s", "as_sparse", "cast", "eliminate_zeros", "enable_sparse", "equal_s_d", "equal_s_s",
    "greater_equal_s_d", "greater_equal_s_s", "greater_than_s_d", "greater_than_s_s", "less_equal_s_d",
    "less_equal_s_s", "less_than_s_d", "less_than_s_s", "mul_s_d", "mul_s_s", "mul_s_v", "not_equal_s_d",
    "not_equal_s_s", "shared", "transpose",
]  # fmt: skip
__all__ += operations.__all__
__all__ += variable.__all__


def __dir__() -> list[str]:
    return sorted(__all__)


explain_all(globals())
HOOKS.shared_matrix = shared
