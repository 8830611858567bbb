"""The bounds that results are held to: what rounding does is within them, what a defect does is not."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.tensor as T
from tests.support.bounds import assert_within, evaluate


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_order_of_a_sum_that_cancels_is_within_them_and_a_lost_term_is_not(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = T.vector("x", dtype=dtype)
    total = x.sum() * 3.0 - 1.0
    half = rng.normal(size=120)
    terms = rng.permutation([*half, *(1e-3 * rng.normal(size=16) - half[:16]), *-half[16:]]).astype(dtype)
    ((value, error),) = evaluate([total], {x: terms})
    for order in range(20):
        turned = rng.permutation(terms)
        in_turn = np.add.accumulate(turned)[-1] * terms.dtype.type(3) - terms.dtype.type(1)
        assert abs(in_turn - value) <= error, order
    assert_within([value], [total], {x: terms})
    with pytest.raises(AssertionError, match="may be wrong by"):
        assert_within([value + terms.dtype.type(3) * abs(terms).mean()], [total], {x: terms})


def test_what_operands_are_wrong_by_goes_through_what_is_made_of_them() -> None:
    x, y = T.dvector("x"), T.dmatrix("y")
    near = x.sum() - 1.0
    outputs = [1e3 * near, 1 / near, T.dot(y, y * near), T.cumsum(x * near)[-1], y[:, ::-1].T + near, near.max()]
    values = {x: np.full(10, 0.1) + 1e-12, y: np.eye(4)}
    errors = [error for _, error in evaluate([near, *outputs], values)]
    assert 1e-16 < errors[0] < 1e-14 and errors[1] >= 1e3 * errors[0] * 0.99
    assert errors[2] > 1e18 * errors[0] and errors[3].max() >= errors[0] * 0.99 and errors[4] >= errors[0] * 0.99
    assert errors[5].min() >= errors[0] * 0.99 and errors[6] >= errors[0] * 0.99


def test_what_may_fall_either_way_has_no_bound_and_too_little_is_no_comparison() -> None:
    x = T.dvector("x")
    near = x.sum() - 1.0
    chosen = T.switch(near > 0, x, -x)
    values = {x: np.full(10, 0.1)}
    ((value, error),) = evaluate([chosen], values)
    assert np.all(error >= 0.2)
    assert_within([-value], [chosen], values)
    with pytest.raises(AssertionError, match="hardly anything can be compared"):
        assert_within([np.array(3)], [T.argmax(x * 1.1 + near)], values)


def test_special_values_must_be_the_same() -> None:
    x = T.dmatrix("x")
    outputs = [x.sum(axis=1), T.exp(x).max(axis=0)]
    value = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 1.0], [np.inf, -np.inf, 0.0], [0.5, 0.25, 0.1]])
    with np.errstate(all="ignore"):
        right = [value.sum(axis=1), np.exp(value).max(axis=0)]
        assert_within(right, outputs, {x: value})
        for place, wrong in ((0, 3.0), (1, np.nan), (2, np.inf), (3, np.nan)):
            other = right[0].copy()
            other[place] = wrong
            with pytest.raises(AssertionError):
                assert_within([other, right[1]], outputs, {x: value})
