"""The loops of generated functions.

In: a function of a module of LLVM IR, as numba lowered it, before it is optimised. Out: its innermost loops whose body
is one block, and how they count. `for i in independent(n)` is

    header:  value = counter.next; counter.next = value + counter.step      (one or two blocks)
             index = value
             br (value < counter.stop), body, exit
    body:    ...
             br header

with `counter` and `index` on the stack. The first value stored to `counter` carries the metadata `INDEPENDENT`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir

from graphc.startup.record import record


@record(eq=False)
class Loop:
    """A loop with a body of one block. The last block of its header branches to the body or to the exit."""

    header: tuple[ir.Block, ...]
    body: ir.Block

    @property
    def exit(self) -> ir.Block:
        return targets(self.header[-1])[1]


INDEPENDENT = "graphc.independent"
"""Metadata of the counter of a loop whose iterations are independent."""
ABREAST = "graphc.abreast"
"""Metadata of the counter of a loop of which several iterations are carried out at a time, with the loops inside."""


@record(eq=False)
class Flow:
    """Facts about a function: the value stored last to each address, in the order of the text; the predecessors of each
    block; the counters of loops whose iterations are independent, and of those that are abreast."""

    stored: Mapping[ir.Value, ir.Value]
    predecessors: Mapping[ir.Block, Sequence[ir.Block]]
    independent: Collection[ir.Value]
    abreast: Collection[ir.Value]


def flow_of(function: ir.Function) -> Flow:
    """The facts about a function. Takes the metadata off its counters, which LLVM does not know."""
    counters = _all(function.entry_basic_block, ir.AllocaInstr) if function.blocks else []
    independent, abreast = (
        frozenset(each for each in counters if each.metadata.pop(mark, None) is not None)
        for mark in (INDEPENDENT, ABREAST)
    )
    stored: dict[ir.Value, ir.Value] = {}
    predecessors: dict[ir.Block, list[ir.Block]] = {}
    for block in function.blocks:
        stored.update((each.operands[1], each.operands[0]) for each in _all(block, ir.StoreInstr))
        for target in targets(block):
            predecessors.setdefault(target, []).append(block)
    return Flow(stored, predecessors, independent, abreast)


def targets(block: ir.Block) -> list[ir.Block]:
    """The successors of a block."""
    return [operand for operand in block.terminator.operands if isinstance(operand, ir.Block)]


# --- loops ----------------------------------------------------------------------------------------------------------


def loops_of(function: ir.Function) -> Iterator[Loop]:
    """The loops with a body of one block."""
    for condition in function.blocks:
        successors = targets(condition)
        if len(successors) != 2:
            continue
        body = successors[0]
        header = path_between(body, condition)
        if header:
            yield Loop(header, body)


def path_between(body: ir.Block, condition: ir.Block) -> tuple[ir.Block, ...]:
    """The blocks from the end of a body to the condition, where there is one way; empty where there are others."""
    path: list[ir.Block] = []
    here = body
    while here is not condition:
        successors = targets(here)
        if len(successors) != 1 or successors[0] in (body, *path):
            return ()
        (here,) = successors
        path.append(here)
    return tuple(path)


@record(eq=False)
class Innermost:
    """A loop that contains no other loop, whatever its body is: its blocks, and whether another loop contains it."""

    blocks: set[ir.Block]
    is_nested: bool


def innermost(function: ir.Function, flow: Flow) -> dict[ir.Block, Innermost]:
    """The innermost loops, by their first blocks."""
    blocks_of = blocks_of_loops(function, flow)
    depths = Counter(block for blocks in blocks_of.values() for block in blocks)
    return {
        first: Innermost(blocks, depths[first] > 1)
        for first, blocks in blocks_of.items()
        if blocks_of.keys() & blocks == {first}
    }


def blocks_of_loops(function: ir.Function, flow: Flow) -> dict[ir.Block, set[ir.Block]]:
    """The blocks of each loop, those of loops inside too, by its first block."""
    ends = _back_edges(function) if function.blocks else {}
    return {first: _blocks_between(first, last, flow) for first, last in ends.items()}


def back_branches(function: ir.Function, blocks: Collection[ir.Block]) -> list[ir.Instruction]:
    """The branches that end the loops among some blocks."""
    ends = _back_edges(function) if blocks else {}
    return [block.terminator for sources in ends.values() for block in sources if block in blocks]


def has_loops(function: ir.Function) -> bool:
    """True where a block of a function branches back."""
    return bool(function.blocks) and bool(_back_edges(function))


def _back_edges(function: ir.Function) -> dict[ir.Block, list[ir.Block]]:
    """The blocks that branch back, by the first block of their loop: a search in depth."""
    latches: dict[ir.Block, list[ir.Block]] = {}
    open, seen = {function.entry_basic_block}, {function.entry_basic_block}
    path = [(function.entry_basic_block, iter(targets(function.entry_basic_block)))]
    while path:
        block, successors = path[-1]
        target = next(successors, None)
        if target is None:
            open.discard(block)
            path.pop()
        elif target in open:
            latches.setdefault(target, []).append(block)
        elif target not in seen:
            open.add(target)
            seen.add(target)
            path.append((target, iter(targets(target))))
    return latches


def _blocks_between(first: ir.Block, last: Sequence[ir.Block], flow: Flow) -> set[ir.Block]:
    """The blocks of a loop, from its first block and those that branch back to it."""
    reached, pending = {first}, [*last]
    while pending:
        block = pending.pop()
        if block not in reached:
            reached.add(block)
            pending += flow.predecessors.get(block, ())
    return reached


# --- counters -------------------------------------------------------------------------------------------------------


@record(eq=False)
class CountedLoop:
    """A loop `for index in independent(...)`, as numba and `primitives.Advanced` write it.

    before: the block before the loop, which branches nowhere else; counter: the local name of the pointer to the next
    index, the stop and the step; index: the local name in which the body finds its index; trip_count: None where it is
    not known.
    """

    header: tuple[ir.Block, ...]
    body: ir.Block
    exit: ir.Block
    before: ir.Block
    counter: ir.AllocaInstr
    index: ir.AllocaInstr
    trip_count: int | None


def read_counted(loop: Loop, flow: Flow) -> CountedLoop | None:
    """Read how a loop of independent iterations counts; None for other loops, steps other than 1, and other code."""
    header, body = loop.header, loop.body
    before = [block for block in flow.predecessors[header[0]] if block is not body]
    bounds = [each for block in header for each in _all(block, ir.ICMPInstr) if each.op == "slt"]
    stores = [each for block in header for each in _all(block, ir.StoreInstr)]
    indices = [each.operands[1] for each in stores if isinstance(each.operands[0], ir.instructions.ExtractValue)]
    if len(before) != 1 or len(targets(before[0])) != 1 or len(bounds) != 1 or len(indices) != 1:
        return None
    if targets(header[-1])[:1] != [body]:
        return None
    pointer = _counter(bounds[0])
    slot = pointer.operands[0] if isinstance(pointer, ir.LoadInstr) else None
    if not isinstance(slot, ir.AllocaInstr) or not isinstance(indices[0], ir.AllocaInstr):
        return None
    if flow.stored.get(slot) not in flow.independent:
        return None
    start, stop, step = _range_of(slot, flow)
    if step != 1:
        return None
    trip_count = None if start is None or stop is None else max(stop - start, 0)
    return CountedLoop(header, body, loop.exit, before[0], slot, indices[0], trip_count)


def _counter(bound: ir.Instruction) -> Any:
    """The pointer to the counter whose first two parts are compared; None where they are something else."""
    pointers = []
    for part, value in enumerate(bound.operands):
        place = value.operands[0] if isinstance(value, ir.LoadInstr) else None
        if not isinstance(place, ir.GEPInstr) or [index.constant for index in place.indices] != [0, part]:
            return None
        pointers.append(place.pointer)
    return pointers[0] if pointers[0] is pointers[1] else None


def _range_of(slot: ir.AllocaInstr, flow: Flow) -> list[int | None]:
    """The start, stop and step of a counter, None where they are not constant."""
    parts: dict[int, int | None] = {}
    value: Any = flow.stored.get(flow.stored.get(slot))
    while isinstance(value, ir.instructions.InsertValue):
        part = value.value
        parts.setdefault(value.indices[0], int(part.constant) if isinstance(part, ir.Constant) else None)
        value = value.aggregate
    return [parts.get(part) for part in range(3)]


def _all(block: ir.Block, class_: Any) -> list[Any]:
    return [each for each in block.instructions if isinstance(each, class_)]
