"""Special functions of SciPy's for generated source, by pointer.

In: the functions of `ops/custom.py`. Out: PROTOTYPES of those over all elements, whose definitions are in batch.py;
`symbols`, the addresses that their objects need when they are loaded; PYTHON_SHIMS, their meaning over flat
arrays. plain_source.py writes some of them without SciPy (plain.py, plain_shares.py).

`scipy.special.cython_special` keeps the addresses of functions of numbers for other extension modules, in capsules that
are named after their types. A function of several types has a capsule for each, whose key has a number before its name.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from graphc.errors import GraphcError
from graphc.ops.custom import SOURCES, symbol, value_of

FUNCTIONS: dict[str, tuple[str, str]] = {
    symbol(name, dtype): (name, dtype) for name in SOURCES for dtype in ("float64", "float32")
}
"""The name and the dtype of each function."""

PROTOTYPES: dict[str, tuple[str, ...]] = {
    function: ("int64", *(f"{dtype}*" for _ in range(len(SOURCES[name].operands) + 1)))
    for function, (name, dtype) in FUNCTIONS.items()
}
"""The types of the arguments, "*" after those that are pointers."""


def slot(name: str) -> str:
    """The symbol of the place where the address of SciPy's function stands."""
    return f"gc_scipy_{name}"


def symbols(function: str) -> Mapping[str, int]:
    """The addresses that the object of a function needs at load. SciPy is imported."""
    name, _ = FUNCTIONS[function]
    return {slot(name): ctypes.addressof(_place(name))}


@cache
def _place(name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p(address_of(name))


C_TYPES = {"d": "double", "l": "(Py_ssize_t|long)"}
FLAG, OPTIONS = "int __pyx_skip_dispatch", r"struct \w+ \*__pyx_optional_args"
"""Arguments after the operands of a function of one result: 0, and a null pointer in place of options."""


def address_of(name: str) -> int:
    """The address of SciPy's function of float64; raises GraphcError where there is none."""
    source = SOURCES[name]
    taken = [C_TYPES[kind] for kind in source.operands]
    taken += [FLAG, *[OPTIONS] * source.options] if source.count == 1 else [r"double \*"] * source.count
    prototype = rf"{'double' if source.count == 1 else 'void'} \({', '.join(taken)}\)"
    capsules = import_module("scipy.special.cython_special").__pyx_capi__
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for key, capsule in capsules.items():
        if re.fullmatch(rf"(__pyx_fuse_\d+)?(_\d)?{source.name}", key):
            text = name_of(capsule)
            if re.fullmatch(prototype, text.decode()):
                return int(pointer_of(capsule, text))
    raise GraphcError(f"SciPy {import_module('scipy').__version__} has no {source.name} of float64 for other modules")


# --- under CPython ----------------------------------------------------------------------------------------------------


def _run(name: str, *values: Any) -> int:
    count, *operands, result = values
    result[: int(count)] = value_of(name, [flat[: int(count)] for flat in operands])
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    function: partial(_run, name) for function, (name, _) in FUNCTIONS.items()
}
"""The functions for generated source under CPython."""
