"""Factors scaled by powers of two, so that no product of the first few of them overflows or vanishes.

In: nodes of floats. Out: nodes of their sizes. Exponents are int64 nodes, through which no derivative goes: a scale is
a constant of its place, and scaling by it is exact but for subnormal results.
"""

from __future__ import annotations

from graphc.ir.node import OPS, Node, make
from graphc.ops.elementwise import cast, elementwise

FRACTION = 20
"""Bits after the point of a logarithm to base 2: the scale of a product of 10**8 factors is right to 2**50."""
MOST = {"float32": 300, "float64": 2200}
"""Powers of two beyond which every product with a number is 0 or infinite."""


def times_power(x: Node, power: Node) -> Node:
    """x * 2**power for integers `power`. In three steps: 2**power may be no number where the result is one. Beyond
    `MOST` every result is 0 or infinite, and a third of it is the exponent of a number, as it must be: 0 times an
    infinity is none."""
    most = MOST[x.type.dtype]
    held = elementwise("clip", cast(power, "int64"), -most, most)
    third = elementwise("floor_div", held, 3)
    scale = elementwise("exp2", cast(third, x.type.dtype))
    last = elementwise("exp2", cast(elementwise("sub", held, elementwise("mul", third, 2)), x.type.dtype))
    return elementwise("mul", elementwise("mul", elementwise("mul", x, scale), scale), last)


def logarithms(x: Node) -> Node:
    """The logarithms of magnitudes to base 2, in units of 2**-FRACTION; 0 of what is 0 or no number."""
    known = elementwise("logical_and", elementwise("isfinite", x), elementwise("not_equal", x, 0))
    size = elementwise("where", known, elementwise("abs", x), 1)
    return cast(elementwise("rint", elementwise("mul", elementwise("log2", size), 2.0**FRACTION)), "int64")


def exponents(logs: Node) -> Node:
    """Logarithms in units of 2**-FRACTION, rounded down to whole ones."""
    return elementwise("right_shift", logs, FRACTION)


def steady(x: Node, axis: int, reverse: bool) -> tuple[Node, Node, Node]:
    """Factors whose products up to each place along an axis are between 1/2 and 2, the exponents of the powers of two
    that each is divided by, and those of the product up to each place."""
    logs = logarithms(x)
    upto = make(OPS["running_sum"], (logs,), {"axis": axis, "reverse": reverse})
    whole = exponents(upto)
    own = elementwise("sub", whole, exponents(elementwise("sub", upto, logs)))
    return times_power(x, elementwise("neg", own)), own, whole
