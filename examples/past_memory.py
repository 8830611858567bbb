"""A logistic regression on ten times as many bytes as a worker process may allocate, from files, on dask.

Give the limit of each worker in megabytes (100). Linux holds it there: an allocation beyond raises MemoryError.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from timeit import default_timer
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import graphc
import graphc.numpy as jnp
from graphc import distributed

LIMIT = int(sys.argv[1]) if sys.argv[1:] else 100
ROWS, COLUMNS = 20_000, 25
SHARDS = LIMIT * 10**7 // (ROWS * COLUMNS * 4)
TRUTH = np.linspace(-1.0, 1.0, COLUMNS - 1)


def write(folder: Path) -> None:
    """Write shards of float32 as .npy files: the label, then the features."""
    rng = np.random.default_rng(3)
    for k in range(SHARDS):
        rows = rng.standard_normal((ROWS, COLUMNS), np.float32)
        rows[:, 0] = rng.random(ROWS) < 1 / (1 + np.exp(-rows[:, 1:] @ TRUTH))
        np.save(folder / f"{k}.npy", rows)


def read(folder: str, block_id: tuple[int, int]) -> Any:
    return np.load(f"{folder}/{block_id[0]}.npy")


def hold(megabytes: int) -> bool:
    """Let this process allocate no more than these megabytes besides its libraries; tell whether it is so."""
    __import__("scipy.special")  # OpenBLAS, which waits for ever if it gets no memory
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    used = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData")] or [2**40]
    resource.setrlimit(resource.RLIMIT_DATA, (used[0] + megabytes * 10**6,) * 2)
    try:
        np.empty(megabytes * 10**6 + 10**6, np.uint8)
    except MemoryError:
        return True
    return False


def loss(w: Any, rows: Any) -> Any:
    return jnp.sum(jnp.logaddexp(0.0, (1 - 2 * rows[:, 0]) * (rows[:, 1:] @ w)))


def main(folder: Path, client: Client) -> None:
    write(folder)
    rows = da.map_blocks(read, str(folder), chunks=((ROWS,) * SHARDS, (COLUMNS,)), dtype="f4")
    print(f"{4e-6 * SHARDS * ROWS * COLUMNS:.0f} MB in {SHARDS} files; dashboard: {client.dashboard_link}", flush=True)
    print("the system holds them to the limit:", all(client.run(hold, LIMIT).values()))
    began = default_timer()
    near = distributed.fit(loss, np.zeros(COLUMNS - 1), rows, method=graphc.optimizers.adam(0.1), batch=5)
    print(f"Adam: {near.steps} steps in {default_timer() - began:.1f} s, loss {near.value:.4f}", flush=True)
    began = default_timer()
    found = distributed.fit(loss, near.params, rows, steps=3)
    print(f"L-BFGS: {found.steps} steps in {default_timer() - began:.1f} s, loss {found.value:.6f}")
    off = np.abs(found.params - TRUTH).max()
    assert found.value < near.history[0] and off < 0.05
    print(f"ten times the memory, and every weight within {off:.4f} of the truth")


if __name__ == "__main__":
    local: Any = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with tempfile.TemporaryDirectory() as place, local as cluster, Client(cluster, timeout=60) as one:
        main(Path(place), one)
