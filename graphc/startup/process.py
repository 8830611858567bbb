"""The mutable state of a process: resources shared by its functions, settings, compile processes; cheap imports.

In: nothing. Out: `PROCESS`, the one object that holds it; each field is changed only by the module named there. Other
module-level state is constant once computed (`cache`), tables, and interned graphs (`ir.node`).

A forked child inherits all of it, loaded code and memory included. The pool notices that its workers are gone
(threads/pool.py), and code stays mapped where it was. A child has none of the parent's threads and processes:
`forget_parent` drops compile processes, and call/locks.py, which makes forks wait for running calls, drops those of
other threads. Work at exit is left to the parent.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any


class Process:
    """The state shared by the functions of this process."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        """Objects that machine code or CPython refers to by address; never released (codegen/gemm, call/bind.py)."""
        self.is_frozen = False
        """True if imports have frozen objects (startup/process.py)."""
        self.target = ""
        """The CPU target that code is generated for, set by the first function (llvm/cpu.py)."""
        self.is_foreign = False
        """True where code is made for other processors and never run here (`graphc compile --target`)."""
        self.triple = ""
        """LLVM's name of another kind of processors, where all code of the process is for them (llvm/target.py)."""
        self.pool: Any = None
        """The loaded thread pool (threads/settings.py)."""
        self.crossover = 0
        """The number of chunks from which threads pay off; 0 until measured (pipeline/runtime.py)."""
        self.givers: list[Callable[[], None]] = []
        """Functions that release the buffers of large products (codegen/gemm)."""
        self.ahead: list[Any] = []
        """A compile process started in advance, for the first function that needs one (server/process.py)."""
        self.forgetting: list[Callable[[], None]] = []
        """Callbacks by which a forked child drops each compile process (server/process.py, server/client.py)."""
        self.background: list[Any] = []
        """Processes that build kernels in the background (pipeline/background.py)."""
        self.is_expecting = False
        """True if a compile process was started speculatively and is not used yet (server/prestart.py)."""
        self.calls: list[Any] = []
        """Calls from Python that hold locks or wait for them, in order of arrival (call/locks.py)."""
        self.forks: list[Any] = []
        """Threads about to fork, which wait for all locks."""
        self.listeners: list[Callable[[str], object]] = []
        """Callbacks for phases of compilation; the last one is called (pipeline/kernel.py)."""
        self.planner: Any = None
        """Makes the functions of kernels that are not in the cache, in place of the compiler (cli.py)."""
        self.lookups: list[int] = []
        """The hits and misses of lookups of graphs in the cache; empty before the first one (cache/store.py)."""
        self.start_afresh()

    def start_afresh(self) -> None:
        """Reset the state that can be recomputed. Tests do so to simulate another process."""
        self.parts: dict[str, bytes] = {}
        """The object code of parts used so far (pipeline/runtime.py)."""
        self.shipped: dict[str, Any] = {}
        """The tables of the files of parts that come with graphc, by target (cache/shipped.py)."""
        self.products: dict[tuple[int, ...], Any] = {}
        """The loaded matrix products by thread settings, shared by all functions (pipeline/build.py)."""
        self.blocks: deque[Any] = deque()
        """Free memory blocks of large results (call/bind.py)."""
        self.warned: set[str] = set()
        """Warnings about the cache that were given already (cache/store.py)."""
        self.codes: Any = None
        """The code of live functions, by the digests of their keys (pipeline/build.py)."""
        self.compilations = 0
        """The number of graphs compiled (pipeline/build.py). A new size must never increase it."""

    def forget_parent(self) -> None:
        """In a forked child: drop the compile processes, which belong to the parent."""
        for forget in self.forgetting:
            forget()


PROCESS = Process()
if hasattr(os, "register_at_fork"):  # where processes cannot be forked, none is
    os.register_at_fork(after_in_child=PROCESS.forget_parent)


# --- cheap imports: without the garbage collector, and NumPy with BLAS threads that sleep when idle -------------------
#     with uncollected():      the building of a large graph: the collector takes a seventh of the time, for nothing
#     with collected_after():  compiling in this process: the collector takes a quarter of the time
#     with importing():        imports: the collector takes a twentieth of a start, and a ninth at the process's end
#     import_numpy()           NumPy is in `sys.modules`
#
# `importing` freezes objects: the collector never looks at them again. Modules live as long as the process does, and
# without that it would walk through NumPy's and graphc's twice at the end, for 10 ms of a start of 90. But `gc.freeze`
# takes all objects, and a cycle of frozen ones is never released: a program's file in it would lose what is not
# written yet, its arrays would stay. So nothing is frozen where the program has objects of its own (`_is_bare`).
#
# By default the threads of OpenBLAS spin for 2^26 cycles, about 30 ms, after each product and after loading; meanwhile
# a processor is lost to the threads of kernels and to the compile process. OpenBLAS reads the spin time from the
# environment once, at load time. So a NumPy imported before, and a value that the user chose, stay as they are; the
# variable is set during the import only, and child processes do not see it.

FEW = 60
"""Collections of young objects up to which a process has allocated no more than NumPy's import does, and some."""


def uncollected() -> AbstractContextManager[None]:
    """Disable garbage collection while the block runs, and move its objects to the oldest generation afterwards."""
    return _without_collector(_move_to_oldest)


def collected_after() -> AbstractContextManager[None]:
    """Disable garbage collection while the block runs, for one that leaves garbage: it is collected soon afterwards."""
    return _without_collector(lambda: None)


def importing() -> AbstractContextManager[None]:
    """`uncollected`, but all objects are frozen at the end, if the process has done nothing but imports so far."""
    return _without_collector(_freeze if _is_bare() else _move_to_oldest)


def _is_bare() -> bool:
    """True if each object that is not frozen is of a type of Python's or of an installed package, and none has anything
    to do when it is released but the standard streams. Few have been allocated, so that they are looked at fast."""
    if gc.get_stats()[0]["collections"] > FEW or (not PROCESS.is_frozen and gc.get_freeze_count()):
        return False
    types = list(map(type, gc.get_objects()))
    kinds = set(types)
    ending = (kind for kind in kinds if hasattr(kind, "__del__"))  # of files, of suspended generators
    known = 0 if PROCESS.is_frozen else sum(map(gc.is_tracked, _streams()))
    modules = {str(kind.__module__) for kind in kinds}
    return sum(map(types.count, ending)) <= known and all(map(_is_installed, modules))


def _is_installed(module: str) -> bool:
    """True for a module of Python, of graphc, or of a package that was installed, not of the program."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "graphc":
        return True
    place = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in place or "dist-packages" in place


def _streams() -> list[Any]:
    """The standard streams and what is below them, each once."""
    streams: dict[int, Any] = {}
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        below = getattr(stream, "buffer", None)
        streams |= {id(each): each for each in (stream, below, getattr(below, "raw", None))}
    return list(streams.values())


@contextmanager
def temporarily(state: object, **values: object) -> Iterator[None]:
    """Set attributes of `state`, such as a thread's, while the block runs."""
    before = {name: getattr(state, name) for name in values}
    vars(state).update(values)
    try:
        yield
    finally:
        vars(state).update(before)


@contextmanager
def _without_collector(finish: Callable[[], None]) -> Iterator[None]:
    """Disable garbage collection while the block runs, if it was enabled, and finish with its objects."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        finish()
        gc.enable()


def _move_to_oldest() -> None:
    """Move all objects to the oldest generation. Skipped if some are frozen: they would be unfrozen too."""
    if not PROCESS.is_frozen and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def _freeze() -> None:
    gc.freeze()
    PROCESS.is_frozen = True


SPIN = {"OPENBLAS_THREAD_TIMEOUT": "18"}
"""The binary logarithm of the spin time in cycles: a tenth of a millisecond, as our own threads spin. Products in
sequence, and after a pause, are as fast as before."""
CHOSEN_BY = ("OPENBLAS_THREAD_TIMEOUT", "GOTO_THREAD_TIMEOUT")


def import_numpy() -> None:
    """Import NumPy if it is not imported yet."""
    if "numpy" in sys.modules or any(name in os.environ for name in CHOSEN_BY):
        return
    os.environ.update(SPIN)
    try:
        import_module("numpy")
    finally:
        for name in SPIN:
            os.environ.pop(name, None)
