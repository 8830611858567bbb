"""PyTensor's Scan as graphc's.

In: an Apply of Scan and its operands. Out: nodes of its results: buffers that begin with the initial values, as
PyTensor has them before its rewrites, and end with zeros where nothing is written.
"""

from __future__ import annotations

from typing import Any

import graphc.tensor as T
from graphc.control.scan import scan, until
from graphc.ir.node import Node
from graphc.pytensor.table import Table, held, known, row
from graphc.pytensor.unknown import Unknown


@row("Scan", nested=True)
def _scan(apply: Any, args: list[Any], table: Table) -> list[Node]:
    """Each state with taps is a state of graphc's scan with these taps. A buffer that steps read and write in several
    places, as gradients of loops do (`mit_mot`), is a state as a whole, of which each step writes rows."""
    op, info = apply.op, apply.op.info
    for arg in args:
        if not isinstance(arg, Node):
            raise Unknown("a loop over what is no tensor")
    steps = known(args[0])
    buffers = op.outer_mitmot(args)
    begun = [*op.outer_mitsot(args), *op.outer_sitsot(args)]
    taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
    whole = op.outer_untraced_sit_sot(args)
    free = op.outer_nitsot(args)
    others = op.outer_non_seqs(args)
    outs = op.fgraph.outputs

    def step(*given: Any) -> Any:
        left = list(given)
        time, elements = left.pop(0), [left.pop(0) for _ in range(info.n_seqs)]
        carried = [left.pop(0) for _ in buffers]
        past = [[left.pop(0) for _ in own] for own in taps]
        last = [left.pop(0) for _ in whole]
        values = [*elements]
        for buffer, own in zip(carried, info.mit_mot_in_slices, strict=True):
            values += [buffer[time + (tap - min(own))] for tap in own]
        values += [value for own in past for value in own]
        values += [*last, *others]
        inner = op.fgraph.inputs
        values = [held(value, variable.type) for value, variable in zip(values, inner, strict=True)]
        made = table.values_of(outs, dict(zip(inner, values, strict=True)))
        written = []
        for buffer, reads, writes in zip(carried, info.mit_mot_in_slices, info.mit_mot_out_slices, strict=True):
            for tap in writes:
                buffer = T.set_subtensor(buffer[time + (tap - min(reads))], made.pop(0))
            written.append(buffer)
        states = [made.pop(0) for _ in taps]
        rows = [made.pop(0) for _ in free]
        results = [*written, *states, *[made.pop(0) for _ in whole], *rows]
        return (results, until(made[0])) if info.as_while else results

    initial: list[Any] = [{"initial": buffer, "taps": [-1]} for buffer in buffers]
    for buffer, own in zip(begun, taps, strict=True):
        lowest = -min(own)
        initial.append({"initial": buffer[:lowest] if lowest > 1 else buffer[0], "taps": list(own)})
    initial += [{"initial": value, "taps": [-1]} for value in whole]
    initial += [None] * len(free)
    sequences = [T.arange(steps), *[rows[:steps] for rows in op.outer_seqs(args)]]
    results, _ = scan(step, sequences, initial, n_steps=steps, return_list=True)
    results = list(results)
    made = [results.pop(0)[-1] for _ in buffers]
    for buffer, own in zip(begun, taps, strict=True):
        made.append(T.concatenate([buffer[: -min(own)], results.pop(0)]))
    last = [results.pop(0)[-1] for _ in whole]
    if op.truncate_gradient != -1:
        results = [filled(rows, size, args[0]) for rows, size in zip(results, free, strict=True)]
    return [*made, *results, *last]


def filled(rows: Node, size: Node, steps: Node) -> Node:
    """The rows of an output, and zeros where its buffer, of `size` rows, has more than there are steps: so have
    gradients that go back through some steps only."""
    more = T.maximum(size - steps, 0)
    return T.concatenate([rows, T.zeros((more, *rows.shape[1:]), rows.dtype)])
