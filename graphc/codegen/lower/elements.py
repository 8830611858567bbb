"""The elements of values: what one is made of, down to what lies in memory; reductions among them.

In: a `Lowerer`, a node and an index. Out: an expression, and statements in the scopes that it needs names in. As an
example, the element at (i,) of `exp(x).sum(axis=1)`, for a matrix `x` in the buffer `x`, asked for in the loop `i`, is
the name `sum`, and these statements stand in that loop:

    sum = 0.0
    for r in range(x_1):
        let x_ = x[i * x_1 + r]
        let exp_ = exp(x_)
        sum = accumulate(sum, exp_)

The element of a value at an index is asked for; asking asks for the elements it needs. Every value gets a name in the
outermost loop in which its index is known, so what does not change in a loop is computed outside it, and a reduction
becomes a loop of its own in that place. A value that is asked for twice at one index is named once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from graphc.codegen.lower.scopes import Scope, Scopes
from graphc.codegen.schedule.nodes import Sizing, fold_vars, is_written_out, variables_of
from graphc.codegen.schedule.plan import UNLABELLED, Labels, PlanMemory
from graphc.codegen.schedule.ranges import gathered
from graphc.errors import StepSizeError
from graphc.ir.lowering import Fold, Iota, Scalar, SegmentNumber, View
from graphc.ir.node import LEAVES, SIZE, Index, Node, Size, constant_value, describe
from graphc.loopir import ir, operators, visit
from graphc.loopir.syntax import filled, operator_of
from graphc.startup.record import fresh, record, replace

# What is known before a function is written --------------------------------------------------------------------------


@record(eq=False)
class Storage:
    """The memory of values while a kernel or a body is written: the fields of `PlanMemory`, leaves among the `buffers`.
    `rows`: for a value that is one row of its buffer, which one."""

    buffers: Mapping[Node, ir.Buffer]
    row_depths: Mapping[Node, int] = fresh(factory=dict)
    block_rows: Mapping[Node, Size] = fresh(factory=dict)
    accumulators: Mapping[Node, ir.Buffer] = fresh(factory=dict)
    workspaces: Mapping[Node, Sequence[ir.Buffer]] = fresh(factory=dict)
    rows: Mapping[Node, Size] = fresh(factory=dict)

    def within(
        self,
        memory: PlanMemory,
        sources: Mapping[Node, Node],
        results: Iterable[ir.Buffer],
        rows: Mapping[Node, Size] = {},
    ) -> Storage:
        """The storage of a body with this memory. What others store is not known there, since it may not be computed
        yet, or only in another body.

        `sources`: for variables of the body the values whose buffers they have; `results`: the buffers that the body
        may write under their names; `rows`: values that are one row of theirs.
        """
        known = {buffer.name: buffer for buffer in results}
        inherited = {leaf: self.rows[source] for leaf, source in sources.items() if source in self.rows}
        return Storage(
            buffers={
                **{node: buffer for node, buffer in self.buffers.items() if node.op in LEAVES},
                **{leaf: self.buffers[source] for leaf, source in sources.items()},
                **{node: known.get(buffer.name, buffer) for node, buffer in memory.buffers.items()},
            },
            row_depths=memory.row_depths,
            block_rows=memory.block_rows,
            accumulators=memory.accumulators,
            workspaces=memory.workspaces,
            rows={**{node: row for node, row in self.rows.items() if node.op in LEAVES}, **inherited, **rows},
        )


def storage_of(memory: PlanMemory) -> Storage:
    """The storage of a kernel."""
    return Storage(
        buffers={**memory.leaves, **memory.buffers},
        row_depths=memory.row_depths,
        block_rows=memory.block_rows,
        accumulators=memory.accumulators,
        workspaces=memory.workspaces,
    )


@record(eq=False)
class KnownSizes:
    """The sizes of arguments: `names` of the parameters that hold them. `failure`: in the function that computes sizes,
    before which nothing is checked, the code of a failed check of indices; None in a kernel, where sizes that must be
    equal are known to be."""

    names: Mapping[Node, str]
    sizing: Sizing
    failure: int | None = None

    def canonical(self, size: Size) -> Size:
        """A size; once sizes are checked, the first of those that it must be equal to."""
        return self.sizing.of(size) if self.failure is None else size

    def leaf(self, leaf: Node) -> ir.Expr:
        """A size of an argument. Raises StepSizeError for one that changes from step to step of a scan."""
        size = self.canonical(leaf)
        if isinstance(size, int):
            return ir.integer(size)
        name = self.names.get(size) or self.names.get(leaf)
        if name is None:
            raise StepSizeError(f"{describe(leaf)} is not known before a step of a loop")
        return ir.Var(name, ir.INDEX)


# Elements -------------------------------------------------------------------------------------------------------------


@record(eq=False)
class Named:
    """The values that have names in the function that is written, each until its scope is left: elements of arrays,
    scalars, and for numbers of segments that a loop goes over the one at hand."""

    elements: dict[tuple[Node, Index], ir.Expr] = fresh(factory=dict)
    scalars: dict[Node, ir.Expr] = fresh(factory=dict)
    segments: dict[Node, ir.Expr] = fresh(factory=dict)


@record(eq=False)
class Lowerer:
    """Writes the elements of values, wherever they are asked for, into the scopes of one function.

    `unstored`: the values that the part of a plan at hand and those after it store: they are read from no buffer yet.
    Without buffers every value is computed where it is needed, the way sizes are. `callbacks`: the user's functions
    that are called, by their name in the source; `step_loops`: the variables of loops over the steps of scans. A body
    is written by a `Lowerer` of its own, which shares all but storage, sizes and labels.
    """

    scopes: Scopes
    storage: Storage
    sizes: KnownSizes
    labels: Labels = UNLABELLED
    unstored: set[Node] = fresh(factory=set)
    named: Named = fresh(factory=Named)
    callbacks: dict[str, Node] = fresh(factory=dict)
    step_loops: set[ir.Var] = fresh(factory=set)

    def before(self, roots: Iterable[Node]) -> Lowerer:
        """A lowerer for the statements before and while some values are stored."""
        return replace(self, unstored=set(roots))

    def stored(self, roots: Iterable[Node]) -> None:
        """Note that values are in their buffers from here on."""
        self.unstored.difference_update(roots)

    def finish(self, scope: Scope) -> None:
        """Forget the elements that were named in `scope`: a part of the plan is written."""
        self.scopes.forget(self.named.elements, scope)

    # Sizes and positions --------------------------------------------------------------------------------------

    def size(self, size: Size) -> ir.Expr:
        """The value of a size."""
        size = self.sizes.canonical(size)
        return ir.integer(size) if isinstance(size, int) else self.scalar(size)

    def extents(self, shape: Sequence[Size]) -> tuple[ir.Expr, ...]:
        """The values of sizes."""
        return tuple(self.size(size) for size in shape)

    def count(self, extents: Sequence[ir.Expr]) -> ir.Expr:
        """The number of elements."""
        count: ir.Expr = ir.ONE
        for extent in extents:
            count = ir.multiply(count, extent)
        return self.scopes.name_once(count, "count")  # one name, so that loops of as many iterations are seen to be

    def position(self, index: Index, shape: Sequence[Size]) -> ir.Expr:
        """The flat position of an element, the parts that do not change in an inner loop named outside it."""
        return self.scopes.hoist(ir.ravel(index, self.extents(shape)))

    def buffer_position(self, node: Node, index: Index) -> ir.Expr:
        """The position of an element in the node's buffer, which may hold only the row or block at hand."""
        depth = self.storage.row_depths.get(node, 0)
        if node in self.storage.block_rows:
            index = (self.scopes.row_in_block(index[0]), *index[1:])
        return self.in_buffer(node, self.position(index[depth:], node.type.shape[depth:]))

    def in_buffer(self, node: Node, flat: ir.Expr) -> ir.Expr:
        """The position in the node's buffer of its element at a flat position: the node may be one row of it."""
        if node not in self.storage.rows:
            return flat
        row = ir.multiply(self.size(self.storage.rows[node]), self.count(self.extents(node.type.shape)))
        return ir.add(self.scopes.name_once(self.scopes.hoist(row), "row"), flat)

    def materialised(self, node: Node) -> ir.Buffer | None:
        """The buffer that a value is read from; None where it is computed: nothing is stored there yet, or there is no
        buffer."""
        return None if node in self.unstored else self.storage.buffers.get(node)

    def operand_buffer(self, node: Node) -> ir.Buffer:
        """The buffer of a value that a function takes."""
        buffer = self.materialised(node)
        assert buffer is not None, f"{describe(node)} is given to a function before it is stored"
        return buffer

    def survey(self) -> Survey:
        """An empty survey of what elements read."""
        return Survey(self.materialised, self.extents, self.scalar, self.storage.row_depths)

    # Elements -------------------------------------------------------------------------------------------------

    def element(self, node: Node, index: Index) -> ir.Expr:
        """The element of `node` at `index`."""
        if not index:
            return self.scalar(node)
        key = (node, index)
        expr = self.named.elements.get(key)
        if expr is None:
            expr = self.scopes.remember(self.named.elements, key, self._compute(node, index), *index)
        return expr

    def scalar(self, root: Node) -> ir.Expr:
        """The value of a scalar, those it needs named before it, so that a long chain needs no recursion."""
        scalars, pending = self.named.scalars, [root]
        while pending:
            node = pending[-1]
            missing = [arg for arg in self._scalar_operands(node) if arg not in scalars]
            if node in scalars or not missing:
                pending.pop()
                if node not in scalars:
                    self.name_scalar(node, self._compute(node, ()))
            else:
                pending.extend(missing)
        return scalars[root]

    def name_scalar(self, node: Node, value: ir.Expr) -> None:
        """Note the value of a scalar."""
        self.scopes.remember(self.named.scalars, node, value)

    def bind(self, node: Node, value: ir.Expr, iteration: Index = ()) -> ir.Expr:
        """A name after a node's label for a value, no further out than the scope of `iteration`."""
        return self.scopes.bind(value, self.labels(node), iteration)

    def _scalar_operands(self, node: Node) -> Sequence[Node]:
        if node.op in LEAVES or self.materialised(node) is not None:
            return ()
        return node.args if isinstance(node.op.lower(node), Scalar) else ()

    def _compute(self, node: Node, index: Index) -> ir.Expr:
        """The element of a value that has no name yet."""
        value = constant_value(node)
        if value is not None and value.size == 1:
            return ir.literal_const(value.reshape(-1)[0], node.type.dtype)
        if node.op is SIZE:
            return self.sizes.leaf(node)
        if (buffer := self.materialised(node)) is not None:
            row = index[: self.storage.row_depths.get(node, 0)]  # another one in every iteration
            return self.bind(node, ir.Load(buffer, self.buffer_position(node, index)), row)
        lowering = node.op.lower(node)
        match lowering:
            case Scalar(template):
                args = tuple(self.element(arg, index) for arg in node.args)
                return self.bind(node, filled(template, with_dtype(self.scopes, args), node.dtype))
            case View():
                self._check_indices(node, index)
                position, inner = lowering.index(node, index, self._element_here)
                return self.element(node.args[position], inner)
            case Fold():
                result = accumulated(self, node, lowering, index)
                return result if result.dtype == node.dtype else self.bind(node, ir.cast(result, node.dtype))
            case Iota(axis):
                return index[axis]
            case SegmentNumber() if node in self.named.segments:
                return self.named.segments[node]
            case _:
                message = f"a size depends on {describe(node)}, whose value is known only while the kernel runs"
                how = "compute that value by a function of its own, and take it as an input"
                raise StepSizeError(f"{message}; {how}; for x[mask], jnp.where(mask, a, b) has a fixed size")

    def _element_here(self, node: Node, index: Index) -> ir.Expr:
        """An element of an index array, bound in the scope in which its index is known and no further out. Bounds are
        checked at each element: outside a loop without iterations there may be no such element."""
        value = self.element(node, index)
        scope = self.scopes.scope_of_all(index)
        if self.scopes.scope_of(value).depth >= scope.depth:
            return value
        return self.scopes.bind_in(scope, value, self.labels(node))

    def _check_indices(self, node: Node, index: Index) -> None:
        """Check the indices of a gather where sizes are computed: nothing has checked them before."""
        if self.sizes.failure is None:
            return
        for array, size in gathered(node):
            axis: int = node.attrs["axis"]
            element = self.element(array, index[axis : axis + array.ndim])
            value = self.scopes.bind(ir.cast(element, ir.INDEX), "index")
            self.scopes.scope_of(value).body.append(ir.Check(ir.within(value, self.size(size)), self.sizes.failure))


def with_dtype(scopes: Scopes, args: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """Operands of which one at least has a dtype: under CPython literals and loop variables are Python's numbers,
    whose integers never wrap, and which cannot be divided by zero."""
    if not args or not all(isinstance(arg, ir.Const) or scopes.is_loop_var(arg) for arg in args):
        return args
    return (ir.convert(args[0], args[0].dtype), *args[1:])


# Reductions where their result is asked for ---------------------------------------------------------------------------

Unfold: TypeAlias = Callable[[Index], Index]
"""From the variables of the loops of a reduction to the index along the reduced axes."""


def accumulated(lowerer: Lowerer, node: Node, fold: Fold, index: Index) -> ir.Expr:
    """A reduction, in its accumulator's dtype: its loops stand in the scope in which the index is known.

    Several reduced axes are one loop where every operand is read in the order in which it lies in memory.
    """
    extents = lowerer.extents(fold.sizes(node))
    if len(extents) > 1 and lowerer.sizes.failure is None:
        survey = lowerer.survey()
        survey.term(node, fold, index, ir.unravel(fold_vars(node, fold)[0], extents))
        if survey.is_in_order():
            count = (lowerer.count(extents),)
            return _reduce(lowerer, node, fold, index, count, lambda loops: ir.unravel(loops[0], extents))
    return _reduce(lowerer, node, fold, index, extents, tuple)


def _reduce(
    lowerer: Lowerer, node: Node, fold: Fold, index: Index, extents: Sequence[ir.Expr], unfold: Unfold
) -> ir.Expr:
    """The loops of a reduction over `extents`."""
    iterations, in_kernel = [ir.int_value(extent) for extent in extents], lowerer.sizes.failure is None
    if in_kernel and is_written_out(node, iterations):
        return _unrolled(lowerer, node, fold, index, [iteration or 0 for iteration in iterations], unfold)
    length = iterations[-1] if iterations else 1
    is_row = len(extents) == 1 and fold.axes[-1] == node.args[0].ndim - 1
    if fold.search and is_row and in_kernel and (length is None or length > ir.SHORT):
        return _search_blocks(lowerer, node, fold, index, extents[0], unfold)
    if (length is None or length > ir.BLOCK) and in_kernel:
        narrow = node.dtype == "float32" and operator_of(fold.term) is operators.CASTS["float64"]
        is_sum = fold.dtypes == ("float64",) and operator_of(fold.step[0]) is operators.ACCUMULATE
        if is_sum and (node.dtype == "float64" or narrow):
            return _sum_by_blocks(lowerer, node, fold, index, extents, unfold)
    scopes = lowerer.scopes
    outer = scopes.scope_of_all(index)
    accumulators = [scopes.var(lowerer.labels(node), dtype) for dtype in fold.dtypes]
    start = [ir.Set(var, ir.start_const(text, var.dtype)) for var, text in zip(accumulators, fold.start, strict=True)]
    loops = _reduced_loops(scopes, len(extents))
    scope = scopes.enter_all(outer, loops, extents)
    scopes.know(scope, *accumulators)
    steps = _fold_step(lowerer, node, fold, index, unfold(loops), accumulators)
    outer.body.extend(start)
    scope.body.extend(steps)
    scopes.leave(scope, outer)
    scopes.know(outer, *accumulators)
    return accumulators[fold.result]


def _unrolled(
    lowerer: Lowerer, node: Node, fold: Fold, index: Index, iterations: Sequence[int], unfold: Unfold
) -> ir.Expr:
    """A reduction over a few elements, term by term."""
    sizes = lowerer.extents(fold.sizes(node))
    values: list[ir.Expr] = [ir.start_const(text, dtype) for text, dtype in zip(fold.start, fold.dtypes, strict=True)]
    if operator_of(fold.step[0]) in (operators.ACCUMULATE_MINIMUM, operators.ACCUMULATE_MAXIMUM):
        places = [unfold(tuple(map(ir.integer, iteration))) for iteration in np.ndindex(*iterations)]
        terms = [ir.cast(fold_term(lowerer, node, fold, index, place), fold.dtypes[0]) for place in places]
        return _in_pairs(lowerer, node, fold, terms)
    for iteration in np.ndindex(*iterations):
        reduced = unfold(tuple(map(ir.integer, iteration)))
        term = fold_term(lowerer, node, fold, index, reduced)
        if len(values) == 1:
            term = ir.cast(term, fold.dtypes[0])
        operands = with_dtype(lowerer.scopes, (*values, term, ir.ravel(reduced, sizes)))
        steps = zip(fold.step, fold.dtypes, strict=True)
        values = [lowerer.bind(node, filled(step, operands, dtype)) for step, dtype in steps]
    return values[fold.result]


def _in_pairs(lowerer: Lowerer, node: Node, fold: Fold, terms: list[ir.Expr]) -> ir.Expr:
    """An extreme of several terms, of pairs first: comparisons that do not wait for each other."""
    while len(terms) > 1:
        pairs = [(*terms[place : place + 2], ir.ZERO) for place in range(0, len(terms) - 1, 2)]
        rest = terms[2 * len(pairs) :]
        terms = [lowerer.bind(node, filled(fold.step[0], pair, fold.dtypes[0])) for pair in pairs] + rest
    return terms[0]


def _reduced_loops(scopes: Scopes, count: int) -> tuple[ir.Var, ...]:
    return tuple(scopes.var(f"r{n}" if n else "r") for n in range(count))


def _enter_blocks(scopes: Scopes, scope: Scope, length: ir.Expr) -> tuple[Scope, ir.Var, Scope, ir.Expr]:
    """A loop over blocks of an axis, and the loop over one: their scopes, the block's number and the index."""
    block, step = scopes.var("block"), scopes.var("r")
    iteration = scopes.enter(scope, block, ir.blocks_of(length))
    return iteration, block, *_enter_block(scopes, iteration, length, block, step)


def _enter_block(scopes: Scopes, scope: Scope, length: ir.Expr, block: ir.Expr, step: ir.Var) -> tuple[Scope, ir.Expr]:
    """The loop over one block of an axis, the last of which is shorter; and the index along the axis."""
    inner = scopes.enter(scope, step, ir.iterations_in_block(length, block))
    return inner, ir.add(ir.multiply(block, ir.integer(ir.BLOCK)), step)


def _sum_by_blocks(
    lowerer: Lowerer, node: Node, fold: Fold, index: Index, extents: Sequence[ir.Expr], unfold: Unfold
) -> ir.Expr:
    """A sum by blocks, each summed with the partial sums of a vector.

    The blocks' sums of float64 are a compensated sum: two floats, the sum and its error term, what additions have
    rounded away. The error then does not grow with the length, where the loop's own partial sums would lose what n / 32
    additions round away. Blocks of float32 are summed in float32, twice as many elements at a time, their sums in
    float64.
    """
    scopes = lowerer.scopes
    outer = scopes.scope_of_all(index)
    total, part = scopes.var(lowerer.labels(node), "float64"), scopes.var("part", node.dtype)
    error = scopes.var("error", "float64") if part.dtype == total.dtype else None
    if error is None:
        fold = Fold(fold.sizes, fold.operands, "_0", fold.start, fold.step, (part.dtype,), fold.result, fold.axes)
    *before, length = extents
    loops = _reduced_loops(scopes, len(before))
    iteration, _, scope, place = _enter_blocks(scopes, scopes.enter_all(outer, loops, before), length)
    scopes.know(scope, part)
    steps = _fold_step(lowerer, node, fold, index, unfold((*loops, place)), [part])
    carried = [total] if error is None else [error, total]
    outer.body.extend(ir.Set(var, ir.start_const("0", var.dtype)) for var in carried)
    iteration.body.append(ir.Set(part, ir.start_const("0", part.dtype)))
    scope.body.extend(steps)
    scopes.leave(scope, iteration)
    whole = ir.apply(operators.ACCUMULATE, total, ir.cast(part, total.dtype))
    iteration.body.extend([ir.Set(total, whole)] if error is None else ir.add_compensated(total, error, part))
    scopes.leave(iteration, outer)
    scopes.know(outer, *carried)
    return total if error is None else lowerer.bind(node, ir.apply(operators.ADD_ERROR, total, error))


def _search_blocks(lowerer: Lowerer, node: Node, fold: Fold, index: Index, length: ir.Expr, unfold: Unfold) -> ir.Expr:
    """Find the first position of an extreme: first the block that has it, by the extremes of all blocks, which vector
    code computes, then the position in that block."""
    scopes = lowerer.scopes
    outer = scopes.scope_of_all(index)
    (_, dtype), (_, worst) = fold.dtypes, fold.start
    where, best, part = scopes.var("found"), scopes.var("best", dtype), scopes.var("part", dtype)
    iteration, block, scope, place = _enter_blocks(scopes, outer, length)
    step = filled(fold.search, (part, fold_term(lowerer, node, fold, index, unfold((place,)))), dtype)
    outer.body.extend((ir.Set(where, ir.ZERO), ir.Set(best, ir.start_const(worst, dtype))))
    iteration.body.append(ir.Set(part, ir.start_const(worst, dtype)))
    scope.body.append(ir.Set(part, step))
    scopes.leave(scope, iteration)
    scopes.know(iteration, where, best, part)
    values = [
        scopes.bind(filled(step, (where, best, part, block), var.dtype), var.name)
        for step, var in zip(fold.step, (where, best), strict=True)
    ]
    iteration.body.extend((ir.Set(where, values[0]), ir.Set(best, values[1])))
    scopes.leave(iteration, outer)
    scopes.know(outer, where, best)
    first, spot = scopes.var(lowerer.labels(node)), scopes.var("r")
    inside, place = _enter_block(scopes, outer, length, where, spot)
    term = fold_term(lowerer, node, fold, index, unfold((place,)))
    hit = ir.apply(operators.SELECT, ir.same_value(term, best), spot, ir.integer(ir.BLOCK))
    outer.body.append(ir.Set(first, ir.integer(ir.BLOCK)))
    inside.body.append(ir.Set(first, ir.apply(operators.ACCUMULATE_MINIMUM, first, hit)))
    scopes.leave(inside, outer)
    scopes.know(outer, first)
    return lowerer.bind(node, ir.add(ir.multiply(where, ir.integer(ir.BLOCK)), first))


def _fold_step(
    lowerer: Lowerer, node: Node, fold: Fold, index: Index, reduced: Index, accumulators: Sequence[ir.Var]
) -> list[ir.Stmt]:
    """The next values of a reduction's accumulators, from the term at an index into the reduced axes."""
    term = fold_term(lowerer, node, fold, index, reduced)
    if len(accumulators) == 1 and term.dtype != accumulators[0].dtype:
        term = ir.cast(term, accumulators[0].dtype)
    operands = (*accumulators, term, ir.ravel(reduced, lowerer.extents(fold.sizes(node))))
    if len(accumulators) == 1:
        return [ir.Set(accumulators[0], filled(fold.step[0], operands, accumulators[0].dtype))]
    steps = [filled(step, operands, var.dtype) for step, var in zip(fold.step, accumulators, strict=True)]
    values = [lowerer.scopes.bind(step, var.name) for step, var in zip(steps, accumulators, strict=True)]
    return [ir.Set(var, value) for var, value in zip(accumulators, values, strict=True)]


def fold_term(lowerer: Lowerer, node: Node, fold: Fold, index: Index, loops: Index) -> ir.Expr:
    """The term of a reduction at an index, and an index into the reduced axes."""
    operands = fold.operands(node, index, loops)
    elements = tuple(lowerer.element(node.args[position], inner) for position, inner in operands)
    dtype = node.args[operands[0][0]].dtype if fold.term == "_0" else fold.dtypes[0]
    return lowerer.scopes.bind(filled(fold.term, elements, dtype), "term")


# --- the memory that elements read ------------------------------------------------------------------------------------
# The memory that elements read, told from index maps before anything is written; loops that are cut into tiles.
#
# In: the elements that are wanted of some nodes. Out: a `Survey`: the positions of all that is read, in terms of loop
# variables and sizes; and what follows: whether one loop over all elements reads memory in order, where reductions have
# loops of their own, and along which loop an operand lies that the innermost loop reads across. As an example, for
# `x + y.T` at (i, j) the positions are `i * x_1 + j` of `x` and `j * y_1 + i` of `y`: `loop_across` gives `i`, since
# `y` lies along `i` and the innermost loop `j` goes across its rows. Both loops then go by tiles: the lines of memory
# that a tile touches stay in the nearest cache until all of each is used; a whole row would drop them in between.


class Survey:
    """The `loads` of some elements, as buffers and positions; the indices that are `values`; and the indices at which
    reductions are carried out in loops.

    `materialised` tells the buffer that a value is read from, `extents` and `scalar` sizes and
    scalars, `depths` how many loops pick a buffer's row.
    """

    def __init__(
        self,
        materialised: Callable[[Node], ir.Buffer | None],
        extents: Callable[[Sequence[Size]], tuple[ir.Expr, ...]],
        scalar: Callable[[Node], ir.Expr],
        depths: Mapping[Node, int],
    ) -> None:
        self.materialised, self.extents, self.scalar, self.depths = materialised, extents, scalar, depths
        self.loads: dict[tuple[ir.Buffer, ir.Expr], None] = {}
        self.values: list[ir.Expr] = []
        self.reduced_at: list[Index] = []
        self.seen: set[tuple[Node, Index]] = set()

    def element(self, node: Node, index: Index) -> ir.Expr:
        """An element that is wanted, as a value of which nothing is known; scalars, of which sizes are, as they are."""
        if not index:
            return self.scalar(node)
        if (node, index) not in self.seen:
            self.seen.add((node, index))
            self.look(node, index)
        return ir.Opaque(node, index, node.type.dtype)

    def look(self, node: Node, index: Index) -> None:
        value = constant_value(node)
        if node.op is SIZE or (value is not None and value.size == 1):
            return
        if (buffer := self.materialised(node)) is not None:
            self.loads[buffer, self.position(node, index)] = None
            return
        match lowering := node.op.lower(node):
            case Scalar():
                for arg in node.args:
                    self.element(arg, index)
            case View():
                argument, inner = lowering.index(node, index, self.element)
                self.element(node.args[argument], inner)
            case Iota(axis):
                self.values.append(index[axis])
            case Fold():
                self.fold(node, lowering, index)

    def position(self, node: Node, index: Index) -> ir.Expr:
        depth = self.depths.get(node, 0)
        return ir.ravel(index[depth:], self.extents(node.type.shape[depth:]))

    def fold(self, node: Node, fold: Fold, index: Index) -> None:
        iterations = [ir.int_value(extent) for extent in self.extents(fold.sizes(node))]
        if is_written_out(node, iterations):
            for place in np.ndindex(*(iteration or 0 for iteration in iterations)):
                self.term(node, fold, index, tuple(map(ir.integer, place)))
        else:
            self.reduced_at.append(index)
            self.term(node, fold, index, fold_vars(node, fold))

    def term(self, node: Node, fold: Fold, index: Index, reduced: Index) -> None:
        for argument, inner in fold.operands(node, index, reduced):
            self.element(node.args[argument], inner)

    @property
    def positions(self) -> list[ir.Expr]:
        """The positions of all loads."""
        return [position for _, position in self.loads]

    def is_in_order(self) -> bool:
        """Tell whether everything is read in the order in which it lies in memory: no index is divided."""
        exprs = (*self.positions, *self.values)
        parts = (part for expr in exprs for part in ir.subexpressions(expr))
        return not any(
            isinstance(part, ir.Apply) and part.dtype == ir.INDEX and part.op in (operators.FLOORDIV, operators.MOD)
            for part in parts
        )

    def reduces_in(self, var: ir.Var) -> bool:
        """Tell whether a reduction has loops of its own inside the loop of a variable."""
        return any(var in variables_of(index) for index in self.reduced_at)


def loop_across(positions: Iterable[ir.Expr], loops: Sequence[ir.Var], extents: Sequence[ir.Expr]) -> ir.Var | None:
    """The loop that is to be cut into tiles together with the innermost one; None where no operand is read across."""
    if len(loops) < 2 or is_short(extents[-1]):
        return None
    long = [var for var, extent in zip(loops[:-1], extents, strict=False) if not is_short(extent)]
    across: Counter[ir.Var] = Counter()
    for position in positions:
        if visit.stride(position, loops[-1], {}) is None:
            across.update(var for var in long if visit.stride(position, var, {}) == 1)
    return across.most_common(1)[0][0] if across else None


def is_short(size: ir.Expr) -> bool:
    """Tell whether a loop is known to have no more iterations than a tile."""
    iterations = ir.int_value(size)
    return iterations is not None and iterations <= ir.TILE
