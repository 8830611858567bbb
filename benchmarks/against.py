"""`python -m benchmarks.against CHECKOUT`: compare graphc as it is here with another checkout, in one run.

In: the folder of the other checkout, names of workloads, see --help. Out: a line for each workload with the times of a
call here and there, and their ratio: above 1, the code here is slower. The processes of the two take turns, which of
them goes first changes with each round, and the least time of all rounds is compared: what else runs on the machine can
only lengthen a time.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.runner import ROOT, Plan, run_process
from benchmarks.suite import WORKLOADS

SHOWN = 1.02
"""A ratio above it is marked."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    made.add_argument("checkout", type=Path, help="the folder of the other checkout")
    made.add_argument("workloads", nargs="*", help="all where none is named")
    made.add_argument("--rounds", type=int, default=5, help="processes of each with a full cache (5)")
    made.add_argument("--seconds", type=float, default=0.3, help="to spend on calls in each process (0.3)")
    return made


def compare(workload: str, roots: Sequence[Path], rounds: int, seconds: float) -> list[list[dict[str, Any]]]:
    """The samples of both checkouts: the first with an empty cache, the others with what it left."""
    plan = Plan("", seconds=seconds)
    samples: list[list[dict[str, Any]]] = [[] for _ in roots]
    with tempfile.TemporaryDirectory(prefix="graphc-bench-") as folder:
        caches = [str(Path(folder) / str(number)) for number in range(len(roots))]
        for cache in caches:
            Path(cache).mkdir()
        for number in range(1 + rounds):
            for side in (0, 1) if number % 2 else (1, 0):
                peer, root = PEERS["graphc"], roots[side]
                samples[side].append(run_process(peer, workload, plan, caches[side], number == 0, root=root))
    return samples


def line(workload: str, samples: Sequence[Sequence[dict[str, Any]]]) -> str:
    """One line: microseconds of a call here and there, their ratio, and that of the cold starts."""
    failed = [one["failed"] for side in samples for one in side if "failed" in one]
    if failed:
        return f"{workload:26} failed: {failed[0]}"
    here, there = (min(one["best"] for one in side[1:]) for side in samples)
    cold = samples[0][0]["first"] / samples[1][0]["first"]
    mark = " <" if here / there > SHOWN else ""
    return f"{workload:26} {here * 1e6:12.3f} {there * 1e6:12.3f} {here / there:7.3f}   cold {cold:5.2f}{mark}"


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = parser().parse_args(arguments)
    print(f"{'workload':26} {'here, us':>12} {'there, us':>12} {'ratio':>7}")
    for workload in parsed.workloads or WORKLOADS:
        samples = compare(workload, (ROOT, parsed.checkout.resolve()), parsed.rounds, parsed.seconds)
        print(line(workload, samples), flush=True)


if __name__ == "__main__":
    main()
