"""Column reductions, over other than the last axes: several of them in one pass over memory.

In: a nest of kind `column reduction`, whose roots all reduce the same axes of operands of the same sizes, and the
`Lowerer` that writes the kernel. Out: statements in the scope at hand. Rows are added into the results, so that memory
is read in order; the loops around the scope pick the part of the operands that is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest, loop_vars, split_axes
from graphc.ir.lowering import Fold
from graphc.ir.node import Index, Node
from graphc.loopir.build import cast, start_const
from graphc.loopir.ir import ZERO, Buffer, Expr, Load, Store, Var, add, integer, multiply, quotient, remainder
from graphc.loopir.syntax import filled

ROW_BLOCK = 4
"""Rows that column reductions take at a time."""
LONG_BLOCK = 8
"""The same where rows come from memory, and little is done with an element."""
LONG_BLOCK_OPS = 12
"""Reductions of more ops than this do much with an element."""


def lower_column_reduction(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """All of a nest of reductions, from their start to their results."""
    begin_rows(lowerer, nest, scope)
    if lowerer.depth(scope) <= fold_of(nest.roots[0]).axes[-1] == len(nest.space) - 2:
        add_blocks(lowerer, nest, scope)
    else:
        add_row(lowerer, nest, scope)
    finish_rows(lowerer, nest, scope)


def begin_rows(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Start column reductions."""
    for node in nest.roots:
        fold = fold_of(node)
        start = start_const(fold.start[0], fold.dtypes[0])
        fill_part(lowerer, accumulator(lowerer, node), node, nest, scope, partial(lambda value, where: value, start))


def finish_rows(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Bring the results of column reductions to their dtypes."""
    for node in nest.roots:
        buffer = accumulator(lowerer, node)
        if buffer != lowerer.buffers[node]:
            narrowed = partial(lambda buffer, dtype, where: cast(Load(buffer, where), dtype), buffer, node.dtype)
            fill_part(lowerer, lowerer.buffers[node], node, nest, scope, narrowed)


def accumulator(lowerer: Lowerer, node: Node) -> Buffer:
    """The buffer in which a column reduction is carried."""
    return lowerer.accumulators.get(node, lowerer.buffers[node])


def add_row(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Add what the iteration of the loops around `scope` gives to column reductions."""
    axes = [axis for axis in range(lowerer.depth(scope), len(nest.index)) if isinstance(nest.index[axis], Var)]
    extents = lowerer.extents([nest.space[axis] for axis in axes])
    inner = lowerer.enter_all(scope, [nest.vars[axis] for axis in axes], extents)
    add_rows(lowerer, nest, [nest.index], inner)
    lowerer.leave(inner, scope)


def add_blocks(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Rows added several at a time, the results loaded and stored once for all of them; then the rest."""
    *outer, row, column = nest.vars
    *sizes, rows, columns = lowerer.extents(nest.space)
    around = lowerer.depth(scope)
    most = ROW_BLOCK if around or nest.ops > LONG_BLOCK_OPS else LONG_BLOCK
    blocks = lowerer.bind(quotient(rows, integer(most)), "blocks")
    done = lowerer.bind(multiply(blocks, integer(most)), "done")
    for count, block in ((blocks, most), (lowerer.bind(remainder(rows, integer(most)), "rest"), 1)):
        loops, extents = (*outer, row, column)[around:], (*sizes, count, columns)[around:]
        inner = lowerer.enter_all(scope, loops, extents)
        first = multiply(row, integer(block)) if block > 1 else add(row, done)
        indices = [(*outer, add(first, integer(step)), column) for step in range(block)]
        add_rows(lowerer, nest, indices, inner)
        lowerer.leave(inner, scope)


def add_rows(lowerer: Lowerer, nest: Nest, indices: Sequence[Index], scope: Scope) -> None:
    """Accumulate the elements at `indices` of the operands, which differ in reduced axes only."""
    stores = []
    for node in nest.roots:
        fold, buffer = fold_of(node), accumulator(lowerer, node)
        dtype = fold.dtypes[0]
        kept, _ = split_axes(indices[0], fold.axes)
        where = lowerer.place(node, kept)
        value: Expr = Load(buffer, where)
        for index in indices:
            term = cast(lowerer.fold_term(node, fold, *split_axes(index, fold.axes)), dtype)
            value = filled(fold.step[0], (value, term, ZERO), dtype)
        stores.append(Store(buffer, where, value))
    scope.body.extend(stores)


def fill_part(
    lowerer: Lowerer, buffer: Buffer, node: Node, nest: Nest, scope: Scope, value: Callable[[Expr], Expr]
) -> None:
    """One loop that stores a value for every element of a reduction's result, of those that belong to the iteration of
    the loops around `scope`."""
    depth, around = lowerer.depths.get(node, 0), lowerer.depth(scope)
    extents = lowerer.extents(node.type.shape[around:])
    before = lowerer.position((*nest.index[depth:around], *(ZERO for _ in extents)), node.type.shape[depth:])
    var = loop_vars(around + 1)[-1]
    inner = lowerer.enter(scope, var, lowerer.count(extents))
    where = add(before, var)
    inner.body.append(Store(buffer, where, value(where)))
    lowerer.leave(inner, scope)


def fold_of(node: Node) -> Fold:
    """How a reduction is carried out."""
    lowering = node.op.lower(node)
    assert isinstance(lowering, Fold)
    return lowering
