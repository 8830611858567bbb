"""Numbers of segments: loops over positions become loops over segments, and are what the interpreter computes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import FLOATS
from graphc.ir import sizes
from graphc.ir.node import Node
from graphc.ops.shape import broadcast_to
from graphc.ops.windows import ascending, segment_of, segment_sum

STARTS = ([0], [0, 0], [0, 1], [0, 5], [0, 0, 2, 2, 5, 5], [0, 3, 4, 40])


def _numbers(starts: Node, x: Node) -> Node:
    count = x.type.shape[0]
    return segment_of(ascending(starts, count, "starts"), count)


USES: dict[str, tuple[Callable[..., Any], bool]] = {  # and whether the loop that needs them goes over segments
    "numbers": (lambda n, x, y, z: n, True),
    "looked up": (lambda n, x, y, z: y[n] * x, True),
    "rows": (lambda n, x, y, z: z[n] * x[:, None], True),
    "sums of rows": (lambda n, x, y, z: (z[n] * z[n] + x[:, None]).sum(1), True),
    "scattered": (lambda n, x, y, z: T.inc_subtensor(T.zeros_like(y)[n[::-1]], y[n] * x), False),
    "scattered rows": (lambda n, x, y, z: T.inc_subtensor(z[n], z[n] * x[:, None]), True),
    "backwards": (lambda n, x, y, z: y[n[::-1]] * x, False),
    "all": (lambda n, x, y, z: (y[n] * x).sum(), False),
    "a part": (lambda n, x, y, z: n[:1] + T.cast(x[:1], "int64"), False),
    "transposed": (lambda n, x, y, z: z.T[:, n] * x, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("use", USES)
def test_uses_of_numbers_of_segments(use: str, dtype: str) -> None:
    build, is_inside = USES[use]
    starts, x, y, z = T.ivector("starts"), T.vector("x", dtype), T.vector("y", dtype), T.matrix("z", dtype)
    count = sizes.subtract(starts.type.shape[0], 1)
    held = broadcast_to(y, (count,)), broadcast_to(z, (count, z.type.shape[1]))
    result = build(_numbers(starts, x), x, *held)
    given = [starts, x, y, z]
    compiled, interpreted = (
        graphc.function(given, result, mode=mode, on_unused_input="ignore") for mode in ("compiled", "interpreted")
    )
    assert ("numbers of segments" not in compiled.explain()) == is_inside
    rng = np.random.default_rng(0)
    for begins in STARTS:
        if use == "all" or begins[-1]:
            count, number = begins[-1], len(begins) - 1
            arrays = [rng.integers(-9, 9, shape).astype(dtype) for shape in (count, number, (number, 3))]
            values = np.array(begins, "int32"), *arrays
            np.testing.assert_array_equal(compiled(*values), interpreted(*values))


@pytest.mark.slow
@pytest.mark.parametrize("begins", [[1, 2], [0, 2, 1, 3], [0, 2], [0, 4], [-1, 3]])
def test_starts_are_checked(begins: list[int]) -> None:
    starts, x = T.ivector("starts"), T.dvector("x")
    f = graphc.function([starts, x], _numbers(starts, x))
    np.testing.assert_array_equal(f(np.array([0, 1, 3], "int32"), np.zeros(3)), [0, 1, 1])
    with pytest.raises(IndexError, match="do not ascend from 0"):
        f(np.array(begins, "int32"), np.zeros(3))


@pytest.mark.slow
def test_two_matrices_of_as_many_entries() -> None:
    """One loop goes over the segments of one matrix: the numbers of the other are in memory."""
    first, second, x, y = T.ivector("first"), T.ivector("second"), T.dvector("x"), T.dvector("y")
    f = graphc.function([first, second, x, y], y[_numbers(first, x)] - x * y[_numbers(second, x)])
    one, other, values = np.array([0, 1, 4], "int32"), np.array([0, 3, 3, 4], "int32"), np.array([5.0, 7.0, 11.0])
    np.testing.assert_array_equal(f(one, other, np.arange(4.0), values), [5.0, 2.0, -3.0, -26.0])


@pytest.mark.slow
def test_scatter_into_what_is_computed_by_segments() -> None:
    """The base and what is added to it both know their segments; the base is written before."""
    starts, x, y, at = T.ivector("starts"), T.dvector("x"), T.dvector("y"), T.lvector("at")
    numbers = _numbers(starts, x)
    f = graphc.function([starts, x, y, at], T.inc_subtensor((y[numbers] + x)[at], y[numbers] * x))
    values = np.array([0, 0, 3], "int32"), np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([2, 2, 0])
    np.testing.assert_array_equal(f(*values), [81.0, 22.0, 83.0])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_sums_of_integers(dtype: str) -> None:
    """Short segments and long ones, whose terms follow one another in memory or are looked up."""
    starts, at, x = T.ivector("starts"), T.lvector("at"), T.vector("x", dtype)
    checked = ascending(starts, x.type.shape[0], "starts")
    inputs, sums = [starts, at, x], [segment_sum(x, checked), segment_sum(x[at], checked)]
    begins, places = np.array([0, 0, 3, 43], "int32"), np.arange(43)[::-1].copy()
    values = np.arange(43).astype(dtype)
    wanted = [[each[a:b].sum() for a, b in pairwise(begins)] for each in (values, values[places])]
    for mode in ("compiled", "interpreted"):
        np.testing.assert_array_equal(graphc.function(inputs, sums, mode=mode)(begins, places, values), wanted)
