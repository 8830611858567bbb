"""Products of vectors, matrices and higher arrays, all by the one op matmul (and multiplication for outer products).

In: tensors of any mix of dtypes and ranks that NumPy's function of the same name takes. Out: nodes. Batches are matched
by explicit broadcasts; a matrix after a batch is one product of a tall matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.arrays.dtypes import is_inexact, promote
from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Complex, Guard, Node, Size, describe
from graphc.ir.source_lines import lazy_format
from graphc.ops import shape as ops
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.linalg import products as linalg
from graphc.tensor.creation import diagonal_matrix
from graphc.tensor.elementary import conj
from graphc.tensor.indexing import diagonal
from graphc.tensor.reductions import sum
from graphc.tensor.shaping import flatten, known_number, moveaxis, normalise_axes, normalise_axis

__all__ = [
    "batched_dot", "batched_tensordot", "diag", "diagflat", "dot", "inner", "kron", "matmul", "matvec", "outer",
    "tensordot", "trace", "vdot", "vecdot", "vecmat",
]  # fmt: skip

# --- dtypes ---------------------------------------------------------------------------------------------------------


def _operands(a: Any, b: Any) -> tuple[Node, Node]:
    """Both as nodes of their common dtype; Python numbers adapt to the other."""
    left, right = as_node(a), as_node(b)
    kinds = [x if isinstance(x, (int, float)) else node.type.dtype for x, node in ((a, left), (b, right))]
    dtype = (
        promote(*kinds) if any(isinstance(kind, str) for kind in kinds) else promote(left.type.dtype, right.type.dtype)
    )
    return cast(left, dtype), cast(right, dtype)


def _product(a: Node, b: Node) -> Node:
    """matmul of nodes of one dtype; bools are multiplied as integers."""
    if a.type.dtype == "bool":
        return cast(linalg.matmul(cast(a, "int64"), cast(b, "int64")), "bool")
    return linalg.matmul(a, b)


def _pair(a: Node, b: Node) -> str:
    return f"{describe(a)} of type {a.type} and {describe(b)} of type {b.type}"


# --- dot and matmul -------------------------------------------------------------------------------------------------


def dot(a: Any, b: Any) -> Node:
    """NumPy's dot: a product with a scalar, or the sum of products over the last axis of `a`, the last but one of `b`.

    Raises ShapeError where these sizes are known to differ. A sparse matrix has a product of its own.

        >>> T.dot(T.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]).eval()
        array([3., 7.])
    """
    for own, other, method in ((a, b, "__dot__"), (b, a, "__rdot__")):
        if hasattr(type(own), method):
            product: Node = getattr(own, method)(other)
            return product
    left, right = _operands(a, b)
    if not left.ndim or not right.ndim:
        return _by_scalar(left, right)
    if left.ndim <= 2 and right.ndim <= 2:
        return _product(left, right)
    return tensordot(left, right, ([left.ndim - 1], [max(right.ndim - 2, 0)]))


def _by_scalar(left: Node, right: Node) -> Node:
    """The product with a scalar. That of an array is added to zeros, as NumPy's: it has 0.0 for -0.0."""
    product = elementwise("mul", left, right)
    return elementwise("add", product, 0.0) if product.ndim and is_inexact(product.type.dtype) else product


def matmul(a: Any, b: Any) -> Node:
    """NumPy's matmul (`a @ b`): matrix products, leading axes broadcast. Raises GraphTypeError for a scalar.

    >>> T.matmul(T.constant([[1, 2], [3, 4]]), [[1, 0], [1, 1]]).eval()
    array([[3, 2],
           [7, 4]])
    """
    left, right = _operands(a, b)
    if not left.ndim or not right.ndim:
        raise RankError(f"matmul of {_pair(left, right)}: a scalar has no matrix product; use dot or *")
    if left.ndim <= 2 and right.ndim <= 2:
        return _product(left, right)
    if right.ndim <= 2:
        return _tall_product(left, right)
    if left.ndim == 1:
        return ops.drop(matmul(ops.expand(left, (0,)), right), (right.ndim - 2,))
    rank = max(left.ndim, right.ndim)
    left, right = ops.expand(left, range(rank - left.ndim)), ops.expand(right, range(rank - right.ndim))
    for axis in range(rank - 2):
        if not sizes.equal(left.type.shape[axis], 1) and not sizes.equal(right.type.shape[axis], 1):
            left, right = _paired(left, axis, right, axis, "matmul")
    outer = [y if sizes.equal(x, 1) else x for x, y in zip(left.type.shape[:-2], right.type.shape[:-2], strict=True)]
    left, right = (ops.broadcast_to(node, (*outer, *node.type.shape[-2:])) for node in (left, right))
    return _product(left, right)


def _paired(a: Node, axis: int, b: Node, other: int, name: str) -> tuple[Node, Node]:
    """Two operands of a function, of which an axis each has the size of the other's: ShapeError where it cannot have
    it; where that is not known, it is checked at each call, in words about both."""
    left, right = a.type.shape[axis], b.type.shape[other]
    if sizes.equal(left, right):
        return a, b
    sizes.common(left, right, f"{name} of {_pair(a, b)}", f": axes {axis} and {other}")
    if isinstance(right, int):
        b, a = _paired(b, other, a, axis, name)
        return a, b
    parts = (ops.label_call(name), other, ops.label_origin(b), axis, ops.label_origin(a))
    message = lazy_format("{}: axis {} of {} has size {{left}}, axis {} of {} has size {{right}}", *parts)
    return a, ops.guard_axis(b, other, Guard(right, "==", left, message))


def _tall_product(batch: Node, right: Node) -> Node:
    """A batch of matrices times one vector or matrix: the product of all their rows at once."""
    *outer, inner = batch.type.shape
    rows = ops.reshape(batch, (sizes.product(outer), inner))
    return ops.reshape(_product(rows, right), (*outer, *right.type.shape[1:]))


# --- other products -------------------------------------------------------------------------------------------------


def outer(a: Any, b: Any) -> Node:
    """The products of every element of `a` with every element of `b`, a matrix.

    Arrays of more axes are taken as vectors in C order.

        >>> T.outer(T.constant([1, 2]), [3, 4]).eval()
        array([[3, 4],
               [6, 8]])
    """
    return elementwise("mul", ops.expand(flatten(a), (1,)), ops.expand(flatten(b), (0,)))


def inner(a: Any, b: Any) -> Node:
    """The sum of products over the last axis of both.

    Raises ShapeError where that axis is known to differ.

        >>> T.inner(T.constant([1, 2, 3]), [0, 1, 1]).eval()
        array(5)
    """
    left, right = _operands(a, b)
    if not left.ndim or not right.ndim:
        return _by_scalar(left, right)
    return tensordot(left, right, ([left.ndim - 1], [right.ndim - 1]))


def vdot(a: Any, b: Any) -> Node:
    """The sum of products of all elements, taken in C order; those of a complex `a` are conjugated.

    The result is a scalar. Raises ShapeError for other numbers of elements.

        >>> T.vdot(T.constant([1, 2, 3]), [0, 1, 1]).eval()
        array(5)
    """
    return dot(conj(flatten(a)), flatten(b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    """The sum of products over `axes`: how many last axes of `a` and first ones of `b`, or a pair of lists of axes.

    Raises ShapeError where the sizes of these axes are known to differ.

        >>> T.tensordot(T.ones((2, 3, 4)), T.ones((3, 4, 5)), 2).eval().shape
        (2, 5)
    """
    left, right = _operands(a, b)
    what = f"tensordot of {_pair(left, right)}"
    axes = known_number(axes)
    if isinstance(axes, int):
        first, second = list(range(left.ndim - axes, left.ndim)), list(range(axes))
        if axes < 0 or axes > min(left.ndim, right.ndim):
            raise GraphValueError(f"{what}: axes={axes} is negative, or more axes than there are to sum over")
    else:
        first, second = _axis_lists(axes, left, right, what)
    if len(first) != len(second):
        raise GraphValueError(f"{what}: {len(first)} axes of the one, {len(second)} of the other")
    rows = [k for k in range(left.ndim) if k not in first]
    columns = [k for k in range(right.ndim) if k not in second]
    return contract(left, right, [], [], rows, first, second, columns, "tensordot")


def contract(
    a: Node,
    b: Node,
    batch_a: Sequence[int],
    batch_b: Sequence[int],
    rows: Sequence[int],
    summed_a: Sequence[int],
    summed_b: Sequence[int],
    columns: Sequence[int],
    name: str,
) -> Node:
    """The sum over pairs of axes as one (batched) matrix product; the result's axes are batch, rows, columns. `name`:
    the function that is called, for messages about sizes that differ."""

    def sizes_of(node: Node, axes: Sequence[int]) -> list[Size]:
        return [node.type.shape[axis] for axis in axes]

    for axis, other in zip((*batch_a, *summed_a), (*batch_b, *summed_b), strict=True):
        a, b = _paired(a, axis, b, other, name)
    batch, summed = sizes_of(a, batch_a), sizes_of(a, summed_a)
    depth = sizes.product(summed)
    left = ops.reshape(ops.dimshuffle(a, (*batch_a, *rows, *summed_a)), (*batch, *_joined(sizes_of(a, rows)), depth))
    right = ops.reshape(
        ops.dimshuffle(b, (*batch_b, *summed_b, *columns)), (*batch, depth, *_joined(sizes_of(b, columns)))
    )
    if batch:
        rank = len(batch) + 2
        left = left if left.ndim == rank else ops.expand(left, (rank - 2,))
        right = right if right.ndim == rank else ops.expand(right, (rank - 1,))
    return ops.reshape(_product(left, right), (*batch, *sizes_of(a, rows), *sizes_of(b, columns)))


def _joined(shape: Sequence[Size]) -> list[Size]:
    """One axis for several, none for none: a product of vectors is a loop, not a call of BLAS."""
    return [sizes.product(shape)] if shape else []


def batched_dot(a: Any, b: Any) -> Node:
    """For each position of the first axis of both the `dot` of what remains (Theano's): of any ranks from 1 on.

    Raises GraphTypeError for a scalar.

        >>> T.batched_dot(T.ones((7, 2, 3)), T.ones((7, 3, 4))).eval().shape
        (7, 2, 4)
    """
    left, right = _operands(a, b)
    if not left.ndim or not right.ndim:
        raise RankError(f"batched_dot of {_pair(left, right)}: a scalar has no axis")
    if left.ndim == 1 or right.ndim == 1:
        narrow, wide = sorted((left, right), key=lambda node: node.ndim)
        return elementwise("mul", ops.expand(narrow, range(1, wide.ndim)), wide)
    summed = max(right.ndim - 2, 1)
    rows = list(range(1, left.ndim - 1))
    columns = [k for k in range(1, right.ndim) if k != summed]
    return contract(left, right, [0], [0], rows, [left.ndim - 1], [summed], columns, "batched_dot")


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> Node:
    """For each position of the first axis of both the `tensordot` of what remains (Theano's).

    `axes`: how many last axes of `x` and first ones of `y` after the first, or a pair of lists of axes, counted with
    the first axis.
    """
    left, right = _operands(x, y)
    what = f"batched_tensordot of {_pair(left, right)}"
    if isinstance(axes, int):
        first, second = list(range(left.ndim - axes, left.ndim)), list(range(1, axes + 1))
        if axes < 0 or axes > min(left.ndim, right.ndim) - 1:
            raise GraphValueError(f"{what}: axes={axes} is negative, or more axes than there are to sum over")
    else:
        first, second = _axis_lists(axes, left, right, what)
    if len(first) != len(second) or 0 in first or 0 in second:
        raise GraphValueError(f"{what}: axes {axes} are not pairs of axes after the first")
    rows = [k for k in range(1, left.ndim) if k not in first]
    columns = [k for k in range(1, right.ndim) if k not in second]
    return contract(left, right, [0], [0], rows, first, second, columns, "batched_tensordot")


def _axis_lists(axes: Any, left: Node, right: Node, what: str) -> tuple[list[int], list[int]]:
    """A pair of axes, or of lists of axes, as lists."""
    given = list(axes)
    if len(given) != 2:
        raise GraphValueError(f"{what}: axes {axes} are not a number or a pair of lists")
    return list(normalise_axes(given[0], left.ndim, what)), list(normalise_axes(given[1], right.ndim, what))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Node:
    """The sum of products along `axis` of both, whose other axes broadcast; those of a complex `x1` are conjugated."""
    left, right = _operands(x1, x2)
    left = conj(left)
    if not left.ndim or not right.ndim:
        raise RankError(f"vecdot of {_pair(left, right)}: a scalar has no axis")
    what = f"vecdot of {_pair(left, right)}"
    left, right = (moveaxis(node, normalise_axis(axis, node.ndim, what), -1) for node in (left, right))
    if left.ndim == right.ndim == 1:
        return matmul(left, right)
    product = matmul(ops.expand(left, (left.ndim - 1,)), ops.expand(right, (right.ndim,)))
    return ops.drop(product, (product.ndim - 2, product.ndim - 1))


def matvec(x1: Any, x2: Any) -> Node:
    """The products of matrices, the last two axes of `x1`, and vectors, the last axis of `x2`; the others broadcast."""
    left, right = _operands(x1, x2)
    if left.ndim < 2 or not right.ndim:
        raise RankError(f"matvec of {_pair(left, right)}: it takes matrices and vectors")
    product = matmul(left, ops.expand(right, (right.ndim,)))
    return ops.drop(product, (product.ndim - 1,))


def vecmat(x1: Any, x2: Any) -> Node:
    """The products of vectors, the last axis of `x1`, which is conjugated, and matrices, the last two axes of `x2`; the
    others broadcast."""
    left, right = _operands(x1, x2)
    left = conj(left) if type(left) is Complex else left
    if not left.ndim or right.ndim < 2:
        raise RankError(f"vecmat of {_pair(left, right)}: it takes vectors and matrices")
    product = matmul(ops.expand(left, (left.ndim - 1,)), right)
    return ops.drop(product, (product.ndim - 2,))


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
    """The sum of a diagonal, in the dtype of a sum unless `dtype` is given.

    Raises AxisError for less than two axes.

        >>> T.trace(T.constant([[1, 2], [3, 4]])).eval()
        array(5)
    """
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)


def diagflat(x: Any, k: int = 0) -> Node:
    """The matrix with the elements of `x` in C order on diagonal `k` and zeros elsewhere."""
    return diagonal_matrix(flatten(x), k)


def diag(x: Any, k: int = 0) -> Node:
    """The diagonal of a matrix; of a vector the matrix with that diagonal.

    Raises RankError for other ranks.

        >>> T.diag(T.constant([1, 2])).eval()
        array([[1, 0],
               [0, 2]])
    """
    node = as_node(x)
    return diagonal(node, k) if node.ndim == 2 else diagonal_matrix(node, k)


def kron(a: Any, b: Any) -> Node:
    """The Kronecker product: every element of `a` times the whole of `b`.

    >>> T.kron(T.constant([[1, 2]]), [[1], [1]]).eval()
    array([[1, 2],
           [1, 2]])
    """
    left, right = as_node(a), as_node(b)
    rank = max(left.ndim, right.ndim)
    left, right = ops.expand(left, range(rank - left.ndim)), ops.expand(right, range(rank - right.ndim))
    wide = elementwise("mul", ops.expand(left, range(1, 2 * rank, 2)), ops.expand(right, range(0, 2 * rank, 2)))
    shape = [sizes.multiply(x, y) for x, y in zip(left.type.shape, right.type.shape, strict=True)]
    return ops.reshape(wide, shape)


FUNCTIONS.update(dot=dot, matmul=matmul, trace=trace)
