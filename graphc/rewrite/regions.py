"""Sums of zeros with scattered parts: disjoint regions become one array assembled from parts, each stored once;
scatters into zeros that are added to an array become scatters into that array.

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

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.facts import below_broadcasts
from graphc.ir.node import Node, Size, constant_value, literal, make
from graphc.ir.sizes import as_size
from graphc.ir.walk import Graph, rebuilt
from graphc.ops.scalar import elementwise
from graphc.ops.shape import assemble, concatenate, filled
from graphc.rewrite.engine import (
    CLOSE,
    EXACT,
    NUMBERS,
    AnyRule,
    RuleUse,
    Transformation,
    Uses,
    Visit,
    is_number,
    plus_zero,
    scaled,
    set_user_line,
    tell,
)
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


def store_regions(graph: Graph) -> tuple[Graph, list[RuleUse]]:
    """The graph with chains of `inc_subtensor` over zeros rewritten as assembled parts."""
    visit = Visit.of(graph.outputs)
    inner: set[Node] = set()
    done: dict[Node, Node] = {}
    fired: list[RuleUse] = []
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
            fired.append(RuleUse.at(STORED, node))
    if not fired:
        return graph, []
    ready: dict[Node, Node] = {}
    for node in visit.order:  # what a chain is made of may hold other chains
        if node in done:
            ready[node] = rebuilt(ready, done[node])
            set_user_line(ready[node], node.where, node.serial)
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
    orders = [known, known[::-1]]
    if all(isinstance(each.start, int) for each in known):
        known.sort(key=lambda each: (each.start, each.stop is None, each.stop if isinstance(each.stop, int) else 0))
        orders = [known]
    for order in orders:
        if all(map(is_before, order, order[1:])) and sizes.known_nonnegative(order[0].start):
            return order
    return None


def is_before(one: Region, other: Region) -> bool:
    """True if a region is proved to end at or before the start of another."""
    bounds = (one.start, one.stop)
    return all(bound is not None and sizes.known_at_least(other.start, bound) for bound in bounds)


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


# --- rules ------------------------------------------------------------------------------------------------------------
# The gradient of `table[rows]` is an array like the table, zero except in the rows looked up; a gradient descent step
# adds a multiple of it to the table. Only those rows need to change:
#
#     table - 0.1 * inc_gather(zeros, g, rows)   ->   inc_gather(table, -0.1 * g, rows)
#
# Adjacent regions of zeros become a concatenation.


INCREMENTS = ("inc_gather", "inc_subtensor")
MOST_LINKS = 16
"""The longest chain of scatters that is moved to another base at once: a sum of many terms is rewritten term by
term."""


def _into_sum(node: Node, uses: Uses) -> Node | None:
    """a + c * inc_gather(zeros, y) becomes inc_gather(a, c * y), for a known factor c; likewise a - …, regions, and
    chains."""
    sign = -1.0 if node.op.name == "sub" else 1.0
    left, right = node.args
    sums: list[tuple[int, Node, list[Node], float]] = []
    for base, added in ((left, right), (right, left))[: 2 if sign > 0 else 1]:
        factor = sign
        # one number at most: two may be in range where their product is not
        while uses(added) == 1 and (scaled := _scaled(added)) is not None and 1 in (abs(factor), abs(scaled[0])):
            factor, added = factor * scaled[0], scaled[1]
        links = _from_zeros(added, uses)
        if links and np.isfinite(factor):
            sums.append((len(links), base, links, factor))
    if not sums:
        return None
    _, result, links, factor = min(sums, key=lambda each: each[0])
    for link in links:
        _, value, *where = link.args
        result = make(link.op, (result, _times(value, factor), *where), link.attrs)
    return result


def _from_zeros(node: Node, uses: Uses) -> list[Node]:
    """The chain of scatters, first to last, that builds a node from zeros; empty for any other node."""
    links: list[Node] = []
    while len(links) < MOST_LINKS and uses(node) == 1 and node.op.name in INCREMENTS and is_float(node.type.dtype):
        links.append(node)
        node = node.args[0]
        if _number(node) == 0.0:
            return links[::-1]
    return []


def _scaled(node: Node) -> tuple[float, Node] | None:
    """(c, x) of a product with a constant number; None for any other node."""
    if node.op.name == "neg":
        return -1.0, node.args[0]
    if node.op.name == "mul":
        for factor, other in (node.args, node.args[::-1]):
            value = _number(factor)
            if value is not None:
                return value, other
    return None


def _number(node: Node) -> float | None:
    """The number that all elements equal, if known."""
    value = constant_value(below_broadcasts(node))
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _times(value: Node, factor: float) -> Node:
    if factor in (1.0, -1.0):
        return value if factor > 0 else elementwise("neg", value)
    return scaled(factor, value)


MOST_REGIONS = 64
"""The longest chain of regions: each link examines all links before it."""


def _side_by_side(node: Node, uses: Uses) -> Node | None:
    """Regions added to zeros that tile an array become a concatenation. Adding 0.0 turns -0.0 into 0.0, as adding a
    region to zeros does."""
    links: list[Node] = []
    base = node
    while base.op is node.op and len(links) < MOST_REGIONS and (not links or uses(base) == 1):
        links.append(base)
        base = base.args[0]
    shape = [size for size in node.type.shape if isinstance(size, int)]
    if len(shape) < max(node.ndim, 1) or not is_number(base, 0.0) or node.type.dtype == "bool":
        return None
    if any(step != 1 for link in links for step in link.attrs["steps"]):
        return None
    cut = {axis for link in links for axis, size in enumerate(link.args[1].type.shape) if size != shape[axis]}
    axis = min(cut, default=0)
    places = {link: as_size(link.args[2 + axis]) for link in links}
    begins = {place: link.args[1] for link, place in places.items() if isinstance(place, int)}
    pieces = [begins[place] for place in sorted(begins)]
    ends: list[Size] = [0]
    for piece in pieces:
        ends.append(sizes.add(ends[-1], piece.type.shape[axis]))
    if len(cut) > 1 or len(pieces) < len(links) or ends != [*sorted(begins), shape[axis]]:
        return None
    return concatenate([plus_zero(piece) for piece in pieces], axis)


REGIONS: tuple[AnyRule, ...] = (
    Transformation("regions_of_zeros", ("inc_subtensor",), _side_by_side, EXACT, ("inc_subtensor", *NUMBERS)),
)

SCATTERS: tuple[AnyRule, ...] = (
    Transformation("scatter_into_sum", ("add", "sub"), _into_sum, CLOSE, operands=(*INCREMENTS, "mul", "neg")),
)
