"""Starts of processes as ratios: a file that is loaded against NumPy's import, ten warm functions against one.

    python -m benchmarks.starts [ROUNDS]

Each program runs in a process of its own, all in turn in every round, and the shortest time of each counts. Also
shown: the time of the processor, which other work on the machine disturbs less. Modules are compiled to bytecode first.
"""

from __future__ import annotations

import compileall
import os
import sys
import tempfile
import time
from pathlib import Path

import graphc
import graphc.tensor as T
from graphc.options import options

LOADED = """
import numpy as np, graphc
f = graphc.load({path!r}, recompile=False)
f(np.ones((4, 3)))
"""
WARM = """
import numpy as np, graphc, graphc.tensor as T
for k in range({count}):
    x = T.dvector("x")
    f = graphc.function([x], T.exp(x * (k + 1)).sum() + k, name=f"f{{k}}")
    f(np.ones(3))
"""


def measure(programs: dict[str, str], rounds: int, environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Return for each program the least seconds of a process, by the clock and of the processor."""
    best = dict.fromkeys(programs, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            process = os.posix_spawn(sys.executable, [sys.executable, "-c", program], environment)
            _, status, used = os.wait4(process, 0)
            taken = time.perf_counter() - start
            if status:
                raise SystemExit(f"{name} failed")
            best[name] = min(best[name][0], taken), min(best[name][1], used.ru_utime + used.ru_stime)
    return best


def main(rounds: int) -> None:
    compileall.compile_dir(os.path.dirname(graphc.__file__), quiet=1)
    with tempfile.TemporaryDirectory() as folder, options.change(cache_dir=Path(folder, "cache")):
        path = os.path.join(folder, "model.graphc")
        x, w = T.dmatrix("x"), graphc.shared([0.5, -0.5, 0.25], name="w")
        graphc.function([x], [T.tanh(T.dot(x, w)).sum(), T.exp(x).sum(0)], name="model").save(path)
        programs = {
            "numpy": "import numpy",
            "graphc": "import graphc",
            "load": LOADED.format(path=path),
            "one": WARM.format(count=1),
            "ten": WARM.format(count=10),
        }
        environment = {**os.environ, "GRAPHC_CACHE_DIR": str(options.cache_dir), "OMP_NUM_THREADS": "1"}
        measure({"fill": programs["ten"]}, 1, environment)
        found = measure(programs, rounds, environment)
    for name, (wall, spent) in found.items():
        print(f"{name:8} {wall * 1e3:7.1f} ms {spent * 1e3:7.1f} ms of the processor")
    for over, under in (("graphc", "numpy"), ("load", "numpy"), ("ten", "one")):
        ratios = [more / less for more, less in zip(found[over], found[under], strict=True)]
        print(f"{over} / {under}: {ratios[0]:.2f} by the clock, {ratios[1]:.2f} of the processor")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
