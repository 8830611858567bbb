"""Operations on sparse matrices: their structure (formats, rows, stacking), arithmetic and products.

In: sparse variables, places as (row, column) vectors. Out: sparse variables, dense arrays of them. Entries are put in
order by their positions in the dense matrix, an int64 each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import accumulator, promote
from graphc.errors import GradientError, GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import gather, inc_gather
from graphc.ops.recur import running_sum
from graphc.ops.shape import broadcast_to, concatenate, expand, filled, iota, transpose, zeros
from graphc.ops.windows import checked_sum
from graphc.sparse.variable import (
    FORMATS,
    METHODS,
    SparseVariable,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    require_equal,
)
from graphc.tensor import elementary
from graphc.tensor.creation import arange
from graphc.tensor.indexing import diagonal
from graphc.tensor.joining import repeat
from graphc.tensor.keys import nonzero
from graphc.tensor.sorting import argsort, searchsorted, unique

__all__ = [
    "add", "add_s_s_data", "arcsin", "arcsinh", "arctan", "arctanh", "asformat", "ceil", "clean", "col_scale", "conj",
    "construct_sparse_from_list", "csc_from_dense", "csr_from_dense", "deg2rad", "dense_from_sparse", "diag", "dot",
    "ensure_sorted_indices", "eq", "expm1", "floor", "ge", "get_item_2d", "get_item_2lists", "get_item_list",
    "get_item_scalar", "gt", "hstack", "le", "log1p", "lt", "mul", "neg", "neq", "rad2deg", "remove0", "rint",
    "row_scale", "sampling_dot", "sgn", "sin", "sinh", "sp_ones_like", "sp_sum", "sp_zeros_like", "sqr", "sqrt",
    "square_diagonal", "structured_add", "structured_add_s_v", "structured_dot", "structured_exp", "structured_log",
    "structured_maximum", "structured_minimum", "structured_monoid", "structured_pow", "structured_sigmoid", "sub",
    "summed", "tan", "tanh", "true_dot", "trunc", "usmm", "vstack",
]  # fmt: skip


def dense_from_sparse(x: Any, structured: bool = True) -> Node:
    """A sparse matrix as a dense one. The gradient is taken at the entries, or, where not `structured`, at all places:
    of a matrix that `csr_from_dense` or `csc_from_dense` made of a dense one. Raises GradientError for a gradient at
    all places of another matrix, which has none where it has no entries."""
    matrix = as_sparse_variable(x)
    made = inc_gather(zeros(matrix.dtype, matrix.sizes), matrix.data, matrix.places(), 0)
    return made if structured else at_all_places(matrix, made, lambda cotangent: cotangent)


def at_all_places(matrix: SparseVariable, made: Node, derivative: Callable[[Node], Node]) -> Node:
    """A linear function of a matrix's elements whose derivative is taken by all of these: by the dense
    matrix that it was made of. derivative: from a cotangent to that of the elements. Without such a matrix a derivative
    is a GradientError."""

    def refuse(*_: Any) -> list[Node]:
        raise GradientError(
            f"the derivative of {describe(made)} at all places of {matrix!r}, which has none where it has no entries: "
            "structured=True takes it at the entries, and csr_from_dense(x) has one at all places of x"
        )

    if matrix.dense is None:
        return overridden([made], [matrix.data], refuse)[0]

    def rule(inputs: Sequence[Node], results: Sequence[Node], cotangents: Any, wanted: Any) -> list[Node]:
        return [derivative(cotangents[0])]

    return overridden([made], [matrix.dense], rule)[0]


def ordered(
    format: str, data: Node, places: Sequence[Node], shape: tuple[Size, Size], summed: bool = False
) -> SparseVariable:
    """The matrix with these entries at places (rows, columns), in their order; where `summed`, those of one place are
    one."""
    own, other = places if format == "csr" else places[::-1]
    major, minor = shape if format == "csr" else shape[::-1]
    width = elementwise("maximum", as_size_node(minor), 1)
    keys = elementwise("add", elementwise("mul", own, width), other)
    if summed:
        keys, back = unique(keys, return_inverse=True)
        data = inc_gather(zeros(data.type.dtype, keys.type.shape), data, (back,), 0)
    else:
        order = argsort(keys, kind="stable")
        keys, data = gather(keys, (order,), 0), gather(data, (order,), 0)
    own = elementwise("floor_div", keys, width)
    counts = zeros("int64", (sizes.add(major, 1),))
    counts = inc_gather(counts, filled(literal(1, "int64"), own.type.shape), (elementwise("add", own, 1),), 0)
    across, starts = elementwise("mod", keys, width), running_sum(counts, 0)
    return SparseVariable(data, cast(across, "int32"), cast(starts, "int32"), as_size_node(minor), format)


def summed(x: Any) -> SparseVariable:
    """The same matrix with one entry for each place, in order."""
    matrix = as_sparse_variable(x)
    return ordered(matrix.format, matrix.data, matrix.places(), matrix.sizes, summed=True)


def ensure_sorted_indices(x: Any) -> SparseVariable:
    """The same matrix with its entries in the order of their places."""
    matrix = as_sparse_variable(x)
    return ordered(matrix.format, matrix.data, matrix.places(), matrix.sizes)


def asformat(x: Any, format: str) -> SparseVariable:
    """The same matrix in the format "csr" or "csc"."""
    matrix = as_sparse_variable(x)
    if format not in FORMATS:
        raise GraphValueError(f"unsupported format {format!r}: sparse variables are csr or csc")
    return matrix if matrix.format == format else ordered(format, matrix.data, matrix.places(), matrix.sizes)


def _of_entries(x: SparseVariable, keep: Node, places: Sequence[Node], shape: tuple[Size, Size]) -> SparseVariable:
    """The entries where `keep` holds, moved to other places."""
    (chosen,) = nonzero(keep)
    data, rows, columns = (gather(each, (chosen,), 0) for each in (x.data, *places))
    return ordered(x.format, data, (rows, columns), shape)


def remove0(x: Any) -> SparseVariable:
    """The same matrix without entries that are 0."""
    matrix = as_sparse_variable(x)
    return _of_entries(matrix, elementwise("not_equal", matrix.data, 0), matrix.places(), matrix.sizes)


def clean(x: Any) -> SparseVariable:
    """The same matrix without entries that are 0, the others in order."""
    return remove0(x)


def _from_dense(format: str) -> Callable[[Any], SparseVariable]:
    def make(x: Any) -> SparseVariable:
        dense = as_node(x)
        if dense.ndim > 2:
            raise RankError(f"a sparse matrix has 2 axes; the array given has {dense.ndim}")
        dense = expand(dense, range(2 - dense.ndim))
        places = nonzero(dense)
        shape = (dense.type.shape[0], dense.type.shape[1])
        made = ordered(format, gather(dense, places, 0), places, shape)
        vars(made)["dense"] = dense
        return made

    make.__doc__ = f"""The elements of a dense matrix (or vector, a row) that are not 0, as a sparse one: {format}."""
    return make


csr_from_dense, csc_from_dense = map(_from_dense, FORMATS)


def cast_entries(variable: Any, dtype: str) -> SparseVariable:
    """The same matrix with entries of another dtype."""
    return as_sparse_variable(variable).astype(dtype)


def sp_ones_like(x: Any) -> SparseVariable:
    """A matrix of ones where `x` has entries."""
    matrix = as_sparse_variable(x)
    return matrix.with_data(filled(literal(1, matrix.dtype), matrix.data.type.shape))


def sp_zeros_like(x: Any, dtype: str | None = None) -> SparseVariable:
    """A matrix of the sizes of `x` without entries."""
    matrix = as_sparse_variable(x)
    none = literal(np.empty(0, dtype or matrix.dtype)), literal(np.empty(0, "int32"))
    starts = elementwise("mul", matrix.indptr, literal(0, "int32"))
    return SparseVariable(*none, starts, matrix.minor, matrix.format)


def square_diagonal(diag: Any) -> SparseVariable:
    """The csc matrix with a vector on its diagonal."""
    values = as_node(diag)
    if values.ndim != 1:
        raise RankError("square_diagonal takes a vector")
    (count,) = values.type.shape
    places, starts = cast(iota(count), "int32"), cast(iota(sizes.add(count, 1)), "int32")
    return SparseVariable(values, places, starts, as_size_node(count), "csc")


def diag(x: Any) -> Node:
    """The diagonal of a matrix, dense."""
    matrix = as_sparse_variable(x)
    if matrix.dense is not None:  # which has a derivative where the matrix has no entry
        return diagonal(matrix.dense)
    (rows, columns), (height, width) = matrix.places(), matrix.sizes
    values = elementwise("where", elementwise("equal", rows, columns), matrix.data, literal(0, matrix.dtype))
    length = sizes.minimum(height, width)
    last = sizes.maximum(sizes.subtract(length, 1), 0)
    inside = elementwise("minimum", rows, as_size_node(last))
    padded = zeros(matrix.dtype, (sizes.maximum(length, 1),))
    return inc_gather(padded, values, (inside,), 0)[: as_size_node(length)]


# --- parts ----------------------------------------------------------------------------------------------------------


def lookup(x: SparseVariable, rows: Node, columns: Node) -> Node:
    """The elements of a matrix at some places within it, 0 where it has no entry."""
    width = as_size_node(x.sizes[1])
    keys, wanted = (elementwise("add", elementwise("mul", r, width), c) for r, c in (x.places(), (rows, columns)))
    known, back = unique(keys, return_inverse=True)
    none = literal(np.array([0], x.dtype))
    values = concatenate([inc_gather(zeros(x.dtype, known.type.shape), x.data, (back,), 0), none], 0)
    # After the last key stands one that nobody asks for, and after the last value a 0.
    place = searchsorted(known, wanted)
    known = concatenate([known, literal(np.array([-1], "int64"))], 0)
    is_stored = elementwise("equal", gather(known, (place,), 0), wanted)
    return elementwise("where", is_stored, gather(values, (place,), 0), literal(0, x.dtype))


def _from_start(index: Node, size: Size) -> Node:
    """Positions that count from the end where they are negative; outside of the axis is an error."""
    return gather(iota(size), (index,), 0)


def get_item_scalar(x: Any, index: Sequence[Any]) -> Node:
    """One element of a matrix, a scalar."""
    matrix = as_sparse_variable(x)
    if matrix.dense is not None:
        return matrix.dense[tuple(index)]
    first, second = (_from_start(cast(as_node(each), "int64"), n) for each, n in zip(index, matrix.sizes, strict=True))
    rows, columns = matrix.places()
    there = elementwise("logical_and", elementwise("equal", rows, first), elementwise("equal", columns, second))
    return elementwise("where", there, matrix.data, literal(0, matrix.dtype)).sum(dtype=matrix.dtype)


def get_item_2lists(x: Any, ind1: Any, ind2: Any) -> Node:
    """The elements of a matrix at rows `ind1` and columns `ind2`, a vector."""
    matrix = as_sparse_variable(x)
    if matrix.dense is not None:
        return matrix.dense[as_node(ind1), as_node(ind2)]
    places = (_from_start(cast(as_node(one), "int64"), n) for one, n in zip((ind1, ind2), matrix.sizes, strict=True))
    return lookup(matrix, *places)


def expanded(starts: Node, chosen: Node) -> tuple[Node, Node]:
    """All entries of some positions of the major axis, in turn: the number of each choice, the places of its
    entries."""
    begins, ends = gather(starts, (chosen,), 0), gather(starts, (elementwise("add", chosen, 1),), 0)
    counts = elementwise("sub", ends, begins)
    source = repeat(arange(as_size_node(chosen.type.shape[0])), counts, 0)
    before = elementwise("sub", running_sum(counts, 0), counts)
    moved = gather(elementwise("sub", begins, before), (source,), 0)
    return source, elementwise("add", moved, iota(source.type.shape[0]))


def get_item_list(x: Any, index: Any) -> SparseVariable:
    """The rows of a matrix that a list names, in its order."""
    matrix = as_sparse_variable(x)
    by_rows = asformat(matrix, "csr")
    chosen = _from_start(cast(as_node(index), "int64"), matrix.sizes[0])
    rows, entries = expanded(by_rows.starts, chosen)
    data, columns = (gather(each, (entries,), 0) for each in (by_rows.data, cast(by_rows.positions, "int64")))
    return ordered(matrix.format, data, (rows, columns), (chosen.type.shape[0], matrix.sizes[1]))


def get_item_2d(x: Any, index: Sequence[Any]) -> SparseVariable:
    """A part of a matrix by slices, a matrix."""
    matrix = as_sparse_variable(x)
    keys = (*index, *[slice(None)] * (2 - len(index)))
    shape: list[Size] = []
    kept, moved = [], []
    for key, place, size in zip(keys, matrix.places(), matrix.sizes, strict=True):
        if not isinstance(key, slice):
            raise NotImplementedError(f"there are no sparse vectors: {key!r}:{key!r}+1 is a part of a matrix")
        wanted: Node = iota(size)[key]
        # What the slice takes has its place in the part, all else the one before its first.
        spots = zeros("int64", (sizes.maximum(size, 1),))
        count = wanted.type.shape[0]
        spots = inc_gather(spots, elementwise("add", iota(count), 1), (wanted,), 0)
        spot = elementwise("sub", gather(spots, (place,), 0), 1)
        kept.append(elementwise("greater_equal", spot, 0))
        moved.append(spot)
        shape.append(count)
    return _of_entries(matrix, elementwise("logical_and", *kept), moved, (shape[0], shape[1]))


def getitem(x: SparseVariable, key: Any) -> Any:
    """x[a:b, c:d] and x[[rows]] are matrices, x[[rows], [columns]] a vector, x[i, j] a scalar."""
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 2 and not any(isinstance(each, slice) for each in keys):
        ranks = {as_node(each).ndim for each in keys}
        return get_item_scalar(x, keys) if ranks == {0} else get_item_2lists(x, *keys)
    if len(keys) == 1 and not isinstance(keys[0], slice) and as_node(keys[0]).ndim == 1:
        return get_item_list(x, keys[0])
    return get_item_2d(x, keys)


# --- next to each other ---------------------------------------------------------------------------------------------


def _stacked(blocks: Sequence[Any], format: str | None, dtype: str | None, axis: int) -> SparseVariable:
    if not blocks:
        raise GraphValueError("there is nothing to stack")
    parts = [as_sparse_variable(block) for block in blocks]
    wanted = dtype or promote(*(part.dtype for part in parts))
    places: list[list[Node]] = [[], []]
    before: Size = 0
    for part in parts:
        own = list(part.places())
        own[axis] = elementwise("add", own[axis], as_size_node(before))
        before = sizes.add(before, part.sizes[axis])
        for each, more in zip(places, own, strict=True):
            each.append(more)
    common = parts[0].sizes[1 - axis]
    pairs = [(common, part.sizes[1 - axis]) for part in parts[1:]]
    message = f"stack: the matrices have different numbers of {'columns' if axis == 0 else 'rows'}"
    data = [require_equal(part.astype(wanted).data, pairs, message) for part in parts]
    rows, columns = (concatenate(each, 0) for each in places)
    shape = (common, before) if axis else (before, common)
    return ordered(format or "csc", concatenate(data, 0), (rows, columns), shape)


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: str | None = None) -> SparseVariable:
    """Matrices side by side, in the format csc where none is given."""
    return _stacked(blocks, format, dtype, 1)


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: str | None = None) -> SparseVariable:
    """Matrices one below the other, in the format csc where none is given."""
    return _stacked(blocks, format, dtype, 0)


def construct_sparse_from_list(x: Any, values: Any, ilist: Any) -> SparseVariable:
    """A csc matrix of the sizes of `x` whose rows `ilist` are the rows of `values`."""
    whole, rows, chosen = as_node(x), as_node(values), cast(as_node(ilist), "int64")
    if whole.ndim != 2 or rows.ndim != 2 or chosen.ndim != 1:
        raise RankError("construct_sparse_from_list takes two matrices and a vector of integers")
    shape = (rows.type.shape[0], rows.type.shape[1])
    places = broadcast_to(expand(chosen, (1,)), shape), broadcast_to(expand(iota(shape[1]), (0,)), shape)
    data, across, along = (each.flatten() for each in (rows, *places))
    return ordered("csc", data, (across, along), (whole.type.shape[0], whole.type.shape[1]))


METHODS.update(
    asformat=asformat,
    toarray=dense_from_sparse,
    tocsr=lambda x: asformat(x, "csr"),
    tocsc=lambda x: asformat(x, "csc"),
    zeros_like=sp_zeros_like,
    getitem=getitem,
)


# --- arithmetic -------------------------------------------------------------------------------------------------------
# Arithmetic of sparse matrices, and products.
#
# In: sparse variables, matrices of SciPy, tensors. Out: sparse variables where the result has places that are 0 for
# certain, tensors else. All of it is made of functions of dense vectors, so that gradients follow; by a sparse matrix
# they are taken at its entries.
#
# A product of a csr matrix with a vector or a matrix is one loop over rows, which threads share (ops/windows.py).


def _operands(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Both as sparse variables or tensors; a Python number has the dtype that it takes beside the other."""
    left, right = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    if isinstance(x, bool | int | float):
        left = as_node(x, promote(right.dtype, x))
    if isinstance(y, bool | int | float):
        right = as_node(y, promote(left.dtype, y))
    if isinstance(left, Node) and isinstance(right, Node):
        raise GraphTypeError(f"{name}: neither {describe(left)} nor {describe(right)} is sparse")
    return left, right


def _of_sizes(y: Node, shape: tuple[Size, Size]) -> Node:
    """A dense operand, as large as a sparse one: a matrix of its sizes, a row for all rows, or a number."""
    if y.ndim > 2:
        raise RankError(f"{describe(y)} of type {y.type} has more axes than a sparse matrix")
    return broadcast_to(expand(y, range(2 - y.ndim)), shape)


def _at_entries(x: SparseVariable, y: Node) -> Node:
    """The elements of a dense operand where a matrix has entries."""
    return gather(_of_sizes(y, x.sizes), x.places(), 0) if y.ndim else y


def _alike(name: str, x: SparseVariable, y: SparseVariable) -> SparseVariable:
    """The second of two matrices, held to the sizes of the first."""
    pairs = zip(x.sizes, y.sizes, strict=True)
    return y.with_data(require_equal(y.data, pairs, f"{name}: {x!r} and {y!r} have different sizes"))


# --- by elements ----------------------------------------------------------------------------------------------------


def add(x: Any, y: Any) -> Any:
    """x + y: sparse where both are, of the format of `x`; else dense."""
    left, right = _operands("add", x, y)
    if isinstance(left, Node):
        left, right = right, left
    if isinstance(right, Node):
        return elementwise("add", dense_from_sparse(left), _of_sizes(right, left.sizes))
    right = _alike("add", left, right)
    dtype = promote(left.dtype, right.dtype)
    data = concatenate([cast(left.data, dtype), cast(right.data, dtype)], 0)
    rows, columns = (concatenate(list(each), 0) for each in zip(left.places(), right.places(), strict=True))
    return ordered(left.format, data, (rows, columns), left.sizes, summed=True)


def sub(x: Any, y: Any) -> Any:
    """x - y: sparse where both are; else dense."""
    left, right = _operands("sub", x, y)
    return add(left, -right)


def mul(x: Any, y: Any) -> SparseVariable:
    """x * y by elements, with the entries of the first sparse one of the two."""
    left, right = _operands("mul", x, y)
    matrix: SparseVariable = right if isinstance(left, Node) else left
    if isinstance(left, Node) or isinstance(right, Node):
        other = left if isinstance(left, Node) else right
        return matrix.with_data(elementwise("mul", matrix.data, _at_entries(matrix, other)))
    factors = lookup(_alike("mul", matrix, right), *matrix.places())
    return matrix.with_data(elementwise("mul", matrix.data, factors))


def structured_add_s_v(x: Any, y: Any) -> SparseVariable:
    """A vector added to all rows of a matrix, where it has entries."""
    matrix = as_sparse_variable(x)
    return matrix.with_data(elementwise("add", matrix.data, _at_entries(matrix, as_node(y))))


def add_s_s_data(x: Any, y: Any) -> SparseVariable:
    """The sum of two matrices with the same places in the same order."""
    left, right = as_sparse_variable(x), as_sparse_variable(y)
    if (left.format, left.dtype) != (right.format, right.dtype):
        raise NotImplementedError(f"add_s_s_data of {left!r} and {right!r}, which have no format and dtype in common")
    return left.with_data(elementwise("add", left.data, right.data))


def row_scale(x: Any, s: Any) -> SparseVariable:
    """Each row times an element of a vector."""
    matrix, factor = as_sparse_variable(x), as_node(s)
    return matrix.with_data(elementwise("mul", matrix.data, _at_entries(matrix, expand(factor, (1,)))))


def col_scale(x: Any, s: Any) -> SparseVariable:
    """Each column times an element of a vector."""
    matrix = as_sparse_variable(x)
    return matrix.with_data(elementwise("mul", matrix.data, _at_entries(matrix, as_node(s))))


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def compare(x: Any, y: Any) -> Any:
        left, right = _operands(name, x, y)
        both = isinstance(left, SparseVariable) and isinstance(right, SparseVariable)
        right = _alike(name, left, right) if both else right
        dense = [dense_from_sparse(each) if isinstance(each, SparseVariable) else each for each in (left, right)]
        shape = (left if isinstance(left, SparseVariable) else right).sizes
        result = cast(elementwise(name, *(_of_sizes(each, shape) for each in dense)), "uint8")
        if not both:
            return result
        return (csr_from_dense if left.format == "csr" else csc_from_dense)(result)

    compare.__doc__ = f"""`{name}` by elements, 0 or 1 in uint8: sparse where both are, else dense."""
    return compare


eq, neq = _comparison("equal"), _comparison("not_equal")
lt, gt = _comparison("less"), _comparison("greater")
le, ge = _comparison("less_equal"), _comparison("greater_equal")


def structured_monoid(tensor_op: Callable[..., Node]) -> Callable[[Callable[..., Any]], Callable[..., SparseVariable]]:
    """A decorator: a function of entries, over a sparse matrix and numbers, in place of what it decorates. The function
    raises GraphTypeError for a dense variable."""

    def decorate(function: Callable[..., Any]) -> Callable[..., SparseVariable]:
        def structured(x: Any, *args: Any) -> SparseVariable:
            matrix = as_sparse_variable(x)
            return matrix.with_data(tensor_op(matrix.data, *map(as_node, args)))

        structured.__name__ = function.__name__
        structured.__doc__ = function.__doc__
        return structured

    return decorate


def _structured(name: str, function: Callable[..., Node]) -> Callable[..., SparseVariable]:
    def named() -> None: ...

    named.__name__, named.__doc__ = name, f"""{name.removeprefix("structured_")} of each entry; other places stay 0."""
    return structured_monoid(function)(named)


def _of(name: str) -> Callable[..., Node]:
    return lambda *args: elementwise(name, *args)


structured_sigmoid = _structured("structured_sigmoid", _of("sigmoid"))
structured_exp = _structured("structured_exp", elementary.exp)
structured_log = _structured("structured_log", elementary.log)
structured_pow = _structured("structured_pow", _of("pow"))
structured_minimum = _structured("structured_minimum", _of("minimum"))
structured_maximum = _structured("structured_maximum", _of("maximum"))
structured_add = _structured("structured_add", _of("add"))
sin = _structured("sin", elementary.sin)
tan = _structured("tan", elementary.tan)
arcsin = _structured("arcsin", elementary.arcsin)
arctan = _structured("arctan", elementary.arctan)
sinh = _structured("sinh", elementary.sinh)
arcsinh = _structured("arcsinh", elementary.arcsinh)
tanh = _structured("tanh", elementary.tanh)
arctanh = _structured("arctanh", elementary.arctanh)
rint = _structured("rint", elementary.rint)
sgn = _structured("sgn", elementary.sgn)
ceil = _structured("ceil", elementary.ceil)
floor = _structured("floor", elementary.floor)
log1p = _structured("log1p", elementary.log1p)
expm1 = _structured("expm1", elementary.expm1)
deg2rad = _structured("deg2rad", elementary.deg2rad)
rad2deg = _structured("rad2deg", elementary.rad2deg)
trunc = _structured("trunc", elementary.trunc)
sqr = _structured("sqr", elementary.sqr)
sqrt = _structured("sqrt", elementary.sqrt)


def neg(x: Any) -> SparseVariable:
    """-x."""
    return -as_sparse_variable(x)


def conj(x: Any) -> SparseVariable:
    """`x` itself: entries are real."""
    return as_sparse_variable(x)


# --- sums -----------------------------------------------------------------------------------------------------------


def sp_sum(x: Any, axis: int | None = None, sparse_grad: bool = False) -> Node:
    """The sum of all elements, or along an axis, dense. The gradient is taken at the entries; of a matrix that was made
    of a dense one at all its places, where `sparse_grad` is not set."""
    matrix = as_sparse_variable(x)
    if axis not in (None, 0, 1, -1, -2):
        raise ValueError(f"sp_sum: axis {axis} is none of a matrix")
    made = _summed(matrix, axis)
    if sparse_grad or matrix.dense is None:
        return made
    rows, columns = matrix.sizes
    outer = () if axis is None else (axis % 2,)

    def spread(cotangent: Node) -> Node:
        return broadcast_to(expand(cotangent, outer or (0, 1)), (rows, columns))

    return at_all_places(matrix, made, spread)


def _summed(matrix: SparseVariable, axis: int | None) -> Node:
    if axis is None:
        total: Node = matrix.data.sum()
        return cast(total, matrix.dtype)
    kept = 1 - axis % 2
    if (kept == 0) == (matrix.format == "csr"):
        return cast(checked_sum(_accumulating(matrix.data), matrix.starts), matrix.dtype)
    return inc_gather(zeros(matrix.dtype, (matrix.sizes[kept],)), matrix.data, (matrix.positions,), 0)


def _accumulating(x: Node) -> Node:
    return cast(x, accumulator(x.type.dtype))


# --- products -------------------------------------------------------------------------------------------------------


def _sparse_dense(x: SparseVariable, y: Node) -> Node:
    """A sparse matrix times a dense vector or matrix: rows by sums of segments, columns by additions."""
    if y.ndim not in (1, 2):
        raise RankError(f"dot: {describe(y)} of type {y.type} should be a vector or a matrix")
    rows, columns = x.sizes
    y = broadcast_to(y, (columns, *y.type.shape[1:]))  # which holds it to that size
    data = x.data if y.ndim == 1 else expand(x.data, (1,))
    if x.format == "csr":
        terms = elementwise("mul", data, gather(y, (x.positions,), 0))
        return cast(checked_sum(_accumulating(terms), x.starts), terms.type.dtype)
    terms = elementwise("mul", data, gather(y, (x.places()[1],), 0))
    return inc_gather(zeros(terms.type.dtype, (rows, *y.type.shape[1:])), terms, (x.positions,), 0)


def dot(x: Any, y: Any) -> Node:
    """The matrix product of two matrices, or of a matrix and a vector, of which one at least is sparse; dense."""
    left, right = _operands("dot", x, y)
    if isinstance(left, SparseVariable):
        return _sparse_dense(left, dense_from_sparse(right) if isinstance(right, SparseVariable) else right)
    if left.ndim != 2:
        return _sparse_dense(right.T, left)
    return transpose(_sparse_dense(right.T, transpose(left)))


def _sparse_sparse(x: SparseVariable, y: SparseVariable) -> SparseVariable:
    """The product of two sparse matrices: for each entry of the first all of a row of the second."""
    by_rows = asformat(y, "csr")
    (rows, columns), (height, _) = x.places(), x.sizes
    columns = require_equal(
        columns, [(x.sizes[1], y.sizes[0])], f"dot: the columns of {x!r} are not as many as rows of {y!r}"
    )
    source, entries = expanded(by_rows.starts, columns)
    terms = elementwise("mul", gather(x.data, (source,), 0), gather(by_rows.data, (entries,), 0))
    places = gather(rows, (source,), 0), gather(cast(by_rows.positions, "int64"), (entries,), 0)
    return ordered(x.format, terms, places, (height, y.sizes[1]), summed=True)


def structured_dot(x: Any, y: Any) -> Any:
    """The matrix product; sparse where both are, else dense. Its gradient by a sparse matrix is at its entries."""
    left, right = _operands("structured_dot", x, y)
    if isinstance(left, SparseVariable) and isinstance(right, SparseVariable):
        return _sparse_sparse(left, right)
    return dot(left, right)


def true_dot(x: Any, y: Any, grad_preserves_dense: bool = True) -> SparseVariable:
    """The matrix product as a sparse matrix, of the format of the first sparse one of the two."""
    left, right = _operands("true_dot", x, y)
    if isinstance(left, SparseVariable) and isinstance(right, SparseVariable):
        return _sparse_sparse(left, right)
    format = left.format if isinstance(left, SparseVariable) else right.format
    return (csr_from_dense if format == "csr" else csc_from_dense)(dot(left, right))


def sampling_dot(x: Any, y: Any, p: Any) -> SparseVariable:
    """p * dot(x, y.T) for dense x (m, k) and y (n, k), computed only where the sparse p (m, n) has entries."""
    matrix, left, right = as_sparse_variable(p), as_node(x), as_node(y)
    (rows, columns), (height, width) = matrix.places(), matrix.sizes
    left = broadcast_to(left, (height, left.type.shape[1]))
    right = broadcast_to(right, (width, right.type.shape[1]))
    products: Node = elementwise("mul", gather(left, (rows,), 0), gather(right, (columns,), 0)).sum(1)
    return matrix.with_data(cast(elementwise("mul", matrix.data, products), matrix.dtype))


def usmm(alpha: Any, x: Any, y: Any, z: Any) -> Node:
    """alpha * dot(x, y) + z."""
    return elementwise("add", elementwise("mul", as_node(alpha), dot(x, y)), as_node(z))


def transpose_of(x: Any) -> SparseVariable:
    """The transpose, in the other format."""
    return as_sparse_variable(x).T


METHODS.update(
    add=add, sub=sub, mul=mul, dot=dot, structured_dot=structured_dot, lt=lt, le=le, gt=gt, ge=ge, sum=sp_sum
)
