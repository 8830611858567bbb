"""The signature of a compiled graph: arrays in and out, temporaries, sizes; and the memory that a call needs.

In: the buffers of a plan; the numbers that `sizes` wrote. Out: a `Signature`, as a record and as plain data; a `Need`.

    sizes(pointers of inputs and shared, dims named by Signature.sizes, S) -> 0, or k where the k-th check failed
        writes to S every dim of every output in order, then the dims of every value that each temp holds, then the work
        of loops where the kernel has safepoints
    kernel(pointers of inputs, shared, outputs and temps, the same dims) -> 0, or the number of the failed check
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, islice
from operator import mul
from typing import Any, Literal

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.errors import GraphcError
from graphc.startup.record import record

AnyArray = np.ndarray[Any, np.dtype[Any]]
Cell = list[Any]

MOST = 2**58
"""Elements or bytes above which a size is absurd: sums of a few such numbers still fit an int64."""

ALIGNMENT = 64
"""The alignment of each temp in bytes: a cache line, and the widest vector register."""

MOST_COPIED = 2**16
"""Bytes up to which an argument that is not contiguous is copied on the spot: some 10 µs. Beyond, Python decides."""


@record()
class Array:
    """An array that crosses the entry point: C-contiguous, of `dtype`, each size a number or None where it is known
    at the call only.

    written: a buffer of a shared variable or an input that the kernel writes in place. replaces (outputs only): the
    array becomes the new value of the shared variable of that number instead of being returned.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    written: bool = False
    replaces: int | None = None

    @property
    def unknown(self) -> list[int]:
        """The axes whose sizes are known at the call only."""
        return [axis for axis, size in enumerate(self.shape) if size is None]


@record()
class Temp:
    """A buffer that the kernel needs for the duration of a call, for one value after another. extents: the dtype and
    rank of each value; () for one vector of the buffer's dtype.
    """

    name: str
    dtype: str
    extents: tuple[tuple[str, int], ...] = ()

    @property
    def values(self) -> tuple[tuple[str, int], ...]:
        """The dtype and rank of each value that the buffer holds."""
        return self.extents or ((self.dtype, 1),)


@record()
class Signature:
    """The arrays of a compiled graph. sizes: the dims that its functions take, as (index into inputs + shared,
    axis)."""

    name: str
    inputs: tuple[Array, ...]
    shared: tuple[Array, ...]
    outputs: tuple[Array, ...]
    temps: tuple[Temp, ...]
    sizes: tuple[tuple[int, int], ...]
    returns: Literal["one", "list", "none"]
    reads: tuple[int, ...] = ()
    """The operands whose elements `sizes` reads, because sizes follow from their values."""
    donated: tuple[tuple[int, int], ...] = ()
    """Results that are made in the array of a written input: (position among the results, number of the input)."""
    has_safepoints: bool = False
    """True where the kernel has safepoints (callback.py). `sizes` then writes the work of its loops last."""

    def __post_init__(self) -> None:
        returned = self.returned
        if returned != {"one": 1, "none": 0}.get(self.returns, returned):
            raise GraphcError(f"{self.name}: {returned} outputs are returned as {self.returns!r}")
        known = self.inputs + self.shared
        if not all(0 <= index < len(known) and 0 <= axis < len(known[index].shape) for index, axis in self.sizes):
            raise GraphcError(f"{self.name}: sizes {self.sizes} of arrays that are not there")
        if any(array.written and not array.shape for array in self.inputs):
            raise GraphcError(f"{self.name}: a scalar input may be a Python number, which cannot be written")
        if not all(place < returned and self.inputs[number].written for place, number in self.donated):
            raise GraphcError(f"{self.name}: results {self.donated} in inputs that are not written")
        replaced = [output.replaces for output in self.outputs if output.replaces is not None]
        if len(set(replaced)) < len(replaced) or not all(0 <= k < len(self.shared) for k in replaced):
            raise GraphcError(f"{self.name}: shared variables {replaced} cannot be replaced")

    def to_fields(self) -> Any:
        """Return the signature as nested tuples, for `from_fields` in another process."""
        return fields_of(self)

    @property
    def returned(self) -> int:
        """The number of results that a call returns."""
        return len(self.donated) + sum(output.replaces is None for output in self.outputs)

    @property
    def results(self) -> tuple[tuple[Literal["input", "output"], int], ...]:
        """For each result in order its array: ("output", number), or ("input", number) of a donated input."""
        donated = dict(self.donated)
        fresh = (number for number, output in enumerate(self.outputs) if output.replaces is None)
        places = range(self.returned)
        return tuple(("input", donated[place]) if place in donated else ("output", next(fresh)) for place in places)

    @property
    def extents(self) -> int:
        """The number of int64 that `sizes` writes."""
        dims = sum(len(output.shape) for output in self.outputs)
        return dims + sum(rank for temp in self.temps for _, rank in temp.values) + self.has_safepoints

    @staticmethod
    def from_fields(fields: Any) -> Signature:
        """Return the signature of `to_fields`. Raises GraphcError, TypeError or ValueError for other values."""
        name, inputs, shared, outputs, temps, *others = fields
        arrays = [tuple(Array(*array) for array in role) for role in (inputs, shared, outputs)]
        values: list[Any] = [name, *arrays, tuple(Temp(*temp) for temp in temps), *others]
        return Signature(*values)


def fields_of(value: Any) -> Any:
    """Convert records, also those in tuples, to tuples of their fields; return any other value as it is."""
    if isinstance(value, Signature | Array | Temp):
        value = tuple([getattr(value, name) for name in value.__match_args__])
    return tuple(map(fields_of, value)) if isinstance(value, tuple) else value


@record()
class Need:
    """The memory that a call needs: the shapes of the outputs, and the bytes of each temp."""

    shapes: tuple[tuple[int, ...], ...]
    temps: tuple[int, ...]

    @property
    def arena(self) -> int:
        """The bytes that the entry point allocates for all temps, with room to align the first."""
        return ALIGNMENT + sum(map(_padded, self.temps)) if self.temps else 0


def need_of(signature: Signature, sizes: Sequence[int]) -> Need | None:
    """Return the need for the numbers that `sizes` wrote; None where a size is negative or a product above MOST. The
    entry point computes the same (objects.place)."""
    left = iter(sizes)

    def take(dtype: str, rank: int) -> tuple[tuple[int, ...], int]:
        shape = tuple(islice(left, rank))
        products = [*accumulate((*shape, itemsize(dtype)), mul)]
        return shape, -1 if min(shape, default=0) < 0 or max(products) > MOST else products[-1]

    outputs = [take(output.dtype, len(output.shape)) for output in signature.outputs]
    lengths = [[take(*extent)[1] for extent in temp.values] for temp in signature.temps]
    if any(length < 0 for length in (*(length for _, length in outputs), *chain(*lengths))):
        return None
    temps = tuple(map(max, lengths))
    return Need(tuple(shape for shape, _ in outputs), temps) if sum(map(_padded, temps)) <= MOST else None


def extents_of(signature: Signature) -> list[int]:
    """For each value of outputs and temps its rank, its itemsize, and the number of its buffer."""
    outputs = [((output.dtype, len(output.shape)),) for output in signature.outputs]
    extents = [*enumerate(outputs), *enumerate((temp.values for temp in signature.temps), len(outputs))]
    return [word for number, each in extents for dtype, rank in each for word in (rank, itemsize(dtype), number)]


def held_by_temps(signature: Signature) -> tuple[tuple[tuple[int, int, int], ...], ...]:
    """For each temp the values that it holds: the first place of its sizes in what `sizes` writes, rank, itemsize."""
    place, found = sum(len(output.shape) for output in signature.outputs), []
    for temp in signature.temps:
        values = []
        for dtype, rank in temp.values:
            values.append((place, rank, itemsize(dtype)))
            place += rank
        found.append(tuple(values))
    return tuple(found)


def _padded(length: int) -> int:
    """The bytes of the arena that a temp of `length` bytes takes."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def result_shapes(signature: Signature, need: Need, arrays: Sequence[AnyArray]) -> list[tuple[int, ...]]:
    """The shapes of the arrays that a call returns."""
    return [arrays[number].shape if role == "input" else need.shapes[number] for role, number in signature.results]


def overlapping(signature: Signature, arrays: Sequence[AnyArray], cells: Sequence[Cell]) -> tuple[int, ...]:
    """Return the operands, by number in inputs + shared, that must be copied before a launch because they overlap a
    written buffer; of two written buffers that overlap, the later one.
    """
    operands = [*arrays, *(cell[0] for cell in cells)]
    known = signature.inputs + signature.shared
    written = [number for number, array in enumerate(known) if array.written]

    def clashes(number: int) -> bool:
        others = [w for w in written if w != number and (w < number or not known[number].written)]
        return any(np.may_share_memory(operands[number], operands[other]) for other in others)

    return tuple(number for number in range(len(operands)) if clashes(number))
