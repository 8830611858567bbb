"""Arithmetic of sparse matrices, and products.

In: sparse variables, matrices of SciPy, tensors. Out: sparse variables where the result has places that are 0 for
certain, tensors else. All of it is made of functions of dense vectors, so that gradients follow; by a sparse matrix
they are taken at its entries.

A product of a csr matrix with a vector or a matrix is one loop over rows, which threads share (ops/segment.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.arrays.dtypes import accumulator, promote
from graphc.errors import GraphTypeError, RankError
from graphc.ir.node import Node, Size, describe
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import gather, inc_gather
from graphc.ops.segment import checked_sum
from graphc.ops.shape import broadcast_to, concatenate, expand, transpose, zeros
from graphc.sparse.structure import (
    asformat,
    at_all_places,
    csc_from_dense,
    csr_from_dense,
    dense_from_sparse,
    expanded,
    lookup,
    ordered,
)
from graphc.sparse.variable import METHODS, SparseVariable, as_sparse_or_tensor_variable, as_sparse_variable, held
from graphc.tensor import elementary


def _operands(what: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Both as sparse variables or tensors; a Python number has the dtype that it takes beside the other."""
    left, right = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    if isinstance(x, bool | int | float):
        left = as_node(x, promote(right.dtype, x))
    if isinstance(y, bool | int | float):
        right = as_node(y, promote(left.dtype, y))
    if isinstance(left, Node) and isinstance(right, Node):
        raise GraphTypeError(f"{what}: neither {describe(left)} nor {describe(right)} is sparse")
    return left, right


def _of_sizes(y: Node, shape: tuple[Size, Size]) -> Node:
    """A dense operand, as large as a sparse one: a matrix of its sizes, a row for all rows, or a number."""
    if y.ndim > 2:
        raise RankError(f"{describe(y)} of type {y.type} has more axes than a sparse matrix")
    return broadcast_to(expand(y, range(2 - y.ndim)), shape)


def _at_entries(x: SparseVariable, y: Node) -> Node:
    """The elements of a dense operand where a matrix has entries."""
    return gather(_of_sizes(y, x.sizes), x.places(), 0) if y.ndim else y


def _alike(what: str, x: SparseVariable, y: SparseVariable) -> SparseVariable:
    """The second of two matrices, held to the sizes of the first."""
    pairs = zip(x.sizes, y.sizes, strict=True)
    return y.with_data(held(y.data, pairs, f"{what}: {x!r} and {y!r} have different sizes"))


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
    found = lookup(_alike("mul", matrix, right), *matrix.places())
    return matrix.with_data(elementwise("mul", matrix.data, found))


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
        found = cast(elementwise(name, *(_of_sizes(each, shape) for each in dense)), "uint8")
        if not both:
            return found
        return (csr_from_dense if left.format == "csr" else csc_from_dense)(found)

    compare.__doc__ = f"""`{name}` by elements, 0 or 1 in uint8: sparse where both are, else dense."""
    return compare


eq, neq = _comparison("equal"), _comparison("not_equal")
lt, gt = _comparison("less"), _comparison("greater")
le, ge = _comparison("less_equal"), _comparison("greater_equal")


def structured_monoid(tensor_op: Callable[..., Node]) -> Callable[[Callable[..., Any]], Callable[..., SparseVariable]]:
    """A decorator: a function of entries, over a sparse matrix and numbers, in place of what it decorates."""

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
    return inc_gather(zeros(matrix.dtype, (matrix.sizes[kept],)), matrix.data, (matrix.counted,), 0)


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
        terms = elementwise("mul", data, gather(y, (x.counted,), 0))
        return cast(checked_sum(_accumulating(terms), x.starts), terms.type.dtype)
    terms = elementwise("mul", data, gather(y, (x.places()[1],), 0))
    return inc_gather(zeros(terms.type.dtype, (rows, *y.type.shape[1:])), terms, (x.counted,), 0)


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
    columns = held(columns, [(x.sizes[1], y.sizes[0])], f"dot: the columns of {x!r} are not as many as rows of {y!r}")
    source, entries = expanded(by_rows.starts, columns)
    terms = elementwise("mul", gather(x.data, (source,), 0), gather(by_rows.data, (entries,), 0))
    places = gather(rows, (source,), 0), gather(cast(by_rows.counted, "int64"), (entries,), 0)
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
