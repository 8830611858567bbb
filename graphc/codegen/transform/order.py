"""Values in the order in which they are needed, in which equal steps look equal.

In: the statements of a kernel. Out: the same ones in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from graphc.loops.ir import Buffer, Expr, Let, Load, Note, Pointer, Set, Stmt, Var, subexpressions
from graphc.loops.visit import all_expressions, statements, stored_buffers
from graphc.startup.record import fresh, record


def order_by_use(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Values computed from what never changes stand where they are needed first, and what they are computed from
    before them, in the order in which they name it: however a long run of values was cut into nests, equal steps come
    in equal order. A note stands above the first statement that was under it; values that nothing needs go."""
    changing: set[Var | Buffer] = {stmt.var for stmt in statements(body) if isinstance(stmt, Set)}
    changing |= stored_buffers(body)
    kept: list[Stmt] = []
    ordering = Ordering()
    note: Note | None = None
    for stmt in body:
        if isinstance(stmt, Note):
            note = stmt
            continue
        if note is not None:
            ordering.notes[id(stmt)] = note
        if isinstance(stmt, Let) and is_fixed(stmt.value, changing):
            ordering.values[stmt.var] = stmt
        else:
            kept.append(stmt)
    for stmt in kept:
        ordering.require(all_expressions([stmt]))
        ordering.put(stmt)
    return tuple(ordering.result)


def is_fixed(value: Expr, changing: Collection[Var | Buffer]) -> bool:
    """Whether a value is the same wherever it is computed."""
    sources = (part.buffer if isinstance(part, Load | Pointer) else part for part in subexpressions(value))
    return not any(isinstance(source, Var | Buffer) and source in changing for source in sources)


@record(frozen=False)
class Ordering:
    """`values`: those that have no place yet; `notes`: what stands above statements, by their identity."""

    values: dict[Var, Let] = fresh(factory=dict)
    notes: dict[int, Note] = fresh(factory=dict)
    said: set[int] = fresh(factory=set)
    result: list[Stmt] = fresh(factory=list)

    def require(self, exprs: Iterable[Expr]) -> None:
        """Put the values that expressions read, and what these read first."""
        for wanted in list(self.waiting(exprs)):
            pending = [wanted]
            while pending:
                var = pending[-1]
                stmt = self.values.get(var)
                missing = list(self.waiting(subexpressions(stmt.value))) if stmt is not None else []
                pending += reversed(missing)
                if not missing:
                    pending.pop()
                    if stmt is not None:
                        self.put(self.values.pop(var))

    def waiting(self, exprs: Iterable[Expr]) -> Iterator[Var]:
        return (part for part in exprs if isinstance(part, Var) and part in self.values)

    def put(self, stmt: Stmt) -> None:
        note = self.notes.get(id(stmt))
        if note is not None and id(note) not in self.said:
            self.said.add(id(note))
            self.result.append(note)
        self.result.append(stmt)
