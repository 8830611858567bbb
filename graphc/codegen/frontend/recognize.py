"""Statements that a construct of the generated language stands for (constructs.py has their meaning).

In: the statements of a function, and a place among them. Out: how many statements from there on are one construct, and
the `Use` of it that the emitter writes instead; None of any other statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.codegen.threads.chunking import MOST_CHUNKS
from graphc.codegen.transform.privatize import stride
from graphc.loops import operators
from graphc.loops.ir import (
    BLOCK,
    INDEX,
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
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
    apply,
    integer,
    multiply,
    rebuild,
    subexpressions,
)
from graphc.loops.operators import ACCUMULATE, ACCUMULATE_IN_ORDER, BLOCKS, CASTS, CHUNK, GT, MAXIMUM, ROUNDING, SELECT
from graphc.loops.visit import read_vars
from graphc.startup.record import record, replace

ZERO_SUM = Const("0.0", "float64")


@record()
class Term:
    """What is summed, of a position: names for parts of it, and the number."""

    place: Var
    body: tuple[Let, ...]
    value: Expr


@record()
class Use:
    """`targets = construct(*args)`; a function's name is a str."""

    targets: tuple[Var, ...]
    construct: str
    args: tuple[Expr | Term | str, ...]


Found: TypeAlias = tuple[int, Use] | None


def recognize(body: Sequence[Stmt], at: int) -> Found:
    """The construct that begins at a place, and how many statements it is."""
    if isinstance(body[at], Let | Set | Loop):
        for rule in _RULES:
            found = rule(body, at)
            if found is not None:
                return found
    return None


def _addition(body: Sequence[Stmt], at: int) -> Found:
    """Adding to a sum that is carried in two floats."""
    match body[at : at + 2]:
        case [Set(comp, Apply(operators.ACCUMULATE, (old, Apply(operators.ROUNDING, (Var() as total, term))))), after]:
            if old == comp and after == Set(total, apply(ACCUMULATE_IN_ORDER, total, term)):
                return 2, Use((total, comp), "add", (total, comp, term))
    return None


def _sum_blocks(body: Sequence[Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [Set(one, start), Set(other, _), Loop() as loop] if start == ZERO_SUM and body[at + 1].value == start:  # type: ignore[union-attr]
            added = _addition(loop.body, len(loop.body) - 2)
            if added is None or added[1].targets != (other, one):
                return None
            args = _blocks(loop, loop.body[:-2], added[1].args[2])
            return None if args is None else (3, Use(added[1].targets, "sum_blocks", args))
        case [Set(total, start), Loop(_, _, (*_, Set(again, value))) as loop, *_] if (
            start == ZERO_SUM and again == total
        ):
            match value:
                case Apply(operators.ACCUMULATE, (before, Apply(widen, (part,)))) if widen is CASTS["float64"]:
                    args = _blocks(loop, loop.body[:-1], part) if before == total else None
                    return None if args is None else (2, Use((total,), "sum_blocks_float32", args))
    return None


def _blocks(loop: Loop, body: Sequence[Stmt], part: Expr | Term | str) -> tuple[Expr | Term | str, ...] | None:
    """The blocks, the length and the term of sums over blocks, where that is all that statements do."""
    length, first = integer(BLOCK), multiply(loop.var, integer(BLOCK))
    starts, rest = [first], [stmt for stmt in body if not isinstance(stmt, Note)]
    for stmt in body:
        if isinstance(stmt, Let) and stmt.value == first:
            starts.append(stmt.var)
            rest.remove(stmt)
    match rest:
        case [Set(of, Const("0.0")), Loop(place, Apply(operators.BLOCK_LENGTH, (n, block, size)), steps) as inner]:
            if not (loop.is_independent and inner.is_independent):
                return None
            *named, last = steps
            positions = {add(start, place) for start in starts}
            hidden = {place, loop.var, *starts}
            match last:
                case Set(again, Apply(operators.ACCUMULATE, (before, value))):
                    if not (of == part == again == before) or (block, size) != (loop.var, length):
                        return None
                    lets = [stmt for stmt in named if isinstance(stmt, Let)]
                    term = _term(place, positions, hidden, lets, value) if len(lets) == len(named) else None
                    return None if term is None else (loop.begin, loop.size, n, term)
    return None


def _term(place: Var, positions: set[Expr], hidden: set[Expr], lets: Sequence[Let], value: Expr) -> Term | None:
    """A term of a position, where statements know no more of where they are than that."""
    position = Opaque("position", (), INDEX)
    values = [*(let.value for let in lets), value]
    exprs = [rebuild(expr, lambda part: position if part in positions else None) for expr in values]
    if any(part in hidden for expr in exprs for part in subexpressions(expr)):
        return None
    *values, last = (rebuild(expr, lambda part: place if part is position else None) for expr in exprs)
    return Term(place, tuple(Let(let.var, each) for let, each in zip(lets, values, strict=True)), last)


def _sum_parts(body: Sequence[Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [Set(one, start), Set(other, again), Loop(part, count, (first, *rest), begin)]:
            match first:
                case Set(
                    comp, Apply(operators.ACCUMULATE, (_, Apply(operators.ROUNDING, (Var() as total, Load(parts)))))
                ):
                    sums, errors = Load(parts, add(part, integer(MOST_CHUNKS))), Load(parts, part)
                    steps = (
                        Set(comp, apply(ACCUMULATE, comp, apply(ROUNDING, total, sums))),
                        Set(comp, apply(ACCUMULATE, comp, errors)),
                        Set(total, apply(ACCUMULATE_IN_ORDER, total, sums)),
                    )
                    fits = (first, *rest) == steps and start == again == ZERO_SUM and begin == ZERO
                    if fits and (one, other) == (comp, total):
                        return 3, Use((total, comp), "sum_parts", (Pointer(parts, ZERO), count))
    return None


def _parallel_sum(body: Sequence[Stmt], at: int) -> Found:
    match body[at : at + 2]:
        case [
            Let(size, Apply(operators.CHUNK, (count, work))),
            Launch(function, launched, chunk, (*args, given, Pointer(), Pointer())) as launch,
        ]:
            found = _sum_parts(body, at + 2)
            if found is None or not (count == launched and size == chunk == given):
                return None
            parts = found[1].args[0]
            outs = (parts, replace(parts, index=integer(MOST_CHUNKS)))
            if (
                launch.args[-2:] != outs
                or found[1].args[1] != apply(BLOCKS, count, size)
                or size in read_vars(body[at + 5 :])
            ):
                return None
            return 5, Use(found[1].targets, "parallel_sum", (function, count, work, parts, *args))
    return None


def _chunks_with_copies(body: Sequence[Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [
            Let(most, Apply(operators.MAXIMUM, (copies, one))),
            Let(size, Apply(operators.MAXIMUM, (Apply(operators.CHUNK, (count, work)), _)) as value),
            Let(shared, share),
        ]:
            sizes = apply(MAXIMUM, apply(CHUNK, count, work), apply(BLOCKS, count, most))
            shares = apply(SELECT, apply(GT, count, size), count, ZERO)
            if (one, value, share) == (ONE, sizes, shares):
                return 3, Use((most, size, shared), "chunks_with_copies", (count, work, copies))
    return None


def _add_copies(body: Sequence[Stmt], at: int) -> Found:
    match body[at]:
        case Loop(part, Apply(operators.BLOCKS) as count, (Loop(c, n, (Store(target, _, _) as store,)),)):
            match store.value:
                case Apply(operators.ACCUMULATE, (_, Load(copies))):
                    copy = Load(copies, add(multiply(part, stride(n)), c))
                    if store == Store(target, c, apply(ACCUMULATE, Load(target, c), copy)):
                        whole = Pointer(target, ZERO), Pointer(copies, ZERO)
                        return 1, Use((), "add_copies", (*whole, n, count))
    return None


_RULES: tuple[Callable[[Sequence[Stmt], int], Found], ...] = (
    _parallel_sum, _sum_blocks, _sum_parts, _addition, _chunks_with_copies, _add_copies,
)  # fmt: skip
