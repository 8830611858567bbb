"""`python -m benchmarks.tracing`: what tracing takes and what calls cost beside the kernel, against JAX.

In: arguments, see --help. Out: the section of docs/benchmarks.md. Each library runs in processes of its own, which take
turns; of each, the fastest of several traces and calls counts, and the median over processes is compared.

    $ python -m benchmarks.tracing --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.libraries import PEERS
from benchmarks.report import duration, times, with_section
from benchmarks.runner import ROOT

TRACES = 5
CALLS = 2000
ROUNDS = 5


def programs(jnp: Any, grad: Any, vmap: Any) -> Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """What is traced: a name, a function, its arguments."""

    def chain(x: Any) -> Any:
        for i in range(125):
            y = jnp.sin(x) + float(i)
            z = y * x - jnp.cos(y)
            x = jnp.where(z > 0.5, z, jnp.tanh(x)) + y / 2.0
        return x.sum()

    def writes(x: Any) -> Any:
        a = jnp.zeros(200)
        for i in range(200):
            a = a.at[i].set(x[i] * 2.0)
        return a.sum()

    def small(x: Any) -> Any:
        for _ in range(100):
            x = x + jnp.zeros(3) * jnp.ones(3) + jnp.arange(3.0)
        return x.sum()

    def layers(parameters: Any, x: Any) -> Any:
        for w, b in parameters:
            x = jnp.tanh(x @ w + b)
        return (x**2).mean()

    row, made = np.full(10, 0.5), [(np.eye(10), np.ones(10)) for _ in range(30)]
    return {
        "1,250 operations": (chain, (row,)),
        "the gradient of these": (grad(chain), (row,)),
        "vmap of these": (vmap(chain), (np.ones((4, 10)),)),
        "200 writes of an element": (writes, (np.ones(200),)),
        "300 small arrays that are made": (small, (np.ones(3),)),
        "the gradient of 30 layers": (grad(layers), (made, row)),
    }


def calls(jnp: Any) -> Mapping[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """What is called: a name, a function, its arguments by position and by name."""
    a, b, c = np.ones(3), np.ones(3), np.ones(3)

    def tree(d: Any) -> Any:
        return {"a": d["a"] + d["b"], "b": d["c"], "c": d["a"]}

    return {
        "three arrays, one result": (lambda x, y, z: x + y + z, (a, b, c), {}),
        "a result without axes": (lambda x: x.sum(), (a,), {}),
        "two results, a tuple": (lambda x, y: (x + y, x * y), (a, b), {}),
        "two arrays and a Python number": (lambda x, y, s: x + y * s, (a, b, 2.0), {}),
        "two arrays by name": (lambda x, y: x + y, (), {"x": a, "y": b}),
        "a dict of three arrays, one as the result": (tree, ({"a": a, "b": b, "c": c},), {}),
    }


def measure(peer: str) -> dict[str, float]:
    """The seconds of each trace and call, in this process."""
    library = import_module(peer)
    jnp = import_module(f"{peer}.numpy")
    found: dict[str, float] = {}

    for name, (function, given) in programs(jnp, library.grad, library.vmap).items():
        took = []
        for _ in range(TRACES):
            start = perf_counter()
            library.eval_shape(lambda *args, function=function: function(*args), *given)
            took.append(perf_counter() - start)
        found[name] = min(took)
    for name, (function, args, kwargs) in calls(jnp).items():
        compiled, took = library.jit(function), []
        for _ in range(5):
            start = perf_counter()
            for _ in range(CALLS):
                compiled(*args, **kwargs)
            took.append((perf_counter() - start) / CALLS)
        found[name] = min(took)
    return found


def section(results: Mapping[str, list[Mapping[str, float]]]) -> str:
    """The section of the report."""
    own, other = ({name: median(one[name] for one in results[peer]) for name in results[peer][0]} for peer in results)
    rows = [f"| {name} | {duration(own[name])} | {times(other[name] / own[name])} |\n" for name in own]
    return (
        "## Tracing\n\nWhat tracing takes, and what a call of a compiled function of small arrays costs, written by "
        "`python -m benchmarks.tracing`; of JAX the ratio to graphc.\n\n| what | graphc | jax |\n|---|---:|---:|\n"
        + "".join(rows)
    )


def main() -> None:
    made = argparse.ArgumentParser(prog="python -m benchmarks.tracing", description=__doc__)
    made.add_argument("peer", nargs="?", choices=("graphc", "jax"), help="measure it in this process, print figures")
    made.add_argument("--python", default="benchmarks/.venv/bin/python", help="the Python of JAX (of make bench-env)")
    made.add_argument("--rounds", type=int, default=ROUNDS, help=f"processes of each ({ROUNDS})")
    made.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the report")
    chosen = made.parse_args()
    if chosen.peer:
        print(json.dumps(measure(chosen.peer)))
        return
    results: dict[str, list[Mapping[str, float]]] = {"graphc": [], "jax": []}
    for _ in range(chosen.rounds):
        for peer, found in results.items():
            python = sys.executable if peer == "graphc" else chosen.python
            more = {} if peer == "graphc" else dict(PEERS["jax"].environment)
            more.pop("JAX_COMPILATION_CACHE_DIR", None)
            command = [python, "-m", "benchmarks.tracing", peer]
            done = subprocess.run(
                command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **more}, text=True
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
    page = chosen.docs / "benchmarks.md"
    page.write_text(with_section(page.read_text(encoding="utf-8"), section(results)), encoding="utf-8")
    print(section(results))


if __name__ == "__main__":
    main()
