"""The data of C functions of vectors (pointer_ir.py): their forms, the words that they read, their return codes.

In: a signature, the addresses of its functions and operands, the memory that a call needs. Out: a `Form`, and an array
of words for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Literal

import numpy as np

from graphc.codegen.call.signature import ALIGNMENT, AnyArray, Need, Signature
from graphc.startup.record import record

POINTER, CALM, WORDS = "gc_pointer", "gc_calm", "gc_words"
"""Symbols: the C function; the safepoint of its loops, in place of Python's; the words."""
REFUSED, NO_MEMORY, FAILED, BAD_GRADIENT, BAD_VALUE = -1, -2, 1, 3, 4
FIELDS = ("dimension", "length", "sizes", "kernel", "arena")
"""The first words: the length of x, that of the result that is a vector, the addresses of `sizes` and `kernel`, the
bytes of the arena. Behind them stand the addresses of all operands but x, the dims that the functions take, the numbers
that `sizes` must write, and the offset of each temporary."""

Kind = Literal["density", "vector"]


@record()
class Form:
    """The parameters of the code: the numbers of operands besides x, of dims that the functions take, of numbers that
    `sizes` writes, and of temporaries."""

    kind: Kind
    operands: int
    sizes: int
    extents: int
    temps: int

    @property
    def name(self) -> str:
        """The name of the runtime part with this code (pipeline/runtime.py)."""
        return f"{POINTER} {self.kind} {self.operands} {self.sizes} {self.extents} {self.temps}"

    @staticmethod
    def from_name(name: str) -> Form:
        _, kind, *counts = name.split(" ")
        return Form("density" if kind == "density" else "vector", *map(int, counts))


def form_of(kind: Kind, signature: Signature) -> Form:
    """The form of a graph's function, whose first operand is x."""
    known = signature.inputs + signature.shared
    return Form(kind, len(known) - 1, len(signature.sizes), signature.extents, len(signature.temps))


def words_of(
    signature: Signature, functions: tuple[int, int], operands: Sequence[AnyArray], need: Need, slots: Sequence[int]
) -> AnyArray:
    """Return the words of a graph's function. functions: the addresses of `sizes` and `kernel`. operands: x, of which
    only the shape counts, then the others, which must live as long as the function. slots: the numbers that `sizes`
    wrote for them."""
    padded = [-(-length // ALIGNMENT) * ALIGNMENT for length in need.temps]
    *starts, end = accumulate(padded, initial=0)
    fields = (operands[0].size, prod(need.shapes[-1]), *functions, end + ALIGNMENT)
    addresses = [operand.ctypes.data for operand in operands[1:]]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    return np.array([*fields, *addresses, *dims, *slots, *starts], np.int64)
