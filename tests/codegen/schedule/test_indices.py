"""Which index arrays are known to lie within an axis: their elements are not checked at run time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.schedule.nodes import size_up
from graphc.codegen.schedule.ranges import in_range
from graphc.ir import sizes
from graphc.ir.node import Node, Size
from graphc.ir.walk import as_size_node

X = T.dmatrix("x")
ROWS, COLUMNS = X.type.shape

KNOWN: dict[str, tuple[Callable[[], Node], Size]] = {
    "a range over the axis": (lambda: T.arange(X.shape[0]), ROWS),
    "the same, of more axes": (lambda: T.arange(X.shape[0])[:, None], ROWS),
    "the same, in a wider dtype": (lambda: T.cast(T.cast(T.arange(X.shape[0]), "int64"), "int64"), ROWS),
    "constants": (lambda: T.constant([-3, 0, 2]), 3),
    "sums of positions and sizes": (
        lambda: (T.arange(X.shape[0])[:, None] + T.arange(X.shape[1])) + X.shape[0],
        sizes.add(sizes.add(sizes.add(ROWS, ROWS), COLUMNS), -1),
    ),
    "positions beyond the first": (lambda: T.arange(X.shape[0]) + 1, sizes.add(ROWS, 1)),
    "no constants": (lambda: T.constant([0][:0]), 0),
}
UNKNOWN: dict[str, tuple[Callable[[], Node], Size]] = {
    "a range over another axis": (lambda: T.arange(X.shape[1]), ROWS),
    "a range of a known length": (lambda: T.arange(3), ROWS),
    "an argument": (lambda: T.lvector("i"), ROWS),
    "a constant of the length of the axis": (lambda: T.constant([0, 3]), 3),
    "a constant before the beginning": (lambda: T.constant([-4, 0]), 3),
    "a constant for an axis of unknown length": (lambda: T.constant([0]), ROWS),
    "a constant that a narrower dtype makes another": (lambda: T.cast(T.constant([-1]), "uint8"), 3),
    "a range in a dtype that has not all of it": (lambda: T.cast(T.arange(X.shape[0]), "int8"), ROWS),
    "sums that may be one too many": (
        lambda: T.arange(X.shape[0])[:, None] + T.arange(X.shape[1]),
        sizes.add(sizes.add(ROWS, COLUMNS), -2),
    ),
    "differences of positions": (lambda: T.arange(X.shape[0]) - 1, ROWS),
    "what is computed of a range": (lambda: T.arange(X.shape[0]) + 1, ROWS),
}


@pytest.mark.parametrize("case", [*KNOWN, *UNKNOWN])
def test_indices_that_are_known_to_be_in_range(case: str) -> None:
    make, size = (KNOWN | UNKNOWN)[case]
    sizing = size_up([], [make(), as_size_node(size), X])
    assert in_range(make(), size, sizing) == (case in KNOWN)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int32"])
def test_indices_that_never_count_from_the_end(dtype: str) -> None:
    """The largest is compared with the size; of none nothing is compared."""
    places, v = T.vector("places", dtype), T.dvector("v")
    f = graphc.function([places, v], v[places] * 2)
    np.testing.assert_array_equal(f(np.array([2, 0, 1], dtype), np.arange(3.0)), [4, 0, 2])
    assert f(np.zeros(0, dtype), np.zeros(0)).shape == (0,)
    for wrong, size in (([0, 3], 3), ([0], 0), ([np.iinfo(dtype).max // 2], 3)):
        with pytest.raises(IndexError, match=f"axis 0 of v .*whose size is {size}"):
            f(np.array(wrong, dtype), np.zeros(size))
