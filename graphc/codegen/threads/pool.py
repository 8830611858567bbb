"""The pool of threads as LLVM IR: the definition behind the symbol gc_parallel.

In: the machine this is. Out: IR text. Its object is compiled once for a machine and loaded once for a process.

    gc_parallel(body, context, count, size, settings)
        body(context, begin, end) for the chunks of `size` that 0 .. count falls into, the last one shorter
        settings: how many threads there may be, the least number of chunks for which there are several, and (word 3)
        how many times as long as a launch with workers lost against one without there are none
    gc_stream(body, context, count, size, settings, stream)
        the same, where the body fills much memory that it does not read
    gc_chunk(count, work, settings)
        chunks.chunk_size, the least work of a chunk being the third word of the settings
    gc_columns(count, work, settings)
        chunks.columns_size
    gc_probe(context, begin, end)
        a body to measure with: a polynomial of degree 8, with 1 for all coefficients, of float64, in place

The chunks do not depend on who runs them, so results do not either. Each thread of the team has a worker slot, the
caller the first, and each worker slot a share of the chunks, which lie side by side. A thread claims the chunks of its
own share in order, then steals what is left of the others', last chunk first. Worker slots are for life, so that from
call to call, and from loop to loop, a thread finds in its own caches what it wrote or read before: where processors
have their caches apart, that is worth a factor of two. The caller waits for no worker but those that are in the middle
of a chunk. Where the pool is busy with another caller, or the call comes from within a chunk, the caller runs all
chunks itself. So it does in a process that was forked while there were workers, until the pool has been made anew
there, which is noticed by the number of the process. No lock is ever held, so a fork cannot leave one behind.

A worker that is not given a processor in the middle of a chunk costs the caller more than it gains: on a busy machine a
launch may take as long as other processes please. So each launch is timed. What those lost that took longer than the
caller would have taken alone, judged by the processor time of the chunks that it ran itself, is added up, less what
others gained, and where that is more than `TOLERATED` there are no workers for a multiple of it. A loop that is still
at it when that time is over gets them for the rest. Whatever else the machine does, little is lost by threads.

Workers are native threads that know nothing of Python, block all signals, and end with the process. They spin for a
tenth of a millisecond after a launch that they had a worker slot in, then sleep in a futex.

A worker goes through these states, and moves itself but for one step:

    looking   its share, then the others', holds an unclaimed chunk of the launch it has seen: it claims that -> running
              its share is of that launch, and no chunk is left                                              -> spinning
              its share is of another launch: it has no worker slot in this one                                -> dozing
    running   the chunk is done, and `pending` is one less; it wakes a caller that sleeps, if it was the last -> looking
    spinning  `launches` has changed                                                                          -> looking
              it has spun long enough                                                                          -> dozing
    dozing    counted in `sleepers`; `launches` is still what it has seen: the system puts it to sleep         -> asleep
              it is not                                                                                       -> looking
    asleep    the caller of a launch wakes it                                                                 -> looking

A launch is moved by its caller, but for the chunks:

    free      the caller takes `owner`                                                                      -> owned
    owned     workers are there; body, context, count, size, team, then `pending`, then the shares are set  -> open
    open      the caller sets `launches` and wakes who sleeps; the team, and the caller as one of it, claim
              chunks until none is left, each counting `pending` down                                       -> joined
    joined    the caller has found nothing to claim; it spins, then sleeps, until `pending` is 0            -> complete
    complete  the caller settles its account of time and gives `owner` back                                 -> free

tests/codegen/threads/test_protocol.py takes the functions that are written here through all orders of their steps.

    shares      by worker slot: number of the launch << 32 | first chunk not claimed << 16 | the one after the last
    launches    the number of the last launch; workers sleep on it, each with the bit of its worker slot modulo 32
    sleepers    workers that sleep, or are about to
    pending     chunks that are not finished; the caller sleeps on it
    joining     1 while the caller sleeps, or is about to
    owner       1 while a caller uses the pool
    process     the process whose pool it is; -1 while it is made
    started     workers of that process
    resume      the time, in nanoseconds, before which launches are serial
    lost        nanoseconds that launches have lost since there were none, less what others gained; never negative
    sample      what some chunk has taken, in nanoseconds, for launches of which the caller runs none
    body, context, count, size, team    the launch. Read before a claim; a claim that succeeds proves them to be its own

The order of these words is that of C11's memory model, whatever the processor keeps by itself: x86-64 nearly all, Arm
nothing that is not asked for. What each order is for:

    a launch    is written before the shares, which are released, and acquired by whoever looks for chunks. Claims only
                exchange shares, so they continue what was released: who finds the number of a launch sees that launch,
                and all that the caller wrote before it. A claim acquires and releases: what was read of the launch was
                read before. The caller changes it when `pending` is 0, so after every claim; hence none of it is of a
                later launch, and loads and stores of it need no order of their own.
    results     are written before `pending` is counted down, which releases them, each countdown continuing those
                before; the caller acquires it at 0. Later launches give them on to other workers.
    sleep       is between two words, of which each side writes one, then reads the other: `pending` and `joining`,
                `launches` and `sleepers`. All of that is seq_cst, so that one side sees what the other wrote; what a
                worker sleeps on is read by the system, behind a barrier of its own.
    owner       is taken with acq_rel and given back with release: `started` and `lost` are its holder's, plain words.
                `process` hands a pool that was made anew to others in the same way.
    resume, sample      are times. Nothing follows from them but who runs a chunk.
"""

from __future__ import annotations

import platform
import signal
import sys
from typing import Any

from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Global, external, function, module_text, poison
from graphc.codegen.llvm.typed import F64, I8, I32, I64, NULL, Bool, Ptr, SizeAndFlag, vector
from graphc.codegen.threads.settings import (
    BACK_OFF_WORD,
    LEAST_CHUNKS,
    LEAST_COLUMNS,
    LEAST_STREAMED,
    LEAST_WORK,
    LINE,
    MOST_CHUNKS,
    MOST_COLUMNS,
    MOST_WORDS,
    PARALLEL,
    THREADS,
)
from graphc.options import MOST_THREADS
from graphc.startup.record import record

# --- results that non-temporal stores write: the definition behind the symbol gc_stream -------------------------------
# In: nothing. Out: a function of LLVM IR, a part of the pool's module.
#
#     gc_stream(body, context, count, size, settings, stream)
#         what gc_parallel does with the first five, where iteration i of the body fills element i of an array and reads
#         none of it, and reads element i of another. `stream` has five words: the bytes of the context; where in it the
#         address of the first array stands, in bytes, and the bytes of its elements; the same of the second
#
# Where the first array has as many bytes as word 4 of the settings says, and has been touched before, a chunk is run
# `BLOCK` bytes at a time, on a copy of the context in which some lines on its thread's stack stand in place of the
# array. What the body left there is then written by non-temporal stores (https://llvm.org/docs/LangRef.html,
# "nontemporal"). At its first touch the system clears a page, which leaves its lines in the cache, where other stores
# find them. Blocks begin and end with lines of the array; those at the ends of a chunk, which may not, are copied as
# ever. They are short: while they are stored the processor already reads what the next ones want. Where that fails,
# memory is read and written alternately, which takes as long as all that is saved; so lines of the second array are
# asked for ahead.

BLOCK = 256
"""Bytes that are filled at a time."""
LINE_BYTES = 64
"""The bytes of a line of the caches, and of a store."""


LINE_OF_WORDS = vector(I64, LINE_BYTES // 8)

parallel = external(PARALLEL, None, Ptr, Ptr, I64, I64, Ptr)
mincore = external("mincore", I32, Ptr, I64, Ptr)
getpagesize = external("getpagesize", I32)
copy_memory = external("llvm.memcpy.p0.p0.i64", None, Ptr, Ptr, I64, Bool)
prefetch = external("llvm.prefetch.p0", None, Ptr, I32, I32, I32)


class Streamed:
    """The words that `gc_stream` is given of a body: the bytes of the context; of the array that is filled and the
    one that is read, where in the context its address stands, and the bytes of an element."""

    def __init__(self, words: Ptr) -> None:
        self.context_length, self.place, self.size, self.read_place, self.read_size = (
            words.at(number, I64).load(I64) for number in range(5)
        )


@function("noinline", is_internal=False)
def gc_stream(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, settings: Ptr, stream: Ptr) -> None:
    streamed, through = Streamed(stream), code.label("through")
    filled = count * streamed.size
    through.when(filled.below(settings.at(LEAST_STREAMED, I64).load(I64)))
    array = context.at(streamed.place).load(Ptr)
    through.unless(is_touched(code, array.at(filled >> 1)))
    words = code.local(Ptr, 3)
    for number, word in enumerate((body, context, stream)):
        words.at(number, Ptr).store(word)
    parallel(code, run_streamed.pointer(code), words, count, size, settings)
    code.ret()
    code.place(through)
    parallel(code, body, context, count, size, settings)


@function()
def is_touched(code: Code, at: Ptr) -> Bool:
    """True if the page of an address is in memory, or the system does not say."""
    if sys.platform != "linux":
        return Bool.of(True)
    resident = code.local(I8)
    resident.store(I8.of(1))
    size = getpagesize(code).to(I64, signed=False)
    problem = mincore(code, (at.integer() & (0 - size)).address(), I64.of(1), resident)
    return ((resident.load(I8) & 1) != 0) | (problem != 0)


@function("noinline")
def run_streamed(code: Code, told: Ptr, begin: I64, end: I64) -> None:
    """A chunk of the body that `gc_stream` was told of."""
    context_copy = code.local(I64, MOST_WORDS, align=64)
    room = code.local(I8, BLOCK, align=64)
    if code.poison:
        poison(code, room, I64.of(BLOCK))
    body, context, stream = (told.at(number, Ptr).load(Ptr) for number in range(3))
    streamed = Streamed(stream)
    copy_memory(code, context_copy, context, streamed.context_length, Bool.of(False))
    fill, read = (context.at(place).load(Ptr) for place in (streamed.place, streamed.read_place))
    size, whole = streamed.size, BLOCK // streamed.size
    step = streamed.read_size * LINE_BYTES // size
    beside = fill.at(begin * size).integer() & (LINE_BYTES - 1)
    most = code.variable(whole - beside // size)
    i = code.variable(begin)
    with code.loop() as iteration:
        left = end - i.value
        n = most.value.minimum(left)
        behind, done = i.value + n, i.value * size
        context_copy.at(streamed.place).store(room.at(0 - done))
        body.call(None, context_copy, i.value, behind)
        with code.when(n == whole):
            ahead = code.variable(read.at(behind * streamed.read_size))
            with code.count(0, BLOCK, LINE_BYTES, sure=True) as k:
                line = room.at(k).load(LINE_OF_WORDS, align=LINE_BYTES)
                fill.at(done).at(k).store(line, align=LINE_BYTES, note="!nontemporal !1")
                prefetch(code, ahead.value, I32.of(0), I32.of(3), I32.of(1))
                ahead.value = ahead.value.at(step)
        with code.otherwise():
            copy_memory(code, fill.at(done), room, n * size, Bool.of(False))
        i.value, most.value = behind, whole
        iteration.leave.unless(behind < end)
    # Others read what was stored when this chunk is counted as done. Non-temporal stores wait for a full fence, on
    # x86-64 a locked instruction, where others need none.
    code.fence()


# --- the pool ---------------------------------------------------------------------------------------------------------

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""Linux's number of the system call, by machine."""
WAIT_FOR_BITS, WAKE_BITS = 137, 138
"""Operations of a futex: threads are woken by bits, and are all of one process."""
PAUSE: dict[str, tuple[Any, ...]] = {"x86_64": ("llvm.x86.sse2.pause",), "aarch64": ("llvm.aarch64.isb", 15)}
"""The instruction that makes way for the other thread of a core, and its arguments."""
SPINS = 5000
"""Pauses before a thread sleeps: a tenth of a millisecond, more than most programs need from one launch to the next. A
worker that has to be woken comes some tens of microseconds late, which is all of a small launch."""
YIELD = 128
"""Pauses, a power of two, after which a thread that waits gives way to any other that is to run on its processor. Where
all are busy a worker may be woken on the caller's own."""
TOLERATED = 100_000
"""Nanoseconds that launches may lose before there are none for a while. A worker may sleep when it is first wanted, and
is there for the next launch only if that comes before it sleeps again."""
MOST_COUNTED = 2**16 - 1
"""Chunks that the words of shares can count."""
PROBE_DEGREE = 8
WALL, OWN = I32.of(1), I32.of(3)
"""The system's clocks: of the time, and of that which a thread had a processor."""
SIGNAL_WORDS = 16
"""The words of a set of signals."""

# Words that different threads change stand on different cache lines.
SHARES = Global("shares", f"internal global [{MOST_THREADS} x [8 x i64]] zeroinitializer, align 64")
LAUNCHES = Global("launches", "internal global i32 0, align 64")
SLEEPERS = Global("sleepers", "internal global i32 0, align 64")
PENDING = Global("pending", "internal global i32 0, align 64")
JOINING = Global("joining", "internal global i32 0, align 4")
OWNER = Global("owner", "internal global i32 0, align 64")
PROCESS = Global("process", "internal global i32 0, align 4")
STARTED = Global("started", "internal global i32 0, align 4")
RESUME = Global("resume", "internal global i64 0, align 8")
LOST = Global("lost", "internal global i64 0, align 8")
BODY = Global("body", "internal global ptr null, align 64")
CONTEXT = Global("context", "internal global ptr null, align 8")
COUNT = Global("count", "internal global i64 0, align 8")
SIZE = Global("size", "internal global i64 0, align 8")
TEAM = Global("team", "internal global i64 0, align 8")
SAMPLE = Global("sample", "internal global i64 0, align 64")

system_call = external("syscall", I64, I64, is_variadic=True)
getpid = external("getpid", I32)
clock_gettime = external("clock_gettime", I32, I32, Ptr)
sched_yield = external("sched_yield", I32)
pthread_create = external("pthread_create", I32, Ptr, Ptr, Ptr, Ptr)
pthread_detach = external("pthread_detach", I32, Ptr)
pthread_sigmask = external("pthread_sigmask", I32, I32, Ptr, Ptr)
sigfillset = external("sigfillset", I32, Ptr)
set_memory = external("llvm.memset.p0.i64", None, Ptr, I8, I64, Bool)
multiply = external("llvm.umul.with.overflow.i64", SizeAndFlag, I64, I64)
least = external("llvm.umin.i64", I64, I64, I64)
most = external("llvm.umax.i64", I64, I64, I64)
signed_most = external("llvm.smax.i64", I64, I64, I64)


def setting(settings: Ptr, place: int) -> I64:
    return settings.at(place, I64).load(I64)


@record()
class Launch:
    """A launch: body(context, begin, end) for the chunks of `size` that 0 .. count falls into."""

    body: Ptr
    context: Ptr
    count: I64
    size: I64


def share_of(code: Code, worker_slot: I64) -> Ptr:
    """The address of a worker slot's share."""
    return SHARES(code).at(worker_slot << 3, I64)


def has_threads() -> bool:
    """True if the pool can have workers on this system; elsewhere every launch is serial."""
    return sys.platform == "linux" and platform.machine() in FUTEX


def pool_ir(poison: bool = False) -> str:
    """The module that defines the functions above for this machine. poison: lines on the stack are filled."""
    shared = gc_parallel if has_threads() else gc_parallel_alone
    return module_text([shared, gc_stream, gc_chunk, gc_columns, gc_probe], poison=poison)


# Without threads. ----------------------------------------------------------------------------------------------------


def chunk_end(begin: I64, size: I64, count: I64) -> I64:
    """The end of the chunk that begins there: the last one is shorter."""
    following = begin + size
    return following.minimum(count)


@function()
def serial(code: Code, body: Ptr, context: Ptr, first: I64, count: I64, size: I64) -> None:
    """Runs the chunks that begin with iteration `first`."""
    with code.count(first, count, size) as begin:
        body.call(None, context, begin, chunk_end(begin, size, count))


@function(name="gc_parallel", is_internal=False)
def gc_parallel_alone(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, settings: Ptr) -> None:
    serial(code, body, context, I64.of(0), count, size)


@function(is_internal=False)
def gc_chunk(code: Code, count: I64, work: I64, settings: Ptr) -> I64:
    with code.when((count < 2) | (count * work).below(setting(settings, LEAST_WORK) << 1)):
        code.ret(signed_most(code, count, I64.of(1)))
    total = multiply(code, count, work)
    exact = total.first(I64) // setting(settings, LEAST_WORK)
    wanted = total.second(Bool).choose(I64.of(MOST_CHUNKS), exact)
    chunks = least(code, most(code, wanted, I64.of(1)), I64.of(MOST_CHUNKS))
    size = (count + chunks - 1) // chunks
    lines = (size + (LINE - 1)) & -LINE
    return most(code, (~size.below(16 * LINE)).choose(lines, size), I64.of(1))


@function(is_internal=False)
def gc_columns(code: Code, count: I64, work: I64, settings: Ptr) -> I64:
    parts = most(code, setting(settings, THREADS), setting(settings, LEAST_CHUNKS))
    lines = parts * LINE
    share = least(code, (count + (lines - 1)) // lines * LINE, I64.of(MOST_COLUMNS))
    return most(code, gc_chunk(code, count, work, settings), most(code, share, I64.of(LEAST_COLUMNS)))


@function(is_internal=False)
def gc_probe(code: Code, context: Ptr, begin: I64, end: I64) -> None:
    with code.count(begin, end) as i:
        number = context.at(i, F64)
        x, total = number.load(F64), F64.of(1.0)
        for _ in range(PROBE_DEGREE):
            total = x * total + 1.0
        number.store(total)


# Sleep and time. -----------------------------------------------------------------------------------------------------


@function()
def sleep(code: Code, word: Ptr, value: I32, bits: I32) -> None:
    """Sleeps until woken by one of these bits, unless the word has another value already. May return for no reason."""
    futex = I64.of(FUTEX[platform.machine()])
    system_call(code, futex, word, I32.of(WAIT_FOR_BITS), value, NULL, NULL, bits)


@function()
def wake(code: Code, word: Ptr, bits: I32) -> None:
    """Wakes the threads that sleep on the word with one of these bits."""
    futex = I64.of(FUTEX[platform.machine()])
    system_call(code, futex, word, I32.of(WAKE_BITS), I32.of(2**31 - 1), NULL, NULL, bits)


@function()
def clock(code: Code, number: I32) -> I64:
    """Nanoseconds: of the time (WALL), or of that which this thread had a processor (OWN)."""
    time = code.local(I64, 2, align=8)
    clock_gettime(code, number, time)
    return time.load(I64) * 10**9 + time.at(1, I64).load(I64)


@function()
def spin(code: Code, word: Ptr, value: I32) -> Bool:
    """Spins while the word has this value; whether it has another in the end. What is waited for may need this
    processor."""
    iterations = code.variable(I32.of(0))
    with code.loop() as iteration:
        with code.when(word.load(I32, order="acquire", align=4) != value):
            code.ret(True)
        pause(code)
        iterations.value += 1
        with code.when((iterations.value & (YIELD - 1)) == 0):
            sched_yield(code)
        iteration.leave.when(iterations.value == SPINS)
    return Bool.of(False)


def pause(code: Code) -> None:
    if platform.machine() in PAUSE:
        name, *operands = PAUSE[platform.machine()]
        external(name, None, *[I32] * len(operands))(code, *map(I32.of, operands))


# Workers. ------------------------------------------------------------------------------------------------------------


class Share:
    """The rest of a worker slot's share of a launch: the chunks from `first` to before `limit`."""

    def __init__(self, word: I64) -> None:
        self.launch = word >> 32
        self.first = (word & 0xFFFFFFFF) >> 16
        self.limit = word & 0xFFFF


TAKE_FIRST, TAKE_LAST = 1 << 16, -1
"""The numbers that a claim adds to the word of a share."""


@function()
def work(code: Code, worker_slot: I64, launch: I64, tally: Ptr) -> Bool:
    """Runs chunks of this launch while there are some, first those of its own share, then stolen ones, if the slot is
    one of its team's; whether it is. Adds to `tally` how many it ran."""
    own = Share(share_of(code, worker_slot).load(I64, order="acquire", align=64))
    with code.when(own.launch != launch):
        code.ret(False)
    team = TEAM(code).load(I64, order="monotonic", align=8)
    farther = code.variable(I64.of(0))
    with code.loop() as iteration:
        other = worker_slot + farther.value
        whose = other.below(team).choose(other, other - team)
        at = share_of(code, whose)
        word = at.load(I64, order="acquire", align=64)
        share = Share(word)
        with code.when((share.launch == launch) & share.first.below(share.limit)):
            callee = launch_now(code)
            is_own = farther.value == 0
            rest = word + is_own.choose(I64.of(TAKE_FIRST), TAKE_LAST)
            _, is_mine = at.exchange(word, rest, "acq_rel", align=64)
            iteration.again.unless(is_mine)
            run(code, callee, is_own.choose(share.first, share.limit - 1))
            tally.store(tally.load(I64) + 1)
            finish(code)
            iteration.again.go()
        farther.value += 1
        iteration.leave.unless(farther.value.below(team))
    return Bool.of(True)


def launch_now(code: Code) -> Launch:
    """The launch as its caller wrote it, if a claim that follows succeeds."""
    body, context = (word(code).load(Ptr, order="monotonic", align=8) for word in (BODY, CONTEXT))
    count, size = (word(code).load(I64, order="monotonic", align=8) for word in (COUNT, SIZE))
    return Launch(body, context, count, size)


def run(code: Code, launch: Launch, chunk: I64) -> None:
    begin = chunk * launch.size
    end = chunk_end(begin, launch.size, launch.count)
    began = clock(code, WALL)
    launch.body.call(None, launch.context, begin, end)
    SAMPLE(code).store(clock(code, WALL) - began, order="monotonic", align=8)


def finish(code: Code) -> None:
    """Counts a chunk as done. The last one wakes the caller, where that sleeps."""
    unfinished = PENDING(code).update("sub", I32.of(1), "seq_cst")
    is_awaited = JOINING(code).load(I32, order="seq_cst", align=4) != 0
    with code.when((unfinished == 1) & is_awaited):
        wake(code, PENDING(code), I32.of(-1))


@function()
def worker(code: Code, argument: Ptr) -> Ptr:
    """A thread of the team, for life. Its worker slot is its argument."""
    tally = code.local(I64)
    tally.store(I64.of(0))
    worker_slot = argument.integer()
    bit = 1 << (worker_slot.to(I32) & 31)
    with code.loop() as iteration:
        seen = LAUNCHES(code).load(I32, order="seq_cst", align=4)
        has_slot = work(code, worker_slot, seen.to(I64, signed=False), tally)
        with code.when(has_slot):
            iteration.again.when(spin(code, LAUNCHES(code), seen))
        SLEEPERS(code).update("add", I32.of(1), "seq_cst")
        sleep(code, LAUNCHES(code), seen, bit)
        SLEEPERS(code).update("sub", I32.of(1), "seq_cst")
    return NULL


# Callers. ------------------------------------------------------------------------------------------------------------


@function("noinline", is_internal=False)
def gc_parallel(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, settings: Ptr) -> None:
    launch = Launch(body, context, count, size)
    alone, skipped = code.label("alone"), code.variable(I64.of(0))
    threads = setting(settings, THREADS)
    chunks = (count + size - 1) // size
    is_worthy = (threads > 1) & (chunks >= setting(settings, LEAST_CHUNKS)) & (chunks <= MOST_COUNTED)
    alone.unless(is_worthy)
    here, known = getpid(code), PROCESS(code).load(I32, order="acquire", align=4)
    with code.when(here != known):
        alone.unless(reset_after_fork(code, here, known))
    began = code.variable(clock(code, WALL))
    resume = RESUME(code).load(I64, order="monotonic", align=8)
    with code.when(began.value < resume):
        run_until(code, launch, resume, skipped, began)
    _, is_mine = OWNER(code).exchange(I32.of(0), I32.of(1), "acq_rel", align=4)
    alone.unless(is_mine)
    rest = chunks - skipped.value
    team = man(code, threads, rest)
    number = publish(code, launch, team, skipped.value, rest)
    announce(code, number, team)
    tally = code.local(I64)
    tally.store(I64.of(0))
    busy = clock(code, OWN)  # behind `announce`: waking others is no work that the caller would have had alone
    work(code, I64.of(0), number.to(I64, signed=False), tally)
    busy = clock(code, OWN) - busy
    join(code)
    settle(code, settings, rest, busy, tally.load(I64), began.value)
    OWNER(code).store(I32.of(0), order="release", align=4)
    code.ret()
    code.place(alone)
    serial(code, body, context, skipped.value * size, count, size)


def run_until(code: Code, launch: Launch, resume: I64, skipped: Variable[I64], now: Variable[I64]) -> None:
    """Chunks by the caller until there may be workers again: a long loop outlasts that, and gets them for the rest."""
    begin = code.variable(I64.of(0))
    with code.loop() as iteration:
        end = chunk_end(begin.value, launch.size, launch.count)
        launch.body.call(None, launch.context, begin.value, end)
        with code.when(end == launch.count):
            code.ret()
        begin.value += launch.size
        skipped.value += 1
        now.value = clock(code, WALL)
        iteration.leave.unless(now.value < resume)


def man(code: Code, threads: I64, chunks: I64) -> I64:
    """The number of threads that take part, the caller one of them. Starts those that are missing."""
    wanted = least(code, least(code, threads, chunks), I64.of(MOST_THREADS))
    workers = (wanted - 1).to(I32)
    with code.when(STARTED(code).load(I32) < workers):
        recruit(code, workers)
    return least(code, wanted, STARTED(code).load(I32).to(I64, signed=False) + 1)


def publish(code: Code, launch: Launch, team: I64, first: I64, chunks: I64) -> I32:
    """Writes the launch, and to each worker slot of its team an equal share of its chunks; its number."""
    BODY(code).store(launch.body, order="monotonic", align=8)
    CONTEXT(code).store(launch.context, order="monotonic", align=8)
    COUNT(code).store(launch.count, order="monotonic", align=8)
    SIZE(code).store(launch.size, order="monotonic", align=8)
    TEAM(code).store(team, order="monotonic", align=8)
    PENDING(code).store(chunks.to(I32), order="seq_cst", align=4)
    number = LAUNCHES(code).load(I32, order="monotonic", align=4) + 1
    high = number.to(I64, signed=False) << 32
    begin = code.variable(first)
    with code.count(0, team, sure=True) as worker_slot:
        limit = first + (worker_slot + 1) * chunks // team
        word = high | ((begin.value << 16) | limit)
        share_of(code, worker_slot).store(word, order="release", align=64)
        begin.value = limit
    return number


def announce(code: Code, number: I32, team: I64) -> None:
    """Lets the team see the launch, and wakes who sleeps of it: the worker slots from 1 on, each by its bit."""
    LAUNCHES(code).store(number, order="seq_cst", align=4)
    with code.when(SLEEPERS(code).load(I32, order="seq_cst", align=4) != 0):
        bits = team.below(32).choose((1 << team) - 2, -1)
        wake(code, LAUNCHES(code), bits.to(I32))


def join(code: Code) -> None:
    """Waits until all chunks are finished."""
    with code.loop() as iteration:
        left = PENDING(code).load(I32, order="acquire", align=4)
        iteration.leave.when(left == 0)
        iteration.again.when(spin(code, PENDING(code), left))
        JOINING(code).store(I32.of(1), order="seq_cst", align=4)
        now = PENDING(code).load(I32, order="seq_cst", align=4)
        with code.when(now != 0):
            sleep(code, PENDING(code), now, I32.of(-1))
        JOINING(code).store(I32.of(0), order="seq_cst", align=4)


def settle(code: Code, settings: Ptr, chunks: I64, busy: I64, ran: I64, began: I64) -> None:
    """Adds up what launches have lost against the caller alone; where that is too much, there are none for a while. A
    chunk takes as long as those that the caller ran, in `busy`, or where it ran none as some other did."""
    ended = clock(code, WALL)
    is_idle = ran == 0
    measured = busy // is_idle.choose(I64.of(1), ran)
    each = is_idle.choose(SAMPLE(code).load(I64, order="monotonic", align=8), measured)
    lost = signed_most(code, LOST(code).load(I64) + (ended - began - each * chunks), I64.of(0))
    with code.when(lost <= TOLERATED):
        LOST(code).store(lost)
    with code.otherwise():
        LOST(code).store(I64.of(0))
        RESUME(code).store(ended + lost * setting(settings, BACK_OFF_WORD), order="monotonic", align=8)


@function()
def reset_after_fork(code: Code, here: I32, known: I32) -> Bool:
    """Empties the pool in a forked child, and makes it the child's own. Returns False while another thread does so."""
    with code.when(known == -1):
        code.ret(False)
    _, is_mine = PROCESS(code).exchange(known, I32.of(-1), "acq_rel", align=4)
    with code.when(~is_mine):
        code.ret(False)
    set_memory(code, SHARES(code), I8.of(0), I64.of(64 * MOST_THREADS), Bool.of(False))
    for word in (SLEEPERS, PENDING, JOINING, OWNER, STARTED):
        word(code).store(I32.of(0), order="monotonic", align=4)
    RESUME(code).store(I64.of(0), order="monotonic", align=8)
    LOST(code).store(I64.of(0))
    PROCESS(code).store(here, order="release", align=4)
    return Bool.of(True)


@function("noinline")
def recruit(code: Code, wanted: I32) -> None:
    """Starts workers until there are as many as wanted, or the system gives no more. Only for the owner."""
    every, before = (code.local(I64, SIGNAL_WORDS, align=8) for _ in range(2))
    thread = code.local(Ptr)
    sigfillset(code, every)
    pthread_sigmask(code, I32.of(int(signal.SIG_BLOCK)), every, before)
    with code.loop() as iteration:
        started = STARTED(code).load(I32)
        iteration.leave.when(started >= wanted)
        worker_slot = started + 1
        argument = worker_slot.to(I64, signed=False).address()
        iteration.leave.when(pthread_create(code, thread, NULL, worker.pointer(code), argument) != 0)
        pthread_detach(code, thread.load(Ptr))
        STARTED(code).store(worker_slot)
    pthread_sigmask(code, I32.of(int(signal.SIG_SETMASK)), before, NULL)
