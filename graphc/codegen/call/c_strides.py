"""Arrays of any strides in the C functions of an exported function (c_ir.py), in LLVM IR.

In: the address of the first element, sizes, and strides in bytes. Out: whether kernels can take the array as it is, a
copy of its elements, the memory that it spans, whether arrays share elements.

    Strided(code, at, dims, strides, F64)
        .is_plain      contiguous and aligned: the kernel reads or writes the array itself
        .copy_to(to)   else it reads a copy, or writes one, which `copy_from` takes back

Strides may be negative, zero, and no multiples of the element's size, as those of a field of a packed struct.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, and_, mul, or_
from typing import Any

from graphc.codegen.call.signature import MOST
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import F64, I64, Bool, Ptr


class Strided:
    """An array. dims: its sizes, numbers where they are known. kind: the type of its elements."""

    def __init__(self, code: Code, at: Ptr, dims: Sequence[I64 | int], strides: Sequence[I64], kind: Any) -> None:
        self.code, self.at, self.kind, self.strides = code, at, kind, strides
        self.item = kind.bits // 8
        self.dims = [code.emit(I64, f"add i64 0, {dim}") if isinstance(dim, int) else dim for dim in dims]
        self.plain_strides = [code.emit(I64, f"add i64 0, {self.item}")]
        for dim in reversed(self.dims[1:]):
            self.plain_strides.insert(0, self.plain_strides[0] * dim)
        fits = [
            (stride == plain) | (dim == 1)
            for dim, stride, plain in zip(self.dims, strides, self.plain_strides, strict=True)
        ]
        self.is_plain = reduce(and_, fits, at.integer() & (self.item - 1) == 0)
        self.is_absurd = reduce(or_, [self._is_absurd(*each) for each in zip(self.dims, strides, strict=True)])
        self.begin, self.end = self._bounds()

    @staticmethod
    def _is_absurd(dim: I64, stride: I64) -> Bool:
        """True where an axis would be absurdly long, by float64, which cannot overflow."""
        length = dim.to(F64) * stride.to(F64)
        return (length > float(MOST)) | (length < -float(MOST))

    def _bounds(self) -> tuple[I64, I64]:
        """The address of the first byte of all elements, and of what follows the last."""
        begin = end = self.at.integer()
        for dim, stride in zip(self.dims, self.strides, strict=True):
            length = (dim - 1) * stride
            begin, end = begin + (length < 0).choose(length, 0), end + (length > 0).choose(length, 0)
        is_empty = reduce(mul, self.dims) == 0
        return is_empty.choose(self.at.integer(), begin), is_empty.choose(self.at.integer(), end + self.item)

    def steps(self) -> list[I64]:
        """The lengths of the strides that lead from one element to another, else 0."""
        sizes = [(stride < 0).choose(0 - stride, stride) for stride in self.strides]
        return [(dim > 1).choose(size, 0) for dim, size in zip(self.dims, sizes, strict=True)]

    def may_repeat(self) -> Bool:
        """True unless each stride leads past all elements that smaller strides lead to: then none share memory."""
        steps, found = self.steps(), list[Bool]()
        for place, step in enumerate(steps):
            reach: Any = I64.of(self.item)
            for other, (less, dim) in enumerate(zip(steps, self.dims, strict=True)):
                if other != place:
                    is_less = less <= step if other < place else less < step
                    reach = is_less.choose((dim - 1) * less, 0) + reach
            found.append((self.dims[place] > 1) & (step < reach))
        return reduce(or_, found) & (reduce(mul, self.dims) != 0)

    def shares(self, other: Strided) -> Bool:
        """True unless the elements of this array are seen to stand beside those of the other: see `apart`."""
        distance, numbers = other.begin - self.begin, (*self.dims, *other.dims, *self.steps(), *other.steps())
        return ~apart(len(self.dims), self.item, len(other.dims), other.item)(self.code, distance, *numbers)

    def copy_to(self, to: Ptr) -> None:
        """Write the elements to contiguous memory."""
        copy(len(self.dims), self.kind)(self.code, to, self.at, *self.dims, *self.plain_strides, *self.strides)

    def copy_from(self, source: Ptr) -> None:
        """Take the elements from contiguous memory."""
        copy(len(self.dims), self.kind)(self.code, self.at, source, *self.dims, *self.strides, *self.plain_strides)


def apart(rank: int, item: int, other_rank: int, other_item: int) -> Function[..., Bool]:
    """A function of two arrays: the distance between the first, their sizes, the lengths of their strides. It is true
    if for one of the strides, the period, all elements of one array stand beside those of the other within a period:
    as fields of an array of structs do, and columns of a matrix. Strides that are multiples of the period lead to the
    same places in others; the rest span a block."""
    count = rank + other_rank
    names = [f"{word}_{number}" for word in ("size", "step") for number in range(count)]

    def write(code: Code, distance: I64, *numbers: I64) -> Bool:
        sizes, steps, found = numbers[:count], numbers[count:], []
        for step in steps:
            period = (step == 0).choose(I64.of(1), step)
            spans = [
                (each % period == 0).choose(I64.of(0), (size - 1) * each)
                for size, each in zip(sizes, steps, strict=True)
            ]
            block, other_block = (
                reduce(add, part) + length for part, length in ((spans[:rank], item), (spans[rank:], other_item))
            )
            rest = distance.apply("srem", period)
            place = (rest < 0).choose(rest + period, rest)
            found.append((place >= block) & (place + other_block <= period))
        return reduce(or_, found)

    kinds = {"distance": I64, **dict.fromkeys(names, I64)}
    name = f"gc_apart_{rank}_{item}_{other_rank}_{other_item}"
    return Function(name, Bool, kinds, write, "noinline optsize", is_internal=True)


def copy(rank: int, kind: Any) -> Function[..., None]:
    """A function that copies elements: to, from, sizes, the strides there and here."""
    names = [f"{word}_{axis}" for word in ("size", "to", "from") for axis in range(rank)]

    def write(code: Code, to: Ptr, source: Ptr, *numbers: I64) -> None:
        _copy_axes(code, kind, to, source, list(zip(numbers[:rank], numbers[rank:-rank], numbers[-rank:], strict=True)))

    kinds = {"there": Ptr, "here": Ptr, **dict.fromkeys(names, I64)}
    return Function(f"gc_copy_{rank}_{kind.spelling}", None, kinds, write, "noinline", is_internal=True)


def _copy_axes(code: Code, kind: Any, to: Ptr, source: Ptr, axes: Sequence[tuple[I64, I64, I64]]) -> None:
    (size, there, here), *others = axes
    with code.count(0, size) as place:
        target, origin = to.at(place * there), source.at(place * here)
        if others:
            _copy_axes(code, kind, target, origin, others)
        else:
            target.store(origin.load(kind, align=1), align=1)
