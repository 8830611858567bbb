"""The loops of generated functions, as their blocks show them.

In: a function of a module of LLVM IR, as `numba_lowering` writes it, before it is optimised. Out: its innermost loops
whose body is one block, and how they count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir

from graphc.startup.record import record


@record(eq=False)
class Loop:
    """Blocks that count, of which the last one branches to the body or leaves, and a body of one block."""

    counting: tuple[ir.Block, ...]
    body: ir.Block

    @property
    def ending(self) -> ir.Block:
        """Where the loop leaves to."""
        return targets(self.counting[-1])[1]


INDEPENDENT = "graphc.independent"
"""Metadata of the counter of a loop whose iterations are independent."""


@record(eq=False)
class Flow:
    """Of a function: what is stored last under each name, in the order of the text, what goes to each block, and the
    counters of loops whose iterations are independent."""

    stored: Mapping[ir.Value, ir.Value]
    before: Mapping[ir.Block, Sequence[ir.Block]]
    independent: Collection[ir.Value]


def flow_of(function: ir.Function) -> Flow:
    """What is asked of a function; its counters lose their metadata, which is nobody else's."""
    counters = _all(function.entry_basic_block, ir.AllocaInstr) if function.blocks else []
    independent = [each for each in counters if each.metadata.pop(INDEPENDENT, None) is not None]
    stored: dict[ir.Value, ir.Value] = {}
    before: dict[ir.Block, list[ir.Block]] = {}
    for block in function.blocks:
        stored.update((each.operands[1], each.operands[0]) for each in _all(block, ir.StoreInstr))
        for target in targets(block):
            before.setdefault(target, []).append(block)
    return Flow(stored, before, frozenset(independent))


def targets(block: ir.Block) -> list[ir.Block]:
    """Where a block may end to."""
    return [operand for operand in block.terminator.operands if isinstance(operand, ir.Block)]


# --- which there are ------------------------------------------------------------------------------------------------


def loops_of(function: ir.Function) -> Iterator[Loop]:
    """The loops whose body is one block."""
    for condition in function.blocks:
        ways = targets(condition)
        if len(ways) != 2:
            continue
        body = ways[0]
        counting = path_between(body, condition)
        if counting:
            yield Loop(counting, body)


def path_between(body: ir.Block, condition: ir.Block) -> tuple[ir.Block, ...]:
    """The blocks that lead from the end of a body to the condition, where there is one way; none where there are
    others. What comes before the condition counts the iterations."""
    path: list[ir.Block] = []
    here = body
    while here is not condition:
        ways = targets(here)
        if len(ways) != 1 or ways[0] in (body, *path):
            return ()
        (here,) = ways
        path.append(here)
    return tuple(path)


@record(eq=False)
class Innermost:
    """A loop that holds no other one, whatever its body is: its blocks, and whether another one holds it."""

    blocks: set[ir.Block]
    is_held: bool


def innermost(function: ir.Function, flow: Flow) -> dict[ir.Block, Innermost]:
    """Such loops, by their first blocks."""
    ends = _back_edges(function) if function.blocks else {}
    within = {first: _within(first, last, flow) for first, last in ends.items()}
    depths = Counter(block for blocks in within.values() for block in blocks)
    return {
        first: Innermost(blocks, depths[first] > 1)
        for first, blocks in within.items()
        if ends.keys() & blocks == {first}
    }


def _back_edges(function: ir.Function) -> dict[ir.Block, list[ir.Block]]:
    """By the first block of each loop those that go back to it."""
    found: dict[ir.Block, list[ir.Block]] = {}
    open, seen = {function.entry_basic_block}, {function.entry_basic_block}
    path = [(function.entry_basic_block, iter(targets(function.entry_basic_block)))]
    while path:
        block, ways = path[-1]
        target = next(ways, None)
        if target is None:
            open.discard(block)
            path.pop()
        elif target in open:
            found.setdefault(target, []).append(block)
        elif target not in seen:
            open.add(target)
            seen.add(target)
            path.append((target, iter(targets(target))))
    return found


def _within(first: ir.Block, last: Sequence[ir.Block], flow: Flow) -> set[ir.Block]:
    """The blocks of a loop, from its first and its last ones."""
    reached, left = {first}, [*last]
    while left:
        block = left.pop()
        if block not in reached:
            reached.add(block)
            left += flow.before.get(block, ())
    return reached


# --- how they count -------------------------------------------------------------------------------------------------


@record(eq=False)
class Counted:
    """A loop `for index in independent(...)` as `primitives.Advanced` and numba write it.

    `slot` holds the pointer to the counter, whose parts are the next index, the stop and the step; `index` is where the
    body finds its own. `before` is the block before the loop, which goes nowhere else. `iterations`: how many, if
    known.
    """

    loop: Loop
    before: ir.Block
    slot: ir.AllocaInstr
    index: ir.AllocaInstr
    iterations: int | None


def read_counted(loop: Loop, flow: Flow) -> Counted | None:
    """How a loop of independent iterations counts; None of others, and where it does not go up by one, or is not
    written as expected."""
    counting, body = loop.counting, loop.body
    before = [block for block in flow.before[counting[0]] if block is not body]
    bounds = [each for block in counting for each in _all(block, ir.ICMPInstr) if each.op == "slt"]
    kept = [each for block in counting for each in _all(block, ir.StoreInstr)]
    indices = [each.operands[1] for each in kept if isinstance(each.operands[0], ir.instructions.ExtractValue)]
    if len(before) != 1 or len(targets(before[0])) != 1 or len(bounds) != 1 or len(indices) != 1:
        return None
    if targets(counting[-1])[:1] != [body]:
        return None
    counter = _counter(bounds[0])
    slot = counter.operands[0] if isinstance(counter, ir.LoadInstr) else None
    if not isinstance(slot, ir.AllocaInstr) or not isinstance(indices[0], ir.AllocaInstr):
        return None
    if flow.stored.get(slot) not in flow.independent:
        return None
    start, stop, step = _range_of(slot, flow)
    if step != 1:
        return None
    iterations = None if start is None or stop is None else max(stop - start, 0)
    return Counted(loop, before[0], slot, indices[0], iterations)


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
    """The parts of the counter that a loop begins with, where they are known."""
    parts: dict[int, int | None] = {}
    value: Any = flow.stored.get(flow.stored.get(slot))
    while isinstance(value, ir.instructions.InsertValue):
        given = value.value
        parts.setdefault(value.indices[0], int(given.constant) if isinstance(given, ir.Constant) else None)
        value = value.aggregate
    return [parts.get(part) for part in range(3)]


def _all(block: ir.Block, kind: Any) -> list[Any]:
    return [each for each in block.instructions if isinstance(each, kind)]
