"""Values outside of a traced function that its code names. Native code compares them at each call with the trace's.

    rate = 0.1

    @graphc.jit
    def step(x):
        return x * rate        Outside("rate", globals, "rate", Known(0.1, BITS))

    rate = 0.2                 the next call traces `step` anew

Numbers and text are compared by value, lists, tuples and dicts by their items, arrays and other objects by identity,
and objects of a program also by the attributes that its code names. Functions, classes and modules under their own name
are not compared, nor are long containers and the elements of arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from graphc.codegen.call.recipes import BITS, DICT, EQUAL, FIELDS, LIST, SAME, TUPLE, Known, Outside
from graphc.tracing.outside import Reach, codes, is_programs, methods_of
from graphc.tracing.places import MISSING, attributes

MOST = 256
"""The most values that are compared."""
LONGEST = 64
"""The items of the longest list or dict that is compared."""
TEXTS = int, str, bytes


def watched(
    function: Any, args: Sequence[Any], reach: Reach, changed: Collection[tuple[int, Any]]
) -> tuple[Outside, ...]:
    """Return the values that a function reaches by its globals, its closure and objects. args: its static arguments.
    changed: what it changes itself (`changed_places`), which is not compared."""
    names = frozenset(name for code in reach.codes for name in code.co_names)
    found = Watch(names, changed)
    found.follow(function, "the function")
    for each in args:
        found.follow(each, "an argument")
    return tuple(found.roots)


class Watch:
    """The values found so far. names: in the code of all functions within reach."""

    def __init__(self, names: Collection[str], changed: Collection[tuple[int, Any]]) -> None:
        self.names = sorted(names)
        self.changed = changed
        self.roots: list[Outside] = []
        self.seen: dict[int, Any] = {}
        self.count = 0

    def follow(self, value: Any, name: str) -> None:
        """Take what a value itself leads to, which is not looked up anywhere."""
        known = self.known(value, name)
        if known is not None and known.parts:
            self.roots.append(Outside(name, value, None, known))

    def known(self, value: Any, name: str) -> Known | None:
        """Return a value with the way that it is compared; None for one that is not."""
        kind: type = type(value)
        if kind in TEXTS or kind is float:
            return self.counted(value, BITS if kind is float else EQUAL)
        if isinstance(value, type(None) | bool | complex | np.generic | np.ndarray):
            return self.counted(value, SAME)
        if id(value) in self.seen:
            return None
        self.seen[id(value)] = value
        if isinstance(value, list | tuple):
            return self.items(value, dict(enumerate(value)), LIST if isinstance(value, list) else TUPLE, name)
        if kind is dict:
            return self.items(value, value, DICT, name)
        if kind in (set, frozenset):
            is_known = len(value) <= LONGEST and {type(each) for each in value} <= {*TEXTS}
            return self.counted(kind(value), EQUAL) if is_known and (id(value), None) not in self.changed else None
        if self.is_callable(value, name):
            return None if getattr(value, "__name__", "") == name.rpartition(".")[2] else self.counted(value, SAME)
        if not is_programs(value) or isinstance(kind.__getattribute__, FunctionType):
            return None
        return self.object(value, name)

    def is_callable(self, value: Any, name: str) -> bool:
        """Follow a function, what wraps one, or a function in C; False for anything else."""
        if isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, MethodType):
            self.follow(value.__func__, name)
            self.follow(value.__self__, "self")
        elif isinstance(value, partial):
            for each in (value.func, *value.args, *value.keywords.values()):
                self.follow(each, name)
        elif hasattr(value, "__wrapped__"):
            self.follow(value.__wrapped__, name)
        else:
            return isinstance(value, BuiltinFunctionType | np.ufunc)
        return True

    def counted(self, value: Any, how: int) -> Known | None:
        self.count += 1
        return Known(value, how) if self.count <= MOST else None

    def items(self, value: Any, items: dict[Any, Any], how: int, name: str) -> Known | None:
        """A container, whose items are all compared."""
        if len(items) > LONGEST or (id(value), None) in self.changed:
            return None
        if any((id(value), key) in self.changed for key in items):
            return None
        parts = {key: self.known(each, f"{name}[{key!r}]") for key, each in items.items()}
        # what has no comparison of its own is compared by its identity
        return Known(value, how, {key: part or Known(items[key], SAME) for key, part in parts.items()})

    def object(self, value: Any, name: str) -> Known:
        """An object, class or module, by the attributes that the code names."""
        own = attributes(value) if not isinstance(value, ModuleType) else vars(value)
        kinds = () if isinstance(value, type | ModuleType) else type(value).__mro__
        for kind in kinds:
            if is_programs(kind):
                own = {**attributes(kind), **own}
        if not isinstance(value, ModuleType):
            for each in methods_of(value if isinstance(value, type) else type(value), self.names):
                self.function(each)
        parts = {
            key: part
            for key in self.names
            if key in own and (id(value), key) not in self.changed
            if (part := self.known(own[key], f"{name}.{key}")) is not None
        }
        return Known(value, FIELDS, parts)

    def function(self, function: FunctionType) -> None:
        """Take the globals that a function names, its closure and its defaults."""
        if id(function) in self.seen and self.seen[id(function)] is None:
            return
        self.seen[id(function)] = None
        if not is_programs(function):
            if hasattr(function, "__wrapped__"):
                self.follow(function.__wrapped__, function.__name__)
            return
        scope = function.__globals__
        for name in dict.fromkeys(name for code in codes(function.__code__) for name in code.co_names):
            if name in scope and (id(scope), name) not in self.changed:
                known = self.known(scope[name], name)
                if known is not None:
                    self.roots.append(Outside(name, scope, name, known))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if (id(cell), None) not in self.changed and (content := content_of(cell)) is not MISSING:
                known = self.known(content, name)
                if known is not None:
                    self.roots.append(Outside(name, cell, None, Known(cell, FIELDS, {"cell_contents": known})))
        for each in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.follow(each, "a default argument")


def content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
