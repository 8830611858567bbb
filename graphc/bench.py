"""Named graphs, run in every mode, compared and timed.

In: names of workloads. Out: a `Result` for each: seconds to build, compile and load, seconds of a call and peak bytes
in each mode, and whether the modes agree. Every workload has processes of its own and an empty compile cache; rounds of
the modes are interleaved, so that what disturbs one disturbs all. BLAS has one thread in all modes, unless
OPENBLAS_NUM_THREADS says more: its threads wait for each other, and on a busy machine that would be all one measures.

Run as a module it is such a process: `python -m graphc.bench FORM NAME REPEAT` prints its measurements as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.ir.node import Array, Node
from graphc.optim import Updates, momentum, sgd
from graphc.options import options
from graphc.shared import SharedVariable, shared
from graphc.startup.record import record
from graphc.tensor import nnet

# --- workloads --------------------------------------------------------------------------------------------------------


@record()
class Program:
    """The arguments of `function`."""

    inputs: list[Node]
    outputs: list[Node]
    updates: Updates | None = None


@record()
class Workload:
    """A graph with arguments for its calls. small: run it in the python mode too."""

    name: str
    build: Callable[[], Program]
    arguments: Callable[[np.random.Generator], list[Array]]
    small: bool = False


def _matrix(*shape: int) -> Callable[[np.random.Generator], list[Array]]:
    return lambda rng: [rng.normal(size=shape)]


def _parameters(*shapes: tuple[int, ...]) -> list[SharedVariable]:
    """Parameters of a network: the same in every build."""
    rng = np.random.default_rng(0)
    return [
        shared(rng.normal(scale=max(shape, default=1) ** -0.5, size=shape), name=f"p{n}")
        for n, shape in enumerate(shapes)
    ]


def _xor_step() -> Program:
    """The training step of SEEDS' listing: two sigmoid layers, mean square error, four parameters."""
    x, y = T.dmatrix("x"), T.dvector("y")
    w_hidden, b_hidden = shared([[3.0, 2.0], [4.0, 3.0]], name="w_hidden"), shared([-2.0, -4.0], name="b_hidden")
    w_out, b_out = shared([5.0, -5.0], name="w_out"), shared(-2.0, name="b_out")
    hidden = nnet.sigmoid(T.dot(x, w_hidden) + b_hidden)
    predicted = nnet.sigmoid(T.dot(hidden, w_out) + b_out)
    cost = T.sqr(y - predicted).mean()
    return Program([x, y], [predicted, cost], sgd(cost, [w_hidden, b_hidden, w_out, b_out], 0.1))


def _logistic_step() -> Program:
    """Logistic regression with weight decay: 400 samples of 784 features."""
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = _parameters((784,), ())
    cost = nnet.binary_crossentropy(nnet.sigmoid(T.dot(x, w) + b), y).mean() + 0.01 * T.sqr(w).sum()
    return Program([x, y], [cost], sgd(cost, [w, b], 0.1))


def _classes(samples: int, features: int, classes: int) -> Callable[[np.random.Generator], list[Array]]:
    return lambda rng: [rng.normal(size=(samples, features)), rng.integers(classes, size=samples)]


def _classifier_step(*sizes: int, optimizer: Callable[..., Updates]) -> Program:
    """A step of a classifier with relu layers of these sizes."""
    x, y = T.dmatrix("x"), T.lvector("y")
    shapes = [shape for pair in pairwise(sizes) for shape in (pair, pair[1:])]
    params = _parameters(*shapes)
    value: Node = x
    for weights, bias in zip(params[::2], params[1::2], strict=True):
        value = T.dot(value if value is x else nnet.relu(value), weights) + bias
    cost = nnet.categorical_crossentropy(nnet.softmax(value), y).mean()
    return Program([x, y], [cost], optimizer(cost, params, 0.01))


def _log_softmax() -> Program:
    x = T.dmatrix("x")
    return Program([x], [nnet.log_softmax(x)])


def _moments() -> Program:
    x = T.dmatrix("x")
    return Program([x], [x.mean(axis=0), x.var(axis=0), x.mean(axis=1), x.var(axis=1)])


def _chain() -> Program:
    """Ten elementwise operations over two arrays."""
    x, y = T.dvector("x"), T.dvector("y")
    return Program([x, y], [T.sqrt(x * x + y * y) * (x - y) / (1.0 + abs(x)) + 2.0 * y])


def _vectors(size: int) -> Callable[[np.random.Generator], list[Array]]:
    return lambda rng: list(rng.normal(size=(2, size)))


def _layer_norm() -> Program:
    x = T.dmatrix("x")
    scale, shift = _parameters((512,), (512,))
    centred = x - x.mean(axis=1, keepdims=True)
    return Program([x], [centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-5) * scale + shift])


def _attention() -> Program:
    """softmax(Q K' / 8) V for 8 heads of 128 positions and 64 features."""
    q, k, v = T.dtensor3s("query key value")
    weights = nnet.softmax(T.matmul(q, k.transpose(0, 2, 1)) / 8.0)
    return Program([q, k, v], [T.matmul(weights, v)])


def _black_scholes() -> Program:
    """European calls and puts (Black and Scholes 1973) at a rate of 2 % and a volatility of 30 %."""
    price, strike, years = T.dvector("price"), T.dvector("strike"), T.dvector("years")
    rate, volatility = 0.02, 0.3
    spread = volatility * T.sqrt(years)
    upper = (T.log(price / strike) + (rate + volatility**2 / 2) * years) / spread
    discounted = strike * T.exp(-rate * years)
    call = price * _normal(upper) - discounted * _normal(upper - spread)
    return Program([price, strike, years], [call, call - price + discounted])


def _normal(x: Node) -> Node:
    return 0.5 * T.erfc(-x * 0.7071067811865476)


def _options(size: int) -> Callable[[np.random.Generator], list[Array]]:
    bounds = ((10.0, 50.0), (10.0, 50.0), (0.1, 2.0))
    return lambda rng: [rng.uniform(low, high, size=size) for low, high in bounds]


def _pairwise_kernel() -> Program:
    """The sum of exp(-|x_i - x_j|^2 / 2) over all pairs, and its gradient."""
    x = T.dmatrix("x")
    squares = T.sqr(x.dimshuffle(0, "x", 1) - x.dimshuffle("x", 0, 1)).sum(axis=2)
    energy = T.exp(-0.5 * squares).sum()
    return Program([x], [energy, grad(energy, x)])


def _embedding() -> Program:
    """Rows of a table chosen by index, their mean square, and its gradient scattered back into the table."""
    ids = T.lvector("ids")
    (table,) = _parameters((10_000, 64))
    cost = T.sqr(table[ids]).mean()
    return Program([ids], [cost], {table: table - 0.1 * grad(cost, table)})


XOR = (np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0.0, 1, 1, 0]))
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("xor-step", _xor_step, lambda rng: [*XOR], small=True),
        Workload(
            "logistic-400x784", _logistic_step, lambda rng: [*_matrix(400, 784)(rng), rng.integers(2, size=400) * 1.0]
        ),
        Workload(
            "mlp-784-256-128-10", lambda: _classifier_step(784, 256, 128, 10, optimizer=sgd), _classes(128, 784, 10)
        ),
        Workload(
            "digits-step-16",
            lambda: _classifier_step(64, 128, 10, optimizer=momentum),
            _classes(16, 64, 10),
            small=True,
        ),
        Workload("log-softmax-512x1000", _log_softmax, _matrix(512, 1000)),
        Workload("moments-1000x1000", _moments, _matrix(1000, 1000)),
        Workload("chain-100", _chain, _vectors(100), small=True),
        Workload("chain-4e6", _chain, _vectors(4_000_000)),
        Workload("layer-norm-256x512", _layer_norm, _matrix(256, 512)),
        Workload("attention-8x128x64", _attention, lambda rng: list(rng.normal(size=(3, 8, 128, 64)))),
        Workload("black-scholes-2e5", _black_scholes, _options(200_000)),
        Workload("pairwise-kernel-500", _pairwise_kernel, _matrix(500, 3)),
        Workload("embedding-4096", _embedding, lambda rng: [rng.integers(10_000, size=4096)]),
    )
}

# --- measuring --------------------------------------------------------------------------------------------------------

Measurements: TypeAlias = dict[str, Any]
SECONDS_PER_ROUND = 0.02


@record()
class Result:
    """Seconds: `build` the graph, `cold` compile it, `warm` load it, `calls` by mode. `peaks`: bytes by mode.

    `agree` is the largest difference between modes, relative to the largest element; -1 where shapes or dtypes differ.
    """

    name: str
    build: float
    cold: float
    warm: float
    calls: dict[str, float]
    peaks: dict[str, float]
    difference: float

    @property
    def ratio(self) -> float:
        """The time of a call in the interpreted mode over that in the compiled mode."""
        return self.calls["interpreted"] / self.calls["compiled"]


def measure(names: Sequence[str], repeat: int) -> Iterator[Result]:
    """Measure the named workloads, or all. Raises ArgumentError for an unknown name."""
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise ArgumentError(f"there is no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    for name in names or WORKLOADS:
        with tempfile.TemporaryDirectory(prefix="graphc-bench-") as folder:
            times = _in_process("times", name, repeat, folder)
            peaks = {mode: _in_process(mode, name, repeat, folder)["peak"] for mode in ("compiled", "interpreted")}
        yield Result(name, **times, peaks=peaks)


def _in_process(form: str, name: str, repeat: int, folder: str) -> Measurements:
    """Measure a workload in a new process, with its compile cache in `folder`. form: "times", or the mode whose peak
    memory is measured."""
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "GRAPHC_CACHE_DIR": folder, "GRAPHC_CACHE": "1"}
    command = [sys.executable, "-m", __name__, form, name, str(repeat)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GraphcError(f"workload {name} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def make(workload: Workload, mode: str) -> tuple[Function, float, float]:
    """Return the function of a workload, the seconds to build its graph, and those to make the function."""
    start = perf_counter()
    program = workload.build()
    built = perf_counter()
    call = function(program.inputs, program.outputs, mode, program.updates, name="bench")
    return call, built - start, perf_counter() - built


def measure_times(workload: Workload, repeat: int) -> Measurements:
    """Times of all modes, and the difference of what they compute in three calls."""
    arguments = workload.arguments(np.random.default_rng(1))
    compiled, build, cold = make(workload, "compiled")
    _, _, warm = make(workload, "compiled")
    calls = {"compiled": compiled, "interpreted": make(workload, "interpreted")[0]}
    if workload.small:
        calls["python"] = make(workload, "python")[0]
    answers = [[call(*arguments) for _ in range(3)] for call in calls.values()]
    difference = max(compare(answers[0], other) for other in answers[1:])
    counts = {mode: _calls_per_round(call, arguments) for mode, call in calls.items()}
    rounds: dict[str, list[float]] = {mode: [] for mode in calls}
    for _ in range(repeat):
        for mode, call in calls.items():
            rounds[mode].append(_seconds(call, arguments, counts[mode]))
    times = {mode: median(found) for mode, found in rounds.items()}
    return {"build": build, "cold": cold, "warm": warm, "calls": times, "difference": difference}


def _seconds(call: Function, arguments: list[Array], count: int) -> float:
    """Seconds of one of `count` calls."""
    start = perf_counter()
    for _ in range(count):
        call(*arguments)
    return (perf_counter() - start) / count


def _calls_per_round(call: Function, arguments: list[Array]) -> int:
    once = min(_seconds(call, arguments, 1) for _ in range(3))
    return max(1, min(100_000, int(SECONDS_PER_ROUND / once)))


def compare(answers: list[list[Array]], others: list[list[Array]]) -> float:
    """The largest difference of two series of results, relative to the largest element; -1 where types differ."""
    worst = 0.0
    for results, expected in zip(answers, others, strict=True):
        for left, right in zip(results, expected, strict=True):
            if left.shape != right.shape or left.dtype != right.dtype:
                return -1.0
            unlike = (left != right) & ~(np.isnan(left) & np.isnan(right))
            gap = np.nan_to_num(np.abs(left[unlike] - right[unlike]), nan=np.inf)
            scale = np.max(np.abs(right), where=np.isfinite(right), initial=1e-300)
            worst = max(worst, float(np.max(gap, initial=0.0) / scale))
    return worst


def measure_peak(workload: Workload, mode: str) -> Measurements:
    """The bytes by which this process grows while a first call runs, result included."""
    call, _, _ = make(workload, mode)
    arguments = workload.arguments(np.random.default_rng(1))
    before = peak_memory(reset=True)
    result = call(*arguments)
    after = peak_memory()
    del result
    return {"peak": max(0, after - before)}


def peak_memory(reset: bool = False) -> int:
    """The most bytes of memory that this process has held; `reset` begins anew from what it holds now. 0 where the
    system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


# --- the table --------------------------------------------------------------------------------------------------------

HEADER = (
    f"{'graph':22}{'build':>9}{'cold':>9}{'warm':>9}{'compiled':>11}{'interpreted':>13}{'python':>10}{'ratio':>8}"
    f"{'peak':>10}{'interp.':>10}  agree to"
)


def show(result: Result) -> str:
    """A line of the table."""
    calls = result.calls
    python = duration(calls["python"]) if "python" in calls else "-"
    agreement = "DIFFERENT TYPES" if result.difference < 0 else f"{result.difference:.0e}"
    return (
        f"{result.name:22}{duration(result.build):>9}{duration(result.cold):>9}{duration(result.warm):>9}"
        f"{duration(calls['compiled']):>11}{duration(calls['interpreted']):>13}{python:>10}{result.ratio:>7.1f}x"
        f"{megabytes(result.peaks['compiled']):>10}{megabytes(result.peaks['interpreted']):>10}  {agreement}"
    )


def duration(seconds: float) -> str:
    """A duration with a unit, from ns to s."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def main(form: str, name: str, repeat: str) -> None:
    """The program of a measuring process: prints the measurements as json."""
    workload = WORKLOADS[name]
    with options.change(mode="compiled"):
        found = measure_times(workload, int(repeat)) if form == "times" else measure_peak(workload, form)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
