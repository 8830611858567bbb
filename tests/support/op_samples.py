"""The samples of every op, and arguments for them.

In: an argument as a sample describes it, a generator. Out: an array, and a variable that it can be given to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphc.ir.node import OPS, Argument, Node, Sample, variable

Array = NDArray[Any]
SAMPLES = [(op, sample) for op in OPS.values() for sample in op.samples]
NAMES = [f"{op.name}-{sample.name}" for op, sample in SAMPLES]


def draw(argument: Argument, rng: np.random.Generator, dtype: str = "float64") -> Array:
    """Elements for an argument of a sample."""
    low, high = argument.low, argument.high
    match argument.category:
        case "float":
            return rng.uniform(low, high, argument.shape).astype(dtype)
        case "bool":
            return rng.integers(0, 2, argument.shape).astype(bool)
        case _:
            return rng.integers(int(low), max(int(high), int(low) + 1), argument.shape)


def inputs_for(sample: Sample, values: list[Array]) -> list[Node]:
    """A variable for each value; a size of 1 is static, because only a static 1 broadcasts."""
    return [
        variable(value.dtype.name, [1 if size == 1 else None for size in value.shape], f"x{n}")
        for n, value in enumerate(values)
    ]
