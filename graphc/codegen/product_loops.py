"""Matrix products as loops in LLVM IR, for any dtype and layout: what runs where BLAS does not.

In: the suffix of a dtype (f64, f32, i64, i32). Out: IR text of internal functions:

    loops    c = alpha a b + beta c by the best of the following
    tiles    blocks of a few rows and contiguous columns of c, in registers while p runs; b is read by rows
    packed   tiles over copies of parts of a b whose rows are not contiguous
    dots     an inner product for each element of c: any layout
    vector   y = alpha a x + beta y: four rows of a at a time, or four columns where these are contiguous
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from graphc.codegen.target import has_avx512
from graphc.record import record

PANEL_ROWS = 256
PANEL_COLUMNS = 32
"""The part of a matrix that is copied to the stack at a time: whole tiles."""
AVX2 = {"f64": 4, "f32": 8, "i64": 4, "i32": 8}
AVX512 = {suffix: 2 * lanes for suffix, lanes in AVX2.items()}
"""Numbers in a register."""
WIDE_ROWS = {False: (4, 1), True: (8, 4, 1)}
"""Rows of the tiles that are two registers wide: their sums fill half of the 16 registers that there are without
AVX-512, and of the 32 with it."""
NARROW_ROWS = (8, 4, 1)
"""Rows of the tiles for what is left, of one register at most: enough to keep both multipliers busy."""


@record()
class Arithmetic:
    """How LLVM spells a dtype and its operations. `times` and `plus` may be joined to one instruction, `gather` may be
    reordered as well; `scale` and `join` are rounded one by one."""

    element: str
    align: int
    zero: str
    one: str
    equal: str
    times: str
    plus: str
    gather: str
    scale: str
    join: str


def _floats(element: str, align: int) -> Arithmetic:
    plus = "fadd contract"
    return Arithmetic(
        element, align, "0.0", "1.0", "fcmp oeq", "fmul contract", plus, "fadd reassoc contract", "fmul", "fadd"
    )


def _integers(element: str, align: int) -> Arithmetic:
    return Arithmetic(element, align, "0", "1", "icmp eq", "mul", "add", "add", "mul", "add")


ARITHMETIC = {
    "f64": _floats("double", 8),
    "f32": _floats("float", 4),
    "i64": _integers("i64", 8),
    "i32": _integers("i32", 4),
}


def loops_ir(suffix: str) -> str:
    """The functions of one dtype, all internal, so that LLVM drops what nothing calls."""
    own, large = ARITHMETIC[suffix], has_avx512()
    lanes = (AVX512 if large else AVX2)[suffix]
    wide, narrow = (2 * lanes,), tuple(1 << power for power in reversed(range(lanes.bit_length())))
    words = {
        "s": suffix,
        "t": own.element,
        "panel": PANEL_ROWS * PANEL_COLUMNS,
        "panel_rows": PANEL_ROWS,
        "panel_columns": PANEL_COLUMNS,
        "widest": 2 * lanes,
        **{name: getattr(own, name) for name in WORDS},
    }
    parts: list[str] = []
    for name, blocks, widths in (("wide", WIDE_ROWS[large], wide), ("narrow", NARROW_ROWS, narrow)):
        parts += [_tile_ir(rows, width, suffix) for rows in blocks for width in widths]
        parts += [_strip_ir(name, rows, widths, suffix) for rows in blocks]
        parts.append(_columns_ir(name, blocks, suffix))
    return "".join([*parts, Template(LOOPS).substitute(words)])


WORDS = ("align", "zero", "one", "equal", "times", "plus", "gather", "scale", "join")


def _tile_ir(rows: int, width: int, suffix: str) -> str:
    """A block of c of so many rows and contiguous columns, its sums in registers while p runs."""
    own, each = ARITHMETIC[suffix], range(rows)
    element, align, vector = own.element, own.align, f"<{width} x {own.element}>"

    def spread(name: str) -> str:
        """Lines that fill the vector %<name>.all with the number %<name>."""
        return f"""
  %{name}.one = insertelement {vector} poison, {element} %{name}, i32 0
  %{name}.all = shufflevector {vector} %{name}.one, {vector} poison, <{width} x i32> zeroinitializer"""

    def lines(template: str) -> str:
        return "\n".join(template.replace("#", str(row)) for row in each)

    return f"""
define internal void @tile_{rows}_{width}_{suffix}(i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:
{lines("  %a#.offset = mul i64 %a_row, #")}
  %some = icmp sgt i64 %k, 0
  br i1 %some, label %loop, label %store
loop:
  %p = phi i64 [0, %start], [%p.next, %loop]
  %a.here = phi ptr [%a, %start], [%a.next, %loop]
  %b.here = phi ptr [%b, %start], [%b.next, %loop]
{lines(f"  %sum# = phi {vector} [zeroinitializer, %start], [%more#, %loop]")}
  %b.row = load {vector}, ptr %b.here, align {align}
{lines(f"  %a#.at = getelementptr {element}, ptr %a.here, i64 %a#.offset")}
{lines(f"  %a# = load {element}, ptr %a#.at")}{lines(spread("a#"))}
{lines(f"  %product# = {own.times} {vector} %a#.all, %b.row")}
{lines(f"  %more# = {own.plus} {vector} %sum#, %product#")}
  %a.next = getelementptr {element}, ptr %a.here, i64 %a_col
  %b.next = getelementptr {element}, ptr %b.here, i64 %b_row
  %p.next = add nsw i64 %p, 1
  %end = icmp eq i64 %p.next, %k
  br i1 %end, label %store, label %loop
store:
{lines(f"  %total# = phi {vector} [zeroinitializer, %start], [%more#, %loop]")}{spread("alpha")}{spread("beta")}
{lines(f"  %scaled# = {own.scale} {vector} %total#, %alpha.all")}
{lines("  %c#.offset = mul i64 %c_row, #")}
{lines(f"  %c#.at = getelementptr {element}, ptr %c, i64 %c#.offset")}
  %fresh = {own.equal} {element} %beta, {own.zero}
  br i1 %fresh, label %write, label %update
write:
{lines(f"  store {vector} %scaled#, ptr %c#.at, align {align}")}
  ret void
update:
{lines(f"  %c# = load {vector}, ptr %c#.at, align {align}")}
{lines(f"  %kept# = {own.scale} {vector} %c#, %beta.all")}
{lines(f"  %new# = {own.join} {vector} %scaled#, %kept#")}
{lines(f"  store {vector} %new#, ptr %c#.at, align {align}")}
  ret void
}}
"""


def _strip_ir(name: str, rows: int, widths: Sequence[int], suffix: str) -> str:
    """So many whole rows of c: columns by the widest tile while they last, then by the narrower ones in turn."""
    element = ARITHMETIC[suffix].element
    before = ["start", *(f"by{width}" for width in widths)]
    after = [*(f"by{width}" for width in widths[1:]), "done"]
    blocks = "".join(
        f"""
by{width}:
  %j{width} = phi i64 [{"0" if previous == "start" else previous.replace("by", "%j")}, %{previous}],
                 [%j{width}.next, %tile{width}]
  %left{width} = sub i64 %n, %j{width}
  %more{width} = icmp sge i64 %left{width}, {width}
  br i1 %more{width}, label %tile{width}, label %{following}
tile{width}:
  %b{width} = getelementptr {element}, ptr %b, i64 %j{width}
  %c{width} = getelementptr {element}, ptr %c, i64 %j{width}
  call void @tile_{rows}_{width}_{suffix}(i64 %k, {element} %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b{width},
                                i64 %b_row, {element} %beta, ptr %c{width}, i64 %c_row)
  %j{width}.next = add nsw i64 %j{width}, {width}
  br label %by{width}
"""
        for width, previous, following in zip(widths, before[:-1], after, strict=True)
    )
    return f"""
define internal void @{name}_{rows}_{suffix}(i64 %n, i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:
  br label %by{widths[0]}
{blocks}
done:
  ret void
}}
"""


def _columns_ir(name: str, blocks: Sequence[int], suffix: str) -> str:
    """All rows of c, by blocks of so many: the larger ones while they last."""
    element = ARITHMETIC[suffix].element
    before = ["start", *(f"by{rows}" for rows in blocks)]
    after = [*(f"by{rows}" for rows in blocks[1:]), "done"]
    loops = "".join(
        f"""
by{rows}:
  %i{rows} = phi i64 [{"0" if previous == "start" else previous.replace("by", "%i")}, %{previous}],
                 [%i{rows}.next, %block{rows}]
  %i{rows}.next = add nsw i64 %i{rows}, {rows}
  %more{rows} = icmp sle i64 %i{rows}.next, %m
  br i1 %more{rows}, label %block{rows}, label %{following}
block{rows}:
  %a{rows}.offset = mul i64 %i{rows}, %a_row
  %c{rows}.offset = mul i64 %i{rows}, %c_row
  %a{rows} = getelementptr {element}, ptr %a, i64 %a{rows}.offset
  %c{rows} = getelementptr {element}, ptr %c, i64 %c{rows}.offset
  call void @{name}_{rows}_{suffix}(i64 %n, i64 %k, {element} %alpha, ptr %a{rows}, i64 %a_row, i64 %a_col, ptr %b,
      i64 %b_row, {element} %beta, ptr %c{rows}, i64 %c_row)
  br label %by{rows}
"""
        for rows, previous, following in zip(blocks, before[:-1], after, strict=True)
    )
    return f"""
define internal void @{name}_{suffix}(i64 %m, i64 %n, i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row,
    i64 %a_col, ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:
  br label %by{blocks[0]}
{loops}
done:
  ret void
}}
"""


LOOPS = """
; The product where the columns of b and c are contiguous.
define internal void @tiles_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %left = urem i64 %n, $widest
  %done = sub i64 %n, %left
  %some = icmp sgt i64 %done, 0
  br i1 %some, label %wide, label %look
wide:
  call void @wide_$s(i64 %m, i64 %done, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, $t %beta,
      ptr %c, i64 %c_row)
  br label %look
look:
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %narrow, label %end
narrow:
  %b.left = getelementptr $t, ptr %b, i64 %done
  %c.left = getelementptr $t, ptr %c, i64 %done
  call void @narrow_$s(i64 %m, i64 %left, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b.left, i64 %b_row,
      $t %beta, ptr %c.left, i64 %c_row)
  br label %end
end:
  ret void
}

define internal $t @dot_$s(i64 %k, ptr noalias %a, i64 %a_step, ptr noalias %b, i64 %b_step) noinline {
start:
  %some = icmp sgt i64 %k, 0
  br i1 %some, label %look, label %none
none:
  ret $t $zero
look:
  %a.unit = icmp eq i64 %a_step, 1
  %b.unit = icmp eq i64 %b_step, 1
  %unit = and i1 %a.unit, %b.unit
  br i1 %unit, label %straight, label %strided
straight:
  %p = phi i64 [0, %look], [%p.next, %straight]
  %sum = phi $t [$zero, %look], [%more, %straight]
  %ap.at = getelementptr $t, ptr %a, i64 %p
  %bp.at = getelementptr $t, ptr %b, i64 %p
  %ap = load $t, ptr %ap.at
  %bp = load $t, ptr %bp.at
  %product = $times $t %ap, %bp
  %more = $gather $t %sum, %product
  %p.next = add nsw i64 %p, 1
  %end = icmp eq i64 %p.next, %k
  br i1 %end, label %straight.done, label %straight
straight.done:
  ret $t %more
strided:
  %q = phi i64 [0, %look], [%q.next, %strided]
  %total = phi $t [$zero, %look], [%grown, %strided]
  %aq.offset = mul i64 %q, %a_step
  %bq.offset = mul i64 %q, %b_step
  %aq.at = getelementptr $t, ptr %a, i64 %aq.offset
  %bq.at = getelementptr $t, ptr %b, i64 %bq.offset
  %aq = load $t, ptr %aq.at
  %bq = load $t, ptr %bq.at
  %term = $times $t %aq, %bq
  %grown = $plus $t %total, %term
  %q.next = add nsw i64 %q, 1
  %last = icmp eq i64 %q.next, %k
  br i1 %last, label %strided.done, label %strided
strided.done:
  ret $t %grown
}

; The product of any layout, an inner product for each element of c.
define internal void @dots_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row,
                              i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
  %fresh = $equal $t %beta, $zero
  br label %rows
rows:
  %i = phi i64 [0, %start], [%i.next, %row.end]
  %i.more = icmp slt i64 %i, %m
  br i1 %i.more, label %row, label %done
row:
  %a.offset = mul i64 %i, %a_row
  %a.here = getelementptr $t, ptr %a, i64 %a.offset
  %c.offset = mul i64 %i, %c_row
  %c.here = getelementptr $t, ptr %c, i64 %c.offset
  br label %columns
columns:
  %j = phi i64 [0, %row], [%j.next, %write]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %element, label %row.end
element:
  %b.offset = mul i64 %j, %b_col
  %b.here = getelementptr $t, ptr %b, i64 %b.offset
  %dot = call $t @dot_$s(i64 %k, ptr %a.here, i64 %a_col, ptr %b.here, i64 %b_row)
  %scaled = $scale $t %dot, %alpha
  %place = mul i64 %j, %c_col
  %at = getelementptr $t, ptr %c.here, i64 %place
  br i1 %fresh, label %write, label %update
update:
  %old = load $t, ptr %at
  %kept = $scale $t %old, %beta
  %updated = $join $t %scaled, %kept
  br label %write
write:
  %value = phi $t [%scaled, %element], [%updated, %update]
  store $t %value, ptr %at
  %j.next = add nsw i64 %j, 1
  br label %columns
row.end:
  %i.next = add nsw i64 %i, 1
  br label %rows
done:
  ret void
}

; Copies a matrix of k rows and n columns to contiguous rows, four by four where its columns are contiguous.
define internal void @pack_$s(i64 %k, i64 %n, ptr noalias %b, i64 %b_row, i64 %b_col, ptr noalias %to) noinline {
start:
  %k.left = and i64 %k, 3
  %n.left = and i64 %n, 3
  %k.fours = sub i64 %k, %k.left
  %n.fours = sub i64 %n, %n.left
  %unit = icmp eq i64 %b_row, 1
  %k.some = icmp sgt i64 %k.fours, 0
  %n.some = icmp sgt i64 %n.fours, 0
  %some = and i1 %k.some, %n.some
  %quick = and i1 %unit, %some
  %k.done = select i1 %quick, i64 %k.fours, i64 0
  %n.done = select i1 %quick, i64 %n.fours, i64 0
  br i1 %quick, label %fours, label %columns
fours:
  %q = phi i64 [0, %start], [%q.next, %fours.next]
  %from0 = getelementptr $t, ptr %b, i64 %q
  %to.offset0 = mul i64 %q, %n
  %to0 = getelementptr $t, ptr %to, i64 %to.offset0
  br label %four
four:
  %r = phi i64 [0, %fours], [%r.next, %four]
  %r.offset = mul i64 %r, %b_col
  %c0.at = getelementptr $t, ptr %from0, i64 %r.offset
  %c1.at = getelementptr $t, ptr %c0.at, i64 %b_col
  %c2.at = getelementptr $t, ptr %c1.at, i64 %b_col
  %c3.at = getelementptr $t, ptr %c2.at, i64 %b_col
  %c0 = load <4 x $t>, ptr %c0.at, align $align
  %c1 = load <4 x $t>, ptr %c1.at, align $align
  %c2 = load <4 x $t>, ptr %c2.at, align $align
  %c3 = load <4 x $t>, ptr %c3.at, align $align
  %l01 = shufflevector <4 x $t> %c0, <4 x $t> %c1, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %h01 = shufflevector <4 x $t> %c0, <4 x $t> %c1, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %l23 = shufflevector <4 x $t> %c2, <4 x $t> %c3, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
  %h23 = shufflevector <4 x $t> %c2, <4 x $t> %c3, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
  %r0 = shufflevector <4 x $t> %l01, <4 x $t> %l23, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %r1 = shufflevector <4 x $t> %h01, <4 x $t> %h23, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %r2 = shufflevector <4 x $t> %l01, <4 x $t> %l23, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %r3 = shufflevector <4 x $t> %h01, <4 x $t> %h23, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %r0.at = getelementptr $t, ptr %to0, i64 %r
  %r1.at = getelementptr $t, ptr %r0.at, i64 %n
  %r2.at = getelementptr $t, ptr %r1.at, i64 %n
  %r3.at = getelementptr $t, ptr %r2.at, i64 %n
  store <4 x $t> %r0, ptr %r0.at, align $align
  store <4 x $t> %r1, ptr %r1.at, align $align
  store <4 x $t> %r2, ptr %r2.at, align $align
  store <4 x $t> %r3, ptr %r3.at, align $align
  %r.next = add nsw i64 %r, 4
  %r.more = icmp slt i64 %r.next, %n.fours
  br i1 %r.more, label %four, label %fours.next
fours.next:
  %q.next = add nsw i64 %q, 4
  %q.more = icmp slt i64 %q.next, %k.fours
  br i1 %q.more, label %fours, label %columns
columns:
  %j = phi i64 [0, %start], [0, %fours.next], [%j.next, %column.end]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %column, label %done
column:
  ; of the columns that were copied by fours only the last rows are left
  %copied = icmp slt i64 %j, %n.done
  %first = select i1 %copied, i64 %k.done, i64 0
  %b.offset = mul i64 %j, %b_col
  %b.here = getelementptr $t, ptr %b, i64 %b.offset
  %to.here = getelementptr $t, ptr %to, i64 %j
  br label %elements
elements:
  %p = phi i64 [%first, %column], [%p.next, %element]
  %p.more = icmp slt i64 %p, %k
  br i1 %p.more, label %element, label %column.end
element:
  %from.offset = mul i64 %p, %b_row
  %from.at = getelementptr $t, ptr %b.here, i64 %from.offset
  %value = load $t, ptr %from.at
  %to.offset = mul i64 %p, %n
  %to.at = getelementptr $t, ptr %to.here, i64 %to.offset
  store $t %value, ptr %to.at
  %p.next = add nsw i64 %p, 1
  br label %elements
column.end:
  %j.next = add nsw i64 %j, 1
  br label %columns
done:
  ret void
}

; The product for a c with contiguous rows and any b, of which a few columns and rows at a time are copied.
define internal void @packed_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %panel = alloca [$panel x $t], align 64
  br label %columns
columns:
  %j = phi i64 [0, %start], [%j.next, %column.end]
  %j.left = sub i64 %n, %j
  %j.full = icmp sgt i64 %j.left, $panel_columns
  %width = select i1 %j.full, i64 $panel_columns, i64 %j.left
  %b.column = mul i64 %j, %b_col
  %b.top = getelementptr $t, ptr %b, i64 %b.column
  %c.here = getelementptr $t, ptr %c, i64 %j
  br label %rows
rows:
  %p = phi i64 [0, %columns], [%p.next, %rows]
  %factor = phi $t [%beta, %columns], [$one, %rows]
  %p.left = sub i64 %k, %p
  %p.full = icmp sgt i64 %p.left, $panel_rows
  %height = select i1 %p.full, i64 $panel_rows, i64 %p.left
  %b.row = mul i64 %p, %b_row
  %b.here = getelementptr $t, ptr %b.top, i64 %b.row
  %a.column = mul i64 %p, %a_col
  %a.here = getelementptr $t, ptr %a, i64 %a.column
  call void @pack_$s(i64 %height, i64 %width, ptr %b.here, i64 %b_row, i64 %b_col, ptr %panel)
  call void @tiles_$s(i64 %m, i64 %width, i64 %height, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col, ptr %panel,
      i64 %width, $t %factor, ptr %c.here, i64 %c_row)
  %p.next = add nsw i64 %p, %height
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %rows, label %column.end
column.end:
  %j.next = add nsw i64 %j, %width
  %more = icmp slt i64 %j.next, %n
  br i1 %more, label %columns, label %done
done:
  ret void
}

; The product without BLAS for a c with contiguous rows.
define internal void @rows_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %contiguous = icmp eq i64 %b_col, 1
  br i1 %contiguous, label %tiles, label %look
look:
  ; what is copied for one or two rows is hardly used again
  %few = icmp sle i64 %m, 2
  br i1 %few, label %dots, label %packed
dots:
  call void @dots_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 1)
  ret void
tiles:
  call void @tiles_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      $t %beta, ptr %c, i64 %c_row)
  ret void
packed:
  call void @packed_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      i64 %b_col, $t %beta, ptr %c, i64 %c_row)
  ret void
}

; The product without BLAS.
define internal void @loops_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row,
                               i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
  %c.rows = icmp eq i64 %c_col, 1
  br i1 %c.rows, label %plain, label %look
plain:
  call void @rows_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col,
                     $t %beta, ptr %c, i64 %c_row)
  ret void
look:
  %c.columns = icmp eq i64 %c_row, 1
  br i1 %c.columns, label %turned, label %any
turned:
  call void @rows_$s(i64 %n, i64 %m, i64 %k, $t %alpha, ptr %b, i64 %b_col, i64 %b_row, ptr %a, i64 %a_col, i64 %a_row,
                     $t %beta, ptr %c, i64 %c_col)
  ret void
any:
  call void @dots_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col,
                     $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  ret void
}

; Four rows of a times x at once, each element of x loaded once for all: their inner products.
define internal <4 x $t> @four_dots_$s(i64 %n, ptr noalias %a, i64 %a_row, ptr noalias %x) noinline {
start:
  %two = mul i64 %a_row, 2
  %three = mul i64 %a_row, 3
  %a1 = getelementptr $t, ptr %a, i64 %a_row
  %a2 = getelementptr $t, ptr %a, i64 %two
  %a3 = getelementptr $t, ptr %a, i64 %three
  br label %loop
loop:
  %j = phi i64 [0, %start], [%j.next, %loop]
  %s0 = phi $t [$zero, %start], [%m0, %loop]
  %s1 = phi $t [$zero, %start], [%m1, %loop]
  %s2 = phi $t [$zero, %start], [%m2, %loop]
  %s3 = phi $t [$zero, %start], [%m3, %loop]
  %x.at = getelementptr $t, ptr %x, i64 %j
  %e0.at = getelementptr $t, ptr %a, i64 %j
  %e1.at = getelementptr $t, ptr %a1, i64 %j
  %e2.at = getelementptr $t, ptr %a2, i64 %j
  %e3.at = getelementptr $t, ptr %a3, i64 %j
  %xj = load $t, ptr %x.at
  %e0 = load $t, ptr %e0.at
  %e1 = load $t, ptr %e1.at
  %e2 = load $t, ptr %e2.at
  %e3 = load $t, ptr %e3.at
  %p0 = $times $t %e0, %xj
  %p1 = $times $t %e1, %xj
  %p2 = $times $t %e2, %xj
  %p3 = $times $t %e3, %xj
  %m0 = $gather $t %s0, %p0
  %m1 = $gather $t %s1, %p1
  %m2 = $gather $t %s2, %p2
  %m3 = $gather $t %s3, %p3
  %j.next = add nsw i64 %j, 1
  %end = icmp eq i64 %j.next, %n
  br i1 %end, label %done, label %loop
done:
  %v0 = insertelement <4 x $t> poison, $t %m0, i32 0
  %v1 = insertelement <4 x $t> %v0, $t %m1, i32 1
  %v2 = insertelement <4 x $t> %v1, $t %m2, i32 2
  %v3 = insertelement <4 x $t> %v2, $t %m3, i32 3
  ret <4 x $t> %v3
}

; y = alpha a x + beta y where the rows of a, x and y are contiguous and n > 0.
define internal void @row_vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, ptr noalias %x, $t %beta,
    ptr noalias %y) noinline optsize {
start:
  %fresh = $equal $t %beta, $zero
  %alpha.one = insertelement <4 x $t> poison, $t %alpha, i32 0
  %alpha.all = shufflevector <4 x $t> %alpha.one, <4 x $t> poison, <4 x i32> zeroinitializer
  %beta.one = insertelement <4 x $t> poison, $t %beta, i32 0
  %beta.all = shufflevector <4 x $t> %beta.one, <4 x $t> poison, <4 x i32> zeroinitializer
  br label %fours
fours:
  %i = phi i64 [0, %start], [%i.next, %write]
  %i.next = add nsw i64 %i, 4
  %more = icmp sle i64 %i.next, %m
  br i1 %more, label %four, label %rest
four:
  %a.offset = mul i64 %i, %a_row
  %a.here = getelementptr $t, ptr %a, i64 %a.offset
  %y.here = getelementptr $t, ptr %y, i64 %i
  %sums = call <4 x $t> @four_dots_$s(i64 %n, ptr %a.here, i64 %a_row, ptr %x)
  %scaled = $scale <4 x $t> %sums, %alpha.all
  br i1 %fresh, label %write, label %update
update:
  %old = load <4 x $t>, ptr %y.here, align $align
  %kept = $scale <4 x $t> %old, %beta.all
  %updated = $join <4 x $t> %scaled, %kept
  br label %write
write:
  %value = phi <4 x $t> [%scaled, %four], [%updated, %update]
  store <4 x $t> %value, ptr %y.here, align $align
  br label %fours
rest:
  %left = sub i64 %m, %i
  %a.rest.offset = mul i64 %i, %a_row
  %a.rest = getelementptr $t, ptr %a, i64 %a.rest.offset
  %y.rest = getelementptr $t, ptr %y, i64 %i
  call void @dots_$s(i64 %left, i64 1, i64 %n, $t %alpha, ptr %a.rest, i64 %a_row, i64 1, ptr %x, i64 1, i64 0,
      $t %beta, ptr %y.rest, i64 1, i64 0)
  ret void
}

; y += x0 a0 + x1 a1 + x2 a2 + x3 a3 for contiguous vectors of m elements, m > 0.
define internal void @four_columns_$s(i64 %m, $t %x0, $t %x1, $t %x2, $t %x3, ptr noalias %a, i64 %a_col,
    ptr noalias %y) noinline {
start:
  %two = mul i64 %a_col, 2
  %three = mul i64 %a_col, 3
  %a1 = getelementptr $t, ptr %a, i64 %a_col
  %a2 = getelementptr $t, ptr %a, i64 %two
  %a3 = getelementptr $t, ptr %a, i64 %three
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i.next, %loop]
  %y.at = getelementptr $t, ptr %y, i64 %i
  %e0.at = getelementptr $t, ptr %a, i64 %i
  %e1.at = getelementptr $t, ptr %a1, i64 %i
  %e2.at = getelementptr $t, ptr %a2, i64 %i
  %e3.at = getelementptr $t, ptr %a3, i64 %i
  %e0 = load $t, ptr %e0.at
  %e1 = load $t, ptr %e1.at
  %e2 = load $t, ptr %e2.at
  %e3 = load $t, ptr %e3.at
  %old = load $t, ptr %y.at
  %p0 = $times $t %e0, %x0
  %p1 = $times $t %e1, %x1
  %p2 = $times $t %e2, %x2
  %p3 = $times $t %e3, %x3
  %s0 = $plus $t %old, %p0
  %s1 = $plus $t %s0, %p1
  %s2 = $plus $t %s1, %p2
  %s3 = $plus $t %s2, %p3
  store $t %s3, ptr %y.at
  %i.next = add nsw i64 %i, 1
  %end = icmp eq i64 %i.next, %m
  br i1 %end, label %done, label %loop
done:
  ret void
}

; y += x0 a0 for contiguous vectors of m elements, m > 0.
define internal void @one_column_$s(i64 %m, $t %x0, ptr noalias %a, ptr noalias %y) noinline {
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i.next, %loop]
  %y.at = getelementptr $t, ptr %y, i64 %i
  %e0.at = getelementptr $t, ptr %a, i64 %i
  %e0 = load $t, ptr %e0.at
  %old = load $t, ptr %y.at
  %p0 = $times $t %e0, %x0
  %s0 = $plus $t %old, %p0
  store $t %s0, ptr %y.at
  %i.next = add nsw i64 %i, 1
  %end = icmp eq i64 %i.next, %m
  br i1 %end, label %done, label %loop
done:
  ret void
}

; y = beta y for a contiguous y of m elements, m > 0, whose old values do not count where beta is 0.
define internal void @begin_$s(i64 %m, $t %beta, ptr noalias %y) noinline {
start:
  %fresh = $equal $t %beta, $zero
  br i1 %fresh, label %clear, label %loop
clear:
  %i = phi i64 [0, %start], [%i.next, %clear]
  %i.at = getelementptr $t, ptr %y, i64 %i
  store $t $zero, ptr %i.at
  %i.next = add nsw i64 %i, 1
  %cleared = icmp eq i64 %i.next, %m
  br i1 %cleared, label %done, label %clear
loop:
  %j = phi i64 [0, %start], [%j.next, %loop]
  %j.at = getelementptr $t, ptr %y, i64 %j
  %old = load $t, ptr %j.at
  %kept = $scale $t %old, %beta
  store $t %kept, ptr %j.at
  %j.next = add nsw i64 %j, 1
  %end = icmp eq i64 %j.next, %m
  br i1 %end, label %done, label %loop
done:
  ret void
}

; y = alpha a x + beta y where the columns of a, and y, are contiguous and m > 0.
define internal void @column_vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_col, ptr noalias %x,
    i64 %x_step, $t %beta, ptr noalias %y) noinline optsize {
start:
  call void @begin_$s(i64 %m, $t %beta, ptr %y)
  br label %fours
fours:
  %j = phi i64 [0, %start], [%j.next, %four]
  %j.next = add nsw i64 %j, 4
  %more = icmp sle i64 %j.next, %n
  br i1 %more, label %four, label %ones
four:
  %a.offset = mul i64 %j, %a_col
  %a.here = getelementptr $t, ptr %a, i64 %a.offset
  %x.offset = mul i64 %j, %x_step
  %x0.at = getelementptr $t, ptr %x, i64 %x.offset
  %x1.at = getelementptr $t, ptr %x0.at, i64 %x_step
  %x2.at = getelementptr $t, ptr %x1.at, i64 %x_step
  %x3.at = getelementptr $t, ptr %x2.at, i64 %x_step
  %x0 = load $t, ptr %x0.at
  %x1 = load $t, ptr %x1.at
  %x2 = load $t, ptr %x2.at
  %x3 = load $t, ptr %x3.at
  %ax0 = $scale $t %x0, %alpha
  %ax1 = $scale $t %x1, %alpha
  %ax2 = $scale $t %x2, %alpha
  %ax3 = $scale $t %x3, %alpha
  call void @four_columns_$s(i64 %m, $t %ax0, $t %ax1, $t %ax2, $t %ax3, ptr %a.here, i64 %a_col, ptr %y)
  br label %fours
ones:
  %k = phi i64 [%j, %fours], [%k.next, %one]
  %k.more = icmp slt i64 %k, %n
  br i1 %k.more, label %one, label %done
one:
  %b.offset = mul i64 %k, %a_col
  %b.here = getelementptr $t, ptr %a, i64 %b.offset
  %xk.offset = mul i64 %k, %x_step
  %xk.at = getelementptr $t, ptr %x, i64 %xk.offset
  %xk = load $t, ptr %xk.at
  %axk = $scale $t %xk, %alpha
  call void @one_column_$s(i64 %m, $t %axk, ptr %b.here, ptr %y)
  %k.next = add nsw i64 %k, 1
  br label %ones
done:
  ret void
}

; y = alpha a x + beta y without BLAS, m > 0.
define internal void @vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %x,
    i64 %x_step, $t %beta, ptr noalias %y, i64 %y_step) noinline optsize {
start:
  %a.rows = icmp eq i64 %a_col, 1
  %a.columns = icmp eq i64 %a_row, 1
  %x.unit = icmp eq i64 %x_step, 1
  %y.unit = icmp eq i64 %y_step, 1
  %some = icmp sgt i64 %n, 0
  %along = and i1 %a.columns, %y.unit
  br i1 %along, label %columns, label %look
columns:
  call void @column_vector_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_col, ptr %x, i64 %x_step, $t %beta, ptr %y)
  ret void
look:
  %xy = and i1 %x.unit, %y.unit
  %rows.xy = and i1 %xy, %a.rows
  %down = and i1 %rows.xy, %some
  br i1 %down, label %rows, label %any
rows:
  call void @row_vector_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_row, ptr %x, $t %beta, ptr %y)
  ret void
any:
  call void @dots_$s(i64 %m, i64 1, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, i64 0,
      $t %beta, ptr %y, i64 %y_step, i64 0)
  ret void
}
"""
