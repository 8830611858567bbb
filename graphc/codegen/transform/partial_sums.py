"""Partial sums: float32 rows are added up a few at a time in float32, and these sums in float64.

In: the statements of a kernel. Out: the statements with loops that add rows cut into blocks of ROWS rows, and for each
buffer that they add into one of float32, which holds the sums of a block.

    for i in range(n):                                  for rows in range(blocks(n, 32)):
        for j in range(m):                                  for c in range(m): few[c] = 0.0
            sums[j] = sums[j] + float64(x[i * m + j])       for i_in in range(block_length(n, rows, 32)):
                                                                for j in range(m): few[j] = few[j] + x[...]
                                                            for c in range(m): sums[c] = sums[c] + float64(few[c])

A loop that adds in float64 goes over half as many elements at a time as one in float32. Adding ROWS rows one after the
other loses less than NumPy does, which adds all rows so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.codegen.transform.parallelize import added_into, targets_of
from graphc.loopir import ir, operators, visit
from graphc.startup.record import fresh, record, replace

WIDEN = operators.CASTS["float64"]


@record()
class Narrowed:
    """`narrow`: the new buffers of float32, each with the one whose elements it holds for a block; `changed`: those as
    they were known before, when every row was added to them."""

    body: tuple[ir.Stmt, ...]
    narrow: Mapping[ir.Buffer, ir.Buffer] = fresh(factory=dict)
    changed: Mapping[ir.Buffer, ir.Buffer] = fresh(factory=dict)


def narrow_sums(body: Sequence[ir.Stmt], fresh: Callable[[str], str]) -> Narrowed:
    """A kernel's statements with sums of rows narrowed, in the targets of which that is true of all loops. `fresh`
    gives names."""
    result: list[ir.Stmt] = []
    narrow: dict[ir.Buffer, ir.Buffer] = {}
    changed: dict[ir.Buffer, ir.Buffer] = {}
    candidates = [narrow_targets(stmt) if isinstance(stmt, ir.Loop) else [] for stmt in body]
    loops = [(stmt, found) for stmt, found in zip(body, candidates, strict=True) if isinstance(stmt, ir.Loop)]
    wide = {buffer for loop, found in loops for buffer in added_into(loop, targets_of(loop)) if buffer not in found}
    wide.update(buffer for stmt in body if isinstance(stmt, ir.If) for buffer in targets_of(stmt))
    for stmt, some in zip(body, candidates, strict=True):
        found = {buffer: target for buffer, target in targets_of(stmt).items() if buffer in some and buffer not in wide}
        if not isinstance(stmt, ir.Loop) or not found:
            result.append(stmt)
            continue
        partials = {b: ir.Buffer(fresh("few_rows"), "float32", True, target.length) for b, target in found.items()}
        result.append(by_blocks(stmt, partials, fresh))
        for buffer, few in partials.items():
            changed[buffer] = replace(buffer, target=replace(found[buffer], pays=ir.ONE))
            narrow[few] = changed[buffer]
    return Narrowed(visit.moved_buffers(result, {old: (new, ir.ZERO) for old, new in changed.items()}), narrow, changed)


def narrow_targets(loop: ir.Loop) -> list[ir.Buffer]:
    """The buffers that a loop over rows only adds float32 numbers to, in loops inside it; none of few rows, and none
    where the loop may be left."""
    count = ir.int_value(loop.size)
    if (count is not None and count <= ir.ROWS) or visit.is_left(loop):
        return []
    if not any(isinstance(stmt, ir.Loop) and targets_of(stmt) for stmt in loop.body):
        return []
    added = added_into(loop, targets_of(loop))
    wide = {
        stmt.buffer
        for stmt in visit.statements(loop.body)
        if isinstance(stmt, ir.Store) and stmt.buffer in added and narrow_term(stmt) is None
    }
    return [buffer for buffer in added if buffer not in wide]


def narrow_term(stmt: ir.Store) -> ir.Expr | None:
    """The float32 number that a store adds to an element of float64; None of any other store."""
    match stmt.value:
        case ir.Apply(operators.ACCUMULATE, (ir.Load(), ir.Apply(widen, (term,)))) if widen is WIDEN:
            return term if term.dtype == "float32" else None
    return None


def by_blocks(loop: ir.Loop, partials: Mapping[ir.Buffer, ir.Buffer], fresh: Callable[[str], str]) -> ir.Loop:
    """A loop over rows by blocks of rows: begin the sums of a block, add its rows, add the sums to the buffers."""
    block, iteration, place = (ir.Var(fresh(name), ir.INDEX) for name in ("rows", f"{loop.var.name}_in", "c"))
    zero = ir.Const("0.0", "float32")
    starts: dict[ir.Expr, list[ir.Stmt]] = {}
    ends: dict[ir.Expr, list[ir.Stmt]] = {}
    for buffer, few in partials.items():
        assert few.row is not None
        total = ir.apply(operators.ACCUMULATE, ir.Load(buffer, place), ir.apply(WIDEN, ir.Load(few, place)))
        starts.setdefault(few.row, []).append(ir.Store(few, place, zero))
        ends.setdefault(few.row, []).append(ir.Store(buffer, place, total))
    first, last = ([ir.Loop(place, length, tuple(body)) for length, body in part.items()] for part in (starts, ends))
    row = ir.Let(loop.var, ir.add(ir.multiply(block, ir.integer(ir.ROWS)), iteration))
    rows = ir.Loop(iteration, ir.iterations_in_block(loop.size, block, ir.ROWS), (row, *narrowed(loop.body, partials)))
    count = ir.int_value(loop.size)
    blocks = ir.blocks_of(loop.size, ir.ROWS) if count is None else ir.integer(-(-count // ir.ROWS))
    return ir.Loop(block, blocks, (*first, rows, *last), safepoint=ir.safepoint_in_blocks(loop.safepoint, ir.ROWS))


def narrowed(body: Sequence[ir.Stmt], partials: Mapping[ir.Buffer, ir.Buffer]) -> tuple[ir.Stmt, ...]:
    """Statements that add to the narrow buffers."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Store) and stmt.buffer in partials and (term := narrow_term(stmt)) is not None:
            few = partials[stmt.buffer]
            stmt = ir.Store(few, stmt.index, ir.apply(operators.ACCUMULATE, ir.Load(few, stmt.index), term))
        result.append(visit.map_bodies(stmt, lambda inner: narrowed(inner, partials)))
    return tuple(result)
