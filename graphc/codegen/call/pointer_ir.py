"""Compiled graphs as C functions of vectors, in LLVM IR: samplers call them by address, without Python in between.

In: a `Form`. Out: the text of an LLVM module that defines POINTER, by its kind

    density  int64 (uint64 dim, double *x, double *grad, double *logp, void *)
    vector   int64 (uint64 dim, uint64 length, double *x, double *out, void *)

and CALM. The addresses of the process stand in words that the module imports as WORDS: the graph's own functions, its
other operands, the sizes of its memory. The words are read only, and each call allocates its own memory: any threads
may call at once, also those that Python does not know. The function returns 0 or

    REFUSED      a wrong length, a null address, or results that overlap x or each other
    NO_MEMORY    no memory for temporaries
    FAILED       a check of the graph failed
    BAD_GRADIENT, BAD_VALUE    a density that is not finite

Samplers go on after the numbers above 0. x and the results are aligned as float64 are, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import Any

from graphc.codegen.call.pointer import (
    BAD_GRADIENT,
    BAD_VALUE,
    CALM,
    FAILED,
    FIELDS,
    NO_MEMORY,
    POINTER,
    REFUSED,
    WORDS,
    Form,
)
from graphc.codegen.call.signature import ALIGNMENT
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, external, function, module_text, poison as fill
from graphc.codegen.llvm.typed import F64, I64, NULL, Bool, Ptr

malloc = external("malloc", Ptr, I64)
free = external("free", None, Ptr)


def pointer_ir(form: Form, poison: bool) -> str:
    """The module of a form. poison: temporaries are filled with a pattern before each call."""

    @function(name=POINTER, is_internal=False)
    def density(code: Code, dim: I64, x: Ptr, grad: Ptr, logp: Ptr, user_data: Ptr) -> I64:
        return Call(code, form, poison).write(x, [dim], [(logp, False), (grad, True)])

    @function(name=POINTER, is_internal=False)
    def values(code: Code, dim: I64, length: I64, x: Ptr, out: Ptr, user_data: Ptr) -> I64:
        return Call(code, form, poison).write(x, [dim, length], [(out, True)])

    @function(name=CALM, is_internal=False)
    def calm(code: Code) -> I64:
        """The safepoint of loops: always 0, for no handler of a signal may raise in a thread of a sampler."""
        return I64.of(0)

    chosen: Function[..., Any] = density if form.kind == "density" else values
    return module_text([chosen, calm])


class Call:
    """The body of a C function, as it is written."""

    def __init__(self, code: Code, form: Form, poison: bool) -> None:
        self.code, self.form, self.poison = code, form, poison
        counts = (len(FIELDS), form.operands, form.sizes, form.extents, form.temps)
        self.words = Global(WORDS, f"external global [{sum(counts)} x i64]")(code)
        self.starts = [sum(counts[:number]) for number in range(len(counts))]

    def word(self, group: int, number: int, kind: Any = I64) -> Any:
        return self.words.at(self.starts[group] + number, I64).load(kind)

    def field(self, name: str, kind: Any = I64) -> Any:
        return self.word(0, FIELDS.index(name), kind)

    def write(self, x: Ptr, given: Sequence[I64], results: Sequence[tuple[Ptr, bool]]) -> I64:
        code, form = self.code, self.form
        count, length = self.field("dimension"), self.field("length")
        wrong = [number != wanted for number, wanted in zip(given, (count, length), strict=False)]
        spans = [(x, count), *((out, length if is_vector else 1) for out, is_vector in results)]
        with code.when(reduce(or_, [*wrong, *self.unfit(spans)])):
            code.ret(I64.of(REFUSED))
        operands = [x, *(self.word(1, number, Ptr) for number in range(form.operands))]
        sizes = [self.word(2, number) for number in range(form.sizes)]
        self.check_sizes(operands, sizes)
        arena, temps = self.allocate()
        status = self.field("kernel", Ptr).call(I64, *operands, *(out for out, _ in results), *temps, *sizes)
        if form.temps:
            free(code, arena)
        with code.when(status != 0):
            code.ret(I64.of(FAILED))
        if form.kind == "density":
            (logp, _), (grad, _) = results
            self.look_at(logp, grad, length)
        return I64.of(0)

    def unfit(self, spans: Sequence[tuple[Ptr, I64 | int]]) -> list[Bool]:
        """The conditions under which vectors are refused: an address is null, or two vectors overlap."""
        found = [vector == NULL for vector, _ in spans]
        begins = [vector.integer() for vector, _ in spans]
        ends = [begin + length * 8 for begin, (_, length) in zip(begins, spans, strict=True)]
        pairs = combinations(range(len(spans)), 2)
        found += [begins[a].below(ends[b]) & begins[b].below(ends[a]) for a, b in pairs]
        return found

    def check_sizes(self, operands: Sequence[Ptr], sizes: Sequence[I64]) -> None:
        """Return FAILED where sizes that follow from values differ from those that memory was planned for."""
        code, count = self.code, self.form.extents
        slots = code.local(I64, max(count, 1))
        status = self.field("sizes", Ptr).call(I64, *operands, *sizes, slots)
        differ = [slots.at(number, I64).load(I64) != self.word(3, number) for number in range(count)]
        with code.when(reduce(or_, [status != 0, *differ])):
            code.ret(I64.of(FAILED))

    def allocate(self) -> tuple[Ptr, list[Ptr]]:
        """Allocate the arena; return it and the address of each temporary."""
        code = self.code
        if not self.form.temps:
            return NULL, []
        length = self.field("arena")
        arena = malloc(code, length)
        with code.when(arena == NULL):
            code.ret(I64.of(NO_MEMORY))
        start = ((arena.integer() + (ALIGNMENT - 1)) & -ALIGNMENT).address()
        if self.poison:
            fill(code, start, length - ALIGNMENT)
        return arena, [start.at(self.word(4, number)) for number in range(self.form.temps)]

    def look_at(self, logp: Ptr, grad: Ptr, length: I64) -> None:
        """Return BAD_GRADIENT or BAD_VALUE where a result is not finite: its product with 0 is then NaN."""
        code = self.code
        bad = code.variable(Bool.of(False))
        with code.count(0, length) as number:
            bad.value |= ~(grad.at(number, F64).load(F64, align=8) * 0.0 == 0.0)
        with code.when(bad.value):
            code.ret(I64.of(BAD_GRADIENT))
        with code.when(~(logp.load(F64, align=8) * 0.0 == 0.0)):
            code.ret(I64.of(BAD_VALUE))
