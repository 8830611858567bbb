"""Layouts of arguments that are not contiguous, and kernels that read them without a copy.

In: an array, and a kernel. Out: its `Layout` as a view of a contiguous array of the same rank, the *base*; the kernel
whose input is the base, and which takes the view itself.

A layout has the order of axes in the base and, for each axis, a step, negative where it goes backwards. This covers
transposes, Fortran order, reversed axes and all slices with steps. Order and steps are constants of the kernel; sizes
are not, so that all transposed matrices share one kernel.

    array                     base B      layout                                  in the kernel
    B.T                       B           order (1, 0), steps (1, 1), whole       x = B.T
    B[::-1]                   B           order (0, 1), steps (-1, 1)             x = B[n-1::-1]
    B[:, 0 : 2*n : 2]         B           order (0, 1), steps (1, 2)              x = B[:, 0 : 2*n : 2], n an argument
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd

from numpy.lib.stride_tricks import as_strided

from graphc.codegen.pipeline.kernel import Kernel
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import INPUT, LEAVES, Array, Node, Size, variable
from graphc.ir.walk import node_set, substitute
from graphc.ops.index import subtensor
from graphc.ops.shape import dimshuffle
from graphc.startup.record import record, replace


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
class Based:
    """An array as a layout, its base, and the array's sizes along the axes that are not whole."""

    layout: Layout
    base: Array
    sizes: tuple[int, ...]


def find_base(array: Array) -> Based | None:
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
    return Based(layout, base, tuple(array.shape[axis] for axis, all_ in zip(order, whole, strict=True) if not all_))


def _axes(array: Array) -> list[tuple[int, int]]:
    return list(zip(array.strides, array.shape, strict=True))


def rebased(kernel: Kernel, layouts: Sequence[Layout | None]) -> Kernel:
    """Return the kernel that takes the bases of the inputs that have a layout, then the sizes of `Based` as int64."""
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
    """Return the variables of an input's base and of its sizes, and note in `views` the view that replaces the
    input."""
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
    view = subtensor(base, starts, shape, layout.steps)
    views[leaf] = dimshuffle(view, [layout.order.index(axis) for axis in range(leaf.ndim)])
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
