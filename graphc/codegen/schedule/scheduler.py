"""The plan of a kernel: what is stored and fused, what shares loops and memory, and in which order.

In: a rewritten graph with the buffers its results go to, and its sizing. Out: a `Plan`: nests in order, the place of
every stored value with the reason for it, buffers shared between temporaries. Nothing here knows how a loop is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.codegen.schedule.accumulators import target_of
from graphc.codegen.schedule.fusion import share
from graphc.codegen.schedule.memory import Kept, lay_out
from graphc.codegen.schedule.nests import Scheduler
from graphc.codegen.schedule.plan import COPY, Draft, Nest, Place, Plan, lines_of, lowering_of, nests_of
from graphc.codegen.schedule.sizes import Sizing
from graphc.errors import CycleError
from graphc.ir.node import INPUT, Fold, Node, Recur
from graphc.startup.record import replace


def schedule(
    targets: Mapping[Node, str],
    owned: Mapping[str, Node],
    sizing: Sizing,
    size_names: Mapping[Node, str],
    fresh: Callable[[str], str],
) -> Plan:
    """The plan for computing each node of `targets` into its buffer.

    `owned`: those of the buffers that belong to shared variables or mutable inputs, with the variable's leaf.
    `size_names`: what a size is called in the source. `fresh` gives names to temporaries. An update that cannot be made
    in place is computed into a temporary and copied at the very end.
    """
    staged: frozenset[str] = frozenset()
    expected: frozenset[Node] = frozenset()
    scheduler = Scheduler(_stage(targets, staged), owned, sizing, staged)
    while True:
        scheduler.run()
        wrong = [buffer for buffer in scheduler.conflicts() if buffer not in staged]
        if not wrong and not expected and (scheduler.has_large_nests() or scheduler.near()):
            expected = frozenset(scheduler.places) - scheduler.near()
            if expected:
                scheduler = Scheduler(scheduler.targets, owned, sizing, staged, expected, scheduler)
                continue
        if not wrong:
            try:
                order = scheduler.ordered()
                break
            except CycleError:
                wrong = [buffer for buffer in owned if buffer not in staged][:1]
                if not wrong:
                    raise
        staged |= set(wrong)
        scheduler = Scheduler(_stage(targets, staged), owned, sizing, staged, expected)
    return _finish(scheduler, order, size_names, fresh)


def _stage(targets: Mapping[Node, str], staged: frozenset[str]) -> dict[Node, str]:
    """The targets, with every staged update computed elsewhere first and copied to its buffer."""
    goals = {node: buffer for node, buffer in targets.items() if buffer not in staged}
    for node, buffer in targets.items():
        if buffer in staged:
            goals[Node(COPY, (node,), {"to": buffer}, node.type, node.name)] = buffer
    return goals


def _finish(
    scheduler: Scheduler, order: Sequence[Draft], size_names: Mapping[Node, str], fresh: Callable[[str], str]
) -> Plan:
    """Name the temporaries and write the plan down."""
    access = scheduler.access()
    sharing = share(order, access)
    position = {nest.number: place for place, part in enumerate(sharing.parts) for nest in nests_of(part)}
    nests = [nest for part in sharing.parts for nest in nests_of(part)]
    sizing = scheduler.sizing
    places = dict(scheduler.places)
    kept: list[Kept] = []
    keepers: list[tuple[Node, bool]] = []
    for nest in nests:
        now = position[nest.number]
        for node in nest.roots:
            place, depth = places[node], sharing.depths[node]
            shape = sizing.shape(node)[depth:]
            rows = sizing.shape(node)[0] if depth else None
            added = target_of(node, nest, size_names, sizing) is not None
            lowering = lowering_of(node)
            is_carried = nest.kind == "fold" and isinstance(lowering, Fold) and lowering.dtypes[0] != node.dtype
            if place.buffer is None and not is_local(nest, node, depth, access.needed):
                last = max((position[use.nest] for use in scheduler.stored_uses[node]), default=now)
                kept.append(Kept(node.dtype, shape, now, last, rows, added and not is_carried))
                keepers.append((node, False))
            if isinstance(lowering, Fold) and is_carried:
                kept.append(Kept(lowering.dtypes[0], shape, now, now, rows, added))
                keepers.append((node, True))
            if isinstance(lowering, Recur) and lowering.axis != node.ndim - 1:
                kept.append(Kept(lowering.dtype, sizing.shape(node)[lowering.axis + 1 :], now, now))
                keepers.append((node, True))
    arena = lay_out(kept, fresh)
    accumulators: dict[Node, str] = {}
    for (node, is_accumulator), buffer in zip(keepers, arena.buffers, strict=True):
        if is_accumulator:
            accumulators[node] = buffer
        else:
            places[node] = Place(buffer, places[node].reason)
    in_place = {b: how_written(leaf, b in scheduler.staged) for b, leaf in scheduler.owned.items()}
    plan = Plan(
        sharing.parts,
        places,
        arena,
        scheduler.bounds,
        sharing.depths,
        sharing.apart,
        accumulators,
        in_place,
        scheduler.staged,
        sizing,
        (),
    )
    return replace(plan, lines=tuple(lines_of(plan, size_names)))


def how_written(leaf: Node, staged: bool) -> str:
    """How a buffer that is there before the call gets its new value, for the reader of a plan."""
    if staged:
        return "copied at the end"
    return "in the array of an input, which is mutable" if leaf.op is INPUT else "in place"


def is_local(nest: Nest, node: Node, depth: int, needed: frozenset[Node]) -> bool:
    """Whether a value is a name in the source: a scalar, or made and read in one turn of all its loops."""
    if node in needed or nest.kind not in ("loops", "total"):
        return False
    return not node.ndim or depth == node.ndim
