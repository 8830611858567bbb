"""LLVM IR over Python's and NumPy's objects: their references, the items of cells, new arrays, the arena.

In: nothing. Out: definitions as text. Whatever belongs to a process is reached through the record (see bind.py), of
which every function here that needs it is given the address.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphc.codegen.call.bind import (
    ALIGNED,
    ALIGNMENT,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_SHAPE,
    CONTIGUOUS,
    LIST_ITEMS,
    LIST_SIZE,
    MOST,
    OBJECT_TYPE,
    RECORD,
    WRITEABLE,
)
from graphc.codegen.call.locks import FORKING
from graphc.codegen.call.result_memory import LARGE

OBJECTS = f"""
declare {{i64, i1}} @llvm.smul.with.overflow.i64(i64, i64)

; The word of the record at a byte offset.
define internal ptr @field(ptr %record, i64 %offset) alwaysinline {{
  %at = getelementptr i8, ptr %record, i64 %offset
  %word = load ptr, ptr %at, !invariant.load !0
  ret ptr %word
}}

; Py_INCREF. The low half of the count is negative for immortal objects; on Pythons without them it is the count.
define internal void @retain(ptr %object) alwaysinline {{
  %count = load i32, ptr %object
  %mortal = icmp sge i32 %count, 0
  %step = zext i1 %mortal to i32
  %more = add i32 %count, %step
  store i32 %more, ptr %object
  ret void
}}

; Py_XDECREF.
define internal void @release(ptr %object, ptr %record) {{
  %absent = icmp eq ptr %object, null
  br i1 %absent, label %done, label %present
present:
  %count = load i32, ptr %object
  %last = icmp eq i32 %count, 1
  br i1 %last, label %free, label %keep
keep:
  %mortal = icmp sge i32 %count, 0
  %step = zext i1 %mortal to i32
  %less = sub i32 %count, %step
  store i32 %less, ptr %object
  br label %done
free:
  %decref = call ptr @field(ptr %record, i64 {8 * RECORD.index("Py_DecRef")})
  call void %decref(ptr %object)
  br label %done
done:
  ret void
}}

; Whether an object is an exact ndarray of this descriptor and rank that has all these flags.
define internal i1 @fits(ptr %object, ptr %ndarray, ptr %descriptor, i32 %rank, i32 %flags) noinline {{
  %type.at = getelementptr i8, ptr %object, i64 {OBJECT_TYPE}
  %type = load ptr, ptr %type.at
  %exact = icmp eq ptr %type, %ndarray
  br i1 %exact, label %array, label %other
array:
  %descriptor.at = getelementptr i8, ptr %object, i64 {ARRAY_DTYPE}
  %rank.at = getelementptr i8, ptr %object, i64 {ARRAY_RANK}
  %flags.at = getelementptr i8, ptr %object, i64 {ARRAY_FLAGS}
  %its.descriptor = load ptr, ptr %descriptor.at
  %its.rank = load i32, ptr %rank.at
  %its.flags = load i32, ptr %flags.at
  %set = and i32 %its.flags, %flags
  %right.dtype = icmp eq ptr %its.descriptor, %descriptor
  %right.rank = icmp eq i32 %its.rank, %rank
  %right.flags = icmp eq i32 %set, %flags
  %most = and i1 %right.dtype, %right.rank
  %all = and i1 %most, %right.flags
  ret i1 %all
other:
  ret i1 false
}}

; The item of a list of exactly one item, or null.
define internal ptr @content(ptr %cell) alwaysinline {{
  %size.at = getelementptr i8, ptr %cell, i64 {LIST_SIZE}
  %size = load i64, ptr %size.at
  %one = icmp eq i64 %size, 1
  br i1 %one, label %full, label %empty
full:
  %items.at = getelementptr i8, ptr %cell, i64 {LIST_ITEMS}
  %items = load ptr, ptr %items.at
  %item = load ptr, ptr %items
  ret ptr %item
empty:
  ret ptr null
}}

; Makes an owned reference the item of a cell; returns what is to be released: the old item, or the new one where the
; cell was emptied.
define internal ptr @install(ptr %cell, ptr %new) {{
  %old = call ptr @content(ptr %cell)
  %emptied = icmp eq ptr %old, null
  br i1 %emptied, label %drop, label %swap
swap:
  %items.at = getelementptr i8, ptr %cell, i64 {LIST_ITEMS}
  %items = load ptr, ptr %items.at
  store ptr %new, ptr %items
  ret ptr %old
drop:
  ret ptr %new
}}

; Whether one of the first `written` byte ranges overlaps a later one of `count`.
define internal i1 @overlap(ptr %begins, ptr %ends, i64 %written, i64 %count) {{
enter:
  br label %range
range:
  %a = phi i64 [0, %enter], [%b.first, %found]
  %clash = phi i1 [false, %enter], [%clash.most, %found]
  %a.begin.at = getelementptr i64, ptr %begins, i64 %a
  %a.end.at = getelementptr i64, ptr %ends, i64 %a
  %a.begin = load i64, ptr %a.begin.at
  %a.end = load i64, ptr %a.end.at
  %b.first = add nuw i64 %a, 1
  %some = icmp ult i64 %b.first, %count
  br i1 %some, label %other, label %found
other:
  %b = phi i64 [%b.first, %range], [%b.next, %other]
  %clash.before = phi i1 [%clash, %range], [%clash.after, %other]
  %b.begin.at = getelementptr i64, ptr %begins, i64 %b
  %b.end.at = getelementptr i64, ptr %ends, i64 %b
  %b.begin = load i64, ptr %b.begin.at
  %b.end = load i64, ptr %b.end.at
  %under = icmp ult i64 %a.begin, %b.end
  %over = icmp ult i64 %b.begin, %a.end
  %both = and i1 %under, %over
  %clash.after = or i1 %clash.before, %both
  %b.next = add nuw i64 %b, 1
  %more = icmp ult i64 %b.next, %count
  br i1 %more, label %other, label %found
found:
  %clash.most = phi i1 [%clash, %range], [%clash.after, %other]
  %again = icmp ult i64 %b.first, %written
  br i1 %again, label %range, label %done
done:
  ret i1 %clash.most
}}

; Whether a call may use its shared variables: nobody changes what it reads, or reads what it changes, and the cells
; still hold `arrays`. `words` is the offset in the record of the words of each lock, `cells` that of the cells; `modes`
; says of each variable what mark the call sets, and does where `mark`. All or none.
define internal i1 @enter(ptr %record, i64 %words, i64 %cells, ptr %arrays, ptr %modes, i64 %count,
                          i1 %mark) noinline {{
enter:
  %activity = call ptr @field(ptr %record, i64 {8 * RECORD.index("activity")})
  %foreign.at = getelementptr i64, ptr %activity, i64 1
  %foreign = load i64, ptr %foreign.at
  %forking = icmp sge i64 %foreign, {FORKING}
  br i1 %forking, label %wait, label %look
look:
  %k = phi i64 [0, %enter], [%k.next, %unchanged]
  %k.done = icmp eq i64 %k, %count
  br i1 %k.done, label %free, label %one
one:
  %step = shl i64 %k, 3
  %words.offset = add i64 %words, %step
  %lock = call ptr @field(ptr %record, i64 %words.offset)
  %marks = load i64, ptr %lock
  %others.at = getelementptr i64, ptr %lock, i64 1
  %others = load i64, ptr %others.at
  %mode.at = getelementptr i64, ptr %modes, i64 %k
  %mode = load i64, ptr %mode.at
  %writes = icmp slt i64 %mode, 0
  %used = icmp ne i64 %marks, 0
  %written = icmp slt i64 %marks, 0
  %clash = select i1 %writes, i1 %used, i1 %written
  %claimed = icmp ne i64 %others, 0
  %busy = or i1 %clash, %claimed
  br i1 %busy, label %wait, label %compare
compare:
  %cell.offset = add i64 %cells, %step
  %cell = call ptr @field(ptr %record, i64 %cell.offset)
  %now = call ptr @content(ptr %cell)
  %array.at = getelementptr ptr, ptr %arrays, i64 %k
  %array = load ptr, ptr %array.at
  %same = icmp eq ptr %now, %array
  br i1 %same, label %unchanged, label %wait
unchanged:
  %k.next = add nuw i64 %k, 1
  br label %look
free:
  br i1 %mark, label %set, label %done
set:
  call void @mark(ptr %record, i64 %words, ptr %modes, i64 %count, i64 1)
  br label %done
done:
  ret i1 true
wait:
  ret i1 false
}}

; Adds the marks of a call, times 1 or -1.
define internal void @mark(ptr %record, i64 %words, ptr %modes, i64 %count, i64 %sign) {{
enter:
  %activity = call ptr @field(ptr %record, i64 {8 * RECORD.index("activity")})
  %calls = load i64, ptr %activity
  %calls.now = add i64 %calls, %sign
  store i64 %calls.now, ptr %activity
  %begun.at = getelementptr i64, ptr %activity, i64 2
  %begun = load i64, ptr %begun.at
  %begun.now = add i64 %begun, 1
  store i64 %begun.now, ptr %begun.at
  br label %one
one:
  %k = phi i64 [0, %enter], [%k.next, %one]
  %step = shl i64 %k, 3
  %words.offset = add i64 %words, %step
  %lock = call ptr @field(ptr %record, i64 %words.offset)
  %mode.at = getelementptr i64, ptr %modes, i64 %k
  %mode = load i64, ptr %mode.at
  %change = mul i64 %mode, %sign
  %marks = load i64, ptr %lock
  %marks.now = add i64 %marks, %change
  store i64 %marks.now, ptr %lock
  %k.next = add nuw i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %one, label %done
done:
  ret void
}}

; Takes back what `enter` has marked, and wakes those that wait for it. False with an exception set where that fails.
define internal i1 @depart(ptr %record, i64 %words, ptr %modes, i64 %count) noinline {{
enter:
  call void @mark(ptr %record, i64 %words, ptr %modes, i64 %count, i64 -1)
  %activity = call ptr @field(ptr %record, i64 {8 * RECORD.index("activity")})
  %foreign.at = getelementptr i64, ptr %activity, i64 1
  %foreign = load i64, ptr %foreign.at
  %alone = icmp eq i64 %foreign, 0
  br i1 %alone, label %done, label %wake
wake:
  %waker = call ptr @field(ptr %record, i64 {8 * RECORD.index("wake")})
  %call = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyObject_Vectorcall")})
  %answer = call ptr %call(ptr %waker, ptr null, i64 0, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %fail, label %woken
woken:
  call void @release(ptr %answer, ptr %record)
  br label %done
done:
  ret i1 true
fail:
  ret i1 false
}}

; The product of two sizes, or -1 where one is negative or the product absurd.
define internal i64 @times(i64 %count, i64 %size) alwaysinline {{
  %pair = call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 %count, i64 %size)
  %product = extractvalue {{i64, i1}} %pair, 0
  %over = extractvalue {{i64, i1}} %pair, 1
  %either = or i64 %count, %size
  %negative = icmp slt i64 %either, 0
  %large = icmp sgt i64 %product, {MOST}
  %wrong = or i1 %negative, %over
  %bad = or i1 %wrong, %large
  %result = select i1 %bad, i64 -1, i64 %product
  ret i64 %result
}}

; Measures the results and finds the place of each temp. `dims` are the sizes of what they hold, `rooms` says of each
; thing held: its rank, its itemsize, the number of its buffer, results first. `lengths` gets the bytes of each result,
; then the offset of each temp, the first {ALIGNMENT} bytes on; a temp is as long as the longest it holds. Returns the
; offset after the last, -1 where that or a result is absurd, and the elements of all.
define internal {{i64, i64}} @place(ptr %dims, ptr %rooms, i64 %count, ptr %lengths, i64 %outputs, i64 %buffers) {{
enter:
  br label %clear
clear:
  %c = phi i64 [0, %enter], [%c.next, %clear]
  %c.at = getelementptr i64, ptr %lengths, i64 %c
  store i64 0, ptr %c.at
  %c.next = add nuw i64 %c, 1
  %c.more = icmp ult i64 %c.next, %buffers
  br i1 %c.more, label %clear, label %room
room:
  %number = phi i64 [0, %clear], [%number.next, %room.measured]
  %cursor = phi ptr [%dims, %clear], [%cursor.next, %room.measured]
  %sum = phi i64 [0, %clear], [%sum.next, %room.measured]
  %bad = phi i1 [false, %clear], [%bad.next, %room.measured]
  %first = mul nuw i64 %number, 3
  %rank.at = getelementptr i64, ptr %rooms, i64 %first
  %itemsize.at = getelementptr i64, ptr %rank.at, i64 1
  %buffer.at = getelementptr i64, ptr %rank.at, i64 2
  %rank = load i64, ptr %rank.at
  %itemsize = load i64, ptr %itemsize.at
  %buffer = load i64, ptr %buffer.at
  %cursor.next = getelementptr i64, ptr %cursor, i64 %rank
  br label %axis
axis:
  %a = phi i64 [0, %room], [%a.next, %axis.times]
  %elements = phi i64 [1, %room], [%product, %axis.times]
  %a.done = icmp eq i64 %a, %rank
  br i1 %a.done, label %room.measured, label %axis.times
axis.times:
  %size.at = getelementptr i64, ptr %cursor, i64 %a
  %size = load i64, ptr %size.at
  %product = call i64 @times(i64 %elements, i64 %size)
  %a.next = add nuw i64 %a, 1
  br label %axis
room.measured:
  %bytes = call i64 @times(i64 %elements, i64 %itemsize)
  %negative = icmp slt i64 %bytes, 0
  %bad.next = or i1 %bad, %negative
  %sum.next = add i64 %sum, %elements
  %longest.at = getelementptr i64, ptr %lengths, i64 %buffer
  %longest = load i64, ptr %longest.at
  %longer = icmp sgt i64 %bytes, %longest
  %most = select i1 %longer, i64 %bytes, i64 %longest
  store i64 %most, ptr %longest.at
  %number.next = add nuw i64 %number, 1
  %more = icmp ult i64 %number.next, %count
  br i1 %more, label %room, label %add
add:
  %t = phi i64 [%outputs, %room.measured], [%t.next, %add.one]
  %offset = phi i64 [{ALIGNMENT}, %room.measured], [%end, %add.one]
  %wrong = phi i1 [%bad.next, %room.measured], [%wrong.next, %add.one]
  %t.done = icmp eq i64 %t, %buffers
  br i1 %t.done, label %done, label %add.one
add.one:
  %t.at = getelementptr i64, ptr %lengths, i64 %t
  %t.bytes = load i64, ptr %t.at
  %padded = add i64 %t.bytes, {ALIGNMENT - 1}
  %whole = and i64 %padded, {-ALIGNMENT}
  %end.raw = add i64 %offset, %whole
  %large = icmp sgt i64 %end.raw, {MOST}
  %wrong.next = or i1 %wrong, %large
  %end = select i1 %large, i64 {ALIGNMENT}, i64 %end.raw
  store i64 %offset, ptr %t.at
  %t.next = add nuw i64 %t, 1
  br label %add
done:
  %answer = select i1 %wrong, i64 -1, i64 %offset
  %half = insertvalue {{i64, i64}} undef, i64 %answer, 0
  %both = insertvalue {{i64, i64}} %half, i64 %sum.next, 1
  ret {{i64, i64}} %both
}}

; A new uninitialised array, or null with an exception set.
define internal ptr @empty(ptr %record, i64 %descriptor.offset, i32 %rank, ptr %dims) noinline {{
  %ndarray = call ptr @field(ptr %record, i64 {8 * RECORD.index("ndarray")})
  %new = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyArray_NewFromDescr")})
  %descriptor = call ptr @field(ptr %record, i64 %descriptor.offset)
  call void @retain(ptr %descriptor)
  %array = call ptr %new(ptr %ndarray, ptr %descriptor, i32 %rank, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  ret ptr %array
}}

; The array of a large result of `bytes` bytes, over a block.
define internal ptr @cover(ptr %record, i64 %descriptor.offset, i32 %rank, ptr %dims, i64 %bytes) noinline optnone {{
  %argument = alloca ptr
  %make.number = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyLong_FromLongLong")})
  %number = call ptr %make.number(i64 %bytes)
  %numberless = icmp eq ptr %number, null
  br i1 %numberless, label %give.up, label %ask
ask:
  store ptr %number, ptr %argument
  %block.maker = call ptr @field(ptr %record, i64 {8 * RECORD.index("block")})
  %call = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyObject_Vectorcall")})
  %block = call ptr %call(ptr %block.maker, ptr %argument, i64 1, ptr null)
  call void @release(ptr %number, ptr %record)
  %blockless = icmp eq ptr %block, null
  br i1 %blockless, label %give.up, label %lay
lay:
  %ndarray = call ptr @field(ptr %record, i64 {8 * RECORD.index("ndarray")})
  %new = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyArray_NewFromDescr")})
  %descriptor = call ptr @field(ptr %record, i64 %descriptor.offset)
  call void @retain(ptr %descriptor)
  %data.at = getelementptr i8, ptr %block, i64 {ARRAY_DATA}
  %data = load ptr, ptr %data.at
  %flags = add i32 {CONTIGUOUS | ALIGNED}, {WRITEABLE}
  %over = call ptr %new(ptr %ndarray, ptr %descriptor, i32 %rank, ptr %dims, ptr null, ptr %data, i32 %flags, ptr null)
  %overless = icmp eq ptr %over, null
  br i1 %overless, label %drop, label %base
drop:
  call void @release(ptr %block, ptr %record)
  br label %give.up
base:
  %set.base = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyArray_SetBaseObject")})
  %status = call i32 %set.base(ptr %over, ptr %block)
  %unset = icmp ne i32 %status, 0
  br i1 %unset, label %undo, label %made
undo:
  call void @release(ptr %over, ptr %record)
  br label %give.up
made:
  ret ptr %over
give.up:
  ret ptr null
}}

; The array given for an output, null where none is. `outputs` says of each: the offset of its descriptor in the
; record, its rank, and its place among the results, -1 where it is none.
define internal ptr @given(ptr %record, ptr %given, ptr %output) alwaysinline {{
  %asked = icmp ne ptr %given, null
  br i1 %asked, label %look, label %none
look:
  %place.at = getelementptr i64, ptr %output, i64 2
  %place = load i64, ptr %place.at
  %returned = icmp sge i64 %place, 0
  br i1 %returned, label %take, label %none
take:
  %item.at = getelementptr ptr, ptr %given, i64 %place
  %item = load ptr, ptr %item.at
  %nothing = call ptr @field(ptr %record, i64 {8 * RECORD.index("none")})
  %left.out = icmp eq ptr %item, %nothing
  br i1 %left.out, label %none, label %some
some:
  ret ptr %item
none:
  ret ptr null
}}

; Puts the arrays of all outputs on a list: those given, and new ones of so many bytes. False with an exception set. A
; list is a count and as many references.
define internal i1 @make(ptr %record, ptr %outputs, i64 %count, ptr %dims, ptr %bytes, ptr %given, ptr %list) {{
enter:
  %before = load i64, ptr %list
  %list.first = getelementptr ptr, ptr %list, i64 1
  %first = getelementptr ptr, ptr %list.first, i64 %before
  br label %output
output:
  %n = phi i64 [0, %enter], [%n.next, %keep]
  %cursor = phi ptr [%dims, %enter], [%cursor.next, %keep]
  %done = icmp eq i64 %n, %count
  br i1 %done, label %all, label %one
one:
  %row = mul nuw i64 %n, 3
  %output.at = getelementptr i64, ptr %outputs, i64 %row
  %rank.at = getelementptr i64, ptr %output.at, i64 1
  %rank = load i64, ptr %rank.at
  %cursor.next = getelementptr i64, ptr %cursor, i64 %rank
  %item = call ptr @given(ptr %record, ptr %given, ptr %output.at)
  %absent = icmp eq ptr %item, null
  br i1 %absent, label %new, label %take
take:
  call void @retain(ptr %item)
  br label %keep
new:
  %descriptor.offset = load i64, ptr %output.at
  %short.rank = trunc i64 %rank to i32
  %bytes.at = getelementptr i64, ptr %bytes, i64 %n
  %length = load i64, ptr %bytes.at
  %large = icmp ugt i64 %length, {LARGE}
  br i1 %large, label %lay, label %plain
plain:
  %small = call ptr @empty(ptr %record, i64 %descriptor.offset, i32 %short.rank, ptr %cursor)
  br label %laid
lay:
  %block = call ptr @cover(ptr %record, i64 %descriptor.offset, i32 %short.rank, ptr %cursor, i64 %length)
  br label %laid
laid:
  %fresh = phi ptr [%small, %plain], [%block, %lay]
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %give.up, label %keep
keep:
  %array = phi ptr [%item, %take], [%fresh, %laid]
  %at = getelementptr ptr, ptr %first, i64 %n
  store ptr %array, ptr %at
  %n.next = add nuw i64 %n, 1
  %held = add i64 %before, %n.next
  store i64 %held, ptr %list
  br label %output
all:
  ret i1 true
give.up:
  ret i1 false
}}

; The arena's array with a reference for the caller, made anew where it is smaller than `bytes`; null with an
; exception set. Only for the call that holds `busy`. The old one goes first, so that both are never there at once.
define internal ptr @grow(ptr %record, ptr %bytes.at) noinline optnone {{
  %cell = call ptr @field(ptr %record, i64 {8 * RECORD.index("arena")})
  %ndarray = call ptr @field(ptr %record, i64 {8 * RECORD.index("ndarray")})
  %held = call ptr @content(ptr %cell)
  %type.at = getelementptr i8, ptr %held, i64 {OBJECT_TYPE}
  %type = load ptr, ptr %type.at
  %allocated = icmp eq ptr %type, %ndarray
  br i1 %allocated, label %measure, label %allocate
measure:
  %shape.at = getelementptr i8, ptr %held, i64 {ARRAY_SHAPE}
  %shape = load ptr, ptr %shape.at
  %capacity = load i64, ptr %shape
  %bytes = load i64, ptr %bytes.at
  %enough = icmp sge i64 %capacity, %bytes
  br i1 %enough, label %use, label %drop
use:
  call void @retain(ptr %held)
  ret ptr %held
drop:
  %none = call ptr @field(ptr %record, i64 {8 * RECORD.index("none")})
  call void @retain(ptr %none)
  %old = call ptr @install(ptr %cell, ptr %none)
  call void @release(ptr %old, ptr %record)
  br label %allocate
allocate:
  %fresh = call ptr @empty(ptr %record, i64 {8 * RECORD.index("uint8 descriptor")}, i32 1, ptr %bytes.at)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %give.up, label %keep
keep:
  call void @retain(ptr %fresh)
  %replaced = call ptr @install(ptr %cell, ptr %fresh)
  call void @release(ptr %replaced, ptr %record)
  ret ptr %fresh
give.up:
  ret ptr null
}}
"""

Lines = Iterator[str]


def field(variable: str, name: str) -> Lines:
    """Loads the word of the record of that name."""
    yield f"%{variable} = call ptr @field(ptr %record, i64 {8 * RECORD.index(name)})"
