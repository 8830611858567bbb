"""Functions of single elements that few programs need, all composed of those of elementary.py.

In: nodes, arrays, numbers or lists of them. Out: nodes of the broadcast shape, with NumPy's dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, UNSIGNED, floating, is_float
from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.scaled import times_power
from graphc.tensor.creation import full_like
from graphc.tensor.elementary import (
    abs,
    add,
    copysign,
    equal,
    floor,
    fmod,
    greater,
    isfinite,
    isinf,
    less,
    log2,
    logical_and,
    logical_not,
    maximum,
    minimum,
    mul,
    nextafter,
    signbit,
    sin,
    sub,
    true_div,
    trunc,
    where,
)
from graphc.tensor.joining import stack
from graphc.tensor.reductions import max, min

__all__ = [
    "angle", "bitwise_count", "ceil_intdiv", "default", "frexp", "iscomplex", "iscomplexobj", "isneginf", "isposinf",
    "isreal", "isrealobj", "largest", "ldexp", "mod_check", "modf", "real_if_close", "sinc", "smallest", "spacing",
]  # fmt: skip


def ceil_intdiv(a: Any, b: Any) -> Node:
    """`a` / `b` rounded up, in the dtype of `a` // `b`: exact for integers, for floats their floor quotient and 1 where
    there is a remainder (Theano's)."""
    left, right = as_node(a), as_node(b)
    quotient = elementwise("floor_div", left, right)
    return add(quotient, cast(elementwise("not_equal", elementwise("mod", left, right), 0), quotient.type.dtype))


def mod_check(x: Any, y: Any) -> Node:
    """`x` % `y` (Theano's)."""
    return elementwise("mod", x, y)


def angle(z: Any, deg: bool = False) -> Node:
    """The argument of a number on the real line: 0, or pi (180 with `deg`) where it is below 0 or -0.0; NaN of NaN."""
    node = as_node(z)
    node = cast(node, "float64" if node.type.dtype == "bool" else floating(node.type.dtype))
    half = 180.0 if deg else math.pi
    return where(equal(node, node), cast(where(signbit(node), half, 0.0), node.type.dtype), node)


def bitwise_count(x: Any) -> Node:
    """The number of ones among the bits of the absolute value of integers, as uint8."""
    node = as_node(x)
    node = cast(node, "uint8") if node.type.dtype == "bool" else node
    if node.type.dtype not in INTEGERS:
        raise GraphTypeError(f"bitwise_count of {describe(node)} of dtype {node.type.dtype}: it is no integer")
    if (
        node.type.dtype not in UNSIGNED
    ):  # the absolute value of the least number is a number of the unsigned dtype alone
        node = cast(abs(node), f"u{node.type.dtype}")
    bits = cast(node, "uint64")

    def sums(value: Node, mask: int, shift: int) -> Node:
        pattern = np.uint64(mask)
        return add((value & pattern), (value >> np.uint64(shift)) & pattern)

    for mask, shift in (
        (0x5555555555555555, 1), (0x3333333333333333, 2), (0x0F0F0F0F0F0F0F0F, 4),
        (0x00FF00FF00FF00FF, 8), (0x0000FFFF0000FFFF, 16), (0x00000000FFFFFFFF, 32),
    ):  # fmt: skip
        bits = sums(bits, mask, shift)
    return cast(bits, "uint8")


def isneginf(x: Any) -> Node:
    """Where `x` is minus infinity."""
    return logical_and(isinf(x), less(x, 0))


def isposinf(x: Any) -> Node:
    """Where `x` is plus infinity."""
    return logical_and(isinf(x), greater(x, 0))


def isreal(x: Any) -> Node:
    """True everywhere: graphc has no complex dtypes."""
    return full_like(x, True, "bool")


def iscomplex(x: Any) -> Node:
    """False everywhere: graphc has no complex dtypes."""
    return full_like(x, False, "bool")


def isrealobj(x: Any) -> bool:
    """True: graphc has no complex dtypes."""
    return as_node(x) is not None


def iscomplexobj(x: Any) -> bool:
    """False: graphc has no complex dtypes."""
    return not isrealobj(x)


def real_if_close(a: Any, tol: float = 100) -> Node:
    """`a` itself: graphc has no complex dtypes."""
    return as_node(a)


def modf(x: Any) -> tuple[Node, Node]:
    """The fractional and the whole part, both with the sign of `x`."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    return where(isinf(node), copysign(0.0, node), fmod(node, 1.0)), trunc(node)


def ldexp(x: Any, i: Any) -> Node:
    """x * 2**i for integers `i`."""
    node, power = as_node(x), as_node(i)
    if is_float(power.type.dtype) or power.type.dtype == "uint64":
        raise GraphTypeError(
            f"ldexp: the exponent {describe(power)} is of dtype {power.type.dtype}, not a signed integer"
        )
    return times_power(cast(node, "float64" if is_number(x) else floating(node.type.dtype)), power)


def frexp(x: Any) -> tuple[Node, Node]:
    """Mantissa m and int32 exponent e of x = m * 2**e with 0.5 <= |m| < 1; what is not finite, and 0, is its own m."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    size = abs(node)
    known = logical_and(isfinite(node), logical_not(equal(node, 0)))
    # The logarithm is rounded, so the exponent may be one off beside a power of 2.
    guess = cast(add(floor(log2(where(known, size, 1.0))), 1), "int64")
    mantissa = ldexp(node, elementwise("neg", guess))
    above, below = greater(abs(mantissa), 1), less(abs(mantissa), 0.5)
    above = elementwise("logical_or", above, equal(abs(mantissa), 1))
    exponent = add(guess, sub(cast(above, "int64"), cast(below, "int64")))
    mantissa = where(above, true_div(mantissa, 2), where(below, mul(mantissa, 2), mantissa))
    return where(known, mantissa, node), cast(where(known, exponent, 0), "int32")


def spacing(x: Any) -> Node:
    """The distance of `x` to the next number away from 0, with its sign, that of zeros above 0; NaN of infinity."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    beyond = cast(where(less(node, 0), -math.inf, math.inf), node.type.dtype)
    return where(isfinite(node), sub(nextafter(node, beyond), node), math.nan)


def sinc(x: Any) -> Node:
    """sin(pi x) / (pi x), 1 at 0; beside it a series, for the sake of derivatives."""
    turned = mul(as_node(x), math.pi)
    small = less(abs(turned), 0.5)
    away, square = where(small, 1.0, turned), where(small, mul(turned, turned), 0.0)
    series: Any = 0.0
    for k in range(7, -1, -1):
        series = add(mul(series, square), (-1) ** k / math.factorial(2 * k + 1))
    return where(small, series, true_div(sin(away), away))


def default(x: Any, value: Any) -> Node:
    """`x`, or `value` where `x` is None (Theano's)."""
    return as_node(value if x is None else x)


def _extreme(args: Iterable[Any], two: Callable[..., Node], several: Callable[..., Node]) -> Node:
    nodes = list(args)
    return two(*nodes) if len(nodes) == 2 else several(stack(nodes), 0)


def largest(*args: Any) -> Node:
    """The largest of several values, element by element (Theano's)."""
    return _extreme(args, maximum, max)


def smallest(*args: Any) -> Node:
    """The smallest of several values, element by element (Theano's)."""
    return _extreme(args, minimum, min)
