"""Convolutions for generated source, by pointer and element strides.

In: names that a source calls, whose definitions are in convolution.py. Out: PROTOTYPES, the types of their arguments;
PYTHON_SHIMS, their meaning over flat arrays. convolution.py chooses among products by tiles (tiles.py), the forms for
few channels (depthwise.py) and results one by one.

    gc_conv_<t>(images, groups, outs, channels, x and its steps, w and its steps, y and its steps, and for each of three
                spatial axes size, taps, count, stride, dilation, spread, low)
        y[n, g, o, p...] = sum of x[n, g, c, i...] * w[g, o, c, k...] as the op of graphc/ops/conv.py says
    gc_grouped_conv_<t>(the same)
        the same, faster where there are many groups of few channels

t is f64, f32, i64 or i32. y must not overlap x or w. Each returns 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.lib.stride_tricks import as_strided

from graphc.codegen.gemm import DTYPES, Flat, parameter_type
from graphc.ops.conv import MOST_SPATIAL, convolve_arrays

ROUTINES = ("conv", "grouped_conv")
ALONG = ("size", "taps", "count", "stride", "dilation", "spread", "low")
"""The numbers that a convolution is given for each spatial axis."""
WORDS = (
    *"images groups outs channels".split(),
    *"x x_n x_g x_c x_0 x_1 x_2 w w_g w_o w_c w_0 w_1 w_2 y y_n y_g y_o y_0 y_1 y_2".split(),
    *(f"{word}_{axis}" for axis in range(MOST_SPATIAL) for word in ALONG),
)
"""The arguments, in order."""
PROTOTYPES: dict[str, tuple[str, ...]] = {
    f"gc_{routine}_{suffix}": tuple(parameter_type(word, dtype) for word in WORDS)
    for suffix, dtype in DTYPES.items()
    for routine in ROUTINES
}
"""The types of the arguments, "*" after those that are pointers."""


def convolve(*values: Any) -> int:
    args = dict(zip(WORDS, values, strict=True))

    def spatial(word: str) -> list[int]:
        return [int(args[f"{word}_{axis}"]) for axis in range(MOST_SPATIAL)]

    def view(name: str, letters: str, sizes: Sequence[int]) -> Flat:
        flat, places = args[name], (*letters, *map(str, range(MOST_SPATIAL)))
        return as_strided(flat, sizes, [int(args[f"{name}_{place}"]) * flat.itemsize for place in places])

    images, groups, outs, channels = (int(args[name]) for name in ("images", "groups", "outs", "channels"))
    x = view("x", "ngc", [images, groups, channels, *spatial("size")])
    w = view("w", "goc", [groups, outs, channels, *spatial("taps")])
    y = view("y", "ngo", [images, groups, outs, *spatial("count")])
    y[...] = 0
    words = ("size", "count", "stride", "dilation", "spread", "low")
    convolve_arrays(x, w, y, list(zip(*map(spatial, words), strict=True)))
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = dict.fromkeys(PROTOTYPES, convolve)
"""The functions for generated source under CPython. A pointer is a flat array whose first element it points to."""
