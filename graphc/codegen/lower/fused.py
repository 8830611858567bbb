"""Loops that several nests share.

In: `Rows` of a plan and the `Lowerer` that writes the kernel. Out: statements at the end of the kernel's body. The
parts of a shared loop are written one after the other into its body. A reduction over a shared loop is begun before the
loop, gets its share of terms in every iteration, and is finished after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.codegen.lower.calls import Block, lower_block
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.nests import loops
from graphc.codegen.lower.reductions import add_row, begin_rows, finish_rows, fold_of, lower_column_reduction
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest, Rows, first_reduced, nests_of
from graphc.ir.lowering import Fold
from graphc.ir.node import Index, Node, Size
from graphc.loopir.build import add_compensated, cast, compensated_sum, start_const
from graphc.loopir.ir import INDEX, ZERO, Expr, Let, Note, Set, Store, Var, add, apply, multiply, subtract
from graphc.loopir.operators import ACCUMULATE, BLOCKS, MINIMUM
from graphc.loopir.syntax import filled, operator_of
from graphc.startup.record import record

Remarks = Callable[[Nest], Sequence[Note]]
"""The comments above a nest."""


@record()
class FullReduction:
    """A full reduction that is under way; `compensation` is what its additions have rounded away."""

    value: Var
    compensation: Var | None


def lower_rows(lowerer: Lowerer, rows: Rows, remarks: Remarks, scope: Scope) -> None:
    """A loop that nests share."""
    names = lowerer.labels.joined(root for nest in nests_of(rows) for root in nest.roots)
    scope.body.extend(Note(note.text, names) for note in remarks(nests_of(rows)[0])[:1])
    _shared_loop(lowerer, rows, scope, remarks, {})


def _shared_loop(
    lowerer: Lowerer, rows: Rows, scope: Scope, remarks: Remarks, running: dict[Node, FullReduction]
) -> None:
    reductions = [nest for nest in nests_of(rows) if nest.kind in ("column reduction", "full reduction")]
    reductions = [nest for nest in reductions if first_reduced(nest.roots[0]) == rows.depth]
    for nest in reductions:
        scope.body.extend(remarks(nest))
        _begin(lowerer, nest, scope, running)
    of_blocks = lowerer.of_blocks
    if rows.makes is None:
        inner = lowerer.enter(scope, rows.var, lowerer.size(rows.size))
    else:
        inner = _enter_block(lowerer, rows, rows.makes, scope, remarks)
    for part in rows.body:
        if isinstance(part, Rows):
            _shared_loop(lowerer, part, inner, remarks, running)
        else:
            if part not in reductions:
                inner.body.extend(remarks(part))
            _part(lowerer, part, inner, running)
    lowerer.leave(inner, scope)
    lowerer.of_blocks = of_blocks
    for nest in reductions:
        _finish(lowerer, nest, scope, running)
        lowerer.stored(nest.roots)


def _enter_block(lowerer: Lowerer, rows: Rows, makes: Nest, scope: Scope, remarks: Remarks) -> Scope:
    """A loop over blocks of rows, in which a function makes those of one; and the loop over these."""
    block, begin, number = (Var(lowerer.names.fresh(name), INDEX) for name in ("block", "begin", f"{rows.var.name}_in"))
    size, length = lowerer.size(rows.size), lowerer.name_once(lowerer.size(rows.block), "length")
    outer = lowerer.enter(scope, block, apply(BLOCKS, size, length))
    lowerer.of_blocks = lowerer.scopes[begin] = outer
    outer.body.append(Let(begin, multiply(block, length)))
    count = lowerer.bind(apply(MINIMUM, length, subtract(size, begin)), "count", (begin,))
    outer.body.extend(remarks(makes))
    lower_block(lowerer, makes, Block(begin, count), outer)
    lowerer.stored(makes.roots)
    inner = lowerer.enter(outer, number, count)
    inner.place, lowerer.scopes[rows.var] = rows.var, inner
    lowerer.in_block = {rows.var: number}
    inner.body.append(Let(rows.var, add(begin, number)))
    return inner


def _part(lowerer: Lowerer, nest: Nest, scope: Scope, running: dict[Node, FullReduction]) -> None:
    """What one nest does in an iteration of the loops around `scope`."""
    match nest.kind:
        case "loops":
            loops(lowerer, nest, scope)
            lowerer.stored(nest.roots)
        case "full reduction":
            _add_part(lowerer, nest, scope, running[nest.roots[0]])
        case "column reduction":
            if first_reduced(nest.roots[0]) >= lowerer.depth(scope):
                lower_column_reduction(lowerer, nest, scope)
                lowerer.stored(nest.roots)
            else:
                add_row(lowerer, nest, scope)
        case _:
            raise AssertionError(f"a nest of kind {nest.kind} shares no loop")


# Reductions over a shared loop ---------------------------------------------------------------------------------------


def _begin(lowerer: Lowerer, nest: Nest, scope: Scope, running: dict[Node, FullReduction]) -> None:
    """Start a reduction, in the loops around its first reduced one."""
    if nest.kind == "column reduction":
        begin_rows(lowerer, nest, scope)
        return
    (node,) = nest.roots
    fold = fold_of(node)
    dtype = fold.dtypes[0]
    name = lowerer.names.fresh(lowerer.labels(node))
    compensation = Var(lowerer.names.fresh("comp"), dtype) if _is_float_sum(fold) else None
    running[node] = FullReduction(Var(name, dtype), compensation)
    if compensation is not None:
        scope.body.append(Set(compensation, start_const("0", dtype)))
    scope.body.append(Set(running[node].value, start_const(fold.start[0], dtype)))


def _finish(lowerer: Lowerer, nest: Nest, scope: Scope, running: dict[Node, FullReduction]) -> None:
    """Bring the result of a reduction to its dtype and its place."""
    if nest.kind == "column reduction":
        finish_rows(lowerer, nest, scope)
        return
    (node,) = nest.roots
    reduction = running[node]
    value: Expr = reduction.value
    if reduction.compensation is not None:
        value = lowerer.bind(compensated_sum(reduction.value, reduction.compensation), lowerer.labels(node))
    value = lowerer.bind(cast(value, node.dtype), lowerer.labels(node))
    lowerer.remember(lowerer.scalars, node, value)
    if node in lowerer.buffers:
        scope.body.append(Store(lowerer.buffers[node], lowerer.place(node, ()), value))


# Full reductions ------------------------------------------------------------------------------------------------------


def _is_float_sum(fold: Fold) -> bool:
    return fold.dtypes[0] == "float64" and operator_of(fold.step[0]) is ACCUMULATE


def _add_part(lowerer: Lowerer, nest: Nest, scope: Scope, reduction: FullReduction) -> None:
    """Reduce what belongs to the iteration of the loops around `scope`, and add that to the reduction.

    Sums are carried in two floats, so that many rows lose no more than one.
    """
    (node,) = nest.roots
    fold = fold_of(node)
    around = lowerer.depth(scope)
    part = _reduce_rest(lowerer, node, fold, nest.index[:around], len(nest.space) - around)
    if reduction.compensation is None:
        step = filled(fold.step[0], (reduction.value, part, ZERO), reduction.value.dtype)
        scope.body.append(Set(reduction.value, step))
    else:
        scope.body.extend(add_compensated(reduction.value, reduction.compensation, part))


def _reduce_rest(lowerer: Lowerer, node: Node, fold: Fold, outer: Index, loops: int) -> Expr:
    """A full reduction over its last axes only, at an index into the others."""
    if not loops:
        return cast(lowerer.fold_term(node, fold, (), outer), fold.dtypes[0])

    def rest_sizes(node: Node) -> tuple[Size, ...]:
        return fold.sizes(node)[len(outer) :]

    def operands(node: Node, index: Index, reduced: Index) -> Sequence[tuple[int, Index]]:
        return fold.operands(node, (), (*index, *reduced))

    axes = tuple(axis for axis in fold.axes if axis >= len(outer))
    rest = Fold(rest_sizes, operands, fold.term, fold.start, fold.step, fold.dtypes, fold.result, axes)
    return lowerer.accumulated(node, rest, outer)
