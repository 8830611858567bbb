"""Columns of short rows: elements at equal distances, read and written by whole vectors.

    for i in independent(n):                        lines = x[3*i ... 3*i + 24], three vectors
        y[i] = x[3 * i] + x[3 * i + 2]     becomes  column 0 = lanes 0, 3, 6 ... 21 of them
                                                    column 2 = lanes 2, 5, 8 ... 23

In: the places of the loads and stores of a body, as sums of terms and a number. Out: those whose places differ by
numbers alone, as `Columns`; the vectors of such a column; the vectors of memory for all columns of a row. A gather
would read each element by itself.

Where the stride is even, one step parts the elements in even and odd places, which have half the stride: columns of
8 numbers in rows of 8 take 24 shuffles of two vectors in all. Of an odd stride each column is put together by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from graphc.codegen.vecmath.floats import lanes_at
from graphc.startup.record import record

LARGEST = 16
"""The largest stride."""
SHUFFLES = 1.25
"""Shuffles for each element at most: more take longer than to read the elements one by one."""


@record(eq=False)
class Columns:
    """Loads, or stores, of every `stride`-th element. places: by instruction, the number of elements from the first of
    them; last: the last in the order of the body."""

    stride: int
    places: Mapping[ir.Instruction, int]
    last: ir.Instruction

    @property
    def width(self) -> int:
        """The number of elements from the first column to the last."""
        return max(self.places.values()) + 1

    def pays(self, lanes: int) -> bool:
        """Tell whether vectors are faster than to read one element after the other."""
        taken = {*self.places.values()}
        if isinstance(self.last, ir.StoreInstr) and not len(taken) == len(self.places) == self.stride:
            return False
        return shuffles_of(self.stride, taken) <= SHUFFLES * lanes * len(taken)


def shuffles_of(stride: int, taken: set[int]) -> int:
    """The number of shuffles for some columns."""
    if stride % 2:
        return (stride - 1) * len(taken)
    halves = [{place // 2 for place in taken if place % 2 == parity} for parity in (0, 1)]
    return sum(stride // 2 + (shuffles_of(stride // 2, half) if stride > 2 else 0) for half in halves if half)


class Lines:
    """Consecutive vectors of memory, of which columns are taken."""

    def __init__(self, builder: ir.IRBuilder, vectors: Sequence[ir.Value], stride: int) -> None:
        self.builder, self.stride, self.vectors = builder, stride, vectors
        self.halves: dict[int, Lines] = {}
        self.made: dict[int, ir.Value] = {}

    def column(self, place: int) -> ir.Value:
        """The elements `place`, `place + stride` ... of these vectors, as one vector."""
        if self.stride == 1:
            return self.vectors[0]
        if self.stride % 2:
            if place not in self.made:
                self.made[place] = self.gathered(place)
            return self.made[place]
        parity = place % 2
        if parity not in self.halves:
            self.halves[parity] = Lines(self.builder, self.every_second(parity), self.stride // 2)
        return self.halves[parity].column(place // 2)

    def every_second(self, parity: int) -> list[ir.Value]:
        """The elements in even places, or in odd ones."""
        lanes = self.vectors[0].type.count
        chosen = lanes_at(range(parity, 2 * lanes, 2))
        pairs = zip(self.vectors[::2], self.vectors[1::2], strict=True)
        return [self.builder.shuffle_vector(one, two, chosen) for one, two in pairs]

    def gathered(self, place: int) -> ir.Value:
        """A column, put together from one vector after the other."""
        lanes = self.vectors[0].type.count
        sources = [place + self.stride * lane for lane in range(lanes)]
        made = self.vectors[0]
        for number, vector in enumerate(self.vectors[1:], 1):
            first = number * lanes
            if number == 1:
                chosen = [min(source, 2 * lanes - 1) for source in sources]
            else:
                chosen = [
                    lanes + source - first if first <= source < first + lanes else lane
                    for lane, source in enumerate(sources)
                ]
            made = self.builder.shuffle_vector(made, vector, lanes_at(chosen))
        return made


def woven(builder: ir.IRBuilder, columns: Sequence[ir.Value]) -> list[ir.Value]:
    """Return consecutive vectors of memory in which each column has every `len(columns)`-th element."""
    stride, lanes = len(columns), columns[0].type.count
    if stride == 1:
        return [*columns]
    if stride % 2:
        return [_line(builder, columns, number * lanes) for number in range(stride)]
    halves = woven(builder, columns[::2]), woven(builder, columns[1::2])
    return [
        builder.shuffle_vector(one, two, lanes_at(lane for place in places for lane in (place, lanes + place)))
        for one, two in zip(*halves, strict=True)
        for places in (range(lanes // 2), range(lanes // 2, lanes))
    ]


def _line(builder: ir.IRBuilder, columns: Sequence[ir.Value], first: int) -> ir.Value:
    """The vector of memory from the element `first` on, put together from one column after the other."""
    stride, lanes = len(columns), columns[0].type.count
    sources = [divmod(first + lane, stride) for lane in range(lanes)]
    made = columns[0]
    for number, column in enumerate(columns[1:], 1):
        kept = [row if number == 1 else lane for lane, (row, _) in enumerate(sources)]
        chosen = [lanes + row if place == number else kept[lane] for lane, (row, place) in enumerate(sources)]
        made = builder.shuffle_vector(made, column, lanes_at(chosen))
    return made
