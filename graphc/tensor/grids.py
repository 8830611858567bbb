"""Grids of coordinates, and windows.

In: slices, sizes, numbers. Out: nodes that are recomputed where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float, promote
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.node import Node, describe
from graphc.ops import shape as ops
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.elementary import abs as absolute, cos, less_equal, pow, sqrt, where
from graphc.tensor.joining import concatenate, stack
from graphc.tensor.masks import flatnonzero
from graphc.tensor.ranges import arange, linspace
from graphc.tensor.shaping import as_shape, as_size, broadcast_arrays
from graphc.tensor.special import i0

__all__ = [
    "bartlett", "blackman", "c_", "fromfunction", "hamming", "hanning", "indices", "ix_", "kaiser",
    "mgrid", "ogrid", "r_", "vander",
]  # fmt: skip

# --- grids ----------------------------------------------------------------------------------------------------------


class Grid:
    """Coordinates of a grid, asked for by slices: `mgrid[0:3, 0:n]`, `ogrid[0:1:5j]`; bounds and steps may be scalars.

    A step that is an imaginary number says how many points there are, the last one included.
    """

    def __init__(self, name: str, is_open: bool) -> None:
        self.__name__ = name
        self.__doc__ = (
            "For slices, `x[a:b, c:d]`, a list with the coordinates along each axis, which broadcast to a grid."
            if is_open
            else "For slices, `x[a:b, c:d]`, the coordinates of a grid along each axis, along a new first axis."
        )
        self.is_open = is_open

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        lines = [_line(one) for one in key]
        dtype = promote(*(line.type.dtype for line in lines))
        count = len(lines)
        axes = [
            ops.expand(cast(line, dtype), [k for k in range(count) if k != axis]) for axis, line in enumerate(lines)
        ]
        return axes if self.is_open else stack(broadcast_arrays(*axes))

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
            parts = [ops.expand(part, (1,)) if part.ndim == 1 else part for part in parts]
        return concatenate(parts, -1 if self.is_columns else 0)

    def _part(self, one: Any) -> Node:
        if isinstance(one, str):
            raise GraphValueError(f"{self.__name__}[{one!r}]: directives are not known; use concatenate and stack")
        node = as_node(one)
        return node if node.ndim else ops.expand(node, (0,))

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


r_, c_ = Row("r_", False), Row("c_", True)
mgrid, ogrid = Grid("mgrid", False), Grid("ogrid", True)


def indices(dimensions: Any, dtype: Any = "int64", sparse: bool = False) -> Any:
    """The coordinates in an array of shape `dimensions` along a new first axis; a broadcasting tuple if `sparse`."""
    shape = as_shape(dimensions, "indices")
    lines = [
        ops.expand(cast(ops.iota(size), np.dtype(dtype).name), [k for k in range(len(shape)) if k != axis])
        for axis, size in enumerate(shape)
    ]
    if sparse:
        return tuple(lines)
    return stack([ops.broadcast_to(line, shape) for line in lines])


def ix_(*args: Any) -> tuple[Node, ...]:
    """Vectors of positions, or masks, as arrays that index the grid they span: `x[ix_([0, 2], [1, 3])]`."""
    found = []
    for axis, one in enumerate(args):
        node = as_node(np.zeros(0, "int64") if isinstance(one, (list, tuple)) and not one else one)
        if node.ndim != 1:
            raise RankError(f"ix_: {describe(node)} of type {node.type} is no vector")
        if node.type.dtype == "bool":
            node = flatnonzero(node)
        found.append(ops.expand(node, [k for k in range(len(args)) if k != axis]))
    return tuple(found)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = "float64", **kwargs: Any) -> Any:
    """What `function` gives for the coordinates of an array of `shape`."""
    return function(*(grid for grid in _each(indices(shape, dtype), shape)), **kwargs)


def _each(grids: Node, shape: Any) -> list[Node]:
    return [grids[axis] for axis in range(len(as_shape(shape, "fromfunction")))]


def vander(x: Any, N: Any = None, increasing: bool = False) -> Node:  # noqa: N803 - NumPy's name
    """The powers of the elements of a vector as the columns of a matrix, N of them (as many as elements)."""
    node = as_node(x)
    if node.ndim != 1:
        raise RankError(f"vander of {describe(node)} of type {node.type}: it is no vector")
    count = node.type.shape[0] if N is None else as_size(N, "vander: N")
    power = ops.iota(count)
    if not increasing:
        power = power[::-1]
    dtype = promote(node.type.dtype, "int64")
    return pow(ops.expand(cast(node, dtype), (1,)), cast(power, dtype))


# --- ranges ---------------------------------------------------------------------------------------------------------


# --- windows --------------------------------------------------------------------------------------------------------


def _window(name: str, m: Any, value: Callable[[Node], Node]) -> Node:
    """A window of `m` points, given as a function of x from -1 to 1; 1 where there is one point."""
    count = as_node(m)
    if count.ndim or is_float(count.type.dtype):
        raise GraphTypeError(f"{name}: the number of points is a whole number, not {describe(count)} of {count.type}")
    held = elementwise("maximum", cast(count, "int64"), 0)
    last = cast(elementwise("maximum", held - 1, 1), "float64")
    place = cast(ops.iota(as_size(held, name)), "float64")
    return where(less_equal(count, 1), 1.0, value((2.0 * place - last) / last))


def _cosines(name: str, m: Any, *weights: float) -> Node:
    """A sum of cosines of 0, 1, 2 turns."""
    return _window(name, m, lambda x: sum((a * cos(math.pi * k * x) for k, a in enumerate(weights)), as_node(0.0)))


def bartlett(M: Any) -> Node:  # noqa: N803 - NumPy's name
    """The triangular window of `M` points, 0 at both ends."""
    return _window("bartlett", M, lambda x: 1.0 - absolute(x))


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
    from_center = _window("kaiser", M, lambda x: i0(beta * sqrt(elementwise("maximum", 1.0 - x * x, 0.0))))
    return from_center / where(less_equal(as_node(M), 1), 1.0, i0(as_node(beta)))
