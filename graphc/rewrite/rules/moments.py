"""Sums of squared deviations from the mean: one pass over memory for both, where the deviations took a second one.

In: nothing. Out: `MOMENTS`, the rules. With a pivot `c` near the mean `m` of n elements,

    sum((x - m)^2) = sum((x - c)^2) - s (2 sum(x - c) - n s)        s = m - c

which is true of any c, and needs no mean before the sums. The classic choice c = 0 loses all digits where the mean is
large beside the deviations (Chan, Golub and LeVeque 1983). Here c is the mean of k of the elements, a sixteenth of the
rows, from the middle. By the inequality of Cauchy and Schwarz k (m - c)^2 is at most the sum over those k of
(x - m)^2, and so sum((x - c)^2) at most 1 + n / k times what is wanted: whatever the data, no more than four binary
digits are lost, and where the middle is like the rest, none. The sums over x, x - c and its square go over the same
elements, and share their loops.

Sums that are 17 times as large may overflow where the result does not: so deviations are divided by 8 first, unless all
pivots are so small that they might vanish. (There, with S within a factor of 17 of the largest number, and the pivots
less than 1e-130 of its root, the sum overflows.) One number for all columns stays in a register, where one for each
would be read for every element; a column of numbers near the root of the smallest one, beside others that are not, has
an S within 64 units of the smallest number. Where a sum of finite deviations overflows, at magnitudes of 1e308, the
result is NaN instead of infinity.
The second pass stays where it costs little: where the last axes are reduced and others are not, a row is still in
cache.

The gradient of what is normalised by mean and variance sums `a + k (x - m)` over the same elements, where k comes of
another sum over them. Its terms in x - m add up to nothing but what m was rounded by. Written as sum(a) + k (t - n m),
t the sum of x that m was made of, both sums are there before k is, and one pass over the elements goes. The difference
is taken of halves: n m may be rounded to more than the largest number. Of no elements the sum is 0, and where k is not
finite NaN, because x - m has both signs, or is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import Node, Size, literal
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduce_sum, reduced_sizes, reduction, restore
from graphc.ops.scalar import elementwise
from graphc.ops.shape import broadcast_to, drop, filled, zeros
from graphc.rewrite.rules.engine import CLOSE, AnyRule, Transformation, Uses, scaled

PIVOT_PART, PIVOT_ROWS = 16, 16
"""The mean of a part of the rows is the pivot: one in PIVOT_PART of them, and no fewer than PIVOT_ROWS elements."""
FEW_ROWS = 64
"""Elements that are reduced to one, where their number is known, that are still in cache when they are read again."""
MEAN_OPS = ("true_div", "mul", "dimshuffle", "broadcast_to")
"""What makes a mean of a sum, and gives it its axes back."""
MOST_FACTORS, MOST_NODES = 3, 64
"""Factors of a product, and nodes that they come from, that are looked at."""


def _deviations_in_one_pass(node: Node, uses: Uses) -> Node | None:
    """sum((x - m)^2), m a mean of x, as sums about a pivot."""
    axes: tuple[int, ...] = node.attrs["axes"]
    x, mean = _deviation(node.args[0])
    if x is None or mean is None or not is_float(x.dtype) or not axes or _sum_in_mean(mean, x, axes) is None:
        return None
    known = [size for axis in axes if isinstance(size := x.type.shape[axis], int)]
    are_rows = axes[0] > 0 and axes == tuple(range(axes[0], x.ndim))
    if are_rows or (len(known) == len(axes) and prod(known) <= FEW_ROWS):
        return None
    pivot = _pivot(x, axes)
    size = elementwise("abs", pivot)
    largest = reduction("supremum", size, range(node.ndim)) if node.ndim else size
    is_small = elementwise("less", largest, literal(_small(node.dtype), node.dtype))
    scale = elementwise("where", is_small, literal(1, node.dtype), literal(1 / 8, node.dtype))
    apart = elementwise("mul", elementwise("sub", x, restore(node, pivot)), filled(scale, x.type.shape))
    total, squares = reduce_sum(apart, axes), reduce_sum(elementwise("sqr", apart), axes)
    shift = elementwise("sub", broadcast_to(drop(mean, axes), node.type.shape), pivot)
    shift = elementwise("mul", shift, filled(scale, node.type.shape))
    count = _as_number(sizes.product(reduced_sizes(node)), node)
    twice = elementwise("add", total, total)
    excess = elementwise("mul", shift, elementwise("sub", twice, elementwise("mul", count, shift)))
    spread = elementwise("maximum", elementwise("sub", squares, excess), zeros(node.dtype, node.type.shape))
    undo = elementwise("where", is_small, literal(1, node.dtype), literal(64, node.dtype))
    spread = elementwise("mul", spread, filled(undo, node.type.shape))
    # Where squares overflow, the sum is infinite; it is NaN where an element was.
    overflows = elementwise("logical_and", elementwise("isinf", squares), elementwise("isfinite", total))
    exact = elementwise("logical_or", overflows, elementwise("logical_not", elementwise("isfinite", pivot)))
    return elementwise("where", exact, squares, spread)


def _small(dtype: str) -> float:
    """Above it a number that differs from a pivot does so by enough for the square of an eighth to be normal."""
    info = np.finfo(dtype)
    return float(2.0 ** (info.minexp // 2 + info.nmant + 5))


def _deviation(squared: Node) -> tuple[Node | None, Node | None]:
    """x and m of (x - m)^2, m before it is broadcast."""
    if squared.op.name != "sqr" or squared.args[0].op.name != "sub":
        return None, None
    x, mean = squared.args[0].args
    return x, mean.args[0] if mean.op.name == "broadcast_to" else None


def _sum_in_mean(node: Node, x: Node, axes: tuple[int, ...]) -> Node | None:
    """The sum of x over these axes where a node is that, times or divided by something."""
    while node.op.name in MEAN_OPS:
        factors = [arg for arg in node.args[:2] if arg.op.name in (*MEAN_OPS, "sum")]
        node = factors[0] if node.op.name == "mul" and factors else node.args[0]
    return node if node.op.name == "sum" and node.args[0] is x and node.attrs["axes"] == axes else None


def _pivot(x: Node, axes: Sequence[int]) -> Node:
    """The mean of a part of the rows from the middle along the first of the axes; NaN where there are none."""
    shape, first = list(x.type.shape), axes[0]
    part_of_rows = sizes.floor_divide(shape[first], PIVOT_PART)
    others = sizes.maximum(sizes.product(shape[axis] for axis in axes[1:]), 1)
    least = sizes.floor_divide(sizes.add(others, PIVOT_ROWS - 1), others)
    count = sizes.minimum(shape[first], sizes.maximum(part_of_rows, least))
    starts: list[Size] = [0] * x.ndim
    starts[first] = sizes.floor_divide(sizes.subtract(shape[first], count), 2)
    shape[first] = count
    part = reduce_sum(subtensor(x, starts, shape, [1] * x.ndim), axes)
    return elementwise("true_div", part, _as_number(sizes.product(shape[axis] for axis in axes), part))


# --- terms that add up to nothing -------------------------------------------------------------------------------------


def _sum_apart(node: Node, uses: Uses) -> Node | None:
    """sum(a + k (x - m)), m a mean of x and k made of other sums over the same axes, as sum(a) + k sum(x - m)."""
    axes: tuple[int, ...] = node.attrs["axes"]
    inner = node.args[0].args[0] if node.args[0].op.name == "neg" else node.args[0]
    if inner.op.name not in ("add", "sub") or not is_float(node.dtype):
        return None
    for place in (1, 0):
        found = _centred(inner.args[place], axes)
        if found is not None and any(map(_is_of_sums, found[1])):
            parts = [reduce_sum(inner.args[1 - place], axes), _multiple_of_sum(node, *found)]
            result = elementwise(inner.op.name, *(parts if place else parts[::-1]))
            return result if inner is node.args[0] else elementwise("neg", result)
    return None


def _centred(term: Node, axes: tuple[int, ...], factors: tuple[Node, ...] = ()) -> tuple[Node, tuple[Node, ...]] | None:
    """x - m and the factors, constant along the axes and without them, of a product of such."""
    if term.op.name == "sub":
        mean = term.args[1]
        is_centred = mean.op.name == "broadcast_to" and _sum_in_mean(mean.args[0], term.args[0], axes) is not None
        return (term, factors) if is_centred and factors else None
    if term.op.name != "mul" or len(factors) == MOST_FACTORS:
        return None
    for factor, rest in (term.args, term.args[::-1]):
        if factor.op.name == "broadcast_to" and all(factor.args[0].broadcastable[axis] for axis in axes):
            return _centred(rest, axes, (*factors, drop(factor.args[0], axes)))
    return None


def _is_of_sums(factor: Node) -> bool:
    """Whether a sum is among the few nodes that a factor comes from first."""
    seen: dict[Node, None] = {}
    pending = [factor]
    while pending and len(seen) < MOST_NODES:
        node = pending.pop()
        if node.op.name == "sum":
            return True
        if node.args and node not in seen and (node.op.name in MEAN_OPS or isinstance(node.op.lower(node), Scalar)):
            seen[node] = None
            pending += node.args
    return False


def _multiple_of_sum(node: Node, centred: Node, factors: Sequence[Node]) -> Node:
    """The sum of x - m times all factors; `node` is the reduction that they are taken out of."""
    shape = node.type.shape
    factor, *others = (broadcast_to(each, shape) for each in factors)
    for other in others:
        factor = elementwise("mul", factor, other)
    count = sizes.product(reduced_sizes(node))
    x, mean = centred.args
    total = _sum_in_mean(mean, x, node.attrs["axes"])
    assert total is not None
    half_mean = scaled(0.5, broadcast_to(drop(mean.args[0], node.attrs["axes"]), shape))
    rest = elementwise("sub", scaled(0.5, total), elementwise("mul", _as_number(count, node), half_mean))
    product = elementwise("mul", factor, elementwise("add", rest, rest))
    result = elementwise("where", elementwise("isfinite", factor), product, filled(literal(np.nan, node.dtype), shape))
    if not isinstance(count, Node):
        return result
    none = filled(elementwise("equal", count, literal(0)), shape)
    return elementwise("where", none, filled(literal(0, node.dtype), shape), result)


def _as_number(size: Size, like: Node) -> Node:
    """A size as a number of the dtype and sizes of a node."""
    return filled(cast(as_size_node(size), like.dtype), like.type.shape)


MOMENTS: tuple[AnyRule, ...] = (
    Transformation("deviations_in_one_pass", ("sum",), _deviations_in_one_pass, CLOSE),
    Transformation("sum_apart", ("sum",), _sum_apart, CLOSE, operands=("add", "sub", "neg")),
)
