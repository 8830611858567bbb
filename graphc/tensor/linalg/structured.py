"""Matrices of a pattern, equations with them, and equations whose unknowns are matrices.

    solve_toeplitz(c, b)            x of toeplitz(c) x = b
    solve_sylvester(a, b, q)        x of a x + x b = q

In: the parts. Out: nodes. Bands are solved for in time that is linear in the number of rows, constant diagonals in n
squared steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float, is_inexact, promote
from graphc.errors import GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import conv, shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import gather
from graphc.ops.linalg import equations, matrices
from graphc.tensor.creation import coordinates, eye
from graphc.tensor.elementary import conj, mod, where
from graphc.tensor.indexing import flip
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import check_on_error, in_one_batch, matrices_of, solve, square_of, with_columns
from graphc.tensor.products import matmul
from graphc.tensor.shaping import as_vector, label_operand, normalise_axes, specify_shape

__all__ = [
    "block_diag", "circulant", "companion", "hankel", "matmul_toeplitz", "solve_banded", "solve_circulant",
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solveh_banded",
    "tensorinv", "tensorsolve", "toeplitz",
]  # fmt: skip


def block_diag(*arrs: Any) -> Node:
    """The matrix with these matrices along its diagonal, vectors as rows, and zeros elsewhere."""
    nodes = [as_node(each) for each in arrs] or [literal([[]])]
    for node in nodes:
        if node.ndim > 2:
            raise RankError(f"block_diag: {describe(node)} of type {node.type} is no matrix")
    dtype = promote(*(node.type.dtype for node in nodes))
    blocks = [cast(layout.expand(node, range(2 - node.ndim)), dtype) for node in nodes]
    bands = []
    for place, block in enumerate(blocks):
        widths = [0 if k == place else other.type.shape[1] for k, other in enumerate(blocks)]
        before, after = sizes.total(widths[:place]), sizes.total(widths[place + 1 :])
        rows = block.type.shape[0]
        bands.append(concatenate([layout.zeros(dtype, (rows, before)), block, layout.zeros(dtype, (rows, after))], 1))
    return concatenate(bands, 0)


def toeplitz(c: Any, r: Any = None) -> Node:
    """The matrix with first column `c` and first row `r` (the conjugate of `c`), whose diagonals are constant; r[0]
    does not count."""
    column = as_vector("toeplitz", c)
    row = conj(column) if r is None else as_vector("toeplitz", r)
    dtype = promote(column.type.dtype, row.type.dtype)
    down, along = coordinates(column.type.shape[0], row.type.shape[0])
    both = concatenate([cast(column, dtype), cast(row, dtype)[1:]], 0)
    apart = elementwise("sub", along, down)
    size = as_size_node(column.type.shape[0])
    return gather(both, (where(apart > 0, size - 1 + apart, -apart),), 0)


def hankel(c: Any, r: Any = None) -> Node:
    """The matrix with first column `c` and last row `r` (zeros), whose antidiagonals are constant; r[0] does not
    count."""
    column = as_vector("hankel", c)
    row = layout.zeros(column.type.dtype, column.type.shape) if r is None else as_vector("hankel", r)
    dtype = promote(column.type.dtype, row.type.dtype)
    down, along = coordinates(column.type.shape[0], row.type.shape[0])
    both = concatenate([cast(column, dtype), cast(row, dtype)[1:]], 0)
    return gather(both, (elementwise("add", down, along),), 0)


def circulant(c: Any) -> Node:
    """The matrix with first column `c`, each other column the one before moved down by one, and round."""
    column = as_vector("circulant", c)
    size = column.type.shape[0]
    down, along = coordinates(size, size)
    return gather(column, (mod(elementwise("sub", down, along), as_size_node(size)),), 0)


def companion(a: Any) -> Node:
    """The matrix whose characteristic polynomial has the coefficients `a`, the highest power first."""
    node = as_vector("companion", a)
    node = node if is_inexact(node.type.dtype) else cast(node, "float64")
    top = layout.expand(-node[1:] / node[0], (0,))
    size = sizes.subtract(node.type.shape[0], 1)
    down, along = coordinates(size, size)
    below = cast(elementwise("equal", down, elementwise("add", along, 1)), node.type.dtype)
    return where(elementwise("equal", down, 0), top, below)


def matmul_toeplitz(c_or_cr: Any, x: Any) -> Node:
    """The product of `toeplitz(c)`, or toeplitz(*c_or_cr) of a pair, and `x`, a vector or columns. The matrix is not
    made: each column of the product is a part of the convolution of its diagonals with one of `x`."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, c_or_cr)
    column, row, right = as_vector("toeplitz", c), as_vector("toeplitz", r), as_node(x)
    if right.ndim not in (1, 2):
        raise RankError(f"matmul_toeplitz: {describe(right)} of type {right.type} is no vector or matrix")
    dtype = promote(column.type.dtype, row.type.dtype, right.type.dtype)
    wide = dtype if is_float(dtype) else "int64"
    diagonals = concatenate([cast(flip(row[1:]), wide), cast(column, wide)], 0)
    columns = layout.transpose(right) if right.ndim == 2 else layout.expand(right, (0,))
    size, taps = sizes.subtract(sizes.add(column.type.shape[0], row.type.shape[0]), 1), row.type.shape[0]
    along = conv.ConvAxis(size, taps, column.type.shape[0], 1, -1, 1, sizes.subtract(1, taps), None)
    whole = layout.reshape(diagonals, (1, 1, 1, size))
    made = conv.make_conv(whole, layout.expand(cast(columns, wide), (0, 2)), [along])
    found = layout.drop(cast(made, dtype), (0, 1))
    return layout.transpose(found) if right.ndim == 2 else layout.drop(found, (0,))


def solve_toeplitz(c_or_cr: Any, b: Any, on_error: str = "raise") -> Node:
    """x with toeplitz(c) x = b, or toeplitz(c, r) x = b for a pair (c, r), by Levinson's recursion (SciPy's): n squared
    steps, no matrix. A singular leading part, not of the whole alone, is numpy.linalg.LinAlgError, or NaN with
    on_error="nan"."""
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, c_or_cr)
    right = as_node(b)
    vectors = [as_vector("solve_toeplitz", column), as_vector("solve_toeplitz", row)]
    if right.ndim not in (1, 2):
        raise RankError(f"solve_toeplitz: {describe(right)} of type {right.type} is neither vector nor matrix")
    nodes = [*vectors, right]
    dtype = promote(*(node.type.dtype if is_inexact(node.type.dtype) else "float64" for node in nodes))
    first, across, right = (cast(node, dtype) for node in nodes)
    columns = layout.expand(right, (1,)) if right.ndim == 1 else right
    found = equations.toeplitz_solve(first, across, columns, check_on_error("solve_toeplitz", on_error))
    return layout.drop(found, (1,)) if right.ndim == 1 else found


def solve_circulant(c: Any, b: Any, on_error: str = "raise") -> Node:
    """x with circulant(c) x = b (SciPy's), as any other system."""
    return solve(circulant(c), b, on_error=on_error)


def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any, on_error: str = "raise") -> Node:
    """x with a x = b for a matrix of `l` diagonals below and `u` above its main one, the rows of `ab` from the highest
    on: a[i, j] = ab[u + i - j, j] (SciPy's). Its time is linear in the number of rows."""
    pair = tuple(l_and_u) if isinstance(l_and_u, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(each, (int, np.integer)) and each >= 0 for each in pair):
        raise GraphTypeError(f"solve_banded: l_and_u={l_and_u!r} should be two numbers of diagonals")
    below, above = map(int, pair)
    bands, right = matrices_of("solve_banded", ab, b, vectors=True)
    rows = bands.type.shape[-2]
    if isinstance(rows, int) and rows != below + above + 1:
        raise ShapeError(
            f"solve_banded: {describe(bands)} of type {bands.type} should have a row for each of {below + above + 1} "
            "diagonals"
        )
    bands = specify_shape(bands, (*[None] * (bands.ndim - 2), below + above + 1, None))
    on_error = check_on_error("solve_banded", on_error)
    return _with_bands(
        "solve_banded", bands, right, lambda ab, b: equations.banded_solve(ab, b, below, False, on_error)
    )


def solveh_banded(ab: Any, b: Any, lower: bool = False, on_error: str = "raise") -> Node:
    """x with a x = b for a positive definite matrix of few diagonals, of which `ab` has those from the main one down
    (`lower`, the first row the main one) or up (the last row) (SciPy's). Its time is linear in the number of rows."""
    bands, right = matrices_of("solveh_banded", ab, b, vectors=True)
    on_error = check_on_error("solveh_banded", on_error)

    def apply(ab: Node, b: Node) -> Node:
        if lower:
            return equations.positive_banded_solve(ab, b, on_error)
        # counted from the end, an upper triangle is a lower one
        return flip(equations.positive_banded_solve(flip(ab, (-2, -1)), flip(b, -2), on_error), -2)

    return _with_bands("solveh_banded", bands, right, apply)


def _with_bands(name: str, bands: Node, right: Node, apply: Callable[[Node, Node], Node]) -> Node:
    if isinstance(bands.type.shape[-2], int) and not bands.type.shape[-2]:
        raise ShapeError(f"{name}: {describe(bands)} of type {bands.type} has no diagonals")
    return with_columns(name, bands, right, apply)


# --- equations --------------------------------------------------------------------------------------------------------
# Equations whose unknowns are matrices and tensors: Sylvester's, Lyapunov's, inverses and solutions over several axes.
#
# In: tensors whose last two axes are matrices, or tensors. Out: nodes composed of factorisations and products.


def solve_sylvester(a: Any, b: Any, q: Any) -> Node:
    """x with a x + x b = q for square matrices `a` and `b`, by their Schur forms (Bartels and Stewart 1972, SciPy's);
    axes before are batches. Where an eigenvalue of `a` and one of `b` add up to 0 it is numpy.linalg.LinAlgError."""
    left, right, whole = matrices_of("solve_sylvester", a, b, q)
    for node in (left, right):
        matrices.check_matrices("solve_sylvester", node)
    left, right, whole = in_one_batch("solve_sylvester", left, right, whole)
    return _sylvester(left, right, whole, (False, False))


def _sylvester(a: Node, b: Node, q: Node, turned: tuple[bool, bool]) -> Node:
    """x with a x + x b = q, where either of `a` and `b` may be transposed; one Schur form of each serves all."""
    (s, u), (t, v), transpose = equations.schur(a), equations.schur(b), layout.transpose
    inner = equations.triangular_sylvester(s, t, matmul(matmul(transpose(u), q), v), turned)
    value = matmul(matmul(u, inner), transpose(v))

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Any) -> list[Node]:
        (a, b, _), (x,) = inputs, results
        of_q = _sylvester(a, b, given[0], (not turned[0], not turned[1]))
        of_a = matmul(x, transpose(of_q)) if turned[0] else matmul(of_q, transpose(x))
        of_b = matmul(transpose(of_q), x) if turned[1] else matmul(transpose(x), of_q)
        return [-of_a, -of_b, of_q]

    return overridden([value], [a, b, q], rule)[0]


def solve_continuous_lyapunov(a: Any, q: Any) -> Node:
    """x with a x + x a' = q (SciPy's), by one Schur form, as `solve_sylvester`."""
    left, whole = matrices_of("solve_continuous_lyapunov", square_of("solve_continuous_lyapunov", a), q)
    left, whole = in_one_batch("solve_continuous_lyapunov", left, whole)
    return _sylvester(left, left, whole, (False, True))


def solve_discrete_lyapunov(a: Any, q: Any) -> Node:
    """x with a x a' - x + q = 0 (SciPy's): with b = (a + 1)^-1 (a - 1) a continuous equation (Gajic and Qureshi,
    Lyapunov Matrix Equation in System Stability and Control, 1995)."""
    left, whole = matrices_of("solve_discrete_lyapunov", square_of("solve_discrete_lyapunov", a), q)
    left, whole = in_one_batch("solve_discrete_lyapunov", left, whole)
    one, transpose = eye(as_size_node(left.type.shape[-1]), dtype=left.type.dtype), layout.transpose
    more = left + one
    half = matrices.solve(more, left - one)
    both = transpose(matrices.solve(more, transpose(matrices.solve(more, whole))))
    return _sylvester(half, half, both * -2.0, (False, True))


def tensorinv(a: Any, ind: int = 2) -> Node:
    """The inverse with respect to `tensordot` over the first `ind` axes: tensordot(tensorinv(a), a, ind) is the
    identity. The sizes of the first axes must multiply to those of the others."""
    (node,) = matrices_of("tensorinv", a)
    if not isinstance(ind, (int, np.integer)) or not 0 < ind <= node.ndim:
        raise ShapeError(f"tensorinv of {describe(node)} of type {node.type}: ind={ind!r}")
    first, last = node.type.shape[:ind], node.type.shape[ind:]
    flat = layout.reshape(node, (sizes.product(first), sizes.product(last)))
    return layout.reshape(matrices.inverse(flat), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Node:
    """x with tensordot(a, x, x.ndim) = b; `axes` of `a` are moved to its end before."""
    left, right = matrices_of("tensorsolve", a, b, vectors=True)
    if axes is not None:
        moved = normalise_axes(axes, left.ndim, label_operand("tensorsolve", left))
        kept = [k for k in range(left.ndim) if k not in moved]
        left = layout.dimshuffle(left, (*kept, *moved))
    shape = left.type.shape[right.ndim :]
    count = sizes.product(shape)
    flat = layout.reshape(left, (sizes.product(right.type.shape), count))
    found = matrices.solve(flat, layout.reshape(right, (sizes.product(right.type.shape), 1)))
    return layout.reshape(found, shape)
