"""Loops along one row that become one loop: what a row's iteration does to each element is done while it is in a
register.

In: the statements of a kernel. Out: the same computation, where loops inside a loop that go over the same range, one
after the other, are one loop as far as dependences allow (loop fusion). `Sharing` has decided which nests go over rows
together; here their loops along a row meet, and those of reductions, which are written later than that is decided.

Two loops may become one where all that the second reads of the first is made in the same iteration: they touch a buffer
that either writes at one and the same place, which moves with the loop, and the second needs no result of a reduction
of the first. What stands between them moves up before both, or stays behind both. Only elementwise loops and plain
accumulations merge: a carry would keep the other loop from being vectorised.

A loop over the whole range goes into the blocks of another (`sum_blocks`), of which it does each in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphc.codegen.lower.tiling import stride
from graphc.loops.ir import (
    BLOCK,
    INDEX,
    ZERO,
    Apply,
    Break,
    Buffer,
    Check,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Note,
    Opaque,
    Set,
    Stmt,
    Store,
    Var,
    add,
    blocks_of,
    integer,
    iterations_in_block,
    length_of_blocks,
    multiply,
    rebuild,
    subexpressions,
)
from graphc.loops.visit import (
    expressions,
    independent,
    map_bodies,
    op_count,
    read_buffers,
    read_vars,
    stored_buffers,
    with_values,
)
from graphc.startup.record import record, replace

MOST_OPS = 160
"""Operators of a loop that is made of several: compile time grows faster than the gain."""
PLACE = Opaque("place", (), INDEX)
"""The index into the range, in positions that are compared."""


@record()
class Pass:
    """A loop over 0 .. `length`: the statements of one iteration, at `place`, and for a loop over blocks those before
    and after each block with the names of the block's number and of the iteration in it."""

    length: Expr
    iteration: tuple[Stmt, ...]
    var: Var
    block: Var | None = None
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()

    @property
    def place(self) -> Expr:
        return self.var if self.block is None else add(multiply(self.block, integer(BLOCK)), self.var)


def merge_rows(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Statements in whose outermost loops those along a row are merged."""
    return tuple(map_bodies(stmt, _merged if isinstance(stmt, Loop) else merge_rows) for stmt in body)


def _merged(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """The body of a loop, or of a branch in it, with its inner loops merged."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            last = next((place for place in reversed(range(len(result))) if isinstance(result[place], Loop)), None)
            both = _merge(result[last:], stmt) if last is not None else None
            if both is not None:
                result[last:] = both
                continue
        result.append(stmt if read_pass(stmt) is not None else map_bodies(stmt, _merged))
    return tuple(result)


def read_pass(loop: Stmt) -> Pass | None:
    """A loop as a pass over a row; None of loops that do more than compute elements and accumulate them."""
    if not isinstance(loop, Loop) or loop.begin != ZERO:
        return None
    length = length_of_blocks(loop.size)
    if length is None:
        found = Pass(loop.size, loop.body, loop.var)
    else:
        inner = [place for place, stmt in enumerate(loop.body) if isinstance(stmt, Loop)]
        if len(inner) != 1:
            return None
        iterations = loop.body[inner[0]]
        assert isinstance(iterations, Loop)
        if iterations.size != iterations_in_block(length, loop.var):
            return None
        before, after = loop.body[: inner[0]], loop.body[inner[0] + 1 :]
        found = Pass(length, iterations.body, iterations.var, loop.var, before, after)
    outside = (*found.before, *found.after)
    if not all(isinstance(stmt, Let | Set | Note) for stmt in outside) or read_buffers(outside):
        return None
    elements = all(isinstance(stmt, Let | Set | Store | Note) for stmt in found.iteration)
    return found if elements and adds_up(found.iteration) else None


def adds_up(iteration: Sequence[Stmt]) -> bool:
    """Whether the names that an iteration sets are accumulated and not read otherwise."""
    for var in {stmt.var for stmt in iteration if isinstance(stmt, Set)}:
        reads = sum(part == var for stmt in iteration for expr in expressions(stmt) for part in subexpressions(expr))
        steps = [stmt.value for stmt in iteration if isinstance(stmt, Set) and stmt.var == var]
        step = steps[0]
        known = isinstance(step, Apply) and step.op.accumulates and step.args[0] == var
        if not known or len(steps) > 1 or reads > 1:
            return False
    return True


def _merge(first_and_between: Sequence[Stmt], loop: Loop) -> list[Stmt] | None:
    """A loop, the statements after it, and another loop as statements with one loop; None where that cannot be."""
    first, then = read_pass(first_and_between[0]), read_pass(loop)
    if first is None or then is None or first.length != then.length or not may_merge(first, then):
        return None
    head, *between = first_and_between
    up: list[Stmt] = []
    stay: list[Stmt] = []
    for stmt in between:
        if isinstance(stmt, Note) or (isinstance(stmt, Let | Set) and independent([stmt], [head, *stay])):
            up.append(stmt)
        elif isinstance(stmt, Check | If | Break) or not independent([stmt], [loop]):
            return None
        else:
            stay.append(stmt)
    return [*up, joined(first, then), *stay]


def may_merge(first: Pass, then: Pass) -> bool:
    """Whether an iteration of `then` may follow the same iteration of `first`."""
    if ops_of(first.iteration) + ops_of(then.iteration) > MOST_OPS:
        return False
    bodies = [(*each.before, *each.iteration, *each.after) for each in (first, then)]
    results = [{stmt.var for stmt in body if isinstance(stmt, Set)} for body in bodies]
    if results[0] & (read_vars(bodies[1]) | results[1]) or results[1] & read_vars(bodies[0]):
        return False
    touched = [read_buffers(body) | stored_buffers(body) for body in bodies]
    written = stored_buffers(bodies[0]) | stored_buffers(bodies[1])
    common = touched[0] & touched[1] & written
    places: dict[Buffer, Expr] = {}
    for buffer, place in (*accesses(first), *accesses(then)):
        if buffer in common and (stride(place, PLACE, {}) != 1 or places.setdefault(buffer, place) != place):
            return False
    return True


def ops_of(iteration: Sequence[Stmt]) -> int:
    return sum(op_count(expr) for stmt in iteration for expr in expressions(stmt))


def accesses(each: Pass) -> Iterator[tuple[Buffer, Expr]]:
    """The buffers that an iteration touches, each with the position in terms of PLACE."""
    values = {stmt.var: stmt.value for stmt in (*each.before, *each.iteration) if isinstance(stmt, Let)}
    values = {var: value for var, value in values.items() if var.dtype == INDEX}

    def position(expr: Expr) -> Expr:
        return rebuild(resolved(expr, values), lambda part: PLACE if part == each.place else None)

    for stmt in each.iteration:
        if isinstance(stmt, Store):
            yield stmt.buffer, position(stmt.index)
        for expr in expressions(stmt):
            yield from ((part.buffer, position(part.index)) for part in subexpressions(expr) if isinstance(part, Load))


def resolved(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """An expression with names replaced by their values, and those in them."""

    def value(part: Expr) -> Expr | None:
        return resolved(values[part], values) if isinstance(part, Var) and part in values else None

    return rebuild(expr, value)


def joined(first: Pass, then: Pass) -> Loop:
    """The loop of two passes."""
    if first.block is None and then.block is None:
        return Loop(first.var, first.length, (*first.iteration, *with_values(then.iteration, {then.var: first.var})))
    main = first if first.block is not None else then
    assert main.block is not None
    parts = [in_blocks(each, main.block, main.var) for each in (first, then)]
    named = {
        stmt for stmt in parts[0].iteration if isinstance(stmt, Let)
    }  # the place, maybe, as the second names it too
    iteration = (*parts[0].iteration, *(stmt for stmt in parts[1].iteration if stmt not in named))
    inner = Loop(main.var, iterations_in_block(main.length, main.block), iteration)
    before = (stmt for part in parts for stmt in part.before)
    after = (stmt for part in parts for stmt in part.after)
    return Loop(main.block, blocks_of(main.length), (*before, inner, *after))


def in_blocks(each: Pass, block: Var, var: Var) -> Pass:
    """A pass by blocks under these names."""
    place = add(multiply(block, integer(BLOCK)), var)
    if each.block is None:
        return replace(each, block=block, var=var, iteration=(Let(each.var, place), *each.iteration))
    names = {each.block: block, each.var: var}
    parts = (tuple(with_values(part, names)) for part in (each.iteration, each.before, each.after))
    return Pass(each.length, next(parts), var, block, next(parts), next(parts))
