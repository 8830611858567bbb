"""The loops of a kernel that threads may share: the work of an iteration, private copies, non-temporal stores.

In: an outermost loop that says in which buffers its iterations conflict (independence.py), and the scalars that it
carries from iteration to iteration. Out: `Shares`: the work of an iteration, and how the scalars of several parts of
the loop combine; or None where iterations depend on one another.

    for i in range(n):                          two chunks of i, each with a copy of `sums` of its own;
        for j in range(m):                      the copies are added up in order
            sums[j] = accumulate(sums[j], x[i * m + j])

Iterations may conflict in a buffer of one row, of which threads have one each, and in one that they only add into, of
which each chunk of the loop then has a copy. A sum over the first axis, inside a loop over rows, adds a whole row in
every iteration; rows scattered into a table add to a few elements. Each chunk of the loop starts its copy with what
adding leaves as it is, and the copies are combined in the order of the chunks. The number of chunks follows from sizes
alone, so that a result is the same to the bit for any number of threads. A loop of one chunk needs no copy.

A store to memory that is in no cache reads the line it goes to first, and puts out another one. Where an array is
larger than the cache it is gone before anybody reads it, and that was in vain: a quarter of what `x + y` moves, a third
of what a copy moves. Non-temporal (streaming) stores do neither; but they ask for aligned addresses, take longer for
what the cache would have held, and would be a second loop to compile in each nest. So the nest's function stays as it
is: where a launch writes much, it is called for some lines at a time, with memory of its thread's own in place of the
result, from where non-temporal stores take them (threads/pool.py). That gains where memory is what a loop waits
for: one result, no narrower than what is read, since else it is a small part of what is moved, and little work for an
element; loops along rows gain nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from graphc.arrays.dtypes import highest, is_float, itemsize, lowest
from graphc.codegen.threads.settings import CHUNK_WORK
from graphc.codegen.transform.independence import accumulations, mark_nest
from graphc.codegen.transform.merge_rows import resolved
from graphc.loopir import ir, operators, visit
from graphc.startup.record import fresh, record, replace

COLUMNS_SHARE = 32
"""The same of a loop that could also be shared by columns, with no copies at all. Whole rows are read faster than parts
of them, by a tenth where they are long and twice as fast where they are short."""


def targets_of(stmt: ir.Stmt) -> dict[ir.Buffer, ir.Target]:
    """The buffers that a statement writes and that may be copied."""
    stores = (inner for inner in visit.statements([stmt]) if isinstance(inner, ir.Store))
    return {store.buffer: store.buffer.target for store in stores if store.buffer.target is not None}


def added_into(loop: ir.Loop, targets: Collection[ir.Buffer]) -> dict[ir.Buffer, operators.Operator]:
    """Return the `targets` that a loop only adds into, each with the step."""
    steps: dict[ir.Buffer, operators.Operator | None] = {}
    other_reads: Counter[ir.Buffer] = Counter()  # than by the steps themselves
    for stmt in visit.statements(loop.body):
        parts = (part for expr in visit.expressions(stmt) for part in ir.subexpressions(expr))
        other_reads.update(part.buffer for part in parts if isinstance(part, ir.Load) and part.buffer in targets)
        if isinstance(stmt, ir.Store) and stmt.buffer in targets:
            other_reads[stmt.buffer] -= 1
            step = step_of(stmt)
            steps[stmt.buffer] = step if steps.get(stmt.buffer, step) == step else None
    return {buffer: step for buffer, step in steps.items() if step is not None and not other_reads[buffer]}


def step_of(stmt: ir.Store) -> operators.Operator | None:
    """The operator by which a store adds to the element that it overwrites; None of any other store."""
    match stmt.value:
        case ir.Apply(op, (before, _)) if op.neutral:
            while isinstance(before, ir.Apply) and before.op is op:  # several elements, one after the other
                before = before.args[0]
            overwritten = isinstance(before, ir.Load) and (before.buffer, before.index) == (stmt.buffer, stmt.index)
            return op if overwritten else None
    return None


def neutral(step: operators.Operator, dtype: str) -> ir.Const:
    """The neutral element of a step: of sums the negative zero, which keeps the sign of zeros."""
    match step.neutral:
        case "one":
            text = "1"
        case "highest":
            text = highest(dtype)
        case "lowest":
            text = lowest(dtype)
        case _:
            text = "-0.0"
    return ir.start_const(text if is_float(dtype) else text.removeprefix("-0.0") or "0", dtype)


def instead_of_columns(targets: Mapping[ir.Buffer, ir.Target], rows: int) -> dict[ir.Buffer, ir.Target]:
    """Return the targets of a loop over blocks of `rows` rows that are worth copies where columns could be shared."""
    return {
        buffer: target if target.is_table else replace(target, pays=ir.integer(COLUMNS_SHARE))
        for buffer, target in targets.items()
        if target.is_table or rows
    }


# How many -------------------------------------------------------------------------------------------------------------


def most_copies(added: Iterable[tuple[ir.Target, ir.Expr]]) -> ir.Expr:
    """The most chunks of a loop that adds into targets, each with a number of iterations. The kernel asks that of
    the iterations of a loop, and there is memory for as many as that gives of all loops that add into a target."""
    most: ir.Expr = ir.integer(ir.MOST_COPIES)
    for pays, count in dict.fromkeys((target.pays, count) for target, count in added):
        most = ir.apply(operators.MINIMUM, ir.quotient(count, pays), most)
    return most


def copy_stride(length: ir.Expr) -> ir.Expr:
    """By how many elements one copy begins after the other."""
    blocks = ir.quotient(ir.add(length, ir.integer(ir.PADDING - 1)), ir.integer(ir.PADDING))
    return ir.multiply(blocks, ir.integer(ir.PADDING))


# Non-temporal stores --------------------------------------------------------------------------------------------------


MOST_WORK = 16
"""The most work of an iteration, in units of an addition: the arithmetic of more takes as long as memory does."""


@record()
class Stream:
    """Buffers of which iteration i touches element i only: one that it fills and the kernel does not read, and one that
    it reads."""

    fills: ir.Buffer
    reads: ir.Buffer


def stream_of(loop: ir.Loop, work: ir.Expr, read: Collection[ir.Buffer]) -> Stream | None:
    """The buffer of an outermost loop that non-temporal stores may write, `work` in an iteration. `read`: the buffers
    that the kernel reads."""
    total = ir.int_value(work)
    if total is None or total > MOST_WORK or not all(isinstance(stmt, ir.Let | ir.Store) for stmt in loop.body):
        return None
    values = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, ir.Let)}
    touched: list[ir.Load | ir.Store] = [part for part in visit.all_expressions(loop.body) if isinstance(part, ir.Load)]
    touched += [stmt for stmt in loop.body if isinstance(stmt, ir.Store)]
    places: dict[ir.Buffer, set[ir.Expr]] = {}
    for each in touched:
        places.setdefault(each.buffer, set()).add(resolved(each.index, values))
    along = [buffer for buffer, indices in places.items() if indices == {loop.var}]
    filled = {stmt.buffer for stmt in loop.body if isinstance(stmt, ir.Store)}
    results = [buffer for buffer in along if buffer in filled and buffer not in read]
    sources = [buffer for buffer in along if buffer not in filled]
    if len(filled) != 1 or not results or not sources:
        return None
    source = max(sources, key=lambda buffer: itemsize(buffer.dtype))
    return Stream(results[0], source) if itemsize(source.dtype) <= itemsize(results[0].dtype) else None


# Which loops ----------------------------------------------------------------------------------------------------------


LOAD_COST, STORE_COST = 2.0, 1.0
"""In units of an addition, as the costs of ops are."""
GUESSED_ITERATIONS = 16
"""The trip count that is taken for an inner loop whose length differs from iteration to iteration."""

Region = tuple[tuple[str, ir.Expr], ...]
"""The steps by which a position is built around the loop's variable, from the inside out."""


@record()
class Shares:
    """`work` of an iteration, in units of an addition; for each carried scalar the step that combines two parts'
    values, and for a sum carried in two floats its error; the buffers that hold a row of every iteration in
    turn, with its length: threads need one each."""

    work: ir.Expr
    steps: Mapping[ir.Var, operators.Operator]
    errors: Mapping[ir.Var, ir.Var]
    rows: Mapping[ir.Buffer, ir.Expr]
    chunk: operators.Operator = operators.CHUNK
    """The iterations of a chunk, of their number and the work of each."""
    sums: Mapping[ir.Buffer, tuple[ir.Target, operators.Operator]] = fresh(factory=dict)
    """Buffers that iterations add into, each with the step: a chunk has copies of its own."""


def shares_of(
    loop: ir.Loop, carried: Sequence[ir.Var], rows: bool = False, targets: Mapping[ir.Buffer, ir.Target] = {}
) -> Shares | None:
    """The way to share out an outermost loop; None where there is none, or where it is too short by its static
    size. `rows`: whether threads may have rows of their own; `targets`: buffers of which a chunk may have a copy."""
    if loop.conflicts is None:
        return None
    steps = accumulations(carried, loop)
    private = rows_of(loop) if rows else {}
    sums = added_into(loop, targets.keys() - private.keys())
    if None in steps.values() or not {*loop.conflicts} <= private.keys() | sums.keys():
        return None
    work = work_of(loop)
    total = ir.int_value(ir.multiply(loop.size, work))
    if only_fills(loop) or (total is not None and total < 2 * CHUNK_WORK):
        return None
    combining = {var: step for var, step in steps.items() if step is not None}
    copied = {buffer: (targets[buffer], step) for buffer, step in sums.items()}
    return Shares(work, combining, errors_of(loop, carried), private, sums=copied)


def columns_of(loop: ir.Loop) -> tuple[ir.Loop, Shares] | None:
    """The inner loop of a loop over rows that keeps to its columns, as a sum over the first axis does, or steps whose
    elements know nothing of each other; and how it can be shared out: each thread goes over all rows of some columns,
    in the same order."""
    *names, inner = [stmt for stmt in loop.body if not isinstance(stmt, ir.Note)] or (None,)
    if not isinstance(inner, ir.Loop) or inner is not loop.body[-1] or inner.begin != ir.ZERO or visit.is_left(inner):
        return None
    if not all(isinstance(stmt, ir.Let) for stmt in names):
        return None
    changing = {loop.var} | {stmt.var for stmt in names if isinstance(stmt, ir.Let)}
    if changing & set(ir.subexpressions(inner.size)):
        return None
    within = ir.Loop(loop.var, loop.size, (*names, *inner.body))
    shares = shares_of(mark_nest(ir.Loop(inner.var, inner.size, (within,))), ())
    return None if shares is None else (inner, replace(shares, chunk=operators.COLUMNS))


def only_fills(loop: ir.Loop) -> bool:
    """True where a loop writes the same number everywhere, which one thread does as fast."""
    return all(
        isinstance(stmt.value, ir.Const) for stmt in visit.statements(loop.body) if isinstance(stmt, ir.Store | ir.Set)
    )


def errors_of(loop: ir.Loop, carried: Sequence[ir.Var]) -> dict[ir.Var, ir.Var]:
    """For each sum that is carried in two floats the error: what additions have rounded away."""
    return {
        sum: stmt.var
        for stmt in visit.statements(loop.body)
        if isinstance(stmt, ir.Set) and stmt.var in carried
        for part in ir.subexpressions(stmt.value)
        if isinstance(part, ir.Apply) and part.op is operators.SUM_ERROR
        for sum in part.args[:1]
        if isinstance(sum, ir.Var) and sum in carried
    }


def rows_of(loop: ir.Loop) -> dict[ir.Buffer, ir.Expr]:
    """The buffers of one row that a loop writes, with their lengths, where it names these."""
    stored = dict.fromkeys(stmt.buffer for stmt in visit.statements(loop.body) if isinstance(stmt, ir.Store))
    named = {
        part
        for stmt in visit.statements(loop.body)
        for expr in visit.expressions(stmt)
        for part in ir.subexpressions(expr)
    }
    return {b: b.row for b in stored if b.row is not None and (isinstance(b.row, ir.Const) or b.row in named)}


# Work ---------------------------------------------------------------------------------------------------------------


def work_of(loop: ir.Loop) -> ir.Expr:
    """The work of one iteration, a sum over the loops inside it, and over both branches."""
    changing = {stmt.var for stmt in visit.statements([loop]) if isinstance(stmt, ir.Let | ir.Set | ir.Loop)}

    def known(size: ir.Expr) -> bool:
        return not any(isinstance(part, ir.Load) or part in changing for part in ir.subexpressions(size))

    def in_one_loop(body: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
        """The statements, those of a loop over blocks, or over parts of its steps between safepoints, as if its
        inner loop ran over the whole axis."""
        for stmt in visit.in_line(body):
            length = whole_length(stmt) if isinstance(stmt, ir.Loop) else None
            if not isinstance(stmt, ir.Loop) or length is None or not known(length):
                yield stmt
                continue
            for inner in visit.in_line(stmt.body):
                yield replace(inner, size=length) if isinstance(inner, ir.Loop) else inner

    def total(body: Sequence[ir.Stmt]) -> ir.Expr:
        body = tuple(in_one_loop(body))
        straight = sum(cost(expr) for stmt in body for expr in visit.expressions(stmt))
        straight += STORE_COST * sum(isinstance(stmt, ir.Store) for stmt in body)
        iterations: dict[ir.Expr, ir.Expr] = {}
        for stmt in body:
            if isinstance(stmt, ir.Loop):
                guess = ir.integer(ir.most_iterations_in_block(stmt.size) or GUESSED_ITERATIONS)
                size = stmt.size if known(stmt.size) else guess
                iterations[size] = plus(iterations.get(size, ir.ZERO), total(stmt.body))
        result: ir.Expr = ir.integer(round(straight) if iterations else max(round(straight), 1))
        for size, work in iterations.items():
            result = plus(result, ir.multiply(work, size))
        return result

    return total(loop.body)


def whole_length(loop: ir.Loop) -> ir.Expr | None:
    """The length of the axis of which a loop takes blocks, or parts one after the other; None of any other loop."""
    if any(isinstance(stmt, ir.Loop) and stmt.begin != ir.ZERO for stmt in loop.body):
        return loop.size.args[0] if isinstance(loop.size, ir.Apply) and loop.size.op is operators.BLOCKS else None
    return ir.length_of_blocks(loop.size)


def plus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """left + right, literals first and folded."""
    match left:
        case ir.Apply(operators.ADD, (first, rest)) if (
            ir.int_value(first) is not None and ir.int_value(right) is not None
        ):
            return ir.add(ir.add(first, right), rest)
        case _ if ir.int_value(right) is not None:
            return ir.add(right, left)
    match right:
        case ir.Apply(operators.ADD, (first, rest)) if (
            ir.int_value(left) is not None and ir.int_value(first) is not None
        ):
            return ir.add(ir.add(left, first), rest)
    return ir.add(left, right)


def cost(expr: ir.Expr) -> float:
    """The cost of an expression; the arithmetic of positions is free."""
    result = 0.0
    for part in ir.subexpressions(expr):
        if isinstance(part, ir.Load):
            result += LOAD_COST
        elif isinstance(part, ir.Apply):
            of_positions = part.dtype == ir.INDEX or (part.dtype == "bool" and part.args[0].dtype == ir.INDEX)
            result += 0.0 if of_positions else part.op.cost
    return result


def describe_work(count: ir.Expr, shares: Shares, text_of: Callable[[ir.Expr], str]) -> str:
    """From how many iterations on there are chunks to share out, for the reader of a plan."""
    work = ir.int_value(shares.work)
    copied = f"; each chunk adds into its own {', '.join(buffer.name for buffer in shares.sums)}" if shares.sums else ""
    if work is None:
        return f"{text_of(count)} iterations of work {text_of(shares.work)}{copied}"
    return (
        f"{text_of(count)} iterations of work {work}, in chunks from {-(-2 * CHUNK_WORK // work)} iterations on{copied}"
    )
