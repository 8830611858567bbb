"""The words that a product hands to its threads, and how it starts them.

In: the words that parts of a product need, by name. Out: `Words`, which writes and reads them; a function of LLVM IR:

    share(body, context, count, size, work)
        body(context, begin, end) for the numbers 0 .. count: on threads, `size` at a time, where that much work
        (threads/chunking.py) is worth them, else at once
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphc.codegen.gemm.api import ENTRIES, PRODUCT_WORDS
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Global, function
from graphc.codegen.llvm.typed import F64, I64, NULL, Ptr, Value
from graphc.codegen.threads.chunking import BACK_OFF_WORD, LEAST_CHUNKS, LEAST_WORK, SETTINGS, SETTINGS_WORDS, THREADS


class Words:
    """A record of words by name, eight bytes each. kinds: their types."""

    def __init__(self, kinds: Mapping[str, type[Any]]) -> None:
        self.kinds = kinds
        self.places = {name: 8 * place for place, name in enumerate(kinds)}

    def read(self, context: Ptr) -> dict[str, Any]:
        """All words."""
        return {name: context.at(self.places[name]).load(kind) for name, kind in self.kinds.items()}

    def write(self, code: Code, values: Mapping[str, Value]) -> Ptr:
        """A record on the stack."""
        context = code.local(I64, len(self.kinds))
        self.put(context, values)
        return context

    def put(self, context: Ptr, values: Mapping[str, Value]) -> None:
        """Some words of a record."""
        for name, value in values.items():
            context.at(self.places[name]).store(value)


ENTRY = Global("gc_blas", f"external global [{len(ENTRIES)} x ptr]")
SETTING = Global(SETTINGS, f"external global [{PRODUCT_WORDS} x i64]")


def find(code: Code, table: Ptr, place: int, finder: int) -> Ptr:
    """The address in a table of addresses. Where it is 0, its finder is called first, if there is one."""
    at = table.at(place, Ptr)
    address, done = code.variable(at.load(Ptr, order="acquire", align=8)), code.label("done")
    done.when(address.value != NULL)
    look = table.at(finder, Ptr).load(Ptr, order="acquire", align=8)
    done.when(look == NULL)
    look.call(None)
    address.value = at.load(Ptr, order="acquire", align=8)
    code.place(done)
    return address.value


@function("noinline optsize", name="pool")
def find_pool(code: Code) -> Ptr:
    """The function of the pool; null where there is none."""
    return find(code, ENTRY(code), ENTRIES.index("parallel"), ENTRIES.index("find parallel"))


@function("noinline optsize")
def share(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, work: F64) -> None:
    threads, least, chunk, back_off = (
        SETTING(code).at(place, I64).load(I64) for place in (THREADS, LEAST_CHUNKS, LEAST_WORK, BACK_OFF_WORD)
    )
    alone = code.label("alone")
    alone.unless((work >= (least * chunk).to(F64)) & (count > 1) & (threads > 1))
    launch = find_pool(code)
    alone.when(launch == NULL)
    own = code.local(I64, SETTINGS_WORDS)
    for place, value in ((THREADS, threads), (LEAST_CHUNKS, I64.of(2)), (BACK_OFF_WORD, back_off)):
        own.at(place, I64).store(value)
    launch.call(None, body, context, count, size, own)
    code.ret()
    code.place(alone)
    body.call(None, context, I64.of(0), count)
