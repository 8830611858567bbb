"""What reads a 0-d parameter in native code: an array, a NumPy scalar or a Python number.

In: a dtype. Out: a function of LLVM IR.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from graphc.arrays.dtypes import DTYPES, FLOATS, can_cast_safely
from graphc.codegen.call.layout import ALIGNED, ARRAY_DATA, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_RANK, OBJECT_TYPE, VALUE
from graphc.codegen.call.objects import Imported, word
from graphc.codegen.llvm.builder import Code, Label
from graphc.codegen.llvm.functions import Function, function
from graphc.codegen.llvm.typed import F32, F64, I8, I16, I32, I64, NULL, Int, Ptr, Real

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
