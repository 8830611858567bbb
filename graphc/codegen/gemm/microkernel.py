"""Blocks of a matrix product in registers, the arithmetic of each dtype, and functions of a product.

In: the suffix of a dtype (f64, f32, i64, i32). Out: LLVM's arithmetic for it; internal functions of LLVM IR:

    tile    a block of c of a few rows and contiguous columns, its sums in registers while p runs
    part    the same of a block that may have fewer columns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.codegen.gemm.prototypes import ARGUMENTS
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F32, F64, I32, I64, Bool, NoAlias, Ptr, Value, vector
from graphc.startup.record import record

AVX2 = {"f64": 4, "f32": 8, "i64": 4, "i32": 8}
AVX512 = {suffix: 2 * lanes for suffix, lanes in AVX2.items()}
"""Numbers in a register."""


@record()
class Arithmetic:
    """The type of a dtype, its bytes, and LLVM's operations upon it. `times` and `plus` may be joined to one
    instruction; `scale` and `join` are rounded one by one."""

    kind: type[Any]
    align: int
    equal: str
    times: str
    plus: str
    scale: str
    join: str


def _floats(kind: type[Any], align: int) -> Arithmetic:
    return Arithmetic(kind, align, "fcmp oeq", "fmul contract", "fadd contract", "fmul", "fadd")


def _integers(kind: type[Any], align: int) -> Arithmetic:
    return Arithmetic(kind, align, "icmp eq", "mul", "add", "mul", "add")


ARITHMETIC = {
    "f64": _floats(F64, 8),
    "f32": _floats(F32, 4),
    "i64": _integers(I64, 8),
    "i32": _integers(I32, 4),
}


def lanes_of(suffix: str) -> int:
    """Numbers in a register of this machine."""
    return (AVX512 if has_avx512() else AVX2)[suffix]


@record(eq=False)
class Matrix:
    """A matrix in memory: its address, and the distances between rows and between columns."""

    at: Ptr
    row: I64
    column: I64

    def part(self, row: I64 | int, column: I64 | int, kind: type[Any]) -> Matrix:
        """The part that begins with this row and column."""
        at = self.at if isinstance(row, int) else self.at.at(row * self.row, kind)
        at = at if isinstance(column, int) else at.at(column * self.column if self.column.code else column, kind)
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


def product_function(
    name: str,
    suffix: str,
    without: Sequence[str] = (),
    more: dict[str, type[Value]] | None = None,
    returns: type[Value] | None = None,
) -> Callable[[Callable[..., Any]], Function[..., Any]]:
    """Makes a function of a product, but for some arguments, and with some more; a column that is left out is 1, and
    sizes are then of no account. One that returns something is exported."""
    kinds = dict.fromkeys(("alpha", "beta"), ARITHMETIC[suffix].kind) | dict.fromkeys("abc", NoAlias)
    params = {each: kinds.get(each, I64) for each in WORDS if each not in without}

    def make(body: Callable[..., Any]) -> Function[..., Any]:
        def write(code: Code, *values: Any) -> Any:
            word = dict.fromkeys(without, I64.of(1)) | dict(zip(params, values, strict=False))
            a, b, c = (Matrix(word[each], word[f"{each}_row"], word[f"{each}_col"]) for each in "abc")
            product = Product(word["m"], word["n"], word["k"], word["alpha"], a, b, word["beta"], c)
            return body(code, product, *values[len(params) :])

        internal = returns is None
        return Function(name, returns, params | (more or {}), write, "noinline optsize", is_internal=internal)

    return make


def arguments(product: Product, without: Sequence[str] = ()) -> list[Value]:
    """The arguments of a function of a product."""
    p, matrices = product, ((each.at, each.row, each.column) for each in (product.a, product.b, product.c))
    a, b, c = matrices
    values = p.m, p.n, p.k, p.alpha, *a, *b, p.beta, *c
    return [value for name, value in zip(WORDS, values, strict=True) if name not in without]


TILE = ("m", "n", *ROWS)
"""The operands that tiles do without."""


def tile(rows: int, width: int, suffix: str, *, part: bool = False) -> Function[..., None]:
    """tile_<rows>_<width>_<t>(k, alpha, a, a_row, a_col, b, b_row, beta, c, c_row): as many rows and contiguous columns
    of c, those of b contiguous too. part: `part` instead of `tile`, and one more argument says how many columns there
    are; beyond them nothing is read or written."""
    own = ARITHMETIC[suffix]
    name = f"{'part' if part else 'tile'}_{rows}_{width}_{suffix}"

    @product_function(name, suffix, TILE, {"columns": I64} if part else None)
    def write(code: Code, product: Product, count: I64 | None = None) -> None:
        there = None if count is None else first_lanes(count, width)
        columns, a, b, c = Columns(suffix, width, there), product.a, product.b, product.c
        sums = [code.variable(columns.kind.of(0)) for _ in range(rows)]
        a_here, b_here, p = code.variable(a.at), code.variable(b.at), code.variable(I64.of(0))
        apart = [a.row * row for row in range(rows)]
        with code.when(product.k > 0), code.loop() as iteration:
            b_row = columns.read(code, b_here.value)
            for offset, total in zip(apart, sums, strict=True):
                number = a_here.value.at(offset, own.kind).load(own.kind)
                total.value = total.value.apply(own.plus, number.spread(width).apply(own.times, b_row))
            a_here.value = a_here.value.at(a.column, own.kind)
            b_here.value = b_here.value.at(b.row, own.kind)
            p.value = p.value.apply("add nsw", 1)
            iteration.leave.when(p.value == product.k)
        new = [code.variable(total.value.apply(own.scale, product.alpha.spread(width))) for total in sums]
        places = [c.at.at(c.row * row, own.kind) for row in range(rows)]
        ready = code.label("ready")
        ready.when(product.beta.compare(own.equal, 0))
        for value, place in zip(new, places, strict=True):
            kept = columns.read(code, place).apply(own.scale, product.beta.spread(width))
            value.value = value.value.apply(own.join, kept)
        code.place(ready)
        for value, place in zip(new, places, strict=True):
            columns.write(code, value.value, place)

    return write


def first_lanes(count: I64 | I32, lanes: int) -> Bool:
    """The mask of the first `count` lanes of a vector."""
    return count.spread(lanes).compare("icmp ugt", vector(type(count), lanes).each(range(lanes)))  # type: ignore[no-any-return]


class Columns:
    """Contiguous columns, as many as a vector has lanes. there: which there are, where some may be missing: those are
    0, and not written."""

    def __init__(self, suffix: str, width: int, there: Bool | None = None) -> None:
        self.own = ARITHMETIC[suffix]
        self.kind = vector(self.own.kind, width)
        self.there = there
        self.align = I32.of(self.own.align)

    def read(self, code: Code, at: Ptr) -> Any:
        if self.there is None:
            return at.load(self.kind, align=self.own.align)
        name = f"llvm.masked.load.{self.kind.vectors}.p0"
        load = external(name, self.kind, Ptr, I32, type(self.there), self.kind)
        return load(code, at, self.align, self.there, self.kind.of(0))

    def write(self, code: Code, value: Any, at: Ptr) -> None:
        if self.there is None:
            at.store(value, align=self.own.align)
            return
        name = f"llvm.masked.store.{self.kind.vectors}.p0"
        external(name, None, self.kind, Ptr, I32, type(self.there))(code, value, at, self.align, self.there)
