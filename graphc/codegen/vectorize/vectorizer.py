"""Decide which loops are written over vectors, and in what form.

In: a module of LLVM IR that holds generated functions, before it is optimised. Out: the same module, its loops
written over vectors (widen.py) where their source says that iterations are independent; metadata tells LLVM to leave
these loops. LLVM would find most of them itself; it takes it longer than all else, for it looks for proofs of what
is known here, and leaves code for cases that do not occur. Where no loop is left to it, none of its passes over
loops is needed.

A vectorised elementary function is one long dependency chain: every instruction waits four cycles for the one
before. Several independent vectors keep the processor's units at work: measured on 32 registers of 64 bytes, a
single exponential of many elements takes 0.6 to 0.7 of the time. A body with functions that do not wait for each
other has several chains already, and so has one that adds up their results: two vectors at a time do. A body of many
functions calls them out of line (vecmath/table.py), each for four vectors at a time. Where a multiplication and an
addition are two instructions, one chain keeps them busy.

A remainder is done element by element where that is soon done, and else under a mask where the CPU has one: a masked
store takes as long as twenty others. Reductions store nothing. So a row of 15 exponentials takes two iterations, and
the last elements of a sum are added in partial sums like all others. The remainder of a body that calls its
functions out of line is four vectors under one mask as well, where there are more than two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from llvmlite import ir

from graphc.codegen.llvm.target import has_avx512, has_fma, usual_width
from graphc.codegen.llvm.values import loop_id
from graphc.codegen.vecmath.table import VECTORS, are_many, called_symbol, one_vector, vectors_in_order
from graphc.codegen.vectorize.abreast import lay_abreast
from graphc.codegen.vectorize.legality import (
    LoopBody,
    carried_by,
    is_copy,
    is_lanewise,
    is_sequential,
    read_body,
    scatters,
    step_of,
)
from graphc.codegen.vectorize.loopinfo import (
    Flow,
    Innermost,
    Loop,
    back_branches,
    flow_of,
    innermost,
    loops_of,
    read_counted,
    targets,
)
from graphc.codegen.vectorize.widen import BOOL, LoopForm, bytes_of, lanes_of, write_loop
from graphc.errors import VerifyError
from graphc.options import options
from graphc.startup.record import record

MASKED = {"load": (0, 2), "store": (1, 3), "gather": (0, 2), "scatter": (1, 3)}
"""Accesses under a mask, `llvm.masked.*`: the places of the address and of the mask among their arguments."""


# --- verification, under `options.verify` -----------------------------------------------------------------------------
# In: the blocks of the loops that stand for one loop, and the body that was read. Out: nothing, or VerifyError. Each
# block is read anew, as LLVM would read it: it promises
#
# - an index that goes up by its number of lanes, and accesses of so many elements at the index, nothing else;
# - each store of the body, once;
# - where its last vector may reach beyond the trip count, one mask for all accesses and all terms of reductions;
# - each reduction of the body, into an accumulator of as many lanes.


@record(eq=False)
class Access:
    """A load or a store of memory: how many elements, at which address, under which mask."""

    lanes: int
    address: ir.Value
    mask: ir.Value | None
    is_store: bool


def verify_loop(blocks: Sequence[ir.Block], body: LoopBody) -> None:
    """Check the blocks of the loops that stand for one loop. Raises VerifyError where one breaks a promise."""
    for block in blocks:
        problem = broken_promise(block, body)
        if problem:
            raise VerifyError(f"a loop over vectors, block {block.name}: {problem}\n{block}")


def broken_promise(block: ir.Block, body: LoopBody) -> str:
    """The promise that a block breaks, "" for none."""
    index, *accumulators = (each for each in block.instructions if isinstance(each, ir.PhiInstr))
    step, condition = latch_value(index, block), block.terminator.operands[0]
    if step.opname != "add" or step.operands[0] is not index or condition.operands[0] is not step:
        return "it does not count by its index"
    lanes = int(step.operands[1].constant)
    is_partial = condition.op == "slt" and lanes > 1
    if condition.op == "ne" and not is_whole(condition.operands[1], lanes):
        return "its limit is no multiple of its lanes"
    accesses = [each for each in map(read_access, block.instructions) if each is not None]
    stores = sum(each.lanes for each in accesses if each.is_store)
    if stores != lanes * sum(isinstance(each, ir.StoreInstr) for each in body.accesses):
        return "it has other stores"
    for each in accesses:
        if is_of_columns(each, index, body):
            continue
        if each.lanes != lanes:
            return f"an access of {each.lanes} elements, not {lanes}"
        if (each.mask is None) == is_partial or each.mask not in (None, accesses[0].mask):
            return "an access with a mask that it should not have, or none"
        if lanes_of(each.address) == 1 < lanes and each.address.operands[1:] != [index]:
            return "an access that is not at the index"
    if len(accumulators) != len(body.reductions):
        return "it has other reductions"
    return next(filter(None, (broken_reduction(each, block, lanes, is_partial) for each in accumulators)), "")


def is_of_columns(access: Access, index: ir.Value, body: LoopBody) -> bool:
    """True for a vector that lies at the index times a stride of the body."""
    strides = {each.stride for each in body.columns.values()}
    address = access.address
    if (
        access.mask is not None
        or not isinstance(address, ir.GEPInstr)
        or not isinstance(address.operands[0], ir.GEPInstr)
    ):
        return False
    place: ir.Value = address.operands[0].operands[1]
    if not isinstance(address.operands[1], ir.Constant) or getattr(place, "opname", "") != "mul":
        return False
    return place.operands[0] is index and place.operands[1].constant in strides


def broken_reduction(accumulator: ir.PhiInstr, block: ir.Block, lanes: int, is_partial: bool) -> str:
    """The promise that an accumulator breaks, "" for none."""
    step = latch_value(accumulator, block)
    if lanes_of(accumulator) != lanes or accumulator not in step.operands:
        return "an accumulator of other lanes, or to which nothing is added"
    terms = [each for each in step.operands if each is not accumulator and not isinstance(each, ir.Function)]
    return "a term without a mask" if is_partial and not isinstance(terms[0], ir.SelectInstr) else ""


def latch_value(phi: ir.PhiInstr, block: ir.Block) -> Any:
    """The value of a phi after an iteration."""
    return next(value for value, before in phi.incomings if before is block)


def is_whole(limit: Any, lanes: int) -> bool:
    """True if a limit is `index + (count & -lanes)`."""
    rounded: Any = limit.operands[1] if getattr(limit, "opname", "") == "add" else None
    return bool(getattr(rounded, "opname", "") == "and" and rounded.operands[1].constant == -lanes)


def read_access(each: ir.Instruction) -> Access | None:
    """The access to memory that an instruction is, None for none; the room of a call's results is no memory."""
    match each:
        case ir.LoadInstr() | ir.StoreInstr():
            value = each.operands[0] if isinstance(each, ir.StoreInstr) else each
            address = each.operands[-1]
            if isinstance(address, ir.AllocaInstr):
                return None
            return Access(lanes_of(value), address, None, isinstance(each, ir.StoreInstr))
        case ir.CallInstr() if each.callee.name.startswith("llvm.masked."):
            access = each.callee.name.split(".")[2]
            address, mask = (each.operands[1 + place] for place in MASKED[access])
            # A gather of all lanes has a mask that is a constant.
            active = None if isinstance(mask, ir.Constant) else mask
            is_store = access in ("store", "scatter")
            return Access(lanes_of(each.operands[1] if is_store else each), address, active, is_store)
    return None


# --- which loops, and how ---------------------------------------------------------------------------------------------


NO_UNROLL = "llvm.loop.unroll.disable"
IS_VECTORIZED = "llvm.loop.isvectorized"
SMALL_TRIP_COUNT = 32
"""Loops of a known trip count up to this are LLVM's to unroll."""
SMALL_SUM = 16
"""The same of loops with reductions, whose lanes LLVM adds up in twice the time."""
CHAINS = 4
"""Dependency chains that keep a processor busy: vectors at a time, where each is one chain."""
FEWER = 2
"""Vectors at a time, where each is several chains."""
SCALAR_UP_TO = 7
"""Trip counts for which iterations one by one are faster than vectors whose lanes have to be added up, or than the
system's functions."""
NARROW = 4
"""Numbers in a vector of what does not fill one, where rows may be short."""
REGISTERS = 32
"""Vectors that reductions accumulate in at most: more would be loaded and stored in every iteration."""
SMALL_BODY = 20
"""Instructions of a body, times vectors at a time, up to which several vectors at a time are worth it."""


def vectorize(module: ir.Module) -> list[str]:
    """Write the loops of a module's functions over vectors; returns the names of the functions with loops that are left
    for LLVM to vectorise or unroll."""
    return [function.name for function in module.functions if not vectorize_function(function)]


def vectorize_function(function: ir.Function) -> bool:
    """Write the loops of a function over vectors; returns whether none is left for LLVM."""
    left = False
    flow = flow_of(function)
    done = lay_abreast(function, flow)
    for branch in back_branches(function, done):
        set_properties(branch, [IS_VECTORIZED, NO_UNROLL])
    others = {first: inner for first, inner in innermost(function, flow).items() if first not in done}
    for loop in list(loops_of(function)):
        if loop.body in done:
            continue
        inner = others.pop(loop.header[0], Innermost({*loop.header, loop.body}, is_nested=False))
        if not vectorize_loop(loop, flow, inner.is_nested):
            left = left or may_vectorize(inner.blocks)
    return not (left or any(may_vectorize(other.blocks) for other in others.values()))


def vectorize_loop(loop: Loop, flow: Flow, is_nested: bool) -> bool:
    """Write a loop over vectors where that can be; returns whether LLVM has nothing to do with it: it was written, or
    its iterations wait for each other. A nested loop may run many times over short rows."""
    carried = carried_by(loop.body)
    steps = {slot: step for slot in carried if (step := step_of(loop.body, slot)) is not None}
    if len(steps) < len(carried):
        if is_sequential(loop.body, carried):
            # Several iterations at a time are no faster, and more to compile.
            set_properties(loop.body.terminator, [NO_UNROLL])
            return True
        return False
    counted = read_counted(loop, flow)
    small = SMALL_SUM if steps else SMALL_TRIP_COUNT
    if counted is None or (counted.trip_count is not None and counted.trip_count <= small):
        return False
    body = read_body(counted, steps)
    form = None if body is None else form_of(body, is_nested)
    if body is None or form is None:
        return False
    branches = write_loop(counted, body, form)
    if options.verify:
        verify_loop([branch.parent for branch in branches], body)
    for branch in branches:
        set_properties(branch, [IS_VECTORIZED, NO_UNROLL])
    return True


def may_vectorize(blocks: Collection[ir.Block]) -> bool:
    """True if LLVM may vectorise an innermost loop, by what is quickly seen: it has one exit, calls no function of
    ours, and does not scatter."""
    exits = [block for block in blocks if any(target not in blocks for target in targets(block))]
    calls = [each for block in blocks for each in block.instructions if isinstance(each, ir.CallInstr)]
    return len(exits) == 1 and all(map(is_lanewise, calls)) and not any(map(scatters, blocks))


def form_of(body: LoopBody, is_nested: bool) -> LoopForm | None:
    """The form of a loop over vectors; None where vectors gain nothing."""
    varying = [each for each in body.live_instructions() if not body.is_invariant(each)]
    lanes = usual_width() // (8 * widest(body, varying))
    if lanes < 2 or not (varying or body.reductions) or not all(each.pays(lanes) for each in body.columns.values()):
        return None
    # A vector of truth values is a register only where masks are; a packed mask takes ten times as long.
    if any(each.step.type == BOOL for each in body.reductions.values()) and not has_avx512():
        return None
    calls = {each: symbol for each in varying if (symbol := called_symbol(each)) is not None}
    out_of_line = are_many(calls.values()) and all(one_vector(symbol.format) == lanes for symbol in calls.values())
    stores = any(isinstance(each, ir.StoreInstr) for each in varying)
    masked = has_avx512() and (bool(calls) or not stores)
    copies = is_copy(body)
    narrow = NARROW if is_nested and lanes > NARROW and not masked and not calls else 1
    return LoopForm(
        interleaved=lanes * vectors_at_a_time(body, varying, len(calls), out_of_line),
        lanes=lanes,
        narrow=narrow,
        scalar_up_to=SCALAR_UP_TO if (body.reductions and not calls) or copies else narrow - 1,
        masked=masked,
        is_long=bool(calls),
        out_of_line=out_of_line,
        is_copy=copies,
    )


def vectors_at_a_time(body: LoopBody, varying: Sequence[ir.Instruction], calls: int, out_of_line: bool) -> int:
    """The number of vectors that one iteration handles, so that they are chains enough, in registers. calls: the number
    of elementary functions; out_of_line: they are called, not inlined."""
    if out_of_line:
        return VECTORS if body.counter_calls.isdisjoint(varying) else vectors_in_order()
    if calls:
        are_chains = calls >= 2 * longest_chain(varying, body) or body.reductions
        return FEWER if are_chains else CHAINS if has_fma() else 1
    used, most = (len(body.reductions), REGISTERS) if body.reductions else (len(varying), SMALL_BODY)
    return next(count for count in (CHAINS, FEWER, 1) if count * used <= most or count == 1)


def widest(body: LoopBody, varying: Sequence[ir.Instruction]) -> int:
    """The bytes of the widest number that an iteration reads, computes or adds up."""
    types = [each.step.type for each in body.reductions.values()]
    for each in varying:
        if isinstance(each, ir.StoreInstr):
            types.append(each.operands[0].type)
        elif not isinstance(each, ir.GEPInstr):
            types.append(each.type)
    return max(map(bytes_of, types), default=1)


def longest_chain(varying: Sequence[ir.Instruction], body: LoopBody) -> int:
    """The number of elementary functions in the longest chain of which each waits for the one before."""
    depth = dict[ir.Value, int]()
    for each in varying:
        before = max((depth.get(operand, 0) for operand in body.operands[each]), default=0)
        depth[each] = before + (called_symbol(each) is not None)
    return max(depth.values(), default=0)


def set_properties(branch: ir.Instruction, names: Sequence[str]) -> None:
    """Tell LLVM these properties of the loop that a branch ends."""
    module = branch.module
    properties = [module.add_metadata([name, ir.Constant(ir.IntType(32), 1)]) for name in names]
    branch.set_metadata("llvm.loop", loop_id(module, properties))
