"""Changes of a traced function outside of itself: random generators that draw, and NumPy arrays that it writes to.
Both would happen once, while the function is traced, and not in each call.

    rng, counts = np.random.default_rng(0), np.zeros(3)

    @graphc.jit
    def noisy(x):
        counts[0] += 1                    GraphTypeError: counts was written to while noisy was traced
        return x + rng.normal(size=3)     GraphTypeError: rng drew random numbers while noisy was traced

In: a function, before it is traced and after. Out: nothing, or the error with the name and the line. Generators and
arrays are known by what the function can reach: its globals, its closure, its arguments, the attributes of objects. A
generator that the function makes, `np.random.default_rng(0)`, draws the same in each call anyway.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dis import Instruction, get_instructions
from functools import partial
from pickle import dumps, loads
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from zlib import crc32

import numpy as np

from graphc.errors import GraphTypeError, drawn_error
from graphc.ir.source_lines import written
from graphc.startup.record import record

MOST = 400
"""The most values that are looked at."""
PACKAGES = ("graphc", "numpy", "scipy", "builtins")
"""Packages whose functions and objects are not looked into."""
PLAIN = (int, float, complex, bool, str, bytes, type(None), type)
SMALL = 1 << 20
"""The bytes of an array up to which it is always compared; a larger one if some code in reach has an instruction or a
name that writes."""
LARGE = 1 << 28
"""The bytes of the largest array that is compared."""
WRITING = {
    "at", "copyto", "fill", "fill_diagonal", "flat", "itemset", "out", "partition", "place", "put", "put_along_axis",
    "putmask", "setfield", "shuffle", "sort",
}  # fmt: skip
"""Names of functions and of arguments by which programs write to arrays."""


@record(eq=False)
class Source:
    """A random generator or an array within reach. name: what the program calls it; code: the code that names it;
    state: its state before the function was traced."""

    name: str
    code: CodeType | None
    value: Any
    state: Any


def state_of(value: Any) -> Any:
    """The state of a generator, or a checksum of an array."""
    if not isinstance(value, np.ndarray):
        return dumps(value)
    return value.shape, crc32(value.data if value.flags.c_contiguous else value.tobytes())


def sources(function: Any, args: Sequence[Any]) -> list[Source]:
    """The random generators and the arrays that a function can reach."""
    found, arrays, functions = within_reach(function, args)
    large = [each for each in arrays if each.value.nbytes > SMALL]
    compared = arrays if large and any(map(may_write, functions)) else [each for each in arrays if each not in large]
    return [as_now(each) for each in (*found, *compared)]


def as_now(each: Source) -> Source:
    """A generator or an array with its state as it is now."""
    return Source(each.name, each.code, each.value, state_of(each.value))


def within_reach(function: Any, args: Sequence[Any]) -> tuple[list[Source], list[Source], list[CodeType]]:
    """The random generators, the arrays and the codes that a function can reach, without states."""
    numpys = sys.modules.get("numpy.random")
    kinds: tuple[type, ...] = (random.Random,)
    if numpys is not None:
        kinds += numpys.Generator, numpys.RandomState
    pending: list[tuple[str, CodeType | None, Any]] = [
        ("its generator", None, function),
        *(("an argument", None, each) for each in args),
    ]
    found, arrays, seen, seeded = list[Source](), list[Source](), set[int](), set[int]()
    functions = list[CodeType]()
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
            found.append(Source(name, code, owner, None))
        elif isinstance(value, np.ndarray):
            if value.dtype.kind in "biuf" and value.flags.writeable and value.nbytes <= LARGE:
                arrays.append(Source(name, code, value, None))
        else:
            functions += codes(value.__code__) if isinstance(value, FunctionType) else ()
            pending += reached(name, code, value)
    return [each for each in found if id(each.value) not in seeded], arrays, functions


def may_write(code: CodeType) -> bool:
    """Tell whether a code has an instruction or a name by which programs write to arrays."""
    named = {name for each in code.co_consts if isinstance(each, tuple) for name in each}
    return not WRITING.isdisjoint(named) or any(map(is_write, get_instructions(code)))


def is_write(each: Instruction) -> bool:
    """Tell whether an instruction may write to an array, or names what does."""
    is_change = each.opname == "BINARY_OP" and each.argrepr[-1:] == "="
    return is_change or each.opname in ("STORE_SUBSCR", "STORE_SLICE") or str(each.argval) in WRITING


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
            elif name == "random":  # imported within the function
                yield name, each, random


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions that are written in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes(part)


def check_unchanged(title: str, found: Sequence[Source]) -> None:
    """Raise GraphTypeError if a generator has drawn, or an array was written to, since it was found."""
    for each in found:
        if state_of(each.value) == each.state:
            continue
        is_array = isinstance(each.value, np.ndarray)
        line = line_of(each)
        if is_array:
            raise GraphTypeError(
                f"{each.name} was written to while {title} was traced{line}, and a call would not do so again: it is "
                "an array from outside of the function; write to a copy of it, which the function makes, and return it"
            )
        raise drawn_error(
            f"{each.name} drew random numbers while {title} was traced{line}, and each call would compute with the "
            "same ones; draw outside and give them as an argument, use graphc.random with a key, or make the "
            "generator within, as np.random.default_rng(0)"
        )


def undo(found: Sequence[Source]) -> None:
    """Set generators back to their former states."""
    for each in found:
        value = each.value
        if isinstance(value, np.ndarray):
            continue
        former = loads(each.state)
        if isinstance(value, random.Random):
            value.setstate(former.getstate())
        elif hasattr(value, "bit_generator"):
            value.bit_generator.state = former.bit_generator.state
        else:
            value.set_state(former.get_state(legacy=False))


def line_of(source: Source) -> str:
    """ " (FILE:LINE)", where the program names a value: a line with one of some instructions before others."""
    if source.code is None:
        return ""
    root = source.name.partition(".")[0].partition("[")[0]
    named, storing = list[int](), set[int]()
    for each in (each for code in codes(source.code) for each in get_instructions(code)):
        line = each.positions and each.positions.lineno
        if line and each.argval == root:
            named.append(line)
        if line and is_write(each):
            storing.add(line)
    lines = [line for line in named if line in storing] or named
    return f" ({written(source.code.co_filename, lines[0])})" if lines else ""
