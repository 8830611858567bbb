"""Branches, and loops that are left early: what is compiled does what CPython does with the same source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphc.codegen.frontend.language import PRELUDE, bind_source
from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.server.client import CompileServer
from graphc.codegen.server.protocol import Request
from graphc.codegen.transform.forwarding import forward_stores
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.merge_rows import merge_rows
from graphc.codegen.transform.outline import outline
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.simplify import simplify
from graphc.loopir.ir import INDEX, Function, If, Launch, Let, Loop, Set, Var
from graphc.loopir.syntax import Names, emit_source
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.options import options
from graphc.startup.record import replace
from tests.support.compiled_source import load
from tests.support.loop_machine import run
from tests.support.loop_text import parse_function

Array = NDArray[Any]

TEXTS = {
    "elements": """
        for i in range(n):
            if x[i] > y[i]:
                out[i] = x[i]
            else:
                out[i] = y[i]
    """,
    "bools": """
        for i in range(n):
            if b[i]:
                if logical_not(b[i + 1]):
                    out[i] = x[i]
            else:
                if (b[i + 1] & b[i + 2]) | (k[i] == 3 @ int32):
                    out[i] = y[i]
    """,
    "one branch has nothing to do": """
        for i in range(n):
            if x[i] < y[i]:
                note 'nothing'
            else:
                out[i] = x[i]
        if n > 3:
            note 'nothing at all'
    """,
    "loops in branches": """
        if n > m:
            for j in range(m):
                out[j] = x[j] * y[j]
        else:
            total = {zero}
            for j in range(m):
                total = accumulate(total, x[j])
            out[m] = total
    """,
    "branches in loops": """
        total = {zero}
        for i in range(n):
            let row = i * m
            if b[i]:
                for j in range(m):
                    out[row + j] = x[row + j] * y[j]
            else:
                part = {zero}
                for j in range(m):
                    part = accumulate(part, x[row + j])
                total = total + part
                if part > {zero}:
                    out[row] = part
        out[n * m] = total
    """,
    "a search": """
        found = n
        for i in range(n):
            if x[i] > y[i]:
                found = i
                break
        for i in range(found):
            out[i] = x[i]
    """,
    "loops that are left in loops": """
        rows = 0
        for i in range(n):
            for j in range(m):
                if b[i * m + j]:
                    break
                out[i * m + j] = x[i * m + j]
            if b[i]:
                if y[i] > {zero}:
                    break
                else:
                    out[n * m + 1] = y[i]
            rows = i + 1
        out[n * m] = {kind}(rows)
    """,
    "either of both leaves": """
        for i in range(n):
            if b[i]:
                out[i] = x[i]
                break
            else:
                for j in range(m):
                    if x[j] > y[i]:
                        out[j] = y[i]
                    else:
                        break
                if k[i] == 2 @ int32:
                    break
            out[i] = y[i]
    """,
    "at once": """
        for i in range(n):
            out[i] = x[i]
            break
    """,
    "what a branch sets": """
        last = 0
        largest = x[0]
        for i in range(n):
            if x[i] > largest:
                largest = x[i]
                last = i
        out[0] = largest
        out[1] = {kind}(last)
    """,
    "what is not there": """
        for i in range(n):
            if m < 1000:
                let place = int64(k[i])
                out[i] = y[place]
            else:
                out[i] = y[1000000000 * (m + 1) + int64(k[i])]
    """,
    "a check in a branch": """
        for i in range(n):
            if b[i]:
                check 2: x[i] < {zero}
            out[i] = x[i]
    """,
}
SIZES = [(0, 0), (0, 3), (1, 0), (1, 1), (5, 2), (4, 40), (2, 300)]
LENGTH = 700


def function(name: str, kind: str) -> Function:
    params = f"x: {kind}*, y: {kind}*, b: bool*, k: int32*, out: {kind}*, n: int64, m: int64"
    zero = "0.0" if kind == "float64" else f"0.0 @ {kind}" if kind == "float32" else f"0 @ {kind}"
    return parse_function(f"def kernel({params}):\n{TEXTS[name].format(kind=kind, zero=zero)}")


def prototype(each: Function) -> Prototype:
    return Prototype(each.name, tuple(param.kind for param in each.params))


def names_of(function: Function) -> Names:
    own = {stmt.var.name for stmt in statements(function.body) if isinstance(stmt, Let | Set | Loop)}
    return Names({*own, *(param.name for param in function.params), *FIXED_NAMES, *PRELUDE})


def better(function: Function) -> Function:
    """After all passes but the one that makes functions."""
    body = merge_rows(simplify(function.body))
    body = mark_independent(simplify(forward_stores(body, names_of(function).fresh)))
    return replace(function, body=body)


def operands(kind: str, seed: int) -> list[Array]:
    """Small whole numbers, which add up to the same in any order, and what is no number."""
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-3, 4, LENGTH).astype(kind) for _ in "xy"]
    if seed % 2 and kind.startswith("float"):
        for array in arrays:
            array[rng.integers(0, LENGTH, LENGTH // 8)] = np.nan
            array[rng.integers(0, LENGTH, LENGTH // 30)] = np.inf
    bools = rng.random(LENGTH) < rng.choice([0.02, 0.5])
    return [*arrays, bools, rng.integers(0, 4, LENGTH).astype("int32"), np.zeros(LENGTH, kind)]


@pytest.fixture(autouse=True)
def inline() -> Iterator[None]:
    with options.change(compile="inline"):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float64", "float32", "int16"])
@pytest.mark.parametrize("name", TEXTS)
def test_compiled_branches_do_what_cpython_does(name: str, kind: str) -> None:
    plain = function(name, kind)
    assert any(isinstance(stmt, If) for stmt in statements(plain.body)) or name == "at once"
    forms = [plain, better(plain)]
    verify_functions(forms[:1])
    verify_functions(forms[1:])
    sources = [emit_source([form]) for form in forms]
    python, *calls = (bind_source(source)["kernel"] for source in sources)
    calls += [partial(load(source, prototype(plain)).call, "kernel") for source in sources]
    for seed, (n, m) in enumerate(size for size in SIZES for _ in range(3)):
        given = operands(kind, seed)
        want = [each.copy() for each in given]
        code = python(*want, n, m) or 0
        for call in calls:
            got = [each.copy() for each in given]
            assert (call(*got, n, m) or 0) == code
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_the_lean_numba_compiles_them() -> None:
    server = CompileServer()
    try:
        for name in TEXTS:
            form = function(name, "float64")
            assert server.compile(Request(emit_source([form]), (prototype(form),), (), (), (), 1, False))
        assert server._lean
    finally:
        server.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_functions_of_their_own_do_the_same(name: str) -> None:
    """With all that may be a function; the machine faults where memory is read that is not there."""
    plain = function(name, "float64")
    form = better(plain)
    found = outline(form.body, names_of(form), "always")
    params = (*form.params, *found.scalars, *found.copies)
    outlined = (*found.functions, replace(form, params=params, body=found.body))
    verify_functions(outlined)
    lower_source(emit_source(outlined), [prototype(each) for each in outlined], {}, False)
    for n, m in SIZES[:-1]:
        given = dict(zip(("x", "y", "b", "k", "out"), operands("float64", n), strict=True))
        limits = dict.fromkeys(given, LENGTH)
        want, got = (
            run(functions, "kernel", given, {"n": n, "m": m}, limits, (), True) for functions in ((plain,), outlined)
        )
        assert want[0] == got[0]
        assert {place: value.residue for place, value in want[1]["out"].items()} == {
            place: value.residue for place, value in got[1]["out"].items()
        }


def test_nests_of_a_branch_are_launched_in_it() -> None:
    form = better(function("loops in branches", "float64"))
    found = outline(form.body, names_of(form), "auto")
    (branches,) = found.body
    assert isinstance(branches, If)
    assert [type(stmt) for stmt in branches.then] == [Launch]
    assert any(isinstance(stmt, Launch) for stmt in branches.orelse) and len(found.functions) == 2


def test_large_branches_become_functions() -> None:
    """Those of a kernel of many loops, wherever these stand; and long runs of scalars in a branch."""
    loop = "for i in range(n):\n            out[i] = out[i] * 2.0 + out[i + {0}]\n        "
    many = "".join(loop.format(number) for number in range(7))
    text = f"def kernel(out: float64*, n: int64):\n    if n > 2:\n        {many}\n    else:\n        {many}\n"
    form = parse_function(text)
    found = outline(form.body, names_of(form), "auto")
    assert not any(isinstance(stmt, Loop) for stmt in statements(found.body))
    chain = "".join(f"let a{number} = a{number - 1} * 2.0 + 1.0\n        " for number in range(1, 100))
    text = (
        f"def kernel(out: float64*, n: int64):\n    if n > 2:\n        let a0 = out[0]\n        {chain}out[0] = a99\n"
    )
    form = parse_function(text)
    assert len(outline(form.body, names_of(form), "auto").functions) == 2


def test_what_is_printed_of_a_branch_without_statements() -> None:
    assert emit_source([function("one branch has nothing to do", "float64")]).count("        pass\n") == 2
    empty = Function("f", (Var("n", INDEX),), function("a search", "float64").body[:0], "")
    assert "return 0" in emit_source([empty])


SUMS = """
def kernel(x: float64*, out: float64*, n: int64):
    if n > 2:
        error = 0.0
        total = 0.0
        for block in independent(blocks(n, 256)):
            part = 0.0
            for r in independent(block_length(n, block, 256)):
                part = accumulate(part, x[block * 256 + r])
            error = accumulate(error, sum_error(total, part))
            total = accumulate_in_order(total, part)
        out[0] = add_error(total, error)
    else:
        error2 = 0.0
        total2 = 0.0
        for block2 in independent(blocks(n, 256)):
            part2 = 0.0
            for r2 in independent(block_length(n, block2, 256)):
                let twice = 2.0 * x[block2 * 256 + r2]
                part2 = accumulate(part2, twice * twice)
            error2 = accumulate(error2, sum_error(total2, part2))
            total2 = accumulate_in_order(total2, part2)
        out[0] = add_error(total2, error2)
"""


def test_sums_stand_in_both_branches() -> None:
    form = parse_function(SUMS)
    verify_functions([form])
    source = emit_source([form])
    loaded, python = load(source, prototype(form)), bind_source(source)["kernel"]
    for n in (0, 1, 2, 3, 255, 256, 600):
        x = np.arange(600.0)
        outs = np.zeros((2, 1))
        loaded.call("kernel", x, outs[0], n)
        python(x, outs[1], n)
        assert outs[0] == outs[1] == (x[:n].sum() if n > 2 else 4 * np.square(x[:n]).sum())
