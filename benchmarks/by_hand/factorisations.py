"""By hand: loops for what is small, LAPACK, which numba calls for `np.linalg`, for what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import serial, threaded
from benchmarks.workload import Array, Data, Program


@threaded
def solve(a: Any, b: Any, x: Any) -> None:
    n = a.shape[1]
    for number in prange(a.shape[0]):
        factor = np.empty((n, n))
        for i in range(n):
            for j in range(i + 1):
                value = a[number, i, j]
                for p in range(j):
                    value -= factor[i, p] * factor[j, p]
                factor[i, j] = np.sqrt(value) if i == j else value / factor[j, j]
        for i in range(n):
            value = b[number, i, 0]
            for p in range(i):
                value -= factor[i, p] * x[number, p, 0]
            x[number, i, 0] = value / factor[i, i]
        for i in range(n - 1, -1, -1):
            value = x[number, i, 0]
            for p in range(i + 1, n):
                value -= factor[p, i] * x[number, p, 0]
            x[number, i, 0] = value / factor[i, i]


@serial
def whiten(a: Any, b: Any) -> Any:
    factor, x, total = np.linalg.cholesky(a), np.empty_like(b), 0.0
    for i in range(a.shape[0]):
        total += np.log(factor[i, i])
        value = b[i, 0]
        for p in range(i):
            value -= factor[i, p] * x[p, 0]
        x[i, 0] = value / factor[i, i]
    return total, x


@serial
def least_squares(features: Any, targets: Any, keep: float, first: Any) -> Any:
    steps, n = features.shape
    matrices, sides = np.empty((steps + 1, n, n)), np.zeros((steps + 1, n))
    found, errors = np.empty((steps, n)), np.empty(steps)
    matrices[0] = first
    cost = 0.0
    for t in range(steps):
        found[t] = np.linalg.solve(matrices[t], sides[t])
        error = targets[t]
        for i in range(n):
            error -= features[t, i] * found[t, i]
        errors[t] = error
        cost += error * error
        for i in range(n):
            sides[t + 1, i] = keep * sides[t, i] + targets[t] * features[t, i]
            for j in range(n):
                matrices[t + 1, i, j] = keep * matrices[t, i, j] + features[t, i] * features[t, j]
    of_matrix, of_side, of_keep, turned, pulled = np.zeros((n, n)), np.zeros(n), 0.0, np.empty((n, n)), np.empty(n)
    for t in range(steps - 1, -1, -1):
        for i in range(n):
            of_keep += of_side[i] * sides[t, i]
            pulled[i] = -2.0 * errors[t] * features[t, i]
            for j in range(n):
                of_keep += of_matrix[i, j] * matrices[t, i, j]
                turned[i, j] = matrices[t, j, i]
        pull = np.linalg.solve(turned, pulled)
        for i in range(n):
            of_side[i] = keep * of_side[i] + pull[i]
            for j in range(n):
                of_matrix[i, j] = keep * of_matrix[i, j] - pull[i] * found[t, j]
    return cost, of_keep, of_matrix


def build_solve(library: Any, data: Data) -> Program:
    def call(a: Array, b: Array) -> Array:
        x = np.empty_like(b)
        solve(a, b, x)
        return x

    return Program(call)


def build_filter(library: Any, data: Data) -> Program:
    return Program(lambda features, targets, keep, first: least_squares(features, targets, float(keep), first))


BUILDERS = {
    "cholesky-solves": build_solve,
    "cholesky-200": lambda library, data: Program(whiten),
    "least-squares-gradient": build_filter,
}
