"""Convolutions under JAX's names, and reductions of windows.

In: images and kernels, whose axes stand as `dimension_numbers` says; strides, padding, dilations, one for each spatial
axis. Out: tensors.

    conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2))          max pooling

The work is done by `tensor/nnet/sliding.py`; this module puts axes in order, and elements around and between others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from graphc import tensor
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe
from graphc.lax.slices import pad
from graphc.ops.elementwise import as_node, cast
from graphc.ops.index import subtensor
from graphc.ops.shape import dimshuffle, filled
from graphc.tensor.nnet.sliding import convolution

Pads = Sequence[tuple[Any, Any]]


class ConvDimensionNumbers(NamedTuple):
    """The axes of images, kernels and results: for each a tuple of the axis of the batch (of kernels, of the results),
    that of the channels, and the spatial ones."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[Any], rhs_shape: Sequence[Any], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return the axes that `dimension_numbers` says: None for NCHW, OIHW, NCHW; a tuple of three texts such as ("NHWC",
    "HWIO", "NHWC"); or a `ConvDimensionNumbers`. The shapes tell the rank. Raises RankError where ranks differ,
    GraphValueError for letters that do not fit.

        >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC")).lhs_spec
        (0, 3, 1, 2)
    """
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        raise RankError(f"a convolution of {rank} axes with a kernel of {len(rhs_shape)}")
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        own = tuple(range(rank))
        return ConvDimensionNumbers(own, own, own)
    specs = [str(each) for each in dimension_numbers]
    spatial = [letter for letter in specs[1] if letter not in "OI"] if len(specs) == 3 else []
    for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=len(specs) == 3):
        if len(specs) != 3 or sorted(spec) != sorted([*pair, *spatial]) or len(spec) != rank:
            raise GraphValueError(
                f"a convolution of {rank} axes: dimension_numbers={dimension_numbers!r} must be three texts, with a "
                "letter for each axis: N and C, O and I, N and C, and the same spatial ones"
            )
    lhs, rhs, out = (
        tuple(spec.index(letter) for letter in (*pair, *spatial))
        for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True)
    )
    return ConvDimensionNumbers(lhs, rhs, out)


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Node:
    """Return images with kernels applied to them at every place (a cross-correlation).

    lhs: images; rhs: kernels, of which each has the channels of a group. window_strides: how far apart the places are.
    padding: "SAME" (as many results as elements, divided by the strides), "VALID" (none), or pairs of numbers before
    and behind, which may be negative. lhs_dilation, rhs_dilation: how far apart the elements of images and kernels are
    put. dimension_numbers: as of `conv_dimension_numbers`. feature_group_count: in how many groups of their own
    channels and kernels are divided. preferred_element_type: the dtype that it is computed in. One to three spatial
    axes. Raises GraphValueError for `batch_group_count`, RankError and ShapeError where axes do not fit.

        >>> lax.conv_general_dilated(T.ones((1, 1, 3)), T.ones((1, 1, 2)), (1,), "VALID").eval()
        array([[[2., 2.]]])
    """
    images, kernels = as_node(lhs), as_node(rhs)
    if preferred_element_type is not None:
        dtype = str(np.dtype(preferred_element_type))
        images, kernels = cast(images, dtype), cast(kernels, dtype)
    if batch_group_count != 1:
        raise GraphValueError(
            "conv_general_dilated: batch_group_count is not supported; use feature_group_count or vmap"
        )
    axes = conv_dimension_numbers(images.type.shape, kernels.type.shape, dimension_numbers)
    images, kernels = dimshuffle(images, axes.lhs_spec), dimshuffle(kernels, axes.rhs_spec)
    rank = images.ndim - 2
    apart, spread = ([1] * rank if each is None else list(each) for each in (rhs_dilation, lhs_dilation))
    images = _dilated(images, spread)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "SAME_LOWER", "VALID"):
            raise GraphValueError(
                f"conv_general_dilated: padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs, not {padding!r}"
            )
        if padding.upper() == "SAME_LOWER":
            extents = [_extent(size, step) for size, step in zip(kernels.type.shape[2:], apart, strict=True)]
            padding = _same(images.type.shape[2:], extents, window_strides, lower=True)
    if not isinstance(padding, str):
        images, padding = _cut(images, [tuple(pair) for pair in padding])
    how = [*padding] if not isinstance(padding, str) else padding.lower()
    found = convolution(images, kernels, list(window_strides), how, apart, feature_group_count)
    back = [axes.out_spec.index(place) for place in range(found.ndim)]
    return dimshuffle(found, back)


def _dilated(images: Node, spread: Sequence[int]) -> Node:
    """Return images with zeros between their elements, so that these are `spread` apart."""
    if all(step == 1 for step in spread):
        return images
    return pad(images, 0, [(0, 0, 0)] * 2 + [(0, 0, step - 1) for step in spread])


def _cut(images: Node, pads: Sequence[tuple[Any, ...]]) -> tuple[Node, list[tuple[Any, Any]]]:
    """Return images without what negative padding takes away, and the padding that is left."""
    negative = [tuple(min(each, 0) if isinstance(each, int) else 0 for each in pair) for pair in pads]
    if any(each for pair in negative for each in pair):
        images = pad(images, 0, [(0, 0, 0)] * 2 + [(before, behind, 0) for before, behind in negative])
    return images, [(max(a, 0), max(b, 0)) if isinstance(a, int) and isinstance(b, int) else (a, b) for a, b in pads]


def _extent(size: Size, step: int) -> Size:
    """Return how many elements a window covers whose own are `step` apart."""
    return sizes.add(sizes.multiply(sizes.subtract(size, 1), step), 1)


def _same(lengths: Sequence[Size], extents: Sequence[Size], strides: Sequence[int], lower: bool = False) -> Pads:
    """Return the padding with which there are as many places as elements, divided by the strides and rounded up."""
    found = []
    for length, extent, stride in zip(lengths, extents, strides, strict=True):
        places = sizes.floor_divide(sizes.add(length, stride - 1), stride)
        whole = sizes.add(sizes.multiply(sizes.subtract(places, 1), stride), extent)
        total = sizes.maximum(sizes.subtract(whole, length), 0)
        half = sizes.floor_divide(total, 2)
        found.append((sizes.subtract(total, half), half) if lower else (half, sizes.subtract(total, half)))
    return found


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str, precision: Any = None) -> Node:
    """Return `conv_general_dilated` of images (batch, channels, axes...) and kernels (results, channels, axes...)."""
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
) -> Node:
    """Return `conv_general_dilated` of images (batch, channels, axes...) and kernels (results, channels, axes...)."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Pads,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
) -> Node:
    """Return the transposed convolution: each element of an image adds its multiple of a kernel, `strides` apart.

    lhs: images; rhs: kernels; dimension_numbers: None for images (batch, axes..., channels) and kernels (axes...,
    channels, results). padding: "SAME" (as many results as elements, times the strides), "VALID", or pairs, which are
    put around the images with zeros between. transpose_kernel: the kernel is that of the convolution whose derivative
    this is: flipped, and with its channels and results exchanged. The sizes of kernels must be known with "SAME" and
    "VALID". Raises GraphValueError where they are not.

        >>> lax.conv_transpose(T.ones((1, 2, 1)), T.ones((2, 1, 1)), (2,), "VALID").eval().ravel()
        array([1., 1., 1., 1.])
    """
    images, kernels = as_node(lhs), as_node(rhs)
    rank = images.ndim - 2
    if dimension_numbers is None:
        letters = "HWD"[:rank] if rank < 3 else "DHW"
        dimension_numbers = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    axes = conv_dimension_numbers(images.type.shape, kernels.type.shape, dimension_numbers)
    apart = [1] * rank if rhs_dilation is None else list(rhs_dilation)
    extents = [_extent(kernels.type.shape[axis], step) for axis, step in zip(axes.rhs_spec[2:], apart, strict=True)]
    pads = _transposed(padding, extents, strides) if isinstance(padding, str) else padding
    if transpose_kernel:
        for axis in axes.rhs_spec[2:]:
            kernels = tensor.flip(kernels, axis)
        first, second, *rest = axes.rhs_spec
        axes = axes._replace(rhs_spec=(second, first, *rest))
    return conv_general_dilated(images, kernels, [1] * rank, pads, strides, apart, axes)


def _transposed(padding: str, extents: Sequence[Size], strides: Sequence[int]) -> Pads:
    """Return the padding of a transposed convolution."""
    found = []
    for extent, stride in zip(extents, strides, strict=True):
        if not isinstance(extent, int):
            raise GraphValueError("conv_transpose: the sizes of the kernel must be known; give padding in pairs")
        whole = extent + stride - 2
        if padding.upper() == "SAME":
            before = extent - 1 if stride > extent - 1 else -(-whole // 2)
        elif padding.upper() == "VALID":
            whole, before = whole + max(extent - stride, 0), extent - 1
        else:
            raise GraphValueError(f"conv_transpose: padding is 'SAME', 'VALID' or pairs, not {padding!r}")
        found.append((before, whole - before))
    return found


# --- windows ----------------------------------------------------------------------------------------------------------


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Pads = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Node:
    """Return for each window of the operand its elements reduced by a function of two arrays, from `init_value`.

    computation: associative, of two arrays of equal shapes, element by element: `lax.add`, `lax.max`, or any other.
    window_dimensions: the sizes of a window, Python integers. window_strides: how far apart windows are, 1 by default.
    padding: "VALID", "SAME", "SAME_LOWER" or pairs; what is put around is `init_value`. base_dilation,
    window_dilation: how far apart the elements of the operand, and of a window, are. The function is written out for
    each element of a window. Raises RankError where there is not a number for each axis, GraphTypeError for a window
    whose size is not known.

        >>> lax.reduce_window(T.constant([1.0, 3.0, 2.0, 5.0]), -np.inf, lax.max, (2,), (2,)).eval()
        array([3., 5.])
    """
    node, rank = as_node(operand), as_node(operand).ndim
    value = cast(as_node(init_value), node.type.dtype)
    given = [window_dimensions, window_strides, base_dilation, window_dilation]
    window, strides, between, apart = ([1] * rank if each is None else list(each) for each in given)
    for each in (window, strides, between, apart):
        if len(each) != rank:
            raise RankError(
                f"reduce_window: {len(each)} numbers, and {describe(node)} of type {node.type} has {rank} axes"
            )
        if not all(isinstance(number, int | np.integer) for number in each):
            raise GraphTypeError("reduce_window: sizes, strides and dilations of windows must be Python integers")
    node = pad(node, value, [(0, 0, step - 1) for step in between])
    extents: list[Size] = [(size - 1) * step + 1 for size, step in zip(window, apart, strict=True)]
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "SAME_LOWER", "VALID"):
            raise GraphValueError(f"reduce_window: padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs, not {padding!r}")
        lower = padding.upper() == "SAME_LOWER"
        padding = [(0, 0)] * rank if padding.upper() == "VALID" else _same(node.type.shape, extents, strides, lower)
    node = pad(node, value, [(before, behind, 0) for before, behind in padding])
    counts = [
        sizes.maximum(sizes.floor_divide(sizes.add(sizes.subtract(size, extent), stride), stride), 0)
        for size, extent, stride in zip(node.type.shape, extents, strides, strict=True)
    ]
    total: Any = filled(value, counts)
    for offset in product(*(range(size) for size in window)):
        starts = [place * step for place, step in zip(offset, apart, strict=True)]
        total = computation(total, subtensor(node, starts, counts, strides))
    return cast(as_node(total), node.type.dtype)
