"""What a call costs: almost no work, with NumPy's arrays in and out for every peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Builder, Data, Program, Size, Workload

# --- a scalar in, a scalar out ----------------------------------------------------------------------------------------


def scalar_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((np.array(rng.normal(), dtype),))


def scalar_numpy(library: Any, data: Data) -> Program:
    return Program(lambda x: np.asarray(x * 2.0 + 1.0))


def scalar_symbolic(library: Any, data: Data) -> Program:
    x = library.tensor.dscalar("x")
    return Program(library.function([x], x * 2.0 + 1.0))


def scalar_jax(library: Any, data: Data) -> Program:
    compiled = library.jax.jit(lambda x: x * 2.0 + 1.0)
    return Program(lambda x: np.asarray(compiled(x)))


def scalar_torch(library: Any, data: Data) -> Program:
    compiled, convert = library.compile(lambda x: x * 2.0 + 1.0), library.torch.from_numpy
    return Program(lambda x: compiled(convert(x)).numpy())


# --- two vectors: np.add itself; three vectors ------------------------------------------------------------------------


def few_data(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: how many vectors, and their length."""
    return Data(tuple(rng.normal(size=size).astype(dtype)))


def add(a: Any, b: Any) -> Any:
    return a + b


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def add_numpy(library: Any, data: Data) -> Program:
    return Program(np.add)


# --- eight vectors in, one out ----------------------------------------------------------------------------------------


def combine(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    return a * b + c * d + e * f + g * h


# --- any of them ------------------------------------------------------------------------------------------------------


def of_vectors(formula: Callable[..., Any]) -> dict[str, Builder]:
    """Builders of a function of vectors."""

    def symbolic(library: Any, data: Data) -> Program:
        inputs = [library.tensor.dvector(name) for name in "abcdefgh"[: len(data.arguments)]]
        return Program(library.function(inputs, formula(*inputs)))

    def jax(library: Any, data: Data) -> Program:
        compiled = library.jax.jit(formula)
        return Program(lambda *inputs: np.asarray(compiled(*inputs)))

    def torch(library: Any, data: Data) -> Program:
        compiled, convert = library.compile(formula), library.torch.from_numpy
        return Program(lambda *inputs: compiled(*[convert(x) for x in inputs]).numpy())

    return {"numpy": lambda library, data: Program(formula), "symbolic": symbolic, "jax": jax, "torch": torch}


WORKLOADS = (
    Workload(
        "overhead-scalar",
        "2 x + 1 of a 0-d array",
        scalar_data,
        (),
        (),
        {"numpy": scalar_numpy, "symbolic": scalar_symbolic, "jax": scalar_jax, "torch": scalar_torch},
        numpy_io=True,
    ),
    Workload(
        "overhead-two",
        "a + b of two vectors of 10; NumPy's is np.add, with which calls are compared",
        few_data,
        (2, 10),
        (2, 4),
        {**of_vectors(add), "numpy": add_numpy},
        numpy_io=True,
    ),
    Workload(
        "overhead-three",
        "a b + c of three vectors of 10",
        few_data,
        (3, 10),
        (3, 4),
        of_vectors(multiply_add),
        numpy_io=True,
    ),
    Workload(
        "overhead-eight",
        "a b + c d + e f + g h of eight vectors of 10",
        few_data,
        (8, 10),
        (8, 4),
        of_vectors(combine),
        numpy_io=True,
    ),
)
