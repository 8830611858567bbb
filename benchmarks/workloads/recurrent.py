"""A recurrent network: an LSTM over a batch of sequences, the loss of its last state, and all gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload


def sequences(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: steps, batch, inputs, units. The parameters come first: weights of inputs, of the state, biases, those of
    the result; then sequences and targets."""
    steps, batch, width, units = size
    weights = rng.normal(size=(width, 4 * units)) * width**-0.5, rng.normal(size=(units, 4 * units)) * units**-0.5
    others = rng.normal(size=4 * units) * 0.1, rng.normal(size=units) * units**-0.5
    data = rng.normal(size=(steps, batch, width)), rng.normal(size=batch)
    return Data(tuple(array.astype(dtype) for array in (*weights, *others, *data)))


def build_numpy(library: Any, data: Data) -> Program:
    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    def call(w: Array, u: Array, b: Array, v: Array, x: Array, y: Array) -> Any:
        n, kept = u.shape[0], []
        h = c = np.zeros((x.shape[1], n), x.dtype)
        for pushed in x @ w + b:
            gates = pushed + h @ u
            i, f, o = (sigmoid(gates[:, k * n : (k + 1) * n]) for k in range(3))
            g, before = np.tanh(gates[:, 3 * n :]), (h, c)
            c = f * c + i * g
            bent = np.tanh(c)
            h = o * bent
            kept.append((*before, i, f, o, g, bent))
        error = h @ v - y
        pull = error * (2 / len(y))
        to_v, to_h, to_c, to_u = pull @ h, np.outer(pull, v), np.zeros_like(c), np.zeros_like(u)
        to_gates = np.empty((len(x), len(y), 4 * n), x.dtype)
        for t, (h, c, i, f, o, g, bent) in reversed(list(enumerate(kept))):
            to_c = to_c + to_h * o * (1 - bent * bent)
            parts = to_c * g * i * (1 - i), to_c * c * f * (1 - f), to_h * bent * o * (1 - o), to_c * i * (1 - g * g)
            to_gates[t] = np.concatenate(parts, axis=1)
            to_u += h.T @ to_gates[t]
            to_h, to_c = to_gates[t] @ u.T, to_c * f
        flat = to_gates.reshape(-1, 4 * n)
        return (error * error).mean(), x.reshape(-1, x.shape[2]).T @ flat, to_u, flat.sum(axis=0), to_v

    return Program(call)


def cell(sigmoid: Any, tanh: Any, units: int, gates: Any, c: Any) -> tuple[Any, Any]:
    """The next state, written alike for every library."""
    i, f, o = (sigmoid(gates[:, k * units : (k + 1) * units]) for k in range(3))
    c = f * c + i * tanh(gates[:, 3 * units :])
    return o * tanh(c), c


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    dtype, units = data.arguments[0].dtype.name, data.arguments[1].shape[0]
    params = w, u, b, v = [
        *(T.matrix(name, dtype=dtype) for name in "wu"),
        *(T.vector(name, dtype=dtype) for name in "bv"),
    ]
    x, y = T.tensor3("x", dtype=dtype), T.vector("y", dtype=dtype)

    def step(x: Any, h: Any, c: Any) -> Any:
        return cell(T.sigmoid, T.tanh, units, T.dot(x, w) + T.dot(h, u) + b, c)

    start = T.zeros((x.shape[1], units), dtype=dtype)
    h, _ = library.scan(step, sequences=x, outputs_info=[start, start])
    cost = ((T.dot(h[-1], v) - y) ** 2).mean()
    return Program(library.function([*params, x, y], [cost, *library.grad(cost, params)]))


def build_jax(library: Any, data: Data) -> Program:
    jnp, jax, units = library.numpy, library.jax, data.arguments[1].shape[0]

    def cost(params: Any, x: Any, y: Any) -> Any:
        w, u, b, v = params

        def step(state: Any, pushed: Any) -> Any:
            h, c = state
            return cell(jax.nn.sigmoid, jnp.tanh, units, pushed + h @ u + b, c), None

        start = jnp.zeros((x.shape[1], units), x.dtype)
        (h, _), _ = jax.lax.scan(step, (start, start), x @ w)
        return ((h @ v - y) ** 2).mean()

    def call(*inputs: Any) -> Any:
        value, gradients = jax.value_and_grad(cost)(inputs[:4], *inputs[4:])
        return value, *gradients

    return Program(library.jit(call))


def build_torch(library: Any, data: Data) -> Program:
    torch, units = library.torch, data.arguments[1].shape[0]
    step = library.compile(lambda pushed, u, h, c: cell(torch.sigmoid, torch.tanh, units, torch.addmm(pushed, h, u), c))

    def call(*inputs: Any) -> Any:
        params, (x, y) = [param.requires_grad_() for param in inputs[:4]], inputs[4:]
        w, u, b, v = params
        h = c = torch.zeros(x.shape[1], units, dtype=x.dtype)
        for pushed in x @ w + b:
            h, c = step(pushed, u, h, c)
        cost = ((h @ v - y) ** 2).mean()
        return cost.detach(), *torch.autograd.grad(cost, params)

    return Program(call)


WORKLOADS = (
    Workload(
        "lstm-gradient",
        "an LSTM of 64 units over 60 steps of 64 inputs, batch 16, its loss with all gradients, float32",
        sequences,
        (60, 16, 64, 64),
        (3, 2, 3, 4),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
        "float32",
    ),
)
