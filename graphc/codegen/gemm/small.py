"""Matrix products as loops, for any dtype and layout: what runs where BLAS does not.

In: the suffix of a dtype (f64, f32, i64, i32). Out: internal functions of LLVM IR:

    loops    c = alpha a b + beta c by the best of the following
    tiles    blocks of a few rows and contiguous columns of c, in registers while p runs; b is read by rows
    packed   tiles over copies of parts of a b whose rows are not contiguous
    narrow   tiles of columns of c, for a c of few columns
    along    inner products of contiguous rows of a and columns of b, several of each at a time

    What no copy would help goes by `dots` (gemv.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphc.codegen.gemm import ARGUMENTS
from graphc.codegen.gemm.gemv import add_lanes, dots, join, within
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    GROUP,
    LATENCY,
    ROWS,
    SETTING,
    TILE,
    WORDS,
    Columns,
    Matrix,
    Product,
    Words,
    arguments,
    first_lanes,
    lanes_of,
    pack,
    product_function,
    share,
    tile,
)
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, external, poison
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F64, I64, Bool, Ptr, elements, vector
from graphc.codegen.threads.settings import LEAST_WORK
from graphc.startup.record import replace

# --- inner products of contiguous numbers -----------------------------------------------------------------------------
# In: the suffix of a dtype. Out: an internal function of LLVM IR:
#
#     along    c = alpha a b + beta c, for an a with contiguous rows, any b and any c
#
# A block of c is some rows of a times some columns of b, each read once, a register at a time, into a sum for each
# element of the block: four times four loads for sixteen products. Where few columns of c would leave registers of
# tiles empty, and where sums are long, that is faster than tiles. Columns of b that are not contiguous are copied to
# the stack, some of their numbers at a time.

INNER_ROWS = (4, 1)
COLUMNS = {False: (2, 1), True: (4, 2, 1)}
"""Rows and columns of the blocks of c, the larger ones while they last: their sums fill half of the registers."""
COPIED, DEPTH = 16, 256
"""Columns of b that are copied at a time, and how many of their numbers."""
WITHOUT = ("m", "n", "a_col", "b_row")
"""The operands that blocks do without: rows of a and columns of b are contiguous."""


def block(rows: int, columns: int, suffix: str) -> Function[..., None]:
    """A block of c. A sum has the bits of others of as many rows and columns, wherever they stand."""
    scalar, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    phases = max(1, LATENCY // (rows * columns))

    @product_function(f"inner_{rows}_{columns}", WITHOUT)
    def write(code: Code, suffix: str, p: Product) -> None:
        lefts = [p.a.at.at(p.a.row * row) for row in range(rows)]
        rights = [p.b.at.at(p.b.column * column) for column in range(columns)]
        whole, vectors = p.k - p.k % (phases * lanes), p.k - p.k % lanes
        register = Columns(suffix, lanes).register
        sums = [[[code.variable(register.of(0)) for _ in lefts] for _ in rights] for _ in range(phases)]

        def add(place: I64, totals: Sequence[Sequence[Variable[Any]]], part: Columns) -> None:
            factors = [part.read(code, right.at(place)) for right in rights]
            for row, left in enumerate(lefts):
                numbers = part.read(code, left.at(place))
                for several, factor in zip(totals, factors, strict=True):
                    several[row].value = several[row].value.apply(scalar.plus, numbers.apply(scalar.times, factor))

        with code.count(0, whole, phases * lanes) as q:
            for number, totals in enumerate(sums):
                add(q.apply("add nsw", number * lanes), totals, Columns(suffix, lanes))
        if phases > 1:
            with code.count(whole, vectors, lanes) as q:
                add(q, sums[0], Columns(suffix, lanes))
        with code.count(vectors, p.k, lanes) as q:
            add(q, sums[0], within(code, p.k, q, suffix))
        is_fresh = p.beta.compare(scalar.equal, 0)
        for column in range(columns):
            made = [join([part[column][row].value for part in sums], suffix) for row in range(rows)]
            totals = add_lanes(made, suffix).apply(scalar.scale, p.alpha.spread(rows))
            for row in range(rows):
                place = p.c.at.at(p.c.row * row + p.c.column * column)
                value = code.variable(totals.lane(row))
                with code.when(~is_fresh):
                    value.value = value.value.apply(scalar.join, place.value.apply(scalar.scale, p.beta))
                place.store(value.value)

    return write(suffix)


def row_blocks(rows: int, suffix: str) -> Function[..., None]:
    """So many rows of c, by blocks of several columns."""

    @product_function(f"inner_{rows}", ("m", "a_col", "b_row"))
    def write(code: Code, suffix: str, p: Product) -> None:
        j = code.variable(I64.of(0))
        for columns in COLUMNS[has_avx512()]:
            end = p.n - (columns - 1)
            with code.loop() as iteration:
                iteration.leave.unless(j.value < end)
                here = replace(p, b=p.b.part(0, j.value), c=p.c.part(0, j.value))
                block(rows, columns, suffix)(code, *arguments(here, WITHOUT))
                j.value = j.value.apply("add nsw", columns)

    return write(suffix)


@product_function("inner_products", ("a_col", "b_row"))
def inner_products(code: Code, suffix: str, p: Product) -> None:
    """The product where rows of a and columns of b are contiguous."""
    i = code.variable(I64.of(0))
    for rows in INNER_ROWS:
        end = p.m - (rows - 1)
        with code.loop() as iteration:
            iteration.leave.unless(i.value < end)
            here = replace(p, a=p.a.part(i.value, 0), c=p.c.part(i.value, 0))
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
    scalar = ARITHMETIC[suffix]
    element = scalar.element
    with code.when(p.b.row == 1):
        inner_products(suffix)(code, *arguments(p, ("a_col", "b_row")))
        code.ret()
    copy = code.local(element, COPIED * DEPTH, align=64).numbers(element)
    if code.poison:
        poison(code, copy, I64.of(COPIED * DEPTH * scalar.align))
    with code.count(0, p.n, COPIED) as j:
        width, factor = (p.n - j).minimum(COPIED), code.variable(p.beta)
        with code.count(0, p.k, DEPTH) as depth:
            height = (p.k - depth).minimum(DEPTH)
            source = p.b.part(depth, j)
            with code.count(0, height, sure=True) as q, code.count(0, width, sure=True) as column:
                number = source.at[q * p.b.row + column * p.b.column]
                copy[column * DEPTH + q] = number
            b = Matrix(copy, I64.of(1), code.variable(I64.of(DEPTH)).value)
            part = Product(p.m, width, height, p.alpha, p.a.part(0, depth), b, factor.value, p.c.part(0, j))
            inner_products(suffix)(code, *arguments(part, ("a_col", "b_row")))
            factor.value = element.of(1)


# --- blocks of rows and contiguous columns ----------------------------------------------------------------------------

PANEL_ROWS = 256
PANEL_COLUMNS = 32
"""The part of a matrix that is copied to the stack at a time: whole tiles."""
NARROW_ROWS = 256
"""Rows of c at a time that are computed as columns, where those of a are contiguous and c has no more columns than a
register."""
BESIDE_TERMS = 32
"""The terms of a sum from which on it is worth to turn the result."""
ROW_TILES = {False: ((8, 1), (4, 2), (3, 2), (2, 4), (1, 8)), True: ((8, 2), (4, 2), (3, 4), (2, 4), (1, 8))}
"""Rows of a tile and the registers of a row, without AVX-512, where there are 16 registers, and with it, where there
are 32. A b that is read for few rows is read in wide parts, for each row of it is far from the next. Tiles of one
register are for a c of no more columns."""


def strip(rows: int, registers: int, suffix: str) -> Function[..., None]:
    """`rows` whole rows of c: tiles of so many registers, and for what is left of one register, which may be a part."""
    lanes = lanes_of(suffix)
    width = registers * lanes

    @product_function(f"strip_{rows}", ("m", *ROWS))
    def write(code: Code, suffix: str, p: Product) -> None:
        whole = p.n - p.n % width
        with code.count(0, whole, width) as j:
            here = replace(p, b=p.b.part(0, j), c=p.c.part(0, j))
            tile(rows, width, suffix)(code, *arguments(here, TILE))
        with code.count(whole, p.n, lanes) as j:
            here = replace(p, b=p.b.part(0, j), c=p.c.part(0, j))
            tile(rows, lanes, suffix, part=True)(code, *arguments(here, TILE), (p.n - j).minimum(lanes))

    return write(suffix)


@product_function("tiles", ROWS)
def tiles(code: Code, suffix: str, p: Product) -> None:
    """The product where the columns of b and c are contiguous: blocks of a few rows and columns of c, in registers
    while p runs. Strips of more rows come first, while they last."""
    i = code.variable(I64.of(0))
    for rows, registers in ROW_TILES[has_avx512()]:
        end = p.m - (rows - 1)
        with code.loop() as iteration:
            is_fit = p.n <= lanes_of(suffix) if registers == 1 else Bool.of(True)
            iteration.leave.unless((i.value < end) & is_fit)
            here = replace(p, a=p.a.part(i.value, 0), c=p.c.part(i.value, 0))
            strip(rows, registers, suffix)(code, *arguments(here, ("m", *ROWS)))
            i.value = i.value.apply("add nsw", rows)


@product_function("packed", ("c_col",))
def packed(code: Code, suffix: str, p: Product) -> None:
    """The product for a c with contiguous rows and any b, of which a few columns and rows at a time are copied."""
    scalar = ARITHMETIC[suffix]
    element = scalar.element
    panel = code.local(element, PANEL_ROWS * PANEL_COLUMNS, align=64).numbers(element)
    if code.poison:
        poison(code, panel, I64.of(PANEL_ROWS * PANEL_COLUMNS * scalar.align))
    j = code.variable(I64.of(0))
    with code.loop() as by_columns:
        width = (p.n - j.value).minimum(PANEL_COLUMNS)
        lead = (width + (GROUP - 1)) & -GROUP
        top, c_here = p.b.part(0, j.value), p.c.part(0, j.value)
        depth, factor = code.variable(I64.of(0)), code.variable(p.beta)
        with code.loop() as by_depth:
            height = (p.k - depth.value).minimum(PANEL_ROWS)
            a_here, b_here = p.a.part(0, depth.value), top.part(depth.value, 0)
            with code.count(0, width, GROUP, sure=True) as g:
                lanes, group = (width - g).minimum(GROUP), b_here.part(0, g)
                pack(suffix)(code, lanes, height, group.at, p.b.column, p.b.row, panel.at(g), lead)
            copy = Matrix(panel, lead, I64.of(1))
            part = Product(p.m, width, height, p.alpha, a_here, copy, factor.value, c_here)
            tiles(suffix)(code, *arguments(part, ROWS))
            factor.value = element.of(1)
            depth.value = depth.value.apply("add nsw", height)
            by_depth.leave.unless(depth.value < p.k)
        j.value = j.value.apply("add nsw", width)
        by_columns.leave.unless(j.value < p.n)


@product_function("narrow", ("c_col",))
def narrow(code: Code, suffix: str, p: Product) -> None:
    """The product for a c of few columns, at most those of a register, and an a whose columns are contiguous: some rows
    of c at a time as columns, in tiles beside it."""
    scalar, count = ARITHMETIC[suffix], lanes_of(suffix) * NARROW_ROWS
    sums = code.local(scalar.element, count, align=64).numbers(scalar.element)
    if code.poison:
        poison(code, sums, I64.of(count * scalar.align))
    is_fresh = p.beta.compare(scalar.equal, 0)
    with code.count(0, p.m, NARROW_ROWS) as i:
        height = (p.m - i).minimum(NARROW_ROWS)
        turned = Matrix(sums, code.variable(I64.of(NARROW_ROWS)).value, I64.of(1))
        above = p.a.part(i, 0).turned()
        part = Product(p.n, height, p.k, p.alpha, p.b.turned(), above, scalar.element.of(0), turned)
        tiles(suffix)(code, *arguments(part, ROWS))
        with code.count(0, height, sure=True) as row, code.count(0, p.n) as column:
            place = p.c.part(i + row, 0).at.at(column)
            value = code.variable(sums[column * NARROW_ROWS + row])
            with code.when(~is_fresh):
                value.value = value.value.apply(scalar.join, place.value.apply(scalar.scale, p.beta))
            place.store(value.value)


@product_function("rows", ("c_col",))
def rows_of(code: Code, suffix: str, p: Product) -> None:
    """The product without BLAS for a c with contiguous rows."""
    with code.when((p.a.row == 1) & (p.n <= lanes_of(suffix)) & (p.m >= p.n * 2) & (p.k >= BESIDE_TERMS)):
        narrow(suffix)(code, *arguments(p, ("c_col",)))
        code.ret()
    with code.when(p.b.column == 1):
        tiles(suffix)(code, *arguments(p, ROWS))
        code.ret()
    with code.when(p.m <= 2):  # what is copied for one or two rows is hardly used again
        dots(suffix)(code, *arguments(p))
        code.ret()
    packed(suffix)(code, *arguments(p, ("c_col",)))


@product_function("loops")
def loops(code: Code, suffix: str, p: Product) -> None:
    """The product without BLAS: c by rows, or turned by columns, else an inner product for each element."""
    turned = replace(p, m=p.n, n=p.m, a=p.b.turned(), b=p.a.turned(), c=p.c.turned())
    for way in (p, turned) if suffix in FEW_COLUMNS else ():
        with code.when(is_along(way, suffix)):
            along(suffix)(code, *arguments(way, ("a_col",)))
            code.ret()
    with code.when(p.c.column == 1):
        rows_of(suffix)(code, *arguments(p, ("c_col",)))
        code.ret()
    with code.when(p.c.row == 1):
        rows_of(suffix)(code, *arguments(turned, ("c_col",)))
        code.ret()
    dots(suffix)(code, *arguments(p))


# --- batched ----------------------------------------------------------------------------------------------------------
# Batches of matrix products: one product where it can be, else product by product, shared by threads.
#
# In: the suffix of a dtype. Out: gc_batched_gemm_<t> in LLVM IR, which calls gc_gemm_<t> and
# `share`.
#
# Matrices are shared out where each is so small that its product runs on one thread, and all together are worth
# several; a larger one is itself shared out. A product is the same whoever computes it, and so are the results.


UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 0.5}
"""The cost of a multiplication and an addition of a product, in units of work (threads/settings.py)."""

BATCHED = ARGUMENTS["batched_gemm"].split()[1:]
"""The arguments behind the count, which threads find in a record, a word each."""


def batch(suffix: str, largest: int) -> Function[..., I64]:
    """gc_batched_gemm_<t>. largest: multiplications of a matrix from which on it is shared out itself."""
    element: Any = ARITHMETIC[suffix].element
    types = {"alpha": element, "beta": element} | dict.fromkeys("abc", elements(element, "noalias"))
    params: dict[str, Any] = {name: types.get(name, I64) for name in BATCHED}
    gemm: Function[..., I64] = external(f"gc_gemm_{suffix}", I64, *(params[name] for name in WORDS))
    part: dict[str, Any] = {"context": Ptr, "begin": I64, "end": I64}
    range_ = Function(
        f"batch_range_{suffix}", None, part, partial(_write_range, gemm, params), "noinline optsize", is_internal=True
    )
    write = partial(_write_batch, gemm, range_, UNIT[suffix], largest)
    return Function(f"gc_batched_gemm_{suffix}", I64, {"count": I64, **params}, write, "noinline optsize")


def _write_range(
    gemm: Function[..., I64], params: dict[str, Any], code: Code, context: Ptr, begin: I64, end: I64
) -> None:
    """The products from begin to end of a batch."""
    words = Words(params).read(context)
    params["alpha"]
    with code.count(begin, end) as number:
        here = {name: words[name].at(number * words[f"{name}_batch"]) for name in "abc"}
        gemm(code, *(here.get(name, words[name]) for name in WORDS))


def _write_batch(
    gemm: Function[..., I64],
    range_: Function[..., None],
    unit: float,
    largest: int,
    code: Code,
    count: I64,
    *values: Any,
) -> I64:
    word = dict(zip(BATCHED, values, strict=True))
    # Rows of a and c that follow each other through the batch, times one b, are a single product.
    follow = [word[f"{name}_batch"] == word["m"] * word[f"{name}_row"] for name in "ac"]
    with code.when(follow[0] & follow[1] & (word["b_batch"] == 0)):
        joined = {**word, "m": count * word["m"]}
        code.ret(gemm(code, *(joined[name] for name in WORDS)))
    context = Words({name: type(value) for name, value in word.items()}).write(code, word)
    m, n, k, products = (number.to(F64) for number in (word["m"], word["n"], word["k"], count))
    each = m * n * k
    each_work = each * unit
    with code.when(each < float(largest)):
        exact = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / each_work  # products that are worth a claim
        few = exact.minimum(products).to(I64)
        size = (few > 1).choose(few, 1)
        share(code, range_.pointer(code), context, count, size, each_work * products)
        code.ret(I64.of(0))
    range_(code, context, I64.of(0), count)
    return I64.of(0)


# --- the smallest products --------------------------------------------------------------------------------------------
# Matrices of up to MOST rows and columns.
#
# In: the suffix of a dtype. Out: a function of LLVM IR. A row of c is one vector under a mask, and so is a row of b,
# which is gathered where its elements stand apart. A product of 2 by 2 takes less time so than it takes to choose among
# the loops above.

MOST = 8
FEW_ROWS = (4, 2, 1)
"""Rows of c at a time, the more while they last."""


def are_few(p: Product) -> Bool:
    """True if a product is one of these: c has contiguous rows, of more than one element."""
    return (p.m <= MOST) & (p.n <= MOST) & (p.k <= MOST) & (p.n > 1) & (p.c.column == 1)


@product_function("few", ("c_col",))
def few(code: Code, suffix: str, p: Product) -> None:
    """The product, row by row."""
    columns = Columns(suffix, MOST, first_lanes(p.n, MOST))
    offsets = p.b.column.spread(MOST) * vector(I64, MOST).each(range(MOST))
    for is_strided in (False, True):
        with code.when((p.b.column != 1) if is_strided else (p.b.column == 1)):
            i = code.variable(I64.of(0))
            for rows in FEW_ROWS:
                with code.loop() as iteration:
                    iteration.leave.unless(i.value < p.m - (rows - 1))
                    here = replace(p, a=p.a.part(i.value, 0), c=p.c.part(i.value, 0))
                    _multiply(code, here, rows, columns, offsets if is_strided else None)
                    i.value = i.value.apply("add nsw", rows)
            code.ret()


def _multiply(code: Code, p: Product, rows: int, columns: Columns, offsets: Any) -> None:
    """Some rows of c. offsets: of the elements of a row of b, where it is not contiguous."""
    scalar = columns.scalar
    sums = [code.variable(columns.register.of(0)) for _ in range(rows)]
    a, b, left = code.variable(p.a.at), code.variable(p.b.at), code.variable(p.k)
    with code.loop() as iteration:
        iteration.leave.unless(left.value > 0)
        b_row = columns.read(code, b.value, offsets)
        for row, total in enumerate(sums):
            number = a.value[p.a.row * row]
            total.value = total.value.apply(scalar.plus, number.spread(MOST).apply(scalar.times, b_row))
        a.value, b.value = a.value.at(p.a.column), b.value.at(p.b.row)
        left.value = left.value - 1
    columns.finish(code, [total.value for total in sums], p)
