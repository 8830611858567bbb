"""What loops add into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphc.codegen.schedule.plan import Nest, first_reduced
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.node import Node, Size, Writes
from graphc.loops.ir import (
    INDEX,
    ONE,
    Expr,
    Var,
    apply,
    integer,
    multiply,
)
from graphc.loops.operators import MAXIMUM
from graphc.startup.record import record, replace

MOST_COPIES = 32
"""Chunks of a loop that adds into copies at most: so many threads may share it."""
SHARE = 8
"""A chunk adds at least so many times as many elements as its copy has: filling and combining copies takes a small part
of the time, and they of the memory that the loop reads."""
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


def row_sum(rows: Size, size: Size, length: Expr) -> Target:
    """A buffer to which every one of so many rows adds one."""
    return Target(rows, size, SHARE, length, integer(SHARE))


def table_of_sums(rows: Size, size: Size, places: Size, length: Expr, turns: Expr) -> Target:
    """A table of so many places (`turns`), to one of which each of so many rows is added."""
    pays = apply(MAXIMUM, multiply(integer(SHARE), turns), ONE)
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


def most_copies(targets: Iterable[Target]) -> Size:
    """How many copies the chunks of such a loop need at most, in the graph's terms."""
    most: Size = MOST_COPIES
    for turns, least in dict.fromkeys((target.turns, target.least) for target in targets):
        most = sizes.minimum(most, sizes.floor_divide(turns, least))
    return most


def stride_size(length: Size) -> Size:
    """The same in the graph's terms."""
    return sizes.multiply(sizes.floor_divide(sizes.add(length, PADDING - 1), PADDING), PADDING)
