"""What costs much in a step on single numbers, and no step waits for: computed outside, where all steps are vectors.

In: an open loop of states. Out: whether it was changed. What moves is elementwise work on scalars, from outputs that
are stored anyway to others. Work on elements of sequences stays, as far as it was there: it is done while a step waits
for the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from graphc.ir.node import Node
from graphc.ir.walk import nodes_since, toposort
from graphc.rewrite.scans.open_loops import OpenLoop, Surroundings, fitted, is_elementwise, lifted

WORTH = 8.0
"""Ops that are worth an array: a division is 4."""


def move_expensive_rows(loop: OpenLoop, around: Surroundings) -> bool:
    """Outputs that follow from elements and from outputs that are stored in any case."""
    if not loop.is_whole or not loop.states:
        return False
    order = loop.order()
    varying = loop.varying(order)
    found: dict[Node, Node] = {}
    kept: set[Node] = set()
    for stand_in, output in list(loop.rows.items()):
        given = {node for node in loop.rows.values() if node is not output and not node.ndim}
        ends = {*given, *loop.elements}
        able = _made_of(ends, order, varying)
        if output in kept or output not in able or output in loop.elements or output in loop.after.values():
            continue
        work = _work(output, able, ends)
        others = nodes_since([node for node in loop.results if node is not output], loop.since)
        if sum(node.op.cost for node in set(work).difference(others)) < WORTH:
            continue
        needed = {arg for node in work for arg in node.args if arg in given}
        kept |= needed
        rows = {node: partial(loop.rows_of, node) for node in needed}
        found[stand_in] = fitted(lifted(loop, [output], varying, rows)[0], stand_in.type)
        del loop.rows[stand_in]
    loop.replace_results(found)
    return bool(found)


def _made_of(given: Iterable[Node], order: Iterable[Node], varying: Collection[Node]) -> set[Node]:
    """The scalars of a step that change from step to step through some alone, by elementwise work."""
    found = {node for node in given if not node.ndim}
    for node in order:
        if node in varying and node not in found and not node.ndim and node.args and is_elementwise(node):
            moved = [arg for arg in node.args if arg in varying]
            if found.issuperset(moved):
                found.add(node)
    return found


def _work(root: Node, able: Collection[Node], ends: Collection[Node]) -> list[Node]:
    """What is computed for a node from what it is made of."""
    nodes = toposort([root], lambda node: [arg for arg in node.args if arg in able] if node not in ends else ())
    return [node for node in nodes if node not in ends]
