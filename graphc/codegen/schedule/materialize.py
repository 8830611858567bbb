"""The values that are materialised, kept in memory, and those that are recomputed at every use.

In: a rewritten graph with the buffers its results go to, and its sizing. Out: `Nests`: drafts of nests, which must come
after which, every materialised value with the reason for it, and its uses. As an example, in `y = exp(x); z = y + y.T`,
`y` is used in one nest at two indices: to keep it costs a store and two loads, less than a second exponential, so `y`
is stored by a nest of its own, for the reason "used in several loops of its nest".

Values are visited from the results backwards, so that all uses of a value are known when it is decided on: a use is
(nest, index of the element, loops around it). A value is recomputed at each use unless

- it is a result, or an operand of an external function, or built by several writes;
- it is a full or a column reduction, or one that would be carried out more than once;
- recomputing it costs more than keeping it: it is used in several nests, or inside loops it does not depend on;
- it is expensive, and its nest would go across its rows, where loops are not vectorised;
- its nest would grow too large to compile quickly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import prod

from graphc.codegen.schedule.cost import EXPENSIVE, MANY, ROW, WHOLE, materialising_pays, recompute_cost
from graphc.codegen.schedule.drafts import Drafts, Goals, GraphOrder, Uses, goes_over, is_column_reduction
from graphc.codegen.schedule.fusion import ALONE, Access, reads_of
from graphc.codegen.schedule.nodes import (
    is_bufferless,
    is_by_segment,
    is_product,
    is_written_out,
    lowering_of,
    variables_of,
)
from graphc.codegen.schedule.placement import NEST_OPS, Placement
from graphc.codegen.schedule.plan import BranchGraph, IndexCheck, NestDraft, ScanGraph, Use
from graphc.ir.body import ITEM
from graphc.ir.facts import below_broadcasts
from graphc.ir.lowering import Call, Fold, Part, Recur, Scalar, SegmentNumber, Segments, View, Writes
from graphc.ir.node import LEAVES, Guard, Index, Node
from graphc.loopir import ir
from graphc.startup.record import record

MOST_OPS = 200
SLIGHT = 12.0
"""A value that costs no more than this stays in a nest, however large that is."""
SCATTERED = 3
"""The number of elements that one counts for which is written to a position of its own: such a loop takes them one by
one."""
STORED: Mapping[type, str] = {
    Writes: "built by several writes",
    Recur: "a recurrence, each element from the one before",
    Segments: "sums of segments",
    SegmentNumber: "numbers of segments",
}
"""The reasons of values that no other nest can compute on its way."""
SEVERAL_NESTS = "used in several nests"
SEVERAL_LOOPS = "used in several loops of its nest"
CROSSED = "read many times across its rows: a copy in order"
ROWS_ABREAST = "rows are reduced several at a time"
VIEWS = ("subtensor", "reshape", "stop_gradient")
"""Ops besides broadcasts and dimshuffles whose elements are those of their operand."""
NEAR = 4.0
"""A value that costs no more than this, down to other values that are materialised, need not be materialised."""
INDEX_OPS = 60
"""A value used at an index of more operations than this is materialised: each reshape doubles the index below it."""


def is_transposed(node: Node) -> bool:
    """Tell whether a dimshuffle has another axis last than its argument, so that its rows do not lie in memory."""
    if node.op.name != "dimshuffle":
        return False
    kept = [axis for axis in node.attrs["order"] if axis != "x"]
    return len(kept) > 1 and node.attrs["order"][-1] != "x" and kept[-1] != max(kept)


def is_long(index: Index) -> bool:
    """Tell whether an index is too long to be written down once more."""
    composed = [expr for expr in index if not isinstance(expr, ir.Var)]
    if not composed:
        return False
    parts = (part for expr in composed for part in ir.subexpressions(expr) if isinstance(part, ir.Apply | ir.Opaque))
    return next(islice(parts, INDEX_OPS, None), None) is not None


class Decisions:
    """Decides on the values of one kernel, one after the other, from the results backwards."""

    def __init__(self, goals: Goals, drafts: Drafts, uses: Uses, placement: Placement) -> None:
        self._goals, self._drafts, self._uses, self._placement = goals, drafts, uses, placement
        self._relied_on: set[Node] = set()
        """Values that must be materialised, since others are recomputed from them."""
        self._order: Sequence[Node] = ()
        self._users: Counter[Node] = Counter()
        """How often each value is an operand, counted when it is first asked for."""

    def run(self, order: Sequence[Node]) -> None:
        """Decide on all values, which come in an order in which they can be computed."""
        self._order = order
        for guard in self._goals.purpose.checks:
            self._placement.check(guard)
        for node in reversed(order):
            uses = self._uses.take(node)
            self._decide(node, uses)
            if node in self._goals.purpose.guarded:
                self._placement.check_guards(node, uses)
        for node, uses in self._uses.pending.items():  # of leaves that index maps alone mention
            self._uses.of_leaves.setdefault(node, []).extend(uses)

    def _decide(self, node: Node, uses: list[Use]) -> None:
        """Place a value in a nest, or at its uses."""
        if node.op is ITEM:
            if uses or node in self._goals.targets:
                self._placement.materialise_item(node, uses)
        elif node.is_tuple:
            self._placement.expand_items(node)
        elif node.op in LEAVES and not (node in self._uses.whole and is_bufferless(node)):
            self._uses.of_leaves[node] = uses
        elif node in self._goals.targets:
            self._placement.materialise(node, uses, "a result")
        elif uses:
            reason = self._reason_to_materialise(node, uses)
            if reason is not None and self._is_reshape_of_stored(node):
                self._uses.whole.add(node.args[0])
                reason = None
            if reason is None:
                self._placement.inline(node, uses)
            else:
                self._placement.materialise(node, uses, reason)

    def _is_reshape_of_stored(self, node: Node) -> bool:
        """Tell whether a value is a reshape whose argument may be stored instead: its elements have the same order."""
        return node.op.name == "reshape" and node.args[0].op not in LEAVES and node not in self._uses.whole

    def _reason_to_materialise(self, node: Node, uses: Sequence[Use]) -> str | None:
        """The reason why a value is materialised; None where it is recomputed at each use."""
        lowering = lowering_of(node)
        if node in self._uses.whole:
            return "an operand of an external function"
        if node in self._uses.before_change:
            return "computed before the buffer that it reads is changed"
        match lowering:
            case Writes() | Recur() | Segments():
                return STORED[type(lowering)]
            case SegmentNumber():
                return None if all(goes_over(self._uses, node, use) for use in uses) else STORED[SegmentNumber]
            case Call():
                return None if self._begins_sum(node, uses) else "the result of an external function"
            case Fold():
                return self._reason_to_materialise_reduction(node, lowering, uses)
        if node.ndim and node.op.name in ("dimshuffle", "broadcast_to"):
            crossed = is_transposed(node) and any(self._is_row_again(use) for use in uses)
            return CROSSED if crossed else None  # else its argument is materialised
        several = len({use.nest for use in uses}) > 1
        if not node.ndim:
            large = "its nest is large enough" if self._is_large(node, uses) else None
            return large or ("a scalar used in several nests" if several else None)
        if isinstance(lowering, Scalar) and any(map(self._is_read_by_short_recurrence, uses)):
            return "computed by vectors: a recurrence would wait for it"
        if any(is_long(use.index) for use in uses):
            return "its index is long enough"
        if node in self._relied_on:
            return "others are recomputed from it"
        return self._reason_of_cost(node, uses)

    def _is_sum_of_short_rows(self, node: Node, use: Use) -> bool:
        """Tell whether a nest sums up one value for each row, which is computed from reductions of rows that may be
        short. A loop that stores these values handles several rows at a time; one that sums them does not
        (codegen/transform/abreast.py)."""
        draft = self._drafts.by_number[use.nest]
        if draft.kind != "full reduction" or len(draft.space) != 1 or use.index != draft.index:
            return False
        return any(root.args[0] is node for root in draft.roots) and self._reduces_short_rows(node)

    def _reduces_short_rows(self, node: Node) -> bool:
        """Tell whether a value is computed from a reduction of rows that may be short, of an array in memory, which
        nothing else needs: it will be computed in the nest of the value."""
        if not self._users:
            self._users.update(arg for each in self._order for arg in each.args)
        pending, seen, is_found = [node], Counter[Node](), False
        while pending and len(seen) < MOST_OPS:
            current = pending.pop()
            lowering = lowering_of(current)
            if isinstance(lowering, Call | Part):
                return False  # a product is computed by blocks of rows, in turn with what it goes into
            if current.op in LEAVES or not isinstance(lowering, Scalar | View | Fold):
                continue
            if isinstance(lowering, Fold) and not is_written_out(current, lowering.sizes(current)):
                length = self._goals.sizing.of(lowering.sizes(current)[-1])
                is_short = not isinstance(length, int) or length <= ir.SHORT_DEAR
                is_found |= is_short and not is_column_reduction(current, lowering, self._goals.sizing)
            for arg in current.args:
                seen[arg] += 1
                if arg.ndim and seen[arg] == self._users[arg] and arg not in self._goals.targets:
                    pending.append(arg)
        return is_found

    def _is_written_over(self, node: Node, use: Use) -> bool:
        """Tell whether a nest writes a value into the array that it is computed from: over it, if nothing reads that
        array later."""
        draft = self._drafts.by_number[use.nest]
        if draft.kind != "writes" or draft.in_place:
            return False
        (root,) = draft.roots
        changed = root.args[0]
        if changed.op in LEAVES or not any(below_broadcasts(arg, VIEWS) is node for arg in root.args[1:]):
            return False
        return any(below_broadcasts(arg, VIEWS) is changed for arg in node.args)

    def _reason_of_cost(self, node: Node, uses: Sequence[Use]) -> str | None:
        """The reason why materialising a value costs less than recomputing it at each use, or in so large a nest."""
        if any(self._is_column_again(node, use) for use in uses):
            return CROSSED
        if any(self._is_sum_of_short_rows(node, use) for use in uses):
            return ROWS_ABREAST
        if len({use.nest for use in uses}) > 1 and any(self._is_written_over(node, use) for use in uses):
            return "written over what it is computed from"
        if (
            any(map(goes_across, uses))
            and recompute_cost(node, WHOLE, self._uses.is_materialised, EXPENSIVE) > EXPENSIVE
        ):
            return "computed in order: its nest reads it strided"
        if self._pays(node, uses):
            repeated = any(not is_read_once(use) for use in uses)
            within = "used inside loops it does not depend on" if repeated else SEVERAL_LOOPS
            return SEVERAL_NESTS if len({use.nest for use in uses}) > 1 else within
        return "its nest is large enough" if self._is_large(node, uses) else None

    def _reason_to_materialise_reduction(self, node: Node, fold: Fold, uses: Sequence[Use]) -> str | None:
        """The reason why a reduction is materialised; None where it is computed where it is used."""
        if not node.ndim:
            return "a full reduction"
        if len({(use.nest, use.index) for use in uses}) > 1 or any(not is_read_once(use) for use in uses):
            return "a reduction used more than once"
        if any(not is_prefix(use) for use in uses):
            return "a reduction inside loops in another order"
        return (
            "a column reduction, in the order of memory"
            if is_column_reduction(node, fold, self._goals.sizing)
            else None
        )

    def _is_large(self, node: Node, uses: Sequence[Use]) -> bool:
        """Tell whether a nest that uses a value has reached the largest number of ops, so that it should end at this
        value. Once it is known which values are materialised, the value must be all that the nest still needs."""
        large = [draft for draft in (self._drafts.by_number[use.nest] for use in uses) if draft.ops >= NEST_OPS]
        if not (large and self._uses.expected):
            return bool(large)
        if all(draft.undecided and draft.ops < MOST_OPS for draft in large):
            return False
        relied_on: set[Node] = set()
        is_materialised, waiting = self._noting(relied_on), set[Node]().union(*(draft.undecided for draft in large))
        if recompute_cost(node, WHOLE, lambda each: is_materialised(each) or each in waiting, SLIGHT) > SLIGHT:
            return True
        self._relied_on |= relied_on
        return False

    def _pays(self, node: Node, uses: Sequence[Use]) -> bool:
        """Tell whether a value is cheaper materialised than recomputed for each of several uses."""
        times = len({(use.nest, use.index) for use in uses})
        times = max((times, *map(self._repetitions, uses)))
        if times == 1:
            return False
        memory = ROW if all(map(partial(self._is_in_row, node), uses)) else WHOLE
        relied_on: set[Node] = set()
        if materialising_pays(node, times, memory, self._noting(relied_on)):
            return True
        self._relied_on |= relied_on
        return False

    def _noting(self, relied_on: set[Node]) -> Callable[[Node], bool]:
        """`is_materialised`, which notes the values that must then be materialised."""

        def is_materialised(node: Node) -> bool:
            if node in self._uses.expected:
                relied_on.add(node)
            return self._uses.is_materialised(node)

        return is_materialised

    def _is_in_row(self, node: Node, use: Use) -> bool:
        """Tell whether a use is in the row of the outermost loop that computes the element, with loops inside."""
        draft = self._drafts.by_number[use.nest]
        if draft.kind in ALONE or draft.space[:1] != self._goals.sizing.shape(node)[:1]:
            return False
        inside = len(draft.space) > 1 or len(use.path) > 1
        return inside and use.index[0] == draft.vars[0]

    def _repetitions(self, use: Use) -> int:
        """The number of iterations that read one element for each use, in loops it does not depend on; MANY at most."""
        draft, variables = self._drafts.by_number[use.nest], variables_of(use.index)
        if draft.scattered and len(use.path) == 1:
            return SCATTERED
        if is_read_once(use):
            return 1
        sizes = dict(zip(draft.vars, draft.space, strict=True))
        others = [sizes.get(var) for var in use.path if var not in variables]
        return min(prod(size if isinstance(size, int) else MANY for size in others), MANY)

    def _is_read_by_short_recurrence(self, use: Use) -> bool:
        """Tell whether a recurrence of short iterations reads a value."""
        draft = self._drafts.by_number[use.nest]
        lowering = lowering_of(draft.roots[0]) if draft.kind == "recurrence" else None
        return isinstance(lowering, Recur) and lowering.materialises

    def _is_row_again(self, use: Use) -> bool:
        """Tell whether an innermost loop goes along the last axis, in an outer loop that the element does not depend
        on, or at the positions of segments."""
        if not use.path or use.index[-1] != use.path[-1]:
            return False
        by_segments = self._drafts.by_number[use.nest].kind == "segments" or any(map(is_by_segment, use.index))
        return by_segments or not is_read_once(use)

    def _is_column_again(self, node: Node, use: Use) -> bool:
        """Tell whether a value is a column of a matrix in memory, `x[:, k]`, and an innermost loop goes along it in an
        outer loop that it does not depend on. Columns of short rows of known length are read by vectors as they are."""
        if node.op.name != "subtensor" or not use.path or is_read_once(use):
            return False
        matrix, long = node.args[0], [axis for axis, size in enumerate(node.type.shape) if size != 1]
        if matrix.op not in LEAVES or len(long) != 1 or long[0] == node.ndim - 1:
            return False
        length = self._goals.sizing.of(matrix.type.shape[-1])
        return use.index[long[0]] == use.path[-1] and not (isinstance(length, int) and ir.has_columns(length))

    def _begins_sum(self, node: Node, uses: Sequence[Use]) -> bool:
        """Tell whether a product is only what another one is added to: then the same nest computes it, in its place."""
        if not is_product(node) or len(uses) != 1:
            return False
        return any(map(is_product, self._drafts.by_number[uses[0].nest].roots[:1]))


def is_read_once(use: Use) -> bool:
    """Tell whether the element is read once for each index, and not again in loops it does not depend on."""
    if use.index == use.path:
        return True
    wanted = variables_of(use.index)
    inside = [position for position, var in enumerate(use.path) if var in wanted]
    return not inside or all(var in wanted for var in use.path[: inside[-1] + 1])


def goes_across(use: Use) -> bool:
    """Tell whether the innermost loop is strided where another one is contiguous: LLVM does not vectorise it."""
    if not use.path or not isinstance(use.index[-1], ir.Var) or use.index[-1] not in use.path[:-1]:
        return False
    return use.path[-1] in variables_of(use.index[:-1])


def is_prefix(use: Use) -> bool:
    """Tell whether the index is just the outermost loops, in their order: then a reduction over it runs once."""
    return use.index == use.path[: len(use.index)] or not variables_of(use.index)


@record()
class Nests:
    """The nests of a kernel, not yet in order: what they store and why, what they need, what they carry out."""

    goals: Goals
    drafts: Drafts
    uses: Uses
    reasons: Mapping[Node, str]
    index_checks: Mapping[int, IndexCheck]
    guards: Mapping[int, Guard]
    scans: Mapping[int, ScanGraph]
    branches: Mapping[int, BranchGraph]

    def should_be_planned_again(self) -> bool:
        """Tell whether a second plan pays: nests were split because of their size, or values are stored next to stored
        values. The second plan knows which values are materialised."""
        return any(draft.ops >= NEST_OPS for draft in self.drafts.by_number.values()) or bool(self.near())

    def near(self) -> frozenset[Node]:
        """The values that are materialised for the sake of time, and are next to others that are."""
        kept = (node for node, reason in self.reasons.items() if reason in (SEVERAL_NESTS, SEVERAL_LOOPS))
        return frozenset(n for n in kept if recompute_cost(n, WHOLE, self.reasons.__contains__, NEAR) <= NEAR)

    def draft_of(self, root: Node) -> NestDraft:
        """The nest that stores a value."""
        return self.drafts.by_number[self.uses.nest_of[root]]

    def access(self) -> Access:
        """The reads of the nests, and what they overwrite."""
        uses, goals = self.uses, self.goals
        return Access(
            reads=reads_of({**uses.of_leaves, **uses.of_stored}, self.drafts.by_number),
            readers={node: {use.nest for use in found} for node, found in uses.of_stored.items()},
            overwrites=goals.older,
            after=self.drafts.after,
            whole=frozenset((*uses.whole, *goals.targets)),
        )


def plan_nests(goals: Goals, graph: GraphOrder, expected: frozenset[Node] = frozenset()) -> Nests:
    """The nests that compute the values of a graph. `expected`: values that an earlier plan has materialised, from
    which others may be recomputed."""
    drafts = Drafts()
    uses = Uses(goals, graph.nodes, drafts, expected)
    placement = Placement(goals, graph, drafts, uses)
    Decisions(goals, drafts, uses, placement).run(graph.nodes)
    return Nests(
        goals=goals,
        drafts=drafts,
        uses=uses,
        reasons=placement.reasons,
        index_checks=uses.index_checks,
        guards=placement.guards,
        scans=placement.scans,
        branches=placement.branches,
    )
