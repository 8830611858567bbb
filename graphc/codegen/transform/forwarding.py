"""Temporaries that need not be stored: store to load forwarding, and copy elision.

In: the statements of a kernel whose loops along a row were merged, or whose steps were written out. Out: the same
computation. `forward_stores` takes an element that is read in the iteration that stores it from its name, and does not
write a temporary that is read nowhere else (dead store elimination):

    for i in range(n):                  for i in range(n):
        t[i] = x[i] * 2.0                   value = x[i] * 2.0
        out[i] = t[i] + 1.0                 out[i] = value + 1.0

LLVM sees by itself that a load gives what was just stored. It cannot know that nothing else reads a buffer, and a row
that is written for nothing costs as much as one that is read.

`elide_copies` lets the loop that fills a temporary only to be copied write the part of the other buffer itself, as
where a row is joined with others. Nobody may read or write that part until the copy would have been made:

    for i in range(n):                  for i in range(n):
        t[i] = x[i] * 2.0                   out[m + i] = x[i] * 2.0
    for i in range(n):
        out[m + i] = t[i]
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.codegen.transform.merge_rows import resolved
from graphc.loopir import ir, visit
from graphc.startup.record import record, replace

Fresh = Callable[[str], str]


def forward_stores(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements in which no temporary is written that is read only in the iterations of its stores; `fresh` gives
    names."""
    changing = {stmt.var for stmt in visit.statements(body) if isinstance(stmt, ir.Set)}
    result = _forwarded(body, {}, _Scope(frozenset(changing), fresh))
    return without_stores(result, visit.read_buffers(result))


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
    """A body in which a load from a place just stored becomes the stored value. `outer`: indices that have names around
    the body. A store in a branch may not have happened, so it is not forwarded out of the branch."""
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
            stmt = visit.map_expressions(stmt, lambda expr: visit.replace_vars(expr, alias))
        if stored and not isinstance(stmt, ir.Loop):
            stmt = visit.map_own_expressions(stmt, lambda expr: ir.rebuild(expr, value))
        stmt = visit.map_bodies(stmt, lambda inner: _forwarded(inner, values, scope))
        if isinstance(stmt, ir.Let) and any(stmt.value in found.values() for found in stored.values()):
            alias[stmt.var] = stmt.value
            continue
        place = scope.position(stmt.index, values) if isinstance(stmt, ir.Store) else None
        for buffer in visit.stored_buffers([stmt]):
            if unchanged := {each: name for each, name in stored.pop(buffer, {}).items() if _differ(each, place)}:
                stored[buffer] = unchanged
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
    """A stored value with the dtype of its buffer. Under CPython, literals and sizes are Python numbers, which do not
    wrap around and cannot be divided by zero as elements of a buffer can."""
    if isinstance(value, ir.Const):
        return ir.convert(value, value.dtype)
    loads = any(isinstance(part, ir.Load) for part in ir.subexpressions(value))
    return ir.convert(value, ir.INDEX) if value.dtype == ir.INDEX and not loads else value


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
            parts = (part for expr in visit.expressions(stmt) for part in ir.subexpressions(expr))
            later |= {part.buffer for part in parts if isinstance(part, ir.Load) and part.buffer.is_temporary}
    return result[::-1]


def without_stores(body: Sequence[ir.Stmt], read: Collection[ir.Buffer]) -> tuple[ir.Stmt, ...]:
    """Statements without stores to temporaries but those that are read, and without loops and branches that did nothing
    else."""
    result: list[ir.Stmt] = []
    for before in body:
        if isinstance(before, ir.Store) and before.buffer.is_temporary and before.buffer not in read:
            continue
        stmt = visit.map_bodies(before, lambda inner: without_stores(inner, read))
        if stmt == before or not all(
            isinstance(each, ir.Let | ir.Note) for inner in visit.bodies(stmt) for each in inner
        ):
            result.append(stmt)
    return tuple(result)


# --- copy elision -----------------------------------------------------------------------------------------------------


@record()
class Copy:
    """A loop that copies a whole temporary: `index` is the place of element `var`."""

    source: ir.Buffer
    target: ir.Buffer
    index: ir.Expr
    var: ir.Var
    size: ir.Expr

    @property
    def begin(self) -> int | None:
        """The place where the copy begins, if that is a literal."""
        return ir.int_value(visit.replace_vars(self.index, {self.var: ir.ZERO}))


def elide_copies(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Statements without copies of temporaries that can be written where they go."""
    reads = Counter(part.buffer for part in visit.all_expressions(body) if isinstance(part, ir.Load | ir.Pointer))
    return _written(body, {buffer for buffer, count in reads.items() if count == 1 and buffer.is_temporary})


def _written(body: Sequence[ir.Stmt], once: Collection[ir.Buffer]) -> tuple[ir.Stmt, ...]:
    copies = [read_copy(stmt) for stmt in body]
    if not any(copy is not None and copy.source in once for copy in copies):
        return tuple(visit.map_bodies(stmt, lambda inner: _written(inner, once)) for stmt in body)
    before = _Before()
    for stmt, copy in zip(body, copies, strict=True):
        if copy is None or copy.source not in once or not _write_there(before, copy):
            before.append(visit.map_bodies(stmt, lambda inner: _written(inner, once)))
    return tuple(before.statements)


class _Before:
    """The statements before a given one, with the places, in ascending order, at which each name and buffer is read and
    written. A search for a far place needs no walk."""

    def __init__(self) -> None:
        self.statements: list[ir.Stmt] = []
        self.writes: dict[ir.Var | ir.Buffer, list[int]] = {}
        self.reads: dict[ir.Var | ir.Buffer, list[int]] = {}

    def append(self, stmt: ir.Stmt) -> None:
        for places, touched in zip((self.writes, self.reads), visit.effects([stmt]), strict=True):
            for each in touched:
                places.setdefault(each, []).append(len(self.statements))
        self.statements.append(stmt)

    def divert(self, place: int, loop: ir.Loop, source: ir.Buffer, target: ir.Buffer) -> None:
        """Put a loop that writes `target` in place of the one that writes `source`."""
        self.statements[place] = loop
        del self.writes[source]
        insort(self.writes.setdefault(target, []), place)

    def is_free(self, copy: Copy, place: int) -> bool:
        """True where a statement may write the target of a copy: none from there on reads it, or changes where it
        is."""
        known = {part for part in ir.subexpressions(copy.index) if isinstance(part, ir.Var)} - {copy.var}
        changed = any(self.writes.get(var, [-1])[-1] >= place for var in known)
        if changed or self.reads.get(copy.target, [-1])[-1] >= place:
            return False
        written = self.writes.get(copy.target, [])
        later = (self.statements[each] for each in written[bisect_left(written, place) :])
        return all(isinstance(stmt, ir.Store) and _is_before(stmt, copy) for stmt in later)


def read_copy(stmt: ir.Stmt) -> Copy | None:
    """A loop as a copy, if it is one."""
    if (
        not isinstance(stmt, ir.Loop)
        or stmt.begin != ir.ZERO
        or len(stmt.body) != 1
        or not isinstance(stmt.body[0], ir.Store)
    ):
        return None
    store = stmt.body[0]
    match store.value:
        case ir.Load(source, index) if index == stmt.var and source != store.buffer:
            if source.dtype == store.buffer.dtype and visit.stride(store.index, stmt.var, {}) == 1:
                return Copy(source, store.buffer, store.index, stmt.var, stmt.size)
    return None


def _write_there(before: _Before, copy: Copy) -> bool:
    """Make the loop that writes the source of a copy write the target of the copy instead. The copy comes after these
    statements. Returns False if that is impossible."""
    places = before.writes.get(copy.source, ())
    if len(places) != 1:
        return False
    (place,) = places
    loop = before.statements[place]
    if not isinstance(loop, ir.Loop) or (loop.begin, loop.size) != (ir.ZERO, copy.size) or visit.is_left(loop):
        return False
    stores = [stmt for stmt in visit.statements(loop.body) if isinstance(stmt, ir.Store) and stmt.buffer == copy.source]
    if len(stores) != 1 or stores[0] not in loop.body or stores[0].index != loop.var:
        return False
    if not before.is_free(copy, place):
        return False
    there = ir.Store(copy.target, visit.replace_vars(copy.index, {copy.var: loop.var}), stores[0].value)
    body = tuple(there if stmt is stores[0] else stmt for stmt in loop.body)
    before.divert(place, replace(loop, body=body), copy.source, copy.target)
    return True


def _is_before(store: ir.Store, copy: Copy) -> bool:
    """True where an element is known to lie before what is copied."""
    place = ir.int_value(store.index)
    return place is not None and copy.begin is not None and place < copy.begin
