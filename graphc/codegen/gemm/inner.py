"""Matrix products as inner products of contiguous numbers: some rows of one operand and columns of the other at a time.

In: the suffix of a dtype. Out: an internal function of LLVM IR:

    along    c = alpha a b + beta c, for an a with contiguous rows, any b and any c

A block of c is some rows of a times some columns of b, each read once, a register at a time, into a sum for each
element of the block: four times four loads for sixteen products. Where few columns of c would leave registers of tiles
empty, and where sums are long, that is faster than tiles. Columns of b that are not contiguous are copied to the
stack, some of their numbers at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.gemm.gemv import add_lanes, join, within
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    LATENCY,
    Columns,
    Matrix,
    Product,
    arguments,
    lanes_of,
    product_function,
)
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, poison
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import I64, Bool
from graphc.startup.record import replace

ROWS = (4, 1)
COLUMNS = {False: (2, 1), True: (4, 2, 1)}
"""Rows and columns of the blocks of c, the larger ones while they last: their sums fill half of the registers."""
COPIED, DEPTH = 16, 256
"""Columns of b that are copied at a time, and how many of their numbers."""
WITHOUT = ("m", "n", "a_col", "b_row")
"""The operands that blocks do without: rows of a and columns of b are contiguous."""


def block(rows: int, columns: int, suffix: str) -> Function[..., None]:
    """A block of c. A sum has the bits of others of as many rows and columns, wherever they stand."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    phases = max(1, LATENCY // (rows * columns))

    @product_function(f"inner_{rows}_{columns}", WITHOUT)
    def write(code: Code, suffix: str, p: Product) -> None:
        lefts = [p.a.at.at(p.a.row * row, own.kind) for row in range(rows)]
        rights = [p.b.at.at(p.b.column * column, own.kind) for column in range(columns)]
        whole, vectors = p.k - p.k % (phases * lanes), p.k - p.k % lanes
        kind = Columns(suffix, lanes).kind
        sums = [[[code.variable(kind.of(0)) for _ in lefts] for _ in rights] for _ in range(phases)]

        def add(place: I64, totals: Sequence[Sequence[Variable[Any]]], part: Columns) -> None:
            factors = [part.read(code, right.at(place, own.kind)) for right in rights]
            for row, left in enumerate(lefts):
                numbers = part.read(code, left.at(place, own.kind))
                for several, factor in zip(totals, factors, strict=True):
                    several[row].value = several[row].value.apply(own.plus, numbers.apply(own.times, factor))

        with code.count(0, whole, phases * lanes) as q:
            for number, totals in enumerate(sums):
                add(q.apply("add nsw", number * lanes), totals, Columns(suffix, lanes))
        if phases > 1:
            with code.count(whole, vectors, lanes) as q:
                add(q, sums[0], Columns(suffix, lanes))
        with code.count(vectors, p.k, lanes) as q:
            add(q, sums[0], within(code, p.k, q, suffix))
        is_fresh = p.beta.compare(own.equal, 0)
        for column in range(columns):
            made = [join([part[column][row].value for part in sums], suffix) for row in range(rows)]
            totals = add_lanes(made, suffix).apply(own.scale, p.alpha.spread(rows))
            for row in range(rows):
                place = p.c.at.at(p.c.row * row + p.c.column * column, own.kind)
                value = code.variable(totals.lane(row))
                with code.when(~is_fresh):
                    value.value = value.value.apply(own.join, place.load(own.kind).apply(own.scale, p.beta))
                place.store(value.value)

    return write(suffix)


def row_blocks(rows: int, suffix: str) -> Function[..., None]:
    """So many rows of c, by blocks of several columns."""

    @product_function(f"inner_{rows}", ("m", "a_col", "b_row"))
    def write(code: Code, suffix: str, p: Product) -> None:
        kind, j = ARITHMETIC[suffix].kind, code.variable(I64.of(0))
        for columns in COLUMNS[has_avx512()]:
            end = p.n - (columns - 1)
            with code.loop() as iteration:
                iteration.leave.unless(j.value < end)
                here = replace(p, b=p.b.part(0, j.value, kind), c=p.c.part(0, j.value, kind))
                block(rows, columns, suffix)(code, *arguments(here, WITHOUT))
                j.value = j.value.apply("add nsw", columns)

    return write(suffix)


@product_function("inner_products", ("a_col", "b_row"))
def inner_products(code: Code, suffix: str, p: Product) -> None:
    """The product where rows of a and columns of b are contiguous."""
    kind, i = ARITHMETIC[suffix].kind, code.variable(I64.of(0))
    for rows in ROWS:
        end = p.m - (rows - 1)
        with code.loop() as iteration:
            iteration.leave.unless(i.value < end)
            here = replace(p, a=p.a.part(i.value, 0, kind), c=p.c.part(i.value, 0, kind))
            row_blocks(rows, suffix)(code, *arguments(here, ("m", "a_col", "b_row")))
            i.value = i.value.apply("add nsw", rows)


LONG = 2
"""Registers that the terms of a sum fill at least, where inner products are taken."""
FEW_COLUMNS = {"f64": 4, "f32": 8}
"""Columns of c up to which inner products are faster than tiles, most of whose registers would be empty, and the rows
from which on it pays to copy b for them."""
MANY_ROWS = 16


def is_along(p: Product, suffix: str) -> Bool:
    """True if inner products are the fastest loops: b is not copied, or it is small, and tiles would be emptier."""
    is_few = p.n <= FEW_COLUMNS[suffix]
    is_worth = (p.b.row == 1) & ((p.k >= p.m * 4) | is_few) | (is_few & (p.m >= MANY_ROWS))
    return (p.a.column == 1) & (p.k >= LONG * lanes_of(suffix)) & is_worth


@product_function("along", ("a_col",))
def along(code: Code, suffix: str, p: Product) -> None:
    """The product, for any b."""
    own = ARITHMETIC[suffix]
    kind = own.kind
    with code.when(p.b.row == 1):
        inner_products(suffix)(code, *arguments(p, ("a_col", "b_row")))
        code.ret()
    copy = code.local(kind, COPIED * DEPTH, align=64)
    if code.poison:
        poison(code, copy, I64.of(COPIED * DEPTH * own.align))
    with code.count(0, p.n, COPIED) as j:
        width, factor = (p.n - j).minimum(COPIED), code.variable(p.beta)
        with code.count(0, p.k, DEPTH) as depth:
            height = (p.k - depth).minimum(DEPTH)
            source = p.b.part(depth, j, kind)
            with code.count(0, height, sure=True) as q, code.count(0, width, sure=True) as column:
                number = source.at.at(q * p.b.row + column * p.b.column, kind).load(kind)
                copy.at(column * DEPTH + q, kind).store(number)
            b = Matrix(copy, I64.of(1), code.variable(I64.of(DEPTH)).value)
            part = Product(p.m, width, height, p.alpha, p.a.part(0, depth, kind), b, factor.value, p.c.part(0, j, kind))
            inner_products(suffix)(code, *arguments(part, ("a_col", "b_row")))
            factor.value = kind.of(1)
