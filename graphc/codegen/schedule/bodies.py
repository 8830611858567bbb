"""The bodies of scans and branches as graphs that are planned like any other, and the upper bounds of their sizes.

In: the node of a scan or branch. Out: a `ScanGraph` or `BranchGraph`: the bodies over variables. What lies in memory is
a variable, which lowering gives the buffer; an element of a sequence is a view of one, at the row of the step; sizes
are those of the graph around, so that what is known of them holds inside. As an example, of the scan
`scan(lambda x, s: s + x * w, sequences=xs, outputs_info=s0, non_sequences=w)` over vectors the graph is

    sources = {xs': xs, w': w}    states = (s',)    results = (s' + xs'[step] * w',)

Memory for a size that changes from step to step must be had before the loop. `upper_bound_of` gives a size of the graph
around that it never exceeds: integer nodes lie in ranges that follow from those of their arguments, so `step + 1` lies
between 1 and the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.schedule.cost import work_of
from graphc.codegen.schedule.nodes import Sizing, is_bufferless
from graphc.codegen.schedule.plan import BranchBody, BranchGraph, ScanGraph
from graphc.ir import sizes
from graphc.ir.body import ITEM, guard_sides, guards_of, opened, split_guards
from graphc.ir.node import CONSTANT, LEAVES, PARAM, SIZE, Body, Guard, Node, Size, make, size_leaf, variable
from graphc.ir.walk import as_size_node, dependents, node_set, nodes_of, substitute, type_sizes
from graphc.ops.branch import given_sizes, is_counted
from graphc.ops.index import subtensor
from graphc.ops.scan import loop_of, outside_shape
from graphc.ops.shape import drop
from graphc.startup.record import fresh, record, replace

VIEWS = ("dimshuffle", "broadcast_to", "subtensor")
"""Ops that show a part of what lies in memory."""


COUNTING = ("cast", "reshape")
"""Ops of an iota of which an element costs no more than the iota's: random numbers are functions of such."""


@record(frozen=False)
class StandIns:
    """Variables that stand in a body for what it takes from outside. Their sizes are numbers where `sizing` knows them:
    products of small matrices are then no calls."""

    sizing: Sizing
    sources: dict[Node, Node] = fresh(factory=dict)
    scalars: dict[Node, Node] = fresh(factory=dict)
    made: dict[Node, Node] = fresh(factory=dict)

    def of(self, operand: Node) -> Node:
        """The variable that stands for an operand."""
        if operand not in self.made:
            self.made[operand] = self._array(operand) if operand.ndim else self._scalar(operand)
        return self.made[operand]

    def _scalar(self, operand: Node) -> Node:
        if is_size(operand):
            return operand
        leaf = Node(PARAM, (), {"type": operand.type, "natural": False}, operand.type, operand.name)
        self.scalars[leaf] = operand
        return leaf

    def _array(self, operand: Node) -> Node:
        if operand.op.name in VIEWS:
            return make(operand.op, [self.of(arg) for arg in operand.args], operand.attrs)
        counted = operand
        while counted.op.name in COUNTING:
            counted = counted.args[0]
        if counted.op.name == "iota" or (operand.op is CONSTANT and is_bufferless(operand)):
            return operand
        source = operand
        while source.op.name == "reshape":
            source = source.args[0]
        if source.op in LEAVES and is_bufferless(source):
            source = operand
        leaf = variable(operand.type.dtype, known_sizes(operand.type.shape, self.sizing), operand.name)
        self.sources[leaf] = source
        return leaf


def known_sizes(shape: Sequence[Size], sizing: Sizing) -> tuple[Size, ...]:
    """A shape, with numbers for the sizes that must be equal to one."""
    known = [sizing.of(size) for size in shape]
    return tuple(each if isinstance(each, int) else size for each, size in zip(known, shape, strict=True))


def is_size(node: Node) -> bool:
    """Tell whether a scalar is computed from sizes and numbers alone: it means the same in a body as outside."""
    nodes = node_set([node])
    return all(is_counted(each) if each.args else each.op in (SIZE, CONSTANT) for each in nodes)


def scan_graph(node: Node, sizing: Sizing) -> ScanGraph:
    """The graph of one step of a scan."""
    loop, number, outer = loop_of(node.args, node.attrs), size_leaf("step", 0), StandIns(sizing)
    known = [size for size in given_sizes(node) if all(each.op is not ITEM for each in node_set([size]))]

    def inner(operand: Node) -> Node:
        return operand if operand in known else outer.of(operand)

    most = _most_steps(loop.count, loop.limit)
    row: Size = number
    if loop.repeat.reverse:
        count = _most_steps(inner(loop.count), None if loop.limit is None else inner(loop.limit))
        row = sizes.subtract(sizes.add(count, -1), number)
    elements = [_row(outer.of(sequence), row) for sequence in loop.sequences]
    shapes = [known_sizes(outside_shape(loop, state), sizing) for state in loop.states]
    states = tuple(variable(s.type.dtype, shape, s.name) for s, shape in zip(loop.states, shapes, strict=True))
    operands = (*elements, *states, *map(inner, loop.constants))
    _, checks = split_guards(loop.body, (*loop.elements, *loop.states))
    needed = (each for node_, guard in checks for each in (node_, *guard_sides(guard)))
    wanted = list(dict.fromkeys((*loop.body.results, *needed)))
    inside = dict(zip(wanted, substitute(wanted, dict(zip(loop.body.params, operands, strict=True))), strict=True))
    guarded: dict[Node, tuple[Guard, ...]] = {}
    for each, guard in checks:
        left, right = (sizes.as_size(inside[s]) if isinstance(s, Node) else s for s in (guard.left, guard.right))
        guarded[inside[each]] = (*guarded.get(inside[each], ()), replace(guard, left=left, right=right))
    results = tuple(inside[result] for result in loop.body.results)
    work = work_of(results, (number, *states, *outer.sources, *outer.scalars))
    return ScanGraph(node, loop, number, most, row, outer.sources, outer.scalars, states, results, guarded, work)


def _most_steps(count: Node, limit: Node | None) -> Size:
    """The number of steps that there are at most."""
    most = sizes.as_size(count)
    return most if limit is None else sizes.maximum(sizes.minimum(most, sizes.as_size(limit)), 0)


def _row(sequence: Node, row: Size) -> Node:
    """A row of a sequence, as a view; of numbers from 0 on, the number."""
    if sequence.op.name == "iota":
        return as_size_node(row)
    rest = sequence.type.shape[1:]
    part = subtensor(sequence, (row, *(0 for _ in rest)), (1, *rest), tuple(1 for _ in sequence.type.shape))
    return drop(part, (0,))


def scan_sizes(graph: ScanGraph) -> list[Node]:
    """The sizes that a scan needs: of its steps, and of what a step computes as far as these are known outside."""
    loop = graph.loop
    counts = (graph.most, loop.limit, None if graph.is_short else graph.interval)
    inside = (graph.number, *graph.states, *graph.sources, *graph.scalars)
    return [*(size for size in counts if isinstance(size, Node)), *known_outside(sizes_within(graph.results), inside)]


def known_outside(sizes_: Sequence[Node], inside: Sequence[Node]) -> list[Node]:
    """The sizes that depend on none of a body's variables."""
    varying = dependents(nodes_of(sizes_), inside)
    return [size for size in sizes_ if size not in varying]


def sizes_within(results: Sequence[Node]) -> list[Node]:
    """The sizes of all that results need."""
    return list(dict.fromkeys(size for node in nodes_of(results) for size in type_sizes(node) if size.op is not SIZE))


def branch_graph(node: Node, sizing: Sizing) -> BranchGraph:
    """The graphs of both bodies of a branch."""
    outer, sizes_ = StandIns(sizing), given_sizes(node)
    operands = [operand if operand in sizes_ else outer.of(operand) for operand in node.args[1:]]

    def side(body: Body) -> BranchBody:
        checks = guards_of(body) if body.checks is None else body.checks
        sides = list(dict.fromkeys(each for guard in checks for each in guard_sides(guard)))
        replaced = dict(zip(body.params, operands, strict=True))
        results, compared = opened(body, operands), dict(zip(sides, substitute(sides, replaced), strict=True))

        def inside(size: Size) -> Size:
            return sizes.as_size(compared[size]) if isinstance(size, Node) else size

        guards = (replace(guard, left=inside(guard.left), right=inside(guard.right)) for guard in checks)
        return BranchBody(tuple(results), tuple(guard for guard in guards if not _holds(guard, sizing)))

    return BranchGraph(node, outer.sources, outer.scalars, (side(node.attrs["then"]), side(node.attrs["orelse"])))


def _holds(guard: Guard, sizing: Sizing) -> bool:
    """Tell whether a guard is known to hold."""
    left, right = sizing.of(guard.left), sizing.of(guard.right)
    if isinstance(left, int) and isinstance(right, int):
        return {"==": left == right, "<=": left <= right, "<": left < right}[guard.relation]
    return guard.relation != "<" and sizes.equal(left, right)


def branch_sizes(graph: BranchGraph) -> list[Node]:
    """The sizes of what the bodies compute, and those that they compare, as far as these are known outside."""
    compared = [each for side in graph.sides for guard in side.checks for each in guard_sides(guard)]
    computed = [size for side in graph.sides for size in sizes_within(side.results)]
    return known_outside([*computed, *compared], (*graph.sources, *graph.scalars))
