"""Decide which loops are written over vectors, and in what shape.

In: a module of LLVM IR that holds generated functions, before it is optimised. Out: the same module, its loops written
over vectors (widen.py) where their source says that iterations are independent; metadata tells LLVM to leave these
loops. LLVM would find most of them itself; it takes it longer than all else, for it looks for proofs of what is known
here, and leaves code for cases that do not occur. Where no loop is left to it, none of its passes over loops is needed.

A vectorised elementary function is one long dependency chain: every instruction waits four cycles for the one before.
Several independent vectors keep the processor's units at work: measured on 32 registers of 64 bytes, a single
exponential of many elements takes 0.6 to 0.7 of the time. A body with functions that do not wait for each other has
several chains already, and so has one that adds up their results: two vectors at a time do. A body of many functions
calls them out of line (vecmath/table.py), each for four vectors at a time. Where a multiplication and an addition
are two instructions, one chain keeps them busy.

A remainder is done element by element where that is soon done, and else under a mask where the CPU has one: a masked
store takes as long as twenty others. Reductions store nothing. So a row of 15 exponentials takes two iterations, and
the last elements of a sum are added in partial sums like all others. The remainder of a body that calls its functions
out of line is four vectors under one mask as well, where there are more than two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llvmlite import ir

from graphc.codegen.llvm.target import has_avx512, has_fma, usual_width
from graphc.codegen.llvm.unsupported import loop_id
from graphc.codegen.vecmath.table import VECTORS, are_many, called_symbol, one_vector, vectors_in_order
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
from graphc.codegen.vectorize.loopinfo import Flow, Innermost, Loop, flow_of, innermost, loops_of, read_counted, targets
from graphc.codegen.vectorize.verify import verify_loop
from graphc.codegen.vectorize.widen import BOOL, LoopForm, bytes_of, write_loop
from graphc.options import options

NO_UNROLL = "llvm.loop.unroll.disable"
IS_VECTORIZED = "llvm.loop.isvectorized"
SMALL_TRIP_COUNT = 32
"""Loops of a known trip count up to this are LLVM's to unroll."""
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


def vectorize(module: ir.Module) -> bool:
    """Write the loops of a module's functions over vectors; returns whether none is left for LLVM to vectorise or
    unroll."""
    left = False
    for function in module.functions:
        flow = flow_of(function)
        others = innermost(function, flow)
        for loop in list(loops_of(function)):
            found = others.pop(loop.header[0], Innermost({*loop.header, loop.body}, is_nested=False))
            if not vectorize_loop(loop, flow, found.is_nested):
                left = left or may_vectorize(found.blocks)
        left = left or any(may_vectorize(other.blocks) for other in others.values())
    return not left


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
    if counted is None or (counted.trip_count is not None and counted.trip_count <= SMALL_TRIP_COUNT):
        return False
    body = read_body(counted, steps)
    shape = None if body is None else shape_of(body, is_nested)
    if body is None or shape is None:
        return False
    branches = write_loop(counted, body, shape)
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


def shape_of(body: LoopBody, is_nested: bool) -> LoopForm | None:
    """The shape of a loop; None where vectors gain nothing."""
    varying = [each for each in body.live_instructions() if not body.is_invariant(each)]
    calls = {each: symbol for each in varying if (symbol := called_symbol(each)) is not None}
    lanes = usual_width() // (8 * widest(body, varying))
    # A vector of truth values is a register only where masks are; a packed mask takes ten times as long.
    truths = any(each.step.type == BOOL for each in body.reductions.values())
    if lanes < 2 or not (varying or body.reductions) or (truths and not has_avx512()):
        return None
    out_of_line = are_many(calls.values()) and all(one_vector(symbol.format) == lanes for symbol in calls.values())
    stores = any(isinstance(each, ir.StoreInstr) for each in varying)
    masked = has_avx512() and (bool(calls) or not stores)
    if out_of_line:
        count = VECTORS if body.counter_calls.isdisjoint(varying) else vectors_in_order()
    elif calls:
        several = len(calls) >= 2 * longest_chain(varying, body) or body.reductions
        count = FEWER if several else CHAINS if has_fma() else 1
    elif body.reductions:
        count = next(some for some in (CHAINS, FEWER, 1) if some * len(body.reductions) <= REGISTERS or some == 1)
    else:
        count = next(some for some in (CHAINS, FEWER, 1) if some * len(varying) <= SMALL_BODY or some == 1)
    copies = is_copy(body)
    narrow = NARROW if is_nested and lanes > NARROW and not masked and not calls else 1
    scalar_up_to = SCALAR_UP_TO if (body.reductions and not calls) or copies else narrow - 1
    return LoopForm(count * lanes, lanes, narrow, scalar_up_to, masked, bool(calls), out_of_line, copies)


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
