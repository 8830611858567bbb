"""`llvm`: llvmlite's binding, loaded without what it has no use for.

In: the installed llvmlite. Out: its module `binding`, and the two classes of pass managers. It finds its own library by
importlib.resources, which imports zipfile, tempfile, pathlib and more: a quarter of its import, while a first
compilation waits. Where llvmlite is files in a folder, something smaller does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from types import ModuleType

from graphc.codegen.llvm.module import AHEAD

RESOURCES = "importlib.resources"


class Place:
    """A file or a folder, as `importlib.resources.files` gives it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __truediv__(self, name: str) -> Place:
        return Place(os.path.join(self.path, name))

    def __str__(self) -> str:
        return self.path


def files(package: str) -> Place:
    """The folder of a package."""
    return Place(os.path.dirname(os.path.abspath(sys.modules[package].__file__ or "")))


@contextmanager
def plain_resources() -> Iterator[None]:
    """importlib.resources is a module of two functions, unless the real one is there, or needed: by llvmlite, or by
    another thread of the program, which may import what it likes meanwhile."""
    spec = find_spec("llvmlite")
    alone = all(thread is threading.current_thread() or thread.name == AHEAD for thread in threading.enumerate())
    if RESOURCES in sys.modules or spec is None or not os.path.isfile(spec.origin or "") or not alone:
        yield
        return
    stand_in = ModuleType(RESOURCES)
    vars(stand_in).update(files=files, as_file=nullcontext)
    sys.modules[RESOURCES] = stand_in
    try:
        yield
    finally:
        del sys.modules[RESOURCES]


try:
    with plain_resources():
        import llvmlite.binding as llvm
except Exception:  # a version of llvmlite that needs more of it
    for name in [name for name in sys.modules if name.partition(".")[0] == "llvmlite"]:
        del sys.modules[name]
    import llvmlite.binding as llvm

from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager  # noqa: E402 - after the binding

if hasattr(os, "register_at_fork"):  # a child has none of the threads that compile, and would wait for them for ever
    os.register_at_fork(
        before=llvm.ffi.lib._lock._lock.acquire,
        after_in_parent=llvm.ffi.lib._lock._lock.release,
        after_in_child=llvm.ffi.lib._lock._lock.release,
    )

__all__ = ["ModulePassManager", "NewPassManager", "llvm"]
