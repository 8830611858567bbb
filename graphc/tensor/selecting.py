"""Elements chosen by positions, conditions and permutations; positions in grids, and windows.

    choose([1, 0], [[1, 2], [3, 4]])    [3, 2]
    mgrid[0:2, 0:n]                     int64[2, 2, n]

In: tensors, integer arrays, conditions. Out: nodes of gather and where, and their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops import index as ops, shape as layout
from graphc.ops.elementwise import (
    as_node,
    broadcast_node,
    broadcast_sizes,
    cast,
    convert_to,
    elementwise,
    is_number,
    narrowed,
)
from graphc.ops.identity import checked
from graphc.ops.questions import asked_size
from graphc.tensor import elementary as el, shaping
from graphc.tensor.creation import arange, linspace, ones, tri
from graphc.tensor.indexing import compressed, getitem, set_subtensor, take
from graphc.tensor.joining import concatenate, stack
from graphc.tensor.keys import coordinates, flatnonzero
from graphc.tensor.reductions import all as all_of
from graphc.tensor.special import i0

__all__ = [
    "bartlett", "blackman", "c_", "choose", "compress", "diag_indices", "diag_indices_from", "extract",
    "fill_diagonal", "fill_diagonal_offset", "fromfunction", "hamming", "hanning", "indices", "inverse_permutation",
    "ix_", "kaiser", "mask_indices", "mgrid", "nonzero_values", "ogrid", "permute_row_elements", "piecewise", "r_",
    "ravel_multi_index", "select", "take_along_axis", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unravel_index", "vander",
]  # fmt: skip

# --- along an axis --------------------------------------------------------------------------------------------------


def _integers(what: str, x: Any) -> Node:
    node = as_node(x)
    if node.type.dtype not in INTEGERS:
        raise GraphTypeError(f"{what}: {describe(node)} is of dtype {node.type.dtype}, not an integer")
    return node


def _grid(shape: Sequence[Size], axis: int) -> Node:
    """The coordinate along `axis` of every element of an array of `shape`."""
    return layout.broadcast_to(shaping.as_axis(layout.iota(shape[axis]), axis, len(shape)), shape)


def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Node:
    """The elements of `x` at `indices` along `axis`; both have one rank, and their other axes broadcast.

    With `axis` None the indices are of the flattened `x`. Raises GraphTypeError for indices that are no integers or of
    another rank.
    """
    node, index = as_node(x), _integers("take_along_axis", indices)
    if axis is None:
        node, axis = shaping.flatten(node), 0
    what = shaping.label_operand("take_along_axis", node)
    place = shaping.normalise_axis(axis, node.ndim, what)
    if index.ndim != node.ndim:
        raise RankError(f"{what}: the indices {describe(index)} of type {index.type} have another rank")
    if node.ndim == 1:
        return ops.gather(node, (index,), 0)

    def without(one: Node) -> tuple[Size, ...]:
        return tuple(1 if k == place else size for k, size in enumerate(one.type.shape))

    outer = [layout.zeros("int64", without(one)) for one in (node, index)]
    shape = list(broadcast_sizes(what, outer))
    node = layout.broadcast_to(node, [*shape[:place], node.type.shape[place], *shape[place + 1 :]])
    shape[place] = index.type.shape[place]
    index = layout.broadcast_to(index, shape)
    keys = [index if k == place else _grid(shape, k) for k in range(node.ndim)]
    return ops.gather(node, keys, 0)


def inverse_permutation(perm: Any) -> Node:
    """The permutation that undoes `perm`, a vector; of a matrix that of each row. Its dtype is that of `perm`
    (Theano's)."""
    given = _integers("inverse_permutation", perm)
    node = cast(given, "int64")
    if node.ndim not in (1, 2):
        raise RankError(f"inverse_permutation of {describe(node)} of type {node.type}: neither vector nor matrix")
    shape = node.type.shape
    keys = [*(_grid(shape, k) for k in range(node.ndim - 1)), node]
    return ops.set_gather(
        layout.zeros(given.type.dtype, shape), cast(_grid(shape, node.ndim - 1), given.type.dtype), keys, 0
    )


def permute_row_elements(x: Any, y: Any, inverse: bool | int = 0) -> Node:
    """The last axis of `x` permuted by the rows of `y`: element i of a row is x[..., y[..., i]]; `inverse` undoes it.

    The leading axes broadcast (Theano's).
    """
    node, index = as_node(x), _integers("permute_row_elements", y)
    rank = max(node.ndim, index.ndim)
    if inverse:
        rows = index if index.ndim <= 2 else None
        if rows is None:
            raise RankError(f"permute_row_elements: {describe(index)} of type {index.type} has too many axes")
        index = inverse_permutation(rows)
    node, index = (layout.expand(one, range(rank - one.ndim)) for one in (node, index))
    return take_along_axis(node, index, -1)


# --- by conditions --------------------------------------------------------------------------------------------------


def compress(condition: Any, x: Any, axis: int | None = None) -> Node:
    """The slices of `x` along `axis` (elements of the flattened `x`) for which the vector `condition` is not 0.

    The condition may be shorter than the axis. Raises GraphTypeError for a condition of another rank.
    """
    return compressed(x, condition, axis)


def extract(condition: Any, x: Any) -> Node:
    """The elements of `x`, in C order, at which `condition` is not 0."""
    return take(as_node(x), flatnonzero(condition))


def nonzero_values(x: Any) -> Node:
    """The elements of `x` that are not 0, in C order (Theano's)."""
    return extract(x, x)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Node:
    """For each element of the integer array `a` the element of `choices[a]` at that place; all arrays broadcast.

    `choices` is a sequence of arrays, or an array whose first axis tells them apart. mode: what becomes of integers
    outside: "raise" (IndexOutOfBounds), "wrap", "clip". Raises GraphTypeError for `out` and other modes.
    """
    if out is not None or mode not in ("raise", "wrap", "clip"):
        raise GraphValueError(
            f"choose: out={out!r} and mode={mode!r}: there is no out, and mode is raise, wrap or clip"
        )
    index = cast(_integers("choose", a), "int64")
    if isinstance(choices, (Node, np.ndarray)):
        stacked = as_node(choices)
        rank = max(stacked.ndim - 1, index.ndim)
        count = stacked.type.shape[0]
        stacked = layout.expand(stacked, range(1, 1 + rank - (stacked.ndim - 1)))
        shape = broadcast_sizes("choose", [layout.zeros("bool", stacked.type.shape[1:]), index])
        wide = layout.broadcast_to(stacked, (count, *shape))
    else:
        if not choices:
            raise GraphValueError("choose: there are no choices")
        dtype = promote(
            *(one if is_number(one) and not isinstance(one, Node) else as_node(one).type.dtype for one in choices)
        )
        nodes = [convert_to("where", one, dtype) for one in choices]
        index, *nodes = narrowed([index, *nodes])
        shape = broadcast_sizes("choose", [index, *nodes])
        parts = [layout.broadcast_to(broadcast_node(cast(node, dtype), shape), shape) for node in nodes]
        wide, count = layout.concatenate([layout.expand(part, (0,)) for part in parts], 0), len(parts)
    size = as_size_node(count)
    if mode == "wrap":
        index = elementwise("mod", index, size)
    elif mode == "clip":
        index = elementwise("clip", index, 0, elementwise("sub", size, 1))
    else:  # negative ones do not count from the end here
        index = el.where(el.less(index, 0), size, index)
    index = layout.broadcast_to(broadcast_node(index, shape), shape)
    return ops.gather(wide, [index, *(_grid(shape, axis) for axis in range(len(shape)))], 0)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Node:
    """The element of the first of `choicelist` whose condition holds, `default` where none does; all broadcast."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(f"select: {len(condlist)} conditions and {len(choicelist)} choices")
    result = default
    if is_number(default):  # Python's numbers go by their kind with all choices together, not with the last alone
        choicelist = [as_node(choice) if not is_number(choice) else choice for choice in choicelist]
        of_arrays = [choice.type.dtype for choice in choicelist if isinstance(choice, Node)]
        result = convert_to("where", default, promote(*of_arrays, default)) if of_arrays else default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = el.where(cast(as_node(condition), "bool"), choice, result)
    return as_node(result)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Node:
    """`x` mapped by the function, or replaced by the number, of the last condition that holds; 0, or what the function
    one too many gives, where none does. Every function is applied to the whole of `x`.
    """
    node = as_node(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    functions = list(funclist)
    other: Any = 0
    if len(functions) == len(conditions) + 1:
        other = functions.pop()
    if len(functions) != len(conditions):
        raise ShapeError(f"piecewise: {len(conditions)} conditions and {len(funclist)} functions")

    def value(function: Any) -> Node:
        made = function(node, *args, **kw) if callable(function) else function
        return as_node(made, node.type.dtype)

    result = value(other)
    for condition, function in zip(conditions, functions, strict=True):
        result = el.where(condition, value(function), result)
    return layout.broadcast_to(broadcast_node(result, node.type.shape), node.type.shape)


# --- positions of elements ------------------------------------------------------------------------------------------


def _all_of(x: Node, conditions: Sequence[Node], message: str) -> Node:
    """`x`, where conditions hold everywhere, else a ShapeError."""
    return checked(x, [cast(all_of(condition), "int64") for condition in conditions], message, "shape")


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Node:
    """The positions in an array of shape `dims` of elements given by one integer array for each axis.

    mode: "raise" (a ShapeError for what is outside), "wrap" or "clip", or one for each axis. order: "C" or "F".
    """
    count = asked_size(multi_index.type.shape[0]) if isinstance(multi_index, Node) and multi_index.ndim else None
    if isinstance(multi_index, Node) and not isinstance(count, int):
        raise GraphTypeError(f"ravel_multi_index: {describe(multi_index)} is no tuple, with an array for each axis")
    shape = shaping.as_shape(dims, "ravel_multi_index", len(multi_index))
    items = [cast(_integers("ravel_multi_index", one), "int64") for one in multi_index]
    modes = [mode] * len(items) if isinstance(mode, str) else list(mode)
    if len(items) != len(shape) or len(modes) != len(items) or order not in ("C", "F"):
        raise GraphValueError(
            f"ravel_multi_index: {len(items)} indices for {len(shape)} axes, modes {mode}, order {order}"
        )
    total = as_node(0)
    step: Size = 1
    pairs = list(zip(items, shape, modes, strict=True))
    outside = []
    for index, size, one in pairs if order == "F" else reversed(pairs):
        length = as_size_node(size)
        match one:
            case "wrap":
                index = elementwise("mod", index, length)
            case "clip":
                index = elementwise("clip", index, 0, elementwise("sub", length, 1))
            case "raise":
                outside.append(el.logical_and(elementwise("greater_equal", index, 0), el.less(index, length)))
            case _:
                raise GraphValueError(f"ravel_multi_index: mode {one!r} is not raise, wrap or clip")
        total = el.add(total, el.mul(index, as_size_node(step)))
        step = sizes.multiply(step, size)
    return _all_of(total, outside, "ravel_multi_index: a coordinate is outside its axis")


def unravel_index(
    indices: Any, shape: Any = None, order: str = "C", ndim: int | None = None, *, dims: Any = None
) -> tuple[Node, ...]:
    """The coordinates, one integer array for each axis, of positions in an array of `shape`; a ShapeError outside.

    order: "C" or "F". ndim: how many axes there are, where `shape` is a vector of unknown length. `dims` is Theano's
    name of `shape`.
    """
    target = shaping.as_shape(shape if dims is None else dims, "unravel_index", ndim)
    index = cast(_integers("unravel_index", indices), "int64")
    if order not in ("C", "F"):
        raise GraphValueError(f"unravel_index: order {order!r} is not C or F")
    count = as_size_node(sizes.product(target))
    inside = el.logical_and(elementwise("greater_equal", index, 0), el.less(index, count))
    index = _all_of(index, [inside], "unravel_index: a position is outside the array")
    found: list[Node] = []
    for size in target if order == "F" else target[::-1]:
        found.append(elementwise("mod", index, as_size_node(size)))
        index = elementwise("floor_div", index, as_size_node(size))
    return tuple(found if order == "F" else found[::-1])


def diag_indices(n: Any, ndim: int = 2) -> tuple[Node, ...]:
    """The positions of the main diagonal of an array with `ndim` axes of size `n`."""
    return (layout.iota(shaping.as_size(n, "diag_indices: n")),) * ndim


def diag_indices_from(x: Any) -> tuple[Node, ...]:
    """`diag_indices` for `x`, all of whose sizes are equal."""
    node = as_node(x)
    if node.ndim < 2:
        raise ShapeError(f"diag_indices_from: {describe(node)} of type {node.type} has less than two axes")
    return diag_indices(as_size_node(_only_size(node, "diag_indices_from")), node.ndim)


def _only_size(x: Node, what: str) -> Size:
    """The size of all axes; an error where two are known to differ."""
    size = x.type.shape[0]
    for other in x.type.shape[1:]:
        size = sizes.common(size, other, f"{what} of {describe(x)}")
    return size


def mask_indices(n: Any, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Node, ...]:
    """The positions at which `mask_func(ones((n, n)), k)` is not 0."""
    square = ones((n, n), "int64")
    return coordinates(cast(as_node(mask_func(square, k)), "bool"))


def _triangle(name: str, n: Any, k: Any, m: Any) -> tuple[Node, ...]:
    if all(isinstance(value, (int, np.integer, type(None))) for value in (n, k, m)):
        return tuple(as_node(one) for one in getattr(np, name)(n, k, m))
    below = cast(tri(n, m, k if name == "tril_indices" else elementwise("sub", k, 1), "int8"), "bool")
    return coordinates(below if name == "tril_indices" else el.logical_not(below))


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Node, ...]:
    """The positions on and below diagonal `k` of an n x m matrix (m = n by default)."""
    return _triangle("tril_indices", n, k, m)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Node, ...]:
    """The positions on and above diagonal `k` of an n x m matrix (m = n by default)."""
    return _triangle("triu_indices", n, k, m)


def _sides(name: str, x: Any) -> tuple[Any, Any]:
    node = as_node(x)
    if node.ndim != 2:
        raise ShapeError(f"{name}: {describe(node)} of type {node.type} is no matrix")
    rows, columns = (size if isinstance(size, int) else as_size_node(size) for size in node.type.shape)
    return rows, columns


def tril_indices_from(x: Any, k: Any = 0) -> tuple[Node, ...]:
    """`tril_indices` for the numbers of rows and columns of a matrix."""
    rows, columns = _sides("tril_indices_from", x)
    return tril_indices(rows, k, columns)


def triu_indices_from(x: Any, k: Any = 0) -> tuple[Node, ...]:
    """`triu_indices` for the numbers of rows and columns of a matrix."""
    rows, columns = _sides("triu_indices_from", x)
    return triu_indices(rows, k, columns)


# --- diagonals ------------------------------------------------------------------------------------------------------


def fill_diagonal(x: Any, val: Any) -> Node:
    """A copy of `x` with the scalar `val`, or a vector of that length, on its main diagonal.

    `x` is a matrix, or has equal sizes along all its axes; a tall matrix is filled down to its shorter side (Theano's,
    and NumPy's without `wrap`).
    """
    node = shaping.of_rank(x, "fill_diagonal of {}: it has less than two axes", 2)
    count = sizes.minimum(*node.type.shape) if node.ndim == 2 else _only_size(node, "fill_diagonal")
    line = layout.iota(count)
    return set_subtensor(getitem(node, (line,) * node.ndim), val)


def fill_diagonal_offset(x: Any, val: Any, offset: Any) -> Node:
    """A copy of the matrix `x` with the scalar `val` on the diagonal `offset` above (below 0: below) the main one."""
    node = shaping.of_rank(x, "fill_diagonal_offset of {}: it is no matrix", 2, 2)
    row, column = (_grid(node.type.shape, axis) for axis in (0, 1))
    return el.where(el.equal(column, el.add(row, offset)), cast(as_node(val), node.type.dtype), node)


# --- grids ------------------------------------------------------------------------------------------------------------
# Grids of coordinates, and windows.
#
# In: slices, sizes, numbers. Out: nodes that are recomputed where they are used.


class Grid:
    """Coordinates of a grid, asked for by slices: `mgrid[0:3, 0:n]`, `ogrid[0:1:5j]`; bounds and steps may be scalars.

    A step that is an imaginary number says how many points there are, the last one included.
    """

    def __init__(self, name: str, is_open: bool) -> None:
        self.__name__ = name
        self.__doc__ = (
            "For slices, `x[a:b, c:d]`, a tuple with the coordinates along each axis, which broadcast to a grid."
            if is_open
            else "For slices, `x[a:b, c:d]`, the coordinates of a grid along each axis, along a new first axis."
        )
        self.is_open = is_open

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        lines = [_line(one) for one in key]
        dtype = promote(*(line.type.dtype for line in lines))
        axes = [shaping.as_axis(cast(line, dtype), axis, len(lines)) for axis, line in enumerate(lines)]
        return tuple(axes) if self.is_open else stack(shaping.broadcast_arrays(*axes))

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


def _line(part: Any) -> Node:
    """The points of a slice."""
    if not isinstance(part, slice) or part.stop is None:
        raise GraphTypeError(f"a grid is made of slices with an end, not of {part!r}")
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        points = linspace(start, part.stop, int(abs(part.step)))
        return points if is_float(points.dtype) else cast(points, "float64")
    return arange(start, part.stop, 1 if part.step is None else part.step)


class Row:
    """Arrays, numbers and slices one after the other: `r_[x, 0, 1:n]` along the first axis, `c_[x, y]` as columns."""

    def __init__(self, name: str, is_columns: bool) -> None:
        self.__name__ = name
        self.is_columns = is_columns

    def __getitem__(self, key: Any) -> Node:
        parts = [_line(one) if isinstance(one, slice) else self._part(one)
                 for one in (key if isinstance(key, tuple) else (key,))]  # fmt: skip
        if self.is_columns:
            parts = [layout.expand(part, (1,)) if part.ndim == 1 else part for part in parts]
        return concatenate(parts, -1 if self.is_columns else 0)

    def _part(self, one: Any) -> Node:
        if isinstance(one, str):
            raise GraphValueError(f"{self.__name__}[{one!r}]: directives are not known; use concatenate and stack")
        node = as_node(one)
        return node if node.ndim else layout.expand(node, (0,))

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


r_, c_ = Row("r_", False), Row("c_", True)
mgrid, ogrid = Grid("mgrid", False), Grid("ogrid", True)


def indices(dimensions: Any, dtype: Any = "int64", sparse: bool = False) -> Any:
    """The coordinates in an array of shape `dimensions` along a new first axis; a broadcasting tuple if `sparse`."""
    shape = shaping.as_shape(dimensions, "indices")
    name = np.dtype(dtype).name
    lines = [shaping.as_axis(cast(layout.iota(size), name), axis, len(shape)) for axis, size in enumerate(shape)]
    if sparse:
        return tuple(lines)
    return stack([layout.broadcast_to(line, shape) for line in lines])


def ix_(*args: Any) -> tuple[Node, ...]:
    """Vectors of positions, or masks, as arrays that index the grid they span: `x[ix_([0, 2], [1, 3])]`."""
    found = []
    for axis, one in enumerate(args):
        node = as_node(np.zeros(0, "int64") if isinstance(one, (list, tuple)) and not one else one)
        if node.ndim != 1:
            raise RankError(f"ix_: {describe(node)} of type {node.type} is no vector")
        if node.type.dtype == "bool":
            node = flatnonzero(node)
        found.append(shaping.as_axis(node, axis, len(args)))
    return tuple(found)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = "float64", **kwargs: Any) -> Any:
    """`function` of the coordinates of an array of `shape`."""
    grids = indices(shape, dtype)
    return function(*(grids[axis] for axis in range(len(shaping.as_shape(shape, "fromfunction")))), **kwargs)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Node:  # noqa: N803 - NumPy's name
    """The powers of the elements of a vector as the columns of a matrix, N of them (as many as elements)."""
    node = shaping.of_rank(x, "vander of {}: it is no vector", 1, 1)
    count = node.type.shape[0] if N is None else shaping.as_size(N, "vander: N")
    power = layout.iota(count)
    if not increasing:
        power = power[::-1]
    dtype = promote(node.type.dtype, "int64")
    return el.pow(layout.expand(cast(node, dtype), (1,)), cast(power, dtype))


# --- windows --------------------------------------------------------------------------------------------------------


def _window(name: str, m: Any, value: Callable[[Node], Node]) -> Node:
    """A window of `m` points, given as a function of x from -1 to 1; 1 where there is one point."""
    count = as_node(m)
    if count.ndim or is_float(count.type.dtype):
        raise GraphTypeError(f"{name}: the number of points is a whole number, not {describe(count)} of {count.type}")
    held = elementwise("maximum", cast(count, "int64"), 0)
    last = cast(elementwise("maximum", held - 1, 1), "float64")
    place = cast(layout.iota(shaping.as_size(held, name)), "float64")
    return el.where(el.less_equal(count, 1), 1.0, value((2.0 * place - last) / last))


def _cosines(name: str, m: Any, *weights: float) -> Node:
    """A sum of cosines of 0, 1, 2 turns."""
    return _window(name, m, lambda x: sum((a * el.cos(math.pi * k * x) for k, a in enumerate(weights)), as_node(0.0)))


def bartlett(M: Any) -> Node:  # noqa: N803 - NumPy's name
    """The triangular window of `M` points, 0 at both ends."""
    return _window("bartlett", M, lambda x: 1.0 - el.abs(x))


def hanning(M: Any) -> Node:  # noqa: N803
    """The raised cosine window of `M` points."""
    return _cosines("hanning", M, 0.5, 0.5)


def hamming(M: Any) -> Node:  # noqa: N803
    """The raised cosine window of `M` points whose first side lobe is lowest."""
    return _cosines("hamming", M, 0.54, 0.46)


def blackman(M: Any) -> Node:  # noqa: N803
    """The window of `M` points of three cosines."""
    return _cosines("blackman", M, 0.42, 0.5, 0.08)


def kaiser(M: Any, beta: Any) -> Node:  # noqa: N803
    """The window of `M` points made of the Bessel function I0; `beta` is its shape."""
    from_center = _window("kaiser", M, lambda x: i0(beta * el.sqrt(elementwise("maximum", 1.0 - x * x, 0.0))))
    return from_center / el.where(el.less_equal(as_node(M), 1), 1.0, i0(as_node(beta)))
