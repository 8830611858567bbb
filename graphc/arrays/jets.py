"""Truncated Taylor arithmetic: values with their first one or two derivatives in one direction.

In: tuples (value, first, second) or (value, first) of anything that can be added, multiplied and divided. Out: the same
for sums, products and inverses.
"""

from __future__ import annotations

from typing import Any

Jet = tuple[Any, ...]


def plus(a: Jet, b: Jet) -> Jet:
    return tuple(left + right for left, right in zip(a, b, strict=True))


def times(a: Jet, b: Jet) -> Jet:
    made = [a[0] * b[0], a[0] * b[1] + a[1] * b[0]]
    if len(a) > 2:
        made.append(a[0] * b[2] + 2.0 * (a[1] * b[1]) + a[2] * b[0])
    return tuple(made)


def inverse(a: Jet) -> Jet:
    value = 1.0 / a[0]
    first = -a[1] * value * value
    if len(a) == 2:
        return value, first
    return value, first, (-a[2] * value - 2.0 * a[1] * first) * value
