"""Stencils with borders, compiled: what stands between the borders goes by itself, and all are NumPy's to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T

MODES = ("edge", "wrap", "reflect", "symmetric")


def stencil(pad: Any, width: int, x: Any) -> list[Any]:
    """Differences of neighbours in a matrix, `width` apart, in each way to go on at its borders."""
    found = []
    for mode in MODES:
        p = pad(x, width, mode=mode)
        rows, columns = x.shape
        ends = slice(2 * width, 2 * width + rows), slice(2 * width, 2 * width + columns)
        middle = slice(width, width + rows), slice(width, width + columns)
        found.append(p[:rows, middle[1]] - 2.0 * p[ends[0], middle[1]])
        found.append(p[middle[0], :columns] - 3.0 * p[middle[0], ends[1]])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 3])
def test_stencils_over_padded_arrays(width: int) -> None:
    x = T.dmatrix("x")
    made = stencil(T.pad, width, x)
    f = graphc.function([x], made)
    g = graphc.function([x], [graphc.grad((each**2).sum(), x) for each in made[:3]])
    h = graphc.function([x], [graphc.grad((each**2).sum(), x) for each in made[:3]], mode="interpreted")
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (1, 2), (2, 7), (5, 3), (19, 40)):
        value = rng.normal(size=shape)
        for one, other in zip(f(value), stencil(np.pad, width, value), strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(g(value), h(value), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_places_that_users_clamp_and_wrap() -> None:
    x = T.dvector("x")
    n = x.shape[0]
    i = T.arange(n)
    ends = T.switch(i < n - 1, x[T.minimum(i + 1, n - 1)], -7.0) + T.switch(T.eq(i, 0), 5.0, x[i - 1])
    f = graphc.function([x], [x[(i + 2) % n] - x[(i - 1) % n], ends, x[T.clip(i - 20, 0, n - 1)]])
    for size in (1, 2, 3, 16, 17, 18, 50):
        value, at = np.arange(size) ** 1.5, np.arange(size)
        wrapped, chosen, far = f(value)
        np.testing.assert_array_equal(wrapped, value[(at + 2) % size] - value[(at - 1) % size])
        after = np.where(at < size - 1, value[np.minimum(at + 1, size - 1)], -7.0)
        np.testing.assert_array_equal(chosen, after + np.where(at == 0, 5.0, value[at - 1]))
        np.testing.assert_array_equal(far, value[np.clip(at - 20, 0, size - 1)])
