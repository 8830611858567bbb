"""The part that the functions of all routines share: matrix by matrix, shared by threads, and failures.

In: what computes one matrix of a routine (elimination.py, orthogonal.py, equations.py). Out:
gc_lapack_<routine>_<t> in LLVM IR.

Matrices are shared out where each takes one thread, and all together are worth several. What a thread takes at a time
has a workspace of its own, where a routine needs one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from graphc.codegen.gemm import LARGE_USERS
from graphc.codegen.gemm.tiles import ARITHMETIC, SETTING, Words, share
from graphc.codegen.lapack import ALONE, FUNCTIONS, GET_THREADS, KEPT_THREADS, OWNER, RESUME, SET_THREADS, arguments
from graphc.codegen.lapack.elimination import ELIMINATIONS
from graphc.codegen.lapack.equations import EQUATIONS
from graphc.codegen.lapack.orthogonal import ORTHOGONAL
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, external, function
from graphc.codegen.llvm.target import has_vector_products
from graphc.codegen.llvm.typed import F64, I32, I64, NULL, Bool, Ptr
from graphc.codegen.threads.pool import WALL, clock, getpid
from graphc.codegen.threads.settings import BACK_OFF, LEAST_WORK, THREADS
from graphc.ops.linalg.routine import LARGEST, ROUTINES, Routine, symbol
from graphc.startup.record import record

LEAST_LAPACK = 2.0**12
"""Additions of a matrix below which LAPACK has no threads."""
ONES = {**ELIMINATIONS, **ORTHOGONAL, **EQUATIONS}
"""By routine: a function that makes, of a suffix, LLVM's function for one matrix: it is given sizes, flags, operands
with their strides, results and workspaces, and returns the status."""
COSTS = {False: (1.0, 200.0), True: (20.0, 10_000.0)}
"""The cost of an addition of a routine, and of a matrix besides, in units of work (threads/settings.py): of one that
does without workspaces, and of an iteration of LAPACK's."""


@record(eq=False)
class Frame:
    """A routine's function while it is written."""

    routine: Routine
    suffix: str
    kinds: Mapping[str, type[Any]]

    @property
    def element(self) -> Any:
        """The type of the operands' elements."""
        return ARITHMETIC[self.suffix].element

    def result_element(self, place: int) -> Any:
        """The type of the elements of a result."""
        return I64 if self.routine.parts[place][1] else self.element

    def space_element(self, place: int) -> Any:
        """The type of the elements of a workspace."""
        return I64 if self.routine.spaces[place] else self.element

    def length(self, place: int, words: Mapping[str, Any]) -> I64:
        """The number of elements of a result for each matrix."""
        letters = self.letters(words)
        count = I64.of(1)
        for axis in self.routine.parts[place][0]:
            count = letters[axis] if count.code is None else count * letters[axis]
        return count

    def letters(self, words: Mapping[str, Any]) -> dict[str, I64]:
        """The sizes of all letters."""
        known = {letter: words[letter] for letter in self.routine.letters}
        if self.routine.derived({"m": 1, "n": 1}):
            known["k"] = known["m"].minimum(known["n"])
        return known


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of the room's PROTOTYPES."""
    return [batch(*FUNCTIONS[name]) for name in sorted(names)]


def batch(name: str, suffix: str) -> Function[..., I64]:
    """The function of a routine."""
    routine = ROUTINES[name]
    kinds = {
        each.name: Ptr if each.of in ("operand", "result", "workspace") else I64 for each in arguments(routine, suffix)
    }
    frame = Frame(routine, suffix, kinds)
    context = {"context": Ptr, "begin": I64, "end": I64}
    range_: Function[..., None] = Function(
        f"{name}_range_{suffix}", None, context, partial(_write_range, frame), "noinline optsize", is_internal=True
    )
    return Function(symbol(name, suffix), I64, kinds, partial(_write_batch, frame, range_), "noinline optsize")


def _words(frame: Frame) -> Words:
    return Words({"status": I64, "size": I64, **frame.kinds})


def _write_range(frame: Frame, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """The matrices from `begin` to `end`, as many as a thread takes at a time."""
    routine, suffix = frame.routine, frame.suffix
    words = _words(frame).read(context)
    lengths = [frame.length(place, words) for place in range(len(routine.results))]
    compute = ONES[routine.name](suffix)
    sizes = [words[name] for name in (*routine.letters, *routine.flags)]
    slot = begin // words["size"] if routine.spaces else begin
    spaces = [
        words[f"w{place}"].at(slot * words[f"w{place}_each"], frame.space_element(place))
        for place in range(len(routine.spaces))
    ]
    with code.count(begin, end) as number:
        operands: list[Any] = []
        for place, axes in enumerate(routine.operands):
            operands.append(words[f"a{place}"].at(number * words[f"a{place}_batch"], frame.element))
            operands += [words[f"a{place}_{axis}"] for axis in range(len(axes))]
        results = [
            words[f"r{place}"].at(number * length, frame.result_element(place)) for place, length in enumerate(lengths)
        ]
        status = compute(code, *sizes, *operands, *results, *spaces)
        if routine.failures:
            with code.when(status != 0):
                with code.when(words["nan"] == 0):
                    context.store(status, order="monotonic", align=8)
                for place, (result, length) in enumerate(zip(results, lengths, strict=True)):
                    element = frame.result_element(place)
                    value = element.of(0 if element is I64 else float("nan"))
                    with code.count(0, length) as i:
                        result.at(i, element).store(value)


def _write_batch(frame: Frame, range_: Function[..., None], code: Code, *values: Any) -> I64:
    words = dict(zip(frame.kinds, values, strict=True))
    count, routine = words["count"], frame.routine
    unit, fixed = COSTS[bool(routine.spaces)]
    letters, each = frame.letters(words), F64.of(1.0)
    for letter in routine.work:
        factor = letters[letter].to(F64)
        each = factor if each.code is None else each * factor
    work = each * unit + fixed
    worth = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work  # matrices that are worth a claim
    few = (worth < count.to(F64)).choose(worth, count.to(F64)).to(I64)
    size = (few > 1).choose(few, 1)
    if routine.spaces:
        least = (count + words["slots"] - 1) // words["slots"]
        size = (size > least).choose(size, (least > 1).choose(least, 1))
    context = _words(frame).write(code, {"status": I64.of(0), "size": size, **words})
    account, is_large = code.local(I64, 3), each >= LEAST_LAPACK
    is_shared = Bool.of(symbol(routine.name, frame.suffix).startswith(LARGE_USERS) and has_vector_products())
    with code.when(is_large):
        begin_alone(code, each, is_shared, account)
    with code.when(each < float(LARGEST)):
        share(code, range_.pointer(code), context, count, size, work * count.to(F64))
    with code.otherwise():
        range_(code, context, I64.of(0), count)
    with code.when(is_large):
        end_alone(code, account)
    return context.load(I64, order="monotonic", align=8)


# --- calls on one thread of OpenBLAS ----------------------------------------------------------------------------------
# Calls of LAPACK on one thread of its own.
#
# In: the work of a call, memory for its account. Out: functions of LLVM IR, before and after it:
#
#     begin_alone(work, is_shared, account)   OpenBLAS has one thread
#     ...                                     calls of LAPACK and BLAS, from any thread of the pool
#     end_alone(account)                      it has as many as before
#
# The threads of OpenBLAS wait for each other after each step of a factorisation, of which there are hundreds. Where
# another process has one of their processors, each of these waits takes as long as the system lets that process run: a
# matrix of 200 rows took 60 to 80 ms, of which one was computing. So a call has one thread up to `SEVERAL`
# multiplications, and at any size where our own pool shares the work out. Above that, two threads of OpenBLAS gain a
# third. It has them until the system has taken a processor from this process during such a call, as it does where more
# want one than there are; then there is one for `BACK_OFF` times as long as that call took.
#
# The number is OpenBLAS's for the whole process. The words behind the symbol gc_alone say who has changed it: the
# number of the process, 0 for nobody; and what it was. One thread changes it at a time, and others that call meanwhile
# leave it alone: they run on one thread too. In a child that was forked within such a call the words are the parent's:
# the first call finds another process's number, and sets what is kept there when it is done. Other libraries than
# OpenBLAS keep their threads.

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
