"""The check of plans: run on every plan in tests, and with the option `verify`.

In: a plan. Out: nothing, or a VerifyError that says what is wrong with which nest or value. Nothing is taken from how
the plan was made: what nests read follows from their roots, as lowering asks for elements. As an example, a plan whose
first nest stores `y + 1`, and whose second stores `y`, is refused: "nest 0 reads y before it is stored".

    order     a value that is read lies in memory before, or is computed in the nest that reads it; nests go over the
              sizes of loops that they share; a value that is read in a shared loop is complete in that iteration
    sizes     are numbers, sizes of arguments under their names, or values that are known before they are read
    memory    values that live at the same time lie in different buffers; a slot holds all that lies in it; a value
              without a buffer is read where its name is known
    in place  a buffer is overwritten after all that reads its old value, and after all that may fail
    reasons   each is of a value that is stored, of two nests that share no loop, or of a buffer that is written
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NoReturn

from graphc.codegen.schedule import nodes
from graphc.codegen.schedule.drafts import writes_one
from graphc.codegen.schedule.fusion import ALONE
from graphc.codegen.schedule.inplace import keeps_order, may_refuse, overwritten_value
from graphc.codegen.schedule.memory import workspaces_of
from graphc.codegen.schedule.plan import BranchPlan, Nest, Part, Plan, ScanPlan, SharedLoop
from graphc.codegen.schedule.ranges import gathered, in_range
from graphc.errors import VerifyError
from graphc.ir.body import guard_sides
from graphc.ir.lowering import (
    ByValue,
    Call,
    Extent,
    Fold,
    Iota,
    Recur,
    Scalar,
    SegmentNumber,
    Segments,
    Strided,
    View,
    Whole,
    Workspace,
    Writes,
)
from graphc.ir.node import LEAVES, SIZE, Index, Node, Size, constant_value
from graphc.loopir import ir
from graphc.ops.branch import given_sizes
from graphc.startup.record import record

Reads = dict[tuple[Node, Index], None]


def verify_plan(plan: Plan) -> None:
    """Check a plan, but for the plans of bodies within it, which were checked when they were made.

    Raises VerifyError.
    """
    _Verifier(plan).verify()


@record()
class _Life:
    """The parts of a plan, by number, between which a value is in its buffer; `role` is "value" or what else it is."""

    node: Node
    role: str
    first: int
    last: int


class _Verifier:
    """The check of one plan. `order`: the place of each nest; `part`: the place of its part; `loops`: the shared loops
    around each; `writers`: the nest that stores each value; `producers`: for calls that compute rows of blocks, the
    loop that reads these."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.order = {nest.number: place for place, nest in enumerate(plan.nests)}
        self.part: dict[int, int] = {}
        self.loops: dict[int, tuple[SharedLoop, ...]] = {}
        self.producers: dict[int, SharedLoop] = {}
        for place, part in enumerate(plan.parts):
            self._note(part, (), place)
        self.writers = {root: nest for nest in plan.nests for root in nest.roots}
        self.reads: dict[int, Reads] = {}

    def _note(self, part: Part, around: tuple[SharedLoop, ...], place: int) -> None:
        if isinstance(part, Nest):
            self.loops[part.number], self.part[part.number] = around, place
            return
        if part.producer is not None:
            self._note(part.producer, around, place)
            self.producers[part.producer.number] = part
        for inner in part.body:
            self._note(inner, (*around, part), place)

    def fail(self, problem: str) -> NoReturn:
        raise VerifyError(f"the plan of a {self.plan.of}: {problem}")

    def label(self, node: Node) -> str:
        return self.plan.labels(node)

    def verify(self) -> None:
        self._verify_nests()
        for nest in self.plan.nests:
            self.reads[nest.number] = _Reader(self, nest).reads()
        for nest in self.plan.nests:
            for node, index in self.reads[nest.number]:
                if node in self.writers:
                    self._verify_read(nest, node, index)
        self._verify_locals()
        self._verify_lives()
        self._verify_slots()
        self._verify_overwritten()
        self._verify_reasons()

    # Order ---------------------------------------------------------------------------------------------------

    def _verify_nests(self) -> None:
        plan = self.plan
        if len(self.order) < len(plan.nests):
            self.fail("two nests have one number")
        if twice := [root for root, n in Counter(root for nest in plan.nests for root in nest.roots).items() if n > 1]:
            self.fail(f"two nests store {self.label(twice[0])}")
        if not plan.memory.buffers.keys() <= self.writers.keys():
            self.fail("a value has a buffer, and no nest stores it")
        contents = plan.contents
        special = {*contents.checks, *contents.guards, *contents.scans, *contents.branches}
        for nest in plan.nests:
            if (nest.kind in ("check", "guard", "steps", "branch")) != (nest.number in special):
                self.fail(f"nest {nest.number}, of kind {nest.kind}, carries out nothing that is known")
            for depth, loop in enumerate(self.loops[nest.number]):
                if nest.kind in ALONE:
                    self.fail(f"nest {nest.number}, of kind {nest.kind}, shares a loop")
                if loop.depth != depth or nest.space[depth : depth + 1] != (loop.size,) or nest.vars[depth] != loop.var:
                    self.fail(f"nest {nest.number} shares loop {loop.var.name}, and does not go over its size")

    def _verify_read(self, nest: Nest, node: Node, index: Index) -> None:
        """A value that is read in an iteration of shared loops is complete in it; of rows, the row at hand is read."""
        writer = self.writers[node]
        if writer is nest:
            if node.ndim and index != nest.index:
                self.fail(f"nest {nest.number} reads {self.label(node)}, which it stores, at another index")
            return
        shared, depth = self.shared(nest, writer), self.plan.memory.row_depths.get(node, 0)
        if index[:shared] != nest.index[:shared] or shared > _complete_within(writer, node):
            self.fail(f"nest {nest.number} reads {self.label(node)} before it is complete in a loop they share")
        if any(size != 1 for size in self.plan.sizing.shape(node)[shared:depth]):
            self.fail(f"nest {nest.number} reads {self.label(node)}, whose memory is one row, outside of its loop")
        loop = self.producers.get(writer.number)
        if loop is None and node in self.plan.memory.block_rows:
            self.fail(f"{self.label(node)} has memory for one block, and no loop goes over its blocks")
        if loop is not None and (loop not in self.loops[nest.number] or index[0] != loop.var):
            self.fail(f"nest {nest.number} reads other rows of {self.label(node)} than those of the block at hand")

    def shared(self, one: Nest, other: Nest) -> int:
        """The number of loops that two nests share."""
        return sum(a is b for a, b in zip(self.loops[one.number], self.loops[other.number], strict=False))

    # Memory --------------------------------------------------------------------------------------------------

    def _verify_locals(self) -> None:
        memory = self.plan.memory
        for node, nest in self.writers.items():
            if node in memory.buffers:
                continue
            inside = not node.ndim or memory.row_depths.get(node, 0) == node.ndim
            if nest.kind not in ("loops", "full reduction") or not inside:
                self.fail(f"{self.label(node)} has no buffer")

    def _lives(self) -> Iterator[tuple[ir.Buffer, _Life]]:
        """The lives of all that lies in memory of the plan, with the buffers."""
        plan, memory = self.plan, self.plan.memory
        last = {node: self.part[nest.number] for node, nest in self.writers.items()}
        for number, reads in self.reads.items():
            for node, _ in reads:
                if node in last:
                    last[node] = max(last[node], self.part[number])
        temporary = {slot.buffer.name for slot in memory.arena}
        kept = {buffer.name: node for node in self.writers if (buffer := memory.buffers.get(node)) is not None}
        results = {node for name, node in kept.items() if name not in temporary}
        for node, nest in self.writers.items():
            now = self.part[nest.number]
            if (buffer := memory.buffers.get(node)) is not None:
                yield buffer, _Life(node, "value", now, len(plan.parts) if node in results else last[node])
            if (accumulator := memory.accumulators.get(node)) is not None:
                yield accumulator, _Life(node, "accumulator", now, now)
        for nest in plan.nests:
            now = self.part[nest.number]
            for buffer in memory.workspaces.get(nodes.call_node(nest.roots[0]), ()) if workspaces_of(nest) else ():
                yield buffer, _Life(nest.roots[0], "workspace", now, now)
            slots = {slot.buffer.name: slot for body in self._bodies(nest) for slot in body.memory.arena}
            for slot in slots.values():
                yield slot.buffer, _Life(nest.roots[0], "body", now, now)

    def _bodies(self, nest: Nest) -> Sequence[Plan]:
        """The plans within a nest."""
        contents = self.plan.contents
        scan, branch = contents.scans.get(nest.number), contents.branches.get(nest.number)
        plans = [] if scan is None else [scan.plan]
        return plans if branch is None else [plan for side in branch.plans for plan in side]

    def _verify_lives(self) -> None:
        """Values that live at the same time lie in different buffers, but for one that is made over another."""
        leaves = {buffer.name for buffer in self.plan.memory.leaves.values()}
        lives: dict[str, list[_Life]] = {}
        for buffer, life in self._lives():
            lives.setdefault(buffer.name, []).append(life)
        for slot in self.plan.memory.arena:
            if slot.buffer.name in leaves:
                self.fail(f"temporary {slot.buffer.name} has the name of an argument")
        for name, intervals in lives.items():
            for one, other in combinations(intervals, 2):
                first, then = (one, other) if self._place(one) <= self._place(other) else (other, one)
                if first.last >= then.first and then.last >= first.first and not self._is_made_over(first, then):
                    labels = f"{self.label(first.node)} and {self.label(then.node)}"
                    self.fail(f"{labels} live at the same time, and lie both in {name}")

    def _place(self, life: _Life) -> int:
        return self._place_of(life.node)

    def _place_of(self, node: Node) -> int:
        return self.order[self.writers[node].number]

    def _is_made_over(self, old: _Life, new: _Life) -> bool:
        """Tell whether a value is made over another one, which nothing else needs."""
        if old.role != "value" or new.role != "value":
            return False
        maker = self.writers[new.node]
        readers = {number: [i for node, i in reads if node is old.node] for number, reads in self.reads.items()}
        place = self.order[maker.number]
        if any(indices and self.order[number] > place for number, indices in readers.items()):
            return False
        if self.writers[old.node].number in self.producers:
            return all(index == maker.index for index in readers[maker.number])
        if maker.kind == "steps":
            return overwritten_value(new.node) is old.node
        within = readers[maker.number] if maker.kind == "writes" else []
        if within and not keeps_order(new.node, within):
            return False
        return maker.in_place and self._overwritten_operand(maker) is old.node

    def _overwritten_operand(self, nest: Nest) -> Node | None:
        """The operand over which a nest in place makes its result."""
        root = nest.roots[0]
        if nest.kind == "writes":
            return root.args[0]
        call, node = nodes.call_of(root), nodes.call_node(root)
        if call is None:
            return None
        if call.overwritten is not None:
            return node.args[call.overwritten[0]]
        added = call.added(node)
        return None if added is None else added[0]

    def _verify_slots(self) -> None:
        """A slot holds all that lies in it, in its dtype."""
        memory, sizing = self.plan.memory, self.plan.sizing
        slots = {slot.buffer.name: slot for slot in memory.arena}
        if len(slots) < len(memory.arena):
            self.fail("two temporaries have one name")
        for node, buffer in memory.buffers.items():
            shape = sizing.shape(node)[memory.row_depths.get(node, 0) :]
            if node in memory.block_rows:
                shape = (memory.block_rows[node], *shape[1:])
            if buffer.dtype != node.dtype:
                self.fail(f"{self.label(node)} is of {node.dtype}, and its buffer {buffer.name} is not")
            slot = slots.get(buffer.name)
            if slot is not None and (node.dtype, shape) not in slot.extents:
                self.fail(f"{self.label(node)} has no room in {buffer.name}")

    # In place ------------------------------------------------------------------------------------------------

    def _verify_overwritten(self) -> None:
        plan, memory = self.plan, self.plan.memory
        for name in memory.overwritten:
            for node, buffer in memory.buffers.items():
                if buffer.name == name:
                    self._verify_update(name, self.writers[node])
        for nest in plan.nests:
            if nest.in_place and nest.kind == "writes":
                operand, (root,) = self._overwritten_operand(nest), nest.roots
                storage = memory.buffers.get(operand) or memory.leaves.get(operand) if operand is not None else None
                is_there = operand not in self.writers or self._place_of(operand) < self.order[nest.number]
                if storage is None or storage.name != memory.buffers[root].name or not is_there:
                    self.fail(f"nest {nest.number} changes {self.label(root)} in place, which is not there")

    def _verify_update(self, name: str, writer: Nest) -> None:
        """A buffer is overwritten after all that reads its old value, and after all that may fail."""
        for nest in self.plan.nests:
            within = nest is writer and self._orders_within(writer, name)
            is_one = nest.kind == "full reduction" or (nest.in_place and writes_one(nest.roots[0]))
            late = self.order[nest.number] >= self.order[writer.number]
            if self.plan.of != "step" and late and not within and self._may_fail(nest):
                self.fail(f"nest {nest.number} may fail, and {name} is overwritten by then")
            for node, index in self.reads[nest.number]:
                leaf = self.plan.memory.leaves.get(node)
                if leaf is None or leaf.name != name or within or (nest is writer and is_one):
                    continue
                shared = self.shared(nest, writer)
                if nest is writer:
                    wrong = nest.kind != "loops" or index != nest.index
                else:
                    wrong = late or (shared > 0 and (writer.kind != "loops" or index[:shared] != nest.index[:shared]))
                if wrong:
                    self.fail(f"nest {nest.number} reads the old value of {name}, which is overwritten by then")

    def _orders_within(self, nest: Nest, name: str) -> bool:
        """Tell whether a nest orders its reads and writes of a buffer itself: a branch whose bodies do, or a scan that
        starts from the contents of the buffer and does not read it otherwise."""
        scan, branch = self.plan.contents.scans.get(nest.number), self.plan.contents.branches.get(nest.number)
        if scan is not None and self.plan.of == "step":
            old = self.plan.memory.overwritten[name]
            return scan.graph.loop.initial.count(old) == 1 and old not in scan.graph.sources.values()
        if branch is None:
            return False
        leaf = self.plan.memory.overwritten[name]
        return list(branch.graph.sources.values()).count(leaf) < 2 and leaf not in given_sizes(branch.graph.node)

    def _may_fail(self, nest: Nest) -> bool:
        branch = self.plan.contents.branches.get(nest.number)
        if branch is not None:
            return any(side.checks or any(map(may_refuse, side.results)) for side in branch.graph.sides)
        return nest.kind in ("check", "guard", "steps") or any(map(nodes.call_fails, nest.roots))

    # Reasons -------------------------------------------------------------------------------------------------

    def _verify_reasons(self) -> None:
        reasons, memory = self.plan.reasons, self.plan.memory
        if reasons.materialised.keys() != self.writers.keys():
            (node, *_) = {*reasons.materialised} ^ {*self.writers}
            self.fail(f"{self.label(node)} is stored without a reason, or has one and is not")
        for then, (first, why) in reasons.not_shared.items():
            if not {first, then} <= self.order.keys() or self.order[first] >= self.order[then] or not why:
                self.fail(f"nest {then} does not stand behind nest {first}, with which it is said to share no loop")
            if self.part[first] == self.part[then]:
                self.fail(f"nests {first} and {then} share a loop, and are said not to")
        if reasons.written.keys() != memory.overwritten.keys() or not memory.deferred <= memory.overwritten.keys():
            self.fail("other buffers are overwritten than it is said of")
        if any(number not in self.order for readers in reasons.readers.values() for number in readers):
            self.fail("a result is said to be read by a nest that is not there")


def _complete_within(nest: Nest, root: Node) -> int:
    """The number of loops at the end of whose iteration an element that a nest stores is complete."""
    return nodes.first_reduced(root) if nest.kind in ("column reduction", "full reduction") else len(nest.space)


class _Reader:
    """The elements that one nest reads of leaves and of what other nests store: a walk from its roots down to these.
    Raises VerifyError where a value is needed that is not there yet, and cannot be computed in the nest."""

    def __init__(self, verifier: _Verifier, nest: Nest) -> None:
        self._verifier, self._nest, self._plan = verifier, nest, verifier.plan
        self._pending: list[tuple[Node, Index]] = []
        self._seen: Reads = {}
        self._reads: Reads = {}

    def reads(self) -> Reads:
        """The elements that the nest reads."""
        nest, plan = self._nest, self._plan
        self._sizes(nest.space)
        match nest.kind:
            case "check":
                check = plan.contents.checks[nest.number]
                self._need(check.index, nest.vars)
                self._sizes((check.size,))
            case "guard":
                for side in guard_sides(plan.contents.guards[nest.number]):
                    self._need(side)
            case "steps":
                self._scan(plan.contents.scans[nest.number])
            case "branch":
                self._branch(plan.contents.branches[nest.number])
            case _:
                for root in nest.roots:
                    self._sizes(root.type.shape)
                    self._root(root)
        while self._pending:
            self._element(*self._pending.pop())
        return self._reads

    def _need(self, node: Node, index: Index = ()) -> ir.Expr:
        """Note an element to be looked at."""
        if node.op is SIZE:
            size = self._plan.sizing.of(node)
            if isinstance(size, int):
                return ir.integer(size)
        if (node, index) not in self._seen:
            self._seen[node, index] = None
            self._pending.append((node, index))
        return nodes.index_element(node, index)

    def _whole(self, node: Node) -> None:
        self._need(node, nodes.loop_vars(node.ndim))

    def _sizes(self, shape: Iterable[Size]) -> None:
        for size in map(self._plan.sizing.of, shape):
            if isinstance(size, Node):
                self._need(size)

    def _scan(self, scan: ScanPlan) -> None:
        graph = scan.graph
        self._captured(graph.node, graph.sources.values(), graph.scalars.values())
        for initial in graph.loop.initial:
            self._whole(initial)
        self._sizes((graph.most,) if graph.is_short else (graph.most, graph.interval))

    def _branch(self, branch: BranchPlan) -> None:
        graph = branch.graph
        self._need(graph.node.args[0])
        self._captured(graph.node, graph.sources.values(), graph.scalars.values())

    def _captured(self, node: Node, sources: Iterable[Node], scalars: Iterable[Node]) -> None:
        self._sizes(given_sizes(node))
        for source in sources:
            self._whole(source)
        for scalar in scalars:
            self._need(scalar)

    def _root(self, root: Node) -> None:
        """Note the elements that a nest needs for a value that it stores."""
        nest, lowering = self._nest, nodes.lowering_of(root)
        match lowering:
            case Fold() if nest.kind == "column reduction":
                self._terms(root, lowering, *nodes.split_axes(nest.index, lowering.axes))
            case Fold() if nest.kind == "full reduction":
                self._terms(root, lowering, (), nest.index)
            case Recur():
                for arg in root.args:
                    self._need(arg, nest.vars if arg.ndim else ())
            case Segments():
                x, starts = root.args
                row, *columns = nest.vars
                begin = self._starts(starts, row)
                self._need(x, (ir.add(ir.cast(begin, ir.INDEX), nodes.segment_var(root)), *columns))
            case Writes():
                self._writes(root, lowering)
            case None:
                pass  # a number that is written into the source, and here to memory, for a call takes its address
            case _ if nest.kind == "call":
                self._call(nodes.call_node(root))
            case _:
                self._lowered(root, nest.index)

    def _terms(self, node: Node, fold: Fold, kept: Index, reduced: Index) -> None:
        self._sizes(fold.sizes(node))
        for position, index in fold.operands(node, kept, reduced):
            self._need(node.args[position], index)

    def _starts(self, starts: Node, row: ir.Expr) -> ir.Expr:
        self._sizes((nodes.segment_count(starts),))
        self._need(starts, (ir.add(row, ir.ONE),))
        return self._need(starts, (row,))

    def _writes(self, node: Node, lowering: Writes) -> None:
        for region in lowering.regions(node):
            if region.is_copy and self._nest.in_place:
                continue
            path = nodes.loop_vars(len(region.sizes))
            self._sizes(region.sizes)
            region.target(path, self._need)
            position, index = region.value(path)
            self._need(node.args[position], index)
        self._checked(node)

    def _call(self, node: Node) -> None:
        """Note what a call takes, and for what it adds to in its place what that takes."""
        call = nodes.call_of(node)
        assert call is not None
        for passed in call.passed(node):
            match passed:
                case Whole(operand):
                    self._whole(operand)
                case Strided(operand):
                    view = nodes.buffer_view(operand, self._plan.sizing)
                    self._whole(view.base)
                    self._sizes((*view.shape, *(axis.start for axis in view.along)))
                case ByValue(scalar):
                    self._need(scalar)
                case Extent(size):
                    self._sizes((size,))
                case Workspace(_, shape):
                    self._sizes(shape)
        if (added := call.added(node)) is not None:
            operand, factor = added
            self._need(factor)
            if isinstance(nodes.lowering_of(operand), Call) and operand not in self._verifier.writers:
                self._call(operand)
            elif not self._nest.in_place:
                self._whole(operand)

    def _element(self, node: Node, index: Index) -> None:
        """Look at one element: it lies in memory, or is made of others."""
        value = constant_value(node)
        if value is not None and value.size == 1:
            return
        if node.op is SIZE:
            names = self._plan.size_names
            if node not in names and self._plan.sizing.of(node) not in names:
                self._fail(node, "which no argument has")
            return
        writer = self._verifier.writers.get(node)
        if writer is not None and (writer is self._nest or self._is_stored(writer)):
            self._read(node, index)
            return
        if writer is not None and node.ndim:
            self._fail(node, "before it is stored")
        if node.op in LEAVES:
            if not nodes.is_bufferless(node) and node not in self._plan.memory.leaves:
                self._fail(node, "which lies nowhere")
            self._read(node, index)
            return
        self._lowered(node, index)

    def _is_stored(self, writer: Nest) -> bool:
        return self._verifier.order[writer.number] < self._verifier.order[self._nest.number]

    def _read(self, node: Node, index: Index) -> None:
        self._reads[node, index] = None
        if node not in self._verifier.writers:
            self._sizes(node.type.shape)  # those of others have names since these were stored

    def _lowered(self, node: Node, index: Index) -> None:
        """Note the elements that one is made of which the nest computes."""
        lowering = nodes.lowering_of(node)
        match lowering:
            case Scalar():
                for arg in node.args:
                    self._need(arg, index)
            case View():
                position, inner = lowering.index(node, index, self._need)
                self._need(node.args[position], inner)
                self._checked(node)
            case Fold():
                self._terms(node, lowering, index, nodes.fold_vars(node, lowering))
            case SegmentNumber():
                self._starts(node.args[0], nodes.segment_var(node))
            case Iota():
                pass
            case _:
                self._fail(node, "which it cannot compute")

    def _checked(self, node: Node) -> None:
        """The indices of a gather are checked before, unless they are known to lie in range."""
        verifier, sizing = self._verifier, self._plan.sizing
        for index, size in gathered(node):
            checks = (number for number, check in self._plan.contents.checks.items() if check.index is index)
            if in_range(index, sizing.of(size), sizing):
                continue
            now = verifier.order[self._nest.number]
            if not any(verifier.order.get(number, now) < now for number in checks):
                self._fail(index, "as an index that nothing has checked")

    def _fail(self, node: Node, problem: str) -> NoReturn:
        self._verifier.fail(f"nest {self._nest.number} reads {self._verifier.label(node)} {problem}")
