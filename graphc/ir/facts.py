"""Facts about the elements of a node, proved from the graph: the value all of them equal, their signs.

    below_broadcasts(broadcast_to(dimshuffle(x, "x"), (3,)))   is x
    scalar_constant(broadcast_to(2.0, (3,)))                   is array(2.0)
    is_positive(exp(x))                                        True

In: a node. Out: the node below its broadcasts, its number, or a bool that is False if the fact is not proved. The
search depth is bounded, so a question takes constant time. Signs are those of real numbers: an exponential counts as
positive, though it may underflow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.ir.lowering import Iota, Scalar
from graphc.ir.node import CONSTANT, LEAVES, OPS, Array, Node, constant_value
from graphc.ir.walk import as_size_node, node_set

DEEPEST = 6
"""The search depth."""
POSITIVE = frozenset({"exp", "exp2", "portable_exp", "sigmoid", "softplus", "cosh", "erfc", "erfcx"})
NOT_NEGATIVE = frozenset({"abs", "fabs", "sqr", "sqrt", "hypot"})
ALIKE = frozenset({"broadcast_to", "dimshuffle", "reshape", "subtensor", "positive", "sum", "max", "min", "prod"})
"""Ops whose elements have the common sign of all elements of their first argument."""

BROADCASTS = ("broadcast_to", "dimshuffle")
"""Ops that repeat elements and add, drop or reorder axes."""


def below_broadcasts(node: Node, also: Sequence[str] = (), named: bool = True) -> Node:
    """The node below broadcasts, dimshuffles and the ops in `also`. named=False: stop at a node with a name."""
    while (node.op.name in BROADCASTS or node.op.name in also) and (named or node.name is None):
        node = node.args[0]
    return node


def scalar_constant(node: Node) -> Array | None:
    """The 0-d array that all elements equal: of a 0-d constant or a broadcast of one; else None."""
    value = constant_value(below_broadcasts(node))
    return value if value is not None and value.ndim == 0 else None


def scalar_number(node: Node) -> float | None:
    """The number that all elements equal: of a 0-d constant, cast or broadcast; else None."""
    value = constant_value(below_broadcasts(node, ("cast",)))
    return float(value) if value is not None and value.ndim == 0 else None


def is_never_zero(node: Node) -> bool:
    """True if no element is 0 or NaN: of constants, their products, and these divided by an element count."""
    scale = 1.0
    for _ in range(4 * DEEPEST):
        value = constant_value(node)
        if value is not None:
            scaled = np.asarray(value, "float64") * scale
            return bool(value.size) and bool(np.all(np.isfinite(scaled) & (abs(scaled) > 1e-30)))
        name, args = node.op.name, node.args
        if name in ("mul", "true_div"):
            numbers = [scalar_number(arg) for arg in args]
            if name == "mul" and numbers[0] is not None:
                scale, node = scale * numbers[0], args[1]
            elif numbers[1] is not None and numbers[1] != 0:
                scale, node = scale * numbers[1] if name == "mul" else scale / numbers[1], args[0]
            elif name == "true_div" and _is_count(args[1]):
                node = args[0]
            else:
                return False
            continue
        is_cast = name == "cast" and is_float(args[0].type.dtype) and is_float(node.type.dtype)
        if not (is_cast or name in (*BROADCASTS, "reshape", "neg")):
            return False
        node = args[0]
    return False


def _is_count(node: Node) -> bool:
    """True if a node is an element count, possibly converted: positive if there is an element at all."""
    node = below_broadcasts(node, ("cast",))
    if node.type.dtype == "int64" and not node.ndim:
        value = constant_value(node)
        return node.op.name in ("size", "mul") if value is None else bool(value > 0)
    return False


def is_positive(node: Node, depth: int = DEEPEST) -> bool:
    """True if all elements are proved to be above 0, as real numbers."""
    value = constant_value(node)
    if value is not None:
        return bool(np.all(value > 0))
    name, args, depth = node.op.name, node.args, depth - 1
    if depth < 0 or OPS.get(name) is not node.op:
        return False
    if name in POSITIVE or _is_count(node):
        return True
    match name:
        case "add":
            left, right = (is_positive(arg, depth) for arg in args)
            return (left and (right or is_not_negative(args[1], depth))) or (right and is_not_negative(args[0], depth))
        case "sub":
            return is_one(args[0]) and _is_below_one(args[1], depth)
        case "mul" | "true_div" | "minimum" | "logaddexp":
            return all(is_positive(arg, depth) for arg in args)
        case "maximum":
            return any(is_positive(arg, depth) for arg in args)
        case "where" | "clip":
            return all(is_positive(arg, depth) for arg in args[1:])
        case "sqrt" | "sqr" | "abs" | "reciprocal" | "cast":
            return is_positive(args[0], depth)
    return name in ALIKE and is_positive(args[0], depth)


def _is_below_one(node: Node, depth: int) -> bool:
    """True if all elements are proved to be below 1: a sigmoid, or a / (a + b) with b positive."""
    name = node.op.name
    if name != "true_div" or node.args[1].op.name != "add":
        return name == "sigmoid" or (name == "broadcast_to" and _is_below_one(node.args[0], depth))
    part, terms = node.args[0], node.args[1].args
    for term, other in (terms, terms[::-1]):
        if (term is part or (is_one(term) and is_one(part))) and is_positive(other, depth):
            return True
    return False


def is_not_negative(node: Node, depth: int = DEEPEST) -> bool:
    """True if no element can be below 0."""
    value = constant_value(node)
    if value is not None:
        return bool(np.all(value >= 0))
    name, args, depth = node.op.name, node.args, depth - 1
    if depth < 0 or OPS.get(name) is not node.op:
        return False
    if name in POSITIVE or name in NOT_NEGATIVE or _is_count(node):
        return True
    if name == "mul" and args[0] is args[1]:
        return True
    if name == "pow":
        exponent = scalar_number(args[1])
        return exponent is not None and exponent % 2 == 0
    if name in ("add", "mul", "true_div", "minimum"):
        return all(is_not_negative(arg, depth) for arg in args)
    if name == "maximum":
        return any(is_not_negative(arg, depth) for arg in args)
    return (name in ALIKE or name == "cast") and is_not_negative(args[0], depth)


def is_one(node: Node) -> bool:
    """True if all elements are the constant 1."""
    value = constant_value(below_broadcasts(node, ("cast",)))
    return value is not None and bool(np.all(value == 1))


# --- indices near their place -----------------------------------------------------------------------------------------
# Places that follow from counting: indices of neighbours, clamped, wrapped or reflected at the ends of an axis.
#
#     is_place_near(clip(arange(n) - 1, 0, n - 1))      True
#     is_place_near((arange(n) + 1) % n)                True
#     is_place_near((5 * arange(n)) % n)                False: far from where it is used
#
# In: a node. Out: whether it is such an index. It is a sum but for the borders, between which loops go by themselves
# (codegen/transform/borders.py): so it is computed wherever it is used, and in every step of a loop.

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
    """Tell whether a node is a quotient or remainder of a nearby index by about the size of its axis."""
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
