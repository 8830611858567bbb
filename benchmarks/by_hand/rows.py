"""By hand: what is reduced over rows stays in cache until it has been used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import threaded
from benchmarks.by_hand.vecmath import exp32
from benchmarks.workload import Array, Data, Program

ZERO32, ONE32, EPSILON32 = np.float32(0), np.float32(1), np.float32(1e-5)

# --- log-softmax ------------------------------------------------------------------------------------------------------


@threaded
def log_softmax(x: Any, g: Any, y: Any, to_x: Any) -> None:
    n, m = x.shape
    for i in prange(n):
        highest = x[i, 0]
        for j in range(m):
            highest = x[i, j] if x[i, j] > highest else highest
        total = ZERO32
        pull = ZERO32
        for j in range(m):
            power = exp32(x[i, j] - highest)
            to_x[i, j] = power
            total += power
            pull += g[i, j]
        level = highest + np.float32(np.log(total))
        pull /= total
        for j in range(m):
            y[i, j] = x[i, j] - level
            to_x[i, j] = g[i, j] - pull * to_x[i, j]


def build_log_softmax(library: Any, data: Data) -> Program:
    def call(x: Array, g: Array) -> Any:
        y, to_x = np.empty_like(x), np.empty_like(x)
        log_softmax(x, g, y, to_x)
        return y, to_x

    return Program(call)


# --- moments ----------------------------------------------------------------------------------------------------------


@threaded
def moments_of_columns(x: Any, sums: Any, squares: Any) -> None:
    """One pass in memory order, shifted by the first row: sums and squares for each part of the rows."""
    n, m = x.shape
    parts = sums.shape[0]
    for part in prange(parts):
        total = np.zeros(m)
        square = np.zeros(m)
        low, high = part * n // parts, (part + 1) * n // parts
        for i in range(low, high - 3, 4):
            for j in range(m):
                shift = x[0, j]
                d0, d1, d2, d3 = x[i, j] - shift, x[i + 1, j] - shift, x[i + 2, j] - shift, x[i + 3, j] - shift
                total[j] += (d0 + d1) + (d2 + d3)
                square[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        for i in range(high - (high - low) % 4, high):
            for j in range(m):
                d = x[i, j] - x[0, j]
                total[j] += d
                square[j] += d * d
        sums[part] = total
        squares[part] = square


def build_moments_of_columns(library: Any, data: Data) -> Program:
    def call(x: Array) -> Any:
        n, m = x.shape
        sums, squares = np.empty((2, 2, m))
        moments_of_columns(x, sums, squares)
        drift = sums.sum(axis=0) / n
        return x[0] + drift, squares.sum(axis=0) / n - drift * drift

    return Program(call)


@threaded
def moments_of_rows(x: Any, mean: Any, variance: Any) -> None:
    n, m = x.shape
    for i in prange(n):
        total = 0.0
        for j in range(m):
            total += x[i, j]
        middle = total / m
        square = 0.0
        for j in range(m):
            d = x[i, j] - middle
            square += d * d
        mean[i] = middle
        variance[i] = square / m


def build_moments_of_rows(library: Any, data: Data) -> Program:
    def call(x: Array) -> Any:
        mean, variance = np.empty((2, len(x)))
        moments_of_rows(x, mean, variance)
        return mean, variance

    return Program(call)


# --- layer norm -------------------------------------------------------------------------------------------------------


@threaded
def layer_norm(x: Any, scale: Any, shift: Any, g: Any, y: Any, to_x: Any, partial: Any) -> None:
    """`partial`: for each part of the rows, the gradients of scale and shift."""
    n, m = x.shape
    parts = partial.shape[0]
    for part in prange(parts):
        partial[part] = ZERO32
        for i in range(part * n // parts, (part + 1) * n // parts):
            total = ZERO32
            for j in range(m):
                total += x[i, j]
            middle = total / np.float32(m)
            square = ZERO32
            for j in range(m):
                d = x[i, j] - middle
                square += d * d
            inverse = ONE32 / np.sqrt(square / np.float32(m) + EPSILON32)
            drift = ZERO32
            pull = ZERO32
            for j in range(m):
                normal = (x[i, j] - middle) * inverse
                scaled = g[i, j] * scale[j]
                y[i, j] = normal * scale[j] + shift[j]
                drift += scaled
                pull += scaled * normal
                partial[part, 0, j] += g[i, j] * normal
                partial[part, 1, j] += g[i, j]
            drift /= np.float32(m)
            pull /= np.float32(m)
            for j in range(m):
                normal = (x[i, j] - middle) * inverse
                to_x[i, j] = (g[i, j] * scale[j] - drift - normal * pull) * inverse


def build_layer_norm(library: Any, data: Data) -> Program:
    def call(x: Array, scale: Array, shift: Array, g: Array) -> Any:
        y, to_x, partial = np.empty_like(x), np.empty_like(x), np.empty((4, 2, x.shape[1]), x.dtype)
        layer_norm(x, scale, shift, g, y, to_x, partial)
        return y, to_x, *partial.sum(axis=0)

    return Program(call)


BUILDERS = {
    "log-softmax-vjp": build_log_softmax,
    "moments-axis0": build_moments_of_columns,
    "moments-axis1": build_moments_of_rows,
    "layer-norm-gradient": build_layer_norm,
}
