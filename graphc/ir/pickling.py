"""Pickles of nodes and bodies: leaves and a flat list of statements, with ops by name and no code.

In: nodes. Out: `Packed`, from which `unpack` makes the nodes anew, or finds them, since equal nodes are one object.
There is no recursion: a chain of any length can be pickled. A user's op is looked up by name, so the module that
defines it must be imported first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.body import make_body, param
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    OPS,
    PARAM,
    SHARED,
    SIZE,
    Array,
    Body,
    Node,
    Op,
    Size,
    literal,
    make,
    plain,
    size_leaf,
    size_owner,
    variable,
)
from graphc.ir.walk import nodes_of
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record


@record()
class Packed:
    """A graph as data. leaves: nodes without arguments. statements: for each other node, in topological order, (op,
    positions of its arguments, attributes, name, user line, user attributes). wanted: the positions of the requested
    nodes."""

    leaves: tuple[Node, ...]
    statements: tuple[tuple[Any, ...], ...]
    wanted: tuple[int, ...]


def pack(nodes: Sequence[Node]) -> Packed:
    """The graph of some nodes, as values that can be pickled."""
    nodes = list(map(plain, nodes))
    order = nodes_of(nodes)
    leaves = [node for node in order if not node.args]
    computed = [node for node in order if node.args]
    position = {node: number for number, node in enumerate((*leaves, *computed))}
    statements = [
        (
            node.op,
            tuple(position[arg] for arg in node.args),
            dict(node.attrs),
            node.name,
            node.where,
            node.attributes() or None,
        )
        for node in computed
    ]
    return Packed(tuple(leaves), tuple(statements), tuple(position[node] for node in nodes))


def unpack(packed: Packed) -> list[Node]:
    """The nodes that were packed."""
    known = list(packed.leaves)
    for op, args, attrs, name, where, attributes in packed.statements:
        node = make(op, [known[arg] for arg in args], attrs)
        if node.name is None and name is not None:
            node.name, node.where = name, where
        if attributes:
            node.__dict__.update(attributes)
        known.append(node)
    return [known[number] for number in packed.wanted]


def reduced(value: Node | Op | Body) -> tuple[Any, ...]:
    """The `__reduce__` value of a node, an op or a body: the function that rebuilds it, and its arguments."""
    if isinstance(value, Op):
        return reduce_op(value)
    return reduce_body(value) if isinstance(value, Body) else reduce_node(value)


def reduce_node(node: Node) -> tuple[Any, ...]:
    """`Node.__reduce_ex__`: the function that rebuilds the node, and its arguments."""
    node = plain(node)
    if node.args:
        return one_of, (pack([node]),)
    if node.op is CONSTANT:
        return read_constant, (node.attrs["value"].value, node.name), node.attributes() or None
    if node.op is SIZE:
        owner = size_owner(node)
        return read_size, (owner, node.attrs["owner"], axis_of(owner, node) if owner else node.attrs["axis"])
    if node.op is PARAM:
        return param, (node.attrs["index"], node.type, node.name, node.attrs["natural"], node.attrs["where"])
    if node.op is INPUT:
        return read_input, (node.type.dtype, given_sizes(node), node.name, node.where), node.attributes() or None
    if node.op is not SHARED and OPS.get(node.op.name) is node.op:
        return read_leaf, (node.op, dict(node.attrs), node.name)
    raise GraphTypeError(f"{node!r} cannot be pickled")


def given_sizes(leaf: Node) -> tuple[Size | None, ...]:
    """The sizes that a leaf was made with; None for its own size leaves."""
    return tuple(None if isinstance(s, Node) and s.op is SIZE and size_owner(s) is leaf else s for s in leaf.type.shape)


def axis_of(owner: Node, size: Node) -> int:
    return next(axis for axis, own in enumerate(owner.type.shape) if own is size)


def one_of(packed: Packed) -> Node:
    (node,) = unpack(packed)
    return node


def read_leaf(op: Op, attrs: dict[str, Any], name: str | None) -> Node:
    node = make(op, (), attrs)
    node.name = node.name or name
    return node


def read_constant(value: Array, name: str | None) -> Node:
    node = literal(value)
    node.name = node.name or name
    return node


def read_input(dtype: str, sizes: tuple[Size | None, ...], name: str | None, where: Any) -> Node:
    node = variable(dtype, sizes, name)
    node.where = where
    return node


def read_size(owner: Node | None, label: str | None, axis: int) -> Node:
    if owner is None:
        return size_leaf(label, axis)
    size = owner.type.shape[axis]
    assert isinstance(size, Node)
    return size


def reduce_body(body: Body) -> tuple[Any, ...]:
    """`Body.__reduce_ex__`. Only bodies as written are pickled; they have no `checks`."""
    return read_body, (pack([*body.params, *body.results]), len(body.params))


def read_body(packed: Packed, count: int) -> Body:
    nodes = unpack(packed)
    return make_body(nodes[:count], nodes[count:])


def reduce_op(op: Op) -> tuple[Any, ...]:
    """`Op.__reduce__`: by name; an op of a user's class or gradient rule by the call in its `eval.made`."""
    made = getattr(op.eval, "made", None)
    return (read_op, (op.name,)) if made is None else (read_made, (made[0], tuple(map(by_place, made[1]))))


def read_made(make: Callable[..., Op], args: Sequence[Any]) -> Op:
    return make(*map(from_place, args))


@record(eq=False)
class Inner:
    """A nested function, by where it is defined: the outermost function, the qualified name, the position among
    functions of that name, and its defaults and closure cells."""

    outer: Any
    path: str
    number: int
    defaults: tuple[Any, ...] | None
    cells: tuple[Any, ...]


def by_place(value: Any) -> Any:
    """A nested function as `Inner`; anything else as it is. Raises GraphTypeError for a function whose code is not
    found in its module: it was made by `exec`, or the module has changed."""
    if not isinstance(value, FunctionType) or "<" not in value.__qualname__:
        return value
    path = value.__qualname__
    outer: Any = sys.modules.get(value.__module__)
    for name in path.partition(".<locals>")[0].split("."):
        outer = getattr(outer, name, None)
    alike = codes_within(outer, path)
    if value.__code__ not in alike:
        raise GraphTypeError(
            f"function {path} of module {value.__module__} cannot be pickled: define it in a module, where its name "
            "finds it"
        )
    cells = tuple(by_place(cell.cell_contents) for cell in value.__closure__ or ())
    return Inner(outer, path, alike.index(value.__code__), value.__defaults__, cells)


def from_place(value: Any) -> Any:
    """The function of an `Inner`; anything else as it is."""
    if not isinstance(value, Inner):
        return value
    code = codes_within(value.outer, value.path)[value.number]
    cells = tuple(CellType(from_place(each)) for each in value.cells)
    function = FunctionType(code, unwrapped(value.outer).__globals__, code.co_name, value.defaults, cells)
    function.__qualname__ = value.path
    return function


def codes_within(outer: Any, path: str) -> list[CodeType]:
    """The code objects nested in a function that have this qualified name."""
    code = getattr(unwrapped(outer), "__code__", None)
    codes = [] if code is None else [code]
    matching: list[CodeType] = []
    while codes:
        inner = [const for code in codes for const in code.co_consts if isinstance(const, CodeType)]
        matching += [code for code in inner if code.co_qualname == path]
        codes = inner
    return matching


def unwrapped(function: Any) -> Any:
    """The function beneath decorators that set `__wrapped__`."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def read_op(name: str) -> Op:
    """The op of a name. Raises GraphTypeError if this process has none."""
    op: Op | None = OPS.get(name)
    if op is None:
        raise GraphTypeError(f"there is no op {name!r} in this process: import the module that defines it first")
    return op


HOOKS.reduced = reduced
