"""LLVM IR that fills memory with a pattern before it is used, so that what is read before it is written shows.

In: IR text of matrix products or of the pool. Out: the same, with every piece of memory that it takes filled. POISON_IR
is the function that fills, which entry points call for the arena and the results (entry.py).
"""

from __future__ import annotations

import re

from graphc.codegen.call.bind import POISON

POISON_IR = f"""
; Fills memory with the words of a pattern; nothing where there is none.
define internal void @poison(ptr %memory, i64 %bytes) noinline {{
start:
  %none = icmp eq ptr %memory, null
  %length = select i1 %none, i64 0, i64 %bytes
  %whole = and i64 %length, -4
  br label %words
words:
  %w = phi i64 [0, %start], [%w.next, %word]
  %some = icmp ult i64 %w, %whole
  br i1 %some, label %word, label %rest
word:
  %word.at = getelementptr i8, ptr %memory, i64 %w
  store i32 {POISON}, ptr %word.at, align 1
  %w.next = add i64 %w, 4
  br label %words
rest:
  %b = phi i64 [%whole, %words], [%b.next, %byte]
  %pattern = phi i32 [{POISON}, %words], [%pattern.next, %byte]
  %more = icmp ult i64 %b, %length
  br i1 %more, label %byte, label %done
byte:
  %byte.at = getelementptr i8, ptr %memory, i64 %b
  %low = trunc i32 %pattern to i8
  store i8 %low, ptr %byte.at, align 1
  %pattern.next = lshr i32 %pattern, 8
  %b.next = add i64 %b, 1
  br label %rest
done:
  ret void
}}
"""

_TAKES_HEAP = re.compile(r"^ *(?P<memory>%[\w.]+) = call ptr @(?:malloc|keep)\(i64 (?P<bytes>[^)]*)\)$", re.MULTILINE)
_TAKES_STACK = re.compile(
    r"^ *(?P<memory>%[\w.]+) = alloca (?P<type>\[\d+ x [^\]]+\]), align 64$",
    re.MULTILINE,
)


def poisoned(ir: str) -> str:
    """IR text whose memory is filled where it is taken: what it asks the C library for or keeps between calls, and
    arrays on the stack that hold numbers, which stand on lines of the caches."""

    def fill_heap(taken: re.Match[str]) -> str:
        return f"{taken[0]}\n  call void @poison(ptr {taken['memory']}, i64 {taken['bytes']})"

    def fill_stack(taken: re.Match[str]) -> str:
        size = f"ptrtoint (ptr getelementptr ({taken['type']}, ptr null, i64 1) to i64)"
        return f"{taken[0]}\n  call void @poison(ptr {taken['memory']}, i64 {size})"

    return _TAKES_STACK.sub(fill_stack, _TAKES_HEAP.sub(fill_heap, ir)) + POISON_IR
