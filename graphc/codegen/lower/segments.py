"""Sums of segments: of as many rows each as is known only while the kernel runs.

In: a nest of kind `segments` and the `Lowerer` that writes the kernel. Out: loops at the end of a scope, the outermost
over segments, which know nothing of each other.

A segment of numbers is summed in a local. Rows of several elements are added into the result's row, some at a time, so
that memory is walked in order and the loop along the row is innermost.
"""

from __future__ import annotations

from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.reductions import ROW_BLOCK
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest
from graphc.ir.lowering import Segments
from graphc.ir.node import Node
from graphc.loops.build import cast, start_const
from graphc.loops.ir import (
    INDEX,
    ONE,
    Expr,
    If,
    Load,
    Set,
    Store,
    Var,
    add,
    apply,
    integer,
    multiply,
    quotient,
    remainder,
    subtract,
)
from graphc.loops.operators import ACCUMULATE, ACCUMULATE_IN_ORDER, LT

SHORT = 32
"""Numbers that are added one after the other: of so few, partial sums take longer to begin and to end."""


def lower_segments(lowerer: Lowerer, nest: Nest, outer: Scope) -> None:
    """The loops of a nest's one sum of segments."""
    (node,) = nest.roots
    row, starts = nest.vars[0], node.args[1]
    scope = lowerer.enter(outer, row, lowerer.size(nest.space[0]))
    begin, end = (lowerer.bind(cast(lowerer.element(starts, (at,)), INDEX), "begin") for at in (row, add(row, ONE)))
    count = lowerer.bind(subtract(end, begin), "count")
    (_of_numbers if node.ndim == 1 else _of_rows)(lowerer, nest, node, scope, begin, count)
    lowerer.leave(scope, outer)


def _of_numbers(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope, begin: Expr, count: Expr) -> None:
    lowering = node.op.lower(node)
    assert isinstance(lowering, Segments)
    total = Var(lowerer.names.fresh(lowerer.labels(node)), lowering.dtype)
    scope.body.append(Set(total, start_const("0", total.dtype)))
    sums = []
    for step in (ACCUMULATE_IN_ORDER, ACCUMULATE):
        with lowerer.branch(scope) as side:
            place = Var(lowerer.names.fresh("r"), INDEX)
            inner = lowerer.enter(side, place, count)
            lowerer.scopes[total] = inner
            term = cast(lowerer.element(node.args[0], (add(begin, place),)), total.dtype)
            inner.body.append(Set(total, apply(step, total, term)))
            lowerer.leave(inner, side)
        sums.append(tuple(side.body))
    lowerer.scopes[total] = scope
    scope.body.append(If(apply(LT, count, integer(SHORT)), *sums))
    scope.body.append(Store(lowerer.buffers[node], lowerer.place(node, nest.index), cast(total, node.dtype)))


def _of_rows(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope, begin: Expr, count: Expr) -> None:
    row, *columns = nest.vars
    buffer, widths = lowerer.buffers[node], lowerer.extents(nest.space[1:])
    inner = lowerer.enter_all(scope, columns, widths)
    inner.body.append(Store(buffer, lowerer.place(node, nest.index), start_const("0", node.dtype)))
    lowerer.leave(inner, scope)
    blocks = lowerer.bind(quotient(count, integer(ROW_BLOCK)), "blocks")
    done = lowerer.bind(add(begin, multiply(blocks, integer(ROW_BLOCK))), "done")
    place = Var(lowerer.names.fresh("r"), INDEX)
    first = add(begin, multiply(place, integer(ROW_BLOCK)))
    for times, base, block in ((blocks, first, ROW_BLOCK), (remainder(count, integer(ROW_BLOCK)), add(done, place), 1)):
        around = lowerer.enter(scope, place, times)
        inner = lowerer.enter_all(around, columns, widths)
        where = lowerer.place(node, (row, *columns))
        value: Expr = Load(buffer, where)
        for step in range(block):
            value = apply(ACCUMULATE, value, lowerer.element(node.args[0], (add(base, integer(step)), *columns)))
        inner.body.append(Store(buffer, where, value))
        lowerer.leave(inner, scope)
