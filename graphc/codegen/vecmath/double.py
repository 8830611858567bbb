"""Numbers as sums of two floating-point values, the second of which is what rounding took from the first.

In: values of `real`, barring over- and underflow. Out: pairs whose sum is right to about twice the precision (Dekker,
Numer. Math. 18, 1971).
"""

from __future__ import annotations

from graphc.codegen.vecmath.floats import Real, add_exactly, fma, multiply_exactly, residual

Pair = tuple[Real, Real]


def add_pairs(a: Pair, b: Pair) -> Pair:
    """a + b."""
    total, error = add_exactly(a[0], b[0])
    return total, error + (a[1] + b[1])


def multiply_pairs(a: Pair, b: Pair) -> Pair:
    """a * b."""
    product, error = multiply_exactly(a[0], b[0])
    return product, fma(a[0], b[1], fma(a[1], b[0], error))


def scale_pair(a: Pair, factor: Real) -> Pair:
    """a * factor."""
    product, error = multiply_exactly(a[0], factor)
    return product, fma(a[1], factor, error)


def divide_pairs(a: Pair, b: Pair) -> Pair:
    """a / b."""
    inverse = 1.0 / b[0]
    quotient = a[0] * inverse
    rest = residual(a[0], quotient, b[0]) + fma(-quotient, b[1], a[1])
    return quotient, rest * inverse
