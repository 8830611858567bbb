"""Convolutions of signals and images that have no channels (theano.tensor.signal.conv, scipy.signal).

In: tensors. Out: nodes; kernels are flipped, as mathematics has it.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import is_float, promote
from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size, describe
from graphc.ops import conv
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import broadcast_to, dimshuffle, expand, reshape
from graphc.tensor.arranging import pad
from graphc.tensor.nnet import conv as nnet_conv

__all__ = ["conv2d", "convolve1d", "convolve2d"]

MODES = ("full", "same", "valid")


def conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **how: Any,
) -> Node:
    """An image, or several (images, rows, columns), with one filter, or several (filters, rows, columns): the result
    has the axes for images and filters that there are, (images, filters, rows, columns).

    border_mode: "valid" or "full". Shapes that are told are checked at each call.
    """
    image, filter_ = as_node(input), as_node(filters)
    for node in (image, filter_):
        if node.ndim not in (2, 3):
            raise RankError(f"signal.conv2d: {describe(node)} of type {node.type} should have 2 or 3 axes")
    own, other = (None if shape is None else _four(shape) for shape in (image_shape, filter_shape))
    images, kernels = (expand(node, (0, 1) if node.ndim == 2 else (1,)) for node in (image, filter_))
    made = nnet_conv.conv2d(images, kernels, own, other, border_mode, subsample, **how)
    dropped = [axis for axis, node in enumerate((image, filter_)) if node.ndim == 2]
    return dimshuffle(made, [axis for axis in range(4) if axis not in dropped])


def _four(shape: Any) -> tuple[Any, ...]:
    given = tuple(shape)
    return (*(given[:-2] or (1,)), 1, *given[-2:])


def convolve1d(in1: Any, in2: Any, mode: str = "full") -> Node:
    """Vectors convolved along the last axis; the others broadcast.

    mode: "full" (wherever they meet), "same" (as many as `in1` has, in the middle), "valid" (where the shorter one
    lies within the other). Raises GraphTypeError for another mode.
    """
    return _convolve("convolve1d", 1, in1, in2, mode)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Node:
    """Images convolved along the last two axes; the others broadcast. mode: as of `convolve1d`.

    boundary: what is around `in1`: "fill" (`fillvalue`), "wrap" (it again), "symm" (its mirror image). Raises
    GraphTypeError for another boundary or mode.
    """
    if boundary not in ("fill", "wrap", "symm"):
        raise GraphValueError(f"convolve2d: boundary {boundary!r} is not fill, wrap or symm")
    image, kernel = as_node(in1), as_node(in2)
    if mode not in MODES or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return _convolve("convolve2d", 2, image, kernel, mode)
    if mode == "valid":
        return _convolve("convolve2d", 2, image, kernel, mode)
    taps = [sizes.add(size, -1) for size in kernel.type.shape[-2:]]
    around = ((0, 0),) * (image.ndim - 2) + tuple((size, size) for size in taps)
    how: dict[str, Any] = {"mode": "constant", "constant_values": fillvalue}
    if boundary != "fill":
        how = {"mode": "wrap" if boundary == "wrap" else "symmetric"}
    whole = _convolve("convolve2d", 2, pad(image, around, **how), kernel, "inner")
    if mode == "full":
        return whole
    lengths = image.type.shape[-2:]
    begins = [sizes.floor_divide(tap, 2) for tap in taps]
    cut = [slice(begin, sizes.add(begin, length)) for begin, length in zip(begins, lengths, strict=True)]
    return whole[(..., *cut)]


def _convolve(name: str, rank: int, in1: Any, in2: Any, mode: str) -> Node:
    """The convolution that `mode` asks for; "inner": of a signal in which the kernel lies."""
    if mode not in (*MODES, "inner"):
        raise GraphValueError(f"{name}: mode {mode!r} is not {', '.join(MODES)}")
    left, right = as_node(in1), as_node(in2)
    for node in (left, right):
        if node.ndim < rank:
            raise RankError(f"{name}: {describe(node)} of type {node.type} has not {rank} axes")
    dtype = promote(left.type.dtype, right.type.dtype)
    wide = dtype if is_float(dtype) else "int64"
    depth = max(left.ndim, right.ndim) - rank
    left, right = (expand(cast(node, wide), range(depth + rank - node.ndim)) for node in (left, right))
    outer = [_common(axis, left, right, name) for axis in range(depth)]
    groups = sizes.product(outer)
    grouped = []
    for node, front in ((left, (1, groups, 1)), (right, (groups, 1, 1))):  # every pair of signals is a group of its own
        spatial = node.type.shape[depth:]
        grouped.append(reshape(broadcast_to(node, (*outer, *spatial)), (*front, *spatial)))
    pairs = zip(left.type.shape[depth:], right.type.shape[depth:], strict=True)
    made = conv.make_conv(grouped[0], grouped[1], [_along(size, taps, mode) for size, taps in pairs])
    return cast(reshape(made, (*outer, *made.type.shape[3:])), dtype)


def _common(axis: int, left: Node, right: Node, name: str) -> Size:
    """The size to which an axis of both broadcasts."""
    one, other = left.type.shape[axis], right.type.shape[axis]
    if sizes.equal(one, 1) or sizes.equal(other, 1):
        return other if sizes.equal(one, 1) else one
    return sizes.common(one, other, name, f", axis {axis}")


def _along(size: Size, taps: Size, mode: str) -> conv.ConvAxis:
    """The part of the full convolution that a mode says, along an axis: which one begins, and how many there are."""
    shortest, longest = sizes.minimum(size, taps), sizes.maximum(size, taps)
    begin: Size = 0
    count = sizes.add(sizes.add(size, taps), -1)
    match mode:
        case "same":
            begin, count = sizes.floor_divide(sizes.add(taps, -1), 2), size
        case "valid":
            begin, count = sizes.add(shortest, -1), sizes.add(sizes.subtract(longest, shortest), 1)
        case "inner":
            begin, count = sizes.add(taps, -1), sizes.add(sizes.subtract(size, taps), 1)
    return conv.ConvAxis(size, taps, count, 1, -1, 1, sizes.multiply(begin, -1), None)


explain_all(globals())
