"""Calls of a program's functions with variables in place of the tensors among their arguments.

    given = Given(f, ({"w": w, "n": 3}, x))      tensors [w, x], at leaves 1 and 2
    done = traced("checkpoint", f, given, [w, x])
    done.results                                 what f gives for fresh variables w', x'
    done.captured                                the tensors that f takes from around it
    rebuilt_over(done, [w, x])                   the results for w and x

In: a function and the arguments of a call, of which some leaves are tensors. Out: the results as a graph over fresh
variables, and what else this graph contains. Custom derivatives and `checkpoint` need both: the results stand for
themselves only as far as they depend on the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.control.loop import called, title
from graphc.errors import GraphTypeError
from graphc.ir.node import CONSTANT, Node, next_serial, variable
from graphc.ir.source_lines import GIVEN, LEFT, TRACE, TRACED
from graphc.ir.walk import dependents, nodes_of, nodes_since, rebuilt
from graphc.ops.derivative import without_overrides
from graphc.ops.elementwise import as_node
from graphc.ops.identity import Frame, attached
from graphc.ops.questions import Number
from graphc.ops.scan import SCAN
from graphc.startup.record import record
from graphc.tracing.arguments import as_given, names_of
from graphc.tracing.outside import replace_within_reach
from graphc.trees import leaves, like, paths


class Given:
    """The arguments of a call, by position.

    tree: the arguments. nodes: the tensors among their leaves. spots: the numbers of these leaves. places: the position
    of the argument of each leaf. names: the name of each leaf.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        found = leaves(args)
        self.tree, self.leaves = args, found
        self.spots = [spot for spot, leaf in enumerate(found) if isinstance(leaf, Node)]
        self.nodes = [as_node(found[spot]) for spot in self.spots]
        self.places = [place for place, value in enumerate(args) for _ in leaves(value)]
        self.names = names_of(function, args, {})

    def over(self, nodes: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with other tensors in place of theirs."""
        filled = list(self.leaves)
        for spot, node in zip(self.spots, nodes, strict=True):
            filled[spot] = node
        placed: tuple[Any, ...] = like(self.tree, filled)
        return placed


@record(eq=False)
class Traced:
    """The result of a call with variables. made: the tree of results. results: its leaves, as nodes. variables: those
    in place of the tensors. captured: the floats from outside that the results are computed from. since: no node of
    the call has a lower serial number."""

    made: Any
    results: list[Node]
    variables: list[Node]
    captured: list[Node]
    since: int


def by_position(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call by position, with defaults where others are given by name.

    Raises GraphTypeError where one can only be given by name.
    """
    if not kwargs:
        return args
    bound = signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise GraphTypeError(f"{title(function)}: {', '.join(bound.kwargs)} must be given by position")
    return bound.args


def with_defaults(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments by position, with the defaults of those that are left out: `bwd` gives a cotangent for each."""
    if not isinstance(function, FunctionType) or not function.__defaults__:
        return args
    absent = function.__code__.co_argcount - len(args)
    return (*args, *function.__defaults__[-absent:]) if 0 < absent <= len(function.__defaults__) else args


def run(by: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call a function of the program with tensors. `by` calls it, for messages."""
    for leaf, name in zip(leaves(args), names_of(function, args, {}), strict=True):
        if isinstance(leaf, Node) and leaf in GIVEN:
            TRACED[leaf] = f"{name}, an argument of {title(function)}"
    with TRACE, Frame() as found:
        replace_within_reach(function, args)
        made = called(f"{by} calls", function, args, [])
    return attached(made, found)


def stand_in(node: Node, name: str, function: Any) -> Node:
    """Return a fresh variable of the type of a node, for an argument of a function; a number stays one."""
    own = variable(node.type.dtype, node.type.shape, node.name or name)
    if isinstance(node, Number):
        own.__class__ = Number
    elif not node.ndim:
        as_given(own, node.__dict__.get("_given", np.dtype(node.type.dtype).type))
    TRACED[own] = f"{name}, an argument of {title(function)}"
    GIVEN.add(own)
    return own


def traced(by: str, function: Callable[..., Any], given: Given, kinds: Sequence[Node]) -> Traced:
    """Call a function with fresh variables of the types of `kinds`, in place of the tensors among its arguments.

    Raises GraphTypeError where a result is no array.
    """
    since = next_serial()
    variables = [stand_in(kind, given.names[spot], function) for spot, kind in zip(given.spots, kinds, strict=True)]
    try:
        made = run(by, function, given.over(variables))
    finally:
        LEFT.update(variables)
    results = nodes_in(function, made)
    return Traced(made, results, variables, captured_by(results, since), since)


def nodes_in(function: Callable[..., Any], made: Any) -> list[Node]:
    """Return the leaves of what a function returns, as nodes. Raises GraphTypeError for one that is no array."""
    results = []
    for leaf, path in zip(leaves(made), paths(made, "result"), strict=True):
        try:
            results.append(as_node(leaf))
        except GraphTypeError as error:
            raise GraphTypeError(f"{title(function)}: {path} that it returns is no array ({error})") from None
    return results


def captured_by(results: Sequence[Node], since: int) -> list[Node]:
    """Return the floats from before `since`, but constants, that results are computed from."""
    order = nodes_since(results, since)
    return [node for node in order if node.serial < since and node.op is not CONSTANT and is_float_node(node)]


def depend(nodes: Sequence[Node], variables: Sequence[Node]) -> bool:
    """Tell whether values depend on variables otherwise than as loops do, of which it is not known: a loop may be given
    what it does not need."""
    values = without_overrides(nodes)
    order = [node for node in nodes_of(values) if node.op is not SCAN]
    return not dependents(order, variables).isdisjoint(values)


def is_float_node(node: Node) -> bool:
    """Tell whether a node is an array of floats."""
    return not node.is_tuple and is_float(node.type.dtype)


def rebuilt_over(done: Traced, nodes: Sequence[Node]) -> list[Node]:
    """Return the results for the arguments that the variables stand for."""
    replaced = dict(zip(done.variables, nodes, strict=True))
    return [rebuilt(replaced, node, done.since) for node in done.results]
