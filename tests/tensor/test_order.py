"""Sorting and what stands on it, against NumPy's functions of the same names: axes, NaN, ties, one element, both modes,
derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.tensor.statistics import METHODS

X, V, W, INTEGERS, K = T.dmatrix("x"), T.dvector("v"), T.dvector("w"), T.lvector("i"), T.lscalar("k")
AXES = (-1, 0, None)
PARTS = [0.1, 0.5, 0.77, 1.0]


def of(function: Any, *args: Any, **named: Any) -> Callable[[Any], Any]:
    """NumPy's function of an array and these arguments."""
    return lambda a: function(a, *args, **named)


MATRICES: dict[str, tuple[Any, Callable[[Any], Any]]] = {}
for _axis in AXES:
    MATRICES |= {
        f"sort {_axis}": (T.sort(X, _axis), of(np.sort, axis=_axis)),
        f"argsort {_axis}": (T.argsort(X, _axis), of(np.argsort, axis=_axis, kind="stable")),
        f"median {_axis}": (T.median(X, _axis), of(np.median, axis=_axis)),
        f"kept {_axis}": (T.median(X, _axis, keepdims=True), of(np.median, axis=_axis, keepdims=True)),
        f"percentile {_axis}": (
            T.percentile(X, 30.0, _axis, keepdims=True),
            of(np.percentile, 30.0, axis=_axis, keepdims=True),
        ),
        f"several {_axis}": (
            T.quantile(X, [0.3, 0.4], _axis, keepdims=True),
            of(np.quantile, [0.3, 0.4], axis=_axis, keepdims=True),
        ),
    }
    MATRICES |= {
        f"{_method} {_axis}": (
            T.quantile(X, PARTS, _axis, _method),
            of(np.quantile, PARTS, axis=_axis, method=_method),
        )
        for _method in METHODS
    }


def unique_part(a: Any, place: int) -> Any:
    return np.unique(a, return_index=True, return_inverse=True, return_counts=True)[place]


VECTORS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "searchsorted": (T.searchsorted(T.sort(V), V), lambda a: np.searchsorted(np.sort(a), a)),
    "searchsorted right": (T.searchsorted(T.sort(V), V, "right"), lambda a: np.searchsorted(np.sort(a), a, "right")),
    "methods": (
        V.sort().searchsorted(V[V.argsort()], "right"),
        lambda a: np.searchsorted(np.sort(a), np.sort(a), "right"),
    ),
    "sorter": (T.searchsorted(V, V, sorter=T.argsort(V)), lambda a: np.searchsorted(np.sort(a), a)),
    **{
        f"unique {place}": (
            T.unique(V, return_index=True, return_inverse=True, return_counts=True)[place],
            of(unique_part, place),
        )
        for place in range(4)
    },
    "digitize": (T.digitize(V, [0.0, 2.0, 4.0]), lambda a: np.digitize(a, [0.0, 2.0, 4.0])),
    "digitize right": (T.digitize(V, [0.0, 2.0], right=True), lambda a: np.digitize(a, [0.0, 2.0], right=True)),
    "falling bins": (T.digitize(V, [4.0, 2.0, 0.0], right=True), lambda a: np.digitize(a, [4.0, 2.0, 0.0], right=True)),
    "isin": (T.isin(V, [1.0, 2.0]), lambda a: np.isin(a, [1.0, 2.0])),
    "not in": (T.isin(V, [1.0, 2.0], invert=True), lambda a: np.isin(a, [1.0, 2.0], invert=True)),
    "union1d": (T.union1d(V, [9.0, 1.0]), lambda a: np.union1d(a, [9.0, 1.0])),
    "intersect1d": (T.intersect1d(V, [1.0, 2.0, 8.0]), lambda a: np.intersect1d(a, [1.0, 2.0, 8.0])),
    "setdiff1d": (T.setdiff1d(V, [1.0, 2.0]), lambda a: np.setdiff1d(a, [1.0, 2.0])),
    "setxor1d": (T.setxor1d(V, [1.0, 8.0]), lambda a: np.setxor1d(a, [1.0, 8.0])),
    "partition": (T.partition(V, 0)[0], lambda a: np.partition(a, 0)[0]),
}


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_along_axes(mode: str) -> None:
    f = graphc.function([X], [node for node, _ in MATRICES.values()], mode=mode)
    rng = np.random.default_rng(0)
    ties, numbers = rng.integers(0, 5, (4, 6)).astype(float), rng.normal(size=(4, 6))
    numbers[1, 2] = np.nan
    for value in (ties, numbers, ties[:, :1], ties[:1]):
        for (name, (_, want)), found in zip(MATRICES.items(), f(value), strict=True):
            np.testing.assert_allclose(found, want(value), rtol=1e-14, err_msg=name, equal_nan=True)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_of_vectors(mode: str) -> None:
    f = graphc.function([V], [node for node, _ in VECTORS.values()], mode=mode)
    value = np.array([3.0, 1.0, 2.0, 2.0, np.nan, 5.0, 1.0])
    for part in (value, value[:4], value[:1]):
        for (name, (_, want)), found in zip(VECTORS.items(), f(part), strict=True):
            np.testing.assert_array_equal(found, want(part), err_msg=name)


@pytest.mark.slow
def test_counts() -> None:
    numbers, weights = np.array([3, 1, 1, 0, 5]), np.random.default_rng(1).random(5)
    outputs = [
        *(
            T.bincount(INTEGERS),
            T.bincount(INTEGERS, W, 9),
            *T.histogram(W, 4),
            *T.histogram(W, [0.0, 0.3, 0.9], density=True),
        ),
        T.histogram(W, 5, range=(0.0, 1.0), weights=W * 2)[0],
    ]
    f = graphc.function([INTEGERS, W], outputs)
    want = [
        *(np.bincount(numbers), np.bincount(numbers, weights, 9), *np.histogram(weights, 4)),
        *np.histogram(weights, [0.0, 0.3, 0.9], density=True),
        np.histogram(weights, 5, range=(0.0, 1.0), weights=weights * 2)[0],
    ]
    for found, expected in zip(f(numbers, weights), want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    with pytest.raises(ShapeError, match=r"bincount: i .* has a negative number"):
        f(-numbers, weights)
    assert graphc.function([INTEGERS], T.bincount(INTEGERS, minlength=3), mode="interpreted")([]).tolist() == [0, 0, 0]


@pytest.mark.slow
def test_the_largest() -> None:
    f = graphc.function([V, K], [T.topk(V, 2), T.argtopk(V, -2), T.topk(V, K), *T.topk_and_argtopk(V, 1)])
    value = np.array([3.0, 1.0, 2.0, 7.0])
    largest, least, some, first, place = f(value, -3)
    assert largest.tolist() == [7, 3] and least.tolist() == [1, 2] and some.tolist() == [1, 2, 3]
    assert f(value, 3)[2].tolist() == [7, 3, 2] and first.tolist() == [7] and place.tolist() == [3]
    matrix = np.arange(6.0).reshape(3, 2)
    assert graphc.function([X], T.topk(X, 2, axis=0), mode="interpreted")(matrix).tolist() == [[4, 5], [2, 3]]


@pytest.mark.slow
def test_derivatives_go_through_the_permutation() -> None:
    cost = (T.sort(X, axis=0) ** 2 * T.arange(6.0)).sum()
    slope = T.grad(cost, X)
    middle = T.grad(T.median(V), V)
    f = graphc.function([X, V], [slope, T.grad((slope * X).sum(), X), middle])
    value = np.random.default_rng(2).normal(size=(4, 6))
    first, second, shares = f(value, np.array([3.0, 1.0, 2.0, 7.0]))
    np.testing.assert_allclose(first, 2 * value * np.arange(6))
    np.testing.assert_allclose(second, 4 * value * np.arange(6))
    np.testing.assert_array_equal(shares, [0.5, 0, 0.5, 0])


def test_wrong_arguments() -> None:
    with pytest.raises(GraphTypeError, match="a scalar has no axis"):
        T.sort(T.dscalar("s"))
    with pytest.raises(np.exceptions.AxisError, match="sort of x"):
        T.sort(X, axis=2)
    with pytest.raises(GraphTypeError, match="no vector of whole numbers"):
        T.bincount(V)
    with pytest.raises(GraphValueError, match="method 'nearby'"):
        T.quantile(X, 0.5, method="nearby")


@pytest.mark.slow
def test_quantiles_without_nan_and_several_keys() -> None:
    keys = [T.round(X), X]
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        *(("nanmedian", (), {"axis": axis}) for axis in (0, -1, None)),
        *(("nanmedian", (), {"axis": axis, "keepdims": True}) for axis in (0, None)),
        *(("nanpercentile", (30.0,), {"axis": axis}) for axis in (0, None)),
        *(("nanquantile", (PARTS,), {"axis": 1, "method": method, "keepdims": True}) for method in METHODS),
    ]
    outputs = [getattr(T, name)(X, *args, **named) for name, args, named in calls]
    outputs += [T.lexsort(keys), T.lexsort(keys, 0)]
    value = np.array([[3.0, np.nan, 1.0, 2.0], [np.nan] * 4, [1.4, 1.2, np.nan, 0.9]])
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="All-NaN"):
        wanted = [getattr(np, name)(value, *args, **named) for name, args, named in calls]
    finite = np.nan_to_num(value)
    for mode in ("compiled", "interpreted"):
        f = graphc.function([X], outputs, mode)
        for found, want in zip(f(value), wanted, strict=False):
            np.testing.assert_allclose(found, want)
        for found, axis in zip(f(finite)[-2:], (-1, 0), strict=True):
            np.testing.assert_array_equal(found, np.lexsort([np.round(finite), finite], axis=axis))
    with pytest.raises(GraphValueError, match="keys"):
        T.lexsort([])


def test_an_axis_that_the_call_tells() -> None:
    axis = T.scalar("axis")
    for mode in ("compiled", "interpreted"):
        f = graphc.function([X, axis], [T.sort(X, axis), T.argsort(X, axis)], mode)
        value = np.random.default_rng(0).normal(size=(3, 4))
        for place in (0, 1, -1, -2):
            for found, want in zip(f(value, place), (np.sort, np.argsort), strict=True):
                np.testing.assert_array_equal(found, want(value, place))
        with pytest.raises(ShapeError, match="axis"):
            f(value, 2)


@pytest.mark.slow
def test_orders_within_loops_and_branches_call_no_python() -> None:
    c = T.lscalar("c")

    def step(row: Any, total: Any) -> Any:
        return total + T.sort(row) * T.topk(row, 2).sum() + T.argsort(row)

    total = graphc.scan(step, sequences=[X], outputs_info=[T.zeros((5,))])[0][-1]
    chosen = graphc.ifelse(c, T.sort(V), -T.sort(-V))
    f = graphc.function([X, V, c], [total, T.grad(total.sum(), X), chosen])
    assert "callback" not in f.source and "gc_order_sort_float64" in f.source

    def reference(x: Any) -> Any:
        return sum(np.sort(row) * np.sort(row)[-2:].sum() + np.argsort(row) for row in x)

    x = np.random.default_rng(0).normal(size=(4, 5))
    found, gradient, rising = f(x, x[0], 1)
    np.testing.assert_allclose(found, reference(x))
    np.testing.assert_array_equal(rising, np.sort(x[0]))
    np.testing.assert_array_equal(f(x, x[0], 0)[2], np.sort(x[0])[::-1])
    moves = 1e-6 * np.eye(20).reshape(20, 4, 5)
    slopes = [(reference(x + move) - reference(x - move)).sum() / 2e-6 for move in moves]
    np.testing.assert_allclose(gradient.reshape(-1), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_orders_under_transformations() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5))
    found = graphc.vmap(lambda a: (T.sort(a), T.argsort(a), T.topk(a, 2)))(x)
    for got, want in zip(found, (np.sort(x), np.argsort(x), -np.sort(-x)[:, :2]), strict=True):
        np.testing.assert_array_equal(got, want)
    order, weights = np.argsort(x[0]), np.arange(5.0)
    places = np.eye(5)[order]
    np.testing.assert_array_equal(graphc.jacfwd(T.sort)(x[0]), places)
    hessian = graphc.hessian(lambda a: (T.sort(a) ** 3 * weights).sum())(x[0])
    np.testing.assert_allclose(hessian, np.diag(6 * x[0] * np.argsort(order)), atol=1e-12)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_different_slices_along_an_axis(mode: str) -> None:
    axes, rng = (None, 0, 1), np.random.default_rng(0)
    whole = T.lmatrix("whole")
    outputs = [part for axis in axes for part in T.unique(X, True, True, True, axis)]
    f = graphc.function([X, whole], [*outputs, *T.unique(whole, True, True, True, 0), *T.unique_all(X)], mode)
    for shape in ((7, 2), (200, 3), (1, 4), (0, 3), (40, 2)):
        x, numbers = rng.integers(0, 3, shape).astype(float), rng.integers(-2, 2, shape)
        if len(x) == 40:
            x[3:5, 1] = np.nan
        wanted = [part for axis in axes for part in np.unique(x, True, True, True, axis)]
        wanted += [*np.unique(numbers, True, True, True, 0), *np.unique_all(x)]
        for found, want in zip(f(x, numbers), wanted, strict=True):
            np.testing.assert_array_equal(found, want)


@pytest.mark.slow
def test_quantiles_over_several_axes_and_beyond() -> None:
    parts = np.array([[0.0, 0.1], [0.77, 1.0]])
    calls = [
        (name, method, kept) for name in ("quantile", "nanquantile") for method in METHODS for kept in (True, False)
    ]
    outputs = [getattr(T, name)(X, parts, (0, 1), method, kept) for name, method, kept in calls]
    f = graphc.function([X], [*outputs, T.median(X), T.nanmedian(X, 0)], "interpreted")
    x = np.random.default_rng(0).normal(size=(4, 6))
    for value in (x, np.where(x > 1, np.nan, x), x[:1, :1]):
        for (name, method, kept), found in zip(calls, f(value), strict=False):
            want = getattr(np, name)(value, parts, axis=(0, 1), method=method, keepdims=kept)
            np.testing.assert_allclose(found, want, rtol=1e-13, err_msg=f"{name} {method}")
    empty = graphc.function([X], [T.median(X), T.nanmedian(X, 0)])(np.zeros((0, 3)))
    assert np.isnan(empty[0]) and np.isnan(empty[1]).all()
    with pytest.raises(ShapeError, match="between 0 and 1"):
        T.quantile(X, 1.5)
    q = T.dscalar("q")
    g = graphc.function([X, q], T.quantile(X, q), "interpreted")
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(ShapeError, match=r"quantile: the parts q .* must be between 0 and 1"):
            g(x, wrong)


def test_counts_in_boxes() -> None:
    points = T.TensorType("float64", shape=(None, 3))("points")
    cases: list[tuple[Any, dict[str, Any]]] = [
        (10, {}),
        ([3, 4], {}),
        (5, {"range": [[-1, 1], [-2, 2]], "density": True}),
        ([[-1, 0, 0.5], [-1, 0, 1, 2]], {"weights": W}),
        (np.array([-1.0, 0.0, 1.0]), {}),
    ]
    outputs = [part for bins, named in cases for part in T.histogram2d(V, W, bins, **named)]
    found, edges = T.histogramdd(points, (2, 3, 4), weights=V)
    f = graphc.function([V, W, points], [*outputs, found, *edges], "interpreted")
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=100), rng.normal(size=100), rng.normal(size=(100, 3))
    x[5] = 1.0
    wanted = []
    for bins, named in cases:
        given = {**named, "weights": y} if "weights" in named else named
        wanted += [*np.histogram2d(x, y, bins, **given)]
    counts, lines = np.histogramdd(z, (2, 3, 4), weights=x)
    for got, want in zip(f(x, y, z), [*wanted, counts, *lines], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    with pytest.raises(GraphTypeError, match="known number of columns"):
        T.histogramdd(X)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_quantiles_of_infinities_and_of_whole_numbers(mode: str) -> None:
    """A median is the mean of two; what takes an element as it is gives each bit of it."""
    f = graphc.function([V], [T.median(V), T.nanmedian(V), T.quantile(V, 1.0), T.quantile(V, 0.0)], mode)
    inf = np.inf
    for row in ([inf], [1, inf], [-inf, inf], [inf, inf], [-inf, 1], [1, 2, inf], [-1.7e308, 1.7e308], [1.0, np.nan]):
        median, other, most, least = f(row)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal([median, other], [np.median(row), np.nanmedian(row)])
        np.testing.assert_array_equal([most, least], [np.max(row), np.min(row)])
    whole, of = T.lvector("whole"), cast(Any, np.quantile)
    methods = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
    g = graphc.function([whole], [T.quantile(whole, 0.7, method=method) for method in methods], mode)
    big = 2**62 + np.arange(9)
    for method, found in zip(methods, g(big), strict=True):
        want = of(big, 0.7, method=method)
        assert found.dtype == want.dtype and found == want
    with pytest.raises(IndexOutOfBounds, match=r"quantile of whole .*: it has no elements"):
        g(big[:0])


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_edges_of_bins(mode: str) -> None:
    """Edges with NaN, that fall, that are equal; none, numbers that have no range, and edges in no order."""
    inf, nan = np.inf, np.nan
    f = graphc.function([V, W], [T.digitize(V, W), T.digitize(V, W, True)], mode)
    numbers = np.array([inf, 1.0, nan, -3.0, 0.0])
    for edges in ([-inf, 0, 1, inf, nan, nan], [nan, 1.0], [3, 1, 1, 0], [1, 1], [2], [], [-1, 0.0, -0.0, 5]):
        for found, right in zip(f(numbers, edges), (False, True), strict=True):
            np.testing.assert_array_equal(found, np.digitize(numbers, np.array(edges, float), right))
    with pytest.raises(ShapeError, match="digitize: the bins w .*neither rise nor fall"):
        f(numbers, [1.0, 3.0, 2.0])
    first, last = T.dscalars("first", "last")
    g = graphc.function([V], T.histogram(V, 5), mode)
    h = graphc.function([V, W], T.histogram(V, W)[0], mode)
    k = graphc.function([V, first, last], T.histogram(V, 3, (first, last)), mode)
    for given in ([], [1.0], [-2.0, 0.5, 7.0]):
        for found, want in zip(g(given), np.histogram(given, 5), strict=True):
            np.testing.assert_array_equal(found, want)
        for found, want in zip(k(given, 0.0, 6.0), np.histogram(given, 3, (0.0, 6.0)), strict=True):
            np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(h(given, [0.0, 1.0, 9.0]), np.histogram(given, [0.0, 1.0, 9.0])[0])
    for call, values in ((g, ([1.0, nan],)), (g, ([1.0, inf],)), (k, ([1.0], 2.0, 1.0)), (k, ([1.0], 0.0, nan))):
        with pytest.raises(ShapeError, match="histogram of v .*: its range is not finite, or falls"):
            call(*values)
    with pytest.raises(ShapeError, match="histogram: the edges w .*do not rise"):
        h([1.0], [0.0, 2.0, 1.0])


def test_partition_of_a_place_that_is_none() -> None:
    f = graphc.function([X, K], [T.partition(X, K, 1), T.argpartition(X, K, 0), T.partition(X, [0, K], None)])
    x = np.random.default_rng(0).normal(size=(3, 3))
    for place in (-3, 0, 2):
        found, places, flat = f(x, place)
        np.testing.assert_array_equal(found[:, place], np.sort(x, 1)[:, place])
        np.testing.assert_array_equal(np.take_along_axis(x, places, 0)[place], np.sort(x, 0)[place])
        assert flat[place] == np.sort(x, None)[place]
    assert f(np.zeros((0, 0)), 5)[0].shape == (0, 0)
    for place in (-4, 3):
        with pytest.raises(ShapeError, match="partition of x .*: kth k .* is none of its places"):
            f(x, place)
    with pytest.raises(GraphTypeError, match="is no whole number"):
        T.partition(X, 1.5)


# --- running extremes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["interpreted", "python"])
def test_running_extremes_are_numpys_for_every_dtype_axis_and_size(mode: str) -> None:
    """The size of the axis may be open; no call is written out for an element."""
    rng = np.random.default_rng(3)
    for dtype in ("float64", "float32", "int64", "uint8", "bool"):
        x = T.TensorType(dtype, (False, False))("x")
        outputs = [ufunc.accumulate(x, axis) for ufunc in (np.maximum, np.minimum) for axis in (0, 1)]
        f = graphc.function([x], outputs, mode=mode)
        for shape in ((5, 4), (1, 7), (0, 3)):
            given = (5 * rng.normal(size=shape)).astype(dtype)
            if given.size and dtype.startswith("float"):
                given.flat[1] = np.nan
            expected = [ufunc.accumulate(given, axis) for ufunc in (np.maximum, np.minimum) for axis in (0, 1)]
            for found, wanted in zip(f(given), expected, strict=True):
                np.testing.assert_array_equal(found, wanted, strict=True)


def test_the_derivative_of_a_running_maximum_goes_to_what_is_the_largest() -> None:
    x = T.dvector("x")
    slopes = graphc.grad((np.maximum.accumulate(x) * np.arange(6.0)).sum(), x)
    found = graphc.function([x], slopes, mode="interpreted")([1.0, 3.0, 2.0, 3.0, 5.0, 4.0])
    np.testing.assert_array_equal(found, [0, 1 + 2 + 1.5, 0, 1.5, 4 + 5, 0])  # equal ones share what follows
