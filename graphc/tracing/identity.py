"""Keys of functions: two functions of equal keys compute the same, now and later.

In: a function of a program. Out: a hashable key of its code and of all that the code can reach; None where some of that
may change: an array, an object, an attribute of a module that is neither graphc's nor NumPy's.

    identity(lambda x: x + 1.0) == identity(lambda x: x + 1.0)    from one line of a program, run twice
    identity(lambda x: table[x])                                  None: a list may have other elements tomorrow

`closed` takes arrays and floats out of a function, so that two functions which differ by these alone have one key:

    found = closed(lambda p: p * data + 0.5)      found.arrays is [data], found.numbers is [0.5] if a name has it
    found.opened([tensor], [0.5])                 the function of the same code, with a tensor in place of `data`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dis import get_instructions
from functools import lru_cache, partial, reduce
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from graphc.arrays.array import OWN
from graphc.startup.record import record
from graphc.tracing.outside import codes
from graphc.tracing.traced import Jitted
from graphc.trees import exact_kind

CONSTANT = ("builtins", "graphc", "math", "numpy", "operator")
"""Packages whose modules, classes and functions never change."""
VALUES = (int, float, complex, bool, str, bytes, type(None), type(...), range, np.generic, np.dtype)
"""Types of values that never change."""
NAMED = (type, FunctionType, BuiltinFunctionType, type(np.sum))
"""Types of what a module may have under its own name."""
OPEN = frozenset("__import__ compile eval exec getattr globals input locals open random setattr vars".split())
"""Names by which code may reach what its other names do not tell, or gives another value each time."""
OF_MODULES = "__builtins__", "__file__", "__name__", "__package__"
"""Names of every module that a function may need without mentioning them."""
EMPTY = object()
"""The content of a cell that nothing has been put into."""


class Changing(Exception):
    """Something that may change is within reach."""


def identity(function: Any) -> Hashable | None:
    """Return the key of a function; None where it may compute something else at another time."""
    try:
        return _reach(function, (), None).key
    except Changing:
        return None


@record(eq=False)
class Closed:
    """A function without its arrays and floats. key: equal for functions that differ by these alone. make: the function
    of what is given in their places, which holds none of them."""

    key: Hashable
    arrays: Sequence[Any]
    numbers: Sequence[Any]
    make: Callable[[Given], Any]

    def opened(self, arrays: Sequence[Any], numbers: Sequence[Any]) -> Any:
        """Return the function, which takes these arrays and floats from around it."""
        return self.make(Given(arrays, numbers, {}))


def closed(function: Any) -> Closed | None:
    """Return a function, or a tuple of functions and values, without its arrays and floats; None where something else
    that it can reach may change."""
    found = Found([], [], {})
    try:
        key, make = _reach(function, (), found)
    except Changing:
        return None
    return Closed(key, found.arrays, found.numbers, make)


class Found(NamedTuple):
    """The arrays, each once, and the floats that a function reaches. places: of the arrays, by their ids."""

    arrays: list[Any]
    numbers: list[Any]
    places: dict[int, int]


class Given(NamedTuple):
    """The contents of the places of arrays and floats. functions: those that are being made, which may call each
    other."""

    arrays: Sequence[Any]
    numbers: Sequence[Any]
    functions: dict[int, Any]


class Reached(NamedTuple):
    """The key of a value, and the value for what is given in place of arrays and floats."""

    key: Hashable
    make: Callable[[Given], Any]


def _kept(value: Any, key: Hashable) -> Reached:
    return Reached(key, lambda given: value)


def _reach(value: Any, within: tuple[Any, ...], found: Found | None) -> Reached:
    """Follow what a function reaches. within: the functions on the way to it, which may call each other. found: the
    arrays and floats so far; None where these belong to the key, and arrays may not be there."""
    if found is not None and (own := _taken(value, found)) is not None:
        return own
    if value is EMPTY:
        return _kept(value, "empty")
    if isinstance(value, VALUES):
        return _kept(value, ("value", value, exact_kind(value)))
    if type(value) is tuple:
        parts = [_reach(each, within, found) for each in value]
        return Reached(
            ("tuple", *(each.key for each in parts)), lambda given: tuple([each.make(given) for each in parts])
        )
    if type(value) is partial:
        names = tuple(sorted(value.keywords))
        key, make = _reach((value.func, value.args, tuple(value.keywords[name] for name in names)), within, found)
        return Reached(("partial", names, key), lambda given: _partial(names, *make(given)))
    if _is_constant(value):
        return _kept(value, ("constant", id(value)))
    if isinstance(value, Jitted) and value.build is value.__wrapped__:
        known = value.__wrapped__, value.static.numbers, value.static.names
        return _kept(value, ("jitted", _reach(known, within, None).key))
    if isinstance(value, FunctionType):
        number = id(value)
        if value in within:
            return Reached("again", lambda given: given.functions[number])
        return _function(value, (*within, value), found)
    raise Changing


def _taken(value: Any, found: Found) -> Reached | None:
    """Return the place of an array or a float among those found; None for another value."""
    if type(value) in OWN and value.dtype.kind in "fiub":
        place = found.places.setdefault(id(value), len(found.arrays))
        if place == len(found.arrays):
            found.arrays.append(value)
        return Reached(("array", place), lambda given: given.arrays[place])
    if type(value) in (float, np.float64, np.float32):
        count = len(found.numbers)
        found.numbers.append(value)
        return Reached(("number", type(value)), lambda given: given.numbers[count])
    return None


def _partial(names: Sequence[str], function: Any, args: Any, values: Any) -> Any:
    return partial(function, *args, **dict(zip(names, values, strict=True)))


def _function(function: FunctionType, within: tuple[Any, ...], found: Found | None) -> Reached:
    names, is_open, writes = _named(function.__code__)
    if is_open or (found is not None and writes):
        raise Changing
    scope, keywords = function.__globals__, function.__kwdefaults__ or {}
    reached = [name for name in names if name in scope]
    contents = tuple(map(content_of, function.__closure__ or ()))
    values = contents, function.__defaults__, tuple(keywords.values()), tuple([scope[name] for name in reached])
    key, make = _reach(values, within, found)
    own = {name: scope[name] for name in OF_MODULES if name in scope}
    number, code, name, more = id(function), function.__code__, function.__name__, vars(function)
    order = tuple(keywords)

    def made(given: Given) -> Any:
        copy = FunctionType(code, {**own}, name, None, tuple([CellType() for _ in contents]))
        parts = make(given._replace(functions={**given.functions, number: copy}))
        for cell, content in zip(copy.__closure__ or (), parts[0], strict=True):
            if content is not EMPTY:
                cell.cell_contents = content
        copy.__defaults__, copy.__kwdefaults__ = parts[1], dict(zip(order, parts[2], strict=True)) or None
        copy.__globals__.update(zip(reached, parts[3], strict=True))
        vars(copy).update(more)
        return copy

    return Reached((code, order, tuple(reached), key), made)


@lru_cache(maxsize=1024)
def _named(code: CodeType) -> tuple[list[str], bool, bool]:
    """Return the names in a code and in those written within it; True where it may reach more than they tell; True
    where it writes to variables from around it."""
    inner = [*codes(code)]
    names = {name for each in inner for name in each.co_names}
    steps = [step for each in inner for step in get_instructions(each)]
    is_open = not OPEN.isdisjoint(names) or any(step.opname == "IMPORT_NAME" for step in steps)
    writes = any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        or (step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars)
        for step in steps
    )
    return sorted(names), is_open, writes


def content_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def _is_constant(value: Any) -> bool:
    """True for what a package of CONSTANT has: a module, a class or a function under its own name, a ufunc."""
    if isinstance(value, np.ufunc) or type(value).__module__ == "graphc.numpy.named":
        return True
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(home, str) or home.partition(".")[0] not in CONSTANT:
        return False
    if not isinstance(value, NAMED):
        return isinstance(value, ModuleType)
    found = reduce(lambda place, name: getattr(place, name, None), value.__qualname__.split("."), sys.modules.get(home))
    return found is value
