"""The pool of threads as LLVM IR: the definition behind the symbol gc_parallel.

In: the machine this is. Out: IR text. Its object is compiled once for a machine and loaded once for a process.

    gc_parallel(body, context, count, size, settings)
        body(context, begin, end) for the chunks of `size` that 0 .. count falls into, the last one shorter
        settings: how many threads there may be, the least number of chunks for which there are several, and (word 3)
        how many times as long as a launch with workers lost against one without there are none
    gc_chunk(count, work, settings)
        chunks.chunk_size, the least work of a chunk being the third word of the settings
    gc_probe(context, begin, end)
        a body to measure with: a polynomial of degree 8, with 1 for all coefficients, of float64, in place

The chunks do not depend on who runs them, so results do not either. A chunk is claimed by lowering a counter, and the
caller claims like a worker: it waits for no worker but those that are in the middle of a chunk. Where the pool is busy
with another caller, or the call comes from within a chunk, the caller runs all chunks itself. So it does in a process
that was forked while there were workers, until the pool has been made anew there, which is noticed by the number of
the process. No lock is ever held, so a fork cannot leave one behind.

A worker that is not given a processor in the middle of a chunk costs the caller more than it gains: on a busy machine a
launch may take as long as other processes please. So each launch is timed. What those lost that took longer than the
caller would have taken alone, judged by the processor time of the chunks that it ran itself, is added up, less what
others gained, and where that is more than `GRACE` there are no workers for a multiple of it. Whatever else the machine
does, little is lost by threads.

Workers are native threads that know nothing of Python, block all signals, and end with the process. They spin for a
tenth of a millisecond, then sleep in a futex.

    ticket      number of the launch << 32 | seats left for workers << 16 | chunks that nobody has claimed
    launches    the number of the last launch; workers sleep on it
    sleepers    workers that sleep, or are about to
    pending     chunks that are not finished; the caller sleeps on it
    joining     1 while the caller sleeps, or is about to
    owner       1 while a caller uses the pool
    process     the process whose pool it is; -1 while it is made
    started     workers of that process
    resume      the time, in nanoseconds, before which launches are serial
    lost        nanoseconds that launches have lost since there were none, less what others gained; never negative
    body, context, count, size      the launch. Read before a claim; a claim that succeeds proves them to be its own
"""

from __future__ import annotations

import platform
import signal
import sys
from string import Template

from graphc.codegen.chunks import LINE, MOST_CHUNKS

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""Linux's number of the system call, by machine."""
PAUSE = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32 15)"}
"""The instruction that makes way for the other thread of a core."""
SPINS = 5000
"""Pauses before a thread sleeps: a tenth of a millisecond, more than most programs need from one launch to the next. A
worker that has to be woken comes some tens of microseconds late, which is all of a small launch."""
GRACE = 100_000
"""Nanoseconds that launches may lose before there are none for a while. A worker may sleep when it is first wanted, and
is there for the next launch only if that comes before it sleeps again."""
MOST_COUNTED = 2**16 - 1
"""Chunks that the ticket can count."""


def has_threads() -> bool:
    """Whether the pool can have workers on this system; elsewhere every launch is serial."""
    return sys.platform == "linux" and platform.machine() in FUTEX


def pool_ir() -> str:
    """The module that defines gc_parallel for this machine."""
    if not has_threads():
        return SERIAL.replace("internal void @serial", "void @gc_parallel") + CHUNK + PROBE
    pause = PAUSE.get(platform.machine())
    words = {
        "futex": FUTEX[platform.machine()],
        "declare_pause": f"declare void {pause.replace(' 15', '')}" if pause else "",
        "pause": f"call void {pause}" if pause else "",
        "spins": SPINS,
        "grace": GRACE,
        "most_counted": MOST_COUNTED,
        "block": int(signal.SIG_BLOCK),
        "restore": int(signal.SIG_SETMASK),
    }
    return SERIAL + CHUNK + PROBE + Template(WORDS + SLEEP + WORK + RECRUIT + LAUNCH).substitute(words)


SERIAL = """
define internal void @serial(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings) {
start:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %chunk, label %done
chunk:
  %begin = phi i64 [0, %start], [%next, %chunk]
  %next = add i64 %begin, %size
  %whole = icmp slt i64 %next, %count
  %end = select i1 %whole, i64 %next, i64 %count
  call void %body(ptr %context, i64 %begin, i64 %end)
  br i1 %whole, label %chunk, label %done
done:
  ret void
}
"""

CHUNK = f"""
declare {{i64, i1}} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

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
@ticket = internal global i64 0, align 64
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

declare i64 @syscall(i64, ...)
declare i32 @getpid()
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
$declare_pause
"""

SLEEP = """
; Sleep until woken, unless the word has another value already. May return for no reason.
define internal void @sleep(ptr %word, i32 %value) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}

; Wake up to so many threads that sleep on the word.
define internal void @wake(ptr %word, i32 %most) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 129, i32 %most, ptr null, ptr null, i32 0)
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

; Spin while the word has this value; whether it has another in the end.
define internal i1 @spin(ptr %word, i32 %value) {
start:
  br label %look
look:
  %turn = phi i32 [0, %start], [%turn.next, %again]
  %now = load atomic i32, ptr %word acquire, align 4
  %changed = icmp ne i32 %now, %value
  br i1 %changed, label %yes, label %again
again:
  $pause
  %turn.next = add i32 %turn, 1
  %late = icmp eq i32 %turn.next, $spins
  br i1 %late, label %no, label %look
yes:
  ret i1 true
no:
  ret i1 false
}
"""

WORK = """
; Run chunks while there are some and there is a seat; a thread has one already in launch %seat. Returns its last one.
; Adds to %tally what it ran.
define internal i64 @work(i64 %seat, ptr %tally) {
start:
  br label %look
look:
  %had = phi i64 [%seat, %start], [%had, %claim], [%launch, %finish], [%launch, %rouse]
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %launch = lshr i64 %ticket, 32
  %left = and i64 %ticket, 65535
  %seats = and i64 %ticket, 4294901760
  %none = icmp eq i64 %left, 0
  br i1 %none, label %leave, label %enter
enter:
  %seated = icmp eq i64 %launch, %had
  %free = icmp ne i64 %seats, 0
  %may = or i1 %seated, %free
  br i1 %may, label %claim, label %leave
claim:
  %body = load atomic ptr, ptr @body monotonic, align 8
  %context = load atomic ptr, ptr @context monotonic, align 8
  %count = load atomic i64, ptr @count monotonic, align 8
  %size = load atomic i64, ptr @size monotonic, align 8
  %taken = select i1 %seated, i64 1, i64 65537
  %rest = sub i64 %ticket, %taken
  %claimed = cmpxchg ptr @ticket, i64 %ticket, i64 %rest acq_rel acquire, align 8
  %mine = extractvalue {i64, i1} %claimed, 1
  br i1 %mine, label %run, label %look
run:
  %number = sub i64 %left, 1
  %begin = mul i64 %number, %size
  %next = add i64 %begin, %size
  %whole = icmp slt i64 %next, %count
  %end = select i1 %whole, i64 %next, i64 %count
  call void %body(ptr %context, i64 %begin, i64 %end)
  %before = load i64, ptr %tally
  %after = add i64 %before, 1
  store i64 %after, ptr %tally
  br label %finish
finish:
  %unfinished = atomicrmw sub ptr @pending, i32 1 seq_cst
  %joining = load atomic i32, ptr @joining seq_cst, align 4
  %last = icmp eq i32 %unfinished, 1
  %waits = icmp ne i32 %joining, 0
  %awaited = and i1 %last, %waits
  br i1 %awaited, label %rouse, label %look
rouse:
  call void @wake(ptr @pending, i32 1)
  br label %look
leave:
  ret i64 %had
}

define internal ptr @worker(ptr %unused) {
start:
  %tally = alloca i64
  store i64 0, ptr %tally
  br label %turn
turn:
  %had = phi i64 [-1, %start], [%seat, %wait], [%seat, %rest]
  %seen = load atomic i32, ptr @launches seq_cst, align 4
  %seat = call i64 @work(i64 %had, ptr %tally)
  br label %wait
wait:
  %launched = call i1 @spin(ptr @launches, i32 %seen)
  br i1 %launched, label %turn, label %rest
rest:
  %others = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep(ptr @launches, i32 %seen)
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
  store atomic i64 0, ptr @ticket monotonic, align 8
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
  %problem = call i32 @pthread_create(ptr %thread.at, ptr null, ptr @worker, ptr null)
  %failed = icmp ne i32 %problem, 0
  br i1 %failed, label %done, label %created
created:
  %thread = load ptr, ptr %thread.at
  %detached = call i32 @pthread_detach(ptr %thread)
  %more = add i32 %started, 1
  store i32 %more, ptr @started
  br label %look
done:
  %restored = call i32 @pthread_sigmask(i32 $restore, ptr %before, ptr null)
  ret void
}
"""

LAUNCH = """
define void @gc_parallel(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings) {
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
  %began = call i64 @read(i32 1)
  %resume = load atomic i64, ptr @resume monotonic, align 8
  %early = icmp slt i64 %began, %resume
  br i1 %early, label %alone, label %take
take:
  %exchange = cmpxchg ptr @owner, i32 0, i32 1 acq_rel acquire, align 4
  %mine = extractvalue {i32, i1} %exchange, 1
  br i1 %mine, label %man, label %alone
man:
  %busy.began = call i64 @read(i32 3)
  %fewer = icmp slt i64 %threads, %chunks
  %crew = select i1 %fewer, i64 %threads, i64 %chunks
  %seats = sub i64 %crew, 1
  %wanted = trunc i64 %seats to i32
  %started = load i32, ptr @started
  %manned = icmp sge i32 %started, %wanted
  br i1 %manned, label %launch, label %recruit
recruit:
  call void @recruit(i32 %wanted)
  br label %launch
launch:
  store atomic ptr %body, ptr @body monotonic, align 8
  store atomic ptr %context, ptr @context monotonic, align 8
  store atomic i64 %count, ptr @count monotonic, align 8
  store atomic i64 %size, ptr @size monotonic, align 8
  %unfinished = trunc i64 %chunks to i32
  store atomic i32 %unfinished, ptr @pending seq_cst, align 4
  %last = load atomic i32, ptr @launches monotonic, align 4
  %number = add i32 %last, 1
  %seat = zext i32 %number to i64
  %high = shl i64 %seat, 32
  %middle = shl i64 %seats, 16
  %low = or i64 %middle, %chunks
  %ticket = or i64 %high, %low
  store atomic i64 %ticket, ptr @ticket release, align 8
  store atomic i32 %number, ptr @launches seq_cst, align 4
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  call void @wake(ptr @launches, i32 %wanted)
  br label %work
work:
  %unused = call i64 @work(i64 %seat, ptr %tally)
  %busy.ended = call i64 @read(i32 3)
  br label %join
join:
  %left = load atomic i32, ptr @pending acquire, align 4
  %finished = icmp eq i32 %left, 0
  br i1 %finished, label %done, label %wait
wait:
  %progress = call i1 @spin(ptr @pending, i32 %left)
  br i1 %progress, label %join, label %rest
rest:
  store atomic i32 1, ptr @joining seq_cst, align 4
  %now = load atomic i32, ptr @pending seq_cst, align 4
  %complete = icmp eq i32 %now, 0
  br i1 %complete, label %woken, label %sleep
sleep:
  call void @sleep(ptr @pending, i32 %now)
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
  %each = udiv i64 %busy, %divisor
  %estimate = mul i64 %each, %chunks
  %serial = select i1 %idle, i64 0, i64 %estimate
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
  call void @serial(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings)
  ret void
}
"""
