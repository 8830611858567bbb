"""numba without what a compile process has no use for, which is more than half of its import.

In: nothing. Out: the compiling side of a compile process, over a `numba` in `sys.modules` that did not run its own
`__init__`, and empty modules in the place of those below. Only a compile process may do this: in a process of the
user's, numba must be whole.

numba's typing, lowering and interpreter import these modules for registries, for the object mode, for parallel loops
and for dispatchers. Kernels have registries of their own (`primitives.py`), and the tests compile every statement they
may hold in such a process. Which modules may be left out depends on numba's version, so its range is declared; where
one is missed when it is imported, the compile process starts again with the whole of numba.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from graphc.codegen.host import version_of

UNUSED = (
    "numba.core.extending",
    "numba.core.pythonapi",
    "numba.core.serialize",
    "numba.core.target_extension",
    "numba.core.typeconv.rules",
    "numba.cpython.builtins",
    "numpy.polynomial",
    "numpy.polynomial.polynomial",
    "numpy.random",
    "numpy.random.bit_generator",
)
"""Modules that numba imports and kernels do not need; NumPy's are there to be told by their types."""


class Nothing:
    """Stands for every name of a module that is left out: a class, a decorator, a table, as its importer likes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Nothing:
        return self

    def __class_getitem__(cls, key: Any) -> type[Nothing]:
        return cls


class Unused(ModuleType):
    """A module whose names are all a `Nothing` of their own."""

    def __getattr__(self, name: str) -> type[Nothing]:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Nothing,), {})


def import_worker() -> ModuleType:
    """`worker.py` over the lean numba, or over the whole where that cannot be imported."""
    if install():
        try:
            return import_module("graphc.codegen.worker")
        except Exception:  # whatever a module makes of what it misses
            uninstall()
    return import_module("graphc.codegen.worker")


def install() -> bool:
    """Put the lean numba in place; False where there is none to be found, or one is imported already."""
    spec = None if "numba" in sys.modules else find_spec("numba")
    if spec is None or spec.submodule_search_locations is None:
        return False
    package = sys.modules["numba"] = ModuleType("numba")
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    vars(package)["__version__"] = version_of("numba")
    for name in UNUSED:
        sys.modules[name] = module = Unused(name)
        parent, _, child = name.rpartition(".")
        if parent == "numpy" or parent in UNUSED:
            setattr(np if parent == "numpy" else sys.modules[parent], child, module)
    return True


def uninstall() -> None:
    """Undo `install`, and forget every module that was imported on top of it."""
    lean = [name for name in sys.modules if name.partition(".")[0] == "numba" or name in UNUSED]
    ours = [name for name in sys.modules if name.startswith("graphc.codegen.") and name != __name__]
    for name in (*lean, *ours):
        del sys.modules[name]
    for child in ("polynomial", "random"):
        vars(np).pop(child, None)
