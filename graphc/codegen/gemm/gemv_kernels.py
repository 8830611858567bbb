"""A few rows or columns of a matrix read at a time, at the speed of memory.

In: the suffix of a dtype (f64, f32, i64, i32), and how many. Out: internal functions of LLVM IR:

    dots_of_rows_<count>_<t>(n, a, a_row, x)                    the inner products of <count> contiguous rows with x
    add_columns_<count>_<t>(m, alpha, x0, ..., a, a_col, y)     y plus alpha times the sum of <count> contiguous
                                                                columns, each times a number
    add_short_<count>_<t>(m, n, alpha, a, a_col, x, x_step, y)  y plus alpha a x, whose columns fill <count> registers

What is read next is asked for ahead: with several streams that is a tenth to a quarter faster than what the processor
sees for itself. An inner product has the same bits whatever the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.gemm.microkernel import ARITHMETIC, Columns, first_lanes, lanes_of
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import I32, I64, NoAlias, Ptr, Value, vector

SUMS = {False: 2, True: 4}
"""Registers with partial sums of a row: for four rows half of those that there are, without AVX-512 and with it."""
AHEAD = 1024
"""Bytes ahead of what is read that are asked for. Past the end of a matrix that does nothing."""
LINE_BYTES = 64
SHORT_SUMS = 8
"""Registers with sums of columns that are short."""


prefetch = external("llvm.prefetch.p0", None, Ptr, I32, I32, I32)
most = external("llvm.smax.i64", I64, I64, I64)


def rows(count: int, suffix: str) -> Function[..., Any]:
    """dots_of_rows: 1 or 4 of them, as a vector. Each element of x is loaded once for all."""
    own, lanes, parts = ARITHMETIC[suffix], lanes_of(suffix), SUMS[has_avx512()]
    kind, width = vector(own.kind, lanes), lanes * parts

    def write(code: Code, n: I64, a: NoAlias, a_row: I64, x: NoAlias) -> Any:
        whole, vectors = n - n % width, n - n % lanes
        streams = [a.at(a_row * row, own.kind) for row in range(count)]
        totals = [code.variable(kind.of(0)) for _ in streams]
        with code.when(whole > 0):
            sums = [[code.variable(kind.of(0)) for _ in streams] for _ in range(parts)]
            with code.count(0, whole, width, sure=True) as j:
                for stream in streams:
                    ask(code, stream.at(j, own.kind), width * own.align)
                for part, several in enumerate(sums):
                    add_rows(code, streams, x, j.apply("add nsw", part * lanes), several, Columns(suffix, lanes))
            for total, *several in zip(totals, *sums, strict=True):
                total.value = join([part.value for part in several], suffix)
        with code.count(whole, vectors, lanes) as q:
            add_rows(code, streams, x, q, totals, Columns(suffix, lanes))
        with code.count(vectors, n, lanes) as r:
            add_rows(code, streams, x, r, totals, within(code, n, r, suffix))
        return add_lanes([total.value for total in totals], suffix)

    params = {"n": I64, "a": NoAlias, "a_row": I64, "x": NoAlias}
    return Function(
        f"dots_of_rows_{count}_{suffix}", vector(own.kind, count), params, write, "noinline", is_internal=True
    )


def add_rows(
    code: Code, streams: Sequence[Ptr], x: Ptr, place: I64, sums: Sequence[Variable[Any]], columns: Columns
) -> None:
    """Adds, for each row, a vector of it at a place times that of x to a sum."""
    own = columns.own
    factor = columns.read(code, x.at(place, own.kind))
    for stream, total in zip(streams, sums, strict=True):
        product = columns.read(code, stream.at(place, own.kind)).apply(own.times, factor)
        total.value = total.value.apply(own.plus, product)


def join(vectors: Sequence[Any], suffix: str) -> Any:
    """The sum of vectors, in order."""
    total, *others = vectors
    for each in others:
        total = total.apply(ARITHMETIC[suffix].join, each)
    return total


def columns(count: int, suffix: str) -> Function[..., None]:
    """add_columns: any number of them."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    numbers = [f"x{column}" for column in range(count)]

    def write(code: Code, m: I64, alpha: Any, *given: Any) -> None:
        *numbers, a, a_col, y = given
        whole = m - m % lanes
        streams = [a.at(a_col * column, own.kind) for column in range(count)]
        factor, *factors = [number.spread(lanes) for number in (alpha, *numbers)]
        with code.count(0, whole, lanes) as i:
            some, at = Columns(suffix, lanes), y.at(i, own.kind)
            old, vectors = some.read(code, at), []
            for stream in streams:
                ask(code, here := stream.at(i, own.kind))
                vectors.append(some.read(code, here))
            some.write(code, add_products(old, vectors, factors, factor, suffix), at)
        with code.count(whole, m, lanes) as r:
            some, at = within(code, m, r, suffix), y.at(r, own.kind)
            old = some.read(code, at)
            vectors = [some.read(code, stream.at(r, own.kind)) for stream in streams]
            some.write(code, add_products(old, vectors, factors, factor, suffix), at)

    params: dict[str, type[Value]] = {
        "m": I64,
        "alpha": own.kind,
        **dict.fromkeys(numbers, own.kind),
        "a": NoAlias,
        "a_col": I64,
        "y": NoAlias,
    }
    return Function(f"add_columns_{count}_{suffix}", None, params, write, "noinline", is_internal=True)


def add_products(start: Any, vectors: Sequence[Any], factors: Sequence[Any], alpha: Any, suffix: str) -> Any:
    """A vector plus alpha times the sum of vectors, each times a number. The products come first, since what they are
    added to was just written; alpha comes last, since a number times it may be more or less than the dtype holds."""
    own = ARITHMETIC[suffix]
    total = vectors[0].apply(own.times, factors[0])
    for each, factor in zip(vectors[1:], factors[1:], strict=True):
        total = total.apply(own.plus, each.apply(own.times, factor))
    return start.apply(own.join, total.apply(own.scale, alpha))


def short(vectors: int, suffix: str) -> Function[..., None]:
    """add_short: m is at most what `vectors` registers hold. y stays there, as several sums, while columns go by."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    kind, count = vector(own.kind, lanes), SHORT_SUMS // vectors

    def write(
        code: Code, m: I64, n: I64, alpha: Any, a: NoAlias, a_col: I64, x: NoAlias, x_step: I64, y: NoAlias
    ) -> None:
        parts = [within(code, m, I64.of(place * lanes), suffix) for place in range(vectors)]
        whole = n - n % count
        sums = [[code.variable(kind.of(0)) for _ in parts] for _ in range(count)]

        def add(column: I64, totals: Sequence[Variable[Any]]) -> None:
            factor = x.at(column * x_step, own.kind).load(own.kind).spread(lanes)
            for place, (part, total) in enumerate(zip(parts, totals, strict=True)):
                here = part.read(code, a.at(column * a_col + place * lanes, own.kind))
                total.value = total.value.apply(own.plus, here.apply(own.times, factor))

        with code.count(0, whole, count) as j:
            for place, totals in enumerate(sums):
                add(j.apply("add nsw", place), totals)
        with code.count(whole, n) as j:
            add(j, sums[0])
        factor = alpha.spread(lanes)
        for place, part in enumerate(parts):
            at = y.at(place * lanes, own.kind)
            total = join([totals[place].value for totals in sums], suffix)
            part.write(code, part.read(code, at).apply(own.join, total.apply(own.scale, factor)), at)

    params: dict[str, type[Value]] = {"m": I64, "n": I64, "alpha": own.kind, "a": NoAlias, "a_col": I64, "x": NoAlias}
    params |= {"x_step": I64, "y": NoAlias}
    return Function(f"add_short_{vectors}_{suffix}", None, params, write, "noinline", is_internal=True)


def ask(code: Code, at: Ptr, length: int = LINE_BYTES) -> None:
    """Asks for as many bytes as an iteration reads there, some iterations ahead."""
    for apart in range(0, length, LINE_BYTES):
        prefetch(code, at.at(AHEAD + apart), I32.of(0), I32.of(3), I32.of(1))


def within(code: Code, size: I64, place: I64, suffix: str) -> Columns:
    """Those from a place on that are within the size."""
    lanes = lanes_of(suffix)
    return Columns(suffix, lanes, first_lanes(most(code, size - place, I64.of(0)).to(I32), lanes))


def add_lanes(vectors: Sequence[Any], suffix: str) -> Any:
    """The sums of the lanes of each of 1 or 4 vectors, as a vector. Of each they are added in the same order:
    neighbours, then neighbouring pairs, then halves."""
    own, size, left = ARITHMETIC[suffix], lanes_of(suffix), [*vectors]

    def add(first: Any, other: Any, low: Sequence[int], high: Sequence[int]) -> Any:
        return first.pick(other, low).apply(own.join, first.pick(other, high))

    def alone(one: Any) -> Any:
        return type(one)(None, "poison")

    for apart in (1, 2):
        if len(vectors) > 1:
            # those of two vectors beside each other, so that the sums of all come to be neighbours
            places = [(lane & ~apart) + (size if lane & apart else 0) for lane in range(size)]
            pairs = zip(left[::2], left[1::2], strict=True)
            left = [add(first, other, places, [place + apart for place in places]) for first, other in pairs]
        else:
            left = [add(left[0], alone(left[0]), range(0, size, 2), range(1, size, 2))]
            size //= 2
    while size > len(vectors):
        size //= 2
        left = [add(left[0], alone(left[0]), range(size), range(size, 2 * size))]
    return left[0]
