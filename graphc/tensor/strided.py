"""`np.lib.stride_tricks.as_strided` of arrays in a traced function, whose strides are steps along their axes.

    a.strides                                        one step along each axis, which can be multiplied and added
    as_strided(a, (n - 2, 3), (s, s)), s a step      a[i + j], for i below n - 2 and j below 3
    as_strided(m, (k, 2, n), (2 * s, s, t))          m[2 * i + j, l]

NumPy counts strides in bytes of memory. Here a stride says which element of which axis is meant, whatever the memory:
the result is NumPy's as long as it stays within each axis. An index behind the end of an axis is an IndexError, where
NumPy reads what the memory holds there. In: an array, a shape, strides that were read of the same array. Out: a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as numpys

from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.node import FUNCTIONS, Node, describe
from graphc.ir.source_lines import TRACE
from graphc.ir.symbol import asked, refuse_in_place
from graphc.ops.elementwise import as_node
from graphc.tensor import boundary, shaping
from graphc.tensor.creation import arange


class Stride:
    """A step from element to element of an array. steps: how far it goes along each axis."""

    __slots__ = ("owner", "steps")

    def __init__(self, owner: Node, steps: Sequence[Any]) -> None:
        self.owner, self.steps = owner, tuple(steps)

    def __add__(self, other: Any) -> Stride:
        if isinstance(other, int) and not other:
            return self
        if not isinstance(other, Stride) or other.owner is not self.owner:
            raise refuse_in_place("strides", self.owner)
        return Stride(self.owner, [a + b for a, b in zip(self.steps, other.steps, strict=True)])

    def __mul__(self, times: Any) -> Stride:
        if not isinstance(times, int | np.integer | Node):
            raise refuse_in_place("strides", self.owner)
        return Stride(self.owner, [step if _is_number(step, 0) else step * times for step in self.steps])

    __radd__, __rmul__ = __add__, __mul__


def _refused(self: Stride, *_: Any) -> Any:
    raise refuse_in_place("strides", self.owner)


REFUSED = "bool eq float floordiv ge gt hash index int le lt mod ne neg rfloordiv rmod rsub rtruediv sub truediv"
"""What asks for a number of bytes."""
for _name in REFUSED.split():
    setattr(Stride, f"__{_name}__", _refused)


def strides_of(node: Node) -> tuple[Stride, ...]:
    """The strides of an array: a step along each axis."""
    return tuple(Stride(node, [int(each == axis) for each in range(node.ndim)]) for axis in range(node.ndim))


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Node:
    """np.lib.stride_tricks.as_strided, of strides of `x` itself."""
    node = as_node(x)
    sizes = node.type.shape if shape is None else tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    steps = strides_of(node) if strides is None else strides if isinstance(strides, (tuple, list)) else (strides,)
    what = f"as_strided of {describe(node)}"
    if len(steps) != len(sizes):
        raise GraphValueError(f"{what}: {len(sizes)} sizes and {len(steps)} strides")
    if any(not (isinstance(s, Stride) and boundary.given(s.owner) is node) and not _is_number(s, 0) for s in steps):
        raise GraphTypeError(
            f"{what}: in a traced function strides are known as x.strides alone, where x is the same array; "
            f"np.lib.stride_tricks.sliding_window_view gives windows{asked(describe(node))}"
        )
    rank = len(sizes)
    places = [shaping.reshape(arange(n), [-1 if k == j else 1 for k in range(rank)]) for j, n in enumerate(sizes)]
    indices: list[Any] = []
    for axis in range(node.ndim):
        parts: list[Any] = []
        for place, step in zip(places, steps, strict=True):
            times = step.steps[axis] if isinstance(step, Stride) else 0
            if isinstance(times, int | np.integer) and times < 0:
                raise GraphValueError(f"{what}: a negative stride begins before the array; turn it around first")
            if not _is_number(times, 0):
                parts.append(place if _is_number(times, 1) else place * times)
        indices.append(sum(parts[1:], start=parts[0]) if parts else 0)
    return shaping.broadcast_to(node[tuple(indices)], sizes)


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def of_program(*args: Any, **kwargs: Any) -> Any:
    """np.lib.stride_tricks.as_strided, while a function is traced."""
    subject = args[0] if args else kwargs.get("x")
    if TRACE.depth and isinstance(subject, Node):
        return boundary.call(as_strided, numpys, args, kwargs)
    return numpys(*args, **kwargs)


REPLACED = ((np.lib.stride_tricks, "as_strided", numpys, of_program),)
FUNCTIONS["strides"] = strides_of
