"""Declarations of C functions: read from text, and matched with the inputs and results of a graph.

In: text in C. Out: a `Declaration`.

    "int64_t f(int64_t n, const double x[n], double out[n])"
    Declaration("int64_t", (Param("int64_t", False, "n", ()), Param("double", True, "x", ("n",)), ...))

Sizes in brackets are numbers or the names of parameters, which are then given to the graph and checked. Signatures
without names that SciPy's callers use are known: `KNOWN`.
"""

from __future__ import annotations

import re
from itertools import chain

from graphc.errors import ArgumentError
from graphc.startup.record import record

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

    def __str__(self) -> str:
        """The signature without names, as capsules have it: double (int, double *)."""
        return f"{self.returns} ({', '.join(param.spelling for param in self.params)})"


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
