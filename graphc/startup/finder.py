"""Theano's modules that graphc has no file for: another module under that path, or the reason why there is none.

In: an import statement that Python has found no file for. Out: a module that has the names of others
(`graphc.startup.paths`); or an empty one, since many programs import what they never use, whose names are errors that
say what to use instead; or a ModuleNotFoundError that says so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Path(ModuleType):
    """A module whose names are those of other modules, looked up when they are asked for."""

    def __init__(self, name: str, sources: Sequence[str], function: Any, missing: str = "") -> None:
        said = f"Theano's path of names in {', '.join(sources) or 'the modules below it'}."
        if missing:
            said = f"Not in graphc: {missing}."
        super().__init__(name, said if function is None else function.__doc__)
        self.__path__: list[str] = []
        self.__dict__.update(_sources=sources, _function=function, _missing=missing)
        if function is not None:
            self.__dict__["__wrapped__"] = getattr(function, "__wrapped__", function)  # whose signature it has
            self.__doc__ = function.__doc__

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        place = f"{self.__name__}.{name}"
        if place.partition(".")[2] in import_module("graphc.startup.paths").PATHS and place not in sys.modules:
            return import_module(place)
        return self.found(name)

    def found(self, name: str) -> Any:
        """What the first of the modules has under a name; AttributeError where none has it."""
        if not name.startswith("__"):
            for source in self.__dict__["_sources"]:
                module = import_module(source)
                if hasattr(module, name):
                    return getattr(module, name)
                short = name.removesuffix("_inplace")
                if short != name and hasattr(module, short):  # where a result lies is graphc's own decision
                    return getattr(module, short)
        paths, place = import_module("graphc.startup.paths"), self.__name__.partition(".")[2]
        missing = self.__dict__["_missing"] or paths.why_name(name) or paths.why(place)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{missing and ': '}{missing}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives whose name this path has too: `theano.tensor.sort`, whose place an import takes."""
        return self.__dict__["_function"](*args, **kwargs)

    def __dir__(self) -> list[str]:
        return sorted({name for source in self.__dict__["_sources"] for name in dir(import_module(source))})


class Finder:
    """What Python asks for modules after all others."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A module under Theano's path; ModuleNotFoundError for what there is a reason to miss; None for the rest."""
        package, _, place = name.partition(".")
        if package != "graphc":
            return None
        paths = import_module("graphc.startup.paths")
        loader: Any = Finder
        reason = paths.why(place)
        if place in paths.PATHS or any(place in names.split() for _, names in paths.REASONS):
            return ModuleSpec(name, loader, is_package=True)
        if not reason:
            return None
        # named after the package, or `from package import name` would drop the reason
        raise ModuleNotFoundError(f"{name!r} is not in graphc: {reason}", name=name.rpartition(".")[0])

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """The module of a path."""
        paths, place = import_module("graphc.startup.paths"), spec.name.partition(".")[2]
        homes = [f"graphc.{home}" for home in paths.PATHS.get(place, "").split()]
        parent, _, child = spec.name.rpartition(".")
        package = sys.modules[parent]
        if isinstance(package, Path):
            function = package.found(child) if child in dir(package) else None
        else:
            known = child in vars(package) or child in getattr(package, "__all__", ())
            function = getattr(package, child) if known else None
        return Path(spec.name, homes, function, "" if place in paths.PATHS else paths.why(place))

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing: its names are looked up later."""


def install() -> None:
    """Let Python ask."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)
