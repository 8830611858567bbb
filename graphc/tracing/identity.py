"""Keys of functions: two functions of equal keys compute the same, now and later.

In: a function of a program. Out: a hashable key of its code and of all that the code can reach; None where some of that
may change: an array, an object, an attribute of a module that is neither graphc's nor NumPy's.

    identity(lambda x: x + 1.0) == identity(lambda x: x + 1.0)    from one line of a program, run twice
    identity(lambda x: table[x])                                  None: a list may have other elements tomorrow
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from functools import partial, reduce
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

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


class Changing(Exception):
    """Something that may change is within reach."""


def identity(function: Any) -> Hashable | None:
    """Return the key of a function; None where it may compute something else at another time."""
    try:
        return _key(function, ())
    except Changing:
        return None


def _key(value: Any, within: tuple[Any, ...]) -> Hashable:
    """The key of what a function reaches. within: the functions on the way to it, which may call each other."""
    if isinstance(value, VALUES):
        return "value", value, exact_kind(value)
    if type(value) is tuple:
        return ("tuple", *(_key(each, within) for each in value))
    if type(value) is partial:
        named = tuple(sorted(value.keywords.items()))
        return "partial", _key(value.func, within), _key(value.args, within), _key(named, within)
    if _is_constant(value):
        return "constant", id(value)
    if isinstance(value, Jitted) and value.build is value.__wrapped__:
        return "jitted", _key((value.__wrapped__, value.static.numbers, value.static.names), within)
    if isinstance(value, FunctionType):
        return "again" if value in within else _key_of_function(value, (*within, value))
    raise Changing


def _key_of_function(function: FunctionType, within: tuple[Any, ...]) -> Hashable:
    codes, scope = [*_codes(function.__code__)], function.__globals__
    names = {name for code in codes for name in code.co_names}
    if not OPEN.isdisjoint(names) or any(opmap["IMPORT_NAME"] in code.co_code[::2] for code in codes):
        raise Changing
    cells = [_key(_content(cell), within) for cell in function.__closure__ or ()]
    defaults = function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))
    found = [(name, _key(scope[name], within)) for name in sorted(names) if name in scope]
    return function.__code__, _key(defaults, within), *cells, *found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions that are written within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


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
