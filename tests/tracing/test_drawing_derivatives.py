"""Derivatives of functions that draw random numbers from generators outside of them draw in each call, as the same
Python does; what is traced once and computed many times does not draw."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc import lax
from graphc.errors import GradientError, GraphTypeError

SHARED = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


def noisy(x: Any) -> Any:
    return ((x + SHARED.normal(size=3)) ** 2).sum() * SHARED.normal()


def test_each_call_draws() -> None:
    slope, value = graphc.grad(noisy), graphc.value_and_grad(noisy)
    SHARED.bit_generator.state = np.random.default_rng(1).bit_generator.state
    other = np.random.default_rng(1)
    for call in range(3):
        x = np.full(3, float(call))
        moved, scale = x + other.normal(size=3), other.normal()
        npt.assert_allclose(slope(x), 2 * moved * scale)
        moved, scale = x + other.normal(size=3), other.normal()
        npt.assert_allclose(value(x)[0], (moved**2).sum() * scale)
    assert slope.retraced is not None and len(slope.retraced.graphs) == 1


def test_each_generator_draws_once_though_the_function_is_traced_again() -> None:
    rows, old = np.random.RandomState(0), np.random.default_rng(3).normal(size=(20, 2))

    def loss(w: Any, count: int) -> Any:
        for _ in range(count):  # makes count static: the function is traced again
            w = w * rows.rand()
        return (old[rows.randint(0, 20, 4)] @ w).sum()

    slope, other = graphc.grad(loss), np.random.RandomState(0)
    for count in (2, 3):
        scale = np.prod([other.rand() for _ in range(count)])
        npt.assert_allclose(slope(np.ones(2), count), scale * old[other.randint(0, 20, 4)].sum(0))
    wide = graphc.grad(lambda x, y: (x * y * rows.rand(3)).sum())  # x broadcasts
    npt.assert_allclose(wide(np.ones(1), np.ones(3)), [other.rand(3).sum()])
    np.random.seed(4)  # noqa: NPY002
    random.seed(5)
    both = graphc.jacrev(lambda x: x * np.random.rand() * random.random())  # noqa: NPY002
    got = [both(2.0), both(2.0)]
    np.random.seed(4)  # noqa: NPY002
    random.seed(5)
    npt.assert_allclose(got, [np.random.rand() * random.random() for _ in range(2)])  # noqa: NPY002


@pytest.mark.parametrize(
    "refused",
    [
        lambda: graphc.jit(noisy)(np.ones(3)),
        lambda: graphc.jit(graphc.grad(noisy))(np.ones(3)),
        lambda: graphc.grad(graphc.jit(noisy))(np.ones(3)),
        lambda: graphc.grad(lambda x: graphc.vmap(noisy)(x).sum())(np.ones((2, 3))),
        lambda: graphc.grad(lambda x: lax.scan(lambda c, e: (c + e * SHARED.normal(), None), 0.0, x)[0])(np.ones(3)),
        lambda: graphc.grad(lambda x: lax.cond(x > 0, lambda: x * SHARED.normal(), lambda: x))(1.0),
    ],
)
def test_what_is_computed_many_times_does_not_draw(refused: Callable[[], Any]) -> None:
    with pytest.raises(GraphTypeError, match=r"drew random numbers while .* was traced"):
        refused()


def test_gradients_of_one_element() -> None:
    slope = graphc.grad(lambda x: x * x)
    npt.assert_array_equal(slope(np.array([3.0])), [6.0])
    value, row = graphc.value_and_grad(lambda x: (x * x).sum(axis=0, keepdims=True))(np.arange(3.0))
    npt.assert_array_equal(value, [5.0])
    npt.assert_array_equal(row, [0.0, 2.0, 4.0])
    with pytest.raises(GradientError, match="not a floating scalar"):
        slope(np.ones(3))
    npt.assert_array_equal(slope(np.array([4.0])), [8.0])
