"""Private copies of what a loop adds into, so that threads may share it.

In: values that loops add into; a loop, and for each buffer that may be copied its length. Out: what such a value is as
a `Target`; the buffers that the loop does nothing to but add elements (or keep the larger ones, and so on), each with
the step; how many chunks of the loop get a copy of their own.

A sum over the first axis, inside a loop over rows, adds a whole row in every turn; rows scattered into a table add to a
few elements. Each chunk of the loop starts its copy with what adding leaves as it is, and the copies are combined in
the order of the chunks. How many chunks there are is told by sizes alone, so that a result is the same to the bit for
any number of threads. A loop of one chunk needs no copy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from graphc.codegen.schedule.accumulators import MOST_COPIES, PADDING, Target
from graphc.dtypes import is_float
from graphc.loops.ir import (
    INDEX,
    ONE,
    Apply,
    Const,
    Expr,
    Load,
    Loop,
    Store,
    add,
    integer,
    multiply,
    quotient,
    subexpressions,
)
from graphc.loops.visit import expressions, statements
from graphc.ops.reduce import highest, lowest
from graphc.startup.record import replace

STEPS = re.compile(
    r"(accumulate(_(product|minimum|maximum|lowest|highest))?\(_0, _1\)|logical_(or|and)\(_0, _1\)|_0 [+|&] _1)$"
)
"""Steps whose results for parts of a loop combine as its elements do, in whatever order."""
COLUMNS_SHARE = 32
"""The same of a loop that could also be shared by columns, with no copies at all. Whole rows are read faster than parts
of them, by a tenth where they are long and twice as fast where they are short."""


def added_into(loop: Loop, targets: Collection[str]) -> dict[str, str]:
    """Those of `targets` that a loop only adds into, each with the step."""
    steps: dict[str, str | None] = {}
    other_reads: Counter[str] = Counter()  # than by the steps themselves
    for stmt in statements(loop.body):
        parts = (part for expr in expressions(stmt) for part in subexpressions(expr))
        other_reads.update(part.buffer for part in parts if isinstance(part, Load) and part.buffer in targets)
        if isinstance(stmt, Store) and stmt.buffer in targets:
            other_reads[stmt.buffer] -= 1
            step = step_of(stmt)
            steps[stmt.buffer] = step if steps.get(stmt.buffer, step) == step else None
    return {buffer: step for buffer, step in steps.items() if step is not None and not other_reads[buffer]}


def step_of(stmt: Store) -> str | None:
    """The step by which a store adds to the element that it overwrites; None of any other store."""
    match stmt.value:
        case Apply(template, (before, _), _) if STEPS.match(template):
            while isinstance(before, Apply) and before.template == template:  # several elements, one after the other
                before = before.args[0]
            overwritten = isinstance(before, Load) and (before.buffer, before.index) == (stmt.buffer, stmt.index)
            return template if overwritten else None
    return None


def neutral(step: str, dtype: str) -> Const:
    """What a step leaves any other number as it is with: of sums the negative zero, which keeps the sign of zeros."""
    match step:
        case "accumulate_product(_0, _1)":
            text = "1"
        case "accumulate_minimum(_0, _1)" | "accumulate_lowest(_0, _1)":
            text = highest(dtype)
        case "accumulate_maximum(_0, _1)" | "accumulate_highest(_0, _1)":
            text = lowest(dtype)
        case _:
            text = "-0.0" if is_float(dtype) else "0"
    if dtype == "bool":
        return Const(str(step in ("_0 & _1", "logical_and(_0, _1)") or text in ("True", "1")), dtype)
    return Const(repr(float(text)) if is_float(dtype) else text, dtype)


def instead_of_columns(targets: Mapping[str, Target], rows: int) -> dict[str, Target]:
    """Those targets of a loop over blocks of so many rows that are worth copies where columns could be shared."""
    larger = {"least": COLUMNS_SHARE * rows, "pays": integer(COLUMNS_SHARE)}
    return {
        buffer: target if target.is_table else replace(target, **larger)
        for buffer, target in targets.items()
        if target.is_table or rows
    }


# How many -------------------------------------------------------------------------------------------------------------


def most_chunks(count: Expr, targets: Iterable[Target]) -> Expr:
    """How many chunks a loop of `count` turns may have, at least one, in the kernel's terms."""
    most: Expr = integer(MOST_COPIES)
    for pays in dict.fromkeys(target.pays for target in targets):
        most = Apply("minimum(_0, _1)", (quotient(count, pays), most), INDEX)
    return Apply("maximum(_0, _1)", (most, ONE), INDEX)


def stride(length: Expr) -> Expr:
    """By how many elements one copy begins after the other, in the kernel's terms."""
    blocks = quotient(add(length, integer(PADDING - 1)), integer(PADDING))
    return multiply(blocks, integer(PADDING))
