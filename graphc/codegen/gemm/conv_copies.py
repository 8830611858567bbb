"""Kernels and images of a convolution, copied.

In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR, which threads carry out in parts:

    conv_kernels_<t>     kernels to panels of two registers of lanes, one term after the other
    conv_images_<t>      images into zeros, as far as kernels reach
    conv_is_finite_<t>   whether panels hold neither NaN nor infinities
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.gemm.conv_tables import axes_of, range_function, words_of
from graphc.codegen.gemm.conv_tiles import tile_width
from graphc.codegen.gemm.microkernel import ARITHMETIC
from graphc.codegen.gemm.packing import GROUP, least, most, pack
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I64, Bool, Ptr, vector
from graphc.ops.conv import MOST_SPATIAL


def kernels_range(suffix: str) -> Function[..., None]:
    """Copies kernels to panels: the groups of lanes from begin to end, each for every channel."""
    kind, width = ARITHMETIC[suffix].kind, tile_width(suffix)

    def write(code: Code, context: Ptr, begin: I64, end: I64) -> None:
        w = words_of().read(context)
        axes = axes_of(w)
        channels = w["channels_here"]
        # Taps that stand one after the other, in memory and among terms, are one run.
        runs = [axes[2].taps, axes[1].taps, axes[0].taps]
        is_plain = w["is_sliced"] == 0
        run, counts = code.variable(runs[0]), []
        for axis, taps in ((axes[1], runs[1]), (axes[0], runs[2])):
            joins = is_plain & (axis.w == run.value * axes[2].w)
            counts.append(joins.choose(I64.of(1), taps))
            run.value = joins.choose(run.value * taps, run.value)
            is_plain &= joins
        with code.count(begin, end) as unit:
            begin_, channel = unit // channels * GROUP, unit % channels
            lanes = most(code, least(code, w["outs"] - begin_, I64.of(GROUP)), I64.of(0))
            panel = w["panels"].at(begin_ // width * (w["terms"] * width), kind)
            # A part of a group is copied as a whole one that begins before it, where the panel does: the same numbers
            # to the same places. What is behind the last lane is 0.
            moved = w["outs"] - GROUP
            is_part = (lanes > 0) & (lanes < GROUP) & ~(moved < begin_ // width * width)
            with code.when(lanes < GROUP):
                _clear(code, suffix, w, counts, run.value, channel, panel.at(begin_ % width, kind))
            lane = is_part.choose(moved, begin_)
            lanes = is_part.choose(I64.of(GROUP), lanes)
            with code.when(lanes > 0):
                source = w["first_w"].at(lane * w["w_o"] + channel * w["w_c"], kind)
                with code.count(0, counts[1]) as first, code.count(0, counts[0]) as second:
                    term = channel * w["step_c"] + first * w["step_0"] + second * w["step_1"]
                    from_ = source.at(first * axes[0].w + second * axes[1].w, kind)
                    to = panel.at(term * width + lane % width, kind)
                    pack(suffix)(code, lanes, run.value, from_, w["w_o"], axes[2].w, to, w["step_2"] * width)

    return range_function(f"conv_kernels_{suffix}", write)


def _clear(
    code: Code, suffix: str, w: dict[str, Any], counts: Sequence[I64], run: I64, channel: I64, panel: Ptr
) -> None:
    """Fills a group of lanes of a channel's terms with zeros."""
    own, width = ARITHMETIC[suffix], tile_width(suffix)
    group: Any = vector(own.kind, GROUP)
    with code.count(0, counts[1]) as first, code.count(0, counts[0]) as second, code.count(0, run) as third:
        term = channel * w["step_c"] + first * w["step_0"] + second * w["step_1"] + third * w["step_2"]
        panel.at(term * width, own.kind).store(group.of(0), align=own.align)


def images_range(suffix: str) -> Function[..., None]:
    """Copies channels of images into zeros: those from begin to end."""
    kind = ARITHMETIC[suffix].kind

    def write(code: Code, context: Ptr, begin: I64, end: I64) -> None:
        w = words_of().read(context)
        axes = axes_of(w)
        lengths = [w[f"length_{axis}"] for axis in range(MOST_SPATIAL)]
        lows = [w[f"from_{axis}"] for axis in range(MOST_SPATIAL)]
        with code.count(begin, end) as unit:
            n, c = unit // w["channels_here"], unit % w["channels_here"]
            source = w["source"].at(n * w["x_n"] + c * w["x_c"], kind)
            target = w["image"].at(n * w["image_n"] + c * w["image_c"], kind)
            with code.count(0, lengths[0]) as i, code.count(0, lengths[1]) as j:
                at = [i + lows[0], j + lows[1]]
                is_there = at[0].below(axes[0].size) & at[1].below(axes[1].size)
                begin_ = least(code, most(code, I64.of(0) - lows[2], I64.of(0)), lengths[2])
                end_ = least(code, most(code, axes[2].size - lows[2], begin_), lengths[2])
                first, last = is_there.choose(begin_, lengths[2]), is_there.choose(end_, lengths[2])
                to = target.at((i * lengths[1] + j) * lengths[2], kind)
                from_ = source.at(at[0] * axes[0].x + at[1] * axes[1].x + lows[2] * axes[2].x, kind)
                _fill(code, suffix, to, I64.of(0), first)
                _copy(code, suffix, from_, axes[2].x, to, first, last)
                _fill(code, suffix, to, last, lengths[2])

    return range_function(f"conv_images_{suffix}", write)


def _fill(code: Code, suffix: str, to: Ptr, begin: I64, end: I64) -> None:
    kind = ARITHMETIC[suffix].kind
    with code.count(begin, end) as place:
        to.at(place, kind).store(kind.of(0))


def _copy(code: Code, suffix: str, from_: Ptr, step: I64, to: Ptr, begin: I64, end: I64) -> None:
    own = ARITHMETIC[suffix]
    group: Any = vector(own.kind, GROUP)
    place = code.variable(begin)
    with code.when(step == 1), code.loop() as iteration:
        iteration.leave.unless(place.value + GROUP <= end)
        to.at(place.value, own.kind).store(
            from_.at(place.value, own.kind).load(group, align=own.align), align=own.align
        )
        place.value += GROUP
    with code.count(place.value, end) as rest:
        to.at(rest, own.kind).store(from_.at(rest * step, own.kind).load(own.kind))


def is_finite(suffix: str) -> Function[..., Bool]:
    """True if the first groups of lanes of rows of panels hold neither NaN nor infinities."""
    own, width = ARITHMETIC[suffix], tile_width(suffix)
    kind: Any = vector(own.kind, GROUP)

    def write(code: Code, memory: Ptr, rows: I64, groups: I64) -> Bool:
        total = code.variable(kind.of(0))
        with code.count(0, rows, sure=True) as row, code.count(0, groups, sure=True) as group:
            part = memory.at(row * width + group * GROUP, own.kind).load(kind, align=own.align)
            total.value = total.value + part * 0.0
        found = code.variable(total.value.lane(0))
        for lane in range(1, GROUP):
            found.value = found.value + total.value.lane(lane)
        return found.value == 0.0  # type: ignore[no-any-return]

    params = {"memory": Ptr, "rows": I64, "groups": I64}
    return Function(f"conv_is_finite_{suffix}", Bool, params, write, "noinline optsize", is_internal=True)
