"""The buffers of values, and the arena of temporaries: values whose lives do not meet share memory.

In: the materialised values of a kernel, each with its dtype, its sizes and its life. Out: slots, buffers that
follow each other in one arena; every value lies at the beginning of one.

    value   sizes     lives in nests        slot
    t0      n * m     0 to 1                0, of n * m elements
    t1      n         1 to 2                1, of n elements
    t2      n * m     2 to 3                0, for t0 is dead

Sizes are known at the call only. So what is decided here is who shares a slot, which is right for all sizes; a slot is
as long as its longest value, and the arena as the sum of the slots, both computed at each call. The values are taken
in the order of their length, where all unknown sizes are taken for equal, the longest first; each goes to the slot
whose values all are dead while it lives, one of its own length and dtype if there is one, else the shortest.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from typing import TypeAlias

from graphc.codegen.schedule.fusion import Sharing
from graphc.codegen.schedule.materialize import Nests
from graphc.codegen.schedule.nodes import Sizing, call_node, call_of, first_reduced, lowering_of
from graphc.codegen.schedule.plan import Nest, Slot, nests_of, nominal
from graphc.ir import sizes
from graphc.ir.lowering import Fold, Recur, Workspace, Writes
from graphc.ir.node import Node, Size
from graphc.loopir import ir, operators
from graphc.startup.record import fresh, record, replace

NEVER = 2**62
"""A position after all nests."""

SizeClass: TypeAlias = "tuple[str, tuple[Size, ...], Size | None, bool]"
"""The dtype, sizes and rows of a value, and whether something is added: values of one class share slots first."""


Added: TypeAlias = "tuple[ir.Target, Size]"
"""The target of loops that add into a buffer, and the most iterations that these have."""


@record()
class Temporary:
    """A value that is kept in memory from the nest at position `first` until that at `last`. Of a buffer that holds one
    row at a time `rows` is the number of rows, and `row` the length of one where that is an argument of the kernel:
    threads have one each, so that it shares a slot with its like only. So does what is `added` into: threads have
    copies of it."""

    dtype: str
    shape: tuple[Size, ...]
    first: int
    last: int
    rows: Size | None = None
    added: Added | None = None
    row: ir.Expr | None = None

    @property
    def size_class(self) -> SizeClass:
        return self.dtype, self.shape, self.rows, self.added is not None

    @property
    def is_particular(self) -> bool:
        """Tell whether it shares a slot with its like only."""
        return self.rows is not None or self.added is not None


@record()
class Layout:
    """`buffers` are those of the materialised values, in their order."""

    slots: tuple[Slot, ...]
    buffers: tuple[ir.Buffer, ...]


@record(frozen=False, eq=False)
class _OpenSlot:
    """A slot while it is being filled. `lives` are those of the values it holds, (first, last) in order."""

    values: list[Temporary] = fresh(factory=list)
    lives: list[tuple[int, int]] = fresh(factory=list)
    classes: set[SizeClass] = fresh(factory=set)
    longest: int = 0

    def hold(self, value: Temporary, length: int) -> None:
        """Put a value of this nominal length here."""
        self.values.append(value)
        insort(self.lives, (value.first, value.last))
        self.classes.add(value.size_class)
        self.longest = max(self.longest, length)

    def is_free(self, value: Temporary) -> bool:
        """Tell whether all that is held is dead while a value lives. Lives do not meet, so that one neighbour tells.

        A slot has one dtype: functions are told that their buffers do not overlap."""
        if self.values[0].dtype != value.dtype:
            return False
        if self.classes != {value.size_class} and (value.is_particular or self.values[0].is_particular):
            return False
        before = bisect_right(self.lives, (value.last, NEVER)) - 1
        return before < 0 or self.lives[before][1] < value.first

    def occupied_until(self, position: int) -> int | None:
        """The end of the life that a position is in; None where nothing is held there."""
        before = bisect_right(self.lives, (position, NEVER)) - 1
        return self.lives[before][1] if before >= 0 and self.lives[before][1] >= position else None


def lay_out(values: Sequence[Temporary], fresh: Callable[[str], str], free: Sequence[Slot] = ()) -> Layout:
    """The layout of an arena. `fresh` gives names. `free`: slots of what never runs at the same time, which hold
    these values too, as far as they are alike."""
    drafts: list[_OpenSlot] = []
    held_in: dict[int, _OpenSlot] = {}
    lengths = [*map(nominal_bytes, values)]
    alike = _SlotsOfLength(drafts, 0, 0)
    for number in sorted(range(len(values)), key=lambda number: (-lengths[number], values[number].first)):
        if lengths[number] != alike.length:
            alike = _SlotsOfLength(drafts, lengths[number], len(drafts), {*range(len(drafts))})
        held_in[number] = alike.place(values[number])
    slots: dict[_OpenSlot, Slot] = {}
    buffers: list[ir.Buffer] = []
    others = [slot for slot in free if slot.is_plain]
    for number, value in enumerate(values):
        draft = held_in[number]
        if draft not in slots:
            slot = _slot(f"t{len(slots)}", sorted(draft.values, key=lambda value: value.first))
            like = _like(slot, others) if slot.is_plain else None
            name = fresh(slot.buffer.name) if like is None else others.pop(like).buffer.name
            slots[draft] = replace(slot, buffer=replace(slot.buffer, name=name))
        buffers.append(slots[draft].buffer)
    return Layout(tuple(slots.values()), tuple(buffers))


def _slot(name: str, temporaries: Sequence[Temporary]) -> Slot:
    """The slot that holds these values in iteration: of a particular one only its like."""
    first = temporaries[0]
    target, iterations = reduce(added_by_both, (value.added for value in temporaries)) or (None, None)
    extents = dict.fromkeys((value.dtype, value.shape) for value in temporaries)
    return Slot(ir.Buffer(name, first.dtype, True, first.row, target), tuple(extents), first.rows, iterations)


def _like(slot: Slot, others: Sequence[Slot]) -> int | None:
    """Return the number of the slot that is most like one of the same dtype."""
    same = [number for number, other in enumerate(others) if other.buffer.dtype == slot.buffer.dtype]

    def misfit(number: int) -> tuple[bool, int]:
        return others[number].extents != slot.extents, abs(others[number].nominal_bytes - slot.nominal_bytes)

    return min(same, key=misfit, default=None)


def joined(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """Slots, those of one buffer as one that holds what all of them do."""
    by_name: dict[str, Slot] = {}
    for slot in slots:
        before = by_name.get(slot.buffer.name)
        extents = slot.extents if before is None else tuple(dict.fromkeys((*before.extents, *slot.extents)))
        by_name[slot.buffer.name] = replace(slot, extents=extents)
    return tuple(by_name.values())


def largest(slot: Slot, most: Callable[[Size], Size]) -> Slot:
    """A slot for the most that the sizes of what it holds may be."""
    extents = tuple((dtype, tuple(map(most, shape))) for dtype, shape in slot.extents)
    counts = ((None if count is None else most(count)) for count in (slot.rows, slot.iterations))
    return Slot(slot.buffer, extents, *counts)


def added_by_both(one: Added | None, other: Added | None) -> Added | None:
    """The same of a buffer that two loops add into; None where they differ in more than their iterations."""
    if one is None or other is None or one[0] != other[0]:
        return None
    return one[0], sizes.maximum(one[1], other[1])


def nominal_bytes(value: Temporary) -> int:
    """The length of a value if every size that is not known were plan.NOMINAL."""
    return nominal(value.dtype, value.shape)


@record(frozen=False, eq=False)
class _SlotsOfLength:
    """The slots whose longest values have one nominal length. Their values come in the order of their lives, so that a
    slot is free once its last value is dead. `longer` are those that come before: the `likely` ones, and with the ends
    of lives, in a heap, those that are taken until then."""

    drafts: list[_OpenSlot]
    length: int
    longer: int
    likely: set[int] = fresh(factory=set)
    taken: list[tuple[int, int]] = fresh(factory=list)
    ends: list[tuple[int, int]] = fresh(factory=list)
    """The end of the last life of each slot in use, and its number; a heap."""
    free: set[int] = fresh(factory=set)
    free_of_class: dict[SizeClass, list[int]] = fresh(factory=dict)
    """Heaps of numbers, of slots that are free or were, by what they hold."""

    def place(self, value: Temporary) -> _OpenSlot:
        """Put a value in the first free slot that holds its like; else in the shortest that is free, or a new one."""
        while self.ends and self.ends[0][0] < value.first:
            _, number = heappop(self.ends)
            self.free.add(number)
            for size_class in self.drafts[number].classes:
                heappush(self.free_of_class.setdefault(size_class, []), number)
        number = self._find(value)
        self.drafts[number].hold(value, self.length)
        if number >= self.longer:
            self.free.discard(number)
            heappush(self.ends, (value.last, number))
        return self.drafts[number]

    def _find(self, value: Temporary) -> int:
        like = self.free_of_class.get(value.size_class, [])
        while like and like[0] not in self.free:
            heappop(like)
        if like:
            return like[0]
        while self.taken and self.taken[0][0] < value.first:
            self.likely.add(heappop(self.taken)[1])
        for number in tuple(self.likely):
            end = self.drafts[number].occupied_until(value.first)
            if end is not None:
                self.likely.discard(number)
                heappush(self.taken, (end, number))
        possible = (*sorted(self.likely), *sorted(self.free))
        free = [number for number in possible if self.drafts[number].is_free(value)]
        if not free:
            self.drafts.append(_OpenSlot())
            return len(self.drafts) - 1

        def misfit(number: int) -> tuple[bool, int]:
            return value.size_class not in self.drafts[number].classes, self.drafts[number].longest

        best: int = min(free, key=misfit)
        return best


# --- the buffer of every value: of results, temporaries, accumulators and workspaces ----------------------------------
# In: nests that share loops, the values that share a buffer since each is made over the one before (inplace.py), and
# where results go. Out: `Buffers`: results under their names, and what needs memory of the arena, with its life, which
# `lay_out` places. As an example, of `out = (x @ w).sum(axis=0)` in float32 the product needs memory of the arena
# from the call to the sum, the sum a row of float64 to add rows into, and `out` has a buffer of the caller.
#
# A buffer that loops add rows into is known as a target (`Target`): threads then have copies of it.

CHUNK_RATIO = 8
"""A chunk adds at least this multiple of the elements that its copy has: filling and combining copies takes a small
part of the time, and they of the memory that the loop reads."""


def row_sum(length: ir.Expr) -> ir.Target:
    """A buffer to which every iteration adds a row."""
    return ir.Target(length, ir.integer(CHUNK_RATIO))


def table_of_sums(length: ir.Expr, places: ir.Expr) -> ir.Target:
    """A table of `places` rows, to one of which each iteration adds a row."""
    return ir.Target(
        length, ir.apply(operators.MAXIMUM, ir.multiply(ir.integer(CHUNK_RATIO), places), ir.ONE), is_table=True
    )


def added_by(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """The target of loops that add a value of a nest, where threads may have copies of it."""
    match nest.kind:
        case "column reduction":
            return _added_row(node, nest, size_names, sizing)
        case "writes":
            return _table(node, size_names, sizing)
    return None


def _added_row(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """The result of a column reduction to which every iteration of its outermost loop adds."""
    length = length_of(sizing.shape(node), size_names)
    return None if first_reduced(node) or length is None else (row_sum(length), nest.space[0])


def _table(node: Node, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """A table to which rows are added at places of their own."""
    lowering, shape = node.op.lower(node), sizing.shape(node)
    assert isinstance(lowering, Writes)
    for region in lowering.regions(node):
        if not region.accumulate or not region.sizes:
            continue
        rows, *row = map(sizing.of, region.sizes)
        places = shape[: len(shape) - len(row)]
        length, count = length_of(shape, size_names), length_of(places, size_names)
        if (*places, *row) == shape and rows not in places and length is not None and count is not None:
            return table_of_sums(length, count), rows
    return None


def row_length(shape: Sequence[Size], size_names: Mapping[Node, str]) -> ir.Expr | None:
    """The length of a row along one axis, where that is an argument of the kernel."""
    sides = [size for size in shape if size != 1]
    return length_of(sides, size_names) if len(sides) == 1 else None


def length_of(shape: Sequence[Size], size_names: Mapping[Node, str]) -> ir.Expr | None:
    """A number of elements as a product of numbers and arguments of the kernel."""
    length: ir.Expr = ir.ONE
    for size in shape:
        if not isinstance(size, int) and size not in size_names:
            return None
        length = ir.multiply(length, ir.integer(size) if isinstance(size, int) else ir.Var(size_names[size], ir.INDEX))
    return length


# The buffers of a plan ------------------------------------------------------------------------------------------------


@record()
class Buffers:
    """The buffers of a plan before its arena is laid out.

    `temporaries`: what lies in the arena, and for each of them in `owners` the node, and the role: "value",
    "accumulator", or "workspace" with its number. `results`: the buffers of targets; `iterations`: for those that loops
    add into, how many iterations these have at most.
    """

    temporaries: Sequence[Temporary]
    owners: Sequence[tuple[Node, str]]
    results: Mapping[Node, ir.Buffer]
    iterations: Mapping[ir.Buffer, Size]


def buffers_of(
    nests: Nests,
    sharing: Sharing,
    chained: Mapping[Node, Sequence[Node]],
    whole: frozenset[Node],
    size_names: Mapping[Node, str],
) -> Buffers:
    """The buffers of what nests write. chained: for values that share a buffer all that do, in order; whole: values
    that keep a buffer of all their elements."""
    sizing, targets = nests.goals.sizing, nests.goals.targets
    position = {nest.number: place for place, part in enumerate(sharing.parts) for nest in nests_of(part)}
    ordered = [nest for part in sharing.parts for nest in nests_of(part)]
    writers = {node: nest for nest in ordered for node in nest.roots}
    temporaries: list[Temporary] = []
    owners: list[tuple[Node, str]] = []
    results: dict[Node, ir.Buffer] = {}
    iterations: dict[ir.Buffer, Size] = {}
    added_to: dict[Node, Added | None] = {}  # of a chain, by its first value

    def keep(node: Node, role: str, temporary: Temporary) -> None:
        temporaries.append(temporary)
        owners.append((node, role))

    def place(node: Node, nest: Nest) -> None:
        """Keep what one value needs: a buffer of its own, and one that its loops add up in."""
        now, depth, lowering = position[nest.number], sharing.depths[node], lowering_of(node)
        chain = chained.get(node, (node,))
        shape = sizing.shape(node)[depth:]
        if node in sharing.blocks:
            shape = (sharing.blocks[node], *shape[1:])
        rows, row = (sizing.shape(node)[0], row_length(shape, size_names)) if depth else (None, None)
        if chain[0] not in added_to:
            writing = [each for each in chain if writers[each].kind == "writes"] or chain
            additions = (added_by(each, writers[each], size_names, sizing) for each in writing)
            added_to[chain[0]] = reduce(added_by_both, additions)
        added = added_to[chain[0]]
        accumulator = accumulator_dtype(node, nest)
        is_accumulated = accumulator != node.type.dtype  # in a buffer of its own, of this dtype
        added_into = None if is_accumulated else added
        if chain[-1] in targets:
            results[node] = ir.Buffer(targets[chain[-1]], node.dtype, target=added_into[0] if added_into else None)
            iterations.update({results[node]: added_into[1]} if added_into else {})
        elif node is chain[0] and not is_local(nest, node, depth, whole):
            uses = [position[use.nest] for use in nests.uses.of_stored[chain[-1]]]
            last = max([position[writers[chain[-1]].number], *uses])  # it is written, though nobody may read it
            keep(node, "value", Temporary(node.dtype, shape, now, last, rows, added_into, row))
        if is_accumulated:
            keep(node, "accumulator", Temporary(accumulator, shape, now, now, rows, added, row))
        if isinstance(lowering, Recur) and lowering.axis != node.ndim - 1:
            carry = Temporary(lowering.dtype, sizing.shape(node)[lowering.axis + 1 :], now, now)
            keep(node, "accumulator", carry)

    for nest in ordered:
        for node in nest.roots:
            place(node, nest)
        now = position[nest.number]
        for number, space in enumerate(workspaces_of(nest)):
            shape = tuple(map(sizing.of, space.shape))
            keep(call_node(nest.roots[0]), f"workspace {number}", Temporary(space.dtype, shape, now, now))
    return Buffers(temporaries, owners, results, iterations)


def accumulator_dtype(node: Node, nest: Nest) -> str:
    """The dtype in which a nest adds up a value, which may be wider than its own where it goes over columns."""
    lowering = lowering_of(node)
    return lowering.dtypes[0] if isinstance(lowering, Fold) and nest.kind == "column reduction" else node.type.dtype


def workspaces_of(nest: Nest) -> list[Workspace]:
    """The memory that the function of a call needs while it runs."""
    if nest.kind != "call":
        return []
    call, node = call_of(nest.roots[0]), call_node(nest.roots[0])
    return [] if call is None else [each for each in call.passed(node) if isinstance(each, Workspace)]


def is_local(nest: Nest, node: Node, depth: int, whole: frozenset[Node]) -> bool:
    """Tell whether a value is a name in the source: a scalar, or made and read in one iteration of all its loops."""
    if node in whole or nest.kind not in ("loops", "full reduction"):
        return False
    return not node.ndim or depth == node.ndim
