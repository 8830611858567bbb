"""Nests of loops that compute elements and store them, several writes of one result, and checks of indices.

In: a nest of kind `loops`, `full reduction`, `writes` or `check`, the `Lowerer` that writes the kernel, and the scope
in which it belongs. Out: statements at the end of that scope.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.lower.access import Survey
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.lower.tiling import loop_across
from graphc.codegen.schedule.plan import Nest, Plan, loop_vars, unrolls
from graphc.ir.lowering import Write, Writes
from graphc.ir.node import Index, Node
from graphc.loopir import ir
from graphc.loopir.build import cast, start_const, within
from graphc.loopir.operators import (
    ACCUMULATE_MAXIMUM,
    ACCUMULATE_MINIMUM,
    ADD,
    EQ,
    GE,
    INFIX,
    LT,
    MINIMUM,
    NEG,
    OR,
    SELECT,
    SUB,
)

UNSIGNED = ("uint8", "uint16", "uint32")
NARROW = ("int32", *UNSIGNED)
"""Dtypes of indices that are compared as they are: a vector has twice as many of them as of int64, or more."""


def lower_nest(lowerer: Lowerer, nest: Nest, plan: Plan, scope: Scope) -> None:
    match nest.kind:
        case "loops":
            loops(lowerer, nest, scope)
        case "full reduction":
            store_roots(lowerer, nest, scope, ())
        case "writes":
            writes(lowerer, nest, scope)
        case "check":
            check(lowerer, nest, plan, scope)
        case "guard":
            guard(lowerer, nest, plan, scope)


def loops(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The loops of a nest that do not stand around `scope` already, as one loop where that is possible."""
    if nest.segments is not None:
        positions_of_segments(lowerer, nest, nest.segments, scope)
        return
    index, depth = nest.index, lowerer.depth(scope)
    inner = [axis for axis in range(depth, len(index)) if isinstance(index[axis], ir.Var)]
    loops, extents = [nest.vars[axis] for axis in inner], lowerer.extents([nest.space[axis] for axis in inner])
    if len(inner) > 1 and is_flat(lowerer, nest, scope):
        return
    if not loops:
        store_roots(lowerer, nest, scope, index)
        return
    survey, iterations = survey_of(lowerer, nest, index), [index]
    if unrolls([nest.space[inner[-1]]]) and survey.reduces_in(loops[-1]):
        first, last = index[: inner[-1]], index[inner[-1] + 1 :]
        iterations = [(*first, ir.integer(iteration), *last) for iteration in range(ir.int_value(extents[-1]) or 0)]
        innermost = lowerer.enter_all(scope, loops[:-1], extents[:-1])
    elif not survey.reduced_at and (across := loop_across(survey.positions, loops, extents)):
        innermost = enter_tiles(lowerer, scope, loops, extents, across)
    else:
        innermost = lowerer.enter_all(scope, loops, extents)
    store_roots(lowerer, nest, innermost, *iterations)
    lowerer.leave(innermost, scope)


def positions_of_segments(lowerer: Lowerer, nest: Nest, numbers: Node, outer: Scope) -> None:
    """The loops of a nest of which the first goes over segments. Each segment has rows of the results to itself."""
    first, *rest = nest.vars
    scope = lowerer.enter_positions(outer, numbers, first)
    assert scope.parent is not None
    scope.parent.apart = tuple(lowerer.buffers[root] for root in nest.roots if root in lowerer.buffers)
    innermost = lowerer.enter_all(scope, rest, lowerer.extents(nest.space[1:]))
    store_roots(lowerer, nest, innermost, (first, *nest.index[1:]))
    lowerer.leave(innermost, outer)


def survey_of(lowerer: Lowerer, nest: Nest, index: Index) -> Survey:
    """What the values of a nest read at an index."""
    survey = Survey(lowerer.materialised, lowerer.extents, lowerer.scalar, lowerer.depths)
    for root in nest.roots:
        survey.element(root, index)
        if root in lowerer.buffers:
            survey.values.append(survey.position(root, index))
    return survey


def enter_tiles(
    lowerer: Lowerer, scope: Scope, loops: Sequence[ir.Var], extents: Sequence[ir.Expr], across: ir.Var
) -> Scope:
    """Loops of which those over `across` and over the last axis go by tiles, the loops over one tile innermost.

    The others stand outside them, so that the rest of a line of memory, which the next tile needs, is soon read.
    """
    cut: list[tuple[ir.Var, ir.Var, ir.Expr]] = []
    for var, extent in zip(loops, extents, strict=True):
        if var in (across, loops[-1]):
            cut.append((var, ir.Var(lowerer.names.fresh(f"{var.name}_tile"), ir.INDEX), extent))
        else:
            scope = lowerer.enter(scope, var, extent)
    for _, tile, extent in cut:
        scope = lowerer.enter(scope, tile, ir.blocks_of(extent, ir.TILE))
    for var, tile, extent in cut:
        iteration = ir.Var(lowerer.names.fresh(f"{var.name}_in"), ir.INDEX)
        scope = lowerer.enter(scope, iteration, ir.iterations_in_block(extent, tile, ir.TILE))
        scope.place, lowerer.scopes[var] = var, scope
        scope.body.append(ir.Let(var, ir.add(ir.multiply(tile, ir.integer(ir.TILE)), iteration)))
    return scope


def is_flat(lowerer: Lowerer, nest: Nest, scope: Scope) -> bool:
    """One loop over all elements, where every operand is read in the order in which it lies in memory."""
    depth = lowerer.depth(scope)
    var = nest.vars[depth]
    extents = lowerer.extents(nest.space[depth:])
    index = (*nest.index[:depth], *ir.unravel(var, extents))
    if not survey_of(lowerer, nest, index).is_in_order():
        return False
    inner = lowerer.enter(scope, var, lowerer.count(extents))
    store_roots(lowerer, nest, inner, index)
    lowerer.leave(inner, scope)
    return True


def store_roots(lowerer: Lowerer, nest: Nest, scope: Scope, *indices: Index) -> None:
    """Compute all values of a nest at some indices, then store them: a buffer that is updated in place is read
    first."""
    stores = []
    for root, index in ((root, index) for root in nest.roots for index in indices):
        value = lowerer.element(root, index)
        if root in lowerer.buffers:
            stores.append(ir.Store(lowerer.buffers[root], lowerer.place(root, index), value))
    scope.body.extend(stores)


def writes(lowerer: Lowerer, nest: Nest, outer: Scope) -> None:
    (node,) = nest.roots
    lowering = node.op.lower(node)
    assert isinstance(lowering, Writes)
    regions = [region for region in lowering.regions(node) if not (region.copies and nest.in_place)]
    around, rows = (outer, ()) if nest.segments else enter_own_rows(lowerer, node, regions, outer)
    for region in regions:
        path = loop_vars(len(region.sizes))
        extents = lowerer.extents(region.sizes)
        loops, iterations = path[len(rows) :], [(*rows, *path[len(rows) :])]
        if len(loops) > 1 and unrolls([region.sizes[-1]]):
            loops = loops[:-1]
            iterations = [(*iterations[0][:-1], ir.integer(last)) for last in range(ir.int_value(extents[-1]) or 0)]
        scope, inner = around, slice(len(rows), len(rows) + len(loops))
        if nest.segments is not None and extents[0] == lowerer.size(nest.segments.type.shape[0]):
            scope = lowerer.enter_positions(scope, nest.segments, path[0])
            loops, inner = loops[1:], slice(1, len(loops))
        scope = lowerer.enter_all(scope, loops, extents[inner])
        scope.body.extend([write(lowerer, node, region, index) for index in iterations])
        lowerer.leave(scope, around)
        lowerer.finish(around)
    if around is not outer:
        lowerer.leave(around, outer)
        lowerer.finish(outer)


def write(lowerer: Lowerer, node: Node, region: Write, index: Index) -> ir.Stmt:
    """Stores the element of a region at an index."""
    buffer = lowerer.buffers[node]
    position, inner = region.value(index)
    value = lowerer.element(node.args[position], inner)
    where = lowerer.place(node, region.target(index, lowerer.element))
    if region.accumulate:
        where = lowerer.bind(where, "place")
        operands = (ir.Load(buffer, where), value)
        value = ir.apply(OR if node.dtype == "bool" else ADD, *operands)
    return ir.Store(buffer, where, value)


def some_element(node: Node, index: Index) -> ir.Expr:
    """Stands for an element that nobody asks for yet."""
    return ir.Opaque(node, index, node.dtype)


def enter_own_rows(
    lowerer: Lowerer, node: Node, regions: Sequence[Write], outer: Scope
) -> tuple[Scope, tuple[ir.Expr, ...]]:
    """One loop around all regions, over the first axes that they have in common and along which each writes where it
    stands, so that an iteration has a part of the result to itself; and the index along these axes. The last axis is
    left to each region."""
    extents = [lowerer.extents(region.sizes) for region in regions]
    count = min((len(sizes) - 1 for sizes in extents), default=0)
    for region in regions:
        path = loop_vars(len(region.sizes))
        target = region.target(path, some_element)
        count = next((axis for axis in range(count) if target[axis] != path[axis]), count)
    count = next((axis for axis in range(count) if len({sizes[axis] for sizes in extents}) > 1), count)
    if count < 1:
        return outer, ()
    own, sizes = loop_vars(count), extents[0][:count]
    if count > 1:
        own = (ir.Var(lowerer.names.fresh("row"), ir.INDEX),)
    scope = lowerer.enter(outer, own[0], lowerer.count(sizes))
    scope.apart = (lowerer.buffers[node],)
    return scope, ir.unravel(own[0], tuple(sizes))


def guard(lowerer: Lowerer, nest: Nest, plan: Plan, scope: Scope) -> None:
    """A comparison of sizes, or of values as the plan has them: in terms of other sizes they would be computed anew."""
    wanted = plan.guards[nest.number]
    sides = (
        lowerer.element(side, ()) if isinstance(side, Node) else ir.integer(side)
        for side in (wanted.left, wanted.right)
    )
    scope.body.append(ir.Check(ir.apply(INFIX[wanted.relation], *sides), nest.number + 1))


def check(lowerer: Lowerer, nest: Nest, plan: Plan, outer: Scope) -> None:
    """One comparison for all elements of an index array: with the furthest of them, which vectors find. It is counted
    down from -1 at either end of the axis, or is the largest where none counts from the end."""
    bound = plan.bounds[nest.number]
    size = lowerer.size(bound.size)
    if not nest.vars:
        value = lowerer.bind(cast(lowerer.element(bound.index, ()), ir.INDEX), "index")
        outer.body.append(ir.Check(within(value, size), nest.number + 1))
        return
    dtype = bound.index.dtype if bound.index.dtype in NARROW else ir.INDEX
    furthest = ir.Var(lowerer.names.fresh("furthest"), dtype)
    outer.body.append(ir.Set(furthest, start_const("0", dtype)))
    extents = lowerer.extents(nest.space)
    scope = lowerer.enter_all(outer, nest.vars, extents)
    lowerer.scopes[furthest] = scope
    value = lowerer.bind(cast(lowerer.element(bound.index, nest.vars), dtype), "index")
    if dtype in UNSIGNED:
        scope.body.append(ir.Set(furthest, ir.apply(ACCUMULATE_MAXIMUM, furthest, value)))
        most = ir.apply(SELECT, ir.apply(EQ, lowerer.count(extents), ir.ZERO), ir.integer(-1), cast(furthest, ir.INDEX))
        holds = ir.apply(LT, most, size)
    else:
        back = ir.apply(SUB, start_const("-1", dtype), value)
        scope.body.append(ir.Set(furthest, ir.apply(ACCUMULATE_MINIMUM, furthest, ir.apply(MINIMUM, value, back))))
        holds = ir.apply(GE, cast(furthest, ir.INDEX), ir.apply(NEG, size))
    lowerer.leave(scope, outer)
    lowerer.scopes[furthest] = outer
    outer.body.append(ir.Check(holds, nest.number + 1))
