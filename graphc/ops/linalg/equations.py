"""Systems whose matrices few numbers give, bands and constant diagonals, and what solves equations of matrices.

In: nodes of floats. Out: op records (routine.py), and functions that make their nodes. The derivative of a solution is
that of the equation, another system of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.node import OPS, Array, Node, Size, literal
from graphc.ir.types import Argument, samples
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import elementwise
from graphc.ops.index import gather
from graphc.ops.linalg.factor import LONG, NOT_CONVERGED
from graphc.ops.linalg.routine import ON_ERROR, Letters, apply_routine, define_routine
from graphc.ops.reduce import reduce_sum
from graphc.ops.shape import expand, iota

SINGULAR = "Singular matrix"


def _in_float64(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays, **flags: compute(*(array.astype(np.float64) for array in arrays), **flags)


# --- bands ------------------------------------------------------------------------------------------------------------


def banded_solve(ab: Node, b: Node, below: int, transposed: bool = False, on_error: str = "raise") -> Node:
    """x with a x = b, or a' x = b, for a matrix with `below` diagonals below its main one, all of which are the rows of
    `ab` from the highest on: a[i, j] = ab[above + i - j, j]."""
    return apply_routine(OPS["banded_solve"], (ab, b), on_error, below=below, transposed=transposed)


def positive_banded_solve(ab: Node, b: Node, on_error: str = "raise") -> Node:
    """x with a x = b for a positive definite matrix, whose diagonals from the main one down are the rows of `ab`: a[i,
    j] = ab[i - j, j] for i >= j."""
    return apply_routine(OPS["positive_banded_solve"], (ab, b), on_error)


def _banded(ab: Array, b: Array, below: int, transposed: bool) -> Array:
    if not b.size:
        return b
    count, above = ab.shape[1], ab.shape[0] - 1 - below
    if transposed:
        bands = np.zeros_like(ab)
        for row in range(len(ab)):  # of the transposed matrix, which has as many above as this one has below
            columns = np.arange(max(below - row, 0), min(count + below - row, count))
            bands[row, columns] = ab[len(ab) - 1 - row, columns + row - below]
        ab, below, above = bands, above, below
    try:
        x = import_module("scipy.linalg").solve_banded((below, above), ab, b, check_finite=False)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(SINGULAR) from None
    return np.asarray(x)


NOT_POSITIVE = "Matrix is not positive definite"


def _positive_banded(ab: Array, b: Array) -> Array:
    if not b.size:
        return b
    try:
        # one more diagonal, of zeros: of two SciPy asks another routine, which does not look at what it divides by
        wide = np.concatenate([ab, np.zeros((1, ab.shape[1]))]) if len(ab) == 2 else ab
        x = import_module("scipy.linalg").solveh_banded(wide, b, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(NOT_POSITIVE) from None
    return np.asarray(x)


def _along(left: Node, right: Node, rows: Size, first: Size) -> Node:
    """The sums over k of left[j + r - first, k] * right[j, k], for `rows` numbers r, and all j: what products of
    columns leave on diagonals. 0 where there is no such row."""
    count = right.type.shape[-2]
    shift = expand(iota(rows), (1,)) - as_size_node(first)
    place = shift + expand(iota(count), (0,))
    last = as_size_node(sizes.subtract(count, 1))
    zero = literal(0, "int64")
    inside = elementwise("logical_and", *(elementwise("less_equal", *pair) for pair in ((zero, place), (place, last))))
    near = elementwise("maximum", elementwise("minimum", place, last), zero)
    taken = gather(left, (near,), left.ndim - 2)
    products = taken * expand(right, (right.ndim - 2,))
    return elementwise("where", inside, reduce_sum(products, (products.ndim - 1,)), literal(0, left.type.dtype))


def _banded_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    ab, _ = node.args
    below, transposed = node.attrs["below"], node.attrs["transposed"]
    of_b = banded_solve(ab, cotangent, below, not transposed, node.attrs[ON_ERROR])
    rows = ab.type.shape[-2]
    left, right = (node, of_b) if transposed else (of_b, node)
    return -_along(left, right, rows, sizes.subtract(rows, below + 1)), of_b


def _positive_banded_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    ab, _ = node.args
    of_b = positive_banded_solve(ab, cotangent, node.attrs[ON_ERROR])
    rows = ab.type.shape[-2]
    below, other = (_along(*pair, rows, 0) for pair in ((of_b, node), (node, of_b)))
    on_diagonal = elementwise("equal", expand(iota(rows), (1,)), literal(0, "int64"))
    return -elementwise("where", on_diagonal, below, below + other), of_b


def _of_bands(letters: Letters, pivots: bool) -> list[Size]:
    d, n, k = (letters[letter] for letter in "dnk")
    return [sizes.product((2 if pivots else 1, d, n)), sizes.multiply(n, k), *([n] if pivots else [])]


def _dominant(x: Node, row: int) -> Node:
    """A sample's three bands, of which one is moved away from 0."""
    shift = np.zeros((3, 1))
    shift[row] = 9.0
    return x + literal(shift, x.type.dtype)


_BANDS, _SIDES = Argument((3, 4)), Argument((4, 2))

define_routine(
    "banded_solve",
    "dn nk -> nk",
    _in_float64(_banded),
    "ndd",
    one_by_one=True,
    flags=("below", "transposed"),
    failures=(SINGULAR,),
    spaces=("", "", "int64"),
    lengths=partial(_of_bands, pivots=True),
    doc="The solution x of a x = b, or of a' x = b, for a matrix a of few diagonals.",
    samples=samples(
        ("one below", lambda ab, b: banded_solve(_dominant(ab, 1), b, 1), _BANDS, _SIDES),
        ("two below", lambda ab, b: banded_solve(_dominant(ab, 0), b, 2, True), _BANDS, _SIDES),
        ("a batch", lambda ab, b: banded_solve(_dominant(ab, 2), b, 0), (2, 3, 4), (2, 4, 1)),
        ("nothing", partial(banded_solve, below=1), (3, 0), (0, 2)),
    ),
    vjp=_banded_vjp,
)
define_routine(
    "positive_banded_solve",
    "dn nk -> nk",
    _in_float64(_positive_banded),
    "ndd",
    one_by_one=True,
    failures=(NOT_POSITIVE,),
    spaces=("", ""),
    lengths=partial(_of_bands, pivots=False),
    doc="The solution x of a x = b for a positive definite matrix a of few diagonals.",
    samples=samples(
        ("bands", lambda ab, b: positive_banded_solve(_dominant(ab, 0), b), _BANDS, _SIDES),
        ("nothing", positive_banded_solve, (3, 0), (0, 2)),
    ),
    vjp=_positive_banded_vjp,
)


# --- constant diagonals -----------------------------------------------------------------------------------------------


def toeplitz_solve(c: Node, r: Node, b: Node, on_error: str = "raise") -> Node:
    """x with a x = b for the matrix with first column `c` and first row `r`, whose diagonals are constant; r[0] does
    not count. By Levinson's recursion, which fails where a leading part of the matrix is singular."""
    return apply_routine(OPS["toeplitz_solve"], (c, r, b), on_error)


SINGULAR_MINOR = "Singular principal minor"


def _levinson(c: Array, r: Array, b: Array) -> Array:
    """Solve by growing leading parts: the first and last columns of their inverses, and their solutions (Golub and Van
    Loan, Matrix Computations, 4.7)."""
    x = np.zeros_like(b)
    if not len(b):
        return x
    if c[0] == 0:
        raise np.linalg.LinAlgError(SINGULAR_MINOR)
    first = last = np.array([1 / c[0]])
    x[0] = b[0] / c[0]
    for m in range(1, len(b)):
        of_first, of_last = c[m:0:-1] @ first, r[1 : m + 1] @ last
        rest = 1 - of_first * of_last
        if rest == 0:
            raise np.linalg.LinAlgError(SINGULAR_MINOR)
        first, last = np.append(first, 0), np.insert(last, 0, 0)
        first, last = (first - of_first * last) / rest, (last - of_last * first) / rest
        x[: m + 1] += last[:, None] * (b[m] - c[m:0:-1] @ x[:m])
    return x


def _toeplitz_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    c, r, _ = node.args
    axis, count = c.ndim - 1, c.type.shape[-1]
    on_first = elementwise("equal", iota(count), literal(0, "int64"))
    row = elementwise("where", on_first, c, r)  # the first of the transposed matrix's column
    of_b = toeplitz_solve(row, c, cotangent, node.attrs[ON_ERROR])
    of_c, of_r = (
        -reduce_sum(_along(*pair, count, 0), (axis + 1,)) for pair in ((of_b, node), (node, of_b))
    )  # fmt: skip
    return of_c, elementwise("where", on_first, literal(0, c.type.dtype), of_r), of_b


def _first_large(c: Node) -> Node:
    return c + literal(9.0 * (np.arange(4) == 0), c.type.dtype)


_DIAGONALS = Argument((4,))

define_routine(
    "toeplitz_solve",
    "n n nk -> nk",
    _in_float64(_levinson),
    "nn",
    one_by_one=True,
    failures=(SINGULAR_MINOR,),
    spaces=("",),
    lengths=lambda letters: [sizes.multiply(2, letters["n"])],
    doc="The solution x of a x = b for a matrix a of constant diagonals.",
    samples=samples(
        ("diagonals", lambda c, r, b: toeplitz_solve(_first_large(c), r, b), _DIAGONALS, _DIAGONALS, _SIDES),
        ("a batch", lambda c, r, b: toeplitz_solve(_first_large(c), r, b), (2, 4), (2, 4), (2, 4, 1)),
        ("nothing", toeplitz_solve, (0,), (0,), (0, 2)),
    ),
    vjp=_toeplitz_vjp,
)


# --- equations of matrices --------------------------------------------------------------------------------------------


def schur(a: Node, on_error: str = "raise") -> tuple[Node, Node]:
    """T and Z with a = Z T Z', Z orthogonal and T an upper triangle but for blocks of two rows on its diagonal, of
    complex eigenvalues. It has no derivative: what is solved by it has one."""
    triangle, vectors = items_of(apply_routine(OPS["schur"], (a,), on_error))
    return triangle, vectors


def triangular_sylvester(
    a: Node, b: Node, c: Node, turned: tuple[bool, bool] = (False, False), on_error: str = "raise"
) -> Node:
    """x with a x + x b = c, for `a` and `b` as `schur` gives them, either of which may be transposed."""
    flags = {"a_turned": turned[0], "b_turned": turned[1]}
    return apply_routine(OPS["triangular_sylvester"], (a, b, c), on_error, **flags)


NOT_FINITE = "Array must not contain infs or NaNs"


def _schur(a: Array) -> tuple[Array, Array]:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError(NOT_FINITE)
    if not a.size:
        return a, a
    triangle, vectors = import_module("scipy.linalg").schur(a, output="real", check_finite=False)
    return triangle, vectors


NOT_UNIQUE = "Singular equation: eigenvalues of its matrices add up to 0"


def _sylvester(a: Array, b: Array, c: Array, a_turned: bool, b_turned: bool) -> Array:
    if not c.size:
        return c
    solve = import_module("scipy.linalg.lapack").dtrsyl
    x, scale, status = solve(a, b, c, "NT"[int(a_turned)], "NT"[int(b_turned)])
    if status:
        raise np.linalg.LinAlgError(NOT_UNIQUE)
    return np.asarray(x / scale)


def _upper(x: Node, count: int) -> Node:
    """A sample's triangle of positive eigenvalues."""
    kept = x * literal(np.triu(np.ones((count, count))), x.type.dtype)
    return kept + literal(4 * np.eye(count), x.type.dtype)


define_routine(
    "schur",
    "nn -> nn nn",
    _in_float64(_schur),
    "nnn",
    one_by_one=True,
    failures=(NOT_CONVERGED, NOT_FINITE),
    spaces=("", ""),
    lengths=lambda letters: [sizes.multiply(count, letters["n"]) for count in (2, LONG)],
    doc="Schur's form of square matrices, of real numbers, and its orthogonal matrix.",
    samples=samples(
        others=[
            ("a matrix", lambda x: elementwise("abs", schur(x)[0]), (3, 3)),
            ("a batch", lambda x: elementwise("abs", schur(x)[1]), (2, 3, 3)),
            ("nothing", lambda x: schur(x)[1], (0, 0)),
        ]
    ),
)
define_routine(
    "triangular_sylvester",
    "mm nn mn -> mn",
    _in_float64(_sylvester),
    "mmn",
    one_by_one=True,
    flags=("a_turned", "b_turned"),
    failures=(NOT_UNIQUE,),
    spaces=("", "", ""),
    lengths=lambda letters: [sizes.product(letters[each] for each in pair) for pair in ("mm", "nn", "mn")],
    doc="The solution x of a x + x b = c for matrices in Schur's form.",
    samples=samples(
        others=[
            (
                name,
                lambda a, b, c, turned=turned: triangular_sylvester(_upper(a, 3), _upper(b, 2), c, turned),
                (*outer, 3, 3),
                (*outer, 2, 2),
                (*outer, 3, 2),
            )
            for name, turned, outer in (
                ("matrices", (False, False), ()),
                ("transposed", (True, True), ()),
                ("a batch", (False, True), (2,)),
            )
        ]
    ),
)
