"""Loops that several nests share, and column reductions, which add rows into their results.

In: a `SharedLoop` of a plan, or a nest of kind `column reduction`, whose roots all reduce the same axes of operands of
the same sizes, and the `Lowerer` that writes the kernel. Out: statements at the end of a scope. The parts of a shared
loop are written one after the other into its body. A reduction over a shared loop is begun before the loop, gets its
share of terms in every iteration, and is finished after it. As an example, `y = x.sum(axis=1)` and `z = x.sum(axis=0)`:

    for i in range(x_1):            # z is begun
        z[i] = 0.0
    for i in range(x_0):
        y = 0.0
        for r in range(x_1):
            y = accumulate(y, x[i * x_1 + r])
        out[i] = y
        for j in range(x_1):        # the terms of z
            z[j] = accumulate(z[j], x[i * x_1 + j])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphc.codegen.lower.calls import Block, lower_block
from graphc.codegen.lower.elements import Lowerer, accumulated, fold_term
from graphc.codegen.lower.nests import ROW_BLOCK, lower_loops
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.nodes import first_reduced, loop_vars, split_axes
from graphc.codegen.schedule.plan import Nest, SharedLoop, nests_of
from graphc.ir.lowering import Fold
from graphc.ir.node import Index, Node, Size
from graphc.loopir import ir, operators
from graphc.loopir.syntax import filled, operator_of
from graphc.startup.record import record

LONG_BLOCK = 8
"""The same where rows come from memory, and little is done with an element."""
LONG_BLOCK_OPS = 12
"""Reductions of more ops than this do much with an element."""


def lower_column_reduction(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """All of a nest of reductions, from their start to their results."""
    begin_rows(lowerer, nest, scope)
    if lowerer.scopes.depth(scope) <= fold_of(nest.roots[0]).axes[-1] == len(nest.space) - 2:
        add_blocks(lowerer, nest, scope)
    else:
        add_row(lowerer, nest, scope)
    finish_rows(lowerer, nest, scope)


def begin_rows(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Start column reductions."""
    for node in nest.roots:
        fold = fold_of(node)
        start = ir.start_const(fold.start[0], fold.dtypes[0])
        fill_part(lowerer, accumulator(lowerer, node), node, nest, scope, partial(lambda value, where: value, start))


def finish_rows(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Bring the results of column reductions to their dtypes."""
    for node in nest.roots:
        buffer = accumulator(lowerer, node)
        if buffer != lowerer.storage.buffers[node]:
            narrowed = partial(
                lambda buffer, dtype, where: ir.cast(ir.Load(buffer, where), dtype), buffer, node.type.dtype
            )
            fill_part(lowerer, lowerer.storage.buffers[node], node, nest, scope, narrowed)


def accumulator(lowerer: Lowerer, node: Node) -> ir.Buffer:
    """The buffer in which a column reduction is carried."""
    return lowerer.storage.accumulators.get(node, lowerer.storage.buffers[node])


def add_row(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Add what the iteration of the loops around `scope` gives to column reductions."""
    axes = [
        axis for axis in range(lowerer.scopes.depth(scope), len(nest.index)) if isinstance(nest.index[axis], ir.Var)
    ]
    extents = lowerer.extents([nest.space[axis] for axis in axes])
    inner = lowerer.scopes.enter_all(scope, [nest.vars[axis] for axis in axes], extents)
    add_rows(lowerer, nest, [nest.index], inner)
    lowerer.scopes.leave(inner, scope)


def add_blocks(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """Rows added several at a time, the results loaded and stored once for all of them; then the rest."""
    *outer, row, column = nest.vars
    *sizes, rows, columns = lowerer.extents(nest.space)
    around = lowerer.scopes.depth(scope)
    most = ROW_BLOCK if around or nest.ops > LONG_BLOCK_OPS else LONG_BLOCK
    blocks = lowerer.scopes.bind(ir.quotient(rows, ir.integer(most)), "blocks")
    done = lowerer.scopes.bind(ir.multiply(blocks, ir.integer(most)), "done")
    rest = lowerer.scopes.bind(ir.remainder(rows, ir.integer(most)), "rest")
    within = lowerer.scopes.enter_all(scope, outer[around:], sizes[around:])
    for count, block in ((blocks, most), (rest, 1)):
        inner = lowerer.scopes.enter_all(within, (row, column), (count, columns))
        first = ir.multiply(row, ir.integer(block)) if block > 1 else ir.add(row, done)
        indices = [(*outer, ir.add(first, ir.integer(step)), column) for step in range(block)]
        add_rows(lowerer, nest, indices, inner)
        lowerer.scopes.leave(inner, within)
    lowerer.scopes.leave(within, scope)


def add_rows(lowerer: Lowerer, nest: Nest, indices: Sequence[Index], scope: Scope) -> None:
    """Accumulate the elements at `indices` of the operands, which differ in reduced axes only."""
    stores = []
    for node in nest.roots:
        fold, buffer = fold_of(node), accumulator(lowerer, node)
        dtype = fold.dtypes[0]
        kept, _ = split_axes(indices[0], fold.axes)
        where = lowerer.buffer_position(node, kept)
        value: ir.Expr = ir.Load(buffer, where)
        for index in indices:
            term = ir.cast(fold_term(lowerer, node, fold, *split_axes(index, fold.axes)), dtype)
            value = filled(fold.step[0], (value, term, ir.ZERO), dtype)
        stores.append(ir.Store(buffer, where, value))
    scope.body.extend(stores)


def fill_part(
    lowerer: Lowerer, buffer: ir.Buffer, node: Node, nest: Nest, scope: Scope, value: Callable[[ir.Expr], ir.Expr]
) -> None:
    """One loop that stores a value for every element of a reduction's result, of those that belong to the iteration of
    the loops around `scope`."""
    depth, around = lowerer.storage.row_depths.get(node, 0), lowerer.scopes.depth(scope)
    extents = lowerer.extents(node.type.shape[around:])
    before = lowerer.position((*nest.index[depth:around], *(ir.ZERO for _ in extents)), node.type.shape[depth:])
    var = loop_vars(around + 1)[-1]
    inner = lowerer.scopes.enter(scope, var, lowerer.count(extents))
    where = ir.add(before, var)
    inner.body.append(ir.Store(buffer, where, value(where)))
    lowerer.scopes.leave(inner, scope)


def fold_of(node: Node) -> Fold:
    """The lowering of a reduction."""
    lowering = node.op.lower(node)
    assert isinstance(lowering, Fold)
    return lowering


Remarks = Callable[[Nest], Sequence[ir.Note]]
"""The comments above a nest."""


# Loops that nests share -----------------------------------------------------------------------------------------------


@record()
class FullReduction:
    """A full reduction that is under way; `error` is what its additions have rounded away."""

    value: ir.Var
    error: ir.Var | None


def lower_shared_loop(lowerer: Lowerer, rows: SharedLoop, remarks: Remarks, scope: Scope) -> None:
    """A loop that nests share."""
    names = lowerer.labels.joined(root for nest in nests_of(rows) for root in nest.roots)
    scope.body.extend(ir.Note(note.text, names) for note in remarks(nests_of(rows)[0])[:1])
    _shared_loop(lowerer, rows, scope, remarks, {})


def _shared_loop(
    lowerer: Lowerer, rows: SharedLoop, scope: Scope, remarks: Remarks, running: dict[Node, FullReduction]
) -> None:
    reductions = [nest for nest in nests_of(rows) if nest.kind in ("column reduction", "full reduction")]
    reductions = [nest for nest in reductions if first_reduced(nest.roots[0]) == rows.depth]
    for nest in reductions:
        scope.body.extend(remarks(nest))
        _begin(lowerer, nest, scope, running)
    if rows.producer is None:
        inner = lowerer.scopes.enter(scope, rows.var, lowerer.size(rows.size))
    else:
        inner = _enter_block(lowerer, rows, rows.producer, scope, remarks)
    for part in rows.body:
        if isinstance(part, SharedLoop):
            _shared_loop(lowerer, part, inner, remarks, running)
        else:
            if part not in reductions:
                inner.body.extend(remarks(part))
            _part(lowerer, part, inner, running)
    lowerer.scopes.leave(inner, scope)
    for nest in reductions:
        _finish(lowerer, nest, scope, running)
        lowerer.stored(nest.roots)


def _enter_block(lowerer: Lowerer, rows: SharedLoop, producer: Nest, scope: Scope, remarks: Remarks) -> Scope:
    """A loop over blocks of rows, in which a function makes those of one; and the loop over these."""
    scopes = lowerer.scopes
    block, begin, number = (scopes.var(name) for name in ("block", "begin", f"{rows.var.name}_in"))
    size, length = lowerer.size(rows.size), lowerer.scopes.name_once(lowerer.size(rows.block), "length")
    outer = scopes.enter(scope, block, ir.apply(operators.BLOCKS, size, length), is_over_blocks=True)
    scopes.know(outer, begin)
    outer.body.append(ir.Let(begin, ir.multiply(block, length)))
    count = lowerer.scopes.bind(ir.apply(operators.MINIMUM, length, ir.subtract(size, begin)), "count", (begin,))
    outer.body.extend(remarks(producer))
    lower_block(lowerer, producer, Block(begin, count), outer)
    lowerer.stored(producer.roots)
    inner = scopes.enter(outer, number, count, axis_index=rows.var)
    inner.body.append(ir.Let(rows.var, ir.add(begin, number)))
    return inner


def _part(lowerer: Lowerer, nest: Nest, scope: Scope, running: dict[Node, FullReduction]) -> None:
    """The statements of one nest in an iteration of the loops around `scope`."""
    match nest.kind:
        case "loops":
            lower_loops(lowerer, nest, scope)
            lowerer.stored(nest.roots)
        case "full reduction":
            _add_part(lowerer, nest, scope, running[nest.roots[0]])
        case "column reduction":
            if first_reduced(nest.roots[0]) >= lowerer.scopes.depth(scope):
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
    value = lowerer.scopes.var(lowerer.labels(node), dtype)
    error = lowerer.scopes.var("error", dtype) if _is_float_sum(fold) else None
    running[node] = FullReduction(value, error)
    if error is not None:
        scope.body.append(ir.Set(error, ir.start_const("0", dtype)))
    scope.body.append(ir.Set(value, ir.start_const(fold.start[0], dtype)))


def _finish(lowerer: Lowerer, nest: Nest, scope: Scope, running: dict[Node, FullReduction]) -> None:
    """Bring the result of a reduction to its dtype and its place."""
    if nest.kind == "column reduction":
        finish_rows(lowerer, nest, scope)
        return
    (node,) = nest.roots
    reduction = running[node]
    value: ir.Expr = reduction.value
    if reduction.error is not None:
        value = lowerer.bind(node, ir.apply(operators.ADD_ERROR, reduction.value, reduction.error))
    value = lowerer.bind(node, ir.cast(value, node.dtype))
    lowerer.name_scalar(node, value)
    if node in lowerer.storage.buffers:
        scope.body.append(ir.Store(lowerer.storage.buffers[node], lowerer.buffer_position(node, ()), value))


# Full reductions ------------------------------------------------------------------------------------------------------


def _is_float_sum(fold: Fold) -> bool:
    return fold.dtypes[0] == "float64" and operator_of(fold.step[0]) is operators.ACCUMULATE


def _add_part(lowerer: Lowerer, nest: Nest, scope: Scope, reduction: FullReduction) -> None:
    """Reduce the part that belongs to an iteration of the loops around `scope`, and add it to the whole. Sums carry
    their rounding error, so that many rows lose no more digits than one."""
    (node,) = nest.roots
    fold = fold_of(node)
    around = lowerer.scopes.depth(scope)
    part = _reduce_rest(lowerer, node, fold, nest.index[:around], len(nest.space) - around)
    if reduction.error is None:
        step = filled(fold.step[0], (reduction.value, part, ir.ZERO), reduction.value.dtype)
        scope.body.append(ir.Set(reduction.value, step))
    else:
        scope.body.extend(ir.add_compensated(reduction.value, reduction.error, part))


def _reduce_rest(lowerer: Lowerer, node: Node, fold: Fold, outer: Index, loops: int) -> ir.Expr:
    """A full reduction over its last axes only, at an index into the others."""
    if not loops:
        return ir.cast(fold_term(lowerer, node, fold, (), outer), fold.dtypes[0])

    def rest_sizes(node: Node) -> tuple[Size, ...]:
        return fold.sizes(node)[len(outer) :]

    def operands(node: Node, index: Index, reduced: Index) -> Sequence[tuple[int, Index]]:
        return fold.operands(node, (), (*index, *reduced))

    axes = tuple(axis for axis in fold.axes if axis >= len(outer))
    rest = Fold(rest_sizes, operands, fold.term, fold.start, fold.step, fold.dtypes, fold.result, axes)
    return accumulated(lowerer, node, rest, outer)
