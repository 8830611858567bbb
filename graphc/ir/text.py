"""The printed form of a graph: display, snapshot and cache key in one. It reads back to the same graph.

In: a graph; or its text. Out: its text; or a graph of fresh leaves with the same text. The grammar, one item a line:

    inputs  leaf: type, …              the inputs, in order; `shared`, `free` (inputs that were forgotten) and `sizes`
    shared  leaf: type, …              (size leaves of no leaf of the graph) likewise, where there are any
    %0 = op(ref, …; attribute=literal, …)  # type      op@version where the op has one
    %1 = constant(dtype[size, …] [number, …])      or base64 '…' of its bytes, where it has more than 16 elements
    outputs ref, …

    ref  := %number | leaf | leaf.axis | number:dtype
    type := dtype[size, …]             a size being a number, or the ref of a scalar

A number is Python's literal for it; NaNs other than the usual one are written as their bits in hexadecimal. Lines come
in an order that depends on the outputs alone, and leaves are told apart by name: graphs that are equal but for the
identity of their leaves and the order in which they were built have the same text.
"""

from __future__ import annotations

import ast
import base64
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from graphc.dtypes import DTYPES, FLOATS
from graphc.errors import GraphcError, GraphTypeError, ParseError
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    OPS,
    SHARED,
    SIZE,
    Array,
    Node,
    Op,
    Size,
    Type,
    describe,
    literal,
    make,
    size_leaf,
)
from graphc.ir.walk import Graph, toposort

INLINE_ELEMENTS = 16
"""Constants with more elements than this are printed as base64."""


# --- printing ---------------------------------------------------------------------------------------------------------


def print_graph(graph: Graph) -> str:
    """The text of a graph. Raises GraphTypeError for an attribute that is no Python literal, CycleError for a cycle."""
    order = toposort((*graph.outputs, *graph.inputs), _needs, lambda node: node.op.name)
    leaves = _group_leaves(graph, order)
    refs = _name_leaves(leaves)
    lines: list[str] = []
    types: dict[Type, str] = {}
    for node in order:
        if node in refs:
            continue
        if node.op is CONSTANT and not node.type.shape:
            refs[node] = _number(node.attrs["value"].value)
            continue
        refs[node] = ref = f"%{len(lines)}"
        if node.op is CONSTANT:
            lines.append(f"{ref} = constant({_print_array(node.attrs['value'].value)})")
            continue
        kind = types.get(node.type)
        if kind is None:
            kind = types[node.type] = _describe_type(node.type, refs)
        args = ", ".join([refs[arg] for arg in node.args])
        attrs = _print_attributes(node) if node.attrs else ""
        lines.append(f"{ref} = {_print_op(node.op)}({args}{attrs})  # {kind}")
    heads = [
        f"{group} {', '.join(_print_leaf(leaf, refs) for leaf in members)}".rstrip()
        for group, members in leaves.items()
        if members or group == "inputs"
    ]
    outputs = ("outputs " + ", ".join(refs[output] for output in graph.outputs)).rstrip()
    return "\n".join([*heads, *lines, outputs, ""])


def graph_key_text(graph: Graph) -> str:
    """What the cache key of a graph is made of."""
    return print_graph(graph)


def _needs(node: Node) -> Sequence[Node]:
    """What must be printed before `node`: its arguments; of a leaf, the sizes of its type that are computed."""
    if node.args or node.op not in (INPUT, SHARED):
        return node.args
    return [size for size in node.type.shape if isinstance(size, Node) and size.op is not SIZE]


def _group_leaves(graph: Graph, order: Iterable[Node]) -> dict[str, list[Node]]:
    """The leaves by the line they are printed on."""
    inputs = dict.fromkeys(graph.inputs)
    groups: dict[str, list[Node]] = {"inputs": list(inputs), "shared": [], "free": [], "sizes": []}
    sizes = []
    for node in order:
        if node in inputs or node.op not in LEAVES:
            continue
        if node.op is SHARED:
            groups["shared"].append(node)
        elif node.op is INPUT:
            groups["free"].append(node)
        elif node.op is SIZE:
            sizes.append(node)
    owned = {size for group in groups.values() for leaf in group for size in leaf.type.shape}
    groups["sizes"] = [size for size in sizes if size not in owned]
    return groups


def _name_leaves(groups: dict[str, list[Node]]) -> dict[Node, str]:
    """A unique identifier for every leaf, and `leaf.axis` for the size leaves of their types."""
    refs: dict[Node, str] = {}
    used: set[str] = set()
    for group, members in groups.items():
        for position, leaf in enumerate(members):
            label = leaf.attrs["owner"] if leaf.op is SIZE else leaf.name
            name = _unique(_identifier(label) if label else f"{group.rstrip('s')}{position}", used)
            if leaf.op is SIZE:
                refs[leaf] = f"{name}.{leaf.attrs['axis']}"
                continue
            refs[leaf] = name
            for axis, size in enumerate(leaf.type.shape):
                if isinstance(size, Node) and size.op is SIZE:
                    refs.setdefault(size, f"{name}.{axis}")
    return refs


def _identifier(name: str) -> str:
    cleaned = re.sub(r"\W", "_", name)
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"


def _unique(name: str, used: set[str]) -> str:
    candidate, count = name, 1
    while candidate in used:
        candidate, count = f"{name}_{count}", count + 1
    used.add(candidate)
    return candidate


def _print_leaf(leaf: Node, refs: dict[Node, str]) -> str:
    return refs[leaf] if leaf.op is SIZE else f"{refs[leaf]}: {_print_type(leaf.type, refs)}"


def _print_type(kind: Type, refs: dict[Node, str]) -> str:
    """A type whose sizes can be read back."""
    return f"{kind.dtype}[{', '.join(str(size) if isinstance(size, int) else refs[size] for size in kind.shape)}]"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "floor_div": "//"}
_COMMUTATIVE = ("add", "mul", "minimum", "maximum")


def _describe_type(kind: Type, refs: dict[Node, str]) -> str:
    """A type for a reader's eyes: computed sizes are formulas of the leaves, as far as two levels show them."""
    return f"{kind.dtype}[{', '.join(_describe_size(size, refs, 2) for size in kind.shape)}]"


def _describe_size(size: Size, refs: dict[Node, str], depth: int) -> str:
    """Operands are in alphabetic order where order means nothing: which leaf is older must not show in the text."""
    if isinstance(size, int):
        return str(size)
    if size.op is CONSTANT and not size.type.shape:
        return str(size.attrs["value"].value)
    if size.op in LEAVES:
        return refs.get(size) or f"{size.attrs['owner'] or '?'}.{size.attrs['axis']}"
    if not depth:
        return "…"
    args = [_describe_size(arg, refs, depth - 1) for arg in size.args]
    if size.op.name in _COMMUTATIVE:
        args.sort()
    symbol = _INFIX.get(size.op.name)
    return f"({f' {symbol} '.join(args)})" if symbol else f"{size.op.name}({', '.join(args)})"


def _print_op(op: Op) -> str:
    return f"{op.name}@{op.version}" if op.version else op.name


def _print_attributes(node: Node) -> str:
    parts = [f"{name}={_print_literal(node, value)}" for name, value in sorted(node.attrs.items())]
    return f"; {', '.join(parts)}"


def _print_literal(node: Node, value: Any) -> str:
    """The Python literal of an attribute."""
    kind = type(value)
    if kind in (int, str, bool, type(None), bytes):
        return repr(value)
    if kind is tuple:
        items = [_print_literal(node, item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if kind is float and not math.isnan(value):
        return repr(value).replace("inf", "1e999")  # literal_eval knows no infinity, but a float too large is one
    raise GraphTypeError(f"an attribute of {describe(node)} cannot be printed: {value!r} is not a Python literal")


def _print_array(value: Array) -> str:
    head = f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
    if value.size > INLINE_ELEMENTS:
        return f"{head} base64 '{base64.b64encode(value.tobytes()).decode()}'"
    return f"{head} [{', '.join(_digits(item) for item in value.ravel())}]"


def _number(value: Array) -> str:
    return f"{_digits(value[()])}:{value.dtype.name}"


def _digits(item: Any) -> str:
    """The literal of a NumPy scalar: the shortest that reads back to the same bits."""
    dtype = item.dtype.name
    if dtype not in FLOATS:
        return str(item)
    text = str(item)
    return text if _read_digits(text, dtype).tobytes() == item.tobytes() else f"0x{item.view(_bits(dtype)):x}"


def _bits(dtype: str) -> str:
    """The unsigned dtype as wide as a float dtype."""
    return "uint32" if dtype == "float32" else "uint64"


def _read_digits(text: str, dtype: str) -> Any:
    if dtype == "bool":
        return np.bool_({"True": True, "False": False}[text])
    if dtype not in FLOATS:
        return np.dtype(dtype).type(int(text))
    if text.startswith("0x"):
        return np.dtype(_bits(dtype)).type(int(text, 16)).view(dtype)
    return np.dtype(dtype).type(float(text))


# --- reading ----------------------------------------------------------------------------------------------------------

_LEAF = re.compile(r"(\w+): (\w+)\[([^\]]*)\](?:, |$)")
_STATEMENT = re.compile(r"(%\d+) = ([^\s(]+)\((.*)\)(?:  # .*)?")
_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\] (?:\[(.*)\]|base64 '(.*)')")
_HEADS = ("inputs", "shared", "free", "sizes")


@dataclass(slots=True)
class _Reader:
    """What has been read so far. Leaves wait as text until they are asked for, since their sizes may be computed."""

    nodes: dict[str, Node] = field(default_factory=dict)
    waiting: dict[str, tuple[Op, str, str]] = field(default_factory=dict)
    making: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    outputs: tuple[Node, ...] | None = None


def parse_graph(text: str) -> Graph:
    """The graph of a text, with fresh leaves. Ops are looked up in `OPS`. Raises ParseError, naming the line."""
    reader = _Reader()
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            _read_line(reader, line)
        except (GraphcError, SyntaxError, ValueError, KeyError, OverflowError) as error:
            raise ParseError(f"line {number}: {line[:200]!r} cannot be read: {error}") from error
    if reader.outputs is None:
        raise ParseError("the text has no line of outputs")
    return Graph(tuple(reader.nodes[name] for name in reader.inputs), reader.outputs)


def _read_line(reader: _Reader, line: str) -> None:
    head, _, rest = line.partition(" ")
    if reader.outputs is not None:
        _fail("it follows the outputs")
    if head == "outputs":
        for name in reader.inputs:
            _resolve(reader, name)
        reader.outputs = tuple(_resolve(reader, ref) for ref in _split(rest))
    elif head == "sizes":
        for ref in _split(rest):
            _resolve_size(reader, ref, orphan=True)
    elif head in _HEADS:
        _read_leaves(reader, head, rest)
    else:
        _read_statement(reader, line)


def _fail(reason: str) -> NoReturn:
    raise ParseError(reason)


def _split(text: str) -> list[str]:
    return text.split(", ") if text.strip() else []


def _read_leaves(reader: _Reader, head: str, text: str) -> None:
    position = 0
    while position < len(text):
        match = _LEAF.match(text, position)
        if match is None:
            _fail(f"{text[position:]!r} is not a list of leaves with types")
        name, dtype, shape = match.groups()
        if name in reader.waiting:
            _fail(f"there are two leaves {name}")
        if dtype not in DTYPES:
            _fail(f"{dtype} is not a dtype")
        reader.waiting[name] = (SHARED if head == "shared" else INPUT, dtype, shape)
        if head == "inputs":
            reader.inputs.append(name)
        position = match.end()


def _read_statement(reader: _Reader, line: str) -> None:
    match = _STATEMENT.fullmatch(line)
    if match is None:
        _fail("it is neither `%number = op(…)` nor a line of leaves or outputs")
    ref, name, inside = match.groups()
    if ref in reader.nodes:
        _fail(f"{ref} is defined twice")
    if name == "constant":
        reader.nodes[ref] = _read_array(inside)
        return
    op = OPS.get(name.partition("@")[0])
    if op is None or op in LEAVES:
        _fail(f"there is no op {name!r}")
    if _print_op(op) != name:
        _fail(f"the op is {_print_op(op)} by now")
    args, _, attrs = inside.partition("; ")
    values = {}
    if attrs:
        call = ast.parse(f"f({attrs})", mode="eval").body
        assert isinstance(call, ast.Call)
        values = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    reader.nodes[ref] = make(op, [_resolve(reader, arg) for arg in _split(args)], values)


def _read_array(text: str) -> Node:
    match = _ARRAY.fullmatch(text)
    if match is None:
        _fail("it is not `dtype[size, …] [number, …]`")
    dtype, shape, items, encoded = match.groups()
    if dtype not in DTYPES:
        _fail(f"{dtype} is not a dtype")
    sizes = tuple(map(int, _split(shape)))
    if encoded is not None:
        return literal(np.frombuffer(base64.b64decode(encoded, validate=True), dtype).reshape(sizes))
    # an array made from the bytes keeps the payload of NaNs
    data = b"".join(_read_digits(item, dtype).tobytes() for item in _split(items))
    return literal(np.frombuffer(data, dtype).reshape(sizes))


def _resolve(reader: _Reader, ref: str) -> Node:
    """The node that a ref stands for."""
    if ref in reader.nodes:
        return reader.nodes[ref]
    if ref in reader.waiting:
        return _make_leaf(reader, ref)
    digits, colon, dtype = ref.partition(":")
    if colon:
        if dtype not in DTYPES:
            _fail(f"{dtype} is not a dtype")
        return literal(np.frombuffer(_read_digits(digits, dtype).tobytes(), dtype).reshape(()))
    if "." in ref:
        return _resolve_size(reader, ref)
    _fail(f"{ref!r} is not defined above")


def _resolve_size(reader: _Reader, ref: str, orphan: bool = False) -> Node:
    """The size leaf `leaf.axis`, made at its first mention."""
    if ref not in reader.nodes:
        owner, _, axis = ref.partition(".")
        if not axis.isdigit() or not (orphan or owner in reader.waiting):
            _fail(f"{ref!r} is not the size of a leaf")
        reader.nodes[ref] = size_leaf(owner, int(axis))
    return reader.nodes[ref]


def _make_leaf(reader: _Reader, name: str) -> Node:
    if name in reader.making:
        _fail(f"the type of {name} depends on {name}")
    reader.making.add(name)
    op, dtype, shape = reader.waiting[name]
    kind = Type(dtype, tuple(int(size) if size.isdigit() else _resolve(reader, size) for size in _split(shape)))
    reader.nodes[name] = node = Node(op, (), {"type": kind}, kind, name)
    return node
