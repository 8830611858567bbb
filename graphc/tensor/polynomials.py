"""Polynomials as vectors of coefficients, the highest power first.

In: vectors. Out: vectors and values composed of sums and convolutions.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import promote
from graphc.errors import RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ir.walk import as_size_node
from graphc.ops import shape as ops
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.calculus import convolve
from graphc.tensor.elementary import pow
from graphc.tensor.joining import concatenate
from graphc.tensor.reductions import cumsum, sum as sum_of
from graphc.tensor.shaping import flatten

__all__ = ["polyadd", "polyder", "polyint", "polymul", "polysub", "polyval"]


def _vector(name: str, p: Any) -> Node:
    node = as_node(p)
    if node.ndim > 1:
        raise RankError(f"{name}: {describe(node)} of type {node.type} is no vector")
    return flatten(node)


def _aligned(name: str, a: Any, b: Any) -> tuple[Node, Node]:
    """Both with as many coefficients as the longer one has."""
    pair = [_vector(name, one) for one in (a, b)]
    count = sizes.maximum(*(node.type.shape[0] for node in pair))
    longer = []
    for node in pair:
        missing = sizes.subtract(count, node.type.shape[0])
        longer.append(concatenate([ops.zeros(node.type.dtype, (missing,)), node]))
    return longer[0], ops.broadcast_to(longer[1], longer[0].type.shape)


def polyadd(a1: Any, a2: Any) -> Node:
    """The sum of two polynomials."""
    left, right = _aligned("polyadd", a1, a2)
    return left + right


def polysub(a1: Any, a2: Any) -> Node:
    """The difference of two polynomials."""
    left, right = _aligned("polysub", a1, a2)
    return left - right


def polymul(a1: Any, a2: Any) -> Node:
    """The product of two polynomials; zeros in front of either do not count, and one without coefficients is 0, as in
    NumPy."""
    left, right = (_trimmed(_vector("polymul", one)) for one in (a1, a2))
    return convolve(left, right)


def _trimmed(p: Node) -> Node:
    """A polynomial without zeros in front, and one zero where there is nothing else."""
    wide = concatenate([ops.zeros(p.type.dtype, (1,)), p])
    zeros = elementwise("equal", cumsum(elementwise("not_equal", wide, 0)), 0)
    return wide[elementwise("minimum", sum_of(zeros), as_size_node(p.type.shape[0])) :]


def polyval(p: Any, x: Any) -> Node:
    """The value of a polynomial at each element of `x`."""
    node, points = _vector("polyval", p), as_node(x)
    count = node.type.shape[0]
    dtype = promote(node.type.dtype, points.type.dtype)
    if isinstance(count, int):  # Horner's rule
        value = ops.zeros(points.type.dtype, points.type.shape)
        for position in range(count):
            value = value * points + node[position]
        return value
    power = cast(elementwise("sub", as_size_node(sizes.add(count, -1)), ops.iota(count)), dtype)
    return sum_of(cast(node, dtype) * pow(ops.expand(cast(points, dtype), (points.ndim,)), power), -1, dtype=dtype)


def polyder(p: Any, m: int = 1) -> Node:
    """The `m`-th derivative of a polynomial."""
    node = _vector("polyder", p)
    if m < 0:
        raise ShapeError(f"polyder: m={m} is negative")
    for _ in range(m):
        count = node.type.shape[0]
        power = elementwise("sub", as_size_node(sizes.add(count, -1)), ops.iota(count))
        node = (node * power)[:-1]
    return node


def polyint(p: Any, m: int = 1, k: Any = None) -> Node:
    """The `m`-th integral of a polynomial, with the constants `k` (zeros)."""
    node = _vector("polyint", p)
    if m < 0:
        raise ShapeError(f"polyint: m={m} is negative")
    constants = flatten(0.0 if k is None else k)
    for step in range(m):
        count = node.type.shape[0]
        power = elementwise("sub", as_size_node(count), ops.iota(count))
        one = constants[step : step + 1] if k is not None and constants.type.shape[0] != 1 else constants[:1]
        quotient = elementwise("true_div", node, power)
        node = concatenate([quotient, cast(one, quotient.type.dtype)])
    return node
