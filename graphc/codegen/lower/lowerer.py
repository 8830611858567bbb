"""Reductions in the place where their result is asked for; with them, what writes a function is complete.

In: a reduction and an index. Out: its loops, in the scope in which the index is known, and the name of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphc.codegen.lower.access import Survey
from graphc.codegen.lower.elements import Elements
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import fold_vars, unrolls
from graphc.ir.lowering import Fold
from graphc.ir.node import Index, Node
from graphc.loopir import ir
from graphc.loopir.build import add_compensated, cast, compensated_sum, same_value, start_const
from graphc.loopir.operators import ACCUMULATE, ACCUMULATE_MINIMUM, CASTS, SELECT
from graphc.loopir.syntax import filled, operator_of

Unfold: TypeAlias = Callable[[Index], Index]


class Lowerer(Elements):
    """Writes the statements of one function, as its parts (parts.py) ask for them."""

    def fold(self, node: Node, fold: Fold, index: Index) -> ir.Expr:
        """The result of a reduction at an index."""
        result = self.accumulated(node, fold, index)
        return result if result.dtype == node.dtype else self.bind(cast(result, node.dtype), self.labels(node))

    def accumulated(self, node: Node, fold: Fold, index: Index) -> ir.Expr:
        """A reduction, in its accumulator's dtype: its loops stand in the scope in which the index is known.

        Several reduced axes are one loop where every operand is read in the order in which it lies in memory.
        """
        extents = self.extents(fold.sizes(node))
        if len(extents) > 1 and self.unchecked is None:
            survey = Survey(self.materialised, self.extents, self.scalar, self.depths)
            survey.term(node, fold, index, ir.unravel(fold_vars(node, fold)[0], extents))
            if survey.is_in_order():
                count = (self.count(extents),)
                return self.reduce(node, fold, index, count, lambda loops: ir.unravel(loops[0], extents))
        return self.reduce(node, fold, index, extents, tuple)

    def reduce(self, node: Node, fold: Fold, index: Index, extents: Sequence[ir.Expr], unfold: Unfold) -> ir.Expr:
        """The loops of a reduction over `extents`; `unfold` gives the index into the reduced axes."""
        iterations = [ir.int_value(extent) for extent in extents]
        if self.unchecked is None and unrolls(iterations):
            return self.unrolled(node, fold, index, [iteration or 0 for iteration in iterations], unfold)
        length = iterations[-1] if iterations else 1
        if (length is None or length > ir.BLOCK) and self.unchecked is None:
            narrow = node.dtype == "float32" and operator_of(fold.term) is CASTS["float64"]
            is_sum = fold.dtypes == ("float64",) and operator_of(fold.step[0]) is ACCUMULATE
            if is_sum and (node.dtype == "float64" or narrow):
                return self.sum_blocks(node, fold, index, extents, unfold)
            if fold.search and len(extents) == 1 and fold.axes[-1] == node.args[0].ndim - 1:
                return self.search_blocks(node, fold, index, extents[0], unfold)
        outer = self.scope_of_all(index)
        accumulators = [ir.Var(self.names.fresh(self.labels(node)), dtype) for dtype in fold.dtypes]
        start = [ir.Set(var, start_const(text, var.dtype)) for var, text in zip(accumulators, fold.start, strict=True)]
        loops = self.reduced_loops(len(extents))
        scope = self.enter_all(outer, loops, extents)
        for var in accumulators:
            self.scopes[var] = scope
        steps = self.fold_step(node, fold, index, unfold(loops), accumulators)
        outer.body.extend(start)
        scope.body.extend(steps)
        self.leave(scope, outer)
        for var in accumulators:
            self.scopes[var] = outer
        return accumulators[fold.result]

    def unrolled(self, node: Node, fold: Fold, index: Index, iterations: Sequence[int], unfold: Unfold) -> ir.Expr:
        """A reduction over a few elements, term by term."""
        hint, sizes = self.labels(node), self.extents(fold.sizes(node))
        values: list[ir.Expr] = [start_const(text, dtype) for text, dtype in zip(fold.start, fold.dtypes, strict=True)]
        for place in np.ndindex(*iterations):
            reduced = unfold(tuple(map(ir.integer, place)))
            term = self.fold_term(node, fold, index, reduced)
            if len(values) == 1:
                term = cast(term, fold.dtypes[0])
            holes = self.with_dtype((*values, term, ir.ravel(reduced, sizes)))
            steps = zip(fold.step, fold.dtypes, strict=True)
            values = [self.bind(filled(step, holes, dtype), hint) for step, dtype in steps]
        return values[fold.result]

    def reduced_loops(self, count: int) -> tuple[ir.Var, ...]:
        return tuple(ir.Var(self.names.fresh(f"r{n}" if n else "r"), ir.INDEX) for n in range(count))

    def enter_block(self, scope: Scope, length: ir.Expr) -> tuple[Scope, ir.Var, Scope, ir.Expr]:
        """A loop over blocks of an axis, and the loop over one: their scopes, the block's number and the index."""
        block, place = ir.Var(self.names.fresh("block"), ir.INDEX), ir.Var(self.names.fresh("r"), ir.INDEX)
        iteration = self.enter(scope, block, ir.blocks_of(length))
        return iteration, block, *self.enter_within(iteration, length, block, place)

    def enter_within(self, scope: Scope, length: ir.Expr, block: ir.Expr, place: ir.Var) -> tuple[Scope, ir.Expr]:
        """The loop over one block of an axis, the last of which is shorter."""
        return self.enter(scope, place, ir.iterations_in_block(length, block)), ir.add(
            ir.multiply(block, ir.integer(ir.BLOCK)), place
        )

    def sum_blocks(self, node: Node, fold: Fold, index: Index, extents: Sequence[ir.Expr], unfold: Unfold) -> ir.Expr:
        """A sum by blocks, each summed with the partial sums of a vector.

        The blocks' sums of float64 are carried in two floats, what each addition has rounded away beside the sum: the
        error then does not grow with the length, where the loop's own partial sums would lose what n / 32 additions
        round away. Blocks of float32 are summed in float32, twice as many elements at a time, their sums in float64.
        """
        outer, hint = self.scope_of_all(index), self.labels(node)
        total, part = ir.Var(self.names.fresh(hint), "float64"), ir.Var(self.names.fresh("part"), node.dtype)
        compensation = ir.Var(self.names.fresh("comp"), "float64") if part.dtype == total.dtype else None
        if compensation is None:
            fold = Fold(fold.sizes, fold.operands, "_0", fold.start, fold.step, (part.dtype,), fold.result, fold.axes)
        *before, length = extents
        loops = self.reduced_loops(len(before))
        iteration, _, scope, place = self.enter_block(self.enter_all(outer, loops, before), length)
        self.scopes[part] = scope
        steps = self.fold_step(node, fold, index, unfold((*loops, place)), [part])
        carried = [total] if compensation is None else [compensation, total]
        outer.body.extend(ir.Set(var, start_const("0", var.dtype)) for var in carried)
        iteration.body.append(ir.Set(part, start_const("0", part.dtype)))
        scope.body.extend(steps)
        self.leave(scope, iteration)
        whole = ir.apply(ACCUMULATE, total, cast(part, total.dtype))
        iteration.body.extend(
            [ir.Set(total, whole)] if compensation is None else add_compensated(total, compensation, part)
        )
        self.leave(iteration, outer)
        self.scopes.update(dict.fromkeys(carried, outer))
        return total if compensation is None else self.bind(compensated_sum(total, compensation), hint)

    def search_blocks(self, node: Node, fold: Fold, index: Index, length: ir.Expr, unfold: Unfold) -> ir.Expr:
        """The first position of an extreme: the block that has it first is found with the extremes of all blocks, which
        vectors give, and then the position within that block."""
        outer, hint = self.scope_of_all(index), self.labels(node)
        (_, dtype), (_, worst) = fold.dtypes, fold.start
        where, best, part = (
            ir.Var(self.names.fresh(n), d) for n, d in (("found", ir.INDEX), ("best", dtype), ("part", dtype))
        )
        iteration, block, scope, place = self.enter_block(outer, length)
        step = filled(fold.search, (part, self.fold_term(node, fold, index, unfold((place,)))), dtype)
        outer.body.extend((ir.Set(where, ir.ZERO), ir.Set(best, start_const(worst, dtype))))
        iteration.body.append(ir.Set(part, start_const(worst, dtype)))
        scope.body.append(ir.Set(part, step))
        self.leave(scope, iteration)
        self.scopes[where] = self.scopes[best] = self.scopes[part] = iteration
        values = [
            self.bind(filled(step, (where, best, part, block), var.dtype), var.name)
            for step, var in zip(fold.step, (where, best), strict=True)
        ]
        iteration.body.extend((ir.Set(where, values[0]), ir.Set(best, values[1])))
        self.leave(iteration, outer)
        self.scopes[where] = self.scopes[best] = outer
        first, spot = ir.Var(self.names.fresh(hint), ir.INDEX), ir.Var(self.names.fresh("r"), ir.INDEX)
        inside, place = self.enter_within(outer, length, where, spot)
        term = self.fold_term(node, fold, index, unfold((place,)))
        hit = ir.apply(SELECT, same_value(term, best), spot, ir.integer(ir.BLOCK))
        outer.body.append(ir.Set(first, ir.integer(ir.BLOCK)))
        inside.body.append(ir.Set(first, ir.apply(ACCUMULATE_MINIMUM, first, hit)))
        self.leave(inside, outer)
        self.scopes[first] = outer
        return self.bind(ir.add(ir.multiply(where, ir.integer(ir.BLOCK)), first), hint)

    def fold_step(
        self,
        node: Node,
        fold: Fold,
        index: Index,
        reduced: Index,
        accumulators: Sequence[ir.Var],
    ) -> list[ir.Stmt]:
        """The next values of a reduction's accumulators, from the term at an index into the reduced axes."""
        term = self.fold_term(node, fold, index, reduced)
        if len(accumulators) == 1 and term.dtype != accumulators[0].dtype:
            term = cast(term, accumulators[0].dtype)
        holes = (*accumulators, term, ir.ravel(reduced, self.extents(fold.sizes(node))))
        if len(accumulators) == 1:
            return [ir.Set(accumulators[0], filled(fold.step[0], holes, accumulators[0].dtype))]
        steps = [filled(step, holes, var.dtype) for step, var in zip(fold.step, accumulators, strict=True)]
        values = [self.bind(step, var.name) for step, var in zip(steps, accumulators, strict=True)]
        return [ir.Set(var, value) for var, value in zip(accumulators, values, strict=True)]

    def fold_term(self, node: Node, fold: Fold, index: Index, loops: Index) -> ir.Expr:
        operands = fold.operands(node, index, loops)
        elements = tuple(self.element(node.args[position], inner) for position, inner in operands)
        dtype = node.args[operands[0][0]].dtype if fold.term == "_0" else fold.dtypes[0]
        return self.bind(filled(fold.term, elements, dtype), "term")
