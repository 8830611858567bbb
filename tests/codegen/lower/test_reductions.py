"""Sums and extremes of rows that are long, short and awkward: accuracy beside NumPy's, special values, positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc as gc
import graphc.tensor as T
from graphc.tensor import tensor
from tests.support.bounds import assert_within

MODES = ("compiled", "python", "interpreted")
EDGES = (0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000)


def vector(dtype: str) -> Any:
    return tensor(dtype, (None,), "x")


def matrix(dtype: str) -> Any:
    return tensor(dtype, (None, None), "x")


def error(value: float, terms: NDArray[np.float64]) -> float:
    """In units of the last place of the sum of magnitudes."""
    exact = math.fsum(terms.tolist())
    return abs(float(value) - exact) / (np.spacing(np.abs(terms).sum()) or 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 1000, 100_000, 3_000_000])
def test_sums_are_at_least_as_accurate_as_numpys(size: int) -> None:
    """By the mean over many vectors: positive, of both signs, of many magnitudes, and shifted far from 0."""
    rng = np.random.default_rng(size)
    x = vector("float64")
    f = gc.function([x], T.sum(x))
    draws: list[Callable[[], NDArray[np.float64]]] = [
        lambda: rng.uniform(size=size),
        lambda: rng.normal(size=size),
        lambda: rng.normal(size=size) * 10.0 ** rng.integers(-12, 12, size),
        lambda: rng.normal(size=size) + 1e8,
    ]
    for draw in draws:
        vectors = [draw() for _ in range(max(2, min(60, 600_000 // size)))]
        ours = np.mean([error(f(v), v) for v in vectors])
        numpys = np.mean([error(np.sum(v), v) for v in vectors])
        assert ours <= 1.25 * numpys + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("size", [63, 65, 80, 100, 127, 160, 200, 255, 257, 400])
def test_short_sums_of_single_precision_are_at_least_as_accurate_as_numpys(size: int) -> None:
    """By the root of the mean square: errors of a few bits are too coarse to compare otherwise."""
    rng = np.random.default_rng(size)
    x = vector("float32")
    f = gc.function([x], T.sum(x))
    for draw in (rng.random, rng.standard_normal):
        vectors = [draw(size, dtype=np.float32) for _ in range(500)]
        exact = [math.fsum(v.tolist()) for v in vectors]
        ours, numpys = (
            math.sqrt(np.mean([(float(add(v)) - right) ** 2 for v, right in zip(vectors, exact, strict=True)]))
            for add in (f, np.sum)
        )
        assert ours <= 1.2 * numpys


def test_what_additions_round_away_is_not_lost() -> None:
    """Blocks of very different sums: 1e16 and many ones that a plain accumulator would not see."""
    value = np.zeros(256 * 1000)
    value[0] = 1e16
    value[256::256] = 1.0
    x = vector("float64")
    for threads in (1, 2):
        assert gc.function([x], T.sum(x), threads=threads)(value) == math.fsum(value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("special", [[np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [np.nan, np.inf], [1.7e308] * 4])
def test_sums_keep_infinities_and_nan(special: list[float], mode: str) -> None:
    x = vector("float64")
    f = gc.function([x], T.sum(x), mode=mode)
    for place in (0, 100, 300, 700):
        value = np.ones(800)
        value[place : place + len(special)] = special
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(value), np.sum(value))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_sums_of_every_length_over_every_axis(dtype: str, mode: str) -> None:
    rng = np.random.default_rng(1)
    x = matrix(dtype)
    outputs = [x.sum(), x.sum(axis=0), x.sum(axis=1), x.mean(axis=1), T.sum(x * x, axis=1)]
    f = gc.function([x], outputs, mode=mode)
    for length in EDGES if mode == "compiled" else EDGES[::3]:
        for shape in ((3, length), (length, 3)):
            if 0 in shape:
                continue
            value = (rng.normal(size=shape) * 3).astype(dtype)
            wide = value.astype("float64" if dtype.startswith("float") else "int64")
            product = (value * value).astype("float64" if dtype.startswith("float") else "int64")
            expected = [wide.sum(), wide.sum(0), wide.sum(1), wide.mean(1), product.sum(1)]
            assert_within(f(value), outputs, {x: value}, expected)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_extreme_of_every_length_is_found(name: str, dtype: str, mode: str) -> None:
    rng = np.random.default_rng(2)
    x = matrix(dtype)
    function = getattr(T, name)
    f = gc.function([x], [function(x), function(x, axis=0), function(x, axis=1), function(x.T, axis=1)], mode=mode)
    for length in EDGES[1:] if mode == "compiled" else EDGES[1::4]:
        value = rng.integers(0, 4, (3, length)).astype(dtype)  # ties everywhere
        expected = [getattr(np, name)(value), *(getattr(np, name)(value, axis) for axis in (0, 1, 0))]
        for result, right in zip(f(value), expected, strict=True):
            np.testing.assert_array_equal(result, right)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_nan_wins_and_infinities_are_numbers(name: str, mode: str) -> None:
    x = vector("float64")
    f = gc.function([x], getattr(T, name)(x), mode=mode)
    worst = -np.inf if name == "argmax" else np.inf
    for length in (1, 5, 256, 257, 700):
        for place in {0, length // 2, length - 1}:
            for fill, special in ((0.0, np.nan), (worst, np.nan), (worst, worst), (worst, 0.0), (0.0, -worst)):
                value = np.full(length, fill)
                value[place] = special
                value[-1] = special if np.isnan(special) else value[-1]
                assert f(value) == getattr(np, name)(value)


@pytest.mark.slow
def test_a_computed_array_is_searched_in_one_pass() -> None:
    value = np.random.default_rng(3).normal(size=(5, 900))
    x = matrix("float64")
    f = gc.function([x], [T.argmax(T.exp(-(x**2)), axis=1), T.argmin(x * 2 + 1)])
    rows, whole = f(value)
    np.testing.assert_array_equal(rows, np.argmax(np.exp(-(value**2)), axis=1))
    assert whole == np.argmin(value)


def test_sums_are_the_same_again_and_whatever_runs_beside_them() -> None:
    value = np.random.default_rng(4).normal(size=2_000_000)
    x = vector("float64")
    f = gc.function([x], [T.sum(x), T.sum(x * x)], threads=2)
    first = [float(part) for part in f(value)]
    assert all([float(part) for part in f(value)] == first for _ in range(20))


@pytest.mark.slow
def test_sums_over_strided_and_broadcast_operands() -> None:
    rng = np.random.default_rng(5)
    value, row = rng.normal(size=(300, 400)), rng.normal(size=400)
    x, r = matrix("float64"), tensor("float64", (None,), "r")
    outputs = [T.sum(x.T + 0.0), T.sum(x * r), T.sum(x.T * r[:300], axis=1), T.sum(x[::2, 1:])]
    expected = [value.sum(), (value * row).sum(), (value.T * row[:300]).sum(1), value[::2, 1:].sum()]
    assert_within(gc.function([x, r], outputs)(value, row), outputs, {x: value, r: row}, expected)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_sums_down_the_columns_share_one_pass(dtype: str, mode: str) -> None:
    """Of one operand and of another of its sizes, with an extreme, one of them needed by another sum, and an update."""
    rng = np.random.default_rng(6)
    x, y, total = matrix(dtype), tensor(dtype, (None, None), "y"), gc.shared(np.zeros(3, dtype), name="total")
    sums = [T.sum(x, axis=0, dtype=dtype), T.max(x + y, axis=0), T.sum(x * y, axis=0, dtype=dtype)]
    above = T.sum(T.switch(x > sums[0] / 4, x, 0).astype(dtype), axis=0, dtype=dtype)
    f = gc.function([x, y], [*sums, above], updates=[(total, total + sums[0])], mode=mode)
    if mode == "compiled":
        nests = [line for line in str(f.explain()).splitlines() if "column reduction over" in line]
        assert len(nests) == 2
    for rows in (1, 4, 7, 8, 17):
        a, b = ((rng.normal(size=(rows, 3)) * 5).astype(dtype) for _ in range(2))
        sum_x = a.sum(0, dtype=dtype)
        above_x = np.where(a > sum_x / 4, a, 0).astype(dtype).sum(0, dtype=dtype)
        held, expected = total.get_value(), [sum_x, (a + b).max(0), (a * b).sum(0, dtype=dtype), above_x]
        results = [*f(a, b), total.get_value()]
        assert_within(results, f.graph.outputs, {x: a, y: b, total: held}, [*expected, held + sum_x])


# Deviations from the mean in one pass ---------------------------------------------------------------------------------


def variance_error(found: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    """The mean over columns of the relative error, in units of 2**-53."""
    wide = value.astype(np.longdouble)
    exact = np.square(wide - wide.mean(axis=0)).mean(axis=0)
    return float(np.mean(np.abs(found - exact) / exact)) * 2.0**53


@pytest.mark.slow
@pytest.mark.parametrize("rows", [65, 300, 5000])
def test_variances_in_one_pass_are_as_accurate_as_in_two(rows: int) -> None:
    """Far from 0, of any scale, with a trend, and of skewed values; NumPy goes over the rows in the same order."""
    rng = np.random.default_rng(rows)
    x = matrix("float64")
    f = gc.function([x], T.var(x, axis=0))
    assert "deviations_in_one_pass" in str(f.explain())
    shape = rows, 50
    cases = [
        rng.normal(size=shape),
        rng.normal(size=shape) + 1e8,
        rng.normal(size=shape) * 1e-150 - 1e-142,
        rng.normal(size=shape) + np.linspace(1e6, 1e6 + 1e3, rows)[:, None],
        rng.exponential(size=shape) ** 3,
    ]
    for value in cases:
        assert variance_error(f(value), value) <= 3 * variance_error(np.var(value, axis=0), value) + 4


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [100, 2048, 100_000])
def test_variances_lose_no_more_than_four_digits_whatever_the_data(rows: int, dtype: str) -> None:
    """A few elements that are unlike the rest, where the pivot is taken from: the mean of too few lies far away."""
    x = matrix(dtype)
    f = gc.function([x], [T.var(x, axis=0), T.var(x)])
    rng, steps = np.random.default_rng(rows), np.arange(rows) - rows // 2
    for width in (1, 4, 8, 20, rows // 32, rows // 16):
        spike = np.where(np.abs(steps) <= width / 2, 1000.3, 0.001 * rng.normal(size=rows))
        for column in (spike, 100.1 * np.exp(-np.square(steps / width)) + 0.1):
            value = np.stack([column, 1 + column / 3], axis=1).astype(dtype)
            wide = value.astype(np.longdouble)
            exact = wide.var(axis=0), wide.var()
            for found, right, numpys in zip(f(value), exact, (np.var(value, axis=0), np.var(value)), strict=True):
                two_passes = np.abs(numpys - right) + np.finfo(dtype).eps * np.sqrt(rows) * right
                assert np.all(np.abs(found - right) <= 17 * two_passes), width


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_deviations_of_every_length(dtype: str, mode: str) -> None:
    """Down the columns and over all elements, with the mean, of a computed operand, keeping axes, of three axes."""
    rng = np.random.default_rng(7)
    x = matrix(dtype)
    cube = T.stack([x, T.exp(x)])
    outputs = [T.mean(x, 0), T.var(x, 0), T.std(x), T.var(x * x, 0, keepdims=True), T.var(cube, (0, 1)), T.var(x, 1)]
    f = gc.function([x], outputs, mode=mode)
    for shape in ((1, 3), (2, 1), (15, 2), (16, 3), (17, 3), (70, 4), (200, 1), (3, 200)):
        value = (rng.normal(size=shape) + 5).astype(dtype)
        v = value.astype("float64")
        square, both = np.square(value).astype("float64"), np.stack([v, np.exp(v)])
        expected = [v.mean(0), v.var(0), v.std(), square.var(0, keepdims=True), both.var((0, 1)), v.var(1)]
        assert_within(f(value), outputs, {x: value}, expected)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("special", [[np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [1e305], [1e200], [-1e160] * 2])
def test_deviations_keep_infinities_and_nan(special: list[float], mode: str) -> None:
    x = matrix("float64")
    f = gc.function([x], [T.var(x, axis=0), T.var(x)], mode=mode)
    for place in (0, 20, 48, 52, 98):
        value = np.ones((100, 2))
        value[place : place + len(special), 0] = special
        with np.errstate(all="ignore"):
            for result, right in zip(f(value), [np.var(value, axis=0), np.var(value)], strict=True):
                np.testing.assert_allclose(result, right, rtol=1e-12, atol=0)


@pytest.mark.slow
def test_equal_values_deviate_by_nothing() -> None:
    x = matrix("float64")
    f = gc.function([x], [T.std(x, axis=0), T.std(x), T.var(x[:0], axis=0)])
    for number in (0.1, 1e100, -3e-310, 1e8 / 3):
        columns, whole, empty = f(np.full((1000, 3), number))
        assert np.all(columns <= abs(number) * 1e-13)
        assert whole <= abs(number) * 1e-13
        assert np.isnan(empty).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_totals_of_a_matrix_share_one_loop(mode: str) -> None:
    x = matrix("float64")
    outputs = [T.sum(x), T.sum(x * x), T.std(x)]
    f = gc.function([x], outputs, mode=mode)
    assert f.source.count("for block") == 2  # of the pivot, and of all sums
    value = np.random.default_rng(9).normal(size=(70, 41))
    assert_within(f(value), outputs, {x: value}, [value.sum(), (value * value).sum(), value.std()])


# Terms that add up to nothing -----------------------------------------------------------------------------------------


def normalisation_gradient(x: Any, scale: Any, g: Any, axis: int) -> Any:
    """The gradient by x of a normalisation by mean and deviation along an axis."""
    disjoint = x - x.mean(axis=axis, keepdims=True)
    normal = disjoint / T.sqrt(T.sqr(disjoint).mean(axis=axis, keepdims=True) + np.asarray(1e-5, x.dtype)[()])
    return gc.grad((normal * scale * g).sum(), x)


def root_mean_square(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_apart_are_as_accurate_as_together(axis: int, dtype: str) -> None:
    """Rows far from 0, with spikes, nearly constant, and with a cotangent that the deviations cancel."""
    x, g, scale = matrix(dtype), matrix(dtype), matrix(dtype)
    inputs, wanted = [x, scale, g], normalisation_gradient(x, scale, g, axis)
    disjoint = gc.function(inputs, wanted)
    with gc.options.change(excluding=("sum_apart",)):
        together = gc.function(inputs, wanted)
    assert "sum_apart" in str(disjoint.explain())
    rng, shape = np.random.default_rng(axis), (90, 120)
    spikes = rng.normal(size=shape) + 1e4 * (rng.random(shape) < 0.01)
    trend = np.linspace(-1, 1, shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1)) + np.zeros(shape)
    cases = [
        (rng.normal(size=shape), rng.normal(size=shape)),
        (rng.normal(size=shape) + 1000, rng.normal(size=shape) + 50),
        (spikes, rng.exponential(size=shape) ** 3),
        (1 + 1e-3 * rng.normal(size=shape), rng.normal(size=shape)),
        (trend, 1e3 * trend + rng.normal(size=shape)),
        (trend + 7, trend),
    ]
    for value, cotangent in cases:
        a, c = value.astype(dtype), cotangent.astype(dtype)
        b = (1 + rng.random(shape)).astype(dtype)
        w, u, v = (each.astype(np.longdouble) for each in (a, b, c))
        centred = w - w.mean(axis=axis, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=axis, keepdims=True) + np.longdouble(np.asarray(1e-5, dtype)))
        pull = (u * v * centred).mean(axis=axis, keepdims=True) / deviation**2
        exact = (u * v - (u * v).mean(axis=axis, keepdims=True) - centred * pull) / deviation
        # A mean is rounded by as much as its largest term, and so are deviations from it, wherever they stand.
        terms, deviations = abs(u * v), abs(centred) + abs(w)
        pulls = (terms * deviations).mean(axis=axis, keepdims=True) / deviation**2
        sizes = (terms + terms.mean(axis=axis, keepdims=True) + deviations * pulls) / deviation
        errors = [root_mean_square(f(a, b, c) - exact) for f in (disjoint, together)]
        assert errors[0] <= 1.5 * errors[1] + np.finfo(dtype).eps * root_mean_square(sizes), errors


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_apart_keep_what_is_not_finite(axis: int, mode: str) -> None:
    """NaN, infinities, lines of equal elements, and lines of none, beside ordinary ones."""
    x, g, scale = matrix("float64"), matrix("float64"), matrix("float64")
    disjoint = x - x.mean(axis=axis, keepdims=True)
    inverse = 1 / T.sqrt(T.sqr(disjoint).sum(axis=axis, keepdims=True))
    slope = (g * disjoint).sum(axis=axis, keepdims=True) * inverse
    outputs = [(g - slope * disjoint).sum(axis=axis), gc.grad((disjoint * inverse * scale * g).sum(), x)]
    f = gc.function([x, scale, g], outputs, mode=mode)
    with gc.options.change(excluding=("sum_apart",)):
        plain = gc.function([x, scale, g], outputs, mode=mode)
    rng = np.random.default_rng(3)
    for shape in ((6, 7), (1, 3), (3, 1), (0, 3), (3, 0)):
        value, cotangent, factor = (rng.normal(size=shape) for _ in range(3))
        for k, special in enumerate((np.nan, np.inf, -np.inf, 1e200)):
            value[k : k + 1, k : k + 1] = special
        value[4:5], value[:, 4:5] = 2.0, 2.0
        with np.errstate(all="ignore"):
            for found, right in zip(f(value, factor, cotangent), plain(value, factor, cotangent), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-13)


# Columns on threads ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_are_the_same_for_any_number_of_threads() -> None:
    """Threads take other columns where there are more of them."""
    x = matrix("float64")
    value = np.random.default_rng(4).normal(size=(400, 2500)) + 3
    outputs = [T.mean(x, axis=0), T.var(x, axis=0), T.max(x, axis=0), T.sum(T.exp(x), axis=0)]
    plain = gc.function([x], outputs, threads=1)(value)
    for threads in (2, 3, 7):
        for found, right in zip(gc.function([x], outputs, threads=threads)(value), plain, strict=True):
            np.testing.assert_array_equal(found, right)
