"""The figures that graphc set out to reach, each as a ratio of two times measured in the same run.

Processes and calls that are compared take turns, and medians are compared, so that a busy machine slows both. PyTensor
takes part where its environment is there (`make bench-env`, or --peer PYTHON). Prints one line for each target; the
exit code is 0 whatever they say.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import graphc
import graphc.tensor as T
from graphc import bench

ROOT = Path(__file__).parent.parent
PEER = Path(__file__).parent / ".venv" / "bin" / "python"

IMPORT_NUMPY = "import numpy"
XOR_STEP = """
import sys
import numpy
{imports}

x, y = T.dmatrix("x"), T.dvector("y")
W = theano.shared(numpy.array([[3.0, 2.0], [4.0, 3.0]]), name="W")
b = theano.shared(numpy.array([-2.0, -4.0]), name="b")
W2 = theano.shared(numpy.array([5.0, -5.0]), name="W2")
b2 = theano.shared(numpy.array(-2.0), name="b2")
h = {sigmoid}(T.dot(x, W) + b)
y_pred = {sigmoid}(T.dot(h, W2) + b2)
cost = ((y - y_pred) ** 2).mean()
params = [W, b, W2, b2]
updates = [(p, p - 0.1 * g) for p, g in zip(params, theano.grad(cost, params))]
train = theano.function([x, y], [y_pred, cost], updates=updates)
result = train(numpy.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), numpy.array([0.0, 1, 1, 0]))
assert abs(result[1] - 0.06948320612438118) < 1e-12
"""
GRAPHC_STEP = XOR_STEP.format(imports="import graphc as theano, graphc.tensor as T", sigmoid="T.nnet.sigmoid") + (
    "assert 'numba' not in sys.modules\n"
)
PYTENSOR_STEP = XOR_STEP.format(imports="import pytensor as theano, pytensor.tensor as T", sigmoid="T.sigmoid")


def run_process(python: str | Path, code: str, **environment: str) -> float:
    """Wall seconds of a fresh process."""
    start = perf_counter()
    done = subprocess.run(
        [str(python), "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = perf_counter() - start
    if done.returncode:
        raise SystemExit(f"a measured process failed:\n{done.stderr}")
    return seconds


def take_turns(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of what each gives, one of each a round."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, measure in contestants.items():
            found[name].append(measure())
    return {name: median(values) for name, values in found.items()}


def report(what: str, value: float, relation: str, target: float, note: str) -> None:
    """One line: the figure, its target, whether it is met."""
    met = value <= target if relation == "<=" else value >= target
    print(f"{'yes' if met else 'NO ':3}  {what:46} {value:8.2f}  {relation} {target:<6g} {note}", flush=True)


def measure_starts(rounds: int, peer: Path) -> None:
    """Fresh processes that build the XOR graph and take a step, against one that imports NumPy."""

    def start_cold() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return run_process(sys.executable, GRAPHC_STEP, GRAPHC_CACHE_DIR=folder)

    def start_peer() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return run_process(peer, PYTENSOR_STEP, PYTENSOR_FLAGS=f"base_compiledir={folder}", NUMBA_CACHE_DIR=folder)

    with tempfile.TemporaryDirectory() as warm:

        def start_warm() -> float:
            return run_process(sys.executable, GRAPHC_STEP, GRAPHC_CACHE_DIR=warm)

        def import_numpy() -> float:
            return run_process(sys.executable, IMPORT_NUMPY)

        for prepare in (start_warm, start_warm, import_numpy):
            prepare()
        times = take_turns({"numpy": import_numpy, "warm": start_warm, "cold": start_cold}, rounds)
    milliseconds = {name: f"{seconds * 1e3:.0f} ms" for name, seconds in times.items()}
    against = f"and import numpy {milliseconds['numpy']}"
    report("warm start / import numpy", times["warm"] / times["numpy"], "<=", 2.5, f"{milliseconds['warm']} {against}")
    report("cold start / import numpy", times["cold"] / times["numpy"], "<=", 10, f"{milliseconds['cold']} {against}")
    if peer.exists():
        start_peer()
        slow = take_turns({"peer": start_peer, "cold": start_cold}, min(rounds, 3))
        note = f"{slow['cold']:.2f} s and {slow['peer']:.2f} s"
        report("cold start / PyTensor's", slow["cold"] / slow["peer"], "<=", 1 / 3, note)
    else:
        print(f"--   cold start / PyTensor's: there is no {peer}; `make bench-env` makes one")


def measure_calls(rounds: int) -> None:
    """Calls on tiny arrays, against np.add of two vectors."""
    a, b, c = np.ones((3, 4))
    x, y, z = T.dvectors("x y z")
    three = graphc.function([x, y, z], x * y + z, name="three")
    step, _, _ = bench.make(bench.WORKLOADS["xor-step"], "compiled")
    data = bench.WORKLOADS["xor-step"].arguments(np.random.default_rng(0))

    def timing(statement: Callable[[], object], count: int = 20_000) -> Callable[[], float]:
        return lambda: timeit.timeit(statement, number=count) / count

    contestants = {
        "add": timing(lambda: np.add(a, b)),
        "three": timing(lambda: three(a, b, c)),
        "step": timing(lambda: step(*data)),
        "nothing": timing(lambda: None),
    }
    times = take_turns(contestants, 3 * rounds)
    net = {name: seconds - times["nothing"] for name, seconds in times.items()}
    note = f"np.add {net['add'] * 1e9:.0f} ns, without the timing loop"
    report(
        "call of f(a, b, c) / np.add(a, b)", net["three"] / net["add"], "<=", 1, f"{net['three'] * 1e9:.0f} ns; {note}"
    )
    report("XOR training step / np.add(a, b)", net["step"] / net["add"], "<=", 4, f"{net['step'] * 1e9:.0f} ns; {note}")


def measure_chain(rounds: int, peak: float) -> None:
    """The chain of elementwise operations: bytes a second against a copy, and the memory it needs."""
    workload = bench.WORKLOADS["chain-4e6"]
    chain, _, _ = bench.make(workload, "compiled")
    x, y = workload.arguments(np.random.default_rng(0))
    target = np.empty_like(x)

    def copy() -> float:
        return timeit.timeit(lambda: np.copyto(target, x), number=1)

    def call() -> float:
        return timeit.timeit(lambda: chain(x, y), number=1)

    times = take_turns({"copy": copy, "chain": call}, 5 * rounds)
    speeds = {"copy": 2 * x.nbytes / times["copy"], "chain": 3 * x.nbytes / times["chain"]}
    note = f"{speeds['chain'] / 1e9:.1f} GB/s of inputs and output, a copy {speeds['copy'] / 1e9:.1f} GB/s"
    report("chain of 4e6: traffic / a copy's", speeds["chain"] / speeds["copy"], ">=", 0.8, note)
    report("chain of 4e6: peak memory / its output", peak / x.nbytes, "<=", 1.05, f"{peak / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="processes of each kind, of which the median counts")
    parser.add_argument("--peer", type=Path, default=PEER, help="a Python that has PyTensor")
    parsed = parser.parse_args()
    print("met  what                                              measured   target")
    measure_starts(parsed.rounds, parsed.peer)
    measure_calls(parsed.rounds)
    results = {result.name: result for result in bench.measure([], parsed.rounds)}
    digits = results["digits-step-16"]
    note = f"{bench.duration(digits.calls['interpreted'])} and {bench.duration(digits.calls['compiled'])}"
    report("digits step of 16: interpreted / compiled", digits.ratio, ">=", 5, note)
    slowest = min(results.values(), key=lambda result: result.ratio)
    report("smallest interpreted / compiled of all graphs", slowest.ratio, ">=", 1, slowest.name)
    measure_chain(parsed.rounds, results["chain-4e6"].peaks["compiled"])


if __name__ == "__main__":
    main()
