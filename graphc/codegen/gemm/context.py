"""What a product tells its threads, and how it gets them, as LLVM IR.

In: the words that parts of a product need, by name. Out: IR text of a record of them, lines that write and read it, and
of an internal function:

    share(body, context, count, size, work)
        body(context, begin, end) for the numbers 0 .. count: on threads, `size` at a time, where that much work
        (threads/chunking.py) is worth them, else at once
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template

from graphc.codegen.gemm.api import ENTRIES
from graphc.codegen.threads.chunking import SETTINGS

Fields = Mapping[str, str]
"""The types of a record's words to LLVM, by name."""


def record_ir(record: str, fields: Fields) -> str:
    """The type %<record>."""
    return f"%{record} = type {{{', '.join(fields.values())}}}\n"


def read_ir(record: str, fields: Fields, names: Iterable[str]) -> str:
    """Lines that read words of the record at %context as %<name>."""
    return "\n  ".join(
        f"{_place(record, fields, name, 'at')}\n  %{name} = load {fields[name]}, ptr %{name}.at" for name in names
    )


def write_ir(record: str, fields: Fields, values: Mapping[str, str]) -> str:
    """Lines that write values, by name, to the record at %context."""
    return "\n  ".join(
        f"{_place(record, fields, name, 'to')}\n  store {fields[name]} {value}, ptr %{name}.to"
        for name, value in values.items()
    )


def _place(record: str, fields: Fields, name: str, suffix: str) -> str:
    return f"%{name}.{suffix} = getelementptr %{record}, ptr %context, i32 0, i32 {list(fields).index(name)}"


def share_ir() -> str:
    """The function `share`. It refers to gc_blas and to the settings of products."""
    words = {
        "settings": SETTINGS,
        "parallel": ENTRIES.index("parallel"),
        "find_parallel": ENTRIES.index("find parallel"),
    }
    return Template(SHARE).substitute(words)


SHARE = """
; The function of the pool; null where there is none.
define internal ptr @pool() noinline optsize {
start:
  %launch.at = getelementptr ptr, ptr @gc_blas, i64 $parallel
  %launch.known = load atomic ptr, ptr %launch.at acquire, align 8
  %there = icmp ne ptr %launch.known, null
  br i1 %there, label %known, label %look
known:
  ret ptr %launch.known
look:
  %find.at = getelementptr ptr, ptr @gc_blas, i64 $find_parallel
  %find = load atomic ptr, ptr %find.at acquire, align 8
  %findable = icmp ne ptr %find, null
  br i1 %findable, label %find.first, label %none
find.first:
  call void %find()
  %launch.found = load atomic ptr, ptr %launch.at acquire, align 8
  ret ptr %launch.found
none:
  ret ptr null
}

define internal void @share(ptr %body, ptr %context, i64 %count, i64 %size, double %work) noinline optsize {
start:
  %own = alloca [4 x i64], align 8
  %least.at = getelementptr i64, ptr @$settings, i64 1
  %least = load i64, ptr %least.at
  %chunk.at = getelementptr i64, ptr @$settings, i64 2
  %chunk = load i64, ptr %chunk.at
  %least.work = mul i64 %least, %chunk
  %least.real = sitofp i64 %least.work to double
  %heavy = fcmp oge double %work, %least.real
  %several = icmp sgt i64 %count, 1
  %threads = load i64, ptr @$settings
  %others = icmp sgt i64 %threads, 1
  %divisible = and i1 %several, %others
  %worth = and i1 %heavy, %divisible
  br i1 %worth, label %look, label %alone
look:
  %launch = call ptr @pool()
  %found = icmp ne ptr %launch, null
  br i1 %found, label %launched, label %alone
launched:
  %patience.at = getelementptr i64, ptr @$settings, i64 3
  %patience = load i64, ptr %patience.at
  %own.least = getelementptr i64, ptr %own, i64 1
  %own.patience = getelementptr i64, ptr %own, i64 3
  store i64 %threads, ptr %own
  store i64 2, ptr %own.least
  store i64 %patience, ptr %own.patience
  call void %launch(ptr %body, ptr %context, i64 %count, i64 %size, ptr %own)
  ret void
alone:
  call void %body(ptr %context, i64 0, i64 %count)
  ret void
}
"""
