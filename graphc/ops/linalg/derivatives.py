"""Derivatives of the factorisations with several results: qr, eigh, svd, eig.

In: a node, the cotangents of some of its results. Out: the cotangent of the matrices, in the terms of the factors, so
that it is differentiated again through them.

Vectors that belong to equal eigenvalues or singular values may be any of the space that they span, and have no
derivative: it is NaN, where it is not 0 by a cotangent of 0, and no guess. What has one there, as a function of the
values alone or of the whole matrix, is not computed through vectors (`sqrtm`, `logm`, `expm`, `polar` see to it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import TypeAlias

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import item
from graphc.ir.facts import below_broadcasts, is_one
from graphc.ir.node import OPS, Node, Size, constant_value, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import gather, subtensor
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import apply_routine
from graphc.ops.reduce import reduce_sum
from graphc.ops.shape import concatenate, dimshuffle, expand, iota, transpose, zeros
from graphc.startup.record import record

Cotangents = Mapping[int, Node]
ROUNDED = 64
"""Units in the last place, for each row, that a sum over a matrix's rows may be wrong by where it should vanish."""


# --- parts of matrices ------------------------------------------------------------------------------------------------


def _where(condition: Node, a: Node, b: float | Node) -> Node:
    return elementwise("where", condition, a, b if isinstance(b, Node) else literal(b, a.type.dtype))


def places(a: Node) -> tuple[Node, Node]:
    """The row and the column of each element of matrices, as arrays that broadcast."""
    rows, columns = a.type.shape[-2:]
    return expand(iota(rows), (1,)), expand(iota(columns), (0,))


def triangle(a: Node, lower: bool = True, strict: bool = False) -> Node:
    """The lower or upper triangle of matrices, zeros elsewhere. strict: without the diagonal."""
    smaller, larger = reversed(places(a)) if lower else places(a)
    return _where(elementwise("less" if strict else "less_equal", smaller, larger), a, 0.0)


def on_diagonal(a: Node, value: Node) -> Node:
    """`a` with the elements of `value` on its diagonal."""
    return _where(elementwise("equal", *places(a)), value, a)


def diagonal_matrix(v: Node) -> Node:
    """The matrices with these diagonals, the last axis, and zeros elsewhere."""
    wide = expand(v, (v.ndim - 1,))
    place = iota(v.type.shape[-1])
    return _where(elementwise("equal", expand(place, (1,)), expand(place, (0,))), wide, 0.0)


def diagonal_of(a: Node) -> Node:
    """The diagonals of square matrices."""
    row, column = places(a)
    return reduce_sum(_where(elementwise("equal", row, column), a, 0.0), (a.ndim - 1,))


def mirrored(cotangent: Node) -> Node:
    """The cotangent of the lower triangle, where only that is read and stands for both: what belongs above the diagonal
    is added to what lies below."""
    below = triangle(cotangent + transpose(cotangent), strict=True)
    row, column = places(cotangent)
    return below + _where(elementwise("equal", row, column), cotangent, 0.0)


def _columns(v: Node) -> Node:
    """A number for each column."""
    return expand(v, (v.ndim - 1,))


def _rows(v: Node) -> Node:
    """A number for each row."""
    return expand(v, (v.ndim,))


def _part(a: Node, axis: int, start: Size, stop: Size) -> Node:
    """The part from `start` to `stop` along one of the last axes."""
    shape = list(a.type.shape)
    starts: list[Size] = [0] * a.ndim
    starts[axis], shape[axis] = start, sizes.subtract(stop, start)
    return subtensor(a, starts, shape, [1] * a.ndim)


def _over(parts: Node, magnitude: Node, gaps: Node) -> Node:
    """`parts`, differences of terms of this magnitude, over gaps between values: between equal ones NaN, or 0 where the
    terms themselves are 0, as on the diagonal."""
    equal = elementwise("equal", gaps, literal(0, gaps.type.dtype))
    row, column = places(gaps)
    still = elementwise("equal", magnitude, literal(0, gaps.type.dtype))
    harmless = elementwise("logical_or", elementwise("equal", row, column), still)
    at_equal = _where(harmless, zeros(gaps.type.dtype, gaps.type.shape), np.nan)
    quotient = parts / _where(elementwise("logical_not", equal), gaps, 1.0)
    return _where(equal, at_equal, quotient)


def _turning(a: Node) -> tuple[Node, Node]:
    """a - a' and the magnitude of its terms."""
    turned = transpose(a)
    return a - turned, elementwise("abs", a) + elementwise("abs", turned)


def _norm(a: Node) -> Node:
    """The roots of the sums of squares of matrices' elements."""
    return elementwise("sqrt", reduce_sum(a * a, (a.ndim - 2, a.ndim - 1)))


def _noise(a: Node) -> Node:
    """A bound on sums over the rows of each matrix that should vanish."""
    unit = literal(ROUNDED * np.finfo(a.type.dtype).eps, a.type.dtype)
    return _norm(a) * cast(as_size_node(a.type.shape[-1]), a.type.dtype) * unit


# --- eigh -------------------------------------------------------------------------------------------------------------


def eigh_vjps(node: Node, cotangents: Cotangents, wanted: Collection[int]) -> Sequence[Node | None]:
    """V (diag(g_w) + F * (V' g_v)) V', F_ij = 1 / (w_j - w_i), in the triangle that is read."""
    (a,) = node.args
    values, vectors = item(node, 0), item(node, 1)
    parts = []
    if 0 in cotangents:
        parts.append(diagonal_matrix(cotangents[0]))
    if 1 in cotangents:
        turned, magnitude = _turning(matmul(transpose(vectors), cotangents[1]))
        half = _over(turned, magnitude, _columns(values) - _rows(values))
        parts.append(half * literal(0.5, a.type.dtype))
    inner = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    gradient = mirrored(matmul(matmul(vectors, inner), transpose(vectors)))
    return (gradient if node.attrs.get("lower", True) else transpose(gradient),)


def eigvalsh_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The same for the values alone."""
    vectors = item(make(OPS["eigh"], node.args, node.attrs), 1)
    gradient = mirrored(matmul(vectors * _columns(cotangent), transpose(vectors)))
    return (gradient if node.attrs.get("lower", True) else transpose(gradient),)


# --- svd --------------------------------------------------------------------------------------------------------------


def svd_vjps(node: Node, cotangents: Cotangents, wanted: Collection[int]) -> Sequence[Node | None]:
    """U (((U' g_U - ...) / E) S + S ((V' g_V - ...) / E) + diag(g_s)) V', E_ij = s_j^2 - s_i^2, and what goes out of
    the spaces that U and V span."""
    (a,) = node.args
    rows, columns = a.type.shape[-2:]
    count = sizes.minimum(rows, columns)
    u, s, vh = (item(node, k) for k in range(3))
    of_u, of_vh = cotangents.get(0), cotangents.get(2)
    if node.op.name == "svd_full":
        u, of_u = _thin(u, of_u, rows, count)
        v, of_v = _thin(transpose(vh), None if of_vh is None else transpose(of_vh), columns, count)
        vh = transpose(v)
    else:
        v, of_v = transpose(vh), None if of_vh is None else transpose(of_vh)
    inner = diagonal_matrix(cotangents[1]) if 1 in cotangents else None
    rotations = [
        None if of is None else _turning(matmul(transpose(vectors), of)) for vectors, of in ((u, of_u), (v, of_v))
    ]
    if rotations != [None, None]:
        turned = _turned_pairs(s, *rotations)
        inner = turned if inner is None else inner + turned
    assert inner is not None
    gradient = matmul(matmul(u, inner), vh)
    if of_u is not None and not sizes.equal(rows, count):
        gradient = gradient + matmul(_outside(u, of_u, s, rows, count), vh)
    if of_v is not None and not sizes.equal(columns, count):
        gradient = gradient + matmul(u, transpose(_outside(v, of_v, s, columns, count)))
    return (gradient,)


def _turned_pairs(s: Node, of_u: tuple[Node, Node] | None, of_v: tuple[Node, Node] | None) -> Node:
    """(x s_j + s_i y) / E for rotations x of U and y of V, as ((x + y) / (s_j - s_i) + (x - y) / (s_j + s_i)) / 2."""
    if of_u is None or of_v is None:
        cotangent_of_one = of_u or of_v
        assert cotangent_of_one is not None
        together, size = cotangent_of_one
        apart = together if of_v is None else -together
    else:
        size = of_u[1] + of_v[1]
        together, apart = of_u[0] + of_v[0], of_u[0] - of_v[0]
    over_gaps = _over(together, size, _columns(s) - _rows(s))
    over_sums = _over(apart, size, _columns(s) + _rows(s))
    return (over_gaps + over_sums) * literal(0.5, s.type.dtype)


def svdvals_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The same for the values alone: U diag(g) V'."""
    factors = make(OPS["svd"], node.args, node.attrs)
    u, vh = item(factors, 0), item(factors, 2)
    return (matmul(u * _columns(cotangent), vh),)


def _outside(u: Node, of_u: Node, s: Node, size: Size, count: Size) -> Node:
    """The part of a cotangent of `u` beyond what it spans, over the singular values; none of a square matrix."""
    beyond = of_u - matmul(u, matmul(transpose(u), of_u))
    if isinstance(size, int) and isinstance(count, int):
        return beyond / _columns(s)
    square = elementwise("equal", as_size_node(size), as_size_node(count))
    return _where(square, zeros(u.type.dtype, u.type.shape), beyond / _columns(s))


def _thin(whole: Node, cotangent: Node | None, size: Size, count: Size) -> tuple[Node, Node | None]:
    """The first columns of an orthogonal matrix, and their cotangent: where what is computed of the others depends on
    no more than the space they span, it moves with the first ones; else it is NaN."""
    first = _part(whole, -1, 0, count)
    if cotangent is None:
        return first, None
    of_first = _part(cotangent, -1, 0, count)
    others, of_others = _part(whole, -1, count, size), _part(cotangent, -1, count, size)
    product = matmul(transpose(others), of_others)
    asked = elementwise("greater", _norm(_turning(product)[0]), _noise(product))
    defined = elementwise("where", asked, literal(np.nan, whole.type.dtype), literal(0, whole.type.dtype))
    moved = matmul(others, matmul(transpose(of_others), first))
    return first, of_first - moved + expand(defined, (defined.ndim, defined.ndim + 1))


# --- qr ---------------------------------------------------------------------------------------------------------------


def qr_vjps(node: Node, cotangents: Cotangents, wanted: Collection[int]) -> Sequence[Node | None]:
    """(g_Q + Q M) R^-T, where M is the symmetric matrix with the lower triangle of R g_R' - g_Q' Q; columns beyond the
    rows follow from the others."""
    (a,) = node.args
    rows, columns = a.type.shape[-2:]
    count = sizes.minimum(rows, columns)
    q, r = item(node, 0), item(node, 1)
    of_q, of_r = cotangents.get(0), cotangents.get(1)
    if node.op.name == "qr_complete":
        q, of_q = _thin(q, of_q, rows, count)
        r = _part(r, -2, 0, count)
        of_r = None if of_r is None else _part(of_r, -2, 0, count)
    left, rest = r, None
    if not sizes.equal(columns, count):  # what is wider than high
        left, beyond = _part(r, -1, 0, count), _part(a, -1, count, columns)
        if of_r is not None:
            of_rest = _part(of_r, -1, count, columns)
            of_r = _part(of_r, -1, 0, count)
            projected = matmul(beyond, transpose(of_rest))
            of_q = projected if of_q is None else of_q + projected
            rest = matmul(q, of_rest)
        else:
            rest = zeros(a.type.dtype, beyond.type.shape)
    gradient = _qr_of_tall(q, left, of_q, of_r)
    return (gradient if rest is None else concatenate([gradient, rest], a.ndim - 1),)


def _qr_of_tall(q: Node, r: Node, of_q: Node | None, of_r: Node | None) -> Node:
    parts = []
    if of_r is not None:
        parts.append(matmul(r, transpose(of_r)))
    if of_q is not None:
        parts.append(-matmul(transpose(of_q), q))
    whole = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    symmetric = triangle(whole) + transpose(triangle(whole, strict=True))
    product = matmul(q, symmetric)
    product = product if of_q is None else of_q + product
    return transpose(
        make(
            OPS["triangular_solve"],
            (r, transpose(product)),
            {"lower": False, "transposed": False, "unit": False, "on_error": "nan"},
        )
    )


# --- eig --------------------------------------------------------------------------------------------------------------

Complex = tuple[Node, Node]
"""Real and imaginary parts."""


def _times(a: Complex, b: Complex) -> Complex:
    (ar, ai), (br, bi) = a, b
    return matmul(ar, br) - matmul(ai, bi), matmul(ar, bi) + matmul(ai, br)


def _adjoint(a: Complex) -> Complex:
    return transpose(a[0]), -transpose(a[1])


def eigvals_vjps(node: Node, cotangents: Cotangents, wanted: Collection[int]) -> Sequence[Node | None]:
    """The same for the values alone."""
    return eig_vjps(make(OPS["eig"], node.args, node.attrs), cotangents, wanted)


def eig_vjps(node: Node, cotangents: Cotangents, wanted: Collection[int]) -> Sequence[Node | None]:
    """V^-H (diag(g_w) + (V^H g_V - V^H V diag(Re(V^H g_V))) / conj(E)) V^H, E_ij = w_j - w_i, its real part.

    Of matrices with fewer eigenvectors than rows it is NaN; so is what depends on the phase of complex vectors."""
    (a,) = node.args
    wr, wi, vr, vi = (item(node, k) for k in range(4))
    vectors: Complex = (vr, vi)
    turned = _adjoint(vectors)
    inner: Complex | None = None
    if 0 in cotangents or 1 in cotangents:
        none = zeros(wr.type.dtype, wr.type.shape)
        real, imaginary = (diagonal_matrix(cotangents.get(k, none)) for k in (0, 1))
        inner = real, imaginary
    if 2 in cotangents or 3 in cotangents:
        none = zeros(vr.type.dtype, vr.type.shape)
        of_pair: Complex = (cotangents.get(2, none), cotangents.get(3, none))
        of_vectors = _vectors_part(turned, vectors, of_pair, (wr, wi))
        inner = of_vectors if inner is None else (inner[0] + of_vectors[0], inner[1] + of_vectors[1])
    assert inner is not None
    right = _times(inner, turned)
    tr, ti = turned
    block = concatenate([concatenate([tr, -ti], a.ndim - 1), concatenate([ti, tr], a.ndim - 1)], a.ndim - 2)
    both = make(
        OPS["solve"],
        (block, concatenate(list(right), a.ndim - 2)),
        {"structure": "general", "transposed": False, "on_error": "nan"},
    )
    return (_part(both, -2, 0, a.type.shape[-1]),)


def _vectors_part(turned: Complex, vectors: Complex, cotangents: Complex, values: Complex) -> Complex:
    wr, wi = values
    seen = _times(turned, cotangents)
    lengths = diagonal_of(seen[0])
    gram = _times(turned, vectors)
    parts = [part - other * _columns(lengths) for part, other in zip(seen, gram, strict=True)]
    gap_r, gap_i = _columns(wr) - _rows(wr), _columns(wi) - _rows(wi)
    apart = gap_r * gap_r + gap_i * gap_i
    equal = elementwise("equal", apart, literal(0, wr.type.dtype))
    row, column = places(apart)
    on_diagonal = elementwise("equal", row, column)
    safe = _where(elementwise("logical_not", equal), apart, 1.0)
    # (x + iy) / (p - iq) = (x + iy) (p + iq) / (p^2 + q^2)
    x, y = parts
    real = (x * gap_r - y * gap_i) / safe
    imaginary = (x * gap_i + y * gap_r) / safe
    still = elementwise("logical_and", *(elementwise("equal", part, literal(0, wr.type.dtype)) for part in parts))
    none = zeros(wr.type.dtype, apart.type.shape)
    at_equal = _where(elementwise("logical_or", on_diagonal, still), none, np.nan)
    phase = _phase(seen, wi)
    return _where(equal, at_equal, real) + diagonal_matrix(phase), _where(equal, at_equal, imaginary)


def _phase(seen: Complex, wi: Node) -> Node:
    """NaN for complex vectors whose phase the cotangent asks for, 0 for others."""
    bound = _rows(_noise(seen[0]) + _noise(seen[1]))
    asked = elementwise("greater", elementwise("abs", diagonal_of(seen[1])), bound)
    is_complex = elementwise("logical_and", asked, elementwise("not_equal", wi, literal(0, wi.type.dtype)))
    return elementwise("where", is_complex, literal(np.nan, wi.type.dtype), zeros(wi.type.dtype, wi.type.shape))


# --- cotangents -------------------------------------------------------------------------------------------------------
# The derivative of Cholesky's factor where its cotangent comes of a determinant and of solutions by that factor.
#
# In: a factor L and its cotangent. Out: the cotangent of L L' without systems of whole matrices, or None where the
# graph does not show one. What is looked for is a sum of
#
#     diag(c / diag(L))                  of c log(det(L))
#     s tril(u v'), where u = L'^-1 w    of solutions with L or L'
#
# whose terms (s, w, v) are mirrored by terms (s, v, w), or mirror themselves: `L' tril(u v')` has the lower triangle
# of w v', and the sum of mirrored ones is symmetric, so that c (L L')^-1 + the sum of s u (L'^-1 v)' is the whole
# derivative. Every solution with L L' has such terms, whatever is made of it.


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
        """The key by which equal ones are found."""
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
    parts = [_multiplied(each.factors, matmul(each.left, transpose(other.left))) for each, other in pairs]
    if logs:
        parts.append(_multiplied((_sum_of(logs, lower.type.dtype),), apply_routine(OPS["inverse_of_factor"], (lower,))))
    return reduce(add, parts)


def _pairs(products: Sequence[Product]) -> list[tuple[Product, Product]] | None:
    """Each product with the one that mirrors it; None where one has none."""
    alone: dict[object, list[Product]] = {}
    pairs: list[tuple[Product, Product]] = []
    for each in products:
        if each.inner is each.right:
            pairs.append((each, each))
        elif alone.get(each.mirrored):
            other = alone[each.mirrored].pop()
            pairs += [(each, other), (other, each)]
        else:
            alone.setdefault(each.key, []).append(each)
    return None if any(alone.values()) else pairs


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


def _multiplied(factors: Factors, x: Node) -> Node:
    for each in factors:
        x = expand(each, range(each.ndim, x.ndim)) * x
    return x


def _sum_of(products: Sequence[Factors], dtype: str) -> Node:
    return reduce(add, (reduce(mul, each, literal(1, dtype)) for each in products))


def _number(x: Node, outer: int) -> Factors | None:
    """The factors of a node that has one number for each matrix; None of others."""
    if x.op.name != "broadcast_to":
        return _factors_of(x) if x.ndim <= outer else None
    before = x.args[0]
    if before.ndim != x.ndim or not all(sizes.equal(size, 1) for size in before.type.shape[outer:]):
        return None
    is_number = all(sizes.equal(size, 1) for size in before.type.shape)
    return _factors_of(_in_order(before, () if is_number else tuple(range(outer))))


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
                return tuple(literal(1, x.type.dtype) / each for each in number), x.args[0]
        case "broadcast_to":
            (before, *_) = x.args
            spread = zip(before.type.shape, x.type.shape, strict=True)
            if all(sizes.equal(a, 1) == sizes.equal(b, 1) for a, b in spread):
                return (), before
    return None


def _scaled(factors: Factors, x: Node, outer: int, depth: int = DEEPEST) -> tuple[Factors, Node]:
    """A node without the numbers that multiply it, one for each matrix, and these after `factors`."""
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
            (left, core), (right, other) = (_scaled((), arg, outer, depth) for arg in x.args)
            if core is other:
                return (*factors, _sum_of((left, right), x.type.dtype)), core
    return factors, x
