"""Loops of steps that ask from time to time whether their call must end.

In: the statements of a kernel, whose loops are marked: those of steps say after how many steps they ask. Out: the same,
in which the question is asked (codegen/call/interrupt.py):

    for step in range(n):               for part in range(blocks(n, 4096)):
        ...                                 for step in range(part * 4096, minimum(n, part * 4096 + 4096)):
                                                ...
                                            if part * 4096 + 4096 < n:
                                                if gc_interrupted() != 0: return 1

The inner loop is as fast as if nobody asked, and nobody does after the last part: a loop around it asks as well. In
a loop that is left, or whose steps threads may share, the question is asked in a branch of each step:

    if step % 4096 == 4095:
        if gc_interrupted() != 0: return 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graphc.codegen.call.interrupt import INTERRUPTED, STOPPED
from graphc.loops.ir import (
    INDEX,
    ONE,
    Const,
    Expr,
    If,
    Invoke,
    Let,
    Loop,
    Stmt,
    Var,
    add,
    apply,
    int_value,
    multiply,
    remainder,
    subtract,
)
from graphc.loops.operators import BLOCKS, EQ, LT, MINIMUM
from graphc.loops.visit import is_left, map_bodies
from graphc.startup.record import replace

Fresh = Callable[[str], str]

QUESTION = Invoke(INTERRUPTED, (), 1)
"""What the function returns tells nothing: there is an exception."""


def asked_together(body: Sequence[Stmt], flag: Expr) -> tuple[Stmt, ...]:
    """Statements of several threads, of which none goes on once one has found that the call must end."""

    def asked(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Invoke) and stmt.function == INTERRUPTED:
            return Invoke(STOPPED, (flag,), stmt.code)
        return map_bodies(stmt, lambda inner: asked_together(inner, flag))

    return tuple(map(asked, body))


def place_polls(body: Sequence[Stmt], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements whose loops ask; `fresh` gives names."""
    return tuple(placed for stmt in body for placed in _placed(stmt, fresh))


def _placed(stmt: Stmt, fresh: Fresh) -> Iterator[Stmt]:
    stmt = map_bodies(stmt, lambda inner: place_polls(inner, fresh))
    if not isinstance(stmt, Loop) or stmt.asks is None:
        yield stmt
        return
    loop, every = replace(stmt, asks=None), stmt.asks
    if int_value(every) == 1:
        yield replace(loop, body=(*loop.body, QUESTION))
        return
    if not isinstance(every, Const | Var):
        name = Var(fresh("every"), INDEX)
        yield Let(name, every)
        every = name
    if is_left(loop) or loop.conflicts is not None:
        is_last = apply(EQ, remainder(loop.var, every), subtract(every, ONE))
        yield replace(loop, body=(*loop.body, If(is_last, (QUESTION,))))
        return
    part = Var(fresh("part"), INDEX)
    begin = multiply(part, every)
    end = add(begin, every)
    steps = replace(loop, begin=begin, size=apply(MINIMUM, loop.size, end))
    yield Loop(part, apply(BLOCKS, loop.size, every), (steps, If(apply(LT, end, loop.size), (QUESTION,))))
