"""Integrals of samples: `trapezoid`, `cumulative_trapezoid`, `simpson`, `romb`.

In: values at places along an axis. Out: SciPy's own results of arrays; tensors of tensors, with derivatives by values
and places.

    simpson(np.array([0.0, 1.0, 4.0]))        np.float64(2.666...)
"""

from __future__ import annotations

from typing import Any

import graphc.tensor as T
from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.ops.questions import asked_size
from graphc.scipy.named import offer


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Node:
    """Return the integral of samples by the trapezoidal rule.

    y: samples. x: their places, a vector or an array like `y`; None for a distance `dx` between neighbours. axis: that
    of the samples, which the result has not.

        >>> trapezoid(np.array([1.0, 2.0, 4.0]))
        np.float64(4.5)
    """
    rows, steps = _rows(y, x, dx, axis)
    return T.sum(steps * (rows[..., 1:] + rows[..., :-1]) / 2, axis=-1)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Node:
    """Return the integrals from the first sample to each other one by the trapezoidal rule; `initial=0` puts that to
    the first one before them. Other arguments are as of `trapezoid`."""
    if initial is not None and not isinstance(initial, Node) and initial != 0:
        raise GraphValueError("cumulative_trapezoid: `initial` must be 0 or None")
    rows, steps = _rows(y, x, dx, axis)
    found = T.cumsum(steps * (rows[..., 1:] + rows[..., :-1]) / 2, axis=-1)
    if initial is not None:
        found = T.concatenate([T.zeros_like(found[..., :1]), found], axis=-1)
    return T.moveaxis(found, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Node:
    """Return the integral of samples by Simpson's rule; for an even number of them the last interval is Cartwright's, a
    parabola through the last three (J. Math. Sci. Math. Educ. 12, 2017). Arguments are as of `trapezoid`."""
    rows, steps = _rows(y, x, dx, axis)
    count = asked_size(rows.type.shape[-1])
    if count == 2:
        return trapezoid(y, x, dx, axis)
    if count == 1:
        return T.zeros_like(rows[..., 0])
    if not isinstance(count, int):
        raise ShapeError("simpson: whether there is an even number of samples must be known; give the type of y a size")
    end = count - 1 + count % 2
    h0, h1 = steps[..., 0 : end - 1 : 2], steps[..., 1:end:2]
    both, ratio = h0 + h1, h0 / h1
    first, middle, last = rows[..., 0 : end - 2 : 2], rows[..., 1 : end - 1 : 2], rows[..., 2:end:2]
    parts = first * (2 - 1 / ratio) + middle * (both * both / (h0 * h1)) + last * (2 - ratio)
    total = T.sum(both / 6 * parts, axis=-1)
    if count % 2:
        return total
    h0, h1 = steps[..., -2], steps[..., -1]
    total = total + rows[..., -1] * (2 * h1**2 + 3 * h0 * h1) / (6 * (h0 + h1))
    total = total + rows[..., -2] * (h1**2 + 3 * h0 * h1) / (6 * h0)
    return total - rows[..., -3] * h1**3 / (6 * h0 * (h0 + h1))


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Node:
    """Return the integral of 2**k + 1 samples at distances `dx` by Romberg's method. Raises GraphValueError for another
    number of samples."""
    rows, _ = _rows(y, None, dx, axis)
    count = asked_size(rows.type.shape[-1])
    if not isinstance(count, int) or count < 2 or (count - 1) & (count - 2):
        raise GraphValueError(f"romb: the number of samples is one more than a power of two, not {count}")
    gap, width = count - 1, dx * (count - 1)
    table = [width * (rows[..., 0] + rows[..., -1]) / 2]
    while gap > 1:
        gap, width = gap // 2, width / 2
        row = [table[0] / 2 + width * T.sum(rows[..., gap :: 2 * gap], axis=-1)]
        for power, before in enumerate(table, 1):
            row.append(row[-1] + (row[-1] - before) / (4**power - 1))
        table = row
    best: Node = table[-1]
    return best


def _rows(y: Any, x: Any, dx: Any, axis: int) -> tuple[Node, Node]:
    """Return samples along the last axis, and the distances between them, which broadcast against them."""
    samples = as_node(y)
    if not samples.ndim:
        raise RankError("an integral of samples needs an axis of them, and this is a number")
    rows = T.moveaxis(samples, axis, -1)
    if x is None:
        return rows, T.ones_like(rows[..., 1:]) * dx
    places = as_node(x)
    steps = T.diff(places) if places.ndim == 1 else T.moveaxis(T.diff(places, axis=axis), axis, -1)
    return rows, T.ones_like(rows[..., 1:]) * steps


__all__ = ["cumulative_trapezoid", "romb", "simpson", "trapezoid"]

offer(globals())
