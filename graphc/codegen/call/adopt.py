"""Arguments that are no contiguous arrays of their input's dtype, made into such in native code.

In: the functions of objects.py. Out: `adopt`, a function of LLVM IR. It takes what values.as_array takes where that is
cheap to tell: small arrays whose dtype casts safely, and lists of Python numbers that fit. What it refuses, Python
converts or names in an error.
"""

from __future__ import annotations

from graphc.arrays.dtypes import DTYPES, FLOATS, can_cast_safely, itemsize
from graphc.codegen.call.layout import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_RANK,
    ARRAY_SHAPE,
    DTYPE_NUMBER,
    LIST_ITEMS,
    LIST_SIZE,
    OBJECT_TYPE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    VALUE,
)
from graphc.codegen.call.objects import OFFSETS, Imported, clear_error, empty, release, retain, times, word, word_at
from graphc.codegen.call.scalars import TYPES, as_long_long
from graphc.codegen.call.signature import MOST_COPIED
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import function, table
from graphc.codegen.llvm.typed import F64, I32, I64, NULL, Bool, Int, Ptr

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
