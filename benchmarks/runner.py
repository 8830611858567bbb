"""Runs peers against each other: one process for each peer, workload and round, the peers taking turns.

In: names of peers and workloads, a `Plan`, the `Results` so far. Out: the same `Results`, extended. The first rounds of
a run have an empty persistent cache (`cold`), later ones the cache that the last of those filled (`warm`). What is
measured again replaces what was there: no median mixes two builds.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from benchmarks.libraries import PEERS, Peer
from benchmarks.suite import COMPILED_FIRST, SIZED_WORKLOAD, TOGETHER, WORKLOADS
from benchmarks.workload import Size, Workload

ROOT = Path(__file__).parent.parent
Samples: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""By workload and peer: lists `cold` and `warm` of samples, or `failed`, a message."""


@dataclass
class Results:
    """What the file of results holds. sizes: seconds of a call, by peer and number of elements."""

    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    samples: Samples = field(default_factory=dict)
    sizes: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """python: the peers' interpreter. colds, warms: rounds with an empty cache and with a full one. seconds: to spend
    on calls in a process. again: measure also what there is already. limit: seconds that a process may take. end: when,
    by the monotonic clock, no further workload begins.
    """

    python: str
    colds: int = 1
    warms: int = 2
    seconds: float = 0.3
    again: bool = False
    limit: float = 300.0
    end: float = math.inf


def command(peer: Peer, workload: str, plan: Plan, check: bool, size: Size | None) -> list[str]:
    python = sys.executable if peer.own else plan.python
    numbers = map(str, size or ())
    now = repr(monotonic())
    return [
        *[python, "-m", "benchmarks.measure", peer.module, peer.name, workload, str(plan.seconds), str(int(check))],
        *[now, *numbers],
    ]


def run_process(
    peer: Peer, workload: str, plan: Plan, folder: str, check: bool, size: Size | None = None, root: Path = ROOT
) -> dict[str, Any]:
    """The sample of one process, or `failed`: the end of what it said. root: the checkout that is measured."""
    environment = {**os.environ, **{name: value.format(cache=folder) for name, value in peer.environment.items()}}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # who edits a module imports its source once, not in each process
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            command(peer, workload, plan, check, size),
            env=environment,
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
            timeout=plan.limit,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {plan.limit:.0f} s"}
    if done.returncode:
        return {"failed": "\n".join(done.stderr.strip().splitlines()[-3:])}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    allowed = WORKLOADS[workload].allowed
    if found.get("difference", 0.0) > allowed:
        return {"failed": f"wrong: differs by {found['difference']:.1e} from the reference, {allowed:.0e} is allowed"}
    return found


def has_builder(workload: Workload, peer: Peer) -> bool:
    return workload.absent.keys().isdisjoint((peer.kind, peer.name))


def is_wanted(record: Mapping[str, Any] | None, plan: Plan) -> bool:
    """Whether a pair is to be measured: anew, or because rounds are missing."""
    return plan.again or record is None or "failed" in record or len(record["warm"]) < plan.warms


def run(
    peers: Sequence[str], workloads: Sequence[str], plan: Plan, samples: Samples, say: Callable[[str], None] = print
) -> None:
    """Add a run of every pair to `samples`; `say` is told after each workload."""
    for group in groups(workloads):
        if monotonic() > plan.end:
            say(f"out of time before {group[0]}")
            return
        taking: list[tuple[str, Peer]] = []
        for name in group:
            records = samples.setdefault(name, {})
            wanted = [PEERS[peer] for peer in peers if has_builder(WORKLOADS[name], PEERS[peer])]
            taking += [(name, peer) for peer in wanted if is_wanted(records.get(peer.name), plan)]
        for name, peer in taking:
            samples[name][peer.name] = {"cold": [], "warm": []}
        with tempfile.TemporaryDirectory(prefix="graphc-bench-") as folder:
            for number in range(plan.colds + plan.warms):
                for name, peer in taking:
                    take_turn(samples[name][peer.name], name, peer, plan, Path(folder), number)
        for name in dict.fromkeys(name for name, _ in taking):
            say(line(name, samples[name]))


def groups(workloads: Sequence[str]) -> list[tuple[str, ...]]:
    """Each workload by itself, but those whose rounds take turns."""
    together = tuple(name for name in workloads if name in TOGETHER)
    return list(dict.fromkeys(together if name in together else (name,) for name in workloads))


def take_turn(record: dict[str, Any], name: str, peer: Peer, plan: Plan, folder: Path, number: int) -> None:
    """One process, whose sample goes into `record`. A pair that has failed takes no more turns in this run."""
    if "failed" in record:
        return
    cold = number < plan.colds
    cache = folder / f"{name}-{peer.name}-{number if cold else plan.colds - 1}"
    cache.mkdir(exist_ok=True)
    found = run_process(peer, name, plan, str(cache), number == 0)
    if "failed" in found:
        record["failed"] = found["failed"]
    else:
        record["cold" if cold else "warm"].append(found)


def run_compiled(
    workloads: Sequence[str], plan: Plan, budget: float, samples: Samples, say: Callable[[str], None] = print
) -> None:
    """torch.compile on as many workloads as begin within `budget` seconds."""
    limited = replace(plan, colds=1, warms=1, end=min(plan.end, monotonic() + budget))
    order = [name for name in COMPILED_FIRST if name in workloads]
    order += [name for name in workloads if name not in COMPILED_FIRST]
    run(["torch-compiled"], order, limited, samples, say)


def run_sizes(
    peers: Sequence[str], plan: Plan, sizes: dict[str, dict[str, float]], say: Callable[[str], None] = print
) -> None:
    """The time of a call from 10 to 10^7 elements."""
    with tempfile.TemporaryDirectory(prefix="graphc-bench-") as folder:
        for size in (10**power for power in range(1, 8)):
            for name in peers:
                times = sizes.setdefault(name, {})
                if str(size) in times and not plan.again:
                    continue
                cache = Path(folder) / name
                cache.mkdir(exist_ok=True)
                found = run_process(PEERS[name], SIZED_WORKLOAD, plan, str(cache), False, (size,))
                if "failed" not in found:
                    times[str(size)] = found["best"]
            say(f"{size} elements")


def line(name: str, peers: Mapping[str, Any]) -> str:
    """One line to follow a run by."""
    cells = []
    for peer, record in peers.items():
        rounds = record["warm"] or record["cold"]
        cells.append(
            f"{peer} failed" if "failed" in record else f"{peer} {min(one['steady'] for one in rounds) * 1e6:.4g}"
        )
    return f"{name:24} us: {'  '.join(cells)}"
