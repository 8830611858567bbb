"""Keep a value or compute it again: one cost function.

In: a node, how often it is wanted, where it would be kept. Out: whether keeping it is cheaper. The unit is one addition
in a vectorised loop over elements, a tenth of a nanosecond on the machines of 2020 to 2026, in which ops state their
costs too (`Op.cost`: a division 4, an exponential 20).

What is counted:

- Computing an element again costs its op and those below it, down to what lies in memory anyway (arguments of the
  kernel, results of external functions, reductions), and reading that. Values of fewer axes are for an outer loop.
- Keeping an element costs writing it once and reading it at every further use. Sizes are not known when a kernel is
  compiled. A value that is made and read in the same iteration of an outer loop is taken to stay in the first two
  levels of cache, as a row of up to some ten thousand elements does; any other is taken to go out to the last level,
  where a core moves some 30 bytes in a nanosecond, and a write moves its bytes twice: the line is fetched before it is
  written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.codegen.schedule.plan import lowering_of, unrolls
from graphc.ir.lowering import Call, Fold, Recur, SegmentNumber, Segments, Writes
from graphc.ir.node import LEAVES, Node
from graphc.startup.record import record


@record()
class Memory:
    """What moving one byte costs."""

    read: float
    write: float


ROW = Memory(read=0.15, write=0.5)
"""A row in cache: a load, and a store with the loop around it."""
WHOLE = Memory(read=0.3, write=0.6)
"""An array of its own."""
EXPENSIVE = 10.0
"""A single op that costs more than this is not done twice."""
MANY = 8
"""How often a loop that a value does not depend on is taken to compute it."""


def materialising_pays(node: Node, times: int, memory: Memory, is_materialised: Callable[[Node], bool]) -> bool:
    """Whether a value that is wanted `times` times is cheaper materialised in `memory` than recomputed each time.
    `is_materialised` tells which other values lie in memory anyway."""
    size = np.dtype(node.dtype).itemsize
    limit = (memory.write + memory.read * times) * size / (times - 1)
    return again(node, memory, is_materialised, limit) > limit


def again(node: Node, memory: Memory, is_materialised: Callable[[Node], bool], limit: float) -> float:
    """What computing an element again costs, counted until it is more than `limit`."""
    total, pending, seen = 0.0, [node], {node}
    while pending and total <= limit:
        current = pending.pop()
        if _axes(current) < _axes(node):
            continue
        if current is not node and (lies_in_memory(current) or is_materialised(current)):
            total += memory.read * np.dtype(current.dtype).itemsize
            continue
        if any(isinstance(lowering_of(arg), SegmentNumber) for arg in current.args):
            continue  # once for all of a segment
        total += current.op.cost
        for arg in current.args:
            if arg.ndim and arg not in seen:
                seen.add(arg)
                pending.append(arg)
    return total


def _axes(node: Node) -> int:
    """How many axes a value has of which it is not known that they have one element."""
    return sum(not (isinstance(size, int) and size == 1) for size in node.type.shape)


def lies_in_memory(node: Node) -> bool:
    """Whether an element is read rather than computed, wherever it is wanted."""
    lowering = lowering_of(node)
    if isinstance(lowering, Fold):
        return not unrolls(lowering.sizes(node))
    return node.op in LEAVES or isinstance(lowering, Call | Writes | Recur | Segments)
