"""Calls from kernels back into Python, for ops whose value a Python function of the user computes.

In: a node. Out: a C function of pointers and sizes; the same over flat arrays, for generated source under CPython. An
exception cannot cross native code: it is kept for its thread, the function returns 1, and the kernel stops.
"""

from __future__ import annotations

import ctypes
from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.errors import ShapeError
from graphc.ir.body import outputs_of
from graphc.ir.node import Array, Node, describe
from graphc.ops.custom import native_of

CALLBACK = "callback"
"""The name of callbacks in generated source, followed by a number."""


class Failures(local):
    """Exceptions that functions of the user raised, for each thread: calls in several may fail at the same time."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []


def split_sizes(operands: Sequence[Node], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The shape of each operand, from all their sizes in one sequence."""
    left = list(sizes)
    return [tuple(left.pop(0) for _ in range(operand.ndim)) for operand in operands]


def run(node: Node, arrays: Sequence[Array], failures: Failures) -> int:
    """Compute `node` from the first arrays into the others; 1 where the user's function raised."""
    count = len(node.args)
    try:
        made: Any = node.op.eval(node, *arrays[:count])
        for value, array in zip(made if node.is_tuple else (made,), arrays[count:], strict=True):
            if value.shape != array.shape:
                shapes = f"shape {value.shape}, not {array.shape}"
                raise ShapeError(f"op {node.op.name} computed {shapes}: {describe(node)}")
            array[...] = value
    except BaseException as error:  # whatever it is, it is raised again where the call began
        error.add_note(f"while computing {describe(node)}")
        failures.raised.append(error)
        return 1
    return 0


def native_callback(node: Node, failures: Failures) -> Any:
    """Return a ctypes function that computes a node; its address is valid as long as it lives. An op that numba
    compiles has native code of its own (native_op.py)."""
    compute = native_of(node.op)
    if compute is not None:
        function: Any = import_module("graphc.codegen.call.native_op").native_function(node, compute)
        return function
    operands = (*node.args, *outputs_of(node))
    count = sum(operand.ndim for operand in operands)
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(operands), *[ctypes.c_int64] * count)

    kinds = [(operand.type.dtype, operand.ndim) for operand in operands]

    def call(*args: Any) -> int:
        first, arrays = len(kinds), []
        for address, (dtype, rank) in zip(args, kinds, strict=False):
            arrays.append(view(address, dtype, args[first : first + rank]))
            first += rank
        return run(node, arrays, failures)

    return signature(call)


def view(address: int | None, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return the array of this dtype and shape at an address."""
    length = prod(shape) * itemsize(dtype)
    if not length or address is None:
        return np.empty(shape, dtype)
    return np.ndarray(shape, np.dtype(dtype), MEMORY(address, length, WRITABLE))


MEMORY = ctypes.pythonapi.PyMemoryView_FromMemory
"""A view of some bytes at an address; a ctypes array would be a class of its own for each length."""
MEMORY.restype, MEMORY.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
WRITABLE = 0x200


def python_callback(node: Node, failures: Failures) -> Callable[..., int]:
    """Return `native_callback` for flat arrays. An array may be longer than its value: a temporary holds values of
    several sizes."""
    operands = (*node.args, *outputs_of(node))

    def call(*args: Any) -> int:
        shapes = split_sizes(operands, [int(size) for size in args[len(operands) :]])
        flat = args[: len(operands)]
        arrays = [a[: prod(shape)].reshape(shape) for a, shape in zip(flat, shapes, strict=True)]
        return run(node, arrays, failures)

    return call


def address(callback: Any) -> int:
    """The address of a ctypes function."""
    return ctypes.cast(callback, ctypes.c_void_p).value or 0
