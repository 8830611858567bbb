"""Elements that a loop carries from one iteration to the next are carried in scalars: the memory is left to the end.

In: the statements of a kernel. Out: the same computation (scalar replacement), in which a buffer that a loop and all
that is inside it touch only at places that stay the same is not touched there at all:

    t[0] = 1.0                                  carry = float64(1.0)
    for i in range(n):                          for i in range(n):
        t[0] = t[0] * x[i]                          carry = carry * x[i]
                                                t[0] = carry

That buffers do not overlap the compiler knows, and it does the same where every iteration stores for certain and
nothing leaves the loop. That nothing else reads a temporary it cannot know.

The element must be there, though the loop may have no iteration: so it is one that was stored before, in the same
statements. Several places in one buffer are told apart as literals are. A buffer whose address is given away inside the
loop is left in memory. That a loop may be left in the middle, by a check or a function that fails, is no hindrance:
results are then discarded, and of what is updated in place less has changed than would have.

Only what is carried is changed: where each iteration writes an element before it reads it, iterations are independent
but for the memory. Buffers of a row, of which threads have one each, and those that loops add into, of which they have
copies, are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from graphc.codegen.transform.forwarding import as_stored, without_stores
from graphc.loopir import ir
from graphc.loopir.visit import all_expressions, expressions, map_expressions, read_buffers, statements, stored_buffers
from graphc.startup.record import replace

MOST_PLACES = 16
"""Elements of one buffer that are carried: those of a matrix of 4 by 4. More find no registers."""

UNDERSTOOD = (ir.Let, ir.Set, ir.Store, ir.Loop, ir.Check, ir.Invoke, ir.Note)
"""The kinds of statements that may stand in a loop. What another kind does to the order of things is not known here;
launches are written by later passes."""

Element: TypeAlias = "tuple[ir.Buffer, ir.Expr]"
Fresh = Callable[[str], str]


def keep_in_registers(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Rewrite loops to carry elements in scalars, and drop stores to temporaries that nothing reads any more. `fresh`
    gives names."""
    before = tuple(body)
    changing = {stmt.var for stmt in statements(before) if isinstance(stmt, ir.Set)}
    result = _kept(before, changing, fresh)
    return before if result == before else without_stores(result, read_buffers(result))


def _kept(body: tuple[ir.Stmt, ...], changing: set[ir.Var], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """A body in which loops carry elements in scalars: the outermost ones that can. `changing`: the scalars."""
    result: list[ir.Stmt] = []
    stores = _Stores(changing)
    left: dict[Element, ir.Var] = {}
    for stmt in body:
        stmt = _with_left(stmt, left)
        if not isinstance(stmt, ir.Loop):
            stores.follow(stmt, len(result))
            result.append(stmt)
            continue
        carries = {element: ir.Var(fresh("carry"), element[0].dtype) for element in carried_by(stmt, stores.places)}
        changing.update(carries.values())
        for (buffer, index), carry in carries.items():
            place = stores.places[buffer][index]
            store = None if place is None else result[place]
            if isinstance(store, ir.Store) and place is not None:
                result[place] = ir.Set(carry, as_stored(store.value))
            else:
                result.append(ir.Set(carry, ir.Load(buffer, index)))
        loop = in_scalars(stmt, carries) if carries else stmt
        stores.follow(loop, len(result))
        inner = _kept(loop.body, changing, fresh)
        result.append(loop if inner == loop.body else replace(loop, body=inner))
        for (buffer, index), carry in carries.items():
            store = ir.Store(buffer, index, carry)
            stores.follow(store, len(result))
            result.append(store)
        left.update(carries)
    return tuple(result)


def _with_left(stmt: ir.Stmt, left: dict[Element, ir.Var]) -> ir.Stmt:
    """A statement that takes what loops before it have left from the scalars; those are forgotten whose elements it
    may write."""
    if not left:
        return stmt
    if not is_understood([stmt]):
        left.clear()
        return stmt
    written = stored_buffers([stmt])
    kept = {element: carry for element, carry in left.items() if element[0] not in written}
    stmt = with_scalars(stmt, left if isinstance(stmt, ir.Store) else kept)
    if isinstance(stmt, ir.Store) and (place := ir.int_value(stmt.index)) is not None:
        others = (element for element in left if ir.int_value(element[1]) not in (None, place))
        kept |= {element: left[element] for element in others}
    left.clear()
    left.update(kept)
    return stmt


class _Stores:
    """The elements that the statements of one body have stored, each with the position of its last store, or None if it
    may have been read or overwritten since. `changing`: the scalars."""

    __slots__ = ("changing", "places")

    def __init__(self, changing: Collection[ir.Var]) -> None:
        self.changing = changing
        self.places: dict[ir.Buffer, dict[ir.Expr, int | None]] = {}

    def follow(self, stmt: ir.Stmt, place: int) -> None:
        """Take note of the next statement."""
        if self.places:
            touched = {*self.places}
            if is_understood([stmt]):
                touched = read_buffers([stmt]) | (set() if isinstance(stmt, ir.Store) else stored_buffers([stmt]))
            for buffer in touched & self.places.keys():
                self.places[buffer] = dict.fromkeys(self.places[buffer])
        if isinstance(stmt, ir.Store) and stmt.buffer.row is None and stmt.buffer.target is None:
            self.stored(stmt, place)

    def stored(self, stmt: ir.Store, place: int) -> None:
        """An element has another value, and so may those have that are not known to be others."""
        elements = self.places.get(stmt.buffer, {})
        number = ir.int_value(stmt.index)
        for index in elements:
            if number is None or ir.int_value(index) in (None, number):
                elements[index] = None
        if not any(isinstance(part, ir.Load) or part in self.changing for part in ir.subexpressions(stmt.index)):
            self.places.setdefault(stmt.buffer, elements)[stmt.index] = place


def is_understood(body: Sequence[ir.Stmt]) -> bool:
    return all(isinstance(stmt, UNDERSTOOD) for stmt in statements(body))


def carried_by(loop: ir.Loop, there: Mapping[ir.Buffer, Collection[ir.Expr]]) -> list[Element]:
    """The elements that a loop is to carry in scalars, of those that are `there` before it."""
    if not there or loop.conflicts is not None or not is_understood([loop]):
        return []
    touched: dict[ir.Buffer, dict[ir.Expr, None]] = {}
    escaped: set[ir.Buffer] = set()
    for stmt in statements([loop]):
        if isinstance(stmt, ir.Store):
            touched.setdefault(stmt.buffer, {})[stmt.index] = None
        for expr in expressions(stmt):
            for part in ir.subexpressions(expr):
                if isinstance(part, ir.Load):
                    touched.setdefault(part.buffer, {})[part.index] = None
                elif isinstance(part, ir.Pointer):
                    escaped.add(part.buffer)
    wanted = (there.keys() & stored_buffers([loop]) & first_read(loop.body)) - escaped
    return [
        (buffer, index)
        for buffer, indices in touched.items()
        if buffer in wanted and may_carry(indices) and indices.keys() <= {*there[buffer]}
        for index in indices
    ]


def may_carry(indices: Collection[ir.Expr]) -> bool:
    """True where these are few places of a buffer, which are known to differ."""
    return len(indices) == 1 or (
        len(indices) <= MOST_PLACES and all(ir.int_value(index) is not None for index in indices)
    )


def first_read(body: Sequence[ir.Stmt]) -> set[ir.Buffer]:
    """The buffers of which an iteration reads an element that it has not written for certain."""
    written: set[Element] = set()
    found: set[ir.Buffer] = set()
    for stmt in body:
        loads = (part for part in all_expressions([stmt]) if isinstance(part, ir.Load))
        found.update(part.buffer for part in loads if (part.buffer, part.index) not in written)
        if isinstance(stmt, ir.Store):
            written.add((stmt.buffer, stmt.index))
    return found


def with_scalars(stmt: ir.Stmt, carries: Mapping[Element, ir.Var]) -> ir.Stmt:
    """A statement that reads some elements from scalars."""

    def scalar(part: ir.Expr) -> ir.Expr | None:
        return carries.get((part.buffer, part.index)) if isinstance(part, ir.Load) else None

    return map_expressions(stmt, partial(ir.rebuild, replace=scalar))


def in_scalars(loop: ir.Loop, carries: Mapping[Element, ir.Var]) -> ir.Loop:
    """A loop in which some elements are scalars."""

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Store(buffer, index, value) if (buffer, index) in carries:
                return ir.Set(carries[buffer, index], as_stored(value))
            case ir.Loop():
                return replace(stmt, body=tuple(map(changed, stmt.body)), conflicts=None)
        return stmt

    found = with_scalars(changed(loop), carries)
    assert isinstance(found, ir.Loop)
    return found
