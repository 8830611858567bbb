"""The plan of a kernel: what is materialised and fused, what shares loops and memory, and in which order.

In: a rewritten graph with the buffers its results go to, and its sizing. Out: a `Plan`: nests in order, the place of
every materialised value with the reason for it, buffers shared between temporaries. Nothing here knows how a loop is
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from graphc.codegen.schedule.accumulators import added_by, row_length
from graphc.codegen.schedule.blocks import in_blocks
from graphc.codegen.schedule.extremes import branch_ranges, most_of, step_ranges
from graphc.codegen.schedule.fusion import Sharing, share
from graphc.codegen.schedule.inplace import chains, conflicts, deferred_targets, how_written
from graphc.codegen.schedule.listing import lines_of
from graphc.codegen.schedule.materialize import Scheduler
from graphc.codegen.schedule.memory import Materialised, Slot, added_by_both, joined, largest, lay_out
from graphc.codegen.schedule.plan import (
    COPY,
    Around,
    Branches,
    BranchGraph,
    Draft,
    Nest,
    Place,
    Plan,
    Purpose,
    StepGraph,
    Steps,
    call_of,
    called,
    lowering_of,
    nests_of,
)
from graphc.codegen.schedule.steps import is_size
from graphc.errors import CycleError
from graphc.ir.body import ITEM, guard_sides, items_of
from graphc.ir.lowering import Call, Fold, Recur, Scalar, View, Workspace
from graphc.ir.node import LEAVES, Guard, Node, Size
from graphc.loopir.ir import INDEX, Buffer, Var
from graphc.startup.record import record, replace


def schedule(
    targets: Mapping[Node, str],
    overwritten: Mapping[str, Node],
    around: Around,
    purpose: Purpose,
) -> Plan:
    """The plan for computing each node of `targets` into its buffer.

    `overwritten`: those of the buffers that belong to shared variables or mutable inputs, with the variable's leaf. An
    update that cannot be made in place is computed into a temporary and copied at the very end.
    """
    sizing = around.sizing
    deferred: frozenset[str] = frozenset()
    expected: frozenset[Node] = frozenset()
    scheduler = Scheduler(deferred_targets(targets, deferred), overwritten, sizing, purpose)
    while True:
        scheduler.run()
        wrong = [buffer for buffer in conflicts(scheduler) if buffer not in deferred]
        if not wrong and not expected and (scheduler.has_large_nests() or scheduler.near()):
            expected = frozenset(scheduler.reasons) - scheduler.near()
            if expected:
                goals = scheduler.targets
                scheduler = Scheduler(goals, overwritten, sizing, purpose, deferred, expected, scheduler)
                continue
        if not wrong:
            try:
                order = scheduler.ordered()
                break
            except CycleError:
                wrong = [buffer for buffer in overwritten if buffer not in deferred][:1]
                if not wrong:
                    raise
        deferred |= set(wrong)
        goals = deferred_targets(targets, deferred)
        scheduler = Scheduler(goals, overwritten, sizing, purpose, deferred, expected)
    return _finish(scheduler, order, around)


def _finish(scheduler: Scheduler, order: Sequence[Draft], around: Around) -> Plan:
    """Name the temporaries and write the plan down."""
    access, sizing, size_names = scheduler.access(), scheduler.sizing, around.size_names
    of = scheduler.purpose.of
    chained = chains(scheduler, order)
    access = replace(access, needed=access.needed | chained.keys(), labels=around.labels)
    sharing = share(order, access)
    if of == "kernel":
        sharing = in_blocks(sharing, order, access, chained, sizing)
        chained |= {each: pair for pair in sharing.over.items() for each in pair}
    memory = _memory(scheduler, sharing, chained, access.needed, size_names)
    arena = lay_out(memory.materialised, around.fresh, around.free)
    held = dict(zip(memory.keepers, arena.buffers, strict=True))
    results, iterations = memory.results, memory.iterations
    kept = {node: buffer for (node, role), buffer in held.items() if role == "value"}
    buffers = results | {each: buffer for node, buffer in kept.items() for each in chained.get(node, (node,))}
    written = {buffer.name: buffer for buffer in results.values()}
    free = tuple(slot for slot in around.free if slot.buffer not in arena.buffers)
    loops, branches, inner = _plan_bodies(scheduler, buffers, replace(around, free=free))
    stops = tuple(Slot(steps.stop, ((steps.stop.dtype, (1,)),)) for steps in loops.values() if steps.stop is not None)
    slots = (*arena.slots, *stops, *inner)
    plan = Plan(
        sharing.parts,
        {node: Place(buffers.get(node), reason) for node, reason in scheduler.reasons.items()},
        {leaf: written.get(name) or Buffer(name, leaf.dtype) for leaf, name in around.leaves.items()},
        slots,
        iterations | {slot.buffer: slot.iterations for slot in slots if slot.iterations is not None},
        scheduler.bounds,
        sharing.depths,
        sharing.apart,
        _held_workspaces(held),
        {node: buffer for (node, role), buffer in held.items() if role == "accumulator"},
        {b: how_written(leaf, b in scheduler.deferred, of) for b, leaf in scheduler.overwritten.items()},
        scheduler.deferred,
        sizing,
        around.labels,
        scheduler.guards,
        loops,
        branches,
        {n: frozenset(use.nest for use in uses) for n, uses in scheduler.materialised_uses.items() if n.op is ITEM},
        sharing.blocks,
        (),
    )
    return replace(plan, lines=tuple(lines_of(plan, size_names, of != "kernel")))


@record()
class Memory:
    """materialised: what lies in the arena, for each of keepers: of which node, and its role. results: the buffers of
    targets; iterations: how often a loop adds to one."""

    materialised: list[Materialised]
    keepers: list[tuple[Node, str]]
    results: dict[Node, Buffer]
    iterations: dict[Buffer, Size]


def _memory(
    scheduler: Scheduler,
    sharing: Sharing,
    chained: Mapping[Node, Sequence[Node]],
    needed: frozenset[Node],
    size_names: Mapping[Node, str],
) -> Memory:
    """The memory that nests write."""
    sizing = scheduler.sizing
    position = {nest.number: place for place, part in enumerate(sharing.parts) for nest in nests_of(part)}
    memory = Memory([], [], {}, {})
    materialised, keepers, results, iterations = memory.materialised, memory.keepers, memory.results, memory.iterations
    nests = [nest for part in sharing.parts for nest in nests_of(part)]
    writers = {node: nest for nest in nests for node in nest.roots}
    for nest in nests:
        now = position[nest.number]
        for node in nest.roots:
            chain = chained.get(node, (node,))
            depth, lowering = sharing.depths[node], lowering_of(node)
            shape = sizing.shape(node)[depth:]
            if node in sharing.blocks:
                shape = (sharing.blocks[node], *shape[1:])
            rows, row = (sizing.shape(node)[0], row_length(shape, size_names)) if depth else (None, None)
            writing = [each for each in chain if writers[each].kind == "writes"] or chain
            added = reduce(added_by_both, (added_by(each, writers[each], size_names, sizing) for each in writing))
            wide = lowering.dtypes[0] if isinstance(lowering, Fold) and nest.kind == "column reduction" else node.dtype
            own = added if wide == node.dtype else None
            if chain[-1] in scheduler.targets:
                results[node] = Buffer(scheduler.targets[chain[-1]], node.dtype, target=own[0] if own else None)
                iterations.update({results[node]: own[1]} if own else {})
            elif node is chain[0] and not is_local(nest, node, depth, needed):
                last = max((position[use.nest] for use in scheduler.materialised_uses[chain[-1]]), default=now)
                materialised.append(Materialised(node.dtype, shape, now, last, rows, own, row))
                keepers.append((node, "value"))
            if wide != node.dtype:
                materialised.append(Materialised(wide, shape, now, now, rows, added, row))
                keepers.append((node, "accumulator"))
            if isinstance(lowering, Recur) and lowering.axis != node.ndim - 1:
                materialised.append(Materialised(lowering.dtype, sizing.shape(node)[lowering.axis + 1 :], now, now))
                keepers.append((node, "accumulator"))
        for number, space in enumerate(workspaces_of(nest)):
            materialised.append(Materialised(space.dtype, tuple(map(sizing.of, space.shape)), now, now))
            keepers.append((called(nest.roots[0]), f"workspace {number}"))
    return memory


def _plan_bodies(
    scheduler: Scheduler, buffers: Mapping[Node, Buffer], around: Around
) -> tuple[dict[int, Steps], dict[int, Branches], list[Slot]]:
    """The plans of the bodies of loops and branches, and their memory, which they share: only one runs at a time."""
    loops: dict[int, Steps] = {}
    branches: dict[int, Branches] = {}
    here = around
    for number, steps in scheduler.steps.items():
        loops[number] = plan_steps(steps, buffers, here)
        here = replace(here, free=joined((*here.free, *loops[number].plan.arena)))
    for number, branch in scheduler.branches.items():
        branches[number] = plan_branches(branch, buffers, scheduler.overwritten, here)
        held = (slot for plans in branches[number].plans for plan in plans for slot in plan.arena)
        here = replace(here, free=joined((*here.free, *held)))
    return loops, branches, [slot for slot in here.free if slot not in around.free]


def plan_steps(graph: StepGraph, buffers: Mapping[Node, Buffer], around: Around) -> Steps:
    """The plan of one step of a loop whose results have these buffers: the states are updated in theirs, as shared
    variables are by a function."""
    items = items_of(graph.node)
    names = [buffers[each].name for each in items]
    states, stop = len(graph.states), around.fresh("stop") if graph.loop.repeat.until else None
    rows = dict(zip(names[states : states + len(graph.loop.outputs)], items[states:], strict=False))
    goals = list(zip(graph.results[states:], [*rows, *([stop] if stop else [])], strict=True))
    for node, leaf, name in zip(graph.results, graph.states, names, strict=False):
        goals += [] if node is leaf else [(node, name)]
    targets: dict[Node, str] = {}
    for node, name in goals:
        aim(targets, node, name, name in rows)
    var = Var(around.fresh("step"), INDEX)
    known = dict(zip(graph.states, names, strict=False))
    for leaf, source in graph.sources.items():
        known[leaf] = buffers[source].name if source in buffers else around.leaves[source]
    updated = {name: leaf for name, leaf in zip(names, graph.states, strict=False) if name in targets.values()}
    inside = around.within(graph.results, known, {graph.number: var.name})
    inside = replace(inside, ranges=step_ranges(graph, around.ranges))
    plan = in_most_memory(schedule(targets, updated, inside, Purpose("step", graph.guarded)), inside)
    written = {node: rows[name] for node, name in targets.items() if name in rows}
    return Steps(graph, plan, var, written, Buffer(stop, "bool", True) if stop else None)


def plan_branches(
    graph: BranchGraph, buffers: Mapping[Node, Buffer], overwritten: Mapping[str, Node], around: Around
) -> Branches:
    """The plans of the two bodies of a branch whose results have these buffers. Those of `overwritten` they update in
    place, where they need to."""
    names = [buffers[each].name for each in items_of(graph.node)]
    leaves = around.leaves
    known = {leaf: buffers[each].name if each in buffers else leaves[each] for leaf, each in graph.sources.items()}
    inside = {name: leaf for leaf, name in known.items()}
    updated = {name: inside.get(name, leaf) for name, leaf in overwritten.items() if name in names}
    plans: list[tuple[Plan, ...]] = []
    ranges, free = branch_ranges(graph, around.ranges), tuple(around.free)
    for side in graph.sides:
        targets: dict[Node, str] = {}
        for node, name in zip(side.results, names, strict=True):
            if name in updated and graph.scalars.get(node, node) is updated[name]:
                continue
            aim(targets, node, name, False)
        here = replace(around.within(side.results, known), ranges=ranges, free=free)
        checks = (schedule({}, {}, here, Purpose("branch", checks=group)) for group in in_turn(side.checks))
        plans.append((*checks, in_most_memory(schedule(targets, updated, here, Purpose("branch")), here)))
        free = joined((*free, *plans[-1][-1].arena))
    return Branches(graph, (plans[0], plans[1]))


def _held_workspaces(held: Mapping[tuple[Node, str], Buffer]) -> dict[Node, tuple[Buffer, ...]]:
    """The workspaces of each call, in order."""
    found: dict[Node, tuple[Buffer, ...]] = {}
    for (node, role), buffer in held.items():
        if role.startswith("workspace"):
            found[node] = (*found.get(node, ()), buffer)
    return found


def workspaces_of(nest: Nest) -> list[Workspace]:
    """What the function of a call uses while it runs."""
    if nest.kind != "call":
        return []
    call, node = call_of(nest.roots[0]), called(nest.roots[0])
    return [] if call is None else [each for each in call.passed(node) if isinstance(each, Workspace)]


def in_most_memory(plan: Plan, around: Around) -> Plan:
    """The plan of a body, with memory for the most that sizes may be which are known within it only."""
    most = most_of(around.ranges)
    return replace(plan, arena=tuple(largest(slot, most) for slot in plan.arena))


def in_turn(checks: Sequence[Guard]) -> list[list[Guard]]:
    """Checks, in groups that are carried out one after the other: those of what is computed from more than sizes may
    need that the ones before them hold."""
    groups: list[list[Guard]] = []
    for guard in checks:
        alone = not all(map(is_size, guard_sides(guard)))
        if alone or not groups or not all(is_size(side) for side in guard_sides(groups[-1][0])):
            groups.append([])
        groups[-1].append(guard)
    return groups


def aim(targets: dict[Node, str], node: Node, name: str, is_row: bool) -> None:
    """Say where a value of a body goes. It is computed there, or only copied: a row of an output is not where a value
    is changed, or added up, in a place of its own."""
    may_be = node not in targets and node.op not in LEAVES and node.op is not ITEM
    direct = may_be and (not is_row or isinstance(node.op.lower(node), Scalar | View | Call))
    targets[node if direct else Node(COPY, (node,), {"to": name}, node.type, node.name)] = name


def is_local(nest: Nest, node: Node, depth: int, needed: frozenset[Node]) -> bool:
    """Whether a value is a name in the source: a scalar, or made and read in one iteration of all its loops."""
    if node in needed or nest.kind not in ("loops", "full reduction"):
        return False
    return not node.ndim or depth == node.ndim
