"""Piecewise polynomials (`PPoly`), splines by basis functions (`BSpline`), values between points and on grids.

In: places and values. Out: an object that is called with queries: SciPy's own computes where all are arrays; else a
tensor, with derivatives by queries, values and places.

    CubicSpline(x, y)(0.5)                    a number, by SciPy
    graphc.grad(CubicSpline(x, y))(0.5)       the slope there
    graphc.jit(lambda y, q: CubicSpline(x, y)(q))
    make_interp_spline(x, y).derivative()(0.5)

A piece between x[i] and x[i + 1] is c[0, i] (q - x[i])^k + ... + c[k, i]. Beyond the ends the first and the last piece
go on, or there is NaN, as `extrapolate` says.
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
from graphc.ops.questions import asked_equal
from graphc.scipy.named import as_float


def beside(x: Node, rank: int) -> Node:
    """Return a vector with axes after its own, so that it broadcasts along the first of as many axes."""
    return x[(slice(None), *[None] * (rank - 1))]


def at_queries(values: Node, query: Any) -> Node:
    """Return values, of which the first axis is that of all queries, with the axes of queries."""
    shape = [query.shape[axis] for axis in range(query.ndim)] + [values.shape[axis] for axis in range(1, values.ndim)]
    return T.reshape(values, shape, ndim=len(shape))


class PPoly:
    """A piecewise polynomial by its coefficients, as SciPy's `PPoly`.

    c: of the powers from the highest on, with axes of powers and of pieces, and those of values. x: the ends of pieces,
    increasing. extrapolate: True, False or "periodic". axis: that of the result along which `x` goes. A call raises
    ValueError where there are other numbers of pieces than of coefficients.

        >>> PPoly(np.array([[1.0], [0.0]]), np.array([0.0, 2.0]))(1.5)
        array(1.5)
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        if axis:
            move: Any = T.moveaxis if isinstance(c, Node) else np.moveaxis
            c = move(move(c, axis + 1, 0), axis + 1, 0)
        self._set(c, x, extrapolate, axis)

    def _set(self, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
        """Take coefficients whose first axes are those of powers and of pieces."""
        self.c, self.x, self.axis = c, x, axis
        self.extrapolate = True if extrapolate is None else extrapolate

    @classmethod
    def of_coefficients(cls, c: Any, x: Any, extrapolate: Any, axis: int) -> PPoly:
        """Return the polynomial of coefficients whose first axes are those of powers and of pieces."""
        made = PPoly.__new__(PPoly)
        made._set(c, x, extrapolate, axis)
        return made

    def _with(self, c: Any, x: Any, extrapolate: Any) -> PPoly:
        """Return another polynomial of the same axis."""
        made = PPoly.__new__(PPoly)
        made._set(c, x, extrapolate, self.axis)
        return made

    def _own(self) -> Any:
        """Return SciPy's object."""
        own = import_module("scipy.interpolate").PPoly
        c = np.ascontiguousarray(self.c, dtype=np.result_type(np.asarray(self.c).dtype, np.float64))
        return own.construct_fast(c, np.asarray(self.x, dtype=np.float64), self.extrapolate, self.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values at queries of any shape, or the derivatives of order `nu` there."""
        if is_plain((self.c, self.x, x), {}):
            return self._own()(x, nu, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        coefficients, ends, query = as_float(self.c), as_float(self.x), as_float(x)
        flat = T.flatten(query)
        first, last = ends[0], ends[-1]
        if how == "periodic":
            flat = first + (flat - first) % (last - first)
        piece = T.clip(T.searchsorted(ends, flat, side="right") - 1, 0, ends.shape[0] - 2)
        step = flat - ends[piece]
        rank = coefficients.ndim - 1
        step = beside(step, rank)
        powers = _size(coefficients)
        value = T.zeros_like(coefficients[0][piece] * step)
        for place in range(powers - nu):
            power = powers - 1 - place
            factor = float(np.prod([power - lower for lower in range(nu)]))
            value = value * step + factor * coefficients[place][piece]
        if how is False or (not isinstance(how, str) and not how):
            outside = ~((flat >= first) & (flat <= last))
            value = T.switch(beside(outside, rank), np.nan, value)
        whole = at_queries(value, query)
        if not self.axis or not query.ndim:
            return whole
        return T.moveaxis(whole, list(range(query.ndim)), list(range(self.axis, self.axis + query.ndim)))

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order `nu`; of a negative one the antiderivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            powers = _size(c)
            if powers == 1:
                c = c * 0.0
                continue
            factors = np.arange(powers - 1, 0, -1.0)
            c = c[:-1] * factors.reshape(-1, *[1] * (c.ndim - 1))
        return self._with(c, self.x, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the antiderivative of order `nu`, which is 0 at the first end."""
        if is_plain((self.c, self.x), {}):
            made = self._own().antiderivative(nu)
            return self._with(made.c, made.x, made.extrapolate)
        c, ends = as_float(self.c), as_float(self.x)
        widths = beside(T.diff(ends), c.ndim - 1)
        for _ in range(nu):
            powers = _size(c)
            raised = c / np.arange(powers, 0, -1.0).reshape(-1, *[1] * (c.ndim - 1))
            gain = T.zeros_like(raised[0])
            for place in range(powers):
                gain = (gain + raised[place]) * widths
            begins = T.concatenate([T.zeros_like(gain[:1]), T.cumsum(gain, axis=0)[:-1]])
            c = T.concatenate([raised, begins[None]])
        return self._with(c, ends, False if self.extrapolate == "periodic" else self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from `a` to `b`. Raises GraphValueError for a periodic polynomial of tensors."""
        if is_plain((self.c, self.x, a, b), {}):
            return self._own().integrate(a, b, extrapolate)
        how = self.extrapolate if extrapolate is None else extrapolate
        if how == "periodic":
            raise GraphValueError("integrate: of a periodic polynomial is for arrays alone")
        whole = self.antiderivative()
        return whole(b, extrapolate=how) - whole(a, extrapolate=how)


def _size(c: Any) -> int:
    """Return the number of powers. Raises GraphValueError where it is not known."""
    size = c.type.shape[0] if isinstance(c, Node) else len(c)
    if not isinstance(size, int):
        raise GraphValueError("PPoly: the number of powers, the first axis of c, must be known: stack them")
    return size


class _SlopedInterpolant(PPoly):
    """A curve through points. _slopes(x, y): the derivatives at the points, along the first axis."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None, **settings: Any) -> None:
        self.settings = settings
        if is_plain((x, y), settings):
            found = getattr(import_module("scipy.interpolate"), type(self).__name__)(
                x, y, axis=axis, extrapolate=extrapolate, **settings
            )
            self._set(found.c, found.x, found.extrapolate, found.axis)
            return
        places, values = as_float(x), as_float(y)
        if places.ndim != 1 or not values.ndim:
            raise RankError(f"{type(self).__name__}: x is a vector and y has an axis as long, not {values.type}")
        self.axis = axis % values.ndim
        values = T.moveaxis(values, self.axis, 0)
        wide = beside(places, values.ndim)
        coefficients = hermite(wide, values, self._slopes(wide, values))
        self._set(coefficients, places, self._extrapolated(extrapolate), self.axis)

    def _extrapolated(self, extrapolate: Any) -> Any:
        return True if extrapolate is None else extrapolate

    def _slopes(self, x: Node, y: Node) -> Node:
        raise NotImplementedError


def hermite(x: Node, y: Node, slopes: Node) -> Node:
    """Return the coefficients of cubic pieces with given values and derivatives at their ends."""
    width = x[1:] - x[:-1]
    mean = (y[1:] - y[:-1]) / width
    bend = (slopes[:-1] + slopes[1:] - 2 * mean) / width
    return T.stack([bend / width, (mean - slopes[:-1]) / width - bend, slopes[:-1] + 0 * bend, y[:-1] + 0 * bend])


class CubicHermiteSpline(_SlopedInterpolant):
    """The cubic pieces with given values and derivatives, as SciPy's `CubicHermiteSpline`.

    Raises ValueError for places that do not increase, and for other numbers of places than of values.

    >>> CubicHermiteSpline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.zeros(2))(0.5)
    array(0.5)
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        super().__init__(x, y, axis, extrapolate, dydx=dydx)

    def _slopes(self, x: Node, y: Node) -> Node:
        return T.moveaxis(as_float(self.settings["dydx"]), self.axis, 0)


class CubicSpline(_SlopedInterpolant):
    """The cubic spline through points, twice continuously differentiable, as SciPy's `CubicSpline`.

    x: increasing places. y: values along `axis`. bc_type: "not-a-knot", "natural", "clamped", "periodic", or a pair for
    the two ends, each of which may be (order, value) of a derivative. extrapolate: True, False or "periodic"; None for
    what `bc_type` says. Solves a system of three diagonals.
    Raises ValueError for places that do not increase, and for other numbers of places than of values.

        >>> x = np.arange(5.0)
        >>> CubicSpline(x, x**3)(1.5)
        array(3.375)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        super().__init__(x, y, axis, extrapolate, bc_type=bc_type)

    def _extrapolated(self, extrapolate: Any) -> Any:
        if extrapolate is None and self.settings["bc_type"] == "periodic":
            return "periodic"
        return super()._extrapolated(extrapolate)

    def _slopes(self, x: Node, y: Node) -> Node:
        begin, end = _conditions(self.settings["bc_type"])
        width = x[1:] - x[:-1]
        mean = (y[1:] - y[:-1]) / width
        count = y.type.shape[0]
        if asked_equal(count, 2):
            begin, end = ((1, mean[0]) if isinstance(each, str) else each for each in (begin, end))
        if begin == "periodic":
            message = "CubicSpline: with bc_type='periodic' the first and the last value must be equal"
            mean = T.Assert(message)(mean, T.all(abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * abs(y[-1])))
            return _periodic(width, mean, bool(asked_equal(count, 3)))
        if begin == end == "not-a-knot" and asked_equal(count, 3):
            return _parabola(width, mean)
        inner = 3 * (width[1:] * mean[:-1] + width[:-1] * mean[1:])
        rows = [_first(begin, width, mean), _first(end, width[::-1], mean[::-1], -1.0)]
        (top, above, one), (bottom, below, other) = rows
        right = T.concatenate([one[None], inner, other[None]])
        flat = T.flatten(width)
        lengths, none = flat[: y.shape[0] - 1], T.zeros((1,), dtype=flat.type.dtype)
        main = T.concatenate([top, 2 * (lengths[:-1] + lengths[1:]), bottom])
        upper = T.concatenate([none, above, lengths[:-1]])
        lower = T.concatenate([lengths[1:], below, none])
        return _solved(T.stack([upper, main, lower]), right)


def _conditions(bc_type: Any) -> list[Any]:
    """Return the conditions at both ends: "not-a-knot", "periodic", or (order, value)."""
    pair = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    known = {"natural": (2, 0.0), "clamped": (1, 0.0), "not-a-knot": "not-a-knot", "periodic": "periodic"}
    found = [known.get(each) if isinstance(each, str) else tuple(each) for each in pair]
    if len(found) != 2 or None in found or (found[0] == "periodic") != (found[1] == "periodic"):
        raise GraphValueError(f"CubicSpline: bc_type={bc_type!r} is none of {', '.join(known)} and pairs of conditions")
    if any(isinstance(each, tuple) and each[0] not in (1, 2) for each in found):
        raise GraphValueError("CubicSpline: a condition is (1, value) or (2, value)")
    return found


def _first(condition: Any, width: Node, mean: Node, turned: float = 1.0) -> tuple[Node, Node, Node]:
    """Return the equation at an end: what the slopes there and next to it are multiplied by, the right-hand side; of
    the last end for widths and slopes in reverse order."""
    lengths = T.reshape(width[(slice(0, 2), *[0] * (width.ndim - 1))], (-1,), ndim=1)
    if condition == "not-a-knot":
        both = width[0] + width[1]
        right = ((width[0] + 2 * both) * width[1] * mean[0] + width[0] ** 2 * mean[1]) / both
        return lengths[1:2], lengths[:1] + lengths[1:2], right
    order, value = condition
    given = value + T.zeros_like(mean[0])
    if order == 1:
        return T.ones_like(lengths[:1]), T.zeros_like(lengths[:1]), given
    right = -0.5 * turned * given * width[0] ** 2 + 3 * mean[0] * width[0]
    return 2 * lengths[:1], lengths[:1], right


def _solved(bands: Node, right: Node) -> Node:
    flat = right if right.ndim == 1 else T.reshape(right, (right.shape[0], -1), ndim=2)
    found = T.linalg.solve_banded((1, 1), bands, flat)
    return T.reshape(found, [right.shape[axis] for axis in range(right.ndim)], ndim=right.ndim)


def _parabola(width: Node, mean: Node) -> Node:
    """Return the slopes of the parabola through three points."""
    bend = (mean[1] - mean[0]) / (width[0] + width[1])
    return T.stack([mean[0] - bend * width[0], mean[0] + bend * width[0], mean[1] + bend * width[1]])


def _periodic(width: Node, mean: Node, is_three: bool) -> Node:
    """Return the slopes of a periodic spline: the last unknown is taken out of the cyclic system."""
    if is_three:
        middle = T.sum(mean / width, axis=0) / T.sum(1 / width + 0 * mean, axis=0)
        return T.stack([middle, middle, middle])
    before, before_mean = T.roll(width, 1, axis=0), T.roll(mean, 1, axis=0)
    right = 3 * (width * before_mean + before * mean)
    lengths = T.reshape(width[(slice(None), *[0] * (width.ndim - 1))], (-1,), ndim=1)
    earlier = T.roll(lengths, 1)
    main, count = 2 * (lengths + earlier), lengths.shape[0]
    # The equation at place i: lengths[i] s[i-1] + main[i] s[i] + earlier[i] s[i+1] = right[i].
    none = T.zeros((1,), dtype=lengths.type.dtype)
    upper = T.concatenate([none, earlier[: count - 2]])
    lower = T.concatenate([lengths[1 : count - 1], none])
    bands = T.stack([upper, main[: count - 1], lower])
    ends = T.arange(count - 1)
    column = T.switch(T.eq(ends, 0), lengths[0], 0.0) + T.switch(T.eq(ends, count - 2), earlier[count - 2], 0.0)
    own = _solved(bands, right[: count - 1])
    turned = T.linalg.solve_banded((1, 1), bands, column)
    top = right[count - 1] - lengths[count - 1] * own[count - 2] - earlier[count - 1] * own[0]
    bottom = main[count - 1] - lengths[count - 1] * turned[count - 2] - earlier[count - 1] * turned[0]
    last = top / bottom
    rest = own - beside(turned, mean.ndim) * last
    return T.concatenate([rest, last[None], rest[:1]])


class PchipInterpolator(_SlopedInterpolant):
    """The cubic pieces that rise and fall where the points do, as SciPy's `PchipInterpolator` (Fritsch and Butland,
    SIAM J. Sci. Stat. Comput. 5, 1984).
    Raises ValueError for places that do not increase, and for other numbers of places than of values.

        >>> PchipInterpolator(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))(0.5)
        array(0.)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        super().__init__(x, y, axis, extrapolate)

    def _slopes(self, x: Node, y: Node) -> Node:
        width = x[1:] - x[:-1]
        mean = (y[1:] - y[:-1]) / width
        if asked_equal(y.type.shape[0], 2):
            return T.concatenate([mean, mean])
        turns = T.sgn(mean[1:]) * T.sgn(mean[:-1]) <= 0
        one, other = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
        safe = [T.switch(turns, 1.0, each) for each in (mean[:-1], mean[1:])]
        harmonic = (one + other) / (one / safe[0] + other / safe[1])
        inner = T.switch(turns, 0.0, harmonic)
        first, last = _edge(width, mean), _edge(width[::-1], mean[::-1])
        return T.concatenate([first[None], inner, last[None]])


def _edge(width: Node, mean: Node) -> Node:
    """Return the slope at an end (Moler, Numerical Computing with MATLAB, 3.6)."""
    found = ((2 * width[0] + width[1]) * mean[0] - width[0] * mean[1]) / (width[0] + width[1])
    away = T.neq(T.sgn(found), T.sgn(mean[0]))
    steep = T.neq(T.sgn(mean[0]), T.sgn(mean[1])) & (abs(found) > 3 * abs(mean[0]))
    return T.switch(away, 0.0, T.switch(steep, 3 * mean[0], found))


class Akima1DInterpolator(_SlopedInterpolant):
    """Akima's cubic pieces, which one outlier does not bend far, as SciPy's `Akima1DInterpolator` (J. ACM 17, 1970).

    method: "akima" or "makima". Beyond the ends there is NaN unless `extrapolate` says otherwise.
    Raises ValueError for places that do not increase, and for other numbers of places than of values.
    Raises GraphValueError for another method.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        if method not in ("akima", "makima"):
            raise GraphValueError(f"Akima1DInterpolator: method is 'akima' or 'makima', not {method!r}")
        super().__init__(x, y, axis, extrapolate, method=method)

    def _extrapolated(self, extrapolate: Any) -> Any:
        return False if extrapolate is None else extrapolate

    def _slopes(self, x: Node, y: Node) -> Node:
        mean = (y[1:] - y[:-1]) / (x[1:] - x[:-1])
        if asked_equal(y.type.shape[0], 2):
            return T.concatenate([mean, mean])
        before, after = 2 * mean[0] - mean[1], 2 * mean[-1] - mean[-2]
        parts = [(2 * before - mean[0])[None], before[None], mean, after[None], (2 * after - mean[-1])[None]]
        m = T.concatenate(parts)
        change = abs(m[1:] - m[:-1])
        one, other = change[2:], change[:-2]
        if self.settings["method"] == "makima":
            size = abs(m[1:] + m[:-1])
            one, other = one + 0.5 * size[2:], other + 0.5 * size[:-2]
        total = one + other
        bent = total > 1e-9 * T.max(total)
        weighted = (one * m[1:-2] + other * m[2:-1]) / T.switch(bent, total, 1.0)
        return T.switch(bent, weighted, 0.5 * (m[3:] + m[:-3]))


# --- splines by basis functions ---------------------------------------------------------------------------------------
# A value is de Boor's sum over the k + 1 basis functions that are not zero at a query.


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
        found = _de_boor(knots, coefficients, flat, place, self.k)
        if how is False:
            found = T.switch(beside(~((flat >= first) & (flat <= last)), coefficients.ndim), np.nan, found)
        return at_queries(found, query)

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
            change = (c[1:count] - c[: count - 1]) * k
            c = T.switch(beside(empty, c.ndim), 0.0, change / beside(T.switch(empty, 1.0, width), c.ndim))
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
            width = beside(knots[k + 1 :] - knots[:count], c.ndim)
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


def _de_boor(knots: Node, c: Node, x: Node, place: Node, k: int) -> Node:
    parts = [c[place - k + number] for number in range(k + 1)]
    for level in range(1, k + 1):
        for number in range(k, level - 1, -1):
            low = knots[place - k + number]
            width = knots[place + 1 + number - level] - low
            share = beside((x - low) / T.switch(T.eq(width, 0), 1.0, width), c.ndim)
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
    basis = _de_boor(knots, unit, places, _interval(knots, places, k), k)
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


# --- interpolation between points and on grids ------------------------------------------------------------------------
# In: places and values. Out: an object that is called with queries: SciPy's own computes where all are arrays; else a
# tensor, with derivatives by queries and values.
#
#     interp1d(np.array([0.0, 1.0]), np.array([2.0, 4.0]))(0.5)                    array(3.)
#     RegularGridInterpolator((x, y), values)(jnp.stack([a, b], -1))


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


__all__: Sequence[str] = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator",
    "RegularGridInterpolator", "interp1d", "make_interp_spline", "splev",
]  # fmt: skip
