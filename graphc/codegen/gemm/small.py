"""Matrix products as loops, for any dtype and layout: what runs where BLAS does not.

In: the suffix of a dtype (f64, f32, i64, i32). Out: internal functions of LLVM IR:

    loops    c = alpha a b + beta c by the best of the following
    tiles    blocks of a few rows and contiguous columns of c, in registers while p runs; b is read by rows
    packed   tiles over copies of parts of a b whose rows are not contiguous

    What no copy would help goes by `dots` (gemv.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphc.codegen.gemm.api import ARGUMENTS
from graphc.codegen.gemm.context import SETTING, Words, share
from graphc.codegen.gemm.gemv import dots
from graphc.codegen.gemm.tiles import (
    ARITHMETIC,
    GROUP,
    ROWS,
    TILE,
    WORDS,
    Matrix,
    Product,
    arguments,
    lanes_of,
    pack,
    product_function,
    tile,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external, poison
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F64, I64, NoAlias, Ptr
from graphc.codegen.threads.chunking import LEAST_WORK
from graphc.startup.record import replace

PANEL_ROWS = 256
PANEL_COLUMNS = 32
"""The part of a matrix that is copied to the stack at a time: whole tiles."""
WIDE_ROWS = {False: (4, 1), True: (8, 4, 1)}
"""Rows of the tiles that are two registers wide: their sums fill half of the 16 registers that there are without
AVX-512, and of the 32 with it."""
NARROW_ROWS = (8, 4, 1)
"""Rows of the tiles for what is left, of one register at most: enough to keep both multipliers busy."""


def strip(rows: int, suffix: str, *, part: bool) -> Function[..., None]:
    """`rows` whole rows of c. part: the last tile may be a part of one, else all are whole, and wide."""
    name, lanes = "narrow" if part else "wide", lanes_of(suffix)
    width = lanes if part else 2 * lanes

    @product_function(f"{name}_{rows}", ("m", *ROWS))
    def write(code: Code, suffix: str, p: Product) -> None:
        kind = ARITHMETIC[suffix].kind
        with code.count(0, p.n, width, sure=True) as j:
            count = [(p.n - j).minimum(width)] if part else []
            here = replace(p, b=p.b.part(0, j, kind), c=p.c.part(0, j, kind))
            tile(rows, width, suffix, part=part)(code, *arguments(here, TILE), *count)

    return write(suffix)


def columns(suffix: str, *, part: bool) -> Function[..., None]:
    """All rows of c, by strips of these numbers of rows: the larger ones while they last."""
    blocks: Sequence[int] = NARROW_ROWS if part else WIDE_ROWS[has_avx512()]

    @product_function("narrow" if part else "wide", ROWS)
    def write(code: Code, suffix: str, p: Product) -> None:
        kind, i = ARITHMETIC[suffix].kind, code.variable(I64.of(0))
        for rows in blocks:
            end = p.m - (rows - 1)
            with code.loop() as iteration:
                iteration.leave.unless(i.value < end)
                here = replace(p, a=p.a.part(i.value, 0, kind), c=p.c.part(i.value, 0, kind))
                strip(rows, suffix, part=part)(code, *arguments(here, ("m", *ROWS)))
                i.value = i.value.apply("add nsw", rows)

    return write(suffix)


@product_function("tiles", ROWS)
def tiles(code: Code, suffix: str, p: Product) -> None:
    """The product where the columns of b and c are contiguous: blocks of a few rows and columns of c, in registers
    while p runs."""
    kind = ARITHMETIC[suffix].kind
    left = p.n % (2 * lanes_of(suffix))
    done = p.n - left
    with code.when(done > 0):
        columns(suffix, part=False)(code, *arguments(replace(p, n=done), ROWS))
    with code.when(left > 0):
        rest = replace(p, n=left, b=p.b.part(0, done, kind), c=p.c.part(0, done, kind))
        columns(suffix, part=True)(code, *arguments(rest, ROWS))


@product_function("packed", ("c_col",))
def packed(code: Code, suffix: str, p: Product) -> None:
    """The product for a c with contiguous rows and any b, of which a few columns and rows at a time are copied."""
    own = ARITHMETIC[suffix]
    kind = own.kind
    panel = code.local(kind, PANEL_ROWS * PANEL_COLUMNS, align=64)
    if code.poison:
        poison(code, panel, I64.of(PANEL_ROWS * PANEL_COLUMNS * own.align))
    j = code.variable(I64.of(0))
    with code.loop() as by_columns:
        width = (p.n - j.value).minimum(PANEL_COLUMNS)
        lead = (width + (GROUP - 1)) & -GROUP
        top, c_here = p.b.part(0, j.value, kind), p.c.part(0, j.value, kind)
        depth, factor = code.variable(I64.of(0)), code.variable(p.beta)
        with code.loop() as by_depth:
            height = (p.k - depth.value).minimum(PANEL_ROWS)
            a_here, b_here = p.a.part(0, depth.value, kind), top.part(depth.value, 0, kind)
            with code.count(0, width, GROUP, sure=True) as g:
                lanes, group = (width - g).minimum(GROUP), b_here.part(0, g, kind)
                pack(suffix)(code, lanes, height, group.at, p.b.column, p.b.row, panel.at(g, kind), lead)
            copy = Matrix(panel, lead, I64.of(1))
            part = Product(p.m, width, height, p.alpha, a_here, copy, factor.value, c_here)
            tiles(suffix)(code, *arguments(part, ROWS))
            factor.value = kind.of(1)
            depth.value = depth.value.apply("add nsw", height)
            by_depth.leave.unless(depth.value < p.k)
        j.value = j.value.apply("add nsw", width)
        by_columns.leave.unless(j.value < p.n)


@product_function("rows", ("c_col",))
def rows_of(code: Code, suffix: str, p: Product) -> None:
    """The product without BLAS for a c with contiguous rows."""
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
    with code.when(p.c.column == 1):
        rows_of(suffix)(code, *arguments(p, ("c_col",)))
        code.ret()
    with code.when(p.c.row == 1):
        turned = replace(p, m=p.n, n=p.m, a=p.b.turned(), b=p.a.turned(), c=p.c.turned())
        rows_of(suffix)(code, *arguments(turned, ("c_col",)))
        code.ret()
    dots(suffix)(code, *arguments(p))


# --- batched ----------------------------------------------------------------------------------------------------------
# Batches of matrix products: one product where it can be, else product by product, shared by threads.
#
# In: the suffix of a dtype. Out: gc_batched_gemm_<t> (api.py) in LLVM IR, which calls gc_gemm_<t> and
# `share` (context.py).
#
# Matrices are shared out where each is so small that its product runs on one thread, and all together are worth
# several; a larger one is itself shared out. A product is the same whoever computes it, and so are the results.


UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 0.5}
"""The cost of a multiplication and an addition of a product, in units of work (threads/chunking.py)."""

BATCHED = ARGUMENTS["batched_gemm"].split()[1:]
"""The arguments behind the count, which threads find in a record, a word each."""


def batch(suffix: str, largest: int) -> Function[..., I64]:
    """gc_batched_gemm_<t>. largest: multiplications of a matrix from which on it is shared out itself."""
    element: Any = ARITHMETIC[suffix].kind
    kinds = {"alpha": element, "beta": element} | dict.fromkeys("abc", NoAlias)
    params: dict[str, Any] = {name: kinds.get(name, I64) for name in BATCHED}
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
    element = params["alpha"]
    with code.count(begin, end) as number:
        here = {name: words[name].at(number * words[f"{name}_batch"], element) for name in "abc"}
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
