"""Running sums and products and linear recurrences: every mode against NumPy, derivatives where elements are 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
import graphc.tensor as T
from graphc.ops.recur import linear_recurrence, running_prod, running_sum
from graphc.tensor import tensor

MODES = ("compiled", "python", "interpreted")
SHAPES = ((5,), (3, 4), (2, 3, 4), (0, 4), (3, 0), (1, 1), (17, 33))


def run(outputs: Any, inputs: list[Any], values: list[Any], mode: str) -> Any:
    return gc.function(inputs, outputs, mode=mode)(*values)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_reductions_are_numpys_along_every_axis(name: str, dtype: str, mode: str) -> None:
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        value = (rng.normal(size=shape) * 2).astype(dtype)
        x = tensor(dtype, (None,) * len(shape), "x")
        for axis in (*range(-len(shape), len(shape)), None):
            result = run(getattr(T, name)(x, axis), [x], [value], mode)
            assert result.dtype == getattr(np, name)(value, axis).dtype
            wide = value.astype("float64") if dtype == "float32" else value
            np.testing.assert_allclose(result, getattr(np, name)(wide, axis), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_backwards_is_forwards_of_the_reversed(axis: int, mode: str) -> None:
    value = np.random.default_rng(4).normal(size=(3, 4, 5))
    x = tensor("float64", (None,) * 3, "x")
    turned = np.flip(np.cumsum(np.flip(value, axis), axis), axis)
    np.testing.assert_allclose(run(running_sum(x, axis, reverse=True), [x], [value], mode), turned, rtol=1e-12)
    turned = np.flip(np.cumprod(np.flip(value, axis), axis), axis)
    np.testing.assert_allclose(run(running_prod(x, axis, reverse=True), [x], [value], mode), turned, rtol=1e-12)


def recurrence(a: Any, b: Any, form: str) -> Any:
    """The recurrence along axis 0, one element at a time."""
    h = np.zeros((len(b) + 1, *b.shape[1:]))
    for iteration in range(len(b)):
        factor = a[iteration] if form != "late" else a[iteration - 1] if iteration else 0.0
        h[iteration + 1] = factor * h[iteration] + b[iteration]
    return h[:-1] if form == "before" else h[1:]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["own", "before", "late"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_linear_recurrences_are_what_their_definition_says(axis: int, reverse: bool, form: str, mode: str) -> None:
    rng = np.random.default_rng(5)
    values = [rng.normal(size=(6, 7)) for _ in range(2)]
    a, b = (tensor("float64", (None, None), name) for name in "ab")
    a_ahead, b_ahead = (np.moveaxis(value, axis, 0)[:: -1 if reverse else 1] for value in values)
    expected = np.moveaxis(recurrence(a_ahead, b_ahead, form)[:: -1 if reverse else 1], 0, axis)
    result = run(linear_recurrence(a, b, axis, reverse, form), [a, b], values, mode)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_derivatives_of_products_are_exact_where_elements_are_zero(mode: str) -> None:
    x = tensor("float64", (None,), "x")
    for value in ([2.0, 3.0, 5.0], [2.0, 0.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [7.0], []):
        array = np.array(value)
        n = len(array)
        gradient = gc.grad(T.prod(x), x)
        others = [np.prod(np.delete(array, i)) for i in range(n)]
        assert run(gradient, [x], [array], mode).tolist() == others
        second = run(gc.grad(T.sum(gradient), x), [x], [array], mode)
        pairs = [sum(np.prod(np.delete(array, [i, j])) for j in range(n) if j != i) for i in range(n)]
        assert second.tolist() == pairs
        running = run(gc.grad(T.sum(T.cumprod(x)), x), [x], [array], mode)
        expected = [sum(np.prod(np.delete(array[: k + 1], i)) for k in range(i, n)) for i in range(n)]
        assert running.tolist() == expected


@pytest.mark.slow
def test_work_is_linear() -> None:
    """A million elements: quadratic work or memory would not end."""
    value = np.random.default_rng(6).uniform(0.999, 1.001, 1_000_000)
    x = tensor("float64", (None,), "x")
    sums, gradient = gc.function([x], [T.cumsum(x), gc.grad(T.prod(x), x)])(value)
    np.testing.assert_allclose(sums, np.cumsum(value), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.prod(value) / value, rtol=1e-8)


@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_and_nan_flow_on(axis: int) -> None:
    value = np.array([[1.0, np.inf, 2.0], [np.nan, 1.0, -np.inf], [3.0, 4.0, 5.0]])
    x = tensor("float64", (None, None), "x")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(T.cumsum(x, axis), [x], [value], "compiled"), np.cumsum(value, axis))


@pytest.mark.slow
def test_an_update_may_be_a_running_sum_of_itself() -> None:
    for axis in (0, 1):
        w = gc.shared(np.arange(12.0).reshape(3, 4), name="w")
        step = gc.function([], w.sum(), updates=[(w, T.cumsum(w, axis))])
        before = w.get_value()
        assert step() == before.sum()
        np.testing.assert_array_equal(w.get_value(), np.cumsum(before, axis))


@pytest.mark.parametrize("shape", [(3, 1), (1, 4), (1, 1)])
def test_axes_of_static_size_one(shape: tuple[int, int]) -> None:
    value = np.random.default_rng(7).normal(size=shape)
    x = tensor("float64", shape, "x")
    for axis in (0, 1):
        np.testing.assert_allclose(run(T.cumprod(x, axis), [x], [value], "compiled"), np.cumprod(value, axis))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
def test_slopes_of_products_in_single_precision(mode: str) -> None:
    """Products of all elements before and after one, carried in float64: rounded to float32 a few times, however many
    factors there are."""
    x = T.fmatrix("x")
    f = gc.function([x], gc.grad(T.prod(x, axis=1).sum(), x), mode=mode)
    value = np.random.default_rng(0).uniform(0.5, 2.0, (3, 12)).astype("float32")
    value[1, 4] = 0.0
    wide = value.astype("float64")
    others = np.stack([np.delete(wide, place, axis=1).prod(axis=1) for place in range(12)], axis=1)
    slopes = f(value)
    assert slopes.dtype == "float32"
    np.testing.assert_allclose(slopes, others, rtol=4 * float(np.finfo("float32").eps), atol=0)
