"""Code that is compiled once for a machine and used by the functions of every graph.

In: the name of a part: ENTRY_POINTS, PARALLEL, a matrix product, large products, or an elementary function. Out: its
code, from the cache or the compiler; and from how many chunks of a loop on threads pay, which is measured once for a
machine.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable
from importlib import import_module

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, fingerprint, made_fingerprint
from graphc.codegen.threads.settings import (
    DEFAULT_CROSSOVER,
    PARALLEL,
    Pool,
    available_processors,
    load_pool,
    measure_crossover,
)
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS

ENTRY_POINTS = "entry points"
"""The part that the entry points of all functions call. It is an object, linked into each of them, as elementary
functions are into kernels; others are loaded beside."""

OUT_OF_LINE_OPT = 1
"""LLVM's level for it: no loop in it gains from more."""


def part_key(name: str) -> Key:
    """All that decides the code of a part."""
    return Key(name, {"poison": "on"} if options.poison != "off" else {}, fingerprint())


def find_part(name: str) -> bytes | None:
    """The code of a part where it is there already."""
    if name not in PROCESS.parts:
        found = store.find(part_key(name))
        if found is None:
            return None
        PROCESS.parts[name] = found.object
    return PROCESS.parts[name]


def missing_parts(names: Iterable[str]) -> list[str]:
    """Return the parts that are yet to be compiled."""
    return [name for name in names if find_part(name) is None]


def keep_part(name: str, code: bytes) -> None:
    """Keep the code of a part, here and in the cache."""
    PROCESS.parts[name] = code
    store.store(store.Entry(part_key(name), "", "", {"name": name}, code))


def begin_entry_points() -> Callable[[], bytes] | None:
    """Start the compilation of the shared part of entry points, if it is missing, in the compile process, while this
    process imports the rest. Returns a function that waits for the code."""
    if options.compile != "process" or find_part(ENTRY_POINTS) is not None:
        return None
    ir = import_module("graphc.codegen.call.entry").out_of_line_ir()
    finish: Callable[[], bytes] = import_module("graphc.codegen.server.client").compile_ahead(ir, OUT_OF_LINE_OPT)
    return finish


def ready_part(name: str) -> None:
    """See that the code of a part is here or in the cache."""
    if name not in PROCESS.parts and not store.holds(part_key(name)):
        part_code(name)


def part_code(name: str) -> bytes:
    """The code of a part, compiled where it is missing."""
    code = find_part(name)
    if code is None:
        code = HOOKS.compiled_part(name)
        keep_part(name, code)
    return code


def ready_pool() -> tuple[Pool, int]:
    """The thread pool, and the number of chunks from which parallel loops pay. The number is measured at the end of the
    first process that needs it: measuring takes 80 ms and is unreliable while the process and its compiler are busy.
    Until then a typical number is used."""
    if PROCESS.crossover:
        known: Pool = PROCESS.pool
        return known, PROCESS.crossover
    pool = load_pool(part_code(PARALLEL))
    key = Key("crossover", {"processors": "several" if available_processors() > 1 else "one"}, made_fingerprint())
    found = store.find(key)
    PROCESS.crossover = DEFAULT_CROSSOVER if found is None else int(found.metadata["crossover"])
    if found is None:
        atexit.register(_measure, pool, key, os.getpid())
    return pool, PROCESS.crossover


def _measure(pool: Pool, key: Key, process: int) -> None:
    if os.getpid() == process:  # the pool of a forked child has no workers
        metadata = {"name": "crossover of threads", "crossover": measure_crossover(pool)}
        store.store(store.Entry(key, "", "", metadata, b""), quiet=True)  # nobody asked for it
