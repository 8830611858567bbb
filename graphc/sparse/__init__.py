"""Sparse matrices: Theano's `theano.sparse`.

In: matrices of SciPy in the formats csr and csc, as arguments of functions, constants and shared variables. Out:
variables of them, functions of these, and matrices of SciPy as results. A sparse variable is a tree of dense nodes
(variable.py), so that all of it is compiled, differentiated and printed as everything else.

Read variable.py, then operations.py.
"""

from graphc.ir.call_errors import explain_all
from graphc.sparse.operations import (
    add,
    add_s_s_data,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    asformat,
    cast_entries,
    ceil,
    clean,
    col_scale,
    conj,
    construct_sparse_from_list,
    csc_from_dense,
    csr_from_dense,
    deg2rad,
    dense_from_sparse,
    diag,
    dot,
    ensure_sorted_indices,
    eq,
    expm1,
    floor,
    ge,
    get_item_2d,
    get_item_2lists,
    get_item_list,
    get_item_scalar,
    gt,
    hstack,
    le,
    log1p,
    lt,
    mul,
    neg,
    neq,
    rad2deg,
    remove0,
    rint,
    row_scale,
    sampling_dot,
    sgn,
    sin,
    sinh,
    sp_ones_like,
    sp_sum,
    sp_zeros_like,
    sqr,
    sqrt,
    square_diagonal,
    structured_add,
    structured_add_s_v,
    structured_dot,
    structured_exp,
    structured_log,
    structured_maximum,
    structured_minimum,
    structured_monoid,
    structured_pow,
    structured_sigmoid,
    sub,
    summed,
    tan,
    tanh,
    transpose_of,
    true_dot,
    trunc,
    usmm,
    vstack,
)
from graphc.sparse.variable import (
    CSC,
    CSM,
    CSR,
    SparseSharedVariable,
    SparseType,
    SparseVariable,
    all_dtypes,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    complex_dtypes,
    constant,
    continuous_dtypes,
    csc_dmatrix,
    csc_fmatrix,
    csc_matrix,
    csm_data,
    csm_indices,
    csm_indptr,
    csm_properties,
    csm_shape,
    csr_dmatrix,
    csr_fmatrix,
    csr_matrix,
    discrete_dtypes,
    float_dtypes,
    int_dtypes,
    integer_dtypes,
    matrix,
    sparse_formats,
    sparse_shared as shared,
    uint_dtypes,
)
from graphc.startup.hooks import HOOKS, lazily

__getattr__ = lazily("graphc.sparse", {})
as_sparse = as_sparse_variable
cast = cast_entries
enable_sparse = True
transpose = transpose_of
eliminate_zeros = remove0
add_s_s = add_s_d = add
mul_s_s = mul_s_d = mul_s_v = mul
equal_s_s = equal_s_d = eq
not_equal_s_s = not_equal_s_d = neq
less_than_s_s = less_than_s_d = lt
less_equal_s_s = less_equal_s_d = le
greater_than_s_s = greater_than_s_d = gt
greater_equal_s_s = greater_equal_s_d = ge

__all__ = [
    "CSC", "CSM", "CSR", "SparseSharedVariable", "SparseType", "SparseVariable", "add", "add_s_d", "add_s_s",
    "add_s_s_data", "all_dtypes", "arcsin", "arcsinh", "arctan", "arctanh", "as_sparse", "as_sparse_or_tensor_variable",
    "as_sparse_variable", "asformat", "cast", "ceil", "clean", "col_scale", "complex_dtypes", "conj", "constant",
    "construct_sparse_from_list", "continuous_dtypes", "csc_dmatrix", "csc_fmatrix", "csc_from_dense", "csc_matrix",
    "csm_data", "csm_indices", "csm_indptr", "csm_properties", "csm_shape", "csr_dmatrix", "csr_fmatrix",
    "csr_from_dense", "csr_matrix", "deg2rad", "dense_from_sparse", "diag", "discrete_dtypes", "dot", "eliminate_zeros",
    "enable_sparse", "ensure_sorted_indices", "eq", "equal_s_d", "equal_s_s", "expm1", "float_dtypes", "floor", "ge",
    "get_item_2d", "get_item_2lists", "get_item_list", "get_item_scalar", "greater_equal_s_d", "greater_equal_s_s",
    "greater_than_s_d", "greater_than_s_s", "gt", "hstack", "int_dtypes", "integer_dtypes", "le", "less_equal_s_d",
    "less_equal_s_s", "less_than_s_d", "less_than_s_s", "log1p", "lt", "matrix", "mul", "mul_s_d", "mul_s_s", "mul_s_v",
    "neg", "neq", "not_equal_s_d", "not_equal_s_s", "rad2deg", "remove0", "rint", "row_scale", "sampling_dot", "sgn",
    "shared", "sin", "sinh", "sp_ones_like", "sp_sum", "sp_zeros_like", "sparse_formats", "sqr", "sqrt",
    "square_diagonal", "structured_add", "structured_add_s_v", "structured_dot", "structured_exp", "structured_log",
    "structured_maximum", "structured_minimum", "structured_monoid", "structured_pow", "structured_sigmoid", "sub",
    "summed", "tan", "tanh", "transpose", "true_dot", "trunc", "uint_dtypes", "usmm", "vstack",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


explain_all(globals())
HOOKS.shared_matrix = shared
