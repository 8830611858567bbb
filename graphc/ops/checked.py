"""A value that a graph may only have where something holds of other values.

In: a node, and int64 scalars that must not be 0. Out: the node itself, guarded: what is said is checked before a kernel
runs, whenever the value is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.lowering import Element, View
from graphc.ir.node import OPS, Attributes, Guard, Index, Node, Size, Type, define_op, describe, literal, make
from graphc.ir.samples import Argument, Sample, Samples
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast, elementwise


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    for condition in args[1:]:
        if condition.ndim or condition.type.dtype != "int64":
            raise GraphTypeError(f"checked: {describe(condition)} of type {condition.type} should be an int64 scalar")
    return args[0].type


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """The conditions must hold of all elements; of none they do."""
    conditions = [_all(one) if many else one for one, many in zip(args[1:], batched[1:], strict=True)]
    x = args[0]
    if not batched[0]:
        x = make(OPS["dimshuffle"], (x,), {"order": ("x", *range(x.ndim))})
        x = make(OPS["broadcast_to"], (x, *map(as_size_node, (size, *args[0].type.shape))))
    return checked(x, conditions, **node.attrs)


def _all(conditions: Node) -> Node:
    true = make(OPS["cast"], (conditions,), {"dtype": "bool"})
    return make(OPS["cast"], (make(OPS["all"], (true,), {"axes": (0,)}),), {"dtype": "int64"})


def _index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    return 0, index


def _guards(node: Node) -> Sequence[Guard]:
    where = f" ({node.where})" if node.where else ""
    message = (node.attrs["message"] + where).replace("{", "{{").replace("}", "}}")
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


def _sample(name: str, shape: tuple[int, ...], **more: Any) -> Sample:
    def build(x: Node) -> Node:
        return checked(x, (literal(1, "int64"),), "never {said}", **more)

    return Sample(name, build, (Argument(shape),))


define_op(
    "checked",
    infer=_infer,
    eval=lambda node, x, *conditions: x,
    lower=lambda node: View(_index),
    vjp=lambda node, cotangent: (checked(cotangent, node.args[1:], **node.attrs), *(None for _ in node.args[1:])),
    guards=_guards,
    cost=0.0,
    batch=_batch,
    samples=Samples(
        lambda: (_sample("a matrix", (2, 3)), _sample("a scalar", ()), _sample("nothing", (0, 3), error="shape"))
    ),
    doc="The first argument, where the others, int64 scalars, are not 0; else an error that says the message.",
)
