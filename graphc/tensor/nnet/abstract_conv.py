"""Convolutions by Theano's names and arguments (theano.tensor.nnet.abstract_conv).

In: images (batch, channels, axes...) and filters (results, channels of a group, axes...); `border_mode` is "valid",
"full", "half", or for each axis a number or a pair of numbers; `subsample` are strides. Filters are flipped, as
mathematics has it, unless `filter_flip` is false. Shapes that are told are checked at each call; None stands for what
is not known. Out: nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.errors import GraphValueError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size
from graphc.ir.walk import as_size_node
from graphc.ops import conv
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import expand, iota
from graphc.startup.hooks import lazily
from graphc.tensor.arranging import pad
from graphc.tensor.contraction import einsum
from graphc.tensor.elementary import equal, greater_equal
from graphc.tensor.indexing import take
from graphc.tensor.inspection import Assert
from graphc.tensor.nnet import sliding as moving
from graphc.tensor.nnet.sliding import Sliding, by_images, by_kernels, joined, operands, paddings, slid, sliding, split
from graphc.tensor.shaping import as_size, of_rank, specify_shape

__all__ = [
    "assert_conv_shape", "assert_shape", "border_mode_to_pad", "causal_conv1d", "check_conv_gradinputs_shape",
    "conv2d_grad_wrt_inputs", "conv2d_grad_wrt_weights",
    "conv3d", "conv3d_grad_wrt_inputs", "conv3d_grad_wrt_weights", "get_conv_gradinputs_shape",
    "get_conv_gradinputs_shape_1axis", "get_conv_gradweights_shape", "get_conv_gradweights_shape_1axis",
    "get_conv_output_shape", "get_conv_shape_1axis", "separable_conv2d", "separable_conv3d",
]  # fmt: skip

bilinear_kernel_1D, bilinear_kernel_2D = moving.bilinear_kernel_1D, moving.bilinear_kernel_2D  # noqa: N816
bilinear_upsampling, frac_bilinear_upsampling = moving.bilinear_upsampling, moving.frac_bilinear_upsampling


__getattr__ = lazily("graphc.tensor.nnet.abstract_conv", {})  # Theano's classes of these ops


def _told(x: Any, shape: Any, name: str, rank: int) -> Node:
    """An operand of which a shape is told."""
    node = of_rank(x, f"{name}: {{}} should have {rank} axes", rank, rank)
    return node if shape is None else specify_shape(node, tuple(shape))


def _convolve(name: str, x: Any, w: Any, shapes: tuple[Any, Any], slide: Sliding) -> Node:
    rank = len(slide.strides) + 2
    images, kernels, dtype = operands(_told(x, shapes[0], name, rank), _told(w, shapes[1], name, rank), name)
    return cast(slid(images, kernels, slide, name), dtype)


# --- unshared filters -----------------------------------------------------------------------------------------------


def _unshared(name: str, x: Any, w: Any, shapes: tuple[Any, Any], slide: Sliding) -> Node:
    """Each result is a sum of its own over its window."""
    images, kernels = _told(x, shapes[0], name, 4), _told(w, shapes[1], name, 6)
    taps = kernels.type.shape[4:]
    wide = pad(images, ((0, 0), (0, 0), *paddings(slide.padding, images.type.shape[2:], taps, slide, name)))
    windows = split(wide, 1, slide.groups, name)
    for axis in (0, 1):  # [n, g, c, p, k, q, l]
        size, at = wide.type.shape[2 + axis], 3 + 2 * axis
        room = sizes.subtract(size, conv.extent(taps[axis], slide.dilations[axis]))
        count = sizes.add(sizes.floor_divide(room, slide.strides[axis]), 1)
        offset = expand(iota(taps[axis]), (0,))
        offset = as_size_node(sizes.add(taps[axis], -1)) - offset if slide.flip else offset
        place = expand(iota(count), (1,)) * slide.strides[axis] + offset * slide.dilations[axis]
        windows = take(windows, place, at)
    made = einsum("ngcpkql,gopqckl->ngopq", windows, split(kernels, 0, slide.groups, name))
    return joined(made, 1)


# --- derivatives ----------------------------------------------------------------------------------------------------


def _spatial(shape: Any, rank: int, name: str) -> list[Size]:
    given = list(shape)
    if len(given) != rank + 2 or any(size is None for size in given[2:]):
        raise GraphValueError(f"{name}: a shape of {rank + 2} sizes is needed, of which the last {rank} are known")
    return [as_size(size, f"{name}: a size") for size in given[2:]]


def _with_sizes(made: Node, shape: Any) -> Node:
    """A result whose first sizes are told too."""
    told = [None if size is None else as_size(size) for size in list(shape)[:2]]
    return specify_shape(made, (*told, *(None,) * (made.ndim - 2)))


def _checked_top(dy: Node, w: Node, slide: Sliding, pads: Any, counts: Sequence[Size]) -> Node:
    """A gradient of the sizes that the convolution of images of these sizes has; checked."""
    shape = []
    for axis, count in enumerate(counts):
        whole = sizes.add(count, sizes.add(*pads[axis]))
        room = sizes.subtract(whole, conv.extent(w.type.shape[3 + axis], slide.dilations[axis]))
        shape.append(sizes.add(sizes.floor_divide(room, slide.strides[axis]), 1))
    return specify_shape(dy, (None, None, None, *(as_size_node(size) for size in shape)))


def _refuse(unshared: bool, name: str) -> None:
    if unshared:
        raise GraphValueError(f"{name}: of unshared filters take the derivative by grad")


# --- the functions of images and of volumes ---------------------------------------------------------------------------

SPATIAL = {2: "rows, columns", 3: "depth, rows, columns"}
"""The spatial axes of images and of volumes."""


def _named(rank: int, name: str, doc: str, function: Callable[..., Node]) -> Callable[..., Node]:
    """A function under its name: "{}" in `name` is the rank, "{axes}" in its docstring are the spatial axes."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc.format(rank=rank, axes=SPATIAL[rank])
    return function


def _convolution_of(rank: int) -> Callable[..., Node]:
    name, ones = f"conv{rank}d", (1,) * rank

    def convolve(
        input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None, border_mode: Any = "valid",
        subsample: Any = ones, filter_flip: bool = True, filter_dilation: Any = ones, num_groups: int = 1,
        unshared: bool = False,
    ) -> Node:  # fmt: skip
        how = sliding(rank, subsample, border_mode, filter_dilation, num_groups, filter_flip, name)
        if unshared and rank != 2:
            raise GraphValueError(f"{name}: {ONLY_2D}")
        return (_unshared if unshared else _convolve)(name, input, filters, (input_shape, filter_shape), how)

    return _named(rank, name, CONVOLUTION, convolve)


CONVOLUTION = """The convolution of images (batch, channels, {axes}) with filters (results, channels, {axes}).

    With `unshared`, of two spatial axes alone, each place has filters of its own: (results, result rows, result
    columns, channels, rows, columns). The result is (batch, results, {axes}), of the dtype that NumPy has for both.

        conv{rank}d(images, filters, border_mode="half")

    Raises RankError for other ranks, GraphValueError for options that do not fit, ShapeError where sizes do not.
    """
ONLY_2D = "unshared filters are there for conv2d alone"


def _separable_of(rank: int) -> Callable[..., Node]:
    name, ones = f"separable_conv{rank}d", (1,) * rank

    def separable(
        input: Any, depthwise_filters: Any, pointwise_filters: Any, num_channels: int, input_shape: Any = None,
        depthwise_filter_shape: Any = None, pointwise_filter_shape: Any = None, border_mode: Any = "valid",
        subsample: Any = ones, filter_flip: bool = True, filter_dilation: Any = ones,
    ) -> Node:  # fmt: skip
        deep = sliding(rank, subsample, border_mode, filter_dilation, num_channels, filter_flip, name)
        flat = sliding(rank, 1, "valid", 1, 1, filter_flip, name)
        made = _convolve(name, input, depthwise_filters, (input_shape, depthwise_filter_shape), deep)
        return _convolve(name, made, pointwise_filters, (None, pointwise_filter_shape), flat)

    return _named(rank, name, SEPARABLE, separable)


SEPARABLE = """A convolution of each of `num_channels` channels by filters of its own, (results, 1, {axes}), then one by
    filters of a single element along each of {axes}: (results, channels, 1, ...). Errors are those of `conv{rank}d`."""


def _inputs_gradient_of(rank: int) -> Callable[..., Node]:
    name, ones = f"conv{rank}d_grad_wrt_inputs", (1,) * rank

    def by_inputs(
        output_grad: Any, filters: Any, input_shape: Any, filter_shape: Any = None, border_mode: Any = "valid",
        subsample: Any = ones, filter_flip: bool = True, filter_dilation: Any = ones, num_groups: int = 1,
        unshared: bool = False,
    ) -> Node:  # fmt: skip
        _refuse(unshared, name)
        how = sliding(rank, subsample, border_mode, filter_dilation, num_groups, filter_flip, name)
        counts = _spatial(input_shape, rank, name)
        given = _told(output_grad, None, name, rank + 2), _told(filters, filter_shape, name, rank + 2)
        top, kernels, dtype = operands(*given, name)
        pads = paddings(how.padding, counts, kernels.type.shape[2:], how, name)
        top, kernels = split(top, 1, how.groups, name), split(kernels, 0, how.groups, name)
        made = by_images(_checked_top(top, kernels, how, pads, counts), kernels, how, pads, counts)
        return _with_sizes(cast(joined(made, 1), dtype), input_shape)

    return _named(rank, name, BY_INPUTS, by_inputs)


BY_INPUTS = """The derivative of `conv{rank}d` by images of `input_shape`, of which the last {rank} sizes are numbers or
    scalars. `output_grad` has the shape of the result. Errors are those of `conv{rank}d`."""


def _weights_gradient_of(rank: int) -> Callable[..., Node]:
    name, ones = f"conv{rank}d_grad_wrt_weights", (1,) * rank

    def by_weights(
        input: Any, output_grad: Any, filter_shape: Any, input_shape: Any = None, border_mode: Any = "valid",
        subsample: Any = ones, filter_flip: bool = True, filter_dilation: Any = ones, num_groups: int = 1,
        unshared: bool = False,
    ) -> Node:  # fmt: skip
        _refuse(unshared, name)
        how = sliding(rank, subsample, border_mode, filter_dilation, num_groups, filter_flip, name)
        counts = _spatial(filter_shape, rank, name)
        given = _told(input, input_shape, name, rank + 2), _told(output_grad, None, name, rank + 2)
        images, top, dtype = operands(*given, name)
        pads = paddings(how.padding, images.type.shape[2:], counts, how, name)
        made = by_kernels(split(images, 1, how.groups, name), split(top, 1, how.groups, name), how, pads, counts)
        return _with_sizes(cast(joined(made, 0), dtype), filter_shape)

    return _named(rank, name, BY_WEIGHTS, by_weights)


BY_WEIGHTS = """The derivative of `conv{rank}d` by filters of `filter_shape`, of which the last {rank} sizes are numbers
    or scalars. `output_grad` has the shape of the result. Errors are those of `conv{rank}d`."""

conv2d, conv3d = _convolution_of(2), _convolution_of(3)
separable_conv2d, separable_conv3d = _separable_of(2), _separable_of(3)
conv2d_grad_wrt_inputs, conv3d_grad_wrt_inputs = _inputs_gradient_of(2), _inputs_gradient_of(3)
conv2d_grad_wrt_weights, conv3d_grad_wrt_weights = _weights_gradient_of(2), _weights_gradient_of(3)


def causal_conv1d(
    input: Any,
    filters: Any,
    filter_shape: Any = None,
    input_shape: Any = None,
    subsample: int = 1,
    filter_flip: bool = True,
    filter_dilation: int = 1,
    num_groups: int = 1,
    unshared: bool = False,
) -> Node:
    """A convolution of (batch, channels, length) in which no result needs what comes after it: padded in front."""
    if unshared:
        raise GraphValueError(f"causal_conv1d: {ONLY_2D}")
    images, kernels = _told(input, input_shape, "causal_conv1d", 3), _told(filters, filter_shape, "causal_conv1d", 3)
    before = sizes.add(conv.extent(kernels.type.shape[2], filter_dilation), -1)
    how = sliding(1, subsample, ((before, 0),), filter_dilation, num_groups, filter_flip, "causal_conv1d")
    return _convolve("causal_conv1d", images, kernels, (None, None), how)


# --- shapes ---------------------------------------------------------------------------------------------------------


def border_mode_to_pad(mode: Any, convdim: int, kshp: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """The number of elements that a border mode puts before and behind along each axis, for kernels of these sizes."""
    slide = Sliding((1,) * convdim, (1,) * convdim, mode, 1, False)
    taps = [as_size(size) for size in kshp]
    return paddings(tuple(mode) if isinstance(mode, list) else mode, taps, taps, slide, "border_mode")


def _ends(mode: Any, extent: Any) -> tuple[Any, Any]:
    """The padding of one axis."""
    named = {"half": extent // 2, "full": extent - 1, "valid": 0}
    pair = tuple(mode) if isinstance(mode, (tuple, list)) else (named.get(mode, mode),) * 2
    if any(isinstance(each, str) for each in pair):
        raise GraphValueError(f"border mode {mode!r} is not valid, full, half or numbers")
    if any(isinstance(each, int) and each < 0 for each in pair):
        raise GraphValueError(f"border mode {mode!r} is negative")
    return pair


def get_conv_shape_1axis(
    image_shape: Any, kernel_shape: Any, border_mode: Any, subsample: Any, dilation: Any = 1
) -> Any:
    """The size of a convolution along an axis; None where one is not known."""
    if None in [each for each in (image_shape, kernel_shape, border_mode, subsample, dilation) if not _is_node(each)]:
        return None
    extent = (kernel_shape - 1) * dilation + 1
    before, behind = _ends(border_mode, extent)
    return (image_shape + before + behind - extent) // subsample + 1


def get_conv_gradweights_shape_1axis(
    image_shape: Any, top_shape: Any, border_mode: Any, subsample: Any, dilation: Any
) -> Any:
    """The size of kernels along an axis; None where it does not follow from those of image and result."""
    if None in [each for each in (image_shape, top_shape, border_mode, subsample, dilation) if not _is_node(each)]:
        return None
    if subsample != 1 or (isinstance(border_mode, str) and border_mode == "half"):
        return None
    if isinstance(border_mode, str) and border_mode == "full":
        extent = top_shape - image_shape
    else:
        before, behind = _ends(border_mode, 1)
        extent = image_shape + before + behind - top_shape
    return extent // dilation + 1


def get_conv_gradinputs_shape_1axis(
    kernel_shape: Any, top_shape: Any, border_mode: Any, subsample: Any, dilation: Any
) -> Any:
    """The size of images along an axis; None where it does not follow from those of kernel and result."""
    if None in [each for each in (kernel_shape, top_shape, border_mode, subsample, dilation) if not _is_node(each)]:
        return None
    if subsample != 1:
        return None
    extent = (kernel_shape - 1) * dilation + 1
    before, behind = _ends(border_mode, extent)
    return top_shape + extent - 1 - before - behind


def _is_node(value: Any) -> bool:
    return isinstance(value, Node)


def _each_axis(function: Any, left: Any, right: Any, mode: Any, subsample: Any, dilation: Any) -> list[Any]:
    rank = len(subsample)
    modes = list(mode) if isinstance(mode, (tuple, list)) else [mode] * rank
    dilations = [1] * rank if dilation is None else dilation
    return list(map(function, left[2:], right[2:], modes, subsample, dilations))


def get_conv_output_shape(
    image_shape: Any, kernel_shape: Any, border_mode: Any, subsample: Any, filter_dilation: Any = None
) -> tuple[Any, ...]:
    """The shape of a convolution: of images and kernels of these shapes, in which None stands for what is not known."""
    sizes = _each_axis(get_conv_shape_1axis, image_shape, kernel_shape, border_mode, subsample, filter_dilation)
    return (image_shape[0], kernel_shape[0], *sizes)


def get_conv_gradweights_shape(
    image_shape: Any, top_shape: Any, border_mode: Any, subsample: Any, filter_dilation: Any = None,
    num_groups: int = 1, unshared: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The shape of kernels, from those of images and results."""
    _refuse(unshared, "get_conv_gradweights_shape")
    sizes = _each_axis(
        get_conv_gradweights_shape_1axis, image_shape, top_shape, border_mode, subsample, filter_dilation
    )
    channels = image_shape[1] if image_shape[1] is None or num_groups == 1 else image_shape[1] // num_groups
    return (top_shape[1], channels, *sizes)


def get_conv_gradinputs_shape(
    kernel_shape: Any,
    top_shape: Any,
    border_mode: Any,
    subsample: Any,
    filter_dilation: Any = None,
    num_groups: int = 1,
) -> tuple[Any, ...]:
    """The shape of images, from those of kernels and results."""
    sizes = _each_axis(
        get_conv_gradinputs_shape_1axis, kernel_shape, top_shape, border_mode, subsample, filter_dilation
    )
    channels = kernel_shape[1] if kernel_shape[1] is None else kernel_shape[1] * num_groups
    return (top_shape[0], channels, *sizes)


def check_conv_gradinputs_shape(
    image_shape: Sequence[Any],
    kernel_shape: Sequence[Any],
    output_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
) -> bool:
    """Tell whether a convolution of images and kernels of these shapes may have a result of `output_shape`: False only
    where sizes that are known contradict.

    >>> check_conv_gradinputs_shape((8, 3, 9, 9), (4, 3, 3, 3), (8, 4, 7, None), "valid", (1, 1))
    True
    """
    rank = len(image_shape)
    axes = {rank, len(kernel_shape), len(output_shape), len(subsample) + 2, len(filter_dilation or subsample) + 2}
    if len(axes) > 1:
        return False
    computed = get_conv_output_shape(image_shape, kernel_shape, border_mode, subsample, filter_dilation)
    pairs = zip(output_shape, computed, strict=True)
    known = [tuple(map(as_size, pair)) for pair in pairs if not any(size is None for size in pair)]
    return all(given == made for given, made in known if isinstance(given, int) and isinstance(made, int))


def assert_conv_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """`shape` of images, kernels or a result of a convolution, held to be one: the first two sizes are not negative,
    the others not 0 either. Sizes that are not known are checked at each call.

    Raises ValueError for a size that is known. A call raises AssertionFailed, an AssertionError.
    """
    held = []
    for axis, size in enumerate(shape):
        least, known = int(axis > 1), as_size(size)
        message = f"assert_conv_shape: size {axis} should be {least} at least"
        if isinstance(known, int) and known < least:
            raise ValueError(f"{message}, not {known}")
        held.append(size if isinstance(known, int) else Assert(message)(known, greater_equal(known, least)))
    return tuple(held)


def assert_shape(x: Any, expected_shape: Sequence[Any] | None, msg: str = "Unexpected shape.") -> Node:
    """`x`, held to sizes, of which those that are None are not checked. A call raises AssertionFailed with `msg`."""
    node = as_node(x)
    pairs = zip(node.shape, expected_shape or (), strict=bool(expected_shape))
    tests = [equal(size, expected) for size, expected in pairs if expected is not None]
    return Assert(msg)(node, *tests) if tests else node


explain_all(globals())
