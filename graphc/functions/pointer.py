"""C functions of compiled functions: C, numba, SciPy, Cython and samplers call them by address, in any threads.

In: a compiled function, the declaration of a C function, values of the inputs that it does not give. Out: a `Pointer`.

    f = graphc.function([x], T.exp(x))                  x = dscalar
    p = Pointer("double f(double x)", f)
    p.ctypes(1.0)                                       2.718281828459045
    scipy.integrate.quad(p.scipy, 0, 1)
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.call.pointer import CALM, POINTER, WORDS, Form, words_of
from graphc.codegen.gemm.api import find_all
from graphc.codegen.link.image import load, process_symbol
from graphc.codegen.pipeline.build import build_native, look_up
from graphc.codegen.pipeline.restore import Code
from graphc.codegen.pipeline.runtime import part_code
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.functions.declaration import C_TYPES, LETTERS, read
from graphc.functions.fitting import fit
from graphc.functions.native import Compiled
from graphc.ir.node import Array
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS

TYPES: Mapping[str, Any] = {
    "float64": ctypes.c_double, "float32": ctypes.c_float, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
    "int32": ctypes.c_int,
}  # fmt: skip


class Pointer:
    """A C function: its `address` is valid as long as this object lives, for calls from any threads at once.

    It returns what its declaration says:

    int, int64_t     a status: 0 where the results are written; 1 (a check of the graph failed); -1 (a size does not
                     fit, an address is null, or a result overlaps another array); -2 (no memory for temporaries)
    double, float    the result of the graph. Where it fails, a RuntimeError is set in Python, which the caller raises
    int, for SciPy's `ndimage`: 1 for success, else 0 with such an error

    "density" and "vector" are what samplers call: int64_t (uint64_t dim, double *x, double *grad, double *logp, void *)
    of a function that returns [float64 scalar, float64 vector as long as x], and int64_t (uint64_t dim, uint64_t
    length, double *x, double *out, void *). A density returns 3 or 4 as well where the gradient or the value is not
    finite. Parameters `void *` are ignored.
    """

    def __init__(self, signature: str, function: Function, others: Sequence[Any] = (), loop: bool = False) -> None:
        """Make the C function. signature: a declaration (declaration.py). others: the values of the last inputs, which
        are copied; the first are parameters. loop: make the inner loop of a ufunc that calls it (ufuncs.py). Raises
        ArgumentError where the declaration does not fit, and for a function that calls Python or has shared variables.
        """
        self.function, self.declaration = function, read(signature)
        if not isinstance(function, Compiled) or function.call.keys is not None:
            raise ArgumentError(f"{function.name}: only a function that is compiled as one kernel has an address in C")
        if function.kernel.shared:
            raise ArgumentError(f"{function.name}: a function of shared variables has no address in C")
        built, load_kernel = build_native(function.kernel, look_up(function.kernel, function.key))
        if built.calls:
            names = ", ".join(dict.fromkeys(node.op.name for node in built.calls))
            raise ArgumentError(f"{function.name}: Python computes {names}, so that it has no address in C")
        if function.kernel.mutable:
            raise ArgumentError(f"{function.name}: a function that writes its inputs has no address in C")
        self.kept = [*self.copies(others), *built.constants]
        form, groups, arena = fit(signature, self.declaration, function, self.kept, loop)
        self.words = np.zeros(len(words_of({}, groups)), np.int64)
        loaded = load(part_code(form.name), {WORDS: self.words.ctypes.data}, [POINTER, CALM])
        self.owner, self.address = loaded.owner, loaded.addresses[POINTER]
        asked = {"PyErr_CheckSignals": loaded.addresses[CALM]} if built.signature.has_safepoints else {}
        self.library = load_kernel(asked)
        assert isinstance(self.library.code, Code)
        find_all(self.library.code.metadata["products"])
        known = {"arena": arena, "sizes": self.library.sizes, "kernel": self.library.kernel}
        self.words[:] = words_of({**known, **self.error_words(form)}, groups)

    def copies(self, others: Sequence[Any]) -> list[Array]:
        """Copy values to C-contiguous arrays of the inputs' dtypes, which this object owns."""
        inputs = self.function.kernel.inputs
        if len(others) >= max(len(inputs), 1):
            raise ArgumentError(
                f"{self.function.name}: {len(others)} values are given for {len(inputs) - 1} inputs behind the first"
            )
        bound = inputs[len(inputs) - len(others) :]
        return [
            np.array(value, node.type.dtype, order="C", ndmin=node.ndim)
            for value, node in zip(others, bound, strict=True)
        ]

    def error_words(self, form: Form) -> dict[str, int]:
        """The words that a form needs to set an exception; none for one that returns codes."""
        if form.answer == "code":
            return {}
        name = self.function.name
        self.texts = {
            "refused": f"{name}: a size does not fit, or arrays overlap, in a call of its C function",
            "no memory": f"{name}: no memory for temporaries in a call of its C function",
            "failed": f"{name}: a check failed in a call of its C function; call it from Python for the message",
        }
        self.held = {key: ctypes.create_string_buffer(text.encode()) for key, text in self.texts.items()}
        names = {"ensure": "PyGILState_Ensure", "raise": "PyErr_SetString", "release": "PyGILState_Release"}
        functions = {key: process_symbol(symbol) for key, symbol in names.items()}
        return {**functions, "exception": id(RuntimeError), **{k: ctypes.addressof(v) for k, v in self.held.items()}}

    @property
    def signature(self) -> str:
        """The types of the C function, as capsules name them: "double (int, double *)"."""
        return str(self.declaration)

    @cached_property
    def ctypes(self) -> Any:
        """The C function for ctypes: a call releases the GIL, and the object keeps this one alive."""
        params = [ctypes.c_void_p if param.is_pointer else TYPES[param.dtype] for param in self.declaration.params]
        made: Any = ctypes.CFUNCTYPE(TYPES[self.declaration.dtype], *params)(self.address)
        made.pointer = self
        return made

    @cached_property
    def capsule(self) -> Any:
        """A PyCapsule of the address with the signature as its name, as in the `__pyx_capi__` of Cython's modules. The
        code is kept for the rest of the process then: nobody tells when such an address is forgotten."""
        return capsule_of(self.address, self.signature.encode(), self)

    @property
    def scipy(self) -> Any:
        """A `scipy.LowLevelCallable` for the functions of SciPy that take one of this signature."""
        return import_module("scipy").LowLevelCallable(self.capsule)


def capsule_of(address: int | None, name: bytes, owner: object) -> Any:
    """A PyCapsule of an address, whose owner is kept for the rest of the process."""
    held = ctypes.create_string_buffer(name)
    PROCESS.kept.append((owner, held))
    new = ctypes.pythonapi["PyCapsule_New"]
    new.argtypes, new.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p), ctypes.py_object
    return new(address, ctypes.addressof(held), None)


def pointer(function: Function, signature: str | None, values: Sequence[Any]) -> Pointer:
    """The C function of a compiled function: `Function.pointer`."""
    return Pointer(plain_signature(function) if signature is None else signature, function, values)


def plain_signature(function: Function, by_value: bool = False) -> str:
    """The declaration that fits a function: the sizes that are known at the call only, the inputs, the results.

    int64_t f(int64_t n0, const double x0[n0], double r0[n0])      of [x: dvector] -> x * 2

    by_value: scalar inputs are passed by value where C has their type, and all sizes are parameters, so that a wrong
    one is a status.
    """
    if not isinstance(function, Compiled):
        raise ArgumentError(f"{function.name}: only a function that is compiled as one kernel has an address in C")
    outputs = [(node.type.dtype, array.shape) for node, array in zip(
        function.kernel.outputs, function.built.signature.outputs, strict=True)]  # fmt: skip
    sizes: list[str] = []
    params: list[str] = []

    def declare(dtype: str, shape: Sequence[Any], name: str, prefix: str) -> None:
        words = []
        for size in shape:
            is_number = isinstance(size, int) and not by_value
            if not is_number:
                sizes.append(f"int64_t n{len(sizes)}")
            words.append(f"[{size}]" if is_number else f"[n{len(sizes) - 1}]")
        is_value = by_value and prefix and not shape and dtype in LETTERS
        star = "" if words or is_value else "*"
        params.append(f"{prefix * (not is_value)}{C_TYPES[dtype]} {star}{name}{''.join(words)}")

    for number, node in enumerate(function.kernel.inputs):
        declare(node.type.dtype, node.type.shape, f"x{number}", "const ")
    for number, (dtype, shape) in enumerate(outputs):
        declare(dtype, shape, f"r{number}", "")
    return f"int64_t f({', '.join([*sizes, *params])})"


HOOKS.pointer = pointer
