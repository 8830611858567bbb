"""Rewriting: an equal graph, cheaper and more stable. The pipeline: which rules run, in which order.

In: a graph. Out: an equal graph, and the list of rules that fired. Rules are pairs of graphs, or functions of a node,
each with its class of truth: read engine.py first; algebra.py, stable.py, views.py, linear.py and matrices.py have
those of one subject each, regions.py those of arrays that are written in parts. Passes over scans and branches:
open_loops.py (a scan as a graph over variables), loops.py (the passes in order), recurrences.py. equal_steps.py finds
unrolled loops, and rolling.py turns them into scans.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphc.errors import GraphcError
from graphc.ir.node import Node
from graphc.ir.walk import Graph
from graphc.rewrite.algebra import ALGEBRA, FOLD, LAWS, PRUNE
from graphc.rewrite.engine import REAL, AnyRule, RuleUse, apply_in_turn, tell_of
from graphc.rewrite.linear import LINEAR, PAIRS
from graphc.rewrite.loops import (
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
from graphc.rewrite.matrices import FACTORS, MATRICES, SHARED
from graphc.rewrite.regions import REGIONS, SCATTERS, STORED, store_regions
from graphc.rewrite.rolling import ROLLED, roll_steps
from graphc.rewrite.stable import MOMENTS, STABLE
from graphc.rewrite.views import REDUCTIONS, TRANSPOSES, VIEWS
from graphc.startup.record import record

__all__ = ["PIPELINE", "RULES", "RuleUse", "rewrite", "tell_of"]


@record()
class Pass:
    """Rules applied together, bottom up, to a fixpoint."""

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
"""Passes that form library calls and loop orders. They run after the passes over scans, which match plain products."""

RULES: dict[str, AnyRule] = {rule.name: rule for step in PIPELINE for rule in step.rules}
"""Every rule by name."""
NAMES = {*RULES, *(step.name for step in PIPELINE), *LOOPS, *BRANCHES, ROLLED, STORED}
"""The names that `excluding` accepts: rules and passes."""


def rewrite(graph: Graph, fast_math: bool = False, excluding: Sequence[str] = ()) -> tuple[Graph, list[RuleUse]]:
    """The graph after all passes, and the rules that fired.

    fast_math: admit rules that are true only of real numbers. excluding: names of rules or whole passes to switch off.
    Raises GraphcError for an unknown name.
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
            graph, names = change(graph)
            fired += names
    return graph, fired


def rewrite_nodes(
    graph: Graph, passes: Sequence[tuple[str, Sequence[AnyRule]]], excluding: Sequence[str]
) -> tuple[Graph, list[RuleUse]]:
    """The graph after `passes`, including passes over its scans and branches and their bodies."""
    if not has_bodies(graph):
        return apply_in_turn(graph, passes)
    branches = partial(rewrite_branches, is_on=lambda name: name not in excluding)
    early = [(name, rules) for name, rules in passes if name not in AFTER_LOOPS]

    def both(rewritten: Rewritten, bodies: Bodies) -> Rewritten:
        graph, names = branches(rewritten[0], bodies)
        return graph, rewritten[1] + names

    def before(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = both(apply_in_turn(graph, early, varying), before)
        if not loops_of(graph):
            return graph, fired
        graph, names = rewrite_loops(graph, before, lambda name: name not in excluding)
        return graph, fired + names

    def body(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = after(graph, varying)
        graph, names = store_regions(graph) if STORED not in excluding else (graph, [])
        return graph, fired + names

    def after(graph: Graph, varying: Sequence[Node]) -> Rewritten:
        graph, fired = both(apply_in_turn(graph, passes, varying), body)
        if not loops_of(graph):
            return graph, fired
        if "loop_operands" not in excluding:  # some may be numbers by now
            graph, names = reclose(graph, "loop_operands", False)
            fired += names
        if "loop_bodies" not in excluding:
            graph, names = rewrite_bodies(graph, body)
            fired += names
        return graph, fired

    graph, fired = before(graph, ())
    graph, more = after(graph, ())
    return graph, fired + more


def without_counts(graph: Graph) -> Graph:
    """The graph with fewer uses of the trip counts of `until` loops: the last row of such a loop becomes its last
    state. A loop without steps is reported by a check."""
    if not any(loop.attrs["until"] for loop in loops_of(graph)):
        return graph
    return keep_last_rows(apply_in_turn(graph, [("views", [*FOLD, *VIEWS])])[0])
