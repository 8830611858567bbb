"""Searches over functions that take data from around them: one trace for all data, and the values of the newest."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc.scipy import optimize
from graphc.scipy.optimize.kernels import OBJECTIVES
from graphc.tracing.identity import closed, identity

DATA = np.ones(3)
SHIFT = 0.0


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    """What is traced is the point here."""
    with graphc.options.change(mode="interpreted"):
        yield


def square(x: Any) -> Any:
    return (x - DATA) ** 2


def by_cell(data: Any, shift: Any) -> Callable[..., Any]:
    return lambda p: jnp.sum((p - data - shift) ** 2)


def by_helper(data: Any, shift: Any) -> Callable[..., Any]:
    def inner(p: Any, n: int) -> Any:
        return inner(p, n - 1) if n else jnp.sum((p - data) ** 2)

    return lambda p: inner(p - shift, 2)


def by_partial(data: Any, shift: Any) -> Callable[..., Any]:
    return partial(lambda data, p, shift: jnp.sum((p - data - shift) ** 2), data, shift=shift)


def by_default(data: Any, shift: Any) -> Callable[..., Any]:
    return lambda p, data=data, *, shift=shift: jnp.sum((p - data - shift) ** 2)


def by_global(data: Any, shift: Any) -> Callable[..., Any]:
    globals().update(DATA=data, SHIFT=shift)
    return lambda p: jnp.sum(square(p - SHIFT))


def by_pair(data: Any, shift: Any) -> Callable[..., Any]:
    pair = data, (data, shift)
    return lambda p: jnp.sum((p - pair[0]) * (p - pair[1][0]) - 2 * pair[1][1] * (p - pair[0]) + pair[1][1] ** 2)


WAYS = by_cell, by_helper, by_partial, by_default, by_global, by_pair


@pytest.mark.parametrize("way", WAYS)
def test_new_data_trace_nothing(way: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[Any] = []
    build = OBJECTIVES.function

    def counted(*given: Any) -> Any:
        traces.append(given)
        return build(*given)

    monkeypatch.setattr(OBJECTIVES, "function", counted)
    OBJECTIVES.opening.clear()
    for number, size in enumerate((3, 3, 5, 3)):
        data = np.arange(size) + 10.0 * number
        found = optimize.minimize(way(data, 0.25 * number), np.zeros(size))
        np.testing.assert_allclose(found.x, data + 0.25 * number, atol=1e-5)
    assert len(traces) == 2, "once, and once more as the shift has changed"


def test_a_function_that_needs_values_gets_them() -> None:
    def cost(y: Any, k: Any, weight: float) -> Callable[..., Any]:
        def call(p: Any) -> Any:
            sign = 1.0 if y.sum() > 0 else -1.0
            inner = np.linalg.inv(k) @ y
            heavy = 2.0 if weight > 1 else 1.0
            return jnp.sum(heavy * (p - sign * inner) ** 2 + (p[y > 0] ** 2).sum())

        return call

    k = np.diag([2.0, 4.0])
    for y, weight in ((np.array([2.0, 4.0]), 1.0), (np.array([-6.0, 4.0]), 1.0), (np.array([2.0, 4.0]), 3.0)):
        inner = (1.0 if y.sum() > 0 else -1.0) * y / [2, 4]
        heavy, held = (2.0 if weight > 1 else 1.0), 2 * (y > 0)
        exact = heavy * inner / (heavy + held)
        np.testing.assert_allclose(optimize.minimize(cost(y, k, weight), np.zeros(2)).x, exact, atol=1e-5)


def test_work_on_data_alone_is_done_once() -> None:
    def cost(x: Any) -> Callable[..., Any]:
        return lambda p: jnp.sum((p - np.exp(x)) ** 2)

    OBJECTIVES.refused.clear()
    for x in (np.zeros(2), np.ones(2)):
        np.testing.assert_allclose(optimize.minimize(cost(x), np.zeros(2)).x, np.exp(x), atol=1e-5)
    assert len(OBJECTIVES.refused) == 1


def test_what_a_function_writes_around_it_is_written() -> None:
    count = 0
    x = np.ones(2)

    def cost(p: Any) -> Any:
        nonlocal count
        count += 1
        return jnp.sum((p - x) ** 2)

    optimize.minimize(cost, np.zeros(2))
    assert count and closed(cost) is None


def test_arrays_of_numbers_choose_elements() -> None:
    def cost(groups: Any, y: Any) -> Callable[..., Any]:
        return lambda p: jnp.sum((p[groups] - y) ** 2)

    y = np.array([1.0, 2.0, 3.0, 4.0])
    for groups in (np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])):
        exact = [y[groups == place].mean() for place in (0, 1)]
        np.testing.assert_allclose(optimize.minimize(cost(groups, y), np.zeros(2)).x, exact, atol=1e-5)


def test_keys_tell_functions_apart() -> None:
    x, y = np.ones(3), np.zeros(3)

    def pair(a: Any, b: Any) -> Callable[..., Any]:
        return lambda p: a + b + p

    def key(function: Any) -> Any:
        found = closed(function)
        return None if found is None else found.key

    keys = [key(pair(a, b)) for a, b in ((x, y), (y, x), (x, x), (x, 1.0), (x, 1), (x, np.float32(1)))]
    assert keys[0] == keys[1] and len(set(keys)) == 5
    assert identity(pair(x, y)) is None and identity(pair(1.0, 2.0)) != identity(pair(1.0, 3.0))
    assert closed(pair([x], y)) is None, "a list may have other elements tomorrow"
    found = closed(pair(x, 2.0))
    assert found is not None
    opened = found.opened([y], [5.0])
    np.testing.assert_array_equal(opened(1.0), [6.0, 6.0, 6.0])


def test_what_is_compiled_for_a_search_has_its_weak_references() -> None:
    """A class of the compiler's without a place for an entry point: none may be written into its objects."""
    with graphc.options.change(mode="compiled"):
        found = optimize.minimize(by_cell(DATA, 0.0), np.zeros(3))
        assert found.success
        for kept in tuple(OBJECTIVES.opening.values()):
            place = id(kept) + type(kept).__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
            assert not ctypes.c_void_p.from_address(place).value
            assert weakref.ref(kept)() is kept
