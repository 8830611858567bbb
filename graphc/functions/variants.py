"""Other kernels of a function, made when they are worth it: for arguments of other layouts, and for results that go to
the arrays of arguments.

In: the values of a call that the entry point has refused. Out: what to call in its place, with which arguments, so that
no large array is copied; or nothing, where copying is right: small arrays, layouts that are no region of a contiguous
array, results that cannot be made in place, and the first calls, for a kernel costs as much time as copying
COPIED_FIRST bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.call.signature import MOST_COPIED, Signature
from graphc.codegen.pipeline.build import is_stored
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import CacheMissError
from graphc.functions.layouts import Based, Layout, find_base, is_pointwise, rebased
from graphc.ir.node import Array, Node
from graphc.startup.record import record, replace

COPIED_FIRST = 2**28
"""Bytes that are copied for a combination of layouts before a kernel is compiled for it: some tenths of a second."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

Layouts = tuple[Layout | None, ...]
Places = tuple[tuple[int, int], ...]
"""Results that are to be made in the array of an argument: (number of the result, of the input)."""


@record()
class Declined:
    """What the entry point of a variant returns where it refuses its arguments."""


@record()
class Failed:
    """What it returns where check number `code` failed."""

    code: int


def decline(*args: Any, **kwargs: Any) -> Declined:
    """The arguments are to be copied after all."""
    return Declined()


def fail(code: int, *args: Any) -> Failed:
    """The check is to be explained in terms of the arguments that the user gave."""
    return Failed(code)


def beside() -> Any:
    """How kernels are built in another process. Not an import statement: a start needs no processes."""
    return import_module("graphc.codegen.pipeline.background")


class Variants:
    """The variants of one function. `make` compiles a kernel or takes it from the cache, and gives its entry point and
    signature."""

    def __init__(self, kernel: Kernel, make: Callable[[Kernel], tuple[Any, Signature]]) -> None:
        self.kernel = kernel
        self.make = make
        self.entries: dict[Layouts | Places, Any] = {}
        self.copied: Counter[Layouts | Places] = Counter()
        self.building: dict[Layouts | Places, tuple[Kernel, Popen[bytes] | None]] = {}

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether the axes of all arguments may change places."""
        return is_pointwise(self.kernel)

    def common_order(self, values: Sequence[Any]) -> tuple[int, ...] | None:
        """The order of axes in which all arrays of a call are contiguous, where the function may be called with them in
        that order; None elsewhere."""
        arrays = [(value, leaf) for value, leaf in zip(values, self.kernel.inputs, strict=True) if leaf.ndim]
        found = _base(*arrays[0]) if arrays else None
        if found is None or not found.layout.is_permuted or not self.is_pointwise:
            return None
        shape, order = arrays[0][0].shape, found.layout.order
        if any(not _has_type(value, leaf) or value.shape != shape for value, leaf in arrays):
            return None
        return order if all(value.transpose(order).flags.c_contiguous for value, _ in arrays) else None

    def find(self, values: Sequence[Any]) -> tuple[Any, list[Based | None]] | None:
        """The entry point for the layouts of these values, and their bases, None for a value that is to be converted as
        ever; None where all are."""
        bases = [_base(value, leaf) for value, leaf in zip(values, self.kernel.inputs, strict=True)]
        key = tuple(based.layout if based else None for based in bases)
        if not any(bases):
            return None
        copied = sum(value.nbytes for value, based in zip(values, bases, strict=True) if based)
        entry = self.entry_of(key, copied, lambda: rebased(self.kernel, key), ())
        return None if entry is None else (entry, bases)

    def find_in_place(self, values: Sequence[Any], given: Sequence[Array | None]) -> Any:
        """The entry point that makes results in arguments which were given for them too (`out` is an argument); None
        where there are none, or they cannot be made there."""
        large = {place: array for place, array in enumerate(given) if array is not None and array.nbytes > MOST_COPIED}
        key = tuple((place, n) for place, array in large.items() for n, value in enumerate(values) if value is array)
        inputs = tuple(sorted({number for _, number in key}))
        if not key or len(inputs) < len(key):
            return None
        copied = sum(values[number].nbytes for number in inputs)
        return self.entry_of(key, copied, lambda: replace(self.kernel, mutable=inputs), key)

    def entry_of(self, key: Layouts | Places, copied: int, kernel_of: Callable[[], Kernel], donated: Places) -> Any:
        """The entry point of a variant; None where it is not worth a kernel yet, with these bytes copied again, is
        being built beside, or its kernel does not make exactly the results `donated` in arguments."""
        if key in self.entries:
            return self.entries[key]
        first = key not in self.copied
        self.copied[key] += copied
        if key not in self.building:
            if self.copied[key] < COPIED_FIRST and not (first and is_stored(kernel_of())):
                return None
            kernel = kernel_of()
            self.building[key] = kernel, None if is_stored(kernel) else beside().build_in_background(kernel)
        kernel, process = self.building[key]
        if process is not None and process.poll() is None:
            return None
        try:
            entry, signature = self.make(kernel)
        except CacheMissError:
            entry = None
        self.entries[key] = entry if entry is not None and signature.donated == donated else None
        return self.entries[key]

    def wait(self) -> None:
        """Until what is being built beside is there."""
        for _, process in self.building.values():
            if process is not None:
                process.wait()

    def free(self) -> None:
        """Give back the memory kept for temporaries."""
        for entry in self.entries.values():
            if entry is not None:
                entry.__self__.arena[0] = None

    def lines(self) -> list[str]:
        """What has been made, for `explain`."""
        names = [leaf.name or f"argument {number}" for number, leaf in enumerate(self.kernel.inputs)]
        return [
            "not copied: " + "; ".join(_describe(names, number, part) for number, part in enumerate(key) if part)
            for key, entry in self.entries.items()
            if entry is not None
        ]


def arguments(bases: Sequence[Based | None], arrays: Sequence[Array | None]) -> list[Any]:
    """The arguments of a variant: bases, converted arrays for the others, then the sizes of regions."""
    given: list[Any] = [based.base if based else array for based, array in zip(bases, arrays, strict=True)]
    return [*given, *(size for based in bases if based for size in based.sizes)]


def _base(value: Any, leaf: Node) -> Based | None:
    """The base of a large array of an input's type that is not contiguous."""
    if not _has_type(value, leaf) or value.nbytes <= MOST_COPIED or value.flags.c_contiguous:
        return None
    found = find_base(value)
    # Loops that go by larger steps along a row do not vectorise: a copy takes less time.
    return found if found is not None and abs(found.layout.steps[-1]) == 1 else None


def _has_type(value: Any, leaf: Node) -> bool:
    """Whether a value is an array of an input's type, whatever its layout."""
    if type(value) is not np.ndarray or value.dtype != leaf.type.dtype or value.ndim != leaf.ndim:
        return False
    return all(isinstance(size, Node) or size == own for size, own in zip(leaf.type.shape, value.shape, strict=True))


def _describe(names: Sequence[str], number: int, part: Layout | tuple[int, int]) -> str:
    """The layout of an argument, or a result that is made in one, for the reader."""
    if isinstance(part, tuple):
        return f"result {part[0]}, made in {names[part[1]]}"
    return f"{names[number]} {_words(part)}"


def _words(layout: Layout) -> str:
    order = f"with its axes in memory as {layout.order}" if layout.order != tuple(sorted(layout.order)) else ""
    steps = f"by steps of {layout.steps}" if set(layout.steps) != {1} else ""
    part = "" if all(layout.whole) else "part of a larger array"
    return ", ".join(filter(None, (order, steps, part)))
