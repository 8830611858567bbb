"""Unrolling of short loops in steps, and states carried in scalars; unroll and jam of loops that scatter.

In: the statements of a kernel, and the variables of its loops over steps. Out: the same computation, in which a loop
over steps has no loops inside it where all of these were over a few elements, of numbers that are known; nor have the
statements around it, which begin the states.

    for step in range(n):               for step in range(n):
        for i in range(2):                  s[0] = s[0] * a[0]
            s[i] = s[i] * a[i]              s[1] = s[1] * a[1]

The stores are then read at the same literal places, and a state of three elements is no memory that each
step waits for.

`unroll_and_jam` carries out a few rows at a time of a loop that adds elements where an index says: see there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from graphc.codegen.transform.forwarding import as_stored, without_stores
from graphc.loopir import ir, visit
from graphc.startup.record import replace

MOST_ITERATIONS = 16
"""The most iterations of loops inside one another: a matrix of 4 by 4."""
VECTOR = 8
"""Elements of a row that fill a vector."""
MOST_OPS = 1000
"""The most operators of a step that is written out."""

Fresh = Callable[[str], str]


def unroll_steps(body: Sequence[ir.Stmt], steps: Collection[ir.Var], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements in which steps over a few elements are written out; `fresh` gives names."""
    few = [stmt for stmt in body if isinstance(stmt, ir.Loop) and stmt.var in steps and is_short(stmt)]
    result: list[ir.Stmt] = []
    for stmt in body:
        if stmt in few and isinstance(stmt, ir.Loop):
            result.append(replace(stmt, body=tuple(written_out(stmt.body, fresh))))
        elif few and isinstance(stmt, ir.Loop) and stmt.var not in steps and size_of([stmt]):
            result += written_out([stmt], fresh)
        else:
            result.append(visit.map_bodies(stmt, lambda inner: unroll_steps(inner, steps, fresh)))
    return tuple(result)


def unroll_rows(body: Sequence[ir.Stmt], steps: Collection[ir.Var], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements in which loops over rows of a few elements have no loops inside: so they run over vectors of rows."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Loop) and stmt.var not in steps and is_short(stmt) and is_of_rows(stmt):
            result.append(replace(stmt, body=tuple(written_out(stmt.body, fresh))))
        else:
            result.append(visit.map_bodies(stmt, lambda inner: unroll_rows(inner, steps, fresh)))
    return tuple(result)


def is_of_rows(loop: ir.Loop) -> bool:
    """True where a row is not all elements of its own: more is computed for it as a whole than a vector of it saves."""
    longest = max(ir.int_value(stmt.size) or 0 for stmt in loop.body if isinstance(stmt, ir.Loop))
    if not ir.has_columns(min(longest, ir.SHORT)):
        return False
    values = [stmt.value for stmt in loop.body if isinstance(stmt, ir.Let) and stmt.var.dtype != ir.INDEX]
    fills = longest >= VECTOR and not longest % VECTOR
    return sum(map(visit.op_count, values)) > (longest if fills else 0)


def is_short(loop: ir.Loop) -> bool:
    """True where a step has loops, all over a few elements."""
    return any(isinstance(stmt, ir.Loop) for stmt in loop.body) and 0 < size_of(loop.body) <= MOST_OPS


def size_of(body: Sequence[ir.Stmt], around: int = 1) -> int:
    """The operators of statements once they are written out; 0 where they cannot be."""
    total = 1
    for stmt in body:
        if isinstance(stmt, ir.If | ir.Invoke):
            return 0
        total += around * sum(map(visit.op_count, visit.own_expressions([stmt])))
        if isinstance(stmt, ir.Loop):
            count = ir.int_value(stmt.size)
            if (
                count is None
                or stmt.begin != ir.ZERO
                or visit.is_left(stmt)
                or not 0 < count * around <= MOST_ITERATIONS
            ):
                return 0
            inside = size_of(stmt.body, count * around)
            if not inside:
                return 0
            total += inside
    return total


def written_out(body: Sequence[ir.Stmt], fresh: Fresh) -> list[ir.Stmt]:
    """Statements without loops."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if not isinstance(stmt, ir.Loop):
            result.append(stmt)
            continue
        inside = written_out(stmt.body, fresh)
        for number in range(ir.int_value(stmt.size) or 0):
            result += iteration(inside, {stmt.var: ir.integer(number)}, fresh, number == 0)
    return result


def iteration(
    body: Sequence[ir.Stmt], known: Mapping[ir.Var, ir.Expr], fresh: Fresh, with_notes: bool
) -> Iterator[ir.Stmt]:
    """One iteration, with names of its own; positions that are known are literals. Remarks are for the first."""
    values = dict(known)
    for stmt in body:
        stmt = visit.map_expressions(stmt, lambda expr: visit.replace_vars(expr, values))
        if isinstance(stmt, ir.Let):
            if ir.int_value(stmt.value) is not None and stmt.var.dtype == ir.INDEX:
                values[stmt.var] = stmt.value
                continue
            name = ir.Var(fresh(stmt.var.name), stmt.var.dtype)
            values[stmt.var] = name
            stmt = ir.Let(name, stmt.value)
        if with_notes or not isinstance(stmt, ir.Note):
            yield stmt


# --- unroll and jam ---------------------------------------------------------------------------------------------------
# A loop that adds each element where an index says waits for the sum that it goes on with: where the same place comes
# again soon, as that of a frequent class does, until the last sum is stored and read back. Rows that are independent
# of each other, whose places follow from the same indices, are carried out in one loop, so that the processor has as
# many such chains to work on at once:
#
#     for i in independent(n):              for group in independent(n // 4):
#         for j in range(m):                    let i = 4 * group; ...
#             out[i * k + at[j]] += x[...]      for j in range(m):
#                                                   out[i * k + at[j]] += x[...]; ... for all four
#                                           for i in independent(n // 4 * 4, n):
#                                               ...
#
# No element gets another sum. Measured on an EPYC (Zen 5): the gradient of `x[:, labels]`, 150 rows of 61 labels of 28
# classes, of which every other is the same, takes a third of the time.


ROWS = 4
MOST_JAMMED_OPS = 40
"""Operators of a scatter's iteration."""


def unroll_and_jam(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements whose loops scatter into a few rows at a time; `fresh` gives names."""
    return tuple(jammed for stmt in body for jammed in _jammed(stmt, fresh))


def _jammed(stmt: ir.Stmt, fresh: Fresh) -> Iterator[ir.Stmt]:
    if not isinstance(stmt, ir.Loop) or not may_jam(stmt):
        yield visit.map_bodies(stmt, lambda inner: unroll_and_jam(inner, fresh))
        return
    group, count = ir.Var(fresh("group"), ir.INDEX), ir.Var(fresh("groups"), ir.INDEX)
    yield ir.Let(count, ir.quotient(ir.subtract(stmt.size, stmt.begin), ir.integer(ROWS)))
    first = ir.add(stmt.begin, ir.multiply(group, ir.integer(ROWS)))
    yield ir.Loop(group, count, tuple(_together(stmt, first, fresh)), conflicts=())
    yield replace(stmt, begin=ir.add(stmt.begin, ir.multiply(count, ir.integer(ROWS))))


def may_jam(loop: ir.Loop) -> bool:
    """True where a loop over independent rows scatters into them, by the same iterations in each row."""
    if not loop.is_independent or loop.safepoint is not None:
        return False
    if not all(isinstance(stmt, ir.Let | ir.Note | ir.Loop) for stmt in loop.body):
        return False
    if any(isinstance(stmt, ir.Set) for stmt in visit.statements(loop.body)):
        return False
    varying = {loop.var, *(stmt.var for stmt in loop.body if isinstance(stmt, ir.Let))}
    inner = [stmt for stmt in loop.body if isinstance(stmt, ir.Loop)]
    shared = all(
        varying.isdisjoint(part for expr in visit.expressions(stmt) for part in ir.subexpressions(expr))
        for stmt in inner
    )
    return shared and any(map(scatters, inner))


def scatters(loop: ir.Loop) -> bool:
    """True where each iteration adds to the one element of a buffer that an index in memory says."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, ir.Store)]
    if loop.is_independent or len(stores) != 1 or not all(isinstance(stmt, ir.Let | ir.Store) for stmt in loop.body):
        return False
    (store,) = stores
    if ir.Load(store.buffer, store.index) not in ir.subexpressions(store.value):
        return False
    values = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, ir.Let)}
    return (
        _is_read(store.index, values) and sum(map(visit.op_count, visit.own_expressions(loop.body))) <= MOST_JAMMED_OPS
    )


def _is_read(index: ir.Expr, values: dict[ir.Var, ir.Expr]) -> bool:
    """True where a position follows from what is in memory."""
    parts = tuple(ir.subexpressions(index))
    return any(isinstance(part, ir.Load) for part in parts) or any(
        _is_read(values[part], values) for part in parts if isinstance(part, ir.Var) and part in values
    )


def _together(loop: ir.Loop, first: ir.Expr, fresh: Fresh) -> Iterator[ir.Stmt]:
    """The statements of some rows, from `first` on: those that scatter in one loop."""
    begin = ir.Var(fresh(loop.var.name), ir.INDEX)
    yield ir.Let(begin, first)
    rows: list[dict[ir.Var, ir.Expr]] = [{loop.var: ir.add(begin, ir.integer(row))} for row in range(ROWS)]
    for stmt in loop.body:
        if isinstance(stmt, ir.Loop) and scatters(stmt):
            yield replace(stmt, body=tuple(_side_by_side(stmt.body, [dict(known) for known in rows], fresh)))
        elif isinstance(stmt, ir.Note):
            yield stmt
        else:
            for known in rows:
                yield _one(stmt, known, fresh)


def _one(stmt: ir.Stmt, known: dict[ir.Var, ir.Expr], fresh: Fresh) -> ir.Stmt:
    """A statement of one row. `known`: what stands for names, which is told of the name of a value."""
    stmt = visit.map_expressions(stmt, lambda expr: visit.replace_vars(expr, known))
    if isinstance(stmt, ir.Let):
        known[stmt.var] = name = ir.Var(fresh(stmt.var.name), stmt.var.dtype)
        stmt = replace(stmt, var=name)
    return stmt


def _side_by_side(body: Sequence[ir.Stmt], rows: Sequence[dict[ir.Var, ir.Expr]], fresh: Fresh) -> Iterator[ir.Stmt]:
    """The statements of an iteration, each for all rows; what is the same for all has one name."""
    for stmt in body:
        names: dict[ir.Expr, ir.Var] = {}
        for known in rows:
            each = _one(stmt, known, fresh)
            if isinstance(each, ir.Let) and isinstance(stmt, ir.Let):
                if each.value in names:
                    known[stmt.var] = names[each.value]
                    continue
                names[each.value] = each.var
            yield each


# --- elements that a loop carries are carried in scalars --------------------------------------------------------------
# In: the statements of a kernel. Out: the same computation (scalar replacement), in which a buffer that a loop and all
# that is inside it touch only at places that stay the same is not touched there at all:
#
#     t[0] = 1.0                                  carry = float64(1.0)
#     for i in range(n):                          for i in range(n):
#         t[0] = t[0] * x[i]                          carry = carry * x[i]
#                                                 t[0] = carry
#
# That buffers do not overlap the compiler knows, and it does the same where every iteration stores for certain and
# nothing leaves the loop. That nothing else reads a temporary it cannot know.
#
# The element must be there, though the loop may have no iteration: so it is one that was stored before, in the same
# statements. Several places in one buffer are told apart as literals are. A buffer whose address is given away inside
# the loop is left in memory. That a loop may be left in the middle, by a check or a function that fails, is no
# hindrance: results are then discarded, and of what is updated in place less has changed than would have.
#
# Only what is carried is changed: where each iteration writes an element before it reads it, iterations are
# independent but for the memory. Buffers of a row, of which threads have one each, and those that loops add into, of
# which they have copies, are left as they are.

MOST_PLACES = 16
"""Elements of one buffer that are carried: those of a matrix of 4 by 4. More find no registers."""

UNDERSTOOD = (ir.Let, ir.Set, ir.Store, ir.Loop, ir.Check, ir.Invoke, ir.Note)
"""The kinds of statements that may stand in a loop. What another kind does to the order of things is not known here;
launches are written by later passes."""

Element: TypeAlias = "tuple[ir.Buffer, ir.Expr]"


def keep_in_registers(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Rewrite loops to carry elements in scalars, and drop stores to temporaries that nothing reads any more. `fresh`
    gives names."""
    before = tuple(body)
    changing = {stmt.var for stmt in visit.statements(before) if isinstance(stmt, ir.Set)}
    result = _kept(before, changing, fresh)
    return before if result == before else without_stores(result, visit.read_buffers(result))


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
    written = visit.stored_buffers([stmt])
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
                touched = visit.read_buffers([stmt]) | (
                    set() if isinstance(stmt, ir.Store) else visit.stored_buffers([stmt])
                )
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
    return all(isinstance(stmt, UNDERSTOOD) for stmt in visit.statements(body))


def carried_by(loop: ir.Loop, there: Mapping[ir.Buffer, Collection[ir.Expr]]) -> list[Element]:
    """The elements that a loop is to carry in scalars, of those that are `there` before it."""
    if not there or loop.conflicts is not None or not is_understood([loop]):
        return []
    touched: dict[ir.Buffer, dict[ir.Expr, None]] = {}
    escaped: set[ir.Buffer] = set()
    for stmt in visit.statements([loop]):
        if isinstance(stmt, ir.Store):
            touched.setdefault(stmt.buffer, {})[stmt.index] = None
        for expr in visit.expressions(stmt):
            for part in ir.subexpressions(expr):
                if isinstance(part, ir.Load):
                    touched.setdefault(part.buffer, {})[part.index] = None
                elif isinstance(part, ir.Pointer):
                    escaped.add(part.buffer)
    wanted = (there.keys() & visit.stored_buffers([loop]) & first_read(loop.body)) - escaped
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
    buffers: set[ir.Buffer] = set()
    for stmt in body:
        loads = (part for part in visit.all_expressions([stmt]) if isinstance(part, ir.Load))
        buffers.update(part.buffer for part in loads if (part.buffer, part.index) not in written)
        if isinstance(stmt, ir.Store):
            written.add((stmt.buffer, stmt.index))
    return buffers


def with_scalars(stmt: ir.Stmt, carries: Mapping[Element, ir.Var]) -> ir.Stmt:
    """A statement that reads some elements from scalars."""

    def scalar(part: ir.Expr) -> ir.Expr | None:
        return carries.get((part.buffer, part.index)) if isinstance(part, ir.Load) else None

    return visit.map_expressions(stmt, partial(ir.rebuild, replace=scalar))


def in_scalars(loop: ir.Loop, carries: Mapping[Element, ir.Var]) -> ir.Loop:
    """A loop in which some elements are scalars."""

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Store(buffer, index, value) if (buffer, index) in carries:
                return ir.Set(carries[buffer, index], as_stored(value))
            case ir.Loop():
                return replace(stmt, body=tuple(map(changed, stmt.body)), conflicts=None)
        return stmt

    scalar_loop = with_scalars(changed(loop), carries)
    assert isinstance(scalar_loop, ir.Loop)
    return scalar_loop
