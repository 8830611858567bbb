"""Fewer and plainer statements: what lowering writes without looking ahead is tidied here.

In: the statements of a function. Out: the same computation with loops of one turn unrolled, adjacent reductions over
the same range in one loop, values named twice named once, values used once written where they are used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from graphc.codegen.loop_passes import Change, Run, apply
from graphc.ir.loops import (
    INDEX,
    ZERO,
    Apply,
    Check,
    Const,
    Expr,
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
    children,
    int_value,
    multiply,
    subexpressions,
)
from graphc.record import fresh, record, replace

HOLE = re.compile(r"\b_\d+\b")
INLINE_OPS = 12
"""An expression of more operators than this keeps its name: a person has to read it."""


def simplify(body: Sequence[Stmt], run: Run = apply) -> tuple[Stmt, ...]:
    """The statements after all of STEPS, each carried out by `run`."""
    result = tuple(body)
    for name, step in STEPS:
        result = run(name, step, result)
    return result


# Reading statements -------------------------------------------------------------------------------------------------


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, not of a loop's body."""
    match stmt:
        case Let(_, value) | Set(_, value):
            return (value,)
        case Store(_, index, value):
            return (index, value)
        case Loop(_, size, _, begin):
            return (size,) if begin is ZERO else (begin, size)
        case Check(condition, _):
            return (condition,)
        case Invoke(_, args):
            return args
        case Launch(_, count, size, args):
            return (count, size, *args)
        case Note():
            return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements, those inside loops included."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop):
            yield from statements(stmt.body)


def own_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    return (expr for stmt in body for expr in expressions(stmt))


def all_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    for expr in own_expressions(statements(body)):
        yield from subexpressions(expr)


def use_counts(exprs: Iterable[Expr]) -> Counter[Var]:
    """How often each name is written in source: as often as the templates that hold it have its hole."""
    counts: Counter[Var] = Counter()
    pending = [(expr, 1) for expr in exprs]
    while pending:
        expr, times = pending.pop()
        if isinstance(expr, Var):
            counts[expr] += times
        elif isinstance(expr, Apply):
            holes = hole_counts(expr.template)
            pending.extend((arg, times * holes[f"_{position}"]) for position, arg in enumerate(expr.args))
        else:
            pending.extend((child, times) for child in children(expr))
    return counts


@lru_cache(maxsize=512)
def hole_counts(template: str) -> Counter[str]:
    """How often each hole occurs."""
    return Counter(HOLE.findall(template))


def defined(body: Iterable[Stmt]) -> set[Var]:
    return {stmt.var for stmt in statements(body) if isinstance(stmt, Let | Set)}


def read_vars(body: Iterable[Stmt]) -> set[Var]:
    return {part for part in all_expressions(body) if isinstance(part, Var)}


def read_buffers(body: Iterable[Stmt]) -> set[str]:
    return {part.buffer for part in all_expressions(body) if isinstance(part, Load | Pointer)}


def stored_buffers(body: Iterable[Stmt]) -> set[str]:
    """Buffers that may be written: by stores, and by functions that are given their address."""
    stored: set[str] = set()
    for stmt in statements(body):
        match stmt:
            case Store(buffer, _, _):
                stored.add(buffer)
            case Invoke() | Check():  # only these call functions
                stored.update(part.buffer for part in all_expressions([stmt]) if isinstance(part, Pointer))
    return stored


def effects(body: Sequence[Stmt]) -> tuple[set[Var | str], set[Var | str]]:
    """The names and buffers that statements write, and those that they read."""
    return {*defined(body), *stored_buffers(body)}, {*read_vars(body), *read_buffers(body)}


def independent(some: Sequence[Stmt], others: Sequence[Stmt]) -> bool:
    """Whether two runs of statements may change places: neither writes a name or a buffer that the other touches."""
    (written, read), (written_too, read_too) = effects(some), effects(others)
    return not (written & (read_too | written_too) or written_too & read)


@record()
class Changes:
    """What statements give another value: buffers, and names that are set."""

    buffers: frozenset[str]
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

    entries: dict[str | Var, dict[Hashable, None]] = fresh(factory=dict)

    def add(self, entry: Hashable, value: Expr) -> None:
        """Note what `value`, which `entry` stands for, reads."""
        for source in sources(value):
            self.entries.setdefault(source, {})[entry] = None

    def touched(self, changes: Changes) -> Iterator[Any]:
        """The entries whose values may be others afterwards, once for each reason."""
        changed: tuple[str | Var, ...] = (*changes.buffers, *changes.names)
        for source in changed:
            yield from self.entries.pop(source, {})


def sources(expr: Expr) -> Iterator[str | Var]:
    """The buffers and names that an expression reads."""
    for part in subexpressions(expr):
        if isinstance(part, Load | Pointer):
            yield part.buffer
        elif isinstance(part, Var):
            yield part


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """A statement with its expressions changed, those inside loops included."""
    match stmt:
        case Let(var, value):
            return Let(var, change(value))
        case Set(var, value):
            target = change(var)
            assert isinstance(target, Var)
            return Set(target, change(value))
        case Store(buffer, index, value):
            return Store(buffer, change(index), change(value))
        case Loop(var, size, body, begin):
            inside = tuple(map_expressions(inner, change) for inner in body)
            return Loop(var, change(size), inside, begin if begin is ZERO else change(begin))
        case Check(condition, code):
            return Check(change(condition), code)
        case Invoke(function, args):
            return Invoke(function, tuple(map(change, args)))
        case Launch(function, count, size, args):
            return Launch(function, change(count), change(size), tuple(map(change, args)))
        case Note():
            return stmt


def replace_vars(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """`expr` with names replaced by values; sums and products of indices are folded anew."""
    match expr:
        case Var():
            return values.get(expr, expr)
        case Apply(template, args, dtype):
            new = tuple(replace_vars(arg, values) for arg in args)
            if new == args:
                return expr
            if dtype == INDEX and template == "_0 + _1":
                return add(*new)
            if dtype == INDEX and template == "_0 * _1":
                return multiply(*new)
            return Apply(template, new, dtype)
        case Load(buffer, index, dtype):
            return Load(buffer, replace_vars(index, values), dtype)
        case Pointer(buffer, index, dtype):
            return Pointer(buffer, replace_vars(index, values), dtype)
        case Const():
            return expr


def with_values(body: Iterable[Stmt], values: Mapping[Var, Expr]) -> Iterator[Stmt]:
    """Statements with names replaced by values."""
    return (map_expressions(stmt, lambda expr: replace_vars(expr, values)) for stmt in body)


# Passes -------------------------------------------------------------------------------------------------------------


def unroll_once(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Loops of exactly one turn become their body."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        inner = unroll_once(stmt.body)
        if int_value(stmt.size) == 1 and stmt.begin == ZERO:
            result.extend(with_values(inner, {stmt.var: ZERO}))
        else:
            result.append(replace(stmt, body=inner))
    return tuple(result)


def fuse_reductions(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Loops of reductions over the same range, of which none needs another's result, become one loop."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=fuse_reductions(stmt.body))
            if not is_barrier(stmt) and _fuse_into(result, stmt):
                continue
        result.append(stmt)
    return tuple(result)


def is_barrier(stmt: Stmt) -> bool:
    """Whether no loop may pass a statement: it writes memory, or checks indices, all of them before any is used."""
    return any(isinstance(inner, Store | Invoke | Launch | Check) for inner in statements([stmt]))


def _fuse_into(before: list[Stmt], loop: Loop) -> bool:
    """Merge `loop` into an earlier one of `before`, moving up what it needs. False where that cannot be."""
    buffers = read_buffers([loop])
    for place in range(len(before) - 1, -1, -1):
        first = before[place]
        if isinstance(first, Store) and first.buffer not in buffers:
            continue  # a scalar result on its way out
        if is_barrier(first):
            return False
        if isinstance(first, Loop) and (first.begin, first.size) == (loop.begin, loop.size):
            moved, kept = _split(first, before[place + 1 :])
            if not independent([loop], [first, *kept]):
                continue
            body = fuse_reductions((*first.body, *with_values(loop.body, {loop.var: first.var})))
            before[place:] = [*moved, replace(first, body=body), *kept]
            return True
    return False


def _split(first: Loop, between: Sequence[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
    """Statements after a loop that may stand before it, and those that depend on it, or on one that stays; stores
    stay."""
    moved: list[Stmt] = []
    kept: list[Stmt] = []
    written, read = effects([first])
    for stmt in between:
        own_written, own_read = effects([stmt])
        if isinstance(stmt, Store) or own_written & (written | read) or own_read & written:
            kept.append(stmt)
            written |= own_written
            read |= own_read
        else:
            moved.append(stmt)
    return moved, kept


def name_once(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A value that has a name already is not named again, unless what it was computed from has changed since."""
    return _name_once(body, {}, Readers())


def _name_once(body: Sequence[Stmt], known: dict[Expr, Var], readers: Readers) -> tuple[Stmt, ...]:
    """`known` holds the names of enclosing bodies as well; those of this body are taken out again."""
    alias: dict[Var, Expr] = {}
    named: list[Expr] = []
    result: list[Stmt] = []
    for stmt in body:
        if alias:
            stmt = map_expressions(stmt, lambda expr: replace_vars(expr, alias))
        for value in readers.touched(Changes.of(stmt)):
            known.pop(value, None)
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=_name_once(stmt.body, known, readers))
        elif isinstance(stmt, Let):
            if stmt.value in known:
                alias[stmt.var] = known[stmt.value]
                continue
            known[stmt.value] = stmt.var
            readers.add(stmt.value, stmt.value)
            named.append(stmt.value)
        result.append(stmt)
    for value in named:
        known.pop(value, None)
    return tuple(result)


def drop_unused(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Names that nothing reads are not written."""
    return _without_unused(body, set())


def _without_unused(body: Sequence[Stmt], used: set[Var]) -> tuple[Stmt, ...]:
    """`used` are the names read after this body; those read in it are added. Nothing reads a name before its `Let`."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, Let) and stmt.var not in used:
            continue
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=_without_unused(stmt.body, used))
        used.update(part for expr in expressions(stmt) for part in subexpressions(expr) if isinstance(part, Var))
        kept.append(stmt)
    return tuple(reversed(kept))


def inline_once(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Values used once, in the same loop, are written where they are used; never across a write of what they read."""
    return _inline_once(body, use_counts(own_expressions(statements(body))))


def _inline_once(body: Sequence[Stmt], counts: Mapping[Var, int]) -> tuple[Stmt, ...]:
    local = use_counts(own_expressions(body))
    pending: dict[Var, tuple[int, Let]] = {}
    readers = Readers()
    result: list[Stmt] = []
    for place, stmt in enumerate(body):
        used = (part for expr in expressions(stmt) for part in subexpressions(expr) if isinstance(part, Var))
        values = {var: pending.pop(var)[1].value for var in used if var in pending}
        if values:
            stmt = _replace_here(stmt, values)
        inside = read_vars(stmt.body) if isinstance(stmt, Loop) else ()
        due = {*inside, *readers.touched(Changes.of(stmt))}
        result.extend(let for _, let in sorted(pending.pop(var) for var in due & pending.keys()))
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=_inline_once(stmt.body, counts))
        once = isinstance(stmt, Let) and counts[stmt.var] == local[stmt.var] == 1
        if isinstance(stmt, Let) and once and operators(stmt.value) <= INLINE_OPS:
            pending[stmt.var] = place, stmt
            readers.add(stmt.var, stmt.value)
        else:
            result.append(stmt)
    result.extend(let for _, let in pending.values())
    return tuple(result)


def _replace_here(stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """Names replaced in the statement itself, a loop's body left alone."""
    if isinstance(stmt, Loop):
        return replace(stmt, size=replace_vars(stmt.size, values), begin=replace_vars(stmt.begin, values))
    return map_expressions(stmt, lambda expr: replace_vars(expr, values))


def operators(expr: Expr) -> int:
    return sum(isinstance(part, Apply | Load) for part in subexpressions(expr))


STEPS: tuple[tuple[str, Change], ...] = (
    ("unroll_once", unroll_once),
    ("fuse_reductions", fuse_reductions),
    ("name_once", name_once),
    ("drop_unused", drop_unused),
    ("inline_once", inline_once),
)
"""What `simplify` does, in order."""
