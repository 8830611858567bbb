"""Calls of LAPACK on one thread of its own.

In: the work of a call, memory for its account. Out: functions of LLVM IR, before and after it:

    begin_alone(work, is_shared, account)   OpenBLAS has one thread
    ...                                     calls of LAPACK and BLAS, from any thread of the pool
    end_alone(account)                      it has as many as before

The threads of OpenBLAS wait for each other after each step of a factorisation, of which there are hundreds. Where
another process has one of their processors, each of these waits takes as long as the system lets that process run: a
matrix of 200 rows took 60 to 80 ms, of which one was computing. So a call has one thread up to `SEVERAL`
multiplications, and at any size where our own pool shares the work out. Above that, two threads of OpenBLAS gain a
third. It has them until the system has taken a processor from this process during such a call, as it does where more
want one than there are; then there is one for `BACK_OFF` times as long as that call took.

The number is OpenBLAS's for the whole process. The words behind the symbol gc_alone say who has changed it: the number
of the process, 0 for nobody; and what it was. One thread changes it at a time, and others that call meanwhile leave it
alone: they run on one thread too. In a child that was forked within such a call the words are the parent's: the first
call finds another process's number, and sets what is kept there when it is done. Other libraries than OpenBLAS keep
their threads.
"""

from __future__ import annotations

from graphc.codegen.gemm.context import SETTING
from graphc.codegen.lapack.api import ALONE, GET_THREADS, KEPT_THREADS, OWNER, RESUME, SET_THREADS
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Global, external, function
from graphc.codegen.llvm.typed import F64, I32, I64, NULL, Bool, Ptr
from graphc.codegen.threads.chunking import BACK_OFF, THREADS
from graphc.codegen.threads.pool import WALL, clock, getpid

SEVERAL = 400.0**3
"""Multiplications from which two threads of OpenBLAS gain a third on a quiet machine; below that less, or nothing."""
TAKEN, SLICE = 4, 2**24
"""Involuntary switches to other processes that say that a processor was taken: some, and one for each time of so many
nanoseconds. A quiet machine has a few."""
USAGE_WORDS, SWITCHES = 18, 17
"""The words of the system's record of what a process used, and the place of its involuntary switches."""
KEPT, BEGAN, BEFORE = range(3)
"""The words of an account: the number of threads to go back to, 0 for none; the time when a call with several began, 0
for one without; the switches before it."""

TABLE = Global("gc_alone", f"external global [{len(ALONE)} x ptr]")
getrusage = external("getrusage", I32, I32, Ptr)


def word(code: Code, name: str) -> Ptr:
    """The address of a word of the table."""
    return TABLE(code).at(ALONE.index(name), Ptr)


@function("noinline optsize")
def switches(code: Code) -> I64:
    """The number of times that a thread of this process had to leave a processor to another."""
    usage = code.local(I64, USAGE_WORDS, align=8)
    getrusage(code, I32.of(0), usage)
    return usage.at(SWITCHES, I64).load(I64)


@function("noinline optsize")
def begin_alone(code: Code, work: F64, is_shared: Bool, account: Ptr) -> None:
    account.at(KEPT, I64).store(I64.of(0))
    account.at(BEGAN, I64).store(I64.of(0))
    done = code.label("done")
    set_count = word(code, SET_THREADS).load(Ptr)
    done.when(set_count == NULL)
    is_wide = (SETTING(code).at(THREADS, I64).load(I64) > 1) & (work >= SEVERAL) & ~is_shared
    with code.when(is_wide):
        now = clock(code, WALL)
        with code.when(now >= word(code, RESUME).load(I64, order="monotonic", align=8)):
            account.at(BEGAN, I64).store(now)
            account.at(BEFORE, I64).store(switches(code))
            code.ret()
    owner, here = word(code, OWNER), getpid(code).to(I64)
    seen = owner.load(I64, order="monotonic", align=8)
    done.when(seen == here)
    _, is_mine = owner.exchange(seen, here, "acq_rel", align=8)
    done.unless(is_mine)
    kept = word(code, KEPT_THREADS)
    with code.when((seen == 0) | (kept.load(I64) == 0)):
        kept.store(word(code, GET_THREADS).load(Ptr).call(I32).to(I64))
    account.at(KEPT, I64).store(kept.load(I64))
    set_count.call(None, code.address(I64.of(1)))
    code.place(done)


@function("noinline optsize")
def end_alone(code: Code, account: Ptr) -> None:
    set_count, done = word(code, SET_THREADS).load(Ptr), code.label("done")
    done.when(set_count == NULL)
    kept, began = account.at(KEPT, I64), account.at(BEGAN, I64).load(I64)
    with code.when(kept.load(I64) != 0):
        set_count.call(None, kept)
        word(code, OWNER).store(I64.of(0), order="release", align=8)
    with code.when(began != 0):
        now = clock(code, WALL)
        elapsed = now - began
        with code.when(switches(code) - account.at(BEFORE, I64).load(I64) > elapsed // SLICE + TAKEN):
            word(code, RESUME).store(now + elapsed * BACK_OFF, order="monotonic", align=8)
    code.place(done)
