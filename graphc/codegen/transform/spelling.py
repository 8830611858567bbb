"""Statements as a key and operands: two that differ in operands only have equal keys.

In: a statement. Out: its key and its operands, which are names, positions and other integers, and where a temporary
begins in a larger buffer; and the statement with other operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from graphc.loops.ir import (
    INDEX,
    ZERO,
    Apply,
    Break,
    Buffer,
    Check,
    Const,
    Expr,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Note,
    Pointer,
    Set,
    Stmt,
    Store,
    Var,
    add,
    integer,
    multiply,
    subtract,
)
from graphc.loops.operators import ADD, MUL
from graphc.loops.visit import expressions
from graphc.startup.record import record

Operand: TypeAlias = Var | int
Places: TypeAlias = Mapping[Buffer, tuple[Buffer, int]]
"""Temporaries as parts of larger buffers: which, and from which element on."""


@record()
class Affine:
    """The number `first + step * by` in step after step."""

    first: int
    by: int

    def at(self, step: Var) -> Expr:
        if self.by < 0:
            return subtract(integer(self.first), multiply(step, integer(-self.by)))
        return add(multiply(step, integer(self.by)), integer(self.first))


class Spelling:
    """Statements as a key, equal where they differ in operands only, and their operands, in order; `targets` are the
    numbers of those that the statements define."""

    __slots__ = ("key", "operands", "places", "targets")

    def __init__(self, stmt: Stmt, places: Places) -> None:
        self.places = places
        self.key: list[object] = []
        self.operands: list[Operand] = []
        self.targets: list[int] = []
        self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        self.key.append(type(stmt))
        match stmt:
            case Let(var, value) | Set(var, value):
                self.target(var)
                self.expression(value, may_lift(stmt))
            case Store(buffer, index, value):
                self.buffer(buffer)
                self.expression(index)
                self.expression(value)
            case Loop(var, size, body, begin, conflicts):
                self.target(var)
                held = None if conflicts is None else tuple(self.places.get(each, (each,))[0] for each in conflicts)
                self.key += (len(body), held, stmt.asks and object())  # one that asks is equal to none
                self.expression(begin, False)
                self.expression(size, False)
                for inner in body:
                    self.statement(inner)
            case If(condition, then, orelse):
                self.key += (len(then), len(orelse))
                self.expression(condition)
                for inner in (*then, *orelse):
                    self.statement(inner)
            case Invoke(function, args, code):
                self.key += (function, len(args), object() if code else None)
                for arg in args:
                    self.expression(arg)
            case Check() | Launch():  # leaves the function, or is for threads: equal to none
                self.key.append(object())
                for expr in expressions(stmt):
                    self.expression(expr)
            case Note() | Break():
                pass

    def target(self, var: Var) -> None:
        self.key.append(var.dtype)
        self.targets.append(len(self.operands))
        self.operands.append(var)

    def buffer(self, buffer: Buffer) -> None:
        pool, first = self.places.get(buffer, (buffer, None))
        self.key.append(pool)
        if first is not None:
            self.operands.append(first)

    def expression(self, expr: Expr, lift: bool = True) -> None:
        key, operands = self.key, self.operands
        pending = [(expr, lift)]
        while pending:
            part, lifted = pending.pop()
            if isinstance(part, Apply):
                key += (part.op, len(part.args), part.dtype)
                lifted = lifted and not part.op.by_known
                pending.extend([(arg, lifted) for arg in reversed(part.args)])
            elif isinstance(part, Load | Pointer):
                key.append(type(part))
                self.buffer(part.buffer)
                pending.append((part.index, lifted))
            elif isinstance(part, Var):
                key.append(part.dtype)
                operands.append(part)
            elif isinstance(part, Const) and lifted and part.dtype == INDEX:
                key.append(None)
                operands.append(int(part.text))
            else:
                key.append(part)


def may_lift(stmt: Stmt) -> bool:
    """Whether integers of a statement are operands: not what an accumulator starts with."""
    return not (isinstance(stmt, Set) and isinstance(stmt.value, Const))


class Respelling:
    """A statement with other operands, which come in the order in which they are spelled. Of buffers that are parts of
    larger ones only those move that `pools` holds. Targets stay."""

    def __init__(self, new: Iterator[Expr], places: Places, pools: Collection[Buffer] | None = None) -> None:
        self.new, self.places, self.pools = new, places, pools

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(var, value) | Set(var, value):
                next(self.new)
                return type(stmt)(var, self.expression(value, may_lift(stmt)))
            case Store(buffer, index, value):
                pool, first = self.buffer(buffer)
                return Store(pool, add(first, self.expression(index)), self.expression(value))
            case Loop(var, size, body, begin, conflicts):
                next(self.new)
                held = None if conflicts is None else tuple(dict.fromkeys(map(self.pool, conflicts)))
                begin = self.expression(begin, False) if begin is not ZERO else begin
                size = self.expression(size, False)
                return Loop(var, size, tuple(map(self.statement, body)), begin, held)
            case Invoke(function, args, code):
                return Invoke(function, tuple(map(self.expression, args)), code)
            case Check(condition, code):
                return Check(self.expression(condition), code)
            case Launch(function, count, size, args):
                count, size = self.expression(count), self.expression(size)
                return Launch(function, count, size, tuple(map(self.expression, args)))
            case If(condition, then, orelse):
                condition = self.expression(condition)
                return If(condition, tuple(map(self.statement, then)), tuple(map(self.statement, orelse)))
            case Note() | Break():
                return stmt

    def pool(self, buffer: Buffer) -> Buffer:
        pool, _ = self.places.get(buffer, (buffer, 0))
        return pool if self.pools is None or pool in self.pools else buffer

    def buffer(self, buffer: Buffer) -> tuple[Buffer, Expr]:
        if buffer not in self.places:
            return buffer, ZERO
        first = next(self.new)
        pool = self.pool(buffer)
        return pool, ZERO if pool is buffer else first

    def expression(self, expr: Expr, lift: bool = True) -> Expr:
        match expr:
            case Apply(op, args, dtype):
                lift = lift and not op.by_known
                new = tuple([self.expression(arg, lift) for arg in args])
                if dtype == INDEX and op is ADD:
                    return add(*new)
                if dtype == INDEX and op is MUL:
                    return multiply(*new)
                return Apply(op, new, dtype)
            case Load(buffer, index) | Pointer(buffer, index):
                pool, first = self.buffer(buffer)
                return type(expr)(pool, add(first, self.expression(index, lift)))
            case Var():
                return next(self.new)
            case Const(_, dtype) if lift and dtype == INDEX:
                return next(self.new)
        return expr
