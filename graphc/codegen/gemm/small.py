"""Matrix products as loops in LLVM IR, for any dtype and layout: what runs where BLAS does not.

In: the suffix of a dtype (f64, f32, i64, i32). Out: IR text of internal functions:

    loops    c = alpha a b + beta c by the best of the following
    tiles    blocks of a few rows and contiguous columns of c, in registers while p runs; b is read by rows
    packed   tiles over copies of parts of a b whose rows are not contiguous

    What no copy would help goes by `dots` (gemv.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from graphc.codegen.gemm.microkernel import ARITHMETIC, lanes_of, parts_ir, tile_ir, words_of
from graphc.codegen.gemm.packing import GROUP, pack_ir
from graphc.codegen.llvm.counted import expand_loops
from graphc.codegen.llvm.target import has_avx512

PANEL_ROWS = 256
PANEL_COLUMNS = 32
"""The part of a matrix that is copied to the stack at a time: whole tiles."""
WIDE_ROWS = {False: (4, 1), True: (8, 4, 1)}
"""Rows of the tiles that are two registers wide: their sums fill half of the 16 registers that there are without
AVX-512, and of the 32 with it."""
NARROW_ROWS = (8, 4, 1)
"""Rows of the tiles for what is left, of one register at most: enough to keep both multipliers busy."""


def loops_ir(suffix: str) -> str:
    """The functions of one dtype, all internal. They call those of `product_vectors.dots_ir`."""
    large, lanes = has_avx512(), lanes_of(suffix)
    words = words_of(suffix) | {
        "panel": str(PANEL_ROWS * PANEL_COLUMNS),
        "panel_rows": str(PANEL_ROWS),
        "panel_columns": str(PANEL_COLUMNS),
        "widest": str(2 * lanes),
        "group": str(GROUP),
        "group_less": str(GROUP - 1),
    }
    wide, narrow = WIDE_ROWS[large], NARROW_ROWS
    return expand_loops(
        "".join(
            [
                *(tile_ir(rows, 2 * lanes, suffix) for rows in wide),
                *(_wide_strip_ir(rows, 2 * lanes, suffix) for rows in wide),
                _columns_ir("wide", wide, suffix),
                parts_ir(lanes, suffix),
                *(tile_ir(rows, lanes, suffix, part=True) for rows in narrow),
                *(_narrow_strip_ir(rows, lanes, suffix) for rows in narrow),
                _columns_ir("narrow", narrow, suffix),
                pack_ir(suffix),
                Template(LOOPS).substitute(words),
            ]
        )
    )


def _wide_strip_ir(rows: int, width: int, suffix: str) -> str:
    """So many whole rows of c, whose columns are whole tiles."""
    return _strip_ir("wide", rows, width, "", f"tile_{rows}_{width}_{suffix}", "", suffix)


def _narrow_strip_ir(rows: int, width: int, suffix: str) -> str:
    """So many whole rows of c, the last tile a part of one."""
    least = f"""
  %left = sub i64 %n, %j
  %low = icmp slt i64 %left, {width}
  %columns = select i1 %low, i64 %left, i64 {width}"""
    return _strip_ir("narrow", rows, width, least, f"part_{rows}_{width}_{suffix}", ", i64 %columns", suffix)


def _strip_ir(name: str, rows: int, width: int, before: str, tile: str, more: str, suffix: str) -> str:
    element = ARITHMETIC[suffix].element
    return f"""
define internal void @{name}_{rows}_{suffix}(i64 %n, i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:
  repeat %j from 0 to %n by {width} {{{before}
  %b.here = getelementptr {element}, ptr %b, i64 %j
  %c.here = getelementptr {element}, ptr %c, i64 %j
  call void @{tile}(i64 %k, {element} %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b.here, i64 %b_row,
      {element} %beta, ptr %c.here, i64 %c_row{more})
  }}
  ret void
}}
"""


def _columns_ir(name: str, blocks: Sequence[int], suffix: str) -> str:
    """All rows of c, by blocks of so many: the larger ones while they last."""
    element = ARITHMETIC[suffix].element
    begin, loops = "0", ""
    for rows in blocks:
        loops += f"""
  %last{rows} = sub i64 %m, {rows - 1}
  for %i{rows} from {begin} to %last{rows} by {rows} {{
  %a{rows}.offset = mul i64 %i{rows}, %a_row
  %c{rows}.offset = mul i64 %i{rows}, %c_row
  %a{rows} = getelementptr {element}, ptr %a, i64 %a{rows}.offset
  %c{rows} = getelementptr {element}, ptr %c, i64 %c{rows}.offset
  call void @{name}_{rows}_{suffix}(i64 %n, i64 %k, {element} %alpha, ptr %a{rows}, i64 %a_row, i64 %a_col, ptr %b,
      i64 %b_row, {element} %beta, ptr %c{rows}, i64 %c_row)
  }}"""
        begin = f"%i{rows}"
    return f"""
define internal void @{name}_{suffix}(i64 %m, i64 %n, i64 %k, {element} %alpha, ptr noalias %a, i64 %a_row,
    i64 %a_col, ptr noalias %b, i64 %b_row, {element} %beta, ptr noalias %c, i64 %c_row) noinline optsize {{
start:{loops}
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

; The product for a c with contiguous rows and any b, of which a few columns and rows at a time are copied.
define internal void @packed_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col,
    ptr noalias %b, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_row) noinline optsize {
start:
  %panel = alloca [$panel x $t], align 64
  repeat %j from 0 to %n by %width {
    %j.left = sub i64 %n, %j
    %j.full = icmp sgt i64 %j.left, $panel_columns
    %width = select i1 %j.full, i64 $panel_columns, i64 %j.left
    %b.column = mul i64 %j, %b_col
    %b.top = getelementptr $t, ptr %b, i64 %b.column
    %c.here = getelementptr $t, ptr %c, i64 %j
    %width.padded = add i64 %width, $group_less
    %lead = and i64 %width.padded, -$group
    repeat %p from 0 to %k by %height with $t %factor = %beta then $one {
      %p.left = sub i64 %k, %p
      %p.full = icmp sgt i64 %p.left, $panel_rows
      %height = select i1 %p.full, i64 $panel_rows, i64 %p.left
      %b.row = mul i64 %p, %b_row
      %b.here = getelementptr $t, ptr %b.top, i64 %b.row
      %a.column = mul i64 %p, %a_col
      %a.here = getelementptr $t, ptr %a, i64 %a.column
      repeat %g from 0 to %width by $group {
        %g.left = sub i64 %width, %g
        %g.low = icmp slt i64 %g.left, $group
        %lanes = select i1 %g.low, i64 %g.left, i64 $group
        %g.offset = mul i64 %g, %b_col
        %b.group = getelementptr $t, ptr %b.here, i64 %g.offset
        %panel.group = getelementptr $t, ptr %panel, i64 %g
        call void @pack_$s(i64 %lanes, i64 %height, ptr %b.group, i64 %b_col, i64 %b_row, ptr %panel.group, i64 %lead)
      }
      call void @tiles_$s(i64 %m, i64 %width, i64 %height, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col, ptr %panel,
          i64 %lead, $t %factor, ptr %c.here, i64 %c_row)
    }
  }
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

"""
