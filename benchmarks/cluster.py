"""`python -m benchmarks.cluster`: how sums over rows go with one, two and four worker processes, on dask.

In: arguments, see --help. Out: a table: kernels of several milliseconds, and the rows a second of a logistic
regression's gradient from a folder of .npy files. Rounds of one, two and four take turns; the least counts.

    $ python -m benchmarks.cluster --rounds 5
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import graphc.numpy as jnp
from graphc import distributed

ROWS, COLUMNS, FILES = 100_000, 20, 40
SHARDS = 32
WORKERS = 1, 2, 4
REPEATS = {"10 ms": 100, "50 ms": 500}
"""How often a kernel goes over its shard, for about so long a task."""


def logistic(w: Any, rows: Any) -> Any:
    return jnp.sum(jnp.logaddexp(0.0, (1 - 2 * rows[:, 0]) * (rows[:, 1:] @ w)))


class Waves:
    """A loss of many elementary functions."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, w: Any, x: Any) -> Any:
        total = x * w
        for k in range(self.count):
            total = jnp.sin(total + k)
        return jnp.sum(total)


def read(folder: str, block_id: tuple[int, int]) -> Any:
    return np.load(f"{folder}/{block_id[0]}.npy")


def seconds(run: Any) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began


def measure(workers: int, folder: str) -> dict[str, float]:
    """Return seconds for each task on a cluster of so many processes, each of one thread."""
    found = {}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        x = da.random.default_rng(1).normal(size=SHARDS * 25_000, chunks=25_000).persist()
        for name, count in REPEATS.items():
            summed = distributed.value_and_grad(Waves(count))
            summed(0.5, x)
            found[name] = min(seconds(lambda summed=summed, w=w: summed(w, x)) for w in (0.6, 0.7, 0.8))
        rows = da.map_blocks(read, folder, chunks=((ROWS,) * FILES, (COLUMNS,)), dtype="f8")
        summed = distributed.value_and_grad(logistic)
        w = np.zeros(COLUMNS - 1)
        summed(w, rows)
        found["rows"] = min(seconds(lambda: summed(w + 0.1, rows)) for _ in range(3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        for k in range(FILES):
            rows = rng.normal(size=(ROWS, COLUMNS))
            rows[:, 0] = rows[:, 1] > 0
            np.save(Path(folder) / f"{k}.npy", rows)
        found: dict[int, list[dict[str, float]]] = {count: [] for count in WORKERS}
        for _ in range(rounds):
            for workers, each in found.items():
                each.append(measure(workers, folder))
    print(f"| | {' | '.join(f'{count} workers' for count in WORKERS)} | one / two |")
    print("|---" * (len(WORKERS) + 2) + "|")
    for name in [*REPEATS, "rows"]:
        times = [min(each[name] for each in found[workers]) for workers in WORKERS]
        print(f"| {name} | {' | '.join(f'{time:.3f} s' for time in times)} | {times[0] / times[1]:.2f} |")
    print(f"rows a second, two workers: {ROWS * FILES / min(each['rows'] for each in found[2]):.3g}")


if __name__ == "__main__":
    main()
