"""C functions of compiled functions of a vector: samplers call them by address from threads of their own.

In: a compiled function whose first input is a vector of float64, and values of the others. Out: a `Pointer`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from graphc.codegen.call.bind import measure_sizes
from graphc.codegen.call.pointer import CALM, FIELDS, POINTER, WORDS, Kind, form_of, words_of
from graphc.codegen.call.signature import Signature, need_of
from graphc.codegen.gemm.api import find_all
from graphc.codegen.link.image import load
from graphc.codegen.pipeline.build import Code, build_native, look_up
from graphc.codegen.pipeline.runtime import part_code
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.ir.node import Array

TYPES: dict[Kind, tuple[Any, ...]] = {
    "density": (ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4),
    "vector": (ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3),
}


class Pointer:
    """A C function: its `address` is valid as long as this object lives, for calls from any threads at once.

    density   int64 (uint64 dim, double *x, double *grad, double *logp, void *user_data)
    vector    int64 (uint64 dim, uint64 length, double *x, double *out, void *user_data)

    Returns 0 where the results are written. Samplers reject the point at 1 (a check failed), 3 (the gradient is not
    finite) and 4 (the value is not finite). -1: `dim` or `length` is wrong, an address is null, or results overlap;
    -2: no memory. `user_data` is ignored.
    """

    def __init__(self, kind: Kind, function: Function, others: Sequence[Any] = ()) -> None:
        """Make the C function. kind: "density", for a function that returns [float64 scalar, float64 vector as long as
        x]; "vector", for one that returns a float64 vector. others: the values of the inputs after x; they are copied.
        Raises ArgumentError for another function, and for one that calls Python."""
        self.kind, self.function = kind, function
        built = self.build(function)
        signature = built.signature
        self.kept = [np.zeros(signature.inputs[0].shape), *self.copies(others)]
        operands = [*self.kept, *built.constants]
        slots = measure_sizes(self.library, signature, operands)
        need = None if slots is None else need_of(signature, slots)
        if slots is None or need is None:
            function(*self.kept)  # raises the error that explains it
            raise ArgumentError(f"{function.name}: its sizes do not agree for these values")
        functions = self.library.sizes, self.library.kernel
        self.words[:] = words_of(signature, functions, operands, need, slots)
        self.constants = built.constants

    def build(self, function: Function) -> Any:
        """Load the code of the graph, and the C function of its form, which calls it."""
        if not isinstance(function, Compiled) or function.call.keys is not None:
            raise ArgumentError(f"{function.name}: only a function that is compiled as one kernel has an address in C")
        if function.kernel.shared:
            raise ArgumentError(f"{function.name}: a function of shared variables has no address in C")
        built, load_kernel = build_native(function.kernel, look_up(function.kernel, function.key))
        if built.calls:
            names = ", ".join(dict.fromkeys(node.op.name for node in built.calls))
            raise ArgumentError(f"{function.name}: Python computes {names}, so that it has no address in C")
        self.check_results(function, built.signature)
        form = form_of(self.kind, built.signature)
        count = form.operands + form.sizes + form.extents + form.temps
        self.words = np.zeros(count + len(FIELDS), np.int64)
        loaded = load(part_code(form.name), {WORDS: self.words.ctypes.data}, [POINTER, CALM])
        self.owner, self.address = loaded.owner, loaded.addresses[POINTER]
        asked = {"PyErr_CheckSignals": loaded.addresses[CALM]} if built.signature.has_safepoints else {}
        self.library = load_kernel(asked)
        assert isinstance(self.library.code, Code)
        find_all(self.library.code.metadata["products"])
        return built

    def check_results(self, function: Function, signature: Signature) -> None:
        x = function.kernel.inputs[0]
        wanted = [("float64", 0), ("float64", 1)] if self.kind == "density" else [("float64", 1)]
        found = [(result.dtype, len(result.shape)) for result in signature.outputs]
        length = x.type.shape[0] if x.ndim == 1 and x.type.dtype == "float64" else None
        if not isinstance(length, int) or found != wanted:
            made = ", ".join(str(node.type) for node in function.kernel.outputs)
            raise ArgumentError(
                f"{function.name}: it takes {x.type} and gives {made}; a {self.kind} is wanted, of a vector of float64 "
                "whose length is known"
            )

    def copies(self, others: Sequence[Any]) -> list[Array]:
        """Copy values to C-contiguous arrays of the inputs' dtypes, which this object owns."""
        inputs = self.function.kernel.inputs[1:]
        if len(others) != len(inputs):
            raise ArgumentError(f"{self.function.name}: {len(others)} values are given for {len(inputs)} inputs")
        return [
            np.array(value, node.type.dtype, order="C", ndmin=node.ndim)
            for value, node in zip(others, inputs, strict=True)
        ]

    @cached_property
    def ctypes(self) -> Any:
        """The C function for ctypes: a call releases the GIL, and the object keeps this one alive."""
        made: Any = ctypes.CFUNCTYPE(*TYPES[self.kind])(self.address)
        made.pointer = self
        return made
