"""A process that compiles one program with one library and calls it when it is asked to.

In: `python -m benchmarks.sweep.worker LIBRARY PROGRAM ANSWERS`: a program as JSON and a file for its results; then a
line on standard input for each round. Out: a line of JSON each: first `compile`, the seconds of the first call, whose
results are written, or `absent`, or `failed`; then `call`, the seconds of one call in this round.

Seconds are those that the processor spends on all threads of this process, and on compile processes that it has
started: a neighbour does not change them. A small program is compiled before: what a library starts once in each
process is not counted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.sweep.kinds import KINDS
from benchmarks.sweep.libraries import LIBRARIES, flat
from benchmarks.sweep.program import Kind, Program, arguments

BATCH_SECONDS = 0.004
TRIVIAL = Kind("trivial", {}, lambda _: (np.ones(3),), {"": lambda _, x: x + 1.0}, lambda x: x + 1.0)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def seconds_with_children() -> float:
    """Seconds of the processor, of this process and of those that it and they have started (on Linux)."""
    parents: dict[str, str] = {}
    ticks: dict[str, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_bytes().rpartition(b")")[2].split()
            parents[stat.parent.name] = fields[1].decode()
            ticks[stat.parent.name] = sum(map(int, fields[11:15]))  # user and system, and its ended children's
    ours, family = set(), {str(os.getpid())}
    while family:
        family = {child for child, parent in parents.items() if parent in family}
        ours |= family
    times = os.times()
    below = sum(ticks[child] for child in ours) / os.sysconf("SC_CLK_TCK")
    return times.children_user + times.children_system + process_time() + below


def first_result(library: Any, kind: Kind, program: Program) -> tuple[float, Callable[[], Any] | None, Any]:
    """The seconds to a first result, the call, and the result."""
    inputs = arguments(kind, program)
    values = [library.convert(array) for array in inputs]
    start = seconds_with_children()
    compiled = library.compiled(kind, program, inputs)
    if compiled is None:
        return 0.0, None, None

    def call() -> Any:
        return library.wait(compiled(*values))

    result = call()
    return seconds_with_children() - start, call, result


def calls_in(call: Callable[[], Any], seconds: float) -> int:
    """How many calls a batch makes."""
    start, count = process_time(), 0
    while process_time() - start < seconds:
        call()
        count += 1
    return count


def seconds_of_call(call: Callable[[], Any], count: int) -> float:
    """The mean of a batch, after one call that brings the data back to the caches."""
    call()
    start = process_time()
    for _ in range(count):
        call()
    return (process_time() - start) / count


def main() -> None:
    name, text, answers = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before any library counts the processors
    program = Program(**json.loads(text))
    library = LIBRARIES[name]()
    trivial = Program("trivial", "", "float64", {}, "jit", False)
    first_result(library, TRIVIAL, trivial)
    try:
        seconds, call, result = first_result(library, KINDS[program.kind], program)
    except Exception as error:
        say(failed=f"{type(error).__name__}: {error}"[:2000])
        return
    if call is None:
        say(absent=True)
        return
    np.savez(answers, *[np.asarray(array) for array in flat(result)])
    say(compile=seconds)
    count = calls_in(call, BATCH_SECONDS)
    for _ in sys.stdin:
        say(call=seconds_of_call(call, count))


if __name__ == "__main__":
    main()
