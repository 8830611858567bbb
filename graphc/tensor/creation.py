"""Arrays made of nothing but sizes and numbers.

In: shapes as `shaping.as_shape` takes them, numbers or scalars, dtypes (None: `options.floatX`). Out: nodes that are
recomputed at every use; none of them is materialised for its own sake.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, Size, describe, literal
from graphc.ir.walk import as_size_node, mention
from graphc.ops import index, shape as ops
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise
from graphc.tensor.shaping import ONE_BY_ONE, as_shape, as_size, swapaxes, unpack
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "alloc", "empty", "empty_like", "eye", "fill", "full", "full_like", "identity", "identity_like",
    "meshgrid", "one_hot", "ones", "ones_like", "second", "tri", "tril", "triu", "zeros",
    "zeros_like",
]  # fmt: skip

# --- one value everywhere -------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Node:
    """An array of `shape` filled with `fill_value`, which broadcasts; its dtype unless another is given.

    Sizes are numbers or integer scalars.

        >>> T.full((2, 2), 7).eval()
        array([[7, 7],
               [7, 7]])
    """
    value = as_node(fill_value, None if dtype is None else resolve_dtype(dtype))
    target = as_shape(shape, "full", instead=ONE_BY_ONE)
    if value.ndim > len(target):
        raise ShapeError(f"full: {describe(value)} of type {value.type} has more axes than the shape")
    ops.check_naturals(target, "full")
    return ops.broadcast_to(ops.expand(value, range(len(target) - value.ndim)), target)


def zeros(shape: Any, dtype: Any = None) -> Node:
    """An array of zeros.

    Sizes are numbers or integer scalars; the dtype is floatX unless another is given.

        >>> T.zeros((2, 2)).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    return full(shape, 0, resolve_dtype(dtype))


def ones(shape: Any, dtype: Any = None) -> Node:
    """An array of ones.

    Sizes and dtype: as of `zeros`.

        >>> T.ones(3, "int8").eval()
        array([1, 1, 1], dtype=int8)
    """
    return full(shape, 1, resolve_dtype(dtype))


def empty(shape: Any, dtype: Any = None) -> Node:
    """An array whose elements do not matter: zeros."""
    return zeros(shape, dtype)


def _same_shape(x: Any) -> tuple[Node, tuple[Size, ...]]:
    node = as_node(x)
    mention([node])
    return node, node.type.shape


def empty_like(x: Any, dtype: Any = None) -> Node:
    """An array of the shape, and unless given the dtype, of `x`, whose elements do not matter: zeros."""
    return full_like(x, 0, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Node:
    """An array of the shape, and unless given the dtype, of `x`, filled with `fill_value`.

    >>> T.full_like(T.constant([1, 2]), 7).eval()
    array([7, 7])
    """
    node, shape = _same_shape(x)
    return full(shape, cast(as_node(fill_value), node.type.dtype if dtype is None else resolve_dtype(dtype)))


def zeros_like(x: Any, dtype: Any = None) -> Node:
    """Zeros in the shape, and unless given the dtype, of `x`.

    >>> T.zeros_like(T.constant([1, 2])).eval()
    array([0, 0])
    """
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Node:
    """Ones in the shape, and unless given the dtype, of `x`.

    >>> T.ones_like(T.constant([1.0, 2.0])).eval()
    array([1., 1.])
    """
    return full_like(x, 1, dtype)


def alloc(value: Any, *shape: Any) -> Node:
    """`value` broadcast to `shape` (Theano's)."""
    return full(unpack(shape), value)


def fill(x: Any, value: Any) -> Node:
    """`value` in the shape to which `x` and it broadcast, in the value's dtype (Theano's)."""
    node, own = _same_shape(x)
    filling = as_node(value)
    if filling.ndim > node.ndim or any(sizes.equal(size, 1) for size in own):
        shape = broadcast_sizes("fill", [node, filling])
    else:
        shape = own
    return ops.broadcast_to(broadcast_node(filling, shape), shape)


second = fill


# --- grids ----------------------------------------------------------------------------------------------------------


def meshgrid(*vectors: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Node]:
    """Coordinate arrays of the grid that the vectors span; "xy" exchanges the first two axes, "ij" does not.

    With `sparse` they broadcast to the grid. `copy` is NumPy's and means nothing.

        >>> [each.eval().tolist() for each in T.meshgrid(T.arange(2), T.arange(3), indexing="ij")]
        [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    """
    if indexing not in ("xy", "ij"):
        raise GraphValueError(f"meshgrid: indexing {indexing!r} is neither 'xy' nor 'ij'")
    nodes = [ops.reshape(node, (sizes.product(node.type.shape),)) for node in map(as_node, vectors)]
    shape = [node.type.shape[0] for node in nodes]
    grids = [ops.expand(node, [k for k in range(len(nodes)) if k != axis]) for axis, node in enumerate(nodes)]
    if not sparse:
        grids = [ops.broadcast_to(grid, shape) for grid in grids]
    return [swapaxes(grid, 0, 1) for grid in grids] if indexing == "xy" and len(grids) > 1 else grids


# --- matrices -------------------------------------------------------------------------------------------------------


def _coordinates(rows: Size, columns: Size) -> tuple[Node, Node]:
    """The row and the column number of each element of a matrix, ready to broadcast."""
    return ops.expand(ops.iota(rows), (1,)), ops.expand(ops.iota(columns), (0,))


def _place(matrix: Node, k: Any, relation: str) -> Node:
    """Where column (relation) row + k holds in the last two axes of `matrix`."""
    rows, columns = _coordinates(*matrix.type.shape[-2:])
    return elementwise(relation, columns, elementwise("add", rows, k))


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Node:
    """The n x m matrix (m = n by default) with ones on diagonal `k` and zeros elsewhere.

    The dtype is floatX unless another is given.

        >>> T.eye(2, 3, 1).eval()
        array([[0., 1., 0.],
               [0., 0., 1.]])
    """
    rows = as_size(n, "eye: n")
    shape = (rows, rows if m is None else as_size(m, "eye: m"))
    row, column = _coordinates(*shape)
    return cast(elementwise("equal", column, elementwise("add", row, k)), resolve_dtype(dtype))


def identity(n: Any, dtype: Any = None) -> Node:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def identity_like(x: Any, dtype: Any = None) -> Node:
    """The identity matrix in the shape of matrix `x` (Theano's)."""
    node = as_node(x)
    if node.ndim != 2:
        raise RankError(f"identity_like of {describe(node)} of type {node.type}: it is no matrix")
    rows, columns = map(as_size_node, node.type.shape)
    return eye(rows, columns, dtype=node.type.dtype if dtype is None else dtype)


def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Node:
    """The n x m matrix with ones on and below diagonal `k` and zeros above.

    >>> T.tri(2).eval()
    array([[1., 0.],
           [1., 1.]])
    """
    rows = as_size(n, "tri: n")
    row, column = _coordinates(rows, rows if m is None else as_size(m, "tri: m"))
    return cast(elementwise("less_equal", column, elementwise("add", row, k)), resolve_dtype(dtype))


def _triangle(name: str, x: Any, k: Any, relation: str) -> Node:
    node = as_node(x)
    if node.ndim < 2:
        raise RankError(f"{name} of {describe(node)} of type {node.type}: it is no matrix")
    zero = literal(0, node.type.dtype)
    return elementwise("where", _place(node, k, relation), node, zero)


def tril(x: Any, k: Any = 0) -> Node:
    """`x` with zeros above diagonal `k` of its last two axes.

    Raises RankError for less than two axes.

        >>> T.tril(T.ones((2, 2))).eval()
        array([[1., 0.],
               [1., 1.]])
    """
    return _triangle("tril", x, k, "less_equal")


def triu(x: Any, k: Any = 0) -> Node:
    """`x` with zeros below diagonal `k` of its last two axes.

    Raises RankError for less than two axes.

        >>> T.triu(T.ones((2, 2))).eval()
        array([[1., 1.],
               [0., 1.]])
    """
    return _triangle("triu", x, k, "greater_equal")


def diagonal_matrix(vector: Any, k: int = 0) -> Node:
    """The square matrix with `vector` on diagonal `k` and zeros elsewhere."""
    node = as_node(vector)
    if node.ndim != 1:
        raise RankError(f"diag of {describe(node)} of type {node.type}: it is neither a vector nor a matrix")
    length = sizes.add(node.type.shape[0], abs(k))
    position = ops.iota(node.type.shape[0])
    rows, columns = (elementwise("add", position, max(shift, 0)) if shift > 0 else position for shift in (-k, k))
    return index.set_gather(ops.zeros(node.type.dtype, (length, length)), node, (rows, columns), 0)


def one_hot(classes: Any, count: Any, dtype: Any = None) -> Node:
    """For each integer of `classes` a row of `count` zeros with a one at that position (all zeros where outside).

    >>> T.one_hot(T.constant([1, 0]), 2).eval()
    array([[0., 1.],
           [1., 0.]])
    """
    node = as_node(classes)
    if is_float(node.type.dtype) or node.type.dtype == "bool":
        raise GraphTypeError(f"one_hot of {describe(node)}: classes are integers, not {node.type.dtype}")
    position = cast(ops.iota(as_size(count, "one_hot: the number of classes")), "int64")
    return cast(elementwise("equal", ops.expand(cast(node, "int64"), (node.ndim,)), position), resolve_dtype(dtype))


FUNCTIONS.update(fill=fill, ones_like=ones_like, zeros_like=zeros_like)
