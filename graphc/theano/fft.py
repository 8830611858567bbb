"""Fourier transforms of real values, Theano's `tensor.fft`: real and imaginary parts lie along a last axis.

In: tensors whose first axis counts the transforms. Out: nodes, composed of the ops of `ops/lines.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import as_node, cast
from graphc.ops.lines import backward, fourier
from graphc.tensor.elementary import sqrt
from graphc.tensor.shaping import specify_shape
from graphc.tensor.spectra import along, fitted, half_length, half_spectrum, real_values

__all__ = ["IRFFTOp", "RFFTOp", "irfft", "irfft_op", "rfft", "rfft_op"]


class _Transform:
    """The base of both directions: `s` has the sizes of the real values without the first axis."""

    parts: int

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __call__(self, a: Any, s: Any = None) -> Node:
        """The transform of `a`; `s` follows from its sizes where it is not given, an even number along the last."""
        a = as_node(a)
        least = 2 + (self.parts < 0)
        if a.ndim < least:
            raise RankError(f"{type(self).__name__}: {describe(a)} has {a.ndim} axes; it needs at least {least}")
        if not is_float(a.type.dtype):
            raise GraphTypeError(f"{type(self).__name__}: {describe(a)} is not of a floating dtype")
        if isinstance(s, Sequence) or s is None:
            return self.of(a, _sizes(a, self.parts < 0, odd=False) if s is None else [*map(_size, s)])
        s = as_node(s)
        if s.dtype not in INTEGERS:
            raise GraphTypeError(f"{type(self).__name__}: the sizes {describe(s)} are not whole numbers")
        return self.of(a, [_size(s[axis]) for axis in range(a.ndim - least + 1)])

    def of(self, a: Node, s: Sequence[Size]) -> Node:
        """The transform, with the sizes of all axes but the first."""
        raise NotImplementedError


class RFFTOp(_Transform):
    """The transforms of (m, ..., n) real values: (m, ..., n // 2 + 1, 2)."""

    parts = 1

    def of(self, a: Node, s: Sequence[Size]) -> Node:
        """Half of the spectrum is kept."""
        last = a.ndim - 1
        for axis, size in enumerate(s, 1):
            a = fitted(a, axis, size)
        found = half_spectrum(a, last)
        for axis in range(1, last):
            found = along(found, axis, fourier)
        return found


class IRFFTOp(_Transform):
    """The values of which (m, ..., n // 2 + 1, 2) are the transforms, times how many there are."""

    parts = -1

    def of(self, a: Node, s: Sequence[Size]) -> Node:
        """The last axis goes last."""
        last = a.ndim - 2
        a = specify_shape(a, (*[None] * (a.ndim - 1), 2))
        for axis, size in enumerate((*s[:-1], half_length(s[-1])), 1):
            a = fitted(a, axis, size)
        for axis in range(1, last):
            a = along(a, axis, backward)
        return real_values(a, last, s[-1])


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
    found = rfft_op(inp)
    return found / sqrt(_count(_sizes(inp, False, False), inp)) if norm == "ortho" else found


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
    if inp.ndim < 3:
        return irfft_op(inp)  # an error
    s = _sizes(inp, True, is_odd)
    found = irfft_op(inp, s)
    if norm == "no_norm":
        return found
    return found / (sqrt(_count(s, inp)) if norm == "ortho" else _count(s, inp))


def _sizes(a: Node, spectrum: bool, odd: bool) -> list[Size]:
    """The sizes of the real values but for the first axis, from their own or from those of the spectrum."""
    if not spectrum:
        return list(a.type.shape[1:])
    *between, half, _ = a.type.shape[1:]
    return [*between, sizes.add(sizes.multiply(sizes.add(half, -1), 2), int(odd))]


def _size(number: Any) -> Size:
    node = as_node(number)
    if node.type.dtype not in INTEGERS or node.ndim:
        raise GraphTypeError(f"the sizes are whole numbers, not {describe(node)} of type {node.type}")
    return sizes.as_size(node)


def _count(s: Sequence[Size], like: Node) -> Node:
    return cast(as_size_node(sizes.product(s)), like.type.dtype)


def _check_norm(norm: Any) -> None:
    if norm not in (None, "ortho", "no_norm"):
        raise GraphValueError(f"the norm {norm!r} is not one of None, 'ortho' and 'no_norm'")


explain_all(globals())
