"""What reads a 0-d parameter in native code: an array, a NumPy scalar or a Python number.

In: a dtype. Out: a function of LLVM IR.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from graphc.arrays.dtypes import DTYPES, FLOATS, can_cast_safely, itemsize
from graphc.codegen.call.layout import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_SHAPE,
    CONTIGUOUS,
    DTYPE_NUMBER,
    LIST_ITEMS,
    LIST_SIZE,
    OBJECT_TYPE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    VALUE,
    WRITEABLE,
)
from graphc.codegen.call.objects import (
    NOTHING,
    OFFSETS,
    Imported,
    clear_error,
    each_output,
    empty,
    release,
    retain,
    times,
    word,
    word_at,
)
from graphc.codegen.call.signature import MOST_COPIED
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import Function, function, table
from graphc.codegen.llvm.typed import F32, F64, I8, I16, I32, I64, NULL, Bool, Int, Ptr, Real

TYPES: dict[str, type[Int] | type[Real]] = {
    "bool": I8,
    **{f"{sign}int{kind.bits}": kind for sign in ("", "u") for kind in (I8, I16, I32, I64)},
    "float32": F32,
    "float64": F64,
}
"""What an element of a dtype is in memory."""

as_long_long = Imported("PyLong_AsLongLongAndOverflow", I64, Ptr, Ptr)


@cache
def scalar_function(dtype: str) -> Function[[Ptr, Ptr, Ptr, Ptr], Ptr]:
    """The function that finds the element of a 0-d parameter: in the object itself, or converted into `room`; null to
    refuse.

    It takes what values.as_array takes: arrays of rank 0 and NumPy scalars whose dtype casts safely, and Python numbers
    that fit, floats rounded where they must be.
    """

    @function("noinline", name=f"scalar_{dtype}")
    def scalar(code: Code, object: Ptr, record: Ptr, ndarray: Ptr, room: Ptr) -> Ptr:
        sources = [source for source in DTYPES if source != dtype and can_cast_safely(source, dtype)]
        cast_from = {source: code.label(f"from_{source}") for source in sources}
        refuse = code.label("refuse")
        exact, type_ = word(record, "exact"), object.get(OBJECT_TYPE)
        element = code.variable(object.at(VALUE))
        with code.when(type_ == ndarray):
            refuse.when(((object.get(ARRAY_FLAGS) & ALIGNED) == 0) | (object.get(ARRAY_RANK) != 0))
            element.value = object.get(ARRAY_DATA)
            descriptor = object.get(ARRAY_DTYPE)
            with code.when(descriptor == word(record, f"{dtype} descriptor")):
                code.ret(element.value)
            refuse.unless(exact == NULL)
            for source in sources:
                cast_from[source].when(descriptor == word(record, f"{source} descriptor"))
            refuse.go()
        refuse.unless(exact == NULL)
        with code.when(type_ == word(record, f"{dtype} scalar")):
            code.ret(element.value)
        _take_python_number(code, dtype, object, record, room, refuse)
        for source in sources:
            cast_from[source].when(type_ == word(record, f"{source} scalar"))
        refuse.go()
        for source in sources:
            code.place(cast_from[source])
            _give(code, room, element.value.load(TYPES[source]), source, dtype)
        code.place(refuse)
        return NULL

    return scalar


def _give(code: Code, room: Ptr, value: Any, source: str, dtype: str) -> None:
    """Stores a value of dtype `source` as one of `dtype`, and returns where."""
    if source in FLOATS:
        room.store(value.to(TYPES[dtype]))
    else:
        room.store(value.to(TYPES[dtype], signed=source.startswith("int")))
    code.ret(room)


def _take_python_number(code: Code, dtype: str, object: Ptr, record: Ptr, room: Ptr, refuse: Label) -> None:
    """A Python float for a parameter of floats, True and False for any, an int that fits for all but bools."""
    type_, is_true = object.get(OBJECT_TYPE), object == word(record, "true")
    with code.when(is_true | (object == word(record, "false"))):
        _give(code, room, is_true.to(I8, signed=False), "bool", dtype)
    if dtype in FLOATS:
        with code.when(type_ == word(record, "float")):
            if dtype == "float64":
                code.ret(object.at(VALUE))
            else:
                _give(code, room, object.at(VALUE).load(F64), "float64", dtype)
    if dtype == "bool":
        return
    with code.when(type_ == word(record, "int")):
        over = code.local(I32)
        number = as_long_long(record, object, over)
        refuse.when(over.load(I32) != 0)
        kind = TYPES[dtype]
        if issubclass(kind, Int) and kind is not I64:
            short = number.to(kind)
            refuse.unless(short.to(I64, signed=dtype.startswith("int")) == number)
        elif dtype == "uint64":
            refuse.when(number < 0)
        _give(code, room, number, "int64", dtype)  # to floats rounded to nearest even, as Python's float() does


# --- adopt ------------------------------------------------------------------------------------------------------------
# Arguments that are no contiguous arrays of their input's dtype, made into such in native code.
#
# In: the functions of objects.py. Out: `adopt`, a function of LLVM IR. It takes what values.as_array takes where that
# is cheap to tell: small arrays whose dtype casts safely, and lists of Python numbers that fit. What it refuses,
# Python converts or names in an error.


new_copy = Imported("PyArray_NewCopy", Ptr, Ptr, I32)
cast_array = Imported("PyArray_CastToType", Ptr, Ptr, Ptr, I32)

DESCRIPTORS = OFFSETS[f"{DTYPES[0]} descriptor"]
"""Where in a record those of all dtypes stand, one after the other."""
itemsizes = table("itemsizes", [itemsize(dtype) for dtype in DTYPES])
sources = table(
    "sources", [sum(can_cast_safely(source, dtype) << k for k, source in enumerate(DTYPES)) for dtype in DTYPES]
)
"""For each dtype those that cast to it safely, a bit each."""
EXACT_INTEGERS = 2**53
"""Integers up to here are the same in float32 whether they become float64 before or not."""


@function("noinline optnone")
def adopt(code: Code, object: Ptr, record: Ptr, dtype: I64, rank: I32, references: Ptr) -> Ptr:
    """A contiguous array of the dtype of that number and of this rank, made of an argument and put on the list of what
    the call holds; null to refuse."""
    refuse, held = code.label("refuse"), code.label("held")
    descriptor = word_at(record, (dtype << 3) + DESCRIPTORS)
    new = code.variable(NULL)
    with code.when(object.get(OBJECT_TYPE) == word(record, "ndarray")):
        refuse.unless(object.get(ARRAY_RANK) == rank)
        refuse.unless(is_small(code, dtype, rank, object.get(ARRAY_SHAPE)))
        with code.when(object.get(ARRAY_DTYPE) == descriptor):
            new.value = new_copy(record, object, I32.of(0))
            held.go()
        refuse.unless(word(record, "exact") == NULL)
        refuse.unless(casts(code, object.get(ARRAY_DTYPE), record, dtype))
        retain(code, descriptor)
        new.value = cast_array(record, object, descriptor, I32.of(0))
        held.go()
    refuse.unless(word(record, "exact") == NULL)
    new.value = array_of_list(code, object, record, dtype, rank)
    code.place(held)
    with code.when(new.value == NULL):
        clear_error(record)
        refuse.go()
    number = references.load(I64) + 1
    references.at(number, Ptr).store(new.value)
    references.store(number)
    code.ret(new.value)
    code.place(refuse)
    return NULL


@function("noinline optnone")
def is_small(code: Code, dtype: I64, rank: I32, shape: Ptr) -> Bool:
    """Whether an array of these sizes is copied on the spot."""
    length = code.variable(itemsizes(code).at(dtype, I64).load(I64))
    with code.count(0, rank.to(I64)) as axis:
        length.value = times(code, length.value, shape.at(axis, I64).load(I64))
    return ~length.value.above(MOST_COPIED)


@function("noinline optnone")
def casts(code: Code, own: Ptr, record: Ptr, dtype: I64) -> Bool:
    """Whether a dtype, in whatever byte order, is one that casts safely to that of a number."""
    mask = sources(code).at(dtype, I64).load(I64)
    with code.count(0, len(DTYPES)) as source:
        known = word_at(record, (source << 3) + DESCRIPTORS)
        with code.when(known.get(DTYPE_NUMBER) == own.get(DTYPE_NUMBER)):
            code.ret(((mask >> source) & 1) != 0)
    return Bool.of(False)


@function("noinline optnone")
def array_of_list(code: Code, object: Ptr, record: Ptr, dtype: I64, rank: I32) -> Ptr:
    """The array of a list (or tuple) of Python numbers, or for rank 2 of lists of them; null to refuse. No code of a
    user runs, so nothing changes meanwhile."""
    refuse = code.label("refuse")
    dims, items = code.local(I64, 2), code.local(Ptr)
    count, rows = code.variable(items_of(code, object, record, items)), code.variable(I64.of(1))
    first = items.load(Ptr)
    refuse.when(count.value < 0)
    dims.store(count.value)
    with code.when(rank == 2):
        rows.value = count.value
        refuse.when(rows.value == 0)
        count.value = items_of(code, first.load(Ptr), record, items)
        refuse.when(count.value < 0)
        dims.at(1, I64).store(count.value)
    with code.otherwise():
        refuse.unless(rank == 1)
    refuse.unless(is_small(code, dtype, rank, dims))
    array = empty(code, record, (dtype << 3) + DESCRIPTORS, rank, dims)
    refuse.when(array == NULL)
    wrong, size = code.label("wrong"), itemsizes(code).at(dtype, I64).load(I64)
    items.store(first)
    with code.count(0, rows.value) as row:
        with code.when(rank == 2):
            wrong.when(items_of(code, first.at(row, Ptr).load(Ptr), record, items) != count.value)
        with code.count(0, count.value) as k:
            place = array.get(ARRAY_DATA).at((row * count.value + k) * size)
            wrong.unless(put_number(code, items.load(Ptr).at(k, Ptr).load(Ptr), record, dtype, place))
    code.ret(array)
    code.place(wrong)
    release(code, array, record)
    code.place(refuse)
    return NULL


@function("noinline optnone")
def items_of(code: Code, object: Ptr, record: Ptr, place: Ptr) -> I64:
    """The number of items of a list or tuple, and where they stand at `place`; -1 where it is neither."""
    with code.when(object.get(OBJECT_TYPE) == word(record, "list")):
        place.store(object.get(LIST_ITEMS))
        code.ret(object.get(LIST_SIZE))
    with code.when(object.get(OBJECT_TYPE) == word(record, "tuple")):
        place.store(object.at(TUPLE_ITEMS))
        code.ret(object.get(TUPLE_SIZE))
    return I64.of(-1)


@function("noinline")
def put_number(code: Code, object: Ptr, record: Ptr, dtype: I64, place: Ptr) -> Bool:
    """Stores a Python number as an element; False where it does not fit. An item of a list of an array, a float64 or
    int64, may become one: for other dtypes the other items would matter."""
    refuse, type_ = code.label("refuse"), object.get(OBJECT_TYPE)
    is_true, is_false = (object == word(record, name) for name in ("true", "false"))
    number = code.variable(is_true.to(I64, signed=False))
    is_wide = dtype == DTYPES.index("float64")
    with code.when((type_ == word(record, "float")) | ((type_ == word(record, "float64 scalar")) & is_wide)):
        real = object.at(VALUE).load(F64)
        for name in FLOATS:
            with code.when(dtype == DTYPES.index(name)):
                place.store(real.to(TYPES[name]))
                code.ret(True)
        refuse.go()
    with code.when(~(is_true | is_false)):
        with code.when(type_ == word(record, "int64 scalar")):
            refuse.unless(is_wide | (dtype == DTYPES.index("int64")))
            number.value = object.at(VALUE).load(I64)
        with code.otherwise():
            refuse.unless(type_ == word(record, "int"))
            refuse.when(dtype == DTYPES.index("bool"))
            over = code.local(I32)
            number.value = as_long_long(record, object, over)
            refuse.when(over.load(I32) != 0)
    for index, name in enumerate(DTYPES):
        with code.when(dtype == index):
            _put_integer(code, number.value, name, place, refuse)
            code.ret(True)
    code.place(refuse)
    return Bool.of(False)


def _put_integer(code: Code, number: I64, name: str, place: Ptr, refuse: Label) -> None:
    """Stores an integer as an element, where it fits."""
    kind = TYPES[name]
    if name == "float32":
        refuse.when((number > EXACT_INTEGERS) | (number < -EXACT_INTEGERS))
    if name == "uint64":
        refuse.when(number < 0)
    if issubclass(kind, Int) and kind is not I64:
        short = number.to(kind)
        refuse.unless(short.to(I64, signed=name.startswith("int")) == number)
        place.store(short)
    else:
        place.store(number.to(kind))


# --- check arguments --------------------------------------------------------------------------------------------------
# The arguments of a call, checked in native code.
#
# In: the functions of objects.py. Out: arguments sorted by name, whether they are of the declared types, and the same
# for arrays that are given for results: functions of LLVM IR.


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
