"""Fourier transforms for generated source, by pointer and strides.

In: the op of `ops/lines.py`, which has the order of the arguments. Out: PROTOTYPES, whose definitions are in
transform.py; PYTHON_SHIMS, their meaning over flat arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.lib.stride_tricks import as_strided

from graphc.arrays.dtypes import FLOATS
from graphc.ops.lines import transform_symbol as symbol, transformed

DTYPES: dict[str, str] = {symbol(dtype): dtype for dtype in FLOATS}
"""The dtype of each function."""

PROTOTYPES: dict[str, tuple[str, ...]] = {
    name: (*("int64",) * 2, f"{dtype}*", *("int64",) * 3, f"{dtype}*", "float64*") for name, dtype in DTYPES.items()
}
"""The types of the arguments, "*" after those that are pointers."""


def run(*values: Any) -> int:
    """The functions under CPython."""
    lines, n, x, *steps, result, _ = values
    if lines and n:
        strides = [int(step) * x.itemsize for step in steps]
        view = as_strided(x, (int(lines), int(n), 2), strides, writeable=False)
        result[: 2 * int(lines) * int(n)] = transformed(view).reshape(-1)
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = dict.fromkeys(DTYPES, run)
"""The functions for generated source under CPython."""
