"""Tables of convolutions: where the numbers of results and of terms stand.

In: the words of a convolution (convolution.py). Out: statements of LLVM IR that write its tables, and the order of its
terms.

A term is a channel and a tap along each axis. Terms stand in that order, unless kernels reach beyond the image: then
the taps of one axis come first, so that those of a result that lie within the image follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.codegen.gemm.context import Words
from graphc.codegen.gemm.packing import least, most
from graphc.codegen.gemm.prototypes import ALONG, ARGUMENTS
from graphc.codegen.llvm.builder import Code, Iteration
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I64, Bool, Ptr
from graphc.ops.conv import MOST_SPATIAL
from graphc.startup.record import record

WORDS = ARGUMENTS["conv"].split()
TABLES = ("offsets", "places", "targets", "firsts", "lasts")
"""The tables. Of terms: how far from that of the result's first term its number stands. Of results of one image: where
the number of the first term stands, where the result goes, and which terms lie within the image."""
OWN = """
panels image image_n image_c source first_w target images_here channels_here terms pixels height is_fresh is_new
is_padded is_sliced step_c step_0 step_1 step_2 from_0 from_1 from_2 length_0 length_1 length_2
""".split()
"""Words that threads are given besides."""


def words_of() -> Words:
    pointers = {"x", "w", "y", "panels", "image", "source", "first_w", "target", *TABLES}
    return Words({name: Ptr if name in pointers else I64 for name in (*WORDS, *TABLES, *OWN)})


def range_function(name: str, body: Callable[..., None]) -> Function[..., None]:
    return Function(name, None, {"context": Ptr, "begin": I64, "end": I64}, body, "noinline", is_internal=True)


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
            w["offsets"].at(term + k * w["step_2"], I64).store(base + k * two.dilation * steps[2])


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
            own = terms(1, j, before)
            here = place + (j * axes[1].stride - lows[1]) * steps[1]
            target = i * axes[0].y + j * axes[1].y
            row = (i * axes[1].count + j) * axes[2].count
            with code.count(0, axes[2].count) as k:
                first, last = terms(2, k, own)
                pixel = row + k
                w["places"].at(pixel, I64).store(here + (k * axes[2].stride - lows[2]) * steps[2])
                w["targets"].at(pixel, I64).store(target + k * axes[2].y)
                w["firsts"].at(pixel, I64).store(first)
                w["lasts"].at(pixel, I64).store(last)
