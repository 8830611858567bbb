"""Matrix products, for which np.dot is the limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Data, Program, Size, Workload


def matrices(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: rows, inner, and columns, or none for a vector."""
    rows, inner, *columns = size
    return Data((rng.normal(size=(rows, inner)), rng.normal(size=(inner, *columns))))


def build_numpy(library: Any, data: Data) -> Program:
    return Program(np.dot)


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    a, b = T.dmatrix("a"), T.dmatrix("b") if data.arguments[1].ndim == 2 else T.dvector("b")
    return Program(library.function([a, b], T.dot(a, b)))


def build_jax(library: Any, data: Data) -> Program:
    return Program(library.jit(library.numpy.dot))


def build_torch(library: Any, data: Data) -> Program:
    return Program(library.compile(library.torch.matmul))


BUILDERS = {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch}
ABSENT = {"numba": "a hand-written kernel would call the same BLAS as np.dot, which the NumPy peer is"}

WORKLOADS = (
    *(
        Workload(
            f"dot-{size}",
            f"matrix product of {size} x {size}, float64",
            matrices,
            (size, size, size),
            (5, 7, 3),
            BUILDERS,
            absent=ABSENT,
            flops=lambda shape: 2 * shape[0] * shape[1] * shape[2],
        )
        for size in (256, 1024)
    ),
    Workload(
        "matrix-vector",
        "product of a 2048 x 2048 matrix and a vector, float64",
        matrices,
        (2048, 2048),
        (7, 5),
        BUILDERS,
        absent=ABSENT,
        traffic=lambda shape: 8 * shape[0] * shape[1],
    ),
)
