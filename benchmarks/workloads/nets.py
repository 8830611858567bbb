"""Nets: pooling of overlapping windows and normalisation of batches of images, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.workload import Array, Data, Program, Size, Workload
from benchmarks.workloads.images import ABSENT

EPSILON = 1e-5


def images(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """No two numbers are equal: of equal maxima each library gives another the gradient."""
    count = int(np.prod(size))
    return Data(((rng.permutation(count).reshape(size) / count - 0.5).astype(dtype),))


def gradient_torch(library: Any, loss: Any) -> Program:
    """The gradients of a loss, and nothing else."""
    compiled = library.compile(loss)

    def call(*arrays: Any) -> Any:
        leaves = [array.requires_grad_() for array in arrays]
        return library.torch.autograd.grad(compiled(*leaves), leaves)

    return Program(call)


# --- pooling: windows of 3 x 3, 2 apart, within a border of 1 ---------------------------------------------------------


def pooling_numpy(library: Any, data: Data) -> Program:
    def call(x: Array) -> Array:
        wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        windows = sliding_window_view(wide, (3, 3), (2, 3))[:, :, ::2, ::2]
        found = windows.max((4, 5))
        gradient = np.zeros_like(wide)
        rows, columns = (2 * size - 1 for size in found.shape[2:])
        for i, j in np.ndindex(3, 3):
            part = gradient[:, :, i : i + rows : 2, j : j + columns : 2]
            part += (windows[..., i, j] == found) * 2 * found
        return gradient[:, :, 1:-1, 1:-1]

    return Program(call)


def pooling_symbolic(library: Any, data: Data) -> Program:
    x = library.tensor.tensor4("x", dtype=data.arguments[0].dtype.name)
    return Program(library.function([x], library.grad((library.max_pool(x) ** 2).sum(), x)))


def pooling_jax(library: Any, data: Data) -> Program:
    jax, np_ = library.jax, library.numpy

    def loss(x: Any) -> Any:
        around = ((0, 0), (0, 0), (1, 1), (1, 1))
        return (jax.lax.reduce_window(x, -np_.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), around) ** 2).sum()

    return Program(library.jit(jax.grad(loss)))


def pooling_torch(library: Any, data: Data) -> Program:
    return gradient_torch(library, lambda x: (library.torch.nn.functional.max_pool2d(x, 3, 2, 1) ** 2).sum())


# --- batch normalisation ----------------------------------------------------------------------------------------------


def batch_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    channels = size[1]
    arrays = rng.normal(size=size) * 2 + 1, rng.normal(size=channels), rng.normal(size=channels), rng.normal(size=size)
    return Data(tuple(array.astype(dtype) for array in arrays))


def batch_numpy(library: Any, data: Data) -> Program:
    def call(x: Array, gamma: Array, beta: Array, g: Array) -> Any:
        axes, count = (0, 2, 3), x.size // x.shape[1]
        centred = x - x.mean(axes, keepdims=True)
        inverse = 1 / np.sqrt((centred**2).mean(axes, keepdims=True) + EPSILON)
        normal = centred * inverse
        by_gamma, by_beta = (g * normal).sum(axes), g.sum(axes)
        means = (total[:, None, None] / count for total in (by_beta, by_gamma))
        by_x = gamma[:, None, None] * inverse * (g - next(means) - normal * next(means))
        return by_x, by_gamma, by_beta

    return Program(call)


def batch_loss(mean: Any, sqrt: Any) -> Any:
    def loss(x: Any, gamma: Any, beta: Any, g: Any) -> Any:
        centred = x - mean(x)
        normal = centred / sqrt(mean(centred * centred) + EPSILON)
        return ((normal * gamma.reshape((1, -1, 1, 1)) + beta.reshape((1, -1, 1, 1))) * g).sum()

    return loss


def batch_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    dtype = data.arguments[0].dtype.name
    x, g = (T.tensor4(name, dtype=dtype) for name in "xg")
    gamma, beta = (T.vector(name, dtype=dtype) for name in ("gamma", "beta"))
    loss = batch_loss(lambda x: x.mean(axis=(0, 2, 3), keepdims=True), T.sqrt)(x, gamma, beta, g)
    return Program(library.function([x, gamma, beta, g], library.grad(loss, [x, gamma, beta])))


def batch_jax(library: Any, data: Data) -> Program:
    loss = batch_loss(lambda x: x.mean(axis=(0, 2, 3), keepdims=True), library.numpy.sqrt)
    return Program(library.jit(library.jax.grad(loss, (0, 1, 2))))


def batch_torch(library: Any, data: Data) -> Program:
    """With its own normalisation."""
    torch = library.torch

    def loss(x: Any, gamma: Any, beta: Any, g: Any) -> Any:
        return (torch.nn.functional.batch_norm(x, None, None, gamma, beta, True, 0.1, EPSILON) * g).sum()

    compiled = library.compile(loss)

    def call(x: Any, gamma: Any, beta: Any, g: Any) -> Any:
        leaves = [array.requires_grad_() for array in (x, gamma, beta)]
        return torch.autograd.grad(compiled(*leaves, g), leaves)

    return Program(call)


WORKLOADS = (
    Workload(
        "pooling-gradient",
        "the gradient of the maxima of windows of 3 x 3, 2 apart, of 32 x 32 images of 56 x 56, float32",
        images,
        (32, 32, 56, 56),
        (2, 3, 7, 8),
        {"numpy": pooling_numpy, "symbolic": pooling_symbolic, "jax": pooling_jax, "torch": pooling_torch},
        "float32",
        ABSENT,
        traffic=lambda size: 8 * int(np.prod(size)),
    ),
    Workload(
        "batch-norm-gradient",
        "the gradients of a batch normalisation of 32 x 64 images of 28 x 28, float32",
        batch_data,
        (32, 64, 28, 28),
        (3, 2, 4, 5),
        {"numpy": batch_numpy, "symbolic": batch_symbolic, "jax": batch_jax, "torch": batch_torch},
        "float32",
        ABSENT,
        traffic=lambda size: 12 * int(np.prod(size)),
    ),
)
