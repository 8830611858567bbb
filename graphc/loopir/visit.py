"""Visitors of the loop IR: what statements read and write, and statements with their expressions changed.

In: statements, such as those of `for i in range(n): out[i] = x[i] * a`. Out: what they touch, or other statements:

    read_buffers(body)                     {x}
    stored_buffers(body)                   {out}
    with_values(body, {a: 2.0})            for i in range(n): out[i] = x[i] * 2.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphc.loopir import ir, operators
from graphc.startup.record import fresh, record, replace


def bodies(stmt: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The statements inside a statement: a loop's body, or both branches."""
    if isinstance(stmt, ir.Loop):
        return (stmt.body,)
    return (stmt.then, stmt.orelse) if isinstance(stmt, ir.If) else ()


def map_bodies(stmt: ir.Stmt, change: Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]]) -> ir.Stmt:
    """A statement with the statements inside it changed."""
    inside = bodies(stmt)
    return with_bodies(stmt, [change(inner) for inner in inside]) if inside else stmt


def with_bodies(stmt: ir.Stmt, inside: Sequence[tuple[ir.Stmt, ...]]) -> ir.Stmt:
    """A statement with other statements inside it."""
    if isinstance(stmt, ir.Loop):
        return replace(stmt, body=inside[0])
    return ir.If(stmt.condition, *inside) if isinstance(stmt, ir.If) else stmt


def in_line(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """The statements, those of both branches after their `If`; not those inside loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, ir.If):
            yield from in_line(stmt.then)
            yield from in_line(stmt.orelse)


def is_left(loop: ir.Loop) -> bool:
    """True where a loop has a `Break` of its own."""
    return any(isinstance(stmt, ir.Break) for stmt in in_line(loop.body))


def expressions(stmt: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions of a statement itself, not of those inside it."""
    # Not a match statement: the passes over statements ask this again and again.
    if isinstance(stmt, _OF_VALUE):
        return (stmt.value,)
    if isinstance(stmt, ir.Store):
        return (stmt.index, stmt.value)
    if isinstance(stmt, ir.Loop):
        bounds = (stmt.size,) if stmt.begin is ir.ZERO else (stmt.begin, stmt.size)
        return bounds if stmt.safepoint is None else (*bounds, stmt.safepoint)
    if isinstance(stmt, _OF_CONDITION):
        return (stmt.condition,)
    if isinstance(stmt, ir.Invoke):
        return stmt.args
    if isinstance(stmt, ir.Launch):
        return (stmt.count, stmt.size, *stmt.args)
    return ()


_OF_VALUE, _OF_CONDITION = (ir.Let, ir.Set), (ir.Check, ir.If)


def statements(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """All statements, those inside loops and branches included, without recursion."""
    pending = [*body]
    pending.reverse()
    while pending:
        stmt = pending.pop()
        yield stmt
        if isinstance(stmt, ir.Loop):
            pending += reversed(stmt.body)
        elif isinstance(stmt, ir.If):
            pending += reversed(stmt.orelse)
            pending += reversed(stmt.then)


def own_expressions(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    return (expr for stmt in body for expr in expressions(stmt))


def all_expressions(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    for stmt in statements(body):
        for expr in expressions(stmt):
            yield from ir.subexpressions(expr)


def use_counts(exprs: Iterable[ir.Expr]) -> Counter[ir.Var]:
    """The number of times that each name is written in source."""
    counts: Counter[ir.Var] = Counter()
    pending = [*exprs]
    while pending:
        expr = pending.pop()
        if isinstance(expr, ir.Var):
            counts[expr] += 1
        else:
            pending.extend(ir.children(expr))
    return counts


def defined(body: Iterable[ir.Stmt]) -> set[ir.Var]:
    return {stmt.var for stmt in statements(body) if isinstance(stmt, _OF_VALUE)}


def read_vars(body: Iterable[ir.Stmt]) -> set[ir.Var]:
    return reads(body)[0]


def read_buffers(body: Iterable[ir.Stmt]) -> set[ir.Buffer]:
    return reads(body)[1]


def reads(body: Iterable[ir.Stmt]) -> tuple[set[ir.Var], set[ir.Buffer]]:
    """The names and the buffers that statements read."""
    names: set[ir.Var] = set()
    buffers: set[ir.Buffer] = set()
    pending = [expr for stmt in statements(body) for expr in expressions(stmt)]
    while pending:
        expr = pending.pop()
        if isinstance(expr, ir.Var):
            names.add(expr)
        elif isinstance(expr, ir.INDEXED):
            buffers.add(expr.buffer)
            pending.append(expr.index)
        else:
            pending += ir.children(expr)
    return names, buffers


def stored_buffers(body: Iterable[ir.Stmt]) -> set[ir.Buffer]:
    """Buffers that may be written: by stores, and by functions that are given their address."""
    stored: set[ir.Buffer] = set()
    for stmt in statements(body):
        if isinstance(stmt, ir.Store):
            stored.add(stmt.buffer)
        elif isinstance(stmt, ir.Invoke):
            stored.update(part.buffer for part in all_expressions([stmt]) if isinstance(part, ir.Pointer))
    return stored


def effects(body: Sequence[ir.Stmt]) -> tuple[set[ir.Var | ir.Buffer], set[ir.Var | ir.Buffer]]:
    """The names and buffers that statements write, and those that they read."""
    names, buffers = reads(body)
    return {*defined(body), *stored_buffers(body)}, {*names, *buffers}


def independent(some: Sequence[ir.Stmt], others: Sequence[ir.Stmt]) -> bool:
    """True where two runs of statements may change places: neither writes a name or a buffer that the other touches."""
    (written, read), (written_too, read_too) = effects(some), effects(others)
    return not (written & (read_too | written_too) or written_too & read)


@record()
class Changes:
    """The buffers and names to which statements give another value."""

    buffers: frozenset[ir.Buffer]
    names: frozenset[ir.Var]

    @classmethod
    def of(cls, stmt: ir.Stmt) -> Changes:
        if isinstance(stmt, ir.Let | ir.Note):
            return NO_CHANGES
        names = (inner.var for inner in statements([stmt]) if isinstance(inner, ir.Set))
        return cls(frozenset(stored_buffers([stmt])), frozenset(names))


NO_CHANGES = Changes(frozenset(), frozenset())


@record(frozen=False)
class Readers:
    """The entries of a table that read each buffer and name, so that a change finds those it touches without a
    search."""

    entries: dict[ir.Buffer | ir.Var, dict[Hashable, None]] = fresh(factory=dict)

    def add(self, entry: Hashable, value: ir.Expr) -> None:
        """Note what `value`, which `entry` stands for, reads."""
        for source in sources(value):
            self.entries.setdefault(source, {})[entry] = None

    def touched(self, changes: Changes) -> Iterator[Any]:
        """The entries whose values may be others afterwards, once for each reason."""
        changed: tuple[ir.Buffer | ir.Var, ...] = (*changes.buffers, *changes.names)
        for source in changed:
            yield from self.entries.pop(source, {})


def sources(expr: ir.Expr) -> Iterator[ir.Buffer | ir.Var]:
    """The buffers and names that an expression reads."""
    for part in ir.subexpressions(expr):
        if isinstance(part, ir.Load | ir.Pointer):
            yield part.buffer
        elif isinstance(part, ir.Var):
            yield part


def map_expressions(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
    """A statement with its expressions changed, those inside it included."""
    changed = map_own_expressions(stmt, change)
    return map_bodies(changed, lambda body: tuple(map_expressions(inner, change) for inner in body))


def map_own_expressions(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
    """A statement with its expressions changed, those of statements inside it left alone."""
    match stmt:
        case ir.Let(var, value):
            return ir.Let(var, change(value))
        case ir.Set(var, value):
            target = change(var)
            assert isinstance(target, ir.Var)
            return ir.Set(target, change(value))
        case ir.Store(buffer, index, value):
            return ir.Store(buffer, change(index), change(value))
        case ir.Loop(_, size, _, begin, _, safepoint):
            begin = begin if begin is ir.ZERO else change(begin)
            return replace(
                stmt, size=change(size), begin=begin, safepoint=None if safepoint is None else change(safepoint)
            )
        case ir.If(condition, then, orelse):
            return ir.If(change(condition), then, orelse)
        case ir.Check(condition, code):
            return ir.Check(change(condition), code)
        case ir.Invoke(function, args, code):
            return ir.Invoke(function, tuple(map(change, args)), code)
        case ir.Launch(function, count, size, args):
            return ir.Launch(function, change(count), change(size), tuple(map(change, args)))
        case ir.Note() | ir.Break():
            return stmt


def replace_vars(expr: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """`expr` with names replaced by values; sums and products of indices are folded anew."""
    match expr:
        case ir.Var():
            return values.get(expr, expr)
        case ir.Apply(op, args, dtype):
            new = tuple(replace_vars(arg, values) for arg in args)
            if new == args:
                return expr
            if dtype == ir.INDEX and op is operators.ADD:
                return ir.add(*new)
            if dtype == ir.INDEX and op is operators.MUL:
                return ir.multiply(*new)
            return ir.Apply(op, new, dtype)
        case ir.Load(buffer, index):
            return ir.Load(buffer, replace_vars(index, values))
        case ir.Pointer(buffer, index):
            return ir.Pointer(buffer, replace_vars(index, values))
        case ir.Opaque(of, args, dtype):
            return ir.Opaque(of, tuple(replace_vars(arg, values) for arg in args), dtype)
        case ir.Const():
            return expr


def moved_buffers(
    body: Iterable[ir.Stmt], places: Mapping[ir.Buffer, tuple[ir.Buffer, ir.Expr]]
) -> tuple[ir.Stmt, ...]:
    """Statements in which some buffers are others, from an element on."""

    def element(buffer: ir.Buffer, index: ir.Expr) -> tuple[ir.Buffer, ir.Expr]:
        if buffer not in places:
            return buffer, value(index)
        other, first = places[buffer]
        return other, ir.add(first, value(index))

    def found(expr: ir.Expr) -> ir.Expr | None:
        return type(expr)(*element(expr.buffer, expr.index)) if isinstance(expr, ir.Load | ir.Pointer) else None

    def value(expr: ir.Expr) -> ir.Expr:
        return ir.rebuild(expr, found)

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Loop(_, _, _, _, conflicts) if conflicts:
                stmt = replace(stmt, conflicts=tuple(places.get(each, (each,))[0] for each in conflicts))
            case ir.Store(buffer, index, stored):
                return ir.Store(*element(buffer, index), value(stored))
        return map_bodies(map_own_expressions(stmt, value), lambda body: tuple(map(changed, body)))

    return tuple(map(changed, body) if places else body)


def with_values(body: Iterable[ir.Stmt], values: Mapping[ir.Var, ir.Expr]) -> Iterator[ir.Stmt]:
    """Statements with names replaced by values."""
    return (map_expressions(stmt, lambda expr: replace_vars(expr, values)) for stmt in body)


def op_count(expr: ir.Expr) -> int:
    return sum(isinstance(part, _OPERATIONS) for part in ir.subexpressions(expr))


_OPERATIONS = (ir.Apply, ir.Load)


def stride(position: ir.Expr, var: ir.Var | ir.Opaque, values: Mapping[ir.Var, ir.Expr]) -> int | None:
    """The stride of a position in the loop of `var`: 0, 1 or (None) another number."""
    match position:
        case ir.Var() | ir.Opaque() if position == var:
            return 1
        case ir.Var() if position in values:
            return stride(values[position], var, values)
        case ir.Var() | ir.Const():
            return 0
        case ir.Apply(op, (left, right)) if op is operators.ADD:
            steps = stride(left, var, values), stride(right, var, values)
            return sum(steps) if 0 in steps and None not in steps else None  # type: ignore[arg-type]
        case _:
            return None if any(stride(child, var, values) != 0 for child in ir.children(position)) else 0
