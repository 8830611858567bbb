"""Memory filled with a pattern before it is used, so that what is read before it is written shows.

In: an address and a length. Out: `poison`, the function that fills: code that takes memory calls it where `Code.poison`
says so.
"""

from __future__ import annotations

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
