"""Graphs within nodes, and nodes with several results.

In: parameters and results, or a node of a tuple type. Out: the one `Body` that stands for this graph; the node of one
result; what stands in the bodies of nodes.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.lowering import Part
from graphc.ir.node import (
    CONSTANT,
    PARAM,
    SIZE,
    Attributes,
    Body,
    Guard,
    Node,
    Size,
    TupleType,
    Type,
    Where,
    constant_value,
    define_op,
    describe,
    make,
)
from graphc.ir.signs import BROADCASTS
from graphc.ir.sizes import as_size, is_natural
from graphc.ir.walk import as_size_node, dependents, node_set, nodes_of, nodes_since, substitute, type_sizes
from graphc.startup.record import replace


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


# --- closure ----------------------------------------------------------------------------------------------------------
# Bodies made of graphs, and graphs made of bodies.
#
# In: variables that stand for what a body is given each time, and results that are computed from them and from
# anything else. Out: a `Body` of these, and the nodes that it needs from outside, which are its parameters after the
# variables (closure conversion): so walking, printing and comparing graphs need to know nothing of scopes.
#
# All that does not depend on the variables stays outside, computed once, but for what only repeats elements: that
# costs nothing inside, and memory outside. The sizes of a body are its parameters too, so that a body is one for all
# sizes.


def close(variables: Sequence[Node], results: Sequence[Node], since: int = 0) -> tuple[Body, tuple[Node, ...]]:
    """The body with these variables as its first parameters and these results, and what its other parameters stand
    for. Nodes that only repeat elements come inside if their serial numbers are `since` or more: of older ones the
    program may ask the derivative."""
    return close_over(variables, _captured(variables, results, since), results)


def close_over(
    variables: Sequence[Node], captured: Sequence[Node], results: Sequence[Node]
) -> tuple[Body, tuple[Node, ...]]:
    """`close`, given what the results need from outside."""
    known = dict.fromkeys(size for node in (*variables, *captured) for size in type_sizes(node))
    others = dict.fromkeys((*captured, *known))
    numbers = {node: number for number, node in enumerate((*variables, *others))}
    params: dict[Node, Node] = {}
    for node in sorted(numbers, key=lambda node: node.ndim):  # sizes come first: the types of others name them
        shape = tuple(params[size] if isinstance(size, Node) else size for size in node.type.shape)
        natural = node not in variables and (node in known or node.op is SIZE or is_natural(node))
        params[node] = param(numbers[node], Type(node.type.dtype, shape), node.name, natural, _line(node))
    body = make_body([params[node] for node in numbers], substitute(results, params))
    return body, tuple(others)


def _line(node: Node) -> Where | None:
    """The line that made a node, without what it says of a check."""
    return replace(node.where, words=None) if node.where and node.where.words else node.where


def _captured(variables: Sequence[Node], results: Sequence[Node], since: int) -> list[Node]:
    """What results need that no variable changes, as far out as it can stand."""
    first = min((node.serial for node in variables), default=0)
    varying = dependents(nodes_since(results, first), variables)
    found: dict[Node, None] = {}
    seen: set[Node] = set(variables)
    pending = list(reversed(results))
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        value = constant_value(node)
        if value is not None and not value.ndim:
            continue
        repeats = node.op.name in BROADCASTS and node.ndim and node.serial >= since
        if node in varying or repeats or _is_offset(node):
            pending += reversed(node.args)
        else:
            found[node] = None
    return list(found)


def needed_of(at_hand: Container[Node], results: Sequence[Node]) -> list[Node]:
    """What results need of the nodes at hand and of leaves; scalar constants need nobody."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    pending = list(reversed(results))
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is CONSTANT and not node.ndim:
            continue
        if node in at_hand or not node.args:
            found[node] = None
        else:
            pending += reversed(node.args)
    return list(found)


def _is_offset(node: Node) -> bool:
    """Whether a node is a size and a number more, or less, or a number of steps: so `x[-1]` is seen to be the last row
    within a body too."""
    return node.op.name == "add" and not node.ndim and node.type.dtype == "int64" and node.args[1].op is CONSTANT


def opened(body: Body, operands: Sequence[Node]) -> list[Node]:
    """The results of a body over these operands."""
    return substitute(body.results, dict(zip(body.params, operands, strict=True)))


_ARITHMETIC = {
    "add": sizes.add,
    "sub": sizes.subtract,
    "mul": sizes.multiply,
    "floor_div": sizes.floor_divide,
    "minimum": sizes.minimum,
    "maximum": sizes.maximum,
}


def outside(size: Size, operands: Mapping[Node, Node]) -> Size:
    """A size of a body in terms of the operands that its parameters stand for."""
    if isinstance(size, int):
        return size
    known: dict[Node, Size] = {}
    for node in nodes_of([size]):
        if not node.args:
            known[node] = _size_or_node(operands.get(node, node))
        elif node.op.name in _ARITHMETIC and node.type.dtype == "int64" and not node.ndim:
            known[node] = _ARITHMETIC[node.op.name](*(known[arg] for arg in node.args))
        else:
            known[node] = _size_or_node(make(node.op, [as_size_node(known[arg]) for arg in node.args], node.attrs))
    return known[size]


def _size_or_node(node: Node) -> Size:
    """A node as it stands in sizes: those that are no size may be what one is computed from."""
    return as_size(node) if node.type.dtype == "int64" and not node.ndim else node


def guards_of(body: Body) -> tuple[Guard, ...]:
    """What must hold of sizes within a body, each after those that must hold for its own to be known."""
    found = (guard for node in nodes_of(body.results) for guard in node.op.guards(node))
    return tuple(guard for guard in found if guard.relation == "<" or not sizes.equal(guard.left, guard.right))


def split_guards(body: Body, varying: Iterable[Node]) -> tuple[list[Guard], list[tuple[Node, Guard]]]:
    """The guards of a body that are about no parameter of `varying`, which hold every time or never; and the others,
    each with the node that it is needed for. None where there are said to be none."""
    if body.checks is not None and not body.checks:
        return [], []
    nodes = nodes_of(body.results)
    changing = dependents(nodes, varying)
    invariant: list[Guard] = []
    others: list[tuple[Node, Guard]] = []
    for node in nodes:
        for guard in node.op.guards(node):
            if changing.isdisjoint(node_set(guard_sides(guard))):
                invariant.append(guard)
            else:
                others.append((node, guard))
    return invariant, others


def guard_sides(guard: Guard) -> list[Node]:
    """The sizes that a guard compares, as far as they are nodes."""
    return [side for side in (guard.left, guard.right) if isinstance(side, Node)]
