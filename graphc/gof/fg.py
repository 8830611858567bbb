"""Theano's `FunctionGraph`: a graph with its inputs and outputs, to look at.

In: inputs and outputs. Out: the nodes between in topological order, and who uses which value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import GraphcError, MissingInputError
from graphc.gof.graph import io_toposort
from graphc.ir.apply import Composed
from graphc.ir.node import CONSTANT, LEAVES, SIZE, Node, describe
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, nodes_of, reachable


class Clients(dict[Node, list[tuple[Any, int]]]):
    """Who uses each value, and as which argument: `clients[x]`, or Theano's `clients(x)`."""

    def __call__(self, value: Node) -> list[tuple[Any, int]]:
        """Who uses a value."""
        return self[value]


def _parents(node: Node) -> Sequence[Node]:
    """What a value is computed from, as its owner shows it."""
    owner = None if node.op in LEAVES else node.owner
    return owner.inputs if isinstance(owner, Composed) else node.args


class FunctionGraph:
    """inputs, outputs: variables and values. Graphs never change: a rewritten graph is another one.

    Raises MissingInputError where the outputs need a variable that is not among the inputs.
    """

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], clone: bool = True, **kwargs: Any) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.name: str | None = None
        for node in nodes_of(self.outputs):
            if node.op in LEAVES and node.op not in (CONSTANT, SIZE) and node not in set(self.inputs):
                raise MissingInputError(f"the graph needs {describe(node)}, which is not among its inputs")

    def toposort(self) -> list[Any]:
        """The applications of ops, each after those that it needs, in the order of `graph.io_toposort`."""
        return io_toposort(self.inputs, self.outputs)

    def _nodes(self) -> list[Node]:
        """The values, but for those within an op of Theano's that is put together from several."""
        seen = set(reachable(self.outputs, _parents))
        return [node for node in nodes_of(self.outputs) if node in seen]

    @property
    def apply_nodes(self) -> set[Any]:
        """The applications of ops, in no order."""
        return set(self.toposort())

    @property
    def variables(self) -> set[Node]:
        """All values of the graph."""
        return {*self.inputs, *self._nodes()}

    @property
    def clients(self) -> Clients:
        """For each value, who uses it and as which argument; "output" for the graph itself."""
        nodes = self._nodes()
        found = Clients({node: [] for node in [*self.inputs, *nodes]})
        for node in nodes:
            hidden = getattr(node.op.eval, "hidden", 0)  # what a user's op computes, before its inputs
            for place, arg in enumerate(_parents(node)[hidden:]):
                found[arg].append((node.owner, place))
        for place, node in enumerate(self.outputs):
            found[node].append(("output", place))
        return found

    def clone(self) -> FunctionGraph:
        """The graph: it never changes."""
        return self

    def replace(self, *args: Any, **kwargs: Any) -> None:
        """Not there: graphs never change; `graphc.clone(output, replace={...})` makes another one."""
        raise GraphcError("a FunctionGraph never changes; graphc.clone(output, replace={...}) makes another graph")

    def __len__(self) -> int:
        return len(self.toposort())

    def __str__(self) -> str:
        return print_graph(Graph(tuple(self.inputs), tuple(self.outputs)))


__all__ = ["FunctionGraph"]
