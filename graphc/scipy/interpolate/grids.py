"""Interpolation between points and on grids: `interp1d`, `RegularGridInterpolator`.

In: places and values. Out: an object that is called with queries: SciPy's own computes where all are arrays; else a
tensor, with derivatives by queries and values.

    interp1d(np.array([0.0, 1.0]), np.array([2.0, 4.0]))(0.5)                    array(3.)
    RegularGridInterpolator((x, y), values)(jnp.stack([a, b], -1))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.errors import GraphValueError, RankError
from graphc.ir.at_once import is_plain
from graphc.ir.node import Node
from graphc.scipy.interpolate.splines import CubicSpline, at_queries, beside
from graphc.scipy.named import as_float


class interp1d:  # noqa: N801 - SciPy's name
    """Values between points, as SciPy's `interp1d`.

    x: places, increasing (or `assume_sorted=False`, which sorts them). y: values along `axis`. kind: "linear",
    "nearest", "previous", "next" or "cubic". bounds_error: queries beyond the ends raise; None for True unless
    fill_value is given. fill_value: what is there, a number or a pair (below, above), or "extrapolate".
    A call raises ValueError for a query beyond the ends, and for other numbers of places than of values.

        >>> interp1d(np.array([0.0, 1.0]), np.array([2.0, 4.0]))(0.25)
        array(2.5)
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        self.x, self.y, self.axis = x, y, axis
        self.settings = {
            "kind": kind, "axis": axis, "bounds_error": bounds_error, "fill_value": fill_value,
            "assume_sorted": assume_sorted,
        }  # fmt: skip

    def __call__(self, x: Any) -> Any:
        """Return values at queries of any shape."""
        if is_plain((self.x, self.y, x), self.settings):
            return import_module("scipy.interpolate").interp1d(self.x, self.y, **self.settings)(x)
        kind, fill = self.settings["kind"], self.settings["fill_value"]
        if kind not in _BETWEEN:
            raise GraphValueError(f"interp1d: kind {kind!r} is not here: {', '.join(_BETWEEN)} are")
        places, values, query = as_float(self.x), as_float(self.y), as_float(x)
        axis = self.axis % values.ndim
        values = T.moveaxis(values, axis, 0)
        if not self.settings["assume_sorted"]:
            order = T.argsort(places)
            places, values = places[order], values[order]
        going_on = isinstance(fill, str)
        error = self.settings["bounds_error"]
        if error is None:
            error = not going_on and isinstance(fill, float) and np.isnan(fill)
        flat = T.flatten(query)
        if error:
            inside = T.all((flat >= places[0]) & (flat <= places[-1]))
            flat = T.Assert("interp1d: a query is beyond the places")(flat, inside)
        found = _BETWEEN[kind](places, values, flat)
        if not error and not going_on:
            below, above = fill if isinstance(fill, tuple) else (fill, fill)
            sides = [beside(each, values.ndim) for each in (flat < places[0], flat > places[-1])]
            found = T.switch(sides[0], below, T.switch(sides[1], above, found))
        return T.moveaxis(at_queries(found, query), list(range(query.ndim)), list(range(axis, axis + query.ndim)))


def _linear(x: Node, y: Node, query: Node) -> Node:
    above = T.clip(T.searchsorted(x, query), 1, x.shape[0] - 1)
    below = above - 1
    part = (query - x[below]) / (x[above] - x[below])
    return y[below] + beside(part, y.ndim) * (y[above] - y[below])


def _previous(x: Node, y: Node, query: Node) -> Node:
    place = T.searchsorted(x, query, side="right") - 1
    none = beside(place < 0, y.ndim)
    return T.switch(none, np.nan, y[T.maximum(place, 0)])


def _next(x: Node, y: Node, query: Node) -> Node:
    place, count = T.searchsorted(x, query), x.shape[0]
    none = beside(place >= count, y.ndim)
    return T.switch(none, np.nan, y[T.minimum(place, count - 1)])


_BETWEEN: dict[str, Callable[[Node, Node, Node], Node]] = {
    "linear": _linear,
    "nearest": lambda x, y, query: y[T.searchsorted((x[1:] + x[:-1]) / 2, query)],
    "previous": _previous,
    "next": _next,
    "cubic": lambda x, y, query: CubicSpline(x, y)(query),
}


class RegularGridInterpolator:
    """Values between the points of a grid, as SciPy's `RegularGridInterpolator`.

    points: a vector of increasing places for each axis. values: an array with these axes, and others. method: "linear"
    or "nearest". bounds_error: queries beyond the grid raise; else there is `fill_value`, or with None the last cells
    go on. A call raises ValueError for a query beyond the grid, and for `values` of another shape than the grid.

        >>> grid = RegularGridInterpolator((np.arange(3.0), np.arange(2.0)), np.arange(6.0).reshape(3, 2))
        >>> grid(np.array([1.5, 0.5]))
        array([3.5])
    """

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
    ) -> None:
        self.points, self.values, self.method = tuple(points), values, method
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Return values at queries, of which the last axis has the coordinates; or a tuple of coordinates."""
        if is_plain((self.points, self.values, xi), {}):
            own = import_module("scipy.interpolate").RegularGridInterpolator
            return own(self.points, self.values, self.method, self.bounds_error, self.fill_value)(xi, method)
        method = method or self.method
        if method not in ("linear", "nearest"):
            raise GraphValueError(f"RegularGridInterpolator: method {method!r} is not here: linear and nearest are")
        places, values = [as_float(each) for each in self.points], as_float(self.values)
        count = len(places)
        if isinstance(xi, tuple):
            query = T.stack([as_float(each) + 0 * T.add(*map(as_float, xi), 0.0) for each in xi], axis=-1)
        else:
            query = as_float(xi)
        if values.ndim < count or not query.ndim:
            raise RankError(f"RegularGridInterpolator: there are {count} axes of places, and values of {values.type}")
        flat = T.reshape(query, (-1, count), ndim=2)
        coordinates = [flat[:, axis] for axis in range(count)]
        pairs = list(zip(places, coordinates, strict=True))
        inside = [(x >= own[0]) & (x <= own[-1]) for own, x in pairs]
        if self.bounds_error:
            check = T.Assert("RegularGridInterpolator: a query is beyond the grid")
            coordinates = [check(x, T.all(each)) for x, each in zip(coordinates, inside, strict=True)]
            pairs = list(zip(places, coordinates, strict=True))
        found = self._linear(pairs, values) if method == "linear" else self._nearest(pairs, values)
        if not self.bounds_error and self.fill_value is not None:
            everywhere = inside[0]
            for each in inside[1:]:
                everywhere = everywhere & each
            found = T.switch(beside(everywhere, found.ndim), found, self.fill_value)
        shape: list[Any] = [query.shape[axis] for axis in range(query.ndim - 1)] or [1]
        whole = [*shape, *(found.shape[axis] for axis in range(1, found.ndim))]
        return T.reshape(found, whole, ndim=len(whole))

    def _linear(self, pairs: Sequence[tuple[Node, Node]], values: Node) -> Node:
        below = [T.clip(T.searchsorted(own, x, side="right") - 1, 0, own.shape[0] - 2) for own, x in pairs]
        parts = [(x - own[i]) / (own[i + 1] - own[i]) for (own, x), i in zip(pairs, below, strict=True)]
        total: Any = None
        for corner in product((0, 1), repeat=len(pairs)):
            weight: Any = 1.0
            for side, part in zip(corner, parts, strict=True):
                weight = weight * (part if side else 1 - part)
            taken = values[tuple(i + side for i, side in zip(below, corner, strict=True))]
            term = beside(weight, taken.ndim) * taken
            total = term if total is None else total + term
        found: Node = total
        return found

    def _nearest(self, pairs: Sequence[tuple[Node, Node]], values: Node) -> Node:
        return values[tuple(T.searchsorted((own[1:] + own[:-1]) / 2, x) for own, x in pairs)]


__all__: Sequence[str] = ["RegularGridInterpolator", "interp1d"]
