"""Check loops that were written over vectors, under `options.verify`.

In: the blocks of the loops that stand for one loop, and the body that was read. Out: nothing, or VerifyError. Each
block is read anew, as LLVM would read it: it promises

- an index that goes up by its number of lanes, and accesses of so many elements at the index, nothing else;
- each store of the body, once;
- where its last vector may reach beyond the trip count, one mask for all accesses and all terms of reductions;
- each reduction of the body, into an accumulator of as many lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from graphc.codegen.vectorize.legality import LoopBody
from graphc.codegen.vectorize.widen import lanes_of
from graphc.errors import VerifyError
from graphc.startup.record import record

MASKED = {"load": (0, 2), "store": (1, 3), "gather": (0, 2)}
"""Accesses under a mask, `llvm.masked.*`: the places of the address and of the mask among their arguments."""


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
    if sum(each.is_store for each in accesses) != sum(isinstance(each, ir.StoreInstr) for each in body.accesses):
        return "it has other stores"
    for each in accesses:
        if each.lanes != lanes:
            return f"an access of {each.lanes} elements, not {lanes}"
        if (each.mask is None) == is_partial or each.mask not in (None, accesses[0].mask):
            return "an access with a mask that it should not have, or none"
        if lanes_of(each.address) == 1 < lanes and each.address.operands[1:] != [index]:
            return "an access that is not at the index"
    if len(accumulators) != len(body.reductions):
        return "it has other reductions"
    return next(filter(None, (broken_reduction(each, block, lanes, is_partial) for each in accumulators)), "")


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
            kind = each.callee.name.split(".")[2]
            address, mask = (each.operands[1 + place] for place in MASKED[kind])
            # A gather of all lanes has a mask that is a constant.
            active = None if isinstance(mask, ir.Constant) else mask
            value = each.operands[1] if kind == "store" else each
            return Access(lanes_of(value), address, active, kind == "store")
    return None
