"""Distances between vectors, and between the rows of matrices: SciPy's `spatial.distance`, with derivatives.

In: vectors, or matrices whose rows are points. Out: SciPy's own results of arrays; tensors of float64 of tensors.

    cdist(np.zeros((1, 2)), np.eye(2))        array([[1., 1.]])

The derivative of a Euclidean distance between equal points is 0, as a kernel matrix of points with themselves needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphc.tensor as T
from graphc.errors import GraphValueError, RankError
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import as_node, cast
from graphc.ops.identity import checked
from graphc.scipy.named import offer, scipys

# --- metrics ----------------------------------------------------------------------------------------------------------


def euclidean(u: Any, v: Any, w: Any = None) -> Node:
    """Return the root of the sum of squares of `u - v`, weighted by `w`.

    >>> euclidean([0.0, 3.0], [4.0, 0.0])
    5.0
    """
    return _root(sqeuclidean(u, v, w))


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Node:
    """Return the sum of squares of `u - v`, weighted by `w`."""
    return _sum((_float(u) - _float(v)) ** 2, w)


def cityblock(u: Any, v: Any, w: Any = None) -> Node:
    """Return the sum of absolute values of `u - v`, weighted by `w`."""
    return _sum(T.abs(_float(u) - _float(v)), w)


def chebyshev(u: Any, v: Any) -> Node:
    """Return the largest absolute value of `u - v`."""
    return T.max(T.abs(_float(u) - _float(v)), axis=-1)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Node:
    """Return the `p`-norm of `u - v`, a number of 1 or more that is no tensor; `w` weights the powers."""
    if isinstance(p, Node) or not 0 < p < float("inf"):
        raise GraphValueError(f"minkowski: p is a positive number, not {p}; chebyshev is the limit of large ones")
    if p == 1:
        return cityblock(u, v, w)
    if p == 2:
        return euclidean(u, v, w)
    total = _sum(T.abs(_float(u) - _float(v)) ** p, w)
    return T.where(T.eq(total, 0), 0.0, T.where(T.eq(total, 0), 1.0, total) ** (1 / p))


def cosine(u: Any, v: Any, w: Any = None) -> Node:
    """Return 1 minus the cosine of the angle between `u` and `v`, whose products `w` weights."""
    a, b = _float(u), _float(v)
    return T.clip(1 - _sum(a * b, w) / T.sqrt(_sum(a * a, w) * _sum(b * b, w)), 0.0, 2.0)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Node:
    """Return 1 minus the correlation of `u` and `v`; the cosine distance if they are `centered` before."""
    a, b = _float(u), _float(v)
    if centered:
        one = T.ones_like(a[..., :1]) if w is None else _float(w)
        a = a - (_mean(a, w) if w is None else _sum(a, one) / T.sum(one))[..., None]
        b = b - (_mean(b, w) if w is None else _sum(b, one) / T.sum(one))[..., None]
    return cosine(a, b, w)


def canberra(u: Any, v: Any, w: Any = None) -> Node:
    """Return the sum of `abs(u - v) / (abs(u) + abs(v))`, weighted by `w`; 0 where both are 0."""
    a, b = _float(u), _float(v)
    size = T.abs(a) + T.abs(b)
    return _sum(T.where(T.eq(size, 0), 0.0, T.abs(a - b) / T.where(T.eq(size, 0), 1.0, size)), w)


def braycurtis(u: Any, v: Any, w: Any = None) -> Node:
    """Return the sum of `abs(u - v)` over that of `abs(u + v)`, both weighted by `w`."""
    a, b = _float(u), _float(v)
    return _sum(T.abs(a - b), w) / _sum(T.abs(a + b), w)


def hamming(u: Any, v: Any, w: Any = None) -> Node:
    """Return the part of elements that differ, weighted by `w`."""
    return _mean(cast(T.neq(as_node(u), as_node(v)), "float64"), w)


def seuclidean(u: Any, v: Any, V: Any) -> Node:  # noqa: N803
    """Return the Euclidean distance of vectors whose elements have the variances `V`."""
    return euclidean(u, v, 1 / _float(V))


def mahalanobis(u: Any, v: Any, VI: Any) -> Node:  # noqa: N803
    """Return the distance of vectors whose covariance has the inverse `VI`."""
    apart = _float(u) - _float(v)
    return _root(T.sum(T.dot(apart, _float(VI)) * apart, axis=-1))


METRICS: dict[str, Callable[..., Node]] = {
    each.__name__: each
    for each in (
        euclidean, sqeuclidean, cityblock, chebyshev, minkowski, cosine, correlation, canberra, braycurtis, hamming,
        seuclidean, mahalanobis,
    )
}  # fmt: skip


def _float(value: Any) -> Node:
    return cast(as_node(value), "float64")


def _sum(terms: Node, weights: Any) -> Node:
    return T.sum(terms if weights is None else terms * _float(weights), axis=-1)


def _mean(terms: Node, weights: Any) -> Node:
    return T.mean(terms, axis=-1) if weights is None else _sum(terms, weights) / T.sum(_float(weights))


def _root(squares: Node) -> Node:
    """Return square roots whose derivative at 0 is 0."""
    is_zero = T.eq(squares, 0)
    return T.where(is_zero, squares, T.sqrt(T.where(is_zero, 1.0, squares)))


# --- distances of all pairs -------------------------------------------------------------------------------------------


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: None = None, **kwargs: Any) -> Node:  # noqa: N803
    """Return the distances of the rows of `XA` from those of `XB`: a matrix of float64.

    metric: the name of a function of this module, or SciPy's function. kwargs: its arguments. Raises GraphValueError
    for another metric.

        >>> cdist([[0.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]])
        array([[5., 1.]])
    """
    a, b = _points("cdist", XA), _points("cdist", XB)
    call, given = _metric("cdist", metric, kwargs, lambda: T.concatenate([a, b]))
    return call(a[:, None], b[None], **given)


def pdist(X: Any, metric: Any = "euclidean", *, out: None = None, **kwargs: Any) -> Node:  # noqa: N803
    """Return the distances of each row of `X` from those after it: a vector. Arguments are as of `cdist`.

    >>> pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).round(6)
    array([5.      , 1.      , 4.242641])
    """
    x = _points("pdist", X)
    call, given = _metric("pdist", metric, kwargs, lambda: x)
    rows, columns = _pairs(x.type.shape[0])
    return call(x[rows], x[columns], **given)


def squareform(X: Any, force: str = "no", checks: bool = True) -> Node:  # noqa: N803
    """Return the symmetric matrix of the distances that `pdist` gives, or those of such a matrix.

    Each call checks that the number of distances is that of a matrix, or that a matrix is symmetric and has zeros on
    its diagonal, but with `checks=False`.

        >>> squareform([1.0, 2.0, 3.0])
        array([[0., 1., 2.],
               [1., 0., 3.],
               [2., 3., 0.]])
    """
    given = as_node(X)
    if given.ndim == 1 and force in ("no", "tomatrix"):
        count = as_size_node(given.type.shape[0])
        size = cast((T.sqrt(8.0 * count + 1) + 1) / 2, "int64")
        text = f"squareform: the number of distances in {describe(given)} is that of no matrix, n * (n - 1) / 2"
        size = checked(size, [cast(T.eq(size * (size - 1), 2 * count), "int64")], text, "value")
        rows, columns = T.arange(size)[:, None], T.arange(size)[None]
        first = T.minimum(rows, columns)
        place = first * size - first * (first + 1) // 2 + T.abs(rows - columns) - 1
        return T.concatenate([given, T.zeros(1, given.type.dtype)])[T.where(T.eq(rows, columns), count, place)]
    if given.ndim != 2 or force not in ("no", "tovector"):
        raise RankError(
            f"squareform: {describe(given)} of type {given.type} is no vector or matrix for force={force!r}"
        )
    if checks:
        holds = T.all(T.eq(given, given.T)) & T.all(T.eq(T.diagonal(given), 0))
        text = f"squareform: {describe(given)} is not symmetric with zeros on its diagonal"
        given = checked(given, [cast(holds, "int64")], text, "value")
    return given[_pairs(given.type.shape[0])]


def _pairs(size: Size) -> tuple[Node, Node]:
    """Return the rows and the columns above the diagonal of a matrix, in C order."""
    count = as_size_node(size)
    pairs = count * (count - 1) // 2
    place = T.arange(pairs)
    left = cast((T.sqrt(8.0 * (pairs - place) - 7) - 1) / 2, "int64")  # rows below that of the pair, but one
    row = count - 2 - left
    return row, place + row + 1 - pairs + (left + 2) * (left + 1) // 2


def _points(name: str, value: Any) -> Node:
    node = _float(value)
    if node.ndim != 2:
        raise RankError(f"{name}: {describe(node)} of type {node.type} is no matrix, whose rows are points")
    return node


def _metric(name: str, metric: Any, kwargs: dict[str, Any], points: Callable[[], Node]) -> tuple[Any, dict[str, Any]]:
    """Return the function of a metric, and its arguments; those that it lacks are estimated from all points."""
    title = metric.lower() if isinstance(metric, str) else getattr(metric, "__name__", "")
    known_as = {"euclid": "euclidean", "sqeuclid": "sqeuclidean", "chebychev": "chebyshev", "manhattan": "cityblock"}
    if (call := METRICS.get(known_as.get(title, title))) is None:
        raise GraphValueError(f"{name}: the metric {title or metric!r} is none of {', '.join(METRICS)}")
    given = {key: value for key, value in kwargs.items() if value is not None}
    if call is METRICS["seuclidean"] and "V" not in given:
        given["V"] = T.var(points(), axis=0, ddof=1)
    if call is METRICS["mahalanobis"] and "VI" not in given:
        given["VI"] = T.linalg.inv(T.cov(points().T)).T
    return call, given


__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "hamming",
    "mahalanobis", "minkowski", "pdist", "seuclidean", "sqeuclidean", "squareform",
]  # fmt: skip

for _name in __all__:
    vars()[_name].of_arrays = scipys("graphc.scipy.spatial.distance", _name, 4)

offer(globals())
