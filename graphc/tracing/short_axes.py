"""Short axes: the sizes of a first call that `jit(short_axes=True)` compiles as numbers.

    assign(x, centres)         x has 5,000 rows of 3, there are 10 centres: 3 and 10 are numbers, 5,000 is open
    assign(x[:100], centres)   the same code
    assign(x, centres[:8])     compiled once more, with all sizes open: for every later call of other sizes

In: the leaves of a call's arguments. Out: the axes whose sizes are fixed, as notes that become guards (guards.py). A
loop over three elements whose number is known is written out, and the loop around it runs over vectors: of 5,000 rows
the nearest of ten centres takes a tenth of the time. Sizes of up to SHORT elements are such, where another axis is
long. A number that is the first size of a larger array counts rows, of which the next call may have any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc.ir.node import Node
from graphc.ops.questions import Note

SHORT, LONG = 16, 64
"""The most elements of a short axis, and the fewest of a long one."""

Axes: TypeAlias = "frozenset[tuple[int, int, int]]"
"""Axes as (number of the leaf, axis, size)."""


def short_axes(leaves: Sequence[Any]) -> Axes:
    """Return the short axes of arguments of which one is long."""
    shapes = [leaf.shape if isinstance(leaf, np.ndarray) else () for leaf in leaves]
    if max(map(max, filter(None, shapes)), default=0) < LONG:
        return frozenset()
    rows = {shape[0] for shape in shapes if shape and max(shape) > SHORT}
    return frozenset(
        (number, axis, size)
        for number, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
        if 1 < size <= SHORT and size not in rows
    )


def without_elements(leaf: Any) -> Any:
    """An array like an argument that has one element in memory; other arguments as they are."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if isinstance(leaf, np.ndarray) else leaf


def notes_of(axes: Iterable[tuple[int, int, int]], variables: Sequence[Node]) -> list[Note]:
    """Return a note for each axis of these variables whose size is open: it is the number."""
    pairs = [(variables[number].type.shape[axis], size) for number, axis, size in sorted(axes)]
    return [Note(node, "equal", size, {node: size}, None) for node, size in pairs if isinstance(node, Node)]
