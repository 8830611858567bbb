"""Random vectors and matrices of a covariance: normal vectors, Wishart matrices.

In: a key, parameters with axes before as batches, the shape of the batch. Out: nodes, which have derivatives by all
parameters, through the factors of covariances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise
from graphc.ops.linalg import factor, spectral
from graphc.ops.linalg.derivatives import diagonal_matrix, triangle
from graphc.random.bits import fold_in
from graphc.random.distributions import Shape, float_of, normal
from graphc.random.rejection import chisquare
from graphc.tensor.elementary import maximum, sqrt
from graphc.tensor.products import matmul
from graphc.tensor.shaping import as_shape

METHODS = ("cholesky", "eigh", "svd")


def _root(cov: Node, method: str) -> Node:
    """A matrix whose product with its transpose is a covariance."""
    if method == "cholesky":
        return factor.cholesky(cov)
    if method == "eigh":
        values, vectors = spectral.eigh(cov)
        return vectors * layout.expand(sqrt(maximum(values, 0.0)), (values.ndim - 1,))
    u, s, _ = spectral.svd(cov)
    found: Node = u * layout.expand(sqrt(s), (s.ndim - 1,))
    return found


def _outer(what: str, shape: Shape, *own: tuple[Size, ...]) -> tuple[Size, ...]:
    """The axes before vectors or matrices: those asked for, else those of the parameters."""
    nodes = [layout.zeros("bool", each) for each in own]
    found = broadcast_sizes(what, nodes)
    if shape is None:
        return tuple(found)
    wanted = as_shape((shape,) if isinstance(shape, int | np.integer) else shape, what, instead="give ndim=")
    if len(wanted) < len(found):
        raise ShapeError(f"{what}: the parameters have {len(found)} axes of a batch, the shape {len(wanted)}")
    return tuple(wanted)


def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Shape = None, dtype: Any = None, method: str = "cholesky"
) -> Node:
    """Normal vectors, along the last axis, of a mean and a covariance: mean + r z, r r' = cov, z standard normal.

    mean: (..., n). cov: (..., n, n), symmetric. shape: the axes before the vector, by default those of the parameters.
    method: what r is made by; "cholesky" needs a positive definite covariance and reads its lower triangle, and raises
    LinAlgError for another; "eigh" and "svd" take singular ones. Its derivatives by mean and cov hold z.

        >>> key = graphc.random.key(0)
        >>> multivariate_normal(key, [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], (1000,)).eval().shape
        (1000, 2)
    """
    what = "multivariate_normal"
    middle, spread = as_node(mean), as_node(cov)
    if not middle.ndim or spread.ndim < 2:
        raise RankError(
            f"{what}: {describe(middle)} of type {middle.type} and {describe(spread)} of type {spread.type} should be "
            "a vector and a matrix"
        )
    if method not in METHODS:
        raise GraphValueError(f"{what}: method={method!r} must be one of {', '.join(METHODS)}")
    kind = float_of(what, dtype, middle, spread)
    middle, spread = cast(middle, kind), cast(spread, kind)
    count = sizes.common(middle.type.shape[-1], spread.type.shape[-1], what, ", the vectors")
    outer = _outer(what, shape, middle.type.shape[:-1], spread.type.shape[:-2])
    drawn = normal(key, (*outer, count), kind)
    root = _root(spread, method)
    if spread.ndim == 2:
        moved = matmul(drawn, layout.transpose(root))
    else:
        moved = matmul(root, layout.expand(drawn, (drawn.ndim,)))
        moved = layout.drop(moved, (moved.ndim - 1,))
    return middle + moved


def wishart(key: Any, df: Any, scale: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Wishart matrices: sums of `df` products x x' of normal vectors x of covariance `scale`, for any real df > n - 1
    (Bartlett's decomposition, Odell and Feiveson, Journal of the American Statistical Association 61, 1966).

    df: a number, or one for each matrix. scale: (..., n, n), positive definite. shape: the axes before the matrix, by
    default those of the parameters. Of a smaller df the numbers are NaN.
    """
    what = "wishart"
    degrees, spread = as_node(df), as_node(scale)
    if spread.ndim < 2:
        raise RankError(f"{what}: {describe(spread)} of type {spread.type} is no matrix")
    kind = float_of(what, dtype, degrees, spread)
    degrees, spread = cast(degrees, kind), cast(spread, kind)
    count = spread.type.shape[-1]
    outer = _outer(what, shape, degrees.type.shape, spread.type.shape[:-2])
    freedom = layout.expand(broadcast_node(degrees, outer), (len(outer),)) - cast(layout.iota(count), kind)
    enough = freedom > 0
    drawn = chisquare(fold_in(key, 0), elementwise("where", enough, freedom, 1.0), (*outer, count), kind)
    lengths = elementwise("where", enough, sqrt(drawn), np.nan)
    beyond = triangle(normal(fold_in(key, 1), (*outer, count, count), kind), strict=True)
    half = matmul(factor.cholesky(spread), beyond + diagonal_matrix(lengths))
    return matmul(half, layout.transpose(half))
