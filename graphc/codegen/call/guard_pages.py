"""Calls of native code with every array in memory of its own, between inaccessible pages: a stress mode for tests.

In: a loaded library and its signature. Out: its `sizes` and `kernel` as functions of flat arrays, the protocol of the
generated source under CPython (launch_python.py). Each call of the kernel is made twice on copies of the arrays, which
first end where a forbidden page begins and then begin where one ends, so that an access to the element before the first
or after the last one ends the process. Results and temporaries are filled with a pattern in the one call and with zeros
in the other: where the two give other bits, the kernel has read what nobody wrote, or left an element out.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.codegen.call.bind import Library
from graphc.codegen.call.launch_python import fill
from graphc.codegen.call.signature import AnyArray, Signature
from graphc.codegen.link.image import mprotect
from graphc.codegen.llvm.module import POISON
from graphc.errors import GraphcError

LEAST_FORBIDDEN = 2**16
"""Bytes on either side of an array; there are as many as the array has where that is more, so that no row is beyond."""

Placement = bool
AT_END, AT_BEGIN = True, False


def guarded_functions(library: Library, signature: Signature) -> tuple[Callable[..., int], Callable[..., int]]:
    """`sizes` and `kernel` of a library, over flat arrays."""
    operands = signature.inputs + signature.shared
    made = [*signature.outputs, *signature.temps]
    known = operands + signature.outputs
    results = [number for number, array in enumerate(known) if array.written or number >= len(operands)]

    def sizes(*args: Any) -> int:
        arrays, dims, slots = args[: len(operands)], args[len(operands) : -1], args[-1]
        code = 0
        for placement in (AT_END, AT_BEGIN):
            copies = [guarded(array, placement) for array in (*arrays, slots)]
            pointers, last = copies[:-1], copies[-1]
            fill(last, POISON)
            code = _native(library.sizes, len(pointers), len(dims), 1)(*map(_address, pointers), *dims, _address(last))
            slots[:] = last
        return code

    def kernel(*args: Any) -> int:
        count = len(operands) + len(made)
        function = _native(library.kernel, count, len(args) - count, 0)
        runs = []
        for placement, word in ((AT_BEGIN, 0), (AT_END, POISON)):
            copies = [guarded(array, placement) for array in args[:count]]
            for array in copies[len(operands) :]:
                fill(array, word)
            code: int = function(*map(_address, copies), *args[count:])
            if code:
                return code
            runs.append([copies[number] for number in results])
        for number, one, other in zip(results, *runs, strict=True):
            _compare(f"{known[number].name} of {signature.name}", one, other)
            args[number][:] = other
        return 0

    return sizes, kernel


def _compare(name: str, one: AnyArray, other: AnyArray) -> None:
    """Raise where two runs gave different bits; all NaNs count as equal."""
    bits = f"u{one.itemsize}"
    places = np.flatnonzero((one.view(bits) != other.view(bits)) & ~(np.isnan(one) & np.isnan(other)))
    if places.size:
        at = places[0]
        raise GraphcError(
            f"element {at} of {name} depends on memory that was never written: it is {one[at]!r} or {other[at]!r}; "
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


def _native(address: int, pointers: int, dims: int, more: int) -> Callable[..., int]:
    types = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * dims + [ctypes.c_void_p] * more
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *types)(address)  # raises what the function has left


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
