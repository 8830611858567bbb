"""Changes of a traced function outside of itself: random generators that draw, NumPy arrays that it writes to, names,
lists and objects that it changes (places.py). They happen once, while the function is traced, and not in each call.

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
from collections.abc import Callable, Iterator, Sequence
from dis import Instruction, get_instructions
from functools import partial
from pickle import dumps, loads
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from zlib import crc32

import numpy as np

from graphc.errors import GraphTypeError, drawn_error
from graphc.ir.node import INPUT, SIZE, Node, size_owner
from graphc.ir.source_lines import TRACE, warn_user, written
from graphc.ir.walk import nodes_of
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record
from graphc.tracing.places import CONTAINERS, ITERATORS, Place, attributes, differing, only_collects, places_of

MOST = 400
"""The most values that are looked at."""
PACKAGES = ("graphc", "numpy", "scipy", "builtins")
"""Packages whose functions and objects are not looked into."""
OPEN = ("__main__", "argparse", "collections", "types")
"""Modules of Python whose objects hold values of a program."""
PLAIN = (int, float, complex, bool, str, bytes, type(None))
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

CHANGING = WRITING | {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "next", "pop", "popitem", "popleft",
    "remove", "reverse", "send", "setdefault", "update",
}  # fmt: skip
"""Names of functions by which programs change containers, too."""
STORES = "STORE_SUBSCR", "STORE_SLICE"
BINDS = "STORE_GLOBAL", "STORE_ATTR", "STORE_DEREF"
"""Instructions that write to arrays, and that bind names."""


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


@record(eq=False)
class Reach:
    """All that a function can reach. generators, arrays: without their states. codes: of its functions. scopes: the
    names of their modules, by identity. places: names, lists and objects that it may change. functions: of the
    program."""

    generators: list[Source]
    arrays: list[Source]
    codes: list[CodeType]
    scopes: dict[int, dict[str, Any]]
    places: list[Place]
    functions: list[FunctionType]


def sources(reach: Reach) -> list[Source]:
    """The random generators and the arrays that a function can reach, as they are now."""
    arrays = reach.arrays
    large = [each for each in arrays if each.value.nbytes > SMALL]
    compared = arrays if large and any(map(may_write, reach.codes)) else [each for each in arrays if each not in large]
    return [as_now(each) for each in (*reach.generators, *compared)]


def as_now(each: Source) -> Source:
    """A generator or an array with its state as it is now."""
    return Source(each.name, each.code, each.value, state_of(each.value))


def within_reach(function: Any, args: Sequence[Any]) -> Reach:
    """All that a function can reach."""
    numpys = sys.modules.get("numpy.random")
    kinds: tuple[type, ...] = (random.Random,)
    if numpys is not None:
        kinds += numpys.Generator, numpys.RandomState
    pending: list[tuple[str, CodeType | None, Any]] = [
        ("its generator", None, function),
        *(("an argument", None, each) for each in args),
    ]
    found, arrays, seen, seeded = list[Source](), list[Source](), set[int](), set[int]()
    all_codes, scopes, places = list[CodeType](), dict[int, dict[str, Any]](), list[Place]()
    functions = list[FunctionType]()
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
            is_own = is_programs(value)
            called = getattr(value, "__init__", None) if isinstance(value, type) else value
            if isinstance(called, FunctionType) and is_own:
                scopes[id(called.__globals__)] = called.__globals__
                functions.append(called)
                all_codes += codes(called.__code__) if called is value else ()
            places += places_of(name, code, value) if is_own else ()
            pending += reached(name, code, value)
    return Reach([each for each in found if id(each.value) not in seeded], arrays, all_codes, scopes, places, functions)


def replace_within_reach(function: Any, args: Sequence[Any]) -> None:
    """Let NumPy's functions, and Python's, be others in the modules of a function that is to be traced, and of those of
    the program that it can reach."""
    HOOKS.creations.replace_in(function)
    if TRACE.depth == 1:
        for scope in within_reach(function, args).scopes.values():
            HOOKS.creations.replace_names(scope)


def is_programs(value: Any) -> bool:
    """True for a function, an object, a class or a module of a program, and for a container."""
    if isinstance(value, CONTAINERS + ITERATORS):
        return True
    home = str(value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None))
    root = home.partition(".")[0]
    return root in OPEN or not (root in PACKAGES or root in sys.stdlib_module_names)


def may_write(code: CodeType) -> bool:
    """Tell whether a code has an instruction or a name by which programs write to arrays."""
    named = {name for each in code.co_consts if isinstance(each, tuple) for name in each}
    return not WRITING.isdisjoint(named) or any(map(is_write, get_instructions(code)))


def is_write(each: Instruction) -> bool:
    """Tell whether an instruction may write to an array, or names what does."""
    is_change = each.opname == "BINARY_OP" and each.argrepr[-1:] == "="
    return is_change or each.opname in STORES or str(each.argval) in WRITING


def reached(name: str, code: CodeType | None, value: Any) -> Iterator[tuple[str, CodeType | None, Any]]:
    """Yield the values that a value leads to: names, the code that names each, values."""
    home = getattr(value, "__module__", None)
    if isinstance(value, FunctionType):
        if str(home).partition(".")[0] in PACKAGES:
            wrapped = getattr(value, "__wrapped__", None)
            return iter(() if wrapped is None else [(name, code, wrapped)])
        return within(value)
    if isinstance(value, MethodType):
        return iter([(name, code, value.__func__), ("self", getattr(value.__func__, "__code__", None), value.__self__)])
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
    if isinstance(value, ModuleType):
        names = code.co_names if code is not None and is_programs(value) else ()
        scope = vars(value)
        return iter([(f"{name}.{key}", code, scope[key]) for key in names if key in scope])
    if not is_programs(value):
        return iter(())
    own = [(name, code, method) for method in methods_of(type(value), code.co_names if code is not None else ())]
    return iter([*own, *((f"{name}.{key}", code, each) for key, each in attributes(value).items())])


def methods_of(kind: type, names: Sequence[str]) -> Iterator[FunctionType]:
    """Yield the methods of a class that have one of the names, and that which calls an object."""
    for name in ("__call__", *names):
        found = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
        found = getattr(found, "fget", getattr(found, "__func__", found))  # of properties, static and class methods
        if isinstance(found, FunctionType):
            yield found


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


def changed_places(
    title: str, places: Sequence[Place], before: Sequence[Any], text: str, again: Callable[[], str]
) -> set[tuple[int, Any]]:
    """Return the places that each trace changes, as ids of owners and keys; their contents are those after the trace.
    before: what the places held before it. text: of the graph that was traced. again: trace anew and return the text.
    Where that differs, the graph depends on what has changed: GraphTypeError. Places that change again are told in a
    warning. Those that do not are caches, which a call need not fill again."""
    after = [place.read() for place in places]
    changed = [k for k, pair in enumerate(zip(before, after, strict=True)) if differing(*pair)]
    if not changed:
        return set()
    problem: Exception | None = None
    try:
        depends = again() != text
    except Exception as error:  # a tensor of the first trace is used in the second one
        depends, problem = True, error
    last = [place.read() for place in places]
    for k in range(len(places)):
        if differing(after[k], last[k]) or (depends and k in changed):
            places[k].write(before[k] if depends else after[k])
    if depends:
        name, line = named_change(places, before, after, changed)
        raise GraphTypeError(
            f"{name} was changed while {title} was traced{line}, and what it computes depends on that, so that calls "
            "would not do as the program says; give the value as an argument and return the new one"
        ) from problem
    moving = [k for k in changed if differing(after[k], last[k])]
    told = [k for k in moving if not only_collects(before[k], after[k]) and not isinstance(places[k].owner, ITERATORS)]
    if told:
        name, line = named_change(places, before, after, told)
        warn_user(
            f"{name} was changed while {title} was traced{line}: that happens in the trace alone, not in each call; "
            "graphc.debug.callback calls a function each time",
            RuntimeWarning,
        )
    return {(id(places[k].owner), places[k].key or key) for k in moving for key in differing(after[k], last[k])}


def named_change(
    places: Sequence[Place], before: Sequence[Any], after: Sequence[Any], changed: Sequence[int]
) -> tuple[str, str]:
    """The name of the first of some places that changed, and the line."""
    k = min(changed, key=lambda k: only_collects(before[k], after[k]))
    place = places[k]
    key = min(differing(before[k], after[k]), key=str)
    return place.named(key), line_of(Source(f"{place.name}.{key}", place.code, None, None))


def undo(found: Sequence[Source], reach: Reach | None = None, before: Sequence[Any] = ()) -> None:
    """Set generators back to their former states, and what a function can reach to what it held before."""
    for place, content in zip(reach.places, before, strict=True) if reach is not None else ():
        place.write(content)
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
    last = source.name.rpartition(".")[2]
    named, storing, binding = list[int](), set[int](), list[int]()
    for each in (each for code in codes(source.code) for each in get_instructions(code)):
        line = each.positions and each.positions.lineno
        if line and each.argval in (root, last):
            named.append(line)
            binding += [line] * (each.argval == last and each.opname in BINDS)
        if line and (is_write(each) or str(each.argval) in CHANGING):
            storing.add(line)
    lines = binding or [line for line in named if line in storing] or named
    return f" ({written(source.code.co_filename, lines[0])})" if lines else ""


def others_in(results: Sequence[Node], variables: Sequence[Node]) -> list[Node]:
    """The variables outside of `variables` whose values or sizes the results need."""
    owners = (size_owner(node) if node.op is SIZE else node for node in nodes_of(results))
    return [each for each in owners if each is not None and each.op is INPUT and each not in set(variables)]
