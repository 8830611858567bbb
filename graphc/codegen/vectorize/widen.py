"""Write a counted loop anew over vectors.

In: a counted loop of a module of LLVM IR, the body that was read, and the form to give it. Out: the same iterations as
several loops. With four vectors of 8 numbers at a time and a trip count of 75,

    for i in independent(n):      becomes   interleaved   i = 0, 32         32 iterations at a time
        y[i] = x[i] * 2.0                   vector        i = 64            8 at a time
                                            remainder     i = 72, 73, 74    one at a time

or, in place of the remainder, one `masked` vector at 72 with three active lanes. Each element is computed as before; a
reduction is added up in another order.

The blocks, in order; around a loop that may have no iteration goes a branch:

    guard -> preheader -> begin -> interleaved -> vector -> narrow -> join -> remainder
                   -> join, where the trip count is small
    guard -> preheader -> begin -> interleaved -> vector -> interleaved_masked -> masked -> done
                   -> scalar -> remainder -> done

`guard` leaves where the trip count is 0; `preheader` computes the loop invariants. A long body is written as few times
as can be: a masked loop of it stands in for the one of single vectors, and it has no scalar loop for small trip counts.
Four vectors at a time are one long vector, which LLVM splits: a phi of 32 numbers is four registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir

from graphc.codegen.llvm.target import has_avx512, usual_width
from graphc.codegen.llvm.values import append as append_made, append_copy, literal, suffix_of
from graphc.codegen.vecmath.floats import call_in_parts, join_vectors, lanes_from, splat, vector_of
from graphc.codegen.vecmath.table import (
    TOGETHER,
    VECTORS,
    Symbol,
    called_symbol,
    refer_in_order,
    refer_inline,
    refer_out_of_line,
)
from graphc.codegen.vectorize.legality import INDEX, Columns, Lines, LoopBody, Reduction, Value, min_max_of, woven
from graphc.codegen.vectorize.loopinfo import CountedLoop
from graphc.startup.record import record, replace

BOOL, INT32, INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)

SINGLE = 2
"""Up to so many remaining vectors are computed one by one, more by functions of VECTORS under a mask. Measured on 32
registers of 64 bytes: three vectors of three exponentials and a logarithm take as long either way, more than three 0.77
of the time."""


@record()
class LoopForm:
    """The form in which a loop is written.

    interleaved: iterations at a time, a multiple of `lanes`; lanes: numbers in a vector; narrow: numbers in a vector of
    what does not fill one, 1 for none; scalar_up_to: the largest trip count whose iterations are done one by one;
    masked: the remainder is one vector under a mask; is_long: the body is written as few times as can be; out_of_line:
    elementary functions are called, not inlined; is_copy: the loop only copies or clears memory.
    """

    interleaved: int
    lanes: int
    narrow: int
    scalar_up_to: int
    masked: bool
    is_long: bool
    out_of_line: bool
    is_copy: bool


Totals: TypeAlias = "dict[ir.AllocaInstr, ir.Value]"
"""Accumulators by the local names of their reductions: numbers, or vectors whose lanes are still to be added up."""


@record(eq=False)
class State:
    """The state of writing: the builder, the index of the next iteration, the accumulators."""

    builder: ir.IRBuilder
    index: ir.Value
    totals: Totals


def write_loop(loop: CountedLoop, body: LoopBody, form: LoopForm) -> list[ir.Instruction]:
    """Replace a loop by the loops of a form; returns the branches that end these."""
    return _Writer(loop, body, form).write()


class _Writer:
    def __init__(self, loop: CountedLoop, body: LoopBody, form: LoopForm) -> None:
        self.loop, self.body, self.form = loop, body, form
        self.function: ir.Function = loop.body.function
        self.branches: list[ir.Instruction] = []

    def write(self) -> list[ir.Instruction]:
        guard, preheader, begin = map(self.new_block, ("guard", "preheader", "begin"))
        start = self.write_guard(guard, preheader.block)
        self.invariants = Invariants(self.body, preheader)
        initial = State(preheader, start, {slot: preheader.load(slot) for slot in self.body.reductions})
        is_complete = self.form.masked or self.form.is_copy
        if self.form.is_copy:
            self.call_memory_functions(begin, start)
            after = State(begin, self.stop, initial.totals)
        else:
            after = self.write_vectors(State(begin, start, initial.totals), preheader)
        if self.form.scalar_up_to:
            after = self.join_small(initial, begin.block, after, is_complete)
        else:
            preheader.branch(begin.block)
        if not is_complete:
            # From the identity: added to the total one by one, each would be rounded to the total's last digit.
            remainder = self.write_iterations("remainder", replace(after, totals=self.identities(1)), 1)
            after = self.combine(after.totals, remainder)
        for slot, result in after.totals.items():
            after.builder.store(result, slot)
        after.builder.branch(self.loop.exit)
        for block in (*self.loop.header, self.loop.body):
            self.function.blocks.remove(block)
        return self.branches

    def new_block(self, name: str) -> ir.IRBuilder:
        return ir.IRBuilder(self.function.append_basic_block(f"{self.loop.body.name}.{name}"))

    def write_guard(self, guard: ir.IRBuilder, preheader: ir.Block) -> ir.Value:
        """Leave where there is no iteration; returns the first index."""
        before = self.loop.before
        before.instructions.remove(before.terminator)
        before.terminator = None
        ir.IRBuilder(before).branch(guard.block)
        counter = guard.load(self.loop.counter)
        start, self.stop = (guard.load(guard.gep(counter, [INT32(0), INT32(part)], inbounds=True)) for part in (0, 1))
        guard.cbranch(guard.icmp_signed("<", start, self.stop), preheader, self.loop.exit)
        return start

    def write_vectors(self, state: State, preheader: ir.IRBuilder) -> State:
        """Write the loops over vectors: all iterations but a remainder, or all of them under a mask."""
        form, initial = self.form, state.totals
        state = replace(state, totals=self.in_first_lane(preheader, initial, form.lanes))
        if form.interleaved > form.lanes:
            wide = self.in_first_lane(preheader, initial, form.interleaved)
            state = self.write_iterations("interleaved", state, form.interleaved, accumulators=wide)
        if not (form.masked and form.is_long):
            state = self.write_iterations("vector", state, form.lanes)
        if form.masked and form.out_of_line and form.interleaved == VECTORS * form.lanes and not state.totals:
            name, left = "interleaved_masked", SINGLE * form.lanes
            state = self.write_iterations(name, state, form.interleaved, masked=True, leave=left)
        if form.masked:
            state = self.write_iterations("masked", state, form.lanes, masked=True)
        results = {slot: reduce(state.builder, self.body.reductions[slot].step, v) for slot, v in state.totals.items()}
        if form.narrow == 1:
            return replace(state, totals=results)
        narrow = replace(state, totals=self.identities(form.narrow))
        return self.combine(results, self.write_iterations("narrow", narrow, form.narrow))

    def write_iterations(
        self,
        name: str,
        before: State,
        lanes: int,
        *,
        accumulators: Totals | None = None,
        masked: bool = False,
        leave: int = 0,
    ) -> State:
        """Write a loop of `lanes` iterations at a time, and return the state after it.

        It runs while as many iterations are left; a `masked` one while more than `leave` are, and the last time under a
        mask. It adds up in `accumulators`, those of `before` by default, and narrows them to vectors of the length of
        those of `before`, which hold where it has no iteration.
        """
        builder, index = before.builder, before.index
        body, after = self.new_block(name), self.new_block(f"after.{name}")
        compare, limit = "<", builder.sub(self.stop, INT64(leave)) if leave else self.stop
        if not masked and lanes > 1:
            limit = builder.add(index, builder.and_(builder.sub(self.stop, index), INT64(-lanes)))
            compare = "!="
        builder.cbranch(builder.icmp_signed(compare, index, limit), body.block, after.block)
        here = begin_phi(body, (index, builder.block))
        begins = before.totals if accumulators is None else accumulators
        running = {slot: begin_phi(body, (value, builder.block)) for slot, value in begins.items()}
        mask = first_lanes(body, body.sub(self.stop, here), lanes) if masked else None
        vectors = VectorBody(self.invariants, body, lanes, self.form, here, mask)
        vectors.write()
        added = {slot: vectors.accumulate(self.body.reductions[slot], total) for slot, total in running.items()}
        following = body.add(here, INT64(lanes))
        for phi, value in ((here, following), *((running[slot], value) for slot, value in added.items())):
            phi.add_incoming(value, body.block)
        last = body
        if any(lanes_of(value) < lanes for value in before.totals.values()):
            last = self.new_block(f"narrowed.{name}")
        leave_to = after.block if last is body else last.block
        self.branches.append(body.cbranch(body.icmp_signed(compare, following, limit), body.block, leave_to))
        totals = {
            slot: narrow(last, self.body.reductions[slot].step, value, lanes_of(before.totals[slot]))
            for slot, value in added.items()
        }
        if last is not body:
            last.branch(after.block)
        joined = {
            slot: begin_phi(after, (before.totals[slot], builder.block), (value, last.block))
            for slot, value in totals.items()
        }
        stopped = begin_phi(after, (index, builder.block), (following, last.block)) if leave else limit
        return State(after, stopped, joined)

    def join_small(self, initial: State, begin: ir.Block, after: State, is_complete: bool) -> State:
        """Branch around the vectors where the trip count is small: to the remainder, or, where the vectors leave none
        (`is_complete`), to a scalar loop."""
        preheader, joined = initial.builder, self.new_block("scalar" if is_complete else "join")
        count = preheader.sub(self.stop, initial.index)
        is_small = preheader.icmp_signed("<=", count, INT64(self.form.scalar_up_to))
        preheader.cbranch(is_small, joined.block, begin)
        if is_complete:
            scalar = self.write_iterations("remainder", State(joined, initial.index, initial.totals), 1)
            initial = State(scalar.builder, self.stop, scalar.totals)
            joined = self.new_block("done")
            scalar.builder.branch(joined.block)
        after.builder.branch(joined.block)
        ways = after, initial
        index = begin_phi(joined, *((each.index, each.builder.block) for each in ways))
        totals = {
            slot: begin_phi(joined, *((each.totals[slot], each.builder.block) for each in ways))
            for slot in after.totals
        }
        return State(joined, index, totals)

    def combine(self, totals: Totals, state: State) -> State:
        """The state with these totals added to its own, which are reduced to one number each."""
        builder, combined = state.builder, dict[ir.AllocaInstr, ir.Value]()
        for slot, reduction in self.body.reductions.items():
            total = reduce(builder, reduction.step, state.totals[slot])
            combined[slot] = append(builder, reduction.step, [totals[slot], total])
        return replace(state, totals=combined)

    def call_memory_functions(self, builder: ir.IRBuilder, start: ir.Value) -> None:
        """Copy and clear memory by the system's functions."""
        bytes, module, flag = ir.IntType(8).as_pointer(), builder.module, BOOL(False)
        for each, operands in self.body.operands.items():
            if not isinstance(each, ir.StoreInstr):
                continue
            value, place = operands
            length = builder.mul(builder.sub(self.stop, start), INT64(bytes_of(place.type.pointee)))
            places = [place, *(self.body.operands[value] if value in self.body.accesses else ())]
            to, *source = (
                builder.bitcast(builder.gep(self.invariants.bases[pointer], [start]), bytes) for pointer in places
            )
            if source:
                copy_bytes = declare(module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), (bytes, bytes, INT64, BOOL))
                builder.call(copy_bytes, [to, *source, length, flag])
            else:
                clear = declare(module, "llvm.memset.p0.i64", ir.VoidType(), (bytes, ir.IntType(8), INT64, BOOL))
                builder.call(clear, [to, ir.IntType(8)(0), length, flag])

    def identities(self, lanes: int) -> Totals:
        """Accumulators that hold nothing yet."""
        return {
            slot: splat(vector_of(each.step.type, lanes), identity(each.step))
            for slot, each in self.body.reductions.items()
        }

    def in_first_lane(self, builder: ir.IRBuilder, totals: Totals, lanes: int) -> Totals:
        """Vectors with the totals in their first lanes, and identities in the others."""
        return {
            slot: builder.insert_element(nothing, totals[slot], INT32(0))
            for slot, nothing in self.identities(lanes).items()
        }


class Invariants:
    """Loop invariants, computed in the preheader."""

    def __init__(self, body: LoopBody, builder: ir.IRBuilder) -> None:
        self.body, self.builder = body, builder
        self.numbers: dict[Value, ir.Value] = {}
        self.bases: dict[Value, ir.Value] = {}
        """The pointers of accesses of known stride where the index is 0."""
        self.firsts: dict[Columns, ir.Value] = {}
        """The addresses of the first of columns where the index is 0."""
        self.counters: dict[Value, ir.Value] = {}
        """The counters of `body.counter_calls` where the index is 0."""
        self.vectors: dict[tuple[Value, int], ir.Value] = {}
        self.live = body.live_instructions()
        for each in self.live:
            if body.is_invariant(each):
                self.numbers[each] = repeat_instruction(builder, each, [*map(self.number, body.operands[each])])
            elif body.accesses.get(each):
                pointer = body.operands[each][-1]
                self.bases[pointer] = self.at_index_0(pointer)
                columns = body.columns.get(each)
                if columns is not None and columns not in self.firsts:
                    self.firsts[columns] = builder.gep(self.bases[pointer], [INT64(-columns.places[each])])
            elif each in body.counter_calls:
                self.counters[each] = self.at_index_0(body.operands[each][1])

    def number(self, value: Value) -> ir.Value:
        """An invariant as a number."""
        if isinstance(value, ir.AllocaInstr) and value not in self.numbers:
            self.numbers[value] = self.builder.load(value)
        return self.numbers.get(value, value)

    def at_index_0(self, value: Value) -> ir.Value:
        """The value that depends on the index alone, where that is 0."""
        if value is INDEX:
            return INT64(0)
        if value not in self.body.operands or value in self.numbers:
            return self.number(value)
        return repeat_instruction(self.builder, value, [*map(self.at_index_0, self.body.operands[value])])

    def broadcast(self, value: Value, lanes: int) -> ir.Value:
        """An invariant in each lane of a vector."""
        if isinstance(value, ir.Constant):
            return splat(vector_of(value.type, lanes), value.constant)
        key = value, lanes
        if key not in self.vectors:
            self.vectors[key] = broadcast(self.builder, self.number(value), lanes)
        return self.vectors[key]


class VectorBody:
    """The body of a loop that makes several iterations at a time, from an index on, under a mask maybe."""

    def __init__(
        self,
        invariants: Invariants,
        builder: ir.IRBuilder,
        lanes: int,
        form: LoopForm,
        index: ir.Value,
        mask: ir.Value | None,
    ) -> None:
        self.invariants, self.body, self.builder, self.lanes = invariants, invariants.body, builder, lanes
        self.out_of_line, self.vector_lanes, self.index, self.mask = form.out_of_line, form.lanes, index, mask
        self.widened: dict[Value, ir.Value] = {}
        self.together = computed_together(self.body, invariants.live) if self.out_of_line else {}
        self.joint_results: dict[tuple[str, Value], ir.Value] = {}
        self.lines: dict[Columns, list[Lines]] = {}

    def write(self) -> None:
        for each in self.invariants.live:
            if not self.body.is_invariant(each):
                self.widened[each] = self.widen(each, *self.body.operands[each])

    def vector(self, value: Value) -> ir.Value:
        """The values of these iterations."""
        if self.body.is_invariant(value):
            return self.invariants.broadcast(value, self.lanes)
        if value is INDEX and value not in self.widened:
            first = broadcast(self.builder, self.index, self.lanes)
            self.widened[value] = first if self.lanes == 1 else self.builder.add(first, counted_from_0(self.lanes))
        return self.widened[value]

    def widen(self, each: ir.Instruction, *operands: Value) -> ir.Value:
        """An instruction for all of these iterations."""
        builder, lanes = self.builder, self.lanes
        if self.body.accesses.get(each) == 1:
            *value, pointer = operands
            place = builder.gep(self.invariants.bases[pointer], [self.index])
            if value:
                return store(builder, self.vector(value[0]), place, self.mask)
            return load(builder, place, lanes, self.mask)
        match each:
            case ir.LoadInstr() if each in self.body.columns:
                return self.read_column(each, self.body.columns[each])
            case ir.StoreInstr():
                return self.write_column(each, self.body.columns[each])
            case ir.LoadInstr():
                return gather(builder, self.vector(operands[0]), each.type, self.mask)
            case ir.GEPInstr():
                return addresses(builder, self.invariants.number(operands[0]), self.vector(operands[1]), each.type)
            case ir.CallInstr() if each in self.together:
                return self.call_joint(self.together[each], operands[1])
            case ir.CallInstr() if self.out_of_line and each in self.body.counter_calls and lanes > 1:
                return self.call_in_order(each, *operands[1:])
            case ir.CallInstr() if (symbol := called_symbol(each)) is not None:
                return self.call_elementary(symbol, [*map(self.vector, operands[1:])])
            case ir.CallInstr():
                return append(builder, each, [*map(self.vector, operands[1:])])
            case ir.SelectInstr() if self.body.is_invariant(operands[0]):
                return append(builder, each, [self.invariants.number(operands[0]), *map(self.vector, operands[1:])])
            case _:
                return append(builder, each, [*map(self.vector, operands)])

    def places(self, each: ir.Instruction, columns: Columns) -> ir.Value:
        """The addresses of the elements of a column."""
        pointer = self.body.operands[each][-1]
        steps = splat(vector_of(INT64, self.lanes), columns.stride)
        indices = self.builder.mul(self.vector(INDEX), steps)
        return addresses(self.builder, self.invariants.bases[pointer], indices, pointer.type)

    def first_place(self, columns: Columns) -> ir.Value:
        """The address of the first element of the first column."""
        return self.builder.gep(self.invariants.firsts[columns], [self.builder.mul(self.index, INT64(columns.stride))])

    def read_column(self, each: ir.Instruction, columns: Columns) -> ir.Value:
        """A column of short rows: from whole vectors of memory, under a mask or alone element by element."""
        builder, lanes = self.builder, self.lanes
        if lanes == 1 or self.mask is not None:
            return gather(builder, self.places(each, columns), each.type, self.mask)
        if columns not in self.lines:
            first, at_once = self.first_place(columns), min(lanes, self.vector_lanes)
            self.lines[columns] = [
                read_lines(builder, first, columns, begin * columns.stride, at_once)
                for begin in range(0, lanes, at_once)
            ]
        return join_vectors(builder, [lines.column(columns.places[each]) for lines in self.lines[columns]])

    def write_column(self, each: ir.Instruction, columns: Columns) -> ir.Value:
        """Write a column of short rows, by whole vectors of memory once all columns are known."""
        builder, lanes = self.builder, self.lanes
        value = self.vector(self.body.operands[each][0])
        if lanes == 1 or self.mask is not None:
            return scatter(builder, value, self.places(each, columns), self.mask)
        if each is not columns.last:
            return value
        first, at_once = self.first_place(columns), min(lanes, self.vector_lanes)
        ordered = sorted(columns.places, key=lambda one: columns.places[one])
        values = [self.vector(self.body.operands[one][0]) for one in ordered]
        for begin in range(0, lanes, at_once):
            some = lanes_from(begin, at_once)
            parts = [builder.shuffle_vector(one, one, some) if at_once < lanes else one for one in values]
            for number, line in enumerate(woven(builder, parts)):
                place = builder.gep(first, [INT64(begin * columns.stride + number * at_once)])
                stored = store(builder, line, place, None)
        return stored

    def call_elementary(self, symbol: Symbol, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call an elementary function. One of several vectors works on each while it waits for the others. An inlined
        one takes single vectors where masks are no registers: LLVM would pack the masks of several into one."""
        builder = self.builder
        if self.out_of_line:
            at_once, refer = min(self.lanes, VECTORS * self.vector_lanes), refer_out_of_line
        else:
            at_once, refer = self.lanes if has_avx512() else min(self.lanes, self.vector_lanes), refer_inline
        function = refer(builder.module, replace(symbol, lanes=at_once))
        call = ir.IRBuilder.call if at_once == self.lanes else call_in_parts
        return call(builder, function, arguments)

    def call_in_order(self, each: ir.Instruction, counter: Value, *rest: Value) -> ir.Value:
        """Call a function of counters that go up by one, which takes the first of them."""
        symbol = called_symbol(each)
        assert symbol is not None
        builder = self.builder
        first = builder.add(self.invariants.counters[each], self.index)
        function = refer_in_order(builder.module, replace(symbol, lanes=self.lanes, out_of_line=True, in_order=True))
        with builder.goto_entry_block():
            result = builder.alloca(function.args[0].type.pointee)
        result.align = usual_width() // 8
        builder.call(function, [result, first, *map(self.invariants.number, rest)])
        return load(builder, result, 1, None)

    def call_joint(self, part: tuple[Symbol, int], argument: Value) -> ir.Value:
        """One of the results of a function that computes several, called for the first of them."""
        symbol, place = part
        key = symbol.name, argument
        if key not in self.joint_results:
            self.joint_results[key] = self.call_elementary(symbol, [self.vector(argument)])
        return self.builder.extract_value(self.joint_results[key], place)

    def accumulate(self, reduction: Reduction, total: ir.Value) -> ir.Value:
        """An accumulator after these iterations. Inactive lanes add the identity."""
        term = self.vector(reduction.term)
        if self.mask is not None:
            term = self.builder.select(self.mask, term, splat(term.type, identity(reduction.step)))
        return append(self.builder, reduction.step, [total, term])


def computed_together(body: LoopBody, live: Sequence[ir.Instruction]) -> dict[ir.Instruction, tuple[Symbol, int]]:
    """The calls of one argument that one function computes together, such as sin(x) and cos(x): that function, and
    the place of the call's result among its results."""
    calls: dict[Value, dict[str, list[ir.Instruction]]] = {}
    for each in live:
        if (symbol := called_symbol(each)) is not None and not body.is_invariant(each):
            calls.setdefault(body.operands[each][-1], {}).setdefault(symbol.name, []).append(each)
    return {
        each: (replace(symbol, name=name), place)
        for names in calls.values()
        for name, members in TOGETHER.items()
        if names.keys() >= {*members}
        for place, member in enumerate(members)
        for each in names[member]
        if (symbol := called_symbol(each)) is not None
    }


# --- instructions ---------------------------------------------------------------------------------------------------


def begin_phi(builder: ir.IRBuilder, *incoming: tuple[ir.Value, ir.Block]) -> ir.PhiInstr:
    """A phi with a value for each of these predecessors."""
    phi = builder.phi(incoming[0][0].type)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def repeat_instruction(builder: ir.IRBuilder, like: ir.Instruction, operands: Sequence[ir.Value]) -> ir.Value:
    """A scalar instruction once more, on other operands."""
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
    """An instruction without addresses once more, on numbers or on vectors."""
    if isinstance(like, ir.CallInstr):
        return call_lanewise(builder, like, operands)
    return append_copy(builder, like, vector_of(like.type, lanes_of(operands[-1])), operands)


def call_lanewise(builder: ir.IRBuilder, like: ir.CallInstr, arguments: Sequence[ir.Value]) -> ir.Value:
    """Call an intrinsic of LLVM on numbers, or its variant on vectors."""
    if lanes_of(arguments[0]) == 1:
        return builder.call(like.callee, arguments, fastmath=tuple(like.fastmath))
    base, suffix = like.callee.name.rsplit(".", 1)
    type = vector_of(like.type, lanes_of(arguments[0]))
    name = f"{base}.v{lanes_of(arguments[0])}{suffix}"
    function = declare(builder.module, name, type, [argument.type for argument in arguments])
    return builder.call(function, arguments, fastmath=tuple(like.fastmath))


def declare(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    declared = module.globals.get(name)
    return declared if declared is not None else ir.Function(module, ir.FunctionType(result, arguments), name)


def lanes_of(value: ir.Value) -> int:
    return int(value.type.count) if isinstance(value.type, ir.VectorType) else 1


def broadcast(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A number in each lane of a vector."""
    if lanes == 1:
        return value
    nothing = literal(vector_of(value.type, lanes), "poison")
    first_lane = builder.insert_element(nothing, value, INT32(0))
    return builder.shuffle_vector(first_lane, nothing, ir.Constant(vector_of(INT32, lanes), [0] * lanes))


def counted_from_0(lanes: int, type: ir.Type = INT64) -> ir.Constant:
    return ir.Constant(vector_of(type, lanes), [*range(lanes)])


def first_lanes(builder: ir.IRBuilder, count: ir.Value, lanes: int) -> ir.Value:
    """The mask of the first `count` lanes of a vector, compared in numbers of their own width."""
    type = ir.IntType(max(usual_width() // lanes, 8))
    most = builder.select(builder.icmp_signed("<", count, INT64(lanes)), count, INT64(lanes))
    narrow = most if type.width == 64 else builder.trunc(most, type)
    return builder.icmp_unsigned("<", counted_from_0(lanes, type), broadcast(builder, narrow, lanes))


def load(builder: ir.IRBuilder, place: ir.Value, lanes: int, mask: ir.Value | None) -> ir.Value:
    """Consecutive elements, those of active lanes alone."""
    element = place.type.pointee
    type = vector_of(element, lanes)
    if mask is None:
        instruction = ir.LoadInstr(builder.block, place, typ=type)
        instruction.align = bytes_of(element)
        return append_made(builder, instruction)
    name = f"llvm.masked.load.v{lanes}{suffix_of(element)}.p0"
    function = declare(builder.module, name, type, (place.type, INT32, mask.type, type))
    return builder.call(function, [place, INT32(bytes_of(element)), mask, literal(type, "zeroinitializer")])


def store(builder: ir.IRBuilder, value: ir.Value, place: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Write consecutive elements, those of active lanes alone."""
    element = place.type.pointee
    if mask is None:
        instruction = ir.StoreInstr(builder.block, value, place)
        instruction.align = bytes_of(element)
        return append_made(builder, instruction)
    name = f"llvm.masked.store.v{lanes_of(value)}{suffix_of(element)}.p0"
    function = declare(builder.module, name, ir.VoidType(), (value.type, place.type, INT32, mask.type))
    return builder.call(function, [value, place, INT32(bytes_of(element)), mask])


def read_lines(builder: ir.IRBuilder, first: ir.Value, columns: Columns, begin: int, lanes: int) -> Lines:
    """The vectors from the element `begin` on that hold these columns of `lanes` rows. Nothing is read behind the last
    element that they need: the last vector ends there, and is moved to its place."""
    count = (lanes - 1) * columns.stride + columns.width
    nothing = literal(vector_of(first.type.pointee, lanes), "poison")
    vectors = []
    for place in range(0, columns.stride * lanes, lanes):
        back = max(place + lanes - count, 0)
        if back >= lanes:
            vectors.append(nothing)
            continue
        vector = load(builder, builder.gep(first, [INT64(begin + place - back)]), lanes, None)
        vectors.append(builder.shuffle_vector(vector, nothing, lanes_from(back, lanes)) if back else vector)
    return Lines(builder, vectors, columns.stride)


def addresses(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, type: ir.Type) -> ir.Value:
    """The addresses of elements, for a vector of indices."""
    if lanes_of(index) == 1:
        return builder.gep(base, [index])
    gep = builder.gep(base, [INT64(0)])  # llvmlite has no vectors of indices
    gep.indices, gep.operands, gep.type = [index], [base, index], vector_of(type, lanes_of(index))
    return gep


def gather(builder: ir.IRBuilder, places: ir.Value, element: ir.Type, mask: ir.Value | None) -> ir.Value:
    """The elements at these addresses, those of active lanes alone."""
    lanes = lanes_of(places)
    if lanes == 1:
        return builder.load(places)
    type, bits = vector_of(element, lanes), vector_of(BOOL, lanes)
    name = f"llvm.masked.gather.v{lanes}{suffix_of(element)}.v{lanes}p0"
    function = declare(builder.module, name, type, (places.type, INT32, bits, type))
    active = splat(bits, True) if mask is None else mask
    return builder.call(function, [places, INT32(bytes_of(element)), active, literal(type, "zeroinitializer")])


def scatter(builder: ir.IRBuilder, value: ir.Value, places: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Write elements to these addresses, those of active lanes alone."""
    lanes = lanes_of(places)
    if lanes == 1:
        return store(builder, value, places, None)
    element, bits = value.type.element, vector_of(BOOL, lanes)
    name = f"llvm.masked.scatter.v{lanes}{suffix_of(element)}.v{lanes}p0"
    function = declare(builder.module, name, ir.VoidType(), (value.type, places.type, INT32, bits))
    active = splat(bits, True) if mask is None else mask
    return builder.call(function, [value, places, INT32(bytes_of(element)), active])


# --- reductions -----------------------------------------------------------------------------------------------------


def identity(step: ir.Instruction) -> float:
    """The identity of a reduction: a step with it changes nothing."""
    if not isinstance(step, ir.CallInstr):
        return {"fadd": -0.0, "fmul": 1.0, "mul": 1, "and": -1}.get(step.opname, 0)
    bits = 8 * bytes_of(step.type)
    identities: dict[str, float] = {
        "smin": 2 ** (bits - 1) - 1,
        "smax": -(2 ** (bits - 1)),
        "umin": 2**bits - 1,
        "umax": 0,
        "minimum": math.inf,
        "maximum": -math.inf,
        "minnum": math.nan,
        "maxnum": math.nan,
    }
    return identities[min_max_of(step) or ""]


def narrow(builder: ir.IRBuilder, step: ir.Instruction, vector: ir.Value, lanes: int) -> ir.Value:
    """A vector of fewer lanes that reduces to the same: half of it added to the other half, again and again."""
    while lanes_of(vector) > lanes:
        half = lanes_of(vector) // 2
        halves = [builder.shuffle_vector(vector, vector, lanes_from(first, half)) for first in (0, half)]
        vector = append(builder, step, halves)
    return vector


REDUCES = {"maxnum": "fmax", "minnum": "fmin"}
"""LLVM's names of the reductions of floats to an extreme; integers' have the names of the functions of two numbers."""


def reduce(builder: ir.IRBuilder, step: ir.Instruction, vector: ir.Value) -> ir.Value:
    """The lanes of a vector, added up."""
    if lanes_of(vector) == 1:
        return vector
    is_call = isinstance(step, ir.CallInstr)
    operation = min_max_of(step) or "" if is_call else step.opname
    if operation in ("maximum", "minimum"):  # LLVM's own reduction knows no short form of the calls (llvm/target.py)
        pair = narrow(builder, step, vector, 2)
        return append(builder, step, [builder.extract_element(pair, INT32(lane)) for lane in (0, 1)])
    name = f"llvm.vector.reduce.{REDUCES.get(operation, operation)}.v{lanes_of(vector)}{suffix_of(step.type)}"
    initial = [splat(step.type, identity(step))] if operation in ("fadd", "fmul") else []
    operands = [*initial, vector]
    function = declare(builder.module, name, step.type, [value.type for value in operands])
    return builder.call(function, operands, fastmath=tuple(step.fastmath if is_call else step.flags))


# --- types ----------------------------------------------------------------------------------------------------------


def bytes_of(type: ir.Type) -> int:
    """The bytes of a number in memory, or of one of a vector's. Raises TypeError for types kernels do not have."""
    match type:
        case ir.IntType():
            return max(int(type.width) // 8, 1)
        case ir.FloatType():
            return 4
        case ir.DoubleType() | ir.PointerType():
            return 8
        case ir.VectorType():
            return bytes_of(type.element)
        case _:
            raise TypeError(f"elements of type {type}: their size in memory is not known")
