"""Products of a matrix with a vector: the same bits for every number of threads, whatever stands beside a row, and in
every layout what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import runtime
from graphc.ir.node import Node
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within

Array = NDArray[Any]
DTYPES = ("float64", "float32", "int64", "int32")
SHAPES = (
    *((1, 1), (1, 70_000), (70_000, 1), (3, 40_000), (40_000, 3), (300, 500), (9000, 17), (17, 9000), (2000, 130)),
    *((0, 5), (5, 0), (4, 33), (33, 4)),
)
"""Of matrices: pieces of y, parts of the sum, both, neither; short columns, short rows, nothing."""


@pytest.fixture
def from_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions with threads of their own number, which products of any size are worth."""

    def settings(threads: int | str | None, crossover: int) -> NDArray[np.int64]:
        return np.array([threads, 1, 1, 0, 0], np.int64)

    monkeypatch.setattr(runtime, "settings_of", settings)
    monkeypatch.setattr(PROCESS, "products", {})  # which keep their settings


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    values = rng.normal(size=shape)
    return values.astype(dtype) if dtype.startswith("float") else np.asarray(values * 1000).astype(dtype)


def outputs_of(a: Node, x: Node, v: Node, y: Node) -> list[Node]:
    """A matrix and vectors as long as its rows, its columns, its columns."""
    return [a @ x, v @ a, a.T @ v, y + a @ x, 2 * y - 3 * (a @ x)]


@pytest.mark.slow
@pytest.mark.usefixtures("from_little_work")
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_one_thread(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, (x, v, y) = T.matrix("a", dtype=dtype), (T.vector(name, dtype=dtype) for name in "xvy")
    outputs = outputs_of(a, x, v, y)
    functions = [graphc.function([a, x, v, y], outputs, threads=threads) for threads in (1, 2, 3, 7)]
    for m, n in SHAPES:
        values = [drawn(rng, shape, dtype) for shape in ((m, n), (n,), (m,), (m,))]
        results = [function(*values) for function in functions]
        assert_within(results[0], outputs, dict(zip((a, x, v, y), values, strict=True)))
        for other in results[1:]:
            for found, expected in zip(other, results[0], strict=True):
                np.testing.assert_array_equal(found, expected)


PARTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: a[::2],
    "columns": lambda a: a[:, ::3],
    "upwards": lambda a: a[::-1],
    "backwards": lambda a: a[:, ::-1],
    "both ways": lambda a: a[::-1, ::-1],
    "inner": lambda a: a[1:-1, 2:-1],
    "turned": lambda a: a.T[::-1, 1:],
}


@pytest.mark.slow
@pytest.mark.usefixtures("from_little_work")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("part", PARTS)
def test_views_are_read_where_they_stand(part: str, dtype: str) -> None:
    """Also with vectors that are views: backwards, and with steps."""
    rng = np.random.default_rng(1)
    a, x = T.matrix("a", dtype=dtype), T.vector("x", dtype=dtype)
    cut = PARTS[part]
    rows, columns = cut(a).shape[0], cut(a).shape[1]
    outputs = [cut(a) @ x[: 2 * columns : 2], x[:rows] @ cut(a), cut(a) @ x[:columns][::-1]]
    function = graphc.function([a, x], outputs, threads=3)
    for m, n in ((40, 50), (700, 300), (6, 60_000), (60_000, 6)):
        value, vector = drawn(rng, (m, n), dtype), drawn(rng, (2 * max(m, n),), dtype)
        assert_within(function(value, vector), outputs, {a: value, x: vector})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_row_has_the_same_sum_whatever_stands_beside_it(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, x = T.matrix("a", dtype=dtype), T.vector("x", dtype=dtype)
    function = graphc.function([a, x], a @ x)
    for n in (1, 5, 16, 33, 64, 200, 1001):
        value, vector = drawn(rng, (13, n), dtype), drawn(rng, (n,), dtype)
        together = function(value, vector)
        for count in (1, 2, 4, 7):
            for first in range(13 - count):
                rows = np.ascontiguousarray(value[first : first + count])
                np.testing.assert_array_equal(function(rows, vector), together[first : first + count])


@pytest.mark.usefixtures("from_little_work")
def test_what_is_not_a_number_stays_in_its_row_and_column() -> None:
    rng = np.random.default_rng(3)
    a, x, v = T.dmatrix("a"), T.dvector("x"), T.dvector("v")
    function = graphc.function([a, x, v], [a @ x, v @ a], threads=3)
    for special in (np.nan, np.inf, -np.inf):
        value = rng.normal(size=(300, 500))
        value[123, 45] = special
        down, along = function(value, np.zeros(500), np.zeros(300))
        assert np.flatnonzero(np.isnan(down)).tolist() == [123] and np.flatnonzero(np.isnan(along)).tolist() == [45]
        assert not down[:123].any() and not along[46:].any()


@pytest.mark.slow
def test_sums_are_at_least_as_exact_as_those_of_numpy() -> None:
    rng = np.random.default_rng(4)
    a, x, v = T.fmatrix("a"), T.fvector("x"), T.fvector("v")
    function = graphc.function([a, x, v], [a @ x, v @ a])
    value, ones = rng.random(size=(4000, 4000)).astype(np.float32), np.ones(4000, np.float32)
    exact = value.astype(np.float64).sum(1), value.astype(np.float64).sum(0)
    for found, other, wanted in zip(function(value, ones, ones), (value @ ones, ones @ value), exact, strict=True):
        assert abs(found - wanted).max() <= 2 * abs(other - wanted).max()
