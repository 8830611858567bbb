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

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from graphc.codegen.schedule.drafts import writes_one
from graphc.codegen.schedule.materialize import Nests
from graphc.codegen.schedule.nodes import (
    Sizing,
    buffer_view,
    call_fails,
    call_node,
    call_of,
    index_element,
    loop_vars,
    lowering_of,
)
from graphc.codegen.schedule.plan import COPY, NestDraft, Use
from graphc.codegen.schedule.ranges import gathered
from graphc.ir.body import ITEM, nodes_within, outputs_of
from graphc.ir.lowering import Branch, Repeat, Scalar, Writes
from graphc.ir.node import INPUT, LEAVES, Index, Node, Size
from graphc.ir.walk import node_set, reachable
from graphc.loopir import ir, operators
from graphc.ops.branch import given_sizes
from graphc.ops.scan import loop_of


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
    nodes = reachable([node], lambda each: each.args if isinstance(lowering_of(each), Scalar) else ())
    return {each for each in nodes if each.op in LEAVES}


def conflicts(nests: Nests) -> list[str]:
    """The buffers that cannot be written in place: their own nest reads an old value at another index, or a nest that
    may fail comes later, when the old values must still be there. The states of a scan end with the call and never
    conflict."""
    wrong = list[str]()
    failing = (
        []
        if nests.goals.purpose.in_step
        else [number for number, draft in nests.drafts.by_number.items() if may_fail(nests, draft)]
    )
    for result, older in nests.goals.older.items():
        buffer, old = nests.goals.targets[result], older[-1]
        writer = nests.uses.nest_of[result]
        draft = nests.drafts.by_number[writer]
        before = [nests.uses.nest_of[old]] if len(older) > 1 else []
        for use in (*nests.uses.of_leaves.get(old, ()), *nests.uses.of_stored.get(old, ())):
            if use.nest != writer:
                before.append(use.nest)
            elif not may_change(nests, draft, old, use):
                wrong.append(buffer)
        for number in before:
            if number == writer or nests.drafts.is_later(number, writer):
                wrong.append(buffer)
            else:
                nests.drafts.depend(number, writer)
        for number in failing if len(older) == 1 else ():
            if number == writer and writes_within(nests, draft, old):
                continue
            if number == writer or nests.drafts.is_later(number, writer):
                wrong.append(buffer)
            else:
                nests.drafts.depend(number, writer)
    return wrong


def may_change(nests: Nests, draft: NestDraft, old: Node, use: Use) -> bool:
    """Tell whether a nest that reads a value may write its result over it: the nest reads only the element that it
    writes, writes a single element, starts from the value (a scan), or orders its own reads and writes (a branch)."""
    if draft.number in nests.scans:
        graph = nests.scans[draft.number]
        return graph.loop.initial.count(old) == 1 and old not in graph.sources.values() and use.index == use.path
    if draft.kind == "loops":
        return use.index == draft.index
    if draft.kind == "full reduction" or (draft.in_place and writes_one(draft.roots[0])):
        return True
    return writes_within(nests, draft, old)


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
    """Chains of values that share one buffer. Each value of a chain is the one before with some elements changed, and
    all that reads the one before comes earlier, or reads other elements; so only the first nest copies what was in the
    buffer. Maps each member to its chain, in order."""
    chain_of: dict[Node, tuple[Node, ...]] = {}
    place = {draft.number: position for position, draft in enumerate(order)}
    for draft in order:
        for before, node in () if draft.in_place else overwriting(nests, draft):
            uses = nests.uses.of_stored.get(before, ())
            if not uses or before in nests.goals.targets or nests.goals.is_update(node):
                continue
            if nests.draft_of(before).kind not in MADE_OVER or not may_be_over(uses, node, draft, place):
                continue
            for use in uses:
                nests.drafts.depend(use.nest, draft.number)
            draft.in_place = draft.kind != "steps"
            chain = (*chain_of.get(before, (before,)), node)
            chain_of |= dict.fromkeys(chain, chain)
    return chain_of


def may_be_over(uses: Sequence[Use], node: Node, draft: NestDraft, place: Mapping[int, int]) -> bool:
    """Tell whether a nest may make a value over the one before, which has these uses; `place` is the order of nests."""
    indices = [use.index for use in uses if use.nest == draft.number]
    if draft.kind != "writes":
        return len(indices) == len(uses) == 1
    indices.remove(draft.vars)  # its copy
    return all(place[use.nest] <= place[draft.number] for use in uses) and (not indices or keeps_order(node, indices))


def keeps_order(node: Node, indices: Iterable[Index]) -> bool:
    """Tell whether a value that changes a part of another one may be computed over it although elements at these
    indices are read for it: each is the one that is written then, or one outside of the part."""
    lowering = lowering_of(node)
    assert isinstance(lowering, Writes)
    parts = [region for region in lowering.regions(node) if not region.is_copy]
    if len(parts) != 1:
        return False
    path = loop_vars(len(parts[0].sizes))
    written = parts[0].target(path, index_element)
    counted = [var for position in written for var in terms_of(position) if isinstance(var, ir.Var)]
    if sorted(var.name for var in counted) != sorted(var.name for var in path):
        return False  # an element may be written twice
    return all(index == written or any(map(are_apart, index, written)) for index in indices)


def are_apart(read: ir.Expr, written: ir.Expr) -> bool:
    """Tell whether two positions along an axis differ, whatever the loops count."""
    counts, others = Counter[ir.Expr](), Counter[ir.Expr]()
    for position, sign in ((written, 1), (read, -1)):
        for term, factor in terms_of(position).items():
            if isinstance(term, ir.Var):
                counts[ir.Opaque(sign, (term,), ir.INDEX)] += sign * factor  # two loops, or two iterations of one
            else:
                others[term] += sign * factor
    difference = others.pop(ir.ONE, 0)
    if any(others.values()):
        return False
    return (difference > 0 and min(counts.values(), default=0) >= 0) or (
        difference < 0 and max(counts.values(), default=0) <= 0
    )


def terms_of(position: ir.Expr) -> Counter[ir.Expr]:
    """A position as a sum: of each term so many, of 1 the number that is added."""
    if (number := ir.int_value(position)) is not None:
        return Counter({ir.ONE: number})
    if isinstance(position, ir.Apply) and position.op is operators.ADD:
        left, right = map(terms_of, position.args)
        left.update(right)
        return left
    return Counter({position: 1})


MADE_OVER = ("loops", "writes", "call", "steps")
"""The kinds of nests over whose results others may be made."""


def overwriting(nests: Nests, draft: NestDraft) -> list[tuple[Node, Node]]:
    """The operands of a nest that may become results of it, and these results."""
    if draft.kind in ("writes", "steps"):
        pairs = [(overwritten_value(root), root) for root in draft.roots]
        return [(old, root) for old, root in pairs if old is not None and old.op not in LEAVES]
    if draft.kind != "call":
        return []
    call, node = call_of(draft.roots[0]), call_node(draft.roots[0])
    if call is None or call.overwritten is None:
        return []
    operand, result = node.args[call.overwritten[0]], outputs_of(node)[call.overwritten[1]]
    if nests.goals.purpose.of == "step" and result in nests.goals.targets:
        return []  # it goes to a row of an output, or to a state: the operand is no part of either
    return [(operand, result)] if buffer_view(operand, nests.goals.sizing).base is operand else []


def overwritten_value(node: Node) -> Node | None:
    """The value whose buffer a node may reuse: the array of which it changes elements, or the initial value of the loop
    whose last state it is. None for other nodes."""
    lowering = lowering_of(node)
    if isinstance(lowering, Writes):
        return node.args[0] if any(region.is_copy for region in lowering.regions(node)) else None
    if node.op is not ITEM or not node.ndim:
        return None
    whole, index = node.args[0], node.attrs["index"]
    lowering = lowering_of(whole)
    if isinstance(lowering, Repeat):
        initial = loop_of(whole.args, whole.attrs).initial
        return initial[index] if index < len(initial) else None
    if not isinstance(lowering, Branch):
        return None
    first, *others = (oldest(body.results[index]) for body in (lowering.then, lowering.orelse))
    if first in lowering.then.params and others == [first]:
        return whole.args[1 + lowering.then.params.index(first)]
    return None


def oldest(node: Node) -> Node:
    """The first value in a line of values, each made over the one before."""
    while (before := overwritten_value(node)) is not None:
        node = before
    return node


def versions(leaf: Node, last: Node) -> tuple[Node, ...]:
    """The values from a leaf to its last version, each made over the one before; () where there is no such line."""
    newest_first = [last]
    while newest_first[-1] is not leaf:
        before = overwritten_value(newest_first[-1])
        if before is None:
            return ()
        newest_first.append(before)
    return tuple(reversed(newest_first))


def with_versions(
    targets: Mapping[Node, str], overwritten: Mapping[str, Node], deferred: Container[str], in_step: bool
) -> tuple[dict[Node, str], dict[Node, tuple[Node, ...]]]:
    """The targets, and for each result in an overwritten buffer what lay there before. Where a state of a scan is
    changed several times in a step, each version is a target: all are made in the state's buffer."""
    goals: dict[Node, str] = {}
    older: dict[Node, tuple[Node, ...]] = {}
    for node, buffer in targets.items():
        leaf = overwritten.get(buffer)
        if leaf is None:
            goals[node] = buffer
            continue
        line = versions(leaf, node) if in_step and buffer not in deferred else ()
        if len(line) < 2 or any(each in targets for each in line[1:-1]):
            line = leaf, node
        for place, each in enumerate(line[1:], 1):
            goals[each] = buffer
            older[each] = line[:place]
    return goals, older


def deferred_targets(targets: Mapping[Node, str], deferred: frozenset[str]) -> dict[Node, str]:
    """The targets, with every deferred update computed elsewhere first, and copied to its buffer."""
    goals = {node: buffer for node, buffer in targets.items() if buffer not in deferred}
    for node, buffer in targets.items():
        if buffer in deferred:
            goals[Node(COPY, (node,), {"to": buffer}, node.type, node.name)] = buffer
    return goals


def describe_update(leaf: Node, deferred: bool, of: str) -> str:
    """Describe in words how a buffer of the caller, or of the body, gets its new value."""
    if deferred:
        return "copied at the end"
    if of == "step":
        return "the state for the next step, in place"
    return "in the array of an input, which is mutable" if leaf.op is INPUT and of == "kernel" else "in place"
