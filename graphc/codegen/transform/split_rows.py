"""Loops over rows that lie one after the other, as loops over rows and along each row.

In: the statements of a function, as outlined. Out: a loop that divides its place by the length of a row becomes two
loops, without divisions, where the rows turn out long enough when the function is called:

    for i in independent(begin, end):         if k >= 8:
        y[i] = x[i // k] * w[i % k]               for p in independent(begin // k, (end + k - 1) // k):
                                                      let first = p * k
                                                      for q in independent(maximum(begin - first, 0),
                                                                           minimum(end - first, k)):
                                                          let i = q + first
                                                          y[i] = x[p] * w[q]
                                              else:
                                                  ...

Such loops come from `repeat`, `tile`, and reshapes of what is not in order in memory. The inner loop runs over vectors;
a division of places has no form for vectors. A sum by blocks divides `row + r`, where `row` is the first place of the
block: then `first` is the distance from there. Iterations are the same, so what the loop says of them stays true; what
it adds up is added in another order, which `accumulate` leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from functools import partial
from typing import TypeAlias

from graphc.loopir import ir, operators, visit
from graphc.startup.record import record, replace

LEAST = 2
"""Elements of the rows that get a loop of their own."""
LEAST_KNOWN = 16
"""The same of a length that is known: LLVM divides by it with a multiplication."""
DIVISIONS = (operators.FLOORDIV, operators.MOD)

Values: TypeAlias = Mapping[ir.Var, ir.Expr]
"""Values of indices by name."""
Fresh: TypeAlias = Callable[[str], str]


def split_rows(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements in which no loop divides by the length of long rows; `fresh` gives names."""
    return tuple(_split(body, {}, frozenset(), fresh))


def _split(body: Sequence[ir.Stmt], known: Values, counting: AbstractSet[ir.Var], fresh: Fresh) -> list[ir.Stmt]:
    """Statements where these names of indices are known, and these variables count from 0 or more."""
    values, result = dict(known), list[ir.Stmt]()
    for stmt in body:
        if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX:
            values[stmt.var] = stmt.value
        inside = counting | {stmt.var} if isinstance(stmt, ir.Loop) else counting
        rows = Rows.of(stmt, values, counting) if isinstance(stmt, ir.Loop) else None
        if rows is not None:
            result.append(rows.parted(fresh))
        else:
            split = partial(_split, known=values, counting=inside, fresh=fresh)
            result.append(visit.map_bodies(stmt, lambda body, split=split: tuple(split(body))))  # type: ignore[misc]
    return result


@record()
class Rows:
    """A loop that divides its place by the length of a row. base: the place of iteration 0; own: the values of the
    indices that an iteration names."""

    loop: ir.Loop
    length: ir.Expr
    base: ir.Expr
    own: Values

    @staticmethod
    def of(loop: ir.Loop, values: Values, counting: AbstractSet[ir.Var]) -> Rows | None:
        """The rows of a loop that only computes elements, in any order, if all its divisions become simple."""
        if not loop.is_independent or loop.safepoint is not None or loop.abreast:
            return None
        if not all(isinstance(stmt, ir.Let | ir.Set | ir.Store | ir.Note) for stmt in loop.body):
            return None
        own = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX}
        changing = {loop.var, *visit.defined(loop.body)}
        divisions = [
            (visit.replace_vars(part.args[0], own), part.args[1])
            for part in dict.fromkeys(visit.all_expressions(loop.body))
            if isinstance(part, ir.Apply) and part.op in DIVISIONS and part.dtype == ir.INDEX
        ]
        for place, length in divisions:
            if visit.stride(place, loop.var, {}) != 1 or not is_fixed(length, changing):
                continue
            rows = Rows(loop, length, visit.replace_vars(place, {loop.var: ir.ZERO}), own)
            number = ir.int_value(length)
            if (number is not None and number < LEAST_KNOWN) or not is_natural(rows.base, values, counting):
                continue
            if all(rows.divides(division) or all(map(rows.keeps, division)) for division in divisions):
                return rows
        return None

    def divides(self, args: Sequence[ir.Expr]) -> bool:
        """True for the operands of a division of the loop's place by the length of a row."""
        place, length = args
        return length == self.length and self.replaced(place) == ir.add(self.base, self.loop.var)

    def replaced(self, place: ir.Expr) -> ir.Expr:
        """A place in terms of the variable of the loop, which comes last."""
        place = visit.replace_vars(place, self.own)
        if visit.stride(place, self.loop.var, {}) != 1:
            return place
        return ir.add(visit.replace_vars(place, {self.loop.var: ir.ZERO}), self.loop.var)

    def keeps(self, expr: ir.Expr) -> bool:
        """True for an index that is the same along a row."""
        if isinstance(expr, ir.Apply):
            return (expr.op is operators.FLOORDIV and self.divides(expr.args)) or all(map(self.keeps, expr.args))
        if isinstance(expr, ir.Var) and expr in self.own:
            return self.keeps(self.own[expr])
        return is_fixed(expr, {self.loop.var, *visit.defined(self.loop.body)})

    def parted(self, fresh: Fresh) -> ir.Stmt:
        """The loop over rows; and the loop as it was, for rows that turn out short."""
        loop, length = self.loop, self.length
        row, place, first = (ir.Var(fresh(name), ir.INDEX) for name in ("p", "q", "first"))

        def divided(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.Apply):
                if expr.op in DIVISIONS and expr.dtype == ir.INDEX and self.divides(expr.args):
                    return row if expr.op is operators.FLOORDIV else place
                return replace(expr, args=tuple(map(divided, expr.args)))
            return replace(expr, index=divided(expr.index)) if isinstance(expr, ir.Load) else expr

        body = tuple(visit.map_own_expressions(stmt, divided) for stmt in loop.body)
        if loop.var in visit.read_vars(body):
            body = (ir.Let(loop.var, ir.add(place, first)), *body)
        at_start = loop.begin == ir.ZERO == self.base
        along = replace(
            loop,
            var=place,
            begin=ir.ZERO if at_start else ir.apply(operators.MAXIMUM, ir.subtract(loop.begin, first), ir.ZERO),
            size=ir.apply(operators.MINIMUM, ir.subtract(loop.size, first), length),
            body=body,
        )
        end = ir.add(ir.add(self.base, loop.size), ir.subtract(length, ir.ONE))
        over = ir.Loop(
            row,
            ir.quotient(end, length),
            (ir.Let(first, ir.subtract(ir.multiply(row, length), self.base)), along),
            begin=ir.quotient(ir.add(self.base, loop.begin), length),
            conflicts=loop.conflicts,
        )
        if ir.int_value(length) is not None:
            return over
        return ir.If(ir.apply(operators.GE, length, ir.integer(LEAST)), (over,), (loop,))


def is_fixed(expr: ir.Expr, changing: AbstractSet[ir.Var]) -> bool:
    """True for an expression that is the same in all iterations."""
    return not any(isinstance(part, ir.Load) or part in changing for part in ir.subexpressions(expr))


def is_natural(expr: ir.Expr, values: Values, counting: AbstractSet[ir.Var]) -> bool:
    """True for a sum or product of numbers and of variables that count: it is not negative."""
    if isinstance(expr, ir.Var):
        return expr in counting or (expr in values and is_natural(values[expr], values, counting))
    if isinstance(expr, ir.Const):
        return (ir.int_value(expr) or 0) >= 0
    if isinstance(expr, ir.Apply) and expr.op in (operators.ADD, operators.MUL):
        return all(is_natural(arg, values, counting) for arg in expr.args)
    return False
