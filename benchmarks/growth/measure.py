"""What compiling the programs of a family takes, in a process of one library.

In: the library's name, a family, a limit. Out: a line of JSON: for each size seconds by the clock and of the processor,
of the first call. The processor's are those of this process and of all that it has started, which other work on the
machine disturbs less. No size is measured after one that took longer than the limit.

    $ python -m benchmarks.growth.measure graphc sums 20
    [[40, 1.1, 1.4], [80, 1.9, 2.5]]
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.growth.families import FAMILIES


def spent() -> float:
    """Seconds of the processor that this process has taken, and those that it started, finished or not (on Linux)."""
    total, pending = process_time(), children(os.getpid())
    while pending:
        process = pending.pop()
        try:
            fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        pending += children(process)
    return total + sum(os.times()[2:4])


def children(process: int) -> list[int]:
    """The processes that one has started."""
    found: list[int] = []
    for listing in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, listing.read_text(encoding="ascii").split())
        except OSError:
            continue
    return found


def measure(library: Any, name: str, limit: float) -> list[tuple[int, float, float]]:
    """Sizes and seconds, by the clock and of the processor."""
    library.jit(lambda x: library.numpy.tanh(x).sum())(np.ones(3))
    found = []
    for size in FAMILIES[name].sizes:
        function, arguments = FAMILIES[name].build(library, size)
        start, before = perf_counter(), spent()
        result = library.jit(function)(*arguments)
        if hasattr(library, "block_until_ready"):
            library.block_until_ready(result)
        found.append((size, perf_counter() - start, spent() - before))
        if found[-1][1] > limit:
            break
    return found


if __name__ == "__main__":
    peer, name, limit = sys.argv[1:]
    library = import_module(peer)
    for module in ("numpy", "lax", "random"):
        import_module(f"{peer}.{module}")
    print(json.dumps(measure(library, name, float(limit))))
