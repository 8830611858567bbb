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
from collections.abc import Collection, Iterable, Mapping, Sequence

from graphc.codegen.plan import Nest, first_reduced
from graphc.codegen.simplify import expressions, statements
from graphc.codegen.sizing import Sizing
from graphc.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.loops import (
    INDEX,
    ONE,
    Apply,
    Const,
    Expr,
    Load,
    Loop,
    Store,
    Var,
    add,
    integer,
    multiply,
    quotient,
    subexpressions,
)
from graphc.ir.node import Node, Size, Writes
from graphc.ops.reduce import highest, lowest
from graphc.record import record, replace

STEPS = re.compile(
    r"(accumulate(_(product|minimum|maximum|lowest|highest))?\(_0, _1\)|logical_(or|and)\(_0, _1\)|_0 [+|&] _1)$"
)
"""Steps whose results for parts of a loop combine as its elements do, in whatever order."""
MOST_COPIES = 32
"""Chunks of a loop that adds into copies at most: so many threads may share it."""
SHARE = 8
"""A chunk adds at least so many times as many elements as its copy has: filling and combining copies takes a small part
of the time, and they of the memory that the loop reads."""
COLUMNS_SHARE = 32
"""The same of a loop that could also be shared by columns, with no copies at all. Whole rows are read faster than parts
of them, by a tenth where they are long and twice as fast where they are short."""
PADDING = 16
"""Copies begin a multiple of so many elements after each other: threads seldom write to one line of memory."""


@record()
class Target:
    """A buffer that a loop of so many `turns` adds into: its `size`, and the `least` turns that are worth a copy.
    `length` and `pays` are the latter two in the kernel's terms."""

    turns: Size
    size: Size
    least: Size
    length: Expr
    pays: Expr
    is_table: bool = False
    """Whether a turn adds to one place of several."""


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


def row_sum(rows: Size, size: Size, length: Expr) -> Target:
    """A buffer to which every one of so many rows adds one."""
    return Target(rows, size, SHARE, length, integer(SHARE))


def table_of_sums(rows: Size, size: Size, places: Size, length: Expr, turns: Expr) -> Target:
    """A table of so many places (`turns`), to one of which each of so many rows is added."""
    pays = Apply("maximum(_0, _1)", (multiply(integer(SHARE), turns), ONE), INDEX)
    least = sizes.maximum(sizes.multiply(SHARE, places), 1)
    return Target(rows, size, least, length, pays, is_table=True)


def target_of(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Target | None:
    """What loops add a value of a nest into, if that may be copied."""
    match nest.kind:
        case "fold":
            return added_row(node, nest, size_names, sizing)
        case "writes":
            return table(node, size_names, sizing)
    return None


def added_row(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Target | None:
    """The result of a reduction by rows to which every turn of its outermost loop adds."""
    shape = sizing.shape(node)
    length = row_length(shape, size_names)
    if first_reduced(node) or length is None:
        return None
    return row_sum(nest.space[0], sizes.product(shape), length)


def table(node: Node, size_names: Mapping[Node, str], sizing: Sizing) -> Target | None:
    """A table to which rows are added at places of their own."""
    lowering, shape = node.op.lower(node), sizing.shape(node)
    assert isinstance(lowering, Writes)
    for region in lowering.regions(node):
        if not region.accumulate or not region.sizes:
            continue
        rows, *row = map(sizing.of, region.sizes)
        places = shape[: len(shape) - len(row)]
        length, turns = row_length(shape, size_names), row_length(places, size_names)
        if (*places, *row) == shape and rows not in places and length is not None and turns is not None:
            return table_of_sums(rows, sizes.product(shape), sizes.product(places), length, turns)
    return None


def row_length(shape: Sequence[Size], size_names: Mapping[Node, str]) -> Expr | None:
    """A number of elements as a product of numbers and arguments of the kernel."""
    length: Expr = ONE
    for size in shape:
        if not isinstance(size, int) and size not in size_names:
            return None
        length = multiply(length, integer(size) if isinstance(size, int) else Var(size_names[size], INDEX))
    return length


def target_of_both(one: Target | None, other: Target | None) -> Target | None:
    """What holds of a buffer that two loops add into; None where they differ in more than their number of turns."""
    if one is None or other is None or replace(one, turns=other.turns) != other:
        return None
    return replace(one, turns=sizes.maximum(one.turns, other.turns))


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


def most_copies(targets: Iterable[Target]) -> Size:
    """How many copies the chunks of such a loop need at most, in the graph's terms."""
    most: Size = MOST_COPIES
    for turns, least in dict.fromkeys((target.turns, target.least) for target in targets):
        most = sizes.minimum(most, sizes.floor_divide(turns, least))
    return most


def stride(length: Expr) -> Expr:
    """By how many elements one copy begins after the other, in the kernel's terms."""
    blocks = quotient(add(length, integer(PADDING - 1)), integer(PADDING))
    return multiply(blocks, integer(PADDING))


def stride_size(length: Size) -> Size:
    """The same in the graph's terms."""
    return sizes.multiply(sizes.floor_divide(sizes.add(length, PADDING - 1), PADDING), PADDING)
