"""Products and determinants of complex numbers, by loops.

In: complex tensors. Out: nodes of a loop over the factors, since another order gives other numbers than NumPy's, or
over the columns of a matrix (Gaussian elimination). In each step of that the row whose element in the column is the
largest comes first, and its multiples are taken from the rows below.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from graphc.control.functional import fori_loop, scan
from graphc.errors import RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import pairs, shape as layout
from graphc.ops.elementwise import broadcast_node, elementwise
from graphc.ops.shape import dimshuffle, expand, iota, reshape
from graphc.startup.hooks import HOOKS
from graphc.tensor.elementary import where
from graphc.tensor.reductions import argmax
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import moveaxis

# --- products along axes ----------------------------------------------------------------------------------------------


def _ones(x: Node, shape: Sequence[Size]) -> Node:
    """Ones in the dtype of a tensor."""
    return broadcast_node(pairs.cast(literal(1, x.args[0].type.dtype), x.type.dtype), shape)


def product(x: Node, axes: Sequence[int], keepdims: bool) -> Node:
    """The product over axes, 1 of nothing."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = dimshuffle(x, (*axes, *kept))
    factors = reshape(moved, (sizes.product(moved.type.shape[: len(axes)]), *moved.type.shape[len(axes) :]))
    made: Node = scan(
        lambda total, row: (elementwise("mul", total, row), None), _ones(factors, factors.type.shape[1:]), factors
    )[0]
    return expand(made, sorted(axes)) if keepdims else made


def running_product(x: Node, axis: int) -> Node:
    """The products of the first 1, 2, ... elements along an axis."""
    factors = moveaxis(x, axis, 0)

    def step(total: Node, row: Node) -> tuple[Node, Node]:
        after = elementwise("mul", total, row)
        return after, after

    return moveaxis(scan(step, _ones(factors, factors.type.shape[1:]), factors)[1], 0, axis)


def polynomial(p: Node, x: Node) -> Node:
    """The values of a polynomial with coefficients `p`, the highest first, by Horner's rule."""
    none = broadcast_node(pairs.cast(literal(0, p.args[0].type.dtype), p.type.dtype), x.type.shape)
    made: Node = scan(lambda value, each: (value * x + each, None), none, p)[0]
    return made


# --- determinants -----------------------------------------------------------------------------------------------------


def _pivots(a: Node, first: tuple[Any, Any], follow: Any) -> Any:
    """Eliminate the columns of matrices. follow(found, pivot): what becomes of `found` by the next pivot, which has the
    sign of the exchange of rows."""
    rows = iota(a.type.shape[-1])

    def step(k: Node, carry: Any) -> Any:
        left, found = carry
        column = left.part((..., slice(None), k))
        place = argmax(where(elementwise("less", rows, k), -1.0, abs(column)), -1)
        is_place = elementwise("equal", rows, expand(place, (place.ndim,)))
        exchanged = where(elementwise("equal", rows, k), expand(place, (place.ndim,)), where(is_place, k, rows))
        left = take_along_axis(left, expand(exchanged, (exchanged.ndim,)), -2)
        pivot = left.part((..., k, k))
        is_zero = elementwise("equal", pivot, 0)
        below = elementwise("greater", rows, k)
        shares = where(below, left.part((..., slice(None), k)), 0) / expand(where(is_zero, 1.0, pivot), (pivot.ndim,))
        left = left - expand(shares, (shares.ndim,)) * expand(left.part((..., k, slice(None))), (shares.ndim - 1,))
        sign = where(elementwise("equal", place, k), literal(1, pivot.args[0].type.dtype), -1.0)
        return left, follow(found, pivot * sign)

    return fori_loop(0, as_size_node(a.type.shape[-1]), step, (a, first))[1]


def _checked(name: str, a: Node) -> Node:
    if a.ndim < 2:
        raise RankError(f"{name}: {describe(a)} of type {a.type} is no matrix")
    return a


def det(a: Node) -> Node:
    """The determinants."""
    found: Node = _pivots(_checked("det", a), _ones(a, a.type.shape[:-2]), lambda total, pivot: total * pivot)  # type: ignore[arg-type]
    return found


def slogdet(a: Node) -> tuple[Node, Node]:
    """The determinants' numbers of size 1, and the logarithms of their sizes; 0 and -inf of singular matrices."""
    ones = _ones(_checked("slogdet", a), a.type.shape[:-2])

    def follow(found: tuple[Node, Node], pivot: Node) -> tuple[Node, Node]:
        sign, size = found
        return sign * pairs.sign(pivot), size + elementwise("log", abs(pivot))

    sign, size = _pivots(a, (ones, pairs.real_of(ones) * 0.0), follow)
    return sign, size


# --- factors ----------------------------------------------------------------------------------------------------------


def lu(a: Node) -> tuple[Node, Node]:
    """`(lu, perm)` of matrices, as `lu_factor` has them. The row that comes first is the one whose parts are largest,
    as in LAPACK."""
    rows, columns = (iota(size) for size in a.type.shape[-2:])
    order = rows + layout.zeros("int64", (*a.type.shape[:-2], a.type.shape[-2]))

    def step(k: Node, carry: Any) -> Any:
        left, perm = carry
        column = left.part((..., slice(None), k))
        size = abs(pairs.real_of(column)) + abs(pairs.imag_of(column))
        place = argmax(where(elementwise("less", rows, k), -1.0, size), -1)
        is_place = elementwise("equal", rows, expand(place, (place.ndim,)))
        exchanged = where(elementwise("equal", rows, k), expand(place, (place.ndim,)), where(is_place, k, rows))
        left = take_along_axis(left, expand(exchanged, (exchanged.ndim,)), -2)
        perm = take_along_axis(perm, exchanged, -1)
        pivot = left.part((..., k, k))
        divisor = where(elementwise("equal", pivot, 0), 1.0, pivot)
        column = left.part((..., slice(None), k))
        shares = where(elementwise("greater", rows, k), column / expand(divisor, (divisor.ndim,)), column)
        below = expand(where(elementwise("greater", rows, k), shares, 0), (shares.ndim,))
        beside = where(elementwise("greater", columns, k), left.part((..., k, slice(None))), 0)
        left = left - below * expand(beside, (beside.ndim - 1,))
        return where(elementwise("equal", columns, k), expand(shares, (shares.ndim,)), left), perm

    found, perm = fori_loop(0, as_size_node(sizes.minimum(*a.type.shape[-2:])), step, (a, order))
    return found, perm


HOOKS.complexes = sys.modules[__name__]
