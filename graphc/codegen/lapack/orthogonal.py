"""Calls of LAPACK; QR, eigenvalues and singular values of one matrix by them.

In: the suffix of a dtype. Out: functions of LLVM IR that compute one matrix (batch.py), with the letters, flags and
workspaces of `ops/linalg/factor.py`. What LAPACK gets is a copy with contiguous columns: its results are then those
that NumPy has, to the signs that no definition tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from graphc.codegen.gemm.tiles import ARITHMETIC
from graphc.codegen.lapack import ENTRIES, LETTERS, WIDTH
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, R, external, functions
from graphc.codegen.llvm.typed import I8, I32, I64, Bool, Elements, Indices, Ptr, Value
from graphc.ops.linalg import factor

# --- calls of LAPACK's and BLAS's routines, and copies of matrices for them -------------------------------------------
# In: sizes, letters and addresses. Out: calls through the table of addresses behind the symbol gc_lapack; functions
# that copy, clear and transpose matrices.

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


def refuse_infinite(code: Code, element: Any, a: Elements, count: I64) -> None:
    """Leave with status 2 where an element is not finite: LAPACK would go on and on."""
    absolute = external(f"llvm.fabs.{element.vectors}", element, element)
    with code.count(0, count) as i, code.when(~(absolute(code, a[i]) < float("inf"))):
        code.ret(I64.of(2))


def widen(code: Code, integers: Indices, count: I64) -> None:
    """Integers that LAPACK has written are of 64 bits then."""
    with code.when(TABLE(code).at(ENTRIES.index(WIDTH), Ptr).load(I64) == 4), code.count(0, count) as done:
        place = count - done - 1
        integers[place] = integers.at(place, I32).load(I32).to(I64)


def matrix_function(name: str) -> Callable[[Callable[..., R]], Callable[[str], Function[..., R]]]:
    """Makes functions of matrices, one for each suffix of a dtype."""
    return functions(name, "noinline optsize", lambda suffix: ARITHMETIC[suffix].element)


COPY = external("llvm.memcpy.p0.p0.i64", None, Ptr, Ptr, I64, Bool)
FILL = external("llvm.memset.p0.i64", None, Ptr, I8, I64, Bool)
BLOCK = 16
"""Rows and columns that are copied at a time, so that what is read or written across the rows stays in cache."""
WHOLE = 8
"""Elements of a row from which on it is copied as one."""


@matrix_function("copy")
def copy(
    code: Code, suffix: str, m: I64, n: I64, a: Elements, a_row: I64, a_col: I64, c: Elements, c_row: I64, c_col: I64
) -> None:
    """A matrix of m rows and n columns, copied."""
    with code.when((a_col == 1) & (c_col == 1) & (n > WHOLE)):
        with code.count(0, m) as i:
            COPY(code, c.at(i * c_row), a.at(i * a_row), n * ARITHMETIC[suffix].align, Bool.of(False))
        code.ret()
    with code.count(0, m, BLOCK) as row:
        below = row + BLOCK
        end = below.minimum(m)
        with code.count(0, n, BLOCK) as column:
            beside = column + BLOCK
            last = beside.minimum(n)
            with code.count(row, end) as i:
                source, target = a.at(i * a_row), c.at(i * c_row)
                with code.count(column, last) as j:
                    target[j * c_col] = source[j * a_col]


@matrix_function("copy_triangle")
def copy_triangle(code: Code, suffix: str, n: I64, a: Elements, a_row: I64, a_col: I64, c: Elements) -> None:
    """The lower triangle, and zeros above it, in contiguous rows."""
    size = ARITHMETIC[suffix].align
    is_plain = a_col == 1
    with code.count(0, n) as i:
        source, target, length = a.at(i * a_row), c.at(i * n), i + 1
        with code.when(is_plain), code.when(source != target):
            COPY(code, target, source, length * size, Bool.of(False))
        with code.otherwise(), code.count(0, length) as j:
            target[j] = source[j * a_col]
        FILL(code, target.at(length), I8.of(0), (n - length) * size, Bool.of(False))


@matrix_function("clear_above")
def clear_above(code: Code, suffix: str, n: I64, c: Elements) -> None:
    """Zeros above the diagonal of contiguous rows."""
    _element, size = ARITHMETIC[suffix].element, ARITHMETIC[suffix].align
    with code.count(0, n) as i:
        FILL(code, c.at(i * n + i + 1), I8.of(0), (n - i - 1) * size, Bool.of(False))


@matrix_function("transpose_square")
def transpose_square(code: Code, suffix: str, n: I64, a: Elements) -> None:
    """A square matrix transposed where it stands."""
    with code.count(0, n, BLOCK) as row:
        below = row + BLOCK
        end = below.minimum(n)
        with code.count(0, end, BLOCK) as column:
            beside = column + BLOCK
            with code.count(row, end) as i:
                last = beside.minimum(i)
                with code.count(column, last) as j:
                    swap(a.at(i * n + j), a.at(j * n + i))


def swap(here: Elements, there: Elements) -> None:
    """Exchanges two numbers."""
    value, other = here.value, there.value
    here.value = other
    there.value = value


ONE, NOTHING = I64.of(1), I64.of(0)
Make: TypeAlias = "Callable[[str], Function[..., I64]]"


def _identity(code: Code, element: Any, n: I64, a: Elements) -> None:
    with code.count(0, n) as i, code.count(0, n) as j:
        a[i * n + j] = (i == j).choose(element.of(1), element.of(0))


# --- qr ---------------------------------------------------------------------------------------------------------------


def qr(suffix: str, complete: bool) -> Function[..., I64]:
    """Q and R of a matrix of m rows and n columns; status 0."""
    element = ARITHMETIC[suffix].element

    @matrix_function("qr_complete_one" if complete else "qr_one")
    def write(
        code: Code, suffix: str, m: I64, n: I64, a: Elements, row: I64, column: I64, q: Elements, r: Elements,
        matrix: Elements, scales: Elements, work: Elements,
    ) -> I64:  # fmt: skip
        done = code.label("done")
        done.when(m == 0)
        shorter = m.minimum(n)
        columns = m if complete else shorter
        size = (m < n).choose(n, m) * factor.WIDE + 1
        copy(suffix)(code, m, n, a, row, column, matrix, ONE, m)
        with code.when(shorter > 0):
            call_lapack(code, "geqrf", suffix, m, n, matrix, m, scales, work, size)
        with code.count(0, columns) as i, code.count(0, n) as j:
            value = code.variable(element.of(0))
            with code.when(i <= j):
                value.value = matrix[j * m + i]
            r[i * n + j] = value.value
        done.when(columns == 0)
        call_lapack(code, "orgqr", suffix, m, columns, shorter, matrix, m, scales, work, size)
        copy(suffix)(code, m, columns, matrix, ONE, m, q, columns, ONE)
        code.place(done)
        return I64.of(0)

    return write(suffix)


@matrix_function("qr_order_one")
def qr_order(
    code: Code, suffix: str, m: I64, n: I64, a: Elements, row: I64, column: I64, order: Indices, matrix: Elements,
    marks: Indices, scales: Elements, work: Elements,
) -> I64:  # fmt: skip
    """The order of columns of QR with pivots; status 0."""
    with code.count(0, n) as i:
        order[i] = i
        marks[i] = 0
    with code.when(m.minimum(n) > 0):
        copy(suffix)(code, m, n, a, row, column, matrix, ONE, m)
        size = (n + 1) * (factor.WIDE + 2) + 1
        call_lapack(code, "geqp3", suffix, m, n, matrix, m, marks, scales, work, size)
        widen(code, marks, n)
        with code.count(0, n) as i:
            order[i] = marks[i] - 1
    return I64.of(0)


# --- symmetric matrices -----------------------------------------------------------------------------------------------


@matrix_function("eigh_one")
def eigh(
    code: Code, suffix: str, n: I64, lower: I64, a: Elements, row: I64, column: I64, w: Elements, v: Elements,
    work: Elements, integers: Indices,
) -> I64:  # fmt: skip
    """Status 1 where it does not converge."""
    status = _eigenvalues(code, suffix, True, n, lower != 0, a, row, column, w, v, work, integers)
    transpose_square(suffix)(code, n, v)
    return status


@matrix_function("eigvalsh_one")
def eigvalsh(
    code: Code, suffix: str, n: I64, lower: I64, a: Elements, row: I64, column: I64, w: Elements, matrix: Elements,
    work: Elements, integers: Indices,
) -> I64:  # fmt: skip
    """The same without the vectors."""
    return _eigenvalues(code, suffix, False, n, lower != 0, a, row, column, w, matrix, work, integers)


def _eigenvalues(
    code: Code, suffix: str, vectors: bool, n: I64, lower: Bool, a: Elements, row: I64, column: I64, w: Elements,
    v: Elements, work: Elements, integers: Indices,
) -> I64:  # fmt: skip
    status = code.variable(I64.of(0))
    with code.when(n > 0):
        copy(suffix)(code, n, n, a, row, column, v, ONE, n)
        job, triangle = letter("V" if vectors else "N"), lower.choose(letter("L"), letter("U"))
        size, integers_size = (n * n * 2 + n * 40 + 1, n * 5 + 3) if vectors else (n * 36 + 1, n + 1)
        info = call_lapack(code, "syevd", suffix, job, triangle, n, v, n, w, work, size, integers, integers_size)
        status.value = failed(info)
    return status.value


# --- svd --------------------------------------------------------------------------------------------------------------


def svd(suffix: str, full: bool) -> Function[..., I64]:
    """Status 1 where it does not converge."""
    element = ARITHMETIC[suffix].element

    @matrix_function("svd_full_one" if full else "svd_one")
    def write(
        code: Code, suffix: str, m: I64, n: I64, a: Elements, row: I64, column: I64, u: Elements, s: Elements,
        vh: Elements, matrix: Elements, left: Elements, right: Elements, work: Elements, integers: Indices,
    ) -> I64:  # fmt: skip
        shorter = m.minimum(n)
        columns, rows = (m, n) if full else (shorter, shorter)
        with code.when(shorter == 0):
            if full:
                _identity(code, element, m, u)
                _identity(code, element, n, vh)
            code.ret(I64.of(0))
        copy(suffix)(code, m, n, a, row, column, matrix, ONE, m)
        size = shorter * shorter * 4 + (m + n) * factor.LONG
        job = letter("A" if full else "S")
        operands = matrix, m, s, left, m, right, rows
        status = call_lapack(code, "gesdd", suffix, job, m, n, *operands, work, size, integers)
        copy(suffix)(code, m, columns, left, ONE, m, u, columns, ONE)
        copy(suffix)(code, rows, n, right, ONE, rows, vh, n, ONE)
        return failed(status)

    return write(suffix)


@matrix_function("svdvals_one")
def svdvals(
    code: Code, suffix: str, m: I64, n: I64, a: Elements, row: I64, column: I64, s: Elements, matrix: Elements,
    work: Elements, integers: Indices,
) -> I64:  # fmt: skip
    """The same without the vectors."""
    with code.when(m.minimum(n) == 0):
        code.ret(I64.of(0))
    copy(suffix)(code, m, n, a, row, column, matrix, ONE, m)
    size = (m + n) * factor.LONG
    operands = matrix, m, s, matrix, m, matrix, n
    status = call_lapack(code, "gesdd", suffix, letter("N"), m, n, *operands, work, size, integers)
    return failed(status)


# --- matrices of any kind ---------------------------------------------------------------------------------------------


@matrix_function("eig_one")
def eig(
    code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, wr: Elements, wi: Elements, vr: Elements,
    vi: Elements, matrix: Elements, vectors: Elements, work: Elements,
) -> I64:  # fmt: skip
    """Status 1 where it does not converge, 2 where an element is not finite."""
    element = ARITHMETIC[suffix].element
    status = _general(code, suffix, "V", n, a, row, column, wr, wi, matrix, vectors, work)
    with code.count(0, n) as j:
        # The parts of a pair stand in columns beside each other, and belong to both.
        is_first = code.variable(I64.of(0))
        with code.count(0, j) as before:
            is_pair = ~(wi[before] == 0)
            is_first.value = is_pair.choose(1 - is_first.value, I64.of(0))
        is_pair, is_second = ~(wi[j] == 0), is_first.value == 1
        real = (is_pair & is_second).choose(j - 1, j)
        imaginary = (is_pair & ~is_second).choose(j + 1, j)
        sign = is_second.choose(element.of(-1), element.of(1))
        with code.count(0, n) as i:
            vr[i * n + j] = vectors[real * n + i]
            part = code.variable(element.of(0))
            with code.when(is_pair):
                part.value = vectors[imaginary * n + i] * sign
            vi[i * n + j] = part.value
    return status


@matrix_function("eigvals_one")
def eigvals(
    code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, wr: Elements, wi: Elements, matrix: Elements,
    work: Elements,
) -> I64:  # fmt: skip
    """The same without the vectors."""
    return _general(code, suffix, "N", n, a, row, column, wr, wi, matrix, matrix, work)


def _general(
    code: Code, suffix: str, job: str, n: I64, a: Elements, row: I64, column: I64, wr: Elements, wi: Elements,
    matrix: Elements, vectors: Elements, work: Elements,
) -> I64:  # fmt: skip
    element = ARITHMETIC[suffix].element
    with code.when(n == 0):
        code.ret(I64.of(0))
    copy(suffix)(code, n, n, a, row, column, matrix, ONE, n)
    refuse_infinite(code, element, matrix, n * n)
    size = n * factor.LONG
    operands = n, matrix, n, wr, wi, matrix, n, vectors, n, work, size
    return failed(call_lapack(code, "geev", suffix, letter("N"), letter(job), *operands))


ORTHOGONAL: Mapping[str, Make] = {
    "qr": partial(qr, complete=False),
    "qr_complete": partial(qr, complete=True),
    "qr_order": qr_order,
    "eigh": eigh,
    "eigvalsh": eigvalsh,
    "svd": partial(svd, full=False),
    "svd_full": partial(svd, full=True),
    "svdvals": svdvals,
    "eig": eig,
    "eigvals": eigvals,
}
"""By routine."""
