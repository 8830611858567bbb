"""Modules that are imported when one of their names is first asked for, and values made when they are: a start pays
only for what it uses.

In: a package, and for each module within it the names that it gives the package. Out: the package's `__getattr__`
(`lazily`), or that and its `__dir__` (`lazy_package`). In: a function that makes a value. Out: a function that returns
it, made once (`once`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from graphc.startup.hooks import HOOKS


def lazily(
    package: str,
    modules: Mapping[str, str],
    missing: Callable[[str], str] | None = None,
    public: Callable[[Any, str], Any] = lambda found, package: found,
) -> Callable[[str], Any]:
    """The `__getattr__` of `package`: `modules` says which module within it defines which names, in words; a module
    elsewhere by its full name. An empty text stands for a module that gives no names but is there itself.
    `missing(name)` says why there is no such name.
    `public(found, package)` is what users are given.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in homes:
            home = homes[name]
            found = getattr(import_module(home if home.startswith("graphc.") else f"{package}.{home}"), name)
            if isinstance(found, FunctionType | type):
                found = public(found, package)
            setattr(sys.modules[package], name, found)
            return found
        if name in modules:
            return import_module(f"{package}.{name}")
        found, why = HOOKS.absent(package, name)
        if found is not None:
            if isinstance(found, FunctionType | type) and name[0] != "_":
                found = public(found, package)
            setattr(sys.modules[package], name, found)
            return found
        reason = "" if missing is None else missing(name)
        reason = reason or why or nearest(name, [*dir(sys.modules[package]), *homes])
        raise AttributeError(f"module {package!r} has no attribute {name!r}{reason and ': '}{reason}")

    return find


def telling(package: str, *beginnings: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has all its names already: it says what stands for names of other libraries,
    which begin so. What is asked of other names may be a module that is not imported yet, and must take no time."""
    tell = lazily(package, {})

    def find(name: str) -> Any:
        if name.startswith(beginnings):
            return tell(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def lazy_package(
    package: str,
    modules: Mapping[str, str],
    missing: Mapping[str, str] | Callable[[str], str],
    others: Sequence[str] = (),
    public: Callable[[Any, str], Any] = lambda found, package: found,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: those of `lazily`, with an `__all__` that is made when it is asked
    for. Modules that give no names count in it where no module gives one. missing: reasons, by name or as a function.
    others: names of `__all__` that the package itself has.
    """
    find = lazily(package, modules, missing if callable(missing) else lambda name: missing.get(name, ""), public)

    def get(name: str) -> Any:
        if name != "__all__":
            return find(name)
        found = sys.modules[package].__dict__[name] = sorted([*(names_of(modules) or modules), *others])
        return found

    return get, lambda: sys.modules[package].__all__


T = TypeVar("T")
NOTHING: Any = object()


class Table(dict[str, T]):
    """A table that modules fill, some of which are imported when what they define is first asked for: `later` names
    these modules, `rest` the one that fills in all other names. To go through the table imports them all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.later: dict[str, str] = {}
        self.rest = ""

    def __setitem__(self, name: str, value: T) -> None:
        super().__setitem__(name, value)
        self.later.pop(name, None)

    def __missing__(self, name: str) -> T:
        if name not in self.later:
            self.take_rest()
        if name in self.later:
            import_module(self.later[name])
        found: T = dict.get(self, name, NOTHING)
        if found is NOTHING:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or name in self.later:
            return True
        self.take_rest()
        return super().__contains__(name) or name in self.later

    def has(self, name: str) -> bool:
        """True for a name that is there by now."""
        return super().__contains__(name)

    def take_rest(self) -> None:
        """Import the module of the other names; while it is being imported, go without it."""
        if self.rest:
            import_module(self.rest)
            self.rest = ""

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        self.fill()
        return super().__iter__()

    def __len__(self) -> int:
        self.fill()
        return super().__len__()

    def values(self) -> Any:
        """All that it holds."""
        self.fill()
        return super().values()

    def items(self) -> Any:
        """Names with what stands under them."""
        self.fill()
        return super().items()

    def fill(self) -> None:
        """Import what is left."""
        self.take_rest()
        for module in dict.fromkeys(self.later.values()):
            import_module(module)


def nearest(name: str, known: Collection[str]) -> str:
    """A question for a message: which of the known names is meant, where one is near."""
    public = [] if name.startswith("_") else [each for each in known if not each.startswith("_")]
    near = import_module("difflib").get_close_matches(name, public, 1) if public else []
    return f"is {near[0]!r} meant?" if near else ""


def names_of(modules: Mapping[str, str]) -> list[str]:
    """All names that `lazily` finds in modules."""
    return [name for names in modules.values() for name in names.split()]


Value = TypeVar("Value")


def once(make: Callable[[], Value]) -> Callable[[], Value]:
    """A function that returns the value `make` returned first, in all threads. `functools.cache` may let two threads
    make one each and drop one: wrong for objects that machine code refers to by address, and for types.

    >>> @once
    ... def table() -> list[int]:
    ...     return [0] * 8
    >>> table() is table()
    True
    """
    found: dict[None, Value] = {}

    def value() -> Value:
        return found[None] if found else found.setdefault(None, make())

    value.__name__, value.__qualname__, value.__doc__ = make.__name__, make.__qualname__, make.__doc__
    value.__module__ = make.__module__
    return value
