"""Read the body of a loop: can it be written over vectors? Columns of short rows, as vectors read them.

In: a counted loop of a module of LLVM IR whose iterations are independent. Out: the instructions of an iteration, with
local names replaced by their values, the strides of its memory accesses, and its reductions; None where an instruction
has no form for vectors. Of

    for i in independent(n):
        v = x[i] * scale             accesses: x[i] of stride 1, table[...] a gather (None), y[i] of stride 1
        y[i] = v + table[k[i]]       varying:  all but what reads `scale`
        total = accumulate(total, v) reductions: total, step `fadd reassoc`, term v
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from llvmlite import ir

from graphc.codegen.vecmath.floats import lanes_at
from graphc.codegen.vecmath.table import called_symbol, takes_counters
from graphc.codegen.vectorize.loopinfo import CountedLoop, targets
from graphc.startup.record import record

# --- columns of short rows --------------------------------------------------------------------------------------------
#     for i in independent(n):                        lines = x[3*i ... 3*i + 24], three vectors
#         y[i] = x[3 * i] + x[3 * i + 2]     becomes  column 0 = lanes 0, 3, 6 ... 21 of them
#                                                     column 2 = lanes 2, 5, 8 ... 23
#
# In: the places of the loads and stores of a body, as sums of terms and a number. Out: those whose places differ by
# numbers alone, as `Columns`; the vectors of such a column; the vectors of memory for all columns of a row. A gather
# would read each element by itself.
#
# Where the stride is even, one step parts the elements in even and odd places, which have half the stride: columns of
# 8 numbers in rows of 8 take 24 shuffles of two vectors in all. Of an odd stride each column is put together by
# itself.

LARGEST = 16
"""The largest stride."""
SHUFFLES = 1.25
"""Shuffles for each element at most: more take longer than to read the elements one by one."""


@record(eq=False)
class Columns:
    """Loads, or stores, of every `stride`-th element. places: by instruction, the number of elements from the first of
    them; last: the last in the order of the body."""

    stride: int
    places: Mapping[ir.Instruction, int]
    last: ir.Instruction

    @property
    def width(self) -> int:
        """The number of elements from the first column to the last."""
        return max(self.places.values()) + 1

    def pays(self, lanes: int) -> bool:
        """Tell whether vectors are faster than to read one element after the other."""
        taken = {*self.places.values()}
        if isinstance(self.last, ir.StoreInstr) and not len(taken) == len(self.places) == self.stride:
            return False
        return shuffles_of(self.stride, taken) <= SHUFFLES * lanes * len(taken)


def shuffles_of(stride: int, taken: set[int]) -> int:
    """The number of shuffles for some columns."""
    if stride % 2:
        return (stride - 1) * len(taken)
    halves = [{place // 2 for place in taken if place % 2 == parity} for parity in (0, 1)]
    return sum(stride // 2 + (shuffles_of(stride // 2, half) if stride > 2 else 0) for half in halves if half)


class Lines:
    """Consecutive vectors of memory, of which columns are taken."""

    def __init__(self, builder: ir.IRBuilder, vectors: Sequence[ir.Value], stride: int) -> None:
        self.builder, self.stride, self.vectors = builder, stride, vectors
        self.halves: dict[int, Lines] = {}
        self.made: dict[int, ir.Value] = {}

    def column(self, place: int) -> ir.Value:
        """The elements `place`, `place + stride` ... of these vectors, as one vector."""
        if self.stride == 1:
            return self.vectors[0]
        if self.stride % 2:
            if place not in self.made:
                self.made[place] = self.gathered(place)
            return self.made[place]
        parity = place % 2
        if parity not in self.halves:
            self.halves[parity] = Lines(self.builder, self.every_second(parity), self.stride // 2)
        return self.halves[parity].column(place // 2)

    def every_second(self, parity: int) -> list[ir.Value]:
        """The elements in even places, or in odd ones."""
        lanes = self.vectors[0].type.count
        chosen = lanes_at(range(parity, 2 * lanes, 2))
        pairs = zip(self.vectors[::2], self.vectors[1::2], strict=True)
        return [self.builder.shuffle_vector(one, two, chosen) for one, two in pairs]

    def gathered(self, place: int) -> ir.Value:
        """A column, put together from one vector after the other."""
        lanes = self.vectors[0].type.count
        sources = [place + self.stride * lane for lane in range(lanes)]
        joined = self.vectors[0]
        for number, vector in enumerate(self.vectors[1:], 1):
            first = number * lanes
            if number == 1:
                chosen = [min(source, 2 * lanes - 1) for source in sources]
            else:
                chosen = [
                    lanes + source - first if first <= source < first + lanes else lane
                    for lane, source in enumerate(sources)
                ]
            joined = self.builder.shuffle_vector(joined, vector, lanes_at(chosen))
        return joined


def woven(builder: ir.IRBuilder, columns: Sequence[ir.Value]) -> list[ir.Value]:
    """Return consecutive vectors of memory in which each column has every `len(columns)`-th element."""
    stride, lanes = len(columns), columns[0].type.count
    if stride == 1:
        return [*columns]
    if stride % 2:
        return [_line(builder, columns, number * lanes) for number in range(stride)]
    halves = woven(builder, columns[::2]), woven(builder, columns[1::2])
    return [
        builder.shuffle_vector(one, two, lanes_at(lane for place in places for lane in (place, lanes + place)))
        for one, two in zip(*halves, strict=True)
        for places in (range(lanes // 2), range(lanes // 2, lanes))
    ]


def _line(builder: ir.IRBuilder, columns: Sequence[ir.Value], first: int) -> ir.Value:
    """The vector of memory from the element `first` on, put together from one column after the other."""
    stride, lanes = len(columns), columns[0].type.count
    sources = [divmod(first + lane, stride) for lane in range(lanes)]
    line = columns[0]
    for number, column in enumerate(columns[1:], 1):
        kept = [row if number == 1 else lane for lane, (row, _) in enumerate(sources)]
        chosen = [lanes + row if place == number else kept[lane] for lane, (row, place) in enumerate(sources)]
        line = builder.shuffle_vector(line, column, lanes_at(chosen))
    return line


# --- the body of a loop -----------------------------------------------------------------------------------------------

LANEWISE = frozenset(
    "fadd fsub fmul fdiv fneg add sub mul and or xor shl lshr ashr icmp fcmp select"
    " bitcast trunc zext sext fptosi fptoui sitofp uitofp fpext fptrunc".split()
)
"""Instructions that take vectors as they take numbers, and as fast."""
REORDERED = frozenset("add mul and or xor".split())
"""Steps of reductions that may be done in any order; of floats those with the flag `reassoc`."""
MIN_MAX = frozenset("maximum minimum maxnum minnum smax smin umax umin".split())
"""Intrinsics of LLVM for which that holds too."""
ARITHMETIC = frozenset(("fadd", "fsub", "fmul", "fdiv"))
"""Instructions of floats whose order matters without `reassoc`."""

WIDE = (ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(32))
"""Elements of which any two vectors are shuffled in an instruction or two."""

Value: TypeAlias = Any
"""An operand in an iteration: an instruction of the body; a loop invariant: a constant, an argument, a local name or an
instruction before the loop; or `INDEX`."""
INDEX = "the induction variable"


@record(eq=False)
class Reduction:
    """The instruction that adds something to a local name in every iteration, and what it adds."""

    step: ir.Instruction
    term: Value


@record(eq=False)
class LoopBody:
    """The body of a loop.

    operands: those of each instruction, with local names replaced by the values stored under them; accesses: the loads
    and stores of memory, with the number of elements by which the address grows with each iteration, 0 or more, or None
    where it may be any; columns: those of each access by which it grows by more than 1; varying: the instructions whose
    values differ from iteration to iteration; reductions: by the local names of their accumulators; counter_calls:
    calls of functions of a counter that goes up by one with each iteration, with other arguments that are invariant.
    """

    operands: Mapping[ir.Instruction, Sequence[Value]]
    accesses: Mapping[ir.Instruction, int | None]
    columns: Mapping[ir.Instruction, Columns]
    varying: frozenset[ir.Instruction]
    reductions: Mapping[ir.AllocaInstr, Reduction]
    counter_calls: frozenset[ir.Instruction]

    def is_invariant(self, value: Value) -> bool:
        """True if a value is the same in each iteration."""
        return value is not INDEX and value not in self.varying

    def live_instructions(self) -> list[ir.Instruction]:
        """The instructions that stores and reductions need, in order, without the addresses of accesses of known
        stride, which follow from the index."""
        wanted: list[Value] = [each.term for each in self.reductions.values()]
        wanted += [each for each in self.accesses if isinstance(each, ir.StoreInstr)]
        live = set()
        while wanted:
            value = wanted.pop()
            if value in self.operands and value not in live:
                live.add(value)
                wanted += self.operands[value][: -1 if self.accesses.get(value) else None]
        return [each for each in self.operands if each in live]


def is_copy(body: LoopBody) -> bool:
    """True if a loop does nothing but copy one array, element by element, or clear some: all it stores are elements
    read at the index, or zeros."""
    stores = [each for each in body.accesses if isinstance(each, ir.StoreInstr)]
    values = [body.operands[each][0] for each in stores]
    if body.reductions or not stores or not body.columns.keys().isdisjoint(stores):
        return False
    if all(isinstance(value, ir.Constant) and has_zero_bits(value) for value in values):
        return True
    return len(values) == 1 and body.accesses.get(values[0]) == 1


def has_zero_bits(value: ir.Constant) -> bool:
    """True if all bits of a number are 0, as those of -0.0 are not."""
    number = value.constant
    return bool(number == 0) and math.copysign(1.0, number) > 0


# --- names carried from iteration to iteration ----------------------------------------------------------------------


def carried_by(block: ir.Block) -> list[ir.AllocaInstr]:
    """The local names that a block reads before it stores to them: they carry a value to the next iteration."""
    read: dict[ir.Value, None] = {}  # in order: the same source gives the same text
    written: set[ir.Value] = set()
    for each in block.instructions:
        if isinstance(each, ir.LoadInstr) and each.operands[0] not in written:
            read[each.operands[0]] = None
        elif isinstance(each, ir.StoreInstr):
            written.add(each.operands[1])
    return [name for name in read if name in written and isinstance(name, ir.AllocaInstr)]


def is_sequential(block: ir.Block, carried: Iterable[ir.AllocaInstr]) -> bool:
    """True if a block computes with the floats of the iteration before in an order that must stay."""
    loads = {each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] in {*carried}}
    return any(
        each.opname in ARITHMETIC and "reassoc" not in each.flags and not loads.isdisjoint(each.operands)
        for each in block.instructions
    )


def step_of(block: ir.Block, slot: ir.AllocaInstr) -> ir.Instruction | None:
    """The step of the reduction into a local name; None where the block does anything else with the name, such as to
    write a running sum to memory."""
    loads = [each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] is slot]
    stores = [each for each in block.instructions if isinstance(each, ir.StoreInstr) and each.operands[1] is slot]
    if not len(loads) == len(stores) == 1:
        return None
    step = stores[0].operands[0]
    if not isinstance(step, ir.Instruction) or not is_reordered(step) or list(step.operands).count(loads[0]) != 1:
        return None
    users = [[each for each in block.instructions if value in each.operands] for value in (loads[0], step)]
    return step if users == [[step], stores] else None


def is_reordered(step: ir.Instruction) -> bool:
    """True if the steps of a reduction may be done in any order."""
    if isinstance(step, ir.CallInstr):
        return min_max_of(step) is not None
    return step.opname in REORDERED or (step.opname in ("fadd", "fmul") and "reassoc" in step.flags)


def min_max_of(call: ir.CallInstr) -> str | None:
    """The function of MIN_MAX that is called, if any."""
    parts = call.callee.name.split(".")
    return parts[1] if parts[0] == "llvm" and len(parts) == 3 and parts[1] in MIN_MAX else None


# --- the body -------------------------------------------------------------------------------------------------------


def read_body(loop: CountedLoop, steps: Mapping[ir.AllocaInstr, ir.Instruction]) -> LoopBody | None:
    """The body of a loop with these steps of reductions; None where it has no form for vectors."""
    reader = Reader(loop, steps)
    if not all(map(reader.read, loop.body.instructions[:-1])):
        return None
    columns = reader.columns()
    if columns is None or are_read_after(loop.exit, reader.current.keys() - steps.keys()):
        return None
    reductions = {slot: Reduction(step, term_of(reader.operands[step], slot)) for slot, step in steps.items()}
    varying = frozenset(reader.varying - {INDEX})
    counter_calls = frozenset(each for each in reader.operands if reader.counts(each))
    return LoopBody(reader.operands, reader.accesses, columns, varying, reductions, counter_calls)


class Reader:
    """The body of a loop as far as it has been read."""

    def __init__(self, loop: CountedLoop, steps: Mapping[ir.AllocaInstr, ir.Instruction]) -> None:
        self.steps = steps
        self.assigned = {each.operands[1] for each in loop.body.instructions if isinstance(each, ir.StoreInstr)}
        self.current: dict[ir.AllocaInstr, Value] = {loop.index: INDEX}
        """The values of local names at this point."""
        self.values: dict[ir.Value, Value] = {}
        """The values of loads of local names."""
        self.operands: dict[ir.Instruction, Sequence[Value]] = {}
        self.accesses: dict[ir.Instruction, int | None] = {}
        self.varying: set[Value] = {INDEX}
        self.from_memory: set[Value] = set()
        """Loads of memory, and what is computed from them."""

    def read(self, each: ir.Instruction) -> bool:
        """Read the next instruction; returns whether it has a form for vectors."""
        operands = [self.values.get(operand, operand) for operand in each.operands]
        if isinstance(each, ir.LoadInstr | ir.StoreInstr):
            read = self.read_name if isinstance(operands[-1], ir.AllocaInstr) else self.read_access
            return read(each, *operands)
        self.add(each, operands)
        return isinstance(each, ir.GEPInstr) or is_lanewise(each)

    def add(self, each: ir.Instruction, operands: Sequence[Value]) -> None:
        self.operands[each] = operands
        for dependent in (self.varying, self.from_memory):
            if not dependent.isdisjoint(operands):
                dependent.add(each)

    def read_name(self, each: ir.Instruction, *operands: Value) -> bool:
        """Read a load or a store of a local name."""
        *value, name = operands
        if value:
            self.current[name] = value[0]
        elif name in self.current:
            self.values[each] = self.current[name]
        elif name not in self.assigned:
            self.values[each] = name
        return bool(value) or each in self.values or name in self.steps

    def read_access(self, each: ir.Instruction, *operands: Value) -> bool:
        """Read a load or a store of memory."""
        pointer = operands[-1]
        if not isinstance(pointer, ir.GEPInstr) or len(self.operands[pointer]) != 2:
            return False
        self.add(each, operands)
        stride = self.accesses[each] = self.stride(self.operands[pointer][1])
        # Other strides are LLVM's.
        is_known = stride is not None and (0 <= stride < 2 or (2 <= stride <= LARGEST and pointer.type.pointee in WIDE))
        if isinstance(each, ir.StoreInstr):
            self.varying.add(each)
            return is_known and bool(stride)
        self.from_memory.add(each)
        return is_known or (stride is None and operands[0] in self.from_memory)

    def counts(self, each: ir.Instruction) -> bool:
        """True if an instruction calls a function of counters, with counters in order."""
        symbol = called_symbol(each)
        if symbol is None or not takes_counters(symbol):
            return False
        counter, *rest = self.operands[each][1:]
        return self.stride(counter) == 1 and self.varying.isdisjoint(rest)

    def stride(self, value: Value) -> int | None:
        """The difference of a number from iteration to iteration; None where it is not known."""
        if value not in self.operands:
            return 1 if value is INDEX else 0
        parts = [self.stride(operand) for operand in self.operands[value]]
        known = [part for part in parts if part is not None]
        if value in self.accesses or len(known) < len(parts):
            return None
        if value.opname == "mul" and any(known):
            factors = [each.constant for each in value.operands if isinstance(each, ir.Constant)]
            return sum(known) * factors[0] if factors else None
        return sum(known) if value.opname == "add" else None if any(known) else 0

    def columns(self) -> dict[ir.Instruction, Columns] | None:
        """The columns of accesses by strides; None where one is read after it may have been written."""
        places: dict[Any, dict[ir.Instruction, int]] = {}
        written: dict[Value, Any] = {}
        """By what is written: the columns that are, None where stores are in order."""
        for each, stride in self.accesses.items():
            base, place = self.operands[self.operands[each][-1]]
            key = None
            if stride is not None and stride > 1:
                number, terms = self.sum_of(place)
                key = isinstance(each, ir.StoreInstr), base, stride, frozenset(terms.items())
                places.setdefault(key, {})[each] = number
            if written.get(base, key) != key:
                return None
            if isinstance(each, ir.StoreInstr):
                written[base] = key
        columns = dict[ir.Instruction, Columns]()
        for (_, _, stride, _), members in places.items():
            columns |= columns_of(stride, members)
        return columns

    def sum_of(self, value: Value) -> tuple[int, dict[Value, int]]:
        """A whole number as a sum: a number, and how often each other value is in it."""
        if isinstance(value, ir.Constant):
            return int(value.constant), {}
        operation = value.opname if value in self.operands else ""
        parts = [self.sum_of(operand) for operand in self.operands[value]] if operation in ("add", "mul") else []
        if operation == "add":
            terms = dict(parts[0][1])
            for term, times in parts[1][1].items():
                terms[term] = terms.get(term, 0) + times
            return parts[0][0] + parts[1][0], terms
        for one, other in (parts, parts[::-1]) if parts else ():
            if not one[1]:
                return one[0] * other[0], {term: one[0] * times for term, times in other[1].items()}
        return 0, {value: 1}


def columns_of(stride: int, members: dict[ir.Instruction, int]) -> dict[ir.Instruction, Columns]:
    """The columns of accesses whose places differ by numbers, in the order of the body: those of each row together."""
    columns = dict[ir.Instruction, Columns]()
    ordered = sorted(members, key=lambda each: members[each])
    while ordered:
        first = ordered[0]
        places = {each: members[each] - members[first] for each in ordered if members[each] - members[first] < stride}
        last = next(each for each in reversed(members) if each in places)
        columns |= dict.fromkeys(places, Columns(stride, places, last))
        ordered = ordered[len(places) :]
    return columns


def term_of(operands: Sequence[Value], slot: ir.AllocaInstr) -> Value:
    """The operand of a step that is not the accumulator."""
    numbers = [value for value in operands if not isinstance(value, ir.Function)]
    (term,) = (value for value in numbers if not (isinstance(value, ir.LoadInstr) and value.operands[0] is slot))
    return term


def is_lanewise(each: ir.Instruction) -> bool:
    """True if an instruction has a form for vectors; a call has where it is of an elementary function or an intrinsic
    of one type."""
    if isinstance(each, ir.CallInstr):
        return called_symbol(each) is not None or (
            each.callee.name.startswith("llvm.") and each.callee.name.count(".") == 2
        )
    return each.opname in LANEWISE


def scatters(block: ir.Block) -> bool:
    """True if a block stores at addresses computed from memory."""
    from_memory: set[Value] = set()
    for each in block.instructions:
        if isinstance(each, ir.LoadInstr) and not isinstance(each.operands[0], ir.AllocaInstr):
            from_memory.add(each)
        elif isinstance(each, ir.StoreInstr):
            if each.operands[1] in from_memory:
                return True
            if each.operands[0] in from_memory:
                from_memory.add(each.operands[1])
        elif not from_memory.isdisjoint(each.operands):
            from_memory.add(each)
    return False


def are_read_after(exit: ir.Block, names: Iterable[ir.Value]) -> bool:
    """True if code after a loop reads one of these local names before it stores to it."""
    pending = [(exit, frozenset(names))]
    seen: dict[ir.Block, frozenset[ir.Value]] = {}
    while pending:
        block, wanted = pending.pop()
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
        pending += [(target, wanted - written) for target in targets(block)]
    return False
