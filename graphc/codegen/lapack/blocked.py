"""Factorisations of larger matrices by large products, which our own pool shares out.

In: the suffix of a dtype. Out: functions of LLVM IR for one matrix: `cholesky_blocked`, `solve_blocked`, `lu_blocked`.
A matrix of more than `BASE` rows is halved, the halves again; LAPACK and BLAS get blocks of up to `BASE`, on one
thread, and all between is a product of matrices (codegen/gemm/blocked.py). Of a Cholesky factorisation of 1000 rows
nine tenths are.

    cholesky [A11     ]   L11 = cholesky(A11);  L21 = A21 L11'^-1;  A22 -= L21 L21';  L22 = cholesky(A22)
             [A21  A22]

What is divided, and where, follows from sizes alone, so the bits of a result are the same for any number of threads.
Source: Gustavson, Recursion leads to automatic variable blocking for dense linear-algebra algorithms, 1997.
"""

from __future__ import annotations

from functools import cache

from graphc.codegen.gemm.api import ENTRIES
from graphc.codegen.gemm.context import ENTRY, SETTING, Words, find, share
from graphc.codegen.gemm.dispatch import Operand, blas_routine, call_blas
from graphc.codegen.gemm.tiles import ARITHMETIC, Matrix
from graphc.codegen.lapack.fortran import call_lapack, call_routine, letter, matrix_function, widen
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.typed import F64, I64, NULL, Bool, Ptr

BASE = 96
"""Rows and columns up to which LAPACK and BLAS take less time on one thread than halves and a product do."""
RIGHT_SIDES = 64
"""Right sides that a thread takes at a time."""
WORK = 2.0
"""The cost of a multiplication in a triangular system, in units of work (threads/chunking.py)."""
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
    code: Code, suffix: str, triangle: I64, m: I64, n: I64, k: I64, a: Ptr, a_row: I64, a_col: I64, b: Ptr, b_row: I64,
    b_col: I64, c: Ptr, c_row: I64, c_col: I64,
) -> None:  # fmt: skip
    """c -= a b. triangle: as large products have it."""
    one, minus = ARITHMETIC[suffix].kind.of(1), ARITHMETIC[suffix].kind.of(-1)
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


@matrix_function("solve_range")
def solve_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Solves for some right sides, by BLAS. Rows that are contiguous are columns to Fortran: it has the transposed
    matrix then, and of right sides in rows it solves x' a' = b'."""
    w, kind = system_words().read(context), ARITHMETIC[suffix].kind
    matrix = Operand(Matrix(w["a"], w["row"], w["column"]), w["n"], w["n"])
    is_lower, is_transposed = w["lower"] != 0, w["transposed"] != 0
    uplo = matrix.is_plain.choose(~is_lower, is_lower).choose(letter("L"), letter("U"))
    is_turned = matrix.is_plain.choose(~is_transposed, is_transposed)
    diagonal = (w["unit"] != 0).choose(letter("U"), letter("N"))
    in_rows = w["x_column"] == 1
    one = kind.of(1)
    with code.count(begin, end, RIGHT_SIDES) as first:
        rest = end - first
        count = rest.minimum(RIGHT_SIDES)
        x = w["x"].at(first * w["x_column"], kind)
        with code.when(in_rows):
            letters = letter("R"), uplo, is_turned.choose(letter("N"), letter("T")), diagonal
            call_routine(code, "trsm", suffix, *letters, count, w["n"], one, matrix.at, matrix.leading, x, w["step"])
        with code.otherwise():
            letters = letter("L"), uplo, is_turned.choose(letter("T"), letter("N")), diagonal
            operands = matrix.at, matrix.leading, x, w["x_column"]
            call_routine(code, "trsm", suffix, *letters, w["n"], count, one, *operands)


@matrix_function("solve_blocked")
def solve_blocked(
    code: Code, suffix: str, n: I64, k: I64, lower: I64, transposed: I64, unit: I64, a: Ptr, row: I64, column: I64,
    x: Ptr, step: I64, x_column: I64,
) -> None:  # fmt: skip
    """a x = b, or a' x = b, for a triangular matrix of n rows, in whose rows or columns numbers are contiguous, and k
    right sides, which x takes the place of, in contiguous rows or columns too."""
    kind = ARITHMETIC[suffix].kind
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
    corner, below = a.at(half * (row + column), kind), x.at(half * step, kind)

    def solve(is_first: Bool) -> None:
        with code.when(is_first):
            solve_blocked(suffix)(code, half, k, *flags, a, row, column, x, step, x_column)
        with code.otherwise():
            solve_blocked(suffix)(code, rest, k, *flags, corner, row, column, below, step, x_column)

    solve(forwards)
    # The block between the halves, as the system has it.
    down, along = turned.choose(column, row), turned.choose(row, column)
    block = a.at(half * forwards.choose(down, along), kind)
    m, depth = forwards.choose(rest, half), forwards.choose(half, rest)
    known, wanted = forwards.choose(x, below), forwards.choose(below, x)
    none = I64.of(0)
    subtract(suffix)(code, none, m, k, depth, block, down, along, known, step, x_column, wanted, step, x_column)
    solve(~forwards)


# Cholesky's factors. --------------------------------------------------------------------------------------------------


@matrix_function("cholesky_blocked")
def cholesky_blocked(code: Code, suffix: str, n: I64, a: Ptr, step: I64) -> I64:
    """The factor of a matrix in contiguous rows, in its lower triangle; what is above is left undefined. Status 1 where
    the matrix is not positive definite."""
    kind = ARITHMETIC[suffix].kind
    failed, one = code.label("failed"), I64.of(1)
    with code.when(n <= BASE):
        # A lower triangle in rows is an upper one in columns.
        status = call_lapack(code, "potrf", suffix, letter("U"), n, a, step)
        code.ret((status == 0).choose(I64.of(0), 1))
    half = half_of(n)
    rest = n - half
    below = a.at(half * step, kind)
    corner = below.at(half, kind)
    failed.when(cholesky_blocked(suffix)(code, half, a, step) != 0)
    flags = one, I64.of(0), I64.of(0)
    solve_blocked(suffix)(code, half, rest, *flags, a, step, one, below, one, step)
    subtract(suffix)(code, one, rest, rest, half, below, step, one, below, one, step, corner, step, one)
    code.ret(cholesky_blocked(suffix)(code, rest, corner, step))
    code.place(failed)
    return one


# LU. ------------------------------------------------------------------------------------------------------------------


@matrix_function("swap_rows")
def swap_rows(code: Code, suffix: str, n: I64, x: Ptr, step: I64, count: I64, pivots: Ptr) -> None:
    """Swaps each of the first rows with its pivot's, in n columns `step` apart."""
    kind = ARITHMETIC[suffix].kind
    with code.count(0, n) as j:
        column = x.at(j * step, kind)
        with code.count(0, count) as i:
            here, there = column.at(i, kind), column.at(pivots.at(i, I64).load(I64), kind)
            value, other = here.load(kind), there.load(kind)
            here.store(other)
            there.store(value)


@matrix_function("lu_blocked")
def lu_blocked(code: Code, suffix: str, m: I64, n: I64, x: Ptr, step: I64, pivots: Ptr) -> None:
    """L and U of m rows and no more columns, in contiguous columns; the row that each of n is swapped with."""
    kind = ARITHMETIC[suffix].kind
    with code.when(n <= PANEL):
        call_lapack(code, "getrf", suffix, m, n, x, step, pivots)
        widen(code, pivots, n)
        with code.count(0, n) as i:
            place = pivots.at(i, I64)
            place.store(place.load(I64) - 1)
        code.ret()
    half, one = half_of(n), I64.of(1)
    rest = n - half
    right = x.at(half * step, kind)
    below, corner, others = x.at(half, kind), right.at(half, kind), pivots.at(half, I64)
    lu_blocked(suffix)(code, m, half, x, step, pivots)
    swap_rows(suffix)(code, rest, right, step, half, pivots)
    flags = one, I64.of(0), one
    solve_blocked(suffix)(code, half, rest, *flags, x, one, step, right, one, step)
    subtract(suffix)(code, I64.of(0), m - half, rest, half, below, one, step, right, one, step, corner, one, step)
    lu_blocked(suffix)(code, m - half, rest, corner, step, others)
    swap_rows(suffix)(code, half, below, step, rest, others)
    with code.count(0, rest) as i:
        place = others.at(i, I64)
        place.store(place.load(I64) + half)
