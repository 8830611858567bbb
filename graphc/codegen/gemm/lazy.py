"""Parts that the machine code of matrix products loads when it first needs them: large products, the pool of threads.

In: functions that make and load it. Out: addresses in `api.blas_table`. Beside the entry of each there is the address
of a function of Python that fills it: so what is seldom needed costs nothing before. Machine code calls that, looks
again, and does without where there is nothing still. It never depends on how Python's function ends.
"""

from __future__ import annotations

import ctypes
import warnings
from _thread import interrupt_main, start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

from graphc.codegen.gemm.api import ENTRIES, VECTOR_FINDERS, blas_table, blocks_name, free_name
from graphc.codegen.link.image import load
from graphc.codegen.threads.chunking import PARALLEL
from graphc.codegen.threads.settings import Pool
from graphc.startup.process import PROCESS

SUFFIXES = {"f64": ctypes.c_double, "f32": ctypes.c_float}
_SIZE, _POINTER = ctypes.c_int64, ctypes.c_void_p
FINDER = ctypes.CFUNCTYPE(None)


@cache
def blocks_type(suffix: str) -> Any:
    """gc_blocks_<t> (blocked.py)."""
    number, matrix = SUFFIXES[suffix], (_POINTER, _SIZE, _SIZE)
    return ctypes.CFUNCTYPE(_SIZE, _POINTER, *[_SIZE] * 4, number, *matrix, *matrix, number, *matrix)


def defer(blocks: Callable[[str], int], pool: Callable[[], Pool]) -> None:
    """Let machine code find large products, and the pool. `blocks` gives the address of large products of a dtype, 0
    where BLAS is to compute them."""
    if blas_table()[ENTRIES.index("find parallel")] or blas_table()[ENTRIES.index("parallel")]:
        return
    _defer("parallel", lambda: pool().parallel)
    for suffix in SUFFIXES:
        _defer(f"blocks {suffix}", partial(blocks, suffix))


def _defer(name: str, find: Callable[[], int]) -> None:
    defer_word(blas_table(), ENTRIES.index(name), ENTRIES.index(f"find {name}"), find)


def defer_word(words: Any, place: int, finder: int, find: Callable[[], int]) -> None:
    """Let machine code that needs the address at a place of an array call what stands at another, which finds it."""

    def fill() -> None:
        try:
            words[place] = find()
        except KeyboardInterrupt:
            # by another thread, so that it is raised when this function, whose exceptions nobody gets, is left
            start_new_thread(interrupt_main, ())
            return
        except BaseException as problem:
            with suppress(Warning):
                warnings.warn(f"graphc goes on without faster products: {problem!r}", RuntimeWarning, stacklevel=1)
        words[finder] = 0

    function = FINDER(fill)
    PROCESS.kept.append(function)
    words[finder] = ctypes.cast(function, _POINTER).value or 0


def find_all(products: Sequence[str]) -> None:
    """Find now what these products would ask for at their first need, for threads that are to run without Python."""
    suffixes = {name.rpartition("_")[2] for name in products}
    wanted = {"find parallel", *(f"find blocks {suffix}" for suffix in suffixes)} if products else set()
    table = blas_table() if products else ()
    pending = [address for name, address in zip(ENTRIES, table, strict=False) if name in wanted]
    for loaded in PROCESS.products.values():
        pending += [int(loaded.settings[VECTOR_FINDERS[suffix]]) for suffix in suffixes & VECTOR_FINDERS.keys()]
    for address in pending:
        if address:
            FINDER(address)()


def load_blocks(suffix: str, code: bytes, pool: Pool) -> int:
    """Load the code of `blocked.blocks_ir`; the address of its function."""
    name, free = blocks_name(suffix), free_name(suffix)
    loaded = load(code, {PARALLEL: pool.parallel}, [name, free])
    PROCESS.kept.append(loaded.owner)
    PROCESS.givers.append(FINDER(loaded.addresses[free]))
    return loaded.addresses[name]


def free_panels() -> None:
    """Give back the memory that large products keep between calls, but for what a call on another thread is using."""
    for give in tuple(PROCESS.givers):
        give()
