"""Passes over scans and branches of a whole graph: which results are used decides what a scan must compute.

In: a graph, a function that rewrites bodies, and the passes that are on. Out: an equal graph, and what fired:

    scan(lambda x, h: tanh(dot(x, W) + h), X, s0)[-1]
    batch_products    dot(X, W) is one product outside; its rows are a sequence
    last_row          the last row is the final state: no rows are stacked

A pass is a function of an open loop (`open_loops.py`) that returns True if it changed it, or a function of all loops of
the graph. A nested loop is rewritten with the body that contains it, before the outer loop.

    constant_states     a state that no step changes becomes a constant
    counted_states      a state to which each step adds a number becomes a function of the step's number
    last_row            an output whose last row alone is used becomes the final state
    first_row           a sequence of zeros except for its first row becomes the initial value of a state
    rows_outside        outputs that are elementwise in elements are computed outside
    sink_elementwise    elementwise work on a sequence moves into the steps, so that it is not stored
    expensive_rows      expensive scalar work that no state depends on moves outside, where it vectorises
    expensive_sums      so does such work that a state only adds up

All are exact but for batch_products, sum_of_products, project_rows and recurrence (recurrences.py), and for
expensive_sums, which add in another order.

Guards are those of the graph as written: an error remains an error even if a pass could produce a value, as for the
last row of a loop without steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import combinations
from typing import TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.body import ITEM, guards_of, item, items_of, make_body, opened
from graphc.ir.facts import scalar_constant
from graphc.ir.lowering import Scalar
from graphc.ir.node import CONSTANT, LEAVES, PARAM, Body, Node, Where, literal, make, user_line, variable
from graphc.ir.sizes import is_natural
from graphc.ir.walk import Graph, as_size_node, consumers, node_set, nodes_of, nodes_since, rebuilt, renamed, toposort
from graphc.ops.branch import COND
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import SCAN, is_recomputed, loop_of
from graphc.ops.shape import drop, expand, filled, iota, zeros
from graphc.rewrite import open_loops
from graphc.rewrite.engine import RuleUse, is_elementwise, is_number, set_user_line, tell
from graphc.rewrite.recurrences import as_recurrences, batch_products, plus, project_rows, sum_products, terms_of
from graphc.tensor.elementary import where

# --- passes over one loop: work that moves out of the steps, or into them ---------------------------------------------


WORTH = 8.0
"""Moving work outside pays if its ops cost at least this; a division costs 4."""


def move_expensive_rows(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """Outputs computed by elementwise scalar work, from elements and from outputs stored anyway, are computed outside
    if the work that no other result needs is expensive: outside, all steps are vectors."""
    if not loop.is_whole or not loop.states:
        return False
    order = loop.order()
    varying = loop.varying(order)
    moved: dict[Node, Node] = {}
    kept: set[Node] = set()
    for stand_in, output in list(loop.rows.items()):
        scalars = {node for node in loop.rows.values() if node is not output and not node.ndim}
        ends = {*scalars, *loop.elements}
        able = _made_of(ends, order, varying)
        if output in kept or output not in able or output in loop.elements or output in loop.after.values():
            continue
        work = _work(output, able, ends)
        others = nodes_since([node for node in loop.results if node is not output], loop.since)
        if sum(node.op.cost for node in set(work).difference(others)) < WORTH:
            continue
        needed = {arg for node in work for arg in node.args if arg in scalars}
        kept |= needed
        rows = {node: partial(loop.rows_of, node) for node in needed}
        moved[stand_in] = open_loops.fitted(open_loops.lifted(loop, [output], varying, rows)[0], stand_in.type)
        del loop.rows[stand_in]
    loop.replace_results(moved)
    return bool(moved)


def sum_expensive_terms(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """Scalar states to which steps only add expensive functions of elements and of other states become sums outside.
    The other states are stored: they take no more memory than the elements."""
    order = loop.order()
    is_again = any(is_recomputed(node) or node.op.name == "computed_after" for node in order)
    if not loop.is_whole or is_again:  # which is there so that not all steps are kept
        return False
    varying, uses, moved = loop.varying(order), open_loops.uses_of(loop, order), dict[Node, Node]()
    scalars = {node for node in (*loop.after.values(), *loop.rows.values()) if not node.ndim}
    ends = {*scalars, *loop.elements}
    able = _made_of(ends, order, varying)
    for stand_in, state in loop.last.items():
        terms = [] if state.ndim else terms_of(loop, state, uses)
        work = {node for term in terms for node in _work(term, able, ends)} if able.issuperset(terms) else set()
        needed = scalars.intersection(terms) | {arg for node in work for arg in node.args if arg in scalars}
        stored = len(needed.difference(loop.rows.values()))
        least = WORTH * (1 + stored)
        if stored > len(loop.elements) or sum(node.op.cost for node in work) < least:
            continue
        others = nodes_since([node for node in loop.results if node is not loop.after[state]], loop.since)
        if sum(node.op.cost for node in work.difference(others)) < least:
            continue
        rows = {node: partial(loop.rows_of, node) for node in needed}
        total = reduce(partial(elementwise, "add"), open_loops.lifted(loop, terms, varying, rows))
        moved[stand_in] = open_loops.fitted(plus(loop.states[state], [reduce_sum(total, (0,))]), stand_in.type)
    loop.replace_results(moved)
    return bool(moved)


def _made_of(roots: Iterable[Node], order: Iterable[Node], varying: Collection[Node]) -> set[Node]:
    """The scalars of a step that depend on it only through `roots`, by elementwise ops."""
    scalars = {node for node in roots if not node.ndim}
    for node in order:
        if node in varying and node not in scalars and not node.ndim and node.args and is_elementwise(node):
            moved = [arg for arg in node.args if arg in varying]
            if scalars.issuperset(moved):
                scalars.add(node)
    return scalars


def _work(root: Node, able: Collection[Node], ends: Collection[Node]) -> list[Node]:
    """The nodes computed between `ends` and `root`."""
    nodes = toposort([root], lambda node: [arg for arg in node.args if arg in able] if node not in ends else ())
    return [node for node in nodes if node not in ends]


# --- last and first rows ----------------------------------------------------------------------------------------------


def keep_last_row(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """An output of which only the last row is used becomes a final state: no rows are stored.

    A loop without steps has no last row; the guards of the graph as written report that.
    """
    changed, varying = False, loop.varying(loop.order())
    for part, stand_in in list(loop.wanted.items()):
        output = loop.rows.get(stand_in)
        users = around.taken[part]
        if output is None or part in around.outputs or not users:
            continue
        if not all(place == 0 and _is_last_row(loop, user) for user, place in users):
            continue
        final = _last_value(loop, output) if output in varying else output
        del loop.wanted[part]
        for user, _ in users:
            _, *numbers = map(sizes.as_size, user.args[1:])
            starts, shape = numbers[: user.ndim - 1], numbers[user.ndim :]
            row = subtensor(expand(final, (0,)), (0, *starts), (1, *shape), user.attrs["steps"])
            loop.wanted[user] = row if loop.condition is None else _after_a_step(loop, row)
        changed = True
    return changed


def _after_a_step(loop: open_loops.OpenLoop, row: Node) -> Node:
    """The last row of an `until` loop, with a check that the loop has made a step. Guards may be evaluated after this
    node (codegen/pipeline/kernel.py), so the check cannot be left to them."""
    if isinstance(loop.count, int):
        return row if loop.count > 0 else checked(row, [literal(0, "int64")], NO_STEP, "index")
    some = elementwise("less_equal", literal(1, "int64"), as_size_node(loop.count))
    return checked(row, [cast(some, "int64")], NO_STEP, "index")


NO_STEP = "of no steps there is no last row"


def _last_value(loop: open_loops.OpenLoop, output: Node) -> Node:
    """The stand-in for the last value of an output, which becomes a state if it is none."""
    state = next((state for state, after in loop.after.items() if after is output), None)
    if state is None:
        state = variable(output.type.dtype, output.type.shape, output.name)
        loop.states[state] = zeros(output.type.dtype, output.type.shape)
        loop.after[state] = output
    final = variable(output.type.dtype, output.type.shape)
    loop.last[final] = state
    return final


def _is_last_row(loop: open_loops.OpenLoop, user: Node) -> bool:
    """True if a node reads only the row of the last step."""
    if user.op.name != "subtensor" or not sizes.equal(user.type.shape[0], 1):
        return False
    start, *rest = user.args[1:]
    if any(number.serial > loop.node.serial and number.op is not CONSTANT for number in rest):
        return False  # it may depend on the loop
    row = sizes.as_size(start)
    if loop.condition is None:  # rows of steps beyond the limit are zeros, the state keeps its value
        return loop.limit is None and sizes.equal(row, 0 if loop.reverse else sizes.add(loop.count, -1))
    if loop.reverse:
        return False
    taken = [part for part, stand_in in loop.wanted.items() if stand_in is loop.taken]
    return isinstance(row, Node) and any(_count_before(loop, row) is part for part in taken)


def _count_before(loop: open_loops.OpenLoop, row: Node) -> Node | None:
    """The count n of an index n - 1, seen through the bounds that indexing adds; None if there is none."""
    if row.op.name != "add" or not is_number(row.args[1], -1):
        return None
    node = row.args[0]
    if node.op.name == "minimum":
        node = next((arg for arg in node.args if not sizes.equal(sizes.as_size(arg), loop.count)), node)
    if node.op.name == "maximum":
        node = next((arg for arg in node.args if not is_number(arg, 0)), node)
    if node.op.name == "where" and node.args[0].op.name == "less" and node.args[0].args[0] is node.args[2]:
        node = node.args[2]  # a negative number would count from the end
    return node


def start_from_row(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """A sequence that is zero except for the row that the first step adds to a zero state: the state starts as that
    row. So no zeros are stored for the gradient of the last of many rows.

    The steps still add 0.0, which turns -0.0 into 0.0.
    """
    if loop.condition is not None:
        return False
    uses, changed = open_loops.uses_of(loop, order := loop.order()), False
    for node in order:
        if node.op.name != "add":
            continue
        for state, element in (node.args, node.args[::-1]):
            row = _only_row(loop, element) if element in loop.elements and state in loop.states else None
            if row is None or uses[state] != 1 or uses[element] != 1 or not is_number(loop.states[state], 0.0):
                continue
            loop.states[state] = row
            loop.replace({element: filled(literal(0, element.type.dtype), element.type.shape)})
            del loop.elements[element]
            changed = True
            break
    return changed


def _only_row(loop: open_loops.OpenLoop, element: Node) -> Node | None:
    """The row that the first step reads of a sequence that is 0.0 everywhere else; None if it is not of this form."""
    sequence, only = loop.elements[element], None
    if not sizes.equal(sequence.type.shape[0], loop.count):
        return None  # there may be no step for a row that is there
    while only is None and sequence.op.name in ("inc_subtensor", "set_subtensor") and is_float(sequence.type.dtype):
        x, rows, start, *rest = sequence.args
        whole = all(is_number(each, 0) for each in rest)
        whole = whole and all(map(sizes.equal, rows.type.shape[1:], x.type.shape[1:]))
        if not whole or not is_number(x, 0.0):
            break
        if sizes.equal(rows.type.shape[0], 1) and _is_first_row(loop, start):
            only = drop(rows, (0,))
        elif is_number(start, 0):
            sequence = rows  # zeros come after
        else:
            break
    return only


def _is_first_row(loop: open_loops.OpenLoop, start: Node) -> bool:
    """True if an index is that of the row which the first step reads."""
    if not loop.reverse:
        return is_number(start, 0)
    if loop.limit is not None:
        taken = loop.limit.op is ITEM  # the trip count of another loop: between 0 and the number of rows
        return taken and _count_before(loop, start) is loop.limit
    return sizes.equal(sizes.as_size(start), sizes.add(loop.count, -1))


# --- invariant states, elementwise work -------------------------------------------------------------------------------


EXPENSIVE = 10.0
"""An op that costs more is worth vectorising, which a step on scalars does not do."""


def _fix_states(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """A state that no step changes becomes a constant."""
    fixed = {
        state: initial for state, initial in loop.states.items() if open_loops.unbroadcast(loop.after[state]) is state
    }
    for state in fixed:
        del loop.states[state]
        del loop.after[state]
    loop.replace(fixed)
    ends = {stand_in: fixed[state] for stand_in, state in loop.last.items() if state in fixed}
    loop.last = {stand_in: state for stand_in, state in loop.last.items() if state not in fixed}
    open_loops.replace_outputs(loop, ends)
    return bool(fixed)


def _count_states(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """An int64 scalar to which each step adds a number follows from the number of the step, whose range is known: so
    a place `a[i]` of a loop over `i` needs no check in each step."""
    steps = {
        state: step for state, after in loop.after.items() if (step := _constant_increment(state, after)) is not None
    }
    if not loop.is_whole or not steps:
        return False
    count, number = as_size_node(loop.count), loop.element_of(iota(loop.count))
    if loop.reverse:
        number = elementwise("sub", as_size_node(sizes.add(loop.count, -1)), number)
    counted: dict[Node, Node] = {}
    for state, step in steps.items():
        initial = loop.states.pop(state)
        del loop.after[state]
        counted[state] = _affine_state(initial, step, number)
        ends = {stand_in: _affine_state(initial, step, count) for stand_in, own in loop.last.items() if own is state}
        loop.last = {stand_in: own for stand_in, own in loop.last.items() if own is not state}
        open_loops.replace_outputs(loop, ends)
    loop.replace(counted)
    return True


def _constant_increment(state: Node, after: Node) -> int | None:
    """The number that a step adds to a state; None if the step does something else."""
    if state.ndim or state.type.dtype != "int64" or after.op.name != "add" or state not in after.args:
        return None
    one, other = after.args
    number = scalar_constant(other if one is state else one)
    return None if number is None else int(number)


def _affine_state(initial: Node, step: int, number: Node) -> Node:
    """initial + step * number."""
    product = number if step == 1 else elementwise("mul", number, literal(step, "int64"))
    return product if is_number(initial, 0) else elementwise("add", product, initial)


def _move_rows_outside(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """Outputs that are elementwise functions of elements are computed outside, since they are stored anyway.

    Not if other nodes of the step use them: they would be computed twice.
    """
    changed = False
    while loop.is_whole:
        order = loop.order()
        varying, uses = loop.varying(order), open_loops.uses_of(loop, order)
        able = open_loops.liftable(loop.elements, order, varying)
        moved: dict[Node, Node] = {}
        for stand_in, output in loop.rows.items():
            alone = uses[output] == sum(each is output for each in loop.results) or output in loop.elements
            if output not in varying or (output in able and alone):
                moved[stand_in] = open_loops.lifted(loop, [output], varying)[0]
        if not moved:
            break
        open_loops.replace_outputs(loop, moved)
        changed = True
    return changed


def sink_elementwise(loop: open_loops.OpenLoop, around: open_loops.LoopContext) -> bool:
    """A sequence computed elementwise for this loop alone is computed in the steps, so that it is not stored.

    A sequence of equal elements becomes a constant. An expensive op on scalar elements stays outside, where the loop
    over all elements vectorises.
    """
    known: dict[Node, Node] = {}
    sunk: set[Node] = {loop.node}
    pending = list(loop.elements)
    while pending:
        element = pending.pop()
        sequence = loop.elements[element]
        same = open_loops.repeated(sequence)
        if same is not None:
            known[element] = same
            continue
        safe = sequence not in around.outputs and all(user in sunk for user, _ in around.taken.get(sequence, ()))
        expensive = sequence.op.cost > EXPENSIVE and not element.ndim
        if not safe or expensive or not (is_elementwise(sequence) or open_loops.unbroadcast(sequence) is not sequence):
            continue
        sunk.add(sequence)
        before = set(loop.elements)
        if is_elementwise(sequence):
            known[element] = make(sequence.op, [loop.element_of(arg) for arg in sequence.args], sequence.attrs)
        else:
            known[element] = loop.element_of(sequence.args[0])
        pending += [new for new in loop.elements if new not in before]
    if not known:
        return False
    for element in known:
        del loop.elements[element]
    loop.replace(_resolved(known, loop.since))
    return True


def _resolved(known: Mapping[Node, Node], since: int) -> dict[Node, Node]:
    """The replacement of each element, expressed by elements that remain."""
    done: dict[Node, Node] = {}
    for element in toposort(known, lambda e: [other for other in nodes_since([known[e]], since) if other in known]):
        done[element] = rebuilt(dict(done), known[element], since)
    return done


CHANGES: dict[str, open_loops.Change] = {
    "constant_states": _fix_states,
    "counted_states": _count_states,
    "last_row": keep_last_row,
    "first_row": start_from_row,
    "batch_products": batch_products,
    "rows_outside": _move_rows_outside,
    "sum_of_products": sum_products,
    "project_rows": project_rows,
    "recurrence": as_recurrences,
}
"""The passes over one loop, in order; they run after loops are joined."""


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
    *(
        LAST := {
            "sink_elementwise": sink_elementwise,
            "expensive_rows": move_expensive_rows,
            "expensive_sums": sum_expensive_terms,
        }
    ),
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
            graph, names = stage(graph)
            fired += names
    return graph, fired


def keep_last_rows(graph: Graph) -> Graph:
    """The graph in which a loop stacks no rows if only the last one is used."""
    return _each(graph, {"last_row": CHANGES["last_row"]})[0]


def loops_of(graph: Graph) -> list[Node]:
    """The scans of a graph, in topological order."""
    return [node for node in nodes_of(graph.outputs) if node.op is SCAN]


# --- loops within their graph -----------------------------------------------------------------------------------------


def _open_all(graph: Graph, whole: bool = False) -> tuple[list[open_loops.OpenLoop], open_loops.LoopContext]:
    """The loops of a graph, opened, in topological order. whole: with all results, not only the used ones."""
    taken = consumers(graph.outputs)
    around = open_loops.LoopContext(taken, frozenset(graph.outputs))
    nodes = [node for node in taken if node.op is SCAN]
    parts = [items_of(node) if whole else [part for part, _ in taken[node]] for node in nodes]
    return [open_loops.open_loop(node, wanted) for node, wanted in zip(nodes, parts, strict=True)], around


def _closed_all(graph: Graph, loops: Iterable[open_loops.OpenLoop], name: str) -> Graph:
    """The graph with changed loops closed again; `loops` are in topological order."""
    done: dict[Node, Node] = {}
    here = user_line()
    for loop in loops:
        loop.move(done)
        _set_user_line(loop, here)
        for before, result in open_loops.close_loop(loop).items():
            done[before] = open_loops.fitted(result, before.type)
            set_user_line(done[before], loop.node.where, loop.since)
    after = Graph(graph.inputs, tuple([rebuilt(done, output) for output in graph.outputs]))
    tell(name, graph, after)
    return after


def _set_user_line(loop: open_loops.OpenLoop, here: Where | None) -> None:
    """Give nodes made by passes the user line of the loop."""
    outside = [*loop.wanted.values(), *loop.elements.values(), *loop.states.values()]
    for node in nodes_since([*loop.results, *outside], loop.since):
        if node.where == here and node.serial >= loop.since:
            node.where = loop.node.where


def _each(graph: Graph, changes: Mapping[str, open_loops.Change]) -> Rewritten:
    """The graph after passes over one loop at a time."""
    if not changes:
        return graph, []
    loops, around = _open_all(graph)
    fired: list[RuleUse] = []
    for loop in loops:
        for name, change in changes.items():
            if change(loop, around):
                open_loops.prune(loop)
                fired.append(RuleUse.at(name, loop.node))
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
    fired = [RuleUse.at(name, loop.node) for loop in loops if loop.node not in left]
    return (after, fired) if fired else (graph, [])


def with_bodies(node: Node, bodies: Bodies, fired: list[RuleUse]) -> Node:
    """A loop or branch with its bodies rewritten; `fired` is extended."""
    attrs = dict(node.attrs)
    for name, body in node.attrs.items():
        if isinstance(body, Body):
            after, names = bodies(Graph(body.params, body.results), _varying(node) if node.op is SCAN else ())
            if names:
                checks = None if node.op is SCAN else guards_of(body) if body.checks is None else body.checks
                attrs[name] = make_body(body.params, after.outputs, checks)
                fired += names
    return renamed(make(node.op, node.args, attrs), node)


def _varying(node: Node) -> list[Node]:
    """The loop-varying parameters of a body: of this loop, and of loops around it."""
    loop = loop_of(node.args, node.attrs)

    def is_within(operand: Node) -> bool:
        return not operand.ndim and any(node.op is PARAM and not is_natural(node) for node in node_set([operand]))

    pairs = zip(loop.fixed, loop.constants, strict=True)
    outer = [param for param, operand in pairs if not is_natural(param) and is_within(operand)]
    return [*loop.elements, *loop.states, *outer]


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
        left: list[open_loops.OpenLoop] = []
        for loop in loops:
            partners = (other for other in left if _may_merge(other.node, loop.node, needs))
            partner = next((other for other in partners if absorb(other, loop, name == "join_loops")), None)
            if partner is None:
                left.append(loop)
            else:
                _note_merged(needs, partner.node, loop.node)
                fired.append(RuleUse.at(name, loop.node))
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
    for node, needed in needs.items():
        if node is one or node is other:
            needed |= together
        elif one in needed or other in needed:
            needed |= {one, other, *together}


def _may_merge(one: Node, other: Node, needs: Mapping[Node, set[Node]]) -> bool:
    """True if two loops have equal trip counts and directions, and neither depends on the other."""
    if other in needs[one] or one in needs[other]:
        return False
    a, b = (loop_of(node.args, node.attrs) for node in (one, other))
    alike = a.limit is b.limit and a.repeat.reverse == b.repeat.reverse and a.recomputed == b.recomputed
    return alike and sizes.equal(sizes.as_size(a.count), sizes.as_size(b.count))


def absorb(loop: open_loops.OpenLoop, other: open_loops.OpenLoop, alike: bool) -> bool:
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


def _pair_states(
    loop: open_loops.OpenLoop, other: open_loops.OpenLoop, shared: Mapping[Node, Node]
) -> dict[Node, Node]:
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
