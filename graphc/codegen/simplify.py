"""Fewer and plainer statements: what lowering writes without looking ahead is tidied here.

In: the statements of a function. Out: the same computation with loops of one turn unrolled, adjacent reductions over
the same range in one loop, values named twice named once, values used once written where they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graphc.ir.loops import (
    INDEX,
    ZERO,
    Apply,
    Check,
    Const,
    Expr,
    Invoke,
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
    int_value,
    multiply,
    subexpressions,
)

INLINE_OPS = 12
"""An expression of more operators than this keeps its name: a person has to read it."""


def simplify(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    result = unroll_once(tuple(body))
    result = fuse_reductions(result)
    result = name_once(result, {}, stored_buffers(result))
    result = drop_unused(result)
    return inline_once(result, use_counts(result))


# Reading statements -------------------------------------------------------------------------------------------------


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, not of a loop's body."""
    match stmt:
        case Let(_, value) | Set(_, value):
            return (value,)
        case Store(_, index, value):
            return (index, value)
        case Loop(_, size, _):
            return (size,)
        case Check(condition, _):
            return (condition,)
        case Invoke(_, args):
            return args
        case Note():
            return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements, those inside loops included."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop):
            yield from statements(stmt.body)


def all_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    for stmt in statements(body):
        for expr in expressions(stmt):
            yield from subexpressions(expr)


def use_counts(body: Iterable[Stmt]) -> Counter[Var]:
    return Counter(part for part in all_expressions(body) if isinstance(part, Var))


def defined(body: Iterable[Stmt]) -> set[Var]:
    return {stmt.var for stmt in statements(body) if isinstance(stmt, Let | Set)}


def read_vars(body: Iterable[Stmt]) -> set[Var]:
    return {part for part in all_expressions(body) if isinstance(part, Var)}


def read_buffers(body: Iterable[Stmt]) -> set[str]:
    return {part.buffer for part in all_expressions(body) if isinstance(part, Load | Pointer)}


def stored_buffers(body: Iterable[Stmt]) -> set[str]:
    """Buffers that may be written: by stores, and by functions that are given their address."""
    result = set()
    for stmt in statements(body):
        if isinstance(stmt, Store):
            result.add(stmt.buffer)
        elif isinstance(stmt, Invoke):
            result |= {arg.buffer for arg in stmt.args if isinstance(arg, Pointer)}
    return result


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
        case Loop(var, size, body):
            return Loop(var, change(size), tuple(map_expressions(inner, change) for inner in body))
        case Check(condition, code):
            return Check(change(condition), code)
        case Invoke(function, args):
            return Invoke(function, tuple(map(change, args)))
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


# Passes -------------------------------------------------------------------------------------------------------------


def unroll_once(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Loops of exactly one turn become their body."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        inner = unroll_once(stmt.body)
        if int_value(stmt.size) == 1:
            values: dict[Var, Expr] = {stmt.var: ZERO}
            result.extend(map_expressions(s, lambda expr, v=values: replace_vars(expr, v)) for s in inner)  # type: ignore[misc]
        else:
            result.append(Loop(stmt.var, stmt.size, inner))
    return tuple(result)


def fuse_reductions(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Loops of reductions over the same range, of which none needs another's result, become one loop."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            stmt = Loop(stmt.var, stmt.size, fuse_reductions(stmt.body))
            if not stored_buffers(stmt.body) and _fuse_into(result, stmt):
                continue
        result.append(stmt)
    return tuple(result)


def _fuse_into(before: list[Stmt], loop: Loop) -> bool:
    """Merge `loop` into an earlier one of `before`, moving up what it needs. False where that cannot be."""
    for place in range(len(before) - 1, -1, -1):
        first = before[place]
        if isinstance(first, Store | Invoke | Check) or (isinstance(first, Loop) and stored_buffers(first.body)):
            return False
        if isinstance(first, Loop) and first.size == loop.size:
            moved, kept = _split(before[place + 1 :], defined(first.body))
            if read_vars([loop]) & (defined(first.body) | defined(kept)):
                continue
            second = map_expressions(loop, lambda expr, f=first: replace_vars(expr, {loop.var: f.var}))  # type: ignore[misc]
            assert isinstance(second, Loop)
            body = fuse_reductions((*first.body, *second.body))
            before[place:] = [*moved, Loop(first.var, first.size, body), *kept]
            return True
    return False


def _split(between: Sequence[Stmt], results: set[Var]) -> tuple[list[Stmt], list[Stmt]]:
    """Statements that may stand before a loop, and those that need its results."""
    moved: list[Stmt] = []
    kept: list[Stmt] = []
    needed = set(results)
    for stmt in between:
        if read_vars([stmt]) & needed or defined([stmt]) & defined(kept):
            kept.append(stmt)
            needed |= defined([stmt])
        else:
            moved.append(stmt)
    return moved, kept


def name_once(body: Sequence[Stmt], known: dict[Expr, Var], written: set[str]) -> tuple[Stmt, ...]:
    """A value that has a name already is not named again. Loads count only from buffers that nothing writes, and
    names that take several values not at all: what looks equal may differ."""
    known = dict(known)
    alias: dict[Var, Expr] = {}
    changing: set[Var] = set()
    result: list[Stmt] = []
    for stmt in body:
        if alias:
            stmt = map_expressions(stmt, lambda expr: replace_vars(expr, alias))
        if isinstance(stmt, Loop):
            stmt = Loop(stmt.var, stmt.size, name_once(stmt.body, known, written))
            changing |= {inner.var for inner in statements(stmt.body) if isinstance(inner, Set)}
        elif isinstance(stmt, Set):
            changing.add(stmt.var)
        elif isinstance(stmt, Let) and not read_buffers([stmt]) & written and not read_vars([stmt]) & changing:
            if stmt.value in known:
                alias[stmt.var] = known[stmt.value]
                continue
            known[stmt.value] = stmt.var
        result.append(stmt)
    return tuple(result)


def drop_unused(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Names that nothing reads are not written."""
    while True:
        counts = use_counts(body)
        kept = _without(body, lambda stmt: isinstance(stmt, Let) and not counts[stmt.var])
        if kept == tuple(body):
            return kept
        body = kept


def _without(body: Sequence[Stmt], drop: Callable[[Stmt], bool]) -> tuple[Stmt, ...]:
    return tuple(
        Loop(stmt.var, stmt.size, _without(stmt.body, drop)) if isinstance(stmt, Loop) else stmt
        for stmt in body
        if not drop(stmt)
    )


def inline_once(body: Sequence[Stmt], counts: Mapping[Var, int]) -> tuple[Stmt, ...]:
    """Values used once, in the same loop, are written where they are used; never across a write of what they read."""
    local = Counter(
        part for stmt in body for expr in expressions(stmt) for part in subexpressions(expr) if isinstance(part, Var)
    )
    pending: dict[Var, Let] = {}
    result: list[Stmt] = []

    def flush(needed: Callable[[Let], bool]) -> None:
        for var in [v for v, let in pending.items() if needed(let)]:
            result.append(pending.pop(var))

    for stmt in body:
        used = [part for expr in expressions(stmt) for part in subexpressions(expr) if part in pending]
        values = {var: pending.pop(var).value for var in used if isinstance(var, Var)}
        if values:
            stmt = _replace_here(stmt, values)
        if isinstance(stmt, Loop):
            flush(lambda let, inside=read_vars(stmt.body), s=stored_buffers(stmt.body), d=defined(stmt.body): (  # type: ignore[misc]
                let.var in inside or bool(read_buffers([let]) & s) or bool(read_vars([let]) & d)
            ))
            stmt = Loop(stmt.var, stmt.size, inline_once(stmt.body, counts))
        elif isinstance(stmt, Store | Invoke):
            flush(lambda let, s=stored_buffers([stmt]): bool(read_buffers([let]) & s))  # type: ignore[misc]
        elif isinstance(stmt, Set):
            flush(lambda let, v=stmt.var: v in read_vars([let]))  # type: ignore[misc]
        if isinstance(stmt, Let) and counts[stmt.var] == 1 and local[stmt.var] == 1 and operators(stmt.value) <= INLINE_OPS:
            pending[stmt.var] = stmt
        else:
            result.append(stmt)
    result.extend(pending.values())
    return tuple(result)


def _replace_here(stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """Names replaced in the statement itself, a loop's body left alone."""
    if isinstance(stmt, Loop):
        return Loop(stmt.var, replace_vars(stmt.size, values), stmt.body)
    return map_expressions(stmt, lambda expr: replace_vars(expr, values))


def operators(expr: Expr) -> int:
    return sum(isinstance(part, Apply | Load) for part in subexpressions(expr))
