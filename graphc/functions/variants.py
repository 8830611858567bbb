"""Variants of a function: further kernels of its graph that spare the copy of large arguments.

In: the arguments of a call that the entry point has refused. Out: the entry point of a variant that takes them as they
are; or None, and the caller copies them. A variant is compiled only for arrays that are worth it, and not at once, for
compiling takes as long as copying COPIED_FIRST bytes.

    f(B.T)          B large: a variant whose input is B, for all transposed matrices
    f(x, out=x)     x large: a variant whose result is made in the array of x

`Variants.entry_of` is the decision: which variants exist, are being compiled, or are not worth it yet.

A `Layout` shows an array as a view of a contiguous array of the same rank, the *base*, which is the variant's input. It
has the order of axes in the base and, for each axis, a step, negative where it goes backwards. This covers transposes,
Fortran order, reversed axes and all slices with steps. Order and steps are constants of the kernel; sizes are not, so
that all transposed matrices share one kernel.

    array                     base B      layout                                  in the kernel
    B.T                       B           order (1, 0), steps (1, 1), whole       x = B.T
    B[::-1]                   B           order (0, 1), steps (-1, 1)             x = B[n-1::-1]
    B[:, 0 : 2*n : 2]         B           order (0, 1), steps (1, 2)              x = B[:, 0 : 2*n : 2], n an argument
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from math import gcd
from typing import Any, Literal

from numpy.lib.stride_tricks import as_strided

from graphc.arrays.array import OWN
from graphc.codegen.call.signature import MOST_COPIED, Signature
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import CacheMissError
from graphc.functions.callables import building
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import INPUT, LEAVES, Array, Node, Size, variable
from graphc.ir.walk import node_set, substitute
from graphc.startup.record import record, replace

# --- layouts ----------------------------------------------------------------------------------------------------------


@record()
class Layout:
    """An array as a view of its base. order: the array's axes in the order of the base, outermost first. steps: along
    each axis of the base. whole: the array covers that axis of the base."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    whole: tuple[bool, ...]

    @property
    def is_permuted(self) -> bool:
        """True where the array is the whole base with its axes in another order."""
        return all(self.whole) and set(self.steps) <= {1}


@record(eq=False)
class LayoutView:
    """An array as a layout, its base, and the array's sizes along the axes that are not whole."""

    layout: Layout
    base: Array
    sizes: tuple[int, ...]


def find_base(array: Array) -> LayoutView | None:
    """Return the base of an array with elements; None where the array is no view of a contiguous array of its rank.

    The base may reach beyond the memory of the array, by less than a row of the base. A kernel may take it, for it
    reads the elements of the array alone.
    """
    item = array.itemsize
    if not array.flags.aligned or any(stride % item or (not stride and n > 1) for stride, n in _axes(array)):
        return None
    strides = [stride // item for stride in array.strides]
    # Along an axis of one element the stride says nothing: such axes come first.
    order = sorted(range(array.ndim), key=lambda axis: (array.shape[axis] > 1, -abs(strides[axis])))
    long = [axis for axis in order if array.shape[axis] > 1]
    # The unit of each axis in elements: 1 for the last, for an outer one the divisor of all strides from there
    # outwards.
    divisors = [*accumulate((abs(strides[axis]) for axis in long), gcd)]
    units = [*divisors[:-1], 1][: len(long)]
    steps, lengths, whole = [1] * (array.ndim - len(long)), [1] * (array.ndim - len(long)), [True] * array.ndim
    for place, (axis, unit) in enumerate(zip(long, units, strict=True)):
        step = abs(strides[axis]) // unit
        extent = (array.shape[axis] - 1) * step + 1
        length = units[place - 1] // unit if place else extent
        if length < extent:
            return None
        whole[len(steps)] = length == extent and step == 1
        steps.append(step if strides[axis] > 0 else -step)
        lengths.append(length)
    forward = array[tuple(slice(None, None, -1 if stride < 0 and n > 1 else None) for stride, n in _axes(array))]
    own = [*accumulate((item, *lengths[:0:-1]), lambda stride, length: stride * length)][::-1]
    base = as_strided(forward, lengths, own)
    layout = Layout(tuple(order), tuple(steps), tuple(whole))
    return LayoutView(
        layout, base, tuple(array.shape[axis] for axis, all_ in zip(order, whole, strict=True) if not all_)
    )


def _axes(array: Array) -> list[tuple[int, int]]:
    return list(zip(array.strides, array.shape, strict=True))


# --- variants ---------------------------------------------------------------------------------------------------------


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
    """The variants of one function. load: compiles a kernel, or takes it from the cache: entry point and signature."""

    def __init__(self, kernel: Kernel, load: Callable[[Kernel], tuple[Any, Signature]]) -> None:
        self.kernel = kernel
        self.load = load
        self.variants: dict[Key, Variant] = {}

    @cached_property
    def is_pointwise(self) -> bool:
        """True where the axes of all arguments may be permuted together."""
        return is_pointwise(self.kernel)

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
        entry = self.entry_of(key, copied, lambda: rebased(self.kernel, key), ())
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
    if type(value) not in OWN or value.dtype != leaf.type.dtype or value.ndim != leaf.ndim:
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


# --- kernels of variants ----------------------------------------------------------------------------------------------


def rebased(kernel: Kernel, layouts: Sequence[Layout | None]) -> Kernel:
    """Return the kernel that takes the bases of the inputs that have a layout, then sizes (`LayoutView`) as int64."""
    inputs: list[Node] = []
    extents: list[Node] = []
    views: dict[Node, Node] = {}
    for leaf, layout in zip(kernel.inputs, layouts, strict=True):
        if layout is None:
            inputs.append(leaf)
            continue
        base, own = _view(leaf, layout, views)
        inputs.append(base)
        extents += own
    count = len(kernel.outputs)
    results = substitute(kernel.results, views)
    updates = tuple((leaf, new) for (leaf, _), new in zip(kernel.updates, results[count:], strict=True))
    mutable = tuple(number for number in kernel.mutable if layouts[number] is None)
    outputs = tuple(results[:count])
    return replace(kernel, inputs=(*inputs, *extents), outputs=outputs, updates=updates, mutable=mutable)


def _view(leaf: Node, layout: Layout, views: dict[Node, Node]) -> tuple[Node, list[Node]]:
    """Return the variables of an input's base and of its sizes; `views` gets the view that replaces the input."""
    declared = [leaf.type.shape[axis] for axis in layout.order]
    known = [size if isinstance(size, int) else None for size in declared]
    base = variable(leaf.type.dtype, [size if all_ else None for size, all_ in zip(known, layout.whole, strict=True)])
    base.name = leaf.name
    extents: list[Node] = []
    shape: list[Size] = []
    for axis, (size, all_) in enumerate(zip(known, layout.whole, strict=True)):
        if all_ or size is not None:
            shape.append(base.type.shape[axis] if size is None else size)
            continue
        extents.append(variable("int64", ()))
        shape.append(extents[-1])
    starts = [_start(size, step) for size, step in zip(shape, layout.steps, strict=True)]
    index, shapes = import_module("graphc.ops.index"), import_module("graphc.ops.shape")  # which few calls need
    view = index.subtensor(base, starts, shape, layout.steps)
    views[leaf] = shapes.dimshuffle(view, [layout.order.index(axis) for axis in range(leaf.ndim)])
    return base, extents


def _start(size: Size, step: int) -> Size:
    """The first index of a region: 0, or with a negative step the one from which it ends at 0."""
    if step > 0:
        return 0
    return sizes.multiply(sizes.add(size, -1), -step)


def is_pointwise(kernel: Kernel) -> bool:
    """True where each element of a result depends on the elements of the inputs at the same index alone, so that the
    axes of all may be permuted together. Inputs and results have one rank, or are scalars; there are no updates."""
    ranks = {node.ndim for node in (*kernel.inputs, *kernel.outputs) if node.ndim}
    if len(ranks) != 1 or kernel.updates or any(node.ndim for node in kernel.shared):
        return False
    if not all(node.ndim for node in kernel.outputs) or any(
        isinstance(size, int) for node in kernel.inputs for size in node.type.shape
    ):
        return False
    return all(map(_keeps_index, node_set(kernel.outputs)))


def _keeps_index(node: Node) -> bool:
    if node.op in LEAVES:
        return node.op is INPUT or not node.ndim
    if node.op.name in ("dimshuffle", "broadcast_to"):
        return all(size == 1 for size in node.args[0].type.shape)
    return not node.ndim or isinstance(node.op.lower(node), Scalar)
