"""A result that non-temporal stores write, as LLVM IR: the definition behind the symbol gc_stream.

In: nothing. Out: a function of LLVM IR, a part of the pool's module (pool.py).

    gc_stream(body, context, count, size, settings, stream)
        what gc_parallel does with the first five, where iteration i of the body fills element i of an array and reads
        none of it, and reads element i of another. `stream` has five words: the bytes of the context; where in it the
        address of the first array stands, in bytes, and the bytes of its elements; the same of the second

Where the first array has as many bytes as word 4 of the settings says, and has been touched before, a chunk is run
`BLOCK` bytes at a time, on a copy of the context in which some lines on its thread's stack stand in place of the array.
What the body left there is then written by non-temporal stores (https://llvm.org/docs/LangRef.html, "nontemporal"). At
its first touch the system clears a page, which leaves its lines in the cache, where other stores find them. Blocks
begin and end with lines of the array; those at the ends of a chunk, which may not, are copied as ever. They are short:
while they are stored the processor already reads what the next ones want. Where that fails, memory is read and written
alternately, which takes as long as all that is saved; so lines of the second array are asked for ahead.
"""

from __future__ import annotations

import sys

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import external, function, poison
from graphc.codegen.llvm.typed import I8, I32, I64, Bool, Ptr, vector
from graphc.codegen.threads.chunking import LEAST_STREAMED, MOST_WORDS, PARALLEL

BLOCK = 256
"""Bytes that are filled at a time."""
LINE_BYTES = 64
"""The bytes of a line of the caches, and of a store."""


LINE_OF_WORDS = vector(I64, LINE_BYTES // 8)

gc_parallel = external(PARALLEL, None, Ptr, Ptr, I64, I64, Ptr)
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
    told = code.local(Ptr, 3)
    for number, word in enumerate((body, context, stream)):
        told.at(number, Ptr).store(word)
    gc_parallel(code, run_streamed.pointer(code), told, count, size, settings)
    code.ret()
    code.place(through)
    gc_parallel(code, body, context, count, size, settings)


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
    own = code.local(I64, MOST_WORDS, align=64)
    room = code.local(I8, BLOCK, align=64)
    if code.poison:
        poison(code, room, I64.of(BLOCK))
    body, context, stream = (told.at(number, Ptr).load(Ptr) for number in range(3))
    streamed = Streamed(stream)
    copy_memory(code, own, context, streamed.context_length, Bool.of(False))
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
        own.at(streamed.place).store(room.at(0 - done))
        body.call(None, own, i.value, behind)
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
