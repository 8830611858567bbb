"""By hand: elementwise loops. The output comes from NumPy's allocator, which asks for huge pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import serial, threaded
from benchmarks.by_hand.vecmath import exp, exp32, log1p, log1p32, tanh, tanh32
from benchmarks.workload import Array, Data, Program

THREADED_FROM = 20_000
"""Elements."""


@serial
def mix(x: Any, y: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = exp(-(x[i] * x[i])) * tanh(y[i]) + log1p(y[i] * y[i])


@threaded
def mix_threaded(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = exp(-(x[i] * x[i])) * tanh(y[i]) + log1p(y[i] * y[i])


@serial
def mix32(x: Any, y: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = exp32(-(x[i] * x[i])) * tanh32(y[i]) + log1p32(y[i] * y[i])


@threaded
def mix32_threaded(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = exp32(-(x[i] * x[i])) * tanh32(y[i]) + log1p32(y[i] * y[i])


@threaded
def chain_threaded(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        z = 2.5 * x[i] + y[i]
        out[i] = (z - 0.5 * x[i]) * 1.5 + 0.25 * y[i]


@threaded
def copy_threaded(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i]


def build_copy(library: Any, data: Data) -> Program:
    out = np.empty_like(data.arguments[0])

    def call(x: Array) -> Array:
        copy_threaded(x, out)
        return out

    return Program(call)


def into_fresh(kernel: Any) -> Program:
    """`kernel`, which writes its last argument, as a function of the others."""

    def call(x: Array, y: Array) -> Array:
        out = np.empty_like(x)
        kernel(x, y, out)
        return out

    return Program(call)


def build_mix(library: Any, data: Data) -> Program:
    kernels = {("f", False): mix32, ("f", True): mix32_threaded, ("d", False): mix, ("d", True): mix_threaded}
    x = data.arguments[0]
    return into_fresh(kernels[x.dtype.char, x.size >= THREADED_FROM])


BUILDERS = {
    **{f"elementwise-{size}-{dtype}": build_mix for size in ("small", "large") for dtype in ("f32", "f64")},
    "memory-chain": lambda library, data: into_fresh(chain_threaded),
    "copy": build_copy,
}
