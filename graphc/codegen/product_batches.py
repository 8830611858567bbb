"""Batches of matrix products as LLVM IR: one product where it can be, else product by product, shared by threads.

In: the suffix of a dtype. Out: IR text of gc_batched_gemm_<t> (blas.py), which calls gc_gemm_<t>.

Matrices are shared out where each is so small that its product runs on one thread, and all together are worth several;
a larger one is itself shared out. A product is the same whoever computes it, and so are the results.
"""

from __future__ import annotations

from string import Template

from graphc.codegen.blas import ENTRIES
from graphc.codegen.chunks import SETTINGS

UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 0.5}
"""What a multiplication and addition of a product costs, in units of work (chunks.py)."""

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
    kinds = {name: kind or element for name, kind in ARGUMENTS.items()}
    places = {
        name: f"  %{name}.at = getelementptr %batch_{suffix}, ptr %context, i32 0, i32 {number}"
        for number, name in enumerate(kinds)
    }
    words = {
        "s": suffix,
        "t": element,
        "record": ", ".join(kinds.values()),
        "read": "\n".join(f"{places[name]}\n  %{name} = load {kind}, ptr %{name}.at" for name, kind in kinds.items()),
        "write": "\n".join(f"{places[name]}\n  store {kind} %{name}, ptr %{name}.at" for name, kind in kinds.items()),
        "unit": UNIT[suffix],
        "largest": float(largest),
        "settings": SETTINGS,
        "parallel": ENTRIES.index("parallel"),
        "find_parallel": ENTRIES.index("find parallel"),
    }
    return Template(BATCHES).substitute(words)


BATCHES = """
%batch_$s = type {$record}

; The products from begin to end of a batch.
define internal void @batch_range_$s(ptr %context, i64 %begin, i64 %end) noinline optsize {
start:
$read
  br label %batch
batch:
  %number = phi i64 [%begin, %start], [%number.next, %matrix]
  %more = icmp slt i64 %number, %end
  br i1 %more, label %matrix, label %done
matrix:
  %a.offset = mul i64 %number, %a_batch
  %b.offset = mul i64 %number, %b_batch
  %c.offset = mul i64 %number, %c_batch
  %a.here = getelementptr $t, ptr %a, i64 %a.offset
  %b.here = getelementptr $t, ptr %b, i64 %b.offset
  %c.here = getelementptr $t, ptr %c, i64 %c.offset
  %result = call i64 @gc_gemm_$s(i64 %m, i64 %n, i64 %k, $t %alpha, ptr %a.here, i64 %a_row, i64 %a_col, ptr %b.here,
      i64 %b_row, i64 %b_col, $t %beta, ptr %c.here, i64 %c_row, i64 %c_col)
  %number.next = add nsw i64 %number, 1
  br label %batch
done:
  ret void
}

define i64 @gc_batched_gemm_$s(i64 %count, i64 %m, i64 %n, i64 %k, $t %alpha, ptr noalias %a, i64 %a_batch, i64 %a_row,
    i64 %a_col, ptr noalias %b, i64 %b_batch, i64 %b_row, i64 %b_col, $t %beta, ptr noalias %c, i64 %c_batch,
    i64 %c_row, i64 %c_col) noinline optsize {
start:
  %context = alloca %batch_$s, align 8
  %settings = alloca [4 x i64], align 8
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
  %chunk.at = getelementptr i64, ptr @$settings, i64 2
  %chunk = load i64, ptr %chunk.at
  %chunk.real = sitofp i64 %chunk to double
  %small = fcmp olt double %each, $largest
  %least.at = getelementptr i64, ptr @$settings, i64 1
  %least = load i64, ptr %least.at
  %least.real = sitofp i64 %least to double
  %least.work = fmul double %least.real, %chunk.real
  %worth = fcmp oge double %work, %least.work
  %shared = and i1 %small, %worth
  br i1 %shared, label %look, label %alone
look:
  %launch.at = getelementptr ptr, ptr @gc_blas, i64 $parallel
  %launch.known = load atomic ptr, ptr %launch.at acquire, align 8
  %find.at = getelementptr ptr, ptr @gc_blas, i64 $find_parallel
  %find = load atomic ptr, ptr %find.at acquire, align 8
  %there = icmp ne ptr %launch.known, null
  %findable = icmp ne ptr %find, null
  br i1 %there, label %share, label %look.again
look.again:
  br i1 %findable, label %find.first, label %alone
find.first:
  call void %find()
  %launch.found = load atomic ptr, ptr %launch.at acquire, align 8
  %found = icmp ne ptr %launch.found, null
  br i1 %found, label %share, label %alone
share:
  %launch = phi ptr [%launch.known, %look], [%launch.found, %find.first]
  ; chunks that are worth a claim
  %few.real = fdiv double %chunk.real, %each.work
  %few.low = fcmp olt double %few.real, %count.real
  %few.most = select i1 %few.low, double %few.real, double %count.real
  %few = fptosi double %few.most to i64
  %some = icmp sgt i64 %few, 1
  %size = select i1 %some, i64 %few, i64 1
  %threads = load i64, ptr @$settings
  %patience.at = getelementptr i64, ptr @$settings, i64 3
  %patience = load i64, ptr %patience.at
  %own.least.at = getelementptr i64, ptr %settings, i64 1
  %own.patience.at = getelementptr i64, ptr %settings, i64 3
  store i64 %threads, ptr %settings
  store i64 2, ptr %own.least.at
  store i64 %patience, ptr %own.patience.at
  call void %launch(ptr @batch_range_$s, ptr %context, i64 %count, i64 %size, ptr %settings)
  ret i64 0
alone:
  call void @batch_range_$s(ptr %context, i64 0, i64 %count)
  ret i64 0
}
"""
