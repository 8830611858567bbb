"""The exits of a call in native code, its first step, and safepoints: what is done once and need not be fast.

In: the words of a call, which entry.py describes. Out: functions of LLVM IR that are compiled once for a machine. An
entry point that held these statements itself would take LLVM a third longer.
"""

from __future__ import annotations

import platform

from graphc.codegen.call.arguments import release_all
from graphc.codegen.call.callback import INTERRUPTED, STOPPED
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
from graphc.codegen.llvm.functions import Global, external, function
from graphc.codegen.llvm.typed import I32, I64, NULL, Ptr


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


# --- safepoints -------------------------------------------------------------------------------------------------------
#
# They ask whether the handler of a signal raises: -1 where an exception is set now. Python runs handlers in the main
# thread only: other threads get 0 at once. So does a thread that asked less than PERIOD ago, without taking the GIL,
# which another thread may hold for a switch interval. The kernel may run with or without the GIL.


PERIOD = 50_000_000
"""Nanoseconds."""
COARSE_CLOCK = 6
"""Linux's CLOCK_MONOTONIC_COARSE, which takes 5 ns to read."""
GETTID = {"x86_64": 186, "aarch64": 178}
"""The number of the system call."""

LAST = Global("last", "internal global i64 0, align 8")

clock_gettime = external("clock_gettime", I32, I32, Ptr)
system_call = external("syscall", I64, I64, is_variadic=True)
getpid = external("getpid", I32)
ensure_gil = external("PyGILState_Ensure", I32)
release_gil = external("PyGILState_Release", None, I32)
check_signals = external("PyErr_CheckSignals", I32)


@function(name=INTERRUPTED, is_internal=False)
def interrupted(code: Code) -> I64:
    time = code.local(I64, 2, align=8)
    clock_gettime(code, I32.of(COARSE_CLOCK), time)
    now = time.load(I64) * 10**9 + time.at(1, I64).load(I64)
    last = LAST(code)
    with code.when(now - last.load(I64, order="monotonic", align=8) < PERIOD):
        code.ret(I64.of(0))
    with code.when(system_call(code, I64.of(GETTID[platform.machine()])).to(I32) != getpid(code)):
        code.ret(I64.of(0))
    last.store(now, order="monotonic", align=8)
    state = ensure_gil(code)
    status = check_signals(code)
    release_gil(code, state)
    return status.to(I64)


@function(name=STOPPED, is_internal=False)
def stopped(code: Code, flag: Ptr) -> I64:
    """Return -1 where this thread has an exception set, or another one with the same flag got that answer; else 0."""
    with code.when(flag.load(I64, order="monotonic", align=8) != 0):
        code.ret(I64.of(-1))
    status = interrupted(code)
    with code.when(status != 0):
        flag.store(I64.of(1), order="monotonic", align=8)
    return status
