"""Cheap imports: without the garbage collector, and NumPy with BLAS threads that sleep when idle.

    with uncollected():      the building of a large graph: the collector takes a seventh of the time, for nothing
    with importing():        imports: the collector takes a twentieth of a start, and a seventh at the process's end
    import_numpy()           NumPy is in `sys.modules`

By default the threads of OpenBLAS spin for 2^26 cycles, about 30 ms, after each product and after loading; meanwhile a
processor is lost to the threads of kernels and to the compile process. OpenBLAS reads the spin time from the
environment once, at load time. So a NumPy imported before, and a value that the user chose, stay as they are; the
variable is set during the import only, and child processes do not see it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module

from graphc.startup.process import PROCESS

FEW = 60
"""Collections of young objects up to which a process has allocated no more than NumPy's import does, and some."""


def uncollected() -> AbstractContextManager[None]:
    """Disable garbage collection while the block runs, and move its objects to the oldest generation afterwards."""
    return _without_collector(_move_to_oldest)


def importing() -> AbstractContextManager[None]:
    """`uncollected`, but all objects are frozen at the end, if the process has done little but imports so far: modules
    live as long as it does, and the collector would walk through NumPy's and graphc's twice when it ends."""
    is_young = gc.get_stats()[0]["collections"] <= FEW and gc.get_freeze_count() <= PROCESS.frozen
    return _without_collector(_freeze if is_young else _move_to_oldest)


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
    """Move all objects to the oldest generation, in constant time. Skipped if the program has frozen objects itself,
    which would be unfrozen too."""
    if gc.get_freeze_count() <= PROCESS.frozen:
        gc.freeze()
        gc.unfreeze()
        PROCESS.frozen = 0


def _freeze() -> None:
    gc.freeze()
    PROCESS.frozen = gc.get_freeze_count()


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
