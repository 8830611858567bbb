"""Convolutions and correlations: `convolve`, `correlate`, `fftconvolve`, `convolve2d`, `correlate2d`.

In: signals of one or two axes, of equal rank. Out: SciPy's own results of arrays; tensors of tensors, by direct sums.

    convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))       array([1., 3., 2.])
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphValueError, RankError
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.scipy.named import offer
from graphc.tensor.signal import convolve1d, convolve2d as images_convolved


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Node:
    """Return the convolution of two signals of one or two axes. mode: "full", "same" (of the size of `in1`) or "valid".
    method: of tensors all are direct sums. Raises RankError for other ranks.

        >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
        array([1., 3., 2.])
    """
    left, right = as_node(in1), as_node(in2)
    if left.ndim != right.ndim or left.ndim not in (1, 2):
        raise RankError(f"convolve: two signals of one or of two axes are needed, not {left.type} and {right.type}")
    found: Node = (convolve1d if left.ndim == 1 else images_convolved)(left, right, mode)
    return found


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Node:
    """Return the correlation of two signals; arguments are as of `convolve`."""
    return convolve(in1, _turned(as_node(in2)), mode)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Node:
    """Return the convolution of two signals; of tensors by direct sums, whose rounding is smaller and whose time is the
    product of the sizes. Raises GraphValueError for `axes` of tensors."""
    if axes is not None:
        raise GraphValueError("fftconvolve: axes are for arrays alone")
    return convolve(in1, in2, mode)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Node:
    """Return the convolution of two signals, as `fftconvolve`."""
    return fftconvolve(in1, in2, mode, axes)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Node:
    """Return the convolution of two images. mode: as of `convolve`. boundary: what is around `in1`: "fill", of
    `fillvalue`, "wrap" or "symm"."""
    found: Node = images_convolved(in1, in2, mode, boundary, fillvalue)
    return found


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Node:
    """Return the correlation of two images; arguments are as of `convolve2d`."""
    left, right = as_node(in1), as_node(in2)
    if mode != "same":
        return convolve2d(left, _turned(right), mode, boundary, fillvalue)
    whole = convolve2d(left, _turned(right), "full", boundary, fillvalue)
    begins = [right.shape[axis] // 2 for axis in range(2)]  # the place that SciPy takes, of an even size another one
    parts = tuple(slice(begin, begin + left.shape[axis]) for axis, begin in enumerate(begins))
    return whole[parts]


def _turned(x: Node) -> Node:
    return x[(slice(None, None, -1),) * x.ndim]


__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve"]

offer(globals())
