"""The order of the rows of a matrix: by their first elements, of equal ones by the second, and so on.

In: a dtype. Out: a function of LLVM IR.
"""

from __future__ import annotations

from functools import cache

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I64, Bool, Ptr
from graphc.codegen.sort.lines import KINDS, argsort_line, insert_by_steps, is_less, line_function


@cache
def lexorder_rows(dtype: str) -> Function[..., None]:
    """lexorder_rows(x, row, column, n, m, places): sorted by the first elements, what is equal there by the rest."""
    kind = KINDS[dtype]

    @line_function("lexorder_rows", dtype)
    def write(code: Code, x: Ptr, row: I64, column: I64, n: I64, m: I64, places: Ptr) -> None:
        with code.when(m == 0):
            with code.count(0, n) as i:
                places.at(i, I64).store(i)
            code.ret()
        argsort_line(dtype)(code, x, row, n, places)

        def element(place: I64) -> object:
            return x.at(places.at(place, I64).load(I64) * row, kind).load(kind)

        first = code.variable(I64.of(0))
        with code.loop() as runs:
            runs.leave.unless(first.value < n)
            begin, end = first.value, code.variable(first.value + 1)
            with code.loop() as run:
                run.leave.unless(end.value < n)
                run.leave.when(is_less(dtype, element(begin), element(end.value)))
                end.value = end.value + 1
            with code.when(end.value - begin > 1):
                sort_run(dtype)(code, x, row, column, end.value - begin, m, places.at(begin, I64))
            first.value = end.value

    return write


@cache
def sort_run(dtype: str) -> Function[..., None]:
    """sort_run(x, row, column, n, m, places): places of rows sorted where they stand, by Shell's method."""

    @line_function("sort_run", dtype)
    def write(code: Code, x: Ptr, row: I64, column: I64, n: I64, m: I64, places: Ptr) -> None:
        def comes_before(i: I64, j: I64) -> Bool:
            return is_row_less(dtype)(code, x, row, column, m, i, j)

        insert_by_steps(code, places, I64, n, comes_before)

    return write


@cache
def is_row_less(dtype: str) -> Function[..., Bool]:
    """is_row_less(x, row, column, m, i, j): whether row i comes before row j; equal ones are in the order of places."""
    kind = KINDS[dtype]

    @line_function("is_row_less", dtype)
    def write(code: Code, x: Ptr, row: I64, column: I64, m: I64, i: I64, j: I64) -> Bool:
        left, right = x.at(i * row, kind), x.at(j * row, kind)
        with code.count(1, m) as number:
            one, other = (each.at(number * column, kind).load(kind) for each in (left, right))
            with code.when(is_less(dtype, one, other)):
                code.ret(Bool.of(True))
            with code.when(is_less(dtype, other, one)):
                code.ret(Bool.of(False))
        return i < j

    return write
