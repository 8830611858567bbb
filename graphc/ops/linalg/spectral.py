"""Factorisations by orthogonal matrices: QR, eigenvalues, singular values.

In: nodes of floats, matrices in their last two axes. Out: op records (routine.py), and functions that make their nodes.
"""

from __future__ import annotations

from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.node import OPS, Array, Node, Size
from graphc.ir.samples import Argument, Sample, Samples
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg.derivatives import (
    eig_vjps,
    eigh_vjps,
    eigvals_vjps,
    eigvalsh_vjp,
    qr_vjps,
    svd_vjps,
    svdvals_vjp,
)
from graphc.ops.linalg.routine import Letters, Routine, apply_routine, define_routine, shorter
from graphc.ops.shape import transpose

WIDE, LONG = 32, 72
"""Columns that LAPACK takes at a time, and rows of what it needs besides, generously."""
NOT_CONVERGED = "Eigenvalues did not converge"


def _plus(*terms: Size) -> Size:
    return reduce(sizes.add, terms)


def _times(*factors: Size) -> Size:
    return sizes.product(factors)


def _of_qr(letters: Letters, complete: bool) -> list[Size]:
    m, n = letters["m"], letters["n"]
    longer, shorter = sizes.maximum(m, n), sizes.minimum(m, n)
    return [_times(m, longer if complete else n), shorter, _plus(_times(WIDE, longer), 1)]


def _of_eigh(letters: Letters, vectors: bool) -> list[Size]:
    n = letters["n"]
    if not vectors:
        return [_times(n, n), _plus(_times(36, n), 1), _plus(n, 1)]
    return [_plus(_times(2, n, n), _times(40, n), 1), _plus(_times(5, n), 3)]


def _of_svd(letters: Letters, full: bool) -> list[Size]:
    m, n, k = letters["m"], letters["n"], sizes.minimum(letters["m"], letters["n"])
    work = _plus(_times(4, k, k), _times(LONG, _plus(m, n)))
    return [_times(m, n), _times(m, m if full else k), _times(n, n if full else k), work, _times(8, k)]


def _of_svdvals(letters: Letters) -> list[Size]:
    m, n = letters["m"], letters["n"]
    return [_times(m, n), _times(LONG, _plus(m, n)), _times(8, sizes.minimum(m, n))]


def _of_eig(letters: Letters, vectors: bool) -> list[Size]:
    n = letters["n"]
    return [*[_times(n, n)] * (1 + vectors), _times(LONG, n)]


def _samples(build: Any, *, square: bool = False, result: int | None = 0) -> Samples:
    """Samples of a routine. result: the one that is looked at."""

    def one(x: Node) -> Node:
        made = build(x)
        return made if result is None else made[result]

    shapes = {"a matrix": (3, 3)} if square else {"a high one": (4, 2), "broad ones": (2, 2, 4)}
    return Samples(
        lambda: [Sample(name, one, (Argument(shape),), differentiable=False) for name, shape in shapes.items()]
    )


# --- qr ---------------------------------------------------------------------------------------------------------------


def qr(a: Node, complete: bool = False) -> tuple[Node, Node]:
    """Q with orthonormal columns and an upper triangular R, a = Q R: as many columns as a has of the shorter side, or
    all that there are, with as many rows in R."""
    q, r = items_of(apply_routine(OPS["qr_complete" if complete else "qr"], (a,)))
    return q, r


def _qr(a: Array, mode: Any) -> tuple[Array, Array]:
    q, r = np.linalg.qr(a, mode)
    return q, r


define_routine(
    Routine(
        "qr",
        ("mn",),
        ("mk", "kn"),
        partial(_qr, mode="reduced"),
        "mnk",
        derived=shorter,
        spaces=("", "", ""),
        lengths=partial(_of_qr, complete=False),
    ),
    "Orthonormal columns and an upper triangle, whose product is a.",
    _samples(qr),
    vjps=qr_vjps,
)
define_routine(
    Routine(
        "qr_complete",
        ("mn",),
        ("mm", "mn"),
        partial(_qr, mode="complete"),
        "mnm",
        spaces=("", "", ""),
        lengths=partial(_of_qr, complete=True),
    ),
    "An orthogonal matrix and an upper triangle, whose product is a.",
    _samples(partial(qr, complete=True)),
    vjps=qr_vjps,
)


def qr_order(a: Node) -> Node:
    """The order of columns in which each is the one of which most is left beside those before: that of QR with
    pivots."""
    return apply_routine(OPS["qr_order"], (a,))


def _order_of_columns(a: Array) -> Array:
    """Householder's reflections, in float64; of equal columns the first."""
    outer, (rows, columns) = a.shape[:-2], a.shape[-2:]
    x = np.array(a, np.float64).reshape(prod(outer), rows, columns)
    order = np.tile(np.arange(columns), (len(x), 1))
    for place, own in enumerate(x):
        for k in range(min(rows, columns)):
            first = k + int(np.argmax(np.linalg.norm(own[k:, k:], axis=0)))
            own[:, [k, first]], order[place, [k, first]] = own[:, [first, k]], order[place, [first, k]]
            q, _ = np.linalg.qr(own[k:, k : k + 1], "complete")
            own[k:] = q.T @ own[k:]
    return order.reshape(*outer, columns)


def _of_qr_order(letters: Letters) -> list[Size]:
    m, n = letters["m"], letters["n"]
    return [_times(m, n), n, sizes.minimum(m, n), _plus(_times(WIDE + 2, _plus(n, 1)), 1)]


define_routine(
    Routine(
        "qr_order",
        ("mn",),
        ("n:int64",),
        _order_of_columns,
        "mnk",
        derived=shorter,
        spaces=("", "int64", "", ""),
        lengths=_of_qr_order,
    ),
    "The order of columns of a QR with pivots.",
    Samples(
        lambda: [
            Sample(name, qr_order, (Argument(shape),), differentiable=False)
            for name, shape in {"a high one": (4, 2), "broad ones": (2, 2, 4)}.items()
        ]
    ),
)


# --- symmetric matrices -----------------------------------------------------------------------------------------------


def eigh(a: Node, lower: bool = True, on_error: str = "raise") -> tuple[Node, Node]:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors, the columns; one triangle is read."""
    values, vectors = items_of(apply_routine(OPS["eigh"], (a,), on_error, lower=lower))
    return values, vectors


def eigvalsh(a: Node, lower: bool = True, on_error: str = "raise") -> Node:
    """The eigenvalues of symmetric matrices, ascending; one triangle is read."""
    return apply_routine(OPS["eigvalsh"], (a,), on_error, lower=lower)


def _eigh(a: Array, lower: bool) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return values, vectors


def _symmetric(x: Node) -> Node:
    return elementwise("add", x, transpose(x))


define_routine(
    Routine(
        "eigh",
        ("nn",),
        ("n", "nn"),
        _eigh,
        "nnn",
        ("lower",),
        (NOT_CONVERGED,),
        spaces=("", "int64"),
        lengths=partial(_of_eigh, vectors=True),
    ),
    "The eigenvalues and eigenvectors of symmetric matrices.",
    _samples(lambda x: eigh(_symmetric(x)), square=True),
    vjps=eigh_vjps,
)
define_routine(
    Routine(
        "eigvalsh",
        ("nn",),
        ("n",),
        lambda a, lower: np.linalg.eigvalsh(a, "L" if lower else "U"),
        "nnn",
        ("lower",),
        (NOT_CONVERGED,),
        spaces=("", "", "int64"),
        lengths=partial(_of_eigh, vectors=False),
    ),
    "The eigenvalues of symmetric matrices.",
    _samples(lambda x: eigvalsh(_symmetric(x)), square=True, result=None),
    eigvalsh_vjp,
)


# --- svd --------------------------------------------------------------------------------------------------------------


def svd(a: Node, full: bool = False, on_error: str = "raise") -> tuple[Node, Node, Node]:
    """u, s and v' with a = u s v': singular values, descending, with orthonormal columns of u and rows of v', as many
    as a has of the shorter side, or all that there are."""
    u, s, vh = items_of(apply_routine(OPS["svd_full" if full else "svd"], (a,), on_error))
    return u, s, vh


def svdvals(a: Node, on_error: str = "raise") -> Node:
    """The singular values, descending."""
    return apply_routine(OPS["svdvals"], (a,), on_error)


def _svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(a, full)
    return u, s, vh


SVD_FAILED = ("SVD did not converge",)


def _define_svd(name: str, full: bool, results: tuple[str, ...], doc: str) -> None:
    compute, sizes = partial(_svd, full=full), partial(_of_svd, full=full)
    workspaces = ("", "", "", "", "int64")
    routine = Routine(name, ("mn",), results, compute, "mnk", (), SVD_FAILED, shorter, workspaces, sizes)
    define_routine(routine, doc, _samples(partial(svd, full=full), result=1), vjps=svd_vjps)


_define_svd("svd", False, ("mk", "k", "kn"), "Orthonormal columns, singular values, orthonormal rows.")
_define_svd("svd_full", True, ("mm", "k", "nn"), "An orthogonal matrix, singular values, an orthogonal matrix.")
define_routine(
    Routine(
        "svdvals",
        ("mn",),
        ("k",),
        partial(np.linalg.svd, compute_uv=False),
        "mnk",
        (),
        SVD_FAILED,
        shorter,
        ("", "", "int64"),
        _of_svdvals,
    ),
    "Singular values.",
    _samples(svdvals, result=None),
    svdvals_vjp,
)


# --- matrices of any kind ---------------------------------------------------------------------------------------------


def eig(a: Node, on_error: str = "raise") -> tuple[Node, Node, Node, Node]:
    """The real and imaginary parts of the eigenvalues, and those of the eigenvectors, the columns."""
    wr, wi, vr, vi = items_of(apply_routine(OPS["eig"], (a,), on_error))
    return wr, wi, vr, vi


def eigvals(a: Node, on_error: str = "raise") -> tuple[Node, Node]:
    """The real and imaginary parts of the eigenvalues."""
    wr, wi = items_of(apply_routine(OPS["eigvals"], (a,), on_error))
    return wr, wi


def _eig(a: Array) -> tuple[Array, ...]:
    values, vectors = np.linalg.eig(a)
    return values.real, values.imag, vectors.real, vectors.imag


def _eigvals(a: Array) -> tuple[Array, Array]:
    values = np.linalg.eigvals(a)
    return values.real, values.imag


EIG_FAILED = (NOT_CONVERGED, "Array must not contain infs or NaNs")

define_routine(
    Routine(
        "eig",
        ("nn",),
        ("n", "n", "nn", "nn"),
        _eig,
        "nnn",
        (),
        EIG_FAILED,
        spaces=("", "", ""),
        lengths=partial(_of_eig, vectors=True),
    ),
    "The eigenvalues and eigenvectors of square matrices, real and imaginary parts.",
    _samples(eig, square=True),
    vjps=eig_vjps,
)
define_routine(
    Routine(
        "eigvals",
        ("nn",),
        ("n", "n"),
        _eigvals,
        "nnn",
        (),
        EIG_FAILED,
        spaces=("", ""),
        lengths=partial(_of_eig, vectors=False),
    ),
    "The eigenvalues of square matrices, real and imaginary parts.",
    _samples(eigvals, square=True),
    vjps=eigvals_vjps,
)
