"""Theano's path of the functions in graphc.tensor, and what stands beside them in its `tensor.basic`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from graphc import tensor as functions
from graphc.gof import opclasses
from graphc.gof.op import Apply, MethodNotDefined, Op
from graphc.gof.type import Type
from graphc.ir.node import Constant
from graphc.ops.missing import DisconnectedType, not_implemented as grad_not_implemented
from graphc.shared import shared

__all__ = [
    "Apply", "Constant", "DisconnectedType", "MethodNotDefined", "Op", "Tensor", "Type", "disconnected_type",
    "grad_not_implemented", "hashtype", "tensor",
]  # fmt: skip

_shared = shared
Tensor = functions.TensorType
tensor = functions.tensor
disconnected_type = DisconnectedType()


def hashtype(op: Any) -> int:
    """What an op without parameters hashes to: a number of its class."""
    return hash((type(op).__name__, type(op).__module__))


_TOLERANCES = {"float32": (1e-5, 1e-5), "float64": (1.0000000000000001e-06, 1e-10)}
"""Of each dtype the relative and the absolute one, of which the larger of two operands' are taken."""


def _get_atol_rtol(a: Any, b: Any) -> tuple[float, float]:
    """The absolute and the relative tolerance with which values of the less precise of two dtypes are close."""
    found = [_TOLERANCES.get(np.asarray(array).dtype.name, _TOLERANCES["float64"]) for array in (a, b)]
    relative, absolute = (max(pair) for pair in zip(*found, strict=True))
    return absolute, relative


def _asarray(a: Any, dtype: Any, order: Any = None) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of a dtype; "floatX" is `options.floatX`."""
    return np.asarray(a, functions.as_tensor(0, dtype=dtype).dtype, order)


def _allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Whether arrays are close, by default as close as the less precise of their dtypes lets them be."""
    absolute, relative = _get_atol_rtol(a, b)
    return np.allclose(a, b, relative if rtol is None else rtol, absolute if atol is None else atol)


def __getattr__(name: str) -> Any:
    package = sys.modules["graphc"]
    if name in ("compile", "config", "gof", "printing", "theano"):  # what theano.tensor imports for itself
        return getattr(package, name)
    return getattr(opclasses if name in opclasses.APPLIED else functions, name)


def __dir__() -> list[str]:
    return dir(functions)
