"""Arrays made of nothing but sizes and numbers, and ranges of numbers.

    zeros((2, n))       float64[2, n]
    arange(0, n, 2)     0, 2, 4, …

In: shapes as `shaping.as_shape` takes them, numbers or scalars, dtypes (None: `options.floatX`). Out: nodes that are
recomputed at every use; none of them is materialised for its own sake.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, SIZE, Node, Size, constant_value, describe, literal
from graphc.ir.walk import as_size_node, mention
from graphc.ops import index, shape as ops
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise, narrowed
from graphc.ops.identity import checked
from graphc.options import options
from graphc.tensor import shaping
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "alloc", "arange", "empty", "empty_like", "eye", "fill", "full", "full_like", "geomspace", "identity",
    "identity_like", "linspace", "logspace", "meshgrid", "one_hot", "ones", "ones_like", "second", "tri", "tril",
    "triu", "zeros", "zeros_like",
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
    target = shaping.as_shape(shape, "full", instead=shaping.ONE_BY_ONE)
    if value.ndim > len(target):
        raise ShapeError(f"full: {describe(value)} of type {value.type} has more axes than the shape")
    ops.check_naturals(target, "full")
    (value,) = narrowed([value], target)
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
    return full(shape, as_node(fill_value, node.type.dtype if dtype is None else resolve_dtype(dtype)))


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
    return full(shaping.unpack(shape), value)


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


def meshgrid(*vectors: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Node, ...]:
    """Coordinate arrays of the grid that the vectors span; "xy" exchanges the first two axes, "ij" does not.

    With `sparse` they broadcast to the grid. `copy` is NumPy's and means nothing.

        >>> [each.eval().tolist() for each in T.meshgrid(T.arange(2), T.arange(3), indexing="ij")]
        [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    """
    if indexing not in ("xy", "ij"):
        raise GraphValueError(f"meshgrid: indexing {indexing!r} is neither 'xy' nor 'ij'")
    nodes = [ops.reshape(node, (sizes.product(node.type.shape),)) for node in map(as_node, vectors)]
    shape = [node.type.shape[0] for node in nodes]
    grids = [shaping.as_axis(node, axis, len(nodes)) for axis, node in enumerate(nodes)]
    if not sparse:
        grids = [ops.broadcast_to(grid, shape) for grid in grids]
    turned = indexing == "xy" and len(grids) > 1
    return tuple(shaping.swapaxes(grid, 0, 1) if turned else grid for grid in grids)


# --- matrices -------------------------------------------------------------------------------------------------------


def coordinates(rows: Any, columns: Any) -> tuple[Node, Node]:
    """The row and the column number of each element of a matrix, ready to broadcast."""
    return ops.expand(ops.iota(rows), (1,)), ops.expand(ops.iota(columns), (0,))


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Node:
    """The n x m matrix (m = n by default) with ones on diagonal `k` and zeros elsewhere.

    The dtype is floatX unless another is given.

        >>> T.eye(2, 3, 1).eval()
        array([[0., 1., 0.],
               [0., 0., 1.]])
    """
    rows = shaping.as_size(n, "eye: n")
    shape = (rows, rows if m is None else shaping.as_size(m, "eye: m"))
    row, column = coordinates(*shape)
    return cast(elementwise("equal", column, elementwise("add", row, k)), resolve_dtype(dtype))


def identity(n: Any, dtype: Any = None) -> Node:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def identity_like(x: Any, dtype: Any = None) -> Node:
    """The identity matrix in the shape of matrix `x` (Theano's)."""
    node = shaping.of_rank(x, "identity_like of {}: it is no matrix", 2, 2)
    rows, columns = map(as_size_node, node.type.shape)
    return eye(rows, columns, dtype=node.type.dtype if dtype is None else dtype)


def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Node:
    """The n x m matrix with ones on and below diagonal `k` and zeros above.

    >>> T.tri(2).eval()
    array([[1., 0.],
           [1., 1.]])
    """
    rows = shaping.as_size(n, "tri: n")
    row, column = coordinates(rows, rows if m is None else shaping.as_size(m, "tri: m"))
    return cast(elementwise("less_equal", column, elementwise("add", row, k)), resolve_dtype(dtype))


def _triangle(name: str, x: Any, k: Any, relation: str) -> Node:
    node = shaping.of_rank(x, f"{name} of {{}}: it is no matrix", 1)
    if node.ndim == 1:  # each row, as in NumPy
        node = ops.broadcast_to(ops.dimshuffle(node, ("x", 0)), (*node.type.shape, *node.type.shape))
    rows, columns = coordinates(*node.type.shape[-2:])
    mask = elementwise(relation, columns, elementwise("add", rows, k))
    return elementwise("where", mask, node, literal(0, node.type.dtype))


def tril(x: Any, k: Any = 0) -> Node:
    """`x` with zeros above diagonal `k` of its last two axes; a vector is each row of a square matrix.

    Raises RankError for a scalar.

        >>> T.tril(T.ones((2, 2))).eval()
        array([[1., 0.],
               [1., 1.]])
    """
    return _triangle("tril", x, k, "less_equal")


def triu(x: Any, k: Any = 0) -> Node:
    """`x` with zeros below diagonal `k` of its last two axes; a vector is each row of a square matrix.

    Raises RankError for a scalar.

        >>> T.triu(T.ones((2, 2))).eval()
        array([[1., 1.],
               [0., 1.]])
    """
    return _triangle("triu", x, k, "greater_equal")


def diagonal_matrix(vector: Any, k: int = 0) -> Node:
    """The square matrix with `vector` on diagonal `k` and zeros elsewhere."""
    node = shaping.of_rank(vector, "diag of {}: it is neither a vector nor a matrix", 1, 1)
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
    position = cast(ops.iota(shaping.as_size(count, "one_hot: the number of classes")), "int64")
    return cast(elementwise("equal", ops.expand(cast(node, "int64"), (node.ndim,)), position), resolve_dtype(dtype))


FUNCTIONS.update(fill=fill, ones_like=ones_like, zeros_like=zeros_like)


# --- ranges -----------------------------------------------------------------------------------------------------------
# Ranges of numbers: by a step, by how many there are, and in powers.
#
# In: numbers and scalars, for the ends of spaced numbers arrays as well. Out: nodes that are recomputed at every use.
# The arithmetic is NumPy's, step by step, in the dtype of the result; integers are counted exactly, of uint64 too.


# --- by a step --------------------------------------------------------------------------------------------------------


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Node:
    """start, start + step, … below `stop` (above it for a negative step); with one argument 0, 1, … below it.

    Arguments are numbers or scalars. dtype: int64 for integers, uint64 where one is of uint64, floatX (float64 if an
    argument is) for floats. As in NumPy element i is start + i * (next - start) in the dtype, where next is start +
    step in that of the arguments. Raises ShapeError for a step of 0, and for ends that are not finite.

        >>> T.arange(1, 2, 0.25).eval()
        array([1.  , 1.25, 1.5 , 1.75])
    """
    first, last = (0, start) if stop is None else (start, stop)
    nodes = [as_node(value) for value in (first, last, step)]
    for node in nodes:
        if node.ndim:
            raise RankError(f"arange: {describe(node)} of type {node.type} is no scalar")
    counts_floats = any(is_float(node.type.dtype) for node in nodes)
    count = _count_floats(first, last, step, nodes) if counts_floats else _count_integers(nodes)
    kind = _natural(nodes, (first, last, step)) if dtype is None else resolve_dtype(dtype)
    index = ops.iota(count)
    if not is_float(kind) and not counts_floats:
        inside = "uint64" if "uint64" in (kind, *(node.type.dtype for node in nodes)) else "int64"
        begin, stride = (_plain(value, inside) for value in (first, step))
        return cast(_line(cast(index, inside), begin, stride), kind)
    # NumPy counts in the dtype of the result, from the first two elements
    inside = "int64" if kind == "bool" else kind
    if isinstance(first, int) and first == 0:
        return cast(_line(cast(index, inside), 0, _finite(_plain(step, inside))), kind)
    begin = cast(as_node(first), inside)
    second = cast(as_node(first + step if _are_numbers(first, step) else elementwise("add", first, step)), inside)
    stride = _finite(elementwise("sub", second, begin))
    line = _line(cast(index, inside), begin, stride)
    if is_float(inside):
        line = elementwise("where", elementwise("equal", index, 1), second, line)
    return cast(line, kind)


def _natural(nodes: Sequence[Node], values: Sequence[Any]) -> str:
    """The dtype of a range for which none is given. Python's floats do not decide it."""
    if any(is_float(node.type.dtype) for node in nodes):
        told = zip(values, nodes, strict=True)
        return promote(options.floatX, *(node.type.dtype for value, node in told if type(value) not in (int, float)))
    return "uint64" if any(node.type.dtype == "uint64" for node in nodes) else "int64"


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float, np.number)) for value in values)


def _plain(value: Any, dtype: str) -> Any:
    """A value in the dtype in which is counted; 0 and 1, which leave others as they are, as Python's."""
    return value if isinstance(value, int) and value in (0, 1) else cast(as_node(value), dtype)


def _finite(stride: Any) -> Any:
    """A stride, 0 for one that is infinite, by which a range has one element at most."""
    value = constant_value(stride) if isinstance(stride, Node) else np.asarray(stride)
    if (value is not None and np.isfinite(value)) or not is_float(stride.dtype):
        return stride
    return elementwise("where", elementwise("isfinite", stride), stride, 0)


def _line(index: Node, first: Any, step: Any) -> Node:
    """first + index * step."""
    scaled = index if isinstance(step, int) and step == 1 else elementwise("mul", index, step)
    return scaled if isinstance(first, int) and first == 0 else elementwise("add", scaled, first)


def _count_integers(nodes: Sequence[Node]) -> Size:
    """The number of integers in a range."""
    for node in nodes:
        if node.type.dtype not in INTEGERS and constant_value(node) is None:
            raise GraphTypeError(f"arange: {describe(node)} of type {node.type} is no integer")
    if any(node.type.dtype == "uint64" and constant_value(node) is None for node in nodes):
        return _count_unsigned(*nodes)
    start, stop, step = (shaping.as_size(cast(node, "int64") if node.type.dtype == "bool" else node) for node in nodes)
    if isinstance(step, int):
        if step == 0:
            raise ShapeError("arange: the step is 0")
        extent = sizes.subtract(stop, start) if step > 0 else sizes.subtract(start, stop)
        if not sizes.known_nonnegative(extent):
            extent = sizes.maximum(extent, 0)
        return sizes.floor_divide(sizes.add(extent, abs(step) - 1), abs(step))
    extent = sizes.subtract(stop, start)
    up = sizes.maximum(_rounded_up(extent, sizes.maximum(step, 1)), 0)
    backwards = sizes.maximum(sizes.subtract(0, step), 1)
    down = sizes.maximum(_rounded_up(sizes.subtract(0, extent), backwards), 0)
    positive = elementwise("greater", step, 0)
    # A step of 0 gives the size -1, which the guard of the result's size refuses.
    other = elementwise("where", elementwise("equal", step, 0), -1, as_size_node(down))
    return sizes.as_size(elementwise("where", positive, as_size_node(up), other))


def _rounded_up(extent: Size, step: Size) -> Size:
    """extent / step, rounded up, for a positive step."""
    return sizes.floor_divide(sizes.add(extent, sizes.subtract(step, 1)), step)


def _count_unsigned(start: Node, stop: Node, step: Node) -> Size:
    """The number of integers in a range whose ends may lie anywhere between the least int64 and the greatest uint64:
    comparisons are exact, and differences as uint64 right where they are positive."""

    def steps(low: Node, high: Node, stride: Node) -> Node:
        extent = elementwise("sub", cast(high, "uint64"), cast(low, "uint64"))
        whole = elementwise("floor_div", elementwise("sub", extent, 1), elementwise("maximum", stride, 1))
        return elementwise("where", elementwise("less", low, high), elementwise("add", cast(whole, "int64"), 1), 0)

    up = steps(start, stop, cast(step, "uint64"))
    down = steps(stop, start, cast(elementwise("neg", cast(step, "int64")), "uint64"))
    if step.type.dtype == "uint64":
        down = literal(0, "int64")
    other = elementwise("where", elementwise("equal", step, 0), -1, down)
    return sizes.as_size(elementwise("where", elementwise("greater", step, 0), up, other))


def _count_floats(start: Any, stop: Any, step: Any, nodes: Sequence[Node]) -> Size:
    """The number of elements in a range of floats: (stop - start) / step rounded up, each in the dtype of its
    operands."""
    if _are_numbers(start, stop, step):
        if step == 0:
            raise ShapeError("arange: the step is 0")
        with np.errstate(all="ignore"):
            ratio = float((stop - start) / step)
        if not math.isfinite(ratio):
            raise ShapeError(f"arange: (stop - start) / step is {ratio}, of start {start}, stop {stop}, step {step}")
        return max(math.ceil(ratio), int(ratio == 0 and stop != start and math.copysign(1, ratio) > 0))
    whole = [_as_whole(node) for node in nodes]
    if isinstance(whole[2], int) and whole[2] and None not in whole and any(isinstance(end, int) for end in whole[:2]):
        return _count_integers([as_size_node(end) for end in whole if end is not None])
    extent = elementwise("sub", stop, start)
    ratio_node = cast(elementwise("true_div", extent, step), "float64")
    count = elementwise("maximum", cast(elementwise("ceil", ratio_node), "int64"), 0)
    # what underflows is one step
    vanished = elementwise("logical_and", elementwise("equal", ratio_node, 0), elementwise("not_equal", extent, 0))
    some = elementwise("logical_and", vanished, elementwise("logical_not", elementwise("signbit", ratio_node)))
    told = ", ".join(describe(node) for node in nodes if constant_value(node) is None)
    finite = cast(elementwise("isfinite", ratio_node), "int64")
    message = f"arange of {told}: (stop - start) / step is not finite"
    return sizes.as_size(checked(elementwise("where", some, 1, count), [finite], message, "shape"))


def _as_whole(node: Node) -> Size | None:
    """The integer that a number is in every run: a literal, a size, or a sum of both, as float64 too. None of others.
    Sizes from 2**53 on, which float64 rounds, belong to ranges longer than any memory."""
    number = constant_value(node)
    if number is not None:
        return int(number) if abs(number) < 2**31 and number == int(number) else None
    if node.type.dtype == "int64":
        terms, _ = sizes.difference(shaping.as_size(node), 0)
        return shaping.as_size(node) if [*terms.values()] == [1] and all(term.op is SIZE for term in terms) else None
    if node.type.dtype != "float64":
        return None
    if node.op.name == "cast":
        return _as_whole(node.args[0])
    found = [_as_whole(arg) for arg in node.args] if node.op.name in ("add", "sub") else []
    match node.op.name, found:
        case "add", (left, right) if left is not None and right is not None and int in map(type, found):
            return sizes.add(left, right)
        case "sub", (left, int() as right) if left is not None:
            return sizes.subtract(left, right)
    return None


# --- by how many there are --------------------------------------------------------------------------------------------


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` equally spaced numbers from `start` to `stop`, the last one included if `endpoint`.

    The ends may be arrays, which broadcast; the numbers lie along a new axis of the result, at `axis`. They are of the
    dtype of start / stop unless `dtype` is given; those of an integer dtype are rounded down. With `retstep` the pair
    of them and the step, NaN where there is none.

        >>> T.linspace([0, 1], 2, 3, axis=-1).eval()
        array([[0. , 1. , 2. ],
               [1. , 1.5, 2. ]])
    """
    inside = elementwise("true_div", start, stop).type.dtype
    first, last = _ends(start, stop, inside)
    count = shaping.as_size(num, "linspace: num")
    parts = sizes.subtract(count, 1) if endpoint else count
    index = ops.expand(ops.iota(count), range(1, first.ndim + 1))
    divisor = cast(as_size_node(sizes.maximum(parts, 1)), inside)
    delta = elementwise("sub", last, first)
    step = elementwise("true_div", delta, divisor)
    values = elementwise(
        "add", elementwise("mul", cast(index, inside), shaping.expand_dims(step, 0)), shaping.expand_dims(first, 0)
    )
    if endpoint:
        values = _with_row(values, index, as_size_node(sizes.maximum(parts, 1)), last)
    kind = inside if dtype is None else resolve_dtype(dtype)
    values = cast(elementwise("floor", values) if kind in INTEGERS else values, kind)
    values = shaping.moveaxis(values, 0, axis) if axis else values
    if not retstep:
        return values
    if isinstance(parts, int):
        return values, step if parts > 0 else literal(np.nan, "float64")
    return values, elementwise("where", elementwise("greater", parts, 0), step, np.nan)


def _with_row(values: Node, index: Node, place: Any, row: Node) -> Node:
    """`values`, of which the row along the first axis whose index is `place` is another."""
    return elementwise("where", elementwise("equal", index, place), shaping.expand_dims(row, 0), values)


def _ends(start: Any, stop: Any, dtype: str) -> list[Node]:
    """Both ends in a dtype, broadcast to one shape."""
    nodes = [cast(as_node(end), dtype) for end in (start, stop)]
    shape = broadcast_sizes("the ends of a range", nodes)
    return [broadcast_node(node, shape) for node in nodes]


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Node:
    """`base` to the power of `linspace(start, stop, num, endpoint)`. A base that is an array broadcasts with
    the ends."""
    base = base if isinstance(base, (int, float)) else as_node(base)
    if isinstance(base, Node) and base.ndim:
        rank = max(node.ndim for node in (base, as_node(start), as_node(stop)))
        start, stop, base = (
            ops.expand(node, range(rank - node.ndim)) for node in (as_node(start), as_node(stop), base)
        )
        base = shaping.expand_dims(base, axis)
    values = elementwise("pow", base, linspace(start, stop, num, endpoint, axis=axis))
    return values if dtype is None else cast(values, resolve_dtype(dtype))


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Node:
    """`num` numbers from `start` to `stop`, each the one before times the same factor. The ends have one sign, and may
    be arrays as those of `linspace`; they are what was given, to the bit. float64 unless `dtype` is given."""
    kind = "float64" if dtype is None else resolve_dtype(dtype)
    inside = promote(as_node(start).type.dtype, as_node(stop).type.dtype, kind, 0.0)
    first, last = _ends(start, stop, inside)
    for end in (first, last):
        value = constant_value(end)
        if value is not None and not np.all(value):
            raise GraphValueError(f"geomspace: numbers with one factor between them are never 0, as {describe(end)} is")
    side = elementwise("sign", first)
    first, last = elementwise("true_div", first, side), elementwise("true_div", last, side)
    exponents = linspace(elementwise("log10", first), elementwise("log10", last), num, endpoint)
    values = elementwise("pow", 10.0, exponents)
    count = values.type.shape[0]
    index = ops.expand(ops.iota(count), range(1, values.ndim))
    values = _with_row(values, index, 0, first)
    if endpoint:
        values = _with_row(values, index, as_size_node(sizes.maximum(sizes.subtract(count, 1), 1)), last)
    values = cast(elementwise("mul", values, shaping.expand_dims(side, 0)), kind)
    return shaping.moveaxis(values, 0, axis) if axis else values
