"""Cholesky's factors, triangular systems, and LU, of one matrix: loops for small ones, else LAPACK and BLAS.

In: the suffix of a dtype. Out: functions of LLVM IR that compute one matrix (batch.py). Matrices of up to WRITTEN_OUT
rows have code of their own, without loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from graphc.codegen.gemm.dispatch import Operand
from graphc.codegen.gemm.tiles import ARITHMETIC, Matrix
from graphc.codegen.lapack.blocked import cholesky_blocked, lu_blocked, solve_blocked
from graphc.codegen.lapack.fortran import (
    BLOCK,
    call_lapack,
    call_routine,
    clear_above,
    copy,
    copy_triangle,
    letter,
    matrix_function,
    transpose_square,
    widen,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.target import has_vector_products
from graphc.codegen.llvm.typed import I64, Bool, Ptr

WRITTEN_OUT = 4
SMALL = 16
"""Rows up to which loops take less time than LAPACK."""
BLOCKED = 128
"""Rows up to which LAPACK takes less time on one thread than halves and a product (blocked.py)."""

Element: TypeAlias = Any


def _at(kind: Any, base: Ptr, *parts: tuple[int, I64]) -> Ptr:
    """An address: the products of indices and strides further."""
    place = base
    for index, stride in parts:
        place = place.at(stride * index, kind) if index else place
    return place


def less(total: Any, left: Any, right: Any) -> Any:
    """total - left * right, rounded once where the processor can."""
    return total.apply("fsub contract", left.apply("fmul contract", right))


def sqrt(code: Code, value: Any) -> Any:
    kind = type(value)
    return external(f"llvm.sqrt.{kind.vectors}", kind, kind)(code, value)


# --- cholesky ---------------------------------------------------------------------------------------------------------


@matrix_function("cholesky_one")
def cholesky(code: Code, suffix: str, n: I64, a: Ptr, row: I64, column: I64, l: Ptr) -> I64:  # noqa: E741
    """Status 1 where a matrix is not positive definite."""
    for count in range(1, WRITTEN_OUT + 1):
        with code.when(n == count):
            code.ret(small_cholesky(suffix, count)(code, a, row, column, l))
    with code.when(n <= SMALL):
        code.ret(cholesky_loops(suffix)(code, n, a, row, column, l))
    copy_triangle(suffix)(code, n, a, row, column, l)
    if has_vector_products():
        with code.when(n > BLOCKED):
            status = cholesky_blocked(suffix)(code, n, l, n)
            clear_above(suffix)(code, n, l)
            code.ret(status)
    status = call_lapack(code, "potrf", suffix, letter("U"), n, l, n)
    return (status == 0).choose(I64.of(0), 1)


def small_cholesky(suffix: str, count: int) -> Function[..., I64]:
    """The same for `count` rows."""
    kind = ARITHMETIC[suffix].kind

    @matrix_function(f"cholesky_{count}")
    def write(code: Code, suffix: str, a: Ptr, row: I64, column: I64, l: Ptr) -> I64:  # noqa: E741
        fails = code.label("fails")
        found: dict[tuple[int, int], Any] = {}
        for i in range(count):
            for j in range(i + 1):
                value = _at(kind, a, (i, row), (j, column)).load(kind)
                for p in range(j):
                    value = less(value, found[i, p], found[j, p])
                if i == j:
                    fails.when(value <= 0)
                    found[i, i] = sqrt(code, value)
                else:
                    found[i, j] = value / found[j, j]
        for i in range(count):
            for j in range(count):
                l.at(i * count + j, kind).store(found.get((i, j), kind.of(0)))
        code.ret(I64.of(0))
        code.place(fails)
        return I64.of(1)

    return write(suffix)


@matrix_function("cholesky_loops")
def cholesky_loops(code: Code, suffix: str, n: I64, a: Ptr, row: I64, column: I64, l: Ptr) -> I64:  # noqa: E741
    """The same by loops."""
    kind = ARITHMETIC[suffix].kind
    fails = code.label("fails")
    with code.count(0, n) as i:
        source, own = a.at(i * row, kind), l.at(i * n, kind)
        with code.count(0, i) as j:
            other = l.at(j * n, kind)
            value = code.variable(source.at(j * column, kind).load(kind))
            with code.count(0, j) as p:
                value.value = less(value.value, own.at(p, kind).load(kind), other.at(p, kind).load(kind))
            own.at(j, kind).store(value.value / other.at(j, kind).load(kind))
        value = code.variable(source.at(i * column, kind).load(kind))
        with code.count(0, i) as p:
            each = own.at(p, kind).load(kind)
            value.value = less(value.value, each, each)
        fails.when(value.value <= 0)
        own.at(i, kind).store(sqrt(code, value.value))
        with code.count(i + 1, n) as j:
            own.at(j, kind).store(kind.of(0))
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


@matrix_function("inverse_of_factor_one")
def inverse_of_factor(code: Code, suffix: str, n: I64, l: Ptr, row: I64, column: I64, x: Ptr) -> I64:  # noqa: E741
    """Status 0."""
    kind = ARITHMETIC[suffix].kind
    copy_triangle(suffix)(code, n, l, row, column, x)
    with code.when(n <= SMALL):
        inverse_loops(suffix)(code, n, x)
    with code.otherwise():
        call_lapack(code, "potri", suffix, letter("U"), n, x, n)
    with code.count(0, n, BLOCK) as top, code.count(0, top + BLOCK, BLOCK) as left:
        below, beside = top + BLOCK, left + BLOCK
        end = below.minimum(n)
        with code.count(top, end) as i, code.count(left, beside.minimum(i)) as j:
            x.at(j * n + i, kind).store(x.at(i * n + j, kind).load(kind))
    return I64.of(0)


@matrix_function("inverse_loops")
def inverse_loops(code: Code, suffix: str, n: I64, x: Ptr) -> None:
    """The lower triangle of the inverse, where that of the factor stands."""
    kind = ARITHMETIC[suffix].kind
    with code.count(0, n) as j:
        corner = x.at(j * n + j, kind)
        corner.store(kind.of(1) / corner.load(kind))
    with code.count(0, n) as i:
        own = x.at(i * n, kind)
        scale = own.at(i, kind).load(kind)
        with code.count(0, i) as j:
            value = code.variable(kind.of(0))
            with code.count(j, i) as p:
                # of row i what lies left of p is not needed any more: it holds the inverse
                value.value = less(value.value, own.at(p, kind).load(kind), x.at(p * n + j, kind).load(kind))
            own.at(j, kind).store(value.value * scale)
    with code.count(0, n) as i:
        own = x.at(i * n, kind)
        with code.count(0, i + 1) as j:
            value = code.variable(kind.of(0))
            with code.count(i, n) as p:
                each = x.at(p * n, kind)
                value.value = less(value.value, each.at(i, kind).load(kind), each.at(j, kind).load(kind))
            own.at(j, kind).store(kind.of(0) - value.value)


# --- triangular systems -----------------------------------------------------------------------------------------------


@matrix_function("triangular_solve_one")
def triangular_solve(
    code: Code, suffix: str, n: I64, k: I64, lower: I64, transposed: I64, unit: I64, a: Ptr, row: I64, column: I64,
    b: Ptr, b_row: I64, b_column: I64, x: Ptr,
) -> I64:  # fmt: skip
    """Status 1 where there is a 0 on the diagonal."""
    kind = ARITHMETIC[suffix].kind
    turned = transposed != 0
    down, along = turned.choose(column, row), turned.choose(row, column)
    forwards = lower != transposed
    first = forwards.choose(a, a.at((n - 1) * (down + along), kind))
    top = forwards.choose(x, x.at((n - 1) * k, kind))
    down, along, step, b_step = (forwards.choose(s, 0 - s) for s in (down, along, k, b_row))
    for count in range(1, WRITTEN_OUT + 1):
        with code.when(n == count):
            given = forwards.choose(b, b.at(b_row * (count - 1), kind))
            parts = given, b_step, b_column, top, step
            code.ret(small_solve(suffix, count)(code, k, unit, first, down, along, *parts))
    fails = code.label("fails")
    with code.when(unit == 0), code.count(0, n) as i:
        fails.when(a.at(i * (row + column), kind).load(kind) == 0)
    with code.when(b != x):
        copy(suffix)(code, n, k, b, b_row, b_column, x, k, I64.of(1))
    by_loops = code.label("loops")
    by_loops.when((n <= SMALL) & (k <= SMALL))
    matrix = Operand(Matrix(a, row, column), n, n)
    by_loops.unless(matrix.fits)
    if has_vector_products():
        with code.when(k > 1):
            solve_blocked(suffix)(code, n, k, lower, transposed, unit, a, row, column, x, k, I64.of(1))
            code.ret(I64.of(0))
    _solve_by_blas(code, suffix, matrix, n, k, lower != 0, turned, unit != 0, x)
    code.ret(I64.of(0))
    code.place(by_loops)
    solve_loops(suffix)(code, n, k, unit, first, down, along, top, step)
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


def _solve_by_blas(
    code: Code, suffix: str, matrix: Operand, n: I64, k: I64, lower: Bool, transposed: Bool, unit: Bool, x: Ptr
) -> None:
    """Rows here are columns to Fortran: it has the transposed matrix where its rows are contiguous, and of several
    right sides solves x' a' = b'."""
    is_lower = matrix.is_plain.choose(~lower, lower)
    uplo, diagonal = is_lower.choose(letter("L"), letter("U")), unit.choose(letter("U"), letter("N"))
    is_turned = matrix.is_plain.choose(~transposed, transposed)
    with code.when(k == 1):
        trans = is_turned.choose(letter("T"), letter("N"))
        call_routine(code, "trsv", suffix, uplo, trans, diagonal, n, matrix.at, matrix.leading, x, I64.of(1))
    with code.otherwise():
        trans, one = is_turned.choose(letter("N"), letter("T")), ARITHMETIC[suffix].kind.of(1)
        letters = letter("R"), uplo, trans, diagonal
        call_routine(code, "trsm", suffix, *letters, k, n, one, matrix.at, matrix.leading, x, k)


def small_solve(suffix: str, count: int) -> Function[..., I64]:
    """A lower system of `count` rows: its status, 1 where there is a 0 on the diagonal. x: where it goes, row by row
    `step` apart, in contiguous columns; b may stand there."""
    kind = ARITHMETIC[suffix].kind

    @matrix_function(f"solve_{count}")
    def write(
        code: Code, suffix: str, k: I64, unit: I64, a: Ptr, row: I64, column: I64, b: Ptr, b_row: I64,
        b_column: I64, x: Ptr, step: I64,
    ) -> I64:  # fmt: skip
        is_unit = unit != 0
        fails = code.label("fails")
        own: dict[tuple[int, int], Any] = {}
        for i in range(count):
            for j in range(i):
                own[i, j] = _at(kind, a, (i, row), (j, column)).load(kind)
            place = _at(kind, a, (i, row), (i, column))
            own[i, i] = is_unit.choose(kind.of(1), place.load(kind))
        for i in range(count):
            fails.when(own[i, i] == 0)
        with code.count(0, k) as c:
            values: list[Any] = []
            for i in range(count):
                value = _at(kind, b, (i, b_row)).at(c * b_column, kind).load(kind)
                for p in range(i):
                    value = less(value, own[i, p], values[p])
                values.append(value / own[i, i])
            for i, value in enumerate(values):
                _at(kind, x, (i, step)).at(c, kind).store(value)
        code.ret(I64.of(0))
        code.place(fails)
        return I64.of(1)

    return write(suffix)


@matrix_function("solve_loops")
def solve_loops(
    code: Code, suffix: str, n: I64, k: I64, unit: I64, a: Ptr, row: I64, column: I64, x: Ptr, step: I64,
) -> None:  # fmt: skip
    """The same of n rows."""
    kind = ARITHMETIC[suffix].kind
    is_unit = unit != 0
    with code.count(0, n) as i:
        own, target = a.at(i * row, kind), x.at(i * step, kind)
        diagonal = code.variable(kind.of(1))
        with code.when(~is_unit):
            diagonal.value = own.at(i * column, kind).load(kind)
        with code.count(0, k) as c:
            value = code.variable(target.at(c, kind).load(kind))
            with code.count(0, i) as p:
                known = x.at(p * step, kind).at(c, kind).load(kind)
                value.value = less(value.value, own.at(p * column, kind).load(kind), known)
            target.at(c, kind).store(value.value / diagonal.value)


# --- lu ---------------------------------------------------------------------------------------------------------------


@matrix_function("lu_one")
def lu(
    code: Code, suffix: str, n: I64, a: Ptr, row: I64, column: I64, packed: Ptr, permutation: Ptr, pivots: Ptr,
) -> I64:  # fmt: skip
    """Status 0."""
    kind = ARITHMETIC[suffix].kind
    with code.when(n <= SMALL):
        with code.count(0, n) as i:
            source, target = a.at(i * row, kind), packed.at(i * n, kind)
            with code.count(0, n) as j:
                target.at(j, kind).store(source.at(j * column, kind).load(kind))
        lu_loops(suffix)(code, n, packed, pivots)
    with code.otherwise():
        with code.when(a == packed):
            transpose_square(suffix)(code, n, packed)
        with code.otherwise():
            copy(suffix)(code, n, n, a, row, column, packed, I64.of(1), n)
        lu_columns(suffix)(code, n, packed, pivots)
        transpose_square(suffix)(code, n, packed)
    with code.count(0, n) as i:
        permutation.at(i, I64).store(i)
    with code.count(0, n) as i:
        here, there = permutation.at(i, I64), permutation.at(pivots.at(i, I64).load(I64), I64)
        value, other = here.load(I64), there.load(I64)
        here.store(other)
        there.store(value)
    return I64.of(0)


@matrix_function("lu_columns")
def lu_columns(code: Code, suffix: str, n: I64, x: Ptr, pivots: Ptr) -> None:
    """L and U of n contiguous columns, and the row that each row is swapped with."""
    if has_vector_products():
        with code.when(n > BLOCKED):
            lu_blocked(suffix)(code, n, n, x, n, pivots)
            code.ret()
    call_lapack(code, "getrf", suffix, n, n, x, n, pivots)
    widen(code, pivots, n)
    with code.count(0, n) as i:
        place = pivots.at(i, I64)
        place.store(place.load(I64) - 1)


@matrix_function("lu_of_any_one")
def lu_of_any(
    code: Code, suffix: str, m: I64, n: I64, a: Ptr, row: I64, column: I64, packed: Ptr, permutation: Ptr, matrix:
    Ptr, pivots: Ptr,
) -> I64:  # fmt: skip
    """Status 0."""
    with code.count(0, m) as i:
        permutation.at(i, I64).store(i)
    shorter = m.minimum(n)
    with code.when(shorter > 0):
        copy(suffix)(code, m, n, a, row, column, matrix, I64.of(1), m)
        call_lapack(code, "getrf", suffix, m, n, matrix, m, pivots)
        copy(suffix)(code, m, n, matrix, I64.of(1), m, packed, n, I64.of(1))
        widen(code, pivots, shorter)
    with code.count(0, shorter) as i:
        here, there = permutation.at(i, I64), permutation.at(pivots.at(i, I64).load(I64) - 1, I64)
        value, other = here.load(I64), there.load(I64)
        here.store(other)
        there.store(value)
    return I64.of(0)


@matrix_function("lu_loops")
def lu_loops(code: Code, suffix: str, n: I64, x: Ptr, pivots: Ptr) -> None:
    """Contiguous rows, where they stand."""
    kind = ARITHMETIC[suffix].kind
    absolute = external(f"llvm.fabs.{kind.vectors}", kind, kind)
    with code.count(0, n) as k:
        own = x.at(k * n, kind)
        best, most = code.variable(k), code.variable(kind.of(-1))
        with code.count(k, n) as i:
            size = absolute(code, x.at(i * n, kind).at(k, kind).load(kind))
            with code.when(size > most.value):
                best.value = i
                most.value = size
        pivots.at(k, I64).store(best.value)
        with code.when(best.value != k):
            other = x.at(best.value * n, kind)
            with code.count(0, n) as j:
                here, there = own.at(j, kind), other.at(j, kind)
                value, moved = here.load(kind), there.load(kind)
                here.store(moved)
                there.store(value)
        pivot = own.at(k, kind).load(kind)
        with code.when(~(pivot == 0)), code.count(k + 1, n) as i:
            row = x.at(i * n, kind)
            factor = row.at(k, kind).load(kind) / pivot
            row.at(k, kind).store(factor)
            with code.count(k + 1, n) as j:
                place = row.at(j, kind)
                place.store(less(place.load(kind), factor, own.at(j, kind).load(kind)))


ELIMINATIONS: Mapping[str, Callable[[str], Function[..., I64]]] = {
    "cholesky": cholesky,
    "inverse_of_factor": inverse_of_factor,
    "triangular_solve": triangular_solve,
    "lu": lu,
    "lu_of_any": lu_of_any,
}
"""By routine."""
