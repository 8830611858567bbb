"""Indices that are known to lie within an axis are not checked; all others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import IndexOutOfBounds
from tests.support.generated import code

WITHIN = [
    lambda k: k % 8, lambda k: T.clip(k, 0, 7), lambda k: T.clip(k, 2, 5) + k % 3,
]  # fmt: skip
OUTSIDE = [
    lambda k: k % 9, lambda k: T.clip(k, 0, 8), lambda k: T.clip(k, -9, 7), lambda k: k % 8 + k % 2,
    lambda k: -(k % 8) - 1,
    lambda k: k % -9, lambda k: T.clip(k, 8, 3) + 5,
]  # fmt: skip


def gathered(of: Any, mode: str) -> Any:
    x, k = T.TensorType("float64", shape=(8,))("x"), T.lvector("k")
    return graphc.function([x, k], [x[of(k)], T.inc_subtensor(x[of(k)], 1.0)], mode=mode)


@pytest.mark.parametrize("of", WITHIN)
def test_known_ranges_are_not_checked(of: Any) -> None:
    f, g = gathered(of, "python"), gathered(of, "interpreted")
    assert "furthest" not in code(f.source)
    x, k = np.arange(8.0), np.arange(-20, 21)
    for got, want in zip(f(x, k), g(x, k), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("of", OUTSIDE)
def test_others_are_checked(of: Any) -> None:
    x, k = np.arange(8.0), np.arange(-20, 21)
    outcomes = []
    for mode in ("python", "interpreted"):
        try:
            outcomes.append([each.tolist() for each in gathered(of, mode)(x, k)])
        except IndexOutOfBounds:
            outcomes.append([])
    assert outcomes[0] == outcomes[1]
    assert "furthest" in code(gathered(of, "python").source)
