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
from graphc.loopir.ir import (
    INDEX,
    ZERO,
    Apply,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Note,
    Stmt,
    Store,
    Var,
    add,
    apply,
    int_value,
    integer,
    subtract,
)
from graphc.loopir.operators import ADD, CASTS, EQ, GE, GT, LE, LT, MAXIMUM, MINIMUM, NE, SELECT, SUB, Operator
from graphc.loopir.visit import map_bodies, map_expressions
from graphc.startup.record import replace

WIDEST = 16
"""Elements of a border at most."""
LEAST = 16
"""Iterations of a number that is known up to which a loop is not parted."""
FLIPPED = {LT: GT, LE: GE, GT: LT, GE: LE}
RELATIONS = {EQ: eq, NE: ne, LT: lt, LE: le, GT: gt, GE: ge}
MODS = ("%", "mod")
WRAPS = (*MODS, "//", "floordiv")
TRUTHS = Const("False", "bool"), Const("True", "bool")

Values: TypeAlias = Mapping[Var, Expr]
"""Values of indices by name."""
Fresh = Callable[[str], str]


def split_borders(body: Sequence[Stmt], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements whose loops are parted; `fresh` gives names."""
    return tuple(_parted(body, {}, fresh))


def _parted(body: Sequence[Stmt], known: Values, fresh: Fresh) -> list[Stmt]:
    values, result = dict(known), list[Stmt]()
    for stmt in body:
        if isinstance(stmt, Let) and stmt.var.dtype == INDEX:
            values[stmt.var] = stmt.value
        if isinstance(stmt, Loop) and _may_part(stmt):
            result += _in_parts(stmt, values, fresh)
        else:
            result.append(map_bodies(stmt, lambda inner: tuple(_parted(inner, values, fresh))))
    return result


def _may_part(loop: Loop) -> bool:
    """True where a loop only computes elements and stores them, in any order."""
    count = int_value(loop.size)
    return (
        loop.is_independent
        and loop.safepoint is None
        and (count is None or count > LEAST)
        and all(isinstance(stmt, Let | Store | Note) for stmt in loop.body)
    )


def _in_parts(loop: Loop, values: Values, fresh: Fresh) -> list[Stmt]:
    between = Between(loop, values)
    inside = between.statements(loop.body)
    if not between.is_used:
        return [loop]
    begin, end = Var(fresh("begin"), INDEX), Var(fresh("end"), INDEX)
    before, width, number = (Var(fresh(name), INDEX) for name in ("before", "width", "k"))
    place = add(loop.begin, apply(SELECT, apply(LT, number, before), number, add(number, width)))
    count = subtract(subtract(loop.size, loop.begin), width)
    known = int_value(loop.begin)
    first = integer(between.first if known is None else max(known, between.first))
    return [
        Let(begin, apply(MINIMUM, apply(MAXIMUM, loop.begin, first) if known is None else first, loop.size)),
        Let(end, apply(MAXIMUM, begin, add(loop.size, integer(between.last)))),
        Let(before, subtract(begin, loop.begin)),
        Let(width, subtract(end, begin)),
        replace(loop, begin=begin, size=end, body=tuple(iteration(inside, {}, fresh, True))),
        replace(loop, var=number, begin=ZERO, size=count, body=(Let(loop.var, place), *loop.body)),
    ]


class Between:
    """The iterations of a loop between its borders. `first`: the first of them. `last`: the offset of their end from
    the size of the loop. is_used: some expression is simpler there than at the borders."""

    def __init__(self, loop: Loop, values: Values) -> None:
        self.var, self.values = loop.var, dict(values)
        self.size, self.more = self.split_offset(loop.size)
        self.first = self.last = 0
        self.is_used = False

    def statements(self, body: Sequence[Stmt]) -> list[Stmt]:
        """The statements of an iteration, in which names of places are replaced by these."""
        result = []
        for stmt in body:
            stmt = map_expressions(stmt, self.simplified)
            if isinstance(stmt, Let) and (stmt.value in TRUTHS or stmt.var.dtype == INDEX):
                self.values[stmt.var] = stmt.value
                if stmt.value in TRUTHS or self.shift(stmt.value) is not None:
                    continue
            result.append(stmt)
        return result

    def simplified(self, expr: Expr) -> Expr:
        """An expression between the borders."""
        match expr:
            case Load(buffer, index):
                return Load(buffer, self.simplified(index))
            case Apply(op, args):
                made = Apply(op, tuple(map(self.simplified, args)), expr.dtype)
                found = self.rule(made)
                self.is_used |= found is not None
                return made if found is None else found
            case Var() if self.values.get(expr) in TRUTHS:
                return self.values[expr]
            case Var() if expr != self.var and (number := self.shift(expr)) is not None:
                return add(self.var, integer(number))
        return expr

    # What is known ---------------------------------------------------------------------------------------------

    def split_offset(self, expr: Expr) -> tuple[Expr, int]:
        """An index as another one and a number that is added to it, names resolved."""
        total = 0
        while (number := int_value(expr)) is None:
            match expr:
                case Var() if expr in self.values:
                    expr = self.values[expr]
                case Apply(op, (inner,)) if op is CASTS[INDEX] and inner.dtype == INDEX:
                    expr = inner
                case Apply(op, (left, right)) if op is ADD and (step := int_value(left)) is not None:
                    expr, total = right, total + step
                case Apply(op, (left, right)) if op in (ADD, SUB) and (step := int_value(right)) is not None:
                    expr, total = left, total + (step if op is ADD else -step)
                case _:
                    return expr, total
        return ZERO, total + number

    def shift(self, expr: Expr) -> int | None:
        """The number that is added to the loop's variable; None for other expressions."""
        base, number = self.split_offset(expr) if expr.dtype == INDEX else (expr, 0)
        return number if base == self.var else None

    def from_end(self, expr: Expr) -> int | None:
        """The difference of a bound and the size of the loop; of a maximum with a literal the other part is a bound as
        well."""
        base, number = self.split_offset(expr)
        if isinstance(base, Apply) and base.op is MAXIMUM:
            parts = [part for part in base.args if int_value(part) is None]
            base, more = self.split_offset(parts[0]) if len(parts) == 1 else (base, 0)
            number += more
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

    def rule(self, expr: Apply) -> Expr | None:
        """The value of an operation between the borders; None where it is as anywhere."""
        op, args = expr.op, expr.args
        if op is SELECT and args[0] in TRUTHS:
            return args[1 if args[0] == TRUTHS[True] else 2]
        if len(args) != 2 or args[0].dtype != INDEX:
            return None
        left, right = args
        if op.name in WRAPS:
            return self.wrapped(op.name, left, right)
        one, other = int_value(left), int_value(right)
        if op in RELATIONS and one is not None and other is not None:
            return TRUTHS[RELATIONS[op](one, other)]
        if self.shift(left) is None:
            left, right, op = right, left, FLIPPED.get(op, op)
        number = self.shift(left)
        if number is None:
            return None
        if op in (MAXIMUM, MINIMUM):
            return self.clamped(op, number, right)
        return self.compared(op, number, right) if op in RELATIONS else None

    def wrapped(self, name: str, left: Expr, right: Expr) -> Expr | None:
        number, size = int_value(left), int_value(right)
        if number is not None and size:
            return integer(number % size if name in MODS else number // size)
        number, bound = self.shift(left), self.from_end(right)
        if number is None or bound is None or not (self.begins(-number) and self.ends(bound - number)):
            return None
        return add(self.var, integer(number)) if name in MODS else ZERO

    def clamped(self, op: Operator, number: int, right: Expr) -> Expr | None:
        bound = int_value(right) if op is MAXIMUM else self.from_end(right)
        if bound is None:
            return None
        if not (self.begins(bound - number) if op is MAXIMUM else self.ends(bound - number + 1)):
            return None
        return add(self.var, integer(number))

    def compared(self, op: Operator, number: int, right: Expr) -> Expr | None:
        """Between, a place is beyond a literal bound, and before one that is counted from the end."""
        literal, bound = int_value(right), self.from_end(right)
        equal_is_out = op in (LE, GT, EQ, NE)
        if literal is not None and self.begins(literal - number + equal_is_out):
            return TRUTHS[op in (GE, GT, NE)]
        if bound is not None and self.ends(bound - number + (op in (LE, GT))):
            return TRUTHS[op in (LT, LE, NE)]
        return None
