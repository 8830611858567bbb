"""Loops written over vectors.

In: a module of LLVM IR that holds generated functions, before it is optimised. Out: the same module, whose loops are
written over vectors (widen.py) where their source says that iterations are independent. LLVM would find most of these
loops itself; it takes it longer than all else, for it looks for proofs of what is known here, and leaves code for cases
that do not occur. Where no loop is left to it, none of its passes over loops is needed.

A vectorised elementary function is one long chain: every instruction waits four cycles for the one before. Several
independent vectors keep the processor's units at work: measured on 32 registers of 64 bytes, a single exponential of
many elements takes 0.6 to 0.7 of the time. A body with functions that do not wait for each other has several chains
already, and so has one that adds up what they give: two vectors at a time do. A body of many functions calls them
(vecmath/outofline.py), each for four vectors at a time. Where a multiplication and an addition are two instructions,
one chain keeps them busy.

What does not fill a vector is done element by element where that is soon done, and else under a mask where the CPU has
one: a masked store takes as long as twenty others. Sums store nothing. So a row of 15 exponentials takes two
iterations, and a sum's last elements are added in partial sums like all others. What a body that calls its functions
has left is four vectors under one mask as well, where there are more than two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llvmlite import ir

from graphc.codegen.llvm.target import has_avx512, has_fma, usual_width
from graphc.codegen.llvm.unsupported import loop_id
from graphc.codegen.vecmath.outofline import VECTORS, are_many, held, one_vector, vectors_in_order
from graphc.codegen.vectorize.legality import (
    Iteration,
    carried_by,
    has_order,
    has_vectors,
    only_moves,
    read_iteration,
    scatters,
    step_of,
)
from graphc.codegen.vectorize.loopinfo import Flow, Innermost, Loop, flow_of, innermost, loops_of, read_counted, targets
from graphc.codegen.vectorize.widen import BOOL, Shape, bytes_of, write_loop

UNROLL = "llvm.loop.unroll.disable"
WRITTEN = "llvm.loop.isvectorized"
FEW_ITERATIONS = 32
"""A loop of a known number of iterations up to this is LLVM's to unroll."""
CHAINS = 4
"""Chains that keep a processor busy: this many vectors at a time, each of them one chain."""
FEWER = 2
"""Vectors at a time, of which each is several chains."""
FEW = 7
"""Iterations that are sooner done one by one than by vectors whose lanes have to be added up, or by the system's
functions.
"""
NARROW = 4
"""Numbers in a vector of what does not fill one, where rows may be short."""
REGISTERS = 32
"""Vectors that sums are added up in at most: with more, each is loaded and stored in every iteration."""
SMALL = 20
"""Instructions of a body that are worth carrying out for several vectors at a time."""


def vectorize(module: ir.Module) -> bool:
    """Write the loops of a module's functions over vectors; whether none is left for LLVM to vectorise or unroll."""
    left = False
    for function in module.functions:
        flow = flow_of(function)
        others = innermost(function, flow)
        for loop in list(loops_of(function)):
            found = others.pop(loop.counting[0], Innermost({*loop.counting, loop.body}, is_held=False))
            if not vectorize_loop(loop, flow, found.is_held):
                left = left or may_vectorize(found.blocks)
        left = left or any(may_vectorize(other.blocks) for other in others.values())
    return not left


def vectorize_loop(loop: Loop, flow: Flow, is_held: bool) -> bool:
    """Write a loop over vectors where that can be; whether it was, or iterations wait for each other. `is_held`:
    another loop holds it, so that it may be carried out many times for short rows."""
    carried = carried_by(loop.body)
    sums = {slot: step for slot in carried if (step := step_of(loop.body, slot)) is not None}
    if len(sums) < len(carried):
        if has_order(loop.body, carried):
            # Several iterations at a time are no faster, and more to compile.
            set_properties(loop.body.terminator, [UNROLL])
            return True
        return False
    counted = read_counted(loop, flow)
    if counted is None or (counted.iterations is not None and counted.iterations <= FEW_ITERATIONS):
        return False
    iteration = read_iteration(counted, sums)
    shape = None if iteration is None else shape_of(iteration, is_held)
    if iteration is None or shape is None:
        return False
    for branch in write_loop(counted, iteration, shape):
        set_properties(branch, [WRITTEN, UNROLL])
    return True


def may_vectorize(blocks: Collection[ir.Block]) -> bool:
    """Whether LLVM may vectorise an innermost loop, as far as that can be seen soon: it has one end, calls nothing
    apart, and does not write to places that it has read from memory."""
    ends = [block for block in blocks if any(target not in blocks for target in targets(block))]
    calls = [each for block in blocks for each in block.instructions if isinstance(each, ir.CallInstr)]
    return len(ends) == 1 and all(map(has_vectors, calls)) and not any(map(scatters, blocks))


def shape_of(iteration: Iteration, is_held: bool) -> Shape | None:
    """How to write a loop that does this in each iteration; None where vectors gain nothing."""
    own = [each for each in iteration.needed() if not iteration.is_steady(each)]
    calls = {each: symbol for each in own if (symbol := held(each)) is not None}
    lanes = usual_width() // (8 * widest(iteration, own))
    # Truth values that are carried are a register only where masks are; a packed mask takes ten times as long.
    truths = any(each.step.type == BOOL for each in iteration.sums.values())
    if lanes < 2 or not (own or iteration.sums) or (truths and not has_avx512()):
        return None
    apart = are_many(calls.values()) and all(one_vector(symbol.format) == lanes for symbol in calls.values())
    stores = any(isinstance(each, ir.StoreInstr) for each in own)
    predicated = has_avx512() and (bool(calls) or not stores)
    if apart:
        count = VECTORS if iteration.counted.isdisjoint(own) else vectors_in_order()
    elif calls:
        several = len(calls) >= 2 * longest_chain(own, iteration) or iteration.sums
        count = FEWER if several else CHAINS if has_fma() else 1
    elif iteration.sums:
        count = next(some for some in (CHAINS, FEWER, 1) if some * len(iteration.sums) <= REGISTERS or some == 1)
    else:
        count = next(some for some in (CHAINS, FEWER, 1) if some * len(own) <= SMALL or some == 1)
    moved = only_moves(iteration)
    narrow = NARROW if is_held and lanes > NARROW and not predicated and not calls else 1
    few = FEW if (iteration.sums and not calls) or moved else narrow - 1
    return Shape(count * lanes, lanes, narrow, few, predicated, bool(calls), apart, moved)


def widest(iteration: Iteration, own: Sequence[ir.Instruction]) -> int:
    """The bytes of the widest number that an iteration reads, computes or adds up."""
    types = [each.step.type for each in iteration.sums.values()]
    for each in own:
        if isinstance(each, ir.StoreInstr):
            types.append(each.operands[0].type)
        elif not isinstance(each, ir.GEPInstr):
            types.append(each.type)
    return max(map(bytes_of, types), default=1)


def longest_chain(own: Sequence[ir.Instruction], iteration: Iteration) -> int:
    """Of how many elementary functions that an iteration calls one waits for the other, at most."""
    behind = dict[ir.Value, int]()
    for each in own:
        waits = max((behind.get(operand, 0) for operand in iteration.operands[each]), default=0)
        behind[each] = waits + (held(each) is not None)
    return max(behind.values(), default=0)


def set_properties(branch: ir.Instruction, names: Sequence[str]) -> None:
    """Say what LLVM is to know of the loop that a branch ends."""
    module = branch.module
    said = [module.add_metadata([name, ir.Constant(ir.IntType(32), 1)]) for name in names]
    branch.set_metadata("llvm.loop", loop_id(module, said))
