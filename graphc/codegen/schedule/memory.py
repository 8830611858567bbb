"""The arena of temporaries: values whose lives do not meet share memory.

In: the materialised values of a kernel, each with its dtype, its sizes and its life. Out: slots, buffers that
follow each other in one arena; every value lies at the beginning of one.

Sizes are known at the call only. So what is decided here is who shares a slot, which is right for all sizes; a slot is
as long as its longest value, and the arena as the sum of the slots, both computed at each call. The values are taken
in the order of their length, where all unknown sizes are taken for equal, the longest first; each goes to the slot
whose values all are dead while it lives, one of its own length and dtype if there is one, else the shortest.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from heapq import heappop, heappush
from math import prod
from typing import TypeAlias

from graphc.arrays.dtypes import itemsize
from graphc.ir import sizes
from graphc.ir.node import Size
from graphc.loopir.ir import Buffer, Expr, Target
from graphc.startup.record import fresh, record, replace

NOMINAL = 128
"""The number that stands for an unknown size when lengths are compared."""
NEVER = 2**62
"""A position after all nests."""

SizeClass: TypeAlias = "tuple[str, tuple[Size, ...], Size | None, bool]"
"""The dtype, sizes and rows of a value, and whether something is added: values of one class share slots first."""


Added: TypeAlias = "tuple[Target, Size]"
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
    row: Expr | None = None

    @property
    def size_class(self) -> SizeClass:
        return self.dtype, self.shape, self.rows, self.added is not None

    @property
    def is_particular(self) -> bool:
        """Tell whether it shares a slot with its like only."""
        return self.rows is not None or self.added is not None


@record()
class Slot:
    """Memory of the arena for a buffer; `extents` are the dtypes and sizes that it has to hold, `rows` and `iterations`
    those of the values that it holds one row of at a time, or that loops add into."""

    buffer: Buffer
    extents: tuple[tuple[str, tuple[Size, ...]], ...]
    rows: Size | None = None
    iterations: Size | None = None

    @property
    def is_plain(self) -> bool:
        """Tell whether it holds nothing but elements."""
        return self.rows is None and self.buffer.row is None and self.buffer.target is None

    @property
    def nominal_bytes(self) -> int:
        return max(nominal(*extent) for extent in self.extents)


@record()
class Layout:
    """`buffers` are those of the materialised values, in their order."""

    slots: tuple[Slot, ...]
    buffers: tuple[Buffer, ...]


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
    buffers: list[Buffer] = []
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


def _slot(name: str, held: Sequence[Temporary]) -> Slot:
    """The slot that holds these values in iteration: of a particular one only its like."""
    first = held[0]
    target, iterations = reduce(added_by_both, (value.added for value in held)) or (None, None)
    extents = dict.fromkeys((value.dtype, value.shape) for value in held)
    return Slot(Buffer(name, first.dtype, True, first.row, target), tuple(extents), first.rows, iterations)


def _like(slot: Slot, others: Sequence[Slot]) -> int | None:
    """Return the number of the slot that is most like one of the same dtype."""
    same = [number for number, other in enumerate(others) if other.buffer.dtype == slot.buffer.dtype]

    def misfit(number: int) -> tuple[bool, int]:
        return others[number].extents != slot.extents, abs(others[number].nominal_bytes - slot.nominal_bytes)

    return min(same, key=misfit, default=None)


def joined(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """Slots, those of one buffer as one that holds what all of them do."""
    found: dict[str, Slot] = {}
    for slot in slots:
        before = found.get(slot.buffer.name)
        extents = slot.extents if before is None else tuple(dict.fromkeys((*before.extents, *slot.extents)))
        found[slot.buffer.name] = replace(slot, extents=extents)
    return tuple(found.values())


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
    """The length of a value if every size that is not known were NOMINAL."""
    return nominal(value.dtype, value.shape)


def nominal(dtype: str, shape: Sequence[Size]) -> int:
    """The bytes of an array of this shape if every size that is not known were NOMINAL."""
    return itemsize(dtype) * prod(size if isinstance(size, int) else NOMINAL for size in shape)


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
        found = [number for number in possible if self.drafts[number].is_free(value)]
        if not found:
            self.drafts.append(_OpenSlot())
            return len(self.drafts) - 1

        def misfit(number: int) -> tuple[bool, int]:
            return value.size_class not in self.drafts[number].classes, self.drafts[number].longest

        best: int = min(found, key=misfit)
        return best
