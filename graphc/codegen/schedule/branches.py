"""The two bodies of a branch as graphs that are planned like any others.

In: the node of a branch. Out: a `BranchGraph`: both bodies over variables, as of the steps of a loop (steps.py). What a
body refuses is checked within it, in the kernel.
"""

from __future__ import annotations

from graphc.codegen.schedule.plan import BranchGraph, Side
from graphc.codegen.schedule.sizes import Sizing
from graphc.codegen.schedule.steps import StandIns, sizes_within
from graphc.ir import sizes
from graphc.ir.closure import guard_sides, opened
from graphc.ir.node import Body, Guard, Node, Size
from graphc.ir.walk import nodes_of
from graphc.ops.given import given_sizes


def branch_graph(node: Node, sizing: Sizing) -> BranchGraph:
    """Both bodies of a branch."""
    outer, sizes_ = StandIns(), given_sizes(node)
    given = [operand if operand in sizes_ else outer.of(operand) for operand in node.args[1:]]

    def side(body: Body) -> Side:
        results = opened(body, given)
        guarded = {each: tuple(g for g in each.op.guards(each) if not _holds(g, sizing)) for each in nodes_of(results)}
        return Side(tuple(results), {each: guards for each, guards in guarded.items() if guards})

    return BranchGraph(node, outer.sources, outer.scalars, (side(node.attrs["then"]), side(node.attrs["orelse"])))


def _holds(guard: Guard, sizing: Sizing) -> bool:
    """Whether a guard is known to hold."""
    return guard.relation != "<" and sizes.equal(sizing.of(guard.left), sizing.of(guard.right))


def branch_sizes(graph: BranchGraph) -> list[Size]:
    """The sizes of what the bodies compute, and those that they compare."""
    guards = (guard for side in graph.sides for guards in side.guarded.values() for guard in guards)
    compared = [each for guard in guards for each in guard_sides(guard)]
    return [*(size for side in graph.sides for size in sizes_within(side.results)), *compared]
