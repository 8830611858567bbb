"""Blocks of a traced program that become the branches of a node: `if x > 0: a[0] = 1` in the body of a loop.

    then, orelse = side_of(one), side_of(other)     each is traced, and what it has done is taken back
    merged(test, (one, other), names)               a node chooses between the values of names and of arrays

In: functions, the blocks of an `if`, and the names that they bind. Out: how the choice ended (`None`, `BREAK`,
`Returned`, `Open`); names are bound to the chosen values, and arrays hold them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from graphc.control.branch import choose
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe, literal, plain
from graphc.ir.pairs import with_pairs
from graphc.ir.source_lines import PACKAGE, TRACE
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.identity import EFFECTS, Frame, again
from graphc.ops.shape import filled
from graphc.startup.record import record
from graphc.tensor import boundary
from graphc.tensor.handles import Handle, Region, Storage, node_of, relate
from graphc.tensor.python_functions import number
from graphc.trees import leaves, like, structure

UNBOUND: Any = object()
"""The contents of a name that is not bound."""


# --- how blocks end ---------------------------------------------------------------------------------------------------


class _Break:
    """The end of a block by `break`."""

    def __repr__(self) -> str:
        return "break"


BREAK = _Break()


@record(eq=False)
class Returned:
    """The end of a block by `return`."""

    value: Any


@record(eq=False)
class Open:
    """The end of a block in one of several ways. code: an int64 scalar, 0 for its end, 1 for `break`, 2 for `return`.
    value: what is returned then; UNBOUND if nothing ever is."""

    code: Node
    value: Any


def signal() -> Node:
    """Zero, computed in the step of the innermost loop and not before it."""
    anchor, zero = EFFECTS.frames[-1].anchor, as_node(0.0, "float64")
    return zero if anchor is None else again([zero], [anchor])[0]


def code_of(status: Any) -> Any:
    """The number of a status: see `Open`."""
    if type(status) is Open:
        return status.code
    return 0 if status is None else 1 if status is BREAK else 2


def value_of(status: Any) -> Any:
    return status.value if type(status) in (Open, Returned) else UNBOUND


# --- names, arrays, values --------------------------------------------------------------------------------------------


def cells_of(functions: Sequence[Callable[..., Any]], names: Sequence[str]) -> dict[str, Any]:
    """The cells of names that functions bind, by name."""
    made = dict[str, Any]()
    for function in functions:
        code, closure = function.__code__, function.__closure__ or ()
        for name, cell in zip(code.co_freevars, closure, strict=True):
            if name in names:
                made[name] = cell
            elif name.startswith("block "):  # a function of statements behind, which this one calls
                made |= cells_of([cell.cell_contents], names)
    return made


def contents(cell: Any) -> Any:
    """What a cell holds; UNBOUND if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def bind(cell: Any, value: Any) -> None:
    """Let a cell hold a value; UNBOUND empties it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif contents(cell) is not UNBOUND:
        del cell.cell_contents


LEAVES = (Node, np.ndarray, np.generic, int, float, complex)


def parts(value: Any) -> list[Any] | None:
    """The leaves of a value of the program as nodes, arrays or numbers; None if it has another leaf."""
    if value is UNBOUND or value is None or isinstance(value, str):
        return None
    found_leaves = leaves(with_pairs(boundary.given(value)))
    return found_leaves if found_leaves and all(isinstance(each, LEAVES) for each in found_leaves) else None


def is_python_number(leaf: Any) -> bool:
    return not getattr(leaf, "ndim", 0) and is_number(leaf)


def as_program_has(value: Any, nodes: Sequence[Node], numbers: Sequence[bool]) -> Any:
    """A value like another one of the program, with these nodes: handles of arrays, numbers of Python's."""
    made = [
        number(elementwise("positive", node) if node.type.dtype != "bool" else plain_copy(node)) if flag else node
        for node, flag in zip(nodes, numbers, strict=True)
    ]
    return boundary.owned(like(with_pairs(boundary.given(value)), made))


def plain_copy(node: Node) -> Node:
    """Another node of the same truth."""
    return elementwise("logical_not", elementwise("logical_not", node))


def containers(functions: Sequence[Callable[..., Any]]) -> list[tuple[Any, Any]]:
    """The lists, dicts, sets and objects that functions reach by their names, each with what it holds."""
    pending = [contents(cell) for function in functions for cell in function.__closure__ or ()]
    seen, made = set[int](), list[tuple[Any, Any]]()
    while pending and len(seen) < 2000:
        value = pending.pop()
        if value is UNBOUND or isinstance(value, LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if not value.__code__.co_filename.startswith(PACKAGE):
                pending += [contents(cell) for cell in value.__closure__ or ()]
        elif isinstance(value, dict):
            made.append((value, held(value)))
            pending += value.values()
        elif isinstance(value, (list, tuple, deque)):
            made.append((value, held(value)))
            pending += value
        elif isinstance(value, set):
            made.append((value, held(value)))
        elif hasattr(value, "__next__"):
            raise GraphTypeError("it may take elements of an iterator")
        elif isinstance(getattr(value, "__dict__", None), dict) and is_of_program(value):
            made.append((value, held(value)))
            pending += vars(value).values()
    return made


def held(value: Any) -> Any:
    """What a container or an object holds, by identity."""
    if isinstance(value, (list, tuple, deque)):
        return [*map(id, value)]
    if isinstance(value, set):
        return set(value)
    return {key: id(each) for key, each in (value if isinstance(value, dict) else vars(value)).items()}


def is_of_program(value: Any) -> bool:
    """True for an object of a class of the program."""
    return not isinstance(value, type) and type(value).__module__.partition(".")[0] not in LIBRARIES


LIBRARIES = "graphc", "numpy", "builtins"


def check_containers(before: Sequence[tuple[Any, Any]]) -> None:
    """Raise GraphTypeError if a container has changed."""
    for value, former in before:
        if held(value) != former:
            raise GraphTypeError(f"its body changes a {type(value).__name__}")


def storages_of(value: Any) -> list[Storage]:
    """The arrays in a value of the program."""
    return [] if value is UNBOUND else [leaf.storage for leaf in leaves(value) if isinstance(leaf, Handle)]


def origins_of(value: Any, level: object) -> set[Storage]:
    """The arrays from outside of a region that are in a value of the program, or may share memory with it."""
    family = {each for storage in storages_of(value) for each in storage.relatives or (storage,)}
    return {each for each in family if each.level is not level and each.level in TRACE.levels}


def is_alike(value: Any, example: Any) -> bool:
    """True if two values of the program have the same structure and types."""
    left, right = parts(value), parts(example)
    if left is None or right is None:
        return False
    if structure(with_pairs(boundary.given(value))) != structure(with_pairs(boundary.given(example))):
        return False
    return all(
        as_node(a).type.dtype == as_node(b).type.dtype
        and not sizes.shapes_differ(as_node(a).type.shape, as_node(b).type.shape)
        and as_node(a).ndim == as_node(b).ndim
        for a, b in zip(left, right, strict=True)
    )


# --- branches ---------------------------------------------------------------------------------------------------------


@record(eq=False)
class Side:
    """What a branch has done. bound: the names that it has bound. values: of all names, and under None what it returns,
    with nodes in place of arrays. origins: the arrays from outside that these values are. writes: the values of arrays
    that it has written."""

    status: Any
    bound: Sequence[str | None]
    values: Mapping[str | None, Any]
    origins: Mapping[str | None, Collection[Storage]]
    writes: Mapping[Storage, Any]
    effects: Sequence[Node]


def side_of(function: Callable[[], Any], cells: Mapping[str, Any]) -> Side:
    """Trace a branch, and take back what it has done."""
    before = {key: contents(cell) for key, cell in cells.items()}
    anchor = EFFECTS.frames[-1].anchor if EFFECTS.frames else None
    with TRACE, Frame(anchor) as effects:
        region = Region.enter()
        try:
            status = function()
            now: dict[str | None, Any] = {key: contents(cell) for key, cell in cells.items()}
            bound = [key for key, cell in cells.items() if contents(cell) is not before[key]]
            now[None] = value_of(status)
            origins = {key: origins_of(value, region) for key, value in now.items()}
            values = {key: frozen(value) for key, value in now.items()}
            writes = region.written()
        finally:
            region.take_back()
            for key, cell in cells.items():
                bind(cell, before[key])
    return Side(status, bound, values, origins, writes, effects)


def frozen(value: Any) -> Any:
    """A value with nodes in place of arrays; the error where one cannot be read."""
    try:
        return value if value is UNBOUND else boundary.given(value)
    except GraphTypeError as error:
        return error


def merged(test: Any, sides: Sequence[Callable[[], Any]], names: Sequence[str]) -> Any:
    """Carry out one of two branches. Returns the status."""
    holds = truth(test)
    cells = cells_of(sides, names)
    then, orelse = (side_of(each, cells) for each in sides)
    chooser = Chooser(holds, then.effects, orelse.effects)
    for key in cells:
        if key in then.bound or key in orelse.bound:
            chooser.add(key, then.values[key], orelse.values[key])
    for storage in {**then.writes, **orelse.writes}:
        own = storage.value()
        chooser.add(storage, then.writes.get(storage, own), orelse.writes.get(storage, own))
    codes = code_of(then.status), code_of(orelse.status)
    is_settled = isinstance(codes[0], int) and codes[0] == codes[1]
    if not is_settled:
        chooser.add("its end", *codes)
    values = then.values[None], orelse.values[None]
    if with_values := [each for each in values if each is not UNBOUND]:
        chooser.add(None, *(nothing_like(with_values[0]) if each is UNBOUND else each for each in values))
    made = chooser.results()
    for key, value in made.items():
        if isinstance(key, Storage):
            write(key, value)
        elif key in cells:
            bind(cells[key], value)
        origins = [*then.origins.get(key, ()), *orelse.origins.get(key, ())]
        if origins:
            relate((*storages_of(value), *origins))
    value = made.get(None, UNBOUND)
    if is_settled:
        return Returned(value) if codes[0] == 2 else then.status
    return Open(cast(as_node(made["its end"]), "int64"), value)


def write(storage: Storage, value: Any) -> None:
    """Write to an array as a program does."""
    storage.check_written("x[key] = value", lambda: node_of(storage.value()))
    storage.set(plain_content(value))
    storage.was_written("x[key] = value")


def plain_content(value: Any) -> Any:
    """The node of an array of the program."""
    return plain(value.content()) if isinstance(value, Handle) else value


def nothing_like(value: Any) -> Any:
    """Zeros in place of a value that is not used."""
    found_parts = parts(value)
    if found_parts is None:
        if value is None:
            return None
        raise GraphTypeError("one branch returns what is no array")
    zeros = [
        0 if is_python_number(each) else filled(literal(0, as_node(each).type.dtype), as_node(each).type.shape)
        for each in found_parts
    ]
    return like(with_pairs(boundary.given(value)), zeros)


class Chooser:
    """Values of which a condition chooses one each, as results of one node."""

    def __init__(self, holds: Node, *effects: Sequence[Node]) -> None:
        self.holds = holds
        self.effects = effects
        self.open: list[tuple[Any, Any, list[Any], list[Any]]] = []
        self.made: dict[Any, Any] = {}

    def add(self, key: Any, then: Any, orelse: Any) -> None:
        """Choose between two values."""
        for each in (then, orelse):
            if isinstance(each, GraphTypeError):
                raise each
        if then is orelse:
            self.made[key] = boundary.owned(then)
            return
        if then is UNBOUND or orelse is UNBOUND:
            self.made[key] = UNBOUND
            return
        sides = [parts(each) for each in (then, orelse)]
        if sides[0] is None or sides[1] is None:
            if type(then) is type(orelse) and not isinstance(then, Node) and then == orelse:
                self.made[key] = then
                return
            raise GraphTypeError(
                f"{key or 'the result'} is {described(then)} in one branch, {described(orelse)} in the other"
            )
        forms = [structure(with_pairs(boundary.given(each))) for each in (then, orelse)]
        if forms[0] != forms[1]:
            raise GraphTypeError(f"{key or 'the result'} has another structure in each branch")
        self.open.append((key, then, sides[0], sides[1]))

    def results(self) -> dict[Any, Any]:
        """The chosen values, by key."""
        then, orelse = ([leaf for each in self.open for leaf in each[place]] for place in (2, 3))
        if any(self.effects):
            signals = (again([signal()], each)[0] for each in self.effects)
            then, orelse = ([*side, signal] for side, signal in zip((then, orelse), signals, strict=True))
        nodes = iter(choose("if", self.holds, then, orelse))
        for key, value, left, right in self.open:
            pairs = [*zip(left, right, strict=True)]
            flags = [is_python_number(a) and is_python_number(b) for a, b in pairs]
            self.made[key] = as_program_has(value, [next(nodes) for _ in pairs], flags)
        EFFECTS.frames[-1].found.extend(nodes)
        return self.made


def described(value: Any) -> str:
    return "None" if value is None else "an array" if isinstance(value, Node) else f"a {type(value).__name__}"


def truth(test: Any) -> Node:
    """The truth of a scalar, as a node."""
    node = as_node(boundary.given(test))
    if node.ndim:
        raise GraphTypeError(f"{describe(node)} has several elements, and no truth")
    return cast(node, "bool")


def truth_node(value: Any) -> Node:
    return truth(value) if isinstance(value, Node) else literal(bool(value))
