"""Large matrix products of floats: packed operands, blocks of the result shared by threads.

In: the suffix of a dtype (f64, f32). Out: a module of LLVM IR with a function of C, by the name of `blocks_name`:

    gc_blocks_<t>(settings, triangle, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col)
        as gc_gemm_<t> where no size is 0, on threads where the settings (chunks.SETTINGS) find the work worth them.
        triangle: not 0 where only what is on or below the diagonal of a c with contiguous rows is wanted; the rest is
        then left undefined. Returns 0, or 1 where there was no memory and nothing is done

Operands are copied to panels, of 8 rows of a and of two registers of columns of b, one number of each lane after the
other (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008, and BLIS). A panel of b and a
block of panels of a stay in the second cache while they are multiplied. Both operands are packed before a block of c
is begun, so that threads have one copy between them: they share the packing, then the blocks. What is read well where
it stands is not copied, but for the last panel, whose missing lanes are any numbers.

Each element of c is a sum over p in order within depths of at most `Limits.depth`, which follow from k alone, and these
sums are added up in order. How c is divided, and who computes it, changes no bit of the result.

The memory for the panels is kept from call to call. A call that finds it in use has its own. What is kept is given back
by the module's other function, `free_name`, which does nothing while a call uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from graphc.codegen.gemm import tiles
from graphc.codegen.gemm.gemv import free, malloc
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Global, external, function, module_text, poison
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F64, I32, I64, NULL, Bool, Elements, Ptr, Value, elements
from graphc.codegen.threads.settings import BACK_OFF_WORD, LEAST_CHUNKS, LEAST_WORK, PARALLEL, SETTINGS_WORDS, THREADS
from graphc.startup.record import record, replace

BLOCK_PANELS = 8
"""Panels of a in a block of c: 256 kB of float64 with AVX-512, in the second cache, and half of that without."""
PARTS = 64
"""Blocks that a large c is divided into, at least: what the slowest thread is late by is a part of one."""
LEAST_TILES = 8
"""Tiles of a block at least."""
SLAB = 4096
"""Rows and columns of c that are computed at a time."""
PANEL_BYTES = 2**23
"""Memory for panels, about: of longer operands some depths are packed at a time."""
PACKED = 2**15
"""Numbers that are worth a thread's iteration to be packed."""
HUGE_PAGE = 2**21
"""Bytes that long memory for panels is a multiple of, and aligned to."""
HUGE_FROM = 2**22
"""Bytes from which it is long."""
ADVICE = 14
"""Linux's number for: in huge pages."""


@record()
class Limits:
    """Sizes that depend on the registers and the caches that come with them.

    tile_rows: rows of c whose sums are in registers together. depth: numbers of a panel's lane that are multiplied at a
    time. resident_a, resident_b: bytes of an operand whose rows are contiguous up to which it is faster read where it
    is; resident_columns: of an a whose columns are. work: what a multiplication and addition costs for each byte of the
    dtype, in units of work (threads/settings.py).
    """

    tile_rows: int
    depth: int
    resident_a: int
    resident_b: int
    work: float
    resident_columns: int = 2**19


AVX512 = Limits(tile_rows=tiles.GROUP, depth=512, resident_a=2**62, resident_b=2**20, work=0.3 / 8)
"""A panel of b is 64 kB: the second cache gives it as fast as it is multiplied, and c is read and written half as often
as where it fitted the nearest one."""
AVX2 = Limits(tile_rows=4, depth=256, resident_a=2**19, resident_b=0, work=0.6 / 8)
"""A panel of b is 16 kB, half of the nearest cache; rows of b that stand apart by a power of two have no room there.
Measured on Zen 3 up to 512 rows: 0.87 to 1.1 of OpenBLAS's time, whose threads are not in the way of ours."""


def limits() -> Limits:
    """Return the limits of the target."""
    return AVX512 if has_avx512() else AVX2


WORDS = """
m n k depth a a_row a_col b b_row b_col c c_row c_col a_panels b_panels a_first b_first height width across diagonal
alpha beta
""".split()
"""The words that threads read of a product: the part of the operands that is packed, of which `depth` numbers are
multiplied at a time; the first panels that are packed; a block's height and width in panels, and how many are beside
each other; how far below the diagonal of the whole c its first row begins."""
FAR = 2**62
"""Below any diagonal."""

KEPT = Global("kept", "internal global ptr null")
KEPT_BYTES = Global("kept.bytes", "internal global i64 0")
KEPT_USED = Global("kept.used", "internal global i32 0")
"""Memory that is kept, its bytes, and 1 while a call uses it."""

Element: TypeAlias = Any
"""A number of the dtype that a function is made for."""

launch = external(PARALLEL, None, Ptr, Ptr, I64, I64, Ptr)
aligned_alloc = external("aligned_alloc", Ptr, I64, I64)
madvise = external("madvise", I32, Ptr, I64, I32)


def blocks_ir(suffix: str, poison: bool = False) -> str:
    """The module of one dtype. It refers to gc_parallel."""
    return module_text([blocks(suffix), give_back(suffix)], poison=poison)


# Memory. --------------------------------------------------------------------------------------------------------------


@function("noinline")
def allocate(code: Code, length: I64) -> Ptr:
    """Memory, if it is long in huge pages: of small ones the first touch took a fifth of a first product."""
    if sys.platform != "linux":
        return malloc(code, length)
    with code.when(length.below(HUGE_FROM)):
        code.ret(malloc(code, length))
    size = (length + (HUGE_PAGE - 1)) & -HUGE_PAGE
    memory: Ptr = aligned_alloc(code, I64.of(HUGE_PAGE), size)
    with code.when(memory != NULL):
        madvise(code, memory, size, I32.of(ADVICE))
    return memory


@function("noinline")
def keep(code: Code, length: I64) -> Ptr:
    """The kept memory, made longer where that is needed; null where there is none. Only for the call that uses it."""
    old = KEPT(code).load(Ptr)
    with code.when(~length.above(KEPT_BYTES(code).load(I64))):
        code.ret(old)
    free(code, old)
    new = allocate(code, length)
    KEPT(code).store(new)
    KEPT_BYTES(code).store((new == NULL).choose(I64.of(0), length))
    return new


def take_panels(code: Code, length: I64) -> tuple[Ptr, Bool]:
    """Memory of a call, null where there is none; whether it is what is kept, which no other call uses now."""
    _, is_mine = KEPT_USED(code).exchange(I32.of(0), I32.of(1), "acquire", failure="monotonic", align=4)
    memory = code.variable(NULL)
    with code.when(is_mine):
        memory.value = keep(code, length)
    with code.otherwise():
        memory.value = malloc(code, length)
    if code.poison:
        poison(code, memory.value, length)
    return memory.value, is_mine


def leave_panels(code: Code, memory: Ptr, is_mine: Bool) -> None:
    """The end of `take_panels`."""
    with code.when(is_mine):
        KEPT_USED(code).store(I32.of(0), order="release", align=4)
    with code.otherwise():
        free(code, memory)


@tiles.element_function("gc_blocks_free", "noinline", is_internal=False)
def give_back(code: Code, suffix: str) -> None:
    """Gives back the memory that is kept, unless a call uses it."""
    _, is_mine = KEPT_USED(code).exchange(I32.of(0), I32.of(1), "acquire", failure="monotonic", align=4)
    with code.when(is_mine):
        free(code, KEPT(code).load(Ptr))
        KEPT(code).store(NULL)
        KEPT_BYTES(code).store(I64.of(0))
        KEPT_USED(code).store(I32.of(0), order="release", align=4)


# What threads do. -----------------------------------------------------------------------------------------------------


def words_of(suffix: str) -> tiles.Words:
    types = dict.fromkeys(("alpha", "beta"), tiles.ARITHMETIC[suffix].element)
    types |= dict.fromkeys(("a", "b", "c", "a_panels", "b_panels"), elements(tiles.ARITHMETIC[suffix].element))
    return tiles.Words({name: types.get(name, I64) for name in WORDS})


@tiles.element_function("pack_range", "")
def pack_range(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Packs the panels from begin to end: those of a come first."""
    width = 2 * tiles.lanes_of(suffix)
    w = words_of(suffix).read(context)
    count, pack = tiles.panels(w["m"], tiles.GROUP), tiles.pack_panels(suffix)
    operand = w["a"], w["a_row"], w["a_col"], w["a_panels"]
    last = tiles.least(code, end + w["a_first"], count)
    pack(code, begin + w["a_first"], last, w["m"], w["k"], w["depth"], I64.of(tiles.GROUP), *operand)
    packed = count - w["a_first"]
    first = tiles.most(code, begin - packed, I64.of(0)) + w["b_first"]
    operand = w["b"], w["b_col"], w["b_row"], w["b_panels"]
    pack(code, first, end - packed + w["b_first"], w["n"], w["k"], w["depth"], I64.of(width), *operand)


def panel_tile(code: Code, suffix: str, product: tiles.Product) -> None:
    """A tile of c, of a panel of a and one of b, whole: by as many rows at a time as registers hold sums of."""
    rows = limits().tile_rows
    for first in range(0, tiles.GROUP, rows):
        a, c = (each.part(I64.of(first), 0) if first else each for each in (product.a, product.c))
        tiles.tile(rows, 2 * tiles.lanes_of(suffix), suffix)(
            code, *tiles.arguments(replace(product, a=a, c=c), tiles.TILE)
        )


@tiles.product_function("edge", ("m", "n", "b_col"), {"rows": I64, "columns": I64})
def edge(code: Code, suffix: str, p: tiles.Product, rows: I64, columns: I64) -> None:
    """A tile of c of which some rows or columns are missing, or whose columns are not contiguous."""
    scalar, width = tiles.ARITHMETIC[suffix], 2 * tiles.lanes_of(suffix)
    sums = code.local(scalar.element, tiles.GROUP * width, align=64).numbers(scalar.element)
    if code.poison:
        poison(code, sums, I64.of(tiles.GROUP * width * scalar.align))
    tile = tiles.Matrix(sums, code.variable(I64.of(width)).value, I64.of(1))
    panel_tile(code, suffix, replace(p, beta=scalar.element.of(0), c=tile))
    is_fresh = p.beta.compare(scalar.equal, 0)
    with code.count(0, rows, sure=True) as i, code.count(0, columns, sure=True) as j:
        at = p.c.at.at(i * p.c.row + j * p.c.column)
        value = code.variable(sums[i * width + j])
        with code.when(~is_fresh):
            value.value = value.value.apply(scalar.join, at.value.apply(scalar.scale, p.beta))
        at.store(value.value)


@tiles.element_function("multiply_blocks", "")
def multiply_blocks(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """Computes the blocks of c from begin to end."""
    element, columns = tiles.ARITHMETIC[suffix].element, 2 * tiles.lanes_of(suffix)
    w = words_of(suffix).read(context)
    a_count, b_count = tiles.panels(w["m"], tiles.GROUP), tiles.panels(w["n"], columns)
    with code.count(begin, end, sure=True) as block:
        top, left = block // w["across"] * w["height"], block % w["across"] * w["width"]
        bottom, right = tiles.least(code, top + w["height"], a_count), tiles.least(code, left + w["width"], b_count)
        p, factor = code.variable(I64.of(0)), code.variable(w["beta"])
        with code.loop() as iteration:
            depth = tiles.least(code, w["k"] - p.value, w["depth"])
            a_packed = w["a_panels"].at(p.value * (a_count * tiles.GROUP))
            b_packed = w["b_panels"].at(p.value * (b_count * columns))
            a_there = w["a"].at(p.value * w["a_col"])
            b_there = w["b"].at(p.value * w["b_row"])
            with code.count(left, right, sure=True) as j:
                column = j * columns
                is_packed = j >= w["b_first"]
                b_panel = is_packed.choose(b_packed.at(j * (depth * columns)), b_there.at(column))
                b = tiles.Matrix(b_panel, is_packed.choose(I64.of(columns), w["b_row"]), I64.of(1))
                there = tiles.least(code, w["n"] - column, I64.of(columns))
                is_whole = (there == columns) & (w["c_col"] == 1)
                c_column = w["c"].at(column * w["c_col"])
                above = column - w["diagonal"]
                with code.count(top, bottom, sure=True) as i:
                    row = i * tiles.GROUP
                    with code.when(row + tiles.GROUP > above):  # else it is wholly above the diagonal
                        in_panel = i >= w["a_first"]
                        packed = a_packed.at(i * (depth * tiles.GROUP))
                        a_panel = in_panel.choose(packed, a_there.at(row * w["a_row"]))
                        steps = in_panel.choose(I64.of(1), w["a_row"]), in_panel.choose(I64.of(tiles.GROUP), w["a_col"])
                        rows = tiles.least(code, w["m"] - row, I64.of(tiles.GROUP))
                        c = tiles.Matrix(c_column.at(row * w["c_row"]), w["c_row"], w["c_col"])
                        a = tiles.Matrix(a_panel, *steps)
                        part = tiles.Product(rows, there, depth, w["alpha"], a, b, factor.value, c)
                        with code.when(is_whole & (rows == tiles.GROUP)):
                            panel_tile(code, suffix, part)
                        with code.otherwise():
                            edge(suffix)(code, *tiles.arguments(part, ("m", "n", "b_col")), rows, there)
            factor.value = element.of(1)
            p.value = p.value.apply("add nsw", depth)
            iteration.leave.unless(p.value < w["k"])


# The product. ---------------------------------------------------------------------------------------------------------


LAUNCHED: dict[str, type[Value]] = {"settings": Ptr, "triangle": I64, "depth": I64, "pass": I64, "memory": Ptr}


@tiles.product_function("slabs", extra=LAUNCHED)
def slabs(
    code: Code, suffix: str, p: tiles.Product, settings: Ptr, triangle: I64, depth: I64, pass_: I64, memory: Ptr
) -> None:
    """Computes c with the panels in the memory given, a slab of c and as much of the depth as there is room for at a
    time."""
    scalar, columns = tiles.ARITHMETIC[suffix], 2 * tiles.lanes_of(suffix)
    words = words_of(suffix)
    strides = {"a_row": p.a.row, "a_col": p.a.column, "b_row": p.b.row, "b_col": p.b.column, "c_row": p.c.row}
    context = words.write(code, {**strides, "depth": depth, "c_col": p.c.column, "alpha": p.alpha})

    def tell(values: Mapping[str, Any]) -> None:
        words.put(context, values)

    # Rows of a that are contiguous are read where they are; so are its columns, and rows of b, that stay in cache.
    limit, of_a = limits(), p.k * p.m
    by_rows = (p.a.column == 1) & of_a.below(limit.resident_a // scalar.align)
    a_stays = by_rows | ((p.a.row == 1) & of_a.below(limit.resident_columns // scalar.align))
    b_stays = (p.b.column == 1) & ~(p.k * p.n).above(limit.resident_b // scalar.align)
    with code.count(0, p.m, SLAB, sure=True) as i:
        m = tiles.least(code, p.m - i, I64.of(SLAB))
        a_first = a_stays.choose(m // tiles.GROUP, 0)
        tell({"m": m, "a_first": a_first})
        a_panels = tiles.panels(m, tiles.GROUP)
        with code.count(0, p.n, SLAB, sure=True) as j:
            n = tiles.least(code, p.n - j, I64.of(SLAB))
            b_first = b_stays.choose(n // columns, 0)
            b_panels = tiles.panels(n, columns)
            # About PARTS parts, of as many panels of a as stay in cache.
            wanted = tiles.most(code, a_panels * b_panels // PARTS, I64.of(LEAST_TILES))
            height = tiles.least(code, tiles.least(code, a_panels, I64.of(BLOCK_PANELS)), wanted)
            width = tiles.most(code, wanted // height, I64.of(1))
            across = tiles.panels(b_panels, width)
            blocks = across * tiles.panels(a_panels, height)
            diagonal = (triangle == 0).choose(I64.of(FAR), i - j)
            c = p.c.at.at(i * p.c.row + j * p.c.column)
            shape = {"height": height, "width": width, "across": across, "diagonal": diagonal}
            tell({"n": n, "b_first": b_first, "c": c, **shape})
            at, factor = code.variable(I64.of(0)), code.variable(p.beta)
            with code.loop() as iteration:
                length = tiles.least(code, p.k - at.value, pass_)
                a = p.a.at.at(i * p.a.row + at.value * p.a.column)
                b = p.b.at.at(at.value * p.b.row + j * p.b.column)
                b_memory = memory.at(a_panels * tiles.GROUP * length, scalar.element)
                tell({"k": length, "a": a, "b": b, "beta": factor.value})
                tell({"a_panels": memory, "b_panels": b_memory})
                packed = a_panels - a_first + (b_panels - b_first)
                share = tiles.most(code, PACKED // columns // length, I64.of(1))
                launch(code, pack_range(suffix).pointer(code), context, packed, share, settings)
                launch(code, multiply_blocks(suffix).pointer(code), context, blocks, I64.of(1), settings)
                factor.value = scalar.element.of(1)
                at.value = at.value.apply("add nsw", length)
                iteration.leave.unless(at.value < p.k)


@tiles.element_function("crew", "noinline optsize")
def team(code: Code, suffix: str, settings: Ptr, m: I64, n: I64, k: I64, team_settings: Ptr) -> None:
    """The settings of launches: threads only where the product is worth them."""
    threads, chunks, chunk, back_off = (
        settings.at(place, I64).load(I64) for place in (THREADS, LEAST_CHUNKS, LEAST_WORK, BACK_OFF_WORD)
    )
    work = m.to(F64) * n.to(F64) * k.to(F64) * (limits().work * tiles.ARITHMETIC[suffix].align)
    is_worthy = work >= (chunks * chunk).to(F64)
    team_settings.at(THREADS, I64).store(is_worthy.choose(threads, 1))
    team_settings.at(LEAST_CHUNKS, I64).store(I64.of(2))
    team_settings.at(BACK_OFF_WORD, I64).store(back_off)


@tiles.element_function("gc_blocks", "noinline optsize", is_internal=False)
def blocks(
    code: Code, suffix: str, settings: Ptr, triangle: I64, m: I64, n: I64, k: I64, alpha: Element, a: Elements,
    a_row: I64, a_col: I64, b: Elements, b_row: I64, b_col: I64, beta: Element, c: Elements, c_row: I64, c_col: I64,
) -> I64:  # fmt: skip
    """gc_blocks_<t>."""
    scalar, columns = tiles.ARITHMETIC[suffix], 2 * tiles.lanes_of(suffix)
    with code.when((c_col != 1) & (c_row == 1)):
        turned = n, m, k, alpha, b, b_col, b_row, a, a_col, a_row, beta, c, c_col, c_row
        code.ret(blocks(suffix)(code, settings, I64.of(0), *turned))
    # Depths of about the same length, in whole groups.
    depths = tiles.panels(k, limits().depth)
    depth = tiles.panels(tiles.panels(k, depths), tiles.GROUP) * tiles.GROUP
    a_panels = tiles.panels(tiles.least(code, m, I64.of(SLAB)), tiles.GROUP)
    b_panels = tiles.panels(tiles.least(code, n, I64.of(SLAB)), columns)
    lanes = a_panels * tiles.GROUP + b_panels * columns
    fitting = PANEL_BYTES // scalar.align // lanes // depth
    pass_ = tiles.least(code, tiles.most(code, fitting, I64.of(1)), depths) * depth
    length = lanes * pass_ * scalar.align + 64
    memory, is_mine = take_panels(code, length)
    is_missing = memory == NULL
    with code.when(~is_missing):
        launches = code.local(I64, SETTINGS_WORDS)
        team(suffix)(code, settings, m, n, k, launches)
        address = memory.integer()
        aligned = memory.at(((address + 63) & -64) - address)
        product = m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col
        slabs(suffix)(code, *product, launches, triangle, depth, pass_, aligned)
    leave_panels(code, memory, is_mine)
    return is_missing.to(I64, signed=False)
