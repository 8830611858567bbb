"""The pool of threads as LLVM IR: the definition behind the symbol gc_parallel.

In: the machine this is. Out: IR text. Its object is compiled once for a machine and loaded once for a process.

    gc_parallel(body, context, count, size, settings)
        body(context, begin, end) for the chunks of `size` that 0 .. count falls into, the last one shorter
        settings: how many threads there may be, the least number of chunks for which there are several, and (word 3)
        how many times as long as a launch with workers lost against one without there are none
    gc_stream(body, context, count, size, settings, stream)
        the same, where the body fills much memory that it does not read (nontemporal.py)
    gc_chunk(count, work, settings)
        chunks.chunk_size, the least work of a chunk being the third word of the settings
    gc_probe(context, begin, end)
        a body to measure with: a polynomial of degree 8, with 1 for all coefficients, of float64, in place

The chunks do not depend on who runs them, so results do not either. Each thread of the crew has a seat, the caller the
first, and each seat a share of the chunks, which lie side by side. A thread claims the chunks of its own share in
order, then what is left of the others', last chunk first. Seats are for life, so that from call to call, and from loop
to loop, a thread finds in its own caches what it wrote or read before: where processors have their caches apart, that
is worth a factor of two. The caller waits for no worker but those that are in the middle of a chunk. Where the pool is
busy with another caller, or the call comes from within a chunk, the caller runs all chunks itself. So it does in a
process that was forked while there were workers, until the pool has been made anew there, which is noticed by the
number of the process. No lock is ever held, so a fork cannot leave one behind.

A worker that is not given a processor in the middle of a chunk costs the caller more than it gains: on a busy machine a
launch may take as long as other processes please. So each launch is timed. What those lost that took longer than the
caller would have taken alone, judged by the processor time of the chunks that it ran itself, is added up, less what
others gained, and where that is more than `GRACE` there are no workers for a multiple of it. A loop that is still at it
when that time is over gets them for the rest. Whatever else the machine does, little is lost by threads.

Workers are native threads that know nothing of Python, block all signals, and end with the process. They spin for a
tenth of a millisecond after a launch that they had a seat in, then sleep in a futex.

    shares      by seat: number of the launch << 32 | first chunk that nobody has claimed << 16 | the one after the last
    launches    the number of the last launch; workers sleep on it, each with the bit of its seat modulo 32
    sleepers    workers that sleep, or are about to
    pending     chunks that are not finished; the caller sleeps on it
    joining     1 while the caller sleeps, or is about to
    owner       1 while a caller uses the pool
    process     the process whose pool it is; -1 while it is made
    started     workers of that process
    resume      the time, in nanoseconds, before which launches are serial
    lost        nanoseconds that launches have lost since there were none, less what others gained; never negative
    sample      what some chunk has taken, in nanoseconds, for launches of which the caller runs none
    body, context, count, size, crew    the launch. Read before a claim; a claim that succeeds proves them to be its own

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
from string import Template

from graphc.codegen.threads.chunking import LINE, MOST_CHUNKS
from graphc.codegen.threads.nontemporal import STREAM_IR
from graphc.options import MOST_THREADS

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""Linux's number of the system call, by machine."""
PAUSE = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32 15)"}
"""The instruction that makes way for the other thread of a core."""
SPINS = 5000
"""Pauses before a thread sleeps: a tenth of a millisecond, more than most programs need from one launch to the next. A
worker that has to be woken comes some tens of microseconds late, which is all of a small launch."""
YIELD = 128
"""Pauses, a power of two, after which a thread that waits gives way to any other that is to run on its processor. Where
all are busy a worker may be woken on the caller's own."""
GRACE = 100_000
"""Nanoseconds that launches may lose before there are none for a while. A worker may sleep when it is first wanted, and
is there for the next launch only if that comes before it sleeps again."""
MOST_COUNTED = 2**16 - 1
"""Chunks that the words of shares can count."""


def has_threads() -> bool:
    """Whether the pool can have workers on this system; elsewhere every launch is serial."""
    return sys.platform == "linux" and platform.machine() in FUTEX


def pool_ir() -> str:
    """The module that defines gc_parallel for this machine."""
    if not has_threads():
        return SERIAL + ALONE + CHUNK + STREAM_IR + PROBE
    pause = PAUSE.get(platform.machine())
    words = {
        "futex": FUTEX[platform.machine()],
        "declare_pause": f"declare void {pause.replace(' 15', '')}" if pause else "",
        "pause": f"call void {pause}" if pause else "",
        "spins": SPINS,
        "yield_less": YIELD - 1,
        "grace": GRACE,
        "most_counted": MOST_COUNTED,
        "most_threads": MOST_THREADS,
        "shares_size": 64 * MOST_THREADS,
        "block": int(signal.SIG_BLOCK),
        "restore": int(signal.SIG_SETMASK),
    }
    return SERIAL + CHUNK + STREAM_IR + PROBE + Template(WORDS + SLEEP + WORK + RECRUIT + LAUNCH).substitute(words)


SERIAL = """
; Run the chunks that begin with turn %first.
define internal void @serial(ptr %body, ptr %context, i64 %first, i64 %count, i64 %size) {
start:
  %some = icmp slt i64 %first, %count
  br i1 %some, label %chunk, label %done
chunk:
  %begin = phi i64 [%first, %start], [%next, %chunk]
  %next = add i64 %begin, %size
  %whole = icmp slt i64 %next, %count
  %end = select i1 %whole, i64 %next, i64 %count
  call void %body(ptr %context, i64 %begin, i64 %end)
  br i1 %whole, label %chunk, label %done
done:
  ret void
}
"""

ALONE = """
define void @gc_parallel(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings) {
  call void @serial(ptr %body, ptr %context, i64 0, i64 %count, i64 %size)
  ret void
}
"""

CHUNK = f"""
declare {{i64, i1}} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

define i64 @gc_chunk(i64 %count, i64 %work, ptr %settings) {{
  %least.at = getelementptr i64, ptr %settings, i64 2
  %least = load i64, ptr %least.at
  %product = call {{i64, i1}} @llvm.umul.with.overflow.i64(i64 %count, i64 %work)
  %total = extractvalue {{i64, i1}} %product, 0
  %absurd = extractvalue {{i64, i1}} %product, 1
  %exact = udiv i64 %total, %least
  %wanted = select i1 %absurd, i64 {MOST_CHUNKS}, i64 %exact
  %some = call i64 @llvm.umax.i64(i64 %wanted, i64 1)
  %chunks = call i64 @llvm.umin.i64(i64 %some, i64 {MOST_CHUNKS})
  %padded = add i64 %count, %chunks
  %above = sub i64 %padded, 1
  %size = udiv i64 %above, %chunks
  %more = add i64 %size, {LINE - 1}
  %lines = and i64 %more, {-LINE}
  %large = icmp uge i64 %size, {16 * LINE}
  %rounded = select i1 %large, i64 %lines, i64 %size
  %result = call i64 @llvm.umax.i64(i64 %rounded, i64 1)
  ret i64 %result
}}
"""

PROBE_DEGREE = 8
PROBE = (
    """
define void @gc_probe(ptr %context, i64 %begin, i64 %end) {
start:
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %turn, label %done
turn:
  %i = phi i64 [%begin, %start], [%next, %turn]
  %at = getelementptr double, ptr %context, i64 %i
  %x = load double, ptr %at
  %sum0 = fadd double 0.0, 1.0
"""
    + "".join(
        f"""
  %product{step} = fmul double %x, %sum{step}
  %sum{step + 1} = fadd double %product{step}, 1.0
"""
        for step in range(PROBE_DEGREE)
    )
    + f"""
  store double %sum{PROBE_DEGREE}, ptr %at
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %turn, label %done
done:
  ret void
}}
"""
)

# Words that different threads change stand on different cache lines.
WORDS = """
%share = type [8 x i64]
@shares = internal global [$most_threads x %share] zeroinitializer, align 64
@launches = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@pending = internal global i32 0, align 64
@joining = internal global i32 0, align 4
@owner = internal global i32 0, align 64
@process = internal global i32 0, align 4
@started = internal global i32 0, align 4
@resume = internal global i64 0, align 8
@lost = internal global i64 0, align 8
@body = internal global ptr null, align 64
@context = internal global ptr null, align 8
@count = internal global i64 0, align 8
@size = internal global i64 0, align 8
@crew = internal global i64 0, align 8
@sample = internal global i64 0, align 64

declare i64 @syscall(i64, ...)
declare i32 @getpid()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
$declare_pause
"""

SLEEP = """
; Linux's futexes that are woken by bits, private to a process: 137 waits, 138 wakes.
; Sleep until woken by one of these bits, unless the word has another value already. May return for no reason.
define internal void @sleep(ptr %word, i32 %value, i32 %bits) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 137, i32 %value, ptr null, ptr null, i32 %bits)
  ret void
}

; Wake the threads that sleep on the word with one of these bits.
define internal void @wake(ptr %word, i32 %bits) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 138, i32 2147483647, ptr null, ptr null, i32 %bits)
  ret void
}

; Nanoseconds of a clock: 1 is the time, 3 the time that this thread had a processor.
define internal i64 @read(i32 %clock) {
  %time = alloca {i64, i64}
  %problem = call i32 @clock_gettime(i32 %clock, ptr %time)
  %rest.at = getelementptr {i64, i64}, ptr %time, i32 0, i32 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

; Spin while the word has this value; whether it has another in the end. What is waited for may need this processor.
define internal i1 @spin(ptr %word, i32 %value) {
start:
  br label %look
look:
  %turn = phi i32 [0, %start], [%turn.next, %count]
  %now = load atomic i32, ptr %word acquire, align 4
  %changed = icmp ne i32 %now, %value
  br i1 %changed, label %yes, label %again
again:
  $pause
  %turn.next = add i32 %turn, 1
  %some = and i32 %turn.next, ${yield_less}
  %make.way = icmp eq i32 %some, 0
  br i1 %make.way, label %yield, label %count
yield:
  %yielded = call i32 @sched_yield()
  br label %count
count:
  %late = icmp eq i32 %turn.next, $spins
  br i1 %late, label %no, label %look
yes:
  ret i1 true
no:
  ret i1 false
}
"""

WORK = """
; Run chunks of this launch while there are some, if the seat is one of its crew's; whether it is. Adds to %tally how
; many it ran.
define internal i1 @work(i64 %seat, i64 %launch, ptr %tally) {
start:
  %own.at = getelementptr %share, ptr @shares, i64 %seat
  %own = load atomic i64, ptr %own.at acquire, align 64
  %last = lshr i64 %own, 32
  %seated = icmp eq i64 %last, %launch
  %crew = load atomic i64, ptr @crew monotonic, align 8
  br i1 %seated, label %look, label %leave
look:
  %offset = phi i64 [0, %start], [%offset, %claim], [%offset, %finish], [%offset, %rouse], [%farther, %on]
  %other = add i64 %seat, %offset
  %beyond = icmp uge i64 %other, %crew
  %wrapped = sub i64 %other, %crew
  %whose = select i1 %beyond, i64 %wrapped, i64 %other
  %share.at = getelementptr %share, ptr @shares, i64 %whose
  %share = load atomic i64, ptr %share.at acquire, align 64
  %number = lshr i64 %share, 32
  %both = and i64 %share, 4294967295
  %first = lshr i64 %both, 16
  %limit = and i64 %share, 65535
  %same = icmp eq i64 %number, %launch
  %some = icmp ult i64 %first, %limit
  %may = and i1 %same, %some
  br i1 %may, label %claim, label %on
on:
  %farther = add i64 %offset, 1
  %more = icmp ult i64 %farther, %crew
  br i1 %more, label %look, label %leave
claim:
  %body = load atomic ptr, ptr @body monotonic, align 8
  %context = load atomic ptr, ptr @context monotonic, align 8
  %count = load atomic i64, ptr @count monotonic, align 8
  %size = load atomic i64, ptr @size monotonic, align 8
  %is.own = icmp eq i64 %offset, 0
  %taken = select i1 %is.own, i64 65536, i64 -1
  %rest = add i64 %share, %taken
  %claimed = cmpxchg ptr %share.at, i64 %share, i64 %rest acq_rel acquire, align 64
  %mine = extractvalue {i64, i1} %claimed, 1
  br i1 %mine, label %run, label %look
run:
  %final = sub i64 %limit, 1
  %chunk = select i1 %is.own, i64 %first, i64 %final
  %begin = mul i64 %chunk, %size
  %next = add i64 %begin, %size
  %whole = icmp slt i64 %next, %count
  %end = select i1 %whole, i64 %next, i64 %count
  %run.began = call i64 @read(i32 1)
  call void %body(ptr %context, i64 %begin, i64 %end)
  %run.ended = call i64 @read(i32 1)
  %run.took = sub i64 %run.ended, %run.began
  store atomic i64 %run.took, ptr @sample monotonic, align 8
  %before = load i64, ptr %tally
  %after = add i64 %before, 1
  store i64 %after, ptr %tally
  br label %finish
finish:
  %unfinished = atomicrmw sub ptr @pending, i32 1 seq_cst
  %joining = load atomic i32, ptr @joining seq_cst, align 4
  %complete = icmp eq i32 %unfinished, 1
  %waits = icmp ne i32 %joining, 0
  %awaited = and i1 %complete, %waits
  br i1 %awaited, label %rouse, label %look
rouse:
  call void @wake(ptr @pending, i32 -1)
  br label %look
leave:
  ret i1 %seated
}

define internal ptr @worker(ptr %argument) {
start:
  %tally = alloca i64
  store i64 0, ptr %tally
  %seat = ptrtoint ptr %argument to i64
  %narrow = trunc i64 %seat to i32
  %place = and i32 %narrow, 31
  %bit = shl i32 1, %place
  br label %turn
turn:
  %seen = load atomic i32, ptr @launches seq_cst, align 4
  %launch = zext i32 %seen to i64
  %seated = call i1 @work(i64 %seat, i64 %launch, ptr %tally)
  br i1 %seated, label %wait, label %rest
wait:
  %launched = call i1 @spin(ptr @launches, i32 %seen)
  br i1 %launched, label %turn, label %rest
rest:
  %others = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep(ptr @launches, i32 %seen, i32 %bit)
  %woken = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %turn
}
"""

RECRUIT = """
; Make the pool this process's own, empty; false where another thread is at it.
define internal i1 @adopt(i32 %here, i32 %known) {
  %making = icmp eq i32 %known, -1
  br i1 %making, label %no, label %try
try:
  %exchange = cmpxchg ptr @process, i32 %known, i32 -1 acq_rel acquire, align 4
  %mine = extractvalue {i32, i1} %exchange, 1
  br i1 %mine, label %make, label %no
make:
  call void @llvm.memset.p0.i64(ptr @shares, i8 0, i64 $shares_size, i1 false)
  store atomic i32 0, ptr @sleepers monotonic, align 4
  store atomic i32 0, ptr @pending monotonic, align 4
  store atomic i32 0, ptr @joining monotonic, align 4
  store atomic i32 0, ptr @owner monotonic, align 4
  store atomic i32 0, ptr @started monotonic, align 4
  store atomic i64 0, ptr @resume monotonic, align 8
  store i64 0, ptr @lost
  store atomic i32 %here, ptr @process release, align 4
  ret i1 true
no:
  ret i1 false
}

; Start workers until there are so many, or the system gives no more. Only for the owner.
define internal void @recruit(i32 %wanted) noinline {
start:
  %all = alloca [128 x i8], align 8
  %before = alloca [128 x i8], align 8
  %thread.at = alloca ptr
  %filled = call i32 @sigfillset(ptr %all)
  %blocked = call i32 @pthread_sigmask(i32 $block, ptr %all, ptr %before)
  br label %look
look:
  %started = load i32, ptr @started
  %enough = icmp sge i32 %started, %wanted
  br i1 %enough, label %done, label %create
create:
  %more = add i32 %started, 1
  %seat = zext i32 %more to i64
  %argument = inttoptr i64 %seat to ptr
  %problem = call i32 @pthread_create(ptr %thread.at, ptr null, ptr @worker, ptr %argument)
  %failed = icmp ne i32 %problem, 0
  br i1 %failed, label %done, label %created
created:
  %thread = load ptr, ptr %thread.at
  %detached = call i32 @pthread_detach(ptr %thread)
  store i32 %more, ptr @started
  br label %look
done:
  %restored = call i32 @pthread_sigmask(i32 $restore, ptr %before, ptr null)
  ret void
}
"""

LAUNCH = """
define void @gc_parallel(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings) noinline {
start:
  %tally = alloca i64
  store i64 0, ptr %tally
  %threads = load i64, ptr %settings
  %least.at = getelementptr i64, ptr %settings, i64 1
  %least = load i64, ptr %least.at
  %padded = add i64 %count, %size
  %above = sub i64 %padded, 1
  %chunks = udiv i64 %above, %size
  %several = icmp sgt i64 %threads, 1
  %enough = icmp sge i64 %chunks, %least
  %countable = icmp sle i64 %chunks, $most_counted
  %worthy = and i1 %several, %enough
  %parallel = and i1 %worthy, %countable
  br i1 %parallel, label %identify, label %alone
identify:
  %here = call i32 @getpid()
  %known = load atomic i32, ptr @process acquire, align 4
  %same = icmp eq i32 %here, %known
  br i1 %same, label %time, label %adopt
adopt:
  %adopted = call i1 @adopt(i32 %here, i32 %known)
  br i1 %adopted, label %time, label %alone
time:
  %here.began = call i64 @read(i32 1)
  %resume = load atomic i64, ptr @resume monotonic, align 8
  %early = icmp slt i64 %here.began, %resume
  br i1 %early, label %one, label %take
one:
  ; chunks by the caller until the pause is over: a long loop outlasts it, and workers take part in the rest
  %begin = phi i64 [0, %time], [%begin.next, %look]
  %number.alone = phi i64 [0, %time], [%number.next, %look]
  %begin.next = add i64 %begin, %size
  %number.next = add i64 %number.alone, 1
  %whole = icmp slt i64 %begin.next, %count
  %end = select i1 %whole, i64 %begin.next, i64 %count
  call void %body(ptr %context, i64 %begin, i64 %end)
  br i1 %whole, label %look, label %over
look:
  %now.alone = call i64 @read(i32 1)
  %still = icmp slt i64 %now.alone, %resume
  br i1 %still, label %one, label %take
over:
  ret void
take:
  %skipped = phi i64 [0, %time], [%number.next, %look]
  %began = phi i64 [%here.began, %time], [%now.alone, %look]
  %rest = sub i64 %chunks, %skipped
  %exchange = cmpxchg ptr @owner, i32 0, i32 1 acq_rel acquire, align 4
  %mine = extractvalue {i32, i1} %exchange, 1
  br i1 %mine, label %man, label %alone
man:
  %fewer = call i64 @llvm.smin.i64(i64 %threads, i64 %rest)
  %wanted = call i64 @llvm.smin.i64(i64 %fewer, i64 $most_threads)
  %workers = sub i64 %wanted, 1
  %workers.narrow = trunc i64 %workers to i32
  %started = load i32, ptr @started
  %manned = icmp sge i32 %started, %workers.narrow
  br i1 %manned, label %prepare, label %recruit
recruit:
  call void @recruit(i32 %workers.narrow)
  br label %prepare
prepare:
  %there = load i32, ptr @started
  %there.wide = zext i32 %there to i64
  %all = add i64 %there.wide, 1
  %crew = call i64 @llvm.smin.i64(i64 %wanted, i64 %all)
  store atomic ptr %body, ptr @body monotonic, align 8
  store atomic ptr %context, ptr @context monotonic, align 8
  store atomic i64 %count, ptr @count monotonic, align 8
  store atomic i64 %size, ptr @size monotonic, align 8
  store atomic i64 %crew, ptr @crew monotonic, align 8
  %unfinished = trunc i64 %rest to i32
  store atomic i32 %unfinished, ptr @pending seq_cst, align 4
  %last = load atomic i32, ptr @launches monotonic, align 4
  %number = add i32 %last, 1
  %launch = zext i32 %number to i64
  %high = shl i64 %launch, 32
  br label %share
share:
  %seat = phi i64 [0, %prepare], [%seat.next, %share]
  %first = phi i64 [%skipped, %prepare], [%limit, %share]
  %seat.next = add i64 %seat, 1
  %parts = mul i64 %seat.next, %rest
  %part = udiv i64 %parts, %crew
  %limit = add i64 %skipped, %part
  %middle = shl i64 %first, 16
  %low = or i64 %middle, %limit
  %word = or i64 %high, %low
  %share.at = getelementptr %share, ptr @shares, i64 %seat
  store atomic i64 %word, ptr %share.at release, align 64
  %more = icmp ult i64 %seat.next, %crew
  br i1 %more, label %share, label %announce
announce:
  store atomic i32 %number, ptr @launches seq_cst, align 4
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  %many = icmp uge i64 %crew, 32
  %bit = shl i64 1, %crew
  %ones = sub i64 %bit, 2
  %bits.wide = select i1 %many, i64 -1, i64 %ones
  %bits = trunc i64 %bits.wide to i32
  call void @wake(ptr @launches, i32 %bits)
  br label %work
work:
  ; waking others is no work that the caller would have had alone
  %busy.began = call i64 @read(i32 3)
  %unused = call i1 @work(i64 0, i64 %launch, ptr %tally)
  %busy.ended = call i64 @read(i32 3)
  br label %join
join:
  %left = load atomic i32, ptr @pending acquire, align 4
  %finished = icmp eq i32 %left, 0
  br i1 %finished, label %done, label %wait
wait:
  %progress = call i1 @spin(ptr @pending, i32 %left)
  br i1 %progress, label %join, label %doze
doze:
  store atomic i32 1, ptr @joining seq_cst, align 4
  %now = load atomic i32, ptr @pending seq_cst, align 4
  %complete = icmp eq i32 %now, 0
  br i1 %complete, label %woken, label %sleep
sleep:
  call void @sleep(ptr @pending, i32 %now, i32 -1)
  br label %woken
woken:
  store atomic i32 0, ptr @joining seq_cst, align 4
  br label %join
done:
  %ended = call i64 @read(i32 1)
  %took = sub i64 %ended, %began
  %busy = sub i64 %busy.ended, %busy.began
  %ran = load i64, ptr %tally
  %idle = icmp eq i64 %ran, 0
  %divisor = select i1 %idle, i64 1, i64 %ran
  %own.each = udiv i64 %busy, %divisor
  %sample = load atomic i64, ptr @sample monotonic, align 8
  %each = select i1 %idle, i64 %sample, i64 %own.each
  %serial = mul i64 %each, %rest
  %lost.here = sub i64 %took, %serial
  %lost.before = load i64, ptr @lost
  %lost.sum = add i64 %lost.before, %lost.here
  %lost = call i64 @llvm.smax.i64(i64 %lost.sum, i64 0)
  %graced = icmp sle i64 %lost, $grace
  br i1 %graced, label %remember, label %pause
remember:
  store i64 %lost, ptr @lost
  br label %leave
pause:
  store i64 0, ptr @lost
  %patience.at = getelementptr i64, ptr %settings, i64 3
  %patience = load i64, ptr %patience.at
  %penalty = mul i64 %lost, %patience
  %until = add i64 %ended, %penalty
  store atomic i64 %until, ptr @resume monotonic, align 8
  br label %leave
leave:
  store atomic i32 0, ptr @owner release, align 4
  ret void
alone:
  %from.chunk = phi i64 [0, %start], [0, %adopt], [%skipped, %take]
  %from = mul i64 %from.chunk, %size
  call void @serial(ptr %body, ptr %context, i64 %from, i64 %count, i64 %size)
  ret void
}
"""
