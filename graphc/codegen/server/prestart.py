"""Whether a program is going to compile, told when graphc is imported: then the compiler starts beside the import.

In: the options, the cache's folder, the program that runs. Out: a compile process where one will be needed, as it
mostly is when nothing is cached yet, when the program was changed since something was compiled, and where a person
types it. It imports numba while this process imports NumPy; a first compilation takes two thirds of the time. Where
everything was in the cache after all, this is noted, so that the next start expects nothing.
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
"""What Linux calls those for which programs are linked (link/elf.py), and on which it was tried."""


def why_not_compiled() -> str:
    """Why nothing is compiled on this system; "" where it is."""
    if sys.platform != "linux":
        return f"functions are compiled on Linux only, and this is {sys.platform}"
    machine = os.uname().machine
    return "" if machine in PROCESSORS else f"functions are compiled for {' and '.join(PROCESSORS)} only, not {machine}"


def start_if_expected() -> None:
    """Start the compile process where a compilation is to be expected."""
    PROCESS.is_expecting = is_expected()
    if PROCESS.is_expecting:
        import_module("graphc.codegen.server.process").start_ahead()


def is_expected() -> bool:
    """Whether a program that imports graphc now is likely to compile."""
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
    """When the file of the program that runs was last written; 0 where there is none."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return os.stat(path).st_mtime if path is not None else 0.0
    except OSError:
        return 0.0


def note_hit() -> None:
    """What was expected to be compiled is in the cache: the program's last change did not matter."""
    if PROCESS.is_expecting:
        PROCESS.is_expecting = False
        with suppress(OSError):
            os.utime(os.path.join(options.cache_dir, USAGE))
