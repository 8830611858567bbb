"""Blocks of a matrix product in registers, the arithmetic of each dtype, and functions of a product.

In: the suffix of a dtype (f64, f32, i64, i32). Out: LLVM's arithmetic for it; internal functions of LLVM IR:

    tile    a block of c of a few rows and contiguous columns, its sums in registers while p runs
    part    the same of a block that may have fewer columns
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

from graphc.codegen.gemm import ARGUMENTS, ENTRIES, PRODUCT_WORDS
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, Global, external, function, functions, gathered
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F32, F64, I32, I64, NULL, Bool, Elements, NoAlias, Ptr, Value, elements, vector
from graphc.codegen.threads.settings import BACK_OFF_WORD, LEAST_CHUNKS, LEAST_WORK, SETTINGS, SETTINGS_WORDS, THREADS
from graphc.startup.record import record

# --- the words that a product hands to its threads, and how it starts them --------------------------------------------
# In: the words that parts of a product need, by name. Out: `Words`, which writes and reads them; a function of LLVM IR:
#
#     share(body, context, count, size, work)
#         body(context, begin, end) for the numbers 0 .. count: on threads, `size` at a time, where that much work
#         (threads/settings.py) is worth them, else at once


class Words:
    """A record of words by name, eight bytes each, with their types."""

    def __init__(self, types: Mapping[str, type[Any]]) -> None:
        self.types = types
        self.places = {name: 8 * place for place, name in enumerate(types)}

    def read(self, context: Ptr) -> dict[str, Any]:
        """All words."""
        return {name: context.at(self.places[name]).load(type_) for name, type_ in self.types.items()}

    def write(self, code: Code, values: Mapping[str, Value]) -> Ptr:
        """A record on the stack."""
        context = code.local(I64, len(self.types))
        self.put(context, values)
        return context

    def put(self, context: Ptr, values: Mapping[str, Value]) -> None:
        """Some words of a record."""
        for name, value in values.items():
            context.at(self.places[name]).store(value)


ENTRY = Global("gc_blas", f"external global [{len(ENTRIES)} x ptr]")
SETTING = Global(SETTINGS, f"external global [{PRODUCT_WORDS} x i64]")


def find(code: Code, table: Ptr, place: int, finder: int) -> Ptr:
    """The address in a table of addresses. Where it is 0, its finder is called first, if there is one."""
    at = table.at(place, Ptr)
    address, done = code.variable(at.load(Ptr, order="acquire", align=8)), code.label("done")
    done.when(address.value != NULL)
    look = table.at(finder, Ptr).load(Ptr, order="acquire", align=8)
    done.when(look == NULL)
    look.call(None)
    address.value = at.load(Ptr, order="acquire", align=8)
    code.place(done)
    return address.value


@function("noinline optsize", name="pool")
def find_pool(code: Code) -> Ptr:
    """The function of the pool; null where there is none."""
    return find(code, ENTRY(code), ENTRIES.index("parallel"), ENTRIES.index("find parallel"))


@function("noinline optsize")
def share(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, work: F64) -> None:
    threads, least, chunk, back_off = (
        SETTING(code).at(place, I64).load(I64) for place in (THREADS, LEAST_CHUNKS, LEAST_WORK, BACK_OFF_WORD)
    )
    alone = code.label("alone")
    alone.unless((work >= (least * chunk).to(F64)) & (count > 1) & (threads > 1))
    launch = find_pool(code)
    alone.when(launch == NULL)
    words = code.local(I64, SETTINGS_WORDS)
    for place, value in ((THREADS, threads), (LEAST_CHUNKS, I64.of(2)), (BACK_OFF_WORD, back_off)):
        words.at(place, I64).store(value)
    launch.call(None, body, context, count, size, words)
    code.ret()
    code.place(alone)
    body.call(None, context, I64.of(0), count)


# --- arithmetic, and blocks in registers ------------------------------------------------------------------------------

R = TypeVar("R")


AVX2 = {"f64": 4, "f32": 8, "i64": 4, "i32": 8}
AVX512 = {suffix: 2 * lanes for suffix, lanes in AVX2.items()}
"""Numbers in a register."""


@record()
class Arithmetic:
    """The type of a dtype, its bytes, and LLVM's operations upon it. `times` and `plus` may be joined to one
    instruction; `scale` and `join` are rounded one by one."""

    element: type[Any]
    align: int
    equal: str
    times: str
    plus: str
    scale: str
    join: str


def _floats(element: type[Any], align: int) -> Arithmetic:
    return Arithmetic(element, align, "fcmp oeq", "fmul contract", "fadd contract", "fmul", "fadd")


def _integers(element: type[Any], align: int) -> Arithmetic:
    return Arithmetic(element, align, "icmp eq", "mul", "add", "mul", "add")


ARITHMETIC = {"f64": _floats(F64, 8), "f32": _floats(F32, 4), "i64": _integers(I64, 8), "i32": _integers(I32, 4)}


def lanes_of(suffix: str) -> int:
    """Numbers in a register of this machine."""
    return (AVX512 if has_avx512() else AVX2)[suffix]


@record(eq=False)
class Matrix:
    """A matrix in memory: its address, and the distances between rows and between columns."""

    at: Elements
    row: I64
    column: I64

    def part(self, row: I64 | int, column: I64 | int) -> Matrix:
        """The part that begins with this row and column."""
        at = self.at if isinstance(row, int) else self.at.at(row * self.row)
        at = at if isinstance(column, int) else at.at(column * self.column if self.column.code else column)
        return Matrix(at, self.row, self.column)

    def turned(self) -> Matrix:
        """The same with rows for columns."""
        return Matrix(self.at, self.column, self.row)


@record(eq=False)
class Product:
    """The operands of a product: c = alpha a b + beta c, of m rows and n columns, each a sum of k terms."""

    m: I64
    n: I64
    k: I64
    alpha: Any
    a: Matrix
    b: Matrix
    beta: Any
    c: Matrix


WORDS = ARGUMENTS["gemm"].split()
ROWS = ("b_col", "c_col")
"""The arguments that are left out where the columns of b and c are contiguous."""


def element_function(
    name: str, attributes: str, *, is_internal: bool = True
) -> Callable[[Callable[..., R]], Callable[[str], Function[..., R]]]:
    """Makes functions of numbers of any dtype, one for each suffix (llvm/functions.py, `functions`)."""
    return functions(name, attributes, lambda suffix: ARITHMETIC[suffix].element, is_internal=is_internal)


def product_function(
    name: str,
    without: Sequence[str] = (),
    extra: dict[str, type[Value]] | None = None,
    returns: type[Value] | None = None,
) -> Callable[[Callable[..., Any]], Callable[[str], Function[..., Any]]]:
    """Makes functions of a product, one for each suffix of a dtype, but for some arguments, and with some more; a
    column that is left out is 1, and sizes are then of no account. One that returns something is exported.

        @product_function("tiles", ROWS)
        def tiles(code: Code, suffix: str, p: Product) -> None: ...

        tiles("f64")(code, *arguments(p, ROWS))
    """

    def make(body: Callable[..., Any]) -> Callable[[str], Function[..., Any]]:
        @cache
        @wraps(body)
        def of(suffix: str) -> Function[..., Any]:
            element = ARITHMETIC[suffix].element
            types = dict.fromkeys(("alpha", "beta"), element) | dict.fromkeys("abc", elements(element, "noalias"))
            params = {each: types.get(each, I64) for each in WORDS if each not in without}

            def write(code: Code, *values: Any) -> Any:
                word = dict.fromkeys(without, I64.of(1)) | dict(zip(params, values, strict=False))
                a, b, c = (Matrix(word[each], word[f"{each}_row"], word[f"{each}_col"]) for each in "abc")
                product = Product(word["m"], word["n"], word["k"], word["alpha"], a, b, word["beta"], c)
                return body(code, suffix, product, *values[len(params) :])

            exported, known = returns is not None, params | (extra or {})
            return Function(f"{name}_{suffix}", returns, known, write, "noinline optsize", is_internal=not exported)

        return of

    return make


def arguments(product: Product, without: Sequence[str] = ()) -> list[Value]:
    """The arguments of a function of a product."""
    p, matrices = product, ((each.at, each.row, each.column) for each in (product.a, product.b, product.c))
    a, b, c = matrices
    values = p.m, p.n, p.k, p.alpha, *a, *b, p.beta, *c
    return [value for name, value in zip(WORDS, values, strict=True) if name not in without]


TILE = ("m", "n", *ROWS)
"""The operands that tiles do without."""
LATENCY = 8
"""Registers with sums that keep the processor's multipliers busy: four cycles of two additions."""


def panels_of(width: int, suffix: str) -> int:
    """The registers that hold so many columns."""
    return -(-width // lanes_of(suffix))


def tile(rows: int, width: int, suffix: str, *, part: bool = False) -> Function[..., None]:
    """tile_<rows>_<width>_<t>(k, alpha, a, a_row, a_col, b, b_row, beta, c, c_row): as many rows and contiguous columns
    of c, those of b contiguous too. part: `part` instead of `tile`, and one more argument says how many columns there
    are; beyond them nothing is read or written. A tile of few registers has several sums of each, of every second term
    or of every fourth, since one addition has to wait for another."""
    scalar = ARITHMETIC[suffix]
    phases = max(1, LATENCY // (rows * panels_of(width, suffix)))
    name = f"{'part' if part else 'tile'}_{rows}_{width}"

    @product_function(name, TILE, {"columns": I64} if part else None)
    def write(code: Code, suffix: str, product: Product, count: I64 | None = None) -> None:
        there = None if count is None else first_lanes(count, width)
        columns, a, b = Columns(suffix, width, there), product.a, product.b
        sums = [[code.variable(columns.register.of(0)) for _ in range(rows)] for _ in range(phases)]
        a_here, b_here = code.variable(a.at), code.variable(b.at)
        offsets = [a.row * row for row in range(rows)]

        def add(totals: Sequence[Variable[Any]]) -> None:
            b_row = columns.read(code, b_here.value)
            for offset, total in zip(offsets, totals, strict=True):
                number = a_here.value[offset]
                total.value = total.value.apply(scalar.plus, number.spread(width).apply(scalar.times, b_row))
            a_here.value = a_here.value.at(a.column)
            b_here.value = b_here.value.at(b.row)

        whole = product.k - product.k % phases
        with code.when(whole > 0), code.count(0, whole, phases, sure=True):
            for totals in sums:
                add(totals)
        if phases > 1:
            with code.count(whole, product.k):
                add(sums[0])
        totals = []
        for first, *others in zip(*sums, strict=True):
            total = first.value
            for other in others:
                total = total.apply(scalar.join, other.value)
            totals.append(total)
        columns.finish(code, totals, product)

    return write(suffix)


def first_lanes(count: I64 | I32, lanes: int) -> Bool:
    """The mask of the first `count` lanes of a vector."""
    return count.spread(lanes).compare("icmp ugt", vector(type(count), lanes).each(range(lanes)))


class Columns:
    """Contiguous columns, as many as a vector has lanes. there: which there are, where some may be missing: those are
    0, and not written."""

    def __init__(self, suffix: str, width: int, there: Bool | None = None) -> None:
        self.scalar = ARITHMETIC[suffix]
        self.register = vector(self.scalar.element, width)
        self.there = there
        self.align = I32.of(self.scalar.align)

    def finish(self, code: Code, sums: Sequence[Any], p: Product) -> None:
        """Write rows of c, of whose products these are the sums."""
        scalar, width = self.scalar, self.register.lanes
        new = [code.variable(total.apply(scalar.scale, p.alpha.spread(width))) for total in sums]
        places = [p.c.at.at(p.c.row * row) for row in range(len(sums))]
        ready = code.label("ready")
        ready.when(p.beta.compare(scalar.equal, 0))
        for value, place in zip(new, places, strict=True):
            kept = self.read(code, place).apply(scalar.scale, p.beta.spread(width))
            value.value = value.value.apply(scalar.join, kept)
        code.place(ready)
        for value, place in zip(new, places, strict=True):
            self.write(code, value.value, place)

    def read(self, code: Code, at: Ptr, places: Any = None) -> Any:
        """The columns from an address on, or at these places from there."""
        if places is not None:
            return gathered(code, self.register, at, places, self.scalar.align, self.there)
        if self.there is None:
            return at.load(self.register, align=self.scalar.align)
        name = f"llvm.masked.load.{self.register.vectors}.p0"
        load = external(name, self.register, Ptr, I32, type(self.there), self.register)
        return load(code, at, self.align, self.there, self.register.of(0))

    def write(self, code: Code, value: Any, at: Ptr) -> None:
        if self.there is None:
            at.store(value, align=self.scalar.align)
            return
        name = f"llvm.masked.store.{self.register.vectors}.p0"
        external(name, None, self.register, Ptr, I32, type(self.there))(code, value, at, self.align, self.there)


# --- packing ----------------------------------------------------------------------------------------------------------
# Numbers of a matrix brought together for tiles.
#
# In: the suffix of a dtype (f64, f32, i64, i32). Out: internal functions of LLVM IR. A lane is a row of the left
# operand of a product, or a column of the right one.
#
#     pack            a group of lanes, one number of each after the other
#     pack_panels     panels of lanes, in the order in which tiles read them


GROUP = 8
"""Lanes that are packed at a time."""

least = external("llvm.smin.i64", I64, I64, I64)
most = external("llvm.smax.i64", I64, I64, I64)


@element_function("pack", "noinline")
def pack(
    code: Code, suffix: str, lanes: I64, depth: I64, source: NoAlias, lane_step: I64, depth_step: I64, target: NoAlias,
    lead: I64,
) -> None:  # fmt: skip
    """pack_<t>(lanes, depth, from, lane_step, depth_step, to, lead). Copies `lanes` lanes, at most GROUP, of `depth`
    numbers each: number p of lane i goes to place p * lead + i of the target. Lanes that are missing are any
    numbers."""
    scalar = ARITHMETIC[suffix]
    element, group = scalar.element, vector(scalar.element, GROUP)
    is_full = lanes == GROUP
    with code.when(is_full & (lane_step == 1) & (depth > 0)):
        with code.count(0, depth, sure=True) as p:
            numbers = source.at(p * depth_step).load(group, align=scalar.align)
            target.at(p * lead).store(numbers, align=scalar.align)
        code.ret()
    turned = code.variable(I64.of(0))
    # Lanes that are missing there are copies of the last: what is made of them is written nowhere.
    with code.when((lanes > 0) & (depth_step == 1) & (depth >= GROUP)), code.loop() as iteration:
        here = turned.value
        steps = [lane_step * least(code, lanes - 1, I64.of(lane)) for lane in range(GROUP)]
        _transpose(suffix, source.at(here), steps, target.at(here * lead), lead)
        turned.value += GROUP
        iteration.leave.unless(turned.value + GROUP <= depth)
    with code.count(turned.value, depth) as r:
        from_, to = source.at(r * depth_step), target.at(r * lead)
        with code.count(0, GROUP, sure=True) as i:
            number = code.variable(element.of(0))
            with code.when(i < lanes):
                number.value = from_[i * lane_step]
            to[i] = number.value


def _transpose(suffix: str, source: Elements, steps: Sequence[I64], target: Elements, lead: I64) -> None:
    """Eight rows of eight numbers, which begin at these distances, to columns `lead` apart."""
    scalar, group = ARITHMETIC[suffix], vector(ARITHMETIC[suffix].element, GROUP)
    rows = [source.at(step).load(group, align=scalar.align) for step in steps]
    for distance in (1, 2, 4):
        places = [
            [(lane & ~distance) + low + (GROUP if lane & distance else 0) for lane in range(GROUP)]
            for low in (0, distance)
        ]
        rows = [rows[row & ~distance].pick(rows[row | distance], places[row & distance > 0]) for row in range(GROUP)]
    for number, column in enumerate(rows):
        target.at(lead * number).store(column, align=scalar.align)


def panels(lanes: I64, size: I64 | int) -> I64:
    """The number of panels of `size` lanes that hold `lanes`."""
    return (lanes + size - 1) // size


@element_function("pack_panels", "noinline")
def pack_panels(
    code: Code, suffix: str, begin: I64, end: I64, size: I64, depth: I64, step: I64, lead: I64, source: Elements,
    lane_step: I64, depth_step: I64, target: Elements,
) -> None:  # fmt: skip
    """pack_panels_<t>(begin, end, size, depth, step, lead, source, lane_step, depth_step, target): the panels of `lead`
    lanes from begin to end, of `depth` numbers each, `step` of them at a time. Packs the panels from begin to end of
    one operand, GROUP numbers of each lane at a time where its lanes stand apart. Where they stand beside each
    other, a number of all lanes at a time, so that memory is read in order."""
    scalar = ARITHMETIC[suffix]
    group = vector(scalar.element, GROUP)
    with code.when(begin >= end):
        code.ret()
    all_ = panels(size, lead) * lead
    beside = (lane_step == 1).choose(least(code, end, size // lead), begin)
    p = code.variable(I64.of(0))
    with code.loop() as iteration:
        height = least(code, depth - p.value, step)
        from_, to = source.at(p.value * depth_step), target.at(p.value * all_)
        numbers = height * lead
        with code.when(begin < beside), code.count(0, height, sure=True) as r:
            r_from, r_to = from_.at(r * depth_step), to.at(r * lead)
            with code.count(begin, beside, sure=True) as q:
                q_from, q_to = r_from.at(q * lead), r_to.at(q * numbers)
                with code.count(0, lead, GROUP, sure=True) as i:
                    q_to.at(i).store(q_from.at(i).load(group, align=scalar.align), align=scalar.align)
        # what is left, by groups of lanes; those beyond the last are read nowhere
        with code.count(beside * lead, end * lead, GROUP) as g:
            lanes = most(code, least(code, size - g, I64.of(GROUP)), I64.of(0))
            inside = (lanes == 0).choose(I64.of(0), g)
            place = (g // lead) * numbers + g % lead
            strides = from_.at(inside * lane_step), lane_step, depth_step, to.at(place), lead
            pack(suffix)(code, lanes, height, *strides)
        p.value += height
        iteration.leave.unless(p.value < depth)
