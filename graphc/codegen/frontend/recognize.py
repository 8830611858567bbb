"""Statements that a construct of the generated language stands for (constructs.py has their meaning).

In: the statements of a function, and a place among them. Out: how many statements from there on are one construct, and
the `Use` of it that the emitter writes instead; None of any other statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.codegen.threads.chunking import MOST_CHUNKS
from graphc.codegen.transform.privatize import stride
from graphc.loopir import ir, operators
from graphc.loopir.operators import ACCUMULATE, ACCUMULATE_IN_ORDER, BLOCKS, CASTS, CHUNK, GT, MAXIMUM, ROUNDING, SELECT
from graphc.loopir.visit import read_vars
from graphc.startup.record import record, replace

ZERO_SUM = ir.Const("0.0", "float64")


@record()
class Term:
    """What is summed, of a position: names for parts of it, and the number."""

    place: ir.Var
    body: tuple[ir.Let, ...]
    value: ir.Expr


@record()
class Use:
    """`targets = construct(*args)`; a function's name is a str."""

    targets: tuple[ir.Var, ...]
    construct: str
    args: tuple[ir.Expr | Term | str, ...]


Found: TypeAlias = tuple[int, Use] | None


def recognize(body: Sequence[ir.Stmt], at: int) -> Found:
    """The construct that begins at a place, and how many statements it is."""
    if isinstance(body[at], ir.Let | ir.Set | ir.Loop):
        for rule in _RULES:
            found = rule(body, at)
            if found is not None:
                return found
    return None


def _addition(body: Sequence[ir.Stmt], at: int) -> Found:
    """Adding to a sum that is carried in two floats."""
    match body[at : at + 2]:
        case [
            ir.Set(
                comp, ir.Apply(operators.ACCUMULATE, (old, ir.Apply(operators.ROUNDING, (ir.Var() as total, term))))
            ),
            after,
        ]:
            if old == comp and after == ir.Set(total, ir.apply(ACCUMULATE_IN_ORDER, total, term)):
                return 2, Use((total, comp), "add", (total, comp, term))
    return None


def _sum_blocks(body: Sequence[ir.Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [ir.Set(one, start), ir.Set(other, _), ir.Loop() as loop] if (
            start == ZERO_SUM and body[at + 1].value == start  # type: ignore[union-attr]
        ):
            added = _addition(loop.body, len(loop.body) - 2)
            if added is None or added[1].targets != (other, one):
                return None
            args = _blocks(loop, loop.body[:-2], added[1].args[2])
            return None if args is None else (3, Use(added[1].targets, "sum_blocks", args))
        case [ir.Set(total, start), ir.Loop(_, _, (*_, ir.Set(again, value))) as loop, *_] if (
            start == ZERO_SUM and again == total
        ):
            match value:
                case ir.Apply(operators.ACCUMULATE, (before, ir.Apply(widen, (part,)))) if widen is CASTS["float64"]:
                    args = _blocks(loop, loop.body[:-1], part) if before == total else None
                    return None if args is None else (2, Use((total,), "sum_blocks_float32", args))
    return None


def _blocks(
    loop: ir.Loop, body: Sequence[ir.Stmt], part: ir.Expr | Term | str
) -> tuple[ir.Expr | Term | str, ...] | None:
    """The blocks, the length and the term of sums over blocks, where that is all that statements do."""
    length, first = ir.integer(ir.BLOCK), ir.multiply(loop.var, ir.integer(ir.BLOCK))
    starts, rest = [first], [stmt for stmt in body if not isinstance(stmt, ir.Note)]
    for stmt in body:
        if isinstance(stmt, ir.Let) and stmt.value == first:
            starts.append(stmt.var)
            rest.remove(stmt)
    match rest:
        case [
            ir.Set(of, ir.Const("0.0")),
            ir.Loop(place, ir.Apply(operators.BLOCK_LENGTH, (n, block, size)), steps) as inner,
        ]:
            if not (loop.is_independent and inner.is_independent):
                return None
            *named, last = steps
            positions = {ir.add(start, place) for start in starts}
            hidden = {place, loop.var, *starts}
            match last:
                case ir.Set(again, ir.Apply(operators.ACCUMULATE, (before, value))):
                    if not (of == part == again == before) or (block, size) != (loop.var, length):
                        return None
                    lets = [stmt for stmt in named if isinstance(stmt, ir.Let)]
                    term = _term(place, positions, hidden, lets, value) if len(lets) == len(named) else None
                    return None if term is None else (loop.begin, loop.size, n, term)
    return None


def _term(
    place: ir.Var, positions: set[ir.Expr], hidden: set[ir.Expr], lets: Sequence[ir.Let], value: ir.Expr
) -> Term | None:
    """A term of a position, where statements know no more of where they are than that."""
    position = ir.Opaque("position", (), ir.INDEX)
    values = [*(let.value for let in lets), value]
    exprs = [ir.rebuild(expr, lambda part: position if part in positions else None) for expr in values]
    if any(part in hidden for expr in exprs for part in ir.subexpressions(expr)):
        return None
    *values, last = (ir.rebuild(expr, lambda part: place if part is position else None) for expr in exprs)
    return Term(place, tuple(ir.Let(let.var, each) for let, each in zip(lets, values, strict=True)), last)


def _sum_parts(body: Sequence[ir.Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [ir.Set(one, start), ir.Set(other, again), ir.Loop(part, count, (first, *rest), begin)]:
            match first:
                case ir.Set(
                    comp,
                    ir.Apply(
                        operators.ACCUMULATE, (_, ir.Apply(operators.ROUNDING, (ir.Var() as total, ir.Load(parts))))
                    ),
                ):
                    sums, errors = ir.Load(parts, ir.add(part, ir.integer(MOST_CHUNKS))), ir.Load(parts, part)
                    steps = (
                        ir.Set(comp, ir.apply(ACCUMULATE, comp, ir.apply(ROUNDING, total, sums))),
                        ir.Set(comp, ir.apply(ACCUMULATE, comp, errors)),
                        ir.Set(total, ir.apply(ACCUMULATE_IN_ORDER, total, sums)),
                    )
                    fits = (first, *rest) == steps and start == again == ZERO_SUM and begin == ir.ZERO
                    if fits and (one, other) == (comp, total):
                        return 3, Use((total, comp), "sum_parts", (ir.Pointer(parts, ir.ZERO), count))
    return None


def _parallel_sum(body: Sequence[ir.Stmt], at: int) -> Found:
    match body[at : at + 2]:
        case [
            ir.Let(size, ir.Apply(operators.CHUNK, (count, work))),
            ir.Launch(function, launched, chunk, (*args, given, ir.Pointer(), ir.Pointer())) as launch,
        ]:
            found = _sum_parts(body, at + 2)
            if found is None or not (count == launched and size == chunk == given):
                return None
            parts = found[1].args[0]
            outs = (parts, replace(parts, index=ir.integer(MOST_CHUNKS)))
            if (
                launch.args[-2:] != outs
                or found[1].args[1] != ir.apply(BLOCKS, count, size)
                or size in read_vars(body[at + 5 :])
            ):
                return None
            return 5, Use(found[1].targets, "parallel_sum", (function, count, work, parts, *args))
    return None


def _chunks_with_copies(body: Sequence[ir.Stmt], at: int) -> Found:
    match body[at : at + 3]:
        case [
            ir.Let(most, ir.Apply(operators.MAXIMUM, (copies, one))),
            ir.Let(size, ir.Apply(operators.MAXIMUM, (ir.Apply(operators.CHUNK, (count, work)), _)) as value),
            ir.Let(shared, share),
        ]:
            sizes = ir.apply(MAXIMUM, ir.apply(CHUNK, count, work), ir.apply(BLOCKS, count, most))
            shares = ir.apply(SELECT, ir.apply(GT, count, size), count, ir.ZERO)
            if (one, value, share) == (ir.ONE, sizes, shares):
                return 3, Use((most, size, shared), "chunks_with_copies", (count, work, copies))
    return None


def _add_copies(body: Sequence[ir.Stmt], at: int) -> Found:
    match body[at]:
        case ir.Loop(part, ir.Apply(operators.BLOCKS) as count, (ir.Loop(c, n, (ir.Store(target, _, _) as store,)),)):
            match store.value:
                case ir.Apply(operators.ACCUMULATE, (_, ir.Load(copies))):
                    copy = ir.Load(copies, ir.add(ir.multiply(part, stride(n)), c))
                    if store == ir.Store(target, c, ir.apply(ACCUMULATE, ir.Load(target, c), copy)):
                        whole = ir.Pointer(target, ir.ZERO), ir.Pointer(copies, ir.ZERO)
                        return 1, Use((), "add_copies", (*whole, n, count))
    return None


_RULES: tuple[Callable[[Sequence[ir.Stmt], int], Found], ...] = (
    _parallel_sum, _sum_blocks, _sum_parts, _addition, _chunks_with_copies, _add_copies,
)  # fmt: skip
