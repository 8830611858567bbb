"""The state of a process: what its functions share, what it has been told, what it began to compile with.

In: nothing. Out: `PROCESS`, the one object that holds it; each field is changed by the module that it names. What else
is kept in modules are answers that never change (`cache`), tables, and graphs (`ir.node`).

A forked child has all of this, loaded code and its memory included: the pool sees by itself that its workers are gone
(threads/pool.py), and code is mapped where it was. It has none of the parent's threads and none of its processes:
`forget_parent` lets go of compile processes, and call/locks.py, which has forks wait for calls under way, forgets those
of other threads. What a process does when it ends is the parent's alone.
"""

from __future__ import annotations

import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:  # this is imported before anything else (codegen/server/prestart.py)
    from collections.abc import Callable
    from typing import Any


class Process:
    """What the functions of this process share."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        """What machine code, or CPython, refers to by its address: never let go (gemm/lazy.py, call/vectorcall.py)."""
        self.target = ""
        """What code is made for, from the first function on (llvm/cpu.py)."""
        self.pool: Any = None
        """The loaded pool of threads (threads/settings.py)."""
        self.crossover = 0
        """From how many chunks on threads pay; 0 where nobody asked (pipeline/runtime.py)."""
        self.givers: list[Callable[[], None]] = []
        """Functions that give back the memory that large products keep (gemm/lazy.py)."""
        self.ahead: list[Any] = []
        """A compile process that was started for whoever is the first to need one (server/process.py)."""
        self.forgetting: list[Callable[[], None]] = []
        """How a forked child lets go of each compile process (server/process.py, server/client.py)."""
        self.beside: list[Any] = []
        """Processes that build kernels (pipeline/background.py)."""
        self.is_expecting = False
        """Whether a compile process was started on an expectation, which nothing has borne out (server/prestart.py)."""
        self.calls: list[Any] = []
        """Calls from Python that have locks or wait for them, in the order of arrival (call/locks.py)."""
        self.forks: list[Any] = []
        """Those of threads that are about to fork, which want all locks."""
        self.listeners: list[Callable[[str], object]] = []
        """Who is told of phases; the last one is (pipeline/kernel.py)."""
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget what may be found or made again, as tests do which play another process."""
        self.parts: dict[str, bytes] = {}
        """The code of parts that were needed so far (pipeline/runtime.py)."""
        self.products: dict[tuple[int, ...], Any] = {}
        """The matrix products that are loaded, by settings of threads: all functions share them (pipeline/build.py)."""
        self.blocks: deque[Any] = deque()
        """Memory of large results (call/result_memory.py)."""
        self.warned: set[str] = set()
        """What was said of the cache (cache/store.py)."""
        self.codes: Any = None
        """The code of the functions that live, by the digests of their keys (pipeline/build.py)."""
        self.compilations = 0
        """How many graphs were compiled (pipeline/build.py): a new size must never add to it."""

    def forget_parent(self) -> None:
        """In the child of a fork: the compile processes belong to the parent."""
        for forget in self.forgetting:
            forget()


PROCESS = Process()
if hasattr(os, "register_at_fork"):  # where processes cannot be forked, none is
    os.register_at_fork(after_in_child=PROCESS.forget_parent)
