"""The mutable state of a process: resources shared by its functions, settings, compile processes.

In: nothing. Out: `PROCESS`, the one object that holds it; each field is changed only by the module named there. Other
module-level state is constant once computed (`cache`), tables, and interned graphs (`ir.node`).

A forked child inherits all of it, loaded code and memory included. The pool notices that its workers are gone
(threads/pool.py), and code stays mapped where it was. A child has none of the parent's threads and processes:
`forget_parent` drops compile processes, and call/locks.py, which makes forks wait for running calls, drops those of
other threads. Work at exit is left to the parent.
"""

from __future__ import annotations

import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:  # this is imported before anything else (codegen/server/prestart.py)
    from collections.abc import Callable
    from typing import Any


class Process:
    """The state shared by the functions of this process."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        """Objects that machine code or CPython refers to by address; never released (gemm/api.py,
        call/bind.py)."""
        self.is_frozen = False
        """True if imports have frozen objects (startup/imports.py)."""
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
        """Functions that release the buffers of large products (gemm/api.py)."""
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
        self.products: dict[tuple[int, ...], Any] = {}
        """The loaded matrix products by thread settings, shared by all functions (pipeline/build.py)."""
        self.blocks: deque[Any] = deque()
        """Free memory blocks of large results (call/result_memory.py)."""
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
