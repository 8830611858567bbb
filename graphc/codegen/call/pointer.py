"""The data of C functions of graphs (pointer_ir.py): their forms, the words that they read, their return codes.

In: how the parameters of a C function are the inputs, sizes and results of a graph. Out: a `Form`, which decides the
code, and the words that the code reads. For `int64_t f(int64_t n, const double x[n], double out[n])` of a graph with
one vector and one result:

    Form(params="lpp", operands=((PARAM, 1),), results=(2,), ...)
    words: addresses of `sizes` and `kernel`, what errors need, then one group of numbers after the other
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence

import numpy as np

from graphc.codegen.call.signature import AnyArray
from graphc.startup.record import record

POINTER, CALM, WORDS = "gc_pointer", "gc_calm", "gc_words"
"""Symbols: the C function; the safepoint of its loops, in place of Python's; the words."""
REFUSED, NO_MEMORY, FAILED, BAD_GRADIENT, BAD_VALUE = -1, -2, 1, 3, 4
FIELDS = ("sizes", "kernel", "arena", "ensure", "raise", "release", "exception", "refused", "no memory", "failed")
"""The first words: the addresses of `sizes` and `kernel`, the bytes of the arena, then of a form that raises: three of
Python's functions, the class of the exception and its texts."""
GROUPS = ("operands", "sizes", "slots", "starts", "table", "checks", "spans")
"""The words behind them: addresses of operands that are bound; dims that are bound; the numbers that `sizes` must write
and the offset of each temporary, where all sizes are bound; else the values that `measure_memory` goes over; what
parameters must be; the bytes of each vector without the factors that are parameters."""

BOUND, PARAM, VALUE = "bound", "param", "value"


@record()
class Form:
    """The parameters of the code.

    params: a letter for each C parameter (`KINDS` in pointer_ir.py). returns: the letter of the result. answer: "code"
    for a status, "success" for 1 or 0, "value" for the result of the graph, "loop" for the inner loop of a ufunc.
    operands: for each operand of the graph its source: (BOUND, 0), (PARAM, parameter, offset in bytes) or (VALUE,
    parameter). results: for each output its parameter, -1 for the value returned. sizes: for each dim that the
    functions take its parameter, -1 where it is bound. checks: the parameters that must be a word. shown: (number that
    `sizes` writes, parameter that must be the same). spans: for each vector its parameter, the parameters that its
    length is a product of, whether it is a result. fixed: all sizes are bound. counts: the lengths of `GROUPS`. items:
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
    outputs: int
    temps: int
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
