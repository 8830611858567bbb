"""The two bodies of a branch as graphs that are planned like any others.

In: the node of a branch. Out: a `BranchGraph`: both bodies over variables, as of the steps of a loop (steps.py). What a
body refuses is checked within it, in the kernel.
"""

from __future__ import annotations

from graphc.codegen.schedule.plan import BranchGraph, Side
from graphc.codegen.schedule.sizes import Sizing
from graphc.codegen.schedule.steps import StandIns, known_outside, sizes_within
from graphc.ir import sizes
from graphc.ir.body import guard_sides, guards_of, opened
from graphc.ir.node import Body, Guard, Node, Size
from graphc.ir.walk import substitute
from graphc.ops.given import given_sizes
from graphc.startup.record import replace


def branch_graph(node: Node, sizing: Sizing) -> BranchGraph:
    """Both bodies of a branch."""
    outer, sizes_ = StandIns(sizing), given_sizes(node)
    given = [operand if operand in sizes_ else outer.of(operand) for operand in node.args[1:]]

    def side(body: Body) -> Side:
        checks = guards_of(body) if body.checks is None else body.checks
        sides = list(dict.fromkeys(each for guard in checks for each in guard_sides(guard)))
        replaced = dict(zip(body.params, given, strict=True))
        results, compared = opened(body, given), dict(zip(sides, substitute(sides, replaced), strict=True))

        def inside(size: Size) -> Size:
            return sizes.as_size(compared[size]) if isinstance(size, Node) else size

        guards = (replace(guard, left=inside(guard.left), right=inside(guard.right)) for guard in checks)
        return Side(tuple(results), tuple(guard for guard in guards if not _holds(guard, sizing)))

    return BranchGraph(node, outer.sources, outer.scalars, (side(node.attrs["then"]), side(node.attrs["orelse"])))


def _holds(guard: Guard, sizing: Sizing) -> bool:
    """Whether a guard is known to hold."""
    left, right = sizing.of(guard.left), sizing.of(guard.right)
    if isinstance(left, int) and isinstance(right, int):
        return {"==": left == right, "<=": left <= right, "<": left < right}[guard.relation]
    return guard.relation != "<" and sizes.equal(left, right)


def branch_sizes(graph: BranchGraph) -> list[Node]:
    """The sizes of what the bodies compute, and those that they compare, as far as these are known outside."""
    compared = [each for side in graph.sides for guard in side.checks for each in guard_sides(guard)]
    computed = [size for side in graph.sides for size in sizes_within(side.results)]
    return known_outside([*computed, *compared], (*graph.sources, *graph.scalars))
