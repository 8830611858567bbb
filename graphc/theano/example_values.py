"""Values that tensors have while a graph is built: `config.compute_test_value`.

In: `x.tag.test_value`, which the program sets for its inputs; shared variables and constants have values of their own.
Out: `tag.test_value` of every node that is made, computed as the interpreter computes it, so that an error in shapes or
dtypes is raised on the line that makes it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from warnings import warn as tell

import numpy as np

from graphc.errors import GraphTypeError, MissingInputError
from graphc.ir.interpret import interpret
from graphc.ir.node import INPUT, NODES, PARAM, SHARED, SIZE, Array, Node, constant_value, describe, size_owner
from graphc.ir.walk import Graph, substitute, toposort
from graphc.shared import SharedVariable

FOLLOWS = "_test_value_of"
"""The attribute of a node for its computed value, with those that it follows from: when one changes it is computed
anew."""


class MissingTestValue(MissingInputError, AttributeError):
    """A value that is needed has none."""


class InnerValue(MissingTestValue):
    """A value within a loop, a branch or a derivative, which has one at each call only."""


def watch(how: str) -> None:
    """Compute the values of nodes from now on: "raise", "warn" or "ignore" what has none; "off" for no values."""
    NODES.watch({"off": None, "warn": _warn, "ignore": _ignore}.get(how, _raise))


def _raise(node: Node) -> None:
    with suppress(InnerValue):
        get_test_value(node)


def _warn(node: Node) -> None:
    try:
        _raise(node)
    except MissingTestValue as error:
        tell(str(error), stacklevel=4)


def _ignore(node: Node) -> None:
    with suppress(MissingTestValue):
        get_test_value(node)


def get_test_value(value: Any) -> Any:
    """The test value of a tensor, an array. Raises AttributeError where it depends on a variable that has none, and the
    errors of a call: ShapeError, IndexOutOfBounds."""
    if not isinstance(value, Node):
        return np.asarray(value)
    known = _own(value)
    if known is not None:
        return known
    before = NODES.watch(None)  # what is made while values are computed is no part of the program's graph
    try:
        return _computed(value)
    finally:
        NODES.watch(before)


def _own(node: Node) -> Any:
    """The value that a node has itself."""
    if node.op is SIZE:
        owner = size_owner(node)
        held = None if owner is None else _own(owner)
        return None if held is None else np.asarray(np.shape(held)[node.attrs["axis"]], "int64")
    if isinstance(node, SharedVariable):
        return node.get_value(borrow=True)
    constant = constant_value(node)
    if constant is not None:
        return constant
    value, made = getattr(node.tag, "test_value", None), node.__dict__.get(FOLLOWS)
    stale = made is not None and made[0] is value and any(_own(leaf) is not held for leaf, held in made[1].items())
    return None if stale else value


def is_set(node: Node) -> bool:
    """True where the program has given a computed node a test value itself."""
    made, value = node.__dict__.get(FOLLOWS), getattr(node.tag, "test_value", None)
    return bool(node.args) and value is not None and (made is None or made[0] is not value)


def _computed(node: Node) -> Any:
    """The value of a node from those of what it is computed from."""
    known: dict[Node, Array] = {}
    begun: dict[Node, Any] = {}
    stands: dict[Node, Node] = {}  # variables for the nodes whose values the program has set
    for leaf in toposort([node], lambda each: () if is_set(each) else each.args):
        if is_set(leaf):
            stands[leaf], begun[leaf] = leaf.type(), leaf.tag.test_value
            known[stands[leaf]] = _as_own(leaf, begun[leaf])
            continue
        if leaf.op is PARAM:
            raise InnerValue(f"{describe(node)} is within a loop or a branch and has no test value")
        owner = size_owner(leaf) if leaf.op is SIZE else leaf
        if leaf.op not in (SIZE, INPUT, SHARED):
            continue
        held = None if owner is None else _own(owner)
        if owner is None or (held is None and "_declared" not in owner.__dict__):
            raise InnerValue(f"{describe(node)} is within a loop or a derivative and has no test value")
        if held is None:
            raise MissingTestValue(f"no test value is set for {describe(owner)}: x.tag.test_value = an array")
        known[owner], begun[owner] = _as_own(owner, held), held
    if node.is_tuple:
        return None
    (value,) = interpret(Graph(tuple(known), (*substitute([node], stands),)), known)
    value.flags.writeable = False
    node.tag.test_value = value
    node.__dict__[FOLLOWS] = value, begun
    return value


def _as_own(leaf: Node, value: Any) -> Array:
    array = np.asarray(value)
    if array.ndim != leaf.ndim or not np.can_cast(array.dtype, leaf.type.dtype, "same_kind"):
        raise GraphTypeError(
            f"the test value of {describe(leaf)} must be {leaf.type}, not {array.dtype}{[*array.shape]}"
        )
    return np.ascontiguousarray(array, leaf.type.dtype).reshape(array.shape)


def get_debug_values(*values: Any) -> list[Any]:
    """A list of the test values of all: of a single value itself, of a tuple for more; an empty list where values are
    off or one is missing. A missing value raises AttributeError under compute_test_value "raise" and warns under
    "warn"."""
    how = NODES.note
    if how is None:
        return []
    try:
        found = tuple(get_test_value(value) for value in values)
    except MissingTestValue as error:
        if how is _raise:
            raise
        if how is _warn:
            tell(str(error), stacklevel=2)
        return []
    return [found if len(found) != 1 else found[0]]


__all__ = ["MissingTestValue", "get_debug_values", "get_test_value", "watch"]
