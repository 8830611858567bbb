"""Generated source as numba's IR: an interpreter of the IR computes what CPython computes from the text."""

from __future__ import annotations

import builtins
import inspect
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from numba.core import ir

from graphc.codegen.frontend.parse import definitions_of, parsed
from graphc.codegen.special import plain, plain_shares
from graphc.errors import CompileError

NAMES: dict[str, Any] = {"range": range, "bool": bool, "abs": abs, "most": max, "inf": float("inf")}


def run(function: ir.FunctionIR, args: list[Any]) -> Any:
    """Carry out a function of numba's IR."""
    values: dict[str, Any] = {}
    here = 0
    while True:
        for statement in function.blocks[here].body:
            match statement:
                case ir.Assign():
                    values[statement.target.name] = computed(statement.value, values, args)
                case ir.SetItem():
                    at, index, value = (values[v.name] for v in (statement.target, statement.index, statement.value))
                    at[index] = value
                case ir.Jump():
                    here = statement.target
                case ir.Branch():
                    here = statement.truebr if values[statement.cond.name] else statement.falsebr
                case ir.Return():
                    return values[statement.value.name]
                case _:
                    raise AssertionError(statement)


def computed(value: Any, values: dict[str, Any], args: list[Any]) -> Any:
    match value:
        case ir.Arg():
            return args[value.index]
        case ir.Var():
            return values[value.name]
        case ir.Const() | ir.Global():
            return value.value
    return OPERATIONS[value.op](value, lambda variable: values[variable.name])


def following(iterator: Any) -> tuple[Any, bool]:
    value = next(iterator, None)
    return value, value is not None


OPERATIONS: dict[str, Callable[[Any, Callable[[ir.Var], Any]], Any]] = {
    "binop": lambda e, of: e.fn(of(e.lhs), of(e.rhs)),
    "unary": lambda e, of: e.fn(of(e.value)),
    "call": lambda e, of: of(e.func)(*map(of, e.args)),
    "getitem": lambda e, of: of(e.value)[of(e.index)],
    "cast": lambda e, of: of(e.value),
    "getiter": lambda e, of: iter(of(e.value)),
    "iternext": lambda e, of: following(of(e.value)),
    "pair_first": lambda e, of: of(e.value)[0],
    "pair_second": lambda e, of: of(e.value)[1],
}

SOURCES = {
    "nothing": "    return 0\n",
    "docstring": '    """Some words."""\n    return n\n',
    "return in a loop": "    for i in range(n):\n        if x[i] > 3: return i\n        x[i] = i\n    return -1\n",
    "break": "    for i in range(n):\n        if x[i] > 3: break\n        x[i] = x[i] * 2\n    return i + n\n",
    "break from inside": (
        "    for i in range(n):\n        for j in range(n):\n            if j > i: break\n"
        "            x[j] = x[j] + i\n        x[i] = -x[i]\n    return 0\n"
    ),
    "both return": "    if n > 2:\n        return 1\n    else:\n        return 2\n",
    "one goes on": "    if n > 2:\n        return 1\n    else:\n        for i in range(2): x[0] = i\n    return x[0]\n",
    "elif": "    if n == 0: y = 1\n    elif n == 1: y = -2\n    else: y = most(n, 3)\n    return y\n",
    "literals": "    y = -1\n    z = 1.0\n    x[0] = z * -0.0\n    x[1] = y + True\n    x[2] = -inf\n    return 1\n",
    "carried": (
        "    a = 0\n    b = 1\n    for i in range(n):\n        c = a + b\n        a = b\n        b = c\n    return a\n"
    ),
    "operators": (
        "    x[0] = (n + 2) // 3 % 5 * 2 - abs(~n) * +n\n    x[1] = (n & 3 | 4 ^ n) << 2 >> 1\n    return not n >= 2\n"
    ),
    "while": (
        "    y = n * 3\n    while y > 4:\n        y = y - 3\n        if y == 5: break\n        x[0] = y\n    return y\n"
    ),
    "choices": (
        "    y = 1 if n > 2 else x[n] if n > 1 else -1.5\n    return y * (2 if y > 1 else 3) + (n if n > 3 else 0)\n"
    ),
    "decisions": (
        "    a = n > 1 and x[n - 1] > 1 and n != 3\n    b = n == 2 or not a or x[5] > 0\n"
        "    if (a or n > 4) and b: return 1\n    return 2 if a and b else 3\n"
    ),
    "steps": "    for i in range(n, 0, -1):\n        x[i - 1] = n / i\n    return n != 1\n",
}


def both(text: str, n: int) -> None:
    source = f"def f(x, n):\n{text}"
    scope: dict[str, Any] = {}
    exec(source, dict(NAMES), scope)
    ours, theirs = [5.0 - i for i in range(6)], [5.0 - i for i in range(6)]
    wanted = scope["f"](theirs, n)
    found = run(parsed(definitions_of(source)["f"], NAMES).ir, [ours, n])
    assert (repr(found), repr(ours)) == (repr(wanted), repr(theirs)), source


@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
def test_the_ir_computes_what_the_text_says(text: str) -> None:
    for n in range(1, 6):
        both(text, n)


def drawn(rng: random.Random, depth: int, loops: int) -> list[str]:
    """The lines of random statements with loops and branches in each other."""
    lines = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("set", "store", "if", "for", "return", "break") if depth else ("set", "store", "break"))
        name, other = rng.choice("abc"), rng.choice("abcn")
        inner = [f"    {line}" for line in drawn(rng, depth - 1, loops + (kind == "for"))] if depth else []
        match kind:
            case "set":
                lines.append(f"{name} = {other} {rng.choice('+-*')} {rng.randint(-2, 2)}")
            case "store":
                lines.append(f"x[{name} % 6] = x[{other} % 6] * 0.5 + {name}")
            case "if":
                lines += [f"if {name} {rng.choice(('<', '>=', '=='))} {other}:", *inner]
                if rng.random() < 0.6:
                    lines += ["else:", *(f"    {line}" for line in drawn(rng, depth - 1, loops))]
            case "for":
                lines += [f"for {rng.choice('ijk')} in range({other} % 4):", *inner]
            case "return":
                lines += [f"if {name} == {other} + 1:", f"    return {name}"]
            case "break" if loops:
                lines += [f"if {name} > {other}:", "    break"]
            case _:
                lines.append(f"{name} = {name}")
    return lines


@pytest.mark.parametrize("seed", range(20))
def test_random_statements(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        lines = ["a = 1", "b = 2", "c = n", *drawn(rng, 3, 0), "return a + b + c"]
        both("".join(f"    {line}\n" for line in lines), rng.randint(0, 5))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("    assert n\n    return 0\n", "line 2: not a kernel's statement: assert n"),
        ("    return x.size\n", "line 2: not a kernel's expression: x.size"),
        ("    y = missing(n)\n    return y\n", "line 2: the name 'missing' is not defined"),
        ("    return 0 < n < 2\n", "not a kernel's expression"),
        ("    a = b = n\n    return a\n", "not a kernel's statement"),
        ("    return 'text'\n", "not a kernel's expression"),
        ("    x[0] = n\n", "without a return at its end"),
        ("    if n: return 1\n", "without a return at its end"),
        ("    break\n    return 0\n", "not a kernel's statement|outside loop"),
    ],
)
def test_what_no_kernel_has_is_refused(text: str, told: str) -> None:
    with pytest.raises(CompileError, match=told):
        parsed(definitions_of(f"def f(x, n):\n{text}")["f"], NAMES)


@pytest.mark.parametrize("module", [plain, plain_shares])
def test_special_functions_are_in_the_language(module: ModuleType) -> None:
    """Those of exported C functions, each of which is compiled where a program calls it."""
    known = {**vars(builtins), **vars(module)}
    written = [each for each in definitions_of(inspect.getsource(module)).values() if each.name[0] != "_"]
    assert len(written) > 10
    for each in written:
        assert parsed(each, known).size


def test_a_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(CompileError, match="line 2"):
        definitions_of("def f(x):\n    return (\n")
