"""A type whose instances are called as cheaply as builtin functions.

In: a class that derives from `Direct`. Out: a subtype whose calls jump to the address that each instance holds, in the
form of CPython's vectorcall:

    PyObject *call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)

A class statement cannot make one: a class of Python's only inherits that form, from Python 3.12 on, and never has it of
its own. `PyType_FromSpecWithBases` can.
"""

from __future__ import annotations

import ctypes
from typing import TypeVar

from graphc.codegen.call.bind import Binding
from graphc.codegen.call.layout import CALLABLE_BINDING
from graphc.errors import GraphcError
from graphc.startup.process import PROCESS

HAVE_VECTORCALL, HAVE_VERSION_TAG = 1 << 11, 1 << 18
TP_CALL, TP_MEMBERS = 50, 72
T_PYSSIZET, READONLY = 19, 1


class Direct:
    """An object whose first slot holds its binding, at a fixed offset for native code."""

    __slots__ = ("binding",)

    binding: Binding


T = TypeVar("T", bound=Direct)


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def vectorcall_type(base: type[T]) -> type[T]:
    """Return a subtype of `base` whose instances end in the address that calls jump to, 0 until `attach`."""
    offset = base.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", T_PYSSIZET, offset, READONLY, None), _Member())
    call = ctypes.cast(ctypes.pythonapi["PyVectorcall_Call"], ctypes.c_void_p).value
    slots = (_Slot * 3)(_Slot(TP_CALL, call), _Slot(TP_MEMBERS, ctypes.addressof(members)), _Slot(0, None))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    size = offset + ctypes.sizeof(ctypes.c_void_p)
    spec = _Spec(name, size, 0, HAVE_VECTORCALL | HAVE_VERSION_TAG, ctypes.addressof(slots))
    PROCESS.kept.append((name, members, slots, spec))  # Python reads the names of members where they lie
    make = ctypes.pythonapi["PyType_FromSpecWithBases"]
    make.argtypes = (ctypes.c_void_p, ctypes.py_object)
    make.restype = ctypes.py_object
    made: type[T] = make(ctypes.addressof(spec), (base,))
    return made


def attach(item: Direct, binding: Binding) -> None:
    """Let calls of an instance of a `vectorcall_type` go to the binding's library."""
    item.binding = binding
    if ctypes.c_void_p.from_address(id(item) + CALLABLE_BINDING).value != id(binding):
        raise GraphcError("this Python lays out the slots of its objects unexpectedly; use mode='interpreted'")
    offset = type(item).__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
    ctypes.c_void_p.from_address(id(item) + offset).value = binding.library.vectorcall
