"""Which nests share their outer loops: one pass over memory where one is enough.

In: the nests of a plan in an order in which they may run, what each reads and at which index, and which must come
before which. Out: the same nests as a tree of shared loops, for every materialised value the number of loops within
which it is made and read, and for neighbours over the same sizes why they were not joined.

Two nests may share their first `depth` loops where all that one of them needs of the other is made in the same
iteration of these loops. A value that is made and read in the same iterations need not outlive them: it becomes a local
name, or a buffer of what is left of its sizes, a row that is still in cache when it is read (array contraction: Sarkar
and Gao 1991). Which nests go together is decided greedily, as in typed fusion (Kennedy and McKinley 1993): each nest is
merged into those before it, latest first, that no third nest separates from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphc.codegen.schedule.labels import UNLABELLED, Labels
from graphc.codegen.schedule.plan import Draft, Kind, Nest, Part, Rows, Use, first_reduced, nests_of, variables_of
from graphc.ir.node import Index, Node, Size
from graphc.startup.record import fresh, record

NESTS_BACK = 16
"""How many loops back one is looked for that a nest may share."""
BODY_OPS = 160
"""Ops of an innermost loop that several nests share: compile time grows faster than the gain."""
SHARED_OPS = 480
"""Ops of all nests that share a loop."""
VECTOR_COST = 10.0
"""Ops (an addition being 1) worth a pass of their own over memory, in which they vectorise."""
ALONE: Mapping[Kind, str] = {
    "call": "an external function is called for all at once",
    "check": "all indices are checked before one is used",
    "writes": "it is built by several writes",
    "recurrence": "each of its elements needs the one before",
    "segments": "its sums have as many terms as a call says",
    "guard": "it is checked before anything is computed",
    "steps": "its steps come one after the other",
    "branch": "it may not be carried out at all",
}
"""Kinds of nests that share no loop with others, and why."""


@record()
class Access:
    """What nests do to memory: `reads` of each nest, the nests that read each materialised value, the leaf that each
    result overwrites, who must come after whom."""

    reads: Mapping[int, Sequence[tuple[Node, Index]]]
    readers: Mapping[Node, set[int]]
    overwrites: Mapping[Node, Node]
    after: Mapping[int, set[int]]
    needed: frozenset[Node]
    """Values whose address is given away: they keep a buffer of all their elements."""
    labels: Labels = UNLABELLED


@record()
class Sharing:
    """`depths`: for each materialised value, in how many of its loops it is made and read in the same iteration."""

    parts: tuple[Part, ...]
    depths: Mapping[Node, int]
    apart: Mapping[int, tuple[int, str]]
    """For a nest: another before it over the same sizes, and why they share no loop."""
    blocks: Mapping[Node, Size] = fresh(factory=dict)
    """For results of functions of which there is memory for some rows only: for how many (blocks.py)."""
    over: Mapping[Node, Node] = fresh(factory=dict)
    """For results of functions the value that is computed over them, row by row."""


@record(frozen=False)
class _Group:
    """Nests that share a loop, in the order of the plan."""

    members: list[Draft]
    ops: int
    by_rows: bool
    reads: set[Node] = fresh(factory=set)

    @property
    def sharing(self) -> bool:
        return all(draft.kind not in ALONE for draft in self.members)


def share(order: Sequence[Draft], access: Access) -> Sharing:
    """The nests of `order` as a tree of shared loops."""
    place = {draft.number: position for position, draft in enumerate(order)}
    parts = tuple(_share(order, 0, access, place))
    loops_around: dict[int, tuple[Rows, ...]] = {}
    for part in parts:
        _note_loops(part, (), loops_around)
    depths = {}
    for draft in order:
        for root in draft.roots:
            depths[root] = _depth(root, draft, loops_around, access)
    return Sharing(parts, depths, dict(_reasons_apart(parts, order, access)))


def _note_loops(part: Part, around: tuple[Rows, ...], loops_around: dict[int, tuple[Rows, ...]]) -> None:
    if isinstance(part, Nest):
        loops_around[part.number] = around
        return
    for inner in part.body:
        _note_loops(inner, (*around, part), loops_around)


def _depth(root: Node, draft: Draft, loops_around: Mapping[int, tuple[Rows, ...]], access: Access) -> int:
    """In how many loops the value `root` of a nest is made and read in the same iteration."""
    if root in access.needed or draft.kind in ALONE or not root.ndim:
        return 0
    around = loops_around[draft.number]
    depth = root.ndim if draft.kind == "loops" else len(around)
    for number in access.readers[root] - {draft.number}:
        depth = min(depth, _common(around, loops_around[number]))
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
        merged = _merged(first, then, members)
        groups[there : here + 1] = [*earlier, merged, *later]
        here = there + len(earlier)


def _merged(first: _Group, then: _Group, members: list[Draft]) -> _Group:
    return _Group(members, first.ops + then.ops, first.by_rows or then.by_rows, first.reads | then.reads)


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
    if hindrance(first, then, depth, access):
        return False
    return not any(objection(a, b, depth + 1, access) for a in first.members for b in then.members)


def hindrance(first: _Group, then: _Group, depth: int, access: Access) -> str | None:
    """Why groups that may share a loop should not: they do not go over memory less often, or are too large to
    compile together. None where they should.

    Loops over all elements are left as they are, so that short rows do not cut them up; full reductions among
    them are only brought together, and become one loop when they are written.
    """
    members = (*first.members, *then.members)
    full = all(draft.kind == "full reduction" for draft in members)
    if not (depth or first.by_rows or then.by_rows or full):
        return "each is one loop over all elements"
    made = {root for draft in first.members for root in draft.roots}
    if not any(node.ndim for node in then.reads & (first.reads | made)):
        return "they read nothing in common"
    if any(is_vector_work(draft, depth, access) for draft in members):
        return "one of them does work that vectorises"
    innermost = depth and all(len(draft.space) == depth + 1 for draft in members)
    limit = BODY_OPS if innermost else SHARED_OPS
    return f"together they have more than {limit} ops" if first.ops + then.ops > limit else None


def goes_by_rows(draft: Draft, reads: Iterable[tuple[Node, Index]]) -> bool:
    """Whether a nest is more than one loop over all elements in the order in which they lie in memory."""
    if draft.kind == "column reduction":
        return True
    inner = any(node.ndim and not variables_of(index) <= set(draft.vars) for node, index in reads)
    return inner or (len(draft.space) > 1 and any(node.ndim and index != draft.index for node, index in reads))


def is_vector_work(draft: Draft, depth: int, access: Access) -> bool:
    """Whether a nest does enough in an iteration of loop `depth` that it should keep the loop to itself: where no
    loop is left inside the shared one, its work is done for one element at a time instead of for a vector."""
    if depth or len(draft.space) != 1 or draft.cost <= VECTOR_COST:
        return False
    return not goes_by_rows(draft, access.reads[draft.number])


# What forbids -------------------------------------------------------------------------------------------------------


def objection(first: Draft, then: Draft, depth: int, access: Access) -> str | None:
    """Why two nests, of which `then` comes later, may not share their first `depth` loops; None where they may."""
    for draft in (first, then):
        if draft.kind in ALONE:
            return ALONE[draft.kind]
        if draft.segments is not None:
            return "it goes over segments"
    if min(deepest(first), deepest(then)) < depth or first.space[:depth] != then.space[:depth]:
        return "they go over different sizes"
    if first.space[depth - 1] == 1:
        return "the loop has one iteration"
    iteration = then.index[:depth]
    for node, index in access.reads[then.number]:
        if node in first.roots and (index[:depth] != iteration or depth > complete_within(first, node)):
            return f"it needs more of {access.labels(node)} than the same iteration of the loop makes"
    if depth > 1 and any(
        draft.kind == "column reduction" and first_reduced(draft.roots[0]) == depth - 1 for draft in (first, then)
    ):
        return "a reduction takes several iterations of the loop at a time"
    updated = {access.overwrites[root]: root for root in then.roots if root in access.overwrites}
    for node, index in access.reads[first.number]:
        if node in updated and (index[:depth] != iteration or then.kind != "loops"):
            return f"it overwrites {access.labels(node)} where the other still reads it"
    return None


def deepest(draft: Draft) -> int:
    """How many of its loops a nest may share. A full reduction keeps its last loop, which then vectorises."""
    return max(1, len(draft.space) - 1) if draft.kind == "full reduction" else len(draft.space)


def complete_within(draft: Draft, root: Node) -> int:
    """In how many loops an element that a nest stores is complete at the end of their iteration."""
    return len(draft.space) if draft.kind == "loops" else first_reduced(root)


def _reasons_apart(
    parts: Sequence[Part], order: Sequence[Draft], access: Access
) -> Iterable[tuple[int, tuple[int, str]]]:
    """Why parts at the top share no loop with the last one before that begins with a loop of the same size."""
    drafts = {draft.number: draft for draft in order}
    groups = [_joined([_group(drafts[nest.number], 0, access) for nest in nests_of(part)]) for part in parts]
    for position, then in enumerate(groups):
        size = then.members[0].space[:1]
        for back in range(position - 1, max(-1, position - 1 - NESTS_BACK), -1):
            first = groups[back]
            if size and first.members[0].space[:1] == size and (first.sharing or then.sharing):
                between = groups[back + 1 : position]
                yield then.members[0].number, (first.members[0].number, _reason_apart(first, then, between, access))
                break


def _joined(groups: Sequence[_Group]) -> _Group:
    first, *rest = groups
    for group in rest:
        first = _merged(first, group, [*first.members, *group.members])
    return first


def _reason_apart(first: _Group, then: _Group, between: Sequence[_Group], access: Access) -> str:
    """Why two groups share no loop."""
    for a in first.members:
        for b in then.members:
            if reason := objection(a, b, 1, access):
                return reason
    later, _ = _between(between, first, access.after)
    for group in later:
        if _follows(then, group, access.after):
            return f"{' and '.join(access.labels(root) for root in group.members[0].roots)} comes between"
    return hindrance(first, then, 0, access) or "others stand closer"


def reads_of(uses: Mapping[Node, Sequence[Use]], numbers: Iterable[int]) -> dict[int, list[tuple[Node, Index]]]:
    """What each nest reads of materialised values and leaves, at which index."""
    reads: dict[int, list[tuple[Node, Index]]] = {number: [] for number in numbers}
    for node, wanted in uses.items():
        for use in dict.fromkeys((use.nest, use.index) for use in wanted):
            reads[use[0]].append((node, use[1]))
    return reads
