"""Where entries stand: matrices made of places, in another format, of some rows, next to each other.

In: sparse variables, places as (row, column) vectors. Out: sparse variables, dense arrays of them. Entries are put in
order by their positions in the dense matrix, an int64 each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import promote
from graphc.errors import GradientError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import gather, inc_gather
from graphc.ops.recur import running_sum
from graphc.ops.shape import broadcast_to, concatenate, expand, filled, iota, zeros
from graphc.sparse.variable import FORMATS, METHODS, SparseVariable, as_sparse_variable, held
from graphc.tensor.joining import repeat
from graphc.tensor.masks import nonzero
from graphc.tensor.order import argsort, searchsorted
from graphc.tensor.ranges import arange
from graphc.tensor.sets import unique


def dense_from_sparse(x: Any, structured: bool = True) -> Node:
    """A sparse matrix as a dense one. The gradient is taken at the entries, or, where not `structured`, at all places:
    of a matrix that `csr_from_dense` or `csc_from_dense` made of a dense one. Raises GradientError for a gradient at
    all places of another matrix, which has none where it has no entries."""
    matrix = as_sparse_variable(x)
    made = inc_gather(zeros(matrix.dtype, matrix.sizes), matrix.data, matrix.places(), 0)
    return made if structured else at_all_places(matrix, made, lambda cotangent: cotangent)


def at_all_places(matrix: SparseVariable, made: Node, derivative: Callable[[Node], Node]) -> Node:
    """What is computed of a matrix, linear in its elements, whose derivative is taken by all of these: by the dense
    matrix that it was made of. derivative: from a cotangent to that of the elements. Without such a matrix a derivative
    is a GradientError."""

    def refuse(*_: Any) -> list[Node]:
        raise GradientError(
            f"the derivative of {describe(made)} at all places of {matrix!r}, which has none where it has no entries: "
            "structured=True takes it at the entries, and csr_from_dense(x) has one at all places of x"
        )

    if matrix.dense is None:
        return overridden([made], [matrix.data], refuse)[0]
    return overridden([made], [matrix.dense], lambda inputs, results, given, wanted: [derivative(given[0])])[0]


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
    (rows, columns), (height, width) = matrix.places(), matrix.sizes
    values = elementwise("where", elementwise("equal", rows, columns), matrix.data, literal(0, matrix.dtype))
    length = sizes.minimum(height, width)
    last = sizes.maximum(sizes.subtract(length, 1), 0)
    inside = elementwise("minimum", rows, as_size_node(last))
    held = zeros(matrix.dtype, (sizes.maximum(length, 1),))
    found: Node = inc_gather(held, values, (inside,), 0)[: as_size_node(length)]
    return found


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
    found = elementwise("equal", gather(known, (place,), 0), wanted)
    return elementwise("where", found, gather(values, (place,), 0), literal(0, x.dtype))


def _counted(index: Node, size: Size) -> Node:
    """Positions that count from the end where they are negative; outside of the axis is an error."""
    return gather(iota(size), (index,), 0)


def get_item_scalar(x: Any, index: Sequence[Any]) -> Node:
    """One element of a matrix, a scalar."""
    matrix = as_sparse_variable(x)
    first, second = (_counted(cast(as_node(one), "int64"), n) for one, n in zip(index, matrix.sizes, strict=True))
    rows, columns = matrix.places()
    there = elementwise("logical_and", elementwise("equal", rows, first), elementwise("equal", columns, second))
    chosen: Node = elementwise("where", there, matrix.data, literal(0, matrix.dtype)).sum(dtype=matrix.dtype)
    return chosen


def get_item_2lists(x: Any, ind1: Any, ind2: Any) -> Node:
    """The elements of a matrix at rows `ind1` and columns `ind2`, a vector."""
    matrix = as_sparse_variable(x)
    places = (_counted(cast(as_node(one), "int64"), n) for one, n in zip((ind1, ind2), matrix.sizes, strict=True))
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
    chosen = _counted(cast(as_node(index), "int64"), matrix.sizes[0])
    rows, entries = expanded(by_rows.starts, chosen)
    data, columns = (gather(each, (entries,), 0) for each in (by_rows.data, cast(by_rows.counted, "int64")))
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
    if len(keys) == 2 and not any(isinstance(one, slice) for one in keys):
        ranks = {as_node(one).ndim for one in keys}
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
    data = [held(part.astype(wanted).data, pairs, message) for part in parts]
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
