"""Discrete Fourier transforms of real and complex tensors, under the names of `np.fft`.

    fft(x)           complex128[x.0] of float64[x.0]
    rfft(x)          its first x.0 // 2 + 1 numbers, which determine the others
    irfft(rfft(x))   x, where its size is even

In: tensors, lengths (numbers or scalars), axes, and the norm of NumPy: "backward", "ortho" or "forward". Out: nodes,
composed of the ops of `ops/lines.py`, which transform lines of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import COMPLEX, floating
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import as_node, cast
from graphc.ops.index import set_subtensor, subtensor
from graphc.ops.lines import backward, fourier, real_backward, real_fourier
from graphc.ops.pairs import from_parts, parts_of
from graphc.ops.shape import reshape, zeros
from graphc.tensor.elementary import conj, mul, sqrt, true_div
from graphc.tensor.shaping import as_size, moveaxis, normalise_axis

Transform = Callable[[Node], Node]
NORMS = (None, "backward", "ortho", "forward")


# --- parts of axes ----------------------------------------------------------------------------------------------------


def part_of(a: Node, axis: int, start: Size, size: Size, step: int = 1) -> Node:
    """`size` elements along an axis, from `start` on."""

    def whole(other: Sequence[Any], own: Any) -> list[Any]:
        return [*other[:axis], own, *other[axis + 1 :]]

    return subtensor(a, whole([0] * a.ndim, start), whole(a.type.shape, size), whole([1] * a.ndim, step))


def fitted(a: Node, axis: int, size: Size) -> Node:
    """An axis cut off at a size, or with zeros up to it."""
    held = a.type.shape[axis]
    if sizes.equal(held, size):
        return a
    part = part_of(a, axis, 0, sizes.minimum(held, size))
    if sizes.equal(part.type.shape[axis], size):
        return part
    shape = [size if place == axis else each for place, each in enumerate(a.type.shape)]
    return set_subtensor(zeros(a.type.dtype, shape), part, [0] * a.ndim, [1] * a.ndim)


def along(parts: Node, axis: int, transform: Transform) -> Node:
    """Complex values, whose parts lie along the last axis, transformed along an axis."""
    moved = moveaxis(parts, axis, -2)
    shape = moved.type.shape
    lines = reshape(moved, (sizes.product(shape[:-2]), *shape[-2:]))
    return moveaxis(reshape(transform(lines), shape), -2, axis)


def half_spectrum(a: Node, axis: int) -> Node:
    """The first half of the spectrum of real values along an axis, with its parts along a new last axis."""
    moved = moveaxis(a, axis, -1)
    made = real_fourier(reshape(moved, (sizes.product(moved.type.shape[:-1]), moved.type.shape[-1])))
    return moveaxis(reshape(made, (*moved.type.shape[:-1], *made.type.shape[1:])), -2, axis)


def real_values(parts: Node, axis: int, count: Size) -> Node:
    """`count` times the real values of whose spectrum this is the first half, with its parts along the last axis."""
    moved = moveaxis(parts, axis, -2)
    made = real_backward(reshape(moved, (sizes.product(moved.type.shape[:-2]), *moved.type.shape[-2:])), count)
    return moveaxis(reshape(made, (*moved.type.shape[:-2], count)), -1, axis)


# --- one axis ---------------------------------------------------------------------------------------------------------


def _operand(name: str, a: Any) -> Node:
    node = as_node(a)
    if not node.ndim:
        raise GraphTypeError(f"{name} of {describe(node)} of type {node.type}: it has no axis")
    return node if node.type.dtype in COMPLEX else cast(node, floating(node.type.dtype))


def _real(name: str, a: Any) -> Node:
    node = _operand(name, a)
    if node.type.dtype in COMPLEX:
        raise GraphTypeError(f"{name} of {describe(node)} of type {node.type}: it takes real values")
    return node


def _as_complex(a: Node) -> Node:
    return a if a.type.dtype in COMPLEX else cast(a, "complex64" if a.type.dtype == "float32" else "complex128")


def _length(name: str, n: Any, held: Size) -> Size:
    if n is None or (isinstance(n, int) and n == -1):
        return held
    size: Size = as_size(n, f"{name}: n")
    if isinstance(size, int) and size < 1:
        raise GraphValueError(f"{name}: {size} is no number of values to transform")
    return size


def _divided(name: str, made: Node, count: Size, norm: Any, inverse: bool) -> Node:
    """A transform by its norm."""
    if norm not in NORMS:
        raise GraphValueError(f"{name}: the norm {norm!r} is not one of 'backward', 'ortho' and 'forward'")
    if norm != "ortho" and inverse != (norm != "forward"):
        return made
    number = cast(as_size_node(count), COMPLEX.get(made.type.dtype, made.type.dtype))
    scale = true_div(1, sqrt(number) if norm == "ortho" else number)
    return from_parts(mul(parts_of(made), scale)) if made.type.dtype in COMPLEX else mul(made, scale)


def _complex(name: str, a: Node, n: Any, axis: int, norm: Any, inverse: bool) -> Node:
    axis = normalise_axis(axis, a.ndim, name)
    count = _length(name, n, a.type.shape[axis])
    whole = _as_complex(fitted(a, axis, count))
    made = from_parts(along(parts_of(whole), axis, backward if inverse else fourier))
    return _divided(name, made, count, norm, inverse)


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The Fourier transform along an axis, cut off at `n` values or with zeros up to `n`.

    Element k is the sum over j of a[j] exp(-2 pi i j k / n). norm: None or "backward" divides by nothing, "ortho" by
    the square root of n, "forward" by n. The result is complex64 of float32 and complex64, else complex128. Raises
    GraphTypeError for a scalar, GraphValueError for another norm and n below 1, AxisError for a wrong axis.

        >>> jnp.fft.fft(T.constant([1.0, 0.0, 0.0, 0.0])).eval()
        array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _complex("fft", _operand("fft", a), n, axis, norm, False)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The inverse of `fft`, whose arguments and errors are the same: "backward" divides by n."""
    return _complex("ifft", _operand("ifft", a), n, axis, norm, True)


def half_length(size: Size) -> Size:
    """The number of frequencies of a real transform."""
    return sizes.add(sizes.floor_divide(size, 2), 1)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The first n // 2 + 1 elements of `fft` of real values. Raises GraphTypeError for complex ones."""
    node = _real("rfft", a)
    axis = normalise_axis(axis, node.ndim, "rfft")
    count = _length("rfft", n, node.type.shape[axis])
    return _divided("rfft", from_parts(half_spectrum(fitted(node, axis, count), axis)), count, norm, False)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The `n` real values (2 (m - 1) by default, for m elements along the axis) whose `rfft` is `a`."""
    node = _as_complex(_operand("irfft", a))
    axis = normalise_axis(axis, node.ndim, "irfft")
    count = _length("irfft", n, sizes.multiply(sizes.add(node.type.shape[axis], -1), 2))
    held = fitted(node, axis, half_length(count))
    return _divided("irfft", real_values(parts_of(held), axis, count), count, norm, True)


_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward"}


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The transform, which is real, of `n` values of which the second half are the conjugates of the first in reverse;
    the arguments are those of `irfft`."""
    return irfft(conj(_operand("hfft", a)), n, axis, _OPPOSITE.get(norm, norm))


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Node:
    """The inverse of `hfft`: the first n // 2 + 1 values."""
    return conj(rfft(a, n, axis, _OPPOSITE.get(norm, norm)))


# --- several axes -----------------------------------------------------------------------------------------------------


def axes_of(name: str, a: Node, s: Any, axes: Any) -> tuple[list[Any], list[int]]:
    """The lengths and the axes of a transform of several."""
    lengths = None if s is None else list(s) if isinstance(s, (list, tuple, np.ndarray)) else [s]
    if axes is None:
        axes = range(a.ndim) if lengths is None else range(-len(lengths), 0)
    chosen = [normalise_axis(axis, a.ndim, name) for axis in ([axes] if isinstance(axes, int) else axes)]
    lengths = [None] * len(chosen) if lengths is None else lengths
    if len(lengths) != len(chosen):
        raise GraphValueError(f"{name}: there are {len(lengths)} sizes for {len(chosen)} axes")
    return lengths, chosen


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Node:
    """`fft` along several axes, by default all, with the sizes `s`. Raises GraphValueError for another number of
    sizes than of axes, and what `fft` raises.

        >>> abs(jnp.fft.fftn(T.ones((2, 2)))).eval()
        array([[4., 0.],
               [0., 0.]])
    """
    return _several("fftn", a, s, axes, norm, False)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Node:
    """The inverse of `fftn`."""
    return _several("ifftn", a, s, axes, norm, True)


def _several(name: str, a: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Node:
    node = _operand(name, a)
    lengths, chosen = axes_of(name, node, s, axes)
    for length, axis in zip(reversed(lengths), reversed(chosen), strict=True):
        node = _complex(name, node, length, axis, norm, inverse)
    return _as_complex(node)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Node:
    """`fftn` along two axes, by default the last ones."""
    return _several("fft2", a, s, axes, norm, False)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Node:
    """The inverse of `fft2`."""
    return _several("ifft2", a, s, axes, norm, True)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Node:
    """`rfft` along the last of several axes, by default all, and `fft` along the others."""
    node = _real("rfftn", a)
    lengths, chosen = axes_of("rfftn", node, s, axes)
    made = rfft(node, lengths[-1], chosen[-1], norm)
    for length, axis in zip(reversed(lengths[:-1]), reversed(chosen[:-1]), strict=True):
        made = _complex("rfftn", made, length, axis, norm, False)
    return made


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Node:
    """The inverse of `rfftn`; the last size is even unless `s` has another one."""
    node = _operand("irfftn", a)
    lengths, chosen = axes_of("irfftn", node, s, axes)
    for length, axis in zip(lengths[:-1], chosen[:-1], strict=True):
        node = _complex("irfftn", node, length, axis, norm, True)
    return irfft(node, lengths[-1], chosen[-1], norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Node:
    """`rfftn` along two axes, by default the last ones."""
    return rfftn(a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Node:
    """The inverse of `rfft2`."""
    return irfftn(a, s, axes, norm)


TRANSFORMS = tuple("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split())
"""The names that `np.fft` and `scipy.fft` have."""

explain_all(globals())
