"""Convolutions: gc_conv_<t> and gc_grouped_conv_<t> in LLVM IR.

In: the suffix of a dtype. Out: the function, which calls `share` (tiles.py).

Convolutions of floats are products of an image's windows with kernels, by tiles (tiles.py). Kernels are copied to
panels of two registers of lanes, one term after the other (tiles.py says in which order). An image that kernels
reach beyond is copied into zeros first, a few images at a time; others are read where they stand. Where an infinity or
a NaN of a kernel could meet such a zero, and for integers, results are computed one by one.

Spreads are taken apart first: the results at each place of a period are a convolution without spread of their own.

Each element is a sum over parts of the terms, which follow from the number of terms alone, each in order: who computes
it changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphc.codegen.convolution import PROTOTYPES, WORDS
from graphc.codegen.convolution.depthwise import (
    FEW,
    dots_range,
    group_lines_range,
    group_panels_range,
    lines_range,
    takes_dots,
    takes_lines,
    takes_panels,
)
from graphc.codegen.convolution.tiles import (
    TABLES,
    Axis,
    address_of,
    axes_of,
    conv_tile,
    place_of_line,
    range_function,
    rows_of_tile,
    term_steps,
    tile_width,
    words_of,
    write_offsets,
    write_places,
)
from graphc.codegen.gemm.blocked import give_back, leave_panels, take_panels
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    GROUP,
    SETTING,
    Words,
    element_function,
    lanes_of,
    least,
    most,
    pack,
    panels,
    share,
)
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import F64, I64, NULL, Bool, Elements, Ptr, vector
from graphc.codegen.threads.settings import LEAST_WORK
from graphc.ops.conv import MOST_SPATIAL

# --- copies of kernels and images -------------------------------------------------------------------------------------
# Kernels and images of a convolution, copied.
#
# In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR, which threads carry out in parts:
#
#     conv_kernels_<t>     kernels to panels of two registers of lanes, one term after the other
#     conv_images_<t>      images into zeros, as far as kernels reach
#     conv_is_finite_<t>   whether panels hold neither NaN nor infinities


@range_function("conv_kernels")
def kernels_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Copies kernels to panels: the groups of lanes from begin to end, each for every channel."""
    width = tile_width(suffix)
    w = words_of(suffix).read(context)
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
        panel = w["panels"].at(begin_ // width * (w["terms"] * width))
        # A part of a group is copied as a whole one that begins before it, where the panel does: the same numbers
        # to the same places. What is behind the last lane is 0.
        moved = w["outs"] - GROUP
        is_part = (lanes > 0) & (lanes < GROUP) & ~(moved < begin_ // width * width)
        with code.when(lanes < GROUP):
            _clear(code, suffix, w, counts, run.value, channel, panel.at(begin_ % width))
        lane = is_part.choose(moved, begin_)
        lanes = is_part.choose(I64.of(GROUP), lanes)
        with code.when(lanes > 0):
            source = w["first_w"].at(lane * w["w_o"] + channel * w["w_c"])
            with code.count(0, counts[1]) as first, code.count(0, counts[0]) as second:
                term = channel * w["step_c"] + first * w["step_0"] + second * w["step_1"]
                from_ = source.at(first * axes[0].w + second * axes[1].w)
                to = panel.at(term * width + lane % width)
                pack(suffix)(code, lanes, run.value, from_, w["w_o"], axes[2].w, to, w["step_2"] * width)


def _clear(
    code: Code, suffix: str, w: dict[str, Any], counts: Sequence[I64], run: I64, channel: I64, panel: Elements
) -> None:
    """Fills a group of lanes of a channel's terms with zeros."""
    scalar, width = ARITHMETIC[suffix], tile_width(suffix)
    group: Any = vector(scalar.element, GROUP)
    with code.count(0, counts[1]) as first, code.count(0, counts[0]) as second, code.count(0, run) as third:
        term = channel * w["step_c"] + first * w["step_0"] + second * w["step_1"] + third * w["step_2"]
        panel.at(term * width).store(group.of(0), align=scalar.align)


@range_function("conv_images")
def images_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Copies channels of images into zeros: those from begin to end."""
    w = words_of(suffix).read(context)
    axes = axes_of(w)
    lengths = [w[f"length_{axis}"] for axis in range(MOST_SPATIAL)]
    lows = [w[f"from_{axis}"] for axis in range(MOST_SPATIAL)]
    with code.count(begin, end) as unit:
        n, c = unit // w["channels_here"], unit % w["channels_here"]
        source = w["source"].at(n * w["x_n"] + c * w["x_c"])
        target = w["image"].at(n * w["image_n"] + c * w["image_c"])
        with code.count(0, lengths[0]) as i, code.count(0, lengths[1]) as j:
            at = [i + lows[0], j + lows[1]]
            is_there = at[0].below(axes[0].size) & at[1].below(axes[1].size)
            begin_ = least(code, most(code, I64.of(0) - lows[2], I64.of(0)), lengths[2])
            end_ = least(code, most(code, axes[2].size - lows[2], begin_), lengths[2])
            first, last = is_there.choose(begin_, lengths[2]), is_there.choose(end_, lengths[2])
            to = target.at((i * lengths[1] + j) * lengths[2])
            from_ = source.at(at[0] * axes[0].x + at[1] * axes[1].x + lows[2] * axes[2].x)
            _fill(code, suffix, to, I64.of(0), first)
            _copy(code, suffix, from_, axes[2].x, to, first, last)
            _fill(code, suffix, to, last, lengths[2])


def _fill(code: Code, suffix: str, to: Elements, begin: I64, end: I64) -> None:
    element = ARITHMETIC[suffix].element
    with code.count(begin, end) as place:
        to[place] = element.of(0)


def _copy(code: Code, suffix: str, from_: Elements, step: I64, to: Elements, begin: I64, end: I64) -> None:
    scalar = ARITHMETIC[suffix]
    group: Any = vector(scalar.element, GROUP)
    place = code.variable(begin)
    with code.when(step == 1), code.loop() as iteration:
        iteration.leave.unless(place.value + GROUP <= end)
        to.at(place.value).store(from_.at(place.value).load(group, align=scalar.align), align=scalar.align)
        place.value += GROUP
    with code.count(place.value, end) as rest:
        to[rest] = from_[rest * step]


def is_finite(suffix: str) -> Function[..., Bool]:
    """True if the first groups of lanes of rows of panels hold neither NaN nor infinities."""
    scalar, width = ARITHMETIC[suffix], tile_width(suffix)
    register: Any = vector(scalar.element, GROUP)

    def write(code: Code, memory: Ptr, rows: I64, groups: I64) -> Bool:
        total = code.variable(register.of(0))
        with code.count(0, rows, sure=True) as row, code.count(0, groups, sure=True) as group:
            part = memory.at(row * width + group * GROUP, scalar.element).load(register, align=scalar.align)
            total.value = total.value + part * 0.0
        zero = code.variable(total.value.lane(0))
        for lane in range(1, GROUP):
            zero.value = zero.value + total.value.lane(lane)
        return zero.value == 0.0

    params = {"memory": Ptr, "rows": I64, "groups": I64}
    return Function(f"conv_is_finite_{suffix}", Bool, params, write, "noinline optsize", is_internal=True)


# --- convolution ------------------------------------------------------------------------------------------------------


UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 2.0}
"""The cost of a term in tiles, in units of work (threads/settings.py)."""
ONE_BY_ONE = 2.0
"""The cost of a term where results are computed one by one."""
COPIED = 0.5
"""The cost of an element that is copied."""
DEPTH = 1024
"""Terms that are added at a time: a panel of kernels is 128 kB then, in the second cache."""
SLICED = 4096
"""Terms up to which those of a result that lie beyond the image are left out."""
PANEL_BYTES = 2**20
"""Memory for kernels, about, which stays in the second cache: of more channels some are taken at a time."""
IMAGE_BYTES = 2**22
"""Memory for images, about."""
PARTS = 64
"""Parts of the results that threads share, about."""
MOST_TILES = 32
"""Tiles of a part at most."""

# Results one by one. --------------------------------------------------------------------------------------------------


@range_function("conv_rows")
def rows_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """The rows of results from begin to end, element by element."""
    scalar = ARITHMETIC[suffix]
    words = words_of(suffix).read(context)
    axes = axes_of(words)
    last = axes[-1]
    with code.count(begin, end) as row:
        place = place_of_line(code, row, words, axes)
        x, w, y = (address_of(words, name, place, parts) for name, parts in (("x", "ng"), ("w", "go"), ("y", "ngo01")))
        with code.count(0, last.count) as p:
            total: Variable[Any] = code.variable(scalar.element.of(0))
            with code.count(0, words["channels"]) as c:
                at = x.at(c * words["x_c"]), w.at(c * words["w_c"])
                _add(code, scalar, total, axes, (place["0"], place["1"], p), at)
            y[p * last.y] = total.value


def _add(
    code: Code, scalar: Any, total: Variable[Any], axes: Sequence[Axis], counts: tuple[I64, ...],
    at: tuple[Elements, Elements],
) -> None:  # fmt: skip
    """Adds the terms of all taps along these axes to a sum."""
    (axis, *others), (count, *rest), (x, w) = axes, counts, at
    tap = code.variable(I64.of(0))
    with code.loop() as iteration:
        iteration.leave.unless(tap.value < axis.taps)
        now = tap.value
        tap.value = now + 1
        i = axis.place(count, now, iteration)
        there = x.at(i * axis.x), w.at(now * axis.w)
        if others:
            _add(code, scalar, total, others, tuple(rest), there)
        else:
            left, right = (each.value for each in there)
            total.value = total.value.apply(scalar.plus, left.apply(scalar.times, right))


@element_function("conv_one_by_one", "noinline optsize")
def one_by_one(code: Code, suffix: str, context: Ptr) -> None:
    """All results, one by one."""
    words = words_of(suffix).read(context)
    first, second, third = axes_of(words)
    rows = words["images"] * words["groups"] * words["outs"] * first.count * second.count
    each = third.count * words["channels"] * first.taps * second.taps * third.taps
    distribute(code, rows_range(suffix), context, rows, each.to(F64) * ONE_BY_ONE + 1.0)


def distribute(code: Code, body: Function[..., None], context: Ptr, count: I64, work: F64) -> None:
    """Carries out a range, by threads where that pays, of which each number is so much work."""
    exact = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work
    few = (exact < count.to(F64)).choose(exact, count.to(F64)).to(I64)
    share(code, body.pointer(code), context, count, (few > 1).choose(few, 1), work * count.to(F64))


# Tiles. ---------------------------------------------------------------------------------------------------------------


@range_function("conv_tiles")
def tiles_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Computes the parts of the results from begin to end: some tiles of one panel of lanes each."""
    width = tile_width(suffix)
    w = words_of(suffix).read(context)
    count = rows_of_tile()
    bases, targets = code.local(Ptr, count), code.local(Ptr, count)
    across, results = panels(w["outs"], width), w["images_here"] * w["pixels"]
    part = w["height"] * count
    with code.count(begin, end, sure=True) as unit:
        lane, from_ = unit % across * width, unit // across * part
        there = least(code, w["outs"] - lane, I64.of(width))
        panel = w["panels"].at(lane * w["terms"])
        target = w["target"].at(lane * w["y_o"])
        depth = (w["is_sliced"] == 0).choose(I64.of(DEPTH), w["terms"])
        until = least(code, from_ + part, results)
        with code.count(0, w["terms"], depth, sure=True) as term:
            stop = least(code, term + depth, w["terms"])
            fresh = (term == 0).choose(w["is_fresh"], I64.of(0))
            with code.count(from_, until, count, sure=True) as row:
                rows = least(code, until - row, I64.of(count))
                first, last = _rows(code, suffix, w, row, rows, target, bases, targets, term, stop)
                terms = most(code, last - first, I64.of(0))
                operands = terms, bases, w["offsets"].at(first), panel.at(first * width)
                places = rows, there, targets, w["y_o"], fresh
                with code.when(there > lanes_of(suffix)):
                    conv_tile(suffix, 2)(code, *operands, *places)
                with code.otherwise():
                    conv_tile(suffix, 1)(code, *operands, *places)


def _rows(
    code: Code, suffix: str, w: dict[str, Any], row: I64, rows: I64, target: Elements, bases: Ptr, targets: Ptr,
    term: I64, stop: I64,
) -> tuple[I64, I64]:  # fmt: skip
    """The places of the numbers of a tile's results, where the results go, and the terms they have."""
    n, pixel = row // w["pixels"], code.variable(row % w["pixels"])
    image, result = (
        code.variable(w["image"].at(n * w["image_n"])),
        code.variable(target.at(n * w["y_n"])),
    )
    first, last = code.variable(stop), code.variable(term)
    for number in range(rows_of_tile()):
        bases.at(number, Ptr).store(image.value.at(w["places"][pixel.value]))
        targets.at(number, Ptr).store(result.value.at(w["targets"][pixel.value]))
        first.value = least(code, first.value, w["firsts"][pixel.value])
        last.value = most(code, last.value, w["lasts"][pixel.value])
        goes_on = rows > number + 1
        following = pixel.value + goes_on.to(I64, signed=False)
        is_next = following == w["pixels"]
        image.value = image.value.at(is_next.choose(w["image_n"], 0))
        result.value = result.value.at(is_next.choose(w["y_n"], 0))
        pixel.value = is_next.choose(I64.of(0), following)
    is_sliced = w["is_sliced"] != 0
    return is_sliced.choose(first.value, term), is_sliced.choose(last.value, stop)


# All of a convolution without spreads. --------------------------------------------------------------------------------


@element_function("conv_by_tiles", "noinline optsize")
def by_tiles(code: Code, suffix: str, context: Ptr) -> Bool:
    """A convolution without spreads by tiles; false where it is to be computed one by one."""
    scalar, width = ARITHMETIC[suffix], tile_width(suffix)
    record = words_of(suffix)
    w = record.read(context)
    axes = axes_of(w)
    taps = axes[0].taps * axes[1].taps * axes[2].taps
    pixels = axes[0].count * axes[1].count * axes[2].count
    lanes = panels(w["outs"], width) * width
    passes = least(code, most(code, PANEL_BYTES // scalar.align // lanes // taps, I64.of(1)), w["channels"])
    padding = _lengths(code, record, context, axes)
    volume = padding["length_0"] * padding["length_1"] * padding["length_2"]
    is_padded = padding["is_padded"] != 0
    fitting = most(code, IMAGE_BYTES // scalar.align // passes // volume, I64.of(1))
    chunk = least(code, w["images"], is_padded.choose(fitting, w["images"]))
    sizes = [passes * taps, *[pixels] * 4]
    words = sum(sizes[1:], sizes[0])
    copied = is_padded.choose(chunk * passes * volume, 0)
    length = words * 8 + (passes * taps * lanes + copied) * scalar.align + 256
    memory, is_mine = take_panels(code, length)
    with code.when(memory == NULL):
        leave_panels(code, memory, is_mine)
        code.ret(False)
    aligned = memory.at(((memory.integer() + 63) & -64) - memory.integer())
    tables, at = {}, aligned
    for name, size in zip(TABLES, sizes, strict=True):
        tables[name] = at
        at = at.at(size, I64)
    panel = at.at(((at.integer() + 63) & -64) - at.integer())
    image = panel.at(passes * taps * lanes, scalar.element)
    record.put(context, {**tables, "panels": panel, "pixels": pixels})
    with (
        code.count(0, w["groups"], sure=True) as group,
        code.count(0, w["images"], chunk, sure=True) as n,
        code.count(0, w["channels"], passes, sure=True) as c,
    ):
        here = least(code, w["images"] - n, chunk)
        there = least(code, w["channels"] - c, passes)
        source = w["x"].at(group * w["x_g"] + n * w["x_n"] + c * w["x_c"])
        first_w = w["w"].at(group * w["w_g"] + c * w["w_c"])
        target = w["y"].at(group * w["y_g"] + n * w["y_n"])
        record.put(context, {
                "source": source, "first_w": first_w, "target": target, "images_here": here, "channels_here": there,
                "is_new": ((group + n + c == 0) | (w["channels"] > passes)).to(I64, signed=False),
                "terms": there * taps, "is_fresh": (c == 0).to(I64, signed=False),
                "image": is_padded.choose(image, source), "image_c": is_padded.choose(volume, w["x_c"]),
                "image_n": is_padded.choose(volume * there, w["x_n"]),
            })  # fmt: skip
        is_fit = part(suffix)(code, context)
        with code.when(~is_fit):
            leave_panels(code, memory, is_mine)
            code.ret(False)
    leave_panels(code, memory, is_mine)
    return Bool.of(True)


def _lengths(code: Code, record: Words, context: Ptr, axes: Sequence[Axis]) -> dict[str, I64]:
    """The extent of kernels along each axis, and whether that is beyond the image."""
    is_padded: Bool | None = None
    bounds: dict[str, I64] = {}
    for number, axis in enumerate(axes):
        low, high = axis.reach(code)
        bounds |= {f"from_{number}": low, f"length_{number}": high - low + 1}
        beyond = (low < 0) | (high >= axis.size)
        is_padded = beyond if is_padded is None else is_padded | beyond
    assert is_padded is not None
    bounds["is_padded"] = is_padded.to(I64, signed=False)
    record.put(context, bounds)
    return bounds


@element_function("conv_part", "noinline optsize")
def part(code: Code, suffix: str, context: Ptr) -> Bool:
    """Some channels of some images of a group; false where a kernel is not finite and may meet what is not there."""
    width, record = tile_width(suffix), words_of(suffix)
    w = record.read(context)
    axes = axes_of(w)
    is_padded = w["is_padded"] != 0
    is_by_lines = (w["outs"] <= FEW) & (is_padded | (axes[2].x == 1)) & (axes[2].stride == 1) & (axes[2].y == 1)
    may_slice = is_padded & (w["terms"] <= SLICED) & ~is_by_lines
    record.put(context, term_steps(code, w, axes, may_slice))
    w = record.read(context)
    with code.when(w["is_new"] != 0):
        steps = [is_padded.choose(step, axis.x) for step, axis in zip(_dense(w), axes, strict=True)]
        write_offsets(code, w, axes, steps)
        write_places(code, w, axes, steps)
    across = panels(w["outs"], width)
    groups = is_by_lines.choose(I64.of(1), across * (width // GROUP))
    each = (w["terms"] // w["channels_here"]).to(F64) * (COPIED * GROUP)
    distribute(code, kernels_range(suffix), context, groups * w["channels_here"], each)
    with code.when(is_padded):
        with code.when(
            ~is_finite(suffix)(code, w["panels"], w["terms"] * across, least(code, groups, I64.of(width // GROUP)))
        ):
            code.ret(False)
        copied = w["images_here"] * w["channels_here"]
        distribute(code, images_range(suffix), context, copied, w["image_c"].to(F64) * COPIED)
    with code.when(is_by_lines):
        lines = w["images_here"] * axes[0].count * axes[1].count
        work = (w["outs"] * w["terms"] * axes[2].count).to(F64) * UNIT[suffix]
        distribute(code, lines_range(suffix), context, lines, work)
        code.ret(True)
    tiles = panels(w["images_here"] * w["pixels"], I64.of(rows_of_tile()))
    height = most(code, least(code, tiles * across // PARTS, I64.of(MOST_TILES)), I64.of(1))
    record.put(context, {"height": height})
    work = (height * w["terms"]).to(F64) * (UNIT[suffix] * rows_of_tile() * width)
    distribute(code, tiles_range(suffix), context, panels(tiles, height) * across, work)
    return Bool.of(True)


def _dense(w: dict[str, Any]) -> list[I64]:
    """The steps of images that were copied."""
    return [w["length_1"] * w["length_2"], w["length_2"], I64.of(1)]


# The convolution. -----------------------------------------------------------------------------------------------------


def without_spread(routine: str, suffix: str) -> Function[..., None]:
    """A convolution without spreads, `grouped_conv` with code for many groups."""
    has_groups = routine == "grouped_conv"

    def write(code: Code, context: Ptr) -> None:
        words = words_of(suffix).read(context)
        axes = axes_of(words)
        with code.when(axes[0].count * axes[1].count * axes[2].count == 0):
            code.ret()
        terms = words["channels"] * axes[0].taps * axes[1].taps * axes[2].taps
        if has_groups:
            with code.when(takes_lines(words, FEW)):
                lines = words["images"] * words["outs"] * axes[0].count * axes[1].count
                work = (words["groups"] * terms * axes[2].count).to(F64) * UNIT[suffix]
                distribute(code, group_lines_range(suffix), context, lines, work)
                code.ret()
        with code.when(takes_dots(words, axes, FEW)):
            lines = words["images"] * words["groups"] * words["outs"] * axes[0].count * axes[1].count
            work = (terms * axes[2].count).to(F64) * UNIT[suffix]
            distribute(code, dots_range(suffix), context, lines, work)
            code.ret()
        if has_groups:
            with code.when(takes_panels(suffix, words, FEW)):
                words_of(suffix).put(context, {"is_new": I64.of(0)})
                results = words["outs"] * axes[0].count * axes[1].count * axes[2].count
                work = (results * terms * tile_width(suffix)).to(F64) * UNIT[suffix]
                across = panels(words["groups"], tile_width(suffix))
                distribute(code, group_panels_range(suffix), context, words["images"] * across, work)
                with code.when(words_of(suffix).read(context)["is_new"] == 0):
                    code.ret()
        with code.when(terms > 0), code.when(by_tiles(suffix)(code, context)):
            code.ret()
        one_by_one(suffix)(code, context)

    return Function(
        f"{routine}_without_spread_{suffix}", None, {"context": Ptr}, write, "noinline optsize", is_internal=True
    )


def by_periods(routine: str, suffix: str) -> Function[..., None]:
    """A convolution with spreads: for each place within the period of an axis one without, of the taps that meet
    elements there, which are as far apart as it takes to meet the next."""

    def write(code: Code, context: Ptr) -> None:
        record = words_of(suffix)
        words = record.read(context)
        axes = axes_of(words)
        words_of_part = code.local(I64, len(record.types))
        periods = [code.count(0, axis.spread, sure=True) for axis in axes]
        with periods[0] as first, periods[1] as second, periods[2] as third:
            x, w, y = words["x"], words["w"], words["y"]
            record.put(words_of_part, {name: words[name] for name in WORDS})
            for number, (axis, place) in enumerate(zip(axes, (first, second, third), strict=True)):
                tap, step = _taps_at(code, axis, place)
                left = most(code, axis.taps - tap, I64.of(0))
                at = place * axis.stride + tap * axis.dilation - axis.low
                changed = {
                    "count": most(code, axis.count - place + axis.spread - 1, I64.of(0)) // axis.spread,
                    "taps": (left + step - 1) // step, "dilation": (step * axis.dilation).apply("sdiv", axis.spread),
                    "low": (I64.of(0) - at).apply("sdiv", axis.spread), "spread": I64.of(1),
                }  # fmt: skip
                record.put(words_of_part, {f"{word}_{number}": value for word, value in changed.items()})
                record.put(words_of_part, {f"w_{number}": step * axis.w, f"y_{number}": axis.spread * axis.y})
                w, y = w.at((left > 0).choose(tap * axis.w, 0)), y.at(place * axis.y)
            record.put(words_of_part, {"x": x, "w": w, "y": y})
            without_spread(routine, suffix)(code, words_of_part)

    return Function(
        f"{routine}_by_periods_{suffix}", None, {"context": Ptr}, write, "noinline optsize", is_internal=True
    )


def _taps_at(code: Code, axis: Axis, place: I64) -> tuple[I64, I64]:
    """The first tap that meets an element from a place within a period, as many as there are if none does, and how many
    taps it is to the next."""
    first, step = code.variable(I64.of(0)), code.variable(I64.of(1))
    with code.loop() as iteration:
        iteration.leave.unless(first.value < axis.taps)
        at = place * axis.stride + first.value * axis.dilation - axis.low
        iteration.leave.when(at.apply("srem", axis.spread) == 0)
        first.value += 1
    with code.loop() as iteration:
        iteration.leave.when((step.value * axis.dilation).apply("srem", axis.spread) == 0)
        step.value += 1
    return first.value, step.value


def convolution(routine: str, suffix: str) -> Function[..., I64]:
    """gc_conv_<t>, or gc_grouped_conv_<t>."""
    params: dict[str, Any] = {name: Ptr if name in ("x", "w", "y") else I64 for name in WORDS}

    def write(code: Code, *values: Any) -> I64:
        words = dict(zip(WORDS, values, strict=True))
        record = words_of(suffix)
        context = code.local(I64, len(record.types))
        record.put(context, words)
        axes = axes_of(words)
        results = words["images"] * words["groups"] * words["outs"] * axes[0].count * axes[1].count * axes[2].count
        with code.when(results == 0):
            code.ret(I64.of(0))
        if suffix in ("f64", "f32"):
            is_plain = axes[0].spread * axes[1].spread * axes[2].spread == 1
            with code.when(is_plain):
                without_spread(routine, suffix)(code, context)
            with code.otherwise():
                by_periods(routine, suffix)(code, context)
        else:
            one_by_one(suffix)(code, context)
        return I64.of(0)

    return Function(f"gc_{routine}_{suffix}", I64, params, write, "noinline optsize")


def functions(names: Iterable[str]) -> list[Function[..., Any]]:
    """These functions of PROTOTYPES, and what gives back the memory that those of floats keep."""
    chosen = [name.removeprefix("gc_").rpartition("_") for name in sorted(PROTOTYPES.keys() & set(names))]
    kept = sorted({suffix for _, _, suffix in chosen} & {"f32", "f64"})
    return [*(convolution(routine, suffix) for routine, _, suffix in chosen), *map(give_back, kept)]
