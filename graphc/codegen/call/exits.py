"""The exits of a call in native code, and its first step: what an entry point does once and need not be fast.

In: the words of a call, which entry.py describes. Out: functions of LLVM IR that are compiled once for a machine. An
entry point that held these statements itself would take LLVM a third longer.
"""

from __future__ import annotations

from graphc.codegen.call.arguments import release_all
from graphc.codegen.call.layout import NO_MEMORY, OBJECT_TYPE, TUPLE_ITEMS, TUPLE_SIZE
from graphc.codegen.call.objects import (
    call_object,
    clear_error,
    has_error,
    matches_error,
    new_list,
    new_number,
    new_tuple,
    release,
    word,
    word_at,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import function
from graphc.codegen.llvm.typed import I64, NULL, Ptr


@function("noinline")
def new_results(code: Code, record: Ptr, count: I64) -> Ptr:
    """Return a new tuple of results, or a list, as the record says; null with an exception set."""
    with code.when(word(record, "tuples") != NULL):
        code.ret(new_tuple(record, count))
    return new_list(record, count)


@function("noinline optnone")
def given_results(code: Code, record: Ptr, out: Ptr, count: I64) -> Ptr:
    """Return the address of the arrays in `out`, a tuple of `count` of them; null for anything else."""
    with code.when(out.get(OBJECT_TYPE) != word(record, "tuple")):
        code.ret(NULL)
    with code.when(out.get(TUPLE_SIZE) != count):
        code.ret(NULL)
    return out.at(TUPLE_ITEMS)


@function("noinline optnone")
def out_of_memory(code: Code, record: Ptr, status: I64) -> I64:
    """Return the status of a call for which an array could not be made: a MemoryError becomes NO_MEMORY, which `fail`
    explains; any other exception stays."""
    with code.when(matches_error(record, word(record, "memory error")) != 0):
        clear_error(record)
        code.ret(I64.of(NO_MEMORY))
    return status


@function("noinline optnone")
def go_elsewhere(
    code: Code, record: Ptr, references: Ptr, result: Ptr, other: I64, args: Ptr, nargs: I64, kwnames: Ptr
) -> Ptr:
    """Release what the call holds, and return what the function at offset `other` of the record makes of its
    arguments."""
    release_all(code, references, record)
    release(code, result, record)
    return call_object(record, word_at(record, other), args, nargs, kwnames)


@function("noinline optnone")
def end_failed(
    code: Code,
    record: Ptr,
    references: Ptr,
    result: Ptr,
    status: I64,
    objects: Ptr,
    count: I64,
    args: Ptr,
    nargs: I64,
    kwnames: Ptr,
) -> Ptr:
    """Release what a failed call holds, and return fail(status, *objects); the function that takes refused calls where
    there is no `fail`; null where the kernel leaves an exception. objects: `count` of them, after a free place."""
    release(code, result, record)
    answer = code.variable(NULL)
    with code.when(has_error(record) == NULL):
        with code.when(word(record, "fail") == NULL):
            release_all(code, references, record)
            code.ret(call_object(record, word(record, "refuse"), args, nargs, kwnames))
        number = new_number(record, status)
        with code.when(number != NULL):
            objects.store(number)
            answer.value = call_object(record, word(record, "fail"), objects, count + 1, NULL)
            release(code, number, record)
    release_all(code, references, record)
    return answer.value
