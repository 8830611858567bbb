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
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from graphc.startup.process import PROCESS


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection while the block runs, and move its objects to the oldest generation afterwards."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() <= PROCESS.frozen:
            # Together they move all objects to the oldest generation, in constant time. Skipped if the program has
            # frozen objects itself, which would be unfrozen too.
            gc.freeze()
            gc.unfreeze()
            PROCESS.frozen = 0
        gc.enable()


@contextmanager
def importing() -> Iterator[None]:
    """`uncollected`, but all objects are frozen at the end, if the process has done little but imports so far: modules
    live as long as it does, and the collector would walk through NumPy's and graphc's twice when it ends."""
    if not gc.isenabled() or gc.get_stats()[0]["collections"] > FEW or gc.get_freeze_count() > PROCESS.frozen:
        with uncollected():
            yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        PROCESS.frozen = gc.get_freeze_count()
        gc.enable()


FEW = 60
"""Collections of young objects up to which a process has allocated no more than NumPy's import does, and some."""


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
