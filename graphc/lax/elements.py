"""Functions of single elements that `lax` has and `graphc.tensor` has not, or under another meaning.

In: tensors, arrays and numbers, which broadcast. Out: tensors.

    rem(-7, 3)      -1, of the sign of the dividend, as in C; % of NumPy has the divisor's
    div(-7, 3)      -2, rounded towards zero
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc import tensor
from graphc.arrays.dtypes import INTEGERS, is_inexact
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, cast, elementwise

abs, acos, acosh, add = tensor.abs, tensor.arccos, tensor.arccosh, tensor.add
asin, asinh, atan, atan2 = tensor.arcsin, tensor.arcsinh, tensor.arctan, tensor.arctan2
atanh, batch_matmul, bessel_i0e, bessel_i1e = tensor.arctanh, tensor.matmul, tensor.i0e, tensor.i1e
betainc, bitwise_and, bitwise_not, bitwise_or = (
    tensor.betainc,
    tensor.bitwise_and,
    tensor.bitwise_not,
    tensor.bitwise_or,
)
bitwise_xor, cbrt, ceil, complex, conj = tensor.bitwise_xor, tensor.cbrt, tensor.ceil, tensor.complex, tensor.conj
cos, cosh, digamma, eq = tensor.cos, tensor.cosh, tensor.digamma, tensor.eq
erf, erf_inv, erfc, exp = tensor.erf, tensor.erfinv, tensor.erfc, tensor.exp
exp2, expm1, floor, ge = tensor.exp2, tensor.expm1, tensor.floor, tensor.ge
gt, igamma, igammac, imag = tensor.gt, tensor.gammainc, tensor.gammaincc, tensor.imag
is_finite, le, lgamma, log = tensor.isfinite, tensor.le, tensor.gammaln, tensor.log
log1p, logistic, lt, max = tensor.log1p, tensor.sigmoid, tensor.lt, tensor.maximum
min, mul, ne, neg = tensor.minimum, tensor.mul, tensor.neq, tensor.neg
nextafter, polygamma, pow, real = tensor.nextafter, tensor.polygamma, tensor.pow, tensor.real
reciprocal, shift_left, shift_right_arithmetic, sign = (
    tensor.reciprocal,
    tensor.left_shift,
    tensor.right_shift,
    tensor.sign,
)
sin, sinh, sqrt, square = tensor.sin, tensor.sinh, tensor.sqrt, tensor.square
sub, tan, tanh = tensor.sub, tensor.tan, tensor.tanh


class RoundingMethod:
    """The ways of `round`: halves go away from zero, or to the even neighbour. Raises TypeError for an argument: only
    its members are used."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def clamp(min: Any, x: Any, max: Any) -> Node:
    """Return `x` held between `min` and `max`, in the dtype of `x`. Where they cross, `max` holds.

    >>> lax.clamp(0.0, T.constant([-1.0, 0.5, 2.0]), 1.0).eval()
    array([0. , 0.5, 1. ])
    """
    node = as_node(x)
    return cast(elementwise("minimum", elementwise("maximum", node, min), max), node.type.dtype)


def select(pred: Any, on_true: Any, on_false: Any) -> Node:
    """Return the elements of `on_true` where `pred`, a bool or bools, holds, and those of `on_false` elsewhere.

    >>> lax.select(T.constant([True, False]), T.constant([1, 2]), T.constant([3, 4])).eval()
    array([1, 4])
    """
    node = as_node(pred)
    if node.type.dtype != "bool":
        raise GraphTypeError(f"select: the condition must be of bools; {describe(node)} is {node.type}")
    return elementwise("where", node, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Node:
    """Return for each element that of the case with the number `which`: bools choose among two cases, integers among
    any number, clamped to them. Raises GraphTypeError for floats, GraphValueError without cases.

        >>> lax.select_n(T.constant([2, 0]), T.constant([1, 2]), T.constant([3, 4]), T.constant([5, 6])).eval()
        array([5, 2])
    """
    node = as_node(which)
    if not cases or (node.type.dtype == "bool" and len(cases) > 2):
        raise GraphValueError(f"select_n: {len(cases)} cases, for {describe(node)} of type {node.type}")
    if node.type.dtype not in (*INTEGERS, "bool"):
        raise GraphTypeError(f"select_n: {describe(node)} of type {node.type} is no number of a case")
    number = cast(node, "int64")
    found = as_node(cases[0])
    for place, case in enumerate(cases[1:], 1):
        found = elementwise("where", elementwise("greater_equal", number, place), case, found)
    return found


def div(x: Any, y: Any) -> Node:
    """Return `x / y`; of integers the quotient rounded towards zero, as in C. By zero it is the number of NumPy's //.

    >>> lax.div(T.constant([7, -7]), 2).eval(), lax.div(T.constant(7.0), 2.0).eval()
    (array([ 3, -3]), array(3.5))
    """
    sum_ = elementwise("add", x, y)
    if is_inexact(sum_.type.dtype):
        return elementwise("true_div", x, y)
    quotient = elementwise("floor_div", x, y)
    rest = elementwise("sub", x, elementwise("mul", quotient, y))
    differs = elementwise("logical_and", elementwise("not_equal", rest, 0), elementwise("less", quotient, 0))
    return elementwise("add", quotient, cast(differs, quotient.type.dtype))


def rem(x: Any, y: Any) -> Node:
    """Return the rest of `x / y`, of the sign of `x`, as in C.

    >>> lax.rem(T.constant([7, -7]), 3).eval()
    array([ 1, -1])
    """
    return elementwise("fmod", x, y)


def round(x: Any, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Node:
    """Return the nearest whole numbers. rounding_method: where halves go, one of `lax.RoundingMethod`.

    >>> lax.round(T.constant([0.5, 1.4, -2.5])).eval()
    array([ 1.,  1., -3.])
    """
    away = rounding_method == RoundingMethod.AWAY_FROM_ZERO
    found: Node = (tensor.round_half_away_from_zero if away else tensor.round_half_to_even)(x)
    return found


def rsqrt(x: Any) -> Node:
    """Return 1 / sqrt(x).

    >>> lax.rsqrt(T.constant(4.0)).eval()
    array(0.5)
    """
    return elementwise("reciprocal", elementwise("sqrt", x))


def integer_pow(x: Any, y: int) -> Node:
    """Return `x` to the power of a Python integer, in the dtype of `x`. Raises GraphTypeError for another exponent.

    >>> lax.integer_pow(T.constant(2.0), -2).eval()
    array(0.25)
    """
    if not isinstance(y, int | np.integer) or isinstance(y, bool):
        raise GraphTypeError(f"integer_pow: the exponent must be a Python integer, not {y!r}")
    node = as_node(x)
    return cast(elementwise("pow", node, int(y)), node.type.dtype)


def population_count(x: Any) -> Node:
    """Return how many bits of each integer are 1, in the dtype of `x`: of a negative one those of its two's complement.

    >>> lax.population_count(T.constant([7, 8])).eval()
    array([3, 1])
    """
    node = _integers("population_count", x)
    count: Node = cast(tensor.bitwise_count(_unsigned(node)), node.type.dtype)
    return count


def clz(x: Any) -> Node:
    """Return how many bits of each integer are 0 before the first that is 1, in the dtype of `x`.

    >>> lax.clz(T.constant([1, 0], dtype="int8")).eval()
    array([7, 8], dtype=int8)
    """
    node = _integers("clz", x)
    bits, spread = np.dtype(node.type.dtype).itemsize * 8, _unsigned(node)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            spread = elementwise("bitwise_or", spread, _shifted(spread, as_node(shift, spread.type.dtype)))
    return cast(elementwise("sub", bits, cast(tensor.bitwise_count(spread), "int64")), node.type.dtype)


def shift_right_logical(x: Any, y: Any) -> Node:
    """Return the bits of integers moved to the right by `y`, with zeros behind them, whatever the sign.

    >>> lax.shift_right_logical(T.constant(-1, dtype="int8"), 4).eval()
    array(15, dtype=int8)
    """
    node = _integers("shift_right_logical", x)
    unsigned = _unsigned(node)
    return cast(_shifted(unsigned, cast(as_node(y), unsigned.type.dtype)), node.type.dtype)


def _shifted(x: Node, count: Node) -> Node:
    return elementwise("right_shift", x, count)


def _integers(name: str, x: Any) -> Node:
    node = as_node(x)
    if node.type.dtype not in INTEGERS:
        raise GraphTypeError(f"{name}: {describe(node)} of type {node.type} has no bits: give integers")
    return node


def _unsigned(x: Node) -> Node:
    """Return the bits of integers as unsigned ones."""
    return cast(x, x.type.dtype if x.type.dtype[0] == "u" else f"u{x.type.dtype}")
