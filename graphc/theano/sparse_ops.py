"""Theano's classes of ops over sparse matrices: `HStack("csr")(x, y)`, `StructuredDot()(x, w)`.

In: the parameters of a class, then sparse variables and tensors. Out: what the function of `graphc.sparse` gives.
"""

from __future__ import annotations

from typing import Any

from graphc import sparse
from graphc.tensor.elemwise import Family
from graphc.theano.opclasses import Make, Parametrised

_TABLE: dict[str, Make] = {
    "AddSD": lambda: sparse.add,
    "AddSS": lambda: sparse.add,
    "AddSSData": lambda: sparse.add_s_s_data,
    "CSMProperties": lambda kmap=None: sparse.csm_properties,
    "Cast": lambda out_type: lambda x: sparse.cast(x, out_type),
    "ColScaleCSC": lambda: sparse.col_scale,
    "ConstructSparseFromList": lambda: sparse.construct_sparse_from_list,
    "DenseFromSparse": lambda structured=True: lambda x: sparse.dense_from_sparse(x, structured),
    "Diag": lambda: sparse.diag,
    "Dot": lambda: sparse.dot,
    "EnsureSortedIndices": lambda inplace=False: sparse.ensure_sorted_indices,
    "GetItem2Lists": lambda: sparse.get_item_2lists,
    "GetItem2d": lambda: sparse.get_item_2d,
    "GetItemList": lambda: sparse.get_item_list,
    "GetItemScalar": lambda: sparse.get_item_scalar,
    "HStack": lambda format=None, dtype=None: lambda *blocks: sparse.hstack(blocks, format, dtype),
    "MulSD": lambda: sparse.mul,
    "MulSS": lambda: sparse.mul,
    "MulSV": lambda: sparse.mul,
    "Neg": lambda: sparse.neg,
    "Remove0": lambda inplace=False: sparse.remove0,
    "RowScaleCSC": lambda: sparse.row_scale,
    "SamplingDot": lambda: sparse.sampling_dot,
    "SparseFromDense": lambda format: sparse.csr_from_dense if format == "csr" else sparse.csc_from_dense,
    "SpSum": lambda axis=None, sparse_grad=True: lambda x: sparse.sp_sum(x, axis, sparse_grad),
    "SquareDiagonal": lambda: sparse.square_diagonal,
    "StructuredAddSV": lambda: sparse.structured_add_s_v,
    "StructuredDot": lambda: sparse.structured_dot,
    "Transpose": lambda: sparse.transpose,
    "TrueDot": lambda grad_preserves_dense=True: lambda x, y: sparse.true_dot(x, y, grad_preserves_dense),
    "Usmm": lambda: sparse.usmm,
    "VStack": lambda format=None, dtype=None: lambda *blocks: sparse.vstack(blocks, format, dtype),
}
"""For each class what its parameters make of sparse matrices and tensors."""


def __getattr__(name: str) -> Any:
    """The class of that name."""
    if name not in _TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    doc = f"Theano's op {name}, as the function of graphc that does its work."
    made = globals()[name] = Family(
        name, (Parametrised,), {"make": staticmethod(_TABLE[name]), "__doc__": doc, "__module__": __name__}
    )
    return made
