"""The smallest products: matrices of up to MOST rows and columns.

In: the suffix of a dtype. Out: a function of LLVM IR. A row of c is one vector under a mask, and so is a row of b,
which is gathered where its elements stand apart. A product of 2 by 2 takes less time so than it takes to choose among
the loops of small.py.
"""

from __future__ import annotations

from typing import Any

from graphc.codegen.gemm.tiles import ARITHMETIC, Columns, Product, first_lanes, product_function
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.typed import I64, Bool, vector
from graphc.startup.record import replace

MOST = 8
ROWS = (4, 2, 1)
"""Rows of c at a time, the more while they last."""


def are_few(p: Product) -> Bool:
    """True if a product is one of these: c has contiguous rows, of more than one element."""
    return (p.m <= MOST) & (p.n <= MOST) & (p.k <= MOST) & (p.n > 1) & (p.c.column == 1)


@product_function("few", ("c_col",))
def few(code: Code, suffix: str, p: Product) -> None:
    """The product, row by row."""
    kind = ARITHMETIC[suffix].kind
    columns = Columns(suffix, MOST, first_lanes(p.n, MOST))
    apart = p.b.column.spread(MOST) * vector(I64, MOST).each(range(MOST))
    for is_apart in (False, True):
        with code.when((p.b.column != 1) if is_apart else (p.b.column == 1)):
            i = code.variable(I64.of(0))
            for rows in ROWS:
                with code.loop() as iteration:
                    iteration.leave.unless(i.value < p.m - (rows - 1))
                    here = replace(p, a=p.a.part(i.value, 0, kind), c=p.c.part(i.value, 0, kind))
                    _multiply(code, here, rows, columns, apart if is_apart else None)
                    i.value = i.value.apply("add nsw", rows)
            code.ret()


def _multiply(code: Code, p: Product, rows: int, columns: Columns, apart: Any) -> None:
    """Some rows of c. apart: where the elements of a row of b stand, if not beside each other."""
    own = columns.own
    sums = [code.variable(columns.kind.of(0)) for _ in range(rows)]
    a, b, left = code.variable(p.a.at), code.variable(p.b.at), code.variable(p.k)
    with code.loop() as iteration:
        iteration.leave.unless(left.value > 0)
        b_row = columns.read(code, b.value, apart)
        for row, total in enumerate(sums):
            number = a.value.at(p.a.row * row, own.kind).load(own.kind)
            total.value = total.value.apply(own.plus, number.spread(MOST).apply(own.times, b_row))
        a.value, b.value = a.value.at(p.a.column, own.kind), b.value.at(p.b.row, own.kind)
        left.value = left.value - 1
    columns.finish(code, [total.value for total in sums], p)
