"""Orders of rows, found by keys: those of NumPy's stable sort, whatever the numbers and the shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.tensor.ranking import first_of_rows, order_columns_into, order_rows, top_of_rows


def arrays(shape: tuple[int, ...]) -> Iterator[Any]:
    """Numbers apart, alike, alike in all but their last digits, special ones, and whole ones of any width."""
    rng = np.random.default_rng(1)
    plain = rng.normal(size=shape)
    special = plain.copy()
    for step, value in ((7, np.nan), (11, -np.nan), (13, -0.0), (14, 0.0), (17, np.inf), (19, -np.inf)):
        special.flat[step % 5 :: step] = value
    near = plain.copy()
    near.flat[::50] = 1.0 + np.arange(near.flat[::50].size) % 5 * 2.2e-16
    yield from (plain, special, near, 1 + 1e-13 * plain, np.round(plain))
    yield from (each.astype(np.float32) for each in (plain, special))
    yield from (rng.integers(low, high, shape) for low, high in ((-(2**63), 2**63 - 1), (-9, 9), (-(2**30), 2**30)))
    yield rng.integers(0, 2**64 - 1, shape, "uint64")
    for dtype in ("uint64", "int32", "uint8", "bool"):
        yield rng.integers(-(2**40), 2**40, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(1,), (5,), (100,), (40_000,), (3, 70), (20, 300), (2, 20_000), (2, 3, 100), (0, 3)])
def test_places_are_those_of_a_stable_sort(shape: tuple[int, ...]) -> None:
    for rows in arrays(shape):
        rising = np.argsort(rows, axis=-1, kind="stable")
        np.testing.assert_array_equal(order_rows(rows), rising)
        falling = shape[-1] - 1 - np.argsort(rows[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        for count in {0, 1, min(5, shape[-1]), shape[-1] // 3, shape[-1]}:
            for sign, order in ((1, falling), (-1, rising)):
                wanted, want = np.full(count, sign), order[..., :count]
                np.testing.assert_array_equal(first_of_rows(rows, wanted), want)
                np.testing.assert_array_equal(top_of_rows(rows, wanted), np.take_along_axis(rows, want, -1))


@pytest.mark.parametrize("shape", [(1, 100, 3), (2, 70, 40), (1, 3, 500), (2, 0, 2), (1, 20_000, 17)])
def test_columns_are_rows_of_their_own(shape: tuple[int, ...]) -> None:
    for x in arrays(shape):
        result = np.empty(shape, np.int64)
        order_columns_into(x, result)
        np.testing.assert_array_equal(result, np.argsort(x, axis=1, kind="stable"))


def test_sorted_along_an_axis_in_the_middle() -> None:
    x, k = T.tensor3("x"), T.lscalar("k")
    weights = T.arange(24.0).reshape((2, 3, 4))
    outputs = [T.sort(x, 1), T.argsort(x, 1), T.grad((T.sort(x, 1) * weights).sum(), x)]
    outputs += [T.topk(x, k, 1), T.argtopk(x, k, 1), T.grad((T.topk(x, k, 1) ** 3).sum(), x)]
    value = np.random.default_rng(0).normal(size=(2, 3, 4))
    order = np.argsort(value, axis=1)
    share = np.empty_like(value)
    np.put_along_axis(share, order, np.arange(24.0).reshape(2, 3, 4), 1)
    for mode in ("compiled", "interpreted", "python"):
        f = graphc.function([x, k], outputs, mode)
        for count in (2, -2):
            ranked, places, by_weight, top, first, by_top = f(value, count)
            np.testing.assert_array_equal(ranked, np.sort(value, axis=1))
            np.testing.assert_array_equal(places, order)
            np.testing.assert_array_equal(by_weight, share)
            want = order[:, ::-1][:, :2] if count > 0 else order[:, :2]
            np.testing.assert_array_equal(first, want)
            np.testing.assert_array_equal(top, np.take_along_axis(value, want, 1))
            cubes = np.zeros_like(value)
            np.put_along_axis(cubes, want, 3 * top**2, 1)
            np.testing.assert_allclose(by_top, cubes)
