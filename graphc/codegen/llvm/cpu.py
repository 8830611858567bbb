"""The facts that decide the code made on this machine, found without the compiler.

In: the system, the option `target`. Out: a fingerprint: versions of the compiler's packages and of Python, what code is
made for, the processor and its features.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib import import_module

from graphc.errors import GraphcError
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.versions import version_of

PROCESSOR = "/proc/cpuinfo"
IDENTITY = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
)
"""Lines of PROCESSOR that tell one kind from another, for x86 and for Arm; the rest are counters and clocks."""
FEATURES = ("flags", "Features")
FIRST_BYTES = 16384
"""More than what PROCESSOR says of the first processor, and much less than it says of many."""


def target_fingerprint() -> str:
    """Versions of llvmlite, numba and Python, the target, the CPU's name and its features: an object fits where this
    string is the same.

    Neither package is imported. One line, a few kB long at most; the features are its last part, joined by commas.
    Raises GraphcError for a target that is not the one that the process began with: its functions share code.
    """
    first = PROCESS.target or options.target
    if first != options.target:
        already = f"functions of this process are compiled for {first!r} already; it is set before"
        raise GraphcError(f"option target={options.target!r}: {already}")
    return _fingerprint(options.target)


def keep_target() -> None:
    """Hold the process to its target, for which code is there now."""
    PROCESS.target = options.target


@cache
def _fingerprint(target: str) -> str:
    parts = (
        f"llvmlite {version_of('llvmlite')}",
        f"numba {version_of('numba')}",
        f"python {platform.python_version()}",
        f"target {target}",
        f"{sys.platform} {os.uname().machine if hasattr(os, 'uname') else platform.machine()}",
        *processor(),
    )
    return "; ".join(parts)


def processor() -> tuple[str, str]:
    """The CPU's name and its features, as the system tells them; where it does not, the compiler is asked."""
    try:
        with open(PROCESSOR, "rb", buffering=0) as file:
            first = file.read(FIRST_BYTES).partition(b"\n\n")[0].decode()
    except (OSError, UnicodeDecodeError):
        first = ""
    said = dict(line.replace("\t", "").split(": ", 1) for line in first.splitlines() if ": " in line)
    name = " ".join(said[word].strip() for word in IDENTITY if word in said and word not in FEATURES)
    features = ",".join(said[word].strip().replace(" ", ",") for word in FEATURES if word in said)
    if name and features:
        return name.replace(";", ","), features
    name, _, features = import_module("graphc.codegen.llvm.target").processor()
    return name, features
