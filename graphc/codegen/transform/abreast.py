"""Short rows, several at a time: a second loop beside the one that goes along each row.

In: the statements of a function, as outlined. Out: where a loop over rows reduces each row, the same loop once more,
for rows that turn out short when the function is called:

    for i in independent(n):              if (k <= 24) & (n >= 8):
        best = inf                            for i in abreast(n):
        for r in independent(k):                  best = inf
            best = minimum(best, x[...])          for r in range(k):
        out[i] = best                                 best = minimum(best, x[...])
                                                  out[i] = best
                                          else:
                                              for i in independent(n):
                                                  ...

The vectoriser carries out eight iterations of an `abreast` loop at a time, one in each lane, down to the loops inside
(vectorize/abreast.py). The last eight may begin before the eight before have ended, so an iteration may be carried out
twice: it writes the same again, for it reads nothing that the loop writes.

A row of a few elements needs no blocks: it is one block of a sum. An extreme is searched for in blocks of one
element, so each element is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from graphc.codegen.call.callback import KINDS
from graphc.codegen.transform.simplify import simplify
from graphc.loopir.ir import (
    BLOCK,
    LANES,
    ONE,
    SHORT_DEAR,
    SHORT_READ,
    ZERO,
    Apply,
    Buffer,
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
    apply,
    has_columns,
    int_value,
    integer,
    length_of_blocks,
    subexpressions,
    subtract,
)
from graphc.loopir.operators import ACCUMULATE_MINIMUM, AND, BLOCK_LENGTH, CALLS, FLOORDIV, GE, LE, MOD, MUL, SELECT
from graphc.loopir.visit import (
    all_expressions,
    defined,
    map_bodies,
    map_expressions,
    op_count,
    own_expressions,
    read_buffers,
    statements,
    stored_buffers,
    stride,
    with_values,
)
from graphc.startup.record import replace

MOST_OPS = 150
"""The most operators of an iteration that is written a second time."""
DEAR = 10.0
"""The cost of an operator from which on it takes longer than to read its operand."""
NOT_OF_VECTORS = {FLOORDIV, MOD} | {
    CALLS[name] for name in "floordiv mod fmod ipow gcd lcm nextafter philox philox_low philox_high".split()
}
"""Operators whose instructions have no form for vectors, or none that gains."""


def short_rows_abreast(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Statements in which each loop that reduces rows has a second form for short ones, unless they are long."""
    result: list[Stmt] = []
    for stmt in body:
        inside = map_bodies(stmt, short_rows_abreast)
        found = second_form(stmt) if isinstance(stmt, Loop) and inside == stmt else None
        result.append(inside if found is None else If(found[0], (found[1],), (stmt,)))
    return tuple(result)


def second_form(loop: Loop) -> tuple[Expr, Loop] | None:
    """The loop for short rows, and the condition of it; None for loops that gain nothing, or may not have it."""
    conflicts = loop.conflicts
    if conflicts is None or loop.safepoint is not None or any(buffer.row is None for buffer in conflicts):
        return None
    # With short rows it is no long nest, which would have to ask whether the call must end.
    loop = replace(loop, body=tuple(stmt for stmt in loop.body if not asks(stmt)))
    if not all(isinstance(stmt, Let | Set | Store | Note | Loop) for stmt in statements(loop.body)):
        return None
    if not any(isinstance(stmt, Set) for inner in inner_loops(loop.body) for stmt in inner.body):
        return None
    if sum(map(op_count, own_expressions(statements(loop.body)))) > MOST_OPS or carries(loop.body):
        return None
    if any(isinstance(part, Apply) and part.op in NOT_OF_VECTORS for part in all_expressions(loop.body)):
        return None
    body = without_blocks(loop.body)
    if body is None:
        return None
    blocks = {length_of_blocks(inner.size) for inner in inner_loops(loop.body)} - {None}
    numbers = {stmt.var: stmt.value for stmt in statements(body) if isinstance(stmt, Let) and stmt.value == ZERO}
    body = tuple(map(in_turn, simplify(tuple(with_values(body, numbers)))))
    sizes = dict.fromkeys(inner.size for inner in inner_loops(body))
    rows = [each.row for each in conflicts if each.row is not None]
    is_open = any((number := int_value(size)) is None or not has_columns(number) for size in sizes)
    changing = {loop.var, *defined(body), *(inner.var for inner in inner_loops(body))}
    if not is_open or not all(map(is_fixed(changing), (*sizes, *rows))):
        return None
    if not (read_buffers(body) & stored_buffers(body)) <= {*conflicts}:
        return None
    if not all(fills(body, buffer) for buffer in conflicts):
        return None
    most = SHORT_DEAR if is_dear(loop.body) and not rows else SHORT_READ
    limits = [size for size in dict.fromkeys((*sizes, *rows)) if (int_value(size) or most + 1) > most]
    if any(int_value(size) is not None for size in limits):
        return None
    tests = [apply(LE, size, integer(most)) for size in limits]
    tests += [apply(GE, size, ONE) for size in limits if size in blocks]
    condition: Expr = apply(GE, subtract(loop.size, loop.begin), integer(LANES))
    for test in reversed(tests):
        condition = apply(AND, test, condition)
    return condition, replace(loop, body=body, abreast=True)


def asks(stmt: Stmt) -> bool:
    """True for the question whether the call must end."""
    if isinstance(stmt, If):
        return not stmt.orelse and all(map(asks, stmt.then))
    return isinstance(stmt, Invoke) and stmt.function in KINDS


def fills(body: Sequence[Stmt], buffer: Buffer) -> bool:
    """True where an iteration writes all of a row before it reads any of it."""
    first = next((stmt for stmt in body if buffer in read_buffers([stmt]) | stored_buffers([stmt])), None)
    if not isinstance(first, Loop) or first.size != buffer.row or first.begin != ZERO:
        return False
    values = {stmt.var: stmt.value for stmt in first.body if isinstance(stmt, Let)}
    for stmt in first.body:
        if buffer in read_buffers([stmt]):
            return False
        if isinstance(stmt, Store) and stmt.buffer == buffer:
            return stride(stmt.index, first.var, values) == 1
    return False


def is_dear(body: Sequence[Stmt]) -> bool:
    """True where a row is searched for an extreme, or a function is computed of each element."""
    inside = [stmt for inner in inner_loops(body) for stmt in inner.body]
    searched = {stmt.var for stmt in inside if isinstance(stmt, Set)}
    if any(block_of(inner.size) in searched for inner in inner_loops(body)):
        return True
    return any(isinstance(part, Apply) and part.op.cost >= DEAR for part in all_expressions(inside))


def is_fixed(changing: set[Var]) -> Callable[[Expr], bool]:
    """Return a function that is true for a size that is the same in all iterations."""
    return lambda size: not any(isinstance(part, Load) or part in changing for part in subexpressions(size))


def inner_loops(body: Sequence[Stmt]) -> Iterator[Loop]:
    """The loops among statements, and those inside them."""
    return (stmt for stmt in statements(body) if isinstance(stmt, Loop))


def carries(body: Sequence[Stmt]) -> bool:
    """True where a scalar goes on from one iteration to the next."""
    begun: set[Var] = set()
    for stmt in statements(body):
        if isinstance(stmt, Set):
            if stmt.var in subexpressions(stmt.value) and stmt.var not in begun:
                return True
            begun.add(stmt.var)
    return False


def in_turn(stmt: Stmt) -> Stmt:
    """A statement whose loops say nothing of their iterations: they are not to be vectorised by themselves."""
    inside = map_bodies(stmt, lambda body: tuple(map(in_turn, body)))
    return replace(inside, conflicts=None) if isinstance(inside, Loop) else inside


# --- rows without blocks ----------------------------------------------------------------------------------------------


def without_blocks(body: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
    """The statements for rows of 1 to BLOCK elements; None where blocks are searched for anything else."""
    loop_vars = {inner.var for inner in inner_loops(body)}
    searched = {
        found: inner
        for inner in inner_loops(body)
        if (found := block_of(inner.size)) is not None and found not in loop_vars
    }
    firsts: set[Var] = set()
    for stmt in (stmt for inner in searched.values() for stmt in inner.body):
        if isinstance(stmt, Set) and isinstance(stmt.value, Apply) and stmt.value.op is ACCUMULATE_MINIMUM:
            firsts.add(stmt.var)
        elif not isinstance(stmt, Let):
            return None
    blocks = {inner.var for inner in inner_loops(body) if chooses(inner, searched)}
    if not all(is_of_blocks(expr, {*searched, *blocks}) for expr in own_expressions(statements(body))):
        return None
    changed = [_without_blocks(stmt, searched, firsts) for stmt in body]
    return tuple(stmt for stmts in changed for stmt in stmts)


def chooses(loop: Loop, searched: Container[Var]) -> bool:
    """True for the loop over blocks that finds those to be searched."""
    return any(isinstance(stmt, Set) and stmt.var in searched for stmt in loop.body)


def is_of_blocks(expr: Expr, blocks: set[Var]) -> bool:
    """True where the numbers of blocks stand for nothing else: their first elements, their lengths, or one of them that
    is chosen."""
    if isinstance(expr, Apply):
        is_first = expr.op is MUL and int_value(expr.args[1]) == BLOCK
        known = blocks if is_first or expr.op is BLOCK_LENGTH or expr.op is SELECT else ()
        return all(arg in known or is_of_blocks(arg, blocks) for arg in expr.args)
    if isinstance(expr, Load):
        return is_of_blocks(expr.index, blocks)
    return expr not in blocks


def block_of(size: Expr) -> Var | None:
    """The name of the block of which `size` is the number of elements."""
    if isinstance(size, Apply) and size.op is BLOCK_LENGTH and int_value(size.args[2]) == BLOCK:
        return size.args[1] if isinstance(size.args[1], Var) else None
    return None


def _without_blocks(stmt: Stmt, searched: Mapping[Var, Loop], firsts: set[Var]) -> Iterator[Stmt]:
    if isinstance(stmt, Loop) and block_of(stmt.size) in searched:
        return
    if isinstance(stmt, Set) and stmt.var in firsts:
        yield Set(stmt.var, ZERO)
        return
    length = length_of_blocks(stmt.size) if isinstance(stmt, Loop) else None
    if isinstance(stmt, Loop) and length is not None and stmt.begin == ZERO:
        if chooses(stmt, searched):
            own = {stmt.var}
            body = [map_expressions(inner, lambda expr: of_one_element(expr, own)) for inner in stmt.body]
            yield replace(stmt, size=length, body=tuple(body))
        else:
            inside = with_values(stmt.body, {stmt.var: ZERO})
            yield from (map_expressions(inner, whole_block) for inner in inside)
        return
    stmt = map_bodies(stmt, lambda body: tuple(one for each in body for one in _without_blocks(each, searched, firsts)))
    yield map_expressions(stmt, lambda expr: of_one_element(expr, {*searched}))


def whole_block(expr: Expr) -> Expr:
    """An expression in which the first block is the whole row."""
    if isinstance(expr, Apply) and expr.op is BLOCK_LENGTH and expr.args[1] == ZERO:
        return expr.args[0]
    return expr


def of_one_element(expr: Expr, blocks: set[Var]) -> Expr:
    """An expression in which these blocks have one element."""
    if isinstance(expr, Apply):
        if expr.op is BLOCK_LENGTH and expr.args[1] in blocks:
            return ONE
        if expr.op is MUL and expr.args[0] in blocks and int_value(expr.args[1]) == BLOCK:
            return expr.args[0]
        return replace(expr, args=tuple(of_one_element(arg, blocks) for arg in expr.args))
    if isinstance(expr, Load):
        return replace(expr, index=of_one_element(expr.index, blocks))
    return expr
