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

    gc_conv_<t>(images, groups, outs, channels, x and its steps, w and its steps, y and its steps, and for each of three
                spatial axes size, taps, count, stride, dilation, spread, low)
        y[n, g, o, p...] = sum of x[n, g, c, i...] * w[g, o, c, k...] as the op of graphc/ops/conv.py says
    gc_grouped_conv_<t>(the same)
        the same, faster where there are many groups of few channels

t is f64, f32, i64 or i32. Element (i, j) of a stands at a[i * a_row + j * a_col]: a transposed or sliced operand needs
no copy. c must not overlap a or b. Where beta is 0, c is written but its old values do not count, NaN or not; all else
is IEEE arithmetic, or wraps. Each returns 0.

Large products of matrices may go to the BLAS that NumPy itself has loaded, small ones, and layouts that no BLAS takes,
to loops of their own; so do those with a vector (dispatch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.codegen.gemm.api import CONVOLUTIONS, DTYPES, Flat
from graphc.ops.conv import MOST_SPATIAL, convolve_arrays

ALONG = ("size", "taps", "count", "stride", "dilation", "spread", "low")
"""The numbers that a convolution is given for each spatial axis."""
ARGUMENTS = {
    "gemm": "m n k alpha a a_row a_col b b_row b_col beta c c_row c_col",
    "gemv": "m n alpha a a_row a_col x x_step beta y y_step",
    "batched_gemm": "count m n k alpha a a_batch a_row a_col b b_batch b_row b_col beta c c_batch c_row c_col",
    **dict.fromkeys(
        CONVOLUTIONS,
        " ".join(
            (
                "images groups outs channels",
                "x x_n x_g x_c x_0 x_1 x_2 w w_g w_o w_c w_0 w_1 w_2 y y_n y_g y_o y_0 y_1 y_2",
                *(f"{word}_{axis}" for axis in range(MOST_SPATIAL) for word in ALONG),
            )
        ),
    ),
}
"""Those of each routine, in order."""


def _kind(argument: str, dtype: str) -> str:
    if argument in ("alpha", "beta"):
        return dtype
    return f"{dtype}*" if argument in ("a", "b", "c", "x", "y", "w") else "int64"


PROTOTYPES: dict[str, tuple[str, ...]] = {
    f"gc_{routine}_{suffix}": tuple(_kind(argument, dtype) for argument in arguments.split())
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


def _convolution(*values: Any) -> int:
    given = dict(zip(ARGUMENTS["conv"].split(), values, strict=True))

    def spatial(word: str) -> list[int]:
        return [int(given[f"{word}_{axis}"]) for axis in range(MOST_SPATIAL)]

    def view(name: str, letters: str, sizes: Sequence[int]) -> Flat:
        flat, places = given[name], (*letters, *map(str, range(MOST_SPATIAL)))
        return as_strided(flat, sizes, [int(given[f"{name}_{place}"]) * flat.itemsize for place in places])

    images, groups, outs, channels = (int(given[name]) for name in ("images", "groups", "outs", "channels"))
    x = view("x", "ngc", [images, groups, channels, *spatial("size")])
    w = view("w", "goc", [groups, outs, channels, *spatial("taps")])
    y = view("y", "ngo", [images, groups, outs, *spatial("count")])
    y[...] = 0
    words = ("size", "count", "stride", "dilation", "spread", "low")
    convolve_arrays(x, w, y, list(zip(*map(spatial, words), strict=True)))
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    f"gc_{routine}_{suffix}": _convolution
    if routine in CONVOLUTIONS
    else partial(_product, routine, np.dtype(dtype).type)
    for suffix, dtype in DTYPES.items()
    for routine in ARGUMENTS
}
"""The functions for generated source under CPython. A pointer is a flat array whose first element it points to (`x[i
* n :]`)."""
