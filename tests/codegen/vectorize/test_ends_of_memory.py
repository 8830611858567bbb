"""Columns of short rows are read by whole vectors: none reaches before or behind the memory of an array."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T

LIBC = ctypes.CDLL(None, use_errno=True)
NO_ACCESS = 0


def placed(array: np.ndarray[Any, Any], at_end: bool) -> np.ndarray[Any, Any]:
    """A copy that begins or ends where memory does: an access of the page beyond ends the process."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        assert LIBC.mprotect(ctypes.c_void_p(begin + page * mmap.PAGESIZE), mmap.PAGESIZE, NO_ACCESS) == 0
    room = pages * mmap.PAGESIZE - array.nbytes if at_end else 0
    made = np.frombuffer(memory, array.dtype, array.size, mmap.PAGESIZE + room).reshape(array.shape)
    made[...] = array
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "columns"), [("float64", 3), ("float64", 8), ("float32", 5), ("float32", 12)])
def test_nothing_beyond_an_array_is_read(dtype: str, columns: int) -> None:
    x, v = T.TensorType(dtype, (None, columns))("x"), T.vector("v", dtype)
    rows = graphc.function(
        [x], [T.argmin(x, axis=1), x[:, 0] * 2, x[:, -1] + x[:, 1], x - x.max(axis=1, keepdims=True)]
    )
    steps = graphc.function([v], [v[::columns].max(), v[columns - 1 :: columns] * 2])
    draw = np.random.default_rng(columns)
    for count in (1, 8, 17, 33, 64, 257):
        for at_end in (False, True):
            given = placed(draw.normal(size=(count, columns)).astype(dtype), at_end)
            wanted = given.argmin(1), given[:, 0] * 2, given[:, -1] + given[:, 1], given - given.max(1, keepdims=True)
            for got, value in zip(rows(given), wanted, strict=True):
                np.testing.assert_array_equal(got, value)
            line = placed(draw.normal(size=count * columns + at_end).astype(dtype), at_end)
            for got, value in zip(steps(line), (line[::columns].max(), line[columns - 1 :: columns] * 2), strict=True):
                np.testing.assert_array_equal(got, value)
