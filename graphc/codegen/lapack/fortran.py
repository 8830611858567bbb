"""Calls of LAPACK's and BLAS's routines, and copies of matrices for them.

In: sizes, letters and addresses. Out: calls through the table of addresses behind the symbol gc_lapack; functions that
copy, clear and transpose matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.codegen.gemm.tiles import ARITHMETIC
from graphc.codegen.lapack.api import ENTRIES, LETTERS, WIDTH
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, R, external, functions
from graphc.codegen.llvm.typed import I8, I32, I64, Bool, Ptr, Value

TABLE = Global("gc_lapack", f"external global [{len(ENTRIES)} x ptr]")


def letter(mark: str) -> I8:
    """A letter for a routine."""
    return I8.of(ord(mark))


def call_routine(code: Code, name: str, suffix: str, *args: Value) -> None:
    """Numbers and letters go by address, sizes as 64-bit integers, of which LAPACK reads the low half where its own are
    of 32 bits (little-endian). The lengths of letters, which Fortran passes, come last."""
    routine = TABLE(code).at(ENTRIES.index(LETTERS[suffix] + name), Ptr).load(Ptr)
    letters = sum(isinstance(arg, I8) for arg in args)
    routine.call(None, *(code.address(arg) for arg in args), *[I64.of(1)] * letters)


def call_lapack(code: Code, name: str, suffix: str, *args: Value) -> I64:
    """A call of a routine of LAPACK, whose status is its last argument."""
    status = code.local(I64)
    status.store(I64.of(0))
    call_routine(code, name, suffix, *args, status)
    return status.load(I32).to(I64)


def failed(status: I64) -> I64:
    """1 for any status that is not 0."""
    return (status == 0).choose(I64.of(0), 1)


def refuse_infinite(code: Code, kind: Any, a: Ptr, count: I64) -> None:
    """Leave with status 2 where an element is not finite: LAPACK would go on and on."""
    absolute = external(f"llvm.fabs.{kind.vectors}", kind, kind)
    with code.count(0, count) as i, code.when(~(absolute(code, a.at(i, kind).load(kind)) < float("inf"))):
        code.ret(I64.of(2))


def widen(code: Code, integers: Ptr, count: I64) -> None:
    """Integers that LAPACK has written are of 64 bits then."""
    with code.when(TABLE(code).at(ENTRIES.index(WIDTH), Ptr).load(I64) == 4), code.count(0, count) as done:
        place = count - done - 1
        integers.at(place, I64).store(integers.at(place, I32).load(I32).to(I64))


def matrix_function(name: str) -> Callable[[Callable[..., R]], Callable[[str], Function[..., R]]]:
    """Makes functions of matrices, one for each suffix of a dtype."""
    return functions(name, "noinline optsize", lambda suffix: ARITHMETIC[suffix].kind)


COPY = external("llvm.memcpy.p0.p0.i64", None, Ptr, Ptr, I64, Bool)
FILL = external("llvm.memset.p0.i64", None, Ptr, I8, I64, Bool)
BLOCK = 16
"""Rows and columns that are copied at a time, so that what is read or written across the rows stays in cache."""
WHOLE = 8
"""Elements of a row from which on it is copied as one."""


@matrix_function("copy")
def copy(
    code: Code, suffix: str, m: I64, n: I64, a: Ptr, a_row: I64, a_col: I64, c: Ptr, c_row: I64, c_col: I64,
) -> None:  # fmt: skip
    """A matrix of m rows and n columns, copied."""
    kind = ARITHMETIC[suffix].kind
    with code.when((a_col == 1) & (c_col == 1) & (n > WHOLE)):
        with code.count(0, m) as i:
            COPY(code, c.at(i * c_row, kind), a.at(i * a_row, kind), n * ARITHMETIC[suffix].align, Bool.of(False))
        code.ret()
    with code.count(0, m, BLOCK) as row:
        below = row + BLOCK
        end = below.minimum(m)
        with code.count(0, n, BLOCK) as column:
            beside = column + BLOCK
            last = beside.minimum(n)
            with code.count(row, end) as i:
                source, target = a.at(i * a_row, kind), c.at(i * c_row, kind)
                with code.count(column, last) as j:
                    target.at(j * c_col, kind).store(source.at(j * a_col, kind).load(kind))


@matrix_function("copy_triangle")
def copy_triangle(code: Code, suffix: str, n: I64, a: Ptr, a_row: I64, a_col: I64, c: Ptr) -> None:
    """The lower triangle, and zeros above it, in contiguous rows."""
    kind = ARITHMETIC[suffix].kind
    size = ARITHMETIC[suffix].align
    is_plain = a_col == 1
    with code.count(0, n) as i:
        source, target, length = a.at(i * a_row, kind), c.at(i * n, kind), i + 1
        with code.when(is_plain), code.when(source != target):
            COPY(code, target, source, length * size, Bool.of(False))
        with code.otherwise(), code.count(0, length) as j:
            target.at(j, kind).store(source.at(j * a_col, kind).load(kind))
        FILL(code, target.at(length, kind), I8.of(0), (n - length) * size, Bool.of(False))


@matrix_function("clear_above")
def clear_above(code: Code, suffix: str, n: I64, c: Ptr) -> None:
    """Zeros above the diagonal of contiguous rows."""
    kind, size = ARITHMETIC[suffix].kind, ARITHMETIC[suffix].align
    with code.count(0, n) as i:
        FILL(code, c.at(i * n + i + 1, kind), I8.of(0), (n - i - 1) * size, Bool.of(False))


@matrix_function("transpose_square")
def transpose_square(code: Code, suffix: str, n: I64, a: Ptr) -> None:
    """A square matrix transposed where it stands."""
    kind = ARITHMETIC[suffix].kind
    with code.count(0, n, BLOCK) as row:
        below = row + BLOCK
        end = below.minimum(n)
        with code.count(0, end, BLOCK) as column:
            beside = column + BLOCK
            with code.count(row, end) as i:
                last = beside.minimum(i)
                with code.count(column, last) as j:
                    here, there = a.at(i * n + j, kind), a.at(j * n + i, kind)
                    value, other = here.load(kind), there.load(kind)
                    here.store(other)
                    there.store(value)
