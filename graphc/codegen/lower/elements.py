"""The elements of values: what one is made of, down to what lies in memory.

In: a plan's buffers and names of sizes; a node and an index. Out: an expression, and statements in the scopes that it
needs names in.

The element of a value at an index is asked for; asking asks for the elements it needs. Every value gets a name in the
outermost loop in which its index is known, so what does not change in a loop is computed outside it, and a reduction
becomes a loop of its own in that place. A value that is asked for twice at one index is named once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from graphc.codegen.lower.scopes import Scope, Scopes
from graphc.codegen.schedule.labels import UNLABELLED, Labels
from graphc.codegen.schedule.plan import gathered, loop_vars, segment_count
from graphc.codegen.schedule.sizes import Sizing
from graphc.errors import StepSizeError
from graphc.ir.lowering import Fold, Iota, Scalar, SegmentNumber, View
from graphc.ir.node import LEAVES, SIZE, Index, Node, Size, constant_value, describe
from graphc.loopir.build import cast, convert, literal_const, within
from graphc.loopir.ir import (
    INDEX,
    ONE,
    Buffer,
    Check,
    Const,
    Expr,
    Let,
    Load,
    Store,
    Var,
    add,
    integer,
    multiply,
    ravel,
    subtract,
)
from graphc.loopir.names import Names
from graphc.loopir.syntax import filled


class Elements(Scopes):
    """Writes the elements of values, wherever they are asked for.

    `buffers`: the buffer of every leaf and materialised value; `size_names`: the parameter that holds each size leaf.
    `accumulators`: where column reductions are carried in a wider dtype; `workspaces`: what external functions use
    while they run; `depths`: for a buffer that holds one row, the number of loops that pick the row; `rows`: for a
    value that is one row of its buffer, which one; `blocks`: the values whose buffer holds the rows of one block, and
    `in_block`: for the number of a row, which it is of its block; `segments`: for numbers of segments that a loop goes
    over, the one at hand; `pending`: the values that the part of the plan at hand and those after it store, which are
    read from no buffer before. Without a plan every value is computed where it is
    needed, the way sizes are computed; `unchecked` is then the code of a failed check of a gather's indices. `labels`:
    what values are called.
    """

    def __init__(
        self,
        buffers: Mapping[Node, Buffer],
        size_names: Mapping[Node, str],
        sizing: Sizing,
        names: Names,
    ) -> None:
        super().__init__(names)
        self.buffers = buffers
        self.size_names = size_names
        self.steps: set[Var] = set()
        self.sizing = sizing
        self.accumulators: Mapping[Node, Buffer] = {}
        self.workspaces: Mapping[Node, Sequence[Buffer]] = {}
        self.depths: Mapping[Node, int] = {}
        self.rows: Mapping[Node, Size] = {}
        self.blocks: Container[Node] = ()
        self.in_block: dict[Expr, Expr] = {}
        self.segments: dict[Node, Expr] = {}
        self.unchecked: int | None = None
        self.labels: Labels = UNLABELLED
        self.memo: dict[tuple[Node, Index], Expr] = {}
        self.scalars: dict[Node, Expr] = {}
        self.pending: set[Node] = set()
        self.callbacks: dict[str, Node] = {}

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
        if node in self.blocks:
            index = (self.in_block.get(index[0], index[0]), *index[1:])
        return self.in_buffer(node, self.position(index[depth:], node.type.shape[depth:]))

    def in_buffer(self, node: Node, flat: Expr) -> Expr:
        """The position in the node's buffer of its element at a flat position: the node may be one row of it."""
        if node not in self.rows:
            return flat
        row = multiply(self.size(self.rows[node]), self.count(self.extents(node.type.shape)))
        return add(self.name_once(self.hoist(row), "row"), flat)

    def finish(self, scope: Scope) -> None:
        """The elements that were named in `scope` are asked for anew: a part of the plan is written."""
        self.forget(self.memo, scope)

    # Segments -------------------------------------------------------------------------------------------------

    def enter_segment(self, outer: Scope, starts: Node, row: Var) -> tuple[Scope, Expr, Expr]:
        """A loop over segments; where each begins, and how many positions it has."""
        scope = self.enter(outer, row, self.size(segment_count(starts)))
        begin, end = (self.bind(cast(self.element(starts, (at,)), INDEX), "begin") for at in (row, add(row, ONE)))
        return scope, begin, self.bind(subtract(end, begin), "count")

    def enter_positions(self, outer: Scope, numbers: Node, place: Var) -> Scope:
        """A loop over segments and one over the positions of each, in the place of one over all positions."""
        segment, step = (Var(self.names.fresh(name), INDEX) for name in ("segment", "r"))
        around, begin, count = self.enter_segment(outer, numbers.args[0], segment)
        self.remember(self.segments, numbers, segment)
        scope = self.enter(around, step, count)
        scope.place, self.scopes[place] = place, scope
        scope.body.append(Let(place, add(begin, step)))
        return scope

    # Elements -------------------------------------------------------------------------------------------------

    def element(self, node: Node, index: Index) -> Expr:
        """The element of `node` at `index`."""
        if not index:
            return self.scalar(node)
        key = (node, index)
        found = self.memo.get(key)
        if found is None:
            found = self.remember(self.memo, key, self.compute(node, index), *index)
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
                    self.remember(self.scalars, node, self.compute(node, ()))
            else:
                pending.extend(missing)
        return self.scalars[root]

    def materialised(self, node: Node) -> Buffer | None:
        """The buffer that a value is read from; None where it is computed: nothing is stored there yet, or there is no
        buffer."""
        return None if node in self.pending else self.buffers.get(node)

    def held(self, node: Node) -> Buffer:
        """The buffer of a value that a function is given."""
        buffer = self.materialised(node)
        assert buffer is not None, f"{describe(node)} is given to a function before it is stored"
        return buffer

    def stored(self, roots: Iterable[Node]) -> None:
        """Values are in their buffers from here on."""
        self.pending.difference_update(roots)

    def needed_scalars(self, node: Node) -> Sequence[Node]:
        if node.op in LEAVES or self.materialised(node) is not None:
            return ()
        return node.args if isinstance(node.op.lower(node), Scalar) else ()

    def compute(self, node: Node, index: Index) -> Expr:
        hint = self.labels(node)
        value = constant_value(node)
        if value is not None and value.size == 1:
            return literal_const(value.reshape(-1)[0], node.dtype)
        if node.op is SIZE:
            return self.leaf_size(node)
        if (buffer := self.materialised(node)) is not None:
            load = Load(buffer, self.place(node, index))
            return self.bind(load, hint, index[: self.depths.get(node, 0)])  # a row is another one in every iteration
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
            case SegmentNumber() if node in self.segments:
                return self.segments[node]
            case _:
                message = f"a size depends on {describe(node)}, whose value is known only while the kernel runs"
                raise StepSizeError(f"{message}; compute that value by a function of its own, and take it as an input")

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
            raise StepSizeError(f"{describe(leaf)} is not known before a step of a loop")
        return Var(name, INDEX)

    def with_dtype(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Operands of which one at least has a dtype: under CPython literals and loop variables are Python's numbers,
        whose integers never wrap, and which cannot be divided by zero."""
        if not args or not all(isinstance(arg, Const) or self.is_loop_var(arg) for arg in args):
            return args
        return (convert(args[0], args[0].dtype), *args[1:])

    def is_loop_var(self, expr: Expr) -> bool:
        scope = self.scopes.get(expr) if isinstance(expr, Var) else None
        return scope is not None and (scope.var is expr or scope.place is expr)

    def element_here(self, node: Node, index: Index) -> Expr:
        """The element of an index array, named no further out than its own index is known. Its bounds are checked
        element by element: where a loop has no iteration, there may be nothing at what it would be outside that
        loop."""
        value = self.element(node, index)
        scope = self.scope_of_all(index)
        if self.scope_of(value).depth >= scope.depth:
            return value
        var = Var(self.names.fresh(self.labels(node)), value.dtype)
        self.scopes[var] = scope
        scope.body.append(Let(var, value))
        return var

    def check_gather(self, node: Node, index: Index) -> None:
        """Where sizes are computed nothing has checked a gather's indices before."""
        if self.unchecked is None:
            return
        for array, size in gathered(node):
            axis: int = node.attrs["axis"]
            value = self.bind(cast(self.element(array, index[axis : axis + array.ndim]), INDEX), "index")
            self.scope_of(value).body.append(Check(within(value, self.size(size)), self.unchecked))

    @abstractmethod
    def fold(self, node: Node, fold: Fold, index: Index) -> Expr:
        """The result of a reduction at an index."""

    # Whole buffers --------------------------------------------------------------------------------------------

    def fill(
        self,
        buffer: Buffer,
        shape: Sequence[Size],
        outer: Scope,
        value: Callable[[Expr], Expr],
        place: Callable[[Expr], Expr] = lambda flat: flat,
    ) -> None:
        """One loop that stores a value at every position of a contiguous buffer."""
        var = loop_vars(self.depth(outer) + 1)[-1]
        scope = self.enter(outer, var, self.count(self.extents(shape)))
        where = place(var)
        scope.body.append(Store(buffer, where, value(where)))
        self.leave(scope, outer)

    def count(self, extents: Sequence[Expr]) -> Expr:
        """The number of elements."""
        count: Expr = ONE
        for extent in extents:
            count = multiply(count, extent)
        return self.name_once(count, "count")  # one name, so that loops of as many iterations are seen to be
