"""Batches of matrix products as LLVM IR: one product where it can be, else product by product, shared by threads.

In: the suffix of a dtype. Out: IR text of gc_batched_gemm_<t> (api.py), which calls gc_gemm_<t> and
`share` (context.py).

Matrices are shared out where each is so small that its product runs on one thread, and all together are worth several;
a larger one is itself shared out. A product is the same whoever computes it, and so are the results.
"""

from __future__ import annotations

from string import Template

from graphc.codegen.gemm.context import read_ir, record_ir, write_ir
from graphc.codegen.llvm.counted import expand_loops
from graphc.codegen.threads.chunking import SETTINGS

UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 0.5}
"""What a multiplication and addition of a product costs, in units of work (threads/chunking.py)."""

ARGUMENTS = {
    **dict.fromkeys(("m", "n", "k"), "i64"),
    "alpha": "",
    "a": "ptr",
    "a_batch": "i64",
    "a_row": "i64",
    "a_col": "i64",
    "b": "ptr",
    "b_batch": "i64",
    "b_row": "i64",
    "b_col": "i64",
    "beta": "",
    "c": "ptr",
    "c_batch": "i64",
    "c_row": "i64",
    "c_col": "i64",
}
"""The arguments behind the count, which threads find in a record; "" is the dtype."""


def batches_ir(suffix: str, element: str, largest: int) -> str:
    """The functions of one dtype. largest: multiplications of a matrix from which on it is shared out itself."""
    record, fields = f"batch_{suffix}", {name: kind or element for name, kind in ARGUMENTS.items()}
    words = {
        "s": suffix,
        "t": element,
        "record": record,
        "read": read_ir(record, fields, fields),
        "write": write_ir(record, fields, {name: f"%{name}" for name in fields}),
        "unit": UNIT[suffix],
        "largest": float(largest),
        "settings": SETTINGS,
    }
    return record_ir(record, fields) + expand_loops(Template(BATCHES).substitute(words))


BATCHES = """
; The products from begin to end of a batch.
define internal void @batch_range_$s(ptr %context, i64 %begin, i64 %end) noinline optsize {
start:
  $read
  for %number from %begin to %end by 1 {
    %a.offset = mul i64 %number, %a_batch
    %b.offset = mul i64 %number, %b_batch
    %c.offset = mul i64 %number, %c_batch
    %a.here = getelementptr $t, ptr %a, i64 %a.offset
    %b.here = getelementptr $t, ptr %b, i64 %b.offset
    %c.here = getelementptr $t, ptr %c, i64 %c.offset
    %result = call i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col, ptr %b.here,
        i64 %b_row, i64 %b_col, $t %beta, ptr %c.here, i64 %c_row, i64 %c_col)
  }
  ret void
}

define i64 @gc_batched_gemm_$s(i64 %count, i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_batch, i64 %a_row,
    i64 %a_col, ptr noalias %b, i64 %b_batch, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_batch,
    i64 %c_row, i64 %c_col) noinline optsize {
start:
  %context = alloca %$record, align 8
  ; rows of a and c that follow each other through the batch, times one b: a single product
  %a.matrix = mul i64 %m, %a_row
  %c.matrix = mul i64 %m, %c_row
  %a.follows = icmp eq i64 %a_batch, %a.matrix
  %c.follows = icmp eq i64 %c_batch, %c.matrix
  %b.same = icmp eq i64 %b_batch, 0
  %follow = and i1 %a.follows, %c.follows
  %single = and i1 %follow, %b.same
  br i1 %single, label %joined, label %weigh
joined:
  %rows = mul i64 %count, %m
  %joined.result = call i64 @gc_gemm_$s(i64 %rows, i64 %n, i64 %k, $t %alpha, ptr %a, i64 %a_row, i64 %a_col, ptr %b,
      i64 %b_row, i64 %b_col, $t %beta, ptr %c, i64 %c_row, i64 %c_col)
  ret i64 %joined.result
weigh:
  $write
  %count.real = sitofp i64 %count to double
  %m.real = sitofp i64 %m to double
  %n.real = sitofp i64 %n to double
  %k.real = sitofp i64 %k to double
  %outer = fmul double %m.real, %n.real
  %each = fmul double %outer, %k.real
  %each.work = fmul double %each, $unit
  %work = fmul double %each.work, %count.real
  %small = fcmp olt double %each, $largest
  br i1 %small, label %shared, label %alone
shared:
  ; chunks that are worth a claim
  %chunk.at = getelementptr i64, ptr @$settings, i64 2
  %chunk = load i64, ptr %chunk.at
  %chunk.real = sitofp i64 %chunk to double
  %few.real = fdiv double %chunk.real, %each.work
  %few.low = fcmp olt double %few.real, %count.real
  %few.most = select i1 %few.low, double %few.real, double %count.real
  %few = fptosi double %few.most to i64
  %some = icmp sgt i64 %few, 1
  %size = select i1 %some, i64 %few, i64 1
  call void @share(ptr @batch_range_$s, ptr %context, i64 %count, i64 %size, double %work)
  ret i64 0
alone:
  call void @batch_range_$s(ptr %context, i64 0, i64 %count)
  ret i64 0
}
"""
