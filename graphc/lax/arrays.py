"""Functions of whole arrays under JAX's names: shapes, sums, running values, orders, products.

In: tensors, arrays and numbers; axes are named, as `lax` has no default for most. Out: tensors.

    reduce_sum(x, (0,))                                   the sum over axis 0, in the dtype of x
    cummax(x, axis=0, reverse=True)                       the largest so far, from the end
    dot_general(a, b, (((2,), (1,)), ((0,), (0,))))       products of matrices in stacks

Results have the dtype of the operand, where NumPy's functions would make a sum of integers wider.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc import tensor
from graphc.arrays.dtypes import is_float
from graphc.control.functional import scan
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ir.pairs import extra_axes, with_pairs
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import set_subtensor
from graphc.options import options
from graphc.tensor import arranging, joining
from graphc.tensor.reductions import running_extreme
from graphc.tensor.shaping import as_size, normalise_axes, normalise_axis
from graphc.trees import leaves, like, structure

Axes: TypeAlias = "Sequence[int]"


class Precision:
    """The precision of a product, for JAX's sake: graphc computes in the dtype of the operands, whatever is given.
    Raises TypeError for an argument: only its members are used."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


DotDimensionNumbers: TypeAlias = "tuple[tuple[Axes, Axes], tuple[Axes, Axes]]"
"""((contracted axes of the left, of the right), (batch axes of the left, of the right))."""


# --- shapes -----------------------------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[Any]) -> Node:
    """Return the operand repeated along new first axes of these sizes.

    >>> lax.broadcast(T.constant([1, 2]), (2,)).eval()
    array([[1, 2],
           [1, 2]])
    """
    node = as_node(operand)
    return broadcast_in_dim(node, (*sizes, *node.type.shape), range(len(sizes), len(sizes) + node.ndim))


def broadcast_in_dim(operand: Any, shape: Sequence[Any], broadcast_dimensions: Axes) -> Node:
    """Return an array of a shape, in which the axes of the operand are at `broadcast_dimensions`, and it is repeated
    along the others, and where it has size 1. Raises RankError for another number of axes than the operand's.

        >>> lax.broadcast_in_dim(T.constant([1, 2]), (2, 2), (0,)).eval()
        array([[1, 1],
               [2, 2]])
    """
    node, extents = as_node(operand), [as_size(size, "broadcast_in_dim: a size") for size in shape]
    places = list(broadcast_dimensions)
    if len(places) != node.ndim or any(not 0 <= place < len(extents) for place in places) or places != sorted(places):
        raise RankError(
            f"broadcast_in_dim of {describe(node)} of type {node.type}: broadcast_dimensions={tuple(places)} must be a "
            f"rising number below {len(extents)} for each axis"
        )
    return layout.broadcast_to(layout.expand(node, [k for k in range(len(extents)) if k not in places]), extents)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that shapes of Python integers broadcast to. Raises ShapeError where they do not.

    >>> lax.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    try:
        return np.broadcast_shapes(*(tuple(shape) for shape in shapes))
    except ValueError as error:
        raise ShapeError(f"broadcast_shapes: {error}") from None


def broadcast_to_rank(x: Any, rank: int) -> Node:
    """Return `x` with new first axes of size 1, so that it has `rank` axes. Raises RankError where it has more.

    >>> lax.broadcast_to_rank(T.constant([1, 2]), 2).eval()
    array([[1, 2]])
    """
    node = as_node(x)
    if node.ndim > rank:
        raise RankError(f"broadcast_to_rank: {describe(node)} of type {node.type} has more than {rank} axes")
    return layout.expand(node, range(rank - node.ndim))


def iota(dtype: Any, size: Any) -> Node:
    """Return 0, 1, 2 and so on, `size` numbers of a dtype.

    >>> lax.iota("float64", 3)
    array([0., 1., 2.])
    """
    return cast(layout.iota(as_size(size, "iota: the size")), str(np.dtype(dtype)))


def broadcasted_iota(dtype: Any, shape: Sequence[Any], dimension: int) -> Node:
    """Return an array of a shape whose elements count along one axis.

    >>> lax.broadcasted_iota("int64", (2, 2), 1)
    array([[0, 1],
           [0, 1]])
    """
    extents = [as_size(size, "broadcasted_iota: a size") for size in shape]
    place = normalise_axis(dimension, len(extents), "broadcasted_iota")
    return broadcast_in_dim(iota(dtype, extents[place]), extents, (place,))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Node:
    """Return an array of a shape, a size or several, full of one value, of its dtype where none is given.

    >>> lax.full((2,), 7.0)
    array([7., 7.])
    """
    extents = [as_size(size, "full: a size") for size in (shape if isinstance(shape, Sequence) else [shape])]
    value = as_node(fill_value)
    return layout.filled(value if dtype is None else cast(value, str(np.dtype(dtype))), extents)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Node:
    """Return `full` of the shape and dtype of `x`, but for what is given.

    >>> lax.full_like(T.constant([1.0, 2.0]), 3).eval()
    array([3., 3.])
    """
    node = as_node(x)
    return full(node.type.shape if shape is None else shape, fill_value, node.type.dtype if dtype is None else dtype)


def empty(shape: Any, dtype: Any = None) -> Node:
    """Return an array of a shape whose elements nobody needs: zeros, of floats where no dtype is given.

    >>> lax.empty((2,))
    array([0., 0.])
    """
    return full(shape, 0, options.floatX if dtype is None else dtype)


def convert_element_type(operand: Any, new_dtype: Any) -> Node:
    """Return the operand in another dtype, as NumPy's astype does.

    >>> lax.convert_element_type(T.constant([1.5]), "int32").eval()
    array([1], dtype=int32)
    """
    return cast(as_node(operand), str(np.dtype(new_dtype)))


def reshape(operand: Any, new_sizes: Sequence[Any], dimensions: Axes | None = None) -> Node:
    """Return the elements in another shape. dimensions: the order of axes in which they are read. Raises ShapeError for
    another number of elements.

        >>> lax.reshape(np.array([[1, 2], [3, 4]]), (4,), (1, 0))
        array([1, 3, 2, 4])
    """
    node = as_node(operand) if dimensions is None else transpose(operand, dimensions)
    found: Node = tensor.reshape(node, tuple(new_sizes))
    return found


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Node:
    """Return the operand with the axes from `start_dimension` up to `stop_dimension`, the last by default, made one.

    >>> lax.collapse(T.zeros((2, 3, 4)), 1).eval().shape
    (2, 12)
    """
    node = as_node(operand)
    first, last, _ = slice(start_dimension, stop_dimension).indices(node.ndim)
    shape = node.type.shape
    return layout.reshape(node, (*shape[:first], sizes.product(shape[first:last]), *shape[last:]))


def squeeze(array: Any, dimensions: Axes) -> Node:
    """Return the array without these axes. Raises ShapeError, at the call where sizes are not known before, for one
    whose size is not 1.

        >>> lax.squeeze(np.ones((1, 2)), (0,))
        array([1., 1.])
    """
    node = as_node(array)
    axes = normalise_axes(tuple(dimensions), node.ndim, "squeeze")
    held = tensor.specify_shape(node, tuple(1 if axis in axes else None for axis in range(node.ndim)))
    return layout.drop(held, axes)


def expand_dims(array: Any, dimensions: Axes) -> Node:
    """Return the array with new axes of size 1 at these places of the result.

    >>> lax.expand_dims(T.constant([1, 2]), (0, 2)).eval().shape
    (1, 2, 1)
    """
    found: Node = tensor.expand_dims(array, tuple(dimensions))
    return found


def transpose(operand: Any, permutation: Axes) -> Node:
    """Return the operand with its axes in another order. Raises AxisError for what is no order of its axes.

    >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    found: Node = tensor.transpose(operand, tuple(permutation))
    return found


def rev(operand: Any, dimensions: Axes) -> Node:
    """Return the operand with its elements in reverse order along these axes.

    >>> lax.rev(T.constant([1, 2, 3]), (0,)).eval()
    array([3, 2, 1])
    """
    node = as_node(operand)
    for axis in normalise_axes(tuple(dimensions), node.ndim, "rev"):
        node = tensor.flip(node, axis)
    return node


def concatenate(operands: Sequence[Any], dimension: int) -> Node:
    """Return arrays joined along an axis. Raises ShapeError where their other sizes differ.

    >>> lax.concatenate([np.array([1]), np.array([2, 3])], 0)
    array([1, 2, 3])
    """
    found: Node = tensor.concatenate(list(operands), dimension)
    return found


def split(operand: Any, sizes: Sequence[Any], axis: int = 0) -> list[Node]:
    """Return the parts of the operand of these sizes along an axis, which have its size together.

    >>> [part.eval().tolist() for part in lax.split(T.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    node, begin = as_node(operand), as_node(0, "int64")
    place = normalise_axis(axis, node.ndim, "split")
    total, own = functools.reduce(lambda a, b: a + b, sizes, 0), node.type.shape[place]
    if isinstance(total, int) and isinstance(own, int) and total != own:
        raise ShapeError(
            f"split of {describe(node)} of type {node.type}: the sizes {tuple(sizes)} are {total} together"
        )
    found = []
    for size in sizes:
        end = elementwise("add", begin, size)
        found.append(node[(slice(None),) * place + (slice(begin, end),)])
        begin = end
    return found


def stack(arrays: Sequence[Any], axis: int = 0) -> Node:
    """Return the operands along a new axis.

    >>> lax.stack([np.zeros(2), np.ones(2)], axis=1)
    array([[0., 1.],
           [0., 1.]])
    """
    return joining.stack([as_node(each) for each in arrays], axis=axis)


def unstack(array: Any, axis: int = 0) -> list[Node]:
    """Return the parts along an axis of known size, which they have not.

    >>> lax.unstack(np.array([[1, 2], [3, 4]]), axis=1)
    [array([1, 3]), array([2, 4])]
    """
    return list(arranging.unstack(array, axis))


def tile(array: Any, reps: Sequence[Any]) -> Node:
    """Return the array, one after the other: as often along each axis as `reps` says.

    >>> lax.tile(np.array([1, 2]), (2,))
    array([1, 2, 1, 2])
    """
    return joining.tile(array, tuple(reps))


def optimization_barrier(operand: Any) -> Any:
    """Return the operand, an array or a tree of them: graphc moves nothing that changes a value. Raises no error."""
    return operand


# --- sums and their kin -----------------------------------------------------------------------------------------------


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Axes) -> Any:
    """Return the operands reduced over some axes by a function of two values, from `init_values`.

    operands: an array or a tree of them; init_values: such a tree of scalars. computation: takes two such trees, and
    must be associative; it is applied to one element after the other. Raises RankError for a value that is no scalar,
    GraphTypeError where the function changes the structure.

        >>> lax.reduce(T.constant([1, 2, 3]), 1, lambda a, b: a * b, (0,)).eval()
        array(6)
    """
    nodes, starts = [as_node(leaf) for leaf in leaves(operands)], [as_node(leaf) for leaf in leaves(init_values)]
    axes = normalise_axes(tuple(dimensions), nodes[0].ndim, "reduce")
    rows, begin = [], []
    for node, start in zip(nodes, starts, strict=True):
        if start.ndim:
            raise RankError(f"reduce: the value to begin with, {describe(start)} of type {start.type}, is no scalar")
        rest = [axis for axis in range(node.ndim) if axis not in axes]
        shape = [node.type.shape[axis] for axis in rest]
        count = sizes.product([node.type.shape[axis] for axis in axes])
        rows.append(layout.reshape(layout.dimshuffle(node, (*axes, *rest)), (count, *shape)))
        begin.append(layout.filled(cast(start, node.type.dtype), shape))

    def step(total: Any, row: Any) -> tuple[Any, None]:
        made = computation(total, row)
        if structure(made) != structure(operands):
            raise GraphTypeError(f"reduce: the function must return what is like the operands, not {made!r}")
        return made, None

    return scan(step, like(operands, begin), like(operands, rows))[0]


def _reduction(name: str, target: str, doc: str) -> Callable[[Any, Axes], Node]:
    def function(operand: Any, axes: Axes) -> Node:
        node = as_node(operand)
        return cast(getattr(tensor, target)(node, axis=tuple(axes)), node.type.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {doc} over some axes, in the dtype of the operand.

    lax.{name}(np.array([[1, 2], [3, 4]]), (0,)) has one element for each column. Raises AxisError for a wrong axis.
    """
    return function


reduce_sum = _reduction("reduce_sum", "sum", "the sum")
reduce_prod = _reduction("reduce_prod", "prod", "the product")
reduce_max = _reduction("reduce_max", "max", "the largest element")
reduce_min = _reduction("reduce_min", "min", "the smallest element")


def _bitwise(name: str, own: str, of_bools: str | None, begin: int) -> Callable[[Any, Axes], Node]:
    def function(operand: Any, axes: Axes) -> Node:
        node = as_node(operand)
        if is_float(node.type.dtype):
            raise GraphTypeError(f"{name}: {describe(node)} of type {node.type} is neither of bools nor of integers")
        if node.type.dtype == "bool" and of_bools is not None:
            found: Node = getattr(tensor, of_bools)(node, axis=tuple(axes))
            return found
        first = as_node(bool(begin)) if node.type.dtype == "bool" else cast(as_node(begin), node.type.dtype)
        made: Node = reduce(node, first, lambda a, b: elementwise(own, a, b), axes)
        return made

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the {own.replace('_', ' ')} of the bools, or of the bits of integers, over some axes."
    return function


reduce_and = _bitwise("reduce_and", "bitwise_and", "all", -1)
reduce_or = _bitwise("reduce_or", "bitwise_or", "any", 0)
reduce_xor = _bitwise("reduce_xor", "bitwise_xor", None, 0)


def argmax(operand: Any, axis: int, index_dtype: Any = "int64") -> Node:
    """Return the place of the largest element along an axis, the first where there are several.

    >>> lax.argmax(np.array([[1, 3, 2]]), 1)
    array([1])
    """
    return cast(tensor.argmax(operand, axis), str(np.dtype(index_dtype)))


def argmin(operand: Any, axis: int, index_dtype: Any = "int64") -> Node:
    """Return the place of the smallest element along an axis, the first where there are several.

    >>> lax.argmin(np.array([[1, 3, 2]]), 1, "int32")
    array([0], dtype=int32)
    """
    return cast(tensor.argmin(operand, axis), str(np.dtype(index_dtype)))


# --- running values ---------------------------------------------------------------------------------------------------


def _running(name: str, doc: str, run: Callable[[Node], Node]) -> Callable[..., Node]:
    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Node:
        node = as_node(operand)
        place = normalise_axis(axis, node.ndim, name)
        rows = tensor.moveaxis(node, place, 0)
        made = run(tensor.flip(rows, 0) if reverse else rows)
        return cast(tensor.moveaxis(tensor.flip(made, 0) if reverse else made, 0, place), node.type.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {doc} up to each element of an axis, from its end with `reverse`, in the shape and the
    dtype of the operand.

    lax.{name}(np.array([1.0, 3.0, 2.0])) has three elements, the first 1. Raises AxisError for a wrong axis.
    """
    return function


def _logaddexps(rows: Node) -> Node:
    first = layout.filled(as_node(-np.inf, rows.type.dtype), rows.type.shape[1:])

    def step(total: Node, row: Node) -> tuple[Node, Node]:
        made = elementwise("logaddexp", total, row)
        return made, made

    found: Node = scan(step, first, rows)[1]
    return found


cumsum = _running("cumsum", "the sum", lambda rows: tensor.cumsum(rows, 0))
cumprod = _running("cumprod", "the product", lambda rows: tensor.cumprod(rows, 0))
cummax = _running("cummax", "the largest element", lambda rows: running_extreme(rows, "maximum"))
cummin = _running("cummin", "the smallest element", lambda rows: running_extreme(rows, "minimum"))
cumlogsumexp = _running("cumlogsumexp", "the log of the sum of exponentials", _logaddexps)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return the running values of an associative function: the first element, `fn` of the first two, and so on.

    fn: takes two trees of arrays like `elems`, and works element by element along `axis`. elems: an array or a tree of
    them, of equal sizes along `axis`. reverse: from the end. One element is taken after the other, by a compiled loop:
    that is less work than a tree of partial results, which a machine with many processors would need.

        >>> lax.associative_scan(lambda a, b: a * b, T.constant([1, 2, 3, 4])).eval()
        array([ 1,  2,  6, 24])

    Raises GraphTypeError where `fn` changes the structure or a dtype.
    """
    elems = with_pairs(elems)
    pairs = zip(leaves(elems), extra_axes(elems), strict=True)
    places = [normalise_axis(axis, as_node(leaf).ndim - extra, "associative_scan") for leaf, extra in pairs]
    rows = [tensor.moveaxis(as_node(leaf), place, 0) for leaf, place in zip(leaves(elems), places, strict=True)]
    rows = [tensor.flip(row, 0) for row in rows] if reverse else rows

    def laid(nodes: Sequence[Node]) -> Any:  # one element along the axis itself
        pairs = zip(nodes, places, strict=True)
        return like(elems, [tensor.moveaxis(node, 0, place) for node, place in pairs])

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        made = fn(laid(carry), laid([layout.expand(each, (0,)) for each in row]))
        found = zip(leaves(made), places, strict=True)
        after = [tensor.moveaxis(as_node(each), place, 0) for each, place in found]
        return after, [layout.reshape(each, each.type.shape[1:]) for each in after]

    first = [_one_row(row) for row in rows]
    _, rest = scan(step, first, [row[1:] for row in rows])
    whole = [layout.concatenate([row[:1], more], 0) for row, more in zip(rows, rest, strict=True)]
    return laid([tensor.flip(each, 0) for each in whole] if reverse else whole)


def _one_row(rows: Node) -> Node:
    """Return the first row along an axis of size 1, zeros where there is none."""
    none = layout.zeros(rows.type.dtype, (1, *rows.type.shape[1:]))
    return set_subtensor(none, rows[:1], [0] * rows.ndim, [1] * rows.ndim)


# --- orders -----------------------------------------------------------------------------------------------------------


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Return the elements along an axis in rising order; of a tuple of arrays all in the order of the first, or of the
    first `num_keys`, the first of which counts most. Sorting is stable.

        >>> [x.eval().tolist() for x in lax.sort((T.constant([2, 1, 2]), T.constant([5, 6, 4])), num_keys=2)]
        [[1, 2, 2], [6, 4, 5]]
    """
    if not isinstance(operand, tuple | list):
        found: Node = tensor.sort(operand, dimension)
        return found
    nodes = [as_node(each) for each in operand]
    if not 1 <= num_keys <= len(nodes):
        raise GraphValueError(f"sort: num_keys={num_keys}, and there are {len(nodes)} arrays")
    keys = nodes[:num_keys]
    order = tensor.argsort(keys[0], dimension) if num_keys == 1 else tensor.lexsort(keys[::-1], dimension)
    return tuple(tensor.take_along_axis(each, order, dimension) for each in nodes)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Node, Node]:
    """Return keys in rising order along an axis, and values in the same order.

    >>> [x.eval().tolist() for x in lax.sort_key_val(T.constant([3, 1, 2]), T.constant([30, 10, 20]))]
    [[1, 2, 3], [10, 20, 30]]
    """
    first, second = sort((keys, values), dimension)
    return first, second


def top_k(operand: Any, k: Any, *, axis: int = -1) -> tuple[Node, Node]:
    """Return the `k` largest elements along an axis, the largest first, and their places, int64.

    >>> [x.eval().tolist() for x in lax.top_k(T.constant([1, 3, 2]), 2)]
    [[3, 2], [1, 2]]
    """
    values, places = tensor.topk_and_argtopk(operand, k, axis)
    return values, places


def approx_max_k(operand: Any, k: Any, reduction_dimension: int = -1, **how: Any) -> tuple[Node, Node]:
    """Return the `k` largest elements and their places, exactly, as `top_k`; JAX's other arguments change nothing."""
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(operand: Any, k: Any, reduction_dimension: int = -1, **how: Any) -> tuple[Node, Node]:
    """Return the `k` smallest elements, the smallest first, and their places, exactly; other arguments of JAX's change
    nothing."""
    values, places = tensor.topk_and_argtopk(operand, -k, reduction_dimension)
    return values, places


# --- products ---------------------------------------------------------------------------------------------------------


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Node:
    """Return the product of vectors and matrices. preferred_element_type: the dtype that it is computed in. Raises
    ShapeError where sizes differ.

        >>> lax.dot(np.array([1, 2]), np.array([3, 4]))
        np.int64(11)
    """
    left, right = _preferred(lhs, preferred_element_type), _preferred(rhs, preferred_element_type)
    found: Node = tensor.dot(left, right)
    return found


def _preferred(x: Any, dtype: Any) -> Node:
    return as_node(x) if dtype is None else cast(as_node(x), str(np.dtype(dtype)))


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Node:
    """Return the sum of products over some axes of two arrays, for each index of their batch axes.

    dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)). The result has the batch axes,
    the other axes of lhs, those of rhs. preferred_element_type: the dtype that it is computed in. Raises RankError
    where axes do not fit, ShapeError where sizes differ.

        >>> lax.dot_general(T.constant([[1, 2]]), T.constant([[3, 4]]), (((1,), (1,)), ((), ()))).eval()
        array([[11]])
    """
    left, right = _preferred(lhs, preferred_element_type), _preferred(rhs, preferred_element_type)
    ((left_sums, right_sums), (left_batch, right_batch)) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names: list[dict[int, str]] = [{}, {}]
    for mine, theirs in ((left_batch, right_batch), (left_sums, right_sums)):
        if len(mine) != len(theirs):
            raise RankError(f"dot_general: the axes {tuple(mine)} of lhs and {tuple(theirs)} of rhs are not as many")
        for one, other in zip(mine, theirs, strict=True):
            names[0][normalise_axis(one, left.ndim, "dot_general")] = letter = next(letters)
            names[1][normalise_axis(other, right.ndim, "dot_general")] = letter
    shared = {*names[0].values()}
    terms = []
    for node, own in zip((left, right), names, strict=True):
        terms.append("".join(own.get(axis) or next(letters) for axis in range(node.ndim)))
    batch = "".join(names[0][axis] for axis in left_batch)
    free = ["".join(letter for letter in term if letter not in shared) for term in terms]
    found: Node = tensor.einsum(f"{terms[0]},{terms[1]}->{batch}{free[0]}{free[1]}", left, right)
    return found
