"""The nests that share outer loops: one pass over memory where one is enough.

In: the nests of a plan in an order in which they may run, what each reads and at which index, and which must come
before which. Out: `Sharing`: the same nests as a tree of shared loops, for every materialised value the number of loops
within which it is made and read, and for neighbours over the same sizes why they were not joined. As an example, of
`y = exp(x); z = y / y.sum(axis=1, keepdims=True)` for a matrix `x`, the nest that stores `y` and the one that stores
`z` become

    SharedLoop(depth=0, var=i, size=x_0, body=(nest of y, nest of z))    depths[y] == 1: a buffer of one row

Two nests may share their first `depth` loops where all that one of them needs of the other is made in the same
iteration of these loops. A value that is made and read in the same iterations need not outlive them: it becomes a local
name, or a buffer of what is left of its sizes, a row that is still in cache when it is read (array contraction: Sarkar
and Gao 1991). Which nests go together is decided greedily, as in typed fusion (Kennedy and McKinley 1993): each nest is
merged into those before it, latest first, that no third nest separates from it.

A product or convolution is a call, and shares no loop; `in_blocks` makes it and the loop that alone reads it one loop
over blocks of rows: in each the call computes some rows, then the loop reads them. So bias, activation and pooling go
over a result that is still in cache. It has memory for one block only, or that of what is computed over it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from graphc.arrays.dtypes import itemsize
from graphc.codegen.schedule.nodes import Sizing, call_of, first_reduced, variables_of
from graphc.codegen.schedule.plan import UNLABELLED, Labels, Nest, NestDraft, NestKind, Part, SharedLoop, Use, nests_of
from graphc.ir import sizes
from graphc.ir.node import Index, Node, Size
from graphc.startup.record import fresh, record, replace

NESTS_BACK = 16
"""The number of loops before a nest that are tried for sharing."""
BODY_OPS = 160
"""Ops of an innermost loop that several nests share: compile time grows faster than the gain."""
SHARED_OPS = 480
"""Ops of all nests that share a loop."""
VECTOR_COST = 10.0
"""Ops (an addition being 1) worth a pass of their own over memory, in which they vectorise."""
ALONE: Mapping[NestKind, str] = {
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
    """Reads and writes of memory: the `reads` of each nest, the nests that are `readers` of each materialised value,
    the values that each result overwrites, the nests that must come `after` a nest."""

    reads: Mapping[int, Sequence[tuple[Node, Index]]]
    readers: Mapping[Node, set[int]]
    overwrites: Mapping[Node, Sequence[Node]]
    after: Mapping[int, set[int]]
    whole: frozenset[Node]
    """Values that keep a buffer of all their elements: results, and what calls take the address of."""
    labels: Labels = UNLABELLED


@record()
class Sharing:
    """Nests as a tree of shared loops. `depths`: for each materialised value the number of its loops within whose
    iteration it is made and read."""

    parts: tuple[Part, ...]
    depths: Mapping[Node, int]
    not_shared: Mapping[int, tuple[int, str]]
    """For a nest: another before it over the same sizes, and why they share no loop."""
    blocks: Mapping[Node, Size] = fresh(factory=dict)
    """For results of calls of which there is memory for some rows only: for how many."""
    overwritten_by: Mapping[Node, Node] = fresh(factory=dict)
    """For results of calls the value that is computed over them, row by row."""


@record(frozen=False)
class _Group:
    """Nests that share a loop, in the order of the plan."""

    members: list[NestDraft]
    ops: int
    by_rows: bool
    reads: set[Node] = fresh(factory=set)

    @property
    def may_share(self) -> bool:
        """Tell whether no kind of nest among them keeps its loops to itself."""
        return all(draft.kind not in ALONE for draft in self.members)


def share(order: Sequence[NestDraft], access: Access) -> Sharing:
    """The nests of `order` as a tree of shared loops."""
    place = {draft.number: position for position, draft in enumerate(order)}
    parts = tuple(_share(order, 0, access, place))
    loops_around: dict[int, tuple[SharedLoop, ...]] = {}
    for part in parts:
        _note_loops(part, (), loops_around)
    depths = {}
    for draft in order:
        for root in draft.roots:
            depths[root] = _depth(root, draft, loops_around, access)
    return Sharing(parts, depths, dict(_reasons_not_shared(parts, order, access)))


def _note_loops(part: Part, around: tuple[SharedLoop, ...], loops_around: dict[int, tuple[SharedLoop, ...]]) -> None:
    if isinstance(part, Nest):
        loops_around[part.number] = around
        return
    for inner in part.body:
        _note_loops(inner, (*around, part), loops_around)


def _depth(root: Node, draft: NestDraft, loops_around: Mapping[int, tuple[SharedLoop, ...]], access: Access) -> int:
    """The number of loops within whose iteration the value `root` of a nest is made and read."""
    if root in access.whole or draft.kind in ALONE or not root.ndim:
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


def _common(left: Sequence[SharedLoop], right: Sequence[SharedLoop]) -> int:
    """The number of loops that two nests share."""
    return sum(a is b for a, b in zip(left, right, strict=False))


# Groups -------------------------------------------------------------------------------------------------------------


def _share(nests: Sequence[NestDraft], depth: int, access: Access, place: Mapping[int, int]) -> list[Part]:
    """The parts that nests become which share `depth` loops around them already."""
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
            parts.append(SharedLoop(depth, first.vars[depth], first.space[depth], body))
    return parts


def _group(draft: NestDraft, depth: int, access: Access) -> _Group:
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


def _merged(first: _Group, then: _Group, members: list[NestDraft]) -> _Group:
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
    """Tell whether two groups may share loop `depth`, and gain by it."""
    if why_not_worthwhile(first, then, depth, access):
        return False
    return not any(why_not_allowed(a, b, depth + 1, access) for a in first.members for b in then.members)


def why_not_worthwhile(first: _Group, then: _Group, depth: int, access: Access) -> str | None:
    """The reason why groups that may share a loop should not: sharing saves no pass over memory, or makes a function
    too large to compile. None where they should share. Loops over all elements stay whole, so that short rows do not
    cut them up; full reductions among them are only placed side by side, and become one loop when they are lowered."""
    members = (*first.members, *then.members)
    full = all(draft.kind == "full reduction" for draft in members)
    if not (depth or first.by_rows or then.by_rows or full):
        return "each is one loop over all elements"
    computed = {root for draft in first.members for root in draft.roots}
    if not any(node.ndim for node in then.reads & (first.reads | computed)):
        return "they read nothing in common"
    if not depth and (sums_beside_rows(first, then) or sums_beside_rows(then, first)):
        return "vectors of the rows' values are summed"
    if any(is_vector_work(draft, depth, access) for draft in members):
        return "one of them does work that vectorises"
    innermost = depth and all(len(draft.space) == depth + 1 for draft in members)
    limit = BODY_OPS if innermost else SHARED_OPS
    return f"together they have more than {limit} ops" if first.ops + then.ops > limit else None


def sums_beside_rows(sums: _Group, rows: _Group) -> bool:
    """Tell whether one group sums one value for each row, and the other computes such values from the rows. Several
    short rows at a time are reduced by a loop without such a sum (codegen/transform/abreast.py)."""
    if not all(draft.kind == "loops" and len(draft.space) == 1 for draft in rows.members) or not rows.by_rows:
        return False
    return all(draft.kind == "full reduction" and len(draft.space) == 1 for draft in sums.members) and not sums.by_rows


def goes_by_rows(draft: NestDraft, reads: Iterable[tuple[Node, Index]]) -> bool:
    """Tell whether a nest is more than one loop over all elements in the order in which they lie in memory."""
    if draft.kind == "column reduction":
        return True
    inner = any(node.ndim and not variables_of(index) <= set(draft.vars) for node, index in reads)
    return inner or (len(draft.space) > 1 and any(node.ndim and index != draft.index for node, index in reads))


def is_vector_work(draft: NestDraft, depth: int, access: Access) -> bool:
    """Tell whether the work that a nest does in an iteration of loop `depth` needs the vector loop for itself. Where no
    loop is left inside the shared one, its work would be done one element at a time."""
    if depth or len(draft.space) != 1 or draft.cost <= VECTOR_COST:
        return False
    return not goes_by_rows(draft, access.reads[draft.number])


# Dependences that forbid sharing --------------------------------------------------------------------------------------


def why_not_allowed(first: NestDraft, then: NestDraft, depth: int, access: Access) -> str | None:
    """The reason why two nests, of which `then` comes later, may not share their first `depth` loops; None where they
    may."""
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
    updated = {old for root in then.roots for old in access.overwrites.get(root, ())}
    for node, index in access.reads[first.number]:
        if node in updated and (index[:depth] != iteration or then.kind != "loops"):
            return f"it overwrites {access.labels(node)} where the other still reads it"
    return None


def deepest(draft: NestDraft) -> int:
    """The number of its loops that a nest may share. A full reduction keeps its last loop, which then vectorises."""
    return max(1, len(draft.space) - 1) if draft.kind == "full reduction" else len(draft.space)


def complete_within(draft: NestDraft, root: Node) -> int:
    """The number of loops at the end of whose iteration an element that a nest stores is complete."""
    return len(draft.space) if draft.kind == "loops" else first_reduced(root)


def _reasons_not_shared(
    parts: Sequence[Part], order: Sequence[NestDraft], access: Access
) -> Iterable[tuple[int, tuple[int, str]]]:
    """The reasons why parts at the top share no loop with the last one before that begins with a loop of the same
    size."""
    drafts = {draft.number: draft for draft in order}
    groups = [_joined([_group(drafts[nest.number], 0, access) for nest in nests_of(part)]) for part in parts]
    for position, then in enumerate(groups):
        size = then.members[0].space[:1]
        for back in range(position - 1, max(-1, position - 1 - NESTS_BACK), -1):
            first = groups[back]
            if size and first.members[0].space[:1] == size and (first.may_share or then.may_share):
                between = groups[back + 1 : position]
                yield (
                    then.members[0].number,
                    (first.members[0].number, _reason_not_shared(first, then, between, access)),
                )
                break


def _joined(groups: Sequence[_Group]) -> _Group:
    first, *rest = groups
    for group in rest:
        first = _merged(first, group, [*first.members, *group.members])
    return first


def _reason_not_shared(first: _Group, then: _Group, between: Sequence[_Group], access: Access) -> str:
    """The reason why two groups share no loop."""
    for a in first.members:
        for b in then.members:
            if reason := why_not_allowed(a, b, 1, access):
                return reason
    later, _ = _between(between, first, access.after)
    for group in later:
        if _follows(then, group, access.after):
            return f"{' and '.join(access.labels(root) for root in group.members[0].roots)} comes between"
    return why_not_worthwhile(first, then, 0, access) or "others stand closer"


def reads_of(uses: Mapping[Node, Sequence[Use]], numbers: Iterable[int]) -> dict[int, list[tuple[Node, Index]]]:
    """The materialised values and leaves that each nest reads, with the index."""
    reads: dict[int, list[tuple[Node, Index]]] = {number: [] for number in numbers}
    for node, wanted in uses.items():
        for use in dict.fromkeys((use.nest, use.index) for use in wanted):
            reads[use[0]].append((node, use[1]))
    return reads


# Blocks of rows ------------------------------------------------------------------------------------------------------

BLOCK_BYTES = 2**19
"""Memory of a block: it fits into the second cache, beside what is read and written with it."""
OVERHEAD_RATIO = 4
"""A block has this many elements for each that a call copies or packs besides."""
SHORT_ROW = 32
"""A loop over shorter rows is better one loop over all elements."""


def in_blocks(
    sharing: Sharing, drafts: Sequence[NestDraft], access: Access, chained: Collection[Node], sizing: Sizing
) -> Sharing:
    """The parts, with blocks of rows where a call is followed by the loop that alone reads it. chained: values that
    share a buffer with others already."""
    index = {draft.number: draft.index for draft in drafts}
    parts, blocks, overwritten_by = list(sharing.parts), dict[Node, Size](), dict[Node, Node]()
    for call in [part for part in parts if isinstance(part, Nest)]:
        length = block_length(call, sizing)
        if length is None or call.roots[0] in access.whole:
            continue
        here, (root,) = parts.index(call), call.roots
        there = next((place for place in range(here + 1, len(parts)) if _reads(parts[place], root, access)), None)
        if there is None:
            continue
        between = (nest for part in parts[here + 1 : there] for nest in nests_of(part))
        if any(nest.number in access.after[call.number] for nest in between):
            continue
        reader = as_rows(parts[there])
        if reader is None or not may_follow(reader, call, index, access, sizing):
            continue
        parts[here : there + 1] = [*parts[here + 1 : there], replace(reader, producer=call, block=length)]
        result = result_over(root, reader, index, access, sizing)
        if result is not None and result not in chained and not sharing.depths[result]:
            overwritten_by[root] = result
        else:
            blocks[root] = length
    producers = {part.producer.number for part in parts if isinstance(part, SharedLoop) and part.producer is not None}
    not_shared = {number: other for number, other in sharing.not_shared.items() if other[0] not in producers}
    return replace(sharing, parts=tuple(parts), not_shared=not_shared, blocks=blocks, overwritten_by=overwritten_by)


def block_length(nest: Nest, sizing: Sizing) -> Size | None:
    """The number of rows that a call should compute at a time; None where it computes all, or they are few anyway."""
    call = call_of(nest.roots[0]) if nest.kind == "call" and len(nest.roots) == 1 and not nest.in_place else None
    by_rows = call.by_rows(nest.roots[0]) if call is not None else None
    if by_rows is None:
        return None
    (root,) = nest.roots
    count, *rest = sizing.shape(root)
    row = sizes.maximum(sizes.product(rest), 1)
    most = BLOCK_BYTES // itemsize(root.type.dtype)
    if isinstance(row, int) and (row < SHORT_ROW or (isinstance(count, int) and count * row <= most)):
        return None
    fitting = sizes.floor_divide(most, row)
    worthwhile = sizes.floor_divide(sizes.multiply(by_rows.besides, OVERHEAD_RATIO), row)
    return sizing.of(sizes.maximum(sizes.minimum(sizes.maximum(fitting, worthwhile), count), 1))


def as_rows(part: Part) -> SharedLoop | None:
    """A part as a loop over its rows; None where it is none, or one over blocks already."""
    if isinstance(part, SharedLoop):
        return part if part.producer is None else None
    if part.kind != "loops" or not part.space:
        return None
    return SharedLoop(0, part.vars[0], part.space[0], (part,))


def may_follow(rows: SharedLoop, call: Nest, index: Mapping[int, Index], access: Access, sizing: Sizing) -> bool:
    """Tell whether a loop alone needs the result of a call, each iteration the same row of it, and changes nothing that
    the call reads."""
    (root,) = call.roots
    if not access.readers[root] <= {nest.number for nest in nests_of(rows)}:
        return False
    if rows.size != sizing.shape(root)[0] or rows.size == 1:
        return False
    for nest in nests_of(rows):
        if nest.kind != "loops" and first_reduced(nest.roots[0]) == 0:
            return False
        if any(each in access.overwrites for each in nest.roots):
            return False
        if any(node is root and at[0] != index[nest.number][0] for node, at in access.reads[nest.number]):
            return False
    return True


def result_over(
    root: Node, rows: SharedLoop, index: Mapping[int, Index], access: Access, sizing: Sizing
) -> Node | None:
    """A value that may be computed over the result of a call: where only its nest reads that, at the same index."""
    readers = [nest for nest in nests_of(rows) if nest.number in access.readers[root]]
    if len(readers) != 1 or readers[0].kind != "loops":
        return None
    (nest,) = readers
    if any(node is root and at != index[nest.number] for node, at in access.reads[nest.number]):
        return None
    alike = (
        each for each in nest.roots if each.type.dtype == root.type.dtype and sizing.shape(each) == sizing.shape(root)
    )
    return next(alike, None)


def _reads(part: Part, root: Node, access: Access) -> bool:
    return any(nest.number in access.readers[root] for nest in nests_of(part))
