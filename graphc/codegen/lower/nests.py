"""Nests that compute elements and store them: elementwise loops, writes, checks, recurrences, sums of segments.

In: a nest, the `Lowerer` that writes the kernel, and the scope in which it belongs. Out: statements at the end of that
scope. As an example, the nest `loops over [x_0, x_1]` that stores `out = x + y.T` in a kernel's body:

    for i in range(x_0):
        for j in range(x_1):
            let x_ = x[i * x_1 + j]
            let y_ = y[j * x_0 + i]
            out[i * x_1 + j] = x_ + y_

Where everything is read in the order of memory the loops are one; where an operand is read across its rows, as here,
and neither size is known to be short, they go by tiles.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.lower.elements import Lowerer, Survey, loop_across
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.nodes import loop_vars, opaque_element, segment_count, unrolls
from graphc.codegen.schedule.plan import IndexCheck, Nest
from graphc.ir.facts import below_broadcasts
from graphc.ir.lowering import Recur, Segments, Write, Writes
from graphc.ir.node import Guard, Index, Node
from graphc.loopir import ir, operators
from graphc.loopir.syntax import filled

ROW_BLOCK = 4
"""Rows that sums of rows take at a time."""
UNSIGNED = ("uint8", "uint16", "uint32")
NARROW = ("int32", *UNSIGNED)
"""Dtypes of indices that are compared as they are: a vector has twice as many of them as of int64, or more."""


def lower_loops(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The loops of a nest that do not stand around `scope` already, as one loop where that is possible."""
    if nest.segments is not None:
        positions_of_segments(lowerer, nest, nest.segments, scope)
        return
    index, depth = nest.index, lowerer.scopes.depth(scope)
    inner = [axis for axis in range(depth, len(index)) if isinstance(index[axis], ir.Var)]
    loops, extents = [nest.vars[axis] for axis in inner], lowerer.extents([nest.space[axis] for axis in inner])
    if len(inner) > 1 and lower_flat(lowerer, nest, scope):
        return
    if not loops:
        store_roots(lowerer, nest, scope, index)
        return
    survey, iterations = survey_of(lowerer, nest, index), [index]
    if unrolls([nest.space[inner[-1]]]) and survey.reduces_in(loops[-1]):
        first, last = index[: inner[-1]], index[inner[-1] + 1 :]
        iterations = [(*first, ir.integer(iteration), *last) for iteration in range(ir.int_value(extents[-1]) or 0)]
        innermost = lowerer.scopes.enter_all(scope, loops[:-1], extents[:-1])
    elif not survey.reduced_at and (across := loop_across(survey.positions, loops, extents)):
        innermost = enter_tiles(lowerer, scope, loops, extents, across)
    else:
        innermost = lowerer.scopes.enter_all(scope, loops, extents)
    store_roots(lowerer, nest, innermost, *iterations)
    lowerer.scopes.leave(innermost, scope)


def positions_of_segments(lowerer: Lowerer, nest: Nest, numbers: Node, outer: Scope) -> None:
    """The loops of a nest of which the first goes over segments. Each segment has rows of the results to itself."""
    first, *rest = nest.vars
    written = tuple(lowerer.storage.buffers[root] for root in nest.roots if root in lowerer.storage.buffers)
    scope = enter_positions(lowerer, outer, numbers, first, written)
    innermost = lowerer.scopes.enter_all(scope, rest, lowerer.extents(nest.space[1:]))
    store_roots(lowerer, nest, innermost, (first, *nest.index[1:]))
    lowerer.scopes.leave(innermost, outer)


def survey_of(lowerer: Lowerer, nest: Nest, index: Index) -> Survey:
    """A survey of what the values of a nest read at an index."""
    survey = lowerer.survey()
    for root in nest.roots:
        survey.element(root, index)
        if root in lowerer.storage.buffers:
            survey.values.append(survey.position(root, index))
    return survey


def enter_tiles(
    lowerer: Lowerer, scope: Scope, loops: Sequence[ir.Var], extents: Sequence[ir.Expr], across: ir.Var
) -> Scope:
    """Enter loops of which those over `across` and over the last axis go by tiles, with the loops over one tile
    innermost. All other loops stand outside, so that the next tile reads the rest of a line of memory soon."""
    cut: list[tuple[ir.Var, ir.Var, ir.Expr]] = []
    for var, extent in zip(loops, extents, strict=True):
        if var in (across, loops[-1]):
            cut.append((var, lowerer.scopes.var(f"{var.name}_tile"), extent))
        else:
            scope = lowerer.scopes.enter(scope, var, extent)
    for _, tile, extent in cut:
        scope = lowerer.scopes.enter(scope, tile, ir.blocks_of(extent, ir.TILE))
    for var, tile, extent in cut:
        iteration = lowerer.scopes.var(f"{var.name}_in")
        scope = lowerer.scopes.enter(scope, iteration, ir.iterations_in_block(extent, tile, ir.TILE), axis_index=var)
        scope.body.append(ir.Let(var, ir.add(ir.multiply(tile, ir.integer(ir.TILE)), iteration)))
    return scope


def lower_flat(lowerer: Lowerer, nest: Nest, scope: Scope) -> bool:
    """Write one loop over all elements, if every operand is read in the order in which it lies in memory. Returns
    whether it was written."""
    depth = lowerer.scopes.depth(scope)
    var = nest.vars[depth]
    extents = lowerer.extents(nest.space[depth:])
    index = (*nest.index[:depth], *ir.unravel(var, extents))
    if not survey_of(lowerer, nest, index).is_in_order():
        return False
    inner = lowerer.scopes.enter(scope, var, lowerer.count(extents))
    store_roots(lowerer, nest, inner, index)
    lowerer.scopes.leave(inner, scope)
    return True


def store_roots(lowerer: Lowerer, nest: Nest, scope: Scope, *indices: Index) -> None:
    """Compute all values of a nest at some indices, then store them: a buffer that is updated in place is read
    first."""
    stores = []
    for root, index in ((root, index) for root in nest.roots for index in indices):
        value = lowerer.element(root, index)
        if root in lowerer.storage.buffers:
            stores.append(ir.Store(lowerer.storage.buffers[root], lowerer.buffer_position(root, index), value))
    scope.body.extend(stores)


def lower_writes(lowerer: Lowerer, nest: Nest, outer: Scope) -> None:
    """The writes of a nest that builds one value, region by region."""
    (node,) = nest.roots
    lowering = node.op.lower(node)
    assert isinstance(lowering, Writes)
    regions = [region for region in lowering.regions(node) if not (region.is_copy and nest.in_place)]
    around, rows = (outer, ()) if nest.segments else enter_common_loops(lowerer, node, regions, outer)
    for region in regions:
        path = loop_vars(len(region.sizes))
        extents = lowerer.extents(region.sizes)
        loops, iterations = path[len(rows) :], [(*rows, *path[len(rows) :])]
        if len(loops) > 1 and unrolls([region.sizes[-1]]):
            loops = loops[:-1]
            iterations = [(*iterations[0][:-1], ir.integer(last)) for last in range(ir.int_value(extents[-1]) or 0)]
        scope, inner = around, slice(len(rows), len(rows) + len(loops))
        if nest.segments is not None and extents[0] == lowerer.size(nest.segments.type.shape[0]):
            scope = enter_positions(lowerer, scope, nest.segments, path[0])
            loops, inner = loops[1:], slice(1, len(loops))
        scope = lowerer.scopes.enter_all(scope, loops, extents[inner])
        scope.body.extend([write(lowerer, node, region, index) for index in iterations])
        lowerer.scopes.leave(scope, around)
        lowerer.finish(around)
    if around is not outer:
        lowerer.scopes.leave(around, outer)
        lowerer.finish(outer)


def write(lowerer: Lowerer, node: Node, region: Write, index: Index) -> ir.Stmt:
    """Stores the element of a region at an index."""
    buffer = lowerer.storage.buffers[node]
    position, inner = region.value(index)
    value = lowerer.element(node.args[position], inner)
    where = lowerer.buffer_position(node, region.target(index, lowerer.element))
    if region.accumulate:
        where = lowerer.scopes.bind(where, "place")
        operands = (ir.Load(buffer, where), value)
        value = ir.apply(operators.OR if node.dtype == "bool" else operators.ADD, *operands)
    return ir.Store(buffer, where, value)


def enter_common_loops(
    lowerer: Lowerer, node: Node, regions: Sequence[Write], outer: Scope
) -> tuple[Scope, tuple[ir.Expr, ...]]:
    """Enter one loop around all regions, over the first axes that they share and along which each region writes at the
    loop variable. An iteration then owns its part of the result. Also returns the index along these axes. The last axis
    is left to each region."""
    extents = [lowerer.extents(region.sizes) for region in regions]
    count = min((len(sizes) - 1 for sizes in extents), default=0)
    for region in regions:
        path = loop_vars(len(region.sizes))
        target = region.target(path, opaque_element)
        count = next((axis for axis in range(count) if target[axis] != path[axis]), count)
    count = next((axis for axis in range(count) if len({sizes[axis] for sizes in extents}) > 1), count)
    if count < 1:
        return outer, ()
    variables, sizes = loop_vars(count), extents[0][:count]
    if count > 1:
        variables = (lowerer.scopes.var("row"),)
    scope = lowerer.scopes.enter(outer, variables[0], lowerer.count(sizes), disjoint=(lowerer.storage.buffers[node],))
    return scope, ir.unravel(variables[0], tuple(sizes))


def lower_guard(lowerer: Lowerer, nest: Nest, wanted: Guard, scope: Scope) -> None:
    """A comparison of sizes, or of values as the plan has them: in terms of other sizes they would be computed anew."""
    sides = (
        lowerer.element(side, ()) if isinstance(side, Node) else ir.integer(side)
        for side in (wanted.left, wanted.right)
    )
    scope.body.append(ir.Check(ir.apply(operators.INFIX[wanted.relation], *sides), nest.number + 1))


def lower_check(lowerer: Lowerer, nest: Nest, check: IndexCheck, outer: Scope) -> None:
    """Check all elements of an index array by one comparison: with the element furthest out, which a vector loop
    finds."""
    size, extents = lowerer.size(check.size), lowerer.extents(nest.space)
    same = below_broadcasts(check.index)
    if not same.ndim:  # one index, which nobody asks for where there is no element
        value = lowerer.scopes.bind(ir.cast(lowerer.element(same, ()), ir.INDEX), "index")
        holds = ir.within(value, size)
        if nest.vars:
            holds = ir.apply(operators.OR, holds, ir.apply(operators.EQ, lowerer.count(extents), ir.ZERO))
        outer.body.append(ir.Check(holds, nest.number + 1))
        return
    dtype = check.index.dtype if check.index.dtype in NARROW else ir.INDEX
    furthest = lowerer.scopes.var("furthest", dtype)
    outer.body.append(ir.Set(furthest, ir.start_const("0", dtype)))
    if check.bounds is not None:
        low, high = map(lowerer.size, check.bounds)
        is_within = ir.apply(
            operators.LOGICAL_AND,
            ir.apply(operators.GE, low, ir.apply(operators.NEG, size)),
            ir.apply(operators.LT, high, size),
        )
        extents = (
            lowerer.scopes.name_once(ir.apply(operators.SELECT, is_within, ir.ZERO, extents[0]), "unsure"),
            *extents[1:],
        )
    scope = lowerer.scopes.enter_all(outer, nest.vars, extents)
    lowerer.scopes.know(scope, furthest)
    value = lowerer.scopes.bind(ir.cast(lowerer.element(check.index, nest.vars), dtype), "index")
    if dtype in UNSIGNED:
        scope.body.append(ir.Set(furthest, ir.apply(operators.ACCUMULATE_MAXIMUM, furthest, value)))
        most = ir.apply(
            operators.SELECT,
            ir.apply(operators.EQ, lowerer.count(extents), ir.ZERO),
            ir.integer(-1),
            ir.cast(furthest, ir.INDEX),
        )
        holds = ir.apply(operators.LT, most, size)
    else:
        back = ir.apply(operators.SUB, ir.start_const("-1", dtype), value)
        scope.body.append(
            ir.Set(furthest, ir.apply(operators.ACCUMULATE_MINIMUM, furthest, ir.apply(operators.MINIMUM, value, back)))
        )
        holds = ir.apply(operators.GE, ir.cast(furthest, ir.INDEX), ir.apply(operators.NEG, size))
    lowerer.scopes.leave(scope, outer)
    lowerer.scopes.know(outer, furthest)
    outer.body.append(ir.Check(holds, nest.number + 1))


# Recurrences along one axis -------------------------------------------------------------------------------------------
#
# Along the last axis the carry is a local of the innermost loop. Along another one it is a row, in a temporary, so that
# memory is walked in order and the loop along the row, whose iterations do not depend on each other, is innermost.


def lower_recurrence(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The loops of a nest's one recurrence."""
    (node,) = nest.roots
    recur = node.op.lower(node)
    assert isinstance(recur, Recur)
    if recur.axis == node.ndim - 1:
        _along_rows(lowerer, nest, node, recur, scope)
    else:
        _down_columns(lowerer, nest, node, recur, scope)


def _along_rows(lowerer: Lowerer, nest: Nest, node: Node, recur: Recur, around: Scope) -> None:
    *outer, step = nest.vars
    *sizes, length = lowerer.extents(nest.space)
    scope = lowerer.scopes.enter_all(around, outer, sizes)
    carry = lowerer.scopes.var("carry", recur.dtype)
    scalars = tuple(ir.cast(lowerer.element(arg, ()), recur.dtype) for arg in node.args if not arg.ndim)
    start = filled(recur.start, scalars, recur.dtype) if scalars else ir.start_const(recur.start, recur.dtype)
    scope.body.append(ir.Set(carry, start))
    inner = lowerer.scopes.enter(scope, step, length)
    lowerer.scopes.know(inner, carry)
    value, following = _iteration(lowerer, node, recur, (*outer, _index_along(lowerer, recur, step, length)), carry)
    inner.body.extend((value, ir.Set(carry, following)))
    lowerer.scopes.leave(inner, around)


def _down_columns(lowerer: Lowerer, nest: Nest, node: Node, recur: Recur, around: Scope) -> None:
    axis, extents = recur.axis, lowerer.extents(nest.space)
    buffer = lowerer.storage.accumulators[node]
    outer, step, row = nest.vars[:axis], nest.vars[axis], nest.vars[axis + 1 :]
    scope = lowerer.scopes.enter_all(around, outer, extents[:axis])
    first = lowerer.scopes.var("n")
    start = lowerer.scopes.enter(scope, first, lowerer.count(extents[axis + 1 :]))
    start.body.append(ir.Store(buffer, first, ir.start_const(recur.start, recur.dtype)))
    lowerer.scopes.leave(start, scope)
    iteration = lowerer.scopes.enter(scope, step, extents[axis])
    taken = _index_along(lowerer, recur, step, extents[axis])
    inner = lowerer.scopes.enter_all(iteration, row, extents[axis + 1 :])
    where = lowerer.position(row, nest.space[axis + 1 :])
    carry = lowerer.scopes.bind(ir.Load(buffer, where), "carry")
    value, following = _iteration(lowerer, node, recur, (*outer, taken, *row), carry)
    inner.body.extend((value, ir.Store(buffer, where, following)))
    lowerer.scopes.leave(inner, around)


def _index_along(lowerer: Lowerer, recur: Recur, step: ir.Var, length: ir.Expr) -> ir.Expr:
    """The index along the axis in an iteration."""
    return lowerer.scopes.bind(ir.subtract(ir.subtract(length, ir.ONE), step), "back") if recur.reverse else step


def _iteration(lowerer: Lowerer, node: Node, recur: Recur, index: Index, carry: ir.Expr) -> tuple[ir.Store, ir.Expr]:
    """The store of the element at `index`, and the next carry."""
    elements = tuple(ir.cast(lowerer.element(arg, index), recur.dtype) for arg in node.args if arg.ndim)
    value = lowerer.bind(node, filled(recur.value, (carry, *elements), recur.dtype))
    following = filled(recur.carry, (carry, value, *elements), recur.dtype)
    store = ir.Store(lowerer.storage.buffers[node], lowerer.buffer_position(node, index), ir.cast(value, node.dtype))
    return store, following


# Sums of segments -----------------------------------------------------------------------------------------------------
#
# The number of rows of a segment is known only while the kernel runs. A segment of numbers is summed in a local. Rows
# of several elements are added into the result's row, some at a time, so that memory is walked in order and the loop
# along the row is innermost.

SHORT_SEGMENT = 32
"""Numbers that are added one after the other: of so few, several sums take longer to begin and to end."""
SUMS = 4
"""Sums that terms go to in turn which vectors do not take: an addition waits for the one before it."""


def lower_segments(lowerer: Lowerer, nest: Nest, outer: Scope) -> None:
    """The loops of a nest's one sum of segments."""
    (node,) = nest.roots
    row, starts = nest.vars[0], node.args[1]
    scope, begin, count = enter_segment(lowerer, outer, starts, row)
    (_of_numbers if node.ndim == 1 else _of_rows)(lowerer, nest, node, scope, begin, count)
    lowerer.scopes.leave(scope, outer)


def enter_segment(
    lowerer: Lowerer, outer: Scope, starts: Node, row: ir.Var, disjoint: tuple[ir.Buffer, ...] = ()
) -> tuple[Scope, ir.Expr, ir.Expr]:
    """A loop over segments; where each begins, and how many positions it has. disjoint: buffers of which each segment
    has a part to itself."""
    scopes = lowerer.scopes
    scope = scopes.enter(outer, row, lowerer.size(segment_count(starts)), disjoint=disjoint)
    begin, end = (
        scopes.bind(ir.cast(lowerer.element(starts, (at,)), ir.INDEX), "begin") for at in (row, ir.add(row, ir.ONE))
    )
    return scope, begin, scopes.bind(ir.subtract(end, begin), "count")


def enter_positions(
    lowerer: Lowerer, outer: Scope, numbers: Node, position: ir.Var, disjoint: tuple[ir.Buffer, ...] = ()
) -> Scope:
    """A loop over segments and one over the positions of each, in place of one over all positions."""
    scopes = lowerer.scopes
    segment, step = scopes.var("segment"), scopes.var("r")
    around, begin, count = enter_segment(lowerer, outer, numbers.args[0], segment, disjoint)
    scopes.remember(lowerer.named.segments, numbers, segment)
    scope = scopes.enter(around, step, count, axis_index=position)
    scope.body.append(ir.Let(position, ir.add(begin, step)))
    return scope


def _of_numbers(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope, begin: ir.Expr, count: ir.Expr) -> None:
    lowering = node.op.lower(node)
    assert isinstance(lowering, Segments)
    total, *others = [lowerer.scopes.var(lowerer.labels(node), lowering.dtype) for _ in range(SUMS)]
    scope.body.append(ir.Set(total, ir.start_const("0", total.dtype)))
    with lowerer.scopes.branch(scope) as few:
        _add_terms(lowerer, node, few, begin, count, [total])
    with lowerer.scopes.branch(scope) as many:
        if _reads_in_order(lowerer, node, begin):
            _add_terms(lowerer, node, many, begin, count, [total], operators.ACCUMULATE)
        else:
            many.body.extend(ir.Set(each, ir.start_const("0", each.dtype)) for each in others)
            turns = lowerer.scopes.bind(ir.quotient(count, ir.integer(SUMS)), "turns")
            _add_terms(lowerer, node, many, begin, turns, [total, *others])
            done = ir.add(begin, ir.multiply(turns, ir.integer(SUMS)))
            _add_terms(lowerer, node, many, done, ir.remainder(count, ir.integer(SUMS)), [total])
            many.body.extend(ir.Set(total, ir.apply(operators.ADD, total, each)) for each in others)
    scope.body.append(
        ir.If(ir.apply(operators.LT, count, ir.integer(SHORT_SEGMENT)), tuple(few.body), tuple(many.body))
    )
    lowerer.scopes.know(scope, total)
    scope.body.append(
        ir.Store(lowerer.storage.buffers[node], lowerer.buffer_position(node, nest.index), ir.cast(total, node.dtype))
    )


def _reads_in_order(lowerer: Lowerer, node: Node, begin: ir.Expr) -> bool:
    """Tell whether the terms of a segment follow one another in memory: vectors are not filled element by element."""
    survey = lowerer.survey()
    survey.element(node.args[0], (begin,))
    return not any(isinstance(part, ir.Opaque) for place in survey.positions for part in ir.subexpressions(place))


def _add_terms(
    lowerer: Lowerer,
    node: Node,
    outer: Scope,
    begin: ir.Expr,
    times: ir.Expr,
    sums: Sequence[ir.Var],
    step: operators.Operator = operators.ACCUMULATE_IN_ORDER,
) -> None:
    """A loop of which each iteration adds a term to each of some sums."""
    place = lowerer.scopes.var("r")
    inner = lowerer.scopes.enter(outer, place, times)
    lowerer.scopes.know(inner, *sums)
    first = ir.add(begin, ir.multiply(place, ir.integer(len(sums))))
    for number, each in enumerate(sums):
        term = ir.cast(lowerer.element(node.args[0], (ir.add(first, ir.integer(number)),)), each.dtype)
        inner.body.append(ir.Set(each, ir.apply(step, each, term)))
    lowerer.scopes.leave(inner, outer)
    lowerer.scopes.know(outer, *sums)


def _of_rows(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope, begin: ir.Expr, count: ir.Expr) -> None:
    row, *columns = nest.vars
    buffer, widths = lowerer.storage.buffers[node], lowerer.extents(nest.space[1:])
    inner = lowerer.scopes.enter_all(scope, columns, widths)
    inner.body.append(ir.Store(buffer, lowerer.buffer_position(node, nest.index), ir.start_const("0", node.type.dtype)))
    lowerer.scopes.leave(inner, scope)
    blocks = lowerer.scopes.bind(ir.quotient(count, ir.integer(ROW_BLOCK)), "blocks")
    done = lowerer.scopes.bind(ir.add(begin, ir.multiply(blocks, ir.integer(ROW_BLOCK))), "done")
    place = lowerer.scopes.var("r")
    first = ir.add(begin, ir.multiply(place, ir.integer(ROW_BLOCK)))
    for times, base, block in (
        (blocks, first, ROW_BLOCK),
        (ir.remainder(count, ir.integer(ROW_BLOCK)), ir.add(done, place), 1),
    ):
        around = lowerer.scopes.enter(scope, place, times)
        inner = lowerer.scopes.enter_all(around, columns, widths)
        where = lowerer.buffer_position(node, (row, *columns))
        value: ir.Expr = ir.Load(buffer, where)
        for step in range(block):
            value = ir.apply(
                operators.ACCUMULATE, value, lowerer.element(node.args[0], (ir.add(base, ir.integer(step)), *columns))
            )
        inner.body.append(ir.Store(buffer, where, value))
        lowerer.scopes.leave(inner, scope)
