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
from graphc.loops import ir
from graphc.loops.operators import BLOCKS, EQ, LT, MINIMUM
from graphc.loops.visit import is_left, map_bodies
from graphc.startup.record import replace

Fresh = Callable[[str], str]

QUESTION = ir.Invoke(INTERRUPTED, (), 1)
"""What the function returns tells nothing: there is an exception."""


def asked_together(body: Sequence[ir.Stmt], flag: ir.Expr) -> tuple[ir.Stmt, ...]:
    """Statements of several threads, of which none goes on once one has found that the call must end."""

    def asked(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Invoke) and stmt.function == INTERRUPTED:
            return ir.Invoke(STOPPED, (flag,), stmt.code)
        return map_bodies(stmt, lambda inner: asked_together(inner, flag))

    return tuple(map(asked, body))


def place_polls(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements whose loops ask; `fresh` gives names."""
    return tuple(placed for stmt in body for placed in _placed(stmt, fresh))


def _placed(stmt: ir.Stmt, fresh: Fresh) -> Iterator[ir.Stmt]:
    stmt = map_bodies(stmt, lambda inner: place_polls(inner, fresh))
    if not isinstance(stmt, ir.Loop) or stmt.asks is None:
        yield stmt
        return
    loop, every = replace(stmt, asks=None), stmt.asks
    if ir.int_value(every) == 1:
        yield replace(loop, body=(*loop.body, QUESTION))
        return
    if not isinstance(every, ir.Const | ir.Var):
        name = ir.Var(fresh("every"), ir.INDEX)
        yield ir.Let(name, every)
        every = name
    if is_left(loop) or loop.conflicts is not None:
        is_last = ir.apply(EQ, ir.remainder(loop.var, every), ir.subtract(every, ir.ONE))
        yield replace(loop, body=(*loop.body, ir.If(is_last, (QUESTION,))))
        return
    part = ir.Var(fresh("part"), ir.INDEX)
    begin = ir.multiply(part, every)
    end = ir.add(begin, every)
    steps = replace(loop, begin=begin, size=ir.apply(MINIMUM, loop.size, end))
    yield ir.Loop(part, ir.apply(BLOCKS, loop.size, every), (steps, ir.If(ir.apply(LT, end, loop.size), (QUESTION,))))
