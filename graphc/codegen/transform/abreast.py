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

from graphc.codegen.call.callback import SAFEPOINT_CALLS
from graphc.codegen.transform.simplify import simplify
from graphc.loopir import ir, operators, visit
from graphc.startup.record import replace

MOST_OPS = 150
"""The most operators of an iteration that is written a second time."""
DEAR = 10.0
"""The cost of an operator from which on it takes longer than to read its operand."""
NOT_OF_VECTORS = {operators.FLOORDIV, operators.MOD} | {
    operators.CALLS[name] for name in "floordiv mod fmod ipow gcd lcm nextafter philox philox_low philox_high".split()
}
"""Operators whose instructions have no form for vectors, or none that gains."""
FOR_VECTORS = ir.Let | ir.Set | ir.Store | ir.Note | ir.Loop
"""Statements that have a form for vectors."""


def short_rows_abreast(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Statements in which each loop that reduces rows has a second form for short ones, unless they are long."""
    result: list[ir.Stmt] = []
    for stmt in body:
        inside = visit.map_bodies(stmt, short_rows_abreast)
        form = second_form(stmt) if isinstance(stmt, ir.Loop) and inside == stmt else None
        result.append(inside if form is None else ir.If(form[0], (form[1],), (stmt,)))
    return tuple(result)


def second_form(loop: ir.Loop) -> tuple[ir.Expr, ir.Loop] | None:
    """The loop for short rows and the condition under which it runs; None where it gains nothing or is not allowed."""
    # With short rows it is no long nest, which would have to ask whether the call must end.
    loop = replace(loop, body=tuple(stmt for stmt in loop.body if not is_safepoint(stmt)))
    if not reduces_rows(loop) or not may_run_abreast(loop):
        return None
    body = without_blocks(loop.body)
    if body is None:
        return None
    zeros = {stmt.var: ir.ZERO for stmt in visit.statements(body) if isinstance(stmt, ir.Let) and stmt.value == ir.ZERO}
    body = tuple(map(in_turn, simplify(tuple(visit.with_values(body, zeros)))))
    condition = rows_are_short(loop, body)
    if condition is None or not may_repeat(body, loop.conflicts or ()):
        return None
    return condition, replace(loop, body=body, abreast=True)


def is_safepoint(stmt: ir.Stmt) -> bool:
    """True for the question whether the call must end."""
    if isinstance(stmt, ir.If):
        return not stmt.orelse and all(map(is_safepoint, stmt.then))
    return isinstance(stmt, ir.Invoke) and stmt.function in SAFEPOINT_CALLS


def reduces_rows(loop: ir.Loop) -> bool:
    """True where iterations have loops that update scalars, such as sums, and are short enough to be written twice."""
    if not any(isinstance(stmt, ir.Set) for inner in inner_loops(loop.body) for stmt in inner.body):
        return False
    return sum(map(visit.op_count, visit.own_expressions(visit.statements(loop.body)))) <= MOST_OPS


def may_run_abreast(loop: ir.Loop) -> bool:
    """True where iterations are independent, and made of statements and operators that have a form for vectors."""
    if loop.conflicts is None or loop.safepoint is not None or any(buffer.row is None for buffer in loop.conflicts):
        return False
    if not all(isinstance(stmt, FOR_VECTORS) for stmt in visit.statements(loop.body)) or carries(loop.body):
        return False
    return not any(
        isinstance(part, ir.Apply) and part.op in NOT_OF_VECTORS for part in visit.all_expressions(loop.body)
    )


def may_repeat(body: Sequence[ir.Stmt], private: Sequence[ir.Buffer]) -> bool:
    """True where an iteration that is carried out twice writes the same again. private: buffers with a row for each
    iteration alone; it may read these after it has filled the row, and nothing else that it writes."""
    if not (visit.read_buffers(body) & visit.stored_buffers(body)) <= {*private}:
        return False
    return all(fills(body, buffer) for buffer in private)


def rows_are_short(loop: ir.Loop, body: Sequence[ir.Stmt]) -> ir.Expr | None:
    """The condition that all rows of `loop` are short and that there are iterations for all lanes; None where lengths
    are known now or change from row to row. body: the iteration without blocks."""
    inner = list(inner_loops(loop.body))
    own_rows = [buffer.row for buffer in loop.conflicts or () if buffer.row is not None]
    lengths = dict.fromkeys(each.size for each in inner_loops(body))
    changing = {loop.var, *visit.defined(body), *(each.var for each in inner_loops(body))}
    if not all(map(is_fixed(changing), (*lengths, *own_rows))):
        return None
    known = [ir.int_value(length) for length in lengths]
    if all(length is not None and ir.has_columns(length) for length in known):
        return None
    most = ir.SHORT_DEAR if is_dear(loop.body) and not own_rows else ir.SHORT_READ
    limited = [length for length in dict.fromkeys((*lengths, *own_rows)) if (ir.int_value(length) or most + 1) > most]
    if any(ir.int_value(length) is not None for length in limited):
        return None
    in_blocks = {ir.length_of_blocks(each.size) for each in inner}
    tests = [ir.apply(operators.LE, length, ir.integer(most)) for length in limited]
    tests += [ir.apply(operators.GE, length, ir.ONE) for length in limited if length in in_blocks]
    condition: ir.Expr = ir.apply(operators.GE, ir.subtract(loop.size, loop.begin), ir.integer(ir.LANES))
    for test in reversed(tests):
        condition = ir.apply(operators.AND, test, condition)
    return condition


def fills(body: Sequence[ir.Stmt], buffer: ir.Buffer) -> bool:
    """True where an iteration writes all of a row before it reads any of it."""
    first = next((stmt for stmt in body if buffer in visit.read_buffers([stmt]) | visit.stored_buffers([stmt])), None)
    if not isinstance(first, ir.Loop) or first.size != buffer.row or first.begin != ir.ZERO:
        return False
    values = {stmt.var: stmt.value for stmt in first.body if isinstance(stmt, ir.Let)}
    for stmt in first.body:
        if buffer in visit.read_buffers([stmt]):
            return False
        if isinstance(stmt, ir.Store) and stmt.buffer == buffer:
            return visit.stride(stmt.index, first.var, values) == 1
    return False


def is_dear(body: Sequence[ir.Stmt]) -> bool:
    """True where a row is searched for an extreme, or a function is computed of each element."""
    inside = [stmt for inner in inner_loops(body) for stmt in inner.body]
    searched = {stmt.var for stmt in inside if isinstance(stmt, ir.Set)}
    if any(block_of(inner.size) in searched for inner in inner_loops(body)):
        return True
    return computes_functions(inside)


def computes_functions(body: Sequence[ir.Stmt]) -> bool:
    """True where a function such as exp is computed of each element."""
    return any(isinstance(part, ir.Apply) and part.op.cost >= DEAR for part in visit.all_expressions(body))


def is_fixed(changing: set[ir.Var]) -> Callable[[ir.Expr], bool]:
    """Return a function that is true for a size that is the same in all iterations."""
    return lambda size: not any(isinstance(part, ir.Load) or part in changing for part in ir.subexpressions(size))


def inner_loops(body: Sequence[ir.Stmt]) -> Iterator[ir.Loop]:
    """The loops among statements, and those inside them."""
    return (stmt for stmt in visit.statements(body) if isinstance(stmt, ir.Loop))


def carries(body: Sequence[ir.Stmt]) -> bool:
    """True where a scalar goes on from one iteration to the next."""
    begun: set[ir.Var] = set()
    for stmt in visit.statements(body):
        if isinstance(stmt, ir.Set):
            if stmt.var in ir.subexpressions(stmt.value) and stmt.var not in begun:
                return True
            begun.add(stmt.var)
    return False


def in_turn(stmt: ir.Stmt) -> ir.Stmt:
    """A statement whose loops say nothing of their iterations: they are not to be vectorised by themselves."""
    inside = visit.map_bodies(stmt, lambda body: tuple(map(in_turn, body)))
    return replace(inside, conflicts=None) if isinstance(inside, ir.Loop) else inside


# --- rows without blocks ----------------------------------------------------------------------------------------------


def without_blocks(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...] | None:
    """The statements for rows of 1 to BLOCK elements; None where blocks are searched for anything else."""
    loop_vars = {inner.var for inner in inner_loops(body)}
    searched = {
        block: inner
        for inner in inner_loops(body)
        if (block := block_of(inner.size)) is not None and block not in loop_vars
    }
    firsts: set[ir.Var] = set()
    for stmt in (stmt for inner in searched.values() for stmt in inner.body):
        if (
            isinstance(stmt, ir.Set)
            and isinstance(stmt.value, ir.Apply)
            and stmt.value.op is operators.ACCUMULATE_MINIMUM
        ):
            firsts.add(stmt.var)
        elif not isinstance(stmt, ir.Let):
            return None
    blocks = {inner.var for inner in inner_loops(body) if chooses(inner, searched)}
    if not all(is_of_blocks(expr, {*searched, *blocks}) for expr in visit.own_expressions(visit.statements(body))):
        return None
    changed = [_without_blocks(stmt, searched, firsts) for stmt in body]
    return tuple(stmt for stmts in changed for stmt in stmts)


def chooses(loop: ir.Loop, searched: Container[ir.Var]) -> bool:
    """True for the loop over blocks that finds those to be searched."""
    return any(isinstance(stmt, ir.Set) and stmt.var in searched for stmt in loop.body)


def is_of_blocks(expr: ir.Expr, blocks: set[ir.Var]) -> bool:
    """True where the numbers of blocks stand for nothing else: their first elements, their lengths, or one of them that
    is chosen."""
    if isinstance(expr, ir.Apply):
        is_first = expr.op is operators.MUL and ir.int_value(expr.args[1]) == ir.BLOCK
        known = blocks if is_first or expr.op is operators.BLOCK_LENGTH or expr.op is operators.SELECT else ()
        return all(arg in known or is_of_blocks(arg, blocks) for arg in expr.args)
    if isinstance(expr, ir.Load):
        return is_of_blocks(expr.index, blocks)
    return expr not in blocks


def block_of(size: ir.Expr) -> ir.Var | None:
    """The name of the block of which `size` is the number of elements."""
    if isinstance(size, ir.Apply) and size.op is operators.BLOCK_LENGTH and ir.int_value(size.args[2]) == ir.BLOCK:
        return size.args[1] if isinstance(size.args[1], ir.Var) else None
    return None


def _without_blocks(stmt: ir.Stmt, searched: Mapping[ir.Var, ir.Loop], firsts: set[ir.Var]) -> Iterator[ir.Stmt]:
    if isinstance(stmt, ir.Loop) and block_of(stmt.size) in searched:
        return
    if isinstance(stmt, ir.Set) and stmt.var in firsts:
        yield ir.Set(stmt.var, ir.ZERO)
        return
    length = ir.length_of_blocks(stmt.size) if isinstance(stmt, ir.Loop) else None
    if isinstance(stmt, ir.Loop) and length is not None and stmt.begin == ir.ZERO:
        if chooses(stmt, searched):
            blocks = {stmt.var}
            body = [visit.map_expressions(inner, lambda expr: of_one_element(expr, blocks)) for inner in stmt.body]
            yield replace(stmt, size=length, body=tuple(body))
        else:
            inside = visit.with_values(stmt.body, {stmt.var: ir.ZERO})
            yield from (visit.map_expressions(inner, whole_block) for inner in inside)
        return
    stmt = visit.map_bodies(
        stmt, lambda body: tuple(one for each in body for one in _without_blocks(each, searched, firsts))
    )
    yield visit.map_expressions(stmt, lambda expr: of_one_element(expr, {*searched}))


def whole_block(expr: ir.Expr) -> ir.Expr:
    """An expression in which the first block is the whole row."""
    if isinstance(expr, ir.Apply) and expr.op is operators.BLOCK_LENGTH and expr.args[1] == ir.ZERO:
        return expr.args[0]
    return expr


def of_one_element(expr: ir.Expr, blocks: set[ir.Var]) -> ir.Expr:
    """An expression in which these blocks have one element."""
    if isinstance(expr, ir.Apply):
        if expr.op is operators.BLOCK_LENGTH and expr.args[1] in blocks:
            return ir.ONE
        if expr.op is operators.MUL and expr.args[0] in blocks and ir.int_value(expr.args[1]) == ir.BLOCK:
            return expr.args[0]
        return replace(expr, args=tuple(of_one_element(arg, blocks) for arg in expr.args))
    if isinstance(expr, ir.Load):
        return replace(expr, index=of_one_element(expr.index, blocks))
    return expr
