"""Loops of which several turns are carried out at a time.

In: a module of LLVM IR that holds generated functions, before it is optimised. Out: the same module, where loops that
LLVM had better interleave say so (`INTERLEAVED`). No result changes: elements do not depend on each
other.

A vectorised elementary function is one long chain: every instruction waits four cycles for the one before, and LLVM
takes large loops one vector at a time. Four independent vectors keep the processor's units at work; what is left of
the range is then taken by shorter vectors before single elements are. Measured on 16 to 32 registers of 32 and 64
bytes: a chain of 69 exponentials, logarithms and tangents over 100 elements takes 0.5 to 0.6 of the time, a single
exponential of many elements 0.8. Where a multiplication and an addition are two instructions, nothing is gained.

A body with functions that do not wait for each other has several chains already, and two vectors at a time do: the
price of an option with its derivatives, six functions of which two wait for another, takes as long, and LLVM half the
time.

A loop inside another one goes along a row, which may be short: it stays as it is. Loops that accumulate do, too: how
many partial sums they have is for LLVM to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from llvmlite import ir

from graphc.codegen.target import INTERLEAVED, has_fma

CHAINS = 4
"""Chains that keep a processor busy: so many vectors at a time, of which each is one."""
FEWER = 2
"""Vectors at a time, of which each is several chains."""


def interleave(module: ir.Module) -> None:
    """Mark the loops of a module's functions that gain from it."""
    if not has_fma():
        return
    bodies = [body for function in module.functions for body in outermost_bodies(function)]
    for body in bodies:
        calls, chain = math_calls(body)
        if calls and not carries(body):
            vectors = CHAINS if calls < 2 * chain else FEWER
            count = module.add_metadata([INTERLEAVED, ir.Constant(ir.IntType(32), vectors)])
            body.terminator.set_metadata("llvm.loop", loop_id(module, count))


def outermost_bodies(function: ir.Function) -> Iterator[ir.Block]:
    """The bodies of loops of one block that stand in no other loop. Blocks come in the order of the source, so that a
    branch to an earlier one ends a loop."""
    place = {block: number for number, block in enumerate(function.blocks)}
    ends = [(place[target], number) for block, number in place.items() for target in _targets(block)]
    loops = sorted((first, last) for first, last in ends if first <= last)
    reached = -1
    for (first, last), (following, _) in pairwise((*loops, (len(place), len(place)))):
        # What comes before the one condition counts the turns.
        *counting, condition, body = function.blocks[first : last + 1] if first < last else (None, None)
        straight = condition is not None and all(map(_targets, counting)) and not _targets(condition)
        if straight and first > reached and last < following:
            yield body
        reached = max(reached, last)


def _targets(block: ir.Block) -> tuple[ir.Block, ...]:
    """Where a block ends to without a condition."""
    branches = isinstance(block.terminator, ir.Branch)
    return tuple(block.terminator.operands) if branches else ()


def math_calls(block: ir.Block) -> tuple[int, int]:
    """How many elementary functions of ours a block calls, which become a part of it; and of how many one waits for
    the other, at most."""
    calls, behind = 0, dict[ir.Value, int]()
    for each in block.instructions:
        waits = max((behind.get(operand, 0) for operand in each.operands), default=0)
        callee = each.callee if isinstance(each, ir.CallInstr) else None
        if isinstance(callee, ir.Function) and "alwaysinline" in callee.attributes:
            calls, waits = calls + 1, waits + 1
        behind[each.operands[1] if isinstance(each, ir.StoreInstr) else each] = waits
    return calls, max(behind.values(), default=0)


def carries(block: ir.Block) -> bool:
    """Whether a block reads a local name before it gives it another value, as a sum does."""
    read: set[ir.Value] = set()
    written: set[ir.Value] = set()
    for each in block.instructions:
        if isinstance(each, ir.LoadInstr):
            read.update({each.operands[0]} - written)
        elif isinstance(each, ir.StoreInstr):
            written.add(each.operands[1])
    return any(isinstance(name, ir.AllocaInstr) for name in read & written)


def loop_id(module: ir.Module, count: ir.MDValue) -> ir.MDValue:
    """The metadata of one loop: by LLVM's rule its first operand is itself, so that no two loops share one."""
    loop_id = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop_id.operands = (loop_id, count)
    return loop_id
