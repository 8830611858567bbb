"""Orders of lines, sorted natively: those of NumPy's stable sort, whatever the numbers, the shapes and the axis.

One compiled function of a dtype computes all of them, for every size.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES
from graphc.codegen import sort as api
from graphc.errors import ShapeError
from graphc.options import options

SHAPES = [(1, 1), (1, 5), (1, 40_000), (3, 70), (20, 300), (2, 20_000), (600, 3), (4096, 17), (0, 3), (3, 0)]
X = {dtype: T.TensorType(dtype, (False, False))("x") for dtype in DTYPES}
K = T.lscalar("k")


def numbers(shape: tuple[int, ...], dtype: str) -> Iterator[NDArray[Any]]:
    """Numbers apart, alike, alike in all but their last digits, special ones, in order, and whole ones of any width."""
    rng = np.random.default_rng(1)
    if dtype.startswith("float"):
        plain = rng.normal(size=shape)
        special = plain.copy()
        for step, value in ((7, np.nan), (11, -np.nan), (13, -0.0), (14, 0.0), (17, np.inf), (19, -np.inf)):
            special.flat[step % 5 :: step] = value
        near = plain.copy()
        near.flat[::50] = 1.0 + np.arange(near.flat[::50].size) % 5 * 2.2e-16
        made = (plain, special, near, 1 + 1e-13 * plain, np.round(plain), np.full(shape, np.nan))
        yield from (each.astype(dtype) for each in made)
    elif dtype == "bool":
        yield rng.random(shape) < 0.5
    else:
        info = np.iinfo(dtype)
        yield rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        yield rng.integers(max(info.min, -9), 9, shape, dtype)
        yield rng.integers(info.max - 2, info.max, shape, dtype, endpoint=True)
    yield np.sort(rng.integers(0, 100, shape).astype(dtype), -1)
    yield np.ones(shape, dtype)


@cache
def function(dtype: str, poison: str = "off") -> Any:
    x = X[dtype]
    outputs = [each for axis in (0, 1) for each in (T.sort(x, axis), T.argsort(x, axis), T.argtopk(x, K, axis))]
    with options.change(poison=poison):
        return graphc.function([x, K], [*outputs, T.topk(x, K, 0), T.topk(x, K, 1)])


def places(x: NDArray[Any], count: int, axis: int) -> NDArray[Any]:
    """Those of the first `count`, by NumPy's stable sort."""
    if count < 0:
        rising: NDArray[Any] = np.argsort(x, axis, kind="stable").take(range(-count), axis)
        return rising
    falling: NDArray[Any] = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis).take(range(count), axis)
    found: NDArray[Any] = x.shape[axis] - 1 - falling
    return found


def check(f: Any, x: NDArray[Any]) -> None:
    least = min(x.shape)
    for count in {1, 5, least // 3, -1, -(least // 2)}:
        if abs(count) > least:
            continue
        *orders, top0, top1 = f(x, count)
        for axis, top in ((0, top0), (1, top1)):
            ranked, order, first = orders[3 * axis : 3 * axis + 3]
            np.testing.assert_array_equal(ranked, np.sort(x, axis))
            np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
            want = places(x, count, axis)
            np.testing.assert_array_equal(first, want)
            np.testing.assert_array_equal(top, np.take_along_axis(x, want, axis))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_orders_are_those_of_a_stable_sort(dtype: str) -> None:
    for shape in SHAPES if dtype in ("float64", "int64") else SHAPES[2:7]:
        for x in numbers(shape, dtype):
            check(function(dtype), x)
            check(function(dtype), np.asfortranarray(x))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "uint64", "int16"])
def test_without_numpys_sorts(dtype: str) -> None:
    f = function(dtype)
    f(np.zeros((2, 2), dtype), 1)
    table = api.order_table()
    known = bytes(table)
    ctypes.memset(table, 0, len(known))
    try:
        for shape in ((3, 70), (2, 3000), (40, 17)):
            for x in numbers(shape, dtype):
                check(f, x)
    finally:
        ctypes.memmove(table, known, len(known))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_nothing_beyond_operands_results_and_workspaces_is_touched(dtype: str) -> None:
    f = function(dtype, "guard")
    for shape in ((1, 300), (3, 70), (5, 17), (600, 3)):
        for x in numbers(shape, dtype):
            check(f, x)


def test_the_sorts_are_numpys_own() -> None:
    """Of every NumPy that is declared; of another interface none is taken."""
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
    for (dtype, what), address in zip(api.ENTRIES, api.order_table(), strict=True):
        assert address
        for x in numbers((200,), dtype) if what == "sort" else ():
            given = x.copy()
            assert sort(address)(given.ctypes.data, given.size, None) == 0
            np.testing.assert_array_equal(given, np.sort(x))


def test_of_another_interface_no_sort_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INTERFACE", "LAST_FEATURES"):
        api._interface.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(api, name, 0)
            assert api._functions_of("float64") == (0, 0)
    api._interface.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(api, "SORT", 0)  # a cast of NumPy's, then what is no function
        patched.setattr(api, "LENGTH", 60)
        assert api._functions_of("float64") == (0, 0)


@pytest.mark.slow
def test_threads_change_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2000))
    outputs = [T.sort(X["float64"], 0), T.argsort(X["float64"], 1), T.argtopk(X["float64"], 7, 1)]
    with options.change(threads=1):
        alone = graphc.function([X["float64"]], outputs)(x)
    with options.change(threads=4):
        shared = graphc.function([X["float64"]], outputs)(x)
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
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
            ranked, found, by_weight, top, first, by_top = f(value, count)
            np.testing.assert_array_equal(ranked, np.sort(value, axis=1))
            np.testing.assert_array_equal(found, order)
            np.testing.assert_array_equal(by_weight, share)
            want = order[:, ::-1][:, :2] if count > 0 else order[:, :2]
            np.testing.assert_array_equal(first, want)
            np.testing.assert_array_equal(top, np.take_along_axis(value, want, 1))
            cubes = np.zeros_like(value)
            np.put_along_axis(cubes, want, 3 * top**2, 1)
            np.testing.assert_allclose(by_top, cubes)


def test_more_than_there_are_is_all_of_them() -> None:
    f = graphc.function([X["float64"], K], T.topk(X["float64"], K, 1))
    assert f(np.ones((2, 3)), 7).shape == f(np.ones((2, 3)), -7).shape == (2, 3)


def test_an_op_that_is_asked_for_too_many_says_so() -> None:
    rows, wanted = X["float64"], T.lvector("wanted")
    f = graphc.function([rows, wanted], graphc.ops.lines.top(rows, wanted))
    with pytest.raises(ShapeError, match="7 of a line of 3 elements are wanted"):
        f(np.ones((2, 3)), np.ones(7, np.int64))


# --- places among sorted elements -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint64", "bool"])
def test_places_among_sorted_elements_are_numpys(dtype: str) -> None:
    """For every count of elements and values, one or all of TOGETHER at once; views of both; NaN after numbers."""
    x, values = (T.TensorType(dtype, (False,))(name) for name in ("x", "values"))
    with options.change(poison="guard"):
        f = graphc.function(
            [x, values],
            [T.searchsorted(x, values), T.searchsorted(x, values, "right"), T.searchsorted(x[::-1][::-1], values[::2])],
        )
    assert "callback" not in f.source
    for elements in numbers((37,), dtype):
        for count in (0, 1, 2, 3, 7, 8, 37):
            ranked = np.sort(elements[:count])
            for wanted in (elements[:0], elements[:3], elements[:9], elements):
                left, right, every_other = f(ranked, wanted)
                np.testing.assert_array_equal(left, np.searchsorted(ranked, wanted))
                np.testing.assert_array_equal(right, np.searchsorted(ranked, wanted, "right"))
                np.testing.assert_array_equal(every_other, np.searchsorted(ranked, wanted[::2]))


def test_a_search_takes_the_dtype_that_holds_both_and_any_rank_of_values() -> None:
    x, values = np.array([1, 2, 4]), np.array([[1.5, 2.0], [0.0, np.nan]])
    found = graphc.function([], [T.searchsorted(x, values), T.searchsorted(x, 2.5)], mode="interpreted")()
    np.testing.assert_array_equal(found[0], np.searchsorted(x, values))
    assert found[1] == 2 and found[1].shape == ()


def test_more_values_are_searched_in_one_call_by_vmap() -> None:
    edges, rows = np.array([0.0, 1.0, 2.0]), np.arange(6.0).reshape(2, 3) / 2
    found = graphc.vmap(lambda row: T.searchsorted(edges, row), mode="interpreted")(rows)
    np.testing.assert_array_equal(found, np.searchsorted(edges, rows))
    many = graphc.vmap(T.searchsorted, mode="interpreted")(rows, rows)
    np.testing.assert_array_equal(many, [np.searchsorted(row, row) for row in rows])
