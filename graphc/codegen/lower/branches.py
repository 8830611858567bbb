"""Branches: an `if` whose two bodies write the same results.

In: a nest of kind `branch`, the `Lowerer` that writes the kernel, and what carries out the parts of a plan in a scope.
Out: the branch, at the end of the scope. Scalars from outside are named before it.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import BranchGraph, Nest, Plan
from graphc.ir.body import items_of
from graphc.loops.ir import If


def lower_branch(
    lowerer: Lowerer, nest: Nest, plan: Plan, scope: Scope, carry_out: Callable[[Plan, Scope], None]
) -> None:
    """The branch of a nest."""
    branches = plan.branches[nest.number]
    graph = branches.graph
    for leaf, scalar in graph.scalars.items():
        lowerer.remember(lowerer.scalars, leaf, lowerer.element(scalar, ()))
    condition = lowerer.element(graph.node.args[0], ())
    bodies = []
    for inner in branches.plans:
        _know(lowerer, graph, inner)
        labels, lowerer.labels = lowerer.labels, inner.labels
        with lowerer.branch(scope) as side:
            carry_out(inner, side)
        lowerer.labels = labels
        bodies.append(tuple(side.body))
    scope.body.append(If(condition, *bodies))


def _know(lowerer: Lowerer, graph: BranchGraph, plan: Plan) -> None:
    """Tell the lowerer where the values of a body lie."""
    known = {lowerer.buffers[each].name: lowerer.buffers[each] for each in items_of(graph.node)}
    places = {node: place.buffer for node, place in plan.places.items() if place.buffer is not None}
    lowerer.buffers = {
        **lowerer.buffers,
        **{leaf: lowerer.buffers[source] for leaf, source in graph.sources.items()},
        **{node: known.get(buffer.name, buffer) for node, buffer in places.items()},
    }
    lowerer.accumulators = {**lowerer.accumulators, **plan.accumulators}
    lowerer.depths = {**lowerer.depths, **plan.depths}
    rows = {leaf: lowerer.rows[source] for leaf, source in graph.sources.items() if source in lowerer.rows}
    lowerer.rows = {**lowerer.rows, **rows}
