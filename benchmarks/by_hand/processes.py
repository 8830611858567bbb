"""By hand: one triangle of the covariance, which LAPACK factorises and inverts where it stands, its derivatives in the
loop that adds up."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address

from benchmarks.by_hand.compile import RELAXED
from benchmarks.workload import Array, Data, Program

ARGUMENTS = [ctypes.c_void_p] * 5
FACTORISE, INVERT = (
    ctypes.CFUNCTYPE(None, *ARGUMENTS)(get_cython_function_address("scipy.linalg.cython_lapack", name))
    for name in ("dpotrf", "dpotri")
)


@njit(error_model="numpy", fastmath=RELAXED)
def likelihood(x: Any, y: Any, logs: Any) -> Any:
    n, dimensions = x.shape
    amplitude, length, noise = np.exp(2 * logs[0]), np.exp(2 * logs[1]), np.exp(2 * logs[2])
    apart, smooth, whole = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            apart[i, j] = 0.0
        for d in range(dimensions):
            for j in range(i + 1):
                apart[i, j] += (x[i, d] - x[j, d]) ** 2
        for j in range(i + 1):
            smooth[i, j] = amplitude * np.exp(-0.5 * apart[i, j] / length)
            whole[i, j] = smooth[i, j]
        whole[i, i] += noise
    letter, size, status = np.full(1, 85, np.uint8), np.full(1, n, np.int32), np.zeros(1, np.int32)
    FACTORISE(letter.ctypes, size.ctypes, whole.ctypes, size.ctypes, status.ctypes)
    value = 0.0
    for i in range(n):
        value += np.log(whole[i, i])
    INVERT(letter.ctypes, size.ctypes, whole.ctypes, size.ctypes, status.ctypes)
    weights = np.zeros(n)
    for i in range(n):
        total = 0.0
        for j in range(i):
            total += whole[i, j] * y[j]
            weights[j] += whole[i, j] * y[i]
        weights[i] += total + whole[i, i] * y[i]
    of_amplitude, of_length, of_noise = 0.0, 0.0, 0.0
    for i in range(n):
        value += 0.5 * y[i] * weights[i] + 0.5 * np.log(2 * np.pi)
        for j in range(i):
            pull = 2 * (whole[i, j] - weights[i] * weights[j]) * smooth[i, j]
            of_amplitude += pull
            of_length += pull * apart[i, j]
        pull = whole[i, i] - weights[i] * weights[i]
        of_noise += pull
        of_amplitude += pull * smooth[i, i]
    return value, np.array([of_amplitude, 0.5 * of_length / length, noise * of_noise])


def build(library: Any, data: Data) -> Program:
    def call(x: Array, y: Array, logs: Array) -> Any:
        return likelihood(x, y, logs)

    return Program(call)


BUILDERS = {"gaussian-process": build}
"""By workload."""
