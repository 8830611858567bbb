"""Store to load forwarding: an element that is read in the iteration that stores it is taken from its name.

In: the statements of a kernel whose loops along a row were merged, or whose steps were written out. Out: the same
computation, where a temporary that is read nowhere else is not written (dead store elimination).

    for i in range(n):                  for i in range(n):
        t[i] = x[i] * 2.0                   value = x[i] * 2.0
        out[i] = t[i] + 1.0                 out[i] = value + 1.0

LLVM sees by itself that a load gives what was just stored. It cannot know that nothing else reads a buffer, and a row
that is written for nothing costs as much as one that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.codegen.transform.merge_rows import resolved
from graphc.loopir import ir
from graphc.loopir.build import convert
from graphc.loopir.visit import (
    bodies,
    expressions,
    map_bodies,
    map_expressions,
    map_own_expressions,
    read_buffers,
    replace_vars,
    statements,
    stored_buffers,
)
from graphc.startup.record import replace

Fresh = Callable[[str], str]


def forward_stores(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements in which no temporary is written that is read only in the iterations of its stores; `fresh` gives
    names."""
    changing = {stmt.var for stmt in statements(body) if isinstance(stmt, ir.Set)}
    result = _forwarded(body, {}, _Scope(frozenset(changing), fresh))
    return without_stores(result, read_buffers(result))


class _Scope:
    """Facts of a whole kernel: the names that are set, a source of names."""

    __slots__ = ("changing", "fresh")

    def __init__(self, changing: frozenset[ir.Var], fresh: Fresh):
        self.changing, self.fresh = changing, fresh

    def position(self, index: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr | None:
        """An index in terms of loop variables and sizes; None where it is not the same throughout an iteration."""
        place = resolved(index, values)
        parts = tuple(ir.subexpressions(place))
        return None if any(isinstance(part, ir.Load) or part in self.changing for part in parts) else place


def _forwarded(body: Sequence[ir.Stmt], outer: Mapping[ir.Var, ir.Expr], scope: _Scope) -> tuple[ir.Stmt, ...]:
    """A body in which loads of what it has just stored are the values. `outer`: indices that have names around it.
    What is stored in a branch may not have been."""
    values = dict(outer)
    stored: dict[ir.Buffer, dict[ir.Expr, ir.Var]] = {}
    alias: dict[ir.Var, ir.Expr] = {}
    result: list[ir.Stmt] = []
    awaited = _read_later(body)

    def value(part: ir.Expr) -> ir.Expr | None:
        if not isinstance(part, ir.Load) or part.buffer not in stored:
            return None
        place = scope.position(part.index, values)
        return None if place is None else stored[part.buffer].get(place)

    for stmt, waiting in zip(body, awaited, strict=True):
        if alias:
            stmt = map_expressions(stmt, lambda expr: replace_vars(expr, alias))
        if stored and not isinstance(stmt, ir.Loop):
            stmt = map_own_expressions(stmt, lambda expr: ir.rebuild(expr, value))
        stmt = map_bodies(stmt, lambda inner: _forwarded(inner, values, scope))
        if isinstance(stmt, ir.Let) and any(stmt.value in found.values() for found in stored.values()):
            alias[stmt.var] = stmt.value
            continue
        place = scope.position(stmt.index, values) if isinstance(stmt, ir.Store) else None
        for buffer in stored_buffers([stmt]):
            if found := {each: name for each, name in stored.pop(buffer, {}).items() if _differ(each, place)}:
                stored[buffer] = found
        if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX:
            values[stmt.var] = stmt.value
        if isinstance(stmt, ir.Store) and stmt.buffer in waiting and place is not None:
            name = stmt.value
            if not isinstance(name, ir.Var) or name in scope.changing or name.dtype == ir.INDEX:
                name = ir.Var(scope.fresh(label_of(stmt.value)), stmt.value.dtype)
                result.append(ir.Let(name, as_stored(stmt.value)))
                stmt = replace(stmt, value=name)
            stored.setdefault(stmt.buffer, {})[place] = name
        result.append(stmt)
    return tuple(result)


def _differ(place: ir.Expr, other: ir.Expr | None) -> bool:
    """True where two places are known to be no one place."""
    numbers = ir.int_value(place), None if other is None else ir.int_value(other)
    return None not in numbers and numbers[0] != numbers[1]


def as_stored(value: ir.Expr) -> ir.Expr:
    """A stored value as that of a scalar. Where CPython runs the source, literals and sizes are Python's numbers:
    they do not wrap around, and cannot be divided by zero, as those of a buffer."""
    if isinstance(value, ir.Const):
        return convert(value, value.dtype)
    loads = any(isinstance(part, ir.Load) for part in ir.subexpressions(value))
    return convert(value, ir.INDEX) if value.dtype == ir.INDEX and not loads else value


def label_of(value: ir.Expr) -> str:
    """A word for a value: the function that gives it, if there is one."""
    return value.op.name if isinstance(value, ir.Apply) and value.op.form == "call" else "value"


def _read_later(body: Sequence[ir.Stmt]) -> list[frozenset[ir.Buffer]]:
    """For each statement, the temporaries that statements after it read, those inside loops and branches left out."""
    later: frozenset[ir.Buffer] = frozenset()
    result = []
    for stmt in reversed(body):
        result.append(later)
        if not isinstance(stmt, ir.Loop):
            parts = (part for expr in expressions(stmt) for part in ir.subexpressions(expr))
            later |= {part.buffer for part in parts if isinstance(part, ir.Load) and part.buffer.is_temporary}
    return result[::-1]


def without_stores(body: Sequence[ir.Stmt], read: Collection[ir.Buffer]) -> tuple[ir.Stmt, ...]:
    """Statements without stores to temporaries but those that are read, and without loops and branches that did nothing
    else."""
    result: list[ir.Stmt] = []
    for before in body:
        if isinstance(before, ir.Store) and before.buffer.is_temporary and before.buffer not in read:
            continue
        stmt = map_bodies(before, lambda inner: without_stores(inner, read))
        if stmt == before or not all(isinstance(each, ir.Let | ir.Note) for inner in bodies(stmt) for each in inner):
            result.append(stmt)
    return tuple(result)
