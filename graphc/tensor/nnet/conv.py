"""The convolutions of Theano's first years (theano.tensor.nnet.conv, conv3d2d).

In: images and filters, as `abstract_conv.conv2d` has them. Out: a node; filters are flipped.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size
from graphc.ops.elementwise import as_node
from graphc.ops.shape import dimshuffle
from graphc.tensor.nnet import abstract_conv

__all__ = [
    "conv2d", "conv3d", "imported_scipy_signal",
]  # fmt: skip

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


# --- films ------------------------------------------------------------------------------------------------------------
# Convolutions of films, of Theano's first years (theano.tensor.nnet.conv3d2d).
#
# In: films and filters, time in front of channels. Out: a node; filters are flipped.


ORDER = (0, 2, 1, 3, 4)


def conv3d(
    signals: Any, filters: Any, signals_shape: Any = None, filters_shape: Any = None, border_mode: Any = "valid"
) -> Node:
    """The convolution of films (batch, time, channels, rows, columns) with filters (results, time, channels, rows,
    columns), as (batch, time, results, rows, columns).

    border_mode: "valid", "full" or "half", or one of these for each of time, rows and columns. Shapes that are told are
    checked at each call. Raises GraphTypeError for another border mode or rank.
    """
    films, kernels = as_node(signals), as_node(filters)
    if films.ndim != 5 or kernels.ndim != 5:
        raise GraphTypeError(f"conv3d: films and filters have 5 axes, not {films.ndim} and {kernels.ndim}")
    first, second = (
        None if shape is None else [shape[axis] for axis in ORDER] for shape in (signals_shape, filters_shape)
    )
    films, kernels = dimshuffle(films, ORDER), dimshuffle(kernels, ORDER)
    modes = (border_mode,) * 3 if isinstance(border_mode, str) else tuple(border_mode)
    if len(modes) != 3:
        raise GraphValueError(f"conv3d: border_mode {border_mode!r} should be one for time, rows and columns")
    around = [_around(mode, taps) for mode, taps in zip(modes, kernels.type.shape[2:], strict=True)]
    return dimshuffle(abstract_conv.conv3d(films, kernels, first, second, tuple(around)), ORDER)


def _around(mode: Any, taps: Size) -> Size:
    """The number of elements that a border mode puts before and behind an axis."""
    match mode:
        case "valid":
            return 0
        case "full":
            return sizes.add(taps, -1)
        case "half":
            return sizes.floor_divide(taps, 2)
    raise GraphValueError(f"conv3d: border mode {mode!r} is not valid, full or half")


explain_all(globals())
