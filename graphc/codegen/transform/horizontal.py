"""Reductions over one range that share a loop: horizontal fusion, within a budget.

In: the statements of a function. Out: the same computation, in which loops that only accumulate, and of which none
needs another's result, are one loop as far as the budget goes.

One loop reads what several sums have in common once, and computes it once. That ends where it needs more accumulators
than the processor has registers: each is then loaded and stored in every iteration, and LLVM, which looks for registers
for many values that are alive at the same time, takes far more than linear time. So a loop has at most
MOST_ACCUMULATORS of them, and MOST_OPS operators; what goes beyond that begins another loop. One is looked for among
the LOOPS_BACK last ones, so that the work is linear in the statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from graphc.loopir import ir
from graphc.loopir.visit import effects, expressions, map_bodies, op_count, statements, with_values
from graphc.startup.record import record, replace

MOST_ACCUMULATORS = 16
"""Of one loop: the vector registers of most processors."""
MOST_OPS = 320
"""Operators of one loop, counted before what they have in common is computed once."""
LOOPS_BACK = 16
"""Loops before one that are looked at, for one that it may go into."""
STATEMENTS_BACK = 256
"""Statements before it that are looked at."""


@record()
class Seen:
    """A statement with what is asked of it again and again: whether no loop may pass it, what it writes and reads;
    of a loop how many accumulators and operators it has."""

    stmt: ir.Stmt
    is_barrier: bool
    written: frozenset[ir.Var | ir.Buffer]
    read: frozenset[ir.Var | ir.Buffer]
    accumulators: int = 0
    ops: int = 0


def fuse_reductions(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Loops of reductions over the same range, of which none needs another's result, become one loop."""
    body = tuple(map_bodies(stmt, fuse_reductions) for stmt in body)
    ranges = Counter((stmt.begin, stmt.size) for stmt in body if isinstance(stmt, ir.Loop))
    if max(ranges.values(), default=0) < 2:  # most bodies: nothing is asked of their statements
        return body
    result: list[Seen] = []
    for stmt in body:
        seen = look_at(stmt)
        if not (isinstance(seen.stmt, ir.Loop) and not seen.is_barrier and _fuse_into(result, seen)):
            result.append(seen)
    return tuple(seen.stmt for seen in result)


def look_at(stmt: ir.Stmt) -> Seen:
    """A statement with what is asked of it."""
    written, read = map(frozenset, effects([stmt]))
    barrier = isinstance(stmt, BARRIERS)
    if not isinstance(stmt, ir.Loop):
        return Seen(stmt, barrier, written, read)
    inside = [*statements(stmt.body)]
    barrier = any(isinstance(inner, BARRIERS) for inner in inside)
    ops = sum(op_count(expr) for inner in inside for expr in expressions(inner))
    return Seen(stmt, barrier, written, read, accumulators_of(stmt), ops)


BARRIERS = (ir.Store, ir.Invoke, ir.Launch, ir.Check, ir.If, ir.Break)
"""Statements that no loop may pass: they write memory, check indices, all of them before any is used, or decide what
comes next."""


def accumulators_of(loop: ir.Loop) -> int:
    """The scalars that are alive together in the innermost loops: the most that one of them sets."""
    inner = [accumulators_of(stmt) for stmt in loop.body if isinstance(stmt, ir.Loop)]
    return max(inner) if inner else len({stmt.var for stmt in loop.body if isinstance(stmt, ir.Set)})


def _fuse_into(before: list[Seen], then: Seen) -> bool:
    """Merge a loop into an earlier one of `before`, moving up what it needs. False where that cannot be."""
    loop, loops = then.stmt, 0
    assert isinstance(loop, ir.Loop)
    for place in range(len(before) - 1, max(-1, len(before) - 1 - STATEMENTS_BACK), -1):
        first = before[place]
        if isinstance(first.stmt, ir.Store):
            continue  # a scalar result on its way out, or what the loop is found to read
        if first.is_barrier:
            return False
        if not isinstance(first.stmt, ir.Loop):
            continue
        if (first.stmt.begin, first.stmt.size) == (loop.begin, loop.size) and fits(first, then):
            moved, kept = _split(first, before[place + 1 :])
            if may_pass(then, [first, *kept]):
                before[place:] = [*moved, _merged(first, then), *kept]
                return True
        loops += 1
        if loops == LOOPS_BACK:
            return False
    return False


def fits(first: Seen, then: Seen) -> bool:
    """True where two loops are within the budget together."""
    accumulators, ops = first.accumulators + then.accumulators, first.ops + then.ops
    return accumulators <= MOST_ACCUMULATORS and ops <= MOST_OPS


def may_pass(then: Seen, others: Iterable[Seen]) -> bool:
    """True where a statement may stand before others: neither writes a name or a buffer that the other touches."""
    return not any(then.written & (other.read | other.written) or then.read & other.written for other in others)


def _merged(first: Seen, then: Seen) -> Seen:
    """Two loops as one."""
    loop, other = first.stmt, then.stmt
    assert isinstance(loop, ir.Loop) and isinstance(other, ir.Loop)
    body = fuse_reductions((*loop.body, *with_values(other.body, {other.var: loop.var})))
    return look_at(replace(loop, body=body, conflicts=None, asks=loop.asks or other.asks))


def _split(first: Seen, between: Sequence[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Statements after a loop that may stand before it, and those that depend on it, or on one that stays; stores
    stay."""
    moved: list[Seen] = []
    kept: list[Seen] = []
    written, read = {*first.written}, {*first.read}
    for seen in between:
        if isinstance(seen.stmt, ir.Store) or seen.written & (written | read) or seen.read & written:
            kept.append(seen)
            written |= seen.written
            read |= seen.read
        else:
            moved.append(seen)
    return moved, kept
