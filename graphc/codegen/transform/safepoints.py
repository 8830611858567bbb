"""Safepoints: places where a long loop asks whether its call must end.

In: the statements of a kernel, whose loops are marked: those of steps say after how many iterations they have a
safepoint. Out: the same with the safepoints written out, as calls that ask (codegen/call/callback.py):

    for step in range(n):               for part in range(blocks(n, 4096)):
        ...                                 for step in range(part * 4096, minimum(n, part * 4096 + 4096)):
                                                ...
                                            if part * 4096 + 4096 < n:
                                                if gc_interrupted() != 0: return 1

The inner loop is as fast as if nobody asked, and nobody does after the last part: a loop around it asks as well. In
a loop that is left, or whose steps threads may share, the question is asked in a branch of each step:

    if step % 4096 == 4095:
        if gc_interrupted() != 0: return 1

Loops without steps go over what lies in memory, for the most part, and do not ask. Those of three sizes may take far
longer than that, as the rows of a Jacobian that are computed at once: these ask as well (`request_safepoints`), where
nothing was written yet that is to be as it was before the call.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

from graphc.codegen.call.callback import INTERRUPTED, LONG_NEST, POLLED, STOPPED
from graphc.loopir import ir, operators, visit
from graphc.startup.record import replace

Fresh = Callable[[str], str]

QUESTION = ir.Invoke(INTERRUPTED, (), 1)
"""The call that asks. Its status says enough: there is an exception."""


def poll_together(body: Sequence[ir.Stmt], flag: ir.Expr) -> tuple[ir.Stmt, ...]:
    """Statements of several threads, of which none goes on once one has found that the call must end."""

    def asked(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Invoke) and stmt.function == INTERRUPTED:
            return ir.Invoke(STOPPED, (flag,), stmt.code)
        return visit.map_bodies(stmt, lambda inner: poll_together(inner, flag))

    return tuple(map(asked, body))


GUESS = ir.integer(1000)
"""The trip count that is taken for a loop where it is known in the midst of a nest only."""


def request_safepoints(body: Sequence[ir.Stmt], kept: Container[str]) -> tuple[ir.Stmt, ...]:
    """Statements whose long nests ask, up to the first that writes to one of the buffers that are `kept` as they were
    where a call is left."""
    result: list[ir.Stmt] = []
    for place, stmt in enumerate(body):
        if any(buffer.name in kept for buffer in visit.stored_buffers([stmt])):
            return (*result, *body[place:])
        result.append(_asking(stmt))
    return tuple(result)


def _asking(stmt: ir.Stmt) -> ir.Stmt:
    if isinstance(stmt, ir.If):
        return visit.map_bodies(stmt, lambda inner: tuple(map(_asking, inner)))
    if not isinstance(stmt, ir.Loop) or any(
        isinstance(each, ir.Loop) and each.safepoint for each in visit.statements([stmt])
    ):
        return stmt
    path = _longest(stmt)
    count = sum(map(_is_open, path))
    if count > LONG_NEST:
        return visit.map_bodies(stmt, lambda inner: tuple(map(_asking, inner)))
    if count < LONG_NEST or visit.is_left(stmt):
        return stmt
    inside = visit.defined([stmt]) | {each.var for each in visit.statements([stmt]) if isinstance(each, ir.Loop)}
    work: ir.Expr = ir.ONE
    for loop in path[1:]:
        most = next((arg for arg in _bounds(loop) if ir.int_value(arg) is not None), loop.size)
        known = inside.isdisjoint(part for part in ir.subexpressions(most) if isinstance(part, ir.Var))
        work = ir.multiply(work, most if known else GUESS)
    every = ir.quotient(ir.integer(POLLED), ir.add(work, ir.ONE))  # a size may be 0
    return replace(stmt, safepoint=ir.apply(operators.MAXIMUM, every, ir.ONE))


def _longest(loop: ir.Loop) -> list[ir.Loop]:
    """The loops from one inwards that go over the most sizes."""
    inner = (_longest(stmt) for stmt in visit.statements(loop.body) if isinstance(stmt, ir.Loop))
    return [loop, *max(inner, key=lambda path: sum(map(_is_open, path)), default=[])]


def _is_open(loop: ir.Loop) -> bool:
    """True where nothing bounds the number of iterations."""
    return all(ir.int_value(bound) is None for bound in _bounds(loop))


def _bounds(loop: ir.Loop) -> tuple[ir.Expr, ...]:
    """Numbers of which a loop has no more iterations than any."""
    size = loop.size
    if isinstance(size, ir.Apply) and size.op in (operators.MINIMUM, operators.BLOCK_LENGTH):
        return size.args if size.op is operators.MINIMUM else size.args[2:]
    return (size,)


def place_safepoints(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements whose loops ask; `fresh` gives names."""
    return tuple(placed for stmt in body for placed in _placed(stmt, fresh))


def _placed(stmt: ir.Stmt, fresh: Fresh) -> Iterator[ir.Stmt]:
    stmt = visit.map_bodies(stmt, lambda inner: place_safepoints(inner, fresh))
    if not isinstance(stmt, ir.Loop) or stmt.safepoint is None:
        yield stmt
        return
    loop, every = replace(stmt, safepoint=None), stmt.safepoint
    if ir.int_value(every) == 1:
        yield replace(loop, body=(*loop.body, QUESTION))
        return
    if not isinstance(every, ir.Const | ir.Var):
        name = ir.Var(fresh("every"), ir.INDEX)
        yield ir.Let(name, every)
        every = name
    if visit.is_left(loop) or loop.conflicts is not None:
        is_last = ir.apply(operators.EQ, ir.remainder(loop.var, every), ir.subtract(every, ir.ONE))
        yield replace(loop, body=(*loop.body, ir.If(is_last, (QUESTION,))))
        return
    part = ir.Var(fresh("part"), ir.INDEX)
    begin = ir.multiply(part, every)
    end = ir.add(begin, every)
    steps = replace(loop, begin=begin, size=ir.apply(operators.MINIMUM, loop.size, end))
    yield ir.Loop(
        part,
        ir.apply(operators.BLOCKS, loop.size, every),
        (steps, ir.If(ir.apply(operators.LT, end, loop.size), (QUESTION,))),
    )
