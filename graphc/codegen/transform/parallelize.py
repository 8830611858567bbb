"""Which loops of a kernel may be shared out to threads, and how much work an iteration of each is.

In: an outermost loop that says in which buffers its iterations conflict (independence.py), and the scalars that it
carries from iteration to iteration. Out: `Shares`: the work of an iteration, and how the scalars of several parts of
the loop combine; or None where iterations depend on one another.

Iterations may conflict in a buffer of one row, of which threads have one each, and in one that they only add into, of
which each chunk of the loop then has a copy (privatize.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from graphc.codegen.threads.chunking import CHUNK_WORK
from graphc.codegen.transform.independence import accumulation, mark_nest
from graphc.codegen.transform.privatize import added_into
from graphc.loops import operators
from graphc.loops.ir import (
    INDEX,
    ZERO,
    Apply,
    Buffer,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Note,
    Set,
    Stmt,
    Store,
    Target,
    Var,
    add,
    int_value,
    integer,
    length_of_blocks,
    most_iterations_in_block,
    multiply,
    subexpressions,
)
from graphc.loops.operators import CHUNK, COLUMNS, ROUNDING, Operator
from graphc.loops.visit import expressions, in_line, is_left, statements
from graphc.startup.record import fresh, record, replace

LOAD_COST, STORE_COST = 2.0, 1.0
"""In units of an addition, as the costs of ops are."""
GUESSED_ITERATIONS = 16
"""Of an inner loop whose length differs from iteration to iteration."""

Region = tuple[tuple[str, Expr], ...]
"""How a position is built around the loop's variable, from the inside out."""


@record()
class Shares:
    """`work` of an iteration, in units of an addition; for each carried scalar the step that combines two parts'
    values, and for a sum carried in two floats its compensation; the buffers that hold a row of every iteration in
    turn, with its length: threads need one each."""

    work: Expr
    steps: Mapping[Var, Operator]
    compensations: Mapping[Var, Var]
    rows: Mapping[Buffer, Expr]
    chunk: Operator = CHUNK
    """The iterations of a chunk, of their number and the work of each."""
    sums: Mapping[Buffer, tuple[Target, Operator]] = fresh(factory=dict)
    """Buffers that iterations add into, each with the step: a chunk has copies of its own."""


def shares_of(
    loop: Loop, carried: Sequence[Var], rows: bool = False, targets: Mapping[Buffer, Target] = {}
) -> Shares | None:
    """How an outermost loop can be shared out; None where it cannot, or is too short to be worth it by its static
    size. `rows`: whether threads may have rows of their own; `targets`: buffers of which a chunk may have a copy."""
    if loop.conflicts is None:
        return None
    steps = {var: accumulation(var, loop) for var in carried}
    private = rows_of(loop) if rows else {}
    sums = added_into(loop, targets.keys() - private.keys())
    if None in steps.values() or not {*loop.conflicts} <= private.keys() | sums.keys():
        return None
    work = work_of(loop)
    total = int_value(multiply(loop.size, work))
    if only_fills(loop) or (total is not None and total < 2 * CHUNK_WORK):
        return None
    combining = {var: step for var, step in steps.items() if step is not None}
    copied = {buffer: (targets[buffer], step) for buffer, step in sums.items()}
    return Shares(work, combining, compensations_of(loop, carried), private, sums=copied)


def columns_of(loop: Loop) -> tuple[Loop, Shares] | None:
    """The inner loop of a loop over rows that keeps to its columns, as a sum over the first axis does, or steps whose
    elements know nothing of each other; and how it can be shared out: each thread goes over all rows of some columns,
    in the same order."""
    *names, inner = [stmt for stmt in loop.body if not isinstance(stmt, Note)] or (None,)
    if not isinstance(inner, Loop) or inner is not loop.body[-1] or inner.begin != ZERO or is_left(inner):
        return None
    if not all(isinstance(stmt, Let) for stmt in names):
        return None
    changing = {loop.var} | {stmt.var for stmt in names if isinstance(stmt, Let)}
    if changing & set(subexpressions(inner.size)):
        return None
    within = Loop(loop.var, loop.size, (*names, *inner.body))
    shares = shares_of(mark_nest(Loop(inner.var, inner.size, (within,))), ())
    return None if shares is None else (inner, replace(shares, chunk=COLUMNS))


def only_fills(loop: Loop) -> bool:
    """Whether a loop writes the same number everywhere, which one thread does as fast."""
    return all(isinstance(stmt.value, Const) for stmt in statements(loop.body) if isinstance(stmt, Store | Set))


def compensations_of(loop: Loop, carried: Sequence[Var]) -> dict[Var, Var]:
    """For each sum that is carried in two floats the compensation: what additions have rounded away."""
    return {
        sum: stmt.var
        for stmt in statements(loop.body)
        if isinstance(stmt, Set) and stmt.var in carried
        for part in subexpressions(stmt.value)
        if isinstance(part, Apply) and part.op is ROUNDING
        for sum in part.args[:1]
        if isinstance(sum, Var) and sum in carried
    }


def rows_of(loop: Loop) -> dict[Buffer, Expr]:
    """The buffers of one row that a loop writes, with their lengths, where it names these."""
    stored = dict.fromkeys(stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Store))
    named = {part for stmt in statements(loop.body) for expr in expressions(stmt) for part in subexpressions(expr)}
    return {b: b.row for b in stored if b.row is not None and (isinstance(b.row, Const) or b.row in named)}


# Work ---------------------------------------------------------------------------------------------------------------


def work_of(loop: Loop) -> Expr:
    """The work of one iteration, a sum over the loops inside it, and over both branches."""
    changing = {stmt.var for stmt in statements([loop]) if isinstance(stmt, Let | Set | Loop)}

    def known(size: Expr) -> bool:
        return not any(isinstance(part, Load) or part in changing for part in subexpressions(size))

    def in_one_loop(body: Sequence[Stmt]) -> Iterator[Stmt]:
        """The statements, those of a loop over blocks, or over parts of its steps (polls.py), as if its inner loop ran
        over the whole axis."""
        for stmt in in_line(body):
            length = whole_length(stmt) if isinstance(stmt, Loop) else None
            if not isinstance(stmt, Loop) or length is None or not known(length):
                yield stmt
                continue
            for inner in in_line(stmt.body):
                yield replace(inner, size=length) if isinstance(inner, Loop) else inner

    def total(body: Sequence[Stmt]) -> Expr:
        body = tuple(in_one_loop(body))
        own = sum(cost(expr) for stmt in body for expr in expressions(stmt))
        own += STORE_COST * sum(isinstance(stmt, Store) for stmt in body)
        iterations: dict[Expr, Expr] = {}
        for stmt in body:
            if isinstance(stmt, Loop):
                guess = integer(most_iterations_in_block(stmt.size) or GUESSED_ITERATIONS)
                size = stmt.size if known(stmt.size) else guess
                iterations[size] = plus(iterations.get(size, ZERO), total(stmt.body))
        result: Expr = integer(round(own) if iterations else max(round(own), 1))
        for size, work in iterations.items():
            result = plus(result, multiply(work, size))
        return result

    return total(loop.body)


def whole_length(loop: Loop) -> Expr | None:
    """The length of the axis of which a loop takes blocks, or parts one after the other; None of any other loop."""
    if any(isinstance(stmt, Loop) and stmt.begin != ZERO for stmt in loop.body):
        return loop.size.args[0] if isinstance(loop.size, Apply) and loop.size.op is operators.BLOCKS else None
    return length_of_blocks(loop.size)


def plus(left: Expr, right: Expr) -> Expr:
    """left + right, literals first and folded."""
    match left:
        case Apply(operators.ADD, (first, rest)) if int_value(first) is not None and int_value(right) is not None:
            return add(add(first, right), rest)
        case _ if int_value(right) is not None:
            return add(right, left)
    match right:
        case Apply(operators.ADD, (first, rest)) if int_value(left) is not None and int_value(first) is not None:
            return add(add(left, first), rest)
    return add(left, right)


def cost(expr: Expr) -> float:
    """What an expression costs; the arithmetic of positions is free."""
    result = 0.0
    for part in subexpressions(expr):
        if isinstance(part, Load):
            result += LOAD_COST
        elif isinstance(part, Apply):
            of_positions = part.dtype == INDEX or (part.dtype == "bool" and part.args[0].dtype == INDEX)
            result += 0.0 if of_positions else part.op.cost
    return result


def describe_work(count: Expr, shares: Shares, text_of: Callable[[Expr], str]) -> str:
    """From how many iterations on there are chunks to share out, for the reader of a plan."""
    work = int_value(shares.work)
    copied = f"; each chunk adds into its own {', '.join(buffer.name for buffer in shares.sums)}" if shares.sums else ""
    if work is None:
        return f"{text_of(count)} iterations of work {text_of(shares.work)}{copied}"
    return (
        f"{text_of(count)} iterations of work {work}, in chunks from {-(-2 * CHUNK_WORK // work)} iterations on{copied}"
    )
