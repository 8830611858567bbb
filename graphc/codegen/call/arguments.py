"""Arguments in native code: checked, converted where that is cheap, sorted by keyword.

In: the object of an argument, at run time. Out: functions of LLVM IR for the entry point. For an input float64[?]:

    array of float64, C-contiguous      `has_declared_type`: used as it is
    array of int32, or array[::2]       `convert_argument`: a converted copy, where it is small (MOST_COPIED)
    [1, 2.5]                            `convert_argument`: a new array of the list
    large array[::2], "abc"             refused: Python converts the argument, or raises

and for an input of rank 0 `scalar_function`: an array of rank 0, a NumPy scalar or a Python number. All take a part of
what `values.as_array` takes, with the same result.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from graphc.arrays.dtypes import DTYPES, FLOATS, can_cast_safely, itemsize
from graphc.codegen.call import layout, objects
from graphc.codegen.call.signature import MOST_COPIED
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import Function, function, table
from graphc.codegen.llvm.typed import F32, F64, I8, I16, I32, I64, NULL, Bool, Int, Ptr, Real

TYPES: dict[str, type[Int] | type[Real]] = {
    "bool": I8,
    **{f"{sign}int{integer.bits}": integer for sign in ("", "u") for integer in (I8, I16, I32, I64)},
    "float32": F32,
    "float64": F64,
}
"""The LLVM type of an element in memory, by dtype."""

as_long_long = objects.Imported("PyLong_AsLongLongAndOverflow", I64, Ptr, Ptr)


@cache
def scalar_function(dtype: str) -> Function[[Ptr, Ptr, Ptr, Ptr, Ptr], Ptr]:
    """Return the function that finds the element of a 0-d parameter. It returns the address of the element in the
    object itself, or `room` with the converted element; null to refuse.

    It takes arrays of rank 0 and NumPy scalars whose dtype casts safely, and Python numbers that fit; integers and
    floats are rounded to the floats of the parameter. Where nothing may be converted, it takes arrays of its dtype, or,
    where `only` is not null, numbers of exactly this type.
    """

    @function("noinline", name=f"scalar_{dtype}")
    def scalar(code: Code, object: Ptr, record: Ptr, ndarray: Ptr, only: Ptr, room: Ptr) -> Ptr:
        sources = [source for source in DTYPES if source != dtype and can_cast_safely(source, dtype)]
        cast_from = {source: code.label(f"from_{source}") for source in sources}
        refuse = code.label("refuse")
        exact, type_ = objects.word(record, "exact"), object.get(layout.OBJECT_TYPE)
        element = code.variable(object.at(layout.VALUE))
        with code.when((type_ == ndarray) | (type_ == objects.word(record, "own array"))):
            refuse.when(only != NULL)
            refuse.when(((object.get(layout.ARRAY_FLAGS) & layout.ALIGNED) == 0) | (object.get(layout.ARRAY_RANK) != 0))
            element.value = object.get(layout.ARRAY_DATA)
            descriptor = object.get(layout.ARRAY_DTYPE)
            with code.when(descriptor == objects.word(record, f"{dtype} descriptor")):
                code.ret(element.value)
            refuse.unless(exact == NULL)
            for source in sources:
                cast_from[source].when(descriptor == objects.word(record, f"{source} descriptor"))
            refuse.go()
        refuse.unless((exact == NULL) | (type_ == only))
        with code.when(type_ == objects.word(record, f"{dtype} scalar")):
            code.ret(element.value)
        _take_python_number(code, dtype, object, record, room, refuse)
        for source in sources:
            cast_from[source].when(type_ == objects.word(record, f"{source} scalar"))
        refuse.go()
        for source in sources:
            code.place(cast_from[source])
            _give(code, room, element.value.load(TYPES[source]), source, dtype)
        code.place(refuse)
        return NULL

    return scalar


def _give(code: Code, room: Ptr, value: Any, source: str, dtype: str) -> None:
    """Store a value of dtype `source` in `room` as one of `dtype`, and return `room`."""
    if source in FLOATS:
        room.store(value.to(TYPES[dtype]))
    else:
        room.store(value.to(TYPES[dtype], signed=source.startswith("int")))
    code.ret(room)


def _take_python_number(code: Code, dtype: str, object: Ptr, record: Ptr, room: Ptr, refuse: Label) -> None:
    """Return a Python number as an element: a float for a parameter of floats, True and False for any, an int that fits
    for all but bool."""
    type_, is_true = object.get(layout.OBJECT_TYPE), object == objects.word(record, "true")
    with code.when(is_true | (object == objects.word(record, "false"))):
        _give(code, room, is_true.to(I8, signed=False), "bool", dtype)
    if dtype in FLOATS:
        with code.when(type_ == objects.word(record, "float")):
            if dtype == "float64":
                code.ret(object.at(layout.VALUE))
            else:
                _give(code, room, object.at(layout.VALUE).load(F64), "float64", dtype)
    if dtype == "bool":
        return
    with code.when(type_ == objects.word(record, "int")):
        over = code.local(I32)
        number = as_long_long(record, object, over)
        refuse.when(over.load(I32) != 0)
        integer = TYPES[dtype]
        if issubclass(integer, Int) and integer is not I64:
            short = number.to(integer)
            refuse.unless(short.to(I64, signed=dtype.startswith("int")) == number)
        elif dtype == "uint64":
            refuse.when(number < 0)
        _give(code, room, number, "int64", dtype)  # to floats rounded to nearest even, as Python's float() does


# --- conversion of small arrays and lists -----------------------------------------------------------------------------

new_copy = objects.Imported("PyArray_NewCopy", Ptr, Ptr, I32)
cast_array = objects.Imported("PyArray_CastToType", Ptr, Ptr, Ptr, I32)

DESCRIPTORS = objects.OFFSETS[f"{DTYPES[0]} descriptor"]
"""The offset in a record of the descriptors of all dtypes, in the order of DTYPES."""
itemsizes = table("itemsizes", [itemsize(dtype) for dtype in DTYPES])
sources = table(
    "sources", [sum(can_cast_safely(source, dtype) << k for k, source in enumerate(DTYPES)) for dtype in DTYPES]
)
"""For each dtype the set of those that cast to it safely, as bits by their number in DTYPES."""
EXACT_INTEGERS = 2**53
"""Up to this magnitude an integer rounds to the same float32 directly and by way of float64."""


@function("noinline optnone")
def convert_argument(code: Code, object: Ptr, record: Ptr, dtype: I64, rank: I32, references: Ptr, class_: Ptr) -> Ptr:
    """Convert an argument to a contiguous array of dtype number `dtype` and of this rank, and append it to the
    references that the call holds. Returns null to refuse. class_: as for `has_declared_type`."""
    refuse, converted = code.label("refuse"), code.label("held")
    descriptor = objects.word_at(record, (dtype << 3) + DESCRIPTORS)
    new = code.variable(NULL)
    type_ = object.get(layout.OBJECT_TYPE)
    with code.when(type_ == objects.word(record, "own array")):
        class_.store(objects.word(record, "made of own"))
    with code.when((type_ == objects.word(record, "ndarray")) | (type_ == objects.word(record, "own array"))):
        refuse.unless(object.get(layout.ARRAY_RANK) == rank)
        refuse.unless(is_small(code, dtype, rank, object.get(layout.ARRAY_SHAPE)))
        with code.when(object.get(layout.ARRAY_DTYPE) == descriptor):
            new.value = new_copy(record, object, I32.of(0))
            converted.go()
        refuse.unless(objects.word(record, "exact") == NULL)
        refuse.unless(casts(code, object.get(layout.ARRAY_DTYPE), record, dtype))
        objects.retain(code, descriptor)
        new.value = cast_array(record, object, descriptor, I32.of(0))
        converted.go()
    refuse.unless(objects.word(record, "exact") == NULL)
    new.value = array_of_list(code, object, record, dtype, rank)
    code.place(converted)
    with code.when(new.value == NULL):
        objects.clear_error(record)
        refuse.go()
    number = references.load(I64) + 1
    references.at(number, Ptr).store(new.value)
    references.store(number)
    code.ret(new.value)
    code.place(refuse)
    return NULL


@function("noinline optnone")
def is_small(code: Code, dtype: I64, rank: I32, shape: Ptr) -> Bool:
    """True for an array of at most MOST_COPIED bytes, which is copied without asking Python."""
    length = code.variable(itemsizes(code).at(dtype, I64).load(I64))
    with code.count(0, rank.to(I64)) as axis:
        length.value = objects.times(code, length.value, shape.at(axis, I64).load(I64))
    return ~length.value.above(MOST_COPIED)


@function("noinline optnone")
def casts(code: Code, own: Ptr, record: Ptr, dtype: I64) -> Bool:
    """True where the dtype `own`, in any byte order, casts safely to dtype number `dtype`."""
    mask = sources(code).at(dtype, I64).load(I64)
    with code.count(0, len(DTYPES)) as source:
        known = objects.word_at(record, (source << 3) + DESCRIPTORS)
        with code.when(known.get(layout.DTYPE_NUMBER) == own.get(layout.DTYPE_NUMBER)):
            code.ret(((mask >> source) & 1) != 0)
    return Bool.of(False)


@function("noinline optnone")
def array_of_list(code: Code, object: Ptr, record: Ptr, dtype: I64, rank: I32) -> Ptr:
    """Return a new array of a list or tuple of Python numbers, or for rank 2 of lists of them; null to refuse. No
    Python code runs meanwhile, so that the lists do not change."""
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
    array = objects.empty(code, record, objects.word(record, "ndarray"), (dtype << 3) + DESCRIPTORS, rank, dims)
    refuse.when(array == NULL)
    wrong, size = code.label("wrong"), itemsizes(code).at(dtype, I64).load(I64)
    items.store(first)
    with code.count(0, rows.value) as row:
        with code.when(rank == 2):
            wrong.when(items_of(code, first.at(row, Ptr).load(Ptr), record, items) != count.value)
        with code.count(0, count.value) as k:
            place = array.get(layout.ARRAY_DATA).at((row * count.value + k) * size)
            wrong.unless(put_number(code, items.load(Ptr).at(k, Ptr).load(Ptr), record, dtype, place))
    code.ret(array)
    code.place(wrong)
    objects.release(code, array, record)
    code.place(refuse)
    return NULL


@function("noinline optnone")
def items_of(code: Code, object: Ptr, record: Ptr, place: Ptr) -> I64:
    """Return the number of items of a list or tuple and store their address at `place`; -1 for another object."""
    with code.when(object.get(layout.OBJECT_TYPE) == objects.word(record, "list")):
        place.store(object.get(layout.LIST_ITEMS))
        code.ret(object.get(layout.LIST_SIZE))
    with code.when(object.get(layout.OBJECT_TYPE) == objects.word(record, "tuple")):
        place.store(object.at(layout.TUPLE_ITEMS))
        code.ret(object.get(layout.TUPLE_SIZE))
    return I64.of(-1)


@function("noinline")
def put_number(code: Code, object: Ptr, record: Ptr, dtype: I64, place: Ptr) -> Bool:
    """Store a Python number as an element; False where it does not fit. Items of type np.float64 and np.int64 are taken
    for float64 and int64 alone: for other dtypes NumPy's result depends on the other items."""
    refuse, type_ = code.label("refuse"), object.get(layout.OBJECT_TYPE)
    is_true, is_false = (object == objects.word(record, name) for name in ("true", "false"))
    number = code.variable(is_true.to(I64, signed=False))
    is_wide = dtype == DTYPES.index("float64")
    with code.when(
        (type_ == objects.word(record, "float")) | ((type_ == objects.word(record, "float64 scalar")) & is_wide)
    ):
        real = object.at(layout.VALUE).load(F64)
        for name in FLOATS:
            with code.when(dtype == DTYPES.index(name)):
                place.store(real.to(TYPES[name]))
                code.ret(True)
        refuse.go()
    with code.when(~(is_true | is_false)):
        with code.when(type_ == objects.word(record, "int64 scalar")):
            refuse.unless(is_wide | (dtype == DTYPES.index("int64")))
            number.value = object.at(layout.VALUE).load(I64)
        with code.otherwise():
            refuse.unless(type_ == objects.word(record, "int"))
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
    """Store an integer as an element, or refuse where it does not fit."""
    type_ = TYPES[name]
    if name == "float32":
        refuse.when((number > EXACT_INTEGERS) | (number < -EXACT_INTEGERS))
    if name == "uint64":
        refuse.when(number < 0)
    if issubclass(type_, Int) and type_ is not I64:
        short = number.to(type_)
        refuse.unless(short.to(I64, signed=name.startswith("int")) == number)
        place.store(short)
    else:
        place.store(number.to(type_))


# --- checks of arguments and of arrays for results --------------------------------------------------------------------

intern = objects.Imported("PyUnicode_InternInPlace", objects.NOTHING, Ptr)


@function("noinline")
def has_declared_type(
    code: Code, object: Ptr, record: Ptr, descriptor: Ptr, rank: I32, flags: I32, class_: Ptr
) -> Bool:
    """True for an array of exactly type ndarray, or of graphc.numpy's class, with this descriptor and rank and all
    these flags. class_: where the class of the results is kept, to which an array of graphc.numpy gives its own."""
    type_ = object.get(layout.OBJECT_TYPE)
    with code.when(type_ != objects.word(record, "ndarray")):
        with code.when(type_ != objects.word(record, "own array")):
            code.ret(False)
        class_.store(objects.word(record, "made of own"))
    has_dtype = object.get(layout.ARRAY_DTYPE) == descriptor
    has_rank = object.get(layout.ARRAY_RANK) == rank
    has_flags = (object.get(layout.ARRAY_FLAGS) & flags) == flags
    return has_dtype & has_rank & has_flags


@function("noinline")
def interned(code: Code, record: Ptr, name: Ptr) -> Ptr:
    """Return the address of the interned string equal to `name`. No reference is held: compare it, nothing else."""
    kept = code.local(Ptr)
    objects.retain(code, name)
    kept.store(name)
    intern(record, kept)
    objects.release(code, kept.load(Ptr), record)
    return kept.load(Ptr)


@function("noinline optnone")
def sort_arguments(
    code: Code, record: Ptr, args: Ptr, positional: I64, kwnames: Ptr, places: Ptr, out: Ptr, count: I64, names: I64
) -> Bool:
    """Store the arguments in the order of the inputs at `places`: by position, by keyword, by default. The value of
    `out=` goes to `out`. Returns False to refuse: too many arguments, an unknown keyword, an argument that is missing
    or given twice. names: the offset in the record of the keywords, which the defaults follow."""
    refuse = code.label("refuse")
    keywords = record.at(names)
    defaults = keywords.at(count, Ptr)
    refuse.when(positional.above(count))
    with code.count(0, positional) as p:
        places.at(p, Ptr).store(args.at(p, Ptr).load(Ptr))
    with code.count(positional, count) as p:
        places.at(p, Ptr).store(NULL)
    with code.when(kwnames != NULL):
        guess = code.variable(positional)
        with code.count(0, kwnames.get(layout.TUPLE_SIZE)) as k:
            name = code.variable(kwnames.at(layout.TUPLE_ITEMS).at(k, Ptr).load(Ptr))
            value = args.at(positional + k, Ptr).load(Ptr)
            with code.when(name.value != keywords.at(guess.value, Ptr).load(Ptr)):
                name.value = interned(code, record, name.value)
            with code.when(name.value == objects.word(record, "out name")):
                out.store(value)
            with code.otherwise():
                place = seek(code, keywords, count, name.value, guess.value, refuse)
                refuse.unless(places.at(place, Ptr).load(Ptr) == NULL)
                places.at(place, Ptr).store(value)
                guess.value = place + 1
    with code.count(positional, count) as p, code.when(places.at(p, Ptr).load(Ptr) == NULL):
        default = defaults.at(p, Ptr).load(Ptr)
        places.at(p, Ptr).store(default)
        refuse.when(default == NULL)
    code.ret(True)
    code.place(refuse)
    return Bool.of(False)


def seek(code: Code, names: Ptr, count: I64, name: Ptr, guess: I64, missing: Label) -> I64:
    """Return the number of the input with this keyword. The search goes round from `guess`, which is right where
    keywords come in the order of the inputs. Goes to `missing` where no input has it."""
    place, tried = code.variable(guess), code.variable(I64.of(0))
    with code.loop() as loop:
        missing.unless(tried.value.below(count))
        place.value = place.value.below(count).choose(place.value, 0)
        loop.leave.when(names.at(place.value, Ptr).load(Ptr) == name)
        place.value += 1
        tried.value += 1
    return place.value


@function("noinline")
def release_all(code: Code, references: Ptr, record: Ptr) -> None:
    """Release all references of a list, the last first."""
    left = code.variable(references.load(I64))
    with code.loop() as loop:
        loop.leave.when(left.value == 0)
        objects.release(code, references.at(left.value, Ptr).load(Ptr), record)
        left.value -= 1


@function("alwaysinline")
def is_writable_result(
    code: Code, object: Ptr, record: Ptr, descriptor: Ptr, rank: I32, dims: Ptr, length: I64, ranges: Ptr
) -> Bool:
    """True where an array given for a result has its descriptor, rank and sizes, is contiguous and writeable, and
    overlaps none of the byte ranges (from, to) in the table `ranges`, to which its own is appended."""
    flags = I32.of(layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    with code.when(~has_declared_type(code, object, record, descriptor, rank, flags, code.local(Ptr))):
        code.ret(False)
    shape = object.get(layout.ARRAY_SHAPE)
    with code.count(0, rank.to(I64)) as axis:
        size = dims.at(axis, I64).load(I64)
        with code.when(shape.at(axis, I64).load(I64) != size):
            code.ret(False)
    begin = object.get(layout.ARRAY_DATA)
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
def are_writable_results(
    code: Code, record: Ptr, outputs: Ptr, count: I64, dims: Ptr, lengths: Ptr, given: Ptr, ranges: Ptr
) -> Bool:
    """True where `is_writable_result` holds for each array given for an output."""
    with (
        objects.each_output(code, record, outputs, count, dims, lengths, given) as output,
        code.when(output.given != NULL),
    ):
        descriptor = objects.word_at(record, output.descriptor)
        declared = output.rank, output.dims, output.length
        with code.when(~is_writable_result(code, output.given, record, descriptor, *declared, ranges)):
            code.ret(False)
    return Bool.of(True)
