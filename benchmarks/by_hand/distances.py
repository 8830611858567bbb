"""By hand: pairs of points in one nest without temporaries. Points are transposed first, so that the inner loop, over
points or centres, reads memory in order and vectorises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import threaded
from benchmarks.by_hand.vecmath import exp
from benchmarks.workload import Array, Data, Program


@threaded
def sum_kernel(x: Any, y: Any, gradient: Any) -> Any:
    """`y` transposed; three dimensions."""
    total = 0.0
    for i in prange(x.shape[0]):
        x0, x1, x2 = x[i, 0], x[i, 1], x[i, 2]
        weights = 0.0
        g0 = 0.0
        g1 = 0.0
        g2 = 0.0
        for j in range(y.shape[1]):
            d0 = x0 - y[0, j]
            d1 = x1 - y[1, j]
            d2 = x2 - y[2, j]
            weight = exp(-0.5 * (d0 * d0 + d1 * d1 + d2 * d2))
            weights += weight
            g0 += weight * d0
            g1 += weight * d1
            g2 += weight * d2
        gradient[i, 0] = -g0
        gradient[i, 1] = -g1
        gradient[i, 2] = -g2
        total += weights
    return total


def build_pairs(library: Any, data: Data) -> Program:
    def call(x: Array, y: Array) -> Any:
        gradient = np.empty_like(x)
        return sum_kernel(x, np.ascontiguousarray(y.T), gradient), gradient

    return Program(call)


@threaded
def assign(x: Any, centres: Any, sums: Any, counts: Any, inertias: Any) -> None:
    """`centres` transposed. The last three have a part for each part of the points."""
    n, dimensions = x.shape
    k = centres.shape[1]
    parts = sums.shape[0]
    for part in prange(parts):
        sums[part] = 0.0
        counts[part] = 0.0
        inertia = 0.0
        distances = np.empty(k)
        for i in range(part * n // parts, (part + 1) * n // parts):
            distances[:] = 0.0
            for d in range(dimensions):
                for c in range(k):
                    apart = x[i, d] - centres[d, c]
                    distances[c] += apart * apart
            nearest = 0
            lowest = distances[0]
            for c in range(1, k):
                if distances[c] < lowest:
                    nearest, lowest = c, distances[c]
            inertia += lowest
            counts[part, nearest] += 1.0
            for d in range(dimensions):
                sums[part, nearest, d] += x[i, d]
        inertias[part] = inertia


def build_clusters(library: Any, data: Data) -> Program:
    centres = data.state[0].copy()
    k, dimensions = centres.shape
    sums, counts, inertias = np.empty((4, k, dimensions)), np.empty((4, k)), np.empty(4)

    def call(x: Array) -> Any:
        assign(x, np.ascontiguousarray(centres.T), sums, counts, inertias)
        np.divide(sums.sum(axis=0), np.maximum(counts.sum(axis=0), 1.0)[:, None], out=centres)
        return (inertias.sum(),)

    return Program(call, lambda: (centres,))


BUILDERS = {"pairwise-kernel": build_pairs, "k-means-step": build_clusters}
