"""Functions that have the same bits on every machine, in LLVM IR (graphc/arrays/portable.py has the formulas).

In: values of `real`, or words of `bits`. Out: the same. The formulas multiply and add in two steps on every processor,
and no instruction carries a flag under which LLVM could join these: so they need no word of the processor.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from graphc.arrays import portable
from graphc.codegen.vecmath.floats import Bits, Real, in_double

Halves = Callable[[Bits, Bits], tuple[ir.Value, ir.Value]]


def portable_log(x: Real) -> Real:
    """The natural logarithm, 1 ulp."""
    found: Real = portable.log(x) if not x.format.is_single else in_double(portable_log, x)
    return found


def portable_exp(x: Real) -> Real:
    """e**x, 2 ulp."""
    found: Real = portable.exp(x) if not x.format.is_single else in_double(portable_exp, x)
    return found


def portable_arccos(x: Real) -> Real:
    """The inverse cosine, 3 ulp."""
    found: Real = portable.arccos(x) if not x.format.is_single else in_double(portable_arccos, x)
    return found


def normals(low: Bits, high: Bits) -> tuple[ir.Value, ir.Value]:
    """Two normal numbers of two words."""
    cosine, sine = portable.normals(low, high)
    return cosine.value, sine.value


def of_each(function: Callable[[Bits], Real]) -> Halves:
    """A number of each of two words."""
    return lambda low, high: (function(low).value, function(high).value)


DRAWN: dict[str, Halves] = {
    "philoxnormal": normals,
    "philoxexponential": of_each(portable.exponential),
    "philoxgumbel": of_each(portable.gumbel),
    "philoxlogistic": of_each(portable.logistic),
    "philoxlaplace": of_each(portable.laplace),
    "philoxcauchy": of_each(portable.cauchy),
}
"""The numbers made of the two words of a block, by the names of functions of counters."""
