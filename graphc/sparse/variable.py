"""Sparse matrices as variables: four dense leaves, and what they are called.

In: a format, a dtype, matrices of SciPy. Out: `SparseVariable`, a tree over `data`, `indices`, `indptr` and the size of
the other axis, so that functions take and give SciPy's matrices where the graph has nodes; constants and shared
variables of the same kind. In the format "csr" the entries of row i stand at indptr[i] to indptr[i + 1], each with its
column in `indices`; "csc" is the same of columns. The axis that `indptr` walks is the major one, the other the minor.

Operators are looked up in `METHODS`, which the modules above fill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from graphc.arrays.dtypes import DTYPES, can_cast_safely
from graphc.errors import GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, variable
from graphc.ir.walk import as_size_node, mention
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.shape import concatenate, expand, transpose
from graphc.ops.windows import ascending, segment_of
from graphc.options import options
from graphc.shared import SharedVariable, shared
from graphc.startup.record import record

__all__ = [
    "CSC", "CSM", "CSR", "SparseSharedVariable", "SparseType", "SparseVariable", "all_dtypes",
    "as_sparse_or_tensor_variable", "as_sparse_variable", "complex_dtypes", "constant", "continuous_dtypes",
    "csc_dmatrix", "csc_fmatrix", "csc_matrix", "csm_data", "csm_indices", "csm_indptr", "csm_properties", "csm_shape",
    "csr_dmatrix", "csr_fmatrix", "csr_matrix", "discrete_dtypes", "float_dtypes", "int_dtypes", "integer_dtypes",
    "matrix", "sparse_formats", "uint_dtypes",
]  # fmt: skip

METHODS: dict[str, Callable[..., Any]] = {}
"""The functions of operators and methods of sparse variables; filled by the modules that define it."""
FORMATS = ("csr", "csc")


sparse_formats = list(FORMATS)
float_dtypes, int_dtypes, uint_dtypes, complex_dtypes = (
    [name for name in DTYPES if name.startswith(kind)] for kind in ("float", "int", "uint", "complex")
)
integer_dtypes = discrete_dtypes = int_dtypes + uint_dtypes
continuous_dtypes = float_dtypes
all_dtypes = {*float_dtypes, *integer_dtypes}
"""Dtypes of entries, under Theano's names."""


def is_matrix(value: object) -> bool:
    """Tell whether a value is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


@record()
class SparseType:
    """A format and a dtype: Theano's types of sparse matrices. Called, it makes a variable. Raises NotImplementedError
    for a format other than csr and csc, and for dtypes such as float16 and complex128.

    >>> graphc.sparse.SparseType("csr", "float64")("x")
    <sparse variable x: csr, float64>
    """

    format: str
    dtype: str

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise NotImplementedError(f"unsupported format {self.format!r}: sparse variables are csr or csc")
        if self.dtype not in DTYPES:
            raise NotImplementedError(f"unsupported dtype {self.dtype!r} of a sparse variable")

    @property
    def ndim(self) -> int:
        """Sparse variables are matrices."""
        return 2

    def __call__(self, name: str | None = None) -> SparseVariable:
        """A fresh variable of this type."""
        prefix = name or self.format
        kinds = (("data", self.dtype, 1), ("indices", "int32", 1), ("indptr", "int32", 1), ("minor", "int64", 0))
        leaves = [variable(dtype, (None,) * rank, f"{prefix}.{part}") for part, dtype, rank in kinds]
        mention(leaves)
        data, indices, indptr, minor = leaves
        return SparseVariable(data, indices, indptr, minor, self.format, name)

    make_variable = __call__

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """`value` as a matrix of SciPy of this type. Raises TypeError where it is none."""
        fits = is_matrix(value) and value.format == self.format and value.dtype == self.dtype
        if strict and not fits:
            raise TypeError(f"{value!r} is no {self.format} matrix of {self.dtype}")
        if fits:
            return value
        matrix = getattr(import_module("scipy.sparse"), f"{self.format}_matrix")(value)
        if not allow_downcast and not can_cast_safely(matrix.dtype.name, self.dtype):
            raise GraphTypeError(f"a matrix of {matrix.dtype} is given for a sparse variable of {self.dtype}")
        return matrix.astype(self.dtype)

    def is_valid_value(self, value: Any) -> bool:
        """Tell whether a value is a matrix of this format."""
        return is_matrix(value) and value.format == self.format

    def values_eq(self, a: Any, b: Any) -> bool:
        """Tell whether two matrices are equal."""
        return is_matrix(a) and is_matrix(b) and bool(abs(a - b).sum() == 0)

    def values_eq_approx(self, a: Any, b: Any, eps: float = 1e-6) -> bool:
        """Tell whether two matrices are equal but for rounding."""
        if not (is_matrix(a) and is_matrix(b)):
            return False
        difference = abs(a - b)
        return difference.nnz == 0 or bool(difference.data.max() < eps)

    def __str__(self) -> str:
        return f"Sparse[{self.dtype}, {self.format}]"


def _operator(method: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator. turned: the variable stands on the right."""
    if turned:
        return lambda self, other: METHODS[method](other, self)
    return lambda self, other: METHODS[method](self, other)  # noqa: PLW0108 - it is filled later


@dataclass(eq=False, repr=False)
class SparseVariable:
    """A sparse matrix of the graph: entries `data` (n) with `indices` (n) along the minor axis, and `indptr` (one more
    than the major axis has positions), all nodes. Places that have no entry are 0; entries of one place add up.

    `+ - *` work by elements, `@` is the matrix product; a number or a dense array may stand on either side.
    """

    data: Any
    indices: Any
    indptr: Any
    minor: Any
    format: str = field(metadata={"static": True})
    name: str | None = field(default=None, metadata={"static": True})

    dense: ClassVar[Any] = None
    """The dense matrix of which this has the elements that are not 0, where it was made of one."""

    __array_ufunc__ = None  # NumPy's arrays and tensors leave their operators to this class
    ndim = 2

    def __repr__(self) -> str:
        return f"<sparse variable {self.name or '(unnamed)'}: {self.format}, {self.dtype}>"

    @property
    def dtype(self) -> str:
        """The dtype of the entries."""
        return str(self.data.dtype)

    @property
    def type(self) -> SparseType:
        """The format and the dtype."""
        return SparseType(self.format, self.dtype)

    def _mention(self) -> None:
        """Count what the matrix is computed from as used, though its sizes may need none of it."""
        mention(leaf for leaf in (self.data, self.indices, self.indptr, self.minor) if isinstance(leaf, Node))

    @property
    def sizes(self) -> tuple[Size, Size]:
        """The numbers of rows and columns."""
        own = (sizes.subtract(self.indptr.type.shape[0], 1), sizes.as_size(cast(as_node(self.minor), "int64")))
        return own if self.format == "csr" else own[::-1]

    @property
    def shape(self) -> Node:
        """The numbers of rows and columns, a vector."""
        self._mention()
        return concatenate([expand(as_size_node(size), (0,)) for size in self.sizes], 0)

    @property
    def nnz(self) -> Size:
        """The number of entries."""
        self._mention()
        return sizes.as_size(as_size_node(self.data.type.shape[0]))

    @property
    def size(self) -> Node:
        """The number of entries, zeros among them too."""
        return as_size_node(self.nnz)

    @property
    def starts(self) -> Node:
        """`indptr` as int64, checked."""
        return ascending(self.indptr, self.nnz, f"indptr of {self.name or self.format}")

    @property
    def positions(self) -> Node:
        """`indices` as numbers that never count from the end: a negative one is beyond every size."""
        return cast(self.indices, "uint32") if self.indices.dtype == "int32" else self.indices

    def places(self) -> tuple[Node, Node]:
        """The row and the column of each entry, int64."""
        own = segment_of(self.starts, self.nnz), cast(self.positions, "int64")
        return own if self.format == "csr" else own[::-1]

    def with_data(self, data: Node) -> SparseVariable:
        """A matrix with other entries at the same places."""
        return SparseVariable(data, self.indices, self.indptr, self.minor, self.format)

    @property
    def T(self) -> SparseVariable:  # noqa: N802
        """The transpose: the same arrays in the other format."""
        other = FORMATS[1 - FORMATS.index(self.format)]
        turned = SparseVariable(self.data, self.indices, self.indptr, self.minor, other)
        vars(turned)["dense"] = None if self.dense is None else transpose(self.dense)
        return turned

    def __taken__(self, value: Any) -> SparseVariable:
        """A value that a function is called with, as arrays: a matrix of SciPy, or what makes one."""
        made = value if isinstance(value, SparseVariable) else _record(self.type.filter(value), self.format)
        if made.format != self.format:
            made = METHODS["asformat"](made, self.format)
        if type(made) is type(self):
            return made
        return type(self)(made.data, made.indices, made.indptr, made.minor, made.format)

    def __filled__(self) -> Any:
        """A matrix of SciPy, once the leaves are arrays."""
        if not all(isinstance(leaf, np.ndarray | np.generic) for leaf in (self.data, self.indices, self.indptr)):
            return self
        own = (len(self.indptr) - 1, int(self.minor))
        made = getattr(import_module("scipy.sparse"), f"{self.format}_matrix")
        return made((self.data, self.indices, self.indptr), shape=own if self.format == "csr" else own[::-1])

    def astype(self, dtype: str) -> SparseVariable:
        """The same with entries of another dtype."""
        return self.with_data(cast(self.data, str(np.dtype(dtype))))

    def __getattr__(self, name: str) -> Any:
        method = METHODS.get(name)
        if method is None:
            raise AttributeError(f"a sparse variable has no attribute {name!r}")
        return lambda *args, **kwargs: method(self, *args, **kwargs)

    def __neg__(self) -> SparseVariable:
        return self.with_data(-self.data)

    __add__, __radd__ = _operator("add"), _operator("add", turned=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", turned=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", turned=True)
    __matmul__, __rmatmul__ = _operator("dot"), _operator("dot", turned=True)
    __dot__, __rdot__ = _operator("structured_dot"), _operator("structured_dot", turned=True)
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("lt", "le", "gt", "ge"))
    __getitem__ = _operator("getitem")

    def __truediv__(self, other: Any) -> Any:
        return METHODS["mul"](self, 1.0 / as_node(other))


class SparseSharedVariable(SparseVariable):
    """A sparse matrix whose leaves are shared variables. Make one with `shared`."""

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """The current value as a matrix of SciPy: a copy, or with `borrow` over the arrays themselves."""
        data, indices, indptr, minor = (leaf.get_value(borrow=borrow) for leaf in self._leaves())
        return SparseVariable(data, indices, indptr, minor, self.format).__filled__()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Give the variable another matrix, which may have other sizes and other places."""
        fields = _record(self.type.filter(value), self.format)
        for leaf, array in zip(self._leaves(), (fields.data, fields.indices, fields.indptr, fields.minor), strict=True):
            leaf.set_value(array, borrow=borrow)

    def _leaves(self) -> Sequence[SharedVariable]:
        return self.data, self.indices, self.indptr, self.minor


def _record(matrix: Any, format: str) -> SparseVariable:
    """A matrix of SciPy as the arrays it is made of."""
    if max(matrix.nnz, *matrix.shape) >= 2**31:
        raise ShapeError(f"a sparse matrix of shape {matrix.shape} with {matrix.nnz} entries has no 32-bit indices")
    indices, indptr = (np.asarray(each, "int32") for each in (matrix.indices, matrix.indptr))
    count = int(indptr[-1]) if len(indptr) else 0  # SciPy's arrays may be longer than they are filled
    minor = np.asarray(matrix.shape[1 if format == "csr" else 0], "int64")
    return SparseVariable(matrix.data[:count], indices[:count], indptr, minor, format)


def _chosen(value: Any, format: str | None) -> Any:
    """A matrix of SciPy in one of the formats."""
    if not is_matrix(value):
        raise GraphTypeError(f"a sparse variable is made of a sparse matrix of SciPy, not of {value!r}")
    wanted = format or (value.format if value.format in FORMATS else "csr")
    return value if value.format == wanted else value.asformat(wanted)


def constant(x: Any, name: str | None = None) -> SparseVariable:
    """A constant sparse matrix. Raises GraphTypeError, a TypeError, for what is no matrix of SciPy."""
    matrix = _chosen(x, None)
    fields = _record(matrix.copy(), matrix.format)
    data, indices, indptr, minor = map(as_node, (fields.data, fields.indices, fields.indptr, fields.minor))
    return SparseVariable(data, indices, indptr, minor, matrix.format, name)


def sparse_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    format: str | None = None,
) -> SparseSharedVariable:
    """A shared variable that begins as a matrix of SciPy, with `get_value` and `set_value` of such matrices.

    In `updates` a pair of it and another sparse matrix of its format gives it that value.
    """
    matrix = _chosen(value, format)
    given, prefix = _record(matrix, matrix.format), name or matrix.format
    parts = {"data": given.data, "indices": given.indices, "indptr": given.indptr, "minor": given.minor}
    data, indices, indptr, minor = (
        shared(part, f"{prefix}.{what}", borrow, strict=strict, allow_downcast=allow_downcast)
        for what, part in parts.items()
    )
    return SparseSharedVariable(data, indices, indptr, minor, matrix.format, name)


def as_sparse_variable(x: Any, name: str | None = None) -> SparseVariable:
    """`x` as a sparse variable: variables pass, matrices of SciPy become constants. Raises a TypeError else."""
    if isinstance(x, SparseVariable):
        return x
    if isinstance(x, Node):
        raise GraphTypeError(f"{describe(x)} is dense; csr_from_dense and csc_from_dense make a sparse matrix of it")
    return constant(x, name)


def as_sparse_or_tensor_variable(x: Any, name: str | None = None) -> Any:
    """`x` as a sparse variable where it is sparse, as a tensor else."""
    return as_sparse_variable(x, name) if isinstance(x, SparseVariable) or is_matrix(x) else as_node(x, name=name)


def matrix(format: str, name: str | None = None, dtype: str | None = None) -> SparseVariable:
    """A sparse variable, of `options.floatX` where no dtype is given."""
    return SparseType(format, dtype or options.floatX)(name)


def csr_matrix(name: str | None = None, dtype: str | None = None) -> SparseVariable:
    """A sparse variable in rows; dtype: None for that of `options.floatX`. Raises NotImplementedError for a dtype that
    sparse matrices do not have."""
    return matrix("csr", name, dtype)


def csc_matrix(name: str | None = None, dtype: str | None = None) -> SparseVariable:
    """A sparse variable in columns; dtype: None for that of `options.floatX`. Raises NotImplementedError for a dtype
    that sparse matrices do not have."""
    return matrix("csc", name, dtype)


csr_dmatrix, csc_dmatrix = SparseType("csr", "float64"), SparseType("csc", "float64")
csr_fmatrix, csc_fmatrix = SparseType("csr", "float32"), SparseType("csc", "float32")


def require_equal(x: Node, pairs: Iterable[tuple[Size, Size]], message: str) -> Node:
    """`x`, checked at each call: two sizes are equal."""
    differ = [pair for pair in pairs if not sizes.equal(*pair)]
    conditions = [cast(elementwise("equal", *map(as_size_node, pair)), "int64") for pair in differ]
    return checked(x, conditions, message, "shape") if conditions else x


def _of_parts(format: str) -> Callable[..., SparseVariable]:
    def make(data: Any, indices: Any, indptr: Any, shape: Any) -> SparseVariable:
        vectors = [as_node(each) for each in (data, indices, indptr)]
        for what, node in zip(("data", "indices", "indptr"), vectors, strict=True):
            integral = what == "data" or np.dtype(node.type.dtype).kind in "iu"
            if node.ndim != 1 or not integral:
                raise RankError(f"{format}: {what} must be a vector{'' if what == 'data' else ' of integers'}")
        values, places, starts = vectors
        given = [as_node(shape)[axis] for axis in range(2)]
        major, minor = given if format == "csr" else given[::-1]
        walked = sizes.as_size(cast(major, "int64")), sizes.subtract(starts.type.shape[0], 1)
        starts = require_equal(
            starts, [walked], f"{format}: indptr has not one element more than the axis that it walks"
        )
        lengths = [(values.type.shape[0], places.type.shape[0])]
        places = require_equal(places, lengths, f"{format}: data and indices differ in length")
        return SparseVariable(values, cast(places, "int32"), cast(starts, "int32"), cast(minor, "int64"), format)

    make.__doc__ = f"""A sparse matrix of its parts: `data`, `indices`, `indptr`, `shape`, in the format {format}.

    Raises GraphTypeError for what are no vectors; calls raise where the parts do not belong together."""
    return make


CSR, CSC = _of_parts("csr"), _of_parts("csc")


def CSM(format: str) -> Callable[..., SparseVariable]:  # noqa: N802 - Theano's name
    """`CSR` or `CSC`, by the format. Raises ValueError for another."""
    if format not in FORMATS:
        raise ValueError(f"format must be one of csr and csc, not {format!r}")
    return CSR if format == "csr" else CSC


def csm_properties(csm: Any) -> tuple[Node, Node, Node, Node]:
    """`data`, `indices`, `indptr` and `shape` of a sparse matrix; the latter are int32, as SciPy's are."""
    x = as_sparse_variable(csm)
    return x.data, x.indices, x.indptr, cast(x.shape, "int32")


def csm_data(csm: Any) -> Node:
    """The entries of a sparse matrix."""
    return csm_properties(csm)[0]


def csm_indices(csm: Any) -> Node:
    """For each entry its place along the minor axis."""
    return csm_properties(csm)[1]


def csm_indptr(csm: Any) -> Node:
    """For each position of the major axis where its entries begin, and their number."""
    return csm_properties(csm)[2]


def csm_shape(csm: Any) -> Node:
    """The numbers of rows and columns."""
    return csm_properties(csm)[3]
