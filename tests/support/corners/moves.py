"""The same elements in other places: indexing, reshaping, transposing, repeating.

In: a value and where to draw from. Out: a `Move`: a text, the function in graphc and in NumPy, and the sizes of its
result; None where the value has no such move.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.corners.bounded import Array
from tests.support.corners.steps import Size, Step, plus, sliced, times

Move = tuple[str, Callable[[Node], Node], Callable[[Array], Array], tuple[Size, ...]]


def _slice(draw: random.Random) -> slice:
    bounds = (None, None, 0, 1, 2, -1, -2, 5)
    return slice(draw.choice(bounds), draw.choice(bounds), draw.choice((None, None, 1, 2, -1, -1, 3, -2)))


def random_key(draw: random.Random, x: Step) -> tuple[Any, ...]:
    """Slices, integers and integer arrays for some axes; integers for sizes that are known only."""
    key: list[Any] = []
    arrays = 0
    for size in x.sizes[: draw.randrange(1, x.ndim + 1)]:
        way = draw.random()
        if isinstance(size, int) and size and way < 0.15:
            key.append(draw.randrange(-size, size))
        elif isinstance(size, int) and size and way < 0.25 and not arrays and not any(isinstance(k, int) for k in key):
            key.append(np.array([draw.randrange(-size, size) for _ in range(draw.randrange(4))], "int64"))
            arrays += 1
        else:
            key.append(_slice(draw) if way < 0.8 else slice(None))
    if arrays:
        key = [slice(k, k + 1 or None) if isinstance(k, int) else k for k in key]
    return tuple(key)


def _part(draw: random.Random, x: Step) -> Move | None:
    key = random_key(draw, x)
    sizes: list[Size] = []
    for axis, size in enumerate(x.sizes):
        part = key[axis] if axis < len(key) else slice(None)
        if isinstance(part, slice):
            sizes.append(sliced(size, part))
        elif not isinstance(part, int):
            sizes.append(len(part))
    return f"[{key}]", lambda v: v[key], lambda v: v[key], tuple(sizes)


def _transposed(draw: random.Random, x: Step) -> Move | None:
    order = draw.sample(range(x.ndim), x.ndim)
    return (
        f"transpose{order}",
        lambda v: v.transpose(order),
        lambda v: v.transpose(order),
        tuple(x.sizes[k] for k in order),
    )


def _merged(draw: random.Random, x: Step) -> Move | None:
    """Two neighbouring axes as one."""
    if x.ndim < 2:
        return None
    axis = draw.randrange(x.ndim - 1)
    merged = (*x.sizes[:axis], times(x.sizes[axis], x.sizes[axis + 1]), *x.sizes[axis + 2 :])

    def shaped(v: Any) -> tuple[Any, ...]:
        return (*(v.shape[k] for k in range(axis)), v.shape[axis] * v.shape[axis + 1],
                *(v.shape[k] for k in range(axis + 2, x.ndim)))  # fmt: skip

    return f"reshape to {merged}", lambda v: v.reshape(shaped(v)), lambda v: v.reshape(shaped(v)), merged


def _divided(draw: random.Random, x: Step) -> Move | None:
    """An axis as two."""
    axis = draw.randrange(x.ndim)
    size = x.sizes[axis]
    if not isinstance(size, int) or not size:
        return None
    first = draw.choice([k for k in range(1, size + 1) if size % k == 0])

    def shaped(v: Any) -> tuple[Any, ...]:
        return (
            *(v.shape[k] for k in range(axis)),
            first,
            size // first,
            *(v.shape[k] for k in range(axis + 1, x.ndim)),
        )

    sizes = (*x.sizes[:axis], first, size // first, *x.sizes[axis + 1 :])
    return f"reshape to {sizes}", lambda v: v.reshape(shaped(v)), lambda v: v.reshape(shaped(v)), sizes


def _expanded(draw: random.Random, x: Step) -> Move | None:
    axis = draw.randrange(x.ndim + 1)
    sizes = (*x.sizes[:axis], 1, *x.sizes[axis:])
    return f"expand_dims{axis}", lambda v: T.expand_dims(v, axis), lambda v: np.expand_dims(v, axis), sizes


def _squeezed(draw: random.Random, x: Step) -> Move | None:
    ones = [axis for axis, size in enumerate(x.sizes) if size == 1]
    if not ones:
        return None
    axis = draw.choice(ones)
    return (
        f"squeeze{axis}",
        lambda v: T.squeeze(v, axis),
        lambda v: np.squeeze(v, axis),
        (*x.sizes[:axis], *x.sizes[axis + 1 :]),
    )


def _rolled(draw: random.Random, x: Step) -> Move | None:
    axis, shift = draw.randrange(x.ndim), draw.randrange(-3, 4)
    return f"roll{shift, axis}", lambda v: T.roll(v, shift, axis), lambda v: np.roll(v, shift, axis), x.sizes


def _repeated(draw: random.Random, x: Step) -> Move | None:
    axis, count = draw.randrange(x.ndim), draw.randrange(4)
    sizes = (*x.sizes[:axis], times(x.sizes[axis], count), *x.sizes[axis + 1 :])
    return f"repeat{count, axis}", lambda v: T.repeat(v, count, axis), lambda v: np.repeat(v, count, axis), sizes


def _tiled(draw: random.Random, x: Step) -> Move | None:
    counts = tuple(draw.choice((1, 1, 2, 3)) for _ in x.sizes)
    sizes = tuple(times(size, count) if count > 1 else size for size, count in zip(x.sizes, counts, strict=True))
    return f"tile{counts}", lambda v: T.tile(v, counts), lambda v: np.tile(v, counts), sizes


def _padded(draw: random.Random, x: Step) -> Move | None:
    widths = [(draw.randrange(3), draw.randrange(3)) for _ in x.sizes]
    sizes = tuple(plus(size, sum(pair)) for size, pair in zip(x.sizes, widths, strict=True))
    return f"pad{widths}", lambda v: T.pad(v, widths), lambda v: np.pad(v, widths), sizes


def _triangle(draw: random.Random, x: Step) -> Move | None:
    k, name = draw.randrange(-2, 3), draw.choice(["tril", "triu"])
    if x.ndim < 2:
        return None
    return f"{name}{k}", lambda v: getattr(T, name)(v, k), lambda v: getattr(np, name)(v, k), x.sizes


def _diagonal(draw: random.Random, x: Step) -> Move | None:
    if x.ndim < 2 or not (isinstance(x.sizes[0], int) and isinstance(x.sizes[1], int)):
        return None
    k = draw.randrange(-1, 2)
    size = max(min(x.sizes[0] - max(-k, 0), x.sizes[1] - max(k, 0)), 0)
    return f"diagonal{k}", lambda v: T.diagonal(v, k), lambda v: np.diagonal(v, k), (*x.sizes[2:], size)


def _taken(draw: random.Random, x: Step) -> Move | None:
    axis = draw.randrange(x.ndim)
    size = x.sizes[axis]
    if not isinstance(size, int) or not size:
        return None
    places = [draw.randrange(-size, size) for _ in range(draw.randrange(1, 5))]
    sizes = (*x.sizes[:axis], len(places), *x.sizes[axis + 1 :])
    return f"take{places, axis}", lambda v: T.take(v, places, axis), lambda v: np.take(v, places, axis), sizes


def _widened(draw: random.Random, x: Step) -> Move | None:
    """An axis of size 1 broadcast to a few."""
    ones = [axis for axis, size in enumerate(x.sizes) if size == 1]
    if not ones:
        return None
    axis, size = draw.choice(ones), draw.choice([0, 2, 5])
    sizes = (*x.sizes[:axis], size, *x.sizes[axis + 1 :])

    def wide(v: Any) -> tuple[Any, ...]:
        return tuple(size if k == axis else v.shape[k] for k in range(x.ndim))

    return f"broadcast_to {sizes}", lambda v: T.broadcast_to(v, wide(v)), lambda v: np.broadcast_to(v, wide(v)), sizes


def _piece(draw: random.Random, x: Step) -> Move | None:
    """One of the parts of array_split."""
    axis, count = draw.randrange(x.ndim), draw.randrange(1, 4)
    which, size = draw.randrange(count), x.sizes[axis]
    part: Size = len(range(which, size, count)) if isinstance(size, int) else f"{size}/{count}@{which}"
    return (f"array_split{count, axis}[{which}]", lambda v: T.array_split(v, count, axis)[which],
            lambda v: np.array_split(v, count, axis)[which], (*x.sizes[:axis], part, *x.sizes[axis + 1 :]))  # fmt: skip


MOVES: Sequence[Callable[[random.Random, Step], Move | None]] = (
    _part, _part, _part, _transposed, _transposed, _merged, _divided, _expanded, _squeezed, _rolled, _repeated, _tiled,
    _padded, _triangle, _diagonal, _taken, _widened, _piece,
)  # fmt: skip
