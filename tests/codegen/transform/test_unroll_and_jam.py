"""Scatters into a few rows at a time: all numbers of rows, and every bit as one row at a time."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as T

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_rows(dtype: str, threads: int) -> None:
    x, pulls, at = T.matrix("x", dtype=dtype), T.matrix("pulls", dtype=dtype), T.lvector("at")
    slope = graphc.grad((x[:, at] * pulls).sum(), x)
    f = graphc.function([x, pulls, at], slope, threads=threads)
    assert f.source.count("groups") > 1
    rng = np.random.default_rng(3)
    for rows in (*range(10), 2001):
        index = np.array([0, 3, 0, -1, 0, 4, 0, -5, 0])
        values = rng.normal(size=(rows, len(index))).astype(dtype)
        wanted = np.zeros((rows, 5), dtype)
        for place, column in zip(index, values.T, strict=True):  # in the same order
            wanted[:, place] += column
        np.testing.assert_array_equal(f(np.zeros((rows, 5), dtype), values, index), wanted)
