"""Operands of external functions that take strides: the part of a buffer that a value is.

In: a node. Out: a `Strided`. Transposes, slices and broadcasts of what lies in memory anyway are not copied; neither is
a reshape of all of it, because every buffer is contiguous.
"""

from __future__ import annotations

from graphc.codegen.schedule.plan import is_bufferless
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.node import LEAVES, Node, Size
from graphc.ops.linalg.products import is_in_memory
from graphc.startup.record import record


@record()
class Along:
    """Where an operand stands along one axis of the buffer: from `start` on, by `step` for each step along the
    operand's own `axis` (None: at `start` alone)."""

    axis: int | None
    step: int
    start: Size


@record(eq=False)
class Strided:
    """`base` is the node whose buffer it is, seen as an array of `shape`, one `Along` for each of its axes."""

    base: Node
    shape: tuple[Size, ...]
    along: tuple[Along, ...]


def strided(operand: Node, sizing: Sizing) -> Strided:
    """What an operand is part of: itself, where it has to be computed for the call.

    A reshape to sizes that guards say it has already only states that they are equal.
    """
    node, along = operand, tuple(Along(axis, 1, 0) for axis in range(operand.ndim))
    keep = is_in_memory(operand)
    while True:
        match node.op.name:
            case "dimshuffle":
                order = node.attrs["order"]
                axes = range(node.args[0].ndim)
                along = tuple(along[order.index(axis)] if axis in order else Along(None, 0, 0) for axis in axes)
            case "broadcast_to":
                source = node.args[0]
                spread = zip(source.broadcastable, node.broadcastable, along, strict=True)
                along = tuple(Along(None, 0, 0) if was and not now else part for was, now, part in spread)
            case "subtensor" if keep:
                starts = map(sizes.as_size, node.args[1 : node.ndim + 1])
                along = tuple(map(_within, along, starts, node.attrs["steps"]))
            case "reshape" if sizing.shape(node) == sizing.shape(node.args[0]):
                pass
            case _:
                break
        node = node.args[0]
    shape = node.type.shape
    while node.op.name == "reshape":
        node = node.args[0]
    if node.op in LEAVES and is_bufferless(node):
        return Strided(operand, operand.type.shape, tuple(Along(axis, 1, 0) for axis in range(operand.ndim)))
    return Strided(node, shape, along)


def _within(part: Along, start: Size, step: int) -> Along:
    """A part of a region that itself begins at `start` and goes by `step`."""
    return Along(part.axis, part.step * step, sizes.add(start, sizes.multiply(part.start, step)))
