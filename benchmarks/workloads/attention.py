"""Attention of 8 heads: softmax(q k' / sqrt(d)) v with the gradients of all three inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload


def heads(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data(tuple(rng.normal(size=(4, *size)).astype(dtype)))


def build_numpy(library: Any, data: Data) -> Program:
    def call(q: Array, k: Array, v: Array, g: Array) -> Any:
        factor = q.dtype.type(q.shape[2] ** -0.5)
        scores = q @ k.transpose(0, 2, 1)
        scores *= factor
        scores -= scores.max(axis=2, keepdims=True)
        weights = np.exp(scores, out=scores)
        weights /= weights.sum(axis=2, keepdims=True)
        to_weights = g @ v.transpose(0, 2, 1)
        to_scores = weights * (to_weights - (to_weights * weights).sum(axis=2, keepdims=True))
        to_scores *= factor
        to_v = weights.transpose(0, 2, 1) @ g
        return weights @ v, to_scores @ k, to_scores.transpose(0, 2, 1) @ q, to_v

    return Program(call)


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    dtype = data.arguments[0].dtype.name
    q, k, v, g = (T.tensor3(name, dtype=dtype) for name in "qkvg")
    factor = np.asarray(data.arguments[0].shape[2] ** -0.5, dtype)[()]
    weights = library.softmax(T.matmul(q, k.transpose(0, 2, 1)) * factor, axis=2)
    out = T.matmul(weights, v)
    return Program(library.function([q, k, v, g], [out, *library.grad((out * g).sum(), [q, k, v])]))


def build_jax(library: Any, data: Data) -> Program:
    softmax = library.jax.nn.softmax

    def forward(q: Any, k: Any, v: Any) -> Any:
        return softmax(q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5) @ v

    def call(q: Any, k: Any, v: Any, g: Any) -> Any:
        out, pull_back = library.jax.vjp(forward, q, k, v)
        return out, *pull_back(g)

    return Program(library.jit(call))


def build_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda q, k, v: torch.softmax(q @ k.transpose(1, 2) * q.shape[2] ** -0.5, 2) @ v)

    def call(q: Any, k: Any, v: Any, g: Any) -> Any:
        inputs = [x.requires_grad_() for x in (q, k, v)]
        out = compiled(*inputs)
        return out.detach(), *torch.autograd.grad(out, inputs, g)

    return Program(call)


WORKLOADS = (
    Workload(
        "attention-gradient",
        "attention of 8 heads, 128 x 64, with the gradients of its three inputs, float32",
        heads,
        (8, 128, 64),
        (2, 5, 4),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
        "float32",
    ),
)
