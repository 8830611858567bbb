"""Orders for generated source, by pointer and strides; the addresses of NumPy's own sorts.

In: the ops of `ops/lines.py`, which has the order of their arguments. Out: PROTOTYPES of their functions, whose
definitions are in lines.py; `symbols`, the addresses that their objects need when they are loaded; PYTHON_SHIMS,
their meaning over flat arrays.

NumPy sorts numbers by the vectors of the processor. The functions that do are no symbols of its library; a dtype keeps
their addresses in a table of its C interface (`PyArray_ArrFuncs`), which since NumPy 2.0 a function of that interface
gives. They take an address and a count, and need neither the interpreter nor an array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]
from numpy.lib.stride_tricks import as_strided

from graphc.arrays.dtypes import DTYPES
from graphc.codegen.gemm import Flat
from graphc.ops.lines import (
    first_elements,
    first_places,
    order_along,
    order_of_rows,
    places_left,
    places_right,
    sorted_along,
    symbol,
)
from graphc.startup.hooks import once

ALONG = {"sort": sorted_along, "argsort": order_along}
"""Functions along the second of three axes, by the names of the ops: their values in NumPy."""
FIRST = {"top": first_elements, "argtop": first_places}
"""Functions of rows."""
ROWS = {"lexorder": order_of_rows}
"""Functions of matrices."""
SEARCHED = {"searchsorted_left": places_left, "searchsorted_right": places_right}
"""Functions of a sorted vector and of values."""
FUNCTIONS: dict[str, tuple[str, str]] = {
    symbol(name, dtype): (name, dtype) for name in (*ALONG, *FIRST, *ROWS, *SEARCHED) for dtype in DTYPES
}
"""The op and the dtype of each function."""


def result_dtype(name: str, dtype: str) -> str:
    """The dtype of the result of an op, and of its workspace."""
    return dtype if name in ("sort", "top") else "int64"


def _kinds(name: str, dtype: str) -> tuple[str, ...]:
    sizes, result = ("int64",) * 3, f"{result_dtype(name, dtype)}*"
    if name in ALONG:
        return (*sizes, f"{dtype}*", *sizes, result, result)
    if name in ROWS:
        return (*sizes[1:], f"{dtype}*", *sizes[1:], result)
    if name in SEARCHED:
        return (*sizes[1:], *(f"{dtype}*", "int64") * 2, result)
    return (*sizes, f"{dtype}*", "int64", "int64", "int64*", result, result)


PROTOTYPES: dict[str, tuple[str, ...]] = {
    function: _kinds(name, dtype) for function, (name, dtype) in FUNCTIONS.items()
}
"""The types of the arguments, "*" after those that are pointers."""

# --- NumPy's sorts ----------------------------------------------------------------------------------------------------

ENTRIES = tuple((dtype, what) for dtype in DTYPES for what in ("sort", "argsort"))
"""The table behind the symbol gc_order: of each dtype NumPy's sort, and its stable sort of places; 0 where they are not
known."""
INTERFACE, FIRST_FEATURES, LAST_FEATURES = 0x2000000, 0x12, 0x16
"""NumPy's C interface: the version that NumPy 2 has, and the versions of its features, those of NumPy 2.0 to 2.5,
for which the places below are known."""
VERSION, FEATURES, ARRAY_FUNCTIONS = 0, 211, 365
"""The places of functions in the interface: what the two versions are, and the table of a dtype."""
SORT, STABLE_ARGSORT, LENGTH = 33, 38, 39
"""The places of functions in that table: the first of three sorts, the last of three sorts of places."""


def symbols(name: str) -> Mapping[str, int]:
    """The addresses that an object of an order needs at load, besides those of all products."""
    return {"gc_order": ctypes.addressof(order_table())}


@once
def order_table() -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of ENTRIES."""
    tables = {dtype: _functions_of(dtype) for dtype in DTYPES}
    return (ctypes.c_void_p * len(ENTRIES))(*(tables[dtype][order == "argsort"] for dtype, order in ENTRIES))


@cache
def _interface() -> Any:
    """NumPy's C interface; None where it is another than is known."""
    pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * (ARRAY_FUNCTIONS + 1)).from_address(pointer(_multiarray_umath._ARRAY_API, None))
    version, features = (ctypes.CFUNCTYPE(ctypes.c_uint)(table[place] or 0)() for place in (VERSION, FEATURES))
    return table if version == INTERFACE and FIRST_FEATURES <= features <= LAST_FEATURES else None


def _functions_of(dtype: str) -> tuple[int, int]:
    """NumPy's sort and its stable sort of places; 0 where the table is not what is known of it. All of it that is read
    must be functions of NumPy's own library."""
    interface = _interface()
    if interface is None:
        return 0, 0
    give = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(interface[ARRAY_FUNCTIONS])
    table = (ctypes.c_void_p * LENGTH).from_address(give(np.dtype(dtype)) or 0)
    if not all(_is_of_numpy(table[place]) for place in range(SORT, LENGTH)):
        return 0, 0
    return table[SORT] or 0, table[STABLE_ARGSORT] or 0


class _Symbol(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _is_of_numpy(address: int | None) -> bool:
    """True if something stands in the library of NumPy's arrays."""
    info = _Symbol()
    known = address and ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return bool(known and info.file and info.file.decode() == _multiarray_umath.__file__)


# --- under CPython ----------------------------------------------------------------------------------------------------


def _run_along(compute: Callable[..., Any], *values: Any) -> int:
    shape, flat, steps, result = [int(size) for size in values[:3]], values[3], values[4:7], values[7]
    if all(shape):
        result[: int(np.prod(shape))] = compute(_view(flat, shape, steps)).reshape(-1)
    return 0


def _run_first(compute: Callable[..., Any], *values: Any) -> int:
    count, size, wanted = (int(each) for each in values[:3])
    if count and wanted:
        rows = _view(values[3], (count, size), values[4:6])
        values[7][: count * wanted] = compute(rows, values[6][:wanted]).reshape(-1)
    return 0


def _run_rows(compute: Callable[..., Any], *values: Any) -> int:
    shape = int(values[0]), int(values[1])
    if shape[0]:
        rows = _view(values[2], shape, values[3:5]) if shape[1] else np.empty(shape)
        values[5][: shape[0]] = compute(rows)
    return 0


def _run_searched(compute: Callable[..., Any], *values: Any) -> int:
    n, count = int(values[0]), int(values[1])
    x, wanted = (_view(values[2 + 2 * k], (size,), values[3 + 2 * k : 4 + 2 * k]) for k, size in enumerate((n, count)))
    values[6][:count] = compute(x, wanted)
    return 0


def _view(flat: Flat, shape: Any, steps: Any) -> Flat:
    return as_strided(flat, shape, [int(step) * flat.itemsize for step in steps], writeable=False)


RUNS = (ALONG, _run_along), (FIRST, _run_first), (ROWS, _run_rows), (SEARCHED, _run_searched)
PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    function: partial(run, values[name])
    for function, (name, _) in FUNCTIONS.items()
    for values, run in RUNS
    if name in values
}
"""The functions for generated source under CPython."""
