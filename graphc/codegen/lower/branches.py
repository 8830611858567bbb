"""Branches: an `if` whose two bodies write the same results.

In: a nest of kind `branch`, the `Lowerer` that writes the kernel, and what carries out the parts of a plan in a scope.
Out: the branch, at the end of the scope. Scalars from outside are named before it.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.codegen.lower.bodies import body_of
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest, Plan
from graphc.ir.body import items_of
from graphc.loopir.ir import If, apply
from graphc.loopir.operators import CALLS


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
    results = [lowerer.buffers[each] for each in items_of(graph.node)]
    for plans in branches.plans:
        with lowerer.branch(scope) as side:
            for inner in plans:
                with body_of(lowerer, inner, graph.sources, results):
                    carry_out(inner, side)
        bodies.append(tuple(side.body))
    then, orelse = bodies
    if not then and orelse:
        condition, then, orelse = apply(CALLS["logical_not"], condition), orelse, then
    if then:
        scope.body.append(If(condition, then, orelse))
