"""What a loop does in each iteration.

In: a counted loop of a module of LLVM IR, before it is optimised, whose iterations are independent: its source says so.
Out: what it reads, computes, writes and adds up in an iteration, where that has a form for vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from llvmlite import ir

from graphc.codegen.vecmath.outofline import are_counted, held
from graphc.codegen.vectorize.loopinfo import Counted, targets
from graphc.startup.record import record

LANEWISE = frozenset(
    "fadd fsub fmul fdiv fneg add sub mul and or xor shl lshr ashr icmp fcmp select"
    " bitcast trunc zext sext fptosi fptoui sitofp uitofp fpext fptrunc".split()
)
"""Instructions that take vectors as they take numbers, and as fast."""
ANY_ORDER = frozenset("add mul and or xor".split())
"""What may be added up in any order; of floats what says so."""
EXTREMES = frozenset("maximum minimum maxnum minnum smax smin umax umin".split())
"""LLVM's functions of which the same holds."""
ARITHMETIC = frozenset(("fadd", "fsub", "fmul", "fdiv"))
"""What has an order where it may not be reassociated."""

Value: TypeAlias = Any
"""What an iteration computes with: an instruction of the body, or what does not change from iteration to iteration: a
constant, an argument, a local name, an instruction before the loop. `INDEX` is the loop's own."""
INDEX = "the loop's own index"


@record(eq=False)
class Sum:
    """What is added up under a local name: the instruction that does it, and what it adds."""

    step: ir.Instruction
    term: Value


@record(eq=False)
class Iteration:
    """The body of a loop, read."""

    operands: Mapping[ir.Instruction, Sequence[Value]]
    """Of each instruction, with local names replaced by what was stored under them."""
    accesses: Mapping[ir.Instruction, int | None]
    """Loads and stores of memory: by how many elements their places go up with each iteration, 1 or 0; None where they
    are anywhere."""
    varying: frozenset[ir.Instruction]
    """The instructions of which each iteration has a value of its own."""
    sums: Mapping[ir.AllocaInstr, Sum]
    counted: frozenset[ir.Instruction]
    """Functions of counters that go up by one with each iteration, all else that they are given the same."""

    def is_steady(self, value: Value) -> bool:
        """Whether a value is the same in each iteration."""
        return value is not INDEX and value not in self.varying

    def needed(self) -> list[ir.Instruction]:
        """The instructions that are to be carried out, in order: all but those that only give the place of an access
        that goes up."""
        wanted: list[Value] = [each.term for each in self.sums.values()]
        wanted += [each for each in self.accesses if isinstance(each, ir.StoreInstr)]
        found = set()
        while wanted:
            value = wanted.pop()
            if value in self.operands and value not in found:
                found.add(value)
                goes_up = self.accesses.get(value) == 1
                wanted += self.operands[value][: -1 if goes_up else None]
        return [each for each in self.operands if each in found]


def only_moves(iteration: Iteration) -> bool:
    """Whether all that a loop does is to copy an array, or to clear some: what is stored is read from memory at the
    iteration's own place, or is zero."""
    stores = [each for each in iteration.accesses if isinstance(each, ir.StoreInstr)]
    values = [iteration.operands[each][0] for each in stores]
    if iteration.sums or not stores:
        return False
    if all(isinstance(value, ir.Constant) and is_clear(value) for value in values):
        return True
    return len(values) == 1 and iteration.accesses.get(values[0]) == 1


def is_clear(value: ir.Constant) -> bool:
    """Whether all bits of a number are 0."""
    number = value.constant
    return bool(number == 0) and math.copysign(1.0, number) > 0


# --- names that are carried -----------------------------------------------------------------------------------------


def carried_by(block: ir.Block) -> list[ir.AllocaInstr]:
    """The local names that a block reads before it gives them another value, as a sum does."""
    read: dict[ir.Value, None] = {}  # in order: the same source gives the same text
    written: set[ir.Value] = set()
    for each in block.instructions:
        if isinstance(each, ir.LoadInstr) and each.operands[0] not in written:
            read[each.operands[0]] = None
        elif isinstance(each, ir.StoreInstr):
            written.add(each.operands[1])
    return [name for name in read if name in written and isinstance(name, ir.AllocaInstr)]


def has_order(block: ir.Block, carried: Iterable[ir.AllocaInstr]) -> bool:
    """Whether a block calculates with what the iteration before left, in an order that must stay: a maximum has
    none."""
    loads = {each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] in {*carried}}
    return any(
        each.opname in ARITHMETIC and "reassoc" not in each.flags and not loads.isdisjoint(each.operands)
        for each in block.instructions
    )


def step_of(block: ir.Block, slot: ir.AllocaInstr) -> ir.Instruction | None:
    """The instruction that adds something to a local name in any order, where that is all that a block does with it: a
    running sum is also written to memory."""
    loads = [each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] is slot]
    stores = [each for each in block.instructions if isinstance(each, ir.StoreInstr) and each.operands[1] is slot]
    if not len(loads) == len(stores) == 1:
        return None
    step = stores[0].operands[0]
    if not isinstance(step, ir.Instruction) or not has_no_order(step) or list(step.operands).count(loads[0]) != 1:
        return None
    users = [[each for each in block.instructions if value in each.operands] for value in (loads[0], step)]
    return step if users == [[step], stores] else None


def has_no_order(step: ir.Instruction) -> bool:
    """Whether several of an instruction may be carried out in any order."""
    if isinstance(step, ir.CallInstr):
        return extreme_of(step) is not None
    return step.opname in ANY_ORDER or (step.opname in ("fadd", "fmul") and "reassoc" in step.flags)


def extreme_of(call: ir.CallInstr) -> str | None:
    """Which of EXTREMES is called."""
    parts = call.callee.name.split(".")
    return parts[1] if parts[0] == "llvm" and len(parts) == 3 and parts[1] in EXTREMES else None


# --- an iteration
# ---------------------------------------------------------------------------------------------------------


def read_iteration(counted: Counted, steps: Mapping[ir.AllocaInstr, ir.Instruction]) -> Iteration | None:
    """What a loop does in an iteration, which adds up `steps`; None where that has no form for vectors."""
    reader = Reader(counted, steps)
    if not all(map(reader.take, counted.loop.body.instructions[:-1])):
        return None
    if are_read_after(counted.loop.ending, reader.current.keys() - steps.keys()):
        return None
    sums = {slot: Sum(step, added_by(reader.operands[step], slot)) for slot, step in steps.items()}
    varying = frozenset(reader.varying - {INDEX})
    counted_calls = frozenset(each for each in reader.operands if reader.counts(each))
    return Iteration(reader.operands, reader.accesses, varying, sums, counted_calls)


class Reader:
    """An iteration, as far as it has been read."""

    def __init__(self, counted: Counted, steps: Mapping[ir.AllocaInstr, ir.Instruction]) -> None:
        self.steps = steps
        body = counted.loop.body.instructions
        self.changes = {each.operands[1] for each in body if isinstance(each, ir.StoreInstr)}
        self.current: dict[ir.AllocaInstr, Value] = {counted.index: INDEX}
        """What stands under the local names that change."""
        self.meaning: dict[ir.Value, Value] = {}
        """What was read under them."""
        self.operands: dict[ir.Instruction, Sequence[Value]] = {}
        self.accesses: dict[ir.Instruction, int | None] = {}
        self.varying: set[Value] = {INDEX}
        self.gathered: set[Value] = set()
        """What is read from memory, or computed from that."""

    def take(self, each: ir.Instruction) -> bool:
        """Read the next instruction; whether it may stand there."""
        operands = [self.meaning.get(operand, operand) for operand in each.operands]
        if isinstance(each, ir.LoadInstr | ir.StoreInstr):
            take = self.take_name if isinstance(operands[-1], ir.AllocaInstr) else self.take_access
            return take(each, *operands)
        self.add(each, operands)
        return isinstance(each, ir.GEPInstr) or has_vectors(each)

    def add(self, each: ir.Instruction, operands: Sequence[Value]) -> None:
        self.operands[each] = operands
        for found in (self.varying, self.gathered):
            if not found.isdisjoint(operands):
                found.add(each)

    def take_name(self, each: ir.Instruction, *operands: Value) -> bool:
        """Read or give what stands under a local name."""
        *value, name = operands
        if value:
            self.current[name] = value[0]
        elif name in self.current:
            self.meaning[each] = self.current[name]
        elif name not in self.changes:
            self.meaning[each] = name
        return bool(value) or each in self.meaning or name in self.steps

    def take_access(self, each: ir.Instruction, *operands: Value) -> bool:
        """Read or write memory."""
        pointer = operands[-1]
        if not isinstance(pointer, ir.GEPInstr) or len(self.operands[pointer]) != 2:
            return False
        self.add(each, operands)
        stride = self.accesses[each] = self.stride(self.operands[pointer][1])
        if isinstance(each, ir.StoreInstr):
            self.varying.add(each)
            return stride == 1
        self.gathered.add(each)
        # LLVM knows more of places that go up by other steps.
        return stride in (0, 1) or (stride is None and operands[0] in self.gathered)

    def counts(self, each: ir.Instruction) -> bool:
        """Whether a function is given counters in order."""
        symbol = held(each)
        if symbol is None or not are_counted(symbol):
            return False
        counter, *rest = self.operands[each][1:]
        return self.stride(counter) == 1 and self.varying.isdisjoint(rest)

    def stride(self, value: Value) -> int | None:
        """By how much a number goes up with each iteration; None where that is not known."""
        if value not in self.operands:
            return 1 if value is INDEX else 0
        parts = [self.stride(operand) for operand in self.operands[value]]
        known = [part for part in parts if part is not None]
        if value in self.accesses or len(known) < len(parts):
            return None
        return sum(known) if value.opname == "add" else None if any(known) else 0


def added_by(operands: Sequence[Value], slot: ir.AllocaInstr) -> Value:
    """What a step adds to what stands under a name."""
    numbers = [value for value in operands if not isinstance(value, ir.Function)]
    (term,) = (value for value in numbers if not (isinstance(value, ir.LoadInstr) and value.operands[0] is slot))
    return term


def has_vectors(each: ir.Instruction) -> bool:
    """Whether an instruction has a form for vectors: a call is of an elementary function, or one of LLVM's."""
    if isinstance(each, ir.CallInstr):
        return held(each) is not None or (each.callee.name.startswith("llvm.") and each.callee.name.count(".") == 2)
    return each.opname in LANEWISE


def scatters(block: ir.Block) -> bool:
    """Whether a block stores to places that it has read from memory."""
    read: set[Value] = set()
    for each in block.instructions:
        if isinstance(each, ir.LoadInstr) and not isinstance(each.operands[0], ir.AllocaInstr):
            read.add(each)
        elif isinstance(each, ir.StoreInstr):
            if each.operands[1] in read:
                return True
            if each.operands[0] in read:
                read.add(each.operands[1])
        elif not read.isdisjoint(each.operands):
            read.add(each)
    return False


def are_read_after(ending: ir.Block, names: Iterable[ir.Value]) -> bool:
    """Whether something reads what was left under one of these local names, once a loop has come to its end."""
    left = [(ending, frozenset(names))]
    seen: dict[ir.Block, frozenset[ir.Value]] = {}
    while left:
        block, wanted = left.pop()
        wanted -= seen.get(block, frozenset())
        if not wanted:
            continue
        seen[block] = seen.get(block, frozenset()) | wanted
        written: set[ir.Value] = set()
        for each in block.instructions:
            if isinstance(each, ir.StoreInstr):
                written.add(each.operands[1])
            elif isinstance(each, ir.LoadInstr) and each.operands[0] in wanted and each.operands[0] not in written:
                return True
        left += [(target, wanted - written) for target in targets(block)]
    return False
