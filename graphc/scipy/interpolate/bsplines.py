"""Splines by basis functions: `BSpline`, `make_interp_spline`, `splev`.

In: knots and coefficients, or points. Out: an object that is called with queries: SciPy's own computes where all are
arrays; else a tensor, with derivatives by queries, coefficients and knots.

    spline = make_interp_spline(x, y)         through the points
    spline(0.5), spline.derivative()(0.5)

A value is de Boor's sum over the k + 1 basis functions that are not zero at a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.errors import GraphValueError
from graphc.ir.at_once import is_plain
from graphc.ir.node import Node
from graphc.scipy.interpolate.piecewise import as_float


class BSpline:
    """A spline of degree `k` by its knots `t` and coefficients `c`, as SciPy's `BSpline`.

    t: n + k + 1 knots, increasing. c: n coefficients along the first axis. extrapolate: True, False or "periodic".
    Raises GraphValueError for another axis than 0.

        >>> BSpline(np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 3.0]), 1)(0.5)
        array(2.)
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        if axis:
            raise GraphValueError("BSpline: axis is 0: move the axis of the coefficients first")
        self.t, self.c, self.k, self.extrapolate = t, c, int(k), extrapolate

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """The knots, the coefficients and the degree."""
        return self.t, self.c, self.k

    def _own(self) -> Any:
        return import_module("scipy.interpolate").BSpline(self.t, self.c, self.k, self.extrapolate)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values at queries of any shape, or the derivatives of order `nu` there."""
        if is_plain((self.t, self.c, x), {}):
            return self._own()(x, nu, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        if nu:
            return self.derivative(nu)(x, extrapolate=how)
        knots, coefficients, query = as_float(self.t), as_float(self.c), as_float(x)
        flat = T.flatten(query)
        count = knots.shape[0] - self.k - 1
        first, last = knots[self.k], knots[count]
        if how == "periodic":
            flat = first + (flat - first) % (last - first)
        place = _interval(knots, flat, self.k)
        wide = (slice(None), *[None] * (coefficients.ndim - 1))
        found = _de_boor(knots, coefficients, flat, place, self.k, wide)
        if how is False:
            found = T.switch((~((flat >= first) & (flat <= last)))[wide], np.nan, found)
        shape = [query.shape[axis] for axis in range(query.ndim)]
        whole = [*shape, *(found.shape[axis] for axis in range(1, found.ndim))]
        return T.reshape(found, whole, ndim=len(whole))

    def derivative(self, nu: int = 1) -> BSpline:
        """Return the derivative of order `nu`."""
        if is_plain((self.t, self.c), {}):
            made = self._own().derivative(nu)
            return BSpline(made.t, made.c, made.k, made.extrapolate)
        knots, c, k = as_float(self.t), as_float(self.c), self.k
        for _ in range(nu):
            if k == 0:
                return BSpline(knots, T.zeros_like(c), 0, self.extrapolate)
            count = knots.shape[0] - k - 1
            width = knots[k + 1 : count + k] - knots[1:count]
            empty = T.eq(width, 0)
            wide = (slice(None), *[None] * (c.ndim - 1))
            change = (c[1:count] - c[: count - 1]) * k
            c = T.switch(empty[wide], 0.0, change / T.switch(empty, 1.0, width)[wide])
            knots, k = knots[1:-1], k - 1
        return BSpline(knots, c, k, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """Return the antiderivative of order `nu`, which is 0 at the first knot."""
        if is_plain((self.t, self.c), {}):
            made = self._own().antiderivative(nu)
            return BSpline(made.t, made.c, made.k, made.extrapolate)
        knots, c, k = as_float(self.t), as_float(self.c), self.k
        for _ in range(nu):
            count = knots.shape[0] - k - 1
            width = (knots[k + 1 :] - knots[:count])[(slice(None), *[None] * (c.ndim - 1))]
            sums = T.cumsum(c[:count] * width / (k + 1), axis=0)
            c = T.concatenate([T.zeros_like(sums[:1]), sums])
            knots, k = T.concatenate([knots[:1], knots, knots[-1:]]), k + 1
        return BSpline(knots, c, k, False if self.extrapolate == "periodic" else self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from `a` to `b`."""
        if is_plain((self.t, self.c, a, b), {}):
            return self._own().integrate(a, b, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        if how is not True:
            raise GraphValueError("BSpline.integrate: of tensors it is with extrapolate=True alone")
        whole = self.antiderivative()
        return whole(b) - whole(a)


def _interval(knots: Node, x: Node, k: int) -> Node:
    """Return for each query the last knot that is not above it, within the base interval."""
    inner = knots[k + 1 : knots.shape[0] - k - 1]
    return T.searchsorted(inner, x, side="right") + k


def _de_boor(knots: Node, c: Node, x: Node, place: Node, k: int, wide: tuple[Any, ...]) -> Node:
    parts = [c[place - k + number] for number in range(k + 1)]
    for level in range(1, k + 1):
        for number in range(k, level - 1, -1):
            low = knots[place - k + number]
            width = knots[place + 1 + number - level] - low
            share = ((x - low) / T.switch(T.eq(width, 0), 1.0, width))[wide]
            parts[number] = (1 - share) * parts[number - 1] + share * parts[number]
    return parts[k]


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: None = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """Return the spline of odd degree `k` through points, whose knots are the places but for the (k - 1) / 2 next to
    each end ("not-a-knot"), as SciPy's `make_interp_spline`. Solves a full system of as many equations as there are
    points. Raises GraphValueError for conditions at the ends, and for an even degree of tensors.

        >>> make_interp_spline(np.arange(5.0), np.arange(5.0) ** 3)(1.5).round(9)
        np.float64(3.375)
    """
    if bc_type is not None or t is not None or axis:
        raise GraphValueError("make_interp_spline: t, bc_type and axis are not here: CubicSpline has conditions")
    if is_plain((x, y), {}):
        made = import_module("scipy.interpolate").make_interp_spline(x, y, k)
        return BSpline(made.t, made.c, made.k)
    if k % 2 == 0:
        raise GraphValueError("make_interp_spline: of tensors the degree is odd")
    places, values = as_float(x), as_float(y)
    half = (k + 1) // 2
    ends = [T.stack([each] * (k + 1)) for each in (places[0], places[-1])]
    knots = T.concatenate([ends[0], places[half : places.shape[0] - half], ends[1]])
    unit = T.eye(places.shape[0], dtype=places.type.dtype)
    basis = _de_boor(knots, unit, places, _interval(knots, places, k), k, (slice(None), None))
    return BSpline(knots, T.linalg.solve(basis, values), k)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return values of a spline, a `BSpline` or (t, c, k), as SciPy's `splev`. ext: 0 goes on beyond the ends, 1 gives
    zeros there; raises GraphValueError for others of tensors."""
    spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
    if is_plain((spline.t, spline.c, x), {}):
        return import_module("scipy.interpolate").splev(x, spline.tck, der, ext)
    if ext not in (0, 1):
        raise GraphValueError("splev: of tensors ext is 0 or 1")
    knots, query = as_float(spline.t), as_float(x)
    c = as_float(spline.c)[: knots.shape[0] - spline.k - 1]
    found = BSpline(knots, c, spline.k)(query, der)
    if ext == 0:
        return found
    inside = (query >= knots[spline.k]) & (query <= knots[knots.shape[0] - spline.k - 1])
    return T.switch(inside, found, 0.0)


__all__: Sequence[str] = ["BSpline", "make_interp_spline", "splev"]
