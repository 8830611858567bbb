"""Rows of open length, short and long, few and many: reductions along them, against NumPy and the interpreted mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from tests.support.thorough import some

Array = NDArray[Any]
LENGTHS = (1, 2, 3, 5, 8, 13, 16, 17, 24, 25, 48, 49)
COUNTS = (1, 7, 8, 9, 23, 70)


def of_numbers(x: Any) -> list[Any]:
    """Values of rows of any dtype."""
    return [
        x.max(axis=1),
        x.min(axis=1),
        x.argmin(axis=1),
        x.argmax(axis=1),
        T.any(x > 1, axis=1),
        T.all(x > 0, axis=1),
    ]


def of_floats(x: Any) -> list[Any]:
    """Values of rows of floats: some keep a row for themselves."""
    e = T.exp(x - x.max(axis=1, keepdims=True))
    centred = x - x.mean(axis=1, keepdims=True)
    chosen = T.switch(x > 0, x, 0)
    return [
        *(x.sum(axis=1), T.sqrt(T.sqr(centred).mean(axis=1)), chosen.sum(axis=1), (x > 0).sum(axis=1)),
        *(e / e.sum(axis=1, keepdims=True), T.log(e.sum(axis=1)), T.tanh(x).prod(axis=1)),
    ]


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: float) -> Array:
    """Small numbers, some of them equal; of floats some are not finite, with this share."""
    x = rng.integers(0 if dtype[0] in "ub" else -3, 4, shape).astype(dtype)
    if dtype[0] == "f":
        x += (rng.random(shape) < 0.5) * rng.normal(size=shape).astype(dtype)
        for value in (np.nan, np.inf, -np.inf, -0.0):
            x[rng.random(shape) < special] = value
    return x


def compare(make: Callable[[Any], list[Any]], dtype: str, lengths: tuple[int, ...], counts: tuple[int, ...]) -> None:
    x = T.matrix("x", dtype=dtype)
    f, plain = (graphc.function([x], make(x), mode=mode) for mode in ("compiled", "interpreted"))
    rng = np.random.default_rng(1)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for length in lengths:
        for count in counts:
            for special in (0.0, 0.02):
                given = numbers(rng, dtype, (count, length), special)
                with np.errstate(all="ignore"):
                    for got, wanted in zip(f(given), plain(given), strict=True):
                        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{given}")


@pytest.mark.parametrize("dtype", some(["float64", "float32", "int8", "uint16", "int64"], every=5))
def test_extremes_and_their_places(dtype: str) -> None:
    compare(of_numbers, dtype, LENGTHS, COUNTS)


@pytest.mark.parametrize("dtype", some(["float32", "float64"]))
def test_sums_and_what_is_made_of_them(dtype: str) -> None:
    compare(of_floats, dtype, LENGTHS, COUNTS)


@pytest.mark.parametrize("length", some([13, 20, 31], every=2))
def test_rows_of_known_length(length: int) -> None:
    x = T.tensor("float64", (None, length))
    outputs = [*of_numbers(x), *of_floats(x)]
    f, plain = (graphc.function([x], outputs, mode=mode) for mode in ("compiled", "interpreted"))
    rng = np.random.default_rng(1)
    for count in COUNTS:
        for special in (0.0, 0.02):
            given = numbers(rng, "float64", (count, length), special)
            with np.errstate(all="ignore"):
                for got, wanted in zip(f(given), plain(given), strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12, err_msg=f"{given}")


def test_the_mean_of_one_value_for_each_row() -> None:
    x, label = T.dmatrix("x"), T.lvector("label")
    losses = T.logsumexp(x, axis=1) - x[T.arange(x.shape[0]), label]
    outputs = [losses.mean(), T.sqr(x.max(axis=1) - x.min(axis=1)).sum(), losses.max()]
    f, plain = (graphc.function([x, label], outputs, mode=mode) for mode in ("compiled", "interpreted"))
    assert "abreast" in f.source
    rng = np.random.default_rng(1)
    for count in (1, *COUNTS):
        for length in (1, 2, 7, 48, 49, 300):
            given = rng.normal(size=(count, length)), rng.integers(0, length, count)
            for got, wanted in zip(f(*given), plain(*given), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_columns_of_long_rows_are_read_in_order() -> None:
    x, w = T.dmatrix("x"), T.dvector("w")
    squares = sum(T.sqr(x[:, k] - x[:, k][:, None]) for k in range(3))
    force = [(w * (x[:, k] - x[:, k][:, None]) / (1.0 + squares)).sum(axis=1) for k in range(3)]
    outputs = [T.stack(force, axis=1), *graphc.grad(sum(map(T.sum, force)), [x, w])]
    f, plain = (graphc.function([x, w], outputs, mode=mode) for mode in ("compiled", "interpreted"))
    rng = np.random.default_rng(1)
    for shape in ((1, 3), (2, 4), (9, 3), (30, 3), (40, 20)):
        given = rng.normal(size=shape), rng.normal(size=shape[0])
        for got, wanted in zip(f(*given), plain(*given), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


def test_elements_of_a_kept_row_by_computed_places() -> None:
    """The nearest of some points and the furthest: the row of distances stays with the iteration that searches it."""
    x, centres = T.dmatrix("x"), T.dmatrix("centres")
    squares = T.sqr(x.dimshuffle(0, "x", 1) - centres).sum(axis=2)
    rows, which = T.arange(x.shape[0]), squares.argmin(axis=1)
    outputs = [which, squares[rows, which], squares[rows, squares.argmax(axis=1)]]
    f, plain = (graphc.function([x, centres], outputs, mode=mode) for mode in ("compiled", "interpreted"))
    rng = np.random.default_rng(1)
    for count in COUNTS:
        for length in (1, 3, 17, 24, 25):
            given = numbers(rng, "float64", (count, 5), 0.02).round(), numbers(rng, "float64", (length, 5), 0).round()
            with np.errstate(all="ignore"):
                for got, wanted in zip(f(*given), plain(*given), strict=True):
                    np.testing.assert_array_equal(got, wanted, err_msg=f"{given}")


def test_empty_rows_and_no_rows() -> None:
    x = T.dmatrix("x")
    f = graphc.function([x], [x.sum(axis=1), T.any(x > 0, axis=1), x.prod(axis=1)])
    for shape in ((0, 3), (0, 0), (20, 0), (7, 0)):
        total, some, product = f(np.zeros(shape))
        assert total.tolist() == [0.0] * shape[0]
        assert some.tolist() == [False] * shape[0]
        assert product.tolist() == [1.0] * shape[0]


def test_the_nearest_of_some_centres() -> None:
    """A row of distances that each point keeps for itself, and several short sizes."""
    x, c = T.dmatrices("x", "c")
    squares = T.sqr(x[:, None, :] - c[None, :, :]).sum(axis=2)
    f = graphc.function(
        [x, c], [squares.argmin(axis=1), squares.min(axis=1), *graphc.grad(squares.min(axis=1).sum(), [x, c])]
    )
    rng = np.random.default_rng(2)
    for points, centres, axes in (
        (9, 3, 2),
        (40, 16, 5),
        (40, 24, 5),
        (40, 25, 5),
        (300, 4, 80),
        (12, 1, 1),
        (5, 3, 3),
    ):
        given, near = rng.normal(size=(points, axes)), rng.normal(size=(centres, axes))
        apart = ((given[:, None] - near) ** 2).sum(axis=2)
        where = apart.argmin(axis=1)
        slope = 2 * (given - near[where])
        by_centre = np.zeros_like(near)
        np.add.at(by_centre, where, -slope)
        for got, wanted in zip(f(given, near), (where, apart.min(axis=1), slope, by_centre), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_a_row_has_the_same_bits_wherever_it_stands() -> None:
    """The last rows of a loop, some of which are computed twice, are rows like others."""
    x = T.dmatrix("x")
    e = T.exp(x)
    f = graphc.function([x], [x.sum(axis=1), e / e.sum(axis=1, keepdims=True)])
    row = np.random.default_rng(3).normal(size=13)
    for count in (8, 9, 15, 16, 20):
        for value in f(np.tile(row, (count, 1))):
            assert (value == value[0]).all()


def test_lanes_are_written() -> None:
    x = T.dmatrix("x")
    source = graphc.function([x], x.sum(axis=1)).source
    assert "in abreast(begin, end):" in source
