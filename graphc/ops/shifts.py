"""What is subtracted before exponentials, and cancels: derivatives need not go through it.

In: nodes to be differentiated. Out: equal nodes, in which such shifts are held.

`m + log(exp(a - m) + exp(b - m))` with m = maximum(a, b), written out so that nothing overflows, does not depend on m,
nor does `exp(x - m) / sum(exp(x - m))`. Their derivatives by m are differences of equal numbers, for which the
exponentials are multiplied once more, and the maximum differentiated, ties and all. Of each value it is found out here
how it contains a shift: with a multiple of it added, or multiplied by a power of its exponential. Where that comes to
nothing the shift is held, in this value alone: elsewhere m is differentiated as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.ir.node import Node, remade
from graphc.ir.walk import nodes_of, rebuilt, renamed, substitute
from graphc.ops.derivative import HELD, held
from graphc.startup.record import record, replace

Axes: TypeAlias = "tuple[int | None, ...]"

EXTREMES = ("maximum", "max")
"""Ops whose results are shifts."""


@record()
class Share:
    """How a value contains a shift: `times` it is added, or its exponential to that power is a factor. axes: for each
    axis of the value that of the shift which is read along it."""

    shift: Node
    axes: Axes
    kind: Literal["added", "factor"]
    times: int = 1


def hold_shifts(roots: Sequence[Node], others: Sequence[Node]) -> dict[Node, Node]:
    """What is the same as `roots`, and as `others`, which these need, with shifts held where they cancel; empty where
    none does. All of them stay in the graph: none is a part of what is made anew."""
    order = nodes_of(roots)
    names = {node.op.name for node in order}
    if "exp" not in names or names.isdisjoint(EXTREMES):
        return {}
    given = {*roots, *others}
    shares: dict[Node, Share] = {}
    done: dict[Node, Node] = {}
    for node in order:
        share = _share(node, shares) if is_float(node.type.dtype) and not node.is_tuple else None
        if share is not None and not share.times:
            done[node] = _with_held(node, share.shift, shares, done)
        elif share is not None and node not in given:
            shares[node] = share
    return {node: rebuilt(done, node) for node in given} if done else {}


def release(nodes: Sequence[Node]) -> list[Node]:
    """Nodes over shifts as they are, from nodes over shifts that are held."""
    return substitute(nodes, {node: node.args[0] for node in nodes_of(nodes) if node.op is HELD})


def _with_held(root: Node, shift: Node, shares: Mapping[Node, Share], done: dict[Node, Node]) -> Node:
    """The value with its shift held, wherever it cancels, and what is beside that as `done` has it."""

    def contains(node: Node) -> bool:
        return node in shares and shares[node].shift is shift

    made = {shift: held(shift)}
    pending = [root]
    while pending:
        node = pending[-1]
        missing = [arg for arg in node.args if contains(arg) and arg not in made]
        if missing:
            pending += missing
            continue
        pending.pop()
        if node not in made:
            args = tuple(made[arg] if contains(arg) else rebuilt(done, arg) for arg in node.args)
            made[node] = renamed(remade(node, args), node)
    return made[root]


def _share(node: Node, shares: Mapping[Node, Share]) -> Share | None:
    """How a node contains a shift, from how its arguments do; 0 times where it cancels. None: not at all, or in a way
    that says nothing."""
    name = node.op.name
    if name in EXTREMES:
        sizes = node.type.shape
        return Share(node, tuple(None if size == 1 else axis for axis, size in enumerate(sizes)), "added")
    parts = [shares.get(arg) for arg in node.args]
    match name, parts:
        case "add" | "sub", [Share(kind="added") | None, Share(kind="added") | None]:
            return _joined(parts, -1 if name == "sub" else 1)
        case "mul" | "true_div", [Share(kind="factor") | None, Share(kind="factor") | None]:
            return _joined(parts, -1 if name == "true_div" else 1)
        case "add" | "sub", [Share(kind="factor") as left, right] if left == right:
            return left
        case "exp", [Share(kind="added") as share]:
            return replace(share, kind="factor")
        case "log", [Share(kind="factor") as share]:
            return replace(share, kind="added")
        case "neg", [Share(kind="added") as share]:
            return replace(share, times=-share.times)
        case "neg", [Share(kind="factor") as share]:
            return share
        case "sum", [Share(kind="factor") as share]:
            reduced = node.attrs["axes"]
            axes = tuple(axis for place, axis in enumerate(share.axes) if place not in reduced)
            alike = all(share.axes[place] is None for place in reduced)
            return replace(share, axes=axes) if alike else None
        case "dimshuffle", [Share() as share]:
            order = node.attrs["order"]
            return replace(share, axes=tuple(None if place == "x" else share.axes[place] for place in order))
        case "broadcast_to", [Share() as share, *_] if node.ndim == len(share.axes):
            return share
    return None


def _joined(parts: Sequence[Share | None], sign: int) -> Share | None:
    """Of a sum or a product, or with `sign` -1 a difference or quotient, of two values. Where they contain different
    shifts it is the second's."""
    left, right = parts
    if right is None:
        return left
    if left is None or left.shift is not right.shift:
        return replace(right, times=sign * right.times)
    return replace(left, times=left.times + sign * right.times) if left.axes == right.axes else None
