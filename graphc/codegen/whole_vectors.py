"""A loop cut in two: as many turns as fill whole vectors, and the rest under a mask.

In: a loop of a module of LLVM IR that is to be vectorised, before it is optimised. Out: the same turns in the same
order, as two loops. No element changes; what each loop has added up is added in the end.

Left to itself LLVM takes what does not fill its vectors one element at a time, up to 63 of them, and writes the whole
body once more for that, and again in shorter vectors. Here a count that is a multiple of what it takes at a time tells
it that nothing is left (`MASKED` makes it look), and the rest is a loop of its own, of single vectors whose last one is
masked where an element takes long. So a row of 15 exponentials takes two turns and not eight, a sum's last elements are
added in partial sums like all others, and there is less of long bodies to compile. Vectors of the first loop are not
masked: a masked store takes as long as twenty others.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from graphc.record import record

MASKED = "llvm.loop.vectorize.predicate.enable"
NEUTRAL = {"fadd": -0.0, "fmul": 1.0}
"""What an operation of a sum leaves as it is."""
VECTOR_BYTES = 64
INT64 = ir.IntType(64)
INT32 = ir.IntType(32)


@record(eq=False)
class Loop:
    """Blocks that count, of which the last one branches to the body or leaves, and a body of one block."""

    counting: tuple[ir.Block, ...]
    body: ir.Block


@record(eq=False)
class Flow:
    """Of a function: what is stored last under each name, in the order of the text, and what goes to each block."""

    stored: Mapping[ir.Value, ir.Value]
    before: Mapping[ir.Block, Sequence[ir.Block]]


def flow_of(function: ir.Function) -> Flow:
    stored: dict[ir.Value, ir.Value] = {}
    before: dict[ir.Block, list[ir.Block]] = {}
    for block in function.blocks:
        stored.update((each.operands[1], each.operands[0]) for each in _all(block, ir.StoreInstr))
        for target in targets(block):
            before.setdefault(target, []).append(block)
    return Flow(stored, before)


@record(eq=False)
class Counted:
    """A loop `for index in range(...)` as `primitives.Advanced` and numba write it.

    `slot` holds the pointer to the counter, whose parts are the next index, the stop and the step; `index` is where the
    body finds its own. `before` is the block before the loop, which goes nowhere else.
    """

    loop: Loop
    before: ir.Block
    slot: ir.AllocaInstr
    index: ir.AllocaInstr


def read_counted(loop: Loop, flow: Flow) -> Counted | None:
    """How a loop counts; None where it does not go up by one, or is not written as expected."""
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
    return Counted(loop, before[0], slot, indices[0]) if _goes_up_by_one(slot, flow) else None


def _counter(bound: ir.Instruction) -> Any:
    """The pointer to the counter whose first two parts are compared; None where they are something else."""
    pointers = []
    for part, value in enumerate(bound.operands):
        place = value.operands[0] if isinstance(value, ir.LoadInstr) else None
        if not isinstance(place, ir.GEPInstr) or [index.constant for index in place.indices] != [0, part]:
            return None
        pointers.append(place.pointer)
    return pointers[0] if pointers[0] is pointers[1] else None


def _goes_up_by_one(slot: ir.AllocaInstr, flow: Flow) -> bool:
    start = flow.stored.get(flow.stored.get(slot))
    if not isinstance(start, ir.instructions.InsertValue) or list(start.indices) != [2]:
        return False
    return isinstance(start.value, ir.Constant) and start.value.constant == 1


def _all(block: ir.Block, kind: Any) -> list[Any]:
    return [each for each in block.instructions if isinstance(each, kind)]


def targets(block: ir.Block) -> list[ir.Block]:
    """Where a block may end to."""
    return [operand for operand in block.terminator.operands if isinstance(operand, ir.Block)]


def lanes(body: ir.Block, carried: Iterable[ir.AllocaInstr]) -> int:
    """How many elements LLVM takes in a vector: as many as fit of the widest."""
    return VECTOR_BYTES // widest(body, carried)


def widest(body: ir.Block, carried: Iterable[ir.AllocaInstr]) -> int:
    """The bytes of the widest element that is read, written or carried."""
    types = [slot.allocated_type for slot in carried]
    types += [each.type for each in _all(body, ir.LoadInstr) if not isinstance(each.operands[0], ir.AllocaInstr)]
    types += [each.operands[0].type for each in _all(body, ir.StoreInstr) if not _is_local(each)]
    return max(map(_bytes, types), default=8)


def _is_local(store: ir.StoreInstr) -> bool:
    return isinstance(store.operands[1], ir.AllocaInstr)


def _bytes(kind: ir.Type) -> int:
    match kind:
        case ir.IntType():
            return max(int(kind.width) // 8, 1)
        case ir.FloatType():
            return 4
        case _:
            return 8


def cut(counted: Counted, turns: int, sums: Mapping[ir.AllocaInstr, ir.Instruction]) -> ir.Instruction:
    """Take as many turns as are a multiple of `turns`, a power of two, in a loop of their own before the loop, which
    does the rest; the branch that ends the new one, for its metadata.

    `sums`: what is added up, or multiplied, with the instruction that does it. The rest begins with nothing: where it
    went on from the others' sum, each of its additions would be rounded to that.
    """
    first, body, before = counted.loop.counting[0], counted.loop.body, counted.before
    enter, main, rest, joined = (
        body.function.append_basic_block(f"{body.name}.{name}") for name in ("whole", "vectors", "rest", "joined")
    )
    before.instructions.remove(before.terminator)
    before.terminator = None
    ir.IRBuilder(before).branch(enter)
    builder = ir.IRBuilder(enter)
    counter = builder.load(counted.slot)
    place, end = (
        builder.gep(counter, [ir.Constant(INT32, 0), ir.Constant(INT32, part)], inbounds=True) for part in (0, 1)
    )
    start = builder.load(place)
    length = builder.sub(builder.load(end), start)
    limit = builder.add(start, builder.and_(length, ir.Constant(INT64, -turns)))
    builder.cbranch(builder.icmp_signed(">=", length, ir.Constant(INT64, turns)), main, rest)
    builder.position_at_end(main)
    index = builder.load(place)
    builder.store(index, counted.index)
    copies: dict[Any, Any] = {}
    for each in body.instructions[:-1]:
        copies[each] = _copied(each, main, copies)
        main.instructions.append(copies[each])
    builder.position_at_end(main)
    following = builder.add(index, ir.Constant(INT64, 1))
    builder.store(following, place)
    again = builder.cbranch(builder.icmp_signed("!=", following, limit), main, rest)
    builder.position_at_end(rest)
    others = {slot: builder.load(slot) for slot in sums}
    for slot, step in sums.items():
        builder.store(ir.Constant(step.type, NEUTRAL[step.opname]), slot)
    builder.branch(first)
    ending = counted.loop.counting[-1].terminator
    after = ending.operands[2]
    ending.operands = [*ending.operands[:2], joined]
    builder.position_at_end(joined)
    for slot, step in sums.items():
        add = builder.fadd if step.opname == "fadd" else builder.fmul
        builder.store(add(others[slot], builder.load(slot)), slot)
    builder.branch(after)
    return again


def _copied(instruction: ir.Instruction, block: ir.Block, copies: dict[Any, Any]) -> ir.Instruction:
    """The same instruction in another block, upon the copies of what it takes."""

    def renewed(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(renewed, value))
        if isinstance(value, dict):  # its metadata are its own
            return dict(value)
        return copies.get(value, value) if isinstance(value, ir.Instruction) else value

    made = copy.copy(instruction)
    for name, value in vars(instruction).items():
        setattr(made, name, renewed(value))
    made.parent = block
    made.name = ""
    made._clear_string_cache()
    return made
