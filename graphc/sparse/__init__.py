"""Sparse matrices: Theano's `theano.sparse`.

In: matrices of SciPy in the formats csr and csc, as arguments of functions, constants and shared variables. Out:
variables of them, functions of these, and matrices of SciPy as results. A sparse variable is a tree of dense nodes
(variable.py), so that all of it is compiled, differentiated and printed as everything else.

Read variable.py, then structure.py (where entries stand), then arithmetic.py.
"""

from graphc.sparse.arithmetic import (
    add,
    add_s_s_data,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    ceil,
    col_scale,
    conj,
    deg2rad,
    dot,
    eq,
    expm1,
    floor,
    ge,
    gt,
    le,
    log1p,
    lt,
    mul,
    neg,
    neq,
    rad2deg,
    rint,
    row_scale,
    sampling_dot,
    sgn,
    sin,
    sinh,
    sp_sum,
    sqr,
    sqrt,
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
    tan,
    tanh,
    transpose_of,
    true_dot,
    trunc,
    usmm,
)
from graphc.sparse.structure import (
    asformat,
    clean,
    construct_sparse_from_list,
    csc_from_dense,
    csr_from_dense,
    dense_from_sparse,
    diag,
    ensure_sorted_indices,
    get_item_2d,
    get_item_2lists,
    get_item_list,
    get_item_scalar,
    hstack,
    remove0,
    sp_ones_like,
    sp_zeros_like,
    square_diagonal,
    summed,
    vstack,
)
from graphc.sparse.variable import (
    CSC,
    CSR,
    SparseSharedVariable,
    SparseType,
    SparseVariable,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    constant,
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
    matrix,
)
from graphc.sparse.variable import sparse_shared as shared

as_sparse = as_sparse_variable
transpose = transpose_of
eliminate_zeros = remove0
add_s_s = add_s_d = add
mul_s_s = mul_s_d = mul_s_v = mul

__all__ = [
    "CSC", "CSR", "SparseSharedVariable", "SparseType", "SparseVariable", "add", "add_s_d", "add_s_s",
    "add_s_s_data", "arcsin", "arcsinh", "arctan", "arctanh", "as_sparse", "as_sparse_or_tensor_variable",
    "as_sparse_variable", "asformat", "ceil", "clean", "col_scale", "conj", "constant",
    "construct_sparse_from_list", "csc_dmatrix", "csc_fmatrix", "csc_from_dense", "csc_matrix", "csm_data",
    "csm_indices", "csm_indptr", "csm_properties", "csm_shape", "csr_dmatrix", "csr_fmatrix", "csr_from_dense",
    "csr_matrix", "deg2rad", "dense_from_sparse", "diag", "dot", "eliminate_zeros", "ensure_sorted_indices",
    "eq", "expm1", "floor", "ge", "get_item_2d", "get_item_2lists", "get_item_list", "get_item_scalar", "gt",
    "hstack", "le", "log1p", "lt", "matrix", "mul", "mul_s_d", "mul_s_s", "mul_s_v", "neg", "neq", "rad2deg",
    "remove0", "rint", "row_scale", "sampling_dot", "sgn", "shared", "sin", "sinh", "sp_ones_like", "sp_sum",
    "sp_zeros_like", "sqr", "sqrt", "square_diagonal", "structured_add", "structured_add_s_v", "structured_dot",
    "structured_exp", "structured_log", "structured_maximum", "structured_minimum", "structured_monoid",
    "structured_pow", "structured_sigmoid", "sub", "summed", "tan", "tanh", "transpose", "true_dot", "trunc",
    "usmm", "vstack",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
