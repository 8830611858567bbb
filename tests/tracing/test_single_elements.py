"""Programs that write one element after the other: each read sees the last write, and derivatives follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc.errors import GraphcError
from graphc.trees import leaves

X = np.array([0.5, -1.25, 2.0, 0.75])


def table(x: Any) -> Any:
    n = len(x)
    t = np.zeros((n + 1, n + 1))
    for i in range(1, n + 1):
        t[i][0], t[i, -1] = x[i - 1], t[i - 1][0] * 2
        for j in range(1, n):
            t[i, j] = t[i - 1, j] + t[i][j - 1]
        t[i] += t[i - 1].max()
        t[i][1] += 2
        t[i][2] = 7
    return t, t[2], t[1][1], t[n, x.shape[0]]


def elimination(x: Any) -> Any:
    n = x.shape[0]
    a = np.outer(x, x[::-1]) + 5 * np.eye(n)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def views(x: Any) -> Any:
    a = np.zeros(4)
    v, r = a[1:], a[::-1]
    a[1] = x[0]
    s = v[0] + r[2]
    v[0] = 5
    a[2] = x[1]
    b = a.copy()
    b[2] = 3
    a[2] += b[2] + b[1]
    for row in (grid := np.stack([a, b])):
        row[0] = row[1]
    return a, v, r, s, a[1], b, grid


def of_types(x: Any) -> Any:
    whole, short, flags = np.zeros(3, int), np.zeros(2, np.float32), np.zeros(2, bool)
    whole[0], whole[1], whole[2] = x[2] * 1.9, 7.9, x[1]
    whole[1] += whole[0]
    short[0] = x[0]
    before = short[0]
    short[0] = 0.1
    flags[0], flags[1] = x[0] > 0, 3
    return whole, whole[1], short, before, before.dtype == np.float32, flags, flags[0]


def unwritten(x: Any) -> Any:
    a = np.zeros(3)
    a[0] = x[0]
    if a[1] == 0 and not a[2]:
        a[1] = a[0] * 2
    a.shape = (3, 1)
    a[2, 0] += 1
    return a, a[2]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5
@pytest.mark.parametrize("function", [table, elimination, views, of_types, unwritten])
def test_each_read_sees_the_last_write(function: Callable[[Any], Any]) -> None:
    found = leaves(graphc.jit(function, mode="interpreted")(X))
    for got, want in zip(found, leaves(function(X)), strict=True):
        npt.assert_allclose(got, want, rtol=1e-13)
        assert np.asarray(got).dtype == np.asarray(want).dtype


def test_derivatives_follow_the_last_write() -> None:
    def cost(x: Any) -> Any:
        return (elimination(x) ** 2).sum() + table(x)[0][-1].sum()

    slope = graphc.grad(cost, mode="interpreted")(X)
    for k, along in enumerate(np.eye(4)):
        wanted = (cost(X + 1e-6 * along) - cost(X - 1e-6 * along)) / 2e-6
        assert abs(slope[k] - wanted) < 1e-6 * (1 + abs(wanted))  # rounding over the step; its square is nothing


def test_a_table_that_is_read_by_elements_is_in_no_graph() -> None:
    def longest(x: Any) -> Any:
        t = np.zeros((x.shape[0] + 1, 30))
        for i in range(1, t.shape[0]):
            for j in range(30):
                t[i, j] = jnp.maximum(t[i - 1, j], t[i, j - 1] + x[i - 1] if j else 0.0)
        return t[-1, -1]

    text = graphc.jit(longest).lower(X).text
    assert "maximum" in text and "set_subtensor" not in text


@pytest.mark.parametrize("at", [3, -4])
def test_what_is_out_of_bounds_is_refused_as_before(at: int) -> None:
    def read(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x[0]
        return a[at]

    def write(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x[0]
        a[at] = x[0]
        return a[0]

    def of_open_size(x: Any) -> Any:
        a = jnp.zeros(x.shape[0] - 1)
        a[at] = x[0]
        return a[0]

    for function in (read, write, of_open_size):
        with pytest.raises((GraphcError, IndexError), match=r"bounds|before the start"):
            graphc.jit(function, mode="interpreted")(X)
