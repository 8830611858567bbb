"""Expressions and statements that lowering is made of: casts, literals, sums.

In: expressions, dtypes, NumPy's scalars. Out: expressions, and what is asked of
statements while they are written.
"""

from __future__ import annotations

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.loopir.ir import ONE, Const, Expr, Set, Var, apply, int_value, integer, quotient
from graphc.loopir.operators import (
    ACCUMULATE,
    ACCUMULATE_IN_ORDER,
    AND,
    CASTS,
    EQ,
    GE,
    LT,
    MAXIMUM,
    NE,
    NEG,
    OR,
    SUM_ERROR,
)


def cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.dtype == dtype else convert(expr, dtype)


def convert(expr: Expr, dtype: str) -> Expr:
    """`expr` as a number of `dtype`, written out even where it has that dtype."""
    return apply(CASTS[dtype], expr)


def within(index: Expr, size: Expr) -> Expr:
    """True where an index, which may count from the end, lies within an axis."""
    return apply(AND, apply(GE, index, apply(NEG, size)), apply(LT, index, size))


def same_value(a: Expr, b: Expr) -> Expr:
    """True where two numbers are equal, or both NaN."""
    if not is_float(a.dtype):
        return apply(EQ, a, b)
    return apply(OR, apply(EQ, a, b), apply(AND, apply(NE, a, a), apply(NE, b, b)))


def literal_const(value: object, dtype: str) -> Const:
    """The literal of a NumPy scalar, exact to the bit (but for the payload of a NaN)."""
    number = np.asarray(value)[()]
    if dtype == "bool":
        return Const(str(bool(number)), dtype)
    if is_float(dtype):
        return Const(repr(float(number)), dtype)
    return Const(str(int(number)), dtype)


def start_const(text: str, dtype: str) -> Const:
    """The literal an accumulator starts with."""
    if dtype == "bool":
        return Const(str(text in ("True", "1")), dtype)
    if is_float(dtype):
        return Const(repr(float(text)), dtype)
    return Const(text, dtype)


def add_with_error(sum: Var, error: Var, part: Expr) -> tuple[Set, Set]:
    """The steps that add `part` to a sum that is carried in two floats: the sum and its error."""
    more = apply(ACCUMULATE, error, apply(SUM_ERROR, sum, part))
    return Set(error, more), Set(sum, apply(ACCUMULATE_IN_ORDER, sum, part))


def safepoint_in_blocks(safepoint: Expr | None, block: int) -> Expr | None:
    """The number of iterations between two safepoints as a number of blocks of them."""
    if safepoint is None:
        return None
    known = int_value(safepoint)
    if known is not None:
        return integer(max(known // block, 1))
    return apply(MAXIMUM, quotient(safepoint, integer(block)), ONE)
