"""What loops add into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.codegen.schedule.memory import Added
from graphc.codegen.schedule.plan import Nest, first_reduced
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir.lowering import Writes
from graphc.ir.node import Node, Size
from graphc.loopir.ir import INDEX, ONE, Expr, Target, Var, apply, integer, multiply
from graphc.loopir.operators import MAXIMUM

MOST_COPIES = 32
"""Chunks of a loop that adds into copies at most, and so threads that may share it."""
SHARE = 8
"""A chunk adds at least this multiple of the elements that its copy has: filling and combining copies takes a small
part of the time, and they of the memory that the loop reads."""
PADDING = 16
"""Copies begin a multiple of this number of elements after each other: threads seldom write to one line of memory."""


def row_sum(length: Expr) -> Target:
    """A buffer to which every iteration adds a row."""
    return Target(length, integer(SHARE))


def table_of_sums(length: Expr, places: Expr) -> Target:
    """A table of `places` rows, to one of which each iteration adds a row."""
    return Target(length, apply(MAXIMUM, multiply(integer(SHARE), places), ONE), is_table=True)


def added_by(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """What loops add a value of a nest into, if that may be copied."""
    match nest.kind:
        case "column reduction":
            return _added_row(node, nest, size_names, sizing)
        case "writes":
            return _table(node, size_names, sizing)
    return None


def _added_row(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """The result of a column reduction to which every iteration of its outermost loop adds."""
    length = length_of(sizing.shape(node), size_names)
    return None if first_reduced(node) or length is None else (row_sum(length), nest.space[0])


def _table(node: Node, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """A table to which rows are added at places of their own."""
    lowering, shape = node.op.lower(node), sizing.shape(node)
    assert isinstance(lowering, Writes)
    for region in lowering.regions(node):
        if not region.accumulate or not region.sizes:
            continue
        rows, *row = map(sizing.of, region.sizes)
        places = shape[: len(shape) - len(row)]
        length, count = length_of(shape, size_names), length_of(places, size_names)
        if (*places, *row) == shape and rows not in places and length is not None and count is not None:
            return table_of_sums(length, count), rows
    return None


def row_length(shape: Sequence[Size], size_names: Mapping[Node, str]) -> Expr | None:
    """The length of a row along one axis, where that is an argument of the kernel."""
    sides = [size for size in shape if size != 1]
    return length_of(sides, size_names) if len(sides) == 1 else None


def length_of(shape: Sequence[Size], size_names: Mapping[Node, str]) -> Expr | None:
    """A number of elements as a product of numbers and arguments of the kernel."""
    length: Expr = ONE
    for size in shape:
        if not isinstance(size, int) and size not in size_names:
            return None
        length = multiply(length, integer(size) if isinstance(size, int) else Var(size_names[size], INDEX))
    return length
