"""Initial values of weights under the names of `jax.nn.initializers`: `from graphc.nn import initializers`.

In: a key of `graphc.random`, and a shape. Out: an array, a tensor in a traced function. The fan-in is the number of
inputs of a unit: the size of the axis before the last one, times the sizes of all axes that come before it.

    initializers.glorot_normal()(graphc.random.key(0), (784, 128))      an array of 784 by 128
    initializers.zeros(key, (128,))                                     128 zeros

`graphc.layers.initial` has initial values of layers, which draw from NumPy's generators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod, sqrt
from typing import Any

import numpy as np

from graphc import numpy as jnp, random
from graphc.errors import GraphValueError

Initializer = Callable[..., Any]

__all__ = [
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

CUT = 0.87962566103423978
"""The standard deviation of normal numbers that are cut at two deviations."""


def zeros(key: Any, shape: Sequence[int], dtype: Any = float, out_sharding: Any = None) -> Any:
    """Zeros."""
    return jnp.zeros(shape, dtype)


def ones(key: Any, shape: Sequence[int], dtype: Any = float, out_sharding: Any = None) -> Any:
    """Ones."""
    return jnp.ones(shape, dtype)


def constant(value: Any, dtype: Any = float) -> Initializer:
    """Return a function of (key, shape, dtype) that gives copies of a value."""
    return lambda key, shape, dtype=dtype, out_sharding=None: jnp.full(shape, value, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = float) -> Initializer:
    """Return a function of (key, shape, dtype) that gives normal numbers.

    >>> initializers.normal(0.1)(graphc.random.key(0), (3,)).shape
    (3,)
    """
    return lambda key, shape, dtype=dtype, out_sharding=None: random.normal(key, tuple(shape), dtype) * stddev


def uniform(scale: Any = 1e-2, dtype: Any = float) -> Initializer:
    """Return a function of (key, shape, dtype) that gives numbers from 0 to below `scale`."""
    return lambda key, shape, dtype=dtype, out_sharding=None: random.uniform(key, tuple(shape), dtype) * scale


def truncated_normal(stddev: Any = 1e-2, dtype: Any = float, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Return a function of (key, shape, dtype) that gives normal numbers between `lower` and `upper` deviations; their
    deviation is smaller than `stddev`."""

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return random.truncated_normal(key, lower, upper, tuple(shape), dtype) * stddev

    return init


def _product(shape: Sequence[int], axes: int | Sequence[int]) -> int:
    return prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = float,
) -> Initializer:
    """Return a function of (key, shape, dtype) that gives numbers of mean 0 and variance scale / n. `mode` says what n
    is: "fan_in", "fan_out" or "fan_avg". `distribution` is "normal", "uniform" or "truncated_normal", which is cut at
    two deviations. Raises GraphValueError for another mode or distribution.

        >>> initializers.variance_scaling(2.0, "fan_in", "uniform")(graphc.random.key(0), (50, 20)).var().round(3)
        np.float64(0.041)
    """
    modes = {"fan_in": (1.0, 0.0), "fan_out": (0.0, 1.0), "fan_avg": (0.5, 0.5)}
    if mode not in modes or distribution not in ("normal", "truncated_normal", "uniform"):
        raise GraphValueError(
            f"variance_scaling: mode={mode!r}, distribution={distribution!r}; there are fan_in, fan_out and fan_avg, "
            "and normal, uniform and truncated_normal"
        )

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        shape = tuple(shape)
        if len(shape) < 2:
            raise GraphValueError(f"the fan-in is that of weights with two axes or more, and the shape is {shape}")
        inputs, outputs = _product(shape, in_axis), _product(shape, out_axis)
        field = prod(shape) / inputs / outputs / _product(shape, batch_axis)
        part = modes[mode]
        deviation = sqrt(scale / max(1.0, field * (part[0] * inputs + part[1] * outputs)))
        kind = np.dtype(dtype).type
        if distribution == "normal":
            return random.normal(key, shape, dtype) * kind(deviation)
        if distribution == "uniform":
            return random.uniform(key, shape, dtype, -1.0, 1.0) * kind(sqrt(3) * deviation)
        return random.truncated_normal(key, -2.0, 2.0, shape, dtype) * kind(deviation / CUT)

    return init


glorot_uniform = xavier_uniform = partial(variance_scaling, 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = partial(variance_scaling, 1.0, "fan_avg", "truncated_normal")
he_uniform = kaiming_uniform = partial(variance_scaling, 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = partial(variance_scaling, 2.0, "fan_in", "truncated_normal")
lecun_uniform = partial(variance_scaling, 1.0, "fan_in", "uniform")
lecun_normal = partial(variance_scaling, 1.0, "fan_in", "truncated_normal")


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = float) -> Initializer:
    """Return a function of (key, shape, dtype) that gives a matrix whose columns are orthogonal and of length `scale`,
    or its rows where it has fewer rows than columns; of shapes with more axes, the columns lie along `column_axis`.

        >>> q = initializers.orthogonal()(graphc.random.key(0), (3, 2))
        >>> (q.T @ q).round(6) + 0.0
        array([[1., 0.],
               [0., 1.]])
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        columns = shape[column_axis]
        rows = prod(shape) // columns
        tall = (rows, columns) if rows > columns else (columns, rows)
        q, r = jnp.linalg.qr(random.normal(key, tall, dtype))
        q = q * jnp.sign(jnp.diagonal(r))
        q = q.T if rows < columns else q
        rest = [size for axis, size in enumerate(shape) if axis != column_axis % len(shape)]
        return jnp.moveaxis(q.reshape((*rest, columns)), -1, column_axis) * np.dtype(dtype).type(scale)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = float) -> Initializer:
    """Return a function of (key, shape, dtype) that gives filters which are 0 but in the middle, where they are an
    orthogonal matrix (Xiao et al., 2018). Raises GraphValueError for a shape that has not 3 to 5 axes, or more inputs
    than outputs."""
    square = orthogonal(scale, column_axis, dtype)

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise GraphValueError(f"delta_orthogonal: 3 to 5 axes, and no more inputs than outputs, not {shape}")
        middle = square(key, (shape[-1], shape[-1]), dtype)[: shape[-2]]
        around = [((size - 1) // 2, size - 1 - (size - 1) // 2) for size in shape[:-2]]
        return jnp.pad(middle.reshape((*[1] * len(around), *shape[-2:])), [*around, (0, 0), (0, 0)])

    return init
