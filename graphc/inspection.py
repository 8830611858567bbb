"""`inspect`: a graph with values, in which each node has its inputs, its consumers, its value and its gradient.

In: variables, and arrays for the inputs they need. Out: a `View` with an `Entry` for each node of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import as_array, is_float
from graphc.autodiff import grad
from graphc.errors import GraphTypeError, GraphValueError, MissingInputError
from graphc.ir.call_errors import explain_all
from graphc.ir.interpret import interpret
from graphc.ir.node import INPUT, SHARED, Array, Node, Op, Where, describe
from graphc.ir.walk import Graph, dependents, node_set, nodes_of
from graphc.shared import SharedVariable
from graphc.startup.record import record


@record(eq=False)
class Entry:
    """A node of a graph with its values.

    inputs: the entries of its arguments, in order. consumers: the entries that take it, each with its position among
    their inputs. value: its array, where inputs were given, else None. gradient: the derivative of the cost by it, or
    None.
    """

    variable: Node
    inputs: list[Entry]
    consumers: list[tuple[Entry, int]]
    value: Array | None
    gradient: Array | None

    @property
    def op(self) -> Op:
        """The op that computes it."""
        return self.variable.op

    @property
    def where(self) -> Where | None:
        """The line of the program that made it."""
        return self.variable.where

    def __repr__(self) -> str:
        value = "" if self.value is None else f" = {np.array2string(self.value, threshold=6, precision=4)}"
        return f"<{describe(self.variable)}{value}, taken by {len(self.consumers)}>"


class View:
    """The entries of a graph: `view[x]` is that of x; iteration gives all, in topological order."""

    def __init__(self, outputs: tuple[Node, ...], entries: dict[Node, Entry]) -> None:
        self.outputs = outputs
        self.entries = entries

    def __getitem__(self, variable: Node) -> Entry:
        found = self.entries.get(variable)
        if found is None:
            raise GraphValueError(
                f"{describe(variable)} is not in the graph of {', '.join(map(describe, self.outputs))}"
            )
        return found

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, variable: object) -> bool:
        return variable in self.entries

    def __str__(self) -> str:
        return "\n".join(map(repr, self))


def inspect(outputs: Any, values: Mapping[Node, Any] | None = None, cost: Node | None = None) -> View:
    """Return the graph of `outputs`, a variable or several, with the inputs and consumers of each node.

    values: {input: array} for all inputs that the graph needs. Each entry then has its `value`, and its `gradient`
    where `cost`, or the only output, is a floating scalar. Constants, broadcasts and casts have no entry unless they
    have a name or are outputs. Raises MissingInputError for an input without a value, and the errors of a call.

        >>> x, w = T.dvector("x"), T.dvector("w")
        >>> product = x * w
        >>> view = graphc.inspect(product.sum(), {x: [1.0, 2.0], w: [3.0, 4.0]})
        >>> view[product].value, view[w].gradient
        (array([3., 8.]), array([1., 2.]))
    """
    wanted = tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)
    for node in wanted:
        if not isinstance(node, Node):
            raise GraphTypeError(f"inspect takes variables, not {node!r}")
    nodes = nodes_of(wanted)
    varying = dependents(nodes, [node for node in nodes if node.op in (INPUT, SHARED)])
    order = [node for node in nodes if node in wanted or node.name or (node in varying and not is_implicit(node))]
    arrays: dict[Node, Array] = {}
    gradients: dict[Node, Array] = {}
    if values is not None:
        target = cost if cost is not None else wanted[0] if len(wanted) == 1 else None
        differentiable = target is not None and not target.ndim and is_float(target.dtype)
        arrays, gradients = computed(order, values, target if differentiable else None)
    entries = {node: Entry(node, [], [], arrays.get(node), gradients.get(node)) for node in order}
    for node, entry in entries.items():
        for position, arg in enumerate(node.args):
            while arg not in entries and is_implicit(arg):
                arg = arg.args[0]
            if arg in entries:
                entry.inputs.append(entries[arg])
                entries[arg].consumers.append((entry, position))
    return View(wanted, entries)


def is_implicit(node: Node) -> bool:
    """True for a node that only casts or broadcasts its argument."""
    return node.op.name in ("broadcast_to", "cast") or (node.op.name == "dimshuffle" and "x" in node.attrs["order"])


def computed(
    order: Sequence[Node], values: Mapping[Node, Any], cost: Node | None
) -> tuple[dict[Node, Array], dict[Node, Array]]:
    """Return the values of nodes, and the derivatives of `cost` by those that it depends on."""
    known: dict[Node, Array] = {}
    for node in order:
        if isinstance(node, SharedVariable):
            known[node] = node.get_value()
        elif node.op is INPUT:
            if node not in values:
                raise MissingInputError(f"inspect: no value is given for {describe(node)}")
            known[node] = as_array(values[node], node.type.dtype, f"the value of {describe(node)}")
    singles = [node for node in order if not node.is_tuple]
    parts: list[Node] = []
    floats: list[Node] = []
    if cost is not None:
        needed = node_set([cost])
        floats = [node for node in singles if is_float(node.type.dtype) and node in needed]
        parts = grad(cost, floats, disconnected_inputs="ignore")
    results = interpret(Graph((), (*singles, *parts)), known)
    return (dict(zip(singles, results, strict=False)), dict(zip(floats, results[len(singles) :], strict=True)))


explain_all(globals())
