"""Names of Theano's `sandbox` and `gpuarray`: hints about matrices, a bound, whether there are graphics cards.

In: matrices, and programs that ask for cards. Out: the same matrix, as factorisations are chosen by what the graph
shows and not by hints; a number; that there are none.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.tensor.elementary import pow as power
from graphc.tensor.products import dot, trace

__all__ = [
    "CudaNdarrayType", "GpuOp", "cuda_available", "cuda_enabled", "dnn_available", "dnn_present", "imported_scipy",
    "psd", "pygpu_activated", "spectral_radius_bound",
]  # fmt: skip

cuda_available = cuda_enabled = pygpu_activated = False
imported_scipy = True


class CudaNdarrayType:
    """The type of arrays on graphics cards, which no variable has."""


class GpuOp:
    """The class of ops on graphics cards, of which there are none."""


def dnn_available(context_name: Any = None) -> bool:
    """False: there is no library of layers for graphics cards."""
    return False


def dnn_present() -> bool:
    """False: there is no library of layers for graphics cards."""
    return False


dnn_available.msg = dnn_present.msg = "there are no GPUs: functions run on the CPU"  # type: ignore[attr-defined]


def psd(v: Any) -> Node:
    """The matrix itself, of which the caller says that it is symmetric and has no negative eigenvalue."""
    return as_node(v)


def spectral_radius_bound(X: Any, log2_exponent: int) -> Node:  # noqa: N803 - Theano's
    """A number that no eigenvalue of the symmetric matrix X exceeds: the closer, the larger `log2_exponent`, the number
    of times that X is squared (Pan, Computers Math. Applic. 17, 1990). Raises GraphTypeError for another rank
    and an exponent that is no whole number, GraphValueError where it is not positive."""
    squared = as_node(X)
    if squared.ndim != 2:
        raise GraphTypeError(f"spectral_radius_bound: {describe(squared)} of type {squared.type} is not a matrix")
    if not isinstance(log2_exponent, int):
        raise GraphTypeError(f"spectral_radius_bound: {log2_exponent!r} is not a whole number")
    if log2_exponent <= 0:
        raise GraphValueError(f"spectral_radius_bound: {log2_exponent} is not positive")
    for _ in range(log2_exponent):
        squared = dot(squared, squared)
    return power(trace(squared), 2.0**-log2_exponent)
