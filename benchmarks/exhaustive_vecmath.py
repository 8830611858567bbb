"""The float32 vector math over all 2**32 arguments against float64, by ranges of the argument.

    python -m benchmarks.exhaustive_vecmath [name ...] [--stride N] [--plain]

For each function of one argument (or those named) and each four powers of two: the largest error in ulp and its
argument. About two minutes a function; `--stride 64` samples every 64th. `--plain` tests the code for a CPU without
fused multiply-add. The status is 1 where a bound is broken or a NaN stands in the wrong place.

Run in full, with fused multiply-add, these had at most, in ulp: exp 1.02, exp2 0.98, expm1 1.63, log 0.86, log2
1.06, log10 0.99, log1p 1.50, tanh 1.66, sigmoid 1.60, softplus 1.75, cbrt 0.73, asin 1.33, acos 1.08, atan 1.38, erf
1.35, erfc 1.50, sinh 0.96, cosh 0.90, asinh 1.74, acosh 1.91, atanh 1.57, gammaln 0.50;
from 0 on, digamma and trigamma 0.50. These last three are computed in float64. At every eighth argument: sin 1.54, cos
1.53, tan 3.01.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from graphc.codegen.vecmath.table import VECTOR_MATH
from tests.support.vecmath_loop import Loop, compile_loop

Array = NDArray[Any]

CHUNK = 1 << 22
LIMIT = 2.0**128
BOUNDS = {"tan": 4.0, "gammaln": 4.0, "digamma": 4.0, "trigamma": 4.0}


def _log_gamma(x: Array) -> Array:
    """SciPy's from 0 on. Below, beside its zeros, that has a large relative error: there it is ours in float64, which
    `tests` hold against mpmath.
    """
    negative = x < 0
    result = np.asarray(scipy.special.gammaln(np.abs(x)))
    result[negative] = _double_gammaln()(x[negative])
    return result


@cache
def _double_gammaln() -> Loop:
    return compile_loop("gammaln", "float64")


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    "sigmoid": scipy.special.expit,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "gammaln": _log_gamma,
    # Between the poles, where the result crosses zero, SciPy's own relative error is large.
    "digamma": lambda x: np.where(x < 0, np.nan, scipy.special.digamma(np.abs(x))),
    "trigamma": lambda x: np.where(x < 0, np.nan, scipy.special.polygamma(1, np.abs(x))),
}
HALF_LINE = frozenset({"digamma", "trigamma"})


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error of a range, in ulp, and where it is; infinite where one of the two results is NaN."""

    error: float
    argument: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[name for name in VECTOR_MATH if name in REFERENCES])
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    broken = [name for name in options.names if not check(name, options.stride, not options.plain)]
    print("broken: " + ", ".join(broken) if broken else "all within their bounds")
    return 1 if broken else 0


def check(name: str, stride: int, has_fma: bool) -> bool:
    """Print the ranges of one function; whether all are within the bound."""
    if len(signature(VECTOR_MATH[name]).parameters) != 1:
        raise SystemExit(f"{name} takes two arguments: 2**64 cases")
    loop = compile_loop(name, "float32", has_fma)
    bound = BOUNDS.get(name, 2.0)
    overall = 0.0
    for label, start, stop in _ranges(name):
        worst = _worst_of_range(loop, REFERENCES[name], start, stop, stride)
        overall = max(overall, worst.error)
        print(f"  {name:9s} {label:22s} {worst.error:8.4f} ulp at {worst.argument!r}", flush=True)
    print(f"{name:11s} {overall:8.4f} ulp, bound {bound}", flush=True)
    return overall <= bound


def _ranges(name: str) -> Iterator[tuple[str, int, int]]:
    """Encodings by sign and by four exponents at a time; the last range of a sign ends with the NaNs."""
    for sign in (0, 1)[: 1 if name in HALF_LINE else 2]:
        for exponent in range(0, 256, 4):
            start = (sign << 31) + (exponent << 23)
            label = f"{'-' if sign else '+'}2**{exponent - 127} to 2**{exponent - 123}"
            yield label, start, start + (4 << 23)


def _worst_of_range(loop: Loop, reference: Callable[[Array], Array], start: int, stop: int, stride: int) -> Worst:
    worst = Worst(0.0, 0.0)
    for first in range(start, stop, CHUNK * stride):
        encodings = np.arange(first, min(stop, first + CHUNK * stride), stride, dtype=np.uint32)
        x = encodings.view(np.float32)
        with np.errstate(all="ignore"):
            errors = _errors(loop(x), reference(x.astype(np.float64)))
        place = int(np.argmax(errors))
        if errors[place] > worst.error:
            worst = Worst(float(errors[place]), float(x[place]))
    return worst


def _errors(result: Array, exact: Array) -> Array:
    """Distances in ulp of the exact value; infinity stands for 2**128, the next after the largest number."""
    got = np.clip(result.astype(np.float64), -LIMIT, LIMIT)
    exact = np.clip(exact, -LIMIT, LIMIT)
    exponents = np.clip(np.frexp(exact)[1] - 24, -149, 104)
    errors = np.abs(got - exact) / np.ldexp(1.0, exponents)
    errors[np.isnan(got) & np.isnan(exact)] = 0.0
    return np.where(np.isnan(errors), np.inf, errors)


if __name__ == "__main__":
    sys.exit(main())
