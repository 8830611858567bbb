"""Products of a matrix with a vector as loops in LLVM IR, and the inner products of any layout.

In: the suffix of a dtype (f64, f32, i64, i32). Out: IR text of internal functions:

    vector   y = alpha a x + beta y: some rows of a at a time, or some columns where these are contiguous
    dots     c = alpha a b + beta c, an inner product for each element of c
"""

from __future__ import annotations

from string import Template

from graphc.codegen.product_tiles import ARITHMETIC, words_of

AT_ONCE = 4
"""Rows or columns of a matrix that one pass over a vector serves."""


def dots_ir(suffix: str) -> str:
    """The inner products of one dtype."""
    return Template(DOTS).substitute(words_of(suffix))


def vectors_ir(suffix: str) -> str:
    """The products with a vector of one dtype. They call `dots`."""
    columns = [_columns_ir(count, suffix) for count in (AT_ONCE, 1)]
    return "".join([_rows_ir(suffix), *columns, Template(VECTORS).substitute(words_of(suffix))])


def _lines(template: str, count: int) -> str:
    """A line for each of so many rows or columns, whose number stands for #."""
    return "\n".join(template.replace("#", str(number)) for number in range(count))


def _rows_ir(suffix: str) -> str:
    """Some rows of a times x, each element of x loaded once for all: their inner products."""
    own, count = ARITHMETIC[suffix], AT_ONCE
    t, vector = own.element, f"<{AT_ONCE} x {own.element}>"
    gathered = "\n".join(
        f"  %v{row + 1} = insertelement {vector} {f'%v{row}' if row else 'poison'}, {t} %m{row}, i32 {row}"
        for row in range(count)
    )
    return f"""
define internal {vector} @dots_of_rows_{suffix}(i64 %n, ptr noalias %a, i64 %a_row, ptr noalias %x) noinline {{
start:
{_lines("  %offset# = mul i64 %a_row, #", count)}
{_lines(f"  %a# = getelementptr {t}, ptr %a, i64 %offset#", count)}
  br label %loop
loop:
  %j = phi i64 [0, %start], [%j.next, %loop]
{_lines(f"  %s# = phi {t} [{own.zero}, %start], [%m#, %loop]", count)}
  %x.at = getelementptr {t}, ptr %x, i64 %j
  %xj = load {t}, ptr %x.at
{_lines(f"  %e#.at = getelementptr {t}, ptr %a#, i64 %j", count)}
{_lines(f"  %e# = load {t}, ptr %e#.at", count)}
{_lines(f"  %p# = {own.times} {t} %e#, %xj", count)}
{_lines(f"  %m# = {own.gather} {t} %s#, %p#", count)}
  %j.next = add nsw i64 %j, 1
  %end = icmp eq i64 %j.next, %n
  br i1 %end, label %done, label %loop
done:
{gathered}
  ret {vector} %v{count}
}}
"""


def _columns_ir(count: int, suffix: str) -> str:
    """y plus so many columns of a, each times a number: contiguous vectors of m elements, m > 0."""
    own = ARITHMETIC[suffix]
    t = own.element
    numbers = ", ".join(f"{t} %x{number}" for number in range(count))
    return f"""
define internal void @add_columns_{count}_{suffix}(i64 %m, {numbers}, ptr noalias %a, i64 %a_col,
    ptr noalias %y) noinline {{
start:
{_lines("  %offset# = mul i64 %a_col, #", count)}
{_lines(f"  %a# = getelementptr {t}, ptr %a, i64 %offset#", count)}
  br label %loop
loop:
  %i = phi i64 [0, %start], [%i.next, %loop]
  %y.at = getelementptr {t}, ptr %y, i64 %i
{_lines(f"  %e#.at = getelementptr {t}, ptr %a#, i64 %i", count)}
{_lines(f"  %e# = load {t}, ptr %e#.at", count)}
  %s0 = load {t}, ptr %y.at
{_lines(f"  %p# = {own.times} {t} %e#, %x#", count)}
{"".join(f"  %s{number + 1} = {own.plus} {t} %s{number}, %p{number}" + chr(10) for number in range(count))}
  store {t} %s{count}, ptr %y.at
  %i.next = add nsw i64 %i, 1
  %end = icmp eq i64 %i.next, %m
  br i1 %end, label %done, label %loop
done:
  ret void
}}
"""


DOTS = """
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
"""

VECTORS = """
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
  %sums = call <4 x $t> @dots_of_rows_$s(i64 %n, ptr %a.here, i64 %a_row, ptr %x)
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
  call void @add_columns_4_$s(i64 %m, $t %ax0, $t %ax1, $t %ax2, $t %ax3, ptr %a.here, i64 %a_col, ptr %y)
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
  call void @add_columns_1_$s(i64 %m, $t %axk, ptr %b.here, i64 %a_col, ptr %y)
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
