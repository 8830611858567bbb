"""Graphs within nodes, and nodes with several results.

In: parameters and results, or a node of a tuple type. Out: the one `Body` that stands for this graph; the node of one
result; what stands in the bodies of nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from weakref import WeakValueDictionary

from graphc.errors import GraphTypeError
from graphc.ir.lowering import Part
from graphc.ir.node import PARAM, Attributes, Body, Guard, Node, TupleType, Type, Where, define_op, describe, make
from graphc.ir.walk import nodes_of


def _item_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    (node,), index = args, attrs["index"]
    if not isinstance(node.type, TupleType) or not 0 <= index < len(node.type.parts):
        raise GraphTypeError(f"{describe(node)} of type {node.type} has no result {index}")
    return node.type.parts[index]


ITEM = define_op(
    "item",
    _item_infer,
    lambda node, values: values[node.attrs["index"]],
    lambda node: Part(node.attrs["index"]),
    cost=0.0,
    doc="One result of an op that has several.",
)


def item(node: Node, index: int) -> Node:
    """The result at a position of a node that has several."""
    return make(ITEM, (node,), {"index": index})


def items_of(node: Node) -> list[Node]:
    """All results of a node that has several."""
    assert isinstance(node.type, TupleType)
    return [item(node, index) for index in range(len(node.type.parts))]


def outputs_of(node: Node) -> list[Node]:
    """What a node computes: itself, or the items of one that has several."""
    return items_of(node) if node.is_tuple else [node]


_bodies: WeakValueDictionary[Hashable, Body] = WeakValueDictionary()


def make_body(params: Sequence[Node], results: Sequence[Node], checks: tuple[Guard, ...] | None = None) -> Body:
    """The body with these parameters, in the order of their numbers, and results; the existing one where there is
    one."""
    compared = None if checks is None else tuple((id(c.left), c.relation, id(c.right)) for c in checks)
    key = (tuple(map(id, params)), tuple(map(id, results)), compared)
    found = _bodies.get(key)
    if found is None:
        found = _bodies[key] = Body(tuple(params), tuple(results), checks)
    return found


def param(index: int, kind: Type, name: str | None = None, natural: bool = False, where: Where | None = None) -> Node:
    """Parameter number `index` of bodies. Sizes of its type are numbers and other parameters. `natural`: it is a size,
    and so is not negative. `where`: the line of what it stands for. Bodies of other lines are others, so that messages
    about them name the lines of this program, and not of one that was equal."""
    node = make(PARAM, (), {"index": index, "type": kind, "name": name, "natural": natural, "where": where})
    node.name, node.where = name, where or node.where
    return node


def bodies_of(node: Node) -> dict[str, Body]:
    """The attributes of a node that are bodies, in the order of their names."""
    return {name: value for name, value in sorted(node.attrs.items()) if isinstance(value, Body)}


def nodes_within(nodes: Iterable[Node]) -> list[Node]:
    """The nodes of all bodies of `nodes`, and of the bodies of those."""
    found: list[Node] = []
    pending = [body for node in nodes for body in bodies_of(node).values()]
    while pending:
        inner = nodes_of(pending.pop().results)
        found += inner
        pending += [body for node in inner for body in bodies_of(node).values()]
    return found
