"""Distributions of vectors under SciPy's names: `multivariate_normal`, `dirichlet`, `multinomial`.

    multivariate_normal.logpdf(x, mean, cov)

In: tensors whose last axis is the vector (of `dirichlet` the first one, as in SciPy). Out: tensors. Of arrays SciPy's
own methods are called. A covariance that is not positive definite is numpy.linalg.LinAlgError.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.errors import GraphValueError
from graphc.functions.function import function as compile_function
from graphc.ir.at_once import is_plain
from graphc.ir.call_errors import explained_class
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.random import rejection, vectors
from graphc.scipy.named import found_in
from graphc.scipy.stats.distribution import Frozen, floats
from graphc.tensor import elementary as el
from graphc.tensor.creation import eye, zeros
from graphc.tensor.indexing import diagonal
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import cholesky, solve_triangular
from graphc.tensor.products import diag


class Vectors:
    """A distribution of vectors under SciPy's name; called with parameters it gives one that has them ("frozen").

    Methods raise TypeError for a parameter that is missing, and GraphValueError for a function of a tensor that has no
    formula.
    """

    def __init__(self, name: str, formulas: dict[str, Any]) -> None:
        self.name, self.formulas = name, formulas

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwds)

    def _call(self, method: str, args: Any, kwds: Any) -> Any:
        if is_plain(args, kwds):
            return getattr(found_in("scipy.stats", self.name), method)(*args, **kwds)
        found = self.formulas.get(method)
        if found is None:
            raise GraphValueError(f"{self.name}.{method} of a tensor: there is no formula for it")
        return found(*args, **kwds)

    def logpdf(self, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density, of x and the parameters."""
        return self._call("logpdf", args, kwds)

    def pdf(self, *args: Any, **kwds: Any) -> Any:
        """The density, of x and the parameters."""
        return self._call("pdf", args, kwds)

    def logpmf(self, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability of x, which the parameters follow."""
        return self._call("logpmf", args, kwds)

    def pmf(self, *args: Any, **kwds: Any) -> Any:
        """The probability of x, which the parameters follow."""
        return self._call("pmf", args, kwds)

    def cdf(self, *args: Any, **kwds: Any) -> Any:
        """The distribution function; of arrays alone."""
        return self._call("cdf", args, kwds)

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """The mean, of the parameters."""
        return self._call("mean", args, kwds)

    def var(self, *args: Any, **kwds: Any) -> Any:
        """The variances, of the parameters."""
        return self._call("var", args, kwds)

    def cov(self, *args: Any, **kwds: Any) -> Any:
        """The covariance, of the parameters."""
        return self._call("cov", args, kwds)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """The entropy, of the parameters."""
        return self._call("entropy", args, kwds)

    def rvs(self, *args: Any, size: Any = (), random_state: Any = None, **kwds: Any) -> Any:
        """Random vectors of a key of `graphc.random` in the place of `random_state`; else SciPy's own draw."""
        if not isinstance(random_state, Node | np.uint64):
            if is_plain(args, kwds):
                size = 1 if size == () else size
                return found_in("scipy.stats", self.name).rvs(*args, size=size, random_state=random_state, **kwds)
            raise GraphValueError(f"{self.name}.rvs of a tensor: random_state must be a key, as graphc.random.key(0)")
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        drawn = self.formulas["rvs"](random_state, shape, *args, **kwds)
        if is_plain((random_state, *args), kwds):
            return compile_function([], drawn, mode="interpreted")()
        return drawn


# --- normal -----------------------------------------------------------------------------------------------------------


def _normal_of(mean: Any, cov: Any, x: Any = None) -> tuple[Node, Node]:
    """Mean and lower factor of the covariance, which SciPy takes as a number or as its diagonal too."""
    cov = floats(cov)
    mean = None if mean is None else floats(mean)
    if cov.ndim == 2:
        size = cov.shape[0]
    elif cov.ndim == 1:
        size, cov = cov.shape[0], diag(cov)
    else:
        known = mean if mean is not None and mean.ndim else None if x is None or not x.ndim else x
        size = 1 if known is None else known.shape[known.ndim - 1]
        cov = cov * eye(size, dtype=cov.type.dtype)
    mean = zeros((size,), cov.type.dtype) if mean is None else mean if mean.ndim else mean[None]
    return mean, cholesky(cov)


def _log_normal(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Node:
    if allow_singular:
        raise GraphValueError("multivariate_normal of a tensor: allow_singular=True is not supported")
    x = floats(x)
    mean, factor = _normal_of(mean, cov, x)
    rest = x - mean if x.ndim else x[None] - mean
    if mean.type.shape == (1,) and x.ndim == 1:  # as many points of one dimension
        rest = rest[:, None]
    size = factor.shape[0]
    flat = rest.reshape((-1, size))
    scaled = solve_triangular(factor, flat.T, lower=True)
    squares = (scaled * scaled).sum(0).reshape([rest.shape[axis] for axis in range(rest.ndim - 1)])
    return -0.5 * (squares + size * math.log(2 * math.pi)) - el.log(diagonal(factor)).sum()


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    _, factor = _normal_of(mean, cov)
    return 0.5 * factor.shape[0] * (math.log(2 * math.pi) + 1) + el.log(diagonal(factor)).sum()


def _drawn_normal(key: Any, shape: Any, mean: Any = None, cov: Any = 1) -> Node:
    mean, factor = _normal_of(mean, cov)
    return vectors.multivariate_normal(key, mean, factor @ factor.T, shape)


multivariate_normal = Vectors(
    "multivariate_normal",
    {
        "logpdf": _log_normal,
        "pdf": lambda *args, **kwds: el.exp(_log_normal(*args, **kwds)),
        "entropy": _normal_entropy,
        "rvs": _drawn_normal,
    },
)

# --- Dirichlet --------------------------------------------------------------------------------------------------------


def _log_beta(alpha: Node) -> Node:
    return el.gammaln(alpha).sum() - el.gammaln(alpha.sum())


def _log_dirichlet(x: Any, alpha: Any) -> Node:
    """x may lack its last element, which makes the sum 1."""
    x, alpha = floats(x), floats(alpha)
    given, wanted = x.type.shape[0], alpha.type.shape[0]
    if isinstance(given, int) and given + 1 == wanted:
        x = concatenate([x, 1 - x.sum(0, keepdims=True)], 0)
    powers = (alpha - 1).reshape([alpha.shape[0], *[1] * (x.ndim - 1)])
    return el.xlogy(powers, x).sum(0) - _log_beta(alpha)


def _dirichlet_var(alpha: Any) -> Any:
    alpha = floats(alpha)
    total = alpha.sum()
    return alpha * (total - alpha) / (total * total * (total + 1))


def _dirichlet_entropy(alpha: Any) -> Any:
    alpha = floats(alpha)
    total, count = alpha.sum(), alpha.shape[0]
    return _log_beta(alpha) + (total - count) * el.digamma(total) - ((alpha - 1) * el.digamma(alpha)).sum()


def _dirichlet_cov(alpha: Any) -> Any:
    mean = floats(alpha) / floats(alpha).sum()
    return (diag(mean) - mean[:, None] * mean) / (floats(alpha).sum() + 1)


dirichlet = Vectors(
    "dirichlet",
    {
        "logpdf": _log_dirichlet,
        "pdf": lambda *args, **kwds: el.exp(_log_dirichlet(*args, **kwds)),
        "mean": lambda alpha: floats(alpha) / floats(alpha).sum(),
        "var": _dirichlet_var,
        "cov": _dirichlet_cov,
        "entropy": _dirichlet_entropy,
        "rvs": lambda key, shape, alpha: rejection.dirichlet(key, alpha, shape),
    },
)

# --- multinomial ------------------------------------------------------------------------------------------------------


def _log_multinomial(x: Any, n: Any, p: Any) -> Node:
    x, n, p = floats(x), floats(n), floats(p)
    valid = el.equal(x.sum(-1), n) & ((x >= 0) & el.equal(el.floor(x), x)).all(-1)
    held = el.maximum(x, 0)
    value = el.gammaln(n + 1) + (el.xlogy(held, p) - el.gammaln(held + 1)).sum(-1)
    return el.where(valid, value, -math.inf)


def _multinomial_cov(n: Any, p: Any) -> Any:
    p = floats(p)
    return as_node(n) * (diag(p) - p[:, None] * p)


multinomial = Vectors(
    "multinomial",
    {
        "logpmf": _log_multinomial,
        "pmf": lambda *args: el.exp(_log_multinomial(*args)),
        "mean": lambda n, p: as_node(n) * floats(p),
        "cov": _multinomial_cov,
        "rvs": lambda key, shape, n, p: vectors.multinomial(key, n, p, shape),
    },
)

explained_class(Vectors)
