"""By hand: a head after the other, the products by BLAS, the softmax and its gradient in loops between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp32
from benchmarks.workload import Array, Data, Program

ZERO32 = np.float32(0)


@serial
def attend(q: Any, k: Any, v: Any, g: Any, out: Any, to_q: Any, to_k: Any, to_v: Any, weights: Any, pulls: Any) -> None:
    """`weights` and `pulls`: buffers for one head's weights and their gradient."""
    factor = np.float32(q.shape[2] ** -0.5)
    n = q.shape[1]
    for h in range(q.shape[0]):
        np.dot(q[h], k[h].T, weights)
        np.dot(g[h], v[h].T, pulls)
        for i in range(n):
            highest = weights[i, 0]
            for j in range(n):
                highest = weights[i, j] if weights[i, j] > highest else highest
            total = ZERO32
            pull = ZERO32
            for j in range(n):
                power = exp32((weights[i, j] - highest) * factor)
                weights[i, j] = power
                total += power
                pull += power * pulls[i, j]
            inverse = np.float32(1) / total
            pull *= inverse
            for j in range(n):
                weights[i, j] *= inverse
                pulls[i, j] = weights[i, j] * (pulls[i, j] - pull) * factor
        np.dot(weights, v[h], out[h])
        np.dot(weights.T, g[h], to_v[h])
        np.dot(pulls, k[h], to_q[h])
        np.dot(pulls.T, q[h], to_k[h])


def build(library: Any, data: Data) -> Program:
    positions = data.arguments[0].shape[1]
    weights, pulls = np.empty((2, positions, positions), "float32")

    def call(q: Array, k: Array, v: Array, g: Array) -> Any:
        results = tuple(np.empty_like(array) for array in (q, q, k, v))
        attend(q, k, v, g, *results, weights, pulls)
        return results

    return Program(call)


BUILDERS = {"attention-gradient": build}
