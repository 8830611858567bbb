"""The speed and the cost of compiling each vector function, beside NumPy's.

    python -m benchmarks.time_vecmath [name ...] [--rounds N] [--plain]

A loop over 4096 elements, which stay in the first caches, on one core: the best of many short rounds, in each of which
the loop and NumPy's function (SciPy's, where NumPy has none) run in turn. `compile` is the processor time to make the
loop, from formulas to assembly and machine code, the best of three. A ratio above 1 means that NumPy is slower.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from graphc.codegen.vecmath.table import VECTOR_MATH
from tests.support.vecmath_loop import Loop, compile_loop

Array = NDArray[Any]

SIZE = 4096
CALLS = 4

NUMPY: dict[str, Callable[..., Array]] = {
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "gammaln": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "trigamma": partial(scipy.special.polygamma, 1),
}

INTERVALS = {
    **dict.fromkeys(["log", "log2", "log10", "cbrt", "pow", "gammaln", "digamma", "trigamma"], (0.1, 10.0)),
    **dict.fromkeys(["asin", "acos", "atanh"], (-0.99, 0.99)),
    **dict.fromkeys(["log1p"], (-0.9, 5.0)),
    **dict.fromkeys(["acosh"], (1.0, 10.0)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(VECTOR_MATH))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    print(f"{'function':9s} {'dtype':8s} {'ns':>7s} {'NumPy ns':>9s} {'ratio':>6s} {'compile ms':>11s}")
    for name in options.names:
        for dtype in ("float32", "float64"):
            compilation = min(_compile_milliseconds(name, dtype, not options.plain) for _ in range(3))
            loop = compile_loop(name, dtype, not options.plain)
            ours, numpys = _times(name, loop, options.rounds)
            figures = f"{ours:7.2f} {numpys:9.2f} {numpys / ours:6.1f} {compilation:11.1f}"
            print(f"{name:9s} {dtype:8s} {figures}", flush=True)


def _compile_milliseconds(name: str, dtype: str, has_fma: bool) -> float:
    start = time.process_time()
    compile_loop(name, dtype, has_fma)
    return 1e3 * (time.process_time() - start)


def _times(name: str, loop: Loop, rounds: int) -> tuple[float, float]:
    """Nanoseconds an element of the loop and of NumPy's function."""
    random = np.random.default_rng(1)
    low, high = INTERVALS.get(name, (-8.0, 8.0))
    arrays = [random.uniform(low, high, SIZE).astype(loop.dtype) for _ in range(loop.arity)]
    out = np.empty_like(arrays[0])
    function = NUMPY.get(name) or getattr(np, name)
    theirs = partial(function, *arrays, out=out) if isinstance(function, np.ufunc) else partial(function, *arrays)
    best = [np.inf, np.inf]
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            for i, candidate in enumerate((loop.bind(*arrays, out), theirs)):
                start = time.process_time()
                for _ in range(CALLS):
                    candidate()
                best[i] = min(best[i], time.process_time() - start)
    ours, numpys = (1e9 * seconds / (CALLS * SIZE) for seconds in best)
    return ours, numpys


if __name__ == "__main__":
    main()
