"""Tables of convolutions, with the places of the numbers of results and terms, and tiles that read by them.

In: the words of a convolution (convolution.py). Out: statements of LLVM IR that write its tables, and the order of its
terms.

A term is a channel and a tap along each axis. Terms stand in that order, unless kernels reach beyond the image: then
the taps of one axis come first, so that those of a result that lie within the image follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.codegen.convolution import ALONG, WORDS
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    Arithmetic,
    Columns,
    Words,
    element_function,
    first_lanes,
    lanes_of,
    least,
    most,
)
from graphc.codegen.llvm.builder import Code, Iteration, Variable
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import I64, Bool, Elements, Indices, Ptr, elements, vector
from graphc.ops.conv import MOST_SPATIAL
from graphc.startup.record import record

TABLES = ("offsets", "places", "targets", "firsts", "lasts")
"""The tables. Of terms: how far from that of the result's first term its number stands. Of results of one image: where
the number of the first term stands, where the result goes, and which terms lie within the image."""
OWN = """
panels image image_n image_c source first_w target images_here channels_here terms pixels height is_fresh is_new
is_padded is_sliced step_c step_0 step_1 step_2 from_0 from_1 from_2 length_0 length_1 length_2
""".split()
"""Words that threads are given besides."""


def words_of(suffix: str) -> Words:
    numbers = elements(ARITHMETIC[suffix].element)
    pointers = dict.fromkeys(("x", "w", "y", "panels", "image", "source", "first_w", "target"), numbers)
    pointers |= dict.fromkeys(TABLES, elements(I64))
    return Words({name: pointers.get(name, I64) for name in (*WORDS, *TABLES, *OWN)})


def range_function(name: str) -> Callable[[Callable[..., None]], Callable[[str], Function[..., None]]]:
    """Makes functions of threads, one for each suffix: `(context, begin, end)`, the numbers that one computes."""
    return element_function(name, "noinline")


@record(eq=False)
class Axis:
    """A convolution along one spatial axis, and the steps of its operands there."""

    size: I64
    taps: I64
    count: I64
    stride: I64
    dilation: I64
    spread: I64
    low: I64
    x: I64
    w: I64
    y: I64

    def place(self, count: I64, tap: I64, iteration: Iteration) -> I64:
        """The place of the image's element for a result and a tap; where there is none, the code goes on to the next
        tap."""
        at = count * self.stride + tap * self.dilation - self.low
        iteration.again.unless(at.below(self.size * self.spread))
        iteration.again.unless(at % self.spread == 0)
        return at // self.spread

    def reach(self, code: Code) -> tuple[I64, I64]:
        """The first and the last element that a kernel without spread meets, which may be beyond the image."""
        ends = [(number - 1) * step for number, step in ((self.count, self.stride), (self.taps, self.dilation))]
        lows, highs = ([end(code, each, I64.of(0)) for each in ends] for end in (least, most))
        return lows[0] + lows[1] - self.low, highs[0] + highs[1] - self.low


def axes_of(words: Mapping[str, Any]) -> list[Axis]:
    return [Axis(*(words[f"{word}_{axis}"] for word in (*ALONG, "x", "w", "y"))) for axis in range(MOST_SPATIAL)]


def place_of_line(code: Code, number: I64, words: Mapping[str, Any], axes: Sequence[Axis]) -> dict[str, I64]:
    """Return the parts of a line's number: its image ("n"), group ("g"), channel ("o"), and places along the first two
    axes ("0", "1")."""
    rest, place = code.variable(number), {}
    for name, size in (("1", axes[1].count), ("0", axes[0].count), ("o", words["outs"]), ("g", words["groups"])):
        place[name] = rest.value % size
        rest.value = rest.value // size
    place["n"] = rest.value
    return place


def address_of(words: Mapping[str, Any], name: str, place: Mapping[str, I64], parts: str) -> Elements:
    """Return the address in the operand `name` of the element at these parts of a place."""
    at: Elements = words[name]
    for part in parts:
        at = at.at(place[part] * words[f"{name}_{part}"])
    return at


def first_axis(axes: Sequence[Axis]) -> tuple[Bool, Bool, Bool]:
    """The first axis with several taps, or the last axis."""
    zero, one = axes[0].taps > 1, axes[1].taps > 1
    return zero, ~zero & one, ~zero & ~one


def term_steps(code: Code, w: Mapping[str, Any], axes: Sequence[Axis], may_slice: Bool) -> dict[str, I64]:
    """The distances between the terms of one channel, or tap, and those of the next, and whether the order is by one
    axis."""
    taps = [axis.taps for axis in axes]
    chosen = first_axis(axes)
    within = taps[0] * taps[1] * taps[2]
    plain = [taps[1] * taps[2], taps[2], I64.of(1)]
    reaches = []
    for axis in axes:
        low, high = axis.reach(code)
        reaches.append((low < 0) | (high >= axis.size))
    sliced = may_slice & ((chosen[0] & reaches[0]) | (chosen[1] & reaches[1]) | (chosen[2] & reaches[2]))
    inner = chosen[0].choose(plain[0], chosen[1].choose(plain[1], plain[2]))
    steps = {"is_sliced": sliced.to(I64, signed=False), "step_c": sliced.choose(inner, within)}
    for number, (is_chosen, step) in enumerate(zip(chosen, plain, strict=True)):
        steps[f"step_{number}"] = (sliced & is_chosen).choose(inner * w["channels_here"], step)
    return steps


def write_offsets(code: Code, w: Mapping[str, Any], axes: Sequence[Axis], steps: Sequence[I64]) -> None:
    """For each term, how far its number is from that of the first."""
    zero, one, two = axes
    with code.count(0, w["channels_here"]) as c, code.count(0, zero.taps) as i, code.count(0, one.taps) as j:
        term = c * w["step_c"] + i * w["step_0"] + j * w["step_1"]
        base = c * w["image_c"] + i * zero.dilation * steps[0] + j * one.dilation * steps[1]
        with code.count(0, two.taps) as k:
            w["offsets"][term + k * w["step_2"]] = base + k * two.dilation * steps[2]


def write_places(code: Code, w: Mapping[str, Any], axes: Sequence[Axis], steps: Sequence[I64]) -> None:
    """For each result of an image, where the number of its first term stands, and where it goes; which terms it has."""
    chosen = first_axis(axes)
    is_padded = w["is_padded"] != 0
    lows = [is_padded.choose(w[f"from_{number}"], 0) + axis.low for number, axis in enumerate(axes)]
    strides = [w[f"step_{number}"] for number in range(MOST_SPATIAL)]

    def terms(number: int, count: I64, before: tuple[I64, I64]) -> tuple[I64, I64]:
        """The first and last of the taps along an axis that lie within the image, as terms, if it is the chosen one."""
        first, last = code.variable(before[0]), code.variable(before[1])
        axis = axes[number]
        with code.when(chosen[number] & (w["is_sliced"] != 0)):
            first.value, last.value = axis.taps, I64.of(0)
            with code.count(0, axis.taps) as tap:
                at = count * axis.stride + tap * axis.dilation - axis.low
                is_there = at.below(axis.size)
                first.value = is_there.choose(least(code, first.value, tap), first.value)
                last.value = is_there.choose(tap + 1, last.value)
            first.value *= strides[number]
            last.value *= strides[number]
        return first.value, last.value

    none = I64.of(0), w["terms"]
    with code.count(0, axes[0].count) as i:
        before = terms(0, i, none)
        place = (i * axes[0].stride - lows[0]) * steps[0]
        with code.count(0, axes[1].count) as j:
            offset = terms(1, j, before)
            here = place + (j * axes[1].stride - lows[1]) * steps[1]
            target = i * axes[0].y + j * axes[1].y
            row = (i * axes[1].count + j) * axes[2].count
            with code.count(0, axes[2].count) as k:
                first, last = terms(2, k, offset)
                pixel = row + k
                w["places"][pixel] = here + (k * axes[2].stride - lows[2]) * steps[2]
                w["targets"][pixel] = target + k * axes[2].y
                w["firsts"][pixel] = first
                w["lasts"][pixel] = last


# --- conv tiles -------------------------------------------------------------------------------------------------------
# Tiles of a convolution: a few results times two registers of kernels, the images read where they stand.
#
# In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR:
#
#     conv_tile_<registers>_<t>(terms, images, offsets, kernels, rows, there, results, step, fresh)
#         for each of `rows` results (of at most ROWS) and `there` lanes: the sum of terms, each a number at the
#         place of `images` that belongs to the result, `offsets` further, times a lane of a row of `kernels`. It goes
#         to the place of `results` that belongs to the result, `step` elements further for each lane; is added there
#         unless `fresh`.
#
# Each number of an image is read once for all lanes, as the left operand of a product is (gemm/tiles.py): where it
# stands follows from two tables, of results and of terms, so that no window of an image is ever copied. Where results
# lie beside each other in memory and their lanes apart, sums are turned around in registers; where lanes do, they are
# stored as they are.


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
    scalar, lanes, count = ARITHMETIC[suffix], lanes_of(suffix), rows_of_tile()
    register: Any = vector(scalar.element, lanes)

    @element_function(f"conv_tile_{registers}", "noinline optsize")
    def write(
        code: Code, suffix: str, terms: I64, images: Ptr, offsets: Indices, kernels: Elements, rows: I64, there: I64,
        results: Ptr, step: I64, fresh: I64,
    ) -> None:  # fmt: skip
        sums = [[code.variable(register.of(0)) for _ in range(registers)] for _ in range(count)]
        bases = [images.at(row, Ptr).load(Ptr).numbers(scalar.element) for row in range(count)]
        with code.when(terms > 0):
            _multiply(code, scalar, sums, bases, terms, offsets, kernels, tile_width(suffix))
        places = [results.at(row, Ptr).load(Ptr) for row in (0, count - 1)]
        first = places[0].numbers(scalar.element)
        distance = places[1].integer() - places[0].integer()
        is_beside = (rows == count) & (distance == (count - 1) * scalar.align)
        is_fresh = fresh != 0
        with code.when(step == 1):
            _store(code, suffix, sums, results, rows, there, is_fresh)
            code.ret()
        with code.when(is_beside & is_fresh):
            _turn(code, scalar, sums, first, there, step, fresh=True)
            code.ret()
        with code.when(is_beside):
            _turn(code, scalar, sums, first, there, step, fresh=False)
            code.ret()
        kept = code.local(scalar.element, count * registers * lanes, align=64).numbers(scalar.element)
        for place, parts in enumerate(sums):
            for number, part in enumerate(parts):
                kept.at((place * registers + number) * lanes).store(part.value, align=scalar.align)
        with code.count(0, rows, sure=True) as row, code.count(0, there, sure=True) as lane:
            at = results.at(row, Ptr).load(Ptr).numbers(scalar.element).at(lane * step)
            total = code.variable(kept[row * (registers * lanes) + lane])
            with code.when(~is_fresh):
                total.value = at.value.apply(scalar.join, total.value)
            at.store(total.value)

    return write(suffix)


def _multiply(
    code: Code, scalar: Arithmetic, sums: Sums, bases: Sequence[Elements], terms: I64, offsets: Indices,
    kernels: Elements, width: int,
) -> None:  # fmt: skip
    """Adds the terms, one row of the kernels after the other."""
    offset_at, kernel_at, left = code.variable(offsets), code.variable(kernels), code.variable(terms)
    register = sums[0][0].type_
    with code.loop() as iteration:
        offset = offset_at.value.value
        parts = [
            kernel_at.value.at(number * register.lanes).load(register, align=scalar.align)
            for number in range(len(sums[0]))
        ]
        for base, row in zip(bases, sums, strict=True):
            number = base[offset].spread(register.lanes)
            for total, part in zip(row, parts, strict=True):
                total.value = total.value.apply(scalar.plus, number.apply(scalar.times, part))
        offset_at.value = offset_at.value.at(1)
        kernel_at.value = kernel_at.value.at(width)
        left.value = left.value.apply("add nsw", -1)
        iteration.leave.when(left.value == 0)


def _store(code: Code, suffix: str, sums: Sums, results: Ptr, rows: I64, there: I64, is_fresh: Bool) -> None:
    """Stores the sums of each result, whose lanes go beside each other."""
    scalar, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    left = [there - number * lanes for number in range(len(sums[0]))]
    parts = [Columns(suffix, lanes, first_lanes((each > 0).choose(each, 0), lanes)) for each in left]
    done = code.label("done")
    for place, row in enumerate(sums):
        if place:
            done.when(rows <= place)
        at = results.at(place, Ptr).load(Ptr).numbers(scalar.element)
        for number, (part, total) in enumerate(zip(parts, row, strict=True)):
            here = at.at(number * lanes)
            with code.when(~is_fresh):
                total.value = part.read(code, here).apply(scalar.join, total.value)
            part.write(code, total.value, here)
    code.place(done)


def _turn(code: Code, scalar: Arithmetic, sums: Sums, place: Elements, there: I64, step: I64, *, fresh: bool) -> None:
    """Stores the sums of each lane beside each other."""
    side = SEGMENT // scalar.align
    several: Any = vector(scalar.element, side)
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
            at = place.at(step * number if number else 0)
            for position, group in enumerate(groups):
                whole, first = group[lane % side], lane // side * side
                part = whole.pick(whole, range(first, first + side))
                here = at.at(position * side)
                if not fresh:
                    part = here.load(several, align=scalar.align).apply(scalar.join, part)
                here.store(part, align=scalar.align)
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
