"""The derivative of Cholesky's factor where its cotangent comes of a determinant and of solutions by that factor.

In: a factor L and its cotangent. Out: the cotangent of L L' without systems of whole matrices, or None where the
graph does not show one. What is looked for is a sum of

    diag(c / diag(L))                  of c log(det(L))
    s tril(u v'), where u = L'^-1 w    of solutions with L or L'

whose terms (s, w, v) are mirrored by terms (s, v, w), or mirror themselves: `L' tril(u v')` has the lower triangle of
w v', and the sum of mirrored ones is symmetric, so that c (L L')^-1 + the sum of s u (L'^-1 v)' is the whole
derivative. Every solution with L L' has such terms, whatever is made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from graphc.ir import sizes
from graphc.ir.node import OPS, Node, constant_value, literal
from graphc.ir.signs import below_broadcasts, is_one
from graphc.ops.elementwise import elementwise
from graphc.ops.index import gather
from graphc.ops.linalg.derivatives import triangle
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import apply_routine
from graphc.ops.shape import dimshuffle, expand, iota, transpose
from graphc.startup.record import record

Factors: TypeAlias = tuple[Node, ...]
"""Scalars, or arrays with a number for each matrix, that are multiplied; not 1."""
MOST_TERMS = 64
"""More terms than these are not paired."""
DEEPEST = 24
"""Nodes on a way that are looked through."""


@record()
class Product:
    """s tril(u v'), u = L'^-1 w: the factors of s, w, v, and u."""

    factors: Factors
    inner: Node
    right: Node
    left: Node

    @property
    def key(self) -> object:
        """What equal ones have in common."""
        return self.inner, self.right, frozenset(Counter(self.factors).items())

    @property
    def mirrored(self) -> object:
        """The key of what mirrors it."""
        return self.right, self.inner, frozenset(Counter(self.factors).items())


def pulled_back(lower: Node, cotangent: Node) -> Node | None:
    """The sum of c (L L')^-1 and s u (L'^-1 v)' for a cotangent of this form, a symmetric matrix; None for others."""
    logs: list[Factors] = []
    products: list[Product] = []
    waiting: list[tuple[Factors, Node]] = [((), cotangent)]
    while waiting:
        factors, base = _scaled(*waiting.pop(), lower.ndim - 2)
        if base.op.name in ("add", "sub"):
            minus = (literal(-1, base.type.dtype),) if base.op.name == "sub" else ()
            waiting += [(factors, base.args[0]), ((*minus, *factors), base.args[1])]
        elif (of_log := _of_log(lower, base)) is not None:
            logs.append((*factors, *of_log))
        elif (product := _of_product(lower, factors, base)) is not None:
            products.append(product)
        else:
            return None
        if len(waiting) + len(products) > MOST_TERMS:
            return None
    pairs = _pairs(products)
    if pairs is None:
        return None
    parts = [_times(each.factors, matmul(each.left, transpose(other.left))) for each, other in pairs]
    if logs:
        parts.append(_times((_sum_of(logs, lower.type.dtype),), apply_routine(OPS["inverse_of_factor"], (lower,))))
    return reduce(_add, parts)


def _pairs(products: Sequence[Product]) -> list[tuple[Product, Product]] | None:
    """Each product with the one that mirrors it; None where one has none."""
    alone: dict[object, list[Product]] = {}
    found: list[tuple[Product, Product]] = []
    for each in products:
        if each.inner is each.right:
            found.append((each, each))
        elif alone.get(each.mirrored):
            other = alone[each.mirrored].pop()
            found += [(each, other), (other, each)]
        else:
            alone.setdefault(each.key, []).append(each)
    return None if any(alone.values()) else found


# --- terms ------------------------------------------------------------------------------------------------------------


def _of_log(lower: Node, term: Node) -> Factors | None:
    """The factors of c where a term is diag(c / diag(L)), or c L'^-1, whose lower triangle that is."""
    outer, count = lower.ndim - 2, iota(lower.type.shape[-1])
    before = _turned(term)
    if before is not None and before.op.name == "inverse":
        return () if before.args[0] is lower else None
    if term.op.name not in ("inc_gather", "set_gather") or term.attrs["axis"] != outer:
        return None
    base, values, *indices = term.args
    if len(indices) != 2 or any(each is not count for each in indices) or not _is_zero(base):
        return None
    factors, quotient = _scaled((), values, outer)
    divided = quotient.args[0] if quotient.args else quotient
    if quotient.op.name == "strong_mul":  # c times 1 / diag(L), which has no pole: a factor has no 0 on its diagonal
        quotient = quotient.args[1]
        if not (quotient.args and is_one(quotient.args[0])):
            return None
    if quotient.op.name != "true_div" or quotient.args[1] is not gather(lower, (count, count), outer):
        return None
    number = _number(divided, outer)
    return None if number is None else (*factors, *number)


def _is_zero(x: Node) -> bool:
    value = constant_value(below_broadcasts(x))
    return value is not None and not value.any()


def _turned(x: Node) -> Node | None:
    """The matrices that a node is the transpose of."""
    if x.op.name != "dimshuffle" or x.ndim < 2 or x.args[0].ndim != x.ndim:
        return None
    return x.args[0] if x is transpose(x.args[0]) else None


def _of_product(lower: Node, factors: Factors, term: Node) -> Product | None:
    """A triangle of a product of which one factor is a solution with L'."""
    outer, before = lower.ndim - 2, _turned(term)
    part = term if before is None else before
    if part.op.name != "where" or part is not triangle(part.args[1], lower=before is None):
        return None
    factors, product = _scaled(factors, part.args[1], outer)
    if product.op.name != "matmul" or (right := _turned(product.args[1])) is None:
        return None
    left = product.args[0]
    left, right = (left, right) if before is None else (right, left)
    factors, left = _scaled(factors, left, outer)
    factors, right = _scaled(factors, right, outer)
    if left.op.name != "triangular_solve" or left.args[0] is not lower:
        return None
    wanted = {"lower": True, "transposed": True, "unit": False}
    return Product(factors, left.args[1], right, left) if wanted.items() <= dict(left.attrs).items() else None


# --- numbers that are multiplied --------------------------------------------------------------------------------------


def _add(a: Node, b: Node) -> Node:
    return elementwise("add", a, b)


def _times(factors: Factors, x: Node) -> Node:
    for each in factors:
        x = elementwise("mul", expand(each, range(each.ndim, x.ndim)), x)
    return x


def _sum_of(products: Sequence[Factors], dtype: str) -> Node:
    return reduce(_add, (reduce(lambda a, b: elementwise("mul", a, b), each, literal(1, dtype)) for each in products))


def _number(x: Node, outer: int) -> Factors | None:
    """The factors of a node that has one number for each matrix; None of others."""
    if x.op.name != "broadcast_to":
        return _factors_of(x) if x.ndim <= outer else None
    before = x.args[0]
    if before.ndim != x.ndim or not all(sizes.equal(size, 1) for size in before.type.shape[outer:]):
        return None
    one = all(sizes.equal(size, 1) for size in before.type.shape)
    return _factors_of(_in_order(before, () if one else tuple(range(outer))))


def _factors_of(x: Node, depth: int = DEEPEST) -> Factors:
    if depth and x.op.name == "mul":
        return (*_factors_of(x.args[0], depth - 1), *_factors_of(x.args[1], depth - 1))
    if depth and x.op.name == "neg":
        return (literal(-1, x.type.dtype), *_factors_of(x.args[0], depth - 1))
    value = constant_value(x)
    return () if value is not None and value.ndim == 0 and value == 1 else (x,)


def _in_order(x: Node, order: tuple[int | str, ...]) -> Node:
    """`dimshuffle`, by one node or none."""
    while x.op.name == "dimshuffle":
        inner: tuple[int | str, ...] = x.attrs["order"]
        order, x = tuple(inner[each] if isinstance(each, int) else each for each in order), x.args[0]
    as_it_is = len(order) == x.ndim and all(
        each == axis or (each == "x" and axis not in order) for axis, each in enumerate(order)
    )
    return x if as_it_is else dimshuffle(x, order)


def _peeled(x: Node, outer: int) -> tuple[Factors, Node] | None:
    """The numbers that a product is multiplied by, and what is left of it."""
    match x.op.name:
        case "neg":
            return (literal(-1, x.type.dtype),), x.args[0]
        case "mul":
            for one, other in (x.args, x.args[::-1]):
                number = _number(one, outer)
                if number is not None:
                    return number, other
        case "true_div":
            number = _number(x.args[1], outer)
            if number is not None:
                return tuple(elementwise("true_div", literal(1, x.type.dtype), each) for each in number), x.args[0]
        case "broadcast_to":
            (before, *_) = x.args
            spread = zip(before.type.shape, x.type.shape, strict=True)
            if all(sizes.equal(a, 1) == sizes.equal(b, 1) for a, b in spread):
                return (), before
    return None


def _scaled(factors: Factors, x: Node, outer: int, depth: int = DEEPEST) -> tuple[Factors, Node]:
    """What a node is but for numbers that multiply it, one for each matrix, and these after `factors`."""
    if not depth:
        return factors, x
    depth -= 1
    peeled = _peeled(x, outer)
    if peeled is not None:
        return _scaled((*factors, *peeled[0]), peeled[1], outer, depth)
    match x.op.name:
        case "dimshuffle":
            order = x.attrs["order"]
            if order[:outer] == tuple(range(outer)) and _turned(x) is None:
                factors, base = _scaled(factors, x.args[0], outer, depth)
                return factors, _in_order(base, order)
        case "triangular_solve":
            a, attrs = x.args[0], dict(x.attrs)
            before = _turned(a)
            if before is not None:
                a, attrs = before, attrs | {name: not attrs[name] for name in ("lower", "transposed")}
            factors, base = _scaled(factors, x.args[1], outer, depth)
            return factors, apply_routine(x.op, (a, base), **attrs)
        case "add":
            (left, one), (right, other) = (_scaled((), arg, outer, depth) for arg in x.args)
            if one is other:
                return (*factors, _sum_of((left, right), x.type.dtype)), one
    return factors, x
