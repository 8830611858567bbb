"""LLVM IR over Python's and NumPy's objects: the functions that entry points call.

In: the dtypes of scalar parameters. Out: definitions as text. Whatever belongs to a process is reached through the
record (see launch.py), of which every function here that needs it is given the address.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphc.codegen.launch import (
    ALIGNED,
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
    VALUE,
)

ALIGNMENT = 64
"""Of each temp, in bytes: a cache line, and the widest vector register."""

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

; The offset after a temp of so many elements at `offset`, or -1.
define internal i64 @reserve(i64 %offset, i64 %count, i64 %itemsize) alwaysinline {{
  %bytes = call i64 @times(i64 %count, i64 %itemsize)
  %padded = add i64 %bytes, {ALIGNMENT - 1}
  %whole = and i64 %padded, {-ALIGNMENT}
  %end = add i64 %offset, %whole
  %either = or i64 %offset, %bytes
  %negative = icmp slt i64 %either, 0
  %large = icmp sgt i64 %end, {MOST}
  %bad = or i1 %negative, %large
  %result = select i1 %bad, i64 -1, i64 %end
  ret i64 %result
}}

; Replaces the element count of each temp by the offset where it begins, the first {ALIGNMENT} bytes on. Returns the
; offset after the last, -1 where it is absurd, and the elements of all.
define internal {{i64, i64}} @place(ptr %temps, ptr %itemsizes, i64 %count) {{
enter:
  br label %temp
temp:
  %number = phi i64 [0, %enter], [%next, %temp]
  %offset = phi i64 [{ALIGNMENT}, %enter], [%end, %temp]
  %elements = phi i64 [0, %enter], [%sum, %temp]
  %temp.at = getelementptr i64, ptr %temps, i64 %number
  %itemsize.at = getelementptr i64, ptr %itemsizes, i64 %number
  %length = load i64, ptr %temp.at
  %itemsize = load i64, ptr %itemsize.at
  store i64 %offset, ptr %temp.at
  %end = call i64 @reserve(i64 %offset, i64 %length, i64 %itemsize)
  %sum = add i64 %elements, %length
  %next = add nuw i64 %number, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %temp, label %done
done:
  %half = insertvalue {{i64, i64}} undef, i64 %end, 0
  %both = insertvalue {{i64, i64}} %half, i64 %sum, 1
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

; The arena's array with a reference for the caller, made anew where it is smaller than `bytes`; null with an
; exception set. Only for the call that holds `busy`. The old one goes first, so that both are never there at once.
define internal ptr @grow(ptr %record, ptr %bytes.at) noinline {{
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


def scalar_function(dtype: str) -> str:
    """IR of the function that finds the element of a 0-d parameter: in the object itself, or converted into `room`;
    null to refuse."""
    return "\n".join(
        [
            f"define internal ptr @scalar_{dtype}(ptr %object, ptr %record, ptr %ndarray, ptr %room) noinline {{",
            f"  %type.at = getelementptr i8, ptr %object, i64 {OBJECT_TYPE}",
            "  %type = load ptr, ptr %type.at",
            f"  %inside = getelementptr i8, ptr %object, i64 {VALUE}",
            *(f"  {line}" if not line.endswith(":") else line for line in _scalar_cases(dtype)),
            "value:",
            "  ret ptr %inside",
            "array:",
            f"  %descriptor = call ptr @field(ptr %record, i64 {8 * RECORD.index(f'{dtype} descriptor')})",
            f"  %right = call i1 @fits(ptr %object, ptr %ndarray, ptr %descriptor, i32 0, i32 {CONTIGUOUS | ALIGNED})",
            "  %data = load ptr, ptr %inside",
            "  %element = select i1 %right, ptr %data, ptr null",
            "  ret ptr %element",
            "refuse:",
            "  ret ptr null",
            "}",
        ]
    )


def _scalar_cases(dtype: str) -> Lines:
    if dtype == "float64":
        yield from _case("is.float", "%type", "float", "value")
    yield from _case("is.scalar", "%type", f"{dtype} scalar", "value")
    yield "%is.array = icmp eq ptr %type, %ndarray"
    yield "br i1 %is.array, label %array, label %python"
    yield "python:"
    if dtype == "bool":
        yield from field("true", "true")
        yield from field("false", "false")
        yield "%is.true = icmp eq ptr %object, %true"
        yield "%is.false = icmp eq ptr %object, %false"
        yield "%is.bool = or i1 %is.true, %is.false"
        yield "%truth = zext i1 %is.true to i8"
        yield "store i8 %truth, ptr %room"
        yield "%given = select i1 %is.bool, ptr %room, ptr null"
        yield "ret ptr %given"
    elif dtype in ("int64", "float64"):
        yield from _integer_case(dtype)
    else:
        yield "br label %refuse"


def _case(name: str, value: str, word: str, then: str) -> Lines:
    yield from field(f"{name}.type", word)
    yield f"%{name} = icmp eq ptr {value}, %{name}.type"
    yield f"br i1 %{name}, label %{then}, label %not.{name}"
    yield f"not.{name}:"


def _integer_case(dtype: str) -> Lines:
    """An exact int that fits an int64; sitofp rounds to nearest even, as Python's float() does."""
    yield "%over.at = alloca i32"
    yield from _case("is.int", "%type", "int", "integer")
    yield "br label %refuse"
    yield "integer:"
    yield from field("convert", "PyLong_AsLongLongAndOverflow")
    yield "%integer.value = call i64 %convert(ptr %object, ptr %over.at)"
    yield "%over = load i32, ptr %over.at"
    if dtype == "float64":
        yield "%real = sitofp i64 %integer.value to double"
        yield "store double %real, ptr %room"
    else:
        yield "store i64 %integer.value, ptr %room"
    yield "%exact = icmp eq i32 %over, 0"
    yield "%converted = select i1 %exact, ptr %room, ptr null"
    yield "ret ptr %converted"
