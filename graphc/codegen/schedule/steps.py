"""One step of a loop as a graph that is planned like any other.

In: the node of a loop. Out: a `StepGraph`: the body over variables. What lies in memory is a variable, which lowering
gives the buffer; an element of a sequence is a view of one, at the row of the step; sizes are those of the graph
around, so that what is known of them holds inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.schedule.plan import StepGraph, is_bufferless
from graphc.codegen.schedule.sizes import Sizing
from graphc.codegen.schedule.work import work_of
from graphc.ir import sizes
from graphc.ir.body import ITEM, guard_sides, split_guards
from graphc.ir.node import CONSTANT, LEAVES, PARAM, SIZE, Guard, Node, Size, make, size_leaf, variable
from graphc.ir.walk import dependents, node_set, nodes_of, substitute, type_sizes
from graphc.ops.given import given_sizes, is_counted
from graphc.ops.index import subtensor
from graphc.ops.scan import loop_of, outside_shape
from graphc.ops.shape import drop
from graphc.startup.record import fresh, record, replace

VIEWS = ("dimshuffle", "broadcast_to", "subtensor")
"""Ops that show a part of what lies in memory."""


COUNTING = ("cast", "reshape")
"""Ops of which the element of an iota is as cheap as the iota's: random numbers are functions of such."""


@record(frozen=False)
class StandIns:
    """Variables for what a body is given from outside, whose sizes are numbers where `sizing` knows them: products of
    small matrices are then no calls."""

    sizing: Sizing
    sources: dict[Node, Node] = fresh(factory=dict)
    scalars: dict[Node, Node] = fresh(factory=dict)
    made: dict[Node, Node] = fresh(factory=dict)

    def of(self, operand: Node) -> Node:
        """What stands for an operand."""
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
        leaf = variable(operand.dtype, known_sizes(operand.type.shape, self.sizing), operand.name)
        self.sources[leaf] = source
        return leaf


def known_sizes(shape: Sequence[Size], sizing: Sizing) -> tuple[Size, ...]:
    """A shape, with numbers for the sizes that must be equal to one."""
    known = [sizing.of(size) for size in shape]
    return tuple(each if isinstance(each, int) else size for each, size in zip(known, shape, strict=True))


def is_size(node: Node) -> bool:
    """Whether a scalar is computed from sizes and numbers alone: it means the same in a body as outside."""
    nodes = node_set([node])
    return all(is_counted(each) if each.args else each.op in (SIZE, CONSTANT) for each in nodes)


def step_graph(node: Node, sizing: Sizing) -> StepGraph:
    """One step of a loop."""
    loop, number, outer = loop_of(node.args, node.attrs), size_leaf("step", 0), StandIns(sizing)
    known = [size for size in given_sizes(node) if all(each.op is not ITEM for each in node_set([size]))]

    def given(operand: Node) -> Node:
        return operand if operand in known else outer.of(operand)

    most = _most(loop.count, loop.limit)
    row: Size = number
    if loop.repeat.reverse:
        taken = _most(given(loop.count), None if loop.limit is None else given(loop.limit))
        row = sizes.subtract(sizes.add(taken, -1), number)
    elements = [_row(outer.of(sequence), row) for sequence in loop.sequences]
    shapes = [known_sizes(outside_shape(loop, state), sizing) for state in loop.states]
    states = tuple(variable(s.dtype, shape, s.name) for s, shape in zip(loop.states, shapes, strict=True))
    operands = (*elements, *states, *map(given, loop.constants))
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
    return StepGraph(node, loop, number, most, row, outer.sources, outer.scalars, states, results, guarded, work)


def _most(count: Node, limit: Node | None) -> Size:
    """How many steps there are at most."""
    most = sizes.as_size(count)
    return most if limit is None else sizes.maximum(sizes.minimum(most, sizes.as_size(limit)), 0)


def _row(sequence: Node, row: Size) -> Node:
    rest = sequence.type.shape[1:]
    part = subtensor(sequence, (row, *(0 for _ in rest)), (1, *rest), tuple(1 for _ in sequence.type.shape))
    return drop(part, (0,))


def sizes_of(graph: StepGraph) -> list[Node]:
    """The sizes that a loop needs: of its steps, and of what a step computes as far as these are known outside."""
    loop = graph.loop
    own = (graph.most, loop.limit, None if graph.is_short else graph.interval)
    inside = (graph.number, *graph.states, *graph.sources, *graph.scalars)
    return [*(size for size in own if isinstance(size, Node)), *known_outside(sizes_within(graph.results), inside)]


def known_outside(sizes_: Sequence[Node], inside: Sequence[Node]) -> list[Node]:
    """The sizes that depend on none of a body's variables."""
    varying = dependents(nodes_of(sizes_), inside)
    return [size for size in sizes_ if size not in varying]


def sizes_within(results: Sequence[Node]) -> list[Node]:
    """The sizes of all that results need."""
    return list(dict.fromkeys(size for node in nodes_of(results) for size in type_sizes(node) if size.op is not SIZE))
