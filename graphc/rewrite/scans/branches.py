"""Rewriting of branches: their bodies, each for itself, and small ones that cost less than to choose between them.

In: a graph, and what rewrites a body. Out: an equal graph, and what fired.

    exact    branch_bodies, branch_to_where
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir.body import ITEM, item
from graphc.ir.closure import opened
from graphc.ir.lowering import Scalar
from graphc.ir.node import LEAVES, Body, Node
from graphc.ir.walk import Graph, node_set, nodes_of, rebuilt, renamed
from graphc.ops.branch import COND
from graphc.rewrite.rules.engine import Fired
from graphc.rewrite.scans.passes import Bodies, Rewritten, with_bodies
from graphc.tensor.elementary import where

BRANCHES = ("branch_bodies", "branch_to_where")
"""The passes by name."""
MOST_COST = 30.0
"""Scalars that cost no more are computed for both branches: a jump that was not foreseen costs as much."""


def has_bodies(graph: Graph) -> bool:
    """Whether there is a loop or a branch in a graph."""
    return any(node.is_tuple for node in node_set(graph.outputs))


def rewrite_branches(graph: Graph, bodies: Bodies, is_on: Callable[[str], bool]) -> Rewritten:
    """The graph after all passes over its branches, and what fired. `bodies` rewrites a body."""
    done: dict[Node, Node] = {}
    fired: list[Fired] = []
    for node in nodes_of(graph.outputs):
        if node.op is COND:
            new = rebuilt(done, node)
            if is_on("branch_bodies"):
                new = with_bodies(new, bodies, fired)
            done[node] = renamed(new, node)
        elif node.op is ITEM and node.args[0].op is COND and is_on("branch_to_where"):
            whole = done[node.args[0]]
            if all(map(_is_cheap, (whole.attrs["then"], whole.attrs["orelse"]))):
                place = node.attrs["index"]
                sides = (opened(whole.attrs[name], whole.args[1:])[place] for name in ("then", "orelse"))
                done[node] = renamed(where(whole.args[0], *sides), node)
                fired.append(Fired.at("branch_to_where", node))
            else:
                done[node] = renamed(item(whole, node.attrs["index"]), node)
    if not fired:
        return graph, []
    return Graph(graph.inputs, tuple([rebuilt(done, output) for output in graph.outputs])), fired


def _is_cheap(body: Body) -> bool:
    """Whether a body computes few scalars, and refuses nothing."""
    if body.checks:
        return False
    nodes = [node for node in node_set(body.results) if node.op not in LEAVES]
    if any(node.ndim or not isinstance(node.op.lower(node), Scalar) or node.op.guards(node) for node in nodes):
        return False
    return not any(result.ndim for result in body.results) and sum(node.op.cost for node in nodes) <= MOST_COST
