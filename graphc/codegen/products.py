"""Matrix products as LLVM IR: the definitions behind `blas.PROTOTYPES`.

In: the names that are called. Out: IR text. Each function decides at run time between BLAS, reached through the table
of addresses behind the symbol gc_blas, and loops:

    tiles    blocks of 4 or 1 rows and a few contiguous columns of c, in registers while p runs; b is read by rows
    packed   tiles over a copy of a small b whose rows are not contiguous
    dots     an inner product for each element of c: any layout
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from string import Template

from graphc.codegen.blas import PROTOTYPES, ROUTINES

FUNCTIONS = ("gemm", "gemv", "batched_gemm")
ELEMENTS = {"f64": "double", "f32": "float"}
# Multiplications up to which loops beat one thread of OpenBLAS on AVX2, which packs its operands: by tiles, after a
# copy, for vectors.
SMALL_GEMM = 64**3
SMALL_CROSSED = 8**3
SMALL_GEMV = 2048
THIN = 4
"""Inner size up to which tiles win at every outer size: nothing is reused that packing could help."""
PANEL = 2048
"""Elements of a matrix that the loops copy to the stack."""
ROWS = (4, 1)
WIDTHS = {"f64": (8, 2, 1), "f32": (16, 8, 2, 1)}
"""Rows and columns of the tiles: four rows of the widest fill half of AVX2's registers with sums."""


def products_ir(wanted: Mapping[str, Set[str]]) -> str:
    """The functions of each suffix (f64, f32), with those called by a name in its set visible from outside."""
    return DECLARATIONS + "".join(_functions_ir(suffix, names) for suffix, names in wanted.items())


def _functions_ir(suffix: str, wanted: Set[str]) -> str:
    """The functions of one dtype; those not wanted are internal, so that LLVM drops what nothing calls."""
    words = {
        **{f"linkage_{name}": "" if f"gc_{name}_{suffix}" in wanted else "internal " for name in FUNCTIONS},
        "t": ELEMENTS[suffix],
        "s": suffix,
        "gemm": ROUTINES.index({"f64": "dgemm", "f32": "sgemm"}[suffix]),
        "gemv": ROUTINES.index({"f64": "dgemv", "f32": "sgemv"}[suffix]),
        "small_gemm": float(SMALL_GEMM),
        "small_crossed": float(SMALL_CROSSED),
        "small_gemv": float(SMALL_GEMV),
        "thin": THIN,
        "panel": PANEL,
    }
    tiles = [_tile_ir(rows, width, suffix) for rows in ROWS for width in WIDTHS[suffix]]
    strips = [_strip_ir(rows, suffix) for rows in ROWS]
    return "".join([*tiles, *strips, Template(LOOPS + SHIMS).substitute(words)])


def _tile_ir(rows: int, width: int, suffix: str) -> str:
    """A block of c of so many rows and contiguous columns, its sums in registers while p runs."""
    element, each = ELEMENTS[suffix], range(rows)
    vector, align = f"<{width} x {element}>", {"f64": 8, "f32": 4}[suffix]

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
{lines(f"  %product# = fmul contract {vector} %a#.all, %b.row")}
{lines(f"  %more# = fadd contract {vector} %sum#, %product#")}
  %a.next = getelementptr {element}, ptr %a.here, i64 %a_col
  %b.next = getelementptr {element}, ptr %b.here, i64 %b_row
  %p.next = add nsw i64 %p, 1
  %end = icmp eq i64 %p.next, %k
  br i1 %end, label %store, label %loop
store:
{lines(f"  %total# = phi {vector} [zeroinitializer, %start], [%more#, %loop]")}{spread("alpha")}{spread("beta")}
{lines(f"  %scaled# = fmul {vector} %total#, %alpha.all")}
{lines("  %c#.offset = mul i64 %c_row, #")}
{lines(f"  %c#.at = getelementptr {element}, ptr %c, i64 %c#.offset")}
  %fresh = fcmp oeq {element} %beta, 0.0
  br i1 %fresh, label %write, label %update
write:
{lines(f"  store {vector} %scaled#, ptr %c#.at, align {align}")}
  ret void
update:
{lines(f"  %c# = load {vector}, ptr %c#.at, align {align}")}
{lines(f"  %kept# = fmul {vector} %c#, %beta.all")}
{lines(f"  %new# = fadd {vector} %scaled#, %kept#")}
{lines(f"  store {vector} %new#, ptr %c#.at, align {align}")}
  ret void
}}
"""


def _strip_ir(rows: int, suffix: str) -> str:
    """So many whole rows of c: columns by the widest tile while they last, then by the narrower ones in turn."""
    element, widths = ELEMENTS[suffix], WIDTHS[suffix]
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
define internal void @strip_{rows}_{suffix}(i64 %n, i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:
  br label %by{widths[0]}
{blocks}
done:
  ret void
}}
"""


DECLARATIONS = f"""
@gc_blas = external global [{len(ROUTINES)} x ptr]
"""

LOOPS = """
; The product where the columns of b and c are contiguous: rows by fours, then one by one.
define internal void @tiles_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row,
                               $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  br label %fours
fours:
  %i = phi i64 [0, %start], [%i.next, %four]
  %i.next = add nsw i64 %i, 4
  %i.more = icmp sle i64 %i.next, %m
  br i1 %i.more, label %four, label %ones
four:
  %a.four.offset = mul i64 %i, %a_row
  %c.four.offset = mul i64 %i, %c_row
  %a.four = getelementptr $t, ptr %a, i64 %a.four.offset
  %c.four = getelementptr $t, ptr %c, i64 %c.four.offset
  call void @strip_4_$s(i64 %n, i64 %k, $t %alpha, ptr %a.four, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, $t %beta,
      ptr %c.four, i64 %c_row)
  br label %fours
ones:
  %r = phi i64 [%i, %fours], [%r.next, %one]
  %r.more = icmp slt i64 %r, %m
  br i1 %r.more, label %one, label %done
one:
  %a.one.offset = mul i64 %r, %a_row
  %c.one.offset = mul i64 %r, %c_row
  %a.one = getelementptr $t, ptr %a, i64 %a.one.offset
  %c.one = getelementptr $t, ptr %c, i64 %c.one.offset
  call void @strip_1_$s(i64 %n, i64 %k, $t %alpha, ptr %a.one, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, $t %beta,
      ptr %c.one, i64 %c_row)
  %r.next = add nsw i64 %r, 1
  br label %ones
done:
  ret void
}

define internal $t @dot_$s(i64 %k, ptr noalias %a, i64 %a_step, ptr noalias %b, i64 %b_step) noinline {
start:
  %some = icmp sgt i64 %k, 0
  br i1 %some, label %look, label %none
none:
  ret $t 0.0
look:
  %a.unit = icmp eq i64 %a_step, 1
  %b.unit = icmp eq i64 %b_step, 1
  %unit = and i1 %a.unit, %b.unit
  br i1 %unit, label %straight, label %strided
straight:
  %p = phi i64 [0, %look], [%p.next, %straight]
  %sum = phi $t [0.0, %look], [%more, %straight]
  %ap.at = getelementptr $t, ptr %a, i64 %p
  %bp.at = getelementptr $t, ptr %b, i64 %p
  %ap = load $t, ptr %ap.at
  %bp = load $t, ptr %bp.at
  %product = fmul contract $t %ap, %bp
  %more = fadd reassoc contract $t %sum, %product
  %p.next = add nsw i64 %p, 1
  %end = icmp eq i64 %p.next, %k
  br i1 %end, label %straight.done, label %straight
straight.done:
  ret $t %more
strided:
  %q = phi i64 [0, %look], [%q.next, %strided]
  %total = phi $t [0.0, %look], [%grown, %strided]
  %aq.offset = mul i64 %q, %a_step
  %bq.offset = mul i64 %q, %b_step
  %aq.at = getelementptr $t, ptr %a, i64 %aq.offset
  %bq.at = getelementptr $t, ptr %b, i64 %bq.offset
  %aq = load $t, ptr %aq.at
  %bq = load $t, ptr %bq.at
  %term = fmul contract $t %aq, %bq
  %grown = fadd contract $t %total, %term
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
  %fresh = fcmp oeq $t %beta, 0.0
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
  %scaled = fmul $t %dot, %alpha
  %place = mul i64 %j, %c_col
  %at = getelementptr $t, ptr %c.here, i64 %place
  br i1 %fresh, label %write, label %update
update:
  %old = load $t, ptr %at
  %kept = fmul $t %old, %beta
  %updated = fadd $t %scaled, %kept
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

; Copies a small b to contiguous rows, so that tiles may take it.
define internal void @packed_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row,
                                i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %panel = alloca [$panel x $t], align 64
  br label %columns
columns:
  %j = phi i64 [0, %start], [%j.next, %column.end]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %column, label %done
column:
  %b.offset = mul i64 %j, %b_col
  %b.here = getelementptr $t, ptr %b, i64 %b.offset
  %panel.here = getelementptr $t, ptr %panel, i64 %j
  br label %elements
elements:
  %p = phi i64 [0, %column], [%p.next, %element]
  %p.more = icmp slt i64 %p, %k
  br i1 %p.more, label %element, label %column.end
element:
  %from.offset = mul i64 %p, %b_row
  %from.at = getelementptr $t, ptr %b.here, i64 %from.offset
  %value = load $t, ptr %from.at
  %to.offset = mul i64 %p, %n
  %to.at = getelementptr $t, ptr %panel.here, i64 %to.offset
  store $t %value, ptr %to.at
  %p.next = add nsw i64 %p, 1
  br label %elements
column.end:
  %j.next = add nsw i64 %j, 1
  br label %columns
done:
  call void @tiles_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %panel, i64 %n,
      $t %beta, ptr %c, i64 %c_row)
  ret void
}

; The product without BLAS for a c with contiguous rows: by tiles where b has them too, or is small enough to be copied.
define internal void @rows_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row,
                              i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %contiguous = icmp eq i64 %b_col, 1
  br i1 %contiguous, label %tiles, label %measure
tiles:
  call void @tiles_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      $t %beta, ptr %c, i64 %c_row)
  ret void
measure:
  %k.short = icmp sle i64 %k, $panel
  %n.short = icmp sle i64 %n, $panel
  %size = mul i64 %k, %n
  %size.short = icmp sle i64 %size, $panel
  %sides = and i1 %k.short, %n.short
  %fits = and i1 %sides, %size.short
  br i1 %fits, label %pack, label %dots
pack:
  call void @packed_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      i64 %b_col,
                       $t %beta, ptr %c, i64 %c_row)
  ret void
dots:
  call void @dots_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col,
                     $t %beta, ptr %c, i64 %c_row, i64 1)
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
"""

# Sizes go to BLAS by address as 64-bit integers: where it has 32-bit ones it reads the low half, which is the number,
# as none is above 2**31 - 1 (little-endian). The two last arguments of gemm, the one of gemv, are the lengths that
# Fortran passes with its letters.
SHIMS = """
; Whether the matrix of so many rows and columns has contiguous rows no nearer than their length. Strides of one row
; or column do not count.
define internal i1 @rows_fit_$s(i64 %rows, i64 %columns, i64 %row, i64 %column) alwaysinline {
  %unit = icmp eq i64 %column, 1
  %thin = icmp eq i64 %columns, 1
  %contiguous = or i1 %unit, %thin
  %apart = icmp sge i64 %row, %columns
  %flat = icmp eq i64 %rows, 1
  %separate = or i1 %apart, %flat
  %fits = and i1 %contiguous, %separate
  ret i1 %fits
}

define internal i64 @leading_$s(i64 %rows, i64 %columns, i64 %row) alwaysinline {
  %flat = icmp eq i64 %rows, 1
  %leading = select i1 %flat, i64 %columns, i64 %row
  ret i64 %leading
}

define ${linkage_gemm}i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col,
                       $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
  %m.at = alloca i64
  %n.at = alloca i64
  %k.at = alloca i64
  %a.leading.at = alloca i64
  %b.leading.at = alloca i64
  %c.leading.at = alloca i64
  %alpha.at = alloca $t
  %beta.at = alloca $t
  %a.letter.at = alloca i8
  %b.letter.at = alloca i8
  %m.none = icmp slt i64 %m, 1
  %n.none = icmp slt i64 %n, 1
  %none = or i1 %m.none, %n.none
  br i1 %none, label %done, label %columns
columns:
  %column = icmp eq i64 %n, 1
  br i1 %column, label %one.column, label %rows
one.column:
  %column.result = call i64 @gc_gemv_$s(i64 %m, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
                                        $t %beta, ptr %c, i64 %c_row)
  ret i64 %column.result
rows:
  %row = icmp eq i64 %m, 1
  br i1 %row, label %one.row, label %weigh
one.row:
  %row.result = call i64 @gc_gemv_$s(i64 %n, i64 %k, $t %alpha, ptr %b, i64 %b_col, i64 %b_row, ptr %a, i64 %a_col,
                                     $t %beta, ptr %c, i64 %c_col)
  ret i64 %row.result
weigh:
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %k.real = sitofp i64 %k to double
  %outer = fmul double %m.real, %n.real
  %work = fmul double %outer, %k.real
  ; tiles need the columns of b and c, or the rows of a and c, contiguous; what crosses them is copied first
  %b.along = icmp eq i64 %b_col, 1
  %c.along = icmp eq i64 %c_col, 1
  %a.down = icmp eq i64 %a_row, 1
  %c.down = icmp eq i64 %c_row, 1
  %along = and i1 %b.along, %c.along
  %down = and i1 %a.down, %c.down
  %direct = or i1 %along, %down
  %limit = select i1 %direct, double $small_gemm, double $small_crossed
  %light = fcmp ole double %work, %limit
  %short = icmp sle i64 %k, $thin
  %thin = and i1 %short, %direct
  ; BLAS does not look at a and b where alpha is 0, so that their NaN would be lost
  %void = fcmp oeq $t %alpha, 0.0
  %small.either = or i1 %light, %thin
  %small = or i1 %small.either, %void
  br i1 %small, label %loops, label %find
find:
  %routine.at = getelementptr ptr, ptr @gc_blas, i64 $gemm
  %routine = load ptr, ptr %routine.at
  %absent = icmp eq ptr %routine, null
  br i1 %absent, label %loops, label %orient
orient:
  %c.fits = call i1 @rows_fit_$s(i64 %m, i64 %n, i64 %c_row, i64 %c_col)
  br i1 %c.fits, label %operands, label %other
other:
  %c.turned = call i1 @rows_fit_$s(i64 %n, i64 %m, i64 %c_col, i64 %c_row)
  br i1 %c.turned, label %turn, label %loops
turn:
  %turned = call i64 @gc_gemm_$s(i64 %n, i64 %m, i64 %k, $t %alpha, ptr %b, i64 %b_col, i64 %b_row, ptr %a,
      i64 %a_col, i64 %a_row,
                                 $t %beta, ptr %c, i64 %c_col, i64 %c_row)
  ret i64 %turned
operands:
  %a.plain = call i1 @rows_fit_$s(i64 %m, i64 %k, i64 %a_row, i64 %a_col)
  %a.turned = call i1 @rows_fit_$s(i64 %k, i64 %m, i64 %a_col, i64 %a_row)
  %b.plain = call i1 @rows_fit_$s(i64 %k, i64 %n, i64 %b_row, i64 %b_col)
  %b.turned = call i1 @rows_fit_$s(i64 %n, i64 %k, i64 %b_col, i64 %b_row)
  %a.plain.leading = call i64 @leading_$s(i64 %m, i64 %k, i64 %a_row)
  %a.turned.leading = call i64 @leading_$s(i64 %k, i64 %m, i64 %a_col)
  %b.plain.leading = call i64 @leading_$s(i64 %k, i64 %n, i64 %b_row)
  %b.turned.leading = call i64 @leading_$s(i64 %n, i64 %k, i64 %b_col)
  %a.leading = select i1 %a.plain, i64 %a.plain.leading, i64 %a.turned.leading
  %b.leading = select i1 %b.plain, i64 %b.plain.leading, i64 %b.turned.leading
  %a.letter = select i1 %a.plain, i8 78, i8 84
  %b.letter = select i1 %b.plain, i8 78, i8 84
  %a.fits = or i1 %a.plain, %a.turned
  %b.fits = or i1 %b.plain, %b.turned
  %both.fit = and i1 %a.fits, %b.fits
  %bits.mn = or i64 %m, %n
  %bits.mnk = or i64 %bits.mn, %k
  %bits.a = or i64 %bits.mnk, %a.leading
  %bits.b = or i64 %bits.a, %b.leading
  %bits = or i64 %bits.b, %c_row
  %in.range = icmp ule i64 %bits, 2147483647
  %callable = and i1 %both.fit, %in.range
  br i1 %callable, label %call, label %loops
call:
  store i64 %m, ptr %m.at
  store i64 %n, ptr %n.at
  store i64 %k, ptr %k.at
  store i64 %a.leading, ptr %a.leading.at
  store i64 %b.leading, ptr %b.leading.at
  store i64 %c_row, ptr %c.leading.at
  store $t %alpha, ptr %alpha.at
  store $t %beta, ptr %beta.at
  store i8 %a.letter, ptr %a.letter.at
  store i8 %b.letter, ptr %b.letter.at
  ; rows here are columns to Fortran: it computes the transposed product, b before a
  call void %routine(ptr %b.letter.at, ptr %a.letter.at, ptr %n.at, ptr %m.at, ptr %k.at, ptr %alpha.at, ptr %b,
      ptr %b.leading.at,
                     ptr %a, ptr %a.leading.at, ptr %beta.at, ptr %c, ptr %c.leading.at, i64 1, i64 1)
  br label %done
loops:
  call void @loops_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col,
                      $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  br label %done
done:
  ret i64 0
}

define ${linkage_gemv}i64 @gc_gemv_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %x, i64 %x_step, $t %beta,
                       ptr noalias %y, i64 %y_step) noinline optsize {
start:
  %rows.at = alloca i64
  %columns.at = alloca i64
  %leading.at = alloca i64
  %x_step.at = alloca i64
  %y_step.at = alloca i64
  %alpha.at = alloca $t
  %beta.at = alloca $t
  %letter.at = alloca i8
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %work = fmul double %m.real, %n.real
  %light = fcmp ole double %work, $small_gemv
  %thin = icmp sle i64 %n, $thin
  %flat = icmp sle i64 %m, 0
  %void = fcmp oeq $t %alpha, 0.0
  %small.size = or i1 %light, %thin
  %small.any = or i1 %small.size, %flat
  %small = or i1 %small.any, %void
  br i1 %small, label %loops, label %find
find:
  %routine.at = getelementptr ptr, ptr @gc_blas, i64 $gemv
  %routine = load ptr, ptr %routine.at
  %absent = icmp eq ptr %routine, null
  br i1 %absent, label %loops, label %operands
operands:
  %plain = call i1 @rows_fit_$s(i64 %m, i64 %n, i64 %a_row, i64 %a_col)
  %turned = call i1 @rows_fit_$s(i64 %n, i64 %m, i64 %a_col, i64 %a_row)
  %fits = or i1 %plain, %turned
  %plain.leading = call i64 @leading_$s(i64 %m, i64 %n, i64 %a_row)
  %turned.leading = call i64 @leading_$s(i64 %n, i64 %m, i64 %a_col)
  %leading = select i1 %plain, i64 %plain.leading, i64 %turned.leading
  %rows = select i1 %plain, i64 %n, i64 %m
  %columns = select i1 %plain, i64 %m, i64 %n
  %letter = select i1 %plain, i8 84, i8 78
  %x.forward = icmp sgt i64 %x_step, 0
  %y.forward = icmp sgt i64 %y_step, 0
  %forward = and i1 %x.forward, %y.forward
  %bits.mn = or i64 %m, %n
  %bits.a = or i64 %bits.mn, %leading
  %bits.x = or i64 %bits.a, %x_step
  %bits = or i64 %bits.x, %y_step
  %in.range = icmp ule i64 %bits, 2147483647
  %well = and i1 %fits, %forward
  %callable = and i1 %well, %in.range
  br i1 %callable, label %call, label %loops
call:
  store i64 %rows, ptr %rows.at
  store i64 %columns, ptr %columns.at
  store i64 %leading, ptr %leading.at
  store i64 %x_step, ptr %x_step.at
  store i64 %y_step, ptr %y_step.at
  store $t %alpha, ptr %alpha.at
  store $t %beta, ptr %beta.at
  store i8 %letter, ptr %letter.at
  call void %routine(ptr %letter.at, ptr %rows.at, ptr %columns.at, ptr %alpha.at, ptr %a, ptr %leading.at, ptr %x,
      ptr %x_step.at,
                     ptr %beta.at, ptr %y, ptr %y_step.at, i64 1)
  br label %done
loops:
  ; as the row y = x a', whose tiles run along the columns of a where these are contiguous
  %a.columns = icmp eq i64 %a_row, 1
  %y.unit = icmp eq i64 %y_step, 1
  %by.tiles = and i1 %a.columns, %y.unit
  br i1 %by.tiles, label %tiles, label %dots
tiles:
  call void @tiles_$s(i64 1, i64 %m, i64 %n, $t %alpha, ptr %x, i64 0, i64 %x_step, ptr %a, i64 %a_col, $t %beta,
      ptr %y, i64 0)
  br label %done
dots:
  call void @dots_$s(i64 %m, i64 1, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, i64 0,
                     $t %beta, ptr %y, i64 %y_step, i64 0)
  br label %done
done:
  ret i64 0
}

define ${linkage_batched_gemm}i64 @gc_batched_gemm_$s(i64 %count, i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a,
    i64 %a_batch, i64 %a_row, i64 %a_col,
                               ptr noalias %b, i64 %b_batch, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64
                               %c_batch, i64 %c_row, i64 %c_col) noinline optsize {
start:
  ; rows of a and c that follow each other through the batch, times one b: a single product
  %a.matrix = mul i64 %m, %a_row
  %c.matrix = mul i64 %m, %c_row
  %a.follows = icmp eq i64 %a_batch, %a.matrix
  %c.follows = icmp eq i64 %c_batch, %c.matrix
  %b.same = icmp eq i64 %b_batch, 0
  %follow = and i1 %a.follows, %c.follows
  %single = and i1 %follow, %b.same
  br i1 %single, label %joined, label %batch
joined:
  %rows = mul i64 %count, %m
  %joined.result = call i64 @gc_gemm_$s(i64 %rows, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col,
                                        ptr %b, i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  ret i64 %joined.result
batch:
  %number = phi i64 [0, %start], [%number.next, %matrix]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %matrix, label %done
matrix:
  %a.offset = mul i64 %number, %a_batch
  %b.offset = mul i64 %number, %b_batch
  %c.offset = mul i64 %number, %c_batch
  %a.here = getelementptr $t, ptr %a, i64 %a.offset
  %b.here = getelementptr $t, ptr %b, i64 %b.offset
  %c.here = getelementptr $t, ptr %c, i64 %c.offset
  %result = call i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col,
                                 ptr %b.here, i64 %b_row, i64 %b_col, $t %beta, ptr %c.here, i64 %c_row, i64 %c_col)
  %number.next = add nsw i64 %number, 1
  br label %batch
done:
  ret i64 0
}
"""


def blas_ir(names: Iterable[str]) -> str:
    """LLVM IR that defines these functions of PROTOTYPES, "" where there are none.

    It refers to the symbols of `blas_symbols`.
    """
    wanted = PROTOTYPES.keys() & set(names)
    suffixes = sorted({name.rpartition("_")[2] for name in wanted})
    if not suffixes:
        return ""
    return products_ir({suffix: {name for name in wanted if name.endswith(suffix)} for suffix in suffixes})
