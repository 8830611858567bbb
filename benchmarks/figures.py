"""Medians and ratios of what was sampled, and the targets.

In: `Results`. Out: numbers, None where something was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from benchmarks.runner import Results
from benchmarks.suite import LIMITED, LOOPS, NUMBERS, SMALL, SMALL_STATES, WORKLOADS, WRITES

WORKLOADS_OF_OUR_LOOPS = [name for name in WORKLOADS if WORKLOADS[name].flops is None]
"""All but single products, where both modes may call the same library."""
LOOPLESS = "dot-256"
WITHOUT_NESTS = (LOOPLESS, "dot-1024", "matrix-vector")
COPYING = ("numpy", "numba")
"""On one thread, and on all."""
FRAMEWORKS = ("jax", "pytensor", "torch", "torch-compiled")


def figure(results: Results, workload: str, peer: str, name: str, rounds: str = "warm") -> float | None:
    """The median over the rounds of one figure of a pair."""
    values = by_round(results, workload, peer, name, rounds)
    return median(values) if values else None


def by_round(results: Results, workload: str, peer: str, name: str, rounds: str = "warm") -> list[float]:
    """One figure of a pair in each round that told it."""
    record = results.samples.get(workload, {}).get(peer, {})
    return [] if "failed" in record else [sample[name] for sample in record.get(rounds, []) if name in sample]


def ratio(results: Results, workload: str, peer: str, name: str, rounds: str = "warm") -> float | None:
    """How many times as much as graphc a peer needs."""
    own, other = (figure(results, workload, who, name, rounds) for who in ("graphc", peer))
    return other / own if own and other else None


def best_framework(results: Results, workload: str) -> tuple[float, str] | None:
    """The least ratio of a framework to graphc in steady time, and whose it is."""
    pairs = [(ratio(results, workload, peer, "steady"), peer) for peer in FRAMEWORKS]
    found = [(value, peer) for value, peer in pairs if value is not None]
    return min(found) if found else None


def work_rate(results: Results, workload: str, peer: str) -> float | None:
    """What any program has to do, in bytes (or operations of a matrix product) a second."""
    seconds, work = figure(results, workload, peer, "steady"), WORKLOADS[workload].traffic or WORKLOADS[workload].flops
    return work(WORKLOADS[workload].size) / seconds if seconds and work else None


def copy_bandwidth(results: Results) -> float | None:
    """Bytes a second of the faster copy: NumPy's on one thread, numba's on all."""
    found = [work_rate(results, "copy", peer) for peer in COPYING]
    return max((value for value in found if value), default=None)


def share_of_copy(results: Results) -> tuple[float, float, float] | None:
    """The rate of the memory-bound chain, that of the faster copy, and their quotient: medians over rounds, in which
    the two took turns."""
    chain, copy = WORKLOADS["memory-chain"], WORKLOADS["copy"]
    own = by_round(results, "memory-chain", "graphc", "steady")
    others = [by_round(results, "copy", peer, "steady") for peer in COPYING]
    best = [min(times) for times in zip(*filter(None, others), strict=False)]
    pairs = list(zip(own, best, strict=False))
    if not pairs or chain.traffic is None or copy.traffic is None:
        return None
    moved, copied = chain.traffic(chain.size), copy.traffic(copy.size)
    rates = [(moved / time, copied / least) for time, least in pairs]
    return median(own for own, _ in rates), median(other for _, other in rates), median(a / b for a, b in rates)


# --- targets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A figure that graphc set out to reach; `below`: it is to be at most `goal`, else at least."""

    text: str
    value: float | None
    goal: float
    below: bool = False
    note: str = ""

    @property
    def reached(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.goal if self.below else self.value >= self.goal


def targets(results: Results) -> list[Target]:
    """All targets with what was measured."""
    steady = (steady_targets, limit_targets, loop_targets, write_targets, number_targets)
    parts = (*steady, start_targets, own_targets, pass_targets, compile_targets)
    return [target for part in parts for target in part(results)]


def named(results: Results, peer: str, name: str, rounds: str, workloads: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The ratios of a peer to graphc, with the names of the workloads."""
    for workload in workloads:
        value = ratio(results, workload, peer, name, rounds)
        if value is not None:
            yield value, workload


def steady_targets(results: Results) -> list[Target]:
    found = {name: best for name in WORKLOADS if (best := best_framework(results, name))}
    values = [value for value, _ in found.values()]
    behind = [f"{name} ({peer} {value:.2f})" for name, (value, peer) in found.items() if value < 1]
    by_hand = list(
        named(results, "numba", "steady", "warm", [name for name in WORKLOADS if name not in (*LOOPS, *WRITES)])
    )
    slower = [f"{name} {1 / value:.2f}" for value, name in by_hand if 1 / value > 1.2]
    return [
        Target(
            "best framework / graphc, least of all workloads",
            min(values, default=None),
            1,
            note=", ".join(behind) or "ahead in all",
        ),
        Target("best framework / graphc, geometric mean", geometric_mean(values) if values else None, 2),
        Target(
            "graphc / numba by hand, largest of all workloads but loops",
            max((1 / value for value, _ in by_hand), default=None),
            1.2,
            True,
            ", ".join(slower),
        ),
    ]


def limit_targets(results: Results) -> list[Target]:
    share = share_of_copy(results)
    add = figure(results, "overhead-two", "numpy", "steady")
    calls = {name: figure(results, name, "graphc", "steady") for name in ("overhead-three", "xor-step")}
    eager, own = (figure(results, "mlp-step", peer, "peak") for peer in ("torch", "graphc"))
    note = f"{share[0] / 1e9:.1f} and {share[1] / 1e9:.1f} GB/s, medians over rounds" if share else ""
    return [
        Target("memory chain, share of the copy bandwidth", share[2] if share else None, 0.8, note=note),
        *(
            Target(f"np.dot / graphc, {name}", ratio(results, name, "numpy", "steady"), 0.95)
            for name in ("dot-256", "dot-1024", "matrix-vector")
        ),
        *(
            Target(f"{text} / np.add", seconds / add if seconds and add else None, goal, True)
            for (text, goal), seconds in zip(
                (("three vectors in, one out", 0.5), ("XOR step", 3.0)), calls.values(), strict=True
            )
        ),
        Target(
            "peak memory of the MLP step / PyTorch eager's",
            own / eager if own is not None and eager else None,
            1,
            True,
        ),
    ]


def loop_targets(results: Results) -> list[Target]:
    """Of the fastest calls of each process: steps are short, and other programs stop them."""
    by_hand = list(named(results, "numba", "best", "warm", LIMITED))
    slower = [f"{name} {1 / value:.2f}" for value, name in by_hand if 1 / value > 1.3]
    ahead = [
        (value, f"{name} ({peer})")
        for peer in ("jax", "pytensor")
        for value, name in named(results, peer, "best", "warm", SMALL_STATES)
    ]
    behind = [f"{where} {value:.1f}" for value, where in ahead if value < 5]
    least, where = min(named(results, "jax", "process", "cold", LOOPS), default=(None, ""))
    most = max((1 / value for value, _ in by_hand), default=None)
    return [
        Target("loops: graphc / numba by hand, largest", most, 1.3, True, ", ".join(slower)),
        Target(
            "short steps: JAX and PyTensor / graphc, least",
            min((value for value, _ in ahead), default=None),
            5,
            note=", ".join(behind),
        ),
        Target("loops: cold start, JAX / graphc, least", least, 1, note=where),
    ]


def write_targets(results: Results) -> list[Target]:
    """Of NumPy programs that write into arrays: loops by hand are the same program for numba."""
    by_hand = list(named(results, "numba", "best", "warm", WRITES))
    slower = [f"{name} {1 / value:.2f}" for value, name in by_hand if 1 / value > 1.3]
    least, where = min(named(results, "jax", "best", "warm", WRITES), default=(None, ""))
    return [
        Target(
            "writes: graphc / numba by hand, largest",
            max((1 / v for v, _ in by_hand), default=None),
            1.3,
            True,
            ", ".join(slower),
        ),
        Target("writes: JAX / graphc, least", least, 1, note=where),
    ]


def number_targets(results: Results) -> list[Target]:
    """Of nets, random numbers, factorisations and order."""
    made = [
        Target(f"{peer} / graphc, {name}", ratio(results, name, peer, "steady"), goal)
        for name, peer, goal in NUMBER_GOALS
    ]
    for name, goal in (("gaussian-process", 1.2), ("least-squares-gradient", 1.5)):
        ahead = ratio(results, name, "numba", "steady")
        made.append(Target(f"graphc / numba by hand, {name}", 1 / ahead if ahead else None, goal, True))
    least, where = min(named(results, "numpy", "steady", "warm", ORDERS), default=(None, ""))
    made.append(Target("sorting, NumPy / graphc, least", least, 1, note=where))
    own, eager = (figure(results, "images-lenet", peer, "peak") for peer in ("graphc", "torch"))
    memory = own / eager if own and eager else None
    made.append(Target("peak memory of LeNet's step / PyTorch eager's", memory, 1, True))
    least, where = min(named(results, "jax", "process", "cold", STARTED), default=(None, ""))
    made.append(Target("numbers: cold start, JAX / graphc, least", least, 1, note=where))
    return made


NUMBER_GOALS = (
    ("images-lenet", "jax", 1.0),
    ("images-lenet", "torch", 0.83),
    ("uniform", "numpy", 2.0),
    ("normal", "numpy", 2.0),
    ("barrier-option", "jax", 5.0),
    ("cholesky-solves", "jax", 3.0),
    ("cholesky-solves", "torch", 3.0),
    ("gaussian-process", "jax", 1.0),
    ("gaussian-process", "torch", 1.0),
)
"""How far ahead of which peer graphc set out to be."""
ORDERS = [name for name in NUMBERS if "sort" in name or name == "topk"]
STARTED = [name for name in NUMBERS if not name.startswith(("images", "pooling", "batch"))]
"""Workloads whose cold start is to be below JAX's: all but nets."""


def start_targets(results: Results) -> list[Target]:
    """Whole processes, from their start to the first result."""
    made = []
    for text, peer, rounds, goal, workloads in (
        ("cold start, PyTensor / graphc, least of all workloads", "pytensor", "cold", 5, list(WORKLOADS)),
        ("cold start, JAX / graphc, least of the small workloads", "jax", "cold", 1, SMALL),
        ("warm start, JAX / graphc, least of all workloads", "jax", "warm", 4, list(WORKLOADS)),
        ("warm start, PyTensor / graphc, least of all workloads", "pytensor", "warm", 4, list(WORKLOADS)),
    ):
        least, name = min(named(results, peer, "process", rounds, workloads), default=(None, ""))
        made.append(Target(text, least, goal, note=name))
    deep = ratio(results, "deep-chain-gradient", "jax", "process", "cold")
    made.append(Target("cold start of the deep chain, graphc / JAX", 1 / deep if deep else None, 3, True))
    return made


def own_targets(results: Results) -> list[Target]:
    """Against NumPy's start and graphc's own interpreted mode."""
    made = []
    for rounds, goal in (("warm", 2.5), ("cold", 10.0)):
        value = ratio(results, "xor-step", "numpy", "process", rounds)
        text = f"{rounds} start of the XOR step / the same in NumPy alone"
        made.append(Target(text, 1 / value if value else None, goal, True))
    found = list(named(results, "interpreted", "steady", "warm", WORKLOADS_OF_OUR_LOOPS))
    least, name = min(found, default=(None, ""))
    made.append(Target("interpreted / compiled, least of all workloads but products", least, 1, note=name))
    return made


def pass_targets(results: Results) -> list[Target]:
    name = "fifty-batch-sizes"
    return [
        Target("50 batch sizes, first pass, JAX / graphc", ratio(results, name, "jax", "first", "cold"), 5),
        Target("50 batch sizes, steady, NumPy / graphc", ratio(results, name, "numpy", "steady"), 1),
    ]


def compile_cost(results: Results, workload: str) -> tuple[float, int] | None:
    """Seconds that graphc takes to compile a workload once more, and its fused nests."""
    seconds, nests = (figure(results, workload, "graphc", name, "cold") for name in ("compile", "nests"))
    return (seconds, round(nests)) if seconds and nests is not None else None


def nest_cost(results: Results, workload: str) -> float | None:
    """Seconds of it for each fused nest, beyond what a function takes that has no loop."""
    cost, bare = (compile_cost(results, name) for name in (workload, LOOPLESS))
    if cost is None or bare is None or workload in WITHOUT_NESTS or not cost[1]:
        return None
    return max(cost[0] - bare[0], 0.0) / cost[1]


def compile_targets(results: Results) -> list[Target]:
    costs = {name: cost for name in WORKLOADS if (cost := nest_cost(results, name)) is not None}
    above = ", ".join(f"{name} {1e3 * cost:.0f}" for name, cost in costs.items() if cost > 0.03)
    most = max(costs.values(), default=None)
    text = "compiling a fused nest, milliseconds, largest of all workloads"
    return [Target(text, None if most is None else 1e3 * most, 30, True, above)]
