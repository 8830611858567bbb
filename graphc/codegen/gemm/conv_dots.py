"""Convolutions to a few results of long kernels, as the derivative by depthwise kernels is: each result is a sum of
inner products of lines of the image with lines of the kernel, read where they stand.

In: the suffix of a dtype (f64, f32). Out: internal functions of LLVM IR, for images and kernels whose elements along
the last axis stand one after the other and meet one after the other:

    conv_dots_<t>(context, begin, end)
        computes results of a convolution without spreads (convolution.py): one line of them for each number

Each result is the sum over the channels, in order, of what the lanes of a few registers have summed up of one. Only
terms that lie within the image are read.
"""

from __future__ import annotations

from typing import Any

from graphc.codegen.gemm.conv_tables import Axis, axes_of, range_function, words_of
from graphc.codegen.gemm.gemv_kernels import add_lanes, join
from graphc.codegen.gemm.microkernel import ARITHMETIC, Columns, first_lanes, lanes_of
from graphc.codegen.gemm.packing import least, most
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I64, Bool, Ptr, vector

REGISTERS = 4
"""Registers for the sums of a result, so that multipliers need not wait for them."""


def takes_dots(w: dict[str, Any], axes: list[Axis], few: int) -> Bool:
    """True if inner products are the best way: kernels longer than lines of results, to few channels of a group."""
    in_order: Bool = (axes[2].x == 1) & (axes[2].w == 1) & (axes[2].dilation == 1)
    is_short: Bool = w["outs"] <= few
    return in_order & is_short & (axes[2].taps > axes[2].count)


def dots_range(suffix: str) -> Function[..., None]:
    """conv_dots_<t>: the number of a line is that of its image, group, channel, and places along the first axes."""
    kind = ARITHMETIC[suffix].kind

    def write(code: Code, context: Ptr, begin: I64, end: I64) -> None:
        w = words_of().read(context)
        first, second, third = axes = axes_of(w)
        with code.count(begin, end) as number:
            rest, place = code.variable(number), {}
            for name, size in (("1", second.count), ("0", first.count), ("o", w["outs"]), ("g", w["groups"])):
                place[name] = rest.value % size
                rest.value = rest.value // size
            place["n"] = rest.value
            image = _at(w, "x", place, "ng", kind)
            kernel = _at(w, "w", place, "go", kind)
            result = _at(w, "y", place, "ngo01", kind)
            with code.count(0, third.count) as p:
                total = code.variable(kind.of(0))
                with code.count(0, w["channels"]) as c:
                    here = image.at(c * w["x_c"], kind), kernel.at(c * w["w_c"], kind)
                    part = _sum(code, suffix, axes, (place["0"], place["1"], p), *here)
                    total.value = total.value.apply(ARITHMETIC[suffix].join, part)
                result.at(p * third.y, kind).store(total.value)

    return range_function(f"conv_dots_{suffix}", write)


def _at(words: dict[str, Any], name: str, place: dict[str, I64], parts: str, kind: Any) -> Ptr:
    at: Ptr = words[name]
    for part in parts:
        at = at.at(place[part] * words[f"{name}_{part}"], kind)
    return at


def _sum(code: Code, suffix: str, axes: list[Axis], places: tuple[I64, I64, I64], image: Ptr, kernel: Ptr) -> Any:
    """The terms of one channel of a result."""
    first, second, third = axes
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    sums = [code.variable(vector(own.kind, lanes).of(0)) for _ in range(REGISTERS)]
    begin = places[2] * third.stride - third.low
    from_ = most(code, I64.of(0) - begin, I64.of(0))
    until = least(code, third.taps, third.size - begin)
    with code.count(0, first.taps) as i:
        at_0 = places[0] * first.stride + i * first.dilation - first.low
        with code.when(at_0.below(first.size)), code.count(0, second.taps) as j:
            at_1 = places[1] * second.stride + j * second.dilation - second.low
            with code.when(at_1.below(second.size) & (until > from_)):
                x = image.at(at_0 * first.x + at_1 * second.x + begin + from_, own.kind)
                w = kernel.at(i * first.w + j * second.w + from_, own.kind)
                _dot(code, suffix, sums, x, w, until - from_)
    return add_lanes([join([total.value for total in sums], suffix)], suffix).lane(0)


def _dot(code: Code, suffix: str, sums: list[Variable[Any]], x: Ptr, w: Ptr, length: I64) -> None:
    """Adds the products of two lines to sums."""
    lanes = lanes_of(suffix)

    def add(place: I64, total: Variable[Any], columns: Columns) -> None:
        own = columns.own
        product = columns.read(code, x.at(place, own.kind)).apply(own.times, columns.read(code, w.at(place, own.kind)))
        total.value = total.value.apply(own.plus, product)

    whole, vectors = length - length % (lanes * len(sums)), length - length % lanes
    with code.count(0, whole, lanes * len(sums)) as place:
        for number, total in enumerate(sums):
            add(place.apply("add nsw", number * lanes), total, Columns(suffix, lanes))
    with code.count(whole, vectors, lanes) as place:
        add(place, sums[0], Columns(suffix, lanes))
    with code.when(vectors < length):
        add(vectors, sums[1], Columns(suffix, lanes, first_lanes(length - vectors, lanes)))
