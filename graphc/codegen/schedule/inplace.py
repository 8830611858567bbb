"""Results that are written in place: in the arrays of mutable inputs, in the buffers of variables, over operands.

In: the results and inputs of a kernel; then its nests. Out: `donations`, the input whose array each result may take;
`conflicts`, the buffers that cannot be written in place after all, because old values are still read: their updates
are deferred, computed into a temporary and copied at the very end; `chains`, values that share one buffer since each
is made over the one before. As an example, for a shared variable `w`:

    updates=[(w, w - g)]          in place: the nest of `w - g` reads w at the element that it writes
    updates=[(w, w[::-1] - g)]    deferred: it reads other elements
    T.inc_subtensor(T.inc_subtensor(zeros[0], a)[1], b)    a chain: one buffer, and no copy between the two
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from graphc.codegen.schedule.materialize import Nests
from graphc.codegen.schedule.nodes import buffer_view, call_fails, call_node, call_of, gathered, lowering_of
from graphc.codegen.schedule.plan import COPY, NestDraft
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir.body import nodes_within, outputs_of
from graphc.ir.lowering import Repeat, Scalar, Writes
from graphc.ir.node import INPUT, LEAVES, Node, Size
from graphc.ir.walk import node_set, reachable
from graphc.ops.branch import given_sizes


def donations(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    mutable: Sequence[int],
    sizing: Sizing,
    refused: Container[tuple[int, int]],
) -> dict[int, int]:
    """For outputs, by number, the mutable input whose array each may take: one that it is computed from element by
    element if there is one, else any of its dtype and sizes."""
    alike: dict[tuple[str, tuple[Size, ...]], list[int]] = {}
    for number in mutable:
        leaf = inputs[number]
        alike.setdefault((leaf.type.dtype, sizing.shape(leaf)), []).append(number)
    donated: dict[int, int] = {}
    seen: set[Node] = set()
    for place, output in enumerate(outputs):
        if output.op in LEAVES or output in seen or not output.ndim:
            continue
        seen.add(output)
        free = [
            number
            for number in alike.get((output.type.dtype, sizing.shape(output)), ())
            if number not in donated.values() and (place, number) not in refused
        ]
        if free:
            near = leaves_of_element(output) if len(free) > 1 else ()
            donated[place] = next((number for number in free if inputs[number] in near), free[0])
    return donated


def leaves_of_element(node: Node) -> set[Node]:
    """The leaves of which an element of `node` needs the element at the same index, as far as scalar ops tell."""
    found = reachable([node], lambda each: each.args if isinstance(lowering_of(each), Scalar) else ())
    return {each for each in found if each.op in LEAVES}


def conflicts(nests: Nests) -> list[str]:
    """The buffers that cannot be written in place: their own nest reads the old value at another index, or what may
    fail, and must leave everything as it was, comes after. The states of a scan are gone where the call ends."""
    wrong, of_step = list[str](), nests.goals.purpose.of == "step"
    failing = [] if of_step else [number for number, draft in nests.drafts.by_number.items() if may_fail(nests, draft)]
    for buffer, leaf in nests.goals.overwritten.items():
        writer = next((nests.uses.nest_of[r] for r, target in nests.goals.targets.items() if target == buffer), None)
        if writer is None:
            continue
        draft = nests.drafts.by_number[writer]
        within = writes_within(nests, draft, leaf)
        for use in nests.uses.of_leaves.get(leaf, []):
            if use.nest != writer:
                nests.drafts.depend(use.nest, writer)
            elif not within and draft.kind != "full reduction" and (use.index != draft.index or draft.kind != "loops"):
                wrong.append(buffer)
        for number in failing:
            if number == writer and within:
                continue
            if number == writer or nests.drafts.is_later(number, writer):
                wrong.append(buffer)
            else:
                nests.drafts.depend(number, writer)
    return wrong


def may_fail(nests: Nests, draft: NestDraft) -> bool:
    """Tell whether a nest may find that the kernel has to be left. Scans are left when the call is interrupted."""
    if draft.number in nests.branches:
        sides = nests.branches[draft.number].sides
        return any(side.checks or any(map(may_refuse, side.results)) for side in sides)
    return draft.kind in ("check", "guard", "steps") or any(map(call_fails, draft.roots))


def may_refuse(result: Node) -> bool:
    """Tell whether a result of a body may fail for another reason than the body's guards."""
    nodes = node_set([result])
    computed = (node for node in (*nodes, *nodes_within(nodes)) if node.args)
    return any(call_fails(n) or gathered(n) or isinstance(lowering_of(n), Repeat) for n in computed)


def writes_within(nests: Nests, draft: NestDraft, leaf: Node) -> bool:
    """Tell whether a nest is a branch whose bodies themselves keep the order of reads and writes of a buffer."""
    if draft.kind != "branch":
        return False
    graph = nests.branches[draft.number]
    return list(graph.sources.values()).count(leaf) < 2 and leaf not in given_sizes(graph.node)


def chains(nests: Nests, order: Sequence[NestDraft]) -> dict[Node, tuple[Node, ...]]:
    """Values of which each is the one before with some elements written, or made of it where that stands, which nothing
    else reads: they share one buffer, and no nest but the first copies what was there. For each member its chain, in
    order."""
    found: dict[Node, tuple[Node, ...]] = {}
    for draft in order:
        pair = overwriting(nests, draft)
        if pair is None or draft.in_place:
            continue
        before, node = pair
        uses = nests.uses.of_stored.get(before, ())
        if len(uses) != 1 or uses[0].nest != draft.number or before in nests.goals.targets:
            continue
        if nests.draft_of(before).kind in ("loops", "writes", "call") and not nests.goals.is_update(node):
            draft.in_place = True
            chain = (*found.get(before, (before,)), node)
            found |= dict.fromkeys(chain, chain)
    return found


def overwriting(nests: Nests, draft: NestDraft) -> tuple[Node, Node] | None:
    """The operand of a nest that may become one of its results, and that result."""
    if draft.kind == "writes":
        (node,) = draft.roots
        lowering = lowering_of(node)
        copies = isinstance(lowering, Writes) and any(region.copies for region in lowering.regions(node))
        return (node.args[0], node) if copies else None  # what is joined is longer than its first part
    if draft.kind != "call":
        return None
    call, node = call_of(draft.roots[0]), call_node(draft.roots[0])
    if call is None or call.overwritten is None:
        return None
    operand, result = node.args[call.overwritten[0]], outputs_of(node)[call.overwritten[1]]
    if nests.goals.purpose.of == "step" and result in nests.goals.targets:
        return None  # it goes to a row of an output, or to a state: the operand is no part of either
    return (operand, result) if buffer_view(operand, nests.goals.sizing).base is operand else None


def deferred_targets(targets: Mapping[Node, str], deferred: frozenset[str]) -> dict[Node, str]:
    """The targets, with every deferred update computed elsewhere first, and copied to its buffer."""
    goals = {node: buffer for node, buffer in targets.items() if buffer not in deferred}
    for node, buffer in targets.items():
        if buffer in deferred:
            goals[Node(COPY, (node,), {"to": buffer}, node.type, node.name)] = buffer
    return goals


def how_written(leaf: Node, deferred: bool, of: str) -> str:
    """The way in which a buffer that is there before the call, or the body, gets its new value, in words."""
    if deferred:
        return "copied at the end"
    if of == "step":
        return "the state for the next step, in place"
    return "in the array of an input, which is mutable" if leaf.op is INPUT and of == "kernel" else "in place"
