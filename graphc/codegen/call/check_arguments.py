"""The arguments of a call, checked in native code.

In: the functions of objects.py. Out: arguments sorted by name, whether they are of the declared types, and the same for
arrays that are given for results: functions of LLVM IR.
"""

from __future__ import annotations

from graphc.codegen.call.layout import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_SHAPE,
    CONTIGUOUS,
    OBJECT_TYPE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    WRITEABLE,
)
from graphc.codegen.call.objects import NOTHING, Imported, each_output, release, retain, word, word_at
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import function
from graphc.codegen.llvm.typed import I32, I64, NULL, Bool, Ptr

intern = Imported("PyUnicode_InternInPlace", NOTHING, Ptr)


@function("noinline")
def fits(code: Code, object: Ptr, ndarray: Ptr, descriptor: Ptr, rank: I32, flags: I32) -> Bool:
    """Whether an object is an exact ndarray of this descriptor and rank that has all these flags."""
    with code.when(object.get(OBJECT_TYPE) != ndarray):
        code.ret(False)
    has_dtype = object.get(ARRAY_DTYPE) == descriptor
    has_rank = object.get(ARRAY_RANK) == rank
    has_flags = (object.get(ARRAY_FLAGS) & flags) == flags
    return has_dtype & has_rank & has_flags


@function("noinline")
def interned(code: Code, record: Ptr, name: Ptr) -> Ptr:
    """The address of the one string of these letters that Python keeps; only to be compared."""
    kept = code.local(Ptr)
    retain(code, name)
    kept.store(name)
    intern(record, kept)
    release(code, kept.load(Ptr), record)
    return kept.load(Ptr)


@function("noinline optnone")
def arrange(
    code: Code, record: Ptr, args: Ptr, given: I64, kwnames: Ptr, places: Ptr, out: Ptr, count: I64, names: I64
) -> Bool:
    """Sorts arguments given by name into their places, and fills in defaults. False to refuse: too many arguments, a
    name that is unknown or no interned string, one given twice or missing. `names` is the offset of the keywords in the
    record; the defaults follow them."""
    refuse = code.label("refuse")
    keywords = record.at(names)
    defaults = keywords.at(count, Ptr)
    refuse.when(given.above(count))
    with code.count(0, given) as p:
        places.at(p, Ptr).store(args.at(p, Ptr).load(Ptr))
    with code.count(given, count) as p:
        places.at(p, Ptr).store(NULL)
    with code.when(kwnames != NULL):
        guess = code.variable(given)
        with code.count(0, kwnames.get(TUPLE_SIZE)) as k:
            name = code.variable(kwnames.at(TUPLE_ITEMS).at(k, Ptr).load(Ptr))
            value = args.at(given + k, Ptr).load(Ptr)
            with code.when(name.value != keywords.at(guess.value, Ptr).load(Ptr)):
                name.value = interned(code, record, name.value)
            with code.when(name.value == word(record, "out name")):
                out.store(value)
            with code.otherwise():
                place = seek(code, keywords, count, name.value, guess.value, refuse)
                refuse.unless(places.at(place, Ptr).load(Ptr) == NULL)
                places.at(place, Ptr).store(value)
                guess.value = place + 1
    with code.count(given, count) as p, code.when(places.at(p, Ptr).load(Ptr) == NULL):
        default = defaults.at(p, Ptr).load(Ptr)
        places.at(p, Ptr).store(default)
        refuse.when(default == NULL)
    code.ret(True)
    code.place(refuse)
    return Bool.of(False)


def seek(code: Code, names: Ptr, count: I64, name: Ptr, guess: I64, missing: Label) -> I64:
    """The place of a name, sought in a circle from a guess on: right at once where they are given in order."""
    place, tried = code.variable(guess), code.variable(I64.of(0))
    with code.loop() as loop:
        missing.unless(tried.value.below(count))
        place.value = place.value.below(count).choose(place.value, 0)
        loop.leave.when(names.at(place.value, Ptr).load(Ptr) == name)
        place.value += 1
        tried.value += 1
    return place.value


@function("noinline")
def discard(code: Code, references: Ptr, record: Ptr) -> None:
    """Gives back what a list holds, the last first."""
    left = code.variable(references.load(I64))
    with code.loop() as loop:
        loop.leave.when(left.value == 0)
        release(code, references.at(left.value, Ptr).load(Ptr), record)
        left.value -= 1


@function("alwaysinline")
def suits(
    code: Code, object: Ptr, ndarray: Ptr, descriptor: Ptr, rank: I32, dims: Ptr, length: I64, ranges: Ptr
) -> Bool:
    """Whether an array that is given for a result has its descriptor, rank, sizes and length in bytes, and shares no
    memory with any of the ranges of bytes (from, to) of a table, to which its own is added."""
    flags = I32.of(CONTIGUOUS | ALIGNED | WRITEABLE)
    with code.when(~fits(code, object, ndarray, descriptor, rank, flags)):
        code.ret(False)
    shape = object.get(ARRAY_SHAPE)
    with code.count(0, rank.to(I64)) as axis:
        size = dims.at(axis, I64).load(I64)
        with code.when(shape.at(axis, I64).load(I64) != size):
            code.ret(False)
    begin = object.get(ARRAY_DATA)
    end = begin.at(length)
    count = ranges.load(I64)
    with code.count(0, count) as other:
        from_, to = (ranges.at((other << 1) + k, Ptr).load(Ptr) for k in (1, 2))
        with code.when(begin.below(to) & from_.below(end)):
            code.ret(False)
    ranges.at((count << 1) + 1, Ptr).store(begin)
    ranges.at((count << 1) + 2, Ptr).store(end)
    ranges.store(count + 1)
    return Bool.of(True)


@function()
def suit(code: Code, record: Ptr, outputs: Ptr, count: I64, dims: Ptr, lengths: Ptr, given: Ptr, ranges: Ptr) -> Bool:
    """Whether each array that is given for an output suits it."""
    with each_output(code, record, outputs, count, dims, lengths, given) as output, code.when(output.given != NULL):
        ndarray, descriptor = word(record, "ndarray"), word_at(record, output.descriptor)
        own = output.rank, output.dims, output.length
        with code.when(~suits(code, output.given, ndarray, descriptor, *own, ranges)):
            code.ret(False)
    return Bool.of(True)
