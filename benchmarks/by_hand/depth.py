"""By hand: a loop over the blocks; elements are independent, so the slope is multiplied on the way forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp, log1p, tanh
from benchmarks.workload import Array, Data, Program

BLOCKS = 23


@serial
def chain(x: Any, gradient: Any) -> Any:
    """The slope of a chain of elementwise functions is the product of their slopes, taken on the way forward."""
    total = 0.0
    v = x.copy()
    gradient[:] = 1.0
    for _ in range(BLOCKS):
        for i in range(x.size):
            bent = tanh(v[i])
            slope = 0.9 + 0.2 * (1.0 - bent * bent)
            a = 0.9 * v[i] + 0.2 * bent
            bell = exp(-(a * a))
            slope *= 1.0 - 0.2 * a * bell
            a += 0.1 * bell
            square = a * a
            slope *= 1.0 - 0.2 * a / (1.0 + square)
            v[i] = a - 0.1 * log1p(square)
            gradient[i] *= slope
    for i in range(x.size):
        total += v[i]
    return total


def build(library: Any, data: Data) -> Program:
    def call(x: Array) -> Any:
        gradient = np.empty_like(x)
        return chain(x, gradient), gradient

    return Program(call)


BUILDERS = {"deep-chain-gradient": build}
