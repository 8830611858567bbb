"""By hand: training steps, forward, backward and update in one function over the parameters' own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp, exp32, log1p, sigmoid
from benchmarks.workload import Array, Data, Program

RATE = 0.1
DECAY = 0.01
RATE32 = np.float32(RATE)
ZERO32 = np.float32(0)

# --- XOR --------------------------------------------------------------------------------------------------------------


@serial
def xor_step(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any, work: Any) -> Any:
    """`work`: two hidden values, then the gradients of w1, b1, w2."""
    predicted = np.empty_like(y)
    work[1:] = 0.0
    cost = 0.0
    to_b2 = 0.0
    for i in range(y.size):
        score = b2[()]
        for j in range(2):
            work[0, j] = sigmoid(x[i, 0] * w1[0, j] + x[i, 1] * w1[1, j] + b1[j])
            score += work[0, j] * w2[j]
        p = sigmoid(score)
        predicted[i] = p
        cost += (p - y[i]) ** 2
        to_score = 2.0 / y.size * (p - y[i]) * p * (1.0 - p)
        to_b2 += to_score
        for j in range(2):
            h = work[0, j]
            to_hidden = to_score * w2[j] * h * (1.0 - h)
            work[1, j] += x[i, 0] * to_hidden
            work[2, j] += x[i, 1] * to_hidden
            work[3, j] += to_hidden
            work[4, j] += to_score * h
    for j in range(2):
        w1[0, j] -= RATE * work[1, j]
        w1[1, j] -= RATE * work[2, j]
        b1[j] -= RATE * work[3, j]
        w2[j] -= RATE * work[4, j]
    b2[()] -= RATE * to_b2
    return cost / y.size, predicted


def build_xor(library: Any, data: Data) -> Program:
    state = tuple(array.copy() for array in data.state)
    work = np.empty((5, 2))
    return Program(lambda x, y: xor_step(x, y, *state, work), lambda: state)


# --- logistic regression ----------------------------------------------------------------------------------------------


@serial
def logistic_step(x: Any, y: Any, w: Any, b: Any, to_w: Any) -> Any:
    """A row of `x` is read for its score and, still in cache, for the gradient."""
    n, features = x.shape
    cost = 0.0
    to_b = 0.0
    to_w[:] = 0.0
    for i in range(n):
        score = 0.0
        for j in range(features):
            score += x[i, j] * w[j]
        margin = y[i] * (score + b[()])
        power = exp(-abs(margin))
        cost += log1p(power) + max(-margin, 0.0)
        pull = -y[i] / n * ((power if margin > 0.0 else 1.0) / (1.0 + power))
        to_b += pull
        for j in range(features):
            to_w[j] += pull * x[i, j]
    square = 0.0
    for j in range(features):
        square += w[j] * w[j]
        w[j] -= RATE * (to_w[j] + 2.0 * DECAY * w[j])
    b[()] -= RATE * to_b
    return cost / n + DECAY * square


def build_logistic(library: Any, data: Data) -> Program:
    w, b = (array.copy() for array in data.state)
    to_w = np.empty_like(w)

    def call(x: Array, y: Array) -> Any:
        return (logistic_step(x, y, w, b, to_w),)

    return Program(call, lambda: (w, b))


# --- the classifier ---------------------------------------------------------------------------------------------------


@serial
def add_and_rectify(h: Any, b: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            value = h[i, j] + b[j]
            h[i, j] = value if value > ZERO32 else ZERO32


@serial
def mask_and_sum(d: Any, h: Any, b: Any) -> None:
    """The gradient behind a relu, in place, and its bias moved against the sum over the batch."""
    total = np.zeros_like(b)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            value = d[i, j] if h[i, j] > ZERO32 else ZERO32
            d[i, j] = value
            total[j] += value
    for j in range(b.size):
        b[j] -= RATE32 * total[j]


@serial
def move(w: Any, gradient: Any) -> None:
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            w[i, j] -= RATE32 * gradient[i, j]


@serial
def classify(scores: Any, b: Any, y: Any) -> Any:
    """The cost; `scores` becomes its gradient and `b` is moved."""
    n, classes = scores.shape
    cost = 0.0
    total = np.zeros_like(b)
    scale = np.float32(1.0 / n)
    for i in range(n):
        highest = scores[i, 0] + b[0]
        for j in range(classes):
            scores[i, j] += b[j]
            highest = max(highest, scores[i, j])
        right = scores[i, y[i]] - highest
        power = ZERO32
        for j in range(classes):
            scores[i, j] = exp32(scores[i, j] - highest)
            power += scores[i, j]
        cost += np.log(power) - right
        for j in range(classes):
            scores[i, j] = scale * (scores[i, j] / power - np.float32(j == y[i]))
            total[j] += scores[i, j]
    for j in range(classes):
        b[j] -= RATE32 * total[j]
    return cost / n


@serial
def mlp_step(x: Any, y: Any, state: Any, hidden: Any, gradients: Any) -> Any:
    """`hidden` and `gradients`: buffers for the layers' values and their gradients, and for the weights' gradients."""
    w1, b1, w2, b2, w3, b3 = state
    h1, h2, scores, d1, d2 = hidden
    g1, g2, g3 = gradients
    np.dot(x, w1, h1)
    add_and_rectify(h1, b1)
    np.dot(h1, w2, h2)
    add_and_rectify(h2, b2)
    np.dot(h2, w3, scores)
    cost = classify(scores, b3, y)
    np.dot(scores, w3.T, d2)
    np.dot(h2.T, scores, g3)
    move(w3, g3)
    mask_and_sum(d2, h2, b2)
    np.dot(d2, w2.T, d1)
    np.dot(h1.T, d2, g2)
    move(w2, g2)
    mask_and_sum(d1, h1, b1)
    np.dot(x.T, d1, g1)
    move(w1, g1)
    return cost


def build_mlp(library: Any, data: Data) -> Program:
    state = tuple(array.copy() for array in data.state)
    n, widths = len(data.arguments[0]), [bias.size for bias in state[1::2]]
    hidden = tuple(np.empty((n, width), "float32") for width in (*widths, *widths[:2]))
    gradients = tuple(np.empty_like(weights) for weights in state[::2])

    def call(x: Array, y: Array) -> Any:
        return (mlp_step(x, y, state, hidden, gradients),)

    return Program(call, lambda: state)


BUILDERS = {"xor-step": build_xor, "logistic-step": build_logistic, "mlp-step": build_mlp}
