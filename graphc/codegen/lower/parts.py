"""The parts of a plan, one after the other, each by what writes its kind of nest; bodies of scans and branches.

In: a plan, the parts of it that belong in a scope, and the `Lowerer` that writes the kernel. Out: statements at the end
of that scope, under remarks for the reader of the source. As an example, a plan of two nests that share no loop, the
first of kind `call`, leaves

    note: y = T.dot(x, w)
    call dgemm(..., y[0:], ...)
    note: out = T.tanh(y)
    for i in range(count):
        ...

A scan is a loop over its steps: the states lie in the buffers of their last values, which begin as the initial ones,
and each step updates them; an output is written to its row. A branch is an `if` whose two bodies write the same
results. A body is a plan of its own, written by a `Lowerer` that knows its storage; scalars from outside are named
before the loop or the `if`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from graphc.codegen.lower.calls import lower_call
from graphc.codegen.lower.elements import Lowerer
from graphc.codegen.lower.nests import (
    lower_check,
    lower_guard,
    lower_loops,
    lower_recurrence,
    lower_segments,
    lower_writes,
    store_roots,
)
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.lower.shared_loops import lower_column_reduction, lower_shared_loop
from graphc.codegen.schedule.nodes import loop_vars
from graphc.codegen.schedule.plan import (
    BranchGraph,
    BranchPlan,
    Nest,
    Part,
    Plan,
    ScanGraph,
    ScanPlan,
    SharedLoop,
    nests_of,
)
from graphc.ir.body import items_of
from graphc.ir.node import Node
from graphc.ir.sizes import as_size
from graphc.loopir import ir, operators
from graphc.startup.record import replace


def lower_parts(lowerer: Lowerer, plan: Plan, parts: Sequence[Part], scope: Scope) -> None:
    """Parts that are carried out in every iteration of the loop of a scope: what they compute is named inside it."""
    here = lowerer.before(root for part in parts for nest in nests_of(part) for root in nest.roots)
    with lowerer.scopes.within(scope):
        for part in parts:
            if isinstance(part, SharedLoop):
                lower_shared_loop(here, part, partial(remarks, plan), scope)
            else:
                scope.body.extend(remarks(plan, part))
                lower_nest(here, plan, part, scope)
            here.finish(scope)


def lower_nest(lowerer: Lowerer, plan: Plan, nest: Nest, scope: Scope) -> None:
    """A nest that shares no loop."""
    match nest.kind:
        case "loops":
            lower_loops(lowerer, nest, scope)
        case "full reduction":
            store_roots(lowerer, nest, scope, ())
        case "column reduction":
            lower_column_reduction(lowerer, nest, scope)
        case "recurrence":
            lower_recurrence(lowerer, nest, scope)
        case "segments":
            lower_segments(lowerer, nest, scope)
        case "writes":
            lower_writes(lowerer, nest, scope)
        case "call":
            lower_call(lowerer, nest, scope)
        case "check":
            lower_check(lowerer, nest, plan.contents.checks[nest.number], scope)
        case "guard":
            lower_guard(lowerer, nest, plan.contents.guards[nest.number], scope)
        case "steps":
            lower_scan(lowerer, plan.contents.scans[nest.number], scope)
        case "branch":
            lower_branch(lowerer, plan.contents.branches[nest.number], scope)
    lowerer.stored(nest.roots)


def remarks(plan: Plan, nest: Nest) -> list[ir.Note]:
    """The purpose of a nest, for the reader of the source: the user's lines that it computes."""
    if nest.kind == "check":
        gather = plan.contents.checks[nest.number].gather
        return [
            ir.Note(f"indices must lie within their axis: {plan.labels.line(gather)}", f"check_{plan.labels(gather)}")
        ]
    if nest.kind == "guard":
        return []
    return [ir.Note(plan.labels.origin(nest.roots), plan.labels.joined(nest.roots))]


# Branches -------------------------------------------------------------------------------------------------------------


def lower_branch(lowerer: Lowerer, branch: BranchPlan, scope: Scope) -> None:
    """The `if` of a branch."""
    graph = branch.graph
    _name_scalars(lowerer, graph)
    condition = lowerer.element(graph.node.args[0], ())
    results = [lowerer.storage.buffers[item] for item in items_of(graph.node)]
    bodies: list[tuple[ir.Stmt, ...]] = []
    for plans in branch.plans:
        with lowerer.scopes.branch(scope) as side:
            for plan in plans:
                storage = lowerer.storage.within(plan.memory, graph.sources, results)
                lower_parts(replace(lowerer, storage=storage, labels=plan.labels), plan, plan.parts, side)
        bodies.append(tuple(side.body))
    then, orelse = bodies
    if not then and orelse:
        condition, then, orelse = ir.apply(operators.CALLS["logical_not"], condition), orelse, then
    if then:
        scope.body.append(ir.If(condition, then, orelse))


def _name_scalars(lowerer: Lowerer, graph: ScanGraph | BranchGraph) -> None:
    """Name the scalars that bodies take from outside."""
    for leaf, scalar in graph.scalars.items():
        lowerer.name_scalar(leaf, lowerer.element(scalar, ()))


# Scans ----------------------------------------------------------------------------------------------------------------


def lower_scan(lowerer: Lowerer, scan: ScanPlan, scope: Scope) -> None:
    """The loop over the steps of a scan."""
    graph, buffers = scan.graph, lowerer.storage.buffers
    items = items_of(graph.node)
    _name_scalars(lowerer, graph)
    most = lowerer.size(graph.most)
    states = items[: len(graph.states)]
    for state, initial in zip(states, graph.loop.initial, strict=True):
        _begin(lowerer, state, initial, scope)
    if scan.stop is not None:
        scope.body.append(ir.Store(buffers[items[-1]], ir.ZERO, ir.ZERO))
    safepoint = None if graph.is_short else lowerer.size(graph.interval)
    inner = lowerer.scopes.enter(scope, scan.var, most, safepoint=safepoint)
    lowerer.step_loops.add(scan.var)
    lower_parts(_step_lowerer(lowerer, scan), scan.plan, scan.plan.parts, inner)
    if scan.stop is not None:
        inner.body.append(ir.Store(buffers[items[-1]], ir.ZERO, ir.add(scan.var, ir.ONE)))
        inner.body.append(ir.If(ir.Load(scan.stop, ir.ZERO), (ir.Break(),)))
    lowerer.scopes.leave(inner, scope)
    for begin, end in _rows_left(lowerer, graph, most, items[-1], scope):
        for output in items[len(states) : len(states) + len(graph.loop.outputs)]:
            _clear(lowerer, output, begin, end, scope)


def _step_lowerer(lowerer: Lowerer, scan: ScanPlan) -> Lowerer:
    """The lowerer of one step of a scan."""
    graph, items = scan.graph, items_of(scan.graph.node)
    sources = {**graph.sources, **dict(zip(graph.states, items, strict=False))}
    results = [*(lowerer.storage.buffers[item] for item in items), *([] if scan.stop is None else [scan.stop])]
    rows = dict.fromkeys(scan.rows, graph.row)
    return replace(
        lowerer,
        storage=lowerer.storage.within(scan.plan.memory, sources, results, rows),
        sizes=replace(lowerer.sizes, names={**lowerer.sizes.names, graph.number: scan.var.name}),
        labels=scan.plan.labels,
    )


def _rows_left(
    lowerer: Lowerer, graph: ScanGraph, most: ir.Expr, number: Node, scope: Scope
) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """The rows that no step has written, if there may be fewer steps than rows. `number`: the steps that were carried
    out, if the scan reports it."""
    repeat, end = graph.loop.repeat, most
    if repeat.until:
        taken = lowerer.scopes.var("taken")
        scope.body.append(ir.Let(taken, ir.Load(lowerer.storage.buffers[number], ir.ZERO)))
        if repeat.reverse:
            yield ir.ZERO, ir.subtract(most, taken)
        else:
            end = taken
    if end is not most or repeat.limited:
        yield end, lowerer.size(as_size(graph.loop.count))


def _clear(lowerer: Lowerer, output: Node, begin: ir.Expr, end: ir.Expr, outer: Scope) -> None:
    """Zeros in rows of an output."""
    row = lowerer.count(lowerer.extents(output.type.shape[1:]))
    var = loop_vars(lowerer.scopes.depth(outer) + 1)[-1]
    scope = lowerer.scopes.enter(outer, var, ir.multiply(ir.subtract(end, begin), row))
    zero = ir.start_const("False" if output.type.dtype == "bool" else "0", output.type.dtype)
    scope.body.append(ir.Store(lowerer.storage.buffers[output], ir.add(ir.multiply(begin, row), var), zero))
    lowerer.scopes.leave(scope, outer)


def _begin(lowerer: Lowerer, state: Node, initial: Node, outer: Scope) -> None:
    """The initial value of a state, in its buffer, unless it is there."""
    if lowerer.materialised(initial) == lowerer.storage.buffers[state]:
        return
    index = loop_vars(initial.ndim)
    scope = lowerer.scopes.enter_all(outer, index, lowerer.extents(initial.type.shape))
    value = lowerer.element(initial, index)
    scope.body.append(ir.Store(lowerer.storage.buffers[state], lowerer.buffer_position(state, index), value))
    lowerer.scopes.leave(scope, outer)
    lowerer.finish(outer)
