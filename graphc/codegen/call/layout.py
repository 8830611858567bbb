"""The layout of Python's and NumPy's objects in memory, and of the record behind a compiled function.

In: nothing. Out: offsets of fields, which native code reads (llvm/typed.py); `verify_layout`, which compares each with
known objects of the running Python before the first function is bound.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES, NUMPY_DTYPES
from graphc.codegen.llvm.module import HalfField, LongField, PointerField
from graphc.errors import GraphcError
from graphc.startup.versions import digest_of

# Offsets in bytes, on a 64-bit CPython with the GIL; `verify_layout` compares them with live objects.
OBJECT_COUNT = HalfField(0)  # its low half: negative for objects that are immortal
OBJECT_TYPE = PointerField(8)
VALUE = 16  # of a float, of a complex number, and of a NumPy scalar
TYPE_ALLOC = PointerField(304)
TYPE_NEW = PointerField(312)
LIST_SIZE = LongField(16)
LIST_ITEMS = PointerField(24)
TUPLE_SIZE = LongField(16)
DICT_SIZE = LongField(16)
DICT_KEYS = PointerField(32)  # the table of keys and values, of a dict that shares it with no other
MEMBER = PointerField(40)  # what a descriptor of a slot knows: its type, the offset of the slot
MEMBER_TYPE, MEMBER_OFFSET = HalfField(8), LongField(16)
ANY_OBJECT = 16  # the type of slots of Python's classes
TUPLE_ITEMS = tuple.__basicsize__
CALLABLE_BINDING = PointerField(object.__basicsize__)
ARRAY_DATA = PointerField(16)
ARRAY_RANK = HalfField(24)
ARRAY_SHAPE = PointerField(32)
ARRAY_DTYPE = PointerField(56)
ARRAY_FLAGS = HalfField(64)
DTYPE_NUMBER = HalfField(28)  # of a dtype: one for all byte orders

CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

PYTHON_API = (
    "PyObject_Vectorcall",
    "Py_DecRef",
    "PyLong_FromLongLong",
    "PyLong_AsLongLongAndOverflow",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyList_New",
    "PyTuple_New",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyErr_ExceptionMatches",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyUnicode_InternInPlace",
    "PyUnicode_Compare",
    "PyObject_RichCompareBool",
    "PyObject_GetAttr",
    "PyObject_GenericSetAttr",
    "PyDict_Copy",
    "PyDict_GetItem",
    "PyDict_Next",
)
# Slots of NumPy's array API table; part of its stable ABI.
ARRAY_API = {
    "PyArray_CastToType": 49,
    "PyArray_Scalar": 60,
    "PyArray_NewCopy": 85,
    "PyArray_NewFromDescr": 94,
    "PyArray_SetBaseObject": 282,
}
ARRAY_ABI, ARRAY_ABI_SLOT = 0x02000000, 0

ABSURD, NO_MEMORY = -1, -2
"""Codes in place of the number of a failed check: a size is negative or larger than any memory; an allocation of
results or temporaries failed."""

RECORD = (
    *("busy", "arena", "refuse", "fail", "exact", "out name", "block", "activity", "contended", "wake"),
    *("ndarray", "list", "tuple", "float", "int", "str", "true", "false", "none", "memory error"),
    *("scalars", "tuples", "true scalar", "false scalar", "arguments", "results", "begin", "function"),
    *("own array", "made", "made of own"),
    *PYTHON_API,
    *ARRAY_API,
    *(f"{dtype} descriptor" for dtype in NUMPY_DTYPES),
    *(f"{dtype} scalar" for dtype in NUMPY_DTYPES),
)
"""The words of a record, by name. All are addresses but `exact`, which is 1 where nothing may be converted, `scalars`,
which is 1 where results without axes are NumPy's scalars, and `tuples`, which is 1 where several results are a tuple.
`own array`: the class of graphc.numpy's arrays, which are taken as NumPy's. `made`: the class of the results; `made of
own`: the same where an argument with axes is an own array. `arguments`, `results`: of the words of recipes for trees
(recipes.py), 0 where there are none. `fail`: 0 where a call
whose check fails is refused. `busy`: of a word that is 1 while a call uses the arena. `activity`: of the words of
locks.py, 0 where the caller holds the locks.
Behind them stand the cells of the shared variables, the keyword of each input, the default of each (0 for none), the
type that the number for each must have where nothing may be converted (0: an array), and the words of the lock of each
shared variable."""


def layout_tag() -> int:
    """Return a number of these offsets and this record: code compiled with another number must not be loaded."""
    offsets = (
        OBJECT_TYPE,
        TYPE_ALLOC,
        TYPE_NEW,
        VALUE,
        LIST_SIZE,
        LIST_ITEMS,
        TUPLE_SIZE,
        TUPLE_ITEMS,
        DICT_SIZE,
        DICT_KEYS,
        CALLABLE_BINDING,
        ARRAY_DATA,
        ARRAY_RANK,
        ARRAY_SHAPE,
        ARRAY_DTYPE,
        ARRAY_FLAGS,
        DTYPE_NUMBER,
    )
    return int(digest_of(repr((offsets, RECORD)).encode())[:8], 16)


def word_at(address: int) -> int:
    """The 64 bits at an address of this process."""
    return ctypes.c_int64.from_address(address).value


def half_at(address: int) -> int:
    """The 32 bits at an address of this process."""
    return ctypes.c_int32.from_address(address).value


@cache
def verify_layout() -> None:
    """Raise GraphcError where the objects of this interpreter are laid out differently than entry points assume."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise GraphcError("compiled functions need a 64-bit little-endian CPython; use mode='interpreted'")
    if "t" in sys.abiflags or hasattr(sys, "getobjects"):
        raise GraphcError(
            "compiled functions need a CPython with the GIL and without Py_TRACE_REFS; use mode='interpreted'"
        )
    wrong = [name for name, agrees in _layout_checks().items() if not agrees]
    if wrong:
        raise GraphcError(
            f"Python {sys.version.split()[0]} with NumPy {np.__version__} lays out {', '.join(wrong)} unexpectedly"
        )


def _layout_checks() -> dict[str, bool]:
    array = np.arange(6.0).reshape(2, 3)
    frozen = np.array(0)
    frozen.flags.writeable = False
    mask = CONTIGUOUS | ALIGNED | WRITEABLE
    listed = [array, frozen]
    paired = (array, frozen)
    number, turned = 1.25, 2 + 3j
    allocate = ctypes.pythonapi["PyType_GenericAlloc"]
    known = {number: array, array.ndim: frozen}
    new = object()
    holders = [new] * 5
    return {
        "type": word_at(id(array) + OBJECT_TYPE) == id(np.ndarray),
        "reference count": half_at(id(new)) == 1 + len(holders),
        "list": word_at(id(listed) + LIST_SIZE) == 2 and word_at(word_at(id(listed) + LIST_ITEMS) + 8) == id(frozen),
        "tuple": (word_at(id(paired) + TUPLE_SIZE), word_at(id(paired) + TUPLE_ITEMS)) == (2, id(array)),
        "dict": word_at(id(known) + DICT_SIZE) == 2 and entries_of(known) is not None,
        "slot": slots_of(Slotted, ["first", "second"]) == [object.__basicsize__, object.__basicsize__ + 8],
        "float": ctypes.c_double.from_address(id(number) + VALUE).value == number,
        "complex": ctypes.string_at(id(turned) + VALUE, 16) == np.complex128(turned).tobytes(),
        "array data": word_at(id(array) + ARRAY_DATA) == array.__array_interface__["data"][0],
        "array rank": (half_at(id(array) + ARRAY_RANK), half_at(id(frozen) + ARRAY_RANK)) == (2, 0),
        "array shape": [word_at(word_at(id(array) + ARRAY_SHAPE) + 8 * axis) for axis in (0, 1)] == [2, 3],
        "array dtype": word_at(id(array) + ARRAY_DTYPE) == id(np.dtype("float64")),
        "array flags": (half_at(id(array) + ARRAY_FLAGS) & mask, half_at(id(frozen) + ARRAY_FLAGS) & mask)
        == (mask, mask ^ WRITEABLE),
        "dtype": all(half_at(id(np.dtype(each)) + DTYPE_NUMBER) == np.dtype(each).num for each in DTYPES),
        "type's allocator": word_at(id(object) + TYPE_ALLOC) == ctypes.cast(allocate, ctypes.c_void_p).value,
        "type's constructor": is_made_plainly(Plain) and not is_made_plainly(list),
        "NumPy scalar": all(_scalar_agrees(np.dtype(dtype)) for dtype in NUMPY_DTYPES),
    }


class Plain:
    """A class whose objects `object` makes."""


class Slotted:
    """A class whose objects have slots."""

    __slots__ = ("first", "second")


def entries_of(known: dict[Any, Any]) -> list[int] | None:
    """The offsets of the values of a dict, which differ, in the table that a copy of it has (`DICT_KEYS`). None where
    they are not found there."""
    copied = known.copy()
    size = copied.__sizeof__() - dict.__basicsize__
    table = word_at(id(copied) + DICT_KEYS)
    words = [word_at(table + 8 * place) for place in range(size // 8)] if size > 0 else []
    place_of = {word: place for place, word in enumerate(words)}
    places = [place_of.get(id(value), 0) for value in known.values()]
    is_known = all(place and words[place - 1] == id(key) for place, key in zip(places, known, strict=True))
    return [8 * place for place in places] if is_known else None


def slots_of(class_: type, names: Sequence[str]) -> list[int] | None:
    """The offsets of attributes in the objects of a class. None where one is in no slot."""
    offsets = []
    for name in names:
        slot = next((vars(each)[name] for each in class_.__mro__ if name in vars(each)), None)
        if type(slot) is not type(Slotted.first):  # type: ignore[attr-defined]
            return None
        member = word_at(id(slot) + MEMBER)
        if half_at(member + MEMBER_TYPE) != ANY_OBJECT:
            return None
        offsets.append(word_at(member + MEMBER_OFFSET))
    return offsets


def is_made_plainly(class_: type) -> bool:
    """True where `object` itself makes the objects of a class."""
    return word_at(id(class_) + TYPE_NEW) == word_at(id(object) + TYPE_NEW)


def _scalar_agrees(dtype: np.dtype[Any]) -> bool:
    scalar = dtype.type(1)
    return ctypes.string_at(id(scalar) + VALUE, dtype.itemsize) == bytes(scalar.tobytes())
