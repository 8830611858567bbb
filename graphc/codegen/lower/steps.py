"""Loops of a body: their states and outputs in memory, one step after the other.

In: a nest of kind `steps`, the `Lowerer` that writes the kernel, and what carries out the parts of a plan in a scope.
Out: the loop, at the end of the scope. The states lie in the buffers of their last values, which begin as the initial
ones, and each step updates them; an output is written to its row; scalars from outside are named before the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.codegen.lower.bodies import body_of
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest, Plan, loop_vars
from graphc.ir.body import items_of
from graphc.ir.node import Node
from graphc.loops.build import start_const
from graphc.loops.ir import ONE, ZERO, Break, Expr, If, Load, Store, add


def lower_steps(
    lowerer: Lowerer, nest: Nest, plan: Plan, scope: Scope, carry_out: Callable[[Plan, Scope], None]
) -> None:
    """The loop of a nest."""
    steps = plan.loops[nest.number]
    graph = steps.graph
    items = items_of(graph.node)
    for leaf, scalar in graph.scalars.items():
        lowerer.remember(lowerer.scalars, leaf, lowerer.element(scalar, ()))
    most = lowerer.size(graph.most)
    states = items[: len(graph.states)]
    for state, initial in zip(states, graph.loop.initial, strict=True):
        _begin(lowerer, state, initial, scope)
    outputs = items[len(states) : len(states) + len(graph.loop.outputs)]
    if graph.loop.repeat.until or graph.loop.repeat.limited:
        for output in outputs:
            lowerer.fill(lowerer.buffers[output], output.type.shape, scope, _zero(output))
    if steps.stop is not None:
        scope.body.append(Store(lowerer.buffers[items[-1]], ZERO, ZERO))
    inner = lowerer.enter(scope, steps.var, most)
    lowerer.size_names = {**lowerer.size_names, graph.number: steps.var.name}
    given = {**graph.sources, **dict(zip(graph.states, items, strict=False))}
    results = [*(lowerer.buffers[each] for each in items), *([] if steps.stop is None else [steps.stop])]
    with body_of(lowerer, steps.plan, given, results, dict.fromkeys(steps.rows, graph.row)):
        carry_out(steps.plan, inner)
    if steps.stop is not None:
        inner.body.append(Store(lowerer.buffers[items[-1]], ZERO, add(steps.var, ONE)))
        inner.body.append(If(Load(steps.stop, ZERO), (Break(),)))
    lowerer.leave(inner, scope)


def _begin(lowerer: Lowerer, state: Node, initial: Node, outer: Scope) -> None:
    """The initial value of a state, in its buffer."""
    index = loop_vars(initial.ndim)
    scope = lowerer.enter_all(outer, index, lowerer.extents(initial.type.shape))
    value = lowerer.element(initial, index)
    scope.body.append(Store(lowerer.buffers[state], lowerer.place(state, index), value))
    lowerer.leave(scope, outer)
    lowerer.finish(outer)


def _zero(node: Node) -> Callable[[Expr], Expr]:
    value = start_const("False" if node.dtype == "bool" else "0", node.dtype)
    return lambda where: value
