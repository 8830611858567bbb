"""Factorisations of complex matrices, by NumPy: eigenvalues and vectors, singular values and vectors, QR.

In: the parts of complex matrices (..., n, m, 2), as `ops/pairs.py` has them. Out: one vector (..., L) of floats for
each matrix, in which the factors lie one behind the other; `factors` takes them apart:

    eigh(a)      w, v        real eigenvalues in rising order, and vectors, of Hermitian matrices; eigh_upper(a) reads
                             the upper triangle, which gives other phases
    eig(a)       w, v        complex ones of any square matrices; eigvals(a) without v
    svd(a)       u, s, vh    reduced, or with square u and vh
    qr(a)        q, r        reduced

Their derivatives are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.ir import sizes
from graphc.ir.node import OPS, Array, Attributes, Node, Size, Type, define_op, make
from graphc.ops.custom import PYTHON
from graphc.ops.elementwise import aligned, elementwise
from graphc.ops.linalg.matrices import solve
from graphc.ops.linalg.products import matmul
from graphc.ops.pairs import cast, conj, from_parts, imag_of, parts_of, real_of, times_i
from graphc.ops.shape import expand, iota, reshape, transpose


class Factor(NamedTuple):
    """A factor of a matrix: its sizes, and whether it is complex."""

    shape: tuple[Size, ...]
    is_complex: bool = True

    @property
    def length(self) -> Size:
        """The number of floats in it."""
        return sizes.multiply(sizes.product(self.shape), 2 if self.is_complex else 1)


def _least(n: Size, m: Size) -> Size:
    return sizes.minimum(n, m)


FACTORS: dict[str, Callable[[Size, Size], list[Factor]]] = {
    "eigh": lambda n, m: [Factor((n,), False), Factor((n, n))],
    "eigh_upper": lambda n, m: [Factor((n,), False), Factor((n, n))],
    "eig": lambda n, m: [Factor((n,)), Factor((n, n))],
    "eigvals": lambda n, m: [Factor((n,))],
    "svd": lambda n, m: [Factor((n, _least(n, m))), Factor((_least(n, m),), False), Factor((_least(n, m), m))],
    "svd_full": lambda n, m: [Factor((n, n)), Factor((_least(n, m),), False), Factor((m, m))],
    "qr": lambda n, m: [Factor((n, _least(n, m))), Factor((_least(n, m), m))],
}
"""The factors that each function gives, for matrices (n, m)."""

COMPUTE: dict[str, Callable[[Array], Any]] = {
    "eigh": np.linalg.eigh,
    "eigh_upper": lambda a: np.linalg.eigh(a, UPLO="U"),
    "eig": np.linalg.eig,
    "eigvals": lambda a: (np.linalg.eigvals(a),),
    "svd": lambda a: np.linalg.svd(a, full_matrices=False),
    "svd_full": np.linalg.svd,
    "qr": np.linalg.qr,
}


def _factors(node: Node) -> list[Factor]:
    a = node.args[0]
    return FACTORS[node.attrs["of"]](*a.type.shape[-3:-1])


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    (a,) = args
    counts = [each.length for each in FACTORS[attrs["of"]](*a.type.shape[-3:-1])]
    total: Size = 0
    for count in counts:
        total = sizes.add(total, count)
    return Type(a.type.dtype, (*a.type.shape[:-3], total))


def _eval(node: Node, a: Array) -> Array:
    whole = np.ascontiguousarray(a).view("complex64" if a.dtype == np.float32 else "complex128")[..., 0]
    outer = whole.shape[:-2]
    results = [np.ascontiguousarray(each) for each in COMPUTE[node.attrs["of"]](whole)]
    wanted = FACTORS[node.attrs["of"]](*whole.shape[-2:])
    flat = []
    for each, factor in zip(results, wanted, strict=True):
        part = each.astype(whole.dtype) if factor.is_complex else each
        flat.append(part.view(a.dtype).reshape(*outer, factor.length))
    return np.ascontiguousarray(np.concatenate(flat, -1), a.dtype)


def factors(of: str, a: Node) -> list[Node]:
    """The factors of complex matrices."""
    node = make(OPS["complex_factors"], (parts_of(a),), {"of": of})
    return _taken_apart(node, _factors(node))


def _taken_apart(flat: Node, wanted: Sequence[Factor]) -> list[Node]:
    outer, factors = flat.type.shape[:-1], []
    place: Size = 0
    for factor in wanted:
        end = sizes.add(place, factor.length)
        part = flat.part((..., slice(place, end)))
        whole = reshape(part, (*outer, *factor.shape, *(2,) * factor.is_complex))
        factors.append(from_parts(whole) if factor.is_complex else whole)
        place = end
    return factors


# --- derivatives ------------------------------------------------------------------------------------------------------
# The cotangent c of a complex x is that for which the result changes by Re(sum(conj(c) dx)). What depends on phases
# that a factorisation leaves open has no derivative: those of eigh's and svd's vectors are ignored, as in JAX.


def _adjoint(x: Node) -> Node:
    return conj(transpose(x))


def _columns(v: Node) -> Node:
    """Numbers of columns, to be multiplied with matrices."""
    return expand(v, (v.ndim - 1,))


def _diagonal(n: Size) -> Node:
    return elementwise("equal", expand(iota(n), (1,)), expand(iota(n), (0,)))


def _where(condition: Node, x: Node | float, y: Node | float) -> Node:
    return elementwise("where", condition, x, y)


def _over_gaps(x: Node, w: Node) -> Node:
    """x_ij / (w_j - w_i), 0 of equal numbers."""
    gaps = elementwise("sub", _columns(w), expand(w, (w.ndim,)))
    is_same = elementwise("equal", gaps, 0)
    return _where(is_same, 0.0, elementwise("true_div", x, _where(is_same, 1.0, gaps)))


def _of_eigh(a: Node, results: Sequence[Node], cotangents: Sequence[Node]) -> Node:
    """v (diag(w') + (v* v') / (w_j - w_i)) v*, of equal eigenvalues without the second term, where the stars are
    conjugate transposes and the strokes cotangents."""
    (w, v), (of_values, of_vectors) = results, cotangents
    adjoint = _adjoint(v)
    inner = _over_gaps(matmul(adjoint, of_vectors), w)
    inner = inner + _where(_diagonal(w.type.shape[-1]), expand(of_values, (of_values.ndim,)), 0.0)
    return matmul(matmul(v, inner), adjoint)


def _of_eig(a: Node, results: Sequence[Node], cotangents: Sequence[Node]) -> Node:
    """v^-* (diag(w') + (v* t') / conj(w_j - w_i)) v*. t' are the cotangents of vectors of any length and phase, of
    which `eig` takes those of length 1 whose largest element is real."""
    (w, v), (of_values, of_vectors) = results, cotangents
    n = w.type.shape[-1]
    adjoint, sizes_of_v = _adjoint(v), elementwise("abs", v)
    products = _summed(conj(of_vectors) * v)
    is_largest = elementwise("equal", expand(iota(n), (1,)), _columns(sizes_of_v.argmax(axis=-2)))
    turn = _columns(imag_of(products)) / _where(is_largest, sizes_of_v, 1.0)
    free = of_vectors - v * _columns(real_of(products)) + times_i(_complex(_where(is_largest, turn, 0.0), v))
    inner = _over_gaps(matmul(adjoint, free), conj(w))
    inner = inner + _where(_diagonal(n), expand(of_values, (of_values.ndim,)), 0.0)
    return solve(adjoint, matmul(inner, adjoint))


def _of_eigvals(a: Node, results: Sequence[Node], cotangents: Sequence[Node]) -> Node:
    """As `_of_eig`; its eigenvalues may come in another order."""
    (values,), (of_values,) = results, cotangents
    w, v = factors("eig", a)
    far = elementwise("abs", elementwise("sub", _columns(w), expand(values, (values.ndim,))))
    is_own = elementwise("equal", expand(far.argmin(axis=-1), (far.ndim - 1,)), iota(w.type.shape[-1]))
    ordered = _summed(_where(is_own, expand(of_values, (of_values.ndim,)), 0.0))
    return _of_eig(a, (w, v), (ordered, v * 0.0))


def _of_svd(a: Node, results: Sequence[Node], cotangents: Sequence[Node]) -> Node:
    """u (diag(s') + (j + j*) s + s (k + k*) - i Im(diag(v* v')) / s) v* and what turns the spaces of u and v, where
    j, k are u* u', v* v' over the gaps s_j^2 - s_i^2."""
    (u, s, vh), (of_u, of_s, of_vh) = results, cotangents
    count = s.type.shape[-1]
    below = _where(elementwise("equal", s, 0), 0.0, 1.0 / _where(elementwise("equal", s, 0), 1.0, s))
    squares, diagonal = s * s, _diagonal(count)
    sides = []
    for vectors, slopes in ((u, of_u), (_adjoint(vh), _adjoint(of_vh))):
        first, of_first = (x.part((..., slice(None), slice(0, count))) for x in (vectors, slopes))
        products = matmul(_adjoint(first), of_first)
        turned = of_first - matmul(first, products)
        beyond = elementwise("greater_equal", iota(vectors.type.shape[-1]), count)
        rest, of_rest = (_where(beyond, x, 0.0) for x in (vectors, slopes))
        turned = turned - matmul(rest, matmul(_adjoint(of_rest), first))
        within = _over_gaps(products, squares)
        sides.append((first, products, turned * _columns(below), within + _adjoint(within)))
    (u, _, of_u, j), (v, own, of_v, k) = sides
    phases = times_i(_complex(imag_of(own) * _columns(below), u))
    inner = j * _columns(s) + expand(s, (s.ndim,)) * k + _where(diagonal, _columns(of_s) - phases, 0.0)
    return matmul(matmul(u, inner) + of_u, _adjoint(v)) + matmul(u, _adjoint(of_v))


def _of_qr(a: Node, results: Sequence[Node], cotangents: Sequence[Node]) -> Node:
    """(q' + q h) u^-* for the columns of the square part u of r, where h is Hermitian and has the lower triangle of
    u u'* - q'* q; q r' for those beyond it, which q' takes along."""
    (q, r), (of_q, of_r) = results, cotangents
    count, width = r.type.shape[-2:]
    of_beyond = _where(elementwise("greater_equal", iota(width), count), of_r, 0.0)
    square, of_square = (x.part((..., slice(None), slice(0, count))) for x in (r, of_r))
    of_q = of_q + matmul(a, _adjoint(of_beyond))
    products = matmul(square, _adjoint(of_square)) - matmul(_adjoint(of_q), q)
    is_below = elementwise("greater", expand(iota(count), (1,)), expand(iota(count), (0,)))
    lower = _where(is_below, products, 0.0)
    inner = lower + _adjoint(lower) + _where(_diagonal(count), real_of(products), 0.0)
    first = _adjoint(solve(square, _adjoint(of_q + matmul(q, inner))))
    places = elementwise("equal", expand(iota(count), (1,)), expand(iota(width), (0,)))
    return matmul(first, _complex(_where(places, 1.0, 0.0), q)) + matmul(q, of_beyond)


def _summed(x: Node) -> Node:
    """The sums of columns."""
    return from_parts(parts_of(x).sum(axis=-3))


def _complex(x: Node, like: Node) -> Node:
    return cast(x, like.type.dtype)


DERIVATIVES = {
    "eigh": _of_eigh, "eigh_upper": _of_eigh, "eig": _of_eig, "eigvals": _of_eigvals, "svd": _of_svd,
    "svd_full": _of_svd, "qr": _of_qr,
}  # fmt: skip
"""The cotangent of the matrix, of the matrix, its factors and their cotangents."""


def _vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    wanted = _factors(node)
    a, results, cotangents = from_parts(node.args[0]), _taken_apart(node, wanted), _taken_apart(cotangent, wanted)
    return (parts_of(DERIVATIVES[node.attrs["of"]](a, results, cotangents)),)


define_op(
    "complex_factors",
    infer=_infer,
    eval=_eval,
    lower=lambda node: PYTHON,
    vjp=_vjp,
    cost=100.0,
    doc="The factors of complex matrices, as floats one behind the other.",
    batch=aligned,
)
