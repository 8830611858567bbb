"""The C interface of functions: parameters, structs, codes of errors; the header of an exported one.

In: a `CFunction`. Out: the parameters of its C functions, in order; the text of the header.

    model_workspace_size(inputs, state, model_sizes *)      the bytes of the workspace, and the sizes of the results
    model(inputs, state, results, workspace, bytes)         0, or the code of an error
    model_error_text(code)                                  a sentence

An input without axes goes by value; another by its address, then its sizes, but for those that its type knows. So do
results. Arrays are C-contiguous, but for those that were asked to be `strided`: behind their sizes stand their strides,
in bytes. Shared variables stand in a struct, whose first values are `model_initial`.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.signature import AnyArray, Array, Signature
from graphc.errors import GraphcError
from graphc.startup.record import record, replace

Values = tuple[np.ndarray[Any, np.dtype[Any]], ...]
C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"}
"""The types of C that are not named after the dtype."""
RESERVED = frozenset(
    """alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const continue decltype
    default delete do double else enum errno explicit export extern false float for friend goto if inline int int64_t
    kernel long main mutable namespace new not null nullptr operator or private protected public register requires
    restrict return short signed size_t sizeof sizes static struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor""".split()
)
"""Names that mean something in C or C++, and those of the functions within the object."""
CODES = {
    "OK": "no error",
    "NULL": "an address is null",
    "SIZE": "a size is negative",
    "OVERLAP": "a result, an updated variable or the workspace overlaps another array",
    "RESULT_SIZE": "a result has other sizes than those given for its array",
    "WORKSPACE": "the workspace is smaller than workspace_size says",
    "TOO_LARGE": "a result or the workspace would be absurdly large",
    "STATE_SIZE": "the new value of a shared variable has other sizes than its array",
    "STATE_CONSTANT": "an updated shared variable stands in the constants of the object: point it to a copy",
    "REFUSED": "a check of values failed, as of an index outside of an array or of a matrix without a factorisation",
    "STRIDES": "elements of a result may share memory, or strides are absurdly long",
}
"""The codes of errors, from 0 on, and their texts. Above FIRST_CHECK stand those of checks of sizes."""
FIRST_CHECK = 100


def code_of(name: str) -> int:
    """The number of an error."""
    return [*CODES].index(name)


def c_type(dtype: str) -> str:
    return C_TYPES.get(dtype, f"{dtype}_t")


def is_identifier(name: str) -> bool:
    """True if a name can be that of a C function and of its files."""
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)) and name not in RESERVED and not name.startswith("gc_")


Role = Literal[
    "value", "data", "size", "stride", "state", "result", "result size", "result stride", "workspace", "bytes"
]


@record()
class Parameter:
    """A parameter: its name and type in C; the number of the input or output that it belongs to, and the axis."""

    name: str
    kind: str
    role: Role
    number: int = 0
    axis: int = 0

    def declared(self) -> str:
        return f"{self.kind}{self.name}" if self.kind.endswith("*") else f"{self.kind} {self.name}"


@record()
class Field:
    """A field of the struct of shared variables. offset: in bytes."""

    name: str
    kind: str
    role: Literal["value", "data", "size"]
    offset: int
    number: int
    axis: int = 0


@record(eq=False)
class CFunction:
    """A function for C. name: the prefix of its symbols. signature: of its kernel, whose last shared variables are the
    constants. initial: the first values of the others. checks: the sentence of each check of sizes, in order. sizes:
    those of an example's inputs, by input and axis. strided: the inputs ("data", number) and outputs ("result", number)
    that have strides. room: the memory that products and convolutions take of the workspace, in bytes for each of all
    arrays."""

    name: str
    signature: Signature
    initial: Values
    constants: Values
    checks: tuple[str, ...]
    sizes: Mapping[tuple[int, int], int]
    strided: frozenset[tuple[str, int]] = frozenset()
    room: int = 0

    @property
    def shared(self) -> tuple[Array, ...]:
        return self.signature.shared[: len(self.initial)]

    @property
    def updated(self) -> frozenset[int]:
        """The shared variables that a call changes."""
        replaced = {output.replaces for output in self.signature.outputs}
        return frozenset(n for n, array in enumerate(self.shared) if array.written or n in replaced)

    @property
    def results(self) -> tuple[tuple[int, Array], ...]:
        """The outputs that are returned, with their numbers among all."""
        return tuple((n, each) for n, each in enumerate(self.signature.outputs) if each.replaces is None)

    def inputs(self) -> list[Parameter]:
        """The parameters that both functions have."""
        taken, parameters = _taken(self), []
        for number, array in enumerate(self.signature.inputs):
            name = _fresh(array.name, taken)
            if not array.shape:
                parameters.append(Parameter(name, c_type(array.dtype), "value", number))
                continue
            parameters.append(Parameter(name, f"const {c_type(array.dtype)} *", "data", number))
            parameters += self._numbers(parameters[-1], array, taken)
        if self.initial:
            parameters.append(Parameter("state", f"{self.name}_state *", "state"))
        return parameters

    def outputs(self) -> list[Parameter]:
        """The parameters for results and the workspace, behind those of the inputs."""
        taken, parameters = _taken(self) | {each.name for each in self.inputs()}, []
        for number, array in self.results:
            name = _fresh(array.name, taken)
            parameters.append(Parameter(name, f"{c_type(array.dtype)} *", "result", number))
            parameters += self._numbers(parameters[-1], array, taken)
        workspace = Parameter("workspace", "void *", "workspace"), Parameter("workspace_size", "size_t", "bytes")
        return [*parameters, *workspace]

    def _numbers(self, of: Parameter, array: Array, taken: set[str]) -> list[Parameter]:
        """The parameters behind an array's address: its sizes, then the strides where it has some."""
        size, stride = SIZE_OF[of.role], STRIDE_OF[of.role]
        is_strided = (of.role, of.number) in self.strided
        asked = [*((f"{of.name}_{axis}", size, axis) for axis in array.unknown)]
        asked += [(f"{of.name}_stride_{axis}", stride, axis) for axis in range(len(array.shape) * is_strided)]
        return [Parameter(_fresh(name, taken), "int64_t", role, of.number, axis) for name, role, axis in asked]

    def with_names(self, names: Sequence[str]) -> CFunction:
        """The function whose results have these names; "" keeps one, and no names keep all."""
        if len(names) != len(self.results):
            return self
        outputs = [*self.signature.outputs]
        for (number, array), name in zip(self.results, names, strict=True):
            outputs[number] = replace(array, name=name or array.name)
        return replace(self, signature=replace(self.signature, outputs=tuple(outputs)))

    def with_strides(self, asked: Collection[str] | bool) -> CFunction:
        """The function whose arrays of these names have strides; True for all arrays. Raises GraphcError for a name
        that no array has, and for an array whose elements are sizes."""
        shape = {("data", n): each.shape for n, each in enumerate(self.signature.inputs)}
        shape |= {("result", n): each.shape for n, each in self.results}
        arrays = {each.name: (each.role, each.number) for each in (*self.inputs(), *self.outputs())}
        arrays = {name: key for name, key in arrays.items() if shape.get(key)}
        names = ([*arrays] if asked else []) if isinstance(asked, bool) else [*asked]
        if strange := [name for name in names if name not in arrays]:
            raise GraphcError(f"strided names {', '.join(strange)}, but the arrays are {', '.join(arrays) or 'none'}")
        read = [name for name in names if arrays[name][0] == "data" and arrays[name][1] in self.signature.reads]
        if read and asked is not True:
            raise GraphcError(f"{', '.join(read)} cannot have strides: sizes of results are among its elements")
        return replace(self, strided=frozenset(arrays[name] for name in names if name not in read))

    def fields(self) -> list[Field]:
        """The fields of the struct of shared variables, as C lays them out."""
        fields: list[Field] = []
        taken: set[str] = set()
        offset = 0
        for number, array in enumerate(self.shared):
            name, c = _fresh(array.name, taken), c_type(array.dtype)
            if not array.shape:
                offset = -(-offset // itemsize(array.dtype)) * itemsize(array.dtype)
                fields.append(Field(name, c, "value", offset, number))
                offset += itemsize(array.dtype)
                continue
            offset = -(-offset // 8) * 8
            fields.append(Field(name, f"{'' if number in self.updated else 'const '}{c} *", "data", offset, number))
            for axis in array.unknown:
                offset += 8
                fields.append(Field(_fresh(f"{name}_{axis}", taken), "int64_t", "size", offset, number, axis))
            offset += 8
        return fields

    def texts(self) -> dict[int, str]:
        """The sentence of each code."""
        return {**dict(enumerate(CODES.values())), **{FIRST_CHECK + n: text for n, text in enumerate(self.checks, 1)}}

    def exports(self) -> tuple[str, ...]:
        """The symbols of the object."""
        names = (self.name, f"{self.name}_workspace_size", f"{self.name}_error_text")
        return (*names, f"{self.name}_initial") if self.initial else names


SIZE_OF: Mapping[str, Role] = {"data": "size", "result": "result size"}
STRIDE_OF: Mapping[str, Role] = {"data": "stride", "result": "result stride"}
"""The roles of the numbers of arrays."""


def _taken(function: CFunction) -> set[str]:
    return {"state", "workspace", "workspace_size", function.name, *(f"{each}" for each in function.exports())}


def _fresh(name: str, taken: set[str]) -> str:
    """A name for C that is new, from that of an array."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "x"
    plain = f"x{plain}" if plain[0].isdigit() else plain
    while plain in taken or plain in RESERVED:
        plain += "_"
    taken.add(plain)
    return plain


# --- the header -------------------------------------------------------------------------------------------------------


def comment(text: str) -> str:
    """A text that cannot end the comment that it stands in."""
    return " ".join(text.split()).replace("*/", "* /")


def header_text(function: CFunction, notes: str, labels: Sequence[str] = ()) -> str:
    """The header. notes: lines on the target and what to link, for its first comment. labels: the names of classes."""
    return "\n".join(_header(function, notes, labels)) + "\n"


def literal_text(text: str) -> str:
    """A text as a literal of C: in UTF-8, whatever the compiler takes sources for."""
    written = re.sub(rb'[^ -~]|["\\?]', lambda found: b"\\%03o" % found[0][0], text.encode()).decode()
    return f'"{written}"'


def _header(function: CFunction, notes: str, labels: Sequence[str]) -> Iterator[str]:
    name, upper = function.name, function.name.upper()
    inputs, outputs = function.inputs(), function.outputs()
    yield f"/* {comment(notes)}"
    yield " * Arrays are C-contiguous and aligned as their elements; sizes count elements. Nothing is allocated."
    if function.strided:
        yield " * Where strides stand, an element is so many bytes behind the one before it along an axis, as in NumPy."
    yield " * Any threads may call at once, each with its own workspace, results, and state where that is updated. */"
    yield from (f"#ifndef {upper}_H", f"#define {upper}_H", "#include <stddef.h>", "#include <stdint.h>")
    yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif", "")
    yield "enum {"
    for number, (code, text) in enumerate(CODES.items()):
        yield f"    {upper}_{code} = {number}, /* {comment(text)} */"
    for number, text in enumerate(function.checks, 1):
        yield f"    {upper}_CHECK_{number} = {FIRST_CHECK + number}, /* {comment(text)} */"
    yield from (f"    {upper}_LAST_CODE = {FIRST_CHECK + len(function.checks)}", "};", "")
    yield "/* Sizes that follow from the arguments: the bytes of the workspace, and the axes of results. */"
    yield from ("typedef struct {", "    size_t workspace;")
    yield from (f"    int64_t {each.name};" for each in outputs if each.role == "result size")
    yield from (f"}} {name}_sizes;", "")
    if function.initial:
        yield "/* Shared variables. Those that a call updates have no `const`: point them to memory of your own. */"
        yield "typedef struct {"
        for field in function.fields():
            yield f"    {field.kind}{'' if field.kind.endswith('*') else ' '}{field.name};{_note(function, field)}"
        yield f"}} {name}_state;"
        yield from (f"extern const {name}_state {name}_initial; /* the values when it was exported */", "")
    if labels:
        yield f"/* The classes, in UTF-8: predictions are places in {name}_classes, as columns of probabilities are. */"
        yield f"static const char *const {name}_classes[{len(labels)}] = {{{', '.join(map(literal_text, labels))}}};"
        yield ""
    shape = {("data", n): array for n, array in enumerate(function.signature.inputs)}
    shape |= {("result", n): array for n, array in function.results}
    for each in (*inputs, *outputs):
        if (each.role, each.number) in shape:
            yield f"/* {each.name}: {_shape(shape[each.role, each.number], [*inputs, *outputs], each)} */"
    declared = [each.declared() for each in inputs]
    asked = [f"const {each}" if each.startswith(f"{name}_state ") else each for each in declared]
    yield f"int {name}_workspace_size({', '.join([*asked, f'{name}_sizes *sizes'])});"
    yield f"int {name}({', '.join([*declared, *(each.declared() for each in outputs)])});"
    yield f"const char *{name}_error_text(int code);"
    yield from ("", "#ifdef __cplusplus", "}", "#endif", "#endif")


def _note(function: CFunction, field: Field) -> str:
    array = function.shared[field.number]
    if field.role != "data":
        return " /* updated */" if field.role == "value" and field.number in function.updated else ""
    axes = [f.name for f in function.fields() if f.number == field.number and f.role == "size"]
    left = iter(axes)
    shape = "".join(f"[{next(left) if size is None else size}]" for size in array.shape)
    return f" /* {shape}{', updated' if field.number in function.updated else ''} */"


def _shape(array: Array, parameters: list[Parameter], of: Parameter) -> str:
    role = SIZE_OF[of.role]
    axes = iter(each.name for each in parameters if each.role == role and each.number == of.number)
    return "".join(f"[{next(axes) if size is None else size}]" for size in array.shape) or "one number"


# --- C functions of graphs: their forms, the words that they read, their return codes ---------------------------------
# In: how the parameters of a C function are the inputs, sizes and results of a graph. Out: a `Form`, which decides the
# code, and the words that the code reads. For `int64_t f(int64_t n, const double x[n], double out[n])` of a graph with
# one vector and one result:
#
#     Form(params="lpp", operands=((PARAM, 1),), results=(2,), ...)
#     words: addresses of `sizes` and `kernel`, what errors need, then one group of numbers after the other

POINTER, CALM, WORDS = "gc_pointer", "gc_calm", "gc_words"
"""Symbols: the C function; the safepoint of its loops, in place of Python's; the words."""
REFUSED, NO_MEMORY, FAILED, BAD_GRADIENT, BAD_VALUE = -1, -2, 1, 3, 4
FIELDS = ("sizes", "kernel", "arena", "ensure", "raise", "release", "exception", "refused", "no memory", "failed")
"""The first words: the addresses of `sizes` and `kernel`, the bytes of the arena, then of a form that raises: three of
Python's functions, the class of the exception and its texts."""
GROUPS = ("operands", "sizes", "slots", "starts", "checks", "spans")
"""The words behind them: addresses of operands that are bound; dims that are bound; the numbers that `sizes` must write
and the offset of each temporary, where all sizes are bound; what parameters must be; the bytes of each vector without
the factors that are parameters."""

BOUND, PARAM, VALUE = "bound", "param", "value"


@record()
class Form:
    """The parameters of the code.

    params: a letter for each C parameter (pointer_ir.py). returns: the letter of the result. answer: "code"
    for a status, "success" for 1 or 0, "value" for the result of the graph, "loop" for the inner loop of a ufunc.
    operands: for each operand of the graph its source: (BOUND, 0), (PARAM, parameter, offset in bytes) or (VALUE,
    parameter). results: for each output its parameter, -1 for the value returned. sizes: for each dim that the
    functions take its parameter, -1 where it is bound. checks: the parameters that must be a word. shown: (number that
    `sizes` writes, parameter that must be the same). spans: for each vector its parameter, the parameters that its
    length is a product of, whether it is a result. fixed: all sizes are bound. values: where they are not, for each
    temporary the values that it holds: the number of the first size among those that `sizes` writes, the rank, the
    itemsize. counts: the lengths of `GROUPS`. items:
    the bytes of an element of each operand and result of a loop. finite: results must be finite, as samplers want it.
    """

    params: str
    returns: str
    answer: str
    operands: tuple[tuple[str, int, int], ...]
    results: tuple[int, ...]
    sizes: tuple[int, ...]
    checks: tuple[int, ...]
    shown: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, tuple[int, ...], bool], ...]
    fixed: bool
    extents: int
    temps: int
    values: tuple[tuple[tuple[int, int, int], ...], ...]
    counts: tuple[int, ...]
    items: tuple[int, ...] = ()
    finite: bool = False

    @property
    def name(self) -> str:
        """The name of the runtime part with this code (pipeline/runtime.py)."""
        return f"{POINTER} {tuple(getattr(self, name) for name in self.__match_args__)!r}"

    @staticmethod
    def from_name(name: str) -> Form:
        return Form(*literal_eval(name.partition(" ")[2]))


def words_of(fields: Mapping[str, int], groups: Mapping[str, Sequence[int]]) -> AnyArray:
    """Return the words of a C function, in the order of FIELDS and GROUPS."""
    first = [fields.get(name, 0) for name in FIELDS]
    return np.array([*first, *(word for name in GROUPS for word in groups[name])], np.int64)
