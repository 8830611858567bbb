"""Expressions and statements that lowering is made of: casts, literals, templates with their operands, totals.

In: expressions, dtypes, NumPy's scalars. Out: expressions in the words of generated source, and what is asked of
statements while they are written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from graphc.loops.ir import INDEX, Apply, Const, Expr, Let, Loop, Set, Stmt, Store, Var, subexpressions

HOLE = re.compile(r"\b_(\d+)\b")


def cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.dtype == dtype else convert(expr, dtype)


def convert(expr: Expr, dtype: str) -> Expr:
    """`expr` as a number of `dtype`, written out even where it has that dtype."""
    return Apply(f"{'bool_' if dtype == 'bool' else dtype}(_0)", (expr,), dtype)


def within(index: Expr, size: Expr) -> Expr:
    """Whether an index, which may count from the end, lies within an axis."""
    return Apply("(_0 >= -_1) & (_0 < _1)", (index, size), "bool")


def typed(template: str, args: tuple[Expr, ...], dtype: str) -> Expr:
    """A template applied to those of the arguments that it has holes for."""
    template, holes = _holes_used(template)
    args = tuple(args[hole] for hole in holes)
    return args[0] if template == "_0" else Apply(template, args, dtype)


@lru_cache(maxsize=512)
def _holes_used(template: str) -> tuple[str, tuple[int, ...]]:
    """The template with its holes numbered anew, and which holes these were."""
    holes = sorted({int(number) for number in HOLE.findall(template)})
    return HOLE.sub(lambda hole: f"_{holes.index(int(hole[1]))}", template), tuple(holes)


def literal_const(value: object, dtype: str) -> Const:
    """The literal of a NumPy scalar, exact to the bit (but for the payload of a NaN)."""
    number = np.asarray(value)[()]
    if dtype == "bool":
        return Const(str(bool(number)), dtype)
    if dtype in ("float32", "float64"):
        return Const(repr(float(number)), dtype)
    return Const(str(int(number)), dtype)


def start_const(text: str, dtype: str) -> Const:
    """The literal an accumulator starts with."""
    if dtype == "bool":
        return Const(str(text in ("True", "1")), dtype)
    if dtype in ("float32", "float64"):
        return Const(repr(float(text)), dtype)
    return Const(text, dtype)


def add_to_total(total: Var, lost: Var, part: Expr) -> tuple[Set, Set]:
    """The steps that add to a sum carried in two floats."""
    error = Apply("rounding(_0, _1)", (total, part), total.dtype)
    return (
        Set(lost, Apply("accumulate(_0, _1)", (lost, error), lost.dtype)),
        Set(total, Apply("accumulate_in_order(_0, _1)", (total, part), total.dtype)),
    )


def whole_total(total: Expr, lost: Expr) -> Expr:
    """A sum that was carried in two floats. Where it is not finite, what was lost is NaN and means nothing."""
    return Apply("select(isfinite(_0), _0 + _1, _0)", (total, lost), total.dtype)


def has_loops(body: Sequence[Stmt], depth: int) -> bool:
    """Whether loops stand inside those of a nest of so many loops."""
    inner = [part for stmt in body if isinstance(stmt, Loop) for part in stmt.body]
    return has_loops(inner, depth - 1) if depth else any(isinstance(stmt, Loop) for stmt in body)


def divides(stmt: Stmt) -> bool:
    """Whether a statement splits an index by division."""
    exprs: list[Expr] = []
    match stmt:
        case Let(_, value) | Set(_, value):
            exprs = [value]
        case Store(_, index, value):
            exprs = [index, value]
        case Loop(_, _, body):
            return any(map(divides, body))
        case _:
            pass
    return any(
        isinstance(part, Apply) and part.dtype == INDEX and part.template in ("_0 // _1", "_0 % _1")
        for expr in exprs
        for part in subexpressions(expr)
    )
