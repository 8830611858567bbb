"""Disjoint regions added to zeros become one array assembled from parts, each stored once.

In: a graph. Out: an equal graph, and what fired:

    inc_subtensor(inc_subtensor(zeros(n), a, 0), b, k)     with a in [0, k) and b in [k, n)
    -> concatenate([a + 0.0, b + 0.0])

Such chains are gradients of arrays that are read in parts: a parameter vector cut into named slices, or the elements of
a sequence in an unrolled loop. Bounds may be symbolic if their order is provable. Gaps are filled with zeros; with many
gaps, zeros are stored first and the regions over them.

Adding 0.0 turns -0.0 into 0.0, as adding a region to zeros does.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import sizes
from graphc.ir.node import Node, Size, constant_value, literal
from graphc.ir.sizes import as_size
from graphc.ir.walk import Graph, rebuilt
from graphc.ops.assemble import assemble
from graphc.ops.shape import concatenate, filled
from graphc.rewrite.rules.engine import Fired, Visit, is_number, place_new, plus_zero, tell
from graphc.startup.record import record

STORED = "store_regions"
"""The name of this pass."""
MOST_GAPS = 4
"""With more gaps than this, the whole array is zeroed first."""


@record()
class Region:
    """A part along an axis: elements from `start` to `stop`, or to the end of the axis if that comes first or `stop` is
    None. `end` = start + size."""

    value: Node
    start: Size
    stop: Size | None
    end: Size


class Equalities:
    """Equality of sizes, as far as guards imply it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes: Sequence[Node] | None = nodes
        self.other: dict[Size, Size] = {}

    def holds(self, left: Size, right: Size) -> bool:
        return sizes.equal(left, right) or sizes.equal(self.one(left), self.one(right))

    def one(self, size: Size) -> Size:
        """The representative of the sizes equal to this one."""
        if self.nodes is not None:
            nodes, self.nodes = self.nodes, None
            for guard in (guard for node in nodes for guard in node.op.guards(node) if guard.relation == "=="):
                left, right = self.one(guard.left), self.one(guard.right)
                if not sizes.equal(left, right):
                    drop, keep = (right, left) if isinstance(left, int) else (left, right)
                    self.other[drop] = keep
        while size in self.other:
            size = self.other[size]
        return size


def store_regions(graph: Graph) -> tuple[Graph, list[Fired]]:
    """The graph with chains of `inc_subtensor` over zeros rewritten as assembled parts."""
    visit = Visit.of(graph.outputs)
    inner: set[Node] = set()
    done: dict[Node, Node] = {}
    fired: list[Fired] = []
    equal = Equalities(visit.order)
    for node in reversed(visit.order):
        if node.op.name != "inc_subtensor" or node in inner:
            continue
        links = [node]
        while (base := links[-1].args[0]).op is node.op and visit.uses[base] == 1:
            links.append(base)
        inner.update(links)
        whole = stored(links, equal) if is_number(base, 0.0) and node.type.dtype != "bool" else None
        if whole is not None:
            done[node] = whole
            fired.append(Fired.at(STORED, node))
    if not fired:
        return graph, []
    ready: dict[Node, Node] = {}
    for node in visit.order:  # what a chain is made of may hold other chains
        if node in done:
            ready[node] = rebuilt(ready, done[node])
            place_new(ready[node], node.where, node.serial)
    after = Graph(graph.inputs, tuple([rebuilt(ready, output) for output in graph.outputs]))
    tell(STORED, graph, after)
    return after, fired


def stored(links: Sequence[Node], equal: Equalities) -> Node | None:
    """One array assembled from a chain of regions; None if two may overlap."""
    node = links[0]
    if not node.ndim:
        return None
    axes = {axis for link in links for axis in range(node.ndim) if not is_all_of(link, axis, equal)}
    if len(axes) > 1:
        return None
    axis = min(axes, default=0)
    length = node.type.shape[axis]
    regions = in_order([region(link, axis) for link in links])
    if regions is None:
        return None
    gaps = gaps_between(regions, axis, node)
    if not gaps and all(isinstance(size, int) for size in (length, *(each.end for each in regions))):
        return concatenate([plus_zero(each.value) for each in regions], axis)
    if len(gaps) > MOST_GAPS:
        gaps = [Region(zeros_of(node, node.type.shape), 0, None, length)]
    parts = [*((gap.value, gap.start) for gap in gaps), *((plus_zero(each.value), each.start) for each in regions)]
    whole = assemble([value for value, _ in parts], [start for _, start in parts], node.type.shape, axis)
    return whole if whole.type == node.type else None


def is_all_of(link: Node, axis: int, equal: Equalities) -> bool:
    """True if a region covers the whole axis."""
    size, start = link.args[1].type.shape[axis], as_size(link.args[2 + axis])
    return sizes.equal(start, 0) and equal.holds(size, link.type.shape[axis]) and link.attrs["steps"][axis] == 1


def region(link: Node, axis: int) -> Region | None:
    """The region that a link writes along an axis; None if its elements are not adjacent."""
    value, start = link.args[1], as_size(link.args[2 + axis])
    size, length = value.type.shape[axis], link.type.shape[axis]
    if link.attrs["steps"][axis] != 1 and size != 1:
        return None
    end = sizes.add(start, size)
    cut = size
    if isinstance(size, Node) and size.op.name == "maximum" and constant_value(size.args[1]) == 0:
        cut = as_size(size.args[0])  # of a slice that may be empty
    stop = sizes.add(cut, start) if isinstance(start, int) else added(cut, start)
    if stop is None:
        return None
    if sizes.equal(stop, length):
        return Region(value, start, None, end)
    if isinstance(stop, Node) and stop.op.name == "minimum":
        bounds = [as_size(arg) for arg in stop.args]
        if any(sizes.equal(bound, length) for bound in bounds):
            stop = next((bound for bound in bounds if not sizes.equal(bound, length)), stop)
    return Region(value, start, stop, end)


def added(size: Size, start: Node) -> Size | None:
    """The end of a part from its start and its size, which may have been computed as end - start."""
    if isinstance(size, Node) and size.op.name == "sub" and size.args[1] is start:
        return as_size(size.args[0])
    return sizes.add(start, size)


def in_order(regions: Sequence[Region | None]) -> list[Region] | None:
    """The regions sorted so that none begins before its predecessor ends; None if that cannot be proved."""
    known = [each for each in regions if each is not None]
    if len(known) < len(regions):
        return None
    if all(isinstance(each.start, int) for each in known):
        known.sort(key=lambda each: (each.start, each.stop is None, each.stop if isinstance(each.stop, int) else 0))
        orders = [known]
    else:
        orders = [known, known[::-1]]
    return next(
        (
            order
            for order in orders
            if all(map(is_before, order, order[1:])) and sizes.known_nonnegative(order[0].start)
        ),
        None,
    )


def is_before(one: Region, other: Region) -> bool:
    """True if a region is proved to end at or before the start of another."""
    return (
        one.stop is not None
        and sizes.known_at_least(other.start, one.start)
        and sizes.known_at_least(other.start, one.stop)
    )


def gaps_between(regions: Sequence[Region], axis: int, node: Node) -> list[Region]:
    """Zeros for the elements that no region covers."""
    length = node.type.shape[axis]
    gaps: list[Region] = []
    end: Size = 0
    reached: Size | None = 0
    for each in regions:
        if reached is not None and not sizes.equal(reached, each.start):
            gaps.append(gap(node, axis, end, sizes.minimum(each.start, length)))
        end, reached = each.end, each.stop
    if reached is not None and not sizes.equal(reached, length):
        gaps.append(gap(node, axis, end, length))
    return gaps


def gap(node: Node, axis: int, start: Size, stop: Size) -> Region:
    size = sizes.maximum(sizes.subtract(stop, start), 0)
    shape = (*node.type.shape[:axis], size, *node.type.shape[axis + 1 :])
    return Region(zeros_of(node, shape), start, stop, stop)


def zeros_of(node: Node, shape: Sequence[Size]) -> Node:
    return filled(literal(0, node.type.dtype), shape)
