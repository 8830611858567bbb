"""Bodies: graphs inside nodes, as loops and branches have them. Also nodes with several results.

In: variables, and results computed from them. Out: a `Body`, which names nothing outside itself, and the operands to
apply it to (closure conversion):

    close([v], [v * a + exp(a)])
    gives a body                                 and its other operands
      inputs v: float64[], a: float64[], input2: float64[]      (a, exp(a))
      %0 = mul(v, a)
      %1 = add(%0, input2)
      outputs %1

`exp(a)` does not depend on `v`: it stays outside and is computed once. Since a body has no free variables, walking,
printing and comparing graphs need no scopes. Sizes are parameters too, so one body serves all sizes. Bodies are
interned: equal bodies are one object.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.facts import BROADCASTS, is_place_near
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
from graphc.ir.sizes import as_size, is_natural
from graphc.ir.walk import as_size_node, dependents, node_set, nodes_of, nodes_since, reachable, substitute, type_sizes
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
    """Result number `index` of a node that has several."""
    return make(ITEM, (node,), {"index": index})


def items_of(node: Node) -> list[Node]:
    """All results of a node that has several."""
    assert isinstance(node.type, TupleType)
    return [item(node, index) for index in range(len(node.type.parts))]


def outputs_of(node: Node) -> list[Node]:
    """The results of a node: the node itself, or one `item` for each result where it has several."""
    return items_of(node) if node.is_tuple else [node]


_bodies: WeakValueDictionary[Hashable, Body] = WeakValueDictionary()


def make_body(params: Sequence[Node], results: Sequence[Node], checks: tuple[Guard, ...] | None = None) -> Body:
    """The interned body with these parameters, in the order of their `index`, and these results."""
    compared = None if checks is None else tuple((id(c.left), c.relation, id(c.right)) for c in checks)
    key = (tuple(map(id, params)), tuple(map(id, results)), compared)
    body = _bodies.get(key)
    if body is None:
        body = _bodies[key] = Body(tuple(params), tuple(results), checks)
    return body


def param(index: int, type_: Type, name: str | None = None, natural: bool = False, where: Where | None = None) -> Node:
    """Parameter number `index` of a body. Sizes in `type_` are numbers or other parameters. natural: the parameter is a
    size, hence not negative. where: the user line of the operand; it is part of the identity, so messages about a body
    name the lines of this program and not those of an equal body from elsewhere."""
    node = make(PARAM, (), {"index": index, "type": type_, "name": name, "natural": natural, "where": where})
    node.name, node.where = name, where or node.where
    return node


def bodies_of(node: Node) -> dict[str, Body]:
    """The attributes of a node that are bodies, sorted by name."""
    return {name: value for name, value in sorted(node.attrs.items()) if isinstance(value, Body)}


def nodes_within(nodes: Iterable[Node]) -> list[Node]:
    """All nodes of the bodies of `nodes`, nested bodies included."""
    within: list[Node] = []
    pending = [body for node in nodes for body in bodies_of(node).values()]
    while pending:
        inner = nodes_of(pending.pop().results)
        within += inner
        pending += [body for node in inner for body in bodies_of(node).values()]
    return within


# --- closure ----------------------------------------------------------------------------------------------------------


def close(
    variables: Sequence[Node], results: Sequence[Node], since: int = 0, kept: Sequence[Node] = ()
) -> tuple[Body, tuple[Node, ...]]:
    """Closure conversion: the body whose first parameters are `variables`, and the operands of its other parameters.
    Repeating ops move into the body if their serial number is at least `since`; older nodes stay outside because the
    program may ask for a derivative with respect to them. A repeated literal, as `x + 0.5` makes one, always moves: the
    same node may be alive from elsewhere, and the body must not depend on that. `kept` stays outside all the same."""
    return close_over(variables, _captured(variables, results, since, kept), results)


def close_over(
    variables: Sequence[Node], captured: Sequence[Node], results: Sequence[Node]
) -> tuple[Body, tuple[Node, ...]]:
    """`close`, with the nodes that the results capture from outside already known."""
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
    """The user line of a node, without the wording of a check."""
    return replace(node.where, words=None) if node.where and node.where.words else node.where


def _captured(variables: Sequence[Node], results: Sequence[Node], since: int, kept: Sequence[Node]) -> list[Node]:
    """The outermost nodes that `results` use without `variables`; no scalar constants, no indices of neighbours."""
    first = min((node.serial for node in variables), default=0)
    varying = dependents(nodes_since(results, first), variables)
    captured: dict[Node, None] = {}
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
        repeats = node.op.name in BROADCASTS and node.ndim and (node.serial >= since or _is_repeated_literal(node))
        if node in varying or (repeats and node not in kept) or _is_offset(node) or is_place_near(node):
            pending += reversed(node.args)
        else:
            captured[node] = None
    return list(captured)


def _is_repeated_literal(node: Node) -> bool:
    """True if a node is a scalar constant, repeated along axes of known sizes."""
    while node.op.name in BROADCASTS and not any(isinstance(size, Node) for size in node.type.shape):
        node = node.args[0]
    return node.op is CONSTANT and not node.ndim


def needed_of(at_hand: Container[Node], results: Sequence[Node]) -> list[Node]:
    """The nodes that `results` use first: those in `at_hand`, and leaves. Scalar constants are not listed."""
    order = reachable(results, lambda node: () if node in at_hand else node.args)
    return [node for node in order if (node in at_hand or not node.args) and (node.ndim or node.op is not CONSTANT)]


def _is_offset(node: Node) -> bool:
    """True for an int64 scalar plus a constant, rebuilt in the body: rules must see that `x[-1]` is the last row."""
    return node.op.name == "add" and not node.ndim and node.type.dtype == "int64" and node.args[1].op is CONSTANT


def opened(body: Body, operands: Sequence[Node]) -> list[Node]:
    """The results of a body, with `operands` in place of its parameters."""
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
    """A size of a body, rewritten over the operands of its parameters and folded."""
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
    """`as_size` of an int64 scalar; any other node as it is, since a size may be computed from it."""
    return as_size(node) if node.type.dtype == "int64" and not node.ndim else node


def guards_of(body: Body) -> tuple[Guard, ...]:
    """The guards of the nodes in a body, in topological order, without those that hold statically."""
    guards = (guard for node in nodes_of(body.results) for guard in node.op.guards(node))
    return tuple(guard for guard in guards if guard.relation == "<" or not sizes.equal(guard.left, guard.right))


def split_guards(body: Body, varying: Iterable[Node]) -> tuple[list[Guard], list[tuple[Node, Guard]]]:
    """The guards of a body in two lists: loop-invariant ones, which no parameter of `varying` affects; and the others,
    each with its node. Both are empty if the body's `checks` are known to be none."""
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
    """The sides of a guard that are nodes, not numbers."""
    return [side for side in (guard.left, guard.right) if isinstance(side, Node)]
