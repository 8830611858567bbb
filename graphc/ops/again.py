"""Values that are computed after others: those that derivatives compute again, those that wait for an effect.

    again([x], [g])                      [x], as values that can be computed only when g is known
    named(y, "attn")                     y, which a policy of `graphc.checkpoint` knows as "attn"
    with Frame(anchor) as found:         around each call of a function with tensors
        made = f(x)                      f calls debug.print("{}", x): a node, which found has then
    made = attached(made, found)         made is computed only when the node is

What is computed of `again(x)` is another node than what was computed of x, so nothing makes the two one value; and the
plan cannot compute it before g. So what was computed of x can be forgotten in between.

Effects are nodes that are computed for what they do, not for a value: what `graphc.debug` prints and calls. A node that
nothing needs is not computed. So the results of the call are made to need it; they are results of a step of a loop, of
a branch, of an element of a batch, and what holds for them holds for the effect.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import OPS, Node, define_op, make
from graphc.ir.samples import samples
from graphc.ops.elementwise import aligned, as_node, cast
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduction
from graphc.ops.shape import filled
from graphc.trees import map_leaves


class Effects(_local):
    """The calls of functions with tensors that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []


EFFECTS = Effects()


class Frame:
    """The effects of one call. anchor: a value of the step of a loop, or of the branch, that the call is."""

    def __init__(self, anchor: Any = None) -> None:
        self.anchor = anchor
        self.found: list[Any] = []

    def __enter__(self) -> list[Any]:
        EFFECTS.frames.append(self)
        return self.found

    def __exit__(self, *error: object) -> None:
        EFFECTS.frames.pop()


def again(values: Sequence[Node], after: Sequence[Node]) -> list[Node]:
    """Return the values, which can be computed only when those in `after`, floats, are known."""
    signal = as_node(0.0, "float64")
    for each in after:
        signal = make(OPS["add"], (signal, cast(_first(each), "float64")))
    return [make(AGAIN, (value, filled(signal, value.type.shape))) for value in values]


def attached(made: Any, effects: Sequence[Node]) -> Any:
    """Return a tree of results that can be computed only when effects are."""
    if not effects:
        return made
    return map_leaves(lambda leaf: again([as_node(leaf)], effects)[0] if isinstance(leaf, ARRAYS) else leaf, made)


ARRAYS = (Node, np.ndarray, np.generic, int, float)
"""The types of results that have a value."""


def _first(value: Node) -> Node:
    """Return the first element of a value, 0 where it has none."""
    if not value.ndim:
        return value
    few = [1 if isinstance(size, int) and size else sizes.minimum(size, 1) for size in value.type.shape]
    return reduction("sum", subtensor(value, [0] * value.ndim, few, [1] * value.ndim), tuple(range(value.ndim)))


def named(value: Any, name: str) -> Node:
    """Return `value`, which `save_only_these_names` and its kin know by `name`."""
    return make(NAMED, (as_node(value),), {"name": name})


AGAIN = define_op(
    "computed_after",
    infer=lambda args, attrs: args[0].type,
    eval=lambda node, x, signal: x,
    lower=lambda node: Scalar("_0"),
    vjp=lambda node, cotangent: (cotangent, None),
    cost=0.0,
    batch=aligned,
    samples=samples(others=[("again", lambda x, y: again([x], [y])[0], (2, 3), (2,))]),
    doc="The first argument, as a value that is computed after the second.",
)
NAMED = define_op(
    "checkpoint_name",
    infer=lambda args, attrs: args[0].type,
    eval=lambda node, x: x,
    lower=lambda node: Scalar("_0"),
    vjp=lambda node, cotangent: (cotangent if is_float(node.type.dtype) else None,),
    cost=0.0,
    batch=aligned,
    samples=samples(("named", lambda x: named(x, "x"), (2, 3))),
    doc="The argument, which has a name for policies of `checkpoint`.",
)
