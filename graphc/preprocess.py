"""Preprocessing of data: principal components and whitening.

In: examples as rows of a matrix. Out: objects that are fitted to some examples, and transform arrays or tensors.

    PCA(2).fit(x).transform(x)      (n, 2): the coordinates along the two axes of largest variance
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from graphc.errors import GraphValueError, ShapeError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.tensor.products import dot
from graphc.tensor.variables import tensor

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
        """Return the coordinates of other rows, an array or a tensor, in their dtype where it is floating. Raises
        GraphValueError before `fit`."""
        mean, factor = self._fitted(x, "transform", self._factor)
        return dot(x - mean, factor) if isinstance(x, Node) else (np.asarray(x, mean.dtype) - mean) @ factor

    def inverse(self, x: Any) -> Any:
        """Return the rows of the data for rows of coordinates: the inverse of `transform`, up to the components left
        out. Raises GraphValueError before `fit`."""
        mean, factor = self._fitted(x, "inverse", self._back)
        return (dot(x, factor) if isinstance(x, Node) else np.asarray(x, mean.dtype) @ factor) + mean

    def fit_transform(self, x: Any) -> Any:
        """`fit(x).transform(x)`."""
        return self.fit(x).transform(x)

    def export(
        self,
        path: Any,
        language: str = "c",
        part: str = "transform",
        target: str | None = None,
        blas: bool = False,
        strided: Any = (),
    ) -> list[str]:
        """Write a part, "transform" or "inverse", of rows of float64 as a C library, or as a Python module, and return
        the paths of the files. The other arguments, and errors, are those of `Function.export`. Raises GraphValueError
        before `fit`, and for another part.

            PCA(2).fit(x).export("lib/pca")            lib/pca.h, lib/libpca.so and others
        """
        if part not in ("transform", "inverse"):
            raise GraphValueError(f"there is no part {part!r} of {type(self).__name__} to export: transform, inverse")
        _, factor = self._fitted(None, "export", self._factor if part == "transform" else self._back)
        rows = tensor("float64", (None, len(factor)), name="x")
        make: Any = import_module("graphc.functions.function").function
        written: list[str] = make([rows], getattr(self, part)(rows), name=part).export(
            path, language, target, blas, strided
        )
        return written

    def _fitted(self, x: Any, what: str, make: Callable[[], Any]) -> tuple[Any, Any]:
        """Return the mean and the factor of a transform, cast to a dtype. what: the method, for the error."""
        if not hasattr(self, "mean"):
            raise GraphValueError(f"{type(self).__name__}.{what} before fit: call fit(x) first, which finds the axes")
        mean, factor = self.mean, make()
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
