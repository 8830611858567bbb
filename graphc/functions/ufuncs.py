"""Ufuncs of NumPy's whose inner loops are compiled functions of scalars.

In: a compiled function of scalars, more of them for other dtypes. Out: a `numpy.ufunc`.

    f = graphc.function([x, y], x * T.exp(y))           x and y are dscalars
    u = f.as_ufunc()
    u([[1.0], [2.0]], [0.0, 1.0])                       array([[1., 2.718...], [2., 5.436...]])

The graph is compiled once more, over vectors, as `T.vectorize` would write it. NumPy's C functions make the ufunc and
add its loops (`PyUFunc_FromFuncAndData`, `PyUFunc_AddLoopFromSpec`, NumPy's C API, "UFunc API"), called by ctypes:
no compiler of C is needed. The inner loop is machine code (codegen/call/pointer_ir.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from graphc.codegen.call.bind import Slot
from graphc.codegen.call.layout import word_at
from graphc.control.batch import batched
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.functions.function import function as compile_function
from graphc.functions.pointer import C_TYPES, Pointer, capsule_of
from graphc.ir.node import Node, describe
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS
from graphc.tensor import tensor, zeros_like

MAKE, ADD_LOOP, ADD_PROMOTER = 1, 43, 44
"""The slots of NumPy's table of functions of ufuncs."""
NO_FLOATING_POINT_ERRORS, IS_REORDERABLE = 1 << 1, 1 << 3
INITIAL, STRIDED_LOOP = 4, 5
"""The slots of a loop: the value that a reduction begins with, the loop."""
NO_IDENTITY = -1
IDENTITIES = {None: NO_IDENTITY, 0: 0, 1: 1}


class _Spec(ctypes.Structure):
    """NumPy's PyArrayMethod_Spec."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("casting", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("dtypes", ctypes.POINTER(ctypes.c_void_p)),
        ("slots", ctypes.POINTER(Slot)),
    )


@cache
def _api(slot: int, returns: Any, *params: Any) -> Any:
    """A function of NumPy's table, which holds the GIL."""
    get_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    get_pointer.argtypes, get_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    table = get_pointer(_multiarray_umath._UFUNC_API, None)
    return ctypes.PYFUNCTYPE(returns, *params)(word_at(table + 8 * slot))


def as_ufunc(function: Function, others: Sequence[Function], identity: int | None) -> np.ufunc:
    """The ufunc of functions of scalars: `Function.as_ufunc`."""
    functions = [function, *others]
    counts = {(len(each.kernel.inputs), len(each.kernel.outputs)) for each in functions}
    if len(counts) > 1:
        raise ArgumentError(f"{function.name}: the loops of a ufunc have the same numbers of inputs and results")
    if identity not in IDENTITIES:
        raise ArgumentError(f"{function.name}: identity is 0, 1 or None, not {identity!r}")
    ((nin, nout),) = counts
    loops = [loop_of(each) for each in functions]
    types = [tuple(node.type.dtype for node in (*each.kernel.inputs, *each.kernel.outputs)) for each in functions]
    if len({dtypes[:nin] for dtypes in types}) < len(types):
        raise ArgumentError(f"{function.name}: two loops of a ufunc take the same dtypes")
    name = ctypes.create_string_buffer(function.name.encode())
    doc = ctypes.create_string_buffer((function.__doc__ or "").encode())
    params = *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
    make = _api(MAKE, ctypes.py_object, *params)
    addresses = ctypes.addressof(name), ctypes.addressof(doc)
    made: np.ufunc = make(None, None, None, 0, nin, nout, IDENTITIES[identity], *addresses, 0)
    flags = NO_FLOATING_POINT_ERRORS | IS_REORDERABLE * (identity is not None)
    for loop, dtypes in zip(loops, types, strict=True):
        classes = (ctypes.c_void_p * (nin + nout))(*(id(type(np.dtype(dtype))) for dtype in dtypes))
        begin = BEGIN(InitialValue(identity, dtypes[-1]))
        first = [] if identity is None else [Slot(INITIAL, ctypes.cast(begin, ctypes.c_void_p).value)]
        slots = (Slot * 3)(Slot(STRIDED_LOOP, loop.address), *first)
        spec = _Spec(name.value, nin, nout, 0, flags, classes, slots)
        PROCESS.kept.append((loop, classes, slots, spec, begin))
        _api(ADD_LOOP, ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(made, ctypes.addressof(spec))
    promoter = PROMOTER(Promoter(types, nin))
    held = capsule_of(ctypes.cast(promoter, ctypes.c_void_p).value, b"numpy._ufunc_promoter", promoter)
    add = _api(ADD_PROMOTER, ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.py_object)
    add(made, (*[np.dtype] * nin, *[None] * nout), held)
    PROCESS.kept.append((name, doc))
    return made


def loop_of(function: Function) -> Pointer:
    """The inner loop of a function of scalars: its graph over vectors of one length."""
    given = function.kernel.inputs
    for node in given:
        if node.ndim:
            raise ArgumentError(
                f"{function.name}: the loop of a ufunc is a function of scalars; {describe(node)} is {node.type}"
            )
    if not given or any(node.ndim for node in function.kernel.outputs):
        raise ArgumentError(f"{function.name}: the loop of a ufunc is a function of scalars that gives scalars")
    if function.kernel.shared or function.kernel.updates:
        raise ArgumentError(f"{function.name}: a function of shared variables has no address in C")
    vectors = [tensor(node.type.dtype, (None,), name=node.name) for node in given]
    values = {node: (vector, True) for node, vector in zip(given, vectors, strict=True)}
    results: list[Node] = [
        value if has else zeros_like(vectors[0], node.type.dtype) + value
        for node, (value, has) in zip(
            function.kernel.outputs, batched(function.kernel.outputs, values, vectors[0].type.shape[0]), strict=True
        )
    ]
    loop = compile_function(vectors, results, name=function.name, threads=1)
    inputs = [f"const {C_TYPES[node.type.dtype]} x{k}[n]" for k, node in enumerate(given)]
    outputs = [f"{C_TYPES[node.type.dtype]} r{k}[n]" for k, node in enumerate(results)]
    return Pointer(f"int64_t f(int64_t n, {', '.join([*inputs, *outputs])})", loop, loop=True)


PROMOTER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, *[ctypes.POINTER(ctypes.c_void_p)] * 3)
BEGIN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_byte, ctypes.c_void_p)


class InitialValue:
    """The value that a reduction begins with: written to memory that NumPy gives."""

    def __init__(self, identity: int | None, dtype: str) -> None:
        self.value = np.array(identity or 0, dtype)

    def __call__(self, context: int, is_empty: int, memory: int) -> int:
        ctypes.memmove(memory, self.value.ctypes.data, self.value.nbytes)
        return 1


class Promoter:
    """The choice of a loop for other dtypes than those of a loop: the first one that all arguments are cast to safely.

    NumPy calls it once for each combination of dtypes. Numbers of Python's go with any loop of their kind."""

    def __init__(self, types: Sequence[tuple[str, ...]], nin: int) -> None:
        self.types, self.nin = types, nin

    def __call__(self, ufunc: Any, given: Any, signature: Any, chosen: Any) -> int:
        for dtypes in self.types:
            if all(_fits(given[k], dtypes[k]) for k in range(self.nin) if given[k]):
                for k, dtype in enumerate(dtypes):
                    kind = type(np.dtype(dtype))
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kind))
                    chosen[k] = id(kind)
                return 0
        return -1


def _fits(address: int, dtype: str) -> bool:
    """True if values of NumPy's class of dtypes at an address are cast safely."""
    kind = ctypes.cast(address, ctypes.py_object).value
    if kind.type in (int, float, complex):
        order = "?bBhHiIlLqQefdgFDG"
        least = {int: "?", float: "e", complex: "F"}[kind.type]
        return order.index(np.dtype(dtype).char) > order.index(least) - 1
    return bool(np.can_cast(kind.type, dtype, "safe"))


HOOKS.as_ufunc = as_ufunc
