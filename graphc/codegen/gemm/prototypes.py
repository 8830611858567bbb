"""Matrix products for generated source, by pointer and element strides.

In: names that a source calls, whose definitions are in dispatch.py. Out: PROTOTYPES, their types; PYTHON_SHIMS, their
meaning over flat arrays.

    gc_gemm_<t>(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col)
        c[i, j] = alpha * sum_p a[i, p] * b[p, j] + beta * c[i, j]          i < m, j < n, p < k
    gc_gemv_<t>(m, n, alpha, a, a_row, a_col, x, x_step, beta, y, y_step)
        y[i] = alpha * sum_j a[i, j] * x[j] + beta * y[i]                   i < m, j < n
    gc_batched_gemm_<t>(count, m, n, k, alpha, a, a_batch, a_row, a_col, b, b_batch, b_row, b_col,
                        beta, c, c_batch, c_row, c_col)
        a gc_gemm for each of count matrices that many elements apart; a batch stride 0 repeats one matrix

t is f64, f32, i64 or i32. Element (i, j) of a stands at a[i * a_row + j * a_col]: a transposed or sliced operand needs
no copy. c must not overlap a or b. Where beta is 0, c is written but its old values do not count, NaN or not; all else
is IEEE arithmetic, or wraps. Each returns 0.

Large products of matrices may go to the BLAS that NumPy itself has loaded, small ones, and layouts that no BLAS takes,
to loops of their own; so do those with a vector (dispatch.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.codegen.gemm.api import DTYPES, Flat

ARGUMENTS = {
    "gemm": "m n k alpha a a_row a_col b b_row b_col beta c c_row c_col",
    "gemv": "m n alpha a a_row a_col x x_step beta y y_step",
    "batched_gemm": "count m n k alpha a a_batch a_row a_col b b_batch b_row b_col beta c c_batch c_row c_col",
}
"""The arguments of each routine, in order."""


def kind_of(argument: str, dtype: str) -> str:
    """The type of an argument, by its name."""
    if argument in ("alpha", "beta"):
        return dtype
    return f"{dtype}*" if argument in ("a", "b", "c", "x", "y", "w") else "int64"


PROTOTYPES: dict[str, tuple[str, ...]] = {
    f"gc_{routine}_{suffix}": tuple(kind_of(argument, dtype) for argument in arguments.split())
    for suffix, dtype in DTYPES.items()
    for routine, arguments in ARGUMENTS.items()
}
"""The types of the arguments, "*" after those that are pointers."""


OPERANDS = {
    "gemm": {"a": "m k", "b": "k n", "c": "m n"},
    "gemv": {"a": "m n", "x": "n", "y": "m"},
    "batched_gemm": {"a": "count m k", "b": "count k n", "c": "count m n"},
}
"""The sizes of two factors and of what their product is added to."""


def _product(routine: str, scalar: Callable[[float], np.number[Any]], *values: Any) -> int:
    given = dict(zip(ARGUMENTS[routine].split(), values, strict=True))

    def view(name: str, sizes: str) -> Flat:
        flat = given[name]
        steps = [step * flat.itemsize for argument, step in given.items() if argument.startswith(f"{name}_")]
        return as_strided(flat, [given[size] for size in sizes.split()], steps)

    left, right, result = (view(name, sizes) for name, sizes in OPERANDS[routine].items())
    alpha, beta = scalar(given["alpha"]), scalar(given["beta"])
    product = alpha * (left @ right)
    result[...] = product if beta == 0 else product + beta * result
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    f"gc_{routine}_{suffix}": partial(_product, routine, np.dtype(dtype).type)
    for suffix, dtype in DTYPES.items()
    for routine in ARGUMENTS
}
"""The functions for generated source under CPython. A pointer is a flat array whose first element it points to (`x[i
* n :]`)."""
