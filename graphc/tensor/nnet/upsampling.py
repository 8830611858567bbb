"""Images made larger, between whose elements the new ones are interpolated (Theano's).

In: images (batch, channels, rows, columns). Out: nodes, of elements read where they stand.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from graphc.errors import RankError
from graphc.ir import sizes
from graphc.ir.node import Node, describe, told
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import cast, elementwise
from graphc.options import options
from graphc.tensor.elementary import add, mul, sub, true_div
from graphc.tensor.indexing import take
from graphc.tensor.joining import concatenate
from graphc.tensor.nnet.activations import in_floats
from graphc.tensor.ranges import arange
from graphc.tensor.shaping import as_size

__all__ = ["bilinear_kernel_1D", "bilinear_kernel_2D", "bilinear_upsampling", "frac_bilinear_upsampling"]


def bilinear_kernel_1D(ratio: Any, normalize: bool = True) -> Node:  # noqa: N802 - Theano's name
    """1, 2, …, ratio, …, 2, 1, divided by `ratio` where `normalize`."""
    rising = arange(1, add(ratio, 1), dtype=options.floatX)
    kernel = concatenate([rising, rising[-2::-1]])
    return true_div(kernel, cast(as_size_node(as_size(ratio)), options.floatX)) if normalize else kernel


def bilinear_kernel_2D(ratio: Any, normalize: bool = True) -> Node:  # noqa: N802
    """The outer product of two kernels of one axis; `ratio` may be a pair, of rows and of columns."""
    rows, columns = ratio if isinstance(ratio, tuple) else (ratio, ratio)
    down, along = (bilinear_kernel_1D(each, normalize) for each in (rows, columns))
    return mul(layout.expand(down, (1,)), layout.expand(along, (0,)))


def _stretched(x: Node, axis: int, ratio: Any, step: int) -> Node:
    """An axis `ratio` / `step` times as long: element j is what lies at (step j - (ratio - 1) // 2) / ratio between
    the elements, the first and last of which go on."""
    length, factor = x.type.shape[axis], as_size(ratio, "bilinear_upsampling: a ratio")
    whole = sizes.multiply(length, factor)
    count = sizes.floor_divide(sizes.add(whole, step - 1), step)
    shift = as_size_node(sizes.floor_divide(sizes.subtract(factor, 1), 2))
    at = elementwise("sub", elementwise("mul", layout.iota(count), step), shift)
    before = elementwise("floor_div", at, as_size_node(factor))
    rest = elementwise("sub", at, elementwise("mul", before, as_size_node(factor)))
    weight = true_div(cast(rest, x.type.dtype), cast(as_size_node(factor), x.type.dtype))
    weight = layout.expand(weight, [k for k in range(x.ndim) if k != axis])
    low, high = (take(x, elementwise("add", before, k), axis, "clip") for k in (0, 1))
    return add(mul(low, sub(1, weight)), mul(high, weight))


def bilinear_upsampling(
    input: Any,
    ratio: Any = None,
    frac_ratio: Any = None,
    batch_size: Any = None,
    num_input_channels: Any = None,
    use_1D_kernel: bool = True,  # noqa: N803 - Theano's name
) -> Node:
    """Images (batch, channels, rows, columns) with `ratio` times as many rows and columns, interpolated linearly.

    ratio: a whole number, or an integer scalar; frac_ratio: (numerator, denominator), or a pair of these, for rows and
    for columns, instead. Where the numerator is even, the last row and column are repeated once more than the first.
    The other arguments said how it was computed, and are passed over. Raises ValueError unless one of the two is given.
    """
    if (ratio is None) == (frac_ratio is None):
        raise ValueError("bilinear_upsampling: either ratio or frac_ratio should be given")
    if frac_ratio is not None:
        return frac_bilinear_upsampling(input, frac_ratio)
    return _upsampled(input, ((ratio, 1), (ratio, 1)))


def frac_bilinear_upsampling(input: Any, frac_ratio: Any) -> Node:
    """`bilinear_upsampling` by a ratio of whole numbers."""
    if not isinstance(frac_ratio, tuple):
        raise ValueError(f"frac_bilinear_upsampling: frac_ratio {frac_ratio!r} is not a tuple")
    pairs = frac_ratio if isinstance(frac_ratio[0], tuple) else (frac_ratio, frac_ratio)
    return _upsampled(input, tuple((p // gcd(p, q), q // gcd(p, q)) for p, q in pairs))


def _upsampled(input: Any, ratios: Any) -> Node:
    x = in_floats(input)
    what = told(lambda: f"bilinear_upsampling of {describe(x)} of type {x.type}")
    if x.ndim != 4:
        raise RankError(f"{what}: it has {x.ndim} axes, not 4")
    for axis, (ratio, step) in enumerate(ratios, 2):
        if isinstance(ratio, int) and ratio < 1:
            raise ValueError(f"{what}: the ratio {ratio} is not positive")
        x = _stretched(x, axis, ratio, step)
    return x
