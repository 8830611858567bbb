"""One function, fifty batch sizes in turn: a call is the pass over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload


def batches(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: how many batches, the step between their sizes, features, hidden units, classes."""
    count, step, features, hidden, classes = size
    state = (
        rng.normal(size=(features, hidden)) * features**-0.5,
        rng.normal(size=hidden),
        rng.normal(size=(hidden, classes)) * hidden**-0.5,
        rng.normal(size=classes),
    )
    return Data(tuple(rng.normal(size=(step * n, features)) for n in range(1, count + 1)), state)


def in_turn(forward: Any) -> Program:
    return Program(lambda *inputs: [forward(x) for x in inputs])


def build_numpy(library: Any, data: Data) -> Program:
    w1, b1, w2, b2 = data.state

    def forward(x: Array) -> Array:
        scores = np.maximum(x @ w1 + b1, 0) @ w2 + b2
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: Array = powers / powers.sum(axis=1, keepdims=True)
        return probabilities

    return in_turn(forward)


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    x, (w1, b1, w2, b2) = T.dmatrix("x"), library.parameters(data.state)
    scores = T.dot(T.maximum(T.dot(x, w1) + b1, 0), w2) + b2
    return in_turn(library.function([x], library.softmax(scores, axis=1)))


def build_jax(library: Any, data: Data) -> Program:
    nn, (w1, b1, w2, b2) = library.jax.nn, map(library.convert, data.state)
    compiled = library.jit(lambda w1, b1, w2, b2, x: nn.softmax(nn.relu(x @ w1 + b1) @ w2 + b2))
    return in_turn(lambda x: compiled(w1, b1, w2, b2, x))


def build_torch(library: Any, data: Data) -> Program:
    torch, (w1, b1, w2, b2) = library.torch, map(library.convert, data.state)
    return in_turn(library.compile(lambda x: torch.softmax(torch.relu(x @ w1 + b1) @ w2 + b2, 1)))


WORKLOADS = (
    Workload(
        "fifty-batch-sizes",
        "forward pass of a classifier 64-128-10 at 50 batch sizes in turn, 10 to 500, float64",
        batches,
        (50, 10, 64, 128, 10),
        (3, 2, 4, 5, 3),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
    ),
)
