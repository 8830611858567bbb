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
from operator import and_, or_
from typing import Any

from graphc.codegen.call.c_interface import (
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
from graphc.codegen.call.objects import times
from graphc.codegen.call.signature import ALIGNMENT, MOST
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, external, function, module_text, poison as fill
from graphc.codegen.llvm.typed import F32, F64, I8, I16, I32, I64, NULL, Bool, Int, Ptr, Value

malloc = external("malloc", Ptr, I64)
free = external("free", None, Ptr)

LETTER_TYPES: dict[str, type[Value]] = {"p": Ptr, "l": I64, "i": I32, "d": F64, "f": F32}
ON_STACK = 16384
"""The bytes of temporaries that a call takes from the stack: a sum has 4096, and malloc may take longer than it."""
PROBED = '"probe-stack"="inline-asm"'
"""The attribute of a function that touches each page of its part of the stack, lest it step over the guard page."""


def pointer_ir(form: Form, poison: bool) -> str:
    """The module of a form. poison: temporaries are filled with a pattern before each call."""
    params = {f"a{number}": LETTER_TYPES[letter] for number, letter in enumerate(form.params)}

    def run_body(code: Code, *args: Any) -> I64:
        return Call(code, form, poison, args).write()

    attributes = PROBED if form.answer == "loop" else "alwaysinline"
    run: Function[..., I64] = Function("run", I64, {**params, "value": Ptr}, run_body, attributes, is_internal=True)

    result: Any = LETTER_TYPES[form.returns]

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

    ufunc = dict.fromkeys(("context", "data", "dims", "strides", "aux"), Ptr)
    chosen: Function[..., Any] = (
        Function(POINTER, I32, ufunc, loop)
        if form.answer == "loop"
        else Function(POINTER, result, params, answer, PROBED)
    )
    return module_text([chosen, calm])


class Words:
    """The words of a C function, as its code reads them."""

    def __init__(self, code: Code, form: Form) -> None:
        self.code, self.form = code, form
        counts = (len(FIELDS), *form.counts)
        self.words = Global(WORDS, f"external global [{sum(counts)} x i64]")(code)
        self.starts = {name: sum(counts[: number + 1]) for number, name in enumerate(GROUPS)}

    def word(self, group: str, number: int, type_: Any = I64) -> Any:
        return self.words.at(self.starts[group] + number, I64).load(type_)

    def field(self, name: str, type_: Any = I64) -> Any:
        return self.words.at(FIELDS.index(name), I64).load(type_)

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
        return self.args[param].to(I64)

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
            with code.when(arena != NULL):
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
            return self.args[param].at(offset) if offset else self.args[param]
        if source == VALUE:
            return self.code.address(self.args[param])
        return self.word("operands", sum(kind not in (PARAM, VALUE) for kind, *_ in self.form.operands[:number]), Ptr)

    def unfit(self) -> list[Bool]:
        """The conditions under which vectors are refused: an address is null, or a result overlaps another vector."""
        spans = self.form.spans
        problems = [self.args[param] == NULL for param, _, _ in spans]
        begins = [self.args[param].integer() for param, _, _ in spans]
        ends = []
        for number, (_, factors, _) in enumerate(spans):
            length = self.word("spans", number)
            for factor in factors:
                length = length * self.number(factor)
            ends.append(begins[number] + length)
        pairs = [(a, b) for a, b in combinations(range(len(spans)), 2) if spans[a][2] or spans[b][2]]
        problems += [begins[a].below(ends[b]) & begins[b].below(ends[a]) for a, b in pairs]
        return problems

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
            starts, length = [], I64.of(0)
            absurd: list[Bool] = []
            for values in form.values:
                lengths = [self.bytes_of(slots, *value) for value in values]
                absurd += [each < 0 for each in lengths]
                longest = reduce(lambda left, right: (left > right).choose(left, right), lengths)
                starts.append(length)
                length = length + ((longest + (ALIGNMENT - 1)) & -ALIGNMENT)
                absurd.append(length > MOST)
            self.return_when(absurd, NO_MEMORY)
            length = length + ALIGNMENT
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

    def bytes_of(self, slots: Ptr, first: int, rank: int, itemsize: int) -> I64:
        """The bytes of a value whose sizes begin at a slot; below 0 where it is absurdly large."""
        length = I64.of(itemsize)
        for number in range(rank):
            length = times(self.code, length, slots.at(first + number, I64).load(I64))
        return length

    def look_at(self, value: Ptr, gradient: Ptr) -> None:
        """Return BAD_GRADIENT or BAD_VALUE where a result is not finite: its product with 0 is then NaN."""
        code = self.code
        bad = code.variable(Bool.of(False))
        with code.count(0, self.number(0)) as number:
            bad.value |= ~(gradient.at(number, F64).load(F64, align=8) * 0.0 == 0.0)
        self.return_when([bad.value], BAD_GRADIENT)
        self.return_when([~(value.load(F64, align=8) * 0.0 == 0.0)], BAD_VALUE)


# --- the loop of a ufunc ----------------------------------------------------------------------------------------------
# The inner loop of a ufunc of NumPy's, in LLVM IR, over the C function of an elementwise graph of vectors.
#
# In: run(n, inputs, results, NULL). Out: the status of a loop over `data` (addresses), `dims` (how many elements) and
# `strides` (bytes). Where all lies contiguous and apart, as for `u(x, y)`,
#
#     run(n, data[0], data[1], data[2])
#
# is the loop. Otherwise blocks of elements are copied to the stack and back. A result that overlaps an input elsewhere
# than at the same elements, as in `u.reduce` and `u.accumulate`, makes blocks of one element.


BLOCK = 512
WORD: dict[int, type[Int]] = {1: I8, 2: I16, 4: I32, 8: I64, 16: I64}


def write_loop(
    code: Code, run: Function[..., I64], items: Sequence[int], results: int, arrays: tuple[Ptr, Ptr, Ptr]
) -> I64:
    """Write the loop. items: the bytes of an element of each operand, results last. Returns the status of `run`."""
    data, dims, strides = arrays
    n = dims.load(I64)
    status = code.variable(I64.of(0))
    with code.when(n == 0):
        code.ret(I32.of(0))
    places = [data.at(k, I64).load(Ptr) for k in range(len(items))]
    steps = [strides.at(k, I64).load(I64) for k in range(len(items))]
    first = len(items) - results
    spans = [_span(place, step, n, item) for place, step, item in zip(places, steps, items, strict=True)]
    clash, moved = Bool.of(False), Bool.of(False)
    for out in range(first, len(items)):
        for other in range(out):
            meets = spans[out][0].below(spans[other][1]) & spans[other][0].below(spans[out][1])
            same = (places[out] == places[other]) & (steps[out] == steps[other]) & (steps[out] != 0)
            clash = meets if clash.code is None else clash | meets
            shifted = meets & ~same
            moved = shifted if moved.code is None else moved | shifted
    direct = [(step == item) & ~clash for step, item in zip(steps, items, strict=True)]
    is_whole = reduce(and_, direct)
    length = is_whole.choose(n, moved.choose(I64.of(1), I64.of(BLOCK)))
    rooms = [code.local(I8, BLOCK * item, align=64) for item in items]
    begin = code.variable(I64.of(0))
    blocks = (n + (length - 1)) // length
    with code.count(0, blocks):
        left = n - begin.value
        count = (left < length).choose(left, length)
        spots = [place.at(begin.value * step) for place, step in zip(places, steps, strict=True)]
        for k in range(first):
            stays = (steps[k] == 0) & (begin.value != 0) & ~clash
            with code.when(~(direct[k] | stays)):
                _copy(code, rooms[k], I64.of(items[k]), spots[k], steps[k], count, items[k])
        taken = [near.choose(spot, room) for near, spot, room in zip(direct, spots, rooms, strict=True)]
        answer = run(code, count, *taken, NULL)
        status.value = (answer != 0).choose(answer, status.value)
        for k in range(first, len(items)):
            with code.when(~direct[k]):
                _copy(code, spots[k], steps[k], rooms[k], I64.of(items[k]), count, items[k])
        begin.value = begin.value + count
    return status.value


def _span(place: Ptr, step: I64, n: I64, item: int) -> tuple[I64, I64]:
    """The first address of an operand and that behind its last."""
    begin = place.integer()
    end = begin + (n - 1) * step
    is_up = begin.below(end)
    return is_up.choose(begin, end), is_up.choose(end, begin) + item


def _copy(code: Code, to: Ptr, to_step: I64, source: Ptr, step: I64, count: I64, item: int) -> None:
    type_ = WORD[item]
    with code.count(0, count) as number:
        for part in range(0, item, min(item, 8)):
            word = source.at(number * step).at(part).load(type_, align=1)
            to.at(number * to_step).at(part).store(word, align=1)
