"""Loop fusion along a row: what a row's iteration does to each element is done while it is in a register.

In: the statements of a kernel. Out: the same computation, where loops inside a loop that go over the same range, one
after the other, are one loop as far as dependences allow.

    for i in range(n):                          for i in range(n):
        for j in range(m):                          for j in range(m):
            t[j] = exp(x[i * m + j])                    t[j] = exp(x[i * m + j])
        for j in range(m):                              out[i * m + j] = t[j] * y[j]
            out[i * m + j] = t[j] * y[j]

The plan has decided which nests go over rows together; here their loops along a row meet, and those of reductions,
which are written later than that is decided.

Two loops may become one where all that the second reads of the first is made in the same iteration: they touch a buffer
that either writes at one and the same place, which moves with the loop, and the second needs no result of a reduction
of the first. What stands between them moves up before both, or stays behind both. Only elementwise loops and plain
accumulations merge: a carry would keep the other loop from being vectorised.

A loop over the whole range goes into the blocks of a sum by blocks, of which it does each in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphc.loopir import ir, visit
from graphc.startup.record import record, replace

MOST_OPS = 160
"""Operators of a loop that is made of several: compile time grows faster than the gain."""
PLACE = ir.Opaque("place", (), ir.INDEX)
"""The index into the range, in positions that are compared."""


@record()
class Pass:
    """A loop over 0 .. `length`: the statements of one iteration, at `place`, and for a loop over blocks those before
    and after each block with the names of the block's number and of the iteration in it."""

    length: ir.Expr
    iteration: tuple[ir.Stmt, ...]
    var: ir.Var
    block: ir.Var | None = None
    before: tuple[ir.Stmt, ...] = ()
    after: tuple[ir.Stmt, ...] = ()
    safepoint: ir.Expr | None = None

    @property
    def place(self) -> ir.Expr:
        return self.var if self.block is None else ir.add(ir.multiply(self.block, ir.integer(ir.BLOCK)), self.var)


def merge_rows(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Statements in whose outermost loops those along a row are merged."""
    return tuple(visit.map_bodies(stmt, _merged if isinstance(stmt, ir.Loop) else merge_rows) for stmt in body)


def _merged(body: Iterable[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """The body of a loop, or of a branch in it, with its inner loops merged."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Loop):
            last = next((place for place in reversed(range(len(result))) if isinstance(result[place], ir.Loop)), None)
            both = _merge(result[last:], stmt) if last is not None else None
            if both is not None:
                result[last:] = both
                continue
        result.append(stmt if read_pass(stmt) is not None else visit.map_bodies(stmt, _merged))
    return tuple(result)


def read_pass(loop: ir.Stmt) -> Pass | None:
    """A loop as a pass over a row; None of loops that do more than compute elements and accumulate them."""
    if not isinstance(loop, ir.Loop) or loop.begin != ir.ZERO:
        return None
    length = ir.length_of_blocks(loop.size)
    if length is None:
        rows = Pass(loop.size, loop.body, loop.var, safepoint=loop.safepoint)
    else:
        inner = [place for place, stmt in enumerate(loop.body) if isinstance(stmt, ir.Loop)]
        if len(inner) != 1:
            return None
        iterations = loop.body[inner[0]]
        assert isinstance(iterations, ir.Loop)
        if iterations.size != ir.iterations_in_block(length, loop.var):
            return None
        before, after = loop.body[: inner[0]], loop.body[inner[0] + 1 :]
        rows = Pass(length, iterations.body, iterations.var, loop.var, before, after)
    outside = (*rows.before, *rows.after)
    if not all(isinstance(stmt, ir.Let | ir.Set | ir.Note) for stmt in outside) or visit.read_buffers(outside):
        return None
    elements = all(isinstance(stmt, ir.Let | ir.Set | ir.Store | ir.Note) for stmt in rows.iteration)
    return rows if elements and adds_up(rows.iteration) else None


def adds_up(iteration: Sequence[ir.Stmt]) -> bool:
    """True where the names that an iteration sets are accumulated and not read otherwise."""
    for var in {stmt.var for stmt in iteration if isinstance(stmt, ir.Set)}:
        reads = sum(
            part == var for stmt in iteration for expr in visit.expressions(stmt) for part in ir.subexpressions(expr)
        )
        steps = [stmt.value for stmt in iteration if isinstance(stmt, ir.Set) and stmt.var == var]
        step = steps[0]
        known = isinstance(step, ir.Apply) and step.op.accumulates and step.args[0] == var
        if not known or len(steps) > 1 or reads > 1:
            return False
    return True


def _merge(first_and_between: Sequence[ir.Stmt], loop: ir.Loop) -> list[ir.Stmt] | None:
    """A loop, the statements after it, and another loop as statements with one loop; None where that cannot be."""
    first, then = read_pass(first_and_between[0]), read_pass(loop)
    if first is None or then is None or first.length != then.length or not may_merge(first, then):
        return None
    head, *between = first_and_between
    up: list[ir.Stmt] = []
    stay: list[ir.Stmt] = []
    for stmt in between:
        if isinstance(stmt, ir.Note) or (
            isinstance(stmt, ir.Let | ir.Set) and visit.independent([stmt], [head, *stay])
        ):
            up.append(stmt)
        elif isinstance(stmt, ir.Check | ir.If | ir.Break) or not visit.independent([stmt], [loop]):
            return None
        else:
            stay.append(stmt)
    return [*up, joined(first, then), *stay]


def may_merge(first: Pass, then: Pass) -> bool:
    """True where an iteration of `then` may follow the same iteration of `first`."""
    if ops_of(first.iteration) + ops_of(then.iteration) > MOST_OPS:
        return False
    bodies = [(*each.before, *each.iteration, *each.after) for each in (first, then)]
    results = [{stmt.var for stmt in body if isinstance(stmt, ir.Set)} for body in bodies]
    if results[0] & (visit.read_vars(bodies[1]) | results[1]) or results[1] & visit.read_vars(bodies[0]):
        return False
    touched = [visit.read_buffers(body) | visit.stored_buffers(body) for body in bodies]
    written = visit.stored_buffers(bodies[0]) | visit.stored_buffers(bodies[1])
    common = touched[0] & touched[1] & written
    places: dict[ir.Buffer, ir.Expr] = {}
    for buffer, place in (*accesses(first), *accesses(then)):
        if buffer in common and (visit.stride(place, PLACE, {}) != 1 or places.setdefault(buffer, place) != place):
            return False
    return True


def ops_of(iteration: Sequence[ir.Stmt]) -> int:
    return sum(visit.op_count(expr) for stmt in iteration for expr in visit.expressions(stmt))


def accesses(each: Pass) -> Iterator[tuple[ir.Buffer, ir.Expr]]:
    """The buffers that an iteration touches, each with the position in terms of PLACE."""
    values = {stmt.var: stmt.value for stmt in (*each.before, *each.iteration) if isinstance(stmt, ir.Let)}
    values = {var: value for var, value in values.items() if var.dtype == ir.INDEX}

    def position(expr: ir.Expr) -> ir.Expr:
        return ir.rebuild(resolved(expr, values), lambda part: PLACE if part == each.place else None)

    for stmt in each.iteration:
        if isinstance(stmt, ir.Store):
            yield stmt.buffer, position(stmt.index)
        for expr in visit.expressions(stmt):
            yield from (
                (part.buffer, position(part.index)) for part in ir.subexpressions(expr) if isinstance(part, ir.Load)
            )


def resolved(expr: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """An expression with names replaced by their values, and those in them."""

    def value(part: ir.Expr) -> ir.Expr | None:
        return resolved(values[part], values) if isinstance(part, ir.Var) and part in values else None

    return ir.rebuild(expr, value)


def joined(first: Pass, then: Pass) -> ir.Loop:
    """The loop of two passes."""
    if first.block is None and then.block is None:
        iteration = (*first.iteration, *visit.with_values(then.iteration, {then.var: first.var}))
        return ir.Loop(first.var, first.length, iteration, safepoint=first.safepoint or then.safepoint)
    main = first if first.block is not None else then
    assert main.block is not None
    parts = [in_blocks(each, main.block, main.var) for each in (first, then)]
    named = {
        stmt for stmt in parts[0].iteration if isinstance(stmt, ir.Let)
    }  # the place, maybe, as the second names it too
    iteration = (*parts[0].iteration, *(stmt for stmt in parts[1].iteration if stmt not in named))
    inner = ir.Loop(main.var, ir.iterations_in_block(main.length, main.block), iteration)
    before = (stmt for part in parts for stmt in part.before)
    after = (stmt for part in parts for stmt in part.after)
    safepoint = ir.safepoint_in_blocks(first.safepoint or then.safepoint, ir.BLOCK)
    return ir.Loop(main.block, ir.blocks_of(main.length), (*before, inner, *after), safepoint=safepoint)


def in_blocks(each: Pass, block: ir.Var, var: ir.Var) -> Pass:
    """A pass by blocks under these names."""
    place = ir.add(ir.multiply(block, ir.integer(ir.BLOCK)), var)
    if each.block is None:
        return replace(each, block=block, var=var, iteration=(ir.Let(each.var, place), *each.iteration))
    names = {each.block: block, each.var: var}
    parts = (tuple(visit.with_values(part, names)) for part in (each.iteration, each.before, each.after))
    return Pass(each.length, next(parts), var, block, next(parts), next(parts))
