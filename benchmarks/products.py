"""Matrix products of all shapes against NumPy's.

    python -m benchmarks.products [--shapes 300] [--threads 1] [--seed 0] [--worst 25] [--only 1,4096,64,f64,NT]

In: how many shapes to draw. Out: the worst ratios, first of all, then their distribution for each kind. A ratio is
NumPy's time by graphc's, each the least of rounds that take turns: below 1 NumPy is ahead. Sides are drawn from 1 to
4,096; kinds are products of matrices, and of transposed ones (NN, NT, TN, TT), a matrix times a vector (MV, TV), a
vector times a matrix (VM), of two vectors (dot), outer products, and batches of products (batch). The arrays are
contiguous, and transposed in the graph, as in `a @ b.T`. NumPy has as many threads of OpenBLAS as graphc of its own;
they sleep when they are idle, as they do where graphc imports NumPy, for they would take processors from graphc's.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from statistics import geometric_mean, quantiles
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

import graphc
import graphc.tensor as T

SIDES = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    16,
    17,
    24,
    32,
    48,
    64,
    100,
    128,
    200,
    256,
    300,
    512,
    700,
    1000,
    1024,
    2048,
    3000,
    4096,
)
KINDS = {"NN": 4, "NT": 4, "TN": 4, "TT": 2, "MV": 3, "TV": 2, "VM": 3, "dot": 1, "outer": 1, "batch": 4}
"""Kinds, and how often each is drawn."""
NUMPY: dict[str, Callable[..., Any]] = {
    "TN": lambda a, b: np.dot(a.T, b),
    "NT": lambda a, b: np.dot(a, b.T),
    "TT": lambda a, b: np.dot(a.T, b.T),
    "TV": lambda a, b: np.dot(a.T, b),
    "outer": np.outer,
    "batch": np.matmul,
}
"""What NumPy's users call, where that is not np.dot."""
DTYPES = {"f64": "float64", "f32": "float32"}
MOST_WORK, MOST_NUMBERS = 2**29, 2**24
IDLE = "OPENBLAS_THREAD_TIMEOUT"
ROUNDS, ROUND_SECONDS = 7, 1e-3


class Shape(NamedTuple):
    """m rows and n columns of sums of k terms; a batch has `batch` of them."""

    m: int
    n: int
    k: int
    dtype: str
    kind: str
    batch: int = 1


def read(words: list[str]) -> Shape:
    """The shape that is named on the command line."""
    m, n, k, dtype, kind, *batch = words
    return Shape(int(m), int(n), int(k), dtype, kind, int(batch[0]) if batch else 1)


def draw(number: int, seed: int) -> Iterator[Shape]:
    """Shapes that fit into memory and patience."""
    chance = random.Random(seed)
    while number:
        m, n, k = (chance.choice(SIDES) for _ in range(3))
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        count = chance.choice((2, 8, 32, 200, 1000)) if kind == "batch" else 1
        n = 1 if kind in ("MV", "TV", "dot") else n
        m = 1 if kind in ("VM", "dot") else m
        k = 1 if kind == "outer" else k
        if count * m * n * k <= MOST_WORK and count * max(m * n, m * k, k * n) <= MOST_NUMBERS:
            number -= 1
            yield Shape(m, n, k, chance.choice(list(DTYPES)), kind, count)


@cache
def function(kind: str, dtype: str, threads: int) -> Callable[..., Any]:
    ranks = {"MV": (2, 1), "TV": (2, 1), "VM": (1, 2), "dot": (1, 1), "outer": (1, 1), "batch": (3, 3)}.get(
        kind, (2, 2)
    )
    a, b = (T.TensorType(DTYPES[dtype], (False,) * rank)(name) for name, rank in zip("ab", ranks, strict=True))
    left, right = a.T if kind[0] == "T" else a, b.T if kind[1] == "T" else b
    product = T.outer(a, b) if kind == "outer" else left @ right
    made: Callable[..., Any] = graphc.function([a, b], product, threads=threads)
    return made


def operands(shape: Shape) -> tuple[Any, Any]:
    rng, kind = np.random.default_rng(0), shape.kind
    left, right = (shape.m, shape.k), (shape.k, shape.n)
    if kind == "batch":
        left, right = (shape.batch, *left), (shape.batch, *right)  # type: ignore[assignment]
    a, b = (rng.random(size, np.float32).astype(DTYPES[shape.dtype]) for size in (left, right))
    a = np.ascontiguousarray(a.T) if kind[0] == "T" else a
    b = np.ascontiguousarray(b.T) if kind[1] == "T" else b
    a = a.ravel() if kind in ("VM", "dot", "outer") else a
    return a, b.ravel() if kind in ("MV", "TV", "dot", "outer") else b


@cache
def set_blas_threads() -> Callable[[int], Any]:
    """The function of NumPy's OpenBLAS."""
    library = ctypes.CDLL(_multiarray_umath.__file__)
    names = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")
    found: Callable[[int], Any] = next(
        (getattr(library, name) for name in names if hasattr(library, name)), lambda count: None
    )
    return found


def compare(shape: Shape, threads: int) -> tuple[float, float]:
    """Seconds of graphc and of NumPy."""
    a, b = operands(shape)
    by_numpy = NUMPY.get(shape.kind, np.dot)
    by_graphc = function(shape.kind, shape.dtype, threads)
    calls = (by_graphc, by_numpy)
    once = []
    for call in calls:
        call(a, b)
        start = perf_counter()
        call(a, b)
        once.append(perf_counter() - start)
    repeats = [max(1, int(ROUND_SECONDS / seconds)) for seconds in once]
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for place, (call, repeat) in enumerate(zip(calls, repeats, strict=True)):
            start = perf_counter()
            for _ in range(repeat):
                call(a, b)
            best[place] = min(best[place], (perf_counter() - start) / repeat)
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--shapes", type=int, default=300, help="how many to draw (300)")
    parser.add_argument("--threads", type=int, default=1, help="of graphc and of OpenBLAS (1)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--worst", type=int, default=25, help="how many to print one by one (25)")
    parser.add_argument("--only", action="append", help="m,n,k,dtype,kind[,count]: this shape, and others so named")
    parsed = parser.parse_args()
    if IDLE not in os.environ:  # OpenBLAS has read its environment when NumPy was imported
        os.execve(sys.executable, sys.orig_argv, os.environ | {IDLE: "18"})
    shapes = list(draw(parsed.shapes, parsed.seed))
    if parsed.only:
        shapes = [read(one.split(",")) for one in parsed.only]
    set_blas_threads()(parsed.threads)
    found = sorted((numpy / own, own, shape) for shape in shapes for own, numpy in [compare(shape, parsed.threads)])
    for ratio, own, shape in found[: parsed.worst]:
        print(f"{ratio:6.2f}  {own * 1e6:10.1f} us  {','.join(map(str, shape))}")
    kinds: dict[str, list[float]] = defaultdict(list)
    for ratio, _, shape in found:
        kinds[shape.kind].append(ratio)
    kinds["all"] = [ratio for ratio, _, _ in found]
    for kind, ratios in kinds.items():
        if len(ratios) > 1:
            low, *_, high = quantiles(ratios, n=10)
            below = sum(ratio < 0.95 for ratio in ratios)
            print(
                f"{kind:6} {len(ratios):4}: mean {geometric_mean(ratios):5.2f}, tenths below {low:5.2f} and above "
                f"{high:6.2f}, {below} below 0.95"
            )


if __name__ == "__main__":
    main()
