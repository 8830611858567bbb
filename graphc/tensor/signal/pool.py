"""Pooling over the last axes of a tensor: the maximum, sum or average of windows that slide over them.

In: a tensor, sizes of windows, strides and padding, which may be nodes. Out: nodes. Windows are views and a reduction:
nothing is stored but the results. Every maximum of a window gets its whole cotangent, as Theano's do, where the
reductions share it. NaN is a maximum, as for NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphc.arrays.dtypes import is_float, lowest
from graphc.autodiff import jvp, pulled_back
from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size, describe, lazy_text, literal
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.reduce import reduce_each_max
from graphc.ops.windows import Sliding, filled_windows, inc_windows, windows
from graphc.startup.record import record
from graphc.tensor.reductions import count, sum
from graphc.tensor.shaping import as_axis, as_shape, operand

__all__ = [
    "AveragePoolGrad", "DownsampleFactorMaxGradGrad", "MaxPoolGrad", "MaxPoolRop", "Pool", "PoolGrad",
    "global_pool", "max_pool_2d", "max_pool_2d_same_size", "pool", "pool_2d", "pool_3d",
]  # fmt: skip

MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")

# --- windows --------------------------------------------------------------------------------------------------------


def _count(length: Size, width: Size, stride: Size, ignore_border: bool) -> Size:
    """The number of windows along an axis of this length, padding included: whole ones, or all that begin on it as
    well."""
    follow = sizes.equal(width, stride)
    if ignore_border:
        if follow:
            return sizes.floor_divide(length, stride)
        return sizes.maximum(sizes.add(sizes.floor_divide(sizes.subtract(length, width), stride), 1), 0)
    begun = sizes.add(sizes.floor_divide(sizes.subtract(length, 1), stride), 1)
    rest = sizes.floor_divide(sizes.subtract(sizes.subtract(length, 1), width), stride)
    needed = sizes.add(sizes.maximum(sizes.add(rest, 1), 0), 1)
    if follow or (isinstance(width, int) and isinstance(stride, int)):
        return begun if follow or sizes.known_at_least(stride, width) else needed
    apart = elementwise("greater_equal", as_size_node(stride), as_size_node(width))
    return sizes.as_size(elementwise("where", apart, as_size_node(begun), as_size_node(needed)))


@record()
class _Pooled:
    """The windows of an axis of this length, and the width of the border they begin in, or None where no window
    leaves the axis."""

    length: Size
    sliding: Sliding
    padding: Size
    before: Size | None


def _along(length: Size, width: Size, stride: Size, padding: Size, ignore_border: bool) -> _Pooled:
    padded = sizes.add(length, sizes.multiply(padding, 2))
    sliding = Sliding(_count(padded, width, stride, ignore_border), width, stride)
    stays = ignore_border or sizes.known_at_least(length, sliding.reach)
    return _Pooled(length, sliding, padding, None if stays and sizes.equal(padding, 0) else padding)


def _numbers(axes: Sequence[_Pooled], with_padding: bool, dtype: str) -> Node:
    """The number of elements in each window, with or without those of the padding."""
    found = literal(1, dtype)
    for place, axis in enumerate(axes):
        width: Node = as_size_node(axis.sliding.width)
        if axis.before is not None:
            begin = elementwise("mul", layout.iota(axis.sliding.count), as_size_node(axis.sliding.stride))
            begin = elementwise("sub", begin, as_size_node(axis.padding))
            end = sizes.add(axis.length, axis.padding) if with_padding else axis.length
            stop = elementwise("minimum", elementwise("add", begin, width), as_size_node(end))
            width = elementwise("sub", stop, begin if with_padding else elementwise("maximum", begin, 0))
            width = as_axis(width, place, len(axes))
        found = elementwise("mul", found, cast(width, dtype))
    return found


# --- pooling --------------------------------------------------------------------------------------------------------


def _slide(
    x: Node, ws: Any, ignore_border: bool, stride: Any, pad: Any, rank: int | None, what: str
) -> tuple[_Pooled, ...]:
    widths = as_shape(ws, f"{what}: ws", rank, "give a tuple")
    rank = len(widths) if rank is None else rank
    strides = widths if stride is None else as_shape(stride, f"{what}: stride", rank, "give a tuple")
    padding = (0,) * rank if pad is None else as_shape(pad, f"{what}: pad", rank, "give a tuple")
    for name, given in (("ws", widths), ("stride", strides), ("pad", padding)):
        if len(given) != rank:
            raise GraphValueError(f"{what}: {name} has {len(given)} numbers, not {rank}")
    if x.ndim < rank:
        raise RankError(f"{what}: it has fewer than {rank} axes")
    for number, width, each in zip(padding, widths, strides, strict=True):
        for name, size in (("ws", width), ("stride", each)):
            if isinstance(size, int) and size < 1:
                raise GraphValueError(f"{what}: {name} is {size}, not positive")
        if not sizes.equal(number, 0) and not ignore_border:
            raise GraphValueError(f"{what}: padding needs ignore_border=True")
        if isinstance(number, int) and (number < 0 or (isinstance(width, int) and number >= width)):
            raise GraphValueError(f"{what}: padding {number} is not from 0 to the size of a window less one, {width}")
    lengths = x.type.shape[x.ndim - rank :]
    return tuple(_along(*each, ignore_border) for each in zip(lengths, widths, strides, padding, strict=True))


def _pool(x: Node, pooled: tuple[_Pooled, ...], mode: str, what: str) -> Node:
    axes = tuple(range(x.ndim, x.ndim + len(pooled)))
    slidings, before = [axis.sliding for axis in pooled], [axis.before for axis in pooled]
    if _checked_mode(mode, what) == "max":
        return reduce_each_max(
            filled_windows(x, slidings, before, 0 if x.type.dtype == "bool" else lowest(x.type.dtype)), axes
        )
    numbers = partial(_numbers, pooled, mode == "average_inc_pad")
    return _added(filled_windows(x, slidings, before, 0), axes, mode, numbers)


def _checked_mode(mode: str, what: str) -> str:
    mode = "max" if mode == "max_deterministic" else mode
    if mode not in MODES:
        raise GraphValueError(f"{what}: mode {mode!r} is none of {', '.join(MODES)}")
    return mode


def _added(x: Node, axes: tuple[int, ...], mode: str, numbers: Callable[[str], Node]) -> Node:
    """The sum over axes, or the average over `numbers` of elements, of the dtype of `x`."""
    if mode == "sum":
        return cast(sum(x, axes), x.type.dtype)
    inside = x.type.dtype if is_float(x.type.dtype) else "float64"
    return cast(elementwise("true_div", sum(cast(x, inside), axes), numbers(inside)), x.type.dtype)


def pool(
    input: Any, ws: Any, ignore_border: bool = True, stride: Any = None, pad: Any = None, mode: str = "max"
) -> Node:
    """The maximum, sum or average of each of the windows over the last axes of a tensor, as many as `ws` has numbers.

    input: a tensor of any dtype, which the result has. ws: the size of a window along each of those axes; stride: how
    far each begins after the one before, `ws` by default; pad: elements that are added before and after an axis, fewer
    than a window has. All three may be numbers, integer scalars, tuples of these, or integer vectors.
    mode: "max", "sum", "average_inc_pad", which counts padding as zeros, or "average_exc_pad". ignore_border: whether
    windows that would reach beyond the axis are left out; else they have fewer elements, and padding is an error.

    An axis of n elements, 2 p more with padding, becomes one of (n + 2 p - ws) // stride + 1 (0 if that is negative)
    with `ignore_border`; without, of one more where elements are left. Raises GraphTypeError for other arguments.

        >>> pool(T.arange(6.0), (2,)).eval()
        array([1., 3., 5.])
    """
    x, what = operand("pool", input)
    return _pool(x, _slide(x, ws, ignore_border, stride, pad, None, what), mode, what)


def global_pool(input: Any, mode: str = "max", axes: int = 2) -> Node:
    """`pool` with windows as large as the last `axes` axes, which the result keeps with size 1."""
    x, what = operand("global_pool", input)
    if not 0 < axes <= x.ndim:
        raise RankError(f"{what}: it has no {axes} axes to pool over")
    reduced = tuple(range(x.ndim - axes, x.ndim))
    if _checked_mode(mode, what) == "max":
        return layout.expand(reduce_each_max(x, reduced), reduced)
    number = count(x, reduced)
    return layout.expand(_added(x, reduced, mode, lambda dtype: cast(number, dtype)), reduced)


# --- Theano's names -------------------------------------------------------------------------------------------------


def _renamed(new: Any, old: Any, names: str, default: Any = None) -> Any:
    """An argument that has two names, of which one may be given."""
    if old is None:
        return new
    if new is not None and new != default:
        raise ValueError(f"pooling: {names} are two names of one argument: give one")
    return old


def _pool_nd(rank: int, input: Any, ws: Any, ignore_border: bool | None, stride: Any, pad: Any, mode: str) -> Node:
    x = as_node(input)
    what = lazy_text(lambda: f"pool_{rank}d of {describe(x)} of type {x.type}")
    if ws is None:
        raise ValueError(f"{what}: the size of a window, ws, is needed")
    return _pool(x, _slide(x, ws, bool(ignore_border), stride, pad, rank, what), mode, what)


def pool_2d(
    input: Any,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> Node:
    """`pool` over the last two axes, with Theano's arguments: `ignore_border` is False by default, and `ds`, `st` and
    `padding` are older names of `ws`, `stride` and `pad`.

        >>> images = T.dtensor4("images")  # (batch, channels, rows, columns)
        >>> pooled = pool_2d(images, (2, 2), ignore_border=True)
    """
    ws, stride = _renamed(ws, ds, "ws and ds"), _renamed(stride, st, "stride and st")
    return _pool_nd(2, input, ws, ignore_border, stride, _renamed(pad, padding, "pad and padding", (0, 0)), mode)


def pool_3d(
    input: Any,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> Node:
    """`pool` over the last three axes, with Theano's arguments, as `pool_2d` has them."""
    ws, stride = _renamed(ws, ds, "ws and ds"), _renamed(stride, st, "stride and st")
    return _pool_nd(3, input, ws, ignore_border, stride, _renamed(pad, padding, "pad and padding", (0, 0, 0)), mode)


def max_pool_2d_same_size(input: Any, patch_size: Any) -> Node:
    """`input` with zeros for all that is no maximum of its window of `patch_size`; windows follow one another, and
    what is left of the axes is zero (Theano's)."""
    x, what = operand("max_pool_2d_same_size", input)
    slidings = [axis.sliding for axis in _slide(x, patch_size, True, None, None, 2, what)]
    found, axes = windows(x, slidings), (x.ndim, x.ndim + 1)
    highest = layout.expand(reduce_each_max(found, axes), axes)
    kept = elementwise("where", elementwise("equal", found, highest), found, literal(0, x.type.dtype))
    return inc_windows(layout.zeros(x.type.dtype, x.type.shape), kept, slidings)


@record()
class Pool:
    """Theano's op: `Pool(ignore_border, mode, ndim)(x, ws, stride, pad)` is `pool` over the last `ndim` axes."""

    ignore_border: bool = False
    mode: str = "max"
    ndim: int = 2

    def __call__(self, x: Any, ws: Any, stride: Any = None, pad: Any = None) -> Node:
        return _pool_nd(self.ndim, x, ws, self.ignore_border, stride, pad, self.mode)

    @staticmethod
    def out_shape(
        imgshape: Sequence[Any],
        ws: Any = None,
        ignore_border: bool = False,
        stride: Any = None,
        pad: Any = None,
        ndim: int = 2,
        ds: Any = None,
        st: Any = None,
        padding: Any = None,
    ) -> list[Any]:
        """The sizes of the result for an image of these sizes, numbers where all is known."""
        ws, stride = _renamed(ws, ds, "ws and ds"), _renamed(stride, st, "stride and st")
        shape, pad = as_shape(imgshape, "out_shape: imgshape"), _renamed(pad, padding, "pad and padding", (0,) * ndim)
        if len(shape) < ndim:
            raise GraphValueError(f"out_shape: imgshape has {len(shape)} sizes, fewer than {ndim}")
        given = [as_shape(each, "out_shape", ndim) for each in (ws, stride or ws, pad or (0,) * ndim)]
        return [
            *shape[: len(shape) - ndim],
            *(
                _count(sizes.add(length, sizes.multiply(padding, 2)), width, each, ignore_border)
                for length, width, each, padding in zip(shape[len(shape) - ndim :], *given, strict=True)
            ),
        ]


@record()
class PoolGrad:
    """The base of Theano's ops for derivatives of pools."""

    ignore_border: bool
    mode: str = "max"
    ndim: int = 2

    out_shape = Pool.out_shape

    def _pooled(self, x: Node, ws: Any, stride: Any, pad: Any) -> tuple[_Pooled, ...]:
        what = lazy_text(lambda: f"{type(self).__name__} of {describe(x)} of type {x.type}")
        return _slide(x, ws, self.ignore_border, stride, pad, self.ndim, what)

    def _at_maxima(self, x: Node, maxout: Any, values: Node, pooled: tuple[_Pooled, ...]) -> Node:
        """Values at the elements of windows of `x` that are equal to `maxout`, 0 at the others."""
        before, axes = [axis.before for axis in pooled], range(x.ndim, x.ndim + self.ndim)
        found = filled_windows(x, [axis.sliding for axis in pooled], before, lowest(x.type.dtype))
        highest = layout.broadcast_to(layout.expand(as_node(maxout), axes), found.type.shape)
        return elementwise("where", elementwise("equal", found, highest), values, literal(0, values.type.dtype))


class MaxPoolGrad(PoolGrad):
    """Theano's op: `MaxPoolGrad(ignore_border, ndim)(x, maxout, gz, ws, stride, pad)` has, for each element of `x`, the
    sum of `gz` over the windows whose maximum `maxout` it is equal to."""

    def __init__(self, ignore_border: bool, ndim: int = 2, openmp: Any = None) -> None:
        super().__init__(ignore_border, "max", ndim)

    def __call__(self, x: Any, maxout: Any, gz: Any, ws: Any, stride: Any = None, pad: Any = None) -> Node:
        node, slope = as_node(x), as_node(gz)
        pooled, axes = self._pooled(node, ws, stride, pad), range(node.ndim, node.ndim + self.ndim)
        whole = filled_windows(node, [axis.sliding for axis in pooled], [axis.before for axis in pooled], 0)
        spread = layout.broadcast_to(layout.expand(slope, axes), whole.type.shape)
        return pulled_back({whole: self._at_maxima(node, maxout, spread, pooled)}, [node])[0]


class AveragePoolGrad(PoolGrad):
    """Theano's op: `AveragePoolGrad(ignore_border, mode, ndim)(x, gz, ws, stride, pad)` is the derivative of the
    pool of `x` by "sum" or an average with the cotangent `gz`."""

    def __init__(self, ignore_border: bool, mode: str = "average_inc_pad", ndim: int = 2) -> None:
        if mode not in ("sum", "average_inc_pad", "average_exc_pad"):
            raise GraphValueError(f"AveragePoolGrad: mode {mode!r} is neither 'sum' nor an average")
        super().__init__(ignore_border, mode, ndim)

    def __call__(self, x: Any, gz: Any, ws: Any, stride: Any = None, pad: Any = None, dummy: Any = None) -> Node:
        node = as_node(x)
        pooled = self._pooled(node, ws, stride, pad)
        return pulled_back({_pool(node, pooled, self.mode, "AveragePoolGrad"): as_node(gz)}, [node])[0]


class DownsampleFactorMaxGradGrad(PoolGrad):
    """Theano's op: `DownsampleFactorMaxGradGrad(ignore_border, mode, ndim)(x, maxout, gz, ws, stride, pad)` has, for
    each window, the sum of `gz`, of the sizes of `x`, over the elements that are equal to its maximum `maxout`."""

    def __init__(self, ignore_border: bool, mode: str = "max", ndim: int = 2, openmp: Any = None) -> None:
        if mode != "max":
            raise GraphValueError(f"DownsampleFactorMaxGradGrad: mode {mode!r} is not 'max'")
        super().__init__(ignore_border, mode, ndim)

    def __call__(self, x: Any, maxout: Any, gz: Any, ws: Any, stride: Any = None, pad: Any = None) -> Node:
        node = as_node(x)
        pooled, axes = self._pooled(node, ws, stride, pad), tuple(range(node.ndim, node.ndim + self.ndim))
        slopes = filled_windows(as_node(gz), [axis.sliding for axis in pooled], [axis.before for axis in pooled], 0)
        return sum(self._at_maxima(node, maxout, slopes, pooled), axes)


class MaxPoolRop(PoolGrad):
    """Theano's op: `MaxPoolRop(ignore_border, mode, ndim)(x, eval_point, ws, stride, pad)` is the derivative of the
    pool of maxima in the direction `eval_point`."""

    def __init__(self, ignore_border: bool = False, mode: str = "max", ndim: int = 2, openmp: Any = None) -> None:
        if mode != "max":
            raise GraphValueError(f"MaxPoolRop: mode {mode!r} is not 'max'")
        super().__init__(ignore_border, mode, ndim)

    def __call__(self, x: Any, eval_point: Any, ws: Any, stride: Any = None, pad: Any = None) -> Node:
        node = as_node(x)
        made: Node = jvp(
            _pool(node, self._pooled(node, ws, stride, pad), "max", "MaxPoolRop"), node, as_node(eval_point)
        )
        return made


def max_pool_2d(
    input: Any, ds: Any, ignore_border: bool | None = None, st: Any = None, padding: Any = (0, 0), mode: str = "max"
) -> Node:
    """`pool_2d` with the names of arguments that it had."""
    return pool_2d(input, ds, ignore_border, st, padding, mode)


explain_all(globals())
