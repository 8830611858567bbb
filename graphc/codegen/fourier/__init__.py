"""Fourier transforms for generated source, by pointer and strides.

In: the op of `ops/lines.py`, which has the order of the arguments. Out: PROTOTYPES, whose definitions are in
transform.py; PYTHON_SHIMS, their meaning over flat arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.lib.stride_tricks import as_strided

from graphc.arrays.dtypes import FLOATS
from graphc.ops.lines import real_transformed, transform_symbol as symbol, transformed, values_transformed

FORMS: dict[str, str] = {symbol(dtype, form): form for form in ("", "real_", "back_") for dtype in FLOATS}
"""What each function transforms: complex lines, real ones, or the first halves of the spectra of these."""

DTYPES: dict[str, str] = {name: name.rpartition("_")[2] for name in FORMS}
"""The dtype of each function."""

PROTOTYPES: dict[str, tuple[str, ...]] = {
    name: (*("int64",) * 2, f"{dtype}*", *("int64",) * (3 - (FORMS[name] == "real_")), f"{dtype}*", "float64*")
    for name, dtype in DTYPES.items()
}
"""The types of the arguments, "*" after those that are pointers."""


def run(form: str, *values: Any) -> int:
    """The functions under CPython."""
    lines, n, x, *steps, result, _ = values
    lines, n = int(lines), int(n)
    if lines and n:
        shape = (lines, n if form == "" else n // 2 + 1, 2) if form != "real_" else (lines, n)
        view = as_strided(x, shape, [int(step) * x.itemsize for step in steps], writeable=False)
        found = {"": transformed, "real_": real_transformed}.get(form, partial(values_transformed, n=n))(view)
        result[: found.size] = found.reshape(-1)
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {name: partial(run, form) for name, form in FORMS.items()}
"""The functions for generated source under CPython."""
