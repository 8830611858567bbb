"""Joins along an axis that a call says."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as T

A, B = np.arange(6.0).reshape(2, 3), np.ones((2, 3))


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_an_axis_of_a_call(mode: str) -> None:
    k, a, b = T.lscalar("k"), T.dmatrix("a"), T.dmatrix("b")
    joined = T.join(k, a, b)
    f = graphc.function([k, a, b], [joined, graphc.grad((joined**2).sum(), a)], mode=mode)
    for axis in (0, 1, -1, -2):
        value, slope = f(axis, A, B)
        np.testing.assert_array_equal(value, np.concatenate([A, B], axis))
        np.testing.assert_array_equal(slope, 2 * A)
    for axis in (2, -3):
        with pytest.raises(IndexError, match=r"k \(.*\) is none of the axes that can be, 0, 1"):
            f(axis, A, B)
    assert f(0, A, np.ones((1, 3)))[0].shape == (3, 3)
    with pytest.raises(ValueError, match="sizes 2 and 1"):
        f(1, A, np.ones((1, 3)))


def test_axes_that_the_types_leave() -> None:
    """Where sizes are known to differ, arrays can be joined along one axis only."""
    k, a, b = T.iscalar("k"), T.tensor("float64", (2, 3), "a"), T.tensor("float64", (4, 3), "b")
    joined = T.concatenate([a, b], k)
    assert joined.type.shape == (6, 3)
    f = graphc.function([k, a, b], joined, mode="interpreted")
    assert f(-2, A, np.ones((4, 3))).shape == (6, 3)
    with pytest.raises(IndexError, match="none of the axes that can be, 0"):
        f(1, A, np.ones((4, 3)))
