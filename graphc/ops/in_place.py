"""`x += y` of an array that is seen by one name alone: the changed array.

In: a tensor that may change (`ir.fresh`), and what is computed with it. Out: the tensor that the name stands for from
then on, with the shape and the dtype of the first; an error where NumPy has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Guard, Node, describe
from graphc.ir.symbol import asked
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import held_to


def in_place(symbol: str, function: str, x: Node, y: Any) -> Node:
    """`x`, changed by `x {symbol}= y`: what the function gives of the two, in the dtype of `x`. It takes the shape of
    `x`, to which `y` broadcasts. Raises RankError or ShapeError where it cannot, GraphTypeError where NumPy does not
    convert results to the dtype of `x` (its rule "same_kind")."""
    made: Node = FUNCTIONS[function](x, y)
    given = as_node(y)
    told, line = f"{describe(x)} of type {x.type}: `x {symbol}= y`", asked(describe(x))
    if made.ndim != x.ndim or (symbol == "@" and given.ndim < 2):
        raise RankError(f"{told} cannot take a y of {given.ndim} axes, since x keeps its shape{line}")
    if not np.can_cast(made.type.dtype, x.type.dtype, "same_kind"):
        raise GraphTypeError(
            f"{told} would give {made.type.dtype}, which {x.type.dtype} does not take; write x = x {symbol} y{line}"
        )
    for axis, own in enumerate(x.type.shape):
        size = made.type.shape[axis]
        if sizes.equal(size, own) or not (symbol == "@" or sizes.equal(own, 1)):
            continue  # or the function checks that the two are equal
        if isinstance(size, int) and isinstance(own, int):
            raise ShapeError(f"{told} gives {size} elements along axis {axis}, where x keeps its {own}{line}")
        message = f"`x {symbol}= y` gives {{left}} elements along axis {axis}, where x keeps its {{right}}{line}"
        made = held_to(made, axis, Guard(size, "==", own, message))
    return cast(made, x.type.dtype)


FUNCTIONS["in_place"] = in_place
