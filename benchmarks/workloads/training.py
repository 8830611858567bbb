"""Training steps: a loss, its gradient, and updates of the parameters, which stay with the peer between calls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

RATE = 0.1

# --- one step, given the loss -----------------------------------------------------------------------------------------


def step_symbolic(
    library: Any, inputs: list[Any], loss: Callable[..., tuple[Any, ...]], state: tuple[Array, ...], dtype: str
) -> Program:
    """`loss` gives the cost first and other results after it."""
    params = library.parameters(state)
    results = loss(*params, *inputs)
    rate = np.asarray(RATE, dtype)[()]
    updates = [(p, p - rate * g) for p, g in zip(params, library.grad(results[0], params), strict=True)]
    step = library.function(inputs, list(results), updates=updates)
    return Program(step, lambda: [p.get_value() for p in params])


def step_jax(library: Any, loss: Callable[..., tuple[Any, ...]], state: tuple[Array, ...]) -> Program:
    params = [library.convert(array) for array in state]

    def cost_first(params: Any, *inputs: Any) -> Any:
        results = loss(*params, *inputs)
        return results[0], results

    def step(params: Any, *inputs: Any) -> Any:
        (_, results), gradients = library.jax.value_and_grad(cost_first, has_aux=True)(params, *inputs)
        return [p - RATE * g for p, g in zip(params, gradients, strict=True)], results

    compiled = library.jit(step, donate=(0,))

    def call(*inputs: Any) -> Any:
        nonlocal params
        params, results = compiled(params, *inputs)
        return results

    return Program(call, lambda: params)


def step_torch(library: Any, loss: Callable[..., tuple[Any, ...]], state: tuple[Array, ...]) -> Program:
    """Forward compiled, backward through it; the updates are one fused call for all parameters."""
    torch = library.torch
    params = [library.convert(array).requires_grad_() for array in state]
    compiled = library.compile(loss)

    def call(*inputs: Any) -> Any:
        results = compiled(*params, *inputs)
        gradients = torch.autograd.grad(results[0], params)
        with torch.no_grad():
            torch._foreach_add_(params, gradients, alpha=-RATE)
        return [result.detach() for result in results]

    return Program(call, lambda: [p.detach() for p in params])


# --- two sigmoid layers learn XOR -------------------------------------------------------------------------------------


def xor_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    x, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0.0, 1, 1, 0])
    return Data((x, y), (np.array([[3.0, 2], [4, 3]]), np.array([-2.0, -4]), np.array([5.0, -5]), np.array(-2.0)))


def xor_numpy(library: Any, data: Data) -> Program:
    w1, b1, w2, b2 = (array.copy() for array in data.state)

    def call(x: Array, y: Array) -> Any:
        hidden = 1 / (1 + np.exp(-(x @ w1 + b1)))
        predicted = 1 / (1 + np.exp(-(hidden @ w2 + b2)))
        error = predicted - y
        to_predicted = 2 / len(y) * error * predicted * (1 - predicted)
        to_hidden = np.outer(to_predicted, w2) * hidden * (1 - hidden)
        np.subtract(w2, RATE * (to_predicted @ hidden), out=w2)
        np.subtract(b2, RATE * to_predicted.sum(), out=b2)
        np.subtract(w1, RATE * (x.T @ to_hidden), out=w1)
        np.subtract(b1, RATE * to_hidden.sum(axis=0), out=b1)
        return (error * error).mean(), predicted

    return Program(call, lambda: (w1, b1, w2, b2))


def xor_loss(sigmoid: Any, dot: Any) -> Callable[..., tuple[Any, ...]]:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> tuple[Any, ...]:
        predicted = sigmoid(dot(sigmoid(dot(x, w1) + b1), w2) + b2)
        return ((y - predicted) ** 2).mean(), predicted

    return loss


def xor_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    return step_symbolic(library, [T.dmatrix("x"), T.dvector("y")], xor_loss(T.sigmoid, T.dot), data.state, "float64")


def xor_jax(library: Any, data: Data) -> Program:
    return step_jax(library, xor_loss(library.jax.nn.sigmoid, library.numpy.dot), data.state)


def xor_torch(library: Any, data: Data) -> Program:
    return step_torch(library, xor_loss(library.torch.sigmoid, library.torch.matmul), data.state)


# --- logistic regression ----------------------------------------------------------------------------------------------

DECAY = 0.01


def logistic_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    x = rng.normal(size=size)
    labels = np.sign(rng.normal(size=size[0]))
    return Data((x, labels), (rng.normal(size=size[1]) * 0.01, np.array(0.1)))


def logistic_numpy(library: Any, data: Data) -> Program:
    w, b = (array.copy() for array in data.state)

    def call(x: Array, y: Array) -> Any:
        margin = y * (x @ w + b)
        cost = np.logaddexp(0, -margin).mean() + DECAY * (w @ w)
        to_score = y / (1 + np.exp(margin)) / -len(y)
        np.subtract(w, RATE * (to_score @ x + 2 * DECAY * w), out=w)
        np.subtract(b, RATE * to_score.sum(), out=b)
        return (cost,)

    return Program(call, lambda: (w, b))


def logistic_loss(softplus: Any, dot: Any) -> Callable[..., tuple[Any, ...]]:
    def loss(w: Any, b: Any, x: Any, y: Any) -> tuple[Any, ...]:
        return (softplus(-y * (dot(x, w) + b)).mean() + DECAY * (w**2).sum(),)

    return loss


def logistic_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    return step_symbolic(
        library, [T.dmatrix("x"), T.dvector("y")], logistic_loss(T.softplus, T.dot), data.state, "float64"
    )


def logistic_jax(library: Any, data: Data) -> Program:
    return step_jax(library, logistic_loss(library.jax.nn.softplus, library.numpy.dot), data.state)


def logistic_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    return step_torch(library, logistic_loss(torch.nn.functional.softplus, torch.matmul), data.state)


# --- a classifier with two relu layers --------------------------------------------------------------------------------


def mlp_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: samples, then the width of each layer."""
    samples, *widths = size
    state: list[Array] = []
    for fan_in, fan_out in pairwise(widths):
        state += [rng.normal(size=(fan_in, fan_out)) * fan_in**-0.5, rng.normal(size=fan_out) * 0.1]
    x = rng.normal(size=(samples, widths[0])).astype(dtype)
    return Data((x, rng.integers(widths[-1], size=samples)), tuple(array.astype(dtype) for array in state))


def mlp_numpy(library: Any, data: Data) -> Program:
    w1, b1, w2, b2, w3, b3 = params = tuple(array.copy() for array in data.state)

    def call(x: Array, y: Array) -> Any:
        rows = np.arange(len(y))
        h1 = np.maximum(x @ w1 + b1, 0)
        h2 = np.maximum(h1 @ w2 + b2, 0)
        scores = h2 @ w3 + b3
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores)
        totals = powers.sum(axis=1, keepdims=True)
        cost = (np.log(totals[:, 0]) - scores[rows, y]).mean()
        d3 = powers / totals
        d3[rows, y] -= 1
        d3 /= len(y)
        d2 = (d3 @ w3.T) * (h2 > 0)
        d1 = (d2 @ w2.T) * (h1 > 0)
        gradients = (x.T @ d1, d1.sum(axis=0), h1.T @ d2, d2.sum(axis=0), h2.T @ d3, d3.sum(axis=0))
        for param, gradient in zip(params, gradients, strict=True):
            gradient *= RATE
            param -= gradient
        return (cost,)

    return Program(call, lambda: params)


def mlp_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> tuple[Any, ...]:
        h1 = T.maximum(T.dot(x, w1) + b1, 0)
        h2 = T.maximum(T.dot(h1, w2) + b2, 0)
        logs = library.log_softmax(T.dot(h2, w3) + b3, axis=1)
        return (-logs[T.arange(y.shape[0]), y].mean(),)

    dtype = data.state[0].dtype.name
    return step_symbolic(library, [T.matrix("x", dtype=dtype), T.lvector("y")], loss, data.state, dtype)


def mlp_jax(library: Any, data: Data) -> Program:
    jnp, nn = library.numpy, library.jax.nn

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> tuple[Any, ...]:
        scores = nn.relu(nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3
        return (-nn.log_softmax(scores)[jnp.arange(len(y)), y].mean(),)

    return step_jax(library, loss, data.state)


def mlp_torch(library: Any, data: Data) -> Program:
    relu, cross_entropy = library.torch.relu, library.torch.nn.functional.cross_entropy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> tuple[Any, ...]:
        return (cross_entropy(relu(relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3, y),)

    return step_torch(library, loss, data.state)


WORKLOADS = (
    Workload(
        "xor-step",
        "training step of two sigmoid layers on the four cases of XOR",
        xor_data,
        (),
        (),
        {"numpy": xor_numpy, "symbolic": xor_symbolic, "jax": xor_jax, "torch": xor_torch},
    ),
    Workload(
        "logistic-step",
        "training step of logistic regression, 400 x 784, float64",
        logistic_data,
        (400, 784),
        (7, 5),
        {"numpy": logistic_numpy, "symbolic": logistic_symbolic, "jax": logistic_jax, "torch": logistic_torch},
    ),
    Workload(
        "mlp-step",
        "training step of a classifier 784-256-128-10, batch 128, float32",
        mlp_data,
        (128, 784, 256, 128, 10),
        (6, 9, 7, 5, 3),
        {"numpy": mlp_numpy, "symbolic": mlp_symbolic, "jax": mlp_jax, "torch": mlp_torch},
        "float32",
    ),
)
