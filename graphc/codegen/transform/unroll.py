"""Unrolling of short loops in steps, so that the states of the steps can be carried in scalars.

In: the statements of a kernel, and the variables of its loops over steps. Out: the same computation, in which a loop
over steps has no loops inside it where all of these were over a few elements, of numbers that are known; nor have the
statements around it, which begin the states.

    for step in range(n):               for step in range(n):
        for i in range(2):                  s[0] = s[0] * a[0]
            s[i] = s[i] * a[i]              s[1] = s[1] * a[1]

The stores are then read at the same literal places (registers.py), and a state of three elements is no memory that each
step waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from graphc.loopir.ir import INDEX, ZERO, Expr, If, Invoke, Let, Loop, Note, Stmt, Var, int_value, integer
from graphc.loopir.visit import is_left, map_bodies, map_expressions, op_count, own_expressions, replace_vars
from graphc.startup.record import replace

MOST_ITERATIONS = 16
"""The most iterations of loops inside one another: a matrix of 4 by 4."""
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
