"""Polynomials through linear algebra: roots, the polynomial of roots or of a matrix, fits, quotients.

In: vectors of coefficients, the highest power first, and matrices. Out: nodes, as NumPy's functions of these names.
There are no complex numbers: `roots_parts` gives real and imaginary parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_inexact, promote
from graphc.control.functional import fori_loop
from graphc.errors import GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Complex, Node, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import with_elements
from graphc.ops.questions import asked_size
from graphc.tensor.arranging import trim_zeros
from graphc.tensor.elementary import sqrt, where
from graphc.tensor.indexing import getitem
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import eigvals, eigvals_parts, if_real, inv, matrices_of
from graphc.tensor.linalg.functions import lstsq
from graphc.tensor.linalg.structured import companion
from graphc.tensor.products import matmul, outer
from graphc.tensor.selecting import vander
from graphc.tensor.shaping import as_vector

__all__ = ["poly", "polydiv", "polyfit", "roots", "roots_parts"]


def _coefficients(name: str, p: Any) -> Node:
    node = as_vector(name, p)
    return cast(node, node.type.dtype if is_inexact(node.type.dtype) else "float64")


def roots_parts(p: Any) -> tuple[Node, Node]:
    """The roots of a polynomial: real and imaginary parts; as many as its degree, which the values say: zeros in front
    do not count. The eigenvalues of the companion matrix, then a 0 for each zero at the end (NumPy's order)."""
    matrix, zeros = _companion(_coefficients("roots", p))
    first, second = (concatenate([part, zeros]) for part in eigvals_parts(matrix))
    return first, second


def _companion(node: Node) -> tuple[Node, Node]:
    """The matrix whose eigenvalues are the roots that are not 0, and zeros for the others."""
    tail = trim_zeros(node, "f")
    middle = trim_zeros(tail, "b")
    count = as_size_node(middle.type.shape[0])
    # of no coefficients the polynomial is 1, which has no roots
    missing = layout.filled(
        literal(1.0, node.type.dtype), (sizes.as_size(where(elementwise("equal", count, 0), 1, 0)),)
    )
    zeros = layout.zeros(node.type.dtype, (sizes.subtract(tail.type.shape[0], middle.type.shape[0]),))
    return companion(concatenate([middle, missing])), zeros


def roots(p: Any) -> Node:
    """The roots of a polynomial, where all are real. If some are complex, a call of `jit` gives complex ones; a
    function of variables raises an error that names the polynomial: `roots_parts` gives real and imaginary parts."""
    node = as_node(p)
    if type(node) is Complex:
        matrix, zeros = _companion(_coefficients("roots", node))
        return concatenate([eigvals(matrix), zeros])
    first, second = roots_parts(node)
    message = f"roots of {describe(node)}: it has complex roots, whose parts roots_parts gives"
    return if_real(message, second, [(first, second)])[0]


def poly(seq_of_zeros: Any) -> Node:
    """The coefficients of the polynomial with these roots, or of the characteristic polynomial of a square matrix; the
    first one is 1."""
    node = as_node(seq_of_zeros)
    if node.ndim == 2:
        real, imaginary = eigvals_parts(matrices_of("poly", node)[0])
    else:
        real = _coefficients("poly", node)
        imaginary = layout.zeros(real.type.dtype, real.type.shape)
    count = real.type.shape[0]
    zero = layout.zeros(real.type.dtype, (count,))
    one = layout.filled(literal(1.0, real.type.dtype), (1,))

    def times(step: Node, carry: Any) -> Any:
        """The product with x - root, of numbers of which the last ones are 0."""
        a, b = carry
        x, y = getitem(real, step), getitem(imaginary, step)
        first, then = (concatenate([layout.zeros(real.type.dtype, (1,)), part[:-1]]) for part in (a, b))
        return a - x * first + y * then, b - x * then - y * first

    start = concatenate([one, zero]), layout.zeros(real.type.dtype, (sizes.add(count, 1),))
    found: Node = fori_loop(0, as_size_node(count), times, start)[0]
    return found


def polydiv(u: Any, v: Any) -> tuple[Node, Node]:
    """`(q, r)` with u = q v + r, of polynomials whose numbers of coefficients are known; the remainder without what is
    0 in front, to 1e-8 (NumPy's)."""
    left, right = _coefficients("polydiv", u), _coefficients("polydiv", v)
    dtype = promote(left.type.dtype, right.type.dtype)
    counts = [asked_size(node.type.shape[0]) for node in (left, right)]
    for node, count in zip((left, right), counts, strict=True):
        if not isinstance(count, int) or not count:
            raise GraphTypeError(f"polydiv: {describe(node)} of type {node.type} has no known number of coefficients")
    m, n = (int(count) for count in counts)
    left, right = cast(left, dtype), cast(right, dtype)
    parts: list[Node] = []
    rest = [left[k] for k in range(m)]
    for place in range(m - n + 1):
        factor = rest[place] / right[0]
        parts.append(factor)
        for k in range(n):
            rest[place + k] = rest[place + k] - factor * right[k]
    quotient = parts or [literal(0.0, dtype)]
    remainder = concatenate([layout.expand(each, (0,)) for each in rest])
    near = cast(elementwise("less_equal", abs(remainder), 1e-8), "int64")
    before = near.cumprod().sum()
    kept = getitem(remainder, slice(elementwise("minimum", before, m - 1), None))
    return concatenate([layout.expand(each, (0,)) for each in quotient]), kept


def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The polynomial of degree `deg` that fits values `y` at points `x` best, its coefficients; of a matrix each column
    (NumPy's). w: a weight of each point. full: `(p, residuals, rank, singular values, rcond)` of the scaled matrix.
    cov: `(p, covariance)`, scaled by the residuals unless it is "unscaled"."""
    if isinstance(deg, bool) or not isinstance(deg, (int, np.integer)) or deg < 0:
        raise ShapeError(f"polyfit: deg={deg!r} should be a whole number, 0 or more")
    points, values = _coefficients("polyfit", x), as_node(y)
    points = with_elements(points, 0, 1, f"polyfit: {describe(points)} has no elements")
    if values.ndim not in (1, 2):
        raise GraphTypeError(f"polyfit: {describe(values)} of type {values.type} is neither vector nor matrix")
    dtype = promote(points.type.dtype, values.type.dtype if is_inexact(values.type.dtype) else "float64")
    points, values = cast(points, dtype), cast(values, dtype)
    count = as_size_node(points.type.shape[0])
    powers = vander(points, int(deg) + 1)
    if w is not None:
        weights = cast(_coefficients("polyfit", w), dtype)
        powers = powers * layout.expand(weights, (1,))
        values = values * (weights if values.ndim == 1 else layout.expand(weights, (1,)))
    machine = np.finfo(dtype)
    limit = cast(count, machine.dtype.name) * float(machine.eps) if rcond is None else rcond
    scale = sqrt((powers * powers).sum(0))
    scaled = powers / layout.expand(scale, (0,))
    found, residuals, rank, singular = lstsq(scaled, values, limit)
    found = found / (scale if values.ndim == 1 else layout.expand(scale, (1,)))
    if full:
        return found, residuals, rank, singular, as_node(limit)
    if not cov:
        return found
    base = inv(matmul(layout.transpose(scaled), scaled)) / outer(scale, scale)
    if cov == "unscaled":
        return found, base if values.ndim == 1 else layout.expand(base, (2,))
    spare = cast(count - (int(deg) + 1), dtype)
    if values.ndim == 1:
        return found, base * (residuals.sum() / spare)
    return found, layout.expand(base, (2,)) * (residuals / spare)
