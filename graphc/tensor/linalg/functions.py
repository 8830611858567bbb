"""Functions of whole matrices: powers, exponentials, norms, pseudo-inverses, least squares.

In: tensors whose last two axes are matrices; axes before are batches. Out: nodes composed of products, solutions and
factorisations. Those of an iteration (`sqrtm`, `logm`) have the derivative that mathematics has: that of a function f
in a direction E stands in f of the block matrix [[A, E], [0, A]].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce as accumulated
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_inexact
from graphc.control.functional import cond as branch, fori_loop, while_loop
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Complex, Node, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import pairs, shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.linalg import factor, matrices
from graphc.ops.linalg.matrices import spread
from graphc.ops.reduce import reduction
from graphc.tensor.creation import eye
from graphc.tensor.elementary import ceil, exp, isfinite, isnan, log, log2, maximum, sqrt, where
from graphc.tensor.indexing import getitem
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import by_blocks, eigvalsh, matrices_of, square_of, svdvals, symmetric
from graphc.tensor.products import matmul
from graphc.tensor.reductions import norm as vector_norm_of, square_size
from graphc.tensor.shaping import flatten, label_operand, normalise_axes, of_rank

__all__ = [
    "cond", "coshm", "expm", "funm_hermitian", "logm", "lstsq", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "null_space", "orth", "pinv", "pinvh", "polar", "sinhm", "sqrtm", "tanhm", "vector_norm",
]  # fmt: skip


def _identity(a: Node) -> Node:
    return eye(as_size_node(a.type.shape[-1]), dtype=a.type.dtype)


def _matrix(a: Node, axis: int) -> Node:
    """The greatest sum of magnitudes along an axis of matrices."""
    return _greatest(abs(a).sum(axis))


def _greatest(x: Node, keepdims: bool = False) -> Node:
    """The maximum along the last axis; -inf of no elements."""
    found = reduction("supremum", x, (x.ndim - 1,))
    return layout.expand(found, (x.ndim - 1,)) if keepdims else found


# --- products ---------------------------------------------------------------------------------------------------------


def matrix_power(a: Any, n: int) -> Node:
    """The n-th power of each square matrix, of the inverse for a negative n, by squarings; n is a Python integer."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise GraphTypeError(f"matrix_power: the exponent {n!r} is not an integer")
    node = of_rank(a, "matrix_power: {} is no matrix", 2)
    rows, columns = node.type.shape[-2:]
    sizes.common(rows, columns, label_operand("matrix_power", node), ", a square matrix")
    if n < 0:
        node, n = matrices.inverse(square_of("matrix_power", node)), -n
    if n == 0:
        return layout.broadcast_to(layout.expand(_identity(node), range(node.ndim - 2)), node.type.shape)
    found: Node | None = None
    while n:
        n, odd = divmod(n, 2)
        if odd:
            found = node if found is None else matmul(found, node)
        node = matmul(node, node) if n else node
    assert found is not None
    return found


def multi_dot(arrays: Sequence[Any]) -> Node:
    """The product of all arrays, the first and last of which may be vectors. The compiler chooses the order of products
    where it knows the sizes."""
    if len(arrays) < 2:
        raise GraphValueError("multi_dot: it takes at least two arrays")
    return accumulated(matmul, map(as_node, arrays))


# --- the exponential --------------------------------------------------------------------------------------------------

PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
"""The coefficients of the Pade approximant of degree 13."""
LARGEST = {"float64": 4.25, "float32": 3.9}
"""The largest norm of a matrix for which the approximant is right to the last place."""


@by_blocks
def expm(a: Any) -> Node:
    """The exponential of each square matrix: a Pade approximant of degree 13, scaled and squared (Higham 2005, with the
    norms of powers of Al-Mohy and Higham 2009). Derivatives of all orders go through it."""
    node = square_of("expm", a)
    one = _identity(node)
    second = matmul(node, node)
    fourth = matmul(second, second)
    size = maximum(_matrix(fourth, -2) ** 0.25, _matrix(matmul(fourth, second), -2) ** (1 / 6))
    times = ceil(log2(size / LARGEST[node.type.dtype]))
    count = cast(where(isfinite(times), maximum(times, 0.0), 0.0), "int64")
    a1 = node * spread(cast(exp(cast(-count, "float64") * math.log(2.0)), node.type.dtype))
    a2 = matmul(a1, a1)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    b = PADE
    odd = matmul(a6, a6 * b[13] + a4 * b[11] + a2 * b[9]) + a6 * b[7] + a4 * b[5] + a2 * b[3] + one * b[1]
    even = matmul(a6, a6 * b[12] + a4 * b[10] + a2 * b[8]) + a6 * b[6] + a4 * b[4] + a2 * b[2] + one * b[0]
    odd = matmul(a1, odd)
    # of a NaN the solution is NaN, no error
    first = matrices.solve(even - odd, even + odd, on_error="nan")
    if node.ndim == 2:
        alone: Node = fori_loop(0, count, lambda step, x: matmul(x, x), first)
        return alone

    def squared(step: Node, x: Node) -> Node:
        return where(spread(step < count), matmul(x, x), x)

    most = concatenate([flatten(count), layout.zeros("int64", (1,))]).max()
    found: Node = fori_loop(0, most, squared, first)
    return found


@by_blocks
def coshm(a: Any) -> Node:
    """The hyperbolic cosine of each square matrix."""
    node = square_of("coshm", a)
    return (expm(node) + expm(-node)) * 0.5


@by_blocks
def sinhm(a: Any) -> Node:
    """The hyperbolic sine of each square matrix."""
    node = square_of("sinhm", a)
    return (expm(node) - expm(-node)) * 0.5


@by_blocks
def tanhm(a: Any) -> Node:
    """The hyperbolic tangent of each square matrix."""
    node = square_of("tanhm", a)
    return matrices.solve(coshm(node), sinhm(node))


# --- roots and logarithms ---------------------------------------------------------------------------------------------


def _with_directions(function: Callable[[Any], Node], value: Node, a: Node) -> Node:
    """`value`, function(a), whose derivative is what stands in the function of a block matrix."""

    def rule(
        inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Any
    ) -> Sequence[Node | None]:
        turned = layout.transpose(inputs[0])
        size = turned.type.shape[-1]
        rows = turned.ndim - 2
        top = concatenate([turned, given[0]], rows + 1)
        below = concatenate([layout.zeros(turned.type.dtype, turned.type.shape), turned], rows + 1)
        whole = function(concatenate([top, below], rows))
        count = as_size_node(size)
        return [getitem(whole, (Ellipsis, slice(None, count), slice(count, None)))]

    return overridden([value], [a], rule)[0]


STEPS = 100
"""Newton steps after which a matrix has no root: it takes few where there is one."""


def _newton_root(a: Node) -> Node:
    """The root whose eigenvalues have positive real parts: Denman and Beavers' iteration, the product form with scaling
    by determinants (Higham, Functions of Matrices, 6.29). NaN where it does not converge."""
    one = _identity(a) + layout.zeros(a.type.dtype, a.type.shape)
    count = cast(as_size_node(a.type.shape[-1]), a.type.dtype)
    unit = np.finfo(a.type.dtype).eps

    def away(m: Node) -> Node:
        return _matrix(m - one, -2)

    def goes_on(carry: Any) -> Node:
        step, _, m = carry
        far = elementwise("greater", away(m), count * (4 * unit))
        return elementwise("logical_and", far.any(), step < STEPS)

    def newton(carry: Any) -> Any:
        step, x, m = carry
        inverse = matrices.inverse(m, "nan")
        scale = exp(matrices.logabsdet(m) * (-0.5) / count)
        scale = spread(where(away(m) < 0.01, literal(1, a.type.dtype), scale))
        upward, downward = scale * scale, 1.0 / (scale * scale)
        after = (one + (m * upward + inverse * downward) * 0.5) * 0.5
        return step + 1, matmul(x, one + inverse * downward) * scale * 0.5, after

    _, found, _ = while_loop(goes_on, newton, (literal(0, "int64"), a, a))
    rest = matmul(found, found) - a
    good = _matrix(rest, -2) <= _matrix(a, -2) * (count * math.sqrt(unit))
    return where(spread(good), found, literal(np.nan, a.type.dtype))


def _is_symmetric(a: Node) -> Node:
    return elementwise("equal", a, layout.transpose(a)).all()


def _of_values(a: Node, function: Callable[[Node], Node]) -> Node:
    """The function of a symmetric matrix that `function` of its eigenvalues makes."""
    w, v = factor.eigh(a, lower=True)
    size = _greatest(abs(w), keepdims=True)
    count = cast(as_size_node(a.type.shape[-1]), a.type.dtype)
    noise = size * (count * np.finfo(a.type.dtype).eps)
    rounded = where(elementwise("logical_and", w < 0, -w <= noise), 0.0, w)
    return matmul(v * layout.expand(function(cast(rounded, a.type.dtype)), (w.ndim - 1,)), layout.transpose(v))


def sqrtm(a: Any) -> Node:
    """The principal square root of each square matrix: that whose eigenvalues have no negative real part. NaN where
    there is none of real numbers, and of a singular matrix that is not symmetric. Symmetric matrices go through
    `eigh`."""
    node = square_of("sqrtm", a)
    value = branch(_is_symmetric(node), lambda x: _of_values(x, sqrt), _newton_root, node)
    return _with_directions(sqrtm, value, node)


NODES = (0.1834346424956498, 0.525532409916329, 0.7966664774136267, 0.9602898564975363)
WEIGHTS = (0.362683783378362, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763)
"""The weights of Gauss and Legendre's quadrature of 8 points, of each pair of nodes the positive one."""
CLOSE_TO_ONE = 0.25
"""The distance from the identity up to which the approximant of degree 8 is right to the last place."""


def _log_by_roots(a: Node) -> Node:
    """Roots until the matrix is near the identity, whose logarithm a sum of partial fractions approximates, times two
    as often (Higham, Functions of Matrices, 11.10)."""
    one = _identity(a) + layout.zeros(a.type.dtype, a.type.shape)

    def goes_on(carry: Any) -> Node:
        step, x = carry
        far = elementwise("greater", _matrix(x - one, -2), CLOSE_TO_ONE)
        return elementwise("logical_and", far.any(), step < STEPS)

    count, near = while_loop(goes_on, lambda carry: (carry[0] + 1, _newton_root(carry[1])), (literal(0, "int64"), a))
    # one batch of eight systems: a tenth of the graph, one call for all
    rest = layout.expand(near - one, (a.ndim - 2,))
    places = np.array([place for size in NODES for place in (size, -size)])
    parts = (literal(each[:, None, None], a.type.dtype) for each in ((1 + places) / 2, np.repeat(WEIGHTS, 2) / 2))
    shift, weight = parts
    system = layout.expand(one, (a.ndim - 2,)) + rest * shift
    found = (matrices.solve(system, rest + layout.zeros(a.type.dtype, system.type.shape), on_error="nan") * weight).sum(
        -3
    )
    return found * cast(exp(cast(count, "float64") * math.log(2.0)), a.type.dtype)


def logm(a: Any) -> Node:
    """The principal logarithm of each square matrix, by inverse scaling and squaring. NaN where there is none of real
    numbers. Symmetric matrices go through `eigh`."""
    node = square_of("logm", a)
    value = branch(_is_symmetric(node), lambda x: _of_values(x, log), _log_by_roots, node)
    return _with_directions(logm, value, node)


def funm_hermitian(a: Any, function: Callable[[Node], Node]) -> Node:
    """The function of a symmetric matrix, given by what it makes of each eigenvalue, `function(w)`: v f(w) v'."""
    node = square_of("funm_hermitian", a)
    w, v = factor.eigh(node, lower=True)
    return matmul(v * layout.expand(as_node(function(w)), (w.ndim - 1,)), layout.transpose(v))


# --- pseudo-inverses and least squares --------------------------------------------------------------------------------


def _machine(a: Node) -> float:
    return float(np.finfo(a.type.dtype).eps)


def _longer(a: Node) -> Node:
    return cast(as_size_node(sizes.maximum(*a.type.shape[-2:])), a.type.dtype)


def _cut(s: Node, rcond: Node) -> Node:
    """1 / s, and 0 where s is not above `rcond` times the largest."""
    present = s > rcond * _greatest(s, keepdims=True)
    return where(present, 1.0 / where(present, s, 1.0), 0.0)


def _threshold(node: Node, given: Any, default: Node) -> Node:
    if given is None:
        return default
    value = cast(as_node(given), node.type.dtype)
    return layout.expand(value, (value.ndim,)) if value.ndim else value


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Node:
    """The Moore-Penrose inverse of each matrix, by singular values; those not above `rcond` times the largest count as
    zero (max(m, n) times the machine's precision for rtol=None, 1e-15 for neither, as in NumPy).

    Its derivative holds where the rank does not change (Golub and Pereyra 1973).
    """
    if type(whole := as_node(a)) is Complex:
        given = rcond if rtol is None else rtol
        limit = _longer(whole.args[0]) * _machine(whole.args[0]) if given is None else given
        made = pinv(pairs.embedded(whole), limit, hermitian)
        return pairs.unembedded(made, *whole.type.shape[:-3:-1])
    (node,) = matrices_of("pinv", a)
    limit = _threshold(node, rcond if rtol is None else rtol, _longer(node) * _machine(node))
    u, s, vh = factor.svd(symmetric(node, lower=True) if hermitian else node, full=False)
    value = matmul(layout.transpose(vh) * layout.expand(_cut(s, limit), (s.ndim - 1,)), layout.transpose(u))

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Any) -> list[Node]:
        (a,), (p,), g = inputs, results, given[0]
        turned, t = layout.transpose, layout.transpose(p)
        one = -matmul(matmul(t, g), t)
        back = matmul(turned(g), matmul(p, t))
        two = back - matmul(a, matmul(p, back))
        forth = matmul(matmul(t, p), turned(g))
        three = forth - matmul(matmul(forth, p), a)
        return [one + two + three]

    return overridden([value], [node], rule)[0]


def pinvh(a: Any, rcond: Any = None) -> Node:
    """`pinv` of a symmetric matrix, of which the lower triangle is read (SciPy's)."""
    return pinv(symmetric(square_of("pinvh", a), lower=True), rcond)


def _least(a: Node, limit: Node, b: Node, turned: bool) -> Node:
    """The pseudo-inverse of `a`, or of its transpose, times `b`, with its derivative."""
    u, s, vh = factor.svd(a, full=False)
    left, right = (layout.transpose(vh), layout.transpose(u)) if not turned else (u, vh)
    value = matmul(left * layout.expand(_cut(s, limit), (s.ndim - 1,)), matmul(right, b))

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Any) -> list[Node]:
        (a, b), (x,), g = inputs, results, given[0]
        m = layout.transpose(a) if turned else a
        t = layout.transpose
        y = _least(a, limit, g, not turned)
        z = _least(a, limit, y, turned)
        w = _least(a, limit, x, not turned)
        of_m = matmul(b - matmul(m, x), t(z)) + matmul(w, t(g - matmul(t(m), y))) - matmul(y, t(x))
        return [t(of_m) if turned else of_m, y]

    return overridden([value], [a, b], rule)[0]


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Node, Node, Node, Node]:
    """`(x, residuals, rank, s)`: the shortest x for which |a x - b| is least, for each column of `b`, or for a vector.

    residuals: the sums of squares of a x - b, none where the rank is less than the columns or `a` has not more rows
    than columns. s: the singular values; those not above `rcond` times the largest count as zero. As LAPACK's gelsd,
    and so NumPy, it takes the machine's precision for an rcond that is not between 0 and 1.
    """
    left, right = matrices_of("lstsq", a, b, vectors=True)
    if left.ndim != 2 or right.ndim not in (1, 2):
        raise RankError(
            f"lstsq: {describe(left)} of type {left.type} and {describe(right)} of type {right.type} are not a matrix "
            "and a vector or matrix"
        )
    part = left.args[0] if type(left) is Complex else left
    limit = _threshold(part, rcond, _longer(left) * _machine(part))
    if rcond is not None:
        limit = where(elementwise("logical_and", limit > 0, limit < 1), limit, literal(_machine(part), part.type.dtype))
    columns = right if right.ndim == 2 else layout.expand(right, (1,))
    if type(left) is Complex:
        x = _least(pairs.embedded(left), limit, pairs.embedded(columns), turned=False)
        x = pairs.unembedded(x, left.type.shape[1], columns.type.shape[1])
        s = svdvals(left)
    else:
        x = _least(left, limit, columns, turned=False)
        s = factor.svd(left, full=False)[1]
    rank = cast(s > limit * _greatest(s, keepdims=True), "int32").sum(dtype="int32")
    rows, width = map(as_size_node, left.type.shape)
    whole = elementwise("logical_and", elementwise("equal", rank, width), elementwise("greater", rows, width))
    rest = matmul(left, x) - columns
    squares = ((abs(rest) if type(rest) is Complex else rest) ** 2).sum(0)
    count = where(whole, as_size_node(squares.type.shape[0]), 0)
    return (x if right.ndim == 2 else layout.drop(x, (1,))), getitem(squares, slice(None, count)), rank, s


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Node:  # noqa: N803
    """The number of singular values of each matrix above `tol`, or above `rtol` times the largest (max(m, n) times the
    machine's precision); of a vector whether it is not zero (NumPy's)."""
    node = as_node(A)
    if node.ndim < 2:
        return cast(elementwise("not_equal", node, 0).any(), "int64")
    (node,) = matrices_of("matrix_rank", node)
    s = abs(eigvalsh(node)) if hermitian else svdvals(node)
    if tol is not None:
        limit = _threshold(node, tol, s)
    else:
        limit = _greatest(s, keepdims=True) * _threshold(node, rtol, _longer(node) * _machine(node))
    return cast(s > limit, "int64").sum(-1)


def _basis(name: str, a: Any, rcond: Any) -> tuple[Node, Node, Node]:
    (node,) = matrices_of(name, a)
    if node.ndim != 2:
        raise RankError(f"{name}: {describe(node)} of type {node.type} is no matrix")
    u, s, vh = factor.svd(node, full=not sizes.equal(*node.type.shape))
    limit = _threshold(node, rcond, _longer(node) * _machine(node))
    rank = cast(s > limit * _greatest(s, keepdims=True), "int64").sum()
    return u, layout.transpose(vh), rank


def null_space(A: Any, rcond: Any = None) -> Node:  # noqa: N803
    """An orthonormal basis of what a matrix maps to zero, the columns, as many as the values say (SciPy's)."""
    _, v, rank = _basis("null_space", A, rcond)
    return getitem(v, (slice(None), slice(rank, None)))


def orth(A: Any, rcond: Any = None) -> Node:  # noqa: N803
    """An orthonormal basis of what a matrix maps to, the columns, as many as its rank (SciPy's)."""
    u, _, rank = _basis("orth", A, rcond)
    return getitem(u, (slice(None), slice(None, rank)))


def polar(a: Any, side: str = "right") -> tuple[Node, Node]:
    """`(u, p)` with a = u p, or a = p u for side="left": orthonormal u, positive semidefinite p (SciPy's)."""
    if side not in ("right", "left"):
        raise GraphValueError(f"polar: side={side!r} must be 'right' or 'left'")
    (node,) = matrices_of("polar", a)
    u, s, vh = factor.svd(node)

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Any) -> list[Node]:
        """U ((N - N') / (s_i + s_j)) V' for N = U' g V, and what goes out of the spaces that U and V span."""
        t, g = layout.transpose, given[0]
        n = matmul(matmul(t(u), g), t(vh))
        sums = layout.expand(s, (s.ndim,)) + layout.expand(s, (s.ndim - 1,))
        inverse = layout.expand(1.0 / s, (s.ndim - 1,))
        found = matmul(matmul(u, (n - t(n)) / sums), vh)
        if not sizes.equal(*node.type.shape[-2:]):
            outside = g - matmul(u, matmul(t(u), g))
            found = found + matmul(matmul(outside, t(vh)) * inverse, vh)
            beyond = g - matmul(matmul(g, t(vh)), vh)
            found = found + matmul(u * inverse, matmul(t(u), beyond))
        return [found]

    unitary = overridden([matmul(u, vh)], [node], rule)[0]
    turned = layout.transpose(unitary)
    return unitary, matmul(turned, node) if side == "right" else matmul(node, turned)


# --- norms ------------------------------------------------------------------------------------------------------------

_NAMED = {"inf": math.inf, "-inf": -math.inf}


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    """NumPy's norms: of all elements (2), of vectors along `axis`, or of the matrices of a pair of axes.

    Of vectors `ord` is any number, inf or -inf; of matrices 1 and -1 (sums of columns), inf and -inf (of rows), 2 and
    -2 (the greatest and the least singular value), "fro" (the default) and "nuc" (the sum of singular values).
    """
    node = as_node(x)
    node = node if is_inexact(node.type.dtype) else cast(node, "float64")
    ord = _NAMED.get(ord, ord) if isinstance(ord, str) else ord
    if axis is None and ord is None:
        return vector_norm_of(node, None, None, keepdims)
    if axis is None and node.ndim not in (1, 2):
        raise RankError(f"norm of {describe(node)} of type {node.type}: which axes? it is no vector or matrix")
    axes = normalise_axes(axis, node.ndim, label_operand("norm", node))
    if len(axes) == 1:
        if isinstance(ord, str):
            raise GraphValueError(f"norm of {describe(node)} of type {node.type}: vectors have no ord {ord!r}")
        return vector_norm_of(node, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise GraphValueError(f"norm of {describe(node)} of type {node.type}: axis {axis!r} must be one axis or two")
    found = _matrix_norm(layout.dimshuffle(node, (*(k for k in range(node.ndim) if k not in axes), *axes)), ord)
    return layout.expand(found, sorted(axes)) if keepdims else found


def _matrix_norm(a: Node, ord: Any) -> Node:
    match ord:
        case None | "fro" | "f":
            return sqrt(square_size(a).sum((-2, -1)))
        case 1:
            return _largest_or_zero(abs(a).sum(-2))
        case -1:
            return abs(a).sum(-2).min(-1)
        case math.inf:
            return _largest_or_zero(abs(a).sum(-1))
        case value if value == -math.inf:
            return abs(a).sum(-1).min(-1)
        case 2:
            return _largest_or_zero(svdvals(a))
        case -2:
            return svdvals(a).min(-1)
        case "nuc":
            return svdvals(a).sum(-1)
    raise GraphValueError(f"norm of {describe(a)}: matrices have no ord {ord!r}")


def _largest_or_zero(x: Node) -> Node:
    """The greatest of numbers that are not negative; 0 where there are none, as in NumPy."""
    is_empty = elementwise("equal", x.shape[x.ndim - 1], 0)
    return where(is_empty, literal(0, x.type.dtype), reduction("supremum", x, (x.ndim - 1,)))


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Node:
    """`norm` of the matrices of the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Node:
    """The vector norm over all of `axis`, by default of all elements."""
    return vector_norm_of(x, _NAMED.get(ord, ord) if isinstance(ord, str) else ord, axis, keepdims)


def cond(x: Any, p: Any = None) -> Node:
    """The condition number of each matrix: the quotient of the greatest and the least singular value, its inverse for
    p=-2, for other orders of `norm` |x| |x^-1|; inf of a singular matrix."""
    (node,) = matrices_of("cond", x)
    if p in (None, 2, -2):
        s = svdvals(node)
        most, least = s.max(-1), s.min(-1)
        found = least / most if p == -2 else most / least
    else:
        found = norm(node, p, (-2, -1)) * norm(matrices.inverse(node, "nan"), p, (-2, -1))
    is_known = elementwise("logical_not", isnan(node).any((-2, -1)))
    return where(elementwise("logical_and", isnan(found), is_known), math.inf, found)
