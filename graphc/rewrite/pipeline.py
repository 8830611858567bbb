"""The pipeline: which rules run, in which order.

In: a graph. Out: an equal graph that is cheaper and more stable, and the list of what fired.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphc.errors import GraphcError
from graphc.ir.node import Node
from graphc.ir.walk import Graph
from graphc.rewrite.regions import STORED, store_regions
from graphc.rewrite.rules.algebra import ALGEBRA, FOLD, LAWS, PRUNE
from graphc.rewrite.rules.engine import REAL, AnyRule, Fired, apply_in_turn
from graphc.rewrite.rules.linear import LINEAR, PAIRS
from graphc.rewrite.rules.matrices import FACTORS, MATRICES
from graphc.rewrite.rules.positive import SHARED
from graphc.rewrite.rules.scatter import REGIONS, SCATTERS
from graphc.rewrite.rules.stable import MOMENTS, STABLE
from graphc.rewrite.rules.views import REDUCTIONS, TRANSPOSES, VIEWS
from graphc.rewrite.scans.passes import (
    BRANCHES,
    LOOPS,
    Bodies,
    Rewritten,
    has_bodies,
    keep_last_rows,
    loops_of,
    reclose,
    rewrite_bodies,
    rewrite_branches,
    rewrite_loops,
)
from graphc.rewrite.scans.rolling import ROLLED, roll_steps
from graphc.startup.record import record


@record()
class Pass:
    """Rules that are applied together, bottom up, until none applies."""

    name: str
    rules: tuple[AnyRule, ...]


PIPELINE = (
    Pass("prune", PRUNE),
    Pass("fold", FOLD + VIEWS),
    Pass("matrices", MATRICES),
    Pass("definiteness", SHARED),
    Pass("factors", FACTORS),  # after all that makes fewer of them, before rules of sums and products
    Pass("stability", STABLE),  # before algebra, while expressions are as they were written
    Pass("algebra", FOLD + STABLE + ALGEBRA + VIEWS + REDUCTIONS),
    Pass("scatters", SCATTERS),  # before loops take sums of their sequences in
    Pass("linear", FOLD + LAWS + LINEAR + SCATTERS),
    Pass("moments", MOMENTS + VIEWS),
    Pass("pairs", PAIRS + VIEWS + TRANSPOSES),  # it only changes the order of loops
    Pass("regions", REGIONS + VIEWS),  # last: what is added to an array of zeros may be added to another array before
)

AFTER_LOOPS = ("linear", "moments", "pairs")
"""The passes that make calls of products, and orders of loops: after those over scans, which look for plain ones."""

RULES: dict[str, AnyRule] = {rule.name: rule for step in PIPELINE for rule in step.rules}
"""Every rule by name."""
NAMES = {*RULES, *(step.name for step in PIPELINE), *LOOPS, *BRANCHES, ROLLED, STORED}
"""All that may be off: rules and passes."""


def rewrite(graph: Graph, fast_math: bool = False, excluding: Sequence[str] = ()) -> tuple[Graph, list[Fired]]:
    """The graph after all passes, and what fired.

    `fast_math` admits rules that are true of real numbers only. `excluding` names rules or whole passes that are off.
    """
    unknown = set(excluding) - NAMES
    if unknown:
        raise GraphcError(f"there is no rewrite rule or pass {', '.join(sorted(unknown))}")

    def is_on(rule: AnyRule) -> bool:
        return rule.name not in excluding and (fast_math or rule.truth != REAL)

    passes = [(step.name, list(filter(is_on, step.rules))) for step in PIPELINE if step.name not in excluding]
    graph, fired = rewrite_nodes(graph, passes, excluding)
    for name, change in ((ROLLED, roll_steps), (STORED, store_regions)):
        if name not in excluding:
            graph, more = change(graph)
            fired += more
    return graph, fired


def rewrite_nodes(
    graph: Graph, passes: Sequence[tuple[str, Sequence[AnyRule]]], excluding: Sequence[str]
) -> tuple[Graph, list[Fired]]:
    """The graph after the passes, with its loops and branches."""
    if not has_bodies(graph):
        return apply_in_turn(graph, passes)
    branches = partial(rewrite_branches, is_on=lambda name: name not in excluding)
    early = [(name, rules) for name, rules in passes if name not in AFTER_LOOPS]

    def both(rewritten: Rewritten, bodies: Bodies) -> Rewritten:
        graph, more = branches(rewritten[0], bodies)
        return graph, rewritten[1] + more

    def before(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = both(apply_in_turn(graph, early, varying), before)
        if not loops_of(graph):
            return graph, fired
        graph, more = rewrite_loops(graph, before, lambda name: name not in excluding)
        return graph, fired + more

    def body(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = after(graph, varying)
        graph, more = store_regions(graph) if STORED not in excluding else (graph, [])
        return graph, fired + more

    def after(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = both(apply_in_turn(graph, passes, varying), body)
        if not loops_of(graph):
            return graph, fired
        if "loop_operands" not in excluding:  # some may be numbers by now
            graph, more = reclose(graph, "loop_operands", False)
            fired += more
        if "loop_bodies" not in excluding:
            graph, more = rewrite_bodies(graph, body)
            fired += more
        return graph, fired

    graph, fired = before(graph, ())
    graph, more = after(graph, ())
    return graph, fired + more


def without_counts(graph: Graph) -> Graph:
    """The graph in which less follows from how many steps its loops take that end by themselves: the last row of one is
    taken without it. What is not there to begin with is said by checks."""
    if not any(loop.attrs["until"] for loop in loops_of(graph)):
        return graph
    return keep_last_rows(apply_in_turn(graph, [("views", [*FOLD, *VIEWS])])[0])
