"""Functions of a vector as C functions: addresses that samplers call from threads of their own.

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
from graphc.codegen.gemm.lazy import find_all
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

    0 is returned where the results are there; a number above 0 where a check failed (1), the gradient (3) or the value
    (4) is not finite: samplers reject such a point; below 0 where `dim` or `length` is another, an address is null,
    results overlap (-1), or there is no memory (-2). Nothing is made of `user_data`.
    """

    def __init__(self, kind: Kind, function: Function, others: Sequence[Any] = ()) -> None:
        """kind: density, where `function` gives a float64 and a vector as long as x, in a list; vector, where it gives
        a vector of float64. others: the values of the inputs behind x; they are copied. Raises ArgumentError for what
        is no such function, or calls back into Python."""
        self.kind, self.function = kind, function
        built = self.build(function)
        signature = built.signature
        self.kept = [np.zeros(signature.inputs[0].shape), *self.copies(others)]
        operands = [*self.kept, *built.constants]
        slots = measure_sizes(self.library, signature, operands)
        need = None if slots is None else need_of(signature, slots)
        if slots is None or need is None:
            function(*self.kept)  # which says what is wrong
            raise ArgumentError(f"{function.name}: its sizes do not agree for these values")
        functions = self.library.sizes, self.library.kernel
        self.words[:] = words_of(signature, functions, operands, need, slots)
        self.constants = built.constants

    def build(self, function: Function) -> Any:
        """Load the code of the graph and that of the form, which know of each other."""
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
        asked = {"PyErr_CheckSignals": loaded.addresses[CALM]} if built.signature.polls else {}
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
        """Arrays of the function's own, in the dtypes and the order in memory of its inputs."""
        inputs = self.function.kernel.inputs[1:]
        if len(others) != len(inputs):
            raise ArgumentError(f"{self.function.name}: {len(others)} values are given for {len(inputs)} inputs")
        return [
            np.array(value, node.type.dtype, order="C", ndmin=node.ndim)
            for value, node in zip(others, inputs, strict=True)
        ]

    @cached_property
    def ctypes(self) -> Any:
        """It as a function of Python's: it lets go of the GIL, and keeps this object."""
        made: Any = ctypes.CFUNCTYPE(*TYPES[self.kind])(self.address)
        made.pointer = self
        return made
