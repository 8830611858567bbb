"""The convolution of Theano's first years (theano.tensor.nnet.conv).

In: images and filters, as `abstract_conv.conv2d` has them. Out: a node; filters are flipped.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphValueError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.tensor.nnet import abstract_conv

__all__ = ["conv2d", "imported_scipy_signal"]

imported_scipy_signal = True


def conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **_how: Any,
) -> Node:
    """The convolution of images (batch, channels, rows, columns) with filters (results, channels, rows, columns), where
    the filter lies within the image ("valid") or wherever it meets it ("full"). What other arguments said about how it
    was computed is passed over. Raises GraphTypeError for another border mode."""
    if border_mode not in ("valid", "full"):
        raise GraphValueError(f"conv2d: border_mode {border_mode!r} is not valid or full")
    return abstract_conv.conv2d(input, filters, image_shape, filter_shape, border_mode, subsample)


explain_all(globals())
