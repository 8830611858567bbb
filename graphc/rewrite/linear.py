"""Linear algebra: transposes moved into products, products ordered by cost, sums of products joined into gemm.

In: nothing. Out: `LINEAR`, the rules. All are true of matrices; rounding differs as between two orders of one sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphc.dtypes import is_float
from graphc.ir.node import INPUT, SHARED, Argument, Node, Sample, literal
from graphc.ops.linalg import gemm, matmul, outer
from graphc.ops.scalar import elementwise
from graphc.ops.shape import drop, expand, transpose
from graphc.rewrite.engine import CLOSE, AnyRule, Transformation, Uses


def _positive(*shape: int) -> Argument:
    """Nothing cancels: rounding errors stay small beside the result."""
    return Argument(shape, "float", 0.5, 2.0)


_A, _B = _positive(3, 4), _positive(4, 2)


# --- transposes -------------------------------------------------------------------------------------------------------


def _transposed(node: Node) -> Node | None:
    """The node whose last two axes are exchanged in this one, or None."""
    swapped = (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)
    if node.ndim > 1 and node.op.name == "dimshuffle" and node.attrs["order"] == swapped:
        return node.args[0] if node.args[0].ndim == node.ndim else None
    return None


def _transpose(node: Node) -> Node:
    """The transpose, without transposing twice."""
    before = _transposed(node)
    return transpose(node) if before is None else before


def _transpose_operands(node: Node, uses: Uses) -> Node | None:
    """(A B)' as B' A' where that leaves fewer transposes."""
    product = _transposed(node)
    if product is None or product.op.name != "matmul" or uses(product) > 1:
        return None
    a, b = product.args
    if a.ndim != node.ndim or b.ndim != node.ndim or (_transposed(a) is None and _transposed(b) is None):
        return None
    return matmul(_transpose(b), _transpose(a))


# --- the order of products --------------------------------------------------------------------------------------------


def _is_cheaper(a: Node, b: Node, c: Node, left: bool) -> bool:
    """Whether (a b) c, for `left`, or a (b c) is known to be cheaper than the other."""
    ranks = a.ndim, b.ndim, c.ndim
    if ranks in ((2, 2, 1), (1, 2, 2)):
        return left is (a.ndim == 1)
    if ranks != (2, 2, 2):
        return False
    sizes = (*a.type.shape, *c.type.shape)
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        return False
    rows, before, after, columns = numbers
    first = rows * before * after + rows * after * columns
    second = before * after * columns + rows * before * columns
    return first < second if left else second < first


def _reorder(node: Node, uses: Uses) -> Node | None:
    """(A B) C as A (B C), or the other way round, by the number of multiplications."""
    first, second = node.args
    if first.op is node.op and uses(first) == 1:
        a, b = first.args
        if _is_cheaper(a, b, second, left=False):
            return matmul(a, matmul(b, second))
    if second.op is node.op and uses(second) == 1:
        b, c = second.args
        if _is_cheaper(first, b, c, left=True):
            return matmul(matmul(first, b), c)
    return None


def _as_outer(node: Node, uses: Uses) -> Node | None:
    """A column times a row as broadcast products: no BLAS, and fused with what follows."""
    a, b = node.args
    if a.ndim != 2 or b.ndim != 2 or a.type.shape[1] != 1 or b.type.shape[0] != 1:
        return None
    return outer(drop(a, (1,)), drop(b, (0,)))


# --- gemm -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """`factor * matrix`, the factor a 0-d node."""

    factor: Node
    matrix: Node


def _scalar_of(node: Node) -> Node | None:
    """The 0-d node that a matrix is the broadcast of, or None."""
    while node.op.name in ("broadcast_to", "dimshuffle"):
        node = node.args[0]
    return None if node.ndim else node


def _term(node: Node, uses: Uses, sign: int = 1) -> _Term:
    """A node taken apart into a scalar factor and a matrix."""
    factor: Node | None = None
    while uses(node) == 1:
        scaled = _scaled(node)
        if node.op.name == "neg":
            sign, node = -sign, node.args[0]
        elif scaled is not None:
            factor = scaled.factor if factor is None else elementwise("mul", factor, scaled.factor)
            node = scaled.matrix
        else:
            break
    if factor is None:
        return _Term(literal(sign, node.dtype), node)
    return _Term(factor if sign > 0 else elementwise("neg", factor), node)


def _scaled(node: Node) -> _Term | None:
    if node.op.name == "mul":
        for k in (0, 1):
            scalar = _scalar_of(node.args[k])
            if scalar is not None:
                return _Term(scalar, node.args[1 - k])
    return None


def _is_stored(node: Node, uses: Uses) -> bool:
    """Whether a matrix is in memory anyway: a variable, or a product that nothing else takes."""
    return node.op in (INPUT, SHARED) or (node.op.name in ("matmul", "gemm") and uses(node) == 1)


def _join_gemm(node: Node, uses: Uses) -> Node | None:
    """alpha A B + beta C as one call of BLAS, where C is in memory and nothing else takes the product.

    Where C would have to be computed and stored first, adding it in the loop that follows the product costs less.
    """
    if node.ndim != 2 or not is_float(node.dtype):
        return None
    left, right = node.args
    sign = -1 if node.op.name == "sub" else 1
    for product, other in (
        (_term(left, uses), _term(right, uses, sign)),
        (_term(right, uses, sign), _term(left, uses)),
    ):
        is_product = product.matrix.op.name == "matmul" and uses(product.matrix) == 1
        if is_product and _is_stored(other.matrix, uses):
            a, b = product.matrix.args
            return gemm(other.matrix, product.factor, a, b, other.factor)
    return None


LINEAR: tuple[AnyRule, ...] = (
    Transformation(
        "transpose_of_product",
        ("dimshuffle",),
        _transpose_operands,
        CLOSE,
        [
            Sample("", lambda a, b: transpose(matmul(a, transpose(b))), (_A, _positive(2, 4))),
            Sample("", lambda a, b: transpose(matmul(transpose(a), b)), (_positive(2, 3, 4), _positive(2, 3, 5))),
        ],
        operands=("matmul",),
    ),
    Transformation(
        "outer_product",
        ("matmul",),
        _as_outer,
        CLOSE,
        [Sample("", lambda a, b: matmul(expand(a, (1,)), expand(b, (0,))), (_positive(3), _positive(2)))],
    ),
    Transformation(
        "order_of_products",
        ("matmul",),
        _reorder,
        CLOSE,
        [
            Sample("", lambda a, b, v: matmul(matmul(a, b), v), (_A, _B, _positive(2))),
            Sample("", lambda a, b, v: matmul(v, matmul(a, b)), (_A, _B, _positive(3))),
        ],
        operands=("matmul",),
    ),
    Transformation(
        "gemm",
        ("add", "sub"),
        _join_gemm,
        CLOSE,
        [
            Sample("", lambda a, b, c: matmul(a, b) + c, (_A, _B, _positive(3, 2))),
            Sample("", lambda a, b, c: c - 0.1 * matmul(a, b), (_A, _B, _positive(3, 2))),
            Sample("", lambda a, b, c, s: s * matmul(a, b) - 3 * c, (_A, _B, _positive(3, 2), _positive())),
            Sample("", lambda a, b, c: matmul(a, b) - matmul(a, c), (_A, _B, _positive(4, 2))),
        ],
    ),
)
