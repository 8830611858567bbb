"""A loop written anew over vectors.

In: a counted loop of a module of LLVM IR and what it does in an iteration. Out: the same iterations as a loop of
several vectors at a time, one of single vectors, and one of what does not fill a vector: single elements, unless the
last vector is masked. No element changes; what is added up has an order of its own.

    guard -> preheader -> begin -> interleaved -> vector -> narrow -> epilogue -> last
                   -> epilogue, where there are few iterations
    guard -> preheader -> begin -> interleaved -> vector -> nearly -> predicated -> done
                   -> epilogue -> last -> done

`guard` leaves where there is no iteration; `preheader` computes what is the same in each. Long bodies have no loop of
single vectors without a mask beside one with it, and none of few iterations. Where they call functions of several
vectors, what is nearly as many is given to these too, under a mask. Several vectors at a time are one that LLVM parts:
a phi of 32 numbers is four registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir

from graphc.codegen.llvm.target import has_avx512, usual_width
from graphc.codegen.llvm.unsupported import append as append_made, append_copy, literal
from graphc.codegen.llvm.values import suffix_of
from graphc.codegen.vecmath.floats import splat
from graphc.codegen.vecmath.lanes import call_in_parts, lanes_from, vector_of
from graphc.codegen.vecmath.outofline import VECTORS, held, refer_apart, refer_in_order
from graphc.codegen.vecmath.table import TOGETHER, Symbol, refer_held
from graphc.codegen.vectorize.legality import INDEX, Iteration, Sum, Value, extreme_of
from graphc.codegen.vectorize.loopinfo import Counted
from graphc.startup.record import record, replace

BOOL, INT32, INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)

SOONER = 2
"""Vectors that are done sooner one by one than by functions of VECTORS. Measured on 32 registers of 64 bytes: three of
three exponentials and a logarithm take as long, what is more than three 0.77 of the time."""


@record()
class Shape:
    """How a loop is written: numbers taken at a time, whole vectors of them; numbers in a vector, and in one of what
    does not fill it; up to how many iterations are done one by one; whether what does not fill a vector is done under a
    mask; whether its body is long, so that it is written as few times as can be; whether elementary functions are
    called that are compiled apart; whether all that it does is to copy or to clear memory."""

    interleaved: int
    lanes: int
    narrow: int
    few: int
    predicated: bool
    long: bool
    apart: bool
    moved: bool


def write_loop(counted: Counted, iteration: Iteration, shape: Shape) -> list[ir.Instruction]:
    """Write the loop so; the branches that end the new ones."""
    return _Writer(counted, iteration, shape).write()


Sums: TypeAlias = "dict[ir.AllocaInstr, ir.Value]"
"""What stands under the names of sums."""


class _Writer:
    def __init__(self, counted: Counted, iteration: Iteration, shape: Shape) -> None:
        self.counted, self.iteration, self.shape = counted, iteration, shape
        self.function: ir.Function = counted.loop.body.function
        self.branches: list[ir.Instruction] = []

    def write(self) -> list[ir.Instruction]:
        guard, preheader, builder = map(self.new_block, ("guard", "preheader", "begin"))
        begin, shape = builder.block, self.shape
        start = index = self.begin(guard, preheader.block)
        self.invariants = Invariants(self.iteration, preheader)
        given: Sums = {slot: preheader.load(slot) for slot in self.iteration.sums}
        results = given
        if shape.moved:
            self.move(builder, start)
            index = self.stop
        else:
            builder, index, results = self.take_vectors(builder, start, preheader, given)
        came, short = (builder.block, index, results), (preheader.block, start, given)
        ends = shape.predicated or shape.moved
        if shape.few:
            epilogue = self.new_block("epilogue")
            length = preheader.sub(self.stop, start)
            preheader.cbranch(preheader.icmp_signed("<=", length, INT64(shape.few)), epilogue.block, begin)
            if ends:
                few, _, summed = self.take("last", epilogue, start, given, 1)
                short = few.block, self.stop, summed
                epilogue = self.new_block("done")
                few.branch(epilogue.block)
            builder.branch(epilogue.block)
            index, results = join(epilogue, came, short)
            builder = epilogue
        else:
            preheader.branch(begin)
        if not ends:
            # Begun anew: where it went on from the others' sum, each of its additions would be rounded to that.
            builder, _, results = self.add(results, *self.take("last", builder, index, self.nothing(1), 1))
        for slot, result in results.items():
            builder.store(result, slot)
        builder.branch(self.counted.loop.ending)
        for block in (*self.counted.loop.counting, self.counted.loop.body):
            self.function.blocks.remove(block)
        return self.branches

    def take_vectors(
        self, builder: ir.IRBuilder, index: ir.Value, preheader: ir.IRBuilder, given: Sums
    ) -> tuple[ir.IRBuilder, ir.Value, Sums]:
        """Whole vectors, the last of them under a mask; where it goes on, from which index, with what added up."""
        shape, totals = self.shape, self.first_of(preheader, given, self.shape.lanes)
        if shape.interleaved > shape.lanes:
            begins = self.first_of(preheader, given, shape.interleaved)
            builder, index, totals = self.take("interleaved", builder, index, begins, shape.interleaved, skipped=totals)
        if not (shape.predicated and shape.long):
            builder, index, totals = self.take("vector", builder, index, totals, shape.lanes)
        if shape.predicated and shape.apart and shape.interleaved == VECTORS * shape.lanes and not totals:
            left = SOONER * shape.lanes
            builder, index, _ = self.take("nearly", builder, index, {}, shape.interleaved, predicated=True, left=left)
        if shape.predicated:
            builder, index, totals = self.take("predicated", builder, index, totals, shape.lanes, predicated=True)
        results = {slot: reduce(builder, each.step, totals[slot]) for slot, each in self.iteration.sums.items()}
        if shape.narrow == 1:
            return builder, index, results
        return self.add(results, *self.take("narrow", builder, index, self.nothing(shape.narrow), shape.narrow))

    def add(
        self, results: Sums, builder: ir.IRBuilder, index: ir.Value, more: Sums
    ) -> tuple[ir.IRBuilder, ir.Value, Sums]:
        """What has been added up in all, with what was added up beside it."""
        steps = {slot: each.step for slot, each in self.iteration.sums.items()}
        return (
            builder,
            index,
            {
                slot: append(builder, step, [results[slot], reduce(builder, step, more[slot])])
                for slot, step in steps.items()
            },
        )

    def move(self, builder: ir.IRBuilder, start: ir.Value) -> None:
        """Copy what is copied, and clear what is cleared, by the system's functions."""
        bytes, module, flag = ir.IntType(8).as_pointer(), builder.module, BOOL(False)
        for each, operands in self.iteration.operands.items():
            if not isinstance(each, ir.StoreInstr):
                continue
            value, place = operands
            length = builder.mul(builder.sub(self.stop, start), INT64(bytes_of(place.type.pointee)))
            places = [place, *(self.iteration.operands[value] if value in self.iteration.accesses else ())]
            to, *source = (
                builder.bitcast(builder.gep(self.invariants.places[pointer], [start]), bytes) for pointer in places
            )
            if source:
                copy_bytes = declare(module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), (bytes, bytes, INT64, BOOL))
                builder.call(copy_bytes, [to, *source, length, flag])
            else:
                clear = declare(module, "llvm.memset.p0.i64", ir.VoidType(), (bytes, ir.IntType(8), INT64, BOOL))
                builder.call(clear, [to, ir.IntType(8)(0), length, flag])

    def nothing(self, lanes: int) -> Sums:
        return {
            slot: splat(vector_of(each.step.type, lanes), neutral(each.step))
            for slot, each in self.iteration.sums.items()
        }

    def first_of(self, builder: ir.IRBuilder, given: Sums, lanes: int) -> Sums:
        """Vectors that add up to what is given."""
        return {
            slot: builder.insert_element(nothing, given[slot], INT32(0))
            for slot, nothing in self.nothing(lanes).items()
        }

    def new_block(self, name: str) -> ir.IRBuilder:
        return ir.IRBuilder(self.function.append_basic_block(f"{self.counted.loop.body.name}.{name}"))

    def begin(self, builder: ir.IRBuilder, preheader: ir.Block) -> ir.Value:
        """Whether there is anything to do; where it begins."""
        before = self.counted.before
        before.instructions.remove(before.terminator)
        before.terminator = None
        ir.IRBuilder(before).branch(builder.block)
        counter = builder.load(self.counted.slot)
        start, self.stop = (
            builder.load(builder.gep(counter, [INT32(0), INT32(part)], inbounds=True)) for part in (0, 1)
        )
        builder.cbranch(builder.icmp_signed("<", start, self.stop), preheader, self.counted.loop.ending)
        return start

    def take(
        self,
        name: str,
        before: ir.IRBuilder,
        index: ir.Value,
        begins: Sums,
        lanes: int,
        *,
        skipped: Sums | None = None,
        predicated: bool = False,
        left: int = 0,
    ) -> tuple[ir.IRBuilder, ir.Value, Sums]:
        """From an index on, take `lanes` iterations at a time, where there are as many: `predicated`, the last of them
        under a mask, while more than some are `left`. Where it goes on, from which index, with what added up to what it
        begins with, which is what it has `skipped` where there are no iterations to take."""
        skipped = begins if skipped is None else skipped
        body, after = self.new_block(name), self.new_block(f"after.{name}")
        compare, limit = "<", before.sub(self.stop, INT64(left)) if left else self.stop
        if not predicated and lanes > 1:
            limit = before.add(index, before.and_(before.sub(self.stop, index), INT64(-lanes)))
            compare = "!="
        before.cbranch(before.icmp_signed(compare, index, limit), body.block, after.block)
        here = begin_phi(body, (index, before.block))
        running = {slot: begin_phi(body, (value, before.block)) for slot, value in begins.items()}
        mask = None
        if predicated:
            mask = first_lanes(body, body.sub(self.stop, here), lanes)
        vectors = Vectors(self.invariants, body, lanes, self.shape, here, mask)
        vectors.carry_out()
        added = {slot: vectors.add_up(self.iteration.sums[slot], total) for slot, total in running.items()}
        following = body.add(here, INT64(lanes))
        for phi, value in ((here, following), *((running[slot], value) for slot, value in added.items())):
            phi.add_incoming(value, body.block)
        narrowed = body
        if any(lanes_of(value) < lanes for value in skipped.values()):
            narrowed = self.new_block(f"narrowed.{name}")
        leave = after.block if narrowed is body else narrowed.block
        self.branches.append(body.cbranch(body.icmp_signed(compare, following, limit), body.block, leave))
        totals = {
            slot: narrow(narrowed, self.iteration.sums[slot].step, value, lanes_of(skipped[slot]))
            for slot, value in added.items()
        }
        if narrowed is not body:
            narrowed.branch(after.block)
        joined = {
            slot: begin_phi(after, (skipped[slot], before.block), (value, narrowed.block))
            for slot, value in totals.items()
        }
        stopped = begin_phi(after, (index, before.block), (following, narrowed.block)) if left else limit
        return after, stopped, joined


class Invariants:
    """What is the same in each iteration, computed before the loops."""

    def __init__(self, iteration: Iteration, builder: ir.IRBuilder) -> None:
        self.iteration, self.builder = iteration, builder
        self.numbers: dict[Value, ir.Value] = {}
        self.places: dict[Value, ir.Value] = {}
        self.counters: dict[Value, ir.Value] = {}
        """The counters of functions of `counted` where the index is 0."""
        self.vectors: dict[tuple[Value, int], ir.Value] = {}
        self.needed = iteration.needed()
        for each in self.needed:
            if iteration.is_steady(each):
                self.numbers[each] = carry_out(builder, each, [*map(self.number, iteration.operands[each])])
            elif iteration.accesses.get(each) == 1:
                pointer = iteration.operands[each][-1]
                self.places[pointer] = self.first(pointer)
            elif each in iteration.counted:
                self.counters[each] = self.first(iteration.operands[each][1])

    def number(self, value: Value) -> ir.Value:
        if isinstance(value, ir.AllocaInstr) and value not in self.numbers:
            self.numbers[value] = self.builder.load(value)
        return self.numbers.get(value, value)

    def first(self, value: Value) -> ir.Value:
        """The value of an address where the index is 0."""
        if value is INDEX:
            return INT64(0)
        if value not in self.iteration.operands or value in self.numbers:
            return self.number(value)
        return carry_out(self.builder, value, [*map(self.first, self.iteration.operands[value])])

    def repeated(self, value: Value, lanes: int) -> ir.Value:
        """A value in each lane of a vector."""
        if isinstance(value, ir.Constant):
            return splat(vector_of(value.type, lanes), value.constant)
        key = value, lanes
        if key not in self.vectors:
            self.vectors[key] = repeat(self.builder, self.number(value), lanes)
        return self.vectors[key]


class Vectors:
    """The body of a loop that takes several iterations at a time."""

    def __init__(
        self,
        invariants: Invariants,
        builder: ir.IRBuilder,
        lanes: int,
        shape: Shape,
        index: ir.Value,
        mask: ir.Value | None,
    ) -> None:
        self.invariants, self.iteration, self.builder, self.lanes = invariants, invariants.iteration, builder, lanes
        self.apart, self.whole, self.index, self.mask = shape.apart, shape.lanes, index, mask
        self.made: dict[Value, ir.Value] = {}
        self.together = computed_together(self.iteration, invariants.needed) if self.apart else {}
        self.computed: dict[tuple[str, Value], ir.Value] = {}
        """What functions have given that compute several at once."""

    def vector(self, value: Value) -> ir.Value:
        """A value of these iterations."""
        if self.iteration.is_steady(value):
            return self.invariants.repeated(value, self.lanes)
        if value is INDEX and value not in self.made:
            first = repeat(self.builder, self.index, self.lanes)
            self.made[value] = first if self.lanes == 1 else self.builder.add(first, counted_from_0(self.lanes))
        return self.made[value]

    def carry_out(self) -> None:
        for each in self.invariants.needed:
            if not self.iteration.is_steady(each):
                self.made[each] = self.renewed(each, *self.iteration.operands[each])

    def renewed(self, each: ir.Instruction, *operands: Value) -> ir.Value:
        """An instruction for all of these iterations."""
        builder, lanes = self.builder, self.lanes
        if self.iteration.accesses.get(each) == 1:
            *value, pointer = operands
            place = builder.gep(self.invariants.places[pointer], [self.index])
            if value:
                return store(builder, self.vector(value[0]), place, self.mask)
            return load(builder, place, lanes, self.mask)
        match each:
            case ir.LoadInstr():
                return gather(builder, self.vector(operands[0]), each.type, self.mask)
            case ir.GEPInstr():
                return addresses(builder, self.invariants.number(operands[0]), self.vector(operands[1]), each.type)
            case ir.CallInstr() if each in self.together:
                return self.called_together(self.together[each], operands[1])
            case ir.CallInstr() if self.apart and each in self.iteration.counted and lanes > 1:
                return self.called_in_order(each, *operands[1:])
            case ir.CallInstr() if (symbol := held(each)) is not None:
                return self.called(symbol, [*map(self.vector, operands[1:])])
            case ir.CallInstr():
                return append(builder, each, [*map(self.vector, operands[1:])])
            case ir.SelectInstr() if self.iteration.is_steady(operands[0]):
                return append(builder, each, [self.invariants.number(operands[0]), *map(self.vector, operands[1:])])
            case _:
                return append(builder, each, [*map(self.vector, operands)])

    def called(self, symbol: Symbol, arguments: Sequence[ir.Value]) -> ir.Value:
        """An elementary function. One of several vectors goes on with each while it waits for the others; held by a
        loop, it is one of single vectors where masks are no registers: LLVM would pack those of several into one."""
        builder = self.builder
        if self.apart:
            at_once = min(self.lanes, VECTORS * self.whole)
            function = refer_apart(builder.module, replace(symbol, lanes=at_once))
            call = ir.IRBuilder.call if at_once == self.lanes else call_in_parts
            return call(builder, function, arguments)
        at_once = self.lanes if has_avx512() else min(self.lanes, self.whole)
        function = refer_held(builder.module, replace(symbol, lanes=at_once))
        call = ir.IRBuilder.call if at_once == self.lanes else call_in_parts
        return call(builder, function, arguments)

    def called_in_order(self, each: ir.Instruction, counter: Value, *rest: Value) -> ir.Value:
        """A function of counters that go up by one, of which it is given the first."""
        symbol = held(each)
        assert symbol is not None
        builder = self.builder
        first = builder.add(self.invariants.counters[each], self.index)
        function = refer_in_order(builder.module, replace(symbol, lanes=self.lanes, apart=True, in_order=True))
        with builder.goto_entry_block():
            made = builder.alloca(function.args[0].type.pointee)
        made.align = usual_width() // 8
        builder.call(function, [made, first, *map(self.invariants.number, rest)])
        return load(builder, made, 1, None)

    def called_together(self, part: tuple[Symbol, int], argument: Value) -> ir.Value:
        """One of the results of a function that computes several at once: called for the first of them."""
        symbol, place = part
        if (symbol.name, argument) not in self.computed:
            self.computed[symbol.name, argument] = self.called(symbol, [self.vector(argument)])
        return self.builder.extract_value(self.computed[symbol.name, argument], place)

    def add_up(self, sum: Sum, total: ir.Value) -> ir.Value:
        """What is added up after these iterations."""
        term = self.vector(sum.term)
        if self.mask is not None:
            term = self.builder.select(self.mask, term, splat(term.type, neutral(sum.step)))
        return append(self.builder, sum.step, [total, term])


def computed_together(
    iteration: Iteration, needed: Sequence[ir.Instruction]
) -> dict[ir.Instruction, tuple[Symbol, int]]:
    """The elementary functions of one argument of which one function computes several: that, and as which of its
    results."""
    calls: dict[Value, dict[str, list[ir.Instruction]]] = {}
    for each in needed:
        if (symbol := held(each)) is not None and not iteration.is_steady(each):
            calls.setdefault(iteration.operands[each][-1], {}).setdefault(symbol.name, []).append(each)
    return {
        each: (replace(symbol, name=name), place)
        for names in calls.values()
        for name, members in TOGETHER.items()
        if names.keys() >= {*members}
        for place, member in enumerate(members)
        for each in names[member]
        if (symbol := held(each)) is not None
    }


# --- instructions ---------------------------------------------------------------------------------------------------


def begin_phi(builder: ir.IRBuilder, *incoming: tuple[ir.Value, ir.Block]) -> ir.PhiInstr:
    """What is a value when a block comes before."""
    phi = builder.phi(incoming[0][0].type)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def join(builder: ir.IRBuilder, *ways: tuple[ir.Block, ir.Value, Sums]) -> tuple[ir.Value, Sums]:
    """An index and sums, as they are where one of some blocks came before."""
    index = begin_phi(builder, *((index, block) for block, index, _ in ways))
    slots = ways[0][2]
    return index, {slot: begin_phi(builder, *((sums[slot], block) for block, _, sums in ways)) for slot in slots}


def carry_out(builder: ir.IRBuilder, like: ir.Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """An instruction once more, upon other numbers."""
    match like:
        case ir.LoadInstr():
            return builder.load(operands[0])
        case ir.GEPInstr():
            return builder.gep(operands[0], operands[1:])
        case ir.CallInstr():
            return builder.call(like.callee, operands[1:], fastmath=tuple(like.fastmath))
        case _:
            return append(builder, like, operands)


def append(builder: ir.IRBuilder, like: ir.Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """The same upon other operands, numbers or vectors."""
    if isinstance(like, ir.CallInstr):
        return call_lanewise(builder, like, operands)
    return append_copy(builder, like, vector_of(like.type, lanes_of(operands[-1])), operands)


def call_lanewise(builder: ir.IRBuilder, like: ir.CallInstr, arguments: Sequence[ir.Value]) -> ir.Value:
    """A function of LLVM's, of numbers or vectors."""
    if lanes_of(arguments[0]) == 1:
        return builder.call(like.callee, arguments, fastmath=tuple(like.fastmath))
    base, kind = like.callee.name.rsplit(".", 1)
    type = vector_of(like.type, lanes_of(arguments[0]))
    name = f"{base}.v{lanes_of(arguments[0])}{kind}"
    function = declare(builder.module, name, type, [argument.type for argument in arguments])
    return builder.call(function, arguments, fastmath=tuple(like.fastmath))


def declare(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, ir.FunctionType(result, arguments), name)


def lanes_of(value: ir.Value) -> int:
    return int(value.type.count) if isinstance(value.type, ir.VectorType) else 1


def repeat(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A number in each lane of a vector."""
    if lanes == 1:
        return value
    nothing = literal(vector_of(value.type, lanes), "poison")
    one = builder.insert_element(nothing, value, INT32(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(vector_of(INT32, lanes), [0] * lanes))


def counted_from_0(lanes: int, type: ir.Type = INT64) -> ir.Constant:
    return ir.Constant(vector_of(type, lanes), [*range(lanes)])


def first_lanes(builder: ir.IRBuilder, count: ir.Value, lanes: int) -> ir.Value:
    """The mask of the first `count` lanes of a vector, compared in numbers of their own width."""
    type = ir.IntType(max(usual_width() // lanes, 8))
    most = builder.select(builder.icmp_signed("<", count, INT64(lanes)), count, INT64(lanes))
    narrow = most if type.width == 64 else builder.trunc(most, type)
    return builder.icmp_unsigned("<", counted_from_0(lanes, type), repeat(builder, narrow, lanes))


def load(builder: ir.IRBuilder, place: ir.Value, lanes: int, mask: ir.Value | None) -> ir.Value:
    element = place.type.pointee
    type = vector_of(element, lanes)
    if mask is None:
        made = ir.LoadInstr(builder.block, place, typ=type)
        made.align = bytes_of(element)
        return append_made(builder, made)
    name = f"llvm.masked.load.v{lanes}{suffix_of(element)}.p0"
    function = declare(builder.module, name, type, (place.type, INT32, mask.type, type))
    return builder.call(function, [place, INT32(bytes_of(element)), mask, literal(type, "zeroinitializer")])


def store(builder: ir.IRBuilder, value: ir.Value, place: ir.Value, mask: ir.Value | None) -> ir.Value:
    element = place.type.pointee
    if mask is None:
        made = ir.StoreInstr(builder.block, value, place)
        made.align = bytes_of(element)
        return append_made(builder, made)
    name = f"llvm.masked.store.v{lanes_of(value)}{suffix_of(element)}.p0"
    function = declare(builder.module, name, ir.VoidType(), (value.type, place.type, INT32, mask.type))
    return builder.call(function, [value, place, INT32(bytes_of(element)), mask])


def addresses(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, type: ir.Type) -> ir.Value:
    """Where elements of these indices are."""
    if lanes_of(index) == 1:
        return builder.gep(base, [index])
    made = builder.gep(base, [INT64(0)])  # llvmlite has no vectors of indices
    made.indices, made.operands, made.type = [index], [base, index], vector_of(type, lanes_of(index))
    return made


def gather(builder: ir.IRBuilder, places: ir.Value, element: ir.Type, mask: ir.Value | None) -> ir.Value:
    """What stands at these addresses."""
    lanes = lanes_of(places)
    if lanes == 1:
        return builder.load(places)
    type, bits = vector_of(element, lanes), vector_of(BOOL, lanes)
    name = f"llvm.masked.gather.v{lanes}{suffix_of(element)}.v{lanes}p0"
    function = declare(builder.module, name, type, (places.type, INT32, bits, type))
    chosen = splat(bits, True) if mask is None else mask
    return builder.call(function, [places, INT32(bytes_of(element)), chosen, literal(type, "zeroinitializer")])


# --- sums -----------------------------------------------------------------------------------------------------------


def neutral(step: ir.Instruction) -> float:
    """What a step of a sum leaves as it is."""
    if not isinstance(step, ir.CallInstr):
        return {"fadd": -0.0, "fmul": 1.0, "mul": 1, "and": -1}.get(step.opname, 0)
    bits = 8 * bytes_of(step.type)
    neutrals: dict[str, float] = {
        "smin": 2 ** (bits - 1) - 1,
        "smax": -(2 ** (bits - 1)),
        "umin": 2**bits - 1,
        "umax": 0,
        "minimum": math.inf,
        "maximum": -math.inf,
        "minnum": math.nan,
        "maxnum": math.nan,
    }
    return neutrals[extreme_of(step) or ""]


def narrow(builder: ir.IRBuilder, step: ir.Instruction, vector: ir.Value, lanes: int) -> ir.Value:
    """A vector of fewer lanes that add up to the same."""
    while lanes_of(vector) > lanes:
        half = lanes_of(vector) // 2
        halves = [builder.shuffle_vector(vector, vector, lanes_from(first, half)) for first in (0, half)]
        vector = append(builder, step, halves)
    return vector


REDUCES = {"maximum": "fmaximum", "minimum": "fminimum", "maxnum": "fmax", "minnum": "fmin"}
"""What LLVM calls extremes of a vector's lanes; integers' have the names of those of two."""


def reduce(builder: ir.IRBuilder, step: ir.Instruction, vector: ir.Value) -> ir.Value:
    """What a vector's lanes add up to."""
    if lanes_of(vector) == 1:
        return vector
    called = isinstance(step, ir.CallInstr)
    operation = extreme_of(step) or "" if called else step.opname
    name = f"llvm.vector.reduce.{REDUCES.get(operation, operation)}.v{lanes_of(vector)}{suffix_of(step.type)}"
    ordered = [splat(step.type, neutral(step))] if operation in ("fadd", "fmul") else []
    given = [*ordered, vector]
    function = declare(builder.module, name, step.type, [value.type for value in given])
    return builder.call(function, given, fastmath=tuple(step.fastmath if called else step.flags))


# --- types ----------------------------------------------------------------------------------------------------------


def bytes_of(type: ir.Type) -> int:
    """The bytes of a number in memory."""
    match type:
        case ir.IntType():
            return max(int(type.width) // 8, 1)
        case ir.FloatType():
            return 4
        case _:
            return 8
