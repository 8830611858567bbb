"""The part that the functions of all routines share: matrix by matrix, shared by threads, and failures.

In: what computes one matrix of a routine (elimination.py, orthogonal.py, equations.py). Out:
gc_lapack_<routine>_<t> (api.py) in LLVM IR.

Matrices are shared out where each takes one thread, and all together are worth several. What a thread takes at a time
has a workspace of its own, where a routine needs one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from graphc.codegen.gemm.api import LARGE_USERS
from graphc.codegen.gemm.context import SETTING, Words, share
from graphc.codegen.gemm.tiles import ARITHMETIC
from graphc.codegen.lapack.alone import begin_alone, end_alone
from graphc.codegen.lapack.api import FUNCTIONS, arguments
from graphc.codegen.lapack.elimination import ELIMINATIONS
from graphc.codegen.lapack.equations import EQUATIONS
from graphc.codegen.lapack.orthogonal import ORTHOGONAL
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.target import has_vector_products
from graphc.codegen.llvm.typed import F64, I64, Bool, Ptr
from graphc.codegen.threads.chunking import LEAST_WORK
from graphc.ops.linalg.routine import LARGEST, ROUTINES, Routine, symbol
from graphc.startup.record import record

LEAST_LAPACK = 2.0**12
"""Additions of a matrix below which LAPACK has no threads."""
ONES = {**ELIMINATIONS, **ORTHOGONAL, **EQUATIONS}
"""By routine: a function that makes, of a suffix, LLVM's function for one matrix: it is given sizes, flags, operands
with their strides, results and workspaces, and returns the status."""
COSTS = {False: (1.0, 200.0), True: (20.0, 10_000.0)}
"""The cost of an addition of a routine, and of a matrix besides, in units of work (threads/chunking.py): of one that
does without workspaces, and of an iteration of LAPACK's."""


@record(eq=False)
class Frame:
    """A routine's function while it is written."""

    routine: Routine
    suffix: str
    kinds: Mapping[str, type[Any]]

    @property
    def element(self) -> Any:
        """The type of the operands' elements."""
        return ARITHMETIC[self.suffix].kind

    def result_kind(self, place: int) -> Any:
        """The type of the elements of a result."""
        return I64 if self.routine.parts[place][1] else self.element

    def space_kind(self, place: int) -> Any:
        """The type of the elements of a workspace."""
        return I64 if self.routine.spaces[place] else self.element

    def length(self, place: int, words: Mapping[str, Any]) -> I64:
        """The number of elements of a result for each matrix."""
        letters = self.letters(words)
        count = I64.of(1)
        for axis in self.routine.parts[place][0]:
            count = letters[axis] if count.code is None else count * letters[axis]
        return count

    def letters(self, words: Mapping[str, Any]) -> dict[str, I64]:
        """The sizes of all letters."""
        known = {letter: words[letter] for letter in self.routine.letters}
        if self.routine.derived({"m": 1, "n": 1}):
            known["k"] = known["m"].minimum(known["n"])
        return known


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of api.PROTOTYPES."""
    return [batch(*FUNCTIONS[name]) for name in sorted(names)]


def batch(name: str, suffix: str) -> Function[..., I64]:
    """The function of a routine."""
    routine = ROUTINES[name]
    kinds = {
        each.name: Ptr if each.of in ("operand", "result", "workspace") else I64 for each in arguments(routine, suffix)
    }
    frame = Frame(routine, suffix, kinds)
    context = {"context": Ptr, "begin": I64, "end": I64}
    range_: Function[..., None] = Function(
        f"{name}_range_{suffix}", None, context, partial(_write_range, frame), "noinline optsize", is_internal=True
    )
    return Function(symbol(name, suffix), I64, kinds, partial(_write_batch, frame, range_), "noinline optsize")


def _words(frame: Frame) -> Words:
    return Words({"status": I64, "size": I64, **frame.kinds})


def _write_range(frame: Frame, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """The matrices from `begin` to `end`, as many as a thread takes at a time."""
    routine, suffix = frame.routine, frame.suffix
    words = _words(frame).read(context)
    lengths = [frame.length(place, words) for place in range(len(routine.results))]
    one = ONES[routine.name](suffix)
    sizes = [words[name] for name in (*routine.letters, *routine.flags)]
    slot = begin // words["size"] if routine.spaces else begin
    spaces = [
        words[f"w{place}"].at(slot * words[f"w{place}_each"], frame.space_kind(place))
        for place in range(len(routine.spaces))
    ]
    with code.count(begin, end) as number:
        given: list[Any] = []
        for place, axes in enumerate(routine.operands):
            given.append(words[f"a{place}"].at(number * words[f"a{place}_batch"], frame.element))
            given += [words[f"a{place}_{axis}"] for axis in range(len(axes))]
        results = [
            words[f"r{place}"].at(number * length, frame.result_kind(place)) for place, length in enumerate(lengths)
        ]
        status = one(code, *sizes, *given, *results, *spaces)
        if routine.failures:
            with code.when(status != 0):
                with code.when(words["nan"] == 0):
                    context.store(status, order="monotonic", align=8)
                for place, (result, length) in enumerate(zip(results, lengths, strict=True)):
                    kind = frame.result_kind(place)
                    value = kind.of(0) if kind is I64 else kind.of(float("nan"))
                    with code.count(0, length) as element:
                        result.at(element, kind).store(value)


def _write_batch(frame: Frame, range_: Function[..., None], code: Code, *values: Any) -> I64:
    words = dict(zip(frame.kinds, values, strict=True))
    count, routine = words["count"], frame.routine
    unit, fixed = COSTS[bool(routine.spaces)]
    letters, each = frame.letters(words), F64.of(1.0)
    for letter in routine.work:
        factor = letters[letter].to(F64)
        each = factor if each.code is None else each * factor
    work = each * unit + fixed
    worth = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work  # matrices that are worth a claim
    few = (worth < count.to(F64)).choose(worth, count.to(F64)).to(I64)
    size = (few > 1).choose(few, 1)
    if routine.spaces:
        least = (count + words["slots"] - 1) // words["slots"]
        size = (size > least).choose(size, (least > 1).choose(least, 1))
    context = _words(frame).write(code, {"status": I64.of(0), "size": size, **words})
    account, is_large = code.local(I64, 3), each >= LEAST_LAPACK
    is_shared = Bool.of(symbol(routine.name, frame.suffix).startswith(LARGE_USERS) and has_vector_products())
    with code.when(is_large):
        begin_alone(code, each, is_shared, account)
    with code.when(each < float(LARGEST)):
        share(code, range_.pointer(code), context, count, size, work * count.to(F64))
    with code.otherwise():
        range_(code, context, I64.of(0), count)
    with code.when(is_large):
        end_alone(code, account)
    return context.load(I64, order="monotonic", align=8)
