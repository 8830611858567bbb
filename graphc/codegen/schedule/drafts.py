"""Nests while they are being planned: the problem, the order of its values, drafts and the dependences between them.

In: the results of a graph with the buffers they go to. Out: `Goals`, the problem; `GraphOrder`, its values in an order
in which they can be computed; `Drafts`, the nests so far and which must come after which. As an example:

    drafts = Drafts()
    first, second = drafts.new("loops", (n,)), drafts.new("loops", (n,))
    drafts.depend(first.number, second.number)
    drafts.is_later(second.number, first.number)    # True
    drafts.ordered()                                # [first, second]; CycleError where there is no order

placement.py puts values into drafts, uses.py notes what these need, materialize.py decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphc.codegen.schedule.bodies import branch_graph, branch_sizes, scan_graph, scan_sizes
from graphc.codegen.schedule.nodes import loop_vars, lowering_of, nowhere, segment_count, unrolls
from graphc.codegen.schedule.plan import BranchGraph, NestDraft, NestKind, Purpose, ScanGraph
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir.body import guard_sides
from graphc.ir.lowering import Branch, Fold, Repeat, SegmentNumber
from graphc.ir.node import Node, Size, TupleType
from graphc.ir.walk import toposort
from graphc.startup.record import record


@record()
class Goals:
    """The problem: every result node in `targets` is to be computed into its buffer. `overwritten`: buffers of leaves
    to which results go, so that what reads the old value must come first. `deferred`: those of them whose new value is
    computed elsewhere, and copied at the end."""

    targets: Mapping[Node, str]
    overwritten: Mapping[str, Node]
    sizing: Sizing
    purpose: Purpose
    deferred: frozenset[str] = frozenset()

    def is_in_place(self, leaf: Node, root: Node) -> bool:
        """Tell whether a result goes to this leaf's own buffer, which is changed as it is computed, not copied."""
        target = self.targets.get(root)
        return target is not None and self.overwritten.get(target) is leaf

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
        self._bodies: dict[Node, ScanGraph | BranchGraph] = {}
        checked = (side for guard in goals.purpose.checks for side in guard_sides(guard))
        self.nodes: Sequence[Node] = toposort((*goals.targets, *checked), self._predecessors)
        self.rounds: Mapping[Node, int] = _rounds_of(self.nodes, goals.sizing)

    def scan(self, node: Node) -> ScanGraph:
        """One step of a scan, made once."""
        if node not in self._bodies:
            self._bodies[node] = scan_graph(node, self._goals.sizing)
        graph = self._bodies[node]
        assert isinstance(graph, ScanGraph)
        return graph

    def branch(self, node: Node) -> BranchGraph:
        """Both bodies of a branch, made once."""
        if node not in self._bodies:
            self._bodies[node] = branch_graph(node, self._goals.sizing)
        graph = self._bodies[node]
        assert isinstance(graph, BranchGraph)
        return graph

    def _predecessors(self, node: Node) -> tuple[Node, ...]:
        """The values that must be known before a node: its arguments, and the sizes of its loops and of those within
        its bodies; of a node with several results those of all, before any of these is placed."""
        sizing, guarded = self._goals.sizing, self._goals.purpose.guarded
        sides = (side for guard in guarded.get(node, ()) for side in guard_sides(guard))
        shape = sizing.shape(node)
        if isinstance(node.type, TupleType):
            shape = tuple(sizing.of(size) for part in node.type.parts for size in part.shape)
        shape += tuple(map(sizing.of, self._other_sizes(node)))
        return (*node.args, *(size for size in shape if isinstance(size, Node)), *sides)

    def _other_sizes(self, node: Node) -> Sequence[Size]:
        """The sizes that the nest of a node needs besides those of what it stores."""
        match lowering_of(node):
            case SegmentNumber():
                return (segment_count(node.args[0]),)
            case Repeat():
                return scan_sizes(self.scan(node))
            case Branch():
                return branch_sizes(self.branch(node))
            case _:
                return ()


def _rounds_of(order: Iterable[Node], sizing: Sizing) -> dict[Node, int]:
    rounds: dict[Node, int] = {}
    for node in order:
        before = max((rounds[arg] for arg in node.args), default=0)
        lowering = lowering_of(node)
        by_rows = node.ndim and isinstance(lowering, Fold) and not is_column_reduction(node, lowering, sizing)
        rounds[node] = before + 1 if by_rows else before
    return rounds


def is_column_reduction(node: Node, fold: Fold, sizing: Sizing) -> bool:
    """Tell whether a reduction, which is not written out, adds rows into its result: so it reads memory in order."""
    if len(fold.start) > 1 or not fold.axes or unrolls([sizing.of(size) for size in fold.sizes(node)]):
        return False
    return reduced_operand(node, fold).ndim - 1 not in fold.axes


def reduced_operand(node: Node, fold: Fold) -> Node:
    """The operand over whose axes a reduction goes."""
    return node.args[fold.operands(node, nowhere(node.ndim), nowhere(len(fold.sizes(node))))[0][0]]


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
        draft = NestDraft(len(self.by_number), kind, space, loop_vars(len(space)))
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
        more = self._later[then] | 1 << then
        pending = [first]
        while pending:
            number = pending.pop()
            known = self._later[number]
            if known | more != known:
                self._later[number] = known | more
                pending.extend(self._before[number])

    def is_later(self, number: int, start: int) -> bool:
        """Tell whether a nest must come after nest `start`."""
        return bool(self._later[start] >> number & 1)

    def ordered(self) -> list[NestDraft]:
        """The nests in an order in which they may run. Raises CycleError where there is none."""
        order = toposort(
            sorted(self.by_number, reverse=True), lambda number: sorted(self._before[number], reverse=True)
        )
        return [self.by_number[number] for number in order]
