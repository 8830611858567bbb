"""Measures programs: a process for each library, rounds that take turns, results that are compared.

In: a `Program`. Out: a record for the file of results:

    {"program": {...}, "compile": {"graphc": 0.4, "jax": 0.6}, "call": {"graphc": 1e-5, ...}, "failed": {"numpy": "no"}}

Seconds of a call are medians over rounds. A cold start has an empty cache of its own. All run on one processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

from benchmarks.sweep.kinds import KINDS
from benchmarks.sweep.program import Array, Program

ROOT = Path(__file__).parent.parent.parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LIMIT = 120.0
FLOAT32_TOLERANCE = 2e-3


class Worker:
    """A process of `worker.py`, and its last word."""

    def __init__(self, library: str, python: str, program: Program, folder: Path) -> None:
        self.answers = folder / f"{library}.npz"
        environment = {**os.environ, **ONE_THREAD, "GRAPHC_CACHE_DIR": str(folder / "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment |= {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
        text = json.dumps(program.as_json())
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.sweep.worker", library, text, str(self.answers)],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.lines: Queue[str] = Queue()
        Thread(target=self.listen, daemon=True).start()
        self.said = self.hear()

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def hear(self) -> dict[str, Any]:
        """The next line, or `failed` where the process ends or says nothing for long."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=max(end - time.monotonic(), 0.01))
            except Empty:
                break
            if not line:
                return {"failed": f"ended with {self.process.wait(10)}"}
            if line.startswith("{"):
                said: dict[str, Any] = json.loads(line)
                return said
        return {"failed": f"more than {LIMIT:.0f} s"}

    def call(self) -> float:
        """The seconds of a call in this round."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.hear().get("call", np.nan))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def read(path: Path) -> list[Array]:
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def difference(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest difference, relative to the largest element of each expected result; inf for another size."""
    one = np.concatenate([np.ravel(array) for array in found]).astype("float64")
    other = np.concatenate([np.ravel(array) for array in expected]).astype("float64")
    if one.shape != other.shape:
        return float("inf")
    scales = [np.full(array.size, np.max(np.abs(array), initial=1e-300), "float64") for array in expected]
    with np.errstate(invalid="ignore"):
        apart = np.abs(one - other) / np.concatenate(scales)
    apart[(one == other) | (np.isnan(one) & np.isnan(other))] = 0.0
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def measure(program: Program, pythons: Mapping[str, str], rounds: int) -> dict[str, Any]:
    """The record of one program; pythons: the interpreter of each library."""
    record: dict[str, Any] = {"program": program.as_json(), "compile": {}, "call": {}, "failed": {}}
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="graphc-sweep-") as folder:
        try:
            for library, python in pythons.items():
                workers[library] = worker = Worker(library, python, program, Path(folder))
                if "failed" in worker.said:
                    record["failed"][library] = worker.said["failed"]
                elif "compile" in worker.said:
                    record["compile"][library] = worker.said["compile"]
            running = [library for library in workers if library in record["compile"]]
            compare(record, {library: read(workers[library].answers) for library in running}, program)
            times: dict[str, list[float]] = {library: [] for library in running}
            for _ in range(rounds):
                for library in running:
                    times[library].append(workers[library].call())
            record["call"] = {library: median(all_times) for library, all_times in times.items()}
        finally:
            for worker in workers.values():
                worker.close()
    return record


def compare(record: dict[str, Any], answers: Mapping[str, list[Array]], program: Program) -> None:
    """Note whose answers differ from graphc's, or that graphc's do from all others'."""
    if "graphc" not in answers:
        return
    allowed = FLOAT32_TOLERANCE if program.dtype == "float32" else KINDS[program.kind].tolerance
    apart = {name: difference(found, answers["graphc"]) for name, found in answers.items() if name != "graphc"}
    record["difference"] = apart
    record["differs"] = [name for name, size in apart.items() if size > allowed]


def default_pythons(peers: str, wanted: Sequence[str]) -> dict[str, str]:
    """The interpreter of each library that is wanted and there."""
    there = [name for name in wanted if name != "jax" or Path(peers).exists()]
    return {name: peers if name == "jax" else sys.executable for name in there}
