"""Memory filled with a pattern before it is used, so that what is read before it is written shows.

In: IR text of matrix products. Out: the same, with every piece of memory that it takes filled; `poison` is the function
that fills, which entry points (call/entry.py) and the pool call themselves.
"""

from __future__ import annotations

import re

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import function
from graphc.codegen.llvm.module import POISON
from graphc.codegen.llvm.typed import I8, I32, I64, NULL, Ptr


@function("noinline")
def poison(code: Code, memory: Ptr, length: I64) -> None:
    """Fills memory with the words of a pattern; nothing where there is none."""
    with code.when(memory == NULL):
        code.ret()
    with code.count(0, length >> 2) as i:
        memory.at(i, I32).store(I32.of(POISON), align=1)
    pattern = code.variable(I32.of(POISON))
    with code.count(length & -4, length) as i:
        memory.at(i).store(pattern.value.to(I8))
        pattern.value >>= 8


def poisoned(ir: str) -> str:
    """IR text whose memory is filled where it is taken: what it asks the C library for or keeps between calls, and
    arrays on the stack that hold numbers, which stand on lines of the caches."""

    def fill_heap(taken: re.Match[str]) -> str:
        return f"{taken[0]}\n  call void @poison(ptr {taken[1]}, i64 {taken[2]})"

    def fill_stack(taken: re.Match[str]) -> str:
        size = f"ptrtoint (ptr getelementptr ({taken[2]}, ptr null, i64 1) to i64)"
        return f"{taken[0]}\n  call void @poison(ptr {taken[1]}, i64 {size})"

    text = re.sub(r"^ *(%[\w.]+) = call ptr @(?:malloc|keep)\(i64 ([^)]*)\)$", fill_heap, ir, flags=re.MULTILINE)
    text = re.sub(r"^ *(%[\w.]+) = alloca (\[\d+ x [^\]]+\]), align 64$", fill_stack, text, flags=re.MULTILINE)
    return text + poison.definition().text("internal ")
