"""A chain of 299 elementwise operations on a small vector, summed, with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

BLOCKS = 23
"""Of 13 operations each."""


def vector(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.normal(size=size),))


def cost(xp: Any, v: Any) -> Any:
    """Written alike for every array library `xp`."""
    for _ in range(BLOCKS):
        v = 0.9 * v + 0.2 * xp.tanh(v)
        v = v + 0.1 * xp.exp(-(v * v))
        v = v - 0.1 * xp.log1p(v * v)
    return v.sum()


def build_numpy(library: Any, data: Data) -> Program:
    def call(v: Array) -> Any:
        slopes = []
        for _ in range(BLOCKS):
            bent = np.tanh(v)
            slopes.append(0.9 + 0.2 * (1 - bent * bent))
            v = 0.9 * v + 0.2 * bent
            bell = np.exp(-(v * v))
            slopes.append(1 - 0.2 * v * bell)
            v = v + 0.1 * bell
            square = v * v
            slopes.append(1 - 0.2 * v / (1 + square))
            v = v - 0.1 * np.log1p(square)
        gradient = slopes[-1]
        for slope in reversed(slopes[:-1]):
            gradient = gradient * slope
        return v.sum(), gradient

    return Program(call)


def build_symbolic(library: Any, data: Data) -> Program:
    x = library.tensor.dvector("x")
    total = cost(library.tensor, x)
    return Program(library.function([x], [total, library.grad(total, x)]))


def build_jax(library: Any, data: Data) -> Program:
    return Program(library.jit(library.jax.value_and_grad(lambda x: cost(library.numpy, x))))


def build_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda x: cost(torch, x))

    def call(x: Any) -> Any:
        total = compiled(x.requires_grad_())
        return total.detach(), *torch.autograd.grad(total, [x])

    return Program(call)


WORKLOADS = (
    Workload(
        "deep-chain-gradient",
        "a chain of 299 operations on a vector of 100, with its gradient, float64",
        vector,
        (100,),
        (5,),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
    ),
)
