"""Fourier transforms of complex lines, whose real and imaginary parts lie along a last axis.

In: arrays (lines, n, 2). Out: an op record, and functions that make its nodes. graphc has no complex dtypes. Every mode
computes in float64. The routine is native (codegen/fourier).

    gc_fourier_<dtype>(lines, n, x and its three strides, result, workspace)

It returns 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.lowering import Call, Extent, Passed, Result, Strided, Workspace
from graphc.ir.node import OPS, Array, Attributes, Guard, Node, Size, Type, define_op, describe, make
from graphc.ir.samples import Argument, Sample, Samples
from graphc.ops.index import subtensor
from graphc.ops.shape import label_op, reshape

RADICES = (4, 2, 3, 5, 7, 11, 13)
"""The factors of a length that transforms are made of. Another length is that of a convolution (Bluestein)."""
LANES = 4
"""Lines that are transformed together."""
LONGEST = 2**30
"""Numbers of a line at most: the square of a place is a whole number of 64 bits."""


def fourier(x: Node) -> Node:
    """The sums over j of x[:, j] e**(-2 pi i j k / n)."""
    return make(OPS["fourier"], (x,))


def backward(x: Node) -> Node:
    """The sums over j of x[:, j] e**(2 pi i j k / n): both parts change places before the transform and behind it."""
    return exchanged(fourier(exchanged(x)))


def exchanged(x: Node) -> Node:
    """Each imaginary part before the real one."""
    return subtensor(x, (0, 0, 1), x.type.shape, (1, 1, -1))


def is_factored(n: int) -> bool:
    """True for a product of RADICES."""
    for radix in RADICES:
        while n > 1 and n % radix == 0:
            n //= radix
    return n == 1


def _type(args: Sequence[Node], attrs: Attributes) -> Type:
    (x,) = args
    if x.ndim != 3 or x.type.shape[2] != 2 or not is_float(x.type.dtype):
        raise GraphTypeError(f"a transform is of floats (lines, n, 2), not of {describe(x)} of type {x.type}")
    return x.type


def transformed(x: Array) -> Array:
    """The value of `fourier`."""
    lines = np.ascontiguousarray(x, "float64").view("complex128")[..., 0]
    found = np.fft.fft(lines, axis=1) if lines.shape[1] else lines
    return np.ascontiguousarray(found)[..., None].view("float64").astype(x.dtype)


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    (x,) = args
    lines, *line = x.type.shape[1:]
    return reshape(fourier(reshape(x, (sizes.multiply(size, lines), *line))), x.type.shape)


def symbol(dtype: str) -> str:
    """The routine."""
    return f"gc_fourier_{dtype}"


def _passed(node: Node) -> list[Passed]:
    (x,) = node.args
    lines, n, _ = x.type.shape
    return [Extent(lines), Extent(n), Strided(x, (0, 1, 2)), Result(), Workspace("float64", (_space(lines, n),))]


def _space(lines: Size, n: Size) -> Size:
    """Room for 2 n numbers of roots, and for two complex arrays of lines that go together. A convolution has at most
    5/2 n + 16 places, and two arrays more."""
    together = sizes.multiply(sizes.minimum(lines, LANES), 4)
    if isinstance(n, int) and is_factored(n):
        return sizes.multiply(n, sizes.add(together, 4))
    places = sizes.add(sizes.multiply(n, 3), 16)
    return sizes.multiply(places, sizes.add(together, 6))


def _guards(node: Node) -> Sequence[Guard]:
    n = node.type.shape[1]
    if isinstance(n, int) and n <= LONGEST:
        return ()
    return [Guard(n, "<=", LONGEST, f"{label_op(node)}: a line of {{left}} numbers is too long")]


def _samples() -> Samples:
    shapes = (1, 1, 2), (5, 4, 2), (2, 6, 2), (3, 17, 2), (0, 3, 2), (2, 0, 2), (1, 13, 2)

    def of_pairs(x: Node) -> Node:
        return fourier(subtensor(x, (0, 0, 0), (*x.type.shape[:2], 2), (1, 1, 1)))

    return Samples(lambda: [Sample(f"of {shape}", of_pairs, (Argument(shape),), True) for shape in shapes])


CALL = Call(lambda node: symbol(node.type.dtype), _passed, lambda node: [*node.type.shape, 50])

define_op(
    "fourier",
    infer=_type,
    eval=lambda node, x: transformed(x),
    lower=lambda node: CALL,
    vjp=lambda node, cotangent: [backward(cotangent)],
    guards=_guards,
    cost=100.0,
    samples=_samples(),
    doc="Fourier transforms of complex lines.",
    batch=_batch,
)
