"""Large matrix products of floats as LLVM IR: packed operands, blocks of the result shared by threads.

In: the suffix of a dtype (f64, f32). Out: IR text of one function of C, by the name of `blas.blocks_name`:

    gc_blocks_<t>(settings, triangle, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col)
        as gc_gemm_<t> where no size is 0, on threads where the settings (chunks.SETTINGS) find the work worth them.
        triangle: not 0 where only what is on or below the diagonal of a c with contiguous rows is wanted; the rest is
        then left undefined. Returns 0, or 1 where there was no memory and nothing is done

Operands are copied to panels, of 8 rows of a and of two registers of columns of b, one number of each lane after the
other (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008, and BLIS). A panel of b and a
block of panels of a stay in the second cache while they are multiplied. Both operands are packed before a block of c
is begun, so that threads have one copy between them: they share the packing, then the blocks. What is read well where
it stands is not copied, but for the last panel, whose missing lanes become 0.

Each element of c is a sum over p in order within depths of at most DEPTH, which follow from k alone, and these sums are
added up in order. How c is divided, and who computes it, changes no bit of the result.

The memory for the panels is kept from call to call. A call that finds it in use has its own. What is kept is given back
by the module's other function, `blas.free_name`, which does nothing while a call uses it.
"""

from __future__ import annotations

import sys
from string import Template

from graphc.codegen.gemm.api import free_name
from graphc.codegen.gemm.context import read_ir, record_ir, write_ir
from graphc.codegen.gemm.microkernel import ARITHMETIC, lanes_of, tile_ir, words_of
from graphc.codegen.gemm.packing import GROUP, pack_ir, panels_ir
from graphc.codegen.llvm.counted import expand_loops

DEPTH = 512
"""Numbers of a panel's lane that are multiplied at a time. A panel of b is 64 kB then: the second cache gives it as
fast as it is multiplied, and c is read and written half as often as where it fitted the nearest one."""
BLOCK_PANELS = 8
"""Panels of a in a block of c: 256 kB of float64, in the second cache."""
PARTS = 64
"""Blocks that a large c is divided into, at least: what the slowest thread is late by is a part of one."""
LEAST_TILES = 8
"""Tiles of a block at least."""
RESIDENT_BYTES, RESIDENT_TURNED_BYTES = 2**20, 2**19
"""Of a b whose rows are contiguous, and of an a whose columns are, up to which they are faster read where they are."""
SLAB = 4096
"""Rows and columns of c that are computed at a time."""
PANEL_BYTES = 2**23
"""Memory for panels, about: of longer operands some depths are packed at a time."""
PACKED = 2**15
"""Numbers that are worth a thread's turn to be packed."""
HUGE_PAGE = 2**21
"""Bytes that long memory for panels is a multiple of, and aligned to."""
HUGE_FROM = 2**22
"""Bytes from which it is long."""
ADVICE = 14
"""Linux's number for: in huge pages."""
UNIT = {"f64": 0.3, "f32": 0.15}
"""What a multiplication and addition costs here, in units of work (threads/chunking.py)."""

CONTEXT = {
    **dict.fromkeys(("m", "n", "k", "depth"), "i64"),
    "a": "ptr",
    "a_row": "i64",
    "a_col": "i64",
    "b": "ptr",
    "b_row": "i64",
    "b_col": "i64",
    "c": "ptr",
    "c_row": "i64",
    "c_col": "i64",
    "a_panels": "ptr",
    "b_panels": "ptr",
    **dict.fromkeys(("a_first", "b_first", "height", "width", "across", "diagonal"), "i64"),
    **dict.fromkeys(("alpha", "beta"), ""),
}
"""What threads know of a product, "" being its dtype: the part of the operands that is packed, of which `depth`
numbers are multiplied at a time; the first panels that are packed; a block's height and width in panels, and how many
are beside each other; how far below the diagonal of the whole c its first row begins."""

WRITTEN = {
    "operands": {name: f"%{name}" for name in ("depth", "a_row", "a_col", "b_row", "b_col", "c_row", "c_col", "alpha")},
    "rows": {"m": "%m.slab", "a_first": "%a_first"},
    "columns": {"n": "%n.slab", "b_first": "%b_first", "c": "%c.slab"}
    | {name: f"%{name}" for name in ("diagonal", "height", "width", "across")},
    "depths": {
        "k": "%p.depth",
        "a": "%a.pass",
        "b": "%b.pass",
        "beta": "%factor",
        "a_panels": "%memory",
        "b_panels": "%b.memory",
    },
}
"""The words that are written once, and for each slab of rows, of columns, and part of the depth; their values."""
PACKED_BY = (
    *("m", "n", "k", "depth", "a", "a_row", "a_col", "b", "b_row", "b_col", "a_panels", "b_panels"),
    *("a_first", "b_first"),
)
"""The words that packing reads. Multiplying reads all but b_col."""


def blocks_ir(suffix: str) -> str:
    """The module of one dtype. It refers to gc_parallel."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    width = 2 * lanes
    record, fields = f"context_{suffix}", {name: kind or own.element for name, kind in CONTEXT.items()}
    words = {
        **words_of(suffix),
        "read_packing": read_ir(record, fields, PACKED_BY),
        "read_all": read_ir(record, fields, [name for name in fields if name != "b_col"]),
        **{f"write_{part}": write_ir(record, fields, values) for part, values in WRITTEN.items()},
        "bytes": own.align,
        "depth": DEPTH,
        "group": GROUP,
        "columns": width,
        "resident": RESIDENT_BYTES // own.align,
        "resident_turned": RESIDENT_TURNED_BYTES // own.align,
        "room": GROUP * width,
        "panels": BLOCK_PANELS,
        "parts": PARTS,
        "least_tiles": LEAST_TILES,
        "slab": SLAB,
        "unit": UNIT[suffix],
        "rows_less": GROUP - 1,
        "columns_less": width - 1,
        "packed": PACKED // width,
        "far": 2**62,
        "free_name": free_name(suffix),
        "page": HUGE_PAGE,
        "page_less": HUGE_PAGE - 1,
        "huge_from": HUGE_FROM,
        "advice": ADVICE,
        "panel_numbers": PANEL_BYTES // own.align,
    }
    allocate = ALLOCATE_HUGE if sys.platform == "linux" else ALLOCATE
    memory = MEMORY.replace("$allocate", allocate)
    texts = Template(memory + PACKING + TILE + BLOCKS + PRODUCT).substitute(words)
    return (
        record_ir(record, fields)
        + tile_ir(GROUP, width, suffix)
        + pack_ir(suffix)
        + panels_ir(suffix)
        + expand_loops(texts)
    )


ALLOCATE = """
define internal ptr @allocate(i64 %bytes) alwaysinline {
  %memory = call ptr @malloc(i64 %bytes)
  ret ptr %memory
}
"""

ALLOCATE_HUGE = """
declare ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)

; Memory, if it is long in huge pages: of small ones the first touch took a fifth of a first product.
define internal ptr @allocate(i64 %bytes) noinline {
start:
  %long = icmp uge i64 %bytes, $huge_from
  br i1 %long, label %huge, label %plain
plain:
  %short.memory = call ptr @malloc(i64 %bytes)
  ret ptr %short.memory
huge:
  %more = add i64 %bytes, $page_less
  %size = and i64 %more, -$page
  %memory = call ptr @aligned_alloc(i64 $page, i64 %size)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %advise
advise:
  %advised = call i32 @madvise(ptr %memory, i64 %size, i32 $advice)
  br label %done
done:
  ret ptr %memory
}
"""

MEMORY = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @gc_parallel(ptr, ptr, i64, i64, ptr)

$allocate
; Memory that is kept, its bytes, and 1 while a call uses it.
@kept = internal global ptr null
@kept.bytes = internal global i64 0
@kept.used = internal global i32 0

; The kept memory, made longer where that is needed; null where there is none. Only for the call that uses it.
define internal ptr @keep(i64 %bytes) noinline {
start:
  %old = load ptr, ptr @kept
  %old.bytes = load i64, ptr @kept.bytes
  %enough = icmp ule i64 %bytes, %old.bytes
  br i1 %enough, label %done, label %longer
longer:
  call void @free(ptr %old)
  %new = call ptr @allocate(i64 %bytes)
  %none = icmp eq ptr %new, null
  %new.bytes = select i1 %none, i64 0, i64 %bytes
  store ptr %new, ptr @kept
  store i64 %new.bytes, ptr @kept.bytes
  ret ptr %new
done:
  ret ptr %old
}

; Gives back the memory that is kept, unless a call uses it.
define void @$free_name() noinline {
start:
  %exchange = cmpxchg ptr @kept.used, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %exchange, 1
  br i1 %mine, label %give, label %done
give:
  %old = load ptr, ptr @kept
  call void @free(ptr %old)
  store ptr null, ptr @kept
  store i64 0, ptr @kept.bytes
  store atomic i32 0, ptr @kept.used release, align 4
  br label %done
done:
  ret void
}
"""

PACKING = """
; Packs the panels from begin to end: those of a come first.
define internal void @pack_range_$s(ptr %context, i64 %begin, i64 %end) {
  $read_packing
  %a.count = call i64 @panels_$s(i64 %m, i64 $group)
  %a.begin = add i64 %begin, %a_first
  %a.beyond = add i64 %end, %a_first
  %a.end = call i64 @llvm.smin.i64(i64 %a.beyond, i64 %a.count)
  call void @pack_panels_$s(i64 %a.begin, i64 %a.end, i64 %m, i64 %k, i64 %depth, i64 $group, ptr %a, i64 %a_row,
      i64 %a_col, ptr %a_panels)
  %a.packed = sub i64 %a.count, %a_first
  %b.low = sub i64 %begin, %a.packed
  %b.number = call i64 @llvm.smax.i64(i64 %b.low, i64 0)
  %b.begin = add i64 %b.number, %b_first
  %b.most = sub i64 %end, %a.packed
  %b.end = add i64 %b.most, %b_first
  call void @pack_panels_$s(i64 %b.begin, i64 %b.end, i64 %n, i64 %k, i64 %depth, i64 $columns, ptr %b, i64 %b_col,
      i64 %b_row, ptr %b_panels)
  ret void
}
"""

TILE = """
; A tile of c, of which only so many rows and columns are there, or whose columns are not contiguous.
define internal void @edge_$s(i64 %k, $t %alpha, ptr noalias %a, i64 %a_row, i64 %a_col, ptr noalias %b, i64 %b_row,
    $t %beta, ptr noalias %c, i64 %c_row, i64 %c_col, i64 %rows, i64 %columns) noinline optsize {
start:
  %sums = alloca [$room x $t], align 64
  call void @tile_${group}_${columns}_$s(i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row,
      $t $zero, ptr %sums, i64 $columns)
  %fresh = $equal $t %beta, $zero
  repeat %i from 0 to %rows by 1 {
    %i.offset = mul i64 %i, %c_row
    %i.sums = mul i64 %i, $columns
    repeat %j from 0 to %columns by 1 {
      %j.offset = mul i64 %j, %c_col
      %offset = add i64 %i.offset, %j.offset
      %at = getelementptr $t, ptr %c, i64 %offset
      %place = add i64 %i.sums, %j
      %sum.at = getelementptr $t, ptr %sums, i64 %place
      %sum = load $t, ptr %sum.at
      br i1 %fresh, label %write, label %update
update:
      %old = load $t, ptr %at
      %kept = $scale $t %old, %beta
      %updated = $join $t %sum, %kept
      br label %write
write:
      %value = phi $t [%sum, %j.turn], [%updated, %update]
      store $t %value, ptr %at
    }
  }
  ret void
}
"""

BLOCKS = """
; Computes the blocks of c from begin to end.
define internal void @multiply_blocks_$s(ptr %context, i64 %begin, i64 %end) {
start:
  $read_all
  %unit = icmp eq i64 %c_col, 1
  %m.padded = add i64 %m, ${rows_less}
  %a.count = udiv i64 %m.padded, $group
  %a.lanes = mul i64 %a.count, $group
  %n.padded = add i64 %n, ${columns_less}
  %b.count = udiv i64 %n.padded, $columns
  %b.lanes = mul i64 %b.count, $columns
  repeat %block from %begin to %end by 1 {
    %block.row = udiv i64 %block, %across
    %block.column = urem i64 %block, %across
    %top = mul i64 %block.row, %height
    %left = mul i64 %block.column, %width
    %top.below = add i64 %top, %height
    %left.beside = add i64 %left, %width
    %bottom = call i64 @llvm.smin.i64(i64 %top.below, i64 %a.count)
    %right = call i64 @llvm.smin.i64(i64 %left.beside, i64 %b.count)
    repeat %p from 0 to %k by %p.depth with $t %factor = %beta then 1.0 {
      %p.left = sub i64 %k, %p
      %p.depth = call i64 @llvm.smin.i64(i64 %p.left, i64 %depth)
      %a.start = mul i64 %p, %a.lanes
      %b.start = mul i64 %p, %b.lanes
      %a.depth = getelementptr $t, ptr %a_panels, i64 %a.start
      %b.depth = getelementptr $t, ptr %b_panels, i64 %b.start
      %a.numbers = mul i64 %p.depth, $group
      %b.numbers = mul i64 %p.depth, $columns
      %a.along = mul i64 %p, %a_col
      %b.down = mul i64 %p, %b_row
      %a.there = getelementptr $t, ptr %a, i64 %a.along
      %b.there = getelementptr $t, ptr %b, i64 %b.down
      repeat %j from %left to %right by 1 {
        %j.place = mul i64 %j, %b.numbers
        %b.packed = getelementptr $t, ptr %b.depth, i64 %j.place
        %j.column = mul i64 %j, $columns
        %b.direct = getelementptr $t, ptr %b.there, i64 %j.column
        %j.packed = icmp sge i64 %j, %b_first
        %b.panel = select i1 %j.packed, ptr %b.packed, ptr %b.direct
        %b.lead = select i1 %j.packed, i64 $columns, i64 %b_row
        %j.left = sub i64 %n, %j.column
        %j.columns = call i64 @llvm.smin.i64(i64 %j.left, i64 $columns)
        %j.whole = icmp eq i64 %j.columns, $columns
        %j.direct = and i1 %j.whole, %unit
        %j.offset = mul i64 %j.column, %c_col
        %c.column = getelementptr $t, ptr %c, i64 %j.offset
        ; the last row that is wholly above the diagonal
        %j.above = sub i64 %j.column, %diagonal
        repeat %i from %top to %bottom by 1 {
          %i.row = mul i64 %i, $group
          %i.after = add i64 %i.row, $group
          %above = icmp sle i64 %i.after, %j.above
          br i1 %above, label %row.end, label %tile
tile:
          %i.place = mul i64 %i, %a.numbers
          %a.packed = getelementptr $t, ptr %a.depth, i64 %i.place
          %i.down = mul i64 %i.row, %a_row
          %a.direct = getelementptr $t, ptr %a.there, i64 %i.down
          %i.packed = icmp sge i64 %i, %a_first
          %a.panel = select i1 %i.packed, ptr %a.packed, ptr %a.direct
          %a.lane = select i1 %i.packed, i64 1, i64 %a_row
          %a.lead = select i1 %i.packed, i64 $group, i64 %a_col
          %i.left = sub i64 %m, %i.row
          %i.rows = call i64 @llvm.smin.i64(i64 %i.left, i64 $group)
          %i.whole = icmp eq i64 %i.rows, $group
          %direct = and i1 %i.whole, %j.direct
          %i.offset = mul i64 %i.row, %c_row
          %c.tile = getelementptr $t, ptr %c.column, i64 %i.offset
          br i1 %direct, label %whole, label %part
whole:
          call void @tile_${group}_${columns}_$s(i64 %p.depth, $t %alpha, ptr %a.panel, i64 %a.lane, i64 %a.lead,
              ptr %b.panel, i64 %b.lead, $t %factor, ptr %c.tile, i64 %c_row)
          br label %row.end
part:
          call void @edge_$s(i64 %p.depth, $t %alpha, ptr %a.panel, i64 %a.lane, i64 %a.lead, ptr %b.panel,
              i64 %b.lead, $t %factor, ptr %c.tile, i64 %c_row, i64 %c_col, i64 %i.rows, i64 %j.columns)
          br label %row.end
row.end:
        }
      }
    }
  }
  ret void
}
"""

PRODUCT = """
; Computes c with the panels in the memory given, a slab of c and as much of the depth as there is room for at a time.
define internal void @slabs_$s(ptr %settings, i64 %triangle, i64 %m, i64 %n, i64 %k, i64 %depth, i64 %pass, $t %alpha,
    ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col,
    ptr %memory) noinline optsize {
start:
  %context = alloca %context_$s, align 8
  $write_operands
  %everywhere = icmp eq i64 %triangle, 0
  ; rows of a that are contiguous are read where they are; so are its columns, and rows of b, that stay in cache
  %a.rows = icmp eq i64 %a_col, 1
  %a.columns = icmp eq i64 %a_row, 1
  %a.numbers = mul i64 %k, %m
  %a.small = icmp ult i64 %a.numbers, $resident_turned
  %a.stays = and i1 %a.columns, %a.small
  %a.direct = or i1 %a.rows, %a.stays
  %b.rows = icmp eq i64 %b_col, 1
  %b.numbers = mul i64 %k, %n
  %b.small = icmp ule i64 %b.numbers, $resident
  %b.stays = and i1 %b.rows, %b.small
  repeat %i from 0 to %m by $slab {
    %i.left = sub i64 %m, %i
    %m.slab = call i64 @llvm.smin.i64(i64 %i.left, i64 $slab)
    %m.whole = udiv i64 %m.slab, $group
    %a_first = select i1 %a.direct, i64 %m.whole, i64 0
    $write_rows
    %a.panels = call i64 @panels_$s(i64 %m.slab, i64 $group)
    repeat %j from 0 to %n by $slab {
      %j.left = sub i64 %n, %j
      %n.slab = call i64 @llvm.smin.i64(i64 %j.left, i64 $slab)
      %n.whole = udiv i64 %n.slab, $columns
      %b_first = select i1 %b.stays, i64 %n.whole, i64 0
      %b.panels = call i64 @panels_$s(i64 %n.slab, i64 $columns)
      %below = sub i64 %i, %j
      %diagonal = select i1 %everywhere, i64 $far, i64 %below
      %i.offset = mul i64 %i, %c_row
      %j.offset = mul i64 %j, %c_col
      %offset = add i64 %i.offset, %j.offset
      %c.slab = getelementptr $t, ptr %c, i64 %offset
      ; about $parts blocks, of as many panels of a as stay in cache
      %tiles = mul i64 %a.panels, %b.panels
      %part = udiv i64 %tiles, $parts
      %wanted = call i64 @llvm.smax.i64(i64 %part, i64 $least_tiles)
      %tall = call i64 @llvm.smin.i64(i64 %a.panels, i64 $panels)
      %height = call i64 @llvm.smin.i64(i64 %tall, i64 %wanted)
      %wide = udiv i64 %wanted, %height
      %width = call i64 @llvm.smax.i64(i64 %wide, i64 1)
      %across = call i64 @panels_$s(i64 %b.panels, i64 %width)
      %height.count = call i64 @panels_$s(i64 %a.panels, i64 %height)
      %blocks = mul i64 %across, %height.count
      $write_columns
      repeat %p from 0 to %k by %p.depth with $t %factor = %beta then 1.0 {
        %p.left = sub i64 %k, %p
        %p.depth = call i64 @llvm.smin.i64(i64 %p.left, i64 %pass)
        %a.down = mul i64 %i, %a_row
        %a.along = mul i64 %p, %a_col
        %a.offset = add i64 %a.down, %a.along
        %a.pass = getelementptr $t, ptr %a, i64 %a.offset
        %b.down = mul i64 %p, %b_row
        %b.along = mul i64 %j, %b_col
        %b.offset = add i64 %b.down, %b.along
        %b.pass = getelementptr $t, ptr %b, i64 %b.offset
        %a.lanes = mul i64 %a.panels, $group
        %a.room = mul i64 %a.lanes, %p.depth
        %b.memory = getelementptr $t, ptr %memory, i64 %a.room
        $write_depths
        %a.packed = sub i64 %a.panels, %a_first
        %b.packed = sub i64 %b.panels, %b_first
        %both = add i64 %a.packed, %b.packed
        %enough = udiv i64 $packed, %p.depth
        %share = call i64 @llvm.smax.i64(i64 %enough, i64 1)
        call void @gc_parallel(ptr @pack_range_$s, ptr %context, i64 %both, i64 %share, ptr %settings)
        call void @gc_parallel(ptr @multiply_blocks_$s, ptr %context, i64 %blocks, i64 1, ptr %settings)
      }
    }
  }
  ret void
}

; The settings of launches: threads only where the product is worth them.
define internal void @crew_$s(ptr %settings, i64 %m, i64 %n, i64 %k, ptr %own) noinline optsize {
  %threads = load i64, ptr %settings
  %least.at = getelementptr i64, ptr %settings, i64 1
  %least = load i64, ptr %least.at
  %chunk.at = getelementptr i64, ptr %settings, i64 2
  %chunk = load i64, ptr %chunk.at
  %patience.at = getelementptr i64, ptr %settings, i64 3
  %patience = load i64, ptr %patience.at
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %k.real = sitofp i64 %k to double
  %outer = fmul double %m.real, %n.real
  %all = fmul double %outer, %k.real
  %work = fmul double %all, $unit
  %least.work = mul i64 %least, %chunk
  %least.real = sitofp i64 %least.work to double
  %worth = fcmp oge double %work, %least.real
  %crew = select i1 %worth, i64 %threads, i64 1
  store i64 %crew, ptr %own
  %own.least = getelementptr i64, ptr %own, i64 1
  store i64 2, ptr %own.least
  %own.patience = getelementptr i64, ptr %own, i64 3
  store i64 %patience, ptr %own.patience
  ret void
}

define i64 @gc_blocks_$s(ptr %settings, i64 %triangle, i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row,
    i64 %a_col, ptr %b, i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col) noinline optsize {
start:
  %own = alloca [4 x i64], align 8
  %unit = icmp eq i64 %c_col, 1
  %down = icmp eq i64 %c_row, 1
  %crosswise = xor i1 %unit, true
  %turned = and i1 %crosswise, %down
  br i1 %turned, label %turn, label %measure
turn:
  %turn.code = call i64 @gc_blocks_$s(ptr %settings, i64 0, i64 %n, i64 %m, i64 %k, $t %alpha, ptr %b, i64 %b_col,
      i64 %b_row, ptr %a, i64 %a_col, i64 %a_row, $t %beta, ptr %c, i64 %c_col, i64 %c_row)
  ret i64 %turn.code
measure:
  ; depths of about the same length, in whole groups
  %depths = call i64 @panels_$s(i64 %k, i64 $depth)
  %exact = call i64 @panels_$s(i64 %k, i64 %depths)
  %groups = call i64 @panels_$s(i64 %exact, i64 $group)
  %depth = mul i64 %groups, $group
  %m.slab = call i64 @llvm.smin.i64(i64 %m, i64 $slab)
  %n.slab = call i64 @llvm.smin.i64(i64 %n, i64 $slab)
  %a.panels = call i64 @panels_$s(i64 %m.slab, i64 $group)
  %b.panels = call i64 @panels_$s(i64 %n.slab, i64 $columns)
  %a.lanes = mul i64 %a.panels, $group
  %b.lanes = mul i64 %b.panels, $columns
  %lanes = add i64 %a.lanes, %b.lanes
  %room = udiv i64 $panel_numbers, %lanes
  %fitting = udiv i64 %room, %depth
  %some = call i64 @llvm.smax.i64(i64 %fitting, i64 1)
  %least = call i64 @llvm.smin.i64(i64 %some, i64 %depths)
  %pass = mul i64 %least, %depth
  %numbers = mul i64 %lanes, %pass
  %length = mul i64 %numbers, $bytes
  %bytes = add i64 %length, 64
  %exchange = cmpxchg ptr @kept.used, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %exchange, 1
  br i1 %mine, label %keep, label %borrow
keep:
  %kept = call ptr @keep(i64 %bytes)
  br label %found
borrow:
  %borrowed = call ptr @malloc(i64 %bytes)
  br label %found
found:
  %memory = phi ptr [%kept, %keep], [%borrowed, %borrow]
  %none = icmp eq ptr %memory, null
  br i1 %none, label %give, label %compute
compute:
  call void @crew_$s(ptr %settings, i64 %m, i64 %n, i64 %k, ptr %own)
  %address = ptrtoint ptr %memory to i64
  %over = add i64 %address, 63
  %line = and i64 %over, -64
  %behind = sub i64 %line, %address
  %aligned = getelementptr i8, ptr %memory, i64 %behind
  call void @slabs_$s(ptr %own, i64 %triangle, i64 %m, i64 %n, i64 %k, i64 %depth, i64 %pass, $t %alpha, ptr %a,
      i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col, ptr %aligned)
  br label %give
give:
  %code = zext i1 %none to i64
  br i1 %mine, label %release, label %free
release:
  store atomic i32 0, ptr @kept.used release, align 4
  ret i64 %code
free:
  call void @free(ptr %memory)
  ret i64 %code
}
"""
