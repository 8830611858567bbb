"""Linear algebra: transposes moved into products, products ordered by cost, sums of products joined into gemm.

In: nothing. Out: `LINEAR`, the rules. All are true of matrices; rounding differs as between two orders of one sum.
`alpha A B` multiplies what is summed up, as it is written: alpha is moved neither out of an operand nor into one.

    (A.T @ B).T          ->  B.T @ A              no array is transposed
    (A @ B) @ v          ->  A @ (B @ v)          two products with a vector, under `fast_math` only
    C + 2 * (A @ B)      ->  gemm                 one call of BLAS
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

import numpy as np

from graphc.arrays.dtypes import FLOATS, is_float
from graphc.ir.facts import below_broadcasts, scalar_constant
from graphc.ir.lowering import Call
from graphc.ir.node import INPUT, SHARED, Node, constant_value, literal, make
from graphc.ops.linalg.products import as_product, gemm, is_in_memory, matmul, scaled_matmul
from graphc.ops.reduce import reduce_sum, reduction
from graphc.ops.scalar import elementwise
from graphc.ops.shape import broadcast_to, dimshuffle, drop, expand, transpose
from graphc.rewrite.engine import (
    CLOSE,
    NUMBERS,
    REAL,
    AnyRule,
    Transformation,
    Uses,
    constant_factor,
    is_elementwise,
    is_number,
    plus_zero,
    scaled,
)
from graphc.rewrite.matrices import untransposed
from graphc.startup.record import record

# --- transposes -------------------------------------------------------------------------------------------------------


def _transpose_operands(node: Node, uses: Uses) -> Node | None:
    """(A B)' becomes B' A': a product reads transposed operands at no cost."""
    product = untransposed(node)
    if product is None or product.op.name != "matmul" or uses(product) > 1:
        return None
    pairs = [(arg, untransposed(arg)) for arg in reversed(product.args)]
    return matmul(*(transpose(arg) if before is None else before for arg, before in pairs))


# --- the order of products --------------------------------------------------------------------------------------------


LONGEST_CHAIN = 32
"""The longest chain of factors whose best order is searched: the search is cubic."""


def _factors(node: Node, uses: Uses) -> list[Node]:
    """The factors of a chain of products, in order. A product with another use is one factor.

    A vector-valued product is split only if its vector stands at the end of the chain.
    """
    factors: list[Node] = []
    pending: list[tuple[Node, int | None]] = [(node, None)]
    while pending:
        current, side = pending.pop()
        is_product = current.op.name == "matmul" and (current is node or uses(current) == 1)
        if is_product and (current.ndim > 1 or side is None or current.args[side].ndim == 1):
            pending += [(current.args[1], 1), (current.args[0], 0)]
        else:
            factors.append(current)
    return factors


def _multiply_in_order(factors: Sequence[Node], splits: Mapping[tuple[int, int], int]) -> Node:
    """The product of all factors; `splits` maps a run of factors to the position where it is split."""

    def product(first: int, last: int) -> Node:
        cut = splits.get((first, last))
        return factors[first] if cut is None else matmul(product(first, cut), product(cut + 1, last))

    return product(0, len(factors) - 1)


def _best_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """The optimal parenthesisation of a chain of matrices, matrix k having sizes[k] rows and sizes[k + 1] columns: the
    split of each run that minimises multiplications, the latest one on ties (Cormen et al., Introduction to Algorithms,
    15.2)."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for first, last in ((last - more, last) for more in range(1, count) for last in range(more, count)):
        cost[first, last], late = min(
            (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], -k)
            for k in range(first, last)
        )
        splits[first, last] = -late
    return splits


def _cost(node: Node, factors: Collection[Node]) -> int:
    """The number of multiplications of a chain of known sizes, as parenthesised."""
    total, pending = 0, [node]
    while pending:
        current = pending.pop()
        if current.op.name == "matmul" and (current is node or current not in factors):
            a, b = current.args
            total += prod(size for size in (*a.type.shape, *b.type.shape[1:]) if isinstance(size, int))
            pending += current.args
    return total


def _reorder(node: Node, uses: Uses) -> Node | None:
    """Reparenthesise a chain of products: optimally if sizes are known, else by multiplying vectors first, which never
    costs more.

    True only of real numbers: A B may be in range where B v is not.
    """
    if any(arg.ndim > 2 for arg in node.args):
        return None
    factors = _factors(node, uses)
    if not 3 <= len(factors) <= LONGEST_CHAIN:
        return None
    inner = [size for factor in factors[1:] for size in factor.type.shape[:1]]
    ends = factors[0].type.shape[: factors[0].ndim - 1], factors[-1].type.shape[1:]
    sizes = [*(ends[0] or [1]), *inner, *(ends[1] or [1])]
    if all(isinstance(size, int) for size in sizes):
        ordered = _multiply_in_order(factors, _best_order([size for size in sizes if isinstance(size, int)]))
        return ordered if _cost(ordered, factors) < _cost(node, factors) else None
    return _vectors_first(node, uses)


def _vectors_first(node: Node, uses: Uses) -> Node | None:
    """(A B) v becomes A (B v), v (A B) becomes (v A) B."""
    a, b = node.args
    if a.op is node.op and uses(a) == 1 and b.ndim == 1 and a.ndim == 2:
        return matmul(a.args[0], matmul(a.args[1], b))
    if b.op is node.op and uses(b) == 1 and a.ndim == 1 and b.ndim == 2:
        return matmul(matmul(a, b.args[0]), b.args[1])
    return None


def _as_outer(node: Node, uses: Uses) -> Node | None:
    """A column times a row, or a batch of them, becomes a broadcast product, which needs no BLAS and fuses with its
    consumers."""
    a, b = node.args
    if a.ndim < 2 or b.ndim < 2 or a.type.shape[-1] != 1 or b.type.shape[-2] != 1:
        return None
    shape = (*a.type.shape[:-1], b.type.shape[-1])
    return plus_zero(elementwise("mul", broadcast_to(a, shape), broadcast_to(b, shape)))


def _as_row_sums(node: Node, uses: Uses) -> Node | None:
    """A batch of rows, each times a column, becomes sums of products along an axis, which need no call for each row:
    `einsum("ijk,ijk->ij", a, b)`."""
    a, b = node.args
    if a.ndim < 3 or b.ndim < 3 or (a.type.shape[-2], b.type.shape[-1]) != (1, 1) or not is_float(node.type.dtype):
        return None
    rows, columns = drop(a, (a.ndim - 2,)), drop(b, (b.ndim - 1,))
    return expand(reduce_sum(elementwise("mul", rows, columns), (rows.ndim - 1,)), (node.ndim - 2, node.ndim - 1))


def _sum_for_constant(node: Node, uses: Uses) -> Node | None:
    """A product with a matrix or vector of one finite number becomes sums over an axis, broadcast.

    Each term is multiplied by the number, not the sum: overflow then occurs for the same values.
    """
    a, b = node.args
    if a.ndim > 2 or b.ndim > 2 or not is_float(node.type.dtype):
        return None
    for constant, other, axis in ((b, a, a.ndim - 1), (a, b, 0)):
        number = scalar_constant(constant)
        if number is None or not np.isfinite(number) or number == 0:
            continue
        turned = untransposed(other)
        terms, axis = (other, axis) if turned is None else (turned, 1 - axis)
        summed = reduce_sum(terms if number == 1 else scaled(number, terms), (axis,))
        if constant.ndim == 1:
            return summed
        return broadcast_to(expand(summed, (a.ndim - 1 if constant is b else 0,)), node.type.shape)
    return None


def _factor_out(node: Node, uses: Uses) -> Node | None:
    """(c A) B becomes c (A B) for a finite number c, so that c A is not materialised: BLAS multiplies by alpha.

    True only of real numbers: A B may overflow or vanish where (c A) B does not.
    """
    if not is_float(node.type.dtype):
        return None
    a, b = node.args
    for operand in (a, b):
        factored = constant_factor(operand)
        if factored is None or uses(operand) > 1 or not np.isfinite(factored[0]) or factored[0] == 0:
            continue
        if is_in_memory(factored[1]):
            product = matmul(factored[1], b) if operand is a else matmul(a, factored[1])
            return scaled(factored[0], product)
    return None


def _product_of_rows(node: Node, uses: Uses) -> Node | None:
    """A product with a matrix of equal rows (on the left) or equal columns (on the right) computes one row or column
    and broadcasts it."""
    a, b = node.args
    if a.ndim != 2 or b.ndim != 2:
        return None
    for operand, axis in ((a, 0), (b, 1)):
        if operand.op.name != "broadcast_to":
            continue
        source = operand.args[0]
        if not source.broadcastable[axis] or operand.broadcastable[axis]:
            continue
        row_shape = [1 if n == axis else size for n, size in enumerate(operand.type.shape)]
        vector = drop(broadcast_to(source, row_shape), (axis,))
        product = matmul(vector, b) if axis == 0 else matmul(a, vector)
        return broadcast_to(expand(product, (axis,)), node.type.shape)
    return None


# --- gemm -------------------------------------------------------------------------------------------------------------


@record()
class _Term:
    """`sign * scalar * matrix`; the scalar is a 0-d node, or None for 1."""

    sign: int
    scalar: Node | None
    matrix: Node

    @property
    def factor(self) -> Node:
        """Sign and scalar as one node, built on demand: most terms turn out not to be products."""
        if self.scalar is None:
            return literal(self.sign, self.matrix.type.dtype)
        return self.scalar if self.sign > 0 else elementwise("neg", self.scalar)


def _term(node: Node, uses: Uses, sign: int = 1) -> _Term:
    """A node decomposed into sign, at most one scalar factor, and matrix. Two factors are not joined: their product may
    be out of range."""
    factor: Node | None = None
    while uses(node) == 1:
        if node.op.name == "neg":
            sign, node = -sign, node.args[0]
        elif factor is None and (scaled := _scaled(node)) is not None:
            factor, node = scaled
        else:
            break
    return _Term(sign, factor, node)


def _scaled(node: Node) -> tuple[Node, Node] | None:
    """(factor, matrix) if the node is a matrix multiplied by a scalar or divided by a count; else None."""
    for arg, other in zip(node.args, node.args[::-1], strict=True) if node.op.name == "mul" else ():
        if not (scalar := below_broadcasts(arg)).ndim:
            return scalar, other
    if node.op.name == "true_div" and not (count := below_broadcasts(node.args[1])).ndim and _is_count(count):
        return elementwise("true_div", literal(1, node.type.dtype), count), node.args[0]
    return None


def _is_count(node: Node) -> bool:
    """True if a scalar is an integer whose reciprocal is in range."""
    value = constant_value(node)
    if value is not None:
        return float(value).is_integer() and 1 <= abs(value) <= 1 / np.finfo(value.dtype).tiny
    return node.op.name == "cast" and node.args[0].type.dtype not in FLOATS


def _is_materialised(node: Node, uses: Uses) -> bool:
    """True if a matrix is in memory anyway: a variable, or a product with no other use."""
    return node.op in (INPUT, SHARED) or (_is_call(node) and uses(node) == 1)


def _is_call(node: Node) -> bool:
    """True if the node is a library product, which can accumulate into its output."""
    return node.op.name in ("matmul", "gemm") and isinstance(node.op.lower(node), Call)


def _scaled_product(term: _Term, uses: Uses) -> tuple[Node, Node, Node] | None:
    """(alpha, a, b) if the term is alpha * a @ b, a library product with no other use; else None."""
    product = term.matrix
    if uses(product) > 1 or not _is_call(product) or not is_float(product.type.dtype):
        return None
    parts = as_product(product.args)
    if parts.c is not None:
        return None
    factor = term.factor if parts.alpha is None else _signed(term.factor, parts.alpha)
    return None if factor is None else (factor, parts.a, parts.b)


def _signed(left: Node, right: Node) -> Node | None:
    """The product of two scalars if one is 1 or -1, else None."""
    for x, y in ((left, right), (right, left)):
        if is_number(x, 1.0):
            return y
        if is_number(x, -1.0):
            return elementwise("neg", y)
    return None


def _scale_product(node: Node, uses: Uses) -> Node | None:
    """A multiple of a product becomes a BLAS call with alpha."""
    if not is_float(node.type.dtype):
        return None
    term = _term(node, lambda part: 1 if part is node else uses(part))
    if term.matrix is node:
        return None
    product = _scaled_product(term, uses)
    return None if product is None else scaled_matmul(*product)


TINY = 64
"""For a matrix with at most this many elements, a product with a vector costs less than a call."""


def _call_with_vector(node: Node, uses: Uses) -> Node | None:
    """A matrix in memory times a vector becomes a BLAS call, unless the matrix has another use.

    Otherwise both uses may share one pass over the matrix, as in a linear model and its gradient: that is one loop over
    rows.
    """
    a, b = node.args
    if a.ndim + b.ndim != 3 or not is_float(node.type.dtype):
        return None
    matrix = a if a.ndim > 1 else b
    known = [size for size in matrix.type.shape if isinstance(size, int)]
    if (len(known) == 2 and prod(known) <= TINY) or not is_in_memory(matrix):
        return None
    while matrix.args and uses(matrix) == 1 and not _is_call(matrix):
        matrix = matrix.args[0]
    return None if uses(matrix) > 1 else scaled_matmul(literal(1, node.type.dtype), a, b)


def _join_gemm(node: Node, uses: Uses) -> Node | None:
    """alpha A B + beta C becomes one gemm call, if C is in memory and the product has no other use.

    If C would have to be materialised, adding it in the loop after the product is cheaper.
    """
    if not is_float(node.type.dtype):
        return None
    left, right = node.args
    sign = -1 if node.op.name == "sub" else 1
    first, second = _term(left, uses), _term(right, uses, sign)
    for term, other in ((first, second), (second, first)):
        product = _scaled_product(term, uses)
        if product is not None and _is_materialised(other.matrix, uses):
            return gemm(other.matrix, *product, other.factor)
    return None


LINEAR: tuple[AnyRule, ...] = (
    Transformation("product_with_a_number", ("matmul",), _sum_for_constant, CLOSE, operands=NUMBERS),
    Transformation("number_times_operand", ("matmul",), _factor_out, REAL, operands=("mul",)),
    Transformation("product_of_equal_rows", ("matmul",), _product_of_rows, CLOSE, operands=("broadcast_to",)),
    Transformation("transpose_of_product", ("dimshuffle",), _transpose_operands, CLOSE, operands=("matmul",)),
    Transformation("outer_product", ("matmul",), _as_outer, CLOSE),
    Transformation("products_of_rows", ("matmul",), _as_row_sums, CLOSE),
    Transformation("order_of_products", ("matmul",), _reorder, REAL, operands=("matmul",)),
    Transformation("matrix_and_vector", ("matmul",), _call_with_vector, CLOSE),
    Transformation("scaled_product", ("mul", "true_div", "neg"), _scale_product, CLOSE, operands=("matmul", "gemm")),
    Transformation("gemm", ("add", "sub"), _join_gemm, CLOSE),
)


# --- pairs ------------------------------------------------------------------------------------------------------------
# Loop interchange for reductions over all pairs of rows. In `((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)` the
# innermost loop runs over features: few (three in space), with an unknown trip count. Exchanging the last two axes
# below the reduction makes the loop over the rows of `y` innermost: it is long and vectorises, and the plan keeps a
# transposed copy of `y`.


MOST_NODES = 64
"""Larger expressions are skipped, so that the rule takes linear time in the size of the graph."""
MOST_FEATURES = 16
"""With more features than this (if the number is known), vectorising the loop over features is better."""
SWAPPED = (0, 2, 1)
MOST_COST = 10.0
"""An op that costs more is not done again for a reduction in another order."""


def _exchange(node: Node, uses: Uses) -> Node | None:
    """A reduction over all pairs, with the last two axes of its operand exchanged."""
    (operand,) = node.args
    summed: tuple[int, ...] = node.attrs["axes"]
    if operand.ndim != 3 or len(summed) != 1:
        return None
    order = _elementwise_below(operand)
    leaves = [leaf for leaf in order if not is_elementwise(leaf)]
    present = [_axes_of(leaf) for leaf in leaves]
    if len(order) >= MOST_NODES or None in present or not {(0, 2), (1, 2)} <= set(present):
        return None
    features = operand.type.shape[2]
    many = isinstance(features, int) and features > MOST_FEATURES
    if many or any(_is_exchanged(leaf) for leaf, axes in zip(leaves, present, strict=True) if axes == (1, 2)):
        return None
    reduced = reduction(node.op.name, _reordered(order, SWAPPED), (SWAPPED[summed[0]],))
    return dimshuffle(reduced, (1, 0)) if summed == (0,) else reduced


def _reordered(order: Sequence[Node], axes: tuple[int, ...]) -> Node:
    """The last node of an elementwise expression, with its axes in another order; leaves that are dimshuffled into the
    old one are what they are made of."""
    reordered: dict[Node, Node] = {}
    for each in order:
        if is_elementwise(each):
            reordered[each] = make(each.op, [reordered[arg] for arg in each.args], each.attrs)
        elif each.op.name == "broadcast_to":
            shape = [each.type.shape[axis] for axis in axes]
            reordered[each] = broadcast_to(dimshuffle(each.args[0], axes), shape)
        else:
            reordered[each] = dimshuffle(each, axes)
    return reordered[order[-1]]


# --- reductions down columns ------------------------------------------------------------------------------------------
# A reduction along the rows of a transposed matrix reads each row across the memory: `(a + x.T).max(axis=1)`. It is one
# down the columns of `x`, `(a[:, None] + x).max(axis=0)`, which adds up all columns at a time, in the order of memory.

TURNED = (1, 0)


def _turn(node: Node, uses: Uses) -> Node | None:
    """A reduction of a matrix along its rows, down the columns of the matrices that it is the transpose of."""
    (operand,) = node.args
    if operand.ndim != 2 or node.attrs["axes"] != (1,):
        return None
    order = _elementwise_below(operand)
    if len(order) >= MOST_NODES or (uses(operand) > 1 and any(each.op.cost > MOST_COST for each in order)):
        return None
    leaves = [leaf for leaf in order if not is_elementwise(leaf)]
    whole = [leaf for leaf in leaves if _axes_of(leaf) in (None, (0, 1))]
    if not whole or any(leaf.op.name != "dimshuffle" or leaf.attrs["order"] != TURNED for leaf in whole):
        return None
    return reduction(node.op.name, _reordered(order, TURNED), (0,))


def _elementwise_below(root: Node) -> list[Node]:
    """The elementwise expression that ends in `root`, in topological order, including its non-elementwise leaves."""
    order: dict[Node, None] = {}
    pending: list[tuple[Node, bool]] = [(root, False)]
    while pending and len(order) < MOST_NODES:
        node, ready = pending.pop()
        if node in order:
            continue
        if ready or not is_elementwise(node):
            order[node] = None
            continue
        pending.append((node, True))
        pending.extend((arg, False) for arg in node.args)
    return list(order)


def _axes_of(leaf: Node) -> tuple[int, ...] | None:
    """The axes along which a leaf is not broadcast; None if it is not a broadcast."""
    if leaf.op.name != "broadcast_to" or leaf.args[0].ndim != leaf.ndim:
        return None
    return tuple(axis for axis, size in enumerate(leaf.args[0].type.shape) if size != 1)


def _is_exchanged(leaf: Node) -> bool:
    """True if the last two axes of a leaf are in transposed memory order."""
    under = leaf.args[0]
    if under.op.name != "dimshuffle":
        return False
    outer, inner = under.attrs["order"][-2:]
    return isinstance(outer, int) and isinstance(inner, int) and outer > inner


PAIRS: tuple[AnyRule, ...] = (
    Transformation("exchange_pairs", ("sum", "prod", "max", "min", "any", "all"), _exchange, CLOSE),
    Transformation("rows_of_transposes", ("sum", "prod", "max", "min", "any", "all", "supremum"), _turn, CLOSE),
)
