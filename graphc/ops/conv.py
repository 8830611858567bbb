"""Convolutions of groups of channels, of any number of spatial axes.

In: images x[n, g, c, i...], kernels w[g, o, c, k...], and int64 scalars: for each spatial axis where the images begin,
and how many results there are. Out: the op's record, and a function that makes its node, whose element is

    y[n, g, o, p...] = sum of x[n, g, c, i...] * w[g, o, c, k...] over c and k
        where i * spread = p * stride + k * dilation - low, along each axis

or with its axes in another order, where it is to be stored so. A term of which there is no such i, a whole number
within the image, is no part of the sum: around an image, and between the elements of one that is spread, there is
nothing that a NaN or an infinity of the kernel could meet.

Numbers that stand for strides, dilations and spreads of all kinds of convolution make it closed under differentiation:
the derivatives by images and by kernels are convolutions. A kernel is flipped where its dilation is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.facts import below_broadcasts
from graphc.ir.lowering import SUFFIXES, ByRows, Call, Extent, Passed, Result, Strided
from graphc.ir.node import OPS, Array, Attributes, Guard, Node, Size, Type, define_op, describe, lazy_text, make
from graphc.ir.types import Argument, Row, samples
from graphc.ir.walk import as_size_node
from graphc.ops import shape as shapes
from graphc.ops.elementwise import repeated
from graphc.startup.record import record

MOST_SPATIAL = 3
"""Spatial axes that a convolution may have."""


@record()
class ConvAxis:
    """A convolution along one spatial axis. size, taps, count: of the image, the kernel and the result; high: elements
    of padding behind the image, where the kernel has to fit into the padded image."""

    size: Size
    taps: Size
    count: Size
    stride: int
    dilation: int
    spread: int
    low: Size
    high: Size | None


def axes_of(node: Node) -> tuple[ConvAxis, ...]:
    """The spatial axes of a convolution."""
    x, w, *numbers = node.args
    rank = x.ndim - 3
    all_sizes = [sizes.as_size(number) for number in numbers]
    lows, counts = all_sizes[:rank], all_sizes[rank : 2 * rank]
    highs: Sequence[Size | None] = all_sizes[2 * rank :] or [None] * rank
    steps = (node.attrs[name] for name in ("strides", "dilations", "spreads"))
    return tuple(map(ConvAxis, x.type.shape[3:], w.type.shape[3:], counts, *steps, lows, highs))


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, w, *numbers = args
    what = lazy_text(lambda: f"convolution of {describe(x)} of type {x.type} with {describe(w)} of type {w.type}")
    rank = x.ndim - 3
    if x.type.dtype != w.type.dtype or x.type.dtype not in SUFFIXES:
        raise GraphTypeError(f"{what}: the operands should be of one dtype of {', '.join(SUFFIXES)}")
    steps = [attrs[name] for name in ("strides", "dilations", "spreads")]
    if not 1 <= rank <= MOST_SPATIAL or w.ndim != x.ndim or any(len(step) != rank for step in steps):
        raise GraphTypeError(f"{what}: of 1 to {MOST_SPATIAL} spatial axes each, and as many strides and dilations")
    if 0 in steps[0] or 0 in steps[1] or min(steps[2]) < 1 or len(numbers) not in (2 * rank, 3 * rank):
        raise GraphValueError(f"{what}: strides and dilations should not be 0, spreads be positive")
    counts = shapes.as_sizes(numbers, what)[rank : 2 * rank]
    sizes.common(x.type.shape[1], w.type.shape[0], what, ", the groups")
    sizes.common(x.type.shape[2], w.type.shape[2], what, ", the channels of a group")
    shapes.check_naturals(counts, what)
    shape = (x.type.shape[0], x.type.shape[1], w.type.shape[1], *counts)
    order = attrs.get("order", range(x.ndim))
    if any(axis not in order and not sizes.equal(size, 1) for axis, size in enumerate(shape)):
        raise GraphTypeError(f"{what}: axes {order} of {shape}, of which others are more than one element")
    return Type(x.type.dtype, tuple(shape[axis] for axis in order))


def order_of(node: Node) -> tuple[int, ...]:
    """The axis (image, group, channel, places...) that each axis of the result is."""
    return tuple(node.attrs.get("order", range(node.args[0].ndim)))


def in_order(node: Node, order: Sequence[int]) -> Node:
    """A convolution whose result is written with its axes in this order; axes of one element may be left out."""
    before = order_of(node)
    return make(OPS["conv"], node.args, {**node.attrs, "order": tuple(before[axis] for axis in order)})


def _guards(node: Node) -> Sequence[Guard]:
    x, w = node.args[:2]
    what = f"{shapes.label_op(node)} of {_label(x)} with {_label(w)}"
    guards = shapes.equality_guard(
        x.type.shape[1], w.type.shape[0], f"{what}: {{left}} groups of channels, and {{right}}"
    )
    text = f"{what}: the images have {{left}} channels in a group, the kernels {{right}}"
    guards += shapes.equality_guard(x.type.shape[2], w.type.shape[2], text)
    axes = axes_of(node)
    for number, axis in enumerate(axes):
        if axis.high is None:
            continue
        taken, room = extent(axis.taps, axis.dilation), padded(axis)
        if isinstance(taken, int) and isinstance(room, int) and taken <= room:
            continue
        text = f"{what}: the kernel takes {{left}} elements along spatial axis {number}, the padded image has {{right}}"
        guards.append(Guard(taken, "<=", room, text))
    return [*guards, *shapes.naturals_guard([1 if axis.high is not None else axis.count for axis in axes], what)]


def _label(node: Node) -> str:
    """The convolved array's name, below what put its channels into groups."""
    return shapes.label_origin(below_broadcasts(node, ("reshape", "cast"), named=False))


def extent(taps: Size, dilation: int) -> Size:
    """The elements of an image that a kernel goes over."""
    return sizes.add(sizes.multiply(sizes.subtract(taps, 1), abs(dilation)), 1)


def padded(axis: ConvAxis) -> Size:
    """The elements of an image with its padding."""
    spread = extent(axis.size, axis.spread)
    low = axis.low
    if axis.dilation < 0:
        low = sizes.subtract(low, sizes.multiply(sizes.subtract(axis.taps, 1), axis.dilation))
    assert axis.high is not None
    return sizes.add(sizes.add(spread, low), axis.high)


# --- NumPy's meaning ------------------------------------------------------------------------------------------------


def places(axis: tuple[int, ...], tap: int) -> tuple[Array, Array]:
    """The results that a tap of the kernel adds to along an axis, and where the elements of the image stand."""
    size, count, stride, dilation, spread, low = axis
    at = np.arange(count) * stride + tap * dilation - low
    there = np.flatnonzero((at % spread == 0) & (at >= 0) & (at < size * spread))
    return there, at[there] // spread


def convolve_arrays(x: Array, w: Array, y: Array, axes: Sequence[tuple[int, ...]]) -> None:
    """Adds the convolution of arrays to `y`. axes: of each spatial one the size, the count, stride, dilation, spread
    and low."""
    with np.errstate(all="ignore"):
        for tap in np.ndindex(*w.shape[3:]):
            places_of_tap = [places(axis, k) for axis, k in zip(axes, tap, strict=True)]
            if not all(len(there) for there, _ in places_of_tap):
                continue
            mine = np.ix_(*map(np.arange, x.shape[:3]), *(at for _, at in places_of_tap))
            outputs = np.ix_(*map(np.arange, y.shape[:3]), *(there for there, _ in places_of_tap))
            y[outputs] += np.einsum("ngc...,goc->ngo...", x[mine], w[(..., *tap)])


def _eval(node: Node, x: Array, w: Array, *numbers: Array) -> Array:
    rank = x.ndim - 3
    lows, counts = ([int(number) for number in numbers[begin : begin + rank]] for begin in (0, rank))
    y = np.zeros((*x.shape[:2], w.shape[1], *counts), node.type.dtype)
    steps = (node.attrs[name] for name in ("strides", "dilations", "spreads"))
    convolve_arrays(x, w, y, list(zip(x.shape[3:], counts, *steps, lows, strict=True)))
    order = order_of(node)
    left = [axis for axis in range(y.ndim) if axis not in order]
    return y.transpose(*order, *left).reshape(*(y.shape[axis] for axis in order))


# --- the function that computes it ------------------------------------------------------------------------------------


def _passed(node: Node) -> Sequence[Passed]:
    """For the function all have MOST_SPATIAL spatial axes: those in front have one element."""
    x, w = node.args[:2]
    rank = x.ndim - 3
    places = (*(None,) * (MOST_SPATIAL - rank), *range(3, x.ndim))
    order = order_of(node)
    result = Result(0, tuple(order.index(place) if place in order else None for place in (0, 1, 2, *places)))
    images, groups, outs = x.type.shape[0], x.type.shape[1], w.type.shape[1]
    axes = (*[ConvAxis(1, 1, 1, 1, 1, 1, 0, None)] * (MOST_SPATIAL - rank), *axes_of(node))
    numbers = ((axis.size, axis.taps, axis.count, axis.stride, axis.dilation, axis.spread, axis.low) for axis in axes)
    operands = Strided(x, (0, 1, 2, *places)), Strided(w, (0, 1, 2, *places)), result
    return [*map(Extent, (images, groups, outs, x.type.shape[2])), *operands, *map(Extent, chain(*numbers))]


PLACED = 8
"""Words of tables for each place of a result, about."""


def _by_images(node: Node) -> ByRows | None:
    """Images may come some at a time; each time kernels are copied, and tables of places written."""
    x, w = node.args[:2]
    if order_of(node)[:1] != (0,) or x is w:
        return None
    places = sizes.product(axis.count for axis in axes_of(node))
    return ByRows((x,), sizes.add(sizes.product(w.type.shape), sizes.multiply(places, PLACED)))


def _symbol(node: Node) -> str:
    x, w = node.args[:2]
    has_one = sizes.equal(x.type.shape[1], 1) or sizes.equal(w.type.shape[0], 1)
    return f"gc_{'conv' if has_one else 'grouped_conv'}_{SUFFIXES[node.type.dtype]}"


CONVOLUTION = Call(_symbol, _passed, lambda node: (*node.type.shape, *node.args[1].type.shape[2:]), by_rows=_by_images)


# --- derivatives ----------------------------------------------------------------------------------------------------


def _vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """i * spread = p * stride + k * dilation - low, solved for p, and with the roles of p and k exchanged."""
    x, w = node.args[:2]
    spatial = range(3, x.ndim)
    axes, order = axes_of(node), order_of(node)
    cotangent = shapes.dimshuffle(cotangent, [order.index(axis) if axis in order else "x" for axis in range(x.ndim)])
    of_x = make_conv(cotangent, shapes.dimshuffle(w, (0, 2, 1, *spatial)), list(map(by_image, axes)))
    turned = shapes.dimshuffle(x, (2, 1, 0, *spatial)), shapes.dimshuffle(cotangent, (1, 2, 0, *spatial))
    of_w = make_conv(*turned, list(map(by_kernel, axes)))
    return (of_x, shapes.dimshuffle(of_w, (1, 2, 0, *spatial)), *(None for _ in node.args[2:]))


def by_image(axis: ConvAxis) -> ConvAxis:
    """The derivative by the image along an axis: a convolution of the cotangent."""
    sign = 1 if axis.stride > 0 else -1
    low = sizes.multiply(axis.low, -sign)
    stride, dilation, spread = sign * axis.spread, -sign * axis.dilation, abs(axis.stride)
    return ConvAxis(axis.count, axis.taps, axis.size, stride, dilation, spread, low, None)


def by_kernel(axis: ConvAxis) -> ConvAxis:
    """The derivative by the kernel along an axis: a convolution of the image with the cotangent."""
    return ConvAxis(axis.size, axis.count, axis.taps, axis.dilation, axis.stride, axis.spread, axis.low, None)


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """More images where only those differ, more groups where kernels do."""
    if any(batched[2:]):
        return None
    axes, order = axes_of(node), order_of(node)
    if "order" in node.attrs:
        conv = _batch(make_conv(node.args[0], node.args[1], axes), args, batched, size)
        return None if conv is None else shapes.dimshuffle(conv, (0, *(1 + axis for axis in order)))
    shape = node.type.shape
    if not batched[1]:
        x = args[0]
        images, *rest = x.type.shape[1:]
        joined = make_conv(shapes.reshape(x, (sizes.multiply(size, images), *rest)), args[1], axes)
        return shapes.reshape(joined, (size, *shape))
    x, w = repeated(args[:2], batched[:2], size)
    images, groups, *rest = x.type.shape[1:]
    beside = shapes.dimshuffle(x, (1, 0, *range(2, x.ndim)))
    x = shapes.reshape(beside, (images, sizes.multiply(size, groups), *rest))
    w = shapes.reshape(w, (sizes.multiply(size, groups), *w.type.shape[2:]))
    joined = shapes.reshape(make_conv(x, w, axes), (images, size, groups, *shape[2:]))
    return shapes.dimshuffle(joined, (1, 0, *range(2, joined.ndim)))


def make_conv(x: Node, w: Node, axes: Sequence[ConvAxis]) -> Node:
    """The convolution along spatial axes as these say (of which `size` and `taps` are those of x and w)."""
    highs = [axis.high for axis in axes if axis.high is not None]
    numbers = [*(axis.low for axis in axes), *(axis.count for axis in axes), *highs]
    attrs = {
        "strides": tuple(axis.stride for axis in axes),
        "dilations": tuple(axis.dilation for axis in axes),
        "spreads": tuple(axis.spread for axis in axes),
    }
    return make(OPS["conv"], (x, w, *map(as_size_node, numbers)), attrs)


def convolve(
    x: Node,
    w: Node,
    strides: Sequence[int],
    dilations: Sequence[int],
    lows: Sequence[Size],
    highs: Sequence[Size],
    spreads: Sequence[int] = (),
) -> Node:
    """Images x[n, g, c, i...], padded before and behind, convolved with kernels w[g, o, c, k...]; the kernel, which is
    flipped where a dilation is negative, has to fit into the padded image. Raises ShapeError where it is known not to.
    """
    rank = x.ndim - 3
    shapes, steps = (x.type.shape[3:], w.type.shape[3:]), (strides, dilations, spreads or (1,) * rank)
    axes_given = zip(*shapes, *steps, lows, highs, strict=True)
    axes = []
    for number, (size, taps, stride, dilation, spread, low, high) in enumerate(axes_given):
        whole = sizes.add(sizes.add(extent(size, spread), low), high)
        taken = extent(taps, dilation)
        if isinstance(whole, int) and isinstance(taken, int) and taken > whole:
            raise ShapeError(
                f"convolution of {describe(x)} of type {x.type} with {describe(w)} of type {w.type}: the kernel takes "
                f"{taken} elements along spatial axis {number}, the padded image has {whole}"
            )
        count = sizes.add(sizes.floor_divide(sizes.subtract(whole, taken), stride), 1)
        if dilation < 0:
            low = sizes.add(low, sizes.multiply(sizes.subtract(taps, 1), dilation))
        axes.append(ConvAxis(size, taps, count, stride, dilation, spread, low, high))
    return make_conv(x, w, axes)


def _sample(
    name: str, x: Any, w: Any, strides: Any = (), dilations: Any = (), pad: Any = (), spreads: Any = (), order: Any = ()
) -> Row:
    rank = len(getattr(x, "shape", x)) - 3
    ones, none = (1,) * rank, (0,) * rank

    def build(images: Node, kernels: Node) -> Node:
        lows, highs = pad or (none, none)
        conv = convolve(images, kernels, strides or ones, dilations or ones, lows, highs, spreads or ones)
        return in_order(conv, order) if order else conv

    return name, build, x, w


define_op(
    "conv",
    infer=_infer,
    eval=_eval,
    lower=lambda node: CONVOLUTION,
    vjp=_vjp,
    guards=_guards,
    cost=8.0,
    samples=samples(
        _sample("a line", (2, 1, 2, 5), (1, 3, 2, 2)),
        _sample("an image", (1, 1, 2, 4, 5), (1, 2, 2, 2, 3)),
        _sample("padded", (1, 1, 1, 3, 4), (1, 2, 1, 2, 3), pad=((1, 2), (0, 1))),
        _sample("strides", (1, 1, 1, 5, 6), (1, 1, 1, 2, 3), strides=(2, 3), pad=((1, 0), (0, 2))),
        _sample("flipped", (1, 1, 1, 4, 5), (1, 1, 1, 2, 3), dilations=(-1, -2)),
        _sample("dilated", (1, 1, 1, 5), (1, 1, 1, 2), dilations=(3,), strides=(2,), pad=((2,), (1,))),
        _sample("spread", (1, 1, 2, 3), (1, 2, 2, 3), spreads=(2,), pad=((1,), (1,))),
        _sample("groups", (2, 2, 1, 4), (2, 1, 1, 3)),
        _sample("a volume", (1, 1, 1, 2, 3, 3), (1, 1, 1, 2, 2, 1)),
        _sample("no images", (0, 1, 1, 3), (1, 1, 1, 2)),
        _sample("no channels", (1, 1, 0, 3), (1, 2, 0, 2)),
        _sample("channels last", (2, 1, 2, 4, 3), (1, 3, 2, 2, 2), order=(0, 3, 4, 2)),
        others=[_sample("ints", Argument((1, 1, 2, 4), "int"), Argument((1, 2, 2, 2), "int"))],
    ),
    doc="Sums of products of images with kernels that are moved over them, for each group of channels.",
    batch=_batch,
)
