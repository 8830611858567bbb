"""Nests while they are being planned: the problem, the order of its values, drafts, and the elements that they need.

In: the results of a graph with the buffers they go to. Out: `Goals`, the problem; `GraphOrder`, its values in an order
in which they can be computed; `Drafts`, the nests so far and which must come after which; `Uses`, the elements of other
values that nests need, noted before it is decided whether these are materialised. As an example:

    drafts = Drafts()
    first, second = drafts.new("loops", (n,)), drafts.new("loops", (n,))
    drafts.depend(first.number, second.number)
    drafts.is_later(second.number, first.number)    # True
    drafts.ordered()                                # [first, second]; CycleError where there is no order

and, where nest 0 stores `(x.T + y).sum(axis=1)` for matrices `x` and `y`, in a loop `i` and a loop of the sum `r`:

    expand(uses, sum, Use(0, (i,), (i,)))     # notes that nest 0 needs x.T + y at (i, r), in the loops (i, r)
    expand(uses, add, Use(0, (i, r), (i, r))) # then x.T and y at (i, r), if the addition is not materialised
    expand(uses, x.T, Use(0, (i, r), (i, r))) # then x at (r, i)

placement.py puts values into drafts, materialize.py decides.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from graphc.codegen.schedule import nodes
from graphc.codegen.schedule.bodies import branch_graph, branch_sizes, scan_graph, scan_sizes
from graphc.codegen.schedule.cost import EXPENSIVE, lies_in_memory
from graphc.codegen.schedule.plan import COPY, BranchGraph, IndexCheck, NestDraft, NestKind, Purpose, ScanGraph, Use
from graphc.codegen.schedule.ranges import comparable_bounds, gathered, in_range
from graphc.ir.body import guard_sides
from graphc.ir.lowering import (
    Branch,
    ByValue,
    Call,
    Extent,
    Fold,
    Iota,
    Repeat,
    Scalar,
    SegmentNumber,
    Strided,
    View,
    Whole,
    Workspace,
    Writes,
)
from graphc.ir.node import LEAVES, SIZE, Index, Node, Size, TupleType, constant_value
from graphc.ir.walk import as_size_node, reachable, toposort
from graphc.loopir import ir, operators
from graphc.startup.record import fresh, record


@record()
class Goals:
    """The problem to solve: compute every node of `targets` into its buffer. `overwritten`: buffers of leaves that
    results go to; all reads of the old value must come first. `deferred`: those of them whose new value is computed
    elsewhere and copied at the end. `older`: for each result in such a buffer, the values that were there before it:
    the leaf, then earlier results."""

    targets: Mapping[Node, str]
    overwritten: Mapping[str, Node]
    sizing: nodes.Sizing
    purpose: Purpose
    deferred: frozenset[str] = frozenset()
    older: Mapping[Node, tuple[Node, ...]] = fresh(factory=dict)

    def is_in_place(self, operand: Node, root: Node) -> bool:
        """Tell whether a result goes to this operand's own buffer, which is changed as it is computed, not copied."""
        return self.older.get(root, ())[-1:] == (operand,)

    def reads_older(self, node: Node, root: Node) -> bool:
        """Tell whether a value is computed from what lay in a result's buffer before."""
        return any(depends_on(node, old) for old in self.older.get(root, ())[:1])

    def is_update(self, node: Node) -> bool:
        """Tell whether a result goes to a buffer that has an old value."""
        return self.targets.get(node) in self.overwritten

    def is_deferred(self, node: Node) -> bool:
        """Tell whether a root is the last copy of an update: it must not run before all that reads the old value."""
        return self.targets.get(node) in self.deferred


class GraphOrder:
    """The values of a graph in an order in which they can be computed, with the graphs of the bodies in it.

    `rounds`: for each value the number of reductions along rows that must have run, one after the other, before it is
    known.
    """

    def __init__(self, goals: Goals) -> None:
        self._goals = goals
        self._scans: dict[Node, ScanGraph] = {}
        self._branches: dict[Node, BranchGraph] = {}
        checked = (side for guard in goals.purpose.checks for side in guard_sides(guard))
        self.nodes: Sequence[Node] = toposort((*goals.targets, *checked), self._predecessors)
        self.rounds: Mapping[Node, int] = _rounds_of(self.nodes, goals.sizing)

    def scan(self, node: Node) -> ScanGraph:
        """One step of a scan, made once."""
        if node not in self._scans:
            self._scans[node] = scan_graph(node, self._goals.sizing)
        return self._scans[node]

    def branch(self, node: Node) -> BranchGraph:
        """Both bodies of a branch, made once."""
        if node not in self._branches:
            self._branches[node] = branch_graph(node, self._goals.sizing)
        return self._branches[node]

    def _predecessors(self, node: Node) -> tuple[Node, ...]:
        """The values that must be known before a node: its arguments, and the sizes of its loops and of the loops in
        its bodies. The results of one node have the predecessors of all of them."""
        sizing, guarded = self._goals.sizing, self._goals.purpose.guarded
        sides = (side for guard in guarded.get(node, ()) for side in guard_sides(guard))
        shape = sizing.shape(node)
        if isinstance(node.type, TupleType):
            shape = tuple(sizing.of(size) for part in node.type.parts for size in part.shape)
        shape += tuple(map(sizing.of, self._other_sizes(node)))
        return (*node.args, *(size for size in shape if isinstance(size, Node)), *sides)

    def _other_sizes(self, node: Node) -> Sequence[Size]:
        """The sizes that the nest of a node needs besides those of what it stores."""
        match nodes.lowering_of(node):
            case SegmentNumber():
                return (nodes.segment_count(node.args[0]),)
            case Repeat():
                return scan_sizes(self.scan(node))
            case Branch():
                return branch_sizes(self.branch(node))
            case _:
                return ()


def _rounds_of(order: Iterable[Node], sizing: nodes.Sizing) -> dict[Node, int]:
    rounds: dict[Node, int] = {}
    for node in order:
        before = max((rounds[arg] for arg in node.args), default=0)
        lowering = nodes.lowering_of(node)
        rounds[node] = (
            before + 1 if node.ndim and isinstance(lowering, Fold) and is_by_rows(node, lowering, sizing) else before
        )
    return rounds


def is_by_rows(node: Node, fold: Fold, sizing: nodes.Sizing) -> bool:
    """Tell whether a reduction has a loop of its own along rows."""
    is_short = nodes.is_written_out(node, [sizing.of(size) for size in fold.sizes(node)])
    return not is_short and not is_column_reduction(node, fold, sizing)


def is_column_reduction(node: Node, fold: Fold, sizing: nodes.Sizing) -> bool:
    """Tell whether a reduction, which is not written out, adds rows into its result: so it reads memory in order."""
    if (
        len(fold.start) > 1
        or not fold.axes
        or nodes.is_written_out(node, [sizing.of(size) for size in fold.sizes(node)])
    ):
        return False
    return reduced_operand(node, fold).ndim - 1 not in fold.axes


def reduced_operand(node: Node, fold: Fold) -> Node:
    """The operand over whose axes a reduction goes."""
    return node.args[fold.operands(node, nodes.any_index(node.ndim), nodes.any_index(len(fold.sizes(node))))[0][0]]


SOON = 4
"""A call runs early for the sake of results that need no more than as many other nests after it."""


class Drafts:
    """The nests that are planned so far, by number, and the dependences between them."""

    def __init__(self) -> None:
        self.by_number: dict[int, NestDraft] = {}
        self.after: dict[int, set[int]] = {}
        """For a nest: those that were told to come after it."""
        self._before: dict[int, set[int]] = {}
        self._later: dict[int, int] = {}
        """For a nest: all that must come after it, as bits of one integer."""

    def new(self, kind: NestKind, space: tuple[Size, ...]) -> NestDraft:
        """One more nest, which nothing depends on yet."""
        draft = NestDraft(len(self.by_number), kind, space, nodes.loop_vars(len(space)))
        self.by_number[draft.number] = draft
        self.after[draft.number], self._before[draft.number] = set(), set()
        self._later[draft.number] = 0
        return draft

    def depend(self, first: int, then: int) -> None:
        """Note that nest `then` must come after nest `first`, and so after all that come before that."""
        if first == then or then in self.after[first]:
            return
        self.after[first].add(then)
        self._before[then].add(first)
        earlier = self._later[then] | 1 << then
        pending = [first]
        while pending:
            number = pending.pop()
            known = self._later[number]
            if known | earlier != known:
                self._later[number] = known | earlier
                pending.extend(self._before[number])

    def is_later(self, number: int, start: int) -> bool:
        """Tell whether a nest must come after nest `start`."""
        return bool(self._later[start] >> number & 1)

    def ordered(self, results: Container[Node] = ()) -> list[NestDraft]:
        """The nests in an order in which they may run; a call whose value goes to `results` runs as soon as it can.
        Raises CycleError where there is none.

        The gradient of a weight is the product of an activation and a cotangent: after it both are needed no longer,
        and its own memory is there anyway.
        """
        order = toposort(
            sorted(self.by_number, reverse=True), lambda number: sorted(self._before[number], reverse=True)
        )
        place = {number: position for position, number in enumerate(order)}
        keys: dict[int, tuple[int, ...]] = {}
        for number in order:
            before = max((keys[each] for each in self._before[number]), default=())
            is_early = before and self._may_be_early(number, place, keys, results)
            keys[number] = (*before, place[number]) if is_early else (place[number],)
        return [self.by_number[number] for number in sorted(order, key=keys.__getitem__)]

    def _may_be_early(
        self, number: int, place: Mapping[int, int], keys: Mapping[int, tuple[int, ...]], results: Container[Node]
    ) -> bool:
        """Tell whether a nest is a call whose value is a result, or soon goes into results, or makes such results."""
        draft = self.by_number[number]
        is_result = all(root in results for root in draft.roots)
        if draft.kind != "call":
            early = (each for each in self._before[number] if self.by_number[each].kind == "call")
            return is_result and draft.kind == "loops" and any(len(keys[each]) > 1 for each in early)
        if is_result:
            return True
        last = max(place[each] for each in self._before[number])
        users = [self.by_number[each] for each in self.after[number]]
        others = (place[each] for user in users for each in self._before[user.number] if each != number)
        return (
            bool(users)
            and all(user.kind == "loops" and all(root in results for root in user.roots) for user in users)
            and all(each <= last + SOON for each in others)
        )


# --- uses -------------------------------------------------------------------------------------------------------------


class Uses:
    """The uses of the values of one kernel.

    `pending`: uses of values that are not decided on yet; `of_leaves`: of those that lie in memory before; `of_stored`:
    of those that a nest stores, which `nest_of` tells. `whole`: values that keep a buffer of all their elements, since
    a call takes its address. `before_change`: values that must be computed before the buffer that they read is changed.
    `index_checks`: checks of indices, by nest. `expected`: values that an earlier plan has materialised.
    """

    def __init__(
        self, goals: Goals, order: Iterable[Node], drafts: Drafts, expected: frozenset[Node] = frozenset()
    ) -> None:
        self.goals, self.drafts, self.expected = goals, drafts, expected
        self.undecided = set(order)
        self.pending: dict[Node, list[Use]] = {}
        self.of_leaves: dict[Node, list[Use]] = {}
        self.of_stored: dict[Node, Sequence[Use]] = {}
        self.nest_of: dict[Node, int] = {}
        deferred = (node for node, buffer in goals.targets.items() if buffer in goals.deferred)
        self.whole: set[Node] = {node.args[0] for node in deferred if node.op is COPY}
        self.before_change: set[Node] = set()
        self.index_checks: dict[int, IndexCheck] = {}
        self._check_of: dict[tuple[Node, Size], int] = {}
        self._recomputed: set[tuple[int, Node]] = set()
        """Scalars that nests compute anew, by nest."""

    def take(self, node: Node) -> list[Use]:
        """All uses of a value, which is then decided on."""
        uses = self.pending.pop(node, [])
        self.undecided.discard(node)
        for use in uses:
            self.drafts.by_number[use.nest].undecided.discard(node)
        return uses

    def store(self, node: Node, draft: NestDraft, uses: Sequence[Use], shape: Iterable[Size]) -> None:
        """Make a value of this shape a root of a nest, for these uses."""
        draft.roots.append(node)
        self.nest_of[node] = draft.number
        self.of_stored[node] = uses
        for use in uses:
            self.drafts.depend(draft.number, use.nest)
        self.add_sizes(shape, draft)

    def is_materialised(self, node: Node) -> bool:
        """Tell whether a value yet to be decided on will be materialised: in any case, or because it is expensive."""
        certain = node in self.goals.targets or node in self.whole or node in self.expected
        return certain or node.op.cost > EXPENSIVE

    def add(self, node: Node, use: Use) -> None:
        """Note that a nest needs an element of a value. A scalar that is already placed, or that an index map has made
        and that is therefore in no order, is computed again: its own arguments are needed instead."""
        if not (use.index or node in self.undecided or node.op in LEAVES):
            self._add_operands(node, use)
            return
        self.pending.setdefault(node, []).append(use)
        if self.expected and not (self.is_materialised(node) or lies_in_memory(node)):
            draft = self.drafts.by_number[use.nest]
            if node.ndim >= len(draft.space):
                draft.undecided.add(node)

    def _add_operands(self, scalar: Node, use: Use) -> None:
        """Note that a nest needs what a scalar is made of, once for each nest."""
        pending = [scalar]
        while pending:
            node = pending.pop()
            if node in self.undecided or node.op in LEAVES:
                self.pending.setdefault(node, []).append(use)
            elif (use.nest, node) not in self._recomputed:
                self._recomputed.add((use.nest, node))
                if isinstance(nodes.lowering_of(node), Scalar):
                    pending.extend(node.args)
                elif node in self.nest_of:
                    self.drafts.depend(self.nest_of[node], use.nest)
                    self.of_stored[node] = (*self.of_stored[node], use)
                else:
                    expand(self, node, use)

    def add_sizes(self, shape: Iterable[Size], draft: NestDraft) -> None:
        """Note that a nest needs some sizes."""
        for size in map(self.goals.sizing.of, shape):
            if isinstance(size, Node) and size.op is not SIZE:
                self.add(size, Use(draft.number, (), ()))

    def add_whole(self, node: Node, draft: NestDraft) -> None:
        """Note that a nest needs all elements of a value, in loops of its own."""
        path = nodes.loop_vars(node.ndim)
        self.add(node, Use(draft.number, path, path))

    def add_captured(
        self, sizes: Iterable[Size], sources: Iterable[Node], scalars: Iterable[Node], draft: NestDraft
    ) -> None:
        """Note what the bodies of a nest take from outside: sizes, values in memory and scalars."""
        self.add_sizes(sizes, draft)
        for source in dict.fromkeys(sources):
            self.whole.add(source)
            self.add_whole(source, draft)
        for scalar in scalars:
            self.add(scalar, Use(draft.number, (), ()))

    def element(self, use: Use) -> Callable[[Node, Index], ir.Expr]:
        """A function that index maps call for the elements of other arguments, and that notes the use."""

        def noted(node: Node, index: Index) -> ir.Expr:
            if node.op is SIZE:
                node = as_size_node(self.goals.sizing.of(node))
                if (value := constant_value(node)) is not None:
                    return ir.integer(int(value))
            self.add(node, Use(use.nest, index, nodes.reach(index, use.path)))
            return nodes.index_element(node, index)

        return noted

    def check_indices(self, node: Node, nest: int) -> None:
        """Plan the check of the indices of a gather or scatter, once for each index array and axis."""
        sizing = self.goals.sizing
        for index, axis_size in gathered(node):
            size = sizing.of(axis_size)
            if in_range(index, size, sizing):
                continue
            number = self._check_of.get((index, size))
            if number is None:
                draft = self.drafts.new("check", sizing.shape(index))
                number = self._check_of[index, size] = draft.number
                bounds = comparable_bounds(index, sizing) if draft.vars else None
                self.index_checks[number] = IndexCheck(index, size, node, bounds)
                self.add(index, Use(number, draft.vars, draft.vars))
                self.add_sizes((size, *draft.space, *(bounds or ())), draft)
            self.drafts.depend(number, nest)


# What lowerings need --------------------------------------------------------------------------------------------------


def expand(uses: Uses, node: Node, use: Use) -> None:
    """Note what one element of `node` needs of its arguments."""
    draft = uses.drafts.by_number[use.nest]
    draft.ops += 1
    draft.cost += node.op.cost
    lowering = nodes.lowering_of(node)
    match lowering:
        case Scalar():
            for arg in node.args:
                uses.add(arg, Use(use.nest, use.index, use.path))
        case View():
            position, index = lowering.index(node, use.index, uses.element(use))
            uses.add(node.args[position], Use(use.nest, index, nodes.reach(index, use.path)))
            uses.check_indices(node, use.nest)
        case Fold():
            outer = nodes.reach(use.index, use.path)
            reduced = nodes.fold_vars(node, lowering)
            if nodes.is_written_out(node, [uses.goals.sizing.of(size) for size in lowering.sizes(node)]):
                # The terms of several such reductions are the same elements.
                reduced = tuple(ir.Var(f"term{len(outer)}_{axis}", ir.INDEX) for axis in range(len(reduced)))
            inner = (*outer, *reduced)
            uses.add_sizes(lowering.sizes(node), draft)
            for position, index in lowering.operands(node, use.index, reduced):
                uses.add(node.args[position], Use(use.nest, index, inner))
        case SegmentNumber():
            draft.segments = node
            _expand_starts(uses, node.args[0], Use(use.nest, (nodes.segment_var(node),), (nodes.segment_var(node),)))
        case Iota() | None:
            pass
        case Call():
            expand_call(uses, node, draft)
        case _:
            raise AssertionError(f"{node.op.name} cannot be computed inside another nest")


def expand_reduction(uses: Uses, node: Node, fold: Fold, kept: Index, reduced: Index, draft: NestDraft) -> None:
    """Note what a nest needs that carries out one reduction: loops over the axes that are kept and reduced."""
    draft.ops += 1
    for position, index in fold.operands(node, kept, reduced):
        uses.add(node.args[position], Use(draft.number, index, nodes.reach(index, draft.path)))


def expand_recurrence(uses: Uses, node: Node, draft: NestDraft) -> None:
    """Note what a recurrence needs: each element of the result the same one of every argument."""
    draft.ops += 1
    for arg in node.args:
        uses.add(arg, Use(draft.number, draft.vars, draft.vars) if arg.ndim else Use(draft.number, (), ()))


def expand_segments(uses: Uses, node: Node, draft: NestDraft) -> None:
    """Note what sums of segments need: where each begins and ends, and its rows in turn."""
    draft.ops += 1
    x, starts = node.args
    row, *columns = draft.vars
    begin = _expand_starts(uses, starts, Use(draft.number, (row,), draft.vars))
    step = nodes.segment_var(node)
    index = (ir.add(ir.cast(begin, ir.INDEX), step), *columns)
    uses.add(x, Use(draft.number, index, (row, step, *columns)))


def _expand_starts(uses: Uses, starts: Node, use: Use) -> ir.Expr:
    """Note what a loop over segments needs, whose variable is the index of a use: where each begins and ends."""
    uses.add_sizes((nodes.segment_count(starts),), uses.drafts.by_number[use.nest])
    element, (row,) = uses.element(use), use.index
    begin, _ = element(starts, (row,)), element(starts, (ir.add(row, ir.ONE),))
    return begin


def expand_writes(uses: Uses, node: Node, lowering: Writes, draft: NestDraft) -> None:
    """Note what a nest needs that builds a value by writes: the element and the position of each."""
    uses.check_indices(node, draft.number)
    for region in lowering.regions(node):
        if region.is_copy and uses.goals.is_in_place(node.args[0], node):
            draft.in_place = True
            if not writes_one(node) or len(uses.goals.older.get(node, ())) > 1:
                uses.before_change.update(arg for arg in node.args[1:] if uses.goals.reads_older(arg, node))
            continue
        path = nodes.loop_vars(len(region.sizes))
        use = Use(draft.number, path, path)
        uses.add_sizes(region.sizes, draft)
        target = region.target(path, uses.element(use))
        in_order = not path or _follows(target[-1], path[-1]) or nodes.is_by_segment(target[-1])
        draft.scattered = draft.scattered or not in_order
        position, index = region.value(path)
        uses.add(node.args[position], Use(draft.number, index, nodes.reach(index, path)))
        draft.ops += 1


def writes_one(node: Node) -> bool:
    """Tell whether a value is the one before with one element changed: all that this is computed from is read first."""
    lowering = nodes.lowering_of(node)
    if not isinstance(lowering, Writes):
        return False
    return all(region.is_copy or all(size == 1 for size in region.sizes) for region in lowering.regions(node))


def expand_call(uses: Uses, node: Node, draft: NestDraft) -> None:
    """Note what an external function takes, and what it adds to element by element, unless that is there."""
    call = nodes.call_of(node)
    assert call is not None
    for passed in call.passed(node):
        match passed:
            case Whole(operand):
                uses.whole.add(operand)
                uses.add_whole(operand, draft)
                uses.add_sizes(operand.type.shape, draft)
            case Strided(operand):
                view = nodes.buffer_view(operand, uses.goals.sizing)
                uses.whole.add(view.base)
                uses.add_whole(view.base, draft)
                uses.add_sizes((*view.shape, *operand.type.shape, *(axis.start for axis in view.along)), draft)
            case ByValue(scalar):
                uses.add(scalar, Use(draft.number, (), ()))
            case Extent(size):
                uses.add_sizes((size,), draft)
            case Workspace(_, shape):
                uses.add_sizes(shape, draft)
    if (added := call.added(node)) is not None:
        operand, factor = added
        uses.add(factor, Use(draft.number, (), ()))
        if uses.goals.is_in_place(operand, draft.roots[0]):
            draft.in_place = True
        else:
            uses.add_whole(operand, draft)
    draft.ops += 1


def goes_over(uses: Uses, node: Node, use: Use) -> bool:
    """Tell whether numbers of segments are read in the order of positions by the first loop of a nest, which may then
    be one over these segments."""
    sizing, draft = uses.goals.sizing, uses.drafts.by_number[use.nest]
    if draft.segments not in (None, node):
        return False
    count = sizing.of(node.type.shape[0])
    if draft.kind == "loops":
        return use.index == draft.index[:1] and draft.space[:1] == (count,)
    if draft.kind != "writes" or use.index != nodes.loop_vars(1):
        return False
    (root,) = draft.roots
    lowering = nodes.lowering_of(root)
    assert isinstance(lowering, Writes)
    regions = [region for region in lowering.regions(root) if not (region.is_copy and draft.in_place)]
    others = [region for region in regions if region.sizes and sizing.of(region.sizes[0]) != count]
    return not any(depends_on(root.args[each.value(nodes.loop_vars(len(each.sizes)))[0]], node) for each in others)


def _follows(position: ir.Expr, var: ir.Var) -> bool:
    """Tell whether positions follow one another as a variable counts."""
    if isinstance(position, ir.Apply) and position.op is operators.ADD:
        moving = [arg for arg in position.args if var in nodes.variables_of([arg])]
        return moving == [var]
    return position == var


def depends_on(node: Node, leaf: Node) -> bool:
    """Tell whether the value of a node that is computed depends on a leaf."""
    return node is not leaf and leaf in reachable([node], lambda each: each.args)
