"""What the measurements were made on: the processor, the memory, the versions.

In: the peers' Python. Out: texts without paths or host names.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.libraries import PEERS

PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "jax", "jaxlib", "pytensor", "torch")
ASK = f"""
from importlib.metadata import PackageNotFoundError, version
for name in {PACKAGES!r}:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def describe_machine() -> dict[str, str]:
    """Processor, cores this process may use, memory, system, Python, and the date, of Greenwich."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": read_processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def read_processor() -> str:
    """The model's name, on Linux."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def read_versions(peers: Sequence[str], python: str) -> dict[str, dict[str, str]]:
    """Versions of the packages in graphc's environment (`own`) and in the peers' (`peers`), if it takes part."""
    asked = {"own": sys.executable}
    if any(not PEERS[peer].own for peer in peers):
        asked["peers"] = python
    found = {}
    for where, interpreter in asked.items():
        done = subprocess.run([interpreter, "-c", ASK], capture_output=True, text=True, check=True)
        pairs = [line.partition(" ")[::2] for line in done.stdout.splitlines()]
        found[where] = dict(pairs)
    return found
