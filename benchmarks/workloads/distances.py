"""Distances between points: a Gaussian kernel summed over all pairs with its gradient, and a step of k-means."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- the kernel sum ---------------------------------------------------------------------------------------------------


def pairs_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: points, other points, dimensions."""
    return Data((rng.normal(size=(size[0], size[2])), rng.normal(size=(size[1], size[2]))))


def pairs_numpy(library: Any, data: Data) -> Program:
    def call(x: Array, y: Array) -> Any:
        apart = x[:, None] - y[None]
        weights = np.exp(-0.5 * np.einsum("ijk,ijk->ij", apart, apart))
        return weights.sum(), -np.einsum("ij,ijk->ik", weights, apart)

    return Program(call)


def kernel_sum(exp: Any, x: Any, y: Any) -> Any:
    return exp(-0.5 * ((x[:, None] - y[None]) ** 2).sum(2)).sum()


def pairs_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    x, y = T.dmatrix("x"), T.dmatrix("y")
    energy = T.exp(-0.5 * ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)).sum()
    return Program(library.function([x, y], [energy, library.grad(energy, x)]))


def pairs_jax(library: Any, data: Data) -> Program:
    return Program(library.jit(library.jax.value_and_grad(lambda x, y: kernel_sum(library.numpy.exp, x, y))))


def pairs_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda x, y: kernel_sum(torch.exp, x, y))

    def call(x: Any, y: Any) -> Any:
        energy = compiled(x.requires_grad_(), y)
        return energy.detach(), *torch.autograd.grad(energy, [x])

    return Program(call)


# --- k-means ----------------------------------------------------------------------------------------------------------


def clusters_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: points, centres, dimensions."""
    points, centres, dimensions = size
    middles = rng.normal(size=(centres, dimensions)) * 3
    x = middles[rng.integers(centres, size=points)] + rng.normal(size=(points, dimensions))
    return Data((x,), (x[:centres].copy(),))


def clusters_numpy(library: Any, data: Data) -> Program:
    centres = data.state[0].copy()

    def call(x: Array) -> Any:
        distances = np.square(centres).sum(axis=1) - 2 * (x @ centres.T)
        nearest = distances.argmin(axis=1)
        inertia = distances[np.arange(len(x)), nearest].sum() + np.square(x).sum()
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.stack([np.bincount(nearest, column, len(centres)) for column in x.T], axis=1)
        np.divide(sums, np.maximum(counts, 1)[:, None], out=centres)
        return (inertia,)

    return Program(call, lambda: (centres,))


def clusters_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    x, (centres,) = T.dmatrix("x"), library.parameters(data.state)
    distances = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    counts = T.inc_subtensor(T.zeros_like(centres[:, 0])[nearest], 1.0)
    sums = T.inc_subtensor(T.zeros_like(centres)[nearest], x)
    moved = sums / T.maximum(counts, 1.0)[:, None]
    step = library.function([x], [distances.min(axis=1).sum()], updates=[(centres, moved)])
    return Program(step, lambda: [centres.get_value()])


def clusters_jax(library: Any, data: Data) -> Program:
    jnp, centres = library.numpy, library.convert(data.state[0])

    def step(centres: Any, x: Any) -> Any:
        distances = ((x[:, None] - centres[None]) ** 2).sum(2)
        nearest = distances.argmin(1)
        counts = jnp.zeros(len(centres)).at[nearest].add(1.0)
        sums = jnp.zeros_like(centres).at[nearest].add(x)
        return sums / jnp.maximum(counts, 1.0)[:, None], distances.min(1).sum()

    compiled = library.jit(step, donate=(0,))

    def call(x: Any) -> Any:
        nonlocal centres
        centres, inertia = compiled(centres, x)
        return (inertia,)

    return Program(call, lambda: (centres,))


def clusters_torch(library: Any, data: Data) -> Program:
    torch, centres = library.torch, library.convert(data.state[0])

    def step(centres: Any, x: Any) -> Any:
        distances = ((x[:, None] - centres[None]) ** 2).sum(2)
        lowest, nearest = distances.min(1)
        counts = torch.bincount(nearest, minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, nearest, x)
        return sums / counts.clamp(min=1)[:, None], lowest.sum()

    compiled = library.compile(step)

    def call(x: Any) -> Any:
        nonlocal centres
        centres, inertia = compiled(centres, x)
        return (inertia,)

    return Program(call, lambda: (centres,))


WORKLOADS = (
    Workload(
        "pairwise-kernel",
        "Gaussian kernel summed over 1000 x 1000 points in 3 dimensions, with its gradient, float64",
        pairs_data,
        (1000, 1000, 3),
        (5, 4, 3),
        {"numpy": pairs_numpy, "symbolic": pairs_symbolic, "jax": pairs_jax, "torch": pairs_torch},
    ),
    Workload(
        "k-means-step",
        "a step of k-means: 20,000 points in 8 dimensions, 16 centres, float64",
        clusters_data,
        (20_000, 16, 8),
        (30, 3, 2),
        {"numpy": clusters_numpy, "symbolic": clusters_symbolic, "jax": clusters_jax, "torch": clusters_torch},
    ),
)
