"""How long calls take while other processes keep processors busy.

    python -m benchmarks.neighbours ["cholesky 200" ...] [--seconds 0.1]

In: names of programs, all where none is named. Out: a table. `quiet`: milliseconds of a call with one thread and with
several. Each other situation: the mean call with several threads, in units of a fair share, then in units of one thread
on the quiet machine, and the milliseconds of the longest. A fair share is what one thread takes in the same situation,
measured in turns, or several on a quiet machine where that is longer.

`1 busy`, `2 busy`: other processes compute without end; `twin`: the same program runs in a second process at the same
time; `forked`: eight forked children run it; `affinity`: the process may use one processor; `quota`: a control group
leaves it half of one, where the system lets us make one. Each runs in a process of its own, so that the number of
threads is found there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

import graphc
import graphc.tensor as T
from benchmarks.libraries import PEERS, load
from benchmarks.suite import WORKLOADS, builder

Calls: TypeAlias = Callable[[], Any]
SPIN = "while True: pass"
TIMEOUT = 300
GROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Where the two versions of control groups are mounted."""
FORKED = 8
ROUNDS, LEAST_CALLS = 3, 3


# Programs. ------------------------------------------------------------------------------------------------------------


def gaussian_process(rows: int) -> Callable[[int | str], Calls]:
    workload = WORKLOADS["gaussian-process"]

    def build(threads: int | str) -> Calls:
        data = workload.make((rows, 2))
        with graphc.options.change(threads=threads):
            call = builder(workload, "symbolic")(load(PEERS["graphc"]), data).call
        return lambda: call(*data.arguments)

    return build


def one(write: Callable[[Any], Any], *shapes: tuple[int, ...]) -> Callable[[int | str], Calls]:
    """A program of arrays of these shapes. write: its result, of its variables."""

    def build(threads: int | str) -> Calls:
        rng = np.random.default_rng(0)
        variables = [T.tensor("float64", shape=(None,) * len(shape)) for shape in shapes]
        values = [rng.normal(size=shape) for shape in shapes]
        function = graphc.function(variables, write(variables), threads=threads)
        return lambda: function(*values)

    return build


def positive(rows: int, write: Callable[[Any], Any], *more: tuple[int, ...]) -> Callable[[int | str], Calls]:
    """A program of a positive definite matrix, and others."""

    def build(threads: int | str) -> Calls:
        rng = np.random.default_rng(0)
        factor = rng.normal(size=(rows, rows))
        values = [factor @ factor.T + rows * np.eye(rows), *(rng.normal(size=shape) for shape in more)]
        variables = [T.dmatrix() for _ in values]
        function = graphc.function(variables, write(variables), threads=threads)
        return lambda: function(*values)

    return build


def mlp_step(threads: int | str) -> Calls:
    rng = np.random.default_rng(0)
    x, y = T.dmatrix("x"), T.dmatrix("y")
    sizes = (256, 256, 256, 10)
    weights = [graphc.shared(rng.normal(size=pair) / 16) for pair in pairwise(sizes)]
    layer: Any = x
    for weight in weights[:-1]:
        layer = T.tanh(layer @ weight)
    cost = ((layer @ weights[-1] - y) ** 2).mean()
    updates = [(w, w - 0.01 * g) for w, g in zip(weights, graphc.grad(cost, weights), strict=True)]
    step = graphc.function([x, y], cost, updates=updates, threads=threads)
    batch, wanted = rng.normal(size=(256, 256)), rng.normal(size=(256, 10))
    return lambda: step(batch, wanted)


PROGRAMS: dict[str, Callable[[int | str], Calls]] = {
    "gaussian process 200": gaussian_process(200),
    **{f"cholesky {rows}": positive(rows, lambda v: T.linalg.cholesky(v[0])) for rows in (50, 100, 200, 500, 1000)},
    "solve 200, 1 column": positive(200, lambda v: T.linalg.solve(v[0], v[1]), (200, 1)),
    "solve 200, 200 columns": positive(200, lambda v: T.linalg.solve(v[0], v[1]), (200, 200)),
    "solve 500, 500 columns": positive(500, lambda v: T.linalg.solve(v[0], v[1]), (500, 500)),
    "eigh 200": positive(200, lambda v: T.linalg.eigh(v[0])[0]),
    "svd 200": positive(200, lambda v: T.linalg.svd(v[0])[1]),
    "exp of 1,000,000": one(lambda v: T.exp(v[0]) * 2 + v[0], (1_000_000,)),
    "tanh of 20,000": one(lambda v: T.tanh(v[0]), (20_000,)),
    "sum of 4,000,000": one(lambda v: (v[0] ** 2).sum(), (4_000_000,)),
    "sum of columns, 2000 x 500": one(lambda v: T.exp(v[0]).sum(0), (2000, 500)),
    "product 100": one(lambda v: v[0] @ v[1], (100, 100), (100, 100)),
    "product 300": one(lambda v: v[0] @ v[1], (300, 300), (300, 300)),
    "product 1000": one(lambda v: v[0] @ v[1], (1000, 1000), (1000, 1000)),
    "matrix-vector 2000": one(lambda v: v[0] @ v[1], (2000, 2000), (2000,)),
    "step of a network": mlp_step,
}


# Measuring. -----------------------------------------------------------------------------------------------------------


def time_calls(call: Calls, seconds: float) -> tuple[float, float]:
    """The mean and the longest of the calls within these seconds."""
    taken: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(taken) < LEAST_CALLS:
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return fmean(taken), max(taken)


Figures: TypeAlias = tuple[float, float, float]
"""Seconds of a call: the mean with one thread, the mean with several, the longest with several."""


def in_turns(single: Calls, several: Calls, seconds: float, least: bool = False) -> Figures:
    """The figures of a program, whose rounds take turns. least: of the fastest round, of a machine as it is."""
    rounds = [(time_calls(single, seconds), time_calls(several, seconds)) for _ in range(ROUNDS)]
    over = min if least else fmean
    one, more = (over(pair[place][0] for pair in rounds) for place in range(2))
    return one, more, max(pair[1][1] for pair in rounds)


class Spinners:
    """Processes that compute without end, stopped but within `busy`."""

    def __init__(self, count: int) -> None:
        self.processes = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
        self.send(signal.SIGSTOP, count)

    def send(self, number: int, count: int) -> None:
        for process in self.processes[:count]:
            process.send_signal(number)

    @contextmanager
    def busy(self, count: int) -> Iterator[None]:
        """While this many are busy."""
        self.send(signal.SIGCONT, count)
        try:
            yield
        finally:
            self.send(signal.SIGSTOP, count)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def child(names: Sequence[str], seconds: float, busy: int) -> None:
    """Print a line of JSON for each program: its name, then its figures on the machine as it is, and with 1 .. `busy`
    busy neighbours."""
    spinners = Spinners(busy)
    try:
        for name in names:
            single, several = PROGRAMS[name](1), PROGRAMS[name]("auto")
            single(), several()
            line: list[Any] = [name, in_turns(single, several, seconds, least=not busy or busy > 1)]
            for count in range(1, busy + 1):
                with spinners.busy(count):
                    time_calls(several, seconds / 2)
                    line.append(in_turns(single, several, seconds))
            print(json.dumps(line), flush=True)
    finally:
        spinners.end()


def forked(names: Sequence[str], seconds: float) -> None:
    """Print the figures of eight children that are forked after a first call: the means of all, the longest of any."""
    for name in names:
        single, several = PROGRAMS[name](1), PROGRAMS[name]("auto")
        single(), several()
        reading, writing = os.pipe()
        children = []
        for _ in range(FORKED):
            pid = os.fork()
            if not pid:
                signal.alarm(TIMEOUT)
                os.write(writing, (json.dumps(in_turns(single, several, seconds)) + "\n").encode())
                os._exit(0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            figures = [json.loads(line) for line in lines]
        means = (fmean(one[place] for one in figures) for place in range(2))
        print(json.dumps([name, (*means, max(one[2] for one in figures))]), flush=True)


# Situations. ----------------------------------------------------------------------------------------------------------


def start(*args: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.neighbours", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


def lines_of(process: subprocess.Popen[str]) -> dict[str, list[Figures]]:
    """The figures that a child printed, by program."""
    out, _ = process.communicate(timeout=TIMEOUT)
    if process.returncode:
        raise SystemExit(f"a child ended with {process.returncode}")
    return {line[0]: line[1:] for line in map(json.loads, out.splitlines())}


@contextmanager
def half_a_processor() -> Iterator[list[Path]]:
    """A new control group with a quota of half a processor: the file that takes processes, or nothing."""
    for place in GROUPS:
        group = place / f"graphc-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            try:
                if (group / "cpu.max").exists():
                    (group / "cpu.max").write_text("50000 100000", encoding="ascii")
                else:
                    (group / "cpu.cfs_quota_us").write_text("50000", encoding="ascii")
                yield [group / "cgroup.procs"]
            finally:
                group.rmdir()
            return
    yield []


def enter(procs: Path) -> None:
    procs.write_text(str(os.getpid()), encoding="ascii")


def pin() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def situations(names: Sequence[str], seconds: float) -> Iterator[tuple[str, dict[str, Figures]]]:
    """The name of each, and the figures by program."""
    words = [*names, "--seconds", str(seconds)]
    beside = lines_of(start(*words, "--child", "--busy", "2"))
    for place, name in enumerate(("quiet", "1 busy", "2 busy")):
        yield name, {program: lines[place] for program, lines in beside.items()}
    twins = [start(*words, "--child") for _ in range(2)]
    found = [lines_of(twin) for twin in twins]
    yield "twin", {name: lines[0] for name, lines in found[0].items()}
    found = [lines_of(start(*words, "--forked")), lines_of(start(*words, "--child", preexec_fn=pin))]
    with half_a_processor() as groups:
        words[-1] = str(4 * seconds)  # some of the periods of a tenth of a second that a quota is counted in
        found += [lines_of(start(*words, "--child", preexec_fn=partial(enter, procs))) for procs in groups]
    for name, lines in zip(("forked", "affinity", "quota"), found, strict=False):
        yield name, {program: each[0] for program, each in lines.items()}


def report(names: Sequence[str], seconds: float) -> None:
    """Print the table."""
    rows: dict[str, str] = dict.fromkeys(names, "")
    heads = ""
    quiet: dict[str, Figures] = {}
    for situation, found in situations(names, seconds):
        quiet = quiet or found
        heads += f"{situation:>20}"
        for name, (single, several, longest) in found.items():
            alone, best = quiet[name][0], min(quiet[name][:2])
            cells = f"{several / max(single, best):.2f} {several / alone:5.2f} {longest * 1e3:7.1f}"
            rows[name] += f"{f'{alone * 1e3:.3f} {several * 1e3:.3f}' if found is quiet else cells:>20}"
    print(f"{'':28}{heads}")
    for name, cells in rows.items():
        print(f"{name:28}{cells}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbours", description=__doc__)
    parser.add_argument("programs", nargs="*", help="all where none is named")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each of the rounds of a program (0.1)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--forked", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--busy", type=int, default=0, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    names = parsed.programs or list(PROGRAMS)
    if parsed.child:
        child(names, parsed.seconds, parsed.busy)
    elif parsed.forked:
        forked(names, parsed.seconds)
    else:
        report(names, parsed.seconds)


if __name__ == "__main__":
    main()
