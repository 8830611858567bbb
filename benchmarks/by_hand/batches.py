"""By hand: BLAS for the products, loops for the rest; one compilation for all batch sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp
from benchmarks.workload import Array, Data, Program


@serial
def finish(hidden: Any, b: Any) -> None:
    for i in range(hidden.shape[0]):
        for j in range(hidden.shape[1]):
            value = hidden[i, j] + b[j]
            hidden[i, j] = value if value > 0.0 else 0.0


@serial
def classify(scores: Any, b: Any) -> None:
    for i in range(scores.shape[0]):
        highest = scores[i, 0] + b[0]
        for j in range(b.size):
            scores[i, j] += b[j]
            highest = scores[i, j] if scores[i, j] > highest else highest
        total = 0.0
        for j in range(b.size):
            scores[i, j] = exp(scores[i, j] - highest)
            total += scores[i, j]
        for j in range(b.size):
            scores[i, j] /= total


@serial
def forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = np.dot(x, w1)
    finish(hidden, b1)
    scores = np.dot(hidden, w2)
    classify(scores, b2)
    return scores


def build(library: Any, data: Data) -> Program:
    def call(*inputs: Array) -> Any:
        return [forward(x, *data.state) for x in inputs]

    return Program(call)


BUILDERS = {"fifty-batch-sizes": build}
