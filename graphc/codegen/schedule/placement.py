"""Values placed in nests: in one that goes over the same sizes where no dependence forbids it, else in a new one.

In: a value that is to be materialised, or computed at each use. Out: drafts of nests that store it, with what they
need of others (drafts.py). As an example, `y = exp(x)` and `z = y * 2`, both results: `z` is placed first (values come
from the results backwards) in a new nest `loops over [n]`; then `y`, whose only use is in that nest at the element at
hand, joins it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from graphc.codegen.schedule.bodies import branch_sizes, scan_sizes
from graphc.codegen.schedule.drafts import (
    Drafts,
    Goals,
    GraphOrder,
    Uses,
    expand,
    expand_call,
    expand_recurrence,
    expand_reduction,
    expand_segments,
    expand_writes,
    is_column_reduction,
    reduced_operand,
)
from graphc.codegen.schedule.nodes import Sizing, is_written_out, lowering_of, split_axes
from graphc.codegen.schedule.plan import BranchGraph, NestDraft, NestKind, ScanGraph, Use
from graphc.ir.body import guard_sides, items_of
from graphc.ir.lowering import Branch, Call, Fold, Part, Recur, Repeat, SegmentNumber, Segments, Writes
from graphc.ir.node import Guard, Node, Size
from graphc.loopir.syntax import holes
from graphc.ops.branch import given_sizes

NEST_OPS = 160
"""A nest with more ops than this is split where one value is all that its two parts have in common, at MOST_OPS
anywhere: compile time grows faster than the gain of fusing."""
MOST_ROOTS = 8
"""The most values that one nest materialises."""
MOST_CANDIDATES = 12
"""The number of the last nests that may materialise a value that they do not use."""
NEST_COST = 60.0
"""A nest that costs more than this takes no more values that are materialised anyway: cutting it there costs a load."""


SEVERAL: Mapping[type, tuple[NestKind, str]] = {
    Repeat: ("steps", "a result of a loop"),
    Branch: ("branch", "a result of a branch"),
    Call: ("call", "a result of an external function"),
}
"""For what makes several results the kind of its nest, and why they are materialised."""


class Placement:
    """Puts values into the drafts of one kernel. `reasons`: why each of those that are stored is materialised;
    `guards`, `scans`, `branches`: what nests of these kinds carry out, by number."""

    def __init__(self, goals: Goals, graph: GraphOrder, drafts: Drafts, uses: Uses) -> None:
        self._goals, self._graph, self._drafts, self._uses = goals, graph, drafts, uses
        self.reasons: dict[Node, str] = {}
        self.guards: dict[int, Guard] = {}
        self.scans: dict[int, ScanGraph] = {}
        self.branches: dict[int, BranchGraph] = {}
        self._nest_of_items: dict[Node, int] = {}
        """For a node with several results: the nest that computes them."""

    def inline(self, node: Node, uses: Sequence[Use]) -> None:
        """Compute a value at each of its uses."""
        for use in dict.fromkeys(uses):
            expand(self._uses, node, use)

    def materialise(self, node: Node, uses: Sequence[Use], reason: str) -> None:
        """Store a value, for these uses."""
        lowering = lowering_of(node)
        self.reasons[node] = reason
        kind = kind_of(node, lowering, self._goals.sizing)
        space = space_of(node, kind, lowering, self._goals.sizing)
        draft = self._join(node, kind, space, uses) or self._drafts.new(kind, space)
        self._uses.store(node, draft, uses, draft.space)
        match lowering:
            case Writes():
                expand_writes(self._uses, node, lowering, draft)
            case Call():
                expand_call(self._uses, node, draft)
            case Recur():
                expand_recurrence(self._uses, node, draft)
            case Segments():
                expand_segments(self._uses, node, draft)
            case Fold() if kind == "column reduction":
                expand_reduction(self._uses, node, lowering, *split_axes(draft.index, lowering.axes), draft)
            case Fold() if kind == "full reduction":
                expand_reduction(self._uses, node, lowering, (), draft.index, draft)
            case _:
                expand(self._uses, node, Use(draft.number, draft.index, draft.path))

    def _join(self, node: Node, kind: NestKind, space: tuple[Size, ...], uses: Sequence[Use]) -> NestDraft | None:
        """A planned nest over the same sizes that may compute `node` too, one of its users if possible."""
        if kind not in ("loops", "column reduction"):
            return None
        users = list(dict.fromkeys(use.nest for use in uses))
        others = list(
            islice((number for number in reversed(self._drafts.by_number) if number not in users), MOST_CANDIDATES)
        )
        if kind == "loops":
            others = [] if self._feeds_reduction(users) else [n for n in others if self._waits_alike(node, n)]
        candidates = (self._drafts.by_number[number] for number in (*users, *others))
        return next(
            (
                draft
                for draft in candidates
                if draft.kind == kind and draft.space == space and self._may_hold(draft, node, uses, users)
            ),
            None,
        )

    def _may_hold(self, draft: NestDraft, node: Node, uses: Sequence[Use], users: Collection[int]) -> bool:
        """Tell whether a nest of the kind and sizes that `node` needs may compute it, for these uses in these nests."""
        number, is_reduction = draft.number, draft.kind == "column reduction"
        if not self._has_room(draft, node):
            return False
        if isinstance(lowering_of(node), SegmentNumber) and draft.segments not in (None, node):
            return False
        if is_reduction and reduced_axes(draft.roots[0]) != reduced_axes(node):
            return False
        if any(use.nest == number and (is_reduction or use.index != draft.index) for use in uses):
            return False  # it reads elements that another iteration computes
        if any(self._drafts.is_later(number, user) for user in users):
            return False
        if any(self._goals.is_deferred(root) != self._goals.is_deferred(node) for root in draft.roots):
            return False
        uses_of_roots = (use.nest for root in draft.roots for use in self._uses.of_stored[root])
        if number not in users and self._feeds_reduction(uses_of_roots):
            return False
        updates = any(self._goals.is_update(root) for root in (node, *draft.roots))
        return not (updates and any(user != number for user in users))

    def _has_room(self, draft: NestDraft, node: Node) -> bool:
        """Tell whether a nest may store one more value."""
        full = draft.kind == "loops" and node not in self._goals.targets and draft.cost >= NEST_COST
        return not full and draft.ops < NEST_OPS and len(draft.roots) < MOST_ROOTS

    def _feeds_reduction(self, users: Iterable[int]) -> bool:
        """Tell whether a value with these users goes into a reduction of its own nest. Others stay out of its nest: a
        sum that they need would come before the reduction, and share no loop with it."""
        return any(self._drafts.by_number[user].kind in ("column reduction", "full reduction") for user in users)

    def _waits_alike(self, node: Node, number: int) -> bool:
        """Tell whether a nest waits for as many reductions along a row as a value does. In a nest that waits for more
        of them, the value would not be stored by the loop over rows that makes its arguments."""
        rounds, roots = self._graph.rounds, self._drafts.by_number[number].roots[:1]
        return node.ndim < 2 or any(rounds[node] == rounds[root] for root in roots)

    # Scans, branches, and calls with several results ---------------------------------------------------------

    def materialise_item(self, node: Node, uses: Sequence[Use]) -> None:
        """Place a result of a scan, a branch or a call with the others in the nest that carries it out."""
        (whole,) = node.args
        kind, result = SEVERAL[type(lowering_of(whole))]
        if whole not in self._nest_of_items:
            self._nest_of_items[whole] = self._drafts.new(kind, ()).number
        draft = self._drafts.by_number[self._nest_of_items[whole]]
        self.reasons[node] = "a result" if node in self._goals.targets else result
        self._uses.store(node, draft, uses, self._goals.sizing.shape(node))

    def expand_items(self, node: Node) -> None:
        """Note what the nest of a node with several results needs, of which something is used."""
        if node not in self._nest_of_items:
            return
        draft = self._drafts.by_number[self._nest_of_items[node]]
        for item in items_of(node):
            if item not in self._uses.nest_of:
                self.materialise_item(item, ())
        if draft.kind == "call":
            expand_call(self._uses, node, draft)
            return
        if draft.kind == "branch":
            self._expand_branch(node, draft)
        else:
            self._expand_scan(node, draft)
        draft.ops += 1

    def _expand_scan(self, node: Node, draft: NestDraft) -> None:
        """Note what a scan needs: values in memory, scalars, and the elements of the initial states."""
        graph = self.scans[draft.number] = self._graph.scan(node)
        self._uses.add_captured(given_sizes(node), graph.sources.values(), graph.scalars.values(), draft)
        for initial in graph.loop.initial:
            self._uses.add_whole(initial, draft)
        for result in items_of(node):
            scalars = graph.scalars.values()
            self._uses.before_change.update(each for each in scalars if self._goals.reads_older(each, result))
        self._uses.add_sizes(scan_sizes(graph), draft)

    def _expand_branch(self, node: Node, draft: NestDraft) -> None:
        """Note what a branch needs: the condition, values in memory, and scalars."""
        graph = self.branches[draft.number] = self._graph.branch(node)
        self._uses.add(node.args[0], Use(draft.number, (), ()))
        self._uses.add_captured(given_sizes(node), graph.sources.values(), graph.scalars.values(), draft)
        self._uses.add_sizes(branch_sizes(graph), draft)

    # Checks --------------------------------------------------------------------------------------------------

    def check_guards(self, node: Node, uses: Sequence[Use]) -> None:
        """Plan the checks of what must hold before a value is computed, in the nest that stores it or at its uses."""
        own = self._uses.nest_of.get(node, self._nest_of_items.get(node))
        nests = dict.fromkeys([use.nest for use in uses] if own is None else [own])
        for guard in self._goals.purpose.guarded.get(node, ()):
            number = self.check(guard)
            for nest in nests:
                self._drafts.depend(number, nest)

    def check(self, guard: Guard) -> int:
        """Plan a check of two sizes or numbers, and tell its nest."""
        draft = self._drafts.new("guard", ())
        self.guards[draft.number] = guard
        for side in guard_sides(guard):
            self._uses.add(side, Use(draft.number, (), ()))
        return draft.number


def kind_of(node: Node, lowering: object, sizing: Sizing) -> NestKind:
    """The kind of the nest that stores a value."""
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
            extents = [sizing.of(size) for size in lowering.sizes(node)]
            return (
                "full reduction"
                if extents and not is_written_out(node, extents) and _is_associative(lowering)
                else "loops"
            )
        case Fold() if is_column_reduction(node, lowering, sizing):
            return "column reduction"
        case _:
            return "loops"


def space_of(node: Node, kind: NestKind, lowering: object, sizing: Sizing) -> tuple[Size, ...]:
    """The sizes of the loops of the nest that stores a value."""
    if kind == "full reduction" and isinstance(lowering, Fold):
        return tuple(sizing.of(size) for size in lowering.sizes(node))
    if kind == "column reduction" and isinstance(lowering, Fold):
        return sizing.shape(reduced_operand(node, lowering))
    return sizing.shape(node)


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The loops over its operand that a reduction reduces; none for other ops."""
    lowering = lowering_of(node)
    return tuple(lowering.axes) if isinstance(lowering, Fold) else ()


def _is_associative(fold: Fold) -> bool:
    """Tell whether parts of a reduction may be reduced by themselves, and their results then with the same step."""
    return len(fold.start) == 1 and 2 not in holes(fold.step[0])
