"""By hand: the overhead of a call is numba's dispatcher."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.workload import Program


@serial
def scalar(x: Any) -> Any:
    return x[()] * 2.0 + 1.0


@serial
def two(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for i in range(a.size):
        out[i] = a[i] + b[i]
    return out


@serial
def three(a: Any, b: Any, c: Any) -> Any:
    out = np.empty_like(a)
    for i in range(a.size):
        out[i] = a[i] * b[i] + c[i]
    return out


@serial
def eight(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    out = np.empty_like(a)
    for i in range(a.size):
        out[i] = a[i] * b[i] + c[i] * d[i] + e[i] * f[i] + g[i] * h[i]
    return out


BUILDERS = {
    "overhead-scalar": lambda library, data: Program(scalar),
    "overhead-two": lambda library, data: Program(two),
    "overhead-three": lambda library, data: Program(three),
    "overhead-eight": lambda library, data: Program(eight),
}
