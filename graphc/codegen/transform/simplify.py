"""Fewer and plainer statements: what lowering writes without looking ahead is tidied here.

In: the statements of a function. Out: the same computation with loops of one iteration unrolled, reductions over one
range in one loop, values named twice named once, values used once written where they are used.

    for i in range(n):                        for i in range(n):
        total = accumulate(total, x[i])           value = x[i]
    for j in range(n):                            total = accumulate(total, value)
        squares = ... x[j] * x[j]                 squares = accumulate(squares, value * value)

Horizontal fusion, of reductions over one range, has a budget. One loop reads what several sums have in common once, and
computes it once. That ends where it needs more accumulators than the processor has registers: each is then loaded and
stored in every iteration, and LLVM, which looks for registers for many values that are alive at the same time, takes
far more than linear time. So a loop has at most MOST_ACCUMULATORS of them, and MOST_OPS operators; what goes beyond
that begins another loop. A partner is looked for among the LOOPS_BACK last loops, so that the work is linear in the
statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from graphc.loopir import ir, visit
from graphc.startup.record import record, replace

MOST_ACCUMULATORS = 16
"""The most accumulators of one loop: the vector registers of most processors."""
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
    body = tuple(visit.map_bodies(stmt, fuse_reductions) for stmt in body)
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
    written, read = map(frozenset, visit.effects([stmt]))
    barrier = isinstance(stmt, BARRIERS)
    if not isinstance(stmt, ir.Loop):
        return Seen(stmt, barrier, written, read)
    inside = [*visit.statements(stmt.body)]
    barrier = any(isinstance(inner, BARRIERS) for inner in inside)
    ops = sum(visit.op_count(expr) for inner in inside for expr in visit.expressions(inner))
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
    body = (*loop.body, *visit.with_values(other.body, {other.var: loop.var}))
    merged = replace(loop, body=body, conflicts=None, safepoint=loop.safepoint or other.safepoint)
    if any(isinstance(stmt, ir.Loop) for stmt in body):
        return look_at(replace(merged, body=fuse_reductions(body)))
    read = frozenset(loop.var if each == other.var else each for each in then.read)
    return Seen(
        merged,
        False,
        first.written | then.written,
        first.read | read,
        first.accumulators + then.accumulators,
        first.ops + then.ops,
    )


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


# Statements one by one ------------------------------------------------------------------------------------------------


Change: TypeAlias = Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]]

INLINE_OPS = 12
"""An expression of more operators than this keeps its name: a person has to read it."""


def simplify(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """The statements after all of STEPS."""
    result = tuple(body)
    for _, step in STEPS:
        result = step(result)
    return result


def unroll_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Loops of exactly one iteration become their body, where nothing in it leaves them."""
    result: list[ir.Stmt] = []
    for stmt in body:
        stmt = visit.map_bodies(stmt, unroll_once)
        if (
            isinstance(stmt, ir.Loop)
            and ir.int_value(stmt.size) == 1
            and stmt.begin == ir.ZERO
            and not visit.is_left(stmt)
        ):
            result.extend(visit.with_values(stmt.body, {stmt.var: ir.ZERO}))
        else:
            result.append(stmt)
    return tuple(result)


def name_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """A value that has a name already is not named again, unless what it was computed from has changed since. Positions
    that are literals have no names, so that later passes tell elements apart."""
    return _name_once(body, {}, visit.Readers())


def _name_once(body: Sequence[ir.Stmt], known: dict[ir.Expr, ir.Var], readers: visit.Readers) -> tuple[ir.Stmt, ...]:
    """`known` holds the names of enclosing bodies as well; those of this body are taken out again."""
    alias: dict[ir.Var, ir.Expr] = {}
    named: list[ir.Expr] = []
    result: list[ir.Stmt] = []
    for stmt in body:
        if alias:
            stmt = visit.map_expressions(stmt, lambda expr: visit.replace_vars(expr, alias))
        for value in readers.touched(visit.Changes.of(stmt)):
            known.pop(value, None)
        stmt = visit.map_bodies(stmt, lambda inner: _name_once(inner, known, readers))
        if isinstance(stmt, ir.Let):
            if stmt.value in known or ir.int_value(stmt.value) is not None:
                alias[stmt.var] = known.get(stmt.value, stmt.value)
                continue
            known[stmt.value] = stmt.var
            readers.add(stmt.value, stmt.value)
            named.append(stmt.value)
        result.append(stmt)
    for value in named:
        known.pop(value, None)
    return tuple(result)


def drop_unused(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Statements without those that name what nothing reads (dead code elimination)."""
    return _without_unused(body, set())


def _without_unused(body: Sequence[ir.Stmt], used: set[ir.Var]) -> tuple[ir.Stmt, ...]:
    """`used` are the names read after this body; those read in it are added. Nothing reads a name before its `Let`."""
    kept: list[ir.Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, ir.Let) and stmt.var not in used:
            continue
        stmt = visit.map_bodies(stmt, lambda inner: _without_unused(inner, used))
        used.update(
            part for expr in visit.expressions(stmt) for part in ir.subexpressions(expr) if isinstance(part, ir.Var)
        )
        kept.append(stmt)
    return tuple(reversed(kept))


def inline_once(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Values used once, in the same body, are written where they are used; never across a write of what they read."""
    return _inline_once(body, visit.use_counts(visit.own_expressions(visit.statements(body))))


def _inline_once(body: Sequence[ir.Stmt], counts: Mapping[ir.Var, int]) -> tuple[ir.Stmt, ...]:
    local = visit.use_counts(visit.own_expressions(body))
    pending: dict[ir.Var, tuple[int, ir.Let]] = {}
    readers = visit.Readers()
    result: list[ir.Stmt] = []
    for place, stmt in enumerate(body):
        used = (
            part for expr in visit.expressions(stmt) for part in ir.subexpressions(expr) if isinstance(part, ir.Var)
        )
        values = {var: pending.pop(var)[1].value for var in used if var in pending}
        if values:
            stmt = visit.map_own_expressions(stmt, partial(visit.replace_vars, values=values))
        inside = (var for inner in visit.bodies(stmt) for var in visit.read_vars(inner))
        due = {*inside, *readers.touched(visit.Changes.of(stmt))}
        result.extend(let for _, let in sorted(pending.pop(var) for var in due & pending.keys()))
        stmt = visit.map_bodies(stmt, lambda inner: _inline_once(inner, counts))
        once = isinstance(stmt, ir.Let) and counts[stmt.var] == local[stmt.var] == 1
        if isinstance(stmt, ir.Let) and once and visit.op_count(stmt.value) <= INLINE_OPS:
            pending[stmt.var] = place, stmt
            readers.add(stmt.var, stmt.value)
        else:
            result.append(stmt)
    result.extend(let for _, let in pending.values())
    return tuple(result)


STEPS: tuple[tuple[str, Change], ...] = (
    ("unroll_once", unroll_once),
    ("fuse_reductions", fuse_reductions),
    ("name_once", name_once),
    ("drop_unused", drop_unused),
    ("inline_once", inline_once),
)
"""The passes that simplify, in order."""
