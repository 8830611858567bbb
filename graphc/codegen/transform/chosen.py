"""Sums in which all terms but one are 0: that term is added, and no loop looks for it.

In: the statements of a function, as outlined. Out: a loop whose iterations add a number at a place that is chosen, and
0 at all others, becomes that addition:

    for j in independent(n):                                    if (0 <= k) & (k < n):
        out[j] = accumulate(out[j], select(k == j, x, 0.0))         out[k] = accumulate(out[k], x)

So sums by group that are written as comparisons, `where(group[:, None] == arange(n), x[:, None], 0).sum(axis=0)`, take
time for each row, not for each row and group. No bit changes: a sum begins with 0.0, so it is never -0.0, and 0.0 added
to any other number is that number. The partial sums of threads begin with -0.0, and are added to such a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.loopir import ir
from graphc.loopir.operators import ACCUMULATE, ADD, AND, CASTS, EQ, GE, LT, MUL, NEG, SELECT
from graphc.loopir.visit import map_bodies, op_count, read_buffers, replace_vars, stored_buffers, stride

MOST_OPS = 64
"""The most operators of a number whose 0 is looked for."""


def add_where_chosen(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Statements in which no loop adds 0 everywhere but at one place."""
    result: list[ir.Stmt] = []
    for stmt in body:
        inside = map_bodies(stmt, add_where_chosen)
        added = _additions(inside) if isinstance(inside, ir.Loop) and inside.is_independent else ()
        result.extend(added or (inside,))
    return tuple(result)


def _additions(loop: ir.Loop) -> tuple[ir.Stmt, ...]:
    """The additions that a loop makes of numbers other than 0, in its order; () for other loops."""
    values: dict[ir.Var, ir.Expr] = {}
    by_place: dict[ir.Expr, list[ir.Stmt]] = {}
    stored = stored_buffers(loop.body)
    for stmt in loop.body:
        if isinstance(stmt, ir.Let):
            value = replace_vars(stmt.value, values)
            if op_count(value) > MOST_OPS:
                return ()
            values[stmt.var] = value
            continue
        if not isinstance(stmt, ir.Store | ir.Set):
            return ()
        terms, last = _terms(stmt), 0
        if not terms:
            return ()
        for term in (replace_vars(term, values) for term in terms):
            found = _chosen(term, loop.var)
            if found is None or not stored.isdisjoint(read_buffers([ir.Let(loop.var, term)])):
                return ()
            place, value = found
            by_place.setdefault(place, []).append(_addition(stmt, value, {**values, loop.var: place}))
            order = [*by_place].index(place)
            if order < last:
                return ()  # two places may be one
            last = order
    return tuple(
        ir.If(ir.apply(AND, ir.apply(GE, place, loop.begin), ir.apply(LT, place, loop.size)), tuple(additions))
        for place, additions in by_place.items()
    )


def _terms(stmt: ir.Store | ir.Set) -> list[ir.Expr]:
    """The numbers that a statement adds to what it changes, one after the other; none where it does something else."""
    target = ir.Load(stmt.buffer, stmt.index) if isinstance(stmt, ir.Store) else stmt.var
    value, terms = stmt.value, list[ir.Expr]()
    while isinstance(value, ir.Apply) and value.op is ACCUMULATE:
        value, term = value.args
        terms.append(term)
    return terms[::-1] if value == target else []


def _addition(stmt: ir.Store | ir.Set, value: ir.Expr, at: Mapping[ir.Var, ir.Expr]) -> ir.Stmt:
    """The addition of one number where names stand for these values."""
    value = replace_vars(value, at)
    if isinstance(stmt, ir.Set):
        return ir.Set(stmt.var, ir.apply(ACCUMULATE, stmt.var, value))
    index = replace_vars(stmt.index, at)
    return ir.Store(stmt.buffer, index, ir.apply(ACCUMULATE, ir.Load(stmt.buffer, index), value))


def _chosen(term: ir.Expr, var: ir.Var) -> tuple[ir.Expr, ir.Expr] | None:
    """The iteration of a loop in which a term is not 0, and the term there; None where there is no such iteration."""
    for part in ir.subexpressions(term) if op_count(term) <= MOST_OPS else ():
        if isinstance(part, ir.Apply) and part.op is EQ and part.args[0].dtype == ir.INDEX:
            for one, other in (part.args, part.args[::-1]):
                place = _place(one, other, var)
                if place is not None and _is_zero(term, part):
                    return place, _where_true(term, part)
    return None


def _place(counting: ir.Expr, number: ir.Expr, var: ir.Var) -> ir.Expr | None:
    """The iteration in which what counts with the loop is a number."""
    if stride(counting, var, {}) != 1 or var in ir.subexpressions(number):
        return None
    return ir.subtract(number, replace_vars(counting, {var: ir.ZERO}))


def _is_zero(expr: ir.Expr, condition: ir.Expr) -> bool:
    """True where an expression is 0.0 or -0.0 if a condition does not hold."""
    if expr == condition:
        return True
    if isinstance(expr, ir.Const):
        return expr.text in ("0", "0.0", "-0.0", "False")
    if not isinstance(expr, ir.Apply):
        return False
    zeros = [_is_zero(arg, condition) for arg in expr.args]
    if expr.op is SELECT:
        return zeros[2] and (zeros[1] or zeros[0])
    if expr.op is AND:
        return any(zeros)
    return all(zeros) and (expr.op in (ADD, MUL, NEG) or expr.op in CASTS.values())


def _where_true(expr: ir.Expr, condition: ir.Expr) -> ir.Expr:
    """An expression where a condition holds."""
    if expr == condition:
        return ir.start_const("True", "bool")
    if not isinstance(expr, ir.Apply):
        return expr
    args = tuple(_where_true(arg, condition) for arg in expr.args)
    holds = isinstance(args[0], ir.Const) and args[0].text == "True"
    if holds and expr.op in (SELECT, AND):
        return args[1]
    if holds and expr.op in CASTS.values():
        return ir.start_const("1", expr.dtype)
    return ir.Apply(expr.op, args, expr.dtype)
