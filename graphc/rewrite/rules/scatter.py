"""Scatters into zeros that are added to an array become scatters into that array; adjacent regions of zeros become a
concatenation.

In: nothing. Out: `SCATTERS` and `REGIONS`. The gradient of `table[rows]` is an array like the table, zero except in the
rows looked up; a gradient descent step adds a multiple of it to the table. Only those rows need to change:

    table - 0.1 * inc_gather(zeros, g, rows)   ->   inc_gather(table, -0.1 * g, rows)
"""

from __future__ import annotations

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.node import Node, Size, constant_value, literal, make
from graphc.ir.signs import below_broadcasts
from graphc.ir.sizes import as_size
from graphc.ops.scalar import elementwise
from graphc.ops.shape import broadcast_to, concatenate, expand
from graphc.rewrite.rules.engine import CLOSE, EXACT, AnyRule, Transformation, Uses, is_number, plus_zero

INCREMENTS = ("inc_gather", "inc_subtensor")
MOST_LINKS = 16
"""The longest chain of scatters that is moved to another base at once: a sum of many terms is rewritten term by
term."""


def _into_sum(node: Node, uses: Uses) -> Node | None:
    """a + c * inc_gather(zeros, y) becomes inc_gather(a, c * y), for a known factor c; likewise a - …, regions, and
    chains."""
    sign = -1.0 if node.op.name == "sub" else 1.0
    left, right = node.args
    found: list[tuple[int, Node, list[Node], float]] = []
    for base, added in ((left, right), (right, left))[: 2 if sign > 0 else 1]:
        factor = sign
        # one number at most: two may be in range where their product is not
        while uses(added) == 1 and (scaled := _scaled(added)) is not None and 1 in (abs(factor), abs(scaled[0])):
            factor, added = factor * scaled[0], scaled[1]
        links = _from_zeros(added, uses)
        if links and np.isfinite(factor):
            found.append((len(links), base, links, factor))
    if not found:
        return None
    _, result, links, factor = min(found, key=lambda each: each[0])
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
    number = expand(literal(factor, value.type.dtype), range(value.ndim))
    return elementwise("mul", broadcast_to(number, value.type.shape), value)


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
    Transformation(
        "regions_of_zeros",
        ("inc_subtensor",),
        _side_by_side,
        EXACT,
        operands=("inc_subtensor", "broadcast_to", "dimshuffle", "constant"),
    ),
)

SCATTERS: tuple[AnyRule, ...] = (
    Transformation("scatter_into_sum", ("add", "sub"), _into_sum, CLOSE, operands=(*INCREMENTS, "mul", "neg")),
)
