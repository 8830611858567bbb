"""Random generators of the program's that draw while a function is traced: each call would have the same numbers.

    rng = np.random.default_rng(0)

    @graphc.jit
    def noisy(x):
        return x + rng.normal(size=3)     GraphTypeError: rng drew while noisy was traced

In: a function, before it is traced and after. Out: nothing, or the error with the generator's name and line. A
generator is known by what the function can reach: its globals, its closure, its arguments, the attributes of objects.
One that the function makes, `np.random.default_rng(0)`, draws the same in each call anyway.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dis import get_instructions
from functools import partial
from pickle import dumps
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.source_lines import written
from graphc.startup.record import record

MOST = 400
"""The most values that are looked at."""
PACKAGES = ("graphc", "numpy", "scipy", "builtins")
"""Packages whose functions and objects are not looked into."""
PLAIN = (int, float, complex, bool, str, bytes, type(None), type)


@record(eq=False)
class Source:
    """A random generator within reach. name: what the program calls it; code: the code that names it; state: its state
    before the function was traced."""

    name: str
    code: CodeType | None
    generator: Any
    state: bytes


def sources(function: Any, args: Sequence[Any]) -> list[Source]:
    """The random generators that a function can reach."""
    numpys = sys.modules.get("numpy.random")
    kinds: tuple[type, ...] = (random.Random,)
    if numpys is not None:
        kinds += numpys.Generator, numpys.RandomState
    pending: list[tuple[str, CodeType | None, Any]] = [
        ("its generator", None, function),
        *(("an argument", None, each) for each in args),
    ]
    found, seen, seeded = list[Source](), set[int](), set[int]()
    while pending and len(seen) < MOST:
        name, code, value = pending.pop()
        if isinstance(value, PLAIN) or id(value) in seen:
            continue
        seen.add(id(value))
        if value is random:
            value = random.seed if code is not None and "seed" in code.co_names else random.random
        owner = value.__self__ if isinstance(value, (BuiltinFunctionType, MethodType)) else value
        if isinstance(owner, kinds):
            if owner is not value and value.__name__ == "seed":
                seeded.add(id(owner))
            found.append(Source(name, code, owner, dumps(owner)))
        else:
            pending += reached(name, code, value)
    return [each for each in found if id(each.generator) not in seeded]


def reached(name: str, code: CodeType | None, value: Any) -> Iterator[tuple[str, CodeType | None, Any]]:
    """Yield the values that a value leads to: names, the code that names each, values."""
    home = getattr(value, "__module__", None)
    if isinstance(value, FunctionType):
        if str(home).partition(".")[0] in PACKAGES:
            wrapped = getattr(value, "__wrapped__", None)
            return iter(() if wrapped is None else [(name, code, wrapped)])
        return within(value)
    if isinstance(value, MethodType):
        return iter([(name, code, value.__func__), ("self", None, value.__self__)])
    if isinstance(value, partial):
        return iter(
            [(name, code, value.func), *((name, code, each) for each in (*value.args, *value.keywords.values()))]
        )
    if isinstance(value, (list, tuple)):
        return ((name, code, each) for each in value[:MOST])
    if isinstance(value, dict):
        return ((f"{name}[{key!r}]", code, each) for key, each in [*value.items()][:MOST])
    if hasattr(value, "__wrapped__"):
        return iter([(name, code, value.__wrapped__)])
    if isinstance(value, ModuleType) or str(home).partition(".")[0] in PACKAGES:
        return iter(())
    called = vars(type(value)).get("__call__")
    own = [(name, code, called)] if isinstance(called, FunctionType) else []
    return iter([*own, *((f"{name}.{key}", code, each) for key, each in [*getattr(value, "__dict__", {}).items()])])


def within(function: FunctionType) -> Iterator[tuple[str, CodeType | None, Any]]:
    """The contents of a function's closure, its defaults, and the globals that its code names."""
    code, scope = function.__code__, function.__globals__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, code, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default argument", code, value
    for each in codes(code):
        for name in each.co_names:
            if name in scope:
                yield name, each, scope[name]


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions that are written in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes(part)


def check_none_drew(title: str, found: Sequence[Source]) -> None:
    """Raise GraphTypeError if one of the generators has drawn since it was found."""
    for each in found:
        if dumps(each.generator) != each.state:
            raise GraphTypeError(
                f"{each.name} drew random numbers while {title} was traced{line_of(each)}, and each call would compute "
                "with the same ones; draw outside and give them as an argument, use graphc.random with a key, or make "
                "the generator within, as np.random.default_rng(0)"
            )


def line_of(source: Source) -> str:
    """ " (FILE:LINE)", where the program names the generator."""
    if source.code is None:
        return ""
    root = source.name.partition(".")[0].partition("[")[0]
    lines = [
        each.positions.lineno
        for code in codes(source.code)
        for each in get_instructions(code)
        if each.argval == root and each.positions is not None and each.positions.lineno is not None
    ]
    return f" ({written(source.code.co_filename, lines[0])})" if lines else ""
