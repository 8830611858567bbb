"""Python's and NumPy's objects in native code: reference counts, cells, locks, new arrays, the arena.

In: the layout of objects. Out: functions of LLVM IR. They reach the addresses of the process through a record
(layout.py), whose address is their parameter `record`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from graphc.codegen.call import layout
from graphc.codegen.call.bind import LARGE
from graphc.codegen.call.locks import FORKING
from graphc.codegen.call.signature import ALIGNMENT, MOST
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import external, function
from graphc.codegen.llvm.typed import I32, I64, NULL, Bool, Ptr, SizeAndFlag, TwoSizes, Value
from graphc.startup.record import record

R = TypeVar("R", Ptr, I32, I64, None)

OFFSETS = {name: 8 * number for number, name in enumerate(layout.RECORD)}
"""The offset in bytes of each word of a record."""


def word_at(record: Ptr, offset: I64 | int) -> Ptr:
    """The word of the record at `offset`, which does not change."""
    return record.at(offset).load(Ptr, note="!invariant.load !0")


def word(record: Ptr, name: str) -> Ptr:
    """The word of the record of that name."""
    return word_at(record, OFFSETS[name])


class Imported(Generic[R]):
    """A C function of Python's or NumPy's, whose address the record holds."""

    def __init__(self, name: str, returns: type[R], *params: type[Value]) -> None:
        self.name = name
        self.returns: type[Value] | None = returns if issubclass(returns, Value) else None
        self.params = [param.spelling for param in params]

    def __call__(self, record: Ptr, *args: Value) -> R:
        if [arg.spelling for arg in args] != self.params:
            raise TypeError(f"{self.name}({', '.join(map(str, args))}) takes {', '.join(self.params)}")
        result: R = word(record, self.name).call(self.returns, *args)  # type: ignore[assignment]
        return result


NOTHING = type(None)
call_object = Imported("PyObject_Vectorcall", Ptr, Ptr, Ptr, I64, Ptr)
drop_last = Imported("Py_DecRef", NOTHING, Ptr)
new_number = Imported("PyLong_FromLongLong", Ptr, I64)
new_list, new_tuple = (Imported(name, Ptr, I64) for name in ("PyList_New", "PyTuple_New"))
clear_error = Imported("PyErr_Clear", NOTHING)
has_error = Imported("PyErr_Occurred", Ptr)
matches_error = Imported("PyErr_ExceptionMatches", I32, Ptr)
take_error = Imported("PyErr_Fetch", NOTHING, Ptr, Ptr, Ptr)
set_error = Imported("PyErr_Restore", NOTHING, Ptr, Ptr, Ptr)
new_array = Imported("PyArray_NewFromDescr", Ptr, Ptr, Ptr, I32, Ptr, Ptr, Ptr, I32, Ptr)
set_base = Imported("PyArray_SetBaseObject", I32, Ptr, Ptr)

multiply = external("llvm.smul.with.overflow.i64", SizeAndFlag, I64, I64)


@function("alwaysinline")
def retain(code: Code, object: Ptr) -> None:
    """Py_INCREF. On Pythons without immortal objects the low half of the count is the count."""
    count = object.get(layout.OBJECT_COUNT)
    object.put(layout.OBJECT_COUNT, count + (count >= 0).to(I32, signed=False))


@function()
def release(code: Code, object: Ptr, record: Ptr) -> None:
    """Py_XDECREF."""
    with code.when(object != NULL):
        count = object.get(layout.OBJECT_COUNT)
        with code.when(count == 1):
            drop_last(record, object)
        with code.otherwise():
            object.put(layout.OBJECT_COUNT, count - (count >= 0).to(I32, signed=False))


@function("alwaysinline")
def content(code: Code, cell: Ptr) -> Ptr:
    """The item of a list of exactly one item, or null."""
    with code.when(cell.get(layout.LIST_SIZE) != 1):
        code.ret(NULL)
    return cell.get(layout.LIST_ITEMS).load(Ptr)


@function()
def install(code: Code, cell: Ptr, new: Ptr) -> Ptr:
    """Store an owned reference as the item of a cell. Returns the reference to release: the old item, or the new one
    where the cell has been emptied."""
    old = content(code, cell)
    with code.when(old == NULL):
        code.ret(new)
    cell.get(layout.LIST_ITEMS).store(new)
    return old


@function()
def overlap(code: Code, begins: Ptr, ends: Ptr, written: I64, count: I64) -> Bool:
    """True where one of the first `written` byte ranges overlaps a later one of `count`."""
    clash = code.variable(Bool.of(False))
    with code.count(0, written, sure=True) as a:
        begin, end = begins.at(a, I64).load(I64), ends.at(a, I64).load(I64)
        with code.count(a + 1, count) as b:
            is_under = begin.below(ends.at(b, I64).load(I64))
            is_over = begins.at(b, I64).load(I64).below(end)
            clash.value |= is_under & is_over
    return clash.value


# Locks of shared variables (locks.py). -------------------------------------------------------------------------------


@function()
def mark(code: Code, record: Ptr, words: I64, modes: Ptr, count: I64, sign: I64) -> None:
    """Add the marks of a call to its locks, times `sign`: 1 to set them, -1 to take them back."""
    activity = word(record, "activity")
    activity.store(activity.load(I64) + sign)
    begun = activity.at(2, I64)
    begun.store(begun.load(I64) + 1)
    with code.count(0, count, sure=True) as k:
        lock = word_at(record, words + (k << 3))
        lock.store(lock.load(I64) + modes.at(k, I64).load(I64) * sign)


@function("noinline")
def enter(code: Code, record: Ptr, words: I64, cells: I64, arrays: Ptr, modes: Ptr, count: I64, marks: Bool) -> Bool:
    """Return True where a call may use its shared variables: no other call holds a conflicting lock, and the cells
    still hold `arrays`. Then sets its marks, where `marks`. words, cells: the offsets in the record of the locks' words
    and of the cells. modes: the mark for each variable, READER or WRITER."""
    with code.when(word(record, "activity").at(1, I64).load(I64) >= FORKING):
        code.ret(False)
    with code.count(0, count) as k:
        lock = word_at(record, words + (k << 3))
        marked = lock.load(I64)
        is_writer = modes.at(k, I64).load(I64) < 0
        clashes = is_writer.choose(marked != 0, marked < 0)
        is_claimed = lock.at(1, I64).load(I64) != 0
        with code.when(clashes | is_claimed):
            code.ret(False)
        now = content(code, word_at(record, cells + (k << 3)))
        with code.when(now != arrays.at(k, Ptr).load(Ptr)):
            code.ret(False)
    with code.when(marks):
        mark(code, record, words, modes, count, I64.of(1))
    return Bool.of(True)


@function("noinline")
def depart(code: Code, record: Ptr, words: I64, modes: Ptr, count: I64) -> Bool:
    """Take back the marks of `enter`, and wake the calls that wait. Returns False with an exception set where that
    fails, or where an exception has ended the kernel."""
    mark(code, record, words, modes, count, I64.of(-1))
    with code.when(word(record, "activity").at(1, I64).load(I64) != 0):
        error = [code.local(Ptr) for _ in range(3)]
        take_error(record, *error)
        answer = call_object(record, word(record, "wake"), NULL, I64.of(0), NULL)
        release(code, answer, record)
        type_, value, trace = (part.load(Ptr) for part in error)
        with code.when(type_ != NULL):
            set_error(record, type_, value, trace)
            code.ret(False)
        with code.when(answer == NULL):
            code.ret(False)
    return Bool.of(True)


# Memory. -------------------------------------------------------------------------------------------------------------


@function("alwaysinline")
def times(code: Code, count: I64, size: I64) -> I64:
    """The product of two sizes, or -1 where one is negative or the product absurd."""
    pair = multiply(code, count, size)
    product, over = pair.first(I64), pair.second(Bool)
    negative = (count | size) < 0
    return (negative | over | (product > MOST)).choose(I64.of(-1), product)


@function()
def measure_memory(
    code: Code, dims: Ptr, extents: Ptr, count: I64, lengths: Ptr, outputs: I64, buffers: I64
) -> TwoSizes:
    """Compute the bytes of each result and the offset of each temp in the arena.

    dims: the sizes of all values, one after the other. extents: for each value its rank, its itemsize and the number of
    its buffer; results come first. A temp is as long as the longest value it holds. lengths: gets the bytes of each
    result, then the offset of each temp, from ALIGNMENT on. Returns the offset after the last temp, -1 where a result
    or the arena is absurdly large, and the number of elements of all values.
    """
    with code.count(0, buffers, sure=True) as buffer:
        lengths.at(buffer, I64).store(I64.of(0))
    cursor, work, bad = code.variable(dims), code.variable(I64.of(0)), code.variable(Bool.of(False))
    with code.count(0, count, sure=True) as number:
        extent = extents.at(number * 3, I64)
        rank, itemsize, buffer = (extent.at(k, I64).load(I64) for k in range(3))
        elements = code.variable(I64.of(1))
        with code.count(0, rank) as axis:
            elements.value = times(code, elements.value, cursor.value.at(axis, I64).load(I64))
        cursor.value = cursor.value.at(rank, I64)
        work.value += elements.value
        length = times(code, elements.value, itemsize)
        bad.value |= length < 0
        longest = lengths.at(buffer, I64)
        before = longest.load(I64)
        longest.store((length > before).choose(length, before))
    offset = code.variable(I64.of(ALIGNMENT))
    with code.count(outputs, buffers) as temp:
        at = lengths.at(temp, I64)
        end = offset.value + ((at.load(I64) + (ALIGNMENT - 1)) & -ALIGNMENT)
        at.store(offset.value)
        is_large = end > MOST
        bad.value |= is_large
        offset.value = is_large.choose(I64.of(ALIGNMENT), end)
    return TwoSizes.of(code, bad.value.choose(I64.of(-1), offset.value), work.value)


def lay(code: Code, record: Ptr, class_: Ptr, descriptor: I64, rank: I32, dims: Ptr, data: Ptr, flags: int) -> Ptr:
    """Return a new array over `data`, or over memory of its own where that is null; null with an exception set.
    class_: ndarray or a subclass. descriptor: the offset of the dtype's descriptor in the record."""
    type_ = word_at(record, descriptor)
    retain(code, type_)
    return new_array(record, class_, type_, rank, dims, NULL, data, I32.of(flags), NULL)


@function("noinline")
def new_scalar(code: Code, record: Ptr, descriptor: I64) -> Ptr:
    """A new scalar of NumPy's, with bytes of zero for the kernel to write; null with an exception set. A bool is an
    int8 meanwhile: there are only two bools (`truth`)."""
    is_bool = descriptor == OFFSETS["bool descriptor"]
    to_kind = OFFSETS["bool scalar"] - OFFSETS["bool descriptor"]
    type_ = word_at(record, is_bool.choose(I64.of(OFFSETS["int8 scalar"]), descriptor + to_kind))
    return type_.get(layout.TYPE_ALLOC).call(Ptr, type_, I64.of(0))


@function()
def truth(code: Code, record: Ptr, array: Ptr) -> Ptr:
    """NumPy's True or False for the scalar that the kernel has written. Its reference replaces that to `array`."""
    scalar = code.variable(array)
    with code.when(word(record, "scalars") != NULL):
        is_true = array.at(layout.VALUE).load(I64) != 0
        scalar.value = is_true.choose(word(record, "true scalar"), word(record, "false scalar"))
        retain(code, scalar.value)
        release(code, array, record)
    return scalar.value


@function("noinline")
def empty(code: Code, record: Ptr, class_: Ptr, descriptor: I64, rank: I32, dims: Ptr) -> Ptr:
    """A new uninitialised array, or null with an exception set."""
    return lay(code, record, class_, descriptor, rank, dims, NULL, 0)


# Functions that are long, or rarely called, are `optnone`: LLVM takes less time for them, and a first start waits for
# it.


@function("noinline optnone")
def cover(code: Code, record: Ptr, class_: Ptr, descriptor: I64, rank: I32, dims: Ptr, length: I64) -> Ptr:
    """Return the array of a large result of `length` bytes, over a reused block (bind.py); null with an
    exception set."""
    failed, argument = code.label("failed"), code.local(Ptr)
    number = new_number(record, length)
    failed.when(number == NULL)
    argument.store(number)
    block = call_object(record, word(record, "block"), argument, I64.of(1), NULL)
    release(code, number, record)
    failed.when(block == NULL)
    flags = layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE
    array = lay(code, record, class_, descriptor, rank, dims, block.get(layout.ARRAY_DATA), flags)
    with code.when(array == NULL):
        release(code, block, record)
        failed.go()
    with code.when(set_base(record, array, block) != 0):
        release(code, array, record)
        failed.go()
    code.ret(array)
    code.place(failed)
    return NULL


@function("alwaysinline")
def given_for(code: Code, record: Ptr, given: Ptr, output: Ptr) -> Ptr:
    """Return the array in `given` for an output, null where there is none; `given` is null without `out=`."""
    with code.when(given == NULL):
        code.ret(NULL)
    place = output.at(2, I64).load(I64)
    with code.when(place < 0):
        code.ret(NULL)
    item = given.at(place, Ptr).load(Ptr)
    with code.when(item == word(record, "none")):
        code.ret(NULL)
    return item


@record(eq=False)
class Output:
    """An output of a call. descriptor: the offset of its dtype's descriptor in the record. length: in bytes. given: the
    array given for it, or null."""

    number: I64
    descriptor: I64
    rank: I32
    dims: Ptr
    length: I64
    given: Ptr


@contextmanager
def each_output(
    code: Code, record: Ptr, outputs: Ptr, count: I64, dims: Ptr, lengths: Ptr, given: Ptr
) -> Iterator[Output]:
    """Write a loop over the outputs. outputs: for each the offset of its descriptor in the record, its rank, and its
    position among the results, -1 for an update. dims: the sizes of all; lengths: the bytes of each."""
    cursor = code.variable(dims)
    with code.count(0, count) as number:
        output = outputs.at(number * 3, I64)
        rank, length = output.at(1, I64).load(I64), lengths.at(number, I64).load(I64)
        item = given_for(code, record, given, output)
        yield Output(number, output.load(I64), rank.to(I32), cursor.value, length, item)
        cursor.value = cursor.value.at(rank, I64)


@function()
def make(
    code: Code, record: Ptr, outputs: Ptr, count: I64, dims: Ptr, lengths: Ptr, given: Ptr, references: Ptr, class_: Ptr
) -> Bool:
    """Append the arrays of all outputs to a list of references (a count, then the references): given arrays, or new
    ones of a class; NumPy's scalars for those without axes, where the record says so. Returns False with an exception
    set where one cannot be made."""
    before = references.load(I64)
    first = references.at(before + 1, Ptr)
    with each_output(code, record, outputs, count, dims, lengths, given) as output:
        array = code.variable(output.given)
        with code.when(output.given != NULL):
            retain(code, output.given)
        with code.otherwise():
            is_scalar = (output.rank == 0) & (word(record, "scalars") != NULL)
            with code.when(is_scalar):
                array.value = new_scalar(code, record, output.descriptor)
            with code.otherwise():
                declared = output.descriptor, output.rank, output.dims
                with code.when(output.length.above(LARGE)):
                    array.value = cover(code, record, class_, *declared, output.length)
                with code.otherwise():
                    array.value = empty(code, record, class_, *declared)
            with code.when(array.value == NULL):
                code.ret(False)
        first.at(output.number, Ptr).store(array.value)
        references.store(before + output.number + 1)
    return Bool.of(True)


@function("noinline optnone")
def grow(code: Code, record: Ptr, length: Ptr) -> Ptr:
    """Return the array of the arena with a reference for the caller, allocated again where it has less than `length[0]`
    bytes; null with an exception set. The caller holds `busy`. The old array is released first, so that the two are
    never there at once."""
    cell = word(record, "arena")
    kept = content(code, cell)
    with code.when(kept.get(layout.OBJECT_TYPE) == word(record, "ndarray")):
        with code.when(kept.get(layout.ARRAY_SHAPE).load(I64) >= length.load(I64)):
            retain(code, kept)
            code.ret(kept)
        none = word(record, "none")
        retain(code, none)
        release(code, install(code, cell, none), record)
    fresh = empty(code, record, word(record, "ndarray"), I64.of(OFFSETS["uint8 descriptor"]), I32.of(1), length)
    with code.when(fresh == NULL):
        code.ret(NULL)
    retain(code, fresh)
    release(code, install(code, cell, fresh), record)
    return fresh
