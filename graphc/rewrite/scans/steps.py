"""What passes change of one loop: what leaves it to be computed outside, for all steps at once, and what moves in.

In: an open loop, and who takes what in the graph around it. Out: whether it was changed. `CHANGES` is the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir.node import Node, make
from graphc.ir.walk import nodes_since, rebuilt, toposort
from graphc.rewrite.scans.open_loops import (
    Change,
    OpenLoop,
    Surroundings,
    held,
    is_elementwise,
    leave,
    liftable,
    lifted,
    repeated,
    uses_of,
)
from graphc.rewrite.scans.products import batch_products, project_rows, sum_products
from graphc.rewrite.scans.recurrences import as_recurrences
from graphc.rewrite.scans.rows import begin_with_row, keep_last_row

EXPENSIVE = 10.0
"""An op that costs more than this is worth vectors, which a step on single numbers has not."""


def _fix_states(loop: OpenLoop, around: Surroundings) -> bool:
    """A state that no step changes, as a constant."""
    found = {state: initial for state, initial in loop.states.items() if held(loop.after[state]) is state}
    for state in found:
        del loop.states[state]
        del loop.after[state]
    loop.replace(found)
    ends = {stand_in: found[state] for stand_in, state in loop.last.items() if state in found}
    loop.last = {stand_in: state for stand_in, state in loop.last.items() if state not in found}
    leave(loop, ends)
    return bool(found)


def _move_rows_outside(loop: OpenLoop, around: Surroundings) -> bool:
    """Outputs that are elementwise of elements alone, computed outside: they are stored anyway.

    Not what other nodes of a step read: that would be computed twice.
    """
    changed = False
    while loop.is_whole:
        order = loop.order()
        varying, uses = loop.varying(order), uses_of(loop, order)
        able = liftable(loop.elements, order, varying)
        found: dict[Node, Node] = {}
        for stand_in, output in loop.rows.items():
            alone = uses[output] == sum(each is output for each in loop.results) or output in loop.elements
            if output not in varying or (output in able and alone):
                found[stand_in] = lifted(loop, [output], varying)[0]
        if not found:
            break
        leave(loop, found)
        changed = True
    return changed


def sink_elementwise(loop: OpenLoop, around: Surroundings) -> bool:
    """A sequence that is elementwise of arrays, for this loop alone, is computed in the steps: no array is stored.

    What is the same for all steps becomes a constant. An op that costs much stays outside where an element is a single
    number: the loop over all of them is made of vectors, a step is not.
    """
    known: dict[Node, Node] = {}
    sunk: set[Node] = {loop.node}
    pending = list(loop.elements)
    while pending:
        element = pending.pop()
        sequence = loop.elements[element]
        same = repeated(sequence)
        if same is not None:
            known[element] = same
            continue
        own = sequence not in around.outputs and all(user in sunk for user, _ in around.taken.get(sequence, ()))
        expensive = sequence.op.cost > EXPENSIVE and not element.ndim
        if not own or expensive or not (is_elementwise(sequence) or held(sequence) is not sequence):
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
    loop.replace(_settled(known, loop.since))
    return True


def _settled(known: Mapping[Node, Node], since: int) -> dict[Node, Node]:
    """What takes the place of each element, in terms of elements that stay."""
    done: dict[Node, Node] = {}
    for element in toposort(known, lambda e: [other for other in nodes_since([known[e]], since) if other in known]):
        done[element] = rebuilt(dict(done), known[element], since)
    return done


CHANGES: dict[str, Change] = {
    "constant_states": _fix_states,
    "last_row": keep_last_row,
    "first_row": begin_with_row,
    "batch_products": batch_products,
    "rows_outside": _move_rows_outside,
    "sum_of_products": sum_products,
    "project_rows": project_rows,
    "recurrence": as_recurrences,
}
"""The passes over one loop after loops were joined, in their order."""
