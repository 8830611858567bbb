"""Visitors of the loop IR: what statements read and write, and statements with their expressions changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphc.loops.build import written_out
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
    Opaque,
    Pointer,
    Set,
    Stmt,
    Store,
    Var,
    add,
    children,
    multiply,
    rebuild,
    subexpressions,
)
from graphc.loops.operators import ADD, MUL
from graphc.startup.record import fresh, record, replace


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statements inside a statement: a loop's body, or both branches."""
    if isinstance(stmt, Loop):
        return (stmt.body,)
    return (stmt.then, stmt.orelse) if isinstance(stmt, If) else ()


def map_bodies(stmt: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """A statement with the statements inside it changed."""
    return with_bodies(stmt, [change(inner) for inner in bodies(stmt)])


def with_bodies(stmt: Stmt, inside: Sequence[tuple[Stmt, ...]]) -> Stmt:
    """A statement with other statements inside it."""
    if isinstance(stmt, Loop):
        return replace(stmt, body=inside[0])
    return If(stmt.condition, *inside) if isinstance(stmt, If) else stmt


def in_line(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements, those of both branches after their `If`; not those inside loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from in_line(stmt.then)
            yield from in_line(stmt.orelse)


def is_left(loop: Loop) -> bool:
    """Whether a loop has a `Break` of its own."""
    return any(isinstance(stmt, Break) for stmt in in_line(loop.body))


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, not of those inside it."""
    match stmt:
        case Let(_, value) | Set(_, value):
            return (value,)
        case Store(_, index, value):
            return (index, value)
        case Loop(_, size, _, begin):
            return (size,) if begin is ZERO else (begin, size)
        case Check(condition, _) | If(condition):
            return (condition,)
        case Invoke(_, args, _):
            return args
        case Launch(_, count, size, args):
            return (count, size, *args)
        case Note() | Break():
            return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements, those inside loops and branches included."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop):
            yield from statements(stmt.body)
        elif isinstance(stmt, If):
            yield from statements(stmt.then)
            yield from statements(stmt.orelse)


def own_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    return (expr for stmt in body for expr in expressions(stmt))


def all_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    for expr in own_expressions(statements(body)):
        yield from subexpressions(expr)


def use_counts(exprs: Iterable[Expr]) -> Counter[Var]:
    """How often each name is written in source."""
    counts: Counter[Var] = Counter()
    pending = [*exprs]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Var):
            counts[expr] += 1
        elif isinstance(expr, Apply) and expr.op.form == "idiom":
            pending.extend(children(written_out(expr)))
        else:
            pending.extend(children(expr))
    return counts


def defined(body: Iterable[Stmt]) -> set[Var]:
    return {stmt.var for stmt in statements(body) if isinstance(stmt, Let | Set)}


def read_vars(body: Iterable[Stmt]) -> set[Var]:
    return {part for part in all_expressions(body) if isinstance(part, Var)}


def read_buffers(body: Iterable[Stmt]) -> set[Buffer]:
    return {part.buffer for part in all_expressions(body) if isinstance(part, Load | Pointer)}


def stored_buffers(body: Iterable[Stmt]) -> set[Buffer]:
    """Buffers that may be written: by stores, and by functions that are given their address."""
    stored: set[Buffer] = set()
    for stmt in statements(body):
        match stmt:
            case Store(buffer, _, _):
                stored.add(buffer)
            case Invoke():
                stored.update(part.buffer for part in all_expressions([stmt]) if isinstance(part, Pointer))
    return stored


def effects(body: Sequence[Stmt]) -> tuple[set[Var | Buffer], set[Var | Buffer]]:
    """The names and buffers that statements write, and those that they read."""
    return {*defined(body), *stored_buffers(body)}, {*read_vars(body), *read_buffers(body)}


def independent(some: Sequence[Stmt], others: Sequence[Stmt]) -> bool:
    """Whether two runs of statements may change places: neither writes a name or a buffer that the other touches."""
    (written, read), (written_too, read_too) = effects(some), effects(others)
    return not (written & (read_too | written_too) or written_too & read)


@record()
class Changes:
    """What statements give another value: buffers, and names that are set."""

    buffers: frozenset[Buffer]
    names: frozenset[Var]

    @classmethod
    def of(cls, stmt: Stmt) -> Changes:
        if isinstance(stmt, Let | Note):
            return NO_CHANGES
        names = (inner.var for inner in statements([stmt]) if isinstance(inner, Set))
        return cls(frozenset(stored_buffers([stmt])), frozenset(names))


NO_CHANGES = Changes(frozenset(), frozenset())


@record(frozen=False)
class Readers:
    """Which entries of a table read which buffers and names: what a change touches is found without a search."""

    entries: dict[Buffer | Var, dict[Hashable, None]] = fresh(factory=dict)

    def add(self, entry: Hashable, value: Expr) -> None:
        """Note what `value`, which `entry` stands for, reads."""
        for source in sources(value):
            self.entries.setdefault(source, {})[entry] = None

    def touched(self, changes: Changes) -> Iterator[Any]:
        """The entries whose values may be others afterwards, once for each reason."""
        changed: tuple[Buffer | Var, ...] = (*changes.buffers, *changes.names)
        for source in changed:
            yield from self.entries.pop(source, {})


def sources(expr: Expr) -> Iterator[Buffer | Var]:
    """The buffers and names that an expression reads."""
    for part in subexpressions(expr):
        if isinstance(part, Load | Pointer):
            yield part.buffer
        elif isinstance(part, Var):
            yield part


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """A statement with its expressions changed, those inside it included."""
    own = map_own_expressions(stmt, change)
    return map_bodies(own, lambda body: tuple(map_expressions(inner, change) for inner in body))


def map_own_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """A statement with its expressions changed, those of statements inside it left alone."""
    match stmt:
        case Let(var, value):
            return Let(var, change(value))
        case Set(var, value):
            target = change(var)
            assert isinstance(target, Var)
            return Set(target, change(value))
        case Store(buffer, index, value):
            return Store(buffer, change(index), change(value))
        case Loop(_, size, _, begin):
            return replace(stmt, size=change(size), begin=begin if begin is ZERO else change(begin))
        case If(condition, then, orelse):
            return If(change(condition), then, orelse)
        case Check(condition, code):
            return Check(change(condition), code)
        case Invoke(function, args, code):
            return Invoke(function, tuple(map(change, args)), code)
        case Launch(function, count, size, args):
            return Launch(function, change(count), change(size), tuple(map(change, args)))
        case Note() | Break():
            return stmt


def replace_vars(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """`expr` with names replaced by values; sums and products of indices are folded anew."""
    match expr:
        case Var():
            return values.get(expr, expr)
        case Apply(op, args, dtype):
            new = tuple(replace_vars(arg, values) for arg in args)
            if new == args:
                return expr
            if dtype == INDEX and op is ADD:
                return add(*new)
            if dtype == INDEX and op is MUL:
                return multiply(*new)
            return Apply(op, new, dtype)
        case Load(buffer, index):
            return Load(buffer, replace_vars(index, values))
        case Pointer(buffer, index):
            return Pointer(buffer, replace_vars(index, values))
        case Opaque(of, args, dtype):
            return Opaque(of, tuple(replace_vars(arg, values) for arg in args), dtype)
        case Const():
            return expr


def moved_buffers(body: Iterable[Stmt], places: Mapping[Buffer, tuple[Buffer, Expr]]) -> tuple[Stmt, ...]:
    """Statements in which some buffers are others, from an element on."""

    def element(buffer: Buffer, index: Expr) -> tuple[Buffer, Expr]:
        if buffer not in places:
            return buffer, value(index)
        other, first = places[buffer]
        return other, add(first, value(index))

    def found(expr: Expr) -> Expr | None:
        return type(expr)(*element(expr.buffer, expr.index)) if isinstance(expr, Load | Pointer) else None

    def value(expr: Expr) -> Expr:
        return rebuild(expr, found)

    def changed(stmt: Stmt) -> Stmt:
        match stmt:
            case Loop(_, _, _, _, conflicts) if conflicts:
                stmt = replace(stmt, conflicts=tuple(places.get(each, (each,))[0] for each in conflicts))
            case Store(buffer, index, stored):
                return Store(*element(buffer, index), value(stored))
        return map_bodies(map_own_expressions(stmt, value), lambda body: tuple(map(changed, body)))

    return tuple(map(changed, body) if places else body)


def with_values(body: Iterable[Stmt], values: Mapping[Var, Expr]) -> Iterator[Stmt]:
    """Statements with names replaced by values."""
    return (map_expressions(stmt, lambda expr: replace_vars(expr, values)) for stmt in body)


def op_count(expr: Expr) -> int:
    return sum(isinstance(part, Apply | Load) for part in subexpressions(expr))
