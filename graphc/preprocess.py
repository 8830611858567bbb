"""Preprocessing of data: principal components and whitening.

In: examples as rows of a matrix. Out: objects that are fitted to some examples, and transform arrays or tensors.

    PCA(2).fit(x).transform(x)      (n, 2): the coordinates along the two axes of largest variance
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import GraphValueError, ShapeError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.tensor.products import dot

__all__ = ["PCA", "Whiten"]


def __dir__() -> list[str]:
    return __all__


class PCA:
    """Rows of `n_components` numbers: the coordinates along the axes of largest variance, from the mean.

    n_components: all where None; a part below 1: as many as have that part of the variance. After `fit`: `mean`,
    `components` (a row for each), `variance` (of a sample, along each). `fit` raises GraphValueError
    for fewer than two rows, and for more components than there are.
    """

    def __init__(self, n_components: float | None = None) -> None:
        self.n_components = n_components

    def fit(self, x: Any) -> PCA:
        """Find the axes by the singular value decomposition of the centred rows. Raises GraphValueError for fewer
        than two rows, or for more components than there are."""
        rows = np.asarray(x, "float64")
        if rows.ndim != 2 or len(rows) < 2:
            raise GraphValueError(f"PCA takes at least two examples as rows, not an array of shape {rows.shape}")
        self.mean = rows.mean(0)
        _, sizes, axes = np.linalg.svd(rows - self.mean, full_matrices=False)
        variance = sizes**2 / (len(rows) - 1)
        count = self._count(variance)
        signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])  # the largest coordinate is positive
        self.components, self.variance = (axes * signs[:, None])[:count], variance[:count]
        return self

    def _count(self, variance: Any) -> int:
        wanted = self.n_components
        if wanted is None:
            return len(variance)
        if 0 < wanted < 1:
            parts = np.cumsum(variance) / variance.sum()
            return min(int(np.searchsorted(parts, wanted)) + 1, len(variance))
        if not 1 <= wanted <= len(variance):
            raise GraphValueError(f"PCA: {wanted} components of {len(variance)}")
        return int(wanted)

    def _factor(self) -> Any:
        return self.components.T

    def _back(self) -> Any:
        return self.components

    def transform(self, x: Any) -> Any:
        """Return the coordinates of other rows, an array or a tensor, in their dtype where it is floating."""
        mean, factor = self._fitted(x, self.mean, self._factor())
        return dot(x - mean, factor) if isinstance(x, Node) else (np.asarray(x, mean.dtype) - mean) @ factor

    def inverse(self, x: Any) -> Any:
        """Return the rows of the data for rows of coordinates: the inverse of `transform`, up to the components left
        out."""
        mean, factor = self._fitted(x, self.mean, self._back())
        return (dot(x, factor) if isinstance(x, Node) else np.asarray(x, mean.dtype) @ factor) + mean

    def fit_transform(self, x: Any) -> Any:
        """`fit(x).transform(x)`."""
        return self.fit(x).transform(x)

    def _fitted(self, x: Any, mean: Any, factor: Any) -> tuple[Any, Any]:
        """Return the parts of the transform, cast to a dtype."""
        dtype = str(x.dtype) if str(getattr(x, "dtype", "")) in ("float32", "float64") else "float64"
        width = np.shape(x)[-1:] if not isinstance(x, Node) else ()
        if width and width[0] not in factor.shape:
            raise ShapeError(f"{type(self).__name__}: rows of {width[0]} numbers, where there were {len(mean)}")
        return mean.astype(dtype), factor.astype(dtype)


class Whiten(PCA):
    """The same coordinates, each divided by its standard deviation: their covariance is the identity. With `zca` they
    are turned back, so that they are as near to the data as may be. `epsilon` is added to variances. `fit` raises
    GraphValueError as that of `PCA` does."""

    def __init__(self, n_components: float | None = None, zca: bool = False, epsilon: float = 1e-8) -> None:
        super().__init__(n_components)
        self.zca, self.epsilon = zca, epsilon

    def _factor(self) -> Any:
        scaled = self.components.T / np.sqrt(self.variance + self.epsilon)
        return scaled @ self.components if self.zca else scaled

    def _back(self) -> Any:
        scaled = self.components * np.sqrt(self.variance + self.epsilon)[:, None]
        return self.components.T @ scaled if self.zca else scaled


explain_all(globals())
