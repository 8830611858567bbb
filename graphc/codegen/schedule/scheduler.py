"""From a graph to its plan: the parts of scheduling, one after the other.

In: the results of a rewritten graph with the buffers they go to, and what is known of sizes and names. Out: a `Plan`
(plan.py, with an example), made in this order:

    GraphOrder     an order in which values can be computed       drafts.py
    plan_nests     what is materialised, and in which nest        materialize.py, placement.py, drafts.py, cost.py
    conflicts      updates that cannot be made in place: again    inplace.py
    chains         values made over the one before                inplace.py
    share          nests that share loops                         fusion.py
    in_blocks      calls that go by blocks of rows                fusion.py
    buffers_of     the buffer of every value                      memory.py
    lay_out        the arena of temporaries                       memory.py
    plan_scan, plan_branch    the bodies within, the same way

Nothing here knows how a loop is written. With the option `verify` every plan is checked (verify.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from graphc.codegen.schedule.bodies import is_size
from graphc.codegen.schedule.drafts import Goals, GraphOrder
from graphc.codegen.schedule.fusion import in_blocks, share
from graphc.codegen.schedule.inplace import (
    chains,
    conflicts,
    deferred_targets,
    describe_update,
    versions,
    with_versions,
)
from graphc.codegen.schedule.materialize import Nests, plan_nests
from graphc.codegen.schedule.memory import buffers_of, joined, largest, lay_out
from graphc.codegen.schedule.plan import (
    COPY,
    BranchGraph,
    BranchPlan,
    Context,
    NestContents,
    NestDraft,
    Plan,
    PlanMemory,
    Purpose,
    Reasons,
    ScanGraph,
    ScanPlan,
    Slot,
)
from graphc.codegen.schedule.ranges import branch_ranges, decided, step_ranges, upper_bound_of
from graphc.errors import CycleError
from graphc.ir.body import ITEM, guard_sides, items_of
from graphc.ir.lowering import Call, Scalar, View
from graphc.ir.node import LEAVES, Guard, Node
from graphc.loopir import ir
from graphc.options import options
from graphc.startup.record import replace


def schedule(targets: Mapping[Node, str], overwritten: Mapping[str, Node], context: Context, purpose: Purpose) -> Plan:
    """The plan for computing each node of `targets` into its buffer.

    `overwritten`: those of the buffers that belong to shared variables or mutable inputs, with the variable's leaf. An
    update that cannot be made in place is computed into a temporary and copied at the very end.
    """
    deferred: frozenset[str] = frozenset()
    expected: frozenset[Node] = frozenset()
    while True:
        wanted, older = with_versions(deferred_targets(targets, deferred), overwritten, deferred, purpose.in_step)
        goals = Goals(wanted, overwritten, context.sizing, purpose, deferred, older)
        graph = GraphOrder(goals)
        nests = plan_nests(goals, graph, expected)
        wrong = [buffer for buffer in conflicts(nests) if buffer not in deferred]
        if not (wrong or expected) and nests.should_be_planned_again():
            expected = frozenset(nests.reasons) - nests.near()
            if expected:
                nests = plan_nests(goals, graph, expected)
                wrong = [buffer for buffer in conflicts(nests) if buffer not in deferred]
        if not wrong:
            try:
                order = nests.drafts.ordered(goals.targets)
                break
            except CycleError:
                wrong = [buffer for buffer in overwritten if buffer not in deferred][:1]
                if not wrong:
                    raise
        deferred |= set(wrong)
    return _finished(nests, order, context)


def _finished(nests: Nests, order: Sequence[NestDraft], context: Context) -> Plan:
    """The plan of nests in this order: which share loops, and where values lie."""
    goals, sizing, size_names = nests.goals, nests.goals.sizing, context.size_names
    of = goals.purpose.of
    chained = chains(nests, order)
    access = nests.access()
    access = replace(access, whole=access.whole | chained.keys(), labels=context.labels)
    sharing = share(order, access)
    if of == "kernel":
        sharing = in_blocks(sharing, order, access, chained, sizing)
        chained |= {node: pair for pair in sharing.overwritten_by.items() for node in pair}
    wanted = buffers_of(nests, sharing, chained, access.whole, size_names)
    arena = lay_out(wanted.temporaries, context.fresh, context.free)
    buffer_of = dict(zip(wanted.owners, arena.buffers, strict=True))
    values = {node: buffer for (node, role), buffer in buffer_of.items() if role == "value"}
    buffers = {**wanted.results, **{n: buffer for node, buffer in values.items() for n in chained.get(node, (node,))}}
    free = tuple(slot for slot in context.free if slot.buffer not in arena.buffers)
    scans, branches, inner = _plan_bodies(nests, buffers, replace(context, free=free))
    stops = tuple(Slot(scan.stop, ((scan.stop.dtype, (1,)),)) for scan in scans.values() if scan.stop is not None)
    slots = (*arena.slots, *stops, *inner)
    written = {buffer.name: buffer for buffer in wanted.results.values()}
    plan = Plan(
        of=of,
        parts=sharing.parts,
        memory=PlanMemory(
            buffers={node: buffers[node] for node in nests.reasons if node in buffers},
            leaves={leaf: written.get(name) or ir.Buffer(name, leaf.dtype) for leaf, name in context.leaves.items()},
            arena=slots,
            iterations={
                **wanted.iterations,
                **{slot.buffer: slot.iterations for slot in slots if slot.iterations is not None},
            },
            row_depths=sharing.depths,
            block_rows=sharing.blocks,
            accumulators={node: buffer for (node, role), buffer in buffer_of.items() if role == "accumulator"},
            workspaces=_workspaces(buffer_of),
            overwritten=goals.overwritten,
            deferred=goals.deferred,
        ),
        contents=NestContents(checks=nests.index_checks, guards=nests.guards, scans=scans, branches=branches),
        sizing=sizing,
        labels=context.labels,
        size_names=size_names,
        reasons=Reasons(
            materialised=nests.reasons,
            not_shared=sharing.not_shared,
            written={b: describe_update(leaf, b in goals.deferred, of) for b, leaf in goals.overwritten.items()},
            readers={
                node: frozenset(use.nest for use in uses)
                for node, uses in nests.uses.of_stored.items()
                if node.op is ITEM
            },
        ),
    )
    if options.verify:
        # Imported here: nobody needs it who does not ask for it.
        import_module("graphc.codegen.schedule.verify").verify_plan(plan)
    return plan


def _workspaces(buffers: Mapping[tuple[Node, str], ir.Buffer]) -> dict[Node, tuple[ir.Buffer, ...]]:
    """The workspaces of each call, in order."""
    workspaces: dict[Node, tuple[ir.Buffer, ...]] = {}
    for (node, role), buffer in buffers.items():
        if role.startswith("workspace"):
            workspaces[node] = (*workspaces.get(node, ()), buffer)
    return workspaces


# Bodies ---------------------------------------------------------------------------------------------------------------


def _plan_bodies(
    nests: Nests, buffers: Mapping[Node, ir.Buffer], context: Context
) -> tuple[dict[int, ScanPlan], dict[int, BranchPlan], list[Slot]]:
    """The plans of the bodies of scans and branches, and their memory, which they share: only one runs at a time."""
    scans: dict[int, ScanPlan] = {}
    branches: dict[int, BranchPlan] = {}
    here = context
    for number, scan in nests.scans.items():
        scans[number] = plan_scan(scan, buffers, here)
        here = replace(here, free=joined((*here.free, *scans[number].plan.memory.arena)))
    for number, branch in nests.branches.items():
        branches[number] = plan_branch(branch, buffers, nests.goals, here)
        slots = (slot for plans in branches[number].plans for plan in plans for slot in plan.memory.arena)
        here = replace(here, free=joined((*here.free, *slots)))
    return scans, branches, [slot for slot in here.free if slot not in context.free]


def plan_scan(graph: ScanGraph, buffers: Mapping[Node, ir.Buffer], context: Context) -> ScanPlan:
    """The plan of one step of a scan whose results have these buffers: the states are updated in theirs, as shared
    variables are by a function."""
    ranges = step_ranges(graph, context.ranges)
    graph = decided(graph, ranges, context.sizing)
    items = items_of(graph.node)
    names = [buffers[item].name for item in items]
    states, stop = len(graph.states), context.fresh("stop") if graph.loop.repeat.until else None
    rows = dict(zip(names[states : states + len(graph.loop.outputs)], items[states:], strict=False))
    goals = list(zip(graph.results[states:], [*rows, *([stop] if stop else [])], strict=True))
    targets: dict[Node, str] = {}
    for node, name in goals:
        add_target(targets, node, name, name in rows)
    for node, leaf, name in zip(graph.results, graph.states, names, strict=False):
        if node is not leaf:
            add_target(targets, node, name, False, is_version=bool(versions(leaf, node)))
    var = ir.Var(context.fresh("step"), ir.INDEX)
    known = dict(zip(graph.states, names, strict=False))
    for leaf, source in graph.sources.items():
        known[leaf] = buffers[source].name if source in buffers else context.leaves[source]
    updated = {name: leaf for name, leaf in zip(names, graph.states, strict=False) if name in targets.values()}
    inside = context.within(graph.results, known, {graph.number: var.name})
    inside = replace(inside, ranges=ranges)
    plan = _with_upper_bounds(schedule(targets, updated, inside, Purpose("step", graph.guarded, in_step=True)), inside)
    written = {node: rows[name] for node, name in targets.items() if name in rows}
    return ScanPlan(graph=graph, plan=plan, var=var, rows=written, stop=ir.Buffer(stop, "bool", True) if stop else None)


def plan_branch(graph: BranchGraph, buffers: Mapping[Node, ir.Buffer], goals: Goals, context: Context) -> BranchPlan:
    """The plans of the two bodies of a branch whose results have these buffers. goals: of the plan around. What that
    overwrites, the bodies update in place, where they need to."""
    purpose = Purpose("branch", in_step=goals.purpose.in_step)
    names = [buffers[item].name for item in items_of(graph.node)]
    leaves = context.leaves
    known = {leaf: buffers[n].name if n in buffers else leaves[n] for leaf, n in graph.sources.items()}
    inside = {name: leaf for leaf, name in known.items()}
    updated = {name: inside.get(name, leaf) for name, leaf in goals.overwritten.items() if name in names}
    plans: list[tuple[Plan, ...]] = []
    ranges, free = branch_ranges(graph, context.ranges), tuple(context.free)
    for side in graph.sides:
        targets: dict[Node, str] = {}
        for node, name in zip(side.results, names, strict=True):
            if name in updated and graph.scalars.get(node, node) is updated[name]:
                continue
            add_target(targets, node, name, False)
        here = replace(context.within(side.results, known), ranges=ranges, free=free)
        checks = (schedule({}, {}, here, Purpose("branch", checks=group)) for group in check_groups(side.checks))
        plans.append((*checks, _with_upper_bounds(schedule(targets, updated, here, purpose), here)))
        free = joined((*free, *plans[-1][-1].memory.arena))
    return BranchPlan(graph, (plans[0], plans[1]))


def _with_upper_bounds(plan: Plan, context: Context) -> Plan:
    """The plan of a body, with memory for the upper bounds of sizes that are known within it only."""
    bound_of = upper_bound_of(context.ranges)
    arena = tuple(largest(slot, bound_of) for slot in plan.memory.arena)
    return replace(plan, memory=replace(plan.memory, arena=arena))


def check_groups(checks: Iterable[Guard]) -> list[list[Guard]]:
    """Group checks so that each group may rely on the groups before it. Checks of sizes form one group; a check of a
    computed value is a group by itself, since the value may exist only where earlier checks hold."""
    groups: list[list[Guard]] = []
    for guard in checks:
        alone = not all(map(is_size, guard_sides(guard)))
        if alone or not groups or not all(is_size(side) for side in guard_sides(groups[-1][0])):
            groups.append([])
        groups[-1].append(guard)
    return groups


def add_target(targets: dict[Node, str], node: Node, name: str, is_row: bool, is_version: bool = False) -> None:
    """Add to `targets` the buffer that a value of a body goes to. The value is computed there directly, or elsewhere
    and copied: a row of an output is no place to change or accumulate a value in. is_version: a loop makes the value
    from the contents of the buffer."""
    may_be = node not in targets and node.op not in LEAVES and (node.op is not ITEM or is_version)
    direct = may_be and (not is_row or isinstance(node.op.lower(node), Scalar | View | Call))
    targets[node if direct else Node(COPY, (node,), {"to": name}, node.type, node.name)] = name
