"""Matrix products: the definitions behind PROTOTYPES.

In: the names that are called. Out: functions of LLVM IR. Each function of floats decides at run time between the loops
of small.py, the packed products of blocked.py, and BLAS; the latter two are reached through the table of addresses
behind the symbol gc_blas. Integers have the loops only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from graphc.codegen.gemm import ENTRIES, PROTOTYPES, VECTOR_FINDERS, VECTORS, tiles
from graphc.codegen.gemm.gemv import VectorProduct, vector_function, vector_product
from graphc.codegen.gemm.small import are_few, batch, few, loops
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.target import has_avx512, has_vector_products
from graphc.codegen.llvm.typed import F64, I8, I64, NULL, Bool, NoAlias, Ptr, Value
from graphc.codegen.threads.pool import has_threads
from graphc.startup.record import replace

LETTERS = {"f64": "d", "f32": "s"}
"""BLAS's letters for the dtypes it has."""
SMALL_GEMM = 64**3
"""Multiplications up to which loops beat OpenBLAS, which packs its operands first; from there it starts its threads."""
BLOCKED = 2**20
"""Multiplications from which large products (blocked.py) are as fast on one thread as loops."""
BLOCKED_SIDE = 16
"""Rows and columns of the result from which they are: whole panels, or two registers where that is more."""
BLOCKED_THIN = 2**23
"""The same where only its rows or only its columns are as many: of the panels of the other operand lanes are left over.
Where neither are, loops win at every size."""
BLAS_FROM = 2**27
"""Multiplications from which BLAS computes what it takes where there are 16 registers: OpenBLAS is up to half as fast
again as blocks there, and the threads that it leaves spinning weigh less beside such a product."""
ENDLESS = 2**62
"""More multiplications than any product has."""
SMALL_ANY = 2**15
"""The same where neither the rows nor the columns of the result are contiguous, which no BLAS takes."""
SMALL_GEMV = 400_000
"""Elements of a matrix up to which loops beat OpenBLAS at a vector where the pool has no threads: from there it starts
its own."""
THIN = 4
"""Summed size up to which loops win at every size: nothing is used again that packing could help."""
FEW = 4
"""Rows up to which loops win, and the multiplications up to which that was seen."""
FEW_GEMM = 2**23
SYMMETRIC = 64
"""Rows from which a a' costs less as one triangle, then mirrored."""
MIRRORED = 32
"""Side of the blocks that are mirrored at a time, so that what is read down columns stays in cache."""


Element: TypeAlias = Any
"""A number of the dtype that a function is made for."""


def functions(names: Iterable[str]) -> list[Function[..., Any]]:
    """These functions of PROTOTYPES. They refer to the symbols of `blas_symbols`, and to the settings of products
    (threads/settings.py); `with_callees` names the objects that go together."""
    functions: list[Function[..., Any]] = []
    for name in sorted(PROTOTYPES.keys() & set(names)):
        routine, _, suffix = name.removeprefix("gc_").rpartition("_")
        if routine == "batched_gemm":
            functions.append(batch(suffix, BLOCKED if has_vector_products() else SMALL_GEMM))
        else:
            functions.append(gemm(suffix) if routine == "gemm" else gemv(suffix))
    return functions


# Layouts that BLAS takes. ---------------------------------------------------------------------------------------------


def rows_fit(rows: I64, columns: I64, row: I64, column: I64) -> Bool:
    """True if a matrix of `rows` by `columns` has contiguous rows no nearer than their length. Strides of one
    row or column do not count."""
    return ((column == 1) | (columns == 1)) & ((row >= columns) | (rows == 1))


class Operand:
    """A matrix as BLAS is told of it. is_plain: whether its rows are contiguous, else its columns are, where it fits.
    leading: from one to the next."""

    def __init__(self, matrix: tiles.Matrix, rows: I64, columns: I64) -> None:
        self.at = matrix.at
        self.is_plain = rows_fit(rows, columns, matrix.row, matrix.column)
        self.fits = self.is_plain | rows_fit(columns, rows, matrix.column, matrix.row)
        plain, turned = (rows == 1).choose(columns, matrix.row), (columns == 1).choose(rows, matrix.column)
        self.leading = self.is_plain.choose(plain, turned)

    def letter(self, plain: str, turned: str) -> I8:
        return self.is_plain.choose(I8.of(ord(plain)), I8.of(ord(turned)))


def in_range(*sizes: I64) -> Bool:
    """True if a BLAS of 32-bit integers can be told all of these."""
    first, *others = sizes
    for size in others:
        first |= size
    return ~first.above(2**31 - 1)


def blas_routine(code: Code, suffix: str, name: str) -> Ptr:
    """The address of a routine of BLAS; null where there is none."""
    return tiles.ENTRY(code).at(ENTRIES.index(LETTERS[suffix] + name), Ptr).load(Ptr)


def call_blas(code: Code, routine: Ptr, *args: Value) -> None:
    """Numbers and letters go by address, sizes as 64-bit integers: where BLAS has 32-bit ones it reads the low half,
    which is the number, as none is above 2**31 - 1 (little-endian). The lengths of letters, which Fortran passes, come
    last."""
    letters = sum(isinstance(arg, I8) for arg in args)
    routine.call(None, *(code.address(arg) for arg in args), *[I64.of(1)] * min(letters, 2))


# Products of matrices. ------------------------------------------------------------------------------------------------


@tiles.product_function("gc_gemm", returns=I64)
def gemm(code: Code, suffix: str, p: tiles.Product) -> I64:
    """gc_gemm_<t>."""
    done = code.label("done")
    done.when((p.m < 1) | (p.n < 1))
    if suffix in LETTERS and has_avx512():
        with code.when(are_few(p)):
            few(suffix)(code, *tiles.arguments(p, ("c_col",)))
            code.ret(I64.of(0))
    multiply_vector(code, suffix, p)
    if suffix in LETTERS:
        by_loops = code.label("loops")
        is_symmetric = choose(code, suffix, p, by_loops, done)
        multiply_by_blas(code, suffix, p, is_symmetric, by_loops, done)
        code.place(by_loops)
    loops(suffix)(code, *tiles.arguments(p))
    code.place(done)
    return I64.of(0)


def multiply_vector(code: Code, suffix: str, p: tiles.Product) -> None:
    """Multiply by a vector where one operand is one: the product is found at first need; else loops serve."""
    is_column = p.n == 1
    with code.when(is_column | (p.m == 1)):
        vector = find_vector(suffix)(code)
        with code.when(vector != NULL):
            with code.when(is_column):
                operands = p.m, p.k, p.alpha, p.a.at, p.a.row, p.a.column, p.b.at, p.b.row, p.beta, p.c.at, p.c.row
                code.ret(vector.call(I64, *operands))
            operands = p.n, p.k, p.alpha, p.b.at, p.b.column, p.b.row, p.a.at, p.a.column, p.beta, p.c.at, p.c.column
            code.ret(vector.call(I64, *operands))


@tiles.element_function("vector_product", "noinline")
def find_vector(code: Code, suffix: str) -> Ptr:
    """The product with a vector; null where there is none."""
    return tiles.find(code, tiles.SETTING(code), VECTORS[suffix], VECTOR_FINDERS[suffix])


def choose(code: Code, suffix: str, p: tiles.Product, by_loops: Label, done: Label) -> Bool:
    """Goes to `by_loops` where the product is small, and computes it as a large one where it is that. Else says whether
    it is a matrix times its own transpose, of which only a triangle is to be computed."""
    work = p.m.to(F64) * p.n.to(F64) * p.k.to(F64)
    is_along, is_down = p.c.column == 1, p.c.row == 1
    is_direct = is_along | is_down
    at = tiles.ENTRY(code).at(ENTRIES.index(f"blocks {suffix}"), Ptr)
    known = at.load(Ptr, order="acquire", align=8)
    finder = tiles.ENTRY(code).at(ENTRIES.index(f"find blocks {suffix}"), Ptr).load(Ptr, order="acquire", align=8)
    has_blocks = (known != NULL) | (finder != NULL)
    wide = I64.of(max(BLOCKED_SIDE, 2 * tiles.lanes_of(suffix)))
    has_rows = p.m >= is_along.choose(I64.of(BLOCKED_SIDE), wide)
    has_columns = p.n >= is_along.choose(wide, BLOCKED_SIDE)
    by_sides = (has_rows & has_columns).choose(F64.of(BLOCKED), BLOCKED_THIN)
    by_blocks = (has_rows | has_columns).choose(by_sides, ENDLESS)
    limit = is_direct.choose(has_blocks.choose(by_blocks, SMALL_GEMM), SMALL_ANY)
    is_thin = (p.k <= THIN) & is_direct
    is_few = ((is_along & (p.m <= FEW)) | (is_down & (p.n <= FEW))) & (work <= FEW_GEMM)
    is_void = p.alpha == 0  # BLAS does not look at a and b then, so that their NaN would be lost
    by_loops.when((work <= limit) | is_few | is_thin | is_void)
    is_same = (p.a.at == p.b.at) & (p.a.row == p.b.column) & (p.a.column == p.b.row)
    is_fresh: Bool = p.beta == 0
    is_symmetric = is_same & (p.m == p.n) & is_fresh & (p.m >= SYMMETRIC)
    by_blas, blocks = code.label("blas"), code.variable(known)
    by_blas.unless((has_rows | has_columns) & has_blocks)
    if not has_avx512():
        routine = blas_routine(code, suffix, "gemm")
        fits = Operand(p.a, p.m, p.k).fits & Operand(p.b, p.k, p.n).fits & is_direct
        by_blas.when((work > BLAS_FROM) & fits & (routine != NULL))
    with code.when(known == NULL):
        finder.call(None)
        blocks.value = at.load(Ptr, order="acquire", align=8)
        by_blas.when(blocks.value == NULL)
    is_half = is_symmetric & is_along
    status = blocks.value.call(I64, tiles.SETTING(code), is_half.to(I64, signed=False), *tiles.arguments(p))
    by_blas.when(status != 0)
    with code.when(is_half):
        mirror(suffix)(code, p.m, p.c.at, p.c.row)
    done.go()
    code.place(by_blas)
    return is_symmetric


def multiply_by_blas(
    code: Code, suffix: str, p: tiles.Product, is_symmetric: Bool, by_loops: Label, done: Label
) -> None:
    """Goes to `by_loops` where BLAS does not take the layouts. Rows here are columns to Fortran: it computes the
    transposed product, b before a."""
    with code.when(is_symmetric):
        done.when(symmetric(suffix)(code, p.m, p.k, p.alpha, p.a.at, p.a.row, p.a.column, p.c.at, p.c.row, p.c.column))
    routine = blas_routine(code, suffix, "gemm")
    by_loops.when(routine == NULL)
    with code.when(~rows_fit(p.m, p.n, p.c.row, p.c.column)):
        by_loops.unless(rows_fit(p.n, p.m, p.c.column, p.c.row))
        turned = replace(p, m=p.n, n=p.m, a=p.b.turned(), b=p.a.turned(), c=p.c.turned())
        code.ret(gemm(suffix)(code, *tiles.arguments(turned)))
    a, b = Operand(p.a, p.m, p.k), Operand(p.b, p.k, p.n)
    by_loops.unless(a.fits & b.fits & in_range(p.m, p.n, p.k, a.leading, b.leading, p.c.row))
    letters = b.letter("N", "T"), a.letter("N", "T")
    operands = b.at, b.leading, a.at, a.leading
    call_blas(code, routine, *letters, p.n, p.m, p.k, p.alpha, *operands, p.beta, p.c.at, p.c.row)
    done.go()


@tiles.element_function("symmetric", "noinline optsize")
def symmetric(
    code: Code, suffix: str, m: I64, k: I64, alpha: Element, a: NoAlias, a_row: I64, a_col: I64, c: NoAlias,
    c_row: I64, c_col: I64,
) -> Bool:  # fmt: skip
    """c = alpha a a' by BLAS where it takes the layouts; false where it does not, and nothing is done."""
    routine = blas_routine(code, suffix, "syrk")
    factor = Operand(tiles.Matrix(a, a_row, a_col), m, k)
    is_fit = factor.fits & rows_fit(m, m, c_row, c_col) & in_range(m, k, factor.leading, c_row)
    with code.when(~(is_fit & (routine != NULL))):
        code.ret(False)
    # The upper triangle to Fortran, whose columns are our rows: the lower one to us.
    letters = I8.of(ord("U")), factor.letter("T", "N")
    zero = type(alpha).of(0)
    call_blas(code, routine, *letters, m, k, alpha, factor.at, factor.leading, zero, c, c_row)
    mirror(suffix)(code, m, c, c_row)
    return Bool.of(True)


@tiles.element_function("mirror", "noinline")
def mirror(code: Code, suffix: str, m: I64, c: NoAlias, c_row: I64) -> None:
    """Copies the triangle below the diagonal to that above it, block by block."""
    with code.count(0, m, MIRRORED, sure=True) as row:
        below = row.apply("add nsw", MIRRORED)
        end = below.minimum(m)
        with code.count(0, end, MIRRORED, sure=True) as column:
            beside = column.apply("add nsw", MIRRORED)
            with code.count(row, end, sure=True) as i:
                source, target = c.at(i * c_row), c.at(i)
                with code.count(column, beside.minimum(i)) as j:
                    target[j * c_row] = source[j]


# Products with a vector. ----------------------------------------------------------------------------------------------


@vector_function("gc_gemv", returns=I64, is_internal=False)
def gemv(code: Code, suffix: str, p: VectorProduct) -> I64:
    """gc_gemv_<t>."""
    done = code.label("done")
    done.when(p.m < 1)
    if suffix in LETTERS and not has_threads():
        done.when(p.call(code, vector_by_blas(suffix)))
    p.call(code, vector_product(suffix))
    code.place(done)
    return I64.of(0)


@vector_function("vector_by_blas", returns=Bool)
def vector_by_blas(code: Code, suffix: str, p: VectorProduct) -> Bool:
    """y = alpha a x + beta y by BLAS where it takes the layouts; false where it does not, and nothing is done."""
    is_heavy = p.m.to(F64) * p.n.to(F64) > SMALL_GEMV
    counts = p.alpha == 1  # BLAS may multiply x by alpha first, which may be more or less than the dtype holds
    routine = blas_routine(code, suffix, "gemv")
    matrix = Operand(tiles.Matrix(p.a, p.a_row, p.a_col), p.m, p.n)
    is_forward = (p.x_step > 0) & (p.y_step > 0)
    is_fit = matrix.fits & is_forward & in_range(p.m, p.n, matrix.leading, p.x_step, p.y_step)
    with code.when(~(is_fit & is_heavy & counts & (routine != NULL))):
        code.ret(False)
    rows, columns = matrix.is_plain.choose(p.n, p.m), matrix.is_plain.choose(p.m, p.n)
    operands = matrix.at, matrix.leading, p.x, p.x_step
    call_blas(code, routine, matrix.letter("T", "N"), rows, columns, p.alpha, *operands, p.beta, p.y, p.y_step)
    return Bool.of(True)
