"""Loops of which several turns are carried out at a time.

In: a module of LLVM IR that holds generated functions, before it is optimised. Out: the same module, where loops that
LLVM had better interleave say so (`INTERLEAVED`). No element changes: they do not depend on each other.

A vectorised elementary function is one long chain: every instruction waits four cycles for the one before, and LLVM
takes large loops one vector at a time. Four independent vectors keep the processor's units at work; what is left of
the range is then taken by shorter vectors before single elements are. Measured on 16 to 32 registers of 32 and 64
bytes: a chain of 69 exponentials, logarithms and tangents over 100 elements takes 0.5 to 0.6 of the time, a single
exponential of many elements 0.8. Where a multiplication and an addition are two instructions, nothing is gained.

A body with functions that do not wait for each other has several chains already, and so has one that adds up what they
give: two vectors at a time do.

A body of many functions calls them (math_calls.py), each for four vectors at a time; where it surely vectorises, the
loop is cut for vectors of that length.

Sums are cut in whole vectors and the rest (whole_vectors.py), so that the last elements are added like the others; and
where the CPU can mask a vector, so are loops over such functions, for a row may be short. Where it cannot, a loop
inside another one, which goes along a row, stays as it is unless it calls its functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from llvmlite import ir

from graphc.codegen.math_calls import VECTORS, are_many, call_apart, find_calls, held, one_vector
from graphc.codegen.target import INTERLEAVED, has_avx512, has_fma
from graphc.codegen.vectorizable import is_surely_vectorizable
from graphc.codegen.whole_vectors import (
    MASKED,
    NEUTRAL,
    Flow,
    Loop,
    cut,
    flow_of,
    lanes,
    read_counted,
    targets,
    widest,
)

WIDTH = "llvm.loop.vectorize.width"
UNROLL = "llvm.loop.unroll.disable"

CHAINS = 4
"""Chains that keep a processor busy: so many vectors at a time, of which each is one."""
FEWER = 2
"""Vectors at a time, of which each is several chains."""
ARITHMETIC = frozenset(("fadd", "fsub", "fmul", "fdiv"))
"""What has an order where it may not be reassociated."""


def interleave(module: ir.Module) -> None:
    """Mark the loops of a module's functions that gain from it."""
    masks, gains = has_avx512(), has_fma()
    for function in module.functions:
        flow = flow_of(function)
        for loop in list(loops_of(function)):
            interleave_loop(loop, flow, masks, gains)


def interleave_loop(loop: Loop, flow: Flow, masks: bool, gains: bool) -> None:
    """Mark a loop, cut in two where it may be. `masks`: the CPU can mask a vector; `gains`: it multiplies and adds in
    one instruction."""
    calls = find_calls(loop.body)
    carried = carried_by(loop.body)
    sums = {slot: step for slot in carried if (step := step_of(loop.body, slot)) is not None}
    if len(sums) < len(carried):
        if has_order(loop.body, carried):
            # Each turn waits for the one before: several at a time are no faster, and more to compile.
            set_properties(loop.body.terminator, [(UNROLL, True)])
        return
    if not (sums or calls):
        return
    # A loop with longer elements than those of its functions has vectors that they lack.
    apart = are_many(calls) and all(call.format.width == 8 * widest(loop.body, sums) for call in calls)
    counted = read_counted(loop, flow) if sums or masks or apart else None
    if apart and counted and is_surely_vectorizable(counted, flow, sums):
        call_apart(loop.body)
        width = one_vector(calls[0].format)
        mark(cut(counted, VECTORS * width, sums), 1, masked=True, width=VECTORS * width)
        mark(loop.body.terminator, 1, masked=masks, width=width)
        return
    vectors = FEWER if calls and (len(calls) >= 2 * longest_chain(loop.body) or sums) else CHAINS
    if counted is None or not (sums or masks):
        if gains and not sums and is_outermost(loop):
            mark(loop.body.terminator, vectors)
        return
    mark(cut(counted, vectors * lanes(loop.body, sums), sums), vectors, masked=True)
    # What is soon done is done element by element where it does not fill a vector.
    mark(loop.body.terminator, 1, masked=masks and bool(calls))


def mark(branch: ir.Instruction, vectors: int, masked: bool = False, width: int | None = None) -> None:
    """Say of the loop that a branch ends how many vectors to take at a time, of how many numbers if that is not LLVM's
    to choose, and that the last is to be masked where they are not full."""
    properties: list[tuple[str, int]] = [(INTERLEAVED, vectors)]
    if width is not None:
        properties.append((WIDTH, width))
    if masked:
        properties.append((MASKED, True))
    set_properties(branch, properties)


def set_properties(branch: ir.Instruction, properties: Sequence[tuple[str, int]]) -> None:
    """Say what LLVM is to know of the loop that a branch ends: names with numbers, or with truth values."""
    module = branch.module
    said = [
        module.add_metadata([name, ir.Constant(ir.IntType(1 if isinstance(value, bool) else 32), int(value))])
        for name, value in properties
    ]
    branch.set_metadata("llvm.loop", loop_id(module, said))


def loops_of(function: ir.Function) -> Iterator[Loop]:
    """The loops whose body is one block."""
    for condition in function.blocks:
        ways = targets(condition)
        if len(ways) != 2:
            continue
        body = ways[0]
        counting = path_between(body, condition)
        if counting:
            yield Loop(counting, body)


def path_between(body: ir.Block, condition: ir.Block) -> tuple[ir.Block, ...]:
    """The blocks that lead from the end of a body to the condition, where there is one way; none where there are
    others. What comes before the condition counts the turns."""
    path: list[ir.Block] = []
    here = body
    while here is not condition:
        ways = targets(here)
        if len(ways) != 1 or ways[0] in (body, *path):
            return ()
        (here,) = ways
        path.append(here)
    return tuple(path)


def is_outermost(loop: Loop) -> bool:
    """Whether a loop that has ended does not begin again."""
    first, ending = loop.counting[0], targets(loop.counting[-1])[1]
    reached, left = {ending}, [ending]
    while left and first not in reached:
        following = [each for each in targets(left.pop()) if each not in reached]
        reached.update(following)
        left += following
    return first not in reached


def longest_chain(block: ir.Block) -> int:
    """Of how many elementary functions that a block calls one waits for the other, at most."""
    behind = dict[ir.Value, int]()
    for each in block.instructions:
        waits = max((behind.get(operand, 0) for operand in each.operands), default=0)
        waits += held(each) is not None
        behind[each.operands[1] if isinstance(each, ir.StoreInstr) else each] = waits
    return max(behind.values(), default=0)


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
    """Whether a block calculates with what the turn before left, in an order that must stay: a maximum has none."""
    loads = {each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] in {*carried}}
    return any(
        each.opname in ARITHMETIC and "reassoc" not in each.flags and not loads.isdisjoint(each.operands)
        for each in block.instructions
    )


def step_of(block: ir.Block, slot: ir.AllocaInstr) -> ir.Instruction | None:
    """The instruction that adds something to a local name, or multiplies it, in any order, where that is all that a
    block does with it: a running sum is also written to memory."""
    loads = [each for each in block.instructions if isinstance(each, ir.LoadInstr) and each.operands[0] is slot]
    stores = [each for each in block.instructions if isinstance(each, ir.StoreInstr) and each.operands[1] is slot]
    if not len(loads) == len(stores) == 1:
        return None
    step = stores[0].operands[0]
    if not isinstance(step, ir.Instruction) or step.opname not in NEUTRAL or "reassoc" not in step.flags:
        return None
    users = [[each for each in block.instructions if value in each.operands] for value in (loads[0], step)]
    return step if users == [[step], stores] else None


def loop_id(module: ir.Module, properties: Sequence[ir.MDValue]) -> ir.MDValue:
    """The metadata of one loop: by LLVM's rule its first operand is itself, so that no two loops share one."""
    loop_id = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop_id.operands = (loop_id, *properties)
    return loop_id
