"""Images: a convolution, and a training step of LeNet (two convolutions, each pooled, and two dense layers)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.workload import Array, Data, Program, Size, Workload
from benchmarks.workloads.training import RATE, step_jax, step_symbolic, step_torch

ABSENT = {"numba": "its kernels would be the library's"}

# --- a convolution ----------------------------------------------------------------------------------------------------


def images_and_kernels(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    images, channels, side = size
    x, w = rng.normal(size=(images, channels, side, side)), rng.normal(size=(channels, channels, 3, 3))
    return Data((x.astype(dtype), w.astype(dtype)))


def correlate(x: Array, w: Array) -> Array:
    """Every place where a kernel lies within an image."""
    windows = sliding_window_view(x, w.shape[2:], (2, 3))
    return np.ascontiguousarray(np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2))


def padded(x: Array, before: int) -> Array:
    return np.pad(x, ((0, 0), (0, 0), (before, before), (before, before)))


def conv_numpy(library: Any, data: Data) -> Program:
    return Program(lambda x, w: correlate(padded(x, 1), w))


def conv_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    x, w = (T.tensor4(name, dtype=data.arguments[0].dtype.name) for name in "xw")
    return Program(library.function([x, w], library.conv2d(x, w, 3, 1)))


def conv_jax(library: Any, data: Data) -> Program:
    convolve = library.jax.lax.conv_general_dilated
    return Program(library.jit(lambda x, w: convolve(x, w, (1, 1), "SAME")))


def conv_torch(library: Any, data: Data) -> Program:
    return Program(library.compile(lambda x, w: library.torch.nn.functional.conv2d(x, w, padding=1)))


# --- LeNet ------------------------------------------------------------------------------------------------------------


def lenet_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    images, side, one, two, hidden = size
    inner = ((side - 4) // 2 - 4) // 2
    shapes = [
        (one, 1, 5, 5),
        (one,),
        (two, one, 5, 5),
        (two,),
        (two * inner**2, hidden),
        (hidden,),
        (hidden, 10),
        (10,),
    ]
    state = [(rng.normal(size=shape) * np.prod(shape[1:] or shape) ** -0.5).astype(dtype) for shape in shapes]
    x, y = rng.normal(size=(images, 1, side, side)).astype(dtype), rng.integers(0, 10, images)
    return Data((x, y), tuple(state))


def pool(x: Array) -> tuple[Array, Array]:
    """The largest of each four neighbours, and which one that is."""
    n, c, h, w = x.shape
    four = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return four.max(4), four.argmax(4)


def unpool(g: Array, places: Array) -> Array:
    n, c, h, w = g.shape
    four = np.zeros((*g.shape, 4), g.dtype)
    np.put_along_axis(four, places[..., None], g[..., None], 4)
    return four.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def lenet_numpy(library: Any, data: Data) -> Program:
    params = [array.copy() for array in data.state]

    def call(x: Array, y: Array) -> Any:
        w1, b1, w2, b2, w3, b3, w4, b4 = params
        one, places_one = pool(correlate(x, w1))
        one = np.maximum(one + b1[:, None, None], 0)
        two, places_two = pool(correlate(one, w2))
        two = np.maximum(two + b2[:, None, None], 0)
        flat = two.reshape(len(x), -1)
        hidden = np.maximum(flat @ w3 + b3, 0)
        scores = hidden @ w4 + b4
        scores -= scores.max(1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        rows = np.arange(len(y))
        to_scores = np.exp(logs)
        to_scores[rows, y] -= 1
        to_scores /= len(y)
        to_hidden = to_scores @ w4.T * (hidden > 0)
        to_two = (to_hidden @ w3.T).reshape(two.shape) * (two > 0)
        wide_two = unpool(to_two, places_two)
        to_one = correlate(padded(wide_two, 4), w2[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)) * (one > 0)
        wide_one = unpool(to_one, places_one)
        gradients = [
            *(by_kernels(x, wide_one), to_one.sum((0, 2, 3)), by_kernels(one, wide_two), to_two.sum((0, 2, 3))),
            *(flat.T @ to_hidden, to_hidden.sum(0), hidden.T @ to_scores, to_scores.sum(0)),
        ]
        for number, gradient in enumerate(gradients):
            params[number] = params[number] - RATE * gradient
        return -logs[rows, y].mean()

    return Program(call, lambda: params)


def by_kernels(x: Array, g: Array) -> Array:
    return correlate(x.transpose(1, 0, 2, 3), g.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)


def lenet_loss(
    convolve: Callable[..., Any], relu: Callable[..., Any], largest: Callable[..., Any], cost: Callable[..., Any]
) -> Callable[..., tuple[Any, ...]]:
    """largest: of the last axis but two and the last one of six. cost: of scores and classes."""

    def pooled(h: Any, shape: tuple[int, ...], b: Any) -> Any:
        n, c, rows, columns = shape
        four = largest(h.reshape((n, c, rows // 2, 2, columns // 2, 2)))
        return relu(four + b.reshape((1, c, 1, 1)))

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any, x: Any, y: Any) -> tuple[Any, ...]:
        n, side = x.shape[0], x.shape[2]
        one = pooled(convolve(x, w1), (n, w1.shape[0], side - 4, side - 4), b1)
        inner = (side - 4) // 2 - 4
        two = pooled(convolve(one, w2), (n, w2.shape[0], inner, inner), b2)
        hidden = relu(two.reshape((n, w3.shape[0])) @ w3 + b3)
        return (cost(hidden @ w4 + b4, y),)

    return loss


def lenet_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    dtype = data.state[0].dtype.name

    def cost(scores: Any, y: Any) -> Any:
        return -library.log_softmax(scores, axis=1)[T.arange(y.shape[0]), y].mean()

    def convolve(x: Any, w: Any) -> Any:
        return library.conv2d(x, w, 5)

    inputs = [T.tensor4("x", dtype=dtype), T.lvector("y")]
    loss = lenet_loss(convolve, lambda x: T.maximum(x, 0), lambda x: x.max(axis=(3, 5)), cost)
    return step_symbolic(library, inputs, loss, data.state, dtype)


def lenet_jax(library: Any, data: Data) -> Program:
    jax, np_ = library.jax, library.numpy

    def cost(scores: Any, y: Any) -> Any:
        return -jax.nn.log_softmax(scores)[np_.arange(len(y)), y].mean()

    def convolve(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID")

    return step_jax(library, lenet_loss(convolve, jax.nn.relu, lambda x: x.max(axis=(3, 5)), cost), data.state)


def lenet_torch(library: Any, data: Data) -> Program:
    """With its own pooling."""
    functional = library.torch.nn.functional

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any, x: Any, y: Any) -> tuple[Any, ...]:
        one = functional.relu(functional.max_pool2d(functional.conv2d(x, w1, b1), 2))
        two = functional.relu(functional.max_pool2d(functional.conv2d(one, w2, b2), 2))
        hidden = functional.relu(two.flatten(1) @ w3 + b3)
        return (functional.cross_entropy(hidden @ w4 + b4, y),)

    return step_torch(library, loss, data.state)


WORKLOADS = (
    Workload(
        "images-convolution",
        "a convolution of 16 images of 56 x 56 by 3 x 3, 64 to 64 channels, float32",
        images_and_kernels,
        (16, 64, 56),
        (2, 3, 8),
        {"numpy": conv_numpy, "symbolic": conv_symbolic, "jax": conv_jax, "torch": conv_torch},
        "float32",
        ABSENT,
        flops=lambda size: 2 * size[0] * size[1] ** 2 * size[2] ** 2 * 9,
    ),
    Workload(
        "images-lenet",
        "a training step of LeNet on 64 digits of 28 x 28, float32",
        lenet_data,
        (64, 28, 20, 50, 500),
        (4, 16, 3, 5, 12),
        {"numpy": lenet_numpy, "symbolic": lenet_symbolic, "jax": lenet_jax, "torch": lenet_torch},
        "float32",
        ABSENT,
    ),
)
