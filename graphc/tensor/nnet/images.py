"""Convolutions of images as Theano's nnet itself has them, whose arguments stand in another order.

In: images and filters, as in `abstract_conv`. Out: nodes.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.index import inc_subtensor
from graphc.ops.windows import Sliding, filled_windows, join_windows, windows
from graphc.tensor.arranging import pad
from graphc.tensor.nnet import abstract_conv
from graphc.tensor.shaping import as_shape, operand

__all__ = ["abstract_conv2d", "conv2d", "conv2d_transpose", "images2neibs", "neibs2images"]

abstract_conv2d = abstract_conv.conv2d


def conv2d(
    input: Any,
    filters: Any,
    input_shape: Any = None,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    image_shape: Any = None,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Node:
    """The convolution of images (batch, channels, rows, columns) with filters (results, channels of a group, rows,
    columns), flipped unless `filter_flip` is false.

    border_mode: "valid", "full", "half", a number, or for each axis a number or a pair of numbers of elements put
    around the image. subsample: the strides. num_groups: in how many parts of their own channels and results are
    divided. input_shape (or image_shape), filter_shape: tuples with None for what is not known, checked at each call.
    unshared: each place has filters of its own, (results, result rows, result columns, channels, rows, columns). Raises
    GraphTypeError for ranks and numbers that do not fit, ShapeError where sizes do not.

        T.nnet.conv2d(images, filters, border_mode="half", subsample=(2, 2))
    """
    shape = image_shape if input_shape is None else input_shape
    how = border_mode, subsample, filter_flip, filter_dilation, num_groups, unshared
    return abstract_conv.conv2d(input, filters, shape, filter_shape, *how)


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    input_dilation: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Node:
    """The transposed convolution: as `conv2d_grad_wrt_inputs`, the strides by another name. The filters are
    (channels, results, rows, columns)."""
    how = border_mode, input_dilation, filter_flip, filter_dilation, num_groups, unshared
    return abstract_conv.conv2d_grad_wrt_inputs(input, filters, output_shape, filter_shape, *how)


# --- neighbourhoods ---------------------------------------------------------------------------------------------------


MODES = ("valid", "ignore_borders", "half", "full", "wrap_centered")


def _holds(x: Node, left: Size, right: Size, message: str) -> Node:
    """`x`, where two sizes are equal."""
    if isinstance(left, int) and isinstance(right, int):
        if left != right:
            raise ShapeError(message)
        return x
    same = elementwise("equal", as_size_node(left), as_size_node(right))
    return checked(x, (cast(same, "int64"),), message, "shape")


def images2neibs(ten4: Any, neib_shape: Any, neib_step: Any = None, mode: str = "valid") -> Node:
    """Each neighbourhood of `neib_shape` rows and columns of each channel of each image, as a row of a matrix.

    ten4: (batch, channels, rows, columns); neib_step: how far they are apart, `neib_shape` by default, so that they
    follow one another. mode: "valid" (they must fill the image: ShapeError where they do not), "ignore_borders" (what
    is left is left out), "half" and "full" (of the image within a border of zeros of half or all but one of their
    rows and columns, which they must fill), "wrap_centered" (one around each place, of an image that goes on at the
    other side; odd numbers of rows and columns). Rows come in the order of images, channels, rows and columns.
    """
    x, what = operand("images2neibs", ten4)
    if x.ndim != 4:
        raise RankError(f"{what}: it has {x.ndim} axes, not 4")
    if mode not in MODES:
        raise GraphValueError(f"{what}: mode {mode!r} is none of {', '.join(MODES)}")
    widths = as_shape(neib_shape, f"{what}: neib_shape", 2)
    strides = widths if neib_step is None else as_shape(neib_step, f"{what}: neib_step", 2)
    if len(widths) != 2 or len(strides) != 2:
        raise GraphValueError(f"{what}: neib_shape and neib_step have two numbers each")
    if mode == "wrap_centered":
        return _centred(x, widths, strides, what)
    slidings: list[Sliding] = []
    borders: list[Size | None] = []
    for axis, (width, stride) in enumerate(zip(widths, strides, strict=True), 2):
        border: Size = 0
        if mode == "half":
            border = sizes.floor_divide(width, 2)
        elif mode == "full":
            border = sizes.subtract(width, 1)
        length = sizes.add(x.type.shape[axis], sizes.multiply(border, 2))
        left = sizes.subtract(length, width)
        steps = sizes.floor_divide(left, stride)
        if mode != "ignore_borders":
            message = f"{what}: neighbourhoods of {mode} mode do not fill axis {axis}"
            x = _holds(x, sizes.multiply(steps, stride), left, message)
        slidings.append(Sliding(sizes.add(steps, 1), width, stride))
        borders.append(None if sizes.equal(border, 0) else border)
    return _rows(filled_windows(x, slidings, borders, 0))


def _rows(neighbourhoods: Node) -> Node:
    shape = neighbourhoods.type.shape
    return layout.reshape(neighbourhoods, (sizes.product(shape[:4]), sizes.product(shape[4:])))


def _centred(x: Node, widths: tuple[Size, ...], strides: tuple[Size, ...], what: str) -> Node:
    slidings = []
    for axis, (width, stride) in enumerate(zip(widths, strides, strict=True), 2):
        if isinstance(width, int) and width % 2 == 0:
            raise GraphValueError(f"{what}: wrap_centered takes an odd number of rows and columns, not {width}")
        half = sizes.floor_divide(width, 2)
        x = _holds(
            x, sizes.multiply(half, 2), sizes.subtract(width, 1), f"{what}: {axis} is even in wrap_centered mode"
        )
        length = x.type.shape[axis]
        fits = sizes.minimum(length, width)
        x = _holds(x, fits, width, f"{what}: axis {axis} is smaller than a neighbourhood")
        count = sizes.floor_divide(sizes.add(length, sizes.subtract(stride, 1)), stride)
        x = pad(x, [(half, half) if k == axis else (0, 0) for k in range(4)], "wrap")
        slidings.append(Sliding(count, width, stride))
    return _rows(windows(x, slidings))


def neibs2images(neibs: Any, neib_shape: Any, original_shape: Any, mode: str = "valid") -> Node:
    """The images of `original_shape` whose neighbourhoods, which follow one another, are the rows of a matrix: what
    `images2neibs` made of them. mode: "valid", or "ignore_borders", where what was left out is 0."""
    rows, what = operand("neibs2images", neibs)
    widths, shape = as_shape(neib_shape, what, 2), as_shape(original_shape, what, 4)
    if rows.ndim != 2 or len(widths) != 2 or len(shape) != 4:
        raise RankError(f"{what}: it takes a matrix, two sizes of neighbourhoods and four of images")
    if mode not in ("valid", "ignore_borders"):
        raise NotImplementedError(f"{what}: mode {mode!r} is neither 'valid' nor 'ignore_borders'")
    counts = [sizes.floor_divide(length, width) for length, width in zip(shape[2:], widths, strict=True)]
    inside = [sizes.multiply(count, width) for count, width in zip(counts, widths, strict=True)]
    if mode == "valid":
        for length, filled in zip(shape[2:], inside, strict=True):
            rows = _holds(rows, filled, length, f"{what}: neighbourhoods do not fill the images")
    images = join_windows(layout.reshape(rows, (*shape[:2], *counts, *widths)), 2)
    if all(map(sizes.equal, images.type.shape, shape)):
        return images
    return inc_subtensor(layout.zeros(images.type.dtype, shape), images, (0,) * 4, (1,) * 4)


explain_all(globals())
