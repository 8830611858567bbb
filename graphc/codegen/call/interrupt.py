"""Long loops that end when a signal's handler raises, as that of Ctrl-C does.

In: nothing. Out: the function that a kernel's loops of steps ask from time to time: not 0 where the call must end. The
exception is then set in the thread, as a C function of Python's leaves it, and the entry point returns no result.

Python runs handlers in its main thread only, which is the process's: others are answered 0 at once, and so are those
that asked less than PERIOD ago, before the GIL is wanted. Another thread may hold that for as long as its
switch interval. The kernel may run with or without it.

A handler may use the shared variables of the call that it interrupts, or make that call itself. So a call with loops
that may ask has its locks from Python (locks.py), which knows of calls within calls.
"""

from __future__ import annotations

import platform

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Global, external, function
from graphc.codegen.llvm.typed import I32, I64, Ptr
from graphc.loops.ir import INDEX

POLL = "poll"
"""What stands in a loop of steps until it is known how it is asked: to be asked every so many steps."""
INTERRUPTED = "gc_interrupted"
KINDS: dict[str, tuple[str, ...]] = {POLL: (INDEX,), INTERRUPTED: ()}
"""What both take."""

POLLED = 10**7
"""Work after which a loop of steps asks (schedule/work.py): a millisecond, and some twenty where all is misjudged."""
PATIENT = POLLED // 8
"""Work of loops up to which none of a call can ask."""
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


def answer_no() -> int:
    """The same where CPython runs the source: it looks at signals itself."""
    return 0
