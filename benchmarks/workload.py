"""What a workload is: seeded inputs and one builder for each peer.

In: nothing. Out: the records that the families in `workloads/` fill and the runner reads. A builder takes a library
(see `libraries.py`) and the data, and gives a `Program`, whose `call` is measured. The NumPy builder, run on the inputs
in float64, is the reference that every peer's answers are compared with; so it is written for any dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Size: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Data:
    """`arguments` of each call, which the library converts to its own arrays, and `state` that calls may change."""

    arguments: tuple[Array, ...]
    state: tuple[Array, ...] = ()

    def map(self, convert: Callable[[Array], Any]) -> Data:
        """Both, converted array by array."""
        return Data(tuple(map(convert, self.arguments)), tuple(map(convert, self.state)))


def nothing() -> Sequence[Any]:
    """The state of a program that has none."""
    return ()


@dataclass(frozen=True)
class Program:
    """`call` gives one result or several and has finished when it returns; `state` reads what calls have changed."""

    call: Callable[..., Any]
    state: Callable[[], Sequence[Any]] = nothing


Builder: TypeAlias = Callable[[Any, Data], Program]


Summary: TypeAlias = Callable[[list[Array]], list[Array]]


@dataclass(frozen=True)
class Workload:
    """A program to be measured.

    data: inputs of a size and dtype. size: as measured; small: as tested. builders: by the kind of library, "symbolic"
    (graphc and PyTensor, which share Theano's words), "numpy", "jax", "torch" and "numba"; absent: why a kind, or a
    peer, has none.
    numpy_io: the arguments stay NumPy's arrays for every peer. traffic: bytes that any program has to move.
    flops: operations of a matrix product. tolerance: allowed error, relative to the largest element of a result.
    summary: what is compared of the results, where these are random.
    """

    name: str
    title: str
    data: Callable[[np.random.Generator, Size, str], Data]
    size: Size
    small: Size
    builders: Mapping[str, Builder]
    dtype: str = "float64"
    absent: Mapping[str, str] = field(default_factory=dict)
    numpy_io: bool = False
    traffic: Callable[[Size], int] | None = None
    flops: Callable[[Size], int] | None = None
    tolerance: float | None = None
    summary: Summary | None = None

    def make(self, size: Size | None = None) -> Data:
        """The inputs: the same for every peer and round."""
        return self.data(np.random.default_rng(7), self.size if size is None else size, self.dtype)

    @property
    def allowed(self) -> float:
        """The tolerance, by dtype where none is given."""
        return self.tolerance or (1e-9 if self.dtype == "float64" else 2e-4)


def sized(workload: Workload, size: Size) -> Workload:
    """The workload at another size."""
    return replace(workload, size=size)


def widened(array: Array) -> Array:
    """A float array in float64; others as they are."""
    return array.astype("float64") if array.dtype.kind == "f" else array


CHECKED_CALLS = 3
"""Calls that are compared, so that a wrong update or a buffer that is reused too early shows."""


def answers(
    program: Program, arguments: Sequence[Any], first: Any, summary: Summary | None = None
) -> list[list[Array]]:
    """What the first calls give, of which one has been made, and the state after them, as copies."""
    found = [as_arrays(first)]
    found += [as_arrays(program.call(*arguments)) for _ in range(CHECKED_CALLS - 1)]
    found = found if summary is None else [*map(summary, found)]
    return [*found, as_arrays(list(program.state()))]


def as_arrays(result: Any) -> list[Array]:
    """One result or several as NumPy arrays of their own."""
    results = result if isinstance(result, list | tuple) else [result]
    return [np.array(item) for item in results]


def reference(workload: Workload, library: Any, size: Size | None = None) -> list[list[Array]]:
    """The answers of the NumPy program on float64; `library` is NumPy's (see `libraries.py`)."""
    data = workload.make(size).map(widened)
    program = workload.builders["numpy"](library, data)
    return answers(program, data.arguments, program.call(*data.arguments), workload.summary)


def difference(found: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> float:
    """The largest difference of two lists of answers, relative to the largest element of each; inf for other shapes."""
    worst = 0.0
    for results, wanted in zip(found, expected, strict=True):
        if len(results) != len(wanted):
            return float("inf")
        for left, right in zip(results, wanted, strict=True):
            if left.shape != right.shape or not np.isfinite(left).all():
                return float("inf")
            scale = np.max(np.abs(right), initial=1e-300)
            worst = max(worst, float(np.max(np.abs(left - right), initial=0.0) / scale))
    return worst
