"""Places that follow from counting: indices of neighbours, clamped, wrapped or reflected at the ends of an axis.

    is_place_near(clip(arange(n) - 1, 0, n - 1))      True
    is_place_near((arange(n) + 1) % n)                True
    is_place_near((5 * arange(n)) % n)                False: far from where it is used

In: a node. Out: whether it is such an index. It is a sum but for the borders, between which loops go by themselves
(codegen/transform/borders.py): so it is computed wherever it is used, and in every step of a loop.
"""

from __future__ import annotations

from graphc.arrays.dtypes import INTEGERS
from graphc.ir.lowering import Iota, Scalar
from graphc.ir.node import CONSTANT, LEAVES, Node, constant_value
from graphc.ir.signs import BROADCASTS, below_broadcasts
from graphc.ir.walk import as_size_node, node_set

NEAR_BY = 16
"""Elements by which a place is shifted at most that is taken for one near by."""


def is_place_near(node: Node) -> bool:
    """Tell whether an element of a vector is a place that follows from its own, or the truth of such places."""
    if node.ndim != 1 or node.type.dtype not in ("int64", "bool") or node.op in LEAVES:
        return False
    counts, pending, seen = False, [node], {node}
    while pending:
        each = pending.pop()
        if each.op in LEAVES:
            return False
        lowering = each.op.lower(each)
        if isinstance(lowering, Iota):
            counts = True
            continue
        if each.op.name not in BROADCASTS and not _is_of_integers(each, lowering):
            return False
        fresh = [arg for arg in each.args if arg.ndim and arg not in seen]
        seen.update(fresh)
        pending += fresh
    return counts


def _is_of_integers(node: Node, lowering: object) -> bool:
    known = node.type.dtype == "bool" or node.type.dtype in INTEGERS
    return known and isinstance(lowering, Scalar) and (node.op.name not in ("mod", "floor_div") or _wraps(node))


def _wraps(quotient: Node) -> bool:
    """Tell whether a quotient or a remainder is that of a place, shifted a little, and of the size of its axis or about
    that; or of such a quotient and a number."""
    place, divisor = quotient.args
    if place.op.name == "floor_div":
        return _wraps(place) and constant_value(below_broadcasts(divisor)) is not None
    shift = 0
    while place.op.name in ("add", "sub"):
        number = constant_value(below_broadcasts(place.args[1]))
        if number is None or number.ndim:
            return False
        place, shift = place.args[0], shift + abs(int(number))
    if place.op in LEAVES or not isinstance(place.op.lower(place), Iota) or shift > NEAR_BY:
        return False
    (size,) = place.type.shape
    leaves = (
        {leaf for leaf in node_set([as_size_node(each)]) if not leaf.args} for each in (size, below_broadcasts(divisor))
    )
    return isinstance(size, int) or any(leaf.op is not CONSTANT for leaf in set.intersection(*leaves))
