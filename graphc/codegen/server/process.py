"""The compile process as a child of this one: its start, also ahead of the first request.

In: nothing. Out: processes that run `worker.py`, and the files of their standard error. `prestart.py` starts one while
hardly anything is imported: so this module imports little.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module

from graphc.startup.process import PROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to import as all above
    from typing import IO, TypeAlias

    Child: TypeAlias = tuple[subprocess.Popen[bytes], IO[bytes]]

# A package of this name without its __init__: the compile process needs the modules below, not what graphc imports.
# SciPy, which numba imports where it is installed, is hidden, and so is what kernels can do without (numba_subset.py).
BOOT = """
import gc
gc.disable()
import sys
from types import ModuleType
sys.path[:] = {path!r}
sys.modules["scipy"] = None
package = sys.modules["graphc"] = ModuleType("graphc")
package.__path__ = [{package!r}]
from graphc.codegen.server.numba_subset import import_worker
import_worker(lean={lean}).main()
"""


def start_ahead() -> None:
    """Start a process for the first request. Does nothing where the system cannot start one."""
    with suppress(OSError):
        PROCESS.ahead.append(start_process(lean=True))
        PROCESS.forgetting.append(_forget_ahead)
        atexit.register(_end_ahead)


def take_ahead() -> Child | None:
    """Return the process that was started ahead, once; None where it has ended since."""
    if not PROCESS.ahead:
        return None
    process, complaints = PROCESS.ahead.pop()
    if process.poll() is None:
        return process, complaints
    close_pipes(process)
    complaints.close()
    return None


def _end_ahead() -> None:
    """End a process that was started ahead and not used."""
    while PROCESS.ahead:
        process, complaints = PROCESS.ahead.pop()
        process.kill()
        close_pipes(process)
        complaints.close()
        process.wait()


def _forget_ahead() -> None:
    """Forget the process in the child of a fork: it belongs to the parent."""
    while PROCESS.ahead:
        process, complaints = PROCESS.ahead.pop()
        forget(process)
        complaints.close()


def forget(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes in the child of a fork, so that they are closed when the parent ends."""
    for pipe in (process.stdin, process.stdout):
        # The file below the buffer: a thread of the parent that was reading holds the buffer's lock for ever here.
        raw = getattr(pipe, "raw", None)
        if raw is not None:
            raw.close()
    # Not a child of this process: nothing to wait for, and no warning that it still runs.
    process.returncode = 0


def start_process(lean: bool) -> Child:
    """Start a compile process. lean: with the lean numba (numba_subset.py), where that is possible. Raises OSError
    where the system cannot start one."""
    if not sys.executable:
        raise OSError("no interpreter to start")
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    boot = BOOT.format(path=[os.path.abspath(entry) for entry in sys.path], package=package, lean=lean)
    # numba's own settings must not reach the object; one BLAS thread, since nothing is multiplied there.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    complaints = scratch_file()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=environment,
        )
    except OSError:
        complaints.close()
        raise
    return process, complaints


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def scratch_file() -> IO[bytes]:
    """Return a file without a name, in memory where the system has these: importing tempfile would delay the start."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("complaints of the compiler"), "w+b")
    file: IO[bytes] = import_module("tempfile").TemporaryFile()
    return file
