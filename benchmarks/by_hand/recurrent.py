"""By hand: what depends on the inputs alone is one product over all steps, and so are the gradients of the weights;
inside the loop one product by BLAS and one pass over the gates, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp32, tanh32
from benchmarks.workload import Array, Data, Program

ZERO32, HALF32, ONE32 = np.float32(0), np.float32(0.5), np.float32(1)


@serial
def forward(gates: Any, pushed: Any, h: Any, c: Any, new_h: Any, new_c: Any) -> None:
    """`gates` becomes what the four gates let through, row by row."""
    n = h.shape[1]
    for row in range(h.shape[0]):
        for j in range(3 * n):
            gates[row, j] = ONE32 / (ONE32 + exp32(-(gates[row, j] + pushed[row, j])))
        for j in range(n):
            g = tanh32(gates[row, 3 * n + j] + pushed[row, 3 * n + j])
            gates[row, 3 * n + j] = g
            kept = gates[row, n + j] * c[row, j] + gates[row, j] * g
            new_c[row, j] = kept
            new_h[row, j] = gates[row, 2 * n + j] * tanh32(kept)


@serial
def backward(gates: Any, c: Any, new_c: Any, to_h: Any, to_c: Any) -> None:
    """`gates` becomes its gradient, `to_c` that of the state before."""
    n = c.shape[1]
    for row in range(c.shape[0]):
        for j in range(n):
            i, f, o, g = gates[row, j], gates[row, n + j], gates[row, 2 * n + j], gates[row, 3 * n + j]
            bent = tanh32(new_c[row, j])
            pull = to_c[row, j] + to_h[row, j] * o * (ONE32 - bent * bent)
            to_c[row, j] = pull * f
            gates[row, j] = pull * g * i * (ONE32 - i)
            gates[row, n + j] = pull * c[row, j] * f * (ONE32 - f)
            gates[row, 2 * n + j] = to_h[row, j] * bent * o * (ONE32 - o)
            gates[row, 3 * n + j] = pull * i * (ONE32 - g * g)


@serial
def lstm(w: Any, u: Any, b: Any, v: Any, x: Any, y: Any, work: Any) -> Any:
    """`work`: products of inputs and gates, hidden and cell states with those before the first step, and buffers for
    the gradients."""
    pushed, gates, h, c, to_h, to_c, to_w, to_u = work
    steps, batch, width = x.shape
    wide = b.size
    flat = x.reshape(steps * batch, width)
    np.dot(flat, w, pushed)
    for row in range(steps * batch):
        for j in range(wide):
            pushed[row, j] += b[j]
    for t in range(steps):
        here, there = slice(t * batch, (t + 1) * batch), slice((t + 1) * batch, (t + 2) * batch)
        np.dot(h[here], u, gates[here])
        forward(gates[here], pushed[here], h[here], c[here], h[there], c[there])
    last = h[steps * batch :]
    error = np.dot(last, v) - y
    cost = ZERO32
    to_v = np.zeros_like(v)
    for row in range(batch):
        cost += error[row] * error[row]
        pull = error[row] * np.float32(2.0 / batch)
        for j in range(v.size):
            to_v[j] += pull * last[row, j]
            to_h[row, j] = pull * v[j]
            to_c[row, j] = ZERO32
    for back in range(steps):
        t = steps - 1 - back
        here, there = slice(t * batch, (t + 1) * batch), slice((t + 1) * batch, (t + 2) * batch)
        backward(gates[here], c[here], c[there], to_h, to_c)
        np.dot(gates[here], u.T, to_h)
    np.dot(flat.T, gates, to_w)
    np.dot(h[: steps * batch].T, gates, to_u)
    to_b = np.zeros_like(b)
    for row in range(steps * batch):
        for j in range(wide):
            to_b[j] += gates[row, j]
    return cost / np.float32(batch), to_w, to_u, to_b, to_v


def build(library: Any, data: Data) -> Program:
    w, u, *_, x, _ = data.arguments
    (steps, batch, _), units = x.shape, len(u)
    rows = steps * batch
    shapes = [(rows, 4 * units)] * 2 + [(rows + batch, units)] * 2 + [(batch, units)] * 2

    def call(*arguments: Array) -> Any:
        return lstm(*arguments, (*work, np.empty_like(w), np.empty_like(u)))

    work = tuple(np.zeros(shape, "float32") for shape in shapes)
    return Program(call)


BUILDERS = {"lstm-gradient": build}
