"""Random vectors and matrices with a covariance.

In: keys, means and covariances, shapes of batches. Out: nodes, functions of normal and gamma numbers and of a Cholesky
factor, with derivatives by all parameters.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, broadcast_sizes, cast
from graphc.ops.elementwise import elementwise as E
from graphc.ops.factor import cholesky, triangle
from graphc.random.bits import fold_in
from graphc.random.distributions import Shape, float_of, normal, sized
from graphc.random.rejection import chisquare
from graphc.tensor.creation import arange
from graphc.tensor.products import matmul


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Normal vectors of mean (..., n) and covariance (..., n, n), along the last axis: mean + L z, L the Cholesky
    factor, of which the lower triangle of `cov` is read. shape: without the last axis; None for that of the parameters.
    Raises LinAlgError where `cov` is not positive definite.

        >>> graphc.random.multivariate_normal(key, [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], (100,))
    """
    middle, matrix = as_node(mean), as_node(cov)
    _is_matrix("multivariate_normal", matrix)
    if not middle.ndim:
        raise GraphTypeError(f"multivariate_normal: the mean {describe(middle)} of type {middle.type} is no vector")
    kind = float_of("multivariate_normal", dtype, middle, matrix)
    middle, matrix = cast(middle, kind), cast(matrix, kind)
    if shape is None:
        own = tuple(broadcast_sizes("multivariate_normal", [middle[..., 0], matrix[..., 0, 0]]))
    else:
        own, _ = sized("multivariate_normal", shape)
    z = normal(key, (*own, matrix.type.shape[-1]), kind)
    factor = cholesky(matrix)
    if matrix.ndim == 2:
        moved: Node = matmul(z, factor.T) if z.ndim > 1 else matmul(factor, z)
    else:
        moved = matmul(factor, z.dimshuffle(*range(z.ndim), "x"))[..., 0]
    return middle + moved


def wishart(key: Any, df: Any, scale: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Wishart matrices (..., n, n) of `df` degrees of freedom, more than n - 1, and a positive definite scale matrix:
    (L A) (L A)', with the Cholesky factor L, normal numbers below the diagonal of A and roots of chi-square numbers on
    it (Bartlett, Proceedings of the Royal Society of Edinburgh 53, 1933). shape: that of the batch."""
    freedom, matrix = as_node(df), as_node(scale)
    _is_matrix("wishart", matrix)
    kind = float_of("wishart", dtype, freedom, matrix)
    freedom, matrix, size = cast(freedom, kind), cast(matrix, kind), matrix.type.shape[-1]
    if shape is None:
        own = tuple(broadcast_sizes("wishart", [freedom, matrix[..., 0, 0]]))
    else:
        own, _ = sized("wishart", shape)
    left = freedom.dimshuffle(*range(freedom.ndim), "x") - cast(arange(matrix.shape[-1]), kind)
    roots = E("sqrt", chisquare(fold_in(key, 0), left, (*own, size), kind))
    below = triangle(normal(fold_in(key, 1), (*own, size, size), kind), strict=True)
    number = arange(matrix.shape[-1])
    is_diagonal = E("equal", number.dimshuffle(0, "x"), number.dimshuffle("x", 0))
    half = E("where", is_diagonal, roots.dimshuffle(*range(roots.ndim), "x"), below)
    half = matmul(cholesky(matrix), half)
    made: Node = matmul(half, half.dimshuffle(*range(half.ndim - 2), half.ndim - 1, half.ndim - 2))
    return made


def _is_matrix(what: str, matrix: Node) -> None:
    if matrix.ndim < 2:
        raise GraphTypeError(f"{what}: {describe(matrix)} of type {matrix.type} is no matrix")
