"""Equations whose unknowns are matrices and tensors: Sylvester's, Lyapunov's, inverses and solutions over several axes.

In: tensors whose last two axes are matrices, or tensors. Out: nodes composed of factorisations and products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.errors import ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.linalg import equations, matrices
from graphc.tensor.creation import eye
from graphc.tensor.linalg.factors import in_one_batch, matrices_of
from graphc.tensor.products import matmul
from graphc.tensor.shaping import normalise_axes

__all__ = ["solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "tensorinv", "tensorsolve"]


def _square(name: str, a: Any) -> Node:
    (node,) = matrices_of(name, a)
    matrices.check_matrices(name, node)
    return node


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
    left, whole = matrices_of("solve_continuous_lyapunov", _square("solve_continuous_lyapunov", a), q)
    left, whole = in_one_batch("solve_continuous_lyapunov", left, whole)
    return _sylvester(left, left, whole, (False, True))


def solve_discrete_lyapunov(a: Any, q: Any) -> Node:
    """x with a x a' - x + q = 0 (SciPy's): with b = (a + 1)^-1 (a - 1) a continuous equation (Gajic and Qureshi,
    Lyapunov Matrix Equation in System Stability and Control, 1995)."""
    left, whole = matrices_of("solve_discrete_lyapunov", _square("solve_discrete_lyapunov", a), q)
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
        moved = normalise_axes(axes, left.ndim, f"tensorsolve of {describe(left)} of type {left.type}")
        kept = [k for k in range(left.ndim) if k not in moved]
        left = layout.dimshuffle(left, (*kept, *moved))
    shape = left.type.shape[right.ndim :]
    count = sizes.product(shape)
    flat = layout.reshape(left, (sizes.product(right.type.shape), count))
    found = matrices.solve(flat, layout.reshape(right, (sizes.product(right.type.shape), 1)))
    return layout.reshape(found, shape)
