"""Elementwise work: exp, tanh and log1p over few and many elements, and a chain that only memory limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload


def vectors(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data(tuple(rng.normal(size=(2, *size)).astype(dtype)))


# --- exp, tanh, log1p -------------------------------------------------------------------------------------------------


def mix(xp: Any, x: Any, y: Any) -> Any:
    """Written alike for every array library `xp`."""
    return xp.exp(-(x * x)) * xp.tanh(y) + xp.log1p(y * y)


def mix_numpy(library: Any, data: Data) -> Program:
    return Program(lambda x, y: mix(np, x, y))


def mix_symbolic(library: Any, data: Data) -> Program:
    dtype = data.arguments[0].dtype.name
    x, y = (library.tensor.vector(name, dtype=dtype) for name in "xy")
    return Program(library.function([x, y], mix(library.tensor, x, y)))


def mix_jax(library: Any, data: Data) -> Program:
    return Program(library.jit(lambda x, y: mix(library.numpy, x, y)))


def mix_torch(library: Any, data: Data) -> Program:
    return Program(library.compile(lambda x, y: mix(library.torch, x, y)))


# --- multiply and add -------------------------------------------------------------------------------------------------


def chain(x: Any, y: Any) -> Any:
    """Seven operations of which no more than two inputs and an output touch memory."""
    z = 2.5 * x + y
    return (z - 0.5 * x) * 1.5 + 0.25 * y


def chain_numpy(library: Any, data: Data) -> Program:
    return Program(chain)


def chain_symbolic(library: Any, data: Data) -> Program:
    x, y = library.tensor.dvector("x"), library.tensor.dvector("y")
    return Program(library.function([x, y], chain(x, y)))


def chain_jax(library: Any, data: Data) -> Program:
    return Program(library.jit(chain))


def chain_torch(library: Any, data: Data) -> Program:
    return Program(library.compile(chain))


# --- a copy -----------------------------------------------------------------------------------------------------------


def copy_numpy(library: Any, data: Data) -> Program:
    """Into an array that is there: a fresh one would cost its first touch as well."""
    out = np.empty_like(data.arguments[0])

    def call(x: Array) -> Array:
        np.copyto(out, x)
        return out

    return Program(call)


def one_vector(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.normal(size=size),))


MIX = {"numpy": mix_numpy, "symbolic": mix_symbolic, "jax": mix_jax, "torch": mix_torch}
CHAIN = {"numpy": chain_numpy, "symbolic": chain_symbolic, "jax": chain_jax, "torch": chain_torch}

WORKLOADS = (
    *(
        Workload(
            f"elementwise-{word}-{short}",
            f"exp(-x^2) tanh(y) + log1p(y^2), {count:.0e} elements, {dtype}",
            vectors,
            (count,),
            (11,),
            MIX,
            dtype,
        )
        for word, count in (("small", 1000), ("large", 4_000_000))
        for short, dtype in (("f32", "float32"), ("f64", "float64"))
    ),
    Workload(
        "memory-chain",
        "seven multiplications and additions of two vectors of 8e6",
        vectors,
        (8_000_000,),
        (13,),
        CHAIN,
        traffic=lambda size: 3 * 8 * size[0],
    ),
    Workload(
        "copy",
        "a copy of a vector of 8e6 float64, which tells the machine's bandwidth",
        one_vector,
        (8_000_000,),
        (13,),
        {"numpy": copy_numpy},
        absent=dict.fromkeys(("symbolic", "jax", "torch"), "it measures the machine"),
        traffic=lambda size: 2 * 8 * size[0],
    ),
)
