"""Passes over scans and branches of a whole graph: which results are used decides what a scan must compute.

In: a graph, a function that rewrites bodies, and the passes that are on. Out: an equal graph, and what fired:

    scan(lambda x, h: tanh(dot(x, W) + h), X, s0)[-1]
    batch_products    dot(X, W) is one product outside; its rows are a sequence
    last_row          the last row is the final state: no rows are stacked

A pass is a function of an open loop (`open_loops.py`) that returns True if it changed it, or a function of all loops of
the graph. A nested loop is rewritten with the body that contains it, before the outer loop.

    exact    loop_operands, loop_bodies, loop_results, join_loops, constant_states, counted_states, last_row, first_row,
             rows_outside, fuse_loops, sink_elementwise, expensive_rows
    close    batch_products, sum_of_products, project_rows, recurrence: sums in another order

Guards are those of the graph as written: an error remains an error even if a pass could produce a value, as for the
last row of a loop without steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TypeAlias

from graphc.ir import sizes
from graphc.ir.body import ITEM, guards_of, item, items_of, make_body, opened
from graphc.ir.lowering import Scalar
from graphc.ir.node import LEAVES, PARAM, Body, Node, Where, make, user_line
from graphc.ir.sizes import is_natural
from graphc.ir.walk import Graph, consumers, node_set, nodes_of, nodes_since, rebuilt, renamed
from graphc.ops.branch import COND
from graphc.ops.scan import SCAN, loop_of
from graphc.rewrite.rules.engine import RuleUse, set_user_line, tell
from graphc.rewrite.scans.open_loops import Change, LoopContext, OpenLoop, close_loop, fitted, open_loop, prune
from graphc.rewrite.scans.steps import CHANGES, move_expensive_rows, sink_elementwise
from graphc.tensor.elementary import where

Rewritten: TypeAlias = tuple[Graph, list[RuleUse]]
Bodies: TypeAlias = Callable[[Graph, Sequence[Node]], Rewritten]
"""A function that rewrites the graph of a body, given its loop-varying leaves (`engine.VaryingGuards`)."""

LOOPS = (
    "loop_operands",
    "loop_bodies",
    "loop_results",
    "join_loops",
    *CHANGES,
    "fuse_loops",
    *(LAST := {"sink_elementwise": sink_elementwise, "expensive_rows": move_expensive_rows}),
)
"""The names of the passes, in order."""


def rewrite_loops(graph: Graph, bodies: Bodies, is_on: Callable[[str], bool]) -> Rewritten:
    """The graph after all passes over its loops, and what fired. bodies: rewrites the body of a loop."""
    alone = {name: change for name, change in CHANGES.items() if is_on(name)}
    results = "loop_results", partial(reclose, name="loop_results", whole=False)
    join = "join_loops", partial(_merged, name="join_loops")
    stages: list[tuple[str, Callable[[Graph], Rewritten]]] = [
        ("loop_operands", partial(reclose, name="loop_operands", whole=True)),
        results,
        join,  # while the bodies of loops that are alike are written alike
        ("loop_bodies", partial(rewrite_bodies, bodies=bodies)),
        results,
        join,
        ("", partial(_each, changes=alone)),
        ("fuse_loops", partial(_merged, name="fuse_loops")),
        ("", partial(_each, changes={name: change for name, change in LAST.items() if is_on(name)})),
    ]
    fired: list[RuleUse] = []
    for name, stage in stages:
        if not name or is_on(name):
            graph, more = stage(graph)
            fired += more
    return graph, fired


def keep_last_rows(graph: Graph) -> Graph:
    """The graph in which a loop stacks no rows if only the last one is used."""
    return _each(graph, {"last_row": CHANGES["last_row"]})[0]


def loops_of(graph: Graph) -> list[Node]:
    """The scans of a graph, in topological order."""
    return [node for node in nodes_of(graph.outputs) if node.op is SCAN]


# --- loops within their graph -----------------------------------------------------------------------------------------


def _open_all(graph: Graph, whole: bool = False) -> tuple[list[OpenLoop], LoopContext]:
    """The loops of a graph, opened, in topological order. whole: with all results, not only the used ones."""
    taken = consumers(graph.outputs)
    around = LoopContext(taken, frozenset(graph.outputs))
    nodes = [node for node in taken if node.op is SCAN]
    parts = [items_of(node) if whole else [part for part, _ in taken[node]] for node in nodes]
    return [open_loop(node, wanted) for node, wanted in zip(nodes, parts, strict=True)], around


def _closed_all(graph: Graph, loops: Iterable[OpenLoop], name: str) -> Graph:
    """The graph with changed loops closed again; `loops` are in topological order."""
    done: dict[Node, Node] = {}
    here = user_line()
    for loop in loops:
        loop.move(done)
        _set_user_line(loop, here)
        for before, result in close_loop(loop).items():
            done[before] = fitted(result, before.type)
            set_user_line(done[before], loop.node.where, loop.since)
    after = Graph(graph.inputs, tuple([rebuilt(done, output) for output in graph.outputs]))
    tell(name, graph, after)
    return after


def _set_user_line(loop: OpenLoop, here: Where | None) -> None:
    """Give nodes made by passes the user line of the loop."""
    outside = [*loop.wanted.values(), *loop.elements.values(), *loop.states.values()]
    for node in nodes_since([*loop.results, *outside], loop.since):
        if node.where == here and node.serial >= loop.since:
            node.where = loop.node.where


def _fire(name: str, loop: OpenLoop) -> RuleUse:
    return RuleUse.at(name, loop.node)


def _each(graph: Graph, changes: Mapping[str, Change]) -> Rewritten:
    """The graph after passes over one loop at a time."""
    if not changes:
        return graph, []
    loops, around = _open_all(graph)
    fired: list[RuleUse] = []
    for loop in loops:
        for name, change in changes.items():
            if change(loop, around):
                prune(loop)
                fired.append(_fire(name, loop))
    if not fired:
        return graph, []
    return _closed_all(graph, loops, ", ".join(dict.fromkeys(each.rule for each in fired))), fired


def reclose(graph: Graph, name: str, whole: bool) -> Rewritten:
    """The graph with every loop opened and closed, which normalises it. whole: keep all results.

    Closing drops unused operands, merges operands that are the same node, turns constant operands into constants of the
    body, hoists loop-invariant nodes, and makes known sizes numbers. It drops unused results, and states that no result
    or used state depends on.
    """
    loops, _ = _open_all(graph, whole)
    after = _closed_all(graph, loops, name)
    left = set(loops_of(after))
    fired = [_fire(name, loop) for loop in loops if loop.node not in left]
    return (after, fired) if fired else (graph, [])


def with_bodies(node: Node, bodies: Bodies, fired: list[RuleUse]) -> Node:
    """A loop or branch with its bodies rewritten; `fired` is extended."""
    attrs = dict(node.attrs)
    for name, body in node.attrs.items():
        if isinstance(body, Body):
            after, more = bodies(Graph(body.params, body.results), _varying(node) if node.op is SCAN else ())
            if more:
                checks = None if node.op is SCAN else guards_of(body) if body.checks is None else body.checks
                attrs[name] = make_body(body.params, after.outputs, checks)
                fired += more
    return renamed(make(node.op, node.args, attrs), node)


def _varying(node: Node) -> list[Node]:
    """The loop-varying parameters of a body: of this loop, and of loops around it."""
    loop = loop_of(node.args, node.attrs)
    pairs = zip(loop.fixed, loop.constants, strict=True)
    outer = [param for param, operand in pairs if not is_natural(param) and _is_within(operand)]
    return [*loop.elements, *loop.states, *outer]


def _is_within(operand: Node) -> bool:
    """True if an operand is a scalar that depends on a parameter of an enclosing body other than a size."""
    return not operand.ndim and any(node.op is PARAM and not is_natural(node) for node in node_set([operand]))


def rewrite_bodies(graph: Graph, bodies: Bodies) -> Rewritten:
    """The graph with the bodies of its loops rewritten."""
    done: dict[Node, Node] = {}
    fired: list[RuleUse] = []
    for node in loops_of(graph):
        done[node] = with_bodies(rebuilt(done, node), bodies, fired)
    if not fired:
        return graph, []
    after = Graph(graph.inputs, tuple([rebuilt(done, output) for output in graph.outputs]))
    tell("loop_bodies", graph, after)
    return after, fired


# --- several loops as one ---------------------------------------------------------------------------------------------


def _merged(graph: Graph, name: str) -> Rewritten:
    """The graph with compatible loops merged.

    join_loops: merge if all states of one loop are states of the other; fuse_loops: always. Neither loop may depend on
    the other. Merging makes further loops equal: for two gradients first the forward loops, then the backward ones.
    """
    fired: list[RuleUse] = []
    while True:
        nodes = loops_of(graph)
        needs = _needs(graph, nodes)
        if not any(_may_merge(one, other, needs) for one, other in combinations(nodes, 2)):
            return graph, fired
        loops, _ = _open_all(graph)
        left: list[OpenLoop] = []
        for loop in loops:
            partners = (other for other in left if _may_merge(other.node, loop.node, needs))
            partner = next((other for other in partners if absorb(other, loop, name == "join_loops")), None)
            if partner is None:
                left.append(loop)
            else:
                _note_merged(needs, partner.node, loop.node)
                fired.append(_fire(name, loop))
        if len(left) == len(loops):
            return graph, fired
        left.sort(key=lambda loop: len(needs[loop.node]))  # a topological order, since `needs` is transitive
        graph = _closed_all(graph, left, name)


def _needs(graph: Graph, loops: Sequence[Node]) -> dict[Node, set[Node]]:
    """For each loop, the loops it depends on, directly or not."""
    if len(loops) < 2:
        return {loop: set() for loop in loops}
    bit = {loop: 1 << number for number, loop in enumerate(loops)}
    needed: dict[Node, int] = {}
    for node in nodes_of(graph.outputs):
        mask = 0
        for arg in node.args:
            mask |= needed[arg] | bit.get(arg, 0)
        needed[node] = mask
    return {node: {other for other, own in bit.items() if needed[node] & own} for node in bit}


def _note_merged(needs: dict[Node, set[Node]], one: Node, other: Node) -> None:
    """Update `needs` after a merge: what depends on one of the two depends on both and their dependencies."""
    together = needs[one] | needs[other]
    for node, found in needs.items():
        if node is one or node is other:
            found |= together
        elif one in found or other in found:
            found |= {one, other, *together}


def _may_merge(one: Node, other: Node, needs: Mapping[Node, set[Node]]) -> bool:
    """True if two loops have equal trip counts and directions, and neither depends on the other."""
    if other in needs[one] or one in needs[other]:
        return False
    a, b = (loop_of(node.args, node.attrs) for node in (one, other))
    alike = a.limit is b.limit and a.repeat.reverse == b.repeat.reverse and a.recomputed == b.recomputed
    return alike and sizes.equal(sizes.as_size(a.count), sizes.as_size(b.count))


def absorb(loop: OpenLoop, other: OpenLoop, alike: bool) -> bool:
    """Merge `other` into `loop` if both stop at the same step; True if done. alike: only if the states of one are among
    those of the other. Two states are equal if their initial values and their updates are."""
    sequences = {sequence: element for element, sequence in loop.elements.items()}
    shared = {element: sequences[own] for element, own in other.elements.items() if own in sequences}
    pairs = _pair_states(loop, other, shared)
    if alike and len(pairs) < min(len(loop.states), len(other.states)):
        return False
    if alike and not pairs and not shared:
        return False
    since = min(loop.since, other.since)
    done = {**shared, **pairs}
    condition = None if other.condition is None else rebuilt(done, other.condition, other.since)
    if condition is not loop.condition:
        return False
    loop.since = since
    if other.taken is not None and loop.taken is not None:
        other.replace_results({other.taken: loop.taken})
    for element, sequence in other.elements.items():
        if element not in shared:
            loop.elements[element] = sequence
    for state, initial in other.states.items():
        if state not in pairs:
            loop.states[state] = initial
            loop.after[state] = rebuilt(done, other.after[state], other.since)
    loop.rows |= {stand_in: rebuilt(done, output, other.since) for stand_in, output in other.rows.items()}
    loop.last |= {stand_in: pairs.get(state, state) for stand_in, state in other.last.items()}
    loop.wanted |= other.wanted
    return True


def _pair_states(loop: OpenLoop, other: OpenLoop, shared: Mapping[Node, Node]) -> dict[Node, Node]:
    """The states of `other` that equal states of `loop`: a greatest fixpoint, starting from equal initial values and
    removing pairs with different updates."""
    left = dict(loop.states)
    pairs: dict[Node, Node] = {}
    for state, initial in other.states.items():
        partner = next((own for own, begin in left.items() if begin is initial), None)
        if partner is not None:
            del left[partner]
            pairs[state] = partner
    while True:
        done = {**shared, **pairs}
        wrong = [
            state
            for state, partner in pairs.items()
            if rebuilt(done, other.after[state], other.since) is not loop.after[partner]
        ]
        if not wrong:
            return pairs
        for state in wrong:
            del pairs[state]


# --- branches ---------------------------------------------------------------------------------------------------------
# branch_bodies rewrites bodies; branch_to_where computes both sides of a cheap branch. Both are exact.


BRANCHES = ("branch_bodies", "branch_to_where")
"""The names of the passes over branches."""
MOST_COST = 30.0
"""If both branches cost at most this, both are computed: a mispredicted jump costs as much."""


def has_bodies(graph: Graph) -> bool:
    """True if a graph contains a loop or a branch."""
    return any(node.is_tuple for node in node_set(graph.outputs))


def rewrite_branches(graph: Graph, bodies: Bodies, is_on: Callable[[str], bool]) -> Rewritten:
    """The graph after all passes over its branches, and what fired. bodies: rewrites a body."""
    done: dict[Node, Node] = {}
    fired: list[RuleUse] = []
    for node in nodes_of(graph.outputs):
        if node.op is COND:
            new = rebuilt(done, node)
            if is_on("branch_bodies"):
                new = with_bodies(new, bodies, fired)
            done[node] = renamed(new, node)
        elif node.op is ITEM and node.args[0].op is COND and is_on("branch_to_where"):
            whole = done[node.args[0]]
            if all(map(_is_cheap, (whole.attrs["then"], whole.attrs["orelse"]))):
                place = node.attrs["index"]
                sides = (opened(whole.attrs[name], whole.args[1:])[place] for name in ("then", "orelse"))
                done[node] = renamed(where(whole.args[0], *sides), node)
                fired.append(RuleUse.at("branch_to_where", node))
            else:
                done[node] = renamed(item(whole, node.attrs["index"]), node)
    if not fired:
        return graph, []
    return Graph(graph.inputs, tuple([rebuilt(done, output) for output in graph.outputs])), fired


def _is_cheap(body: Body) -> bool:
    """True if a body computes a few cheap scalars and has no guards."""
    if body.checks:
        return False
    nodes = [node for node in node_set(body.results) if node.op not in LEAVES]
    if any(node.ndim or not isinstance(node.op.lower(node), Scalar) or node.op.guards(node) for node in nodes):
        return False
    return not any(result.ndim for result in body.results) and sum(node.op.cost for node in nodes) <= MOST_COST
