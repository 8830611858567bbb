"""A result that goes past the caches, as LLVM IR: the definition behind the symbol gc_stream.

In: nothing. Out: IR text, a part of the pool's module (pool.py).

    gc_stream(body, context, count, size, settings, stream)
        what gc_parallel does with the first five, where turn i of the body fills element i of an array and reads none
        of it, and reads element i of another. `stream` has five words: the bytes of the context; where in it the
        address of the first array stands, in bytes, and the bytes of its elements; the same of the second

Where the first array has as many bytes as word 4 of the settings says, and has been touched before, a chunk is run
`BLOCK` bytes at a time, on a copy of the context in which some lines on its thread's stack stand in place of the array.
What the body left there is then stored by non-temporal stores (https://llvm.org/docs/LangRef.html, "nontemporal"). At
its first touch the system clears a page, which leaves its lines in the cache, where other stores find them. Blocks
begin and end with lines of the array; those at the ends of a chunk, which may not, are copied as ever. They are short:
while they are stored the processor already reads what the next ones want. Where that fails, memory is read and written
by turns, which takes as long as all that is saved; so lines of the second array are asked for ahead.
"""

from __future__ import annotations

import sys
from string import Template

BLOCK = 256
"""Bytes that are filled at a time."""
LINE_BYTES = 64
"""Of a line of the caches, and of a store."""
MOST_WORDS = 64
"""Of a context: so many are on the stack."""

IS_TOUCHED = """
declare i32 @mincore(ptr, i64, ptr)
declare i32 @getpagesize()

; Whether the page of an address is in memory, or the system does not say.
define internal i1 @is_touched(ptr %at) {
  %resident = alloca i8
  store i8 1, ptr %resident
  %size = call i32 @getpagesize()
  %wide = zext i32 %size to i64
  %address = ptrtoint ptr %at to i64
  %mask = sub i64 0, %wide
  %page = and i64 %address, %mask
  %page.at = inttoptr i64 %page to ptr
  %problem = call i32 @mincore(ptr %page.at, i64 1, ptr %resident)
  %said = load i8, ptr %resident
  %bit = and i8 %said, 1
  %there = icmp ne i8 %bit, 0
  %unknown = icmp ne i32 %problem, 0
  %answer = or i1 %there, %unknown
  ret i1 %answer
}
"""
"""Of Linux."""
UNKNOWN = """
define internal i1 @is_touched(ptr %at) {
  ret i1 true
}
"""

STREAM_IR = Template("""
%stream = type {i64, i64, i64, i64, i64}
%streamed = type {ptr, ptr, ptr}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define void @gc_stream(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings, ptr %stream) noinline {
  %streamed = alloca %streamed
  %bytes.at = getelementptr %stream, ptr %stream, i32 0, i32 2
  %bytes = load i64, ptr %bytes.at
  %filled = mul i64 %count, %bytes
  %least.at = getelementptr i64, ptr %settings, i64 4
  %least = load i64, ptr %least.at
  %much = icmp uge i64 %filled, %least
  br i1 %much, label %ask, label %through
ask:
  %array.place.at = getelementptr %stream, ptr %stream, i32 0, i32 1
  %array.place = load i64, ptr %array.place.at
  %array.at = getelementptr i8, ptr %context, i64 %array.place
  %array = load ptr, ptr %array.at
  %half = lshr i64 %filled, 1
  %middle = getelementptr i8, ptr %array, i64 %half
  %known = call i1 @is_touched(ptr %middle)
  br i1 %known, label %past, label %through
past:
  store ptr %body, ptr %streamed
  %context.at = getelementptr %streamed, ptr %streamed, i32 0, i32 1
  store ptr %context, ptr %context.at
  %stream.at = getelementptr %streamed, ptr %streamed, i32 0, i32 2
  store ptr %stream, ptr %stream.at
  call void @gc_parallel(ptr @run_streamed, ptr %streamed, i64 %count, i64 %size, ptr %settings)
  ret void
through:
  call void @gc_parallel(ptr %body, ptr %context, i64 %count, i64 %size, ptr %settings)
  ret void
}

$is_touched
; A chunk of the body that %streamed holds.
define internal void @run_streamed(ptr %streamed, i64 %begin, i64 %end) noinline {
start:
  %own = alloca [$most_words x i64], align 64
  %room = alloca [$block x i8], align 64
  %body = load ptr, ptr %streamed
  %context.at = getelementptr %streamed, ptr %streamed, i32 0, i32 1
  %context = load ptr, ptr %context.at
  %stream.at = getelementptr %streamed, ptr %streamed, i32 0, i32 2
  %stream = load ptr, ptr %stream.at
  %words = load i64, ptr %stream
  %place.at = getelementptr %stream, ptr %stream, i32 0, i32 1
  %place = load i64, ptr %place.at
  %bytes.at = getelementptr %stream, ptr %stream, i32 0, i32 2
  %bytes = load i64, ptr %bytes.at
  %read.place.at = getelementptr %stream, ptr %stream, i32 0, i32 3
  %read.place = load i64, ptr %read.place.at
  %read.bytes.at = getelementptr %stream, ptr %stream, i32 0, i32 4
  %read.bytes = load i64, ptr %read.bytes.at
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %context, i64 %words, i1 false)
  %fill.at = getelementptr i8, ptr %context, i64 %place
  %fill = load ptr, ptr %fill.at
  %read.at = getelementptr i8, ptr %context, i64 %read.place
  %read = load ptr, ptr %read.at
  %own.at = getelementptr i8, ptr %own, i64 %place
  %turns = udiv i64 $block, %bytes
  %read.lines = mul i64 %read.bytes, $line
  %step = udiv i64 %read.lines, %bytes
  %begin.bytes = mul i64 %begin, %bytes
  %begin.at = getelementptr i8, ptr %fill, i64 %begin.bytes
  %address = ptrtoint ptr %begin.at to i64
  %beside = and i64 %address, $within
  %missing = udiv i64 %beside, %bytes
  %first = sub i64 %turns, %missing
  br label %block
block:
  %i = phi i64 [%begin, %start], [%j, %on]
  %most = phi i64 [%first, %start], [%turns, %on]
  %left = sub i64 %end, %i
  %n = call i64 @llvm.smin.i64(i64 %most, i64 %left)
  %j = add i64 %i, %n
  %done = mul i64 %i, %bytes
  %to = getelementptr i8, ptr %fill, i64 %done
  %back = sub i64 0, %done
  %instead = getelementptr i8, ptr %room, i64 %back
  store ptr %instead, ptr %own.at
  call void %body(ptr %own, i64 %i, i64 %j)
  %whole = icmp eq i64 %n, %turns
  br i1 %whole, label %lines, label %part
lines:
  %read.done = mul i64 %j, %read.bytes
  %next = getelementptr i8, ptr %read, i64 %read.done
  br label %line
line:
  %k = phi i64 [0, %lines], [%k.next, %line]
  %ahead = phi ptr [%next, %lines], [%ahead.next, %line]
  %from = getelementptr i8, ptr %room, i64 %k
  %value = load <8 x i64>, ptr %from, align 64
  %line.at = getelementptr i8, ptr %to, i64 %k
  store <8 x i64> %value, ptr %line.at, align 64, !nontemporal !0
  call void @llvm.prefetch.p0(ptr %ahead, i32 0, i32 3, i32 1)
  %ahead.next = getelementptr i8, ptr %ahead, i64 %step
  %k.next = add i64 %k, $line
  %more = icmp ult i64 %k.next, $block
  br i1 %more, label %line, label %on
part:
  %length = mul i64 %n, %bytes
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %room, i64 %length, i1 false)
  br label %on
on:
  %again = icmp slt i64 %j, %end
  br i1 %again, label %block, label %over
over:
  ; Others read what was stored when this chunk is counted as done. Non-temporal stores wait for a full fence, on
  ; x86-64 a locked instruction, where others need none.
  fence seq_cst
  ret void
}

!0 = !{i32 1}
""").substitute(
    block=BLOCK,
    line=LINE_BYTES,
    within=LINE_BYTES - 1,
    most_words=MOST_WORDS,
    is_touched=IS_TOUCHED if sys.platform == "linux" else UNKNOWN,
)
