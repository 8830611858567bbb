"""The verifier of graphs, run before a graph is compiled and, with the option `verify`, after every pass.

In: a graph. Out: nothing, or an error that names the node and what is wrong with it. Nodes and bodies are immutable, so
each is verified once in its life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from graphc.errors import GraphcError, GraphTypeError, MissingInputError, VerifyError
from graphc.ir.body import bodies_of
from graphc.ir.node import INPUT, LEAVES, PARAM, SHARED, SIZE, Body, Node, describe
from graphc.ir.walk import Graph, nodes_of, type_sizes
from graphc.loopir.ir import Function
from graphc.options import options
from graphc.startup.record import record


def verify(graph: Graph, shared: Iterable[Node] = ()) -> None:
    """Check a graph: outputs and arguments are nodes, each type is the one its op infers, each leaf is available.

    shared: shared variables whose sizes may be used without the variables themselves. Raises GraphTypeError,
    MissingInputError or CycleError.
    """
    for position, output in enumerate(graph.outputs):
        if not isinstance(output, Node):
            raise GraphTypeError(f"output {position} is {output!r}, not a tensor")
    for leaf in graph.inputs:
        if not isinstance(leaf, Node) or leaf.args or leaf.op not in LEAVES:
            label = describe(leaf) if isinstance(leaf, Node) else repr(leaf)
            raise GraphTypeError(f"{label} is not a leaf: it cannot be an input")
    order = nodes_of(graph.outputs)
    for node in order:
        if not node.verified:
            _verify_node(node)
            node.verified = True
    _verify_leaves(graph, order, shared)


def verify_body(body: Body) -> None:
    """Check a body: its parameters are numbered in order, and there are no other leaves."""
    if body.verified:
        return
    for number, leaf in enumerate(body.params):
        if leaf.op is not PARAM or leaf.attrs["index"] != number:
            raise GraphTypeError(f"its parameter {number} is {describe(leaf)}")
        if any(size not in body.params for size in type_sizes(leaf)):
            raise GraphTypeError(f"a size of its parameter {describe(leaf)} is no parameter")
    verify(Graph(body.params, body.results))
    body.verified = True


def _verify_node(node: Node) -> None:
    _verify_type(node)
    for name, body in bodies_of(node).items():
        try:
            verify_body(body)
        except GraphcError as error:
            raise type(error)(f"{name} of {describe(node)}: {error}") from error


def _verify_type(node: Node) -> None:
    for arg in node.args:
        if not isinstance(arg, Node):
            raise GraphTypeError(f"{describe(node)}: its argument {arg!r} is not a node")
    try:
        inferred = node.op.infer(node.args, node.attrs)
    except GraphcError as error:
        raise GraphTypeError(f"{describe(node)} of type {node.type} does not infer: {error}") from error
    if not inferred.is_same(node.type):
        raise GraphTypeError(f"{describe(node)} has type {node.type}, but its op infers {inferred}")


def _verify_leaves(graph: Graph, order: Iterable[Node], shared: Iterable[Node]) -> None:
    """Raise MissingInputError for a leaf that is neither an input nor shared nor a size of one of these."""
    at_hand = {*graph.inputs, *shared, *(node for node in order if node.op is SHARED)}
    at_hand |= {size for leaf in at_hand for size in leaf.type.shape if isinstance(size, Node)}
    for node in order:
        if node.op in (INPUT, SIZE, PARAM) and node not in at_hand:
            raise MissingInputError(f"the graph needs {describe(node)}, which is neither an input nor shared nor given")


# --- between passes ---------------------------------------------------------------------------------------------------


Form: TypeAlias = Graph | tuple[Function, ...]
"""The form that a pass works on: a graph, or the loop functions of one source."""


@record()
class Step:
    """A pass and the form before and after it."""

    name: str
    before: Form
    after: Form


_watchers: list[Callable[[Step], object]] = []


@contextmanager
def on_pass(watcher: Callable[[Step], object]) -> Iterator[None]:
    """While the block runs, call `watcher` with each pass that has changed something."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def watched() -> bool:
    """True if passes are verified or watched."""
    return options.verify or bool(_watchers)


def passed(step: Step, verify: Callable[[], None]) -> None:
    """Verify the result of a pass, then call the watchers. Raises VerifyError, which names the pass."""
    if options.verify:
        try:
            verify()
        except GraphcError as error:
            raise VerifyError(f"after the pass {step.name}: {error}; please report this") from error
    for watcher in tuple(_watchers):
        watcher(step)
