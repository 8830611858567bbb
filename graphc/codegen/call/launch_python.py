"""One call of the generated source under CPython: the entry point's protocol with flat arrays for pointers.

In: the functions `sizes` and `kernel`, their `Signature`, and the arrays of a call. Out: the results, or what a call
would need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.signature import AnyArray, Cell, Need, Signature, need_of, result_shapes
from graphc.codegen.llvm.module import POISON
from graphc.options import options


def launch_python(
    signature: Signature,
    sizes: Callable[..., int],
    kernel: Callable[..., int],
    arrays: Sequence[AnyArray],
    cells: Sequence[Cell],
    fail: Callable[..., Any],
    told: Callable[[list[tuple[int, ...]]], object] | None = None,
) -> Any:
    """Run one call of the generated source under CPython.

    arrays: the inputs, C-contiguous, of the signature's dtypes, without operands `overlapping` written buffers. told:
    called with the shapes of the results before the kernel runs. Returns the results in a list, or the result of
    `fail`.
    """
    operands = [*arrays, *(cell[0] for cell in cells)]
    pointers = [_pointer(operand) for operand in operands]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    slots = np.zeros(signature.extents, np.int64)
    with np.errstate(all="ignore"):
        code = sizes(*pointers, *dims, slots)
    if code:
        return fail(int(code), *arrays)
    need = need_of(signature, slots.tolist())
    if need is None:
        return fail(-1, *arrays)
    shapes = need.shapes
    if told is not None:
        told(result_shapes(signature, need, arrays))
    outputs = [_empty(shape, output.dtype) for shape, output in zip(shapes, signature.outputs, strict=True)]
    temps = [
        _empty((length // itemsize(temp.dtype),), temp.dtype)
        for length, temp in zip(need.temps, signature.temps, strict=True)
    ]
    with np.errstate(all="ignore"):
        code = kernel(*pointers, *map(_pointer, outputs), *temps, *dims)
    if code:
        return fail(int(code), *arrays)
    return _deliver(signature, arrays, outputs, cells)


def _empty(shape: tuple[int, ...], dtype: str) -> AnyArray:
    array = np.empty(shape, dtype)
    if options.poison != "off":
        fill(array, POISON)
    return array


def fill(array: AnyArray, word: int) -> None:
    """Fill a contiguous array with repetitions of a 32-bit word."""
    array.reshape(-1).view(np.uint8)[:] = np.resize(np.array([word], "<u4").view(np.uint8), array.nbytes)


def _pointer(array: AnyArray) -> AnyArray:
    """Return a flat view of the array. Raises where only a copy is flat, which would lose the kernel's writes."""
    return array.reshape(-1, copy=False)


def _deliver(
    signature: Signature, arrays: Sequence[AnyArray], outputs: Sequence[AnyArray], cells: Sequence[Cell]
) -> list[AnyArray]:
    for output, array in zip(signature.outputs, outputs, strict=True):
        if output.replaces is not None:
            cells[output.replaces][0] = array
    return [(arrays if role == "input" else outputs)[number] for role, number in signature.results]


def measure_python(
    signature: Signature, sizes: Callable[..., int], arrays: Sequence[AnyArray], cells: Sequence[Cell]
) -> Need | None:
    """Return the need of a call (bind.measure) by the `sizes` of generated source."""
    operands = [*arrays, *(cell[0] for cell in cells)]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    pointers = [_pointer(operand) if n in signature.reads else operand for n, operand in enumerate(operands)]
    slots = np.zeros(signature.extents, np.int64)
    with np.errstate(all="ignore"):
        code = sizes(*pointers, *dims, slots)
    return None if code else need_of(signature, slots.tolist())
