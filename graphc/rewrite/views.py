"""Rules of views and reductions: adjacent ones are merged, trivial ones dropped, views moved past scalar ops;
reads of changed arrays become what was written there.

In: nothing. Out: `VIEWS`, `TRANSPOSES` and `REDUCTIONS`.

    A.T[0]               ->  A[:, 0]              subtensor_of_transpose, dimshuffle_twice
    A.T.sum(axis=0)      ->  A.sum(axis=1)        reduction_of_transpose
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.facts import scalar_constant
from graphc.ir.lowering import Scalar
from graphc.ir.node import OPS, Node, Size, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops.conv import in_order
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduce_max, reduce_min, reduce_sum, restore
from graphc.ops.scalar import cast, elementwise
from graphc.ops.shape import broadcast_to, dimshuffle, drop, expand, filled, iota, reshape
from graphc.rewrite.engine import CLOSE, EXACT, REAL, AnyRule, Transformation, Uses, constant_factor, plus_zero, scaled
from graphc.startup.record import record

# --- reads of arrays with changed regions -----------------------------------------------------------------------------
#     b = set_subtensor(a[3], v)      a read b[3] becomes v, b[4] becomes a[4]
#
# Programs that write to one element after the other, as unrolled loops do, make long chains of such arrays. A read of a
# known element finds the last write to it in a table (`Writes`). For other regions a few changes are compared one by
# one.

CHANGES = ("inc_subtensor", "set_subtensor")
MOST_CHANGES = 16
"""The most changed regions that are compared, and the most changes of one element that are added up."""

Position = tuple[int, ...]


@record(frozen=False, eq=False)
class Chain:
    """Arrays that are each made of the one before by a write to one element. base: the array before the first write.
    places: the writes to each element, each with its number in the chain. length: the number of writes."""

    base: Node
    places: dict[Position, list[tuple[int, Node]]]
    length: int


class Writes:
    """The chains of a graph. An array belongs to one chain, with the number of the write that made it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.chains = dict[Node, tuple[Chain, int]]()

    def of(self, array: Node) -> tuple[Chain, int] | None:
        """The chain of an array, and the number of its writes; None if no write to one element made it."""
        behind, node = [], array
        while node not in self.chains and (position := written(node)) is not None:
            behind.append((node, position))
            node = node.args[0]
        for node, position in reversed(behind):
            chain, number = self.chains.get(node.args[0], (None, 0))
            if chain is None or number != chain.length:  # another array is made of it as well
                chain, number = Chain(node.args[0], {}, 0), 0
            chain.length = number + 1
            chain.places.setdefault(position, []).append((chain.length, node))
            self.chains[node] = chain, chain.length
        return self.chains.get(array)


def written(node: Node) -> Position | None:
    """The position of the one known element that a node changes."""
    if node.op.name not in CHANGES or any(size != 1 for size in node.args[1].type.shape):
        return None
    return known([sizes.as_size(place) for place in node.args[2:]])


def known(starts: Sequence[Size]) -> Position | None:
    """Positions as numbers; None if one of them is not known."""
    numbers = [start for start in starts if isinstance(start, int)]
    return tuple(numbers) if len(numbers) == len(starts) else None


def part_of_changed(writes: Writes, node: Node, uses: Uses) -> Node | None:
    """A region of an array with changed regions becomes the changed value of the region, or a region of the array
    before the changes."""
    starts, shape, steps = region(node)
    position = known(starts) if all(size == 1 for size in shape) else None
    element_of = None if position is None else element(writes, node.args[0], position)
    before, changes = element_of or compared(node.args[0], starts, shape, (*steps,))
    if (before is node.args[0] and not changes) or (changes and node.type.dtype == "bool"):
        return None
    last = changes.pop() if changes and changes[-1].op.name == "set_subtensor" else None
    value = subtensor(before, starts, shape, steps) if last is None else last.args[1]
    for each in reversed(changes):
        value = elementwise("add", value, each.args[1])
    return value


def element(writes: Writes, array: Node, position: Position) -> tuple[Node, list[Node]] | None:
    """The array before all writes to single elements, and the writes to this element, the last one first, back to one
    that sets it. None if there are no such writes."""
    changes = list[Node]()
    before = array
    for _ in range(MOST_CHANGES):
        written = writes.of(before)
        if written is None:
            break
        chain, length = written
        for number, change in reversed(chain.places.get(position, ())):
            if number <= length:
                changes.append(change)
            if len(changes) > MOST_CHANGES or (changes and changes[-1].op.name == "set_subtensor"):
                return (before, changes) if len(changes) <= MOST_CHANGES else (array, [])
        before = chain.base
    return None if before is array else (before, changes)


def compared(
    array: Node, starts: Sequence[Size], shape: Sequence[Size], steps: tuple[int, ...]
) -> tuple[Node, list[Node]]:
    """The array before changed regions that are all equal to a region or disjoint from it, and the equal ones, the last
    one first. The array itself if one of them is neither."""
    changed, changes = array, list[Node]()
    for _ in range(MOST_CHANGES):
        if changed.op.name not in CHANGES:
            break
        before, piece, *places = changed.args
        at = [sizes.as_size(place) for place in places]
        sides = list(zip(starts, shape, at, piece.type.shape, strict=True))
        if any(step != 1 for step in (*steps, *changed.attrs["steps"])):
            return array, []
        if all(sizes.equal(start, place) and sizes.equal(size, extent) for start, size, place, extent in sides):
            changes.append(changed)
            if changed.op.name == "set_subtensor":
                return before, changes
        elif not any(
            sizes.known_at_least(place, sizes.add(start, size)) or sizes.known_at_least(start, sizes.add(place, extent))
            for start, size, place, extent in sides
        ):
            return array, []
        changed = before
    return (array, []) if changed.op.name in CHANGES else (changed, changes)


def region(node: Node) -> tuple[list[Size], list[Size], tuple[int, ...]]:
    """The starts, the sizes and the steps of a subtensor."""
    numbers = [sizes.as_size(arg) for arg in node.args[1:]]
    return numbers[: node.ndim], numbers[node.ndim :], node.attrs["steps"]


CHANGED = (Transformation("subtensor_of_changed", ("subtensor",), part_of_changed, EXACT, CHANGES, survey=Writes),)


# --- views ------------------------------------------------------------------------------------------------------------


def _join_dimshuffles(node: Node, uses: Uses) -> Node | None:
    """Two dimshuffles become one; an identity is dropped."""
    order, inner = node.attrs["order"], node.args[0]
    if order == tuple(range(inner.ndim)):
        return inner
    if inner.op.name != "dimshuffle":
        return None
    before = inner.attrs["order"]
    return dimshuffle(inner.args[0], ["x" if axis == "x" else before[axis] for axis in order])


def _lift_broadcast(node: Node, uses: Uses) -> Node | None:
    """A dimshuffle of a broadcast becomes a broadcast of a dimshuffle, so that broadcasts meet and merge."""
    inner = node.args[0]
    if inner.op.name != "broadcast_to":
        return None
    order, source = node.attrs["order"], inner.args[0]
    if any(axis not in order and not source.broadcastable[axis] for axis in range(source.ndim)):
        return None
    shape: list[Size] = [1 if axis == "x" else inner.type.shape[axis] for axis in order]
    return broadcast_to(dimshuffle(source, order), shape)


def _join_broadcasts(node: Node, uses: Uses) -> Node | None:
    """Two broadcasts become one; an identity is dropped.

    An axis of size 1 that expands must already have had size 1 in the source: the inner broadcast may be a check of
    that.
    """
    inner = node.args[0]
    if all(map(sizes.equal, inner.type.shape, node.type.shape)):
        return inner
    if inner.op.name != "broadcast_to":
        return None
    source = inner.args[0]
    expands = [was and not now for was, now in zip(inner.broadcastable, node.broadcastable, strict=True)]
    if any(expands[axis] and not source.broadcastable[axis] for axis in range(node.ndim)):
        return None
    return broadcast_to(source, node.type.shape)


def _is_expansion(node: Node) -> bool:
    """True if a dimshuffle only inserts new axes."""
    if node.op.name != "dimshuffle":
        return False
    return [axis for axis in node.attrs["order"] if axis != "x"] == list(range(node.args[0].ndim))


def _is_transpose(node: Node) -> bool:
    """True if a dimshuffle only permutes axes."""
    if node.op.name != "dimshuffle" or node.ndim != node.args[0].ndim:
        return False
    return "x" not in node.attrs["order"] and not _is_expansion(node)


def _lift(is_moved: Callable[[Node], bool], node: Node, uses: Uses) -> Node | None:
    """A scalar op of arguments with the same dimshuffle becomes that dimshuffle of the op's result."""
    moved = [arg for arg in node.args if is_moved(arg)]
    if not moved:
        return None
    order, shape = moved[0].attrs["order"], moved[0].args[0].type.shape
    numbers = [scalar_constant(arg) for arg in node.args]
    for arg, number in zip(node.args, numbers, strict=True):
        if number is None and not (is_moved(arg) and arg.attrs["order"] == order):
            return None
    if not isinstance(node.op.lower(node), Scalar):
        return None
    args = [
        arg.args[0] if number is None else filled(literal(number, arg.type.dtype), shape)
        for arg, number in zip(node.args, numbers, strict=True)
    ]
    return dimshuffle(make(node.op, args, node.attrs), order)


def _join_reshapes(node: Node, uses: Uses) -> Node | None:
    """Two reshapes become one; an identity is dropped."""
    inner = node.args[0]
    return reshape(inner.args[0] if inner.op.name == "reshape" else inner, node.type.shape)


def _join_subtensors(node: Node, uses: Uses) -> Node | None:
    """Two subtensors become one; a subtensor that takes everything is dropped."""
    inner = node.args[0]
    starts, shape, steps = region(node)
    if inner.op.name != "subtensor":
        return subtensor(inner, starts, shape, steps)
    before, _, strides = region(inner)
    joined = map(sizes.add, before, map(sizes.multiply, strides, starts))
    return subtensor(inner.args[0], list(joined), shape, [a * b for a, b in zip(strides, steps, strict=True)])


def _part_of_transpose(node: Node, uses: Uses) -> Node | None:
    """A region of a transpose becomes the transpose of a region, so that transposes meet and reductions move past."""
    turned = node.args[0]
    if not _is_transpose(turned):
        return None
    order, (starts, shape, steps) = turned.attrs["order"], region(node)
    places = sorted(range(node.ndim), key=lambda place: order[place])
    parts: list[Any] = [[numbers[place] for place in places] for numbers in (starts, shape, steps)]
    return dimshuffle(subtensor(turned.args[0], *parts), order)


def _running_of_transpose(node: Node, uses: Uses) -> Node | None:
    """A recurrence along an axis of transposes becomes the transpose of one along an axis of their operands, which are
    then read in order."""
    orders = {arg.attrs["order"] for arg in node.args if _is_transpose(arg)}
    if len(orders) != 1 or not all(map(_is_transpose, node.args)):
        return None
    (order,) = orders
    attrs = {**node.attrs, "axis": order[node.attrs["axis"]]}
    return dimshuffle(make(node.op, [arg.args[0] for arg in node.args], attrs), order)


def _part_of_joined(node: Node, uses: Uses) -> Node | None:
    """A region of a concatenation that lies within one part becomes a region of that part."""
    joined = node.args[0]
    if joined.op.name != "concatenate":
        return None
    starts, shape, steps = region(node)
    axis = joined.attrs["axis"]
    begin, count, step = starts[axis], shape[axis], steps[axis]
    offset: Size = 0
    for part in joined.args:
        size = part.type.shape[axis]
        within = step == 1 and sizes.equal(begin, offset) and sizes.equal(count, size)
        if isinstance(begin, int) and isinstance(count, int) and isinstance(offset, int) and isinstance(size, int):
            ends = begin, begin + step * (count - 1)
            within = count > 0 and offset <= min(ends) and max(ends) < offset + size
        if within:
            return subtensor(part, [*starts[:axis], sizes.subtract(begin, offset), *starts[axis + 1 :]], shape, steps)
        offset = sizes.add(offset, size)
    return None


RUNNING = ("running_sum", "running_prod", "running_extreme", "linear_recurrence")

VIEWS: tuple[AnyRule, ...] = (
    Transformation("dimshuffle_twice", ("dimshuffle",), _join_dimshuffles, EXACT),
    Transformation("dimshuffle_of_broadcast", ("dimshuffle",), _lift_broadcast, EXACT, operands=("broadcast_to",)),
    Transformation("broadcast_twice", ("broadcast_to",), _join_broadcasts, EXACT),
    Transformation("expansion_last", (), partial(_lift, _is_expansion), EXACT, operands=("dimshuffle",)),
    Transformation("reshape_twice", ("reshape",), _join_reshapes, EXACT),
    Transformation("subtensor_twice", ("subtensor",), _join_subtensors, EXACT),
    Transformation("subtensor_of_transpose", ("subtensor",), _part_of_transpose, EXACT, operands=("dimshuffle",)),
    Transformation("running_of_transpose", RUNNING, _running_of_transpose, EXACT, operands=("dimshuffle",)),
    Transformation("subtensor_of_concatenation", ("subtensor",), _part_of_joined, EXACT, operands=("concatenate",)),
    *CHANGED,
)


# --- reductions -------------------------------------------------------------------------------------------------------


def _join_reductions(node: Node, uses: Uses) -> Node | None:
    """Two reductions of one kind become one over all axes.

    Not for products of floats: in another order they may overflow.
    """
    inner = node.args[0]
    if inner.op is not node.op or uses(inner) > 1 or (node.op.name == "prod" and is_float(node.type.dtype)):
        return None
    kept = [axis for axis in range(inner.args[0].ndim) if axis not in inner.attrs["axes"]]
    axes = sorted((*inner.attrs["axes"], *(kept[axis] for axis in node.attrs["axes"])))
    return make(node.op, inner.args, {"axes": tuple(axes)})


def _reduce_nothing(node: Node, uses: Uses) -> Node | None:
    """A reduction over axes of size 1 drops them. The sum of -0.0 alone is 0.0."""
    x, axes = node.args[0], node.attrs["axes"]
    units = tuple(axis for axis in axes if sizes.equal(x.type.shape[axis], 1))
    if len(units) < len(axes):
        return None
    dropped = drop(x, axes)
    return plus_zero(dropped) if node.op.name == "sum" else dropped


def _expanded(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """For a reduction of a broadcast: its source, and the reduced axes along which it is broadcast; else None."""
    inner = node.args[0]
    if inner.op.name != "broadcast_to":
        return None
    source = inner.args[0]
    axes = tuple(a for a in node.attrs["axes"] if source.broadcastable[a] and not inner.broadcastable[a])
    return (source, axes) if axes else None


def _sum_broadcast(node: Node, uses: Uses) -> Node | None:
    """The sum of n equal terms becomes n times the term.

    For n = 0 the sum is 0 whatever the term: if n is not known, an infinite or negative term is replaced by 0 for n =
    0.
    """
    if (expanded := _expanded(node)) is None:
        return None
    (source, axes), inner = expanded, node.args[0]
    others = [a for a in node.attrs["axes"] if a not in axes]
    rest: list[Size] = [1 if a in axes else size for a, size in enumerate(inner.type.shape)]
    narrowed = broadcast_to(source, rest)
    term = drop(_sum_keeping(narrowed, others), node.attrs["axes"])
    count = sizes.product(inner.type.shape[a] for a in axes)
    if count == 0:
        return filled(literal(0, node.type.dtype), node.type.shape)
    number = scalar_constant(term)
    if isinstance(count, Node) and not (number is not None and bool(np.isfinite(number)) and not np.signbit(number)):
        some = filled(make(OPS["greater"], (count, literal(0, "int64"))), term.type.shape)
        term = make(OPS["where"], (some, term, filled(literal(0, term.type.dtype), term.type.shape)))
    times = filled(cast(as_size_node(count), node.type.dtype), term.type.shape)
    product = make(OPS["mul"], (term, times))
    return product if others or (number is not None and not np.signbit(number)) else plus_zero(product)


def _sum_keeping(x: Node, axes: list[int]) -> Node:
    """The sum over `axes`, which are kept with size 1."""
    if not axes:
        return x
    kept = iter(range(x.ndim - len(axes)))
    return dimshuffle(reduce_sum(x, axes), ["x" if axis in axes else next(kept) for axis in range(x.ndim)])


def _same_of_broadcast(node: Node, uses: Uses) -> Node | None:
    """max, min, any and all of at least one equal element are that element."""
    if (expanded := _expanded(node)) is None:
        return None
    (source, axes), inner = expanded, node.args[0]
    if axes != node.attrs["axes"] or not all(isinstance(n := inner.type.shape[a], int) and n > 0 for a in axes):
        return None
    rest: list[Size] = [1 if a in axes else size for a, size in enumerate(inner.type.shape)]
    return drop(broadcast_to(source, rest), axes)


def _sum_scaled(node: Node, uses: Uses) -> Node | None:
    """The sum of c * x becomes c times the sum."""
    inner = node.args[0]
    factored = constant_factor(inner) if uses(inner) == 1 else None
    return None if factored is None else scaled(factored[0], reduce_sum(factored[1], node.attrs["axes"]))


_JOINED = ("sum", "prod", "max", "min", "supremum", "max_or_lowest", "min_or_highest", "any", "all")


def _reduce_in_memory_order(node: Node, uses: Uses) -> Node | None:
    """A reduction of a transpose becomes a reduction of its source, which reads memory in order.

    Not for products of floats: in another order they may overflow.
    """
    (inner,) = node.args
    if not _is_transpose(inner) or (node.op.name == "prod" and is_float(node.type.dtype)):
        return None
    order, reduced = inner.attrs["order"], node.attrs["axes"]
    kept = [order[axis] for axis in range(node.args[0].ndim) if axis not in reduced]
    result = make(node.op, inner.args, {"axes": tuple(sorted(order[axis] for axis in reduced))})
    return dimshuffle(result, [sorted(kept).index(axis) for axis in kept])


_POSITION_COST = 4.0
"""An element that costs more is not computed twice to find the position of the extreme."""


def _position_of_extreme(node: Node, uses: Uses) -> Node | None:
    """argmax (argmin) over leading axes, in two passes over rows that vectorise: the extreme, then its first position.
    Over the last axes a blocked search takes one pass.

    The first NaN counts as the extreme, as in NumPy; the extreme is then NaN and equals no element.
    """
    x, axes = node.args[0], node.attrs["axes"]
    if x.type.dtype == "bool" or (x.args and x.op.cost > _POSITION_COST) or axes[0] == x.ndim - len(axes):
        return None
    extreme = restore(node, (reduce_max if node.op.name == "argmax" else reduce_min)(x, axes))
    is_extreme = elementwise("equal", x, extreme)
    if is_float(x.type.dtype):
        is_extreme = elementwise("logical_or", is_extreme, elementwise("isnan", x))
    place = filled(literal(0), x.type.shape)
    for axis in axes:
        steps = expand(iota(x.type.shape[axis]), [a for a in range(x.ndim) if a != axis])
        wide = broadcast_to(steps, x.type.shape)
        extent = filled(as_size_node(x.type.shape[axis]), x.type.shape)
        place = elementwise("add", elementwise("mul", place, extent), wide)
    nowhere = filled(literal(np.iinfo(np.int64).max), x.type.shape)
    return reduce_min(elementwise("where", is_extreme, place, nowhere), axes)


def _written_in_order(node: Node, uses: Uses) -> Node | None:
    """A transposed convolution, with no other use, becomes one that stores its result in that order."""
    order, inner = node.attrs["order"], node.args[0]
    kept = [axis for axis in order if axis != "x"]
    if inner.op.name != "conv" or uses(inner) > 1 or kept == list(range(inner.ndim)):
        return None
    places = iter(range(len(kept)))
    return dimshuffle(in_order(inner, kept), ["x" if axis == "x" else next(places) for axis in order])


TRANSPOSES: tuple[AnyRule, ...] = (
    Transformation("conv_of_transpose", ("dimshuffle",), _written_in_order, EXACT, operands=("conv",)),
    Transformation("transpose_last", (), partial(_lift, _is_transpose), EXACT, operands=("dimshuffle",)),
    Transformation("reduction_of_transpose", _JOINED, _reduce_in_memory_order, CLOSE, operands=("dimshuffle",)),
)
"""These run after the rules that match products of transposed matrices, and move transposes past other ops."""


REDUCTIONS: tuple[AnyRule, ...] = (
    Transformation("reduce_twice", _JOINED, _join_reductions, CLOSE, operands=_JOINED),
    Transformation("reduce_unit_axes", _JOINED, _reduce_nothing, CLOSE),
    Transformation("sum_of_broadcast", ("sum",), _sum_broadcast, CLOSE, operands=("broadcast_to",)),
    Transformation(
        "extreme_of_broadcast", ("max", "min", "any", "all"), _same_of_broadcast, EXACT, operands=("broadcast_to",)
    ),
    Transformation("position_of_extreme", ("argmax", "argmin"), _position_of_extreme, EXACT),
    Transformation("sum_scaled", ("sum",), _sum_scaled, REAL),
)
