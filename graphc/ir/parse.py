"""Reading the printed form of a graph.

In: a text as `text.py` prints it, which has the grammar. Out: a graph of fresh leaves with the same text.

    inputs x: float64[x.0]
    %0 = exp(x)  # float64[x.0]                 Graph((x,), (exp(x),))
    outputs %0
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import dedent
from typing import Any, NoReturn

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphcError, ParseError
from graphc.ir.body import make_body, param
from graphc.ir.node import CONSTANT, INPUT, LEAVES, OPS, SHARED, Body, Node, Op, Type, literal, make, size_leaf
from graphc.ir.text import NATURAL, print_op, read_digits
from graphc.ir.types import FrozenArray
from graphc.ir.walk import Graph
from graphc.startup.hooks import HOOKS

_LEAF = re.compile(r"(\w+): (\w+)\[([^\]]*)\](?:, |$)")
_STATEMENT = re.compile(r"(%\d+) = ([^\s(]+)\((.*)\)(?:  # .*)?")
_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\] (?:\[(.*)\]|hex '(.*)'|digest '(.*)')")
_HEADS = ("inputs", "shared", "free", "sizes")


class _Reader:
    """The state of the reader. Leaves wait as text until they are used, since their sizes may be computed."""

    def __init__(self, constants: Mapping[str, FrozenArray], in_body: bool, given: Sequence[Node] = ()) -> None:
        self.constants, self.in_body, self.given = constants, in_body, given
        self.nodes: dict[str, Node] = {}
        self.waiting: dict[str, tuple[Op, str, str]] = {}
        self.making: set[str] = set()
        self.inputs: list[str] = []
        self.outputs: tuple[Node, ...] | None = None


def parse_graph(text: str, constants: Mapping[str, FrozenArray] | None = None, inputs: Sequence[Node] = ()) -> Graph:
    """The graph of a printed text, with fresh leaves. Ops are looked up in `OPS`. constants: the large constants of the
    text of a key, by their digests. inputs: the inputs, where they are made already: they have the types of the text.
    Raises ParseError, which names the line."""
    lines = [(n, line) for n, line in enumerate(dedent(text).splitlines(), 1) if line.strip()]
    reader = _read(lines, constants or {}, given=inputs)
    assert reader.outputs is not None
    return Graph(tuple(reader.nodes[name] for name in reader.inputs), reader.outputs)


def _read(
    lines: Sequence[tuple[int, str]],
    constants: Mapping[str, FrozenArray],
    in_body: bool = False,
    given: Sequence[Node] = (),
) -> _Reader:
    """Read numbered lines, in which the lines of bodies are indented."""
    reader = _Reader(constants, in_body, given)
    position = 0
    while position < len(lines):
        number, line = lines[position]
        end = position + 1
        while end < len(lines) and lines[end][1].startswith(" "):
            end += 1
        try:
            _read_line(reader, line.strip(), _read_bodies(lines[position + 1 : end], constants))
        except ParseError as error:
            raise error if str(error).startswith("line ") else _unreadable(number, line, error) from error
        except (GraphcError, SyntaxError, ValueError, KeyError, OverflowError) as error:
            raise _unreadable(number, line, error) from error
        position = end
    if reader.outputs is None:
        raise ParseError("the text has no line of outputs")
    return reader


def _unreadable(number: int, line: str, error: Exception) -> ParseError:
    return ParseError(f"line {number}: {line[:200]!r} cannot be read: {error}")


def _read_bodies(lines: Sequence[tuple[int, str]], constants: Mapping[str, FrozenArray]) -> dict[str, Body]:
    """The bodies in indented lines, by the names of their attributes."""
    bodies: dict[str, Body] = {}
    if lines and lines[0][1].startswith("    "):
        _fail(f"{lines[0][1].strip()!r} is in no body")
    starts = [place for place, (_, line) in enumerate(lines) if not line.startswith("    ")]
    for start, end in pairwise([*starts, len(lines)]):
        name = lines[start][1].strip()
        if not name.endswith(":"):
            _fail(f"{name!r} is not the name of a body")
        inner = _read([(number, line[4:]) for number, line in lines[start + 1 : end]], constants, in_body=True)
        assert inner.outputs is not None
        bodies[name[:-1]] = make_body([inner.nodes[param] for param in inner.inputs], inner.outputs)
    return bodies


def _read_line(reader: _Reader, line: str, bodies: Mapping[str, Body]) -> None:
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
        _read_statement(reader, line, bodies)
        return
    if bodies:
        _fail("it has no bodies")


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
        if dtype not in DTYPES and not (dtype == NATURAL and reader.in_body):
            _fail(f"{dtype} is not a dtype")
        reader.waiting[name] = (SHARED if head == "shared" else INPUT, dtype, shape)
        if head == "inputs":
            if reader.given:
                leaf = reader.nodes[name] = reader.given[len(reader.inputs)]
                sizes = enumerate(leaf.type.shape)
                reader.nodes.update({f"{name}.{axis}": size for axis, size in sizes if isinstance(size, Node)})
            reader.inputs.append(name)
        position = match.end()


def _read_statement(reader: _Reader, line: str, bodies: Mapping[str, Body]) -> None:
    match = _STATEMENT.fullmatch(line)
    if match is None:
        _fail("it is neither `%number = op(…)` nor a line of leaves or outputs")
    ref, name, inside = match.groups()
    if ref in reader.nodes:
        _fail(f"{ref} is defined twice")
    if name == "constant":
        reader.nodes[ref] = _read_array(inside, reader.constants)
        return
    known = name.partition("@")[0]
    op = OPS.get(known) or HOOKS.late_op(known)
    if op is None or op in LEAVES:
        _fail(f"there is no op {name!r}")
    if print_op(op) != name:
        _fail(f"the op is {print_op(op)} by now")
    args, _, attrs = inside.partition("; ")
    values: dict[str, Any] = dict(bodies)
    if attrs:
        call = ast.parse(f"f({attrs})", mode="eval").body
        assert isinstance(call, ast.Call)
        values |= {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    reader.nodes[ref] = make(op, [_resolve(reader, arg) for arg in _split(args)], values)


def _read_array(text: str, constants: Mapping[str, FrozenArray]) -> Node:
    match = _ARRAY.fullmatch(text)
    if match is None:
        _fail("it is not `dtype[size, …] [number, …]`")
    dtype, shape, items, encoded, digest = match.groups()
    if dtype not in DTYPES:
        _fail(f"{dtype} is not a dtype")
    sizes = tuple(map(int, _split(shape)))
    if digest is not None:
        constant = constants.get(digest)
        if constant is None or constant.key[:2] != (dtype, sizes):
            _fail("its elements are not there, only their digest")
        return make(CONSTANT, (), {"value": constant})
    if encoded is not None:
        return literal(np.frombuffer(bytes.fromhex(encoded), dtype).reshape(sizes))
    # an array made from the bytes keeps the payload of NaNs
    data = b"".join(read_digits(item, dtype).tobytes() for item in _split(items))
    return literal(np.frombuffer(data, dtype).reshape(sizes))


def _resolve(reader: _Reader, ref: str) -> Node:
    """The node of a reference: a name, `%number`, `leaf.axis` or `number:dtype`."""
    if ref in reader.nodes:
        return reader.nodes[ref]
    if ref in reader.waiting:
        return _make_leaf(reader, ref)
    digits, colon, dtype = ref.partition(":")
    if colon:
        if dtype not in DTYPES:
            _fail(f"{dtype} is not a dtype")
        return literal(np.frombuffer(read_digits(digits, dtype).tobytes(), dtype).reshape(()))
    if "." in ref:
        return _resolve_size(reader, ref)
    _fail(f"{ref!r} is not defined above")


def _resolve_size(reader: _Reader, ref: str, orphan: bool = False) -> Node:
    """The size leaf `leaf.axis`, made at its first mention. orphan: the leaf itself need not be declared."""
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
    if reader.in_body and dtype == NATURAL:
        reader.nodes[name] = param(reader.inputs.index(name), Type("int64", ()), name, natural=True)
        return reader.nodes[name]
    type_ = Type(dtype, tuple(int(size) if size.isdigit() else _resolve(reader, size) for size in _split(shape)))
    number = reader.inputs.index(name) if reader.in_body else None
    node = Node(op, (), {"type": type_}, type_, name) if number is None else param(number, type_, name)
    reader.nodes[name] = node
    return node
