"""Convolutions of images as Theano's nnet itself has them, whose arguments stand in another order.

In: images and filters, as in `abstract_conv`. Out: nodes.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.tensor.nnet import abstract_conv

__all__ = ["abstract_conv2d", "conv2d", "conv2d_transpose"]

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
