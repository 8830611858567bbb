"""Fewer and plainer statements: what lowering writes without looking ahead is tidied here.

In: the statements of a function. Out: the same computation with loops of one iteration unrolled, adjacent reductions
over the same range in one loop, values named twice named once, values used once written where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from graphc.codegen.transform.horizontal import fuse_reductions
from graphc.loopir import ir
from graphc.loopir.visit import (
    Changes,
    Readers,
    bodies,
    expressions,
    is_left,
    map_bodies,
    map_expressions,
    map_own_expressions,
    op_count,
    own_expressions,
    read_vars,
    replace_vars,
    statements,
    use_counts,
    with_values,
)

Change: TypeAlias = Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]]

INLINE_OPS = 12
"""An expression of more operators than this keeps its name: a person has to read it."""


def simplify(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """The statements after all of STEPS."""
    result = tuple(body)
    for _, step in STEPS:
        result = step(result)
    return result


def unroll_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Loops of exactly one iteration become their body, where nothing in it leaves them."""
    result: list[ir.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, unroll_once)
        if isinstance(stmt, ir.Loop) and ir.int_value(stmt.size) == 1 and stmt.begin == ir.ZERO and not is_left(stmt):
            result.extend(with_values(stmt.body, {stmt.var: ir.ZERO}))
        else:
            result.append(stmt)
    return tuple(result)


def name_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """A value that has a name already is not named again, unless what it was computed from has changed since."""
    return _name_once(body, {}, Readers())


def _name_once(body: Sequence[ir.Stmt], known: dict[ir.Expr, ir.Var], readers: Readers) -> tuple[ir.Stmt, ...]:
    """`known` holds the names of enclosing bodies as well; those of this body are taken out again."""
    alias: dict[ir.Var, ir.Expr] = {}
    named: list[ir.Expr] = []
    result: list[ir.Stmt] = []
    for stmt in body:
        if alias:
            stmt = map_expressions(stmt, lambda expr: replace_vars(expr, alias))
        for value in readers.touched(Changes.of(stmt)):
            known.pop(value, None)
        stmt = map_bodies(stmt, lambda inner: _name_once(inner, known, readers))
        if isinstance(stmt, ir.Let):
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


def drop_unused(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Names that nothing reads are not written."""
    return _without_unused(body, set())


def _without_unused(body: Sequence[ir.Stmt], used: set[ir.Var]) -> tuple[ir.Stmt, ...]:
    """`used` are the names read after this body; those read in it are added. Nothing reads a name before its `Let`."""
    kept: list[ir.Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, ir.Let) and stmt.var not in used:
            continue
        stmt = map_bodies(stmt, lambda inner: _without_unused(inner, used))
        used.update(part for expr in expressions(stmt) for part in ir.subexpressions(expr) if isinstance(part, ir.Var))
        kept.append(stmt)
    return tuple(reversed(kept))


def inline_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Values used once, in the same body, are written where they are used; never across a write of what they read."""
    return _inline_once(body, use_counts(own_expressions(statements(body))))


def _inline_once(body: Sequence[ir.Stmt], counts: Mapping[ir.Var, int]) -> tuple[ir.Stmt, ...]:
    local = use_counts(own_expressions(body))
    pending: dict[ir.Var, tuple[int, ir.Let]] = {}
    readers = Readers()
    result: list[ir.Stmt] = []
    for place, stmt in enumerate(body):
        used = (part for expr in expressions(stmt) for part in ir.subexpressions(expr) if isinstance(part, ir.Var))
        values = {var: pending.pop(var)[1].value for var in used if var in pending}
        if values:
            stmt = map_own_expressions(stmt, partial(replace_vars, values=values))
        inside = (var for inner in bodies(stmt) for var in read_vars(inner))
        due = {*inside, *readers.touched(Changes.of(stmt))}
        result.extend(let for _, let in sorted(pending.pop(var) for var in due & pending.keys()))
        stmt = map_bodies(stmt, lambda inner: _inline_once(inner, counts))
        once = isinstance(stmt, ir.Let) and counts[stmt.var] == local[stmt.var] == 1
        if isinstance(stmt, ir.Let) and once and op_count(stmt.value) <= INLINE_OPS:
            pending[stmt.var] = place, stmt
            readers.add(stmt.var, stmt.value)
        else:
            result.append(stmt)
    result.extend(let for _, let in pending.values())
    return tuple(result)


STEPS: tuple[tuple[str, Change], ...] = (
    ("unroll_once", unroll_once),
    ("fuse_reductions", fuse_reductions),
    ("name_once", name_once),
    ("drop_unused", drop_unused),
    ("inline_once", inline_once),
)
"""The passes that simplify, in order."""
