"""Products of a matrix with a vector as LLVM IR: by rows or by columns, in pieces that threads share.

In: the suffix of a dtype (f64, f32, i64, i32). Out: IR text of internal functions:

    dots     c = alpha a b + beta c, an inner product for each element of c, for any layout
    vector   y = alpha a x + beta y, for any layout

The matrix is read once, where it stands (gemv_kernels.py). Where its rows are contiguous each element of y is an
inner product; where its columns are, they are added to y. A reversed one is read forwards, its vector backwards.

A large product falls into pieces of y, and where y is short into parts of the sum too, whose results are added up in
order. Both follow from the sizes and the layout alone, so that the bits of a result are the same for every number of
threads. A vector with a step is copied where it is read along rows, and a y with a step is computed beside.
"""

from __future__ import annotations

from string import Template

from graphc.codegen.gemm.context import read_ir, record_ir, write_ir
from graphc.codegen.gemm.gemv_kernels import columns_ir, rows_ir, short_ir
from graphc.codegen.gemm.microkernel import ARITHMETIC, lanes_of, words_of
from graphc.codegen.llvm.counted import expand_loops

ROWS = 4
"""Rows of a matrix whose inner products with a vector are computed at a time."""
COLUMNS = (8, 4, 1)
"""Columns of a matrix that are added to a vector at a time: the larger numbers while they last."""
SHORT = (1, 2)
"""Registers that the short columns fill which go by other loops."""
SMALL = 2**16
"""Elements of a matrix up to which a product is one piece."""
PIECE = 2**16
"""Elements of a piece, about: some microseconds."""
MOST_PIECES = 64
TALL = 2**13
"""Elements of y in a piece by columns at most: they stay in the second cache, and a column is read on for long."""
MOST_PARTIAL = 2**17
"""Numbers that the parts of a sum may give between them."""
PART = 128
"""What the length of a part is a multiple of, and the height of a piece by columns."""
BYTE_WORK = 0.25
"""What a byte of a matrix costs, in units of work (threads/chunking.py)."""

PIECES = {
    **dict.fromkeys(("m", "n"), "i64"),
    "alpha": "",
    "a": "ptr",
    "a_row": "i64",
    "a_col": "i64",
    "x": "ptr",
    "x_step": "i64",
    "beta": "",
    "y": "ptr",
    **dict.fromkeys(("y_part", "height", "pieces", "length"), "i64"),
}
"""What threads know of a product; "" is the dtype. A piece has `height` elements of y, a part `length` terms of their
sums. There are so many pieces in each part, whose results begin `y_part` elements behind those of the part before."""


def dots_ir(suffix: str) -> str:
    """The inner products of one dtype."""
    return rows_ir(1, suffix) + expand_loops(Template(DOTS).substitute(words_of(suffix)))


def vectors_ir(suffix: str) -> str:
    """The products with a vector of one dtype. They call `dots`, and `share` (context.py)."""
    own = ARITHMETIC[suffix]
    record, fields = f"vector_{suffix}", {name: kind or own.element for name, kind in PIECES.items()}
    given = {name: f"%{name}" for name in ("m", "n", "alpha", "a", "a_row", "a_col", "height", "pieces", "length")}
    made = {"x": "%x.there", "x_step": "%x.step", "beta": "%factor", "y": "%target", "y_part": "%y.apart"}
    words = {
        **words_of(suffix),
        "read": read_ir(record, fields, fields),
        "write": write_ir(record, fields, given | made),
        "record": record,
        "bytes": own.align,
        "lanes": lanes_of(suffix),
        "lanes_twice": 2 * lanes_of(suffix),
        "rows": ROWS,
        "rows_less": ROWS - 1,
        "small": float(SMALL),
        "piece": float(PIECE),
        "most_pieces": float(MOST_PIECES),
        "tall": TALL,
        "most_partial": MOST_PARTIAL,
        "part": PART,
        "part_less": PART - 1,
        "work": own.align * BYTE_WORK,
    }
    texts = Template(ROW_VECTOR + _column_vector(suffix) + PIECES_OF_VECTOR + VECTOR).substitute(words)
    streams = [rows_ir(ROWS, suffix), *(columns_ir(count, suffix) for count in COLUMNS)]
    streams += [short_ir(vectors, suffix) for vectors in SHORT]
    return record_ir(record, fields) + "".join(streams) + expand_loops(texts)


def _column_vector(suffix: str) -> str:
    """The product by columns: some at a time, the larger numbers first."""
    t, begin, loops = ARITHMETIC[suffix].element, "0", ""
    for count in COLUMNS:
        columns = range(count)
        lines = []
        for j in columns:
            lines += [
                f"%j{count}.{j} = add nsw i64 %j{count}, {j}",
                f"%x{count}.{j}.offset = mul i64 %j{count}.{j}, %x_step",
                f"%x{count}.{j}.at = getelementptr {t}, ptr %x, i64 %x{count}.{j}.offset",
                f"%x{count}.{j} = load {t}, ptr %x{count}.{j}.at",
            ]
        text = "\n".join(f"  {line}" for line in lines)
        numbers = ", ".join(f"{t} %x{count}.{j}" for j in columns)
        loops += f"""
  %last{count} = sub i64 %n, {count - 1}
  for %j{count} from {begin} to %last{count} by {count} {{
{text}
  %a{count}.offset = mul i64 %j{count}, %a_col
  %a{count} = getelementptr {t}, ptr %a, i64 %a{count}.offset
  call void @add_columns_{count}_{suffix}(i64 %m, $t %alpha, {numbers}, ptr %a{count}, i64 %a_col, ptr %y)
  }}"""
        begin = f"%j{count}"
    return COLUMN_VECTOR.replace("<loops>", loops)


DOTS = """
; One inner product.
define internal $t @dot_$s(i64 %k, ptr noalias %a, i64 %a_step, ptr noalias %b, i64 %b_step) noinline {
start:
  %a.unit = icmp eq i64 %a_step, 1
  %b.unit = icmp eq i64 %b_step, 1
  %unit = and i1 %a.unit, %b.unit
  br i1 %unit, label %straight, label %strided
straight:
  %dots = call <1 x $t> @dots_of_rows_1_$s(i64 %k, ptr %a, i64 0, ptr %b)
  %dot = extractelement <1 x $t> %dots, i32 0
  ret $t %dot
strided:
  for %q from 0 to %k by 1 with $t %total = $zero then %grown {
    %aq.offset = mul i64 %q, %a_step
    %bq.offset = mul i64 %q, %b_step
    %aq.at = getelementptr $t, ptr %a, i64 %aq.offset
    %bq.at = getelementptr $t, ptr %b, i64 %bq.offset
    %aq = load $t, ptr %aq.at
    %bq = load $t, ptr %bq.at
    %term = $times $t %aq, %bq
    %grown = $plus $t %total, %term
  }
  ret $t %total
}

; The product of any layout, an inner product for each element of c.
define internal void @dots_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
  %fresh = $equal $t %beta, $zero
  for %i from 0 to %m by 1 {
    %a.offset = mul i64 %i, %a_row
    %a.here = getelementptr $t, ptr %a, i64 %a.offset
    %c.offset = mul i64 %i, %c_row
    %c.here = getelementptr $t, ptr %c, i64 %c.offset
    for %j from 0 to %n by 1 {
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
      %value = phi $t [%scaled, %j.turn], [%updated, %update]
      store $t %value, ptr %at
    }
  }
  ret void
}
"""

ROW_VECTOR = """
; y = alpha a x + beta y where the rows of a, x and y are contiguous.
define internal void @row_vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, ptr noalias %x, $t %beta,
    ptr noalias %y) noinline optsize {
start:
  %fresh = $equal $t %beta, $zero
  %alpha.one = insertelement <$rows x $t> poison, $t %alpha, i32 0
  %alpha.all = shufflevector <$rows x $t> %alpha.one, <$rows x $t> poison, <$rows x i32> zeroinitializer
  %beta.one = insertelement <$rows x $t> poison, $t %beta, i32 0
  %beta.all = shufflevector <$rows x $t> %beta.one, <$rows x $t> poison, <$rows x i32> zeroinitializer
  %last = sub i64 %m, $rows_less
  for %i from 0 to %last by $rows {
    %a.offset = mul i64 %i, %a_row
    %a.here = getelementptr $t, ptr %a, i64 %a.offset
    %y.here = getelementptr $t, ptr %y, i64 %i
    %sums = call <$rows x $t> @dots_of_rows_${rows}_$s(i64 %n, ptr %a.here, i64 %a_row, ptr %x)
    %scaled = $scale <$rows x $t> %sums, %alpha.all
    br i1 %fresh, label %write, label %update
update:
    %old = load <$rows x $t>, ptr %y.here, align $align
    %kept = $scale <$rows x $t> %old, %beta.all
    %updated = $join <$rows x $t> %scaled, %kept
    br label %write
write:
    %value = phi <$rows x $t> [%scaled, %i.turn], [%updated, %update]
    store <$rows x $t> %value, ptr %y.here, align $align
  }
  %beyond = sub i64 %m, %i
  %a.rest.offset = mul i64 %i, %a_row
  %a.rest = getelementptr $t, ptr %a, i64 %a.rest.offset
  %y.rest = getelementptr $t, ptr %y, i64 %i
  call void @dots_$s(i64 %beyond, i64 1, i64 %n, $t %alpha, ptr %a.rest, i64 %a_row, i64 1, ptr %x, i64 1, i64 0,
      $t %beta, ptr %y.rest, i64 1, i64 0)
  ret void
}
"""

COLUMN_VECTOR = """
; y = beta y for a contiguous y, whose old values do not count where beta is 0.
define internal void @begin_$s(i64 %m, $t %beta, ptr noalias %y) noinline {
start:
  %fresh = $equal $t %beta, $zero
  br i1 %fresh, label %clear, label %keep
clear:
  %size = mul i64 %m, $align
  call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 %size, i1 false)
  ret void
keep:
  %same = $equal $t %beta, $one
  br i1 %same, label %done, label %scale
scale:
  %beyond = urem i64 %m, $lanes
  %whole = sub i64 %m, %beyond
  %beta.one = insertelement <$lanes x $t> poison, $t %beta, i32 0
  %beta.all = shufflevector <$lanes x $t> %beta.one, <$lanes x $t> poison, <$lanes x i32> zeroinitializer
  for %i from 0 to %whole by $lanes {
    %some.at = getelementptr $t, ptr %y, i64 %i
    %some = load <$lanes x $t>, ptr %some.at, align $align
    %some.kept = $scale <$lanes x $t> %some, %beta.all
    store <$lanes x $t> %some.kept, ptr %some.at, align $align
  }
  for %j from %whole to %m by 1 {
    %at = getelementptr $t, ptr %y, i64 %j
    %old = load $t, ptr %at
    %kept = $scale $t %old, %beta
    store $t %kept, ptr %at
  }
  ret void
done:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; y = alpha a x + beta y where the columns of a, and y, are contiguous.
define internal void @column_vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_col, ptr noalias %x,
    i64 %x_step, $t %beta, ptr noalias %y) noinline optsize {
start:
  call void @begin_$s(i64 %m, $t %beta, ptr %y)
  %least = icmp sle i64 %m, $lanes
  br i1 %least, label %one.register, label %look
one.register:
  call void @add_short_1_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_col, ptr %x, i64 %x_step, ptr %y)
  ret void
look:
  %short = icmp sle i64 %m, $lanes_twice
  br i1 %short, label %two.registers, label %long
two.registers:
  call void @add_short_2_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_col, ptr %x, i64 %x_step, ptr %y)
  ret void
long:<loops>
  ret void
}
"""

PIECES_OF_VECTOR = """
; y = alpha a x + beta y for a contiguous y, and an x that is contiguous or not read along rows.
define internal void @piece_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %x,
    i64 %x_step, $t %beta, ptr noalias %y) noinline optsize {
start:
  %x.unit = icmp eq i64 %x_step, 1
  %a.along = icmp eq i64 %a_col, 1
  %rows = and i1 %a.along, %x.unit
  br i1 %rows, label %by.rows, label %look
by.rows:
  call void @row_vector_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_row, ptr %x, $t %beta, ptr %y)
  ret void
look:
  %columns = icmp eq i64 %a_row, 1
  br i1 %columns, label %by.columns, label %any
by.columns:
  call void @column_vector_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_col, ptr %x, i64 %x_step, $t %beta, ptr %y)
  ret void
any:
  call void @dots_$s(i64 %m, i64 1, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, i64 0,
      $t %beta, ptr %y, i64 1, i64 0)
  ret void
}

; The pieces from begin to end, those of the first part first.
define internal void @pieces_$s(ptr %context, i64 %begin, i64 %end) noinline optsize {
start:
  $read
  for %task from %begin to %end by 1 {
    %part = udiv i64 %task, %pieces
    %piece = urem i64 %task, %pieces
    %i = mul i64 %piece, %height
    %j = mul i64 %part, %length
    %i.left = sub i64 %m, %i
    %j.left = sub i64 %n, %j
    %i.short = icmp slt i64 %i.left, %height
    %j.short = icmp slt i64 %j.left, %length
    %rows = select i1 %i.short, i64 %i.left, i64 %height
    %columns = select i1 %j.short, i64 %j.left, i64 %length
    %i.offset = mul i64 %i, %a_row
    %j.offset = mul i64 %j, %a_col
    %a.offset = add i64 %i.offset, %j.offset
    %a.here = getelementptr $t, ptr %a, i64 %a.offset
    %x.offset = mul i64 %j, %x_step
    %x.here = getelementptr $t, ptr %x, i64 %x.offset
    %part.offset = mul i64 %part, %y_part
    %y.offset = add i64 %part.offset, %i
    %y.here = getelementptr $t, ptr %y, i64 %y.offset
    call void @piece_$s(i64 %rows, i64 %columns, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col, ptr %x.here,
        i64 %x_step, $t %beta, ptr %y.here)
  }
  ret void
}

@one_$s = internal constant $t $one

; y = beta y + the results of parts that follow each other.
define internal void @combine_$s(i64 %m, i64 %parts, ptr noalias %partial, $t %beta, ptr noalias %y,
    i64 %y_step) noinline optsize {
start:
  %unit = icmp eq i64 %y_step, 1
  br i1 %unit, label %straight, label %strided
straight:
  call void @column_vector_$s(i64 %m, i64 %parts, $t $one, ptr %partial, i64 %m, ptr @one_$s, i64 0, $t %beta, ptr %y)
  ret void
strided:
  %others = sub i64 %parts, 1
  %second = getelementptr $t, ptr %partial, i64 %m
  call void @column_vector_$s(i64 %m, i64 %others, $t $one, ptr %second, i64 %m, ptr @one_$s, i64 0, $t $one,
      ptr %partial)
  call void @dots_$s(i64 %m, i64 1, i64 1, $t $one, ptr %partial, i64 1, i64 0, ptr @one_$s, i64 0, i64 0, $t %beta,
      ptr %y, i64 %y_step, i64 0)
  ret void
}
"""

VECTOR = """
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i64 @blocks_of_$s(i64 %numbers, i64 %size) alwaysinline {
  %padded = add i64 %numbers, %size
  %above = sub i64 %padded, 1
  %count = udiv i64 %above, %size
  ret i64 %count
}

; y = alpha a x + beta y without BLAS, m > 0: in pieces, with memory for what cannot be read or written in place.
define internal void @piecewise_$s(i64 %m, i64 %n, double %size, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    i1 %rows, ptr noalias %x, i64 %x_step, $t %beta, ptr noalias %y, i64 %y_step) noinline optsize {
start:
  %context = alloca %$record, align 8
  %exact = fdiv double %size, $piece
  %high = fcmp ogt double %exact, $most_pieces
  %some = select i1 %high, double $most_pieces, double %exact
  %most = fptosi double %some to i64
  %low = icmp slt i64 %most, 1
  %wanted = select i1 %low, i64 1, i64 %most
  ; whole groups of rows; as few pieces by columns as there can be; one part where neither is contiguous
  %columns = icmp eq i64 %a_row, 1
  %height.exact = call i64 @blocks_of_$s(i64 %m, i64 %wanted)
  %height.more = add i64 %height.exact, $rows_less
  %height.rows = and i64 %height.more, -$rows
  %tall = call i64 @blocks_of_$s(i64 %m, i64 $tall)
  %height.even = call i64 @blocks_of_$s(i64 %m, i64 %tall)
  %height.padded = add i64 %height.even, $part_less
  %height.columns = and i64 %height.padded, -$part
  %down = xor i1 %rows, true
  %by.columns = and i1 %columns, %down
  %height = select i1 %by.columns, i64 %height.columns, i64 %height.rows
  %pieces = call i64 @blocks_of_$s(i64 %m, i64 %height)
  %parts.exact = udiv i64 %wanted, %pieces
  %parts.room = udiv i64 $most_partial, %m
  %crowded = icmp sgt i64 %parts.exact, %parts.room
  %parts.most = select i1 %crowded, i64 %parts.room, i64 %parts.exact
  %cut = or i1 %rows, %by.columns
  %several = icmp sgt i64 %parts.most, 1
  %divided = and i1 %cut, %several
  %parts.wanted = select i1 %divided, i64 %parts.most, i64 1
  %length.exact = call i64 @blocks_of_$s(i64 %n, i64 %parts.wanted)
  %length.more = add i64 %length.exact, $part_less
  %length.whole = and i64 %length.more, -$part
  %nothing = icmp eq i64 %n, 0
  %length = select i1 %nothing, i64 $part, i64 %length.whole
  %parts.some = call i64 @blocks_of_$s(i64 %n, i64 %length)
  %parts = select i1 %nothing, i64 1, i64 %parts.some
  ; memory for the parts, and for x
  %y.strided = icmp ne i64 %y_step, 1
  %parts.several = icmp sgt i64 %parts, 1
  %beside = or i1 %y.strided, %parts.several
  %x.strided = icmp ne i64 %x_step, 1
  %copied = and i1 %rows, %x.strided
  %partial.all = mul i64 %parts, %m
  %partial.numbers = select i1 %beside, i64 %partial.all, i64 0
  %x.numbers = select i1 %copied, i64 %n, i64 0
  %numbers = add i64 %partial.numbers, %x.numbers
  %needed = icmp sgt i64 %numbers, 0
  br i1 %needed, label %allocate, label %ready
allocate:
  %bytes = mul i64 %numbers, $bytes
  %memory = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %slowly, label %ready
slowly:
  call void @dots_$s(i64 %m, i64 1, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, i64 0,
      $t %beta, ptr %y, i64 %y_step, i64 0)
  ret void
ready:
  %partial = phi ptr [null, %start], [%memory, %allocate]
  %x.copy = getelementptr $t, ptr %partial, i64 %partial.numbers
  for %j from 0 to %x.numbers by 1 {
    %x.offset = mul i64 %j, %x_step
    %x.from = getelementptr $t, ptr %x, i64 %x.offset
    %number = load $t, ptr %x.from
    %x.copy.at = getelementptr $t, ptr %x.copy, i64 %j
    store $t %number, ptr %x.copy.at
  }
  %x.there = select i1 %copied, ptr %x.copy, ptr %x
  %x.step = select i1 %copied, i64 1, i64 %x_step
  %target = select i1 %beside, ptr %partial, ptr %y
  %y.apart = select i1 %beside, i64 %m, i64 0
  %factor = select i1 %beside, $t $zero, $t %beta
  $write
  %count = mul i64 %pieces, %parts
  %work = fmul double %size, $work
  call void @share(ptr @pieces_$s, ptr %context, i64 %count, i64 1, double %work)
  br i1 %beside, label %combine, label %end
combine:
  call void @combine_$s(i64 %m, i64 %parts, ptr %partial, $t %beta, ptr %y, i64 %y_step)
  br label %end
end:
  call void @free(ptr %partial)
  ret void
}

; y = alpha a x + beta y without BLAS, m > 0.
define internal void @vector_$s(i64 %m, i64 %n, $t %alpha, ptr noalias %a.given, i64 %a_row.given, i64 %a_col.given,
    ptr noalias %x.given, i64 %x_step.given, $t %beta, ptr noalias %y.given, i64 %y_step.given) alwaysinline {
start:
  ; rows and columns that are contiguous backwards, from their other ends
  %last.row = sub i64 %m, 1
  %last.column = sub i64 %n, 1
  %back = icmp eq i64 %a_col.given, -1
  %up = icmp eq i64 %a_row.given, -1
  %first.column = select i1 %back, i64 %last.column, i64 0
  %first.row = select i1 %up, i64 %last.row, i64 0
  %row.offset = mul i64 %first.row, %a_row.given
  %column.offset = mul i64 %first.column, %a_col.given
  %offset = add i64 %row.offset, %column.offset
  %a = getelementptr $t, ptr %a.given, i64 %offset
  %x.offset = mul i64 %first.column, %x_step.given
  %x = getelementptr $t, ptr %x.given, i64 %x.offset
  %y.offset = mul i64 %first.row, %y_step.given
  %y = getelementptr $t, ptr %y.given, i64 %y.offset
  %x_step.back = sub i64 0, %x_step.given
  %y_step.up = sub i64 0, %y_step.given
  %a_row.own = select i1 %up, i64 1, i64 %a_row.given
  %a_col.own = select i1 %back, i64 1, i64 %a_col.given
  %x_step.own = select i1 %back, i64 %x_step.back, i64 %x_step.given
  %y_step.own = select i1 %up, i64 %y_step.up, i64 %y_step.given
  ; steps between no two elements do not count
  %one.row = icmp eq i64 %m, 1
  %one.column = icmp sle i64 %n, 1
  %a_row = select i1 %one.row, i64 0, i64 %a_row.own
  %a_col = select i1 %one.column, i64 0, i64 %a_col.own
  %x_step = select i1 %one.column, i64 1, i64 %x_step.own
  %y_step = select i1 %one.row, i64 1, i64 %y_step.own
  %rows = icmp eq i64 %a_col, 1
  %x.unit = icmp eq i64 %x_step, 1
  %y.unit = icmp eq i64 %y_step, 1
  %down = xor i1 %rows, true
  %x.fits = or i1 %x.unit, %down
  %fits = and i1 %x.fits, %y.unit
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %size = fmul double %m.real, %n.real
  %light = fcmp ole double %size, $small
  %one = and i1 %fits, %light
  br i1 %one, label %piece, label %pieces
piece:
  call void @piece_$s(i64 %m, i64 %n, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %x, i64 %x_step, $t %beta, ptr %y)
  ret void
pieces:
  call void @piecewise_$s(i64 %m, i64 %n, double %size, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, i1 %rows, ptr %x,
      i64 %x_step, $t %beta, ptr %y, i64 %y_step)
  ret void
}
"""
