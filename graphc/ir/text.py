"""The printed form of a graph, which reads back to the same graph (`parse.py`). The text of the cache key is the same,
with digests in place of large arrays.

In: a graph. Out: its text. `(x * 2).sum()` is printed as:

    inputs x: float64[x.0]
    %0 = dimshuffle(2.0:float64; order=('x',))  # float64[1]
    %1 = broadcast_to(%0, x.0)  # float64[x.0]
    %2 = mul(x, %1)  # float64[x.0]
    %3 = sum(%2; axes=(0,))  # float64[]
    outputs %3

The grammar, one item a line:

    inputs  leaf: type, …              the inputs, in order; `shared`, `free` (variables that are not inputs) and
    shared  leaf: type, …              `sizes` (size leaves without a leaf in the graph) likewise, if there are any
    %0 = op(ref, …; attribute=literal, …)  # type      op@version where the op has one
    %1 = constant(dtype[size, …] [number, …])      or hex '…' of its bytes, where it has more than 16 elements
      body:                            after a statement, for each attribute that is a body: its name,
        inputs …                       then the graph within it, whose inputs are its parameters
    outputs ref, …

    ref  := %number | leaf | leaf.axis | number:dtype
    type := dtype[size, …]             a size being a number, or the ref of a scalar; size[]: an int64 that is a size

A number is its Python literal; a NaN other than the default one is written as its bits in hexadecimal. The order of
lines depends on the outputs alone, and leaves are distinguished by name. So graphs that differ only in the identity of
their leaves and the order of building have the same text. In a cache key, a constant above 64 kB is replaced by the
digest of its bytes (`types.py`), which does not read back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import FLOATS
from graphc.errors import GraphTypeError
from graphc.ir.body import bodies_of
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    PARAM,
    SHARED,
    SIZE,
    Array,
    Body,
    Node,
    Op,
    Size,
    TupleType,
    Type,
    describe,
    describe_size,
    plain,
    size_owner,
)
from graphc.ir.types import FrozenArray
from graphc.ir.walk import Graph, toposort

NATURAL = "size"
"""Printed in place of the dtype of a parameter that is a size."""
INLINE_ELEMENTS = 16
"""Constants with more elements are printed as bytes."""


def print_graph(graph: Graph | Node | Sequence[Node]) -> str:
    """The text of a graph, or of the graph that computes some variables. Raises GraphTypeError for an attribute that is
    not a Python literal, CycleError for a cycle."""
    if not isinstance(graph, Graph):
        graph = graph_of((graph,) if isinstance(graph, Node) else tuple(graph))
    return _print(graph, _print_array)


def _print(graph: Graph, contents: Callable[[FrozenArray], str]) -> str:
    """The text of a graph; `contents` prints a constant array."""
    order = _in_order(graph)
    leaves = _group_leaves(graph, order)
    refs = _name_leaves(leaves)
    lines: list[str] = []
    types: dict[tuple[Any, ...], str] = {}
    count = 0
    for node in order:
        if node in refs:
            continue
        if node.op is CONSTANT and not node.type.shape:
            value = node.attrs["value"].value
            refs[node] = f"{_digits(value[()])}:{value.dtype.name}"
            continue
        refs[node] = ref = f"%{count}"
        count += 1
        if node.op is CONSTANT:
            lines.append(f"{ref} = constant({contents(node.attrs['value'])})")
            continue
        whole = node.type
        exact = (whole.dtype, whole.shape) if not node.is_tuple else (node,)  # equal types may have other sizes
        type_ = types.get(exact)
        if type_ is None:
            type_ = types[exact] = _describe_type(node.type, refs)
        args = ", ".join([refs[arg] for arg in node.args])
        attrs = _print_attributes(node) if node.attrs else ""
        lines.append(f"{ref} = {print_op(node.op)}({args}{attrs})  # {type_}")
        lines += _body_lines(node, contents)
    heads = [
        f"{group} {', '.join(_print_leaf(leaf, refs) for leaf in members)}".rstrip()
        for group, members in leaves.items()
        if members or group == "inputs"
    ]
    outputs = ("outputs " + ", ".join(refs[output] for output in graph.outputs)).rstrip()
    return "\n".join([*heads, *lines, outputs, ""])


def _in_order(graph: Graph) -> list[Node]:
    return toposort((*graph.outputs, *graph.inputs), _needs, lambda node: node.op.name)


def all_in_order(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of its bodies, in an order that another graph of the same text has too."""
    for node in _in_order(graph):
        yield node
        for body in bodies_of(node).values():
            yield from all_in_order(Graph(body.params, body.results))


def graph_of(outputs: tuple[Node, ...]) -> Graph:
    """The graph of some variables; its inputs are those they depend on, in the order of their making."""
    for node in outputs:
        if not isinstance(node, Node):
            raise GraphTypeError(f"print_graph takes a graph or variables, not {node!r}")
    nodes = tuple(map(plain, outputs))
    needed = toposort(nodes, _needs, lambda node: node.op.name)
    owners = (size_owner(node) if node.op is SIZE else node for node in needed)
    inputs = dict.fromkeys(node for node in owners if node is not None and node.op is INPUT)
    return Graph(tuple(sorted(inputs, key=lambda node: node.serial)), nodes)


def graph_key_text(graph: Graph) -> str:
    """The text that a cache key is computed from: the printed form, with digests in place of large constants."""
    return _print(graph, _print_digest)


def _body_lines(node: Node, contents: Callable[[FrozenArray], str]) -> Iterator[str]:
    for name, body in bodies_of(node).items():
        yield f"  {name}:"
        yield from (f"    {line}" for line in _print(Graph(body.params, body.results), contents).splitlines())


def _needs(node: Node) -> Sequence[Node]:
    """The nodes to print before `node`: its arguments; for a leaf, the computed sizes of its type."""
    if node.args or node.op not in (INPUT, SHARED, PARAM):
        return node.args
    return [size for size in node.type.shape if isinstance(size, Node) and size.op is not SIZE]


def _group_leaves(graph: Graph, order: Iterable[Node]) -> dict[str, list[Node]]:
    """The leaves, grouped by the line they are printed on."""
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
    """A unique identifier for each leaf, and `leaf.axis` for the size leaves of its type."""
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
    cleaned = "".join([mark if mark.isalnum() else "_" for mark in name])
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"


def _unique(name: str, used: set[str]) -> str:
    candidate, count = name, 1
    while candidate in used:
        candidate, count = f"{name}_{count}", count + 1
    used.add(candidate)
    return candidate


def _print_leaf(leaf: Node, refs: dict[Node, str]) -> str:
    if leaf.op is PARAM and leaf.attrs["natural"]:
        return f"{refs[leaf]}: {NATURAL}[]"
    return refs[leaf] if leaf.op is SIZE else f"{refs[leaf]}: {_print_type(leaf.type, refs)}"


def _print_type(type_: Type, refs: dict[Node, str]) -> str:
    """A type that `parse.py` can read back."""
    return f"{type_.dtype}[{', '.join(str(size) if isinstance(size, int) else refs[size] for size in type_.shape)}]"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "floor_div": "//"}
_COMMUTATIVE = ("add", "mul", "minimum", "maximum")


def _describe_type(type_: Type, refs: dict[Node, str]) -> str:
    """A type for the reader: computed sizes are shown as formulas of leaves, two levels deep."""
    if isinstance(type_, TupleType):
        return ", ".join(_describe_type(part, refs) for part in type_.parts) or "nothing"
    return f"{type_.dtype}[{', '.join(_describe_size(size, refs, 2) for size in type_.shape)}]"


def _describe_size(size: Size, refs: dict[Node, str], depth: int) -> str:
    """A size as a formula, operands of commutative ops sorted by text: it does not depend on the age of leaves."""
    if isinstance(size, int):
        return str(size)
    if size.op is CONSTANT and not size.type.shape:
        return str(size.attrs["value"].value)
    if size.op in LEAVES:
        return refs.get(size) or describe_size(size)
    if not depth:
        return "…"
    args = [_describe_size(arg, refs, depth - 1) for arg in size.args]
    if size.op.name in _COMMUTATIVE:
        args.sort()
    symbol = _INFIX.get(size.op.name)
    return f"({f' {symbol} '.join(args)})" if symbol else f"{size.op.name}({', '.join(args)})"


def print_op(op: Op) -> str:
    """The name of an op in a text."""
    return f"{op.name}@{op.version}" if op.version else op.name


def _print_attributes(node: Node) -> str:
    plain = ((name, value) for name, value in sorted(node.attrs.items()) if not isinstance(value, Body))
    parts = [f"{name}={_print_literal(node, value)}" for name, value in plain]
    return f"; {', '.join(parts)}" if parts else ""


def _print_literal(node: Node, value: Any) -> str:
    """An attribute's value as a Python literal."""
    type_ = type(value)
    if type_ in (int, str, bool, type(None), bytes):
        return repr(value)
    if type_ is tuple:
        items = [_print_literal(node, item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if type_ is float and not math.isnan(value):
        return repr(value).replace("inf", "1e999")  # literal_eval knows no infinity, but a float too large is one
    raise GraphTypeError(f"an attribute of {describe(node)} cannot be printed: {value!r} is not a Python literal")


def _print_digest(array: FrozenArray) -> str:
    """A constant as it stands in a cache key: a large one by its digest."""
    if array.digest is None:
        return _print_array(array)
    return f"{_array_head(array.value)} digest '{array.digest}'"


def _array_head(value: Array) -> str:
    return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"


def _print_array(array: FrozenArray) -> str:
    value, head = array.value, _array_head(array.value)
    if value.size > INLINE_ELEMENTS:
        return f"{head} hex '{value.tobytes().hex()}'"
    return f"{head} [{', '.join(_digits(item) for item in value.ravel())}]"


def _digits(item: Any) -> str:
    """The shortest literal of a NumPy scalar that reads back to the same bits."""
    dtype = item.dtype.name
    if dtype not in FLOATS:
        return str(item)
    text = str(item)
    return text if read_digits(text, dtype).tobytes() == item.tobytes() else f"0x{item.view(_bits(dtype)):x}"


def _bits(dtype: str) -> str:
    """The unsigned dtype as wide as a float dtype."""
    return "uint32" if dtype == "float32" else "uint64"


def read_digits(text: str, dtype: str) -> Any:
    """The NumPy scalar of a literal."""
    if dtype == "bool":
        return np.bool_({"True": True, "False": False}[text])
    if dtype not in FLOATS:
        return np.dtype(dtype).type(int(text))
    if text.startswith("0x"):
        return np.dtype(_bits(dtype)).type(int(text, 16)).view(dtype)
    return np.dtype(dtype).type(float(text))
