"""Short axes of a first call: fixed where another axis is long, open for all later calls of other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc.tracing.variants import short_axes

RNG = np.random.default_rng(3)


def nearest(x: Any, centres: Any) -> Any:
    return jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, axis=2), axis=1)


def by_numpy(x: Any, centres: Any) -> Any:
    return np.argmin(np.sum((x[:, None] - centres) ** 2, axis=2), axis=1)


@pytest.mark.parametrize(
    ("shapes", "fixed"),
    [
        ([(5000, 3), (10, 3)], {(0, 1, 3), (1, 0, 10), (1, 1, 3)}),
        ([(3,), (3, 3)], set()),  # nothing is long
        ([(1000,), ()], set()),
        ([(1000, 1), (1,)], set()),  # an axis of one element is not fixed: it might have to broadcast
        ([(1000, 17)], set()),
        ([(16, 784), (16,), (784, 10)], {(2, 1, 10)}),  # 16 counts rows
        ([(4, 4), (500, 2)], {(0, 0, 4), (0, 1, 4), (1, 1, 2)}),
    ],
)
def test_axes(shapes: list[tuple[int, ...]], fixed: set[tuple[int, int, int]]) -> None:
    assert short_axes([np.ones(shape) for shape in shapes]) == fixed


def test_values_that_are_no_arrays_have_no_axes() -> None:
    assert short_axes([2.0, np.float32, None, np.ones((100, 2))]) == {(3, 1, 2)}


def test_compiled_at_most_twice() -> None:
    find = graphc.jit(nearest, short_axes=True)
    x, centres = RNG.normal(size=(300, 3)), RNG.normal(size=(10, 3))
    calls = [
        (x, centres),
        (x[:5], centres),
        (x, centres[:7]),
        (x[:, :2], centres[:3, :2]),
        (x[:0], centres),
        (x, centres),
    ]
    for arguments in calls:
        np.testing.assert_array_equal(find(*arguments), by_numpy(*arguments))
    first, second = find.variants()
    assert first.guards == ["x.shape[1] == 3", "centres.shape[0] == 10", "centres.shape[1] == 3"]
    assert second.guards == []


def test_a_question_is_a_guard_of_its_own() -> None:
    find = graphc.jit(lambda x: x.sum(axis=1) if x.shape[0] > 100 else x.max(axis=1), short_axes=True)
    for rows, columns in ((200, 3), (70, 3), (200, 4), (70, 4), (70, 5)):
        x = RNG.normal(size=(rows, columns))
        np.testing.assert_allclose(find(x), x.sum(axis=1) if rows > 100 else x.max(axis=1), rtol=1e-14)
    assert len(find.functions) == 4  # for either answer one of three columns and one of any number


def test_a_loaded_function_takes_other_sizes(tmp_path: Path) -> None:
    find = graphc.jit(nearest, mode="interpreted", short_axes=True)
    x, centres = RNG.normal(size=(300, 3)), RNG.normal(size=(10, 3))
    find(x, centres)
    assert len(find.functions) == 1
    for _ in range(2):
        find.save(tmp_path / "find.graphc")
        assert len(find.functions) == 2
    loaded = graphc.load(tmp_path / "find.graphc")
    for arguments in ((x, centres), (x[:, :2], centres[:4, :2])):
        np.testing.assert_array_equal(loaded(*arguments), by_numpy(*arguments))


def test_functions_that_are_asked_for_serve_all_sizes() -> None:
    find = graphc.jit(nearest, mode="interpreted", short_axes=True)
    x, centres = RNG.normal(size=(300, 3)), RNG.normal(size=(10, 3))
    function = find.function_for(x, centres)
    np.testing.assert_array_equal(function(x[:, :2], centres[:4, :2]), by_numpy(x[:, :2], centres[:4, :2]))
    find(x, centres)
    assert find.functions == [function]
