"""Unrolling of short loops in steps, so that states can be carried in scalars; unroll and jam of loops that scatter.

In: the statements of a kernel, and the variables of its loops over steps. Out: the same computation, in which a loop
over steps has no loops inside it where all of these were over a few elements, of numbers that are known; nor have the
statements around it, which begin the states.

    for step in range(n):               for step in range(n):
        for i in range(2):                  s[0] = s[0] * a[0]
            s[i] = s[i] * a[i]              s[1] = s[1] * a[1]

The stores are then read at the same literal places (registers.py), and a state of three elements is no memory that each
step waits for.

`unroll_and_jam` carries out a few rows at a time of a loop that adds elements where an index says: see there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from graphc.loopir.ir import (
    INDEX,
    SHORT,
    ZERO,
    Expr,
    If,
    Invoke,
    Let,
    Load,
    Loop,
    Note,
    Set,
    Stmt,
    Store,
    Var,
    add,
    has_columns,
    int_value,
    integer,
    multiply,
    quotient,
    subexpressions,
    subtract,
)
from graphc.loopir.visit import (
    expressions,
    is_left,
    map_bodies,
    map_expressions,
    op_count,
    own_expressions,
    replace_vars,
    statements,
)
from graphc.startup.record import replace

MOST_ITERATIONS = 16
"""The most iterations of loops inside one another: a matrix of 4 by 4."""
VECTOR = 8
"""Elements of a row that fill a vector."""
MOST_OPS = 1000
"""The most operators of a step that is written out."""

Fresh = Callable[[str], str]


def unroll_steps(body: Sequence[Stmt], steps: Collection[Var], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements in which steps over a few elements are written out; `fresh` gives names."""
    few = [stmt for stmt in body if isinstance(stmt, Loop) and stmt.var in steps and is_short(stmt)]
    result: list[Stmt] = []
    for stmt in body:
        if stmt in few and isinstance(stmt, Loop):
            result.append(replace(stmt, body=tuple(written_out(stmt.body, fresh))))
        elif few and isinstance(stmt, Loop) and stmt.var not in steps and size_of([stmt]):
            result += written_out([stmt], fresh)
        else:
            result.append(map_bodies(stmt, lambda inner: unroll_steps(inner, steps, fresh)))
    return tuple(result)


def unroll_rows(body: Sequence[Stmt], steps: Collection[Var], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements in which loops over rows of a few elements have no loops inside: so they run over vectors of rows."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.var not in steps and is_short(stmt) and is_of_rows(stmt):
            result.append(replace(stmt, body=tuple(written_out(stmt.body, fresh))))
        else:
            result.append(map_bodies(stmt, lambda inner: unroll_rows(inner, steps, fresh)))
    return tuple(result)


def is_of_rows(loop: Loop) -> bool:
    """True where a row is not all elements of its own: more is computed for it as a whole than a vector of it saves."""
    longest = max(int_value(stmt.size) or 0 for stmt in loop.body if isinstance(stmt, Loop))
    if not has_columns(min(longest, SHORT)):
        return False
    values = [stmt.value for stmt in loop.body if isinstance(stmt, Let) and stmt.var.dtype != INDEX]
    fills = longest >= VECTOR and not longest % VECTOR
    return sum(map(op_count, values)) > (longest if fills else 0)


def is_short(loop: Loop) -> bool:
    """True where a step has loops, all over a few elements."""
    return any(isinstance(stmt, Loop) for stmt in loop.body) and 0 < size_of(loop.body) <= MOST_OPS


def size_of(body: Sequence[Stmt], around: int = 1) -> int:
    """The operators of statements once they are written out; 0 where they cannot be."""
    total = 1
    for stmt in body:
        if isinstance(stmt, If | Invoke):
            return 0
        total += around * sum(map(op_count, own_expressions([stmt])))
        if isinstance(stmt, Loop):
            count = int_value(stmt.size)
            if count is None or stmt.begin != ZERO or is_left(stmt) or not 0 < count * around <= MOST_ITERATIONS:
                return 0
            inside = size_of(stmt.body, count * around)
            if not inside:
                return 0
            total += inside
    return total


def written_out(body: Sequence[Stmt], fresh: Fresh) -> list[Stmt]:
    """Statements without loops."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        inside = written_out(stmt.body, fresh)
        for number in range(int_value(stmt.size) or 0):
            result += iteration(inside, {stmt.var: integer(number)}, fresh, number == 0)
    return result


def iteration(body: Sequence[Stmt], known: Mapping[Var, Expr], fresh: Fresh, with_notes: bool) -> Iterator[Stmt]:
    """One iteration, with names of its own; positions that are known are literals. Remarks are for the first."""
    values = dict(known)
    for stmt in body:
        stmt = map_expressions(stmt, lambda expr: replace_vars(expr, values))
        if isinstance(stmt, Let):
            if int_value(stmt.value) is not None and stmt.var.dtype == INDEX:
                values[stmt.var] = stmt.value
                continue
            name = Var(fresh(stmt.var.name), stmt.var.dtype)
            values[stmt.var] = name
            stmt = Let(name, stmt.value)
        if with_notes or not isinstance(stmt, Note):
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


def unroll_and_jam(body: Sequence[Stmt], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements whose loops scatter into a few rows at a time; `fresh` gives names."""
    return tuple(jammed for stmt in body for jammed in _jammed(stmt, fresh))


def _jammed(stmt: Stmt, fresh: Fresh) -> Iterator[Stmt]:
    if not isinstance(stmt, Loop) or not may_jam(stmt):
        yield map_bodies(stmt, lambda inner: unroll_and_jam(inner, fresh))
        return
    group, count = Var(fresh("group"), INDEX), Var(fresh("groups"), INDEX)
    yield Let(count, quotient(subtract(stmt.size, stmt.begin), integer(ROWS)))
    first = add(stmt.begin, multiply(group, integer(ROWS)))
    yield Loop(group, count, tuple(_together(stmt, first, fresh)), conflicts=())
    yield replace(stmt, begin=add(stmt.begin, multiply(count, integer(ROWS))))


def may_jam(loop: Loop) -> bool:
    """True where a loop over independent rows scatters into them, by the same iterations in each row."""
    if not loop.is_independent or loop.safepoint is not None:
        return False
    if not all(isinstance(stmt, Let | Note | Loop) for stmt in loop.body):
        return False
    if any(isinstance(stmt, Set) for stmt in statements(loop.body)):
        return False
    own = {loop.var, *(stmt.var for stmt in loop.body if isinstance(stmt, Let))}
    inner = [stmt for stmt in loop.body if isinstance(stmt, Loop)]
    shared = all(own.isdisjoint(part for expr in expressions(stmt) for part in subexpressions(expr)) for stmt in inner)
    return shared and any(map(scatters, inner))


def scatters(loop: Loop) -> bool:
    """True where each iteration adds to the one element of a buffer that an index in memory says."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    if loop.is_independent or len(stores) != 1 or not all(isinstance(stmt, Let | Store) for stmt in loop.body):
        return False
    (store,) = stores
    if Load(store.buffer, store.index) not in subexpressions(store.value):
        return False
    values = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, Let)}
    return _is_read(store.index, values) and sum(map(op_count, own_expressions(loop.body))) <= MOST_JAMMED_OPS


def _is_read(index: Expr, values: dict[Var, Expr]) -> bool:
    """True where a position follows from what is in memory."""
    parts = tuple(subexpressions(index))
    return any(isinstance(part, Load) for part in parts) or any(
        _is_read(values[part], values) for part in parts if isinstance(part, Var) and part in values
    )


def _together(loop: Loop, first: Expr, fresh: Fresh) -> Iterator[Stmt]:
    """The statements of some rows, from `first` on: those that scatter in one loop."""
    begin = Var(fresh(loop.var.name), INDEX)
    yield Let(begin, first)
    rows: list[dict[Var, Expr]] = [{loop.var: add(begin, integer(row))} for row in range(ROWS)]
    for stmt in loop.body:
        if isinstance(stmt, Loop) and scatters(stmt):
            yield replace(stmt, body=tuple(_side_by_side(stmt.body, [dict(known) for known in rows], fresh)))
        elif isinstance(stmt, Note):
            yield stmt
        else:
            for known in rows:
                yield _one(stmt, known, fresh)


def _one(stmt: Stmt, known: dict[Var, Expr], fresh: Fresh) -> Stmt:
    """A statement of one row. `known`: what stands for names, which is told of the name of a value."""
    stmt = map_expressions(stmt, lambda expr: replace_vars(expr, known))
    if isinstance(stmt, Let):
        known[stmt.var] = name = Var(fresh(stmt.var.name), stmt.var.dtype)
        stmt = replace(stmt, var=name)
    return stmt


def _side_by_side(body: Sequence[Stmt], rows: Sequence[dict[Var, Expr]], fresh: Fresh) -> Iterator[Stmt]:
    """The statements of an iteration, each for all rows; what is the same for all has one name."""
    for stmt in body:
        made: dict[Expr, Var] = {}
        for known in rows:
            each = _one(stmt, known, fresh)
            if isinstance(each, Let) and isinstance(stmt, Let):
                if each.value in made:
                    known[stmt.var] = made[each.value]
                    continue
                made[each.value] = each.var
            yield each
