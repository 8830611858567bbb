"""Which loops of a kernel may be shared out to threads, and how much work an iteration of each is.

In: an outermost loop and the scalars that it carries from iteration to iteration. Out: `Shares`: the work of an
iteration, and how the scalars of several parts of the loop combine; or None where its iterations may depend on one
another.

The iterations of a loop are independent where every buffer that it writes is read and written, in iteration i, within a
region of i's own. A position has such a region where it is built around i as positions of arrays are:

    i                   the element i
    P * n + q           P has a region of i's own, and q lies within 0 .. n
    P + c, P * n        c and n the same in every iteration
    q * n + i           the loop has n iterations

All positions in one buffer must be built alike. A scalar may be carried by accumulation only. A buffer that iterations
share is one that they only add into, of which each chunk of the loop then has a copy (privatize.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from graphc.codegen.threads.chunking import CHUNK_WORK
from graphc.codegen.transform.privatize import added_into
from graphc.loops import operators
from graphc.loops.ir import (
    INDEX,
    ZERO,
    Apply,
    Buffer,
    Check,
    Const,
    Expr,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Set,
    Stmt,
    Store,
    Target,
    Var,
    add,
    children,
    int_value,
    integer,
    length_of_blocks,
    most_iterations_in_block,
    multiply,
    subexpressions,
)
from graphc.loops.operators import ADD, CHUNK, COLUMNS, MOD, MUL, ROUNDING, Operator
from graphc.loops.visit import expressions, statements
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
    if any(isinstance(stmt, Check | Invoke | Launch) for stmt in statements(loop.body)):
        return None
    steps = {var: accumulation(var, loop) for var in carried}
    private = rows_of(loop) if rows else {}
    sums = added_into(loop, targets.keys() - private.keys())
    if None in steps.values() or not independent(loop, private.keys() | sums.keys()):
        return None
    work = work_of(loop)
    total = int_value(multiply(loop.size, work))
    if only_fills(loop) or (total is not None and total < 2 * CHUNK_WORK):
        return None
    combining = {var: step for var, step in steps.items() if step is not None}
    copied = {buffer: (targets[buffer], step) for buffer, step in sums.items()}
    return Shares(work, combining, compensations_of(loop, carried), private, sums=copied)


def columns_of(loop: Loop) -> tuple[Loop, Shares] | None:
    """The inner loop of a loop over rows that keeps to its columns, as a sum over the first axis does, and how it can
    be shared out: each thread goes over all rows of some columns, in the same order."""
    *names, inner = loop.body or (None,)
    if not isinstance(inner, Loop) or inner.begin != ZERO or not all(isinstance(stmt, Let) for stmt in names):
        return None
    changing = {loop.var} | {stmt.var for stmt in names if isinstance(stmt, Let)}
    if changing & set(subexpressions(inner.size)):
        return None
    within = Loop(loop.var, loop.size, (*loop.body[:-1], *inner.body))
    shares = shares_of(Loop(inner.var, inner.size, (within,)), ())
    return None if shares is None else (inner, replace(shares, chunk=COLUMNS))


def only_fills(loop: Loop) -> bool:
    """Whether a loop writes the same number everywhere, which one thread does as fast."""
    return all(isinstance(stmt.value, Const) for stmt in statements(loop.body) if isinstance(stmt, Store | Set))


def accumulation(var: Var, loop: Loop) -> Operator | None:
    """The step that combines a scalar's values of two parts of a loop, or None where the loop uses it otherwise."""
    found: Operator | None = None
    for stmt in statements(loop.body):
        reads = sum(reads_of(var, expr) for expr in expressions(stmt))
        match stmt:
            case Set(target, Apply(op, (first, *_))) if target == var:
                known = op.accumulates and found in (None, op)
                if not known or first != var or reads > 1:
                    return None
                found = op
            case Set(target, _) if target == var:
                return None
            case _ if reads:
                return None
    return found


def compensations_of(loop: Loop, carried: Sequence[Var]) -> dict[Var, Var]:
    """For each sum that is carried in two floats its compensation: what additions have rounded away."""
    return {
        sum: stmt.var
        for stmt in statements(loop.body)
        if isinstance(stmt, Set) and stmt.var in carried
        for part in subexpressions(stmt.value)
        if isinstance(part, Apply) and part.op is ROUNDING
        for sum in part.args[:1]
        if isinstance(sum, Var) and sum in carried
    }


def reads_of(var: Var, expr: Expr) -> int:
    """How often an expression reads a scalar, but for asking what an addition to it will round away: that is another
    number for every way in which a sum is taken apart, and right for each."""
    if isinstance(expr, Apply) and expr.op is ROUNDING and expr.args[0] == var:
        return reads_of(var, expr.args[1])
    return (expr == var) + sum(reads_of(var, child) for child in children(expr))


# Regions ------------------------------------------------------------------------------------------------------------


@record()
class Scope:
    """What is known of names at a place inside the loop: its variable, values of names, sizes of inner loops, and all
    names that may differ from iteration to iteration."""

    loop: Var
    values: Mapping[Var, Expr]
    sizes: Mapping[Var, Expr]
    changing: frozenset[Var]

    def resolve(self, expr: Expr) -> Expr:
        while isinstance(expr, Var) and expr in self.values:
            expr = self.values[expr]
        return expr

    def is_constant(self, expr: Expr) -> bool:
        """Whether an expression has one value in all iterations."""
        return not any(isinstance(part, Load) or part in self.changing for part in subexpressions(expr))

    def is_within(self, expr: Expr, size: Expr) -> bool:
        """Whether an expression is known to lie within 0 .. size."""
        expr, size = self.resolve(expr), self.resolve(size)
        if isinstance(expr, Var):
            return expr in self.sizes and self.is_at_most(self.sizes[expr], size)
        if isinstance(expr, Apply) and expr.op is ADD:
            return self.is_in_block(expr.args[0], expr.args[1], size)
        low, high = int_value(expr), int_value(size)
        if low is not None:
            return high is not None and 0 <= low < high
        return isinstance(expr, Apply) and expr.op is MOD and self.resolve(expr.args[1]) == size

    def is_at_most(self, iterations: Expr, size: Expr) -> bool:
        """Whether a loop's number of iterations is known to be no more than a size."""
        iterations, most = self.resolve(iterations), most_iterations_in_block(iterations)
        return iterations == size or (most is not None and integer(most) == size)

    def is_in_block(self, begin: Expr, iteration: Expr, size: Expr) -> bool:
        """Whether begin + iteration is a place in a block of an axis of that size: number * block + iteration."""
        begin, iterations = self.resolve(begin), self.sizes.get(iteration) if isinstance(iteration, Var) else None
        most = most_iterations_in_block(iterations) if iterations is not None else None
        if most is None or not isinstance(iterations, Apply):
            return False
        length, number, _ = iterations.args
        return self.resolve(length) == size and begin == multiply(number, integer(most))

    def region(self, position: Expr) -> Region | None:
        """How a position is built around the loop's variable; None where another iteration may reach it too."""
        position = self.resolve(position)
        if position == self.loop:
            return ()
        if not isinstance(position, Apply) or position.dtype != INDEX:
            return None
        if position.op is MUL:
            return self.region_of_row(*position.args)
        if position.op is not ADD:
            return None
        for base, rest in (position.args, position.args[::-1]):
            row = self.resolve(base)
            if isinstance(row, Apply) and row.op is MUL:
                for outer, size in (row.args, row.args[::-1]):
                    if rest == self.loop and self.is_within(rest, size):
                        return (("%", self.resolve(size)),)
                    if self.is_within(rest, size) and (found := self.region_of_row(outer, size)) is not None:
                        return found
            if self.is_constant(rest) and (found := self.region(base)) is not None:
                return (*found, ("+", rest))
        return None

    def is_size(self, expr: Expr) -> bool:
        """Whether an expression is a size, which is 0 only where there are no elements, or a product of sizes."""
        expr = self.resolve(expr)
        if isinstance(expr, Apply) and expr.op is MUL:
            return all(map(self.is_size, expr.args))
        value = int_value(expr)
        return value > 0 if value is not None else isinstance(expr, Var) and expr not in self.changing

    def region_of_row(self, number: Expr, size: Expr) -> Region | None:
        """How the first place of a row is built, of its number and the size of each."""
        size = self.resolve(size)
        found = self.region(number) if self.is_size(size) else None
        return None if found is None else (*found, ("*", size))


def rows_of(loop: Loop) -> dict[Buffer, Expr]:
    """The buffers of one row that a loop writes, with their lengths, where it names these."""
    stored = dict.fromkeys(stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Store))
    named = {part for stmt in statements(loop.body) for expr in expressions(stmt) for part in subexpressions(expr)}
    return {b: b.row for b in stored if b.row is not None and (isinstance(b.row, Const) or b.row in named)}


def independent(loop: Loop, private: Collection[Buffer] = ()) -> bool:
    """Whether every iteration keeps to regions of its own in all buffers that the loop writes and that are not
    `private`."""
    stored = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Store)} - set(private)
    changing = frozenset(stmt.var for stmt in statements([loop]) if isinstance(stmt, Let | Set | Loop))
    found: dict[Buffer, set[Region | None]] = {buffer: set() for buffer in stored}
    for buffer, position, scope in accesses(loop.body, Scope(loop.var, {}, {loop.var: loop.size}, changing)):
        if buffer in found:
            found[buffer].add(scope.region(position))
    return all(len(regions) == 1 and None not in regions for regions in found.values())


def accesses(body: Sequence[Stmt], scope: Scope) -> Iterator[tuple[Buffer, Expr, Scope]]:
    """Every buffer and position that statements read or write, with what is known there."""
    values = dict(scope.values)
    for stmt in body:
        here = Scope(scope.loop, values, scope.sizes, scope.changing)
        if isinstance(stmt, Store):
            yield stmt.buffer, stmt.index, here
        for expr in expressions(stmt):
            yield from ((part.buffer, part.index, here) for part in subexpressions(expr) if isinstance(part, Load))
        if isinstance(stmt, Let):
            values = values | {stmt.var: stmt.value}
        elif isinstance(stmt, Loop):
            sizes = {**scope.sizes, stmt.var: stmt.size} if stmt.begin == ZERO else scope.sizes
            inner = {var: value for var, value in values.items() if var != stmt.var}
            yield from accesses(stmt.body, Scope(scope.loop, inner, sizes, scope.changing))


# Work ---------------------------------------------------------------------------------------------------------------


def work_of(loop: Loop) -> Expr:
    """The work of one iteration, a sum over the loops inside it."""
    changing = {stmt.var for stmt in statements([loop]) if isinstance(stmt, Let | Set | Loop)}

    def known(size: Expr) -> bool:
        return not any(isinstance(part, Load) or part in changing for part in subexpressions(size))

    def in_one_loop(body: Sequence[Stmt]) -> Iterator[Stmt]:
        """The statements, those of a loop over blocks as if its inner loop ran over the whole axis."""
        for stmt in body:
            length = length_of_blocks(stmt.size) if isinstance(stmt, Loop) else None
            if not isinstance(stmt, Loop) or length is None or not known(length):
                yield stmt
                continue
            for inner in stmt.body:
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
        elif isinstance(part, Apply) and not (part.dtype == INDEX or compares_positions(part)):
            result += part.op.cost
    return result


def compares_positions(expr: Apply) -> bool:
    return expr.dtype == "bool" and expr.args[0].dtype == INDEX


def describe_work(count: Expr, shares: Shares, text_of: Callable[[Expr], str]) -> str:
    """From how many iterations on there are chunks to share out, for the reader of a plan."""
    work = int_value(shares.work)
    copied = f"; each chunk adds into its own {', '.join(buffer.name for buffer in shares.sums)}" if shares.sums else ""
    if work is None:
        return f"{text_of(count)} iterations of work {text_of(shares.work)}{copied}"
    return (
        f"{text_of(count)} iterations of work {work}, in chunks from {-(-2 * CHUNK_WORK // work)} iterations on{copied}"
    )
