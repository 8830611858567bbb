"""Ops whose value is their first argument: values computed after others, values with a name, values under a condition.

    again([x], [g])                      [x], as values that can be computed only when g is known
    named(y, "attn")                     y, which a policy of `graphc.checkpoint` knows as "attn"
    checked(x, [c], "c must hold")       x, where c is not 0: checked before a kernel runs that needs the value
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
from graphc.errors import GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.lowering import Scalar, View
from graphc.ir.node import OPS, Attributes, Guard, Node, Size, Type, define_op, describe, literal, make
from graphc.ir.types import samples
from graphc.ops.elementwise import aligned, as_node, cast, elementwise, repeated
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduction
from graphc.ops.shape import escaped, filled
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


def attached(result: Any, effects: Sequence[Node]) -> Any:
    """Return a tree of results that can be computed only when effects are."""
    if not effects:
        return result
    return map_leaves(lambda leaf: again([as_node(leaf)], effects)[0] if isinstance(leaf, ARRAYS) else leaf, result)


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


# --- checks -----------------------------------------------------------------------------------------------------------


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    for condition in args[1:]:
        if condition.ndim or condition.type.dtype != "int64":
            raise GraphTypeError(f"checked: {describe(condition)} of type {condition.type} should be an int64 scalar")
    return args[0].type


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """The conditions must hold of all elements; of none they do."""
    (x,), pairs = repeated(args[:1], batched[:1], size), zip(args[1:], batched[1:], strict=True)
    conditions = [cast(reduction("all", cast(one, "bool"), (0,)), "int64") if many else one for one, many in pairs]
    return checked(x, conditions, **node.attrs)


def _guards(node: Node) -> Sequence[Guard]:
    message = escaped(node.attrs["message"] + (f" ({node.where})" if node.where else ""))
    return [Guard(1, "<=", condition, message, node.attrs["error"]) for condition in node.args[1:]]


def checked(x: Node, conditions: Sequence[Node], message: str, error: str = "assertion") -> Node:
    """`x`, where conditions, int64 scalars of 0 or 1, hold: otherwise the error (of `Guard`) with this message."""
    return make(OPS["checked"], (x, *conditions), {"message": message, "error": error})


def with_elements(x: Node, axis: int, least: int, message: str) -> Node:
    """`x`, where it has at least so many elements along an axis: otherwise a ShapeError with this message, at once
    where the size is known, else of the call."""
    size = x.type.shape[axis]
    if not isinstance(size, int):
        return checked(x, (cast(elementwise("greater_equal", size, least), "int64"),), message, "shape")
    if size < least:
        raise ShapeError(message)
    return x


define_op(
    "checked",
    infer=_infer,
    eval=lambda node, x, *conditions: x,
    lower=lambda node: View(lambda node, index, element: (0, index)),
    vjp=lambda node, cotangent: (checked(cotangent, node.args[1:], **node.attrs), *(None for _ in node.args[1:])),
    guards=_guards,
    cost=0.0,
    batch=_batch,
    samples=samples(
        ("a matrix", lambda x: checked(x, (literal(1, "int64"),), "never {said}"), (2, 3)),
        ("a scalar", lambda x: checked(x, (literal(1, "int64"),), "never {said}"), ()),
        ("nothing", lambda x: checked(x, (literal(1, "int64"),), "never {said}", "shape"), (0, 3)),
    ),
    doc="The first argument, where the others, int64 scalars, are not 0; else an error that says the message.",
)
