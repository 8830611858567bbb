"""Factorisations of complex matrices, by NumPy: eigenvalues and vectors, singular values and vectors, QR.

In: the parts of complex matrices (..., n, m, 2), as `ops/pairs.py` has them. Out: one vector (..., L) of floats for
each matrix, in which the factors lie one behind the other; `factors` takes them apart:

    eigh(a)      w, v        real eigenvalues in rising order, and vectors, of Hermitian matrices; eigh_upper(a) reads
                             the upper triangle, which gives other phases
    eig(a)       w, v        complex ones of any square matrices; eigvals(a) without v
    svd(a)       u, s, vh    reduced, or with square u and vh
    qr(a)        q, r        reduced

The derivative of `eigh` is written here; the others have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.errors import GradientError
from graphc.ir import sizes
from graphc.ir.node import OPS, Array, Attributes, Node, Size, Type, define_op, describe, make
from graphc.ops.custom import PYTHON
from graphc.ops.elementwise import aligned, elementwise
from graphc.ops.linalg.products import matmul
from graphc.ops.pairs import conj, from_parts, parts_of
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
    made = [np.ascontiguousarray(each) for each in COMPUTE[node.attrs["of"]](whole)]
    wanted = FACTORS[node.attrs["of"]](*whole.shape[-2:])
    flat = []
    for each, factor in zip(made, wanted, strict=True):
        own = each.astype(whole.dtype) if factor.is_complex else each
        flat.append(own.view(a.dtype).reshape(*outer, factor.length))
    return np.ascontiguousarray(np.concatenate(flat, -1), a.dtype)


def factors(of: str, a: Node) -> list[Node]:
    """The factors of complex matrices."""
    node = make(OPS["complex_factors"], (parts_of(a),), {"of": of})
    return _taken_apart(node, _factors(node))


def _taken_apart(flat: Node, wanted: Sequence[Factor]) -> list[Node]:
    outer, found = flat.type.shape[:-1], []
    place: Size = 0
    for factor in wanted:
        end = sizes.add(place, factor.length)
        part = flat.part((..., slice(place, end)))
        whole = reshape(part, (*outer, *factor.shape, *(2,) * factor.is_complex))
        found.append(from_parts(whole) if factor.is_complex else whole)
        place = end
    return found


def _vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """v (diag(w') + (v* v') / (w_j - w_i)) v*, of equal eigenvalues without the second term, where the stars are
    conjugate transposes and the strokes cotangents."""
    if node.attrs["of"] not in ("eigh", "eigh_upper"):
        raise GradientError(f"{node.attrs['of']} of complex matrices has no derivative: {describe(node)}")
    w, v = _taken_apart(node, _factors(node))
    of_values, of_vectors = _taken_apart(cotangent, _factors(node))
    adjoint = conj(transpose(v))
    gaps = elementwise("sub", expand(w, (w.ndim - 1,)), expand(w, (w.ndim,)))
    is_same = elementwise("equal", gaps, 0)
    shares = elementwise("true_div", matmul(adjoint, of_vectors), elementwise("where", is_same, 1.0, gaps))
    n = w.type.shape[-1]
    on_diagonal = elementwise("equal", expand(iota(n), (1,)), expand(iota(n), (0,)))
    along = elementwise("where", on_diagonal, expand(of_values, (of_values.ndim,)), 0.0)
    inner = elementwise("add", elementwise("where", is_same, 0.0, shares), along)
    return (parts_of(matmul(matmul(v, inner), adjoint)),)


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
