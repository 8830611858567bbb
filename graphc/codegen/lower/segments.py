"""Sums of segments: of as many rows each as is known only while the kernel runs.

In: a nest of kind `segments` and the `Lowerer` that writes the kernel. Out: loops at the end of a scope, the outermost
over segments, which know nothing of each other.

A segment of numbers is summed in a local. Rows of several elements are added into the result's row, some at a time, so
that memory is walked in order and the loop along the row is innermost.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.lower.access import Survey
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.reductions import ROW_BLOCK
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest
from graphc.ir.lowering import Segments
from graphc.ir.node import Node
from graphc.loopir.build import cast, start_const
from graphc.loopir.ir import (
    INDEX,
    Expr,
    If,
    Load,
    Opaque,
    Set,
    Store,
    Var,
    add,
    apply,
    integer,
    multiply,
    quotient,
    remainder,
    subexpressions,
)
from graphc.loopir.operators import ACCUMULATE, ACCUMULATE_IN_ORDER, ADD, LT, Operator

SHORT = 32
"""Numbers that are added one after the other: of so few, several sums take longer to begin and to end."""
SUMS = 4
"""Sums that terms go to in turn which vectors do not take: an addition waits for the one before it."""


def lower_segments(lowerer: Lowerer, nest: Nest, outer: Scope) -> None:
    """The loops of a nest's one sum of segments."""
    (node,) = nest.roots
    row, starts = nest.vars[0], node.args[1]
    scope, begin, count = lowerer.enter_segment(outer, starts, row)
    (_of_numbers if node.ndim == 1 else _of_rows)(lowerer, nest, node, scope, begin, count)
    lowerer.leave(scope, outer)


def _of_numbers(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope, begin: Expr, count: Expr) -> None:
    lowering = node.op.lower(node)
    assert isinstance(lowering, Segments)
    total, *others = [Var(lowerer.names.fresh(lowerer.labels(node)), lowering.dtype) for _ in range(SUMS)]
    scope.body.append(Set(total, start_const("0", total.dtype)))
    with lowerer.branch(scope) as few:
        _add_terms(lowerer, node, few, begin, count, [total])
    with lowerer.branch(scope) as many:
        if _reads_in_order(lowerer, node, begin):
            _add_terms(lowerer, node, many, begin, count, [total], ACCUMULATE)
        else:
            many.body.extend(Set(each, start_const("0", each.dtype)) for each in others)
            turns = lowerer.bind(quotient(count, integer(SUMS)), "turns")
            _add_terms(lowerer, node, many, begin, turns, [total, *others])
            done = add(begin, multiply(turns, integer(SUMS)))
            _add_terms(lowerer, node, many, done, remainder(count, integer(SUMS)), [total])
            many.body.extend(Set(total, apply(ADD, total, each)) for each in others)
    scope.body.append(If(apply(LT, count, integer(SHORT)), tuple(few.body), tuple(many.body)))
    lowerer.scopes[total] = scope
    scope.body.append(Store(lowerer.buffers[node], lowerer.place(node, nest.index), cast(total, node.dtype)))


def _reads_in_order(lowerer: Lowerer, node: Node, begin: Expr) -> bool:
    """Whether the terms of a segment follow one another in memory: vectors are not filled element by element."""
    survey = Survey(lowerer.materialised, lowerer.extents, lowerer.scalar, lowerer.depths)
    survey.element(node.args[0], (begin,))
    return not any(isinstance(part, Opaque) for place in survey.positions for part in subexpressions(place))


def _add_terms(
    lowerer: Lowerer,
    node: Node,
    outer: Scope,
    begin: Expr,
    times: Expr,
    sums: Sequence[Var],
    step: Operator = ACCUMULATE_IN_ORDER,
) -> None:
    """A loop of which each iteration adds a term to each of some sums."""
    place = Var(lowerer.names.fresh("r"), INDEX)
    inner = lowerer.enter(outer, place, times)
    lowerer.scopes.update(dict.fromkeys(sums, inner))
    first = add(begin, multiply(place, integer(len(sums))))
    for number, each in enumerate(sums):
        term = cast(lowerer.element(node.args[0], (add(first, integer(number)),)), each.dtype)
        inner.body.append(Set(each, apply(step, each, term)))
    lowerer.leave(inner, outer)
    lowerer.scopes.update(dict.fromkeys(sums, outer))


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
