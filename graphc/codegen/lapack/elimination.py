"""Cholesky's factors, triangular systems, and LU, of one matrix: loops for small ones, else LAPACK and BLAS.

In: the suffix of a dtype. Out: functions of LLVM IR that compute one matrix (batch.py). Matrices of up to WRITTEN_OUT
rows have code of their own, without loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from graphc.codegen.gemm import ENTRIES
from graphc.codegen.gemm.dispatch import Operand, blas_routine, call_blas
from graphc.codegen.gemm.tiles import ARITHMETIC, ENTRY, SETTING, Matrix, Words, find, share
from graphc.codegen.lapack.orthogonal import (
    BLOCK,
    call_lapack,
    call_routine,
    clear_above,
    copy,
    copy_triangle,
    letter,
    matrix_function,
    swap,
    transpose_square,
    widen,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.target import has_vector_products
from graphc.codegen.llvm.typed import F64, I8, I64, NULL, Bool, Elements, Indices, Ptr

# --- larger matrices by large products, which our own pool shares out -------------------------------------------------
# In: the suffix of a dtype. Out: functions of LLVM IR for one matrix: `cholesky_blocked`, `solve_blocked`,
# `lu_blocked`. A matrix of more than `BASE` rows is halved, the halves again; LAPACK and BLAS get blocks of up to
# `BASE`, on one thread, and all between is a product of matrices (codegen/gemm/blocked.py). Of a Cholesky
# factorisation of 1000 rows nine tenths are.
#
#     cholesky [A11     ]   L11 = cholesky(A11);  L21 = A21 L11'^-1;  A22 -= L21 L21';  L22 = cholesky(A22)
#              [A21  A22]
#
# What is divided, and where, follows from sizes alone, so the bits of a result are the same for any number of threads.
# Source: Gustavson, Recursion leads to automatic variable blocking for dense linear-algebra algorithms, 1997.

BASE = 96
"""Rows and columns up to which LAPACK and BLAS take less time on one thread than halves and a product do."""
RIGHT_SIDES = 64
"""Right sides that a thread takes at a time."""
WORK = 2.0
"""The cost of a multiplication in a triangular system, in units of work (threads/settings.py)."""
PANEL = 32
"""Columns of LU that LAPACK gets."""


def half_of(n: I64) -> I64:
    """About half of a size, in whole tiles of a product."""
    return (n // 2 + 15) & -16


@matrix_function("large_products")
def large_products(code: Code, suffix: str) -> Ptr:
    """The function of large products; null where there is none."""
    return find(code, ENTRY(code), ENTRIES.index(f"blocks {suffix}"), ENTRIES.index(f"find blocks {suffix}"))


@matrix_function("subtract")
def subtract(
    code: Code, suffix: str, triangle: I64, m: I64, n: I64, k: I64, a: Elements, a_row: I64, a_col: I64, b: Elements,
    b_row: I64, b_col: I64, c: Elements, c_row: I64, c_col: I64,
) -> None:  # fmt: skip
    """c -= a b. triangle: as large products have it."""
    one, minus = ARITHMETIC[suffix].element.of(1), ARITHMETIC[suffix].element.of(-1)
    product = m, n, k, minus, a, a_row, a_col, b, b_row, b_col, one, c, c_row, c_col
    large, status = large_products(suffix)(code), code.variable(I64.of(1))
    with code.when(large != NULL):
        status.value = large.call(I64, SETTING(code), triangle, *product)
    with code.when(status.value != 0):  # it is not there, or there was no memory for its panels
        with code.when(c_col != 1):
            turned = n, m, k, b, b_col, b_row, a, a_col, a_row, c, c_col, c_row
            code.ret(subtract(suffix)(code, I64.of(0), *turned))
        left, right = Operand(Matrix(a, a_row, a_col), m, k), Operand(Matrix(b, b_row, b_col), k, n)
        letters = right.letter("N", "T"), left.letter("N", "T")
        operands = right.at, right.leading, left.at, left.leading
        call_blas(code, blas_routine(code, suffix, "gemm"), *letters, n, m, k, minus, *operands, one, c, c_row)


# Triangular systems. --------------------------------------------------------------------------------------------------

SYSTEM = "n k lower transposed unit a row column x step x_column".split()


@cache
def system_words() -> Words:
    """The words that threads read of a triangular system."""
    return Words({name: Ptr if name in "ax" else I64 for name in SYSTEM})


def triangle_of(matrix: Operand, lower: Bool, transposed: Bool, unit: Bool) -> tuple[I8, Bool, I8]:
    """A triangular matrix as Fortran has it, which takes contiguous rows for columns: the letter of its triangle,
    whether it is transposed, and the letter of its diagonal."""
    is_lower = matrix.is_plain.choose(~lower, lower)
    is_turned = matrix.is_plain.choose(~transposed, transposed)
    return is_lower.choose(letter("L"), letter("U")), is_turned, unit.choose(letter("U"), letter("N"))


@matrix_function("solve_range")
def solve_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Solves for some right sides, by BLAS. Rows that are contiguous are columns to Fortran: it has the transposed
    matrix then, and of right sides in rows it solves x' a' = b'."""
    w, element = system_words().read(context), ARITHMETIC[suffix].element
    matrix = Operand(Matrix(w["a"], w["row"], w["column"]), w["n"], w["n"])
    uplo, is_turned, diagonal = triangle_of(matrix, *(w[name] != 0 for name in ("lower", "transposed", "unit")))
    in_rows = w["x_column"] == 1
    one = element.of(1)
    with code.count(begin, end, RIGHT_SIDES) as first:
        rest = end - first
        count = rest.minimum(RIGHT_SIDES)
        x = w["x"].at(first * w["x_column"], element)
        with code.when(in_rows):
            letters = letter("R"), uplo, is_turned.choose(letter("N"), letter("T")), diagonal
            call_routine(code, "trsm", suffix, *letters, count, w["n"], one, matrix.at, matrix.leading, x, w["step"])
        with code.otherwise():
            letters = letter("L"), uplo, is_turned.choose(letter("T"), letter("N")), diagonal
            operands = matrix.at, matrix.leading, x, w["x_column"]
            call_routine(code, "trsm", suffix, *letters, w["n"], count, one, *operands)


@matrix_function("solve_blocked")
def solve_blocked(
    code: Code, suffix: str, n: I64, k: I64, lower: I64, transposed: I64, unit: I64, a: Elements, row: I64,
    column: I64, x: Elements, step: I64, x_column: I64,
) -> None:  # fmt: skip
    """a x = b, or a' x = b, for a triangular matrix of n rows, in whose rows or columns numbers are contiguous, and k
    right sides, which x takes the place of, in contiguous rows or columns too."""
    flags = lower, transposed, unit
    with code.when(n <= BASE):
        values = n, k, *flags, a, row, column, x, step, x_column
        context = system_words().write(code, dict(zip(SYSTEM, values, strict=True)))
        work = n.to(F64) * n.to(F64) * k.to(F64) * (WORK / 2)
        share(code, solve_range(suffix).pointer(code), context, k, I64.of(RIGHT_SIDES), work)
        code.ret()
    half = half_of(n)
    rest = n - half
    forwards, turned = lower != transposed, transposed != 0
    corner, below = a.at(half * (row + column)), x.at(half * step)

    def solve(is_first: Bool) -> None:
        with code.when(is_first):
            solve_blocked(suffix)(code, half, k, *flags, a, row, column, x, step, x_column)
        with code.otherwise():
            solve_blocked(suffix)(code, rest, k, *flags, corner, row, column, below, step, x_column)

    solve(forwards)
    # The block between the halves, as the system has it.
    down, along = turned.choose(column, row), turned.choose(row, column)
    block = a.at(half * forwards.choose(down, along))
    m, depth = forwards.choose(rest, half), forwards.choose(half, rest)
    known, wanted = forwards.choose(x, below), forwards.choose(below, x)
    none = I64.of(0)
    subtract(suffix)(code, none, m, k, depth, block, down, along, known, step, x_column, wanted, step, x_column)
    solve(~forwards)


# Cholesky's factors. --------------------------------------------------------------------------------------------------


@matrix_function("cholesky_blocked")
def cholesky_blocked(code: Code, suffix: str, n: I64, a: Elements, step: I64) -> I64:
    """The factor of a matrix in contiguous rows, in its lower triangle; what is above is left undefined. Status 1 where
    the matrix is not positive definite."""
    failed, one = code.label("failed"), I64.of(1)
    with code.when(n <= BASE):
        # A lower triangle in rows is an upper one in columns.
        status = call_lapack(code, "potrf", suffix, letter("U"), n, a, step)
        code.ret((status == 0).choose(I64.of(0), 1))
    half = half_of(n)
    rest = n - half
    below = a.at(half * step)
    corner = below.at(half)
    failed.when(cholesky_blocked(suffix)(code, half, a, step) != 0)
    flags = one, I64.of(0), I64.of(0)
    solve_blocked(suffix)(code, half, rest, *flags, a, step, one, below, one, step)
    subtract(suffix)(code, one, rest, rest, half, below, step, one, below, one, step, corner, step, one)
    code.ret(cholesky_blocked(suffix)(code, rest, corner, step))
    code.place(failed)
    return one


# LU. ------------------------------------------------------------------------------------------------------------------


@matrix_function("swap_rows")
def swap_rows(code: Code, suffix: str, n: I64, x: Elements, step: I64, count: I64, pivots: Indices) -> None:
    """Swaps each of the first rows with its pivot's, in n columns `step` apart."""
    with code.count(0, n) as j:
        column = x.at(j * step)
        with code.count(0, count) as i:
            swap(column.at(i), column.at(pivots[i]))


def lu_by_lapack(code: Code, suffix: str, m: I64, n: I64, x: Elements, step: I64, pivots: Indices) -> None:
    """L and U of m rows and n contiguous columns, and the row that each of the first rows is swapped with, from 0."""
    call_lapack(code, "getrf", suffix, m, n, x, step, pivots)
    count = m.minimum(n)
    widen(code, pivots, count)
    with code.count(0, count) as i:
        place = pivots.at(i)
        place.value -= 1


def order_after_swaps(code: Code, m: I64, permutation: Indices, count: I64, pivots: Indices) -> None:
    """The order in which m rows stand after the swaps of the first `count`."""
    with code.count(0, m) as i:
        permutation[i] = i
    with code.count(0, count) as i:
        swap(permutation.at(i), permutation.at(pivots[i]))


@matrix_function("lu_blocked")
def lu_blocked(code: Code, suffix: str, m: I64, n: I64, x: Elements, step: I64, pivots: Indices) -> None:
    """L and U of m rows and no more columns, in contiguous columns; the row that each of n is swapped with."""
    with code.when(n <= PANEL):
        lu_by_lapack(code, suffix, m, n, x, step, pivots)
        code.ret()
    half, one = half_of(n), I64.of(1)
    rest = n - half
    right = x.at(half * step)
    below, corner, others = x.at(half), right.at(half), pivots.at(half)
    lu_blocked(suffix)(code, m, half, x, step, pivots)
    swap_rows(suffix)(code, rest, right, step, half, pivots)
    flags = one, I64.of(0), one
    solve_blocked(suffix)(code, half, rest, *flags, x, one, step, right, one, step)
    subtract(suffix)(code, I64.of(0), m - half, rest, half, below, one, step, right, one, step, corner, one, step)
    lu_blocked(suffix)(code, m - half, rest, corner, step, others)
    swap_rows(suffix)(code, half, below, step, rest, others)
    with code.count(0, rest) as i:
        place = others.at(i)
        place.value += half


WRITTEN_OUT = 4
SMALL = 16
"""Rows up to which loops take less time than LAPACK."""
BLOCKED = 128
"""Rows up to which LAPACK takes less time on one thread than halves and a product."""

Element: TypeAlias = Any


def _at(base: Elements, *parts: tuple[int, I64]) -> Elements:
    """An address: the products of indices and strides further."""
    place = base
    for index, stride in parts:
        place = place.at(stride * index) if index else place
    return place


def less(total: Any, left: Any, right: Any) -> Any:
    """total - left * right, rounded once where the processor can."""
    return total.apply("fsub contract", left.apply("fmul contract", right))


def sqrt(code: Code, value: Any) -> Any:
    element = type(value)
    return external(f"llvm.sqrt.{element.vectors}", element, element)(code, value)


# --- cholesky ---------------------------------------------------------------------------------------------------------


@matrix_function("cholesky_one")
def cholesky(code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, l: Elements) -> I64:  # noqa: E741
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
    element = ARITHMETIC[suffix].element

    @matrix_function(f"cholesky_{count}")
    def write(code: Code, suffix: str, a: Elements, row: I64, column: I64, l: Elements) -> I64:  # noqa: E741
        fails = code.label("fails")
        factor: dict[tuple[int, int], Any] = {}
        for i in range(count):
            for j in range(i + 1):
                value = _at(a, (i, row), (j, column)).value
                for p in range(j):
                    value = less(value, factor[i, p], factor[j, p])
                if i == j:
                    fails.when(value <= 0)
                    factor[i, i] = sqrt(code, value)
                else:
                    factor[i, j] = value / factor[j, j]
        for i in range(count):
            for j in range(count):
                l[i * count + j] = factor.get((i, j), element.of(0))
        code.ret(I64.of(0))
        code.place(fails)
        return I64.of(1)

    return write(suffix)


@matrix_function("cholesky_loops")
def cholesky_loops(code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, l: Elements) -> I64:  # noqa: E741
    """The same by loops."""
    fails = code.label("fails")
    with code.count(0, n) as i:
        source, l_row = a.at(i * row), l.at(i * n)
        with code.count(0, i) as j:
            other = l.at(j * n)
            value = code.variable(source[j * column])
            with code.count(0, j) as p:
                value.value = less(value.value, l_row[p], other[p])
            l_row[j] = value.value / other[j]
        value = code.variable(source[i * column])
        with code.count(0, i) as p:
            each = l_row[p]
            value.value = less(value.value, each, each)
        fails.when(value.value <= 0)
        l_row[i] = sqrt(code, value.value)
        with code.count(i + 1, n) as j:
            l_row[j] = 0
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


@matrix_function("inverse_of_factor_one")
def inverse_of_factor(code: Code, suffix: str, n: I64, l: Elements, row: I64, column: I64, x: Elements) -> I64:  # noqa: E741
    """Status 0."""
    copy_triangle(suffix)(code, n, l, row, column, x)
    with code.when(n <= SMALL):
        inverse_loops(suffix)(code, n, x)
    with code.otherwise():
        call_lapack(code, "potri", suffix, letter("U"), n, x, n)
    with code.count(0, n, BLOCK) as top, code.count(0, top + BLOCK, BLOCK) as left:
        below, beside = top + BLOCK, left + BLOCK
        end = below.minimum(n)
        with code.count(top, end) as i, code.count(left, beside.minimum(i)) as j:
            x[j * n + i] = x[i * n + j]
    return I64.of(0)


@matrix_function("inverse_loops")
def inverse_loops(code: Code, suffix: str, n: I64, x: Elements) -> None:
    """The lower triangle of the inverse, where that of the factor stands."""
    element = ARITHMETIC[suffix].element
    with code.count(0, n) as j:
        corner = x.at(j * n + j)
        corner.value = element.of(1) / corner.value
    with code.count(0, n) as i:
        x_row = x.at(i * n)
        scale = x_row[i]
        with code.count(0, i) as j:
            value = code.variable(element.of(0))
            with code.count(j, i) as p:
                # of row i what lies left of p is not needed any more: it holds the inverse
                value.value = less(value.value, x_row[p], x[p * n + j])
            x_row[j] = value.value * scale
    with code.count(0, n) as i:
        x_row = x.at(i * n)
        with code.count(0, i + 1) as j:
            value = code.variable(element.of(0))
            with code.count(i, n) as p:
                each = x.at(p * n)
                value.value = less(value.value, each[i], each[j])
            x_row[j] = element.of(0) - value.value


# --- triangular systems -----------------------------------------------------------------------------------------------


@matrix_function("triangular_solve_one")
def triangular_solve(
    code: Code, suffix: str, n: I64, k: I64, lower: I64, transposed: I64, unit: I64, a: Elements, row: I64,
    column: I64, b: Elements, b_row: I64, b_column: I64, x: Elements,
) -> I64:  # fmt: skip
    """Status 1 where there is a 0 on the diagonal."""
    turned = transposed != 0
    down, along = turned.choose(column, row), turned.choose(row, column)
    forwards = lower != transposed
    first = forwards.choose(a, a.at((n - 1) * (down + along)))
    top = forwards.choose(x, x.at((n - 1) * k))
    down, along, step, b_step = (forwards.choose(s, 0 - s) for s in (down, along, k, b_row))
    for count in range(1, WRITTEN_OUT + 1):
        with code.when(n == count):
            right = forwards.choose(b, b.at(b_row * (count - 1)))
            parts = right, b_step, b_column, top, step
            code.ret(small_solve(suffix, count)(code, k, unit, first, down, along, *parts))
    fails = code.label("fails")
    with code.when(unit == 0), code.count(0, n) as i:
        fails.when(a[i * (row + column)] == 0)
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
    code: Code, suffix: str, matrix: Operand, n: I64, k: I64, lower: Bool, transposed: Bool, unit: Bool, x: Elements
) -> None:
    """Rows here are columns to Fortran: it has the transposed matrix where its rows are contiguous, and of several
    right sides solves x' a' = b'."""
    uplo, is_turned, diagonal = triangle_of(matrix, lower, transposed, unit)
    with code.when(k == 1):
        trans = is_turned.choose(letter("T"), letter("N"))
        call_routine(code, "trsv", suffix, uplo, trans, diagonal, n, matrix.at, matrix.leading, x, I64.of(1))
    with code.otherwise():
        trans, one = is_turned.choose(letter("N"), letter("T")), ARITHMETIC[suffix].element.of(1)
        letters = letter("R"), uplo, trans, diagonal
        call_routine(code, "trsm", suffix, *letters, k, n, one, matrix.at, matrix.leading, x, k)


def small_solve(suffix: str, count: int) -> Function[..., I64]:
    """A lower system of `count` rows: its status, 1 where there is a 0 on the diagonal. x: where it goes, row by row
    `step` apart, in contiguous columns; b may stand there."""
    element = ARITHMETIC[suffix].element

    @matrix_function(f"solve_{count}")
    def write(
        code: Code, suffix: str, k: I64, unit: I64, a: Elements, row: I64, column: I64, b: Elements, b_row: I64,
        b_column: I64, x: Elements, step: I64,
    ) -> I64:  # fmt: skip
        is_unit = unit != 0
        fails = code.label("fails")
        entries: dict[tuple[int, int], Any] = {}
        for i in range(count):
            for j in range(i):
                entries[i, j] = _at(a, (i, row), (j, column)).value
            place = _at(a, (i, row), (i, column))
            entries[i, i] = is_unit.choose(element.of(1), place.value)
        for i in range(count):
            fails.when(entries[i, i] == 0)
        with code.count(0, k) as c:
            values: list[Any] = []
            for i in range(count):
                value = _at(b, (i, b_row))[c * b_column]
                for p in range(i):
                    value = less(value, entries[i, p], values[p])
                values.append(value / entries[i, i])
            for i, value in enumerate(values):
                _at(x, (i, step))[c] = value
        code.ret(I64.of(0))
        code.place(fails)
        return I64.of(1)

    return write(suffix)


@matrix_function("solve_loops")
def solve_loops(
    code: Code, suffix: str, n: I64, k: I64, unit: I64, a: Elements, row: I64, column: I64, x: Elements, step: I64
) -> None:
    """The same of n rows."""
    element = ARITHMETIC[suffix].element
    is_unit = unit != 0
    with code.count(0, n) as i:
        a_row, target = a.at(i * row), x.at(i * step)
        diagonal = code.variable(element.of(1))
        with code.when(~is_unit):
            diagonal.value = a_row[i * column]
        with code.count(0, k) as c:
            value = code.variable(target[c])
            with code.count(0, i) as p:
                known = x.at(p * step)[c]
                value.value = less(value.value, a_row[p * column], known)
            target[c] = value.value / diagonal.value


# --- lu ---------------------------------------------------------------------------------------------------------------


@matrix_function("lu_one")
def lu(
    code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, packed: Elements, permutation: Indices,
    pivots: Indices,
) -> I64:  # fmt: skip
    """Status 0."""
    with code.when(n <= SMALL):
        with code.count(0, n) as i:
            source, target = a.at(i * row), packed.at(i * n)
            with code.count(0, n) as j:
                target[j] = source[j * column]
        lu_loops(suffix)(code, n, packed, pivots)
    with code.otherwise():
        with code.when(a == packed):
            transpose_square(suffix)(code, n, packed)
        with code.otherwise():
            copy(suffix)(code, n, n, a, row, column, packed, I64.of(1), n)
        lu_columns(suffix)(code, n, packed, pivots)
        transpose_square(suffix)(code, n, packed)
    order_after_swaps(code, n, permutation, n, pivots)
    return I64.of(0)


@matrix_function("lu_columns")
def lu_columns(code: Code, suffix: str, n: I64, x: Elements, pivots: Indices) -> None:
    """L and U of n contiguous columns, and the row that each row is swapped with."""
    if has_vector_products():
        with code.when(n > BLOCKED):
            lu_blocked(suffix)(code, n, n, x, n, pivots)
            code.ret()
    lu_by_lapack(code, suffix, n, n, x, n, pivots)


@matrix_function("lu_of_any_one")
def lu_of_any(
    code: Code, suffix: str, m: I64, n: I64, a: Elements, row: I64, column: I64, packed: Elements,
    permutation: Indices, matrix: Elements, pivots: Indices,
) -> I64:  # fmt: skip
    """Status 0."""
    shorter = m.minimum(n)
    with code.when(shorter > 0):
        copy(suffix)(code, m, n, a, row, column, matrix, I64.of(1), m)
        lu_by_lapack(code, suffix, m, n, matrix, m, pivots)
        copy(suffix)(code, m, n, matrix, I64.of(1), m, packed, n, I64.of(1))
    order_after_swaps(code, m, permutation, shorter, pivots)
    return I64.of(0)


@matrix_function("lu_loops")
def lu_loops(code: Code, suffix: str, n: I64, x: Elements, pivots: Indices) -> None:
    """Contiguous rows, where they stand."""
    element = ARITHMETIC[suffix].element
    absolute = external(f"llvm.fabs.{element.vectors}", element, element)
    with code.count(0, n) as k:
        x_row = x.at(k * n)
        best, most = code.variable(k), code.variable(element.of(-1))
        with code.count(k, n) as i:
            size = absolute(code, x.at(i * n)[k])
            with code.when(size > most.value):
                best.value = i
                most.value = size
        pivots[k] = best.value
        with code.when(best.value != k):
            other = x.at(best.value * n)
            with code.count(0, n) as j:
                swap(x_row.at(j), other.at(j))
        pivot = x_row[k]
        with code.when(~(pivot == 0)), code.count(k + 1, n) as i:
            row = x.at(i * n)
            factor = row[k] / pivot
            row[k] = factor
            with code.count(k + 1, n) as j:
                place = row.at(j)
                place.value = less(place.value, factor, x_row[j])


ELIMINATIONS: Mapping[str, Callable[[str], Function[..., I64]]] = {
    "cholesky": cholesky,
    "inverse_of_factor": inverse_of_factor,
    "triangular_solve": triangular_solve,
    "lu": lu,
    "lu_of_any": lu_of_any,
}
"""By routine."""
