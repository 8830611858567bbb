"""The kernels of variants (variants.py): a kernel whose large inputs are the bases of arrays that are not contiguous.

In: a kernel, the layouts of its arguments. Out: a kernel over the bases. Or: whether a function is elementwise.

    rebased(kernel of x * 2, [layout of B.T])     x is the transposed of a new input B
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.pipeline.kernel import Kernel
from graphc.functions.layouts import Layout
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import INPUT, LEAVES, Node, Size, variable
from graphc.ir.walk import node_set, substitute
from graphc.ops.index import subtensor
from graphc.ops.shape import dimshuffle
from graphc.startup.record import replace


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
