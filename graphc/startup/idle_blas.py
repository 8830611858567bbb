"""Import of NumPy with BLAS threads that sleep when idle.

In: nothing. Out: NumPy in `sys.modules`. By default the threads of OpenBLAS spin for 2^26 cycles, about 30 ms, after
each product and after loading; meanwhile a processor is lost to the threads of kernels and to the compile process.
OpenBLAS reads the spin time from the environment once, at load time. So a NumPy imported before, and a value that the
user chose, stay as they are; the variable is set during the import only, and child processes do not see it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

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
