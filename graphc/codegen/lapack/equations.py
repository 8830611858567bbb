"""Systems of bands and of constant diagonals, Schur's form and equations in it, of one matrix.

In: the suffix of a dtype. Out: functions of LLVM IR that compute one matrix (batch.py), with the letters, flags and
workspaces of `ops/linalg/equations.py`. Few diagonals are eliminated by loops; LAPACK, which calls a routine of BLAS
for each row of them, has what is wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphc.codegen.gemm.tiles import ARITHMETIC
from graphc.codegen.lapack.elimination import less, sqrt
from graphc.codegen.lapack.orthogonal import (
    call_lapack,
    copy,
    failed,
    letter,
    matrix_function,
    refuse_infinite,
    swap,
    transpose_square,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.typed import I64, NULL, Elements, Indices
from graphc.ops.linalg.factor import LONG

ONE = I64.of(1)
NARROW = 16
"""Diagonals up to which loops take less time than LAPACK."""


# --- bands ------------------------------------------------------------------------------------------------------------


@matrix_function("banded_solve_one")
def banded_solve(
    code: Code, suffix: str, d: I64, n: I64, k: I64, below: I64, transposed: I64, ab: Elements, row: I64, column: I64,
    b: Elements, b_row: I64, b_column: I64, x: Elements, packed: Elements, columns: Elements, pivots: Indices,
) -> I64:  # fmt: skip
    """Status 1 where the matrix is singular."""
    with code.when((n == 0) | (k == 0)):
        code.ret(I64.of(0))
    copy(suffix)(code, n, k, b, b_row, b_column, x, k, ONE)
    with code.when(d <= NARROW):
        is_plain = transposed == 0
        under = is_plain.choose(below, d - 1 - below)
        spread_bands(suffix)(code, d, n, under, is_plain.choose(ONE, 0), ab, row, column, packed)
        code.ret(banded_loops(suffix)(code, d, n, k, under, packed, x))
    above, wide = d - 1 - below, d + below
    copy(suffix)(code, d, n, ab, row, column, packed.at(below), ONE, wide)
    info = call_lapack(code, "gbtrf", suffix, n, n, below, above, packed, wide, pivots)
    with code.when(info != 0):
        code.ret(I64.of(1))
    trans = (transposed == 0).choose(letter("N"), letter("T"))
    _by_columns(code, suffix, n, k, x, columns, "gbtrs", trans, n, below, above, k, packed, wide, pivots)
    return I64.of(0)


def _by_columns(code: Code, suffix: str, n: I64, k: I64, x: Elements, columns: Elements, name: str, *args: Any) -> Any:
    """A routine that solves for columns, of rows: its status."""
    status = code.variable(I64.of(0))
    with code.when(k == 1):
        status.value = call_lapack(code, name, suffix, *args, x, n)
    with code.otherwise():
        copy(suffix)(code, n, k, x, k, ONE, columns, ONE, n)
        status.value = call_lapack(code, name, suffix, *args, columns, n)
        copy(suffix)(code, n, k, columns, ONE, n, x, k, ONE)
    return status.value


@matrix_function("spread_bands")
def spread_bands(
    code: Code, suffix: str, d: I64, n: I64, below: I64, is_plain: I64, ab: Elements, row: I64, column: I64,
    rows: Elements,
) -> None:  # fmt: skip
    """The rows of a banded matrix, or of its transpose, each from `below` columns before the diagonal on, of d + below
    elements."""
    element = ARITHMETIC[suffix].element
    wide, plain = d + below, is_plain != 0
    with code.count(0, n) as i:
        to_row = rows.at(i * wide)
        with code.count(0, wide) as place:
            j = i - below + place
            value = code.variable(element.of(0))
            with code.when((j >= 0) & (j < n) & (place < d)):
                at = plain.choose((d - 1 - place) * row + j * column, place * row + i * column)
                value.value = ab[at]
            to_row[place] = value.value


@matrix_function("banded_loops")
def banded_loops(code: Code, suffix: str, d: I64, n: I64, k: I64, below: I64, rows: Elements, x: Elements) -> I64:
    """Elimination with pivots, of rows as `spread_bands` makes them; x holds the right side."""
    element = ARITHMETIC[suffix].element
    absolute = external(f"llvm.fabs.{element.vectors}", element, element)
    fails = code.label("fails")
    wide = d + below
    step = wide - 1  # from an element to the one below it
    with code.count(0, n) as i:
        left, right = rows.at(i * wide + below), x.at(i * k)
        beyond = (below + 1).minimum(n - i)
        best, most = code.variable(I64.of(0)), code.variable(element.of(-1))
        with code.count(0, beyond) as down:
            size = absolute(code, left[down * step])
            with code.when(size > most.value):
                best.value = down
                most.value = size
        with code.when(best.value != 0):
            _exchange(code, d, left, left.at(best.value * step))
            _exchange(code, k, right, right.at(best.value * k))
        pivot = left.value
        fails.when(pivot == 0)
        with code.count(1, beyond) as down:
            other, its = left.at(down * step), right.at(down * k)
            factor = other.value / pivot
            with code.count(1, d) as place:
                at = other.at(place)
                at.value = less(at.value, factor, left[place])
            with code.count(0, k) as c:
                at = its.at(c)
                at.value = less(at.value, factor, right[c])
    with code.count(0, n) as done:
        i = n - 1 - done
        left, right = rows.at(i * wide + below), x.at(i * k)
        length, pivot = d.minimum(n - i), left.value
        with code.count(0, k) as c:
            value = code.variable(right[c])
            with code.count(1, length) as place:
                known = right[place * k + c]
                value.value = less(value.value, left[place], known)
            right[c] = value.value / pivot
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


def _exchange(code: Code, count: I64, left: Elements, right: Elements) -> None:
    with code.count(0, count) as place:
        swap(left.at(place), right.at(place))


@matrix_function("positive_banded_solve_one")
def positive_banded_solve(
    code: Code, suffix: str, d: I64, n: I64, k: I64, ab: Elements, row: I64, column: I64, b: Elements, b_row: I64,
    b_column: I64, x: Elements, packed: Elements, columns: Elements,
) -> I64:  # fmt: skip
    """Status 1 where the matrix is not positive definite."""
    with code.when((n == 0) | (k == 0)):
        code.ret(I64.of(0))
    copy(suffix)(code, n, k, b, b_row, b_column, x, k, ONE)
    with code.when(d <= NARROW):
        code.ret(positive_loops(suffix)(code, d, n, k, ab, row, column, packed, x))
    copy(suffix)(code, d, n, ab, row, column, packed, ONE, d)
    info = _by_columns(code, suffix, n, k, x, columns, "pbsv", letter("L"), n, d - 1, k, packed, d)
    return failed(info)


@matrix_function("positive_loops")
def positive_loops(
    code: Code, suffix: str, d: I64, n: I64, k: I64, ab: Elements, row: I64, column: I64, rows: Elements, x: Elements
) -> I64:
    """Cholesky's factor in rows of d elements, the last one on the diagonal; x holds the right side."""
    fails = code.label("fails")
    most = d - 1
    with code.count(0, n) as i:
        own, right = rows.at(i * d), x.at(i * k)
        left = most.minimum(i)  # elements before the diagonal
        with code.count(0, left) as p:
            back = left - p  # the column is i - back
            other = rows.at((i - back) * d + back)
            value = code.variable(ab[back * row + (i - back) * column])
            with code.count(most - left, most - back) as q:
                value.value = less(value.value, own[q], other[q])
            entry = value.value / rows[(i - back) * d + most]
            own[most - back] = entry
            with code.count(0, k) as c:
                at = right.at(c)
                at.value = less(at.value, entry, x[(i - back) * k + c])
        value = code.variable(ab[i * column])
        with code.count(most - left, most) as q:
            each = own[q]
            value.value = less(value.value, each, each)
        fails.when(value.value <= 0)
        root = sqrt(code, value.value)
        own[most] = root
        with code.count(0, k) as c:
            at = right.at(c)
            at.value /= root
    with code.count(0, n) as done:
        i = n - 1 - done
        own, right = rows.at(i * d), x.at(i * k)
        root = own[most]
        with code.count(0, k) as c:
            at = right.at(c)
            at.value /= root
        with code.count(1, most.minimum(i) + 1) as back:
            factor, above = own[most - back], x.at((i - back) * k)
            with code.count(0, k) as c:
                at = above.at(c)
                at.value = less(at.value, factor, right[c])
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


# --- constant diagonals -----------------------------------------------------------------------------------------------


@matrix_function("toeplitz_solve_one")
def toeplitz_solve(
    code: Code, suffix: str, n: I64, k: I64, c: Elements, c_step: I64, r: Elements, r_step: I64, b: Elements,
    b_row: I64, b_column: I64, x: Elements, columns: Elements,
) -> I64:  # fmt: skip
    """Levinson's recursion; status 1 where a leading part of the matrix is singular."""
    element = ARITHMETIC[suffix].element
    with code.when(n == 0):
        code.ret(I64.of(0))
    fails = code.label("fails")
    copy(suffix)(code, n, k, b, b_row, b_column, x, k, ONE)
    first, last = columns, columns.at(n)
    corner = c.value
    fails.when(corner == 0)
    first.value = element.of(1) / corner
    last.value = element.of(1) / corner
    with code.count(0, k) as j:
        x[j] = x[j] / corner
    with code.count(1, n) as m:
        below = c.at(m * c_step)  # the diagonals from the last row's first element on
        of_first, of_last = code.variable(element.of(0)), code.variable(element.of(0))
        with code.count(0, m) as i:
            left = below[i * (0 - c_step)]
            of_first.value = _more(of_first.value, left, first[i])
            right = r[(i + 1) * r_step]
            of_last.value = _more(of_last.value, right, last[i])
        rest = element.of(1) - of_first.value * of_last.value
        fails.when(rest == 0)
        scale = element.of(1) / rest
        first[m] = 0
        with code.count(0, m + 1) as done:
            i = m - done
            here, before = first[i], code.variable(element.of(0))
            with code.when(i > 0):
                before.value = last[i - 1]
            first[i] = less(here, of_first.value, before.value) * scale
            last[i] = less(before.value, of_last.value, here) * scale
        with code.count(0, k) as j:
            value = code.variable(x[m * k + j])
            with code.count(0, m) as i:
                left = below[i * (0 - c_step)]
                value.value = less(value.value, left, x[i * k + j])
            x[m * k + j] = 0
            with code.count(0, m + 1) as i:
                at = x.at(i * k + j)
                at.value = _more(at.value, value.value, last[i])
    code.ret(I64.of(0))
    code.place(fails)
    return I64.of(1)


def _more(total: Any, left: Any, right: Any) -> Any:
    """total + left * right, rounded once where the processor can."""
    return total.apply("fadd contract", left.apply("fmul contract", right))


# --- equations of matrices --------------------------------------------------------------------------------------------


@matrix_function("schur_one")
def schur(
    code: Code, suffix: str, n: I64, a: Elements, row: I64, column: I64, triangle: Elements, vectors: Elements,
    values: Elements, work: Elements,
) -> I64:  # fmt: skip
    """Status 1 where it does not converge, 2 where an element is not finite."""
    element = ARITHMETIC[suffix].element
    with code.when(n == 0):
        code.ret(I64.of(0))
    copy(suffix)(code, n, n, a, row, column, triangle, ONE, n)
    refuse_infinite(code, element, triangle, n * n)
    ordered, imaginary = code.local(I64), values.at(n)
    size = n * LONG
    operands = NULL, n, triangle, n, ordered, values, imaginary, vectors, n, work, size, NULL
    status = call_lapack(code, "gees", suffix, letter("V"), letter("N"), *operands)
    transpose_square(suffix)(code, n, triangle)
    transpose_square(suffix)(code, n, vectors)
    return failed(status)


@matrix_function("triangular_sylvester_one")
def triangular_sylvester(
    code: Code, suffix: str, m: I64, n: I64, a_turned: I64, b_turned: I64, a: Elements, a_row: I64, a_column: I64,
    b: Elements, b_row: I64, b_column: I64, c: Elements, c_row: I64, c_column: I64, x: Elements, left: Elements,
    right: Elements, whole: Elements,
) -> I64:  # fmt: skip
    """Status 1 where there is no one solution."""
    element = ARITHMETIC[suffix].element
    with code.when((m == 0) | (n == 0)):
        code.ret(I64.of(0))
    copy(suffix)(code, m, m, a, a_row, a_column, left, ONE, m)
    copy(suffix)(code, n, n, b, b_row, b_column, right, ONE, n)
    copy(suffix)(code, m, n, c, c_row, c_column, whole, ONE, m)
    scale = code.local(element)
    letters = [(turned == 0).choose(letter("N"), letter("T")) for turned in (a_turned, b_turned)]
    status = call_lapack(code, "trsyl", suffix, *letters, ONE, m, n, left, m, right, n, whole, m, scale)
    with code.count(0, m) as i, code.count(0, n) as j:
        x[i * n + j] = whole[j * m + i] / scale.load(element)
    return failed(status)


EQUATIONS: Mapping[str, Callable[[str], Function[..., I64]]] = {
    "banded_solve": banded_solve,
    "positive_banded_solve": positive_banded_solve,
    "toeplitz_solve": toeplitz_solve,
    "schur": schur,
    "triangular_sylvester": triangular_sylvester,
}
"""By routine."""
