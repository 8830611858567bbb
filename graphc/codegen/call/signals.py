"""The native functions of safepoints: they ask whether the handler of a signal raises.

In: nothing. Out: functions of LLVM IR, -1 where an exception is set now.

Python runs handlers in the main thread only: other threads get 0 at once. So does a thread that asked less than PERIOD
ago, without taking the GIL, which another thread may hold for a switch interval. The kernel may run with or without
the GIL.
"""

from __future__ import annotations

import platform

from graphc.codegen.call.callback import INTERRUPTED, STOPPED
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Global, external, function
from graphc.codegen.llvm.typed import I32, I64, Ptr

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
