"""Recipes in native code: arguments taken apart into leaves, results put together.

In: the words of a recipe (recipes.py) and the arguments of a call, or arrays. Out: functions of LLVM IR for the entry
point. For a recipe of one argument, a dict of "w" and "b", and the call f({"w": w, "b": b}):

    take_apart      stores b, w at the places of inputs 0 and 1, and returns TAKEN
    f({"w": w})     it returns REFUSED, as for any other form, and the call goes to Python

No code of a program runs while a dict or list is read: keys are compared as addresses, then as strings of type `str`.
Attributes of objects are asked for as `getattr` does. So every value that was taken is held until all are.
"""

from __future__ import annotations

from graphc.codegen.call import layout
from graphc.codegen.call.arguments import interned, new_copy, seek
from graphc.codegen.call.objects import (
    Imported,
    call_object,
    new_array,
    new_list,
    new_tuple,
    release,
    retain,
    set_base,
    word,
)
from graphc.codegen.call.recipes import (
    BEGUN,
    BITS,
    CALLED,
    CONSTANT,
    DICT,
    EQUAL,
    FIELDS,
    LIST,
    LOOKED_UP,
    MOST_FIELDS,
    MOST_INNER,
    NAMED,
    PAIRED,
    SAME,
    SLOTS,
    TUPLE,
)
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import function
from graphc.codegen.llvm.typed import I32, I64, NULL, Bool, Ptr

TAKEN, REFUSED, RAISED = range(3)
"""Results of `take_apart`."""
MOST_SOUGHT = 64
"""Keys of a dict that are sought where they come in another order."""
MOST_AXES = 64
"""The axes that an array of NumPy's has at most."""
EQUALITY = 2
"""Python's number of the comparison `==`."""

next_item = Imported("PyDict_Next", I32, Ptr, Ptr, Ptr, Ptr)
compare_text = Imported("PyUnicode_Compare", I32, Ptr, Ptr)
compare = Imported("PyObject_RichCompareBool", I32, Ptr, Ptr, I32)
attribute = Imported("PyObject_GetAttr", Ptr, Ptr, Ptr)
set_attribute = Imported("PyObject_GenericSetAttr", I32, Ptr, Ptr, Ptr)
look_up = Imported("PyDict_GetItem", Ptr, Ptr, Ptr)
copy_dict = Imported("PyDict_Copy", Ptr, Ptr)
scalar_of = Imported("PyArray_Scalar", Ptr, Ptr, Ptr, Ptr)


@function("alwaysinline")
def keep(code: Code, value: Ptr, place: I64, leaves: Ptr, inner: Ptr, references: Ptr) -> None:
    """Keep a reference: to a leaf among the references of the call, to another value in `inner`."""
    with code.when(place >= 0):
        leaves.at(place, Ptr).store(value)
        number = references.load(I64) + 1
        references.at(number, Ptr).store(value)
        references.store(number)
    with code.otherwise():
        inner.at(-1 - place, Ptr).store(value)


@function("alwaysinline")
def hold(code: Code, value: Ptr, place: I64, leaves: Ptr, inner: Ptr, references: Ptr) -> None:
    """`keep` with a reference of its own."""
    retain(code, value)
    keep(code, value, place, leaves, inner, references)


@function("noinline")
def take_apart(code: Code, record: Ptr, args: Ptr, nargs: I64, kwnames: Ptr, leaves: Ptr, references: Ptr) -> I64:
    """Store the leaves of the arguments of a call at `leaves`, and append references to them to `references`. Returns
    TAKEN, REFUSED for arguments of another form, or RAISED with an exception set."""
    recipe = word(record, "arguments")
    by_position, by_name, count, steps = (recipe.at(k, I64).load(I64) for k in range(4))
    inner = code.local(Ptr, MOST_INNER)
    has_names = kwnames != NULL
    with code.when((nargs != by_position) | has_names.choose(by_name == 0, by_name != 0)):
        code.ret(I64.of(REFUSED))
    with code.count(0, count) as k:
        inner.at(k, Ptr).store(NULL)
    end, answer = code.label("end"), code.variable(I64.of(REFUSED))
    places = recipe.at(4, I64)
    with code.count(0, by_position) as k:
        hold(code, args.at(k, Ptr).load(Ptr), places.at(k, I64).load(I64), leaves, inner, references)
    names = places.at(by_position + by_name, Ptr)
    with code.when(has_names):
        end.when(kwnames.get(layout.TUPLE_SIZE) != by_name)
        with code.count(0, by_name) as k:
            name = code.variable(kwnames.at(layout.TUPLE_ITEMS).at(k, Ptr).load(Ptr))
            with code.when(name.value != names.at(k, Ptr).load(Ptr)):
                name.value = interned(code, record, name.value)
            place = seek(code, names, by_name, name.value, k, end)
            value, to = args.at(by_position + k, Ptr).load(Ptr), places.at(by_position + place, I64).load(I64)
            hold(code, value, to, leaves, inner, references)
    step, left = code.variable(names.at(by_name, Ptr)), code.variable(steps)
    with code.loop() as loop:
        loop.leave.when(left.value == 0)
        length = step.value.at(3, I64).load(I64)
        answer.value = take_step(code, record, step.value, leaves, inner, references)
        end.when(answer.value != TAKEN)
        step.value = step.value.at(length + length + 4, I64)
        left.value -= 1
    answer.value = I64.of(TAKEN)
    code.place(end)
    with code.count(0, count) as k:
        release(code, inner.at(k, Ptr).load(Ptr), record)
    return answer.value


@function("alwaysinline")
def take_step(code: Code, record: Ptr, step: Ptr, leaves: Ptr, inner: Ptr, references: Ptr) -> I64:
    """Take a value apart, or compare it. Returns as `take_apart` does."""
    how, place, class_, length = (step.at(k, I64) for k in range(4))
    refuse = code.label("refuse")
    with code.when(how.load(I64) == LOOKED_UP):
        outside = code.variable(class_.load(Ptr))
        key = step.at(4, Ptr).load(Ptr)
        with code.when(key != NULL):
            outside.value = look_up(record, outside.value, key)
            refuse.when(outside.value == NULL)
        hold(code, outside.value, step.at(5, I64).load(I64), leaves, inner, references)
        code.ret(I64.of(TAKEN))
    value = inner.at(place.load(I64), Ptr).load(Ptr)
    with code.when(how.load(I64) == PAIRED):
        code.ret(take_parts(code, record, value, step, leaves, inner, references))
    how_, count = how.load(I64), length.load(I64)
    keys = step.at(4, I64)
    places = keys.at(count, I64)
    refuse.unless(value.get(layout.OBJECT_TYPE) == class_.load(Ptr))
    with code.when(how_ >= SAME):
        refuse.unless(is_alike(code, record, value, keys.load(Ptr), how_))
        code.ret(I64.of(TAKEN))
    with code.when(how_ == FIELDS):
        with code.count(0, count) as k:
            member = attribute(record, value, keys.at(k, Ptr).load(Ptr))
            with code.when(member == NULL):
                code.ret(I64.of(RAISED))
            keep(code, member, places.at(k, I64).load(I64), leaves, inner, references)
        code.ret(I64.of(TAKEN))
    refuse.unless(value.get(layout.DICT_SIZE) == count)  # of tuples and lists as well
    with code.when(how_ == DICT):
        position, key, item = code.local(I64), code.local(Ptr), code.local(Ptr)
        position.store(I64.of(0))
        with code.count(0, count) as k:
            refuse.when(next_item(record, value, position, key, item) == 0)
            at = code.variable(k)
            with code.when(key.load(Ptr) != keys.at(k, Ptr).load(Ptr)):
                at.value = find_key(code, record, keys, count, key.load(Ptr), k)
                refuse.when(at.value < 0)
            hold(code, item.load(Ptr), places.at(at.value, I64).load(I64), leaves, inner, references)
        code.ret(I64.of(TAKEN))
    items = code.variable(value.at(layout.TUPLE_ITEMS))
    with code.when(how_ == LIST):
        items.value = value.get(layout.LIST_ITEMS)
    with code.count(0, count) as k:
        hold(code, items.value.at(k, Ptr).load(Ptr), places.at(k, I64).load(I64), leaves, inner, references)
    code.ret(I64.of(TAKEN))
    code.place(refuse)
    return I64.of(REFUSED)


@function("noinline")
def take_parts(code: Code, record: Ptr, value: Ptr, step: Ptr, leaves: Ptr, inner: Ptr, references: Ptr) -> I64:
    """Take a complex array or number: the leaf is a new array of its parts. Returns as `take_apart` does."""
    wanted, ndarray, parts = step.at(2, Ptr).load(Ptr), word(record, "ndarray"), code.variable(NULL)
    refuse, type_ = code.label("refuse"), value.get(layout.OBJECT_TYPE)
    with code.when((type_ == ndarray) | (type_ == word(record, "own array"))):
        dtype = value.get(layout.ARRAY_DTYPE)
        is_single = dtype == word(record, "complex64 descriptor")
        refuse.unless((wanted == ndarray) & (is_single | (dtype == word(record, "complex128 descriptor"))))
        refuse.unless(value.get(layout.ARRAY_RANK) < MOST_AXES)
        parts.value = parts_of_array(code, record, value, floats_for(record, is_single))
    with code.otherwise():
        is_single = type_ == word(record, "complex64 scalar")
        is_scalar = is_single | (type_ == word(record, "complex128 scalar"))
        refuse.unless((wanted == ndarray).choose(is_scalar, type_ == wanted))
        parts.value = parts_of_number(code, record, value, floats_for(record, is_single))
    with code.when(parts.value == NULL):
        code.ret(I64.of(RAISED))
    keep(code, parts.value, step.at(5, I64).load(I64), leaves, inner, references)
    code.ret(I64.of(TAKEN))
    code.place(refuse)
    return I64.of(REFUSED)


def floats_for(record: Ptr, is_single: Bool) -> Ptr:
    """The descriptor of the parts of complex64, or of complex128."""
    return is_single.choose(word(record, "float32 descriptor"), word(record, "float64 descriptor"))


@function("noinline")
def parts_of_array(code: Code, record: Ptr, value: Ptr, dtype: Ptr) -> Ptr:
    """A new array of the parts, of dtype `dtype`, over the memory of a complex array, or of a copy where that is not
    contiguous. Null with an exception set."""
    rank, dims = value.get(layout.ARRAY_RANK), code.local(I64, MOST_AXES)
    with code.count(0, rank.to(I64)) as axis:
        dims.at(axis, I64).store(value.get(layout.ARRAY_SHAPE).at(axis, I64).load(I64))
    dims.at(rank.to(I64), I64).store(I64.of(2))
    base, needed = code.variable(value), layout.CONTIGUOUS | layout.ALIGNED
    with code.when((value.get(layout.ARRAY_FLAGS) & needed) == needed):
        retain(code, value)
    with code.otherwise():
        base.value = new_copy(record, value, I32.of(0))
        with code.when(base.value == NULL):
            code.ret(NULL)
    flags = base.value.get(layout.ARRAY_FLAGS) & (needed | layout.WRITEABLE)
    return over(code, record, dtype, rank + 1, dims, base.value, flags)


@function("noinline")
def parts_of_number(code: Code, record: Ptr, value: Ptr, dtype: Ptr) -> Ptr:
    """A new array of the parts of a complex number; null with an exception set."""
    dims = code.local(I64)
    dims.store(I64.of(2))
    retain(code, dtype)
    array = new_array(record, word(record, "ndarray"), dtype, I32.of(1), dims, NULL, NULL, I32.of(0), NULL)
    with code.when(array == NULL):
        code.ret(NULL)
    memory = array.get(layout.ARRAY_DATA)
    memory.store(value.at(layout.VALUE).load(I64))
    with code.when(dtype == word(record, "float64 descriptor")):
        memory.at(8).store(value.at(layout.VALUE + 8).load(I64))
    return array


@function("noinline")
def over(code: Code, record: Ptr, dtype: Ptr, rank: I32, dims: Ptr, base: Ptr, flags: I32) -> Ptr:
    """A new contiguous array of a dtype over the memory of another one and of its class, to which the reference is
    taken over; null with an exception set."""
    retain(code, dtype)
    data = base.get(layout.ARRAY_DATA)
    class_ = base.get(layout.OBJECT_TYPE)
    view = new_array(record, class_, dtype, rank, dims, NULL, data, flags, NULL)
    with code.when(view == NULL):
        release(code, base, record)
        code.ret(NULL)
    with code.when(set_base(record, view, base) != 0):
        release(code, view, record)
        code.ret(NULL)
    return view


@function("noinline")
def complex_of(code: Code, record: Ptr, parts: Ptr, scalars: Bool) -> Ptr:
    """The complex array over the memory of its parts, to which the reference is taken over; null with an exception set.
    scalars: one without axes is a scalar of NumPy's."""
    is_single = parts.get(layout.ARRAY_DTYPE) == word(record, "float32 descriptor")
    dtype = is_single.choose(word(record, "complex64 descriptor"), word(record, "complex128 descriptor"))
    rank = parts.get(layout.ARRAY_RANK) - 1
    with code.when(scalars & (rank == 0)):
        number = scalar_of(record, parts.get(layout.ARRAY_DATA), dtype, NULL)
        release(code, parts, record)
        code.ret(number)
    flags = I32.of(layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    return over(code, record, dtype, rank, parts.get(layout.ARRAY_SHAPE), parts, flags)


@function("noinline")
def is_alike(code: Code, record: Ptr, value: Ptr, known: Ptr, how: I64) -> Bool:
    """True where a value of the type of a static one is alike it."""
    with code.when(value == known):
        code.ret(True)
    with code.when(how == BITS):
        code.ret(value.at(layout.VALUE).load(I64) == known.at(layout.VALUE).load(I64))
    with code.when(how == EQUAL):
        code.ret(compare(record, value, known, I32.of(EQUALITY)) == 1)
    return Bool.of(False)


@function("noinline")
def find_key(code: Code, record: Ptr, keys: Ptr, count: I64, key: Ptr, guess: I64) -> I64:
    """Return the number of the key that is this object, or an equal string; -1 where there is none. The key at `guess`
    is tried first."""
    is_text = key.get(layout.OBJECT_TYPE) == word(record, "str")
    with code.when(is_text & is_same_text(code, record, key, keys.at(guess, Ptr).load(Ptr))):
        code.ret(guess)
    with code.when(count > MOST_SOUGHT):
        code.ret(I64.of(-1))
    with code.count(0, count) as k, code.when(keys.at(k, Ptr).load(Ptr) == key):
        code.ret(k)
    with code.when(~is_text):
        code.ret(I64.of(-1))
    with code.count(0, count) as k, code.when(is_same_text(code, record, key, keys.at(k, Ptr).load(Ptr))):
        code.ret(k)
    return I64.of(-1)


@function("noinline")
def is_same_text(code: Code, record: Ptr, key: Ptr, known: Ptr) -> Bool:
    """True where two keys are equal strings."""
    with code.when(
        (key.get(layout.OBJECT_TYPE) != word(record, "str")) | (known.get(layout.OBJECT_TYPE) != word(record, "str"))
    ):
        code.ret(False)
    return compare_text(record, key, known) == 0


@function("noinline")
def put_together(code: Code, record: Ptr, leaves: Ptr) -> Ptr:
    """Return the tree of results: a new reference in place of those to the leaves, or null with an exception set."""
    recipe = word(record, "results")
    count, steps = (recipe.at(k, I64).load(I64) for k in range(2))
    parts = code.local(Ptr, MOST_INNER)
    with code.count(0, steps) as k:
        parts.at(k, Ptr).store(NULL)
    step, failed = code.variable(recipe.at(2, I64)), code.label("failed")
    with code.count(0, steps) as k:
        length = step.value.at(2, I64).load(I64)
        new = put_step(code, record, step.value, leaves, parts)
        failed.when(new == NULL)
        parts.at(k, Ptr).store(new)
        step.value = step.value.at(length + length + 3, I64)
    code.ret(parts.at(steps - 1, Ptr).load(Ptr))
    code.place(failed)
    with code.count(0, count) as k:
        release(code, leaves.at(k, Ptr).load(Ptr), record)
    with code.count(0, steps) as k:
        release(code, parts.at(k, Ptr).load(Ptr), record)
    return NULL


@function("alwaysinline")
def source(code: Code, place: I64, leaves: Ptr, parts: Ptr) -> Ptr:
    """The address of a part: a leaf, or what an earlier step has made."""
    return (place >= 0).choose(leaves.at(place, Ptr), parts.at(-1 - place, Ptr))


@function("alwaysinline")
def put_step(code: Code, record: Ptr, step: Ptr, leaves: Ptr, made: Ptr) -> Ptr:
    """Make a container of parts, whose references it takes over; null with an exception set."""
    how, count = step.load(I64), step.at(2, I64).load(I64)
    class_, offsets = step.at(1, Ptr).load(Ptr), step.at(3, I64)
    places = offsets.at(count, I64)
    with code.when(how == CONSTANT):
        retain(code, class_)
        code.ret(class_)
    with code.when(how == PAIRED):
        part = source(code, places.load(I64), leaves, made)
        parts = part.load(Ptr)
        part.store(NULL)
        code.ret(complex_of(code, record, parts, step.at(1, I64).load(I64) != 0))
    with code.when((how == FIELDS) | (how == CALLED) | (how == BEGUN)):
        code.ret(put_object(code, record, step, leaves, made))
    new = code.variable(NULL)
    with code.when(how == DICT):
        new.value = copy_dict(record, class_)
    with code.when(how == LIST):
        new.value = new_list(record, count)
    with code.when(how == TUPLE):
        new.value = new_tuple(record, count)
    with code.when(how == NAMED):
        new.value = class_.get(layout.TYPE_ALLOC).call(Ptr, class_, count)
    with code.when(how == SLOTS):
        new.value = new_object(code, record, class_)
    with code.when(new.value == NULL):
        code.ret(NULL)
    items = code.variable(new.value)
    with code.when(how == DICT):
        items.value = new.value.get(layout.DICT_KEYS)
    with code.when(how == LIST):
        items.value = new.value.get(layout.LIST_ITEMS)
    with code.count(0, count) as k:
        part = source(code, places.at(k, I64).load(I64), leaves, made)
        item = items.value.at(offsets.at(k, I64).load(I64))
        old = item.load(Ptr)
        item.store(part.load(Ptr))
        part.store(NULL)
        release(code, old, record)
    return new.value


@function("noinline")
def new_object(code: Code, record: Ptr, class_: Ptr) -> Ptr:
    """An object of a class, as `object.__new__` makes it; null with an exception set."""
    nothing = new_tuple(record, I64.of(0))
    new = class_.get(layout.TYPE_NEW).call(Ptr, class_, nothing, NULL)
    release(code, nothing, record)
    return new


@function("noinline")
def begun(code: Code, record: Ptr, class_: Ptr, arguments: Ptr, names: Ptr) -> Ptr:
    """Call the `__init__` of a class: None, null with an exception set, or another value where only the class itself
    can call it. arguments: a new object, then the arguments of these names."""
    begin = attribute(record, class_, word(record, "begin"))
    with code.when(begin == NULL):
        code.ret(NULL)
    with code.when(begin.get(layout.OBJECT_TYPE) != word(record, "function")):
        release(code, begin, record)
        retain(code, class_)
        code.ret(class_)
    answer = call_object(record, begin, arguments, I64.of(1), names)
    release(code, begin, record)
    return answer


@function("noinline")
def put_object(code: Code, record: Ptr, step: Ptr, leaves: Ptr, parts: Ptr) -> Ptr:
    """`put_step` for an object whose attributes are set, and for a class or its `__init__` that is called."""
    how, count = step.load(I64), step.at(2, I64).load(I64)
    class_, keys = step.at(1, Ptr).load(Ptr), step.at(3, I64)
    places = keys.at(count, I64)
    new = code.variable(NULL)
    with code.when(how != CALLED):
        new.value = new_object(code, record, class_)
        with code.when(new.value == NULL):
            code.ret(NULL)
    with code.when(how != FIELDS):
        args, names = code.local(Ptr, MOST_FIELDS + 1), keys.load(Ptr)
        with code.count(0, count) as k:
            args.at(k + 1, Ptr).store(source(code, places.at(k, I64).load(I64), leaves, parts).load(Ptr))
        is_called = code.variable(how == CALLED)
        with code.when(~is_called.value):
            args.store(new.value)
            answer = begun(code, record, class_, args, names)
            with code.when(answer == NULL):
                release(code, new.value, record)
                code.ret(NULL)
            release(code, answer, record)
            with code.when(answer != word(record, "none")):
                release(code, new.value, record)
                is_called.value = Bool.of(True)
        with code.when(is_called.value):
            new.value = call_object(record, class_, args.at(1, Ptr), (names == NULL).choose(count, I64.of(0)), names)
        with code.when(new.value == NULL):
            code.ret(NULL)
    with code.count(0, count) as k:
        part = source(code, places.at(k, I64).load(I64), leaves, parts)
        value = part.load(Ptr)
        with code.when(how == FIELDS):
            status = set_attribute(record, new.value, keys.at(k, Ptr).load(Ptr), value)
            with code.when(status != 0):
                release(code, new.value, record)
                code.ret(NULL)
        part.store(NULL)
        release(code, value, record)
    return new.value


__all__ = ["RAISED", "REFUSED", "TAKEN", "put_together", "take_apart"]
