"""Graphs rebuilt with others in place of variables, Theano's `map_variables` and `rebuild_collect_shared`; the shapes
of what a graph computes, `shape_of_variables`.

In: variables, and what stands for them; a `FunctionGraph`, shapes. Out: new variables, as graphs never change; the
shape of each variable.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.control.derivative import step_of
from graphc.errors import ArgumentError, GraphTypeError
from graphc.functions.convention import Out
from graphc.functions.function import default_updates, function, updates_of
from graphc.ir.body import close, opened
from graphc.ir.call_errors import explain_all
from graphc.ir.node import INPUT, SHARED, Node, describe, next_serial
from graphc.ir.walk import as_size_node, nodes_of, renamed, restore_step_tags, store_step_tags, substitute, with_tags
from graphc.ops.branch import COND, cond_node
from graphc.ops.elementwise import as_node
from graphc.ops.scan import SCAN, loop_of, make_scan, with_body
from graphc.shared import SharedVariable
from graphc.startup.record import replace
from graphc.theano.graphs import FunctionGraph, ancestors, checked, replaced


def map_variables(
    replacer: Callable[[Node], Any], graphs: Iterable[Any], additional_inputs: Sequence[Node] = ()
) -> list[Node]:
    """`graphs` with `replacer(variable)` in place of each variable that they are computed from, and of themselves. What
    a replacement brings along stays, but the variables that it has in common with the graphs are replaced in it too,
    other than its own. Those of loops and branches are asked for as well: a step's are over variables of its own, and
    have the tags that the program gave them when it wrote the step. additional_inputs: for Theano's sake.

    Raises GraphTypeError for a replacement of another type.

        >>> a, b, c = T.dscalars("abc")
        >>> ab = a + b
        >>> graphc.map_variables(lambda each: a * b if each is ab else each, [ab + c])
        [<a * b + c: float64[]>]
    """
    return _mapped(replacer, [as_node(each) for each in graphs], set())


def _mapped(replacer: Callable[[Node], Any], roots: Sequence[Node], outside: Container[Node]) -> list[Node]:
    """`map_variables` of what is not outside."""
    known, done = set(ancestors(roots)), dict[Node, Node]()
    for each in nodes_of(roots):
        if each in outside:
            continue
        if each.op in (SCAN, COND):
            new = _mapped_within(replacer, each)
            if new is not each:
                done[each] = with_tags([new], done)[0]
        elif each in known and (new := replacer(each)) is not each:
            (pair,) = checked({each: new}, strict=True).values()
            done[each] = replaced([pair], done)[0] if each.args else pair  # leaves may stand for each other
    return replaced(roots, done)


def _mapped_within(replacer: Callable[[Node], Any], node: Node) -> Node:
    """A loop or a branch over the same operands, with what its bodies compute of these replaced."""
    since, outside = next_serial(), set(nodes_of(node.args))
    if node.op is COND:
        sides = [opened(node.attrs[name], node.args[1:]) for name in ("then", "orelse")]
        then, orelse = (_mapped(replacer, side, outside) for side in sides)
        if all(map(is_, [*then, *orelse], [*sides[0], *sides[1]])):
            return node
        return renamed(cond_node(node.args[0], then, orelse, {*outside}, node.attrs["state"]), node)
    loop = loop_of(node.args, node.attrs)
    step = step_of(loop, ())
    before = substitute(step.results, step.operands)
    restore_step_tags(node, dict(zip(loop.body.params, (*step.varying, *loop.constants), strict=True)), since)
    results = _mapped(replacer, before, outside)
    if all(map(is_, results, before)):
        return node
    body, captured = close(step.varying, results, since)
    new = renamed(make_scan(with_body(replace(loop, constants=captured), body)), node)
    store_step_tags(new, results, body)
    return new


def rebuild_collect_shared(
    outputs: Any,
    inputs: Sequence[Node] | None = None,
    replace: Any = None,
    updates: Any = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: bool | Sequence[Node] = False,
) -> tuple[list[Node], Any, list[Any]]:
    """The parts of a function: its inputs, its outputs with `replace` (a dict or pairs) carried out, and a list of a
    dict from each variable to the new one, a dict of the new values of shared variables, default ones among them, the
    same as pairs, and the shared variables.

    rebuild_strict: replacements must have the type of what they replace. copy_inputs_over=False: the inputs are fresh
    variables. no_default_updates: as in `function`. Raises GraphTypeError for an input that is shared, UpdateError for
    an update of what is not.
    """
    given = list(inputs or ())
    for each in given:
        if isinstance(each, SharedVariable):
            raise GraphTypeError(f"{describe(each)} is shared and cannot be an input; `givens` can replace it")
    items = list(outputs) if isinstance(outputs, list | tuple) else [] if outputs is None else [outputs]
    before = [as_node(each.variable if isinstance(each, Out) else each) for each in items]
    pairs = checked(replace, rebuild_strict)
    if not copy_inputs_over:
        leaves = {leaf for leaf in nodes_of([*before, *pairs.values(), *given]) if leaf.op is INPUT}
        fresh = {leaf: leaf.clone() for leaf in leaves}
        pairs = {**fresh, **{old: replaced([new], fresh)[0] for old, new in pairs.items()}}
    after = replaced(before, pairs)
    written = updates_of(updates)
    news = [*zip((leaf for leaf, _ in written), replaced([new for _, new in written], pairs), strict=True)]
    news = default_updates(after, news, no_default_updates, pairs)
    roots = [*after, *(new for _, new in news)]
    shared = [leaf for leaf in dict.fromkeys([*nodes_of(roots), *(leaf for leaf, _ in news)]) if leaf.op is SHARED]
    every = ancestors([*before, *given])
    made: Mapping[Node, Node] = dict(zip(every, replaced(every, pairs), strict=True))
    cloned = [
        Out(new, borrow=old.borrow) if isinstance(old, Out) else new for old, new in zip(items, after, strict=True)
    ]
    results = cloned if outputs is None or isinstance(outputs, list | tuple) else cloned[0]
    return [pairs.get(each, each) for each in given], results, [made, dict(news), news, shared]


# shapes ---------------------------------------------------------------------------------------------------------------


def shape_of_variables(fgraph: FunctionGraph, input_shapes: Mapping[Node, Sequence[int]]) -> dict[Node, Any]:
    """The shape of each variable of a graph, a tuple of 0-d arrays, for inputs of these shapes. Nothing is computed but
    sizes; those that follow from values are taken of inputs that are 0.

    Raises ArgumentError for an input without a shape.
    """
    missing = [each for each in fgraph.inputs if each not in input_shapes]
    if missing:
        raise ArgumentError(f"shape_of_variables: no shape is given for {', '.join(map(describe, missing))}")
    nodes = [each for each in fgraph.variables if not each.is_tuple]
    sizes = [as_size_node(size) for each in nodes for size in each.type.shape]
    find = function(fgraph.inputs, sizes, mode="interpreted", on_unused_input="ignore")
    values: list[Array] = [
        np.broadcast_to(np.zeros((), each.type.dtype), tuple(input_shapes[each])) for each in fgraph.inputs
    ]
    found = iter(find(*values))
    return {each: tuple(next(found) for _ in each.type.shape) for each in nodes}


__all__ = [
    "map_variables", "rebuild_collect_shared", "shape_of_variables",
]  # fmt: skip

explain_all(globals())
