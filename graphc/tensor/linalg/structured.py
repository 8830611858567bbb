"""Matrices of a pattern, and equations with them: blocks, bands, constant diagonals.

In: the parts. Out: nodes. Equations with them are solved as any others, by factorisation: the pattern saves writing,
not time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as accumulated
from typing import Any

from graphc.arrays.dtypes import promote
from graphc.errors import RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.index import gather
from graphc.ops.linalg import matrices
from graphc.tensor.elementary import clip, logical_and, mod, where
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import matrices_of, solve, with_columns
from graphc.tensor.products import matmul
from graphc.tensor.shaping import flatten

__all__ = [
    "block_diag", "circulant", "companion", "hankel", "matmul_toeplitz", "solve_banded", "solve_circulant",
    "solve_toeplitz", "solveh_banded", "toeplitz",
]  # fmt: skip


def _vector(name: str, value: Any) -> Node:
    node = as_node(value)
    if node.ndim > 1:
        raise RankError(f"{name}: {describe(node)} of type {node.type} is no vector")
    return flatten(node)


def _grid(rows: Any, columns: Any) -> tuple[Node, Node]:
    return layout.expand(layout.iota(rows), (1,)), layout.expand(layout.iota(columns), (0,))


def _total(parts: Sequence[Size]) -> Size:
    none: Size = 0
    return accumulated(sizes.add, parts, none)


def block_diag(*arrs: Any) -> Node:
    """The matrix with these matrices along its diagonal, vectors as rows, and zeros elsewhere."""
    nodes = [as_node(each) for each in arrs] or [literal([[]])]
    for node in nodes:
        if node.ndim > 2:
            raise RankError(f"block_diag: {describe(node)} of type {node.type} is no matrix")
    dtype = promote(*(node.dtype for node in nodes))
    blocks = [cast(layout.expand(node, range(2 - node.ndim)), dtype) for node in nodes]
    bands = []
    for place, block in enumerate(blocks):
        widths = [0 if k == place else other.type.shape[1] for k, other in enumerate(blocks)]
        before, after = _total(widths[:place]), _total(widths[place + 1 :])
        rows = block.type.shape[0]
        bands.append(concatenate([layout.zeros(dtype, (rows, before)), block, layout.zeros(dtype, (rows, after))], 1))
    return concatenate(bands, 0)


def toeplitz(c: Any, r: Any = None) -> Node:
    """The matrix with first column `c` and first row `r` (`c`), whose diagonals are constant; r[0] does not count."""
    column = _vector("toeplitz", c)
    row = column if r is None else _vector("toeplitz", r)
    dtype = promote(column.dtype, row.dtype)
    down, along = _grid(column.type.shape[0], row.type.shape[0])
    both = concatenate([cast(column, dtype), cast(row, dtype)[1:]], 0)
    apart = elementwise("sub", along, down)
    size = as_size_node(column.type.shape[0])
    return gather(both, (where(apart > 0, size - 1 + apart, -apart),), 0)


def hankel(c: Any, r: Any = None) -> Node:
    """The matrix with first column `c` and last row `r` (zeros), whose antidiagonals are constant; r[0] does not
    count."""
    column = _vector("hankel", c)
    row = layout.zeros(column.dtype, column.type.shape) if r is None else _vector("hankel", r)
    dtype = promote(column.dtype, row.dtype)
    down, along = _grid(column.type.shape[0], row.type.shape[0])
    both = concatenate([cast(column, dtype), cast(row, dtype)[1:]], 0)
    return gather(both, (elementwise("add", down, along),), 0)


def circulant(c: Any) -> Node:
    """The matrix with first column `c`, each other column the one before moved down by one, and round."""
    column = _vector("circulant", c)
    size = column.type.shape[0]
    down, along = _grid(size, size)
    return gather(column, (mod(elementwise("sub", down, along), as_size_node(size)),), 0)


def companion(a: Any) -> Node:
    """The matrix whose characteristic polynomial has the coefficients `a`, the highest power first."""
    node = _vector("companion", a)
    node = node if node.dtype in ("float32", "float64") else cast(node, "float64")
    top = layout.expand(-node[1:] / node[0], (0,))
    size = sizes.subtract(node.type.shape[0], 1)
    down, along = _grid(sizes.subtract(size, 1), size)
    return concatenate([top, cast(elementwise("equal", down, along), node.dtype)], 0)


def matmul_toeplitz(c_or_cr: Any, x: Any) -> Node:
    """The product of `toeplitz(c)`, or toeplitz(*c_or_cr) of a pair, and `x`."""
    return matmul(_toeplitz(c_or_cr), x)


def _toeplitz(c_or_cr: Any) -> Node:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


def solve_toeplitz(c_or_cr: Any, b: Any, on_error: str = "raise") -> Node:
    """x with toeplitz(c) x = b, or toeplitz(c, r) x = b for a pair (c, r) (SciPy's)."""
    return solve(_toeplitz(c_or_cr), b, on_error=on_error)


def solve_circulant(c: Any, b: Any, on_error: str = "raise") -> Node:
    """x with circulant(c) x = b (SciPy's)."""
    return solve(circulant(c), b, on_error=on_error)


def _from_bands(ab: Node, below: int, above: int) -> Node:
    """The matrix a[i, j] = ab[above + i - j, j]."""
    count = ab.type.shape[1]
    down, along = _grid(count, count)
    band = elementwise("add", elementwise("sub", down, along), above)
    inside = logical_and(elementwise("greater_equal", band, 0), elementwise("less_equal", band, below + above))
    place = cast(clip(band, 0, below + above), "int64")
    columns = layout.broadcast_to(along, (count, count))
    return where(inside, gather(ab, (place, columns), 0), literal(0, ab.dtype))


def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any, on_error: str = "raise") -> Node:
    """x with a x = b for a matrix of `l` diagonals below and `u` above its main one, the rows of `ab` from the highest
    on: a[i, j] = ab[u + i - j, j] (SciPy's)."""
    below, above = l_and_u
    bands, right = matrices_of("solve_banded", ab, b, vectors=True)
    rows = bands.type.shape[0]
    if bands.ndim != 2 or (isinstance(rows, int) and rows != below + above + 1):
        raise ShapeError(
            f"solve_banded: {describe(bands)} of type {bands.type} should be a matrix of {below + above + 1} rows"
        )
    return solve(_from_bands(bands, below, above), right, on_error=on_error)


def solveh_banded(ab: Any, b: Any, lower: bool = False, on_error: str = "raise") -> Node:
    """x with a x = b for a positive definite matrix of few diagonals, of which `ab` has those from the main one down
    (`lower`, the first row the main one) or up (the last row) (SciPy's)."""
    bands, right = matrices_of("solveh_banded", ab, b, vectors=True)
    rows = bands.type.shape[0]
    if bands.ndim != 2 or not isinstance(rows, int):
        raise ShapeError(
            f"solveh_banded: {describe(bands)} of type {bands.type} should be a matrix whose number of rows is known"
        )
    whole = _from_bands(bands, rows - 1, 0) if lower else _from_bands(bands, 0, rows - 1)

    def apply(a: Node, b: Node) -> Node:
        return matrices.solve(a if lower else layout.transpose(a), b, "positive", on_error=on_error)

    return with_columns("solveh_banded", whole, right, apply)
