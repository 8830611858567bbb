"""Reductions and what is fused around them: log-softmax, moments, layer norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- log-softmax and its vjp ------------------------------------------------------------------------------------------


def log_softmax_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data(tuple(rng.normal(size=(2, *size)).astype(dtype)))


def log_softmax_numpy(library: Any, data: Data) -> Program:
    def call(x: Array, g: Array) -> Any:
        shifted = x - x.max(axis=1, keepdims=True)
        powers = np.exp(shifted)
        totals = powers.sum(axis=1, keepdims=True)
        shifted -= np.log(totals)
        powers *= g.sum(axis=1, keepdims=True) / totals
        return shifted, g - powers

    return Program(call)


def log_softmax_symbolic(library: Any, data: Data) -> Program:
    dtype = data.arguments[0].dtype.name
    x, g = (library.tensor.matrix(name, dtype=dtype) for name in "xg")
    y = library.log_softmax(x, axis=1)
    return Program(library.function([x, g], [y, library.grad((y * g).sum(), x)]))


def log_softmax_jax(library: Any, data: Data) -> Program:
    def call(x: Any, g: Any) -> Any:
        y, pull_back = library.jax.vjp(library.jax.nn.log_softmax, x)
        return y, *pull_back(g)

    return Program(library.jit(call))


def log_softmax_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda x: torch.log_softmax(x, 1))

    def call(x: Any, g: Any) -> Any:
        y = compiled(x.requires_grad_())
        return y.detach(), *torch.autograd.grad(y, [x], g)

    return Program(call)


# --- mean and variance ------------------------------------------------------------------------------------------------


def moments_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.normal(size=size) + 3.0,))


def moments_numpy(axis: int) -> Any:
    return lambda library, data: Program(lambda x: (x.mean(axis=axis), x.var(axis=axis)))


def moments_symbolic(axis: int) -> Any:
    def build(library: Any, data: Data) -> Program:
        x = library.tensor.dmatrix("x")
        return Program(library.function([x], [x.mean(axis=axis), x.var(axis=axis)]))

    return build


def moments_jax(axis: int) -> Any:
    return lambda library, data: Program(library.jit(lambda x: (x.mean(axis=axis), x.var(axis=axis))))


def moments_torch(axis: int) -> Any:
    def build(library: Any, data: Data) -> Program:
        return Program(library.compile(lambda x: (x.mean(axis), x.var(axis, correction=0))))

    return build


# --- layer norm and its gradient --------------------------------------------------------------------------------------

EPSILON = 1e-5


def layer_norm_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    arrays = [rng.normal(size=size), rng.normal(size=size[1]), rng.normal(size=size[1]), rng.normal(size=size)]
    return Data(tuple(array.astype(dtype) for array in arrays))


def layer_norm_numpy(library: Any, data: Data) -> Program:
    def call(x: Array, scale: Array, shift: Array, g: Array) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        inverse = 1 / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + x.dtype.type(EPSILON))
        normal = centred * inverse
        scaled = g * scale
        drift, pull = scaled.mean(axis=1, keepdims=True), (scaled * normal).mean(axis=1, keepdims=True)
        return normal * scale + shift, (scaled - drift - normal * pull) * inverse, (g * normal).sum(0), g.sum(0)

    return Program(call)


def layer_norm_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    dtype = data.arguments[0].dtype.name
    x, g = T.matrix("x", dtype=dtype), T.matrix("g", dtype=dtype)
    scale, shift = T.vector("scale", dtype=dtype), T.vector("shift", dtype=dtype)
    centred = x - x.mean(axis=1, keepdims=True)
    y = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + np.asarray(EPSILON, dtype)[()]) * scale + shift
    return Program(library.function([x, scale, shift, g], [y, *library.grad((y * g).sum(), [x, scale, shift])]))


def layer_norm_jax(library: Any, data: Data) -> Program:
    jnp = library.numpy

    def forward(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / jnp.sqrt(jnp.square(centred).mean(axis=1, keepdims=True) + EPSILON) * scale + shift

    def call(x: Any, scale: Any, shift: Any, g: Any) -> Any:
        y, pull_back = library.jax.vjp(forward, x, scale, shift)
        return y, *pull_back(g)

    return Program(library.jit(call))


def layer_norm_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    norm = torch.nn.functional.layer_norm
    compiled = library.compile(lambda x, scale, shift: norm(x, x.shape[1:], scale, shift, EPSILON))

    def call(x: Any, scale: Any, shift: Any, g: Any) -> Any:
        inputs = [x.requires_grad_(), scale.requires_grad_(), shift.requires_grad_()]
        y = compiled(*inputs)
        return y.detach(), *torch.autograd.grad(y, inputs, g)

    return Program(call)


WORKLOADS = (
    Workload(
        "log-softmax-vjp",
        "log-softmax of 4096 rows of 1000 and its vjp, float32",
        log_softmax_data,
        (4096, 1000),
        (3, 7),
        {
            "numpy": log_softmax_numpy,
            "symbolic": log_softmax_symbolic,
            "jax": log_softmax_jax,
            "torch": log_softmax_torch,
        },
        "float32",
        traffic=lambda size: 4 * 4 * size[0] * size[1],
    ),
    *(
        Workload(
            f"moments-axis{axis}",
            f"mean and variance of 2048 x 2048 over axis {axis}, float64",
            moments_data,
            (2048, 2048),
            (5, 9),
            {
                "numpy": moments_numpy(axis),
                "symbolic": moments_symbolic(axis),
                "jax": moments_jax(axis),
                "torch": moments_torch(axis),
            },
            traffic=lambda size: 8 * size[0] * size[1],
        )
        for axis in (0, 1)
    ),
    Workload(
        "layer-norm-gradient",
        "layer norm of 2048 rows of 512 with the gradients of all three inputs, float32",
        layer_norm_data,
        (2048, 512),
        (3, 8),
        {"numpy": layer_norm_numpy, "symbolic": layer_norm_symbolic, "jax": layer_norm_jax, "torch": layer_norm_torch},
        "float32",
        traffic=lambda size: 4 * 4 * size[0] * size[1],
    ),
)
