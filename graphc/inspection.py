"""A graph with values: what each node is computed from, who takes it, its value and the derivative by it.

In: variables, and arrays for the inputs they need. Out: a `View`, which has an `Entry` for every node on the way, with
inputs and consumers both, as engines for teaching keep them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.arrays.values import as_array
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
    """What is known of one value of a graph.

    inputs: the entries of what it is computed from, in order. consumers: those of what is computed from it, with the
    position of this one among their inputs. value: the array, where inputs were given; gradient: the derivative of the
    cost by it, where there is one.
    """

    variable: Node
    inputs: list[Entry]
    consumers: list[tuple[Entry, int]]
    value: Array | None
    gradient: Array | None

    @property
    def op(self) -> Op:
        """What is computed."""
        return self.variable.op

    @property
    def where(self) -> Where | None:
        """The line of the program that made it."""
        return self.variable.where

    def __repr__(self) -> str:
        value = "" if self.value is None else f" = {np.array2string(self.value, threshold=6, precision=4)}"
        return f"<{describe(self.variable)}{value}, taken by {len(self.consumers)}>"


class View:
    """The entries of a graph: `view[x]`, or all of them, each after what it is computed from."""

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
    """The graph of `outputs`, a variable or several: for each value its inputs and its consumers.

    values: arrays for all inputs that it needs; then each entry has its `value` (shared variables have theirs), and,
    where `cost`, or the only output, is a floating scalar, the `gradient` of that by it. What depends on no variable,
    and what only broadcasts or casts, is no entry unless it has a name or is an output. Raises MissingInputError for an
    input without a value, and the errors of a call.

        >>> view = graphc.inspect(loss, {x: X, y: Y})
        >>> view[hidden].value, view[hidden].gradient, [entry.op for entry, _ in view[hidden].consumers]
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
    """Whether a node only brings its argument to the dtype and shape of others."""
    return node.op.name in ("broadcast_to", "cast") or (node.op.name == "dimshuffle" and "x" in node.attrs["order"])


def computed(
    order: Sequence[Node], values: Mapping[Node, Any], cost: Node | None
) -> tuple[dict[Node, Array], dict[Node, Array]]:
    """The values of nodes, and the derivatives of `cost` by those that it depends on."""
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
    return (
        dict(zip(singles, results, strict=False)),
        dict(zip(floats, results[len(singles) :], strict=True)),
    )


explain_all(globals())
