"""Bodies of loops and branches: what is known of values while one is written.

In: the `Lowerer` that writes the kernel, the plan of a body, and the buffers of what the body is given. Meanwhile it
knows these, leaves, and what the plan materialises, but not what others do: that may not be computed yet, or only in
another body. Then it knows what it knew before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.schedule.plan import Plan
from graphc.ir.node import LEAVES, Node, Size
from graphc.loopir.ir import Buffer


@contextmanager
def body_of(
    lowerer: Lowerer, plan: Plan, given: Mapping[Node, Node], results: Iterable[Buffer], rows: Mapping[Node, Size] = {}
) -> Iterator[None]:
    """While the parts of `plan` are written. `given`: for variables of the body the values whose buffers they have;
    `results`: the buffers that the body may write under their names; `rows`: values that are one row of theirs."""
    before = lowerer.buffers, lowerer.accumulators, lowerer.depths, lowerer.rows, lowerer.labels
    workspaces, lowerer.workspaces = lowerer.workspaces, plan.workspaces
    known = {buffer.name: buffer for buffer in results}
    places = {node: place.buffer for node, place in plan.places.items() if place.buffer is not None}
    lowerer.buffers = {
        **{node: buffer for node, buffer in lowerer.buffers.items() if node.op in LEAVES},
        **{leaf: lowerer.buffers[source] for leaf, source in given.items()},
        **{node: known.get(buffer.name, buffer) for node, buffer in places.items()},
    }
    lowerer.accumulators, lowerer.depths, lowerer.labels = plan.accumulators, plan.depths, plan.labels
    outer = {leaf: lowerer.rows[source] for leaf, source in given.items() if source in lowerer.rows}
    lowerer.rows = {**{node: row for node, row in lowerer.rows.items() if node.op in LEAVES}, **outer, **rows}
    yield
    lowerer.buffers, lowerer.accumulators, lowerer.depths, lowerer.rows, lowerer.labels = before
    lowerer.workspaces = workspaces
