"""Elements that loops carry in scalars: the same bits, of every dtype, natively and under CPython; whole programs."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES, is_float
from graphc.codegen.frontend.language import bind_source
from graphc.codegen.link.image import link
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.outline import outline
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.unroll import keep_in_registers
from graphc.ir.node import Node
from graphc.loopir.ir import (
    INDEX,
    ZERO,
    Buffer,
    Const,
    Expr,
    Function,
    Let,
    Load,
    Loop,
    Set,
    Stmt,
    Store,
    Var,
    add,
    apply,
    integer,
)
from graphc.loopir.operators import ACCUMULATE, ADD, MUL, SUB
from graphc.loopir.syntax import Names, emit_source, print_functions
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.startup.record import replace
from tests.support.compiled_source import compile_source
from tests.support.generated import code
from tests.support.loop_machine import run
from tests.support.loop_text import parse_functions
from tests.support.watched import check_passes, check_text, differs, watch

Array = NDArray[Any]

FIBONACCI = """
def kernel(x: {0}*, s: {0}* temporary, t: {0}* temporary, out: {0}*, n: int64):
    s[0] = {1}
    t[0] = x[0]
    t[1] = {2}
    for i in range(n):
        out[i + 4] = s[0]
        s[0] = s[0] {3} x[i]
        let old = t[0]
        t[0] = t[1] {4} s[0]
        t[1] = select(s[0] == x[0], {2}, old)
    out[0] = s[0]
    out[1] = t[0]
    out[2] = t[1]
"""
NUMBER = """
def kernel(x: {0}*, s: int64* temporary, out: int64*, n: int64):
    s[0] = n + 3
    for i in range(n):
        s[0] = s[0] * s[0] * 3037000507 + i
        out[i] = s[0]
    out[n] = s[0]
"""
ROWS = """
def kernel(x: {0}*, s: {0}* temporary, out: {0}*, n: int64):
    s[0] = {1}
    for i in range(n):
        for j in range(n):
            out[i * n + j] = x[j] {4} s[0]
            s[0] = s[0] {3} x[j]
    out[100] = s[0]
"""
ADDED = """
def kernel(x: {0}*, out: {0}*, n: int64):
    out[0] = {2}
    out[1] = x[0]
    for i in range(n):
        out[0] = accumulate(out[0], x[i])
"""


AROUND = """
def kernel(x: {0}*, s: {0}* temporary, out: {0}*, n: int64):
    s[0] = {1}
    for i in range(n):
        for j in range(n):
            out[j] = x[j] {3} s[0]
        for j in range(n):
            out[n + j] = x[j] {4} s[0]
        s[0] = s[0] {3} out[i]
    out[100] = s[0]
"""


def literals(dtype: str) -> tuple[str, ...]:
    if dtype == "bool":
        return "False", "True", "^", "|"
    first, second = ("-0.0", "7.5") if is_float(dtype) else ("1", "3")
    said = "" if dtype in ("int64", "float64") else f" @ {dtype}"
    return first + said, second + said, "*", "-"


def values_of(dtype: str) -> Array:
    if is_float(dtype):
        return np.array([1.5, -0.0, -3.0, 1e30, np.inf, 0.0, np.nan, 2.0], dtype)
    return np.array([1, 3, 0, 7, 111, 2, 5, 1]).astype(dtype)


def parsed(text: str, dtype: str) -> Function:
    (function,) = parse_functions(text.format(dtype, *literals(dtype)))
    verify_functions((function,))
    return function


def fresh_of(function: Function) -> Names:
    own = {stmt.var.name for stmt in statements(function.body) if isinstance(stmt, Let | Set | Loop)}
    return Names({*own, *(param.name for param in function.params), *FIXED_NAMES})


def changed(function: Function) -> Function:
    """After the pass, and what follows it."""
    result = replace(function, body=mark_independent(keep_in_registers(function.body, fresh_of(function).fresh)))
    verify_functions((result,))
    return result


def left_natively(function: Function, x: Array, n: int) -> Array:
    prototype = Prototype(function.name, tuple(param.kind for param in function.params))
    loaded = link([compile_source(emit_source((function,)), [prototype])], {}, [function.name])
    arrays = arrays_for(function, x)
    args = [*(array.ctypes.data for array in arrays), n]
    ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(loaded.addresses[function.name])(*args)
    del loaded
    return arrays[-1]


def left_by_cpython(function: Function, x: Array, n: int) -> Array:
    arrays = arrays_for(function, x)
    with np.errstate(all="ignore"):
        bind_source(emit_source((function,)))[function.name](*arrays, n)
    return arrays[-1]


def bits(values: Array) -> bytes:
    """Those of numbers; a NaN is a NaN, whatever its sign."""
    return (np.where(np.isnan(values), np.nan, values) if is_float(values.dtype.name) else values).tobytes()


def arrays_for(function: Function, x: Array) -> list[Array]:
    _, *others = (param for param in function.params if isinstance(param, Buffer))
    return [x, *(np.full(128, 1).astype(buffer.dtype) for buffer in others)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", [FIBONACCI, NUMBER, ROWS], ids=["fibonacci", "number", "rows"])
def test_the_same_bits(text: str, dtype: str) -> None:
    before = parsed(text, dtype)
    after = changed(before)
    loops = [stmt for stmt in statements(after.body) if isinstance(stmt, Loop)]
    assert not any(isinstance(stmt, Store) and stmt.buffer.name != "out" for stmt in statements(after.body))
    assert all(loop.conflicts is None for loop in loops)
    x = values_of(dtype)
    for n in (0, 1, len(x)):
        want = left_by_cpython(before, x, n)
        for found in (left_by_cpython(after, x, n), left_natively(before, x, n), left_natively(after, x, n)):
            assert bits(found) == bits(want)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_a_sum_that_starts_at_anything_starts_once(dtype: str) -> None:
    """In whatever order it is added up."""
    before = parsed(ADDED, dtype)
    after = changed(before)
    x = np.arange(1000).astype(dtype)
    assert "independent(n)" in emit_source((after,)) and "independent" not in emit_source((before,))
    for n in (0, 1, 1000):
        np.testing.assert_array_equal(left_natively(after, x, n)[:2], left_natively(before, x, n)[:2])


# Random loops --------------------------------------------------------------------------------------------------------


FLOAT = "float64"
X, OUT = Buffer("x", FLOAT), Buffer("out", FLOAT)
A, B = (Buffer(name, FLOAT, is_temporary=True) for name in "ab")
WRITTEN = (A, B, OUT)
N, M = Var("n", INDEX), Var("m", INDEX)
LENGTH = 16


@dataclass
class Writer:
    """Writes statements that read and write a few elements over and over, in loops that may not run."""

    draw: random.Random
    loops: list[Var] = field(default_factory=list)
    names: list[Var] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str, dtype: str) -> Var:
        self.count += 1
        return Var(f"{stem}{self.count}", dtype)

    def place(self, buffer: Buffer) -> Expr:
        """Mostly one of two literals, or the same sum of sizes."""
        if self.draw.random() < 0.05:
            return add(self.draw.choice([*self.loops, M]), integer(self.draw.randrange(2)))
        return add(N, M) if buffer == B else integer(self.draw.randrange(2))

    def value(self, depth: int = 2) -> Expr:
        match self.draw.randrange(7 if depth else 3):
            case 0 if self.names:
                return self.draw.choice(self.names)
            case 0:
                return Const("0.5", FLOAT)
            case 1:
                return Load(X, self.draw.choice(self.loops) if self.loops else ZERO)
            case 2 | 3:
                buffer = self.draw.choice(WRITTEN)
                return Load(buffer, self.place(buffer))
        return apply(self.draw.choice([ADD, SUB, MUL]), self.value(depth - 1), self.value(depth - 1))

    def step(self, depth: int) -> Stmt:
        match self.draw.randrange(6):
            case 0:
                let = Let(self.name("v", FLOAT), self.value())
                self.names.append(let.var)
                return let
            case 1 | 2 if depth:
                var, names = self.name("i", INDEX), [*self.names]
                self.loops.append(var)
                body = tuple(self.step(depth - 1) for _ in range(self.draw.randrange(1, 5)))
                self.loops.pop()
                self.names = names
                sizes: list[Expr] = [N, M, ZERO]
                return Loop(var, self.draw.choice(sizes), body)
        buffer = self.draw.choice(WRITTEN)
        place = self.place(buffer)
        if self.draw.random() < 0.2:
            return Store(buffer, place, apply(ACCUMULATE, Load(buffer, place), self.value(1)))
        return Store(buffer, place, self.value())


def random_loops(seed: int) -> Function:
    writer = Writer(random.Random(seed))
    starts = [Store(buffer, place, writer.value()) for buffer in WRITTEN for place in (ZERO, integer(1), add(N, M))]
    writer.draw.shuffle(starts)
    body = [*starts[: writer.draw.randrange(4, 10)], *(writer.step(3) for _ in range(writer.draw.randrange(2, 7)))]
    body.append(Store(OUT, integer(3), apply(ADD, Load(A, ZERO), Load(B, add(N, M)))))
    return Function("kernel", (X, *WRITTEN, N, M), tuple(body), "")


def left_by(functions: tuple[Function, ...], exact: bool) -> Any:
    rng = np.random.default_rng(1)
    given = {buffer.name: rng.normal(size=LENGTH) for buffer in (X, *WRITTEN)}
    code, left = run(functions, "kernel", given, {"n": 3, "m": 2}, dict.fromkeys(given, LENGTH), (), exact)
    return code, {"out": left["out"]}


def outlined(function: Function, names: Names) -> tuple[Function, ...]:
    """All that may be a function becomes one."""
    found = outline(mark_independent(function.body), names, "always")
    params = (*function.params, *found.scalars, *found.copies)
    functions = (*found.functions, replace(function, body=found.body, params=params))
    verify_functions(functions)
    return functions


def test_nests_that_read_what_the_loop_around_them_carries() -> None:
    """Are functions, launched from it."""
    before = parsed(AROUND, FLOAT)
    names = fresh_of(before)
    functions = outlined(replace(before, body=keep_in_registers(before.body, names.fresh)), names)
    kernel = print_functions(functions[-1:])
    assert kernel.count("launch") == 2 and "carry = carry" in kernel
    given = {"x": np.arange(1.0, 5.0)}
    outcomes = [run(each, "kernel", given, {"n": 4}, {"out": 128}, (), True) for each in ((before,), functions)]
    assert not differs(*[(code, {"out": left["out"]}) for code, left in outcomes])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", range(0, 400, 50))
def test_random_loops(seeds: int) -> None:
    fired = 0
    for seed in range(seeds, seeds + 50):
        before = random_loops(seed)
        verify_functions((before,))
        names = fresh_of(before)
        after = replace(before, body=keep_in_registers(before.body, names.fresh))
        verify_functions((after,))
        fired += after != before
        problem = differs(left_by((after,), False), left_by((before,), False))
        assert not problem, f"{problem}\n{print_functions((before,))}\nbecomes\n{print_functions((after,))}"
        functions = outlined(after, names)
        problem = differs(left_by(functions, True), left_by((before,), True))
        assert not problem, f"{problem}\n{print_functions((after,))}\nbecomes\n{print_functions(functions)}"
    assert fired > 10


# Programs ------------------------------------------------------------------------------------------------------------


PROGRAMS: dict[str, Callable[[Node], Node]] = {
    "cumprod": lambda x: T.cumprod(x, axis=0),
    "of exponentials": lambda x: T.cumsum(T.cumprod(T.exp(x), axis=0), axis=0),
    "total": lambda x: T.cumprod(x, axis=0).sum(),
    "gradient": lambda x: graphc.grad((T.cumprod(x, axis=0) * x).sum(), x),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_recurrences_down_one_column(name: str, dtype: str) -> None:
    """The row that carries is one element."""
    if name == "gradient" and not is_float(dtype):
        return
    x = T.tensor(dtype, shape=(None, 1), name="x")
    made = PROGRAMS[name](x)
    found = watch(lambda: graphc.function([x], made, "python"))
    check_text(found)
    assert any(step.name == "keep_in_registers" and step.before != step.after for step in found.kernel)
    f, interpreted = graphc.function([x], made), graphc.function([x], made, "interpreted")
    assert "t0[0]" not in code(f.source)
    for rows in (0, 1, 9):
        value = np.random.default_rng(rows).normal(size=(rows, 1)) * 2
        value[5:7] = [[np.nan], [-0.0]] if is_float(dtype) and rows > 6 else value[5:7]
        value = value.astype(dtype)
        check_passes(found, [value])
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(f(value), interpreted(value), rtol=1e-5)
