"""Compiled graphs as C functions, in LLVM IR: C, numba, SciPy and samplers call them by address, without Python.

In: a `Form`. Out: the text of an LLVM module that defines POINTER and CALM. For params "lpp" that is

    int64 gc_pointer(int64 n, double *x, double *out)

The addresses of the process stand in words that the module imports as WORDS: the graph's own functions, operands that
are bound, sizes. The words are read only, and each call takes its own memory, small one from the stack: any threads may
call at once, also those that Python does not know. The function returns 0 or

    REFUSED      a size that does not fit, a null address, or results that overlap inputs or each other
    NO_MEMORY    no memory for temporaries
    FAILED       a check of the graph failed
    BAD_GRADIENT, BAD_VALUE    a density that is not finite

Samplers go on after the numbers above 0. A form that returns a value or 1 for success sets an exception of Python's
instead. Vectors are aligned as their elements are, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import Any

from graphc.codegen.call.objects import measure_memory
from graphc.codegen.call.pointer import (
    BAD_GRADIENT,
    BAD_VALUE,
    CALM,
    FAILED,
    FIELDS,
    GROUPS,
    NO_MEMORY,
    PARAM,
    POINTER,
    REFUSED,
    VALUE,
    WORDS,
    Form,
)
from graphc.codegen.call.signature import ALIGNMENT, MOST
from graphc.codegen.call.ufunc_ir import write_loop
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, external, function, module_text, poison as fill
from graphc.codegen.llvm.typed import F32, F64, I32, I64, NULL, Bool, Ptr, Value

malloc = external("malloc", Ptr, I64)
free = external("free", None, Ptr)

KINDS: dict[str, type[Value]] = {"p": Ptr, "l": I64, "i": I32, "d": F64, "f": F32}
ON_STACK = 4096
"""The bytes of temporaries that a call takes from the stack."""


def pointer_ir(form: Form, poison: bool) -> str:
    """The module of a form. poison: temporaries are filled with a pattern before each call."""
    params = {f"a{number}": KINDS[letter] for number, letter in enumerate(form.params)}

    def run_body(code: Code, *args: Any) -> I64:
        return Call(code, form, poison, args).write()

    attributes = "" if form.answer == "loop" else "alwaysinline"
    run: Function[..., I64] = Function("run", I64, {**params, "value": Ptr}, run_body, attributes, is_internal=True)

    result: Any = KINDS[form.returns]

    def answer(code: Code, *args: Any) -> Any:
        value = code.local(result)
        status = run(code, *args, value)
        if form.answer == "code":
            return status.to(result)
        with code.when(status != 0):
            Words(code, form).tell(status)
            code.ret(result.of(0 if form.answer == "success" else float("nan")))
        return I32.of(1) if form.answer == "success" else value.load(result)

    def loop(code: Code, context: Ptr, data: Ptr, dims: Ptr, strides: Ptr, aux: Ptr) -> I32:
        status = write_loop(code, run, form.items, len(form.results), (data, dims, strides))
        with code.when(status != 0):
            Words(code, form).tell(status)
            code.ret(I32.of(-1))
        return I32.of(0)

    @function(name=CALM, is_internal=False)
    def calm(code: Code) -> I64:
        """The safepoint of loops: always 0, for no handler of a signal may raise in a thread of another program."""
        return I64.of(0)

    given = dict.fromkeys(("context", "data", "dims", "strides", "aux"), Ptr)
    chosen: Function[..., Any] = (
        Function(POINTER, I32, given, loop) if form.answer == "loop" else Function(POINTER, result, params, answer)
    )
    return module_text([chosen, calm])


class Words:
    """The words of a C function, as its code reads them."""

    def __init__(self, code: Code, form: Form) -> None:
        self.code, self.form = code, form
        counts = (len(FIELDS), *form.counts)
        self.words = Global(WORDS, f"external global [{sum(counts)} x i64]")(code)
        self.starts = {name: sum(counts[: number + 1]) for number, name in enumerate(GROUPS)}

    def word(self, group: str, number: int, kind: Any = I64) -> Any:
        return self.words.at(self.starts[group] + number, I64).load(kind)

    def field(self, name: str, kind: Any = I64) -> Any:
        return self.words.at(FIELDS.index(name), I64).load(kind)

    def tell(self, status: I64) -> None:
        """Set an exception of Python's, in a thread that may not hold the GIL."""
        refused, no_memory, failed = (self.field(name, Ptr) for name in ("refused", "no memory", "failed"))
        text = (status == REFUSED).choose(refused, (status == NO_MEMORY).choose(no_memory, failed))
        state = self.field("ensure", Ptr).call(I32)
        self.field("raise", Ptr).call(None, self.field("exception", Ptr), text)
        self.field("release", Ptr).call(None, state)


class Call(Words):
    """The body of a C function, as it is written. args: its parameters, and the address of the value returned."""

    def __init__(self, code: Code, form: Form, poison: bool, args: Sequence[Any]) -> None:
        super().__init__(code, form)
        self.poison = poison
        self.args, self.value = args[:-1], args[-1]

    def number(self, param: int) -> I64:
        """A parameter that is a size."""
        return self.args[param].to(I64)  # type: ignore[no-any-return]

    def write(self) -> I64:
        code, form = self.code, self.form
        sizes = [self.word("sizes", at) if param < 0 else self.number(param) for at, param in enumerate(form.sizes)]
        asked = sorted({param for param in form.sizes if param >= 0})
        wrong: list[Bool] = [self.number(param).above(MOST) for param in asked]
        wrong += [self.number(param) != self.word("checks", at) for at, param in enumerate(form.checks)]
        self.return_when([*wrong, *self.unfit()], REFUSED)
        operands = [self.operand(number) for number in range(len(form.operands))]
        results = [self.value if param < 0 else self.args[param] for param in form.results]
        slots = self.check_sizes(operands, sizes)
        arena, temps = self.allocate(slots)
        status = self.field("kernel", Ptr).call(I64, *operands, *results, *temps, *sizes)
        if form.temps:
            free(code, arena)
        self.return_when([status != 0], FAILED)
        if form.finite:
            self.look_at(*results)
        return I64.of(0)

    def return_when(self, conditions: Sequence[Bool], status: int) -> None:
        if conditions:
            with self.code.when(reduce(or_, conditions)):
                self.code.ret(I64.of(status))

    def operand(self, number: int) -> Ptr:
        source, param, offset = self.form.operands[number]
        if source == PARAM:
            return self.args[param].at(offset) if offset else self.args[param]  # type: ignore[no-any-return]
        if source == VALUE:
            return self.code.address(self.args[param])
        return self.word("operands", sum(kind not in (PARAM, VALUE) for kind, *_ in self.form.operands[:number]), Ptr)  # type: ignore[no-any-return]

    def unfit(self) -> list[Bool]:
        """The conditions under which vectors are refused: an address is null, or a result overlaps another vector."""
        spans = self.form.spans
        found = [self.args[param] == NULL for param, _, _ in spans]
        begins = [self.args[param].integer() for param, _, _ in spans]
        ends = []
        for number, (_, factors, _) in enumerate(spans):
            length = self.word("spans", number)
            for factor in factors:
                length = length * self.number(factor)
            ends.append(begins[number] + length)
        pairs = [(a, b) for a, b in combinations(range(len(spans)), 2) if spans[a][2] or spans[b][2]]
        found += [begins[a].below(ends[b]) & begins[b].below(ends[a]) for a, b in pairs]
        return found

    def check_sizes(self, operands: Sequence[Ptr], sizes: Sequence[I64]) -> Ptr:
        """Return FAILED where sizes do not agree, or differ from those that memory was planned for."""
        code, form = self.code, self.form
        slots = code.local(I64, max(form.extents, 1))
        status = self.field("sizes", Ptr).call(I64, *operands, *sizes, slots)
        count = form.counts[GROUPS.index("slots")]
        differ = [slots.at(number, I64).load(I64) != self.word("slots", number) for number in range(count)]
        self.return_when([status != 0, *differ], FAILED)
        self.return_when([slots.at(at, I64).load(I64) != self.number(param) for at, param in form.shown], REFUSED)
        return slots

    def allocate(self, slots: Ptr) -> tuple[Ptr, list[Ptr]]:
        """Find memory for the temporaries; return what is to be freed, and the address of each."""
        code, form = self.code, self.form
        if not form.temps:
            return NULL, []
        if form.fixed:
            length = self.field("arena")
            starts = [self.word("starts", number) for number in range(form.temps)]
        else:
            table = self.words.at(self.starts["table"], I64)
            lengths = code.local(I64, form.outputs + form.temps)
            buffers = I64.of(form.outputs), I64.of(form.outputs + form.temps)
            count = I64.of(form.counts[GROUPS.index("table")] // 3)
            end = measure_memory(code, slots, table, count, lengths, *buffers).first(I64)
            self.return_when([end < 0], NO_MEMORY)
            length = end + ALIGNMENT
            starts = [lengths.at(form.outputs + number, I64).load(I64) for number in range(form.temps)]
        stack = code.local(I64, ON_STACK // 8)
        arena = code.variable(NULL)
        with code.when(length > ON_STACK):
            arena.value = malloc(code, length)
            self.return_when([arena.value == NULL], NO_MEMORY)
        taken = (arena.value == NULL).choose(stack, arena.value)
        start = ((taken.integer() + (ALIGNMENT - 1)) & -ALIGNMENT).address()
        if self.poison:
            fill(code, start, length - ALIGNMENT)
        return arena.value, [start.at(offset) for offset in starts]

    def look_at(self, value: Ptr, gradient: Ptr) -> None:
        """Return BAD_GRADIENT or BAD_VALUE where a result is not finite: its product with 0 is then NaN."""
        code = self.code
        bad = code.variable(Bool.of(False))
        with code.count(0, self.number(0)) as number:
            bad.value |= ~(gradient.at(number, F64).load(F64, align=8) * 0.0 == 0.0)
        self.return_when([bad.value], BAD_GRADIENT)
        self.return_when([~(value.load(F64, align=8) * 0.0 == 0.0)], BAD_VALUE)
