"""Cotangents that are zero where a condition says so, whatever they are multiplied by.

`where(c, sqrt(x), 0)` has the cotangent `where(c, g, 0)` of `sqrt(x)`, whose zeros times an infinite derivative would
be NaN. So a derivative multiplies what the mask lets through, and the mask is put around the product:
`where(c, g * d, 0)`, which is the same wherever `d` is finite.

In: cotangents. Out: `Masks`, which tells under which conditions one is not zero, and what it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.ir.lowering import View
from graphc.ir.node import OPS, Node, make, next_serial
from graphc.ir.signs import scalar_number
from graphc.ir.walk import renamed
from graphc.ops.elementwise import elementwise
from graphc.ops.reduce import reduced_axes
from graphc.ops.shape import broadcast_to, drop

Mask: TypeAlias = tuple[Node, bool]
"""A condition of the sizes of a value, and what it is where that value counts; elsewhere there is zero."""

Parts: TypeAlias = tuple[tuple[Mask, ...], Node]
"""Masks, all of which must let an element through, the outermost first, and the value that they are put around."""


class Masks:
    """The masks of the nodes of one derivative. Nodes that were there before it are values that the program may need
    anyway: they are taken as they are, so that nothing is computed twice."""

    __slots__ = ("known", "since")

    def __init__(self) -> None:
        self.since = next_serial()
        self.known: dict[Node, Parts] = {}

    def outward(self, derivative: Callable[[Node], Sequence[Node | None]], cotangent: Node) -> Sequence[Node | None]:
        """What the derivative of an elementwise op makes of a cotangent, whose masks are put around it."""
        masks, value = self.of(cotangent)
        if not masks:
            return derivative(cotangent)
        if value is cotangent:
            return [masked(masks, part) if isinstance(part, Node) else part for part in derivative(value)]
        same = {value: cotangent, make(OPS["neg"], (value,)): make(OPS["neg"], (cotangent,))}
        parts = derivative(value)
        return [
            part if not isinstance(part, Node) else same[part] if part in same else masked(masks, part)
            for part in parts
        ]

    def of(self, node: Node) -> Parts:
        """The masks of a node, and what they are put around."""
        known, stack = self.known, [node]
        while stack:
            waiting = [arg for arg in _factors(stack[-1]) if arg not in known]
            if waiting:
                stack += waiting
            else:
                top = stack.pop()
                masks, value = _taken_apart(top, known)
                known[top] = masks, value if masks and top.serial > self.since else top
        return known[node]


def masked(masks: Sequence[Mask], value: Node) -> Node:
    """The value where all masks let it through, zero elsewhere."""
    for condition, wanted in reversed(masks):
        value = elementwise("where", condition, *((value, 0) if wanted else (0, value)))
    return value


def _factors(node: Node) -> Sequence[Node]:
    """The arguments whose zeros are zeros of the node, both where it is a sum."""
    name = node.op.name
    if not is_float(node.type.dtype) or OPS.get(name) is not node.op:
        return ()
    if name == "where":
        several = [arg for arg in node.args[1:] if scalar_number(arg) != 0]
        return several if len(several) == 1 else ()
    if name in ("mul", "add"):
        return node.args
    return node.args[:1] if name in ("strong_mul", "true_div", "neg", "cast", "sum") or _is_view(node) else ()


def _is_view(node: Node) -> bool:
    """Whether each element of a node is one of its first argument, whatever these are."""
    others = any(is_float(arg.type.dtype) for arg in node.args[1:])
    return bool(node.args) and node.op.cost == 0.0 and not others and isinstance(node.op.lower(node), View)


def _taken_apart(node: Node, known: dict[Node, Parts]) -> Parts:
    """The masks of a node and the rest of it, where those of its arguments are known."""
    name = node.op.name
    parts = [known[arg] for arg in _factors(node)]
    if name == "where" and parts:
        ((masks, value),) = parts
        return _joined([(node.args[0], scalar_number(node.args[1]) != 0)], masks), value
    if not any(masks for masks, _ in parts):
        return (), node
    if name == "mul":
        return _joined(*(masks for masks, _ in parts)), make(node.op, [value for _, value in parts])
    if name == "add":
        return _of_sum(node, *parts)
    ((masks, value),) = parts
    if name == "sum":
        along = {mask: _along(node, mask[0]) for mask in masks}
        rest = masked([mask for mask in masks if along[mask] is None], value)
        masks = tuple((condition, wanted) for (_, wanted), condition in along.items() if condition is not None)
        return masks, make(node.op, (rest,), node.attrs)
    if _is_view(node):
        masks = tuple((make(node.op, (condition, *node.args[1:]), node.attrs), wanted) for condition, wanted in masks)
    return masks, renamed(make(node.op, (value, *node.args[1:]), node.attrs), node)


def _joined(*several: Sequence[Mask]) -> tuple[Mask, ...]:
    """The masks, each once."""
    return tuple(dict.fromkeys(mask for masks in several for mask in masks))


def _of_sum(node: Node, left: Parts, right: Parts) -> Parts:
    """A sum is zero where both terms are: its masks are those of both, and one that lets through what either does."""
    common = tuple(mask for mask in left[0] if mask in right[0])
    rests = [tuple(mask for mask in masks if mask not in common) for masks, _ in (left, right)]
    value = make(node.op, [masked(rest, value) for rest, (_, value) in zip(rests, (left, right), strict=True)])
    if not all(rests) or any((condition, not wanted) in rests[1] for condition, wanted in rests[0]):
        return common, value
    return (*common, (elementwise("logical_or", *map(_all_of, rests)), True)), value


def _all_of(masks: Sequence[Mask]) -> Node:
    """The condition that all masks let an element through."""
    first, *rest = (condition if wanted else elementwise("logical_not", condition) for condition, wanted in masks)
    for condition in rest:
        first = elementwise("logical_and", first, condition)
    return first


def _along(node: Node, condition: Node) -> Node | None:
    """A condition of the sizes of a sum's argument as one of the sum's, where it is the same along the summed axes."""
    axes = reduced_axes(node)
    source = condition.args[0] if condition.op.name == "broadcast_to" else condition
    if not all(source.broadcastable[axis] for axis in axes):
        return None
    return broadcast_to(drop(source, axes), node.type.shape)
