"""Derivatives of the factorisations with several results: qr, eigh, svd, eig.

In: a node, the cotangents of some of its results. Out: the cotangent of the matrices, in the terms of the factors, so
that it is differentiated again through them.

Vectors that belong to equal eigenvalues or singular values may be any of the space that they span, and have no
derivative: it is NaN, where it is not 0 by a cotangent of 0, and no guess. What has one there, as a function of the
values alone or of the whole matrix, is not computed through vectors (`sqrtm`, `logm`, `expm`, `polar` see to it).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import item
from graphc.ir.node import OPS, Node, Size, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import subtensor
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_sum
from graphc.ops.shape import concatenate, expand, iota, transpose, zeros

Cotangents = Mapping[int, Node]
ROUNDED = 64
"""Units in the last place, for each row, that a sum over a matrix's rows may be wrong by where it should vanish."""


# --- parts of matrices ------------------------------------------------------------------------------------------------


def _add(a: Node, b: Node) -> Node:
    return elementwise("add", a, b)


def _sub(a: Node, b: Node) -> Node:
    return elementwise("sub", a, b)


def _mul(a: Node, b: Node) -> Node:
    return elementwise("mul", a, b)


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
    below = triangle(_add(cotangent, transpose(cotangent)), strict=True)
    row, column = places(cotangent)
    return _add(below, _where(elementwise("equal", row, column), cotangent, 0.0))


def _columns(v: Node) -> Node:
    """A number for each column."""
    return expand(v, (v.ndim - 1,))


def _rows(v: Node) -> Node:
    """A number for each row."""
    return expand(v, (v.ndim,))


def _part(a: Node, axis: int, start: Size, stop: Size) -> Node:
    """What lies from `start` to `stop` along one of the last axes."""
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
    quotient = elementwise("true_div", parts, _where(elementwise("logical_not", equal), gaps, 1.0))
    return _where(equal, at_equal, quotient)


def _turning(a: Node) -> tuple[Node, Node]:
    """a - a' and the magnitude of its terms."""
    turned = transpose(a)
    return _sub(a, turned), _add(elementwise("abs", a), elementwise("abs", turned))


def _norm(a: Node) -> Node:
    """The roots of the sums of squares of matrices' elements."""
    return elementwise("sqrt", reduce_sum(_mul(a, a), (a.ndim - 2, a.ndim - 1)))


def _noise(a: Node) -> Node:
    """How large a sum over the rows of a matrix may be where it should vanish, for each matrix."""
    unit = literal(ROUNDED * np.finfo(a.type.dtype).eps, a.type.dtype)
    return _mul(_mul(_norm(a), cast(as_size_node(a.type.shape[-1]), a.type.dtype)), unit)


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
        half = _over(turned, magnitude, _sub(_columns(values), _rows(values)))
        parts.append(_mul(half, literal(0.5, a.type.dtype)))
    inner = parts[0] if len(parts) == 1 else _add(*parts)
    found = mirrored(matmul(matmul(vectors, inner), transpose(vectors)))
    return (found if node.attrs.get("lower", True) else transpose(found),)


def eigvalsh_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The same for the values alone."""
    vectors = item(make(OPS["eigh"], node.args, node.attrs), 1)
    found = mirrored(matmul(_mul(vectors, _columns(cotangent)), transpose(vectors)))
    return (found if node.attrs.get("lower", True) else transpose(found),)


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
        inner = turned if inner is None else _add(inner, turned)
    assert inner is not None
    found = matmul(matmul(u, inner), vh)
    if of_u is not None and not sizes.equal(rows, count):
        found = _add(found, matmul(_outside(u, of_u, s, rows, count), vh))
    if of_v is not None and not sizes.equal(columns, count):
        found = _add(found, matmul(u, transpose(_outside(v, of_v, s, columns, count))))
    return (found,)


def _turned_pairs(s: Node, of_u: tuple[Node, Node] | None, of_v: tuple[Node, Node] | None) -> Node:
    """(x s_j + s_i y) / E for rotations x of U and y of V, as ((x + y) / (s_j - s_i) + (x - y) / (s_j + s_i)) / 2."""
    if of_u is None or of_v is None:
        given = of_u or of_v
        assert given is not None
        together, size = given
        apart = together if of_v is None else elementwise("neg", together)
    else:
        size = _add(of_u[1], of_v[1])
        together, apart = _add(of_u[0], of_v[0]), _sub(of_u[0], of_v[0])
    over_gaps = _over(together, size, _sub(_columns(s), _rows(s)))
    over_sums = _over(apart, size, _add(_columns(s), _rows(s)))
    return _mul(_add(over_gaps, over_sums), literal(0.5, s.type.dtype))


def svdvals_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The same for the values alone: U diag(g) V'."""
    factors = make(OPS["svd"], node.args, node.attrs)
    u, vh = item(factors, 0), item(factors, 2)
    return (matmul(_mul(u, _columns(cotangent)), vh),)


def _outside(u: Node, of_u: Node, s: Node, size: Size, count: Size) -> Node:
    """The part of a cotangent of `u` beyond what it spans, over the singular values; none of a square matrix."""
    beyond = _sub(of_u, matmul(u, matmul(transpose(u), of_u)))
    if isinstance(size, int) and isinstance(count, int):
        return elementwise("true_div", beyond, _columns(s))
    square = elementwise("equal", as_size_node(size), as_size_node(count))
    return _where(square, zeros(u.type.dtype, u.type.shape), elementwise("true_div", beyond, _columns(s)))


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
    return first, _add(_sub(of_first, moved), expand(defined, (defined.ndim, defined.ndim + 1)))


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
            more = matmul(beyond, transpose(of_rest))
            of_q = more if of_q is None else _add(of_q, more)
            rest = matmul(q, of_rest)
        else:
            rest = zeros(a.type.dtype, beyond.type.shape)
    found = _qr_of_tall(q, left, of_q, of_r)
    return (found if rest is None else concatenate([found, rest], a.ndim - 1),)


def _qr_of_tall(q: Node, r: Node, of_q: Node | None, of_r: Node | None) -> Node:
    parts = []
    if of_r is not None:
        parts.append(matmul(r, transpose(of_r)))
    if of_q is not None:
        parts.append(elementwise("neg", matmul(transpose(of_q), q)))
    whole = parts[0] if len(parts) == 1 else _add(*parts)
    symmetric = _add(triangle(whole), transpose(triangle(whole, strict=True)))
    product = matmul(q, symmetric)
    product = product if of_q is None else _add(of_q, product)
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
    return _sub(matmul(ar, br), matmul(ai, bi)), _add(matmul(ar, bi), matmul(ai, br))


def _adjoint(a: Complex) -> Complex:
    return transpose(a[0]), elementwise("neg", transpose(a[1]))


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
        given: Complex = (cotangents.get(2, none), cotangents.get(3, none))
        of_vectors = _vectors_part(turned, vectors, given, (wr, wi))
        inner = of_vectors if inner is None else (_add(inner[0], of_vectors[0]), _add(inner[1], of_vectors[1]))
    assert inner is not None
    right = _times(inner, turned)
    tr, ti = turned
    block = concatenate(
        [concatenate([tr, elementwise("neg", ti)], a.ndim - 1), concatenate([ti, tr], a.ndim - 1)], a.ndim - 2
    )
    both = make(
        OPS["solve"],
        (block, concatenate(list(right), a.ndim - 2)),
        {"structure": "general", "transposed": False, "on_error": "nan"},
    )
    return (_part(both, -2, 0, a.type.shape[-1]),)


def _vectors_part(turned: Complex, vectors: Complex, given: Complex, values: Complex) -> Complex:
    wr, wi = values
    seen = _times(turned, given)
    lengths = diagonal_of(seen[0])
    gram = _times(turned, vectors)
    parts = [_sub(part, _mul(other, _columns(lengths))) for part, other in zip(seen, gram, strict=True)]
    gap_r, gap_i = _sub(_columns(wr), _rows(wr)), _sub(_columns(wi), _rows(wi))
    apart = _add(_mul(gap_r, gap_r), _mul(gap_i, gap_i))
    equal = elementwise("equal", apart, literal(0, wr.type.dtype))
    row, column = places(apart)
    on_diagonal = elementwise("equal", row, column)
    safe = _where(elementwise("logical_not", equal), apart, 1.0)
    # (x + iy) / (p - iq) = (x + iy) (p + iq) / (p^2 + q^2)
    x, y = parts
    real = elementwise("true_div", _sub(_mul(x, gap_r), _mul(y, gap_i)), safe)
    imaginary = elementwise("true_div", _add(_mul(x, gap_i), _mul(y, gap_r)), safe)
    still = elementwise("logical_and", *(elementwise("equal", part, literal(0, wr.type.dtype)) for part in parts))
    none = zeros(wr.type.dtype, apart.type.shape)
    at_equal = _where(elementwise("logical_or", on_diagonal, still), none, np.nan)
    phase = _phase(seen, wi)
    return _add(_where(equal, at_equal, real), diagonal_matrix(phase)), _where(equal, at_equal, imaginary)


def _phase(seen: Complex, wi: Node) -> Node:
    """NaN for complex vectors whose phase the cotangent asks for, 0 for others."""
    bound = _rows(_add(_noise(seen[0]), _noise(seen[1])))
    asked = elementwise("greater", elementwise("abs", diagonal_of(seen[1])), bound)
    is_complex = elementwise("logical_and", asked, elementwise("not_equal", wi, literal(0, wi.type.dtype)))
    return elementwise("where", is_complex, literal(np.nan, wi.type.dtype), zeros(wi.type.dtype, wi.type.shape))
