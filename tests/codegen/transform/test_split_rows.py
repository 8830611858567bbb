"""Repeated and tiled rows, and reshapes of what is not in order: loops along rows, NumPy's numbers for every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp


def long_format(np_: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """What long tables of rows are made of."""
    n, k = y.shape
    person, item = np_.repeat(np_.arange(n), k), np_.tile(np_.arange(k), n)
    eta = y[0][item] * (x[person] - y[0][item])
    return (
        np_.repeat(x, k) * y.reshape(-1),
        np_.tile(y[0], n) + y.reshape(-1),
        y.T.reshape(-1) + 1.0,
        np_.tile(y, (2, 3)),
        np_.repeat(y, k, axis=1),
        np_.sum(eta * y.reshape(-1)),
        np_.concatenate([np_.repeat(x, k), x]),
    )


@pytest.mark.slow
def test_long_tables() -> None:
    f = graphc.jit(lambda x, y: long_format(jnp, x, y))
    g = graphc.jit(graphc.grad(lambda x, y: long_format(jnp, x, y)[5], (0, 1)))
    h = graphc.jit(graphc.grad(lambda x, y: long_format(jnp, x, y)[5], (0, 1)), mode="interpreted")
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (1, 2), (3, 1), (2, 7), (30, 9), (5, 100), (2, 300), (300, 2)):
        x, y = rng.normal(size=shape[0]), rng.normal(size=shape)
        for place, (one, other) in enumerate(zip(f(x, y), long_format(np, x, y), strict=True)):
            if place == 5:
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(one, other)
        for one, other in zip(g(x, y), h(x, y), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_rows_of_no_elements() -> None:
    f = graphc.jit(lambda x, y: jnp.concatenate([jnp.repeat(x, y.shape[1]), jnp.tile(y[0], 3), x]))
    for k in (0, 1, 2, 20):
        x, y = np.arange(4.0), np.arange(4.0 * k).reshape(4, k)
        np.testing.assert_array_equal(f(x, y), np.concatenate([np.repeat(x, k), np.tile(y[0], 3), x]))
