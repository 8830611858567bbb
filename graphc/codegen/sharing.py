"""Which nests share their outer loops: one pass over memory where one is enough.

In: the nests of a plan in an order in which they may run, what each reads and at which index, and which must come
before which. Out: the same nests as a tree of shared loops, for every stored value the number of loops within which it
is made and read, and for neighbours over the same sizes why they were not joined.

Two nests may share their first `depth` loops where all that one of them needs of the other is made in the same turn of
these loops. A value that is made and read in the same turns need not outlive them: it becomes a local name, or a
buffer of what is left of its sizes, a row that is still in cache when it is read (array contraction: Sarkar and Gao
1991). Which nests go together is decided greedily, as in typed fusion (Kennedy and McKinley 1993): each nest is
merged into those before it, latest first, that no third nest separates from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graphc.codegen.plan import Draft, Kind, Nest, Part, Rows, Use, first_reduced, label, nests_of, variables_of
from graphc.ir.node import Index, Node

NESTS_BACK = 16
"""How many loops back one is looked for that a nest may share."""
BODY_OPS = 160
"""Ops of an innermost loop that several nests share: compile time grows faster than the gain."""
SHARED_OPS = 480
"""Ops of all nests that share a loop."""
SHARING: frozenset[Kind] = frozenset({"loops", "fold", "total"})
"""Kinds of nests that may share a loop with others."""


@dataclass(frozen=True, slots=True)
class Access:
    """What nests do to memory: `reads` of each nest, the nests that read each stored value, the leaf that each result
    overwrites, who must come after whom."""

    reads: Mapping[int, Sequence[tuple[Node, Index]]]
    readers: Mapping[Node, set[int]]
    overwrites: Mapping[Node, Node]
    after: Mapping[int, set[int]]
    needed: frozenset[Node]
    """Values whose address is given away: they keep a buffer of all their elements."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """`depths`: for each stored value, in how many of its loops it is made and read in the same turn."""

    parts: tuple[Part, ...]
    depths: Mapping[Node, int]
    apart: Mapping[int, str]
    """For a nest: why it was not joined with the one before it."""


@dataclass(slots=True)
class _Group:
    """Nests that share a loop, in the order of the plan."""

    members: list[Draft]
    ops: int
    by_rows: bool
    reads: set[Node] = field(default_factory=set)


def share(order: Sequence[Draft], access: Access) -> Sharing:
    """The nests of `order` as a tree of shared loops."""
    place = {draft.number: position for position, draft in enumerate(order)}
    parts = tuple(_share(order, 0, access, place))
    homes: dict[int, tuple[Rows, ...]] = {}
    for part in parts:
        _note_loops(part, (), homes)
    depths = {}
    for draft in order:
        for root in draft.roots:
            depths[root] = _depth(root, draft, homes, access)
    return Sharing(parts, depths, dict(_reasons_apart(parts, order, access)))


def _note_loops(part: Part, around: tuple[Rows, ...], homes: dict[int, tuple[Rows, ...]]) -> None:
    if isinstance(part, Nest):
        homes[part.number] = around
        return
    for inner in part.body:
        _note_loops(inner, (*around, part), homes)


def _depth(root: Node, draft: Draft, homes: Mapping[int, tuple[Rows, ...]], access: Access) -> int:
    """In how many loops the value `root` of a nest is made and read in the same turn."""
    if root in access.needed or draft.kind not in SHARING or not root.ndim:
        return 0
    around = homes[draft.number]
    depth = root.ndim if draft.kind == "loops" else len(around)
    for number in access.readers[root] - {draft.number}:
        depth = min(depth, _common(around, homes[number]))
    if draft.kind != "loops":
        return min(depth, first_reduced(root))
    while 0 < depth < root.ndim and draft.space[depth] == 1:
        depth += 1
    return depth


def _common(left: Sequence[Rows], right: Sequence[Rows]) -> int:
    """How many loops two nests share."""
    return sum(a is b for a, b in zip(left, right, strict=False))


# Groups -------------------------------------------------------------------------------------------------------------


def _share(nests: Sequence[Draft], depth: int, access: Access, place: Mapping[int, int]) -> list[Part]:
    """The parts that nests make which share `depth` loops around them already."""
    groups: list[_Group] = []
    for draft in nests:
        groups.append(_group(draft, depth, access))
        _merge_back(groups, depth, access, place)
    parts: list[Part] = []
    for group in groups:
        first = group.members[0]
        if len(group.members) == 1 or not (depth or group.by_rows):
            parts.extend(draft.nest() for draft in group.members)
        else:
            body = tuple(_share(group.members, depth + 1, access, place))
            parts.append(Rows(depth, first.vars[depth], first.space[depth], body))
    return parts


def _group(draft: Draft, depth: int, access: Access) -> _Group:
    reads = {node for node, index in access.reads[draft.number] if index[: depth + 1] == draft.index[: depth + 1]}
    return _Group([draft], draft.ops, goes_by_rows(draft, access.reads[draft.number]), reads - set(draft.roots))


def _merge_back(groups: list[_Group], depth: int, access: Access, place: Mapping[int, int]) -> None:
    """Merge the last group with those before it that it may share a loop with."""
    here = len(groups) - 1
    for there in range(here - 1, max(-1, here - 1 - NESTS_BACK), -1):
        first, then = groups[there], groups[here]
        if not _may_merge(first, then, depth, access):
            continue
        later, earlier = _between(groups[there + 1 : here], first, access.after)
        if any(_follows(then, group, access.after) for group in later):
            continue
        members = sorted((*first.members, *then.members), key=lambda draft: place[draft.number])
        merged = _Group(members, first.ops + then.ops, first.by_rows or then.by_rows, first.reads | then.reads)
        groups[there : here + 1] = [*earlier, merged, *later]
        here = there + len(earlier)


def _between(
    groups: Sequence[_Group], first: _Group, after: Mapping[int, set[int]]
) -> tuple[list[_Group], list[_Group]]:
    """The groups that must come after `first`, and the others."""
    later: list[_Group] = []
    earlier: list[_Group] = []
    for group in groups:
        must = any(_follows(group, before, after) for before in (first, *later))
        (later if must else earlier).append(group)
    return later, earlier


def _follows(then: _Group, first: _Group, after: Mapping[int, set[int]]) -> bool:
    return any(draft.number in after[earlier.number] for earlier in first.members for draft in then.members)


def _may_merge(first: _Group, then: _Group, depth: int, access: Access) -> bool:
    """Whether two groups may share loop `depth`, and gain by it."""
    if not _worth(first, then, depth):
        return False
    return not any(objection(a, b, depth + 1, access) for a in first.members for b in then.members)


def _worth(first: _Group, then: _Group, depth: int) -> bool:
    """Whether groups that share a loop go over memory less often, and are not too large to compile together.

    Loops over all elements are left as they are, so that short rows do not cut them up; reductions to scalars among
    them are only brought together, and become one loop when they are written.
    """
    totals = all(draft.kind == "total" for draft in (*first.members, *then.members))
    if not (depth or first.by_rows or then.by_rows or totals):
        return False
    ops = first.ops + then.ops
    innermost = all(len(draft.space) == depth + 1 for draft in (*first.members, *then.members))
    if ops > (BODY_OPS if innermost and depth else SHARED_OPS):
        return False
    made = {root for draft in first.members for root in draft.roots}
    return any(node.ndim for node in then.reads & (first.reads | made))


def goes_by_rows(draft: Draft, reads: Iterable[tuple[Node, Index]]) -> bool:
    """Whether a nest is more than one loop over all elements in the order in which they lie in memory."""
    if draft.kind == "fold":
        return True
    inner = any(node.ndim and not variables_of(index) <= set(draft.vars) for node, index in reads)
    return inner or (len(draft.space) > 1 and any(node.ndim and index != draft.index for node, index in reads))


# What forbids -------------------------------------------------------------------------------------------------------


def objection(first: Draft, then: Draft, depth: int, access: Access) -> str | None:
    """Why two nests, of which `then` comes later, may not share their first `depth` loops; None where they may."""
    if first.kind not in SHARING or then.kind not in SHARING:
        return "only loops over elements are joined"
    if min(deepest(first), deepest(then)) < depth or first.space[:depth] != then.space[:depth]:
        return "they go over different sizes"
    if first.space[depth - 1] == 1:
        return "the loop has one turn"
    turn = then.index[:depth]
    for node, index in access.reads[then.number]:
        if node in first.roots and (index[:depth] != turn or depth > complete_within(first, node)):
            return f"it needs more of {label(node)} than the same turn of the loop makes"
    updated = {access.overwrites[root]: root for root in then.roots if root in access.overwrites}
    for node, index in access.reads[first.number]:
        if node in updated and (index[:depth] != turn or then.kind != "loops"):
            return f"it overwrites {label(node)} where the other still reads it"
    return None


def deepest(draft: Draft) -> int:
    """How many of its loops a nest may share. A reduction to a scalar keeps its last loop, which then vectorises."""
    return max(1, len(draft.space) - 1) if draft.kind == "total" else len(draft.space)


def complete_within(draft: Draft, root: Node) -> int:
    """In how many loops an element that a nest stores is complete at the end of their turn."""
    return len(draft.space) if draft.kind == "loops" else first_reduced(root)


def _reasons_apart(parts: Sequence[Part], order: Sequence[Draft], access: Access) -> Iterable[tuple[int, str]]:
    """Why neighbours at the top that begin with a loop of the same size were not joined."""
    drafts = {draft.number: draft for draft in order}
    for before, part in pairwise(parts):
        first, then = drafts[nests_of(before)[-1].number], drafts[nests_of(part)[0].number]
        if not (first.space and then.space and first.space[0] == then.space[0]):
            continue
        reason = next(
            (
                found
                for a in nests_of(before)
                for b in nests_of(part)
                if (found := objection(drafts[a.number], drafts[b.number], 1, access))
            ),
            None,
        )
        yield then.number, reason or _no_gain(before, part, access, drafts)


def _no_gain(before: Part, part: Part, access: Access, drafts: Mapping[int, Draft]) -> str:
    """Why parts that might share a loop do not."""
    one, other = (_grouped([drafts[nest.number] for nest in nests_of(p)], access) for p in (before, part))
    if one.ops + other.ops > SHARED_OPS:
        return f"together they have more than {SHARED_OPS} ops"
    made = {root for draft in one.members for root in draft.roots}
    if not any(node.ndim for node in other.reads & (one.reads | made)):
        return "they read nothing in common"
    return "each is one loop over all elements"


def _grouped(drafts: Sequence[Draft], access: Access) -> _Group:
    groups = [_group(draft, 0, access) for draft in drafts]
    return _Group(list(drafts), sum(g.ops for g in groups), True, {node for g in groups for node in g.reads})


def reads_of(uses: Mapping[Node, Sequence[Use]], numbers: Iterable[int]) -> dict[int, list[tuple[Node, Index]]]:
    """What each nest reads of stored values and leaves, at which index."""
    reads: dict[int, list[tuple[Node, Index]]] = {number: [] for number in numbers}
    for node, wanted in uses.items():
        for use in dict.fromkeys((use.nest, use.index) for use in wanted):
            reads[use[0]].append((node, use[1]))
    return reads
