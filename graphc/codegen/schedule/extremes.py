"""The most that a size may be which changes from step to step, so that memory for it can be had before the loop.

In: the graph of a step, and sizes in it. Out: sizes of the graph around that are no less in any step. The values of
int64 nodes, elements of arrays too, lie between a least and a most, which follow from those of their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from graphc.codegen.schedule.plan import StepGraph
from graphc.dtypes import INTEGERS
from graphc.ir import sizes
from graphc.ir.node import LEAVES, SIZE, Node, Size, constant_value
from graphc.ir.walk import nodes_of

Range: TypeAlias = "tuple[Size | None, Size | None]"
"""The least and the most of some values; None where it is not known."""

SAME = ("broadcast_to", "dimshuffle", "reshape", "subtensor")
"""Ops whose elements are elements of their first argument."""


def most_of(graph: StepGraph) -> Callable[[Size], Size]:
    """What tells the most that a size may be in a step; sizes of which nothing is known are left as they are."""
    outside = {leaf: node for leaf, node in (*graph.scalars.items(), *graph.sources.items()) if node.dtype in INTEGERS}
    around = _ranges([*outside.values()], _exact(outside.values()))
    last = sizes.maximum(sizes.add(graph.most, -1), 0)
    known: dict[Node, Range] = {leaf: around[node] for leaf, node in outside.items()}
    known |= {graph.number: (0, last), **dict.fromkeys(graph.states, (None, None))}

    def most(size: Size) -> Size:
        if isinstance(size, int):
            return size
        bound = _ranges([size], _exact([size]) | known)[size][1]
        return size if bound is None else sizes.maximum(bound, 0)

    return most


def _exact(nodes: Iterable[Node]) -> dict[Node, Range]:
    """The scalars that these are computed from."""
    leaves = [node for node in nodes_of([*nodes]) if node.op in LEAVES and not node.ndim]
    return {leaf: (sizes.as_size(leaf), sizes.as_size(leaf)) for leaf in leaves if leaf.dtype in INTEGERS}


def _ranges(nodes: Sequence[Node], known: Mapping[Node, Range]) -> dict[Node, Range]:
    found = dict(known)
    for node in nodes_of(nodes):
        if node not in found:
            found[node] = _range(node, [found[arg] for arg in node.args])
    return found


def _range(node: Node, args: Sequence[Range]) -> Range:
    value = constant_value(node)
    if node.dtype not in INTEGERS:
        return None, None
    if value is not None:
        return (int(value.min()), int(value.max())) if value.size else (0, 0)
    if node.op is SIZE:
        return sizes.as_size(node), sizes.as_size(node)
    name = node.op.name
    if name == "iota":
        return 0, sizes.maximum(sizes.add(node.type.shape[0], -1), 0)
    if name in SAME or (name == "cast" and node.dtype == "int64"):
        return args[0]
    return _computed(name, args) if node.dtype == "int64" else (None, None)  # others may overflow


def _computed(name: str, args: Sequence[Range]) -> Range:
    match name, args:
        case "add", [(a, b), (c, d)]:
            return _both(sizes.add, a, c), _both(sizes.add, b, d)
        case "sub", [(a, b), (c, d)]:
            return _both(sizes.subtract, a, d), _both(sizes.subtract, b, c)
        case "minimum", [(a, b), (c, d)]:
            return _both(sizes.minimum, a, c), _either(sizes.minimum, b, d)
        case "maximum", [(a, b), (c, d)]:
            return _either(sizes.maximum, a, c), _both(sizes.maximum, b, d)
        case "where", [_, (a, b), (c, d)]:
            return _both(sizes.minimum, a, c), _both(sizes.maximum, b, d)
    return None, None


def _both(op: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return None if left is None or right is None else op(left, right)


def _either(op: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return op(left, right) if left is not None and right is not None else right if left is None else left
