"""Copy elision: a temporary that is computed only to be copied is written where the copy goes.

In: the statements of a kernel. Out: the same results, where the loop that fills such a temporary writes the part of the
other buffer itself, as where a row is joined with others:

    for i in range(n):                  for i in range(n):
        t[i] = x[i] * 2.0                   out[m + i] = x[i] * 2.0
    for i in range(n):
        out[m + i] = t[i]

Nobody may read or write that part until the copy would have been made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from graphc.codegen.lower.access import stride
from graphc.loopir.ir import ZERO, Buffer, Expr, Load, Loop, Pointer, Stmt, Store, Var, int_value, subexpressions
from graphc.loopir.visit import (
    all_expressions,
    effects,
    is_left,
    map_bodies,
    read_buffers,
    replace_vars,
    statements,
    stored_buffers,
)
from graphc.startup.record import record, replace


@record()
class Copy:
    """A loop that copies a whole temporary: `index` is the place of element `var`."""

    source: Buffer
    target: Buffer
    index: Expr
    var: Var
    size: Expr

    @property
    def begin(self) -> int | None:
        """The place where the copy begins, if that is a literal."""
        return int_value(replace_vars(self.index, {self.var: ZERO}))


def elide_copies(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements without copies of temporaries that can be written where they go."""
    reads = Counter(part.buffer for part in all_expressions(body) if isinstance(part, Load | Pointer))
    return _written(body, {buffer for buffer, count in reads.items() if count == 1 and buffer.is_temporary})


def _written(body: Sequence[Stmt], once: Collection[Buffer]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        copy = read_copy(stmt)
        if copy is None or copy.source not in once or not _write_there(result, copy):
            result.append(map_bodies(stmt, lambda inner: _written(inner, once)))
    return tuple(result)


def read_copy(stmt: Stmt) -> Copy | None:
    """A loop as a copy, if it is one."""
    if not isinstance(stmt, Loop) or stmt.begin != ZERO or len(stmt.body) != 1 or not isinstance(stmt.body[0], Store):
        return None
    store = stmt.body[0]
    match store.value:
        case Load(source, index) if index == stmt.var and source != store.buffer:
            if source.dtype == store.buffer.dtype and stride(store.index, stmt.var, {}) == 1:
                return Copy(source, store.buffer, store.index, stmt.var, stmt.size)
    return None


def _write_there(before: list[Stmt], copy: Copy) -> bool:
    """Let the loop that writes the source of a copy, which comes after these statements, write its target. False where
    that cannot be."""
    places = [place for place, stmt in enumerate(before) if copy.source in stored_buffers([stmt])]
    if len(places) != 1:
        return False
    (place,) = places
    loop, between = before[place], before[place + 1 :]
    if not isinstance(loop, Loop) or (loop.begin, loop.size) != (ZERO, copy.size) or is_left(loop):
        return False
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store) and stmt.buffer == copy.source]
    if len(stores) != 1 or stores[0] not in loop.body or stores[0].index != loop.var:
        return False
    known = {part for part in subexpressions(copy.index) if isinstance(part, Var)} - {copy.var}
    written, _ = effects([loop, *between])
    others = [stmt for stmt in between if copy.target in stored_buffers([stmt])]
    if copy.target in read_buffers([loop, *between]) or copy.target in stored_buffers([loop]) or known & written:
        return False
    if not all(isinstance(stmt, Store) and _is_before(stmt, copy) for stmt in others):
        return False
    there = Store(copy.target, replace_vars(copy.index, {copy.var: loop.var}), stores[0].value)
    before[place] = replace(loop, body=tuple(there if stmt is stores[0] else stmt for stmt in loop.body))
    return True


def _is_before(store: Store, copy: Copy) -> bool:
    """True where an element is known to lie before what is copied."""
    place = int_value(store.index)
    return place is not None and copy.begin is not None and place < copy.begin
