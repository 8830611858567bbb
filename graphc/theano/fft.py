"""Fourier transforms of real values, Theano's `tensor.fft`: real and imaginary parts lie along a last axis.

In: tensors whose first axis counts the transforms. Out: nodes; NumPy's transforms are called back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Array, Node, describe
from graphc.ops.elementwise import as_node, cast
from graphc.tensor.elementary import sqrt
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.joining import stack
from graphc.tensor.reductions import prod
from graphc.tensor.variables import TensorType
from graphc.theano.gradient import DisconnectedType
from graphc.theano.user_ops import Apply, Op

__all__ = ["IRFFTOp", "RFFTOp", "irfft", "irfft_op", "rfft", "rfft_op"]


class _Transform(Op):
    """The base of both directions: `s` has the sizes of the real values without the first axis."""

    __props__ = ()
    parts: int

    def make_node(self, a: Any, s: Any = None) -> Apply:
        """The application to `a`; `s` follows from its sizes where it is not given, an even number along the last."""
        a = as_node(a)
        least = 2 + (self.parts < 0)
        if a.ndim < least:
            raise RankError(f"{type(self).__name__}: {describe(a)} has {a.ndim} axes; it needs at least {least}")
        if not is_float(a.dtype):
            raise GraphTypeError(f"{type(self).__name__}: {describe(a)} is not of a floating dtype")
        s = _sizes(a, self.parts < 0, odd=False) if s is None else as_node(s)
        if s.dtype not in INTEGERS:
            raise GraphTypeError(f"{type(self).__name__}: the sizes {describe(s)} are not whole numbers")
        return Apply(self, [a, s], [TensorType(a.dtype, (False,) * (a.ndim + self.parts))()])

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The sizes have no derivative."""
        return [[True], [False]]

    def within(self, spectrum: Any, s: Any) -> Any:
        """The part of a spectrum that stands for its mirror image too."""
        return spectrum[..., 1 : (s[-1] + 1) // 2, :]


class RFFTOp(_Transform):
    """The transforms of (m, ..., n) real values: (m, ..., n // 2 + 1, 2)."""

    parts = 1

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """NumPy's transform over all axes but the first."""
        a, s = inputs
        found = np.fft.rfftn(a, s=tuple(s), axes=tuple(range(1, a.ndim)))
        output_storage[0][0] = np.stack([found.real, found.imag], -1).astype(a.dtype)

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Half of the spectrum is kept."""
        a, s = node.inputs
        between = [s[axis] for axis in range(a.ndim - 2)]
        return [(input_shapes[0][0], *between, s[a.ndim - 2] // 2 + 1, 2)]

    def grad(self, inputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """The inverse, in which each half counts once."""
        s, (g,) = inputs[1], output_grads
        return [irfft_op(set_subtensor(self.within(g, s), self.within(g, s) * 0.5), s), DisconnectedType()()]


class IRFFTOp(_Transform):
    """The values of which (m, ..., n // 2 + 1, 2) are the transforms, times how many there are."""

    parts = -1

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """NumPy's inverse over all axes but the first, without its division."""
        a, s = inputs
        found = np.fft.irfftn(a[..., 0] + 1j * a[..., 1], s=tuple(s), axes=tuple(range(1, a.ndim - 1)))
        output_storage[0][0] = (found * np.prod(s)).astype(a.dtype)

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The sizes are given."""
        a, s = node.inputs
        return [(input_shapes[0][0], *(s[axis] for axis in range(a.ndim - 2)))]

    def grad(self, inputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """The transform, whose elements within stand for two."""
        s, found = inputs[1], rfft_op(output_grads[0], inputs[1])
        return [set_subtensor(self.within(found, s), self.within(found, s) * 2.0), DisconnectedType()()]


rfft_op = RFFTOp()
irfft_op = IRFFTOp()


def rfft(inp: Any, norm: str | None = None) -> Node:
    """The Fourier transforms over all axes but the first, of real values (m, ..., n): (m, ..., n // 2 + 1, 2).

    The last axis has real and imaginary parts. norm: None or "no_norm" divides by nothing, "ortho" by the square root
    of the number of values. Raises GraphTypeError for what is not of a floating dtype, RankError for fewer than two
    axes, GraphValueError for another norm.

        >>> rfft(T.constant([[1.0, 2.0, 3.0, 4.0]]))[0, :, 0].eval()  # [10, -2, -2]
    """
    _check_norm(norm)
    inp = as_node(inp)
    found: Node = rfft_op(inp)
    scale = _count(_sizes(inp, False, False), inp) if norm == "ortho" else None
    return found if scale is None else found / sqrt(scale)


def irfft(inp: Any, norm: str | None = None, is_odd: bool = False) -> Node:
    """The real values (m, ..., n) whose Fourier transforms are (m, ..., n // 2 + 1, 2), as `rfft` has them.

    norm: None divides by the number of values, "ortho" by its square root, "no_norm" by nothing. is_odd: whether n is
    odd. Raises GraphTypeError for what is not of a floating dtype, RankError for fewer than three axes,
    GraphValueError for another norm.

        >>> irfft(rfft(x))  # x, where its last axis has an even size
    """
    _check_norm(norm)
    if is_odd not in (True, False):
        raise GraphValueError(f"irfft: is_odd is True or False, not {is_odd!r}")
    inp = as_node(inp)
    s = _sizes(inp, True, is_odd)
    found: Node = irfft_op(inp, s)
    if norm == "no_norm":
        return found
    return found / (sqrt(_count(s, inp)) if norm == "ortho" else _count(s, inp))


def _sizes(a: Node, spectrum: bool, odd: bool) -> Node:
    """The sizes of the real values but for the first axis, from their own or from those of the spectrum."""
    if not spectrum:
        return stack([a.shape[axis] for axis in range(1, a.ndim)])
    last = a.ndim - 2
    return stack([*(a.shape[axis] for axis in range(1, last)), (a.shape[last] - 1) * 2 + int(odd)])


def _count(s: Node, like: Node) -> Node:
    return cast(prod(s), like.type.dtype)


def _check_norm(norm: Any) -> None:
    if norm not in (None, "ortho", "no_norm"):
        raise GraphValueError(f"the norm {norm!r} is not one of None, 'ortho' and 'no_norm'")


explain_all(globals())
