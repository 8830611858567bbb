"""Which nests of loops there are: values placed in nests, what these need of others, and which must come after which.

In: values that are to be materialised, or recomputed at each use (materialize.py). Out: `Nests`: drafts of nests with
the uses of every value, index checks, and dependences; of updates that cannot be made in place, and nests in order.

Materialised values whose loops run over the same sizes share a nest where no dependence forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from graphc.codegen.schedule.branches import branch_graph, branch_sizes
from graphc.codegen.schedule.cost import EXPENSIVE, lies_in_memory
from graphc.codegen.schedule.fusion import Access, reads_of
from graphc.codegen.schedule.plan import (
    COPY,
    Bound,
    BranchGraph,
    Draft,
    Kind,
    Purpose,
    StepGraph,
    Use,
    call_of,
    fold_vars,
    gathered,
    in_range,
    is_by_segment,
    is_product,
    loop_vars,
    lowering_of,
    nowhere,
    reach,
    segment_count,
    segment_var,
    split_axes,
    unrolls,
    variables_of,
)
from graphc.codegen.schedule.sizes import Sizing
from graphc.codegen.schedule.steps import sizes_of, step_graph
from graphc.codegen.schedule.strided import strided
from graphc.ir.body import guard_sides, items_of
from graphc.ir.lowering import (
    Branch,
    Call,
    Extent,
    Fold,
    Given,
    Iota,
    Part,
    Recur,
    Repeat,
    Scalar,
    SegmentNumber,
    Segments,
    Strided,
    View,
    Whole,
    Workspace,
    Writes,
)
from graphc.ir.node import LEAVES, SIZE, Guard, Index, Node, Size, TupleType, constant_value
from graphc.ir.walk import as_size_node, reachable, toposort
from graphc.loopir.build import cast
from graphc.loopir.ir import INDEX, ONE, Apply, Expr, Opaque, Var, add, integer
from graphc.loopir.operators import ADD
from graphc.loopir.syntax import holes
from graphc.ops.given import given_sizes

NEST_OPS = 160
"""A nest with more ops than this is split where one value is all that its two parts have in common, at MOST_OPS
anywhere: compile time grows faster than the gain of fusing."""
MOST_ROOTS = 8
"""Values that one nest materialises."""
MOST_TRIED = 12
"""Of the nests that do not use a value, how many of the last are asked whether they may materialise it."""
NEST_COST = 60.0
"""A nest that costs more than this takes no more values that are materialised anyway: cutting it there costs a load."""


SEVERAL: Mapping[type, tuple[Kind, str]] = {
    Repeat: ("steps", "a result of a loop"),
    Branch: ("branch", "a result of a branch"),
    Call: ("call", "a result of an external function"),
}
"""Of what makes several results the kind of its nest, and why they are materialised."""


def is_associative(fold: Fold) -> bool:
    """Whether parts of a reduction may be reduced by themselves, and their results then with the same step."""
    return len(fold.start) == 1 and 2 not in holes(fold.step[0])


def follow(place: Expr, var: Var) -> bool:
    """Whether places follow one another as a variable counts."""
    if isinstance(place, Apply) and place.op is ADD:
        moving = [arg for arg in place.args if var in variables_of([arg])]
        return moving == [var]
    return place == var


def needs(node: Node, leaf: Node) -> bool:
    """Whether the value of a node that is computed depends on a leaf."""
    return node is not leaf and leaf in reachable([node], lambda each: each.args)


class Nests:
    """The nests of one kernel while values are placed in them.

    `targets`: for every result node, the buffer it goes to; `overwritten`: buffers of variables that results go to, so
    that what reads the old value must come first; `leaves`: buffer names of inputs, shared variables and constants;
    `expected`: values that a plan before this one has materialised, from which others may be recomputed; `earlier`:
    that plan, where it was for the same targets.
    """

    def __init__(
        self,
        targets: Mapping[Node, str],
        overwritten: Mapping[str, Node],
        sizing: Sizing,
        purpose: Purpose,
        deferred: frozenset[str] = frozenset(),
        expected: frozenset[Node] = frozenset(),
        earlier: Nests | None = None,
    ):
        self.targets = targets
        self.overwritten = overwritten
        self.sizing = sizing
        self.deferred = deferred
        self.expected = expected
        self.purpose = purpose
        self.graphs: dict[Node, StepGraph | BranchGraph] = {} if earlier is None else earlier.graphs
        roots = (*targets, *(side for guard in purpose.checks for side in guard_sides(guard)))
        self.order: Sequence[Node] = earlier.order if earlier else toposort(roots, self.predecessors)
        self.rounds: Mapping[Node, int] = earlier.rounds if earlier else self.rounds_of(self.order)
        self.relied: set[Node] = set()
        self.undecided = set(self.order)
        self.parts: set[tuple[int, Node]] = set()
        self.drafts: dict[int, Draft] = {}
        self.uses: dict[Node, list[Use]] = {}
        self.reasons: dict[Node, str] = {}
        self.nest_of: dict[Node, int] = {}
        self.after: dict[int, set[int]] = {}
        self.before: dict[int, set[int]] = {}
        self.later: dict[int, int] = {}
        self.leaf_uses: dict[Node, list[Use]] = {}
        self.bounds: dict[int, Bound] = {}
        self.checks: dict[tuple[Node, Size], int] = {}
        self.guards: dict[int, Guard] = {}
        self.body_drafts: dict[Node, int] = {}
        self.steps: dict[int, StepGraph] = {}
        self.branches: dict[int, BranchGraph] = {}
        self.materialised_uses: dict[Node, Sequence[Use]] = {}
        self.before_change: set[Node] = set()
        self.needed: set[Node] = {
            node.args[0] for node, buffer in targets.items() if buffer in deferred and node.op is COPY
        }

    # What is known of values ---------------------------------------------------------------------------------

    def rounds_of(self, order: Iterable[Node]) -> dict[Node, int]:
        """How many reductions along rows must have run, one after the other, before each of the nodes is known."""
        rounds: dict[Node, int] = {}
        for node in order:
            before = max((rounds[arg] for arg in node.args), default=0)
            lowering = None if node.op in LEAVES else lowering_of(node)
            by_rows = node.ndim and isinstance(lowering, Fold) and not self.is_column_reduction(node, lowering)
            rounds[node] = before + 1 if by_rows else before
        return rounds

    def predecessors(self, node: Node) -> tuple[Node, ...]:
        """What must be known before a node: its arguments, and the sizes of its loops and of those within its bodies;
        of one with several results those of all, before any of these is placed."""
        sides = (side for guard in self.purpose.guarded.get(node, ()) for side in guard_sides(guard))
        shape = self.sizing.shape(node)
        if isinstance(node.type, TupleType):
            shape = tuple(self.sizing.of(size) for part in node.type.parts for size in part.shape)
        shape += tuple(map(self.sizing.of, self.other_sizes(node)))
        return (*node.args, *(size for size in shape if isinstance(size, Node)), *sides)

    def other_sizes(self, node: Node) -> Sequence[Size]:
        """The sizes that the nest of a node needs besides those of what it stores."""
        match None if node.op in LEAVES else lowering_of(node):
            case SegmentNumber():
                return (segment_count(node.args[0]),)
            case Repeat():
                return sizes_of(self.step_graph(node))
            case Branch():
                return branch_sizes(self.branch_graph(node))
            case _:
                return ()

    def step_graph(self, node: Node) -> StepGraph:
        """One step of a loop, made once."""
        graph = self.graphs.get(node)
        if graph is None:
            graph = self.graphs[node] = step_graph(node, self.sizing)
        assert isinstance(graph, StepGraph)
        return graph

    def branch_graph(self, node: Node) -> BranchGraph:
        """Both bodies of a branch, made once."""
        graph = self.graphs.get(node)
        if graph is None:
            graph = self.graphs[node] = branch_graph(node, self.sizing)
        assert isinstance(graph, BranchGraph)
        return graph

    def is_materialised(self, node: Node) -> bool:
        """Whether a value yet to be decided on will be materialised: in any case, or because it is expensive."""
        return node in self.targets or node in self.needed or node in self.expected or node.op.cost > EXPENSIVE

    def is_column_reduction(self, node: Node, fold: Fold) -> bool:
        """Whether a reduction, which is not written out, adds rows into its result: so it reads memory in order."""
        if len(fold.start) > 1 or not fold.axes or unrolls([self.sizing.of(size) for size in fold.sizes(node)]):
            return False
        operand = node.args[fold.operands(node, nowhere(node.ndim), nowhere(len(fold.sizes(node))))[0][0]]
        return operand.ndim - 1 not in fold.axes

    # Placement ------------------------------------------------------------------------------------------------

    def inline(self, node: Node, uses: Sequence[Use]) -> None:
        for use in dict.fromkeys(uses):
            self.expand(node, use)

    def materialise(self, node: Node, uses: Sequence[Use], reason: str) -> None:
        lowering = lowering_of(node)
        self.reasons[node] = reason
        kind = self.kind(node, lowering)
        draft = self.join(node, kind, lowering, uses) or self.new_draft(kind, self.space(node, kind, lowering))
        self.place(node, draft, uses, draft.space)
        match lowering:
            case Writes():
                self.expand_writes(node, lowering, draft)
            case Call():
                self.expand_call(node, draft)
            case Recur():
                self.expand_recur(node, lowering, draft)
            case Segments():
                self.expand_segments(node, draft)
            case Fold() if kind == "column reduction":
                self.expand_fold(node, lowering, split_axes(draft.index, lowering.axes), draft)
            case Fold() if kind == "full reduction":
                self.expand_fold(node, lowering, ((), draft.index), draft)
            case _:
                self.expand(node, Use(draft.number, draft.index, draft.path))

    def kind(self, node: Node, lowering: object) -> Kind:
        """How the nest that stores a value is carried out."""
        match lowering:
            case Writes():
                return "writes"
            case Call():
                return "call"
            case Recur():
                return "recurrence"
            case Segments():
                return "segments"
            case Part():
                return "steps"
            case Fold() if not node.ndim:
                sizes = [self.sizing.of(size) for size in lowering.sizes(node)]
                return "full reduction" if sizes and not unrolls(sizes) and is_associative(lowering) else "loops"
            case Fold() if self.is_column_reduction(node, lowering):
                return "column reduction"
            case _:
                return "loops"

    def space(self, node: Node, kind: Kind, lowering: object) -> tuple[Size, ...]:
        if kind == "full reduction" and isinstance(lowering, Fold):
            return tuple(self.sizing.of(size) for size in lowering.sizes(node))
        if kind == "column reduction" and isinstance(lowering, Fold):
            operand = node.args[lowering.operands(node, nowhere(node.ndim), nowhere(len(lowering.sizes(node))))[0][0]]
            return self.sizing.shape(operand)
        return self.sizing.shape(node)

    def new_draft(self, kind: Kind, space: tuple[Size, ...]) -> Draft:
        draft = Draft(len(self.drafts), kind, space, loop_vars(len(space)))
        self.drafts[draft.number] = draft
        self.after[draft.number], self.before[draft.number] = set(), set()
        self.later[draft.number] = 0
        return draft

    def depend(self, first: int, then: int) -> None:
        """Note that nest `then` must come after nest `first`, and so after all that come before that."""
        if first == then or then in self.after[first]:
            return
        self.after[first].add(then)
        self.before[then].add(first)
        more = self.later[then] | 1 << then
        pending = [first]
        while pending:
            number = pending.pop()
            known = self.later[number]
            if known | more != known:
                self.later[number] = known | more
                pending.extend(self.before[number])

    def is_later(self, number: int, start: int) -> bool:
        """Whether a nest must come after nest `start`."""
        return bool(self.later[start] >> number & 1)

    def join(self, node: Node, kind: Kind, lowering: object, uses: Sequence[Use]) -> Draft | None:
        """A planned nest over the same sizes that may compute `node` too. Column reductions share a nest where they
        reduce the same axes, and none needs another's result."""
        if kind not in ("loops", "column reduction"):
            return None
        space, axes = self.space(node, kind, lowering), self.reduced_axes(node)
        users = list(dict.fromkeys(use.nest for use in uses))
        others = list(islice((number for number in reversed(self.drafts) if number not in users), MOST_TRIED))
        if kind == "loops":
            others = [] if self.feeds_reduction(users) else [n for n in others if self.waits_alike(node, n)]
        for number in (*users, *others):
            draft = self.drafts[number]
            if draft.kind != kind or draft.space != space or not self.has_room(draft, node):
                continue
            if isinstance(lowering, SegmentNumber) and draft.segments not in (None, node):
                continue
            if kind == "column reduction" and self.reduced_axes(draft.roots[0]) != axes:
                continue
            if any(use.nest == number and (kind == "column reduction" or use.index != draft.index) for use in uses):
                continue
            if any(self.is_later(number, user) for user in users):
                continue
            if any(self.is_deferred(root) != self.is_deferred(node) for root in draft.roots):
                continue
            if number not in users and self.feeds_reduction(
                u.nest for r in draft.roots for u in self.materialised_uses[r]
            ):
                continue
            updates = any(self.targets.get(root) in self.overwritten for root in (node, *draft.roots))
            if updates and any(user != number for user in users):
                continue
            return draft
        return None

    def has_room(self, draft: Draft, node: Node) -> bool:
        """Whether a nest may store one more value."""
        full = draft.kind == "loops" and node not in self.targets and draft.cost >= NEST_COST
        return not full and draft.ops < NEST_OPS and len(draft.roots) < MOST_ROOTS

    def feeds_reduction(self, users: Iterable[int]) -> bool:
        """Whether a value with these users goes into a reduction of its own nest. Others stay out of its nest: a sum
        that they need would come before the reduction, and share no loop with it."""
        return any(self.drafts[user].kind in ("column reduction", "full reduction") for user in users)

    def waits_alike(self, node: Node, number: int) -> bool:
        """Whether a nest waits for as many reductions along a row as a value does. In one that waits for more, the
        value would not be materialised where the loop over rows makes what it is computed from."""
        return node.ndim < 2 or any(self.rounds[node] == self.rounds[root] for root in self.drafts[number].roots[:1])

    def reduced_axes(self, node: Node) -> tuple[int, ...]:
        """The loops over its operand that a reduction reduces; none for other ops."""
        lowering = lowering_of(node)
        return tuple(lowering.axes) if isinstance(lowering, Fold) else ()

    def is_deferred(self, node: Node) -> bool:
        """Whether a root is the last copy of an update: it must not run before all that reads the old value."""
        return self.targets.get(node) in self.deferred

    # Uses -----------------------------------------------------------------------------------------------------

    def want(self, node: Node, use: Use) -> None:
        """Note that a nest needs an element of a value. A scalar that is decided on already, or is in no order because
        an index map has made it, is computed anew: what it is made of is needed instead."""
        if not (use.index or node in self.undecided or node.op in LEAVES):
            self.want_parts(node, use)
            return
        self.uses.setdefault(node, []).append(use)
        if self.expected and not (self.is_materialised(node) or lies_in_memory(node)):
            draft = self.drafts[use.nest]
            if node.ndim >= len(draft.space):
                draft.open.add(node)

    def want_parts(self, made: Node, use: Use) -> None:
        """Note that a nest needs what a scalar is made of, once for each nest."""
        pending = [made]
        while pending:
            node = pending.pop()
            if node in self.undecided or node.op in LEAVES:
                self.uses.setdefault(node, []).append(use)
            elif (use.nest, node) not in self.parts:
                self.parts.add((use.nest, node))
                if isinstance(lowering_of(node), Scalar):
                    pending.extend(node.args)
                elif node in self.nest_of:
                    self.depend(self.nest_of[node], use.nest)
                    self.materialised_uses[node] = (*self.materialised_uses[node], use)
                else:
                    self.expand(node, use)

    def want_size(self, size: Size, nest: int) -> None:
        if isinstance(size, Node) and size.op is not SIZE:
            self.want(size, Use(nest, (), ()))

    def want_sizes(self, shape: Iterable[Size], draft: Draft) -> None:
        for size in shape:
            self.want_size(self.sizing.of(size), draft.number)

    def want_whole(self, node: Node, draft: Draft) -> None:
        """All elements of a value, in loops of its own."""
        path = loop_vars(node.ndim)
        self.want(node, Use(draft.number, path, path))

    def element(self, use: Use) -> Callable[[Node, Index], Expr]:
        """What index maps call for the elements of other arguments: it notes the use."""

        def wanted(node: Node, index: Index) -> Expr:
            if node.op is SIZE:
                node = as_size_node(self.sizing.of(node))
                if (value := constant_value(node)) is not None:
                    return integer(int(value))
            self.want(node, Use(use.nest, index, reach(index, use.path)))
            return Opaque(node, index, node.dtype)

        return wanted

    def expand(self, node: Node, use: Use) -> None:
        """Note what one element of `node` needs of its arguments."""
        draft = self.drafts[use.nest]
        draft.ops += 1
        draft.cost += node.op.cost
        lowering = lowering_of(node)
        match lowering:
            case Scalar():
                for arg in node.args:
                    self.want(arg, Use(use.nest, use.index, use.path))
            case View():
                position, index = lowering.index(node, use.index, self.element(use))
                self.want(node.args[position], Use(use.nest, index, reach(index, use.path)))
                self.bound_gather(node, use.nest)
            case Fold():
                reduced = fold_vars(node, lowering)
                inner = (*reach(use.index, use.path), *reduced)
                for size in lowering.sizes(node):
                    self.want_size(self.sizing.of(size), use.nest)
                for position, index in lowering.operands(node, use.index, reduced):
                    self.want(node.args[position], Use(use.nest, index, inner))
            case SegmentNumber():
                draft.segments = node
                self.expand_starts(node.args[0], Use(use.nest, (segment_var(node),), (segment_var(node),)))
            case Iota() | None:
                pass
            case Call():
                self.expand_call(node, draft)
            case _:
                raise AssertionError(f"{node.op.name} cannot be computed inside another nest")

    def expand_fold(self, node: Node, fold: Fold, indices: tuple[Index, Index], draft: Draft) -> None:
        """Note what a nest needs that carries out one reduction, at (kept, reduced) `indices`."""
        draft.ops += 1
        for position, index in fold.operands(node, *indices):
            self.want(node.args[position], Use(draft.number, index, reach(index, draft.path)))

    def expand_recur(self, node: Node, recur: Recur, draft: Draft) -> None:
        """Note what a recurrence needs: each element of the result the same one of every argument."""
        draft.ops += 1
        for arg in node.args:
            self.want(arg, Use(draft.number, draft.vars, draft.vars) if arg.ndim else Use(draft.number, (), ()))

    def expand_segments(self, node: Node, draft: Draft) -> None:
        """Note what sums of segments need: where each begins and ends, and its rows in turn."""
        draft.ops += 1
        x, starts = node.args
        row, *columns = draft.vars
        begin = self.expand_starts(starts, Use(draft.number, (row,), draft.vars))
        place = segment_var(node)
        index = (add(cast(begin, INDEX), place), *columns)
        self.want(x, Use(draft.number, index, (row, place, *columns)))

    def expand_starts(self, starts: Node, use: Use) -> Expr:
        """Note what a loop over segments needs, of which a use has the variable: where each begins and ends."""
        self.want_size(self.sizing.of(segment_count(starts)), use.nest)
        element, (row,) = self.element(use), use.index
        begin, _ = element(starts, (row,)), element(starts, (add(row, ONE),))
        return begin

    def goes_over(self, node: Node, use: Use) -> bool:
        """Whether numbers of segments are read in the order of positions by the first loop of a nest, which may then
        be one over these segments."""
        draft = self.drafts[use.nest]
        if draft.segments not in (None, node):
            return False
        count = self.sizing.of(node.type.shape[0])
        if draft.kind == "loops":
            return use.index == draft.index[:1] and draft.space[:1] == (count,)
        if draft.kind != "writes" or use.index != loop_vars(1):
            return False
        (root,) = draft.roots
        lowering = lowering_of(root)
        assert isinstance(lowering, Writes)
        regions = [region for region in lowering.regions(root) if not (region.copies and draft.in_place)]
        short = [region for region in regions if region.sizes and self.sizing.of(region.sizes[0]) != count]
        return not any(needs(root.args[region.value(loop_vars(len(region.sizes)))[0]], node) for region in short)

    def expand_writes(self, node: Node, lowering: Writes, draft: Draft) -> None:
        self.bound_gather(node, draft.number)
        for region in lowering.regions(node):
            if region.copies and self.is_in_place(node.args[0], node):
                draft.in_place = True
                self.before_change.update(arg for arg in node.args[1:] if needs(arg, node.args[0]))
                continue
            path = loop_vars(len(region.sizes))
            use = Use(draft.number, path, path)
            self.want_sizes(region.sizes, draft)
            target = region.target(path, self.element(use))
            in_order = not path or follow(target[-1], path[-1]) or is_by_segment(target[-1])
            draft.scattered = draft.scattered or not in_order
            position, index = region.value(path)
            self.want(node.args[position], Use(draft.number, index, reach(index, path)))
            draft.ops += 1

    def expand_call(self, node: Node, draft: Draft) -> None:
        """What a function is given; what it adds to element by element, unless it is there."""
        call = call_of(node)
        assert call is not None
        for passed in call.passed(node):
            match passed:
                case Whole(operand):
                    self.needed.add(operand)
                    self.want_whole(operand, draft)
                    self.want_sizes(operand.type.shape, draft)
                case Strided(operand):
                    view = strided(operand, self.sizing)
                    self.needed.add(view.base)
                    self.want_whole(view.base, draft)
                    self.want_sizes((*view.shape, *operand.type.shape, *(part.start for part in view.along)), draft)
                case Given(scalar):
                    self.want(scalar, Use(draft.number, (), ()))
                case Extent(size):
                    self.want_sizes((size,), draft)
                case Workspace(_, shape):
                    self.want_sizes(shape, draft)
        if (added := call.added(node)) is not None:
            operand, factor = added
            self.want(factor, Use(draft.number, (), ()))
            if self.is_in_place(operand, draft.roots[0]):
                draft.in_place = True
            else:
                self.want_whole(operand, draft)
        draft.ops += 1

    def place(self, node: Node, draft: Draft, uses: Sequence[Use], shape: Sequence[Size]) -> None:
        """Make a node a result of a nest, for these uses."""
        draft.roots.append(node)
        self.nest_of[node] = draft.number
        self.materialised_uses[node] = uses
        for use in uses:
            self.depend(draft.number, use.nest)
        self.want_sizes(shape, draft)

    def materialise_item(self, node: Node, uses: Sequence[Use]) -> None:
        """Place a result of a loop, a branch or a call with the others in the nest that carries it out."""
        (whole,) = node.args
        kind, result = SEVERAL[type(lowering_of(whole))]
        if whole not in self.body_drafts:
            self.body_drafts[whole] = self.new_draft(kind, ()).number
        draft = self.drafts[self.body_drafts[whole]]
        self.reasons[node] = "a result" if node in self.targets else result
        self.place(node, draft, uses, self.sizing.shape(node))

    def expand_bodies(self, node: Node) -> None:
        """Note what the nest of a node with several results needs, of which something is used."""
        if node not in self.body_drafts:
            return
        draft = self.drafts[self.body_drafts[node]]
        for each in items_of(node):
            if each not in self.nest_of:
                self.materialise_item(each, ())
        if draft.kind == "call":
            self.expand_call(node, draft)
            return
        if draft.kind == "branch":
            self.expand_branch(node, draft)
        else:
            self.expand_steps(node, draft)
        draft.ops += 1

    def expand_steps(self, node: Node, draft: Draft) -> None:
        """Values in memory, scalars, and the elements of the initial states."""
        graph = self.steps[draft.number] = self.step_graph(node)
        self.want_given(node, graph.sources, graph.scalars, draft)
        for initial in graph.loop.initial:
            self.want_whole(initial, draft)
        self.want_sizes(sizes_of(graph), draft)

    def expand_branch(self, node: Node, draft: Draft) -> None:
        """The condition, values in memory, and scalars."""
        graph = self.branches[draft.number] = self.branch_graph(node)
        self.want(node.args[0], Use(draft.number, (), ()))
        self.want_given(node, graph.sources, graph.scalars, draft)
        self.want_sizes(branch_sizes(graph), draft)

    def want_given(self, node: Node, sources: Mapping[Node, Node], scalars: Mapping[Node, Node], draft: Draft) -> None:
        """Note what bodies are given: values in memory, scalars and sizes."""
        self.want_sizes(given_sizes(node), draft)
        for source in dict.fromkeys(sources.values()):
            self.needed.add(source)
            self.want_whole(source, draft)
        for scalar in scalars.values():
            self.want(scalar, Use(draft.number, (), ()))

    def check_guards(self, node: Node, nests: Iterable[int]) -> None:
        """Plan the checks of what must hold before some nests may compute a value."""
        for guard in self.purpose.guarded.get(node, ()):
            number = self.check(guard)
            for nest in dict.fromkeys(nests):
                self.depend(number, nest)

    def check_all(self) -> None:
        """Plan the checks of what no value of the plan needs."""
        for guard in self.purpose.checks:
            self.check(guard)

    def check(self, guard: Guard) -> int:
        """Plan a check."""
        draft = self.new_draft("guard", ())
        self.guards[draft.number] = guard
        for side in guard_sides(guard):
            self.want(side, Use(draft.number, (), ()))
        return draft.number

    def begins_sum(self, node: Node, uses: Sequence[Use]) -> bool:
        """Whether a product is only what another one is added to: then the same nest computes it, in its place."""
        return is_product(node) and len(uses) == 1 and any(map(is_product, self.drafts[uses[0].nest].roots[:1]))

    def is_in_place(self, leaf: Node, root: Node) -> bool:
        """Whether a result goes to this leaf's own buffer, which is changed as it is computed, not copied."""
        target = self.targets.get(root)
        return target is not None and self.overwritten.get(target) is leaf

    def bound_gather(self, node: Node, nest: int) -> None:
        """Plan the check of a gather's indices, once for each index array and axis."""
        for index, size in gathered(node):
            size = self.sizing.of(size)
            if in_range(index, size, self.sizing):
                continue
            number = self.checks.get((index, size))
            if number is None:
                draft = self.new_draft("check", self.sizing.shape(index))
                number = self.checks[index, size] = draft.number
                self.bounds[number] = Bound(index, size, node)
                self.want(index, Use(number, draft.vars, draft.vars))
                self.want_sizes((size, *draft.space), draft)
            self.depend(number, nest)

    # The finished plan ----------------------------------------------------------------------------------------

    def access(self) -> Access:
        """What the nests read and overwrite."""
        uses = {**self.leaf_uses, **self.materialised_uses}
        goals = ((node, self.overwritten.get(buffer)) for node, buffer in self.targets.items())
        overwrites = {node: leaf for node, leaf in goals if leaf is not None}
        readers = {node: {use.nest for use in uses} for node, uses in self.materialised_uses.items()}
        kept = frozenset((*self.needed, *self.targets))
        return Access(reads_of(uses, self.drafts), readers, overwrites, self.after, kept)

    def ordered(self) -> list[Draft]:
        order = toposort(sorted(self.drafts, reverse=True), lambda number: sorted(self.before[number], reverse=True))
        return [self.drafts[number] for number in order]
