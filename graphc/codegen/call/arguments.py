"""LLVM IR for the arguments of a call: sorted by name, copied where they are not contiguous, and arrays for results.

In: nothing. Out: definitions as text, over those of objects.py.
"""

from __future__ import annotations

from graphc.codegen.call.bind import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_RANK,
    ARRAY_SHAPE,
    CONTIGUOUS,
    MOST_COPIED,
    RECORD,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    WRITEABLE,
)

ARGUMENTS = f"""
; Sorts arguments given by name into their places, and fills in defaults. False to refuse: too many arguments, a name
; that is unknown or no interned string, one given twice or missing. `names` is the offset of the keywords in the
; record; the defaults follow them.
define internal i1 @arrange(ptr %record, ptr %args, i64 %given, ptr %kwnames, ptr %places, ptr %out.at, i64 %count,
                            i64 %names) noinline optnone {{
  %names.at = getelementptr i8, ptr %record, i64 %names
  %defaults.at = getelementptr ptr, ptr %names.at, i64 %count
  %out.name = call ptr @field(ptr %record, i64 {8 * RECORD.index("out name")})
  %many = icmp ugt i64 %given, %count
  br i1 %many, label %refuse, label %positional
positional:
  %p = phi i64 [0, %0], [%p.next, %positional.copy]
  %p.done = icmp eq i64 %p, %given
  br i1 %p.done, label %clear, label %positional.copy
positional.copy:
  %p.from = getelementptr ptr, ptr %args, i64 %p
  %p.value = load ptr, ptr %p.from
  %p.to = getelementptr ptr, ptr %places, i64 %p
  store ptr %p.value, ptr %p.to
  %p.next = add i64 %p, 1
  br label %positional
clear:
  %c = phi i64 [%given, %positional], [%c.next, %clear.one]
  %c.done = icmp eq i64 %c, %count
  br i1 %c.done, label %keywords, label %clear.one
clear.one:
  %c.to = getelementptr ptr, ptr %places, i64 %c
  store ptr null, ptr %c.to
  %c.next = add i64 %c, 1
  br label %clear
keywords:
  %none = icmp eq ptr %kwnames, null
  br i1 %none, label %fill, label %named
named:
  %named.at = getelementptr i8, ptr %kwnames, i64 {TUPLE_SIZE}
  %named.count = load i64, ptr %named.at
  br label %keyword
keyword:
  %k = phi i64 [0, %named], [%k.next, %keyword.next]
  %guess = phi i64 [%given, %named], [%guess.next, %keyword.next]
  %k.done = icmp eq i64 %k, %named.count
  br i1 %k.done, label %fill, label %keyword.read
keyword.read:
  %name.offset = getelementptr i8, ptr %kwnames, i64 {TUPLE_ITEMS}
  %name.at = getelementptr ptr, ptr %name.offset, i64 %k
  %name = load ptr, ptr %name.at
  %value.index = add i64 %given, %k
  %value.at = getelementptr ptr, ptr %args, i64 %value.index
  %value = load ptr, ptr %value.at
  %k.next = add i64 %k, 1
  %is.out = icmp eq ptr %name, %out.name
  br i1 %is.out, label %keyword.out, label %seek
keyword.out:
  store ptr %value, ptr %out.at
  br label %keyword.next
seek:                                   ; in a circle, from where the names are given in order
  %tried = phi i64 [0, %keyword.read], [%tried.next, %seek.next]
  %place.raw = phi i64 [%guess, %keyword.read], [%place.next, %seek.next]
  %beyond = icmp uge i64 %place.raw, %count
  %place = select i1 %beyond, i64 0, i64 %place.raw
  %exhausted = icmp uge i64 %tried, %count
  br i1 %exhausted, label %refuse, label %seek.compare
seek.compare:
  %known.at = getelementptr ptr, ptr %names.at, i64 %place
  %known = load ptr, ptr %known.at
  %found = icmp eq ptr %known, %name
  br i1 %found, label %put, label %seek.next
seek.next:
  %tried.next = add i64 %tried, 1
  %place.next = add i64 %place, 1
  br label %seek
put:
  %put.at = getelementptr ptr, ptr %places, i64 %place
  %taken = load ptr, ptr %put.at
  %free = icmp eq ptr %taken, null
  br i1 %free, label %put.value, label %refuse
put.value:
  store ptr %value, ptr %put.at
  %after = add i64 %place, 1
  br label %keyword.next
keyword.next:
  %guess.next = phi i64 [%after, %put.value], [%guess, %keyword.out]
  br label %keyword
fill:
  %f = phi i64 [%given, %keywords], [%given, %keyword], [%f.next, %fill.next]
  %f.done = icmp eq i64 %f, %count
  br i1 %f.done, label %ready, label %fill.one
fill.one:
  %f.at = getelementptr ptr, ptr %places, i64 %f
  %f.value = load ptr, ptr %f.at
  %f.next = add i64 %f, 1
  %f.missing = icmp eq ptr %f.value, null
  br i1 %f.missing, label %fill.default, label %fill.next
fill.default:
  %default.at = getelementptr ptr, ptr %defaults.at, i64 %f
  %default = load ptr, ptr %default.at
  store ptr %default, ptr %f.at
  %no.default = icmp eq ptr %default, null
  br i1 %no.default, label %refuse, label %fill.next
fill.next:
  br label %fill
ready:
  ret i1 true
refuse:
  ret i1 false
}}

; The number of elements of an array that exists: the product cannot overflow.
define internal i64 @elements(ptr %array) noinline {{
  %rank.at = getelementptr i8, ptr %array, i64 {ARRAY_RANK}
  %shape.at = getelementptr i8, ptr %array, i64 {ARRAY_SHAPE}
  %rank = load i32, ptr %rank.at
  %axes = sext i32 %rank to i64
  %shape = load ptr, ptr %shape.at
  br label %axis
axis:
  %a = phi i64 [0, %0], [%a.next, %more]
  %product = phi i64 [1, %0], [%product.next, %more]
  %done = icmp eq i64 %a, %axes
  br i1 %done, label %all, label %more
more:
  %size.at = getelementptr i64, ptr %shape, i64 %a
  %size = load i64, ptr %size.at
  %product.next = mul i64 %product, %size
  %a.next = add i64 %a, 1
  br label %axis
all:
  ret i64 %product
}}

; A contiguous copy of a small array of this descriptor and rank, put on the list of what the call holds; null to
; refuse.
define internal ptr @adopt(ptr %object, ptr %record, ptr %ndarray, ptr %descriptor, i32 %rank, i64 %itemsize,
                           ptr %list) noinline {{
  %array = call i1 @fits(ptr %object, ptr %ndarray, ptr %descriptor, i32 %rank, i32 0)
  br i1 %array, label %measure, label %refuse
measure:
  %count = call i64 @elements(ptr %object)
  %bytes = mul i64 %count, %itemsize
  %small = icmp sle i64 %bytes, {MOST_COPIED}
  br i1 %small, label %copy, label %refuse
copy:
  %new.copy = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyArray_NewCopy")})
  %new = call ptr %new.copy(ptr %object, i32 0)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %clear, label %keep
keep:
  %number = load i64, ptr %list
  %next = add i64 %number, 1
  %at = getelementptr ptr, ptr %list, i64 %next
  store ptr %new, ptr %at
  store i64 %next, ptr %list
  ret ptr %new
clear:
  %forget = call ptr @field(ptr %record, i64 {8 * RECORD.index("PyErr_Clear")})
  call void %forget()
  br label %refuse
refuse:
  ret ptr null
}}

; Gives back what a list holds.
define internal void @discard(ptr %list, ptr %record) noinline {{
  %count = load i64, ptr %list
  br label %next
next:
  %n = phi i64 [%count, %0], [%n.less, %one]
  %done = icmp eq i64 %n, 0
  br i1 %done, label %all, label %one
one:
  %at = getelementptr ptr, ptr %list, i64 %n
  %object = load ptr, ptr %at
  call void @release(ptr %object, ptr %record)
  %n.less = sub i64 %n, 1
  br label %next
all:
  ret void
}}

; Whether an array that is given for a result has its descriptor, rank, sizes, so many bytes, and these flags, and
; shares no memory with any of the ranges of bytes (from, to) of a table, to which its own is added.
define internal i1 @suits(ptr %object, ptr %ndarray, ptr %descriptor, i32 %rank, i32 %flags, ptr %dims, i64 %bytes,
                          ptr %table) alwaysinline {{
  %array = call i1 @fits(ptr %object, ptr %ndarray, ptr %descriptor, i32 %rank, i32 %flags)
  br i1 %array, label %sizes, label %refuse
sizes:
  %shape.at = getelementptr i8, ptr %object, i64 {ARRAY_SHAPE}
  %shape = load ptr, ptr %shape.at
  %axes = sext i32 %rank to i64
  br label %axis
axis:
  %a = phi i64 [0, %sizes], [%a.next, %axis.same]
  %a.done = icmp eq i64 %a, %axes
  br i1 %a.done, label %range, label %axis.compare
axis.compare:
  %size.at = getelementptr i64, ptr %shape, i64 %a
  %size = load i64, ptr %size.at
  %dim.at = getelementptr i64, ptr %dims, i64 %a
  %dim = load i64, ptr %dim.at
  %same = icmp eq i64 %size, %dim
  %a.next = add i64 %a, 1
  br i1 %same, label %axis.same, label %refuse
axis.same:
  br label %axis
range:
  %data.at = getelementptr i8, ptr %object, i64 {ARRAY_DATA}
  %from = load ptr, ptr %data.at
  %to = getelementptr i8, ptr %from, i64 %bytes
  %ranges = load i64, ptr %table
  br label %other
other:
  %o = phi i64 [0, %range], [%o.next, %other.apart]
  %o.done = icmp eq i64 %o, %ranges
  br i1 %o.done, label %add, label %other.compare
other.compare:
  %twice = shl i64 %o, 1
  %from.index = add i64 %twice, 1
  %to.index = add i64 %twice, 2
  %from.at = getelementptr ptr, ptr %table, i64 %from.index
  %to.at = getelementptr ptr, ptr %table, i64 %to.index
  %other.from = load ptr, ptr %from.at
  %other.to = load ptr, ptr %to.at
  %under = icmp ult ptr %from, %other.to
  %over = icmp ult ptr %other.from, %to
  %both = and i1 %under, %over
  %o.next = add i64 %o, 1
  br i1 %both, label %refuse, label %other.apart
other.apart:
  br label %other
add:
  %last = shl i64 %ranges, 1
  %own.from.index = add i64 %last, 1
  %own.to.index = add i64 %last, 2
  %own.from.at = getelementptr ptr, ptr %table, i64 %own.from.index
  %own.to.at = getelementptr ptr, ptr %table, i64 %own.to.index
  store ptr %from, ptr %own.from.at
  store ptr %to, ptr %own.to.at
  %more = add i64 %ranges, 1
  store i64 %more, ptr %table
  ret i1 true
refuse:
  ret i1 false
}}

; Whether each array that is given for an output suits it.
define internal i1 @suit(ptr %record, ptr %outputs, i64 %count, ptr %dims, ptr %bytes, ptr %given, ptr %table) {{
enter:
  %ndarray = call ptr @field(ptr %record, i64 {8 * RECORD.index("ndarray")})
  br label %output
output:
  %n = phi i64 [0, %enter], [%n.next, %good]
  %cursor = phi ptr [%dims, %enter], [%cursor.next, %good]
  %done = icmp eq i64 %n, %count
  br i1 %done, label %all, label %one
one:
  %row = mul nuw i64 %n, 3
  %output.at = getelementptr i64, ptr %outputs, i64 %row
  %rank.at = getelementptr i64, ptr %output.at, i64 1
  %rank = load i64, ptr %rank.at
  %cursor.next = getelementptr i64, ptr %cursor, i64 %rank
  %n.next = add nuw i64 %n, 1
  %item = call ptr @given(ptr %record, ptr %given, ptr %output.at)
  %absent = icmp eq ptr %item, null
  br i1 %absent, label %good, label %compare
compare:
  %descriptor.offset = load i64, ptr %output.at
  %descriptor = call ptr @field(ptr %record, i64 %descriptor.offset)
  %short.rank = trunc i64 %rank to i32
  %bytes.at = getelementptr i64, ptr %bytes, i64 %n
  %length = load i64, ptr %bytes.at
  %suits = call i1 @suits(ptr %item, ptr %ndarray, ptr %descriptor, i32 %short.rank,
                          i32 {CONTIGUOUS | ALIGNED | WRITEABLE}, ptr %cursor, i64 %length, ptr %table)
  br i1 %suits, label %good, label %refuse
good:
  br label %output
all:
  ret i1 true
refuse:
  ret i1 false
}}
"""
