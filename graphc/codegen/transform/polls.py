"""Loops of steps that ask from time to time whether their call must end.

In: the statements of a kernel, whose loops are marked: those of steps end with a `poll` of how many steps go by between
two questions. Out: the same, in which the question is asked (codegen/call/interrupt.py):

    for step in range(n):               for part in range(blocks(n, 4096)):
        ...                                 for step in range(part * 4096, minimum(n, part * 4096 + 4096)):
        if poll(4096) != 0: return 1            ...
                                            if part * 4096 + 4096 < n:
                                                if gc_interrupted() != 0: return 1

The inner loop is as fast as if nobody asked, and nobody does after the last part: a loop around it asks as well. In
a loop that is left, the question is asked in a branch of each step:

    if step % 4096 == 4095:
        if gc_interrupted() != 0: return 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.codegen.call.interrupt import INTERRUPTED, POLL
from graphc.loops.ir import (
    INDEX,
    ONE,
    Expr,
    If,
    Invoke,
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


def place_polls(body: Sequence[Stmt], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements whose loops ask; `fresh` gives names."""
    return tuple(_placed(stmt, fresh) for stmt in body)


def _placed(stmt: Stmt, fresh: Fresh) -> Stmt:
    stmt = map_bodies(stmt, lambda inner: place_polls(inner, fresh))
    match stmt:
        case Loop(_, _, (*steps, Invoke(function, (interval,), code))) if function == POLL:
            return _asking(replace(stmt, body=tuple(steps)), interval, Invoke(INTERRUPTED, (), code), fresh)
    return stmt


def _asking(loop: Loop, interval: Expr, question: Invoke, fresh: Fresh) -> Loop:
    """A loop that asks after so many steps."""
    if int_value(interval) == 1:
        return replace(loop, body=(*loop.body, question))
    if is_left(loop):
        is_last = apply(EQ, remainder(loop.var, interval), subtract(interval, ONE))
        return replace(loop, body=(*loop.body, If(is_last, (question,))))
    part = Var(fresh("part"), INDEX)
    begin = multiply(part, interval)
    end = add(begin, interval)
    steps = replace(loop, begin=begin, size=apply(MINIMUM, loop.size, end))
    return Loop(part, apply(BLOCKS, loop.size, interval), (steps, If(apply(LT, end, loop.size), (question,))))
