"""Threads of parallel loops: the chunks that they share out, how many there are, and when a loop is worth them.

In: `options.threads`, the processors of this process, the object of pool.py. Out: the address of gc_parallel, and
for each function the settings that its machine code reads at each call.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from graphc.codegen.link.image import load
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import record

# --- the chunks of a loop, which threads share out and a reduction combines in order ----------------------------------
# In: the iterations of a loop, the work of each. Out: the iterations of a chunk. Nothing else decides, neither how many
# threads there are nor how fast, so that a result is the same to the bit for any number of them; but for columns, which
# do not meet in a result.

CHUNK_WORK = 2**17
"""Work of a chunk at least, in units of an addition: some microseconds, against the tenth of one that a claim takes."""
MOST_CHUNKS = 256
LEAST_COLUMNS, MOST_COLUMNS = 256, 1024
"""Columns of which a thread goes over all rows. Parts of rows of fewer elements than the first are slow to read, for
hardware fetches ahead within a page of memory only; more than the second make no difference."""
LINE = 64
"""Iterations of which a large chunk is a multiple, so that two threads seldom write to one cache line."""

PARALLEL, STREAM, CHUNK, COLUMNS, SETTINGS = "gc_parallel", "gc_stream", "gc_chunk", "gc_columns", "gc_settings"
"""The symbols that a kernel with parallel loops needs: four functions of the pool (pool.py), and the settings of
the kernel's function, five int64: threads, the least number of chunks for several of them, the least work of a chunk,
the back-off (pool.py), the least bytes for non-temporal stores (pool.py)."""
SETTINGS_WORDS = 5
NONTEMPORAL = "by non-temporal stores"
"""A plan's word for a result that non-temporal stores may write."""
THREADS, LEAST_CHUNKS, LEAST_WORK, BACK_OFF_WORD, LEAST_STREAMED = range(5)
"""Their places."""
BACK_OFF = 20
"""Threads lose at most one part in this many, whatever else the machine does."""
MOST_WORDS = 64
"""The words of the context of a loop whose result non-temporal stores write: it is copied to the stack."""


def columns_size(count: int, work: int, parts: int, least: int = CHUNK_WORK) -> int:
    """The number of `count` columns of this work each that a thread takes at a time. Columns do not meet, and no bit of
    a result depends on this: it is the share of each of `parts`, as many as there are threads, but no fewer than
    several threads are started for."""
    share = min(-(-count // parts // LINE) * LINE, MOST_COLUMNS)
    return max(chunk_size(count, work, least), share, LEAST_COLUMNS)


def chunk_size(count: int, work: int, least: int = CHUNK_WORK) -> int:
    """The number of `count` iterations of this work each that make a chunk; all of them where it would not be worth
    two."""
    chunks = min(max(count * work // least, 1), MOST_CHUNKS)
    size = -(-count // chunks)
    return max(-(-size // LINE) * LINE if size >= 16 * LINE else size, 1)


# --- threads ----------------------------------------------------------------------------------------------------------

DEFAULT_CROSSOVER = 4
"""Chunks from which on threads pay, where that cannot be measured."""
MOST_CROSSOVER = 8
"""More says that the other processors were busy, as they are while a kernel is compiled: the figure is not kept."""
PROBE = "gc_probe"
POOL_EXPORTS = (PARALLEL, STREAM, CHUNK, COLUMNS, PROBE)

Words = np.ndarray[Any, np.dtype[np.int64]]


def thread_count(threads: int | str | None = None) -> int:
    """The number asked for; else `options.threads`; else the processors that this process may use."""
    chosen = options.threads if threads is None else threads
    return available_processors() if chosen == "auto" else int(chosen)


@cache
def available_processors() -> int:
    """Return the processors that affinity and control groups leave this process, or what OMP_NUM_THREADS says, with
    which schedulers of processes keep libraries from taking each other's processors."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isascii() and said.isdigit() and 1 <= int(said) <= 9999:
        return int(said)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([processors, *quotas("/proc/self/cgroup", "/sys/fs/cgroup")]))


QUOTA_FILES = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
"""Quota and period in microseconds: of the second version of control groups in one file, of the first in two."""


def quotas(groups: str, mount: str) -> Iterator[int]:
    """The processors' worth of time that each control group above this process may use, rounded up."""
    for line in _read(groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = f"{mount}/cpu" if controllers else mount
        for name in ("", *path.strip("/").split("/")):
            folder = f"{folder}/{name}".rstrip("/")
            words = [word for file in QUOTA_FILES for word in _read(f"{folder}/{file}").split()]
            if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
                yield -(-int(words[0]) // int(words[1]))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


CACHE_FILE = "/sys/devices/system/cpu/cpu0/cache/index3/size"
TYPICAL_CACHE = 2**25


@cache
def least_streamed_bytes() -> int:
    """From how many bytes on non-temporal stores write a result: three quarters of the last of them. What is read for
    it is as large at least, so that the two do not fit. A typical cache counts where the system does not tell."""
    text = _read(CACHE_FILE).strip()
    scale = {"K": 2**10, "M": 2**20}.get(text[-1:], 0)
    said = int(text[:-1]) * scale if text[:-1].isascii() and text[:-1].isdigit() else 0
    return (said or TYPICAL_CACHE) // 4 * 3


def settings_of(threads: int | str | None, crossover: int) -> Words:
    """The settings of a function."""
    return settings_words(thread_count(threads), crossover)


def settings_words(threads: int, least_chunks: int, back_off: int = BACK_OFF) -> Words:
    """Settings as machine code reads them."""
    return np.array([threads, least_chunks, CHUNK_WORK, back_off, least_streamed_bytes()], np.int64)


@record()
class Pool:
    """The loaded pool: the addresses of its functions, which are never unmapped."""

    parallel: int
    stream: int
    chunk: int
    columns: int
    probe: int


def load_pool(code: bytes) -> Pool:
    """Load the code of `pool_ir` at the first call; later ones give the same pool."""
    if PROCESS.pool is None:
        loaded = load(code, {}, POOL_EXPORTS)
        ctypes.pythonapi["Py_IncRef"](ctypes.py_object(loaded.owner))  # its workers outlive this module
        PROCESS.pool = Pool(*(loaded.addresses[name] for name in POOL_EXPORTS))
    pool: Pool = PROCESS.pool
    return pool


UNIT_SECONDS = 5e-11
"""The time of a unit of work, about: an addition of float64 out of the cache is 6 units, an exponential 25."""
LONGEST_PROBE = 2**18
"""Iterations of gc_probe; some 400 microseconds."""
ROUNDS, TRIES = 5, 5
PAUSE_SECONDS = 2e-4
"""Long enough for workers to fall asleep, as they are where loops are rare."""
GAIN = 0.85
"""The most time that two threads may take, in units of that of one, to be worth it."""


def measure_crossover(pool: Pool) -> int:
    """From how many chunks on two threads are faster than one on this machine. Takes some 80 ms, most of them asleep.

    The least of several answers counts, and where even a long loop gains nothing, a typical one is given: what else the
    machine does at the moment only makes threads look slower, and says nothing about later.
    """
    if available_processors() < 2:
        return DEFAULT_CROSSOVER
    return min(_crossover_now(pool) for _ in range(TRIES))


def _crossover_now(pool: Pool) -> int:
    launch = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)(pool.parallel)
    data = np.zeros(LONGEST_PROBE)

    def seconds(iterations: int, threads: int) -> float:
        settings = settings_words(threads, 2, back_off=0)
        time.sleep(PAUSE_SECONDS)
        start = time.perf_counter()
        launch(pool.probe, data.ctypes.data, iterations, iterations // 8, settings.ctypes.data)
        return time.perf_counter() - start

    shortest, iterations = 0.0, LONGEST_PROBE
    while iterations >= 8:
        pairs = [(seconds(iterations, 1), seconds(iterations, 2)) for _ in range(ROUNDS)]
        serial, two = map(min, zip(*pairs, strict=True))
        if two > GAIN * serial:
            break
        shortest, iterations = serial, iterations // 2
    chunks = max(math.ceil(shortest / (UNIT_SECONDS * CHUNK_WORK)), 2)
    return chunks if shortest and chunks <= MOST_CROSSOVER else DEFAULT_CROSSOVER
