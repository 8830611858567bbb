"""Functions of square matrices that users name: solve, inverse, determinants.

In: float nodes whose last two axes are matrices, and which agree in the axes before. Out: op records, and functions
that make their nodes. `eval` is NumPy's; for a kernel, rewriting (`rewrite/matrices.py`) replaces these by
factorisations (`ops/linalg/factor.py`), which several of them share, or by less where the graph shows what the matrix
is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_inexact
from graphc.errors import RankError
from graphc.ir import sizes
from graphc.ir.body import item
from graphc.ir.node import OPS, Array, Attributes, Guard, Node, Type, define_op, describe, lazy_format, literal, make
from graphc.ir.types import Argument, samples
from graphc.ops import shape as shapes
from graphc.ops.custom import PYTHON
from graphc.ops.elementwise import aligned, elementwise
from graphc.ops.linalg.derivatives import diagonal_matrix, mirrored, places
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import NOT_SQUARE, LinAlgError, failed
from graphc.ops.reduce import reduce_sum, reduction

ON_ERROR = ("raise", "nan")
"""The outcomes of a matrix that a function has no result for: numpy.linalg.LinAlgError, or NaN in its place."""


def check_matrices(name: str, a: Node) -> None:
    """GraphTypeError unless the last two axes of a float node are square matrices; ShapeError
    where their sizes are known to differ."""
    what = f"{name} of {describe(a)} of type {a.type}"
    if a.ndim < 2 or not is_inexact(a.type.dtype):
        raise RankError(f"{what}: it takes matrices of floats, the last two axes")
    sizes.common(a.type.shape[-2], a.type.shape[-1], what, ", a matrix that is not square")


def square_guards(node: Node) -> list[Guard]:
    """Guards: the matrices of the first argument are square."""
    a = node.args[0]
    message = lazy_format(NOT_SQUARE, lazy_format("{} of {}", shapes.label_op(node), shapes.label_origin(a)))
    return shapes.equality_guard(a.type.shape[-2], a.type.shape[-1], message)


def each(node: Node, compute: Callable[..., Any], *arrays: Array) -> Array:
    """`compute` of all matrices at once; where NumPy finds one that has no result, the error, or NaN for that one."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(compute(*arrays), node.type.dtype)
    except np.linalg.LinAlgError:
        pass
    outer, rows = arrays[0].shape[:-2], []
    for number, place in enumerate(np.ndindex(outer)):
        try:
            rows.append(compute(*(array[place] for array in arrays)))
        except np.linalg.LinAlgError as error:
            if node.attrs.get("on_error", "raise") == "raise":
                raise LinAlgError(failed(node, str(error), (number, prod(outer)) if outer else None)) from None
            rows.append(np.full(arrays[-1].shape[len(outer) :], np.nan))
    return np.asarray(rows, node.type.dtype).reshape(*outer, *np.shape(rows[0]))


def _of_one(name: str, rank: int) -> Callable[[Sequence[Node], Attributes], Type]:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        (a,) = args
        check_matrices(name, a)
        return Type(a.type.dtype, a.type.shape if rank else a.type.shape[:-2])

    return infer


# --- solve ------------------------------------------------------------------------------------------------------------

STRUCTURES = ("general", "positive")


def _solve_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    a, b = args
    check_matrices("solve", a)
    what = f"solve of {describe(a)} of type {a.type} and {describe(b)} of type {b.type}"
    if a.ndim != b.ndim or a.type.dtype != b.type.dtype:
        raise RankError(f"{what}: the operands should have one rank and one dtype")
    outer = zip(a.type.shape[:-1], b.type.shape[:-1], strict=True)
    batch = [sizes.common(left, right, what, f", axis {axis}") for axis, (left, right) in enumerate(outer)]
    return Type(b.type.dtype, (*batch, b.type.shape[-1]))


def _solve_eval(node: Node, a: Array, b: Array) -> Array:
    def general(a: Array, b: Array) -> Any:
        return np.linalg.solve(np.swapaxes(a, -1, -2) if node.attrs["transposed"] else a, b)

    def positive(a: Array, b: Array) -> Any:
        lower = np.linalg.cholesky(a)
        return np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, b))

    return each(node, positive if node.attrs["structure"] == "positive" else general, a, b)


def _solve_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    a, attrs = node.args[0], dict(node.attrs)
    if attrs["structure"] == "positive":
        of_b = make(node.op, (a, cotangent), attrs)
        return mirrored(-matmul(of_b, shapes.transpose(node))), of_b
    turned = attrs["transposed"]
    of_b = make(node.op, (a, cotangent), {**attrs, "transposed": not turned})
    left, right = (node, of_b) if turned else (of_b, node)
    return -matmul(left, shapes.transpose(right)), of_b


def _solve_guards(node: Node) -> Sequence[Guard]:
    a, b = node.args
    guards = square_guards(node)
    what = lazy_format("{} of {} and {}", shapes.label_op(node), shapes.label_origin(a), shapes.label_origin(b))
    return [*guards, *shapes.shape_guards(a.type.shape[:-1], b.type.shape[:-1], shapes.OF_OTHER_SIZES, what)]


def solve(a: Node, b: Node, structure: str = "general", transposed: bool = False, on_error: str = "raise") -> Node:
    """x with a x = b, or a' x = b, for matrices `b`. structure "positive": only the lower triangle of `a` is read, and
    it must be positive definite."""
    return make(OPS["solve"], (a, b), {"structure": structure, "transposed": transposed, "on_error": on_error})


def _regular(a: Node) -> Node:
    """A sample's matrix moved away from singular ones."""
    return a + literal(3.0 * np.eye(3), a.type.dtype)


def _positive(a: Node) -> Node:
    return _regular(matmul(a, shapes.transpose(a)))


_SQUARE, _BATCH = Argument((3, 3)), Argument((2, 3, 3))

define_op(
    "solve",
    infer=_solve_infer,
    eval=_solve_eval,
    lower=lambda node: PYTHON,
    vjp=_solve_vjp,
    guards=_solve_guards,
    cost=30.0,
    samples=samples(
        ("one column", lambda a, b: solve(_regular(a), b), _SQUARE, (3, 1)),
        ("transposed", lambda a, b: solve(_regular(a), b, transposed=True), _SQUARE, (3, 2)),
        ("a batch", lambda a, b: solve(_regular(a), b), _BATCH, (2, 3, 2)),
        ("positive", lambda a, b: solve(_positive(a), b, "positive"), _SQUARE, (3, 2)),
        ("no columns", lambda a, b: solve(_regular(a), b), _SQUARE, (3, 0)),
        ("nothing", solve, (0, 0), (0, 2)),
    ),
    doc="x with a x = b, or a' x = b; singular: LinAlgError or NaN.",
    batch=aligned,
)


# --- inverse ----------------------------------------------------------------------------------------------------------


def _inverse_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return (-matmul(matmul(shapes.transpose(node), cotangent), shapes.transpose(node)),)


def inverse(a: Node, on_error: str = "raise") -> Node:
    """The inverse of each matrix."""
    return make(OPS["inverse"], (a,), {"on_error": on_error})


define_op(
    "inverse",
    infer=_of_one("inverse", 2),
    eval=lambda node, a: each(node, np.linalg.inv, a),
    lower=lambda node: PYTHON,
    vjp=_inverse_vjp,
    guards=square_guards,
    cost=30.0,
    samples=samples(
        ("a matrix", lambda a: inverse(_regular(a)), _SQUARE),
        ("a batch", lambda a: inverse(_regular(a)), _BATCH),
        ("nothing", inverse, (0, 0)),
    ),
    doc="The inverse of a square matrix; singular: LinAlgError or NaN.",
    batch=aligned,
)


# --- determinants -----------------------------------------------------------------------------------------------------


def cofactors(a: Node) -> Node:
    """The transposed adjugate: the derivative of the determinant, at singular matrices too."""
    return make(OPS["cofactors"], (a,))


def _without_two(s: Node) -> Node:
    """For places i and j the product of the elements of `s` but number i and j, along two new last axes."""
    count = shapes.iota(s.type.shape[-1])
    row, column, place = (shapes.expand(count, axes) for axes in ((1, 2), (0, 2), (0, 1)))
    taken = elementwise("logical_or", elementwise("equal", place, row), elementwise("equal", place, column))
    factors = elementwise("where", taken, literal(1, s.type.dtype), shapes.expand(s, (s.ndim - 1, s.ndim)))
    return reduction("prod", factors, (factors.ndim - 1,))


def _cofactors_eval(node: Node, a: Array) -> Array:
    if not np.isfinite(a).all() or not a.size:
        finite = np.isfinite(a).all(axis=(-1, -2), keepdims=True)
        safe = _cofactors_eval(node, np.where(finite, a, 0)) if a.size else a
        return np.asarray(np.where(finite, safe, np.nan), a.dtype)
    u, s, vh = np.linalg.svd(a)
    n = a.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(sign[..., None, None] * ((u * others[..., None, :]) @ vh), a.dtype)


def _cofactors_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """By the singular values, whose products remain where quotients of them do not: with A = U S V and the cotangent
    W = U' G V', every pair i, j moves det by W_ii W_jj - W_ij W_ji times the other singular values."""
    (a,) = node.args
    factors = make(OPS["svd"], (a,), {"on_error": "raise"})
    u, s, vh = (item(factors, k) for k in range(3))
    turned = matmul(matmul(shapes.transpose(u), cotangent), shapes.transpose(vh))
    row, column = places(turned)
    on_diagonal = elementwise("equal", row, column)
    others = elementwise("where", on_diagonal, literal(0, s.type.dtype), _without_two(s))
    axes = (turned.ndim - 1,)
    diagonal = reduce_sum(elementwise("where", on_diagonal, turned, literal(0, a.type.dtype)), axes)
    along = reduce_sum(others * shapes.expand(diagonal, (diagonal.ndim - 1,)), axes)
    inner = diagonal_matrix(along) - others * shapes.transpose(turned)
    sign = make(OPS["stop_gradient"], (det(u) * det(vh),))
    whole = matmul(matmul(u, inner), vh)
    return (whole * shapes.expand(sign, (sign.ndim, sign.ndim + 1)),)


define_op(
    "cofactors",
    infer=_of_one("cofactors", 2),
    eval=_cofactors_eval,
    lower=lambda node: PYTHON,
    vjp=_cofactors_vjp,
    guards=square_guards,
    cost=30.0,
    samples=samples(
        ("a matrix", cofactors, _SQUARE), ("a batch", cofactors, _BATCH), others=[("nothing", cofactors, (0, 0))]
    ),
    doc="The cofactors of a square matrix, its transposed adjugate; of singular ones too.",
    batch=aligned,
)


def spread(scalars: Node) -> Node:
    """One number for each matrix, to be multiplied with it."""
    return shapes.expand(scalars, (scalars.ndim, scalars.ndim + 1))


def det(a: Node) -> Node:
    """The determinant of each matrix."""
    return make(OPS["det"], (a,))


def logabsdet(a: Node) -> Node:
    """The logarithm of the determinant's magnitude; -inf of a singular matrix."""
    return make(OPS["logabsdet"], (a,))


def detsign(a: Node) -> Node:
    """The determinant's sign: -1, 0 or 1; its derivative is zero."""
    return make(OPS["detsign"], (a,))


def _determinant(
    name: str, compute: Callable[[Array], Any], vjp: Callable[[Node, Node], Sequence[Node | None]], doc: str
) -> None:
    def build(a: Node) -> Node:
        return make(OPS[name], (a,))

    define_op(
        name,
        infer=_of_one(name, 0),
        eval=lambda node, a: each(node, compute, a),
        lower=lambda node: PYTHON,
        vjp=vjp,
        guards=square_guards,
        cost=30.0,
        samples=samples(("a matrix", build, _SQUARE), ("a batch", build, _BATCH), others=[("nothing", build, (0, 0))]),
        doc=doc,
        batch=aligned,
    )


_determinant(
    "det",
    np.linalg.det,
    lambda node, cotangent: (spread(cotangent) * cofactors(node.args[0]),),
    "The determinant.",
)
_determinant(
    "logabsdet",
    lambda a: np.linalg.slogdet(a)[1],
    lambda node, cotangent: (spread(cotangent) * shapes.transpose(inverse(node.args[0], "nan")),),
    "The logarithm of the determinant's magnitude.",
)


def _sign(a: Array) -> Any:
    """NaN where the determinant is, of which NumPy tells 1 or -1, by what it has exchanged before."""
    sign, size = np.linalg.slogdet(a)
    return np.where(np.isnan(size), np.nan, sign)


_determinant("detsign", _sign, lambda node, cotangent: (None,), "The determinant's sign.")
