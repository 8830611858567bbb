"""The memory that elements read, told from index maps before anything is written; loops that are cut into tiles.

In: the elements that are wanted of some nodes. Out: a `Survey`: the positions of all that is read, in terms of loop
variables and sizes; and what follows: whether one loop over all elements reads memory in order, where reductions have
loops of their own, and along which loop an operand lies that the innermost loop reads across. As an example, for
`x + y.T` at (i, j) the positions are `i * x_1 + j` of `x` and `j * y_1 + i` of `y`: `loop_across` gives `i`, since `y`
lies along `i` and the innermost loop `j` goes across its rows. Both loops then go by tiles: the lines of memory that a
tile touches stay in the nearest cache until all of each is used; a whole row would drop them in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from graphc.codegen.schedule.nodes import fold_vars, is_written_out, variables_of
from graphc.ir.lowering import Fold, Iota, Scalar, View
from graphc.ir.node import SIZE, Index, Node, Size, constant_value
from graphc.loopir import ir, operators, visit


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
