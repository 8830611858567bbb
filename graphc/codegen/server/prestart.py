"""The early start of the compile process: at the import of graphc, where the program is likely to compile.

In: the options, the cache's folder, the program that runs. Out: a compile process, which imports numba while this
process imports NumPy; a first compilation then takes two thirds of the time. A program is likely to compile where
nothing is cached yet, where its file was changed since the last entry was stored, and in an interactive session. Where
everything was in the cache after all, this is noted (`note_hit`), so that the next start expects no compilation.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module

from graphc.options import options
from graphc.startup.process import PROCESS

USAGE = "usage"
"""The file in the cache's folder that changes with each stored entry (cache/store.py)."""
PROCESSORS = ("x86_64", "aarch64")
"""Linux's names of the processors that link/elf.py supports."""


def why_not_compiled() -> str:
    """Return the reason why functions are not compiled on this system; "" where they are."""
    if sys.platform != "linux":
        return f"functions are compiled on Linux only, and this is {sys.platform}"
    machine = os.uname().machine
    return "" if machine in PROCESSORS else f"functions are compiled for {' and '.join(PROCESSORS)} only, not {machine}"


def start_if_expected() -> None:
    """Start the compile process where the program is likely to compile."""
    PROCESS.is_expecting = is_expected()
    if PROCESS.is_expecting:
        import_module("graphc.codegen.server.process").start_ahead()


def is_expected() -> bool:
    """True where a program that imports graphc now is likely to compile."""
    if options.compile != "process" or options.mode != "compiled" or options.cache_require or options.cache_shared:
        return False
    if sys.argv[:1] == ["-m"] or why_not_compiled():  # graphc's own commands, and packages that are run
        return False
    if not options.cache or hasattr(sys, "ps1") or sys.flags.interactive or "IPython" in sys.modules:
        return True
    try:
        stored = os.stat(os.path.join(options.cache_dir, USAGE)).st_mtime
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return last_change() > stored


def last_change() -> float:
    """Return the time at which the running program's file was last written; 0 without a file."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return os.stat(path).st_mtime if path is not None else 0.0
    except OSError:
        return 0.0


def note_hit() -> None:
    """Note that the cache had the code that was expected to be compiled: the program's change did not matter to it."""
    if PROCESS.is_expecting:
        PROCESS.is_expecting = False
        with suppress(OSError):
            os.utime(os.path.join(options.cache_dir, USAGE))
