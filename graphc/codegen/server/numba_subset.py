"""numba without what a compile process has no use for: NumPy, and more than half of its own modules.

In: nothing. Out: the compiling side of a compile process, over a `numba` in `sys.modules` that did not run its own
`__init__`, and empty modules in the place of those below. Only a compile process may do this: in a process of the
user's, numba and NumPy must be whole.

numba's typing, lowering and interpreter import these modules for registries, for the object mode, for parallel loops,
for dispatchers, and for the types of arrays. Kernels have registries of their own (`frontend/primitives.py`), and the
tests compile every statement they may hold in such a process. Which modules may be left out depends on numba's version,
so its range is declared; where one is missed when it is imported, the compile process goes on with the whole of numba,
and where one is missed later, the request is sent to another process that has it from the start (`client.py`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from graphc.startup.versions import version_of

UNUSED = (
    "numpy",
    "numpy.polynomial",
    "numpy.random",
    "numpy.random.bit_generator",
    "numba._helperlib",
    "numba.core.extending",
    "numba.core.pythonapi",
    "numba.core.serialize",
    "numba.core.target_extension",
    "numba.core.typeconv.rules",
    "numba.core.typing.asnumbatype",
    "numba.cpython.builtins",
    "numba.np",
    "numba.np.npdatetime_helpers",
    "numba.np.numpy_support",
    "numba.np.types",
    "numba.np.types.datetime",
    "yaml",
)
"""Modules that numba imports and kernels do not need, each after its package. NumPy's and those of arrays are there to
be told by their types; `_helperlib` is C that cannot be loaded without NumPy."""


class Names(type):
    """A class whose attributes are classes of its kind."""

    def __getattr__(cls, name: str) -> Names:
        if name.startswith("__"):
            raise AttributeError(name)
        return Names(name, (Nothing,), {})


class Nothing(metaclass=Names):
    """A stand-in for any name of a module that is left out: a class, a decorator or a table."""

    itemsize = 8  # numba before 0.68 asks NumPy for the sizes of C's integers, which kernels do not have

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Nothing:
        return self

    def __class_getitem__(cls, key: Any) -> type[Nothing]:
        return cls


class Unused(ModuleType):
    """A module whose names are all a `Nothing` of their own."""

    __getattr__ = Names.__getattr__


def import_worker(lean: bool = True) -> ModuleType:
    """Import `worker.py` over the lean numba, where `lean` and possible, else over the whole one."""
    import_module("graphc.codegen.llvm.target")  # before numba imports llvmlite
    if lean and install():
        try:
            return import_module("graphc.codegen.server.worker")
        except Exception:  # whatever a module makes of what it misses
            uninstall()
    return import_module("graphc.codegen.server.worker")


def install() -> bool:
    """Install the lean numba in `sys.modules`. False where numba is missing, or imported already."""
    spec = None if {"numba", "numpy"} & sys.modules.keys() else find_spec("numba")
    if spec is None or spec.submodule_search_locations is None:
        return False
    package = sys.modules["numba"] = ModuleType("numba")
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    vars(package)["__version__"] = version_of("numba")
    numpy_version = version_of("numpy")
    for name in UNUSED:
        sys.modules[name] = module = Unused(name)
        parent, _, child = name.rpartition(".")
        if parent in UNUSED:
            setattr(sys.modules[parent], child, module)
    vars(sys.modules["numpy"])["__version__"] = numpy_version
    # The functions of which numba tells LLVM when its first target is made.
    vars(sys.modules["numba._helperlib"])["c_helpers"] = {}
    return True


def uninstall() -> None:
    """Undo `install`, and forget every module that was imported on top of it."""
    lean = [name for name in sys.modules if name.partition(".")[0] == "numba" or name in UNUSED]
    ours = [name for name in sys.modules if name.startswith("graphc.codegen.") and name != __name__]
    for name in (*lean, *ours):
        del sys.modules[name]
