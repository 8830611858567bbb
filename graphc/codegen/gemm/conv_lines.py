"""Convolutions to few channels: results that lie beside each other are the lanes, each kernel is read number by number.

In: the suffix of a dtype (f64, f32). Out: an internal function of LLVM IR, which needs images whose elements stand one
after the other, and strides of 1 along the last axis:

    conv_lines_<t>(context, begin, end)
        computes lines of results of a convolution (convolution.py), along the last axis
"""

from __future__ import annotations

from typing import Any

from graphc.codegen.gemm.conv_tables import axes_of, range_function, words_of
from graphc.codegen.gemm.conv_tiles import tile_width
from graphc.codegen.gemm.microkernel import ARITHMETIC, Columns, first_lanes, lanes_of
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, function
from graphc.codegen.llvm.typed import I64, Ptr

FEW = 4
"""Channels of the result, of a group, up to which this is faster than tiles."""
REGISTERS = 4
"""Registers for results, so that multipliers need not wait for their sums."""


def line(suffix: str, registers: int) -> Function[..., None]:
    """conv_line_<registers>_<t>: `count` results, at most as many as the registers hold."""
    own, lanes, width = ARITHMETIC[suffix], lanes_of(suffix), tile_width(suffix)

    @function("noinline optsize", name=f"conv_line_{registers}_{suffix}")
    def write(
        code: Code, terms: I64, image: Ptr, offsets: Ptr, kernel: Ptr, count: I64, result: Ptr, fresh: I64
    ) -> None:
        parts = [Columns(suffix, lanes, first_lanes(count - number * lanes, lanes)) for number in range(registers)]
        if registers > 1:  # a count below 0 would be a large one
            parts = [
                Columns(suffix, lanes, first_lanes((count > number * lanes).choose(count - number * lanes, 0), lanes))
                for number in range(registers)
            ]
        sums = [code.variable(part.kind.of(0)) for part in parts]
        with code.count(0, terms) as term:
            offset = offsets.at(term, I64).load(I64)
            number = kernel.at(term * width, own.kind).load(own.kind).spread(lanes)
            for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
                read = part.read(code, image.at(offset + place * lanes, own.kind))
                total.value = total.value.apply(own.plus, read.apply(own.times, number))
        with code.when(fresh == 0):
            for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
                total.value = part.read(code, result.at(place * lanes, own.kind)).apply(own.join, total.value)
        for place, (part, total) in enumerate(zip(parts, sums, strict=True)):
            part.write(code, total.value, result.at(place * lanes, own.kind))

    return write


def lines_range(suffix: str) -> Function[..., None]:
    """conv_lines_<t>."""

    def write(code: Code, context: Ptr, begin: I64, end: I64) -> None:
        w: dict[str, Any] = words_of().read(context)
        kind, lanes, length = ARITHMETIC[suffix].kind, lanes_of(suffix), axes_of(w)[2].count
        lines = w["pixels"] // length
        with code.count(begin, end) as number, code.count(0, w["outs"], sure=True) as lane:
            n, pixel = number // lines, number % lines * length
            image = w["image"].at(n * w["image_n"] + w["places"].at(pixel, I64).load(I64), kind)
            result = w["target"].at(n * w["y_n"] + lane * w["y_o"] + w["targets"].at(pixel, I64).load(I64), kind)
            kernel = w["panels"].at(lane, kind)
            with code.count(0, length, REGISTERS * lanes, sure=True) as first:
                left = length - first
                given = w["terms"], image.at(first, kind), w["offsets"], kernel, left, result.at(first, kind)
                with code.when(left > lanes):
                    line(suffix, REGISTERS)(code, *given, w["is_fresh"])
                with code.otherwise():
                    line(suffix, 1)(code, *given, w["is_fresh"])

    return range_function(f"conv_lines_{suffix}", write)
