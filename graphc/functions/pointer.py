"""C functions of compiled functions: C, numba, SciPy, Cython and samplers call them by address, in any threads.

In: a compiled function, the declaration of a C function, values of the inputs that it does not give. Out: a `Pointer`.

    f = graphc.function([x], T.exp(x))                  x = dscalar
    p = Pointer("double f(double x)", f)
    p.ctypes(1.0)                                       2.718281828459045
    scipy.integrate.quad(p.scipy, 0, 1)

A declaration is read from text: its sizes in brackets are numbers or the names of parameters, which are then given to
the graph and checked. Signatures without names that SciPy's callers use are known: `KNOWN`. `Fitting` matches array
parameters with the inputs in their order, then with the results; a vector may also be several scalar inputs in turn:

    int64_t f(int64_t n, const double x[n], double *out)      of [x: dvector] -> sum
    x is parameter 1, whose size is parameter 0; the result is parameter 2
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate, chain
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.bind import measure_sizes
from graphc.codegen.call.c_interface import BOUND, CALM, GROUPS, PARAM, POINTER, VALUE, WORDS, Form, words_of
from graphc.codegen.call.signature import ALIGNMENT, held_by_temps, need_of
from graphc.codegen.gemm import find_all
from graphc.codegen.link.image import load, process_symbol
from graphc.codegen.pipeline.build import build_native, look_up
from graphc.codegen.pipeline.restore import Code
from graphc.codegen.pipeline.runtime import part_code
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.ir.node import Array, Node, describe
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS
from graphc.startup.record import record

# --- C declarations ---------------------------------------------------------------------------------------------------


DTYPES = {
    "double": "float64", "float": "float32",
    "int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int": "int32", "int64_t": "int64", "long": "int64",
    "npy_intp": "int64", "intptr_t": "int64", "ssize_t": "int64", "Py_ssize_t": "int64", "ptrdiff_t": "int64",
    "uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64", "size_t": "uint64",
    "unsigned long": "uint64", "bool": "bool", "_Bool": "bool", "char": "int8", "void": "",
}  # fmt: skip
"""The dtype of each type of C's."""
C_TYPES = {dtype: name for name, dtype in reversed(DTYPES.items()) if name not in ("int", "char")}
"""The type of C's of each dtype."""
LETTERS = {"float64": "d", "float32": "f", "int64": "l", "uint64": "l", "int32": "i"}
"""The letter (codegen/call/pointer_ir.py) of each dtype that is passed by value."""

KNOWN = {
    "double (double)": "double f(double x)",
    "double (double, void *)": "double f(double x, void *user_data)",
    "double (int, double *)": "double f(int n, double x[n])",
    "double (int, double *, void *)": "double f(int n, double x[n], void *user_data)",
    **{
        text.replace("npy_intp", word): full.replace("npy_intp", word)
        for word in ("npy_intp", "intptr_t")
        for text, full in (
            ("int (double *, npy_intp, double *, void *)", "int f(double x[n], npy_intp n, double *out, void *data)"),
            ("int (double *, npy_intp, double *, npy_intp, void *)",
             "int f(double x[n], npy_intp n, double out[m], npy_intp m, void *data)"),
            ("int (npy_intp *, double *, int, int, void *)",
             "int f(npy_intp x[m], double out[n], int m, int n, void *data)"),
        )
    },
    "density": "int64_t f(uint64_t n, double x[n], double grad[n], double *logp, void *user_data)",
    "vector": "int64_t f(uint64_t n, uint64_t m, double x[n], double out[m], void *user_data)",
}  # fmt: skip
"""The declarations of signatures without names, as SciPy's `quad`, `generic_filter`, `generic_filter1d` and
`geometric_transform` know them, and of the two kinds of functions that samplers call."""


@record()
class Param:
    """A parameter: the type of its elements, whether it is an address, its name ("" for none), its sizes."""

    type: str
    is_pointer: bool
    name: str
    dims: tuple[str, ...]

    @property
    def dtype(self) -> str:
        return DTYPES[self.type]

    @property
    def letter(self) -> str:
        """The letter of the parameter in a `Form`."""
        return "p" if self.is_pointer else LETTERS[self.dtype]

    @property
    def spelling(self) -> str:
        return f"{self.type} *" if self.is_pointer else self.type

    def __str__(self) -> str:
        star = "*" * (self.is_pointer and not self.dims)
        return f"{self.type} {star}{self.name}{''.join(f'[{size}]' for size in self.dims)}".rstrip()


@record()
class Declaration:
    """A C function: the type of its result and its parameters. succeeds: it returns 1 for success, else 0."""

    returns: str
    params: tuple[Param, ...]
    succeeds: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return DTYPES[self.returns]

    @property
    def sizes(self) -> dict[str, int]:
        """The parameters that are sizes of others, by name."""
        named = set(chain.from_iterable(param.dims for param in self.params))
        found = {param.name: number for number, param in enumerate(self.params) if not param.is_pointer}
        return {name: number for name, number in found.items() if name in named}

    @property
    def arrays(self) -> list[int]:
        """The parameters that are inputs or results."""
        sizes = set(self.sizes.values())
        return [k for k, param in enumerate(self.params) if k not in sizes and param.type != "void"]

    @property
    def types(self) -> str:
        """The signature without names, as capsules have it: double (int, double *)."""
        return f"{self.returns} ({', '.join(param.spelling for param in self.params)})"

    def __str__(self) -> str:
        """The declaration that `read` reads: double f(int n, double x[n])."""
        return f"{self.returns} f({', '.join(map(str, self.params))})"


def read(text: str) -> Declaration:
    """Read the declaration of a C function. Raises ArgumentError for other text, which names the parameter."""
    if not isinstance(text, str):
        raise ArgumentError(f"signature is the text of a C declaration, as 'double f(double x)', not {text!r}")
    known = KNOWN.get(" ".join(text.split()))
    full = known or text
    match = re.fullmatch(r"\s*(\w+)(?:\s+[A-Za-z_]\w*)?\s*\(([^()]*)\)\s*;?\s*", full)
    if match is None:
        raise ArgumentError(f"signature {text!r} is no declaration of a C function, as 'double f(double x)'")
    returns = match[1]
    if returns not in ("double", "float", "int", "int32_t", "int64_t", "long", "npy_intp"):
        raise ArgumentError(f"signature {text!r}: a function returns double, float, int or int64_t, not {returns}")
    body = match[2].strip()
    params = tuple(_param(part, text) for part in body.split(",")) if body not in ("", "void") else ()
    made = Declaration(returns, params, known is not None and returns == "int")
    numbers = [name for param in params for name in param.dims if not name.isdigit()]
    if missing := [name for name in numbers if name not in made.sizes]:
        raise ArgumentError(f"signature {text!r}: the size {missing[0]} is no parameter that is an integer")
    return made


def _param(part: str, text: str) -> Param:
    dims = tuple(re.findall(r"\[\s*(\w+)\s*\]", part))
    words = [word for word in re.findall(r"\w+|\S", part.partition("[")[0]) if word not in ("const", "restrict")]
    stars = words.count("*")
    end = words.index("*") if stars else max((k for k in (1, 2) if " ".join(words[:k]) in DTYPES), default=0)
    kind, name = " ".join(words[:end]), " ".join(words[end + stars :])
    is_pointer = bool(stars or dims)
    is_wrong = kind not in DTYPES or stars > 1 or not (name.isidentifier() or not name) or "[]" in part
    if is_wrong or (kind == "void" and not is_pointer):
        raise ArgumentError(f"signature {text!r}: the parameter {part.strip()!r} is of no type known here")
    if not is_pointer and DTYPES[kind] not in LETTERS:
        raise ArgumentError(f"signature {text!r}: {part.strip()!r} is passed by address: {kind} *")
    return Param(kind, is_pointer, name, dims)


# --- matching parameters with inputs and results ----------------------------------------------------------------------


Dim = tuple[int, int]
"""A size: (parameter, 0), or (-1, the number)."""


class Fitting:
    """The match of a declaration with a function: parameters are taken one after the other. bound: the values of the
    last inputs, then the constants. Raises ArgumentError, which names the parameter or the input."""

    def __init__(self, text: str, declaration: Declaration, function: Any, bound: Sequence[Array]) -> None:
        self.text, self.declaration, self.function, self.bound = text, declaration, function, bound
        self.signature = function.built.signature
        known = self.signature.inputs + self.signature.shared
        self.given: Sequence[Node] = function.kernel.inputs[: len(known) - len(bound)]
        self.checks: list[Dim] = []
        self.shown: list[tuple[int, int]] = []
        self.spans: list[tuple[int, list[Dim], int, bool]] = []
        self.sources: list[tuple[str, int, int]] = []
        self.dims: list[list[Dim]] = []
        if text in ("density", "vector"):
            self.check_kind()
        self.left = declaration.arrays
        self.match_inputs()
        self.measure()
        self.match_results()

    def wrong(self, message: str) -> ArgumentError:
        return ArgumentError(f"{self.function.name}: signature {self.text!r}: {message}")

    def check_kind(self) -> None:
        """Raise ArgumentError for a function that is not what samplers call."""
        x = self.function.kernel.inputs[0]
        wanted = [("float64", 0), ("float64", 1)] if self.text == "density" else [("float64", 1)]
        found = [(result.dtype, len(result.shape)) for result in self.signature.outputs]
        length = x.type.shape[0] if x.ndim == 1 and x.type.dtype == "float64" else None
        if not isinstance(length, int) or found != wanted:
            made = ", ".join(str(node.type) for node in self.function.kernel.outputs)
            raise ArgumentError(
                f"{self.function.name}: it takes {x.type} and gives {made}; a {self.text} is wanted, of a vector of "
                "float64 whose length is known"
            )
        if len(self.given) != 1:
            count = len(self.function.kernel.inputs)
            raise ArgumentError(
                f"{self.function.name}: {count - len(self.given)} values are given for {count - 1} inputs"
            )

    # Inputs. ---------------------------------------------------------------------------------------------------------

    def match_inputs(self) -> None:
        while len(self.sources) < len(self.given):
            node = self.given[len(self.sources)]
            if not self.left:
                raise self.wrong(f"there is no parameter for {describe(node)}")
            number = self.left.pop(0)
            param = self.declaration.params[number]
            if param.dtype != node.type.dtype:
                raise self.wrong(f"{param.spelling}{param.name} is given for {describe(node)}, which is {node.type}")
            if not param.is_pointer:
                if node.ndim:
                    raise self.wrong(f"{describe(node)} is {node.type}, which is passed by address: {param.type} *")
                self.sources.append((VALUE, number, 0))
                self.dims.append([])
            elif node.ndim == 0 and param.dims:
                self.spread(number)
            else:
                dims = self.sizes_of(number, node.type.shape, describe(node))
                self.sources.append((PARAM, number, 0))
                self.dims.append(dims)
                self.spans.append((number, dims, itemsize(param.dtype), False))

    def spread(self, number: int) -> None:
        """Take the scalar inputs that are left as the elements of a vector, all of them or as many as it says."""
        param = self.declaration.params[number]
        rest = self.given[len(self.sources) :]
        count = int(param.dims[0]) if param.dims[0].isdigit() else len(rest)
        taken = rest[:count]
        if len(param.dims) != 1 or len(taken) != count:
            raise self.wrong(f"{param.name or param.spelling} has {count} elements; {len(rest)} inputs are left")
        for node in taken:
            if node.ndim or node.type.dtype != param.dtype:
                raise self.wrong(f"{describe(node)} is {node.type}, no {param.dtype} that a vector may hold")
        self.sources += [(PARAM, number, k * itemsize(param.dtype)) for k in range(count)]
        self.dims += [[] for _ in taken]
        dim = self.dim(number, param.dims[0], count, param.name)
        self.spans.append((number, [dim], itemsize(param.dtype), False))

    def sizes_of(self, number: int, shape: Sequence[Any], name: str) -> list[Dim]:
        """The sizes of the array that a parameter gives, for the shape that is known of it."""
        param = self.declaration.params[number]
        if param.dims and len(param.dims) != len(shape):
            raise self.wrong(f"{param.name} has {len(param.dims)} sizes; {name} has {len(shape)} axes")
        if param.dims:
            return [self.dim(number, word, size, name) for word, size in zip(param.dims, shape, strict=True)]
        if not all(isinstance(size, int) for size in shape):
            raise self.wrong(
                f"the sizes of {name} are known at the call only: write them as {param.type} "
                f"{param.name or 'x'}{'[n]' * len(shape)}, where n is a parameter"
            )
        return [(-1, size) for size in shape]

    def dim(self, number: int, word: str, size: Any, name: str) -> Dim:
        """A size that is declared, where `size` is the number that is known, or anything else."""
        is_known = isinstance(size, int)
        if not word.isdigit():
            at = self.declaration.sizes[word]
            if is_known:
                self.checks.append((at, size))
                return -1, size
            return at, 0
        if is_known and int(word) != size:
            raise self.wrong(f"{self.declaration.params[number].name} has size {word}; {name} has {size}")
        return -1, int(word)

    # Sizes. ----------------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Find the source of each dim that the functions take, and all sizes where none of them is a parameter."""
        first = len(self.given)
        self.sizes: list[Dim] = [
            self.dims[index][axis] if index < first else (-1, self.bound[index - first].shape[axis])
            for index, axis in self.signature.sizes
        ]
        may_change = bool(self.signature.reads) and self.text not in ("density", "vector")
        self.fixed = all(param < 0 for param, _ in self.sizes) and not may_change
        self.slots: list[int] = []
        if self.fixed:
            shapes = [[size for _, size in dims] for dims in self.dims]
            made = [np.zeros(shape, node.type.dtype) for shape, node in zip(shapes, self.given, strict=True)]
            slots = measure_sizes(self.function.library, self.signature, [*made, *self.bound])
            need = None if slots is None else need_of(self.signature, slots)
            if slots is None or need is None:
                count = len(self.function.kernel.inputs) - first
                self.function(*made, *self.bound[:count])  # raises the error that explains it
                raise ArgumentError(f"{self.function.name}: its sizes do not agree for these values")
            self.slots, self.need = slots, need

    # Results. --------------------------------------------------------------------------------------------------------

    def match_results(self) -> None:
        outputs = self.signature.outputs
        is_value = self.declaration.returns in ("double", "float")
        if is_value and (len(outputs) != 1 or outputs[0].shape or outputs[0].dtype != self.declaration.dtype):
            made = ", ".join(str(node.type) for node in self.function.kernel.outputs)
            raise self.wrong(f"it returns one {self.declaration.returns}; the function gives {made}")
        if is_value:
            self.results = [-1]
        else:
            if len(self.left) != len(outputs):
                raise self.wrong(f"{len(self.left)} parameters are left for {len(outputs)} results")
            self.results = self.left[::-1] if self.text == "density" else self.left
            self.left = []
        if self.left:
            raise self.wrong(f"the parameter {self.declaration.params[self.left[0]].name!r} belongs to no input")
        slot = 0
        for place, (number, output) in enumerate(zip(self.results, outputs, strict=True)):
            if number >= 0:
                self.match_result(number, place, slot)
            slot += len(output.shape)

    def match_result(self, number: int, place: int, slot: int) -> None:
        param, output = self.declaration.params[number], self.signature.outputs[place]
        name = f"result {place}"
        if not param.is_pointer or param.dtype != output.dtype:
            raise self.wrong(f"{param.spelling} {param.name} is given for {name}, which is {output.dtype}")
        shape: list[Any] = self.slots[slot : slot + len(output.shape)] if self.fixed else list(output.shape)
        if not param.dims and not shape:
            dims: list[Dim] = []
        elif param.dims == ("1",) and not shape:
            dims = [(-1, 1)]
        else:
            dims = self.sizes_of(number, shape, name)
        for axis, ((dim, _), size) in enumerate(zip(dims, shape, strict=False)):
            if size is None and dim < 0:
                raise self.wrong(f"size {axis} of {name} is known at the call only: name a parameter in its place")
            if size is None:
                self.shown.append((slot + axis, dim))
        self.spans.append((number, dims, itemsize(output.dtype), True))

    # The form. -------------------------------------------------------------------------------------------------------

    def form(self, loop: bool) -> tuple[Form, dict[str, list[int]], int]:
        """Return the form, its words by group, and the bytes of the arena."""
        declaration, signature = self.declaration, self.signature
        arena, starts = 0, []
        if self.fixed:
            padded = [-(-length // ALIGNMENT) * ALIGNMENT for length in self.need.temps]
            *starts, end = accumulate(padded, initial=0)
            arena = end + ALIGNMENT
        groups: dict[str, list[int]] = {
            "operands": [array.ctypes.data for array in self.bound],
            "sizes": [size for _, size in self.sizes],
            "slots": self.slots,
            "starts": starts,
            "checks": [size for _, size in self.checks],
            "spans": [item * prod(size for param, size in dims if param < 0) for _, dims, item, _ in self.spans],
        }
        answer = "value" if self.results == [-1] else "success" if declaration.succeeds else "code"
        items = [itemsize(each.dtype) for each in (*signature.inputs, *signature.outputs)]
        form = Form(
            "".join(param.letter for param in declaration.params),
            LETTERS[declaration.dtype],
            "loop" if loop else answer,
            (*self.sources, *[(BOUND, 0, 0)] * len(self.bound)),
            tuple(self.results),
            tuple(param for param, _ in self.sizes),
            tuple(param for param, _ in self.checks),
            tuple(self.shown),
            tuple((n, tuple(param for param, _ in dims if param >= 0), last) for n, dims, _, last in self.spans),
            self.fixed,
            signature.extents,
            len(signature.temps),
            () if self.fixed else held_by_temps(signature),
            tuple(len(groups[name]) for name in GROUPS),
            tuple(items) if loop else (),
            self.text == "density",
        )
        return form, groups, arena


# --- pointers ---------------------------------------------------------------------------------------------------------


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
        function = function.finished()
        self.function, self.declaration = function, read(signature)
        if not isinstance(function, Compiled) or function.call.keys is not None:
            raise ArgumentError(f"{function.name}: only a function that is compiled as one kernel has an address in C")
        if function.kernel.shared:
            raise ArgumentError(
                f"{function.name}: a function of shared variables has no address in C: make them inputs, and give "
                "their values with `values=`"
            )
        built, load_kernel = build_native(function.kernel, look_up(function.kernel, function.key))
        if built.calls:
            names = ", ".join(dict.fromkeys(node.op.name for node in built.calls))
            raise ArgumentError(f"{function.name}: Python computes {names}, so that it has no address in C")
        if function.kernel.mutable:
            raise ArgumentError(f"{function.name}: a function that writes its inputs has no address in C")
        self.kept = [*self.copies(others), *built.constants]
        form, groups, arena = Fitting(signature, self.declaration, function, self.kept).form(loop)
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
        return self.declaration.types

    def __repr__(self) -> str:
        return f"<C function {self.declaration} of {self.function.name}>"

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
    function = function.finished()
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
