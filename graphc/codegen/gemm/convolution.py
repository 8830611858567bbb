"""Convolutions: gc_conv_<t> (api.py) in LLVM IR.

In: the suffix of a dtype. Out: the function, which calls `share` (context.py).

Rows of results are shared out, and each element is a sum in one order: who computes it changes no bit.
"""

from __future__ import annotations

from typing import Any

from graphc.codegen.gemm.api import ALONG, ARGUMENTS
from graphc.codegen.gemm.context import SETTING, Words, share
from graphc.codegen.gemm.microkernel import ARITHMETIC
from graphc.codegen.llvm.builder import Code, Iteration, Variable
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import F64, I64, Ptr
from graphc.codegen.threads.chunking import LEAST_WORK
from graphc.ops.conv import MOST_SPATIAL
from graphc.startup.record import record

UNIT = 2.0
"""What a term costs, in units of work (threads/chunking.py)."""

WORDS = ARGUMENTS["conv"].split()


def words_of() -> Words:
    return Words({name: Ptr if name in ("x", "w", "y") else I64 for name in WORDS})


@record(eq=False)
class Axis:
    """A convolution along one spatial axis, and the steps of its operands there."""

    size: I64
    taps: I64
    count: I64
    stride: I64
    dilation: I64
    spread: I64
    low: I64
    x: I64
    w: I64
    y: I64

    def place(self, count: I64, tap: I64, iteration: Iteration) -> I64:
        """Where the element of the image stands for a result and a tap; where there is none, it goes on to the next
        tap."""
        at = count * self.stride + tap * self.dilation - self.low
        iteration.again.unless(at.below(self.size * self.spread))
        iteration.again.unless(at % self.spread == 0)
        return at // self.spread


def axes_of(words: dict[str, Any]) -> list[Axis]:
    return [Axis(*(words[f"{word}_{axis}"] for word in (*ALONG, "x", "w", "y"))) for axis in range(MOST_SPATIAL)]


def rows_range(suffix: str) -> Function[..., None]:
    """The rows of results from begin to end, element by element."""
    own = ARITHMETIC[suffix]

    def write(code: Code, context: Ptr, begin: I64, end: I64) -> None:
        words = words_of().read(context)
        first, second, third = axes = axes_of(words)
        with code.count(begin, end) as row:
            rest, place = code.variable(row), {}
            for name, size in (("1", second.count), ("0", first.count), ("o", words["outs"]), ("g", words["groups"])):
                place[name] = rest.value % size
                rest.value = rest.value // size
            place["n"] = rest.value
            x, w, y = (
                _at(words, name, {part: place[part] for part in parts}, own.kind)
                for name, parts in (("x", "ng"), ("w", "go"), ("y", "ngo01"))
            )
            with code.count(0, third.count) as p:
                total: Variable[Any] = code.variable(own.kind.of(0))
                with code.count(0, words["channels"]) as c:
                    _add(code, own, total, axes, (place["0"], place["1"], p), _moved(x, w, words, c, own.kind))
                y.at(p * third.y, own.kind).store(total.value)

    return Function(
        f"conv_rows_{suffix}", None, {"context": Ptr, "begin": I64, "end": I64}, write, "noinline", is_internal=True
    )


def _at(words: dict[str, Any], name: str, place: dict[str, I64], kind: Any) -> Ptr:
    at: Ptr = words[name]
    for part, index in place.items():
        at = at.at(index * words[f"{name}_{part}"], kind)
    return at


def _moved(x: Ptr, w: Ptr, words: dict[str, Any], channel: I64, kind: Any) -> tuple[Ptr, Ptr]:
    return x.at(channel * words["x_c"], kind), w.at(channel * words["w_c"], kind)


def _add(
    code: Code, own: Any, total: Variable[Any], axes: list[Axis], counts: tuple[I64, ...], at: tuple[Ptr, Ptr]
) -> None:
    """Adds the terms of all taps along these axes to a sum."""
    (axis, *others), (count, *rest), (x, w) = axes, counts, at
    tap = code.variable(I64.of(0))
    with code.loop() as iteration:
        iteration.leave.unless(tap.value < axis.taps)
        now = tap.value
        tap.value = now + 1
        i = axis.place(count, now, iteration)
        there = x.at(i * axis.x, own.kind), w.at(now * axis.w, own.kind)
        if others:
            _add(code, own, total, others, tuple(rest), there)
        else:
            left, right = (each.load(own.kind) for each in there)
            total.value = total.value.apply(own.plus, left.apply(own.times, right))


def convolution(suffix: str) -> Function[..., I64]:
    """gc_conv_<t>."""
    params: dict[str, Any] = {name: Ptr if name in ("x", "w", "y") else I64 for name in WORDS}

    def write(code: Code, *values: Any) -> I64:
        words = dict(zip(WORDS, values, strict=True))
        context = words_of().write(code, words)
        first, second, third = axes_of(words)
        rows = words["images"] * words["groups"] * words["outs"] * first.count * second.count
        each = third.count * words["channels"] * first.taps * second.taps * third.taps
        work = each.to(F64) * UNIT + 1.0
        exact = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work
        few = (exact < rows.to(F64)).choose(exact, rows.to(F64)).to(I64)
        size = (few > 1).choose(few, 1)
        with code.when((rows > 0) & (third.count > 0)):
            share(code, rows_range(suffix).pointer(code), context, rows, size, work * rows.to(F64))
        return I64.of(0)

    return Function(f"gc_conv_{suffix}", I64, params, write, "noinline optsize")
