"""Blocks of a matrix product in registers, as LLVM IR, and the arithmetic of each dtype.

In: the suffix of a dtype (f64, f32, i64, i32). Out: how LLVM spells its arithmetic; IR text of internal functions:

    tile    a block of c of a few rows and contiguous columns, its sums in registers while p runs
    part    the same of a block that may have fewer columns
"""

from __future__ import annotations

from graphc.codegen.llvm.target import has_avx512
from graphc.startup.record import record

AVX2 = {"f64": 4, "f32": 8, "i64": 4, "i32": 8}
AVX512 = {suffix: 2 * lanes for suffix, lanes in AVX2.items()}
"""Numbers in a register."""


@record()
class Arithmetic:
    """How LLVM spells a dtype, in full and in the names of intrinsics, and its operations. `times` and `plus` may be
    joined to one instruction, `gather` may be reordered as well; `scale` and `join` are rounded one by one."""

    element: str
    short: str
    align: int
    zero: str
    one: str
    equal: str
    times: str
    plus: str
    gather: str
    scale: str
    join: str


def _floats(element: str, short: str, align: int) -> Arithmetic:
    times, plus, gather = "fmul contract", "fadd contract", "fadd reassoc contract"
    return Arithmetic(element, short, align, "0.0", "1.0", "fcmp oeq", times, plus, gather, "fmul", "fadd")


def _integers(element: str, align: int) -> Arithmetic:
    return Arithmetic(element, element, align, "0", "1", "icmp eq", "mul", "add", "add", "mul", "add")


ARITHMETIC = {
    "f64": _floats("double", "f64", 8),
    "f32": _floats("float", "f32", 4),
    "i64": _integers("i64", 8),
    "i32": _integers("i32", 4),
}


WORDS = ("align", "zero", "one", "equal", "times", "plus", "gather", "scale", "join")


def lanes_of(suffix: str) -> int:
    """Numbers in a register of this machine."""
    return (AVX512 if has_avx512() else AVX2)[suffix]


def words_of(suffix: str) -> dict[str, str]:
    """What templates of IR text say of a dtype: s its suffix, t its name to LLVM, and its arithmetic."""
    own = ARITHMETIC[suffix]
    return {"s": suffix, "t": own.element, **{name: str(getattr(own, name)) for name in WORDS}}


def tile_ir(rows: int, width: int, suffix: str, *, part: bool = False) -> str:
    """tile_<rows>_<width>_<t>(k, alpha, a, a_row, a_col, b, b_row, beta, c, c_row): as many rows and contiguous columns
    of c, those of b contiguous too. part: `part` instead of `tile`, and one more argument says how many columns there
    are; beyond them nothing is read or written."""
    own = ARITHMETIC[suffix]
    element, vector = own.element, f"<{width} x {own.element}>"

    def lines(template: str) -> str:
        return "\n".join(template.replace("#", str(row)) for row in range(rows))

    def spread(name: str) -> str:
        return "\n".join(f"  {line}" for line in splat(f"%{name}", element, width))

    return f"""
define internal void @{"part" if part else "tile"}_{rows}_{width}_{suffix}(i64 %k, {element} %alpha, ptr noalias %a,
    i64 %a_row, i64 %a_col, ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c,
    i64 %c_row{", i64 %columns" if part else ""}) noinline optsize {{
start:
{_masking(width) if part else ""}
{lines("  %a#.offset = mul i64 %a_row, #")}
  %some = icmp sgt i64 %k, 0
  br i1 %some, label %loop, label %store
loop:
  %p = phi i64 [0, %start], [%p.next, %loop]
  %a.here = phi ptr [%a, %start], [%a.next, %loop]
  %b.here = phi ptr [%b, %start], [%b.next, %loop]
{lines(f"  %sum# = phi {vector} [zeroinitializer, %start], [%more#, %loop]")}
  %b.row = {_read("%b.here", width, suffix, part)}
{lines(f"  %a#.at = getelementptr {element}, ptr %a.here, i64 %a#.offset")}
{lines(f"  %a# = load {element}, ptr %a#.at")}
{lines(spread("a#"))}
{lines(f"  %product# = {own.times} {vector} %a#.all, %b.row")}
{lines(f"  %more# = {own.plus} {vector} %sum#, %product#")}
  %a.next = getelementptr {element}, ptr %a.here, i64 %a_col
  %b.next = getelementptr {element}, ptr %b.here, i64 %b_row
  %p.next = add nsw i64 %p, 1
  %end = icmp eq i64 %p.next, %k
  br i1 %end, label %store, label %loop
store:
{lines(f"  %total# = phi {vector} [zeroinitializer, %start], [%more#, %loop]")}
{spread("alpha")}
{spread("beta")}
{lines(f"  %scaled# = {own.scale} {vector} %total#, %alpha.all")}
{lines("  %c#.offset = mul i64 %c_row, #")}
{lines(f"  %c#.at = getelementptr {element}, ptr %c, i64 %c#.offset")}
  %fresh = {own.equal} {element} %beta, {own.zero}
  br i1 %fresh, label %write, label %update
write:
{lines("  " + _write("%scaled#", "%c#.at", width, suffix, part))}
  ret void
update:
{lines("  %c# = " + _read("%c#.at", width, suffix, part))}
{lines(f"  %kept# = {own.scale} {vector} %c#, %beta.all")}
{lines(f"  %new# = {own.join} {vector} %scaled#, %kept#")}
{lines("  " + _write("%new#", "%c#.at", width, suffix, part))}
  ret void
}}
"""


def splat(name: str, kind: str, lanes: int) -> list[str]:
    """Lines that fill a vector, <name>.all, with a number."""
    vector = f"<{lanes} x {kind}>"
    return [
        f"{name}.one = insertelement {vector} poison, {kind} {name}, i32 0",
        f"{name}.all = shufflevector {vector} {name}.one, {vector} poison, <{lanes} x i32> zeroinitializer",
    ]


def _masking(width: int) -> str:
    """Lines that say which of the columns are there: %there."""
    numbers = ", ".join(f"i64 {lane}" for lane in range(width))
    lines = [
        *splat("%columns", "i64", width),
        f"%there = icmp ult <{width} x i64> <{numbers}>, %columns.all",
    ]
    return "\n".join(f"  {line}" for line in lines)


def _read(address: str, width: int, suffix: str, part: bool) -> str:
    """The numbers at an address; of a part those that are there, 0 for the others."""
    own, vector = ARITHMETIC[suffix], f"<{width} x {ARITHMETIC[suffix].element}>"
    if not part:
        return f"load {vector}, ptr {address}, align {own.align}"
    rest = f"i32 {own.align}, <{width} x i1> %there, {vector} zeroinitializer"
    return f"call {vector} @llvm.masked.load.v{width}{own.short}.p0(ptr {address}, {rest})"


def _write(value: str, address: str, width: int, suffix: str, part: bool) -> str:
    """What writes numbers to an address; of a part those that are there."""
    own, vector = ARITHMETIC[suffix], f"<{width} x {ARITHMETIC[suffix].element}>"
    if not part:
        return f"store {vector} {value}, ptr {address}, align {own.align}"
    rest = f"ptr {address}, i32 {own.align}, <{width} x i1> %there"
    return f"call void @llvm.masked.store.v{width}{own.short}.p0({vector} {value}, {rest})"


def parts_ir(width: int, suffix: str) -> str:
    """What tiles with `part` need declared."""
    own = ARITHMETIC[suffix]
    vector, bits = f"<{width} x {own.element}>", f"<{width} x i1>"
    return f"""
declare {vector} @llvm.masked.load.v{width}{own.short}.p0(ptr, i32, {bits}, {vector})
declare void @llvm.masked.store.v{width}{own.short}.p0({vector}, ptr, i32, {bits})
"""
