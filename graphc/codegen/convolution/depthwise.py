"""Convolutions of many groups to few channels each, as depthwise ones are: groups are the lanes.

In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR, for a convolution without spreads
(convolution.py):

    conv_group_lines_<t>(context, begin, end)
        lines of results along the last axis, of all groups, which stand beside each other in images and kernels
    conv_group_panels_<t>(context, begin, end)
        all results of panels of groups, copied to where they stand beside each other if they do not

Only terms that lie within the image are read. What a line of taps adds up to, or a channel where lines are short, is a
part of a sum; parts are added up in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from graphc.codegen.convolution.tiles import (
    Axis,
    address_of,
    axes_of,
    place_of_line,
    range_function,
    rows_of_tile,
    tile_width,
    words_of,
)
from graphc.codegen.gemm.blocked import leave_panels, take_panels
from graphc.codegen.gemm.gemv import add_lanes, join
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    GROUP,
    Columns,
    element_function,
    first_lanes,
    lanes_of,
    least,
    most,
    pack,
    panels,
)
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I64, NULL, Bool, Elements, Indices, Ptr, vector

LONG = 16
"""Taps of a line of which the sum is a part of its own."""
TURNED_BYTES = 2**24
"""Memory for a panel of groups, at most."""

Sums: TypeAlias = Sequence[Sequence[Variable[Any]]]


def takes_lines(w: dict[str, Any], few: int) -> Bool:
    """True if lines of results of many groups are to be computed: their numbers stand beside each other."""
    third = axes_of(w)[2]
    return _groups_are_adjacent(w) & (w["groups"] > 1) & (w["outs"] <= few) & (third.taps <= third.count)


def takes_panels(suffix: str, w: dict[str, Any], few: int) -> Bool:
    """True if panels of groups are: there are many terms for each result, or no other lanes stand beside each other."""
    third = axes_of(w)[2]
    is_line = (third.stride == 1) & (third.y == 1) & (third.taps <= third.count)
    image, kernel = _turned_length(suffix, w)
    length = _groups_are_adjacent(w).choose(I64.of(1), image + kernel)
    is_fit = (w["channels"] > 0) & (length > 0) & (length <= TURNED_BYTES // ARITHMETIC[suffix].align)
    is_better = _groups_are_adjacent(w) | (~is_line & (w["groups"] >= GROUP))
    return is_better & is_fit & (w["groups"] > 1) & (w["outs"] <= few)


def _groups_are_adjacent(w: dict[str, Any]) -> Bool:
    """True if the groups of images and kernels stand beside each other."""
    return (w["x_g"] == 1) & (w["w_g"] == 1)


def _results() -> int:
    """Results of a line that are computed at a time."""
    return rows_of_tile() // 2


def group_block(suffix: str, registers: int) -> Function[..., None]:
    """conv_group_block_<registers>_<t>(context, image, kernel, result, p, q, begin, there, fresh): the results at
    places p, q along the first axes, from `begin` on along the last, of `there` groups: two registers, or at most one.
    They are added to what stands there unless `fresh`."""
    lanes, results = lanes_of(suffix), _results()

    @element_function(f"conv_group_block_{registers}", "noinline optsize")
    def write(
        code: Code, suffix: str, context: Ptr, image: Elements, kernel: Elements, result: Elements, p: I64, q: I64,
        begin: I64, there: I64, fresh: I64,
    ) -> None:  # fmt: skip
        w = words_of(suffix).read(context)
        first, second, third = axes_of(w)
        columns = Columns(suffix, lanes, first_lanes(there, lanes) if registers == 1 else None)
        places = [least(code, begin + number, third.count - 1) for number in range(results)]
        taps = _taps(code, third, places)
        bases = [image.at((place * third.stride - third.low) * third.x) for place in places]
        sums, totals = (
            [[code.variable(columns.register.of(0)) for _ in range(registers)] for _ in places] for _ in range(2)
        )
        with code.count(0, w["channels"]) as c:
            with code.count(0, first.taps) as i:
                at_0 = p * first.stride + i * first.dilation - first.low
                with code.when(at_0.below(first.size)), code.count(0, second.taps) as j:
                    at_1 = q * second.stride + j * second.dilation - second.low
                    with code.when(at_1.below(second.size)):
                        offset = c * w["x_c"] + at_0 * first.x + at_1 * second.x
                        line = kernel.at(c * w["w_c"] + i * first.w + j * second.w)
                        _add(code, columns, third, sums, [base.at(offset) for base in bases], line, *taps)
                        with code.when(third.taps >= LONG):
                            _join(columns, sums, totals)
            _join(columns, sums, totals)
        left = least(code, third.count - begin, I64.of(results))
        _store(code, columns, totals, result.at(begin * third.y), (third.y, w["y_g"]), left, there, fresh)

    return write(suffix)


def _taps(code: Code, axis: Axis, places: Sequence[I64]) -> tuple[list[tuple[I64, I64]], Bool]:
    """For each result the first tap within the image, and the one behind the last; whether all taps are, for all."""
    firsts, lasts = ([code.variable(end) for _ in places] for end in (I64.of(0), axis.taps))
    reach = (axis.taps - 1) * axis.dilation
    begins = [place * axis.stride - axis.low for place in places]
    is_within: Bool | None = None
    for begin in (begins[0], begins[-1]):
        inside = begin.below(axis.size) & (begin + reach).below(axis.size)
        is_within = inside if is_within is None else is_within & inside
    assert is_within is not None
    with code.when(~is_within):
        for begin, first, last in zip(begins, firsts, lasts, strict=True):
            first.value, last.value = axis.taps, I64.of(0)
            with code.count(0, axis.taps) as tap:
                is_there = (begin + tap * axis.dilation).below(axis.size)
                first.value = is_there.choose(least(code, first.value, tap), first.value)
                last.value = is_there.choose(tap + 1, last.value)
    return [(first.value, last.value) for first, last in zip(firsts, lasts, strict=True)], is_within


def _add(
    code: Code, columns: Columns, axis: Axis, sums: Sums, bases: Sequence[Elements], line: Elements,
    taps: Sequence[tuple[I64, I64]], is_within: Bool,
) -> None:  # fmt: skip
    """Adds a line of taps: those that all results have together, then what else each has."""
    scalar, lanes = columns.scalar, columns.register.lanes
    begin, end = code.variable(taps[0][0]), code.variable(taps[0][1])
    for first, last in taps[1:]:
        begin.value, end.value = most(code, begin.value, first), least(code, end.value, last)
    end.value = most(code, begin.value, end.value)

    def add(tap: I64, chosen: Sequence[int]) -> None:
        kernel, offset = line.at(tap * axis.w), tap * (axis.dilation * axis.x)
        for number in range(len(sums[0])):
            weights = columns.read(code, kernel.at(number * lanes))
            for place in chosen:
                numbers = columns.read(code, bases[place].at(offset).at(number * lanes))
                total = sums[place][number]
                total.value = total.value.apply(scalar.plus, numbers.apply(scalar.times, weights))

    with code.count(begin.value, end.value) as tap:
        add(tap, range(len(bases)))
    with code.when(~is_within):
        for place, (first, last) in enumerate(taps):
            with code.count(first, least(code, begin.value, last)) as tap:
                add(tap, [place])
            with code.count(most(code, end.value, first), last) as tap:
                add(tap, [place])


def _join(columns: Columns, sums: Sums, totals: Sums) -> None:
    """Adds up parts of sums, which begin anew."""
    for parts, wholes in zip(sums, totals, strict=True):
        for part, whole in zip(parts, wholes, strict=True):
            whole.value = whole.value.apply(columns.scalar.join, part.value)
            part.value = columns.register.of(0)


def _store(
    code: Code, columns: Columns, totals: Sums, result: Elements, steps: tuple[I64, I64], rows: I64, there: I64,
    fresh: I64,
) -> None:  # fmt: skip
    """Stores results. steps: how far apart they are along the line, and among groups."""
    scalar, lanes = columns.scalar, columns.register.lanes
    (step, group), is_fresh = steps, fresh != 0
    kept = code.local(scalar.element, lanes * len(totals[0]), align=64).numbers(scalar.element)
    done = code.label("done")
    for place, row in enumerate(totals):
        if place:
            done.when(rows <= place)
        at = result.at(step * place)
        with code.when(group == 1):
            for number, total in enumerate(row):
                here = at.at(number * lanes)
                with code.when(~is_fresh):
                    total.value = columns.read(code, here).apply(scalar.join, total.value)
                columns.write(code, total.value, here)
        with code.otherwise():
            for number, total in enumerate(row):
                kept.at(number * lanes).store(total.value, align=scalar.align)
            with code.count(0, there, sure=True) as lane:
                to = at.at(group * lane)
                whole = code.variable(kept[lane])
                with code.when(~is_fresh):
                    whole.value = to.value.apply(scalar.join, whole.value)
                to.store(whole.value)
    code.place(done)


def _block(
    code: Code, suffix: str, context: Ptr, at: Sequence[Elements], places: Sequence[I64], there: I64, fresh: I64
) -> None:
    """Results of a panel of groups."""
    lanes = lanes_of(suffix)
    y_g = words_of(suffix).read(context)["y_g"]
    with code.when(there == tile_width(suffix)):
        group_block(suffix, 2)(code, context, *at, *places, there, fresh)
    with code.otherwise(), code.count(0, there, lanes, sure=True) as lane:
        image, kernel, result = at
        operands = image.at(lane), kernel.at(lane), result.at(lane * y_g)
        group_block(suffix, 1)(code, context, *operands, *places, least(code, there - lane, I64.of(lanes)), fresh)


@range_function("conv_group_lines")
def group_lines_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """conv_group_lines_<t>: the number of a line is that of its image, channel, and places along the first axes."""
    width = tile_width(suffix)
    w = words_of(suffix).read(context)
    first, second, third = axes_of(w)
    with code.count(begin, end, sure=True) as number:
        q, rest = number % second.count, number // second.count
        p, rest = rest % first.count, rest // first.count
        o, n = rest % w["outs"], rest // w["outs"]
        image, kernel = w["x"].at(n * w["x_n"]), w["w"].at(o * w["w_o"])
        result = w["y"].at(n * w["y_n"] + o * w["y_o"] + p * w["y_0"] + q * w["y_1"])
        with (
            code.count(0, third.count, _results(), sure=True) as r,
            code.count(0, w["groups"], width, sure=True) as lane,
        ):
            at = image.at(lane), kernel.at(lane), result.at(lane * w["y_g"])
            there = least(code, w["groups"] - lane, I64.of(width))
            _block(code, suffix, context, at, (p, q, r), there, I64.of(1))


@range_function("conv_group_panels")
def group_panels_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """conv_group_panels_<t>: the number of a panel is that of its image and its first group."""
    scalar, width = ARITHMETIC[suffix], tile_width(suffix)
    record = words_of(suffix)
    w = record.read(context)
    axes = axes_of(w)
    image_length, kernel_length = _turned_length(suffix, w)
    is_turned = ~_groups_are_adjacent(w)
    length = is_turned.choose((image_length + kernel_length) * scalar.align, I64.of(64))
    memory, is_mine = take_panels(code, length)
    with code.when(memory == NULL):
        leave_panels(code, memory, is_mine)
        record.put(context, {"is_new": I64.of(1)})
        code.ret()
    turned = memory.numbers(scalar.element)
    mine = record.write(code, w)
    record.put(mine, {"channels": I64.of(1)})
    sizes, taps = [axis.size for axis in axes], [w["outs"], *(axis.taps for axis in axes)]
    with code.when(is_turned):
        record.put(mine, _dense("x", "012", sizes, width) | _dense("w", "o012", taps, width))
    across = panels(w["groups"], width)
    with code.count(begin, end, sure=True) as number, code.count(0, w["channels"], sure=True) as c:
        lane, n = number % across * width, number // across
        there = least(code, w["groups"] - lane, I64.of(width))
        image = code.variable(w["x"].at(n * w["x_n"] + lane * w["x_g"] + c * w["x_c"]))
        kernel = code.variable(w["w"].at(lane * w["w_g"] + c * w["w_c"]))
        with code.when(is_turned):
            _copy(code, suffix, image.value, w, "x", "012", sizes, there, turned)
            _copy(code, suffix, kernel.value, w, "w", "o012", taps, there, turned.at(image_length))
            image.value, kernel.value = turned, turned.at(image_length)
        result = w["y"].at(n * w["y_n"] + lane * w["y_g"])
        fresh = (c == 0).to(I64, signed=False)
        _panel(code, suffix, mine, (image.value, kernel.value, result), there, fresh)
    leave_panels(code, memory, is_mine)


def _panel(code: Code, suffix: str, context: Ptr, at: Sequence[Elements], there: I64, fresh: I64) -> None:
    """All results of a panel of groups of an image."""
    w = words_of(suffix).read(context)
    first, second, third = axes_of(w)
    image, kernel, result = at
    with (
        code.count(0, w["outs"], sure=True) as o,
        code.count(0, first.count, sure=True) as p,
        code.count(0, second.count, sure=True) as q,
        code.count(0, third.count, _results(), sure=True) as r,
    ):
        here = result.at(o * w["y_o"] + p * first.y + q * second.y)
        _block(code, suffix, context, (image, kernel.at(o * w["w_o"]), here), (p, q, r), there, fresh)


# Copies of operands whose groups do not stand beside each other. ------------------------------------------------------


def _turned_length(suffix: str, w: dict[str, Any]) -> tuple[I64, I64]:
    """The numbers of elements of a channel of an image, and of its kernels, that are copied for a panel of groups."""
    axes, width = axes_of(w), tile_width(suffix)
    return axes[0].size * axes[1].size * axes[2].size * width, axes[0].taps * axes[1].taps * axes[2].taps * w[
        "outs"
    ] * width


def _dense(name: str, axes: str, sizes: Sequence[I64], width: int) -> dict[str, I64]:
    """The steps of a copy."""
    steps, step = {}, I64.of(width)
    for axis, size in zip(axes[::-1], sizes[::-1], strict=True):
        steps[f"{name}_{axis}"] = step
        step = size * step
    return steps


def _copy(
    code: Code, suffix: str, source: Elements, w: dict[str, Any], name: str, axes: str, sizes: Sequence[I64],
    there: I64, to: Elements,
) -> None:  # fmt: skip
    """Copies the groups of a panel, so that they stand beside each other; those that are missing are 0."""
    width = tile_width(suffix)
    *outer, last = sizes
    lines = outer[0]
    for size in outer[1:]:
        lines = lines * size
    group, step = w[f"{name}_g"], w[f"{name}_{axes[-1]}"]
    with code.count(0, lines) as line:
        rest, from_ = line, source
        for axis, size in zip(axes[-2::-1], outer[::-1], strict=True):
            from_ = from_.at(rest % size * w[f"{name}_{axis}"])
            rest = rest // size
        with code.count(0, width, GROUP, sure=True) as lane:
            here = most(code, least(code, there - lane, I64.of(GROUP)), I64.of(0))
            begins = from_.at((here > 0).choose(lane * group, I64.of(0)))
            pack(suffix)(code, here, last, begins, group, step, to.at(line * last * width + lane), I64.of(width))


# --- conv lines -------------------------------------------------------------------------------------------------------
# Convolutions to few channels: results that lie beside each other are the lanes, each kernel is read number by number.
#
# In: the suffix of a dtype (f64, f32). Out: an internal function of LLVM IR, which needs images whose elements stand
# one after the other, and strides of 1 along the last axis:
#
#     conv_lines_<t>(context, begin, end)
#         computes lines of results of a convolution (convolution.py), along the last axis


FEW = 4
"""Channels of the result, of a group, up to which this is faster than tiles."""
LINE_REGISTERS = 4
"""Registers for results, so that multipliers need not wait for their sums."""


def line(suffix: str, registers: int) -> Function[..., None]:
    """conv_line_<registers>_<t>: `count` results, at most as many as the registers hold."""
    scalar, lanes, width = ARITHMETIC[suffix], lanes_of(suffix), tile_width(suffix)

    @element_function(f"conv_line_{registers}", "noinline optsize")
    def write(
        code: Code, suffix: str, terms: I64, image: Elements, offsets: Indices, kernel: Elements, count: I64,
        result: Elements, fresh: I64,
    ) -> None:  # fmt: skip
        parts = [Columns(suffix, lanes, first_lanes(count - number * lanes, lanes)) for number in range(registers)]
        if registers > 1:  # a count below 0 would be a large one
            parts = [
                Columns(suffix, lanes, first_lanes((count > number * lanes).choose(count - number * lanes, 0), lanes))
                for number in range(registers)
            ]
        sums = [code.variable(part.register.of(0)) for part in parts]
        with code.count(0, terms) as term:
            offset = offsets[term]
            number = kernel[term * width].spread(lanes)
            for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
                read = part.read(code, image.at(offset + place * lanes))
                total.value = total.value.apply(scalar.plus, read.apply(scalar.times, number))
        with code.when(fresh == 0):
            for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
                total.value = part.read(code, result.at(place * lanes)).apply(scalar.join, total.value)
        for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
            part.write(code, total.value, result.at(place * lanes))

    return write(suffix)


@range_function("conv_lines")
def lines_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """conv_lines_<t>."""
    w: dict[str, Any] = words_of(suffix).read(context)
    lanes, length = lanes_of(suffix), axes_of(w)[2].count
    lines = w["pixels"] // length
    with code.count(begin, end) as number, code.count(0, w["outs"], sure=True) as lane:
        n, pixel = number // lines, number % lines * length
        image = w["image"].at(n * w["image_n"] + w["places"][pixel])
        result = w["target"].at(n * w["y_n"] + lane * w["y_o"] + w["targets"][pixel])
        kernel = w["panels"].at(lane)
        with code.count(0, length, LINE_REGISTERS * lanes, sure=True) as first:
            left = length - first
            operands = w["terms"], image.at(first), w["offsets"], kernel, left, result.at(first)
            with code.when(left > lanes):
                line(suffix, LINE_REGISTERS)(code, *operands, w["is_fresh"])
            with code.otherwise():
                line(suffix, 1)(code, *operands, w["is_fresh"])


# --- conv dots --------------------------------------------------------------------------------------------------------
# Convolutions to a few results of long kernels, as the derivative by depthwise kernels is: each result is a sum of
# inner products of lines of the image with lines of the kernel, read where they stand.
#
# In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR, for images and kernels whose elements along
# the last axis stand one after the other and meet one after the other:
#
#     conv_dots_<t>(context, begin, end)
#         computes results of a convolution without spreads (convolution.py): one line of them for each number
#
# Each result is the sum over the channels, in order, of what the lanes of a few registers have summed up of one. Only
# terms that lie within the image are read.


DOT_REGISTERS = 4
"""Registers for the sums of a result, so that multipliers need not wait for them."""


def takes_dots(w: dict[str, Any], axes: list[Axis], few: int) -> Bool:
    """True if inner products are the best way: kernels longer than lines of results, to few channels of a group."""
    in_order: Bool = (axes[2].x == 1) & (axes[2].w == 1) & (axes[2].dilation == 1)
    is_short: Bool = w["outs"] <= few
    return in_order & is_short & (axes[2].taps > axes[2].count)


@range_function("conv_dots")
def dots_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """conv_dots_<t>: the number of a line is that of its image, group, channel, and places along the first axes."""
    element = ARITHMETIC[suffix].element
    w = words_of(suffix).read(context)
    axes = axes_of(w)
    last = axes[-1]
    with code.count(begin, end) as number:
        place = place_of_line(code, number, w, axes)
        image = address_of(w, "x", place, "ng")
        kernel = address_of(w, "w", place, "go")
        result = address_of(w, "y", place, "ngo01")
        with code.count(0, last.count) as p:
            total = code.variable(element.of(0))
            with code.count(0, w["channels"]) as c:
                here = image.at(c * w["x_c"]), kernel.at(c * w["w_c"])
                part = _sum(code, suffix, axes, (place["0"], place["1"], p), *here)
                total.value = total.value.apply(ARITHMETIC[suffix].join, part)
            result[p * last.y] = total.value


def _sum(
    code: Code, suffix: str, axes: list[Axis], places: tuple[I64, I64, I64], image: Elements, kernel: Elements
) -> Any:
    """The terms of one channel of a result."""
    first, second, third = axes
    scalar, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    sums = [code.variable(vector(scalar.element, lanes).of(0)) for _ in range(DOT_REGISTERS)]
    begin = places[2] * third.stride - third.low
    from_ = most(code, I64.of(0) - begin, I64.of(0))
    until = least(code, third.taps, third.size - begin)
    with code.count(0, first.taps) as i:
        at_0 = places[0] * first.stride + i * first.dilation - first.low
        with code.when(at_0.below(first.size)), code.count(0, second.taps) as j:
            at_1 = places[1] * second.stride + j * second.dilation - second.low
            with code.when(at_1.below(second.size) & (until > from_)):
                x = image.at(at_0 * first.x + at_1 * second.x + begin + from_)
                w = kernel.at(i * first.w + j * second.w + from_)
                _dot(code, suffix, sums, x, w, until - from_)
    return add_lanes([join([total.value for total in sums], suffix)], suffix).lane(0)


def _dot(code: Code, suffix: str, sums: list[Variable[Any]], x: Elements, w: Elements, length: I64) -> None:
    """Adds the products of two lines to sums."""
    lanes = lanes_of(suffix)

    def add(place: I64, total: Variable[Any], columns: Columns) -> None:
        scalar = columns.scalar
        product = columns.read(code, x.at(place)).apply(scalar.times, columns.read(code, w.at(place)))
        total.value = total.value.apply(scalar.plus, product)

    whole, vectors = length - length % (lanes * len(sums)), length - length % lanes
    with code.count(0, whole, lanes * len(sums)) as place:
        for number, total in enumerate(sums):
            add(place.apply("add nsw", number * lanes), total, Columns(suffix, lanes))
    with code.count(whole, vectors, lanes) as place:
        add(place, sums[0], Columns(suffix, lanes))
    with code.when(vectors < length):
        add(vectors, sums[1], Columns(suffix, lanes, first_lanes(length - vectors, lanes)))
