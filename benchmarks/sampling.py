"""What is measured inside a process: the first result, the time of a call, the memory, the error.

In: the names of a peer and a workload. Out: a dict of figures. `first`: seconds from an imported library and its own
arrays to a first result; `steady`: the median of a call over batches of calls; `best`: the fastest batch; `peak`: bytes
held at the worst moment above what was held before the build; `difference`: the largest error of the answers. Of
graphc, where it had to compile: `compile`, the seconds that it takes to compile the same again, and `nests`.
"""

from __future__ import annotations

import gc
import re
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.libraries import PEERS, Symbolic, load
from benchmarks.suite import WORKLOADS, builder
from benchmarks.workload import Data, Program, Size, answers, difference, reference

BATCH_SECONDS = 0.02
MOST_CALLS = 20_000
COMPILATIONS = 8
NEST = re.compile(r"^ *nest \d+:", re.MULTILINE)


def sample(
    peer_name: str, workload_name: str, seconds: float, check: bool, size: Size | None = None
) -> dict[str, float]:
    """The figures of this process."""
    peer, workload = PEERS[peer_name], WORKLOADS[workload_name]
    library, build = load(peer), builder(workload, peer.kind)
    data = workload.make(size)
    arguments = data.arguments if workload.numpy_io else tuple(map(library.convert, data.arguments))
    gc.collect()
    before = peak_memory(reset=True)
    start = perf_counter()
    program = build(library, data)
    first = program.call(*arguments)
    figures = {"first": perf_counter() - start}
    found = answers(program, arguments, first, workload.summary)
    figures |= steady(program, arguments, seconds)
    figures["peak"] = float(max(0, peak_memory() - before))
    if check:
        figures["difference"] = difference(found, reference(workload, load(PEERS["numpy"]), size))
    if peer_name == "graphc":
        figures |= compile_again(library, build, data)
    return figures


def compile_again(library: Symbolic, build: Callable[[Any, Data], Program], data: Data) -> dict[str, float]:
    """`compile`: seconds in `function` for all functions of a program, beside a compile process that has compiled and
    with the parts that are made once for a machine, the least of some; `nests`: the fused nests of their plans. Nothing
    where the program came from the cache. Functions of one graph share their code while one of them lives: it is
    forgotten before each round."""
    if not import_module("graphc.startup.process").PROCESS.compilations:
        return {}
    codes = import_module("graphc.codegen.pipeline.build").codes
    made: list[tuple[float, int]] = []

    def function(*args: Any, **more: Any) -> Any:
        start = perf_counter()
        compiled = library.function(*args, **more)
        made.append((perf_counter() - start, len(NEST.findall(compiled.plan))))
        return compiled

    rounds: list[tuple[float, int]] = []
    with import_module("graphc.options").options.change(cache=False):
        for _ in range(COMPILATIONS):
            made.clear()
            codes().clear()
            build(replace(library, function=function), data)
            rounds.append((sum(seconds for seconds, _ in made), sum(nests for _, nests in made)))
    seconds, nests = min(rounds)
    return {"compile": seconds, "nests": float(nests)}


def steady(program: Program, arguments: Sequence[Any], seconds: float) -> dict[str, float]:
    """Seconds of a call: the median and the least of batches of calls, in a loop of `seconds` or a little more."""
    once = min(time_calls(program, arguments, 1) for _ in range(2))
    count = max(1, min(MOST_CALLS, int(BATCH_SECONDS / max(once, 1e-9))))
    batches: list[float] = []
    end = perf_counter() + seconds
    while len(batches) < 2 or perf_counter() < end:
        batches.append(time_calls(program, arguments, count))
    return {"steady": median(batches), "best": min(batches)}


def time_calls(program: Program, arguments: Sequence[Any], count: int) -> float:
    """Seconds of one of `count` calls."""
    call = program.call
    start = perf_counter()
    for _ in range(count):
        call(*arguments)
    return (perf_counter() - start) / count


def peak_memory(reset: bool = False) -> int:
    """The most bytes of memory that this process has held; `reset` begins anew from what it holds now (Linux only)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
