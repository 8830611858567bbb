"""Statements as a key and operands: two that differ in operands only have equal keys.

In: statements. Out: their key and their operands, which are names, literals, and buffers, or where these begin in a
larger one; and a statement with other operands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

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
from graphc.loops.visit import expressions, map_own_expressions
from graphc.startup.record import record

Operand: TypeAlias = Var | int
"""An operand where literals that are integers are, and buffers are not."""
Literal: TypeAlias = Callable[[Const], object | None]
"""The operand that a literal is; None where it is a part of the key."""
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
    numbers of those that the statements define.

    Names are operands, and literals that `literal` gives one for: not what an accumulator starts with, the size of a
    loop, which is unrolled where it is known, or what divides, which is much cheaper by a number that is known. Of a
    buffer it is the element from which on it is a part of a larger one, as `places` say; without places the buffer.
    """

    __slots__ = ("key", "literal", "operands", "places", "targets")

    def __init__(self, body: Iterable[Stmt], literal: Literal, places: Places | None = None) -> None:
        self.literal, self.places = literal, places
        self.key: list[object] = []
        self.operands: list[Any] = []
        self.targets: list[int] = []
        for stmt in body:
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
            case Loop(var, size, body, begin, conflicts, asks):
                self.target(var)
                self.key += (len(body), None if conflicts is None else tuple(map(self.pool, conflicts)), asks)
                self.expression(begin, False)
                self.expression(size, False)
                for inner in body:
                    self.statement(inner)
            case If(condition, then, orelse):
                self.key += (len(then), len(orelse))
                self.expression(condition)
                for inner in (*then, *orelse):
                    self.statement(inner)
            case Invoke(function) | Launch(function):
                self.key.append(function)
                for expr in expressions(stmt):
                    self.expression(expr)
            case Check(condition):
                self.expression(condition)
            case Note() | Break():
                pass

    def target(self, var: Var) -> None:
        self.key.append(var.dtype)
        self.targets.append(len(self.operands))
        self.operands.append(var)

    def pool(self, buffer: Buffer) -> object:
        """What the key says of a buffer."""
        return buffer.dtype if self.places is None else self.places.get(buffer, (buffer,))[0]

    def buffer(self, buffer: Buffer) -> None:
        self.key.append(self.pool(buffer))
        if self.places is None:
            self.operands.append(buffer)
        elif buffer in self.places:
            self.operands.append(self.places[buffer][1])

    def expression(self, expr: Expr, lift: bool = True) -> None:
        key, operands = self.key, self.operands
        pending = [(expr, lift)]
        while pending:
            part, lifted = pending.pop()
            if isinstance(part, Apply):
                key += (part.op, len(part.args), part.dtype)
                lifted = lift and not part.op.by_known
                pending.extend([(arg, lifted) for arg in reversed(part.args)])
            elif isinstance(part, Load | Pointer):
                key.append(type(part))
                self.buffer(part.buffer)
                pending.append((part.index, lift))
            elif isinstance(part, Var):
                key.append(part.dtype)
                operands.append(part)
            elif isinstance(part, Const) and lifted and (operand := self.literal(part)) is not None:
                key += (Const, part.dtype)
                operands.append(operand)
            else:
                key.append(part)


def may_lift(stmt: Stmt) -> bool:
    """Whether literals of a statement are operands: not what an accumulator starts with."""
    return not (isinstance(stmt, Set) and isinstance(stmt.value, Const))


class Respelling:
    """A statement with other operands, which come in the order in which they are spelled, but for buffers that are
    operands. Of buffers that are parts of larger ones only those move that `pools` holds. Targets stay."""

    def __init__(
        self,
        new: Iterator[Expr],
        literal: Literal,
        places: Places | None = None,
        pools: Collection[Buffer] | None = None,
    ) -> None:
        self.new, self.literal, self.places, self.pools = new, literal, places or {}, pools

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(var, value) | Set(var, value):
                next(self.new)
                return type(stmt)(var, self.expression(value, may_lift(stmt)))
            case Store(buffer, index, value):
                pool, first = self.buffer(buffer)
                return Store(pool, add(first, self.expression(index)), self.expression(value))
            case Loop(var, size, body, begin, conflicts, asks):
                next(self.new)
                held = None if conflicts is None else tuple(dict.fromkeys(map(self.pool, conflicts)))
                begin, size = self.expression(begin, False), self.expression(size, False)
                return Loop(var, size, tuple(map(self.statement, body)), begin, held, asks)
            case If(condition, then, orelse):
                condition = self.expression(condition)
                return If(condition, tuple(map(self.statement, then)), tuple(map(self.statement, orelse)))
        return map_own_expressions(stmt, self.expression)

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
        return self.part(expr, lift, lift)

    def part(self, expr: Expr, lift: bool, lifted: bool) -> Expr:
        """A part of an expression of which literals are operands, itself where it is `lifted`."""
        match expr:
            case Apply(op, args, dtype):
                new = tuple([self.part(arg, lift, lift and not op.by_known) for arg in args])
                if dtype == INDEX and op is ADD:
                    return add(*new)
                if dtype == INDEX and op is MUL:
                    return multiply(*new)
                return Apply(op, new, dtype)
            case Load(buffer, index) | Pointer(buffer, index):
                pool, first = self.buffer(buffer)
                return type(expr)(pool, add(first, self.part(index, lift, lift)))
            case Var():
                return next(self.new)
            case Const() if lifted and self.literal(expr) is not None:
                return next(self.new)
        return expr
