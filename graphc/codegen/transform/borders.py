"""Loops parted where the borders of an array end, so that what stands between needs no borders.

In: the statements of a kernel whose loops are marked. Out: the same computation, in which an innermost loop whose
positions are clamped, wrapped or chosen by their distance from the ends goes over the elements between the borders by
itself (index-set splitting), and then over those at the borders. A difference whose neighbours are clamped:

    for i in independent(n):                              let end = maximum(1, n)
        let before = maximum(i - 1, 0)                    for i in independent(1, end):
        y[i] = x[i] - x[before]                               y[i] = x[i] - x[i + -1]
                                                          for k in independent(n - (end - 1)):
                                                              let i = select(k < 1, k, k + (end - 1))
                                                              let before = maximum(i - 1, 0)
                                                              y[i] = x[i] - x[before]

Between, elements are read in order; clamped ones are gathered. A bound is that of a border where it is a literal, or
differs from the number of iterations by one: a loop of which half is beyond a bound stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias

from graphc.codegen.transform.unroll import iteration
from graphc.loopir import ir, operators, visit
from graphc.startup.record import replace

WIDEST = 16
"""Elements of a border at most."""
LEAST = 16
"""Iterations of a number that is known up to which a loop is not parted."""
FLIPPED = {
    operators.LT: operators.GT,
    operators.LE: operators.GE,
    operators.GT: operators.LT,
    operators.GE: operators.LE,
}
RELATIONS = {operators.EQ: eq, operators.NE: ne, operators.LT: lt, operators.LE: le, operators.GT: gt, operators.GE: ge}
MODS = ("%", "mod")
WRAPS = (*MODS, "//", "floordiv")
TRUTHS = ir.Const("False", "bool"), ir.Const("True", "bool")

Values: TypeAlias = Mapping[ir.Var, ir.Expr]
"""Values of indices by name."""
Fresh = Callable[[str], str]


def split_borders(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements whose loops are parted; `fresh` gives names."""
    return tuple(_parted(body, {}, fresh))


def _parted(body: Sequence[ir.Stmt], known: Values, fresh: Fresh) -> list[ir.Stmt]:
    values, result = dict(known), list[ir.Stmt]()
    for stmt in body:
        if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX:
            values[stmt.var] = stmt.value
        if isinstance(stmt, ir.Loop) and _may_part(stmt):
            result += _in_parts(stmt, values, fresh)
        else:
            result.append(visit.map_bodies(stmt, lambda inner: tuple(_parted(inner, values, fresh))))
    return result


def _may_part(loop: ir.Loop) -> bool:
    """True where a loop only computes elements and stores them, in any order."""
    count = ir.int_value(loop.size)
    return (
        loop.is_independent
        and loop.safepoint is None
        and (count is None or count > LEAST)
        and all(isinstance(stmt, ir.Let | ir.Store | ir.Note) for stmt in loop.body)
    )


def _in_parts(loop: ir.Loop, values: Values, fresh: Fresh) -> list[ir.Stmt]:
    between = Between(loop, values)
    inside = between.statements(loop.body)
    if not between.is_used:
        return [loop]
    begin, end = ir.Var(fresh("begin"), ir.INDEX), ir.Var(fresh("end"), ir.INDEX)
    before, width, number = (ir.Var(fresh(name), ir.INDEX) for name in ("before", "width", "k"))
    place = ir.add(
        loop.begin, ir.apply(operators.SELECT, ir.apply(operators.LT, number, before), number, ir.add(number, width))
    )
    count = ir.subtract(ir.subtract(loop.size, loop.begin), width)
    known = ir.int_value(loop.begin)
    first = ir.integer(between.first if known is None else max(known, between.first))
    return [
        ir.Let(
            begin,
            ir.apply(
                operators.MINIMUM, ir.apply(operators.MAXIMUM, loop.begin, first) if known is None else first, loop.size
            ),
        ),
        ir.Let(end, ir.apply(operators.MAXIMUM, begin, ir.add(loop.size, ir.integer(between.last)))),
        ir.Let(before, ir.subtract(begin, loop.begin)),
        ir.Let(width, ir.subtract(end, begin)),
        replace(loop, begin=begin, size=end, body=tuple(iteration(inside, {}, fresh, True))),
        replace(loop, var=number, begin=ir.ZERO, size=count, body=(ir.Let(loop.var, place), *loop.body)),
    ]


class Between:
    """The iterations of a loop between its borders. `first`: the first of them. `last`: the offset of their end from
    the size of the loop. is_used: some expression is simpler there than at the borders."""

    def __init__(self, loop: ir.Loop, values: Values) -> None:
        self.var, self.values = loop.var, dict(values)
        self.size, self.more = self.split_offset(loop.size)
        self.first = self.last = 0
        self.is_used = False

    def statements(self, body: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """The statements of an iteration, in which names of places are replaced by these."""
        result = []
        for stmt in body:
            stmt = visit.map_expressions(stmt, self.simplified)
            if isinstance(stmt, ir.Let) and (stmt.value in TRUTHS or stmt.var.dtype == ir.INDEX):
                self.values[stmt.var] = stmt.value
                if stmt.value in TRUTHS or self.shift(stmt.value) is not None:
                    continue
            result.append(stmt)
        return result

    def simplified(self, expr: ir.Expr) -> ir.Expr:
        """An expression between the borders."""
        match expr:
            case ir.Load(buffer, index):
                return ir.Load(buffer, self.simplified(index))
            case ir.Apply(op, args):
                rebuilt = ir.Apply(op, tuple(map(self.simplified, args)), expr.dtype)
                simpler = self.rule(rebuilt)
                self.is_used |= simpler is not None
                return rebuilt if simpler is None else simpler
            case ir.Var() if self.values.get(expr) in TRUTHS:
                return self.values[expr]
            case ir.Var() if expr != self.var and (number := self.shift(expr)) is not None:
                return ir.add(self.var, ir.integer(number))
        return expr

    # What is known ---------------------------------------------------------------------------------------------

    def split_offset(self, expr: ir.Expr) -> tuple[ir.Expr, int]:
        """An index as another one and a number that is added to it, names resolved."""
        total = 0
        while (number := ir.int_value(expr)) is None:
            match expr:
                case ir.Var() if expr in self.values:
                    expr = self.values[expr]
                case ir.Apply(op, (inner,)) if op is operators.CASTS[ir.INDEX] and inner.dtype == ir.INDEX:
                    expr = inner
                case ir.Apply(op, (left, right)) if op is operators.ADD and (step := ir.int_value(left)) is not None:
                    expr, total = right, total + step
                case ir.Apply(op, (left, right)) if (
                    op in (operators.ADD, operators.SUB) and (step := ir.int_value(right)) is not None
                ):
                    expr, total = left, total + (step if op is operators.ADD else -step)
                case _:
                    return expr, total
        return ir.ZERO, total + number

    def shift(self, expr: ir.Expr) -> int | None:
        """The number that is added to the loop's variable; None for other expressions."""
        base, number = self.split_offset(expr) if expr.dtype == ir.INDEX else (expr, 0)
        return number if base == self.var else None

    def from_end(self, expr: ir.Expr) -> int | None:
        """The difference of a bound and the size of the loop; of a maximum with a literal the other part is a bound as
        well."""
        base, number = self.split_offset(expr)
        if isinstance(base, ir.Apply) and base.op is operators.MAXIMUM:
            parts = [part for part in base.args if ir.int_value(part) is None]
            base, offset = self.split_offset(parts[0]) if len(parts) == 1 else (base, 0)
            number += offset
        return number - self.more if base == self.size else None

    def begins(self, first: int | None) -> bool:
        """Have what is between begin there, unless that is too far from the begin of the loop."""
        if first is None or first > WIDEST:
            return False
        self.first = max(self.first, first)
        return True

    def ends(self, last: int | None) -> bool:
        """Have what is between end so far from the size of the loop, unless that is too far."""
        if last is None or last < -WIDEST:
            return False
        self.last = min(self.last, last)
        return True

    # Rules -----------------------------------------------------------------------------------------------------

    def rule(self, expr: ir.Apply) -> ir.Expr | None:
        """The value of an operation between the borders; None where it is as anywhere."""
        op, args = expr.op, expr.args
        if op is operators.SELECT and args[0] in TRUTHS:
            return args[1 if args[0] == TRUTHS[True] else 2]
        if len(args) != 2 or args[0].dtype != ir.INDEX:
            return None
        left, right = args
        if op.name in WRAPS:
            return self.wrapped(op.name, left, right)
        one, other = ir.int_value(left), ir.int_value(right)
        if op in RELATIONS and one is not None and other is not None:
            return TRUTHS[RELATIONS[op](one, other)]
        if self.shift(left) is None:
            left, right, op = right, left, FLIPPED.get(op, op)
        number = self.shift(left)
        if number is None:
            return None
        if op in (operators.MAXIMUM, operators.MINIMUM):
            return self.clamped(op, number, right)
        return self.compared(op, number, right) if op in RELATIONS else None

    def wrapped(self, name: str, left: ir.Expr, right: ir.Expr) -> ir.Expr | None:
        number, size = ir.int_value(left), ir.int_value(right)
        if number is not None and size:
            return ir.integer(number % size if name in MODS else number // size)
        number, bound = self.shift(left), self.from_end(right)
        if number is None or bound is None or not (self.begins(-number) and self.ends(bound - number)):
            return None
        return ir.add(self.var, ir.integer(number)) if name in MODS else ir.ZERO

    def clamped(self, op: operators.Operator, number: int, right: ir.Expr) -> ir.Expr | None:
        bound = ir.int_value(right) if op is operators.MAXIMUM else self.from_end(right)
        if bound is None:
            return None
        if not (self.begins(bound - number) if op is operators.MAXIMUM else self.ends(bound - number + 1)):
            return None
        return ir.add(self.var, ir.integer(number))

    def compared(self, op: operators.Operator, number: int, right: ir.Expr) -> ir.Expr | None:
        """Between, a place is beyond a literal bound, and before one that is counted from the end."""
        literal, bound = ir.int_value(right), self.from_end(right)
        equal_is_out = op in (operators.LE, operators.GT, operators.EQ, operators.NE)
        if literal is not None and self.begins(literal - number + equal_is_out):
            return TRUTHS[op in (operators.GE, operators.GT, operators.NE)]
        if bound is not None and self.ends(bound - number + (op in (operators.LE, operators.GT))):
            return TRUTHS[op in (operators.LT, operators.LE, operators.NE)]
        return None
