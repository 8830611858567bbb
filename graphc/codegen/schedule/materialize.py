"""What is materialised: which values are kept in memory, and which are recomputed at every use.

In: a rewritten graph with the buffers its results go to, and its sizing. Out: a `Scheduler` that has run: drafts of
nests, which must come after which, every materialised value with the reason for it, and where each is used.

How it decides. Values are visited from the results backwards, so that all uses of a value are known when it is
decided on: a use is (nest, index of the wanted element, enclosing loops). A value is recomputed at each use unless

- it is a result, or an operand of an external function, or built by several writes;
- it is a full or a column reduction, or one that would be carried out more than once;
- recomputing it costs more than keeping it: it is used in several nests, or inside loops it does not depend on;
- it is expensive, and its nest would go across its rows, where loops are not vectorised;
- its nest would grow too large to compile quickly.

nests.py places values in nests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import prod

from graphc.codegen.schedule.cost import EXPENSIVE, MANY, ROW, WHOLE, again, materialising_pays
from graphc.codegen.schedule.fusion import ALONE
from graphc.codegen.schedule.nests import NEST_OPS, Nests
from graphc.codegen.schedule.plan import Use, is_bufferless, is_by_segment, lowering_of, variables_of
from graphc.ir.body import ITEM
from graphc.ir.lowering import Call, Fold, Recur, Scalar, SegmentNumber, Segments, Writes
from graphc.ir.node import LEAVES, Index, Node
from graphc.loopir.ir import Apply, Opaque, Var, subexpressions

MOST_OPS = 200
SLIGHT = 12.0
"""What costs no more than this stays in a nest, however large that is."""
SCATTERED = 3
"""For how many elements one counts that is written to a place of its own: such a loop takes them one by one."""
STORED: Mapping[type, str] = {
    Writes: "built by several writes",
    Recur: "a recurrence, each element from the one before",
    Segments: "sums of segments",
    SegmentNumber: "numbers of segments",
}
"""What no other nest can compute on its way."""
SEVERAL_NESTS = "used in several nests"
SEVERAL_LOOPS = "used in several loops of its nest"
NEAR = 4.0
"""What costs no more than this, down to other values that are materialised, need not be."""
INDEX_OPS = 60
"""A value wanted at an index of more operations than this is materialised: each reshape doubles the index below it."""


def is_transposed(node: Node) -> bool:
    """Whether a dimshuffle has another axis last than its argument, so that its rows do not lie in memory."""
    if node.op.name != "dimshuffle":
        return False
    kept = [axis for axis in node.attrs["order"] if axis != "x"]
    return len(kept) > 1 and node.attrs["order"][-1] != "x" and kept[-1] != max(kept)


def is_long(index: Index) -> bool:
    """Whether an index is too long to be written down once more."""
    composed = [expr for expr in index if not isinstance(expr, Var)]
    if not composed:
        return False
    parts = (part for expr in composed for part in subexpressions(expr) if isinstance(part, Apply | Opaque))
    return next(islice(parts, INDEX_OPS, None), None) is not None


class Scheduler(Nests):
    """Decides on the values of one kernel; `run()` is its only use."""

    def run(self) -> None:
        self.check_all()
        for node in reversed(self.order):
            uses = self.uses.pop(node, [])
            self.undecided.discard(node)
            for use in uses:
                self.drafts[use.nest].open.discard(node)
            self.decide(node, uses)
            if node in self.purpose.guarded:
                own = self.nest_of.get(node, self.body_drafts.get(node))
                made = [use.nest for use in uses] if own is None else [own]
                self.check_guards(node, made)
        for node, uses in self.uses.items():  # of leaves that index maps alone mention
            self.leaf_uses.setdefault(node, []).extend(uses)

    def decide(self, node: Node, uses: list[Use]) -> None:
        """Place a value in a nest, or at its uses."""
        if node.op is ITEM:
            if uses or node in self.targets:
                self.materialise_item(node, uses)
        elif node.is_tuple:
            self.expand_bodies(node)
        elif node.op in LEAVES and not (node in self.needed and is_bufferless(node)):
            self.leaf_uses[node] = uses
        elif node in self.targets:
            self.materialise(node, uses, "a result")
        elif uses:
            reason = self.reason_to_materialise(node, uses)
            if reason is not None and self.is_held_reshape(node):
                self.needed.add(node.args[0])
                reason = None
            if reason is None:
                self.inline(node, uses)
            else:
                self.materialise(node, uses, reason)

    def is_held_reshape(self, node: Node) -> bool:
        """Whether materialising a reshape's argument does as well: contiguous, it has its elements in this order."""
        return node.op.name == "reshape" and node.args[0].op not in LEAVES and node not in self.needed

    def reason_to_materialise(self, node: Node, uses: Sequence[Use]) -> str | None:
        """Why a value is materialised, or None where it is recomputed at each use."""
        lowering = lowering_of(node)
        if node in self.needed:
            return "an operand of an external function"
        if node in self.before_change:
            return "computed before the buffer that it reads is changed"
        match lowering:
            case Writes() | Recur() | Segments():
                return STORED[type(lowering)]
            case SegmentNumber():
                return None if all(self.goes_over(node, use) for use in uses) else STORED[SegmentNumber]
            case Call():
                return None if self.begins_sum(node, uses) else "the result of an external function"
            case Fold():
                return self.reason_to_materialise_reduction(node, lowering, uses)
        if node.ndim and node.op.name in ("dimshuffle", "broadcast_to"):
            crossed = is_transposed(node) and any(self.is_row_again(use) for use in uses)
            return (
                "read many times across its rows: a copy in order" if crossed else None
            )  # else its argument is materialised
        several = len({use.nest for use in uses}) > 1
        if not node.ndim:
            large = "its nest is large enough" if self.is_large(node, uses) else None
            return large or ("a scalar used in several nests" if several else None)
        if isinstance(lowering, Scalar) and any(map(self.is_read_apart, uses)):
            return "computed by vectors: a recurrence would wait for it"
        if any(is_long(use.index) for use in uses):
            return "its index is long enough"
        if node in self.relied:
            return "others are recomputed from it"
        return self.reason_of_cost(node, uses)

    def reason_of_cost(self, node: Node, uses: Sequence[Use]) -> str | None:
        """Why materialising a value costs less time than recomputing it at each use, or as part of so large a nest."""
        if any(map(self.goes_across, uses)) and again(node, WHOLE, self.is_materialised, EXPENSIVE) > EXPENSIVE:
            return "computed in order: its nest reads it strided"
        if self.materialising_pays(node, uses):
            repeated = any(not self.once(use) for use in uses)
            within = "used inside loops it does not depend on" if repeated else SEVERAL_LOOPS
            return SEVERAL_NESTS if len({use.nest for use in uses}) > 1 else within
        return "its nest is large enough" if self.is_large(node, uses) else None

    def reason_to_materialise_reduction(self, node: Node, fold: Fold, uses: Sequence[Use]) -> str | None:
        if not node.ndim:
            return "a full reduction"
        if len({(use.nest, use.index) for use in uses}) > 1 or any(not self.once(use) for use in uses):
            return "a reduction used more than once"
        if any(not self.is_prefix(use) for use in uses):
            return "a reduction inside loops in another order"
        return "a column reduction, in the order of memory" if self.is_column_reduction(node, fold) else None

    def is_large(self, node: Node, uses: Sequence[Use]) -> bool:
        """Whether a nest that uses a value has as many ops as one nest should have, and should end there: where it
        is known which values are materialised, one that is all else that the nest needs."""
        large = [draft for draft in (self.drafts[use.nest] for use in uses) if draft.ops >= NEST_OPS]
        if not (large and self.expected):
            return bool(large)
        if all(draft.open and draft.ops < MOST_OPS for draft in large):
            return False
        relied: set[Node] = set()
        is_materialised, waiting = self.noting(relied), set[Node]().union(*(draft.open for draft in large))
        if again(node, WHOLE, lambda each: is_materialised(each) or each in waiting, SLIGHT) > SLIGHT:
            return True
        self.relied |= relied
        return False

    def materialising_pays(self, node: Node, uses: Sequence[Use]) -> bool:
        """Whether a value is cheaper materialised than recomputed for each of several uses."""
        times = len({(use.nest, use.index) for use in uses})
        times = max((times, *map(self.repetitions, uses)))
        if times == 1:
            return False
        memory = ROW if all(map(partial(self.is_in_row, node), uses)) else WHOLE
        relied: set[Node] = set()
        if materialising_pays(node, times, memory, self.noting(relied)):
            return True
        self.relied |= relied
        return False

    def noting(self, relied: set[Node]) -> Callable[[Node], bool]:
        """`is_materialised`, which notes the values that must then be materialised."""

        def is_materialised(node: Node) -> bool:
            if node in self.expected:
                relied.add(node)
            return self.is_materialised(node)

        return is_materialised

    def is_in_row(self, node: Node, use: Use) -> bool:
        """Whether a use is in the row of the outermost loop that makes the element, and that loop has loops inside."""
        draft = self.drafts[use.nest]
        if draft.kind in ALONE or draft.space[:1] != self.sizing.shape(node)[:1]:
            return False
        inside = len(draft.space) > 1 or len(use.path) > 1
        return inside and use.index[0] == draft.vars[0]

    def once(self, use: Use) -> bool:
        """Whether the element is wanted once for each index, and not again in loops it does not depend on."""
        if use.index == use.path:
            return True
        wanted = variables_of(use.index)
        inside = [position for position, var in enumerate(use.path) if var in wanted]
        return not inside or all(var in wanted for var in use.path[: inside[-1] + 1])

    def repetitions(self, use: Use) -> int:
        """How often the loops that it does not depend on take an element for each use: MANY where that is not known."""
        draft, wanted = self.drafts[use.nest], variables_of(use.index)
        if draft.scattered and len(use.path) == 1:
            return SCATTERED
        if self.once(use):
            return 1
        sizes = dict(zip(draft.vars, draft.space, strict=True))
        again = [sizes.get(var) for var in use.path if var not in wanted]
        return min(prod(size if isinstance(size, int) else MANY for size in again), MANY)

    def is_read_apart(self, use: Use) -> bool:
        """Whether a recurrence of short iterations reads a value."""
        draft = self.drafts[use.nest]
        lowering = lowering_of(draft.roots[0]) if draft.kind == "recurrence" else None
        return isinstance(lowering, Recur) and lowering.apart

    def goes_across(self, use: Use) -> bool:
        """Whether the innermost loop is strided where another one is contiguous: LLVM does not vectorise it."""
        if not use.path or not isinstance(use.index[-1], Var) or use.index[-1] not in use.path[:-1]:
            return False
        return use.path[-1] in variables_of(use.index[:-1])

    def is_row_again(self, use: Use) -> bool:
        """Whether an innermost loop goes along the last axis, in an outer loop that the element does not depend on, or
        at the positions of segments."""
        if not use.path or use.index[-1] != use.path[-1]:
            return False
        by_segments = self.drafts[use.nest].kind == "segments" or any(map(is_by_segment, use.index))
        return by_segments or not self.once(use)

    def is_prefix(self, use: Use) -> bool:
        """Whether the index is just the outermost loops, in their order: then a reduction over it runs once."""
        return use.index == use.path[: len(use.index)] or not variables_of(use.index)

    def has_large_nests(self) -> bool:
        """Whether nests were split for their size: what is materialised is then planned once more, with hindsight."""
        return any(draft.ops >= NEST_OPS for draft in self.drafts.values())

    def near(self) -> frozenset[Node]:
        """The values that are materialised for the sake of time, and are next to others that are."""
        kept = (node for node, reason in self.reasons.items() if reason in (SEVERAL_NESTS, SEVERAL_LOOPS))
        return frozenset(node for node in kept if again(node, WHOLE, self.reasons.__contains__, NEAR) <= NEAR)
