"""Statements as a key and operands: two that differ in operands only have equal keys.

In: statements. Out: their key and their operands, which are names, literals, and buffers, or where these begin in a
larger one; and a statement with other operands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from graphc.loops import ir
from graphc.loops.operators import ADD, MUL
from graphc.loops.visit import expressions, map_own_expressions
from graphc.startup.record import record

Operand: TypeAlias = ir.Var | int
"""An operand where literals that are integers are, and buffers are not."""
Literal: TypeAlias = Callable[[ir.Const], object | None]
"""The operand that a literal is; None where it is a part of the key."""
Places: TypeAlias = Mapping[ir.Buffer, tuple[ir.Buffer, int]]
"""Temporaries as parts of larger buffers: which, and from which element on."""


@record()
class Affine:
    """The number `first + step * by` in step after step."""

    first: int
    by: int

    def at(self, step: ir.Var) -> ir.Expr:
        if self.by < 0:
            return ir.subtract(ir.integer(self.first), ir.multiply(step, ir.integer(-self.by)))
        return ir.add(ir.multiply(step, ir.integer(self.by)), ir.integer(self.first))


class Spelling:
    """Statements as a key, equal where they differ in operands only, and their operands, in order; `targets` are the
    numbers of those that the statements define.

    Names are operands, and literals that `literal` gives one for: not what an accumulator starts with, the size of a
    loop, which is unrolled where it is known, or what divides, which is much cheaper by a number that is known. Of a
    buffer it is the element from which on it is a part of a larger one, as `places` say; without places the buffer.
    """

    __slots__ = ("key", "literal", "operands", "places", "targets")

    def __init__(self, body: Iterable[ir.Stmt], literal: Literal, places: Places | None = None) -> None:
        self.literal, self.places = literal, places
        self.key: list[object] = []
        self.operands: list[Any] = []
        self.targets: list[int] = []
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        self.key.append(type(stmt))
        match stmt:
            case ir.Let(var, value) | ir.Set(var, value):
                self.target(var)
                self.expression(value, may_lift(stmt))
            case ir.Store(buffer, index, value):
                self.buffer(buffer)
                self.expression(index)
                self.expression(value)
            case ir.Loop(var, size, body, begin, conflicts, asks):
                self.target(var)
                self.key += (len(body), None if conflicts is None else tuple(map(self.pool, conflicts)), asks)
                self.expression(begin, False)
                self.expression(size, False)
                for inner in body:
                    self.statement(inner)
            case ir.If(condition, then, orelse):
                self.key += (len(then), len(orelse))
                self.expression(condition)
                for inner in (*then, *orelse):
                    self.statement(inner)
            case ir.Invoke(function) | ir.Launch(function):
                self.key.append(function)
                for expr in expressions(stmt):
                    self.expression(expr)
            case ir.Check(condition):
                self.expression(condition)
            case ir.Note() | ir.Break():
                pass

    def target(self, var: ir.Var) -> None:
        self.key.append(var.dtype)
        self.targets.append(len(self.operands))
        self.operands.append(var)

    def pool(self, buffer: ir.Buffer) -> object:
        """What the key says of a buffer."""
        return buffer.dtype if self.places is None else self.places.get(buffer, (buffer,))[0]

    def buffer(self, buffer: ir.Buffer) -> None:
        self.key.append(self.pool(buffer))
        if self.places is None:
            self.operands.append(buffer)
        elif buffer in self.places:
            self.operands.append(self.places[buffer][1])

    def expression(self, expr: ir.Expr, lift: bool = True) -> None:
        key, operands = self.key, self.operands
        pending = [(expr, lift)]
        while pending:
            part, lifted = pending.pop()
            if isinstance(part, ir.Apply):
                key += (part.op, len(part.args), part.dtype)
                lifted = lift and not part.op.by_known
                pending.extend([(arg, lifted) for arg in reversed(part.args)])
            elif isinstance(part, ir.Load | ir.Pointer):
                key.append(type(part))
                self.buffer(part.buffer)
                pending.append((part.index, lift))
            elif isinstance(part, ir.Var):
                key.append(part.dtype)
                operands.append(part)
            elif isinstance(part, ir.Const) and lifted and (operand := self.literal(part)) is not None:
                key += (ir.Const, part.dtype)
                operands.append(operand)
            else:
                key.append(part)


def may_lift(stmt: ir.Stmt) -> bool:
    """Whether literals of a statement are operands: not what an accumulator starts with."""
    return not (isinstance(stmt, ir.Set) and isinstance(stmt.value, ir.Const))


class Respelling:
    """A statement with other operands, which come in the order in which they are spelled, but for buffers that are
    operands. Of buffers that are parts of larger ones only those move that `pools` holds. Targets stay."""

    def __init__(
        self,
        new: Iterator[ir.Expr],
        literal: Literal,
        places: Places | None = None,
        pools: Collection[ir.Buffer] | None = None,
    ) -> None:
        self.new, self.literal, self.places, self.pools = new, literal, places or {}, pools

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Let(var, value) | ir.Set(var, value):
                next(self.new)
                return type(stmt)(var, self.expression(value, may_lift(stmt)))
            case ir.Store(buffer, index, value):
                pool, first = self.buffer(buffer)
                return ir.Store(pool, ir.add(first, self.expression(index)), self.expression(value))
            case ir.Loop(var, size, body, begin, conflicts, asks):
                next(self.new)
                held = None if conflicts is None else tuple(dict.fromkeys(map(self.pool, conflicts)))
                begin, size = self.expression(begin, False), self.expression(size, False)
                return ir.Loop(var, size, tuple(map(self.statement, body)), begin, held, asks)
            case ir.If(condition, then, orelse):
                condition = self.expression(condition)
                return ir.If(condition, tuple(map(self.statement, then)), tuple(map(self.statement, orelse)))
        return map_own_expressions(stmt, self.expression)

    def pool(self, buffer: ir.Buffer) -> ir.Buffer:
        pool, _ = self.places.get(buffer, (buffer, 0))
        return pool if self.pools is None or pool in self.pools else buffer

    def buffer(self, buffer: ir.Buffer) -> tuple[ir.Buffer, ir.Expr]:
        if buffer not in self.places:
            return buffer, ir.ZERO
        first = next(self.new)
        pool = self.pool(buffer)
        return pool, ir.ZERO if pool is buffer else first

    def expression(self, expr: ir.Expr, lift: bool = True) -> ir.Expr:
        return self.part(expr, lift, lift)

    def part(self, expr: ir.Expr, lift: bool, lifted: bool) -> ir.Expr:
        """A part of an expression of which literals are operands, itself where it is `lifted`."""
        match expr:
            case ir.Apply(op, args, dtype):
                new = tuple([self.part(arg, lift, lift and not op.by_known) for arg in args])
                if dtype == ir.INDEX and op is ADD:
                    return ir.add(*new)
                if dtype == ir.INDEX and op is MUL:
                    return ir.multiply(*new)
                return ir.Apply(op, new, dtype)
            case ir.Load(buffer, index) | ir.Pointer(buffer, index):
                pool, first = self.buffer(buffer)
                return type(expr)(pool, ir.add(first, self.part(index, lift, lift)))
            case ir.Var():
                return next(self.new)
            case ir.Const() if lifted and self.literal(expr) is not None:
                return next(self.new)
        return expr
