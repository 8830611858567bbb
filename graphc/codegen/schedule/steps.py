"""One step of a loop as a graph that is planned like any other.

In: the node of a loop. Out: a `StepGraph`: the body over variables. What lies in memory is a variable, which lowering
gives the buffer; an element of a sequence is a view of one, at the row of the step; sizes are those of the graph
around, so that what is known of them holds inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.schedule.plan import StepGraph, is_bufferless
from graphc.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.closure import guard_sides
from graphc.ir.node import CONSTANT, LEAVES, PARAM, SIZE, Guard, Node, Scalar, Size, make, size_leaf, variable
from graphc.ir.walk import nodes_of, substitute, type_sizes
from graphc.ops.given import given_sizes
from graphc.ops.index import subtensor
from graphc.ops.scan import Loop, loop_of, outside_shape
from graphc.ops.shape import drop
from graphc.startup.record import fresh, record, replace

VIEWS = ("dimshuffle", "broadcast_to", "subtensor")
"""Ops that show a part of what lies in memory."""


@record(frozen=False)
class StandIns:
    """Variables for what a body is given from outside."""

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
        if operand.op.name == "iota" or (operand.op is CONSTANT and is_bufferless(operand)):
            return operand
        source = operand
        while source.op.name == "reshape":
            source = source.args[0]
        if source.op in LEAVES and is_bufferless(source):
            source = operand
        leaf = variable(operand.dtype, operand.type.shape, operand.name)
        self.sources[leaf] = source
        return leaf


def is_size(node: Node) -> bool:
    """Whether a scalar is computed from sizes and numbers alone: it means the same in a body as outside."""
    nodes = nodes_of([node])
    return all(is_counted(each) if each.args else each.op in (SIZE, CONSTANT) for each in nodes)


def is_counted(node: Node) -> bool:
    """Whether a scalar is computed from others in integers."""
    return not is_float(node.dtype) and isinstance(node.op.lower(node), Scalar)


def step_graph(node: Node) -> StepGraph:
    """One step of a loop."""
    loop, number, outer = loop_of(node.args, node.attrs), size_leaf("step", 0), StandIns()
    most = sizes.as_size(loop.count)
    if loop.limit is not None:
        most = sizes.maximum(sizes.minimum(most, sizes.as_size(loop.limit)), 0)
    row = sizes.subtract(sizes.add(most, -1), number) if loop.repeat.reverse else number
    elements = [_row(outer.of(sequence), row) for sequence in loop.sequences]
    states = tuple(variable(s.dtype, outside_shape(loop, s), s.name) for s in loop.states)
    known = given_sizes(node)
    given = (*elements, *states, *(each if each in known else outer.of(each) for each in loop.constants))
    checks = _guarded(loop)
    needed = (each for node_, guard in checks for each in (node_, *guard_sides(guard)))
    wanted = list(dict.fromkeys((*loop.body.results, *needed)))
    inside = dict(zip(wanted, substitute(wanted, dict(zip(loop.body.params, given, strict=True))), strict=True))
    guarded: dict[Node, tuple[Guard, ...]] = {}
    for each, guard in checks:
        left, right = (sizes.as_size(inside[s]) if isinstance(s, Node) else s for s in (guard.left, guard.right))
        guarded[inside[each]] = (*guarded.get(inside[each], ()), replace(guard, left=left, right=right))
    results = tuple(inside[result] for result in loop.body.results)
    return StepGraph(node, loop, number, most, row, outer.sources, outer.scalars, states, results, guarded)


def _row(sequence: Node, row: Size) -> Node:
    rest = sequence.type.shape[1:]
    part = subtensor(sequence, (row, *(0 for _ in rest)), (1, *rest), tuple(1 for _ in sequence.type.shape))
    return drop(part, (0,))


def _guarded(loop: Loop) -> list[tuple[Node, Guard]]:
    """What must hold in every step, by the node of the body it is needed for: guards about what steps change."""
    nodes = nodes_of(loop.body.results)
    changing = {*loop.elements, *loop.states}
    for node in nodes:
        if not changing.isdisjoint(node.args):
            changing.add(node)
    guards = [(node, guard) for node in nodes for guard in node.op.guards(node)]
    return [(node, guard) for node, guard in guards if not changing.isdisjoint(nodes_of(guard_sides(guard)))]


def sizes_of(graph: StepGraph) -> list[Node]:
    """The sizes of what a step computes."""
    return sizes_within(graph.results)


def sizes_within(results: Sequence[Node]) -> list[Node]:
    """The sizes of all that results need."""
    return list(dict.fromkeys(size for node in nodes_of(results) for size in type_sizes(node) if size.op is not SIZE))
