"""From a plan to a program of loops.

In: a plan and the names of buffers and sizes. Out: the statements of the kernel and of the function that computes
sizes.

The element of a value at an index is asked for; asking asks for the elements it needs. Every value gets a name in the
outermost loop in which its index is known, so what does not change in a loop is computed outside it, and a reduction
becomes a loop of its own in that place. A value that is asked for twice at one index is named once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from graphc.codegen.lower.access import Survey
from graphc.codegen.lower.tiling import loop_across
from graphc.codegen.schedule.plan import Nest, Plan, fold_vars, gathered, loop_vars, unrolls
from graphc.codegen.schedule.sizes import Sizing
from graphc.errors import GraphTypeError
from graphc.ir.node import (
    LEAVES,
    SIZE,
    Fold,
    Index,
    Iota,
    Node,
    Scalar,
    Size,
    View,
    Writes,
    constant_value,
    describe,
)
from graphc.loops.build import (
    add_to_total,
    cast,
    convert,
    literal_const,
    same_value,
    start_const,
    whole_total,
    within,
)
from graphc.loops.ir import (
    BLOCK,
    INDEX,
    ONE,
    TILE,
    ZERO,
    Apply,
    Buffer,
    Check,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Set,
    Stmt,
    Store,
    Var,
    add,
    apply,
    blocks_of,
    int_value,
    integer,
    multiply,
    ravel,
    subexpressions,
    turns_in_block,
    unravel,
)
from graphc.loops.names import Names
from graphc.loops.operators import ACCUMULATE, ACCUMULATE_MINIMUM, ADD, CASTS, OR, SELECT
from graphc.loops.syntax import filled, operator_of
from graphc.startup.record import fresh, record

Unfold: TypeAlias = Callable[[Index], Index]


@record(frozen=False, eq=False)
class Scope:
    """The body of a loop (or of the function) while it is written."""

    parent: Scope | None
    var: Var | None = None
    size: Expr = ZERO
    body: list[Stmt] = fresh(factory=list)
    depth: int = 0
    place: Var | None = None
    """In a loop over one tile of an axis, the index into the axis."""


class Lowerer:
    """Writes the statements of one function.

    `buffers`: the buffer of every leaf and stored value; `size_names`: the parameter that holds each size leaf.
    `accumulators`: where reductions by rows are carried in a wider dtype; `depths`: for a buffer that holds one row,
    the number of loops that pick the row. Without a plan every value is computed where
    it is needed, the way sizes are computed; `unchecked` is then the code of a failed check of a gather's indices.
    """

    def __init__(
        self,
        buffers: Mapping[Node, Buffer],
        size_names: Mapping[Node, str],
        sizing: Sizing,
        names: Names,
        accumulators: Mapping[Node, Buffer] = {},
        depths: Mapping[Node, int] = {},
        unchecked: int | None = None,
    ) -> None:
        self.buffers = buffers
        self.size_names = size_names
        self.sizing = sizing
        self.names = names
        self.accumulators = accumulators
        self.depths = depths
        self.unchecked = unchecked
        self.top = Scope(None)
        self.homes: dict[Var, Scope] = {}
        self.memo: dict[tuple[Node, Index], Expr] = {}
        self.offsets: dict[Expr, Var] = {}
        self.scalars: dict[Node, Expr] = {}
        self.top_offsets: dict[Expr, Var] = {}
        self.current: frozenset[Node] = frozenset()
        self.callbacks: dict[str, Node] = {}

    # Scopes ---------------------------------------------------------------------------------------------------

    def home(self, expr: Expr) -> Scope:
        """The outermost scope in which everything that `expr` names is known."""
        deepest = self.top
        for part in subexpressions(expr):
            if isinstance(part, Var) and (scope := self.homes.get(part, self.top)).depth > deepest.depth:
                deepest = scope
        return deepest

    def home_of_all(self, exprs: Iterable[Expr]) -> Scope:
        """The outermost scope in which all of several expressions are known."""
        return max(map(self.home, exprs), key=lambda scope: scope.depth, default=self.top)

    def enter(self, parent: Scope, var: Var, size: Expr) -> Scope:
        scope = Scope(parent, var, size, depth=parent.depth + 1)
        self.homes[var] = scope
        return scope

    def enter_all(self, scope: Scope, variables: Sequence[Var], extents: Sequence[Expr]) -> Scope:
        for var, size in zip(variables, extents, strict=True):
            scope = self.enter(scope, var, size)
        return scope

    def leave(self, scope: Scope, outer: Scope) -> None:
        """Close the loops from `scope` out to `outer`."""
        while scope is not outer:
            assert scope.parent is not None and scope.var is not None
            scope.parent.body.append(Loop(scope.var, scope.size, tuple(scope.body)))
            scope = scope.parent

    def bind(self, expr: Expr, hint: str, turn: Index = ()) -> Expr:
        """A name for a value, in its home, no further out than that of `turn`. Names and literals need none."""
        if isinstance(expr, Var | Const):
            return expr
        scope = self.home_of_all((expr, *turn))
        var = Var(self.names.fresh(hint), expr.dtype)
        self.homes[var] = scope
        scope.body.append(Let(var, expr))
        return var

    def forget(self) -> None:
        """Drop what was named inside the loops of a finished nest; scalars and sizes stay named."""
        self.memo.clear()
        self.offsets.clear()

    def forget_below(self, scope: Scope) -> None:
        """Drop what was named inside the loops of `scope`, and keep what is known in it."""

        def is_known(*exprs: Expr) -> bool:
            return self.home_of_all(exprs).depth <= scope.depth

        self.memo = {key: value for key, value in self.memo.items() if is_known(value, *key[1])}
        self.offsets = {expr: var for expr, var in self.offsets.items() if is_known(var, expr)}

    # Sizes and positions --------------------------------------------------------------------------------------

    def size(self, size: Size) -> Expr:
        size = self.canonical(size)
        if isinstance(size, int):
            return integer(size)
        return self.element(size, ())

    def extents(self, shape: Sequence[Size]) -> tuple[Expr, ...]:
        return tuple(self.size(size) for size in shape)

    def position(self, index: Index, shape: Sequence[Size]) -> Expr:
        """The flat position of an element, the parts that do not change in an inner loop named outside it."""
        return self.hoist(ravel(index, self.extents(shape)))

    def place(self, node: Node, index: Index) -> Expr:
        """The position of an element in the node's buffer, which may hold only the row at hand."""
        depth = self.depths.get(node, 0)
        return self.position(index[depth:], node.type.shape[depth:])

    def hoist(self, expr: Expr) -> Expr:
        if not isinstance(expr, Apply) or expr.dtype != INDEX:
            return expr
        scope = self.home(expr)
        args = []
        for arg in expr.args:
            placed = self.hoist(arg)
            if isinstance(placed, Apply) and self.home(placed) is not scope:
                known = self.top_offsets if self.home(placed) is self.top else self.offsets
                if placed not in known:
                    bound = self.bind(placed, "row")
                    assert isinstance(bound, Var)
                    known[placed] = bound
                placed = known[placed]
            args.append(placed)
        return Apply(expr.op, tuple(args), INDEX)

    # Elements -------------------------------------------------------------------------------------------------

    def element(self, node: Node, index: Index) -> Expr:
        """The element of `node` at `index`."""
        if not index:
            return self.scalar(node)
        key = (node, index)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.compute(node, index)
        return found

    def scalar(self, root: Node) -> Expr:
        """The value of a scalar, those it needs named before it, so that a long chain needs no recursion."""
        pending = [root]
        while pending:
            node = pending[-1]
            missing = [arg for arg in self.needed_scalars(node) if arg not in self.scalars]
            if node in self.scalars or not missing:
                pending.pop()
                if node not in self.scalars:
                    self.scalars[node] = self.compute(node, ())
            else:
                pending.extend(missing)
        return self.scalars[root]

    def stored(self, node: Node) -> Buffer | None:
        """The buffer that a value is read from; None where it is computed."""
        return None if node in self.current else self.buffers.get(node)

    def needed_scalars(self, node: Node) -> Sequence[Node]:
        if node.op in LEAVES or self.stored(node) is not None:
            return ()
        return node.args if isinstance(node.op.lower(node), Scalar) else ()

    def compute(self, node: Node, index: Index) -> Expr:
        hint = node.name or node.op.name
        value = constant_value(node)
        if value is not None and value.size == 1:
            return literal_const(value.reshape(-1)[0], node.dtype)
        if node.op is SIZE:
            return self.leaf_size(node)
        if (buffer := self.stored(node)) is not None:
            load = Load(buffer, self.place(node, index))
            return self.bind(load, hint, index[: self.depths.get(node, 0)])  # a row is another one in every turn
        lowering = node.op.lower(node)
        match lowering:
            case Scalar(template):
                args = tuple(self.element(arg, index) for arg in node.args)
                return self.bind(filled(template, self.with_dtype(args), node.dtype), hint)
            case View():
                self.check_gather(node, index)
                position, inner = lowering.index(node, index, self.element_here)
                return self.element(node.args[position], inner)
            case Fold():
                return self.fold(node, lowering, index)
            case Iota(axis):
                return index[axis]
            case _:
                message = f"a size depends on {describe(node)}, whose value is known only while the kernel runs"
                raise GraphTypeError(f"{message}; compute that value by a function of its own, and take it as an input")

    def canonical(self, size: Size) -> Size:
        """A size; once sizes are checked, the first of those that it must be equal to."""
        return self.sizing.of(size) if self.unchecked is None else size

    def leaf_size(self, leaf: Node) -> Expr:
        """A size of an argument."""
        size = self.canonical(leaf)
        if isinstance(size, int):
            return integer(size)
        name = self.size_names.get(size) or self.size_names.get(leaf)
        if name is None:
            raise GraphTypeError(f"{describe(leaf)} is not known: its variable is not an input")
        return Var(name, INDEX)

    def with_dtype(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Operands of which one at least has a dtype: under CPython literals and loop variables are Python's numbers,
        whose integers never wrap, and which cannot be divided by zero."""
        if not args or not all(isinstance(arg, Const) or self.is_loop_var(arg) for arg in args):
            return args
        return (convert(args[0], args[0].dtype), *args[1:])

    def is_loop_var(self, expr: Expr) -> bool:
        scope = self.homes.get(expr) if isinstance(expr, Var) else None
        return scope is not None and (scope.var is expr or scope.place is expr)

    def element_here(self, node: Node, index: Index) -> Expr:
        """The element of an index array, named no further out than its own index is known. Its bounds are checked
        element by element: where a loop has no turn, there may be nothing at what it would be outside that loop."""
        value = self.element(node, index)
        scope = self.home_of_all(index)
        if self.home(value).depth >= scope.depth:
            return value
        var = Var(self.names.fresh(node.name or node.op.name), value.dtype)
        self.homes[var] = scope
        scope.body.append(Let(var, value))
        return var

    def check_gather(self, node: Node, index: Index) -> None:
        """Where sizes are computed nothing has checked a gather's indices before."""
        if self.unchecked is None:
            return
        for array, size in gathered(node):
            axis: int = node.attrs["axis"]
            value = self.bind(cast(self.element(array, index[axis : axis + array.ndim]), INDEX), "index")
            self.home(value).body.append(Check(within(value, self.size(size)), self.unchecked))

    def fold(self, node: Node, fold: Fold, index: Index) -> Expr:
        """The result of a reduction at an index."""
        result = self.accumulated(node, fold, index)
        return result if result.dtype == node.dtype else self.bind(cast(result, node.dtype), node.name or node.op.name)

    def accumulated(self, node: Node, fold: Fold, index: Index) -> Expr:
        """A reduction, in its accumulator's dtype: its loops stand in the scope in which the index is known.

        Several reduced axes are one loop where every operand is read in the order in which it lies in memory.
        """
        extents = self.extents(fold.sizes(node))
        if len(extents) > 1 and self.unchecked is None:
            survey = Survey(self.stored, self.extents, self.scalar, self.depths)
            survey.term(node, fold, index, unravel(fold_vars(node, fold)[0], extents))
            if survey.is_in_order():
                count = (self.count(extents),)
                return self.reduce(node, fold, index, count, lambda loops: unravel(loops[0], extents))
        return self.reduce(node, fold, index, extents, tuple)

    def reduce(self, node: Node, fold: Fold, index: Index, extents: Sequence[Expr], unfold: Unfold) -> Expr:
        """The loops of a reduction over `extents`; `unfold` gives the index into the reduced axes."""
        turns = [int_value(extent) for extent in extents]
        if self.unchecked is None and unrolls(turns):
            return self.unrolled(node, fold, index, [turn or 0 for turn in turns], unfold)
        length = turns[-1] if turns else 1
        if (length is None or length > BLOCK) and self.unchecked is None:
            narrow = node.dtype == "float32" and operator_of(fold.term) is CASTS["float64"]
            is_sum = fold.dtypes == ("float64",) and operator_of(fold.step[0]) is ACCUMULATE
            if is_sum and (node.dtype == "float64" or narrow):
                return self.sum_blocks(node, fold, index, extents, unfold)
            if fold.search and len(extents) == 1 and fold.axes[-1] == node.args[0].ndim - 1:
                return self.search_blocks(node, fold, index, extents[0], unfold)
        outer = self.home_of_all(index)
        accumulators = [Var(self.names.fresh(node.name or node.op.name), dtype) for dtype in fold.dtypes]
        start = [Set(var, start_const(text, var.dtype)) for var, text in zip(accumulators, fold.start, strict=True)]
        loops = self.reduced_loops(len(extents))
        scope = self.enter_all(outer, loops, extents)
        for var in accumulators:
            self.homes[var] = scope
        steps = self.fold_step(node, fold, index, unfold(loops), accumulators)
        outer.body.extend(start)
        scope.body.extend(steps)
        self.leave(scope, outer)
        for var in accumulators:
            self.homes[var] = outer
        return accumulators[fold.result]

    def unrolled(self, node: Node, fold: Fold, index: Index, turns: Sequence[int], unfold: Unfold) -> Expr:
        """A reduction over a few elements, term by term."""
        hint, sizes = node.name or node.op.name, self.extents(fold.sizes(node))
        values: list[Expr] = [start_const(text, dtype) for text, dtype in zip(fold.start, fold.dtypes, strict=True)]
        for place in np.ndindex(*turns):
            reduced = unfold(tuple(map(integer, place)))
            term = self.fold_term(node, fold, index, reduced)
            if len(values) == 1:
                term = cast(term, fold.dtypes[0])
            holes = self.with_dtype((*values, term, ravel(reduced, sizes)))
            steps = zip(fold.step, fold.dtypes, strict=True)
            values = [self.bind(filled(step, holes, dtype), hint) for step, dtype in steps]
        return values[fold.result]

    def reduced_loops(self, count: int) -> tuple[Var, ...]:
        return tuple(Var(self.names.fresh(f"r{n}" if n else "r"), INDEX) for n in range(count))

    def enter_block(self, scope: Scope, length: Expr) -> tuple[Scope, Var, Scope, Expr]:
        """A loop over blocks of an axis, and the loop over one: their scopes, the block's number and the index."""
        block, place = Var(self.names.fresh("block"), INDEX), Var(self.names.fresh("r"), INDEX)
        turn = self.enter(scope, block, blocks_of(length))
        return turn, block, *self.enter_within(turn, length, block, place)

    def enter_within(self, scope: Scope, length: Expr, block: Expr, place: Var) -> tuple[Scope, Expr]:
        """The loop over one block of an axis, the last of which is shorter."""
        return self.enter(scope, place, turns_in_block(length, block)), add(multiply(block, integer(BLOCK)), place)

    def sum_blocks(self, node: Node, fold: Fold, index: Index, extents: Sequence[Expr], unfold: Unfold) -> Expr:
        """A sum by blocks, each summed with the partial sums of a vector.

        The blocks' sums of float64 are carried in two floats, what each addition has rounded away beside the sum: the
        error then does not grow with the length, where the loop's own partial sums would lose what n / 32 additions
        round away. Blocks of float32 are summed in float32, twice as many elements at a time, their sums in float64.
        """
        outer, hint = self.home_of_all(index), node.name or node.op.name
        total, part = Var(self.names.fresh(hint), "float64"), Var(self.names.fresh("part"), node.dtype)
        lost = Var(self.names.fresh("lost"), "float64") if part.dtype == total.dtype else None
        if lost is None:
            fold = Fold(fold.sizes, fold.operands, "_0", fold.start, fold.step, (part.dtype,), fold.result, fold.axes)
        *before, length = extents
        loops = self.reduced_loops(len(before))
        turn, _, scope, place = self.enter_block(self.enter_all(outer, loops, before), length)
        self.homes[part] = scope
        steps = self.fold_step(node, fold, index, unfold((*loops, place)), [part])
        carried = [total] if lost is None else [total, lost]
        outer.body.extend(Set(var, start_const("0", var.dtype)) for var in carried)
        turn.body.append(Set(part, start_const("0", part.dtype)))
        scope.body.extend(steps)
        self.leave(scope, turn)
        whole = apply(ACCUMULATE, total, cast(part, total.dtype))
        turn.body.extend([Set(total, whole)] if lost is None else add_to_total(total, lost, part))
        self.leave(turn, outer)
        self.homes.update(dict.fromkeys(carried, outer))
        return total if lost is None else self.bind(whole_total(total, lost), hint)

    def search_blocks(self, node: Node, fold: Fold, index: Index, length: Expr, unfold: Unfold) -> Expr:
        """The first position of an extreme: the block that has it first is found with the extremes of all blocks, which
        vectors give, and then the position within that block."""
        outer, hint = self.home_of_all(index), node.name or node.op.name
        (_, dtype), (_, worst) = fold.dtypes, fold.start
        where, best, part = (
            Var(self.names.fresh(n), d) for n, d in (("found", INDEX), ("best", dtype), ("part", dtype))
        )
        turn, block, scope, place = self.enter_block(outer, length)
        step = filled(fold.search, (part, self.fold_term(node, fold, index, unfold((place,)))), dtype)
        outer.body.extend((Set(where, ZERO), Set(best, start_const(worst, dtype))))
        turn.body.append(Set(part, start_const(worst, dtype)))
        scope.body.append(Set(part, step))
        self.leave(scope, turn)
        self.homes[where] = self.homes[best] = self.homes[part] = turn
        values = [
            self.bind(filled(step, (where, best, part, block), var.dtype), var.name)
            for step, var in zip(fold.step, (where, best), strict=True)
        ]
        turn.body.extend((Set(where, values[0]), Set(best, values[1])))
        self.leave(turn, outer)
        self.homes[where] = self.homes[best] = outer
        first, spot = Var(self.names.fresh(hint), INDEX), Var(self.names.fresh("r"), INDEX)
        inside, place = self.enter_within(outer, length, where, spot)
        term = self.fold_term(node, fold, index, unfold((place,)))
        hit = apply(SELECT, same_value(term, best), spot, integer(BLOCK))
        outer.body.append(Set(first, integer(BLOCK)))
        inside.body.append(Set(first, apply(ACCUMULATE_MINIMUM, first, hit)))
        self.leave(inside, outer)
        self.homes[first] = outer
        return self.bind(add(multiply(where, integer(BLOCK)), first), hint)

    def fold_step(
        self,
        node: Node,
        fold: Fold,
        index: Index,
        reduced: Index,
        accumulators: Sequence[Var],
    ) -> list[Stmt]:
        """The next values of a reduction's accumulators, from the term at an index into the reduced axes."""
        term = self.fold_term(node, fold, index, reduced)
        if len(accumulators) == 1 and term.dtype != accumulators[0].dtype:
            term = cast(term, accumulators[0].dtype)
        holes = (*accumulators, term, ravel(reduced, self.extents(fold.sizes(node))))
        if len(accumulators) == 1:
            return [Set(accumulators[0], filled(fold.step[0], holes, accumulators[0].dtype))]
        steps = [filled(step, holes, var.dtype) for step, var in zip(fold.step, accumulators, strict=True)]
        values = [self.bind(step, var.name) for step, var in zip(steps, accumulators, strict=True)]
        return [Set(var, value) for var, value in zip(accumulators, values, strict=True)]

    def fold_term(self, node: Node, fold: Fold, index: Index, loops: Index) -> Expr:
        operands = fold.operands(node, index, loops)
        elements = tuple(self.element(node.args[position], inner) for position, inner in operands)
        dtype = node.args[operands[0][0]].dtype if fold.term == "_0" else fold.dtypes[0]
        return self.bind(filled(fold.term, elements, dtype), "term")

    # Nests ----------------------------------------------------------------------------------------------------

    def nest(self, nest: Nest, plan: Plan) -> None:
        self.current = frozenset(nest.roots)
        match nest.kind:
            case "loops":
                self.loops(nest, self.top)
            case "total":
                self.store_roots(nest, self.top, ())
            case "writes":
                self.writes(nest)
            case "check":
                self.check(nest, plan)
        self.current = frozenset()
        self.forget()

    def loops(self, nest: Nest, scope: Scope) -> None:
        """The loops of a nest that do not stand around `scope` already, as one loop where that is possible."""
        index, depth = nest.index, scope.depth
        inner = [axis for axis in range(depth, len(index)) if isinstance(index[axis], Var)]
        loops, extents = [nest.vars[axis] for axis in inner], self.extents([nest.space[axis] for axis in inner])
        if len(inner) > 1 and self.flat(nest, scope):
            return
        if not loops:
            self.store_roots(nest, scope, index)
            return
        survey, turns = self.survey(nest, index), [index]
        if unrolls([nest.space[inner[-1]]]) and survey.reduces_in(loops[-1]):
            first, last = index[: inner[-1]], index[inner[-1] + 1 :]
            turns = [(*first, integer(turn), *last) for turn in range(int_value(extents[-1]) or 0)]
            innermost = self.enter_all(scope, loops[:-1], extents[:-1])
        elif not survey.reduced_at and (across := loop_across(survey.positions, loops, extents)):
            innermost = self.enter_tiles(scope, loops, extents, across)
        else:
            innermost = self.enter_all(scope, loops, extents)
        self.store_roots(nest, innermost, *turns)
        self.leave(innermost, scope)

    def survey(self, nest: Nest, index: Index) -> Survey:
        """What the values of a nest read at an index."""
        survey = Survey(self.stored, self.extents, self.scalar, self.depths)
        for root in nest.roots:
            survey.element(root, index)
            if root in self.buffers:
                survey.values.append(survey.position(root, index))
        return survey

    def enter_tiles(self, scope: Scope, loops: Sequence[Var], extents: Sequence[Expr], across: Var) -> Scope:
        """Loops of which those over `across` and over the last axis go by tiles, the loops over one tile innermost.

        The others stand outside them, so that the rest of a line of memory, which the next tile needs, is soon read.
        """
        cut: list[tuple[Var, Var, Expr]] = []
        for var, extent in zip(loops, extents, strict=True):
            if var in (across, loops[-1]):
                cut.append((var, Var(self.names.fresh(f"{var.name}_tile"), INDEX), extent))
            else:
                scope = self.enter(scope, var, extent)
        for _, tile, extent in cut:
            scope = self.enter(scope, tile, blocks_of(extent, TILE))
        for var, tile, extent in cut:
            turn = Var(self.names.fresh(f"{var.name}_in"), INDEX)
            scope = self.enter(scope, turn, turns_in_block(extent, tile, TILE))
            scope.place, self.homes[var] = var, scope
            scope.body.append(Let(var, add(multiply(tile, integer(TILE)), turn)))
        return scope

    def flat(self, nest: Nest, scope: Scope) -> bool:
        """One loop over all elements, where every operand is read in the order in which it lies in memory."""
        var, depth = nest.vars[scope.depth], scope.depth
        extents = self.extents(nest.space[depth:])
        index = (*nest.index[:depth], *unravel(var, extents))
        if not self.survey(nest, index).is_in_order():
            return False
        inner = self.enter(scope, var, self.count(extents))
        self.store_roots(nest, inner, index)
        self.leave(inner, scope)
        return True

    def store_roots(self, nest: Nest, scope: Scope, *indices: Index) -> None:
        """Compute all values of a nest at some indices, then store them: a buffer that is updated in place is read
        first."""
        stores = []
        for root, index in ((root, index) for root in nest.roots for index in indices):
            value = self.element(root, index)
            if root in self.buffers:
                stores.append(Store(self.buffers[root], self.place(root, index), value))
        scope.body.extend(stores)

    def fill(self, buffer: Buffer, shape: Sequence[Size], value: Callable[[Expr], Expr]) -> None:
        """One loop that stores a value at every position of a contiguous buffer."""
        var = loop_vars(1)[0]
        scope = self.enter(self.top, var, self.count(self.extents(shape)))
        scope.body.append(Store(buffer, var, value(var)))
        self.leave(scope, self.top)

    def count(self, extents: Sequence[Expr]) -> Expr:
        """The number of elements."""
        count: Expr = ONE
        for extent in extents:
            count = multiply(count, extent)
        if self.home(count) is not self.top or not isinstance(count, Apply):
            return self.bind(count, "count")
        if count not in self.top_offsets:  # one name for equal numbers, so that loops of as many turns are seen to be
            named = self.bind(count, "count")
            assert isinstance(named, Var)
            self.top_offsets[count] = named
        return self.top_offsets[count]

    def writes(self, nest: Nest) -> None:
        (node,) = nest.roots
        lowering = node.op.lower(node)
        assert isinstance(lowering, Writes)
        buffer = self.buffers[node]
        for region in lowering.regions(node):
            if region.copies and nest.taken_over:
                continue
            index = loop_vars(len(region.sizes))
            scope = self.enter_all(self.top, index, self.extents(region.sizes))
            position, inner = region.value(index)
            value = self.element(node.args[position], inner)
            where = self.position(region.target(index, self.element), node.type.shape)
            if region.accumulate:
                where = self.bind(where, "place")
                operands = (Load(buffer, where), value)
                value = apply(OR if node.dtype == "bool" else ADD, *operands)
            scope.body.append(Store(buffer, where, value))
            self.leave(scope, self.top)
            self.forget()

    def check(self, nest: Nest, plan: Plan) -> None:
        bound = plan.bounds[nest.number]
        scope = self.enter_all(self.top, nest.vars, self.extents(nest.space))
        value = self.bind(cast(self.element(bound.index, nest.vars), INDEX), "index")
        scope.body.append(Check(within(value, self.size(bound.size)), nest.number + 1))
        self.leave(scope, self.top)
