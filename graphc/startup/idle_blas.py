"""NumPy imported so that the threads of its BLAS sleep when they have nothing to do.

In: nothing. Out: NumPy in `sys.modules`. The threads of OpenBLAS spin for 2^26 cycles, some 30 ms, after each of its
products and when it is loaded, and as long as they do a processor is lost to the threads of kernels and to the compile
process. It reads how long in the environment, and only when it is loaded, so that a NumPy that was imported before, and
a number that the user chose, stay as they are. The variable is there for the import only: no other process sees it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

SPIN = {"OPENBLAS_THREAD_TIMEOUT": "18"}
"""The logarithm of a number of cycles: a tenth of a millisecond, as our own threads do. Products one after the other
are as fast, and those after a pause, too."""
CHOSEN_BY = ("OPENBLAS_THREAD_TIMEOUT", "GOTO_THREAD_TIMEOUT")


def import_numpy() -> None:
    """Import NumPy, where that is still to be done."""
    if "numpy" in sys.modules or any(name in os.environ for name in CHOSEN_BY):
        return
    os.environ.update(SPIN)
    try:
        import_module("numpy")
    finally:
        for name in SPIN:
            os.environ.pop(name, None)
