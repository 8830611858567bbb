"""Variants of a function: further kernels of its graph that spare the copy of large arguments.

In: the arguments of a call that the entry point has refused. Out: the entry point of a variant that takes them as they
are; or None, and the caller copies them. A variant is compiled only for arrays that are worth it, and not at once, for
compiling takes as long as copying COPIED_FIRST bytes.

    f(B.T)          B large: a variant whose input is B, for all transposed matrices
    f(x, out=x)     x large: a variant whose result is made in the array of x

`Variants.entry_of` is the decision: which variants exist, are being compiled, or are not worth it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

import numpy as np

from graphc.codegen.call.signature import MOST_COPIED, Signature
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import CacheMissError
from graphc.functions.callables import building
from graphc.functions.layouts import Layout, LayoutView, find_base
from graphc.ir.node import Array, Node
from graphc.startup.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen


COPIED_FIRST = 2**28
"""Bytes that calls copy for a variant before it is compiled: some tenths of a second."""

Layouts = tuple[Layout | None, ...]
Places = tuple[tuple[int, int], ...]
"""Pairs (number of a result, number of the input in whose array it is made)."""
Key = Layouts | Places
"""A variant: the layout of each argument, or the results that are made in arguments."""


def variant_kernels() -> Any:
    """The module that makes the kernels of variants, imported when first needed, with the ops of graphs."""
    return import_module("graphc.functions.variant_kernels")


def background() -> Any:
    """The module that builds kernels in another process, imported when first needed: a start needs none of it."""
    return import_module("graphc.codegen.pipeline.background")


class Variant:
    """One variant. `state` goes from "copying" (calls copy their arguments) to "building" (another process compiles)
    to "done". `entry` is None until then, and stays None where the variant cannot be used."""

    __slots__ = ("copied", "entry", "kernel", "process", "state")

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.state: Literal["copying", "building", "done"] = "copying"
        self.copied = 0
        self.process: Popen[bytes] | None = None
        self.entry: Any = None


class Variants:
    """The variants of one function. load: compiles a kernel, or takes it from the cache, and returns its entry point
    and signature."""

    def __init__(self, kernel: Kernel, load: Callable[[Kernel], tuple[Any, Signature]]) -> None:
        self.kernel = kernel
        self.load = load
        self.variants: dict[Key, Variant] = {}

    @cached_property
    def is_pointwise(self) -> bool:
        """True where the axes of all arguments may be permuted together."""
        pointwise: bool = variant_kernels().is_pointwise(self.kernel)
        return pointwise

    def common_order(self, values: Sequence[Any]) -> tuple[int, ...] | None:
        """Return the order of axes in which all arrays of a call are contiguous, for an elementwise function, which can
        be called with the transposed arrays. None where there is no such order."""
        arrays = [(value, leaf) for value, leaf in zip(values, self.kernel.inputs, strict=True) if leaf.ndim]
        found = _base(*arrays[0]) if arrays else None
        if found is None or not found.layout.is_permuted or not self.is_pointwise:
            return None
        shape, order = arrays[0][0].shape, found.layout.order
        if any(not _has_type(value, leaf) or value.shape != shape for value, leaf in arrays):
            return None
        return order if all(value.transpose(order).flags.c_contiguous for value, _ in arrays) else None

    def find(self, values: Sequence[Any]) -> tuple[Any, list[LayoutView | None]] | None:
        """Return the entry point for the layouts of these values and the base of each (None for a value that is
        converted as usual). None where no value has a base, or the variant is not there yet."""
        bases = [_base(value, leaf) for value, leaf in zip(values, self.kernel.inputs, strict=True)]
        key = tuple(based.layout if based else None for based in bases)
        if not any(bases):
            return None
        copied = sum(value.nbytes for value, based in zip(values, bases, strict=True) if based)
        entry = self.entry_of(key, copied, lambda: variant_kernels().rebased(self.kernel, key), ())
        return None if entry is None else (entry, bases)

    def find_in_place(self, values: Sequence[Any], given: Sequence[Array | None]) -> Any:
        """Return the entry point that makes results in the arrays of arguments, where `out` names the array of an
        argument. None where it does not, or the variant is not there yet or cannot be."""
        large = {place: array for place, array in enumerate(given) if array is not None and array.nbytes > MOST_COPIED}
        key = tuple((place, n) for place, array in large.items() for n, value in enumerate(values) if value is array)
        inputs = tuple(sorted({number for _, number in key}))
        if not key or len(inputs) < len(key):
            return None
        copied = sum(values[number].nbytes for number in inputs)
        return self.entry_of(key, copied, lambda: replace(self.kernel, mutable=inputs), key)

    @staticmethod
    def arguments(bases: Sequence[LayoutView | None], arrays: Sequence[Array | None]) -> list[Any]:
        """Return the arguments of a variant: a base or a converted array for each input, then sizes (`LayoutView`)."""
        given: list[Any] = [based.base if based else array for based, array in zip(bases, arrays, strict=True)]
        return [*given, *(size for based in bases if based for size in based.sizes)]

    def entry_of(self, key: Key, size: int, kernel_of: Callable[[], Kernel], donated: Places) -> Any:
        """Return the entry point of a variant, or None where the caller must copy its arguments, of `size` bytes.

        A variant whose code is in the cache is used from the first call on. Another one is compiled, in another
        process, once calls have copied COPIED_FIRST bytes for want of it; they go on copying meanwhile. Where there is
        no such process, or it has stored nothing, this call compiles it. A variant that does not make exactly the
        results `donated` in arguments is never used.
        """
        variant = self.variants.get(key)
        if variant is None:
            variant = self.variants[key] = Variant(kernel_of())
            if building().is_stored(variant.kernel):
                variant.state = "building"
        if variant.state == "copying":
            variant.copied += size
            if variant.copied < COPIED_FIRST:
                return None
            variant.state = "building"
            if not building().is_stored(variant.kernel):
                variant.process = background().build_in_background(variant.kernel)
        if variant.state == "building" and (variant.process is None or variant.process.poll() is not None):
            variant.entry = self.load_entry(variant.kernel, donated)
            variant.state = "done"
        return variant.entry

    def load_entry(self, kernel: Kernel, donated: Places) -> Any:
        """The entry point of a kernel; None where it must be cached and is not, or does not donate as it should."""
        try:
            entry, signature = self.load(kernel)
        except CacheMissError:
            return None
        return entry if signature.donated == donated else None

    def wait(self) -> None:
        """Wait for the processes that build variants."""
        for variant in self.variants.values():
            if variant.process is not None:
                variant.process.wait()

    def free(self) -> None:
        """Free the arenas of all variants."""
        for variant in self.variants.values():
            if variant.entry is not None:
                variant.entry.__self__.arena[0] = None

    def lines(self) -> list[str]:
        """The lines of `explain` about variants in use."""
        names = [leaf.name or f"argument {number}" for number, leaf in enumerate(self.kernel.inputs)]
        return [
            "not copied: " + "; ".join(_describe(names, number, part) for number, part in enumerate(key) if part)
            for key, variant in self.variants.items()
            if variant.entry is not None
        ]


def _base(value: Any, leaf: Node) -> LayoutView | None:
    """The base of a large array that has an input's type and is not contiguous; None for other values."""
    if not _has_type(value, leaf) or value.nbytes <= MOST_COPIED or value.flags.c_contiguous:
        return None
    found = find_base(value)
    # Loops with a larger step along a row do not vectorise: a copy takes less time.
    return found if found is not None and abs(found.layout.steps[-1]) == 1 else None


def _has_type(value: Any, leaf: Node) -> bool:
    """True for an array of an input's type, of any layout."""
    if type(value) is not np.ndarray or value.dtype != leaf.type.dtype or value.ndim != leaf.ndim:
        return False
    return all(isinstance(size, Node) or size == own for size, own in zip(leaf.type.shape, value.shape, strict=True))


def _describe(names: Sequence[str], number: int, part: Layout | tuple[int, int]) -> str:
    """The layout of an argument, or a result that is made in one, for `explain`."""
    if isinstance(part, tuple):
        return f"result {part[0]}, made in {names[part[1]]}"
    return f"{names[number]} {_words(part)}"


def _words(layout: Layout) -> str:
    order = f"with its axes in memory as {layout.order}" if layout.order != tuple(sorted(layout.order)) else ""
    steps = f"by steps of {layout.steps}" if set(layout.steps) != {1} else ""
    part = "" if all(layout.whole) else "part of a larger array"
    return ", ".join(filter(None, (order, steps, part)))
