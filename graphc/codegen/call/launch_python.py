"""One call of the generated source under CPython: the entry point's protocol with flat arrays for pointers.

In: the functions `sizes` and `kernel`, their `Signature`, and the arrays of a call. Out: the results, or what a call
would need.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.bind import Library, address_of
from graphc.codegen.call.signature import AnyArray, Cell, Need, Signature, need_of, result_shapes
from graphc.codegen.link.image import mprotect
from graphc.codegen.llvm.module import POISON
from graphc.errors import GraphcError
from graphc.options import options


def launch_python(
    signature: Signature,
    sizes: Callable[..., int],
    kernel: Callable[..., int],
    arrays: Sequence[AnyArray],
    cells: Sequence[Cell],
    fail: Callable[..., Any],
    on_shapes: Callable[[list[tuple[int, ...]]], object] | None = None,
) -> Any:
    """Run one call of the generated source under CPython.

    arrays: the inputs, C-contiguous, of the signature's dtypes, without operands `overlapping` written buffers.
    on_shapes: called with the shapes of the results before the kernel runs. Returns the results in a list, or the
    result of `fail`.
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
    if on_shapes is not None:
        on_shapes(result_shapes(signature, need, arrays))
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


# --- guard pages ------------------------------------------------------------------------------------------------------
# Calls of native code with every array in memory of its own, between inaccessible pages: a stress mode for tests.
#
# In: a loaded library and its signature. Out: its `sizes` and `kernel` as functions of flat arrays, the protocol of
# the generated source under CPython (launch_python.py). Each call of the kernel is made twice on copies of the arrays,
# which first end where a forbidden page begins and then begin where one ends, so that an access to the element before
# the first or after the last one ends the process. Results and temporaries are filled with a pattern in the one call
# and with zeros in the other: where the two give other bits, the kernel has read what nobody wrote, or left an element
# out.


LEAST_FORBIDDEN = 2**16
"""Bytes on either side of an array; there are as many as the array has where that is more, so that no row is beyond."""

Placement = bool
AT_END, AT_BEGIN = True, False


def guarded_functions(library: Library, signature: Signature) -> tuple[Callable[..., int], Callable[..., int]]:
    """`sizes` and `kernel` of a library, over flat arrays."""
    operands = signature.inputs + signature.shared
    allocated = [*signature.outputs, *signature.temps]
    known = operands + signature.outputs
    results = [number for number, array in enumerate(known) if array.written or number >= len(operands)]

    def sizes(*args: Any) -> int:
        arrays, dims, slots = args[: len(operands)], args[len(operands) : -1], args[-1]
        code = 0
        for placement in (AT_END, AT_BEGIN):
            copies = [guarded(array, placement) for array in (*arrays, slots)]
            pointers, last = copies[:-1], copies[-1]
            fill(last, POISON)
            code = _native(library.sizes, len(pointers), len(dims), 1)(
                *map(address_of, pointers), *dims, address_of(last)
            )
            slots[:] = last
        return code

    def kernel(*args: Any) -> int:
        count = len(operands) + len(allocated)
        function = _native(library.kernel, count, len(args) - count, 0)
        runs = []
        for placement, word in ((AT_BEGIN, 0), (AT_END, POISON)):
            copies = [guarded(array, placement) for array in args[:count]]
            for array in copies[len(operands) :]:
                fill(array, word)
            code: int = function(*map(address_of, copies), *args[count:])
            if code:
                return code
            runs.append([copies[number] for number in results])
        for number, first, second in zip(results, *runs, strict=True):
            _compare(f"{known[number].name} of {signature.name}", first, second)
            args[number][:] = second
        return 0

    return sizes, kernel


def _compare(name: str, first: AnyArray, second: AnyArray) -> None:
    """Raise where two runs gave different bits; all NaNs count as equal."""
    bits = f"u{first.itemsize}"
    places = np.flatnonzero((first.view(bits) != second.view(bits)) & ~(np.isnan(first) & np.isnan(second)))
    if places.size:
        at = places[0]
        raise GraphcError(
            f"element {at} of {name} depends on memory that was never written: it is {first[at]!r} or {second[at]!r}; "
            f"please report this"
        )


def guarded(array: AnyArray, placement: Placement) -> AnyArray:
    """Return a copy of a flat array that ends where an inaccessible page begins, or begins where one ends."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    forbidden = max(room, LEAST_FORBIDDEN)
    memory = mmap.mmap(-1, forbidden + room + forbidden)
    copy: AnyArray = np.frombuffer(
        memory, array.dtype, array.size, forbidden + (room - array.nbytes if placement is AT_END else 0)
    )
    copy[:] = array
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for address in (begin, begin + forbidden + room):
        if mprotect(address, forbidden, 0):
            raise GraphcError("this system does not protect memory; use poison='on'")
    return copy


def _native(address: int, pointers: int, dims: int, addresses: int) -> Callable[..., int]:
    types = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * dims + [ctypes.c_void_p] * addresses
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *types)(address)  # raises what the function has left
