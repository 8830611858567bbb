"""Arguments that are not contiguous, read where they stand: the graph for such a layout, and the arrays it takes.

In: arrays as users give them, and a kernel. Out: a `Layout` for each array that is a view of a contiguous one; the
kernel whose inputs are those contiguous ones, so that it is compiled, cached and called like any; and its arguments.

A layout says how an array lies in a contiguous one, its base, of the same rank: with its axes in another order, in each
axis a region that goes by a fixed step, backwards where that is negative. Transposes, Fortran order, reversed axes and
every slice with steps are such. The steps and the order of axes are part of the code; the sizes of base and region are
not, so that all transposed matrices share a kernel.

    x = B.T                            Fortran order, or a transpose
    x = B[::-1]                        reversed
    x = B[:, 0 : 2*n : 2]              every other column: n is one more argument, for B's rows may be longer
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
    """How an array lies in its base: `order` are the array's axes as the base has them, outermost first; `steps` go
    along the base's axes. `whole`: the base has nothing else along that axis."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    whole: tuple[bool, ...]

    @property
    def is_permuted(self) -> bool:
        """Whether the base is the array with its axes in another order, and nothing else."""
        return all(self.whole) and set(self.steps) <= {1}


@record(eq=False)
class Based:
    """An array in its base: the base, and the sizes of the region along those of its axes that are not whole."""

    layout: Layout
    base: Array
    sizes: tuple[int, ...]


def find_base(array: Array) -> Based | None:
    """The base of an array of at least one element; None where it is no region of a contiguous one of its rank.

    The base may reach beyond the array's memory, by less than one of its rows: it is for a kernel, which reads the
    region alone.
    """
    item = array.itemsize
    if not array.flags.aligned or any(stride % item or (not stride and n > 1) for stride, n in _axes(array)):
        return None
    strides = [stride // item for stride in array.strides]
    # Along an axis of one element the stride says nothing: such axes come first.
    order = sorted(range(array.ndim), key=lambda axis: (array.shape[axis] > 1, -abs(strides[axis])))
    long = [axis for axis in order if array.shape[axis] > 1]
    # What lies inside of each axis: the last has elements, an outer one what all strides from there outwards divide by.
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
    """The kernel that takes the bases of the inputs that have a layout; the sizes of their regions follow as int64, in
    order."""
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
    """The base of an input and the sizes it is given beside it; notes the view that the input becomes in `views`."""
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
    """Where a region begins that ends at 0 where it goes backwards."""
    if step > 0:
        return 0
    return sizes.multiply(sizes.add(size, -1), -step)


def is_pointwise(kernel: Kernel) -> bool:
    """Whether every element of every result is made of those of the inputs at the same index, so that the axes of all
    may change places together: inputs and results have one rank, others are scalars, and nothing else is stored."""
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
