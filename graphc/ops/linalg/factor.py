"""Factorisations that solve equations: Cholesky's, LU, and the solution of triangular systems.

In: nodes of floats, matrices in their last two axes. Out: op records (routine.py), and functions that make their nodes.
What solves a system, gives a determinant or an inverse is composed of these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.node import OPS, Array, Node, literal
from graphc.ir.samples import Argument, samples
from graphc.ops.elementwise import elementwise
from graphc.ops.index import gather, set_gather
from graphc.ops.linalg.derivatives import on_diagonal, pulled_back, triangle
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import ON_ERROR, Routine, apply_routine, define_routine, shorter
from graphc.ops.shape import broadcast_to, dimshuffle, iota, transpose, zeros


def _scaled(number: float, x: Node) -> Node:
    return elementwise("mul", literal(number, x.type.dtype), x)


# --- cholesky ---------------------------------------------------------------------------------------------------------


def cholesky(a: Node, on_error: str = "raise") -> Node:
    """The lower triangular L with L L' = a, of which the lower triangle is read. A matrix that is not positive definite
    raises LinAlgError, or makes its L all NaN under on_error="nan"."""
    return apply_routine(OPS["cholesky"], (a,), on_error)


def _cholesky_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Return the cotangent of the lower triangle alone (Murray, Differentiation of the Cholesky decomposition,
    2016)."""
    found = pulled_back(node, cotangent)
    if found is not None:
        return [on_diagonal(triangle(found, strict=True), _scaled(0.5, found))]
    solve = partial(triangular_solve, node, transposed=True, on_error=node.attrs[ON_ERROR])
    inner = triangle(matmul(transpose(node), triangle(cotangent)))
    inner = on_diagonal(inner, _scaled(0.5, inner))
    outer = solve(transpose(solve(inner)))  # the transpose of L'^-1 inner L^-1
    both = triangle(elementwise("add", outer, transpose(outer)))
    return [on_diagonal(both, outer)]


def _positive(x: Node) -> Node:
    """A matrix that is positive definite, whatever `x` is."""
    product = matmul(x, transpose(x))
    return on_diagonal(product, elementwise("add", product, literal(2, x.type.dtype)))


define_routine(
    Routine(
        "cholesky",
        operands=("nn",),
        results=("nn",),
        compute=np.linalg.cholesky,
        work="nnn",
        failures=("Matrix is not positive definite",),
        overwritten=(0, 0),
    ),
    "The lower triangular factor L of a = L L'; the lower triangle of a is read.",
    samples(
        ("a matrix", lambda x: cholesky(_positive(x)), (3, 3)),
        ("a batch", lambda x: cholesky(_positive(x)), (2, 3, 3)),
        ("nothing", lambda x: cholesky(_positive(x)), (0, 0)),
        others=[("NaN", lambda x: cholesky(x, "nan"), Argument((3, 3), low=-2, high=-1))],
    ),
    _cholesky_vjp,
)


def inverse_of_factor(lower: Node) -> Node:
    """The inverse of L L' for a lower triangular L. It never fails: where there is a 0 on the diagonal of L, it has
    infinities."""
    return apply_routine(OPS["inverse_of_factor"], (lower,))


def _inverse_of_factor(lower: Array) -> Array:
    found = np.empty(lower.shape)
    for place in np.ndindex(lower.shape[:-2]):
        one = np.tril(lower[place]).astype(np.float64)
        try:
            half = np.linalg.inv(one)
        except np.linalg.LinAlgError:
            half = np.full_like(one, np.inf)
        found[place] = half.T @ half
    return found


def _inverse_of_factor_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    both = elementwise("add", cotangent, transpose(cotangent))
    return [triangle(_scaled(-1.0, matmul(matmul(matmul(node, both), node), triangle(node.args[0]))))]


define_routine(
    Routine(
        "inverse_of_factor",
        operands=("nn",),
        results=("nn",),
        compute=_inverse_of_factor,
        work="nnn",
        overwritten=(0, 0),
    ),
    "The inverse of L L' for a lower triangular L, of which the lower triangle is read.",
    samples(
        ("a matrix", lambda x: inverse_of_factor(cholesky(_positive(x))), (3, 3)),
        ("a batch", lambda x: inverse_of_factor(cholesky(_positive(x))), (2, 3, 3)),
        ("nothing", inverse_of_factor, (0, 0)),
    ),
    _inverse_of_factor_vjp,
)


# --- triangular systems -----------------------------------------------------------------------------------------------


def triangular_solve(
    a: Node,
    b: Node,
    lower: bool = True,
    transposed: bool = False,
    unit: bool = False,
    on_error: str = "raise",
) -> Node:
    """x with a x = b, or a' x = b where `transposed`, for a triangular a, of which one triangle is read, without the
    diagonal where that is to be `unit`. A 0 on the diagonal raises LinAlgError, or makes x all NaN."""
    flags = {"lower": lower, "transposed": transposed, "unit": unit}
    return apply_routine(OPS["triangular_solve"], (a, b), on_error, **flags)


def _solve_triangular(a: Array, b: Array, lower: bool, transposed: bool, unit: bool) -> Array:
    """By substitution, in float64."""
    if not unit and (np.diagonal(a, axis1=-2, axis2=-1) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    a = np.swapaxes(a, -1, -2) if transposed else a
    forwards = lower != transposed
    x = b.astype(np.float64)
    count = a.shape[-1]
    for row in range(count) if forwards else reversed(range(count)):
        known = slice(0, row) if forwards else slice(row + 1, count)
        x[..., row, :] -= (a[..., row, None, known] @ x[..., known, :])[..., 0, :]
        if not unit:
            x[..., row, :] /= a[..., row, row, None]
    return x


def _triangular_solve_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    a, _ = node.args
    lower, transposed, unit = (node.attrs[name] for name in ("lower", "transposed", "unit"))
    of_b = triangular_solve(a, cotangent, lower, not transposed, unit, node.attrs[ON_ERROR])
    left, right = (node, of_b) if transposed else (of_b, node)
    return triangle(_scaled(-1.0, matmul(left, transpose(right))), lower, strict=unit), of_b


_SYSTEM = (Argument((3, 3), low=1.0), Argument((3, 2)))


define_routine(
    Routine(
        "triangular_solve",
        operands=("nn", "nk"),
        results=("nk",),
        compute=_solve_triangular,
        work="nnk",
        flags=("lower", "transposed", "unit"),
        failures=("Singular matrix",),
        overwritten=(1, 0),
    ),
    "The solution x of a x = b, or of a' x = b, for a triangular matrix a.",
    samples(
        ("lower", triangular_solve, *_SYSTEM),
        ("upper", partial(triangular_solve, lower=False), *_SYSTEM),
        ("transposed, unit", partial(triangular_solve, transposed=True, unit=True), *_SYSTEM),
        ("a batch", triangular_solve, Argument((2, 3, 3), low=1.0), (2, 3, 2)),
        ("nothing", triangular_solve, (0, 0), (0, 2)),
        others=[("NaN", partial(triangular_solve, on_error="nan"), Argument((3, 3), low=0, high=0), (3, 2))],
    ),
    _triangular_solve_vjp,
)


# --- lu ---------------------------------------------------------------------------------------------------------------


def lu(a: Node) -> tuple[Node, Node, Node]:
    """LU with pivots, of square matrices: L below the diagonal, whose own is 1, and U on and above it; the permutation
    p with a[p] = L U; and the pivots: row k was exchanged with row pivots[k], for k = 0, 1, …

    It never fails: the U of a singular matrix has a 0 on its diagonal, on which `triangular_solve` fails."""
    packed, permutation, pivots = items_of(apply_routine(OPS["lu"], (a,)))
    return packed, permutation, pivots


def _factorise(a: Array) -> tuple[Array, Array, Array]:
    """By columns, in float64; of equal pivots the first."""
    outer, rows, steps = a.shape[:-2], a.shape[-2], min(a.shape[-2:])
    x = np.array(a, np.float64).reshape(prod(outer), rows, a.shape[-1])
    each = np.arange(len(x))
    permutation, pivots = (np.tile(np.arange(count), (len(x), 1)) for count in (rows, steps))
    for k in range(steps):
        size = np.abs(x[:, k:, k])
        pivot = k + np.argmax(np.where(np.isnan(size), -1.0, size), axis=-1)
        pivots[:, k] = pivot
        for array in (x, permutation):
            array[each, k], array[each, pivot] = array[each, pivot], array[each, k].copy()
        divisor = x[:, k, k, None]
        factor = np.where(divisor == 0, x[:, k + 1 :, k], x[:, k + 1 :, k] / divisor)
        x[:, k + 1 :, k] = factor
        x[:, k + 1 :, k + 1 :] -= factor[..., None] * x[:, k, None, k + 1 :]
    return x.reshape(a.shape), permutation.reshape(*outer, rows), pivots.reshape(*outer, steps)


def permuted(x: Node, permutation: Node, inverse: bool = False) -> Node:
    """The rows of matrices in another order: row k is row permutation[k] of `x`; `inverse`: the other way."""
    indices = [
        broadcast_to(dimshuffle(iota(size), ["x"] * axis + [0] + ["x"] * (x.ndim - axis - 2)), permutation.type.shape)
        for axis, size in enumerate(x.type.shape[:-2])
    ]
    indices.append(permutation)
    return set_gather(zeros(x.type.dtype, x.type.shape), x, indices, 0) if inverse else gather(x, indices, 0)


def _lu_vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    if 0 not in cotangents:
        return [None]
    packed, permutation, _ = items_of(node)
    of_lower, of_upper = triangle(cotangents[0], strict=True), triangle(cotangents[0], lower=False)
    lower, upper = triangle(packed, strict=True), triangle(packed, lower=False)
    below = elementwise("add", of_lower, matmul(transpose(lower), of_lower))
    above = matmul(of_upper, transpose(upper))
    both = elementwise("add", triangle(below, strict=True), triangle(above, lower=False))
    left = triangular_solve(packed, both, transposed=True, unit=True)
    right = triangular_solve(packed, transpose(left), lower=False, on_error="nan")
    return [permuted(transpose(right), permutation, inverse=True)]


define_routine(
    Routine(
        "lu",
        operands=("nn",),
        results=("nn", "n:int64", "n:int64"),
        compute=_factorise,
        work="nnn",
        overwritten=(0, 0),
    ),
    "L and U in one matrix, the permutation p with a[p] = L U, and the pivots.",
    samples(
        ("a matrix", lambda x: lu(x)[0], (3, 3)),
        ("a batch", lambda x: lu(x)[0], (2, 3, 3)),
        others=[("a permutation", lambda x: lu(x)[1], (4, 4)), ("pivots", lambda x: lu(x)[2], (2, 4, 4))],
    ),
    vjps=_lu_vjps,
)


def lu_of_any(a: Node) -> tuple[Node, Node]:
    """The same of m x n matrices: L, of as many columns as the shorter side, below the diagonal, U on and above it; and
    the permutation. They have no derivative here: its parts are of sizes that only the caller tells apart."""
    packed, permutation = items_of(apply_routine(OPS["lu_of_any"], (a,)))
    return packed, permutation


define_routine(
    Routine(
        "lu_of_any",
        operands=("mn",),
        results=("mn", "m:int64"),
        compute=lambda a: _factorise(a)[:2],
        work="mnk",
        derived=shorter,
        spaces=("", "int64"),
        lengths=lambda letters: (sizes.product((letters["m"], letters["n"])), letters["k"]),
    ),
    "L and U of matrices that need not be square, in one matrix, and the permutation p with a[p] = L U.",
    samples(
        others=[
            ("a high one", lambda x: lu_of_any(x)[0], (4, 2)),
            ("broad ones", lambda x: lu_of_any(x)[0], (2, 2, 4)),
            ("an order", lambda x: lu_of_any(x)[1], (5, 3)),
        ]
    ),
)
