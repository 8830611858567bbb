"""Functions of LLVM IR written through the builder: what they compute, and what the builder refuses."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest

from graphc.codegen.link.elf import link
from graphc.codegen.link.image import load
from graphc.codegen.llvm.builder import Code, Iteration, Variable
from graphc.codegen.llvm.functions import Function, Global, external, function, module_text
from graphc.codegen.llvm.module import HalfField, LongField, PointerField
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.llvm.typed import F32, F64, I8, I32, I64, NULL, Bool, Ptr, TwoSizes, vector

_kept: list[Any] = []


def run(what: Function[..., Any], opt: int = 0) -> Callable[..., int]:
    """The function of int64, compiled."""
    code = link([emit_object([module_text([what])], opt)], [what.name])
    loaded = load(code, {}, [what.name])
    _kept.append(loaded)
    made: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(what.params))(
        loaded.addresses[what.name]
    )
    return made


@function(is_internal=False)
def triangle(code: Code, count: I64) -> I64:
    """The sum of the odd numbers below `count`, or -1 where one is 9."""
    total = code.variable(I64.of(0))
    with code.count(0, count) as i:
        with code.when(i == 9):
            code.ret(I64.of(-1))
        with code.when((i & 1) == 1):
            total.value += i
    return total.value


def test_a_loop_carries_what_changes() -> None:
    compiled = run(triangle)
    assert [compiled(count) for count in (-1, 0, 1, 4, 9, 10)] == [0, 0, 0, 4, 16, -1]
    assert module_text([triangle]).count(" phi ") == 3  # the sum and the counter at the head, the sum behind `when`


Plan = list[Any]
VARIABLES = 3


def plan(chance: random.Random, depth: int) -> Plan:
    """A program by chance: what it does in order."""
    kinds = ["set", "set", "if", "else", "count", "sure", "loop"] if depth else ["set"]
    made: Plan = []
    for _ in range(chance.randint(1, 4)):
        kind, at = chance.choice(kinds), chance.randrange(VARIABLES)
        if kind == "set":
            made.append((kind, at, chance.randrange(VARIABLES), chance.randint(-3, 3)))
        else:
            parts = [plan(chance, depth - 1) for _ in range(2)]
            made.append((kind, at, chance.randint(1, 3), *parts, chance.choice(["leave", "again", "ret", ""])))
    return made


def write(code: Code, steps: Plan, own: list[Variable[I64]]) -> None:
    for kind, at, *rest in steps:
        if kind == "set":
            own[at].value = own[rest[0]].value * 3 + rest[1]
        elif kind in ("if", "else"):
            with code.when((own[at].value & rest[0]) == 0):
                write(code, rest[1], own)
                if rest[3] == "ret":
                    code.ret(own[0].value)
            if kind == "else":
                with code.otherwise():
                    write(code, rest[2], own)
        elif kind == "loop":
            iterations = code.variable(I64.of(0))
            with code.loop() as iteration:
                iteration.leave.when(iterations.value == rest[0])
                iterations.value += 1
                write(code, rest[1], own)
                write_end(code, iteration, rest[3], own[at])
                write(code, rest[2], own)
        else:
            with code.count(1, rest[0] + 1, sure=kind == "sure") as i:
                own[at].value += i
                write(code, rest[1], own)


def write_end(code: Code, iteration: Iteration, how: str, value: Variable[I64]) -> None:
    with code.when((value.value & 1) == 0):
        if how == "ret":
            code.ret(value.value)
        elif how:
            getattr(iteration, how).go()


class Returned(Exception):
    pass


def follow(steps: Plan, own: list[int]) -> None:
    """What the program does, in Python."""
    for kind, at, *rest in steps:
        if kind == "set":
            own[at] = own[rest[0]] * 3 + rest[1]
        elif kind in ("if", "else"):
            if own[at] & rest[0] == 0:
                follow(rest[1], own)
                if rest[3] == "ret":
                    raise Returned(own[0])
            elif kind == "else":
                follow(rest[2], own)
        elif kind == "loop":
            for _ in range(rest[0]):
                follow(rest[1], own)
                how = rest[3] if own[at] & 1 == 0 else ""
                if how == "leave":
                    break
                follow_end(rest[2], own, how, own[at])
        else:
            for i in range(1, rest[0] + 1):
                own[at] += i
                follow(rest[1], own)


def follow_end(steps: Plan, own: list[int], how: str, value: int) -> None:
    if how == "ret":
        raise Returned(value)
    if how != "again":
        follow(steps, own)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_programs_by_chance(seed: int) -> None:
    """Variables, branches and loops within each other do what Python's do."""
    steps = plan(random.Random(seed), 3)

    @function(is_internal=False, name="by_chance")
    def by_chance(code: Code, a: I64, b: I64, c: I64) -> I64:
        own = [code.variable(value) for value in (a, b, c)]
        write(code, steps, own)
        return own[0].value + own[1].value * 5 + own[2].value * 7

    compiled = run(by_chance)
    for given in ((0, 0, 0), (1, 2, 3), (5, -7, 4)):
        own = [*given]
        try:
            follow(steps, own)
            expected = own[0] + own[1] * 5 + own[2] * 7
        except Returned as returned:
            expected = returned.args[0]
        assert compiled(*given) == (expected + 2**63) % 2**64 - 2**63


TYPE, RANK, SIZE = PointerField(8), HalfField(16), LongField(24)


@pytest.mark.parametrize(
    "mix",
    [
        lambda i, h, f, p: i + h,
        lambda i, h, f, p: i + 0.5,
        lambda i, h, f, p: f * i,
        lambda i, h, f, p: f + F32.of(1.0),
        lambda i, h, f, p: i == p,
        lambda i, h, f, p: p == 0,
        lambda i, h, f, p: p.at(h),
        lambda i, h, f, p: p.put(RANK, i),
        lambda i, h, f, p: p.put(SIZE, p),
        lambda i, h, f, p: p.exchange(i, h, "acq_rel", align=8),
        lambda i, h, f, p: (i < 1).choose(i, h),
        lambda i, h, f, p: i.code.branch(i, "a", "b"),
        lambda i, h, f, p: triangle(i.code, h),
        lambda i, h, f, p: triangle(i.code, i, i),  # type: ignore[call-arg]
        lambda i, h, f, p: setattr(i.code.variable(i), "value", h),
        lambda i, h, f, p: TwoSizes.of(i.code, i, i).first(Bool),
        lambda i, h, f, p: I64.of(1) + I64.of(2),
        lambda i, h, f, p: bool(i < 1),
        lambda i, h, f, p: p.load(vector(I64, 4)) + p.load(vector(I64, 2)),
    ],
)
def test_types_do_not_mix(mix: Callable[..., object]) -> None:
    code = Code()
    with pytest.raises(TypeError):
        mix(I64(code, "%i"), I32(code, "%h"), F64(code, "%f"), Ptr(code, "%p"))


def test_what_nothing_leads_to_is_refused() -> None:
    code = Code()
    code.ret()
    with pytest.raises(ValueError, match="nothing leads to: ret void"):
        code.ret()
    place = code.label("nowhere")
    code.place(place)
    with pytest.raises(ValueError, match="nothing leads to"):
        Ptr(code, "%p").load(I64)


def test_a_variable_that_only_one_path_sets_is_not_there() -> None:
    code = Code()
    with code.when(Bool(code, "%c")):
        inner = code.variable(I64.of(1))
    with pytest.raises(KeyError):
        _ = inner.value


def test_otherwise_follows_at_once() -> None:
    code = Code()
    with code.when(Bool(code, "%c")):
        pass
    Ptr(code, "%p").store(NULL)
    with pytest.raises(AssertionError), code.otherwise():
        pass


def test_fields_have_their_types() -> None:
    code = Code()
    struct = Ptr(code, "%p")
    assert [type(struct.get(field)) for field in (TYPE, RANK)] == [Ptr, I32] and type(struct.get(SIZE)) is I64
    assert [line.strip() for line in code.lines[:2]] == [
        "%v1 = getelementptr i8, ptr %p, i64 8",
        "%v2 = load ptr, ptr %v1",
    ]


def test_constants_are_exact() -> None:
    for number in (0.1, -0.0, 1e300, float("inf")):
        assert F64.of(number).text == f"0x{int.from_bytes(ctypes.c_double(number), 'little'):016X}"
    assert F32.of(0.1).text == F64.of(ctypes.c_float(0.1).value).text
    assert vector(I64, 4).of(3).text == "splat (i64 3)" and vector(I64, 4) is vector(I64, 4)


word = Global("word", "internal global i64 5, align 8")
outside = external("outside", I64, I64)


@function()
def reads(code: Code) -> I64:
    return word(code).load(I64)


@function(is_internal=False)
def asks(code: Code, number: I64) -> I64:
    return outside(code, number) + reads(code) + reads(code)


def test_a_module_holds_what_is_reached() -> None:
    text = module_text([asks])
    assert text.count("@word = internal global") == text.count("define internal i64 @reads()") == 1
    assert text.count("declare i64 @outside(i64)") == 1
    apart = module_text([asks], declares=["reads"])
    assert "declare i64 @reads()" in apart and "@word" not in apart
    assert "define i64 @reads()" in module_text([reads], exports=["reads"])
    assert text == module_text([asks])


def test_numbers_change_their_types() -> None:
    @function(is_internal=False)
    def convert(code: Code, number: I64) -> I64:
        short = number.to(I8)
        real = short.to(F32).to(F64) * 2.0 + short.to(F64, signed=False)
        return real.to(I64) + short.to(I64, signed=False)

    compiled = run(convert)
    assert [compiled(number) for number in (3, 255, 256 + 7)] == [12, 508, 28]
