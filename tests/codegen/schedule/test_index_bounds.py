"""Bounds of index arrays: what they are, and that an index beyond an axis is an error however it was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.schedule.nodes import Sizing
from graphc.codegen.schedule.ranges import UNKNOWN, bounds_of, in_range
from graphc.errors import IndexOutOfBounds
from graphc.ir import sizes

X, Y, INDEX = T.dvector("x"), T.dvector("y"), T.lvector("i")
N = Y.type.shape[0]
LAST = Y.shape[0] - 1
SIZING = Sizing((), {})


@pytest.mark.parametrize(
    ("index", "bounds"),
    [
        (T.arange(4), (0, 3)),
        (T.arange(Y.shape[0])[::2] + 2, (2, sizes.add(N, 1))),
        (T.clip(INDEX, 1, 5) - 1, (0, 4)),
        (T.maximum(T.minimum(INDEX, LAST), 0), (0, sizes.maximum(sizes.add(N, -1), 0))),
        (T.minimum(INDEX, 3), (None, 3)),
        (T.maximum(INDEX, 3), (3, None)),
        (T.searchsorted(Y, X), (0, N)),
        (T.zeros((3, Y.shape[0])).argmin(axis=1) + 1, (1, N)),
        (Y.argsort(), (0, sizes.add(N, -1))),
        (T.where(INDEX > 0, 7, T.arange(3)), (0, 7)),
        (T.constant([3, -1, 2]), (-1, 3)),
        (INDEX % 7, (0, 6)),
        (INDEX % -7, UNKNOWN),
        (T.arange(Y.shape[0]) // 3, (0, sizes.floor_divide(sizes.add(N, -1), 3))),
        (INDEX // 3, UNKNOWN),
        (T.arange(4) // -2, UNKNOWN),
        (INDEX, UNKNOWN),
        (INDEX + 1, UNKNOWN),
    ],
    ids=str,
)
def test_bounds_follow_from_what_an_index_is_made_of(index: Any, bounds: tuple[Any, Any]) -> None:
    assert bounds_of(index, SIZING) == bounds


def test_what_lies_within_every_axis_needs_no_check() -> None:
    assert in_range(T.arange(Y.shape[0])[::-1], N, SIZING)
    assert in_range(T.constant([-3, 2]), 3, SIZING) and not in_range(T.constant([-4, 2]), 3, SIZING)
    assert in_range(INDEX % 3, 3, SIZING) and not in_range(INDEX % 4, 3, SIZING)
    assert not in_range(T.clip(INDEX, 0, LAST), N, SIZING)  # the axis may be empty


KEPT: dict[str, Callable[..., Any]] = {
    "clipped": lambda i, x, y: T.clip(i, 0, y.shape[0] - 1),
    "one less": lambda i, x, y: T.clip(i, 1, y.shape[0] - 1) - 1,
    "searched": lambda i, x, y: T.minimum(T.searchsorted(x, x), y.shape[0] - 1),
    "by the size of another": lambda i, x, y: T.arange(x.shape[0]) % T.maximum(x.shape[0] // 2, 1),
    "quotients by the size of another": lambda i, x, y: T.arange(3 * x.shape[0]) // x.shape[0],
    "quotients": lambda i, x, y: T.arange(x.shape[0]) // T.maximum(x.shape[0] // 2, 1),
    "places of another": lambda i, x, y: T.arange(x.shape[0]),
}
"""Ways to make an index into y, which lie within it or not by the sizes of x and y."""


def test_an_index_beyond_its_axis_is_an_error_whether_bounds_tell_or_elements() -> None:
    fs = {name: graphc.function([INDEX, X, Y], Y[made(INDEX, X, Y)], mode="python", on_unused_input="ignore")
          for name, made in KEPT.items()}  # fmt: skip
    interpreted = {name: graphc.function([INDEX, X, Y], made(INDEX, X, Y), mode="interpreted", on_unused_input="ignore")
                   for name, made in KEPT.items()}  # fmt: skip
    errors = 0
    for i in ([], [-5, 0, 1, 9]):
        for n in (0, 1, 3, 6):
            for m in (0, 1, 2, 6):
                x, y = np.arange(float(n)), 10 + np.arange(float(m))
                for name, f in fs.items():
                    index = interpreted[name](i, x, y)
                    if ((index >= -m) & (index < m)).all():
                        np.testing.assert_array_equal(f(i, x, y), y[index])
                    else:
                        errors += 1
                        with pytest.raises(IndexOutOfBounds):
                            f(i, x, y)
    assert errors > 20
