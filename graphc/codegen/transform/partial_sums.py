"""Sums of float32 down the columns of rows: a few rows are added in float32, and their sums in float64.

In: the statements of a kernel. Out: the statements with such loops cut into blocks of ROWS rows, and for each of these
buffers one of float32 that holds the sums of a block. A loop that adds in float64 goes over half as many elements at a
time as one in float32; adding ROWS rows one after the other loses less than NumPy, which adds all rows so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.codegen.transform.privatize import added_into, targets_of
from graphc.loops import operators
from graphc.loops.ir import (
    INDEX,
    ONE,
    ROWS,
    ZERO,
    Apply,
    Buffer,
    Const,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    add,
    apply,
    blocks_of,
    int_value,
    integer,
    iterations_in_block,
    multiply,
)
from graphc.loops.operators import ACCUMULATE, CASTS
from graphc.loops.visit import is_left, map_bodies, moved_buffers, statements
from graphc.startup.record import fresh, record, replace

WIDEN = CASTS["float64"]


@record()
class Narrowed:
    """`narrow`: the new buffers of float32, each with the one whose elements it holds for a block; `changed`: those as
    they were known before, when every row was added to them."""

    body: tuple[Stmt, ...]
    narrow: Mapping[Buffer, Buffer] = fresh(factory=dict)
    changed: Mapping[Buffer, Buffer] = fresh(factory=dict)


def narrow_sums(body: Sequence[Stmt], fresh: Callable[[str], str]) -> Narrowed:
    """A kernel's statements with sums of rows narrowed, in the targets of which that is true of all loops. `fresh`
    gives names."""
    result: list[Stmt] = []
    narrow: dict[Buffer, Buffer] = {}
    changed: dict[Buffer, Buffer] = {}
    candidates = [narrow_targets(stmt) if isinstance(stmt, Loop) else [] for stmt in body]
    loops = [(stmt, found) for stmt, found in zip(body, candidates, strict=True) if isinstance(stmt, Loop)]
    wide = {buffer for loop, found in loops for buffer in added_into(loop, targets_of(loop)) if buffer not in found}
    wide.update(buffer for stmt in body if isinstance(stmt, If) for buffer in targets_of(stmt))
    for stmt, some in zip(body, candidates, strict=True):
        found = {buffer: target for buffer, target in targets_of(stmt).items() if buffer in some and buffer not in wide}
        if not isinstance(stmt, Loop) or not found:
            result.append(stmt)
            continue
        held = {b: Buffer(fresh("few_rows"), "float32", True, target.length) for b, target in found.items()}
        result.append(by_blocks(stmt, held, fresh))
        for buffer, few in held.items():
            changed[buffer] = replace(buffer, target=replace(found[buffer], pays=ONE))
            narrow[few] = changed[buffer]
    return Narrowed(moved_buffers(result, {old: (new, ZERO) for old, new in changed.items()}), narrow, changed)


def narrow_targets(loop: Loop) -> list[Buffer]:
    """The buffers that a loop over rows only adds float32 numbers to, in loops inside it; none of few rows, and none
    where the loop may be left."""
    count = int_value(loop.size)
    if (count is not None and count <= ROWS) or is_left(loop):
        return []
    if not any(isinstance(stmt, Loop) and targets_of(stmt) for stmt in loop.body):
        return []
    added = added_into(loop, targets_of(loop))
    wide = {
        stmt.buffer
        for stmt in statements(loop.body)
        if isinstance(stmt, Store) and stmt.buffer in added and narrow_term(stmt) is None
    }
    return [buffer for buffer in added if buffer not in wide]


def narrow_term(stmt: Store) -> Expr | None:
    """The float32 number that a store adds to an element of float64; None of any other store."""
    match stmt.value:
        case Apply(operators.ACCUMULATE, (Load(), Apply(widen, (term,)))) if widen is WIDEN:
            return term if term.dtype == "float32" else None
    return None


def by_blocks(loop: Loop, held: Mapping[Buffer, Buffer], fresh: Callable[[str], str]) -> Loop:
    """A loop over rows by blocks of rows: begin the sums of a block, add its rows, add the sums to the buffers."""
    block, iteration, place = (Var(fresh(name), INDEX) for name in ("rows", f"{loop.var.name}_in", "c"))
    zero = Const("0.0", "float32")
    starts: dict[Expr, list[Stmt]] = {}
    ends: dict[Expr, list[Stmt]] = {}
    for buffer, few in held.items():
        assert few.row is not None
        total = apply(ACCUMULATE, Load(buffer, place), apply(WIDEN, Load(few, place)))
        starts.setdefault(few.row, []).append(Store(few, place, zero))
        ends.setdefault(few.row, []).append(Store(buffer, place, total))
    first, last = ([Loop(place, length, tuple(body)) for length, body in part.items()] for part in (starts, ends))
    row = Let(loop.var, add(multiply(block, integer(ROWS)), iteration))
    rows = Loop(iteration, iterations_in_block(loop.size, block, ROWS), (row, *narrowed(loop.body, held)))
    count = int_value(loop.size)
    blocks = blocks_of(loop.size, ROWS) if count is None else integer(-(-count // ROWS))
    return Loop(block, blocks, (*first, rows, *last))


def narrowed(body: Sequence[Stmt], held: Mapping[Buffer, Buffer]) -> tuple[Stmt, ...]:
    """Statements that add to the narrow buffers."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and stmt.buffer in held and (term := narrow_term(stmt)) is not None:
            few = held[stmt.buffer]
            stmt = Store(few, stmt.index, apply(ACCUMULATE, Load(few, stmt.index), term))
        result.append(map_bodies(stmt, lambda inner: narrowed(inner, held)))
    return tuple(result)
