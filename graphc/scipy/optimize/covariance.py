"""Results of SciPy's algorithms: the parameters as a tree, and their covariance by name.

    found = minimize(negative_log_likelihood, {"mu": 0.0, "sigma": 1.0})
    found.x                              {"mu": ..., "sigma": ...}
    found.scipy                          SciPy's result, of vectors
    found.covariance["mu", "sigma"]      a number
    found.covariance.errors              {"mu": ..., "sigma": ...}, the standard errors

In: SciPy's result, a function that computes the matrix. Out: a `SearchResult`, which computes the matrix when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.errors import GraphValueError
from graphc.ir.call_errors import explain_all
from graphc.scipy.optimize.packing import Packing
from graphc.scipy.results import Result

__all__ = ["Covariance", "SearchResult"]


class Covariance:
    """The covariance of parameters. matrix: in the order of `names`, those of the elements ("sigma", "w[0, 1]").
    `covariance["w"]` is that of a part with itself, `covariance["w", "sigma"]` of two parts: an array of the shape of
    the first and then of the second, a number for two numbers.

        >>> from graphc.scipy.optimize import minimize
        >>> found = minimize(lambda p: (p["a"] - 1.0) ** 2 + 2.0 * p["b"] ** 2, {"a": 0.0, "b": 1.0})
        >>> found.covariance["a"].round(6), found.covariance["a", "b"].round(6), found.covariance.names
        (np.float64(0.5), np.float64(0.0), ['a', 'b'])
    """

    def __init__(self, matrix: Array, packing: Packing) -> None:
        self.matrix, self.packing = matrix, packing
        self.names = packing.elements()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(self.matrix, dtype, copy=copy)

    def __getitem__(self, names: str | tuple[str, str]) -> Any:
        first, second = (names, names) if isinstance(names, str) else names
        rows, columns = (self._place(name) for name in (first, second))
        shapes = self.packing.shapes
        block = self.matrix[self.packing.spans[rows], self.packing.spans[columns]]
        return block.reshape((*shapes[rows], *shapes[columns]))[()]

    def _place(self, name: str) -> int:
        places = self.packing.places("covariance", name)
        if len(places) > 1:
            found = ", ".join(self.packing.names[place] for place in places)
            raise GraphValueError(f"covariance: {name!r} is several parameters: {found}")
        return places[0]

    @property
    def errors(self) -> Any:
        """The standard errors of the parameters, the square roots of the diagonal, in a tree like theirs."""
        return self.packing.tree(np.sqrt(np.diag(self.matrix)))

    @property
    def correlation(self) -> Array:
        """The matrix of correlations; NaN for a parameter without variance."""
        size = np.sqrt(np.diag(self.matrix))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = self.matrix / size / size[:, None]
        return found

    def __repr__(self) -> str:
        return f"covariance of {', '.join(self.names)}:\n{self.matrix}"


class SearchResult(Result):
    """The result of a search. x: the parameters, a tree like the guess. scipy: SciPy's own result, of vectors. Its
    other values are there by their names: `fun`, `success`, `status`, `message`, `nit`, `nfev`. covariance: a
    `Covariance`, computed when it is asked for."""

    def __init__(
        self, values: Mapping[str, Any], messages: Mapping[int, str], spread: Callable[[], Covariance] | None = None
    ) -> None:
        super().__init__(values, messages)
        self.__dict__["spread"] = spread

    @property
    def covariance(self) -> Covariance:
        """The covariance of `x`. Raises GraphValueError where there is none."""
        known = self.__dict__
        if "known" not in known:
            if known["spread"] is None:
                raise GraphValueError("covariance: this result has none, or it was not computed before it was pickled")
            known["known"] = known["spread"]()
        found: Covariance = known["known"]
        return found

    def __reduce__(self) -> Any:
        known = self.__dict__.get("known")
        return restored, (dict(self), self.messages, known)


def restored(values: Mapping[str, Any], messages: Mapping[int, str], known: Covariance | None) -> SearchResult:
    """Return the result that was pickled."""
    return SearchResult(values, messages, None if known is None else lambda: known)


def inverse(what: str, matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix. Raises GraphValueError for another."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise GraphValueError(
            f"covariance: {what} at x is not positive definite: x is no isolated minimum, or the data do not tell all "
            "parameters"
        ) from None
    found: Array = np.linalg.inv(matrix)
    return (found + found.T) / 2


def free_of(x: Array, low_high: tuple[Array, Array] | None) -> Array:
    """Return for each parameter whether no bound holds it."""
    found: Array = np.full(x.shape, True) if low_high is None else (x > low_high[0]) & (x < low_high[1])
    return found


def over_free(what: str, matrix: Array, free: Array, rows: Array | None = None) -> Array:
    """Return the inverse over the parameters that are free, with zeros for those that a bound holds. rows: the
    derivatives of equations between them; the inverse is then over the directions that change none (Aitchison and
    Silvey 1958, Maximum-likelihood estimation of parameters subject to restraints)."""
    basis = np.eye(len(free))[:, free]
    if rows is not None and rows.size:
        _, sizes, turned = np.linalg.svd(rows @ basis)
        rank = int(np.sum(sizes > 1e-10 * sizes.max(initial=0.0)))
        basis = basis @ turned[rank:].T
    if not basis.shape[1]:
        return np.zeros_like(matrix)
    found: Array = basis @ inverse(what, basis.T @ matrix @ basis) @ basis.T
    return found


explain_all(globals())
