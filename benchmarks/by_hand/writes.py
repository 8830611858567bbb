"""By hand: the loops that a programmer writes for numba, over elements, with one array where it goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.workload import Data, Program
from benchmarks.workloads.writes import CELLS, STEPS


@serial
def stencil(u: Any) -> Any:
    v = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return v


@serial
def heat(u: Any) -> Any:
    u, moved = u.copy(), np.empty(u.size)
    for _ in range(STEPS):
        for i in range(1, u.size - 1):
            moved[i] = u[i] + 0.2 * (u[i + 1] - 2 * u[i] + u[i - 1])
        for i in range(1, u.size - 1):
            u[i] = moved[i]
    return u


@serial
def heat_gradient(u: Any) -> Any:
    """The steps are a matrix that is its own transpose but for the ends, which stay as they are."""
    slope, before = heat(u), np.empty(u.size)
    n = u.size
    for _ in range(STEPS):
        for i in range(n):
            before[i] = slope[i]
        for i in range(2, n - 2):
            slope[i] = before[i] + 0.2 * (before[i + 1] - 2 * before[i] + before[i - 1])
        slope[0] = before[0] + 0.2 * before[1]
        slope[1] = before[1] + 0.2 * (before[2] - 2 * before[1])
        slope[n - 2] = before[n - 2] + 0.2 * (before[n - 3] - 2 * before[n - 2])
        slope[n - 1] = before[n - 1] + 0.2 * before[n - 2]
    return slope


@serial
def sieve(flags: Any) -> Any:
    is_prime = flags > 0
    is_prime[:2] = False
    for p in range(2, int(flags.size**0.5) + 1):
        for multiple in range(p * p, flags.size, p):
            is_prime[multiple] = False
    return is_prime.astype(np.int8)


@serial
def factors(a: Any) -> Any:
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@serial
def edit_table(left: Any, right: Any) -> Any:
    n, m = left.size, right.size
    t = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        t[i, 0] = i
    for j in range(m + 1):
        t[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            changed = t[i - 1, j - 1] + (left[i - 1] != right[j - 1])
            t[i, j] = min(t[i - 1, j] + 1, t[i, j - 1] + 1, changed)
    return t[n, m]


@serial
def knapsack(weights: Any, values: Any, best: Any) -> Any:
    best = best.copy()
    for i in range(weights.size):
        for room in range(best.size - 1, weights[i] - 1, -1):
            best[room] = max(best[room], best[room - weights[i]] + values[i])
    return best


@serial
def particle_step(x: Any, v: Any) -> Any:
    rho, field = np.zeros(CELLS), np.empty(CELLS)
    moved, pushed = np.empty(x.size), np.empty(x.size)
    for p in range(x.size):
        low = np.floor(x[p])
        i, f = int(low) % CELLS, x[p] - low
        rho[i] += 1 - f
        rho[(i + 1) % CELLS] += f
    total, mean = 0.0, 0.0
    for i in range(CELLS):
        total += rho[i] / x.size * CELLS - 1
        field[i] = total
        mean += total / CELLS
    for p in range(x.size):
        low = np.floor(x[p])
        i, f = int(low) % CELLS, x[p] - low
        pushed[p] = v[p] - 0.1 * ((field[i] - mean) * (1 - f) + (field[(i + 1) % CELLS] - mean) * f)
        moved[p] = (x[p] + 0.1 * pushed[p]) % float(CELLS)
    return moved, pushed


KERNELS = {
    "stencil": stencil,
    "heat": heat,
    "heat-gradient": heat_gradient,
    "sieve": sieve,
    "lu-8": factors,
    "lu-64": factors,
    "edit-table": edit_table,
    "knapsack": knapsack,
    "particle-step": particle_step,
}


def built(kernel: Any) -> Any:
    def build(library: Any, data: Data) -> Program:
        return Program(kernel)

    return build


BUILDERS = {name: built(kernel) for name, kernel in KERNELS.items()}
