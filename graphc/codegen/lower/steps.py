"""Loops of a body: their states and outputs in memory, one step after the other.

In: a nest of kind `steps`, the `Lowerer` that writes the kernel, and what carries out the parts of a plan in a scope.
Out: the loop, at the end of the scope. The states lie in the buffers of their last values, which begin as the initial
ones, and each step updates them; an output is written to its row; scalars from outside are named before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphc.codegen.lower.bodies import body_of
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest, Plan, StepGraph, loop_vars
from graphc.ir.body import items_of
from graphc.ir.node import Node
from graphc.ir.sizes import as_size
from graphc.loopir.build import start_const
from graphc.loopir.ir import INDEX, ONE, ZERO, Break, Expr, If, Let, Load, Store, Var, add, multiply, subtract


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
    if steps.stop is not None:
        scope.body.append(Store(lowerer.buffers[items[-1]], ZERO, ZERO))
    asks = None if graph.is_short else lowerer.size(graph.interval)
    inner = lowerer.enter(scope, steps.var, most)
    lowerer.steps.add(steps.var)
    inner.asks = asks
    lowerer.size_names = {**lowerer.size_names, graph.number: steps.var.name}
    given = {**graph.sources, **dict(zip(graph.states, items, strict=False))}
    results = [*(lowerer.buffers[each] for each in items), *([] if steps.stop is None else [steps.stop])]
    with body_of(lowerer, steps.plan, given, results, dict.fromkeys(steps.rows, graph.row)):
        carry_out(steps.plan, inner)
    if steps.stop is not None:
        inner.body.append(Store(lowerer.buffers[items[-1]], ZERO, add(steps.var, ONE)))
        inner.body.append(If(Load(steps.stop, ZERO), (Break(),)))
    lowerer.leave(inner, scope)
    for begin, end in _rows_left(lowerer, graph, most, items[-1], scope):
        for output in items[len(states) : len(states) + len(graph.loop.outputs)]:
            _clear(lowerer, output, begin, end, scope)


def _rows_left(
    lowerer: Lowerer, graph: StepGraph, most: Expr, number: Node, scope: Scope
) -> Iterator[tuple[Expr, Expr]]:
    """The rows that no step has written: where there may be fewer than there are, and fewer than `most`. `number`: how
    many were carried out, where the loop says so."""
    repeat, end = graph.loop.repeat, most
    if repeat.until:
        taken = Var(lowerer.names.fresh("taken"), INDEX)
        scope.body.append(Let(taken, Load(lowerer.buffers[number], ZERO)))
        if repeat.reverse:
            yield ZERO, subtract(most, taken)
        else:
            end = taken
    if end is not most or repeat.limited:
        yield end, lowerer.size(as_size(graph.loop.count))


def _clear(lowerer: Lowerer, output: Node, begin: Expr, end: Expr, outer: Scope) -> None:
    """Zeros in rows of an output."""
    row = lowerer.count(lowerer.extents(output.type.shape[1:]))
    var = loop_vars(lowerer.depth(outer) + 1)[-1]
    scope = lowerer.enter(outer, var, multiply(subtract(end, begin), row))
    zero = start_const("False" if output.dtype == "bool" else "0", output.dtype)
    scope.body.append(Store(lowerer.buffers[output], add(multiply(begin, row), var), zero))
    lowerer.leave(scope, outer)


def _begin(lowerer: Lowerer, state: Node, initial: Node, outer: Scope) -> None:
    """The initial value of a state, in its buffer."""
    index = loop_vars(initial.ndim)
    scope = lowerer.enter_all(outer, index, lowerer.extents(initial.type.shape))
    value = lowerer.element(initial, index)
    scope.body.append(Store(lowerer.buffers[state], lowerer.place(state, index), value))
    lowerer.leave(scope, outer)
    lowerer.finish(outer)
