"""Convolutions of one to three spatial axes, in the general form, and transposed; images made larger.

    convolution(images, kernels, stride=2, padding="same")

In: images and kernels, float or integer; strides and dilations, a whole number or one for each spatial axis; padding.
Out: nodes: images convolved in float32 or float64, integers in int64, and cast to the dtype NumPy has for both.

Images are (batch, channels, axes...), kernels (results, channels of a group, axes...); with `channels_last` images are
(batch, axes..., channels) and kernels (axes..., channels of a group, results).

Padding is "valid" (none), "same" (as many results as elements, divided by the stride, rounded up; what is odd behind),
"full" (every place where the kernel meets the image), "half" (half the kernel on both sides), or for each axis a number
or a pair of numbers of elements, before and behind. What is padded adds nothing to a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from graphc.arrays.dtypes import is_float, promote
from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Guard, Node, Size, describe, lazy_text
from graphc.ir.walk import as_size_node
from graphc.ops import conv, shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise, in_floats
from graphc.ops.shape import dimshuffle, expand, guard_axis, label_origin, reshape
from graphc.options import options
from graphc.startup.record import record
from graphc.tensor.creation import arange
from graphc.tensor.elementary import add, mul, sub, true_div
from graphc.tensor.indexing import take
from graphc.tensor.joining import concatenate
from graphc.tensor.shaping import as_axis, as_size, label_operand

__all__ = [
    "bilinear_kernel_1D", "bilinear_kernel_2D", "bilinear_upsampling", "convolution", "frac_bilinear_upsampling",
    "transposed_convolution",
]  # fmt: skip

Pads = tuple[tuple[Size, Size], ...]


@record()
class Sliding:
    """The movement of a kernel over images along each spatial axis."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Any
    groups: int
    flip: bool


def for_each(value: Any, rank: int, what: str, least: int = 1) -> tuple[int, ...]:
    """A whole number, or one for each axis, as numbers."""
    given = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * rank
    numbers = []
    for each in given:
        number = as_size(each, what)
        if not isinstance(number, int) or number < least:
            raise GraphValueError(f"{what} should be a known number of at least {least}, not {each!r}")
        numbers.append(number)
    if len(numbers) != rank:
        raise GraphValueError(f"{what}: {len(numbers)} numbers for {rank} spatial axes")
    return tuple(numbers)


def sliding(rank: int, stride: Any, padding: Any, dilation: Any, groups: Any, flip: Any, what: str) -> Sliding:
    """The options of a convolution, checked."""
    (count,) = for_each(groups, 1, f"{what}: the number of groups")
    strides = for_each(stride, rank, f"{what}: a stride")
    return Sliding(strides, for_each(dilation, rank, f"{what}: a dilation"), padding, count, bool(flip))


def _by_word(word: str, image: Size, extent: Size, stride: int, what: str) -> tuple[Size, Size]:
    match word.lower():
        case "valid":
            return 0, 0
        case "full":
            return (sizes.add(extent, -1),) * 2
        case "half":
            return (sizes.floor_divide(extent, 2),) * 2
        case "same":
            return _same(image, extent, stride)
    raise GraphValueError(f"{what}: padding {word!r} is not valid, same, full, half or numbers")


def paddings(padding: Any, images: Sequence[Size], taps: Sequence[Size], slide: Sliding, what: str) -> Pads:
    """The number of elements that are put before and behind along each axis."""
    extents = list(map(conv.extent, taps, slide.dilations))
    single = isinstance(padding, str) or not isinstance(padding, Sequence)
    given = [padding] * len(extents) if single else list(padding)
    if len(given) != len(extents):
        raise GraphValueError(
            f"{what}: padding {padding!r} is for {len(given)} axes, there are {len(extents)} spatial ones"
        )
    pads = []
    for each, image, extent, stride in zip(given, images, extents, slide.strides, strict=True):
        if isinstance(each, str):
            pads.append(_by_word(each, image, extent, stride, what))
            continue
        pair = tuple(each) if isinstance(each, Sequence) else (each, each)
        if len(pair) != 2:
            raise GraphValueError(f"{what}: padding {each!r} should be a number or a pair of numbers")
        before, behind = (as_size(number, f"{what}: padding") for number in pair)
        if any(isinstance(number, int) and number < 0 for number in (before, behind)):
            raise GraphValueError(f"{what}: padding {each!r} is negative")
        pads.append((before, behind))
    return tuple(pads)


def _same(size: Size, extent: Size, stride: int) -> tuple[Size, Size]:
    count = sizes.floor_divide(sizes.add(size, stride - 1), stride)
    steps = sizes.multiply(sizes.add(count, -1), stride)
    missing = sizes.add(extent, -1)
    if stride > 1:
        missing = sizes.maximum(sizes.subtract(sizes.add(steps, extent), size), 0)
    before = sizes.floor_divide(missing, 2)
    return before, sizes.subtract(missing, before)


def operands(x: Any, w: Any, what: str) -> tuple[Node, Node, str]:
    """Images and kernels in the dtype in which they are convolved, and that of the result."""
    nodes = as_node(x), as_node(w)
    dtype = promote(nodes[0].type.dtype, nodes[1].type.dtype)
    wide = dtype if is_float(dtype) else "int64"
    for node in nodes:
        if not 3 <= node.ndim <= 2 + conv.MOST_SPATIAL:
            raise RankError(f"{what}: {describe(node)} of type {node.type} has not 1 to 3 spatial axes")
    if nodes[0].ndim != nodes[1].ndim:
        raise RankError(f"{what}: the operands should be of one rank")
    return cast(nodes[0], wide), cast(nodes[1], wide), dtype


def split(x: Node, axis: int, groups: int, what: str) -> Node:
    """An axis of channels as two: groups, and the channels of a group. Raises where they are no multiple."""
    size = x.type.shape[axis]
    if groups == 1:
        return expand(x, (axis,))
    if isinstance(size, int):
        if size % groups:
            raise GraphValueError(f"{what}: {size} channels of {describe(x)} are no multiple of {groups} groups")
        return reshape(x, (*x.type.shape[:axis], groups, size // groups, *x.type.shape[axis + 1 :]))
    each = sizes.floor_divide(size, groups)
    message = f"{label_origin(x)} has {{left}} channels, which are no multiple of {groups} groups"
    held = guard_axis(x, axis, Guard(size, "==", sizes.multiply(each, groups), message))
    return reshape(held, (*x.type.shape[:axis], groups, each, *x.type.shape[axis + 1 :]))


def joined(y: Node, axis: int) -> Node:
    """Two axes as one: groups, and what is beside them."""
    shape = y.type.shape
    if sizes.equal(shape[axis], 1):
        return dimshuffle(y, [place for place in range(y.ndim) if place != axis])
    return reshape(y, (*shape[:axis], sizes.multiply(shape[axis], shape[axis + 1]), *shape[axis + 2 :]))


def convolution(
    x: Any,
    w: Any,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    flip: bool = False,
    channels_last: bool = False,
) -> Node:
    """`x` convolved with `w`: for each result the sum of what a kernel covers, multiplied by it, at every place.

    x: (batch, channels, 1 to 3 axes...). w: (results, channels / groups, axes...). The result is (batch, results,
    axes...), of (size + padding - ((taps - 1) * dilation + 1)) // stride + 1 elements along each axis. groups: in how
    many parts of their own channels and results are divided; as many as there are channels for depthwise kernels. flip:
    as mathematics has it, else the kernel is applied as it stands (a cross-correlation). Padding, `channels_last`: see
    above. Raises GraphTypeError for ranks, groups and numbers that do not fit; ShapeError, when it is known or
    at the call, where channels differ or a kernel does not fit into the padded image.

        T.nnet.convolution(images, kernels, stride=2, padding="same")
    """
    images, kernels, dtype = operands(x, w, "convolution")
    what = lazy_text(lambda: f"convolution of {describe(images)} with {describe(kernels)}")
    slide = sliding(images.ndim - 2, stride, padding, dilation, groups, flip, what)
    return cast(slid(images, kernels, slide, what, channels_last), dtype)


def slid(x: Node, w: Node, slide: Sliding, what: str, channels_last: bool = False) -> Node:
    """A convolution of images, of the dtype that it is computed in."""
    last = x.ndim - 1
    if channels_last:  # groups are axes of their own before any are moved: so results are written where they go
        w = split(w, last, slide.groups, what)
        x, w = split(x, last, slide.groups, what), dimshuffle(w, (last, last + 1, last - 1, *range(last - 1)))
        parts = dimshuffle(x, (0, last, last + 1, *range(1, last))), w
    else:
        parts = split(x, 1, slide.groups, what), split(w, 0, slide.groups, what)
    pads = paddings(slide.padding, parts[0].type.shape[3:], parts[1].type.shape[3:], slide, what)
    dilations = [-dilation if slide.flip else dilation for dilation in slide.dilations]
    lows, highs = zip(*pads, strict=True)
    found = conv.convolve(*parts, slide.strides, dilations, lows, highs)
    return joined(dimshuffle(found, (0, *range(3, last + 2), 1, 2)), last) if channels_last else joined(found, 1)


def transposed_convolution(
    x: Any,
    w: Any,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    flip: bool = False,
    channels_last: bool = False,
    more: Any = 0,
) -> Node:
    """The transpose of `convolution` with the same arguments: each element of `x` adds its multiple of a kernel to the
    result, `stride` apart.

    x: (batch, channels, axes...). w: (channels, results / groups, axes...), so the kernels of the convolution it is the
    transpose of (with `channels_last` (axes..., results / groups, channels)). The result has (size - 1) * stride +
    (taps - 1) * dilation + 1 elements along an axis, less the padding, which is cut off, and `more` at its end, less
    than the stride. With padding "same" it has size * stride. Errors as of `convolution`.
    """
    what = "transposed_convolution"
    images, kernels, dtype = operands(x, w, what)
    last = images.ndim - 1
    if channels_last:
        images = dimshuffle(images, (0, last, *range(1, last)))
        kernels = dimshuffle(kernels, (last, last - 1, *range(last - 1)))
    rank = images.ndim - 2
    slide = sliding(rank, stride, padding, dilation, groups, flip, what)
    ends = for_each(more, rank, f"{what}: more elements", 0)
    if isinstance(padding, str) and padding.lower() == "same":
        wanted = [sizes.multiply(size, step) for size, step in zip(images.type.shape[2:], slide.strides, strict=True)]
        pads = paddings(padding, wanted, kernels.type.shape[2:], slide, what)
    else:
        wanted = []
        pads = paddings(padding, images.type.shape[2:], kernels.type.shape[2:], slide, what)
    counts: list[Size] = []
    for axis, (size, taps) in enumerate(zip(images.type.shape[2:], kernels.type.shape[2:], strict=True)):
        whole = sizes.add(
            conv.extent(size, slide.strides[axis]), sizes.add(conv.extent(taps, slide.dilations[axis]), -1)
        )
        cut = sizes.add(*pads[axis])
        counts.append(sizes.add(wanted[axis] if wanted else sizes.subtract(whole, cut), ends[axis]))
    made = by_images(split(images, 1, slide.groups, what), split(kernels, 0, slide.groups, what), slide, pads, counts)
    result = cast(joined(made, 1), dtype)
    return dimshuffle(result, (0, *range(2, result.ndim), 1)) if channels_last else result


def along(
    slide: Sliding, pads: Pads, images: Sequence[Size], taps: Sequence[Size], counts: Sequence[Size]
) -> tuple[conv.ConvAxis, ...]:
    """The axes of a convolution of images of these sizes."""
    axes = []
    for number, (size, tap, count) in enumerate(zip(images, taps, counts, strict=True)):
        dilation, low = slide.dilations[number], pads[number][0]
        if slide.flip:
            low = sizes.subtract(low, sizes.multiply(sizes.add(tap, -1), dilation))
            dilation = -dilation
        axes.append(conv.ConvAxis(size, tap, count, slide.strides[number], dilation, 1, low, None))
    return tuple(axes)


def by_images(dy: Node, w: Node, slide: Sliding, pads: Pads, counts: Sequence[Size]) -> Node:
    """The derivative by images of these sizes of a convolution; dy[n, g, o, p...], w[g, o, c, k...]."""
    axes = along(slide, pads, counts, w.type.shape[3:], dy.type.shape[3:])
    turned = dimshuffle(w, (0, 2, 1, *range(3, w.ndim)))
    return conv.make_conv(dy, turned, [conv.by_image(axis) for axis in axes])


def by_kernels(x: Node, dy: Node, slide: Sliding, pads: Pads, counts: Sequence[Size]) -> Node:
    """The derivative by kernels of these sizes, as [g, o, c, k...]; x[n, g, c, i...], dy[n, g, o, p...]."""
    spatial = range(3, x.ndim)
    axes = along(slide, pads, x.type.shape[3:], counts, dy.type.shape[3:])
    turned = dimshuffle(x, (2, 1, 0, *spatial)), dimshuffle(dy, (1, 2, 0, *spatial))
    return dimshuffle(conv.make_conv(*turned, [conv.by_kernel(axis) for axis in axes]), (1, 2, 0, *spatial))


# --- upsampling -------------------------------------------------------------------------------------------------------
# Images made larger, between whose elements the new ones are interpolated (Theano's).
#
# In: images (batch, channels, rows, columns). Out: nodes, of elements read where they stand.


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
    weight = as_axis(weight, axis, x.ndim)
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
    what = label_operand("bilinear_upsampling", x)
    if x.ndim != 4:
        raise RankError(f"{what}: it has {x.ndim} axes, not 4")
    for axis, (ratio, step) in enumerate(ratios, 2):
        if isinstance(ratio, int) and ratio < 1:
            raise ValueError(f"{what}: the ratio {ratio} is not positive")
        x = _stretched(x, axis, ratio, step)
    return x
