"""Fits by SciPy's algorithms: derivatives from graphc, by hand in NumPy, by differences, from JAX. Fits that are
compiled as a whole: graphc's `jit` of `minimize`, and jaxopt's solvers.

    python -m benchmarks.fits                              graphc, by hand, differences
    python -m benchmarks.fits --python benchmarks/.venv/bin/python    JAX and jaxopt too, by that Python
    python -m benchmarks.fits spectrum --only jax --results fits.json --docs docs/scipy.md

Each contestant fits in processes of its own, which have imported what they need and made the data before the clock
starts. *cold*: imports and the first fit, with an empty cache of compiled code; *first*: the first fit of a process
with the cache that another left, without imports; *again*: the least of later fits in that process. All begin at the
same place; those with SciPy's algorithm run the same one with the same options. The values that they find are printed.
`--results` names a file that is extended by what is measured, `--docs` a page whose tables are written anew from it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5


class Fit(NamedTuple):
    """A problem. make: the data. start: the guess, a tree. loss(lib, p, *data): the objective, of NumPy's, graphc's or
    JAX's functions: `lib` has the modules numpy, lax and scipy.linalg. by_hand(p, *data): value and gradient, of a
    vector."""

    make: Callable[[], tuple[Any, ...]]
    start: Any
    loss: Callable[..., Any]
    by_hand: Callable[..., Any]
    method: str
    options: dict[str, Any]


# --- logistic regression ----------------------------------------------------------------------------------------------


def make_logistic() -> tuple[Any, ...]:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(50_000, 20))
    y = (draw.random(50_000) < 1 / (1 + np.exp(-(x @ draw.normal(size=20) / 3)))).astype("float64")
    return x, y


def logistic(lib: Any, p: Any, x: Any, y: Any) -> Any:
    xp, *_ = lib
    z = x @ p["w"] + p["b"]
    return xp.sum(xp.logaddexp(0.0, z) - y * z) + 0.5 * xp.sum(p["w"] ** 2)


def logistic_by_hand(p: Any, x: Any, y: Any) -> Any:
    b, w = p[0], p[1:]
    z = x @ w + b
    value = np.sum(np.logaddexp(0.0, z) - y * z) + 0.5 * w @ w
    rest = 1 / (1 + np.exp(-z)) - y
    return value, np.concatenate([[rest.sum()], x.T @ rest + w])


# --- counts of a spectrum: two peaks over a decay, by Poisson's likelihood --------------------------------------------

CURVE = {"a": [300.0, 200.0], "c": [3.0, 6.5], "d": 500.0, "k": 0.3, "s": [0.4, 0.8]}
CURVE_START = {
    "a": np.array([200.0, 150.0]), "c": np.array([2.8, 6.8]), "d": np.array(400.0), "k": np.array(0.25),
    "s": np.array([0.5, 0.6]),
}  # fmt: skip


def make_counts() -> tuple[Any, ...]:
    x = np.linspace(0, 10, 50_000)
    return x, np.random.default_rng(2).poisson(rate(np, CURVE, x) / 20).astype("float64")


def rate(xp: Any, p: Any, x: Any) -> Any:
    peaks = [p["a"][i] * xp.exp(-0.5 * ((x - p["c"][i]) / p["s"][i]) ** 2) for i in range(2)]
    return peaks[0] + peaks[1] + p["d"] * xp.exp(-p["k"] * x)


def counts(lib: Any, p: Any, x: Any, y: Any) -> Any:
    xp, *_ = lib
    expected = rate(xp, p, x) / 20
    return xp.mean(expected - y * xp.log(expected))


def counts_by_hand(p: Any, x: Any, y: Any) -> Any:
    a, c, d, k, s = p[0:2], p[2:4], p[4], p[5], p[6:8]
    u = [(x - c[i]) / s[i] for i in range(2)]
    e = [np.exp(-0.5 * u[i] * u[i]) for i in range(2)]
    last = np.exp(-k * x)
    expected = (a[0] * e[0] + a[1] * e[1] + d * last) / 20
    back = (1 - y / expected) / (20 * x.size)
    peaks = [back * e[i] for i in range(2)]
    decay = back * last
    slope = [
        *(peaks[i].sum() for i in range(2)),
        *(a[i] / s[i] * (peaks[i] @ u[i]) for i in range(2)),
        decay.sum(),
        -d * (decay @ x),
        *(a[i] / s[i] * (peaks[i] @ (u[i] * u[i])) for i in range(2)),
    ]
    return np.mean(expected - y * np.log(expected)), np.array(slope)


# --- hyperparameters of a Gaussian process ----------------------------------------------------------------------------


def make_process() -> tuple[Any, ...]:
    draw = np.random.default_rng(3)
    x = draw.uniform(-2, 2, size=(300, 3))
    return x, np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] ** 2 + 0.1 * draw.normal(size=300)


def process(lib: Any, p: Any, x: Any, y: Any) -> Any:
    xp, _, linalg = lib
    scaled = x / xp.exp(p["length"])
    square = xp.sum((scaled[:, None, :] - scaled[None, :, :]) ** 2, axis=2)
    k = xp.exp(2 * p["size"] - 0.5 * square) + xp.exp(2 * p["noise"]) * xp.eye(x.shape[0])
    factor = linalg.cho_factor(k, lower=True)
    return 0.5 * y @ linalg.cho_solve(factor, y) + xp.sum(xp.log(xp.diagonal(factor[0])))


def process_by_hand(p: Any, x: Any, y: Any) -> Any:
    linalg = import_module("scipy.linalg")
    length, noise, size = p[0:3], p[3], p[4]
    scaled = x / np.exp(length)
    parts = (scaled[:, None, :] - scaled[None, :, :]) ** 2
    smooth = np.exp(2 * size - 0.5 * parts.sum(2))
    k = smooth.copy()
    k.flat[:: len(y) + 1] += np.exp(2 * noise)
    factor = linalg.cho_factor(k, lower=True)
    alpha = linalg.cho_solve(factor, y)
    inner = linalg.cho_solve(factor, np.eye(len(y))) - np.outer(alpha, alpha)
    weighed = inner * smooth
    value = 0.5 * y @ alpha + np.log(np.diag(factor[0])).sum()
    slope = [*(0.5 * np.einsum("ij,ijk->k", weighed, parts)), np.exp(2 * noise) * np.trace(inner), weighed.sum()]
    return value, np.array(slope)


# --- a small net ------------------------------------------------------------------------------------------------------


def make_net() -> tuple[Any, ...]:
    draw = np.random.default_rng(4)
    x = draw.normal(size=(4000, 8))
    return x, np.sin(x[:, 0] * x[:, 1]) + x[:, 2]


NET = {
    "b": np.zeros(16), "c": np.zeros(()), "v": np.random.default_rng(5).normal(size=16) / 4,
    "w": np.random.default_rng(6).normal(size=(8, 16)) / 3,
}  # fmt: skip


def net(lib: Any, p: Any, x: Any, y: Any) -> Any:
    xp, *_ = lib
    out = xp.tanh(x @ p["w"] + p["b"]) @ p["v"] + p["c"]
    return xp.mean((out - y) ** 2) + 1e-4 * xp.sum(p["w"] ** 2)


def net_by_hand(p: Any, x: Any, y: Any) -> Any:
    b, c, v, w = p[:16], p[16], p[17:33], p[33:].reshape(8, 16)
    hidden = np.tanh(x @ w + b)
    rest = hidden @ v + c - y
    back = 2 / len(y) * rest
    into = back[:, None] * v * (1 - hidden * hidden)
    slope = [into.sum(0), [back.sum()], hidden.T @ back, (x.T @ into + 2e-4 * w).ravel()]
    return np.mean(rest**2) + 1e-4 * np.sum(w * w), np.concatenate(slope)


# --- a mixed model: answers of groups, whose effects are integrated out by Gauss and Hermite's rule -------------------

GROUPS, ANSWERS, NODES = 1500, 12, 20


def make_groups() -> tuple[Any, ...]:
    draw = np.random.default_rng(8)
    x = draw.normal(size=(GROUPS, ANSWERS, 4))
    effect = 1.2 * draw.normal(size=(GROUPS, 1))
    y = draw.random((GROUPS, ANSWERS)) < 1 / (1 + np.exp(-(x @ np.array([1.0, -0.5, 0.3, 0.0]) + effect)))
    places, weights = np.polynomial.hermite.hermgauss(NODES)
    return x, y.astype("float64"), np.sqrt(2) * places, np.log(weights)


def mixed(lib: Any, p: Any, x: Any, y: Any, places: Any, weights: Any) -> Any:
    xp, *_ = lib
    z = (x @ p["beta"])[:, :, None] + xp.exp(p["spread"]) * places
    each = xp.sum(y[:, :, None] * z - xp.logaddexp(0.0, z), axis=1) + weights
    top = xp.max(each, axis=1)
    return -xp.sum(xp.log(xp.sum(xp.exp(each - top[:, None]), axis=1)) + top)


def mixed_by_hand(p: Any, x: Any, y: Any, places: Any, weights: Any) -> Any:
    beta, spread = p[:4], np.exp(p[4])
    z = (x @ beta)[:, :, None] + spread * places
    each = (y[:, :, None] * z - np.logaddexp(0.0, z)).sum(1) + weights
    top = each.max(1)
    share = np.exp(each - top[:, None])
    total = share.sum(1)
    rest = (y[:, :, None] - 1 / (1 + np.exp(-z))) * (share / total[:, None])[:, None, :]
    slope = np.append(np.einsum("go,goj->j", rest.sum(2), x), spread * np.sum(rest.sum((0, 1)) * places))
    return -np.sum(np.log(total) + top), -slope


# --- rates of a differential equation ---------------------------------------------------------------------------------

STEPS, LENGTH = 400, 0.02


def make_rates() -> tuple[Any, ...]:
    draw = np.random.default_rng(7)
    state, seen = np.array([1.0, 0.5]), []
    for _ in range(STEPS):
        state = _runge_kutta(lambda s: np.array(_predators(s, (1.0, 1.5, 1.2, 0.8))), state)
        seen.append(state)
    return (np.array(seen) + 0.02 * draw.normal(size=(STEPS, 2)),)


def _predators(s: Any, rates: Any) -> Any:
    a, b, c, d = rates
    return a * s[0] - b * s[0] * s[1], -c * s[1] + d * s[0] * s[1]


def _runge_kutta(change: Any, s: Any) -> Any:
    one = change(s)
    two = change(s + LENGTH / 2 * one)
    three = change(s + LENGTH / 2 * two)
    return s + LENGTH / 6 * (one + 2 * two + 2 * three + change(s + LENGTH * three))


def rates_of(lib: Any, p: Any, seen: Any) -> Any:
    xp, lax, _ = lib

    def step(s: Any, row: Any) -> Any:
        after = _runge_kutta(lambda s: xp.stack(_predators(s, p)), s)
        return after, xp.sum((after - row) ** 2)

    return xp.sum(lax.scan(step, xp.array([1.0, 0.5]), seen)[1])


def rates_by_hand(p: Any, seen: Any) -> Any:
    """Sensitivities along the solution, which are a differential equation as well."""
    a, b, c, d = p

    def change(both: Any) -> Any:
        x, y = both[0, 0], both[1, 0]
        inner = np.array([[a - b * y, -b * x], [d * y, -c + d * x]])
        outer = np.array([[x, -x * y, 0, 0], [0, 0, -y, x * y]])
        return np.column_stack([[a * x - b * x * y, -c * y + d * x * y], inner @ both[:, 1:] + outer])

    both = np.column_stack([[1.0, 0.5], np.zeros((2, 4))])
    value, slope = 0.0, np.zeros(4)
    for row in seen:
        both = _runge_kutta(change, both)
        rest = both[:, 0] - row
        value += rest @ rest
        slope += 2 * rest @ both[:, 1:]
    return value, slope


# --- a small fit: a decay of 200 points -------------------------------------------------------------------------------


def make_decay() -> tuple[Any, ...]:
    x = np.linspace(0, 4, 200)
    return x, 3 * np.exp(-0.7 * x) + 0.05 * np.random.default_rng(9).normal(size=200)


def decay(lib: Any, p: Any, x: Any, y: Any) -> Any:
    xp, *_ = lib
    return xp.sum((p["a"] * xp.exp(-p["k"] * x) - y) ** 2)


def decay_by_hand(p: Any, x: Any, y: Any) -> Any:
    each = np.exp(-p[1] * x)
    rest = p[0] * each - y
    return rest @ rest, np.array([2 * rest @ each, -2 * p[0] * (rest * each) @ x])


FITS = {
    "logistic regression": Fit(
        make_logistic, {"b": np.zeros(()), "w": np.zeros(20)}, logistic, logistic_by_hand, "L-BFGS-B", {}
    ),
    "spectrum": Fit(make_counts, CURVE_START, counts, counts_by_hand, "BFGS", {"gtol": 1e-6}),
    "net": Fit(make_net, NET, net, net_by_hand, "L-BFGS-B", {"maxiter": 300}),
    "mixed model": Fit(make_groups, {"beta": np.zeros(4), "spread": np.zeros(())}, mixed, mixed_by_hand, "BFGS", {}),
    "rates": Fit(make_rates, np.array([0.8, 1.2, 1.0, 1.0]), rates_of, rates_by_hand, "BFGS", {}),
    "Gaussian process": Fit(
        make_process, {"length": np.zeros(3), "noise": np.array(-1.0), "size": np.zeros(())}, process, process_by_hand,
        "L-BFGS-B", {},
    ),
    "decay": Fit(make_decay, {"a": np.array(1.0), "k": np.array(1.0)}, decay, decay_by_hand, "BFGS", {}),
}  # fmt: skip
CONTESTANTS = ("graphc", "by hand", "differences", "jax", "graphc whole", "jaxopt")
OF_JAX = ("jax", "jaxopt")
COMPILED = ("graphc", "graphc whole", *OF_JAX)
IMPORTED = {
    "graphc": ("scipy.optimize", "graphc.scipy.optimize", "graphc.numpy", "graphc.lax"),
    "jax": ("scipy.optimize", "jax.numpy", "jax.scipy.linalg"),
    "graphc whole": ("graphc.scipy.optimize", "graphc.numpy", "graphc.lax"),
    "jaxopt": ("jaxopt",),
}
TABLES = {
    "fits by SciPy": ("graphc", "by hand", "differences", "jax"),
    "whole fits": ("graphc whole", "jaxopt"),
}
"""The tables of the page, by the comments above them, and the contestants of each."""


# --- one fit ----------------------------------------------------------------------------------------------------------


def flattened(tree: Any) -> Any:
    parts = [tree[name] for name in sorted(tree)] if isinstance(tree, dict) else [tree]
    return np.concatenate([np.ravel(part) for part in parts])


def restored(tree: Any, vector: Any) -> Any:
    if not isinstance(tree, dict):
        return vector
    made, begin = {}, 0
    for name in sorted(tree):
        end = begin + tree[name].size
        made[name] = vector[begin:end].reshape(tree[name].shape)
        begin = end
    return made


def by_scipy(both: Callable[[Any], Any], fit: Fit, has_slope: bool = True) -> float:
    """Fit with SciPy. both: value and gradient of a vector; without `has_slope` the value alone."""
    minimize = import_module("scipy.optimize").minimize
    start = flattened(fit.start)
    return float(minimize(both, start, jac=has_slope or None, method=fit.method, options=fit.options).fun)


def runner(name: str, fit: Fit) -> Callable[[], float]:
    """Return the fit as a function; what it needs is imported, the data are made, nothing is compiled."""
    import_module("scipy.optimize")
    data = fit.make()
    if name in MADE:
        return MADE[name](fit, data)
    if name == "by hand":
        return lambda: by_scipy(lambda p: fit.by_hand(p, *data), fit)
    return lambda: by_scipy(value_alone(fit, data), fit, has_slope=False)


def value_alone(fit: Fit, data: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return the objective of a vector, by NumPy."""
    if fit.loss is rates_of:
        return lambda p: _rates_alone(p, *data)
    lib = np, None, import_module("scipy.linalg")
    return lambda p: fit.loss(lib, restored(fit.start, p), *data)


def _rates_alone(p: Any, seen: Any) -> float:
    state, value = np.array([1.0, 0.5]), 0.0
    for row in seen:
        state = _runge_kutta(lambda s: np.array(_predators(s, p)), state)
        value += np.sum((state - row) ** 2)
    return value


def modules(numpy: str, lax: str, linalg: str) -> tuple[Any, ...]:
    return tuple(map(import_module, (numpy, lax, linalg)))


def _by_graphc(fit: Fit, data: tuple[Any, ...]) -> Callable[[], float]:
    minimize = import_module("graphc.scipy.optimize").minimize
    loss = partial(fit.loss, modules("graphc.numpy", "graphc.lax", "graphc.scipy.linalg"))
    return lambda: float(minimize(loss, fit.start, args=data, method=fit.method, options=fit.options).fun)


def _by_jax(fit: Fit, data: tuple[Any, ...]) -> Callable[[], float]:
    jax = import_module("jax")
    lib = modules("jax.numpy", "jax.lax", "jax.scipy.linalg")
    there = tuple(map(lib[0].asarray, data))
    both = jax.jit(jax.value_and_grad(lambda p, *data: fit.loss(lib, restored(fit.start, p), *data)))

    def call(p: Any) -> Any:
        value, slope = both(p, *there)
        return float(value), np.asarray(slope)

    return lambda: by_scipy(call, fit)


def _by_graphc_whole(fit: Fit, data: tuple[Any, ...]) -> Callable[[], float]:
    graphc, minimize = import_module("graphc"), import_module("graphc.scipy.optimize").minimize
    loss = partial(fit.loss, modules("graphc.numpy", "graphc.lax", "graphc.scipy.linalg"))

    def whole(start: Any, *data: Any) -> Any:
        found = minimize(loss, start, args=data, method=fit.method, options=fit.options)
        return found.fun, found.x

    fitted = graphc.jit(whole)
    return lambda: float(fitted(fit.start, *data)[0])


def _by_jaxopt(fit: Fit, data: tuple[Any, ...]) -> Callable[[], float]:
    jax, jaxopt = import_module("jax"), import_module("jaxopt")
    lib = modules("jax.numpy", "jax.lax", "jax.scipy.linalg")
    there = tuple(map(lib[0].asarray, data))
    kind = jaxopt.BFGS if fit.method == "BFGS" else jaxopt.LBFGS
    options = {"maxiter": fit.options.get("maxiter", 1000), "tol": fit.options.get("gtol", 1e-5)}
    solver = kind(partial(fit.loss, lib), jit=True, implicit_diff=False, **options)
    start = jax.tree_util.tree_map(lib[0].asarray, fit.start)
    run = jax.jit(lambda start, *data: solver.run(start, *data).state.value)
    return lambda: float(run(start, *there))


MADE = {"graphc": _by_graphc, "jax": _by_jax, "graphc whole": _by_graphc_whole, "jaxopt": _by_jaxopt}


def measure(name: str, problem: str, seconds: float) -> dict[str, float]:
    """Return the figures of this process."""
    fit, begin = FITS[problem], perf_counter()
    for module in IMPORTED.get(name, ("scipy.optimize",)):
        import_module(module)
    imported = perf_counter() - begin
    run = runner(name, fit)
    begin = perf_counter()
    value = run()
    first = perf_counter() - begin
    again: list[float] = []
    while sum(again) < seconds and len(again) < REPEATS:
        begin = perf_counter()
        run()
        again.append(perf_counter() - begin)
    return {"import": imported, "first": first, "again": min(again, default=first), "value": value}


# --- all fits ---------------------------------------------------------------------------------------------------------


def in_process(python: str, name: str, problem: str, cache: str, seconds: float) -> dict[str, float]:
    """Measure in another process."""
    environment = {
        **os.environ, "GRAPHC_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1",
        "JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip
    command = [python, "-m", "benchmarks.fits", "--one", name, problem, "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise SystemExit(f"{name}, {problem}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def cold_start(python: str, name: str, problem: str, cache: str) -> float:
    """Measure imports and the first fit with an empty cache."""
    found = in_process(python, name, problem, cache, 0.0)
    return found["import"] + found["first"]


Results = dict[str, dict[str, dict[str, float]]]
"""The figures by problem and contestant: cold, first and again in milliseconds, and the value."""


def compare(problem: str, contestants: list[str], python: str, rounds: int, seconds: float, results: Results) -> None:
    """Measure one problem, and print the figures."""
    for name in contestants:
        own = python if name in OF_JAX else sys.executable
        with tempfile.TemporaryDirectory() as cache:
            cold = cold_start(own, name, problem, cache) if name in COMPILED else np.nan
            found = [in_process(own, name, problem, cache, seconds) for _ in range(rounds)]
        made = {
            "cold": cold * 1e3, "first": min(each["first"] for each in found) * 1e3,
            "again": min(each["again"] for each in found) * 1e3, "value": found[0]["value"],
        }  # fmt: skip
        results.setdefault(problem, {})[name] = made
        told = "".join(
            f"{made[key]:10.1f}" if made[key] == made[key] else " " * 10 for key in ("cold", "first", "again")
        )
        print(f"{problem:22}{name:14}{told}   {made['value']:.8g}", flush=True)


def shown(time: float) -> str:
    """Return a time with two or three digits."""
    return f"{time:.0f}" if time >= 20 else f"{time:.1f}" if time >= 0.1 else f"{time:.3f}"


def table(results: Results, contestants: tuple[str, ...]) -> str:
    """Return a table of the page."""
    columns = [
        (name, key)
        for key in ("first", "again", "cold")
        for name in contestants
        if (key != "cold" or name in COMPILED) and (name != "differences" or key == "first")
    ]
    lines = [
        f"| milliseconds | {' | '.join(f'{name}, {key}' for name, key in columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for problem, found in results.items():
        cells = [shown(found[name][key]) if name in found else "" for name, key in columns]
        lines.append(f"| {problem} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_page(page: Path, results: Results) -> None:
    """Write the tables below their comments anew."""
    text = page.read_text("utf-8")
    for name, contestants in TABLES.items():
        head, tail = text.split(f"<!-- {name} -->\n\n")
        text = f"{head}<!-- {name} -->\n\n{table(results, contestants)}\n\n{tail.split(chr(10) * 2, 1)[1]}"
    page.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"all where none is named: {', '.join(FITS)}")
    parser.add_argument("--python", default="benchmarks/.venv/bin/python", help="of JAX (of make bench-env)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each pair (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="to spend on later fits in each (3)")
    parser.add_argument("--only", help=f"some of {', '.join(CONTESTANTS)}, with commas between them")
    parser.add_argument("--results", type=Path, help="a file of results, which is extended")
    parser.add_argument("--docs", type=Path, help="the page whose tables are written from the results")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "FIT"), help="measure in this process")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one[0], chosen.one[1], chosen.seconds)))
        return
    has_jax = Path(chosen.python).exists()
    asked = chosen.only.split(",") if chosen.only else CONTESTANTS
    contestants = [name for name in asked if name not in OF_JAX or has_jax]
    has_results = chosen.results is not None and chosen.results.exists()
    results: Results = json.loads(chosen.results.read_text()) if has_results else {}
    print(f"{'milliseconds':36}{'cold':>10}{'first':>10}{'again':>10}   value")
    for problem in chosen.problems or FITS:
        compare(problem, contestants, chosen.python, chosen.rounds, chosen.seconds, results)
        if chosen.results is not None:
            chosen.results.write_text(json.dumps(results, indent=1))
    if chosen.docs is not None:
        write_page(chosen.docs, results)


if __name__ == "__main__":
    main()
