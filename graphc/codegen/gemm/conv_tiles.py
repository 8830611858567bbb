"""Tiles of a convolution: a few results times two registers of kernels, the images read where they stand.

In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR:

    conv_tile_<registers>_<t>(terms, images, offsets, kernels, rows, there, results, step, fresh)
        for each of `rows` results (of at most ROWS) and `there` lanes: the sum of terms, each a number at the place of
        `images` that belongs to the result, `offsets` further, times a lane of a row of `kernels`. It goes to the place
        of `results` that belongs to the result, `step` elements further for each lane; is added there unless `fresh`.

Each number of an image is read once for all lanes, as the left operand of a product is (microkernel.py): where it
stands follows from two tables, of results and of terms, so that no window of an image is ever copied. Where results
lie beside each other in memory and their lanes apart, sums are turned around in registers; where lanes do, they are
stored as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.gemm.microkernel import ARITHMETIC, Arithmetic, Columns, first_lanes, lanes_of
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, function
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import I64, Bool, Ptr, vector

SEGMENT = 16
"""Bytes within which registers are turned around at the cost of one instruction."""

Sums = Sequence[Sequence[Variable[Any]]]


def rows_of_tile() -> int:
    """Results of a tile: with two registers of lanes, half of the registers that there are."""
    return 8 if has_avx512() else 4


def tile_width(suffix: str) -> int:
    """Lanes of a tile."""
    return 2 * lanes_of(suffix)


def conv_tile(suffix: str, registers: int) -> Function[..., None]:
    """conv_tile_<registers>_<t>."""
    own, lanes, count = ARITHMETIC[suffix], lanes_of(suffix), rows_of_tile()
    kind: Any = vector(own.kind, lanes)

    @function("noinline optsize", name=f"conv_tile_{registers}_{suffix}")
    def write(
        code: Code,
        terms: I64,
        images: Ptr,
        offsets: Ptr,
        kernels: Ptr,
        rows: I64,
        there: I64,
        results: Ptr,
        step: I64,
        fresh: I64,
    ) -> None:
        sums = [[code.variable(kind.of(0)) for _ in range(registers)] for _ in range(count)]
        bases = [images.at(row, Ptr).load(Ptr) for row in range(count)]
        with code.when(terms > 0):
            _multiply(code, own, sums, bases, terms, offsets, kernels, tile_width(suffix))
        places = [results.at(row, Ptr).load(Ptr) for row in (0, count - 1)]
        apart = places[1].integer() - places[0].integer()
        is_beside = (rows == count) & (apart == (count - 1) * own.align)
        is_fresh = fresh != 0
        with code.when(step == 1):
            _store(code, suffix, sums, results, rows, there, is_fresh)
            code.ret()
        with code.when(is_beside & is_fresh):
            _turn(code, own, sums, places[0], there, step, fresh=True)
            code.ret()
        with code.when(is_beside):
            _turn(code, own, sums, places[0], there, step, fresh=False)
            code.ret()
        kept = code.local(own.kind, count * registers * lanes, align=64)
        for place, parts in enumerate(sums):
            for number, part in enumerate(parts):
                kept.at((place * registers + number) * lanes, own.kind).store(part.value, align=own.align)
        with code.count(0, rows, sure=True) as row, code.count(0, there, sure=True) as lane:
            at = results.at(row, Ptr).load(Ptr).at(lane * step, own.kind)
            total = code.variable(kept.at(row * (registers * lanes) + lane, own.kind).load(own.kind))
            with code.when(~is_fresh):
                total.value = at.load(own.kind).apply(own.join, total.value)
            at.store(total.value)

    return write


def _multiply(
    code: Code, own: Arithmetic, sums: Sums, bases: Sequence[Ptr], terms: I64, offsets: Ptr, kernels: Ptr, width: int
) -> None:
    """Adds the terms, one row of the kernels after the other."""
    offset_at, kernel_at, left = code.variable(offsets), code.variable(kernels), code.variable(terms)
    kind = sums[0][0].kind
    with code.loop() as iteration:
        offset = offset_at.value.load(I64)
        parts = [
            kernel_at.value.at(number * kind.lanes, own.kind).load(kind, align=own.align)
            for number in range(len(sums[0]))
        ]
        for base, row in zip(bases, sums, strict=True):
            number = base.at(offset, own.kind).load(own.kind).spread(kind.lanes)
            for total, part in zip(row, parts, strict=True):
                total.value = total.value.apply(own.plus, number.apply(own.times, part))
        offset_at.value = offset_at.value.at(1, I64)
        kernel_at.value = kernel_at.value.at(width, own.kind)
        left.value = left.value.apply("add nsw", -1)
        iteration.leave.when(left.value == 0)


def _store(code: Code, suffix: str, sums: Sums, results: Ptr, rows: I64, there: I64, is_fresh: Bool) -> None:
    """Stores the sums of each result, whose lanes go beside each other."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    left = [there - number * lanes for number in range(len(sums[0]))]
    parts = [Columns(suffix, lanes, first_lanes((each > 0).choose(each, 0), lanes)) for each in left]
    done = code.label("done")
    for place, row in enumerate(sums):
        if place:
            done.when(rows <= place)
        at = results.at(place, Ptr).load(Ptr)
        for number, (part, total) in enumerate(zip(parts, row, strict=True)):
            here = at.at(number * lanes, own.kind)
            with code.when(~is_fresh):
                total.value = part.read(code, here).apply(own.join, total.value)
            part.write(code, total.value, here)
    code.place(done)


def _turn(code: Code, own: Arithmetic, sums: Sums, place: Ptr, there: I64, step: I64, *, fresh: bool) -> None:
    """Stores the sums of each lane beside each other."""
    side = SEGMENT // own.align
    kind: Any = vector(own.kind, side)
    done = code.label("done")
    for register in range(len(sums[0])):
        groups = [
            _turned([row[register].value for row in sums[first : first + side]], side)
            for first in range(0, len(sums), side)
        ]
        lanes = groups[0][0].lanes
        for lane in range(lanes):
            number = register * lanes + lane
            if number:
                done.when(there <= number)
            at = place.at(step * number if number else 0, own.kind)
            for position, group in enumerate(groups):
                whole, first = group[lane % side], lane // side * side
                part = whole.pick(whole, range(first, first + side))
                here = at.at(position * side, own.kind)
                if not fresh:
                    part = here.load(kind, align=own.align).apply(own.join, part)
                here.store(part, align=own.align)
    code.place(done)


def _turned(rows: list[Any], side: int) -> list[Any]:
    """Vectors, as many as a segment has elements, of which each segment is turned around as a matrix: they are shuffled
    as cards are, one half with the other, until each has been moved by every power of two."""
    lanes, half = rows[0].lanes, side // 2
    pairs = [(first + place, first + place + lanes) for first in range(0, lanes, side) for place in range(half)]
    low = [place for pair in pairs for place in pair]
    high = [place + half for place in low]
    for _ in range(half.bit_length()):
        rows = [rows[place // 2].pick(rows[place // 2 + half], high if place % 2 else low) for place in range(side)]
    return rows
