"""Loops around other loops, several iterations at a time.

In: a loop of a module of LLVM IR, as numba lowered it, whose source says `abreast` (transform/abreast.py): it has LANES
iterations or more, the loops inside have the same sizes in all of them, and one may be carried out twice. Out: the same
blocks, in which each instruction works on LANES iterations: vectors for what differs from one to the next, numbers for
what does not, as the counters of the loops inside.

    for i in abreast(n):                    i = 0, 8, 16 ... n - 8
        s = 0.0                             s = <0.0, ...>
        for r in range(k):                  r = 0, 1 ... k - 1
            s = s + x[i * k + r]                s = s + <x[i * k + r], x[(i + 1) * k + r], ...>
        out[i] = s                          out[i ... i + 8] = s

Where a number grows by the same from lane to lane, as an index does, that of the first lane and its growth are all
there is. Elements that are not neighbours are read one by one, each into its lane, which takes less time than a gather.
A row of up to KEPT elements that an iteration keeps for itself has a vector for each element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir

from graphc.codegen.llvm.target import usual_width
from graphc.codegen.llvm.values import append as append_made
from graphc.codegen.vecmath.floats import splat, vector_of
from graphc.codegen.vecmath.table import are_many, called_symbol, refer_inline, refer_out_of_line
from graphc.codegen.vectorize.legality import is_lanewise
from graphc.codegen.vectorize.loopinfo import Flow, blocks_of_loops, targets
from graphc.codegen.vectorize.widen import INT32, INT64, append, broadcast, bytes_of, counted_from_0, load, store
from graphc.loopir.ir import KEPT, LANES
from graphc.startup.record import record, replace

Growth: TypeAlias = "int | ir.Value | None"
"""The difference of a number from lane to lane, 0 where it is the same in all; None where each lane has any."""


@record(eq=False)
class Around:
    """A loop around others: its blocks in order, the step of its counter, and the store of its index."""

    blocks: Sequence[ir.Block]
    step: ir.Instruction
    index: ir.StoreInstr


def lay_abreast(function: ir.Function, flow: Flow) -> set[ir.Block]:
    """Write the `abreast` loops of a function over vectors; returns their blocks, which are not to be touched any more:
    a loop that has no form for vectors stays as it is, and its rows are too short for another."""
    laid = set[ir.Block]()
    for first, blocks in blocks_of_loops(function, flow).items() if flow.abreast else ():
        head = first
        while len(targets(head)) == 1:  # a long loop has a block before
            (head,) = targets(head)
        counters = {each.operands[0] for each in head.instructions if isinstance(each, ir.LoadInstr)}
        if not any(flow.stored.get(counter) in flow.abreast for counter in counters):
            continue
        laid |= blocks
        around = read_around(head, [block for block in function.blocks if block in blocks])
        if around is not None:
            lanes = _Lanes(around)
            if lanes.are_known():
                lanes.write()
    return laid


def read_around(head: ir.Block, blocks: Sequence[ir.Block]) -> Around | None:
    """The loop whose condition is in a block; None where its counter is written in another way."""
    steps = [each for each in head.instructions if each.opname == "add"]
    stores = [
        each
        for each in head.instructions
        if isinstance(each, ir.StoreInstr) and isinstance(each.operands[0], ir.instructions.ExtractValue)
    ]
    ways = [target for block in blocks for target in targets(block) if target not in blocks]
    if len(steps) != 1 or len(stores) != 1 or len(ways) != 1 or ways[0] not in targets(head):
        return None
    return Around(blocks, steps[0], stores[0])


class _Lanes:
    """The forms of a loop's instructions for eight iterations at a time."""

    def __init__(self, around: Around) -> None:
        self.around = around
        self.instructions = [each for block in around.blocks for each in block.instructions]
        self.assigned = Counter(each.operands[1] for each in self.instructions if isinstance(each, ir.StoreInstr))
        """The number of stores to each local name."""
        self.varying: set[ir.Value] = set()
        """Instructions and local names that differ from lane to lane."""
        self.written: set[ir.Value] = set()
        """Memory in which lanes write what differs, by the names of pointers to it."""
        self.growths: dict[ir.Value, Growth] = {}
        self.vectors: dict[ir.Value, ir.Value] = {}
        self.rooms: dict[ir.Value, ir.AllocaInstr] = {}
        """What local names and rows of an iteration's own have become."""

    # --- what differs -------------------------------------------------------------------------------------------------

    def are_known(self) -> bool:
        """Find what differs from lane to lane; returns whether all of it has a form for vectors."""
        self.varying.add(self.around.index.operands[1])
        before = -1
        while before < len(self.varying) + len(self.written):
            before = len(self.varying) + len(self.written)
            for each in self.instructions:
                differs = not self.varying.isdisjoint(each.operands)
                if isinstance(each, ir.StoreInstr):
                    value, place = each.operands
                    if differs and not is_name(place):
                        self.written.add(memory_of(place))
                    elif value in self.varying:
                        self.varying.add(place)
                elif differs or (isinstance(each, ir.LoadInstr) and memory_of(each.operands[0]) in self.written):
                    self.varying.add(each)
        return all(map(self.has_form, self.instructions))

    def has_form(self, each: ir.Instruction) -> bool:
        """True if an instruction is the same for all lanes, or has a form for vectors."""
        if isinstance(each, ir.StoreInstr):
            place = each.operands[1]
            return each.operands[0] not in self.varying or is_name(place) or is_element(place)
        if each not in self.varying:
            return True
        if isinstance(each, ir.LoadInstr):
            return is_name(each.operands[0]) or is_element(each.operands[0])
        if isinstance(each, ir.GEPInstr):
            return is_element(each) and each.operands[0] not in self.varying
        return is_lanewise(each)

    def growth(self, value: ir.Value) -> Growth:
        """The growth of a whole number from lane to lane."""
        if value not in self.varying:
            return 0
        return self.growths.get(value)

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the loop for vectors, in the same blocks."""
        function = self.around.step.parent.function
        calls = [symbol for each in self.varying if (symbol := called_symbol(each)) is not None]
        self.out_of_line = are_many(calls)
        self.entry = ir.IRBuilder(function.entry_basic_block)
        self.entry.position_at_start(function.entry_basic_block)
        index = self.around.index.operands[1]
        if self.assigned[index] == 1:
            self.growths[index] = 1
        for block in self.around.blocks:
            instructions, block.instructions = block.instructions[:-1], []
            self.builder = ir.IRBuilder(block)
            for each in instructions:
                self.write_instruction(each)
            append_made(self.builder, block.terminator)

    def write_instruction(self, each: ir.Instruction) -> None:
        builder = self.builder
        if each is self.around.step:
            each.operands = [each.operands[0], INT64(LANES)]
            self.value = each.operands[0]
        elif each is self.around.index:
            self.write_index(each)
            return
        if isinstance(each, ir.StoreInstr):
            self.write_store(each)
        elif each not in self.varying:
            append_made(builder, each)
        elif isinstance(each, ir.LoadInstr):
            self.write_load(each)
        elif not isinstance(each, ir.GEPInstr):
            growth = self.growth_of(each)
            if growth is not None:
                self.growths[each] = growth
                append_made(builder, each)
            else:
                self.vectors[each] = self.widened(each)

    def write_index(self, each: ir.StoreInstr) -> None:
        """The index of the first lane: the last iterations begin where LANES are left."""
        builder, block = self.builder, self.builder.block
        condition = next(one for one in block.instructions if isinstance(one, ir.ICMPInstr))
        last = builder.sub(condition.operands[1], INT64(LANES))
        first = builder.select(builder.icmp_signed("<", self.value, last), self.value, last)
        builder.store(first, each.operands[1])

    def growth_of(self, each: ir.Instruction) -> Growth:
        """The growth of a sum, a difference or a product of whole numbers, written where it has to be computed."""
        if each.opname not in ("add", "sub", "mul") or each.type != INT64:
            return None
        one, other = growths = [self.growth(operand) for operand in each.operands]
        if None in growths:
            return None
        if each.opname == "mul":
            if one != 0 and other != 0:
                return None
            changing, factor = (one, each.operands[1]) if other == 0 else (other, each.operands[0])
            return factor if changing == 1 else self.builder.mul(number(changing), factor)
        if other == 0:
            return one
        if one == 0 and each.opname == "add":
            return other
        return getattr(self.builder, each.opname)(number(one), number(other))

    def vector(self, value: ir.Value) -> ir.Value:
        """A value in all lanes."""
        if isinstance(value, ir.Constant):
            return splat(vector_of(value.type, LANES), value.constant)
        if value in self.vectors:
            return self.vectors[value]
        growth = self.growth(value)
        first = broadcast(self.builder, value, LANES)
        if growth == 0:
            return first
        steps = self.builder.mul(broadcast(self.builder, number(growth), LANES), counted_from_0(LANES))
        return self.builder.add(first, steps)

    def widened(self, each: ir.Instruction) -> ir.Value:
        """An instruction for all lanes."""
        if isinstance(each, ir.CallInstr):
            arguments = [*map(self.vector, each.args)]
            symbol = called_symbol(each)
            if symbol is None:
                return append(self.builder, each, arguments)
            fills = LANES * symbol.format.width == usual_width()
            refer = refer_out_of_line if self.out_of_line and fills else refer_inline
            return self.builder.call(refer(self.builder.module, replace(symbol, lanes=LANES)), arguments)
        if isinstance(each, ir.SelectInstr) and each.operands[0] not in self.varying:
            return append(self.builder, each, [each.operands[0], *map(self.vector, each.operands[1:])])
        return append(self.builder, each, [*map(self.vector, each.operands)])

    def write_store(self, each: ir.StoreInstr) -> None:
        value, place = each.operands
        memory = memory_of(place)
        if is_name(place):
            if place not in self.varying:
                append_made(self.builder, each)
            elif self.assigned[place] == 1 and place not in self.rooms and (growth := self.growth(value)) is not None:
                self.growths[place] = growth
                append_made(self.builder, each)
            else:
                self.builder.store(self.vector(value), self.room(place, place.type.pointee))
            return
        if memory not in self.written:
            append_made(self.builder, each)
            return
        index, vector = place.operands[1], self.vector(value)
        growth = self.growth(index)
        if growth == 0:
            self.builder.store(vector, self.own_element(memory, place))
        elif growth == 1 and memory not in self.rooms:
            store(self.builder, vector, self.builder.gep(place.operands[0], [index], inbounds=True), None)
        else:
            for lane, address in enumerate(self.addresses(place, growth)):
                self.builder.store(self.builder.extract_element(vector, INT32(lane)), address)

    def write_load(self, each: ir.LoadInstr) -> None:
        (place,) = each.operands
        if is_name(place):
            if place in self.growths:
                self.growths[each] = self.growths[place]
                append_made(self.builder, each)
            else:
                self.vectors[each] = self.builder.load(self.room(place, each.type))
            return
        index, memory = place.operands[1], memory_of(place)
        growth = self.growth(index)
        if growth == 0:
            self.vectors[each] = self.builder.load(self.own_element(memory, place))
        elif growth == 1 and memory not in self.rooms:
            first = self.builder.gep(place.operands[0], [index], inbounds=True)
            self.vectors[each] = load(self.builder, first, LANES, None)
        else:
            vector: ir.Value = ir.Constant(vector_of(each.type, LANES), ir.Undefined)
            for lane, address in enumerate(self.addresses(place, growth)):
                vector = self.builder.insert_element(vector, self.builder.load(address), INT32(lane))
            self.vectors[each] = vector

    def addresses(self, place: ir.GEPInstr, growth: Growth) -> list[ir.Value]:
        """The addresses of the elements of all lanes."""
        builder = self.builder
        base, index = place.operands
        if (room := self.rooms.get(memory_of(place))) is not None:
            first = builder.bitcast(room, place.type)
            vectors = builder.and_(self.vector(index), broadcast(builder, INT64(KEPT - 1), LANES))
            places = builder.add(builder.mul(vectors, broadcast(builder, INT64(LANES), LANES)), counted_from_0(LANES))
            indices = [builder.extract_element(places, INT32(lane)) for lane in range(LANES)]
            return [builder.gep(first, [index], inbounds=True) for index in indices]
        if growth is None:
            places = self.vector(index)
            indices = [builder.extract_element(places, INT32(lane)) for lane in range(LANES)]
            return [builder.gep(base, [index], inbounds=True) for index in indices]
        first = builder.gep(base, [index], inbounds=True)
        steps = [builder.mul(number(growth), INT64(lane)) for lane in range(1, LANES)]
        return [first, *(builder.gep(first, [step], inbounds=True) for step in steps)]

    def room(self, name: ir.Value, type: ir.Type, count: int = 1) -> ir.AllocaInstr:
        """Return the vectors that stand for a local name, or for an iteration's own row."""
        if name not in self.rooms:
            memory = self.entry.alloca(vector_of(type, LANES), count)
            memory.align = LANES * bytes_of(type)
            self.rooms[name] = memory
        return self.rooms[name]

    def own_element(self, memory: ir.Value, place: ir.GEPInstr) -> ir.Value:
        """The vector for an element of an iteration's own row: as rows have KEPT elements at most, the last digits of
        the index tell it from the others."""
        room = self.room(memory, place.type.pointee, KEPT)
        return self.builder.gep(room, [self.builder.and_(place.operands[1], INT64(KEPT - 1))], inbounds=True)


def is_name(place: ir.Value) -> bool:
    """True for the address of a local name."""
    return isinstance(place, ir.AllocaInstr)


def is_element(place: ir.Value) -> bool:
    """True for the address of an element of memory."""
    return isinstance(place, ir.GEPInstr) and len(place.operands) == 2


def memory_of(place: ir.Value) -> ir.Value | None:
    """The name of the pointer to the memory of an address; None for that of a local name."""
    if not isinstance(place, ir.GEPInstr):
        return None
    base: ir.Value = place.operands[0]
    return base.operands[0] if isinstance(base, ir.LoadInstr) else base


def number(growth: Growth) -> ir.Value:
    return INT64(growth) if isinstance(growth, int) else growth
