"""All pairs of the rows of two matrices: the features that are summed over move outside the rows of the second.

In: nothing. Out: `PAIRS`, the rules. In `((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)` the innermost loop is that
over the features, of which there are few, three in space, and its length is known only when the kernel runs. With the
last two axes of everything below the reduction exchanged, the innermost loop is that over the rows of `y`, of which
there are many, and which vectorises; the plan then keeps a transposed copy of `y`.
"""

from __future__ import annotations

from graphc.ir.lowering import Scalar
from graphc.ir.node import Node, make
from graphc.ops.reduce import reduction
from graphc.ops.shape import broadcast_to, dimshuffle
from graphc.rewrite.rules.engine import CLOSE, AnyRule, Transformation, Uses

MOST_NODES = 64
"""Expressions of more nodes are left as they are, so that looking at many reductions takes time linear in the graph."""
MOST_FEATURES = 16
"""Of more than these, where their number is known, the loop over them is worth vectorising."""
SWAPPED = (0, 2, 1)


def _exchange(node: Node, uses: Uses) -> Node | None:
    """A reduction over all pairs, the last two axes of its operand exchanged."""
    (operand,) = node.args
    summed: tuple[int, ...] = node.attrs["axes"]
    if operand.ndim != 3 or len(summed) != 1:
        return None
    order = _elementwise_below(operand)
    leaves = [leaf for leaf in order if not _is_elementwise(leaf)]
    present = [_axes_of(leaf) for leaf in leaves]
    if len(order) >= MOST_NODES or None in present or not {(0, 2), (1, 2)} <= set(present):
        return None
    features = operand.type.shape[2]
    many = isinstance(features, int) and features > MOST_FEATURES
    if many or any(_is_exchanged(leaf) for leaf, axes in zip(leaves, present, strict=True) if axes == (1, 2)):
        return None
    swapped: dict[Node, Node] = {}
    for each in order:
        if each in leaves:
            shape = [each.type.shape[axis] for axis in SWAPPED]
            swapped[each] = broadcast_to(dimshuffle(each.args[0], SWAPPED), shape)
        else:
            swapped[each] = make(each.op, [swapped[arg] for arg in each.args], each.attrs)
    reduced = reduction(node.op.name, swapped[operand], (SWAPPED[summed[0]],))
    return dimshuffle(reduced, (1, 0)) if summed == (0,) else reduced


def _elementwise_below(root: Node) -> list[Node]:
    """The elementwise expression that ends in `root`, arguments first, down to what is not elementwise."""
    order: dict[Node, None] = {}
    pending: list[tuple[Node, bool]] = [(root, False)]
    while pending and len(order) < MOST_NODES:
        node, ready = pending.pop()
        if node in order:
            continue
        if ready or not _is_elementwise(node):
            order[node] = None
            continue
        pending.append((node, True))
        pending.extend((arg, False) for arg in node.args)
    return list(order)


def _is_elementwise(node: Node) -> bool:
    return bool(node.args) and isinstance(node.op.lower(node), Scalar)


def _axes_of(leaf: Node) -> tuple[int, ...] | None:
    """The axes along which a leaf is not broadcast; None where it is an array of its own."""
    if leaf.op.name != "broadcast_to" or leaf.args[0].ndim != leaf.ndim:
        return None
    return tuple(axis for axis, size in enumerate(leaf.args[0].type.shape) if size != 1)


def _is_exchanged(leaf: Node) -> bool:
    """Whether the last two axes of a leaf lie in memory the other way round."""
    under = leaf.args[0]
    if under.op.name != "dimshuffle":
        return False
    outer, inner = under.attrs["order"][-2:]
    return isinstance(outer, int) and isinstance(inner, int) and outer > inner


PAIRS: tuple[AnyRule, ...] = (
    Transformation("exchange_pairs", ("sum", "prod", "max", "min", "any", "all"), _exchange, CLOSE),
)
