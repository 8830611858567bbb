"""Private copies of what a loop adds into, so that threads may share it.

In: values that loops add into; a loop, and for each buffer that may be copied its length. Out: what such a value is as
a `Target`; the buffers that the loop does nothing to but add elements (or keep the larger ones, and so on), each with
the step; how many chunks of the loop get a copy of their own.

A sum over the first axis, inside a loop over rows, adds a whole row in every iteration; rows scattered into a table add
to a few elements. Each chunk of the loop starts its copy with what adding leaves as it is, and the copies are combined
in the order of the chunks. How many chunks there are is told by sizes alone, so that a result is the same to the bit
for any number of threads. A loop of one chunk needs no copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from graphc.arrays.dtypes import is_float
from graphc.codegen.schedule.buffers import MOST_COPIES, PADDING
from graphc.loopir import ir
from graphc.loopir.build import start_const
from graphc.loopir.operators import MINIMUM, Operator
from graphc.loopir.visit import expressions, statements
from graphc.ops.reduce import highest, lowest
from graphc.startup.record import replace

COLUMNS_SHARE = 32
"""The same of a loop that could also be shared by columns, with no copies at all. Whole rows are read faster than parts
of them, by a tenth where they are long and twice as fast where they are short."""


def targets_of(stmt: ir.Stmt) -> dict[ir.Buffer, ir.Target]:
    """The buffers that a statement writes and that may be copied."""
    stores = (inner for inner in statements([stmt]) if isinstance(inner, ir.Store))
    return {store.buffer: store.buffer.target for store in stores if store.buffer.target is not None}


def added_into(loop: ir.Loop, targets: Collection[ir.Buffer]) -> dict[ir.Buffer, Operator]:
    """Those of `targets` that a loop only adds into, each with the step."""
    steps: dict[ir.Buffer, Operator | None] = {}
    other_reads: Counter[ir.Buffer] = Counter()  # than by the steps themselves
    for stmt in statements(loop.body):
        parts = (part for expr in expressions(stmt) for part in ir.subexpressions(expr))
        other_reads.update(part.buffer for part in parts if isinstance(part, ir.Load) and part.buffer in targets)
        if isinstance(stmt, ir.Store) and stmt.buffer in targets:
            other_reads[stmt.buffer] -= 1
            step = step_of(stmt)
            steps[stmt.buffer] = step if steps.get(stmt.buffer, step) == step else None
    return {buffer: step for buffer, step in steps.items() if step is not None and not other_reads[buffer]}


def step_of(stmt: ir.Store) -> Operator | None:
    """The operator by which a store adds to the element that it overwrites; None of any other store."""
    match stmt.value:
        case ir.Apply(op, (before, _)) if op.neutral:
            while isinstance(before, ir.Apply) and before.op is op:  # several elements, one after the other
                before = before.args[0]
            overwritten = isinstance(before, ir.Load) and (before.buffer, before.index) == (stmt.buffer, stmt.index)
            return op if overwritten else None
    return None


def neutral(step: Operator, dtype: str) -> ir.Const:
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
    return start_const(text if is_float(dtype) else text.removeprefix("-0.0") or "0", dtype)


def instead_of_columns(targets: Mapping[ir.Buffer, ir.Target], rows: int) -> dict[ir.Buffer, ir.Target]:
    """Those targets of a loop over blocks of `rows` rows that are worth copies where columns could be shared."""
    return {
        buffer: target if target.is_table else replace(target, pays=ir.integer(COLUMNS_SHARE))
        for buffer, target in targets.items()
        if target.is_table or rows
    }


# How many -------------------------------------------------------------------------------------------------------------


def most_copies(added: Iterable[tuple[ir.Target, ir.Expr]]) -> ir.Expr:
    """The most chunks of a loop that adds into targets, each with a number of iterations. The kernel asks that of
    the iterations of a loop, and there is memory for as many as that gives of all loops that add into a target."""
    most: ir.Expr = ir.integer(MOST_COPIES)
    for pays, count in dict.fromkeys((target.pays, count) for target, count in added):
        most = ir.apply(MINIMUM, ir.quotient(count, pays), most)
    return most


def stride(length: ir.Expr) -> ir.Expr:
    """By how many elements one copy begins after the other."""
    blocks = ir.quotient(ir.add(length, ir.integer(PADDING - 1)), ir.integer(PADDING))
    return ir.multiply(blocks, ir.integer(PADDING))
