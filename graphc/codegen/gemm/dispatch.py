"""Matrix products as LLVM IR: the definitions behind `blas.PROTOTYPES`.

In: the names that are called. Out: IR text. Each function of floats decides at run time between the loops of
`product_loops`, the packed products of `product_blocks`, and BLAS; the latter two are reached through the table of
addresses behind the symbol gc_blas. Integers have the loops only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from string import Template

from graphc.codegen.gemm.api import (
    ENTRIES,
    PRODUCT_WORDS,
    PROTOTYPES,
    VECTOR_FINDERS,
    VECTORS,
)
from graphc.codegen.gemm.batched import batches_ir
from graphc.codegen.gemm.context import share_ir
from graphc.codegen.gemm.gemv import dots_ir, vectors_ir
from graphc.codegen.gemm.microkernel import ARITHMETIC
from graphc.codegen.gemm.small import loops_ir
from graphc.codegen.llvm.counted import expand_loops
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.threads.chunking import SETTINGS
from graphc.codegen.threads.pool import has_threads

LETTERS = {"f64": "d", "f32": "s"}
"""What BLAS calls the dtypes it has."""
SMALL_GEMM = 64**3
"""Multiplications up to which loops beat OpenBLAS, which packs its operands first; from there it starts its threads."""
BLOCKED = 2**20
"""Multiplications from which large products (blocked.py) are as fast on one thread as loops."""
BLOCKED_SIDE = 16
"""Rows and columns of the result from which they are: whole panels."""
BLOCKED_THIN = 2**23
"""The same where only its rows or only its columns are so many: of the panels of the other operand lanes are left over.
Where neither are, loops win at every size."""
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


def products_ir(wanted: Mapping[str, Set[str]]) -> str:
    """The functions of each suffix. Those that they call are declared where they are not wanted: `blas.with_callees`
    names the objects that go together."""
    shared = any(names & {"gemv", "batched_gemm"} for names in wanted.values())
    functions = "".join(_functions_ir(suffix, names) for suffix, names in wanted.items())
    return _declared_once(DECLARATIONS + (share_ir() if shared else "") + functions)


def _functions_ir(suffix: str, wanted: Set[str]) -> str:
    element, letter = ARITHMETIC[suffix].element, LETTERS.get(suffix)
    words: dict[str, object] = {
        "t": element,
        "s": suffix,
        "small_gemm": float(SMALL_GEMM),
        "blocked": float(BLOCKED),
        "blocked_thin": float(BLOCKED_THIN),
        "endless": float(ENDLESS),
        "blocked_side": BLOCKED_SIDE,
        "settings": SETTINGS,
        "small_any": float(SMALL_ANY),
        "small_gemv": float(SMALL_GEMV),
        "thin": THIN,
        "few": FEW,
        "few_gemm": float(FEW_GEMM),
        "symmetric": SYMMETRIC,
        "mirrored": MIRRORED,
        "vector": VECTORS[suffix],
        "find_vector": VECTOR_FINDERS[suffix],
    }
    if letter is not None:
        words |= {name: ENTRIES.index(letter + name) for name in ("gemm", "gemv", "syrk")}
        words["blocks"] = ENTRIES.index(f"blocks {suffix}")
        words["find_blocks"] = ENTRIES.index(f"find blocks {suffix}")
    by_blas = letter is not None and not has_threads()
    words["look_for_blas"] = Template(ASK_BLAS).substitute(words) if by_blas else "  br label %loops"
    texts = []
    if wanted & {"gemm", "gemv"}:
        texts += [dots_ir(suffix), LAYOUTS if letter else ""]
    if "gemv" in wanted:
        texts += [vectors_ir(suffix), VECTOR_BY_BLAS if by_blas else "", VECTOR_PRODUCT]
    if "gemm" in wanted:
        texts += [FIND_VECTOR, loops_ir(suffix), expand_loops(FLOAT_PRODUCT) if letter else INTEGER_PRODUCT]
    elif "batched_gemm" in wanted:
        texts.append(_declaration("gemm", suffix, element))
    if "batched_gemm" in wanted:
        texts.append(batches_ir(suffix, element, BLOCKED if has_avx512() else SMALL_GEMM))
    return Template("".join(texts)).substitute(words, prologue=Template(PROLOGUE).substitute(words))


def _declared_once(text: str) -> str:
    """The text without declarations that it has already."""
    lines = text.split("\n")
    declared = {line: number for number, line in reversed([*enumerate(lines)]) if line.startswith("declare ")}
    return "\n".join(line for number, line in enumerate(lines) if declared.get(line, number) == number)


def _declaration(routine: str, suffix: str, element: str) -> str:
    """Of a product that is defined in an object of its own."""
    name = f"gc_{routine}_{suffix}"
    arguments, _ = PROTOTYPES[name]
    kinds = ("ptr noalias" if kind.endswith("*") else "i64" if kind == "int64" else element for kind in arguments)
    return f"""
declare i64 @{name}({", ".join(kinds)})
"""


DECLARATIONS = f"""
@gc_blas = external global [{len(ENTRIES)} x ptr]
@{SETTINGS} = external global [{PRODUCT_WORDS} x i64]
"""

# Sizes go to BLAS by address as 64-bit integers: where it has 32-bit ones it reads the low half, which is the number,
# as none is above 2**31 - 1 (little-endian). The two last arguments of gemm, the one of gemv, are the lengths that
# Fortran passes with its letters.
PROLOGUE = """\
  %m.none = icmp slt i64 %m, 1
  %n.none = icmp slt i64 %n, 1
  %none = or i1 %m.none, %n.none
  br i1 %none, label %done, label %columns
columns:
  %column = icmp eq i64 %n, 1
  %row = icmp eq i64 %m, 1
  %single = or i1 %column, %row
  br i1 %single, label %find.vector, label %weigh
find.vector:
  %vector = call ptr @vector_product_$s()
  %vector.there = icmp ne ptr %vector, null
  br i1 %vector.there, label %by.vector, label %weigh
by.vector:
  br i1 %column, label %one.column, label %one.row
one.column:
  %column.result = call i64 %vector(i64 %m, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      $t %beta, ptr %c, i64 %c_row)
  ret i64 %column.result
one.row:
  %row.result = call i64 %vector(i64 %n, i64 %k, $t %alpha, ptr %b, i64 %b_col, i64 %b_row, ptr %a, i64 %a_col,
      $t %beta, ptr %c, i64 %c_col)
  ret i64 %row.result
"""
"""How a product of matrices begins: no rows or columns, one column, one row."""

FIND_VECTOR = """
; The product with a vector, found at first need; null where there is none, and loops serve.
define internal ptr @vector_product_$s() noinline {
start:
  %at = getelementptr ptr, ptr @$settings, i64 $vector
  %known = load atomic ptr, ptr %at acquire, align 8
  %there = icmp ne ptr %known, null
  br i1 %there, label %done, label %ask
ask:
  %find.at = getelementptr ptr, ptr @$settings, i64 $find_vector
  %find = load atomic ptr, ptr %find.at acquire, align 8
  %findable = icmp ne ptr %find, null
  br i1 %findable, label %look, label %done
look:
  call void %find()
  %found = load atomic ptr, ptr %at acquire, align 8
  br label %done
done:
  %address = phi ptr [%known, %start], [null, %ask], [%found, %look]
  ret ptr %address
}
"""

LAYOUTS = """
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

"""

FLOAT_PRODUCT = """
; c = alpha a a' by BLAS where it takes the layouts; false where it does not, and nothing is done.
define internal i1 @symmetric_$s(i64 %m, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %c,
    i64 %c_row, i64 %c_col) noinline optsize {
start:
  %m.at = alloca i64
  %k.at = alloca i64
  %a.leading.at = alloca i64
  %c.leading.at = alloca i64
  %alpha.at = alloca $t
  %beta.at = alloca $t
  %triangle.at = alloca i8
  %letter.at = alloca i8
  %routine.at = getelementptr ptr, ptr @gc_blas, i64 $syrk
  %routine = load ptr, ptr %routine.at
  %present = icmp ne ptr %routine, null
  %a.plain = call i1 @rows_fit_$s(i64 %m, i64 %k, i64 %a_row, i64 %a_col)
  %a.turned = call i1 @rows_fit_$s(i64 %k, i64 %m, i64 %a_col, i64 %a_row)
  %a.fits = or i1 %a.plain, %a.turned
  %c.fits = call i1 @rows_fit_$s(i64 %m, i64 %m, i64 %c_row, i64 %c_col)
  %plain.leading = call i64 @leading_$s(i64 %m, i64 %k, i64 %a_row)
  %turned.leading = call i64 @leading_$s(i64 %k, i64 %m, i64 %a_col)
  %leading = select i1 %a.plain, i64 %plain.leading, i64 %turned.leading
  %letter = select i1 %a.plain, i8 84, i8 78
  %bits.mk = or i64 %m, %k
  %bits.a = or i64 %bits.mk, %leading
  %bits = or i64 %bits.a, %c_row
  %in.range = icmp ule i64 %bits, 2147483647
  %fit = and i1 %a.fits, %c.fits
  %known = and i1 %present, %in.range
  %callable = and i1 %fit, %known
  br i1 %callable, label %call, label %refused
refused:
  ret i1 false
call:
  store i64 %m, ptr %m.at
  store i64 %k, ptr %k.at
  store i64 %leading, ptr %a.leading.at
  store i64 %c_row, ptr %c.leading.at
  store $t %alpha, ptr %alpha.at
  store $t 0.0, ptr %beta.at
  store i8 85, ptr %triangle.at
  store i8 %letter, ptr %letter.at
  ; the upper triangle to Fortran, whose columns are our rows: the lower one to us
  call void %routine(ptr %triangle.at, ptr %letter.at, ptr %m.at, ptr %k.at, ptr %alpha.at, ptr %a,
      ptr %a.leading.at, ptr %beta.at, ptr %c, ptr %c.leading.at, i64 1, i64 1)
  call void @mirror_$s(i64 %m, ptr %c, i64 %c_row)
  ret i1 true
}

; Copies the triangle below the diagonal to that above it, block by block.
define internal void @mirror_$s(i64 %m, ptr noalias %c, i64 %c_row) noinline {
start:
  repeat %row from 0 to %m by $mirrored {
    %row.below = add nsw i64 %row, $mirrored
    %row.cut = icmp slt i64 %row.below, %m
    %row.end = select i1 %row.cut, i64 %row.below, i64 %m
    repeat %column from 0 to %row.end by $mirrored {
      %column.beside = add nsw i64 %column, $mirrored
      repeat %i from %row to %row.end by 1 {
        %above = icmp slt i64 %column.beside, %i
        %end = select i1 %above, i64 %column.beside, i64 %i
        %from.offset = mul i64 %i, %c_row
        %from = getelementptr $t, ptr %c, i64 %from.offset
        %to = getelementptr $t, ptr %c, i64 %i
        for %j from %column to %end by 1 {
          %from.at = getelementptr $t, ptr %from, i64 %j
          %value = load $t, ptr %from.at
          %to.offset = mul i64 %j, %c_row
          %to.at = getelementptr $t, ptr %to, i64 %to.offset
          store $t %value, ptr %to.at
        }
      }
    }
  }
  ret void
}

define i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
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
${prologue}weigh:
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %k.real = sitofp i64 %k to double
  %outer = fmul double %m.real, %n.real
  %work = fmul double %outer, %k.real
  %c.along = icmp eq i64 %c_col, 1
  %c.down = icmp eq i64 %c_row, 1
  %direct = or i1 %c.along, %c.down
  %blocks.at = getelementptr ptr, ptr @gc_blas, i64 $blocks
  %blocks.known = load atomic ptr, ptr %blocks.at acquire, align 8
  %find.at = getelementptr ptr, ptr @gc_blas, i64 $find_blocks
  %find.blocks = load atomic ptr, ptr %find.at acquire, align 8
  %blocks.there = icmp ne ptr %blocks.known, null
  %findable = icmp ne ptr %find.blocks, null
  %blocks.some = or i1 %blocks.there, %findable
  %m.side = icmp sge i64 %m, $blocked_side
  %n.side = icmp sge i64 %n, $blocked_side
  %sides = and i1 %m.side, %n.side
  %side = or i1 %m.side, %n.side
  %blocked = and i1 %side, %blocks.some
  %limit.sides = select i1 %sides, double $blocked, double $blocked_thin
  %limit.blocks = select i1 %side, double %limit.sides, double $endless
  %limit.direct = select i1 %blocks.some, double %limit.blocks, double $small_gemm
  %limit = select i1 %direct, double %limit.direct, double $small_any
  %light = fcmp ole double %work, %limit
  %short = icmp sle i64 %k, $thin
  %thin = and i1 %short, %direct
  %m.few = icmp sle i64 %m, $few
  %n.few = icmp sle i64 %n, $few
  %along.few = and i1 %c.along, %m.few
  %down.few = and i1 %c.down, %n.few
  %few.any = or i1 %along.few, %down.few
  %few.light = fcmp ole double %work, $few_gemm
  %few = and i1 %few.any, %few.light
  %light.few = or i1 %light, %few
  ; BLAS does not look at a and b where alpha is 0, so that their NaN would be lost
  %void = fcmp oeq $t %alpha, 0.0
  %small.either = or i1 %light.few, %thin
  %small = or i1 %small.either, %void
  br i1 %small, label %loops, label %compare
compare:
  ; a times its own transpose: only the triangle that holds the other
  %same.place = icmp eq ptr %a, %b
  %same.rows = icmp eq i64 %a_row, %b_col
  %same.columns = icmp eq i64 %a_col, %b_row
  %square = icmp eq i64 %m, %n
  %fresh = fcmp oeq $t %beta, 0.0
  %large = icmp sge i64 %m, $symmetric
  %same.strides = and i1 %same.rows, %same.columns
  %same = and i1 %same.place, %same.strides
  %square.fresh = and i1 %square, %fresh
  %square.large = and i1 %square.fresh, %large
  %symmetric = and i1 %same, %square.large
  br i1 %blocked, label %pack, label %choose
pack:
  br i1 %blocks.there, label %multiply, label %find.first
find.first:
  call void %find.blocks()
  %blocks.found = load atomic ptr, ptr %blocks.at acquire, align 8
  %found = icmp ne ptr %blocks.found, null
  br i1 %found, label %multiply, label %choose
multiply:
  %blocks = phi ptr [%blocks.known, %pack], [%blocks.found, %find.first]
  %half = and i1 %symmetric, %c.along
  %half.word = zext i1 %half to i64
  %code = call i64 %blocks(ptr @$settings, i64 %half.word, i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row,
      i64 %a_col, ptr %b, i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  %packed = icmp eq i64 %code, 0
  br i1 %packed, label %packed.done, label %choose
packed.done:
  br i1 %half, label %reflect, label %done
reflect:
  call void @mirror_$s(i64 %m, ptr %c, i64 %c_row)
  br label %done
choose:
  br i1 %symmetric, label %triangle, label %find
triangle:
  %made = call i1 @symmetric_$s(i64 %m, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %c, i64 %c_row,
      i64 %c_col)
  br i1 %made, label %done, label %find
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
"""

VECTOR_BY_BLAS = """
; y = alpha a x + beta y by BLAS where it takes the layouts; false where it does not, and nothing is done.
define internal i1 @vector_by_blas_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %x, i64 %x_step, $t %beta, ptr noalias %y, i64 %y_step) noinline optsize {
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
  %heavy = fcmp ogt double %work, $small_gemv
  ; BLAS may multiply x by alpha first, which may be more or less than $t holds
  %counts = fcmp oeq $t %alpha, 1.0
  %routine.at = getelementptr ptr, ptr @gc_blas, i64 $gemv
  %routine = load ptr, ptr %routine.at
  %present = icmp ne ptr %routine, null
  %wanted = and i1 %heavy, %counts
  %possible = and i1 %wanted, %present
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
  %taken = and i1 %well, %in.range
  %callable = and i1 %taken, %possible
  br i1 %callable, label %call, label %refused
refused:
  ret i1 false
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
      ptr %x_step.at, ptr %beta.at, ptr %y, ptr %y_step.at, i64 1)
  ret i1 true
}
"""

VECTOR_PRODUCT = """
define i64 @gc_gemv_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %x, i64 %x_step,
    $t %beta, ptr noalias %y, i64 %y_step) noinline optsize {
start:
  %none = icmp slt i64 %m, 1
  br i1 %none, label %done, label %look
look:
$look_for_blas
loops:
  call void @vector_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, $t %beta,
      ptr %y, i64 %y_step)
  br label %done
done:
  ret i64 0
}
"""

ASK_BLAS = """\
  %sent = call i1 @vector_by_blas_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step,
      $t %beta, ptr %y, i64 %y_step)
  br i1 %sent, label %done, label %loops"""

INTEGER_PRODUCT = """
define i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %b,
    i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
${prologue}weigh:
  call void @loops_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col,
      $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  br label %done
done:
  ret i64 0
}
"""


def blas_ir(names: Iterable[str]) -> str:
    """LLVM IR that defines these functions of PROTOTYPES, "" where there are none.

    It refers to the symbols of `blas_symbols`, and to chunks.SETTINGS.
    """
    wanted: dict[str, set[str]] = {}
    for name in sorted(PROTOTYPES.keys() & set(names)):
        routine, _, suffix = name.removeprefix("gc_").rpartition("_")
        wanted.setdefault(suffix, set()).add(routine)
    return products_ir(wanted) if wanted else ""
